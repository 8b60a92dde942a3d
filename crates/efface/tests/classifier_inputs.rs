//! Classifiers on rows that no one would choose: sizes from 1e-300 to 1e300, constant columns,
//! columns that are multiples of each other, denormal numbers. An answer is near the optimum of the
//! retained rows, or its bound says how far it may be; an error never advises a penalty that is
//! there.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop and say where"
)]

use efface::methods;
use efface::models::logistic::LogisticModel;
use efface::{Dense, Family, Fit, Forget, Logistic, Method, RowId, Rows};

/// A small generator, so that the cases do not depend on any crate's stream.
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

const WIDTH: usize = 3;

/// Rows of two or three classes whose features `spoil` may change.
fn rows(classes: usize, spoil: impl Fn(usize, &mut [f64])) -> Rows {
    let mut numbers = Numbers(5);
    let mut x = Vec::new();
    let mut y = Vec::new();
    for i in 0..60 {
        let mut row: Vec<f64> = (0..WIDTH).map(|_| numbers.next()).collect();
        let score = row[0] - row[1] + 0.8 * numbers.next();
        match classes {
            2 => y.push(if score > 0.0 { 1.0 } else { -1.0 }),
            _ => {
                let class = if score > 0.4 {
                    2
                } else {
                    (score > -0.4) as usize
                };
                y.extend((0..3).map(|c| (c == class) as u8 as f64));
            }
        }
        spoil(i, &mut row);
        x.extend(row);
    }
    Rows::new(
        Dense::new(x, WIDTH).unwrap(),
        y,
        if classes == 2 { 1 } else { 3 },
    )
    .unwrap()
}

fn fit(rows: &Rows, classes: usize, lambda: f64) -> efface::Result<LogisticModel> {
    let logistic = Logistic {
        tolerance: 1e-6,
        ..Logistic::new(lambda)
    };
    if classes == 2 {
        logistic.fit(rows)
    } else {
        logistic.softmax().fit(rows)
    }
}

fn parameters(model: &LogisticModel) -> Vec<f64> {
    let (coefficients, intercept) = model.parameters();
    let columns = (0..coefficients.ncols()).flat_map(|c| coefficients.col_as_slice(c).to_vec());
    columns.chain(intercept).collect()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).powi(2))
        .sum::<f64>()
        .sqrt()
}

/// Fits and forgets row 7 and one other by every method, and holds every answer to its bound. How
/// many answers there were.
fn hold(name: &str, spoil: impl Fn(usize, &mut [f64]) + Copy) -> usize {
    let mut answers = 0;
    for (classes, lambda) in [(2, 1.0), (3, 1.0), (2, 1e-3), (3, 1e-3)] {
        let rows = rows(classes, spoil);
        let honest = |error: efface::Error| {
            let text = error.to_string();
            assert!(
                !text.contains("penalty above 0"),
                "{name}, {classes} classes, λ = {lambda}: {text}"
            );
        };
        let model = match fit(&rows, classes, lambda) {
            Ok(model) => model,
            Err(error) => {
                honest(error);
                continue;
            }
        };
        for gone in [[RowId(7)], [RowId(20)]] {
            let retained = rows.filter(|id| !gone.contains(&id));
            let Ok(truth) = fit(&retained, classes, lambda) else {
                continue;
            };
            let slack = efface::Forget::forget(&methods::Retrain, &truth, &retained, &[])
                .unwrap()
                .evidence
                .bound;
            let truth = parameters(&truth);
            for method in Method::all_for(Family::Softmax) {
                let context = format!(
                    "{} on {name}, {classes} classes, λ = {lambda}, {gone:?}",
                    method.name()
                );
                let outcome = match method.forget(&model, &rows, &gone) {
                    Ok(outcome) => outcome,
                    Err(error) => {
                        honest(error);
                        continue;
                    }
                };
                let away = distance(&parameters(&outcome.model), &truth);
                let evidence = outcome.evidence;
                assert!(
                    away <= evidence.bound + slack,
                    "{context}: {away:.2e}, {:.2e}",
                    evidence.bound
                );
                let size = distance(&truth, &vec![0.0; truth.len()]);
                let promises = matches!(method.name(), "retrain" | "warm_start" | "auto");
                // Once the giant is gone, nothing stands in the way of a model that knows itself.
                let easy = name.starts_with("a row of") && gone == [RowId(7)];
                assert!(
                    !(promises && easy) || evidence.relative_bound <= 1e-6,
                    "{context}: {evidence:?}"
                );
                if promises && evidence.relative_bound <= 1e-6 {
                    assert!(
                        away <= 1e-6 * size + slack,
                        "{context}: {away:.2e} of {size:.2e}"
                    );
                }
                answers += 1;
            }
        }
    }
    answers
}

/// Four models, two requests, seven methods.
const ALL: usize = 4 * 2 * 7;

#[test]
fn rows_of_all_sizes_in_one_table() {
    let answers = hold("1e300 and 1e-300", |i, row| match i {
        7 => row[0] = 1e300,
        8 => row[1] = 1e-300,
        _ => (),
    });
    assert_eq!(answers, ALL);
    for size in [1e3, 1e6, 1e9, 1e12, 1e100, 1e150] {
        let answers = hold(&format!("a row of {size:e}"), |i, row| {
            if i == 7 {
                row.iter_mut().for_each(|x| *x *= size);
            }
        });
        assert_eq!(answers, ALL, "{size:e}");
    }
}

#[test]
fn a_constant_column_of_any_size() {
    for value in [1.0, 1e9, 1e300, 1e-300] {
        let answers = hold(&format!("a constant column of {value:e}"), |_, row| {
            row[2] = value
        });
        assert_eq!(answers, ALL, "{value:e}");
    }
}

#[test]
fn a_column_that_is_another_times_a_trillion() {
    assert_eq!(
        hold("a column times 1e12", |_, row| row[2] = 1e12 * row[0]),
        ALL
    );
}

#[test]
fn denormal_numbers() {
    assert_eq!(hold("a denormal column", |_, row| row[2] *= 1e-310), ALL);
    let entries = hold("denormal entries", |i, row| {
        if i % 5 == 0 {
            row[1] = 5e-324;
        }
    });
    assert_eq!(entries, ALL);
}
