//! Texts as rows of word ids: what a network is fitted from, in the row type of the core, so that its row stores, ids and
//! SISA serve whole networks too. Column t of a row holds the id of word t; rows are sparse, so that a short text is a short
//! row, and 0 ([`ABSENT`](crate::ABSENT)) is behind the end. A row is as wide as the longest text that a network reads.

use efface::{Csr, Error as CoreError, Features, RowRef, RowStore, RowView, Rows};

use crate::embedding::{Embedding, UNKNOWN};
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

/// Turns texts into rows of at most `max_tokens` ids. A text without words becomes one unknown word, so that it has an answer.
pub fn text_rows<'a>(
    embedding: &Embedding,
    texts: impl IntoIterator<Item = &'a str>,
    max_tokens: usize,
) -> Result<TextRows> {
    if max_tokens == 0 || max_tokens > 1 << 20 {
        let value = max_tokens.to_string();
        return Err(Error::Setting { name: "max_tokens", value, range: "1 to 1048576" });
    }
    let mut table = Csr::<f32>::new(max_tokens);
    let (mut truncated, mut empty, mut unknown) = (0, 0, 0);
    for text in texts {
        let (mut ids, cut) = embedding.ids(text, max_tokens);
        truncated += cut as usize;
        if ids.is_empty() {
            ids.push(UNKNOWN);
            empty += 1;
        } else {
            unknown += ids.iter().all(|&id| id == UNKNOWN) as usize;
        }
        let entries: Vec<(u32, f64)> = (0u32..).zip(ids.into_iter().map(f64::from)).collect();
        table.push(&entries)?;
    }
    Ok(TextRows { features: table.into(), truncated, empty, unknown })
}

/// Texts, classes and weights in the form that training reads.
#[derive(Debug, Clone)]
pub(crate) struct Lessons {
    pub(crate) texts: Vec<Vec<u32>>,
    pub(crate) classes: Vec<usize>,
    pub(crate) weights: Vec<f32>,
    pub(crate) class_count: usize,
}

/// The ids of one row. `known` is how many ids the embedding has.
pub(crate) fn row_ids(row: RowRef<'_>, known: usize) -> Result<Vec<u32>> {
    let mut ids = Vec::new();
    let mut fault = None;
    row.each(|_, value| {
        if value != 0.0 {
            if value.fract() == 0.0 && value > 0.0 && value < known as f64 {
                ids.push(value as u32);
            } else {
                fault = Some(value);
            }
        }
    });
    if let Some(value) = fault {
        let value = value.to_string();
        return Err(Error::Setting {
            name: "word id",
            value,
            range: "a whole number that the embedding knows",
        });
    }
    if ids.is_empty() {
        ids.push(UNKNOWN);
    }
    Ok(ids)
}

/// The class that a row's targets name, as [`efface::Classes`] writes them.
fn class_of(view: &RowView<'_>) -> Result<usize> {
    let named = match view.targets {
        [sign] => (sign.abs() == 1.0).then_some((*sign > 0.0) as usize),
        many => {
            let own = many.iter().position(|target| *target == 1.0);
            own.filter(|&own| many.iter().enumerate().all(|(c, target)| c == own || *target == 0.0))
        }
    };
    let expected = "−1 or 1, or a 1 among zeros";
    named.ok_or(Error::Core(CoreError::NotAClass { row: view.id, expected }))
}

impl Lessons {
    /// No texts yet.
    pub(crate) fn empty(class_count: usize) -> Self {
        Self { texts: Vec::new(), classes: Vec::new(), weights: Vec::new(), class_count }
    }

    /// Reads rows of ids. Rows of weight 0 teach nothing and are left out.
    pub(crate) fn read(rows: &Rows, embedding: &Embedding) -> Result<Self> {
        let class_count = if rows.outputs() == 1 { 2 } else { rows.outputs() };
        let mut lessons = Self::empty(class_count);
        lessons.append(rows, embedding)?;
        if lessons.texts.is_empty() {
            return Err(Error::Core(if rows.is_empty() { CoreError::NoRows } else { CoreError::NoWeight }));
        }
        if lessons.texts.iter().flatten().all(|&id| id == UNKNOWN) {
            return Err(Error::NoKnownWord { texts: lessons.texts.len() });
        }
        if let Some(class) = (0..class_count).find(|class| !lessons.classes.contains(class)) {
            return Err(Error::Core(CoreError::EmptyClass { class, classes: class_count }));
        }
        Ok(lessons)
    }

    /// Reads further rows behind those that are there. Nothing is asked of them but to be rows of ids with a class.
    pub(crate) fn append(&mut self, rows: &Rows, embedding: &Embedding) -> Result<()> {
        let known = embedding.table().len() / embedding.width();
        for view in rows.iter().filter(|view| view.weight > 0.0) {
            self.texts.push(row_ids(view.features, known)?);
            self.classes.push(class_of(&view)?);
            self.weights.push(view.weight as f32);
        }
        Ok(())
    }
}
