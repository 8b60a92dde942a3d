//! The rule of claims at work, for every family and method: a result that misses its tolerance is
//! repaired by retraining; one that cannot be repaired is kept, whoever named the tolerance. What is
//! kept claims no more than its bound allows, because
//! [`Evidence::claim`](crate::Evidence::claim) is computed.

use super::Model;
use crate::error::{Error, Result};
use crate::evidence::Outcome;
use crate::methods::Method;
use crate::rows::{ChangedRows, RowId, RowStore, Rows};

/// Returns the result, or what `retrain` makes of it where it missed its tolerance, whichever is
/// nearer to retraining.
pub(super) fn repaired(
    mut outcome: Outcome<Model>,
    retrain: impl FnOnce() -> Result<Outcome<Model>>,
) -> Result<Outcome<Model>> {
    let Some(tolerance) = outcome
        .evidence
        .tolerance
        .filter(|_| outcome.evidence.tolerance_missed())
    else {
        return Ok(outcome);
    };
    // Retraining is as far as any method goes. Where nothing bounds the encoder of a network, no
    // method of its head is followed by a training of all of it that nobody asked for.
    if outcome.evidence.method == "retrain" || outcome.evidence.head_bound.is_some() {
        return Ok(outcome);
    }
    let first = outcome.evidence.method.clone();
    let reached = outcome.evidence.relative_bound;
    let mut trained = match retrain() {
        Ok(trained) => trained,
        Err(Error::Stopped) => return Err(Error::Stopped),
        // The first result stands, with the claim that its bound allows.
        Err(error) => {
            outcome.evidence.reason = Some(format!(
                "the bound of {reached:.1e} after {first} is above the tolerance of {tolerance:.1e}, and retraining \
                 failed: {error}"
            ));
            return Ok(outcome);
        }
    };
    trained.evidence.tolerance = Some(tolerance);
    let bound = trained.evidence.relative_bound;
    if !trained.evidence.tolerance_missed() {
        trained.evidence.reason = Some(format!(
            "{first} is within {reached:.1e} of retraining, which is above the tolerance of {tolerance:.1e}"
        ));
        return Ok(trained);
    }
    // Either is kept for its bound. A bound that is not a number is the worse one.
    let mut nearer = if bound < reached || reached.is_nan() {
        trained
    } else {
        outcome
    };
    nearer.evidence.reason = Some(format!(
        "the tolerance is {tolerance:.1e}, and the bound is {reached:.1e} after {first} and {bound:.1e} after \
         retraining: rounding alone reaches as far"
    ));
    Ok(nearer)
}

impl Model {
    /// Retrains with `new` rows in the place of `gone` ones, where learning or amending missed the
    /// model's tolerance.
    pub(super) fn held_to_tolerance(
        &self,
        outcome: Outcome<Self>,
        rows: &dyn RowStore,
        gone: &[RowId],
        new: &Rows,
    ) -> Result<Outcome<Self>> {
        let done = outcome.evidence.clone();
        repaired(outcome, || {
            let changed = ChangedRows::new(rows, gone, Some(new));
            let held;
            let after: &dyn RowStore = if rows.is_beyond_memory() {
                &changed
            } else {
                held = changed.all()?;
                held.as_ref()
            };
            let mut outcome = self.forget(&Method::Retrain, after, &[])?;
            // It is still the change that was asked for, done in another way.
            outcome.evidence.method = done.method;
            outcome.evidence.forgotten = done.forgotten;
            outcome.evidence.learned = done.learned;
            Ok(outcome)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Claim, Evidence};
    use crate::models::request;
    use crate::models::{Recipe, Ridge};
    use crate::rows::Dense;
    use crate::traits::Fit;

    /// What a method left: its name, what it promises, and its bound beside a tolerance of 1e-9.
    fn left(method: &str, promise: Claim, relative_bound: f64) -> Outcome<Model> {
        let rows = Rows::new(Dense::new(vec![1.0, 2.0], 1).unwrap(), vec![1.0, 2.0], 1).unwrap();
        let model = Recipe::new(Ridge::new(1.0)).fit(&rows).unwrap();
        let evidence = request::evidence(method, 2, (relative_bound, 1.0), "", 0);
        Outcome {
            model,
            evidence: Evidence {
                promise,
                ..evidence
            },
        }
    }

    fn judged(outcome: Outcome<Model>, retrained: Result<f64>) -> Result<Evidence> {
        let retrain = || Ok(left("retrain", Claim::Exact, retrained?));
        repaired(outcome, retrain).map(|outcome| outcome.evidence)
    }

    #[test]
    fn what_is_near_enough_is_left_alone() {
        let near = judged(left("exact", Claim::Exact, 1e-9), Err(Error::NoRows)).unwrap();
        assert_eq!(
            (near.method.as_str(), near.claim()),
            ("exact", Claim::Exact)
        );
    }

    #[test]
    fn a_missed_tolerance_is_repaired_by_retraining_whatever_the_method_promised() {
        for promise in [Claim::Exact, Claim::Approximate] {
            let repaired = judged(left("newton", promise, f64::INFINITY), Ok(1e-15)).unwrap();
            assert_eq!(
                (repaired.method.as_str(), repaired.claim()),
                ("retrain", Claim::Exact)
            );
            assert!(
                repaired
                    .reason
                    .unwrap()
                    .starts_with("newton is within inf of retraining")
            );
        }
    }

    #[test]
    fn the_nearer_of_what_cannot_be_repaired_is_kept_as_approximate() {
        let missed = |first| left("exact", Claim::Exact, first);
        for (first, second, kept) in [
            (1e-5, 1e-6, "retrain"),
            (1e-6, 1e-5, "exact"),
            (f64::NAN, 1e-5, "retrain"),
            (1e-5, f64::NAN, "exact"),
        ] {
            let kept_evidence = judged(missed(first), Ok(second)).unwrap();
            assert_eq!(
                (kept_evidence.method.as_str(), kept_evidence.claim()),
                (kept, Claim::Approximate)
            );
            assert!(kept_evidence.tolerance_missed());
            assert!(
                kept_evidence
                    .reason
                    .unwrap()
                    .starts_with("the tolerance is 1.0e-9, and the bound is")
            );
        }
    }

    #[test]
    fn a_retraining_that_fails_leaves_the_first_result_unless_it_was_stopped() {
        let missed = || left("exact", Claim::Exact, 1e-5);
        let kept = judged(missed(), Err(Error::Overflow)).unwrap();
        assert_eq!(
            (kept.method.as_str(), kept.claim()),
            ("exact", Claim::Approximate)
        );
        assert!(
            kept.reason
                .unwrap()
                .contains("retraining failed: the values are too large")
        );
        assert_eq!(
            judged(missed(), Err(Error::Stopped)).unwrap_err(),
            Error::Stopped
        );
    }

    #[test]
    fn retraining_follows_neither_itself_nor_the_head_of_a_network() {
        let mut head = left("exact", Claim::Exact, 1e-5);
        head.evidence.limit_to_head();
        for first in [left("retrain", Claim::Exact, 1e-5), head] {
            let method = first.evidence.method.clone();
            let kept = judged(first, Ok(0.0)).unwrap();
            assert!(kept.tolerance_missed());
            assert_eq!((kept.claim(), kept.method), (Claim::Approximate, method));
        }
    }
}
