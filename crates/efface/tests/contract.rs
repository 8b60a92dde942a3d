//! Every method on every form, over rows of every kind.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should stop and say where"
)]

use efface::methods::contract;
use efface::rows::RowStore;
use efface::{Csr, Dense, Family, Features, Forget, Form, Method, Ridge, RidgeModel, RowId, Rows};

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

fn rows(kind: &str, n: usize, d: usize, outputs: usize) -> Rows {
    let mut numbers = Numbers(n as u64 * 31 + d as u64);
    let dense: Vec<f64> = (0..n * d)
        .map(|at| match kind {
            "sparse" | "sparse units" => {
                let x = numbers.next();
                let unit = if kind == "sparse units" && at % d == 1 {
                    1e5
                } else {
                    1.0
                };
                if x > 0.6 {
                    (x * 10.0).round() * unit
                } else {
                    0.0
                }
            }
            // Column 0 is far from 0 compared with its spread, column 1 in other units.
            "units" if at % d == 0 => 1.7e3 + numbers.next(),
            "units" if at % d == 1 => 1e6 * numbers.next(),
            _ => numbers.next(),
        })
        .collect();
    let targets: Vec<f64> = (0..n * outputs)
        .map(|at| {
            let row = &dense[at / outputs * d..(at / outputs + 1) * d];
            row.iter()
                .enumerate()
                .map(|(j, x)| x * ((j % 5) as f64 - 2.0))
                .sum::<f64>()
                + numbers.next()
        })
        .collect();
    let ids = (0..n as u64).map(|i| RowId(1000 + 3 * i)).collect();
    let features: Features = match kind {
        "sparse" | "sparse units" => {
            let mut csr = Csr::<f32>::new(d);
            for row in dense.chunks(d) {
                let entries: Vec<(u32, f64)> = row
                    .iter()
                    .enumerate()
                    .filter(|(_, x)| **x != 0.0)
                    .map(|(j, x)| (j as u32, *x))
                    .collect();
                csr.push(&entries).unwrap();
            }
            csr.into()
        }
        "single" => Dense::new(dense.iter().map(|x| *x as f32).collect(), d)
            .unwrap()
            .into(),
        _ => Dense::new(dense, d).unwrap().into(),
    };
    let rows = Rows::with_ids(ids, features, targets, outputs).unwrap();
    if kind == "weighted" {
        let weights = (0..n).map(|i| [1.0, 0.25, 3.0, 0.0][i % 4]).collect();
        return rows.weighted(weights).unwrap();
    }
    rows
}

fn parameters(model: &RidgeModel) -> Vec<f64> {
    let (coefficients, intercept) = model.parameters();
    let columns = (0..coefficients.ncols()).flat_map(|j| coefficients.col_as_slice(j).to_vec());
    columns.chain(intercept).collect()
}

fn reload(model: &RidgeModel, rows: &dyn RowStore) -> efface::Result<RidgeModel> {
    RidgeModel::from_state_with_rows(&model.to_state()?, rows)
}

fn hold(kind: &str, form: Form, lambda: f64, intercept: bool, outputs: usize, k: usize) {
    let n = 90;
    let d = 12;
    let rows = rows(kind, n, d, outputs);
    let gone: Vec<RowId> = rows.ids().step_by(5).take(k).collect();
    let recipe = Ridge::new(lambda).intercept(intercept).form(form);
    let name = format!("{kind} {form:?} λ={lambda} intercept={intercept} outputs={outputs} k={k}");
    let case = contract::Case {
        name: &name,
        recipe: &recipe,
        rows: &rows,
        gone: &gone,
        parameters: &parameters,
        reload: &reload,
        tolerance: 1e-9,
        noise: 0.0,
    };
    for method in Method::all_for(Family::Ridge) {
        if form == Form::Iterative && method.name() == "summation" {
            continue;
        }
        if let Err(violation) = contract::check(&method, &case) {
            panic!("{violation}");
        }
    }
}

#[test]
fn dense_rows() {
    for form in [Form::Factor, Form::Inverse, Form::Rows] {
        for intercept in [false, true] {
            hold("dense", form, 0.5, intercept, 1, 7);
        }
        hold("single", form, 1e-3, true, 3, 1);
        hold("dense", form, 0.0, true, 2, 5);
    }
}

#[test]
fn weighted_rows() {
    for form in [Form::Factor, Form::Inverse, Form::Rows] {
        hold("weighted", form, 0.1, true, 2, 9);
    }
}

#[test]
fn rows_in_unlike_units() {
    for form in [Form::Factor, Form::Inverse, Form::Rows] {
        hold("units", form, 1.0, true, 1, 6);
    }
}

#[test]
fn sparse_rows() {
    for form in [Form::Factor, Form::Inverse, Form::Rows] {
        hold("sparse", form, 1e-2, true, 2, 8);
        hold("sparse", form, 1e-2, false, 1, 8);
        hold("sparse units", form, 1e-2, true, 1, 8);
    }
}

#[test]
fn iterative_form() {
    hold("sparse", Form::Iterative, 0.1, true, 2, 4);
    hold("sparse", Form::Iterative, 0.1, false, 1, 4);
    hold("dense", Form::Iterative, 0.5, true, 1, 3);
}

#[test]
fn more_rows_than_features() {
    for form in [Form::Factor, Form::Inverse, Form::Rows] {
        hold("dense", form, 0.5, true, 1, 17);
    }
}

#[test]
fn the_iterative_form_refuses_summation() {
    let rows = rows("sparse", 30, 8, 1);
    let model = efface::Fit::fit(&Ridge::new(0.1).form(Form::Iterative), &rows).unwrap();
    let summation = "summation".parse::<Method>().unwrap();
    let error = summation.forget(&model, &rows, &[RowId(1000)]).unwrap_err();
    assert!(error.to_string().contains("use exact"), "{error}");
}
