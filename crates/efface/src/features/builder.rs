//! The first pass over a table: watches every row, then decides what each column is. Memory is bounded whatever the
//! number of rows: a column being inferred keeps at most `max_levels` values, a text column at most `max_words` words.

use std::{borrow::Cow, collections::HashMap};

use super::{
    Cell, Encoder, EncoderOptions, FeatureColumn, FeatureError, FeatureSteps, HashedWords, Vocabulary,
    VocabularyLearner, WordSource,
    encoder::EncoderParts,
    named_places::CountedName,
    number_sums::NumberSums,
    options::ColumnPlan,
    schema::{FeatureKind, MISSING, check_number, number, text},
};

/// Builds an [`Encoder`] from the rows of a table, one at a time.
#[derive(Debug, Clone)]
pub struct EncoderBuilder {
    columns: Vec<(String, ColumnWatch)>,
    steps: FeatureSteps,
    learned_words: usize,
    max_levels: usize,
    max_words: usize,
    fixed_kinds: bool,
    shuffled: Option<u64>,
    rows: u64,
}

/// What is known of one column so far.
#[derive(Debug, Clone)]
enum ColumnWatch {
    Ignored,
    Numeric(NumberSums),
    Levels { levels: HashMap<Box<str>, u64>, as_means: bool },
    Learning(VocabularyLearner),
    Supplied { words: Vocabulary, documents: Vec<u64> },
    Hashed { hashed: HashedWords, documents: Vec<u64> },
    Inferring(ColumnInference),
}

#[derive(Debug, Clone)]
struct ColumnInference {
    /// Values with their rows; none once there were too many, which a numeric column may have.
    levels: Option<HashMap<Box<str>, u64>>,
    sums: NumberSums,
    first_missing: Option<u64>,
    first_text: Option<u64>,
}

impl EncoderBuilder {
    /// A builder for a table with these columns.
    pub fn new(columns: &[String], options: EncoderOptions) -> Result<Self, FeatureError> {
        let plans = options.plan(columns)?;
        options.steps.check()?;
        let steps = options.steps;
        let weighted = steps.words.weighting.is_some();
        let (learned_words, settled) = match options.words {
            WordSource::Learned(n) => (n, None),
            WordSource::Supplied(words) => {
                let words = Vocabulary::supplied_for(&steps.words.analyzer, words)?;
                let documents = vec![0; if weighted { words.len() } else { 0 }];
                (0, Some(ColumnWatch::Supplied { words, documents }))
            }
            WordSource::Hashed(buckets) => {
                let hashed = HashedWords::new(buckets)?;
                let documents = vec![0; if weighted { buckets as usize } else { 0 }];
                (0, Some(ColumnWatch::Hashed { hashed, documents }))
            }
        };
        let learner = VocabularyLearner::with_limit(options.max_words).reading(&steps.words.analyzer);
        let watch = |plan: ColumnPlan| match plan {
            ColumnPlan::Ignore => ColumnWatch::Ignored,
            ColumnPlan::Numeric => ColumnWatch::Numeric(NumberSums::default()),
            ColumnPlan::Categorical | ColumnPlan::Means => {
                ColumnWatch::Levels { levels: HashMap::new(), as_means: plan == ColumnPlan::Means }
            }
            ColumnPlan::Text => match &settled {
                Some(settled) => settled.clone(),
                None => ColumnWatch::Learning(learner.clone()),
            },
            ColumnPlan::Infer => ColumnWatch::Inferring(ColumnInference {
                levels: Some(HashMap::new()),
                sums: NumberSums::default(),
                first_missing: None,
                first_text: None,
            }),
        };
        let columns = columns.iter().zip(plans).map(|(name, plan)| (name.clone(), watch(plan))).collect();
        Ok(Self {
            columns,
            steps,
            learned_words,
            max_levels: options.max_levels,
            max_words: options.max_words,
            fixed_kinds: options.fixed_kinds,
            shuffled: options.shuffled,
            rows: 0,
        })
    }

    /// Takes note of one row. Fails as soon as a column cannot become features any more.
    pub fn observe(&mut self, cells: &[Cell], line: u64) -> Result<(), FeatureError> {
        if cells.len() != self.columns.len() {
            return Err(FeatureError::CellCount { line, found: cells.len(), expected: self.columns.len() });
        }
        self.rows += 1;
        let steps = &self.steps;
        let gaps = steps.missing.is_filled();
        for (cell, (column, watch)) in cells.iter().zip(&mut self.columns) {
            match watch {
                ColumnWatch::Ignored => {}
                ColumnWatch::Numeric(sums) => sums.learn(check_number(cell, line, column, gaps)?, steps),
                ColumnWatch::Levels { levels, .. } => {
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
                ColumnWatch::Supplied { words, documents } => {
                    if let Some(text) = text(cell).filter(|_| !documents.is_empty()) {
                        let mut entries = Vec::new();
                        words.append_counts(&steps.words.analyzer, &text, 0, &mut entries);
                        entries.iter().for_each(|(at, _)| documents[*at as usize] += 1);
                    }
                }
                ColumnWatch::Hashed { hashed, documents } => {
                    if let Some(text) = text(cell).filter(|_| !documents.is_empty()) {
                        let mut entries = Vec::new();
                        hashed.append_counts(&steps.words.analyzer, &text, 0, &mut entries);
                        entries.iter().for_each(|(at, _)| documents[*at as usize] += 1);
                    }
                }
                ColumnWatch::Inferring(inferring) => {
                    inferring.sums.learn(number(cell), steps);
                    inferring.observe(cell, line, column, self.max_levels)?
                }
            }
        }
        Ok(())
    }

    /// Decides what each column is.
    pub fn finish(self) -> Result<Encoder, FeatureError> {
        let gaps = self.steps.missing.is_filled();
        let mut parts = EncoderParts {
            columns: Vec::new(),
            names: Vec::new(),
            table_width: self.columns.len(),
            steps: self.steps,
            fixed_kinds: self.fixed_kinds,
            shuffled: self.shuffled,
            rows: self.rows,
        };
        // Columns without names of their own have the first raw places.
        let mut next = 0u64;
        for (position, (name, watch)) in self.columns.into_iter().enumerate() {
            let column = parts.columns.len() as u32;
            let base = next as u32;
            let kind = match watch {
                ColumnWatch::Ignored => continue,
                ColumnWatch::Numeric(sums) => FeatureKind::Number { base, sums },
                ColumnWatch::Levels { levels, as_means } => {
                    parts.names.extend(counted(column, levels));
                    FeatureKind::Levels { inferred: false, as_means }
                }
                ColumnWatch::Learning(learner) => {
                    parts.names.extend(learner.into_tallies().map(|(name, rows, total)| CountedName {
                        column,
                        name,
                        rows,
                        total,
                    }));
                    FeatureKind::Words { most: self.learned_words }
                }
                ColumnWatch::Supplied { words, documents } => {
                    FeatureKind::Supplied { base, words, documents }
                }
                ColumnWatch::Hashed { hashed, documents } => FeatureKind::Hashed { base, hashed, documents },
                ColumnWatch::Inferring(inferring) => match inferring.levels(&name, gaps)? {
                    Some(levels) => {
                        parts.names.extend(counted(column, levels));
                        FeatureKind::Levels { inferred: true, as_means: false }
                    }
                    None => FeatureKind::Number { base, sums: inferring.sums },
                },
            };
            let column = FeatureColumn { name, position, kind };
            next += column.run(gaps).map_or(0, |(_, width)| u64::from(width));
            if next + parts.names.len() as u64 > u64::from(u32::MAX) {
                return Err(FeatureError::TooWide { width: next + parts.names.len() as u64 });
            }
            parts.columns.push(column);
        }
        Encoder::build(parts, next as u32)
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

    /// The levels of a column that is one-hot; None for a numeric one.
    fn levels(&self, column: &str, gaps: bool) -> Result<Option<HashMap<Box<str>, u64>>, FeatureError> {
        match (self.first_text, self.first_missing) {
            (None, Some(line)) if !gaps => Err(FeatureError::MissingNumber { line, column: column.into() }),
            (None, _) => Ok(None),
            (Some(_), _) => Ok(Some(self.levels.clone().unwrap_or_default())),
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

fn counted(column: u32, levels: HashMap<Box<str>, u64>) -> impl Iterator<Item = CountedName> {
    levels.into_iter().map(move |(name, rows)| CountedName { column, name: name.into(), rows, total: rows })
}
