//! The one error of this crate: what happened, of which kind it is, and what to do next. Messages
//! name lines, columns and ids, and never repeat the content of a row.

mod estimate;
mod hints;
mod suppression;

use std::path::{Path, PathBuf};

use efface::Hint;
use efface::features::FeatureError;

pub use self::estimate::MethodEstimate;
use self::estimate::listed;
pub use self::suppression::SuppressionKind;
use self::suppression::who_comes_back;

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request contradicts itself.
    #[error("{what}")]
    Request {
        /// What does not go together.
        what: String,
        /// What to do instead.
        hint: Option<Hint>,
    },
    /// A row that should be none of the model's is one.
    #[error("row {id}, line {line}, is in this model")]
    StillThere {
        /// The row.
        id: String,
        /// Its line.
        line: u64,
    },
    /// There is no method of that name.
    #[error("there is no method `{name}`")]
    UnknownMethod {
        /// What was asked.
        name: String,
        /// What there is.
        known: Vec<&'static str>,
    },
    /// Nothing was asked.
    #[error("the request names no row")]
    EmptyRequest,
    /// A request names a row twice.
    #[error("row {id} is named twice; name each row once")]
    NamedTwice {
        /// The row.
        id: String,
    },
    /// A file holds a header and nothing else.
    #[error("{} has no rows; at least one is needed", file.display())]
    NoRows {
        /// The file.
        file: PathBuf,
    },
    /// No row of a file is meant.
    #[error("no row of {} is meant by {what}", file.display())]
    NothingChosen {
        /// The file.
        file: PathBuf,
        /// What chose among its rows.
        what: String,
    },
    /// What is wrong in one of several files that are read together.
    #[error("{}: {cause}", file.display())]
    InFile {
        /// The file.
        file: PathBuf,
        /// What is wrong there.
        cause: Box<Error>,
    },
    /// A cell that cannot be used.
    #[error("line {line}, column `{column}`: {problem}")]
    Cell {
        /// The line.
        line: u64,
        /// The column.
        column: String,
        /// What is wrong with it.
        problem: &'static str,
        /// What to do.
        hint: Option<Hint>,
    },
    /// A line that cannot be used.
    #[error("line {line}: {problem}")]
    Line {
        /// The line.
        line: u64,
        /// What is wrong with it.
        problem: String,
        /// What to do.
        hint: Option<Hint>,
    },
    /// Two rows of a file carry one id.
    #[error(
        "row {id} occurs twice, on lines {first} and {second}; every row needs an id of its own"
    )]
    RepeatedId {
        /// The id.
        id: String,
        /// The line of the first.
        first: u64,
        /// The line of the second.
        second: u64,
    },
    /// The target values make no classes.
    #[error("{what}")]
    Classes {
        /// What is wrong with them.
        what: String,
        /// What to do.
        hint: Option<Hint>,
    },
    /// A row to learn is there already.
    #[error("line {line}: row {id} is already in this model")]
    AlreadyThere {
        /// The id.
        id: String,
        /// The line that brings it.
        line: u64,
    },
    /// A row to learn was forgotten before.
    #[error("{} on {on} and must not come back", who_comes_back(*line, id, *by))]
    ComesBack {
        /// The id.
        id: String,
        /// The date.
        on: String,
        /// The line that brings it; 0 where that is not known.
        line: u64,
        /// By what it is known.
        by: SuppressionKind,
    },
    /// The model does not hold the row.
    #[error("row {id} is not in this model{}", by_position(id, *positions))]
    UnknownRow {
        /// The id.
        id: String,
        /// How many positions were ever given out, when ids are positions.
        positions: Option<u64>,
    },
    /// The model held the row once.
    #[error("row {id} is not in this model; it was forgotten on {on}")]
    WasForgotten {
        /// The id.
        id: String,
        /// The date.
        on: String,
    },
    /// The last rows of a class would leave, and nothing keeps its intercept from running away. The
    /// message goes into receipts and answers over HTTP, and does not tell of which class the rows
    /// are.
    #[error(
        "the last row of a class would leave: then no finite optimum exists, because the intercept is not penalised; \
         fit anew without that class, or without an intercept"
    )]
    ClassEmptied {
        /// The class, as the rows named it: for those who have the file.
        class: String,
    },
    /// Rows are not grouped by that column, or by none.
    #[error("{}", subject_column(asked, has.as_deref()))]
    SubjectColumn {
        /// What was asked.
        asked: String,
        /// The model's subject column.
        has: Option<String>,
    },
    /// Nobody of that name has rows here.
    #[error("no row in this model has `{value}` in column `{column}`")]
    UnknownSubject {
        /// The subject column.
        column: String,
        /// What was asked.
        value: String,
    },
    /// Rows without ids of their own cannot be corrected from a file.
    #[error(
        "this model was fitted without an id column, so a file cannot say which rows it corrects"
    )]
    NoIds,
    /// The output is there already.
    #[error("{} exists already", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The output is something that is never replaced.
    #[error("{} is {what}, which no output replaces", path.display())]
    Protected {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// An output is another file of the same request under another name.
    #[error("{} and {} are the same file", path.display(), other.display())]
    SameFile {
        /// The output.
        path: PathBuf,
        /// What else it is.
        other: PathBuf,
    },
    /// Some other file.
    #[error("{} is not an efface model", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// A file of the past.
    #[error("{} was written by an older efface (format {format}); this one reads format {}", path.display(), crate::FORMAT)]
    Older {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u32,
    },
    /// A file of the future.
    #[error("{} was written by a newer efface (format {format}); this one reads format {}", path.display(), crate::FORMAT)]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u32,
    },
    /// The file does not hold what it should.
    #[error("{} is damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Someone else is changing the file.
    #[error("{} is in use by another process", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// The file that holds the signing key cannot be used.
    #[error("key file {}: {problem}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// What holds the signing key did not sign.
    #[error("nothing could be signed, and nothing was changed: {problem}")]
    Signing {
        /// What went wrong.
        problem: String,
    },
    /// A request id that was used for something else.
    #[error("request {id} was answered before, and asked for something else")]
    RequestReused {
        /// The id.
        id: String,
    },
    /// A request expects the rows that a dry run found, and would now take out others.
    #[error("the rows of this request are not those that its preview found; nothing was changed")]
    RowsChanged,
    /// The release policy says to wait.
    #[error(
        "the release policy of this model waits for {more} more requests before new parameters may be published"
    )]
    Held {
        /// How many.
        more: u64,
    },
    /// The policy asks for witnesses of the log who have not signed its head.
    #[error(
        "the policy of this model publishes nothing that its witnesses have not seen: {problem}"
    )]
    Unwitnessed {
        /// What is wrong.
        problem: String,
    },
    /// A policy that protects forgotten rows less than the usual one, without the word for it.
    #[error(
        "{gives_up} lets whoever holds two versions compute the rows that were forgotten in between"
    )]
    Exposes {
        /// What the change would do.
        gives_up: String,
    },
    /// The parameters moved further than the noise of the release policy hides.
    #[error(
        "the parameters moved by up to {moved:.3e} since the last export, and the noise of the policy hides {allowed:.3e}"
    )]
    Moved {
        /// How far.
        moved: f64,
        /// How far they may.
        allowed: f64,
    },
    /// This version left before, under other noise.
    #[error(
        "this version was exported with noise of standard deviation {before} before, and the policy now asks for \
         {now_with}: two copies of one version with different noise tell more than either"
    )]
    OtherNoise {
        /// The noise of the copy that left.
        before: f64,
        /// The noise that the policy asks for.
        now_with: f64,
    },
    /// The seed of the noise on exports cannot be used.
    #[error("key file {}: {problem}", path.display())]
    NoiseSeed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The log has no such receipt.
    #[error("there is no receipt `{asked}`; the log holds {size}, numbered from 0")]
    UnknownReceipt {
        /// What was asked.
        asked: String,
        /// Receipts in the log.
        size: u64,
    },
    /// A receipt, proof or checkpoint does not hold.
    #[error("not verified: {0}")]
    Unverified(#[from] efface_receipt::ReceiptFault),
    /// The operating system refused.
    #[error("{}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        cause: std::io::Error,
    },
    /// A file of data could not be read.
    #[error(transparent)]
    Read(#[from] efface_io::Error),
    /// The mathematics refused.
    #[error(transparent)]
    Core(#[from] efface::Error),
    /// A network could not be trained, or its words could not be read.
    #[error(transparent)]
    Network(Box<efface_nn::Error>),
    /// A pretrained encoder could not be used.
    #[error(transparent)]
    Encoder(#[from] efface_nn::minilm::MiniLmError),
    /// A pretrained encoder, but not the one that the model was fitted with.
    #[error(
        "the encoder in {} is another one than the model was fitted with: its fingerprint is {}… and not {}…",
        folder.display(), start(found), start(expected)
    )]
    OtherEncoder {
        /// The folder.
        folder: PathBuf,
        /// Its fingerprint.
        found: String,
        /// That of the fit.
        expected: String,
    },
    /// Training the network anew would take longer than the request allows.
    #[error(
        "training the network anew takes about {seconds:.1} s, where {allowed} s are allowed; nothing was changed{}",
        listed(methods)
    )]
    TooLong {
        /// The seconds that the training is expected to take.
        seconds: f64,
        /// The seconds that it may take.
        allowed: f64,
        /// The methods that the request can name instead.
        methods: Vec<MethodEstimate>,
    },
    /// Somebody stopped it before there was anything to keep.
    #[error("interrupted before there was anything to keep; nothing was changed")]
    Interrupted,
}

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// What kind of reaction an error calls for; the command's exit code follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The request makes no sense.
    Usage,
    /// The data cannot be used.
    Data,
    /// A row or a column is not there.
    NotFound,
    /// It could be done, but must not.
    Refused,
    /// The model file cannot be used.
    BadModel,
    /// The file system failed.
    Io,
    /// A mistake of ours.
    Internal,
}

impl Error {
    /// An error of the operating system about a file.
    pub fn io(path: impl AsRef<Path>, cause: std::io::Error) -> Self {
        Self::Io {
            path: path.as_ref().to_owned(),
            cause,
        }
    }

    pub(crate) fn request(what: impl Into<String>, hint: impl Into<Hint>) -> Self {
        Self::Request {
            what: what.into(),
            hint: Some(hint.into()),
        }
    }

    /// A copy of this error, for another request of the group that failed with it.
    pub(crate) fn again(&self) -> Self {
        match self {
            Self::Locked { path } => Self::Locked { path: path.clone() },
            Self::Damaged { path, what } => Self::Damaged {
                path: path.clone(),
                what: what.clone(),
            },
            Self::Key { path, problem } => Self::Key {
                path: path.clone(),
                problem: problem.clone(),
            },
            Self::Signing { problem } => Self::Signing {
                problem: problem.clone(),
            },
            Self::NoiseSeed { path, problem } => Self::NoiseSeed {
                path: path.clone(),
                problem: problem.clone(),
            },
            Self::UnknownMethod { name, known } => Self::UnknownMethod {
                name: name.clone(),
                known: known.clone(),
            },
            Self::Io { path, cause } => Self::Io {
                path: path.clone(),
                cause: std::io::Error::new(cause.kind(), cause.to_string()),
            },
            other => Self::Request {
                what: other.to_string(),
                hint: None,
            },
        }
    }

    /// Which kind it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Request { .. }
            | Self::UnknownMethod { .. }
            | Self::EmptyRequest
            | Self::NamedTwice { .. } => ErrorKind::Usage,
            Self::InFile { cause, .. } => cause.kind(),
            Self::NoRows { .. }
            | Self::NothingChosen { .. }
            | Self::Cell { .. }
            | Self::Line { .. }
            | Self::RepeatedId { .. }
            | Self::Classes { .. }
            | Self::StillThere { .. }
            | Self::AlreadyThere { .. } => ErrorKind::Data,
            Self::UnknownRow { .. }
            | Self::WasForgotten { .. }
            | Self::SubjectColumn { .. }
            | Self::UnknownReceipt { .. }
            | Self::UnknownSubject { .. } => ErrorKind::NotFound,
            Self::ClassEmptied { .. }
            | Self::ComesBack { .. }
            | Self::NoIds
            | Self::Exists { .. }
            | Self::Protected { .. }
            | Self::SameFile { .. }
            | Self::Key { .. }
            | Self::Signing { .. }
            | Self::RequestReused { .. }
            | Self::RowsChanged
            | Self::Held { .. }
            | Self::Unwitnessed { .. }
            | Self::Exposes { .. }
            | Self::Moved { .. }
            | Self::OtherNoise { .. }
            | Self::NoiseSeed { .. }
            | Self::Unverified(_) => ErrorKind::Refused,
            Self::NotOurs { .. }
            | Self::Older { .. }
            | Self::Newer { .. }
            | Self::Damaged { .. }
            | Self::Locked { .. } => ErrorKind::BadModel,
            Self::Io { .. } => ErrorKind::Io,
            Self::Read(error) => read_kind(&error.fault),
            Self::Core(error) => core_kind(error),
            Self::Network(error) => match error.as_ref() {
                efface_nn::Error::Setting { .. } => ErrorKind::Usage,
                efface_nn::Error::Vectors { .. } | efface_nn::Error::NoKnownWord { .. } => {
                    ErrorKind::Data
                }
                efface_nn::Error::Damaged(_) => ErrorKind::BadModel,
                _ => ErrorKind::Refused,
            },
            Self::Encoder(error) => match error {
                efface_nn::minilm::MiniLmError::Read { .. } => ErrorKind::Io,
                efface_nn::minilm::MiniLmError::MaxTokens { .. } => ErrorKind::Usage,
                _ => ErrorKind::Data,
            },
            Self::OtherEncoder { .. } | Self::TooLong { .. } | Self::Interrupted => {
                ErrorKind::Refused
            }
        }
    }
}

fn read_kind(fault: &efface_io::ReadFault) -> ErrorKind {
    match fault {
        efface_io::ReadFault::Open(_)
        | efface_io::ReadFault::NoFiles(_)
        | efface_io::ReadFault::Read { .. } => ErrorKind::Io,
        efface_io::ReadFault::UnknownFormat
        | efface_io::ReadFault::Shape { .. }
        | efface_io::ReadFault::ParquetDisabled => ErrorKind::Usage,
        _ => ErrorKind::Data,
    }
}

fn core_kind(error: &efface::Error) -> ErrorKind {
    match error {
        efface::Error::UnknownRow(_) => ErrorKind::NotFound,
        efface::Error::DuplicateRow(_) | efface::Error::Parameter { .. } => ErrorKind::Usage,
        efface::Error::Oracle { cause, .. } => core_kind(cause),
        efface::Error::NothingLeft { .. }
        | efface::Error::TooFew { .. }
        | efface::Error::Singular { .. }
        | efface::Error::LeverageOne { .. }
        | efface::Error::NotConverged { .. }
        | efface::Error::NotTrained { .. }
        | efface::Error::EmptyClass { .. }
        | efface::Error::Separable
        | efface::Error::Unsupported { .. } => ErrorKind::Refused,
        efface::Error::NoRows
        | efface::Error::NoWeight
        | efface::Error::Overflow
        | efface::Error::NotAClass { .. }
        | efface::Error::Margin { .. }
        | efface::Error::NotFinite { .. } => ErrorKind::Data,
        efface::Error::Damaged(_) => ErrorKind::BadModel,
        efface::Error::Feature(error) => match error {
            FeatureError::UnknownColumn { .. } | FeatureError::MissingColumn { .. } => {
                ErrorKind::NotFound
            }
            FeatureError::ConflictingColumn { .. }
            | FeatureError::NoFeatures
            | FeatureError::EmptyWord { .. }
            | FeatureError::DuplicateWord { .. }
            | FeatureError::UnusableWord { .. }
            | FeatureError::Buckets { .. }
            | FeatureError::RunLengths { .. }
            | FeatureError::StoppedCharacters
            | FeatureError::RowShare { .. } => ErrorKind::Usage,
            FeatureError::Damaged(_) => ErrorKind::BadModel,
            _ => ErrorKind::Data,
        },
        _ => ErrorKind::Internal,
    }
}

impl From<efface_nn::Error> for Error {
    fn from(error: efface_nn::Error) -> Self {
        match error {
            efface_nn::Error::Core(error) => Self::Core(error),
            other => Self::Network(Box::new(other)),
        }
    }
}

/// The first digits of a fingerprint, enough to tell two apart.
fn start(fingerprint: &str) -> &str {
    fingerprint.get(..12).unwrap_or(fingerprint)
}

impl From<FeatureError> for Error {
    fn from(error: FeatureError) -> Self {
        Self::Core(error.into())
    }
}

/// Returns true if an id is a position below this one, as positions are written.
fn is_position_below(id: &str, end: u64) -> bool {
    id.parse()
        .is_ok_and(|position: u64| position < end && position.to_string() == id)
}

fn by_position(id: &str, given: Option<u64>) -> String {
    match given {
        Some(given) if is_position_below(id, given) => {
            ": it was fitted without an id column, so ids are positions, and the row at this position was held out, \
             left out by a condition, or forgotten"
                .into()
        }
        Some(given) => format!(
            ": it was fitted without an id column, so ids are positions 0…{}",
            given.saturating_sub(1)
        ),
        None => String::new(),
    }
}

fn subject_column(asked: &str, has: Option<&str>) -> String {
    match has {
        Some(has) => format!("the subject column of this model is `{has}`, not `{asked}`"),
        None => format!("this model has no subject column, so rows cannot be found by `{asked}`"),
    }
}
