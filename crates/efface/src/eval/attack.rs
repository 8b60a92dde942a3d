//! How well an attacker does: area under the ROC curve, and the true positive rate at low false positive rates, which is what
//! counts for the few people who can be told for sure (Carlini et al. 2022). AUC 0.5 is a coin.

use serde::Serialize;

use super::bootstrap::{Bootstrap, Interval, bootstrap};
use super::games::{Curve, Game, Games};
use crate::error::Result;

/// The false positive rates at which an attack is judged.
pub(super) const LIMITS: [f64; 2] = [0.01, 0.001];

/// The result of an attack.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Attack {
    /// Area under the ROC curve: the chance that a member scores higher than a row that was never seen; 0.5 is no leak.
    pub auc: f64,
    /// Its interval.
    pub auc_interval: Interval,
    /// At 1 % and 0.1 % false positives.
    pub rates: Vec<Rate>,
    /// Games with a member.
    pub members: usize,
    /// Games with a row that was never seen.
    pub others: usize,
}

/// The true positive rate at a false positive rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rate {
    /// The false positive rate.
    pub fpr: f64,
    /// The largest true positive rate that does not pass it.
    pub tpr: f64,
    /// Its interval.
    pub interval: Interval,
    /// Whether there were games enough to see such a false positive rate at all: 1/fpr that were never seen.
    pub resolved: bool,
}

/// Judges scores: higher for rows that the attacker takes for members. Rows are taken as independent.
pub fn attack(members: &[f64], others: &[f64], settings: &Bootstrap) -> Result<Attack> {
    let game = |(cluster, (score, member)): (usize, (&f64, bool))| Game { score: *score, member, cluster };
    let all = members.iter().map(|score| (score, true)).chain(others.iter().map(|score| (score, false)));
    judged(&[Games::new(all.enumerate().map(game).collect())?], settings)
}

/// Judges several sets of games and takes the mean: the two halves of a cross-fit are scored by different attackers, whose
/// scores must not be compared with each other.
pub(super) fn judged(folds: &[Games], settings: &Bootstrap) -> Result<Attack> {
    let clusters: usize = folds.iter().map(|games| games.clusters).sum();
    let mean = |curves: Vec<Curve>| {
        let n = curves.len() as f64;
        let auc = curves.iter().map(|curve| curve.auc).sum::<f64>() / n;
        let rate = |at: usize| curves.iter().map(|curve| curve.tpr[at]).sum::<f64>() / n;
        std::iter::once(auc).chain((0..LIMITS.len()).map(rate)).collect::<Vec<f64>>()
    };
    let whole: Option<Vec<Curve>> = folds.iter().map(|games| games.curve(None, &LIMITS)).collect();
    let whole = mean(whole.unwrap_or_default());
    let intervals = bootstrap(clusters, settings, |counts| {
        let mut rest = counts;
        let mut curves = Vec::with_capacity(folds.len());
        for games in folds {
            let (own, others) = rest.split_at(games.clusters);
            rest = others;
            curves.push(games.curve(Some(own), &LIMITS)?);
        }
        Some(mean(curves))
    })?;
    let others = folds.iter().map(|games| games.others).min().unwrap_or(0);
    let nothing = Interval { low: 0.0, high: 1.0 };
    let interval = |at: usize| intervals.get(at).copied().unwrap_or(nothing);
    Ok(Attack {
        auc: whole[0],
        auc_interval: interval(0),
        rates: (LIMITS.iter().enumerate())
            .map(|(at, &fpr)| Rate {
                fpr,
                tpr: whole[at + 1],
                interval: interval(at + 1),
                resolved: others as f64 * fpr >= 1.0,
            })
            .collect(),
        members: folds.iter().map(|games| games.members).sum(),
        others: folds.iter().map(|games| games.others).sum(),
    })
}
