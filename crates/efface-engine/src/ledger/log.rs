//! The log in its tables: receipts as they were signed, the nodes over them, and the signed head.

use efface_receipt::{
    ConsistencyProof, Frontier, Hash, InclusionProof, KeyId, KeyLink, KeyRing, LogCheckpoint,
    LogNodes, PublicKey, ReceiptBundle, ReceiptSigner, Signature, SignedHead, SignedReceipt,
    leaf_hash,
};
use rusqlite::{Connection, OptionalExtension, params};

use super::draft::LogPosition;
use super::{LedgerHead, ModelTransition, ReceiptDraft};
use crate::file::{FileFault, damaged, meta};
use crate::ordered_work::{in_order, usual_threads};

/// So many receipts are signed by one thread before it takes others: fewer are signed before
/// another thread has started.
const STRETCH: usize = 8;

/// The log, to be read or appended to.
pub(crate) struct ReceiptLog<'a>(pub(crate) &'a Connection);

impl LogNodes for ReceiptLog<'_> {
    type Error = FileFault;

    fn node(&self, level: u32, index: u64) -> Result<Hash, FileFault> {
        let sql = r#"SELECT hash FROM "nodes" WHERE level = ?1 AND place = ?2"#;
        let mut statement = self.0.prepare_cached(sql)?;
        match statement
            .query_row(params![level, index], |row| row.get(0))
            .optional()?
        {
            Some(hash) => Ok(Hash(hash)),
            None => damaged("its log lacks a node"),
        }
    }
}

impl ReceiptLog<'_> {
    /// The edge of the log, which must be the one that the manifest knows.
    pub(crate) fn frontier(&self, ledger: &LedgerHead) -> Result<Frontier, FileFault> {
        let frontier = Frontier::load(self, ledger.size)?;
        if frontier.root() == ledger.root {
            Ok(frontier)
        } else {
            damaged("its log does not match its head")
        }
    }

    /// Signs and appends receipts that were written together. [`ReceiptLog::seal`] signs the new
    /// head.
    pub(crate) fn append(
        &self,
        ledger: &mut LedgerHead,
        signer: &dyn ReceiptSigner,
        stage: &ModelTransition,
        entries: Vec<ReceiptDraft>,
    ) -> Result<Vec<SignedReceipt>, FileFault> {
        let mut frontier = self.frontier(ledger)?;
        let previous = (ledger.size > 0).then(|| frontier.head());
        let mut insert = self
            .0
            .prepare_cached(r#"INSERT INTO "receipts" VALUES (?1, ?2)"#)?;
        let mut keep = self
            .0
            .prepare_cached(r#"INSERT INTO "nodes" VALUES (?1, ?2, ?3)"#)?;
        let mut all = Vec::with_capacity(entries.len());
        let key_id = signer.public_key().id();
        let threads = if signer.signs_side_by_side() {
            usual_threads()
        } else {
            1
        };
        let mut sequence = frontier.size();
        let entries_are_few = entries.len() <= STRETCH;
        let mut entries = entries.into_iter();
        let mut next = || {
            let stretch: Vec<ReceiptDraft> = entries.by_ref().take(STRETCH).collect();
            let first = sequence;
            sequence += stretch.len() as u64;
            (!stretch.is_empty()).then_some((first, stretch))
        };
        let head: &LedgerHead = ledger;
        let sign = |(first, stretch): (u64, Vec<ReceiptDraft>)| {
            let signed = (first..).zip(stretch).map(|(sequence, entry)| {
                let receipt = entry.receipt(
                    head,
                    stage,
                    LogPosition {
                        sequence,
                        previous,
                        key_id,
                    },
                )?;
                let (signed, bytes) = SignedReceipt::sign_leaf(receipt, signer)?;
                let leaf = leaf_hash(&bytes);
                Ok((signed, bytes, leaf))
            });
            signed.collect::<Result<Vec<_>, FileFault>>()
        };
        let mut put_down = |stretch: Result<Vec<_>, FileFault>| {
            for (signed, bytes, leaf) in stretch? {
                insert.execute(params![frontier.size(), bytes])?;
                for node in frontier.append(&leaf) {
                    keep.execute(params![node.level, node.index, node.hash.as_bytes()])?;
                }
                all.push(signed);
            }
            Ok::<(), FileFault>(())
        };
        if threads == 1 || entries_are_few {
            while let Some(stretch) = next() {
                put_down(sign(stretch))?;
            }
        } else {
            in_order(threads, next, sign, put_down)?;
        }
        ledger.size = frontier.size();
        ledger.root = frontier.root();
        Ok(all)
    }

    /// Takes over the receipts by which another file of the same log is ahead.
    pub(crate) fn follow(
        &self,
        ledger: &mut LedgerHead,
        newer: &ReceiptLog<'_>,
        to: &LedgerHead,
    ) -> Result<(), FileFault> {
        let mut frontier = self.frontier(ledger)?;
        let mut insert = self
            .0
            .prepare_cached(r#"INSERT INTO "receipts" VALUES (?1, ?2)"#)?;
        let mut keep = self
            .0
            .prepare_cached(r#"INSERT INTO "nodes" VALUES (?1, ?2, ?3)"#)?;
        for sequence in ledger.size..to.size {
            let bytes = leaf(newer.0, sequence)?;
            insert.execute(params![sequence, bytes])?;
            for node in frontier.append(&leaf_hash(&bytes)) {
                keep.execute(params![node.level, node.index, node.hash.as_bytes()])?;
            }
        }
        if frontier.root() != to.root {
            return damaged("its log does not lead to its signed head");
        }
        ledger.size = to.size;
        ledger.root = to.root;
        Ok(())
    }

    /// Signs the head of the log, and with it the hash of the manifest: whatever the manifest names
    /// or holds a hash of is what the key's owner left.
    pub(crate) fn seal(
        &self,
        ledger: &LedgerHead,
        manifest: &Hash,
        signer: &dyn ReceiptSigner,
    ) -> Result<(), FileFault> {
        let mut head = LogCheckpoint::new(&ledger.origin, ledger.size, ledger.root)?;
        head.extensions.push(format!("{STATE}{manifest}"));
        let SignedHead {
            checkpoint,
            key_id,
            signature,
        } = SignedHead::sign(&head, signer)?;
        meta::write(self.0, CHECKPOINT, checkpoint.as_bytes())?;
        meta::write(self.0, HEAD, &[&key_id.0[..], &signature.0].concat())
    }

    /// Whether the signed head is that of this log, and was signed with a manifest of this hash by
    /// the key that the manifest names. A change shows that this is the owner's key: it signs with
    /// the other half of it.
    pub(crate) fn check_seal(&self, ledger: &LedgerHead, manifest: &Hash) -> Result<(), FileFault> {
        let keys = KeyRing::from(PublicKey::parse(&ledger.key)?);
        let head = LogCheckpoint::verify(&checkpoint(self.0)?, &keys)?;
        if head.size != ledger.size || head.root != ledger.root {
            return damaged("its log does not match its signed head");
        }
        if head.extensions == [format!("{STATE}{manifest}")] {
            Ok(())
        } else {
            damaged("its manifest is not the one that was signed")
        }
    }
}

/// The name of the signed head among the small values of a file.
const CHECKPOINT: &str = "checkpoint";

/// The name of its COSE signature: the key's id and the signature.
const HEAD: &str = "head";

/// How the line of a signed head begins that holds the hash of the manifest.
const STATE: &str = "efface state ";

/// The signed head of the log.
pub(crate) fn checkpoint(connection: &Connection) -> Result<String, FileFault> {
    match meta::read(connection, CHECKPOINT)?.map(String::from_utf8) {
        Some(Ok(note)) => Ok(note),
        _ => damaged("its log has no signed head"),
    }
}

/// Puts the same head with further signatures in its place: those of witnesses.
pub(crate) fn keep_cosigned(connection: &Connection, note: &str) -> Result<(), FileFault> {
    meta::write(connection, CHECKPOINT, note.as_bytes())
}

/// The signed head of the log in both of its forms.
pub(crate) fn signed_head(connection: &Connection) -> Result<SignedHead, FileFault> {
    let bytes = meta::read(connection, HEAD)?.unwrap_or_default();
    if let Some((key_id, signature)) = bytes.split_first_chunk::<4>()
        && let Ok(signature) = <[u8; 64]>::try_from(signature)
    {
        let checkpoint = checkpoint(connection)?;
        return Ok(SignedHead {
            checkpoint,
            key_id: KeyId(*key_id),
            signature: Signature(signature),
        });
    }
    damaged("its log has no signed head in COSE")
}

/// A receipt as it was signed.
pub(crate) fn leaf(connection: &Connection, sequence: u64) -> Result<Vec<u8>, FileFault> {
    let mut statement =
        connection.prepare_cached(r#"SELECT bytes FROM "receipts" WHERE sequence = ?1"#)?;
    match statement
        .query_row([sequence], |row| row.get(0))
        .optional()?
    {
        Some(bytes) => Ok(bytes),
        None => damaged(format!("receipt {sequence} is missing from its log")),
    }
}

/// A receipt with all that is needed to check it.
pub(crate) fn bundle(
    connection: &Connection,
    ledger: &LedgerHead,
    sequence: u64,
) -> Result<ReceiptBundle, FileFault> {
    let journal = ReceiptLog(connection);
    let signed = SignedReceipt::parse(&leaf(connection, sequence)?)?;
    let previous = signed.receipt.previous;
    let inclusion = InclusionProof::new(&journal, sequence, ledger.size)?;
    let mut bundle = ReceiptBundle::new(signed, inclusion, signed_head(connection)?);
    bundle.consistency = previous
        .map(|head| ConsistencyProof::new(&journal, head.size, ledger.size))
        .transpose()?;
    // A log whose first key still signs needs no hand-over to be shown, and none that leads to a
    // recovery key.
    let naming = std::iter::once(0).chain(ledger.rotations.iter().copied());
    for sequence in naming.filter(|_| !ledger.rotations.is_empty()) {
        let signed = SignedReceipt::parse(&leaf(connection, sequence)?)?;
        if signed.receipt.keys.is_none() {
            return damaged(format!("receipt {sequence} names no keys"));
        }
        bundle.keys.push(KeyLink {
            signed,
            inclusion: InclusionProof::new(&journal, sequence, ledger.size)?,
        });
    }
    Ok(bundle)
}

/// Proof that the log continues the one of its first `old` receipts.
pub(crate) fn consistency(
    connection: &Connection,
    ledger: &LedgerHead,
    old: u64,
) -> Result<ConsistencyProof, FileFault> {
    ConsistencyProof::new(&ReceiptLog(connection), old, ledger.size)
}
