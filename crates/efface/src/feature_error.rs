//! What can go wrong between a table and its features. Messages name the line, the column and the
//! fix, and never repeat the content of a row.

use crate::hint::{Hint, Setting};

/// A problem while turning columns into features.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FeatureError {
    /// An option names a column that the table does not have.
    #[error(
        "there is no column `{name}`{}; the table has {}",
        did_you_mean(name, exist),
        list(exist)
    )]
    UnknownColumn {
        /// The name that was given.
        name: String,
        /// The columns of the table.
        exist: Vec<String>,
    },
    /// A table lacks a column that the encoder was built on.
    #[error(
        "this table lacks column `{name}`, which the model was fitted on{}; it has {}",
        did_you_mean(name, exist),
        list(exist)
    )]
    MissingColumn {
        /// The column that the encoder needs.
        name: String,
        /// The columns of the table.
        exist: Vec<String>,
    },
    /// Two columns carry one name, so that a name does not say which is meant.
    #[error("column `{name}` occurs twice in the table; rename one of the two")]
    DuplicateColumn {
        /// The name.
        name: String,
    },
    /// Two options want different things of one column.
    #[error("column `{name}` is named as {first} and as {second}; choose one")]
    ConflictingColumn {
        /// The column.
        name: String,
        /// The one use, as in `a text column`.
        first: &'static str,
        /// The other use.
        second: &'static str,
    },
    /// A line of a table of synonyms makes no sense.
    #[error("line {line} of the table of synonyms: {what}")]
    Synonyms {
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
    /// No text has two words.
    #[error("none of {texts} texts has two words, so that there is none to make another from")]
    NothingToAlter {
        /// How many there were.
        texts: usize,
    },
    /// Nothing is left to learn from.
    #[error("no features: every column is ignored or empty; {}", name_a_column())]
    NoFeatures,
    /// A row does not have as many cells as the table has columns.
    #[error("line {line} has {found} cells where the table has {expected} columns")]
    CellCount {
        /// The line.
        line: u64,
        /// Its cells.
        found: usize,
        /// The columns of the table.
        expected: usize,
    },
    /// A numeric column has no value here.
    #[error(
        "line {line} has no value in the numeric column `{column}`; {}",
        fill_in()
    )]
    MissingNumber {
        /// The line.
        line: u64,
        /// The column.
        column: String,
    },
    /// A numeric column holds something that is not a number.
    #[error(
        "line {line} has no number in the numeric column `{column}`; {}",
        correct()
    )]
    NotANumber {
        /// The line.
        line: u64,
        /// The column.
        column: String,
    },
    /// A numeric column holds NaN or an infinity.
    #[error(
        "line {line} is not finite in the numeric column `{column}`; every value must be a finite number"
    )]
    NotFinite {
        /// The line.
        line: u64,
        /// The column.
        column: String,
    },
    /// A column of anything but numbers has too many distinct values for one-hot.
    #[error(
        "column `{column}` is not numeric (line {line} is the first without a number) and has more than {limit} \
         distinct values; {}",
        read_otherwise()
    )]
    TooManyLevels {
        /// The column.
        column: String,
        /// The first line whose cell is neither missing nor a number.
        line: u64,
        /// The most distinct values that are accepted.
        limit: usize,
    },
    /// A column that was forced to be one-hot has too many distinct values even so.
    #[error(
        "column `{column}` has more than {limit} distinct values, {}",
        leave_out()
    )]
    TooManyForcedLevels {
        /// The column.
        column: String,
        /// The most distinct values that are accepted.
        limit: usize,
    },
    /// A vocabulary would not fit.
    #[error(
        "the text holds more than {limit} distinct words; hash the words instead of learning a vocabulary"
    )]
    TooManyWords {
        /// The most distinct words that are counted.
        limit: usize,
    },
    /// A supplied vocabulary has an empty entry.
    #[error("word {position} of the supplied vocabulary is empty; remove it")]
    EmptyWord {
        /// Its place, from 1.
        position: usize,
    },
    /// A supplied vocabulary names a word twice.
    #[error("`{word}` occurs twice in the supplied vocabulary; remove one (word {position})")]
    DuplicateWord {
        /// The word.
        word: String,
        /// The place of the second one, from 1.
        position: usize,
    },
    /// A supplied word that no text can ever match.
    #[error(
        "word {position} of the supplied vocabulary, `{word}`, can never occur: words are lower-case runs of two or \
         more letters, digits or underscores; rewrite or remove it"
    )]
    UnusableWord {
        /// The word.
        word: String,
        /// Its place, from 1.
        position: usize,
    },
    /// A hashed vocabulary of an impossible size.
    #[error("{found} hash buckets are out of range; use 1 to 2147483648")]
    Buckets {
        /// What was given.
        found: u64,
    },
    /// Runs of words or characters of an impossible length.
    #[error(
        "runs of {least} to {most} words or characters are out of range; use 1 to {limit}, the shorter first"
    )]
    RunLengths {
        /// The shortest run.
        least: usize,
        /// The longest run.
        most: usize,
        /// The longest run that is accepted.
        limit: usize,
    },
    /// Words cannot be left out where characters are counted.
    #[error(
        "stop words are for words, and characters are counted here; leave out the one or the other"
    )]
    StoppedCharacters,
    /// A limit on the rows that hold a word makes no sense.
    #[error("`{found}` is neither a whole number of rows nor a share from 0.0 to 1.0")]
    RowShare {
        /// What was given.
        found: String,
    },
    /// No word can be a feature.
    #[error(
        "no features: no word of column `{column}` is left that rows hold within the limits; allow words in fewer or in \
         more rows, leave out fewer stop words, or keep rows that have words"
    )]
    NoWords {
        /// The column.
        column: String,
    },
    /// The columns of all features together do not fit into 32 bits.
    #[error(
        "the features need {width} columns, more than 4294967295; use fewer hash buckets or fewer text columns"
    )]
    TooWide {
        /// The columns needed.
        width: u64,
    },
    /// A setting of a step is outside of its range.
    #[error("{name} is {value}; it must be {range}")]
    Expansion {
        /// What was set.
        name: &'static str,
        /// To what.
        value: String,
        /// The accepted range.
        range: &'static str,
    },
    /// Random waves of so many features would need too much memory.
    #[error(
        "{waves} Fourier features of {features} features need {} random numbers, more than {limit}; ask for fewer of either",
        *features as u64 * *waves as u64
    )]
    TooManyWaves {
        /// The features of the columns.
        features: usize,
        /// The features asked for.
        waves: usize,
        /// The most numbers.
        limit: u64,
    },
    /// There are more features than components are worked out of.
    #[error(
        "components are worked out from the products of up to {limit} features, and the columns have {features}; use a smaller \
         vocabulary, fewer hash buckets or fewer columns"
    )]
    TooManyProducts {
        /// The features of the columns.
        features: usize,
        /// The most of them.
        limit: usize,
    },
    /// The rows have fewer directions than were asked for.
    #[error(
        "{count} components are asked for, and the rows differ in {distinct} directions; ask for at most {distinct}"
    )]
    TooManyComponents {
        /// The components asked for.
        count: usize,
        /// The directions that there are.
        distinct: usize,
    },
    /// The rows do not say which direction is the last.
    #[error(
        "the rows vary as much along direction {} as along direction {count}, so that they do not say which {count} components are \
         meant; ask for one more or one less",
        count + 1
    )]
    NoGap {
        /// The components asked for.
        count: usize,
    },
    /// The products of features overflow.
    #[error(
        "the products of the features are not finite, so that they have no components; scale the columns first"
    )]
    NoDirections,
    /// A stored encoder does not make sense.
    #[error("the stored encoder is damaged: {0}")]
    Damaged(String),
}

impl FeatureError {
    /// The message, with settings in the words of the caller (see [`Hint::worded`]).
    pub fn worded(&self, word: impl Fn(Setting, Option<&str>) -> String) -> String {
        let message = self.to_string();
        let Some(hint) = self.hint() else {
            return message;
        };
        let problem = message.strip_suffix(&hint.to_string()).unwrap_or(&message);
        format!("{problem}{}", hint.worded(word))
    }

    /// The end of the message that names settings, if it has one.
    fn hint(&self) -> Option<Hint> {
        match self {
            Self::NoFeatures => Some(name_a_column()),
            Self::MissingNumber { .. } => Some(fill_in()),
            Self::NotANumber { .. } => Some(correct()),
            Self::TooManyLevels { .. } => Some(read_otherwise()),
            Self::TooManyForcedLevels { .. } => Some(leave_out()),
            _ => None,
        }
    }
}

fn name_a_column() -> Hint {
    Hint::new("name one with {}, {} or {}")
        .name(Setting::Text)
        .name(Setting::Numeric)
        .name(Setting::Categorical)
}

fn fill_in() -> Hint {
    Hint::new(
        "fill it in, fill all gaps by {}, leave the column out with {}, or make it one-hot with {}",
    )
    .name(Setting::Impute)
    .name(Setting::Ignore)
    .name(Setting::Categorical)
}

fn correct() -> Hint {
    Hint::new(
        "correct it, name words that stand for nothing with {}, say with {} that 3,14 is a number, leave the column out with {}, or make \
         it one-hot with {}",
    )
    .name(Setting::Missing)
    .name(Setting::DecimalComma)
        .name(Setting::Ignore)
        .name(Setting::Categorical)
}

fn read_otherwise() -> Hint {
    Hint::new(
        "name words that stand for nothing with {}, read it as words with {}, force one-hot with {}, or leave it out with {}",
    )
        .name(Setting::Missing)
        .name(Setting::Text)
        .name(Setting::Categorical)
        .name(Setting::Ignore)
}

fn leave_out() -> Hint {
    Hint::new("too many for {}; leave it out with {}")
        .name(Setting::Categorical)
        .name(Setting::Ignore)
}

/// ` (did you mean …?)` for the nearest existing name, or nothing when none is near.
fn did_you_mean(name: &str, exist: &[String]) -> String {
    let allowed = (name.chars().count() / 3).max(1);
    let wanted = name.to_lowercase();
    exist
        .iter()
        .map(|other| (edit_distance(&wanted, &other.to_lowercase()), other))
        .filter(|&(distance, _)| distance <= allowed)
        .min()
        .map_or_else(String::new, |(_, other)| {
            format!(" (did you mean `{other}`?)")
        })
}

/// The names in the order of the table; a wide table is cut short.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 20;
    if names.is_empty() {
        return "no columns".into();
    }
    let mut text = names
        .iter()
        .take(SHOWN)
        .map(|n| format!("`{n}`"))
        .collect::<Vec<_>>()
        .join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}

/// Levenshtein distance in characters, with one row of the table in memory.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, &to) in b.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (diagonal + usize::from(from != to))
                .min(above + 1)
                .min(row[j] + 1);
            diagonal = above;
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distance_of_known_pairs() {
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("same", "same"), 0);
    }

    #[test]
    fn an_unknown_column_lists_what_exists_and_suggests_the_nearest() {
        let exist = vec!["review_id".to_string(), "Stars".into(), "text".into()];
        let shown = FeatureError::UnknownColumn {
            name: "star".into(),
            exist: exist.clone(),
        }
        .to_string();
        assert_eq!(
            shown,
            "there is no column `star` (did you mean `Stars`?); the table has `review_id`, `Stars`, `text`"
        );
        let shown = FeatureError::MissingColumn {
            name: "price".into(),
            exist,
        }
        .to_string();
        assert!(!shown.contains("did you mean"), "{shown}");
        let many: Vec<String> = (0..50).map(|i| format!("column {i}")).collect();
        assert!(list(&many).ends_with("`column 19` and 30 more"));
    }
}
