//! Names of consecutive feature columns (words of a vocabulary, levels of a one-hot column), each with the number
//! of rows that hold it. A name whose count reaches zero is erased; its column number stays, unused, so that the
//! columns of a fitted model do not move.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::FeatureError;

/// Names by column, and columns by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StoredNames")]
pub(crate) struct NameIndex {
    names: Vec<Option<String>>,
    /// Rows that hold each name; absent when the names were supplied and not learned from rows.
    rows: Option<Vec<u64>>,
    #[serde(skip)]
    index: HashMap<Box<str>, u32>,
}

/// The stored form, before its index is rebuilt and its parts are checked against each other.
#[derive(Deserialize)]
struct StoredNames {
    names: Vec<Option<String>>,
    rows: Option<Vec<u64>>,
}

impl TryFrom<StoredNames> for NameIndex {
    type Error = FeatureError;

    fn try_from(StoredNames { names, rows }: StoredNames) -> Result<Self, FeatureError> {
        let damaged = |what: &str| Err(FeatureError::Damaged(what.to_string()));
        if let Some(rows) = &rows {
            if rows.len() != names.len() {
                return damaged("names and counts differ in number");
            }
            if rows.iter().zip(&names).any(|(&rows, name)| (rows == 0) != name.is_none()) {
                return damaged("a name without rows, or rows without a name");
            }
        }
        let index = match index_of(&names) {
            Ok(index) => index,
            Err(_) => return damaged("a name occurs twice"),
        };
        Ok(Self { names, rows, index })
    }
}

/// Columns by name; the error is the column of the first name that occurred before.
fn index_of(names: &[Option<String>]) -> Result<HashMap<Box<str>, u32>, usize> {
    let mut index = HashMap::with_capacity(names.len());
    for (column, name) in names.iter().enumerate() {
        let Some(name) = name else { continue };
        let number = u32::try_from(column).map_err(|_| column)?;
        if index.insert(name.as_str().into(), number).is_some() {
            return Err(column);
        }
    }
    Ok(index)
}

impl NameIndex {
    /// Names that were counted over rows, in column order. They must be distinct and held by at least one row.
    pub(crate) fn counted(pairs: impl IntoIterator<Item = (String, u64)>) -> Result<Self, FeatureError> {
        let (names, rows) = pairs.into_iter().map(|(name, rows)| (Some(name), rows)).unzip();
        Self::try_from(StoredNames { names, rows: Some(rows) })
    }

    /// Names that owe nothing to any row. The error is the place of the first one that occurred before.
    pub(crate) fn supplied(names: Vec<String>) -> Result<Self, usize> {
        let names: Vec<Option<String>> = names.into_iter().map(Some).collect();
        Ok(Self { index: index_of(&names)?, names, rows: None })
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn is_counted(&self) -> bool {
        self.rows.is_some()
    }

    /// The columns whose names have been erased.
    pub(crate) fn erased(&self) -> usize {
        self.names.len() - self.index.len()
    }

    pub(crate) fn live(&self) -> impl Iterator<Item = &str> {
        self.names.iter().flatten().map(String::as_str)
    }

    pub(crate) fn name(&self, column: u32) -> Option<&str> {
        self.names.get(column as usize)?.as_deref()
    }

    pub(crate) fn column(&self, name: &str) -> Option<u32> {
        self.index.get(name).copied()
    }

    pub(crate) fn rows(&self, column: u32) -> Option<u64> {
        self.rows.as_ref()?.get(column as usize).copied()
    }

    /// One row fewer holds the name. True when it was the last: the name is erased now.
    pub(crate) fn forget(&mut self, column: u32) -> bool {
        let Some(rows) = self.rows.as_mut().and_then(|rows| rows.get_mut(column as usize)) else {
            return false;
        };
        if *rows == 0 {
            return false;
        }
        *rows -= 1;
        if *rows == 0
            && let Some(name) = self.names[column as usize].take()
        {
            self.index.remove(name.as_str());
            return true;
        }
        false
    }

    /// One row more holds the name. An erased name cannot come back: its column stays unused.
    pub(crate) fn learn(&mut self, column: u32) {
        if let Some(rows) = self.rows.as_mut().and_then(|rows| rows.get_mut(column as usize))
            && *rows > 0
        {
            *rows += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_row_takes_the_name_with_it_and_columns_stay() {
        let mut names = NameIndex::counted([("a".to_string(), 1), ("b".into(), 2)]).unwrap();
        assert!(names.forget(0));
        assert!(!names.forget(0), "nothing is left to erase");
        names.learn(0);
        assert_eq!((names.name(0), names.column("a"), names.rows(0)), (None, None, Some(0)));
        names.learn(1);
        assert_eq!((names.column("b"), names.rows(1), names.erased(), names.len()), (Some(1), Some(3), 1, 2));
        assert!(!names.forget(7));
    }

    #[test]
    fn damaged_storage_is_refused() {
        let stored = |names: &[Option<&str>], rows: &[u64]| StoredNames {
            names: names.iter().map(|n| n.map(String::from)).collect(),
            rows: Some(rows.to_vec()),
        };
        assert!(NameIndex::try_from(stored(&[Some("a"), None], &[2, 0])).is_ok());
        for damaged in [
            stored(&[Some("a")], &[1, 2]),
            stored(&[Some("a"), Some("a")], &[1, 2]),
            stored(&[Some("a")], &[0]),
            stored(&[None], &[3]),
        ] {
            assert!(matches!(NameIndex::try_from(damaged), Err(FeatureError::Damaged(_))));
        }
    }
}
