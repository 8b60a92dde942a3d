//! Norms of A⁻¹ by two dozen solves.

use faer::{Mat, Par};

use super::change::RidgeChange;
use super::{Basis, DenseBody};
use crate::linalg::NormSearch;

impl DenseBody {
    /// At least ‖TA⁻¹Tᵀ‖ and ‖SA⁻¹S‖ over the columns that some row has; the parameters of the
    /// others are exactly zero.
    pub(crate) fn curvature_norms(
        &self,
        basis: &Basis,
        lambda: f64,
        more: Option<&RidgeChange>,
        par: Par,
    ) -> (f64, f64) {
        let apart = self.unsupported(more.map(|change| &change.rows));
        let NormSearches {
            mut caller,
            mut spread,
            apart,
        } = NormSearches::new(basis.width(), apart);
        let solve = |v: &mut Mat<f64>| *v = self.solve(v, more, par);
        // A solve for one vector waits for memory and gains nothing from threads; two of them do.
        if par.degree() > 1 {
            std::thread::scope(|scope| {
                let beside = scope.spawn(|| {
                    while spread.step(|v| spread_product(v, &self.sums.spread, solve)) {}
                });
                while caller.step(|v| caller_product(v, basis, &apart, solve)) {}
                beside
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            });
        } else {
            while caller.step(|v| caller_product(v, basis, &apart, solve)) {}
            while spread.step(|v| spread_product(v, &self.sums.spread, solve)) {}
        }
        NormSearches {
            caller,
            spread,
            apart,
        }
        .found(basis, lambda)
    }
}

/// The searches for ‖TA⁻¹Tᵀ‖ and ‖SA⁻¹S‖.
#[derive(Debug, Clone)]
pub(super) struct NormSearches {
    caller: NormSearch,
    spread: NormSearch,
    apart: Vec<usize>,
}

impl NormSearches {
    /// Columns `apart` have no row.
    pub(super) fn new(width: usize, apart: Vec<usize>) -> Self {
        let seed = width as u64;
        Self {
            caller: NormSearch::of_inverse(width, apart.clone(), seed),
            spread: NormSearch::of_inverse(width, apart.clone(), seed + 1),
            apart,
        }
    }

    /// A step of each; false when none is left.
    pub(super) fn step(
        &mut self,
        basis: &Basis,
        spread: &[f64],
        solve: impl Fn(&mut Mat<f64>),
    ) -> bool {
        let more = self
            .caller
            .step(|v| caller_product(v, basis, &self.apart, &solve));
        self.spread.step(|v| spread_product(v, spread, &solve)) | more
    }

    pub(super) fn found(&self, basis: &Basis, lambda: f64) -> (f64, f64) {
        let caller = self.caller.bound();
        // Without an intercept, the penalty holds every direction.
        let caller = if basis.intercept || lambda == 0.0 {
            caller
        } else {
            caller.min(1.0 / lambda)
        };
        (caller, self.spread.bound())
    }
}

/// `v ← TA⁻¹Tᵀv` over the columns that are not `apart`.
fn caller_product(v: &mut Mat<f64>, basis: &Basis, apart: &[usize], solve: impl Fn(&mut Mat<f64>)) {
    basis.map_vector(v.col_as_slice_mut(0), true);
    apart.iter().for_each(|&j| v[(j, 0)] = 0.0);
    solve(v);
    basis.map_vector(v.col_as_slice_mut(0), false);
}

/// `v ← SA⁻¹Sv`.
fn spread_product(v: &mut Mat<f64>, spread: &[f64], solve: impl Fn(&mut Mat<f64>)) {
    scale_rows(v, spread);
    solve(v);
    scale_rows(v, spread);
}

fn scale_rows(v: &mut Mat<f64>, spread: &[f64]) {
    for (j, spread) in spread.iter().enumerate() {
        for output in 0..v.ncols() {
            v[(j, output)] *= spread;
        }
    }
}
