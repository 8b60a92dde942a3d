//! How a model is judged: at its fit, and later by a file.

use std::path::PathBuf;

use clap::Args;

use super::DataArguments;

/// Rows that a new model is judged by. Their figures are stored with it until its rows change.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct ScoringArguments {
    /// Judge the model by the rows of FILE, which has the same columns; --where holds for it too,
    /// and rows that the model is fitted on are refused
    #[arg(long, value_name = "FILE", help_heading = "How good is it")]
    pub(crate) test: Option<PathBuf>,

    /// Hold out this share of the rows, by a hash of their ids, and judge the model by them; they
    /// are not in the model
    #[arg(
        long,
        value_name = "SHARE",
        allow_hyphen_values = true,
        help_heading = "How good is it"
    )]
    pub(crate) holdout: Option<f64>,

    /// Judge every row by a model that is fitted without its fold; the model itself is fitted on
    /// all rows
    #[arg(long, value_name = "FOLDS", help_heading = "How good is it")]
    pub(crate) cv: Option<usize>,
}

impl ScoringArguments {
    /// Whether rows are drawn, which follows from the seed.
    pub(crate) fn draws(&self) -> bool {
        self.holdout.is_some() || self.cv.is_some()
    }
}

/// Say how good a model is on the rows of a file
#[derive(Debug, Args)]
#[command(after_help = super::help::EVALUATE)]
pub(crate) struct EvaluateArguments {
    /// Model file
    pub(crate) model: PathBuf,

    #[command(flatten)]
    pub(crate) data: DataArguments,

    /// Folder of the pretrained encoder [default: where it was at the fit]
    #[arg(long, value_name = "DIR")]
    pub(crate) encoder: Option<PathBuf>,
}

/// A penalty: a number, or the word for choosing one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum PenaltyValue {
    Given(f64),
    Auto,
}

/// `0.5`, `auto`.
pub(super) fn penalty(text: &str) -> Result<PenaltyValue, String> {
    match text {
        "auto" => Ok(PenaltyValue::Auto),
        number => {
            let number = number
                .parse()
                .map_err(|_| "write a number, or auto".to_owned())?;
            Ok(PenaltyValue::Given(number))
        }
    }
}
