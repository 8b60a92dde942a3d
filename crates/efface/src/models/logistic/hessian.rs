//! Sums of weighted outer products: Hessians and the Gram matrix.

use faer::{Accum, Mat, Par};

use super::pass::{BLOCK, PassFrame};
use super::reader::{PassReader, RowPlace};
use crate::linalg::{mirror_lower, multiply_lower};

/// Σ v_ab x xᵀ in blocks of outputs × outputs; only blocks on and below the diagonal, and of each its lower triangle, are
/// summed: v_ab x xᵀ is symmetric in itself.
pub(super) struct HessianSums {
    width: usize,
    outputs: usize,
    sums: Mat<f64>,
    /// Dense rows waiting, one column each, and their v_ab.
    waiting: Mat<f64>,
    values: Vec<f64>,
    count: usize,
    scaled: Mat<f64>,
}

impl HessianSums {
    pub(super) fn new(frame: PassFrame<'_>) -> Self {
        let width = frame.basis.width();
        let outputs = frame.outputs;
        Self {
            width,
            outputs,
            sums: Mat::zeros(width * outputs, width * outputs),
            waiting: Mat::zeros(0, 0),
            values: Vec::new(),
            count: 0,
            scaled: Mat::zeros(0, 0),
        }
    }

    pub(super) fn add(&mut self, reader: &PassReader<'_, '_>, value: impl Fn(usize, usize) -> f64) {
        if let RowPlace::Thin = reader.kind {
            for b in 0..self.outputs {
                for a in b..self.outputs {
                    self.add_thin(&reader.entries, value(a, b), a, b);
                }
            }
            return;
        }
        if self.waiting.ncols() == 0 {
            self.waiting = Mat::zeros(self.width, BLOCK);
            self.scaled = Mat::zeros(self.width, BLOCK);
        }
        self.waiting.col_as_slice_mut(self.count).copy_from_slice(&reader.buffer);
        for b in 0..self.outputs {
            for a in b..self.outputs {
                self.values.push(value(a, b));
            }
        }
        self.count += 1;
        if self.count == BLOCK {
            self.multiply();
        }
    }

    fn add_thin(&mut self, entries: &[(usize, f64)], value: f64, a: usize, b: usize) {
        for (at, &(j, x)) in entries.iter().enumerate() {
            let scaled = value * x;
            let column = &mut self.sums.col_as_slice_mut(b * self.width + j)[a * self.width..];
            for &(i, other) in &entries[at..] {
                column[i] += scaled * other;
            }
        }
    }

    fn multiply(&mut self) {
        let count = self.count;
        let width = self.width;
        if count == 0 {
            return;
        }
        let pairs = self.outputs * (self.outputs + 1) / 2;
        let mut pair = 0;
        for b in 0..self.outputs {
            for a in b..self.outputs {
                for row in 0..count {
                    let value = self.values[row * pairs + pair];
                    let from = self.waiting.col_as_slice(row);
                    let to = self.scaled.col_as_slice_mut(row);
                    to.iter_mut().zip(from).for_each(|(t, f)| *t = value * f);
                }
                multiply_lower(
                    self.sums.as_mut().submatrix_mut(a * width, b * width, width, width),
                    Accum::Add,
                    self.scaled.as_ref().subcols(0, count),
                    self.waiting.as_ref().subcols(0, count).transpose(),
                    1.0,
                    Par::Seq,
                );
                pair += 1;
            }
        }
        self.values.clear();
        self.count = 0;
    }

    pub(super) fn finish(mut self) -> Mat<f64> {
        self.multiply();
        // A block off the diagonal is needed whole.
        for b in 0..self.outputs {
            for a in b + 1..self.outputs {
                let row = a * self.width;
                let column = b * self.width;
                mirror_lower(self.sums.as_mut().submatrix_mut(row, column, self.width, self.width));
            }
        }
        self.sums
    }
}
