//! Guesses of an attacker, in order: from scored games to a ROC curve. A game is one question, "was
//! this row a member?", with a score that is higher the surer the attacker is of yes.

use crate::error::{Error, Result};

/// One guess of an attacker: its score for a row, and whether the row was a member.
#[derive(Debug, Clone, Copy)]
pub(super) struct MembershipGame {
    pub(super) score: f64,
    pub(super) member: bool,
    /// The number of the model, or of the pair of models, that the guess was made on. Guesses on
    /// one model depend on each other.
    pub(super) cluster: usize,
}

/// Guesses in falling order of their scores.
#[derive(Debug, Clone)]
pub(super) struct SortedGames {
    sorted: Vec<MembershipGame>,
    pub(super) members: usize,
    pub(super) others: usize,
    pub(super) clusters: usize,
}

/// The ROC curve of the guesses, in short.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AttackCurve {
    pub(super) auc: f64,
    /// The largest true positive rate among thresholds whose false positive rate does not pass the
    /// limit.
    pub(super) tpr: Vec<f64>,
}

impl SortedGames {
    pub(super) fn new(mut games: Vec<MembershipGame>) -> Result<Self> {
        if let Some(bad) = games.iter().find(|game| game.score.is_nan()) {
            let value = bad.score.to_string();
            return Err(Error::Parameter {
                name: "score",
                value,
                range: "a number, for every row",
            });
        }
        games.sort_unstable_by(|a, b| b.score.total_cmp(&a.score));
        let members = games.iter().filter(|game| game.member).count();
        let others = games.len() - members;
        let too_few = |what, advice| {
            Err(Error::TooFew {
                what,
                found: 0,
                needed: 1,
                advice,
            })
        };
        if members == 0 {
            return too_few(
                "members",
                "an attack compares members with rows that were never seen",
            );
        }
        if others == 0 {
            return too_few(
                "rows that were never seen",
                "an attack compares members with such rows",
            );
        }
        let clusters = games.iter().map(|game| game.cluster + 1).max().unwrap_or(0);
        Ok(Self {
            sorted: games,
            members,
            others,
            clusters,
        })
    }

    /// The curve with every game counted as often as its cluster. Equal scores are one threshold,
    /// so that they count half in the area. None when no member or no other is counted.
    pub(super) fn curve(&self, counts: Option<&[u32]>, limits: &[f64]) -> Option<AttackCurve> {
        let weight =
            |game: &MembershipGame| counts.map_or(1.0, |counts| f64::from(counts[game.cluster]));
        let mut members = 0.0;
        let mut others = 0.0;
        for game in &self.sorted {
            *if game.member {
                &mut members
            } else {
                &mut others
            } += weight(game);
        }
        if members == 0.0 || others == 0.0 {
            return None;
        }
        let mut caught = 0.0;
        let mut wrong = 0.0;
        let mut area = 0.0;
        let mut tpr = vec![0.0f64; limits.len()];
        // Equal as numbers: 0 and −0 are one threshold.
        for equals in self.sorted.chunk_by(|a, b| a.score == b.score) {
            let mut yes = 0.0;
            let mut no = 0.0;
            for game in equals {
                *if game.member { &mut yes } else { &mut no } += weight(game);
            }
            area += no * (caught + yes / 2.0);
            (caught, wrong) = (caught + yes, wrong + no);
            for (best, limit) in tpr.iter_mut().zip(limits) {
                if wrong / others <= *limit {
                    *best = best.max(caught / members);
                }
            }
        }
        Some(AttackCurve {
            auc: area / (members * others),
            tpr,
        })
    }

    /// The area without the clusters of one block, where cluster c is in block c modulo `blocks`;
    /// `block` = `blocks` leaves nothing out. Where no member or no other would be left, nothing is
    /// left out either.
    pub(super) fn area_without(&self, block: usize, blocks: usize) -> f64 {
        let counts: Vec<u32> = (0..self.clusters)
            .map(|cluster| u32::from(cluster % blocks.max(1) != block))
            .collect();
        let curve = self
            .curve(Some(&counts), &[])
            .or_else(|| self.curve(None, &[]));
        curve.map_or(0.5, |curve| curve.auc)
    }
}
