//! Classifiers: every method held to the contract, the bounds held to the truth, bad input refused.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should stop and say where"
)]

use efface::methods::{self, Auto, Newton, contract};
use efface::models::logistic::LogisticModel;
use efface::{
    Amend, Csr, Dense, Error, Family, Features, Fit, Forget, Logistic, Method, Predict, RowId,
    RowStore, Rows, Sisa, SisaModel, Softmax,
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
            let score: f64 = row
                .iter()
                .enumerate()
                .map(|(j, x)| x * unit(j) * (((j + 2 * class) % 5) as f64 - 2.0))
                .sum();
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
    let outputs = if classes == 2 { 1 } else { classes };
    let rows = Rows::with_ids(ids, features, targets, outputs).unwrap();
    if kind == "weighted" {
        return rows
            .weighted((0..n).map(|i| [1.0, 0.25, 3.0, 0.0][i % 4]).collect())
            .unwrap();
    }
    rows
}

fn parameters(model: &LogisticModel) -> Vec<f64> {
    let (coefficients, intercept) = model.parameters();
    let columns = (0..coefficients.ncols()).flat_map(|j| coefficients.col_as_slice(j).to_vec());
    columns.chain(intercept).collect()
}

fn distance(a: &LogisticModel, b: &LogisticModel) -> f64 {
    parameters(a)
        .iter()
        .zip(parameters(b))
        .map(|(a, b)| (a - b).powi(2))
        .sum::<f64>()
        .sqrt()
}

fn reload(model: &LogisticModel, _: &dyn RowStore) -> efface::Result<LogisticModel> {
    let mut model = model.clone();
    model.settle()?;
    LogisticModel::from_state(model.to_state()?)
}

fn hold(kind: &str, classes: usize, lambda: f64, intercept: bool, curvature: bool, k: usize) {
    let n = 120;
    let d = 8;
    let rows = rows(kind, n, d, classes, 1);
    let gone: Vec<RowId> = rows.ids().step_by(5).take(k).collect();
    let name = format!(
        "{kind} classes={classes} λ={lambda} intercept={intercept} curvature={curvature} k={k}"
    );
    let logistic = Logistic::new(lambda)
        .intercept(intercept)
        .curvature(curvature)
        .tolerance(1e-9);
    let softmax = Softmax::new(lambda)
        .intercept(intercept)
        .curvature(curvature)
        .tolerance(1e-9);
    let recipe: &dyn Fit<Model = LogisticModel> = if classes == 2 { &logistic } else { &softmax };
    let case = contract::Case {
        name: &name,
        recipe,
        rows: &rows,
        gone: &gone,
        parameters: &parameters,
        reload: &reload,
        tolerance: 1e-7,
        noise: 0.0,
    };
    let mut all = Method::all_for(Family::Softmax);
    all.push(
        Newton {
            steps: 3,
            measure: true,
        }
        .into(),
    );
    all.push(
        Auto {
            tolerance: Some(1e-3),
        }
        .into(),
    );
    for method in all {
        if let Err(violation) = contract::check(&method, &case) {
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

/// The rows that the oracle saw: the same generator, classes by the largest noisy score.
fn oracle_rows(classes: usize, weighted: bool) -> Rows {
    let mut numbers = Numbers(12345);
    let mut x = Vec::new();
    let mut y = Vec::new();
    for _ in 0..80 {
        let row: Vec<f64> = (0..3).map(|_| numbers.next()).collect();
        let mut best = (0, f64::NEG_INFINITY);
        for class in 0..classes {
            let score: f64 = row
                .iter()
                .enumerate()
                .map(|(j, x)| x * (((j + 2 * class) % 5) as f64 - 2.0))
                .sum();
            let score = score + 3.0 * numbers.next();
            if score > best.1 {
                best = (class, score);
            }
        }
        match classes {
            2 => y.push(if best.0 == 1 { 1.0 } else { -1.0 }),
            _ => y.extend((0..classes).map(|class| (class == best.0) as u8 as f64)),
        }
        x.extend(row);
    }
    let rows = Rows::new(
        Dense::new(x, 3).unwrap(),
        y,
        if classes == 2 { 1 } else { classes },
    )
    .unwrap();
    if weighted {
        rows.weighted((0..80).map(|i| [1.0, 0.25, 3.0, 0.5][i % 4]).collect())
            .unwrap()
    } else {
        rows
    }
}

/// Coefficients class by class, then intercepts: scikit-learn 1.9.1,
/// LogisticRegression(C=1/λ, tol=1e-14, solver='newton-cholesky').
#[test]
fn the_optimum_is_that_of_scikit_learn() {
    let cases: [(usize, f64, bool, &[f64]); 4] = [
        (
            2,
            1.0,
            false,
            &[
                1.25571773547717,
                0.9456045676193571,
                0.8853306372707593,
                0.013432928492404142,
            ],
        ),
        (
            2,
            0.25,
            true,
            &[
                1.6779165704541572,
                0.8234126550223949,
                1.1831011977207153,
                0.072904906756211,
            ],
        ),
        (
            3,
            0.5,
            false,
            &[
                -1.3553607600515536,
                0.3244541045367391,
                0.09903628410297113,
                -0.3311230026429127,
                1.4849942180852476,
                1.072922205060202,
                1.6864837626944653,
                -1.8094483226219864,
                -1.171958489163173,
                0.04954490127012043,
                0.16079838707594438,
                -0.21034328834606478,
            ],
        ),
        (
            3,
            2.0,
            true,
            &[
                -1.0051513493095063,
                0.14136334120211455,
                0.021050176216446493,
                -0.4502434660074011,
                1.2076882910972648,
                1.0079754800636227,
                1.4553948153169067,
                -1.34905163229938,
                -1.0290256562800701,
                0.06542606624582145,
                0.12404625081694784,
                -0.18947231706276926,
            ],
        ),
    ];
    for (classes, lambda, weighted, expected) in cases {
        let rows = oracle_rows(classes, weighted);
        for curvature in [true, false] {
            let model = match classes {
                2 => Logistic::new(lambda).curvature(curvature).fit(&rows),
                _ => Softmax::new(lambda).curvature(curvature).fit(&rows),
            };
            for (ours, theirs) in parameters(&model.unwrap()).iter().zip(expected) {
                assert!(
                    (ours - theirs).abs() < 1e-8,
                    "{classes} classes, λ = {lambda}: {ours} and {theirs}"
                );
            }
        }
    }
}

/// One thread or two, all rows in one piece or many: the same optimum.
#[test]
fn threads_change_nothing_but_rounding() {
    let rows = rows("dense", 700, 9, 3, 5);
    let one = Softmax::new(0.5).fit(&rows).unwrap();
    let three = Softmax::new(0.5).threads(3).fit(&rows).unwrap();
    assert!(distance(&one, &three) < 1e-10);
    let again = Softmax::new(0.5).threads(3).fit(&rows).unwrap();
    assert_eq!(parameters(&three), parameters(&again));
}

#[test]
fn no_bound_is_exceeded_over_a_thousand_deletions() {
    let mut checked = 0;
    let all: [Box<dyn Forget<LogisticModel>>; 5] = [
        Box::new(Newton::default()),
        Box::new(Newton {
            steps: 2,
            measure: true,
        }),
        Box::new(methods::Influence),
        Box::new(methods::ProjectionResidual::default()),
        Box::new(Auto {
            tolerance: Some(1e-5),
        }),
    ];
    for seed in 0..14 {
        let kind = ["dense", "sparse", "weighted", "units"][seed % 4];
        let classes = 2 + (seed / 4) % 2;
        let everyone = rows(kind, 100, 5, classes, seed as u64);
        let fit = |rows: &Rows| match classes {
            2 => Logistic::new(1.0).fit(rows),
            _ => Softmax::new(1.0).fit(rows),
        };
        for method in &all {
            let mut numbers = Numbers(seed as u64 + 77);
            let mut rows = everyone.clone();
            let mut model = fit(&rows).unwrap();
            for step in 0..15 {
                let ids: Vec<RowId> = rows.ids().collect();
                let gone =
                    [ids[((numbers.next() + 1.0) / 2.0 * ids.len() as f64) as usize % ids.len()]];
                let outcome = method.forget(&model, &rows, &gone).unwrap();
                rows.remove(&gone).unwrap();
                model = outcome.model;
                if step % 4 == 3 {
                    model.settle().unwrap();
                }
                let truth = fit(&rows).unwrap();
                let slack = Newton::default()
                    .forget(&truth, &rows, &[])
                    .unwrap()
                    .evidence
                    .bound;
                let away = distance(&model, &truth);
                let bound = Newton::default()
                    .forget(&model, &rows, &[])
                    .unwrap()
                    .evidence
                    .bound;
                assert!(
                    away <= outcome.evidence.bound + slack,
                    "{} {kind} {seed}: {away:.2e}",
                    method.name()
                );
                assert!(
                    away <= bound + slack,
                    "{} {kind} {seed}, settled: {away:.2e}",
                    method.name()
                );
                checked += 1;
            }
        }
    }
    assert!(checked >= 1000, "{checked}");
}

/// `auto` stops as soon as its bound allows.
#[test]
fn auto_does_no_more_than_asked() {
    let rows = rows("dense", 2000, 6, 2, 3);
    let model = Logistic::new(1.0).fit(&rows).unwrap();
    let gone = [RowId(1000), RowId(1300)];
    let [rough, fine, finest] = [1e-2, 1e-6, 1e-11].map(|tolerance| {
        let outcome = Auto {
            tolerance: Some(tolerance),
        }
        .forget(&model, &rows, &gone)
        .unwrap();
        assert!(
            outcome.evidence.relative_bound <= tolerance.max(1e-10),
            "{:?}",
            outcome.evidence
        );
        outcome.evidence
    });
    assert_eq!((rough.iterations, rough.rows_read), (1, 2));
    assert!(fine.rows_read > 2 && fine.iterations <= finest.iterations);
    assert!(
        Auto {
            tolerance: Some(0.0)
        }
        .forget(&model, &rows, &gone)
        .is_err()
    );
}

/// A column that only forgotten rows have comes out at exactly 0.
#[test]
fn an_injected_feature_is_forgotten_exactly() {
    let n = 200;
    let d = 6;
    let mut numbers = Numbers(9);
    let mut x = Vec::new();
    let mut y = Vec::new();
    for i in 0..n {
        let mut row: Vec<f64> = (0..d).map(|_| numbers.next()).collect();
        let class = if row[0] + 0.5 * numbers.next() > 0.0 {
            1.0
        } else {
            -1.0
        };
        row[d - 1] = if i < 5 { class } else { 0.0 };
        x.extend(row);
        y.push(class);
    }
    let rows = Rows::new(Dense::new(x, d).unwrap(), y, 1).unwrap();
    let gone: Vec<RowId> = (0..5).map(RowId).collect();
    for curvature in [true, false] {
        let model = Logistic::new(0.1).curvature(curvature).fit(&rows).unwrap();
        assert!(model.parameters().0[(d - 1, 0)] > 0.1);
        for method in [
            &Auto::default() as &dyn Forget<LogisticModel>,
            &methods::WarmStart,
        ] {
            let mut after = method.forget(&model, &rows, &gone).unwrap().model;
            assert_eq!(after.parameters().0[(d - 1, 0)], 0.0, "{}", method.name());
            after.settle().unwrap();
            let mut rest = rows.clone();
            rest.remove(&gone).unwrap();
            let again = method.forget(&after, &rest, &[RowId(7)]).unwrap().model;
            assert_eq!(
                again.parameters().0[(d - 1, 0)],
                0.0,
                "{} again",
                method.name()
            );
        }
    }
}

/// θ + P(θ_N − θ), with θ_N from the weighted least squares of Izzo et al., appendix D, solved
/// directly, and P the projection onto the removed rows; one of them is so far out that its weight
/// is 0 in floating point.
#[test]
fn projection_residual_is_the_projected_newton_step() {
    use faer::linalg::solvers::{Solve, Svd};
    let n = 60;
    let d = 5;
    let lambda = 0.7;
    let mut numbers = Numbers(4);
    let mut x = Vec::new();
    let mut y = Vec::new();
    for i in 0..n {
        let mut row: Vec<f64> = (0..d).map(|_| numbers.next()).collect();
        y.push(if row[0] - row[1] + 0.3 * numbers.next() > 0.0 {
            1.0
        } else {
            -1.0
        });
        if i == 2 {
            (row[0], row[1]) = (3000.0 * y[i], -3000.0 * y[i]);
        }
        x.extend(row);
    }
    let rows = Rows::new(Dense::new(x.clone(), d).unwrap(), y.clone(), 1).unwrap();
    let model = Logistic::new(lambda).intercept(false).fit(&rows).unwrap();
    let theta = faer::Mat::from_fn(d, 1, |j, _| model.parameters().0[(j, 0)]);
    let gone = [RowId(2), RowId(11), RowId(30)];
    let mut a = faer::Mat::<f64>::identity(d, d) * faer::Scale(lambda);
    let mut b = faer::Mat::<f64>::zeros(d, 1);
    let mut least = f64::INFINITY;
    for i in (0..n).filter(|i| !gone.contains(&RowId(*i as u64))) {
        let row = faer::Mat::from_fn(d, 1, |j, _| x[i * d + j]);
        let z = (row.transpose() * &theta)[(0, 0)];
        let p = 1.0 / (1.0 + (-z).exp());
        let weight = p * (1.0 - p);
        a += &row * row.transpose() * faer::Scale(weight);
        b += &row * faer::Scale(weight * z + (y[i] > 0.0) as u8 as f64 - p);
    }
    for id in gone {
        let i = id.0 as usize;
        let z: f64 = (0..d).map(|j| x[i * d + j] * theta[(j, 0)]).sum();
        least = least.min((-z.abs()).exp());
    }
    assert_eq!(least, 0.0, "one row should be saturated");
    let newton = a.partial_piv_lu().solve(&b);
    let removed = faer::Mat::from_fn(gone.len(), d, |k, j| x[gone[k].0 as usize * d + j]);
    let svd = Svd::new(removed.as_ref()).unwrap();
    let basis = svd.V().subcols(0, 3);
    let expected = &theta + basis * (basis.transpose() * (&newton - &theta));
    let outcome = methods::ProjectionResidual::default()
        .forget(&model, &rows, &gone)
        .unwrap();
    let found = outcome.model.parameters().0;
    assert!(
        (&found - &expected).norm_l2() < 1e-8 * expected.norm_l2(),
        "{:.3e}",
        (&found - &expected).norm_l2()
    );
    assert_eq!(outcome.evidence.directions_dropped, 0);
}

#[test]
fn bad_input_is_refused_and_nothing_is_lost() {
    let x = || Dense::new(vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0], 1).unwrap();
    let separable = Rows::new(x(), vec![-1.0, -1.0, -1.0, 1.0, 1.0, 1.0], 1).unwrap();
    assert_eq!(
        Logistic::new(0.0).fit(&separable).unwrap_err(),
        Error::Separable
    );
    let one_hot = vec![
        1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0,
    ];
    let three = Rows::new(x(), one_hot, 3).unwrap();
    assert!(Softmax::new(0.0).fit(&three).is_err(), "no finite optimum");
    assert!(Softmax::new(0.1).fit(&three).is_ok());

    let single = Rows::new(x(), vec![1.0; 6], 1).unwrap();
    let error = Logistic::new(1.0).fit(&single).unwrap_err();
    assert_eq!(
        error,
        Error::EmptyClass {
            class: 0,
            classes: 2
        }
    );
    assert!(error.to_string().contains("no finite optimum"), "{error}");
    assert!(
        Logistic::new(1.0).intercept(false).fit(&single).is_ok(),
        "without an intercept the penalty holds it"
    );

    let lonely = Rows::new(x(), vec![-1.0, 1.0, 1.0, 1.0, 1.0, 1.0], 1).unwrap();
    let model = Logistic::new(1.0).fit(&lonely).unwrap();
    let before = parameters(&model);
    for method in Method::all_for(Family::Softmax) {
        let error = method.forget(&model, &lonely, &[RowId(0)]).unwrap_err();
        assert_eq!(
            error,
            Error::EmptyClass {
                class: 0,
                classes: 2
            },
            "{}",
            method.name()
        );
    }
    assert_eq!(parameters(&model), before);

    let numbers = Rows::new(x(), vec![0.5, 1.0, -1.0, 1.0, 1.0, 1.0], 1).unwrap();
    assert!(matches!(
        Logistic::new(1.0).fit(&numbers),
        Err(Error::NotAClass { row: RowId(0), .. })
    ));
    assert!(matches!(
        Softmax::new(1.0).fit(&separable),
        Err(Error::Shape { .. })
    ));
    assert!(matches!(
        Logistic::new(1.0).fit(&three),
        Err(Error::Shape { .. })
    ));
    for lambda in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(
            Logistic::new(lambda).fit(&separable),
            Err(Error::Parameter { name: "lambda", .. })
        ));
    }
    let weightless = separable.clone().weighted(vec![0.0; 6]).unwrap();
    assert_eq!(
        Logistic::new(1.0).fit(&weightless).unwrap_err(),
        Error::NoWeight
    );
    let huge = Rows::new(
        Dense::new(vec![1e300, -1e300, 1e300, 1.0], 1).unwrap(),
        vec![1.0, -1.0, -1.0, 1.0],
        1,
    );
    let huge = Logistic::new(1.0).fit(&huge.unwrap());
    assert!(huge.is_err() || parameters(&huge.unwrap()).iter().all(|p| p.is_finite()));
    assert!(
        model
            .predict(&Dense::new(vec![1.0, 2.0], 2).unwrap().into())
            .is_err()
    );
    assert!(
        Newton {
            steps: 0,
            measure: false
        }
        .forget(&model, &lonely, &[RowId(1)])
        .is_err()
    );
}

#[test]
fn learning_and_amending_reach_the_optimum_of_the_new_rows() {
    for classes in [2, 4] {
        let everyone = rows("dense", 90, 4, classes, 8);
        let fit = |rows: &Rows| match classes {
            2 => Logistic::new(0.5).tolerance(1e-9).fit(rows),
            _ => Softmax::new(0.5).tolerance(1e-9).fit(rows),
        };
        let late = everyone.filter(|id| id.0 % 2 == 1 && id.0 < 1040);
        let early = everyone.filter(|id| !(id.0 % 2 == 1 && id.0 < 1040));
        let truth = fit(&everyone).unwrap();
        let learned = fit(&early).unwrap().learn(&early, &late).unwrap();
        assert!(distance(&learned.model, &truth) < 1e-8 && learned.evidence.learned == late.len());
        // Some rows now have the content of other rows.
        let donor = rows("dense", 90, 4, classes, 9);
        let corrected = donor.filter(|id| id.0 < 1012);
        let mut target = everyone.clone();
        target.remove(&corrected.ids().collect::<Vec<_>>()).unwrap();
        target.append(&corrected).unwrap();
        let amended = truth.amend(&everyone, &corrected).unwrap();
        assert!(distance(&amended.model, &fit(&target).unwrap()) < 1e-8);
        assert_eq!(
            (amended.evidence.forgotten, amended.evidence.learned),
            (corrected.len(), corrected.len())
        );
    }
}

/// A model too wide for a Hessian: fitted and forgotten by passes over its rows.
#[test]
fn a_wide_model_forgets_without_a_hessian() {
    let n = 60;
    let d = 5000;
    let mut numbers = Numbers(2);
    let mut csr = Csr::<f32>::new(d);
    let mut targets = Vec::new();
    for _ in 0..n {
        let mut entries: Vec<(u32, f64)> = (0..30)
            .map(|_| {
                (
                    ((numbers.next() + 1.0) / 2.0 * d as f64) as u32 % d as u32,
                    1.0,
                )
            })
            .collect();
        let class = if numbers.next() > 0.0 { 1.0 } else { -1.0 };
        entries.push((if class > 0.0 { 0 } else { 1 }, 1.0));
        entries.sort_by_key(|entry| entry.0);
        entries.dedup_by_key(|entry| entry.0);
        csr.push(&entries).unwrap();
        targets.push(class);
    }
    let rows = Rows::new(csr, targets, 1).unwrap();
    let model = Logistic {
        tolerance: 1e-6,
        ..Logistic::new(1.0)
    }
    .fit(&rows)
    .unwrap();
    let gone = [RowId(3), RowId(17)];
    let truth = Logistic::new(1.0)
        .fit(&rows.filter(|id| !gone.contains(&id)))
        .unwrap();
    for method in Method::all_for(Family::Softmax) {
        let outcome = method.forget(&model, &rows, &gone).unwrap();
        let away = distance(&outcome.model, &truth);
        assert!(
            away <= outcome.evidence.bound + 1e-9,
            "{}: {away:.2e}",
            method.name()
        );
        assert!(outcome.evidence.precomputed.is_empty());
        let exact = ["retrain", "warm_start", "auto"].contains(&method.name());
        assert!(
            !exact || outcome.evidence.relative_bound <= 1e-6,
            "{}",
            method.name()
        );
    }
}

#[test]
fn probabilities_are_those_of_the_scores() {
    for classes in [2, 3] {
        let rows = rows("dense", 50, 3, classes, 6);
        let model = if classes == 2 {
            Logistic::new(1.0).fit(&rows)
        } else {
            Softmax::new(1.0).fit(&rows)
        }
        .unwrap();
        let x: Features = Dense::new(vec![0.3, -0.5, 0.1, 0.9, 0.2, -0.7], 3)
            .unwrap()
            .into();
        let scores = model.predict(&x).unwrap();
        let chances = model.probabilities(&x).unwrap();
        for row in 0..2 {
            let total: f64 = (0..classes).map(|c| chances[(row, c)]).sum();
            assert!((total - 1.0).abs() < 1e-12);
            if classes == 2 {
                let log_odds = (chances[(row, 1)] / chances[(row, 0)]).ln();
                assert!((log_odds - scores[(row, 0)]).abs() < 1e-12);
            }
        }
    }
}

/// Shards of classifiers, some without rows of every class, forget like retraining.
#[test]
fn shards_of_classifiers_keep_the_contract() {
    for (shards, slices) in [(1, 1), (6, 2), (12, 3)] {
        hold_shards(Logistic::new(1.0).curvature(false), 2, shards, slices);
        hold_shards(Softmax::new(1.0).curvature(false), 4, shards, slices);
    }
}

fn hold_shards<F>(recipe: F, classes: usize, shards: usize, slices: usize)
where
    F: Fit<Model = LogisticModel> + Clone + Send + Sync,
{
    let probe: Features = Dense::new((0..12).map(|i| (i as f64 * 0.7).sin()).collect(), 4)
        .unwrap()
        .into();
    let rows = rows("dense", 40, 4, classes, 12);
    let gone: Vec<RowId> = rows.ids().step_by(9).collect();
    let case = contract::Case {
        name: &format!("{classes} classes in {shards}×{slices}"),
        recipe: &Sisa::new(recipe, shards, slices).threads(2),
        rows: &rows,
        gone: &gone,
        parameters: &|model: &SisaModel<F>| {
            let scores = model.predict(&probe).unwrap();
            (0..scores.ncols())
                .flat_map(|c| scores.col_as_slice(c).to_vec())
                .collect()
        },
        reload: &|model, _| Ok(model.clone()),
        tolerance: 0.0,
        noise: 0.0,
    };
    contract::check(&methods::SisaForget, &case).unwrap();
}

/// What a check of a model against its rows rests on: the bound is small over its own rows, and not
/// over others.
#[test]
fn a_measurement_tells_whether_rows_are_those_of_the_model() {
    let values: Vec<f64> = (0..120)
        .map(|i| f64::from((i * 37 + 11) % 29) / 14.0 - 1.0)
        .collect();
    let targets: Vec<f64> = (0..60)
        .map(|i| if (i * 7) % 5 < 2 { 1.0 } else { -1.0 })
        .collect();
    let rows =
        |values: Vec<f64>| Rows::new(Dense::new(values, 2).unwrap(), targets.clone(), 1).unwrap();
    let own = rows(values.clone());
    let mut altered = values.clone();
    altered[17] += 1.0;
    for curvature in [true, false] {
        let model = Logistic::new(0.5).curvature(curvature).fit(&own).unwrap();
        let near = model.measured_over(&own).unwrap().relative_bound;
        assert!(near < 1e-8, "{near:e}");
        let far = model
            .measured_over(&rows(altered.clone()))
            .unwrap()
            .relative_bound;
        assert!(far > 1e-3, "{far:e}");
    }
    // With several classes and no Hessian, the intercepts are profiled out of the bound.
    let classes: Vec<f64> = (0..60)
        .flat_map(|i| (0..3).map(move |c| f64::from(c == (i * 7) % 5 % 3)))
        .collect();
    let rows =
        |values: Vec<f64>| Rows::new(Dense::new(values, 2).unwrap(), classes.clone(), 3).unwrap();
    for curvature in [true, false] {
        let model = Softmax::new(0.5)
            .curvature(curvature)
            .fit(&rows(values.clone()))
            .unwrap();
        let near = model
            .measured_over(&rows(values.clone()))
            .unwrap()
            .relative_bound;
        assert!(near < 1e-8, "{near:e}");
        let far = model.measured_over(&rows(altered.clone())).unwrap();
        assert!(
            far.relative_bound > 1e-3 && (curvature || far.bound.is_finite()),
            "{:e}",
            far.bound
        );
    }
}
