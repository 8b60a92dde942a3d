//! The vectors in verify/vectors, which the Python verifier reads too. They are made here from
//! fixed keys and times; this test fails when they would come out differently.
//! `EFFACE_WRITE_VECTORS=1` writes them.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

mod common;

use std::collections::BTreeMap;

use common::*;
use coset::TaggedCborSerializable;
use efface_receipt::{
    training_set::{MembershipProof, SetNode, build},
    *,
};
use serde_json::{Value, json};

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// Bytes of a file in base64, as the vectors have them.
fn base64(bytes: impl AsRef<[u8]>) -> String {
    data_encoding::BASE64.encode(bytes.as_ref())
}

fn verdict<T>(result: Result<T, ReceiptFault>) -> &'static str {
    result.map_or_else(|fault| fault.check(), |_| "ok")
}

/// A fixed sequence of bits, for doubles of every size.
fn scrambled(count: usize) -> Vec<u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    })
    .take(count)
    .collect()
}

#[test]
fn canonical_vectors() {
    let mut bits = scrambled(400);
    bits.push(0x43143ff3c1cb0959);
    // Powers of two, where the digits below and above are not equally far; before them, a tie.
    bits.extend(
        (0..2046)
            .step_by(31)
            .map(|exponent: u64| (exponent + 1) << 52),
    );
    bits.extend([0.5, 5e-324, 1e21, 1e-7, 123456789012345680.0, 2f64.powi(60)].map(f64::to_bits));
    let numbers: Vec<Value> = bits
        .into_iter()
        .filter_map(|bits| {
            Some(json!([
                format!("{bits:016x}"),
                canonical::ecmascript(f64::from_bits(bits))?
            ]))
        })
        .collect();
    let full = log().signed[6].receipt.settings.clone();
    let texts = [
        text(canonical::to_bytes(&full).unwrap()),
        text(canonical::write(&json!({"\u{20ac}": "\u{0}\u{8}\t\n\u{c}\r\u{1f}\"\\/\u{7f}\u{80}", "\u{fb33}": 1, "\u{1f600}": 2})).unwrap()),
    ];
    let refused = [
        "",
        " 1",
        "01",
        "1.0",
        "-0",
        "1e30",
        "1E+30",
        "1e400",
        "NaN",
        "9007199254740993",
        "[1,]",
        "[1 ,2]",
        "{\"a\":1,\"a\":2}",
        "{\"b\":1,\"a\":2}",
        "{\"\u{fb33}\":1,\"\u{1f600}\":2}",
        "\"\\/\"",
        "\"\\u0041\"",
        "\"\\u000a\"",
        "\"\\u001F\"",
        "\"\n\"",
        "\"\\ud800\"",
        "1\n",
        "\u{feff}1",
        "tru",
        "\"",
        "{\"a\":}",
    ];
    for case in &texts {
        canonical::parse(case.as_bytes(), "a vector", 10_000).unwrap();
    }
    for case in refused {
        assert!(
            canonical::parse(case.as_bytes(), "a vector", 10_000).is_err(),
            "{case}"
        );
    }
    compare(
        "canonical.json",
        &json!({"numbers": numbers, "texts": texts, "refused": refused}),
    );
}

#[test]
fn tree_vectors() {
    let mut log = MemoryLog::default();
    let leaves: Vec<String> = (0..13).map(|i| format!("leaf {i}")).collect();
    let mut sizes = vec![json!({"size": 0, "root": log.head().root})];
    for leaf in &leaves {
        log.append(&leaf_hash(leaf.as_bytes()));
        let head = log.head();
        let inclusion: Vec<_> = (0..head.size)
            .map(|index| log.inclusion(index).unwrap())
            .collect();
        let consistency: Vec<_> = (0..=head.size)
            .map(|old| log.consistency(old).unwrap())
            .collect();
        let size = head.size;
        let root = head.root;
        sizes.push(
            json!({"size": size, "root": root, "inclusion": inclusion, "consistency": consistency}),
        );
    }
    compare("tree.json", &json!({"leaves": leaves, "sizes": sizes}));
}

#[test]
fn training_set_vectors() {
    let mut keys: Vec<Hash> = (0..40).map(row).collect();
    keys.sort();
    let mut cells: BTreeMap<u64, SetNode> = BTreeMap::new();
    let state = build(&mut cells, 3, keys.iter().map(|key| Ok(*key))).unwrap();
    let between = |low: &Hash, high: &Hash| {
        Ok(keys
            .iter()
            .filter(|key| low <= key && key <= &high)
            .copied()
            .collect())
    };
    let proofs: Vec<Value> = [0, 1, 39, 40, 41, 77]
        .into_iter()
        .map(|number| {
            let key = row(number);
            let proof = MembershipProof::new(&cells, 3, &key, between).unwrap();
            let member = proof.verify(&state, &key).unwrap();
            assert_eq!(member, number < 40);
            json!({"key": key, "proof": proof, "member": member})
        })
        .collect();
    let sizes: Vec<Value> = [0, 1, 2, 3, 40]
        .into_iter()
        .map(|size| json!(training_set::state_of(&keys[..size]).unwrap()))
        .collect();
    let salt_bytes = [9u8; 32];
    let content = sha256(&7u32.to_be_bytes());
    compare(
        "training_set.json",
        &json!({
            "keys": keys, "sizes": sizes, "proofs": proofs,
            "salt": Hash(salt_bytes),
            "subject": {"value": "alice@example.com", "commitment": salt().commit(CommitmentLabel::Subject, b"alice@example.com"),
                        "nonce": salt().open(CommitmentLabel::Subject, b"alice@example.com").0},
            "row": {"id": "row-7", "content": content, "commitment": row(7)},
            "rows": rows_commitment(&keys[..3]),
        }),
    );
}

/// A name, a bundle, and the check that it fails.
fn bundles() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let log = log();
    let new = next_secret();
    let good = |index: usize| log.bundle(index, &new);
    let grown = grown_log();
    let late = |index: usize| grown.bundle(index, &new);
    let half_signed = SignedHead {
        signature: Signature([7; 64]),
        ..good(1).head
    };
    let mut cases = vec![
        ("fit", good(0), "ok"),
        ("forget", good(1), "ok"),
        ("not found", good(2), "ok"),
        ("settle", good(3), "ok"),
        ("key rotation", good(4), "ok"),
        ("learn, signed with the next key", good(5), "ok"),
        ("forget with every field", good(6), "ok"),
        ("policy", late(7), "ok"),
        ("forget, scrubbed later", late(8), "ok"),
        ("audit", late(9), "ok"),
        ("settle of a run", late(11), "ok"),
        ("export with calibrated noise", late(12), "ok"),
        (
            "no consistency proof",
            ReceiptBundle {
                consistency: None,
                ..good(2)
            },
            "consistency",
        ),
        (
            "a consistency proof of the first receipt",
            ReceiptBundle {
                consistency: good(1).consistency,
                ..good(0)
            },
            "consistency",
        ),
        (
            "keys listed twice",
            ReceiptBundle {
                keys: [good(6).keys, good(6).keys].concat(),
                ..good(6)
            },
            "schema",
        ),
        (
            "key lost and recovered",
            recovered_log().bundle(1, &new),
            "ok",
        ),
        (
            "hand-over by the recovery key",
            recovered_log().bundle(4, &new),
            "ok",
        ),
        (
            "keys left out",
            ReceiptBundle {
                keys: Vec::new(),
                ..good(6)
            },
            "checkpoint",
        ),
        (
            "keys left out, old receipt",
            ReceiptBundle {
                keys: Vec::new(),
                ..good(1)
            },
            "checkpoint",
        ),
        (
            "proof of another receipt",
            ReceiptBundle {
                inclusion: good(3).inclusion,
                ..good(2)
            },
            "inclusion",
        ),
        (
            "receipt of another place",
            ReceiptBundle {
                signed: good(3).signed,
                ..good(2)
            },
            "inclusion",
        ),
        (
            "consistency proof of another",
            ReceiptBundle {
                consistency: good(3).consistency,
                ..good(2)
            },
            "consistency",
        ),
        (
            "old key signs the whole log",
            log.bundle(6, &secret()),
            "key",
        ),
        (
            "stranger signs the checkpoint",
            log.bundle(1, &stranger()),
            "checkpoint",
        ),
        (
            "head signed in one form only",
            ReceiptBundle {
                head: half_signed,
                ..good(1)
            },
            "checkpoint",
        ),
    ];
    let mut changed = good(1);
    changed.signed.receipt.rows.removed = 1;
    cases.push(("a count was changed", changed, "signature"));
    let mut contradicting = good(1);
    contradicting.signed.receipt.outcome = RequestOutcome::Refused;
    cases.push(("the outcome was changed", contradicting, "schema"));
    // The rule is about what is claimed: an approximate result may be any distance away, and says
    // so.
    let mut approximate = good(1);
    approximate.signed.receipt.bound = Some(DistanceBound {
        distance: None,
        relative: None,
        source: BoundOrigin::Measured,
    });
    approximate.signed.receipt.claim = Some(ReceiptClaim::Approximate {});
    cases.push((
        "approximate, unsigned, without a bound",
        approximate,
        "signature",
    ));
    let stamped = |at: usize, of: usize| {
        let imprint = stamp_imprint(&good(of).signed.signature);
        ReceiptBundle {
            stamp: Some(time_stamp(&imprint)),
            ..good(at)
        }
    };
    assert_eq!(
        verify(&stamped(1, 1), &keys())
            .unwrap()
            .stamp
            .unwrap()
            .authority
            .unwrap(),
        "TSA"
    );
    cases.push(("with a time stamp", stamped(1, 1), "ok"));
    cases.push(("a time stamp of another receipt", stamped(1, 2), "stamp"));
    cases.push((
        "no time stamp",
        ReceiptBundle {
            stamp: Some(b"time".to_vec()),
            ..good(1)
        },
        "stamp",
    ));
    let answer = tlv(
        0x30,
        &[
            tlv(0x30, &[tlv(2, &[vec![0]])]),
            stamped(1, 1).stamp.unwrap(),
        ],
    );
    cases.push((
        "an answer in place of a token",
        ReceiptBundle {
            stamp: Some(answer),
            ..good(1)
        },
        "stamp",
    ));
    let mut swapped = good(1);
    swapped.inclusion.path.swap(0, 1);
    cases.push(("the path was reordered", swapped, "inclusion"));
    let mut renamed = good(1);
    renamed.head.checkpoint = renamed
        .head
        .checkpoint
        .replace(ORIGIN, "efface.example/model-2");
    cases.push(("another log's checkpoint", renamed, "checkpoint"));
    let mut cases: Vec<_> = cases
        .into_iter()
        .map(|(name, bundle, expected)| (name, bundle.to_bytes().unwrap(), expected))
        .collect();
    let plain = good(1).to_bytes().unwrap();
    let mut change = |name, from: &str, to: &str, expected| {
        let changed = with_payload(&plain, |text| {
            assert!(text.contains(from), "{from}");
            text.replacen(from, to, 1)
        });
        cases.push((name, changed, expected));
    };
    change("a space was added", ":", ": ", "canonical");
    change("a newline was added", "}}}", "}}}\n", "canonical");
    change("a null was left out", "\"settles\":null,", "", "schema");
    change(
        "an unknown field",
        "\"settles\":null,",
        "\"settles\":null,\"sex\":1,",
        "schema",
    );
    change(
        "2^53 rows",
        "\"removed\":2}",
        "\"removed\":9007199254740992}",
        "schema",
    );
    change(
        "less than no rows",
        "\"removed\":2}",
        "\"removed\":-1}",
        "schema",
    );
    change(
        "a time that does not exist",
        "2026-03-02T",
        "2026-02-30T",
        "schema",
    );
    change(
        "unknown schema",
        "efface.receipt/1",
        "efface.receipt/2",
        "schema",
    );
    cases.push(("cut short", plain[..plain.len() - 1].to_vec(), "encoding"));
    cases.push((
        "a byte was added",
        [plain.as_slice(), b"\n"].concat(),
        "encoding",
    ));
    cases.push(("too deep", vec![0x81; 100_000], "encoding"));
    cases.push(("the statement alone", log.leaves[1].clone(), "encoding"));
    // The same message in longer forms: a header that nobody reads, and a length in more bytes than
    // it needs.
    let mut message = coset::CoseSign1::from_tagged_slice(&plain).unwrap();
    message
        .unprotected
        .rest
        .push((coset::Label::Int(-70_000), coset::cbor::Value::from(1)));
    cases.push((
        "an unknown header",
        message.to_tagged_vec().unwrap(),
        "encoding",
    ));
    assert_eq!(plain[..2], [0xd2, 0x84]);
    let long = [&[0xd2, 0x98, 4], &plain[2..]].concat();
    cases.push(("a length in a longer form", long, "encoding"));
    cases
}

/// A rule and a change of a receipt of the grown log that breaks it: the name, the receipt's place,
/// the change.
type BrokenRule = (&'static str, usize, fn(&mut Receipt));

/// Each rule broken at least once. Every change breaks this rule before any other.
const BROKEN: &[BrokenRule] = &[
    ("outcome_of_kind", 1, |receipt| {
        receipt.outcome = RequestOutcome::Done
    }),
    ("outcome_of_kind", 5, |receipt| {
        receipt.outcome = RequestOutcome::Erased
    }),
    ("reason_given", 2, |receipt| receipt.reason = None),
    ("rows_of_kind", 1, |receipt| receipt.rows.added = 1),
    ("rows_of_kind", 1, |receipt| {
        receipt.rows = RowsTouched {
            commitment: None,
            removed: 0,
            added: 0,
        }
    }),
    ("rows_of_kind", 5, |receipt| receipt.rows.removed = 1),
    ("rows_of_kind", 2, |receipt| receipt.rows.removed = 1),
    ("rows_of_kind", 5, |receipt| {
        receipt.kind = RequestKind::Amend
    }),
    ("rows_of_kind", 5, |receipt| {
        receipt.kind = RequestKind::Restore
    }),
    ("rows_of_kind", 12, |receipt| receipt.rows.added = 1),
    ("rows_commitment", 1, |receipt| {
        receipt.rows.commitment = None
    }),
    ("rows_commitment", 9, |receipt| {
        receipt.rows.commitment = Some(sha256(b""))
    }),
    ("subject_of_forget", 5, |receipt| {
        receipt.subject = Some(sha256(b""))
    }),
    ("starts_from_nothing", 0, |receipt| {
        receipt.parameters.before = Some(sha256(b""))
    }),
    ("starts_from_nothing", 1, |receipt| {
        receipt.training_set.before = None
    }),
    ("first_is_fit", 0, |receipt| receipt.sequence = 3),
    ("first_is_fit", 2, |receipt| receipt.sequence = 0),
    ("set_size", 1, |receipt| {
        receipt.training_set.after.count = 19
    }),
    ("set_size", 1, |receipt| {
        receipt.training_set.after.count = 21
    }),
    ("set_size", 5, |receipt| {
        receipt.training_set.after.count = 20
    }),
    ("set_size", 0, |receipt| {
        receipt.training_set.after.count = 19
    }),
    ("set_root", 1, |receipt| {
        receipt.training_set.after.root = receipt.training_set.before.unwrap().root
    }),
    ("nothing_changed", 2, |receipt| {
        receipt.training_set.after.root = sha256(b"")
    }),
    ("nothing_changed", 9, |receipt| {
        receipt.parameters.after = sha256(b"")
    }),
    ("claim_of_change", 1, |receipt| receipt.claim = None),
    ("claim_of_change", 5, |receipt| receipt.method = None),
    ("claim_of_change", 9, |receipt| {
        receipt.claim = Some(ReceiptClaim::Approximate {})
    }),
    ("claim_of_change", 1, |receipt| receipt.bound = None),
    ("exact_has_bound", 1, |receipt| {
        receipt.bound.as_mut().unwrap().distance = None
    }),
    ("exact_has_bound", 1, |receipt| {
        receipt.bound.as_mut().unwrap().relative = None
    }),
    ("exact_within_tolerance", 1, |receipt| {
        receipt.bound.as_mut().unwrap().relative = Some(2.7e-8)
    }),
    ("head_bound_is_no_bound", 1, |receipt| {
        receipt.head_bound = receipt.bound.clone()
    }),
    ("head_bound_is_no_bound", 5, |receipt| {
        receipt.bound = receipt.head_bound.clone()
    }),
    ("head_bound_is_no_bound", 9, |receipt| {
        receipt.head_bound = Some(DistanceBound::new(1.0, 1.0, BoundOrigin::Measured))
    }),
    ("forgotten_time", 1, |receipt| {
        receipt.times.forgotten_at = None
    }),
    ("forgotten_time", 5, |receipt| {
        receipt.times.forgotten_at = Some(at(5))
    }),
    ("times_in_order", 1, |receipt| {
        receipt.times.forgotten_at = Some(at(0))
    }),
    ("times_in_order", 6, |receipt| {
        receipt.times.forgotten_at = Some(at(8))
    }),
    ("times_in_order", 3, |receipt| {
        receipt.times.scrubbed_at = Some(at(2))
    }),
    ("scrubbed_time", 3, |receipt| {
        receipt.times.scrubbed_at = None
    }),
    ("scrubbed_time", 5, |receipt| {
        receipt.times.scrubbed_at = Some(at(5))
    }),
    ("settles_earlier", 3, |receipt| {
        receipt.settles = Some(SettledRun { first: 1, last: 3 })
    }),
    ("settles_earlier", 3, |receipt| {
        receipt.settles = Some(SettledRun { first: 2, last: 1 })
    }),
    ("settles_earlier", 6, |receipt| {
        receipt.settles = Some(SettledRun { first: 1, last: 1 })
    }),
    ("withdrawn_time", 6, |receipt| {
        receipt.copies[0].withdrawn_at = None
    }),
    ("withdrawn_time", 6, |receipt| {
        receipt.copies[0].withdrawn_at = Some(at(1))
    }),
    ("withdrawn_time", 6, |receipt| {
        receipt.copies[1].withdrawn_at = Some(at(7))
    }),
    ("live_version", 6, |receipt| {
        receipt.copies[1].parameters = sha256(b"")
    }),
    ("release_given", 1, |receipt| receipt.release = None),
    ("release_given", 7, |receipt| receipt.release = None),
    ("release_given", 12, |receipt| receipt.release = None),
    ("audit_results", 9, |receipt| receipt.audit = Vec::new()),
    ("spends_calibrated", 12, |receipt| {
        receipt.release.as_mut().unwrap().calibration = None
    }),
    ("spends_calibrated", 12, |receipt| {
        receipt.release.as_mut().unwrap().noise = Some(0.0)
    }),
    ("spends_as_promised", 12, |receipt| {
        spent(receipt).delta = 1e-9
    }),
    ("spends_as_promised", 12, |receipt| {
        spent(receipt).epsilon = 2.5
    }),
    ("total_of_parts", 12, |receipt| {
        spent(receipt).total.as_mut().unwrap().epsilon = 1.0
    }),
    ("total_of_parts", 12, |receipt| {
        spent(receipt).total.as_mut().unwrap().releases = 0
    }),
    ("spent_since_earlier", 12, |receipt| {
        spent(receipt).since = Some(12)
    }),
    ("keys_named", 0, |receipt| receipt.keys = None),
    ("keys_named", 4, |receipt| receipt.keys = None),
    ("keys_named", 4, |receipt| {
        receipt.keys.as_mut().unwrap().next = "no key".to_owned()
    }),
    ("keys_named", 4, |receipt| {
        receipt.keys = Some(hand_over(&secret(), &secret(), &secret(), None))
    }),
    ("keys_named", 4, |receipt| {
        receipt.keys = Some(hand_over(&next_secret(), &secret(), &stranger(), None))
    }),
    ("keys_named", 4, |receipt| {
        receipt.keys = Some(first_keys(&secret(), None))
    }),
    ("keys_named", 4, |receipt| {
        receipt.keys = Some(hand_over(
            &secret(),
            &secret(),
            &next_secret(),
            Some(&next_secret()),
        ));
    }),
    ("keys_named", 0, |receipt| {
        receipt.keys = Some(first_keys(
            &SecretKey::from_seed("efface.example/model-2", &[1; 32]).unwrap(),
            None,
        ));
    }),
    ("keys_named", 5, |receipt| {
        receipt.keys = Some(first_keys(&next_secret(), None))
    }),
    ("head_before", 5, |receipt| receipt.previous = None),
    ("head_before", 5, |receipt| {
        receipt.previous.as_mut().unwrap().size = 0
    }),
    ("head_before", 5, |receipt| {
        receipt.previous.as_mut().unwrap().size = 6
    }),
];

fn spent(receipt: &mut Receipt) -> &mut PrivacySpent {
    receipt.release.as_mut().unwrap().privacy.as_mut().unwrap()
}

#[test]
fn rule_vectors() {
    let log = grown_log();
    let mut cases = Vec::new();
    for (name, place, change) in BROKEN {
        let mut receipt = log.signed[*place].receipt.clone();
        receipt.check().unwrap();
        change(&mut receipt);
        let rule = RULES.iter().find(|rule| rule.name == *name).unwrap();
        match receipt.check() {
            Err(ReceiptFault::Contradiction { problem, .. }) => {
                assert_eq!(problem, rule.says, "{name} {place}")
            }
            other => panic!("{name} {place}: {other:?}"),
        }
        // No verdict depends on a signature: a receipt that contradicts itself cannot be signed
        // either.
        assert!(SignedReceipt::sign(receipt.clone(), &secret()).is_err());
        cases.push(json!({"rule": name, "receipt": text(canonical::to_bytes(&receipt).unwrap())}));
    }
    for rule in RULES {
        assert!(
            BROKEN.iter().any(|(name, ..)| *name == rule.name),
            "no vector breaks {}",
            rule.name
        );
    }
    let sound: Vec<String> = log
        .signed
        .iter()
        .map(|signed| text(canonical::to_bytes(&signed.receipt).unwrap()))
        .collect();
    compare("rules.json", &json!({"sound": sound, "broken": cases}));
}

#[test]
fn bundle_vectors() {
    let cases: Vec<Value> = bundles()
        .into_iter()
        .map(|(name, bundle, expected)| {
            assert_eq!(verdict(verify_bytes(&bundle, &keys())), expected, "{name}");
            json!({"name": name, "bundle": base64(bundle), "verdict": expected})
        })
        .collect();
    let wrong = stranger().public().to_string();
    let keys = json!({
        "public_key": secret().public().to_string(), "next_key": next_secret().public().to_string(),
        "wrong_key": wrong, "cases": cases,
    });
    compare("bundles.json", &keys);
}

#[test]
fn log_vectors() {
    let log = log();
    let new = next_secret();
    let lines: Vec<String> = log.leaves.iter().map(base64).collect();
    let mut other = Log::new();
    for signed in &log.signed[..6] {
        let key = if signed.receipt.key_id == new.id() {
            next_secret()
        } else {
            secret()
        };
        other.push_as_is(signed.receipt.clone(), &key);
    }
    let early = other.checkpoint(&new);
    let early_proof = log.tree.consistency(6).unwrap();
    other.push(
        plain(6, RequestKind::Settle, set(2..21), sha256(&[3])),
        &new,
    );
    let forked = other.checkpoint(&new);
    other.push(
        plain(7, RequestKind::Settle, set(2..21), sha256(&[3])),
        &new,
    );
    let grown = other.checkpoint(&new);
    let late = log.checkpoint(&new);
    let same = ConsistencyProof {
        old: 7,
        new: 7,
        path: Vec::new(),
    };

    let mut broken = Log::new();
    broken.push(log.signed[0].receipt.clone(), &secret());
    let mut receipt = log.signed[1].receipt.clone();
    receipt.training_set.before = Some(set(1..21));
    broken.push(receipt, &secret());

    // Two forgets that were written together and do not account for all rows that left.
    let mut unbalanced = Log::new();
    unbalanced.push(log.signed[0].receipt.clone(), &secret());
    for sequence in [1, 2] {
        let mut receipt = log.signed[1].receipt.clone();
        receipt.sequence = sequence;
        receipt.training_set.after = set(5..20);
        unbalanced.push_as_is(receipt, &secret());
    }

    // A receipt that was written on an old head, though others stand between.
    let mut behind = Log::new();
    for signed in &log.signed[..3] {
        behind.push_as_is(signed.receipt.clone(), &secret());
    }
    let mut receipt = log.signed[3].receipt.clone();
    receipt.previous = log.signed[1].receipt.previous;
    behind.push_as_is(receipt, &secret());

    // A receipt that says it is older than it can be.
    let mut backdated = Log::new();
    backdated.push(log.signed[0].receipt.clone(), &secret());
    let mut receipt = log.signed[1].receipt.clone();
    receipt.times.received_at = at(-60);
    backdated.push(receipt, &secret());

    // Settles that name others than those that wait, by which a forget would never be scrubbed, or
    // twice.
    let whole = grown_log();
    let unsettled = |name: &'static str, runs: &[Option<(u64, u64)>]| {
        let mut other = Log::new();
        for signed in &whole.signed[..11] {
            let key = if signed.receipt.key_id == new.id() {
                next_secret()
            } else {
                secret()
            };
            other.push_as_is(signed.receipt.clone(), &key);
        }
        for (at, run) in (11..).zip(runs) {
            let mut settle = whole.signed[11].receipt.clone();
            settle.sequence = at;
            settle.settles = run.map(|(first, last)| SettledRun { first, last });
            settle.times.scrubbed_at = settle.times.scrubbed_at.filter(|_| run.is_some());
            other.push(settle, &new);
        }
        let lines = other.leaves.iter().map(base64).collect::<Vec<_>>();
        (name, lines, other.checkpoint(&new), "chain")
    };

    let swapped = |a: usize, b: usize| {
        let mut lines = lines.clone();
        lines.swap(a, b);
        lines
    };
    let broken_lines = broken.leaves.iter().map(base64).collect::<Vec<_>>();
    let logs: Vec<Value> = [
        ("whole", lines.clone(), late.clone(), "ok"),
        (
            "two receipts swapped",
            swapped(1, 2),
            late.clone(),
            "inclusion",
        ),
        (
            "last receipt cut off",
            lines[..6].to_vec(),
            late.clone(),
            "inclusion",
        ),
        (
            "first receipt cut off",
            lines[1..].to_vec(),
            late.clone(),
            "key",
        ),
        (
            "checkpoint of a fork",
            lines.clone(),
            forked.clone(),
            "fork",
        ),
        (
            "states do not meet",
            broken_lines,
            broken.checkpoint(&secret()),
            "chain",
        ),
        (
            "rows that no receipt accounts for",
            unbalanced.leaves.iter().map(base64).collect(),
            unbalanced.checkpoint(&secret()),
            "chain",
        ),
        (
            "written on an old head",
            behind.leaves.iter().map(base64).collect(),
            behind.checkpoint(&secret()),
            "consistency",
        ),
        (
            "older than the receipt before it",
            backdated.leaves.iter().map(base64).collect(),
            backdated.checkpoint(&secret()),
            "chain",
        ),
        (
            "key lost and recovered",
            recovered_log().leaves.iter().map(base64).collect(),
            recovered_log().checkpoint(&new),
            "ok",
        ),
        (
            "scrubbed later",
            whole.leaves.iter().map(base64).collect::<Vec<_>>(),
            whole.checkpoint(&new),
            "ok",
        ),
        unsettled("a settle that leaves one out", &[Some((8, 9))]),
        unsettled("a settle that starts too late", &[Some((10, 10))]),
        unsettled("a settle that leaves all out", &[None]),
        unsettled("settled twice", &[Some((8, 10)), Some((8, 10))]),
    ]
    .into_iter()
    .map(|(name, lines, note, expected)| {
        let mut replay = LogReplay::new(&keys());
        let leaf = |line: &String| data_encoding::BASE64.decode(line.as_bytes()).unwrap();
        let result = lines
            .iter()
            .try_for_each(|line| replay.push(&leaf(line)).map(|_| ()));
        assert_eq!(
            verdict(result.and_then(|()| replay.finish(&note))),
            expected,
            "{name}"
        );
        json!({"name": name, "log": lines, "checkpoint": note, "verdict": expected})
    })
    .collect();

    let mut ring = keys();
    ring.follow(&log.signed[4]).unwrap();
    let successions: Vec<Value> = [
        ("grown", &early, &late, &early_proof, "ok"),
        ("the same", &late, &late, &same, "ok"),
        ("shrunk", &late, &early, &early_proof, "consistency"),
        ("forked", &late, &forked, &same, "fork"),
        (
            "grown on a fork",
            &late,
            &grown,
            &other.tree.consistency(7).unwrap(),
            "consistency",
        ),
        ("proof of other sizes", &early, &late, &same, "consistency"),
    ]
    .into_iter()
    .map(|(name, old, new, proof, expected)| {
        assert_eq!(
            verdict(verify_succession(old, new, proof, &ring)),
            expected,
            "{name}"
        );
        json!({"name": name, "old": old, "new": new, "proof": proof, "verdict": expected})
    })
    .collect();
    let key = secret().public().to_string();
    compare(
        "logs.json",
        &json!({"public_key": key, "rotation": lines[4], "logs": logs, "successions": successions}),
    );
}

/// A head as it is cosigned by witnesses, and what is refused.
#[test]
fn witness_vectors() {
    let log = log();
    let note = log.bundle(1, &secret()).head.checkpoint;
    let head = LogCheckpoint::parse_unverified(&note).unwrap();
    let witness = |name: &str, seed: u8| SecretKey::from_seed(name, &[seed; 32]).unwrap();
    let all = [
        witness("witness.example/1", 21),
        witness("witness.example/2", 22),
        witness("witness.example/3", 23),
    ];
    let key = |at: usize| WitnessKey::new(all[at].public()).to_string();
    let line = |at: usize, time: u64| cosign(&head, time, &all[at]).unwrap();
    let two = format!("{note}{}{}", line(0, 1_772_442_900), line(1, 1_772_442_901));
    let other = LogCheckpoint {
        size: head.size + 1,
        ..head.clone()
    };
    let keys = format!("{}\n{}\n{}\n", key(0), key(1), key(2));
    let plain = SecretKey::from_seed("witness.example/1", &[21; 32]).unwrap();
    let mut cases = vec![
        ("two of three", keys.clone(), 2, two.clone(), "ok"),
        ("one of three", keys.clone(), 1, two.clone(), "ok"),
        ("three of three", keys.clone(), 3, two.clone(), "witness"),
        ("none signed", keys.clone(), 1, note.clone(), "witness"),
        (
            "one signed twice",
            keys.clone(),
            2,
            format!("{note}{}{}", line(0, 1), line(0, 2)),
            "witness",
        ),
        ("a stranger beside", key(2), 1, two.clone(), "witness"),
        (
            "another head",
            keys.clone(),
            1,
            format!("{note}{}", cosign(&other, 5, &all[0]).unwrap()),
            "witness",
        ),
        (
            "a wrong one beside two",
            keys.clone(),
            2,
            format!("{two}{}", cosign(&other, 5, &all[2]).unwrap()),
            "witness",
        ),
        (
            "a key listed twice",
            format!("{}\n{}\n", key(0), key(0)),
            2,
            two.clone(),
            "key",
        ),
        ("no quorum", keys.clone(), 0, two.clone(), "key"),
        (
            "the key of a log",
            plain.public().to_string(),
            1,
            two.clone(),
            "key",
        ),
        ("no witness", String::new(), 1, two.clone(), "key"),
    ];
    for (name, other) in [
        ("one key under two names", witness("witness.example/9", 21)),
        ("two keys under one name", witness("witness.example/1", 24)),
    ] {
        let listed = format!("{}\n{}\n", key(0), WitnessKey::new(other.public()));
        cases.push((name, listed, 1, two.clone(), "key"));
    }
    // The time is signed along.
    let bytes = data_encoding::BASE64
        .decode(line(0, 7).trim_end().rsplit(' ').next().unwrap().as_bytes())
        .unwrap();
    let mut later = bytes.clone();
    later[11] ^= 1;
    let moved = line(0, 7).replace(&base64(&bytes), &base64(&later));
    cases.push((
        "another time",
        keys.clone(),
        1,
        format!("{note}{moved}"),
        "witness",
    ));
    let vectors: Vec<Value> = cases
        .into_iter()
        .map(|(name, keys, quorum, note, expected)| {
            let found = WitnessQuorum::parse(&keys, Some(quorum)).and_then(|quorum| quorum.verify(&note));
            assert_eq!(verdict(found), expected, "{name}");
            json!({"name": name, "witnesses": keys, "quorum": quorum, "checkpoint": note, "expected": expected})
        })
        .collect();
    compare("witness.json", &json!(vectors));
}
