//! Work that is asked to stop gives up with an error that says so, in every family, and can be
//! taken up again.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop and say where"
)]

use efface::ShardRecipe;
use efface::{
    Dense, Error, Fit, Form, GaussianNb, KMeans, LinearSvm, Logistic, MultinomialNb, Recipe, Ridge,
    RowId, Rows, Sisa, Stop,
};

fn rows(stop: &Stop) -> Rows {
    let n = 600;
    let x: Vec<f64> = (0..n * 2).map(|at| (at * 7 % 13) as f64).collect();
    let y: Vec<f64> = (0..n)
        .map(|at| if at * 5 % 7 < 3 { -1.0 } else { 1.0 })
        .collect();
    Rows::new(Dense::new(x, 2).unwrap(), y, 1)
        .unwrap()
        .watched(stop)
}

fn recipes() -> Vec<Recipe> {
    vec![
        Recipe::new(Ridge::default()),
        Recipe::new(Logistic::default()),
        Recipe::new(GaussianNb::default()),
        Recipe::new(MultinomialNb::default()),
        Recipe::new(KMeans::quantised(3, 0.1)),
        Recipe::new(KMeans::divided(3, 1, 2)),
        Recipe::new(Sisa::new(ShardRecipe::new(Ridge::default()).unwrap(), 2, 1)),
    ]
}

#[test]
fn a_fit_that_is_asked_to_stop_stops() {
    let stop = Stop::default();
    let rows = rows(&stop);
    for recipe in recipes() {
        stop.stop();
        assert_eq!(recipe.fit(&rows).unwrap_err(), Error::Stopped, "{recipe:?}");
        stop.reset();
        let model = recipe.fit(&rows).unwrap();
        // Copies of the rows listen to the same request.
        stop.stop();
        let forgotten = model.forget(&"retrain".parse().unwrap(), &rows, &[RowId(3)]);
        assert_eq!(forgotten.unwrap_err(), Error::Stopped, "{recipe:?}");
        stop.reset();
        assert_eq!(
            model
                .forget(&"retrain".parse().unwrap(), &rows, &[RowId(3)])
                .unwrap()
                .evidence
                .rows,
            599
        );
    }
}

#[test]
fn a_fit_tells_how_far_it_is() {
    let numbers: Vec<f64> = (0..4000)
        .map(|at| f64::from(at * 7919 % 1009) / 500.0 - 1.0)
        .collect();
    let targets: Vec<f64> = numbers
        .chunks(4)
        .map(|row| if row[0] + row[1] > 0.1 { 1.0 } else { -1.0 })
        .collect();
    let rows = Rows::new(Dense::new(numbers, 4).unwrap(), targets, 1).unwrap();
    for recipe in [
        Recipe::new(Logistic::new(0.1)),
        Recipe::new(LinearSvm::new(0.1)),
        Recipe::new(Ridge::new(0.1)),
        Recipe::new(Ridge::new(0.1).form(Form::Iterative)),
    ] {
        let stop = Stop::default();
        recipe.fit(&rows.clone().watched(&stop)).unwrap();
        let far = stop.progress();
        assert!(far.passes > 0, "{recipe:?}: {far:?}");
        assert!(far.share > 0.2 && far.share <= 1.0, "{recipe:?}: {far:?}");
    }
}
