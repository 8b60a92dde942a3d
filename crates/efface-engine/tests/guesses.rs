//! Somebody has the model file, and guesses who was forgotten and what the rows said. Nothing in
//! the file tells whether a guess is right, and nothing links two receipts of a person. What was
//! forgotten does not come back under another name.
#![allow(clippy::panic, clippy::unwrap_used)]

mod common;

use std::collections::HashSet;

use common::*;
use efface_engine::ErrorKind::Refused;
use efface_engine::{
    Engine, Error, ForgetOptions, ForgetRequest, PolicyChange, RowSelection, Silent,
    SuppressionKind, SuppressionScope, fit,
};
use efface_receipt::{
    CommitmentLabel, CommitmentOpening, CommitmentSalt, Hash, RequestId, row_value, sha256,
};
use rusqlite::Connection;
use serde_json::Value;

fn person(name: &str, id: Option<&str>) -> ForgetRequest {
    let who = RowSelection::Subject {
        column: "who".into(),
        value: name.into(),
    };
    ForgetRequest {
        id: id.map(String::from),
        ..ForgetRequest::new(who)
    }
}

/// Every 32 bytes of secret that lie in the file: what the attacker can make commitments with.
fn secrets(path: &std::path::Path) -> Vec<[u8; 32]> {
    let connection = Connection::open(path).unwrap();
    let sql = "SELECT value FROM meta WHERE key = 'manifest'";
    let bytes: Vec<u8> = connection.query_row(sql, [], |row| row.get(0)).unwrap();
    let manifest: Value = serde_json::from_slice(&bytes).unwrap();
    let salt: Vec<u8> = manifest["salt"]
        .as_array()
        .unwrap()
        .iter()
        .map(|byte| byte.as_u64().unwrap() as u8)
        .collect();
    let derived = [b"efface commitments v1\0".as_slice(), &salt].concat();
    let names = [b"efface names v1\0".as_slice(), &salt].concat();
    vec![
        salt.try_into().unwrap(),
        sha256(&derived).0,
        sha256(&names).0,
    ]
}

/// All values of the file that could be a commitment: the hashes in its tables and those in its
/// receipts.
fn commitments(path: &std::path::Path) -> HashSet<Vec<u8>> {
    let connection = Connection::open(path).unwrap();
    let mut all = HashSet::new();
    for sql in [
        "SELECT commitment FROM forgotten",
        "SELECT commitment FROM requests",
        "SELECT commitment FROM members",
    ] {
        let mut statement = connection.prepare(sql).unwrap();
        let found = statement
            .query_map([], |row| row.get::<_, Vec<u8>>(0))
            .unwrap();
        all.extend(found.map(Result::unwrap));
    }
    let engine = Engine::open_read_only(path).unwrap();
    for receipt in receipts(&engine) {
        all.extend(receipt.subject.iter().map(|hash| hash.0.to_vec()));
        all.extend(receipt.rows.commitment.iter().map(|hash| hash.0.to_vec()));
        if let Some(RequestId::Committed(hash)) = &receipt.request_id {
            all.insert(hash.0.to_vec());
        }
    }
    all
}

/// The attack that was found: it has the whole file and guesses the very id, subject, request name
/// and content.
#[test]
fn a_right_guess_is_not_told_from_a_wrong_one() {
    let bench = Bench::new();
    let all = lines(40);
    let mut engine = bench.fit("model", &sparse(&table(&all)));
    let path = bench.path("model");
    // The attacker even saw the row's bytes before it was forgotten.
    let connection = Connection::open(&path).unwrap();
    let payload: Vec<u8> = connection
        .query_row("SELECT payload FROM rows WHERE row = 3", [], |row| {
            row.get(0)
        })
        .unwrap();
    drop(connection);
    engine
        .forget(&person("p3", Some("ticket 7")), &ForgetOptions::default())
        .unwrap();
    drop(engine);
    let known = commitments(&path);
    let id = all[3].id.as_bytes();
    for secret in secrets(&path) {
        let salt = CommitmentSalt::new(&secret);
        let plain = |value: &[u8]| sha256(&[secret.as_slice(), value].concat());
        let mut guesses = vec![
            salt.commit(CommitmentLabel::Request, b"ticket 7"),
            salt.commit(CommitmentLabel::Subject, b"p3"),
            salt.commit(CommitmentLabel::RowId, id),
            salt.commit(CommitmentLabel::RowId, &[b"i\0", id].concat()),
            plain(id),
        ];
        // The content with and without what lies in front of it.
        for front in [0, 8] {
            let content = sha256(&payload[front..]);
            guesses.push(salt.row(id, &content));
            guesses.push(
                CommitmentOpening(Hash(secret))
                    .commitment(CommitmentLabel::Row, &row_value(id, &content)),
            );
        }
        let content = sha256(&payload[40..]);
        guesses.push(salt.row(id, &content));
        guesses.push(
            CommitmentOpening(Hash(secret))
                .commitment(CommitmentLabel::Row, &row_value(id, &content)),
        );
        for guess in guesses {
            assert!(!known.contains(guess.0.as_slice()));
            assert!(
                !known.contains(
                    efface_receipt::rows_commitment(&[guess])
                        .unwrap()
                        .0
                        .as_slice()
                )
            );
        }
    }
}

/// The index finds rows by hashes that whoever has the file can make. Those of a row that left are
/// nowhere in the file.
#[test]
fn the_index_keeps_nothing_of_a_row_that_left() {
    let bench = Bench::new();
    let all = lines(400);
    let mut engine = bench.fit("model", &sparse(&table(&all)));
    let path = bench.path("model");
    let salt = secrets(&path)[0];
    let hashes = [
        sha256(&[salt.as_slice(), all[3].id.as_bytes()].concat()),
        sha256(&[salt.as_slice(), b"subject\0p3"].concat()),
    ];
    let found = || {
        let bytes = std::fs::read(&path).unwrap();
        hashes.map(|hash| {
            bytes
                .windows(8)
                .filter(|window| *window == &hash.0[..8])
                .count()
        })
    };
    // Twice in the file: in the list of rows and in the index.
    assert!(found()[0] == 2 && found()[1] > 2, "{:?}", found());
    engine
        .learn(csv(&table(&lines(500)[400..])), &Silent)
        .unwrap();
    engine
        .forget(&person("p3", None), &ForgetOptions::default())
        .unwrap();
    assert_eq!(found(), [0, 0]);
}

#[test]
fn nothing_links_two_receipts_of_a_person_and_an_opening_proves_one() {
    let bench = Bench::new();
    let all = lines(60);
    let mut engine = bench.fit("model", &sparse(&table(&all[..40])));
    let ids_too = PolicyChange {
        suppress: Some(SuppressionScope::Ids),
        ..PolicyChange::default()
    };
    engine.set_policy(&ids_too).unwrap();
    let first = engine
        .forget(&person("p3", None), &ForgetOptions::default())
        .unwrap();
    engine.learn(csv(&table(&all[40..])), &Silent).unwrap();
    let second = engine
        .forget(&person("p3", None), &ForgetOptions::default())
        .unwrap();
    let log = receipts(&engine);
    let subject = |at: &efface_engine::ChangeReport| {
        log[at.receipt.as_ref().unwrap().sequence as usize]
            .subject
            .unwrap()
    };
    assert_ne!(subject(&first), subject(&second));
    let proves = |report: &efface_engine::ChangeReport, name: &[u8]| {
        let opening = Hash::from_hex(report.subject_opening.as_ref().unwrap()).unwrap();
        CommitmentOpening(opening).commitment(CommitmentLabel::Subject, name) == subject(report)
    };
    assert!(proves(&first, b"p3") && proves(&second, b"p3") && !proves(&first, b"p4"));
    // No file keeps the opening.
    for name in ["model", "model.key"] {
        let bytes = std::fs::read(bench.path(name)).unwrap();
        let opening = Hash::from_hex(first.subject_opening.as_ref().unwrap()).unwrap();
        assert!(!bytes.windows(32).any(|window| window == opening.0));
    }
    sound(&engine);
}

/// The row's nonce is in the file while the row is, and gone with it.
#[test]
fn the_nonce_goes_with_the_row() {
    let bench = Bench::new();
    let all = lines(40);
    let mut engine = bench.fit("model", &sparse(&table(&all)));
    let path = bench.path("model");
    let connection = Connection::open(&path).unwrap();
    let sql = "SELECT substr(payload, 9, 32) FROM rows ORDER BY row";
    let mut statement = connection.prepare(sql).unwrap();
    let nonces: Vec<Vec<u8>> = statement
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    drop(statement);
    drop(connection);
    assert_eq!(
        nonces.iter().collect::<HashSet<_>>().len(),
        40,
        "every row has one of its own"
    );
    engine
        .forget(
            &ForgetRequest::new(ids(&[&all[3].id])),
            &ForgetOptions::default(),
        )
        .unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let is_there = |nonce: &Vec<u8>| bytes.windows(32).any(|window| window == nonce.as_slice());
    assert!(!is_there(&nonces[3]) && is_there(&nonces[4]));
}

fn comes_back<T>(result: Result<T, Error>) -> SuppressionKind {
    match result.map(drop).unwrap_err() {
        error @ Error::ComesBack { by, .. } => {
            assert_eq!(error.kind(), Refused);
            by
        }
        error => panic!("{error}"),
    }
}

#[test]
fn what_was_forgotten_does_not_come_back_under_another_name() {
    let bench = Bench::new();
    let all = lines(60);
    let mut engine = bench.fit("model", &sparse(&table(&all[..40])));
    let content = PolicyChange {
        suppress: Some(SuppressionScope::Content),
        ..PolicyChange::default()
    };
    engine
        .forget(
            &ForgetRequest::new(ids(&[&all[4].id])),
            &ForgetOptions::default(),
        )
        .unwrap();
    engine.set_policy(&content).unwrap();
    engine
        .forget(&person("p3", None), &ForgetOptions::default())
        .unwrap();
    let text = table(&all[4..5]);
    assert_eq!(
        comes_back(engine.learn(csv(&text), &Silent)),
        SuppressionKind::Id
    );
    let louder = text.replace(&all[4].id, &format!(" {} ", all[4].id.to_uppercase()));
    assert_eq!(
        comes_back(engine.learn(csv(&louder), &Silent)),
        SuppressionKind::AlikeId
    );
    // Another row of the person, under an id that was never seen.
    let other = table(&all[48..49]).replace(",p3,", ", P3,");
    assert_eq!(
        comes_back(engine.learn(csv(&other), &Silent)),
        SuppressionKind::Subject
    );
    // The same row under another id and another person.
    let same = table(&all[3..4])
        .replace(&all[3].id, "new")
        .replace(",p3,", ",p77,");
    assert_eq!(
        comes_back(engine.learn(csv(&same), &Silent)),
        SuppressionKind::Content
    );
    // An amended row cannot bring the person back either.
    let amended = table(&all[5..6]).replace(",p5,", ",p3,");
    assert_eq!(
        comes_back(engine.amend(csv(&amended), &Silent)),
        SuppressionKind::Subject
    );
    let ids_alone = PolicyChange {
        suppress: Some(SuppressionScope::Ids),
        ..PolicyChange::default()
    };
    engine.set_policy(&ids_alone).unwrap();
    engine.learn(csv(&other), &Silent).unwrap();
    sound(&engine);
}

#[test]
fn a_new_fit_over_a_model_takes_over_what_it_has_forgotten() {
    let bench = Bench::new();
    let all = lines(60);
    let path = bench.path("model");
    let mut engine = bench.fit("model", &sparse(&table(&all[..40])));
    engine
        .forget(
            &ForgetRequest::new(ids(&[&all[4].id])),
            &ForgetOptions::default(),
        )
        .unwrap();
    engine
        .forget(&person("p3", None), &ForgetOptions::default())
        .unwrap();
    drop(engine);
    // The old file with all rows in it, and one with a new row of the person.
    let whole = sparse(&table(&all[..40]));
    assert_eq!(
        comes_back(fit(&whole, &path, true, &Silent)),
        SuppressionKind::Id
    );
    let person = sparse(&table(&all[40..]));
    assert_eq!(
        comes_back(fit(&person, &path, true, &Silent)),
        SuppressionKind::Subject
    );
    let left: Vec<_> = all
        .iter()
        .enumerate()
        .filter(|(at, _)| *at != 4 && at % 9 != 3)
        .map(|(_, line)| line)
        .collect();
    let report = fit(
        &sparse(&table(left[..30].iter().copied())),
        &path,
        true,
        &Silent,
    )
    .unwrap();
    assert_eq!((report.carried, report.dropped), (6, None));
    let mut engine = Engine::open(&path).unwrap();
    sound(&engine);
    assert_eq!(
        comes_back(engine.learn(csv(&table(&all[4..5])), &Silent)),
        SuppressionKind::Id
    );
    drop(engine);
    // Without the secret of the old log its list is worth nothing, which is no reason to drop it in
    // silence.
    let key = bench.path("model.key");
    let kept = std::fs::read(&key).unwrap();
    std::fs::remove_file(&key).unwrap();
    let error = fit(&whole, &path, true, &Silent).unwrap_err();
    assert!(
        error.to_string().contains("has forgotten 6 rows"),
        "{error}"
    );
    std::fs::write(&key, kept).unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mut given_up = sparse(&table(&all[..40]));
    given_up.drop_suppressed = true;
    let report = fit(&given_up, &path, true, &Silent).unwrap();
    assert!(report.carried == 0 && report.dropped.unwrap().contains("may come back"));
}
