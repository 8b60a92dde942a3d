//! Rows that join and leave what is kept, and the features that follow from it.

use std::collections::HashMap;

use super::feature_map::ColumnMap;
use super::number_sums::NumberSums;
use super::schema::{FeatureKind, MISSING, level_number};
use super::target_means::TargetSums;
use super::vocabulary::keep_commonest;
use super::{
    ColumnScale, Encoder, FeatureColumn, FeatureError, FeatureMap, FeatureSteps, MissingNumbers,
};
use crate::not_covered::NotCovered;
use crate::rows::{RowStore, Rows};

impl Encoder {
    /// A raw row is new: its numbers, levels and words count, and its targets behind them.
    pub fn learn_row(&mut self, raw: &[(u32, f64)], targets: &[f64]) {
        self.rows += 1;
        self.count(raw, targets, true);
    }

    /// A raw row is gone: its numbers, levels and words count no more, and names that no row holds
    /// any more are erased. Returns how many were erased just now.
    pub fn forget_row(&mut self, raw: &[(u32, f64)], targets: &[f64]) -> usize {
        self.rows = self.rows.saturating_sub(1);
        self.count(raw, targets, false)
    }

    /// The last step of a fit: takes note of what raw rows say as a whole and with their targets,
    /// which are −1 and 1 where there are two classes.
    ///
    /// # Errors
    /// Components are asked for that these rows do not have.
    pub fn complete(&mut self, rows: &Rows, two_classes: bool) -> Result<(), FeatureError> {
        if self.steps.target_means.is_some() {
            self.target_sums = TargetSums::new(rows.outputs(), two_classes);
            for row in rows.iter() {
                self.count_targets(&row.features.entries(), row.targets, true);
            }
            self.map = self.map_now()?;
            self.index_map()?;
        }
        if let Some(map) = self.with_components(None, rows, true)? {
            self.adopt(map)?;
        }
        Ok(())
    }

    /// Counts targets behind the levels whose features are means of them.
    fn count_targets(&mut self, raw: &[(u32, f64)], targets: &[f64], come: bool) {
        let is_mean = |place: &u32| {
            let column = self
                .names
                .column(*place)
                .and_then(|column| self.columns.get(column as usize));
            column.is_some_and(|column| {
                matches!(column.kind, FeatureKind::Levels { as_means: true, .. })
            })
        };
        let places: Vec<u32> = raw
            .iter()
            .map(|(place, _)| *place)
            .filter(is_mean)
            .collect();
        self.target_sums.count(places.into_iter(), targets, come);
    }

    fn count(&mut self, raw: &[(u32, f64)], targets: &[f64], come: bool) -> usize {
        self.components_waiting = self.has_components();
        if self.steps.target_means.is_some() {
            self.count_targets(raw, targets, come);
        }
        let numbers = self.numbers_of(raw);
        for (column, number) in self.columns.iter_mut().zip(numbers) {
            match &mut column.kind {
                FeatureKind::Number { sums, .. } if come => sums.learn(number, &self.steps),
                FeatureKind::Number { sums, .. } => sums.forget(number, &self.steps),
                FeatureKind::Supplied {
                    base, documents, ..
                }
                | FeatureKind::Hashed {
                    base, documents, ..
                } => {
                    for place in raw.iter().filter_map(|(place, _)| place.checked_sub(*base)) {
                        if let Some(rows) = documents.get_mut(place as usize) {
                            *rows = if come {
                                *rows + 1
                            } else {
                                rows.saturating_sub(1)
                            };
                        }
                    }
                }
                FeatureKind::Levels { .. } | FeatureKind::Words { .. } => {}
            }
        }
        let mut erased = 0;
        // Places of columns without names lie before those of names, and are passed over.
        for &(place, count) in raw {
            if come {
                self.names.learn(place, count);
            } else {
                let is_erased = self.names.forget(place, count);
                if is_erased {
                    self.target_sums.drop_level(place);
                }
                erased += usize::from(is_erased);
            }
        }
        erased
    }

    /// Returns true if the least or greatest value of a column left with its last row, in this
    /// change or in an earlier one that kept the features, so that only the rows can tell the next
    /// one. Show all of them to [`see_extremes`](Self::see_extremes) then, after
    /// [`drop_extremes`](Self::drop_extremes).
    pub fn lacks_extremes(&self) -> bool {
        (0..self.columns.len()).any(|at| self.column_lacks_extremes(at))
    }

    fn column_lacks_extremes(&self, at: usize) -> bool {
        match &self.columns[at].kind {
            FeatureKind::Number { sums, .. } => sums.lacks_extremes(&self.steps),
            _ => false,
        }
    }

    /// Returns the name of a column whose counts, sums or extremes are not those of these raw rows;
    /// None where all are.
    ///
    /// # Errors
    /// A row cannot be read.
    pub fn miscounted(&self, rows: &dyn RowStore) -> crate::Result<Option<String>> {
        let mut fresh = vec![NumberSums::default(); self.columns.len()];
        let mut holders: HashMap<u32, u64> = HashMap::new();
        rows.each_block(&mut |block| {
            for row in block.iter() {
                let raw = row.features.entries();
                for (sums, number) in fresh.iter_mut().zip(self.numbers_of(&raw)) {
                    sums.learn(number, &self.steps);
                }
                for (place, _) in raw {
                    *holders.entry(place).or_default() += 1;
                }
            }
            Ok(())
        })?;
        let is_counted = |place: u32, rows: u64| holders.get(&place).copied().unwrap_or(0) == rows;
        let agrees = |at: usize| match &self.columns[at].kind {
            FeatureKind::Number { sums, .. } => sums.agrees_with(&fresh[at]),
            FeatureKind::Levels { .. } | FeatureKind::Words { .. } => self
                .names
                .of_column(at as u32)
                .all(|(place, _, rows, _)| is_counted(place, rows)),
            FeatureKind::Supplied {
                base, documents, ..
            }
            | FeatureKind::Hashed {
                base, documents, ..
            } => (*base..)
                .zip(documents)
                .all(|(place, rows)| is_counted(place, *rows)),
        };
        let wrong = (0..self.columns.len()).find(|at| !agrees(*at));
        Ok(wrong.map(|at| self.columns[at].name.clone()))
    }

    /// Drops the least and greatest values, before all rows are seen again.
    pub fn drop_extremes(&mut self) {
        for column in &mut self.columns {
            if let FeatureKind::Number { sums, .. } = &mut column.kind {
                sums.drop_extremes();
            }
        }
    }

    /// Looks for the least and greatest values in one of all rows.
    pub fn see_extremes(&mut self, raw: &[(u32, f64)]) {
        let numbers = self.numbers_of(raw);
        for (column, number) in self.columns.iter_mut().zip(numbers) {
            if let (FeatureKind::Number { sums, .. }, Some(value)) = (&mut column.kind, number) {
                sums.see(value, 1);
            }
        }
    }

    /// The map of the columns that follows from the rows that are counted now; None where the
    /// present one gives the same features. Components are not part of it, see
    /// [`with_components`](Self::with_components). Extremes must be known, see
    /// [`lacks_extremes`](Self::lacks_extremes). With `allow_unused`, names that no row holds any
    /// more do not count: their features are unused until a map is made anew, which is all the same
    /// to a model that gives them the weight 0, and not to one that counts its features.
    ///
    /// # Errors
    /// No features are left, because no row holds a word any more that can be one.
    pub fn follow(&self, allow_unused: bool) -> Result<Option<FeatureMap>, FeatureError> {
        let now = self.map_now()?;
        let is_live = |place| !allow_unused || self.names.rows(place) > 0;
        Ok((!self.map.is_as(&now, is_live)).then_some(now))
    }

    /// Returns true if the features stay as they are whichever of the rows with these names leave,
    /// apart from names that no row holds any more.
    pub fn has_fixed_features(&self) -> bool {
        let FeatureSteps {
            scale,
            missing,
            words,
            target_means,
            expansion,
        } = &self.steps;
        let is_filled_alike = match missing {
            MissingNumbers::Refused => true,
            MissingNumbers::Mean { .. } => false,
            MissingNumbers::Constant { indicator, .. } => !indicator,
        };
        let is_fixed_column = |(at, column): (usize, &FeatureColumn)| {
            let mut names = self.names.of_column(at as u32);
            match column.kind {
                FeatureKind::Words { most } => names.count() <= most,
                // Levels that are all numbers would be a number.
                FeatureKind::Levels { inferred: true, .. } => {
                    !names.any(|(_, name, ..)| name == MISSING || level_number(name).is_some())
                }
                _ => true,
            }
        };
        *scale == ColumnScale::None
            && is_filled_alike
            && words.weighting.is_none()
            && words.least_rows.is_none()
            && words.most_rows.is_none()
            && target_means.is_none()
            && !expansion.has_components()
            && self.columns.iter().enumerate().all(is_fixed_column)
    }

    /// What a forget left undone; empty when the features are those of the rows that are there.
    pub fn not_covered(&self) -> Vec<NotCovered> {
        let mut found = Vec::new();
        for (at, (column, old)) in self.columns.iter().zip(&self.map.columns).enumerate() {
            let name = || column.name.clone();
            if self.is_undecided(at) {
                found.push(NotCovered::ColumnKind { column: name() });
            }
            if self.column_lacks_extremes(at) {
                // The scale still ends at a value that no row holds.
                found.push(NotCovered::FeatureScale { column: name() });
                continue;
            }
            let now = self.column_map(at);
            let is_live = |place| self.names.rows(place) > 0;
            let one = |map: ColumnMap| FeatureMap {
                columns: vec![map],
                components: None,
            };
            if one(old.clone()).is_as(&one(now.clone()), is_live) {
                continue;
            }
            let same_kind = std::mem::discriminant(old) == std::mem::discriminant(&now);
            if !same_kind {
                found.push(NotCovered::ColumnKind { column: name() });
            } else if let (ColumnMap::Names { places, .. }, ColumnMap::Names { places: new, .. }) =
                (old, &now)
                && !places
                    .iter()
                    .copied()
                    .filter(|place| is_live(*place))
                    .eq(new.iter().copied())
            {
                found.push(NotCovered::ChosenWords {
                    column: name(),
                    words: old.width(),
                });
            }
            if same_kind && old.has_other_numbers(&now) {
                found.push(NotCovered::FeatureScale { column: name() });
            }
        }
        if self.components_waiting {
            found.push(NotCovered::FeatureComponents);
        }
        found
    }

    /// The map that follows from what is counted.
    pub(super) fn map_now(&self) -> Result<FeatureMap, FeatureError> {
        let columns = (0..self.columns.len())
            .map(|at| self.column_map(at))
            .collect();
        let map = FeatureMap {
            columns,
            components: None,
        };
        // The features of mean targets are known once the targets are.
        let has_features =
            |map: &ColumnMap| map.width() > 0 || matches!(map, ColumnMap::Means { .. });
        if map.columns.iter().any(has_features) {
            return Ok(map);
        }
        match self.columns.iter().find(|column| column.is_text()) {
            Some(column) => Err(FeatureError::NoWords {
                column: column.name.clone(),
            }),
            None => Err(FeatureError::NoFeatures),
        }
    }

    fn column_map(&self, at: usize) -> ColumnMap {
        let weights_of = |documents: &[u64]| match self.steps.words.weighting {
            Some(weighting) => documents
                .iter()
                .map(|rows| weighting.inverse_frequency(*rows, self.rows))
                .collect(),
            None => Vec::new(),
        };
        let run = |width: u32, documents: &[u64]| ColumnMap::Run {
            width,
            weights: weights_of(documents),
        };
        match &self.columns[at].kind {
            FeatureKind::Number { sums, .. } => ColumnMap::Number(sums.map(&self.steps)),
            FeatureKind::Supplied {
                words, documents, ..
            } => run(words.len() as u32, documents),
            FeatureKind::Hashed {
                hashed, documents, ..
            } => run(hashed.buckets(), documents),
            FeatureKind::Levels { as_means: true, .. } => self.mean_map(at),
            FeatureKind::Levels { .. } => self.level_map(at),
            FeatureKind::Words { most } => {
                let places = self.chosen_words(at as u32, *most);
                let documents: Vec<u64> =
                    places.iter().map(|place| self.names.rows(*place)).collect();
                ColumnMap::Names {
                    weights: weights_of(&documents),
                    places,
                }
            }
        }
    }

    /// The places of the words that become features, in ascending order: those within the limits on
    /// rows, and of these the commonest.
    fn chosen_words(&self, column: u32, most: usize) -> Vec<u32> {
        let limits = &self.steps.words;
        let least = limits.least_rows.map_or(0.0, |share| share.of(self.rows));
        let greatest = limits
            .most_rows
            .map_or(f64::INFINITY, |share| share.of(self.rows));
        let mut words: Vec<(u32, &str, u64, u64)> = self
            .names
            .of_column(column)
            .filter(|(_, _, rows, _)| (least..=greatest).contains(&(*rows as f64)))
            .collect();
        keep_commonest(&mut words, most, |(_, word, _, total)| (*total, word));
        let mut places: Vec<u32> = words.into_iter().map(|(place, ..)| place).collect();
        places.sort_unstable();
        places
    }

    /// The mean targets of every level.
    fn mean_map(&self, at: usize) -> ColumnMap {
        let smoothing = self
            .steps
            .target_means
            .as_ref()
            .map_or(0.0, |means| means.smoothing);
        let mut levels: Vec<(u32, u64)> = self
            .names
            .of_column(at as u32)
            .map(|(place, _, rows, _)| (place, rows))
            .collect();
        levels.sort_unstable();
        let mean = |(place, rows): &(u32, u64)| {
            self.target_sums
                .level_means(*place, *rows, self.rows, smoothing)
        };
        ColumnMap::Means {
            means: levels.iter().map(mean).collect(),
            places: levels.into_iter().map(|(place, _)| place).collect(),
            other: self.target_sums.means(self.rows),
        }
    }

    /// One feature for each level; or one number, where the rows decided that the column is one-hot
    /// and all values that are left are numbers.
    fn level_map(&self, at: usize) -> ColumnMap {
        let mut names: Vec<(u32, &str, u64)> = self
            .names
            .of_column(at as u32)
            .map(|(place, name, rows, _)| (place, name, rows))
            .collect();
        names.sort_unstable();
        if !self.is_left_with_numbers(at) || self.is_undecided(at) {
            let places = names.into_iter().map(|(place, ..)| place).collect();
            return ColumnMap::Names {
                places,
                weights: Vec::new(),
            };
        }
        let mut sums = NumberSums::default();
        let mut places = Vec::new();
        let mut values = Vec::new();
        let mut missing = None;
        for (place, name, rows) in names {
            match level_number(name) {
                Some(value) => {
                    sums.learn_many(value, rows, &self.steps);
                    places.push(place);
                    values.push(value);
                }
                None => {
                    missing = Some(place);
                    (0..rows).for_each(|_| sums.learn(None, &self.steps));
                }
            }
        }
        ColumnMap::Values {
            map: sums.map(&self.steps),
            places,
            values,
            missing,
        }
    }

    /// Whether the rows decided that a column is one-hot, and all values that are left are numbers
    /// or missing.
    fn is_left_with_numbers(&self, at: usize) -> bool {
        let FeatureKind::Levels { inferred: true, .. } = self.columns[at].kind else {
            return false;
        };
        let mut live = self.names.of_column(at as u32).peekable();
        live.peek().is_some()
            && live.all(|(_, name, ..)| name == MISSING || level_number(name).is_some())
    }

    /// Whether a column stays one-hot although the rows that are left would not make it so.
    fn is_undecided(&self, at: usize) -> bool {
        if !self.is_left_with_numbers(at) {
            return false;
        }
        let has_gaps = self.names.place(at as u32, MISSING).is_some();
        self.fixed_kinds || (has_gaps && !self.steps.missing.is_filled())
    }
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
