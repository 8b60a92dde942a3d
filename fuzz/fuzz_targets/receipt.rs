//! Everything a verifier reads from strangers: bundles, receipts, checkpoints, keys, proofs.
//! Nothing may panic, nothing that was not signed may verify, and what parses as canonical JSON
//! must be written back to the same bytes.
#![no_main]

use efface_receipt::{
    ConsistencyProof, Hash, InclusionProof, KeyRing, LogCheckpoint, LogReplay, PublicKey,
    ReceiptBundle, SecretKey, SignedReceipt, Time, canonical, verify_bytes,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(secret) = SecretKey::from_seed("fuzz.example/log", &[1; 32]) else {
        return;
    };
    let keys = KeyRing::from(secret.public());
    if let Ok(value) = canonical::parse(data, "the input", 1 << 20) {
        assert_eq!(canonical::write(&value).ok().as_deref(), Some(data));
    }
    if let Ok(signed) = SignedReceipt::parse(data) {
        assert_eq!(signed.to_bytes().ok().as_deref(), Some(data));
    }
    if let Ok(bundle) = ReceiptBundle::parse(data) {
        assert_eq!(bundle.to_bytes().ok().as_deref(), Some(data));
    }
    assert!(verify_bytes(data, &keys).is_err());
    assert!(LogReplay::new(&keys).push(data).is_err());
    if let Ok(text) = std::str::from_utf8(data) {
        assert!(LogCheckpoint::verify(text, &keys).is_err());
        let _ = LogCheckpoint::parse_unverified(text);
        if let Ok(key) = PublicKey::parse(text) {
            assert_eq!(key.to_string(), text);
        }
        let _ = SecretKey::parse(text);
        if let Some(time) = Time::parse(text) {
            assert_eq!(time.to_string(), text);
        }
    }
    // The first bytes as numbers, the rest as a path: proofs of any shape.
    if let Some((head, rest)) = data.split_at_checked(16) {
        let number = |range: std::ops::Range<usize>| {
            head[range]
                .iter()
                .fold(0u64, |n, byte| n << 8 | u64::from(*byte))
        };
        let (first, second) = (number(0..8), number(8..16));
        let path: Vec<Hash> = rest
            .chunks_exact(32)
            .filter_map(|chunk| Some(Hash(chunk.try_into().ok()?)))
            .collect();
        let root = Hash([0; 32]);
        let _ = InclusionProof {
            index: first,
            size: second,
            path: path.clone(),
        }
        .verify(rest, &root);
        let _ = ConsistencyProof {
            old: first,
            new: second,
            path,
        }
        .verify(&root, &root);
    }
});
