//! The table of methods and what models really do agree, for every pair.

#![allow(clippy::unwrap_used, clippy::panic)]

use efface::ShardRecipe;
use efface::methods::{Auto, table};
use efface::models::MethodOptions;
use efface::models::logistic::Privacy;
use efface::{
    Amend, BernoulliNb, Claim, ComparisonBasis, ComplementNb, Dense, Error, Evidence, Family, Fit,
    GaussianNb, KMeans, LinearSvm, Logistic, Method, Model, MultinomialNb, NotCovered, Outcome,
    PoissonRegression, Predict, Recipe, Ridge, RowId, Rows, Sisa, Softmax,
};

/// Numbers from 0 to 7 that repeat after a long while.
fn rows(count: usize, classes: usize) -> Rows {
    let mut state = 11_u64;
    let mut features = Vec::new();
    let mut targets = Vec::new();
    for at in 0..count {
        for _ in 0..3 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            features.push((state >> 61) as f64);
        }
        let class = (at + (state >> 62) as usize) % classes;
        match classes {
            2 => targets.push(if class == 1 { 1.0 } else { -1.0 }),
            _ => targets.extend((0..classes).map(|c| f64::from(u8::from(c == class)))),
        }
    }
    let outputs = if classes == 2 { 1 } else { classes };
    Rows::new(Dense::new(features, 3).unwrap(), targets, outputs).unwrap()
}

/// Every family in every setting that methods look at, with the classes it is fitted on.
fn samples() -> Vec<(Recipe, usize)> {
    let private = |privacy| Recipe::new(Logistic::new(20.0).privacy(privacy));
    let sisa = |base: Recipe| Recipe::new(Sisa::new(ShardRecipe::new(base).unwrap(), 2, 2));
    vec![
        (Recipe::new(Ridge::new(0.5)), 2),
        (Recipe::new(Logistic::new(0.5)), 2),
        (private(Privacy::removal(1.0, 1e-3, 0)), 2),
        (private(Privacy::descent(1.0, 1e-3, 0)), 2),
        (Recipe::new(Softmax::new(0.5)), 3),
        (Recipe::new(LinearSvm::new(0.5)), 2),
        (Recipe::new(LinearSvm::new(0.5)), 3),
        (Recipe::new(PoissonRegression::new(0.1)), 3),
        (Recipe::new(MultinomialNb::default()), 3),
        (Recipe::new(ComplementNb::default()), 3),
        (Recipe::new(BernoulliNb::default()), 3),
        (Recipe::new(GaussianNb::default()), 3),
        (Recipe::new(KMeans::quantised(3, 1.0)), 2),
        (Recipe::new(KMeans::divided(3, 1, 2)), 2),
        (sisa(Recipe::new(Ridge::new(0.5))), 2),
        (sisa(Recipe::new(Softmax::new(0.5))), 3),
        (sisa(Recipe::new(GaussianNb::default())), 3),
        (sisa(Recipe::new(LinearSvm::new(0.5))), 2),
        (sisa(Recipe::new(PoissonRegression::new(0.1))), 3),
    ]
}

#[test]
fn what_the_table_lists_works_and_the_rest_is_refused_with_a_reason() {
    let samples: Vec<(Model, Rows)> = samples()
        .into_iter()
        .map(|(recipe, classes)| {
            let rows = rows(60, classes);
            let model = recipe.fit(&rows).unwrap();
            assert_eq!(
                (model.family(), model.rows(), model.features()),
                (recipe.family(), 60, 3)
            );
            (model, rows)
        })
        .collect();
    // Networks are a family of the table whose models are in a crate of their own.
    for family in Family::ALL
        .into_iter()
        .filter(|family| *family != Family::Network)
    {
        for method in table::method_names() {
            let tried = samples
                .iter()
                .filter(|(model, _)| model.family() == family)
                .map(|(model, rows)| {
                    model.forget(&method.parse().unwrap(), rows, &[RowId(7), RowId(20)])
                });
            let mut accepted = 0;
            for outcome in tried {
                match outcome {
                    Ok(outcome) => {
                        assert_eq!((outcome.model.rows(), outcome.evidence.forgotten), (58, 2));
                        assert_eq!(outcome.model.family(), family);
                        accepted += 1;
                    }
                    Err(Error::Unsupported {
                        method: named,
                        reason,
                    }) => {
                        assert_eq!(named, method);
                        assert!(
                            reason.contains("; "),
                            "{method} on {family:?}: what to do instead of {reason:?}?"
                        );
                    }
                    Err(other) => panic!("{method} on {family:?}: {other}"),
                }
            }
            assert_eq!(
                accepted > 0,
                table::lists(method, family),
                "{method} on {family:?}: {accepted} models"
            );
        }
    }
}

#[test]
fn auto_works_for_all_and_keeps_what_the_family_claims() {
    for (recipe, classes) in samples() {
        let rows = rows(60, classes);
        let model = recipe.fit(&rows).unwrap();
        let outcome = model
            .forget(&Method::default(), &rows, &[RowId(3)])
            .unwrap();
        let claim = outcome.evidence.claim();
        match recipe.family() {
            Family::Logistic if recipe.describe().is_certified => {
                assert!(matches!(claim, Claim::Certified { .. }));
                assert!(outcome.evidence.certificate.is_some());
                let asked = Auto {
                    tolerance: Some(0.1),
                }
                .into();
                assert!(model.forget(&asked, &rows, &[RowId(3)]).is_err());
            }
            Family::Logistic | Family::Softmax => assert_eq!(claim, Claim::Approximate),
            _ => assert_eq!(claim, Claim::Exact),
        }
        // What was forgotten can be learned again, under its own id.
        let kept = rows.filter(|id| id != RowId(3));
        let back = outcome
            .model
            .learn(&kept, &rows.filter(|id| id == RowId(3)))
            .unwrap();
        assert_eq!((back.model.rows(), back.evidence.learned), (60, 1));
        let scores = back.model.predict(&rows_of(&rows)).unwrap();
        assert!((0..60).all(|at| scores[(at, 0)].is_finite()));
    }
}

/// Fails where exactness is claimed without a bound, or with one above the tolerance.
#[track_caller]
fn bounded_if_exact(evidence: &Evidence) {
    let within = evidence.bound.is_finite()
        && evidence
            .tolerance
            .is_some_and(|tolerance| evidence.relative_bound <= tolerance);
    assert!(evidence.claim() != Claim::Exact || within, "{evidence:?}");
}

#[test]
fn every_method_on_every_family_claims_what_its_bound_allows() {
    for (recipe, classes) in samples() {
        let rows = rows(60, classes);
        let model = recipe.fit(&rows).unwrap();
        let gone = [RowId(7), RowId(20)];
        for method in table::method_names() {
            let Ok(outcome) = model.forget(&method.parse().unwrap(), &rows, &gone) else {
                continue;
            };
            let evidence = outcome.evidence;
            bounded_if_exact(&evidence);
            // On rows as tame as these a promise of exactness is kept.
            assert_eq!(
                evidence.claim(),
                evidence.promise,
                "{method} on {:?}",
                model.family()
            );
            assert!(
                !evidence.tolerance_missed(),
                "{method} on {:?}: {evidence:?}",
                model.family()
            );
        }
        let kept = rows.filter(|id| !gone.contains(&id));
        let lost = rows.filter(|id| gone.contains(&id));
        let without = model
            .forget(&Method::default(), &rows, &gone)
            .unwrap()
            .model;
        for evidence in [
            without.learn(&kept, &lost).unwrap().evidence,
            model.amend(&rows, &lost).unwrap().evidence,
        ] {
            bounded_if_exact(&evidence);
            assert!(
                !evidence.tolerance_missed(),
                "{:?}: {evidence:?}",
                model.family()
            );
        }
    }
}

fn rows_of(rows: &Rows) -> efface::Features {
    let mut values = Vec::new();
    for view in rows.iter() {
        let mut line = vec![0.0; 3];
        view.features.add_to(1.0, &mut line);
        values.extend(line);
    }
    Dense::new(values, 3).unwrap().into()
}

#[test]
fn a_tolerance_is_reached_or_told_to_be_missed() {
    let rows = rows(60, 2);
    let model = Recipe::new(Logistic::new(0.5)).fit(&rows).unwrap();
    let reach = |tolerance| {
        let auto = Auto {
            tolerance: Some(tolerance),
        }
        .into();
        model
            .forget(&auto, &rows, &[RowId(7)])
            .map(|outcome| outcome.evidence)
    };
    for tolerance in [1e-2, 1e-6, 1e-9] {
        assert!(reach(tolerance).unwrap().relative_bound <= tolerance);
    }
    for wrong in [0.0, -1.0, 1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(
            reach(wrong),
            Err(Error::Parameter {
                name: "tolerance",
                ..
            })
        ));
    }
    let missed = reach(1e-300).unwrap();
    assert!(missed.tolerance_missed() && missed.relative_bound <= 1e-9);
    assert_eq!(missed.claim(), Claim::Approximate);
    let magic = "magic".parse::<Method>();
    assert!(matches!(
        magic,
        Err(Error::Parameter { name: "method", .. })
    ));
}

#[test]
fn what_cannot_be_in_shards_says_why() {
    let refuse = |recipe: Recipe| ShardRecipe::new(recipe).unwrap_err().to_string();
    assert!(refuse(Recipe::new(KMeans::quantised(3, 1.0))).contains("no common names"));
    let private = Recipe::new(Logistic::default().privacy(Privacy::removal(1.0, 0.1, 0)));
    assert!(refuse(private).contains("one model"));
    let (sisa, _) = samples().pop().unwrap();
    assert!(refuse(sisa).contains("smaller shards"));
}

#[test]
fn recipes_come_back_from_json() {
    for (recipe, _) in samples() {
        let text = serde_json::to_string(&recipe).unwrap();
        assert_eq!(
            serde_json::from_str::<Recipe>(&text).unwrap(),
            recipe,
            "{text}"
        );
    }
}

/// A model without some rows by each approximate method says how far it is from retraining, beside
/// the model as it was. What bounds say of that is true, and a request that is not nearer is refused
/// unless it allows for that.
#[test]
fn approximate_methods_are_compared_with_doing_nothing() {
    let methods: [Method; 6] = [
        "newton",
        "newton:steps=2",
        "influence",
        "projection_residual",
        "projection_residual:rounds=3,step=0.5",
        "delta_grad:iterations=30",
    ]
    .map(|text| text.parse().unwrap());
    let options = MethodOptions {
        allow_worse: true,
        ..MethodOptions::default()
    };
    let mut compared = 0;
    for (recipe, classes) in samples() {
        let rows = rows(60, classes);
        let model = recipe.fit(&rows).unwrap();
        for gone in [vec![RowId(7)], (0..9).map(|at| RowId(6 * at)).collect()] {
            let retrained = recipe.fit(&rows.filter(|id| !gone.contains(&id))).unwrap();
            for method in methods
                .iter()
                .filter(|method| method.is_for(recipe.family()))
            {
                let outcome = match model.forget_with(method, options, &rows, &gone) {
                    // Noise whose account these methods do not keep, or settings of other families.
                    Err(Error::Unsupported { .. }) => continue,
                    outcome => outcome.unwrap(),
                };
                if outcome.evidence.promise != Claim::Approximate {
                    assert_eq!(outcome.evidence.compared, None);
                    continue;
                }
                let found = outcome.evidence.compared.unwrap();
                let from = |model: &Model| {
                    let numbers = |model| efface::eval::parameters(model).unwrap();
                    let pairs = numbers(model).into_iter().zip(numbers(&retrained));
                    pairs.map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
                };
                let (after, before) = (from(&outcome.model), from(&model));
                let name = format!(
                    "{method} on {:?}: {found:?}, {after:e} and {before:e}",
                    recipe.family()
                );
                if found.basis == ComparisonBasis::Bound {
                    let is_true = if found.is_nearer {
                        after <= found.distance + 1e-6 && before + 1e-6 >= found.unchanged
                    } else {
                        after + 1e-6 >= found.distance && before <= found.unchanged + 1e-6
                    };
                    assert!(is_true, "{name}");
                }
                assert_eq!(found.is_nearer, after < before + 1e-6, "{name}");
                let plain = model.forget(method, &rows, &gone);
                assert_eq!(plain.is_ok(), found.is_nearer, "{name}");
                compared += 1;
            }
        }
    }
    assert!(compared > 40, "{compared}");
}

/// From a class of two rows, all but one row of the other class leave. A Newton step goes several
/// times as far as the optimum is.
#[test]
fn a_result_that_is_worse_than_doing_nothing_is_refused_unless_allowed() {
    let values = (0..52).map(|at| f64::from(at % 5) * 0.01).collect();
    let targets = (0..52).map(|at| if at < 2 { 1.0 } else { -1.0 }).collect();
    let rows = Rows::new(Dense::new(values, 1).unwrap(), targets, 1).unwrap();
    let model = Recipe::new(Logistic::new(1.0)).fit(&rows).unwrap();
    let gone: Vec<RowId> = (3..52).map(RowId).collect();
    let newton: Method = "newton".parse().unwrap();
    let error = model.forget(&newton, &rows, &gone).unwrap_err().to_string();
    assert!(
        error.contains("from retraining") && error.contains("allow_worse"),
        "{error}"
    );
    let options = MethodOptions {
        allow_worse: true,
        ..MethodOptions::default()
    };
    let outcome = model.forget_with(&newton, options, &rows, &gone).unwrap();
    let found = outcome.evidence.compared.unwrap();
    assert!(
        !found.is_nearer && found.distance > 2.0 * found.unchanged,
        "{found:?}"
    );
}

/// Columns of unlike size keep gradient descent far from the optimum. The difference of two runs is
/// nearer to that of the optima all the same.
#[test]
fn delta_grad_is_nearer_than_doing_nothing_where_descent_has_not_arrived() {
    for (classes, iterations) in [(2, 3), (2, 30), (2, 300), (3, 30)] {
        let plain = rows(200, classes);
        let mut values = Vec::new();
        for row in plain.iter() {
            let mut line = [0.0; 3];
            row.features
                .each(|column, value| line[column] = (value - 3.5) * 10f64.powi(column as i32 - 1));
            values.extend(line);
        }
        let table = plain.with_features(Dense::new(values, 3).unwrap()).unwrap();
        let recipe: Recipe = match classes {
            2 => Logistic::new(0.1).as_given(true).into(),
            _ => Softmax::new(0.1).as_given(true).into(),
        };
        let model = recipe.fit(&table).unwrap();
        let gone = [RowId(3), RowId(50), RowId(99)];
        let method = format!("delta_grad:iterations={iterations}")
            .parse()
            .unwrap();
        let outcome = model.forget(&method, &table, &gone).unwrap();
        let found = outcome.evidence.compared.unwrap();
        assert!(
            found.is_nearer && found.distance < found.unchanged,
            "{iterations}: {found:?}"
        );
    }
}

/// Retraining with a new seed gives the model of a fit with that seed.
#[test]
fn a_new_seed_is_that_of_a_fresh_fit() {
    let with = |new_seed| MethodOptions {
        new_seed,
        ..MethodOptions::default()
    };
    let adaptive = |outcome: &Outcome<Model>| {
        let left = &outcome.evidence.not_covered;
        left.contains(&NotCovered::AdaptiveRequests)
    };
    let gone = [RowId(7), RowId(20)];
    for (recipe, classes) in samples() {
        let rows = rows(60, classes);
        let model = recipe.fit(&rows).unwrap();
        let again = model.forget_with(&Method::Retrain, with(Some(99)), &rows, &gone);
        let Some(reseeded) = recipe.with_seed(99) else {
            let error = again.unwrap_err().to_string();
            assert!(error.contains("draws nothing"), "{error}");
            continue;
        };
        let again = again.unwrap();
        let left = rows.filter(|id| !gone.contains(&id));
        let fresh = reseeded.fit(&left).unwrap();
        assert_eq!(again.model.to_state().unwrap(), fresh.to_state().unwrap());
        assert!(!adaptive(&again));
        assert!(adaptive(
            &model.forget(&Method::default(), &rows, &gone).unwrap()
        ));
        assert!(adaptive(
            &model.forget(&Method::Retrain, &rows, &gone).unwrap()
        ));
        let error = model.forget_with(&Method::default(), with(Some(99)), &rows, &gone);
        assert!(
            error
                .unwrap_err()
                .to_string()
                .contains("a new seed is for retrain")
        );
    }
}
