//! A receipt as a JSON value, and out of one. What serde derives does the same for any format; here
//! one format is enough, and the verifier that browsers load is a quarter smaller without it. A
//! test holds the two against each other.
//!
//! A member that is missing reads as null. Whoever reads a receipt compares it with what would be
//! written, so that a null that was left out is found there.

use serde_json::{Map, Value};

use crate::{
    claim::{
        AuditEntry, BoundOrigin, Calibration, CopyKind, CopyState, DistanceBound, KnownCopy,
        PrivacySpent, PrivacyTotal, ReceiptClaim, ReleaseTerms, SensitivitySource,
    },
    fault::ReceiptFault,
    hash::Hash,
    receipt::{
        KeyChange, LogHead, Receipt, RequestId, RequestKind, RequestOutcome, RequestTimes,
        RowsTouched, SettledRun, StateChange, UncoveredPart, decimal,
    },
    signature::KeyId,
    time::Time,
    training_set::SetState,
};

/// What has a form in JSON.
pub(crate) trait JsonForm: Sized {
    fn from_json(value: Value) -> Result<Self, ReceiptFault>;

    /// Numbers that are not finite become null.
    fn to_json(&self) -> Value;
}

/// A fault of the schema.
pub(crate) fn schema(problem: &str) -> ReceiptFault {
    ReceiptFault::Schema(problem.to_owned())
}

/// The members of an object that were not read yet.
struct Members(Map<String, Value>);

impl Members {
    fn of(value: Value) -> Result<Self, ReceiptFault> {
        match value {
            Value::Object(members) => Ok(Self(members)),
            _ => Err(schema("an object is missing")),
        }
    }

    fn value(&mut self, name: &str) -> Value {
        self.0.remove(name).unwrap_or_default()
    }

    fn read<T: JsonForm>(&mut self, name: &str) -> Result<T, ReceiptFault> {
        T::from_json(self.value(name)).map_err(|fault| at(name, fault))
    }

    /// Members to be written, in the order of the fields.
    fn none() -> Self {
        Self(Map::new())
    }

    fn write(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    fn end(self) -> Result<(), ReceiptFault> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(schema("a field is unknown"))
        }
    }
}

/// A fault with the way to it: the names are those of the schema, never of the document.
fn at(name: &str, fault: ReceiptFault) -> ReceiptFault {
    match fault {
        ReceiptFault::Schema(problem) => {
            let mut text = name.to_owned();
            text.push_str(": ");
            text.push_str(&problem);
            ReceiptFault::Schema(text)
        }
        other => other,
    }
}

/// Reads structs, whose fields are all named: a field that is forgotten here does not compile.
macro_rules! objects {
    ($($name:ident { $($field:ident),* $(; $odd:ident = $module:ident)? })*) => {$(
        impl JsonForm for $name {
            fn from_json(value: Value) -> Result<Self, ReceiptFault> {
                let mut members = Members::of(value)?;
                let read = Self {
                    $($field: members.read(stringify!($field))?,)*
                    $($odd: $module::from_json(members.value(stringify!($odd)))?,)?
                };
                members.end()?;
                Ok(read)
            }

            fn to_json(&self) -> Value {
                let mut members = Members::none();
                $(members.write(stringify!($field), self.$field.to_json());)*
                $(members.write(stringify!($odd), $module::to_json(self.$odd));)?
                Value::Object(members.0)
            }
        }
    )*};
}

objects! {
    Receipt {
        schema, id, origin, sequence, request_id, kind, outcome, reason, times, subject, rows, training_set, parameters, method,
        efface, settings, claim, bound, head_bound, audit, not_covered, kept_beside, copies, release, settles, keys, key_id, previous;
        seed = decimal
    }
    UncoveredPart { code, detail }
    RequestTimes { requested_at, received_at, forgotten_at, scrubbed_at }
    RowsTouched { commitment, removed, added }
    LogHead { size, root }
    KeyChange { by, retired, next, recovery }
    SettledRun { first, last }
    DistanceBound { distance, relative, source }
    AuditEntry { test, passed, value, threshold, trials }
    KnownCopy { number, kind, state, parameters, made_at, withdrawn_at }
    Calibration { epsilon, delta, sensitivity, source }
    ReleaseTerms { minimum_batch, batch, delay_seconds, noise, calibration, privacy, warnings }
    PrivacySpent { delta, mu, epsilon, total, since }
    PrivacyTotal { mu, epsilon, releases }
    SetState { root, count }
}

impl<T: JsonForm> JsonForm for StateChange<T> {
    fn from_json(value: Value) -> Result<Self, ReceiptFault> {
        let mut members = Members::of(value)?;
        let read = Self {
            before: members.read("before")?,
            after: members.read("after")?,
        };
        members.end()?;
        Ok(read)
    }

    fn to_json(&self) -> Value {
        let mut members = Members::none();
        members.write("before", self.before.to_json());
        members.write("after", self.after.to_json());
        Value::Object(members.0)
    }
}

/// Enums that are words.
macro_rules! words {
    ($($name:ident { $($word:literal = $variant:ident),* })*) => {$(
        impl JsonForm for $name {
            fn from_json(value: Value) -> Result<Self, ReceiptFault> {
                match value.as_str() {
                    $(Some($word) => Ok(Self::$variant),)*
                    _ => Err(schema("a word is not one of those that stand here")),
                }
            }

            fn to_json(&self) -> Value {
                Value::from(match self {
                    $(Self::$variant => $word,)*
                })
            }
        }

        #[cfg(test)]
        impl $name {
            const LISTED: &[Self] = &[$(Self::$variant),*];
        }
    )*};
}

words! {
    RequestKind {
        "fit" = Fit, "forget" = Forget, "learn" = Learn, "amend" = Amend, "settle" = Settle, "export" = Export,
        "withdraw" = Withdraw, "key_rotation" = KeyRotation, "policy" = Policy, "audit" = Audit, "restore" = Restore,
        "destroy" = Destroy, "refit" = Refit
    }
    RequestOutcome {
        "erased" = Erased, "partial" = Partial, "not_found" = NotFound, "refused" = Refused, "done" = Done
    }
    BoundOrigin { "measured" = Measured, "carried" = Carried }
    CopyKind { "version" = Version, "export" = Export }
    CopyState { "live" = Live, "withdrawn" = Withdrawn }
    SensitivitySource { "given" = Given, "measured" = Measured }
}

impl JsonForm for RequestId {
    fn from_json(value: Value) -> Result<Self, ReceiptFault> {
        let mut members = Members::of(value)?;
        let read = match members.value("given") {
            Value::Null => Self::Committed(members.read("committed")?),
            given => Self::Given(String::from_json(given)?),
        };
        members.end()?;
        Ok(read)
    }

    fn to_json(&self) -> Value {
        let mut members = Members::none();
        match self {
            Self::Given(text) => members.write("given", text.to_json()),
            Self::Committed(hash) => members.write("committed", hash.to_json()),
        }
        Value::Object(members.0)
    }
}

impl JsonForm for ReceiptClaim {
    fn from_json(value: Value) -> Result<Self, ReceiptFault> {
        let mut members = Members::of(value)?;
        let read = match members.value("kind").as_str() {
            Some("exact") => Self::Exact {
                tolerance: members.read("tolerance")?,
            },
            Some("certified") => Self::Certified {
                epsilon: members.read("epsilon")?,
                delta: members.read("delta")?,
                noise: members.read("noise")?,
                unit: members.read("unit")?,
                budget: members.read("budget")?,
                used: members.read("used")?,
                left: members.read("left")?,
                retrained: members.read("retrained")?,
                adaptive: members.read("adaptive")?,
                assumptions: members.read("assumptions")?,
            },
            Some("approximate") => Self::Approximate {},
            _ => return Err(schema("the kind of the claim is unknown")),
        };
        members.end()?;
        Ok(read)
    }

    fn to_json(&self) -> Value {
        let mut members = Members::none();
        let kind = match self {
            Self::Exact { tolerance } => {
                members.write("tolerance", tolerance.to_json());
                "exact"
            }
            Self::Certified {
                epsilon,
                delta,
                noise,
                unit,
                budget,
                used,
                left,
                retrained,
                adaptive,
                assumptions,
            } => {
                let numbers = [
                    ("epsilon", epsilon),
                    ("delta", delta),
                    ("noise", noise),
                    ("budget", budget),
                    ("used", used),
                    ("left", left),
                ];
                numbers
                    .into_iter()
                    .for_each(|(name, number)| members.write(name, number.to_json()));
                members.write("unit", unit.to_json());
                members.write("retrained", retrained.to_json());
                members.write("adaptive", adaptive.to_json());
                members.write("assumptions", assumptions.to_json());
                "certified"
            }
            Self::Approximate {} => "approximate",
        };
        members.write("kind", Value::from(kind));
        Value::Object(members.0)
    }
}

impl<T: JsonForm> JsonForm for Option<T> {
    fn from_json(value: Value) -> Result<Self, ReceiptFault> {
        if value.is_null() {
            Ok(None)
        } else {
            T::from_json(value).map(Some)
        }
    }

    fn to_json(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::to_json)
    }
}

impl<T: JsonForm> JsonForm for Vec<T> {
    fn from_json(value: Value) -> Result<Self, ReceiptFault> {
        let Value::Array(items) = value else {
            return Err(schema("a list is missing"));
        };
        items.into_iter().map(T::from_json).collect()
    }

    fn to_json(&self) -> Value {
        Value::Array(self.iter().map(T::to_json).collect())
    }
}

impl JsonForm for Map<String, Value> {
    fn from_json(value: Value) -> Result<Self, ReceiptFault> {
        Members::of(value).map(|members| members.0)
    }

    fn to_json(&self) -> Value {
        Value::Object(self.clone())
    }
}

impl JsonForm for String {
    fn from_json(value: Value) -> Result<Self, ReceiptFault> {
        if let Value::String(text) = value {
            Ok(text)
        } else {
            Err(schema("a text is missing"))
        }
    }

    fn to_json(&self) -> Value {
        Value::String(self.clone())
    }
}

impl JsonForm for u64 {
    fn from_json(value: Value) -> Result<Self, ReceiptFault> {
        value
            .as_u64()
            .ok_or_else(|| schema("a whole number is missing"))
    }

    fn to_json(&self) -> Value {
        Value::from(*self)
    }
}

impl JsonForm for f64 {
    fn from_json(value: Value) -> Result<Self, ReceiptFault> {
        value.as_f64().ok_or_else(|| schema("a number is missing"))
    }

    fn to_json(&self) -> Value {
        Value::from(*self)
    }
}

impl JsonForm for bool {
    fn from_json(value: Value) -> Result<Self, ReceiptFault> {
        value
            .as_bool()
            .ok_or_else(|| schema("true or false is missing"))
    }

    fn to_json(&self) -> Value {
        Value::from(*self)
    }
}

impl JsonForm for Hash {
    fn from_json(value: Value) -> Result<Self, ReceiptFault> {
        let found = value.as_str().and_then(Hash::from_hex);
        found.ok_or_else(|| schema("a hash is 64 lower-case hexadecimal digits"))
    }

    fn to_json(&self) -> Value {
        Value::String(self.to_string())
    }
}

impl JsonForm for KeyId {
    fn from_json(value: Value) -> Result<Self, ReceiptFault> {
        let found = value.as_str().and_then(KeyId::parse);
        found.ok_or_else(|| schema("a key id is 8 lower-case hexadecimal digits"))
    }

    fn to_json(&self) -> Value {
        Value::String(self.to_string())
    }
}

impl JsonForm for Time {
    fn from_json(value: Value) -> Result<Self, ReceiptFault> {
        let found = value.as_str().and_then(Time::parse);
        found.ok_or_else(|| schema("a time is written like 2026-03-02T09:15:00.250Z"))
    }

    fn to_json(&self) -> Value {
        Value::String(self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_as_serde_has_it<T: JsonForm + serde::Serialize + PartialEq>(words: &[T]) {
        for word in words {
            let written = serde_json::to_value(word).unwrap();
            assert_eq!(word.to_json(), written);
            assert!(T::from_json(written).unwrap() == *word);
        }
        assert!(T::from_json("another".into()).is_err());
    }

    #[test]
    fn words_are_those_of_serde() {
        is_as_serde_has_it(RequestKind::LISTED);
        is_as_serde_has_it(RequestOutcome::LISTED);
        is_as_serde_has_it(BoundOrigin::LISTED);
        is_as_serde_has_it(CopyKind::LISTED);
        is_as_serde_has_it(CopyState::LISTED);
        is_as_serde_has_it(SensitivitySource::LISTED);
    }

    #[test]
    fn faults_name_the_place_and_never_the_content() {
        let fault = |text: &str| {
            let value = serde_json::from_str(text).unwrap();
            RowsTouched::from_json(value).unwrap_err().to_string()
        };
        let removed = fault(r#"{"commitment":null,"removed":"Ann","added":1}"#);
        assert!(
            removed.contains("removed: a whole number is missing") && !removed.contains("Ann"),
            "{removed}"
        );
        let unknown = fault(r#"{"commitment":null,"removed":0,"added":1,"Ann":2}"#);
        assert!(
            unknown.contains("unknown") && !unknown.contains("Ann"),
            "{unknown}"
        );
        assert!(fault("[null,0,1]").contains("an object is missing"));
        assert!(fault(r#"{"commitment":null,"removed":-1,"added":1}"#).contains("removed"));
    }
}
