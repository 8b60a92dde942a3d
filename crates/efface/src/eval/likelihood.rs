//! The likelihood-ratio attack on margins that somebody has already collected: LiRA (Carlini et al.
//! 2022), and U-LiRA (Hayes et al. 2024) when the models "with" a row have unlearned it since. It
//! asks nothing of the models, so that it serves networks as well as the families of this crate.

use super::attack::{Attack, resampled};
use super::bootstrap::Bootstrap;
use super::games::{MembershipGame, SortedGames};
use super::jackknife::{AuditSize, HalfAreas, MOST_BLOCKS, cross_fitted_interval};
use super::klom::normal;
use crate::error::{Error, Result};

/// With fewer margins a side than this, the two normal distributions of a row share a variance.
const OWN_VARIANCE: usize = 32;
/// Spreads below this share of the margin are rounding.
const FLOOR: f64 = 1e-9;

/// Which half of the models a model belongs to. Neighbours 2i and 2i + 1 stay together: they are
/// best drawn as opposites, so that every row is in as many models of a half as it is out of.
pub(super) fn fold(model: usize) -> usize {
    model / 2 % 2
}

/// The number of a model's pair among the pairs of its half.
fn pair_in_half(model: usize) -> usize {
    model / 4
}

/// `margins[model][row]`, and whether that row was `inside` when that model was trained. The
/// attacker who judges a model was fitted on the other half of the models, and the two halves'
/// results are averaged. Models 2i and 2i + 1 are one unit of chance to the intervals: that of the
/// area leaves such pairs out (`jackknife.rs`), those of the rates resample them.
pub fn likelihood_ratio(
    margins: &[&[f64]],
    inside: &[Vec<bool>],
    settings: &Bootstrap,
) -> Result<Attack> {
    let rows = margins.first().map_or(0, |margins| margins.len());
    let shape = |what, found, expected| {
        Err(Error::Shape {
            what,
            found,
            expected,
        })
    };
    if inside.len() != margins.len() {
        return shape("lists of members", inside.len(), margins.len());
    }
    let lengths = margins
        .iter()
        .map(|list| list.len())
        .chain(inside.iter().map(Vec::len));
    if let Some(other) = lengths.into_iter().find(|&length| length != rows) {
        return shape("rows of a model", other, rows);
    }
    let shadows = ShadowMargins {
        margins,
        inside,
        rows,
    };
    let size = AuditSize {
        rows,
        pairs: margins.len().div_ceil(4),
    };
    let blocks = size.pairs.min(MOST_BLOCKS);
    let first = shadows.judge_half(0, blocks)?;
    let second = shadows.judge_half(1, blocks)?;
    let found = resampled(&[first.games, second.games], settings)?;
    let auc_interval =
        cross_fitted_interval(&[first.areas, second.areas], size, settings.confidence);
    Ok(Attack {
        auc_interval,
        ..found
    })
}

/// Margins of models and what each was trained on.
struct ShadowMargins<'a> {
    margins: &'a [&'a [f64]],
    inside: &'a [Vec<bool>],
    rows: usize,
}

/// One half of the models, judged by attackers fitted on the other.
struct JudgedHalf {
    games: SortedGames,
    areas: HalfAreas,
}

impl ShadowMargins<'_> {
    fn judge_half(&self, half: usize, blocks: usize) -> Result<JudgedHalf> {
        let teachers: Vec<usize> = (0..self.margins.len())
            .filter(|model| fold(*model) != half)
            .collect();
        let attackers: Vec<RowAttacker> = (0..self.rows)
            .map(|row| self.attacker(row, &teachers, None))
            .collect::<Result<_>>()?;
        let games = self.games(half, &attackers)?;
        let mut without = vec![vec![0.0; blocks + 1]; blocks + 1];
        for left_out in 0..=blocks {
            let some: Vec<usize> = teachers
                .iter()
                .copied()
                .filter(|model| pair_in_half(*model) % blocks != left_out)
                .collect();
            // A row that would have too few margins keeps the attacker that it has.
            let again: Vec<RowAttacker> = (attackers.iter().enumerate())
                .map(|(row, old)| {
                    self.attacker(row, &some, Some(old.own_variances))
                        .unwrap_or(*old)
                })
                .collect();
            let judged = self.games(half, &again)?;
            for (block, areas) in without.iter_mut().enumerate() {
                areas[left_out] = judged.area_without(block, blocks);
            }
        }
        Ok(JudgedHalf {
            games,
            areas: HalfAreas { without },
        })
    }

    fn attacker(
        &self,
        row: usize,
        teachers: &[usize],
        own_variances: Option<bool>,
    ) -> Result<RowAttacker> {
        let samples = |member: bool| -> Vec<f64> {
            let of = teachers
                .iter()
                .filter(|model| self.inside[**model][row] == member);
            of.map(|model| self.margins[*model][row]).collect()
        };
        RowAttacker::new(&samples(true), &samples(false), own_variances)
    }

    fn games(&self, half: usize, attackers: &[RowAttacker]) -> Result<SortedGames> {
        let mut games = Vec::new();
        for model in (0..self.margins.len()).filter(|model| fold(*model) == half) {
            for (row, attacker) in attackers.iter().enumerate() {
                let score = attacker.score(self.margins[model][row]);
                games.push(MembershipGame {
                    score,
                    member: self.inside[model][row],
                    cluster: pair_in_half(model),
                });
            }
        }
        SortedGames::new(games)
    }
}

/// What an attacker knows of one row: how its margin is distributed with it and without it.
#[derive(Clone, Copy)]
struct RowAttacker {
    with: (f64, f64),
    without: (f64, f64),
    own_variances: bool,
}

impl RowAttacker {
    /// Whether each side has its own variance follows from the number of margins, unless it is
    /// given: an attacker fitted without a few of them must be of the same kind.
    fn new(with: &[f64], without: &[f64], own_variances: Option<bool>) -> Result<Self> {
        let found = with.len().min(without.len());
        if found < 2 {
            let advice = "a row must be in two models of each half and out of two; train more";
            return Err(Error::TooFew {
                what: "margins of a row",
                found,
                needed: 2,
                advice,
            });
        }
        let own_variances = own_variances.unwrap_or(found >= OWN_VARIANCE);
        let mut p = normal(with);
        let mut q = normal(without);
        if !own_variances {
            let n = with.len() as f64 - 1.0;
            let m = without.len() as f64 - 1.0;
            let shared = ((n * p.1 * p.1 + m * q.1 * q.1) / (n + m)).sqrt();
            p.1 = shared;
            q.1 = shared;
        }
        let floor = FLOOR * (1.0 + p.0.abs().max(q.0.abs()));
        Ok(Self {
            with: (p.0, p.1.max(floor)),
            without: (q.0, q.1.max(floor)),
            own_variances,
        })
    }

    /// log N(m; with) − log N(m; without).
    fn score(&self, margin: f64) -> f64 {
        let log =
            |(mean, spread): (f64, f64)| -((margin - mean) / spread).powi(2) / 2.0 - spread.ln();
        log(self.with) - log(self.without)
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;

    /// 64 models and 40 rows; a row's margin is higher by `lift` where it is in.
    fn world(lift: f64, seed: u64) -> Result<Attack> {
        let mut rng = crate::random::seeded(seed);
        let mut noise = || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        let inside: Vec<Vec<bool>> = (0..64)
            .map(|model| {
                (0..40)
                    .map(|row| (model / 2 * 7 + row) % 3 == model % 2)
                    .collect()
            })
            .collect();
        let margins: Vec<Vec<f64>> = (inside.iter())
            .map(|inside| {
                inside
                    .iter()
                    .map(|inside| noise() + lift * f64::from(u8::from(*inside)))
                    .collect()
            })
            .collect();
        let views: Vec<&[f64]> = margins.iter().map(Vec::as_slice).collect();
        likelihood_ratio(&views, &inside, &Bootstrap::default())
    }

    #[test]
    fn a_leak_is_found_and_a_coin_is_a_coin() {
        let coins: Vec<Attack> = (0..40).map(|seed| world(0.0, seed).unwrap()).collect();
        let mean = coins.iter().map(|coin| coin.auc).sum::<f64>() / 40.0;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
        // 95 % intervals: 38 of 40 are expected to cover, 33 or fewer would happen once in a
        // thousand times.
        let covered = coins
            .iter()
            .filter(|coin| coin.auc_interval.low < 0.5 && coin.auc_interval.high > 0.5);
        assert!(covered.count() > 33);
        // Members one standard deviation higher: the best attacker has Φ(1/√2) = 0.760.
        let leak = world(1.0, 7).unwrap();
        assert!(leak.auc > 0.70 && leak.auc < 0.78, "{leak:?}");
    }

    #[test]
    fn shapes_and_numbers_are_checked() {
        let line = vec![0.5; 3];
        let margins: Vec<&[f64]> = vec![&line; 8];
        let fault = |inside: &[Vec<bool>]| {
            likelihood_ratio(&margins, inside, &Bootstrap::default())
                .unwrap_err()
                .to_string()
        };
        assert!(fault(&vec![vec![true; 3]; 7]).contains("lists of members"));
        assert!(fault(&vec![vec![true; 2]; 8]).contains("rows of a model"));
        assert!(fault(&vec![vec![true; 3]; 8]).contains("margins of a row: 0"));
        let nan = vec![f64::NAN; 3];
        let margins: Vec<&[f64]> = vec![&nan; 8];
        let inside: Vec<Vec<bool>> = (0..8).map(|model| vec![model % 2 == 0; 3]).collect();
        assert!(likelihood_ratio(&margins, &inside, &Bootstrap::default()).is_err());
    }
}
