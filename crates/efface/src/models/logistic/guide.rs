//! What guides conjugate gradients where no Hessian is kept.
//!
//! The Hessian is Σ w J_i ⊗ x_i x_iᵀ + Λ. With the mean J̄ of all J_i in place of each, and with J̄
//! reduced to its diagonal, the block of class c is J̄_cc·G + Λ, where G = Σ w x xᵀ. Such a block
//! is easily solved with: G is one matrix for all classes, and classes whose J̄_cc are within a
//! factor of two of each other share a factor. On text, G is kept for the words that most of the
//! weight is on; the others are nearly uncoupled, and their diagonal has to do. On text this takes
//! a third to a half of the iterations that the diagonal of the Hessian alone takes, and where rows
//! are many times more than parameters a handful.
//!
//! A softmax does not see what is added to all classes alike, and the objective holds that
//! direction by a term of its own (`objective.rs`). There the inverse is known exactly: 1/(λ_j +
//! κ_j).
//!
//! A guide decides how fast a solution is found, and not which: what is found is measured over the
//! rows.

use std::sync::Arc;

use faer::Mat;

use super::lane_table::LaneTable;
use super::objective::{Extra, RowObjective};
use super::reader::PassReader;
use super::sample::{RowLines, RowSample};
use super::{Link, LogisticModel};
use crate::error::Result;
use crate::linalg::{Cholesky, mirror_lower, par};

/// So many columns of sparse rows have their products with each other kept. With more, a solve
/// takes longer than it saves.
const HEAVY: usize = 512;

/// Dense rows of more columns than this are guided by the diagonal.
const WIDEST_GRAM: usize = 2048;

/// The curvature of a class may change by this factor before the factors are made anew.
const OUT_OF_AIM: f64 = 2.0;

/// The least curvature of a class that is told from others, as a share of the largest.
const FLATTEST: f64 = 1e-6;

/// A Hessian of so few parameters costs next to nothing.
const FACTORED: usize = 512;

/// So many passes a sampled Hessian saves in training, beside the Gram matrix as guide.
pub(super) const SAVED_PASSES: f64 = 8.0;

/// An approximate inverse of the Hessian.
#[derive(Debug, Clone)]
pub(crate) struct KroneckerGuide {
    /// The columns that `gram` is about, ascending.
    heavy: Vec<usize>,
    /// G over those columns, both triangles.
    gram: Mat<f64>,
    /// Σ w x_j² of every column.
    squares: Vec<f64>,
    /// J̄_cc of every class, as it was when the factors were made.
    bends: Vec<f64>,
    factors: Vec<Cholesky>,
    /// Which of the factors a class takes.
    chosen: Vec<usize>,
    /// The fingerprint of the rows that G was summed over.
    pub(crate) row_set: u64,
}

/// What steps over the rows are found with where no Hessian is kept, or looked at where one is.
/// Made when it is first needed, and never stored.
#[derive(Debug, Clone, Default)]
pub(crate) struct StepAids {
    pub(crate) guide: Option<Arc<KroneckerGuide>>,
    pub(crate) table: Option<LaneTable>,
}

impl KroneckerGuide {
    /// A guide for these rows, not aimed yet.
    fn over(objective: &RowObjective<'_>) -> Result<Self> {
        let sample = objective.sample;
        let frame = objective.frame;
        let width = frame.basis.width();
        let mut squares = vec![0.0; width];
        sample.each_part(|_, members| {
            let mut reader = PassReader::new(frame);
            for member in members {
                reader.read(member);
                reader.each(|j, x| squares[j] += member.weight * x * x);
            }
        })?;
        let thin = sample.is_thin(frame);
        let many_rows = sample.shape.members >= width * frame.outputs;
        let mut heavy: Vec<usize> = Vec::new();
        if thin {
            heavy = (0..width).collect();
            heavy.sort_by(|a, b| squares[*b].total_cmp(&squares[*a]).then(a.cmp(b)));
            heavy.truncate(HEAVY);
            heavy.sort_unstable();
        } else if many_rows && width <= WIDEST_GRAM {
            heavy = (0..width).collect();
        }
        let gram = if heavy.len() == width && !thin {
            sample.survey(frame, true)?.gram
        } else {
            gram_of(objective, &heavy)?
        };
        let bends = Vec::new();
        Ok(Self {
            heavy,
            gram,
            squares,
            bends,
            factors: Vec::new(),
            chosen: Vec::new(),
            row_set: 0,
        })
    }

    /// The guide, with a note of the rows that it was made of.
    pub(crate) fn of_rows(self: Arc<Self>, row_set: u64) -> Arc<Self> {
        let mut guide = Arc::unwrap_or_clone(self);
        guide.row_set = row_set;
        Arc::new(guide)
    }

    /// Whether the factors still fit classes of these curvatures.
    fn is_aimed(&self, bends: &[f64]) -> bool {
        let near = |(old, new): (&f64, &f64)| *new <= OUT_OF_AIM * old && *old <= OUT_OF_AIM * new;
        self.bends.len() == bends.len() && self.bends.iter().zip(bends).all(near)
    }

    /// Makes the factors for classes of these curvatures.
    fn aim(&mut self, bends: Vec<f64>, extra: &Extra, threads: usize) {
        self.factors.clear();
        self.chosen.clear();
        let mut powers: Vec<i32> = Vec::new();
        for bend in &bends {
            let power = bend.log2().round() as i32;
            let at = powers
                .iter()
                .position(|known| *known == power)
                .unwrap_or_else(|| {
                    powers.push(power);
                    powers.len() - 1
                });
            self.chosen.push(at);
        }
        if self.heavy.is_empty() {
            powers.clear();
        }
        for power in powers {
            let scale = 2f64.powi(power);
            let block = Mat::from_fn(self.heavy.len(), self.heavy.len(), |i, j| {
                let own = if i == j {
                    extra.penalty[self.heavy[j]]
                } else {
                    0.0
                };
                scale * self.gram[(i, j)] + own
            });
            match Cholesky::factor(&block, |_| false, par(threads)) {
                Ok(factor) => self.factors.push(factor),
                Err(_) => {
                    // Columns that depend on each other and that nothing penalises: the diagonal
                    // has to do.
                    self.heavy.clear();
                    self.factors.clear();
                    break;
                }
            }
        }
        self.bends = bends;
    }

    /// Roughly the inverse of the Hessian times a vector, both as one long column.
    pub(crate) fn apply(&self, extra: &Extra, vector: &[f64]) -> Vec<f64> {
        let width = extra.penalty.len();
        let outputs = self.bends.len();
        let held = !extra.gauge.is_empty();
        let mut out = vector.to_vec();
        let means = if held {
            take_means(&mut out, width)
        } else {
            Vec::new()
        };
        let given = if self.factors.is_empty() {
            Vec::new()
        } else {
            out.clone()
        };
        for (part, bend) in out.chunks_exact_mut(width).zip(&self.bends) {
            for ((x, square), penalty) in part.iter_mut().zip(&self.squares).zip(&extra.penalty) {
                let bent = bend * square + penalty;
                // Any positive number will do for a column that no row has and no penalty holds.
                *x /= if bent > 0.0 { bent } else { 1.0 };
            }
        }
        for (at, factor) in self.factors.iter().enumerate() {
            let classes: Vec<usize> = (0..outputs).filter(|c| self.chosen[*c] == at).collect();
            let mut block = Mat::from_fn(self.heavy.len(), classes.len(), |i, k| {
                given[classes[k] * width + self.heavy[i]]
            });
            factor.solve(block.as_mut(), faer::Par::Seq);
            for (k, c) in classes.iter().enumerate() {
                let part = &mut out[c * width..(c + 1) * width];
                self.heavy
                    .iter()
                    .zip(block.col_as_slice(k))
                    .for_each(|(j, x)| part[*j] = *x);
            }
        }
        if held {
            take_means(&mut out, width);
            for part in out.chunks_exact_mut(width) {
                for (j, x) in part.iter_mut().enumerate() {
                    *x += means[j] / (extra.penalty[j] + extra.gauge[j]);
                }
            }
        }
        out
    }
}

/// Subtracts from every column of the parameters its mean over the classes, and returns the means.
fn take_means(vector: &mut [f64], width: usize) -> Vec<f64> {
    let outputs = (vector.len() / width.max(1)) as f64;
    let mut means = vec![0.0; width];
    for part in vector.chunks_exact(width) {
        means
            .iter_mut()
            .zip(part)
            .for_each(|(mean, x)| *mean += x / outputs);
    }
    for part in vector.chunks_exact_mut(width) {
        part.iter_mut().zip(&means).for_each(|(x, mean)| *x -= mean);
    }
    means
}

/// Σ w x xᵀ over these columns, row by row.
fn gram_of(objective: &RowObjective<'_>, heavy: &[usize]) -> Result<Mat<f64>> {
    let mut place = vec![usize::MAX; objective.frame.basis.width()];
    heavy.iter().enumerate().for_each(|(at, &j)| place[j] = at);
    let mut gram = Mat::zeros(heavy.len(), heavy.len());
    let mut entries: Vec<(usize, f64)> = Vec::new();
    objective.sample.each_part(|_, members| {
        let mut reader = PassReader::new(objective.frame);
        for member in members {
            reader.read(member);
            entries.clear();
            reader.each(|j, x| {
                if place[j] != usize::MAX && x != 0.0 {
                    entries.push((place[j], x));
                }
            });
            for (at, &(j, x)) in entries.iter().enumerate() {
                let scaled = member.weight * x;
                let column = gram.col_as_slice_mut(j);
                entries[at..]
                    .iter()
                    .for_each(|&(i, y)| column[i] += scaled * y);
            }
        }
    })?;
    mirror_lower(gram.as_mut());
    Ok(gram)
}

impl RowObjective<'_> {
    /// Σ w J_cc of every class, and Σ w.
    pub(super) fn bend_sums(&self, bends: &RowLines) -> Result<(Vec<f64>, f64)> {
        let mut sums = vec![0.0; self.frame.outputs];
        let mut weight = 0.0;
        self.sample.each_part(|offset, members| {
            let lines = self.sample.lines_of(self.frame, bends, offset, members);
            for (member, line) in members.iter().zip(lines.chunks_exact(self.frame.outputs)) {
                weight += member.weight;
                for (sum, p) in sums.iter_mut().zip(line) {
                    let bend = if self.frame.link == Link::Softmax {
                        p * (1.0 - p)
                    } else {
                        *p
                    };
                    *sum += member.weight * bend;
                }
            }
        })?;
        Ok((sums, weight))
    }

    /// The guide for rows whose classes bend so: the one at hand where it fits, or one made of it,
    /// or of the rows. Returns whether the rows were read.
    pub(crate) fn guided(
        &self,
        (sums, weight): (Vec<f64>, f64),
        known: Option<Arc<KroneckerGuide>>,
    ) -> Result<(Arc<KroneckerGuide>, bool)> {
        let largest = sums.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let mean = |sum: &f64| sum.max(FLATTEST * largest) / weight.max(f64::MIN_POSITIVE);
        let means: Vec<f64> = sums.iter().map(mean).collect();
        let reads = known.is_none();
        let guide = match known {
            Some(known) => known,
            None => Arc::new(KroneckerGuide::over(self)?),
        };
        if guide.is_aimed(&means) {
            return Ok((guide, reads));
        }
        let mut guide = Arc::unwrap_or_clone(guide);
        guide.aim(means, self.extra, self.frame.threads);
        Ok((Arc::new(guide), reads))
    }
}

impl LogisticModel {
    /// What the first Hessian of a sample costs in training, in passes over so many rows; nothing
    /// where nothing else will do, or where there are so few parameters that it does not matter.
    pub(super) fn passes_for_a_factor(&self, rows: usize) -> f64 {
        let outputs = self.outputs();
        let width = self.theta.nrows();
        let parameters = width * outputs;
        // Without a penalty, columns that depend on each other are found by a factor alone.
        if outputs == 1 || parameters <= FACTORED || self.settings.logistic.lambda <= 0.0 {
            return 0.0;
        }
        let sampled = super::descent_guide::sampled_rows(rows, parameters) as f64;
        let blocks = (outputs * (outputs + 1) / 2) as f64;
        let hessian = sampled * blocks * (width * width) as f64 + (parameters as f64).powi(3) / 3.0;
        let one_pass = 4.0 * (rows * parameters) as f64;
        hessian / one_pass
    }

    /// Whether a request with a kept Hessian costs less than one by passes over the rows. Where
    /// rows are more than parameters, their curvature bounds distances far better than the penalty
    /// does, and passes would have to go on for long. Otherwise a row that leaves is a block of as
    /// many columns as there are classes, each of which takes a solve, and a request by passes
    /// takes ten or so; the Hessian of many classes costs as much as hundreds of them.
    pub(super) fn saves_by_hessian(&self, sample: &RowSample<'_>) -> bool {
        let outputs = self.outputs();
        let parameters = self.theta.nrows() * outputs;
        let determined = sample.shape.members >= parameters;
        if outputs == 1 || parameters <= FACTORED || determined || self.has_no_penalty() {
            return true;
        }
        let one_pass = 2 * sample.shape.numbers * outputs;
        parameters * parameters * (outputs + 2) <= 2 * one_pass
    }
}
