//! Why a command stopped: a message, perhaps a hint, and a kind that decides the exit code.

use std::io;
use std::path::Path;

use efface_engine::ErrorKind;

use crate::flags::flag;

/// The end of a command that did not do what it was asked, or did it and fell short.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    kind: FailureKind,
    broken_pipe: bool,
}

/// What decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailureKind {
    /// Nothing was done, for this kind of reason.
    Undone(ErrorKind),
    /// The change was made and is durable, but its bound is above the tolerance.
    ToleranceMissed,
}

/// The result of a command.
pub(crate) type Result<T = ()> = std::result::Result<T, Failure>;

impl Failure {
    fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let kind = FailureKind::Undone(kind);
        Self {
            message: message.into(),
            hint: None,
            kind,
            broken_pipe: false,
        }
    }

    /// Nothing was done, for this kind of reason.
    pub(crate) fn of_kind(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::new(kind, message)
    }

    /// The request itself makes no sense.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    /// The request makes sense, but doing it would destroy something.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Refused, message)
    }

    /// The model holds no such thing.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// The data cannot be used.
    pub(crate) fn data(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Data, message)
    }

    /// The model file is not what it should be.
    pub(crate) fn bad_model(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::BadModel, message)
    }

    /// What should not happen did.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// The change was made, but its bound is above the tolerance.
    pub(crate) fn tolerance_missed(message: impl Into<String>) -> Self {
        Self {
            kind: FailureKind::ToleranceMissed,
            ..Self::new(ErrorKind::Internal, message)
        }
    }

    /// Whether what was asked for was done all the same.
    pub(crate) fn is_warning(&self) -> bool {
        self.kind == FailureKind::ToleranceMissed
    }

    /// The operating system refused something about a file.
    pub(crate) fn file(path: &Path, what: &str, cause: &io::Error) -> Self {
        let message = format!("{} cannot be {what}: {cause}", path.display());
        Self {
            broken_pipe: cause.kind() == io::ErrorKind::BrokenPipe,
            ..Self::new(ErrorKind::Io, message)
        }
    }

    /// What to do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same kind of end in other words.
    pub(crate) fn with_message(mut self, message: String) -> Self {
        self.message = message;
        self
    }

    pub(crate) fn is_broken_pipe(&self) -> bool {
        self.broken_pipe
    }

    /// The exit code; `efface --help` lists them.
    pub(crate) fn code(&self) -> u8 {
        match self.kind {
            FailureKind::Undone(ErrorKind::Internal) => 1,
            FailureKind::Undone(ErrorKind::Usage) => 2,
            FailureKind::Undone(ErrorKind::Data) => 3,
            FailureKind::Undone(ErrorKind::NotFound) => 4,
            FailureKind::Undone(ErrorKind::Refused) => 5,
            FailureKind::Undone(ErrorKind::BadModel) => 6,
            FailureKind::Undone(ErrorKind::Io) => 7,
            FailureKind::ToleranceMissed => 8,
        }
    }
}

/// What can be done where a key cannot be used.
const KEY_HINT: &str = "put back the key file that was made with the model, for its owner alone (chmod 600); open an \
                        encrypted one with --passphrase-file, name a key that is elsewhere with --sign-with or \
                        --sign-with-agent, and replace a lost one with `efface keys MODEL --recover FILE`";

impl From<efface_engine::Error> for Failure {
    fn from(error: efface_engine::Error) -> Self {
        let broken_pipe = match &error {
            efface_engine::Error::Io { cause, .. } => cause.kind() == io::ErrorKind::BrokenPipe,
            _ => false,
        };
        let hint = match &error {
            efface_engine::Error::Exists { .. } => {
                Some("choose another name, or overwrite it with --force".into())
            }
            efface_engine::Error::Key { .. } => Some(KEY_HINT.into()),
            // Whoever runs the command has the file, and may know what is in it.
            efface_engine::Error::ClassEmptied { class } => Some(format!("the class is `{class}`")),
            error => error.hint().map(|hint| hint.worded(flag)),
        };
        let message = match &error {
            efface_engine::Error::Core(efface::Error::Feature(error)) => error.worded(flag),
            error => error.to_string(),
        };
        Self {
            hint,
            broken_pipe,
            ..Self::new(error.kind(), message)
        }
    }
}

impl From<efface_io::Error> for Failure {
    fn from(error: efface_io::Error) -> Self {
        efface_engine::Error::from(error).into()
    }
}

impl From<efface::Error> for Failure {
    fn from(error: efface::Error) -> Self {
        efface_engine::Error::from(error).into()
    }
}

impl From<efface_reproduce::Error> for Failure {
    fn from(error: efface_reproduce::Error) -> Self {
        use efface_reproduce::Error as E;
        let kind = match error {
            E::Core(error) => return error.into(),
            E::Reader(error) => return error.into(),
            E::UnknownPart(_) | E::Setting { .. } => ErrorKind::Usage,
            E::OtherRun { .. } | E::NotARun(_) | E::Busy(_) | E::Stopped => ErrorKind::Refused,
            E::File { .. } => ErrorKind::Io,
            _ => ErrorKind::Data,
        };
        Self {
            hint: error.hint(),
            ..Self::new(kind, error.to_string())
        }
    }
}

/// Writing to standard output failed.
impl From<io::Error> for Failure {
    fn from(cause: io::Error) -> Self {
        Self::file(Path::new("standard output"), "written", &cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_codes_of_the_help() {
        assert_eq!(Failure::internal("").code(), 1);
        assert_eq!(Failure::usage("").code(), 2);
        assert_eq!(Failure::refused("").code(), 5);
        let closed = io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(Failure::file(Path::new("a"), "read", &closed).code(), 7);
        assert!(Failure::from(efface_engine::Error::io("a", closed)).is_broken_pipe());
        assert_eq!(Failure::from(efface::Error::NoRows).code(), 3);
        assert_eq!(Failure::tolerance_missed("").code(), 8);
    }
}
