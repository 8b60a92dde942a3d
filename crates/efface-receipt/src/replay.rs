//! Reading a whole log from its first receipt: every signature, every place, every hand-over of keys, and that each
//! receipt starts from the model that the one before it left, at no earlier time.
//!
//! A log is read once, a receipt at a time. What is remembered is the edge of the tree and the roots since the head
//! that the last receipt was written on, so memory grows with the number of receipts written together, not with the
//! log.

use std::collections::VecDeque;

use crate::{
    fault::ReceiptFault,
    hash::{Hash, leaf_hash},
    log::Frontier,
    note::LogCheckpoint,
    receipt::{LogHead, Receipt, RequestKind, RequestOutcome, SettledRun, StateChange},
    signature::{KeyRing, SignedReceipt},
    time::Time,
    training_set::SetState,
};

/// A log being read.
#[derive(Debug, Clone)]
pub struct LogReplay {
    keys: KeyRing,
    frontier: Frontier,
    heads: VecDeque<LogHead>,
    origin: Option<String>,
    last: Option<(StateChange<SetState>, StateChange<Hash>)>,
    /// When the last request was taken.
    received_at: Option<Time>,
    /// The first and the last receipt whose rows are forgotten and not yet scrubbed.
    waiting: Option<SettledRun>,
}

impl LogReplay {
    /// Starts with the keys that are trusted.
    pub fn new(keys: &KeyRing) -> LogReplay {
        let frontier = Frontier::default();
        let heads = VecDeque::from([frontier.head()]);
        LogReplay {
            keys: keys.clone(),
            frontier,
            heads,
            origin: None,
            last: None,
            received_at: None,
            waiting: None,
        }
    }

    /// Reads the next receipt.
    pub fn push(&mut self, bytes: &[u8]) -> Result<SignedReceipt, ReceiptFault> {
        let signed = SignedReceipt::parse(bytes)?;
        signed.verify(&self.keys)?;
        let receipt = &signed.receipt;
        let sequence = receipt.sequence;
        if sequence != self.frontier.size() {
            return Err(ReceiptFault::Sequence { stated: sequence, proven: self.frontier.size() });
        }
        if let Some(origin) = &self.origin
            && *origin != receipt.origin
        {
            return Err(ReceiptFault::Origin { receipt: receipt.origin.clone(), checkpoint: origin.clone() });
        }
        self.origin = Some(receipt.origin.clone());
        if let Some(previous) = &receipt.previous {
            while self.heads.front().is_some_and(|head| head.size < previous.size) {
                self.heads.pop_front();
            }
            if self.heads.front() != Some(previous) {
                return Err(ReceiptFault::Previous { sequence });
            }
        }
        let change = (receipt.training_set, receipt.parameters);
        match &self.last {
            None if change.0.before.is_some() || change.1.before.is_some() => {
                return Err(ReceiptFault::Chain { sequence, what: "the log does not start with a fit" });
            }
            None => {}
            Some((set, parameters)) => {
                if !follows(set, &change.0) {
                    return Err(ReceiptFault::Chain { sequence, what: "the training set" });
                }
                if !follows(parameters, &change.1) {
                    return Err(ReceiptFault::Chain { sequence, what: "the parameters" });
                }
            }
        }
        self.last = Some(change);
        if self.received_at > Some(receipt.times.received_at) {
            return Err(ReceiptFault::Chain { sequence, what: "the time" });
        }
        self.received_at = Some(receipt.times.received_at);
        self.scrub(receipt)?;
        if receipt.kind == RequestKind::KeyRotation && receipt.outcome == RequestOutcome::Done {
            self.keys.follow(&signed)?;
        }
        self.frontier.append(&leaf_hash(bytes));
        self.heads.push_back(self.frontier.head());
        Ok(signed)
    }

    /// A settle scrubs all rows that wait, and none that do not.
    fn scrub(&mut self, receipt: &Receipt) -> Result<(), ReceiptFault> {
        let sequence = receipt.sequence;
        let settle = receipt.kind == RequestKind::Settle && receipt.outcome == RequestOutcome::Done;
        if (settle || receipt.settles.is_some()) && receipt.settles != self.waiting.take() {
            return Err(ReceiptFault::Chain { sequence, what: "the rows that wait to be scrubbed" });
        }
        if receipt.times.forgotten_at.is_some() && receipt.times.scrubbed_at.is_none() {
            let first = self.waiting.map_or(sequence, |run| run.first);
            self.waiting = Some(SettledRun { first, last: sequence });
        }
        Ok(())
    }

    /// The first and the last receipt whose rows are forgotten and not yet scrubbed; None when none wait.
    pub fn waiting(&self) -> Option<SettledRun> {
        self.waiting
    }

    /// Checks that what was read is the log that a checkpoint signs.
    pub fn finish(&self, note: &str) -> Result<LogCheckpoint, ReceiptFault> {
        let checkpoint = LogCheckpoint::verify(note, &self.keys)?;
        if let Some(origin) = &self.origin
            && *origin != checkpoint.origin
        {
            return Err(ReceiptFault::Origin { receipt: origin.clone(), checkpoint: checkpoint.origin });
        }
        let head = self.frontier.head();
        if checkpoint.size != head.size {
            return Err(ReceiptFault::ProofSize { proof: head.size, checkpoint: checkpoint.size });
        }
        if checkpoint.root != head.root {
            return Err(ReceiptFault::Fork { size: head.size, first: head.root, second: checkpoint.root });
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

/// A change follows another when it starts where that ended, or when both are the one change of a group of requests
/// that were applied together.
fn follows<T: PartialEq>(last: &StateChange<T>, next: &StateChange<T>) -> bool {
    next.before.as_ref() == Some(&last.after) || (next == last && next.before.is_some())
}
