//! Classifiers on data that is legitimate and unkind: small penalties, large units, sorted rows,
//! odd weights, planes that separate.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should stop and say where"
)]

use efface::methods::{self, Auto, DescentToDelete, Influence, Newton, Retrain};
use efface::models::logistic::{Certifier, Privacy};
use efface::{
    Amend, Csr, Dense, Error, Family, Fit, Forget, Logistic, LogisticModel, Method, NotCovered,
    RowId, Rows, Softmax, StateArray,
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

fn parameters(model: &LogisticModel) -> Vec<f64> {
    let (coefficients, intercept) = model.parameters();
    let columns = (0..coefficients.ncols()).flat_map(|j| coefficients.col_as_slice(j).to_vec());
    columns.chain(intercept).collect()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).powi(2))
        .sum::<f64>()
        .sqrt()
}

/// Along the sum of its classes only the penalty holds a softmax; in units of 1e5 a small one is
/// not felt.
#[test]
fn a_softmax_with_a_small_penalty_and_large_units_is_determined() {
    let mut numbers = Numbers(3);
    let mut x = Vec::new();
    let mut y = Vec::new();
    for i in 0..300 {
        let row = [numbers.next(), 1e5 * (2.0 + numbers.next()), numbers.next()];
        let class = if i < 3 {
            i
        } else {
            ((row[0] + 1.0) * 1.2 + (row[2] + numbers.next()).abs()) as usize % 3
        };
        x.extend(row);
        y.extend((0..3).map(|c| (c == class) as u8 as f64));
    }
    let rows = Rows::new(Dense::new(x, 3).unwrap(), y, 3).unwrap();
    for lambda in [1e-3, 1e-6] {
        let model = Softmax::new(lambda).fit(&rows).unwrap();
        let (coefficients, intercept) = model.parameters();
        for j in 0..3 {
            let sum: f64 = (0..3).map(|c| coefficients[(j, c)]).sum();
            assert!(sum.abs() < 1e-9, "column {j} sums to {sum}");
        }
        assert!(intercept.iter().sum::<f64>().abs() < 1e-6);
        let outcome = Auto::default().forget(&model, &rows, &[RowId(9)]).unwrap();
        let truth = Softmax::new(lambda)
            .fit(&rows.filter(|id| id != RowId(9)))
            .unwrap();
        assert!(
            distance(&parameters(&outcome.model), &parameters(&truth))
                <= outcome.evidence.bound + 1e-9
        );
    }
}

/// A long run of rows of one class adds up to a large sum before the other class takes it back.
#[test]
fn a_gradient_over_sorted_rows_is_as_good_as_it_says() {
    let n = 60_000;
    let mut numbers = Numbers(5);
    let x: Vec<f64> = (0..n)
        .map(|i| numbers.next() + if i < n / 2 { -0.3 } else { 0.3 })
        .collect();
    let y: Vec<f64> = (0..n).map(|i| if i < n / 2 { -1.0 } else { 1.0 }).collect();
    let rows = Rows::new(Dense::new(x.clone(), 1).unwrap(), y.clone(), 1).unwrap();
    let model = Logistic::new(1.0).fit(&rows).unwrap();
    let claimed = Newton::default()
        .forget(&model, &rows, &[])
        .unwrap()
        .evidence
        .gradient_norm
        .unwrap();
    let (coefficients, intercept) = model.parameters();
    let slope = coefficients[(0, 0)];
    let constant = intercept[0];
    // Compensated sums (Neumaier).
    let mut sums = [(0.0f64, 0.0f64); 2];
    for (x, y) in x.iter().zip(&y) {
        let residual = -y / (1.0 + (y * (slope * x + constant)).exp());
        for (sum, term) in sums.iter_mut().zip([residual * x, residual]) {
            let total = sum.0 + term;
            sum.1 += if sum.0.abs() >= term.abs() {
                (sum.0 - total) + term
            } else {
                (term - total) + sum.0
            };
            sum.0 = total;
        }
    }
    let gradient = (sums[0].0 + sums[0].1 + slope).hypot(sums[1].0 + sums[1].1);
    assert!(gradient <= claimed, "{gradient:.3e} > {claimed:.3e}");
}

#[test]
fn weights_of_any_size_lead_to_the_same_optimum() {
    let x = || Dense::new(vec![-2.0, -1.0, 0.5, -0.5, 1.0, 2.0, 0.1, -0.2], 1).unwrap();
    let y = vec![-1.0, -1.0, -1.0, 1.0, 1.0, 1.0, -1.0, 1.0];
    let fit = |weight: f64| {
        let rows = Rows::new(x(), y.clone(), 1)
            .unwrap()
            .weighted(vec![weight; 8])
            .unwrap();
        parameters(&Logistic::new(0.0).fit(&rows).unwrap())
    };
    let plain = fit(1.0);
    assert!(plain[0] > 0.5);
    for weight in [1e-12, 1e-3, 1e8] {
        assert!(distance(&fit(weight), &plain) < 1e-6, "weight {weight}");
    }
}

/// Without a penalty, classes that touch in one point have no finite optimum either.
#[test]
fn near_separation_without_a_penalty_is_said() {
    let x = Dense::new(vec![-2.0, -1.0, 0.0, 0.0, 1.0, 2.0], 1).unwrap();
    let touching = Rows::new(x, vec![-1.0, -1.0, -1.0, 1.0, 1.0, 1.0], 1).unwrap();
    for curvature in [true, false] {
        assert_eq!(
            Logistic::new(0.0)
                .curvature(curvature)
                .fit(&touching)
                .unwrap_err(),
            Error::Separable
        );
        assert!(
            Logistic::new(1e-3)
                .curvature(curvature)
                .fit(&touching)
                .is_ok()
        );
    }
    // Once the one row on the wrong side is gone, nothing is left to hold the parameters.
    let x = Dense::new(vec![-2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 1.5], 1).unwrap();
    let rows = Rows::new(x, vec![-1.0, -1.0, -1.0, 1.0, 1.0, 1.0, -1.0], 1).unwrap();
    let model = Logistic::new(0.0).fit(&rows).unwrap();
    for method in Method::all_for(Family::Softmax) {
        let error = method.forget(&model, &rows, &[RowId(6)]).unwrap_err();
        assert!(
            matches!(error, Error::Separable | Error::Singular { .. }),
            "{}: {error}",
            method.name()
        );
    }
}

/// What an approximate step leaves of the gradient is a multiple of the row; neither the settled
/// model nor its state keeps it.
#[test]
fn no_direction_of_a_forgotten_row_is_written_down() {
    let mut numbers = Numbers(8);
    let x: Vec<f64> = (0..160).map(|_| numbers.next()).collect();
    let y: Vec<f64> = (0..40)
        .map(|i| {
            if x[i * 4] + numbers.next() > 0.0 {
                1.0
            } else {
                -1.0
            }
        })
        .collect();
    let rows = Rows::new(Dense::new(x, 4).unwrap(), y, 1).unwrap();
    let model = Logistic::new(1.0).fit(&rows).unwrap();
    let mut outcome = Influence.forget(&model, &rows, &[RowId(5)]).unwrap();
    assert!(
        outcome
            .evidence
            .not_covered
            .contains(&NotCovered::ApproximateStep)
    );
    outcome.model.settle().unwrap();
    let state = outcome.model.to_state().unwrap();
    let is_numbers = |array: &StateArray| matches!(array, StateArray::Numbers(_));
    let numbers = state.arrays.iter().filter(|(_, array)| is_numbers(array));
    let names: Vec<&str> = numbers.map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["theta", "origin", "inverse_scale", "hessian"]);
    // The bound survives, and the next request still ends where it should.
    let mut rest = rows.clone();
    rest.remove(&[RowId(5)]).unwrap();
    let next = Auto {
        tolerance: Some(1e-9),
    }
    .forget(&outcome.model, &rest, &[RowId(7)])
    .unwrap();
    rest.remove(&[RowId(7)]).unwrap();
    let truth = parameters(&Logistic::new(1.0).fit(&rest).unwrap());
    assert!(distance(&parameters(&next.model), &truth) < 1e-8);
}

/// The Gaussian mechanism's tail bound that removal is usually stated with is proved for ε up to 1.
#[test]
fn a_large_epsilon_buys_no_more_than_it_proves() {
    let rows = Rows::new(
        Dense::new((0..60).map(|i| (i as f64 * 0.7).sin() * 0.5).collect(), 2).unwrap(),
        (0..30)
            .map(|i| if i % 3 == 0 { 1.0 } else { -1.0 })
            .collect(),
        1,
    )
    .unwrap();
    for (epsilon, delta) in [(0.5, 1e-5), (1.0, 1e-5), (10.0, 1e-3), (50.0, 1e-5)] {
        let model = Logistic::new(1.0)
            .privacy(Privacy::removal(epsilon, delta, 1))
            .fit(&rows)
            .unwrap();
        let method = methods::Certified::of(&model).unwrap();
        let certificate = method
            .forget(&model, &rows, &[])
            .unwrap()
            .evidence
            .certificate
            .unwrap();
        // ε = ρ + 2√(ρ ln 1/δ) for ρ = β²/2σ².
        let rho = (certificate.budget / certificate.noise).powi(2) / 2.0;
        assert!(
            rho + 2.0 * (rho * (1.0 / delta).ln()).sqrt() <= epsilon * (1.0 + 1e-12),
            "ε = {epsilon}"
        );
        assert!(certificate.budget <= epsilon / (2.0 * (1.5 / delta).ln()).sqrt() * (1.0 + 1e-12));
    }
}

/// Each set of rows has noise of its own, whichever method trains on it; and no report tells the
/// size of the noise.
#[test]
fn noise_is_not_used_twice_for_different_rows() {
    let x: Vec<f64> = (0..90).map(|i| (i as f64 * 1.3).cos() * 0.4).collect();
    let y: Vec<f64> = (0..30)
        .map(|i| if (i * 7) % 5 < 2 { 1.0 } else { -1.0 })
        .collect();
    let rows = Rows::new(Dense::new(x, 3).unwrap(), y, 1).unwrap();
    let retained = rows.filter(|id| id != RowId(4));
    let veil = |model: &LogisticModel| {
        let state = model.to_state().unwrap();
        match state
            .arrays
            .into_iter()
            .find(|(name, _)| name == "veil")
            .unwrap()
            .1
        {
            StateArray::Numbers(values) => values,
            StateArray::Counts(_) => unreachable!(),
        }
    };
    let recipe = Logistic::new(1.0).privacy(Privacy::descent(1.0, 1e-4, 77));
    let model = recipe.fit(&rows).unwrap();
    let anew = Retrain.forget(&model, &rows, &[RowId(4)]).unwrap().model;
    let descended = DescentToDelete::of(&model)
        .unwrap()
        .forget(&model, &rows, &[RowId(4)])
        .unwrap();
    assert_ne!(veil(&model), veil(&anew));
    assert_ne!(veil(&model), veil(&descended.model));
    assert_eq!(
        veil(&anew),
        veil(&recipe.fit(&retained).unwrap()),
        "the same rows again tell nothing new"
    );
    let size = veil(&descended.model)
        .iter()
        .map(|v| v * v)
        .sum::<f64>()
        .sqrt();
    assert!((descended.evidence.bound - size).abs() > 0.1 * size);
}

/// The distance at the end is what is certified: where descent would take too long, training goes
/// there.
#[test]
fn a_badly_conditioned_descent_ends() {
    let x: Vec<f64> = (0..4000).map(|i| (i as f64 * 0.37).sin() * 0.7).collect();
    let y: Vec<f64> = (0..2000)
        .map(|i| if (i * 11) % 7 < 3 { 1.0 } else { -1.0 })
        .collect();
    let rows = Rows::new(Dense::new(x, 2).unwrap(), y, 1).unwrap();
    let privacy = Privacy {
        certifier: Certifier::Descent { distance: 1e-6 },
        ..Privacy::descent(1.0, 1e-4, 3)
    };
    let model = Logistic::new(1e-4).privacy(privacy).fit(&rows).unwrap();
    let outcome = DescentToDelete::of(&model)
        .unwrap()
        .forget(&model, &rows, &[RowId(1), RowId(8)])
        .unwrap();
    let certificate = outcome.evidence.certificate.unwrap();
    assert!(certificate.used <= certificate.budget && outcome.evidence.iterations < 1000);
}

/// Rows that come in far from all others, and rows that leave a plain model: where a warm start
/// fails a cold one does not.
#[test]
fn what_can_be_fitted_can_be_learned() {
    let mut numbers = Numbers(21);
    for seed in 0..4 {
        let n = 100;
        let d = 30;
        let x: Vec<f64> = (0..n * d).map(|_| 2.0 * numbers.next()).collect();
        let y: Vec<f64> = (0..n)
            .map(|i| {
                if x[i * d] + 0.3 * numbers.next() > 0.0 {
                    1.0
                } else {
                    -1.0
                }
            })
            .collect();
        let rows = Rows::new(Dense::new(x, d).unwrap(), y, 1).unwrap();
        let late = |id: RowId| id.0 >= 90;
        let early = rows.filter(|id| !late(id));
        let new = rows.filter(late);
        let recipe = Logistic::new(1e-4);
        let learned = recipe.fit(&early).unwrap().learn(&early, &new).unwrap();
        let truth = parameters(&recipe.fit(&rows).unwrap());
        let size = distance(&truth, &vec![0.0; truth.len()]);
        assert!(
            distance(&parameters(&learned.model), &truth) <= 1e-4 * size,
            "seed {seed}"
        );
    }
}

/// A request to a wide model costs what its rows cost, not what a dense copy of them would.
#[test]
fn a_wide_model_projects_onto_the_columns_that_its_rows_touch() {
    let d = 200_000;
    let mut csr = Csr::<f32>::new(d);
    for i in 0..50u32 {
        csr.push(&[(i % 7, 1.0), (1000 + i * 31, 2.0), (150_000 + i, 1.0)])
            .unwrap();
    }
    let y: Vec<f64> = (0..50)
        .map(|i| if i % 7 < 3 { 1.0 } else { -1.0 })
        .collect();
    let rows = Rows::new(csr, y, 1).unwrap();
    let model = Logistic::new(0.5).fit(&rows).unwrap();
    let gone: Vec<RowId> = (0..20).map(RowId).collect();
    let outcome = methods::ProjectionResidual::default()
        .forget(&model, &rows, &gone)
        .unwrap();
    let before = parameters(&model);
    let after = parameters(&outcome.model);
    let moved = before.iter().zip(&after).filter(|(a, b)| a != b).count();
    assert!(moved > 0 && moved <= 7 + 2 * 20 + 1, "{moved}");
}
