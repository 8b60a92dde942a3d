//! Columns that no retained row has: approximate methods leave there what their formulas leave, the
//! others end at 0 and say what stood there before. The formulas are written out here in plain
//! dense arithmetic, in the caller's coordinates.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop and say where"
)]

use efface::eval::{feature_injection, inject};
use efface::methods::{Auto, Influence, Newton, ProjectionResidual, WarmStart};
use efface::models::logistic::LogisticModel;
use efface::models::{MethodOptions, Model, Recipe};
use efface::{
    Dense, Fit, Forget, Logistic, Method, Outcome, Ridge, RidgeModel, RowId, RowStore, Rows,
    Softmax,
};
use faer::Mat;
use faer::linalg::solvers::Solve;

const LAMBDA: f64 = 0.1;

/// Options under which an approximate method is not judged by what it leaves in dead columns.
const CLEARING: MethodOptions = MethodOptions {
    clear_dead_columns: true,
    allow_worse: true,
    new_seed: None,
};
/// Columns of a row before any is injected.
const WIDTH: usize = 8;

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

/// Rows of two or three classes, with a column per output that only the rows to forget have.
fn injected(classes: usize) -> (Rows, Vec<RowId>) {
    let mut numbers = Numbers(17 + classes as u64);
    let d = WIDTH;
    let x: Vec<f64> = (0..80 * d).map(|_| numbers.next()).collect();
    let mut y = Vec::new();
    for row in x.chunks(d) {
        let score = row[0] - row[1] + 0.6 * numbers.next();
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
    }
    let outputs = if classes == 2 { 1 } else { 3 };
    let rows = Rows::new(Dense::new(x, d).unwrap(), y, outputs).unwrap();
    let gone: Vec<RowId> = (0..3).map(RowId).collect();
    (inject(&rows, &gone).unwrap(), gone)
}

fn fit(rows: &Rows, curvature: bool) -> LogisticModel {
    let recipe = Logistic {
        tolerance: 1e-6,
        ..Logistic::new(LAMBDA).intercept(false).curvature(curvature)
    };
    match rows.outputs() {
        1 => recipe.fit(rows).unwrap(),
        _ => recipe.softmax().fit(rows).unwrap(),
    }
}

/// The probabilities of a row and the class that it has, one number for two classes.
fn judged(x: &[f64], targets: &[f64], theta: &Mat<f64>) -> (Vec<f64>, Vec<f64>) {
    let scores: Vec<f64> = (0..theta.ncols())
        .map(|c| x.iter().enumerate().map(|(j, x)| x * theta[(j, c)]).sum())
        .collect();
    if scores.len() == 1 {
        return (
            vec![1.0 / (1.0 + (-scores[0]).exp())],
            vec![(targets[0] + 1.0) / 2.0],
        );
    }
    let sum: f64 = scores.iter().map(|z| z.exp()).sum();
    (
        scores.iter().map(|z| z.exp() / sum).collect(),
        targets.to_vec(),
    )
}

/// Σ ∇ℓ_i and Σ ∇²ℓ_i over some rows, parameters class after class.
fn sums(rows: &Rows, theta: &Mat<f64>, counts: impl Fn(RowId) -> bool) -> (Mat<f64>, Mat<f64>) {
    let d = theta.nrows();
    let outputs = theta.ncols();
    let mut gradient = Mat::zeros(d * outputs, 1);
    let mut hessian = Mat::zeros(d * outputs, d * outputs);
    for row in rows.iter().filter(|row| counts(row.id)) {
        let mut x = vec![0.0; d];
        row.features.each(|j, value| x[j] = value);
        let (p, y) = judged(&x, row.targets, theta);
        for a in 0..outputs {
            for i in 0..d {
                gradient[(a * d + i, 0)] += (p[a] - y[a]) * x[i];
                for b in 0..outputs {
                    let bend = if a == b {
                        p[a] * (1.0 - p[a])
                    } else {
                        -p[a] * p[b]
                    };
                    (0..d).for_each(|j| hessian[(a * d + i, b * d + j)] += bend * x[i] * x[j]);
                }
            }
        }
    }
    (gradient, hessian)
}

/// θ − (Σ ∇²ℓ + λI)⁻¹ ∇L^{\D}, the Hessian over all rows for the influence function and over the
/// retained ones for a Newton step. ∇L^{\D} = −Σ_D ∇ℓ, because the gradient over all rows vanished.
fn step(rows: &Rows, gone: &[RowId], theta: &Mat<f64>, all: bool) -> Mat<f64> {
    let (removed, _) = sums(rows, theta, |id| gone.contains(&id));
    let (_, mut hessian) = sums(rows, theta, |id| all || !gone.contains(&id));
    (0..hessian.nrows()).for_each(|i| hessian[(i, i)] += LAMBDA);
    hessian.partial_piv_lu().solve(removed)
}

/// The part of a step that lies in the span of the removed rows, class by class, by Gram–Schmidt.
fn projected(rows: &Rows, gone: &[RowId], step: &Mat<f64>, d: usize) -> Mat<f64> {
    let mut basis: Vec<Vec<f64>> = Vec::new();
    for row in rows.iter().filter(|row| gone.contains(&row.id)) {
        let mut x = vec![0.0; d];
        row.features.each(|j, value| x[j] = value);
        for u in &basis {
            let along: f64 = x.iter().zip(u).map(|(x, u)| x * u).sum();
            x.iter_mut().zip(u).for_each(|(x, u)| *x -= along * u);
        }
        let length = x.iter().map(|x| x * x).sum::<f64>().sqrt();
        if length > 1e-9 {
            basis.push(x.iter().map(|x| x / length).collect());
        }
    }
    Mat::from_fn(step.nrows(), 1, |at, _| {
        let c = at / d;
        let j = at % d;
        basis
            .iter()
            .map(|u| u[j] * (0..d).map(|i| u[i] * step[(c * d + i, 0)]).sum::<f64>())
            .sum()
    })
}

fn off(model: &LogisticModel, theta: &Mat<f64>, step: &Mat<f64>) -> f64 {
    let found = model.parameters().0;
    let d = theta.nrows();
    let mut largest = 0.0f64;
    for c in 0..theta.ncols() {
        for j in 0..d {
            largest = largest.max((found[(j, c)] - theta[(j, c)] - step[(c * d + j, 0)]).abs());
        }
    }
    largest
}

/// The norm of the weights on the injected columns.
fn planted(model: &LogisticModel) -> f64 {
    let table = model.parameters().0;
    let squares = (WIDTH..table.nrows()).flat_map(|j| (0..table.ncols()).map(move |c| (j, c)));
    squares.map(|at| table[at].powi(2)).sum::<f64>().sqrt()
}

fn distance(a: &LogisticModel, b: &LogisticModel) -> f64 {
    (a.parameters().0 - b.parameters().0).norm_l2()
}

#[test]
fn approximate_methods_leave_what_their_formulas_leave() {
    for (classes, curvature) in [(2, true), (2, false), (3, true), (3, false)] {
        let (rows, gone) = injected(classes);
        let model = fit(&rows, curvature);
        let theta = model.parameters().0;
        let truth = fit(&rows.filter(|id| !gone.contains(&id)), curvature);
        let newton = step(&rows, &gone, &theta, false);
        let cases: [(&dyn Forget<LogisticModel>, Mat<f64>, bool); 3] = [
            (&Influence, step(&rows, &gone, &theta, true), true),
            (
                &ProjectionResidual::default(),
                projected(&rows, &gone, &newton, theta.nrows()),
                true,
            ),
            (&Newton::default(), newton, false),
        ];
        for (method, expected, leaves) in cases {
            let name = format!(
                "{} on {classes} classes, curvature {curvature}",
                method.name()
            );
            let Outcome {
                model: after,
                evidence,
            } = method.forget(&model, &rows, &gone).unwrap();
            let off = off(&after, &theta, &expected);
            assert!(off < 1e-7, "{name}: {off:.2e} from its formula");
            assert_eq!(
                planted(&after) > 0.05 * planted(&model),
                leaves,
                "{name} leaves {:.3}",
                planted(&after)
            );
            assert_eq!(evidence.cleared, None, "{name}");
            let away = distance(&after, &truth);
            assert!(
                away <= evidence.bound + 1e-9 && evidence.bound.is_finite(),
                "{name}: {away:.2e} {:.2e}",
                evidence.bound
            );
            assert_eq!(
                evidence
                    .not_covered
                    .iter()
                    .any(|what| what.code() == "dead_columns"),
                planted(&after) > 0.0
            );
        }
    }
}

#[test]
fn clearing_is_a_step_of_its_own_and_is_reported() {
    for classes in [2, 3] {
        let (rows, gone) = injected(classes);
        let truth = fit(&rows.filter(|id| !gone.contains(&id)), true);
        let model = Model::new(fit(&rows, true));
        for method in ["influence", "projection_residual"] {
            let asked = |clear_dead_columns| {
                let options = MethodOptions {
                    clear_dead_columns,
                    ..CLEARING
                };
                let method = method.parse().unwrap();
                let outcome = model.forget_with(&method, options, &rows, &gone);
                let Outcome { model, evidence } = outcome.unwrap();
                (model.get::<LogisticModel>().unwrap().clone(), evidence)
            };
            let (left, plain) = asked(false);
            let (cleared, evidence) = asked(true);
            let found = evidence.cleared.unwrap();
            assert_eq!(planted(&cleared), 0.0);
            assert!((1..=rows.outputs()).contains(&found.columns));
            assert!(
                (found.norm - planted(&left)).abs() < 1e-12 && found.norm > 0.01,
                "{method}: {found:?}"
            );
            assert!(
                evidence.bound < plain.bound && distance(&cleared, &truth) <= evidence.bound + 1e-9
            );
            assert!(
                !evidence
                    .not_covered
                    .iter()
                    .any(|what| what.code() == "dead_columns")
            );
        }
        assert!(
            model
                .forget_with(&Method::default(), CLEARING, &rows, &gone)
                .is_ok()
        );
    }
}

#[test]
fn methods_that_reach_the_optimum_end_at_zero_and_say_what_stood_there() {
    for (classes, curvature) in [(2, true), (2, false), (3, true), (3, false)] {
        let (rows, gone) = injected(classes);
        let model = fit(&rows, curvature);
        let mut seen = 0.0f64;
        for method in [&Auto::default() as &dyn Forget<LogisticModel>, &WarmStart] {
            let Outcome {
                model: after,
                evidence,
            } = method.forget(&model, &rows, &gone).unwrap();
            assert_eq!(planted(&after), 0.0, "{}", method.name());
            let before = evidence.cleared.map_or(0.0, |cleared| cleared.norm);
            assert!(before < 1e-6, "{}: {before:.2e}", method.name());
            seen = seen.max(before);
        }
        // What the algebra leaves is rounding, or what training left to its tolerance: small, but
        // not 0.
        assert!(seen > 0.0, "{classes} classes, curvature {curvature}");
    }
}

/// A column that an approximate method left weights in may come back with a new row: from then on
/// it counts again.
#[test]
fn a_dead_column_comes_back_to_life() {
    use efface::Amend;
    for curvature in [true, false] {
        let (rows, gone) = injected(2);
        let model = fit(&rows, curvature);
        let left = Influence.forget(&model, &rows, &gone).unwrap();
        let mut after = left.model;
        after.settle().unwrap();
        let rest = rows.filter(|id| !gone.contains(&id));
        let again = rows.filter(|id| id == gone[0]);
        let Outcome {
            model: back,
            evidence,
        } = after.learn(&rest, &again).unwrap();
        let truth = fit(
            &rows.filter(|id| id == gone[0] || !gone.contains(&id)),
            curvature,
        );
        let away = distance(&back, &truth);
        assert!(
            away <= evidence.bound + 1e-9 && away < 1e-5,
            "curvature {curvature}: {away:.2e}"
        );
        // Another approximate request does not take what the first one left, and its bound still
        // has it in it.
        let held = planted(&after);
        let next = Influence.forget(&after, &rest, &[RowId(20)]).unwrap();
        let truth = fit(&rest.filter(|id| id != RowId(20)), curvature);
        assert!(distance(&next.model, &truth) <= next.evidence.bound + 1e-9);
        if curvature {
            assert!((planted(&next.model) - held).abs() < 1e-12);
        }
    }
}

#[test]
fn ridge_models_clear_on_request_too() {
    let (rows, gone) = injected(2);
    let recipe = Recipe::new(Ridge::new(LAMBDA));
    let model = recipe.fit(&rows).unwrap();
    let truth = recipe.fit(&rows.filter(|id| !gone.contains(&id))).unwrap();
    let table = |model: &Model| model.get::<RidgeModel>().unwrap().parameters().0;
    for method in ["influence", "projection_residual"] {
        let method = method.parse().unwrap();
        let left = model.forget(&method, &rows, &gone).unwrap();
        let cleared = model.forget_with(&method, CLEARING, &rows, &gone).unwrap();
        assert!(table(&left.model)[(WIDTH, 0)].abs() > 0.01 && left.evidence.cleared.is_none());
        assert_eq!(table(&cleared.model)[(WIDTH, 0)], 0.0);
        let found = cleared.evidence.cleared.unwrap();
        assert!(
            (found.norm - table(&left.model)[(WIDTH, 0)].abs()).abs() < 1e-12 && found.columns == 1
        );
        assert!((table(&cleared.model) - table(&truth)).norm_l2() <= cleared.evidence.bound + 1e-9);
    }
}

#[test]
fn the_injection_test_tells_methods_apart_on_classifiers() {
    for classes in [2, 3] {
        let (wide, gone) = injected(classes);
        // The columns that the test injects itself are left out first.
        let x: Vec<f64> = wide
            .iter()
            .flat_map(|row| {
                let mut x = vec![0.0; wide.width()];
                row.features.each(|j, value| x[j] = value);
                x.truncate(WIDTH);
                x
            })
            .collect();
        let y: Vec<f64> = wide.iter().flat_map(|row| row.targets.to_vec()).collect();
        let rows = Rows::new(Dense::new(x, WIDTH).unwrap(), y, wide.outputs()).unwrap();
        let recipe = match classes {
            2 => Recipe::new(Logistic::new(LAMBDA)),
            _ => Recipe::new(Softmax::new(LAMBDA)),
        };
        let ways = ["influence", "projection_residual", "auto"]
            .map(|name| name.parse::<Method>().unwrap());
        let found = feature_injection(&recipe, &rows, &gone, &ways).unwrap();
        let [influence, projection, auto] = &found.ways[..] else {
            unreachable!()
        };
        assert!(
            influence.ratio > 0.05 && projection.ratio > 0.05 && auto.ratio == 0.0,
            "{found:?}"
        );
        assert!(influence.cleared.is_none() && auto.cleared.is_none_or(|norm| norm < 1e-6));
    }
}
