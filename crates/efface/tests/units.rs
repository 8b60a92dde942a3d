//! Models that compute in the units of their features as they are: the same model, with nothing
//! read off the rows.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop and say where"
)]

use efface::methods::{Auto, Exact};
use efface::{Dense, Fit, Forget, Logistic, Ridge, RowId, Rows, Softmax, StateArray};
use faer::Mat;

/// Features like those of an encoder, of norm 1, with a share that all rows have in common.
fn rows(classes: usize) -> Rows {
    let n = 150;
    let d = 24;
    let mut state = 5u64;
    let mut next = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 40) as f64 / (1u64 << 23) as f64 - 1.0
    };
    let mut x = Vec::new();
    let mut y = Vec::new();
    for i in 0..n {
        let row: Vec<f64> = (0..d)
            .map(|j| {
                next()
                    + if j % classes == i % classes { 0.8 } else { 0.0 }
                    + if j == 3 { 6.0 } else { 0.0 }
            })
            .collect();
        let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
        x.extend(row.iter().map(|x| x / norm));
        match classes {
            2 => y.push(if i % 2 == 0 { 1.0 } else { -1.0 }),
            _ => y.extend((0..classes).map(|c| f64::from(u8::from(c == i % classes)))),
        }
    }
    Rows::new(
        Dense::new(x, d).unwrap(),
        y,
        if classes == 2 { 1 } else { classes },
    )
    .unwrap()
}

fn apart(a: (Mat<f64>, Vec<f64>), b: (Mat<f64>, Vec<f64>)) -> f64 {
    let constants: f64 = a.1.iter().zip(&b.1).map(|(a, b)| (a - b).powi(2)).sum();
    ((&a.0 - &b.0).squared_norm_l2() + constants).sqrt()
}

const GONE: [RowId; 3] = [RowId(3), RowId(50), RowId(149)];

#[test]
fn a_ridge_in_the_units_as_given_is_the_same_ridge() {
    let rows = rows(3);
    let left = rows.filter(|id| !GONE.contains(&id));
    for lambda in [1.0, 1e-4] {
        let chosen = Ridge::new(lambda);
        let given = Ridge::new(lambda).as_given(true);
        let a = chosen.fit(&rows).unwrap();
        let b = given.fit(&rows).unwrap();
        assert!(apart(a.parameters(), b.parameters()) < 1e-9);
        let a = a.to_state().unwrap();
        let b = (b.to_state().unwrap(), b);
        assert!(!a.inverse_scale.is_empty() && !a.origin.is_empty());
        assert!(b.0.inverse_scale.is_empty() && b.0.origin.is_empty());
        let outcome = Exact.forget(&b.1, &rows, &GONE).unwrap();
        let off = apart(
            outcome.model.parameters(),
            chosen.fit(&left).unwrap().parameters(),
        );
        assert!(off <= outcome.evidence.bound + 1e-9 && outcome.evidence.relative_bound < 1e-9);
    }
}

#[test]
fn a_classifier_in_the_units_as_given_is_the_same_classifier() {
    let two = rows(2);
    let a = Logistic::new(0.1).fit(&two).unwrap();
    let b = Logistic::new(0.1).as_given(true).fit(&two).unwrap();
    assert!(apart(a.parameters(), b.parameters()) < 1e-7);
    let rows = rows(3);
    let left = rows.filter(|id| !GONE.contains(&id));
    let given = Softmax::new(0.1).as_given(true);
    let model = given.fit(&rows).unwrap();
    assert!(
        apart(
            Softmax::new(0.1).fit(&rows).unwrap().parameters(),
            model.parameters()
        ) < 1e-7
    );
    let state = model.to_state().unwrap();
    let units = state
        .arrays
        .iter()
        .filter(|(name, _)| name == "origin" || name == "inverse_scale");
    assert!(
        units
            .into_iter()
            .all(|(_, array)| *array == StateArray::Numbers(Vec::new()))
    );
    let outcome = Auto {
        tolerance: Some(1e-6),
    }
    .forget(&model, &rows, &GONE)
    .unwrap();
    let off = apart(
        outcome.model.parameters(),
        Softmax::new(0.1).fit(&left).unwrap().parameters(),
    );
    assert!(
        off <= outcome.evidence.bound,
        "{off} and a bound of {}",
        outcome.evidence.bound
    );
    assert!(
        outcome.evidence.relative_bound < 1e-6,
        "{}",
        outcome.evidence.relative_bound
    );
}

#[test]
fn recipes_from_before_the_setting_are_read_and_written_as_they_were() {
    let plain = serde_json::to_value(Ridge::new(1.0)).unwrap();
    assert!(plain.get("as_given").is_none());
    assert_eq!(
        serde_json::from_value::<Ridge>(plain).unwrap(),
        Ridge::new(1.0)
    );
    let given = Logistic::new(1.0).as_given(true);
    let text = serde_json::to_string(&given).unwrap();
    assert_eq!(serde_json::from_str::<Logistic>(&text).unwrap(), given);
    assert!(given.softmax().as_given && given.softmax().settings().logistic.as_given);
}
