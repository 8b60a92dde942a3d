//! The rows that a loss is summed over: in memory, or in a store that is read block by block for
//! every pass.

use std::borrow::Cow;
use std::collections::HashSet;

use faer::Mat;

use super::Link;
use super::pass::{BLOCK, PassFrame};
use super::reader::PassReader;
use super::row_block::RowBlock;
use crate::error::{Error, Result};
use crate::rows::{RowId, RowRef, RowStore, RowView, Rows, Stop};

/// About so many rows are looked at before coordinates are chosen.
const FIRST_LOOK: usize = 2048;

/// So many dense rows nearly always have all columns among them.
const FEW: usize = 16;

/// A row, its class, and the factor that brings it to a norm of at most 1 where that is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WeightedRow<'a> {
    pub(crate) id: RowId,
    pub(crate) features: RowRef<'a>,
    pub(crate) weight: f64,
    pub(crate) class: usize,
    pub(crate) scale: f64,
}

/// What makes a row of a store a row of a loss.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemberRule {
    pub(super) link: Link,
    pub(super) clip: bool,
    pub(super) intercept: bool,
}

/// The rows that a loss is summed over. Rows of weight 0 are left out.
pub(crate) struct RowSample<'a> {
    members: SampleMembers<'a>,
    pub(crate) shape: SampleShape,
    /// Where a request to stop would arrive.
    pub(crate) stop: Option<Stop>,
}

/// Where the rows of a sample are.
enum SampleMembers<'a> {
    Held(Vec<WeightedRow<'a>>),
    /// In a store that is read anew, block by block, for every pass.
    Passed(&'a dyn RowStore, MemberRule),
}

/// What there is to know of a sample before a pass over it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampleShape {
    /// Rows in all, those of weight 0 included.
    pub(crate) rows: usize,
    /// Rows that weigh something.
    pub(crate) members: usize,
    /// Values that are stored of them.
    pub(crate) numbers: usize,
    /// The fewest values of a sparse one.
    fewest: Option<usize>,
    /// Whether all of them are sparse.
    pub(super) is_sparse: bool,
}

/// A line of numbers for every row: kept where rows are in memory, and computed in every pass where
/// they are not.
pub(crate) enum RowLines {
    Kept(Vec<f64>),
    /// The scores at these parameters.
    Scores(Mat<f64>),
    /// How the loss bends there.
    Bends(Mat<f64>),
    /// One number for all.
    Same(f64),
}

impl MemberRule {
    pub(super) fn member<'r>(&self, row: RowView<'r>) -> Result<WeightedRow<'r>> {
        let class = self.link.class(row.targets).ok_or(Error::NotAClass {
            row: row.id,
            expected: self.link.expected(),
        })?;
        let scale = self.scale(row.features);
        Ok(WeightedRow {
            id: row.id,
            features: row.features,
            weight: row.weight,
            class,
            scale,
        })
    }

    /// The factor that brings a row, its constant included, to a norm of at most 1.
    pub(super) fn scale(&self, row: RowRef<'_>) -> f64 {
        if !self.clip {
            return 1.0;
        }
        let mut square = self.intercept as u8 as f64;
        row.each(|_, x| square += x * x);
        if square > 1.0 {
            1.0 / square.sqrt()
        } else {
            1.0
        }
    }
}

impl SampleShape {
    const NOTHING: Self = Self {
        rows: 0,
        members: 0,
        numbers: 0,
        fewest: None,
        is_sparse: true,
    };

    /// Takes note of a row.
    fn see(&mut self, row: RowRef<'_>, weight: f64) {
        self.rows += 1;
        if weight > 0.0 {
            let numbers = row.stored_values();
            self.members += 1;
            self.numbers += numbers;
            match row {
                RowRef::Sparse64(..) | RowRef::Sparse32(..) => {
                    self.fewest = Some(self.fewest.map_or(numbers, |fewest| fewest.min(numbers)));
                }
                _ => self.is_sparse = false,
            }
        }
    }
}

impl<'a> RowSample<'a> {
    /// The rows of `rows` that are not `gone`, and those of `new`.
    pub(crate) fn new(
        frame: PassFrame<'_>,
        rows: &'a Rows,
        gone: &HashSet<RowId>,
        new: Option<&'a Rows>,
    ) -> Result<Self> {
        let retained = rows.iter().filter(|row| !gone.contains(&row.id));
        let mut shape = SampleShape::NOTHING;
        let mut members = Vec::with_capacity(rows.len());
        for row in retained.chain(new.into_iter().flat_map(|new| new.iter())) {
            let member = frame.member(row)?;
            shape.see(member.features, member.weight);
            if member.weight > 0.0 {
                members.push(member);
            }
        }
        Ok(Self {
            members: SampleMembers::Held(members),
            shape,
            stop: rows.stop().cloned(),
        })
    }

    /// The rows of a store that may be beyond memory. Its shape is found out in a pass where it is
    /// not known.
    pub(crate) fn passed(
        frame: PassFrame<'_>,
        rows: &'a dyn RowStore,
        known: Option<SampleShape>,
    ) -> Result<Self> {
        let mut shape = known.unwrap_or(SampleShape::NOTHING);
        if known.is_none() {
            rows.each_block(&mut |block| {
                block
                    .iter()
                    .for_each(|row| shape.see(row.features, row.weight));
                rows.go_on()
            })?;
        }
        let members = SampleMembers::Passed(rows, frame.rule());
        Ok(Self {
            members,
            shape,
            stop: rows.stop().cloned(),
        })
    }

    /// Whether its rows are in memory.
    pub(super) fn is_held(&self) -> bool {
        matches!(self.members, SampleMembers::Held(_))
    }

    /// Whether some row is better read by its non-zeros.
    pub(crate) fn is_thin(&self, frame: PassFrame<'_>) -> bool {
        self.shape
            .fewest
            .is_some_and(|fewest| frame.are_few(fewest))
    }

    /// Shows all rows, in as many parts as they are read in, with the place of the first row of
    /// each part.
    pub(super) fn each_part(&self, mut see: impl FnMut(usize, &[WeightedRow<'_>])) -> Result<()> {
        let (store, rule) = match &self.members {
            SampleMembers::Held(members) => {
                see(0, members);
                return Ok(());
            }
            SampleMembers::Passed(store, rule) => (store, rule),
        };
        let mut offset = 0;
        store.each_block(&mut |block| {
            store.go_on()?;
            let mut members = Vec::with_capacity(block.len());
            for row in block.iter().filter(|row| row.weight > 0.0) {
                members.push(rule.member(row)?);
            }
            see(offset, &members);
            offset += members.len();
            Ok(())
        })
    }

    /// Runs `work` on one stretch of rows per thread, part by part, tells it where the stretch
    /// begins, and joins the results in order.
    pub(super) fn gather<T: Send>(
        &self,
        threads: usize,
        work: impl Fn(usize, &[WeightedRow<'_>]) -> T + Sync,
        mut join: impl FnMut(T),
    ) -> Result<()> {
        self.each_part(|offset, members| {
            split(members, threads, |at, stretch| work(offset + at, stretch))
                .into_iter()
                .for_each(&mut join);
        })
    }

    /// The sum of the matrices that `work` makes of stretches of rows.
    pub(super) fn total(
        &self,
        threads: usize,
        (rows, columns): (usize, usize),
        work: impl Fn(usize, &[WeightedRow<'_>]) -> Mat<f64> + Sync,
    ) -> Result<Mat<f64>> {
        let mut total: Option<Mat<f64>> = None;
        self.gather(threads, work, |part| match &mut total {
            Some(total) => *total += part,
            none => *none = Some(part),
        })?;
        Ok(total.unwrap_or_else(|| Mat::zeros(rows, columns)))
    }

    /// The lines of some rows, the first of which stands at `offset`.
    pub(super) fn lines_of<'l>(
        &self,
        frame: PassFrame<'_>,
        lines: &'l RowLines,
        offset: usize,
        members: &[WeightedRow<'_>],
    ) -> Cow<'l, [f64]> {
        let outputs = frame.outputs;
        match lines {
            RowLines::Kept(lines) => {
                Cow::Borrowed(&lines[offset * outputs..(offset + members.len()) * outputs])
            }
            RowLines::Same(number) => Cow::Owned(vec![*number; members.len() * outputs]),
            RowLines::Scores(theta) => {
                Cow::Owned(scores_of(frame, theta, members, self.is_for_blocks(frame)))
            }
            RowLines::Bends(theta) => {
                let mut lines = scores_of(frame, theta, members, self.is_for_blocks(frame));
                bend(frame, &mut lines);
                Cow::Owned(lines)
            }
        }
    }

    /// The scores of every row, one line each.
    pub(crate) fn scores(&self, frame: PassFrame<'_>, theta: &Mat<f64>) -> Result<RowLines> {
        if !self.is_held() {
            return Ok(RowLines::Scores(theta.clone()));
        }
        let in_blocks = self.is_for_blocks(frame);
        let mut lines = Vec::with_capacity(frame.outputs * self.shape.members);
        let work =
            |_: usize, members: &[WeightedRow<'_>]| scores_of(frame, theta, members, in_blocks);
        self.gather(frame.threads, work, |part| lines.extend(part))?;
        Ok(RowLines::Kept(lines))
    }

    /// The probabilities of every row, for repeated products with the Hessian.
    pub(crate) fn bends(&self, frame: PassFrame<'_>, theta: &Mat<f64>) -> Result<RowLines> {
        Ok(match self.scores(frame, theta)? {
            RowLines::Kept(mut lines) => {
                bend(frame, &mut lines);
                RowLines::Kept(lines)
            }
            _ => RowLines::Bends(theta.clone()),
        })
    }
}

impl RowSample<'_> {
    /// Whether every column is seen to be used by the first few rows; false says nothing.
    pub(super) fn uses_all_columns(&self, frame: PassFrame<'_>) -> bool {
        let SampleMembers::Held(members) = &self.members else {
            return false;
        };
        let mut unused: Vec<bool> = vec![true; frame.basis.width()];
        let mut reader = PassReader::new(frame);
        for member in members.iter().take(FEW) {
            reader.read(member);
            reader.each(|j, x| unused[j] &= x == 0.0);
        }
        unused.iter().all(|unused| !unused)
    }
}

/// What a first pass over a store beyond memory finds out.
pub(super) struct FirstPass {
    /// Some of the rows, at equal distances.
    pub(super) sample: Rows,
    /// The fingerprint of all rows.
    pub(super) row_set: u64,
    pub(super) shape: SampleShape,
}

impl FirstPass {
    pub(super) fn over(rows: &dyn RowStore) -> Result<Self> {
        let stride = rows.len().div_ceil(FIRST_LOOK).max(1);
        let mut sample: Option<Rows> = None;
        let mut shape = SampleShape::NOTHING;
        let mut row_set = 0u64;
        rows.each_block(&mut |block| {
            rows.go_on()?;
            let chosen: HashSet<RowId> = (shape.rows..)
                .zip(block.ids())
                .filter(|(at, _)| at.is_multiple_of(stride))
                .map(|(_, id)| id)
                .collect();
            block
                .iter()
                .for_each(|row| shape.see(row.features, row.weight));
            row_set = row_set.wrapping_add(super::private::fingerprint(block.ids()));
            let chosen = block.filter(|id| chosen.contains(&id));
            match &mut sample {
                Some(sample) => sample.append(&chosen),
                none => {
                    *none = Some(chosen);
                    Ok(())
                }
            }
        })?;
        Ok(Self {
            sample: sample
                .filter(|sample| !sample.is_empty())
                .ok_or(Error::NoRows)?,
            row_set,
            shape,
        })
    }
}

/// Runs `work` on one stretch of rows per thread, and tells it where the stretch begins.
fn split<T: Send>(
    members: &[WeightedRow<'_>],
    threads: usize,
    work: impl Fn(usize, &[WeightedRow<'_>]) -> T + Sync,
) -> Vec<T> {
    let threads = threads.clamp(1, members.len().div_ceil(64).max(1));
    let size = members.len().div_ceil(threads).max(1);
    let mut stretches = members.chunks(size).enumerate();
    let (_, first) = stretches.next().unwrap_or((0, &[]));
    let work = &work;
    std::thread::scope(|scope| {
        let others: Vec<_> = stretches
            .map(|(at, stretch)| scope.spawn(move || work(at * size, stretch)))
            .collect();
        let mut results = vec![work(0, first)];
        for other in others {
            match other.join() {
                Ok(result) => results.push(result),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        results
    })
}

/// The scores of rows, one line each.
fn scores_of(
    frame: PassFrame<'_>,
    theta: &Mat<f64>,
    members: &[WeightedRow<'_>],
    in_blocks: bool,
) -> Vec<f64> {
    let outputs = frame.outputs;
    let mut scores = vec![0.0; outputs * members.len()];
    if in_blocks {
        let mut block = RowBlock::new(frame, members);
        let vectors = block.against(theta);
        for (rows, lines) in members
            .chunks(BLOCK)
            .zip(scores.chunks_mut(outputs * BLOCK))
        {
            block.read(rows, &vectors);
            for (k, line) in lines.chunks_exact_mut(outputs).enumerate() {
                line.copy_from_slice(block.scores.col_as_slice(k));
            }
        }
        return scores;
    }
    let mut reader = PassReader::raw(frame);
    let vectors = reader.vectors(theta);
    for (member, line) in members.iter().zip(scores.chunks_exact_mut(outputs)) {
        reader.read(member);
        reader.scores(&vectors, line);
    }
    scores
}

/// Puts how the loss bends in the place of scores.
fn bend(frame: PassFrame<'_>, lines: &mut [f64]) {
    let mut scores = vec![0.0; frame.outputs];
    for line in lines.chunks_exact_mut(frame.outputs) {
        scores.copy_from_slice(line);
        match frame.link {
            Link::Logistic => line[0] = frame.link.bend(&scores, &[], 0, 0),
            Link::Softmax => frame.link.probabilities(&scores, line),
        }
    }
}
