//! The sums of all rows where another device multiplies them: rows are written into its buffer,
//! targets behind features, so that one product of a block with itself holds the block's parts of A
//! and b.
//!
//! The device rounds as the processor does, once a term, in whatever order: its sums are charged by
//! the number of their terms, as all others are.

use faer::Par;

use super::Basis;
use super::gather::{ShareOfRows, count_non_zeros};
use super::sums::RidgeSums;
use crate::error::Result;
use crate::gram::{GramSum, SummedGram};
use crate::rows::{RowStore, RowView, Rows};

impl RidgeSums {
    /// The sums without a penalty, if the rows have somebody who multiplies them; and how many
    /// terms an entry has, and Σwy². Sparse rows are added by their pairs of non-zeros, which is
    /// less work than any product.
    pub(super) fn by_device(
        rows: &Rows,
        basis: &Basis,
        par: Par,
    ) -> Result<Option<(RidgeSums, usize, f64)>> {
        let engine = rows.gram_engine().filter(|_| !rows.is_sparse());
        let columns = basis.width() + rows.outputs();
        let Some(gram) = engine
            .map(|engine| engine.begin(columns))
            .transpose()?
            .flatten()
        else {
            return Ok(None);
        };
        let mut sweep = DeviceSweep {
            basis,
            outputs: rows.outputs(),
            par,
            gram,
            support: vec![0; basis.width()],
            targets: 0.0,
        };
        let block = sweep.gram.block();
        let mut waiting: Vec<RowView<'_>> = Vec::with_capacity(block.min(rows.len()));
        for row in rows.iter() {
            waiting.push(row);
            if waiting.len() == block {
                sweep.add(&waiting)?;
                waiting.clear();
                if let Some(stop) = rows.stop() {
                    stop.go_on()?;
                    stop.note_part(block as f64 / rows.len() as f64);
                }
            }
        }
        if !waiting.is_empty() {
            sweep.add(&waiting)?;
        }
        sweep.finish().map(Some)
    }
}

struct DeviceSweep<'a> {
    basis: &'a Basis,
    outputs: usize,
    par: Par,
    gram: Box<dyn GramSum>,
    support: Vec<u64>,
    /// Σwy².
    targets: f64,
}

impl DeviceSweep<'_> {
    /// Writes rows and their targets into the buffer, each thread a part of them, and has them
    /// multiplied.
    fn add(&mut self, rows: &[RowView<'_>]) -> Result<()> {
        let basis = self.basis;
        let width = basis.width();
        let columns = width + self.outputs;
        let write = |places: &mut [f64], rows: &[RowView<'_>]| {
            let mut support = vec![0u64; width];
            let mut targets = 0.0;
            // The buffer may be slow to read: a row is made here, looked at, and then copied.
            let mut line = vec![0.0; columns];
            for (place, row) in places.chunks_exact_mut(columns).zip(rows) {
                let root = row.weight.sqrt();
                basis.write(row.features, root, &mut line[..width]);
                count_non_zeros(&line[..width], &mut support);
                for (entry, target) in line[width..].iter_mut().zip(row.targets) {
                    *entry = target * root;
                    targets += row.weight * target * target;
                }
                place.copy_from_slice(&line);
            }
            (support, targets)
        };
        let share = ShareOfRows {
            width: columns,
            rows,
            par: self.par,
        };
        let buffer = self.gram.buffer()?;
        for (support, targets) in share.write(&mut buffer[..columns * rows.len()], &write) {
            self.support
                .iter_mut()
                .zip(&support)
                .for_each(|(sum, count)| *sum += count);
            self.targets += targets;
        }
        self.gram.add(rows.len())
    }

    fn finish(self) -> Result<(RidgeSums, usize, f64)> {
        let SummedGram { values, terms } = self.gram.finish()?;
        let width = self.basis.width();
        let mut sums = RidgeSums::zero(width, self.outputs);
        for (j, column) in values
            .chunks_exact(width + self.outputs)
            .take(width)
            .enumerate()
        {
            sums.a.col_as_slice_mut(j)[j..].copy_from_slice(&column[j..width]);
            column[width..]
                .iter()
                .enumerate()
                .for_each(|(output, sum)| sums.b[(j, output)] = *sum);
        }
        sums.support = self.support;
        Ok((sums, terms, self.targets))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::error::Error;
    use crate::gram::{DeviceFactor, GramEngine};
    use crate::models::Ridge;
    use crate::rows::{Csr, Dense};
    use crate::synthetic::LinearProblem;
    use crate::traits::Fit;

    /// A device that multiplies term by term, and that may have no room or fail.
    #[derive(Debug, Default)]
    struct PlainDevice {
        blocks: Arc<AtomicUsize>,
        factors: Arc<AtomicUsize>,
        is_full: bool,
        fails: bool,
    }

    struct PlainSum {
        blocks: Arc<AtomicUsize>,
        fails: bool,
        width: usize,
        buffer: Vec<f64>,
        sum: Vec<f64>,
    }

    const BLOCK: usize = 100;

    impl GramEngine for PlainDevice {
        fn begin(&self, width: usize) -> Result<Option<Box<dyn GramSum>>> {
            let sum = PlainSum {
                blocks: self.blocks.clone(),
                fails: self.fails,
                width,
                buffer: vec![f64::NAN; width * BLOCK],
                sum: vec![0.0; width * width],
            };
            Ok((!self.is_full).then(|| Box::new(sum) as Box<dyn GramSum>))
        }

        fn factor(&self, columns: &mut [&mut [f64]]) -> Result<DeviceFactor> {
            self.factors.fetch_add(1, Ordering::Relaxed);
            for j in 0..columns.len() {
                let (before, rest) = columns.split_at_mut(j);
                for i in j..rest[0].len() {
                    rest[0][i] -= before
                        .iter()
                        .map(|column| column[i] * column[j])
                        .sum::<f64>();
                }
                let pivot = rest[0][j];
                if pivot <= 0.0 {
                    return Ok(DeviceFactor::NotPositive(j));
                }
                rest[0][j..]
                    .iter_mut()
                    .for_each(|entry| *entry /= pivot.sqrt());
            }
            Ok(DeviceFactor::Factored)
        }
    }

    impl GramSum for PlainSum {
        fn block(&self) -> usize {
            BLOCK
        }

        fn buffer(&mut self) -> Result<&mut [f64]> {
            Ok(&mut self.buffer)
        }

        fn add(&mut self, rows: usize) -> Result<()> {
            if self.fails {
                return Err(Error::Device("unplugged".into()));
            }
            self.blocks.fetch_add(1, Ordering::Relaxed);
            let mut product = vec![0.0; self.sum.len()];
            for row in self.buffer.chunks_exact(self.width).take(rows) {
                for j in 0..self.width {
                    for i in j..self.width {
                        product[j * self.width + i] += row[i] * row[j];
                    }
                }
            }
            self.sum
                .iter_mut()
                .zip(product)
                .for_each(|(sum, more)| *sum += more);
            Ok(())
        }

        fn finish(self: Box<Self>) -> Result<SummedGram> {
            let terms = BLOCK + self.blocks.load(Ordering::Relaxed);
            Ok(SummedGram {
                values: self.sum,
                terms,
            })
        }
    }

    fn rows_of(count: usize) -> Rows {
        let problem = LinearProblem {
            rows: count,
            width: 6,
            seed: 4,
        }
        .generate();
        let y = problem.y.iter().flat_map(|y| [*y, 2.0 - y]).collect();
        let weights = (0..count).map(|i| f64::from((i % 4) as u8)).collect();
        let x = problem
            .x
            .iter()
            .enumerate()
            .map(|(at, x)| x + [0.0, 1e4][at % 2])
            .collect();
        Rows::new(Dense::new(x, 6).unwrap(), y, 2)
            .unwrap()
            .weighted(weights)
            .unwrap()
    }

    #[test]
    fn a_model_of_a_device_is_the_model_of_the_processor() {
        for (intercept, threads) in [(true, 1), (true, 3), (false, 2)] {
            let rows = rows_of(250);
            let settings = Ridge::new(0.3).intercept(intercept).threads(threads);
            let device = PlainDevice::default();
            let blocks = device.blocks.clone();
            let factors = device.factors.clone();
            let engine: Arc<dyn GramEngine> = Arc::new(device);
            let found = settings.fit(&rows.clone().multiplied_by(&engine)).unwrap();
            assert_eq!(
                blocks.load(Ordering::Relaxed),
                3,
                "two whole blocks and a rest"
            );
            assert!(factors.load(Ordering::Relaxed) > 0);
            let truth = settings.fit(&rows).unwrap();
            let (found_bound, bound) = (
                found.evidence_at_optimum().bound,
                truth.evidence_at_optimum().bound,
            );
            let (a, p) = found.parameters();
            let (b, q) = truth.parameters();
            let apart =
                (a - b).norm_l2() + p.iter().zip(q).map(|(p, q)| (p - q).abs()).sum::<f64>();
            assert!(
                apart <= 2.0 * (found_bound + bound),
                "{apart:e} {found_bound:e} {bound:e}"
            );
            assert!(found.evidence_at_optimum().relative_bound < 1e-10);
        }
    }

    #[test]
    fn sums_are_charged_by_their_terms() {
        let rows = rows_of(250);
        let basis = Ridge::new(0.3).basis(&rows);
        let nothing = vec![0.0; basis.width()];
        let engine: Arc<dyn GramEngine> = Arc::new(PlainDevice::default());
        let sums = RidgeSums::gather(
            &rows.clone().multiplied_by(&engine),
            &basis,
            &nothing,
            Par::Seq,
        )
        .unwrap();
        assert_eq!(sums.charge, crate::linalg::UNIT * (103.0 + 12.0));
        let truth = RidgeSums::gather(&rows, &basis, &nothing, Par::Seq).unwrap();
        assert_eq!(sums.support, truth.support);
        assert!((sums.target_spread - truth.target_spread).abs() < 1e-9 * truth.target_spread);
        for j in 0..basis.width() {
            for i in 0..basis.width() {
                let allowed = (sums.charge + truth.charge) * sums.spread[i] * sums.spread[j];
                assert!(
                    (sums.a[(i, j)] - truth.a[(i, j)]).abs() <= allowed,
                    "{i} {j}"
                );
            }
        }
    }

    #[test]
    fn a_device_without_room_leaves_the_work_to_the_processor_and_one_that_fails_says_so() {
        let rows = rows_of(250);
        let full: Arc<dyn GramEngine> = Arc::new(PlainDevice {
            is_full: true,
            ..Default::default()
        });
        let model = Ridge::new(0.3)
            .fit(&rows.clone().multiplied_by(&full))
            .unwrap();
        let apart = model.parameters().0 - Ridge::new(0.3).fit(&rows).unwrap().parameters().0;
        assert!(apart.norm_max() < 1e-12);
        let broken: Arc<dyn GramEngine> = Arc::new(PlainDevice {
            fails: true,
            ..Default::default()
        });
        let error = Ridge::new(0.3)
            .fit(&rows.multiplied_by(&broken))
            .unwrap_err();
        assert!(
            error
                .to_string()
                .contains("unplugged; fit on the processor"),
            "{error}"
        );
    }

    #[test]
    fn a_matrix_that_has_no_factor_is_found_there_too() {
        let x = vec![1.0, 1.0, 2.0, 2.0, 5.0, 5.0];
        let rows = Rows::new(Dense::new(x, 2).unwrap(), vec![1.0, 2.0, 3.0], 1).unwrap();
        let engine: Arc<dyn GramEngine> = Arc::new(PlainDevice::default());
        let error = Ridge::new(0.0)
            .fit(&rows.multiplied_by(&engine))
            .unwrap_err();
        assert!(matches!(error, Error::Singular { .. }), "{error}");
    }

    #[test]
    fn sparse_rows_stay_with_the_processor() {
        let mut table = Csr::<f64>::new(3);
        (0..30).for_each(|i| table.push(&[(i % 3, f64::from(i % 4))]).unwrap());
        let rows = Rows::new(table, (0..30).map(|i| f64::from(i % 7)).collect(), 1).unwrap();
        let device = PlainDevice::default();
        let blocks = device.blocks.clone();
        let engine: Arc<dyn GramEngine> = Arc::new(device);
        Ridge::new(0.1).fit(&rows.multiplied_by(&engine)).unwrap();
        assert_eq!(blocks.load(Ordering::Relaxed), 0);
    }
}
