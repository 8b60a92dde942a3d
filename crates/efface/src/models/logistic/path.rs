//! A run of gradient descent that is remembered step by step, and what DeltaGrad makes of it: the
//! same run without some rows.
//!
//! The run goes from 0 with steps of constant length over all rows, in the model's coordinates, and
//! every parameter vector θ_t is kept with its gradient g_t. Without rows D the parameters at step
//! t are θ′_t instead. Most steps do not read the rows that are left: ∇L(θ′_t) ≈ g_t + B(θ′_t −
//! θ_t), with B the L-BFGS matrix of the differences seen at the few steps that do, and
//! ∇L^{\D}(θ′_t) is that minus Σ_D ∇ℓ(θ′_t), which is exact and needs the rows to forget alone.

use faer::Mat;

use super::objective::{RowObjective, flat, shaped};
use super::pass::{PassFrame, gram_norm};
use super::sample::RowSample;
use super::{Link, LogisticModel};
use crate::error::Result;
use crate::linalg::{add_scaled, dot, norm};

/// A remembered run of gradient descent.
#[derive(Debug, Clone)]
pub(crate) struct DescentPath {
    /// The fingerprint of the rows that it went over.
    pub(crate) row_set: u64,
    /// The length of a step, as a share of the gradient.
    step: f64,
    /// θ_t and g_t, as one long column each.
    steps: Vec<(Mat<f64>, Mat<f64>)>,
    /// Where the last step led.
    pub(crate) end: Mat<f64>,
}

/// How a run is followed without some of its rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FollowSettings {
    /// So many steps at the start read all retained rows.
    pub(crate) burn_in: usize,
    /// Of the later ones, every so many.
    pub(crate) period: usize,
    /// Pairs of differences in the quasi-Hessian.
    pub(crate) memory: usize,
}

/// A Hessian made of differences: B₀ = σI, B₊ = B − B s sᵀB/(sᵀBs) + y yᵀ/(yᵀs).
struct QuasiHessian {
    memory: usize,
    /// s and y, oldest first.
    pairs: Vec<(Mat<f64>, Mat<f64>)>,
    sigma: f64,
    /// B s/√(sᵀBs) and y/√(yᵀs) of every pair.
    updates: Vec<(Mat<f64>, Mat<f64>)>,
}

impl QuasiHessian {
    fn new(memory: usize) -> Self {
        Self {
            memory,
            pairs: Vec::new(),
            sigma: 0.0,
            updates: Vec::new(),
        }
    }

    /// Takes in a pair of differences; false where rounding is all there is in them.
    fn learn(&mut self, s: Mat<f64>, y: Mat<f64>) -> bool {
        // Only their ratio counts; squares of differences that are all but 0 would vanish.
        let length = 1.0 / norm(&s);
        if !length.is_finite() {
            return false;
        }
        let (s, y) = (s * faer::Scale(length), y * faer::Scale(length));
        let risen = along(&s, &y);
        // Convexity makes this positive; rounding may not.
        if !risen.is_finite() || risen <= 1e-12 * norm(&y) {
            return false;
        }
        if self.pairs.len() == self.memory {
            self.pairs.remove(0);
        }
        self.pairs.push((s, y));
        let (s, y) = &self.pairs[self.pairs.len() - 1];
        self.sigma = along(s, y) / along(s, s);
        self.updates.clear();
        for (s, y) in &self.pairs {
            let product = self.times(s);
            let bent = along(s, &product).sqrt();
            let risen = along(s, y).sqrt();
            self.updates.push((
                product * faer::Scale(1.0 / bent),
                y * faer::Scale(1.0 / risen),
            ));
        }
        true
    }

    /// B·v.
    fn times(&self, v: &Mat<f64>) -> Mat<f64> {
        let mut product = v * faer::Scale(self.sigma);
        for (down, up) in &self.updates {
            add_scaled(
                product.col_as_slice_mut(0),
                -along(down, v),
                down.col_as_slice(0),
            );
            add_scaled(
                product.col_as_slice_mut(0),
                along(up, v),
                up.col_as_slice(0),
            );
        }
        product
    }
}

fn along(a: &Mat<f64>, b: &Mat<f64>) -> f64 {
    dot(a.col_as_slice(0), b.col_as_slice(0))
}

impl DescentPath {
    /// Goes down from 0 until the gradient is `goal` times the first one, or for `most` steps.
    pub(crate) fn run(
        model: &LogisticModel,
        sample: &RowSample<'_>,
        most: usize,
        goal: f64,
    ) -> Result<Self> {
        let objective = model.objective(sample);
        let step = 1.0 / smoothness(model, sample)?;
        let mut theta = Mat::zeros(model.theta.nrows() * model.theta.ncols(), 1);
        let mut steps: Vec<(Mat<f64>, Mat<f64>)> = Vec::new();
        let mut first = 0.0;
        for at in 0..most {
            sample.stop.as_ref().map_or(Ok(()), |stop| stop.go_on())?;
            let gradient = slope(&objective, &theta)?;
            let size = norm(&gradient);
            if at == 0 {
                first = size;
            }
            let next = &theta - &gradient * faer::Scale(step);
            steps.push((theta, gradient));
            theta = next;
            if size <= goal * first {
                break;
            }
        }
        Ok(Self {
            row_set: model.row_set,
            step,
            steps,
            end: theta,
        })
    }

    /// The steps of the run.
    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        (2 * self.steps.len() + 1) * self.end.nrows() * size_of::<f64>()
    }

    /// Repeats the run over `left`, the rows that are left; `gone` are the others. `model` is of
    /// the rows that are left. Returns the new run, and how many of its steps read all rows.
    pub(crate) fn without(
        &self,
        model: &LogisticModel,
        left: &RowSample<'_>,
        gone: &RowSample<'_>,
        settings: FollowSettings,
    ) -> Result<(Self, usize)> {
        let objective = model.objective(left);
        let frame = model.frame();
        let mut quasi = QuasiHessian::new(settings.memory.max(1));
        let mut theta = Mat::zeros(self.end.nrows(), 1);
        let mut steps = Vec::with_capacity(self.steps.len());
        let mut exact_steps = 0;
        for (at, (old, old_gradient)) in self.steps.iter().enumerate() {
            left.stop.as_ref().map_or(Ok(()), |stop| stop.go_on())?;
            let removed = flat(
                &gone
                    .slope(frame, &shaped(&theta, model.theta.nrows()), None)?
                    .gradient,
            );
            let way = &theta - old;
            let late = at.saturating_sub(settings.burn_in);
            let reads = at < settings.burn_in
                || late % settings.period.max(1) == 0
                || quasi.pairs.is_empty();
            let gradient = if reads {
                exact_steps += 1;
                let exact = slope(&objective, &theta)?;
                quasi.learn(way, &(&exact + &removed) - old_gradient);
                exact
            } else {
                old_gradient + quasi.times(&way) - &removed
            };
            let next = &theta - &gradient * faer::Scale(self.step);
            steps.push((theta, gradient));
            theta = next;
        }
        Ok((
            Self {
                row_set: model.row_set,
                step: self.step,
                steps,
                end: theta,
            },
            exact_steps,
        ))
    }
}

fn slope(objective: &RowObjective<'_>, theta: &Mat<f64>) -> Result<Mat<f64>> {
    Ok(flat(
        &objective
            .at(shaped(theta, objective.frame.basis.width()))?
            .gradient,
    ))
}

/// An upper bound on the largest eigenvalue of the Hessian, wherever it is taken.
fn smoothness(model: &LogisticModel, sample: &RowSample<'_>) -> Result<f64> {
    let frame = PassFrame {
        link: Link::Logistic,
        outputs: 1,
        ..model.frame()
    };
    let gram = gram_norm(sample, frame)?;
    let penalty = model.extra.penalty.iter().copied().fold(0.0, f64::max);
    // What holds the sum over the classes bends where the rows do not.
    let gauge = model.extra.gauge.iter().copied().fold(0.0, f64::max);
    Ok((model.settings.link.curvature() * gram).max(gauge) + penalty)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::rows::{Dense, RowId, Rows};
    use crate::traits::Fit;
    use crate::{Logistic, Softmax};

    /// Rows of two or three classes.
    fn rows(classes: usize) -> Rows {
        let mut state = 11u64;
        let mut next = || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            ((state >> 11) as f64) / (1u64 << 52) as f64 - 1.0
        };
        let x: Vec<f64> = (0..300 * 5).map(|_| next()).collect();
        let mut y = Vec::new();
        for row in x.chunks(5) {
            let score = 2.0 * row[0] - row[1] + next();
            match classes {
                2 => y.push(if score > 0.0 { 1.0 } else { -1.0 }),
                _ => {
                    let class = if score > 0.5 {
                        2
                    } else {
                        (score > -0.5) as usize
                    };
                    y.extend((0..3).map(|c| (c == class) as u8 as f64));
                }
            }
        }
        Rows::new(
            Dense::new(x, 5).unwrap(),
            y,
            if classes == 2 { 1 } else { 3 },
        )
        .unwrap()
    }

    /// The replay is near plain gradient descent without the rows: much nearer than that is to the
    /// run with them.
    #[test]
    fn a_replay_is_near_gradient_descent_without_the_rows() {
        for classes in [2, 3] {
            let rows = rows(classes);
            let model = match classes {
                2 => Logistic::new(1.0).fit(&rows).unwrap(),
                _ => Softmax::new(1.0).fit(&rows).unwrap(),
            };
            let frame = model.frame();
            let gone: HashSet<RowId> = [3, 50, 99].map(RowId).into();
            let removed_rows = rows.filter(|id| gone.contains(&id));
            let all = RowSample::new(frame, &rows, &HashSet::new(), None).unwrap();
            let left = RowSample::new(frame, &rows, &gone, None).unwrap();
            let removed = RowSample::new(frame, &removed_rows, &HashSet::new(), None).unwrap();
            let run = DescentPath::run(&model, &all, 400, 1e-7).unwrap();
            let optimum = flat(&model.theta);
            assert!(
                norm(&(&run.end - &optimum)) < 1e-4 * norm(&optimum),
                "{} steps",
                run.len()
            );
            // Plain gradient descent over the retained rows, as many steps of the same length.
            let mut plain = Mat::zeros(run.end.nrows(), 1);
            for _ in 0..run.len() {
                plain = &plain
                    - slope(&model.objective(&left), &plain).unwrap() * faer::Scale(run.step);
            }
            let settings = FollowSettings {
                burn_in: 10,
                period: 5,
                memory: 2,
            };
            let (replay, exact) = run.without(&model, &left, &removed, settings).unwrap();
            assert!(exact <= 11 + run.len() / 5, "{exact} of {}", run.len());
            let moved = norm(&(&plain - &run.end));
            let off = norm(&(&plain - &replay.end));
            assert!(
                off < 0.02 * moved,
                "{classes} classes: {off:.2e} of {moved:.2e}"
            );
            // Every step over all retained rows is gradient descent itself.
            let every = FollowSettings {
                burn_in: usize::MAX,
                ..settings
            };
            let (same, _) = run.without(&model, &left, &removed, every).unwrap();
            assert!(norm(&(&plain - &same.end)) < 1e-12);
            // The replay is a run like the first, and can be replayed again.
            let more: HashSet<RowId> = [3, 50, 99, 120].map(RowId).into();
            let fewer = RowSample::new(frame, &rows, &more, None).unwrap();
            let last = rows.filter(|id| id == RowId(120));
            let last = RowSample::new(frame, &last, &HashSet::new(), None).unwrap();
            let (again, _) = replay.without(&model, &fewer, &last, settings).unwrap();
            let mut plain = Mat::zeros(run.end.nrows(), 1);
            for _ in 0..run.len() {
                plain = &plain
                    - slope(&model.objective(&fewer), &plain).unwrap() * faer::Scale(run.step);
            }
            assert!(norm(&(&plain - &again.end)) < 0.05 * norm(&(&plain - &run.end)));
        }
    }

    #[test]
    fn a_quasi_hessian_maps_its_newest_difference() {
        let mut quasi = QuasiHessian::new(2);
        let column = |values: [f64; 3]| Mat::from_fn(3, 1, |i, _| values[i]);
        assert!(quasi.learn(column([1.0, 0.0, 0.5]), column([2.0, 0.1, 0.7])));
        assert!(quasi.learn(column([0.2, 1.0, 0.0]), column([0.3, 3.0, 0.1])));
        assert!(norm(&(quasi.times(&column([0.2, 1.0, 0.0])) - column([0.3, 3.0, 0.1]))) < 1e-14);
        // A difference that convexity forbids is rounding.
        assert!(!quasi.learn(column([1.0, 0.0, 0.0]), column([-1.0, 0.0, 0.0])));
        // Differences of any size teach the same, or nothing.
        let mut tiny = QuasiHessian::new(2);
        assert!(tiny.learn(column([1e-130, 0.0, 0.5e-130]), column([2.0, 0.1, 0.7])));
        assert!(
            tiny.times(&column([1e-130, 0.0, 0.5e-130]))
                .norm_l2()
                .is_finite()
        );
        assert!(!tiny.learn(column([1e-320, 0.0, 0.0]), column([1.0, 0.0, 0.0])));
    }
}
