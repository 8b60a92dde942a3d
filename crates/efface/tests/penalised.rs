//! Support vector machines and Poisson regression: what they forget, and what their bounds are
//! worth.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should stop and say where"
)]

use efface::methods::contract;
use efface::models::penalised::{Penalised, PenalisedLoss};
use efface::rows::RowStore;
use efface::{
    Amend, Csr, Dense, Error, Family, Features, Fit, Forget, LinearSvm, Method, Model,
    PenalisedModel, PoissonRegression, Recipe, RowId, Rows,
};

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

/// Rows of `width` numbers; targets are classes where there are some, else counts.
fn rows(kind: &str, count: usize, width: usize, classes: usize) -> Rows {
    let mut numbers = Numbers(count as u64 * 31 + width as u64);
    let mut values = Vec::new();
    let mut targets = Vec::new();
    for _ in 0..count {
        let row: Vec<f64> = (0..width)
            .map(|_| match numbers.next() {
                value if kind == "sparse" && value < 0.5 => 0.0,
                value => value,
            })
            .collect();
        let score = row
            .iter()
            .enumerate()
            .map(|(at, x)| x * ((at % 5) as f64 - 2.0))
            .sum::<f64>()
            + numbers.next();
        match classes {
            0 => targets.push((score.exp() + 0.3).floor()),
            2 => targets.push(if score > 0.0 { 1.0 } else { -1.0 }),
            _ => {
                let class = if score < -1.0 {
                    0
                } else if score < 1.0 {
                    1
                } else {
                    2
                };
                targets.extend((0..classes).map(|at| f64::from(u8::from(at == class))));
            }
        }
        values.extend(row);
    }
    let outputs = if classes < 3 { 1 } else { classes };
    let features: Features = if kind == "sparse" {
        let mut table = Csr::<f64>::new(width);
        for row in values.chunks(width) {
            let entries: Vec<(u32, f64)> = (0..)
                .zip(row.iter().copied())
                .filter(|(_, value)| *value != 0.0)
                .collect();
            table.push(&entries).unwrap();
        }
        table.into()
    } else {
        Dense::new(values, width).unwrap().into()
    };
    let rows = Rows::new(features, targets, outputs).unwrap();
    if kind == "weighted" {
        return rows
            .weighted((0..count).map(|at| [1.0, 0.25, 3.0][at % 3]).collect())
            .unwrap();
    }
    rows
}

fn flat<L: PenalisedLoss>(model: &PenalisedModel<L>) -> Vec<f64> {
    let (coefficients, constants) = model.parameters();
    let columns = (0..coefficients.ncols()).flat_map(|at| coefficients.col_as_slice(at).to_vec());
    columns.chain(constants).collect()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).powi(2))
        .sum::<f64>()
        .sqrt()
}

fn reload<L: PenalisedLoss>(
    model: &PenalisedModel<L>,
    _rows: &dyn RowStore,
) -> efface::Result<PenalisedModel<L>> {
    let recipe = Recipe::new(*model.settings());
    let state = Model::new(model.clone()).to_state()?;
    let restored = recipe.restore(state, efface::models::RowsBeside::None)?;
    Ok(restored.get::<PenalisedModel<L>>().unwrap().clone())
}

fn hold<L: PenalisedLoss>(family: Family, recipe: Penalised<L>, rows: &Rows, name: &str) {
    let gone: Vec<RowId> = rows.ids().step_by(7).collect();
    let case = contract::Case {
        name,
        recipe: &recipe,
        rows,
        gone: &gone,
        parameters: &flat,
        reload: &reload,
        tolerance: 1e-6,
        noise: 0.0,
    };
    for method in Method::all_for(family) {
        if let Err(violation) = contract::check(&method, &case) {
            panic!("{violation}");
        }
    }
}

#[test]
fn every_method_keeps_the_contract() {
    for kind in ["dense", "sparse", "weighted"] {
        for intercept in [false, true] {
            for classes in [2, 3] {
                let rows = rows(kind, 90, 6, classes);
                let recipe = LinearSvm::new(0.5).intercept(intercept);
                hold(
                    Family::LinearSvm,
                    recipe,
                    &rows,
                    &format!("{kind} svm {intercept} {classes}"),
                );
            }
            let rows = rows(kind, 90, 6, 0);
            let recipe = PoissonRegression::new(0.05).intercept(intercept);
            hold(
                Family::Poisson,
                recipe,
                &rows,
                &format!("{kind} poisson {intercept}"),
            );
        }
    }
}

/// The bound of one Newton step holds, and is no mere formality: it is within a factor of the
/// distance.
fn bound_holds<L: PenalisedLoss>(recipe: Penalised<L>, rows: &Rows) {
    let model = recipe.fit(rows).unwrap();
    let newton: Method = "newton".parse().unwrap();
    for gone in [vec![RowId(3)], (0..30).map(RowId).collect()] {
        let outcome = newton.forget(&model, rows, &gone).unwrap();
        let truth = recipe.fit(&rows.filter(|id| !gone.contains(&id))).unwrap();
        let apart = distance(&flat(&outcome.model), &flat(&truth));
        assert!(
            apart <= outcome.evidence.bound,
            "{apart} and {}",
            outcome.evidence.bound
        );
        assert!(
            outcome.evidence.bound.is_finite()
                && outcome.evidence.rows_read == rows.len() - gone.len()
        );
        let exact = Method::default().forget(&model, rows, &gone).unwrap();
        assert!(distance(&flat(&exact.model), &flat(&truth)) < 1e-9);
        assert!(exact.evidence.relative_bound < 1e-6, "{:?}", exact.evidence);
    }
}

#[test]
fn bounds_from_the_gradient_hold() {
    bound_holds(LinearSvm::new(1.0), &rows("dense", 200, 5, 2));
    bound_holds(PoissonRegression::new(0.1), &rows("dense", 200, 5, 0));
}

#[test]
fn rows_that_join_and_change_are_those_of_a_fit() {
    let all = rows("dense", 60, 4, 0);
    let recipe = PoissonRegression::new(0.1);
    let first = all.filter(|id| id.0 < 50);
    let model = recipe.fit(&first).unwrap();
    let learned = model.learn(&first, &all.filter(|id| id.0 >= 50)).unwrap();
    assert!(distance(&flat(&learned.model), &flat(&recipe.fit(&all).unwrap())) < 1e-9);
    assert_eq!((learned.evidence.learned, learned.evidence.rows), (10, 60));
}

#[test]
fn wide_models_take_the_same_steps_without_a_hessian() {
    let narrow = rows("sparse", 80, 40, 2);
    let mut wide = Csr::<f64>::new(3000);
    narrow
        .iter()
        .for_each(|row| wide.push(&row.features.entries()).unwrap());
    let wide = narrow.with_features(wide).unwrap();
    let recipe = LinearSvm::new(0.3);
    let (narrow, constant) = recipe.fit(&narrow).unwrap().parameters();
    let (wide, other) = recipe.fit(&wide).unwrap().parameters();
    assert!(distance(narrow.col_as_slice(0), &wide.col_as_slice(0)[..40]) < 1e-7);
    assert!((constant[0] - other[0]).abs() < 1e-7);
    // A column that no row has is 0, and not nearly so.
    assert!(
        wide.col_as_slice(0)[40..]
            .iter()
            .all(|weight| *weight == 0.0)
    );
}

#[test]
fn what_cannot_be_fitted_is_refused() {
    let table = |targets: Vec<f64>| {
        Rows::new(Dense::new(vec![1.0, 2.0, 3.0], 1).unwrap(), targets, 1).unwrap()
    };
    assert!(matches!(
        LinearSvm::new(1.0).fit(&table(vec![0.0, 1.0, 1.0])),
        Err(Error::NotAClass { .. })
    ));
    assert!(matches!(
        PoissonRegression::new(1.0).fit(&table(vec![0.0, -1.0, 1.0])),
        Err(Error::NotAClass { .. })
    ));
    let error = PoissonRegression::new(1.0)
        .fit(&table(vec![0.0; 3]))
        .unwrap_err();
    assert!(error.to_string().contains("all targets are 0"), "{error}");
    assert!(
        PoissonRegression::new(1.0)
            .intercept(false)
            .fit(&table(vec![0.0; 3]))
            .is_ok()
    );
    for lambda in [0.0, -1.0, f64::NAN] {
        assert!(matches!(
            LinearSvm::new(lambda).fit(&table(vec![1.0; 3])),
            Err(Error::Parameter { .. })
        ));
    }
}
