//! From a request to the contents of a new file: rows in memory and a model of them or, where they
//! are too many and the model can be made of batches, rows that are in the file already.
//!
//! Rows are read once where their columns are numbers that become features as they are, and twice
//! otherwise. Either way they are held until it shows that there are too many of them.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::ingest::{
    self, HeldRows, NumberPass, ObservedColumns, ReadPurpose, RowBatch, RowReader,
};
use super::prepare::{model_of, prepare};
use super::prepared::PreparedModel;
use super::request::{FitRequest, ScoringPlan};
use super::row_source::PassProgress;
use super::streamed::{self, RowDraft, StreamTarget, WrittenRows};
use crate::error::{Error, Result};
use crate::progress::{Progress, Silent};

/// Batches that wait to be held or written.
const WAITING: usize = 1;

/// What the file of a model will hold, and the file itself where rows are in it already.
pub(super) fn contents(
    request: &FitRequest,
    target: &StreamTarget<'_>,
    progress: &dyn Progress,
) -> Result<(PreparedModel, Option<RowDraft>)> {
    if request.network.is_some() {
        return Ok((prepare(request, progress)?, None));
    }
    ingest::check_roles(request)?;
    if let Some(pass) = NumberPass::begin(request) {
        let expected = pass.observed.clone();
        // Folds are rows of the same source, read again.
        if !matches!(request.scoring, Some(ScoringPlan::CrossValidation { .. })) {
            request.source.read_once();
        }
        let read = |sender: &SyncSender<RowBatch>| {
            pass.read(request, &mut |batch| pass_on(request, sender, batch))
        };
        if let (rows, Some(observed)) = take_rows(request, &expected, target, progress, read)? {
            return rows.finish(request, observed, progress);
        }
    }
    let observed = ingest::observe(request, progress)?;
    let read = |sender: &SyncSender<RowBatch>| {
        let reader = RowReader::new(None, observed.encoder.as_ref());
        let purpose = ReadPurpose::Fit;
        ingest::batches(
            &request.source,
            &observed.blueprint,
            reader,
            purpose,
            &Silent,
            &mut |batch| pass_on(request, sender, batch),
        )
    };
    let (rows, _) = take_rows(request, &observed, target, progress, read)?;
    rows.finish(request, observed, progress)
}

/// Sends a batch to whoever takes it. Where nobody does, something has failed there, and says why.
fn pass_on(request: &FitRequest, sender: &SyncSender<RowBatch>, batch: RowBatch) -> Result<()> {
    sender.send(batch).map_err(|_| Error::NoRows {
        file: request.source.name(),
    })
}

/// All rows of a request.
enum TakenRows {
    InMemory(HeldRows),
    InFile(Box<WrittenRows>),
}

/// Lets one thread read rows, and holds them here or, once they are too many, writes them to the
/// new file.
fn take_rows<T: Send>(
    request: &FitRequest,
    observed: &ObservedColumns,
    target: &StreamTarget<'_>,
    progress: &dyn Progress,
    read: impl FnOnce(&SyncSender<RowBatch>) -> Result<T> + Send,
) -> Result<(TakenRows, T)> {
    thread::scope(|scope| {
        let (sender, batches) = sync_channel(WAITING);
        let reading = scope.spawn(move || read(&sender));
        let taken = hold_or_write(request, observed, target, batches, progress);
        let read = reading
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // Where both have failed, the reader may only have found that nobody takes its batches any
        // more.
        let rows = taken?;
        let read = read?;
        request.source.check_unchanged()?;
        Ok((rows, read))
    })
}

fn hold_or_write(
    request: &FitRequest,
    observed: &ObservedColumns,
    target: &StreamTarget<'_>,
    batches: Receiver<RowBatch>,
    progress: &dyn Progress,
) -> Result<TakenRows> {
    let bytes = request.source.progress();
    ingest::start_pass(progress, "reading rows", bytes.as_ref());
    let mut held = HeldRows::new(request.source.limits().memory);
    let mut rows = 0;
    while let Ok(batch) = batches.recv() {
        rows += batch.len() as u64;
        progress.at(bytes.as_ref().map_or(rows, PassProgress::bytes_read));
        let Some(beyond) = held.hold(batch) else {
            continue;
        };
        // In memory wherever that can be: with its rows at hand, a fit knows more of its own
        // rounding.
        if !streamed::is_possible(request, observed)? {
            return Err(request
                .source
                .located(held.too_much(&request.source, &beyond)));
        }
        let all = held
            .into_batches()
            .into_iter()
            .chain([beyond])
            .chain(batches);
        let written = streamed::write(request, observed, target, all, progress)?;
        return Ok(TakenRows::InFile(Box::new(written)));
    }
    progress.finish();
    Ok(TakenRows::InMemory(held))
}

impl TakenRows {
    fn finish(
        self,
        request: &FitRequest,
        observed: ObservedColumns,
        progress: &dyn Progress,
    ) -> Result<(PreparedModel, Option<RowDraft>)> {
        match self {
            Self::InMemory(held) => {
                let batch = held.into_one(&request.source, &observed.blueprint)?;
                Ok((model_of(request, observed, batch, 0, progress)?, None))
            }
            Self::InFile(written) => {
                let (prepared, draft) = streamed::finish(request, observed, *written, progress)?;
                Ok((prepared, Some(draft)))
            }
        }
    }
}
