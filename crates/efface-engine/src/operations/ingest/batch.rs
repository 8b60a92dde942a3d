//! All rows of a file in memory, as the model wants them.

use efface::{Csr, Dense, Features, RowId, Rows};
use efface_io::Source;

use super::{ReadPurpose, RowReader, each};
use crate::codec::blueprint::{Blueprint, RowLayout};
use crate::error::{Error, Result};
use crate::progress::Progress;

/// The rows of a file. All lists run in parallel; a list that the model has no use for is empty.
pub(crate) struct RowBatch {
    features: FeatureTable,
    targets: Vec<f64>,
    weights: Vec<f64>,
    pub(crate) ids: Vec<String>,
    pub(crate) subjects: Vec<Option<String>>,
    pub(crate) lines: Vec<u64>,
    /// Words and levels of these rows that are no features, because they were not there at fit.
    pub(crate) unknown: u64,
    /// Texts of which an encoder reads the beginning only.
    pub(crate) cut: u64,
}

/// Features while they are being gathered.
enum FeatureTable {
    Dense64(Vec<f64>, usize),
    Sparse64(Csr<f64>),
    Sparse32(Csr<f32>),
}

impl FeatureTable {
    fn new(blueprint: &Blueprint) -> Self {
        let width = blueprint.width;
        // What is gathered of texts are word ids, whatever an encoder makes of them.
        if let Some(texts) = &blueprint.texts {
            return Self::Sparse32(Csr::new(texts.max_tokens));
        }
        match blueprint.layout {
            RowLayout::Dense64 | RowLayout::Dense32 | RowLayout::Encoded => Self::Dense64(Vec::new(), width),
            RowLayout::Sparse64 => Self::Sparse64(Csr::new(width)),
            RowLayout::Sparse32 => Self::Sparse32(Csr::new(width)),
        }
    }

    fn push(&mut self, entries: &[(u32, f64)]) -> efface::Result<()> {
        match self {
            Self::Dense64(values, width) => {
                let start = values.len();
                values.resize(start + *width, 0.0);
                entries.iter().for_each(|&(column, value)| values[start + column as usize] = value);
                Ok(())
            }
            Self::Sparse64(table) => table.push(entries),
            Self::Sparse32(table) => table.push(entries),
        }
    }
}

/// Reads a file into memory. Ids that occur twice are an error.
pub(crate) fn gather(
    source: &Source,
    blueprint: &Blueprint,
    reader: RowReader<'_>,
    purpose: ReadPurpose,
    progress: &dyn Progress,
) -> Result<RowBatch> {
    let mut batch = RowBatch {
        features: FeatureTable::new(blueprint),
        targets: Vec::new(),
        weights: Vec::new(),
        ids: Vec::new(),
        subjects: Vec::new(),
        lines: Vec::new(),
        unknown: 0,
        cut: 0,
    };
    let rows = each(source, blueprint, reader, purpose, progress, &mut |example| {
        batch.features.push(example.entries)?;
        batch.targets.extend_from_slice(example.targets);
        if blueprint.weight.is_some() {
            batch.weights.push(example.weight);
        }
        batch.ids.extend(example.id);
        if blueprint.subject.is_some() {
            batch.subjects.push(example.subject);
        }
        batch.lines.push(example.line);
        batch.unknown += example.unknown;
        batch.cut += u64::from(example.cut);
        Ok(())
    })?;
    if rows == 0 {
        return Err(Error::NoRows { file: source.path().to_owned() });
    }
    batch.check_ids()?;
    Ok(batch)
}

impl RowBatch {
    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    fn check_ids(&self) -> Result<()> {
        let mut order: Vec<usize> = (0..self.ids.len()).collect();
        order.sort_unstable_by(|&a, &b| self.ids[a].cmp(&self.ids[b]).then(a.cmp(&b)));
        let twice = order.windows(2).filter(|pair| self.ids[pair[0]] == self.ids[pair[1]]);
        match twice.min_by_key(|pair| pair[1]) {
            Some(pair) => Err(Error::RepeatedId {
                id: self.ids[pair[1]].clone(),
                first: self.lines[pair[0]],
                second: self.lines[pair[1]],
            }),
            None => Ok(()),
        }
    }

    /// Names rows that have no id of their own by their position, counted on from `next`.
    pub(crate) fn number(&mut self, next: u64) {
        if self.ids.is_empty() {
            self.ids = (next..).take(self.len()).map(|position| position.to_string()).collect();
        }
    }

    /// The rows under these numbers, and the ids and subjects that go with them.
    pub(crate) fn into_rows(self, numbers: Vec<RowId>, outputs: usize) -> Result<(Rows, RowNames)> {
        let features: Features = match self.features {
            FeatureTable::Dense64(values, width) => Dense::new(values, width)?.into(),
            FeatureTable::Sparse64(table) => table.into(),
            FeatureTable::Sparse32(table) => table.into(),
        };
        let mut rows = Rows::with_ids(numbers, features, self.targets, outputs)?;
        if !self.weights.is_empty() {
            rows = rows.weighted(self.weights)?;
        }
        Ok((rows, RowNames { ids: self.ids, subjects: self.subjects }))
    }
}

/// The names of rows, in their order.
pub(crate) struct RowNames {
    pub(crate) ids: Vec<String>,
    /// Empty when the model has no subject column.
    pub(crate) subjects: Vec<Option<String>>,
}

impl RowNames {
    pub(crate) fn subject(&self, slot: usize) -> Option<&str> {
        self.subjects.get(slot)?.as_deref()
    }
}
