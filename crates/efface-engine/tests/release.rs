//! When new parameters may leave.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use efface_engine::ErrorKind::Refused;
use efface_engine::{PolicyChange, Silent};

#[test]
fn an_amended_row_makes_an_export_wait_too() {
    let bench = Bench::new();
    let mut engine = bench.fit("model", &sparse(&table(&lines(40))));
    let all = lines(40);
    engine.set_policy(&PolicyChange { minimum_batch: Some(2), ..PolicyChange::default() }).unwrap();
    engine.export("json", None).unwrap();
    let fixed = format!("id,who,size,words,price\n{},someone,3,tall,4\n", all[3].id);
    engine.amend(&csv(&fixed), &Silent).unwrap();
    assert_eq!(engine.export("json", None).unwrap_err().kind(), Refused);
    let release = receipts(&engine).pop().unwrap().release.unwrap();
    assert_eq!((release.batch, release.warnings.len()), (1, 1));
    engine.forget(&ids(&[&all[1].id]), "auto", &PLAIN, false).unwrap();
    engine.export("json", None).unwrap();
}
