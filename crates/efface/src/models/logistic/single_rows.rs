//! A copy of sparse rows in single precision, for products with the Hessian inside conjugate
//! gradients: half the bytes to move, and twice the numbers in a register. It decides how fast a
//! step is found and not how good it is, which is measured over the rows themselves; so that steps
//! to many digits are not taken with it.

use super::Link;
use super::objective::RowObjective;
use super::reader::PassReader;
use super::sample::{RowLines, WeightedRow};
use crate::error::Result;
use crate::linalg::widest;

/// A copy larger than this is not made.
const MOST_BYTES: usize = 1 << 29;

/// Fewer numbers than this are multiplied in no time, whatever their precision.
const FEWEST: usize = 1 << 14;

/// Numbers of single precision in a register; scores are padded to a multiple of it.
const LANES: usize = 8;
/// Scores that are summed side by side.
const WIDE: usize = 4 * LANES;

/// Sums of so many rows join the others in double precision.
const STRETCH: usize = 8192;

/// The rows of an objective, one stretch per thread.
pub(super) struct SingleRows<'a> {
    objective: &'a RowObjective<'a>,
    stretches: Vec<RowStretch>,
    /// Scores a row, padded.
    lines: usize,
}

/// Some of the rows.
struct RowStretch {
    /// The non-zeros of row after row, and where each row ends.
    columns: Vec<u32>,
    values: Vec<f32>,
    ends: Vec<usize>,
    weights: Vec<f32>,
    /// The probabilities of every row, padded with 0.
    probabilities: Vec<f32>,
}

impl<'a> SingleRows<'a> {
    /// None where the rows are not worth copying, too many, or not in memory. `bends` are those of
    /// the sample.
    pub(super) fn new(objective: &'a RowObjective<'a>, bends: &RowLines) -> Result<Option<Self>> {
        let frame = objective.frame;
        let sample = objective.sample;
        if frame.link != Link::Softmax
            || !sample.is_held()
            || !sample.is_for_blocks(frame)
            || !sample.is_thin(frame)
            || !(FEWEST..=MOST_BYTES / 8).contains(&sample.shape.numbers)
        {
            return Ok(None);
        }
        let lines = frame.outputs.next_multiple_of(LANES);
        let mut stretches = Vec::new();
        let copy = |offset: usize, members: &[WeightedRow<'_>]| {
            let bends = sample.lines_of(frame, bends, offset, members);
            RowStretch::new(objective, members, &bends, lines)
        };
        sample.gather(frame.threads, copy, |stretch| stretches.push(stretch))?;
        Ok(Some(Self {
            objective,
            stretches,
            lines,
        }))
    }

    /// The Hessian times `v`, penalty included, both as one long column.
    pub(super) fn times(&self, v: &[f64], out: &mut [f64]) {
        let frame = self.objective.frame;
        let width = frame.basis.width();
        let reader = PassReader::raw(frame);
        let mut table = vec![0.0f32; width * self.lines];
        for (c, part) in v.chunks_exact(width).enumerate() {
            for (j, x) in reader.against(part).iter().enumerate() {
                table[j * self.lines + c] = *x as f32;
            }
        }
        let table = &table;
        let sums: Vec<Vec<f64>> = std::thread::scope(|scope| {
            let (first, others) = match self.stretches.split_first() {
                Some(parts) => parts,
                None => return Vec::new(),
            };
            let work: Vec<_> = others
                .iter()
                .map(|stretch| scope.spawn(move || stretch.product(table, width, self.lines)))
                .collect();
            let mut sums = vec![first.product(table, width, self.lines)];
            for part in work {
                match part.join() {
                    Ok(sum) => sums.push(sum),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            sums
        });
        for (c, part) in out.chunks_exact_mut(width).enumerate() {
            for (j, out) in part.iter_mut().enumerate() {
                *out = sums.iter().map(|sum| sum[j * self.lines + c]).sum();
            }
            reader.inner(part);
        }
        self.objective.extra.times(v, out);
    }
}

impl RowStretch {
    fn new(
        objective: &RowObjective<'_>,
        members: &[WeightedRow<'_>],
        bends: &[f64],
        lines: usize,
    ) -> Self {
        let frame = objective.frame;
        let outputs = frame.outputs;
        let mut probabilities = vec![0.0f32; members.len() * lines];
        for (to, from) in probabilities
            .chunks_exact_mut(lines)
            .zip(bends.chunks_exact(outputs))
        {
            to.iter_mut()
                .zip(from)
                .for_each(|(to, from)| *to = *from as f32);
        }
        let weights = members.iter().map(|member| member.weight as f32).collect();
        let mut columns = Vec::new();
        let mut values = Vec::new();
        let mut ends = Vec::with_capacity(members.len());
        let mut entries = Vec::new();
        for member in members {
            entries.clear();
            frame.entries_raw(member, &mut entries);
            columns.extend(entries.iter().map(|(j, _)| *j as u32));
            values.extend(entries.iter().map(|(_, x)| *x as f32));
            ends.push(columns.len());
        }
        Self {
            columns,
            values,
            ends,
            weights,
            probabilities,
        }
    }

    /// Σ w x ⊗ J(xᵀv), with the scores of a feature side by side.
    fn product(&self, table: &[f32], width: usize, lines: usize) -> Vec<f64> {
        let mut total = vec![0.0f64; width * lines];
        let mut part = vec![0.0f32; width * lines];
        let mut line = vec![0.0f32; lines];
        let mut begin = 0;
        let mut flush = |part: &mut [f32]| {
            total
                .iter_mut()
                .zip(part.iter())
                .for_each(|(total, part)| *total += f64::from(*part));
            part.fill(0.0);
        };
        let rows = self.weights.len();
        let (columns, values, ends) = (&self.columns, &self.values, &self.ends);
        for first in (0..rows).step_by(STRETCH) {
            let last = (first + STRETCH).min(rows);
            widest(
                #[inline(always)]
                || {
                    for k in first..last {
                        let row = (&columns[begin..ends[k]], &values[begin..ends[k]]);
                        begin = ends[k];
                        gather_all(row, table, lines, &mut line);
                        self.bend(k, &mut line);
                        scatter(row, &line, &mut part);
                    }
                },
            );
            flush(&mut part);
        }
        total
    }

    /// J times the scores of a row, times its weight.
    #[inline(always)]
    fn bend(&self, row: usize, line: &mut [f32]) {
        let probabilities = &self.probabilities[row * line.len()..(row + 1) * line.len()];
        let mut means = [0.0f32; LANES];
        for (along, p) in line
            .as_chunks::<LANES>()
            .0
            .iter()
            .zip(probabilities.as_chunks::<LANES>().0)
        {
            means
                .iter_mut()
                .zip(along.iter().zip(p))
                .for_each(|(mean, (along, p))| *mean += along * p);
        }
        let mean: f32 = means.iter().sum();
        let weight = self.weights[row];
        for (along, p) in line
            .as_chunks_mut::<LANES>()
            .0
            .iter_mut()
            .zip(probabilities.as_chunks::<LANES>().0)
        {
            *along = std::array::from_fn(|lane| weight * p[lane] * (along[lane] - mean));
        }
    }
}

/// The products of a row's non-zeros with all vectors.
#[inline(always)]
fn gather_all(row: (&[u32], &[f32]), table: &[f32], lines: usize, out: &mut [f32]) {
    let (wide, narrow) = out.as_chunks_mut::<WIDE>();
    let mut at = 0;
    for out in wide {
        gather(row, table, lines, at, out);
        at += WIDE;
    }
    for out in narrow.as_chunks_mut::<LANES>().0 {
        gather(row, table, lines, at, out);
        at += LANES;
    }
}

/// The products of a row's non-zeros with `N` vectors, from the vector `at` on.
#[inline(always)]
fn gather<const N: usize>(
    (columns, values): (&[u32], &[f32]),
    table: &[f32],
    lines: usize,
    at: usize,
    out: &mut [f32; N],
) {
    let mut sums = [0.0f32; N];
    for (j, x) in columns.iter().zip(values) {
        let from = *j as usize * lines + at;
        let vector = &table[from..from + N];
        sums.iter_mut()
            .zip(vector)
            .for_each(|(sum, v)| *sum += x * v);
    }
    *out = sums;
}

/// Adds a row's non-zeros, times its shares, to a sum.
#[inline(always)]
fn scatter((columns, values): (&[u32], &[f32]), shares: &[f32], sum: &mut [f32]) {
    let lines = shares.len();
    for (j, x) in columns.iter().zip(values) {
        let out = &mut sum[*j as usize * lines..(*j as usize + 1) * lines];
        for (out, shares) in out
            .as_chunks_mut::<LANES>()
            .0
            .iter_mut()
            .zip(shares.as_chunks::<LANES>().0)
        {
            // All are read before any is written, or the compiler would take them one by one.
            let added: [f32; LANES] = std::array::from_fn(|lane| out[lane] + x * shares[lane]);
            *out = added;
        }
    }
}
