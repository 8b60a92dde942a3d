//! What a request could not take out of a model. Every kind has a code that stays the same from
//! version to version, for programs, and a sentence, for people. Nothing compares sentences.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One thing that a request could not take out of a model, or out of the file that keeps it.
///
/// As JSON it has its `code`, the numbers and names that belong to it, and the sentence as
/// `detail`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case", remote = "Self")]
#[non_exhaustive]
pub enum NotCovered {
    /// A column is one-hot because of values that are gone.
    ColumnKind {
        /// The column.
        column: String,
    },
    /// The features of a column are words or levels that the rows which are left would not choose.
    ChosenWords {
        /// The column.
        column: String,
        /// How many words were chosen.
        words: usize,
    },
    /// The scale of a numeric column, or the weights of words, follow from rows that are gone.
    FeatureScale {
        /// The column.
        column: String,
    },
    /// The components of all columns follow from rows that are gone.
    FeatureComponents,
    /// An approximate step left something in the parameters.
    ApproximateStep,
    /// The model in memory remembers a run of gradient descent.
    DescentPath,
    /// An approximate method left weights in columns that no retained row has.
    DeadColumns {
        /// The norm of those weights.
        norm: f64,
    },
    /// The kept curvature follows from earlier parameters.
    KeptCurvature,
    /// The encoder of a network was trained on the rows, and only the head forgets.
    EncoderTraining,
    /// The encoder of a network was not trained on rows that were learned later.
    EncoderUntrained,
    /// The words of a network's encoder were chosen from all texts.
    EncoderWords,
    /// The words that all shards of networks share were chosen from all texts.
    ShardWords,
    /// A network was trained further and not anew.
    TrainedFurther,
    /// The choice of requests that were made after looking at the published model.
    AdaptiveRequests,
    /// Classes that no row has any more keep their names.
    EmptyClasses {
        /// How many classes.
        classes: usize,
    },
    /// Forgotten rows wait for the next settle.
    AwaitingSettle {
        /// How many rows.
        rows: usize,
        /// Whether words that these rows alone held wait with them.
        words: bool,
    },
    /// Keyed hashes of forgotten names are kept.
    ForgottenIds,
    /// A file system or a drive may keep blocks that were overwritten.
    StorageBlocks,
    /// The units of numeric columns were chosen from all rows.
    ColumnUnits,
    /// The weights with which a softmax holds the sum over its classes were chosen from all rows.
    ClassGauge,
    /// The penalty was chosen from all rows, those that are gone included.
    ChosenPenalty,
    /// New rows hold words or levels that the model has no feature for.
    UnknownNames {
        /// How many words or levels.
        names: usize,
    },
    /// There are more copies than a receipt lists.
    OlderCopies {
        /// How many are not listed.
        copies: usize,
    },
    /// A certificate's budget is not a number, so that nothing is claimed.
    UnknownBudget,
}

impl NotCovered {
    /// One of every kind, for tests and tables that list the codes.
    pub fn examples() -> Vec<Self> {
        let column = || "text".to_owned();
        vec![
            Self::ColumnKind { column: column() },
            Self::ChosenWords {
                column: column(),
                words: 1000,
            },
            Self::FeatureScale { column: column() },
            Self::FeatureComponents,
            Self::ApproximateStep,
            Self::DescentPath,
            Self::DeadColumns { norm: 1e-3 },
            Self::KeptCurvature,
            Self::EncoderTraining,
            Self::EncoderUntrained,
            Self::EncoderWords,
            Self::ShardWords,
            Self::TrainedFurther,
            Self::AdaptiveRequests,
            Self::EmptyClasses { classes: 2 },
            Self::AwaitingSettle {
                rows: 2,
                words: true,
            },
            Self::ForgottenIds,
            Self::StorageBlocks,
            Self::ColumnUnits,
            Self::ClassGauge,
            Self::ChosenPenalty,
            Self::UnknownNames { names: 2 },
            Self::OlderCopies { copies: 2 },
            Self::UnknownBudget,
        ]
    }

    /// Whether an answer of the model may still depend on rows that are gone because of it. The
    /// others are kept in the file on purpose, or lie where no program reaches, and no answer reads
    /// them.
    pub fn reaches_answers(&self) -> bool {
        !matches!(
            self,
            Self::KeptCurvature
                | Self::ColumnUnits
                | Self::ClassGauge
                | Self::AwaitingSettle { .. }
                | Self::ForgottenIds
                | Self::StorageBlocks
                | Self::OlderCopies { .. }
        )
    }

    /// The name that stays the same from version to version.
    pub fn code(&self) -> &'static str {
        match self {
            Self::ColumnKind { .. } => "column_kind",
            Self::ChosenWords { .. } => "chosen_words",
            Self::FeatureScale { .. } => "feature_scale",
            Self::FeatureComponents => "feature_components",
            Self::ApproximateStep => "approximate_step",
            Self::DescentPath => "descent_path",
            Self::DeadColumns { .. } => "dead_columns",
            Self::KeptCurvature => "kept_curvature",
            Self::EncoderTraining => "encoder_training",
            Self::EncoderUntrained => "encoder_untrained",
            Self::EncoderWords => "encoder_words",
            Self::ShardWords => "shard_words",
            Self::TrainedFurther => "trained_further",
            Self::AdaptiveRequests => "adaptive_requests",
            Self::EmptyClasses { .. } => "empty_classes",
            Self::AwaitingSettle { .. } => "awaiting_settle",
            Self::ForgottenIds => "forgotten_ids",
            Self::StorageBlocks => "storage_blocks",
            Self::ColumnUnits => "column_units",
            Self::ClassGauge => "class_gauge",
            Self::ChosenPenalty => "chosen_penalty",
            Self::UnknownNames { .. } => "unknown_names",
            Self::OlderCopies { .. } => "older_copies",
            Self::UnknownBudget => "unknown_budget",
        }
    }
}

/// What a request left, sorted by whether an answer may still depend on rows that are gone.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LeftBehind {
    /// What answers may still depend on.
    pub not_covered: Vec<NotCovered>,
    /// What is kept beside them.
    pub kept_beside: Vec<NotCovered>,
}

impl FromIterator<NotCovered> for LeftBehind {
    /// Each thing once: a method and an encoder may report the same one.
    fn from_iter<I: IntoIterator<Item = NotCovered>>(all: I) -> Self {
        let mut left = Self::default();
        for what in all {
            let list = if what.reaches_answers() {
                &mut left.not_covered
            } else {
                &mut left.kept_beside
            };
            if !list.contains(&what) {
                list.push(what);
            }
        }
        left
    }
}

/// The sentence.
impl fmt::Display for NotCovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ColumnKind { column } => {
                write!(f, "that column `{column}` is one-hot: values that are gone decided its kind")
            }
            Self::ChosenWords { column, words } => write!(
                f,
                "which {words} words or levels of column `{column}` are features: rows that are gone had a say in it, and \
                 this method keeps the features as they are; auto and retrain choose them anew"
            ),
            Self::FeatureScale { column } => write!(
                f,
                "the scale or the weights of column `{column}`: they follow from rows that are gone too, and this method \
                 keeps the features as they are; auto and retrain make them anew"
            ),
            Self::FeatureComponents => f.write_str(
                "the components of the columns: they follow from rows that are gone too, and this method keeps the features as \
                 they are; auto and retrain work them out anew",
            ),
            Self::ApproximateStep => f.write_str(
                "what an approximate step leaves of the rows in the parameters, at most as much as the bound allows: \
                 whoever has the retained rows can work it out",
            ),
            Self::DescentPath => f.write_str(
                "the remembered run of gradient descent, whose gradients are in part approximate: storing the model drops it",
            ),
            Self::DeadColumns { norm } => write!(
                f,
                "weights of norm {norm:.1e} in columns that no retained row has, as the method left them; clearing dead \
                 columns sets them to 0"
            ),
            Self::KeptCurvature => f.write_str(
                "the weights in the kept curvature, which follow from earlier parameters (in memory, these too), and the largest norm that a row \
                 ever had: whoever has the rows that are left can work a row out from them; retrain computes them anew",
            ),
            Self::EncoderTraining => f.write_str(
                "what the encoder learned from rows that left: only the head forgets; retrain or sisa cover it",
            ),
            Self::EncoderUntrained => f.write_str(
                "rows that were learned and that the encoder was never trained on: a network that is trained on all \
                 rows has another encoder; retrain trains it",
            ),
            Self::EncoderWords => f.write_str(
                "which words have a vector: they were chosen from all texts; words that no row holds any more lose their \
                 names and their trained vectors with every forget, and their places stay",
            ),
            Self::ShardWords => f.write_str(
                "which words have a vector: they were chosen from all texts; words that no row holds any more lose their \
                 names with every forget, and their places stay; a new fit of the rows that stay chooses them anew",
            ),
            Self::TrainedFurther => f.write_str(
                "what the network still holds of these rows: it was trained further and not anew, and nothing bounds what \
                 is left; retrain covers it",
            ),
            Self::AdaptiveRequests => f.write_str(
                "requests that depend on the published model: who looked at it to choose the rows left that choice in it, \
                 because the same seed is used again; retrain with a new seed covers it",
            ),
            Self::EmptyClasses { classes } => {
                let plural = if *classes == 1 { "" } else { "es" };
                let names = if *classes == 1 { "name" } else { "names" };
                write!(f, "the {names} of {classes} class{plural} that no row has any more: classes were listed at fit")
            }
            Self::AwaitingSettle { rows, words } => {
                let plural = if *rows == 1 { "" } else { "s" };
                let words = if *words { ", the words that they alone held," } else { "" };
                write!(
                    f,
                    "the bytes of {rows} forgotten row{plural}{words} and their share of the stored sums: nothing that is \
                     asked of the model reads them, and the next settle erases them"
                )
            }
            Self::ForgottenIds => f.write_str(
                "that a row of a given id, or a given person, was forgotten, and when: keyed hashes of the names are kept so \
                 that they cannot come back unnoticed, and whoever holds both the file and the key file beside it can test \
                 a guess",
            ),
            Self::StorageBlocks => f.write_str(
                "what a file system or a drive keeps of blocks that were overwritten: snapshots, copies on write, blocks that \
                 an SSD has moved",
            ),
            Self::ColumnUnits => f.write_str(
                "the units in which columns are computed (a power of two each, and an origin near the mean where it dwarfs \
                 the spread): they were chosen at the last fit, and no prediction depends on them",
            ),
            Self::ClassGauge => f.write_str(
                "the weights with which a softmax holds the sum of its coefficients over the classes (a power of two for each feature): \
                 they were chosen at the last fit, and no prediction depends on them",
            ),
            Self::ChosenPenalty => f.write_str(
                "the penalty λ: it was chosen at fit by how well rows were predicted that are gone now; a new fit chooses anew",
            ),
            Self::UnknownNames { names } => write!(
                f,
                "{names} words or levels of the new rows: they were not there at fit, so this model has no feature for \
                 them, where a new fit might"
            ),
            Self::OlderCopies { copies: 1 } => f.write_str("1 copy older than those listed"),
            Self::OlderCopies { copies } => write!(f, "{copies} copies older than those listed"),
            Self::UnknownBudget => {
                f.write_str("the certificate: its budget cannot be told, so that nothing is claimed")
            }
        }
    }
}

impl Serialize for NotCovered {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct WithDetail<'a> {
            #[serde(flatten, serialize_with = "write_fields")]
            fields: &'a NotCovered,
            detail: String,
        }
        fn write_fields<S: Serializer>(
            fields: &&NotCovered,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            NotCovered::serialize(fields, serializer)
        }
        Serialize::serialize(
            &WithDetail {
                fields: self,
                detail: self.to_string(),
            },
            serializer,
        )
    }
}

/// The sentence of a record is not read: it follows from the rest.
impl<'de> Deserialize<'de> for NotCovered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn json_has_code_and_sentence_and_comes_back_whole() {
        for what in NotCovered::examples() {
            let json = serde_json::to_value(&what).unwrap();
            assert_eq!(json["code"], what.code());
            assert_eq!(json["detail"], what.to_string());
            assert_eq!(serde_json::from_value::<NotCovered>(json).unwrap(), what);
        }
    }

    #[test]
    fn every_code_is_explained() {
        let page = include_str!("../../../docs/receipt.md");
        for what in NotCovered::examples() {
            let code = what.code();
            assert!(
                page.contains(&format!("`{code}`")),
                "docs/receipt.md says nothing of {code}"
            );
        }
    }

    #[test]
    fn codes_are_different() {
        let examples = NotCovered::examples();
        let codes: HashSet<_> = examples.iter().map(NotCovered::code).collect();
        assert_eq!(codes.len(), examples.len());
    }
}
