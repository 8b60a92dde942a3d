//! What a user can say about the columns of a table, and the plan that follows from it: which
//! column is ignored, read as words, forced to a kind, or left to inference.

use std::collections::HashMap;

use super::{FeatureError, FeatureSteps, vocabulary::MAX_DISTINCT_WORDS};

/// How the columns of a table become features.
///
/// When text columns are named, the features are the columns named as text, numeric or categorical
/// and no others. Otherwise every column that is not ignored is a feature, and those without a
/// forced kind are inferred: numeric when every value that is present is a number, else one-hot.
#[derive(Debug, Clone, PartialEq)]
pub struct EncoderOptions {
    /// Columns that are no features: target, id, subject, weight, and those the user leaves out.
    pub ignored: Vec<String>,
    /// Columns read as words.
    pub text: Vec<String>,
    /// Columns that are one-hot whatever they look like, with as many levels as they have.
    pub categorical: Vec<String>,
    /// Columns that must hold numbers.
    pub numeric: Vec<String>,
    /// Where the words of text columns come from.
    pub words: WordSource,
    /// The most levels of a column that was inferred to be one-hot.
    pub max_levels: usize,
    /// The most distinct words of a text column, and the most levels of a forced one-hot column.
    pub max_words: usize,
    /// What is done to columns before a model sees them.
    pub steps: FeatureSteps,
    /// Whether a column stays one-hot where all values but numbers are gone, because the model
    /// cannot do with numbers.
    pub fixed_kinds: bool,
    /// A secret from which the order of names is drawn, and which is then dropped. The place that
    /// an erased name leaves unused then says nothing about it. Without one, names stand in
    /// alphabetical order.
    pub shuffled: Option<u64>,
}

impl Default for EncoderOptions {
    fn default() -> Self {
        Self {
            ignored: Vec::new(),
            text: Vec::new(),
            categorical: Vec::new(),
            numeric: Vec::new(),
            words: WordSource::default(),
            max_levels: 1000,
            max_words: MAX_DISTINCT_WORDS,
            steps: FeatureSteps::default(),
            fixed_kinds: false,
            shuffled: None,
        }
    }
}

/// Where the words of a text column come from.
#[derive(Debug, Clone, PartialEq)]
pub enum WordSource {
    /// The commonest words of the rows, this many at most.
    Learned(usize),
    /// These words.
    Supplied(Vec<String>),
    /// No words: hashes into this many columns.
    Hashed(u64),
}

impl Default for WordSource {
    fn default() -> Self {
        Self::Learned(1500)
    }
}

/// What becomes of one column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ColumnPlan {
    Ignore,
    Text,
    Categorical,
    /// Levels whose features are their mean targets.
    Means,
    Numeric,
    Infer,
}

impl EncoderOptions {
    /// The plan for each column of a table, or the first option that does not fit it.
    pub(crate) fn plan(&self, columns: &[String]) -> Result<Vec<ColumnPlan>, FeatureError> {
        let mut place = HashMap::with_capacity(columns.len());
        for (at, name) in columns.iter().enumerate() {
            if place.insert(name.as_str(), at).is_some() {
                return Err(FeatureError::DuplicateColumn { name: name.clone() });
            }
        }
        let mut plans: Vec<Option<(ColumnPlan, &'static str)>> = vec![None; columns.len()];
        let no_columns = Vec::new();
        let as_means = self
            .steps
            .target_means
            .as_ref()
            .map_or(&no_columns, |means| &means.columns);
        for (names, plan, what) in [
            (&self.text, ColumnPlan::Text, "text"),
            (&self.categorical, ColumnPlan::Categorical, "categorical"),
            (as_means, ColumnPlan::Means, "mean target"),
            (&self.numeric, ColumnPlan::Numeric, "numeric"),
            (
                &self.ignored,
                ColumnPlan::Ignore,
                "ignored (target, id, subject, weight or left out)",
            ),
        ] {
            for name in names {
                let Some(&at) = place.get(name.as_str()) else {
                    return Err(FeatureError::UnknownColumn {
                        name: name.clone(),
                        exist: columns.to_vec(),
                    });
                };
                match plans[at] {
                    Some((other, first)) if other != plan => {
                        return Err(FeatureError::ConflictingColumn {
                            name: name.clone(),
                            first,
                            second: what,
                        });
                    }
                    _ => plans[at] = Some((plan, what)),
                }
            }
        }
        let rest = if self.text.is_empty() {
            ColumnPlan::Infer
        } else {
            ColumnPlan::Ignore
        };
        let plans: Vec<ColumnPlan> = plans
            .into_iter()
            .map(|plan| plan.map_or(rest, |(plan, _)| plan))
            .collect();
        if plans.iter().all(|&plan| plan == ColumnPlan::Ignore) {
            return Err(FeatureError::NoFeatures);
        }
        Ok(plans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&n| n.into()).collect()
    }

    #[test]
    fn without_text_every_column_left_is_a_feature() {
        let options = EncoderOptions {
            ignored: names(&["y"]),
            numeric: names(&["a"]),
            ..Default::default()
        };
        assert_eq!(
            options.plan(&names(&["a", "y", "b"])),
            Ok(vec![
                ColumnPlan::Numeric,
                ColumnPlan::Ignore,
                ColumnPlan::Infer
            ])
        );
    }

    #[test]
    fn with_text_only_named_columns_are_features() {
        let mut options = EncoderOptions {
            text: names(&["t"]),
            ..Default::default()
        };
        let table = names(&["a", "t", "b"]);
        assert_eq!(
            options.plan(&table),
            Ok(vec![
                ColumnPlan::Ignore,
                ColumnPlan::Text,
                ColumnPlan::Ignore
            ])
        );
        options.categorical = names(&["b"]);
        assert_eq!(
            options.plan(&table),
            Ok(vec![
                ColumnPlan::Ignore,
                ColumnPlan::Text,
                ColumnPlan::Categorical
            ])
        );
    }

    #[test]
    fn options_that_do_not_fit_the_table_are_errors() {
        let table = names(&["a", "b"]);
        let plan = |options: EncoderOptions| options.plan(&table);
        assert_eq!(
            plan(EncoderOptions {
                ignored: names(&["c"]),
                ..Default::default()
            }),
            Err(FeatureError::UnknownColumn {
                name: "c".into(),
                exist: table.clone()
            })
        );
        assert!(matches!(
            plan(EncoderOptions {
                text: names(&["a"]),
                ignored: names(&["a"]),
                ..Default::default()
            }),
            Err(FeatureError::ConflictingColumn { first: "text", .. })
        ));
        assert_eq!(
            plan(EncoderOptions {
                ignored: names(&["a", "b", "a"]),
                ..Default::default()
            }),
            Err(FeatureError::NoFeatures)
        );
        assert_eq!(
            EncoderOptions::default().plan(&names(&["a", "a"])),
            Err(FeatureError::DuplicateColumn { name: "a".into() })
        );
    }
}
