//! Lists that lie in pages: whatever the sequence of changes, the root and the proofs are those of
//! the whole set, and names are found where a plain list has them. A request of many ids has one
//! effect, whole or not at all.
#![allow(clippy::panic, clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use common::*;
use efface_engine::{
    Engine, Error, ErrorKind, ForgetOptions, ForgetRequest, PolicyChange, Progress, RowSelection,
    Silent, fit,
};
use efface_io::{ReadLimits, Source};
use efface_receipt::training_set::{self, MembershipProof, SetCells, SetNode, bits_for};
use efface_receipt::{Hash, ReceiptFault};
use rusqlite::{Connection, OptionalExtension};

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }
}

/// The stored top of the tree.
struct StoredCells<'a>(&'a Connection);

impl SetCells for StoredCells<'_> {
    type Error = ReceiptFault;

    fn get(&self, cell: u64) -> Result<SetNode, ReceiptFault> {
        let found: Option<[u8; 40]> = self
            .0
            .query_row(
                "SELECT node FROM cells WHERE cell = ?1",
                [cell as i64],
                |row| row.get(0),
            )
            .optional()
            .unwrap();
        Ok(found.map_or(SetNode::EMPTY, |bytes| SetNode::from_bytes(&bytes)))
    }

    fn set(&mut self, _: u64, _: SetNode) -> Result<(), ReceiptFault> {
        panic!("proofs write nothing")
    }
}

/// The stored set against the same set computed as a whole: the root in the last receipt, and
/// proofs of what is there and what is not.
fn agrees_with_the_whole_set(engine: &Engine, path: &Path, rows: usize) {
    let connection = Connection::open(path).unwrap();
    let mut statement = connection
        .prepare("SELECT commitment FROM members")
        .unwrap();
    let mut leaves: Vec<Hash> = statement
        .query_map([], |row| Ok(Hash(row.get(0)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    leaves.sort();
    assert_eq!(leaves.len(), rows);
    let state = training_set::state_of(&leaves).unwrap();
    assert_eq!(receipts(engine).last().unwrap().training_set.after, state);
    let manifest = "SELECT value FROM meta WHERE key = 'manifest'";
    let manifest: Vec<u8> = connection
        .query_row(manifest, [], |row| row.get(0))
        .unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    let bits = manifest["ledger"]["members"]["bits"].as_u64().unwrap() as u32;
    let mut whole: BTreeMap<u64, SetNode> = BTreeMap::new();
    training_set::build(
        &mut whole,
        bits_for(rows as u64),
        leaves.iter().map(|leaf| Ok(*leaf)),
    )
    .unwrap();
    let between = |low: &Hash, high: &Hash| -> Result<Vec<Hash>, ReceiptFault> {
        Ok(leaves
            .iter()
            .filter(|leaf| (&low.0..=&high.0).contains(&&leaf.0))
            .copied()
            .collect())
    };
    let absent = (0..5_u8).map(|number| efface_receipt::sha256(&[number]));
    for key in leaves.iter().step_by(9).copied().chain(absent) {
        let stored = MembershipProof::new(&StoredCells(&connection), bits, &key, between).unwrap();
        let computed = MembershipProof::new(&whole, bits_for(rows as u64), &key, between).unwrap();
        assert_eq!(stored, computed);
        assert_eq!(stored.verify(&state, &key).unwrap(), leaves.contains(&key));
    }
}

/// The rows that a model should have: the number of the line and the person of each.
type Expected = BTreeMap<usize, usize>;

/// Names are found where a plain list has them.
fn finds_the_same(engine: &mut Engine, all: &[Line], here: &Expected, dice: &mut Dice) {
    let dry = ForgetOptions::dry_run();
    let person = dice.below(9);
    let rows = here.values().filter(|who| **who == person).count();
    let who = RowSelection::Subject {
        column: "who".into(),
        value: format!("p{person}"),
    };
    match engine.forget(&ForgetRequest::new(who), &dry) {
        Ok(report) => assert_eq!(report.forgotten, rows),
        Err(error) => assert_eq!((error.kind(), rows), (ErrorKind::NotFound, 0), "{error}"),
    }
    for _ in 0..4 {
        let at = dice.below(all.len());
        let found = engine.forget(&ForgetRequest::new(ids(&[&all[at].id])), &dry);
        assert_eq!(found.is_ok(), here.contains_key(&at), "{}", all[at].id);
    }
}

#[test]
fn any_sequence_of_changes_has_the_root_and_the_proofs_of_the_whole_set() {
    let all = lines(500);
    for seed in 0..3 {
        let bench = Bench::new();
        let path = bench.path("model");
        let mut dice = Dice(seed);
        let mut engine = bench.fit("model", &dense(&table(&all[..24])));
        if seed == 1 {
            let (settle_after, settle_within_seconds) = (Some(50), Some(86_400));
            let policy = PolicyChange {
                settle_after,
                settle_within_seconds,
                ..PolicyChange::default()
            };
            engine.set_policy(&policy).unwrap();
        }
        let mut here: Expected = (0..24).map(|at| (at, at % 9)).collect();
        let mut next = 24;
        for step in 0..24 {
            match dice.below(6) {
                0..=2 if next + 40 < all.len() => {
                    let end = next + 1 + dice.below(39);
                    engine.learn(csv(&table(&all[next..end])), &Silent).unwrap();
                    here.extend((next..end).map(|at| (at, at % 9)));
                    next = end;
                }
                3 if here.len() > 20 => {
                    let gone: Vec<usize> = here
                        .keys()
                        .copied()
                        .filter(|_| dice.below(5) == 0)
                        .collect();
                    if !gone.is_empty() {
                        let names: Vec<&str> = gone.iter().map(|at| all[*at].id.as_str()).collect();
                        engine
                            .forget(&ForgetRequest::new(ids(&names)), &ForgetOptions::default())
                            .unwrap();
                        here.retain(|at, _| !gone.contains(at));
                    }
                }
                4 => {
                    let at = *here.keys().nth(dice.below(here.len())).unwrap();
                    let other = dice.below(all.len());
                    let (_, cells) = all[other].cells.split_once(',').unwrap();
                    let amended = Line {
                        id: all[at].id.clone(),
                        cells: format!("{},{cells}", all[at].id),
                    };
                    engine.amend(csv(&table(&[amended])), &Silent).unwrap();
                    here.insert(at, other % 9);
                }
                _ => drop(engine.settle().unwrap()),
            }
            agrees_with_the_whole_set(&engine, &path, here.len());
            finds_the_same(&mut engine, &all, &here, &mut dice);
            if step % 6 == 5 {
                sound(&engine);
            }
        }
        assert!(next > 150, "the index was built anew on the way: {next}");
    }
}

/// Counts the stages that were told.
#[derive(Default)]
struct Stages(std::sync::Mutex<Vec<String>>);

impl Progress for Stages {
    fn start(&self, what: &str, _: Option<u64>) {
        self.0.lock().unwrap().push(what.to_owned());
    }
}

#[test]
fn many_ids_are_one_request_that_tells_where_it_is_and_has_one_effect() {
    let all = lines(4000);
    let bench = Bench::new();
    let mut engine = bench.fit("model", &dense(&table(&all)));
    let names: Vec<&str> = all.iter().step_by(2).map(|line| line.id.as_str()).collect();
    let request = ForgetRequest {
        id: Some("T-1".into()),
        ..ForgetRequest::new(ids(&names))
    };
    let stages = Stages::default();
    let options = ForgetOptions {
        dry_run: false,
        progress: &stages,
        ..ForgetOptions::default()
    };
    let report = engine.forget(&request, &options).unwrap();
    assert_eq!((report.forgotten, report.rows), (2000, 2000));
    assert!(
        stages
            .0
            .lock()
            .unwrap()
            .iter()
            .any(|stage| stage == "erasing rows")
    );
    // The same request after an answer that was lost: nothing is done twice.
    let again = engine.forget(&request, &ForgetOptions::default()).unwrap();
    assert!(again.replayed);
    assert_eq!(again.receipt, report.receipt);
    agrees_with_the_whole_set(&engine, &bench.path("model"), 2000);
    sound(&engine);
    // One id that is not there: nothing is done at all.
    let mixed = ids(&[&all[1].id, &all[0].id, &all[3].id]);
    let error = engine
        .forget(&ForgetRequest::new(mixed), &ForgetOptions::default())
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(engine.summary().unwrap().rows, 2000);
}

#[test]
fn a_streamed_fit_finds_ids_that_occur_twice_and_leaves_nothing_behind() {
    let bench = Bench::new();
    let mut all = lines(900);
    let line = |id: &str, cells: &str| {
        let (_, rest) = cells.split_once(',').unwrap();
        Line {
            id: id.into(),
            cells: format!("{id},{rest}"),
        }
    };
    all[700] = line(&all[30].id, &all[700].cells);
    all[800] = line(&all[5].id, &all[800].cells);
    let text = table(&all);
    let limits = ReadLimits {
        memory: 12_000,
        ..ReadLimits::default()
    };
    let source = Source::from_bytes("table.csv", text.clone(), None)
        .unwrap()
        .with_limits(limits);
    let request = efface_engine::FitRequest {
        source: source.into(),
        ..dense(&text)
    };
    let error = fit(&request, &bench.path("model"), true, &Silent).unwrap_err();
    // The first line is the header.
    assert!(
        matches!(&error, Error::RepeatedId { id, first: 32, second: 702 } if *id == all[30].id),
        "{error}"
    );
    let left: Vec<_> = std::fs::read_dir(bench.path("")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}
