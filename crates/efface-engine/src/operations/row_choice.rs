//! Which rows of a source are meant: those that a condition keeps, those that are held out, those
//! of a fold. A choice looks at one row at a time and depends on no other, so that it stays when
//! rows come or go.

use std::collections::HashMap;

use efface::features::{Cell, FeatureError};
use efface_io::RowCondition;
use efface_receipt::sha256;

use crate::codec::blueprint::text;
use crate::error::{Error, Result};

/// A rule that keeps some rows of a source.
#[derive(Debug, Clone)]
pub(crate) enum RowChoice {
    /// Rows whose place lies in a range, or outside it. The place is a number from 0 to 1 that
    /// follows from a seed and from the id of the row, or from its position where it has no id.
    Drawn(DrawnRows),
    /// Rows that a condition keeps.
    Where(RowCondition),
}

/// Rows by their places.
#[derive(Debug, Clone)]
pub(crate) struct DrawnRows {
    /// The column with the ids; None for rows that are named by their position.
    pub(crate) column: Option<String>,
    pub(crate) seed: u64,
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// Whether rows in the range are meant, or all others.
    pub(crate) inside: bool,
}

impl DrawnRows {
    /// The rows that these leave.
    pub(crate) fn others(&self) -> Self {
        Self {
            inside: !self.inside,
            ..self.clone()
        }
    }

    fn keeps(&self, id: &str) -> bool {
        let place = place(self.seed, id);
        (place >= self.from && place < self.to) == self.inside
    }
}

/// A number from 0 up to 1 that follows from the seed and the id.
fn place(seed: u64, id: &str) -> f64 {
    let hash = sha256(&[&seed.to_le_bytes()[..], id.as_bytes()].concat());
    let mut word = [0; 8];
    word.copy_from_slice(&hash.0[..8]);
    (u64::from_le_bytes(word) >> 11) as f64 / (1u64 << 53) as f64
}

/// A choice on rows of a table whose columns are known.
#[derive(Debug)]
pub(crate) struct BoundChoice {
    choice: RowChoice,
    /// Where the id stands.
    id: Option<usize>,
    /// Where the columns of a condition stand.
    places: HashMap<String, usize>,
}

impl BoundChoice {
    /// Finds the columns of a choice.
    pub(crate) fn find(choice: &RowChoice, columns: &[String]) -> Result<Self> {
        let place = |name: &str| {
            let missing = || FeatureError::UnknownColumn {
                name: name.into(),
                exist: columns.to_vec(),
            };
            columns
                .iter()
                .position(|column| column == name)
                .ok_or_else(missing)
        };
        let mut id = None;
        let mut places = HashMap::new();
        match choice {
            RowChoice::Drawn(drawn) => id = drawn.column.as_deref().map(place).transpose()?,
            RowChoice::Where(condition) => {
                for column in condition.columns() {
                    places.insert(column.to_owned(), place(column)?);
                }
            }
        }
        Ok(Self {
            choice: choice.clone(),
            id,
            places,
        })
    }

    /// A choice on rows without columns.
    pub(crate) fn without_columns(choice: &RowChoice) -> Result<Self> {
        match choice {
            RowChoice::Drawn(drawn) if drawn.column.is_none() => Ok(Self {
                choice: choice.clone(),
                id: None,
                places: HashMap::new(),
            }),
            RowChoice::Drawn(_) | RowChoice::Where(_) => Err(Error::request(
                "svmlight lines have no columns",
                "leave out the options that name columns",
            )),
        }
    }

    /// Whether a row is meant.
    pub(crate) fn keeps(&self, cells: &[Cell], position: u64) -> bool {
        match &self.choice {
            RowChoice::Drawn(drawn) => {
                let id = self.id.and_then(|at| cells.get(at)).and_then(text);
                drawn.keeps(&id.unwrap_or_else(|| position.to_string()))
            }
            RowChoice::Where(condition) => {
                condition.holds(&|name| self.places.get(name).and_then(|at| cells.get(*at)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Held-out rows of models that exist rest on these values.
    #[test]
    fn the_place_of_a_row_follows_from_seed_and_id_alone() {
        assert!((place(0, "a") - 0.0).abs() < 1.0);
        assert_ne!(place(0, "a"), place(1, "a"));
        let held = DrawnRows {
            column: None,
            seed: 7,
            from: 0.0,
            to: 0.2,
            inside: true,
        };
        let count = (0..10_000)
            .filter(|row| held.keeps(&row.to_string()))
            .count();
        assert!((1_900..2_100).contains(&count), "{count}");
        assert!(
            (0..100)
                .all(|row| held.keeps(&row.to_string()) != held.others().keeps(&row.to_string()))
        );
    }
}
