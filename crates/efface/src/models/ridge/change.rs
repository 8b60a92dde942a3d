//! The one formula behind forget, learn and amend.
//!
//! For signed, weight-scaled rows X̂ (sign +1 joins, −1 leaves), A′ = A + X̂ᵀSX̂ and b′ = b +
//! X̂ᵀSŶ. With Ẑ = X̂A⁻¹ and residuals r̂ = Ŷ − X̂θ:
//!
//! ```text
//! E   = (S + X̂Ẑᵀ)⁻¹ r̂           k×c, one small solve      (forget only: −(I − H_D)⁻¹ r_D)
//! θ′  = θ + Ẑᵀ E                 exact
//! A′⁻¹ = A⁻¹ − Ẑᵀ (S + X̂Ẑᵀ)⁻¹ Ẑ
//! ```
//!
//! How exact it came out is known without another solve, in O(kd): see
//! [`RidgeChange::energy_added`].

use faer::linalg::solvers::Solve;
use faer::{Accum, Mat, Par};

use super::GatheredRows;
use super::bound::{CurvatureQuality, weighted_sum};
use super::sums::{ColumnPlaces, RidgeSums, SignedRows};
use super::waiting::{MetChanges, WaitingChanges};
use crate::linalg::{
    Cholesky, DoubleWord, UNIT, add_scaled, dot, long_add_scaled, long_dot, mirror_lower, multiply,
    multiply_lower, norm, operator_norm, transposed,
};
use crate::rows::RowId;

/// Up to so many rows, inner products one by one beat a general matrix product.
const FEW: usize = 6;

/// From so many rows on, going through the non-zeros of sparse rows beats a matrix product.
const MANY: usize = 24;

/// Up to this bound on ‖H‖, 1/(1 − ‖H‖) is near enough to ‖(I − H)⁻¹‖.
const SMALL_HAT: f64 = 0.3;

/// (S + X̂Ẑᵀ)⁻¹ and what it tells.
#[derive(Debug, Clone)]
pub(crate) struct ChangeCore {
    inverse: CoreInverse,
    /// At least the condition of S + X̂Ẑᵀ, that is, of I − H_D when all rows leave.
    pub(crate) condition: f64,
    /// The largest diagonal entry of H among the rows that leave.
    pub(crate) leverage: f64,
    /// tr H.
    trace: f64,
    /// At least ‖(S + X̂Ẑᵀ)⁻¹‖.
    pub(crate) norm: f64,
    /// S + X̂Ẑᵀ itself.
    pub(super) middle: Mat<f64>,
}

#[derive(Debug, Clone)]
enum CoreInverse {
    /// One row.
    Number(f64),
    /// All rows of one sign: the factor of ±(S + X̂Ẑᵀ), which is positive definite.
    Factor(Cholesky, f64),
    /// Rows of both signs.
    Dense(Mat<f64>),
}

impl ChangeCore {
    /// None when the matrix cannot be inverted in f64: a leverage of 1, or too near.
    pub(crate) fn new(xt: &Mat<f64>, zt: &Mat<f64>, signs: &[f64], par: Par) -> Option<Self> {
        Self::of(hat_block(xt, None, zt, par), signs, par)
    }

    /// The core of these rows, the last of which are new: `lines` are those of X̂Ẑᵀ that belong to
    /// them, and what the others are to each other is taken from the core before. None as for
    /// [`new`](Self::new).
    pub(crate) fn extended(
        before: Option<&Self>,
        lines: &Mat<f64>,
        signs: &[f64],
        par: Par,
    ) -> Option<Self> {
        let mut hat = Mat::zeros(signs.len(), signs.len());
        let known = signs.len() - lines.nrows();
        if let Some(before) = before {
            for (j, sign) in signs.iter().enumerate().take(known) {
                let column = &mut hat.col_as_slice_mut(j)[j..known];
                column.copy_from_slice(&before.middle.col_as_slice(j)[j..]);
                column[0] -= sign;
            }
        }
        hat.as_mut()
            .subrows_mut(known, lines.nrows())
            .copy_from(lines);
        Self::of(hat, signs, par)
    }

    /// Makes the core from the lower triangle of X̂Ẑᵀ. None when the matrix cannot be inverted.
    fn of(mut middle: Mat<f64>, signs: &[f64], par: Par) -> Option<Self> {
        let k = signs.len();
        let trace = (0..k).map(|i| middle[(i, i)]).sum();
        let leverage = (0..k)
            .filter(|&i| signs[i] < 0.0)
            .map(|i| middle[(i, i)])
            .fold(0.0, f64::max);
        mirror_lower(middle.as_mut());
        // ‖H‖ is at most its largest column sum.
        let hat = largest_column_sum(&middle);
        for j in 0..k {
            middle[(j, j)] += signs[j];
        }
        let leave = signs.iter().all(|s| *s < 0.0);
        let (inverse, norm) = if let [sign] = signs {
            let number = middle[(0, 0)];
            // A leverage of 1 or more is rounding where a penalty exists and singular where none
            // does.
            if number * sign <= 0.0 {
                return None;
            }
            (CoreInverse::Number(1.0 / number), 1.0 / number.abs())
        } else if leave || signs.iter().all(|s| *s > 0.0) {
            let sign = signs[0];
            let positive = if leave {
                Mat::from_fn(k, k, |i, j| -middle[(i, j)])
            } else {
                middle.clone()
            };
            let factor = Cholesky::factor(&positive, |_| false, par).ok()?;
            // (I + H)⁻¹ shrinks; (I − H)⁻¹ is at most 1/(1 − ‖H‖), which says little where the
            // column sums are large.
            let norm = if !leave {
                1.0
            } else if hat < SMALL_HAT {
                1.0 / (1.0 - hat)
            } else {
                let found = operator_norm(k, &[], k as u64, |v| factor.solve(v.as_mut(), Par::Seq));
                if hat < 1.0 {
                    found.min(1.0 / (1.0 - hat))
                } else {
                    found
                }
            };
            (CoreInverse::Factor(factor, sign), norm)
        } else {
            let inverse = middle
                .lblt(faer::Side::Lower)
                .solve(Mat::<f64>::identity(k, k));
            let norm = largest_column_sum(&inverse);
            (CoreInverse::Dense(inverse), norm)
        };
        // ‖I − H‖ is at most 1, since H lies between 0 and I.
        let condition = norm
            * if leave {
                1.0
            } else {
                largest_column_sum(&middle)
            };
        condition.is_finite().then_some(Self {
            inverse,
            condition: condition.max(1.0),
            leverage,
            trace,
            norm,
            middle,
        })
    }

    /// ‖(S + X̂Ẑᵀ)E − r̂‖.
    fn residual(&self, coefficients: &Mat<f64>, residual: &Mat<f64>) -> f64 {
        let mut left = residual.clone();
        multiply(
            left.as_mut(),
            Accum::Add,
            self.middle.as_ref(),
            coefficients.as_ref(),
            -1.0,
            Par::Seq,
        );
        norm(&left)
    }

    /// An upper bound on how much ‖A⁻¹‖ grows, as a factor, with rows of both signs: by ‖ẐᵀMẐ‖ ≤
    /// ‖M‖·Σ zᵀz and zᵀz = xᵀA⁻²x ≤ ‖A⁻¹‖·h.
    pub(crate) fn growth(&self) -> f64 {
        1.0 + self.norm * self.trace
    }

    /// (S + X̂Ẑᵀ)⁻¹·rhs. On one thread: it is small, and waking others takes longer.
    pub(crate) fn times(&self, rhs: &Mat<f64>) -> Mat<f64> {
        let mut product = rhs.clone();
        match &self.inverse {
            CoreInverse::Number(number) => product *= faer::Scale(*number),
            CoreInverse::Factor(factor, sign) => {
                factor.solve(product.as_mut(), Par::Seq);
                product *= faer::Scale(*sign);
            }
            CoreInverse::Dense(inverse) => {
                multiply(
                    product.as_mut(),
                    Accum::Replace,
                    inverse.as_ref(),
                    rhs.as_ref(),
                    1.0,
                    Par::Seq,
                );
            }
        }
        product
    }
}

/// The lower triangle of X̂Ẑᵀ, which is symmetric. O(k²d), or O(kd + k²s) for rows of s non-zeros
/// whose places are known.
fn hat_block(xt: &Mat<f64>, places: Option<&[ColumnPlaces]>, zt: &Mat<f64>, par: Par) -> Mat<f64> {
    let k = xt.ncols();
    let mut hat = Mat::zeros(k, k);
    match places {
        _ if k <= FEW => {
            for j in 0..k {
                for i in j..k {
                    hat[(i, j)] = dot(xt.col_as_slice(i), zt.col_as_slice(j));
                }
            }
        }
        Some(places) if k >= MANY => {
            // Line by line of Ẑᵀ, so that a non-zero meets the vectors of all rows at once.
            let lines = transposed(zt);
            for (j, places) in places.iter().enumerate() {
                let row = xt.col_as_slice(j);
                let column = &mut hat.col_as_slice_mut(j)[j..];
                for &c in places.iter().flatten() {
                    add_scaled(
                        column,
                        row[c as usize],
                        &lines.col_as_slice(c as usize)[j..],
                    );
                }
            }
        }
        _ => multiply_lower(
            hat.as_mut(),
            Accum::Replace,
            xt.as_ref().transpose(),
            zt.as_ref(),
            1.0,
            par,
        ),
    }
    hat
}

/// At least the norm of a symmetric positive matrix.
pub(crate) fn norm_of_symmetric(a: &Mat<f64>) -> f64 {
    let trace: f64 = (0..a.ncols()).map(|j| a[(j, j)]).sum();
    trace.min(largest_column_sum(a))
}

/// At least the norm of a symmetric matrix.
pub(super) fn largest_column_sum(a: &Mat<f64>) -> f64 {
    (0..a.ncols())
        .map(|j| a.col_as_slice(j).iter().map(|x| x.abs()).sum::<f64>())
        .fold(0.0, f64::max)
}

/// Rows on their way in or out, with everything a method may ask about them.
#[derive(Debug, Clone)]
pub(crate) struct RidgeChange {
    pub(crate) ids: Vec<RowId>,
    /// Roots of the weights.
    pub(crate) roots: Vec<f64>,
    pub(crate) rows: SignedRows,
    pub(crate) zt: Mat<f64>,
    pub(crate) core: ChangeCore,
    /// r̂, k × outputs, under the parameters before, and the norm of what is wrong with it.
    pub(crate) residual: Mat<f64>,
    residual_lost: f64,
    /// √Σ_k(Σ_j s_j|ẑ_kj|)²: the most that the rows of Ẑ can make of vectors of energy norm 1,
    /// entry by entry.
    reach: f64,
    pub(super) met: MetChanges,
}

impl RidgeChange {
    /// Hands the rows back when (S + X̂Ẑᵀ) cannot be inverted.
    pub(crate) fn new(
        gathered: GatheredRows,
        zt: Mat<f64>,
        theta: &Mat<f64>,
        spread: &[f64],
        waiting: &WaitingChanges<'_>,
        par: Par,
    ) -> Result<Self, Box<GatheredRows>> {
        let hat = hat_block(&gathered.rows.xt, gathered.rows.places.as_deref(), &zt, par);
        let Some(core) = ChangeCore::of(hat, &gathered.rows.signs, par) else {
            return Err(Box::new(gathered));
        };
        let GatheredRows { ids, roots, rows } = gathered;
        let LongResiduals {
            high: residual,
            lost,
            ..
        } = LongResiduals::of(&rows, theta);
        let residual_lost = lost + UNIT * norm(&residual);
        let met = waiting.meet(&core, &rows.signs);
        let reach = weighted_sum(&zt, spread) * (1.0 + 1e-9);
        let mut this = Self {
            ids,
            roots,
            zt,
            core,
            residual,
            residual_lost,
            reach,
            rows,
            met,
        };
        this.find_hat_norm(waiting.pending);
        Ok(this)
    }

    /// E = (S + X̂Ẑᵀ)⁻¹ r̂.
    pub(crate) fn coefficients(&self) -> Mat<f64> {
        self.core.times(&self.residual)
    }

    /// θ + Ẑᵀ·coefficients.
    pub(crate) fn moved(&self, theta: &Mat<f64>, coefficients: &Mat<f64>, par: Par) -> Mat<f64> {
        let mut moved = theta.clone();
        add_product(&mut moved, &self.zt, coefficients, 1.0, par);
        moved
    }

    /// An upper bound on the energy norm of the error that the step adds, A being that before the
    /// change; see `bound.rs`.
    ///
    /// The gradient after it is g + (AẐᵀ − X̂ᵀ)E + X̂ᵀt with t = S(SE + HE − r̂): the first term is
    /// the error before, the second a fraction of X̂ᵀE, the third what the small solve and the
    /// residuals miss, and storing θ′ rounds its entries.
    pub(crate) fn energy_added(
        &self,
        coefficients: &Mat<f64>,
        theta: &Mat<f64>,
        sums: &RidgeSums,
        quality: &CurvatureQuality,
        waiting_error: f64,
    ) -> f64 {
        let size = norm(coefficients);
        let rows = self.energy_of_rows();
        let width = self.zt.nrows();
        let reach = self.reach * quality.energy_of_spread(width);
        let measured = quality.sums_error * quality.growth * rows;
        let wrong =
            (measured + quality.entry_error / width as f64 * reach).min(sums.charge * reach);
        let solves = quality.solver_error * quality.growth + quality.kept_error + waiting_error;
        let missed = (wrong + solves * rows) * size;
        // Rows of X̂ have an energy norm of √h.
        let hat = self.inner_products(self.most_entries()) * self.core.trace.abs().sqrt() * size;
        let small = self.core.residual(coefficients, &self.residual) + hat + self.residual_lost;
        let stored =
            UNIT * (self.rows.signs.len() as f64 + 2.0) * weighted_sum(theta, &sums.spread);
        (missed + rows.max(1.0) * small + stored) * (1.0 + self.joined()).sqrt()
    }

    /// What the inner products of Ẑ with a vector of energy norm 1 can lose by rounding, at most
    /// `entries` entries of one of them being other than 0: a product with 0 is 0, and adding it is
    /// exact, so that the other entries cost nothing. An entry of such a vector is at most s_j, so
    /// that Σ|zⱼvⱼ| ≤ Σ sⱼ|zⱼ|.
    fn inner_products(&self, entries: usize) -> f64 {
        let entries = entries as f64;
        // Those of few rows are made in sixteen lanes, others by a matrix product in any order.
        let terms = if self.rows.signs.len() <= 2 {
            entries.min(entries / 16.0 + 20.0)
        } else {
            entries
        };
        terms * UNIT * self.reach
    }

    /// The most entries of a row that can be other than 0.
    fn most_entries(&self) -> usize {
        let width = self.zt.nrows();
        let Some(places) = &self.rows.places else {
            return width;
        };
        places
            .iter()
            .map(|places| places.as_ref().map_or(width, |places| places.len()))
            .max()
            .unwrap_or(width)
    }

    /// The fraction of its result that solving through this change adds to what a solve misses.
    /// Beside the corrections, which are exact where the solve before was, there are: the inner
    /// products Ẑ·rhs and H, known to their rounding, which (S + H)⁻¹ amplifies; the small solve;
    /// and storing the sum of what was solved and its corrections.
    pub(crate) fn solve_error(&self, quality: &CurvatureQuality) -> f64 {
        let width = self.zt.nrows();
        let rows = self.rows.signs.len() as f64;
        let norm = self.core.norm.max(1.0);
        let trace = self.core.trace.abs();
        let amplified = norm * trace;
        let products = self.inner_products(width) * norm * trace.sqrt();
        let stored = UNIT * (rows + 2.0) * (quality.spread_norm * width as f64).sqrt();
        let small = 8.0 * rows * rows * UNIT * norm * amplified;
        (products + stored) * (1.0 + amplified) + small
    }

    /// At least the energy norm of X̂ᵀv for a v of norm 1: √‖H‖.
    pub(crate) fn energy_of_rows(&self) -> f64 {
        (self.core.trace.abs() * 1.01).sqrt()
    }

    /// tr H where rows join, by which A itself can grow; 0 where none does.
    pub(crate) fn joined(&self) -> f64 {
        if self.rows.signs.iter().any(|sign| *sign > 0.0) {
            self.core.trace.abs()
        } else {
            0.0
        }
    }

    /// An upper bound on how much ‖A⁻¹‖ grows, as a factor: only rows that leave can make it grow.
    /// A^{-½}X̂ᵀX̂A^{-½} has the non-zero eigenvalues of H, so A − X̂ᵀX̂ ≥ (1 − ‖H‖)A, and 1/(1 −
    /// ‖H‖) is the norm of (I − H)⁻¹.
    pub(crate) fn inverse_norm_growth(&self) -> f64 {
        let leave = self.rows.signs.iter().filter(|sign| **sign < 0.0).count();
        match leave {
            0 => 1.0,
            all if all == self.rows.signs.len() => self.core.norm.max(1.0),
            _ => self.core.growth(),
        }
    }

    /// `solved −= Ẑᵀ M Ẑ·rhs`: turns A⁻¹·rhs from before this change into the one after it. Returns
    /// Ẑ·rhs and M times it.
    pub(crate) fn correct(&self, rhs: &Mat<f64>, solved: &mut Mat<f64>, par: Par) -> [Mat<f64>; 2] {
        let mut along = Mat::zeros(self.zt.ncols(), rhs.ncols());
        if self.zt.ncols() * rhs.ncols() <= 4 {
            for column in 0..rhs.ncols() {
                for k in 0..self.zt.ncols() {
                    along[(k, column)] = dot(self.zt.col_as_slice(k), rhs.col_as_slice(column));
                }
            }
        } else {
            multiply(
                along.as_mut(),
                Accum::Replace,
                self.zt.as_ref().transpose(),
                rhs.as_ref(),
                1.0,
                par,
            );
        }
        let scaled = self.core.times(&along);
        add_product(solved, &self.zt, &scaled, -1.0, par);
        [along, scaled]
    }
}

pub(crate) fn apply_signs(rows: &mut Mat<f64>, signs: &[f64]) {
    for column in 0..rows.ncols() {
        rows.col_as_slice_mut(column)
            .iter_mut()
            .zip(signs)
            .for_each(|(value, sign)| *value *= sign);
    }
}

/// Ŷ − X̂θ.
pub(crate) fn residuals(rows: &SignedRows, theta: &Mat<f64>, par: Par) -> Mat<f64> {
    let mut residual = rows.y.clone();
    if let Some(places) = &rows.places {
        for (k, places) in places.iter().enumerate() {
            let row = rows.xt.col_as_slice(k);
            for output in 0..theta.ncols() {
                let theta = theta.col_as_slice(output);
                let along = |&j: &u32| row[j as usize] * theta[j as usize];
                residual[(k, output)] -= places.iter().flatten().map(along).sum::<f64>();
            }
        }
    } else if rows.signs.len() * theta.ncols() <= 8 {
        for output in 0..theta.ncols() {
            for k in 0..rows.signs.len() {
                residual[(k, output)] -= dot(rows.xt.col_as_slice(k), theta.col_as_slice(output));
            }
        }
    } else {
        multiply(
            residual.as_mut(),
            Accum::Add,
            rows.xt.as_ref().transpose(),
            theta.as_ref(),
            -1.0,
            par,
        );
    }
    residual
}

/// Ŷ − X̂θ in two words, k × outputs.
pub(crate) struct LongResiduals {
    pub(crate) high: Mat<f64>,
    pub(crate) low: Mat<f64>,
    /// The norm of what writing rows into the basis has rounded away.
    pub(crate) lost: f64,
}

impl LongResiduals {
    pub(crate) fn of(rows: &SignedRows, theta: &Mat<f64>) -> Self {
        let k = rows.signs.len();
        let mut found = Self {
            high: Mat::zeros(k, theta.ncols()),
            low: Mat::zeros(k, theta.ncols()),
            lost: 0.0,
        };
        let mut square = 0.0;
        for k in 0..k {
            let row = rows.xt.col_as_slice(k);
            let places = rows.places.as_ref().and_then(|places| places[k].as_deref());
            for output in 0..theta.ncols() {
                let theta = theta.col_as_slice(output);
                let score = match places {
                    Some(places) => places.iter().fold(DoubleWord::default(), |score, &j| {
                        score.plus_product(row[j as usize], theta[j as usize])
                    }),
                    None => long_dot(row, theta, &[]),
                };
                let entry = score.times(-1.0).plus(DoubleWord::new(rows.y[(k, output)]));
                found.high[(k, output)] = entry.high;
                found.low[(k, output)] = entry.low;
                if rows.rounding > 0.0 {
                    let size: f64 = row.iter().zip(theta).map(|(x, t)| (x * t).abs()).sum();
                    square += (UNIT * rows.rounding * size).powi(2);
                }
            }
        }
        found.lost = square.sqrt();
        found
    }

    /// Adds X̂ᵀS times minus the residuals, the rows' share of a gradient, to one in two words.
    pub(crate) fn add_to_gradient(
        &self,
        rows: &SignedRows,
        high: &mut Mat<f64>,
        low: &mut Mat<f64>,
    ) {
        for (k, sign) in rows.signs.iter().enumerate() {
            for output in 0..high.ncols() {
                let pull = DoubleWord {
                    high: self.high[(k, output)],
                    low: self.low[(k, output)],
                }
                .times(-sign);
                let high = high.col_as_slice_mut(output);
                let low = low.col_as_slice_mut(output);
                long_add_scaled(high, low, pull, rows.xt.col_as_slice(k));
            }
        }
    }
}

/// `out += scale · a · b` for a tall `a`; few columns go without the machinery of a matrix product.
pub(crate) fn add_product(out: &mut Mat<f64>, a: &Mat<f64>, b: &Mat<f64>, scale: f64, par: Par) {
    if a.ncols() * b.ncols() > 4 {
        multiply(out.as_mut(), Accum::Add, a.as_ref(), b.as_ref(), scale, par);
        return;
    }
    for column in 0..b.ncols() {
        for k in 0..a.ncols() {
            add_scaled(
                out.col_as_slice_mut(column),
                scale * b[(k, column)],
                a.col_as_slice(k),
            );
        }
    }
}
