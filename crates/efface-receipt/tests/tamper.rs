//! What an adversary may try: every byte flipped, pieces cut, reordered, swapped, forged; and input
//! meant to exhaust.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

mod common;

use common::*;
use efface_receipt::*;

#[test]
fn honest_bundles_and_log_verify() {
    let log = log();
    let new = next_secret();
    for index in 0..log.leaves.len() {
        let bytes = log.bundle(index, &new).to_bytes().unwrap();
        let verified = verify_bytes(&bytes, &keys()).unwrap();
        assert_eq!(verified.receipt, log.signed[index].receipt);
        assert_eq!(verified.checkpoint.size, 7);
    }
    log.replay(&new).unwrap();
}

#[test]
fn every_bit_of_a_bundle_counts() {
    let bytes = log().bundle(1, &next_secret()).to_bytes().unwrap();
    let keys = keys();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            assert!(
                verify_bytes(&changed, &keys).is_err(),
                "bit {bit} of byte {at}"
            );
        }
    }
}

#[test]
fn every_byte_of_a_log_counts() {
    let log = log();
    let note = log.checkpoint(&next_secret());
    let verdict = |leaves: &[Vec<u8>], note: &[u8]| -> Result<(), ()> {
        let mut replay = LogReplay::new(&keys());
        for leaf in leaves {
            replay.push(leaf).map_err(|_| ())?;
        }
        replay
            .finish(std::str::from_utf8(note).map_err(|_| ())?)
            .map(|_| ())
            .map_err(|_| ())
    };
    verdict(&log.leaves, note.as_bytes()).unwrap();
    for which in 0..log.leaves.len() {
        for at in 0..log.leaves[which].len() {
            let mut leaves = log.leaves.clone();
            leaves[which][at] ^= 1 << (at % 8);
            assert!(
                verdict(&leaves, note.as_bytes()).is_err(),
                "byte {at} of receipt {which}"
            );
        }
    }
    for at in 0..note.len() {
        for bit in 0..8 {
            let mut changed = note.clone().into_bytes();
            changed[at] ^= 1 << bit;
            assert!(
                verdict(&log.leaves, &changed).is_err(),
                "bit {bit} of byte {at} of the checkpoint"
            );
        }
    }
}

#[test]
fn truncation_and_additions_are_refused() {
    let bytes = log().bundle(6, &next_secret()).to_bytes().unwrap();
    let keys = keys();
    for end in 0..bytes.len() {
        assert!(verify_bytes(&bytes[..end], &keys).is_err(), "cut at {end}");
        assert!(
            verify_bytes(&bytes[end + 1..], &keys).is_err(),
            "cut before {end}"
        );
    }
    for more in [b"\n".as_slice(), b" ", b"{}", b"\0", &bytes] {
        assert!(verify_bytes(&[&bytes, more].concat(), &keys).is_err());
    }
}

#[test]
fn a_log_that_is_reordered_shortened_or_repeated_is_refused() {
    let log = log();
    let note = log.checkpoint(&next_secret());
    let replay = |order: &[usize]| {
        let mut replay = LogReplay::new(&keys());
        for &i in order {
            replay.push(&log.leaves[i])?;
        }
        replay.finish(&note)
    };
    replay(&[0, 1, 2, 3, 4, 5, 6]).unwrap();
    for order in [
        [0, 2, 1, 3, 4, 5, 6].as_slice(),
        &[0, 1, 2, 3, 4, 6, 5],
        &[0, 1, 2, 3, 4, 5],
        &[1, 2, 3, 4, 5, 6],
        &[0, 1, 1, 2, 3, 4, 5, 6],
        &[0, 1, 3, 4, 5, 6],
        &[],
    ] {
        assert!(replay(order).is_err(), "{order:?}");
    }
}

#[test]
fn pieces_of_different_bundles_do_not_fit() {
    let log = log();
    let new = next_secret();
    let good = log.bundle(2, &new);
    let other = log.bundle(3, &new);
    let keys = keys();
    let check = |bundle: &ReceiptBundle| verify(bundle, &keys).map_err(|fault| fault.check());
    assert!(check(&good).is_ok());
    assert_eq!(
        check(&ReceiptBundle {
            signed: other.signed.clone(),
            ..good.clone()
        }),
        Err("inclusion")
    );
    assert_eq!(
        check(&ReceiptBundle {
            inclusion: other.inclusion.clone(),
            ..good.clone()
        }),
        Err("inclusion")
    );
    assert_eq!(
        check(&ReceiptBundle {
            consistency: other.consistency.clone(),
            ..good.clone()
        }),
        Err("consistency")
    );
    let signature = other.signed.signature;
    let forged = SignedReceipt {
        signature,
        ..good.signed.clone()
    };
    assert_eq!(
        check(&ReceiptBundle {
            signed: forged,
            ..good.clone()
        }),
        Err("signature")
    );
    assert_eq!(
        check(&ReceiptBundle {
            keys: Vec::new(),
            ..good.clone()
        }),
        Err("checkpoint")
    );
    let mut longer = good.clone();
    longer.inclusion.path.push(Hash([0; 32]));
    assert_eq!(check(&longer), Err("inclusion"));
    let mut older = Log::new();
    for signed in &log.signed[..3] {
        older.push_as_is(signed.receipt.clone(), &secret());
    }
    let stale = ReceiptBundle {
        head: older.head(&secret()),
        ..good.clone()
    };
    assert_eq!(check(&stale), Err("inclusion"));
}

#[test]
fn wrong_keys_are_refused() {
    let bundle = log().bundle(1, &next_secret());
    let fault = verify(&bundle, &KeyRing::from(stranger().public())).unwrap_err();
    assert_eq!(fault, ReceiptFault::CheckpointUnsigned);
    assert!(verify(&bundle, &KeyRing::default()).is_err());
    let renamed = SecretKey::from_seed("efface.example/model-2", &[1; 32]).unwrap();
    assert_eq!(
        verify(&bundle, &KeyRing::from(renamed.public()))
            .unwrap_err()
            .check(),
        "checkpoint"
    );
    let wrong_key = KeyRing::from(stranger().public());
    assert!(matches!(
        log().replay_with(&wrong_key, &next_secret()),
        Err(ReceiptFault::UnknownKey { .. })
    ));
}

#[test]
fn a_key_that_handed_over_signs_no_more() {
    let mut log = log();
    let last = log.signed[6].receipt.clone();
    // A holder of the old key goes on after the rotation, in a log of their own.
    let mut forged = Log::new();
    for signed in &log.signed[..5] {
        forged.push_as_is(signed.receipt.clone(), &secret());
    }
    let mut receipt = plain(
        5,
        RequestKind::Settle,
        last.training_set.before.unwrap(),
        last.parameters.before.unwrap(),
    );
    receipt.training_set = StateChange {
        before: Some(set(2..20)),
        after: set(2..20),
    };
    receipt.parameters = StateChange {
        before: Some(sha256(&[2])),
        after: sha256(&[2]),
    };
    forged.push(receipt, &secret());
    assert!(matches!(
        verify(&forged.bundle(5, &secret()), &keys()),
        Err(ReceiptFault::RetiredKey { .. })
    ));
    assert!(matches!(
        forged.replay(&secret()),
        Err(ReceiptFault::RetiredKey { .. })
    ));
    // A checkpoint of the whole log signed by the old key.
    let mut bundle = log.bundle(6, &next_secret());
    bundle.head = log.head(&secret());
    assert!(matches!(
        verify(&bundle, &keys()),
        Err(ReceiptFault::RetiredKey { .. })
    ));
    // A second hand-over by the same key.
    let mut ring = keys();
    ring.follow(&log.signed[4]).unwrap();
    ring.follow(&log.signed[4]).unwrap();
    let mut second = log.signed[4].receipt.clone();
    second.keys = Some(hand_over(&secret(), &secret(), &stranger(), None));
    assert!(matches!(
        ring.follow(&SignedReceipt::sign(second, &secret()).unwrap()),
        Err(ReceiptFault::RetiredKey { .. })
    ));
    assert!(ring.follow(&log.signed.remove(5)).is_err());
}

#[test]
fn any_key_of_the_receipts_own_time_or_later_will_do() {
    let old = secret();
    let new = next_secret();
    for log in [log(), recovered_log()] {
        for index in 0..log.leaves.len() {
            let bytes = log.bundle(index, &new).to_bytes().unwrap();
            for key in [&old, &new] {
                let ring = KeyRing::from(key.public());
                let verified = verify_bytes(&bytes, &ring).unwrap();
                assert_eq!(
                    verified.receipt, log.signed[index].receipt,
                    "receipt {index}"
                );
            }
        }
        for key in [&old, &new] {
            log.replay_with(&KeyRing::from(key.public()), &new).unwrap();
        }
        assert!(
            log.replay_with(&KeyRing::from(stranger().public()), &new)
                .is_err()
        );
    }
}

#[test]
fn an_old_key_cannot_go_on_where_the_hand_over_is_left_out() {
    let log = log();
    // The holder of the old key signs a log of their own that never handed over, and shows nothing
    // else.
    let mut forged = Log::new();
    for signed in &log.signed[..4] {
        forged.push_as_is(signed.receipt.clone(), &secret());
    }
    for sequence in [4, 5] {
        forged.push(
            plain(sequence, RequestKind::Settle, set(2..20), sha256(&[2])),
            &secret(),
        );
    }
    let bundle = ReceiptBundle {
        keys: Vec::new(),
        ..forged.bundle(5, &secret())
    };
    // Whoever knows of the new key, or until when the old one signed, refuses it.
    let new = next_secret().public();
    let known = KeyRing::parse(&format!("{} until 4\n{new}\n", secret().public())).unwrap();
    for keys in [KeyRing::from(new.clone()), known.clone()] {
        assert!(verify(&bundle, &keys).is_err());
        assert!(forged.replay_with(&keys, &secret()).is_err());
    }
    assert!(matches!(
        verify(&bundle, &known),
        Err(ReceiptFault::RetiredKey { .. })
    ));
    // The same list verifies what the old key signed in its time, with the head of that time and
    // with the newest.
    let mut early = Log::new();
    for signed in &log.signed[..4] {
        early.push_as_is(signed.receipt.clone(), &secret());
    }
    verify(&early.bundle(1, &secret()), &known).unwrap();
    verify(&log.bundle(1, &next_secret()), &known).unwrap();
    early.replay_with(&known, &secret()).unwrap();
    // A hand-over to a key that never agreed does not make its owner vouch for the log.
    let mut named = log.signed[4].receipt.clone();
    named.sequence = 6;
    forged.push(named, &secret());
    assert!(
        forged
            .replay_with(&KeyRing::from(new.clone()), &secret())
            .is_err()
    );
    assert!(verify(&forged.bundle(5, &secret()), &KeyRing::from(new)).is_err());
    // A list with two keys that both sign without end does not say which of them signs now.
    let both = format!("{}\n{}\n", secret().public(), next_secret().public());
    assert!(KeyRing::parse(&both).is_err());
    assert!(KeyRing::parse("").is_err());
}

#[test]
fn only_the_recovery_key_of_the_log_takes_over() {
    let old = secret();
    let new = next_secret();
    let mut log = Log::new();
    for signed in &recovered_log().signed[..4] {
        log.push_as_is(signed.receipt.clone(), &old);
    }
    let mut rotation = recovered_log().signed[4].receipt.clone();
    rotation.keys = Some(hand_over(&stranger(), &old, &new, None));
    log.push(rotation, &stranger());
    assert!(log.replay(&new).is_err());
    assert!(verify(&log.bundle(1, &new), &keys()).is_err());
    // A bundle that does not show who the recovery key is does not lead from the old key to the new
    // one.
    let mut bundle = recovered_log().bundle(1, &new);
    bundle.keys.remove(0);
    assert!(verify(&bundle, &keys()).is_err());
}

#[test]
fn forks_and_shrinking_are_named() {
    let log = log();
    let new = next_secret();
    let mut keys = keys();
    keys.follow(&log.signed[4]).unwrap();
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
    let late = log.checkpoint(&new);
    verify_succession(&early, &late, &log.tree.consistency(6).unwrap(), &keys).unwrap();
    verify_succession(&late, &late, &log.tree.consistency(7).unwrap(), &keys).unwrap();
    let shrunk = verify_succession(&late, &early, &log.tree.consistency(6).unwrap(), &keys);
    assert_eq!(shrunk, Err(ReceiptFault::Shrunk { old: 7, new: 6 }));

    let state = set(2..21);
    let parameters = sha256(&[3]);
    other.push(plain(6, RequestKind::Settle, state, parameters), &new);
    let forked = other.checkpoint(&new);
    let empty = ConsistencyProof {
        old: 7,
        new: 7,
        path: Vec::new(),
    };
    assert!(matches!(
        verify_succession(&late, &forked, &empty, &keys),
        Err(ReceiptFault::Fork { size: 7, .. })
    ));
    // Growing on top of the fork does not hide it.
    other.push(plain(7, RequestKind::Settle, state, parameters), &new);
    let grown = other.checkpoint(&new);
    let proof = other.tree.consistency(7).unwrap();
    assert_eq!(
        verify_succession(&late, &grown, &proof, &keys),
        Err(ReceiptFault::Consistency { old: 7, new: 8 })
    );
    // A receipt written on top of another log is found when the whole log is read.
    let mut mixed = Log::new();
    for signed in &log.signed[..2] {
        mixed.push_as_is(signed.receipt.clone(), &secret());
    }
    let mut receipt = log.signed[2].receipt.clone();
    receipt.previous = Some(LogHead {
        size: 2,
        root: Hash([7; 32]),
    });
    mixed.push_as_is(receipt, &secret());
    assert_eq!(
        mixed.replay(&secret()),
        Err(ReceiptFault::Previous { sequence: 2 })
    );
}

#[test]
fn a_log_whose_states_do_not_meet_is_refused() {
    let log = log();
    let mut broken = Log::new();
    broken.push(log.signed[0].receipt.clone(), &secret());
    let mut receipt = log.signed[1].receipt.clone();
    receipt.training_set.before = Some(set(1..21));
    broken.push(receipt, &secret());
    assert_eq!(
        broken.replay(&secret()),
        Err(ReceiptFault::Chain {
            sequence: 1,
            what: "the training set"
        })
    );
}

#[test]
fn receipts_written_together_account_for_every_row() {
    let log = log();
    // Two requests that were applied together share one change: 20 rows before, 18 after.
    let replay = |removed: u64| {
        let mut group = Log::new();
        group.push(log.signed[0].receipt.clone(), &secret());
        let head = group.tree.head();
        for sequence in [1, 2] {
            let mut receipt = log.signed[1].receipt.clone();
            receipt.sequence = sequence;
            receipt.previous = Some(head);
            receipt.rows.removed = removed;
            group.push_as_is(receipt, &secret());
        }
        group.replay(&secret())
    };
    replay(1).unwrap();
    let what = "the rows of receipts written together";
    assert_eq!(replay(2), Err(ReceiptFault::Chain { sequence: 2, what }));
}

#[test]
fn contradictions_are_not_signed() {
    let log = log();
    type StateChange = fn(&mut Receipt);
    let changes: [(&str, StateChange); 21] = [
        ("schema", |r| r.schema = "efface.receipt/2".to_owned()),
        ("id", |r| r.id = "x".to_owned()),
        ("outcome", |r| r.outcome = RequestOutcome::Done),
        ("no rows", |r| r.rows.removed = 0),
        ("no commitment", |r| r.rows.commitment = None),
        ("no time", |r| r.times.forgotten_at = None),
        ("refused", |r| r.outcome = RequestOutcome::Refused),
        ("no claim", |r| r.claim = None),
        ("negative", |r| {
            r.claim = Some(ReceiptClaim::Exact { tolerance: -1.0 })
        }),
        ("infinite", |r| {
            r.bound.as_mut().unwrap().distance = Some(f64::INFINITY)
        }),
        ("exact without a bound", |r| r.bound = None),
        ("exact without a distance", |r| {
            r.bound.as_mut().unwrap().distance = None
        }),
        ("exact without a relative bound", |r| {
            r.bound.as_mut().unwrap().relative = None
        }),
        ("exact beyond the tolerance", |r| {
            r.bound.as_mut().unwrap().relative = Some(1.1e-10)
        }),
        ("control", |r| r.reason = Some("a\u{1b}[31m".to_owned())),
        ("long", |r| {
            r.not_covered = vec![uncovered("x", &"x".repeat(2000))]
        }),
        ("no code", |r| r.not_covered = vec![uncovered("", "x")]),
        ("code", |r| {
            r.not_covered = vec![uncovered("Chosen words", "x")]
        }),
        ("code of what is kept", |r| {
            r.kept_beside = vec![uncovered("Blocks", "x")]
        }),
        ("previous", |r| r.previous = None),
        ("keys", |r| r.keys = Some(first_keys(&secret(), None))),
    ];
    for (name, change) in changes {
        let mut receipt = log.signed[1].receipt.clone();
        SignedReceipt::sign(receipt.clone(), &secret()).unwrap();
        change(&mut receipt);
        assert!(SignedReceipt::sign(receipt, &secret()).is_err(), "{name}");
    }
    let mut receipt = log.signed[1].receipt.clone();
    receipt.settings.insert("big".to_owned(), u64::MAX.into());
    assert!(matches!(
        SignedReceipt::sign(receipt, &secret()),
        Err(ReceiptFault::Unwritable(_))
    ));
    assert!(SignedReceipt::sign(log.signed[1].receipt.clone(), &stranger()).is_err());
}

#[test]
fn missing_and_unknown_fields_are_refused() {
    let log = log();
    for (from, to) in [
        ("\"settles\":null,", ""),
        ("\"keys\":null,", ""),
        ("\"not_covered\":[", "\"not_covered\":null,\"nox\":["),
        ("\"adaptive\":false", "\"adaptive\":false,\"also\":1"),
        ("\"noise\":0.01", "\"noise\":0.01,\"noisf\":1"),
    ] {
        let change = |text: &str| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        };
        let changed = with_payload(&log.leaves[6], change);
        assert_eq!(
            SignedReceipt::parse(&changed).unwrap_err().check(),
            "schema",
            "{from}"
        );
    }
}

#[test]
fn input_meant_to_exhaust_is_refused_early() {
    let keys = keys();
    let megabytes = 64 << 20;
    for bytes in [
        vec![b'['; megabytes],
        vec![b'['; 100_000],
        b"{\"a\":".repeat(100_000),
        vec![b'"'; 100_000],
        vec![b'9'; 100_000],
        [b"[".as_slice(), &b"0,".repeat(400_000), b"0]"].concat(),
        vec![0xff; 100_000],
        vec![0; megabytes],
        // Arrays and tags in each other, and lengths that promise more than there is.
        vec![0x81; 1 << 20],
        vec![0xd2; 1 << 20],
        [&[0xd2, 0x84, 0x5b][..], &[0xff; 8], &[0; 1000]].concat(),
        [&[0xd2, 0x9b][..], &[0xff; 8], &[0; 1000]].concat(),
        [b"\"".as_slice(), &b"\\n".repeat(400_000), b"\""].concat(),
        format!("[{}]", "1e+22,".repeat(10_000) + "-").into_bytes(),
    ] {
        assert!(verify_bytes(&bytes, &keys).is_err());
        assert!(SignedReceipt::parse(&bytes).is_err());
        assert!(LogCheckpoint::verify(&String::from_utf8_lossy(&bytes), &keys).is_err());
        assert!(PublicKey::parse(&String::from_utf8_lossy(&bytes)).is_err());
        assert!(SecretKey::parse(&String::from_utf8_lossy(&bytes)).is_err());
    }
}

#[test]
fn secrets_are_not_printed_and_round_trip() {
    let secret = secret();
    let text = secret.to_text();
    assert!(!format!("{secret:?}").contains(text.rsplit('+').next().unwrap()));
    assert_eq!(SecretKey::parse(&text).unwrap().public(), secret.public());
    let public = secret.public().to_string();
    assert_eq!(PublicKey::parse(&public).unwrap(), secret.public());
    for at in 0..public.len() {
        let mut changed = public.clone().into_bytes();
        changed[at] ^= 1;
        if let Ok(changed) = String::from_utf8(changed) {
            assert!(PublicKey::parse(&changed).is_err(), "byte {at}");
        }
    }
    // The neutral element and a point of order 8 are keys for which anyone can sign.
    for weak in [
        "0100000000000000000000000000000000000000000000000000000000000000",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    ] {
        let mut bytes = vec![1];
        bytes.extend(Hash::from_hex(weak).unwrap().0);
        let id = sha256(&[b"weak\n", bytes.as_slice()].concat()).to_string();
        let text = format!("weak+{}+{}", &id[..8], data_encoding::BASE64.encode(&bytes));
        assert!(
            matches!(PublicKey::parse(&text), Err(ReceiptFault::Key(problem)) if problem.contains("weak"))
        );
    }
}
