//! From a file, or records in memory, to rows. A fit reads its file twice: [`observe`] finds out
//! what the columns are, [`gather`] turns rows into features. Memory goes to what is kept and to
//! nothing else.

mod batch;
mod blocks;
mod column_watch;
mod labels;
mod observe;
mod svmlight;
mod table;
mod texts;

pub(crate) use batch::{FeatureTable, HeldRows, RowBatch, RowNames};
pub(crate) use blocks::{NumberPass, batches, gather};
pub(crate) use observe::{ObservedColumns, check_roles, observe};
pub(crate) use texts::observe as observe_texts;

use std::collections::HashSet;

use efface::features::{Encoder, UnknownName};

use crate::codec::blueprint::Blueprint;
use crate::codec::text_encoder::TextEncoder;
use crate::error::Result;
use crate::operations::row_source::{PassProgress, RowSource};
use crate::progress::Progress;

/// What rows are read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadPurpose {
    /// The first rows of a model.
    Fit,
    /// More rows for a model that is there.
    Learn,
    /// Rows to score: neither id nor target is needed, and both are welcome.
    Predict,
    /// Rows to judge a model by: targets are needed, an id is welcome.
    Evaluate,
}

impl ReadPurpose {
    /// Whether the rows become part of a model, so that all that a model keeps of a row must be
    /// there.
    pub(crate) fn keeps_rows(self) -> bool {
        matches!(self, Self::Fit | Self::Learn)
    }
}

/// One row, ready for the model.
pub(crate) struct EncodedExample<'a> {
    pub(crate) line: u64,
    /// Where the row stands in its source, from 0.
    pub(crate) position: u64,
    pub(crate) id: Option<String>,
    pub(crate) subject: Option<String>,
    pub(crate) weight: f64,
    /// Empty where a row that is only scored has none that the model knows.
    pub(crate) targets: &'a [f64],
    /// Whether its class is none that the model knows.
    pub(crate) unknown_class: bool,
    pub(crate) content: ExampleContent<'a>,
    /// Words and levels that were not there at fit.
    pub(crate) unknown: u64,
    /// Whether an encoder reads less of the text than there is.
    pub(crate) cut: bool,
}

/// What a row of a file holds for the model.
#[derive(Clone, Copy)]
pub(crate) enum ExampleContent<'a> {
    /// Columns and their values; what is not listed is 0.
    Entries(&'a [(u32, f64)]),
    /// The words of a text.
    WordIds(&'a [u32]),
}

/// What turns the cells of a row into numbers.
#[derive(Clone, Copy)]
pub(crate) enum RowReader<'a> {
    Columns(&'a Encoder),
    Texts(&'a TextEncoder),
    /// The numbers are in the file, by their indices.
    Indices,
}

impl<'a> RowReader<'a> {
    /// A network reads texts, a model of a table its columns, and any other model indices.
    pub(crate) fn new(texts: Option<&'a TextEncoder>, encoder: Option<&'a Encoder>) -> Self {
        match (texts, encoder) {
            (Some(texts), _) => Self::Texts(texts),
            (None, Some(encoder)) => Self::Columns(encoder),
            (None, None) => Self::Indices,
        }
    }
}

/// The words and levels of a table that the encoder has no place for yet.
pub(crate) fn unknown_names(
    source: &RowSource,
    encoder: &Encoder,
    progress: &dyn Progress,
) -> Result<HashSet<UnknownName>> {
    table::unknown_names(source, encoder, progress)
}

/// Shows every row of the source, in order; returns how many there were.
pub(crate) fn each(
    source: &RowSource,
    blueprint: &Blueprint,
    reader: RowReader<'_>,
    purpose: ReadPurpose,
    progress: &dyn Progress,
    see: &mut dyn FnMut(EncodedExample<'_>) -> Result<()>,
) -> Result<u64> {
    let read = match reader {
        RowReader::Columns(encoder) => {
            table::each(source, blueprint, encoder, purpose, progress, see)
        }
        RowReader::Texts(encoder) => {
            texts::each(source, blueprint, encoder, purpose, progress, see)
        }
        RowReader::Indices => svmlight::each(source, blueprint, purpose, progress, see),
    };
    read.map_err(|error| source.located(error))
}

/// Tells that a pass begins, by bytes where it goes over files.
pub(crate) fn start_pass(progress: &dyn Progress, what: &str, bytes: Option<&PassProgress>) {
    match bytes {
        Some(bytes) => progress.start_bytes(what, bytes.size()),
        None => progress.start(what, None),
    }
}

/// Tells `progress` now and then how far a pass over `source` has come.
pub(crate) struct ReadTicker<'a> {
    progress: &'a dyn Progress,
    /// How far a pass over a file has come, in bytes. Rows in memory are counted instead.
    bytes: Option<PassProgress>,
    rows: u64,
}

impl<'a> ReadTicker<'a> {
    pub(crate) fn start(progress: &'a dyn Progress, what: &str, source: &RowSource) -> Self {
        let bytes = source.progress();
        start_pass(progress, what, bytes.as_ref());
        Self {
            progress,
            bytes,
            rows: 0,
        }
    }

    pub(crate) fn row(&mut self) {
        self.rows += 1;
        if self.rows.is_multiple_of(1024) {
            self.tell();
        }
    }

    /// So many rows at once.
    pub(crate) fn rows(&mut self, rows: u64) {
        self.rows += rows;
        self.tell();
    }

    fn tell(&self) {
        let done = self
            .bytes
            .as_ref()
            .map_or(self.rows, PassProgress::bytes_read);
        self.progress.at(done);
    }

    pub(crate) fn finish(self) -> u64 {
        self.progress.finish();
        self.rows
    }
}
