//! One request to all models of a folder.
#![allow(clippy::unwrap_used)]

mod common;

use common::Folder;

/// Three models of houses, one of them without ann, and one whose rows name people in another
/// column.
fn with_models() -> Folder {
    let folder = Folder::with_houses();
    std::fs::create_dir(folder.path("models")).unwrap();
    let header = "house,owner,city,rooms,price\n";
    let rows = |owner: &str| -> String {
        (1..=6)
            .map(|at| format!("x{at},{owner}{at},Graz,{at},{}\n", 100 * at + at % 3))
            .collect()
    };
    folder.write(
        "b.csv",
        format!("{header}y1,ann,Wien,3,250\n{}", rows("bob")),
    );
    folder.write("c.csv", format!("{header}{}", rows("carl")));
    folder.write(
        "d.csv",
        format!(
            "house,who,city,rooms,price\ny1,ann,Wien,3,250\n{}",
            rows("dora")
        ),
    );
    folder.done("fit houses.csv --target price --id house --subject owner -o models/a.efface");
    folder.done("fit b.csv --target price --id house --subject owner -o models/b.efface");
    folder.done("fit c.csv --target price --id house --subject owner -o models/c.efface");
    folder.done("fit d.csv --target price --id house --subject who -o models/d.efface");
    folder.write("models/notes.txt", "no model");
    folder
}

fn outcomes(report: &serde_json::Value) -> Vec<(String, String, u64)> {
    let models = report["models"].as_array().unwrap().iter();
    models
        .map(|model| {
            let word = |name: &str| model[name].as_str().unwrap().to_owned();
            (
                word("model"),
                word("outcome"),
                model["report"]["forgotten"].as_u64().unwrap_or(0),
            )
        })
        .collect()
}

fn expected(list: &[(&str, &str, u64)]) -> Vec<(String, String, u64)> {
    list.iter()
        .map(|(model, outcome, rows)| (format!("{model}.efface"), (*outcome).into(), *rows))
        .collect()
}

const REQUEST: &str = "forget --models models --subject owner=ann --request T-7";

#[test]
fn one_request_goes_to_every_model_of_a_folder() {
    let folder = with_models();
    folder.fails(
        "forget --models models --subject owner=ann",
        2,
        &["--request"],
    );
    folder.fails("forget --subject owner=ann --request T-7", 2, &["--models"]);
    let told = folder.json(&format!("{REQUEST} --dry-run --json"));
    assert_eq!(told["forgotten"], 3);
    let told = folder.json(&format!("{REQUEST} --receipts receipts --json"));
    let first = [
        ("a", "forgotten", 2),
        ("b", "forgotten", 1),
        ("c", "no_such_rows", 0),
        ("d", "no_such_column", 0),
    ];
    assert_eq!(outcomes(&told), expected(&first));
    assert_eq!(
        (told["request"].as_str(), told["forgotten"].as_u64()),
        (Some("T-7"), Some(3))
    );
    // A receipt each, which its own key verifies.
    for (model, says) in [("a", "erased"), ("b", "erased"), ("c", "not_found")] {
        let keys = folder.done(&format!("keys models/{model}.efface"));
        folder.write("model.pub", keys);
        let page = folder.done(&format!(
            "verify receipts/{model}.efface.cose --key model.pub"
        ));
        assert!(page.contains(says), "{page}");
        folder.done(&format!("verify models/{model}.efface"));
    }
    assert!(!folder.path("receipts/d.efface.cose").exists());
    // Again: the same answers, the same receipts, and nothing happens twice.
    let again = folder.json(&format!("{REQUEST} --json"));
    assert_eq!(outcomes(&again), outcomes(&told));
    assert_eq!(
        again["models"][0]["report"]["receipt"],
        told["models"][0]["report"]["receipt"]
    );
    let page = folder.run(REQUEST);
    assert!(
        page.code == 0 && page.out.contains("forgotten before"),
        "{page:?}"
    );
    assert!(
        page.err.contains("warning: 1 model has no such column"),
        "{page:?}"
    );
    let nobody = folder.run("forget --models models --subject owner=zoe --request T-8");
    assert!(
        nobody.code == 4 && nobody.err.contains("none of 4 models has such rows"),
        "{nobody:?}"
    );
    let by_id = folder.json("forget --models models --ids x1,h4 --request T-9 --json");
    assert_eq!(by_id["forgotten"], 3);
}

/// The run is cut short in the middle: one model cannot be changed. The same command finishes it.
#[test]
fn a_request_that_was_cut_short_goes_on() {
    let folder = with_models();
    let key = folder.path("models/b.efface.key");
    let away = folder.path("away.key");
    std::fs::rename(&key, &away).unwrap();
    let out = folder.run(&format!("{REQUEST} --json"));
    assert_eq!(out.code, 5, "{out:?}");
    let told: serde_json::Value = serde_json::from_str(&out.out).unwrap();
    assert_eq!(
        outcomes(&told)[..2],
        expected(&[("a", "forgotten", 2), ("b", "failed", 0)])[..]
    );
    assert!(
        out.err.contains("1 of 4 models failed") && out.err.contains("run the same command again"),
        "{out:?}"
    );
    std::fs::rename(&away, &key).unwrap();
    let again = folder.json(&format!("{REQUEST} --json"));
    assert_eq!(
        outcomes(&again)[..2],
        expected(&[("a", "forgotten", 2), ("b", "forgotten", 1)])[..]
    );
    assert_eq!(
        again["models"][0]["report"]["receipt"],
        told["models"][0]["report"]["receipt"]
    );
}

#[test]
fn an_index_names_nobody_and_is_believed_of_unchanged_models_alone() {
    let folder = with_models();
    folder.fails(&format!("{REQUEST} --by-index"), 2, &["efface index"]);
    let report = folder.json("index models --json");
    // ann and three more own houses; b has seven owners, c six; d names people in another column,
    // which is indexed too.
    assert_eq!(report["models"], 4);
    let index = std::fs::read_to_string(folder.path("models/subjects.index")).unwrap();
    assert!(
        !["ann", "bob", "carl"]
            .iter()
            .any(|name| index.contains(name)),
        "{index}"
    );
    #[cfg(unix)]
    for name in ["subjects.index", "subjects.index.key"] {
        use std::os::unix::fs::PermissionsExt;
        let about = std::fs::metadata(folder.path(&format!("models/{name}"))).unwrap();
        assert_eq!(about.permissions().mode() & 0o777, 0o600);
    }
    // A model that has changed since is asked, whatever the index says.
    folder.write(
        "more.csv",
        "house,owner,city,rooms,price\nz1,ann,Graz,2,160\n",
    );
    folder.done("learn models/c.efface more.csv");
    let told = folder.json(&format!("{REQUEST} --by-index --json"));
    assert_eq!(
        outcomes(&told)[..3],
        expected(&[
            ("a", "forgotten", 2),
            ("b", "forgotten", 1),
            ("c", "forgotten", 1)
        ])[..]
    );
    folder.done("index models");
    let out = folder.run("forget --models models --by-index --subject owner=bob2 --request T-8");
    assert!(out.err.contains("3 models were not asked"), "{out:?}");
    // The person is out of the index, as out of the models.
    let index = std::fs::read_to_string(folder.path("models/subjects.index")).unwrap();
    folder.done("index models");
    let anew = std::fs::read_to_string(folder.path("models/subjects.index")).unwrap();
    let hashes = |text: &str| text.matches('"').count();
    assert_eq!(hashes(&index), hashes(&anew));
}
