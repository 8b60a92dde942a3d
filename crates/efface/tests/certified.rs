//! Certified methods: the account is never less than the truth, the budget is never passed, and the
//! noise is there.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should stop and say where"
)]

use efface::methods::{Auto, Certified, DescentToDelete, Retrain, contract};
use efface::models::logistic::{Certifier, Privacy};
use efface::{
    Amend, Claim, Dense, Error, Family, Fit, Forget, Logistic, LogisticModel, Method, Predict,
    RowId, RowStore, Rows, Softmax,
};

struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((self.0 >> 11) as f64) / (1u64 << 52) as f64 - 1.0
    }
}

fn rows(n: usize, d: usize, seed: u64) -> Rows {
    let mut numbers = Numbers(seed);
    let mut x = Vec::new();
    let mut y = Vec::new();
    for _ in 0..n {
        // Some rows lie outside the unit ball and are clipped.
        let size = 1.5 * (numbers.next() + 1.0) / (d as f64).sqrt();
        let row: Vec<f64> = (0..d).map(|_| size * numbers.next()).collect();
        y.push(if row[0] - row[d - 1] + 0.1 * numbers.next() > 0.0 {
            1.0
        } else {
            -1.0
        });
        x.extend(row);
    }
    Rows::new(Dense::new(x, d).unwrap(), y, 1).unwrap()
}

fn parameters(model: &LogisticModel) -> Vec<f64> {
    let (coefficients, intercept) = model.parameters();
    coefficients
        .col_as_slice(0)
        .iter()
        .copied()
        .chain(intercept)
        .collect()
}

fn norm(v: &[f64]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn reload(model: &LogisticModel, _: &dyn RowStore) -> efface::Result<LogisticModel> {
    let mut model = model.clone();
    model.settle()?;
    LogisticModel::from_state(model.to_state()?)
}

/// Σ ∇ℓ + λθ without noise, worked out from the definition: rows with a constant, scaled to a norm
/// of at most 1.
fn gradient(theta: &[f64], rows: &Rows, lambda: f64, intercept: bool) -> Vec<f64> {
    let d = theta.len() - 1;
    let mut sum: Vec<f64> = theta.iter().map(|t| lambda * t).collect();
    for row in rows.iter() {
        let mut x = vec![0.0; d + 1];
        row.features.each(|j, value| x[j] = value);
        x[d] = if intercept { 1.0 } else { 0.0 };
        let scale = 1.0 / norm(&x).max(1.0);
        x.iter_mut().for_each(|x| *x *= scale);
        let margin = row.targets[0] * x.iter().zip(theta).map(|(x, t)| x * t).sum::<f64>();
        let slope = -row.targets[0] / (1.0 + margin.exp());
        sum.iter_mut().zip(&x).for_each(|(s, x)| *s += slope * x);
    }
    if !intercept {
        sum[d] = 0.0;
    }
    sum
}

/// A thousand deletions, one after the other in chains of models: the account covers the true
/// residual each time, and the budget covers the account.
#[test]
fn the_account_covers_the_true_residual() {
    let mut checked = 0;
    let mut retrained = 0;
    let mut tightest = 0.0f64;
    for seed in 0..25 {
        let intercept = seed % 2 == 0;
        let lambda = [1.0, 10.0][seed as usize % 2];
        let everyone = rows(150, 5, seed + 1);
        let recipe = Logistic::new(lambda).intercept(intercept);
        let privacy = Privacy::removal(1.0, 1e-4, seed);
        let mut model = recipe.privacy(privacy).fit(&everyone).unwrap();
        let mut rows = everyone.clone();
        let mut noise: Vec<f64> = gradient(&parameters(&model), &rows, lambda, intercept)
            .iter()
            .map(|g| -g)
            .collect();
        let mut numbers = Numbers(seed + 1000);
        for step in 0..44 {
            let ids: Vec<RowId> = rows.ids().collect();
            let gone =
                [ids[((numbers.next() + 1.0) / 2.0 * ids.len() as f64) as usize % ids.len()]];
            let outcome = Certified::of(&model)
                .unwrap()
                .forget(&model, &rows, &gone)
                .unwrap();
            rows.remove(&gone).unwrap();
            model = outcome.model;
            if step % 5 == 4 {
                model.settle().unwrap();
            }
            let certificate = outcome.evidence.certificate.unwrap();
            if certificate.retrained {
                noise = gradient(&parameters(&model), &rows, lambda, intercept)
                    .iter()
                    .map(|g| -g)
                    .collect();
                retrained += 1;
            }
            let residual = gradient(&parameters(&model), &rows, lambda, intercept);
            let residual: Vec<f64> = residual.iter().zip(&noise).map(|(g, b)| g + b).collect();
            let truth = norm(&residual);
            assert!(
                truth <= certificate.used + 1e-9,
                "{seed} {step}: {truth:.3e} > {:.3e}",
                certificate.used
            );
            assert!(certificate.used <= certificate.budget, "{certificate:?}");
            assert!((certificate.left - (certificate.budget - certificate.used)).abs() < 1e-12);
            assert!(!certificate.adaptive && certificate.assumptions.len() >= 3);
            if step % 8 == 0 {
                let truth = optimum(&rows, lambda, intercept, &noise);
                let away: Vec<f64> = parameters(&model)
                    .iter()
                    .zip(truth)
                    .map(|(a, b)| a - b)
                    .collect();
                assert!(
                    norm(&away) <= outcome.evidence.bound + 1e-9,
                    "{seed} {step}"
                );
            }
            if !certificate.retrained {
                tightest = tightest.max(truth / certificate.used);
            }
            checked += 1;
        }
    }
    assert!(
        checked >= 1000 && tightest > 1e-3,
        "{checked} deletions, {retrained} retrained, at most {tightest}"
    );
}

/// As many parameters as rows: one step passes a small budget, two do not.
#[test]
fn two_steps_serve_as_many_parameters_as_rows() {
    let rows = rows(120, 100, 5);
    let privacy = Privacy {
        certifier: Certifier::Removal { noise: 1e-3 },
        ..Privacy::removal(1.0, 1e-3, 0)
    };
    let model = Logistic::new(0.05)
        .intercept(false)
        .privacy(privacy)
        .fit(&rows)
        .unwrap();
    let gone: Vec<RowId> = (0..3).map(RowId).collect();
    let one = Certified::of(&model).unwrap();
    let outcome = one.forget(&model, &rows, &gone).unwrap();
    let certificate = outcome.evidence.certificate.clone().unwrap();
    assert!(!certificate.retrained, "{certificate:?}");
    assert_eq!(
        outcome.evidence.iterations, 2,
        "one step would have passed the budget of {}",
        certificate.budget
    );
    let two = one.steps(2).unwrap().forget(&model, &rows, &gone).unwrap();
    assert!(two.evidence.certificate.unwrap().used <= certificate.budget);
    assert!(one.steps(0).is_err() && one.steps(3).is_err());
}

#[test]
fn a_budget_that_the_first_request_exceeds_means_training_anew() {
    let rows = rows(60, 4, 2);
    let privacy = Privacy {
        certifier: Certifier::Removal { noise: 1e-6 },
        ..Privacy::removal(0.01, 1e-6, 0)
    };
    let model = Logistic::new(0.01).privacy(privacy).fit(&rows).unwrap();
    let gone: Vec<RowId> = (0..25).map(RowId).collect();
    let outcome = Certified::of(&model)
        .unwrap()
        .forget(&model, &rows, &gone)
        .unwrap();
    let certificate = outcome.evidence.certificate.unwrap();
    assert!(certificate.retrained && certificate.used <= certificate.budget);
    // Noise follows from the rows: that of the retained ones is not that of all.
    let retained = rows.filter(|id| id.0 >= 25);
    let fresh = Logistic::new(0.01).privacy(privacy).fit(&retained).unwrap();
    assert_eq!(parameters(&outcome.model), parameters(&fresh));
    let noise = |model: &LogisticModel, rows: &Rows| gradient(&parameters(model), rows, 0.01, true);
    let [all, some] = [noise(&model, &rows), noise(&fresh, &retained)];
    assert!(
        norm(
            &all.iter()
                .zip(&some)
                .map(|(a, b)| a - b)
                .collect::<Vec<_>>()
        ) > 1e-7
    );
    // Noise that hides less than the error of training is refused at fit.
    let none = Privacy {
        certifier: Certifier::Removal { noise: 1e-14 },
        ..privacy
    };
    assert!(matches!(
        Logistic::new(0.01).privacy(none).fit(&rows),
        Err(Error::Parameter {
            name: "epsilon",
            ..
        })
    ));
}

#[test]
fn descent_ends_within_its_distance_and_publishes_behind_noise() {
    let everyone = rows(80, 4, 3);
    let privacy = Privacy::descent(1.0, 1e-5, 9);
    let model = Logistic::new(2.0).privacy(privacy).fit(&everyone).unwrap();
    let gone = [RowId(4), RowId(9)];
    let outcome = DescentToDelete::of(&model)
        .unwrap()
        .forget(&model, &everyone, &gone)
        .unwrap();
    let certificate = outcome.evidence.certificate.unwrap();
    assert!(certificate.used <= certificate.budget && certificate.unit == "distance");
    assert!(outcome.evidence.iterations > 0);
    // σ of the Gaussian mechanism for a sensitivity of 2Δ, from ρ-zCDP: ε = ρ + 2√(ρ ln 1/δ).
    let rho = (2.0 * certificate.budget).powi(2) / (2.0 * certificate.noise.powi(2));
    assert!((rho + 2.0 * (rho * (1e5f64).ln()).sqrt() - 1.0).abs() < 1e-9);
    // Published parameters are those of the optimum, give or take the noise; each release has its
    // own.
    let retained = everyone.filter(|id| !gone.contains(&id));
    let plain = optimum(&retained, 2.0, true, &[0.0; 5]);
    let away: Vec<f64> = parameters(&outcome.model)
        .iter()
        .zip(&plain)
        .map(|(a, b)| a - b)
        .collect();
    // What is published lies further off than the state behind it, by the noise; the bound must not
    // tell how far.
    assert!(norm(&away) > 0.1 * certificate.noise && norm(&away) < 10.0 * certificate.noise);
    assert!(outcome.evidence.bound <= certificate.budget);
    let next = DescentToDelete::of(&outcome.model)
        .unwrap()
        .forget(&outcome.model, &retained, &[RowId(20)])
        .unwrap();
    let moved: Vec<f64> = parameters(&next.model)
        .iter()
        .zip(parameters(&outcome.model))
        .map(|(a, b)| a - b)
        .collect();
    assert!(norm(&moved) > 0.1 * certificate.noise);
}

/// The optimum with this noise in the objective, by gradient descent on the definition.
fn optimum(rows: &Rows, lambda: f64, intercept: bool, noise: &[f64]) -> Vec<f64> {
    let mut theta = vec![0.0; rows.width() + 1];
    let step = 1.0 / (lambda + 0.25 * rows.len() as f64);
    for _ in 0..3_000 {
        let g = gradient(&theta, rows, lambda, intercept);
        theta
            .iter_mut()
            .zip(g.iter().zip(noise))
            .for_each(|(t, (g, b))| *t -= step * (g + b));
    }
    theta
}

#[test]
fn certified_models_keep_the_contract() {
    let rows = rows(90, 4, 7);
    let gone: Vec<RowId> = (0..6).map(|i| RowId(i * 11)).collect();
    for privacy in [
        Privacy::removal(1.0, 1e-3, 0),
        Privacy::descent(1.0, 1e-3, 0),
    ] {
        let recipe = Logistic::new(1.0).privacy(privacy);
        let model = recipe.fit(&rows).unwrap();
        let case = contract::Case {
            name: "certified",
            recipe: &recipe,
            rows: &rows,
            gone: &gone,
            parameters: &parameters,
            reload: &reload,
            tolerance: 1e-7,
            // The noise of either kind moves parameters by this much and less here, at λ = 1.
            noise: 8.0,
        };
        let method: Box<dyn Forget<LogisticModel>> = match privacy.certifier {
            Certifier::Removal { .. } => Box::new(Certified::of(&model).unwrap()),
            Certifier::Descent { .. } => Box::new(DescentToDelete::of(&model).unwrap()),
        };
        assert_eq!(
            method.claim(),
            Claim::Certified {
                epsilon: 1.0,
                delta: 1e-3
            }
        );
        contract::check(method.as_ref(), &case).unwrap();
        contract::check(&Auto::default() as &dyn Forget<LogisticModel>, &case).unwrap();
        contract::check(&Retrain as &dyn Forget<LogisticModel>, &case).unwrap();
        for other in Method::all_for(Family::Softmax)
            .iter()
            .filter(|m| !["retrain", "auto"].contains(&m.name()))
        {
            let error = other.forget(&model, &rows, &gone).unwrap_err();
            assert!(
                error.to_string().contains("no account"),
                "{}: {error}",
                other.name()
            );
        }
        // A score is that of the clipped row: its sign is that of the plain one.
        let far: efface::Features = Dense::new(vec![30.0, 1.0, -4.0, 2.0], 4).unwrap().into();
        assert!(model.predict(&far).unwrap()[(0, 0)].abs() <= norm(&parameters(&model)));
    }
}

#[test]
fn settings_out_of_range_are_refused() {
    let rows = rows(30, 3, 1);
    let fit = |privacy, lambda| {
        Logistic::new(lambda)
            .privacy(privacy)
            .fit(&rows)
            .map(|_| ())
    };
    for epsilon in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = fit(Privacy::removal(epsilon, 1e-3, 0), 1.0).unwrap_err();
        assert!(
            matches!(
                error,
                Error::Parameter {
                    name: "epsilon",
                    ..
                }
            ),
            "{error}"
        );
    }
    for delta in [0.0, 1.0, -0.5, 2.0, f64::NAN] {
        let error = fit(Privacy::descent(1.0, delta, 0), 1.0).unwrap_err();
        assert!(
            matches!(error, Error::Parameter { name: "delta", .. }),
            "{error}"
        );
    }
    assert!(matches!(
        fit(Privacy::removal(1.0, 0.1, 0), 0.0),
        Err(Error::Parameter { name: "lambda", .. })
    ));
    for bad in [0.0, -1.0, f64::NAN] {
        let noise = Privacy {
            certifier: Certifier::Removal { noise: bad },
            ..Privacy::removal(1.0, 0.1, 0)
        };
        assert!(fit(noise, 1.0).is_err());
        let distance = Privacy {
            certifier: Certifier::Descent { distance: bad },
            ..Privacy::removal(1.0, 0.1, 0)
        };
        assert!(fit(distance, 1.0).is_err());
    }
    let plain = Logistic::new(1.0).fit(&rows).unwrap();
    assert!(matches!(
        Certified::of(&plain),
        Err(Error::Unsupported {
            method: "certified",
            ..
        })
    ));
    assert!(matches!(
        DescentToDelete::of(&plain),
        Err(Error::Unsupported { .. })
    ));
    let many = Softmax::default();
    assert_eq!(many, Softmax::new(1.0));
}

#[test]
fn learning_keeps_the_account() {
    let everyone = rows(80, 4, 11);
    let early = everyone.filter(|id| id.0 < 70);
    let late = everyone.filter(|id| id.0 >= 70);
    for privacy in [
        Privacy::removal(1.0, 1e-3, 0),
        Privacy::descent(1.0, 1e-3, 0),
    ] {
        let recipe = Logistic::new(1.0).privacy(privacy);
        let learned = recipe.fit(&early).unwrap().learn(&early, &late).unwrap();
        let certificate = learned.evidence.certificate.unwrap();
        assert!(certificate.used <= certificate.budget);
        if matches!(privacy.certifier, Certifier::Removal { .. }) {
            let truth = parameters(&recipe.fit(&everyone).unwrap());
            let away: Vec<f64> = parameters(&learned.model)
                .iter()
                .zip(truth)
                .map(|(a, b)| a - b)
                .collect();
            assert!(norm(&away) < 1e-8);
        }
    }
}
