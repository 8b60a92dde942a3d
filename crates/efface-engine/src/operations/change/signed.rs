//! The last phase of a change: the receipts are in the log, and the manifest is written. What is
//! left is to commit.

use efface::Model;
use efface_receipt::{Hash, ReceiptSigner, SignedReceipt};

use super::opened::OpenedChange;
use super::report::receipt_place;
use crate::error::{Error, Result};
use crate::ledger::requests::{self, AnsweredRequest};
use crate::ledger::{ModelTransition, ReceiptDraft, ReceiptLog, TrustedTree, checkpoint, newest};
use crate::operations::report::ReceiptPlace;

/// A change that is written and signed. It is undone unless it is committed.
pub(crate) struct SignedChange<'a> {
    opened: OpenedChange<'a>,
    receipts: Vec<SignedReceipt>,
    /// The root of the log before this change.
    old_root: Hash,
    /// The new model; None where the change left it as it was.
    new_model: Option<Model>,
    /// The key that signs the head of the log.
    signer: &'a dyn ReceiptSigner,
}

impl<'a> SignedChange<'a> {
    pub(super) fn new(
        mut opened: OpenedChange<'a>,
        signer: &'a dyn ReceiptSigner,
        transition: &ModelTransition,
        drafts: Vec<ReceiptDraft>,
        new_model: Option<Model>,
    ) -> Result<Self> {
        let old_root = opened.manifest.ledger.root;
        let store = opened.store();
        let manifest = &mut opened.manifest;
        let receipts = store.with(|connection| {
            ReceiptLog(connection).append(&mut manifest.ledger, signer, transition, drafts)
        })?;
        Ok(Self {
            opened,
            receipts,
            old_root,
            new_model,
            signer,
        })
    }

    /// The receipts, in the order of their drafts.
    pub(crate) fn receipts(&self) -> &[SignedReceipt] {
        &self.receipts
    }

    /// Keeps the answers to named requests, each under the commitment to its name.
    pub(crate) fn record_answers(
        &mut self,
        answers: &[(Hash, AnsweredRequest)],
        known: TrustedTree,
    ) -> Result<()> {
        let store = self.opened.store();
        let ledger = &mut self.opened.manifest.ledger;
        store.with(|connection| requests::record(connection, ledger, answers, known))
    }

    /// Another key signs the head of the log from here on. The last receipt says so.
    pub(crate) fn hand_over(
        mut self,
        next: &'a dyn ReceiptSigner,
        recovery: Option<String>,
    ) -> Self {
        let manifest = &mut self.opened.manifest;
        manifest
            .ledger
            .rotations
            .extend(self.receipts.last().map(|signed| signed.receipt.sequence));
        manifest.ledger.key = next.public_key().to_string();
        manifest.ledger.recovery = recovery;
        self.signer = next;
        self
    }

    /// Signs manifest and log, makes the change last, and keeps the model for the next change.
    /// Gives the receipts.
    pub(crate) fn commit(self) -> Result<Vec<SignedReceipt>> {
        let opened = &self.opened;
        let note = opened.store().with(|connection| {
            opened.manifest.seal(connection, self.signer)?;
            checkpoint(connection)
        })?;
        #[cfg(test)]
        super::tests::interrupt(self.opened.store())?;
        let OpenedChange {
            model,
            transaction,
            manifest,
            encoder,
            ..
        } = self.opened;
        let held = transaction.commit()?;
        newest::keep(model.store.path(), &note);
        match self.new_model {
            Some(new) => model.remember(manifest.ledger.root, new),
            None => model.move_root(&self.old_root, manifest.ledger.root),
        }
        if let (Some(_), Some(encoder)) = (&manifest.waiting, encoder) {
            model.keep_encoder(manifest.ledger.root, encoder);
        }
        // The receipts say that bytes are gone. Where rows still wait, the settle that scrubs them
        // does this for all.
        if manifest.waiting.is_none() {
            held.clear_journal()?;
        }
        Ok(self.receipts)
    }

    /// Commits, and gives the place of the last receipt.
    pub(crate) fn commit_last(self) -> Result<ReceiptPlace> {
        let path = self.opened.store().path().to_owned();
        let receipts = self.commit()?;
        let lost = || Error::Damaged {
            path,
            what: "its log took no receipt".into(),
        };
        receipts.last().map(receipt_place).ok_or_else(lost)
    }
}

impl<'a> OpenedChange<'a> {
    /// Signs receipts for something that leaves the model as it is.
    pub(crate) fn sign(
        self,
        signer: &'a dyn ReceiptSigner,
        transition: &ModelTransition,
        drafts: Vec<ReceiptDraft>,
    ) -> Result<SignedChange<'a>> {
        SignedChange::new(self, signer, transition, drafts, None)
    }
}
