//! The one error of this crate. Every message names the offending value, the accepted range and
//! what to do next, and never repeats the content of a row.

use crate::feature_error::FeatureError;
use crate::row_id::RowId;

/// What can go wrong while fitting, predicting or forgetting.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request names a row that the model does not hold.
    #[error("row {0} is not in this model: it was never added, or it has been forgotten already")]
    UnknownRow(RowId),
    /// The request names one row twice, or two rows carry one id.
    #[error("row {0} is named twice; name each row once")]
    DuplicateRow(RowId),
    /// Nothing would be left to learn from.
    #[error("forgetting {gone} of {rows} rows would leave none; delete the model instead")]
    NothingLeft {
        /// Rows named by the request.
        gone: usize,
        /// Rows in the model.
        rows: usize,
    },
    /// There is nothing to fit.
    #[error("there are no rows; a model needs at least one")]
    NoRows,
    /// A fit needs all rows at once.
    #[error(
        "a fit of {rows} rows in this form reads all of them at once; allow more memory, or keep the curvature as a factor"
    )]
    NeedsAllRows {
        /// How many rows there are.
        rows: usize,
    },
    /// A method reads all rows at once, and they are more than may be in memory.
    #[error(
        "this reads all {rows} rows at once, and they take more memory than is allowed; allow more memory"
    )]
    BeyondMemory {
        /// How many rows there are.
        rows: usize,
    },
    /// A graphics card, or what else multiplies rows, failed.
    #[error("the device that multiplies rows failed: {0}; fit on the processor instead")]
    Device(String),
    /// A feature, target or weight is NaN or infinite.
    #[error("row {row}, {place} is {value}; every value must be finite")]
    NotFinite {
        /// The row that holds it.
        row: RowId,
        /// `column 3`, `target 0`, `weight`.
        place: String,
        /// `NaN`, `inf` or `-inf`.
        value: f64,
    },
    /// Two parts of the input do not have the same size.
    #[error("{what}: {found} where {expected} was expected")]
    Shape {
        /// The part that does not fit.
        what: &'static str,
        /// Its size.
        found: usize,
        /// The size that would fit.
        expected: usize,
    },
    /// Rows hold word ids where the model calculates with numbers.
    #[error(
        "the rows hold word ids, and this model calculates with numbers; turn the texts into features, or fit a network"
    )]
    RowsOfWordIds,
    /// Rows hold numbers where a network reads word ids.
    #[error(
        "the rows hold numbers, and a network reads word ids; turn the texts into word ids with its embedding"
    )]
    RowsOfNumbers,
    /// A setting lies outside its range.
    #[error("{name} = {value} is out of range; it must be {range}")]
    Parameter {
        /// The setting.
        name: &'static str,
        /// What was given.
        value: String,
        /// What is accepted.
        range: &'static str,
    },
    /// The rows do not determine the parameters, or rounding hides that they do.
    #[error(
        "the rows do not determine the parameters: direction {pivot} of {width} is free, or cannot be told from free; use a \
         larger penalty, or bring the columns to like units"
    )]
    Singular {
        /// The first pivot that vanished.
        pivot: usize,
        /// The number of parameters.
        width: usize,
    },
    /// Every row counts for nothing.
    #[error("no row has a weight above 0; at least one must count for something")]
    NoWeight,
    /// A row of leverage 1 carries a direction alone; without a penalty, or with one that rounding
    /// hides, nothing would determine it afterwards.
    #[error(
        "without these rows the parameters are not determined (largest leverage {leverage:.6}, penalty {lambda}); {}",
        penalty_advice(*lambda)
    )]
    LeverageOne {
        /// The largest leverage among the rows to forget.
        leverage: f64,
        /// The penalty in force.
        lambda: f64,
    },
    /// The values are too large to be squared.
    #[error(
        "the values are too large: their squares overflow; divide features and targets by a common factor"
    )]
    Overflow,
    /// An iteration stopped before its tolerance.
    #[error(
        "conjugate gradients stopped after {iterations} iterations at a relative residual of {residual:.3e}, \
         above the tolerance {tolerance:.3e}; raise the iteration limit, the tolerance or the penalty"
    )]
    NotConverged {
        /// Iterations done.
        iterations: usize,
        /// What was reached.
        residual: f64,
        /// What was asked.
        tolerance: f64,
    },
    /// Training stopped before its tolerance.
    #[error(
        "training stopped after {iterations} steps at a gradient norm of {gradient:.3e}, above the tolerance \
         {tolerance:.3e}; raise the penalty, the tolerance or the number of steps"
    )]
    NotTrained {
        /// Steps done.
        iterations: usize,
        /// What was reached.
        gradient: f64,
        /// What was asked.
        tolerance: f64,
    },
    /// A class has no row, and nothing keeps its intercept from running away.
    #[error(
        "class {class} of {classes} would have no row: then no finite optimum exists, because the intercept is not \
         penalised; fit anew without that class, or without an intercept"
    )]
    EmptyClass {
        /// Its number, from 0.
        class: usize,
        /// How many there are.
        classes: usize,
    },
    /// Without a penalty, rows that a plane separates push the parameters to infinity.
    #[error(
        "no finite optimum exists: a plane separates the classes, or nearly so, and lambda is 0; use a penalty above 0"
    )]
    Separable,
    /// A target is not a class.
    #[error("row {row}: its targets are not those of this model; {expected}")]
    NotAClass {
        /// The row.
        row: RowId,
        /// What a classifier takes.
        expected: &'static str,
    },
    /// A method cannot work on this model.
    #[error("{method} cannot be used here: {reason}")]
    Unsupported {
        /// The method.
        method: &'static str,
        /// Why, and what to use instead.
        reason: String,
    },
    /// There is too little to measure with.
    #[error("{what}: {found}, and at least {needed} are needed; {advice}")]
    TooFew {
        /// What there is too little of.
        what: &'static str,
        /// How much there is.
        found: usize,
        /// How much is needed.
        needed: usize,
        /// Why, and what to do.
        advice: &'static str,
    },
    /// A row cannot be judged.
    #[error(
        "row {row}: its margin is {value}; the model's scores overflow, so bring columns to like units and fit anew"
    )]
    Margin {
        /// The row.
        row: RowId,
        /// `NaN`, `inf` or `-inf`.
        value: f64,
    },
    /// One of the models that an audit compares with could not be made.
    #[error("oracle {oracle} could not be made: {cause}")]
    Oracle {
        /// Its number.
        oracle: usize,
        /// What went wrong.
        cause: Box<Error>,
    },
    /// A stored model does not make sense.
    #[error("the stored model is damaged: {0}")]
    Damaged(String),
    /// The caller asked the work to stop.
    #[error("stopped before the end; nothing was changed")]
    Stopped,
    /// A problem while turning columns into features.
    #[error(transparent)]
    Feature(#[from] FeatureError),
}

/// What helps where a direction was carried by the removed rows alone.
fn penalty_advice(lambda: f64) -> &'static str {
    if lambda > 0.0 {
        "the penalty is lost in rounding beside them: retrain, use a larger penalty, or bring the columns to like units"
    } else {
        "use a penalty above 0"
    }
}

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_who_has_a_penalty_is_told_to_use_one() {
        let told = |lambda| {
            Error::LeverageOne {
                leverage: 1.0,
                lambda,
            }
            .to_string()
        };
        assert!(
            told(0.0).ends_with("use a penalty above 0"),
            "{}",
            told(0.0)
        );
        assert!(
            !told(1.0).contains("above 0") && told(1.0).contains("larger penalty"),
            "{}",
            told(1.0)
        );
    }
}
