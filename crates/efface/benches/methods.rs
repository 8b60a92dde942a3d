//! Every method of every family on real data, one JSON line each, for `cargo xtask bench methods`
//! to lay out.
//!
//! `methods train FOLDER`, `methods goal FOLDER`, `methods compare FOLDER SET`, `methods chain
//! FOLDER`. The folder is made by `xtask/bench/methods.py prepare`: scikit-learn trains on the same
//! arrays.

#![allow(
    clippy::expect_used,
    reason = "a benchmark that cannot go on should stop and say where"
)]

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use efface::methods::{
    Auto, Certified, DcKMeans, DeltaGrad, DescentToDelete, Influence, Newton, ProjectionResidual,
    QKMeans, Retrain, SisaForget, Summation, WarmStart,
};
use efface::models::logistic::{Certifier, Privacy};
use efface::random::scrambled;
use efface::{
    Aggregation, Classes, Csr, Dense, Features, Fit, Fitted, Forget, GaussianNb, KMeans,
    KMeansModel, Logistic, LogisticModel, MultinomialNb, NaiveBayes, Outcome, Predict, RowId,
    RowStore, Rows, Sisa, SisaModel, Softmax,
};
use serde_json::{Value, json};

const SETS: [&str; 4] = ["synthetic", "adult", "covertype", "clothing"];
const KS: [usize; 4] = [1, 10, 100, 1000];
const LAMBDA: f64 = 1.0;
/// The certified models' ε and δ.
const PROMISE: (f64, f64) = (1.0, 1e-5);
/// λ and σ of certified removal.
const REMOVAL: (f64, f64) = (10.0, 1.0);
/// λ of descent to delete, whose steps grow with 1/λ, and the distance it must reach.
const DESCENT: (f64, f64) = (100.0, 1e-3);
/// A method that takes longer for a request, in seconds, is not asked for a larger one.
const PATIENCE: f64 = 20.0;

/// How many threads `cargo xtask bench --threads` asks for.
fn threads(default: usize) -> usize {
    std::env::var("EFFACE_THREADS")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(default)
}

fn main() {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| arg != "--bench")
        .collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["train", folder] => SETS.iter().for_each(|name| train(folder, name)),
        ["goal", folder] => goal(&Set::read(folder, "synthetic")),
        ["compare", folder, name] => compare(&Set::read(folder, name)),
        ["chain", folder] => chain(&Set::read(folder, "adult")),
        // `cargo test --benches` and a bare `cargo bench` come here.
        _ => eprintln!("methods: train FOLDER | goal FOLDER | compare FOLDER SET | chain FOLDER"),
    }
}

/// The arrays of one data set.
struct Set {
    name: String,
    rows: Rows,
    test: Features,
    /// The classes of the test rows.
    answers: Vec<u8>,
    classes: Classes,
}

fn bytes<const N: usize>(path: &Path) -> Vec<[u8; N]> {
    let raw = std::fs::read(path).expect("prepared");
    raw.chunks_exact(N)
        .map(|chunk| chunk.try_into().expect("N bytes"))
        .collect()
}

impl Set {
    fn read(folder: &str, name: &str) -> Self {
        let folder = PathBuf::from(folder).join(name);
        let about = std::fs::read_to_string(folder.join("about.json")).expect("prepared");
        let about: Value = serde_json::from_str(&about).expect("JSON");
        let number = |key: &str| about[key].as_u64().expect("a number") as usize;
        let width = number("width");
        let classes =
            Classes::new((0..number("classes")).map(|c| c.to_string()).collect()).expect("two");
        let features = |part: &str| -> Features {
            let at = |kind: &str| folder.join(format!("{part}.{kind}"));
            if about["sparse"] == false {
                let values = bytes(&at("x"))
                    .into_iter()
                    .map(f64::from_le_bytes)
                    .collect();
                return Dense::new(values, width).expect("row-major").into();
            }
            let starts = bytes(&at("starts"))
                .into_iter()
                .map(|b| u64::from_le_bytes(b) as usize)
                .collect();
            let columns = bytes(&at("columns"))
                .into_iter()
                .map(u32::from_le_bytes)
                .collect();
            let values: Vec<f32> = bytes(&at("values"))
                .into_iter()
                .map(f32::from_le_bytes)
                .collect();
            Csr::from_parts(starts, columns, values, width)
                .expect("ordered")
                .into()
        };
        let mut targets = Vec::new();
        for class in std::fs::read(folder.join("train.y")).expect("prepared") {
            classes.encode(class as usize, &mut targets);
        }
        let rows = Rows::new(features("train"), targets, classes.outputs()).expect("finite");
        let answers = std::fs::read(folder.join("test.y")).expect("prepared");
        Self {
            name: name.into(),
            rows,
            test: features("test"),
            answers,
            classes,
        }
    }

    fn is_binary(&self) -> bool {
        self.classes.outputs() == 1
    }

    fn fit(&self, curvature: bool) -> LogisticModel {
        self.fit_to(curvature, 1e-10)
    }

    fn fit_to(&self, curvature: bool, gradient: f64) -> LogisticModel {
        let logistic = Logistic {
            gradient,
            ..Logistic::new(LAMBDA)
                .threads(threads(2))
                .curvature(curvature)
        };
        let softmax = Softmax {
            gradient,
            ..Softmax::new(LAMBDA)
                .threads(threads(2))
                .curvature(curvature)
        };
        let fitted = if self.is_binary() {
            logistic.fit(&self.rows)
        } else {
            softmax.fit(&self.rows)
        };
        fitted.expect("fits")
    }

    fn accuracy<M: Predict>(&self, model: &M) -> f64 {
        let scores = model.predict(&self.test).expect("predicts");
        let mut line = vec![0.0; scores.ncols()];
        let right = self.answers.iter().enumerate().filter(|(row, answer)| {
            line.iter_mut()
                .enumerate()
                .for_each(|(c, score)| *score = scores[(*row, c)]);
            self.classes.decide(&line) == **answer as usize
        });
        right.count() as f64 / self.answers.len() as f64
    }

    /// `k` rows, other ones for every trial.
    fn draw(&self, k: usize, trial: usize) -> Vec<RowId> {
        let mut state = (trial as u64 + 1) << 32 | k as u64;
        let mut seen = HashSet::new();
        let mut ids = Vec::new();
        while ids.len() < k {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let id = RowId(scrambled(state) % self.rows.len() as u64);
            if seen.insert(id) {
                ids.push(id);
            }
        }
        ids
    }

    fn without(&self, gone: &[RowId]) -> Rows {
        let gone: HashSet<RowId> = gone.iter().copied().collect();
        self.rows.filter(|id| !gone.contains(&id))
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let done = work();
    (done, start.elapsed().as_secs_f64())
}

/// The median; not a number where there is nothing to take it of.
fn middle(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The median of three runs, or the one run if it took 5 seconds.
fn median_of_three(mut work: impl FnMut()) -> f64 {
    let mut times = vec![timed(&mut work).1];
    while times.len() < 3 && times[0] < 5.0 {
        times.push(timed(&mut work).1);
    }
    middle(times)
}

fn norm(v: &[f64]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn relative(a: &[f64], truth: &[f64]) -> f64 {
    let away: Vec<f64> = a.iter().zip(truth).map(|(a, b)| a - b).collect();
    norm(&away) / norm(truth)
}

fn columns(a: &faer::Mat<f64>) -> Vec<f64> {
    (0..a.ncols())
        .flat_map(|c| a.col_as_slice(c).to_vec())
        .collect()
}

fn parameters(model: &LogisticModel) -> Vec<f64> {
    let (coefficients, intercept) = model.parameters();
    columns(&coefficients)
        .into_iter()
        .chain(intercept)
        .collect()
}

/// Training, with and without what forgetting needs; the parameters go to a file, where
/// scikit-learn's side looks at them.
fn train(folder: &str, name: &str) {
    eprintln!("efface trains on {name} …");
    let set = Set::read(folder, name);
    let rough = median_of_three(|| drop(set.fit_to(false, 1e-3)));
    let plain = median_of_three(|| drop(set.fit(false)));
    let with_curvature = median_of_three(|| drop(set.fit(true)));
    let theta: Vec<u8> = parameters(&set.fit(false))
        .into_iter()
        .flat_map(f64::to_le_bytes)
        .collect();
    std::fs::write(PathBuf::from(folder).join(name).join("theta"), theta).expect("writable");
    println!(
        "{}",
        json!({"what": "train", "set": name, "rough": rough, "seconds": plain, "with_curvature": with_curvature})
    );
}

/// One Newton step for ten rows against training again.
fn goal(set: &Set) {
    eprintln!("newton on {} …", set.name);
    let model = set.fit(true);
    let k = 10;
    let plain = median_of_three(|| drop(set.fit(false)));
    let mut retraining = Vec::new();
    let mut distances = Vec::new();
    let mut bounds = Vec::new();
    for trial in 0..5 {
        let gone = set.draw(k, trial);
        let (truth, seconds) = timed(|| Retrain.forget(&model, &set.rows, &gone).expect("forgets"));
        retraining.push(seconds);
        let outcome = Newton::default()
            .forget(&model, &set.rows, &gone)
            .expect("forgets");
        distances.push(relative(
            &parameters(&outcome.model),
            &parameters(&truth.model),
        ));
        bounds.push(outcome.evidence.relative_bound);
    }
    let newton = (0..50).map(|trial| {
        let gone = set.draw(k, trial);
        timed(|| {
            Newton::default()
                .forget(&model, &set.rows, &gone)
                .expect("forgets")
        })
        .1
    });
    let newton = middle(newton.collect());
    let largest = distances.iter().copied().fold(0.0, f64::max);
    println!(
        "{}",
        json!({"what": "goal", "rows": set.rows.len(), "width": set.rows.width(), "k": k, "newton": newton,
               "retraining": middle(retraining), "training": plain, "distance": middle(distances),
               "largest_distance": largest, "bound": middle(bounds)})
    );
}

/// A family of models on one data set.
struct Family<'a, M> {
    set: &'a Set,
    name: &'a str,
    model: &'a M,
    /// How far a model is from the retrained one.
    away: &'a dyn Fn(&M, &M, &[RowId]) -> f64,
    /// The share of test rows that it gets right, for those that answer.
    accuracy: &'a dyn Fn(&M) -> Option<f64>,
    /// What else there is to say of an outcome.
    more: &'a dyn Fn(&Outcome<M>, &[RowId]) -> Value,
}

impl<M> Family<'_, M>
where
    Retrain: Forget<M>,
{
    /// Each method at each k, against the family's own retraining.
    fn compare(&self, methods: &[(&str, &dyn Forget<M>)]) {
        let Self {
            set, name, model, ..
        } = *self;
        let before = (self.accuracy)(model);
        let mut truths = Vec::new();
        for k in KS {
            eprintln!("{}: {name}, k = {k}: retrain …", set.name);
            truths.push(timed(|| {
                Retrain
                    .forget(model, &set.rows, &set.draw(k, 0))
                    .expect("forgets")
            }));
        }
        // Retraining hardly depends on k: one time for all, and four measurements for it.
        let retraining = middle(truths.iter().map(|truth| truth.1).collect());
        let mut tired: Vec<&str> = Vec::new();
        for (k, (truth, seconds)) in KS.into_iter().zip(&truths) {
            let retrained = (self.accuracy)(&truth.model);
            let gone = set.draw(k, 0);
            let say = |method: &str, seconds: f64, read: f64, outcome: &Outcome<M>, more: Value| {
                let evidence = &outcome.evidence;
                let after = (self.accuracy)(&outcome.model);
                println!(
                    "{}",
                    json!({"what": "cell", "set": set.name, "family": name, "method": method, "k": k,
                           "seconds": seconds, "retraining": retraining,
                           "away": (self.away)(&outcome.model, &truth.model, &gone),
                           "bound": evidence.relative_bound, "before": before, "after": after,
                           "retrained": retrained, "rows_read": read, "reason": evidence.reason,
                           "more": more})
                );
            };
            say(
                "retrain",
                *seconds,
                truth.evidence.rows_read as f64,
                truth,
                Value::Null,
            );
            for (method, forget) in methods {
                if tired.contains(method) {
                    println!(
                        "{}",
                        json!({"what": "skipped", "set": set.name, "family": name, "method": method, "k": k,
                               "why": format!("a smaller request took more than {PATIENCE} s")})
                    );
                    continue;
                }
                eprintln!("{}: {name}, k = {k}: {method} …", set.name);
                let run = |gone: &[RowId]| forget.forget(model, &set.rows, gone).expect("forgets");
                let (outcome, first) = timed(|| run(&gone));
                let mut times = vec![first];
                let mut read = vec![outcome.evidence.rows_read as f64];
                let start = Instant::now();
                while first < 0.3 && times.len() < 41 && start.elapsed().as_secs_f64() < 0.4 {
                    let gone = set.draw(k, times.len());
                    let (outcome, seconds) = timed(|| run(&gone));
                    times.push(seconds);
                    read.push(outcome.evidence.rows_read as f64);
                }
                if first > PATIENCE {
                    tired.push(method);
                }
                say(
                    method,
                    middle(times),
                    middle(read),
                    &outcome,
                    (self.more)(&outcome, &gone),
                );
            }
        }
    }
}

fn compare(set: &Set) {
    classifier(set);
    if set.is_binary() {
        certified(set);
        sharded(set, Logistic::new(LAMBDA).curvature(false));
    } else {
        sharded(set, Softmax::new(LAMBDA).curvature(false));
    }
    naive_bayes(set);
    if !set.rows.is_sparse() {
        clusters(set);
    }
}

fn classifier(set: &Set) {
    let family = Family {
        set,
        name: &format!(
            "{}, λ = {LAMBDA}",
            if set.is_binary() {
                "logistic"
            } else {
                "softmax"
            }
        ),
        model: &set.fit(true),
        away: &|a, b, _| relative(&parameters(a), &parameters(b)),
        accuracy: &|model| Some(set.accuracy(model)),
        more: &|_, _| Value::Null,
    };
    family.compare(&[
        ("newton", &Newton::default()),
        (
            "newton, measured",
            &Newton {
                steps: 1,
                measure: true,
            },
        ),
        (
            "newton, 2 steps",
            &Newton {
                steps: 2,
                measure: false,
            },
        ),
        ("influence", &Influence),
        ("projection_residual", &ProjectionResidual::default()),
        ("warm_start", &WarmStart),
        ("delta_grad", &DeltaGrad::default()),
        (
            "auto, 1e-6",
            &Auto {
                tolerance: Some(1e-6),
            },
        ),
    ]);
}

fn removal() -> Logistic {
    let (lambda, noise) = REMOVAL;
    let privacy = Privacy {
        certifier: Certifier::Removal { noise },
        ..Privacy::removal(PROMISE.0, PROMISE.1, 0)
    };
    Logistic::new(lambda).threads(threads(2)).privacy(privacy)
}

/// Σ ∇ℓ + λθ without noise, worked out from the definition: rows with a constant, scaled to a norm
/// of at most 1.
fn gradient(theta: &[f64], rows: &Rows, lambda: f64) -> Vec<f64> {
    let d = theta.len() - 1;
    let mut sum: Vec<f64> = theta.iter().map(|t| lambda * t).collect();
    for row in rows.iter() {
        let mut square = 1.0;
        row.features.each(|_, x| square += x * x);
        let scale = 1.0 / f64::max(square.sqrt(), 1.0);
        let margin = row.targets[0] * scale * (row.features.dot(&theta[..d]) + theta[d]);
        let slope = -row.targets[0] / (1.0 + margin.exp());
        row.features.add_to(slope * scale, &mut sum[..d]);
        sum[d] += slope * scale;
    }
    sum
}

/// What is left of the gradient, noise included, over the rows that are left.
fn residual(model: &LogisticModel, rows: &Rows, noise: &[f64]) -> f64 {
    let gradient = gradient(&parameters(model), rows, model.settings().logistic.lambda);
    norm(
        &gradient
            .iter()
            .zip(noise)
            .map(|(g, b)| g + b)
            .collect::<Vec<_>>(),
    )
}

/// The noise in the objective: at the optimum, b = −∇L.
fn noise(model: &LogisticModel, rows: &Rows) -> Vec<f64> {
    gradient(&parameters(model), rows, model.settings().logistic.lambda)
        .iter()
        .map(|g| -g)
        .collect()
}

/// The certified account of a model as it stands, without a request.
fn used(model: &LogisticModel, rows: &Rows) -> f64 {
    let nothing = Certified::of(model).and_then(|method| method.forget(model, rows, &[]));
    nothing
        .expect("forgets")
        .evidence
        .certificate
        .expect("a certified model")
        .used
}

/// `truth` is the true residual, and how well it is known.
fn account(outcome: &Outcome<LogisticModel>, truth: Option<(f64, f64)>) -> Value {
    let certificate = outcome
        .evidence
        .certificate
        .as_ref()
        .expect("a certified model");
    json!({"budget": certificate.budget, "used": certificate.used, "retrained": certificate.retrained,
           "noise": certificate.noise, "unit": certificate.unit,
           "truth": truth.map(|t| t.0), "slack": truth.map(|t| t.1),
           "steps": outcome.evidence.iterations})
}

fn certified(set: &Set) {
    let (epsilon, delta) = PROMISE;
    let model = removal().fit(&set.rows).expect("fits");
    let hidden = noise(&model, &set.rows);
    let slack = used(&model, &set.rows);
    let family = Family {
        set,
        name: &format!(
            "logistic, ε = {epsilon}, δ = {delta:.0e}, λ = {}, noise {}",
            REMOVAL.0, REMOVAL.1
        ),
        model: &model,
        away: &|a, b, _| relative(&parameters(a), &parameters(b)),
        accuracy: &|model| Some(set.accuracy(model)),
        more: &|outcome, gone| {
            // A model trained anew has fresh noise, which only its own optimum tells.
            let same = !outcome
                .evidence
                .certificate
                .as_ref()
                .is_some_and(|c| c.retrained);
            account(
                outcome,
                same.then(|| (residual(&outcome.model, &set.without(gone), &hidden), slack)),
            )
        },
    };
    let certified = Certified::of(&model).expect("fitted for it");
    let two = certified.steps(2).expect("1 or 2");
    family.compare(&[("certified", &certified), ("certified, 2 steps", &two)]);

    let (lambda, distance) = DESCENT;
    let privacy = Privacy {
        certifier: Certifier::Descent { distance },
        ..Privacy::descent(epsilon, delta, 0)
    };
    let model = Logistic::new(lambda)
        .threads(threads(2))
        .privacy(privacy)
        .fit(&set.rows)
        .expect("fits");
    // Two publications have noise of their own: the distance is that to the optimum, which a tiny
    // distance all but shows.
    let bare = Privacy {
        certifier: Certifier::Descent { distance: 1e-9 },
        ..privacy
    };
    let bare = Logistic::new(lambda).threads(threads(2)).privacy(bare);
    let family = Family {
        away: &|a, _, gone| {
            let optimum = bare.fit(&set.without(gone)).expect("fits");
            relative(&parameters(a), &parameters(&optimum))
        },
        name: &format!(
            "logistic, ε = {epsilon}, δ = {delta:.0e}, λ = {lambda}, distance {distance:.0e}"
        ),
        model: &model,
        more: &|outcome, _| account(outcome, None),
        ..family
    };
    family.compare(&[(
        "descent_to_delete",
        &DescentToDelete::of(&model).expect("fitted for it"),
    )]);
}

fn sharded<F>(set: &Set, recipe: F)
where
    F: Fit<Model = LogisticModel> + Clone + Send + Sync,
{
    for slices in [1, 4] {
        let sisa = Sisa::new(recipe.clone(), 5, slices)
            .aggregation(Aggregation::Mean)
            .threads(threads(2));
        let family = Family {
            set,
            name: &format!("sisa, 5 shards × {slices}"),
            model: &sisa.fit(&set.rows).expect("fits"),
            away: &|a: &SisaModel<F>, b, _| {
                let scores = |model: &SisaModel<F>| model.predict(&set.test).expect("predicts");
                columns(&(scores(a) - scores(b)))
                    .iter()
                    .fold(0.0, |most, x| x.abs().max(most))
            },
            accuracy: &|model| Some(set.accuracy(model)),
            more: &|_, _| Value::Null,
        };
        family.compare(&[("sisa", &SisaForget)]);
    }
}

fn naive_bayes(set: &Set) {
    if set.rows.is_sparse() {
        let vector = |model: &NaiveBayes<MultinomialNb>| {
            let mut all = columns(&model.feature_log_prob());
            all.extend(model.class_prior());
            all
        };
        let family = Family {
            set,
            name: "multinomial naive Bayes",
            model: &MultinomialNb::default().fit(&set.rows).expect("fits"),
            away: &|a, b, _| relative(&vector(a), &vector(b)),
            accuracy: &|model| Some(set.accuracy(model)),
            more: &|_, _| Value::Null,
        };
        return family.compare(&[("summation", &Summation)]);
    }
    let vector = |model: &NaiveBayes<GaussianNb>| {
        let mut all = columns(&model.means());
        all.extend(columns(&model.variances()));
        all.extend(model.class_prior());
        all
    };
    let family = Family {
        set,
        name: "Gaussian naive Bayes",
        model: &GaussianNb::default().fit(&set.rows).expect("fits"),
        away: &|a, b, _| relative(&vector(a), &vector(b)),
        accuracy: &|model| Some(set.accuracy(model)),
        more: &|_, _| Value::Null,
    };
    family.compare(&[("summation", &Summation)]);
}

fn clusters(set: &Set) {
    let quantised = (
        KMeans::quantised(10, 0.5),
        "k-means, 10 clusters, cells of 0.5",
    );
    let divided = (
        KMeans::divided(10, 1, 64),
        "k-means, 10 clusters, 64 leaves",
    );
    for (recipe, name) in [quantised, divided] {
        let family = Family {
            set,
            name,
            model: &recipe.fit(&set.rows).expect("fits"),
            away: &|a: &KMeansModel, b, _| relative(&columns(&a.centers()), &columns(&b.centers())),
            accuracy: &|_| None,
            more: &|_, _| Value::Null,
        };
        if recipe == quantised.0 {
            family.compare(&[("q_kmeans", &QKMeans)])
        } else {
            family.compare(&[("dc_kmeans", &DcKMeans)])
        }
    }
}

/// A thousand certified deletions, one after the other: the budget as it is used up, and the
/// account against the truth.
fn chain(set: &Set) {
    let count = 1000;
    let checks = 50;
    eprintln!("{}: {count} certified deletions …", set.name);
    let mut fitted = Fitted::new(&removal(), set.rows.clone()).expect("fits");
    let certified = Certified::of(fitted.model()).expect("fitted for it");
    // The noise is known as well as the fit was trained.
    let mut slack = used(fitted.model(), fitted.rows());
    let mut hidden = noise(fitted.model(), fitted.rows());
    let mut first = None;
    let mut first_reading = None;
    let mut retrainings = 0;
    let mut checked = 0;
    let mut quick = Vec::new();
    let mut reading = Vec::new();
    let mut largest_share = 0.0f64;
    let mut budget = 0.0;
    let mut least = f64::INFINITY;
    let mut most = 0.0f64;
    for (at, id) in set.draw(count, 0).into_iter().enumerate() {
        let (evidence, seconds) = timed(|| fitted.forget(&certified, &[id]).expect("forgets"));
        if evidence.rows_read > 1 {
            first_reading = first_reading.or(Some(at + 1));
            reading.push(seconds);
        } else {
            quick.push(seconds);
        }
        let certificate = evidence.certificate.expect("a certified model");
        budget = certificate.budget;
        largest_share = largest_share.max(certificate.used / certificate.budget);
        if certificate.retrained {
            first = first.or(Some(at));
            retrainings += 1;
            slack = certificate.used;
            hidden = noise(fitted.model(), fitted.rows());
        } else if (at + 1) % (count / checks) == 0 {
            let share =
                residual(fitted.model(), fitted.rows(), &hidden) / (certificate.used + slack);
            (least, most) = (least.min(share), most.max(share));
            checked += 1;
        }
    }
    println!(
        "{}",
        json!({"what": "chain", "set": set.name, "deletions": count, "lambda": REMOVAL.0, "noise": REMOVAL.1,
               "first_retraining": first, "retrainings": retrainings, "budget": budget,
               "largest_share": largest_share, "least": least, "most": most, "checked": checked,
               "reading": reading.len(), "first_reading": first_reading, "seconds": middle(quick),
               "reading_seconds": middle(reading)})
    );
}
