//! The vectors in verify/vectors, which the Python verifier reads too. They are made here from fixed keys and times;
//! this test fails when they would come out differently. `EFFACE_WRITE_VECTORS=1` writes them.
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

mod common;

use std::{collections::BTreeMap, path::PathBuf};

use common::*;
use efface_receipt::{
    training_set::{MembershipProof, SetNode, build},
    *,
};
use serde_json::{Value, json};

fn compare(name: &str, vectors: &Value) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../verify/vectors").join(name);
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

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
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
    bits.extend((0..2046).step_by(31).map(|exponent: u64| (exponent + 1) << 52));
    bits.extend([0.5, 5e-324, 1e21, 1e-7, 123456789012345680.0, 2f64.powi(60)].map(f64::to_bits));
    let numbers: Vec<Value> = bits
        .into_iter()
        .filter_map(|bits| {
            Some(json!([format!("{bits:016x}"), canonical::ecmascript(f64::from_bits(bits))?]))
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
        assert!(canonical::parse(case.as_bytes(), "a vector", 10_000).is_err(), "{case}");
    }
    compare("canonical.json", &json!({"numbers": numbers, "texts": texts, "refused": refused}));
}

#[test]
fn tree_vectors() {
    let mut log = MemoryLog::default();
    let leaves: Vec<String> = (0..13).map(|i| format!("leaf {i}")).collect();
    let mut sizes = vec![json!({"size": 0, "root": log.head().root})];
    for leaf in &leaves {
        log.append(&leaf_hash(leaf.as_bytes()));
        let head = log.head();
        let inclusion: Vec<_> = (0..head.size).map(|index| log.inclusion(index).unwrap()).collect();
        let consistency: Vec<_> = (0..=head.size).map(|old| log.consistency(old).unwrap()).collect();
        let size = head.size;
        let root = head.root;
        sizes.push(json!({"size": size, "root": root, "inclusion": inclusion, "consistency": consistency}));
    }
    compare("tree.json", &json!({"leaves": leaves, "sizes": sizes}));
}

#[test]
fn training_set_vectors() {
    let mut keys: Vec<Hash> = (0..40).map(row).collect();
    keys.sort();
    let mut cells: BTreeMap<u64, SetNode> = BTreeMap::new();
    let state = build(&mut cells, 3, keys.iter().map(|key| Ok(*key))).unwrap();
    let between =
        |low: &Hash, high: &Hash| Ok(keys.iter().filter(|key| low <= key && key <= &high).copied().collect());
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
fn bundles() -> Vec<(&'static str, String, &'static str)> {
    let log = log();
    let new = next_secret();
    let good = |index: usize| log.bundle(index, &new);
    let grown = grown_log();
    let late = |index: usize| grown.bundle(index, &new);
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
        ("no consistency proof", ReceiptBundle { consistency: None, ..good(2) }, "ok"),
        ("rotation left out", ReceiptBundle { rotations: Vec::new(), ..good(6) }, "key"),
        ("rotation left out, old receipt", ReceiptBundle { rotations: Vec::new(), ..good(1) }, "checkpoint"),
        ("proof of another receipt", ReceiptBundle { inclusion: good(3).inclusion, ..good(2) }, "inclusion"),
        ("receipt of another place", ReceiptBundle { signed: good(3).signed, ..good(2) }, "inclusion"),
        (
            "consistency proof of another",
            ReceiptBundle { consistency: good(3).consistency, ..good(2) },
            "consistency",
        ),
        ("old key signs the whole log", log.bundle(6, &secret()), "key"),
        ("stranger signs the checkpoint", log.bundle(1, &stranger()), "checkpoint"),
        ("unknown schema", ReceiptBundle { schema: "efface.bundle/2".to_owned(), ..good(1) }, "schema"),
    ];
    let mut changed = good(1);
    changed.signed.receipt.rows.removed = 3;
    cases.push(("a count was changed", changed, "signature"));
    let mut contradicting = good(1);
    contradicting.signed.receipt.outcome = RequestOutcome::Refused;
    cases.push(("the outcome was changed", contradicting, "schema"));
    let exact = |bound: Option<DistanceBound>| {
        let mut bundle = good(1);
        bundle.signed.receipt.bound = bound;
        bundle
    };
    let measured =
        |distance, relative| Some(DistanceBound { distance, relative, source: BoundOrigin::Measured });
    cases.extend([
        ("exact without a bound", exact(None), "schema"),
        ("exact with a bound that says nothing", exact(measured(None, None)), "schema"),
        ("exact without a relative bound", exact(measured(Some(3.5e-15), None)), "schema"),
        ("exact without a distance", exact(measured(None, Some(2.5e-16))), "schema"),
        ("exact with a tolerance below the bound", exact(measured(Some(3.5e-7), Some(2.7e-8))), "schema"),
    ]);
    // The rule is about what is claimed: an approximate result may be any distance away, and says so.
    let mut approximate = exact(measured(None, None));
    approximate.signed.receipt.claim = Some(ReceiptClaim::Approximate {});
    cases.push(("approximate, unsigned, without a bound", approximate, "signature"));
    let spending = |name, change: &dyn Fn(&mut ReleaseTerms, &mut PrivacySpent)| {
        let mut bundle = late(12);
        let release = bundle.signed.receipt.release.as_mut().unwrap();
        let mut spent = release.privacy.take().unwrap();
        change(release, &mut spent);
        release.privacy = Some(spent);
        (name, bundle, "schema")
    };
    let total = |spent: &mut PrivacySpent| spent.total.clone().unwrap();
    cases.extend([
        spending("a total below a part of it", &|_, spent| {
            spent.total = Some(PrivacyTotal { epsilon: 1.0, ..total(spent) });
        }),
        spending("a total of no exports", &|_, spent| {
            spent.total = Some(PrivacyTotal { releases: 0, ..total(spent) });
        }),
        spending("spent at another δ than promised", &|_, spent| spent.delta = 1e-9),
        spending("more spent than promised", &|_, spent| spent.epsilon = 2.5),
        spending("spent and not calibrated", &|release, _| release.calibration = None),
        spending("spent without noise", &|release, _| release.noise = Some(0.0)),
        spending("spent since a later receipt", &|_, spent| spent.since = Some(12)),
    ]);
    let mut swapped = good(1);
    swapped.inclusion.path.swap(0, 1);
    cases.push(("the path was reordered", swapped, "inclusion"));
    let mut renamed = good(1);
    renamed.checkpoint = renamed.checkpoint.replace(ORIGIN, "efface.example/model-2");
    cases.push(("another log's checkpoint", renamed, "checkpoint"));
    let mut cases: Vec<_> = cases
        .into_iter()
        .map(|(name, bundle, expected)| (name, text(bundle.to_bytes().unwrap()), expected))
        .collect();
    let plain = text(good(1).to_bytes().unwrap());
    cases.push(("a space was added", plain.replacen(':', ": ", 1), "canonical"));
    cases.push(("a newline was added", plain.clone() + "\n", "canonical"));
    cases.push(("cut short", plain[..plain.len() - 1].to_owned(), "canonical"));
    cases.push(("a null was left out", plain.replace("\"settles\":null,", ""), "schema"));
    cases.push((
        "an unknown field",
        plain.replace("\"settles\":null,", "\"settles\":null,\"sex\":1,"),
        "schema",
    ));
    cases.push(("too deep", "[".repeat(1000), "limits"));
    let early = plain.replace("\"forgotten_at\":\"2026-03-02T09:", "\"forgotten_at\":\"2026-03-02T08:");
    assert_ne!(early, plain);
    cases.push(("forgotten before it was received", early, "schema"));
    cases.push(("a time that does not exist", plain.replace("2026-03-02T", "2026-02-30T"), "schema"));
    cases
}

#[test]
fn bundle_vectors() {
    let cases: Vec<Value> = bundles()
        .into_iter()
        .map(|(name, bundle, expected)| {
            assert_eq!(verdict(verify_bytes(bundle.as_bytes(), &keys())), expected, "{name}");
            json!({"name": name, "bundle": bundle, "verdict": expected})
        })
        .collect();
    let wrong = stranger().public().to_string();
    compare(
        "bundles.json",
        &json!({"public_key": secret().public().to_string(), "wrong_key": wrong, "cases": cases}),
    );
}

#[test]
fn log_vectors() {
    let log = log();
    let new = next_secret();
    let lines: Vec<String> = log.leaves.iter().cloned().map(text).collect();
    let mut other = Log::new();
    for signed in &log.signed[..6] {
        let key = if signed.receipt.key_id == new.id() { next_secret() } else { secret() };
        other.push_as_is(signed.receipt.clone(), &key);
    }
    let early = other.checkpoint(&new);
    let early_proof = log.tree.consistency(6).unwrap();
    other.push(plain(6, RequestKind::Export, set(2..21), sha256(&[3])), &new);
    let forked = other.checkpoint(&new);
    other.push(plain(7, RequestKind::Export, set(2..21), sha256(&[3])), &new);
    let grown = other.checkpoint(&new);
    let late = log.checkpoint(&new);
    let same = ConsistencyProof { old: 7, new: 7, path: Vec::new() };

    let mut broken = Log::new();
    broken.push(log.signed[0].receipt.clone(), &secret());
    let mut receipt = log.signed[1].receipt.clone();
    receipt.training_set.before = Some(set(1..20));
    broken.push(receipt, &secret());

    // A receipt that says it is older than it can be.
    let mut backdated = Log::new();
    backdated.push(log.signed[0].receipt.clone(), &secret());
    let mut receipt = log.signed[1].receipt.clone();
    receipt.times.received_at = at(-60);
    backdated.push(receipt, &secret());

    // Settles that name others than those that wait, by which a forget would never be scrubbed, or twice.
    let whole = grown_log();
    let unsettled = |name: &'static str, runs: &[Option<(u64, u64)>]| {
        let mut other = Log::new();
        for signed in &whole.signed[..11] {
            let key = if signed.receipt.key_id == new.id() { next_secret() } else { secret() };
            other.push_as_is(signed.receipt.clone(), &key);
        }
        for (at, run) in (11..).zip(runs) {
            let mut settle = whole.signed[11].receipt.clone();
            settle.sequence = at;
            settle.settles = run.map(|(first, last)| SettledRun { first, last });
            settle.times.scrubbed_at = settle.times.scrubbed_at.filter(|_| run.is_some());
            other.push(settle, &new);
        }
        let lines = other.leaves.iter().cloned().map(text).collect::<Vec<_>>();
        (name, lines, other.checkpoint(&new), "chain")
    };

    let swapped = |a: usize, b: usize| {
        let mut lines = lines.clone();
        lines.swap(a, b);
        lines
    };
    let broken_lines = broken.leaves.iter().cloned().map(text).collect::<Vec<_>>();
    let logs: Vec<Value> = [
        ("whole", lines.clone(), late.clone(), "ok"),
        ("two receipts swapped", swapped(1, 2), late.clone(), "inclusion"),
        ("last receipt cut off", lines[..6].to_vec(), late.clone(), "inclusion"),
        ("first receipt cut off", lines[1..].to_vec(), late.clone(), "inclusion"),
        ("checkpoint of a fork", lines.clone(), forked.clone(), "fork"),
        ("states do not meet", broken_lines, broken.checkpoint(&secret()), "chain"),
        (
            "older than the receipt before it",
            backdated.leaves.iter().cloned().map(text).collect(),
            backdated.checkpoint(&secret()),
            "chain",
        ),
        (
            "scrubbed later",
            whole.leaves.iter().cloned().map(text).collect::<Vec<_>>(),
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
        let result = lines.iter().try_for_each(|line| replay.push(line.as_bytes()).map(|_| ()));
        assert_eq!(verdict(result.and_then(|()| replay.finish(&note))), expected, "{name}");
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
        ("grown on a fork", &late, &grown, &other.tree.consistency(7).unwrap(), "consistency"),
        ("proof of other sizes", &early, &late, &same, "consistency"),
    ]
    .into_iter()
    .map(|(name, old, new, proof, expected)| {
        assert_eq!(verdict(verify_succession(old, new, proof, &ring)), expected, "{name}");
        json!({"name": name, "old": old, "new": new, "proof": proof, "verdict": expected})
    })
    .collect();
    let key = secret().public().to_string();
    compare(
        "logs.json",
        &json!({"public_key": key, "rotation": lines[4], "logs": logs, "successions": successions}),
    );
}
