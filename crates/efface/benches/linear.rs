//! The linear core's measurements, one JSON line each, for `cargo xtask bench` to lay out beside
//! numpy and the paper.
//!
//! `linear deletion D [--quick]`, `linear flat`, `linear fit [N D]`, `linear stream`, `linear
//! injection`.

#![allow(
    clippy::expect_used,
    reason = "a benchmark that cannot go on should stop and say where"
)]

use std::time::Instant;

use efface::methods::Exact;
use efface::models::ridge::{leave_out_predictions, printed_form};
use efface::synthetic::{FeatureInjection, LinearProblem};
use efface::{Dense, Fit, Fitted, Forget, Form, Method, Ridge, RidgeModel, RowId, RowStore, Rows};
use faer::Mat;
use faer::linalg::solvers::Solve;
use serde_json::json;

const KS: [usize; 7] = [1, 5, 10, 30, 50, 100, 200];

fn main() {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| arg != "--bench")
        .collect();
    let number = |at: usize, default: usize| {
        args.get(at)
            .and_then(|arg| arg.parse().ok())
            .unwrap_or(default)
    };
    match args.first().map(String::as_str) {
        Some("deletion") => deletion(number(1, 1000)),
        Some("flat") => flat(),
        Some("fit") => fit(number(1, 30_000), number(2, 3000)),
        Some("stream") => stream(number(1, 100_000)),
        Some("injection") => injection(),
        // `cargo test --benches` and a bare `cargo bench` come here.
        _ => eprintln!("linear: deletion D | flat | fit N D | stream COUNT | injection"),
    }
}

/// How many threads `cargo xtask bench --threads` asks for.
fn threads(default: usize) -> usize {
    std::env::var("EFFACE_THREADS")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(default)
}

fn regression(rows: usize, width: usize) -> Rows {
    let data = LinearProblem {
        rows,
        width,
        seed: 7,
    }
    .generate();
    Rows::new(Dense::new(data.x, width).expect("row-major"), data.y, 1).expect("finite")
}

fn ids(n: usize, k: usize, trial: usize) -> Vec<RowId> {
    (0..k)
        .map(|i| RowId(((i * 7919 + trial * 104_729) % n) as u64))
        .collect()
}

/// The median of the times of `work`, in seconds: at least three runs, more while they are short.
fn median(mut work: impl FnMut(usize)) -> f64 {
    let mut times = Vec::new();
    let start = Instant::now();
    while times.len() < 3 || (times.len() < 101 && start.elapsed().as_secs_f64() < 0.4) {
        let trial = times.len();
        let one = Instant::now();
        work(trial);
        times.push(one.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn vector(model: &RidgeModel) -> Mat<f64> {
    model.parameters().0
}

fn deletion(d: usize) {
    let n = 10 * d;
    let rows = regression(n, d);
    let recipe = Ridge::new(1e-4).intercept(false);
    let start = Instant::now();
    let factor = recipe.fit(&rows).expect("fits");
    let retrain = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let kept = recipe.form(Form::Rows).fit(&rows).expect("fits");
    let precompute = start.elapsed().as_secs_f64() - retrain;
    let inverse = recipe.form(Form::Inverse).fit(&rows).expect("fits");
    let rows_bytes: usize = kept.precomputed().iter().map(|part| part.bytes).sum();
    println!(
        "{}",
        json!({"what": "retrain", "d": d, "seconds": retrain, "rows_form_extra_seconds": precompute,
               "rows_form_bytes": rows_bytes})
    );
    for k in KS {
        let gone = ids(n, k, 0);
        let without: std::collections::HashSet<RowId> = gone.iter().copied().collect();
        let truth = recipe
            .fit(&rows.filter(|id| !without.contains(&id)))
            .expect("fits");
        let truth_vector = vector(&truth);
        let moved = (&vector(&factor) - &truth_vector).norm_l2();
        let report = |name: &str, seconds: f64, result: &Mat<f64>| {
            let off = (result - &truth_vector).norm_l2();
            println!(
                "{}",
                json!({"what": "cell", "d": d, "k": k, "method": name, "seconds": seconds,
                       "of_retrain": seconds / retrain, "relative": off / truth_vector.norm_l2(),
                       "undone": off / moved})
            );
        };
        let cases: [(&str, &RidgeModel, &str); 8] = [
            ("exact, rows", &kept, "exact"),
            ("exact, inverse", &inverse, "exact"),
            ("exact, factor", &factor, "exact"),
            ("newton, factor", &factor, "newton"),
            ("influence, rows", &kept, "influence"),
            ("influence, factor", &factor, "influence"),
            ("projection_residual, rows", &kept, "projection_residual"),
            ("summation", &factor, "summation"),
        ];
        for (name, model, method) in cases {
            let method = method.parse::<Method>().expect("a method");
            let result = method.forget(model, &rows, &gone).expect("forgets");
            let seconds = median(|trial| {
                method
                    .forget(model, &rows, &ids(n, k, trial))
                    .expect("forgets");
            });
            report(name, seconds, &vector(&result.model));
        }
        // The printed form gets its hat block for nothing; it reads its rows like the others.
        let predictions = leave_out_predictions(&kept, &rows, &gone).expect("predicts");
        let theta = vector(&kept);
        let read = |gone: &[RowId]| {
            let mut x = Mat::zeros(d, k);
            let mut y = Mat::zeros(k, 1);
            rows.visit(gone, &mut |i, row| {
                row.features.add_to(1.0, x.col_as_slice_mut(i));
                y[(i, 0)] = row.targets[0];
            })
            .expect("known rows");
            (x, y)
        };
        let hat = hat_block(&kept, &read(&gone).0);
        let printed = {
            let (x, y) = read(&gone);
            printed_form(&x, &y, &theta, &hat).expect("works")
        };
        let seconds = median(|trial| {
            let (x, y) = read(&ids(n, k, trial));
            printed_form(&x, &y, &theta, &hat).expect("works");
        });
        report("projection_residual, as printed", seconds, &printed);
        let mut worst = 0.0f64;
        rows.visit(&gone, &mut |i, row| {
            worst = worst.max((truth.score(row.features)[0] - predictions[(i, 0)]).abs());
        })
        .expect("known rows");
        println!(
            "{}",
            json!({"what": "leave_out", "d": d, "k": k, "worst": worst})
        );
    }
}

/// H_D = X_D A⁻¹ X_Dᵀ, from the fitted model's own sums.
fn hat_block(model: &RidgeModel, x: &Mat<f64>) -> Mat<f64> {
    let state = model.to_state().expect("settled");
    let d = x.nrows();
    let mut a = Mat::zeros(d, d);
    let mut at = 0;
    for j in 0..d {
        for i in j..d {
            a[(i, j)] = state.a[at];
            at += 1;
        }
    }
    // The sums are in the model's coordinates, where a column is divided by its scale.
    let mut scaled = x.clone();
    for (j, s) in state.inverse_scale.iter().enumerate() {
        scaled.row_mut(j).iter_mut().for_each(|x| *x *= s);
    }
    let solved = a
        .llt(faer::Side::Lower)
        .expect("positive definite")
        .solve(&scaled);
    scaled.transpose() * solved
}

/// Forget time against n at d = 256, one row and ten, rows never twice.
fn flat() {
    let d = 256;
    for form in [Form::Factor, Form::Rows] {
        for n in [10_000usize, 100_000, 1_000_000] {
            let data = LinearProblem {
                rows: 10_000,
                width: d,
                seed: 11,
            }
            .generate();
            let x: Vec<f64> = (0..n / 10_000)
                .flat_map(|_| data.x.iter().copied())
                .collect();
            let y: Vec<f64> = (0..n / 10_000)
                .flat_map(|_| data.y.iter().copied())
                .collect();
            let rows = Rows::new(Dense::new(x, d).expect("row-major"), y, 1).expect("finite");
            let model = Ridge::new(1.0)
                .form(form)
                .threads(threads(2))
                .fit(&rows)
                .expect("fits");
            for k in [1, 10] {
                for trial in 0..200 {
                    Exact
                        .forget(&model, &rows, &ids(n, k, trial))
                        .expect("forgets");
                }
                let seconds = median(|trial| {
                    Exact
                        .forget(&model, &rows, &ids(n, k, trial + 200))
                        .expect("forgets");
                });
                println!(
                    "{}",
                    json!({"what": "flat", "form": format!("{form:?}").to_lowercase(), "n": n, "k": k,
                           "seconds": seconds})
                );
            }
        }
    }
}

fn fit(n: usize, d: usize) {
    let rows = regression(n, d);
    // Making the data took twice its size; from here on the peak is the fit's.
    let reset = std::fs::write("/proc/self/clear_refs", "5").is_ok();
    let base = resident();
    let seconds = median(|_| {
        Ridge::new(1.0)
            .threads(threads(2))
            .fit(&rows)
            .expect("fits");
    });
    println!(
        "{}",
        json!({"what": "fit", "n": n, "d": d, "seconds": seconds, "data_bytes": rows.bytes(),
               "resident_before": base, "peak": if reset { peak() } else { 0 }, "square_bytes": d * d * 8})
    );
}

/// One deletion after another from one model.
fn stream(count: usize) {
    let d = 200;
    let n = count + count / 10;
    let rows = regression(n, d);
    let start = Instant::now();
    let recipe = Ridge::new(1e-2);
    let mut fitted = Fitted::new(&recipe, rows).expect("fits");
    let mut worst = 0.0f64;
    let mut checked = 0;
    let mut largest_bound = 0.0f64;
    let mut forgetting = 0.0;
    for i in 0..count {
        let id = RowId(((i * 7919) % n) as u64);
        let one = Instant::now();
        let evidence = fitted.forget(&Exact, &[id]).expect("forgets");
        forgetting += one.elapsed().as_secs_f64();
        largest_bound = largest_bound.max(evidence.relative_bound);
        if (i + 1) % (count / 100).max(1) == 0 {
            let truth = recipe.fit(fitted.rows()).expect("fits");
            let off =
                (vector(fitted.model()) - vector(&truth)).norm_l2() / vector(&truth).norm_l2();
            worst = worst.max(off);
            checked += 1;
        }
    }
    println!(
        "{}",
        json!({"what": "stream", "deletions": count, "d": d, "rows_left": fitted.rows().len(), "checked": checked,
               "worst_relative": worst, "largest_relative_bound": largest_bound,
               "refactorisations": fitted.model().refactorisations(), "microseconds_each": forgetting / count as f64 * 1e6,
               "seconds": start.elapsed().as_secs_f64()})
    );
}

/// The paper's construction at d = 1500: how much of the injected weight is left.
fn injection() {
    let d = 1500;
    for k in [10, 50, 100] {
        for keep in [0.5, 0.25, 0.1] {
            let base = LinearProblem {
                rows: 10 * d,
                width: d,
                seed: 3,
            };
            let data = FeatureInjection {
                base,
                removed: k,
                keep,
            }
            .generate()
            .expect("in range");
            let rows =
                Rows::new(Dense::new(data.x, d).expect("row-major"), data.y, 1).expect("finite");
            let recipe = Ridge::new(1e-4).intercept(false);
            let model = recipe.fit(&rows).expect("fits");
            let gone: Vec<RowId> = (0..k as u64).map(RowId).collect();
            let truth = vector(
                &recipe
                    .fit(&rows.filter(|id| id.0 >= k as u64))
                    .expect("fits"),
            );
            let before = vector(&model)[(d - 1, 0)];
            for method in [
                "exact",
                "newton",
                "influence",
                "projection_residual",
                "summation",
            ] {
                let method = method.parse::<Method>().expect("a method");
                let outcome = method.forget(&model, &rows, &gone).expect("forgets");
                let after = vector(&outcome.model);
                println!(
                    "{}",
                    json!({"what": "injection", "k": k, "p": keep, "method": method.name(), "before": before,
                           "left": (after[(d - 1, 0)] / before).abs(),
                           "relative": (&after - &truth).norm_l2() / truth.norm_l2(),
                           "bound": outcome.evidence.relative_bound, "condition": outcome.evidence.condition,
                           "refinements": outcome.evidence.refinements, "refactored": outcome.evidence.refactored})
                );
            }
        }
    }
}

/// Resident memory now and at its highest, in bytes; 0 where the system does not say.
fn resident() -> u64 {
    status("VmRSS:")
}

fn peak() -> u64 {
    status("VmHWM:")
}

fn status(key: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(key));
    line.and_then(|line| line.split_whitespace().nth(1))
        .and_then(|kb| kb.parse::<u64>().ok())
        .unwrap_or(0)
        * 1024
}
