//! The parts of a receipt that say how good the result is and who else still holds the old one.

use serde::{Deserialize, Serialize};

use crate::{hash::Hash, time::Time};

/// What is promised of the result, compared with training without the forgotten rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ReceiptClaim {
    /// Equal to retraining up to arithmetic: there is a bound, and it is at most the tolerance. A
    /// receipt that says otherwise is refused.
    Exact {
        /// The largest distance, relative to the parameters' norm, that counts as equal.
        tolerance: f64,
    },
    /// Indistinguishable from retraining in the sense of (ε, δ).
    Certified {
        /// ε.
        epsilon: f64,
        /// δ.
        delta: f64,
        /// The standard deviation of the noise, per parameter.
        noise: f64,
        /// What the budget counts, such as `residual gradient`.
        unit: String,
        /// How much error the noise can hide at this ε and δ.
        budget: f64,
        /// An upper bound on the error that is there.
        used: f64,
        /// What later requests may still spend.
        left: f64,
        /// Whether the model was trained anew because the budget was spent.
        retrained: bool,
        /// Whether it also holds for requests chosen after looking at published parameters.
        adaptive: bool,
        /// What the claim rests on.
        assumptions: Vec<String>,
    },
    /// Near retraining; how near, the bound says.
    Approximate {},
}

/// How a bound was obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundOrigin {
    /// The gradient of the retained loss was computed.
    Measured,
    /// It was bounded by what each step since the last measurement can have added.
    Carried,
}

/// The distance to the retrained parameters that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DistanceBound {
    /// An upper bound on ‖θ − θ′‖; null when nothing can be said.
    pub distance: Option<f64>,
    /// The distance as a fraction of the parameters' norm; null when nothing can be said.
    pub relative: Option<f64>,
    /// How it was obtained.
    pub source: BoundOrigin,
}

impl DistanceBound {
    /// A bound from numbers that may be infinite, which JSON cannot say.
    pub fn new(distance: f64, relative: f64, source: BoundOrigin) -> DistanceBound {
        let finite = |number: f64| number.is_finite().then_some(number);
        DistanceBound {
            distance: finite(distance),
            relative: finite(relative),
            source,
        }
    }
}

/// The result of a test run on the model: a name and numbers, nothing else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditEntry {
    /// The test, such as `feature_injection`.
    pub test: String,
    /// Whether it was passed; null for a measurement that decides nothing.
    pub passed: Option<bool>,
    /// What was measured.
    pub value: Option<f64>,
    /// What would have been too much.
    pub threshold: Option<f64>,
    /// How often it was tried.
    pub trials: Option<u64>,
}

/// Another copy of the model that the engine knows of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownCopy {
    /// Its number: of the version, or of the export.
    pub number: u64,
    /// Whether it was kept or handed out.
    pub kind: CopyKind,
    /// Whether it may still be used.
    pub state: CopyState,
    /// The hash of its parameters.
    pub parameters: Hash,
    /// When it was made.
    pub made_at: Time,
    /// When it was withdrawn.
    pub withdrawn_at: Option<Time>,
}

/// What sort of copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CopyKind {
    /// A version in the engine's own store.
    Version,
    /// A file that was handed out.
    Export,
}

/// Whether a copy may still be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CopyState {
    /// It is in use.
    Live,
    /// It holds forgotten rows and must no longer be served.
    Withdrawn,
}

/// Noise that follows from a promise: with it, a release is (ε, δ)-indistinguishable from the one
/// before, published once more with noise of the same size, as long as the parameters moved by no
/// more than the sensitivity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// ε.
    pub epsilon: f64,
    /// δ.
    pub delta: f64,
    /// The distance that the noise hides, in the units of the published parameters; null where it
    /// will be measured.
    pub sensitivity: Option<f64>,
    /// Who said so.
    pub source: SensitivitySource,
}

/// Where a sensitivity comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SensitivitySource {
    /// The operator gave it beforehand; the engine publishes nothing that moved further.
    Given,
    /// It is the way that the parameters went since the last release, so that the noise tells
    /// something of it.
    Measured,
}

/// How the new parameters may be published. Two published versions that differ by one row give the
/// row away (Bertran et al. 2024), so a release waits for company.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleaseTerms {
    /// Requests that must have come together before new parameters are published.
    pub minimum_batch: u64,
    /// Requests that have come together so far.
    pub batch: u64,
    /// The least delay before publishing, in seconds.
    pub delay_seconds: u64,
    /// Noise added to what is published: its standard deviation per parameter; null for none, or
    /// where it follows from the calibration at the next export.
    pub noise: Option<f64>,
    /// Where the noise comes from; null when it was chosen outright, or when there is none.
    pub calibration: Option<Calibration>,
    /// What exports with calibrated noise add up to; null in every other receipt.
    pub privacy: Option<PrivacySpent>,
    /// What the operator was warned of.
    pub warnings: Vec<String>,
}

/// What an export with calibrated noise gives away, in the sense of (ε, δ): it, and all exports
/// with noise so far, cannot be told from exports of another history whose parameters lay, at each
/// of them, within that export's sensitivity.
///
/// The sum is that of Gaussian differential privacy (Dong, Roth and Su 2019): releases of μ₁, μ₂, …
/// are together one Gaussian release of √(μ₁² + μ₂² + …), also where later versions depend on what
/// was seen of earlier ones, as long as no μ does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrivacySpent {
    /// The δ at which every ε here is stated.
    pub delta: f64,
    /// The sensitivity as a multiple of the noise's standard deviation; 0 where the same copy had
    /// left before.
    pub mu: f64,
    /// The ε of this export alone.
    pub epsilon: f64,
    /// All exports with noise since `since`, this one included; null where noise of one of them was
    /// chosen outright, so that nobody said what it has to hide.
    pub total: Option<PrivacyTotal>,
    /// The receipt of the last export without noise, which hides nothing of what came before it;
    /// null for none.
    pub since: Option<u64>,
}

/// What several exports with calibrated noise add up to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrivacyTotal {
    /// The root of the sum of the squares of each export's μ.
    pub mu: f64,
    /// The ε of all of them together.
    pub epsilon: f64,
    /// How many different copies there were.
    pub releases: u64,
}
