//! The first phase of a change: the file is held, and the model is as the last change left it.

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Instant;

use efface::features::{Encoder, KeptSums};
use efface::{Model, NotCovered, RowId, Rows};
use efface_receipt::{CommitmentSalt, ReceiptSigner, Time};

use crate::clock;
use crate::codec::manifest::Manifest;
use crate::codec::model;
use crate::codec::text_encoder::TextEncoder;
use crate::error::{Error, Result};
use crate::file::{FileFault, ModelStore, RowDirectory, StoreRows, StoreTransaction};
use crate::ledger::suppression::{SuppressedName, SuppressionList};
use crate::ledger::{ModelTransition, founding};
use crate::operations::ingest::{self, ReadPurpose, RowBatch, RowNames, RowReader};
use crate::operations::open_model::{ModelSnapshot, OpenModel};
use crate::operations::row_source::RowSource;
use crate::progress::Progress;

/// New rows as the model reads them.
pub(crate) struct ArrivingRows {
    pub(crate) rows: Rows,
    pub(crate) names: RowNames,
    /// The words of each row, where they are kept beside its features.
    pub(crate) words: Vec<Vec<u32>>,
    /// Words and levels of the rows that the model has no feature for.
    pub(crate) unknown: u64,
}

impl ArrivingRows {
    /// Returns the ids of all words of the rows, where the model reads texts through a network.
    pub(super) fn word_ids(&self) -> impl Iterator<Item = u32> {
        let read = self
            .rows
            .iter()
            .flat_map(|row| row.features.word_ids().unwrap_or_default());
        self.words.iter().flatten().chain(read).copied()
    }
}

/// A change that has begun. Nothing is computed and nothing is written yet.
pub(crate) struct OpenedChange<'a> {
    pub(crate) model: &'a OpenModel,
    pub(super) transaction: StoreTransaction<'a>,
    pub(crate) started: Instant,
    pub(crate) received_at: Time,
    pub(crate) manifest: Manifest,
    pub(crate) encoder: Option<Encoder>,
    /// The encoder as it is after the change, where rows had to be read for it.
    pub(super) renewed: Option<Encoder>,
    /// Sums beside the model as they are after the change. Where none are put down here, the file
    /// keeps none.
    pub(super) sums: Option<KeptSums>,
    /// Whether it may write; if not, it is a dry run or an audit.
    pub(super) writes: bool,
    names: OnceCell<CommitmentSalt>,
}

impl<'a> OpenedChange<'a> {
    /// Begins a transaction. One that does not `write` is for dry runs and audits, which only read.
    pub(crate) fn begin(model: &'a OpenModel, write: bool) -> Result<Self> {
        let transaction = model.store.begin(write)?;
        let started = Instant::now();
        let ModelSnapshot {
            mut manifest,
            encoder,
        } = model.snapshot()?;
        if write {
            model.check_rollback(&manifest.ledger)?;
        }
        let received_at = manifest.ledger.now();
        let names = OnceCell::new();
        Ok(Self {
            model,
            transaction,
            started,
            received_at,
            manifest,
            encoder,
            renewed: None,
            sums: None,
            writes: write,
            names,
        })
    }

    pub(crate) fn store(&self) -> &'a ModelStore {
        &self.model.store
    }

    /// The key that signs the receipts of this change. It is asked for before any work, so that a
    /// missing key is found out before a network is trained.
    pub(crate) fn signing_key(&self) -> Result<Box<dyn ReceiptSigner>> {
        self.model
            .access
            .signer(self.store().path(), &self.manifest.ledger.key)
    }

    /// The model, ready to change: the one that the last change left in memory, or else from the
    /// file.
    pub(crate) fn current_model(&self) -> Result<Arc<Model>> {
        match self.model.remembered(&self.manifest.ledger.root) {
            Some(model) => Ok(model),
            None => Ok(Arc::new(model::load(self.store(), &self.manifest)?)),
        }
    }

    pub(crate) fn rows(&self) -> StoreRows<'a> {
        StoreRows::new(self.store(), self.manifest.outline())
    }

    /// Asks the list of rows.
    pub(crate) fn directory<T>(
        &self,
        ask: impl FnOnce(&RowDirectory<'_>) -> std::result::Result<T, FileFault>,
    ) -> Result<T> {
        self.store()
            .with(|connection| ask(&self.manifest.directory(connection)))
    }

    /// For each id, whether a row of it is in the model.
    pub(crate) fn are_here(&self, ids: &[String]) -> Result<Vec<bool>> {
        let found = self.directory(|directory| directory.find(ids))?;
        Ok(found.iter().map(Option::is_some).collect())
    }

    /// The id of a row; None when it is not in the file.
    pub(crate) fn id_of(&self, row: RowId) -> Result<Option<String>> {
        let stored = self
            .rows()
            .read(row.0)
            .map_err(|fault| fault.at(self.store().path()))?;
        Ok(stored.map(|stored| stored.id))
    }

    /// What a forget cannot take out of the model as it is, or out of its file.
    pub(crate) fn left_behind(&self) -> Result<Vec<NotCovered>> {
        let read_off = self
            .store()
            .with(|connection| model::read_off_rows(connection, &self.manifest))?;
        Ok(model::left_behind(
            &self.manifest,
            self.encoder.as_ref(),
            read_off,
        ))
    }

    /// The numbers of the rows of these ids, all of which must be in the model.
    pub(crate) fn find(&self, ids: &[String]) -> Result<Vec<RowId>> {
        let found = self.directory(|directory| directory.find(ids))?;
        let mut rows = Vec::with_capacity(ids.len());
        for (id, row) in ids.iter().zip(found) {
            let Some(row) = row else {
                return Err(self.absent(id)?);
            };
            rows.push(RowId(row));
        }
        Ok(rows)
    }

    /// The error that says why a row is not in the model.
    pub(crate) fn absent(&self, id: &str) -> Result<Error> {
        let id = id.to_owned();
        // Without the secret beside the model nobody knows which ids were forgotten.
        let known = match self.forgotten_at(&id) {
            Err(Error::Key { .. } | Error::NoiseSeed { .. } | Error::Io { .. }) => None,
            known => known?,
        };
        Ok(match known {
            Some(at) => Error::WasForgotten {
                id,
                on: clock::date(&at).into(),
            },
            None => {
                let by_position = self.manifest.blueprint.id.is_none();
                Error::UnknownRow {
                    id,
                    positions: by_position.then_some(self.manifest.next_position),
                }
            }
        })
    }

    /// When the row of an id was forgotten, if it was.
    pub(crate) fn forgotten_at(&self, id: &str) -> Result<Option<String>> {
        let name = SuppressedName::id(self.names()?, id);
        self.store().with(|connection| {
            SuppressionList::look_up(connection, &self.manifest.ledger, [&name])?.since(&name)
        })
    }

    /// The secret of the commitments to names, which lies beside the model.
    pub(crate) fn names(&self) -> Result<&CommitmentSalt> {
        if let Some(names) = self.names.get() {
            return Ok(names);
        }
        let names =
            founding::noise_seed(self.store(), &self.manifest.ledger, &self.model.access)?.names();
        Ok(self.names.get_or_init(|| names))
    }

    /// The encoder that texts go through; None for a model that is no network.
    pub(crate) fn text_encoder(&self) -> Result<Option<TextEncoder>> {
        self.model.text_encoder(&self.manifest)
    }

    /// Reads rows for this model into memory.
    pub(crate) fn gather(
        &self,
        source: &RowSource,
        texts: Option<&TextEncoder>,
        progress: &dyn Progress,
    ) -> Result<RowBatch> {
        let reader = RowReader::new(texts, self.encoder.as_ref());
        let limit = source.limits().memory;
        ingest::gather(
            source,
            &self.manifest.blueprint,
            reader,
            ReadPurpose::Learn,
            limit,
            progress,
        )
    }

    /// Rows under these numbers, as the model reads them.
    pub(crate) fn encoded(
        &self,
        batch: RowBatch,
        numbers: Vec<RowId>,
        texts: Option<&TextEncoder>,
        progress: &dyn Progress,
    ) -> Result<ArrivingRows> {
        let unknown = batch.unknown;
        let (mut rows, names) = batch.into_rows(numbers, self.manifest.blueprint.outputs())?;
        let mut words = Vec::new();
        if let Some(texts) = texts {
            (rows, words) = texts.rows(&rows, progress)?;
        }
        Ok(ArrivingRows {
            rows,
            names,
            words,
            unknown,
        })
    }

    /// What a receipt says of the model's states where a change leaves them as they are.
    pub(crate) fn unchanged(&self) -> ModelTransition {
        let now = self.manifest.state();
        ModelTransition {
            before: Some(now),
            after: now,
            copies: Vec::new(),
        }
    }

    /// Gives the rows and classes in an error the names that the user knows them by.
    pub(crate) fn name_rows(&self, error: Error) -> Error {
        let path = || self.store().path().to_owned();
        let id = |row: RowId| match self.rows().read(row.0) {
            Ok(Some(stored)) => stored.id,
            _ => format!("number {row}"),
        };
        match error {
            // The number comes from the list of rows, so that a row which is not there was lost
            // from the file.
            Error::Core(efface::Error::UnknownRow(row))
                if matches!(self.rows().read(row.0), Ok(None)) =>
            {
                Error::Damaged {
                    path: path(),
                    what: format!("row number {row} is missing"),
                }
            }
            Error::Core(efface::Error::UnknownRow(row)) => Error::UnknownRow {
                id: id(row),
                positions: None,
            },
            Error::Core(efface::Error::DuplicateRow(row)) => Error::NamedTwice { id: id(row) },
            Error::Core(efface::Error::Damaged(what)) => Error::Damaged { path: path(), what },
            Error::Core(efface::Error::EmptyClass { class, classes }) => {
                let names = self
                    .manifest
                    .blueprint
                    .classes()
                    .map(|classes| classes.names());
                match names.and_then(|names| names.get(class)) {
                    Some(name) => Error::ClassEmptied {
                        class: name.clone(),
                    },
                    None => Error::Core(efface::Error::EmptyClass { class, classes }),
                }
            }
            other => other,
        }
    }
}
