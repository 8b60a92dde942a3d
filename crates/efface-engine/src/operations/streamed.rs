//! A fit whose rows are too many for memory. They are read once more, in batches, and go to the new file and into the sums of the
//! model as they are read: another thread reads the next batch meanwhile. What stays in memory are the sums and three batches;
//! commitments and names of rows are put in order in files beside the model.

use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};

use efface::features::FeatureExpansion;
use efface::{Model, RowId};

use super::ingest::{self, ObservedColumns, ReadPurpose, RowBatch, RowReader};
use super::model_draft::{ModelDraft, NewRows, RowLoad};
use super::prepared::PreparedModel;
use super::recipe;
use super::replaced::ReplacedModel;
use super::request::FitRequest;
use crate::codec::blueprint::Blueprint;
use crate::codec::feature_rows::features;
use crate::error::{Error, Result};
use crate::file::{DataKey, DirectoryHead, FileSalt, ListRoots, ModelStore, RowDirectory};
use crate::progress::{Progress, Silent};

/// Bytes of the rows of a batch, at most; less where little memory is allowed.
const BATCH: u64 = 16 << 20;

/// Batches that wait to be written.
const WAITING: usize = 1;

/// A file that holds all rows and no model yet.
pub(super) struct RowDraft {
    pub(super) draft: ModelDraft,
    pub(super) file: ModelStore,
    pub(super) salt: FileSalt,
    pub(super) head: DirectoryHead,
    pub(super) load: RowLoad,
    /// Rows that the source has.
    pub(super) span: u64,
}

impl RowDraft {
    /// A file without rows beside the place of the model.
    pub(super) fn empty(path: &Path, arrays: usize, key: Option<&DataKey>) -> Result<Self> {
        let draft = ModelDraft::beside(path)?;
        let file = ModelStore::create(draft.path(), arrays, key)?;
        let head = DirectoryHead { rows: 0, roots: ListRoots::empty() };
        let load = RowLoad::beside(path);
        Ok(Self { draft, file, salt: FileSalt::draw()?, head, load, span: 0 })
    }
}

/// Where the rows of a streamed fit go.
pub(super) struct StreamTarget<'a> {
    pub(super) path: &'a Path,
    pub(super) key: Option<&'a DataKey>,
    pub(super) replaced: &'a ReplacedModel,
}

/// Whether a fit of this request can see its rows batch by batch.
pub(super) fn is_possible(request: &FitRequest, observed: &ObservedColumns) -> Result<bool> {
    let ObservedColumns { blueprint, encoder, .. } = observed;
    let recipe = recipe::recipe(request, blueprint, encoder.as_ref())?.for_single_change();
    // Mean targets and components follow from all rows, not from what the first pass keeps.
    let components = matches!(request.steps.expansion, FeatureExpansion::Components { .. });
    let needs_rows = components || request.steps.target_means.is_some();
    let weighs = request.choose_penalty || request.class_weight.is_some();
    let fits = bytes_of_sums(blueprint) as u64 <= request.source.limits().memory;
    Ok(fits && !needs_rows && !weighs && recipe.in_batches(1).is_some())
}

/// The sums of most models are two matrices.
fn bytes_of_sums(blueprint: &Blueprint) -> usize {
    blueprint.width.saturating_mul(blueprint.width).saturating_mul(16)
}

/// Reads all rows into a new file and fits the model of them.
pub(super) fn prepare(
    request: &FitRequest,
    observed: ObservedColumns,
    target: &StreamTarget<'_>,
    progress: &dyn Progress,
) -> Result<(PreparedModel, RowDraft)> {
    let ObservedColumns { mut blueprint, encoder, mut remarks } = observed;
    let recipe = recipe::recipe(request, &blueprint, encoder.as_ref())?;
    let single = recipe.for_single_change();
    // How many rows there are is not known yet. They are many, which is all that the choice of a form asks.
    let Some(mut fit) = single.in_batches(usize::MAX) else { return Err(request.source.no_rows()) };
    let mut made = RowDraft::empty(target.path, bytes_of_sums(&blueprint), target.key)?;
    let salt = made.salt;
    let mut head = made.head;
    let mut span = 0;
    let transaction = made.file.begin(true)?;
    let shape = blueprint.shape();
    let reading = blueprint.clone();
    let reader = RowReader::new(None, encoder.as_ref());
    let bytes = request.source.progress();
    progress.start("reading and writing rows", bytes.as_ref().map(efface_io::ReadProgress::size));
    std::thread::scope(|scope| -> Result<()> {
        let (sender, receiver) = sync_channel(WAITING);
        scope.spawn(|| read_batches(request, &reading, reader, sender));
        for batch in receiver {
            let mut batch = batch?;
            batch.number(0);
            span = batch.span;
            let lines = batch.lines.clone();
            let first = head.rows;
            let numbers = (first..).take(batch.len()).map(RowId).collect();
            let (rows, names) = batch.into_rows(numbers, blueprint.outputs())?;
            target.replaced.check(&names)?;
            rows.iter().for_each(|row| blueprint.count(row.targets, true));
            fit.add(&*features(&rows, encoder.as_ref(), &blueprint)?)?;
            let new = NewRows { rows, words: Vec::new(), names, lines };
            head = made.file.with(|connection| {
                let mut directory = RowDirectory::new(connection, salt, head);
                new.write(connection, shape, &mut directory, &mut made.load, first, &Silent)?;
                directory.finish()
            })?;
            progress.at(bytes.as_ref().map_or(head.rows, efface_io::ReadProgress::bytes_read));
        }
        Ok(())
    })?;
    transaction.commit()?;
    made.head = head;
    made.span = span;
    progress.finish();
    if made.head.rows == 0 {
        return Err(request.source.no_rows());
    }
    progress.start("fitting", None);
    let model: Model = fit.finish()?;
    remarks.push(format!(
        "the rows were read in batches, because all {} of them would not fit into the memory that is allowed; no \
         leave-one-out score was made",
        made.head.rows
    ));
    let prepared = PreparedModel::without_rows(blueprint, encoder, recipe, model, remarks)?;
    Ok((prepared, made))
}

/// Reads the source and sends it on, batch by batch, until nobody listens any more.
fn read_batches(
    request: &FitRequest,
    blueprint: &Blueprint,
    reader: RowReader<'_>,
    sender: SyncSender<Result<RowBatch>>,
) {
    let most = (request.source.limits().memory / 8).clamp(1 << 12, BATCH);
    let mut batch = RowBatch::new(blueprint);
    let read = ingest::each(&request.source, blueprint, reader, ReadPurpose::Fit, &Silent, &mut |example| {
        batch.push(example, blueprint)?;
        if batch.bytes() >= most {
            let full = std::mem::replace(&mut batch, RowBatch::new(blueprint));
            // The other side has failed already if it is gone, and says why.
            sender.send(Ok(full)).map_err(|_| Error::NoRows { file: request.source.name() })?;
        }
        Ok(())
    });
    let last = match read {
        Ok(_) if batch.len() == 0 => return,
        Ok(_) => Ok(batch),
        Err(error) => Err(error),
    };
    let _ = sender.send(last);
}
