//! One request to forget, to all models of a folder. Each model changes on its own, with a receipt
//! of its own under the one name of the request: a run that was cut short is finished by running it
//! again, and a model that answered before gives its first answer.

use std::path::Path;
use std::time::Duration;

use efface_receipt::{ReceiptBundle, RequestOutcome};
use serde::Serialize;

use super::open_model::OpenModel;
use super::report::ChangeReport;
use super::request::{ForgetOptions, ForgetRequest, RowSelection};
use super::subject_index::{SubjectIndex, models, name_of};
use super::{forget, receipts};
use crate::error::{Error, Result};
use crate::ledger::signer::KeyAccess;

/// What one model of a folder answered.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FolderOutcome {
    /// Rows were forgotten, or had been by the same request.
    Forgotten,
    /// It has no such rows; its log says so where it was asked.
    NoSuchRows,
    /// Its rows name no people, or in another column.
    NoSuchColumn,
    /// The index says that it has no rows of this person, and it has not changed since the index
    /// was made.
    NotAsked,
    /// Nothing was changed.
    Failed,
}

/// The answer of one model of a folder.
#[derive(Debug, Serialize)]
pub struct FolderAnswer {
    /// The name of the file.
    pub model: String,
    /// What came of it.
    pub outcome: FolderOutcome,
    /// What was done, and the receipt.
    pub report: Option<ChangeReport>,
    /// What went wrong.
    pub problem: Option<String>,
    /// The error itself.
    #[serde(skip)]
    pub error: Option<Error>,
}

/// How the models of a folder are asked.
pub struct FolderOptions<'a> {
    /// As for one model.
    pub forget: ForgetOptions<'a>,
    /// Whether models are passed over that the index of the folder says have no rows of the person.
    pub by_index: bool,
    /// How to come to the keys of the models.
    pub access: &'a KeyAccess,
    /// How long to wait for other processes.
    pub patience: Duration,
    /// Sees every receipt, with the name of the model, such as to write it down.
    pub answered: &'a mut dyn FnMut(&str, &ReceiptBundle) -> Result<()>,
}

/// Asks every model of a folder to forget. The request must have a name.
pub fn forget_in_folder(
    folder: &Path,
    request: &ForgetRequest,
    options: &mut FolderOptions<'_>,
) -> Result<Vec<FolderAnswer>> {
    if request.id.is_none() {
        return Err(Error::request(
            "a request to several models needs a name",
            "a ticket number or a UUID will do: run again under the same name, it goes on where it was cut short",
        ));
    }
    let models = models(folder)?;
    if models.is_empty() {
        return Err(Error::request(
            format!("there is no model in {}", folder.display()),
            "name the folder that holds the model files",
        ));
    }
    // A model that lacks some of the rows, or all of them, is no failure of the request.
    let request = ForgetRequest {
        allow_missing: true,
        ..request.clone()
    };
    let index = SubjectIndex::load(folder)?;
    let subject = match &request.who {
        RowSelection::Subject { value, .. } => Some(value.as_str()),
        RowSelection::Ids(_) => None,
    };
    if options.by_index && (index.is_none() || subject.is_none()) {
        return Err(Error::request(
            "the folder has no index, or the request names no person",
            "`efface index DIR` makes one; without it every model is asked",
        ));
    }
    let mut answers = Vec::with_capacity(models.len());
    for path in &models {
        let absent = match (&index, subject) {
            (Some(index), Some(subject)) if options.by_index => index.is_without(path, subject),
            _ => false,
        };
        let mut answer = FolderAnswer {
            model: name_of(path),
            outcome: FolderOutcome::NotAsked,
            report: None,
            problem: None,
            error: None,
        };
        if !absent {
            match ask(path, &request, options) {
                Ok(report) => {
                    answer.outcome = match report.outcome {
                        RequestOutcome::Refused => FolderOutcome::Failed,
                        RequestOutcome::NotFound => FolderOutcome::NoSuchRows,
                        _ => FolderOutcome::Forgotten,
                    };
                    answer.problem = report.reason.clone();
                    answer.report = Some(report);
                }
                Err(error) => {
                    let other_column = matches!(error, Error::SubjectColumn { .. });
                    answer.outcome = if other_column {
                        FolderOutcome::NoSuchColumn
                    } else {
                        FolderOutcome::Failed
                    };
                    answer.problem = Some(error.to_string());
                    answer.error = Some(error);
                }
            }
        }
        answers.push(answer);
    }
    if let (Some(_), Some(subject), false) = (&index, subject, options.forget.dry_run) {
        // The index must not go on naming a person who is in no model any more.
        let gone = |answer: &FolderAnswer| {
            matches!(
                answer.outcome,
                FolderOutcome::Forgotten | FolderOutcome::NoSuchRows
            )
        };
        let names = answers
            .iter()
            .filter(|answer| gone(answer))
            .map(|answer| answer.model.as_str());
        SubjectIndex::forget(folder, subject, names)?;
    }
    Ok(answers)
}

fn ask(
    path: &Path,
    request: &ForgetRequest,
    options: &mut FolderOptions<'_>,
) -> Result<ChangeReport> {
    let mut model = OpenModel::open(path, !options.forget.dry_run, options.patience)?;
    model.access = options.access.clone();
    let mut answers = forget::forget(&model, std::slice::from_ref(request), &options.forget);
    let report = answers.pop().unwrap_or(Err(Error::EmptyRequest))?;
    if let Some(place) = &report.receipt {
        let bundle = receipts::bundle(&model, &place.sequence.to_string())?;
        (options.answered)(&name_of(path), &bundle)?;
    }
    Ok(report)
}
