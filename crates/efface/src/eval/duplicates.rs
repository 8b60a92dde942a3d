//! Rows that are equal. A forgotten row that stays under another id has not been forgotten, and an
//! attack that finds it has found its twin: so twins are looked for before any rows are split into
//! those that go and those that stay.
//!
//! O(n) time and memory: rows are hashed, and only rows of one hash are compared. Values are
//! compared as numbers, a value that is not stored being 0, so that a dense row and a sparse one
//! can be twins, and −0 is 0. Weights are not compared.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Serialize;

use crate::error::Result;
use crate::rows::{RowId, RowRef, RowStore, RowView, Rows};

/// What was found about a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Duplicates {
    /// Rows looked at.
    pub rows: usize,
    /// Rows that have an equal somewhere, targets included: in the whole set, whatever the request.
    pub rows_with_twins: usize,
    /// Rows of the request that stay behind as others, rows that are equal to each other together.
    pub survivors: Vec<Twins>,
}

/// Equal rows of the request, and the rows that stay and are like them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Twins {
    /// Rows to forget, with the same features and the same targets.
    pub rows: Vec<RowId>,
    /// Rows that stay, with the same features and the same targets.
    pub twins: Vec<RowId>,
    /// How many rows stay with the same features and other targets: they are not the row, but tell
    /// that such a row was.
    pub other_target: usize,
}

impl Duplicates {
    /// How many rows of the request would survive as a twin.
    pub fn surviving(&self) -> usize {
        self.survivors
            .iter()
            .filter(|found| !found.twins.is_empty())
            .map(|found| found.rows.len())
            .sum()
    }

    /// How many rows of the request leave their features behind under another target alone.
    pub fn resembled(&self) -> usize {
        let alike = self
            .survivors
            .iter()
            .filter(|found| found.twins.is_empty() && found.other_target > 0);
        alike.map(|found| found.rows.len()).sum()
    }
}

/// Looks for twins of the rows `gone` among the rows that stay.
pub fn duplicates(rows: &Rows, gone: &[RowId]) -> Result<Duplicates> {
    rows.check(gone)?;
    let leaving: HashSet<RowId> = gone.iter().copied().collect();
    let mut found = Duplicates {
        rows: rows.len(),
        rows_with_twins: 0,
        survivors: Vec::new(),
    };
    let all: Vec<RowView<'_>> = rows.iter().collect();
    let alike = grouped(
        &all,
        |row| hash(row.features),
        |a, b| equal(a.features, b.features),
    );
    for group in alike.into_iter().filter(|group| group.len() > 1) {
        let staying = group
            .iter()
            .filter(|row| !leaving.contains(&row.id))
            .count();
        for equals in grouped(
            &group,
            |row| bits(row.targets),
            |a, b| a.targets == b.targets,
        ) {
            if equals.len() > 1 {
                found.rows_with_twins += equals.len();
            }
            let (go, stay): (Vec<_>, Vec<_>) =
                equals.iter().partition(|row| leaving.contains(&row.id));
            if !go.is_empty() && staying > 0 {
                let ids = |rows: &[&RowView<'_>]| rows.iter().map(|row| row.id).collect();
                let other_target = staying - stay.len();
                found.survivors.push(Twins {
                    rows: ids(&go),
                    twins: ids(&stay),
                    other_target,
                });
            }
        }
    }
    Ok(found)
}

/// The request with every twin of its rows added: all of them are treated as one row. Rows of the
/// request come first, in their order.
pub fn with_twins(rows: &Rows, gone: &[RowId]) -> Result<Vec<RowId>> {
    let found = duplicates(rows, gone)?;
    let mut more: Vec<RowId> = found
        .survivors
        .into_iter()
        .flat_map(|found| found.twins)
        .collect();
    more.sort_unstable();
    Ok(gone.iter().copied().chain(more).collect())
}

/// Rows that are equal in some respect together, in the order in which the first of each came.
fn grouped<'a>(
    rows: &[RowView<'a>],
    hash: impl Fn(&RowView<'a>) -> u64,
    equal: impl Fn(&RowView<'a>, &RowView<'a>) -> bool,
) -> Vec<Vec<RowView<'a>>> {
    let mut by_hash: HashMap<u64, Vec<usize>> = HashMap::with_capacity(rows.len());
    let mut groups: Vec<Vec<RowView<'a>>> = Vec::new();
    for row in rows {
        let candidates = by_hash.entry(hash(row)).or_default();
        match candidates.iter().find(|at| equal(&groups[**at][0], row)) {
            Some(at) => groups[*at].push(*row),
            None => {
                candidates.push(groups.len());
                groups.push(vec![*row]);
            }
        }
    }
    groups
}

fn hash(row: RowRef<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    if let RowRef::WordIds(ids) = row {
        ids.hash(&mut hasher);
    }
    row.each(|column, value| {
        if value != 0.0 {
            (column, value.to_bits()).hash(&mut hasher);
        }
    });
    hasher.finish()
}

fn equal(left: RowRef<'_>, right: RowRef<'_>) -> bool {
    match (left, right) {
        (RowRef::WordIds(left), RowRef::WordIds(right)) => left == right,
        (RowRef::WordIds(_), _) | (_, RowRef::WordIds(_)) => false,
        _ => left.entries() == right.entries(),
    }
}

fn bits(targets: &[f64]) -> u64 {
    let mut hasher = DefaultHasher::new();
    targets
        .iter()
        .for_each(|y| (y + 0.0).to_bits().hash(&mut hasher));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::rows::{Csr, Dense, WordIds};

    fn rows() -> Rows {
        // 0 and 2 and 5 are equal, 4 has their features and another target, 1 and 3 stand alone.
        let x = vec![1.0, 0.0, 2.0, 1.0, 1.0, -0.0, 3.0, 3.0, 1.0, 0.0, 1.0, 0.0];
        Rows::new(
            Dense::new(x, 2).unwrap(),
            vec![1.0, 1.0, 1.0, 1.0, -1.0, 1.0],
            1,
        )
        .unwrap()
    }

    #[test]
    fn twins_that_stay_are_reported_and_can_be_taken_along() {
        let found = duplicates(&rows(), &[RowId(1), RowId(2), RowId(5)]).unwrap();
        assert_eq!(
            (found.rows_with_twins, found.surviving(), found.resembled()),
            (3, 2, 0)
        );
        let twins = Twins {
            rows: vec![RowId(2), RowId(5)],
            twins: vec![RowId(0)],
            other_target: 1,
        };
        assert_eq!(found.survivors, [twins]);
        let all = with_twins(&rows(), &[RowId(5), RowId(1)]).unwrap();
        assert_eq!(all, [5, 1, 0, 2].map(RowId));
        let found = duplicates(&rows(), &all).unwrap();
        assert_eq!((found.surviving(), found.resembled()), (0, 3));
    }

    #[test]
    fn stored_zeros_and_precision_do_not_hide_a_twin() {
        let mut table = Csr::<f32>::new(2);
        table.push(&[(0, 1.0), (1, 0.0)]).unwrap();
        table.push(&[(0, 1.0)]).unwrap();
        let sparse = Rows::new(table, vec![0.0, -0.0], 1).unwrap();
        assert_eq!(
            duplicates(&sparse, &[RowId(0)]).unwrap().survivors[0].twins,
            [RowId(1)]
        );
    }

    #[test]
    fn texts_are_twins_when_their_words_are_in_the_same_order() {
        let mut table = WordIds::new(2);
        [&[0, 1][..], &[1, 0], &[], &[0, 1], &[0]]
            .iter()
            .for_each(|ids| table.push(ids).unwrap());
        let texts = Rows::new(table, vec![1.0; 5], 1).unwrap();
        let found = duplicates(&texts, &[RowId(0), RowId(1), RowId(2)]).unwrap();
        assert_eq!((found.rows_with_twins, found.surviving()), (2, 1));
        assert_eq!(found.survivors[0].twins, [RowId(3)]);
    }

    #[test]
    fn unknown_and_repeated_rows_are_named() {
        assert_eq!(
            duplicates(&rows(), &[RowId(9)]),
            Err(Error::UnknownRow(RowId(9)))
        );
        assert_eq!(
            duplicates(&rows(), &[RowId(1), RowId(1)]),
            Err(Error::DuplicateRow(RowId(1)))
        );
        assert!(duplicates(&rows(), &[]).unwrap().survivors.is_empty());
    }
}
