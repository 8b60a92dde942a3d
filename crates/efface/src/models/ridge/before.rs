//! What is known before sums are factored anew still holds after it, as much as rows that left
//! allow.

use faer::Par;

use super::bound::GradientAnchor;
use super::dense::DenseBody;
use crate::linalg::{Cholesky, operator_norm};

/// What a request built anew came from: the body before it, and a point
/// where the gradient over the rows that are left is known.
pub(crate) struct BodyBefore<'a> {
    pub(crate) body: &'a DenseBody,
    pub(crate) anchor: GradientAnchor,
}

impl BodyBefore<'_> {
    /// How much larger A⁻¹ is after the request than before it, as a factor of at least 1. Columns
    /// that no row has any more are 0 in both and have no part in it.
    fn inverse_growth(&self, factor: &Cholesky, after: &DenseBody, par: Par) -> f64 {
        let width = factor.width();
        let apart = after.unsupported(None);
        let growth = operator_norm(width, &apart, width as u64 + 5, |v| {
            factor.sandwich(v, |v| *v = self.body.sums.times(v, par), par);
        });
        if growth.is_finite() {
            growth.max(1.0)
        } else {
            f64::INFINITY
        }
    }

    /// At least by how much the sums after the request are wrong, as a fraction and by entries
    /// beyond it. A fit may have measured a far smaller one than the number of terms allows, and it
    /// holds as a fraction of the sums before: of those after, it is as much more as A⁻¹ has grown.
    fn sums_error(&self, growth: f64, after: &DenseBody) -> (f64, f64) {
        let before = &self.body.ledger.quality;
        // A fraction measured while rows waited is one of A with them, which can be larger than A
        // without.
        let (known, entries) = match before.measured_after {
            0 => (before.sums_error, before.entry_error),
            _ => (before.wrong_sums() * self.body.ledger.joined_growth, 0.0),
        };
        let charged = (after.sums.charge - self.body.sums.charge).max(0.0);
        let carried = known * growth;
        let carried = if carried.is_finite() {
            carried
        } else {
            f64::INFINITY
        };
        (carried, entries + charged * after.sums.a.nrows() as f64)
    }

    /// Takes over what was known before into a body factored anew, and gives the point where its
    /// gradient is known.
    pub(crate) fn carried_to(
        self,
        body: &mut DenseBody,
        kept_factor: Option<&Cholesky>,
        par: Par,
    ) -> GradientAnchor {
        let factor = kept_factor.or(body.solver.factor());
        let growth = factor.map_or(f64::INFINITY, |factor| {
            self.inverse_growth(factor, body, par)
        });
        let (sums_error, entry_error) = self.sums_error(growth, body);
        let quality = &mut body.ledger.quality;
        quality.sums_error = sums_error;
        quality.entry_error = entry_error;
        quality.limit_by_count(&body.sums);
        // The error is an energy by A before, and where rows have left the same vector weighs more.
        GradientAnchor {
            error: self.anchor.error * growth.sqrt(),
            ..self.anchor
        }
    }
}
