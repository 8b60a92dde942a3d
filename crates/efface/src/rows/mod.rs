//! The training rows: stable ids, features (dense or sparse) or word ids, targets with one or many
//! outputs, optional weights.
//!
//! A row keeps its id for life, whatever happens to its neighbours. Removing a row scrubs its
//! values at once and frees its slot later, when half the slots are empty, so that removal costs
//! the row's own size and not n.

mod changed;
mod features;
mod index;
mod stop;
mod store;

pub use changed::ChangedRows;
pub(crate) use features::every;
pub use features::{Csr, Dense, Features, Real, RowRef, WordIds};
pub(crate) use index::RowIndex;
pub use stop::{Stop, WorkShare};
pub use store::{RowStore, RowView};

use std::borrow::Cow;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::gram::GramEngine;
pub use crate::row_id::RowId;

/// A set of training rows held in memory.
#[derive(Debug, Clone)]
pub struct Rows {
    index: RowIndex,
    alive: Vec<bool>,
    live: usize,
    features: Features,
    /// Row-major, `outputs` numbers per slot.
    targets: Vec<f64>,
    outputs: usize,
    weights: Option<Vec<f64>>,
    stop: Option<Stop>,
    gram_engine: Option<Arc<dyn GramEngine>>,
}

impl Rows {
    /// Rows with ids 0, 1, 2, … in the order given. `targets` is row-major with `outputs` numbers a
    /// row.
    pub fn new(features: impl Into<Features>, targets: Vec<f64>, outputs: usize) -> Result<Self> {
        let features = features.into();
        let ids = (0..features.rows() as u64).map(RowId).collect();
        Self::with_ids(ids, features, targets, outputs)
    }

    /// Rows with ids of the caller's choosing.
    pub fn with_ids(
        ids: Vec<RowId>,
        features: impl Into<Features>,
        targets: Vec<f64>,
        outputs: usize,
    ) -> Result<Self> {
        let features = features.into();
        let n = features.rows();
        if outputs == 0 {
            return Err(Error::Parameter {
                name: "outputs",
                value: "0".into(),
                range: "at least 1",
            });
        }
        if ids.len() != n {
            return Err(Error::Shape {
                what: "row ids",
                found: ids.len(),
                expected: n,
            });
        }
        let expected = n.saturating_mul(outputs);
        if targets.len() != expected {
            return Err(Error::Shape {
                what: "targets",
                found: targets.len(),
                expected,
            });
        }
        if let Some(at) = targets.iter().position(|v| !v.is_finite()) {
            let place = format!("target {}", at % outputs);
            return Err(Error::NotFinite {
                row: ids[at / outputs],
                place,
                value: targets[at],
            });
        }
        if let Some((slot, column, value)) = features.first_not_finite() {
            return Err(Error::NotFinite {
                row: ids[slot],
                place: format!("column {column}"),
                value,
            });
        }
        Ok(Self {
            index: RowIndex::new(ids)?,
            alive: vec![true; n],
            live: n,
            features,
            targets,
            outputs,
            weights: None,
            stop: None,
            gram_engine: None,
        })
    }

    /// Gives every row a weight: 0 counts for nothing, 2 counts twice.
    pub fn weighted(mut self, weights: Vec<f64>) -> Result<Self> {
        if weights.len() != self.alive.len() {
            return Err(Error::Shape {
                what: "weights",
                found: weights.len(),
                expected: self.alive.len(),
            });
        }
        for (slot, &value) in weights.iter().enumerate() {
            let row = self.index.id(slot);
            if !value.is_finite() {
                return Err(Error::NotFinite {
                    row,
                    place: "weight".into(),
                    value,
                });
            }
            if value < 0.0 {
                let value = format!("{value} (row {row})");
                return Err(Error::Parameter {
                    name: "weight",
                    value,
                    range: "0 or more",
                });
            }
        }
        self.weights = Some(weights);
        Ok(self)
    }

    /// Rows that count for a factor times what they counted for, which their targets tell.
    pub fn weighted_by(self, factor: impl Fn(&[f64]) -> f64) -> Result<Self> {
        let own = |slot: usize| self.weights.as_ref().map_or(1.0, |weights| weights[slot]);
        let targets = self.targets.chunks_exact(self.outputs);
        let weights = targets
            .enumerate()
            .map(|(slot, targets)| own(slot) * factor(targets))
            .collect();
        self.weighted(weights)
    }

    /// Rows whose work can be stopped; copies of them listen to the same request.
    pub fn watched(mut self, stop: &Stop) -> Self {
        self.stop = Some(stop.clone());
        self
    }

    /// Rows whose products another device makes where a fit needs them; copies of them are
    /// multiplied there too.
    pub fn multiplied_by(mut self, engine: &Arc<dyn GramEngine>) -> Self {
        self.gram_engine = Some(engine.clone());
        self
    }

    /// Who multiplies these rows with themselves, if not the processor.
    pub(crate) fn gram_engine(&self) -> Option<&Arc<dyn GramEngine>> {
        self.gram_engine.as_ref()
    }

    /// Ids of the rows present, in slot order.
    pub fn ids(&self) -> impl Iterator<Item = RowId> + '_ {
        self.slots().map(|slot| self.index.id(slot))
    }

    /// The rows present, one after the other.
    pub fn iter(&self) -> impl Iterator<Item = RowView<'_>> + '_ {
        self.slots().map(|slot| self.view(slot))
    }

    /// How many places for rows there are; some may be empty.
    pub(crate) fn slot_count(&self) -> usize {
        self.alive.len()
    }

    /// The rows present in some of the places, so that several threads can share the work.
    pub fn window(&self, slots: std::ops::Range<usize>) -> impl Iterator<Item = RowView<'_>> + '_ {
        slots
            .filter(|&slot| self.alive[slot])
            .map(|slot| self.view(slot))
    }

    /// One row, if it is here.
    pub fn get(&self, id: RowId) -> Option<RowView<'_>> {
        self.slot(id).map(|slot| self.view(slot))
    }

    /// The features of the rows present, in the order of [`iter`](Self::iter).
    pub fn table(&self) -> Cow<'_, Features> {
        if self.live == self.alive.len() {
            return Cow::Borrowed(&self.features);
        }
        let slots: Vec<usize> = self.slots().collect();
        Cow::Owned(self.gather(&slots).features)
    }

    /// Copies the rows that `keep` accepts, with their ids and weights.
    pub fn filter(&self, keep: impl Fn(RowId) -> bool) -> Self {
        let slots: Vec<usize> = self
            .slots()
            .filter(|&slot| keep(self.index.id(slot)))
            .collect();
        self.gather(&slots)
    }

    /// The rows present with other features, in the order of [`iter`](Self::iter).
    pub fn with_features(&self, features: impl Into<Features>) -> Result<Self> {
        let slots: Vec<usize> = self.slots().collect();
        let ids = slots.iter().map(|&slot| self.index.id(slot)).collect();
        let targets = self
            .iter()
            .flat_map(|row| row.targets.iter().copied())
            .collect();
        let mut rows = Self::with_ids(ids, features, targets, self.outputs)?;
        rows.weights = self
            .weights
            .as_ref()
            .map(|weights| slots.iter().map(|&slot| weights[slot]).collect());
        rows.stop.clone_from(&self.stop);
        rows.gram_engine.clone_from(&self.gram_engine);
        Ok(rows)
    }

    /// Keeps these columns of the targets and drops the others.
    pub(crate) fn keep_targets(&mut self, columns: &[usize]) {
        let lines = self.targets.chunks(self.outputs);
        self.targets = lines
            .flat_map(|line| columns.iter().map(|&column| line[column]))
            .collect();
        self.outputs = columns.len();
    }

    /// Copies the named rows out of a store, in the order asked and in the store's own precision.
    pub fn read(store: &dyn RowStore, ids: &[RowId]) -> Result<Self> {
        let mut features: Option<Features> = None;
        let mut targets = Vec::with_capacity(ids.len() * store.outputs());
        let mut weights = Vec::with_capacity(ids.len());
        store.visit(ids, &mut |_, view| {
            let empty = || Features::empty_for(view.features, store.width());
            features.get_or_insert_with(empty).push(view.features);
            targets.extend_from_slice(view.targets);
            weights.push(view.weight);
        })?;
        let features = features.ok_or(Error::NoRows)?;
        let rows = Self::with_ids(ids.to_vec(), features, targets, store.outputs())?;
        let rows = if weights.iter().all(|weight| *weight == 1.0) {
            rows
        } else {
            rows.weighted(weights)?
        };
        Ok(Self {
            stop: store.stop().cloned(),
            ..rows
        })
    }

    /// These rows as `keeper` would keep them: rounded where it keeps single precision. What a
    /// model learns and what is kept of it must be the same numbers, or a forget would take out
    /// others than were put in.
    pub fn as_kept_by(&self, keeper: &Rows) -> Result<Cow<'_, Rows>> {
        keeper.features.check_joined_by(&self.features)?;
        if self.features.is_single() || !keeper.features.is_single() {
            return Ok(Cow::Borrowed(self));
        }
        let mut rounded = self.clone();
        rounded.features = keeper.features.empty_like(self.alive.len());
        for slot in 0..self.alive.len() {
            rounded.features.push(self.features.row(slot));
        }
        if let Some((slot, column, value)) = rounded.features.first_not_finite() {
            return Err(Error::NotFinite {
                row: self.index.id(slot),
                place: format!("column {column}"),
                value,
            });
        }
        Ok(Cow::Owned(rounded))
    }

    /// Adds rows; their ids must be new.
    pub fn append(&mut self, more: &Rows) -> Result<()> {
        self.features.check_joined_by(&more.features)?;
        if more.width() != self.width() {
            return Err(Error::Shape {
                what: "features",
                found: more.width(),
                expected: self.width(),
            });
        }
        if more.outputs != self.outputs {
            return Err(Error::Shape {
                what: "outputs",
                found: more.outputs,
                expected: self.outputs,
            });
        }
        if let Some(id) = more.ids().find(|&id| self.slot(id).is_some()) {
            return Err(Error::DuplicateRow(id));
        }
        // A slot whose row is gone still occupies its id in the index; make room before an id comes
        // back.
        if more.ids().any(|id| self.index.slot(id).is_some()) {
            self.compact();
        }
        if more.weights.is_some() && self.weights.is_none() {
            self.weights = Some(vec![1.0; self.alive.len()]);
        }
        for view in more.iter() {
            self.index.push(view.id)?;
            self.alive.push(true);
            self.live += 1;
            self.features.push(view.features);
            self.targets.extend_from_slice(view.targets);
            if let Some(weights) = &mut self.weights {
                weights.push(view.weight);
            }
        }
        Ok(())
    }

    /// Removes rows and overwrites their values. Fails, without touching anything, if an id is
    /// unknown or named twice.
    pub fn remove(&mut self, ids: &[RowId]) -> Result<()> {
        let slots = self.request(ids)?;
        for slot in slots {
            self.alive[slot] = false;
            self.live -= 1;
            self.features.scrub(slot);
            self.targets[slot * self.outputs..(slot + 1) * self.outputs].fill(0.0);
            if let Some(weights) = &mut self.weights {
                weights[slot] = 0.0;
            }
        }
        if self.live * 2 < self.alive.len() {
            self.compact();
        }
        Ok(())
    }

    /// Bytes held by features, targets and weights.
    pub fn bytes(&self) -> usize {
        self.features.bytes()
            + self.targets.len() * 8
            + self.weights.as_ref().map_or(0, |w| w.len() * 8)
            + self.alive.len() * 9
    }

    fn compact(&mut self) {
        let slots: Vec<usize> = self.slots().collect();
        *self = self.gather(&slots);
    }

    fn gather(&self, slots: &[usize]) -> Self {
        let mut features = self.features.empty_like(slots.len());
        let mut targets = Vec::with_capacity(slots.len() * self.outputs);
        for &slot in slots {
            features.push(self.features.row(slot));
            targets
                .extend_from_slice(&self.targets[slot * self.outputs..(slot + 1) * self.outputs]);
        }
        Self {
            index: RowIndex::of_distinct(slots.iter().map(|&slot| self.index.id(slot)).collect()),
            alive: vec![true; slots.len()],
            live: slots.len(),
            features,
            targets,
            outputs: self.outputs,
            weights: self
                .weights
                .as_ref()
                .map(|w| slots.iter().map(|&slot| w[slot]).collect()),
            stop: self.stop.clone(),
            gram_engine: self.gram_engine.clone(),
        }
    }

    fn slots(&self) -> impl Iterator<Item = usize> + '_ {
        self.alive
            .iter()
            .enumerate()
            .filter(|(_, alive)| **alive)
            .map(|(slot, _)| slot)
    }

    fn slot(&self, id: RowId) -> Option<usize> {
        self.index.slot(id).filter(|&slot| self.alive[slot])
    }

    fn view(&self, slot: usize) -> RowView<'_> {
        RowView {
            id: self.index.id(slot),
            features: self.features.row(slot),
            targets: &self.targets[slot * self.outputs..(slot + 1) * self.outputs],
            weight: self.weights.as_ref().map_or(1.0, |w| w[slot]),
        }
    }

    fn request(&self, ids: &[RowId]) -> Result<Vec<usize>> {
        store::check_distinct(ids)?;
        ids.iter()
            .map(|&id| self.slot(id).ok_or(Error::UnknownRow(id)))
            .collect()
    }
}

impl RowStore for Rows {
    fn len(&self) -> usize {
        self.live
    }

    fn width(&self) -> usize {
        self.features.width()
    }

    fn outputs(&self) -> usize {
        self.outputs
    }

    fn is_sparse(&self) -> bool {
        self.features.is_sparse()
    }

    fn holds_word_ids(&self) -> bool {
        self.features.holds_word_ids()
    }

    fn contains(&self, id: RowId) -> Result<bool> {
        Ok(self.slot(id).is_some())
    }

    fn visit(&self, ids: &[RowId], see: &mut dyn FnMut(usize, RowView<'_>)) -> Result<()> {
        let slots = self.request(ids)?;
        self.features.warm(&slots);
        for (k, slot) in slots.into_iter().enumerate() {
            see(k, self.view(slot));
        }
        Ok(())
    }

    fn all(&self) -> Result<Cow<'_, Rows>> {
        Ok(Cow::Borrowed(self))
    }

    fn stop(&self) -> Option<&Stop> {
        self.stop.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> Rows {
        let x = Dense::new(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2).unwrap();
        Rows::with_ids(
            vec![RowId(7), RowId(3), RowId(9)],
            x,
            vec![1.0, 2.0, 3.0],
            1,
        )
        .unwrap()
    }

    #[test]
    fn ids_are_stable_under_removal_and_return() {
        let mut rows = three();
        rows.remove(&[RowId(3)]).unwrap();
        assert_eq!(rows.ids().collect::<Vec<_>>(), [RowId(7), RowId(9)]);
        assert_eq!(rows.remove(&[RowId(3)]), Err(Error::UnknownRow(RowId(3))));
        rows.append(&three().filter(|id| id == RowId(3))).unwrap();
        assert_eq!(rows.get(RowId(3)).unwrap().targets, [2.0]);
        assert_eq!(rows.len(), 3);
    }

    #[test]
    fn removal_scrubs_the_values() {
        let mut rows = three();
        rows.remove(&[RowId(3)]).unwrap();
        assert!(!format!("{rows:?}").contains("4.0"));
    }

    #[test]
    fn what_is_kept_in_single_precision_is_learned_in_it() {
        let single = Rows::new(Dense::new(vec![1.0f32, 2.0], 2).unwrap(), vec![0.0], 1).unwrap();
        let new = |x: f64| {
            let x = Dense::new(vec![x, 0.5], 2).unwrap();
            Rows::with_ids(vec![RowId(8)], x, vec![0.0], 1).unwrap()
        };
        let value = |rows: &Rows| rows.get(RowId(8)).unwrap().features.entries()[0].1;
        let tenth = new(0.1);
        let rounded = f64::from(0.1f32);
        let kept = tenth.as_kept_by(&single).unwrap();
        let mut all = single.clone();
        all.append(&kept).unwrap();
        assert_eq!((value(&kept), value(&all)), (rounded, rounded));
        assert_eq!(value(&tenth.as_kept_by(&three()).unwrap()), 0.1);
        let error = new(1e200).as_kept_by(&single).unwrap_err();
        assert!(
            error.to_string().starts_with("row 8, column 0 is inf"),
            "{error}"
        );
    }

    fn texts(rows: &[&[u32]]) -> Rows {
        let mut table = WordIds::new(3);
        rows.iter().for_each(|ids| table.push(ids).unwrap());
        Rows::new(table, vec![1.0; rows.len()], 1).unwrap()
    }

    #[test]
    fn word_ids_keep_their_values_their_order_and_their_length() {
        let mut rows = texts(&[&[0, u32::MAX, 0], &[], &[31337], &[u32::MAX]]);
        let ids = |rows: &Rows, id| {
            rows.get(RowId(id))
                .unwrap()
                .features
                .word_ids()
                .unwrap()
                .to_vec()
        };
        assert_eq!(
            (ids(&rows, 0), ids(&rows, 1)),
            (vec![0, u32::MAX, 0], vec![])
        );
        assert_eq!(rows.width(), 3);
        assert!(rows.holds_word_ids() && !rows.is_sparse());
        let gathered = Rows::read(&rows, &[RowId(3), RowId(0)]).unwrap();
        assert_eq!(ids(&gathered, 0), [0, u32::MAX, 0]);
        rows.remove(&[RowId(2), RowId(0)]).unwrap();
        assert!(!format!("{rows:?}").contains("31337"));
        rows.append(&gathered.filter(|id| id == RowId(0))).unwrap();
        assert_eq!(
            (ids(&rows, 0), ids(&rows, 1), ids(&rows, 3)),
            (vec![0, u32::MAX, 0], vec![], vec![u32::MAX])
        );
    }

    #[test]
    fn word_ids_and_numbers_do_not_mix() {
        let words = texts(&[&[1, 2]]).filter(|_| true);
        let numbers = Rows::with_ids(
            vec![RowId(5)],
            Dense::new(vec![1.0; 3], 3).unwrap(),
            vec![1.0],
            1,
        )
        .unwrap();
        assert_eq!(words.clone().append(&numbers), Err(Error::RowsOfNumbers));
        assert_eq!(numbers.clone().append(&words), Err(Error::RowsOfWordIds));
        assert_eq!(
            words.as_kept_by(&numbers).unwrap_err(),
            Error::RowsOfWordIds
        );
        assert_eq!(
            numbers.get(RowId(5)).unwrap().features.word_ids(),
            Err(Error::RowsOfNumbers)
        );
    }

    #[test]
    fn word_ids_beyond_the_longest_row_are_refused() {
        let expected = Error::Shape {
            what: "word ids of a row",
            found: 2,
            expected: 1,
        };
        assert_eq!(WordIds::new(1).push(&[4, 4]), Err(expected.clone()));
        assert_eq!(
            WordIds::from_parts(vec![0, 0, 2], vec![4, 4], 1),
            Err(expected)
        );
        assert!(WordIds::from_parts(vec![0, 2, 1], vec![4], 3).is_err());
        assert!(WordIds::from_parts(vec![0, 1, 1], vec![4], 3).is_ok());
    }

    #[test]
    fn a_bad_request_changes_nothing() {
        let mut rows = three();
        assert_eq!(
            rows.remove(&[RowId(7), RowId(7)]),
            Err(Error::DuplicateRow(RowId(7)))
        );
        assert_eq!(
            rows.remove(&[RowId(7), RowId(8)]),
            Err(Error::UnknownRow(RowId(8)))
        );
        assert_eq!(rows.len(), 3);
    }

    #[test]
    fn bad_values_are_named() {
        let x = Dense::new(vec![1.0, f64::NAN], 1).unwrap();
        let error = Rows::new(x, vec![0.0, 0.0], 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "row 1, column 0 is NaN; every value must be finite"
        );
        let error = three().weighted(vec![1.0, -2.0, 1.0]).unwrap_err();
        assert!(error.to_string().contains("-2 (row 3)"), "{error}");
        let x = Dense::new(vec![1.0f32, 2.0], 1).unwrap();
        assert_eq!(
            Rows::with_ids(vec![RowId(1), RowId(1)], x, vec![0.0, 0.0], 1).unwrap_err(),
            Error::DuplicateRow(RowId(1))
        );
    }
}
