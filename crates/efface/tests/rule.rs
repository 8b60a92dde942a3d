//! The rule of claims where it is hard to keep: `exact` is claimed with a bound that is at most the
//! tolerance, and with nothing else. `any.rs` asks it of every method on every family.

#![allow(clippy::unwrap_used)]

use efface::methods::Auto;
use efface::{
    Amend, Claim, Dense, Error, Evidence, Fit, Fitted, Form, Logistic, Method, Model, Recipe,
    Ridge, RidgeModel, RowId, Rows, Softmax,
};

/// No number is as near as this: a tolerance that every bound misses.
const NEVER: f64 = 1e-300;

/// Fails where exactness is claimed without a bound, or with one above the tolerance.
#[track_caller]
fn holds_to_the_rule(evidence: &Evidence) {
    let within = evidence.bound.is_finite()
        && evidence
            .tolerance
            .is_some_and(|tolerance| evidence.relative_bound <= tolerance);
    assert!(evidence.claim() != Claim::Exact || within, "{evidence:?}");
}

/// 50 rows of two columns, the last of them `size` large.
fn with_huge_row(size: f64) -> Rows {
    huge_row_and_targets(size, |at| (at * 0.53).sin())
}

fn huge_row_and_targets(size: f64, target: impl Fn(f64) -> f64) -> Rows {
    let mut features = Vec::new();
    let mut targets = Vec::new();
    for row in 0..50 {
        let at = f64::from(row);
        let scale = if row == 49 { size } else { 1.0 };
        features.extend([(at * 0.37).sin() * scale, (at * 0.71).cos() * scale]);
        targets.push(target(at));
    }
    Rows::new(Dense::new(features, 2).unwrap(), targets, 1).unwrap()
}

fn parameters(model: &Model) -> Vec<f64> {
    let Some(model) = model.get::<RidgeModel>() else {
        return Vec::new();
    };
    let (coefficients, constants) = model.parameters();
    coefficients
        .col_as_slice(0)
        .iter()
        .chain(&constants)
        .copied()
        .collect()
}

#[test]
fn a_huge_row_is_forgotten_exactly_or_not_called_exact() {
    for form in [Form::Factor, Form::Inverse, Form::Rows, Form::Iterative] {
        for size in [1e6, 1e7, 1e8, 1e9, 1e12] {
            let rows = with_huge_row(size);
            let recipe = Recipe::new(Ridge::new(1.0).intercept(true).form(form));
            // A refusal claims nothing.
            let Ok(model) = recipe.fit(&rows) else {
                continue;
            };
            let truth = parameters(&recipe.fit(&rows.filter(|id| id != RowId(49))).unwrap());
            let norm = truth.iter().map(|x| x * x).sum::<f64>().sqrt();
            for method in ["auto", "exact", "newton", "summation", "retrain"] {
                let Ok(outcome) = model.forget(&method.parse().unwrap(), &rows, &[RowId(49)])
                else {
                    continue;
                };
                holds_to_the_rule(&outcome.evidence);
                let found = parameters(&outcome.model);
                let far = found
                    .iter()
                    .zip(&truth)
                    .map(|(a, b)| (a - b).powi(2))
                    .sum::<f64>()
                    .sqrt();
                let exact = outcome.evidence.claim() == Claim::Exact;
                assert!(
                    !exact || far <= 1e-9 * norm,
                    "{method}, {form:?}, {size:e}: off by {:e}",
                    far / norm
                );
                // The rows that are left are tame, so that retraining, if nothing before it, makes
                // the claim good.
                assert!(
                    exact,
                    "{method}, {form:?}, {size:e}: {:?}",
                    outcome.evidence
                );
            }
        }
    }
}

#[test]
fn many_classes_are_trained_on_to_a_bound_or_not_called_exact() {
    let classes = 20_usize;
    let mut features = Vec::new();
    let mut targets = Vec::new();
    for at in 0..240_usize {
        features.extend((0..6).map(|j| ((at * (j + 3)) as f64 * 0.29).sin() * 5.0));
        targets.extend((0..classes).map(|class| f64::from(u8::from(class == at % classes))));
    }
    let rows = Rows::new(Dense::new(features, 6).unwrap(), targets, classes).unwrap();
    let model = Recipe::new(Softmax::new(1e-3)).fit(&rows).unwrap();
    for method in ["warm_start", "retrain", "auto"] {
        let outcome = model
            .forget(&method.parse().unwrap(), &rows, &[RowId(5), RowId(26)])
            .unwrap();
        holds_to_the_rule(&outcome.evidence);
        assert!(
            outcome.evidence.tolerance.is_some(),
            "{method} aims at a distance"
        );
    }
}

#[test]
fn a_tolerance_that_nothing_reaches_is_told_whoever_named_it() {
    let rows = with_huge_row(1.0);
    let some = rows.filter(|id| id.0 < 3);
    let rest = rows.filter(|id| id.0 >= 3);
    for form in [Form::Factor, Form::Inverse, Form::Rows, Form::Iterative] {
        let recipe = Recipe::new(Ridge::new(1.0).form(form).tolerance(NEVER));
        let model = recipe.fit(&rows).unwrap();
        for method in ["auto", "exact", "newton", "summation", "retrain"] {
            let outcome = model.forget(&method.parse().unwrap(), &rows, &[RowId(4)]);
            if form == Form::Iterative && matches!(outcome, Err(Error::Unsupported { .. })) {
                // Without a matrix some methods have nothing to work on.
                continue;
            }
            let evidence = outcome.unwrap().evidence;
            assert_eq!(
                (evidence.claim(), evidence.promise),
                (Claim::Approximate, Claim::Exact),
                "{method}"
            );
            assert!(
                evidence.tolerance_missed() && evidence.relative_bound < 1e-9,
                "{method}: {evidence:?}"
            );
            if method != "retrain" {
                assert!(
                    evidence.reason.unwrap().contains("after retraining"),
                    "{method}"
                );
            }
        }
        let learned = recipe.fit(&rest).unwrap().learn(&rest, &some).unwrap();
        assert_eq!(
            (learned.evidence.claim(), learned.evidence.learned),
            (Claim::Approximate, 3)
        );
        assert_eq!(
            (learned.evidence.method.as_str(), learned.model.rows()),
            ("learn", 50)
        );
        let amended = model.amend(&rows, &some).unwrap();
        assert!(amended.evidence.tolerance_missed());
        assert_eq!(
            (amended.evidence.method.as_str(), amended.model.rows()),
            ("amend", 50)
        );
        let asked = Auto {
            tolerance: Some(NEVER),
        }
        .into();
        let usual = Recipe::new(Ridge::new(1.0).form(form)).fit(&rows).unwrap();
        let left = usual.forget(&asked, &rows, &[RowId(4)]).unwrap();
        assert_eq!(
            (
                left.evidence.claim(),
                left.evidence.tolerance,
                left.model.rows()
            ),
            (Claim::Approximate, Some(NEVER), 49)
        );
        assert!(left.evidence.tolerance_missed() && left.evidence.relative_bound < 1e-9);
        let nothing = usual.forget(&asked, &rows, &[]).unwrap();
        assert_eq!(parameters(&nothing.model), parameters(&usual));
        // A request for nothing says where the model stands, and changes nothing.
        let nothing = model.forget(&Method::default(), &rows, &[]).unwrap();
        assert_eq!(
            (nothing.evidence.rows_read, parameters(&nothing.model)),
            (0, parameters(&model))
        );
        assert!(nothing.evidence.tolerance_missed());
    }
}

#[test]
fn a_claim_follows_the_bound_when_changes_are_folded_in() {
    let rows = with_huge_row(1.0);
    let recipe = Recipe::new(Ridge::new(1.0).tolerance(NEVER));
    let model = recipe.fit(&rows).unwrap();
    let mut outcome = model
        .forget(&Method::default(), &rows, &[RowId(4)])
        .unwrap();
    outcome.evidence.tolerance = Some(1.0);
    assert_eq!(outcome.evidence.claim(), Claim::Exact);
    outcome.evidence.tolerance = Some(NEVER);
    outcome.model.settle().unwrap();
    outcome.model.update_evidence(&mut outcome.evidence);
    assert_eq!(outcome.evidence.claim(), Claim::Approximate);
    // A model in memory settles by itself, with the same result.
    let mut fitted = Fitted::new(&Ridge::new(1.0).tolerance(NEVER), rows)
        .unwrap()
        .settle_after(1);
    let evidence = fitted.forget(&efface::methods::Exact, &[RowId(4)]).unwrap();
    assert_eq!(
        (evidence.claim(), evidence.tolerance_missed()),
        (Claim::Approximate, true)
    );
}

#[test]
fn a_method_that_aims_at_no_distance_misses_none() {
    let rows = with_huge_row(1.0);
    let model = Recipe::new(Ridge::new(1e-3)).fit(&rows).unwrap();
    for method in ["influence", "projection_residual"] {
        let evidence = model
            .forget(&method.parse().unwrap(), &rows, &[RowId(4)])
            .unwrap()
            .evidence;
        assert_eq!(
            (evidence.claim(), evidence.tolerance),
            (Claim::Approximate, None)
        );
        assert!(
            !evidence.tolerance_missed() && evidence.relative_bound > 1e-9,
            "{method}"
        );
    }
}

/// The rounding of a huge row stands in the way of every step from the model that held it.
#[test]
fn a_tolerance_that_only_a_fresh_fit_reaches_is_reached_by_one() {
    for size in [1e3, 1e4, 1e5] {
        let rows = huge_row_and_targets(size, |at| at % 2.0 * 2.0 - 1.0);
        let own = Logistic::new(0.1).tolerance(1e-9);
        let asked = Auto {
            tolerance: Some(1e-9),
        };
        for (settings, auto) in [(own, Auto::default()), (Logistic::new(0.1), asked)] {
            let model = Recipe::new(settings).fit(&rows).unwrap();
            let left = model.forget(&auto.into(), &rows, &[RowId(49)]).unwrap();
            holds_to_the_rule(&left.evidence);
            assert_eq!(
                (left.evidence.method.as_str(), left.evidence.claim()),
                ("retrain", Claim::Exact),
                "{size:e}"
            );
        }
    }
}
