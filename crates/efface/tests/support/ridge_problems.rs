//! Seeded ridge problems of many kinds, each with rows to forget, and what the library's bound is
//! worth on them.

use efface::methods::{Exact, Newton, Summation};
use efface::{Claim, Csr, Dense, Evidence, Fitted, Forget, Form, Ridge, RidgeModel, RowId, Rows};

use super::long_arithmetic::ridge_minimum;

pub(crate) const KINDS: [&str; 12] = [
    "independent",
    "correlated",
    "far from zero",
    "duplicates",
    "tiny and huge columns",
    "weights",
    "a column of 0.1",
    "a huge row",
    "a huge target",
    "sparse",
    "a long life",
    "everything at once",
];

/// Numbers from a seed.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        let mut numbers = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1);
        (0..8).for_each(|_| {
            numbers.uniform();
        });
        numbers
    }

    /// In [0, 1).
    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().max(1e-300).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// 10 to the power of something between the two.
    pub(crate) fn power(&mut self, low: f64, high: f64) -> f64 {
        10f64.powf(low + (high - low) * self.uniform())
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        ((self.uniform() * limit as f64) as usize).min(limit - 1)
    }
}

pub(crate) struct Problem {
    pub(crate) kind: &'static str,
    pub(crate) seed: u64,
    pub(crate) rows: Rows,
    pub(crate) width: usize,
    pub(crate) recipe: Ridge,
    pub(crate) gone: Vec<RowId>,
}

/// What came of one problem.
pub(crate) struct Finding {
    pub(crate) kind: &'static str,
    pub(crate) seed: u64,
    /// ‖θ − θ*‖ and the bound on it, both relative to ‖θ*‖.
    pub(crate) truth: f64,
    pub(crate) bound: f64,
    pub(crate) absolute_truth: f64,
    pub(crate) absolute_bound: f64,
    pub(crate) exact: bool,
    pub(crate) read_rows: bool,
}

/// The problem of a seed; `cells` limits n·d.
pub(crate) fn problem(seed: u64, cells: f64) -> Problem {
    let mut numbers = Numbers::new(seed);
    let kind = KINDS[seed as usize % KINDS.len()];
    let all = kind == "everything at once";
    let width = numbers.power(0.3, (cells / 20.0).log10().min(2.7)) as usize;
    let most = (cells / width as f64)
        .max(2.0 * width as f64 + 10.0)
        .min(1e6);
    let least = (1.2 * width as f64 + 8.0).min(most);
    let n = numbers.power(least.log10(), most.log10()) as usize;
    let mut x: Vec<f64> = (0..n * width).map(|_| numbers.normal()).collect();
    let long = kind == "a long life" && seed.is_multiple_of(2);
    if kind == "correlated" || all || long {
        let ratio = numbers.power(0.0, if all || long { 3.0 } else { 6.0 });
        correlate(&mut x, n, width, ratio, &mut numbers);
    }
    if kind == "duplicates" {
        for j in (1..width).step_by(2) {
            (0..n).for_each(|i| x[i * width + j] = x[i * width + j - 1]);
        }
        for i in (1..n).step_by(3) {
            x.copy_within((i - 1) * width..i * width, i * width);
        }
    }
    for j in 0..width {
        let scale = match kind {
            "tiny and huge columns" => numbers.power(-12.0, 12.0),
            _ if all => numbers.power(-3.0, 3.0),
            _ => 1.0,
        };
        let mean = match kind {
            "far from zero" => numbers.power(0.0, 7.0),
            _ if all => numbers.power(0.0, 3.0) * scale,
            _ => 0.0,
        };
        (0..n).for_each(|i| x[i * width + j] = x[i * width + j] * scale + mean);
    }
    if kind == "a column of 0.1" {
        (0..n).for_each(|i| x[i * width] = 0.1);
    }
    if kind == "sparse" {
        x.iter_mut().for_each(|x| {
            if numbers.uniform() < 0.9 {
                *x = 0.0;
            }
        });
    }
    let theta: Vec<f64> = (0..width).map(|_| numbers.normal()).collect();
    let size = |j: usize| {
        (0..n.min(50))
            .map(|i| x[i * width + j].abs())
            .fold(0.0, f64::max)
    };
    let sizes: Vec<f64> = (0..width)
        .map(|j| if size(j) > 0.0 { size(j) } else { 1.0 })
        .collect();
    let outputs = 1 + (seed % 5 == 4) as usize;
    let mut y = Vec::with_capacity(n * outputs);
    for i in 0..n {
        let score: f64 = (0..width)
            .map(|j| x[i * width + j] / sizes[j] * theta[j])
            .sum();
        (0..outputs).for_each(|output| y.push(score * (1.0 + output as f64) + numbers.normal()));
    }
    let odd = numbers.below(n);
    if kind == "a huge row" {
        let factor = numbers.power(3.0, 9.0);
        x[odd * width..(odd + 1) * width]
            .iter_mut()
            .for_each(|x| *x *= factor);
    }
    if kind == "a huge target" {
        y[odd * outputs] = numbers.power(3.0, 15.0);
    }
    let lambda = numbers.power(-6.0, 2.0);
    let form = [
        Form::Factor,
        Form::Auto,
        Form::Inverse,
        Form::Rows,
        Form::Iterative,
    ][numbers.below(5)];
    let rows = if kind == "sparse" {
        let mut table = Csr::<f64>::new(width);
        for i in 0..n {
            let line = &x[i * width..(i + 1) * width];
            let entries: Vec<(u32, f64)> = line
                .iter()
                .enumerate()
                .filter(|(_, x)| **x != 0.0)
                .map(|(j, x)| (j as u32, *x))
                .collect();
            table.push(&entries).unwrap();
        }
        Rows::new(table, y, outputs).unwrap()
    } else {
        Rows::new(Dense::new(x, width).unwrap(), y, outputs).unwrap()
    };
    let rows = if kind == "weights" || all {
        rows.weighted(
            (0..n)
                .map(|i| {
                    if i % 7 == 3 {
                        0.0
                    } else {
                        numbers.power(-3.0, 3.0)
                    }
                })
                .collect(),
        )
        .unwrap()
    } else {
        rows
    };
    let mut gone = vec![RowId(odd as u64)];
    for _ in 0..numbers.below(4).min(n - width.min(n - 1)) {
        let id = RowId(numbers.below(n) as u64);
        if !gone.contains(&id) {
            gone.push(id);
        }
    }
    Problem {
        kind,
        seed,
        rows,
        width,
        recipe: Ridge::new(lambda).form(form),
        gone,
    }
}

/// Mixes columns so that the largest and least of their scales differ by `ratio`.
fn correlate(x: &mut [f64], n: usize, width: usize, ratio: f64, numbers: &mut Numbers) {
    let scales: Vec<f64> = (0..width)
        .map(|j| ratio.powf(-(j as f64) / (width.max(2) - 1) as f64))
        .collect();
    // Reflections are orthogonal and cheap.
    for round in 0..3 {
        let mut axis: Vec<f64> = (0..width).map(|_| numbers.normal()).collect();
        let length = axis.iter().map(|a| a * a).sum::<f64>().sqrt();
        axis.iter_mut().for_each(|a| *a /= length);
        for i in 0..n {
            let line = &mut x[i * width..(i + 1) * width];
            if round == 0 {
                line.iter_mut().zip(&scales).for_each(|(x, s)| *x *= s);
            }
            let along: f64 = line.iter().zip(&axis).map(|(x, a)| x * a).sum();
            line.iter_mut()
                .zip(&axis)
                .for_each(|(x, a)| *x -= 2.0 * along * a);
        }
    }
}

fn parameters(model: &RidgeModel) -> Vec<Vec<f64>> {
    let (coefficients, intercept) = model.parameters();
    (0..intercept.len())
        .map(|c| {
            coefficients
                .col_as_slice(c)
                .iter()
                .copied()
                .chain([intercept[c]])
                .collect()
        })
        .collect()
}

fn distance(a: &[Vec<f64>], b: &[Vec<f64>]) -> f64 {
    let pairs = a.iter().zip(b).flat_map(|(a, b)| a.iter().zip(b));
    pairs.map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

fn finding(
    problem: &Problem,
    model: &RidgeModel,
    rows: &Rows,
    evidence: &Evidence,
) -> Option<Finding> {
    let truth = ridge_minimum(rows, problem.width, problem.recipe.lambda)?;
    let size = truth.iter().flatten().map(|t| t * t).sum::<f64>().sqrt();
    let off = distance(&parameters(model), &truth);
    let relative = if size > 0.0 { off / size } else { off };
    Some(Finding {
        kind: problem.kind,
        seed: problem.seed,
        truth: relative,
        bound: evidence.relative_bound,
        absolute_truth: off,
        absolute_bound: evidence.bound,
        exact: evidence.claim() == Claim::Exact
            && evidence.relative_bound <= problem.recipe.tolerance,
        read_rows: evidence.resummed,
    })
}

/// Fits, forgets, and compares both with the oracle. Empty where the oracle has no answer or the
/// library refuses, with the reason.
pub(crate) fn examine(problem: &Problem) -> Result<Vec<Finding>, String> {
    let refused = |error: efface::Error| format!("{} {}: {error}", problem.kind, problem.seed);
    let mut fitted = Fitted::new(&problem.recipe, problem.rows.clone()).map_err(refused)?;
    let nothing = Exact
        .forget(fitted.model(), fitted.rows(), &[])
        .map_err(refused)?;
    let mut found = Vec::new();
    found.extend(finding(
        problem,
        fitted.model(),
        fitted.rows(),
        &nothing.evidence,
    ));
    let iterative = problem.recipe.form == Form::Iterative;
    let method: &dyn Forget<RidgeModel> = match problem.seed % 3 {
        0 => &Exact,
        1 => &Newton {
            steps: 1,
            measure: false,
        },
        _ if iterative => &Exact,
        _ => &Summation,
    };
    if problem.kind == "a long life" {
        fitted = fitted.settle_after(5);
        let ids: Vec<RowId> = fitted.rows().ids().collect();
        for id in ids.iter().take((ids.len() / 4).min(40)) {
            let mut evidence = fitted.forget(&Exact, &[*id]).map_err(refused)?;
            if id.0 % 5 == 2 {
                // Some rows come back, and some of those are corrected.
                let back = problem.rows.filter(|other| other == *id);
                evidence = fitted.learn(&back).map_err(refused)?;
                if id.0.is_multiple_of(2) {
                    evidence = fitted.amend(&back).map_err(refused)?;
                }
            }
            if id.0 % 8 == 7 {
                found.extend(finding(problem, fitted.model(), fitted.rows(), &evidence));
            }
        }
        return Ok(found);
    }
    let evidence = fitted.forget(method, &problem.gone).map_err(refused)?;
    found.extend(finding(problem, fitted.model(), fitted.rows(), &evidence));
    Ok(found)
}
