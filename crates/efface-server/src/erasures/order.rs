//! An erasure request as the server keeps it until it is done.

use std::collections::BTreeMap;

use efface::Method;
use efface_engine::{ForgetRequest, RowSelection};
use efface_receipt::{Hash, Time};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::keys::RequestIdentity;
use crate::callbacks::CallbackTarget;
use crate::problem::{Problem, ProblemCode};
use crate::registry::ServedModel;

/// Whose rows: of one model, or of all.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ErasureTarget {
    /// Every model that the server has when the request is done.
    AllModels,
    /// One model.
    Model(String),
}

impl ErasureTarget {
    /// Returns true if a model belongs to both.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self == other || matches!((self, other), (Self::AllModels, _) | (_, Self::AllModels))
    }
}

/// Which rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RowChoice {
    /// Those of these ids.
    Rows(Vec<String>),
    /// Those of one person, as the subject column names them.
    Subject(String),
    /// Those of one person under several names, or of several persons.
    Subjects(Vec<String>),
}

/// A request with all that is needed to do it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ErasureOrder {
    pub(crate) id: String,
    pub(crate) target: ErasureTarget,
    pub(crate) rows: RowChoice,
    pub(crate) method: Method,
    pub(crate) allow_missing: bool,
    /// Whether an approximate method may leave the model no nearer to retraining than it was.
    #[serde(default)]
    pub(crate) allow_worse: bool,
    pub(crate) requested_at: Option<Time>,
    pub(crate) asked_by: String,
    pub(crate) needs_approval: bool,
    pub(crate) approved_by: Option<String>,
    /// Who is told what became of it.
    pub(crate) callbacks: Vec<CallbackTarget>,
    /// The digests of the rows that a preview showed to the caller, by model. Other rows are not
    /// erased.
    #[serde(default)]
    pub(crate) expected_rows: Option<BTreeMap<String, Hash>>,
}

/// The digests of the rows that the parts of a request may take out, by model and part.
pub(crate) type ExpectedRows = BTreeMap<(String, usize), Hash>;

/// The digest that a part may take out of which no preview told any rows. No set of rows has it.
const NO_ROWS: Hash = Hash([0; 32]);

impl ErasureOrder {
    /// The hash of what makes two requests the same: what is asked, and not who asks or who is
    /// told. Ids are a set.
    pub(super) fn identity(&self) -> RequestIdentity {
        let names = match &self.rows {
            RowChoice::Rows(ids) => {
                let mut ids: Vec<&str> = ids.iter().map(|id| id.trim()).collect();
                ids.sort_unstable();
                ("rows", ids)
            }
            RowChoice::Subject(person) => ("subject", vec![person.trim()]),
            RowChoice::Subjects(people) => (
                "subjects",
                people.iter().map(|person| person.trim()).collect(),
            ),
        };
        // Requests of before the option was there keep their identity.
        let plain = (&self.target, names, &self.method, self.allow_missing);
        let asked = if self.allow_worse {
            serde_json::to_vec(&(plain, "allow_worse"))
        } else {
            serde_json::to_vec(&plain)
        };
        // These types have a form in JSON; without one no two requests would be the same but those
        // without.
        Sha256::digest(asked.unwrap_or_default()).into()
    }

    /// The name under which the request is written down. Requests about different models may have
    /// the same id.
    pub(super) fn file_name(&self) -> String {
        match &self.target {
            ErasureTarget::AllModels => self.id.clone(),
            // No id has a slash.
            ErasureTarget::Model(name) => format!("{}/{name}", self.id),
        }
    }

    /// The digests that the caller expects; None where any rows may be erased.
    pub(super) fn expected_by_caller(&self) -> Option<ExpectedRows> {
        let expected = self.expected_rows.as_ref()?;
        let part = |(model, digest): (&String, &Hash)| ((model.clone(), 0), *digest);
        Some(expected.iter().map(part).collect())
    }

    /// The requests as the engine of a model takes them: one, or one for each person. Each erases
    /// the expected rows or none.
    pub(super) fn requests_for(
        &self,
        model: &ServedModel,
        expected: Option<&ExpectedRows>,
    ) -> Result<Vec<ForgetRequest>, Problem> {
        let mut requests = self.parts(model)?;
        if let Some(expected) = expected {
            for (part, request) in requests.iter_mut().enumerate() {
                let digest = expected.get(&(model.name().to_owned(), part));
                request.expected_rows = Some(digest.copied().unwrap_or(NO_ROWS));
            }
        }
        Ok(requests)
    }

    fn parts(&self, model: &ServedModel) -> Result<Vec<ForgetRequest>, Problem> {
        let values = match &self.rows {
            RowChoice::Rows(ids) => {
                return Ok(vec![self.request(0, RowSelection::Ids(ids.clone()))]);
            }
            RowChoice::Subject(value) => std::slice::from_ref(value),
            RowChoice::Subjects(values) => values,
        };
        let Some(column) = model.summary().subject.clone() else {
            let detail = "the rows of this model do not say whose they are; name them by their ids";
            return Err(Problem::new(ProblemCode::InvalidRequest, detail));
        };
        let person = |(at, value): (usize, &String)| {
            self.request(
                at,
                RowSelection::Subject {
                    column: column.clone(),
                    value: value.clone(),
                },
            )
        };
        Ok(values.iter().enumerate().map(person).collect())
    }

    fn request(&self, at: usize, who: RowSelection) -> ForgetRequest {
        let mut request = ForgetRequest::new(who);
        request.method = self.method;
        request.allow_worse = self.allow_worse;
        request.id = Some(part_name(&self.id, at));
        // A request about all models finds nothing in most of them, which is an answer and no
        // error.
        request.allow_missing = self.allow_missing || self.target == ErasureTarget::AllModels;
        request.requested_at = self.requested_at;
        request
    }
}

/// What the log calls a part of a request: the first has its name, the others a number behind it,
/// after a sign that no key has.
pub(crate) fn part_name(id: &str, at: usize) -> String {
    if at == 0 {
        id.to_owned()
    } else {
        format!("{id}/{}", at + 1)
    }
}
