//! The names that rows gave: words of texts, levels of one-hot columns. Every name has a place in
//! raw rows, the number of rows that hold it, and how often they hold it. A name whose last row
//! leaves is erased; its place stays unused.
//!
//! All names that rows hold are kept, and not only those that became features: which ones do is
//! then worked out from the counts, and after a forget it is what it would be without the row.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::FeatureError;

/// Names by place, and places by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StoredPlaces")]
pub(crate) struct NamedPlaces {
    /// The place of the first name.
    first: u32,
    names: Vec<Option<String>>,
    /// The column that each name is of.
    columns: Vec<u32>,
    /// The rows that hold each name.
    rows: Vec<u64>,
    /// How often all rows together hold each name.
    totals: Vec<u64>,
    /// The places of each column's names.
    #[serde(skip)]
    index: Vec<HashMap<Box<str>, u32>>,
}

/// The stored form, before its index is made and its parts are checked against each other.
#[derive(Deserialize)]
struct StoredPlaces {
    first: u32,
    names: Vec<Option<String>>,
    columns: Vec<u32>,
    rows: Vec<u64>,
    totals: Vec<u64>,
}

/// A name and its counts, before it has a place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CountedName {
    pub(crate) column: u32,
    pub(crate) name: String,
    pub(crate) rows: u64,
    pub(crate) total: u64,
}

/// More columns than any table has, so that a damaged file cannot ask for as many maps.
const MOST_COLUMNS: u32 = 1 << 24;

impl TryFrom<StoredPlaces> for NamedPlaces {
    type Error = FeatureError;

    fn try_from(stored: StoredPlaces) -> Result<Self, FeatureError> {
        let damaged = |what: &str| Err(FeatureError::Damaged(what.to_string()));
        let StoredPlaces {
            first,
            names,
            columns,
            rows,
            totals,
        } = stored;
        let count = names.len();
        if [columns.len(), rows.len(), totals.len()] != [count; 3] {
            return damaged("names and counts differ in number");
        }
        if u32::try_from(count)
            .ok()
            .and_then(|count| first.checked_add(count))
            .is_none()
        {
            return damaged("there are more names than places");
        }
        if rows
            .iter()
            .zip(&names)
            .any(|(rows, name)| (*rows == 0) != name.is_none())
        {
            return damaged("a name without rows, or rows without a name");
        }
        if columns.iter().any(|column| *column >= MOST_COLUMNS) {
            return damaged("a name of a column that is not there");
        }
        let mut places = Self {
            first,
            names,
            columns,
            rows,
            totals,
            index: Vec::new(),
        };
        for at in 0..count {
            let Some(name) = &places.names[at] else {
                continue;
            };
            let name: Box<str> = name.as_str().into();
            let place = first + at as u32;
            if places
                .names_of(places.columns[at])
                .insert(name, place)
                .is_some()
            {
                return damaged("a name occurs twice");
            }
        }
        Ok(places)
    }
}

impl NamedPlaces {
    /// Places from `first` on for these names, in their order.
    pub(crate) fn new(first: u32, counted: Vec<CountedName>) -> Result<Self, FeatureError> {
        let mut stored = StoredPlaces {
            first,
            names: Vec::with_capacity(counted.len()),
            columns: Vec::with_capacity(counted.len()),
            rows: Vec::with_capacity(counted.len()),
            totals: Vec::with_capacity(counted.len()),
        };
        for CountedName {
            column,
            name,
            rows,
            total,
        } in counted
        {
            stored.names.push(Some(name));
            stored.columns.push(column);
            stored.rows.push(rows);
            stored.totals.push(total);
        }
        Self::try_from(stored)
    }

    fn names_of(&mut self, column: u32) -> &mut HashMap<Box<str>, u32> {
        let wanted = column as usize + 1;
        if self.index.len() < wanted {
            self.index.resize_with(wanted, HashMap::new);
        }
        &mut self.index[column as usize]
    }

    /// One more than the last place.
    pub(crate) fn end(&self) -> u32 {
        self.first + self.names.len() as u32
    }

    /// The first place.
    pub(crate) fn first(&self) -> u32 {
        self.first
    }

    fn at(&self, place: u32) -> Option<usize> {
        let at = place.checked_sub(self.first)? as usize;
        (at < self.names.len()).then_some(at)
    }

    pub(crate) fn place(&self, column: u32, name: &str) -> Option<u32> {
        self.index.get(column as usize)?.get(name).copied()
    }

    pub(crate) fn name(&self, place: u32) -> Option<&str> {
        self.names.get(self.at(place)?)?.as_deref()
    }

    /// The column that the name of a place is of.
    pub(crate) fn column(&self, place: u32) -> Option<u32> {
        Some(self.columns[self.at(place)?])
    }

    /// The rows that hold the name of a place.
    pub(crate) fn rows(&self, place: u32) -> u64 {
        self.at(place).map_or(0, |at| self.rows[at])
    }

    /// The names of a column that rows hold: their places, names, rows and totals, in no order.
    pub(crate) fn of_column(&self, column: u32) -> impl Iterator<Item = (u32, &str, u64, u64)> {
        let index = self.index.get(column as usize);
        index.into_iter().flatten().filter_map(|(name, &place)| {
            let at = self.at(place)?;
            Some((place, &**name, self.rows[at], self.totals[at]))
                .filter(|(_, _, rows, _)| *rows > 0)
        })
    }

    /// Gives a new name a place, unless it has one.
    pub(crate) fn admit(&mut self, column: u32, name: &str) -> Result<(), FeatureError> {
        if self.place(column, name).is_some() {
            return Ok(());
        }
        let place = self.end();
        if place == u32::MAX {
            return Err(FeatureError::TooWide {
                width: u64::from(u32::MAX) + 1,
            });
        }
        self.names.push(Some(name.into()));
        self.columns.push(column);
        self.rows.push(0);
        self.totals.push(0);
        self.names_of(column).insert(name.into(), place);
        Ok(())
    }

    /// One row more holds the name of a place, so often.
    pub(crate) fn learn(&mut self, place: u32, count: f64) {
        if let Some(at) = self.at(place).filter(|at| self.names[*at].is_some()) {
            self.rows[at] += 1;
            self.totals[at] += count as u64;
        }
    }

    /// One row fewer holds the name of a place. True when it was the last: the name is erased now.
    pub(crate) fn forget(&mut self, place: u32, count: f64) -> bool {
        let Some(at) = self.at(place).filter(|at| self.rows[*at] > 0) else {
            return false;
        };
        self.rows[at] -= 1;
        self.totals[at] = self.totals[at].saturating_sub(count as u64);
        if self.rows[at] > 0 {
            return false;
        }
        self.totals[at] = 0;
        let column = self.columns[at];
        if let Some(name) = self.names[at].take() {
            self.names_of(column).remove(name.as_str());
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(column: u32, name: &str, rows: u64, total: u64) -> CountedName {
        CountedName {
            column,
            name: name.into(),
            rows,
            total,
        }
    }

    #[test]
    fn the_last_row_takes_the_name_with_it_and_places_stay() {
        let mut places =
            NamedPlaces::new(5, vec![named(0, "a", 1, 3), named(1, "a", 2, 2)]).unwrap();
        assert_eq!(
            (places.place(0, "a"), places.place(1, "a"), places.end()),
            (Some(5), Some(6), 7)
        );
        assert!(places.forget(5, 3.0));
        assert!(!places.forget(5, 3.0), "nothing is left to erase");
        assert_eq!(
            (places.name(5), places.place(0, "a"), places.rows(5)),
            (None, None, 0)
        );
        places.admit(0, "a").unwrap();
        places.learn(7, 4.0);
        assert_eq!(places.of_column(0).collect::<Vec<_>>(), [(7, "a", 1, 4)]);
        assert!(!places.forget(0, 1.0) && !places.forget(9, 1.0));
    }

    #[test]
    fn damaged_storage_is_refused() {
        let stored = |names: &[Option<&str>], rows: &[u64]| StoredPlaces {
            first: 0,
            names: names.iter().map(|n| n.map(String::from)).collect(),
            columns: vec![0; names.len()],
            rows: rows.to_vec(),
            totals: rows.to_vec(),
        };
        assert!(NamedPlaces::try_from(stored(&[Some("a"), None], &[2, 0])).is_ok());
        for damaged in [
            stored(&[Some("a")], &[1, 2]),
            stored(&[Some("a"), Some("a")], &[1, 2]),
            stored(&[Some("a")], &[0]),
            stored(&[None], &[3]),
            StoredPlaces {
                first: u32::MAX,
                ..stored(&[Some("a")], &[1])
            },
            StoredPlaces {
                columns: vec![u32::MAX],
                ..stored(&[Some("a")], &[1])
            },
        ] {
            assert!(matches!(
                NamedPlaces::try_from(damaged),
                Err(FeatureError::Damaged(_))
            ));
        }
    }
}
