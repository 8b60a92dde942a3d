//! Classifiers: every method held to the contract, the bounds held to the truth, bad input refused.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop and say where")]

use efface::methods::{self, Auto, Newton, contract};
use efface::models::logistic::LogisticModel;
use efface::{
    Amend, Csr, Dense, Error, Features, Fit, Forget, Logistic, Predict, RowId, RowStore, Rows, Softmax,
};

/// A small generator, so that the cases do not depend on any crate's stream.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 11) as f64) / (1u64 << 52) as f64 - 1.0
    }
}

/// Rows of `classes` classes; two classes have one target, ±1.
fn rows(kind: &str, n: usize, d: usize, classes: usize, seed: u64) -> Rows {
    let mut numbers = Numbers(seed * 7919 + n as u64 * 31 + d as u64);
    let mut dense = Vec::with_capacity(n * d);
    let mut targets = Vec::new();
    for _ in 0..n {
        let row: Vec<f64> = (0..d)
            .map(|j| match kind {
                "sparse" => {
                    let x = numbers.next();
                    if x > 0.6 { (x * 10.0).round() } else { 0.0 }
                }
                // Column 0 is far from 0 compared with its spread, column 1 in other units.
                "units" if j == 0 => 1.7e3 + numbers.next(),
                "units" if j == 1 => 1e6 * numbers.next(),
                _ => numbers.next(),
            })
            .collect();
        let unit = |j: usize| if kind == "units" && j < 2 { 1e-6 } else { 1.0 };
        let mut best = (0, f64::NEG_INFINITY);
        for class in 0..classes {
            let score: f64 =
                row.iter().enumerate().map(|(j, x)| x * unit(j) * (((j + 2 * class) % 5) as f64 - 2.0)).sum();
            let score = score + 3.0 * numbers.next();
            if score > best.1 {
                best = (class, score);
            }
        }
        match classes {
            2 => targets.push(if best.0 == 1 { 1.0 } else { -1.0 }),
            _ => targets.extend((0..classes).map(|class| (class == best.0) as u8 as f64)),
        }
        dense.extend(row);
    }
    let ids = (0..n as u64).map(|i| RowId(1000 + 3 * i)).collect();
    let features: Features = match kind {
        "sparse" => {
            let mut csr = Csr::<f32>::new(d);
            for row in dense.chunks(d) {
                let entries: Vec<(u32, f64)> =
                    row.iter().enumerate().filter(|(_, x)| **x != 0.0).map(|(j, x)| (j as u32, *x)).collect();
                csr.push(&entries).unwrap();
            }
            csr.into()
        }
        "single" => Dense::new(dense.iter().map(|x| *x as f32).collect(), d).unwrap().into(),
        _ => Dense::new(dense, d).unwrap().into(),
    };
    let outputs = if classes == 2 { 1 } else { classes };
    let rows = Rows::with_ids(ids, features, targets, outputs).unwrap();
    if kind == "weighted" {
        return rows.weighted((0..n).map(|i| [1.0, 0.25, 3.0, 0.0][i % 4]).collect()).unwrap();
    }
    rows
}

fn parameters(model: &LogisticModel) -> Vec<f64> {
    let (coefficients, intercept) = model.parameters();
    let columns = (0..coefficients.ncols()).flat_map(|j| coefficients.col_as_slice(j).to_vec());
    columns.chain(intercept).collect()
}

fn distance(a: &LogisticModel, b: &LogisticModel) -> f64 {
    parameters(a).iter().zip(parameters(b)).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

fn reload(model: &LogisticModel, rows: &dyn RowStore) -> efface::Result<LogisticModel> {
    let mut model = model.clone();
    model.settle()?;
    LogisticModel::from_state(model.to_state()?, rows)
}

fn hold(kind: &str, classes: usize, lambda: f64, intercept: bool, curvature: bool, k: usize) {
    let (n, d) = (120, 8);
    let rows = rows(kind, n, d, classes, 1);
    let gone: Vec<RowId> = rows.ids().step_by(5).take(k).collect();
    let name =
        format!("{kind} classes={classes} λ={lambda} intercept={intercept} curvature={curvature} k={k}");
    let logistic = Logistic::new(lambda).intercept(intercept).curvature(curvature).tolerance(1e-9);
    let softmax = Softmax::new(lambda).intercept(intercept).curvature(curvature).tolerance(1e-9);
    let recipe: &dyn Fit<Model = LogisticModel> = if classes == 2 { &logistic } else { &softmax };
    let case = contract::Case {
        name: &name,
        recipe,
        rows: &rows,
        gone: &gone,
        parameters: &parameters,
        reload: &reload,
        tolerance: 1e-7,
    };
    let mut all = methods::for_classifiers();
    all.push(Box::new(Newton { steps: 3, measure: true }));
    all.push(Box::new(Auto { tolerance: Some(1e-3) }));
    for method in all {
        if let Err(violation) = contract::check(method.as_ref(), &case) {
            panic!("{violation}");
        }
    }
}

#[test]
fn two_classes() {
    for intercept in [false, true] {
        hold("dense", 2, 1.0, intercept, true, 7);
        hold("sparse", 2, 0.1, intercept, true, 5);
    }
    hold("single", 2, 1e-2, true, true, 1);
    hold("weighted", 2, 0.5, true, true, 9);
    hold("units", 2, 1.0, true, true, 4);
    hold("dense", 2, 0.0, true, true, 3);
}

#[test]
fn many_classes() {
    for intercept in [false, true] {
        hold("dense", 4, 1.0, intercept, true, 2);
        hold("sparse", 3, 0.1, intercept, true, 5);
    }
    hold("weighted", 3, 0.5, true, true, 9);
    hold("units", 3, 1.0, true, true, 4);
    hold("dense", 3, 0.0, true, true, 2);
}

#[test]
fn without_curvature() {
    hold("dense", 2, 1.0, true, false, 7);
    hold("sparse", 3, 0.5, true, false, 3);
    hold("weighted", 2, 0.5, false, false, 9);
}

#[test]
fn more_rows_than_parameters() {
    hold("dense", 2, 1.0, true, true, 20);
    hold("sparse", 3, 1.0, true, true, 20);
}
