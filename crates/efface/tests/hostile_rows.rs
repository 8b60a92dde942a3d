//! Rows that were seen to make `exact` wrong, or to be refused for a penalty that was there. The
//! answer is exact, or the bound says that it is not.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should stop and say where"
)]

#[path = "support/long_arithmetic.rs"]
mod long_arithmetic;

use efface::methods::{Auto, Exact};
use efface::{Csr, Dense, Error, Fit, Forget, Form, Ridge, RidgeModel, RowId, RowStore, Rows};
use long_arithmetic::ridge_minimum;

const FORMS: [Form; 5] = [
    Form::Auto,
    Form::Factor,
    Form::Inverse,
    Form::Rows,
    Form::Iterative,
];

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

fn table(n: usize, d: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let mut numbers = Numbers(seed);
    let x: Vec<f64> = (0..n * d).map(|_| numbers.next()).collect();
    let y = (0..n)
        .map(|i| x[i * d] - 0.5 * x[i * d + d - 1] + 0.3 * numbers.next())
        .collect();
    (x, y)
}

/// The relative distance to the minimum over these rows.
fn off(model: &RidgeModel, rows: &Rows, lambda: f64) -> f64 {
    let truth = ridge_minimum(rows, rows.width(), lambda).unwrap().remove(0);
    let (coefficients, intercept) = model.parameters();
    let found = coefficients.col_as_slice(0).iter().chain(&intercept);
    let square: f64 = found.zip(&truth).map(|(a, b)| (a - b).powi(2)).sum();
    (square / truth.iter().map(|t| t * t).sum::<f64>()).sqrt()
}

fn is_about_a_penalty(error: &Error) -> bool {
    matches!(error, Error::Singular { .. } | Error::LeverageOne { .. })
}

#[test]
fn a_huge_row_leaves_nothing_behind() {
    for form in FORMS {
        for exponent in [3, 6, 7, 8, 9, 12, 15, 60, 140] {
            let (mut x, y) = table(50, 2, 3);
            x[14] *= 10f64.powi(exponent);
            x[15] *= 10f64.powi(exponent);
            let rows = Rows::new(Dense::new(x, 2).unwrap(), y, 1).unwrap();
            let model = Ridge::new(1.0).form(form).fit(&rows).unwrap();
            let outcome = Auto::default().forget(&model, &rows, &[RowId(7)]).unwrap();
            let left = rows.filter(|id| id != RowId(7));
            let truth = off(&outcome.model, &left, 1.0);
            let bound = outcome.evidence.relative_bound;
            assert!(
                truth < 1e-13 && truth <= bound && bound <= 1e-9,
                "{form:?} 1e{exponent}: {truth:e} {bound:e}"
            );
        }
    }
}

/// One large column must not hide what the others have lost.
#[test]
fn one_huge_entry_leaves_nothing_behind() {
    for form in FORMS {
        for exponent in [6, 9, 12] {
            let (mut x, y) = table(60, 3, 5);
            (0..60).for_each(|i| x[i * 3 + 2] = 1e6 * x[i * 3 + 2] + 1e7);
            x[21] = 10f64.powi(exponent);
            let rows = Rows::new(Dense::new(x, 3).unwrap(), y, 1).unwrap();
            let model = Ridge::new(1.0).form(form).fit(&rows).unwrap();
            let outcome = Auto::default().forget(&model, &rows, &[RowId(7)]).unwrap();
            let truth = off(&outcome.model, &rows.filter(|id| id != RowId(7)), 1.0);
            let bound = outcome.evidence.relative_bound;
            assert!(
                truth <= bound && truth < 1e-9,
                "{form:?} 1e{exponent}: {truth:e} {bound:e}"
            );
        }
    }
}

#[test]
fn the_iterative_form_is_right_far_from_zero() {
    for mean in [1e4, 1e5, 1e6] {
        for sparse in [false, true] {
            let (mut x, y) = table(200, 3, 11);
            (0..200).for_each(|i| {
                x[i * 3] += mean;
                x[i * 3 + 1] -= 3.0 * mean;
            });
            let rows = if sparse {
                let mut csr = Csr::<f64>::new(3);
                for line in x.chunks(3) {
                    let entries: Vec<(u32, f64)> = line
                        .iter()
                        .enumerate()
                        .map(|(j, x)| (j as u32, *x))
                        .collect();
                    csr.push(&entries).unwrap();
                }
                Rows::new(csr, y, 1).unwrap()
            } else {
                Rows::new(Dense::new(x, 3).unwrap(), y, 1).unwrap()
            };
            let model = Ridge::new(1.0).form(Form::Iterative).fit(&rows).unwrap();
            let outcome = Exact.forget(&model, &rows, &[RowId(5), RowId(9)]).unwrap();
            let left = rows.filter(|id| id != RowId(5) && id != RowId(9));
            let truth = off(&outcome.model, &left, 1.0);
            let bound = outcome.evidence.relative_bound;
            assert!(
                truth < 1e-12 && truth <= bound && bound <= 1e-9,
                "{mean:e} {sparse}: {truth:e} {bound:e}"
            );
        }
    }
}

/// Products of 0.1 round the same way every time, so that their errors add up over the rows.
#[test]
fn many_rows_are_charged_for() {
    for form in [Form::Factor, Form::Iterative] {
        let (mut x, y) = table(100_000, 2, 17);
        (0..100_000).for_each(|i| x[i * 2 + 1] = 0.1);
        let rows = Rows::new(Dense::new(x, 2).unwrap(), y, 1).unwrap();
        let model = Ridge::new(1.0).form(form).fit(&rows).unwrap();
        let evidence = Exact.forget(&model, &rows, &[RowId(3)]).unwrap();
        let truth = off(&evidence.model, &rows.filter(|id| id != RowId(3)), 1.0);
        let bound = evidence.evidence.relative_bound;
        assert!(
            truth <= bound && bound <= 1e-9,
            "{form:?}: {truth:e} {bound:e}"
        );
    }
}

#[test]
fn correlated_columns_have_a_bound_that_says_something() {
    let n = 1500;
    let d = 120;
    let (x, y) = table(n, d, 23);
    let mut numbers = Numbers(29);
    let mix: Vec<f64> = (0..d * d).map(|_| numbers.next()).collect();
    let mut mixed = vec![0.0; n * d];
    for i in 0..n {
        for k in 0..d {
            let value = x[i * d + k];
            (0..d).for_each(|j| mixed[i * d + j] += value * mix[k * d + j]);
        }
    }
    let rows = Rows::new(Dense::new(mixed, d).unwrap(), y, 1).unwrap();
    for form in [Form::Factor, Form::Inverse, Form::Rows] {
        let model = Ridge::new(1e-4).form(form).fit(&rows).unwrap();
        let outcome = Exact.forget(&model, &rows, &[RowId(3)]).unwrap();
        let truth = off(&outcome.model, &rows.filter(|id| id != RowId(3)), 1e-4);
        let bound = outcome.evidence.relative_bound;
        assert!(
            truth <= bound && bound <= 1e-9,
            "{form:?}: {truth:e} {bound:e}"
        );
        // Neither measured nor refined: the carried bound is enough.
        assert_eq!(
            (outcome.evidence.refinements, outcome.evidence.rows_read),
            (0, 1),
            "{form:?}"
        );
    }
}

/// Changes features, three a row, and targets.
type Spoil = dyn Fn(&mut Vec<f64>, &mut Vec<f64>);

/// Whatever comes in: an exact answer, or a bound that says otherwise, or a refusal that does not
/// ask for a penalty.
#[test]
fn numbers_at_the_edges_are_met_honestly() {
    let kinds: [(&str, &Spoil); 8] = [
        ("1e300 beside 1e-300", &|x, _| {
            x[0] = 1e300;
            x[4] = 1e-300;
        }),
        ("a row of 1e300", &|x, _| x[..3].fill(1e300)),
        ("a column of 1e-300", &|x, _| {
            (0..40).for_each(|i| x[i * 3] *= 1e-300)
        }),
        ("a constant column", &|x, _| {
            (0..40).for_each(|i| x[i * 3 + 1] = 7.3)
        }),
        ("a column times 1e12", &|x, _| {
            (0..40).for_each(|i| x[i * 3 + 1] = 1e12 * x[i * 3])
        }),
        ("targets of 1e15", &|_, y| {
            y.iter_mut().for_each(|y| *y *= 1e15)
        }),
        ("one target of 1e15", &|_, y| y[5] = 1e15),
        ("denormals", &|x, y| {
            (0..40).for_each(|i| x[i * 3 + 2] = 5e-324 * (i % 7) as f64);
            y[3] = 1e-310;
        }),
    ];
    for (kind, spoil) in kinds {
        for lambda in [1e-6, 1.0] {
            for form in FORMS {
                let (mut x, mut y) = table(40, 3, 31);
                spoil(&mut x, &mut y);
                let rows = Rows::new(Dense::new(x, 3).unwrap(), y, 1).unwrap();
                let name = format!("{kind}, λ = {lambda}, {form:?}");
                let model = match Ridge::new(lambda).form(form).fit(&rows) {
                    Ok(model) => model,
                    Err(error) => {
                        assert!(!is_about_a_penalty(&error), "{name}: {error}");
                        continue;
                    }
                };
                for gone in [vec![RowId(0)], vec![RowId(5), RowId(6)]] {
                    let outcome = match Auto::default().forget(&model, &rows, &gone) {
                        Ok(outcome) => outcome,
                        Err(error) => {
                            assert!(!is_about_a_penalty(&error), "{name}: {error}");
                            continue;
                        }
                    };
                    let truth = off(
                        &outcome.model,
                        &rows.filter(|id| !gone.contains(&id)),
                        lambda,
                    );
                    let bound = outcome.evidence.relative_bound;
                    assert!(
                        truth <= bound || truth.is_nan(),
                        "{name}: {truth:e} > {bound:e}"
                    );
                }
            }
        }
    }
}

/// A number of threads may come from a file. The linear algebra makes a task for each, so that it
/// must be bounded.
#[test]
fn any_number_of_threads_ends() {
    let values: Vec<f64> = (0..600)
        .map(|at| f64::from(at * 37 % 101) / 50.0 - 1.0)
        .collect();
    let targets: Vec<f64> = (0..200).map(|at| f64::from(at % 2) * 2.0 - 1.0).collect();
    let rows = Rows::new(Dense::new(values, 3).unwrap(), targets, 1).unwrap();
    assert!(Ridge::new(1.0).threads(usize::MAX).fit(&rows).is_ok());
    assert!(
        efface::Logistic::new(1.0)
            .threads(usize::MAX)
            .fit(&rows)
            .is_ok()
    );
}
