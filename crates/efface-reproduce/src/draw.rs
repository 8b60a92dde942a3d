//! Orders and choices of rows that follow from a seed.

use efface::RowId;
use efface::random::{seeded, seeded_stream};
use rand::RngExt;
use rand::seq::SliceRandom;

/// A seed for one purpose of one trial.
pub(crate) fn trial_seed(seed: u64, purpose: u64, trial: u64) -> u64 {
    seeded_stream(seed, purpose << 32 | trial).random()
}

/// The numbers below `n` in an order that follows from the seed.
pub(crate) fn shuffled(n: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    order.shuffle(&mut seeded(seed));
    order
}

/// `k` of the ids, in ascending order.
pub(crate) fn choose(ids: &[RowId], k: usize, seed: u64) -> Vec<RowId> {
    let mut chosen: Vec<RowId> = shuffled(ids.len(), seed)
        .into_iter()
        .take(k)
        .map(|at| ids[at])
        .collect();
    chosen.sort_unstable();
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_follow_from_the_seed_and_repeat_nothing() {
        let ids: Vec<RowId> = (0..50).map(RowId).collect();
        let chosen = choose(&ids, 20, 3);
        assert_eq!(chosen, choose(&ids, 20, 3));
        assert_ne!(chosen, choose(&ids, 20, 4));
        assert!(chosen.is_sorted_by(|a, b| a < b) && chosen.len() == 20);
        assert_ne!(trial_seed(1, 2, 3), trial_seed(1, 3, 2));
    }
}
