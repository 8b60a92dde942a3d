//! Columns that are probably no features: those that never change, and those that look like ids.
//! They are told, and used all the same: the user may know better.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use efface::features::Cell;

use crate::codec::blueprint::has_decimal_comma;
use crate::operations::report::Remark;

/// Fewer rows say nothing about a column.
const FEWEST_ROWS: u64 = 20;

/// More distinct values than this are not kept: a column of so many is told by the first of them.
const MOST_VALUES: usize = 1 << 20;

/// Whole numbers count as ids when they lie as close as running numbers do: in a range of at most
/// this many times their number.
const WIDEST_RANGE: f64 = 4.0;

/// Watches the columns of a table that are not named for another role.
#[derive(Clone)]
pub(crate) struct ColumnWatch {
    columns: Vec<WatchedColumn>,
    /// Those of which later rows can still tell something.
    open: Vec<usize>,
    rows: u64,
}

#[derive(Clone)]
struct WatchedColumn {
    at: usize,
    name: String,
    first: Option<Cell>,
    constant: bool,
    /// Hashes of all values; None once a value came twice, or one was no id.
    values: Option<HashSet<u64>>,
    least: f64,
    most: f64,
    /// Whether all values so far are numbers with a comma.
    has_commas: bool,
}

impl ColumnWatch {
    /// Watches all columns but those that are left out of the features.
    pub(crate) fn new(columns: &[String], ignored: &[String]) -> Self {
        let watched = columns
            .iter()
            .enumerate()
            .filter(|(_, name)| !ignored.contains(name));
        let watched = watched.map(|(at, name)| WatchedColumn {
            at,
            name: name.clone(),
            first: None,
            constant: true,
            values: Some(HashSet::new()),
            least: f64::INFINITY,
            most: f64::NEG_INFINITY,
            has_commas: true,
        });
        Self::of(watched.collect())
    }

    fn of(columns: Vec<WatchedColumn>) -> Self {
        let open = (0..columns.len())
            .filter(|at| !columns[*at].is_settled())
            .collect();
        Self {
            columns,
            open,
            rows: 0,
        }
    }

    pub(crate) fn observe(&mut self, cells: &[Cell]) {
        self.rows += 1;
        self.open.retain(|&at| {
            let column = &mut self.columns[at];
            column.observe(&cells[column.at]);
            !column.is_settled()
        });
    }

    /// A watch that has seen no row, for later rows than this one sees. What is settled for a
    /// column is not asked of them again.
    pub(crate) fn fresh(&self) -> Self {
        let columns = self.columns.iter().map(|column| WatchedColumn {
            at: column.at,
            name: column.name.clone(),
            first: column.first.clone(),
            constant: column.constant,
            values: column.values.as_ref().map(|_| HashSet::new()),
            least: f64::INFINITY,
            most: f64::NEG_INFINITY,
            has_commas: column.has_commas,
        });
        Self::of(columns.collect())
    }

    /// Takes in what a fresh watch saw of later rows.
    pub(crate) fn merge(&mut self, later: Self) {
        self.rows += later.rows;
        self.columns
            .iter_mut()
            .zip(later.columns)
            .for_each(|(column, later)| column.merge(later));
    }

    /// What is to be said, a sentence a column.
    pub(crate) fn finish(self) -> Vec<Remark> {
        let rows = self.rows;
        if rows < FEWEST_ROWS {
            return Vec::new();
        }
        self.columns
            .into_iter()
            .filter_map(|column| column.remark(rows).map(Remark::from))
            .collect()
    }
}

impl WatchedColumn {
    /// Whether nothing is said of the column, whatever comes.
    fn is_settled(&self) -> bool {
        !self.constant && !self.has_commas && self.values.is_none()
    }

    fn observe(&mut self, cell: &Cell) {
        match &self.first {
            None => self.first = Some(cell.clone()),
            Some(first) if self.constant => self.constant = first == cell,
            Some(_) => {}
        }
        self.has_commas &= *cell == Cell::Missing || has_decimal_comma(cell);
        let Some(values) = &mut self.values else {
            return;
        };
        let number = match cell {
            Cell::Missing => None,
            Cell::Number(number) => Some(*number),
            Cell::Text(text) => text.trim().parse::<f64>().ok(),
        };
        // Measurements differ from row to row; ids are words or whole numbers.
        let is_candidate =
            *cell != Cell::Missing && number.is_none_or(|number| number.fract() == 0.0);
        if let Some(number) = number {
            self.least = self.least.min(number);
            self.most = self.most.max(number);
        }
        let mut hasher = DefaultHasher::new();
        match cell {
            Cell::Missing => {}
            Cell::Number(number) => number.to_bits().hash(&mut hasher),
            Cell::Text(text) => text.trim().hash(&mut hasher),
        }
        let is_full = values.len() >= MOST_VALUES;
        if !is_candidate || (!is_full && !values.insert(hasher.finish())) {
            self.values = None;
        }
    }

    fn merge(&mut self, later: Self) {
        self.has_commas &= later.has_commas;
        self.constant &= later.constant
            && (self.first.is_none() || later.first.is_none() || self.first == later.first);
        self.first = self.first.take().or(later.first);
        self.least = self.least.min(later.least);
        self.most = self.most.max(later.most);
        let Some(values) = &mut self.values else {
            return;
        };
        let mut is_repeated = later.values.is_none();
        for value in later.values.into_iter().flatten() {
            is_repeated |= values.len() < MOST_VALUES && !values.insert(value);
        }
        if is_repeated {
            self.values = None;
        }
    }

    fn remark(self, rows: u64) -> Option<String> {
        let name = &self.name;
        if self.constant {
            return Some(format!(
                "column `{name}` has the same value in every row and tells nothing"
            ));
        }
        if self.has_commas {
            return Some(format!(
                "column `{name}` holds numbers with a comma, which are read as words: say that it is a decimal comma where it is one"
            ));
        }
        self.values?;
        let is_running =
            !self.least.is_finite() || self.most - self.least <= WIDEST_RANGE * rows as f64;
        is_running.then(|| {
            format!("column `{name}` has another value in every row, as an id has; name it as the id, or leave it out")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remarks(column: impl Fn(usize) -> Cell) -> Vec<String> {
        let mut watch = ColumnWatch::new(&["c".into()], &[]);
        (0..30).for_each(|row| watch.observe(&[column(row)]));
        watch.finish().iter().map(Remark::to_string).collect()
    }

    #[test]
    fn constant_columns_and_ids_are_told_and_measurements_are_not() {
        assert!(remarks(|_| Cell::Text("x".into()))[0].contains("same value"));
        assert!(remarks(|_| Cell::Missing)[0].contains("same value"));
        assert!(remarks(|row| Cell::Text(format!("r{row}")))[0].contains("as an id has"));
        assert!(remarks(|row| Cell::Text(row.to_string()))[0].contains("as an id has"));
        assert!(remarks(|row| Cell::Number(row as f64 * 1.5)).is_empty());
        assert!(remarks(|row| Cell::Text(format!("{row},5")))[0].contains("decimal comma"));
        assert!(remarks(|row| Cell::Text(format!("a,{}", row % 7))).is_empty());
        assert!(
            remarks(|row| Cell::Number((row * row * 1000) as f64)).is_empty(),
            "whole numbers that are far apart"
        );
        assert!(remarks(|row| Cell::Number((row % 29) as f64)).is_empty());
    }
}
