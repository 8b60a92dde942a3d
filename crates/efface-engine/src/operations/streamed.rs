//! A fit whose rows are too many for memory. Their batches go to the new file and, where sums are
//! all that a model needs, into its sums as they are read: some threads encode and hash the rows of
//! a batch, one adds them to the sums, and the caller's writes them. Other models read the rows
//! back from the new file, block by block, as often as their training asks. What stays in memory
//! are sums and a few batches or blocks; commitments and names of rows are put in order in files
//! beside the model.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::sync_channel;

use efface::features::FeatureExpansion;
use efface::models::family::BatchedFit;
use efface::{Model, RowId, Rows};

use super::ingest::{ObservedColumns, RowBatch, start_pass};
use super::model_draft::{EncodedRows, ModelDraft, NewRows, RowLoad};
use super::prepared::PreparedModel;
use super::recipe;
use super::replaced::ReplacedModel;
use super::request::FitRequest;
use super::row_source::PassProgress;
use super::watched_fit;
use crate::codec::blueprint::Blueprint;
use crate::codec::feature_rows::{FeatureRows, features};
use crate::error::{Error, Result};
use crate::file::{
    DataKey, DirectoryHead, FileFault, FileSalt, ListRoots, ModelStore, RowOutline, StoreRows,
    TableLoad,
};
use crate::ordered_work::{in_order, usual_threads};
use crate::progress::Progress;

/// Batches that wait to be added to the sums.
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
        let head = DirectoryHead {
            rows: 0,
            roots: ListRoots::empty(),
        };
        let load = RowLoad::beside(path);
        Ok(Self {
            draft,
            file,
            salt: FileSalt::draw()?,
            head,
            load,
            span: 0,
        })
    }
}

/// Where the rows of a streamed fit go.
pub(super) struct StreamTarget<'a> {
    pub(super) path: &'a Path,
    pub(super) key: Option<&'a DataKey>,
    pub(super) replaced: &'a ReplacedModel,
}

/// Whether a fit of this request can see its rows batch by batch. It cannot where the sums alone
/// are too much, and says so.
pub(super) fn is_possible(request: &FitRequest, observed: &ObservedColumns) -> Result<bool> {
    let ObservedColumns {
        blueprint, encoder, ..
    } = observed;
    let recipe = recipe::recipe(request, blueprint, encoder.as_ref())?.for_single_change();
    // Mean targets and components follow from all rows, not from what the first pass keeps.
    let components = matches!(request.steps.expansion, FeatureExpansion::Components { .. });
    let needs_rows = components || request.steps.target_means.is_some();
    let weighs = request.choose_penalty || request.class_weight.is_some();
    let by_passes = recipe.bytes_by_passes(blueprint.width, blueprint.outputs());
    let sums = match recipe.in_batches(1) {
        Some(_) => Some(bytes_of_sums(blueprint) as u64),
        None => by_passes,
    };
    let Some(sums) = sums.filter(|_| !needs_rows && !weighs) else {
        return Ok(false);
    };
    let limit = request.source.limits().sums;
    if sums > limit {
        return Err(Error::request(
            format!(
                "the sums of {} features take {sums} bytes of memory, more than the {limit} that are allowed, however few rows are in \
                 memory",
                blueprint.width
            ),
            "use fewer features, or raise the limit on memory",
        ));
    }
    Ok(true)
}

/// The sums of most models are two matrices.
fn bytes_of_sums(blueprint: &Blueprint) -> usize {
    blueprint
        .width
        .saturating_mul(blueprint.width)
        .saturating_mul(16)
}

/// Rows that are in the file of a model, and what was made of them on the way.
pub(super) struct WrittenRows {
    draft: RowDraft,
    /// None where the model is made by passes over the rows in the file.
    fit: Option<Box<dyn BatchedFit>>,
    blueprint: Blueprint,
}

/// A batch whose rows have their numbers.
struct NumberedBatch {
    /// The rows as the model sees them, where they are added to sums.
    rows: Option<Rows>,
    new: NewRows,
}

/// Writes all rows into a new file and adds them to the sums of the model.
pub(super) fn write(
    request: &FitRequest,
    observed: &ObservedColumns,
    target: &StreamTarget<'_>,
    mut batches: impl Iterator<Item = RowBatch> + Send,
    progress: &dyn Progress,
) -> Result<WrittenRows> {
    let encoder = observed.encoder.as_ref();
    let mut blueprint = observed.blueprint.clone();
    let single = recipe::recipe(request, &blueprint, encoder)?.for_single_change();
    // How many rows there are is not known yet. They are many, which is all that the choice of a
    // form asks.
    let mut fit = single.in_batches(usize::MAX);
    let has_sums = fit.is_some();
    let mut made = RowDraft::empty(target.path, bytes_of_sums(&blueprint), target.key)?;
    let salt = made.salt;
    let shape = blueprint.shape();
    let outputs = blueprint.outputs();
    let fixed = blueprint.clone();
    let bytes = request.source.progress();
    start_pass(progress, "reading and writing rows", bytes.as_ref());
    let mut load = RowLoad::beside(target.path);
    let mut count = 0;
    let mut span = 0;
    let mut next_row = 0;
    // Numbers follow from the order of the rows, and are part of what is hashed.
    let mut number = |mut batch: RowBatch| -> (RowBatch, u64) {
        batch.number(0);
        let first = next_row;
        next_row += batch.len() as u64;
        (batch, first)
    };
    let encode = |(mut batch, first): (RowBatch, u64)| -> Result<(NumberedBatch, EncodedRows)> {
        let lines = std::mem::take(&mut batch.lines);
        let count = lines.len();
        let numbers = (first..).take(count).map(RowId).collect();
        let (rows, names) = batch.into_rows(numbers, outputs)?;
        let new = NewRows {
            rows,
            words: Vec::new(),
            names,
            lines,
        };
        let at_path = |fault: FileFault| fault.at(target.path);
        let encoded = new.encode(0..count, shape, salt, first).map_err(at_path)?;
        let rows = if has_sums {
            Some(features(&new.rows, encoder, &fixed)?.into_owned())
        } else {
            None
        };
        Ok((NumberedBatch { rows, new }, encoded))
    };
    let written = std::thread::scope(
        |scope| -> Result<(DirectoryHead, Option<Box<dyn BatchedFit>>)> {
            let (to_sums, summands) = sync_channel::<Rows>(WAITING);
            let sums = scope.spawn(move || {
                let mut add = |rows: Rows| fit.as_mut().map_or(Ok(()), |fit| fit.add(&rows));
                let added = summands.iter().try_for_each(&mut add);
                added.map(|()| fit)
            });
            let written = made.file.with(|connection| {
                let mut tables = TableLoad::begin(connection, made.file.path())?;
                let done = in_order(
                    usual_threads(),
                    || batches.next().map(&mut number),
                    encode,
                    |encoded| {
                        let (batch, encoded) = encoded?;
                        target.replaced.check(&batch.new.names)?;
                        span = batch.new.names.span;
                        batch
                            .new
                            .rows
                            .iter()
                            .for_each(|row| blueprint.count(row.targets, true));
                        let written = encoded.write(&mut tables, &mut load);
                        written.map_err(|fault| fault.at(target.path))?;
                        count += batch.new.names.ids.len() as u64;
                        if let Some(rows) = batch.rows {
                            // Where the sums have failed, they say why.
                            let _ = to_sums.send(rows);
                        }
                        let done = bytes.as_ref().map_or(count, PassProgress::bytes_read);
                        progress.at(done);
                        Ok::<(), Error>(())
                    },
                );
                Ok(match done {
                    Ok(()) => Ok(tables.finish()?),
                    Err(error) => Err(error),
                })
            });
            drop(to_sums);
            match sums.join() {
                Ok(fit) => Ok((written??, fit?)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        },
    );
    let (head, fit) = written?;
    made.head = head;
    made.load = load;
    made.span = span;
    progress.finish();
    if made.head.rows == 0 {
        return Err(request.source.no_rows());
    }
    Ok(WrittenRows {
        draft: made,
        fit,
        blueprint,
    })
}

/// The model of the rows that were written.
pub(super) fn finish(
    request: &FitRequest,
    observed: ObservedColumns,
    written: WrittenRows,
    progress: &dyn Progress,
) -> Result<(PreparedModel, RowDraft)> {
    let WrittenRows {
        draft,
        fit,
        blueprint,
    } = written;
    let ObservedColumns {
        encoder,
        mut remarks,
        ..
    } = observed;
    let recipe = recipe::recipe(request, &blueprint, encoder.as_ref())?;
    progress.start("fitting", None);
    let model: Model = match fit {
        Some(fit) => fit.finish()?,
        None => {
            draft.file.set_memory(request.source.limits().memory);
            let outline = RowOutline {
                shape: blueprint.shape(),
                rows: draft.head.rows,
                weighted: blueprint.weight.is_some(),
                roots: draft.head.roots,
                hidden: BTreeMap::new(),
            };
            let stored = StoreRows::by_passes(&draft.file, outline);
            let rows = FeatureRows::new(stored, encoder.as_ref(), &blueprint);
            watched_fit::fit(
                &recipe.for_single_change(),
                &rows,
                None,
                "fitting",
                progress,
            )?
        }
    };
    let batches = format!(
        "the rows were read in batches, because all {} of them would not fit into the memory that is allowed; no \
         leave-one-out score was made",
        draft.head.rows
    );
    remarks.push(batches.into());
    let prepared = PreparedModel::without_rows(blueprint, encoder, recipe, model, remarks)?;
    Ok((prepared, draft))
}
