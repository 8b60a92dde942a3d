//! The first pass over a table: watches every row, then decides what each column is. Memory is
//! bounded whatever the number of rows: a column being inferred keeps at most `max_levels` values,
//! a text column at most `max_words` words.
//!
//! Rows can be watched by several builders, each on a thread of its own: [`EncoderBuilder::fresh`]
//! makes one more, and [`EncoderBuilder::merge`] takes in what it saw.

use std::{borrow::Cow, collections::HashMap};

use super::{
    Cell, Encoder, EncoderOptions, FeatureColumn, FeatureError, FeatureSteps, HashedWords,
    Vocabulary, VocabularyLearner, WordSource,
    encoder::EncoderParts,
    named_places::CountedName,
    number_sums::{NumberSums, needs_no_values},
    options::ColumnPlan,
    schema::{FeatureKind, MISSING, check_number, level_number, number, text},
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
    Levels {
        levels: HashMap<Box<str>, u64>,
        as_means: bool,
    },
    Learning(VocabularyLearner),
    Supplied {
        words: Vocabulary,
        documents: Vec<u64>,
    },
    Hashed {
        hashed: HashedWords,
        documents: Vec<u64>,
    },
    Inferring(ColumnInference),
}

#[derive(Debug, Clone)]
struct ColumnInference {
    /// Values with their rows; none once there were too many, which a numeric column may have.
    levels: Option<HashMap<Box<str>, u64>>,
    sums: NumberSums,
    first_missing: Option<u64>,
    /// The first lines whose cells are neither missing nor numbers.
    text_lines: Vec<u64>,
}

/// The most lines of cells without a number that are remembered of a column.
const MOST_LINES: usize = 3;

/// Words that commonly stand for a missing value, in lower case.
const MISSING_WORDS: [&str; 14] = [
    "-", "--", "?", ".", "#n/a", "#null!", "missing", "n.a.", "n/a", "na", "nil", "none", "null",
    "unknown",
];

/// A column of numbers but for a few cells, which make every value of it a feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MixedColumn {
    /// The column.
    pub name: String,
    /// Rows with a number.
    pub numbers: u64,
    /// Rows with neither a number nor a missing value.
    pub others: u64,
    /// The lines of the first of these rows, at most three.
    pub lines: Vec<u64>,
    /// The words in these rows, if all of them commonly stand for a missing value.
    pub missing_words: Vec<String>,
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
        let learner =
            VocabularyLearner::with_limit(options.max_words).reading(&steps.words.analyzer);
        let watch = |plan: ColumnPlan| match plan {
            ColumnPlan::Ignore => ColumnWatch::Ignored,
            ColumnPlan::Numeric => ColumnWatch::Numeric(NumberSums::default()),
            ColumnPlan::Categorical | ColumnPlan::Means => ColumnWatch::Levels {
                levels: HashMap::new(),
                as_means: plan == ColumnPlan::Means,
            },
            ColumnPlan::Text => match &settled {
                Some(settled) => settled.clone(),
                None => ColumnWatch::Learning(learner.clone()),
            },
            ColumnPlan::Infer => ColumnWatch::Inferring(ColumnInference {
                levels: Some(HashMap::new()),
                sums: NumberSums::default(),
                first_missing: None,
                text_lines: Vec::new(),
            }),
        };
        let columns = columns
            .iter()
            .zip(plans)
            .map(|(name, plan)| (name.clone(), watch(plan)))
            .collect();
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
            return Err(FeatureError::CellCount {
                line,
                found: cells.len(),
                expected: self.columns.len(),
            });
        }
        self.rows += 1;
        let steps = &self.steps;
        let gaps = steps.missing.is_filled();
        for (cell, (column, watch)) in cells.iter().zip(&mut self.columns) {
            match watch {
                ColumnWatch::Ignored => {}
                ColumnWatch::Numeric(sums) => {
                    sums.learn(check_number(cell, line, column, gaps)?, steps)
                }
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
                        entries
                            .iter()
                            .for_each(|(at, _)| documents[*at as usize] += 1);
                    }
                }
                ColumnWatch::Hashed { hashed, documents } => {
                    if let Some(text) = text(cell).filter(|_| !documents.is_empty()) {
                        let mut entries = Vec::new();
                        hashed.append_counts(&steps.words.analyzer, &text, 0, &mut entries);
                        entries
                            .iter()
                            .for_each(|(at, _)| documents[*at as usize] += 1);
                    }
                }
                ColumnWatch::Inferring(inferring) => {
                    let number = number(cell);
                    inferring.sums.learn(number, steps);
                    inferring.observe(cell, number, line, column, self.max_levels)?
                }
            }
        }
        Ok(())
    }

    /// A builder of the same columns that has seen no row, for later rows than this one sees. None
    /// where what is kept of a column takes more memory than the rows that are watched at a time.
    #[must_use]
    pub fn fresh(&self) -> Option<Self> {
        let fresh = |watch: &ColumnWatch| {
            Some(match watch {
                ColumnWatch::Ignored => ColumnWatch::Ignored,
                ColumnWatch::Numeric(_) => ColumnWatch::Numeric(NumberSums::default()),
                ColumnWatch::Levels { as_means, .. } => ColumnWatch::Levels {
                    levels: HashMap::new(),
                    as_means: *as_means,
                },
                ColumnWatch::Learning(learner) => ColumnWatch::Learning(learner.fresh()),
                // Nothing is learned of such a column.
                ColumnWatch::Supplied { documents, .. } | ColumnWatch::Hashed { documents, .. }
                    if documents.is_empty() =>
                {
                    ColumnWatch::Ignored
                }
                ColumnWatch::Supplied { .. } | ColumnWatch::Hashed { .. } => return None,
                ColumnWatch::Inferring(inferring) => ColumnWatch::Inferring(ColumnInference {
                    // Where there were too many levels already, no more are counted.
                    levels: inferring.levels.as_ref().map(|_| HashMap::new()),
                    sums: NumberSums::default(),
                    first_missing: None,
                    text_lines: Vec::new(),
                }),
            })
        };
        let columns = self
            .columns
            .iter()
            .map(|(name, watch)| Some((name.clone(), fresh(watch)?)));
        Some(Self {
            columns: columns.collect::<Option<_>>()?,
            steps: self.steps.clone(),
            rows: 0,
            ..*self
        })
    }

    /// Takes in what a [`fresh`](Self::fresh) builder saw of later rows. Fails where a column
    /// cannot become features any more.
    pub fn merge(&mut self, later: Self) -> Result<(), FeatureError> {
        self.rows += later.rows;
        for ((column, watch), (_, later)) in self.columns.iter_mut().zip(later.columns) {
            match (watch, later) {
                (ColumnWatch::Numeric(sums), ColumnWatch::Numeric(more)) => sums.merge(&more),
                (ColumnWatch::Levels { levels, .. }, ColumnWatch::Levels { levels: more, .. }) => {
                    let fits = add_levels(levels, more, self.max_words);
                    let too_many = || FeatureError::TooManyForcedLevels {
                        column: column.clone(),
                        limit: self.max_words,
                    };
                    fits.then_some(()).ok_or_else(too_many)?;
                }
                (ColumnWatch::Learning(learner), ColumnWatch::Learning(more)) => {
                    learner.merge(more)?
                }
                (ColumnWatch::Inferring(inferring), ColumnWatch::Inferring(more)) => {
                    inferring.merge(more, column, self.max_levels)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Takes note of so many rows whose features are finite numbers, which whoever encoded them
    /// knows. False where that does not say all that has to be known of them.
    pub fn observe_numbers(&mut self, rows: u64) -> bool {
        if !needs_no_values(&self.steps) {
            return false;
        }
        for (_, watch) in &mut self.columns {
            match watch {
                ColumnWatch::Ignored => {}
                ColumnWatch::Numeric(sums) => sums.learn_present(rows),
                ColumnWatch::Inferring(inferring) if inferring.text_lines.is_empty() => {
                    inferring.sums.learn_present(rows);
                }
                _ => return false,
            }
        }
        self.rows += rows;
        true
    }

    /// Returns the columns that hold numbers but for cells that are few, or that all hold words
    /// which commonly stand for a missing value. They become a feature for each value.
    pub fn mixed_columns(&self) -> Vec<MixedColumn> {
        let mixed = |(name, watch): &(String, ColumnWatch)| match watch {
            ColumnWatch::Inferring(inferring) => inferring.mixed(name),
            _ => None,
        };
        self.columns.iter().filter_map(mixed).collect()
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
            let kind =
                match watch {
                    ColumnWatch::Ignored => continue,
                    ColumnWatch::Numeric(sums) => FeatureKind::Number { base, sums },
                    ColumnWatch::Levels { levels, as_means } => {
                        parts.names.extend(counted(column, levels));
                        FeatureKind::Levels {
                            inferred: false,
                            as_means,
                        }
                    }
                    ColumnWatch::Learning(learner) => {
                        parts
                            .names
                            .extend(learner.into_tallies().map(|(name, rows, total)| {
                                CountedName {
                                    column,
                                    name,
                                    rows,
                                    total,
                                }
                            }));
                        FeatureKind::Words {
                            most: self.learned_words,
                        }
                    }
                    ColumnWatch::Supplied { words, documents } => FeatureKind::Supplied {
                        base,
                        words,
                        documents,
                    },
                    ColumnWatch::Hashed { hashed, documents } => FeatureKind::Hashed {
                        base,
                        hashed,
                        documents,
                    },
                    ColumnWatch::Inferring(inferring) => match inferring.levels(&name, gaps)? {
                        Some(levels) => {
                            parts.names.extend(counted(column, levels));
                            FeatureKind::Levels {
                                inferred: true,
                                as_means: false,
                            }
                        }
                        None => FeatureKind::Number {
                            base,
                            sums: inferring.sums,
                        },
                    },
                };
            let column = FeatureColumn {
                name,
                position,
                kind,
            };
            next += column.run(gaps).map_or(0, |(_, width)| u64::from(width));
            if next + parts.names.len() as u64 > u64::from(u32::MAX) {
                return Err(FeatureError::TooWide {
                    width: next + parts.names.len() as u64,
                });
            }
            parts.columns.push(column);
        }
        Encoder::build(parts, next as u32)
    }
}

impl ColumnInference {
    fn observe(
        &mut self,
        cell: &Cell,
        number: Option<f64>,
        line: u64,
        column: &str,
        limit: usize,
    ) -> Result<(), FeatureError> {
        match cell {
            Cell::Missing => {
                self.first_missing.get_or_insert(line);
            }
            _ if self.text_lines.len() < MOST_LINES && number.is_none() => {
                self.text_lines.push(line);
            }
            _ => {}
        }
        if let Some(levels) = &mut self.levels
            && !tally(levels, cell, limit)
        {
            self.levels = None;
        }
        self.check(column, limit)
    }

    /// A column of text must have levels few enough to be kept.
    fn check(&self, column: &str, limit: usize) -> Result<(), FeatureError> {
        match (&self.levels, self.text_lines.first().copied()) {
            (None, Some(line)) => Err(FeatureError::TooManyLevels {
                column: column.into(),
                line,
                limit,
            }),
            _ => Ok(()),
        }
    }

    /// Takes in what was seen of later rows.
    fn merge(&mut self, later: Self, column: &str, limit: usize) -> Result<(), FeatureError> {
        self.sums.merge(&later.sums);
        self.first_missing = self.first_missing.or(later.first_missing);
        self.text_lines.extend(later.text_lines);
        self.text_lines.truncate(MOST_LINES);
        self.levels = match (self.levels.take(), later.levels) {
            (Some(mut levels), Some(more)) => {
                add_levels(&mut levels, more, limit).then_some(levels)
            }
            _ => None,
        };
        self.check(column, limit)
    }

    /// The column, where it holds numbers but for a few cells.
    fn mixed(&self, name: &str) -> Option<MixedColumn> {
        let (mut numbers, mut others) = (0, 0);
        let mut words = Vec::new();
        for (level, rows) in self.levels.iter().flatten() {
            if level_number(level).is_some() {
                numbers += rows;
            } else if &**level != MISSING {
                others += rows;
                words.push(level.trim().to_owned());
            }
        }
        let is_missing = |word: &String| MISSING_WORDS.contains(&word.to_lowercase().as_str());
        let all_missing = words.iter().all(is_missing);
        if others == 0 || numbers == 0 || !(all_missing || others * 10 <= numbers) {
            return None;
        }
        words.sort_unstable();
        words.dedup();
        Some(MixedColumn {
            name: name.to_owned(),
            numbers,
            others,
            lines: self.text_lines.clone(),
            missing_words: if all_missing { words } else { Vec::new() },
        })
    }

    /// The levels of a column that is one-hot; None for a numeric one.
    fn levels(
        &self,
        column: &str,
        gaps: bool,
    ) -> Result<Option<HashMap<Box<str>, u64>>, FeatureError> {
        match self.first_missing {
            _ if !self.text_lines.is_empty() => Ok(Some(self.levels.clone().unwrap_or_default())),
            Some(line) if !gaps => Err(FeatureError::MissingNumber {
                line,
                column: column.into(),
            }),
            _ => Ok(None),
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

/// Adds levels to others; false when there would be too many.
fn add_levels(
    levels: &mut HashMap<Box<str>, u64>,
    more: HashMap<Box<str>, u64>,
    limit: usize,
) -> bool {
    for (level, rows) in more {
        *levels.entry(level).or_insert(0) += rows;
    }
    levels.len() <= limit
}

fn counted(column: u32, levels: HashMap<Box<str>, u64>) -> impl Iterator<Item = CountedName> {
    levels.into_iter().map(move |(name, rows)| CountedName {
        column,
        name: name.into(),
        rows,
        total: rows,
    })
}
