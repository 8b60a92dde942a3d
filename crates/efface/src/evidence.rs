//! What a method found out while it worked. Evidence is a measurement, not a certificate: only the engine, which sees
//! the rows leave and the model change in one transaction, writes receipts.

use serde::{Deserialize, Serialize};

/// What a method promises of its result, compared with retraining on the retained rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Claim {
    /// Equal to retraining, up to the arithmetic: see the bound.
    Exact,
    /// Indistinguishable from retraining in the sense of (ε, δ).
    Certified {
        /// ε.
        epsilon: f64,
        /// δ.
        delta: f64,
    },
    /// Near retraining; how near, the bound says.
    Approximate,
}

impl Claim {
    /// `exact`, `certified` or `approximate`.
    pub fn name(&self) -> &'static str {
        match self {
            Claim::Exact => "exact",
            Claim::Certified { .. } => "certified",
            Claim::Approximate => "approximate",
        }
    }
}

/// How the bound was obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BoundSource {
    /// The gradient of the retained loss was computed from the kept sums or the rows.
    Measured,
    /// The gradient was bounded by what each step since the last measurement can have added.
    Carried,
}

/// Something made ahead of time that the request profited from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Precomputed {
    /// What it is.
    pub what: String,
    /// The memory it holds.
    pub bytes: usize,
}

/// Columns that no retained row has and whose weights were set to 0 afterwards, because a model that never saw the
/// forgotten rows has 0 there. The zero comes from the count of rows behind a column and not from the method, so
/// that what the method itself left is told beside it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClearedColumns {
    /// How many columns held a weight other than 0.
    pub columns: usize,
    /// The norm of those weights before they were cleared.
    pub norm: f64,
}

/// What stands behind a claim of (ε, δ): the noise, the error it may hide, and on what conditions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// ε.
    pub epsilon: f64,
    /// δ.
    pub delta: f64,
    /// The standard deviation of the noise, per parameter.
    pub noise: f64,
    /// What the budget counts: `residual gradient` or `distance`.
    pub unit: String,
    /// How much error the noise can hide at this ε and δ.
    pub budget: f64,
    /// An upper bound on the error that is there, all requests since the last training included.
    pub used: f64,
    /// What later requests may still spend.
    pub left: f64,
    /// Whether this request would have passed the budget, so that the model was trained anew with fresh noise.
    pub retrained: bool,
    /// Whether the claim also holds for requests that were chosen after looking at published parameters.
    pub adaptive: bool,
    /// What the claim rests on.
    pub assumptions: Vec<String>,
}

/// The record of one request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// The method that did the work.
    pub method: String,
    /// Why this method, when `auto` chose it.
    pub reason: Option<String>,
    /// What it promises.
    pub claim: Claim,
    /// Rows taken out.
    pub forgotten: usize,
    /// Rows put in (learn, amend).
    pub learned: usize,
    /// Rows in the model afterwards.
    pub rows: usize,
    /// Rows whose content was read.
    pub rows_read: usize,
    /// The largest leverage among the rows taken out; None when the method does not compute it.
    pub largest_leverage: Option<f64>,
    /// At least the condition of I − H_D.
    pub condition: Option<f64>,
    /// Directions of the removed rows' span dropped as rounding noise.
    pub directions_dropped: usize,
    /// Conjugate-gradient iterations.
    pub iterations: usize,
    /// Steps of iterative refinement.
    pub refinements: usize,
    /// Whether the curvature was factored anew from the sums.
    pub refactored: bool,
    /// Whether the sums had lost so many digits to a large row that the retained rows were read and summed afresh.
    pub resummed: bool,
    /// The norm of the retained loss's gradient at the new parameters, or a bound on it; None after an approximate
    /// method, whose bound comes from the closed form instead.
    pub gradient_norm: Option<f64>,
    /// A lower bound on μ, the strong convexity of the retained loss.
    pub convexity: f64,
    /// An upper bound on the distance to the retrained parameters, ‖∇L‖/μ or tighter; where there is noise, to those of
    /// retraining with the same noise.
    pub bound: f64,
    /// The bound as a fraction of the retrained parameters' norm (bounded in turn); infinite when the bound says nothing.
    pub relative_bound: f64,
    /// How the bound was obtained.
    pub bound_source: BoundSource,
    /// What stands behind a claim of (ε, δ); None for other claims.
    pub certificate: Option<Certificate>,
    /// What was cleared after the method's own work; None when no column had to be, and after an approximate method that
    /// was not asked to clear any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleared: Option<ClearedColumns>,
    /// What had been made ahead of time.
    pub precomputed: Vec<Precomputed>,
    /// What this request cannot take out of the model; filled by whoever knows how the features were made.
    pub not_covered: Vec<String>,
}

/// A new model, and how it came about. The old one is untouched.
#[derive(Debug, Clone)]
pub struct Outcome<M> {
    /// The model after the request.
    pub model: M,
    /// The record of the request.
    pub evidence: Evidence,
}
