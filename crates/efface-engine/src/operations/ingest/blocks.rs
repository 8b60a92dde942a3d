//! Rows of a source in batches. Files of cells are cut into blocks that several threads parse and
//! encode; their batches come in the order of the rows, and so does the first error. Other sources
//! are read by one thread.

use std::sync::{Mutex, PoisonError};

use efface::features::Encoder;
use efface_io::TableRecord;

use super::batch::{HeldRows, block_bytes};
use super::column_watch::ColumnWatch;
use super::observe::TableObserver;
use super::table::TableRowReader;
use super::{ObservedColumns, ReadPurpose, ReadTicker, RowBatch, RowReader, each};
use crate::codec::blueprint::{Blueprint, TargetGoal};
use crate::error::Result;
use crate::operations::request::FitRequest;
use crate::operations::row_pass::TablePass;
use crate::operations::row_source::RowSource;
use crate::ordered_work::{in_order, usual_threads};
use crate::progress::Progress;

/// Reads a file into memory, unless it takes more than `limit` bytes. Ids that occur twice are an
/// error.
pub(crate) fn gather(
    source: &RowSource,
    blueprint: &Blueprint,
    reader: RowReader<'_>,
    purpose: ReadPurpose,
    limit: u64,
    progress: &dyn Progress,
) -> Result<RowBatch> {
    let mut held = HeldRows::new(limit);
    batches(
        source,
        blueprint,
        reader,
        purpose,
        progress,
        &mut |batch| match held.hold(batch) {
            None => Ok(()),
            Some(beyond) => Err(held.too_much(source, &beyond)),
        },
    )?;
    held.into_one(source, blueprint)
}

/// Shows the rows of a source in batches, in order; returns how many there were.
pub(crate) fn batches(
    source: &RowSource,
    blueprint: &Blueprint,
    reader: RowReader<'_>,
    purpose: ReadPurpose,
    progress: &dyn Progress,
    see: &mut dyn FnMut(RowBatch) -> Result<()>,
) -> Result<u64> {
    let size = block_bytes(source.limits().memory);
    if let RowReader::Columns(encoder) = reader
        && let Some(mut blocks) = source.blocks(size)?
    {
        let columns = blocks.columns().to_vec();
        // Found once here, so that a column that is missing is told before anything is read.
        TableRowReader::new(encoder, blueprint, &columns, purpose)?;
        let mut ticker = ReadTicker::start(progress, "encoding rows", source);
        let mut passed = 0;
        let read = in_order(
            usual_threads(),
            || blocks.next().transpose(),
            |block| -> Result<(Result<RowBatch>, u64, usize)> {
                let block = block?;
                let file = block.file;
                let mut pass = block.pass();
                let batch = encoded(source, &mut pass, blueprint, encoder, purpose, &mut |_| {});
                Ok((batch, pass.passed(), file))
            },
            |read| {
                let (batch, rows, file) = read?;
                // An error of a row is told with the file that it is in.
                source.come_to(file);
                let mut batch = batch?;
                batch.stand_behind(passed);
                passed += rows;
                ticker.rows(batch.len() as u64);
                if batch.len() > 0 { see(batch) } else { Ok(()) }
            },
        );
        read.map_err(|error| source.located(error))?;
        return Ok(ticker.finish());
    }
    let mut batch = RowBatch::new(blueprint);
    let rows = each(
        source,
        blueprint,
        reader,
        purpose,
        progress,
        &mut |example| {
            batch.push(example, blueprint)?;
            if batch.bytes() >= size as u64 {
                see(std::mem::replace(&mut batch, RowBatch::new(blueprint)))?;
            }
            Ok(())
        },
    )?;
    if batch.len() > 0 {
        see(batch)?;
    }
    Ok(rows)
}

/// The rows of a block.
fn encoded(
    source: &RowSource,
    pass: &mut TablePass,
    blueprint: &Blueprint,
    encoder: &Encoder,
    purpose: ReadPurpose,
    look: &mut dyn FnMut(&TableRecord),
) -> Result<RowBatch> {
    source.bind_choices(pass)?;
    pass.read_dates(&blueprint.dates)?;
    let mut batch = RowBatch::new(blueprint);
    let columns = pass.columns().to_vec();
    let mut rows = TableRowReader::new(encoder, blueprint, &columns, purpose)?;
    let mut record = TableRecord::default();
    while pass.read(&mut record)? {
        look(&record);
        batch.push(rows.read(&record, pass.position())?, blueprint)?;
    }
    Ok(batch)
}

/// A pass that need not know a table before it encodes it: every feature and every target is a
/// number that becomes a feature as it is. That holds for the first block, and is found out for the
/// others as they are encoded.
pub(crate) struct NumberPass {
    /// What the first block tells.
    first: TableObserver,
    first_rows: u64,
    pub(crate) observed: ObservedColumns,
}

impl NumberPass {
    /// Looks at the first block. None where rows cannot be encoded before all of them were seen;
    /// what is wrong with a table is told by the passes that see all of it first.
    pub(crate) fn begin(request: &FitRequest) -> Option<Self> {
        let source = &request.source;
        let mut blocks = source.blocks(block_bytes(source.limits().memory)).ok()??;
        let mut first = TableObserver::new(request, blocks.columns()).ok()?;
        let mut pass = blocks.next().ok()??.pass();
        source.bind_choices(&mut pass).ok()?;
        pass.read_dates(&request.dates).ok()?;
        let mut record = TableRecord::default();
        let mut first_rows = 0;
        while pass.read(&mut record).ok()? {
            first.observe(&record).ok()?;
            first_rows += 1;
        }
        let observed = first.clone().finish(request).ok()?;
        let goal = &observed.blueprint.goal;
        let encoder = observed.encoder.as_ref()?;
        let is_known = encoder.has_dense_raw_rows()
            && encoder.is_identity()
            && first.clone().complete(first.fresh_watch(), 0);
        (is_known && matches!(goal, TargetGoal::Numbers | TargetGoal::Nothing)).then_some(Self {
            first,
            first_rows,
            observed,
        })
    }

    /// Shows all rows in batches, and gives what the columns are. None where a row was other than
    /// expected: then what was shown is of no use.
    pub(crate) fn read(
        self,
        request: &FitRequest,
        see: &mut dyn FnMut(RowBatch) -> Result<()>,
    ) -> Result<Option<ObservedColumns>> {
        let Self {
            mut first,
            first_rows,
            observed: ObservedColumns {
                blueprint, encoder, ..
            },
        } = self;
        let source = &request.source;
        let blocks = source.blocks(block_bytes(source.limits().memory))?;
        let (Some(mut blocks), Some(encoder)) = (blocks, encoder) else {
            return Ok(None);
        };
        let newest = Mutex::new(first.fresh_watch());
        let mut watch: Option<ColumnWatch> = None;
        let mut passed = 0;
        let mut rows = 0;
        let read = in_order(
            usual_threads(),
            || blocks.next().transpose(),
            |block| -> Result<(RowBatch, ColumnWatch, u64, usize)> {
                let block = block?;
                let mut seen = newest
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .clone();
                let file = block.file;
                let mut pass = block.pass();
                let mut look = |record: &TableRecord| seen.observe(&record.cells);
                let batch = encoded(
                    source,
                    &mut pass,
                    &blueprint,
                    &encoder,
                    ReadPurpose::Fit,
                    &mut look,
                )?;
                Ok((batch, seen, pass.passed(), file))
            },
            |read| {
                let (mut batch, seen, block_rows, file) = read.map_err(|_| None)?;
                source.come_to(file);
                batch.stand_behind(passed);
                passed += block_rows;
                rows += batch.len() as u64;
                match &mut watch {
                    Some(watch) => watch.merge(seen),
                    none => *none = Some(seen),
                }
                if let Some(watch) = &watch {
                    *newest.lock().unwrap_or_else(PoisonError::into_inner) = watch.fresh();
                }
                if batch.len() > 0 {
                    see(batch).map_err(Some)
                } else {
                    Ok(())
                }
            },
        );
        match read {
            Ok(()) => {}
            Err(None) => return Ok(None),
            Err(Some(error)) => return Err(source.located(error)),
        }
        let is_complete =
            watch.is_some_and(|watch| first.complete(watch, rows.saturating_sub(first_rows)));
        if !is_complete {
            return Ok(None);
        }
        first
            .finish(request)
            .map(Some)
            .map_err(|error| source.located(error))
    }
}
