//! The influence function: one Newton step with the *full* Hessian, θ − A⁻¹X_DᵀW_D r_D.
//! Approximate: the curvature still contains the rows that are to go, so the step is too short, by
//! a factor 1 − h for a single row of leverage h. As a row's norm grows its leverage nears 1 and
//! the method stops moving at all (Izzo et al. 2021, theorem 3). Costs what finding Z_D costs in
//! the model's form, plus O(kd).

/// One step with the full Hessian.
#[derive(Debug, Clone, Copy, Default)]
pub struct Influence;
