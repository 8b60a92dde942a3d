//! Ridge against scikit-learn, at the edges of what can be forgotten, and over long random lives.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should stop and say where"
)]

use efface::methods::{self, Exact, Summation};
use efface::models::ridge::leave_out_predictions;
use efface::synthetic::{FeatureInjection, LinearProblem};
use efface::{
    Amend, Csr, Dense, Error, Family, Features, Fit, Fitted, Forget, Form, Method, Predict, Ridge,
    RidgeModel, RowId, RowStore, Rows,
};
use proptest::prelude::*;

const DENSE_FORMS: [Form; 3] = [Form::Factor, Form::Inverse, Form::Rows];

fn oracle_rows(weighted: bool) -> Rows {
    let n = 12;
    let d = 3;
    let x: Vec<f64> = (0..n * d)
        .map(|at| {
            let i = at / d;
            let j = at % d;
            ((i * 7 + j * 5) % 11) as f64 / 3.0 + if j == 0 { 100.0 } else { 0.0 }
        })
        .collect();
    let y: Vec<f64> = (0..n * 2)
        .map(|at| ((at / 2 * 3 + at % 2 * 2) % 7) as f64 - 2.0)
        .collect();
    let rows = Rows::new(Dense::new(x, d).unwrap(), y, 2).unwrap();
    if weighted {
        return rows
            .weighted((0..n).map(|i| 1.0 + (i % 3) as f64 * 0.5).collect())
            .unwrap();
    }
    rows
}

fn assert_parameters(model: &RidgeModel, coefficients: [[f64; 3]; 2], intercept: [f64; 2]) {
    let (found, constant) = model.parameters();
    for (output, wanted) in coefficients.iter().enumerate() {
        for (j, wanted) in wanted.iter().enumerate() {
            let off = (found[(j, output)] - wanted).abs();
            assert!(
                off < 1e-11,
                "coefficient {j} of output {output}: {} and not {wanted}",
                found[(j, output)]
            );
        }
        assert!((constant[output] - intercept[output]).abs() < 1e-9);
    }
}

/// Oracle: scikit-learn 1.9.1 (numpy 2.4.6), Ridge(alpha=0.7, solver="cholesky") on the same rows.
#[test]
fn equals_scikit_learn() {
    for form in DENSE_FORMS {
        let recipe = Ridge::new(0.7).form(form);
        assert_parameters(
            &recipe.fit(&oracle_rows(false)).unwrap(),
            [
                [
                    0.02678680874277036,
                    -1.021655556909183,
                    -0.33257846817073333,
                ],
                [0.7144239735124772, 0.1916712501775115, -0.36367185722802947],
            ],
            [0.6669763303006385, -71.4467007633037],
        );
        let mut fitted = Fitted::new(&recipe, oracle_rows(true)).unwrap();
        assert_parameters(
            fitted.model(),
            [
                [
                    -0.17470796986074605,
                    -0.9144151073425666,
                    -0.10023008151871812,
                ],
                [0.6763518768672128, 0.04633069584946928, -0.5724032679576913],
            ],
            [20.65751626805588, -67.05826171678923],
        );
        fitted
            .forget(&Exact, &[RowId(2), RowId(5), RowId(9)])
            .unwrap();
        assert_parameters(
            fitted.model(),
            [
                [
                    -0.41002005974455336,
                    -1.1428685421151004,
                    -0.05156833383495178,
                ],
                [0.793577587053956, 0.1549504049519444, -0.7666014295318635],
            ],
            [44.38920409305428, -78.294720495972],
        );
    }
}

/// Oracle: scikit-learn 1.9.1, Ridge(alpha=0, fit_intercept=False, solver="svd").
#[test]
fn equals_scikit_learn_without_a_penalty() {
    let recipe = Ridge::new(0.0).intercept(false);
    let mut fitted = Fitted::new(&recipe, oracle_rows(false)).unwrap();
    fitted
        .forget(&Exact, &[RowId(2), RowId(5), RowId(9)])
        .unwrap();
    assert_parameters(
        fitted.model(),
        [
            [
                0.029857094670812826,
                -1.1299487857338466,
                -0.2791322092224174,
            ],
            [
                0.02609252015876375,
                -0.17234439416093472,
                -0.6155706476620315,
            ],
        ],
        [0.0, 0.0],
    );
}

fn column(values: &[f64]) -> Features {
    Dense::new(values.to_vec(), 1).unwrap().into()
}

#[test]
fn leverage_one_without_a_penalty_is_an_error() {
    // Only row 0 has feature 0: without it, nothing determines the coefficient.
    let x = Dense::new(vec![1.0, 0.3, 0.0, 1.0, 0.0, 2.0, 0.0, -1.0], 2).unwrap();
    let rows = Rows::new(x, vec![1.0, 2.0, 3.0, 4.0], 1).unwrap();
    for form in DENSE_FORMS {
        let model = Ridge::new(0.0)
            .intercept(false)
            .form(form)
            .fit(&rows)
            .unwrap();
        for method in Method::all_for(Family::Ridge) {
            if method.name() == "retrain" {
                continue;
            }
            let error = method.forget(&model, &rows, &[RowId(0)]).unwrap_err();
            assert!(
                matches!(error, Error::LeverageOne { lambda: 0.0, .. }),
                "{}: {error}",
                method.name()
            );
        }
        let error = methods::Retrain
            .forget(&model, &rows, &[RowId(0)])
            .unwrap_err();
        assert!(matches!(error, Error::Singular { .. }), "{error}");
    }
}

#[test]
fn leverage_near_one_is_exact_to_the_last_digits() {
    let base = LinearProblem {
        rows: 600,
        width: 60,
        seed: 5,
    };
    for k in [1, 10, 30] {
        let data = FeatureInjection {
            base,
            removed: k,
            keep: 0.5,
        }
        .generate()
        .unwrap();
        let rows = Rows::new(Dense::new(data.x, 60).unwrap(), data.y, 1).unwrap();
        let gone: Vec<RowId> = (0..k as u64).map(RowId).collect();
        for form in DENSE_FORMS {
            let recipe = Ridge::new(1e-4).intercept(false).form(form);
            let truth = recipe
                .fit(&rows.filter(|id| id.0 >= k as u64))
                .unwrap()
                .parameters()
                .0;
            let mut fitted = Fitted::new(&recipe, rows.clone()).unwrap();
            assert!(fitted.model().parameters().0[(59, 0)].abs() > 0.1);
            let evidence = fitted.forget(&Exact, &gone).unwrap();
            let found = fitted.model().parameters().0;
            assert_eq!(
                found[(59, 0)],
                0.0,
                "no retained row has the injected feature"
            );
            let off = (&found - &truth).norm_l2() / truth.norm_l2();
            assert!(off < 1e-12, "{form:?} k {k}: {off:e} ({evidence:?})");
            assert!((&found - &truth).norm_l2() <= evidence.bound + 1e-13 * truth.norm_l2());
        }
    }
}

/// Too near leverage 1 for the closed form: the model factors its sums anew, by itself, and says
/// so.
#[test]
fn the_model_refactors_when_the_closed_form_cannot_do_it() {
    let mut x: Vec<f64> = (0..40).map(|i| ((i * 7) % 11) as f64 - 5.0).collect();
    // Feature 1 of row 0 is a million and nobody else's.
    x.iter_mut()
        .skip(1)
        .step_by(2)
        .for_each(|value| *value = 0.0);
    x[1] = 1e6;
    let rows = Rows::new(
        Dense::new(x, 2).unwrap(),
        (0..20).map(f64::from).collect(),
        1,
    )
    .unwrap();
    for form in DENSE_FORMS {
        let recipe = Ridge::new(1e-3).intercept(false).form(form);
        let mut fitted = Fitted::new(&recipe, rows.clone()).unwrap();
        let evidence = fitted.forget(&Exact, &[RowId(0)]).unwrap();
        assert!(
            evidence.refactored && fitted.model().refactorisations() == 1,
            "{evidence:?}"
        );
        let truth = recipe.fit(fitted.rows()).unwrap().parameters().0;
        assert!((fitted.model().parameters().0 - &truth).norm_l2() <= 1e-12 * truth.norm_l2());
        // And the next request is as right as ever.
        fitted.forget(&Exact, &[RowId(5)]).unwrap();
        let truth = recipe.fit(fitted.rows()).unwrap().parameters().0;
        assert!((fitted.model().parameters().0 - &truth).norm_l2() <= 1e-12 * truth.norm_l2());
    }
}

#[test]
fn duplicate_and_zero_rows_are_forgotten_like_any_other() {
    let x = Dense::new(
        vec![1.0, 2.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 3.0, -1.0, 2.0, 1.5],
        2,
    )
    .unwrap();
    let rows = Rows::new(x, vec![1.0, 1.0, 5.0, -5.0, 2.0, 0.0], 1).unwrap();
    for form in DENSE_FORMS {
        for lambda in [0.0, 1e-6, 1.0] {
            let recipe = Ridge::new(lambda).form(form);
            let model = recipe.fit(&rows).unwrap();
            for gone in [
                vec![RowId(0)],
                vec![RowId(0), RowId(1)],
                vec![RowId(2), RowId(3)],
                vec![RowId(3)],
            ] {
                let truth = recipe
                    .fit(&rows.filter(|id| !gone.contains(&id)))
                    .unwrap()
                    .parameters()
                    .0;
                let found = Exact
                    .forget(&model, &rows, &gone)
                    .unwrap()
                    .model
                    .parameters()
                    .0;
                let off = (found - &truth).norm_l2();
                assert!(
                    off < 1e-9 * (1.0 + truth.norm_l2()),
                    "{form:?} λ {lambda} {gone:?}: {off:e}"
                );
            }
        }
    }
}

#[test]
fn more_rows_than_features_may_go() {
    let data = LinearProblem {
        rows: 40,
        width: 5,
        seed: 1,
    }
    .generate();
    let rows = Rows::new(Dense::new(data.x, 5).unwrap(), data.y, 1).unwrap();
    let gone: Vec<RowId> = (0..30).map(RowId).collect();
    let recipe = Ridge::new(0.5);
    let model = recipe.fit(&rows).unwrap();
    let truth = recipe
        .fit(&rows.filter(|id| id.0 >= 30))
        .unwrap()
        .parameters()
        .0;
    for method in Method::all_for(Family::Ridge)
        .into_iter()
        .filter(|method| Forget::<RidgeModel>::claim(method) == efface::Claim::Exact)
    {
        let found = method
            .forget(&model, &rows, &gone)
            .unwrap()
            .model
            .parameters()
            .0;
        assert!((found - &truth).norm_l2() < 1e-11, "{}", method.name());
    }
    let auto = methods::Auto::default()
        .forget(&model, &rows, &gone)
        .unwrap();
    assert_eq!(auto.evidence.method, "summation");
    assert!(
        auto.evidence
            .reason
            .unwrap()
            .contains("30 rows are more than the 5 features")
    );
}

#[test]
fn bad_settings_and_rows_are_named() {
    let rows = Rows::new(column(&[1.0, 2.0]), vec![1.0, 2.0], 1).unwrap();
    for lambda in [-1.0, f64::NAN, f64::INFINITY] {
        let error = Ridge::new(lambda).fit(&rows).unwrap_err();
        assert!(error.to_string().contains("lambda"), "{error}");
    }
    assert!(Ridge::new(1.0).tolerance(0.0).fit(&rows).is_err());
    assert!(Ridge::new(0.0).form(Form::Iterative).fit(&rows).is_err());
    let none = Rows::new(column(&[]), vec![], 1).unwrap();
    assert_eq!(Ridge::new(1.0).fit(&none).unwrap_err(), Error::NoRows);
    // Two equal columns and no penalty: nothing says how to share the weight.
    let twins = Rows::new(
        Dense::new(vec![1.0, 1.0, 2.0, 2.0], 2).unwrap(),
        vec![1.0, 2.0],
        1,
    )
    .unwrap();
    assert!(matches!(
        Ridge::new(0.0).fit(&twins).unwrap_err(),
        Error::Singular { .. }
    ));
    let model = Ridge::new(1.0).fit(&rows).unwrap();
    let wide = Features::from(Dense::new(vec![1.0, 2.0], 2).unwrap());
    assert!(matches!(
        model.predict(&wide).unwrap_err(),
        Error::Shape {
            found: 2,
            expected: 1,
            ..
        }
    ));
}

#[test]
fn values_too_large_to_square_are_refused_and_change_nothing() {
    let huge = Rows::new(column(&[1e300, -1e300, 1e299]), vec![1e300, 2.0, 3.0], 1).unwrap();
    for form in [Form::Factor, Form::Inverse, Form::Rows, Form::Iterative] {
        let fitted = Ridge::new(1.0).form(form).fit(&huge);
        assert!(
            matches!(fitted, Err(Error::Overflow | Error::NotConverged { .. })),
            "{form:?}: {fitted:?}"
        );
        let rows = Rows::new(column(&[1.0, 2.0, 3.0]), vec![1.0, 2.0, 3.0], 1).unwrap();
        let mut fitted = Fitted::new(&Ridge::new(1.0).form(form), rows).unwrap();
        let before = fitted.model().parameters();
        let new = Rows::with_ids(vec![RowId(7)], column(&[1e300]), vec![1e300], 1).unwrap();
        let error = fitted.learn(&new).unwrap_err();
        assert!(
            matches!(error, Error::Overflow | Error::NotConverged { .. }),
            "{form:?}: {error}"
        );
        assert_eq!(
            (fitted.model().parameters(), fitted.rows().len()),
            (before, 3)
        );
    }
}

#[test]
fn rows_without_weight_are_not_enough() {
    let rows = Rows::new(column(&[1.0, 2.0, 3.0]), vec![1.0, 2.0, 3.0], 1).unwrap();
    let rows = rows.weighted(vec![1.0, 0.0, 0.0]).unwrap();
    for form in DENSE_FORMS {
        let recipe = Ridge::new(1.0).form(form);
        let model = recipe.fit(&rows).unwrap();
        for method in ["exact", "summation", "retrain"] {
            let error = method
                .parse::<Method>()
                .unwrap()
                .forget(&model, &rows, &[RowId(0)])
                .unwrap_err();
            assert_eq!(error, Error::NoWeight, "{method} {form:?}");
        }
        assert_eq!(
            recipe.fit(&rows.filter(|id| id != RowId(0))).unwrap_err(),
            Error::NoWeight
        );
    }
}

#[test]
fn a_model_without_any_column_is_refused() {
    let mut empty = Csr::<f32>::new(0);
    empty.push(&[]).unwrap();
    empty.push(&[]).unwrap();
    let rows = Rows::new(empty, vec![1.0, 3.0], 1).unwrap();
    assert!(Ridge::new(1.0).intercept(false).fit(&rows).is_err());
    // With an intercept it predicts the mean.
    let model = Ridge::new(1.0).fit(&rows).unwrap();
    assert!((model.parameters().1[0] - 2.0).abs() < 1e-15);
    let left = Exact.forget(&model, &rows, &[RowId(0)]).unwrap().model;
    assert!((left.parameters().1[0] - 3.0).abs() < 1e-14);
}

#[test]
fn learn_refuses_known_ids_and_amend_unknown_ones() {
    let rows = Rows::new(column(&[1.0, 2.0, 3.0]), vec![1.0, 2.0, 3.0], 1).unwrap();
    let mut fitted = Fitted::new(&Ridge::new(1.0), rows).unwrap();
    let again = Rows::with_ids(vec![RowId(1)], column(&[5.0]), vec![5.0], 1).unwrap();
    assert_eq!(
        fitted.learn(&again).unwrap_err(),
        Error::DuplicateRow(RowId(1))
    );
    let unknown = Rows::with_ids(vec![RowId(9)], column(&[5.0]), vec![5.0], 1).unwrap();
    assert_eq!(
        fitted.amend(&unknown).unwrap_err(),
        Error::UnknownRow(RowId(9))
    );
    assert_eq!(fitted.rows().len(), 3);
}

#[test]
fn a_damaged_state_is_refused() {
    let rows = Rows::new(column(&[1.0, 2.0, 3.0]), vec![1.0, 2.0, 3.0], 1).unwrap();
    let state = Ridge::new(1.0).fit(&rows).unwrap().to_state().unwrap();
    let mut short = state.clone();
    short.a.pop();
    let mut poisoned = state.clone();
    poisoned.theta[0] = f64::NAN;
    let mut other = state.clone();
    other.features = 7;
    for damaged in [short, poisoned, other] {
        assert!(matches!(
            RidgeModel::from_state(&damaged),
            Err(Error::Damaged(_))
        ));
    }
}

/// A million hashed features: no d×d matrix could be allocated, and none is.
#[test]
fn a_million_features() {
    let width = 1_000_000;
    let mut csr = Csr::<f32>::new(width);
    let mut state = 9u64;
    let mut next = |bound: u64| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) % bound
    };
    let mut targets = Vec::new();
    for _ in 0..300 {
        let mut columns: Vec<u32> = (0..20).map(|_| next(width as u64) as u32).collect();
        columns.sort_unstable();
        columns.dedup();
        targets.push(if columns[0].is_multiple_of(2) {
            1.0
        } else {
            -1.0
        });
        let entries: Vec<(u32, f64)> = columns.into_iter().map(|column| (column, 1.0)).collect();
        csr.push(&entries).unwrap();
    }
    let rows = Rows::new(csr, targets, 1).unwrap();
    let recipe = Ridge::new(0.5);
    let model = recipe.fit(&rows).unwrap();
    assert_eq!(model.form(), Form::Iterative);
    let gone = [RowId(3), RowId(77), RowId(200)];
    let truth = recipe
        .fit(&rows.filter(|id| !gone.contains(&id)))
        .unwrap()
        .parameters()
        .0;
    let exact = Exact.forget(&model, &rows, &gone).unwrap();
    let off = (&exact.model.parameters().0 - &truth).norm_l2();
    // The retrained model has a distance of its own from the minimum.
    assert!(off < 1e-10 * truth.norm_l2(), "{off:e}");
    assert!(exact.evidence.iterations > 0);
    let projected = methods::ProjectionResidual::default()
        .forget(&model, &rows, &gone)
        .unwrap();
    let off = (&projected.model.parameters().0 - &truth).norm_l2();
    assert!(
        off <= projected.evidence.bound,
        "{off:e} {:e}",
        projected.evidence.bound
    );
    assert!(projected.evidence.largest_leverage.unwrap() > 0.5);
    // Forgetting in the span of rows that share no word with others is nearly the whole way.
    assert!(off < 0.2 * (&model.parameters().0 - &truth).norm_l2());
}

#[test]
fn leave_out_predictions_are_those_of_the_retrained_model() {
    let data = LinearProblem {
        rows: 200,
        width: 12,
        seed: 4,
    }
    .generate();
    let rows = Rows::new(Dense::new(data.x, 12).unwrap(), data.y, 1).unwrap();
    let gone: Vec<RowId> = (10..25).map(RowId).collect();
    for form in DENSE_FORMS {
        let recipe = Ridge::new(0.1).form(form);
        let model = recipe.fit(&rows).unwrap();
        let found = leave_out_predictions(&model, &rows, &gone).unwrap();
        let truth = recipe.fit(&rows.filter(|id| !gone.contains(&id))).unwrap();
        rows.visit(&gone, &mut |k, row| {
            assert!((truth.score(row.features)[0] - found[(k, 0)]).abs() < 1e-10)
        })
        .unwrap();
    }
}

/// An approximate forget does not spoil the exact one after it.
#[test]
fn exact_after_approximate_is_exact() {
    let data = LinearProblem {
        rows: 150,
        width: 10,
        seed: 8,
    }
    .generate();
    let rows = Rows::new(Dense::new(data.x, 10).unwrap(), data.y, 1).unwrap();
    for form in DENSE_FORMS {
        for settle in [1, 100] {
            let recipe = Ridge::new(0.3).form(form);
            let mut fitted = Fitted::new(&recipe, rows.clone())
                .unwrap()
                .settle_after(settle);
            fitted
                .forget(&methods::Influence, &[RowId(1), RowId(2)])
                .unwrap();
            fitted
                .forget(&methods::ProjectionResidual::default(), &[RowId(3)])
                .unwrap();
            fitted.forget(&Exact, &[RowId(4)]).unwrap();
            let truth = recipe.fit(fitted.rows()).unwrap().parameters().0;
            let off = (fitted.model().parameters().0 - &truth).norm_l2() / truth.norm_l2();
            assert!(off < 1e-11, "{form:?} settle {settle}: {off:e}");
        }
    }
}

#[derive(Debug, Clone)]
enum Act {
    Forget(usize),
    Learn(f64),
    Amend(usize, f64),
    Settle,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        (0usize..1000).prop_map(Act::Forget),
        (-3.0f64..3.0).prop_map(Act::Learn),
        ((0usize..1000), -3.0f64..3.0).prop_map(|(at, value)| Act::Amend(at, value)),
        Just(Act::Settle),
    ];
    proptest::collection::vec(act, 1..25)
}

fn one_row(id: RowId, value: f64) -> Rows {
    let x = vec![value, value.sin(), (value * 2.0).cos(), 1.0 + value * value];
    Rows::with_ids(
        vec![id],
        Dense::new(x, 4).unwrap(),
        vec![value.exp().min(9.0)],
        1,
    )
    .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever is forgotten, learned, amended and settled, in whatever order, the model is that of
    /// the rows it holds.
    #[test]
    fn any_life_equals_a_refit(acts in acts(), which in 0usize..3, lambda in prop_oneof![Just(1e-3), Just(2.0)]) {
        let recipe = Ridge::new(lambda).form(DENSE_FORMS[which]);
        let mut start = one_row(RowId(0), -2.0);
        for i in 1..30u64 {
            start.append(&one_row(RowId(i), (i as f64 * 0.37).sin() * 2.5)).unwrap();
        }
        let mut fitted = Fitted::new(&recipe, start).unwrap().settle_after(7);
        let mut next = 100;
        for act in acts {
            let ids: Vec<RowId> = fitted.rows().ids().collect();
            match act {
                Act::Forget(at) if ids.len() > 8 => { fitted.forget(&Exact, &[ids[at % ids.len()]]).unwrap(); }
                Act::Forget(_) => (),
                Act::Learn(value) => {
                    fitted.learn(&one_row(RowId(next), value)).unwrap();
                    next += 1;
                }
                Act::Amend(at, value) => { fitted.amend(&one_row(ids[at % ids.len()], value)).unwrap(); }
                Act::Settle => {
                    let mut model = fitted.model().clone();
                    model.settle().unwrap();
                    prop_assert_eq!(model.waiting(), 0);
                }
            }
        }
        let truth = recipe.fit(fitted.rows()).unwrap().parameters().0;
        let off = (fitted.model().parameters().0 - &truth).norm_l2() / truth.norm_l2();
        prop_assert!(off < 1e-9, "{:e}", off);
        prop_assert_eq!(fitted.model().rows(), fitted.rows().len());
    }
}

/// Many rows of few words, some of which nobody else has: whichever way the products are made, it
/// is retraining.
#[test]
fn many_sparse_rows_are_forgotten_as_dense_ones_are() {
    let n = 300;
    let d = 120;
    let entries = |i: usize| {
        let mut columns = vec![
            i % 7,
            7 + i * 5 % 40,
            47 + i * 11 % 60,
            107 + usize::from(i < 3) * (1 + i % 3),
        ];
        columns.dedup();
        columns
            .into_iter()
            .enumerate()
            .map(move |(at, j)| (j as u32, 1.0 + ((i + at) % 3) as f64))
    };
    let mut csr = Csr::<f64>::new(d);
    let mut dense = vec![0.0; n * d];
    for i in 0..n {
        csr.push(&entries(i).collect::<Vec<_>>()).unwrap();
        entries(i).for_each(|(j, x)| dense[i * d + j as usize] = x);
    }
    let y: Vec<f64> = (0..n).map(|i| ((i * 13) % 7) as f64 - 3.0).collect();
    let weights: Vec<f64> = (0..n).map(|i| 0.5 * (i % 4) as f64).collect();
    let sparse = Rows::new(csr, y.clone(), 1)
        .unwrap()
        .weighted(weights.clone())
        .unwrap();
    let dense = Rows::new(Dense::new(dense, d).unwrap(), y, 1)
        .unwrap()
        .weighted(weights)
        .unwrap();
    let gone: Vec<RowId> = (0..60).map(|i| RowId(i * 2)).collect();
    for form in DENSE_FORMS {
        let recipe = Ridge::new(0.1).form(form);
        let outcome = Exact
            .forget(&recipe.fit(&sparse).unwrap(), &sparse, &gone)
            .unwrap();
        let retrained = recipe
            .fit(&dense.clone().filter(|id| !gone.contains(&id)))
            .unwrap();
        let found = outcome.model.parameters();
        let wanted = retrained.parameters();
        let off = (&found.0 - &wanted.0)
            .norm_max()
            .max((found.1[0] - wanted.1[0]).abs());
        assert!(off < 1e-10, "{form:?}: {off}");
        assert!(
            off <= outcome.evidence.bound + 1e-12,
            "{form:?}: {off} {}",
            outcome.evidence.bound
        );
        // Columns that only forgotten rows had are gone without a trace.
        assert_eq!(found.0[(108, 0)], 0.0);
        let influence = |rows: &Rows| {
            let model = recipe.fit(rows).unwrap();
            methods::Influence
                .forget(&model, rows, &gone)
                .unwrap()
                .model
                .parameters()
                .0
        };
        let off = (influence(&sparse) - influence(&dense)).norm_max();
        assert!(off < 1e-9, "{form:?}: {off}");
    }
}

/// A model fitted on years keeps them as distances from a year of its own. A sparse row has none of
/// that, and joins and leaves as the same row written out.
#[test]
fn a_sparse_row_meets_a_model_of_shifted_columns() {
    let n = 60;
    let d = 40;
    let value = |i: usize, j: usize| match j {
        0 => 2000.0 + ((i * 7) % 5) as f64,
        _ if (i + j).is_multiple_of(9) => 1.0 + (i % 3) as f64,
        _ => 0.0,
    };
    let some = |range: std::ops::Range<usize>, sparse: bool| {
        let ids = range.clone().map(|i| RowId(i as u64)).collect();
        let y: Vec<f64> = range
            .clone()
            .map(|i| if (i * 13) % 7 < 3 { 1.0 } else { -1.0 })
            .collect();
        let features: Features = match sparse {
            true => {
                let mut table = Csr::<f64>::new(d);
                for i in range {
                    // Not even the year is there.
                    let entries: Vec<(u32, f64)> = (1..d)
                        .map(|j| (j as u32, value(i, j)))
                        .filter(|e| e.1 != 0.0)
                        .collect();
                    table.push(&entries).unwrap();
                }
                table.into()
            }
            false => {
                let line = |i: usize| {
                    (0..d).map(move |j| if i >= n && j == 0 { 0.0 } else { value(i, j) })
                };
                Dense::new(range.flat_map(line).collect(), d)
                    .unwrap()
                    .into()
            }
        };
        Rows::with_ids(ids, features, y, 1).unwrap()
    };
    let rows = some(0..n, false);
    for count in [2, 30] {
        let sparse = some(n..n + count, true);
        let dense = some(n..n + count, false);
        let near = |a: &RidgeModel, b: &RidgeModel| {
            let (a, c) = a.parameters();
            let (b, e) = b.parameters();
            let off = (&a - &b)
                .norm_max()
                .max((c[0] - e[0]).abs() / e[0].abs().max(1.0));
            assert!(off < 1e-9, "{count}: {off}");
        };
        for form in DENSE_FORMS {
            let model = Ridge::new(0.5).form(form).fit(&rows).unwrap();
            let a = model.learn(&rows, &sparse).unwrap().model;
            let b = model.learn(&rows, &dense).unwrap().model;
            near(&a, &b);
            let scores = (
                a.predict(&sparse.table()).unwrap(),
                b.predict(&dense.table()).unwrap(),
            );
            assert!((&scores.0 - &scores.1).norm_max() < 1e-8);
        }
        let model = efface::Logistic::new(0.5).fit(&rows).unwrap();
        let a = model.learn(&rows, &sparse).unwrap().model;
        let b = model.learn(&rows, &dense).unwrap().model;
        let off = (a.parameters().0 - b.parameters().0).norm_max();
        assert!(off < 1e-6, "logistic, {count}: {off}");
    }
}

/// A fit that read its rows to learn how good its sums are has learned it for later requests too:
/// one that factors anew need not read them again.
#[test]
fn a_request_that_factors_anew_knows_what_the_fit_measured() {
    let rows = alike_columns(3000, 40, 0.1);
    let model = Ridge::new(1e-6).form(Form::Factor).fit(&rows).unwrap();
    let gone: Vec<RowId> = (0..12).map(|k| RowId(50 * k)).collect();
    let outcome = Summation.forget(&model, &rows, &gone).unwrap();
    assert!(outcome.evidence.relative_bound < 1e-10);
    assert_eq!(outcome.evidence.rows_read, gone.len());
}

/// Columns that differ by little from one another.
fn alike_columns(count: usize, width: usize, blur: f64) -> Rows {
    let mut state = 7u64;
    let mut next = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((state >> 11) as f64) / (1u64 << 52) as f64 - 1.0
    };
    let mut x = Vec::with_capacity(count * width);
    let mut y = Vec::with_capacity(count);
    for _ in 0..count {
        let common = next();
        x.extend((0..width).map(|_| common + blur * next()));
        y.push(common + 0.1 * next());
    }
    Rows::new(Dense::new(x, width).unwrap(), y, 1).unwrap()
}
