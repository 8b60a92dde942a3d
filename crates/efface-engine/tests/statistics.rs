//! Statistics of many workers: merged, they are those of one; what was changed, repeated or never
//! there is refused.
#![allow(clippy::unwrap_used)]

use efface::{ColumnGrid, ColumnView, Ridge, StatisticsSpec};
use efface_engine::Statistics;

const KEY: [u8; 32] = [5; 32];

fn spec() -> StatisticsSpec {
    let grids = vec![ColumnGrid::within(8.0); 3];
    StatisticsSpec::new(["a", "b"], ["y"])
        .unwrap()
        .exact(grids)
        .unwrap()
}

struct Table {
    columns: [Vec<f64>; 3],
    ids: Vec<String>,
}

impl Table {
    fn new(rows: std::ops::Range<usize>) -> Self {
        let a: Vec<f64> = rows
            .clone()
            .map(|i| ((i * 37) % 100) as f64 / 13.0)
            .collect();
        let b: Vec<f64> = rows
            .clone()
            .map(|i| ((i * 61) % 97) as f64 / -17.0)
            .collect();
        let y = a
            .iter()
            .zip(&b)
            .map(|(a, b)| 0.3 * a - 0.7 * b + 0.1)
            .collect();
        Self {
            columns: [a, b, y],
            ids: rows.map(|i| format!("row {i}")).collect(),
        }
    }

    fn views(&self) -> Vec<ColumnView<'_>> {
        self.columns
            .iter()
            .map(|column| ColumnView::dense(column))
            .collect()
    }

    fn summed(&self) -> Statistics {
        let mut statistics = Statistics::new(spec(), Some(&KEY));
        statistics
            .update(&self.views(), Some(&self.ids), None)
            .unwrap();
        statistics
    }
}

#[test]
fn many_workers_give_the_bytes_and_the_training_set_of_one() {
    let whole = Table::new(0..900).summed();
    let mut merged = Table::new(400..900).summed();
    // A worker sends bytes, and whoever merges them does not know the key.
    let sent = Table::new(0..400).summed().to_bytes();
    merged
        .merge(&Statistics::from_bytes(&sent, None).unwrap())
        .unwrap();
    assert_eq!(merged.to_bytes(), whole.to_bytes());
    assert_eq!(merged.training_set(), whole.training_set());
    // Rows that left are as if they had never been.
    let gone = Table::new(880..900);
    merged.remove(&gone.views(), Some(&gone.ids), None).unwrap();
    assert_eq!(merged.to_bytes(), Table::new(0..880).summed().to_bytes());
    assert_eq!(
        Ridge::new(0.1)
            .fit_statistics(merged.sums())
            .unwrap()
            .rows(),
        880
    );
}

#[test]
fn rows_that_are_there_twice_or_never_were_are_refused() {
    let mut statistics = Table::new(0..50).summed();
    let before = statistics.to_bytes();
    let again = Table::new(40..60);
    let message = statistics
        .update(&again.views(), Some(&again.ids), None)
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("\"row 40\" is summed already"),
        "{message}"
    );
    assert!(
        statistics
            .merge(&again.summed())
            .unwrap_err()
            .to_string()
            .contains("in both")
    );
    let mut changed = Table::new(10..11);
    changed.columns[0][0] += 0.5;
    let message = statistics
        .remove(&changed.views(), Some(&changed.ids), None)
        .unwrap_err()
        .to_string();
    assert!(message.contains("\"row 10\" is not among"), "{message}");
    let mut twice = Table::new(70..71);
    twice.ids.push("row 70".into());
    twice
        .columns
        .iter_mut()
        .for_each(|column| column.push(column[0]));
    assert!(
        statistics
            .update(&twice.views(), Some(&twice.ids), None)
            .is_err()
    );
    let none: Option<&[String]> = None;
    assert!(
        statistics
            .update(&Table::new(60..61).views(), none, None)
            .is_err()
    );
    assert!(
        statistics
            .update(&Table::new(60..62).views(), Some(&["one"]), None)
            .is_err()
    );
    assert_eq!(statistics.to_bytes(), before);
}

#[test]
fn bytes_that_are_not_whole_and_keys_that_are_others_are_refused() {
    let statistics = Table::new(0..20).summed();
    let bytes = statistics.to_bytes();
    for at in 0..bytes.len() {
        let mut other = bytes.clone();
        other[at] ^= 1;
        assert!(Statistics::from_bytes(&other, None).is_err());
        assert!(Statistics::from_bytes(&bytes[..at], None).is_err());
    }
    assert!(Statistics::from_bytes(&bytes, Some(&[6; 32])).is_err());
    let mut unkeyed = Statistics::from_bytes(&bytes, None).unwrap();
    let more = Table::new(20..21);
    let message = unkeyed
        .update(&more.views(), Some(&more.ids), None)
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("key of these statistics is not known"),
        "{message}"
    );
    let other = Statistics::new(spec(), Some(&[6; 32]));
    assert!(unkeyed.merge(&other).is_err());
    assert!(unkeyed.merge(&Statistics::new(spec(), None)).is_err());
}
