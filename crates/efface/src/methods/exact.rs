//! The closed form: for squared loss the retrained parameters are a formula in the full model's own
//! terms, θ − A⁻¹X_DᵀW_D(I − H_D)⁻¹r_D. It is exact up to the arithmetic, never reads a retained
//! row, and costs O(k²d) when the vectors XA⁻¹ are kept, O(k·s·d) from a kept inverse, O(kd²) from
//! a kept factor. Near leverage 1 it loses digits, which refinement from the kept sums restores; at
//! leverage 1 without a penalty there is nothing to find, and it says so. In the iterative form it
//! is conjugate gradients on the retained rows, warm-started, to the model's tolerance.

/// The closed form.
#[derive(Debug, Clone, Copy, Default)]
pub struct Exact;
