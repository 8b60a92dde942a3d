//! An open model file, as every operation works on it: the connection, and the model that the last
//! change left in memory.

use efface::Model;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use efface::features::Encoder;
use efface_receipt::Hash;

use super::seen_receipts::SeenReceipts;
use crate::codec::manifest::Manifest;
use crate::codec::model;
use crate::codec::text_encoder::{self, TextEncoder};
use crate::error::{Error, Result};
use crate::file::{self, FileFault, ModelStore, outputs, paths};
use crate::ledger::signer::KeyAccess;
use crate::ledger::{LedgerHead, newest};

/// A model file that is open.
pub(crate) struct OpenModel {
    pub(crate) store: ModelStore,
    /// The model as the last change of this process left it, with the root of the log after that
    /// change. If another process has changed the file since, the root in the file differs, and the
    /// model is read again.
    last: Mutex<Option<(Hash, Arc<Model>)>>,
    /// What makes features of cells, under the root of the log that it was read at. Rows that wait
    /// to be scrubbed must be read for it, which questions that follow a change need not repeat.
    read_encoder: Mutex<Option<(Hash, Encoder)>>,
    seen_receipts: Mutex<SeenReceipts>,
    /// Where a pretrained encoder is, if not where it was at the fit.
    encoder_folder: Option<PathBuf>,
    /// How to come to the keys.
    pub(crate) access: KeyAccess,
}

/// What a model file says of itself inside one transaction.
pub(crate) struct ModelSnapshot {
    pub(crate) manifest: Manifest,
    pub(crate) encoder: Option<Encoder>,
}

impl OpenModel {
    pub(crate) fn open(path: &Path, write: bool, patience: Duration) -> Result<Self> {
        // Drafts that a killed process left hold rows and keys, which no forget reaches.
        if let Ok(path) = paths::resolve(path) {
            outputs::sweep(&paths::folder_of(&path));
        }
        Self::of(ModelStore::open(path, write, patience)?)
    }

    /// A file that is open already.
    pub(crate) fn of(store: ModelStore) -> Result<Self> {
        // A file that cannot be read is better found out now than in the middle of a change.
        store.read(Manifest::load)?;
        let mut model = Self {
            store,
            last: Mutex::new(None),
            read_encoder: Mutex::new(None),
            seen_receipts: Mutex::default(),
            encoder_folder: None,
            access: KeyAccess::default(),
        };
        model.set_access(KeyAccess::default());
        Ok(model)
    }

    /// Says how to come to the keys. Where that of an encrypted file cannot be had, whatever needs
    /// its rows says so.
    pub(crate) fn set_access(&mut self, access: KeyAccess) {
        self.access = access;
        self.store.unlock(|check| {
            self.access
                .file(self.store.path())
                .data_key(check)
                .ok()
                .flatten()
        });
    }

    pub(crate) fn set_encoder_folder(&mut self, folder: &Path) {
        self.encoder_folder = Some(folder.to_owned());
    }

    /// The model that was left in memory when the log had this root; None when there is none.
    pub(crate) fn remembered(&self, root: &Hash) -> Option<Arc<Model>> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref()
            .filter(|(of, _)| of == root)
            .map(|(_, model)| model.clone())
    }

    /// Keeps a model for the next change.
    pub(crate) fn remember(&self, root: Hash, model: Model) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((root, Arc::new(model)));
    }

    /// Keeps the model in memory under another root: the log grew from `old` to `new`, and the
    /// model stayed the same.
    pub(crate) fn move_root(&self, old: &Hash, new: Hash) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((root, _)) = last.as_mut().filter(|(root, _)| root == old) {
            *root = new;
        }
    }

    /// The manifest, and the encoder of columns, which is read where the log has grown since it
    /// was. The caller holds a transaction.
    pub(crate) fn snapshot(&self) -> Result<ModelSnapshot> {
        let manifest = self.store.with(Manifest::load)?;
        match self.known_encoder(&manifest.ledger.root) {
            Some(encoder) => Ok(ModelSnapshot {
                manifest,
                encoder: Some(encoder),
            }),
            None => self.read_snapshot(),
        }
    }

    fn known_encoder(&self, root: &Hash) -> Option<Encoder> {
        let known = self
            .read_encoder
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        known
            .as_ref()
            .filter(|(of, _)| of == root)
            .map(|(_, encoder)| encoder.clone())
    }

    /// The manifest and the encoder of columns as the file has them, whatever is known. The caller
    /// holds a transaction.
    pub(crate) fn read_snapshot(&self) -> Result<ModelSnapshot> {
        let snapshot = self.store.with(|connection| {
            let manifest = Manifest::load(connection)?;
            let mut encoder = match model::encoder(connection, &manifest) {
                // The log can be read without the key of the rows.
                Err(FileFault::Sealed) => None,
                encoder => encoder?,
            };
            if let (Some(encoder), Some(_)) = (&mut encoder, &manifest.waiting) {
                for (_, row) in file::rows::waiting(connection, &manifest.outline())? {
                    encoder.forget_row(&row.features.as_ref().entries(), &row.targets);
                }
            }
            Ok(ModelSnapshot { manifest, encoder })
        })?;
        let root = snapshot.manifest.ledger.root;
        let read = snapshot.encoder.clone().map(|encoder| (root, encoder));
        *self
            .read_encoder
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = read;
        Ok(snapshot)
    }

    /// Keeps what makes features of cells for whoever reads the log at this root. Where rows wait
    /// to be scrubbed, the file has it as it was before they left, and all of them would have to be
    /// read for it.
    pub(crate) fn keep_encoder(&self, root: Hash, encoder: Encoder) {
        *self
            .read_encoder
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some((root, encoder));
    }

    /// Which receipts were looked at.
    pub(crate) fn seen_receipts(&self) -> MutexGuard<'_, SeenReceipts> {
        self.seen_receipts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses a file that is older than its log was when it was last changed here. The caller
    /// holds a transaction.
    pub(crate) fn check_rollback(&self, ledger: &LedgerHead) -> Result<()> {
        let path = self.store.path();
        match self
            .store
            .with(|connection| newest::rollback(connection, ledger, path))?
        {
            Some(what) => Err(Error::Damaged {
                path: path.to_owned(),
                what,
            }),
            None => Ok(()),
        }
    }

    /// The encoder that texts go through; None for a model that is no network.
    pub(crate) fn text_encoder(&self, manifest: &Manifest) -> Result<Option<TextEncoder>> {
        text_encoder::open(&self.store, manifest, self.encoder_folder.as_deref())
    }
}
