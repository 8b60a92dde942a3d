//! Several models at once.

use std::path::PathBuf;

use clap::Args;

use super::help;

/// The folder of a request to several models.
#[derive(Debug, Args)]
pub(crate) struct FolderArguments {
    /// Ask all models of a folder, each with a receipt of its own; the same command again finishes
    /// what was cut short
    #[arg(
        long,
        value_name = "DIR",
        requires = "request",
        conflicts_with = "receipt",
        help_heading = "Several models"
    )]
    pub(crate) models: Option<PathBuf>,

    /// With --models: pass over models that the index of the folder says have no rows of the person
    #[arg(
        long,
        requires = "models",
        requires = "subject",
        help_heading = "Several models"
    )]
    pub(crate) by_index: bool,

    /// With --models: folder for the receipts, MODEL.cose each
    #[arg(
        long,
        value_name = "DIR",
        requires = "models",
        conflicts_with = "dry_run",
        help_heading = "Several models"
    )]
    pub(crate) receipts: Option<PathBuf>,
}

/// Note which models of a folder have rows of which person, by keyed hashes
#[derive(Debug, Args)]
#[command(after_help = help::INDEX)]
pub(crate) struct IndexArguments {
    /// Folder of model files
    pub(crate) models: PathBuf,
}
