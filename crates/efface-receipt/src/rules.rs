//! The rules of consistency: what the fields of a receipt must say of each other. docs/receipt.md
//! lists every rule under the name that it has here, verify/rules.py has them again, and
//! verify/vectors/rules.json breaks each of them once.
//!
//! Signing and verifying both apply all of them, so that no receipt which contradicts itself enters
//! a log.

use crate::{
    claim::{CopyKind, CopyState, DistanceBound, PrivacySpent, ReceiptClaim},
    fault::ReceiptFault,
    keyring::NamedKeys,
    receipt::{Receipt, RequestKind, RequestOutcome},
};

/// One rule: a name, the field that breaks it, a sentence, and the test.
pub struct ConsistencyRule {
    /// Its name, in docs/receipt.md and in the vectors.
    pub name: &'static str,
    /// What must hold.
    pub says: &'static str,
    field: &'static str,
    holds: fn(&Receipt) -> bool,
}

/// Applies every rule, in the order of the list.
pub(crate) fn check(receipt: &Receipt) -> Result<(), ReceiptFault> {
    match RULES.iter().find(|rule| !(rule.holds)(receipt)) {
        None => Ok(()),
        Some(rule) => Err(ReceiptFault::Contradiction {
            field: rule.field,
            problem: rule.says,
        }),
    }
}

/// Whether rows of the model were exchanged, so that a new model was computed.
fn is_change(receipt: &Receipt) -> bool {
    match receipt.kind {
        RequestKind::Forget => matches!(
            receipt.outcome,
            RequestOutcome::Erased | RequestOutcome::Partial
        ),
        RequestKind::Fit
        | RequestKind::Learn
        | RequestKind::Amend
        | RequestKind::Restore
        | RequestKind::Refit => receipt.outcome == RequestOutcome::Done,
        _ => false,
    }
}

/// The first rule that a receipt breaks is the one that is reported.
pub const RULES: &[ConsistencyRule] = &[
    ConsistencyRule {
        name: "outcome_of_kind",
        says: "a forget ends as erased, partial, not_found or refused, everything else as done or refused",
        field: "outcome",
        holds: |receipt| match receipt.outcome {
            RequestOutcome::Refused => true,
            RequestOutcome::Done => receipt.kind != RequestKind::Forget,
            _ => receipt.kind == RequestKind::Forget,
        },
    },
    ConsistencyRule {
        name: "reason_given",
        says: "partial, not_found and refused give a reason",
        field: "reason",
        holds: |receipt| match receipt.outcome {
            RequestOutcome::Partial | RequestOutcome::NotFound | RequestOutcome::Refused => {
                receipt.reason.is_some()
            }
            RequestOutcome::Erased | RequestOutcome::Done => true,
        },
    },
    ConsistencyRule {
        name: "rows_of_kind",
        says: "a forget that erases removes rows and adds none; a fit and a learn add rows and remove none; an amend \
               removes as many as it adds; a restore adds none; a refit removes and adds rows; every other receipt touches no row",
        field: "rows",
        holds: |receipt| {
            let removed = receipt.rows.removed;
            let added = receipt.rows.added;
            if !is_change(receipt) {
                return removed == 0 && added == 0;
            }
            match receipt.kind {
                RequestKind::Forget => removed > 0 && added == 0,
                RequestKind::Amend => removed > 0 && removed == added,
                RequestKind::Restore => added == 0,
                RequestKind::Refit => removed > 0 && added > 0,
                _ => removed == 0 && added > 0,
            }
        },
    },
    ConsistencyRule {
        name: "rows_commitment",
        says: "a commitment stands for the rows that were touched, and there is none where no row was",
        field: "rows",
        holds: |receipt| {
            let touched = receipt.rows.removed > 0 || receipt.rows.added > 0;
            touched == receipt.rows.commitment.is_some()
        },
    },
    ConsistencyRule {
        name: "subject_of_forget",
        says: "only a forget names a subject",
        field: "subject",
        holds: |receipt| receipt.kind == RequestKind::Forget || receipt.subject.is_none(),
    },
    ConsistencyRule {
        name: "starts_from_nothing",
        says: "a fit starts from no training set and no parameters, everything else from both",
        field: "training_set",
        holds: |receipt| {
            let fit = receipt.kind == RequestKind::Fit;
            fit == receipt.training_set.before.is_none()
                && fit == receipt.parameters.before.is_none()
        },
    },
    ConsistencyRule {
        name: "first_is_fit",
        says: "the first receipt of a log is a fit that was done, and no later one is a fit",
        field: "kind",
        holds: |receipt| {
            let fit = receipt.kind == RequestKind::Fit && receipt.outcome == RequestOutcome::Done;
            if receipt.sequence == 0 {
                fit
            } else {
                receipt.kind != RequestKind::Fit
            }
        },
    },
    ConsistencyRule {
        name: "set_size",
        says: "the training set has after the request as many rows as before, less those removed, plus those added; \
               forgets that were applied together share both states, so that after a forget it may have fewer",
        field: "training_set",
        holds: |receipt| {
            let before = receipt.training_set.before.map_or(0, |state| state.count);
            let after = receipt.training_set.after.count;
            let Some(expected) = before
                .checked_add(receipt.rows.added)
                .and_then(|sum| sum.checked_sub(receipt.rows.removed))
            else {
                return false;
            };
            if receipt.kind == RequestKind::Forget && is_change(receipt) {
                after <= expected
            } else {
                after == expected
            }
        },
    },
    ConsistencyRule {
        name: "set_root",
        says: "training sets of one root have one number of rows",
        field: "training_set",
        holds: |receipt| {
            let Some(before) = receipt.training_set.before else {
                return true;
            };
            before.root != receipt.training_set.after.root || before == receipt.training_set.after
        },
    },
    ConsistencyRule {
        name: "nothing_changed",
        says: "a request that touches no row leaves training set and parameters as they are",
        field: "training_set",
        holds: |receipt| {
            is_change(receipt)
                || receipt.training_set.before == Some(receipt.training_set.after)
                    && receipt.parameters.before == Some(receipt.parameters.after)
        },
    },
    ConsistencyRule {
        name: "claim_of_change",
        says: "where a model was computed there are method, claim and bound, and elsewhere none of them",
        field: "claim",
        holds: |receipt| {
            let change = is_change(receipt);
            receipt.method.is_some() == change
                && receipt.claim.is_some() == change
                && receipt.bound.is_some() == change
        },
    },
    ConsistencyRule {
        name: "exact_has_bound",
        says: "exact is claimed with a distance and a relative bound",
        field: "claim",
        holds: |receipt| match (&receipt.claim, &receipt.bound) {
            (Some(ReceiptClaim::Exact { .. }), bound) => {
                matches!(
                    bound,
                    Some(DistanceBound {
                        distance: Some(_),
                        relative: Some(_),
                        ..
                    })
                )
            }
            _ => true,
        },
    },
    ConsistencyRule {
        name: "exact_within_tolerance",
        says: "exact is claimed with a relative bound of at most the tolerance",
        field: "claim",
        holds: |receipt| match (&receipt.claim, &receipt.bound) {
            (
                Some(ReceiptClaim::Exact { tolerance }),
                Some(DistanceBound {
                    relative: Some(relative),
                    ..
                }),
            ) => relative <= tolerance,
            _ => true,
        },
    },
    ConsistencyRule {
        name: "head_bound_is_no_bound",
        says: "a bound of the head alone stands beside an approximate claim without a distance or a relative bound",
        field: "head_bound",
        holds: |receipt| {
            let is_unbounded = matches!(
                (&receipt.claim, &receipt.bound),
                (
                    Some(ReceiptClaim::Approximate {}),
                    Some(DistanceBound {
                        distance: None,
                        relative: None,
                        ..
                    }),
                )
            );
            receipt.head_bound.is_none() || is_unbounded
        },
    },
    ConsistencyRule {
        name: "forgotten_time",
        says: "forgotten_at is given where rows were removed and nowhere else",
        field: "times",
        holds: |receipt| receipt.times.forgotten_at.is_some() == (receipt.rows.removed > 0),
    },
    ConsistencyRule {
        name: "times_in_order",
        says: "nothing is forgotten or scrubbed before the request is received, or scrubbed before it is forgotten",
        field: "times",
        holds: |receipt| {
            let times = &receipt.times;
            let forgotten = times.forgotten_at.unwrap_or(times.received_at);
            let scrubbed = times.scrubbed_at.unwrap_or(forgotten);
            times.received_at <= forgotten && forgotten <= scrubbed
        },
    },
    ConsistencyRule {
        name: "scrubbed_time",
        says: "scrubbed_at is given by a settle that settles receipts, or beside forgotten_at",
        field: "times",
        holds: |receipt| {
            let scrubbed = receipt.times.scrubbed_at.is_some();
            if receipt.kind == RequestKind::Settle {
                scrubbed == receipt.settles.is_some()
            } else {
                !scrubbed || receipt.times.forgotten_at.is_some()
            }
        },
    },
    ConsistencyRule {
        name: "settles_earlier",
        says: "a settle that was done names a run of earlier receipts or none, every other receipt names none",
        field: "settles",
        holds: |receipt| match &receipt.settles {
            None => true,
            Some(run) => {
                let settle =
                    receipt.kind == RequestKind::Settle && receipt.outcome == RequestOutcome::Done;
                settle && run.first <= run.last && run.last < receipt.sequence
            }
        },
    },
    ConsistencyRule {
        name: "withdrawn_time",
        says: "a withdrawn copy has a time of withdrawal that is not before it was made, a live copy has none",
        field: "copies",
        holds: |receipt| {
            receipt.copies.iter().all(|copy| match copy.withdrawn_at {
                None => copy.state == CopyState::Live,
                Some(time) => copy.state == CopyState::Withdrawn && copy.made_at <= time,
            })
        },
    },
    ConsistencyRule {
        name: "live_version",
        says: "the live version among the copies has the parameters that the request left",
        field: "copies",
        holds: |receipt| {
            let live = receipt
                .copies
                .iter()
                .filter(|copy| copy.kind == CopyKind::Version && copy.state == CopyState::Live);
            live.into_iter()
                .all(|copy| copy.parameters == receipt.parameters.after)
        },
    },
    ConsistencyRule {
        name: "release_given",
        says: "a policy, an export that was done and a forget that erases say how parameters may be published",
        field: "release",
        holds: |receipt| match receipt.kind {
            RequestKind::Policy => receipt.release.is_some(),
            RequestKind::Export => {
                receipt.outcome != RequestOutcome::Done || receipt.release.is_some()
            }
            RequestKind::Forget => !is_change(receipt) || receipt.release.is_some(),
            _ => true,
        },
    },
    ConsistencyRule {
        name: "audit_results",
        says: "an audit that was done has results",
        field: "audit",
        holds: |receipt| {
            let audit =
                receipt.kind == RequestKind::Audit && receipt.outcome == RequestOutcome::Done;
            !audit || !receipt.audit.is_empty()
        },
    },
    ConsistencyRule {
        name: "spends_calibrated",
        says: "only an export with calibrated noise says what it spends",
        field: "release",
        holds: |receipt| {
            let Some(release) = &receipt.release else {
                return true;
            };
            let noisy = release.noise.is_some_and(|deviation| deviation > 0.0);
            let calibrated =
                receipt.kind == RequestKind::Export && noisy && release.calibration.is_some();
            release.privacy.is_none() || calibrated
        },
    },
    ConsistencyRule {
        name: "spends_as_promised",
        says: "an export spends no more than its calibration promises, at the same delta",
        field: "release",
        holds: |receipt| {
            let calibration = receipt
                .release
                .as_ref()
                .and_then(|release| release.calibration.as_ref());
            match (spent(receipt), calibration) {
                (Some(spent), Some(promised)) => {
                    spent.delta == promised.delta
                        && spent.epsilon <= promised.epsilon * (1.0 + 1e-6)
                }
                _ => true,
            }
        },
    },
    ConsistencyRule {
        name: "total_of_parts",
        says: "the total is no less than what one export spends, and counts at least one",
        field: "release",
        holds: |receipt| {
            let Some(spent) = spent(receipt) else {
                return true;
            };
            let Some(total) = &spent.total else {
                return true;
            };
            total.mu >= spent.mu && total.epsilon >= spent.epsilon && total.releases > 0
        },
    },
    ConsistencyRule {
        name: "spent_since_earlier",
        says: "what is spent is counted from an earlier receipt",
        field: "release",
        holds: |receipt| {
            let since = spent(receipt).and_then(|spent| spent.since);
            since.is_none_or(|since| since < receipt.sequence)
        },
    },
    ConsistencyRule {
        name: "keys_named",
        says: "a fit and a key rotation that was done name keys of the log, and no other receipt does: the key that \
               signs, a next key, which after a fit is the same and after a rotation is not the one that retires, and \
               perhaps a recovery key, which is not the next",
        field: "keys",
        holds: |receipt| {
            let naming = matches!(receipt.kind, RequestKind::Fit | RequestKind::KeyRotation)
                && receipt.outcome == RequestOutcome::Done;
            let Some(change) = &receipt.keys else {
                return !naming;
            };
            naming && change.parse().is_ok_and(|keys| are_keys_of(receipt, &keys))
        },
    },
    ConsistencyRule {
        name: "head_before",
        says: "the first receipt was written on no head, every other on a head of at least one and at most all \
               receipts before it",
        field: "previous",
        holds: |receipt| match &receipt.previous {
            None => receipt.sequence == 0,
            Some(head) => head.size >= 1 && head.size <= receipt.sequence,
        },
    },
];

/// Whether the keys that a fit or a rotation names are keys of its log, in their roles.
fn are_keys_of(receipt: &Receipt, keys: &NamedKeys) -> bool {
    let mut all = [
        Some(&keys.by),
        keys.retired.as_ref(),
        Some(&keys.next),
        keys.recovery.as_ref(),
    ]
    .into_iter();
    let roles = match &keys.retired {
        None => receipt.kind == RequestKind::Fit && keys.by == keys.next,
        Some(retired) => {
            receipt.kind == RequestKind::KeyRotation
                && *retired != keys.next
                && keys.by != keys.next
        }
    };
    roles
        && keys.by.id() == receipt.key_id
        && keys.recovery.as_ref() != Some(&keys.next)
        && all.all(|key| key.is_none_or(|key| key.name() == receipt.origin))
}

/// What an export with noise spends.
fn spent(receipt: &Receipt) -> Option<&PrivacySpent> {
    receipt.release.as_ref()?.privacy.as_ref()
}
