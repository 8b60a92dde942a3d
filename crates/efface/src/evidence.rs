//! What a method found out while it worked. Evidence is a measurement, not a certificate: only the
//! engine, which sees the rows leave and the model change in one transaction, writes receipts.
//!
//! The rule of claims lives here: what a method promises is a field, what may be claimed is
//! computed from the promise, the bound and the tolerance ([`Evidence::claim`]). A bound that grows
//! later, as when a change is folded into the curvature, therefore takes the claim along.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::not_covered::{LeftBehind, NotCovered};

/// The tolerance of families whose arithmetic is a closed form of their rows, where the recipe has
/// no setting for it.
pub(crate) const CLOSED_FORM_TOLERANCE: f64 = 1e-9;

/// What is said of a result, compared with retraining on the retained rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Claim {
    /// Equal to retraining, up to the arithmetic: the relative bound is at most the tolerance.
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

/// Columns that no retained row has and whose weights were set to 0 afterwards, because a model
/// that never saw the forgotten rows has 0 there. The zero comes from the count of rows behind a
/// column and not from the method, so that what the method itself left is told beside it.
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
    /// Whether this request would have passed the budget, so that the model was trained anew with
    /// fresh noise.
    pub retrained: bool,
    /// Whether the claim also holds for requests that were chosen after looking at published
    /// parameters.
    pub adaptive: bool,
    /// What the claim rests on.
    pub assumptions: Vec<String>,
}

/// The distance of a network's head to its optimum on the features of the encoder as it is. It says
/// nothing of the encoder.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HeadBound {
    /// An upper bound on the distance to the optimal parameters of the head.
    pub bound: f64,
    /// The bound as a fraction of those parameters' norm.
    pub relative_bound: f64,
}

/// How the distances of a [`ComparedWithNothing`] were obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ComparisonBasis {
    /// Both are bounds, and they decide which model is nearer.
    Bound,
    /// Both are distances to an estimate of the retrained parameters, because bounds do not decide.
    Estimate,
}

/// A comparison of the result of an approximate method with the model as it was before: which of
/// the two is nearer to retraining. Distances are in the norm of the parameters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ComparedWithNothing {
    /// How the distances were obtained.
    pub basis: ComparisonBasis,
    /// The distance of the result to retraining.
    pub distance: f64,
    /// The distance of the model as it was before to retraining.
    pub unchanged: f64,
    /// True if the result is nearer to retraining than the model was before, or is at the retrained
    /// parameters but for rounding.
    pub is_nearer: bool,
}

/// Parameters that are within this share of their norm of retraining are not called worse than
/// others.
const AT_RETRAINING: f64 = 1e-9;

impl fmt::Display for ComparedWithNothing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            distance,
            unchanged,
            ..
        } = self;
        match (self.basis, self.is_nearer) {
            (ComparisonBasis::Estimate, _) => write!(
                f,
                "the result is about {distance:.1e} from retraining, and the model as it was about {unchanged:.1e} (estimates)"
            ),
            (ComparisonBasis::Bound, true) => write!(
                f,
                "the result is at most {distance:.1e} from retraining, and the model as it was at least {unchanged:.1e}"
            ),
            (ComparisonBasis::Bound, false) => write!(
                f,
                "the result is at least {distance:.1e} from retraining, and the model as it was at most {unchanged:.1e}"
            ),
        }
    }
}

impl ComparedWithNothing {
    /// Compares by distances to reference parameters, which are at most `bound` away from
    /// retraining. Without a bound that decides, the distances are estimates. `size` is the norm of
    /// the reference parameters.
    pub(crate) fn by_reference(distance: f64, unchanged: f64, bound: f64, size: f64) -> Self {
        let is_at_retraining = |distance: f64| distance <= AT_RETRAINING * size;
        let is_bounded_nearer =
            distance + bound < unchanged - bound || is_at_retraining(distance + bound);
        let is_bounded_farther = distance - bound > unchanged + bound;
        if is_bounded_nearer {
            return Self {
                basis: ComparisonBasis::Bound,
                distance: distance + bound,
                unchanged: (unchanged - bound).max(0.0),
                is_nearer: true,
            };
        }
        if is_bounded_farther && !is_at_retraining(distance) {
            return Self {
                basis: ComparisonBasis::Bound,
                distance: distance - bound,
                unchanged: unchanged + bound,
                is_nearer: false,
            };
        }
        Self {
            basis: ComparisonBasis::Estimate,
            distance,
            unchanged,
            is_nearer: distance < unchanged || is_at_retraining(distance),
        }
    }
}

/// The record of one request.
///
/// As JSON it also has `claim`, what [`claim`](Self::claim) says, and `tolerance_missed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Evidence {
    /// The method that did the work.
    pub method: String,
    /// Why this method, when `auto` chose it or another method missed the tolerance; or how far the
    /// result is from the tolerance, when no method reached it.
    pub reason: Option<String>,
    /// What the method promises. What may be said of this result is [`claim`](Self::claim).
    #[serde(skip, default = "no_promise")]
    pub promise: Claim,
    /// The relative distance to retraining that counts as equal: the request's, or else the model's
    /// own. None for a method that aims at no distance, such as one approximate step, or noise that
    /// hides what is left.
    #[serde(default)]
    pub tolerance: Option<f64>,
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
    /// Whether the sums had lost so many digits to a large row that the retained rows were read and
    /// summed afresh.
    pub resummed: bool,
    /// The norm of the retained loss's gradient at the new parameters, or a bound on it; None after
    /// an approximate method, whose bound comes from the closed form instead.
    pub gradient_norm: Option<f64>,
    /// A lower bound on μ, the strong convexity of the retained loss.
    pub convexity: f64,
    /// An upper bound on the distance to the retrained parameters, ‖∇L‖/μ or tighter; where there
    /// is noise, to those of retraining with the same noise.
    pub bound: f64,
    /// The bound as a fraction of the retrained parameters' norm (bounded in turn); infinite when
    /// the bound says nothing.
    pub relative_bound: f64,
    /// How the bound was obtained.
    pub bound_source: BoundSource,
    /// The bound of the head of a network whose encoder nothing bounds; None where `bound` is that
    /// of the whole model, or where no finite bound of the head is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_bound: Option<HeadBound>,
    /// What stands behind a claim of (ε, δ); None for other claims.
    pub certificate: Option<Certificate>,
    /// What was cleared after the method's own work; None when no column had to be, and after an
    /// approximate method that was not asked to clear any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleared: Option<ClearedColumns>,
    /// The comparison of an approximate method's result with leaving the model as it was; None for
    /// other methods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<ComparedWithNothing>,
    /// What had been made ahead of time.
    pub precomputed: Vec<Precomputed>,
    /// What this request cannot take out of the model. The method fills in what it left itself, and
    /// the engine adds what follows from how the features were made.
    pub not_covered: Vec<NotCovered>,
    /// What is kept beside the model although no answer of it depends on it: on purpose, as the
    /// list of what must not come back, or where no program reaches, as blocks beneath a file
    /// system.
    pub kept_beside: Vec<NotCovered>,
}

impl Evidence {
    /// What may be claimed: what the method promises, but `exact` only with a bound that is a
    /// number and at most the tolerance.
    pub fn claim(&self) -> Claim {
        match self.promise {
            Claim::Exact if !self.is_within_tolerance() => Claim::Approximate,
            promise => promise,
        }
    }

    /// Takes note of what is left: what answers may still depend on, and what is kept beside them.
    pub fn set_left_behind(&mut self, left: impl IntoIterator<Item = NotCovered>) {
        let LeftBehind {
            not_covered,
            kept_beside,
        } = left.into_iter().collect();
        self.not_covered = not_covered;
        self.kept_beside = kept_beside;
    }

    /// Restricts what is said to the head of a network: nothing bounds how far the encoder is from a
    /// retrained one. The bound of the model becomes that of the head.
    pub fn limit_to_head(&mut self) {
        if self.bound.is_finite() && self.relative_bound.is_finite() {
            self.head_bound = Some(HeadBound {
                bound: self.bound,
                relative_bound: self.relative_bound,
            });
        }
        self.promise = Claim::Approximate;
        self.certificate = None;
        self.gradient_norm = None;
        self.bound = f64::INFINITY;
        self.relative_bound = f64::INFINITY;
    }

    /// Whether there was a tolerance to stay within, and the bound is above it or says nothing.
    pub fn tolerance_missed(&self) -> bool {
        self.tolerance.is_some() && !self.is_within_tolerance()
    }

    /// A bound that is not a number is within nothing.
    fn is_within_tolerance(&self) -> bool {
        self.bound.is_finite()
            && self
                .tolerance
                .is_some_and(|tolerance| self.relative_bound <= tolerance)
    }
}

/// What stands in for a promise until the record's own is put in its place.
fn no_promise() -> Claim {
    Claim::Approximate
}

/// An evidence as it is written: what was computed from its fields stands beside them.
#[derive(Serialize)]
struct WrittenEvidence<'a> {
    claim: Claim,
    promise: Claim,
    tolerance_missed: bool,
    #[serde(flatten, serialize_with = "write_fields")]
    fields: &'a Evidence,
}

fn write_fields<S: Serializer>(fields: &&Evidence, serializer: S) -> Result<S::Ok, S::Error> {
    Evidence::serialize(fields, serializer)
}

/// An evidence as it is read. Records of older versions have a claim and no promise.
#[derive(Deserialize)]
struct ReadEvidence {
    claim: Claim,
    promise: Option<Claim>,
    #[serde(flatten, deserialize_with = "Evidence::deserialize")]
    fields: Evidence,
}

impl Serialize for Evidence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = WrittenEvidence {
            claim: self.claim(),
            promise: self.promise,
            tolerance_missed: self.tolerance_missed(),
            fields: self,
        };
        Serialize::serialize(&written, serializer)
    }
}

impl<'de> Deserialize<'de> for Evidence {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ReadEvidence {
            claim,
            promise,
            fields,
        } = Deserialize::deserialize(deserializer)?;
        Ok(Self {
            promise: promise.unwrap_or(claim),
            ..fields
        })
    }
}

/// A new model, and how it came about. The old one is untouched.
#[derive(Debug, Clone)]
pub struct Outcome<M> {
    /// The model after the request.
    pub model: M,
    /// The record of the request.
    pub evidence: Evidence,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::request;

    fn bounded(bound: f64, relative_bound: f64, tolerance: Option<f64>) -> Evidence {
        let evidence = request::evidence("exact", 9, (bound, 1.0), "sums", 8);
        Evidence {
            relative_bound,
            tolerance,
            ..evidence
        }
    }

    #[test]
    fn exact_is_claimed_with_a_bound_within_the_tolerance_only() {
        let within = bounded(1.0, 1e-9, Some(1e-9));
        assert_eq!(
            (within.claim(), within.tolerance_missed()),
            (Claim::Exact, false)
        );
        for (bound, relative, tolerance) in [
            (1.0, 1.1e-9, Some(1e-9)),
            (1.0, f64::NAN, Some(1e-9)),
            (f64::INFINITY, f64::INFINITY, Some(1e-9)),
            (f64::INFINITY, 0.0, Some(1e-9)),
            (f64::NAN, 0.0, Some(1e-9)),
            (0.0, 0.0, Some(f64::NAN)),
        ] {
            let missed = bounded(bound, relative, tolerance);
            assert_eq!(
                (missed.claim(), missed.tolerance_missed()),
                (Claim::Approximate, true),
                "{missed:?}"
            );
        }
        // Without a tolerance nothing counts as equal, and there is nothing to miss.
        let aimless = bounded(0.0, 0.0, None);
        assert_eq!(
            (aimless.claim(), aimless.tolerance_missed()),
            (Claim::Approximate, false)
        );
    }

    #[test]
    fn a_promise_of_less_than_exact_is_claimed_as_it_is() {
        let near = Evidence {
            promise: Claim::Approximate,
            ..bounded(0.0, 0.0, Some(1e-9))
        };
        assert_eq!(
            (near.claim(), near.tolerance_missed()),
            (Claim::Approximate, false)
        );
        let far = Evidence {
            promise: Claim::Approximate,
            ..bounded(1.0, 1.0, Some(1e-9))
        };
        assert_eq!(
            (far.claim(), far.tolerance_missed()),
            (Claim::Approximate, true)
        );
        let promise = Claim::Certified {
            epsilon: 1.0,
            delta: 1e-3,
        };
        let certified = Evidence {
            promise,
            ..bounded(1.0, 1.0, None)
        };
        assert_eq!(
            (certified.claim(), certified.tolerance_missed()),
            (promise, false)
        );
    }

    #[test]
    fn a_bound_of_the_head_is_no_bound_of_the_network() {
        let mut limited = bounded(1e-12, 1e-13, Some(1e-9));
        limited.limit_to_head();
        assert_eq!(
            (limited.claim(), limited.tolerance_missed()),
            (Claim::Approximate, true)
        );
        assert!(limited.bound.is_infinite() && limited.relative_bound.is_infinite());
        let head = limited.head_bound.unwrap();
        assert_eq!((head.bound, head.relative_bound), (1e-12, 1e-13));
        // The bound of the head is kept when the same evidence is limited again.
        limited.limit_to_head();
        assert_eq!(limited.head_bound, Some(head));
    }

    #[test]
    fn json_has_the_claim_that_was_computed_and_comes_back_whole() {
        let missed = bounded(1.0, 1e-5, Some(1e-9));
        let json = serde_json::to_value(&missed).unwrap();
        assert_eq!(json["claim"]["kind"], "approximate");
        assert_eq!(json["promise"]["kind"], "exact");
        assert_eq!(
            (&json["tolerance"], &json["tolerance_missed"]),
            (&1e-9.into(), &true.into())
        );
        assert_eq!(serde_json::from_value::<Evidence>(json).unwrap(), missed);
    }

    #[test]
    fn a_record_of_before_there_were_promises_is_read() {
        let mut json = serde_json::to_value(bounded(0.0, 0.0, Some(1e-9))).unwrap();
        let fields = json.as_object_mut().unwrap();
        for newer in ["promise", "tolerance", "tolerance_missed"] {
            fields.remove(newer);
        }
        let read: Evidence = serde_json::from_value(json).unwrap();
        assert_eq!((read.promise, read.tolerance), (Claim::Exact, None));
    }
}
