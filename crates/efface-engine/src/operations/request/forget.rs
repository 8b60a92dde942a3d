//! What a caller says of the rows to forget.

use std::time::Duration;

use efface::Method;
use efface::models::MethodOptions;
use efface_receipt::{Hash, Time};

use crate::error::{Error, Result};
use crate::operations::report::ChangeReport;
use crate::progress::{Progress, Silent};

/// The rows that a forget is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowSelection {
    /// These rows.
    Ids(Vec<String>),
    /// All rows of one person.
    Subject {
        /// The model's subject column.
        column: String,
        /// The person, as that column names them.
        value: String,
    },
}

/// A request to forget.
#[derive(Debug, Clone, PartialEq)]
pub struct ForgetRequest {
    /// The rows.
    pub who: RowSelection,
    /// The method, with its settings.
    pub method: Method,
    /// Whether the weights of columns that no retained row has are set to 0 after an approximate
    /// method too.
    pub clear_dead_columns: bool,
    /// Whether the result of an approximate method is accepted that is no nearer to retraining than
    /// the model was. Otherwise such a request is refused.
    pub allow_worse: bool,
    /// Whether k-means or shards are retrained with a new seed, drawn at random, so that the result
    /// owes nothing to requests that were chosen after looking at the published model.
    pub new_seed: bool,
    /// The caller's name for the request. A request of this name has one effect, however often it
    /// comes, and its outcome is in the log whatever it is.
    pub id: Option<String>,
    /// Whether rows that are not here are passed over. Otherwise they are an error, and nothing
    /// happens.
    pub allow_missing: bool,
    /// When the person asked.
    pub requested_at: Option<Time>,
    /// The digest of the rows that a dry run of this request found. If the request names other rows
    /// when the change is made, nothing happens ([`Error::RowsChanged`]). It is not part of the
    /// identity of a named request.
    pub expected_rows: Option<Hash>,
}

impl ForgetRequest {
    /// By the method that suits the model, with nothing special about it.
    pub fn new(who: RowSelection) -> Self {
        Self {
            who,
            method: Method::default(),
            clear_dead_columns: false,
            allow_worse: false,
            new_seed: false,
            id: None,
            allow_missing: false,
            requested_at: None,
            expected_rows: None,
        }
    }

    /// What is asked beside the method.
    pub(crate) fn options(&self) -> MethodOptions {
        MethodOptions {
            clear_dead_columns: self.clear_dead_columns,
            allow_worse: self.allow_worse,
            new_seed: None,
        }
    }

    /// Rows that it names; a person is one name.
    pub(crate) fn named_rows(&self) -> usize {
        match &self.who {
            RowSelection::Ids(ids) => ids.len(),
            RowSelection::Subject { .. } => 1,
        }
    }
}

/// How [`Engine::forget`](crate::Engine::forget) works, beside what is asked.
#[derive(Clone, Copy)]
pub struct ForgetOptions<'a> {
    /// Whether everything is computed and nothing is written.
    pub dry_run: bool,
    /// Where long work reports, such as the training of a network. If it asks to stop, nothing has
    /// changed, and the same request may come again.
    pub progress: &'a dyn Progress,
    /// The most time that training a network anew may take. If the training is expected to take
    /// longer, it is stopped early, nothing has changed, and the error compares the methods. None
    /// sets no limit.
    pub at_most: Option<Duration>,
}

impl Default for ForgetOptions<'_> {
    fn default() -> Self {
        Self {
            dry_run: false,
            progress: &Silent,
            at_most: None,
        }
    }
}

impl ForgetOptions<'_> {
    /// Everything is computed and nothing is written.
    pub fn dry_run() -> Self {
        Self {
            dry_run: true,
            ..Self::default()
        }
    }
}

/// What [`Engine::forget`](crate::Engine::forget) takes: one request, or requests that wait
/// together.
pub trait ForgetOrder {
    /// One answer to one request; a list of answers, in the order of the requests, to several.
    type Answer;

    /// The requests.
    fn requests(&self) -> &[ForgetRequest];

    /// The answers to the requests, in the form of the order.
    fn answer(answers: Vec<Result<ChangeReport>>) -> Self::Answer;
}

impl ForgetOrder for ForgetRequest {
    type Answer = Result<ChangeReport>;

    fn requests(&self) -> &[ForgetRequest] {
        std::slice::from_ref(self)
    }

    fn answer(mut answers: Vec<Result<ChangeReport>>) -> Self::Answer {
        answers.pop().unwrap_or(Err(Error::EmptyRequest))
    }
}

impl ForgetOrder for [ForgetRequest] {
    type Answer = Vec<Result<ChangeReport>>;

    fn requests(&self) -> &[ForgetRequest] {
        self
    }

    fn answer(answers: Vec<Result<ChangeReport>>) -> Self::Answer {
        answers
    }
}

impl<const N: usize> ForgetOrder for [ForgetRequest; N] {
    type Answer = Vec<Result<ChangeReport>>;

    fn requests(&self) -> &[ForgetRequest] {
        self
    }

    fn answer(answers: Vec<Result<ChangeReport>>) -> Self::Answer {
        answers
    }
}

impl ForgetOrder for Vec<ForgetRequest> {
    type Answer = Vec<Result<ChangeReport>>;

    fn requests(&self) -> &[ForgetRequest] {
        self
    }

    fn answer(answers: Vec<Result<ChangeReport>>) -> Self::Answer {
        answers
    }
}
