//! The one source of reproducible random numbers. Everything that the project draws follows from a
//! seed and from what it is drawn for, so that a fit, a study or a test can be repeated bit by bit.
//! Nothing here is secret: keys and salts come from the operating system, in the engine.
//!
//! - [`random_word`] and [`random_uniform`] hash a seed, a purpose and two numbers. They are never
//!   the next of a stream: a row draws the same numbers whichever other rows are there, so that a
//!   forget and a retraining with one seed can be compared.
//! - [`seeded`] and [`seeded_stream`] are generators for long runs of numbers.

use rand::SeedableRng;
use rand_chacha::{ChaCha8Rng, ChaCha20Rng};

/// The generator behind every long run of numbers: fast, and the same on every machine.
pub type SeededRng = ChaCha8Rng;

/// What a single random number is for: two purposes never share a number.
#[derive(Debug, Clone, Copy)]
pub enum DrawPurpose {
    /// The race of one round of k-means++.
    Race = 1,
    /// The offset of the lattice that k-means rounds its centres to.
    Lattice = 2,
    /// The leaf of a row in a tree of k-means.
    Leaf = 3,
    /// The seed of a node of that tree.
    Node = 4,
    /// The shard of a row.
    Shard = 5,
    /// The slice of a row.
    Slice = 6,
    /// The share of a row in what noise is drawn for.
    Noise = 7,
    /// The fold of a row, or whether it is held out.
    Fold = 8,
    /// Whether a row is one of those that are left out in turn.
    LeftOut = 9,
}

/// The random word of a seed for one purpose and two numbers, such as a round and a row id.
pub fn random_word(seed: u64, purpose: DrawPurpose, a: u64, b: u64) -> u64 {
    [purpose as u64, a, b].iter().fold(seed, |state, word| {
        let mixed = state
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(word.wrapping_mul(0xd134_2543_de82_ef95));
        scrambled(mixed.wrapping_add(0x9e37_79b9_7f4a_7c15))
    })
}

/// A random number strictly between 0 and 1 for one purpose and two numbers.
pub fn random_uniform(seed: u64, purpose: DrawPurpose, a: u64, b: u64) -> f64 {
    ((random_word(seed, purpose, a, b) >> 12) as f64 + 0.5) / (1u64 << 52) as f64
}

/// The seed of one part of a training: `number` is its epoch or step, `part` tells the draws of one
/// step apart.
pub fn training_seed(seed: u64, number: u64, part: u64) -> u64 {
    scrambled(
        seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .wrapping_add(part.wrapping_mul(0xd1b5_4a32_d192_ed03)),
    )
}

/// Spreads every bit of a word over all others: the finaliser of splitmix64.
pub fn scrambled(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// The generator of a seed.
pub fn seeded(seed: u64) -> SeededRng {
    SeededRng::seed_from_u64(seed)
}

/// One of the many independent generators of a seed.
pub fn seeded_stream(seed: u64, stream: u64) -> SeededRng {
    let mut generator = seeded(seed);
    generator.set_stream(stream);
    generator
}

/// The generator of noise that hides rows. It keeps all twenty rounds, because a certificate rests
/// on nobody being able to predict the noise without the seed.
pub(crate) fn noise_stream(seed: u64, stream: u64) -> ChaCha20Rng {
    let mut generator = ChaCha20Rng::seed_from_u64(seed);
    generator.set_stream(stream);
    generator
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;

    #[test]
    fn numbers_follow_from_seed_purpose_and_index_alone() {
        // Models in files rest on these values: a row keeps its shard, its slice and its leaf for
        // life.
        assert_eq!(
            random_word(7, DrawPurpose::Shard, 3, 0),
            0x9bf6_73a6_09cb_8187
        );
        assert_eq!(training_seed(7, 3, 2), 0xd3a8_307e_e11b_d937);
        assert_ne!(
            random_word(7, DrawPurpose::Shard, 3, 0),
            random_word(7, DrawPurpose::Slice, 3, 0)
        );
        assert_ne!(
            random_word(7, DrawPurpose::Shard, 3, 0),
            random_word(7, DrawPurpose::Shard, 0, 3)
        );
        let uniform = random_uniform(7, DrawPurpose::Race, 1, 2);
        assert!(uniform > 0.0 && uniform < 1.0);
    }

    #[test]
    fn streams_of_one_seed_differ_and_repeat() {
        let first = |stream| seeded_stream(1, stream).random::<u64>();
        assert_eq!(first(0), seeded(1).random::<u64>());
        assert_eq!(first(5), first(5));
        assert_ne!(first(5), first(6));
    }
}
