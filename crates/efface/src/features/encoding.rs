//! Rows of cells become raw rows, and raw rows become features.

use std::borrow::Cow;

use super::bound_row::{BoundRow, UnknownName};
use super::encoder::PlaceTarget;
use super::feature_map::ColumnMap;
use super::schema::{EncodingGaps, FeatureKind, MISSING, finite_number, text};
use super::vocabulary::sum_duplicates;
use super::{Encoder, FeatureError};

impl Encoder {
    pub(super) fn encode_bound(
        &self,
        row: BoundRow<'_>,
        out: &mut Vec<(u32, f64)>,
    ) -> Result<EncodingGaps, FeatureError> {
        let mut raw = Vec::new();
        let gaps = self.encode_raw_bound(row, &mut raw)?;
        let mut numbers = self.numbers_of(&raw);
        // A column whose levels are numbers takes any number, and not only those that were there.
        for (at, (column, map)) in self.columns.iter().zip(&self.map.columns).enumerate() {
            if matches!(map, ColumnMap::Values { .. }) {
                let filled = self.steps.missing.is_filled();
                numbers[at] = finite_number(
                    &row.cells[row.positions[at]],
                    row.line,
                    &column.name,
                    filled,
                )?;
            }
        }
        self.features_with(&raw, &numbers, out);
        Ok(gaps)
    }

    pub(super) fn encode_raw_bound(
        &self,
        row: BoundRow<'_>,
        out: &mut Vec<(u32, f64)>,
    ) -> Result<EncodingGaps, FeatureError> {
        let BoundRow { cells, line, .. } = row;
        out.clear();
        row.check_width()?;
        let mut gaps = EncodingGaps::default();
        let filled = self.steps.missing.is_filled();
        let analyzer = &self.steps.words.analyzer;
        for ((at, column), &position) in (0..).zip(&self.columns).zip(row.positions) {
            let cell = &cells[position];
            match &column.kind {
                FeatureKind::Number { base, .. } => {
                    match finite_number(cell, line, &column.name, filled)? {
                        Some(0.0) => {}
                        Some(value) => out.push((*base, value)),
                        None => out.push((*base + 1, 1.0)),
                    }
                }
                FeatureKind::Levels { .. } => {
                    match self
                        .names
                        .place(at, &text(cell).unwrap_or(Cow::Borrowed(MISSING)))
                    {
                        Some(place) => out.push((place, 1.0)),
                        None => gaps.unknown_levels += 1,
                    }
                }
                FeatureKind::Words { .. } => {
                    if let Some(text) = text(cell) {
                        analyzer.each(&text, |word| match self.names.place(at, word) {
                            Some(place) => out.push((place, 1.0)),
                            None => gaps.unknown_words += 1,
                        });
                    }
                }
                FeatureKind::Supplied { base, words, .. } => {
                    if let Some(text) = text(cell) {
                        gaps.unknown_words += words.append_counts(analyzer, &text, *base, out);
                    }
                }
                FeatureKind::Hashed { base, hashed, .. } => {
                    if let Some(text) = text(cell) {
                        hashed.append_counts(analyzer, &text, *base, out);
                    }
                }
            }
        }
        sum_duplicates(out, 0);
        Ok(gaps)
    }

    /// The names in a row that have no place yet.
    pub(super) fn unknown_names(
        &self,
        row: BoundRow<'_>,
    ) -> Result<Vec<UnknownName>, FeatureError> {
        row.check_width()?;
        let mut unknown = Vec::new();
        for ((at, column), &position) in (0..).zip(&self.columns).zip(row.positions) {
            let mut note = |name: &str| {
                if self.names.place(at, name).is_none() {
                    unknown.push(UnknownName {
                        column: at,
                        name: name.into(),
                    });
                }
            };
            match &column.kind {
                FeatureKind::Levels { .. } => {
                    note(&text(&row.cells[position]).unwrap_or(Cow::Borrowed(MISSING)))
                }
                FeatureKind::Words { .. } => {
                    if let Some(text) = text(&row.cells[position]) {
                        self.steps.words.analyzer.each(&text, note);
                    }
                }
                _ => {}
            }
        }
        Ok(unknown)
    }

    /// Gives names of new rows their places. They become features as soon as rows hold them and the
    /// map is made anew.
    pub fn admit(&mut self, names: &[UnknownName]) -> Result<(), FeatureError> {
        for UnknownName { column, name } in names {
            self.names.admit(*column, name)?;
        }
        self.targets.resize(
            (self.names.end() - self.names.first()) as usize,
            PlaceTarget::Nothing,
        );
        Ok(())
    }

    /// What becomes of the name at a place.
    fn target(&self, place: u32) -> PlaceTarget {
        let at = place.checked_sub(self.names.first()).map(|at| at as usize);
        at.and_then(|at| self.targets.get(at))
            .copied()
            .unwrap_or(PlaceTarget::Nothing)
    }

    /// The number of each column that has one; None where it is missing.
    pub(super) fn numbers_of(&self, raw: &[(u32, f64)]) -> Vec<Option<f64>> {
        let mut numbers = vec![Some(0.0); self.columns.len()];
        let first = self.names.first();
        let filled = self.steps.missing.is_filled();
        let mut at = 0;
        for &(place, value) in raw {
            if place >= first {
                match self.target(place) {
                    PlaceTarget::Value { column, value } => numbers[column] = Some(value),
                    PlaceTarget::Gap { column } => numbers[column] = None,
                    PlaceTarget::Nothing | PlaceTarget::Feature(_) | PlaceTarget::Level { .. } => {}
                }
                continue;
            }
            // Raw rows and columns without names are both in the order of their places.
            while let Some(column) = self.columns.get(at)
                && column
                    .run(filled)
                    .is_none_or(|(base, width)| place >= base + width)
            {
                at += 1;
            }
            if let Some(FeatureKind::Number { base, .. }) =
                self.columns.get(at).map(|column| &column.kind)
            {
                numbers[at] = if place == *base { Some(value) } else { None };
            }
        }
        numbers
    }

    /// Replaces `out` by the features of a raw row: sorted by feature, each once, zeros left out.
    pub fn features_of(&self, raw: &[(u32, f64)], out: &mut Vec<(u32, f64)>) {
        let numbers = self.numbers_of(raw);
        self.features_with(raw, &numbers, out);
    }

    fn features_with(
        &self,
        raw: &[(u32, f64)],
        numbers: &[Option<f64>],
        out: &mut Vec<(u32, f64)>,
    ) {
        out.clear();
        let first = self.names.first();
        for (at, map) in self.map.columns.iter().enumerate() {
            let feature = self.offsets[at];
            match map {
                ColumnMap::Number(map) | ColumnMap::Values { map, .. } => {
                    map.append(numbers[at], feature, out);
                }
                ColumnMap::Run { .. } => {
                    let Some((base, width)) = self.columns[at].run(false) else {
                        continue;
                    };
                    let start = raw.partition_point(|(place, _)| *place < base);
                    let run = raw[start..]
                        .iter()
                        .take_while(|(place, _)| *place < base + width);
                    out.extend(run.map(|&(place, value)| (feature + (place - base), value)));
                }
                ColumnMap::Means { other, .. } => {
                    let level = self.level_means(raw, at).unwrap_or(other);
                    out.extend(
                        (feature..)
                            .zip(level.iter().copied())
                            .filter(|(_, mean)| *mean != 0.0),
                    );
                }
                ColumnMap::Names { .. } => {}
            }
        }
        let start = raw.partition_point(|(place, _)| *place < first);
        for &(place, value) in &raw[start..] {
            if let PlaceTarget::Feature(feature) = self.target(place) {
                out.push((feature, value));
            }
        }
        out.sort_unstable_by_key(|(feature, _)| *feature);
        self.weigh(out);
        self.expansion.expand(out);
    }

    /// The mean targets of the level that a raw row has in a column; None where the level is not
    /// known.
    fn level_means(&self, raw: &[(u32, f64)], column: usize) -> Option<&Vec<f64>> {
        let ColumnMap::Means { means, .. } = &self.map.columns[column] else {
            return None;
        };
        raw.iter().find_map(|(place, _)| match self.target(*place) {
            PlaceTarget::Level { column: found, at } if found == column => means.get(at),
            _ => None,
        })
    }

    /// Gives counts of words their weights.
    fn weigh(&self, row: &mut [(u32, f64)]) {
        let Some(weighting) = self.steps.words.weighting else {
            return;
        };
        for (at, _) in self
            .columns
            .iter()
            .enumerate()
            .filter(|(_, column)| column.is_text())
        {
            let (ColumnMap::Run { weights, .. } | ColumnMap::Names { weights, .. }) =
                &self.map.columns[at]
            else {
                continue;
            };
            let first = self.offsets[at];
            let start = row.partition_point(|(feature, _)| *feature < first);
            let end = row.partition_point(|(feature, _)| *feature < self.offsets[at + 1]);
            let mut square = 0.0;
            for (feature, value) in &mut row[start..end] {
                *value = weighting.term(*value) * weights[(*feature - first) as usize];
                square += *value * *value;
            }
            if weighting.normalised && square > 0.0 {
                let norm = square.sqrt();
                row[start..end]
                    .iter_mut()
                    .for_each(|(_, value)| *value /= norm);
            }
        }
    }
}
