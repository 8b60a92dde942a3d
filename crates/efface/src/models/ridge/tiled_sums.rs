//! XᵀWX of a wide dense table by several threads.
//!
//! The lower triangle is kept in tiles. While threads multiply a block of rows, each a tile at a
//! time, those that find no tile any more write the next block, so that none waits for the slowest
//! of them. The system hands out memory page by page: tiles and blocks get theirs from the threads
//! that write them first, and the matrices that the sums and their factor come to lie in are made
//! beside the first blocks.

use std::sync::{Mutex, PoisonError};

use faer::{Accum, Mat, MatMut, MatRef, Par};

use crate::linalg::{column_groups, copy_transposed, multiply, multiply_lower, share_work};
use crate::rows::RowView;

/// Lines and columns of a tile. Smaller ones are packed more often, larger ones leave threads
/// without work.
const TILE: usize = 256;

/// Rows that a thread writes at a time.
const ROWS_TOGETHER: usize = 64;

/// A part of the lower triangle, at its line and column.
struct SumTile {
    line: usize,
    column: usize,
    size: (usize, usize),
    /// None before the first block.
    values: Option<Mat<f64>>,
}

/// The sums under way.
pub(super) struct TiledSums {
    width: usize,
    tiles: Vec<SumTile>,
    /// The block whose product is missing, with its number of rows, and the one that is written
    /// next.
    written: (Vec<f64>, usize),
    next: Vec<f64>,
}

/// What there is to do while a block is multiplied.
enum BlockWork<'a, 'b> {
    Product(&'a mut SumTile),
    /// Rows of the next block, and which of its parts they are.
    Write(usize, &'a mut [f64], &'a [RowView<'b>]),
}

impl TiledSums {
    /// Blocks have up to so many rows.
    pub(super) fn new(width: usize, block: usize) -> Self {
        let mut tiles = Vec::new();
        for column in (0..width).step_by(TILE) {
            for line in (column..width).step_by(TILE) {
                let size = (TILE.min(width - line), TILE.min(width - column));
                tiles.push(SumTile {
                    line,
                    column,
                    size,
                    values: None,
                });
            }
        }
        // Tiles on the diagonal are half the work: they come last.
        tiles.sort_by_key(|tile| tile.line == tile.column);
        Self {
            width,
            tiles,
            written: (vec![0.0; width * block], 0),
            next: vec![0.0; width * block],
        }
    }

    /// Writes a block of rows, and multiplies the one before it. Returns what the parts of the
    /// block give.
    pub(super) fn add_block<T: Send>(
        &mut self,
        rows: &[RowView<'_>],
        par: Par,
        write: &(impl Fn(&mut [f64], &[RowView<'_>]) -> T + Sync),
    ) -> Vec<T> {
        let places = self.next[..self.width * rows.len()].chunks_mut(self.width * ROWS_TOGETHER);
        let parts = places.zip(rows.chunks(ROWS_TOGETHER)).enumerate();
        let writes = parts.map(|(part, (places, rows))| BlockWork::Write(part, places, rows));
        let (x, filled) = &self.written;
        let xt = MatRef::from_column_major_slice(&x[..self.width * filled], self.width, *filled);
        let products = self
            .tiles
            .iter_mut()
            .filter(|_| xt.ncols() > 0)
            .map(BlockWork::Product);
        let found = Mutex::new(Vec::new());
        share_work(products.chain(writes).collect(), par, |work| match work {
            BlockWork::Product(tile) => tile.add(xt),
            BlockWork::Write(part, places, rows) => {
                let made = write(places, rows);
                found
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push((part, made));
            }
        });
        std::mem::swap(&mut self.written.0, &mut self.next);
        self.written.1 = rows.len();
        // In the order of the rows, whoever was first.
        let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.sort_by_key(|(part, _)| *part);
        found.into_iter().map(|(_, made)| made).collect()
    }

    /// The rows of the last block.
    pub(super) fn last_block(&self) -> MatRef<'_, f64> {
        let (x, filled) = &self.written;
        MatRef::from_column_major_slice(&x[..self.width * filled], self.width, *filled)
    }

    /// Multiplies the last block, and writes both triangles of all sums into `a`.
    pub(super) fn finish(mut self, mut a: MatMut<'_, f64>, par: Par) {
        self.add_block(&[], par, &|_, _| ());
        let tiles = &self.tiles;
        share_work(
            column_groups(a.as_mut(), TILE),
            par,
            |(first, mut group)| {
                for tile in tiles {
                    let Some(values) = &tile.values else { continue };
                    if tile.column == first {
                        let mut place = group.as_mut().subrows_mut(tile.line, tile.size.0);
                        place.copy_from(values);
                        if tile.line == first {
                            crate::linalg::mirror_lower(place);
                        }
                    } else if tile.line == first {
                        copy_transposed(
                            group.as_mut().subrows_mut(tile.column, tile.size.1),
                            values.as_ref(),
                        );
                    }
                }
            },
        );
    }
}

impl SumTile {
    fn add(&mut self, xt: MatRef<'_, f64>) {
        let (lines, columns) = self.size;
        let values = self
            .values
            .get_or_insert_with(|| Mat::zeros(lines, columns));
        let own = xt.subrows(self.line, lines);
        if self.line == self.column {
            multiply_lower(
                values.as_mut(),
                Accum::Add,
                own,
                own.transpose(),
                1.0,
                Par::Seq,
            );
        } else {
            let other = xt.subrows(self.column, columns).transpose();
            multiply(values.as_mut(), Accum::Add, own, other, 1.0, Par::Seq);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::linalg::{norm, par};
    use crate::models::ridge::gather::UnfactoredSums;
    use crate::{Claim, Dense, Fit, Form, Ridge, Rows};

    #[test]
    fn tiles_make_the_sums_that_one_thread_makes() {
        let (width, count) = (1030, 2300);
        let entry = |i: usize| {
            if i % 7 == 3 {
                0.0
            } else {
                ((i * 31 + 5) as f64 * 0.37).sin()
            }
        };
        for outputs in [1, 6] {
            let x: Vec<f64> = (0..width * count).map(entry).collect();
            let y: Vec<f64> = (0..count * outputs).map(|i| entry(i + 2)).collect();
            let rows = Rows::new(Dense::new(x, width).unwrap(), y, outputs).unwrap();
            let basis = Ridge::default().basis(&rows);
            let penalty = vec![0.5; basis.width()];
            let gather =
                |threads| UnfactoredSums::gather(&rows, &basis, &penalty, par(threads)).unwrap();
            let one = gather(1).sums;
            let several = gather(3);
            assert_eq!(several.room.map(|room| room.nrows()), Some(basis.width()));
            let tiled = several.sums;
            assert!((&one.a - &tiled.a).norm_max() < 1e-12 * norm(&one.a));
            assert!((&one.b - &tiled.b).norm_max() < 1e-12 * norm(&one.b));
            assert_eq!(tiled.a, tiled.a.transpose().to_owned());
            assert_eq!(one.support, tiled.support);
            assert_eq!(
                (one.charge, one.target_spread),
                (tiled.charge, tiled.target_spread)
            );
            // Which thread did what leaves no trace.
            let again = gather(3).sums;
            assert_eq!((again.a, again.b), (tiled.a, tiled.b));
        }
    }

    #[test]
    fn a_fit_by_several_threads_is_that_of_one() {
        let (width, count) = (1030, 1500);
        let entry = |i: usize| ((i * i % 1009) as f64 * 0.37).sin();
        let x: Vec<f64> = (0..width * count).map(entry).collect();
        let y: Vec<f64> = (0..count).map(|i| entry(i + 2)).collect();
        let rows = Rows::new(Dense::new(x, width).unwrap(), y, 1).unwrap();
        let fit = |threads| {
            Ridge::new(1.0)
                .form(Form::Factor)
                .threads(threads)
                .fit(&rows)
                .unwrap()
        };
        let (one, several) = (fit(1), fit(4));
        let bounds = [
            one.evidence("fit", Claim::Exact),
            several.evidence("fit", Claim::Exact),
        ];
        assert!(
            bounds
                .iter()
                .all(|evidence| evidence.relative_bound <= 1e-9)
        );
        let apart = one.basis.caller_norm(&(&one.theta - &several.theta));
        assert!(apart <= (bounds[0].bound + bounds[1].bound), "{apart:e}");
    }
}
