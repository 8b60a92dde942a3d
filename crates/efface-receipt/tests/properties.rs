//! Properties over random input.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::*;
use efface_receipt::{
    training_set::{
        MembershipProof, SetNode, bits_for, bucket, bucket_range, build, state_of, subtree, update,
    },
    *,
};
use proptest::prelude::*;
use serde_json::Value;

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (1 - (1i64 << 53)..1 << 53).prop_map(Value::from),
        any::<f64>()
            .prop_filter("finite", |n| n.is_finite())
            .prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::hash_map(any::<String>(), inner, 0..8)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn some_keys(most: usize) -> impl Strategy<Value = BTreeSet<Hash>> {
    // Few distinct first bytes, so that buckets and long common prefixes occur.
    let key = (0u8..4, any::<[u8; 2]>(), any::<u8>()).prop_map(|(first, rest, last)| {
        let mut bytes = [0u8; 32];
        (bytes[0], bytes[1], bytes[2], bytes[31]) = (first << 6, rest[0], rest[1] & 0x81, last);
        Hash(bytes)
    });
    prop::collection::btree_set(key, 0..most)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn canonical_bytes_round_trip(value in any_json()) {
        let bytes = canonical::write(&value).unwrap();
        let read = canonical::parse(&bytes, "a value", 1 << 20).unwrap();
        prop_assert_eq!(canonical::write(&read).unwrap(), bytes.clone());
        // Any other JSON parser reads the same value; a number may be off by its last digit there.
        let other: Value = serde_json::from_slice(&bytes).unwrap();
        prop_assert_eq!(other.is_object(), value.is_object());
    }

    #[test]
    fn numbers_read_back_and_are_short(bits in any::<u64>()) {
        let number = f64::from_bits(bits);
        if let Some(text) = canonical::ecmascript(number) {
            prop_assert_eq!(text.parse::<f64>().unwrap(), number);
            prop_assert!(text.len() <= 25, "{}", text);
        }
    }

    #[test]
    fn bytes_that_parse_are_canonical(bytes in prop::collection::vec(prop::sample::select(&b"{}[]\":,0123456789.eE+-truefalsn\\u \x00\xc3\xa9"[..]), 0..24)) {
        if let Ok(value) = canonical::parse(&bytes, "noise", 1000) {
            prop_assert_eq!(canonical::write(&value).unwrap(), bytes);
        }
    }

    #[test]
    fn noise_is_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let text = String::from_utf8_lossy(&bytes);
        prop_assert!(verify_bytes(&bytes, &keys()).is_err());
        prop_assert!(LogCheckpoint::verify(&text, &keys()).is_err());
        prop_assert!(PublicKey::parse(&text).is_err());
        prop_assert!(Time::parse(&text).is_none());
    }

    #[test]
    fn times_round_trip(milliseconds in -62_167_219_200_000i64..253_402_300_800_000) {
        let time = Time::from_unix_milliseconds(milliseconds).unwrap();
        prop_assert_eq!(Time::parse(&time.to_string()), Some(time));
    }

    #[test]
    fn names_and_keys_round_trip(name in "[a-z0-9./:_é-]{1,40}", seed in any::<[u8; 32]>()) {
        let secret = SecretKey::from_seed(&name, &seed).unwrap();
        prop_assert_eq!(SecretKey::parse(&secret.to_text()).unwrap().id(), secret.id());
        prop_assert_eq!(PublicKey::parse(&secret.public().to_string()).unwrap(), secret.public());
        let checkpoint = LogCheckpoint::new(&name, 9, Hash(seed)).unwrap();
        let note = checkpoint.sign(&secret).unwrap();
        prop_assert_eq!(LogCheckpoint::verify(&note, &KeyRing::from(secret.public())).unwrap(), checkpoint);
    }

    /// The cached top gives the same state as all keys at once, whatever its size and however the
    /// set came about.
    #[test]
    fn the_training_set_depends_on_the_set_alone(
        mut keys in some_keys(60), changes in some_keys(20), bits in 0u32..7,
    ) {
        let sorted = |keys: &BTreeSet<Hash>| keys.iter().copied().collect::<Vec<_>>();
        let mut cells: BTreeMap<u64, SetNode> = BTreeMap::new();
        let built = build(&mut cells, bits, keys.iter().map(|key| Ok(*key))).unwrap();
        prop_assert_eq!(built, state_of(&sorted(&keys)).unwrap());
        // Each change takes a key out that is there, or puts one in that is not.
        for key in &changes {
            if !keys.remove(key) {
                keys.insert(*key);
            }
        }
        let touched: BTreeSet<u64> = changes.iter().map(|key| bucket(key, bits)).collect();
        let nodes: Vec<(u64, SetNode)> = touched
            .into_iter()
            .map(|number| {
                let (low, high) = bucket_range(number, bits);
                (number, subtree(&keys.range(low..=high).copied().collect::<Vec<_>>(), bits).unwrap())
            })
            .collect();
        let state = update(&mut cells, bits, &nodes).unwrap();
        prop_assert_eq!(state, state_of(&sorted(&keys)).unwrap());
        prop_assert_eq!(state.count, keys.len() as u64);
        for key in keys.iter().chain(&changes) {
            let between = |low: &Hash, high: &Hash| Ok(keys.range(*low..=*high).copied().collect());
            let proof = MembershipProof::new(&cells, bits, key, between).unwrap();
            prop_assert_eq!(proof.verify(&state, key), Ok(keys.contains(key)));
            let other = SetState { count: state.count + 1, ..state };
            prop_assert!(proof.verify(&other, key).is_err());
            if let Some(end) = proof.end && end != *key {
                // A proof of absence is no proof for the key that it found instead.
                prop_assert_eq!(proof.verify(&state, &end), Ok(true));
            }
        }
    }
}

#[test]
fn sets_must_be_sorted_and_unique() {
    let a = Hash([1; 32]);
    let b = Hash([2; 32]);
    assert_eq!(state_of(&[b, a]), Err(ReceiptFault::SetOrder));
    assert_eq!(state_of(&[a, a]), Err(ReceiptFault::SetOrder));
    assert_eq!(
        subtree(&[a, Hash([200; 32])], 1),
        Err(ReceiptFault::SetOrder)
    );
    assert_ne!(state_of(&[a]).unwrap(), state_of(&[]).unwrap());
    assert_eq!([0, 1, 31, 32, 1_000_000].map(bits_for), [0, 0, 0, 1, 15]);
    let mut cells: BTreeMap<u64, SetNode> = BTreeMap::new();
    assert!(update(&mut cells, 3, &[(8, SetNode::EMPTY)]).is_err());
    assert_eq!(
        SetNode::from_bytes(&SetNode::leaf(&a).to_bytes()),
        SetNode::leaf(&a)
    );
}
