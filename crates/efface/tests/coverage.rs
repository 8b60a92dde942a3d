//! Intervals of the attack's AUC cover what they should: the short form of `benches/coverage`.

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "../benches/coverage/world.rs"]
mod world;

use efface::eval::Attack;
use world::MarginWorld;

const AUDITS: u64 = 250;

fn covered(found: &[Attack], truth: f64) -> f64 {
    let count = found
        .iter()
        .filter(|attack| attack.auc_interval.covers(truth))
        .count();
    count as f64 / found.len() as f64
}

/// Over 250 audits the share of intervals of 95 % that cover has a standard error of 1.4 %; three
/// of them are allowed either way.
#[test]
fn a_coin_is_covered_as_often_as_the_intervals_say() {
    for rows in [5, 20] {
        let world = MarginWorld::new(32, rows, 0.0);
        let found: Vec<Attack> = (0..AUDITS).map(|seed| world.audit(seed).unwrap()).collect();
        let share = covered(&found, 0.5);
        assert!((0.91..=0.99).contains(&share), "{rows} rows: {share}");
    }
}

/// The truth is the mean over other audits: that of attackers fitted on as many models.
#[test]
fn a_leak_is_covered_too() {
    let world = MarginWorld::new(32, 20, 0.8);
    let audits = |from: u64| -> Vec<Attack> {
        (from..from + AUDITS)
            .map(|seed| world.audit(seed).unwrap())
            .collect()
    };
    let truth = audits(AUDITS).iter().map(|attack| attack.auc).sum::<f64>() / AUDITS as f64;
    assert!(truth > 0.6, "{truth}");
    let share = covered(&audits(0), truth);
    assert!((0.91..=0.99).contains(&share), "{share}");
}
