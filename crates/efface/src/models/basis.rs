//! The coordinates in which the algebra is done.
//!
//! Column 0 is the intercept's column of ones, if there is one. A dense feature x_j enters as (x_j
//! − c_j)/s_j: s_j is the power of two nearest its spread, so the division is exact and the
//! condition of A no longer depends on the units of the columns; c_j is zero unless the mean dwarfs
//! the spread (years, longitudes, time stamps), where sums of raw squares would cancel, and is then
//! the mean rounded to a multiple of s_j. A column so small that the penalty outweighs all its rows
//! is left small (s_j ≥ √(λ/n)): blown up to the size of the others it would carry a penalty that
//! no sum can hold beside them. Neither changes the model: the penalty is carried over as λ/s_j²,
//! and the parameters are handed out in the caller's own coordinates. A model that is fitted on
//! sparse features does not shift them, because that would fill them, and scales only those that
//! are large.

use faer::Mat;

use crate::features::FeatureRescale;
use crate::linalg::{DoubleWord, two_sum, widest};
use crate::rows::{RowRef, RowStore, Rows};

/// A mean of this many spreads is shifted away.
const FAR: f64 = 4.0;
/// A sparse column of this root mean square or less is not scaled.
const LARGE: f64 = 8.0;
/// As many rows are looked at, or up to twice as many.
const SAMPLE: usize = 2048;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Basis {
    pub(crate) features: usize,
    pub(crate) intercept: bool,
    /// c_j and 1/s_j; None stands for 0 and 1 throughout.
    transform: Option<(Vec<f64>, Vec<f64>)>,
    /// Whether some c_j is not 0.
    shifted: bool,
    /// An upper bound on how much a distance can grow on the way to the caller's coordinates.
    pub(crate) stretch: f64,
}

/// How an entry of every written row changes: v becomes factor·v + shift.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryMove {
    pub(crate) factor: f64,
    pub(crate) shift: f64,
    /// The size of what the shift is a difference of: so much of it is rounded.
    pub(crate) reach: f64,
}

impl EntryMove {
    const NONE: Self = Self {
        factor: 1.0,
        shift: 0.0,
        reach: 0.0,
    };
}

impl Basis {
    pub(crate) fn plain(features: usize, intercept: bool) -> Self {
        Self {
            features,
            intercept,
            transform: None,
            shifted: false,
            stretch: 1.0,
        }
    }

    fn transformed(features: usize, intercept: bool, c: Vec<f64>, s: Vec<f64>) -> Self {
        if c.iter().all(|c| *c == 0.0) && s.iter().all(|s| *s == 1.0) {
            return Self::plain(features, intercept);
        }
        let scale = s.iter().fold(0.0f64, |m, s| m.max(*s));
        let shift: f64 = c.iter().zip(&s).map(|(c, s)| (c * s).powi(2)).sum();
        let stretch = (scale * scale + shift + intercept as u8 as f64)
            .sqrt()
            .max(1.0);
        let shifted = c.iter().any(|c| *c != 0.0);
        Self {
            features,
            intercept,
            transform: Some((c, s)),
            shifted,
            stretch,
        }
    }

    /// Chooses c and s from a few thousand rows spread over all: any choice gives the same model, a
    /// rough one is enough.
    pub(crate) fn choose(rows: &Rows, features: usize, intercept: bool, lambda: f64) -> Self {
        if rows.is_sparse() {
            return Self::choose_sparse(rows, features, intercept);
        }
        let step = rows.len().div_ceil(SAMPLE).max(1);
        let sample = || rows.iter().step_by(step);
        let mut count = 0.0;
        // Moments about the first row: raw second moments would cancel exactly where the shift is
        // needed.
        let mut first: Vec<f64> = Vec::new();
        let mut sum = vec![0.0; features];
        let mut square = vec![0.0; features];
        for row in sample() {
            if first.is_empty() {
                first = vec![0.0; features];
                row.features.each(|j, x| first[j] = x);
            }
            count += 1.0;
            if let RowRef::Dense64(x) = row.features {
                widest(
                    #[inline(always)]
                    || {
                        let moments = sum.iter_mut().zip(square.iter_mut());
                        for ((sum, square), (x, first)) in moments.zip(x.iter().zip(&first)) {
                            let d = x - first;
                            *sum += d;
                            *square += d * d;
                        }
                    },
                );
                continue;
            }
            row.features.each(|j, x| {
                let d = x - first[j];
                sum[j] += d;
                square[j] += d * d;
            });
        }
        // Squares of very large and very small numbers are no numbers: those columns are measured
        // by their largest entry.
        let extreme =
            |square: f64, sum: f64| !square.is_finite() || (square < 1e-280 && sum != 0.0);
        let mut largest = vec![0.0f64; features];
        if square
            .iter()
            .zip(&sum)
            .any(|(square, sum)| extreme(*square, *sum))
        {
            for row in sample() {
                row.features
                    .each(|j, x| largest[j] = largest[j].max(0.5 * x.abs()));
            }
        }
        let least = (lambda / rows.len() as f64).sqrt();
        let scale = |size: f64| power_of_two(size.max(least));
        let mut origin = vec![0.0; features];
        let mut inverse_scale = vec![1.0; features];
        for j in 0..features {
            if extreme(square[j], sum[j]) {
                inverse_scale[j] = 1.0 / scale(largest[j]);
                continue;
            }
            let shift = sum[j] / count;
            let mean = first[j] + shift;
            let spread = (square[j] / count - shift * shift).max(0.0).sqrt();
            let (c, s) = centre(mean, spread, intercept, &scale);
            origin[j] = c;
            inverse_scale[j] = s;
        }
        Self::transformed(features, intercept, origin, inverse_scale)
    }

    /// Chooses c and s from the mean and the spread of every column over rows of this total weight.
    pub(crate) fn of_moments(
        columns: impl ExactSizeIterator<Item = (f64, f64)>,
        intercept: bool,
        lambda: f64,
        weight: f64,
    ) -> Self {
        let least = (lambda / weight).sqrt();
        let scale = |size: f64| power_of_two(size.max(least));
        let features = columns.len();
        let (origin, inverse_scale) = columns
            .map(|(mean, spread)| centre(mean, spread, intercept, &scale))
            .unzip();
        Self::transformed(features, intercept, origin, inverse_scale)
    }

    fn choose_sparse(rows: &Rows, features: usize, intercept: bool) -> Self {
        let mut square = vec![0.0; features];
        for row in rows.iter() {
            row.features.each(|j, x| square[j] += x * x);
        }
        let count = rows.len().max(1) as f64;
        // Counts and shares stay as they are; only columns in large units, such as incomes, are
        // brought down.
        let scale = |square: &f64| match (square / count).sqrt() {
            size if size > LARGE => 1.0 / power_of_two(size),
            _ => 1.0,
        };
        let inverse_scale: Vec<f64> = square.iter().map(scale).collect();
        Self::transformed(features, intercept, vec![0.0; features], inverse_scale)
    }

    /// As [`choose`](Self::choose), for a model that applies the shift without writing it into
    /// rows: sparse columns are centred too where they lie far from zero.
    pub(crate) fn choose_implicit(
        rows: &Rows,
        features: usize,
        intercept: bool,
        lambda: f64,
    ) -> Self {
        let plain = Self::choose(rows, features, intercept, lambda);
        if !rows.is_sparse() || !intercept {
            return plain;
        }
        let count = rows.len().max(1) as f64;
        let mut mean = vec![0.0; features];
        let mut present = vec![0.0; features];
        for row in rows.iter() {
            row.features.each(|j, x| {
                mean[j] += x / count;
                present[j] += 1.0;
            });
        }
        let mut square: Vec<f64> = mean
            .iter()
            .zip(&present)
            .map(|(mean, present)| (count - present) * mean * mean)
            .collect();
        for row in rows.iter() {
            row.features.each(|j, x| square[j] += (x - mean[j]).powi(2));
        }
        let (_, plain_scale) = plain.parts();
        let mut origin = vec![0.0; features];
        let mut inverse_scale = if plain_scale.is_empty() {
            vec![1.0; features]
        } else {
            plain_scale
        };
        for j in 0..features {
            let spread = (square[j] / count).sqrt();
            if spread.is_finite() && mean[j].abs() > FAR * spread && mean[j].abs() > LARGE {
                let (c, s) = centre(mean[j], spread, true, &power_of_two);
                origin[j] = c;
                inverse_scale[j] = s;
            }
        }
        Self::transformed(features, intercept, origin, inverse_scale)
    }

    /// Coordinates of their own kind for features that all change by a factor and an offset, and
    /// how the written entries of rows change with them; the constant's comes first. None where the
    /// new ones cannot be written.
    pub(crate) fn rescaled(&self, rescale: &[FeatureRescale]) -> Option<(Self, Vec<EntryMove>)> {
        let mut origins = Vec::with_capacity(self.features);
        let mut inverse_scales = Vec::with_capacity(self.features);
        let mut moves = vec![EntryMove::NONE; self.intercept as usize];
        for (j, change) in rescale.iter().enumerate() {
            let (c, s) = self
                .transform
                .as_ref()
                .map_or((0.0, 1.0), |(c, s)| (c[j], s[j]));
            if change.factor == 1.0 && change.offset == 0.0 {
                origins.push(c);
                inverse_scales.push(s);
                moves.push(EntryMove::NONE);
                continue;
            }
            // Powers of two stay such, so that what a row is written as is not rounded.
            let new_s = s / power_of_two(change.factor);
            let origin = change.factor * c + change.offset;
            let new_c = if c == 0.0 {
                0.0
            } else {
                (origin * new_s).round() / new_s
            };
            let found = EntryMove {
                factor: change.factor * (new_s / s),
                shift: (origin - new_c) * new_s,
                reach: ((change.factor * c).abs() + change.offset.abs() + new_c.abs()) * new_s,
            };
            let sound = [found.factor, found.shift, found.reach, new_c]
                .iter()
                .all(|value| value.is_finite());
            if !(sound && found.factor > 0.0 && new_s.is_finite() && new_s > 0.0) {
                return None;
            }
            origins.push(new_c);
            inverse_scales.push(new_s);
            moves.push(found);
        }
        let is_possible = self.intercept || moves.iter().all(|change| change.shift == 0.0);
        let basis = Self::transformed(self.features, self.intercept, origins, inverse_scales);
        (is_possible && rescale.len() == self.features).then_some((basis, moves))
    }

    /// 1/s_j.
    pub(crate) fn inverse_scale(&self, feature: usize) -> f64 {
        self.transform.as_ref().map_or(1.0, |(_, s)| s[feature])
    }

    /// c_j.
    pub(crate) fn origin(&self, feature: usize) -> f64 {
        self.transform.as_ref().map_or(0.0, |(c, _)| c[feature])
    }

    /// c_j/s_j, which is exact.
    pub(crate) fn scaled_origin(&self, feature: usize) -> f64 {
        self.transform
            .as_ref()
            .map_or(0.0, |(c, s)| c[feature] * s[feature])
    }

    /// Turns a vector of inner parameters into one of the caller's, or by `transpose` a gradient of
    /// the caller's into an inner one. The constant comes first.
    pub(crate) fn map_vector(&self, vector: &mut [f64], transpose: bool) {
        let Some((c, s)) = &self.transform else {
            return;
        };
        let first = self.intercept as usize;
        let (constant, rest) = vector.split_at_mut(first);
        for ((value, c), s) in rest.iter_mut().zip(c).zip(s) {
            match (constant.first_mut(), transpose) {
                (Some(constant), true) => *value = (*value - c * *constant) * s,
                (Some(constant), false) => {
                    *value *= s;
                    *constant -= c * *value;
                }
                (None, _) => *value *= s,
            }
        }
    }

    /// Whether every feature keeps its origin, so that inner coordinates are the caller's times a
    /// factor each.
    pub(crate) fn is_unshifted(&self) -> bool {
        !self.shifted
    }

    /// Multiplies one inner vector by 1/s_j, in place: from parameters to what a caller's row is
    /// multiplied with, or from a sum of callers' rows to a sum of inner ones. Right only where
    /// features keep their origin.
    pub(crate) fn rescale(&self, vector: &mut [f64]) {
        if let Some((_, s)) = &self.transform {
            let first = self.intercept as usize;
            vector[first..]
                .iter_mut()
                .zip(s)
                .for_each(|(value, s)| *value *= s);
        }
    }

    /// The number of parameters per output.
    pub(crate) fn width(&self) -> usize {
        self.features + self.intercept as usize
    }

    /// Writes √w times the transformed row into `out`, which is as long as `width`.
    pub(crate) fn write(&self, row: RowRef<'_>, root_weight: f64, out: &mut [f64]) {
        let out = if self.intercept {
            out[0] = root_weight;
            &mut out[1..]
        } else {
            out
        };
        match (&self.transform, row) {
            (None, RowRef::Dense64(x)) if root_weight == 1.0 => out.copy_from_slice(x),
            (None, RowRef::Dense64(_) | RowRef::Dense32(_)) => {
                row.each(|j, x| out[j] = x * root_weight)
            }
            (None, _) => {
                out.fill(0.0);
                row.each(|j, x| out[j] = x * root_weight);
            }
            (Some((c, s)), RowRef::Dense64(x)) => widest(
                #[inline(always)]
                || {
                    for ((o, x), (c, s)) in out.iter_mut().zip(x).zip(c.iter().zip(s)) {
                        *o = (x - c) * s * root_weight;
                    }
                },
            ),
            (Some((c, s)), row) => {
                // A sparse row may join a model whose dense features were shifted: its zeros are
                // then shifted too.
                out.iter_mut()
                    .zip(c.iter().zip(s))
                    .for_each(|(o, (c, s))| *o = -c * s * root_weight);
                row.each(|j, x| out[j] = (x - c[j]) * s[j] * root_weight);
            }
        }
    }

    /// As [`write`](Self::write) without a weight, in two words: what a shift rounds away is in
    /// `low`.
    pub(crate) fn write_long(&self, row: RowRef<'_>, high: &mut [f64], low: &mut [f64]) {
        low.fill(0.0);
        self.write(row, 1.0, high);
        let Some((c, s)) = self.transform.as_ref().filter(|_| self.shifted) else {
            return;
        };
        let first = self.intercept as usize;
        // A zero that a sparse row does not mention is shifted without rounding.
        row.each(|j, x| {
            let (difference, rest) = two_sum(x, -c[j]);
            high[first + j] = difference * s[j];
            low[first + j] = rest * s[j];
        });
    }

    /// As [`write`](Self::write), for a sparse row of unshifted features, into zeros.
    pub(crate) fn scatter(&self, row: RowRef<'_>, root_weight: f64, out: &mut [f64]) {
        let first = self.intercept as usize;
        if self.intercept {
            out[0] = root_weight;
        }
        match &self.transform {
            None => row.each(|j, x| out[first + j] = x * root_weight),
            Some((_, s)) => row.each(|j, x| out[first + j] = x * s[j] * root_weight),
        }
    }

    /// The penalty of every column: λ/s_j², and 0 for the intercept.
    pub(crate) fn penalty(&self, lambda: f64) -> Vec<f64> {
        let mut penalty = vec![0.0; self.intercept as usize];
        match &self.transform {
            None => penalty.extend(std::iter::repeat_n(lambda, self.features)),
            Some((_, s)) => penalty.extend(s.iter().map(|s| lambda * s * s)),
        }
        penalty
    }

    /// Coefficients (features × outputs) and intercepts in the caller's coordinates.
    pub(crate) fn to_caller(&self, theta: &Mat<f64>) -> (Mat<f64>, Vec<f64>) {
        let first = self.intercept as usize;
        let mut coefficients = theta.as_ref().subrows(first, self.features).to_owned();
        let mut intercept = vec![0.0; theta.ncols()];
        for (output, b) in intercept.iter_mut().enumerate() {
            // Far-off origins cancel in this sum, so it is made in two words.
            let mut constant = DoubleWord::new(if self.intercept {
                theta[(0, output)]
            } else {
                0.0
            });
            if let Some((c, s)) = &self.transform {
                for j in 0..self.features {
                    coefficients[(j, output)] *= s[j];
                    constant = constant.plus_product(-c[j], coefficients[(j, output)]);
                }
            }
            *b = constant.value();
        }
        (coefficients, intercept)
    }

    /// The inverse of [`to_caller`](Self::to_caller).
    pub(crate) fn to_inner(&self, coefficients: &Mat<f64>, intercept: &[f64]) -> Mat<f64> {
        let first = self.intercept as usize;
        let mut theta = Mat::zeros(self.width(), coefficients.ncols());
        for output in 0..coefficients.ncols() {
            let mut b = intercept[output];
            for j in 0..self.features {
                let value = coefficients[(j, output)];
                theta[(first + j, output)] = match &self.transform {
                    None => value,
                    Some((c, s)) => {
                        b += c[j] * value;
                        value / s[j]
                    }
                };
            }
            if self.intercept {
                theta[(0, output)] = b;
            }
        }
        theta
    }

    /// The norm of parameters, or of a difference of parameters, in the caller's coordinates.
    pub(crate) fn caller_norm(&self, theta: &Mat<f64>) -> f64 {
        let Some((c, s)) = &self.transform else {
            return crate::linalg::norm(theta);
        };
        let mut square = 0.0;
        for output in 0..theta.ncols() {
            let column = theta.col_as_slice(output);
            let (constant, column) = if self.intercept {
                (column[0], &column[1..])
            } else {
                (0.0, column)
            };
            let mut sums = [0.0f64; 16];
            let mut shifts = [0.0f64; 16];
            for ((values, c), s) in column.chunks(16).zip(c.chunks(16)).zip(s.chunks(16)) {
                for (lane, ((value, c), s)) in values.iter().zip(c).zip(s).enumerate() {
                    let coefficient = value * s;
                    sums[lane] += coefficient * coefficient;
                    shifts[lane] += c * coefficient;
                }
            }
            square += sums.iter().sum::<f64>() + (constant - shifts.iter().sum::<f64>()).powi(2);
        }
        square.sqrt()
    }

    /// The most that rounding every inner parameter to f64 can move the caller's, in units of
    /// rounding: far-off origins make a large intercept out of small parameters.
    pub(crate) fn stored_size(&self, theta: &Mat<f64>) -> f64 {
        let Some((c, s)) = &self.transform else {
            return crate::linalg::norm(theta);
        };
        let first = self.intercept as usize;
        let mut square = 0.0;
        for output in 0..theta.ncols() {
            let column = theta.col_as_slice(output);
            let mut constant = if first == 1 { column[0].abs() } else { 0.0 };
            for ((value, c), s) in column[first..].iter().zip(c).zip(s) {
                let coefficient = (value * s).abs();
                square += coefficient * coefficient;
                constant += c.abs() * coefficient;
            }
            square += constant * constant;
        }
        square.sqrt()
    }

    /// c and 1/s, empty when there is no transform.
    pub(crate) fn parts(&self) -> (Vec<f64>, Vec<f64>) {
        self.transform.clone().unwrap_or_default()
    }

    /// The inverse of [`parts`](Self::parts); None if they cannot be such.
    pub(crate) fn from_parts(
        features: usize,
        intercept: bool,
        origin: Vec<f64>,
        inverse_scale: Vec<f64>,
    ) -> Option<Self> {
        if origin.is_empty() && inverse_scale.is_empty() {
            return Some(Self::plain(features, intercept));
        }
        let sound = origin.len() == features
            && inverse_scale.len() == features
            && origin.iter().all(|c| c.is_finite())
            && inverse_scale.iter().all(|s| s.is_finite() && *s > 0.0);
        sound.then(|| Self::transformed(features, intercept, origin, inverse_scale))
    }
}

/// c and 1/s of a column with this mean and spread.
fn centre(mean: f64, spread: f64, intercept: bool, scale: &dyn Fn(f64) -> f64) -> (f64, f64) {
    let noise = 1e-15 * mean.abs();
    if intercept && mean.abs() > FAR * spread {
        if spread <= noise {
            return (mean, 1.0);
        }
        let unit = scale(spread);
        return ((mean / unit).round() * unit, 1.0 / unit);
    }
    if spread > 0.0 || mean != 0.0 {
        return (0.0, 1.0 / scale(spread.hypot(mean)));
    }
    (0.0, 1.0)
}

pub(crate) fn power_of_two(value: f64) -> f64 {
    value.log2().round().clamp(-1000.0, 1000.0).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Dense;

    #[test]
    fn there_and_back() {
        let x = Dense::new(
            vec![1990.0, 3e-5, 7.0, 2005.0, -1e-5, 7.0, 2020.0, 0.0, 7.0],
            3,
        )
        .unwrap();
        let rows = Rows::new(x, vec![0.0; 3], 1).unwrap();
        let basis = Basis::choose(&rows, 3, true, 0.0);
        let theta = Mat::from_fn(4, 2, |i, j| 0.3 * i as f64 - j as f64);
        let (coefficients, intercept) = basis.to_caller(&theta);
        assert!((basis.to_inner(&coefficients, &intercept) - &theta).norm_max() < 1e-9);
        // A prediction is the same in both coordinates.
        let mut out = vec![0.0; 4];
        let row = rows.iter().next().unwrap().features;
        basis.write(row, 1.0, &mut out);
        let inside: f64 = (0..4).map(|i| out[i] * theta[(i, 0)]).sum();
        let outside = row.dot(coefficients.col_as_slice(0)) + intercept[0];
        assert!((inside - outside).abs() < 1e-9 * outside.abs().max(1.0));
        assert!(out[1].abs() < 4.0 && out[3] == 0.0);
    }
}
