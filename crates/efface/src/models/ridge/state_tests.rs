//! A model that is stored with its factor: what is taken from the file, and what is not believed.

use faer::Mat;

use super::state::{RidgeState, lower_triangle};
use super::{DenseBody, Ridge, RidgeBody, RidgeModel};
use crate::error::Error;
use crate::methods::Exact;
use crate::rows::{Dense, RowId, Rows};
use crate::traits::{Amend, Fit, Forget};

const WIDTH: usize = 6;

/// Rows of numbers without a pattern; the last column is in row 3 alone.
fn rows() -> Rows {
    let value = |i: usize| {
        let own = i % WIDTH == WIDTH - 1 && i / WIDTH != 3;
        if own {
            0.0
        } else {
            ((i * 7919 + 13) % 101) as f64 / 50.0 - 1.0
        }
    };
    let x: Vec<f64> = (0..40 * WIDTH).map(value).collect();
    let y: Vec<f64> = (0..40).map(|i| ((i * 31) % 17) as f64).collect();
    Rows::new(Dense::new(x, WIDTH).unwrap(), y, 1).unwrap()
}

fn body(model: &RidgeModel) -> &DenseBody {
    match &model.body {
        RidgeBody::Dense(body) => body,
        RidgeBody::Wide(_) => panic!("a factor was asked for"),
    }
}

fn factor(model: &RidgeModel) -> &Mat<f64> {
    body(model).solver.factor().unwrap().lower()
}

/// A state with the factor in it, as wide models have it.
fn stored(model: &RidgeModel) -> RidgeState {
    let mut state = model.to_state().unwrap();
    assert!(state.factor.is_empty(), "narrow models are factored anew");
    state.factor = lower_triangle(factor(model));
    state
}

#[test]
fn a_stored_factor_and_its_norms_come_back_as_they_were() {
    let rows = rows();
    let model = Ridge::new(1.0).fit(&rows).unwrap();
    let mut model = Exact
        .forget(&model, &rows, &[5, 9, 14].map(RowId))
        .unwrap()
        .model;
    model.settle().unwrap();
    let state = stored(&model);
    let again = RidgeModel::from_state(&state).unwrap();
    assert_eq!(lower_triangle(factor(&again)), state.factor);
    assert_eq!(again.to_state().unwrap().accuracy, state.accuracy);
    let norms = state.accuracy.norms.unwrap();
    assert_eq!(body(&again).ledger.quality.caller_norm, norms.caller);
    // The state goes through the form in which files have it.
    let read = RidgeState::from_model_state(state.clone().into_model_state().unwrap()).unwrap();
    assert_eq!(read, state);
}

#[test]
fn a_factor_of_other_sums_is_not_believed() {
    let rows = rows();
    let model = Ridge::new(1.0).fit(&rows).unwrap();
    let right = stored(&model);
    let fresh = factor(&model).clone();
    let at = WIDTH / 2;
    for wrong in [1.001 * right.factor[at], -right.factor[0], f64::NAN] {
        let mut state = right.clone();
        state.factor[if wrong < 0.0 { 0 } else { at }] = wrong;
        let again = RidgeModel::from_state(&state).unwrap();
        assert_eq!(lower_triangle(factor(&again)), lower_triangle(&fresh));
        assert_eq!(
            again.evidence_at_optimum().bound,
            model.evidence_at_optimum().bound
        );
    }
    let mut short = right.clone();
    short.factor.pop();
    assert!(matches!(
        RidgeModel::from_state(&short),
        Err(Error::Damaged(_))
    ));
    let mut senseless = right;
    senseless.accuracy.norms = senseless.accuracy.norms.map(|norms| super::CurvatureNorms {
        caller: -1.0,
        ..norms
    });
    assert!(matches!(
        RidgeModel::from_state(&senseless),
        Err(Error::Damaged(_))
    ));
}

#[test]
fn a_factor_tells_nothing_of_a_column_that_left() {
    let rows = rows();
    let model = Ridge::new(1.0).fit(&rows).unwrap();
    let mut model = Exact.forget(&model, &rows, &[RowId(3)]).unwrap().model;
    model.settle().unwrap();
    let lower = factor(&model);
    let last = lower.ncols() - 1;
    assert!((0..last).all(|j| lower[(last, j)] == 0.0));
    assert_eq!(
        lower[(last, last)],
        body(&model).sums.a[(last, last)].sqrt()
    );
}

/// The bounds rest on what the largest sums ever were. With more digits than these, whoever has the
/// rows that are left could subtract, and would know the squares of a row that went.
#[test]
fn what_bounds_remember_does_not_tell_the_row_that_left() {
    let rows = rows();
    let gone = [RowId(5)];
    let model = Ridge::new(1.0).as_given(true).fit(&rows).unwrap();
    let mut left = rows.clone();
    left.remove(&gone).unwrap();
    let mut after = Exact.forget(&model, &rows, &gone).unwrap().model;
    after.settle().unwrap();
    let never = Ridge::new(1.0).as_given(true).fit(&left).unwrap();
    let [kept, fresh] = [&after, &never].map(|model| model.to_state().unwrap());
    let targets = [kept.accuracy.target_spread, fresh.accuracy.target_spread];
    let pairs = kept
        .spread
        .iter()
        .copied()
        .zip(fresh.spread.iter().copied());
    for (kept, fresh) in pairs.chain([targets.into()]) {
        // The same step of a coarse scale, or the next.
        let steps = 16.0 * (kept / fresh).log2();
        assert!(
            steps.abs() < 1e-9 || (steps - 1.0).abs() < 1e-9,
            "{kept} {fresh}"
        );
    }
}
