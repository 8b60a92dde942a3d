//! Texts as rows of word ids: what a network is fitted from, in the row type of the core, so that
//! its row stores, ids and SISA serve whole networks too. A row holds the ids of a text's words in
//! their order, and is as long as the text.

use std::collections::HashSet;

use efface::{Error as CoreError, Features, RowRef, RowStore, RowView, Rows, WordIds};

use crate::embedding::{ABSENT, Embedding, UNKNOWN};
use crate::error::{Error, Result};

/// Texts as ids, and what was lost on the way.
#[derive(Debug, Clone)]
pub struct TextRows {
    /// One row a text.
    pub features: Features,
    /// Texts that were longer than the limit and were cut there.
    pub truncated: usize,
    /// Texts without a single word: they read as one unknown word.
    pub empty: usize,
    /// Texts with words, none of them known.
    pub unknown: usize,
}

/// Turns texts into rows of at most `max_tokens` ids. A text without words becomes one unknown
/// word, so that it has an answer.
pub fn text_rows<'a>(
    embedding: &Embedding,
    texts: impl IntoIterator<Item = &'a str>,
    max_tokens: usize,
) -> Result<TextRows> {
    if max_tokens == 0 || max_tokens > 1 << 20 {
        let value = max_tokens.to_string();
        return Err(Error::Setting {
            name: "max_tokens",
            value,
            range: "1 to 1048576",
        });
    }
    let mut table = WordIds::new(max_tokens);
    let mut truncated = 0;
    let mut empty = 0;
    let mut unknown = 0;
    for text in texts {
        let (mut ids, cut) = embedding.ids(text, max_tokens);
        truncated += cut as usize;
        if ids.is_empty() {
            ids.push(UNKNOWN);
            empty += 1;
        } else {
            unknown += ids.iter().all(|&id| id == UNKNOWN) as usize;
        }
        table.push(&ids)?;
    }
    Ok(TextRows {
        features: table.into(),
        truncated,
        empty,
        unknown,
    })
}

/// Texts, classes and weights in the form that training reads.
#[derive(Debug, Clone)]
pub(crate) struct TrainingTexts {
    pub(crate) texts: Vec<Vec<u32>>,
    pub(crate) classes: Vec<usize>,
    pub(crate) weights: Vec<f32>,
    pub(crate) class_count: usize,
}

/// The ids of one row, each of which must have a vector among the `known` ones. A row without words
/// reads as one unknown word.
pub(crate) fn row_ids(row: RowRef<'_>, known: usize) -> Result<&[u32]> {
    let ids = row.word_ids()?;
    if let Some(id) = ids
        .iter()
        .find(|id| **id == ABSENT || **id as usize >= known)
    {
        let value = id.to_string();
        return Err(Error::Setting {
            name: "word id",
            value,
            range: "the id of a word in the embedding",
        });
    }
    Ok(if ids.is_empty() { &[UNKNOWN] } else { ids })
}

/// Returns the ids of all words that some rows hold.
pub fn words_in(rows: &Rows) -> efface::Result<HashSet<u32>> {
    let mut words = HashSet::new();
    for view in rows.iter() {
        words.extend(view.features.word_ids()?);
    }
    Ok(words)
}

/// The class that a row's targets name, as [`efface::Classes`] writes them.
fn class_of(view: &RowView<'_>) -> Result<usize> {
    let named = match view.targets {
        [sign] => (sign.abs() == 1.0).then_some((*sign > 0.0) as usize),
        many => {
            let own = many.iter().position(|target| *target == 1.0);
            own.filter(|&own| {
                many.iter()
                    .enumerate()
                    .all(|(c, target)| c == own || *target == 0.0)
            })
        }
    };
    let expected = "−1 or 1, or a 1 among zeros";
    named.ok_or(Error::Core(CoreError::NotAClass {
        row: view.id,
        expected,
    }))
}

impl TrainingTexts {
    /// No texts yet.
    pub(crate) fn empty(class_count: usize) -> Self {
        Self {
            texts: Vec::new(),
            classes: Vec::new(),
            weights: Vec::new(),
            class_count,
        }
    }

    /// Reads rows of ids. Rows of weight 0 teach nothing and are left out.
    pub(crate) fn read(rows: &Rows, embedding: &Embedding) -> Result<Self> {
        let class_count = if rows.outputs() == 1 {
            2
        } else {
            rows.outputs()
        };
        let mut lessons = Self::empty(class_count);
        lessons.append(rows, embedding)?;
        if lessons.texts.is_empty() {
            return Err(Error::Core(if rows.is_empty() {
                CoreError::NoRows
            } else {
                CoreError::NoWeight
            }));
        }
        if lessons.texts.iter().flatten().all(|&id| id == UNKNOWN) {
            return Err(Error::NoKnownWord {
                texts: lessons.texts.len(),
            });
        }
        if let Some(class) = (0..class_count).find(|class| !lessons.classes.contains(class)) {
            return Err(Error::Core(CoreError::EmptyClass {
                class,
                classes: class_count,
            }));
        }
        Ok(lessons)
    }

    /// Reads further rows behind those that are there. Nothing is asked of them but to be rows of
    /// ids with a class.
    pub(crate) fn append(&mut self, rows: &Rows, embedding: &Embedding) -> Result<()> {
        let known = embedding.id_count();
        for view in rows.iter().filter(|view| view.weight > 0.0) {
            self.texts.push(row_ids(view.features, known)?.to_vec());
            self.classes.push(class_of(&view)?);
            self.weights.push(view.weight as f32);
        }
        Ok(())
    }
}
