//! The projection residual update of Izzo et al. (2021) and Cao et al. (2022), with the printed
//! errors put right.
//!
//! With the leave-k-out predictions ŷ_D it moves θ inside the span of the removed rows only: θ_res
//! = θ − X_Dᵀ G⁺ (X_Dθ − ŷ_D), G = X_D X_Dᵀ. Among all such moves it is the nearest to retraining:
//! θ_res is θ plus the projection of θ^{\D} − θ onto that span. Approximate; what lies outside the
//! span stays. O(k²d), or O(k²s + k³) for sparse rows of s non-zeros, once H_D is known. Duplicate
//! rows, zero rows and k > d are what the pseudoinverse is for: directions with an eigenvalue at
//! most ε·λ_max·max(k, d) are dropped and counted. It works in the caller's coordinates, where a
//! row is its features and, with an intercept, a constant 1; a projection depends on coordinates,
//! so the internal ones would give another method.
//!
//! For logistic and softmax models it is the same on the weighted problem of the Newton step, with
//! weights p(1 − p) and working responses z (Izzo et al. 2021, appendix D), and so the projection
//! of the Newton step onto the span of the removed rows. Computed that way, nothing is ever divided
//! by a weight, and saturated rows do no harm.
//!
//! It is kept for what `exact` cannot reach: a model too wide for any d×d matrix, where H_D comes
//! from k conjugate-gradient solves. Where curvature is kept, `exact` costs the same and has no
//! error.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The projection residual update, in one round or in the rounds of algorithm 5 of Cao et al.
/// (2022), whose model is the last layer of a network.
///
/// A round moves the parameters by α times the projection, onto the span of the removed rows, of
/// the step to the retained optimum: for squared loss that optimum itself, for cross-entropy the
/// Newton step at the current parameters. It ends after T rounds, or when a round moved the
/// parameters by no more than the tolerance.
///
/// Squared loss needs no repetition: every round takes the same share α of what is left of one
/// fixed projection, so T rounds are one step of 1 − (1 − α)ᵀ, and with α = 1 the second round
/// moves nothing. For cross-entropy the first round reads the removed rows only; later ones need
/// the gradient at the new parameters, hence every retained row, and the model keeps no curvature
/// afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProjectionResidual {
    /// T: rounds at most, at least 1.
    pub rounds: usize,
    /// α: how much of the projected step a round takes, above 0 and at most 1.
    pub step: f64,
    /// The move of a round that ends the rounds; 0 or more.
    pub tolerance: f64,
}

impl Default for ProjectionResidual {
    fn default() -> Self {
        Self {
            rounds: 1,
            step: 1.0,
            tolerance: 1e-8,
        }
    }
}

impl ProjectionResidual {
    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |name, value: String, range| Err(Error::Parameter { name, value, range });
        if self.rounds == 0 {
            return refuse("rounds", "0".into(), "at least 1");
        }
        if !(self.step > 0.0 && self.step <= 1.0) {
            return refuse("step", self.step.to_string(), "above 0 and at most 1");
        }
        if !self.tolerance.is_finite() || self.tolerance < 0.0 {
            return refuse(
                "tolerance",
                self.tolerance.to_string(),
                "finite and 0 or more",
            );
        }
        Ok(())
    }
}
