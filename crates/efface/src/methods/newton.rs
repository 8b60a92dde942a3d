//! One Newton step on the retained loss: θ − [∇²L^{\D}]⁻¹ ∇L^{\D}(θ). For squared loss one step is
//! the minimum, so it is exact. The Hessian is the old factor downdated by the removed rows,
//! O(kd²); the gradient needs no retained row, because it vanished before: ∇L^{\D}(θ) = −Σ_D
//! ∇ℓ_i(θ). Where no factor is kept, the inverse form factors the retained sums, O(d³), and the
//! iterative form takes the step by conjugate gradients, like `exact`.
//!
//! For logistic and softmax models a step is not the minimum: what it leaves of the gradient is
//! bounded without reading a retained row, or measured by a pass over them, and more steps with the
//! same Hessian make it as small as asked. The bound that needs no row is a worst case. Where it is
//! larger than the way that the step went, it does not even say that the step led nearer: then the
//! retained rows are read, and where their gradient alone is not enough the intercepts are profiled
//! out or the Hessian is made anew where the model stands now. The evidence tells by `rows_read`
//! and by a bound that is `measured`.

use serde::{Deserialize, Serialize};

/// Newton steps. A ridge model takes one, which is exact, whatever the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Newton {
    /// How many; each after the first reads the retained rows once, for the gradient.
    pub steps: usize,
    /// Whether to end with a pass over the retained rows in any case, so that the bound is measured
    /// and not carried.
    pub measure: bool,
}

impl Default for Newton {
    fn default() -> Self {
        Self {
            steps: 1,
            measure: false,
        }
    }
}
