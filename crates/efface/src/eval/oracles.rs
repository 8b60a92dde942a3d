//! Which rows every oracle sees.
//!
//! The rows fall into three: those to forget (D), a sample of the retained that is attacked too
//! (R′), and the rest. An oracle is fitted on a random share of the rest, on half of D and on half
//! of R′. Oracles come in pairs that see opposite halves, so that every row of D and R′ is in
//! exactly half of them and out of the other half; the shares of the rest are drawn apart for each.
//! What an oracle sees of the rest is thus independent of what it sees of D: a model that has truly
//! forgotten D cannot tell the halves apart, and any attack on it is a coin.
//!
//! The rest is dealt into [`GROUPS`] groups, which come or stay away as a whole. For a squared loss
//! this is what makes hundreds of oracles cheap: the sums of every group are made once, and an
//! oracle adds up matrices instead of reading rows.

use std::collections::HashSet;

use rand::Rng;
use rand::seq::SliceRandom;

use super::bootstrap::Bootstrap;
use crate::error::{Error, Result};
use crate::models::ridge::MOST_NUMBERS;
use crate::random::{SeededRng, seeded_stream};
use crate::rows::{RowId, RowStore, Rows};

/// Groups that the rest is dealt into, at most.
pub(super) const GROUPS: usize = 32;
/// The fewest groups that the rest is dealt into: half of eight groups can be drawn in 70 ways.
const LEAST_GROUPS: usize = 8;
/// Fewer oracles leave fewer than four margins to fit a normal distribution to.
const LEAST_ORACLES: usize = 16;
/// Fewer retained rows make no oracles that differ.
const LEAST_RETAINED: usize = 16;

/// How many oracles are fitted, and from which rows.
///
/// | setting | default | range | meaning |
/// |---|---|---|---|
/// | `oracles` | 64 | 16 or more, rounded up to a multiple of 4 | models to fit |
/// | `keep` | 0.5 | above 0 and below 1 | the share of the rest that each sees |
/// | `retained` | 100 | 1 or more | retained rows that are attacked, a quarter of them at most |
/// | `bootstrap` | 1000 times, 95 % | | the intervals |
/// | `threads` | 1 | 1 or more | oracles fitted at once; the result does not depend on it |
/// | `seed` | 0 | | fixes the result |
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trials {
    /// Models to fit.
    pub oracles: usize,
    /// The share of the rest that each sees.
    pub keep: f64,
    /// Retained rows that are attacked.
    pub retained: usize,
    /// How intervals are made.
    pub bootstrap: Bootstrap,
    /// Oracles fitted at once.
    pub threads: usize,
    /// Fixes the result.
    pub seed: u64,
}

impl Default for Trials {
    fn default() -> Self {
        Self {
            oracles: 64,
            keep: 0.5,
            retained: 100,
            bootstrap: Bootstrap::default(),
            threads: 1,
            seed: 0,
        }
    }
}

/// At most `count` rows at random, which follow from the seed.
pub fn sample(rows: &Rows, count: usize, seed: u64) -> Vec<RowId> {
    let mut ids: Vec<RowId> = rows.ids().collect();
    // The draws of oracles use the first and the last streams of the seed, and this one lies
    // between them.
    ids.shuffle(&mut seeded_stream(seed, u64::MAX / 2));
    ids.truncate(count);
    ids.sort_unstable();
    ids
}

/// As many groups as have room for their sums in 2 GiB, if that leaves enough to draw from.
fn groups_for(width: usize) -> usize {
    let room = MOST_NUMBERS / (width + 1).saturating_mul(width + 1);
    room.clamp(LEAST_GROUPS, GROUPS)
}

/// The draws of all oracles.
#[derive(Debug)]
pub(super) struct OraclePlan {
    pub(super) oracles: usize,
    pub(super) forgotten: Vec<RowId>,
    pub(super) retained: Vec<RowId>,
    pub(super) groups: Vec<Vec<RowId>>,
    /// How many groups an oracle sees.
    picked: usize,
    seed: u64,
}

/// What one oracle sees.
#[derive(Debug, Clone)]
pub(super) struct OracleDraw {
    /// Groups of the rest, by number.
    pub(super) groups: Vec<usize>,
    /// For every row of D, whether it is in.
    pub(super) forgotten: Vec<bool>,
    /// For every row of R′, whether it is in.
    pub(super) retained: Vec<bool>,
}

impl OraclePlan {
    pub(super) fn new(rows: &Rows, gone: &[RowId], trials: &Trials) -> Result<Self> {
        rows.check(gone)?;
        trials.check()?;
        if gone.is_empty() {
            let advice = "there is nobody to look for";
            return Err(Error::TooFew {
                what: "rows to forget",
                found: 0,
                needed: 1,
                advice,
            });
        }
        let left = rows.len() - gone.len();
        if left < LEAST_RETAINED {
            return Err(Error::TooFew {
                what: "retained rows",
                found: left,
                needed: LEAST_RETAINED,
                advice: "oracles are fitted on random shares of them; forget fewer rows",
            });
        }
        let out: HashSet<RowId> = gone.iter().copied().collect();
        let mut rest: Vec<RowId> = rows.ids().filter(|id| !out.contains(id)).collect();
        rest.shuffle(&mut seeded_stream(trials.seed, 0));
        let retained = rest.split_off(left - trials.retained.min(left / 4));
        let count = groups_for(rows.width()).min(rest.len());
        let mut groups = vec![Vec::with_capacity(rest.len() / count + 1); count];
        rest.into_iter()
            .enumerate()
            .for_each(|(at, id)| groups[at % count].push(id));
        let picked = ((trials.keep * count as f64).round() as usize).clamp(1, count - 1);
        let oracles = trials.oracles.next_multiple_of(4);
        Ok(Self {
            oracles,
            forgotten: gone.to_vec(),
            retained,
            groups,
            picked,
            seed: trials.seed,
        })
    }

    /// What an oracle sees. It follows from the number of the oracle alone, so that oracles may be
    /// fitted in any order.
    pub(super) fn draw(&self, oracle: usize) -> OracleDraw {
        let pair = (oracle / 2) as u64;
        let opposite = oracle % 2 == 1;
        let halves = |count: usize, rng: &mut SeededRng| {
            let mut order: Vec<usize> = (0..count).collect();
            order.shuffle(rng);
            // Half of an odd number is no whole number: a random draw decides whether the middle
            // row is in.
            let half = count / 2 + count % 2 * (rng.next_u32() % 2) as usize;
            let mut inside = vec![opposite; count];
            order[..half].iter().for_each(|at| inside[*at] = !opposite);
            inside
        };
        let mut rng = seeded_stream(self.seed, 1 + 2 * pair);
        let forgotten = halves(self.forgotten.len(), &mut rng);
        let retained = halves(self.retained.len(), &mut rng);
        let mut order: Vec<usize> = (0..self.groups.len()).collect();
        order.shuffle(&mut seeded_stream(self.seed, u64::MAX - oracle as u64));
        order.truncate(self.picked);
        order.sort_unstable();
        OracleDraw {
            groups: order,
            forgotten,
            retained,
        }
    }

    /// The rows of an oracle: the rest's, those of R′ that are in, and those of D that are.
    pub(super) fn members(&self, draw: &OracleDraw, with_forgotten: bool) -> Vec<RowId> {
        let mut ids: Vec<RowId> = draw
            .groups
            .iter()
            .flat_map(|group| &self.groups[*group])
            .copied()
            .collect();
        ids.extend(self.targets_in(draw, with_forgotten));
        ids
    }

    /// The rows of R′ and D that are in.
    pub(super) fn targets_in<'a>(
        &'a self,
        draw: &'a OracleDraw,
        with_forgotten: bool,
    ) -> impl Iterator<Item = RowId> + 'a {
        let pick = |ids: &'a [RowId], inside: &'a [bool]| {
            ids.iter()
                .zip(inside)
                .filter(|(_, inside)| **inside)
                .map(|(id, _)| *id)
        };
        let forgotten = pick(&self.forgotten, &draw.forgotten).filter(move |_| with_forgotten);
        pick(&self.retained, &draw.retained).chain(forgotten)
    }

    /// The rows of D that are in.
    pub(super) fn forgotten_in(&self, draw: &OracleDraw) -> Vec<RowId> {
        self.forgotten
            .iter()
            .zip(&draw.forgotten)
            .filter(|(_, inside)| **inside)
            .map(|(id, _)| *id)
            .collect()
    }
}

impl Trials {
    fn check(&self) -> Result<()> {
        let range = |name, value: String, range| Err(Error::Parameter { name, value, range });
        if !(LEAST_ORACLES..=1_000_000).contains(&self.oracles) {
            return range("oracles", self.oracles.to_string(), "16 to 1 000 000");
        }
        if !(self.keep > 0.0 && self.keep < 1.0) {
            return range("keep", self.keep.to_string(), "above 0 and below 1");
        }
        if self.retained == 0 {
            return range("retained", "0".into(), "1 or more");
        }
        if self.threads == 0 {
            return range("threads", "0".into(), "1 or more");
        }
        self.bootstrap.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Dense;

    fn rows(n: usize) -> Rows {
        Rows::new(Dense::new(vec![1.0; n], 1).unwrap(), vec![1.0; n], 1).unwrap()
    }

    #[test]
    fn every_target_is_in_half_of_the_oracles_and_of_each_fold() {
        let gone: Vec<RowId> = (0..5).map(RowId).collect();
        let trials = Trials {
            oracles: 18,
            retained: 7,
            ..Trials::default()
        };
        let plan = OraclePlan::new(&rows(200), &gone, &trials).unwrap();
        assert_eq!(
            (plan.oracles, plan.retained.len(), plan.groups.len()),
            (20, 7, 32)
        );
        for row in 0..5 {
            for fold in 0..2 {
                let of_fold =
                    (0..20).filter(|oracle| super::super::likelihood::fold(*oracle) == fold);
                let inside: Vec<bool> = of_fold
                    .map(|oracle| plan.draw(oracle).forgotten[row])
                    .collect();
                assert_eq!(
                    inside.iter().filter(|inside| **inside).count() * 2,
                    inside.len()
                );
            }
        }
        let draw = plan.draw(3);
        assert_eq!(draw.groups.len(), 16);
        let members = plan.members(&draw, true);
        let distinct: HashSet<_> = members.iter().collect();
        assert_eq!(distinct.len(), members.len());
        assert_eq!(
            members.len() - plan.members(&draw, false).len(),
            plan.forgotten_in(&draw).len()
        );
        assert_ne!(plan.draw(2).groups, draw.groups);
    }

    #[test]
    fn wide_rows_fall_into_fewer_groups() {
        assert_eq!(
            [10, 2895, 4000, 5792, 100_000].map(groups_for),
            [32, 32, 16, 8, 8]
        );
    }

    #[test]
    fn too_little_of_anything_is_refused() {
        let name = |n: usize, gone: &[RowId], trials: Trials| {
            OraclePlan::new(&rows(n), gone, &trials)
                .unwrap_err()
                .to_string()
        };
        let good = Trials::default();
        assert!(name(100, &[], good).contains("rows to forget: 0"));
        assert!(name(16, &[RowId(1)], good).contains("retained rows: 15"));
        assert!(name(100, &[RowId(100)], good).contains("row 100"));
        assert!(name(100, &[RowId(1)], Trials { oracles: 8, ..good }).starts_with("oracles = 8"));
        assert!(name(100, &[RowId(1)], Trials { keep: 1.0, ..good }).starts_with("keep = 1"));
        assert!(
            name(
                100,
                &[RowId(1)],
                Trials {
                    keep: f64::NAN,
                    ..good
                }
            )
            .starts_with("keep = NaN")
        );
        assert!(
            name(
                100,
                &[RowId(1)],
                Trials {
                    retained: 0,
                    ..good
                }
            )
            .starts_with("retained = 0")
        );
        assert!(name(100, &[RowId(1)], Trials { threads: 0, ..good }).starts_with("threads = 0"));
    }
}
