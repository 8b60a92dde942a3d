//! The sums of all rows, in one sweep: a row is centred, scaled, counted and multiplied with its
//! targets where it is written into a block, and the block is multiplied with itself.
//!
//! Where A is small, every thread has sums of its own over a stretch of the rows, which are added
//! up at the end. Where it is large, all threads share blocks and their products (`tiled_sums.rs`).

use faer::{Accum, Mat, MatRef, Par};

use super::Basis;
use super::sums::RidgeSums;
use super::tiled_sums::TiledSums;
use crate::error::Result;
use crate::linalg::{UNIT, add_scaled, coarse, mirror_lower, multiply, multiply_lower, widest};
use crate::rows::{RowRef, RowStore, RowView, Rows};

/// Above this share of non-zeros, a block of sparse rows is cheaper to multiply as a dense one.
const DENSE_SHARE: f64 = 0.05;

/// Up to this width, every thread has sums of its own.
const NARROW: usize = 1024;

/// Rows of a block where every thread has its own: with their sums they stay near the processor.
const NARROW_BLOCK: usize = 256;

/// Rows of a block that all threads share. More would save little time and let every sum have more
/// terms, which the bounds of all requests pay for.
const WIDE_BLOCK: usize = 1024;

/// So many blocks are added up on their own before they join the others, so that no sum has many
/// terms.
const TOGETHER: usize = 64;

/// After so many rows it is told how far a sweep is.
const TOLD: usize = 512;

/// Up to so many outputs, b is made row by row, while the row is at hand.
const FEW_OUTPUTS: usize = 4;

/// Sums that are to be factored.
pub(crate) struct UnfactoredSums {
    pub(crate) sums: RidgeSums,
    /// A matrix for the factor, where one was made beside the sums. The system takes its time to
    /// hand out so much memory.
    pub(crate) room: Option<Mat<f64>>,
}

impl From<RidgeSums> for UnfactoredSums {
    fn from(sums: RidgeSums) -> Self {
        Self { sums, room: None }
    }
}

impl UnfactoredSums {
    /// As [`RidgeSums::gather`], for a fit, which factors the sums.
    pub(crate) fn gather(rows: &Rows, basis: &Basis, penalty: &[f64], par: Par) -> Result<Self> {
        if SumsSweep::is_tiled(rows, basis, par) && rows.gram_engine().is_none() {
            let (all, room) = SumsSweep::tiled(rows, basis, par, true)?;
            return Ok(Self {
                sums: all.completed(penalty),
                room,
            });
        }
        Ok(RidgeSums::gather(rows, basis, penalty, par)?.into())
    }
}

impl RidgeSums {
    /// Sums over all rows, unless it is told to stop. Memory: A and b, and one block of rows no
    /// larger than A; for models of up to 1,024 columns that a thread, and for wider ones on
    /// several threads two blocks and half of A beside them.
    pub(crate) fn gather(rows: &Rows, basis: &Basis, penalty: &[f64], par: Par) -> Result<Self> {
        if let Some((mut sums, terms, targets)) = Self::by_device(rows, basis, par)? {
            mirror_lower(sums.a.as_mut());
            return Ok(sums.completed(terms, targets, penalty));
        }
        if SumsSweep::is_tiled(rows, basis, par) {
            return Ok(SumsSweep::tiled(rows, basis, par, false)?
                .0
                .completed(penalty));
        }
        let threads = par.degree().max(1);
        let slots = rows.slot_count();
        let share = slots.div_ceil(threads).max(4 * NARROW_BLOCK);
        let mut all = if basis.width() <= NARROW && share < slots {
            let sweep = |start: usize| {
                let mut part = SumsSweep::new(rows, basis, NARROW_BLOCK, Par::Seq);
                part.add(start..(start + share).min(slots))?;
                Ok(part)
            };
            let sweep = &sweep;
            let parts: Vec<Result<SumsSweep<'_>>> = std::thread::scope(|scope| {
                let starts = (0..slots).step_by(share);
                let handles: Vec<_> = starts
                    .map(|start| scope.spawn(move || sweep(start)))
                    .collect();
                handles
                    .into_iter()
                    .map(|handle| {
                        handle
                            .join()
                            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                    })
                    .collect()
            });
            let mut parts = parts.into_iter();
            let mut all = parts.next().unwrap_or_else(|| sweep(0))?;
            for part in parts {
                all.absorb(&part?);
            }
            all
        } else {
            let width = basis.width();
            let block = if width <= NARROW {
                NARROW_BLOCK
            } else {
                WIDE_BLOCK
            };
            let mut all = SumsSweep::new(rows, basis, block, par);
            all.add(0..slots)?;
            all
        };
        mirror_lower(all.sums.a.as_mut());
        Ok(all.completed(penalty))
    }

    /// The sums with their penalty, given both triangles, the most terms of an entry, and Σwy².
    fn completed(mut self, terms: usize, targets: f64, penalty: &[f64]) -> Self {
        for (j, penalty) in penalty.iter().enumerate() {
            self.a[(j, j)] += penalty;
        }
        // Writing a row into the basis rounds, and so do the root of a weight and the penalty.
        self.charge = UNIT * (terms as f64 + 12.0);
        self.b_charge = self.charge;
        self.target_spread = coarse(targets.sqrt());
        self.note();
        self
    }
}

/// Rows that threads write into places of this width, each a part of them.
pub(super) struct ShareOfRows<'a, 'b> {
    pub(super) width: usize,
    pub(super) rows: &'a [RowView<'b>],
    pub(super) par: Par,
}

impl ShareOfRows<'_, '_> {
    /// What every thread has found.
    pub(super) fn write<T: Send>(
        &self,
        places: &mut [f64],
        write: &(impl Fn(&mut [f64], &[RowView<'_>]) -> T + Sync),
    ) -> Vec<T> {
        let share = self.rows.len().div_ceil(self.par.degree().max(1)).max(64);
        if share >= self.rows.len() {
            return vec![write(places, self.rows)];
        }
        std::thread::scope(|scope| {
            let parts = places
                .chunks_mut(share * self.width)
                .zip(self.rows.chunks(share));
            let handles: Vec<_> = parts
                .map(|(places, rows)| scope.spawn(move || write(places, rows)))
                .collect();
            handles
                .into_iter()
                .map(|handle| {
                    handle
                        .join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
                .collect()
        })
    }
}

/// The sums of a stretch of rows under way; the lower triangle of A counts.
struct SumsSweep<'a> {
    rows: &'a Rows,
    basis: &'a Basis,
    par: Par,
    /// Rows of a block.
    block: usize,
    sums: RidgeSums,
    /// The block, row after row, and its targets; empty until a row needs it.
    x: Vec<f64>,
    y: Mat<f64>,
    /// A, while it is made in tiles.
    tiles: Option<TiledSums>,
    /// Σ wy².
    targets: f64,
    weighted: bool,
    sparse_rows: bool,
    /// Blocks in `sums`, and the A and b of those before them.
    blocks: usize,
    older: Option<(Mat<f64>, Mat<f64>)>,
    /// The most terms that an entry of the sums has, as far as they come from blocks.
    terms: usize,
    /// The entries of one sparse row.
    entries: Vec<(usize, f64)>,
}

impl<'a> SumsSweep<'a> {
    fn new(rows: &'a Rows, basis: &'a Basis, block: usize, par: Par) -> Self {
        Self::into_sums(
            RidgeSums::zero(basis.width(), rows.outputs()),
            rows,
            basis,
            block,
            par,
        )
    }

    /// Whether several threads make the sums in tiles.
    fn is_tiled(rows: &Rows, basis: &Basis, par: Par) -> bool {
        par.degree() > 1 && basis.width() > NARROW && !rows.is_sparse()
    }

    /// The sums of all rows, both triangles, made in tiles; with `room` also a matrix of zeros of
    /// the same size.
    fn tiled(
        rows: &'a Rows,
        basis: &'a Basis,
        par: Par,
        room: bool,
    ) -> Result<(Self, Option<Mat<f64>>)> {
        let width = basis.width();
        std::thread::scope(|scope| {
            let zeros = move || Mat::<f64>::zeros(width, width);
            let matrices = scope.spawn(move || (zeros(), room.then(zeros)));
            let empty = RidgeSums::without_matrix(width, rows.outputs());
            let mut all = Self::into_sums(empty, rows, basis, WIDE_BLOCK, par);
            all.tiles = Some(TiledSums::new(width, all.block));
            let done = all.add(0..rows.slot_count());
            let (a, room) = matrices
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            done?;
            all.sums.a = a;
            if let Some(tiles) = all.tiles.take() {
                tiles.finish(all.sums.a.as_mut(), par);
            }
            Ok((all, room))
        })
    }

    /// The sums with their penalty, given both triangles.
    fn completed(self, penalty: &[f64]) -> RidgeSums {
        let Self {
            sums,
            mut terms,
            basis,
            sparse_rows,
            weighted,
            targets,
            ..
        } = self;
        if sparse_rows {
            // Entry by entry, a sum has as many terms as its rarer column has rows. The intercept's
            // own entry counts rows, without error unless they have weights.
            let first = (basis.intercept && !weighted) as usize;
            terms += sums.support[first..].iter().copied().max().unwrap_or(0) as usize;
        }
        sums.completed(terms, targets, penalty)
    }

    fn into_sums(
        sums: RidgeSums,
        rows: &'a Rows,
        basis: &'a Basis,
        block: usize,
        par: Par,
    ) -> Self {
        Self {
            rows,
            basis,
            par,
            block: block.min(rows.len().max(1)),
            sums,
            x: Vec::new(),
            y: Mat::new(),
            tiles: None,
            targets: 0.0,
            weighted: false,
            sparse_rows: false,
            blocks: 0,
            older: None,
            terms: 0,
            entries: Vec::new(),
        }
    }

    fn add(&mut self, slots: std::ops::Range<usize>) -> Result<()> {
        let width = self.basis.width();
        let unshifted = self.basis.is_unshifted();
        let rows = self.rows;
        let mut waiting: Vec<RowView<'a>> = Vec::with_capacity(self.block);
        // Factoring comes after the sweep: d³/3 after nd².
        let share = TOLD as f64 / (rows.slot_count() as f64 + width as f64 / 3.0);
        for (at, row) in rows.window(slots).enumerate() {
            if at % TOLD == 0
                && let Some(stop) = rows.stop()
            {
                stop.go_on()?;
                stop.note_part(if at > 0 { share } else { 0.0 });
            }
            self.targets += row.weight * row.targets.iter().map(|y| y * y).sum::<f64>();
            self.weighted |= row.weight != 1.0;
            if let RowRef::Sparse64(columns, _) | RowRef::Sparse32(columns, _) = row.features
                && unshifted
                && (columns.len() as f64) < DENSE_SHARE * width as f64
            {
                self.add_sparse(row);
                continue;
            }
            waiting.push(row);
            if waiting.len() == self.block {
                self.add_block(&waiting);
                waiting.clear();
            }
        }
        self.add_block(&waiting);
        if let Some((a, b)) = self.older.take() {
            self.sums.a += a;
            self.sums.b += b;
            self.terms += 1;
        }
        Ok(())
    }

    /// Adds the blocks of late to those before them.
    fn put_aside(&mut self) {
        let width = self.basis.width();
        let outputs = self.rows.outputs();
        let older = self
            .older
            .get_or_insert_with(|| (Mat::zeros(width, width), Mat::zeros(width, outputs)));
        older.0 += &self.sums.a;
        older.1 += &self.sums.b;
        self.sums.a.fill(0.0);
        self.sums.b.fill(0.0);
        self.blocks = 0;
    }

    /// Writes rows into the block, each thread a part of them, and adds its products.
    fn add_block(&mut self, rows: &[RowView<'a>]) {
        if rows.is_empty() {
            return;
        }
        let width = self.basis.width();
        if self.terms == 0 {
            if self.tiles.is_none() {
                self.x = vec![0.0; width * self.block];
            }
            self.y = Mat::zeros(self.block, self.rows.outputs());
            self.terms = self.block;
        }
        if self.blocks == TOGETHER && width <= NARROW {
            self.put_aside();
        }
        self.blocks += 1;
        self.terms += (self.older.is_none() || self.blocks == 1) as usize;
        let filled = rows.len();
        let basis = self.basis;
        let outputs = self.rows.outputs();
        let by_row = outputs <= FEW_OUTPUTS;
        let write = |x: &mut [f64], rows: &[RowView<'_>]| {
            let mut support = vec![0u64; width];
            let mut b = Mat::<f64>::zeros(width, if by_row { outputs } else { 0 });
            for (column, row) in x.chunks_exact_mut(width).zip(rows) {
                let root = row.weight.sqrt();
                basis.write(row.features, root, column);
                count_non_zeros(column, &mut support);
                for output in 0..b.ncols() {
                    add_scaled(
                        b.col_as_slice_mut(output),
                        row.targets[output] * root,
                        column,
                    );
                }
            }
            (support, b)
        };
        let parts = match &mut self.tiles {
            Some(tiles) => tiles.add_block(rows, self.par, &write),
            None => {
                let share = ShareOfRows {
                    width,
                    rows,
                    par: self.par,
                };
                share.write(&mut self.x[..width * filled], &write)
            }
        };
        // The block's own b first, so that a sum over all rows has no more terms than a block and
        // as many as there are blocks.
        let mut block_b = Mat::<f64>::zeros(width, if by_row { outputs } else { 0 });
        for (support, b) in &parts {
            self.sums
                .support
                .iter_mut()
                .zip(support)
                .for_each(|(sum, count)| *sum += count);
            block_b += b;
        }
        let xt = match &self.tiles {
            Some(tiles) => tiles.last_block(),
            None => {
                let xt = MatRef::from_column_major_slice(&self.x[..width * filled], width, filled);
                multiply_lower(
                    self.sums.a.as_mut(),
                    Accum::Add,
                    xt,
                    xt.transpose(),
                    1.0,
                    self.par,
                );
                xt
            }
        };
        if by_row {
            self.sums.b += block_b;
        } else {
            for (k, row) in rows.iter().enumerate() {
                let root = row.weight.sqrt();
                row.targets
                    .iter()
                    .enumerate()
                    .for_each(|(output, y)| self.y[(k, output)] = y * root);
            }
            let y = self.y.as_ref().subrows(0, filled);
            multiply(self.sums.b.as_mut(), Accum::Add, xt, y, 1.0, self.par);
        }
    }

    /// Adds one sparse row to A by its pairs of non-zeros.
    fn add_sparse(&mut self, row: RowView<'_>) {
        self.sparse_rows = true;
        let first = self.basis.intercept as usize;
        self.entries.clear();
        self.entries.extend((0..first).map(|j| (j, 1.0)));
        row.features.each(|j, x| {
            self.entries
                .push((first + j, x * self.basis.inverse_scale(j)))
        });
        for (at, &(j, x)) in self.entries.iter().enumerate() {
            self.sums.support[j] += (x != 0.0 && row.weight != 0.0) as u64;
            let scaled = row.weight * x;
            let column = self.sums.a.col_as_slice_mut(j);
            for &(i, other) in &self.entries[at..] {
                column[i] += scaled * other;
            }
            for (output, target) in row.targets.iter().enumerate() {
                self.sums.b[(j, output)] += scaled * target;
            }
        }
    }

    /// Adds the sums of another stretch.
    fn absorb(&mut self, other: &Self) {
        self.sums.a += &other.sums.a;
        self.sums.b += &other.sums.b;
        self.sums
            .support
            .iter_mut()
            .zip(&other.sums.support)
            .for_each(|(sum, count)| *sum += count);
        self.targets += other.targets;
        self.weighted |= other.weighted;
        self.sparse_rows |= other.sparse_rows;
        self.terms = self.terms.max(other.terms) + 1;
    }
}

pub(super) fn count_non_zeros(row: &[f64], counts: &mut [u64]) {
    widest(
        #[inline(always)]
        || {
            for (count, x) in counts.iter_mut().zip(row) {
                *count += (*x != 0.0) as u64;
            }
        },
    );
}
