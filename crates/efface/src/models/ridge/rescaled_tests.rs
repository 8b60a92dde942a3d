//! Scales that change for all rows, beside fits to the rows in their new features.

use super::*;
use crate::features::FeatureRescale;
use crate::rows::Dense;
use crate::synthetic::LinearProblem;
use crate::{Fit, Ridge};

const WIDTH: usize = 5;

/// Rows of which every feature is (x − shift)/scale.
fn rows(x: &[f64], y: &[f64], scales: &[(f64, f64)]) -> Rows {
    let scaled = x
        .iter()
        .enumerate()
        .map(|(at, x)| (x - scales[at % WIDTH].0) / scales[at % WIDTH].1);
    Rows::new(Dense::new(scaled.collect(), WIDTH).unwrap(), y.to_vec(), 1).unwrap()
}

fn rescale(old: &[(f64, f64)], new: &[(f64, f64)]) -> Vec<FeatureRescale> {
    let one = |(old, new): (&(f64, f64), &(f64, f64))| FeatureRescale {
        factor: old.1 / new.1,
        offset: (old.0 - new.0) / new.1,
    };
    old.iter().zip(new).map(one).collect()
}

fn distance(found: &RidgeModel, truth: &RidgeModel) -> f64 {
    let (a, p) = found.parameters();
    let (b, q) = truth.parameters();
    let size = (b.norm_l2().powi(2) + q[0] * q[0]).sqrt();
    ((a - b).norm_l2().powi(2) + (p[0] - q[0]).powi(2)).sqrt() / size
}

/// A column whose mean is 10⁸ times its spread among others; old and new scales are those of two
/// sets of rows.
#[test]
fn other_scales_are_a_congruence_of_the_sums() {
    let problem = LinearProblem {
        rows: 300,
        width: WIDTH,
        seed: 11,
    }
    .generate();
    let far: Vec<f64> = problem
        .x
        .iter()
        .enumerate()
        .map(|(at, x)| if at % WIDTH == 2 { 1e8 + x.round() } else { *x })
        .collect();
    let old = [(0.3, 1.0), (-0.2, 1.7), (1e8, 0.9), (0.0, 1.1), (0.01, 3.0)];
    let new = [
        (0.25, 1.02),
        (-0.21, 1.68),
        (1e8 + 0.5, 0.95),
        (0.0, 1.1),
        (-2.0, 0.4),
    ];
    let before = rows(&far, &problem.y, &old);
    let after = rows(&far, &problem.y, &new);
    let gone: Vec<RowId> = [7, 9, 200].map(RowId).to_vec();
    for settings in [Ridge::new(0.5), Ridge::new(2.0).form(Form::Inverse)] {
        let model = settings.fit(&before).unwrap();
        let outcome = model
            .rescaled(&rescale(&old, &new), &after, &gone, None)
            .unwrap()
            .unwrap();
        let truth = settings
            .fit(&after.filter(|id| !gone.contains(&id)))
            .unwrap();
        let found = distance(&outcome.model, &truth);
        assert!(
            found <= outcome.evidence.relative_bound.min(1e-10),
            "{found} {:?}",
            outcome.evidence
        );
        assert!(outcome.evidence.relative_bound < 1e-9 && outcome.evidence.rows_read == 3);
        assert_eq!(outcome.model.rows(), 297);
        // And back again, with the rows.
        let joined = before.filter(|id| gone.contains(&id));
        let left = before.filter(|id| !gone.contains(&id));
        let back = outcome
            .model
            .rescaled(&rescale(&new, &old), &left, &[], Some(&joined))
            .unwrap()
            .unwrap();
        let found = distance(&back.model, &model);
        assert!(found <= back.evidence.relative_bound.min(1e-10), "{found}");
    }
}

/// What an outlier took of the digits of its column does not come back with the scale: only the
/// rows have it.
#[test]
fn sums_that_lost_their_digits_are_not_believed() {
    let problem = LinearProblem {
        rows: 200,
        width: WIDTH,
        seed: 12,
    }
    .generate();
    let mut x = problem.x;
    x[0] = 1e13;
    let old = [(0.0, 1e13), (0.0, 1.0), (0.0, 1.0), (0.0, 1.0), (0.0, 1.0)];
    let new = [(0.0, 1.0); WIDTH];
    let settings = Ridge::new(1e-3);
    let model = settings.fit(&rows(&x, &problem.y, &old)).unwrap();
    let found = model
        .rescaled(
            &rescale(&old, &new),
            &rows(&x, &problem.y, &new),
            &[RowId(0)],
            None,
        )
        .unwrap();
    assert!(found.is_none());
}

#[test]
fn without_a_constant_nothing_is_shifted() {
    let problem = LinearProblem {
        rows: 60,
        width: WIDTH,
        seed: 13,
    }
    .generate();
    let plain = [(0.0, 1.0); WIDTH];
    let wider = [(0.0, 3.0); WIDTH];
    let shifted = [(1.0, 3.0); WIDTH];
    let settings = Ridge::new(0.5).intercept(false);
    let model = settings.fit(&rows(&problem.x, &problem.y, &plain)).unwrap();
    let to = |scales: &[(f64, f64)]| {
        model
            .rescaled(
                &rescale(&plain, scales),
                &rows(&problem.x, &problem.y, scales),
                &[],
                None,
            )
            .unwrap()
    };
    let truth = settings.fit(&rows(&problem.x, &problem.y, &wider)).unwrap();
    assert!(distance(&to(&wider).unwrap().model, &truth) < 1e-13);
    assert!(to(&shifted).is_none());
}
