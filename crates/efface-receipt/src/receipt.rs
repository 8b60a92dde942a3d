//! The receipt: what a request did to a model. Every field is explained for auditors in
//! docs/receipt.md.
//!
//! A receipt never holds the content of a row, nor an identifier of a person: subjects, rows and
//! (unless the caller says that its request ids are opaque) request ids appear only as salted
//! commitments. Free text comes from efface, not from data. All fields are always written, `null`
//! where they do not apply, so that there is one form only.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    claim::{
        AuditEntry, Calibration, DistanceBound, KnownCopy, PrivacySpent, ReceiptClaim, ReleaseTerms,
    },
    fault::ReceiptFault,
    hash::Hash,
    json_form::JsonForm,
    limits::{MAX_CODE_BYTES, MAX_LIST, MAX_TEXT_BYTES},
    rules,
    signature::{KeyId, check_name},
    time::Time,
    training_set::SetState,
};

/// The version of the schema that this crate reads and writes.
pub const SCHEMA: &str = "efface.receipt/1";

/// What a request did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// [`SCHEMA`].
    pub schema: String,
    /// A name for this receipt: 32 hexadecimal digits drawn at random.
    pub id: String,
    /// The log it belongs to, which is also the name of the signing key.
    pub origin: String,
    /// Its place in the log, from 0.
    pub sequence: u64,
    /// The request it answers; null for what the engine does on its own.
    pub request_id: Option<RequestId>,
    /// What was asked for.
    pub kind: RequestKind,
    /// What came of it.
    pub outcome: RequestOutcome,
    /// Why, where it is not plain.
    pub reason: Option<String>,
    /// When.
    pub times: RequestTimes,
    /// The salted commitment to the subject; null when rows were named one by one.
    pub subject: Option<Hash>,
    /// The rows that left and joined.
    pub rows: RowsTouched,
    /// The training set before and after.
    pub training_set: StateChange<SetState>,
    /// SHA-256 of the parameters before and after.
    pub parameters: StateChange<Hash>,
    /// The method that did the work; null when no model was computed.
    pub method: Option<String>,
    /// The version of efface.
    pub efface: String,
    /// The settings that the result depends on.
    pub settings: Map<String, Value>,
    /// The seed of all randomness, as a decimal string: JSON keeps integers below 2⁵³ only.
    #[serde(with = "decimal")]
    pub seed: Option<u64>,
    /// What is promised; null when no model was computed.
    pub claim: Option<ReceiptClaim>,
    /// What was measured; null when no model was computed.
    pub bound: Option<DistanceBound>,
    /// The distance of a network's head to its optimum on the features of an encoder that nothing
    /// bounds; null for every other model.
    pub head_bound: Option<DistanceBound>,
    /// Tests that were run on the new model.
    pub audit: Vec<AuditEntry>,
    /// What this request could not take out.
    pub not_covered: Vec<UncoveredPart>,
    /// What is kept beside the model although none of its answers depends on it.
    pub kept_beside: Vec<UncoveredPart>,
    /// Versions and exports that the engine knows of.
    pub copies: Vec<KnownCopy>,
    /// How the new parameters may be published; null when nothing new is to be published.
    pub release: Option<ReleaseTerms>,
    /// For a settle: the receipts whose rows it scrubbed.
    pub settles: Option<SettledRun>,
    /// For a fit and a key rotation: the public keys of the log from here on.
    pub keys: Option<KeyChange>,
    /// The key that signs this receipt.
    pub key_id: KeyId,
    /// The head of the log that this receipt was written on; null for the first.
    pub previous: Option<LogHead>,
}

/// One thing that a request could not take out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UncoveredPart {
    /// What it is, for programs: a name that stays the same from version to version. Later versions
    /// of efface may have names that this one does not know, so that any name of the form is
    /// accepted.
    pub code: String,
    /// What it is, for people.
    pub detail: String,
}

/// A caller's name for a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestId {
    /// As given. Only for callers whose ids are opaque: a ticket number, a UUID, never an address.
    Given(String),
    /// The salted commitment to it.
    Committed(Hash),
}

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestKind {
    /// The model was made.
    Fit,
    /// Rows leave.
    Forget,
    /// Rows join.
    Learn,
    /// Rows change.
    Amend,
    /// Pending work is folded in and the bytes of forgotten rows are erased.
    Settle,
    /// A copy is handed out.
    Export,
    /// Copies are withdrawn.
    Withdraw,
    /// The signing key changes.
    KeyRotation,
    /// The rules change under which parameters are published and rows are scrubbed.
    Policy,
    /// The model was tested.
    Audit,
    /// An older copy took the place of the model, and what was forgotten since was forgotten from
    /// it.
    Restore,
    /// The key was destroyed that the rows and the arrays of the model are encrypted with.
    Destroy,
    /// A new fit on other rows took the place of the model; the log goes on.
    Refit,
}

/// What came of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestOutcome {
    /// Every row that was named is out of the model.
    Erased,
    /// Some of the rows that were named are out; the reason says which were not there.
    Partial,
    /// None of the rows that were named was there.
    NotFound,
    /// Nothing was changed; the reason says why.
    Refused,
    /// For all that is not a forget: it was done.
    Done,
}

impl RequestKind {
    /// The word that stands in receipts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fit => "fit",
            Self::Forget => "forget",
            Self::Learn => "learn",
            Self::Amend => "amend",
            Self::Settle => "settle",
            Self::Export => "export",
            Self::Withdraw => "withdraw",
            Self::KeyRotation => "key_rotation",
            Self::Policy => "policy",
            Self::Audit => "audit",
            Self::Restore => "restore",
            Self::Destroy => "destroy",
            Self::Refit => "refit",
        }
    }
}

impl RequestOutcome {
    /// The word that stands in receipts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Erased => "erased",
            Self::Partial => "partial",
            Self::NotFound => "not_found",
            Self::Refused => "refused",
            Self::Done => "done",
        }
    }
}

/// When things happened. A clock may be wrong: the log's order, not these, decides what came first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestTimes {
    /// When the person asked, as the caller reports it.
    pub requested_at: Option<Time>,
    /// When the engine took the request.
    pub received_at: Time,
    /// When the new parameters became durable; null when nothing was forgotten.
    pub forgotten_at: Option<Time>,
    /// When the rows' bytes were erased; null where that was put off: a later settle has a receipt
    /// of its own, which names this one. In the receipt of a settle, when it erased the rows that
    /// had waited.
    pub scrubbed_at: Option<Time>,
}

/// The rows that a request touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowsTouched {
    /// The commitment to all of them (see [`crate::rows_commitment`]); null for none.
    pub commitment: Option<Hash>,
    /// How many left.
    pub removed: u64,
    /// How many joined.
    pub added: u64,
}

/// A state before and after. Requests that were applied together share both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateChange<T> {
    /// Before; null when there was nothing.
    pub before: Option<T>,
    /// After.
    pub after: T,
}

/// The head of a log, without its signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogHead {
    /// How many receipts.
    pub size: u64,
    /// The root over them.
    pub root: Hash,
}

/// The keys of a log from a receipt on, each as `name+id+base64`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyChange {
    /// The key that signs this receipt: the one that retires, or the recovery key where that one
    /// was lost.
    pub by: String,
    /// The key that signed until now and signs nothing after this receipt; null in the first
    /// receipt.
    pub retired: Option<String>,
    /// The key that signs from the next receipt on; in the first receipt the key that signs it too.
    pub next: String,
    /// The key that may hand over in place of a lost one; null when there is none.
    pub recovery: Option<String>,
}

/// A run of receipts, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettledRun {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
}

impl Receipt {
    /// The receipt as JSON, with all its fields.
    pub fn to_value(&self) -> Value {
        self.to_json()
    }

    /// Checks what the types cannot: that fields agree with each other, that texts are short and
    /// printable and numbers finite. Signing and verifying both call it.
    pub fn check(&self) -> Result<(), ReceiptFault> {
        let wrong = |field, problem| Err(ReceiptFault::Contradiction { field, problem });
        if self.schema != SCHEMA {
            return wrong(
                "schema",
                "this verifier reads efface.receipt/1 only; a newer efface may read it",
            );
        }
        if self.id.len() != 32
            || !self
                .id
                .bytes()
                .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        {
            return wrong("id", "must be 32 lower-case hexadecimal digits");
        }
        check_name(&self.origin)?;
        self.check_texts()?;
        self.check_numbers()?;
        rules::check(self)
    }

    fn check_texts(&self) -> Result<(), ReceiptFault> {
        let mut texts: Vec<(&'static str, &str)> = vec![("efface", &self.efface)];
        texts.extend(self.reason.as_deref().map(|text| ("reason", text)));
        texts.extend(self.method.as_deref().map(|text| ("method", text)));
        texts.extend(
            self.not_covered
                .iter()
                .map(|part| ("not_covered", part.detail.as_str())),
        );
        texts.extend(
            self.kept_beside
                .iter()
                .map(|part| ("kept_beside", part.detail.as_str())),
        );
        texts.extend(
            self.audit
                .iter()
                .map(|audit| ("audit", audit.test.as_str())),
        );
        if let Some(RequestId::Given(text)) = &self.request_id {
            texts.push(("request_id", text));
        }
        if let Some(ReceiptClaim::Certified {
            unit, assumptions, ..
        }) = &self.claim
        {
            texts.push(("claim", unit));
            texts.extend(assumptions.iter().map(|text| ("claim", text.as_str())));
        }
        if let Some(release) = &self.release {
            texts.extend(
                release
                    .warnings
                    .iter()
                    .map(|text| ("release", text.as_str())),
            );
        }
        for (field, text) in texts {
            if text.is_empty() || text.len() > MAX_TEXT_BYTES || text.chars().any(char::is_control)
            {
                return Err(ReceiptFault::Contradiction {
                    field,
                    problem: "a text has 1 to 1024 bytes and no control characters",
                });
            }
        }
        for (field, parts) in [
            ("not_covered", &self.not_covered),
            ("kept_beside", &self.kept_beside),
        ] {
            if parts.iter().any(|part| !is_code(&part.code)) {
                let problem =
                    "a code has 1 to 64 characters of a-z, 0-9 and _, and begins with a letter";
                return Err(ReceiptFault::Contradiction { field, problem });
            }
        }
        let assumptions = match &self.claim {
            Some(ReceiptClaim::Certified { assumptions, .. }) => assumptions.len(),
            _ => 0,
        };
        let warnings = self
            .release
            .as_ref()
            .map_or(0, |release| release.warnings.len());
        for (what, size) in [
            ("audit", self.audit.len()),
            ("not_covered", self.not_covered.len()),
            ("kept_beside", self.kept_beside.len()),
            ("copies", self.copies.len()),
            ("settings", self.settings.len()),
            ("claim.assumptions", assumptions),
            ("release.warnings", warnings),
        ] {
            if size > MAX_LIST {
                return Err(ReceiptFault::TooLarge {
                    what,
                    size,
                    limit: MAX_LIST,
                });
            }
        }
        Ok(())
    }

    fn check_numbers(&self) -> Result<(), ReceiptFault> {
        let mut numbers: Vec<(&'static str, f64)> = Vec::new();
        match &self.claim {
            Some(ReceiptClaim::Exact { tolerance }) => numbers.push(("claim", *tolerance)),
            Some(ReceiptClaim::Certified {
                epsilon,
                delta,
                noise,
                budget,
                used,
                left,
                ..
            }) => {
                numbers.extend(
                    [*epsilon, *delta, *noise, *budget, *used, *left].map(|n| ("claim", n)),
                );
            }
            Some(ReceiptClaim::Approximate {}) | None => {}
        }
        for (field, bound) in [("bound", &self.bound), ("head_bound", &self.head_bound)] {
            let found = bound
                .iter()
                .flat_map(|bound| [bound.distance, bound.relative]);
            numbers.extend(found.flatten().map(|n| (field, n)));
        }
        if let Some(release) = &self.release {
            numbers.extend(release.noise.map(|n| ("release", n)));
            if let Some(Calibration {
                epsilon,
                delta,
                sensitivity,
                ..
            }) = &release.calibration
            {
                numbers.extend(
                    [Some(*epsilon), Some(*delta), *sensitivity]
                        .into_iter()
                        .flatten()
                        .map(|n| ("release", n)),
                );
            }
            if let Some(PrivacySpent {
                delta,
                mu,
                epsilon,
                total,
                ..
            }) = &release.privacy
            {
                numbers.extend([*delta, *mu, *epsilon].map(|n| ("release", n)));
                numbers.extend(
                    total
                        .iter()
                        .flat_map(|total| [total.mu, total.epsilon])
                        .map(|n| ("release", n)),
                );
            }
        }
        for (field, number) in numbers {
            if !number.is_finite() || number < 0.0 {
                return Err(ReceiptFault::Contradiction {
                    field,
                    problem: "must be a finite number, not negative",
                });
            }
        }
        // What an audit measures may well be negative.
        if self
            .audit
            .iter()
            .flat_map(|a| [a.value, a.threshold])
            .flatten()
            .any(|n| !n.is_finite())
        {
            return Err(ReceiptFault::Contradiction {
                field: "audit",
                problem: "must be a finite number",
            });
        }
        Ok(())
    }
}

/// Whether a text has the form of a code: a lower-case name that programs compare.
fn is_code(text: &str) -> bool {
    text.len() <= MAX_CODE_BYTES
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
}

/// A 64-bit integer as a decimal string.
pub(crate) mod decimal {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
    use serde_json::Value;

    use crate::fault::ReceiptFault;
    use crate::json_form::{JsonForm, schema};

    const BAD: &str = "a seed is a decimal integer below 2^64, in a string";

    pub(super) fn serialize<S: Serializer>(
        value: &Option<u64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.map(|number| number.to_string()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<u64>, D::Error> {
        read(Option::<String>::deserialize(deserializer)?).ok_or_else(|| D::Error::custom(BAD))
    }

    pub(crate) fn from_json(value: Value) -> Result<Option<u64>, ReceiptFault> {
        read(Option::from_json(value)?).ok_or_else(|| schema(BAD))
    }

    pub(crate) fn to_json(seed: Option<u64>) -> Value {
        seed.map_or(Value::Null, |number| Value::String(number.to_string()))
    }

    /// None for a text that is no seed.
    fn read(text: Option<String>) -> Option<Option<u64>> {
        let Some(text) = text else { return Some(None) };
        text.parse::<u64>()
            .ok()
            .filter(|number| number.to_string() == text)
            .map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_json() {
        use RequestKind as K;
        use RequestOutcome as O;
        for kind in [
            K::Fit,
            K::Forget,
            K::Learn,
            K::Amend,
            K::Settle,
            K::Export,
            K::Withdraw,
            K::KeyRotation,
            K::Policy,
            K::Audit,
        ] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
        for outcome in [O::Erased, O::Partial, O::NotFound, O::Refused, O::Done] {
            assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.name());
        }
    }
}
