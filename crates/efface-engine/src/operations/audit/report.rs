//! What an audit asks and what it found.

use efface::eval::{
    Attack, Distance, Duplicates, Injection, Membership, Relearning, Task, Utility,
};
use efface::{Evidence, Method};
use efface_receipt::AuditEntry;
use serde::Serialize;

use crate::operations::request::RowSelection;
use crate::operations::row_source::RowSource;

/// The state of a network that was trained anew.
pub(super) const RETRAINED: &str = "retrain_network";

/// What an audit is asked to do.
#[derive(Debug, Clone)]
pub struct AuditRequest {
    /// Whose forgetting is looked at.
    pub rows: AuditRows,
    /// The methods to compare with retraining; none for what the model itself would choose.
    pub methods: Vec<Method>,
    /// Whether rows that are equal to those to forget go with them.
    pub with_twins: bool,
    /// Rows that the model never saw, for accuracy and for the population attack on the model
    /// itself.
    pub held_out: Option<RowSource>,
    /// Models to fit for the attacks; 0 leaves the attacks out, else 16 or more.
    pub oracles: usize,
    /// The share of the other rows that each of them sees; above 0 and below 1.
    pub keep: f64,
    /// Fixes every random draw.
    pub seed: u64,
    /// Oracles fitted at once.
    pub threads: usize,
}

/// The rows that an audit is about.
#[derive(Debug, Clone)]
pub enum AuditRows {
    /// Rows of the model: they are forgotten in a copy in memory.
    Present(RowSelection),
    /// So many rows of the model, at random.
    Sample(usize),
    /// Rows that the model has forgotten already, given once more.
    Gone(RowSource),
}

impl AuditRequest {
    /// An audit of these rows with everything else at its default.
    pub fn new(rows: AuditRows) -> Self {
        let trials = efface::eval::Trials::default();
        Self {
            rows,
            methods: Vec::new(),
            with_twins: false,
            held_out: None,
            oracles: trials.oracles,
            keep: trials.keep,
            seed: trials.seed,
            threads: 1,
        }
    }
}

/// What an audit found. It holds numbers and counts; ids only of rows that are twins of those asked
/// about.
#[derive(Debug, Clone, Serialize)]
pub struct AuditReport {
    /// The model.
    pub model: String,
    /// What its targets are.
    pub task: Task,
    /// Rows looked at: those of the model, and those that had gone before and came from a file.
    pub rows: usize,
    /// Features of a row.
    pub features: usize,
    /// Rows that were forgotten: in a copy in memory, or before.
    pub forgotten: usize,
    /// Whether the rows had left the model before the audit began.
    pub gone_before: bool,
    /// The draw of everything random.
    pub seed: u64,
    /// Rows that are equal to others: looked at before anything was split.
    pub twins: TwinReport,
    /// The state that the others are compared with: `retrain`, or `retrain_head` of a network whose
    /// encoder was trained on its rows. Then `retrain_network` is a network that was trained anew.
    pub comparison: &'static str,
    /// Every state of the model: before, retrained, and after each method.
    pub states: Vec<StateReport>,
    /// The injected feature; None where the model has no weights.
    pub injection: Option<Injection>,
    /// The attacks; None without oracles.
    pub membership: Option<Membership>,
    /// What was left out, and why.
    pub left_out: Vec<String>,
    /// What nobody should read into this.
    pub not_claimed: Vec<String>,
    /// How long it took.
    pub seconds: f64,
}

/// What is known of twins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TwinReport {
    /// Rows of the model that have an equal in it.
    pub rows_with_twins: usize,
    /// Rows to forget that stay as a twin.
    pub surviving: usize,
    /// Rows to forget whose features stay under another target, and under no equal one.
    pub resembled: usize,
    /// Twins that stay, by id; the first hundred.
    pub ids: Vec<String>,
    /// Rows that were forgotten along because they are twins of those asked for.
    pub taken_along: usize,
}

impl TwinReport {
    pub(super) fn new(found: &Duplicates, ids: Vec<String>, taken_along: usize) -> Self {
        Self {
            rows_with_twins: found.rows_with_twins,
            surviving: found.surviving(),
            resembled: found.resembled(),
            ids,
            taken_along,
        }
    }
}

/// One state of the model.
#[derive(Debug, Clone, Serialize)]
pub struct StateReport {
    /// `before`, `retrain` or `retrain_head`, the name of a method, `model` for a model that had
    /// forgotten before, or `retrain_network`.
    pub state: String,
    /// What the method said of itself.
    pub evidence: Option<Evidence>,
    /// How long it took; None where nothing was done.
    pub seconds: Option<f64>,
    /// How far it is from the retrained model; None for that one.
    pub distance: Option<Distance>,
    /// How soon it would know the rows again; None for models that are not trained by gradients.
    pub relearning: Option<Relearning>,
    /// How it does on the rows that stay.
    pub retained: Utility,
    /// How it does on the rows that go.
    pub forgotten: Utility,
    /// How it does on rows that it never saw.
    pub held_out: Option<Utility>,
    /// The population attack on this very model: rows that go against rows that it never saw.
    pub population: Option<Attack>,
}

impl AuditReport {
    /// The state of that name.
    pub fn state(&self, name: &str) -> Option<&StateReport> {
        self.states.iter().find(|state| state.state == name)
    }

    /// Returns true if the state of that name is one that is compared, and not one to compare with.
    pub fn is_compared(&self, state: &str) -> bool {
        !["before", self.comparison, RETRAINED].contains(&state)
    }

    /// Returns the share of the rows to forget that each state still answers as they were labelled,
    /// for a network whose encoder was trained on its rows; else nothing.
    pub fn recall(&self) -> Vec<(&str, f64)> {
        let shares = self
            .states
            .iter()
            .filter_map(|state| Some((state.state.as_str(), state.forgotten.accuracy?)));
        match self.state(RETRAINED) {
            Some(_) => shares.collect(),
            None => Vec::new(),
        }
    }

    /// The figures that a receipt holds: names of tests, and numbers.
    pub fn results(&self) -> Vec<AuditEntry> {
        let mut results = vec![audit(
            "twins_surviving",
            Some(self.twins.surviving == 0),
            self.twins.surviving as f64,
        )];
        let methods = || {
            self.states
                .iter()
                .filter(|state| self.is_compared(&state.state))
        };
        for (state, accuracy) in self.recall() {
            results.push(audit(format!("forgotten_accuracy/{state}"), None, accuracy));
        }
        for state in methods() {
            if let Some(l2) = state.distance.as_ref().and_then(|distance| distance.l2) {
                results.push(audit(format!("l2_distance/{}", state.state), None, l2));
            }
            if let Some(ratio) = state.relearning.and_then(|relearning| relearning.ratio) {
                results.push(audit(
                    format!("relearning_ratio/{}", state.state),
                    None,
                    ratio,
                ));
            }
        }
        for way in self.injection.iter().flat_map(|injection| &injection.ways) {
            results.push(audit(
                format!("feature_injection/{}", way.method),
                None,
                way.ratio,
            ));
        }
        let Some(membership) = &self.membership else {
            return results;
        };
        for exposure in membership
            .exposures
            .iter()
            .filter(|exposure| exposure.state != "before")
        {
            // Whether the interval covers a coin is a measurement with an end; the rest decides
            // nothing.
            let passed = exposure.forgotten.auc_interval.low <= 0.5;
            let name = format!("u_lira_auc/{}", exposure.state);
            let trials = Some(membership.oracles as u64);
            results.push(AuditEntry {
                trials,
                ..audit(name, Some(passed), exposure.forgotten.auc)
            });
        }
        results
    }
}

fn audit(test: impl Into<String>, passed: Option<bool>, value: f64) -> AuditEntry {
    let value = value.is_finite().then_some(value);
    AuditEntry {
        test: test.into(),
        passed,
        value,
        threshold: None,
        trials: None,
    }
}
