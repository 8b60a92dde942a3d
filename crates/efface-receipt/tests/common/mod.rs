//! A small log with every kind of receipt, from fixed keys and times, so that its bytes never
//! change.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test file uses a part of it"
)]

use coset::TaggedCborSerializable;
use efface_receipt::*;
use serde_json::{Map, json};

pub const ORIGIN: &str = "efface.example/model-1";

pub fn secret() -> SecretKey {
    SecretKey::from_seed(ORIGIN, &[1; 32]).unwrap()
}

pub fn next_secret() -> SecretKey {
    SecretKey::from_seed(ORIGIN, &[2; 32]).unwrap()
}

/// The key that is kept elsewhere and hands over where a signing key was lost.
pub fn recovery_secret() -> SecretKey {
    SecretKey::from_seed(ORIGIN, &[4; 32]).unwrap()
}

pub fn first_keys(key: &SecretKey, recovery: Option<&SecretKey>) -> KeyChange {
    let text = |key: &SecretKey| key.public().to_string();
    KeyChange {
        by: text(key),
        retired: None,
        next: text(key),
        recovery: recovery.map(text),
    }
}

pub fn hand_over(
    by: &SecretKey,
    retired: &SecretKey,
    next: &SecretKey,
    recovery: Option<&SecretKey>,
) -> KeyChange {
    let text = |key: &SecretKey| key.public().to_string();
    KeyChange {
        by: text(by),
        retired: Some(text(retired)),
        next: text(next),
        recovery: recovery.map(text),
    }
}

pub fn stranger() -> SecretKey {
    SecretKey::from_seed(ORIGIN, &[3; 32]).unwrap()
}

pub fn keys() -> KeyRing {
    KeyRing::from(secret().public())
}

pub fn salt() -> CommitmentSalt {
    CommitmentSalt::new(&[9; 32])
}

pub fn uncovered(code: &str, detail: &str) -> UncoveredPart {
    UncoveredPart {
        code: code.to_owned(),
        detail: detail.to_owned(),
    }
}

pub fn at(minutes: i64) -> Time {
    Time::from_unix_milliseconds(1_772_442_900_250 + minutes * 60_000).unwrap()
}

pub fn row(number: u32) -> Hash {
    salt().row(
        format!("row-{number}").as_bytes(),
        &sha256(&number.to_be_bytes()),
    )
}

pub fn set(rows: impl IntoIterator<Item = u32>) -> SetState {
    let mut keys: Vec<Hash> = rows.into_iter().map(row).collect();
    keys.sort();
    training_set::state_of(&keys).unwrap()
}

/// A signed receipt, or one with its proofs, whose payload was changed after signing.
pub fn with_payload(bytes: &[u8], change: impl Fn(&str) -> String) -> Vec<u8> {
    let mut message = coset::CoseSign1::from_tagged_slice(bytes).unwrap();
    let text = String::from_utf8(message.payload.take().unwrap()).unwrap();
    message.payload = Some(change(&text).into_bytes());
    message.to_tagged_vec().unwrap()
}

/// A receipt of a kind that changes nothing.
pub fn plain(sequence: u64, kind: RequestKind, state: SetState, parameters: Hash) -> Receipt {
    Receipt {
        schema: SCHEMA.to_owned(),
        id: format!("{sequence:032x}"),
        origin: ORIGIN.to_owned(),
        sequence,
        request_id: None,
        kind,
        outcome: RequestOutcome::Done,
        reason: None,
        times: RequestTimes {
            requested_at: None,
            received_at: at(sequence as i64),
            forgotten_at: None,
            scrubbed_at: None,
        },
        subject: None,
        rows: RowsTouched {
            commitment: None,
            removed: 0,
            added: 0,
        },
        training_set: StateChange {
            before: Some(state),
            after: state,
        },
        parameters: StateChange {
            before: Some(parameters),
            after: parameters,
        },
        method: None,
        efface: "0.1.0".to_owned(),
        settings: Map::new(),
        seed: None,
        claim: None,
        bound: None,
        head_bound: None,
        audit: Vec::new(),
        not_covered: Vec::new(),
        kept_beside: Vec::new(),
        copies: Vec::new(),
        release: None,
        settles: None,
        keys: None,
        key_id: secret().id(),
        previous: None,
    }
}

/// What a method says of the model that it computed.
pub fn computed(receipt: &mut Receipt, method: &str, relative: f64) {
    receipt.method = Some(method.to_owned());
    receipt.claim = Some(ReceiptClaim::Exact { tolerance: 1e-10 });
    receipt.bound = Some(DistanceBound::new(
        14.0 * relative,
        relative,
        BoundOrigin::Measured,
    ));
}

/// A policy that lets everything be published.
pub fn plain_release() -> ReleaseTerms {
    ReleaseTerms {
        minimum_batch: 1,
        batch: 1,
        delay_seconds: 0,
        noise: None,
        calibration: None,
        privacy: None,
        warnings: Vec::new(),
    }
}

pub struct Log {
    pub leaves: Vec<Vec<u8>>,
    pub signed: Vec<SignedReceipt>,
    pub tree: MemoryLog,
}

impl Log {
    pub fn new() -> Log {
        Log {
            leaves: Vec::new(),
            signed: Vec::new(),
            tree: MemoryLog::default(),
        }
    }

    pub fn push(&mut self, mut receipt: Receipt, key: &SecretKey) {
        receipt.previous = (receipt.sequence > 0).then(|| self.tree.head());
        self.push_as_is(receipt, key);
    }

    pub fn push_as_is(&mut self, mut receipt: Receipt, key: &SecretKey) {
        receipt.key_id = key.id();
        let signed = SignedReceipt::sign(receipt, key).unwrap();
        let bytes = signed.to_bytes().unwrap();
        self.tree.append(&leaf_hash(&bytes));
        self.leaves.push(bytes);
        self.signed.push(signed);
    }

    pub fn checkpoint(&self, key: &SecretKey) -> String {
        let head = self.tree.head();
        LogCheckpoint::new(ORIGIN, head.size, head.root)
            .unwrap()
            .sign(key)
            .unwrap()
    }

    pub fn head(&self, key: &SecretKey) -> SignedHead {
        let head = self.tree.head();
        SignedHead::sign(
            &LogCheckpoint::new(ORIGIN, head.size, head.root).unwrap(),
            key,
        )
        .unwrap()
    }

    pub fn bundle(&self, index: usize, key: &SecretKey) -> ReceiptBundle {
        let signed = self.signed[index].clone();
        let previous = signed.receipt.previous;
        let inclusion = self.tree.inclusion(index as u64).unwrap();
        let mut bundle = ReceiptBundle::new(signed, inclusion, self.head(key));
        bundle.consistency = previous.map(|head| self.tree.consistency(head.size).unwrap());
        let link = |signed: &SignedReceipt| KeyLink {
            signed: signed.clone(),
            inclusion: self.tree.inclusion(signed.receipt.sequence).unwrap(),
        };
        bundle.keys = self
            .signed
            .iter()
            .filter(|signed| signed.receipt.keys.is_some())
            .map(link)
            .collect();
        bundle
    }

    pub fn replay(&self, key: &SecretKey) -> Result<LogCheckpoint, ReceiptFault> {
        self.replay_with(&keys(), key)
    }

    pub fn replay_with(
        &self,
        keys: &KeyRing,
        key: &SecretKey,
    ) -> Result<LogCheckpoint, ReceiptFault> {
        let mut replay = LogReplay::new(keys);
        for leaf in &self.leaves {
            replay.push(leaf)?;
        }
        replay.finish(&self.checkpoint(key))
    }
}

/// Seven receipts: fit, forget, a forget that finds nothing, settle, key rotation, learn, and a
/// forget with every field.
pub fn log() -> Log {
    let old = secret();
    let new = next_secret();
    let states = [set(0..20), set(2..20), set(2..21), set(3..21)];
    let parameters = [1u8, 2, 3, 4].map(|n| sha256(&[n]));
    let mut log = Log::new();

    let mut fit = plain(0, RequestKind::Fit, states[0], parameters[0]);
    fit.training_set.before = None;
    fit.parameters.before = None;
    fit.rows = RowsTouched {
        commitment: rows_commitment(&(0..20).map(row).collect::<Vec<_>>()),
        removed: 0,
        added: 20,
    };
    computed(&mut fit, "ridge", 0.0);
    fit.seed = Some(7);
    fit.keys = Some(first_keys(&old, Some(&recovery_secret())));
    log.push(fit, &old);

    let mut forget = plain(1, RequestKind::Forget, states[0], parameters[0]);
    forget.request_id = Some(RequestId::Given(
        "b0e3f3a2-5f0e-4a6e-9d8e-2f4f4c1f2a11".to_owned(),
    ));
    forget.outcome = RequestOutcome::Erased;
    forget.times.forgotten_at = Some(at(1));
    forget.subject = Some(salt().commit(CommitmentLabel::Subject, b"alice@example.com"));
    forget.rows = RowsTouched {
        commitment: rows_commitment(&[row(0), row(1)]),
        removed: 2,
        added: 0,
    };
    forget.training_set.after = states[1];
    forget.parameters.after = parameters[1];
    computed(&mut forget, "exact", 2.5e-16);
    forget.release = Some(plain_release());
    log.push(forget, &old);

    let mut missing = plain(2, RequestKind::Forget, states[1], parameters[1]);
    missing.outcome = RequestOutcome::NotFound;
    missing.request_id = Some(RequestId::Committed(
        salt().commit(CommitmentLabel::Request, b"request 2"),
    ));
    missing.reason = Some("no row of this subject is in the model".to_owned());
    log.push(missing, &old);

    let mut settle = plain(3, RequestKind::Settle, states[1], parameters[1]);
    settle.times.scrubbed_at = Some(at(3));
    settle.settles = Some(SettledRun { first: 1, last: 1 });
    log.push(settle, &old);

    let mut rotation = plain(4, RequestKind::KeyRotation, states[1], parameters[1]);
    rotation.keys = Some(hand_over(&old, &old, &new, Some(&recovery_secret())));
    log.push(rotation, &old);

    let mut learn = plain(5, RequestKind::Learn, states[1], parameters[1]);
    learn.rows = RowsTouched {
        commitment: rows_commitment(&[row(20)]),
        removed: 0,
        added: 1,
    };
    learn.training_set.after = states[2];
    learn.parameters.after = parameters[2];
    computed(&mut learn, "exact", 1e-15);
    // The head of a network whose encoder nothing bounds.
    learn.claim = Some(ReceiptClaim::Approximate {});
    learn.head_bound = learn.bound.replace(DistanceBound::new(
        f64::INFINITY,
        f64::INFINITY,
        BoundOrigin::Measured,
    ));
    log.push(learn, &new);

    log.push(
        full(6, states[2], states[3], parameters[2], parameters[3]),
        &new,
    );
    log
}

/// The log up to its hand-over, in which the key was lost instead: the recovery key hands over.
pub fn recovered_log() -> Log {
    let usual = log();
    let old = secret();
    let new = next_secret();
    let mut log = Log::new();
    for signed in &usual.signed[..4] {
        log.push_as_is(signed.receipt.clone(), &old);
    }
    let mut rotation = usual.signed[4].receipt.clone();
    rotation.keys = Some(hand_over(&recovery_secret(), &old, &new, None));
    log.push(rotation, &recovery_secret());
    for signed in &usual.signed[5..] {
        log.push(signed.receipt.clone(), &new);
    }
    log
}

/// That log, grown: a policy, two forgets that put scrubbing off with an audit in between, and the
/// settle of both.
pub fn grown_log() -> Log {
    let new = next_secret();
    let states = [set(3..21), set(4..21), set(5..21)];
    let parameters = [4u8, 5, 6].map(|n| sha256(&[n]));
    let mut log = log();
    let mut policy = plain(7, RequestKind::Policy, states[0], parameters[0]);
    policy.settings = match json!({"settle_after_rows": 256, "settle_within_seconds": 86_400}) {
        serde_json::Value::Object(map) => map,
        _ => unreachable!(),
    };
    policy.release = Some(ReleaseTerms {
        minimum_batch: 8,
        batch: 0,
        delay_seconds: 0,
        noise: None,
        calibration: Some(Calibration {
            epsilon: 2.0,
            delta: 1e-6,
            sensitivity: None,
            source: SensitivitySource::Measured,
        }),
        privacy: None,
        warnings: Vec::new(),
    });
    log.push(policy, &new);
    let deferred = |sequence: u64, step: usize| {
        let mut forget = plain(
            sequence,
            RequestKind::Forget,
            states[step],
            parameters[step],
        );
        forget.outcome = RequestOutcome::Erased;
        forget.times.forgotten_at = Some(at(sequence as i64));
        forget.rows = RowsTouched {
            commitment: rows_commitment(&[row(step as u32 + 3)]),
            removed: 1,
            added: 0,
        };
        forget.training_set.after = states[step + 1];
        forget.parameters.after = parameters[step + 1];
        // The largest bound that the claim allows.
        computed(&mut forget, "exact", 1e-10);
        forget.release = Some(plain_release());
        forget
    };
    log.push(deferred(8, 0), &new);
    let mut audit = plain(9, RequestKind::Audit, states[1], parameters[1]);
    audit.audit = vec![AuditEntry {
        test: "membership_auc".to_owned(),
        passed: None,
        value: Some(0.503),
        threshold: None,
        trials: Some(64),
    }];
    log.push(audit, &new);
    log.push(deferred(10, 1), &new);
    let mut settle = plain(11, RequestKind::Settle, states[2], parameters[2]);
    settle.times.scrubbed_at = Some(at(11));
    settle.settles = Some(SettledRun { first: 8, last: 10 });
    log.push(settle, &new);
    let mut export = plain(12, RequestKind::Export, states[2], parameters[2]);
    export.release = Some(noisy_release());
    log.push(export, &new);
    log
}

/// The third export with noise since the last one without. μ and ε follow from ε = 2 and δ = 1e-6
/// by theorem 8 of Balle and Wang (2018), solved by mpmath 1.3.0; the total is √3 times this μ.
fn noisy_release() -> ReleaseTerms {
    ReleaseTerms {
        minimum_batch: 8,
        batch: 2,
        delay_seconds: 0,
        noise: Some(0.055_761_906_779_660_43),
        calibration: Some(Calibration {
            epsilon: 2.0,
            delta: 1e-6,
            sensitivity: Some(0.025),
            source: SensitivitySource::Measured,
        }),
        privacy: Some(PrivacySpent {
            delta: 1e-6,
            mu: 0.448_334_740_395_192_8,
            epsilon: 2.0,
            total: Some(PrivacyTotal {
                mu: 0.776_538_549_162_676_6,
                epsilon: 3.672_728_256_898_791,
                releases: 3,
            }),
            since: Some(0),
        }),
        warnings: Vec::new(),
    }
}

/// A receipt in which every field says something (keys and settles aside, which exclude each
/// other).
pub fn full(sequence: u64, before: SetState, after: SetState, old: Hash, new: Hash) -> Receipt {
    let mut receipt = plain(sequence, RequestKind::Forget, before, old);
    receipt.request_id = Some(RequestId::Committed(
        salt().commit(CommitmentLabel::Request, b"request 6"),
    ));
    receipt.outcome = RequestOutcome::Partial;
    receipt.reason =
        Some("one of two rows was not there \u{2014} \"déjà oubliée\" \u{1f5d1}".to_owned());
    receipt.times = RequestTimes {
        requested_at: Some(at(0)),
        received_at: at(6),
        forgotten_at: Some(at(6)),
        scrubbed_at: Some(at(7)),
    };
    receipt.subject = Some(salt().commit(CommitmentLabel::Subject, b"bob@example.com"));
    receipt.rows = RowsTouched {
        commitment: rows_commitment(&[row(2)]),
        removed: 1,
        added: 0,
    };
    receipt.training_set.after = after;
    receipt.parameters.after = new;
    receipt.method = Some("certified".to_owned());
    receipt.settings = match json!({
        "l2": 0.001, "tolerance": 1e-10, "solver": "newton", "classes": ["no", "yes"], "weights": null,
        "nested": {"\u{20ac}": 1, "\r": 2, "\u{fb33}": 3, "\u{1f600}": 4, "1": 1e21, "0": -0.0, "z": 333333333.33333325}
    }) {
        serde_json::Value::Object(map) => map,
        _ => unreachable!(),
    };
    receipt.seed = Some(u64::MAX);
    receipt.claim = Some(ReceiptClaim::Certified {
        epsilon: 1.0,
        delta: 1e-5,
        noise: 0.25,
        unit: "residual gradient".to_owned(),
        budget: 0.064,
        used: 0.001,
        left: 0.063,
        retrained: false,
        adaptive: false,
        assumptions: vec!["rows have norm at most 1".to_owned()],
    });
    receipt.bound = Some(DistanceBound::new(1.5e-3, 2.5e-4, BoundOrigin::Carried));
    receipt.audit = vec![AuditEntry {
        test: "feature_injection".to_owned(),
        passed: Some(true),
        value: Some(-1e-17),
        threshold: Some(1e-9),
        trials: Some(100),
    }];
    receipt.not_covered = vec![uncovered(
        "chosen_words",
        "which words the vocabulary chose",
    )];
    receipt.kept_beside = vec![uncovered("storage_blocks", "blocks that were overwritten")];
    receipt.copies = vec![
        KnownCopy {
            number: 1,
            kind: CopyKind::Export,
            state: CopyState::Withdrawn,
            parameters: old,
            made_at: at(2),
            withdrawn_at: Some(at(6)),
        },
        KnownCopy {
            number: 4,
            kind: CopyKind::Version,
            state: CopyState::Live,
            parameters: new,
            made_at: at(6),
            withdrawn_at: None,
        },
    ];
    receipt.release = Some(ReleaseTerms {
        minimum_batch: 8,
        batch: 1,
        delay_seconds: 86_400,
        noise: Some(0.01),
        calibration: Some(Calibration {
            epsilon: 1.0,
            delta: 1e-6,
            sensitivity: Some(0.0025),
            source: SensitivitySource::Given,
        }),
        privacy: None,
        warnings: vec!["a batch of one: two published versions would give the row away".to_owned()],
    });
    receipt
}

/// Vectors are those that are stored, in verify/vectors; `EFFACE_WRITE_VECTORS=1` writes them.
pub fn compare(name: &str, vectors: &serde_json::Value) {
    let path = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../verify/vectors")
        .join(name);
    let text = serde_json::to_string_pretty(vectors).unwrap() + "\n";
    if std::env::var_os("EFFACE_WRITE_VECTORS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == text,
        "{name} is not what this crate writes; if that is meant, set EFFACE_WRITE_VECTORS=1"
    );
}

/// DER of parts under a tag.
pub fn tlv(tag: u8, parts: &[Vec<u8>]) -> Vec<u8> {
    let content = parts.concat();
    let mut bytes = vec![tag];
    match content.len() {
        short @ 0..128 => bytes.push(short as u8),
        long @ 128..256 => bytes.extend([0x81, long as u8]),
        long => bytes.extend([0x82, (long >> 8) as u8, long as u8]),
    }
    bytes.extend(content);
    bytes
}

/// A time stamp token without a signature, which nobody checks here.
pub fn time_stamp(imprint: &Hash) -> Vec<u8> {
    let sha256 = tlv(0x30, &[hex("0609608648016503040201"), tlv(5, &[])]);
    let name = tlv(
        0x30,
        &[tlv(
            0x31,
            &[tlv(
                0x30,
                &[hex("0603550403"), tlv(0x0c, &[b"TSA".to_vec()])],
            )],
        )],
    );
    let info = tlv(
        0x30,
        &[
            tlv(2, &[vec![1]]),
            hex("06032a0304"),
            tlv(
                0x30,
                &[sha256.clone(), tlv(4, &[imprint.as_bytes().to_vec()])],
            ),
            tlv(2, &[vec![7]]),
            tlv(0x18, &[b"20260302091500.25Z".to_vec()]),
            tlv(2, &[vec![0, 200]]),
            tlv(0xa0, &[tlv(0xa4, &[name])]),
        ],
    );
    let content = tlv(
        0x30,
        &[
            hex("060b2a864886f70d0109100104"),
            tlv(0xa0, &[tlv(4, &[info])]),
        ],
    );
    let signed = tlv(
        0x30,
        &[
            tlv(2, &[vec![3]]),
            tlv(0x31, &[sha256]),
            content,
            tlv(0x31, &[]),
        ],
    );
    tlv(0x30, &[hex("06092a864886f70d010702"), tlv(0xa0, &[signed])])
}

pub fn hex(digits: &str) -> Vec<u8> {
    data_encoding::HEXLOWER.decode(digits.as_bytes()).unwrap()
}
