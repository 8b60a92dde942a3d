//! Random numbers that hang on what they are for.
//!
//! Every one is a hash of the seed and of its purpose, never the next of a stream: a row draws the same numbers whoever
//! else is there, which is what lets a forget and a retraining with one seed be compared bit by bit.

/// What a random number is for.
#[derive(Clone, Copy)]
pub(crate) enum For {
    /// The race of one round of k-means++.
    Race = 1,
    /// The offset of the lattice.
    Lattice = 2,
    /// The leaf of a row.
    Leaf = 3,
    /// The seed of a node of the tree.
    Node = 4,
    /// The shard of a row.
    Shard = 5,
    /// The slice of a row.
    Slice = 6,
    /// The share of a row in what noise is drawn for.
    Noise = 7,
}

/// The random word of `seed` for one purpose (the finaliser of splitmix64, once per word).
pub(crate) fn draw(seed: u64, purpose: For, a: u64, b: u64) -> u64 {
    [purpose as u64, a, b].iter().fold(seed, |state, word| {
        let mut z =
            state.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(word.wrapping_mul(0xd134_2543_de82_ef95));
        z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}

/// The same as a number strictly between 0 and 1.
pub(crate) fn uniform(seed: u64, purpose: For, a: u64, b: u64) -> f64 {
    ((draw(seed, purpose, a, b) >> 12) as f64 + 0.5) / (1u64 << 52) as f64
}
