//! The first pass over a table: watches every row, then decides what each column is. Memory is bounded whatever the
//! number of rows: a column being inferred keeps at most `max_levels` values, a text column at most `max_words` words.

use std::{borrow::Cow, collections::HashMap};

use super::{
    Cell, Encoder, EncoderOptions, FeatureColumn, FeatureError, Hashed, Vocabulary, VocabularyLearner,
    WordSource,
    names::Names,
    options::Plan,
    schema::{Kind, MISSING, check_number, number, text},
};

/// Builds an [`Encoder`] from the rows of a table, one at a time.
#[derive(Debug, Clone)]
pub struct EncoderBuilder {
    columns: Vec<(String, Watch)>,
    learned_words: usize,
    max_levels: usize,
    max_words: usize,
}

/// What is known of one column so far.
#[derive(Debug, Clone)]
enum Watch {
    Ignored,
    Numeric,
    Levels(HashMap<Box<str>, u64>),
    Learning(VocabularyLearner),
    /// Words that need no rows.
    Settled(Kind),
    Inferring(Inferring),
}

#[derive(Debug, Clone)]
struct Inferring {
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
            WordSource::Supplied(words) => (0, Some(Kind::Words(Vocabulary::supplied(words)?))),
            WordSource::Hashed(buckets) => (0, Some(Kind::Hashed(Hashed::new(buckets)?))),
        };
        let watch = |plan: Plan| match plan {
            Plan::Ignore => Watch::Ignored,
            Plan::Numeric => Watch::Numeric,
            Plan::Categorical => Watch::Levels(HashMap::new()),
            Plan::Text => match &settled {
                Some(kind) => Watch::Settled(kind.clone()),
                None => Watch::Learning(VocabularyLearner::with_limit(options.max_words)),
            },
            Plan::Infer => Watch::Inferring(Inferring {
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
                Watch::Ignored | Watch::Settled(_) => {}
                Watch::Numeric => {
                    check_number(cell, line, column)?;
                }
                Watch::Levels(levels) => {
                    if !tally(levels, cell, self.max_words) {
                        return Err(FeatureError::TooManyForcedLevels {
                            column: column.clone(),
                            limit: self.max_words,
                        });
                    }
                }
                Watch::Learning(learner) => {
                    if let Some(text) = text(cell) {
                        learner.observe(&text)?;
                    }
                }
                Watch::Inferring(inferring) => inferring.observe(cell, line, column, self.max_levels)?,
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
                Watch::Ignored => continue,
                Watch::Numeric => Kind::Numeric,
                Watch::Levels(levels) => Kind::OneHot { levels: sorted(levels)?, inferred: false },
                Watch::Learning(learner) => Kind::Words(learner.finish(self.learned_words)?),
                Watch::Settled(kind) => kind,
                Watch::Inferring(inferring) => inferring.finish(&name)?,
            };
            features.push(FeatureColumn { name, position, kind });
        }
        Encoder::new(features, table_width)
    }
}

impl Inferring {
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

    fn finish(self, column: &str) -> Result<Kind, FeatureError> {
        match (self.first_text, self.first_missing) {
            (None, None) => Ok(Kind::Numeric),
            (None, Some(line)) => Err(FeatureError::MissingNumber { line, column: column.into() }),
            (Some(_), _) => {
                Ok(Kind::OneHot { levels: sorted(self.levels.unwrap_or_default())?, inferred: true })
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

fn sorted(levels: HashMap<Box<str>, u64>) -> Result<Names, FeatureError> {
    let mut levels: Vec<(String, u64)> =
        levels.into_iter().map(|(level, rows)| (level.into(), rows)).collect();
    levels.sort_unstable();
    Names::counted(levels)
}
