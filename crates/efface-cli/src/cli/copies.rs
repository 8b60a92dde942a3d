//! Copies of a model, and what is made of them when the model is lost.

use std::path::PathBuf;

use clap::Args;

use super::help;

/// Copy a model file, or its log, while others may use it
#[derive(Debug, Args)]
#[command(after_help = help::BACKUP)]
pub(crate) struct BackupArguments {
    /// Model file
    pub(crate) model: PathBuf,

    /// Where the copy goes; nothing may be there yet
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// The log and the lists that it signs alone: no row, no name, no parameter
    #[arg(long)]
    pub(crate) log_only: bool,
}

/// Put an older copy in the place of a model that was lost, without what was forgotten since
#[derive(Debug, Args)]
#[command(after_help = help::RESTORE)]
pub(crate) struct RestoreArguments {
    /// The older copy, as `efface backup` made it
    pub(crate) backup: PathBuf,

    /// A newer file of the same log: the damaged model, or a copy made with `backup --log-only`
    #[arg(long, value_name = "NEWER")]
    pub(crate) log: PathBuf,

    /// Where the restored model goes, beside its key file; nothing may be there yet
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) output: PathBuf,
}
