//! From what a change found out to what its receipt says.

use efface::methods::Newton;
use efface::{AnyRecipe, Claim, Evidence, Method, NotCovered};
use efface_receipt::{
    Audit, Bound, BoundSource, Change, Hash, Head, Kind, KnownCopy, MAX_LIST, MAX_TEXT_BYTES, Outcome,
    PublicKey, Receipt, Release, RequestId, RowsTouched, SCHEMA, SetState, Settled, Time, Times,
    UncoveredPart, rows_commitment, sha256,
};
use serde_json::{Map, Value};

use super::{LedgerHead, key};
use crate::codec::network::NetworkInfo;
use crate::file::{ArrayHead, FileFault};
use crate::operations::look;

/// Integers beyond this lose digits in JSON.
const EXACT: u64 = 1 << 53;

/// The model before and after, which requests that are applied together share.
pub(crate) struct ModelTransition {
    pub(crate) before: Option<(SetState, Hash)>,
    pub(crate) after: (SetState, Hash),
    pub(crate) copies: Vec<KnownCopy>,
}

/// One receipt to be.
pub(crate) struct ReceiptDraft {
    pub(crate) kind: Kind,
    pub(crate) outcome: Outcome,
    pub(crate) reason: Option<String>,
    /// The commitment to the caller's name for the request.
    pub(crate) request: Option<Hash>,
    pub(crate) requested_at: Option<Time>,
    pub(crate) received_at: Time,
    /// When the rows left the model.
    pub(crate) forgotten_at: Option<Time>,
    /// When they were overwritten, or those that had waited were.
    pub(crate) scrubbed_at: Option<Time>,
    /// For a settle: the receipts whose rows it overwrote.
    pub(crate) settles: Option<Settled>,
    pub(crate) subject: Option<Hash>,
    pub(crate) gone: Vec<Hash>,
    pub(crate) come: Vec<Hash>,
    pub(crate) findings: Option<MethodFindings>,
    pub(crate) release: Option<Release>,
    pub(crate) next_key: Option<String>,
    pub(crate) audit: Vec<Audit>,
    /// Settings of what computed no model, such as a policy, or beside those of the method.
    pub(crate) settings: Map<String, Value>,
}

/// What a method found out, in the receipt's words.
#[derive(Clone)]
pub(crate) struct MethodFindings {
    method: String,
    settings: Map<String, Value>,
    seed: Option<u64>,
    claim: efface_receipt::Claim,
    bound: Bound,
    not_covered: Vec<NotCovered>,
}

impl ReceiptDraft {
    /// One about nothing but itself.
    pub(crate) fn new(kind: Kind, outcome: Outcome, received_at: Time) -> Self {
        Self {
            kind,
            outcome,
            reason: None,
            request: None,
            requested_at: None,
            received_at,
            forgotten_at: None,
            scrubbed_at: None,
            settles: None,
            subject: None,
            gone: Vec::new(),
            come: Vec::new(),
            findings: None,
            release: None,
            next_key: None,
            audit: Vec::new(),
            settings: Map::new(),
        }
    }

    pub(super) fn receipt(
        self,
        ledger: &LedgerHead,
        stage: &ModelTransition,
        sequence: u64,
        previous: Option<Head>,
    ) -> Result<Receipt, FileFault> {
        let id = key::name::<16>().map_err(|error| FileFault::Damaged(error.to_string()))?;
        let key_id = PublicKey::parse(&ledger.key)?.id();
        let touched: Vec<Hash> = self.gone.iter().chain(&self.come).copied().collect();
        let rows = RowsTouched {
            commitment: rows_commitment(&touched),
            removed: self.gone.len() as u64,
            added: self.come.len() as u64,
        };
        let changed =
            !matches!(self.outcome, Outcome::NotFound | Outcome::Refused) && self.kind != Kind::Settle;
        // A request that changed nothing, or a settle, starts and ends where the others that it came with end.
        let before = if changed { stage.before } else { Some(stage.after) };
        let (method, settings, seed, claim, bound, mut not_covered) = match self.findings {
            Some(mut f) => {
                f.settings.extend(self.settings);
                (Some(f.method), f.settings, f.seed, Some(f.claim), Some(f.bound), f.not_covered)
            }
            None => (None, self.settings, None, None, None, Vec::new()),
        };
        let mut copies = stage.copies.clone();
        if copies.len() > MAX_LIST {
            let more = copies.len() - MAX_LIST;
            copies.drain(..more);
            not_covered.push(NotCovered::OlderCopies { copies: more });
        }
        Ok(Receipt {
            schema: SCHEMA.into(),
            id,
            origin: ledger.origin.clone(),
            sequence,
            request_id: self.request.map(RequestId::Committed),
            kind: self.kind,
            outcome: self.outcome,
            reason: self.reason.map(|text| printable(&text)),
            times: Times {
                requested_at: self.requested_at,
                received_at: self.received_at,
                forgotten_at: self.forgotten_at,
                scrubbed_at: self.scrubbed_at,
            },
            subject: self.subject,
            rows,
            training_set: Change { before: before.map(|state| state.0), after: stage.after.0 },
            parameters: Change { before: before.map(|state| state.1), after: stage.after.1 },
            method,
            efface: env!("CARGO_PKG_VERSION").into(),
            settings,
            seed,
            claim,
            bound,
            audit: self.audit,
            not_covered: not_covered.iter().map(uncovered_part).collect(),
            copies,
            release: self.release,
            settles: self.settles,
            next_key: self.next_key,
            key_id,
            previous,
        })
    }
}

impl MethodFindings {
    pub(crate) fn new(evidence: &Evidence, recipe: &AnyRecipe, method: &Method) -> Self {
        let source = match evidence.bound_source {
            efface::BoundSource::Measured => BoundSource::Measured,
            efface::BoundSource::Carried => BoundSource::Carried,
        };
        let mut not_covered = evidence.not_covered.clone();
        let claim = claim(evidence, &mut not_covered);
        Self {
            method: printable(&evidence.method),
            settings: settings(recipe, method),
            seed: seed(recipe),
            claim,
            bound: Bound::new(evidence.bound, evidence.relative_bound, source),
            not_covered,
        }
    }
}

impl MethodFindings {
    /// Also says which encoder the model reads through.
    pub(crate) fn with_network(mut self, network: Option<&NetworkInfo>) -> Self {
        if let Some(network) = network {
            let mut settings = network.settings();
            narrow(&mut settings);
            self.settings.insert("network".into(), settings);
        }
        self
    }

    /// Also says with which settings a whole network was trained further.
    pub(crate) fn with_tuning(mut self, settings: Option<Value>) -> Self {
        if let Some(settings) = settings {
            self.settings.insert("tuning".into(), settings);
        }
        self
    }

    /// Also says that dead columns were cleared on request.
    pub(crate) fn with_cleared(mut self, clear_dead_columns: bool) -> Self {
        if clear_dead_columns {
            self.settings.insert("clear_dead_columns".into(), true.into());
        }
        self
    }
}

/// What the evidence allows to be claimed. An exact claim has a tolerance, and its bound is within it: only so does the
/// evidence claim exactness, and a receipt that says otherwise is refused by whoever checks it.
fn claim(evidence: &Evidence, not_covered: &mut Vec<NotCovered>) -> efface_receipt::Claim {
    match (evidence.claim(), &evidence.certificate) {
        (Claim::Exact, _) => match evidence.tolerance {
            Some(tolerance) => efface_receipt::Claim::Exact { tolerance },
            None => efface_receipt::Claim::Approximate {},
        },
        (Claim::Certified { .. }, Some(c))
            if [c.noise, c.budget, c.used, c.left].iter().all(|n| n.is_finite() && *n >= 0.0) =>
        {
            efface_receipt::Claim::Certified {
                epsilon: c.epsilon,
                delta: c.delta,
                noise: c.noise,
                unit: printable(&c.unit),
                budget: c.budget,
                used: c.used,
                left: c.left,
                retrained: c.retrained,
                adaptive: c.adaptive,
                assumptions: c.assumptions.iter().map(|text| printable(text)).collect(),
            }
        }
        (Claim::Certified { .. }, _) => {
            not_covered.push(NotCovered::UnknownBudget);
            efface_receipt::Claim::Approximate {}
        }
        (Claim::Approximate, _) => efface_receipt::Claim::Approximate {},
    }
}

fn seed(recipe: &AnyRecipe) -> Option<u64> {
    match recipe {
        AnyRecipe::KMeans(kmeans) => Some(kmeans.seed),
        AnyRecipe::Sisa(sisa) => Some(sisa.seed),
        _ => None,
    }
}

fn settings(recipe: &AnyRecipe, method: &Method) -> Map<String, Value> {
    let mut map = Map::new();
    let mut recipe = serde_json::to_value(look::without_secret(recipe.clone())).unwrap_or(Value::Null);
    narrow(&mut recipe);
    map.insert("recipe".into(), recipe);
    if let Some(tolerance) = method.tolerance() {
        map.insert("tolerance".into(), tolerance.into());
    }
    if let Method::Newton(Newton { steps, measure }) = method {
        if *steps != Newton::default().steps {
            map.insert("steps".into(), (*steps).into());
        }
        if *measure {
            map.insert("measure".into(), true.into());
        }
    }
    map
}

/// Integers that JSON cannot hold become text.
fn narrow(value: &mut Value) {
    match value {
        Value::Number(number) if number.as_u64().is_some_and(|n| n > EXACT) => {
            *value = Value::String(number.to_string());
        }
        Value::Array(list) => list.iter_mut().for_each(narrow),
        Value::Object(map) => map.values_mut().for_each(narrow),
        _ => {}
    }
}

/// What is not covered, in the receipt's form: the code, and the sentence.
fn uncovered_part(what: &NotCovered) -> UncoveredPart {
    UncoveredPart { code: what.code().into(), detail: printable(&what.to_string()) }
}

/// A text as receipts have them: no control characters, not too long. Names of columns may have either.
fn printable(text: &str) -> String {
    let mut clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if clean.len() > MAX_TEXT_BYTES {
        let end = (0..=MAX_TEXT_BYTES - '…'.len_utf8()).rev().find(|at| clean.is_char_boundary(*at));
        clean.truncate(end.unwrap_or(0));
        clean.push('…');
    }
    clean
}

/// The hash of a model's parameters: SHA-256 over a line `name sha256` for each array that scores depend on, in the
/// order of their names. The arrays are little-endian.
pub(crate) fn parameters(parts: &[ArrayHead]) -> Hash {
    // Curvature and sums are no parameters; words have no numbers.
    const OTHERS: [&str; 11] = [
        "a",
        "a_low",
        "b",
        "support",
        "spread",
        "anchor",
        "gradient",
        "gradient_low",
        "encoder",
        "hessian",
        "gram",
    ];
    let mut lines: Vec<String> = parts
        .iter()
        .filter(|part| !OTHERS.contains(&part.name()))
        .map(|part| format!("{} {}\n", part.name(), part.sha256()))
        .collect();
    lines.sort();
    sha256(lines.concat().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_short_and_printable() {
        assert_eq!(printable("a\nb"), "a b");
        let long = printable(&"é".repeat(2000));
        assert!(long.len() <= MAX_TEXT_BYTES && long.ends_with('…'));
    }

    #[test]
    fn large_integers_become_text() {
        let mut value = serde_json::json!({"seed": u64::MAX, "k": 3, "list": [u64::MAX]});
        narrow(&mut value);
        let text = "18446744073709551615";
        assert_eq!(value, serde_json::json!({"seed": text, "k": 3, "list": [text]}));
    }
}
