//! What a witness signs and what it refuses, by the statuses of C2SP tlog-witness.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

use efface_receipt::*;

fn key(name: &str, seed: u8) -> SecretKey {
    SecretKey::from_seed(name, &[seed; 32]).unwrap()
}

/// A log of so many leaves, with its signed head.
fn log(leaves: u64, salt: &str, signer: &SecretKey) -> (MemoryLog, String) {
    let mut tree = MemoryLog::default();
    for leaf in 0..leaves {
        tree.append(&leaf_hash(format!("{salt}{leaf}").as_bytes()));
    }
    let head = LogCheckpoint::new(signer.name(), leaves, tree.head().root).unwrap();
    (tree, head.sign(signer).unwrap())
}

fn request(tree: &MemoryLog, old: u64, note: &str) -> CheckpointRequest {
    CheckpointRequest::new(tree.consistency(old).unwrap(), note.to_owned())
}

#[test]
fn a_witness_signs_one_history_alone() {
    let signer = key("efface/a", 5);
    let witness = key("witness.example/1", 6);
    let mut state = WitnessState::default();
    let (five, five_note) = log(5, "", &signer);
    let (nine, nine_note) = log(9, "", &signer);
    let (fork, fork_note) = log(9, "x", &signer);
    let ask = |state: &mut WitnessState, request: &CheckpointRequest| {
        // What is sent is read as it was meant.
        let sent = CheckpointRequest::parse(&request.to_text()).unwrap();
        assert_eq!(sent, *request);
        state.add_checkpoint(&sent, 1_700_000_000, &witness)
    };
    let status = |answer: Result<String, WitnessRefusal>| answer.unwrap_err().status();
    assert_eq!(status(ask(&mut state, &request(&five, 0, &five_note))), 404);
    assert_eq!(
        state.watch(&KeyRing::from(signer.public())).unwrap(),
        "efface/a"
    );
    let (_, stranger_note) = log(5, "", &key("efface/a", 7));
    assert_eq!(
        status(ask(&mut state, &request(&five, 0, &stranger_note))),
        403
    );
    let line = ask(&mut state, &request(&five, 0, &five_note)).unwrap();
    let quorum = WitnessQuorum::new(vec![WitnessKey::new(witness.public())], 1).unwrap();
    let cosigned = quorum.attach(&five_note, &line).unwrap();
    assert_eq!(quorum.verify(&cosigned).unwrap()[0].time, 1_700_000_000);
    // The cosignature is one of the head and of nothing else, and the log's own signature still
    // holds.
    LogCheckpoint::verify(&cosigned, &KeyRing::from(signer.public())).unwrap();
    assert!(quorum.attach(&nine_note, &line).is_err());
    // It is asked again for the same head, and signs again.
    ask(&mut state, &request(&five, 5, &five_note)).unwrap();
    // A request that starts elsewhere is told where to start.
    assert_eq!(
        ask(&mut state, &request(&nine, 4, &nine_note)),
        Err(WitnessRefusal::Conflict { size: 5 })
    );
    let before = state.clone();
    assert_eq!(status(ask(&mut state, &request(&fork, 5, &fork_note))), 422);
    assert_eq!(state, before, "a refusal changes nothing");
    ask(&mut state, &request(&nine, 5, &nine_note)).unwrap();
    // A smaller log after a larger one, and another of the same size.
    assert_eq!(status(ask(&mut state, &request(&five, 5, &five_note))), 409);
    assert_eq!(status(ask(&mut state, &request(&fork, 9, &fork_note))), 409);
    let mut backwards = request(&five, 5, &five_note);
    backwards.old = 9;
    assert_eq!(status(ask(&mut state, &backwards)), 400);
    assert_eq!(state.sizes().collect::<Vec<_>>(), [("efface/a", 9)]);
    // What is written down is read back.
    let text = serde_json::to_string(&state).unwrap();
    assert_eq!(serde_json::from_str::<WitnessState>(&text).unwrap(), state);
}

#[test]
fn malformed_requests_are_refused() {
    let signer = key("efface/a", 5);
    let (tree, note) = log(9, "", &signer);
    let good = request(&tree, 5, &note).to_text();
    CheckpointRequest::parse(&good).unwrap();
    for bad in [
        String::new(),
        good.replace("old 5", "old 05"),
        good.replace("old 5", "old -1"),
        good.replace("old 5", "5"),
        good.replacen("=\n", "\n", 1),
        good.replace("old 5\n", &format!("old 5\n{}", "AAAA\n".repeat(2))),
        good.replace(
            "old 5\n",
            &format!("old 5\n{}\n", "A".repeat(43) + "=").repeat(64),
        ),
    ] {
        assert!(CheckpointRequest::parse(&bad).is_err(), "{bad}");
    }
    for text in ["", "a+b", "witness+00000000+BAAA"] {
        assert!(WitnessKey::parse(text).is_err());
    }
    // C2SP tlog-cosignature: the id of a witness's key is made with the byte 4.
    let witness = WitnessKey::new(key("witness.example/1", 6).public());
    assert_eq!(WitnessKey::parse(&witness.to_string()).unwrap(), witness);
    assert_ne!(
        witness.to_string(),
        key("witness.example/1", 6).public().to_string()
    );
}
