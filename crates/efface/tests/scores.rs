//! Scores are scikit-learn's. The figures below were printed by scikit-learn 1.9.1 with numpy 2.4.6
//! for the same formulas.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop and say where"
)]

use efface::models::ScoreKind;
use efface::scores::{
    PENALTY_CANDIDATES, QualityScores, ScoreTally, choose_penalty, probabilities,
};
use efface::synthetic::LinearProblem;
use efface::{Classes, Dense, Fit, Form, Logistic, Predict, Recipe, Ridge, Rows};

const ROWS: usize = 200;

fn own_class(row: usize) -> usize {
    (row * 7 + row / 5) % 3
}

fn score(row: usize, class: usize) -> f64 {
    (row as f64 * 1.3 + class as f64 * 2.1).sin() + if own_class(row) == class { 0.8 } else { 0.0 }
}

fn names(count: usize) -> Classes {
    Classes::new((0..count).map(|class| class.to_string()).collect()).unwrap()
}

fn near(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() < 1e-12,
        "{found} is not {expected}"
    );
}

#[test]
fn three_classes() {
    let classes = names(3);
    let mut tally = ScoreTally::classes(ScoreKind::LogOdds, &classes);
    for row in 0..ROWS {
        let mut targets = Vec::new();
        classes.encode(own_class(row), &mut targets);
        tally.push(&[score(row, 0), score(row, 1), score(row, 2)], &targets);
    }
    let found = tally.finish().unwrap().classes.unwrap();
    near(found.accuracy, 0.505);
    near(found.log_loss.unwrap(), 0.836_585_474_781_279_3);
    near(found.auc.unwrap(), 0.801_527_777_777_777_7);
    near(found.macro_f1, 0.503_927_761_903_707_1);
    let f1 = [
        0.510_067_114_093_959_8,
        0.506_666_666_666_666_7,
        0.495_049_504_950_495_05,
    ];
    found
        .per_class
        .iter()
        .zip(f1)
        .for_each(|(class, expected)| near(class.f1, expected));
    near(found.per_class[2].recall, 0.625);
    near(found.baseline_accuracy, 0.4);
    // Shares of 80, 80 and 40 rows.
    near(
        found.baseline_log_loss.unwrap(),
        -(0.8 * 0.4_f64.ln() + 0.2 * 0.2_f64.ln()),
    );
}

#[test]
fn two_classes() {
    let classes = names(2);
    let mut tally = ScoreTally::classes(ScoreKind::LogOdds, &classes);
    for row in 0..ROWS {
        let mut targets = Vec::new();
        classes.encode(usize::from(own_class(row) == 1), &mut targets);
        tally.push(&[3.0 * score(row, 1) - 1.0], &targets);
    }
    let found = tally.finish().unwrap().classes.unwrap();
    near(found.accuracy, 0.605);
    near(found.log_loss.unwrap(), 0.661_642_817_353_705_1);
    near(found.auc.unwrap(), 0.757_5);
    near(found.per_class[1].f1, 0.563_535_911_602_21);
}

#[test]
fn numbers_far_from_zero() {
    let mut tally = ScoreTally::numbers(ScoreKind::Values, &["y".into()]);
    for row in 0..ROWS {
        let target = 1e6 + (row as f64 * 0.7).sin() * 5.0;
        tally.push(&[target + (row as f64 * 2.9).cos()], &[target]);
    }
    let found = tally.finish().unwrap();
    assert!(found.worse_than_constant().is_empty());
    let output = &found.numbers[0];
    assert!((output.rmse - 0.711_076_030_365_471).abs() < 1e-10);
    assert!((output.r2.unwrap() - 0.959_398_654_300_113_6).abs() < 1e-10);
    assert!((output.baseline_rmse - 3.528_952_600_992_458_3).abs() < 1e-9);
}

#[test]
fn what_has_no_figure_has_none() {
    assert!(
        ScoreTally::numbers(ScoreKind::Values, &["y".into()])
            .finish()
            .is_none()
    );
    let mut constant = ScoreTally::numbers(ScoreKind::Values, &["y".into()]);
    constant.push(&[1.5], &[2.0]);
    constant.push(&[2.0], &[2.0]);
    let found = constant.finish().unwrap();
    assert_eq!(found.numbers[0].r2, None);
    assert_eq!(found.worse_than_constant().len(), 1);
    // Values that stand for classes have no probabilities; a class that nobody has has no curve.
    let classes = names(2);
    let mut ridge = ScoreTally::classes(ScoreKind::Values, &classes);
    ridge.push(&[0.3], &[1.0]);
    ridge.push_unknown(&[0.3]);
    let found = ridge.finish().unwrap();
    assert_eq!(found.unknown_classes, 1);
    let found = found.classes.unwrap();
    assert_eq!(
        (found.log_loss, found.auc, found.accuracy),
        (None, None, 0.5)
    );
    // A sure and wrong answer costs as much as in scikit-learn, and no more.
    let mut sure = ScoreTally::classes(ScoreKind::LogOdds, &classes);
    sure.push(&[1e9], &[-1.0]);
    let loss = sure.finish().unwrap().classes.unwrap().log_loss.unwrap();
    near(loss, -f64::EPSILON.ln());
    assert_eq!(
        probabilities(ScoreKind::LogOdds, &[-1e9]),
        Some(vec![1.0, 0.0])
    );
    assert_eq!(
        probabilities(ScoreKind::LogLikelihoods, &[f64::NEG_INFINITY, -700.0]),
        Some(vec![0.0, 1.0])
    );
}

#[test]
fn folds_are_averaged() {
    let fold = |errors: &[f64]| {
        let mut tally = ScoreTally::numbers(ScoreKind::Values, &["y".into()]);
        for (at, error) in errors.iter().enumerate() {
            tally.push(&[at as f64 + error], &[at as f64]);
        }
        tally.finish().unwrap()
    };
    let folds = [fold(&[1.0, -1.0]), fold(&[2.0, 2.0, -2.0])];
    let mean = QualityScores::mean_of(&folds).unwrap();
    assert_eq!((mean.rows, mean.numbers[0].rmse), (5, 1.5));
}

/// The chosen penalty has the least leave-one-out error of all, found by truly leaving rows out; a
/// classifier is judged by folds.
#[test]
fn the_chosen_penalty_is_the_best_of_the_candidates() {
    let data = LinearProblem {
        rows: 40,
        width: 12,
        seed: 5,
    }
    .generate();
    let targets: Vec<f64> = data
        .y
        .iter()
        .enumerate()
        .map(|(i, y)| y + 6.0 * (i as f64 * 2.3).sin())
        .collect();
    let rows = Rows::new(Dense::new(data.x.clone(), 12).unwrap(), targets.clone(), 1).unwrap();
    let mut best = (f64::INFINITY, 0.0);
    for lambda in PENALTY_CANDIDATES {
        let squares: f64 = rows
            .ids()
            .map(|left| {
                let model = Ridge::new(lambda)
                    .fit(&rows.filter(|id| id != left))
                    .unwrap();
                let answer = model
                    .predict(&rows.filter(|id| id == left).table())
                    .unwrap()[(0, 0)];
                (answer - targets[left.0 as usize]).powi(2)
            })
            .sum();
        if squares < best.0 {
            best = (squares, lambda);
        }
    }
    let (recipe, choice) = choose_penalty(&Recipe::new(Ridge::new(1.0)), &rows, None).unwrap();
    assert_eq!((choice.lambda, choice.folds), (best.1, None));
    assert_eq!(recipe.describe().lambda, Some(best.1));
    let told = choice
        .tried
        .iter()
        .find(|(lambda, _)| *lambda == best.1)
        .unwrap()
        .1
        .unwrap();
    assert!((told - best.0 / 40.0).abs() < 1e-9 * told);
    // Without a factor there are folds.
    let iterative = Recipe::new(Ridge::new(1.0).form(Form::Iterative));
    assert_eq!(
        choose_penalty(&iterative, &rows, None).unwrap().1.folds,
        Some(5)
    );
    let signs = targets.iter().map(|y| y.signum()).collect();
    let signs = Rows::new(Dense::new(data.x, 12).unwrap(), signs, 1).unwrap();
    let (_, choice) =
        choose_penalty(&Recipe::new(Logistic::new(1.0)), &signs, Some(&names(2))).unwrap();
    assert_eq!(
        (choice.folds, choice.measure.as_str()),
        (Some(5), "log-loss")
    );
    assert!(
        choose_penalty(
            &Recipe::new(efface::MultinomialNb::default()),
            &signs,
            Some(&names(2))
        )
        .is_err()
    );
}
