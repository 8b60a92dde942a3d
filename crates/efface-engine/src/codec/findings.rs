//! What a receipt says of the method behind a change: from evidence, recipe and network to the
//! receipt's words.

use efface::methods::Newton;
use efface::{Claim, Evidence, Method, NotCovered, Recipe};
use efface_receipt::{BoundOrigin, DistanceBound, MAX_INTEGER};
use serde_json::{Map, Value};

use super::network_info::NetworkInfo;
use crate::ledger::{MethodFindings, printable};

impl MethodFindings {
    pub(crate) fn new(evidence: &Evidence, recipe: &Recipe, method: &Method) -> Self {
        let source = match evidence.bound_source {
            efface::BoundSource::Measured => BoundOrigin::Measured,
            efface::BoundSource::Carried => BoundOrigin::Carried,
        };
        let mut not_covered = evidence.not_covered.clone();
        let claim = claim(evidence, &mut not_covered);
        Self {
            method: printable(&evidence.method),
            settings: settings(recipe, method),
            seed: recipe.describe().seed,
            claim,
            bound: DistanceBound::new(evidence.bound, evidence.relative_bound, source),
            head_bound: evidence
                .head_bound
                .map(|head| DistanceBound::new(head.bound, head.relative_bound, source)),
            not_covered,
            kept_beside: evidence.kept_beside.clone(),
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

    /// Also says that an option was given beside the method.
    pub(crate) fn with_option(mut self, name: &str, is_given: bool) -> Self {
        if is_given {
            self.settings.insert(name.into(), true.into());
        }
        self
    }
}

/// What the evidence allows to be claimed. An exact claim has a tolerance, and its bound is within
/// it: only so does the evidence claim exactness, and verifiers refuse a receipt that says
/// otherwise.
fn claim(evidence: &Evidence, not_covered: &mut Vec<NotCovered>) -> efface_receipt::ReceiptClaim {
    match (evidence.claim(), &evidence.certificate) {
        (Claim::Exact, _) => match evidence.tolerance {
            Some(tolerance) => efface_receipt::ReceiptClaim::Exact { tolerance },
            None => efface_receipt::ReceiptClaim::Approximate {},
        },
        (Claim::Certified { .. }, Some(c))
            if [c.noise, c.budget, c.used, c.left]
                .iter()
                .all(|n| n.is_finite() && *n >= 0.0) =>
        {
            efface_receipt::ReceiptClaim::Certified {
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
            efface_receipt::ReceiptClaim::Approximate {}
        }
        (Claim::Approximate, _) => efface_receipt::ReceiptClaim::Approximate {},
    }
}

fn settings(recipe: &Recipe, method: &Method) -> Map<String, Value> {
    let mut map = Map::new();
    let mut recipe = serde_json::to_value(recipe.without_secret()).unwrap_or(Value::Null);
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
        Value::Number(number) if number.as_u64().is_some_and(|n| n > MAX_INTEGER) => {
            *value = Value::String(number.to_string());
        }
        Value::Array(list) => list.iter_mut().for_each(narrow),
        Value::Object(map) => map.values_mut().for_each(narrow),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_integers_become_text() {
        let mut value = serde_json::json!({"seed": u64::MAX, "k": 3, "list": [u64::MAX]});
        narrow(&mut value);
        let text = "18446744073709551615";
        assert_eq!(
            value,
            serde_json::json!({"seed": text, "k": 3, "list": [text]})
        );
    }
}
