//! Keys that hand over, are lost and found again, and sign from elsewhere.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

mod common;

use common::*;
use efface_engine::*;

fn by_id(id: &str) -> ForgetRequest {
    ForgetRequest::new(RowSelection::Ids(vec![id.to_owned()]))
}

fn bench() -> (Bench, Engine, Vec<Line>) {
    let bench = Bench::new();
    let all = lines(30);
    let engine = bench.fit("model", &sparse(&table(&all)));
    (bench, engine, all)
}

#[test]
fn a_rotation_may_name_another_recovery_key() {
    let (bench, mut engine, all) = bench();
    let safe = bench.path("safe");
    let lost = KeyRotation {
        recover: Some(safe.clone()),
        ..KeyRotation::default()
    };
    assert!(
        engine
            .rotate_key(&lost)
            .unwrap_err()
            .to_string()
            .contains("no recovery key")
    );
    engine
        .rotate_key(&KeyRotation {
            recovery_key: Some(safe.clone()),
            ..KeyRotation::default()
        })
        .unwrap();
    engine
        .forget(&by_id(&all[0].id), &ForgetOptions::default())
        .unwrap();
    std::fs::remove_file(efface_engine::files::key_path(&bench.path("model"))).unwrap();
    assert!(matches!(
        engine.forget(&by_id(&all[1].id), &ForgetOptions::default()),
        Err(Error::Key { .. })
    ));
    engine.rotate_key(&lost).unwrap();
    engine
        .forget(&by_id(&all[1].id), &ForgetOptions::default())
        .unwrap();
    sound(&engine);
    let keys = engine.public_keys().unwrap();
    assert_eq!(
        keys.iter().map(|key| key.last).collect::<Vec<_>>(),
        [Some(1), Some(3), None]
    );
    // A stranger's recovery key takes nothing over.
    let other = bench.path("other-safe");
    let mut stranger = bench.fit("other", &sparse(&table(&lines(30))));
    stranger
        .rotate_key(&KeyRotation {
            recovery_key: Some(other.clone()),
            ..KeyRotation::default()
        })
        .unwrap();
    let theft = KeyRotation {
        recover: Some(other),
        ..KeyRotation::default()
    };
    assert!(matches!(engine.rotate_key(&theft), Err(Error::Key { .. })));
    sound(&engine);
}

/// An agent with one key, as ssh-agent is one: it lists the key and signs what it is asked to.
#[cfg(unix)]
fn agent(socket: &std::path::Path, secret: efface_receipt::SecretKey) {
    use efface_receipt::ReceiptSigner;
    use std::io::{Read, Write};
    fn text(part: &[u8]) -> Vec<u8> {
        [&(part.len() as u32).to_be_bytes(), part].concat()
    }
    let listener = std::os::unix::net::UnixListener::bind(socket).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut length = [0; 4];
            stream.read_exact(&mut length).unwrap();
            let mut request = vec![0; u32::from_be_bytes(length) as usize];
            stream.read_exact(&mut request).unwrap();
            let blob = [text(b"ssh-ed25519"), text(&secret.public().to_bytes())].concat();
            let answer = if request[0] == 11 {
                [vec![12, 0, 0, 0, 1], text(&blob), text(b"a comment")].concat()
            } else {
                // The key and the message, each after its length.
                let message = &request[1 + 4 + blob.len() + 4..request.len() - 4];
                let signature = secret.sign(message).unwrap().0;
                [
                    vec![14],
                    text(&[text(b"ssh-ed25519"), text(&signature)].concat()),
                ]
                .concat()
            };
            stream.write_all(&text(&answer)).unwrap();
        }
    });
}

#[cfg(unix)]
#[test]
fn an_agent_signs_and_no_key_lies_beside_the_model() {
    let (bench, mut engine, all) = bench();
    let socket = bench.path("agent");
    agent(
        &socket,
        efface_receipt::SecretKey::from_seed("agent", &[3; 32]).unwrap(),
    );
    let place = KeyPlace::Agent(socket);
    engine
        .rotate_key(&KeyRotation {
            place: place.clone(),
            ..KeyRotation::default()
        })
        .unwrap();
    let kept = std::fs::read_to_string(files::key_path(&bench.path("model"))).unwrap();
    assert!(
        !kept.contains("PRIVATE+KEY+") && kept.contains("NOISE+SEED+"),
        "the noise seed alone is left"
    );
    let refused = engine
        .forget(&by_id(&all[0].id), &ForgetOptions::default())
        .unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("it holds no key of this model"),
        "{refused}"
    );
    engine.set_key_access(KeyAccess {
        place,
        passphrase: None,
        beside: None,
    });
    engine
        .forget(&by_id(&all[0].id), &ForgetOptions::default())
        .unwrap();
    sound(&engine);
    // An agent that is gone changes nothing.
    let gone = KeyPlace::Agent(bench.path("no-agent"));
    engine.set_key_access(KeyAccess {
        place: gone,
        passphrase: None,
        beside: None,
    });
    let refused = engine
        .forget(&by_id(&all[1].id), &ForgetOptions::default())
        .unwrap_err();
    assert!(matches!(refused, Error::Signing { .. }), "{refused}");
    sound(&engine);
}
