//! Bounds of classifiers that are worth something: after one Newton step, with many classes, with
//! rare ones.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should stop and say where"
)]

use efface::methods::{Auto, DeltaGrad, Newton, Retrain, WarmStart};
use efface::models::logistic::LogisticModel;
use efface::{
    BoundSource, Csr, Dense, Evidence, Fit, Fitted, Forget, Logistic, RowId, Rows, Softmax,
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

    fn below(&mut self, most: usize) -> usize {
        ((self.next() + 1.0) / 2.0 * most as f64) as usize % most
    }
}

fn parameters(model: &LogisticModel) -> Vec<f64> {
    let (coefficients, intercept) = model.parameters();
    let columns = (0..coefficients.ncols()).flat_map(|c| coefficients.col_as_slice(c).to_vec());
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

/// Few rows, classes that are nearly separated, small penalties: the worst that a single step can
/// meet.
fn small(seed: u64, classes: usize) -> Rows {
    let mut numbers = Numbers(seed * 131 + classes as u64);
    let d = 2 + numbers.below(12);
    let n = 30 + numbers.below(60);
    let x: Vec<f64> = (0..n * d).map(|_| numbers.next()).collect();
    let mut y = Vec::new();
    for (i, row) in x.chunks(d).enumerate() {
        let score = 2.0 * row[0] - row[1] + 0.2 * numbers.next();
        match classes {
            2 => y.push(if score > 0.0 || i == 0 { 1.0 } else { -1.0 }),
            _ => {
                let class = if i < 6 {
                    i % 3
                } else {
                    1 + (score > 0.3) as usize - (score < -0.3) as usize
                };
                y.extend((0..3).map(|c| (c == class) as u8 as f64));
            }
        }
    }
    Rows::new(
        Dense::new(x, d).unwrap(),
        y,
        if classes == 2 { 1 } else { 3 },
    )
    .unwrap()
}

#[test]
fn one_newton_step_has_a_finite_bound_that_holds() {
    let mut measured = 0;
    for seed in 0..40 {
        for classes in [2, 3] {
            let rows = small(seed, classes);
            let lambda = [1e-3, 1e-2, 0.1, 1.0, 10.0][seed as usize % 5];
            let fit = |rows: &Rows| match classes {
                2 => Logistic::new(lambda).fit(rows).unwrap(),
                _ => Softmax::new(lambda).fit(rows).unwrap(),
            };
            let model = fit(&rows);
            let gone = [RowId(8), RowId(11)];
            let outcome = Newton::default().forget(&model, &rows, &gone).unwrap();
            let retained = rows.filter(|id| !gone.contains(&id));
            let truth = fit(&retained);
            let slack = Retrain
                .forget(&truth, &retained, &[])
                .unwrap()
                .evidence
                .bound;
            let away = distance(&outcome.model, &truth);
            let evidence = outcome.evidence;
            assert!(
                evidence.bound.is_finite(),
                "seed {seed}, {classes} classes, λ = {lambda}"
            );
            assert!(
                away <= evidence.bound + slack,
                "seed {seed}: {away:.2e} > {:.2e}",
                evidence.bound
            );
            // A method that reads rows reports how many.
            let reads = evidence.rows_read > gone.len();
            assert_eq!(
                reads,
                evidence.bound_source == BoundSource::Measured,
                "seed {seed}"
            );
            measured += reads as usize;
        }
    }
    assert!(measured > 0 && measured < 80, "{measured}");
}

/// Sparse rows of many classes, the last of which have two rows each: the intercepts of those are
/// held by next to nothing.
fn text(classes: usize) -> Rows {
    let mut numbers = Numbers(classes as u64);
    let words = 220;
    let mut csr = Csr::<f32>::new(words);
    let mut y = Vec::new();
    for i in 0..250 {
        let class = if i < 2 * classes {
            i % classes
        } else {
            numbers.below(3)
        };
        let mut entries: Vec<(u32, f64)> = (0..12)
            .map(|k| {
                let own = k < 4;
                let word = if own {
                    class * 9 + numbers.below(9)
                } else {
                    numbers.below(words)
                };
                ((word % words) as u32, 1.0)
            })
            .collect();
        entries.sort_unstable_by_key(|entry| entry.0);
        entries.dedup_by_key(|entry| entry.0);
        csr.push(&entries).unwrap();
        y.extend((0..classes).map(|c| (c == class) as u8 as f64));
    }
    Rows::new(csr, y, classes).unwrap()
}

/// 20 classes of 220 words are more parameters than a Hessian is kept for.
#[test]
fn many_rare_classes_keep_what_exact_promises() {
    for (classes, lambda) in [(12, 1.0), (20, 1.0), (20, 0.05)] {
        let rows = text(classes);
        let recipe = Softmax {
            tolerance: 1e-6,
            ..Softmax::new(lambda)
        };
        let model = recipe.fit(&rows).unwrap();
        let gone = [RowId(249), RowId(150)];
        let tight = Softmax {
            gradient: 1e-13,
            ..recipe
        };
        let truth = tight.fit(&rows.filter(|id| !gone.contains(&id))).unwrap();
        for method in [
            &Retrain as &dyn Forget<LogisticModel>,
            &WarmStart,
            &Auto::default(),
        ] {
            let outcome = method.forget(&model, &rows, &gone).unwrap();
            let away = distance(&outcome.model, &truth);
            let evidence = outcome.evidence;
            let context = format!("{}, {classes} classes, λ = {lambda}", method.name());
            assert!(
                evidence.relative_bound <= 1e-6,
                "{context}: {:.2e}",
                evidence.relative_bound
            );
            assert!(
                away <= 2.0 * evidence.bound,
                "{context}: {away:.2e} > {:.2e}",
                evidence.bound
            );
        }
    }
}

/// What an approximate step left behind is no measure of what the next request can reach.
#[test]
fn auto_repairs_what_an_approximate_step_left() {
    let rows = small(3, 2);
    for curvature in [true, false] {
        let recipe = Logistic::new(0.1).curvature(curvature);
        let model = recipe.fit(&rows).unwrap();
        let rough = Newton {
            steps: 1,
            measure: true,
        }
        .forget(&model, &rows, &[RowId(8)])
        .unwrap();
        let rest = rows.filter(|id| id != RowId(8));
        let fine = Auto {
            tolerance: Some(1e-6),
        }
        .forget(&rough.model, &rest, &[RowId(9)])
        .unwrap();
        assert!(
            fine.evidence.relative_bound <= 1e-6,
            "{:.2e}",
            fine.evidence.relative_bound
        );
        let truth = recipe.fit(&rest.filter(|id| id != RowId(9))).unwrap();
        assert!(distance(&fine.model, &truth) <= fine.evidence.bound + 1e-9);
    }
}

#[test]
fn a_remembered_run_of_gradient_descent_serves_later_requests() {
    let rows = small(7, 3);
    let model = Softmax::new(1.0).fit(&rows).unwrap();
    let method = DeltaGrad::default();
    let first = method.forget(&model, &rows, &[RowId(8)]).unwrap();
    let named = |evidence: &efface::Evidence| {
        evidence
            .precomputed
            .iter()
            .any(|part| part.what.contains("gradient descent") && part.bytes > 0)
    };
    assert!(
        !named(&first.evidence),
        "a run that the request made itself was not made ahead of time"
    );
    let remembered = method.remember(&model, &rows).unwrap();
    let second = method.forget(&remembered, &rows, &[RowId(8)]).unwrap();
    assert!(named(&second.evidence) && 3 * second.evidence.rows_read < first.evidence.rows_read);
    assert_eq!(parameters(&first.model), parameters(&second.model));
    // The replay is the run of the next request; a change by another method makes it useless.
    let rest = rows.filter(|id| id != RowId(8));
    let third = method.forget(&second.model, &rest, &[RowId(9)]).unwrap();
    assert!(named(&third.evidence));
    let other = Newton::default()
        .forget(&second.model, &rest, &[RowId(9)])
        .unwrap();
    assert!(!named(&other.evidence));
    let truth = Softmax::new(1.0)
        .fit(&rest.filter(|id| id != RowId(9)))
        .unwrap();
    assert!(distance(&third.model, &truth) <= third.evidence.bound);
    assert!(
        DeltaGrad {
            period: 0,
            ..method
        }
        .forget(&model, &rows, &[RowId(8)])
        .is_err()
    );
}

/// Many requests after each other, most of which read no row but their own: what is carried from
/// one to the next has to hold for all of them. Some rows pull hard, so that scores move and the
/// kept Hessian grows old.
#[test]
fn bounds_hold_along_a_chain_of_requests() {
    for (classes, lambda) in [(2, 1.0), (2, 0.01), (4, 1.0), (4, 0.05)] {
        let rows = spread_out(6000, 6, classes);
        let recipe = Logistic::new(lambda).tolerance(1e-4);
        let fit = |rows: &Rows| match classes {
            2 => recipe.fit(rows).unwrap(),
            _ => recipe.softmax().fit(rows).unwrap(),
        };
        let mut chain = match classes {
            2 => Fitted::new(&recipe, rows.clone()).unwrap(),
            _ => Fitted::new(&recipe.softmax(), rows.clone()).unwrap(),
        }
        .settle_after(7);
        let mut without_rows = 0;
        for request in 0..40 {
            let gone = [RowId(request * 13)];
            let evidence = chain.forget(&Auto::default(), &gone).unwrap();
            without_rows += (evidence.rows_read == 1) as usize;
            let away = distance(chain.model(), &fit(chain.rows()));
            let context = format!("{classes} classes, λ = {lambda}, request {request}: {away:.2e}");
            assert!(
                away <= evidence.bound + 1e-9,
                "{context} and a bound of {:.2e}",
                evidence.bound
            );
            assert!(
                evidence.relative_bound <= recipe.tolerance,
                "{context}: {:.2e}",
                evidence.relative_bound
            );
        }
        let least = if classes == 2 { 20 } else { 3 };
        assert!(
            without_rows >= least,
            "{classes} classes, λ = {lambda}: {without_rows} of 40"
        );
    }
}

/// From 512 parameters on a softmax solves by an inverse in single precision, which its bounds have
/// to know of; rows are weighed where the Hessian was made, also after folds.
#[test]
fn bounds_hold_where_the_inverse_is_kept_in_single_precision() {
    for lambda in [1.0, 0.01] {
        let rows = spread_out(1200, 130, 5);
        let recipe = Logistic::new(lambda).softmax();
        let mut chain = Fitted::new(&recipe, rows).unwrap().settle_after(4);
        let kept = |evidence: &Evidence| {
            evidence
                .precomputed
                .iter()
                .any(|part| part.what.contains("inverse"))
        };
        for request in 0..9 {
            for tolerance in [None, Some(1e-6)] {
                let gone = [RowId(request * 17 + tolerance.is_some() as u64)];
                let evidence = chain.forget(&Auto { tolerance }, &gone).unwrap();
                assert!(
                    kept(&evidence) || evidence.resummed,
                    "{:?}",
                    evidence.precomputed
                );
                let away = distance(chain.model(), &recipe.fit(chain.rows()).unwrap());
                let context = format!("λ = {lambda}, request {request}, {tolerance:?}: {away:.2e}");
                assert!(
                    away <= evidence.bound + 1e-9,
                    "{context} and a bound of {:.2e}",
                    evidence.bound
                );
                let promised = tolerance.unwrap_or(recipe.tolerance);
                assert!(
                    evidence.relative_bound <= promised,
                    "{context}: {:.2e}",
                    evidence.relative_bound
                );
            }
        }
    }
}

/// Rows of which every tenth is four times as long as the others.
fn spread_out(count: usize, width: usize, classes: usize) -> Rows {
    let mut numbers = Numbers(classes as u64);
    let mut x = Vec::new();
    let mut y = Vec::new();
    for row in 0..count {
        let size = if row % 10 == 3 { 4.0 } else { 1.0 };
        let values: Vec<f64> = (0..width).map(|_| size * numbers.next()).collect();
        let class = (0..classes)
            .map(|c| {
                (
                    c,
                    values[c % width] - values[(c + 1) % width] + numbers.next(),
                )
            })
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .map_or(0, |(c, _)| c);
        match classes {
            2 => y.push(if class == 1 { 1.0 } else { -1.0 }),
            _ => y.extend((0..classes).map(|c| (c == class) as u8 as f64)),
        }
        x.extend(values);
    }
    Rows::new(
        Dense::new(x, width).unwrap(),
        y,
        if classes == 2 { 1 } else { classes },
    )
    .unwrap()
}

/// Tables that strain a bound which is carried from request to request.
#[derive(Debug, Clone, Copy)]
enum HardTable {
    CorrelatedColumns,
    OneHugeRow,
    Separable,
    NearlyEmptyClass,
}

fn hard(kind: HardTable, classes: usize) -> Rows {
    let mut numbers = Numbers(kind as u64 * 7 + classes as u64);
    let d = 8;
    let mut x = Vec::new();
    let mut y = Vec::new();
    for i in 0..160 {
        let common = numbers.next();
        let row: Vec<f64> = (0..d)
            .map(|_| match kind {
                HardTable::CorrelatedColumns => common + 0.02 * numbers.next(),
                HardTable::OneHugeRow if i == 76 => 300.0 * numbers.next(),
                _ => numbers.next(),
            })
            .collect();
        let noise = if matches!(kind, HardTable::Separable) {
            0.0
        } else {
            0.6
        };
        let score = 2.0 * row[0] - row[1] + noise * numbers.next();
        let class = match kind {
            HardTable::NearlyEmptyClass if i < 2 => classes - 1,
            HardTable::NearlyEmptyClass => ((score > 0.0) as usize).min(classes - 2),
            _ => ((score > -0.4) as usize + (score > 0.4) as usize).min(classes - 1),
        };
        x.extend(row);
        match classes {
            2 => y.push(if class == 1 { 1.0 } else { -1.0 }),
            _ => y.extend((0..classes).map(|c| (c == class) as u8 as f64)),
        }
    }
    Rows::new(
        Dense::new(x, d).unwrap(),
        y,
        if classes == 2 { 1 } else { classes },
    )
    .unwrap()
}

#[test]
fn forty_forgets_in_succession_keep_their_bounds_on_hard_tables() {
    use HardTable::{CorrelatedColumns, NearlyEmptyClass, OneHugeRow, Separable};
    for kind in [CorrelatedColumns, OneHugeRow, Separable, NearlyEmptyClass] {
        for classes in [2, 3] {
            for curvature in [true, false] {
                let rows = hard(kind, classes);
                let recipe = Logistic::new(0.3).curvature(curvature).tolerance(1e-4);
                let fit = |rows: &Rows| match classes {
                    2 => recipe.fit(rows).unwrap(),
                    _ => recipe.softmax().fit(rows).unwrap(),
                };
                let mut model = fit(&rows);
                let mut left = rows;
                for k in 0..40u64 {
                    let gone = RowId(4 + k * 3);
                    let context =
                        format!("{kind:?}, {classes} classes, kept {curvature}, request {k}");
                    let outcome = Auto::default()
                        .forget(&model, &left, &[gone])
                        .expect(&context);
                    left = left.filter(|id| id != gone);
                    model = outcome.model;
                    if k % 5 != 4 {
                        continue;
                    }
                    let truth = fit(&left);
                    let slack = Retrain.forget(&truth, &left, &[]).unwrap().evidence.bound;
                    let evidence = outcome.evidence;
                    let away = distance(&model, &truth);
                    assert!(
                        evidence.relative_bound <= recipe.tolerance,
                        "{context}: {:.1e}",
                        evidence.relative_bound
                    );
                    assert!(
                        away <= evidence.bound + slack,
                        "{context}: {away:.2e} > {:.2e}",
                        evidence.bound
                    );
                }
            }
        }
    }
}
