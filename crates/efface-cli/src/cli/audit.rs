//! What `efface audit` understands.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

use super::help;
use super::parse::{self, SubjectValue};

/// Measure how well a model forgets, against a true retraining
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("who").args(["forget", "subject", "sample", "file"]).required(true)),
    after_help = help::AUDIT
)]
pub(crate) struct AuditArguments {
    /// Model file
    pub(crate) model: PathBuf,

    /// Rows to forget in a copy, by id, with commas
    #[arg(
        long,
        alias = "ids",
        value_name = "IDS",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    pub(crate) forget: Vec<String>,

    /// Person whose rows to forget in a copy
    #[arg(long, value_name = "COLUMN=VALUE", value_parser = parse::person)]
    pub(crate) subject: Option<SubjectValue>,

    /// Forget K rows at random in a copy
    #[arg(long, value_name = "K")]
    pub(crate) sample: Option<usize>,

    /// Rows that the model has forgotten already, from a file
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Methods to compare with retraining, with commas [default: the model's own choice]
    #[arg(
        long, value_name = "METHODS", value_delimiter = ',', hide_possible_values = true,
        value_parser = parse::methods()
    )]
    pub(crate) method: Vec<String>,

    /// Forget rows that equal those named as well
    #[arg(long, conflicts_with = "file")]
    pub(crate) with_twins: bool,

    /// Rows that the model never saw, from a file
    #[arg(long, value_name = "FILE")]
    pub(crate) held_out: Option<PathBuf>,

    /// Models to fit for the attacks, 16 or more; 0 to leave them out
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(crate) oracles: usize,

    /// Share of the other rows that each of them sees
    #[arg(long, value_name = "X", default_value_t = 0.5)]
    pub(crate) keep: f64,

    /// Number that fixes every random draw
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Oracles fitted at once; the result does not depend on it [default: all cores]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,

    /// Folder for audit.json, a page and a table of every number
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// The page alone, as one file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Overwrite the files of an earlier audit
    #[arg(long)]
    pub(crate) force: bool,

    /// Leave a signed receipt of the figures in the model's log
    #[arg(long)]
    pub(crate) record: bool,
}
