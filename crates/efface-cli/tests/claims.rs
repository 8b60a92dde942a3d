//! A tolerance that was missed is told by a warning, a field and an exit code of its own; the
//! change stands.

#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

mod common;

use common::{Folder, HOUSES};
use efface::Ridge;
use efface_engine::{FitRequest, Silent, fit};
use efface_io::Source;

/// A model of houses whose tolerance no bound can be within.
fn demanding() -> Folder {
    let folder = Folder::new();
    folder.write("houses.csv", HOUSES);
    let mut request = FitRequest::new(Source::from_bytes("houses.csv", HOUSES, None).unwrap());
    request.targets = vec!["price".into()];
    request.id = Some("house".into());
    request.ignore = vec!["owner".into()];
    request.model = Ridge::new(1.0).tolerance(1e-300).into();
    fit(&request, &folder.path("houses.efface"), false, &Silent).unwrap();
    folder
}

#[test]
fn a_missed_tolerance_has_a_warning_and_an_exit_code() {
    let folder = demanding();
    let ended = folder.run("forget houses.efface --ids h2 --dry-run");
    assert_eq!(
        (ended.code, ended.err.contains("would forget 1 row")),
        (8, true),
        "{ended:?}"
    );
    let ended = folder.run("forget houses.efface --ids h2 --receipt receipt.cose");
    assert_eq!(ended.code, 8, "{ended:?}");
    assert!(ended.err.contains("forgot 1 row by "), "{ended:?}");
    let warning = "warning: the distance to retraining is at most ";
    let last = ended.err.lines().last().unwrap();
    assert!(
        last.starts_with(warning) && last.contains("above the tolerance of 1.0e-300"),
        "{ended:?}"
    );
    // The change is durable, and its receipt is written and holds.
    let key = folder.done("keys houses.efface");
    folder.write("houses.pub", key);
    folder.done("verify receipt.cose --key houses.pub");
    folder.fails(
        "forget houses.efface --ids h2",
        4,
        &["row h2 is not in this model"],
    );
    let receipt = folder.json("receipt show receipt.cose --json");
    assert_eq!(receipt["claim"], serde_json::json!({"kind": "approximate"}));

    let ended = folder.run("forget houses.efface --ids h3 --json --quiet");
    assert_eq!(ended.code, 8, "{ended:?}");
    assert!(ended.err.starts_with(warning), "{ended:?}");
    let report: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(
        (&report["claim"], &report["outcome"]),
        (&"approximate".into(), &"erased".into())
    );
    assert_eq!(
        (&report["tolerance"], &report["tolerance_missed"]),
        (&1e-300.into(), &true.into())
    );

    folder.write(
        "more.csv",
        "house,owner,city,rooms,price\nh8,eve,Lyon,4,260\n",
    );
    assert_eq!(folder.run("learn houses.efface more.csv").code, 8);
    assert_eq!(folder.run("amend houses.efface more.csv --json").code, 8);
    // Who asks for the same is refused, as before.
    folder.fails(
        "forget houses.efface --ids h6 --tolerance 1e-300",
        5,
        &["the tolerance is 1.0e-300"],
    );
}

#[test]
fn a_tolerance_that_was_reached_is_in_the_reports_too() {
    let folder = Folder::with_houses();
    let report = folder.json("forget houses.efface --ids h2 --json");
    assert_eq!(
        (&report["claim"], &report["tolerance_missed"]),
        (&"exact".into(), &false.into())
    );
    assert_eq!(report["tolerance"], 1e-9);
    let fitted = folder.json(
        "fit houses.csv --target price --id house --force --discard-log --drop-suppressed --json",
    );
    assert_eq!(
        (&fitted["tolerance"], &fitted["tolerance_missed"]),
        (&1e-9.into(), &false.into())
    );
}
