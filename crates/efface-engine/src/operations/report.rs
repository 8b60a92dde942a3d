//! What a caller gets back. The names of the fields are part of the command's JSON output and stay
//! as they are.

use std::fmt;

use efface::models::ShardedModel;
use efface::scores::{PenaltyChoice, QualityScores};
use efface::{
    Certificate, Classes, Evidence, Form, HeadBound, Hint, Model, NotCovered, Precomputed, Recipe,
    Setting,
};
use efface_receipt::{Hash, RequestOutcome};
use serde::{Serialize, Serializer};

use crate::codec::manifest::MeasuredScores;
use crate::codec::network_info::NetworkInfo;

/// What a change did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangeReport {
    /// The method that did the work.
    pub method: String,
    /// `exact`, `certified` or `approximate`.
    pub claim: String,
    /// Rows taken out.
    pub forgotten: usize,
    /// Rows put in.
    pub learned: usize,
    /// Rows in the model afterwards.
    pub rows: usize,
    /// An upper bound on the distance to the parameters of a model fitted without the rows.
    pub bound: f64,
    /// The relative distance to retraining that counts as equal; None for a method that aims at
    /// none.
    pub tolerance: Option<f64>,
    /// Whether the bound is above the tolerance, or says nothing. The change was made all the same,
    /// and claims no more than its bound.
    pub tolerance_missed: bool,
    /// Wall time from reading the model to the end of the transaction.
    pub seconds: f64,
    /// Whether the file was left as it was.
    pub dry_run: bool,
    /// Names of features that were erased because no row has them any more.
    pub features_dropped: usize,
    /// `erased`, `partial`, `not_found` or `refused` for a forget, `done` for the rest.
    pub outcome: RequestOutcome,
    /// Why, where the outcome does not say it.
    pub reason: Option<String>,
    /// Rows that were named and are not here.
    pub missing: usize,
    /// Exports that this change withdrew, or would withdraw.
    pub withdrawn: usize,
    /// In a dry run, how far the parameters would move, as a part of their norm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved: Option<f64>,
    /// In a dry run, the digest of the rows that would leave, for
    /// [`ForgetRequest::expected_rows`](crate::ForgetRequest::expected_rows).
    #[serde(skip)]
    pub rows_digest: Option<Hash>,
    /// Whether the rows' bytes are overwritten; false where the policy puts that off to the next
    /// settle.
    pub scrubbed: bool,
    /// Whether the request had been answered before, and this is that answer.
    pub replayed: bool,
    /// The receipt; None in a dry run.
    pub receipt: Option<ReceiptPlace>,
    /// For a request about a person: the nonce that proves whom the receipt's `subject` stands for.
    /// It is told once and kept nowhere.
    pub subject_opening: Option<String>,
    /// Remarks on the rows that were learned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
    /// The record of the method.
    pub evidence: Evidence,
}

/// The rows that a request to forget names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowsPreview {
    /// The number of named rows that are in the model.
    pub rows: usize,
    /// Their digest, for
    /// [`ForgetRequest::expected_rows`](crate::ForgetRequest::expected_rows).
    pub digest: Hash,
}

/// Where a receipt stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReceiptPlace {
    /// Its name.
    pub id: String,
    /// Its place in the log, from 0.
    pub sequence: u64,
}

/// A remark on rows or columns, which stops nothing. As JSON it is its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    problem: String,
    hint: Option<Hint>,
}

impl Remark {
    /// A remark that says what to do.
    pub(crate) fn with_hint(problem: String, hint: Hint) -> Self {
        Self {
            problem,
            hint: Some(hint),
        }
    }

    /// Returns the text, with settings in the words of the caller (see [`Hint::worded`]).
    #[must_use]
    pub fn worded(&self, word: impl Fn(Setting, Option<&str>) -> String) -> String {
        match &self.hint {
            Some(hint) => format!("{}; {}", self.problem, hint.worded(word)),
            None => self.problem.clone(),
        }
    }
}

impl From<String> for Remark {
    fn from(problem: String) -> Self {
        Self {
            problem,
            hint: None,
        }
    }
}

/// The text with the libraries' own names.
impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl Serialize for Remark {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What a fit did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FitReport {
    /// The model as it lies in the file.
    pub summary: ModelSummary,
    /// The relative distance to the exact minimum over the rows that counts as equal; None for a
    /// model trained with noise.
    pub tolerance: Option<f64>,
    /// Whether the bound of the fitted model is above the tolerance, or says nothing.
    pub tolerance_missed: bool,
    /// Wall time, reading included.
    pub seconds: f64,
    /// Texts of which the encoder of a network reads the beginning only.
    pub cut: u64,
    /// What is kept so that a forget need not go through the rows; empty where nothing is.
    pub precomputed: Vec<Precomputed>,
    /// Remarks on the columns.
    pub remarks: Vec<Remark>,
    /// In how many shards each class has rows; empty for a model that is not in shards, or has no
    /// classes.
    pub shards_by_class: Vec<ClassShards>,
    /// Forgotten rows of the model that was replaced, which must not come back to this one either.
    pub carried: u64,
    /// Why its list of them, or a part of it, was not carried over; None where there was none, or
    /// all of it was.
    pub dropped: Option<String>,
}

/// The number of shards in which a class has rows. A shard cannot vote for a class that it lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassShards {
    /// The name of the class.
    pub class: String,
    /// How many shards have rows of it.
    pub shards: usize,
    /// How many shards there are.
    pub of: usize,
}

impl ClassShards {
    /// Counts the shards of each class of a fitted model.
    pub(crate) fn of(model: &Model, classes: Option<&Classes>) -> Vec<Self> {
        let Some((classes, sharded)) = classes.zip(model.get::<ShardedModel>()) else {
            return Vec::new();
        };
        let counts = sharded.shards_by_class().unwrap_or_default();
        let of = sharded.settings().shards;
        let names = classes.names().iter().cloned();
        names
            .zip(counts)
            .map(|(class, shards)| Self { class, shards, of })
            .collect()
    }
}

/// The scores of one row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// The row's id, where the file has the model's id column.
    pub id: Option<String>,
    /// Where the row stands in its source, from 0. A model without an id column names rows by it.
    pub position: u64,
    /// The line of the file.
    pub line: u64,
    /// One score per output; for k-means, the distance to each centre.
    pub scores: Vec<f64>,
    /// The probability of every class, in the order of the classes; None for a model without
    /// probabilities.
    pub probabilities: Option<Vec<f64>>,
    /// The class, for a classifier; the number of the cluster, for k-means.
    pub label: Option<String>,
}

/// What was found out about the rows of a file while they were scored.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScoredRows {
    /// Rows scored.
    pub rows: u64,
    /// How good the scores are, over the rows that have targets; None where no row has.
    pub quality: Option<QualityScores>,
    /// Words, levels and indices that were not there at fit, counted as often as they occur.
    pub unknown_names: u64,
}

/// What a model file holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelSummary {
    /// The family, as in `ridge` or `Gaussian naive Bayes`.
    pub model: String,
    /// What it was fitted with. The seed of a certified model's noise is secret and reads 0.
    pub recipe: Recipe,
    /// The encoder in front of it, for a network; the recipe above is then that of the head.
    pub network: Option<NetworkInfo>,
    /// What stands behind a model that was trained with noise.
    pub certificate: Option<Certificate>,
    /// The version of efface that wrote the file last.
    pub version: String,
    /// The version of the file format.
    pub format: u32,
    /// Rows the model stands for.
    pub rows: usize,
    /// Features that have a name.
    pub features: usize,
    /// Names of the scores: outputs, classes or clusters.
    pub outputs: Vec<String>,
    /// Names of the classes, for a classifier.
    pub classes: Option<Vec<String>>,
    /// The penalty, where there is one.
    pub lambda: Option<f64>,
    /// Whether there is an intercept, where there could be one.
    pub intercept: Option<bool>,
    /// How the curvature is kept, for ridge.
    pub form: Option<Form>,
    /// The target columns.
    pub target: Vec<String>,
    /// The id column.
    pub id: Option<String>,
    /// The subject column.
    pub subject: Option<String>,
    /// Distinct subjects with rows in the model.
    pub subjects: usize,
    /// Name, kind and number of features of each column.
    pub feature_columns: Vec<(String, String, usize)>,
    /// What is made of the features of all columns together, and how many features that gives; None
    /// where they stay as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feature_expansion: Option<(String, usize)>,
    /// Whether rows are kept as index–value pairs.
    pub sparse: bool,
    /// Rows ever forgotten.
    pub forgotten: usize,
    /// Forgotten rows whose bytes wait to be overwritten by the next settle.
    pub unscrubbed: usize,
    /// Since when the first of them waits, RFC 3339 in UTC.
    pub unscrubbed_since: Option<String>,
    /// Changes since the fit.
    pub generation: u64,
    /// Receipts in the log.
    pub receipts: u64,
    /// The public key that signs.
    pub public_key: String,
    /// Exports that are in use, and those that a forget withdrew.
    pub exports: (u64, u64),
    /// The distance bound of the last change.
    pub bound: f64,
    /// The bound as a fraction of the parameters' norm.
    pub relative_bound: f64,
    /// The bound of the head alone, for a network whose encoder nothing bounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head_bound: Option<HeadBound>,
    /// How often the sums were factored anew.
    pub refactorisations: usize,
    /// The size of the file.
    pub file_bytes: u64,
    /// Whether its rows and parameters are encrypted.
    pub encrypted: bool,
    /// How good the model is, as measured at the fit. Whatever changes the rows drops them: they
    /// are figures of the model before.
    pub scores: Vec<MeasuredScores>,
    /// How the penalty was chosen from the rows; None where it was given.
    pub penalty: Option<PenaltyChoice>,
    /// What a forget cannot take out of this model.
    pub not_covered: Vec<NotCovered>,
    /// What is kept beside the model although none of its answers depends on it.
    pub kept_beside: Vec<NotCovered>,
    /// When it was fitted, RFC 3339 in UTC.
    pub created_at: String,
    /// When it last changed, RFC 3339 in UTC.
    pub changed_at: String,
}

/// The parameters of a model, by name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parameters {
    /// The family, as in `ridge` or `Gaussian naive Bayes`.
    pub model: String,
    /// The penalty, where there is one.
    pub lambda: Option<f64>,
    /// Rows the model stands for.
    pub rows: usize,
    /// Names of the outputs, classes or clusters that every list below runs over.
    pub outputs: Vec<String>,
    /// Names of the classes, for a classifier.
    pub classes: Option<Vec<String>>,
    /// Lists of one number per output: `intercept` (0 without one), `class_prior`. Where features
    /// are scaled or weighed, `feature_shift` and `feature_scale` have one number per feature: the
    /// model takes (x − shift) / scale.
    pub vectors: Vec<(&'static str, Vec<f64>)>,
    /// Names of the features; those whose name was erased are left out.
    pub features: Vec<String>,
    /// Tables of a line per feature with one number per output: `coefficients`, `feature_log_prob`,
    /// `means`, `variances`, `centers`.
    pub tables: Vec<(&'static str, Vec<Vec<f64>>)>,
}

impl Parameters {
    /// The list of that name; empty when this model has none.
    pub fn vector(&self, name: &str) -> &[f64] {
        self.vectors
            .iter()
            .find(|(found, _)| *found == name)
            .map_or(&[], |(_, values)| values)
    }

    /// The table of that name; empty when this model has none.
    pub fn table(&self, name: &str) -> &[Vec<f64>] {
        self.tables
            .iter()
            .find(|(found, _)| *found == name)
            .map_or(&[], |(_, lines)| lines)
    }
}

/// A copy for other programs, and what the log knows of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportedModel {
    /// What to write.
    pub parameters: Parameters,
    /// The whole file, where the format takes the encoder of a network along.
    pub file: Option<Vec<u8>>,
    /// The number of the copy.
    pub number: u64,
    /// What the caller should know before the copy is published.
    pub warning: Option<String>,
    /// The receipt.
    pub receipt: ReceiptPlace,
}
