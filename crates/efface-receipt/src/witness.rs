//! Witnesses: others who saw the head of a log, checked that it continues the one that they saw
//! before, and signed it. Whoever demands their signatures cannot be shown a second history of the
//! log.
//!
//! The forms are those of C2SP: a cosignature is a signature line of the checkpoint
//! (tlog-cosignature, `cosignature/v1` with a time), a request to a witness is the body of
//! `add-checkpoint` (tlog-witness). What a witness decides is here, with its clock and its file
//! left to the caller.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    fault::ReceiptFault,
    hash::{Hash, hash_parts, sha256},
    keyring::KeyRing,
    limits::{MAX_KEYS, MAX_NOTE_BYTES},
    log::ConsistencyProof,
    note::{self, LogCheckpoint},
    receipt::LogHead,
    signature::{KeyId, PublicKey, ReceiptSigner, Signature},
    text::{base64, count, from_base64, list_lines, list_text},
};

/// The byte by which signed-note tells a timestamped cosignature from other signatures.
const COSIGNATURE: u8 = 4;

/// The most lines of a consistency proof that a request may have.
const MOST_HASHES: usize = 63;

/// The public key of a witness, written `name+id+base64(0x04 ‖ key)`.
#[derive(Clone, PartialEq, Eq)]
pub struct WitnessKey {
    key: PublicKey,
    id: KeyId,
}

impl WitnessKey {
    /// The key of a witness that signs with this Ed25519 key.
    pub fn new(key: PublicKey) -> WitnessKey {
        let Hash(hash) = hash_parts(&[
            key.name().as_bytes(),
            b"\n",
            &[COSIGNATURE],
            &key.to_bytes(),
        ]);
        WitnessKey {
            key,
            id: KeyId([hash[0], hash[1], hash[2], hash[3]]),
        }
    }

    /// Reads `name+id+base64`.
    pub fn parse(text: &str) -> Result<WitnessKey, ReceiptFault> {
        const BAD: ReceiptFault = ReceiptFault::Key("a witness's key is name+id+base64 of type 4");
        let mut parts = text.splitn(3, '+');
        let (Some(name), Some(id), Some(code)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(BAD);
        };
        let bytes = from_base64(code).ok_or(BAD)?;
        let Some((&COSIGNATURE, key)) = bytes.split_first() else {
            return Err(BAD);
        };
        let key = <[u8; 32]>::try_from(key).map_err(|_| BAD)?;
        let key = WitnessKey::new(PublicKey::from_bytes(name, &key)?);
        if KeyId::parse(id) == Some(key.id) {
            Ok(key)
        } else {
            Err(ReceiptFault::Key(
                "the id does not belong to this name and key",
            ))
        }
    }

    /// The name of the witness.
    pub fn name(&self) -> &str {
        self.key.name()
    }

    /// The time of a cosignature of this body, in seconds since 1970; None where it does not hold.
    fn time_of(&self, body: &str, signature: &[u8]) -> Option<u64> {
        let (time, signature) = signature.split_first_chunk::<8>()?;
        let time = u64::from_be_bytes(*time);
        let signature = Signature(<[u8; 64]>::try_from(signature).ok()?);
        let in_range = time <= i64::MAX as u64;
        (in_range
            && self
                .key
                .verifies(message(body, time).as_bytes(), &signature))
        .then_some(time)
    }
}

impl fmt::Display for WitnessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = [&[COSIGNATURE][..], &self.key.to_bytes()].concat();
        write!(f, "{}+{}+{}", self.key.name(), self.id, base64(&bytes))
    }
}

impl fmt::Debug for WitnessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a witness signs.
fn message(body: &str, time: u64) -> String {
    format!("cosignature/v1\ntime {time}\n{body}")
}

/// The signature line of a witness for the body of a checkpoint, at a time in seconds since 1970.
pub fn cosign(
    checkpoint: &LogCheckpoint,
    time: u64,
    signer: &dyn ReceiptSigner,
) -> Result<String, ReceiptFault> {
    let key = WitnessKey::new(signer.public_key().clone());
    let Signature(signature) = signer.sign(message(&checkpoint.body(), time).as_bytes())?;
    let bytes = [&key.id.0[..], &time.to_be_bytes(), &signature].concat();
    Ok(format!("— {} {}\n", key.name(), base64(&bytes)))
}

/// How many of which witnesses must have signed a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WitnessQuorum {
    witnesses: Vec<WitnessKey>,
    needed: usize,
}

/// A witness that signed a head, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WitnessedHead {
    /// The name of the witness.
    pub witness: String,
    /// Seconds since 1970.
    pub time: u64,
}

impl WitnessQuorum {
    /// So many of these witnesses, each with a name and a key of its own: one witness under two
    /// names would count twice.
    pub fn new(witnesses: Vec<WitnessKey>, needed: usize) -> Result<WitnessQuorum, ReceiptFault> {
        for (at, witness) in witnesses.iter().enumerate() {
            let bytes = witness.key.to_bytes();
            if witnesses[..at]
                .iter()
                .any(|known| known.key.to_bytes() == bytes || known.name() == witness.name())
            {
                return Err(ReceiptFault::Key(
                    "a witness is listed twice, under one name or two",
                ));
            }
        }
        if needed == 0 || needed > witnesses.len() {
            return Err(ReceiptFault::Key(
                "a quorum is at least one witness and at most all of them",
            ));
        }
        Ok(WitnessQuorum { witnesses, needed })
    }

    /// Reads a file of keys of witnesses. Without a number all of them are needed.
    pub fn from_bytes(bytes: &[u8], needed: Option<usize>) -> Result<WitnessQuorum, ReceiptFault> {
        WitnessQuorum::parse(list_text(bytes)?, needed)
    }

    /// Reads keys of witnesses, one a line, in a text of the form of a list of keys.
    pub fn parse(text: &str, needed: Option<usize>) -> Result<WitnessQuorum, ReceiptFault> {
        let witnesses: Vec<WitnessKey> = list_lines(text)?
            .map(WitnessKey::parse)
            .collect::<Result<_, _>>()?;
        if witnesses.len() > MAX_KEYS {
            return Err(ReceiptFault::TooLarge {
                what: "the list of witnesses",
                size: witnesses.len(),
                limit: MAX_KEYS,
            });
        }
        let all = witnesses.len();
        WitnessQuorum::new(witnesses, needed.unwrap_or(all))
    }

    /// The witnesses.
    pub fn witnesses(&self) -> impl Iterator<Item = &WitnessKey> {
        self.witnesses.iter()
    }

    /// How many of them must have signed.
    pub fn needed(&self) -> usize {
        self.needed
    }

    /// Checks that enough witnesses signed a checkpoint; gives them. A signature under the name of
    /// a known witness that does not hold is refused, whoever else signed.
    pub fn verify(&self, note: &str) -> Result<Vec<WitnessedHead>, ReceiptFault> {
        let (_, body, lines) = note::read(note)?;
        let mut found: Vec<WitnessedHead> = Vec::new();
        for line in lines {
            let named = |key: &&WitnessKey| key.name() == line.name && key.id == line.id;
            let Some(key) = self.witnesses.iter().find(named) else {
                continue;
            };
            let time = key
                .time_of(body, &line.signature)
                .ok_or(ReceiptFault::Cosignature)?;
            if found.iter().all(|head| head.witness != line.name) {
                found.push(WitnessedHead {
                    witness: line.name,
                    time,
                });
            }
        }
        if found.len() < self.needed {
            return Err(ReceiptFault::Quorum {
                found: found.len(),
                needed: self.needed,
            });
        }
        Ok(found)
    }

    /// A checkpoint with those of some signature lines that are by these witnesses and hold.
    pub fn attach(&self, note: &str, lines: &str) -> Result<String, ReceiptFault> {
        let mut attached = note.to_owned();
        for line in lines
            .lines()
            .filter(|line| !line.is_empty() && !note.contains(line))
        {
            let with = format!("{attached}{line}\n");
            let alone = format!(
                "{}{line}\n",
                &note[..note.rfind("\n\n").map_or(0, |cut| cut + 2)]
            );
            let one = WitnessQuorum {
                witnesses: self.witnesses.clone(),
                needed: 1,
            };
            if one.verify(&alone).is_ok() {
                attached = with;
            }
        }
        note::read(&attached)?;
        if attached == note {
            Err(ReceiptFault::Quorum {
                found: 0,
                needed: 1,
            })
        } else {
            Ok(attached)
        }
    }
}

/// The body of `add-checkpoint`: a head, and proof that it continues the one that the witness
/// signed last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointRequest {
    /// The size of the log that the witness signed last.
    pub old: u64,
    /// The consistency proof.
    pub path: Vec<Hash>,
    /// The signed note.
    pub checkpoint: String,
}

impl CheckpointRequest {
    /// From a proof between two sizes of a log, and the newer head.
    pub fn new(proof: ConsistencyProof, checkpoint: String) -> CheckpointRequest {
        CheckpointRequest {
            old: proof.old,
            path: proof.path,
            checkpoint,
        }
    }

    /// The text that is sent.
    pub fn to_text(&self) -> String {
        let lines: String = self
            .path
            .iter()
            .map(|hash| format!("{}\n", base64(hash.as_bytes())))
            .collect();
        format!("old {}\n{lines}\n{}", self.old, self.checkpoint)
    }

    /// Reads what was sent.
    pub fn parse(text: &str) -> Result<CheckpointRequest, ReceiptFault> {
        const BAD: ReceiptFault = ReceiptFault::Note(
            "a request is `old N`, at most 63 hashes in base64, a blank line and a checkpoint",
        );
        if text.len() > 2 * MAX_NOTE_BYTES {
            let size = text.len();
            return Err(ReceiptFault::TooLarge {
                what: "the request",
                size,
                limit: 2 * MAX_NOTE_BYTES,
            });
        }
        let (head, checkpoint) = text.split_once("\n\n").ok_or(BAD)?;
        let mut lines = head.split('\n');
        let size = lines
            .next()
            .and_then(|line| line.strip_prefix("old "))
            .ok_or(BAD)?;
        let old = count(size).ok_or(BAD)?;
        let mut path = Vec::new();
        for line in lines {
            let bytes = from_base64(line).and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
            path.push(Hash(bytes.ok_or(BAD)?));
        }
        if path.len() > MOST_HASHES {
            return Err(BAD);
        }
        Ok(CheckpointRequest {
            old,
            path,
            checkpoint: checkpoint.to_owned(),
        })
    }
}

/// What a witness knows of the logs that it watches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WitnessState {
    logs: BTreeMap<String, WatchedLog>,
}

/// A log that a witness watches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct WatchedLog {
    /// Its keys, as `efface keys` prints them.
    keys: String,
    /// The head that was signed last; an empty log where none was.
    head: LogHead,
}

/// Why a witness does not sign, with the status that a server answers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WitnessRefusal {
    /// The request makes no sense.
    #[error("{0}")]
    BadRequest(ReceiptFault),
    /// No key of the log signed the head.
    #[error("{0}")]
    Unsigned(ReceiptFault),
    /// The log is not watched.
    #[error("the log {0:?} is not one that this witness watches")]
    UnknownLog(String),
    /// The request does not start from the head that was signed last.
    #[error("the head that was signed last has size {size}")]
    Conflict {
        /// Its size.
        size: u64,
    },
    /// The log of the head does not continue the one that was signed last: it has two histories.
    #[error("{0}")]
    Inconsistent(ReceiptFault),
}

impl WitnessRefusal {
    /// The HTTP status of tlog-witness.
    pub fn status(&self) -> u16 {
        match self {
            WitnessRefusal::BadRequest(_) => 400,
            WitnessRefusal::Unsigned(_) => 403,
            WitnessRefusal::UnknownLog(_) => 404,
            WitnessRefusal::Conflict { .. } => 409,
            WitnessRefusal::Inconsistent(_) => 422,
        }
    }
}

impl WitnessState {
    /// Watches a log from now on, or takes newer keys of one that is watched. All keys must bear
    /// one name.
    pub fn watch(&mut self, keys: &KeyRing) -> Result<String, ReceiptFault> {
        let mut names = keys.keys().map(|key| key.key.name());
        let origin = names
            .next()
            .ok_or(ReceiptFault::Key("there is no key"))?
            .to_owned();
        if names.any(|name| name != origin) {
            return Err(ReceiptFault::Key("the keys are of several logs"));
        }
        let keys: String = keys.keys().map(|key| format!("{key}\n")).collect();
        let nothing = LogHead {
            size: 0,
            root: sha256(b""),
        };
        let head = self.logs.get(&origin).map_or(nothing, |log| log.head);
        self.logs.insert(origin.clone(), WatchedLog { keys, head });
        Ok(origin)
    }

    /// The size of every log that is watched, as it was signed last.
    pub fn sizes(&self) -> impl Iterator<Item = (&str, u64)> {
        self.logs
            .iter()
            .map(|(origin, log)| (origin.as_str(), log.head.size))
    }

    /// Judges a request. The state must be kept before the signature line is given away.
    pub fn add_checkpoint(
        &mut self,
        request: &CheckpointRequest,
        time: u64,
        signer: &dyn ReceiptSigner,
    ) -> Result<String, WitnessRefusal> {
        let seen = LogCheckpoint::parse_unverified(&request.checkpoint)
            .map_err(WitnessRefusal::BadRequest)?;
        let Some(log) = self.logs.get_mut(&seen.origin) else {
            return Err(WitnessRefusal::UnknownLog(seen.origin));
        };
        let keys = KeyRing::parse(&log.keys).map_err(WitnessRefusal::Unsigned)?;
        let head =
            LogCheckpoint::verify(&request.checkpoint, &keys).map_err(WitnessRefusal::Unsigned)?;
        if request.old > head.size {
            let fault = ReceiptFault::Shrunk {
                old: request.old,
                new: head.size,
            };
            return Err(WitnessRefusal::BadRequest(fault));
        }
        if request.old != log.head.size {
            return Err(WitnessRefusal::Conflict {
                size: log.head.size,
            });
        }
        if head.size == log.head.size && head.root != log.head.root {
            return Err(WitnessRefusal::Conflict {
                size: log.head.size,
            });
        }
        let proof = ConsistencyProof {
            old: request.old,
            new: head.size,
            path: request.path.clone(),
        };
        proof
            .verify(&log.head.root, &head.root)
            .map_err(WitnessRefusal::Inconsistent)?;
        let line = cosign(&head, time, signer).map_err(WitnessRefusal::BadRequest)?;
        log.head = head.head();
        Ok(line)
    }
}
