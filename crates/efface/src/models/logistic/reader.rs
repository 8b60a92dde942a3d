//! Rows one at a time, for the passes over all of them.

use faer::Mat;

use super::pass::PassFrame;
use super::sample::WeightedRow;
use crate::linalg::{add_scaled, dot, widest};
use crate::rows::RowRef;

/// One row at a time: where it lies, as its non-zeros, or written out. In the caller's units where
/// that can be made up for afterwards, so that dense rows need not be copied.
pub(super) struct PassReader<'f, 'r> {
    frame: PassFrame<'f>,
    raw: bool,
    constant: f64,
    pub(super) kind: RowPlace<'r>,
    pub(super) buffer: Vec<f64>,
    pub(super) entries: Vec<(usize, f64)>,
}

pub(super) enum RowPlace<'r> {
    /// In the buffer, constant included.
    Written,
    /// Among the entries, constant included.
    Thin,
    /// The features where they lie.
    Lying(&'r [f64]),
}

impl<'f, 'r> PassReader<'f, 'r> {
    /// Inner coordinates.
    pub(super) fn new(frame: PassFrame<'f>) -> Self {
        let buffer = vec![0.0; frame.basis.width()];
        Self {
            frame,
            raw: false,
            constant: 0.0,
            kind: RowPlace::Written,
            buffer,
            entries: Vec::new(),
        }
    }

    /// The caller's units where features keep their origin; inner coordinates otherwise.
    pub(super) fn raw(frame: PassFrame<'f>) -> Self {
        Self {
            raw: frame.basis.is_unshifted(),
            ..Self::new(frame)
        }
    }

    /// A vector to multiply rows with, in the units that this reader gives them.
    pub(super) fn against(&self, vector: &[f64]) -> Vec<f64> {
        let mut vector = vector.to_vec();
        if self.raw {
            self.frame.basis.rescale(&mut vector);
        }
        vector
    }

    /// A sum of rows as this reader gives them, in inner coordinates.
    pub(super) fn inner(&self, sum: &mut [f64]) {
        if self.raw {
            self.frame.basis.rescale(sum);
        }
    }

    pub(super) fn read(&mut self, member: &WeightedRow<'r>) {
        self.constant = if self.frame.basis.intercept {
            member.scale
        } else {
            0.0
        };
        if self.frame.is_thin(member.features) {
            self.frame.entries(member, self.raw, &mut self.entries);
            self.kind = RowPlace::Thin;
        } else if let (true, RowRef::Dense64(x), true) =
            (self.raw, member.features, member.scale == 1.0)
        {
            self.kind = RowPlace::Lying(x);
        } else {
            let mut buffer = std::mem::take(&mut self.buffer);
            self.write(member, &mut buffer);
            self.buffer = buffer;
            self.kind = RowPlace::Written;
        }
    }

    /// Writes a row that is not thin, constant included, in the units of this reader.
    pub(super) fn write(&self, member: &WeightedRow<'r>, out: &mut [f64]) {
        if !self.raw {
            return self.frame.write(member, out);
        }
        let first = self.frame.basis.intercept as usize;
        out[..first].fill(member.scale);
        match member.features {
            RowRef::Dense64(x) if member.scale == 1.0 => out[first..].copy_from_slice(x),
            features => {
                out[first..].fill(0.0);
                features.add_to(member.scale, &mut out[first..]);
            }
        }
    }

    pub(super) fn dot(&self, v: &[f64]) -> f64 {
        match self.kind {
            RowPlace::Thin => self.entries.iter().map(|&(j, x)| x * v[j]).sum(),
            RowPlace::Written => dot(&self.buffer, v),
            RowPlace::Lying(x) if self.frame.basis.intercept => v[0] + dot(x, &v[1..]),
            RowPlace::Lying(x) => dot(x, v),
        }
    }

    pub(super) fn add_to(&self, scale: f64, out: &mut [f64]) {
        match self.kind {
            RowPlace::Thin => self.entries.iter().for_each(|&(j, x)| out[j] += scale * x),
            RowPlace::Written => add_scaled(out, scale, &self.buffer),
            RowPlace::Lying(x) if self.frame.basis.intercept => {
                out[0] += scale;
                add_scaled(&mut out[1..], scale, x);
            }
            RowPlace::Lying(x) => add_scaled(out, scale, x),
        }
    }

    /// Calls `see` with every entry that may not be zero.
    pub(super) fn each(&self, mut see: impl FnMut(usize, f64)) {
        match self.kind {
            RowPlace::Thin => self.entries.iter().for_each(|&(j, x)| see(j, x)),
            RowPlace::Written => self.buffer.iter().enumerate().for_each(|(j, x)| see(j, *x)),
            RowPlace::Lying(x) => {
                let first = self.frame.basis.intercept as usize;
                (0..first).for_each(|j| see(j, self.constant));
                x.iter().enumerate().for_each(|(j, x)| see(first + j, *x));
            }
        }
    }

    /// `out += scale · x²`, entry by entry.
    pub(super) fn add_squares(&self, scale: f64, out: &mut [f64]) {
        match self.kind {
            RowPlace::Written => widest(
                #[inline(always)]
                || {
                    out.iter_mut()
                        .zip(&self.buffer)
                        .for_each(|(sum, x)| *sum += scale * x * x)
                },
            ),
            _ => self.each(|j, x| out[j] += scale * x * x),
        }
    }

    pub(super) fn square(&self) -> f64 {
        match self.kind {
            RowPlace::Thin => self.entries.iter().map(|(_, x)| x * x).sum(),
            RowPlace::Written => dot(&self.buffer, &self.buffer),
            RowPlace::Lying(x) => self.constant * self.constant + dot(x, x),
        }
    }

    pub(super) fn scores(&self, vectors: &[Vec<f64>], out: &mut [f64]) {
        for (z, vector) in out.iter_mut().zip(vectors) {
            *z = self.dot(vector);
        }
    }

    pub(super) fn vectors(&self, theta: &Mat<f64>) -> Vec<Vec<f64>> {
        (0..theta.ncols())
            .map(|c| self.against(theta.col_as_slice(c)))
            .collect()
    }
}
