//! The rules of a model: when new parameters may be published and with how much noise, and when
//! forgotten rows are scrubbed. A change of them has a receipt: who could publish what, and when,
//! is part of the log.

use efface_receipt::{PrivacyTotal, RequestKind, RequestOutcome};
use serde::Serialize;
use serde_json::{Map, Value};

use super::change::OpenedChange;
use super::open_model::OpenModel;
use super::settle;
use crate::codec::manifest::Manifest;
use crate::codec::model;
use crate::error::{Error, Result};
use crate::ledger::gaussian::{DELTA, EPSILON};
use crate::ledger::suppression::SuppressionScope;
use crate::ledger::{NoisePromise, ReceiptDraft, USUAL_BATCH, WitnessTerms, founding};

/// Rows that may wait to be scrubbed, at most: they are listed in the manifest, which every change
/// writes.
const MOST_WAITING: u64 = 10_000;

/// Witnesses that a policy names, at most: the receipt of the change lists them.
const MOST_WITNESSES: usize = 16;

/// A year: nothing that is forgotten waits longer to be scrubbed.
const LONGEST: u64 = 365 * 86_400;

/// Rows that may wait, and seconds: what a policy gets that names only one of the two.
const USUAL: (u64, u64) = (64, 86_400);

/// When new parameters may be published, and when forgotten rows are scrubbed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReleasePolicy {
    /// Requests that must have come together before an export; 1 for none to wait for. Ten where
    /// nothing was chosen and no noise is calibrated. Requests are counted, not rows: a request is
    /// a person, and a person is what hides among others.
    pub minimum_batch: u64,
    /// Seconds after which an export waits no longer; 0 for never.
    pub delay_seconds: u64,
    /// The noise that is added to exported parameters.
    pub noise: ExportNoise,
    /// Requests since the last export.
    pub waiting: u64,
    /// An upper bound on the distance that the parameters moved since the last export; None before
    /// the first.
    pub moved: Option<f64>,
    /// What exports with noise since the last one without have spent, at the δ of the policy; None
    /// where the policy has no δ, or where noise of one of them was chosen outright.
    pub spent: Option<PrivacyTotal>,
    /// Rows that may wait to be scrubbed; 1 where every forget scrubs before it returns.
    pub settle_after: u64,
    /// Seconds after which they wait no longer; 0 where none ever waits.
    pub settle_within_seconds: u64,
    /// Whether this model can put scrubbing off at all. Models that keep no sums write little at a
    /// forget, and scrub at once whatever the policy says.
    pub can_defer: bool,
    /// What keeps a forgotten row from being learned again.
    pub suppress: SuppressionScope,
    /// Who must have signed the head of the log before anything is exported; None where nobody
    /// must.
    pub witnesses: Option<WitnessTerms>,
}

/// Noise on exported parameters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ExportNoise {
    /// None.
    None,
    /// Gaussian noise of this standard deviation on every number.
    Deviation {
        /// The standard deviation.
        deviation: f64,
    },
    /// As much as (ε, δ) asks for: the analytic Gaussian mechanism of Balle and Wang (2018).
    Calibrated {
        /// ε, above 0.
        epsilon: f64,
        /// δ, between 0 and 1.
        delta: f64,
        /// The distance to hide. An export whose parameters moved further is refused. None measures
        /// the distance: then the noise itself tells how far they moved.
        sensitivity: Option<f64>,
    },
}

/// What to change about a policy; None leaves a part as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PolicyChange {
    /// Requests that an export waits for.
    pub minimum_batch: Option<u64>,
    /// Said by whoever lets an export out with fewer requests than usual, or after a time: whoever
    /// holds two such versions can compute the rows that were forgotten in between.
    pub expose_forgotten: bool,
    /// Seconds after which it waits no longer.
    pub delay_seconds: Option<u64>,
    /// Noise on what is exported.
    pub noise: Option<ExportNoise>,
    /// Rows that may wait to be scrubbed; 1 scrubs at once.
    pub settle_after: Option<u64>,
    /// Seconds after which they wait no longer.
    pub settle_within_seconds: Option<u64>,
    /// What keeps a forgotten row from being learned again.
    pub suppress: Option<SuppressionScope>,
    /// Who must have signed the head of the log before anything is exported; no key at all for
    /// nobody.
    pub witnesses: Option<WitnessTerms>,
}

impl From<&Manifest> for ReleasePolicy {
    fn from(manifest: &Manifest) -> Self {
        let policy = &manifest.policy;
        let noise = match (policy.noise, policy.promise) {
            (
                _,
                Some(NoisePromise {
                    epsilon,
                    delta,
                    sensitivity,
                }),
            ) => ExportNoise::Calibrated {
                epsilon,
                delta,
                sensitivity,
            },
            (Some(deviation), None) => ExportNoise::Deviation { deviation },
            (None, None) => ExportNoise::None,
        };
        Self {
            minimum_batch: policy.batch(),
            delay_seconds: policy.delay_seconds,
            noise,
            waiting: policy.waiting,
            moved: policy.published.then_some(policy.moved),
            spent: policy
                .promise
                .and_then(|promise| policy.account.total(promise.delta)),
            settle_after: policy.settle_after,
            settle_within_seconds: policy.settle_within_seconds,
            can_defer: model::defers(manifest),
            suppress: policy.suppress,
            witnesses: policy.witnesses.clone(),
        }
    }
}

pub(crate) fn policy(model: &OpenModel) -> Result<ReleasePolicy> {
    let _transaction = model.store.begin(false)?;
    Ok(ReleasePolicy::from(&model.snapshot()?.manifest))
}

pub(crate) fn set(model: &OpenModel, asked: &PolicyChange) -> Result<ReleasePolicy> {
    check(asked)?;
    let mut change = OpenedChange::begin(model, true)?;
    let signer = change.signing_key()?;
    let policy = &mut change.manifest.policy;
    policy.minimum_batch = asked.minimum_batch.or(policy.minimum_batch);
    policy.delay_seconds = asked.delay_seconds.unwrap_or(policy.delay_seconds);
    policy.suppress = asked.suppress.unwrap_or(policy.suppress);
    if let Some(witnesses) = &asked.witnesses {
        policy.witnesses = Some(witnesses.clone()).filter(|witnesses| !witnesses.keys.is_empty());
    }
    if let Some(noise) = asked.noise {
        policy.noise = match noise {
            ExportNoise::Deviation { deviation } if deviation > 0.0 => Some(deviation),
            _ => None,
        };
        policy.promise = match noise {
            ExportNoise::Calibrated {
                epsilon,
                delta,
                sensitivity,
            } => Some(NoisePromise {
                epsilon,
                delta,
                sensitivity,
            }),
            _ => None,
        };
    }
    (policy.settle_after, policy.settle_within_seconds) =
        settling((policy.settle_after, policy.settle_within_seconds), asked);
    if policy.noise.is_some() || policy.promise.is_some() {
        // Better found out now than at an export.
        founding::noise_seed(&model.store, &change.manifest.ledger, &model.access)?;
    }
    let found = ReleasePolicy::from(&change.manifest);
    let mut draft = ReceiptDraft::new(
        RequestKind::Policy,
        RequestOutcome::Done,
        change.received_at,
    );
    draft.release = Some(change.manifest.policy.release());
    draft.settings = settings(&found);
    let mut drafts = vec![draft];
    // Rows that wait may by the new rules have waited long enough.
    let is_due = settle::is_due(&change.manifest);
    let mut change = if is_due {
        change.scrub()?
    } else {
        change.unscrubbed()
    };
    drafts.extend(change.draft.take());
    let unchanged = change.opened.unchanged();
    change.sign(&*signer, &unchanged, drafts)?.commit()?;
    Ok(found)
}

/// Count and age after a change: who names one puts scrubbing off, and gets the usual other.
fn settling(now: (u64, u64), asked: &PolicyChange) -> (u64, u64) {
    let off = now.0 <= 1;
    let (after, within) = match (asked.settle_after, asked.settle_within_seconds) {
        (None, None) => return now,
        (Some(after), Some(within)) => (after, within),
        (Some(after), None) => (after, if off { USUAL.1 } else { now.1 }),
        (None, Some(within)) => (if off { USUAL.0 } else { now.0 }, within),
    };
    if after <= 1 || within == 0 {
        (1, 0)
    } else {
        (after, within)
    }
}

fn settings(policy: &ReleasePolicy) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("settle_after_rows".into(), policy.settle_after.into());
    map.insert(
        "settle_within_seconds".into(),
        policy.settle_within_seconds.into(),
    );
    let scope = match policy.suppress {
        SuppressionScope::Ids => "ids",
        SuppressionScope::Subjects => "subjects",
        SuppressionScope::Content => "content",
    };
    map.insert("suppress".into(), scope.into());
    if let Some(witnesses) = &policy.witnesses {
        map.insert("witnesses".into(), witnesses.keys.join(" ").into());
        map.insert("witnesses_needed".into(), witnesses.needed.into());
    }
    map
}

/// What a change takes away from the usual protection of rows that are forgotten.
fn gives_up(asked: &PolicyChange) -> Option<String> {
    if matches!(asked.noise, Some(ExportNoise::Calibrated { .. })) {
        return None;
    }
    let batch = asked.minimum_batch.filter(|batch| *batch < USUAL_BATCH);
    let delay = asked.delay_seconds.filter(|seconds| *seconds > 0);
    match (batch, delay) {
        (Some(batch), _) => Some(format!("a batch of {batch}, where {USUAL_BATCH} is usual,")),
        (None, Some(seconds)) => Some(format!(
            "an export after {seconds} s, however few requests came,"
        )),
        (None, None) => None,
    }
}

fn check(asked: &PolicyChange) -> Result<()> {
    if asked.minimum_batch == Some(0) {
        return Err(Error::request("a batch of 0 is no batch", "10 is usual"));
    }
    if let Some(witnesses) = asked
        .witnesses
        .as_ref()
        .filter(|witnesses| !witnesses.keys.is_empty())
    {
        if witnesses.keys.len() > MOST_WITNESSES {
            let what = format!(
                "{} witnesses are named, and a policy holds {MOST_WITNESSES}",
                witnesses.keys.len()
            );
            return Err(Error::request(what, "name those that matter"));
        }
        witnesses.quorum().map_err(|fault| {
            let hint =
                "give the keys that `efface witness key` prints, and a number from 1 to as many as there are";
            Error::request(format!("these are no witnesses that could agree: {fault}"), hint)
        })?;
    }
    if let Some(gives_up) = gives_up(asked).filter(|_| !asked.expose_forgotten) {
        return Err(Error::Exposes { gives_up });
    }
    if asked
        .settle_after
        .is_some_and(|rows| !(1..=MOST_WAITING).contains(&rows))
    {
        let what = format!("1 to {MOST_WAITING} forgotten rows may wait to be scrubbed");
        return Err(Error::request(what, "1 scrubs every row at once"));
    }
    if asked
        .settle_within_seconds
        .is_some_and(|seconds| seconds > LONGEST)
    {
        return Err(Error::request(
            "a forgotten row waits at most 365 days to be scrubbed",
            "0s scrubs at once",
        ));
    }
    match asked.noise {
        Some(ExportNoise::Deviation { deviation })
            if !(deviation.is_finite() && deviation >= 0.0) =>
        {
            Err(Error::request(
                "noise is a standard deviation: a finite number, 0 or more",
                "0 means none",
            ))
        }
        Some(ExportNoise::Calibrated { epsilon, .. }) if !EPSILON.contains(&epsilon) => {
            Err(Error::request(
                format!(
                    "ε is {epsilon}; it must lie between {} and {}",
                    EPSILON.start(),
                    EPSILON.end()
                ),
                "1 is usual; above 10 it promises next to nothing",
            ))
        }
        Some(ExportNoise::Calibrated { delta, .. }) if !DELTA.contains(&delta) => {
            Err(Error::request(
                format!(
                    "δ is {delta}; it must lie between {:e} and {}",
                    DELTA.start(),
                    DELTA.end()
                ),
                "take less than one over the number of rows, such as 1e-6",
            ))
        }
        Some(ExportNoise::Calibrated {
            sensitivity: Some(distance),
            ..
        }) if !(distance.is_finite() && distance > 0.0) => Err(Error::request(
            "a sensitivity is a distance between parameters: a finite number above 0",
            "`efface policy MODEL` says how far they moved since the last export",
        )),
        _ => Ok(()),
    }
}
