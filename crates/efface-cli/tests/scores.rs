//! How good a model is: measured at the fit, stored, dropped by a forget, measured again.

mod common;

use common::Folder;
use serde_json::Value;

/// Two features, a noisy target, a class, an id and a person.
fn table(rows: usize) -> String {
    let mut text = "id,person,a,b,y,kind\n".to_owned();
    for row in 0..rows {
        let a = (row as f64 * 0.37).sin();
        let b = (row as f64 * 1.91).cos();
        let y = 2.0 * a - b + 0.3 * (row as f64 * 5.3).sin();
        let kind = if y > 0.0 { "high" } else { "low" };
        text.push_str(&format!("r{row},p{},{a},{b},{y},{kind}\n", row % 40));
    }
    text
}

fn folder(rows: usize) -> Folder {
    let folder = Folder::new();
    folder.write("t.csv", table(rows));
    folder
}

const FIT: &str = "fit t.csv --target y --ignore kind --id id --subject person --json";

/// The stored figures of one kind; null where there are none.
fn stored(report: &Value, kind: &str) -> Value {
    let all = report["summary"]["scores"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let found = all.into_iter().find(|entry| entry["on"]["kind"] == kind);
    found.map_or(Value::Null, |entry| entry["quality"].clone())
}

#[test]
fn held_out_rows_are_not_in_the_model_and_stay_the_same() {
    let folder = folder(500);
    let report = folder.json(&format!("{FIT} --holdout 0.2 -o held.efface"));
    let quality = stored(&report, "held_out");
    let held = quality["rows"].as_u64().unwrap();
    assert_eq!(report["summary"]["rows"].as_u64().unwrap() + held, 500);
    assert!((70..130).contains(&held), "{held}");
    let output = &quality["numbers"][0];
    assert!(output["rmse"].as_f64().unwrap() < output["baseline_rmse"].as_f64().unwrap());
    // Predictions for all rows tell which are held out: the model refuses to forget those.
    let ids: Vec<String> = (0..500).map(|row| format!("r{row}")).collect();
    let missing = |name: &str| -> Vec<String> {
        let dry = |id: &String| {
            folder
                .run(&format!("forget {name} --ids {id} --dry-run"))
                .code
                == 4
        };
        ids.iter().take(60).filter(|id| dry(id)).cloned().collect()
    };
    let first = missing("held.efface");
    assert!(!first.is_empty());
    // The same rows are held out of a longer file, and others by another seed.
    folder.write("t.csv", table(700));
    folder.done(&format!("{FIT} --holdout 0.2 -o longer.efface"));
    assert_eq!(missing("longer.efface"), first);
    folder.done(&format!("{FIT} --holdout 0.2 --seed 9 -o other.efface"));
    assert_ne!(missing("other.efface"), first);
    // The stored figures are those of an evaluation of the held-out rows.
    let mut unseen = "id,person,a,b,y,kind\n".to_owned();
    for line in table(500).lines().skip(1) {
        let id = line.split(',').next().unwrap();
        let held = folder
            .run(&format!("forget held.efface --ids {id} --dry-run"))
            .code
            == 4;
        if held {
            unseen.push_str(&format!("{line}\n"));
        }
    }
    folder.write("unseen.csv", unseen);
    let again = folder.json("evaluate held.efface unseen.csv --json");
    assert_eq!(again["quality"]["rows"], quality["rows"]);
    let rmse = |quality: &Value| quality["numbers"][0]["rmse"].as_f64().unwrap();
    assert!((rmse(&again["quality"]) - rmse(&quality)).abs() < 1e-12);
}

#[test]
fn scores_are_shown_until_the_rows_change() {
    let folder = folder(200);
    folder.write("test.csv", table(260).replace("\nr", "\nx"));
    let told = folder.run("fit t.csv --target y --ignore kind --id id --test test.csv");
    assert!(
        told.err.contains("test file, 260 rows: RMSE"),
        "{}",
        told.err
    );
    assert!(
        told.err.contains("leave-one-out, 200 rows: RMSE"),
        "{}",
        told.err
    );
    assert!(!told.err.contains("worse than a constant"), "{}", told.err);
    assert!(
        folder
            .done("inspect t.efface")
            .contains("test file, 260 rows")
    );
    folder.done("forget t.efface --ids r3");
    let shown = folder.done("inspect t.efface");
    assert!(
        shown.contains("none of the model as it is now; `efface evaluate` measures"),
        "{shown}"
    );
    assert_eq!(
        folder.json("inspect t.efface --json")["scores"],
        serde_json::json!([])
    );
    let page = folder.done("evaluate t.efface test.csv");
    assert!(page.contains("RMSE of the mean"), "{page}");
}

#[test]
fn classes_have_probabilities_and_folds() {
    let folder = folder(300);
    let fit = "fit t.csv --target kind --ignore y,person --id id --model logistic --json";
    let quality = stored(&folder.json(&format!("{fit} --cv 4 -o c.efface")), "folds");
    assert_eq!(quality["rows"], 300);
    let classes = &quality["classes"];
    assert!(classes["accuracy"].as_f64().unwrap() > 0.9 && classes["auc"].as_f64().unwrap() > 0.95);
    assert_eq!(classes["per_class"].as_array().unwrap().len(), 2);
    let predicted = folder.run("predict c.efface t.csv");
    assert!(
        predicted
            .out
            .starts_with("id,prediction,score,probability low\nr0,"),
        "{}",
        predicted.out
    );
    assert!(
        predicted.err.contains("300 rows: accuracy"),
        "{}",
        predicted.err
    );
    let first: Value = serde_json::from_str(
        folder
            .done("predict c.efface t.csv --json")
            .lines()
            .next()
            .unwrap(),
    )
    .unwrap();
    let share = |name: &str| first["probabilities"][name].as_f64().unwrap();
    assert!((share("high") + share("low") - 1.0).abs() < 1e-12);
    assert_eq!(
        (first["position"].as_u64(), first["line"].as_u64()),
        (Some(0), Some(2))
    );
    // A class that the model does not know is wrong, and a row without a target is only scored.
    folder.write("new.csv", "id,a,b,kind\nn1,1,0,high\nn2,1,0,middling\n");
    let found = folder.json("evaluate c.efface new.csv --json");
    assert_eq!(found["quality"]["unknown_classes"], 1);
    assert_eq!(found["quality"]["classes"]["accuracy"], 0.5);
    folder.write("some.csv", "id,a,b,kind\nn1,1,0,high\nn2,1,0,\n");
    assert!(
        folder
            .run("predict c.efface some.csv")
            .err
            .contains("1 row: accuracy 1.0000")
    );
    folder.fails("evaluate c.efface some.csv", 3, &["line 3", "kind"]);
    folder.write("none.csv", "id,a,b\nn1,1,0\n");
    assert!(
        !folder
            .run("predict c.efface none.csv")
            .err
            .contains("accuracy")
    );
    folder.fails("evaluate c.efface none.csv", 4, &["kind"]);
}

#[test]
fn a_model_that_is_worse_than_a_constant_is_warned_of() {
    let folder = Folder::new();
    let mut text = "x,y\n".to_owned();
    // A target that follows x in the fit and the opposite in the test.
    (0..40).for_each(|row| text.push_str(&format!("{},{}\n", row % 7, row % 7)));
    folder.write("t.csv", &text);
    folder.write("test.csv", "x,y\n0,6\n1,5\n5,1\n6,0\n");
    let told = folder.run("fit t.csv --target y --test test.csv");
    assert_eq!(told.code, 0);
    assert!(
        told.err
            .contains("warning: the model is worse than a constant (test file, 4 rows): RMSE"),
        "{}",
        told.err
    );
}

#[test]
fn a_chosen_penalty_is_named_in_what_a_forget_does_not_cover() {
    let folder = folder(120);
    let report = folder.json(&format!("{FIT} --lambda auto"));
    let choice = &report["summary"]["penalty"];
    assert_eq!(choice["tried"].as_array().unwrap().len(), 8);
    assert_eq!(report["summary"]["lambda"], choice["lambda"]);
    let codes = |report: &Value| -> Vec<String> {
        let list = report["evidence"]["not_covered"].as_array().unwrap();
        list.iter()
            .map(|entry| entry["code"].as_str().unwrap().to_owned())
            .collect()
    };
    assert!(
        codes(&folder.json("forget t.efface --ids r1 --json"))
            .contains(&"chosen_penalty".to_owned())
    );
    folder.json(&format!("{FIT} --lambda 3 -o given.efface"));
    assert!(
        !codes(&folder.json("forget given.efface --ids r1 --json"))
            .contains(&"chosen_penalty".to_owned())
    );
    let told = folder
        .run("fit t.csv --target kind --ignore y,person --id id --model logistic --lambda auto -o l.efface");
    assert!(
        told.err.contains("has the least log-loss by 5 folds"),
        "{}",
        told.err
    );
}

#[test]
fn a_condition_holds_for_test_rows_too() {
    let folder = folder(90);
    folder.write("test.csv", table(90).replace("\nr", "\nx"));
    for ids in ["--id id", "--ignore id"] {
        let report = folder.json(&format!(
            "fit t.csv --target y --ignore person {ids} --where kind=high --test test.csv --json -o m.efface --force --discard-log"
        ));
        let trained = report["summary"]["rows"].as_u64().unwrap();
        assert!(trained < 90, "{trained}");
        assert_eq!(stored(&report, "test")["rows"], trained, "{ids}");
    }
}

#[test]
fn test_rows_that_the_model_is_fitted_on_are_refused() {
    let folder = folder(90);
    // Two of these rows are in the model, under their ids.
    folder.write(
        "test.csv",
        table(90)
            .replace("\nr", "\nx")
            .replace("\nx1,", "\nr1,")
            .replace("\nx7,", "\nr7,"),
    );
    let few_rows = "--memory 2K";
    for memory in ["", few_rows] {
        folder.fails(
            &format!(
                "fit t.csv --target y --ignore kind --id id --test test.csv -o m.efface {memory}"
            ),
            2,
            &["2 of the 90 test rows are rows that the model is fitted on, by their ids"],
        );
    }
    std::fs::create_dir(folder.path("copy")).unwrap();
    for test in ["t.csv", "./t.csv", "copy/../t.csv"] {
        folder.fails(
            &format!(
                "fit t.csv --target y --ignore kind,id --where kind=high --test {test} -o m.efface"
            ),
            2,
            &["both are read from the same file"],
        );
    }
    assert!(!folder.path("m.efface").exists());
}

#[test]
fn what_makes_no_sense_is_refused() {
    let folder = folder(30);
    for (options, code, says) in [
        ("--holdout 1.5", 2, "above 0 and below 1"),
        ("--holdout 0", 2, "above 0 and below 1"),
        ("--cv 1", 2, "2 to 100"),
        ("--cv 5 --holdout 0.2", 2, "cannot be used with"),
        ("--lambda much", 2, "a number, or auto"),
        ("--lambda auto --sisa 2x2", 2, "in one piece"),
        ("--test missing.csv", 7, "missing.csv"),
    ] {
        folder.fails(
            &format!("fit t.csv --target y --ignore kind --id id {options} -o m.efface"),
            code,
            &[says],
        );
    }
    let clusters = "fit t.csv --model kmeans --clusters 2 --ignore id,person,kind,y";
    folder.fails(
        &format!("{clusters} --cv 3"),
        2,
        &["--cv has no meaning for --model kmeans"],
    );
    folder.done(&format!("{clusters} -o k.efface"));
    folder.fails("evaluate k.efface t.csv", 2, &["clusters have no target"]);
    assert!(!folder.path("m.efface").exists());
}
