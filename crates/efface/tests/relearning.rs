//! Relearning time on linear models: a model that forgot takes as long as a retrained one, a model
//! that did not is there at once.

#![allow(clippy::unwrap_used, missing_docs)]

use efface::eval::{LinearRelearning, RELEARNING_LIMIT, Relearning};
use efface::synthetic::LinearProblem;
use efface::{
    Csr, Dense, Error, Fit, GaussianNb, Logistic, Model, Recipe, Ridge, RowId, Rows, Softmax,
};

/// Rows of a linear problem whose targets are numbers, two classes or three.
fn rows(n: usize, width: usize, classes: usize) -> Rows {
    let problem = LinearProblem {
        rows: n,
        width,
        seed: 5,
    }
    .generate();
    let spread = (problem.y.iter().map(|y| y * y).sum::<f64>() / n as f64).sqrt();
    let outputs = if classes > 2 { 3 } else { 1 };
    let targets = problem.y.iter().flat_map(|y| match classes {
        0 => vec![*y],
        2 => vec![if *y > 0.0 { 1.0 } else { -1.0 }],
        _ => {
            let class = usize::from(*y > -0.4 * spread) + usize::from(*y > 0.4 * spread);
            (0..3).map(|c| f64::from(u8::from(c == class))).collect()
        }
    });
    let targets = targets.collect();
    Rows::new(Dense::new(problem.x, width).unwrap(), targets, outputs).unwrap()
}

/// Forgets the first ten rows by each method and measures how soon they are known again; `before`
/// stands for no method.
fn measured(recipe: &Recipe, rows: &Rows, methods: &[&str]) -> Vec<Relearning> {
    let gone: Vec<RowId> = (0..10).map(RowId).collect();
    let before = recipe.fit(rows).unwrap();
    let retrained = recipe.fit(&rows.filter(|id| id.0 >= 10)).unwrap();
    let forgotten = rows.filter(|id| id.0 < 10);
    let relearning = LinearRelearning::new(recipe, &before, &retrained, &forgotten).unwrap();
    let after = |method: &str| -> Model {
        match method {
            "before" => before.clone(),
            method => {
                before
                    .forget(&method.parse().unwrap(), rows, &gone)
                    .unwrap()
                    .model
            }
        }
    };
    methods
        .iter()
        .map(|method| relearning.measure(&after(method)).unwrap())
        .collect()
}

#[test]
fn who_did_not_forget_relearns_faster_than_the_retrained_model() {
    // One Newton step of a classifier overshoots a little here; the influence update of ridge stops
    // short.
    for (recipe, classes, exact, partial, range) in [
        (
            Recipe::new(Ridge::new(0.1)),
            0,
            "exact",
            "influence",
            0.2..1.0,
        ),
        (
            Recipe::new(Logistic::new(0.5)),
            2,
            "warm_start",
            "newton",
            0.8..1.2,
        ),
        (
            Recipe::new(Softmax::new(0.5)),
            3,
            "warm_start",
            "newton",
            0.8..1.2,
        ),
    ] {
        let found = measured(
            &recipe,
            &rows(120, 20, classes),
            &["before", exact, partial, "retrain"],
        );
        let [before, exact, partial, retrained] = found.as_slice() else {
            panic!("four were asked for")
        };
        // Nothing was forgotten: nothing is to be learned again.
        assert_eq!((before.steps, before.ratio), (Some(0), Some(0.0)));
        assert_eq!(retrained.ratio, Some(1.0), "{retrained:?}");
        assert!(retrained.retrained_steps.unwrap() >= 64, "{retrained:?}");
        assert!(
            (exact.ratio.unwrap() - 1.0).abs() <= 1.0 / 64.0,
            "{exact:?}"
        );
        assert!(range.contains(&partial.ratio.unwrap()), "{partial:?}");
        assert!(
            retrained.start_loss > retrained.target_loss,
            "the rows had taught the model something"
        );
    }
}

/// Columns in other units are the same problem: the step follows the columns' sizes.
#[test]
fn units_do_not_matter() {
    let plain = rows(120, 6, 2);
    let scaled = {
        let mut values = Vec::new();
        plain.iter().for_each(|row| {
            let mut line = vec![0.0; 6];
            row.features
                .each(|column, value| line[column] = value * 8f64.powi(column as i32));
            values.extend(line);
        });
        let targets = plain.iter().flat_map(|row| row.targets.to_vec()).collect();
        Rows::new(Dense::new(values, 6).unwrap(), targets, 1).unwrap()
    };
    // Hardly any penalty, because a penalty follows the units.
    let recipe = Recipe::new(Logistic::new(1e-9));
    let one = measured(&recipe, &plain, &["newton"]);
    let other = measured(&recipe, &scaled, &["newton"]);
    assert!(
        (one[0].ratio.unwrap() - other[0].ratio.unwrap()).abs() <= 2.0 / 64.0,
        "{one:?} {other:?}"
    );
}

#[test]
fn sparse_rows_and_models_without_an_intercept_count_the_same_steps() {
    let dense = rows(60, 5, 0);
    let mut table = Csr::<f64>::new(5);
    dense
        .iter()
        .for_each(|row| table.push(&row.features.entries()).unwrap());
    let targets = dense.iter().flat_map(|row| row.targets.to_vec()).collect();
    let sparse = Rows::new(table, targets, 1).unwrap();
    for intercept in [false, true] {
        let recipe = Recipe::new(Ridge::new(0.1).intercept(intercept));
        let of = |rows: &Rows| measured(&recipe, rows, &["influence"])[0];
        assert_eq!(of(&dense).steps, of(&sparse).steps);
        assert_eq!(of(&dense).limit, RELEARNING_LIMIT);
    }
}

#[test]
fn models_that_are_not_trained_by_gradients_are_refused() {
    let rows = rows(40, 3, 2);
    let recipe = Recipe::new(GaussianNb::default());
    let model = recipe.fit(&rows).unwrap();
    let refused = LinearRelearning::new(&recipe, &model, &model, &rows).unwrap_err();
    assert!(
        matches!(
            &refused,
            Error::Unsupported {
                method: "relearning",
                ..
            }
        ),
        "{refused}"
    );
    let ridge = Recipe::new(Ridge::new(1.0));
    assert!(LinearRelearning::new(&ridge, &model, &model, &rows).is_err());
}
