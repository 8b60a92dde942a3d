//! How well an attacker does: area under the ROC curve, and the true positive rate at low false
//! positive rates, which is what counts for the few people who can be told for sure (Carlini et al.
//! 2022). AUC 0.5 is a coin.

use serde::Serialize;

use super::bootstrap::{Bootstrap, Interval, bootstrap};
use super::games::{AttackCurve, MembershipGame, SortedGames};
use super::jackknife::{MOST_BLOCKS, jackknife_interval};
use crate::error::Result;

/// The false positive rates at which an attack is judged.
pub(super) const LIMITS: [f64; 2] = [0.01, 0.001];

/// The result of an attack.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Attack {
    /// Area under the ROC curve: the chance that a member scores higher than a row that was never
    /// seen; 0.5 is no leak.
    pub auc: f64,
    /// Its interval.
    pub auc_interval: Interval,
    /// At 1 % and 0.1 % false positives.
    pub rates: Vec<AttackRate>,
    /// Games with a member.
    pub members: usize,
    /// Games with a row that was never seen.
    pub others: usize,
}

/// The true positive rate at a false positive rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AttackRate {
    /// The false positive rate.
    pub fpr: f64,
    /// The largest true positive rate that does not pass it.
    pub tpr: f64,
    /// Its interval.
    pub interval: Interval,
    /// Whether there were games enough to see such a false positive rate at all: 1/fpr that were
    /// never seen.
    pub resolved: bool,
}

/// Judges scores: higher for rows that the attacker takes for members. Rows are taken as
/// independent; intervals resample them.
pub fn attack(members: &[f64], others: &[f64], settings: &Bootstrap) -> Result<Attack> {
    let game = |(cluster, (score, member)): (usize, (&f64, bool))| MembershipGame {
        score: *score,
        member,
        cluster,
    };
    let all = members
        .iter()
        .map(|score| (score, true))
        .chain(others.iter().map(|score| (score, false)));
    resampled(
        &[SortedGames::new(all.enumerate().map(game).collect())?],
        settings,
    )
}

/// Judges games whose clusters are pairs of models, few and not alike: the interval of the area
/// leaves blocks of pairs out and is Student's, those of the rates resample pairs.
pub(super) fn judged_by_pairs(games: &SortedGames, settings: &Bootstrap) -> Result<Attack> {
    let blocks = games.clusters.min(2 * MOST_BLOCKS);
    let without: Vec<f64> = (0..blocks)
        .map(|block| games.area_without(block, blocks))
        .collect();
    let found = resampled(std::slice::from_ref(games), settings)?;
    Ok(Attack {
        auc_interval: jackknife_interval(found.auc, &without, settings.confidence),
        ..found
    })
}

/// Judges several sets of games and takes the mean: the two halves of a cross-fit are scored by
/// different attackers, whose scores must not be compared with each other. Intervals resample
/// clusters.
///
/// The ends of the intervals are averaged too, as if the halves always erred together. This is for
/// the rates; the area under a cross-fitted curve has an interval of its own (`jackknife.rs`).
pub(super) fn resampled(folds: &[SortedGames], settings: &Bootstrap) -> Result<Attack> {
    let numbers = |curve: &AttackCurve| {
        std::iter::once(curve.auc)
            .chain(curve.tpr.iter().copied())
            .collect::<Vec<f64>>()
    };
    let nothing = Interval {
        low: 0.0,
        high: 1.0,
    };
    let mut found = vec![
        (
            0.0,
            Interval {
                low: 0.0,
                high: 0.0
            }
        );
        1 + LIMITS.len()
    ];
    let share = 1.0 / folds.len().max(1) as f64;
    for games in folds {
        let whole = games
            .curve(None, &LIMITS)
            .map(|curve| numbers(&curve))
            .unwrap_or_default();
        let intervals = bootstrap(games.clusters, settings, |counts| {
            games
                .curve(Some(counts), &LIMITS)
                .map(|curve| numbers(&curve))
        })?;
        for (at, (value, interval)) in found.iter_mut().enumerate() {
            let own = intervals.get(at).copied().unwrap_or(nothing);
            *value += share * whole.get(at).copied().unwrap_or(0.0);
            interval.low += share * own.low;
            interval.high += share * own.high;
        }
    }
    let others = folds.iter().map(|games| games.others).min().unwrap_or(0);
    Ok(Attack {
        auc: found[0].0,
        auc_interval: found[0].1,
        rates: (LIMITS.iter().zip(&found[1..]))
            .map(|(&fpr, &(tpr, interval))| AttackRate {
                fpr,
                tpr,
                interval,
                resolved: others as f64 * fpr >= 1.0,
            })
            .collect(),
        members: folds.iter().map(|games| games.members).sum(),
        others: folds.iter().map(|games| games.others).sum(),
    })
}
