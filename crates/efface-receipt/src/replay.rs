//! Reading a whole log from its first receipt: every signature, every place, every hand-over of
//! keys, and that each receipt starts from the model that the one before it left, at no earlier
//! time.
//!
//! A log is read once, a receipt at a time. What is remembered is the edge of the tree and the
//! group of receipts that are being read: those that were written together on one head.

use crate::{
    fault::ReceiptFault,
    hash::{Hash, leaf_hash},
    keyring::KeyRing,
    log::Frontier,
    note::LogCheckpoint,
    receipt::{LogHead, Receipt, RequestKind, RequestOutcome, SettledRun, StateChange},
    signature::{KeyId, PublicKey},
    statement::SignedReceipt,
    time::Time,
    training_set::SetState,
};

/// Receipts that were written together: one change of the model, one head before them.
#[derive(Debug, Clone, Default)]
struct ReceiptGroup {
    /// The head that they were written on; None for the first receipt of the log.
    previous: Option<LogHead>,
    /// The training set's size before and after the one change of the group; None while no receipt
    /// has changed it.
    sizes: Option<(u64, u64)>,
    /// Rows that the receipts of the group added and removed so far.
    added: u64,
    removed: u64,
}

impl ReceiptGroup {
    fn on(previous: Option<LogHead>) -> ReceiptGroup {
        ReceiptGroup {
            previous,
            ..ReceiptGroup::default()
        }
    }

    /// Counts the rows of one more receipt.
    fn count(&mut self, receipt: &Receipt) {
        self.added = self.added.saturating_add(receipt.rows.added);
        self.removed = self.removed.saturating_add(receipt.rows.removed);
        if receipt.rows.added > 0 || receipt.rows.removed > 0 {
            let before = receipt.training_set.before.map_or(0, |state| state.count);
            self.sizes = Some((before, receipt.training_set.after.count));
        }
    }

    /// The receipts of the group account for every row by which the training set grew or shrank.
    fn is_balanced(&self) -> bool {
        self.sizes.is_none_or(|(before, after)| {
            before
                .checked_add(self.added)
                .and_then(|sum| sum.checked_sub(self.removed))
                == Some(after)
        })
    }
}

/// A log being read.
#[derive(Debug, Clone)]
pub struct LogReplay {
    /// The keys that the reader trusts.
    trusted: KeyRing,
    /// The keys of the log, as it tells them itself from its first receipt on.
    keys: KeyRing,
    /// Whether a trusted key signed something. The receipts before it are vouched for because each
    /// names the head that it was written on, those after it because keys hand over to each other.
    vouched: bool,
    frontier: Frontier,
    origin: Option<String>,
    last: Option<(StateChange<SetState>, StateChange<Hash>)>,
    group: ReceiptGroup,
    /// When the last request was taken.
    received_at: Option<Time>,
    /// The first and the last receipt whose rows are forgotten and not yet scrubbed.
    waiting: Option<SettledRun>,
}

impl LogReplay {
    /// Starts with the keys that are trusted.
    pub fn new(keys: &KeyRing) -> LogReplay {
        let frontier = Frontier::default();
        LogReplay {
            trusted: keys.clone(),
            keys: KeyRing::default(),
            vouched: false,
            frontier,
            origin: None,
            last: None,
            group: ReceiptGroup::default(),
            received_at: None,
            waiting: None,
        }
    }

    /// Reads the next receipt.
    pub fn push(&mut self, bytes: &[u8]) -> Result<SignedReceipt, ReceiptFault> {
        let signed = SignedReceipt::parse(bytes)?;
        let receipt = &signed.receipt;
        receipt.check()?;
        if self.frontier.size() == 0
            && let Some(keys) = &receipt.keys
        {
            // The first receipt says by which key it is signed. Whether that is a key to trust, the
            // reader's keys decide.
            self.keys = KeyRing::from(PublicKey::parse(&keys.by)?);
        }
        if receipt.kind == RequestKind::KeyRotation && receipt.outcome == RequestOutcome::Done {
            self.keys.follow(&signed)?;
        }
        let signer = signed.verify(&self.keys)?.clone();
        self.check_trust(&signer, receipt.sequence)?;
        let sequence = receipt.sequence;
        if sequence != self.frontier.size() {
            return Err(ReceiptFault::Sequence {
                stated: sequence,
                proven: self.frontier.size(),
            });
        }
        if let Some(origin) = &self.origin
            && *origin != receipt.origin
        {
            return Err(ReceiptFault::Origin {
                receipt: receipt.origin.clone(),
                checkpoint: origin.clone(),
            });
        }
        self.origin = Some(receipt.origin.clone());
        // A receipt continues the group that is being read, or begins one on the head of all
        // receipts before it.
        if receipt.previous.is_some() && receipt.previous != self.group.previous {
            self.finish_group()?;
            if receipt.previous != Some(self.frontier.head()) {
                return Err(ReceiptFault::Previous { sequence });
            }
            self.group = ReceiptGroup::on(receipt.previous);
        }
        self.group.count(receipt);
        let change = (receipt.training_set, receipt.parameters);
        match &self.last {
            None if change.0.before.is_some() || change.1.before.is_some() => {
                return Err(ReceiptFault::Chain {
                    sequence,
                    what: "the log does not start with a fit",
                });
            }
            None => {}
            Some((set, parameters)) => {
                if !follows(set, &change.0) {
                    return Err(ReceiptFault::Chain {
                        sequence,
                        what: "the training set",
                    });
                }
                if !follows(parameters, &change.1) {
                    return Err(ReceiptFault::Chain {
                        sequence,
                        what: "the parameters",
                    });
                }
            }
        }
        self.last = Some(change);
        if self.received_at > Some(receipt.times.received_at) {
            return Err(ReceiptFault::Chain {
                sequence,
                what: "the time",
            });
        }
        self.received_at = Some(receipt.times.received_at);
        self.scrub(receipt)?;
        if receipt.kind == RequestKind::Fit {
            self.keys.follow(&signed)?;
        }
        self.frontier.append(&leaf_hash(bytes));
        Ok(signed)
    }

    /// A key that the reader trusts vouches for what it signs, as far as the reader trusts it.
    fn check_trust(&mut self, signer: &PublicKey, sequence: u64) -> Result<(), ReceiptFault> {
        if self.trusted.get(signer).is_some() {
            self.trusted.active(signer.name(), signer.id(), sequence)?;
            self.vouched = true;
        }
        Ok(())
    }

    fn finish_group(&self) -> Result<(), ReceiptFault> {
        if self.group.is_balanced() {
            return Ok(());
        }
        let sequence = self.frontier.size().saturating_sub(1);
        Err(ReceiptFault::Chain {
            sequence,
            what: "the rows of receipts written together",
        })
    }

    /// A settle scrubs all rows that wait, and none that do not.
    fn scrub(&mut self, receipt: &Receipt) -> Result<(), ReceiptFault> {
        let sequence = receipt.sequence;
        let settle = receipt.kind == RequestKind::Settle && receipt.outcome == RequestOutcome::Done;
        if (settle || receipt.settles.is_some()) && receipt.settles != self.waiting.take() {
            return Err(ReceiptFault::Chain {
                sequence,
                what: "the rows that wait to be scrubbed",
            });
        }
        if receipt.times.forgotten_at.is_some() && receipt.times.scrubbed_at.is_none() {
            let first = self.waiting.map_or(sequence, |run| run.first);
            self.waiting = Some(SettledRun {
                first,
                last: sequence,
            });
        }
        Ok(())
    }

    /// The first and the last receipt whose rows are forgotten and not yet scrubbed; None when none
    /// wait.
    pub fn waiting(&self) -> Option<SettledRun> {
        self.waiting
    }

    /// Checks that what was read is the log that a checkpoint signs.
    pub fn finish(&mut self, note: &str) -> Result<LogCheckpoint, ReceiptFault> {
        self.finish_group()?;
        let checkpoint = LogCheckpoint::verify(note, &self.keys)?;
        let signing = self
            .keys
            .keys()
            .filter(|key| key.last.is_none())
            .map(|key| key.key.clone());
        for key in signing.collect::<Vec<_>>() {
            self.check_trust(&key, checkpoint.size)?;
        }
        if !self.vouched {
            let id = self
                .keys
                .keys()
                .next()
                .map_or(KeyId([0; 4]), |first| first.key.id());
            return Err(ReceiptFault::UnknownKey {
                name: checkpoint.origin,
                id,
            });
        }
        if let Some(origin) = &self.origin
            && *origin != checkpoint.origin
        {
            return Err(ReceiptFault::Origin {
                receipt: origin.clone(),
                checkpoint: checkpoint.origin,
            });
        }
        let head = self.frontier.head();
        if checkpoint.size != head.size {
            return Err(ReceiptFault::ProofSize {
                proof: head.size,
                checkpoint: checkpoint.size,
            });
        }
        if checkpoint.root != head.root {
            return Err(ReceiptFault::Fork {
                size: head.size,
                first: head.root,
                second: checkpoint.root,
            });
        }
        Ok(checkpoint)
    }

    /// The keys that are trusted by now, rotations included.
    pub fn keys(&self) -> &KeyRing {
        &self.keys
    }

    /// The edge of what was read.
    pub fn frontier(&self) -> &Frontier {
        &self.frontier
    }
}

/// A change follows another when it starts where that ended, or when both are the one change of a
/// group of requests that were applied together.
fn follows<T: PartialEq>(last: &StateChange<T>, next: &StateChange<T>) -> bool {
    next.before.as_ref() == Some(&last.after) || (next == last && next.before.is_some())
}
