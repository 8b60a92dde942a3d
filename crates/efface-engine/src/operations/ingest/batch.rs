//! All rows of a file in memory, as the model wants them.

use efface::{Csr, Dense, Features, RowId, Rows, WordIds};
use efface_io::ReadFault;

use super::{EncodedExample, ExampleContent};
use crate::codec::blueprint::Blueprint;
use crate::error::{Error, Result};
use crate::file::RowLayout;
use crate::operations::row_source::RowSource;

/// Bytes of a block of a file that is parsed by one thread, at most; less where little memory is
/// allowed.
const BLOCK: u64 = 1 << 20;

/// Bytes of such a block where so many bytes of rows may be in memory.
pub(super) fn block_bytes(memory: u64) -> usize {
    (memory / 16).clamp(1 << 12, BLOCK) as usize
}

/// Bytes of a row's line, number and id without the letters of the id.
const NAME_BYTES: u64 = 48;

/// The rows of a file. All lists run in parallel; a list that the model has no use for is empty.
pub(crate) struct RowBatch {
    features: FeatureTable,
    targets: Vec<f64>,
    weights: Vec<f64>,
    pub(crate) ids: Vec<String>,
    pub(crate) subjects: Vec<Option<String>>,
    pub(crate) lines: Vec<u64>,
    /// Where rows without an id stand in their source.
    positions: Vec<u64>,
    /// Rows that the source has up to the last of these.
    pub(crate) span: u64,
    /// Words and levels of these rows that are no features, because they were not there at fit.
    pub(crate) unknown: u64,
    /// Texts of which an encoder reads the beginning only.
    pub(crate) cut: u64,
    bytes: u64,
    /// How many bytes the rows up to each of them take.
    ends: Vec<u64>,
}

/// What rows hold, while they are being gathered.
pub(crate) enum FeatureTable {
    Dense64(Vec<f64>, usize),
    Sparse64(Csr<f64>),
    Sparse32(Csr<f32>),
    WordIds(WordIds),
}

impl FeatureTable {
    /// An empty table for rows that the model will keep.
    fn new(blueprint: &Blueprint) -> Self {
        let width = blueprint.stored_width;
        // What is gathered of texts are word ids, whatever an encoder makes of them.
        if let Some(texts) = &blueprint.texts {
            return Self::WordIds(WordIds::new(texts.max_tokens));
        }
        match blueprint.layout {
            RowLayout::Dense64 | RowLayout::Dense32 | RowLayout::Encoded => {
                Self::Dense64(Vec::new(), width)
            }
            RowLayout::Sparse64 => Self::Sparse64(Csr::new(width)),
            RowLayout::Sparse32 => Self::Sparse32(Csr::new(width)),
            RowLayout::WordIds => Self::WordIds(WordIds::new(width)),
        }
    }

    /// An empty table for rows that are scored and not kept: numbers in double precision, as they
    /// stand in the file.
    pub(crate) fn to_score(blueprint: &Blueprint) -> Self {
        match &blueprint.texts {
            Some(texts) => Self::WordIds(WordIds::new(texts.max_tokens)),
            None => Self::Sparse64(Csr::new(blueprint.width)),
        }
    }

    /// About as many bytes as a row takes in memory.
    fn row_bytes(&self, content: &ExampleContent<'_>) -> u64 {
        let count = match (self, content) {
            (Self::Dense64(_, width), _) => width * 8,
            (_, ExampleContent::Entries(entries)) => entries.len() * 12,
            (_, ExampleContent::WordIds(ids)) => ids.len() * 4,
        };
        count as u64
    }

    /// Makes room for so many rows, where it is known how much that is.
    fn reserve(&mut self, rows: usize) {
        if let Self::Dense64(values, width) = self {
            values.reserve_exact(rows.saturating_mul(*width));
        }
    }

    /// Adds the rows of another table behind these.
    fn append(&mut self, more: Self) -> efface::Result<()> {
        match (self, more) {
            (Self::Dense64(values, _), Self::Dense64(more, _)) => values.extend(more),
            (Self::Sparse64(table), Self::Sparse64(more)) => table.append(&more)?,
            (Self::Sparse32(table), Self::Sparse32(more)) => table.append(&more)?,
            (Self::WordIds(table), Self::WordIds(more)) => table.append(&more)?,
            (Self::WordIds(_), _) => return Err(efface::Error::RowsOfNumbers),
            (_, _) => return Err(efface::Error::RowsOfWordIds),
        }
        Ok(())
    }

    pub(crate) fn push(&mut self, content: ExampleContent<'_>) -> efface::Result<()> {
        match (self, content) {
            (Self::Dense64(values, width), ExampleContent::Entries(entries)) => {
                let start = values.len();
                values.resize(start + *width, 0.0);
                entries
                    .iter()
                    .for_each(|&(column, value)| values[start + column as usize] = value);
                Ok(())
            }
            (Self::Sparse64(table), ExampleContent::Entries(entries)) => table.push(entries),
            (Self::Sparse32(table), ExampleContent::Entries(entries)) => table.push(entries),
            (Self::WordIds(table), ExampleContent::WordIds(ids)) => table.push(ids),
            (Self::WordIds(_), ExampleContent::Entries(_)) => Err(efface::Error::RowsOfNumbers),
            (_, ExampleContent::WordIds(_)) => Err(efface::Error::RowsOfWordIds),
        }
    }

    pub(crate) fn into_features(self) -> efface::Result<Features> {
        Ok(match self {
            Self::Dense64(values, width) => Dense::new(values, width)?.into(),
            Self::Sparse64(table) => table.into(),
            Self::Sparse32(table) => table.into(),
            Self::WordIds(table) => table.into(),
        })
    }
}

/// Batches that are kept in memory until they are all, or too many.
pub(crate) struct HeldRows {
    batches: Vec<RowBatch>,
    bytes: u64,
    limit: u64,
}

impl HeldRows {
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            batches: Vec::new(),
            bytes: 0,
            limit,
        }
    }

    /// Keeps a batch, or gives it back where it would be too much.
    pub(crate) fn hold(&mut self, batch: RowBatch) -> Option<RowBatch> {
        if self.bytes + batch.bytes > self.limit {
            return Some(batch);
        }
        self.bytes += batch.bytes;
        self.batches.push(batch);
        None
    }

    /// That a batch is too much, and which of its rows crosses the limit.
    pub(crate) fn too_much(&self, source: &RowSource, batch: &RowBatch) -> Error {
        let line = batch.line_beyond(self.limit.saturating_sub(self.bytes));
        let fault = ReadFault::TooMuchMemory {
            line,
            limit: self.limit,
        };
        efface_io::Error {
            file: source.name(),
            fault: Box::new(fault),
        }
        .into()
    }

    pub(crate) fn into_batches(self) -> Vec<RowBatch> {
        self.batches
    }

    /// All rows as one batch. There must be some, and no id twice.
    pub(crate) fn into_one(self, source: &RowSource, blueprint: &Blueprint) -> Result<RowBatch> {
        let rows = self.batches.iter().map(RowBatch::len).sum();
        if rows == 0 {
            return Err(source.no_rows());
        }
        let mut all = RowBatch::new(blueprint);
        all.features.reserve(rows);
        for batch in self.batches {
            all.append(batch)?;
        }
        all.check_ids().map_err(|error| source.located(error))?;
        Ok(all)
    }
}

impl RowBatch {
    /// No rows of such a model.
    pub(crate) fn new(blueprint: &Blueprint) -> Self {
        Self {
            features: FeatureTable::new(blueprint),
            targets: Vec::new(),
            weights: Vec::new(),
            ids: Vec::new(),
            subjects: Vec::new(),
            lines: Vec::new(),
            positions: Vec::new(),
            span: 0,
            unknown: 0,
            cut: 0,
            bytes: 0,
            ends: Vec::new(),
        }
    }

    pub(crate) fn push(
        &mut self,
        example: EncodedExample<'_>,
        blueprint: &Blueprint,
    ) -> Result<()> {
        self.bytes += self.features.row_bytes(&example.content) + example.targets.len() as u64 * 8;
        self.bytes += example.id.as_ref().map_or(0, |id| id.len() as u64) + NAME_BYTES;
        self.ends.push(self.bytes);
        self.features.push(example.content)?;
        self.targets.extend_from_slice(example.targets);
        if blueprint.weight.is_some() {
            self.weights.push(example.weight);
        }
        match example.id {
            Some(id) => self.ids.push(id),
            None => self.positions.push(example.position),
        }
        self.span = example.position + 1;
        if blueprint.subject.is_some() {
            self.subjects.push(example.subject);
        }
        self.lines.push(example.line);
        self.unknown += example.unknown;
        self.cut += u64::from(example.cut);
        Ok(())
    }

    /// Adds later rows behind these.
    fn append(&mut self, later: Self) -> Result<()> {
        self.features.append(later.features)?;
        self.targets.extend(later.targets);
        self.weights.extend(later.weights);
        self.ids.extend(later.ids);
        self.subjects.extend(later.subjects);
        self.lines.extend(later.lines);
        self.positions.extend(later.positions);
        self.span = later.span;
        self.unknown += later.unknown;
        self.cut += later.cut;
        self.bytes += later.bytes;
        Ok(())
    }

    /// Lets positions, which count from the first row of a block, count from the first of the
    /// source.
    pub(super) fn stand_behind(&mut self, rows: u64) {
        self.positions
            .iter_mut()
            .for_each(|position| *position += rows);
        self.span += rows;
    }

    /// The line of the first row that takes more than is left.
    fn line_beyond(&self, left: u64) -> u64 {
        let at = self.ends.partition_point(|end| *end <= left);
        self.lines
            .get(at)
            .or(self.lines.last())
            .copied()
            .unwrap_or(0)
    }

    /// About as many bytes as it takes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    fn check_ids(&self) -> Result<()> {
        let mut order: Vec<usize> = (0..self.ids.len()).collect();
        order.sort_unstable_by(|&a, &b| self.ids[a].cmp(&self.ids[b]).then(a.cmp(&b)));
        let twice = order
            .windows(2)
            .filter(|pair| self.ids[pair[0]] == self.ids[pair[1]]);
        match twice.min_by_key(|pair| pair[1]) {
            Some(pair) => Err(Error::RepeatedId {
                id: self.ids[pair[1]].clone(),
                first: self.lines[pair[0]],
                second: self.lines[pair[1]],
            }),
            None => Ok(()),
        }
    }

    /// Names rows that have no id of their own by their position in the source, counted on from
    /// `next`.
    pub(crate) fn number(&mut self, next: u64) {
        if self.ids.is_empty() {
            self.ids = self
                .positions
                .iter()
                .map(|position| (next + position).to_string())
                .collect();
        }
    }

    /// The rows under these numbers, and the ids and subjects that go with them.
    pub(crate) fn into_rows(self, numbers: Vec<RowId>, outputs: usize) -> Result<(Rows, RowNames)> {
        let mut rows = Rows::with_ids(
            numbers,
            self.features.into_features()?,
            self.targets,
            outputs,
        )?;
        if !self.weights.is_empty() {
            rows = rows.weighted(self.weights)?;
        }
        Ok((
            rows,
            RowNames {
                ids: self.ids,
                subjects: self.subjects,
                span: self.span,
            },
        ))
    }
}

/// The names of rows, in their order.
pub(crate) struct RowNames {
    pub(crate) ids: Vec<String>,
    /// Empty when the model has no subject column.
    pub(crate) subjects: Vec<Option<String>>,
    /// Rows that their source has up to the last of them.
    pub(crate) span: u64,
}

impl RowNames {
    pub(crate) fn subject(&self, slot: usize) -> Option<&str> {
        self.subjects.get(slot)?.as_deref()
    }
}
