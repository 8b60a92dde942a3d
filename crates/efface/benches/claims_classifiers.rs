//! What the bounds of classifiers are worth: `cargo xtask claims classifiers [PROBLEMS [SEED]]`.
//!
//! Draws small problems (30 to 300 rows, 2 to 20 columns, 2 to 5 classes, λ from 1e-3 to 10, some
//! with correlated columns, unlike units or columns far from 0), forgets one to five rows from each
//! by every method, and compares the bound with the distance to the optimum of the retained rows,
//! found by a refit whose own bound is the slack. A second table does the same on sparse rows of
//! many classes, most of them rare, where intercepts that nothing penalises spoil an eigenvalue. A
//! third forgets one row after another from dense rows of several classes, which are looked at in
//! single precision. Ends with status 1 when a bound is exceeded.

#![allow(clippy::print_stdout, reason = "its whole purpose is to print tables")]

use efface::methods::{Auto, Retrain};
use efface::models::logistic::LogisticModel;
use efface::{
    Csr, Dense, Error, Family, Features, Fit, Fitted, Forget, Logistic, Method, Result, RowId, Rows,
};

const TOLERANCE: f64 = 1e-6;

/// A small generator, so that the problems do not depend on any crate's stream.
struct Numbers(u64);

impl Numbers {
    /// Uniform between 0 and 1.
    fn share(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((self.0 >> 11) as f64) / (1u64 << 53) as f64
    }

    /// Uniform between −1 and 1.
    fn next(&mut self) -> f64 {
        2.0 * self.share() - 1.0
    }

    fn between(&mut self, least: usize, most: usize) -> usize {
        least + (self.share() * (most - least + 1) as f64) as usize
    }
}

struct Problem {
    rows: Rows,
    gone: Vec<RowId>,
    lambda: f64,
    classes: usize,
}

/// Targets of a class, as the recipes take them.
fn targets(class: usize, classes: usize) -> Vec<f64> {
    match classes {
        2 => vec![if class == 1 { 1.0 } else { -1.0 }],
        _ => (0..classes).map(|c| (c == class) as u8 as f64).collect(),
    }
}

fn problem(seed: u64) -> Result<Problem> {
    let mut numbers = Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1));
    (0..8).for_each(|_| {
        numbers.next();
    });
    let n = numbers.between(30, 300);
    let d = numbers.between(2, 20);
    let classes = numbers.between(2, 5);
    let lambda = 10f64.powf(-3.0 + 4.0 * numbers.share());
    let rows = dense(&mut numbers, (n, d, classes), seed % 4)?;
    let count = numbers.between(1, 5);
    // The first rows of each class stay.
    let mut gone: Vec<RowId> = (0..count)
        .map(|_| RowId(numbers.between(classes, n - 1) as u64))
        .collect();
    gone.sort_unstable();
    gone.dedup();
    Ok(Problem {
        rows,
        gone,
        lambda,
        classes,
    })
}

/// Dense rows: plain, with correlated columns, of unlike units, or far from 0.
fn dense(numbers: &mut Numbers, (n, d, classes): (usize, usize, usize), kind: u64) -> Result<Rows> {
    let truth: Vec<f64> = (0..d * classes).map(|_| 2.0 * numbers.next()).collect();
    let noise = 0.2 + 2.0 * numbers.share();
    let mut x = Vec::with_capacity(n * d);
    let mut y = Vec::new();
    for i in 0..n {
        let common = numbers.next();
        let plain: Vec<f64> = (0..d).map(|_| numbers.next()).collect();
        let mut class = 0;
        let mut best = f64::NEG_INFINITY;
        for c in 0..classes {
            let score: f64 = plain
                .iter()
                .enumerate()
                .map(|(j, x)| x * truth[c * d + j])
                .sum();
            let score = score + noise * numbers.next();
            if score > best {
                class = c;
                best = score;
            }
        }
        // The first rows see to it that every class has two.
        y.extend(targets(
            if i < 2 * classes { i % classes } else { class },
            classes,
        ));
        x.extend(plain.iter().enumerate().map(|(j, value)| match kind {
            1 => 0.1 * value + common,
            2 => value * 10f64.powi((j % 7) as i32 - 3),
            3 => value + 50.0,
            _ => *value,
        }));
    }
    let outputs = if classes == 2 { 1 } else { classes };
    Rows::new(Dense::new(x, d)?, y, outputs)
}

/// Words of which each class prefers some, and classes of which the last have a row or two.
fn text(seed: u64, classes: usize) -> Result<Problem> {
    let mut numbers = Numbers(seed.wrapping_mul(77) + classes as u64);
    let words = 250;
    let mut csr = Csr::<f32>::new(words);
    let mut y = Vec::new();
    let n = 700;
    for i in 0..n {
        // The share of class c falls like 1/(c + 1)².
        let class = if i < 2 * classes {
            i % classes
        } else {
            ((1.0 / numbers.share()).sqrt() as usize - 1) % classes
        };
        let mut entries: Vec<(u32, f64)> = Vec::new();
        for _ in 0..15 {
            let own = numbers.share() < 0.3;
            let word = if own {
                (class * 9 + numbers.between(0, 8)) % words
            } else {
                numbers.between(0, words - 1)
            };
            entries.push((word as u32, 1.0));
        }
        entries.sort_unstable_by_key(|entry| entry.0);
        entries.dedup_by_key(|entry| entry.0);
        csr.push(&entries)?;
        y.extend(targets(class, classes));
    }
    let features: Features = csr.into();
    Ok(Problem {
        rows: Rows::new(features, y, classes)?,
        gone: vec![RowId(n as u64 - 1), RowId(n as u64 / 2)],
        lambda: 1.0,
        classes,
    })
}

fn fit(problem: &Problem, rows: &Rows, gradient: f64) -> Result<LogisticModel> {
    let recipe = Logistic {
        gradient,
        ..Logistic::new(problem.lambda).tolerance(TOLERANCE)
    };
    if problem.classes == 2 {
        recipe.fit(rows)
    } else {
        recipe.softmax().fit(rows)
    }
}

fn parameters(model: &LogisticModel) -> Vec<f64> {
    let (coefficients, intercept) = model.parameters();
    let columns = (0..coefficients.ncols()).flat_map(|c| coefficients.col_as_slice(c).to_vec());
    columns.chain(intercept).collect()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).powi(2))
        .sum::<f64>()
        .sqrt()
}

/// What became of one method over all problems.
#[derive(Default)]
struct Tally {
    name: String,
    problems: usize,
    finite: usize,
    exceeded: usize,
    within: usize,
    unread: usize,
    /// bound/distance, where both say something.
    ratios: Vec<f64>,
    /// Relative distances.
    away: Vec<f64>,
}

impl Tally {
    fn see(&mut self, method: &dyn Forget<LogisticModel>, problem: &Problem) -> Result<()> {
        let Problem { rows, gone, .. } = problem;
        let model = fit(problem, rows, 1e-10)?;
        let retained = rows.filter(|id| !gone.contains(&id));
        let truth = fit(problem, &retained, 1e-13)?;
        let slack = Retrain.forget(&truth, &retained, &[])?.evidence.bound;
        let outcome = method.forget(&model, rows, gone)?;
        let truth = parameters(&truth);
        let found = distance(&parameters(&outcome.model), &truth);
        let size = truth.iter().map(|x| x * x).sum::<f64>().sqrt();
        let evidence = outcome.evidence;
        self.problems += 1;
        self.finite += evidence.bound.is_finite() as usize;
        self.exceeded += (found > evidence.bound + slack) as usize;
        self.within += (evidence.relative_bound <= TOLERANCE) as usize;
        self.unread += (evidence.rows_read <= gone.len()) as usize;
        self.away.push(found / size.max(f64::MIN_POSITIVE));
        if evidence.bound.is_finite() && found > 10.0 * slack {
            self.ratios.push(evidence.bound / found);
        }
        Ok(())
    }

    fn print(&mut self) {
        let ratio = if self.ratios.is_empty() {
            "– | –".into()
        } else {
            format!(
                "{:.1e} | {:.1e}",
                quantile(&mut self.ratios, 0.5),
                quantile(&mut self.ratios, 0.95)
            )
        };
        println!(
            "| {} | {} | {} | {} | {} | {} | {:.0e} | {:.0e} | {ratio} |",
            self.name,
            self.problems,
            self.finite,
            self.exceeded,
            self.within,
            self.unread,
            quantile(&mut self.away, 0.5),
            quantile(&mut self.away, 1.0),
        );
    }
}

fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * share).round() as usize]
}

/// A table over these problems; how many bounds were exceeded.
fn table(title: &str, problems: &[Problem]) -> Result<usize> {
    println!("\n{title}\n");
    println!(
        "| method | problems | finite bound | exceeded | within 1e-6 | no retained row read | distance, median | largest | bound/distance, median | 95 % |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let mut exceeded = 0;
    for method in Method::all_for(Family::Softmax) {
        let mut tally = Tally {
            name: format!("`{}`", method.name()),
            ..Tally::default()
        };
        for problem in problems {
            tally.see(&method, problem)?;
        }
        tally.print();
        exceeded += tally.exceeded;
    }
    Ok(exceeded)
}

/// A table of streams of requests over rows of this shape, each by `auto` to a tolerance of its
/// own; how many bounds were exceeded.
fn streams(seed: u64, shape: (usize, usize, usize), requests: usize) -> Result<usize> {
    let (n, d, classes) = shape;
    println!("\n{n} × {d}, {classes} classes: {requests} requests one after another, λ = 1\n");
    println!(
        "| rows | tolerance | exceeded | largest bound | distance, median | largest | bound/distance, median |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut exceeded = 0;
    for (kind, name) in ["plain", "correlated columns", "unlike units", "far from 0"]
        .into_iter()
        .enumerate()
    {
        for tolerance in [3e-4, 1e-6] {
            let mut numbers = Numbers(seed.wrapping_mul(1_000_003) + kind as u64);
            let rows = dense(&mut numbers, shape, kind as u64)?;
            let recipe = Logistic::new(1.0).softmax();
            let mut fitted = Fitted::new(&recipe, rows)?;
            let (mut over, mut largest) = (0, 0.0f64);
            let (mut away, mut ratios) = (Vec::new(), Vec::new());
            for request in 0..requests {
                let row = RowId((2 * classes + request * 7 % (n - 2 * classes)) as u64);
                let evidence = fitted.forget(
                    &Auto {
                        tolerance: Some(tolerance),
                    },
                    &[row],
                )?;
                let truth = Logistic {
                    gradient: 1e-13,
                    ..Logistic::new(1.0)
                }
                .softmax()
                .fit(fitted.rows())?;
                let slack = Retrain.forget(&truth, fitted.rows(), &[])?.evidence.bound;
                let truth = parameters(&truth);
                let found = distance(&parameters(fitted.model()), &truth);
                over += (found > evidence.bound + slack) as usize;
                largest = largest.max(evidence.relative_bound);
                away.push(found / truth.iter().map(|x| x * x).sum::<f64>().sqrt());
                ratios.push(evidence.bound / found.max(f64::MIN_POSITIVE));
            }
            let [median, most] = [0.5, 1.0].map(|share| quantile(&mut away, share));
            let ratio = quantile(&mut ratios, 0.5);
            println!(
                "| {name} | {tolerance:.0e} | {over} | {largest:.0e} | {median:.0e} | {most:.0e} | {ratio:.0e} |"
            );
            exceeded += over;
        }
    }
    Ok(exceeded)
}

fn main() -> Result<()> {
    let mut arguments = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench");
    let number = |text: String| -> Result<u64> {
        text.parse().map_err(|_| Error::Parameter {
            name: "argument",
            value: text,
            range: "a whole number",
        })
    };
    let Some(count) = arguments.next() else {
        // `cargo test --benches` and a bare `cargo bench` come here.
        eprintln!("claims_classifiers PROBLEMS [SEED]");
        return Ok(());
    };
    let count = number(count)?;
    let seed = arguments.next().map_or(Ok(1), number)?;
    let small: Vec<Problem> = (0..count)
        .map(|at| problem(seed * 10_000 + at))
        .collect::<Result<_>>()?;
    let mut exceeded = table(&format!("{count} small problems, seed {seed}"), &small)?;
    let texts: Vec<Problem> = [12, 20, 30]
        .into_iter()
        .map(|classes| text(seed, classes))
        .collect::<Result<_>>()?;
    exceeded += table(
        "Text: 700 rows of 250 words, 12, 20 and 30 classes, λ = 1",
        &texts,
    )?;
    exceeded += streams(seed, (1_400, 60, 10), 40)?;
    exceeded += streams(seed, (420, 700, 4), 12)?;
    // Enough rows for a Hessian in single precision that is made before training ends.
    exceeded += streams(seed, (12_000, 60, 10), 6)?;
    if exceeded > 0 {
        println!("\n{exceeded} bounds were exceeded");
        std::process::exit(1);
    }
    Ok(())
}
