//! What is done to columns before a model sees them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use efface::features::{ColumnScale, RowShare, TextUnit};

/// The steps between columns and features. All of them forget: after a forget they are those of the
/// rows that stay.
#[derive(Debug, Args)]
#[command(next_help_heading = "Features")]
pub(crate) struct FeatureArguments {
    /// Scale numeric columns: to mean 0 and deviation 1, or to 0 for the least and 1 for the
    /// greatest value
    #[arg(long, value_enum, value_name = "SCALE", default_value_t = ScaleName::None)]
    pub(crate) scale: ScaleName,

    /// Fill gaps in numeric columns: mean, constant=V, and indicator for a feature that says where
    /// they were
    #[arg(long, value_name = "HOW", value_delimiter = ',', value_parser = gap, allow_hyphen_values = true)]
    pub(crate) impute: Vec<GapFilling>,

    /// Weigh words by how few rows hold them
    #[arg(long)]
    pub(crate) tfidf: bool,

    /// What every text is divided by after weighing: its Euclidean norm, or nothing, so that a
    /// ridge model forgets without a pass over the rows
    #[arg(long, value_enum, value_name = "NORM", requires = "tfidf", default_value_t = NormName::L2)]
    pub(crate) norm: NormName,

    /// Take 1 + ln(count) for the count of a word
    #[arg(long, requires = "tfidf")]
    pub(crate) sublinear: bool,

    /// Count runs of N words or characters too, from the shortest to the longest [default: 1]
    #[arg(long, value_name = "N[,N]", value_parser = runs)]
    pub(crate) ngrams: Option<(usize, usize)>,

    /// What runs are made of: words, characters, or characters within words
    #[arg(long, value_enum, value_name = "UNIT", default_value_t = UnitName::Word)]
    pub(crate) analyzer: UnitName,

    /// Words to leave out: english, none, or the words of a file, one a line
    #[arg(long, value_name = "english|FILE|none")]
    pub(crate) stop_words: Option<PathBuf>,

    /// Leave out words in fewer rows than this: a whole number of rows, or a share of them as in
    /// 0.01
    #[arg(long, value_name = "ROWS", value_parser = share)]
    pub(crate) min_df: Option<RowShare>,

    /// Leave out words in more rows than this
    #[arg(long, value_name = "ROWS", value_parser = share)]
    pub(crate) max_df: Option<RowShare>,

    /// Columns whose levels become the mean of their targets, drawn towards the mean of all rows;
    /// as scikit-learn's TargetEncoder gives for new rows
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    pub(crate) target_encode: Vec<String>,

    /// How many rows the mean of all targets counts for beside those of a level
    #[arg(
        long,
        value_name = "ROWS",
        requires = "target_encode",
        default_value_t = 10.0
    )]
    pub(crate) target_smoothing: f64,

    /// Add the products of up to N features: 2 to 4
    #[arg(long, value_name = "N", group = "expansion")]
    pub(crate) polynomial: Option<u32>,

    /// Multiply different features alone, without squares
    #[arg(long, requires = "polynomial")]
    pub(crate) interactions: bool,

    /// Take N random Fourier features, which approximate a Gaussian kernel and follow from --seed
    #[arg(long, value_name = "N", group = "expansion")]
    pub(crate) fourier: Option<usize>,

    /// The distance at which rows are still alike to Fourier features
    #[arg(long, value_name = "S", requires = "fourier", default_value_t = 1.0)]
    pub(crate) fourier_scale: f64,

    /// Take the first K principal components of the features
    #[arg(long, value_name = "K", group = "expansion")]
    pub(crate) pca: Option<usize>,

    /// Take the first K singular vectors of the features, whose origin is 0 and not the mean
    #[arg(long, value_name = "K", group = "expansion")]
    pub(crate) svd: Option<usize>,
}

/// How numeric columns are scaled.
#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
pub(crate) enum ScaleName {
    Standard,
    Minmax,
    None,
}

impl From<ScaleName> for ColumnScale {
    fn from(name: ScaleName) -> Self {
        match name {
            ScaleName::Standard => Self::Standard,
            ScaleName::Minmax => Self::MinMax,
            ScaleName::None => Self::None,
        }
    }
}

/// What texts are divided by.
#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
pub(crate) enum NormName {
    L2,
    None,
}

/// What runs are made of.
#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
pub(crate) enum UnitName {
    Word,
    Char,
    #[value(name = "char_wb")]
    CharWb,
}

impl From<UnitName> for TextUnit {
    fn from(name: UnitName) -> Self {
        match name {
            UnitName::Word => Self::Words,
            UnitName::Char => Self::Characters,
            UnitName::CharWb => Self::CharactersInWords,
        }
    }
}

/// A word of `--impute`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum GapFilling {
    Mean,
    Constant(f64),
    Indicator,
}

fn gap(text: &str) -> Result<GapFilling, String> {
    match (text, text.strip_prefix("constant=").map(str::parse)) {
        ("mean", _) => Ok(GapFilling::Mean),
        ("indicator", _) => Ok(GapFilling::Indicator),
        (_, Some(Ok(value))) if f64::is_finite(value) => Ok(GapFilling::Constant(value)),
        _ => Err(
            "write mean, constant=V with a finite number, indicator, or two of them with a comma"
                .into(),
        ),
    }
}

/// `2`, or `1,2` for runs of one and of two.
fn runs(text: &str) -> Result<(usize, usize), String> {
    let wrong = |_| "write the shortest and the longest run, as in 1,2".to_owned();
    match text.split_once(',') {
        Some((least, most)) => Ok((least.parse().map_err(wrong)?, most.parse().map_err(wrong)?)),
        None => text.parse().map(|length| (length, length)).map_err(wrong),
    }
}

fn share(text: &str) -> Result<RowShare, String> {
    RowShare::parse(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_steps_are_read_and_others_refused() {
        assert_eq!(
            [gap("mean"), gap("constant=-1.5")],
            [Ok(GapFilling::Mean), Ok(GapFilling::Constant(-1.5))]
        );
        for wrong in ["median", "constant", "constant=nan", ""] {
            assert!(gap(wrong).is_err(), "{wrong}");
        }
        assert_eq!([runs("2"), runs("1,3")], [Ok((2, 2)), Ok((1, 3))]);
        assert!(runs("1,2,3").is_err() && runs("a").is_err());
        assert_eq!(
            [share("2"), share("0.5")],
            [Ok(RowShare::Rows(2)), Ok(RowShare::Share(0.5))]
        );
        assert!(share("1.5").is_err() && share("-1").is_err());
    }
}
