//! The lines that the help and the demo show, on the reviews that the demo writes.

mod common;

use common::Folder;
use efface::synthetic::PLANTED_WORD;
use efface::{Family, Method};

#[test]
fn the_example_lines_work() {
    let folder = Folder::with_reviews();
    let before = folder.json("export reviews.efface --format json");
    assert_eq!(
        (&before["model"], before["rows"].as_u64()),
        (&"ridge".into(), Some(2100))
    );
    assert_eq!(
        (before["lambda"].as_f64(), &before["outputs"]),
        (Some(1e-4), &serde_json::json!(["stars"]))
    );
    assert_eq!(before["intercept"].as_array().unwrap().len(), 1);
    assert_eq!(
        before["coefficients"][PLANTED_WORD]
            .as_array()
            .unwrap()
            .len(),
        1
    );

    let ended = folder.run("forget reviews.efface --subject user_id=u1042 --json");
    let report: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(
        (report["forgotten"].as_u64(), report["rows"].as_u64()),
        (Some(14), Some(2086))
    );
    // With so small a penalty the columns are barely determined, and the bound may say less than
    // the tolerance wants.
    let missed = report["tolerance_missed"].as_bool().unwrap();
    let told = if missed {
        ("approximate", 8)
    } else {
        ("exact", 0)
    };
    assert_eq!(
        (report["claim"].as_str().unwrap(), ended.code),
        told,
        "{ended:?}"
    );
    assert!(report["bound"].as_f64().unwrap() < 1e-3, "{report}");
    assert!(report["seconds"].as_f64().unwrap() > 0.0);

    let after = folder.json("export reviews.efface --expose-forgotten");
    assert_eq!(after["rows"].as_u64(), Some(2086));
    assert!(after["coefficients"].get(PLANTED_WORD).is_none());
    let bytes = std::fs::read(folder.path("reviews.efface")).unwrap();
    assert!(
        !bytes
            .windows(PLANTED_WORD.len())
            .any(|window| window == PLANTED_WORD.as_bytes())
    );

    folder.fails(
        "forget reviews.efface --subject user_id=u1042",
        4,
        &["u1042", "user_id"],
    );
}

#[test]
fn a_dry_run_changes_nothing() {
    let folder = Folder::with_reviews();
    let before = std::fs::read(folder.path("reviews.efface")).unwrap();
    let ended = folder.run("forget reviews.efface --subject user_id=u1042 --dry-run");
    assert!(
        ended
            .err
            .starts_with("would forget 14 rows of user_id=u1042 by ")
            && ended.err.contains(": 2086 rows would be left; ")
    );
    assert!(ended.out.is_empty());
    assert_eq!(
        std::fs::read(folder.path("reviews.efface")).unwrap(),
        before
    );
}

#[test]
fn a_message_is_one_line_and_quiet_is_silent() {
    let folder = Folder::with_houses();
    let ended = folder.run("forget houses.efface --ids h1,h2 --method newton");
    assert!(ended.err.starts_with(
        "forgot 2 rows by newton: 5 rows left; claim exact; distance to retraining at most "
    ));
    let ended = folder.run("forget houses.efface --ids h3 --quiet");
    assert_eq!(
        (ended.code, ended.out, ended.err),
        (0, String::new(), String::new())
    );
}

#[test]
fn the_demo_compares_every_method_with_retraining() {
    let folder = Folder::new();
    let found = folder.json("demo --reviews 2100 --vocab 600 --json");
    let methods = found["methods"].as_array().unwrap();
    let names: Vec<&str> = methods
        .iter()
        .map(|m| m["method"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        Method::all_for(Family::Ridge)
            .iter()
            .map(Method::name)
            .collect::<Vec<_>>()
    );
    let retrained = methods[0]["relative_bound"].as_f64().unwrap();
    for method in methods {
        let claim = method["claim"].as_str().unwrap();
        let distance = method["distance"].as_f64().unwrap();
        let bound = method["relative_bound"].as_f64().unwrap();
        assert!(claim != "exact" || distance < 1e-5, "{method}");
        // Both ends of the distance are known only up to their own bound.
        assert!(distance <= 1.01 * (bound + retrained), "{method}");
    }
    assert!(found["weight_before"].as_f64().unwrap().abs() > 1e-3);
    assert!(found["learned_back"]["distance"].as_f64().unwrap() < 1e-5);
    let receipt = &found["receipt"];
    assert_eq!(receipt["forgotten"], found["forgotten"]);
    assert_eq!(
        (&receipt["verified"], &receipt["altered_refused"]),
        (&true.into(), &true.into())
    );
}

#[test]
fn the_demo_prints_a_table_and_what_to_do_next() {
    let page = Folder::new().done("demo --reviews 2100");
    for part in [
        "method",
        "retrain",
        "projection_residual",
        "flumptious",
        "the receipt holds",
        "efface demo --write .",
        "efface forget",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let lines = page.lines().map(|line| line.chars().count());
    assert!(lines.max().unwrap() <= 110, "{page}");
}

#[test]
fn the_demo_overwrites_only_by_force() {
    let folder = Folder::new();
    assert_eq!(
        folder.json("demo --write new/folder --reviews 2100 --json")["rows"].as_u64(),
        Some(2100)
    );
    folder.fails(
        "demo --write new/folder",
        5,
        &["reviews.csv exists already", "hint: ", "--force"],
    );
    folder.done("demo --write new/folder --force");
}
