//! What is done to columns before a model sees them, as a user asks for it. Nothing here is learned
//! from rows: what follows from rows is kept as counts and sums beside it, so that it can be worked
//! out again when rows come and go.

use serde::{Deserialize, Serialize};

use super::{FeatureError, TargetEncoding, TextAnalyzer};

/// The steps between raw cells and features.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FeatureSteps {
    /// How numeric columns are scaled.
    pub scale: ColumnScale,
    /// What stands for a number that is missing.
    pub missing: MissingNumbers,
    /// How texts become words, and words numbers.
    pub words: WordSteps,
    /// Columns whose levels become mean targets, where there are any.
    pub target_means: Option<TargetEncoding>,
    /// What becomes of the features of all columns together.
    pub expansion: FeatureExpansion,
}

impl FeatureSteps {
    /// Refuses settings outside of their ranges.
    pub(crate) fn check(&self) -> Result<(), FeatureError> {
        if let Some(TargetEncoding { smoothing, .. }) = &self.target_means
            && !(smoothing.is_finite() && *smoothing >= 0.0)
        {
            let name = "the smoothing of mean targets";
            let range = "a finite number, 0 or more";
            return Err(FeatureError::Expansion {
                name,
                value: smoothing.to_string(),
                range,
            });
        }
        self.expansion.check()
    }
}

/// How numeric columns are scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnScale {
    /// Numbers stay as they are.
    #[default]
    None,
    /// Mean 0 and standard deviation 1, as scikit-learn's `StandardScaler`.
    Standard,
    /// From 0 for the least to 1 for the greatest value, as scikit-learn's `MinMaxScaler`.
    MinMax,
}

/// What stands for a number that is missing.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MissingNumbers {
    /// A row without a number in a numeric column is an error.
    #[default]
    Refused,
    /// The mean of the numbers that are there, as scikit-learn's `SimpleImputer`.
    Mean {
        /// Whether a column that has gaps gets another one that says where.
        indicator: bool,
    },
    /// This number.
    Constant {
        /// The number.
        value: f64,
        /// Whether a column that has gaps gets another one that says where.
        indicator: bool,
    },
}

impl MissingNumbers {
    /// Whether rows may lack numbers.
    pub(crate) fn is_filled(self) -> bool {
        self != Self::Refused
    }

    /// Whether a column of its own says where numbers were missing.
    pub(crate) fn has_indicator(self) -> bool {
        matches!(
            self,
            Self::Mean { indicator: true }
                | Self::Constant {
                    indicator: true,
                    ..
                }
        )
    }
}

/// How texts become words, and words numbers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WordSteps {
    /// What the words of a text are.
    pub analyzer: TextAnalyzer,
    /// Words in fewer rows than this are left out.
    pub least_rows: Option<RowShare>,
    /// Words in more rows than this are left out.
    pub most_rows: Option<RowShare>,
    /// Weights for counts of words; without them, a count is a feature as it is.
    pub weighting: Option<TermWeighting>,
}

/// A number of rows, or a share of all rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowShare {
    /// So many rows.
    Rows(u64),
    /// This share of all rows, from 0 to 1.
    Share(f64),
}

impl RowShare {
    /// Reads a whole number as rows and a fraction as a share, as scikit-learn does with `min_df`
    /// and `max_df`.
    pub fn parse(text: &str) -> Result<Self, FeatureError> {
        if let Ok(rows) = text.parse::<u64>() {
            return Ok(Self::Rows(rows));
        }
        match text.parse::<f64>() {
            Ok(share) if (0.0..=1.0).contains(&share) => Ok(Self::Share(share)),
            _ => Err(FeatureError::RowShare { found: text.into() }),
        }
    }

    /// In rows, where there are `all` of them.
    pub(crate) fn of(self, all: u64) -> f64 {
        match self {
            Self::Rows(rows) => rows as f64,
            Self::Share(share) => share * all as f64,
        }
    }
}

/// Weights for counts of words, as scikit-learn's `TfidfTransformer` makes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermWeighting {
    /// 1 + ln(count) in the place of a count.
    pub sublinear: bool,
    /// One row more, which holds every word, so that no frequency is 0.
    pub smooth: bool,
    /// Whether the features of a text have the Euclidean norm 1.
    pub normalised: bool,
}

impl Default for TermWeighting {
    fn default() -> Self {
        Self {
            sublinear: false,
            smooth: true,
            normalised: true,
        }
    }
}

impl TermWeighting {
    /// The weight of a word that is in `documents` of `all` rows.
    pub(crate) fn inverse_frequency(self, documents: u64, all: u64) -> f64 {
        let more = u64::from(self.smooth);
        // A word that no row holds has no feature anyway; the weight must only be a number.
        let documents = (documents + more).max(1);
        ((all + more) as f64 / documents as f64).ln() + 1.0
    }

    /// A count as it enters the product with the weight of its word.
    pub(crate) fn term(self, count: f64) -> f64 {
        if self.sublinear {
            count.ln() + 1.0
        } else {
            count
        }
    }
}

/// What becomes of the features of all columns together.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeatureExpansion {
    /// They stay as they are.
    #[default]
    None,
    /// Every product of up to `degree` of them, as scikit-learn's
    /// `PolynomialFeatures(include_bias=False)`.
    Polynomial {
        /// 2 to 4.
        degree: u32,
        /// Whether products of different features alone are made, without squares.
        interactions: bool,
    },
    /// √(2/D)·cos(w·x + b) for D random w and b, whose products approximate the kernel exp(−‖x −
    /// y‖²/(2·scale²)), as scikit-learn's `RBFSampler` (Rahimi and Recht 2007). The seed and the
    /// names of the features fix w and b.
    Fourier {
        /// The number D of new features.
        features: usize,
        /// The distance at which rows are still alike.
        scale: f64,
        /// Fixes all that is random.
        seed: u64,
    },
    /// The directions in which the rows differ most.
    Components {
        /// How many.
        count: usize,
        /// Whether the mean of the rows is their origin, as in scikit-learn's `PCA`, or 0, as in
        /// its `TruncatedSVD`.
        centred: bool,
    },
}

/// The highest degree of a polynomial.
pub const HIGHEST_DEGREE: u32 = 4;

/// The most random waves.
pub const MOST_WAVES: usize = 100_000;

impl FeatureExpansion {
    /// Refuses settings outside of their ranges.
    pub(crate) fn check(&self) -> Result<(), FeatureError> {
        let refuse =
            |name, value: String, range| Err(FeatureError::Expansion { name, value, range });
        match *self {
            Self::Polynomial { degree, .. } if !(2..=HIGHEST_DEGREE).contains(&degree) => {
                refuse("the degree of a polynomial", degree.to_string(), "2 to 4")
            }
            Self::Fourier { features, .. } if !(1..=MOST_WAVES).contains(&features) => refuse(
                "the number of Fourier features",
                features.to_string(),
                "1 to 100000",
            ),
            Self::Fourier { scale, .. } if !(scale.is_finite() && scale > 0.0) => refuse(
                "the scale of Fourier features",
                scale.to_string(),
                "a finite number above 0",
            ),
            Self::Components { count: 0, .. } => refuse(
                "the number of components",
                "0".into(),
                "1 or more, and at most the number of features",
            ),
            _ => Ok(()),
        }
    }

    /// Returns true if the new features are linear in those of the columns, so that products of
    /// the former follow from products of the latter.
    pub(crate) fn is_linear(&self) -> bool {
        match self {
            Self::None | Self::Components { .. } => true,
            Self::Polynomial { .. } | Self::Fourier { .. } => false,
        }
    }

    /// Whether the new features follow from all rows.
    pub(crate) fn has_components(&self) -> bool {
        matches!(self, Self::Components { .. })
    }
}
