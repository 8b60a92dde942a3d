//! Passes over the rows: loss and gradient, Hessian, the product of the Hessian with a vector, and
//! the statistics that the bounds rest on. Rows are split into one stretch per thread and the parts
//! are added in order, so that the result depends on the number of threads only; and, where rows
//! are beyond memory, on the blocks that their store reads them in.

use faer::Mat;

use super::Link;
use super::hessian::HessianSums;
use super::reader::{PassReader, RowPlace};
use super::row_block::RowBlock;
use super::sample::{MemberRule, RowLines, RowSample, WeightedRow};
use crate::error::Result;
use crate::linalg::{Cholesky, LaneNumber, dot, mirror_lower, operator_norm, par};
use crate::models::basis::Basis;
use crate::rows::{RowRef, RowView};

/// Above this share of non-zeros, a sparse row is cheaper to multiply as a dense one.
const DENSE_SHARE: f64 = 0.05;
/// So many rows are summed by themselves before they join the others: a long sum of small terms
/// would lose their ends.
pub(crate) const STRETCH: usize = 512;
/// Dense rows are multiplied so many at a time: enough to be a matrix product, few enough to stay
/// in the cache.
pub(super) const BLOCK: usize = 256;

/// How a row becomes a vector of parameters' length, and what its scores mean.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PassFrame<'a> {
    pub(crate) basis: &'a Basis,
    pub(crate) link: Link,
    /// Scores per row.
    pub(crate) outputs: usize,
    /// Whether rows are scaled to a norm of at most 1.
    pub(crate) clip: bool,
    pub(crate) threads: usize,
}

/// Loss and gradient, without penalty.
pub(crate) struct LossSlope {
    pub(crate) loss: f64,
    pub(crate) gradient: Mat<f64>,
    /// The least lead of a row's own class over the others: above 0, all rows are told apart.
    pub(crate) margin: f64,
    /// The largest square of the norm of a row's scores by the way that was asked about.
    pub(crate) swing: f64,
}

/// What is known of the rows themselves.
#[derive(Debug, Clone)]
pub(crate) struct RowSurvey {
    /// Σ w x xᵀ, both triangles; empty unless asked for.
    pub(crate) gram: Mat<f64>,
    /// Per column, the rows whose entry is not zero.
    pub(crate) support: Vec<u64>,
    /// Rows of each class.
    pub(crate) class_rows: Vec<u64>,
    /// max ‖x‖.
    pub(crate) reach: f64,
    /// Σ w and Σ w‖x‖².
    pub(crate) weight: f64,
    pub(crate) trace: f64,
}

impl RowSurvey {
    /// Columns that no row has, ascending.
    pub(crate) fn unseen(&self) -> Vec<usize> {
        (0..self.support.len())
            .filter(|&j| self.support[j] == 0)
            .collect()
    }

    /// Takes in what is known of other rows.
    fn join(&mut self, other: Self) {
        self.gram += other.gram;
        self.support
            .iter_mut()
            .zip(other.support)
            .for_each(|(a, b)| *a += b);
        self.class_rows
            .iter_mut()
            .zip(other.class_rows)
            .for_each(|(a, b)| *a += b);
        self.reach = self.reach.max(other.reach);
        self.weight += other.weight;
        self.trace += other.trace;
    }
}

impl PassFrame<'_> {
    /// A row of a store, if its targets name a class.
    pub(crate) fn member<'r>(&self, row: RowView<'r>) -> Result<WeightedRow<'r>> {
        self.rule().member(row)
    }

    /// The factor that brings a row, its constant included, to a norm of at most 1.
    pub(crate) fn scale(&self, row: RowRef<'_>) -> f64 {
        self.rule().scale(row)
    }

    pub(super) fn rule(&self) -> MemberRule {
        MemberRule {
            link: self.link,
            clip: self.clip,
            intercept: self.basis.intercept,
        }
    }

    pub(crate) fn write(&self, member: &WeightedRow<'_>, out: &mut [f64]) {
        self.basis.write(member.features, member.scale, out);
    }

    /// Whether to go through a row's non-zeros instead of writing it out.
    pub(super) fn is_thin(&self, row: RowRef<'_>) -> bool {
        match row {
            RowRef::Sparse64(columns, _) | RowRef::Sparse32(columns, _) => {
                self.are_few(columns.len())
            }
            _ => false,
        }
    }

    /// Whether so many non-zeros are better gone through than written out.
    pub(super) fn are_few(&self, entries: usize) -> bool {
        self.basis.is_unshifted() && (entries as f64) < DENSE_SHARE * self.basis.width() as f64
    }

    /// Whether a row can be multiplied where it lies, but for its constant.
    pub(super) fn lies_ready(&self, member: &WeightedRow<'_>) -> bool {
        self.basis.is_unshifted()
            && member.scale == 1.0
            && matches!(member.features, RowRef::Dense64(_))
    }

    /// Adds the non-zeros of a row to a list, in the caller's units.
    pub(super) fn entries_raw(&self, member: &WeightedRow<'_>, out: &mut Vec<(usize, f64)>) {
        let first = self.basis.intercept as usize;
        if first == 1 {
            out.push((0, member.scale));
        }
        member
            .features
            .each(|j, x| out.push((first + j, x * member.scale)));
    }

    /// The non-zeros of a thin row.
    pub(super) fn entries(&self, member: &WeightedRow<'_>, raw: bool, out: &mut Vec<(usize, f64)>) {
        let first = self.basis.intercept as usize;
        out.clear();
        if raw {
            return self.entries_raw(member, out);
        }
        if first == 1 {
            out.push((0, member.scale));
        }
        member
            .features
            .each(|j, x| out.push((first + j, x * self.basis.inverse_scale(j) * member.scale)));
    }
}

impl RowSample<'_> {
    /// Loss and gradient at the parameters, and how far a way moves scores, where one is given.
    pub(crate) fn slope(
        &self,
        frame: PassFrame<'_>,
        theta: &Mat<f64>,
        way: Option<&Mat<f64>>,
    ) -> Result<LossSlope> {
        let outputs = frame.outputs;
        let in_blocks = self.is_for_blocks(frame);
        let work = |_: usize, members: &[WeightedRow<'_>]| {
            if in_blocks {
                return slope_of_blocks(frame, theta, way, members);
            }
            let mut reader = PassReader::raw(frame);
            let vectors = reader.vectors(theta);
            let way = way.map(|way| reader.vectors(way));
            let mut swing = 0.0f64;
            let mut gradient = Mat::zeros(theta.nrows(), outputs);
            let mut part = gradient.clone();
            let mut loss = 0.0;
            let mut margin = f64::INFINITY;
            let mut scores = vec![0.0; outputs];
            let mut residual = vec![0.0; outputs];
            for stretch in members.chunks(STRETCH) {
                let mut part_loss = 0.0;
                for member in stretch {
                    reader.read(member);
                    if let Some(way) = &way {
                        reader.scores(way, &mut scores);
                        swing = swing.max(dot(&scores, &scores));
                    }
                    reader.scores(&vectors, &mut scores);
                    let (own, lead) = frame.link.judge(&scores, member.class, &mut residual);
                    part_loss += member.weight * own;
                    margin = margin.min(lead);
                    for (c, r) in residual.iter().enumerate() {
                        reader.add_to(member.weight * r, part.col_as_slice_mut(c));
                    }
                }
                loss += part_loss;
                gradient += &part;
                part.fill(0.0);
            }
            (0..outputs).for_each(|c| reader.inner(gradient.col_as_slice_mut(c)));
            LossSlope {
                loss,
                gradient,
                margin,
                swing,
            }
        };
        let mut total: Option<LossSlope> = None;
        self.gather(frame.threads, work, |part| match &mut total {
            Some(total) => {
                total.loss += part.loss;
                total.gradient += part.gradient;
                total.margin = total.margin.min(part.margin);
                total.swing = total.swing.max(part.swing);
            }
            none => *none = Some(part),
        })?;
        let gradient = Mat::zeros(theta.nrows(), outputs);
        let nothing = LossSlope {
            loss: 0.0,
            gradient,
            margin: f64::INFINITY,
            swing: 0.0,
        };
        Ok(total.unwrap_or(nothing))
    }

    /// The lower triangle of the Hessian, without penalty, from every `stride`th row scaled up to
    /// stand for all. Products are of precision `T`; with L, they are those of rows L⁻¹x.
    pub(crate) fn hessian<T: LaneNumber>(
        &self,
        frame: PassFrame<'_>,
        theta: &Mat<f64>,
        stride: usize,
        whitener: Option<&Cholesky>,
    ) -> Result<Mat<f64>> {
        let total = theta.nrows() * frame.outputs;
        self.total(frame.threads, (total, total), |_, members| {
            let mut sums = HessianSums::<T>::of_whitened(frame, whitener);
            let mut reader = PassReader::new(frame);
            let vectors = reader.vectors(theta);
            let mut scores = vec![0.0; frame.outputs];
            let mut probabilities = vec![0.0; frame.outputs];
            for member in members.iter().step_by(stride) {
                reader.read(member);
                reader.scores(&vectors, &mut scores);
                frame.link.probabilities(&scores, &mut probabilities);
                sums.add(&reader, |a, b| {
                    member.weight * stride as f64 * frame.link.bend(&scores, &probabilities, a, b)
                });
            }
            sums.finish()
        })
    }

    /// The gradient, without penalty, where the rows have these scores, one line each.
    pub(crate) fn gradient_at(&self, frame: PassFrame<'_>, scores: &RowLines) -> Result<Mat<f64>> {
        let outputs = frame.outputs;
        let width = frame.basis.width();
        let in_blocks = self.is_for_blocks(frame);
        self.total(frame.threads, (width, outputs), |offset, members| {
            let scores = self.lines_of(frame, scores, offset, members);
            if in_blocks {
                return gradient_of_blocks(frame, &scores, members);
            }
            let mut reader = PassReader::raw(frame);
            let mut gradient = Mat::zeros(width, outputs);
            let mut part = gradient.clone();
            let mut residual = vec![0.0; outputs];
            let lines = scores.chunks(STRETCH * outputs);
            for (stretch, lines) in members.chunks(STRETCH).zip(lines) {
                for (member, line) in stretch.iter().zip(lines.chunks_exact(outputs)) {
                    reader.read(member);
                    frame.link.judge(line, member.class, &mut residual);
                    for (c, r) in residual.iter().enumerate() {
                        reader.add_to(member.weight * r, part.col_as_slice_mut(c));
                    }
                }
                gradient += &part;
                part.fill(0.0);
            }
            (0..outputs).for_each(|c| reader.inner(gradient.col_as_slice_mut(c)));
            gradient
        })
    }

    /// The Hessian, without penalty, times `v`, both as one long column; `bends` are those of
    /// [`bends`](Self::bends).
    pub(crate) fn times(
        &self,
        frame: PassFrame<'_>,
        bends: &RowLines,
        v: &[f64],
    ) -> Result<Mat<f64>> {
        let width = frame.basis.width();
        let outputs = frame.outputs;
        let in_blocks = self.is_for_blocks(frame);
        self.total(frame.threads, (width * outputs, 1), |offset, members| {
            let bends = self.lines_of(frame, bends, offset, members);
            if in_blocks {
                return product_of_blocks(frame, &bends, v, members);
            }
            let mut reader = PassReader::raw(frame);
            let vectors: Vec<Vec<f64>> = v
                .chunks_exact(width)
                .map(|part| reader.against(part))
                .collect();
            let mut out = Mat::zeros(width * outputs, 1);
            let mut along = vec![0.0; outputs];
            for (member, bend) in members.iter().zip(bends.chunks_exact(outputs)) {
                reader.read(member);
                reader.scores(&vectors, &mut along);
                let mean: f64 = match frame.link {
                    Link::Logistic => 0.0,
                    Link::Softmax => along.iter().zip(bend).map(|(a, p)| a * p).sum(),
                };
                for (c, along) in along.iter().enumerate() {
                    let out = &mut out.col_as_slice_mut(0)[c * width..(c + 1) * width];
                    reader.add_to(member.weight * bend[c] * (along - mean), out);
                }
            }
            out.col_as_slice_mut(0)
                .chunks_exact_mut(width)
                .for_each(|part| reader.inner(part));
            out
        })
    }

    /// The largest ‖x‖ in the norm of A⁻¹, A being the matrix of this factor, over the columns of
    /// one class.
    pub(crate) fn local_reach(&self, frame: PassFrame<'_>, factor: &Cholesky) -> Result<f64> {
        let width = frame.basis.width();
        // A dense row needs half a solve; a thin one a few entries of the inverse.
        let inverse = self
            .is_thin(frame)
            .then(|| factor.inverse(par(frame.threads)));
        let work = |_: usize, members: &[WeightedRow<'_>]| {
            let mut reader = PassReader::new(frame);
            let mut block = Mat::zeros(width, BLOCK);
            let mut count = 0;
            let mut largest = 0.0f64;
            let finish = |block: &mut Mat<f64>, count: usize| {
                factor.half_solve(block.as_mut().subcols_mut(0, count));
                let squares = (0..count).map(|k| block.col_as_slice(k)).map(|x| dot(x, x));
                squares.fold(0.0, f64::max)
            };
            for member in members {
                reader.read(member);
                if let (RowPlace::Thin, Some(inverse)) = (&reader.kind, &inverse) {
                    let mut square = 0.0;
                    for &(j, x) in &reader.entries {
                        let column = inverse.col_as_slice(j);
                        square += x * reader
                            .entries
                            .iter()
                            .map(|&(i, y)| y * column[i])
                            .sum::<f64>();
                    }
                    largest = largest.max(square);
                    continue;
                }
                block
                    .col_as_slice_mut(count)
                    .copy_from_slice(&reader.buffer);
                count += 1;
                if count == BLOCK {
                    largest = largest.max(finish(&mut block, count));
                    count = 0;
                }
            }
            largest.max(finish(&mut block, count))
        };
        let mut largest = 0.0f64;
        self.gather(frame.threads, work, |part| largest = largest.max(part))?;
        // A little for the rounding of the solves.
        Ok((1.0 + 1e-6) * largest.sqrt())
    }

    pub(crate) fn survey(&self, frame: PassFrame<'_>, with_gram: bool) -> Result<RowSurvey> {
        let width = frame.basis.width();
        let classes = frame.link.classes(frame.outputs);
        let single = PassFrame {
            outputs: 1,
            ..frame
        };
        let nothing = RowSurvey {
            gram: Mat::zeros(0, 0),
            support: vec![0; width],
            class_rows: vec![0; classes],
            reach: 0.0,
            weight: 0.0,
            trace: 0.0,
        };
        let work = |_: usize, members: &[WeightedRow<'_>]| {
            let mut survey = nothing.clone();
            let mut reader = PassReader::new(single);
            let mut sums = with_gram.then(|| HessianSums::<f64>::new(single));
            for member in members {
                reader.read(member);
                let square = reader.square();
                survey.reach = survey.reach.max(square);
                survey.weight += member.weight;
                survey.trace += member.weight * square;
                survey.class_rows[member.class] += 1;
                reader.each(|j, x| survey.support[j] += (x != 0.0) as u64);
                if let Some(sums) = &mut sums {
                    sums.add(&reader, |_, _| member.weight);
                }
            }
            if let Some(sums) = sums {
                survey.gram = sums.finish();
            }
            survey
        };
        let mut total: Option<RowSurvey> = None;
        self.gather(frame.threads, work, |part| match &mut total {
            Some(total) => total.join(part),
            none => *none = Some(part),
        })?;
        let mut total = total.unwrap_or_else(|| nothing.clone());
        total.reach = total.reach.sqrt();
        mirror_lower(total.gram.as_mut());
        Ok(total)
    }
}

/// Loss and gradient over rows of several scores, block by block.
fn slope_of_blocks(
    frame: PassFrame<'_>,
    theta: &Mat<f64>,
    way: Option<&Mat<f64>>,
    members: &[WeightedRow<'_>],
) -> LossSlope {
    let outputs = frame.outputs;
    // One product for both: the rows are the larger side of it.
    let both = way.map(|way| {
        Mat::from_fn(theta.nrows(), 2 * outputs, |j, c| {
            match c.checked_sub(outputs) {
                Some(c) => way[(j, c)],
                None => theta[(j, c)],
            }
        })
    });
    let vectors = both.as_ref().unwrap_or(theta);
    let mut block = RowBlock::with_lines(frame, members, vectors.ncols());
    let vectors = block.against(vectors);
    let mut swing = 0.0f64;
    let mut gradient = block.nothing();
    let mut part = block.nothing();
    let mut loss = 0.0;
    let mut margin = f64::INFINITY;
    for stretch in members.chunks(STRETCH) {
        let mut part_loss = 0.0;
        for rows in stretch.chunks(BLOCK) {
            block.read(rows, &vectors);
            for (k, member) in rows.iter().enumerate() {
                let residual = block.shares.col_as_slice_mut(k);
                let (scores, moves) = block.scores.col_as_slice(k).split_at(outputs);
                swing = swing.max(dot(moves, moves));
                let (own, lead) = frame.link.judge(scores, member.class, residual);
                part_loss += member.weight * own;
                margin = margin.min(lead);
                residual.iter_mut().for_each(|r| *r *= member.weight);
            }
            block.add_shares(&mut part);
        }
        loss += part_loss;
        gradient.add(&part);
        part.clear();
    }
    LossSlope {
        loss,
        gradient: block.inner(gradient),
        margin,
        swing,
    }
}

/// The gradient over rows of these scores, block by block.
fn gradient_of_blocks(
    frame: PassFrame<'_>,
    scores: &[f64],
    members: &[WeightedRow<'_>],
) -> Mat<f64> {
    let outputs = frame.outputs;
    let mut block = RowBlock::new(frame, members);
    let mut gradient = block.nothing();
    let mut part = block.nothing();
    for (stretch, lines) in members
        .chunks(STRETCH)
        .zip(scores.chunks(STRETCH * outputs))
    {
        for (rows, lines) in stretch.chunks(BLOCK).zip(lines.chunks(BLOCK * outputs)) {
            block.load(rows);
            for ((k, member), line) in rows.iter().enumerate().zip(lines.chunks_exact(outputs)) {
                let residual = block.shares.col_as_slice_mut(k);
                frame.link.judge(line, member.class, residual);
                residual.iter_mut().for_each(|r| *r *= member.weight);
            }
            block.add_shares(&mut part);
        }
        gradient.add(&part);
        part.clear();
    }
    block.inner(gradient)
}

/// The Hessian over rows of several scores times one long column, block by block; `bends` are those
/// of these rows.
fn product_of_blocks(
    frame: PassFrame<'_>,
    bends: &[f64],
    v: &[f64],
    members: &[WeightedRow<'_>],
) -> Mat<f64> {
    let width = frame.basis.width();
    let outputs = frame.outputs;
    let mut block = RowBlock::new(frame, members);
    let vectors = block.against(&Mat::from_fn(width, outputs, |j, c| v[c * width + j]));
    let mut out = block.nothing();
    for (rows, bends) in members.chunks(BLOCK).zip(bends.chunks(outputs * BLOCK)) {
        block.read(rows, &vectors);
        for ((k, member), bend) in rows.iter().enumerate().zip(bends.chunks_exact(outputs)) {
            let along = block.scores.col_as_slice(k);
            let mean = match frame.link {
                Link::Logistic => 0.0,
                Link::Softmax => dot(along, bend),
            };
            let shares = block.shares.col_as_slice_mut(k);
            for ((share, along), bend) in shares.iter_mut().zip(along).zip(bend) {
                *share = member.weight * bend * (along - mean);
            }
        }
        block.add_shares(&mut out);
    }
    super::objective::flat(&block.inner(out))
}

/// At least the largest eigenvalue of Σ w x xᵀ, for a frame of one output and two classes.
pub(super) fn gram_norm(sample: &RowSample<'_>, frame: PassFrame<'_>) -> Result<f64> {
    let width = frame.basis.width();
    let mut failed = Ok(());
    let norm = operator_norm(width, &[], width as u64, |v| {
        match sample.times(frame, &RowLines::Same(1.0), v.col_as_slice(0)) {
            Ok(product) => *v = product,
            Err(error) => failed = Err(error),
        }
    });
    failed.map(|()| norm)
}
