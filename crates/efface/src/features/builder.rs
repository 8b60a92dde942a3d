//! The first pass over a table: watches every row, then decides what each column is. Memory is bounded whatever the
//! number of rows: a column being inferred keeps at most `max_levels` values, a text column at most `max_words` words.

use std::{borrow::Cow, collections::HashMap};

use super::{
    Cell, Encoder, EncoderOptions, FeatureColumn, FeatureError, HashedWords, Vocabulary, VocabularyLearner,
    WordSource,
    names::NameIndex,
    options::ColumnPlan,
    schema::{FeatureKind, MISSING, check_number, number, text},
};

/// Builds an [`Encoder`] from the rows of a table, one at a time.
#[derive(Debug, Clone)]
pub struct EncoderBuilder {
    columns: Vec<(String, ColumnWatch)>,
    learned_words: usize,
    max_levels: usize,
    max_words: usize,
}

/// What is known of one column so far.
#[derive(Debug, Clone)]
enum ColumnWatch {
    Ignored,
    Numeric,
    Levels(HashMap<Box<str>, u64>),
    Learning(VocabularyLearner),
    /// Words that were supplied or are hashed: no row has to be read for them.
    Settled(FeatureKind),
    Inferring(ColumnInference),
}

#[derive(Debug, Clone)]
struct ColumnInference {
    /// Values with their rows; none once there were too many, which a numeric column may have.
    levels: Option<HashMap<Box<str>, u64>>,
    first_missing: Option<u64>,
    first_text: Option<u64>,
}

impl EncoderBuilder {
    /// A builder for a table with these columns.
    pub fn new(columns: &[String], options: EncoderOptions) -> Result<Self, FeatureError> {
        let plans = options.plan(columns)?;
        let (learned_words, settled) = match options.words {
            WordSource::Learned(n) => (n, None),
            WordSource::Supplied(words) => (0, Some(FeatureKind::Words(Vocabulary::supplied(words)?))),
            WordSource::Hashed(buckets) => (0, Some(FeatureKind::Hashed(HashedWords::new(buckets)?))),
        };
        let watch = |plan: ColumnPlan| match plan {
            ColumnPlan::Ignore => ColumnWatch::Ignored,
            ColumnPlan::Numeric => ColumnWatch::Numeric,
            ColumnPlan::Categorical => ColumnWatch::Levels(HashMap::new()),
            ColumnPlan::Text => match &settled {
                Some(kind) => ColumnWatch::Settled(kind.clone()),
                None => ColumnWatch::Learning(VocabularyLearner::with_limit(options.max_words)),
            },
            ColumnPlan::Infer => ColumnWatch::Inferring(ColumnInference {
                levels: Some(HashMap::new()),
                first_missing: None,
                first_text: None,
            }),
        };
        let columns = columns.iter().zip(plans).map(|(name, plan)| (name.clone(), watch(plan))).collect();
        Ok(Self { columns, learned_words, max_levels: options.max_levels, max_words: options.max_words })
    }

    /// Takes note of one row. Fails as soon as a column cannot become features any more.
    pub fn observe(&mut self, cells: &[Cell], line: u64) -> Result<(), FeatureError> {
        if cells.len() != self.columns.len() {
            return Err(FeatureError::CellCount { line, found: cells.len(), expected: self.columns.len() });
        }
        for (cell, (column, watch)) in cells.iter().zip(&mut self.columns) {
            match watch {
                ColumnWatch::Ignored | ColumnWatch::Settled(_) => {}
                ColumnWatch::Numeric => {
                    check_number(cell, line, column)?;
                }
                ColumnWatch::Levels(levels) => {
                    if !tally(levels, cell, self.max_words) {
                        return Err(FeatureError::TooManyForcedLevels {
                            column: column.clone(),
                            limit: self.max_words,
                        });
                    }
                }
                ColumnWatch::Learning(learner) => {
                    if let Some(text) = text(cell) {
                        learner.observe(&text)?;
                    }
                }
                ColumnWatch::Inferring(inferring) => {
                    inferring.observe(cell, line, column, self.max_levels)?
                }
            }
        }
        Ok(())
    }

    /// Decides what each column is.
    pub fn finish(self) -> Result<Encoder, FeatureError> {
        let table_width = self.columns.len();
        let mut features = Vec::new();
        for (position, (name, watch)) in self.columns.into_iter().enumerate() {
            let kind = match watch {
                ColumnWatch::Ignored => continue,
                ColumnWatch::Numeric => FeatureKind::Numeric,
                ColumnWatch::Levels(levels) => {
                    FeatureKind::OneHot { levels: sorted(levels)?, inferred: false }
                }
                ColumnWatch::Learning(learner) => FeatureKind::Words(learner.finish(self.learned_words)?),
                ColumnWatch::Settled(kind) => kind,
                ColumnWatch::Inferring(inferring) => inferring.finish(&name)?,
            };
            features.push(FeatureColumn { name, position, kind });
        }
        Encoder::new(features, table_width)
    }
}

impl ColumnInference {
    fn observe(&mut self, cell: &Cell, line: u64, column: &str, limit: usize) -> Result<(), FeatureError> {
        match cell {
            Cell::Missing => {
                self.first_missing.get_or_insert(line);
            }
            _ if self.first_text.is_none() && number(cell).is_none() => self.first_text = Some(line),
            _ => {}
        }
        if let Some(levels) = &mut self.levels
            && !tally(levels, cell, limit)
        {
            self.levels = None;
        }
        match (&self.levels, self.first_text) {
            (None, Some(line)) => Err(FeatureError::TooManyLevels { column: column.into(), line, limit }),
            _ => Ok(()),
        }
    }

    fn finish(self, column: &str) -> Result<FeatureKind, FeatureError> {
        match (self.first_text, self.first_missing) {
            (None, None) => Ok(FeatureKind::Numeric),
            (None, Some(line)) => Err(FeatureError::MissingNumber { line, column: column.into() }),
            (Some(_), _) => {
                Ok(FeatureKind::OneHot { levels: sorted(self.levels.unwrap_or_default())?, inferred: true })
            }
        }
    }
}

/// Counts the cell's level; false when it would be one level too many.
fn tally(levels: &mut HashMap<Box<str>, u64>, cell: &Cell, limit: usize) -> bool {
    let level = text(cell).unwrap_or(Cow::Borrowed(MISSING));
    if let Some(rows) = levels.get_mut(level.as_ref()) {
        *rows += 1;
    } else if levels.len() < limit {
        levels.insert(level.into(), 1);
    } else {
        return false;
    }
    true
}

fn sorted(levels: HashMap<Box<str>, u64>) -> Result<NameIndex, FeatureError> {
    let mut levels: Vec<(String, u64)> =
        levels.into_iter().map(|(level, rows)| (level.into(), rows)).collect();
    levels.sort_unstable();
    NameIndex::counted(levels)
}
