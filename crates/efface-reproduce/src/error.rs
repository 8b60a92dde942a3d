//! Why a run stopped: what was found, what was expected, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use crate::part::PaperPart;

/// The result of a run.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a run stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such table or figure.
    #[error("`{0}` is no table or figure of the paper")]
    UnknownPart(String),
    /// The data folder lacks a file.
    #[error("{} is missing; it is read for {used_for}", .path.display())]
    MissingData {
        /// The file.
        path: PathBuf,
        /// What it would have been used for.
        used_for: &'static str,
    },
    /// A file has too little in it.
    #[error("{name} has {found} rows; {needed} are needed for {why}")]
    TooFewRows {
        /// Which data.
        name: String,
        /// How many there are.
        found: usize,
        /// How many are needed.
        needed: usize,
        /// What for.
        why: String,
    },
    /// A file has too few different words in it.
    #[error("{name} has {found} different words; {needed} are needed for d = {needed}")]
    TooFewWords {
        /// Which data.
        name: String,
        /// How many there are.
        found: usize,
        /// How many are needed.
        needed: usize,
    },
    /// A file of the data folder is not what it should be.
    #[error("{} {what}", .path.display())]
    BadData {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The folder belongs to a run with other settings.
    #[error("{} holds another run: {difference}", .out.display())]
    OtherRun {
        /// The folder.
        out: PathBuf,
        /// In what the runs differ.
        difference: String,
    },
    /// The folder holds files of somebody else.
    #[error("{} is not empty, and what is in it is no run of this command", .0.display())]
    NotARun(PathBuf),
    /// Another process is at work there.
    #[error("another process is working in {}", .0.display())]
    Busy(PathBuf),
    /// The record of the run cannot be read.
    #[error("{} is damaged at line {line}: {what}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        what: String,
    },
    /// A setting outside its range.
    #[error("{name} is {value}; {range} is accepted")]
    Setting {
        /// Which.
        name: &'static str,
        /// What was given.
        value: String,
        /// What would be accepted.
        range: &'static str,
    },
    /// The system refused something about a file.
    #[error("{} cannot be {what}: {cause}", .path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// The system's reason.
        cause: io::Error,
    },
    /// The watcher asked the run to end.
    #[error("stopped; what was finished is kept")]
    Stopped,
    /// The linear core.
    #[error(transparent)]
    Core(#[from] efface::Error),
    /// The networks.
    #[error(transparent)]
    Network(#[from] efface_nn::Error),
    /// A reader of files.
    #[error(transparent)]
    Reader(#[from] efface_io::Error),
}

impl Error {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::UnknownPart(_) => format!("the parts are {}, and all", PaperPart::names().join(", ")),
            Self::MissingData { .. } => {
                "name the folder that holds the sets with --data, or leave --data out to run on generated data".into()
            }
            Self::TooFewRows { .. } => {
                "give a larger file, or leave --data out to run on generated data; every trial needs as many".into()
            }
            Self::TooFewWords { .. } => "give a larger file, or leave --data out to run on generated data".into(),
            Self::BadData { .. } => "docs/reproduce.md says which columns each file must have".into(),
            Self::OtherRun { .. } => {
                "choose another --out, or repeat the settings to go on with it; --force starts over and moves the old \
                 files into a folder `earlier-1` in it"
                    .into()
            }
            Self::NotARun(_) => {
                "choose a new or empty folder with --out; --force writes beside what is there, and moves files of the same \
                 names into a folder `earlier-1` in it"
                    .into()
            }
            Self::Busy(_) => "wait until it has ended, or choose another --out".into(),
            Self::Damaged { .. } => "remove the line, or choose another --out".into(),
            Self::File { .. } => "choose a folder that you can write to with --out".into(),
            Self::Stopped => "the same command goes on where it stopped".into(),
            _ => return None,
        })
    }

    pub(crate) fn file(path: &Path, what: &'static str, cause: io::Error) -> Self {
        Self::File {
            path: path.into(),
            what,
            cause,
        }
    }
}
