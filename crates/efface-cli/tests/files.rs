//! Files as people have them: some of their rows, other separators, decimal commas, words for
//! nothing, dates, several files; and many requests in one file.

mod common;

use common::Folder;
use serde_json::Value;

fn parameters(folder: &Folder, model: &str) -> Value {
    folder.json(&format!("export {model} --expose-forgotten -o -"))["coefficients"].clone()
}

#[test]
fn a_condition_keeps_some_rows_under_their_positions() {
    let folder = Folder::new();
    folder.write(
        "all.csv",
        "split,x,y\ntrain,1,2\ntest,9,1\ntrain,2,3\ntrain,4,9\ntest,1,1\n",
    );
    folder.write("train.csv", "split,x,y\ntrain,1,2\ntrain,2,3\ntrain,4,9\n");
    let fit = [
        "fit",
        "all.csv",
        "--target",
        "y",
        "--ignore",
        "split",
        "--where",
        "split = train and not x > 100",
    ];
    assert_eq!(folder.words(&fit).code, 0);
    folder.done("fit train.csv --target y --ignore split");
    assert_eq!(
        parameters(&folder, "all.efface"),
        parameters(&folder, "train.efface")
    );
    // Predictions, JSON and requests call a row by the same name.
    let told = folder.words(&[
        "predict",
        "all.efface",
        "all.csv",
        "--where",
        "split = test",
    ]);
    assert!(
        told.out.starts_with("position,prediction\n1,"),
        "{}",
        told.out
    );
    assert!(
        told.out
            .lines()
            .nth(2)
            .unwrap_or_default()
            .starts_with("4,"),
        "{}",
        told.out
    );
    folder.fails(
        "forget all.efface --ids 1",
        4,
        &["row 1 is not in this model"],
    );
    folder.done("forget all.efface --ids 3");
    folder.write("train.csv", "split,x,y\ntrain,1,2\ntrain,2,3\n");
    folder.done("fit train.csv --target y --ignore split -o two.efface");
    let near = |a: &Value, b: &Value| {
        (a["x"][0].as_f64().unwrap_or(0.0) - b["x"][0].as_f64().unwrap_or(1.0)).abs() < 1e-9
    };
    assert!(near(
        &parameters(&folder, "all.efface"),
        &parameters(&folder, "two.efface")
    ));
    // Positions that were passed over are not given to rows that come later.
    folder.write("more.csv", "split,x,y\ntrain,5,5\n");
    folder.done("learn all.efface more.csv");
    folder.done("forget all.efface --ids 4");
}

#[test]
fn conditions_that_make_no_sense_are_refused() {
    let folder = Folder::new();
    folder.write("a.csv", "split,x,y\ntrain,1,2\ntest,9,1\n");
    for (expression, code, says) in [
        (
            "split = none",
            3,
            "no row of a.csv is meant by 'split' = 'none'",
        ),
        ("kind = x", 4, "`kind`"),
        ("split", 2, "one of = != < <= > >="),
        ("(x = 1", 2, "expected `)`"),
    ] {
        let ended = folder.words(&["fit", "a.csv", "--target", "y", "--where", expression]);
        assert_eq!(ended.code, code, "{expression}: {ended:?}");
        assert!(ended.err.contains(says), "{expression}: {}", ended.err);
    }
    folder.write("a.svm", "1 1:2\n");
    let ended = folder.words(&["fit", "a.svm", "--where", "x = 1"]);
    assert!(
        ended.code == 2 && ended.err.contains("svmlight lines have no columns"),
        "{ended:?}"
    );
    folder.fails(
        "fit a.csv --target y --id x --id split",
        2,
        &["--id", "cannot be used multiple times"],
    );
}

#[test]
fn semicolons_commas_and_words_for_nothing() {
    let folder = Folder::new();
    folder.write(
        "plain.csv",
        "id,size,city,y\na,1.5,Lyon,2.25\nb,3,Graz,4\nc,4.5,Lyon,5\n",
    );
    folder.write(
        "excel.csv",
        "id;size;city;y\na;1,5;Lyon;2,25\nb;3;Graz;4\nc;4,5;Lyon;5\n",
    );
    folder.write(
        "odd.csv",
        "id~size~city~y\na~1.5~Lyon~2.25\nb~3~Graz~4\nc~4.5~Lyon~5\n",
    );
    let fit = "--target y --id id";
    folder.done(&format!("fit plain.csv {fit}"));
    folder.done(&format!("fit excel.csv {fit} --decimal-comma"));
    folder.done(&format!("fit odd.csv {fit} --delimiter ~"));
    let plain = parameters(&folder, "plain.efface");
    assert_eq!(parameters(&folder, "excel.efface"), plain);
    assert_eq!(parameters(&folder, "odd.efface"), plain);
    // A semicolon is found; commas in numbers are only read as such when that is said.
    folder.fails(
        &format!("fit excel.csv {fit} -o m.efface"),
        3,
        &["line 2", "`y`", "add --decimal-comma"],
    );
    folder.fails(
        "predict plain.efface excel.csv",
        3,
        &["line 2", "`size`", "--decimal-comma", "--missing"],
    );
    assert!(
        folder
            .done("predict plain.efface excel.csv --decimal-comma")
            .contains("\na,")
    );
    folder.fails(
        &format!("fit odd.csv {fit} --delimiter ~~ -o m.efface"),
        2,
        &["one ASCII character"],
    );
    folder.write(
        "gaps.csv",
        "id,size,city,y\na,1.5,NA,2\nb,3,?,4\nc,4.5,Lyon,5\n",
    );
    let report = folder.json(&format!("fit gaps.csv {fit} --missing NA,? --json"));
    let columns = report["summary"]["feature_columns"].to_string();
    folder.write(
        "empty.csv",
        "id,size,city,y\na,1.5,,2\nb,3,,4\nc,4.5,Lyon,5\n",
    );
    let same = folder.json(&format!("fit empty.csv {fit} --json"));
    assert_eq!(columns, same["summary"]["feature_columns"].to_string());
    assert_eq!(
        parameters(&folder, "gaps.efface"),
        parameters(&folder, "empty.efface")
    );
}

#[test]
fn cells_that_keep_a_column_from_being_numbers_are_named() {
    let folder = Folder::new();
    let table = |cell: &dyn Fn(usize) -> String| {
        let mut text = "size,other,y\n".to_owned();
        for row in 0..60 {
            text.push_str(&format!("{},{},{}\n", cell(row), (row * row) % 41, row % 5));
        }
        text
    };
    let told = |cell: &dyn Fn(usize) -> String| {
        folder.write("t.csv", table(cell));
        let ended = folder.run("fit t.csv --target y -o m.efface --force --discard-log");
        assert_eq!(ended.code, 0, "{ended:?}");
        ended.err
    };
    for word in ["n/a", "NA", "?", "-", "null", "#N/A"] {
        let err = told(&|row| {
            if row == 11 {
                word.into()
            } else {
                (row % 9).to_string()
            }
        });
        assert!(
            err.contains("column `size` holds 59 numbers and 1 other cell, in line 13"),
            "{err}"
        );
        assert!(
            err.contains(&format!(
                "add --missing {word}; where values are meant, --categorical size"
            )),
            "{err}"
        );
    }
    // Of other content only the place is named.
    let err = told(&|row| {
        if row % 15 == 4 {
            "secret".into()
        } else {
            (row % 9).to_string()
        }
    });
    assert!(
        err.contains("4 other cells, in lines 6, 21, 36, …"),
        "{err}"
    );
    assert!(
        err.contains("--missing") && !err.contains("secret"),
        "{err}"
    );
    // Levels that look like numbers here and there are levels.
    for err in [
        told(&|row| {
            if row % 2 == 0 {
                "north".into()
            } else {
                (row % 9).to_string()
            }
        }),
        told(&|row| (row % 9).to_string()),
    ] {
        assert!(!err.contains("holds"), "{err}");
    }
    folder.write(
        "t.csv",
        table(&|row| {
            if row == 11 {
                "n/a".into()
            } else {
                format!("{row}.5")
            }
        }),
    );
    folder.fails(
        "fit t.csv --target y --max-levels 20 -o m.efface --force --discard-log",
        3,
        &[
            "line 13",
            "name words that stand for nothing with --missing",
        ],
    );
}

#[test]
fn the_same_rows_are_learned_once_under_a_name_and_told_of_without() {
    let folder = Folder::new();
    let table = |from: usize| {
        let mut text = "size,town,y\n".to_owned();
        for row in from..from + 49 {
            text.push_str(&format!(
                "{},{},{}\n",
                (row * row) % 41,
                ["Ulm", "Bonn"][row % 2],
                row % 5
            ));
        }
        text
    };
    folder.write("first.csv", table(0));
    folder.write("second.csv", table(7));
    folder.done("fit first.csv --target y -o m.efface");
    let rows = || folder.json("inspect m.efface --json")["rows"].clone();
    let same =
        "warning: rows of the same content were learned before: these 49 rows now count twice";
    let told = folder.run("learn m.efface second.csv --request night");
    assert!(
        told.code == 0 && !told.err.contains("same content"),
        "{told:?}"
    );
    let sequence =
        folder.json("learn m.efface second.csv --request night --json")["receipt"]["sequence"]
            .clone();
    assert_eq!((rows(), sequence), (98.into(), 1.into()));
    let again = folder.run("learn m.efface second.csv --request night");
    assert!(
        again.err.contains("note: this request was answered before"),
        "{again:?}"
    );
    folder.fails("learn m.efface first.csv --request night", 5, &["night"]);
    folder.fails("forget m.efface --ids 1 --request night", 5, &["night"]);
    assert_eq!(rows(), 98);
    // Without a name the rows double, whether the fit or a learn brought them, and that is said.
    for file in ["first.csv", "second.csv"] {
        let told = folder.run(&format!("learn m.efface {file}"));
        assert!(told.code == 0 && told.err.contains(same), "{told:?}");
        assert!(
            told.err.contains("--request") && told.err.contains("--id"),
            "{told:?}"
        );
    }
    assert_eq!(rows(), 196);
    let all: Vec<String> = [0..49, 98..147]
        .into_iter()
        .flatten()
        .map(|row: usize| row.to_string())
        .collect();
    folder.done(&format!("forget m.efface --ids {}", all[1..].join(",")));
    let told = folder.run("learn m.efface first.csv");
    assert!(
        told.err
            .contains("and some that were forgotten since are back"),
        "{told:?}"
    );
    folder.done("verify m.efface");
    // With ids the second time is an error, unless it is the same request.
    folder.write("ids.csv", "id,x,y\na,1,2\nb,2,3\nc,4,9\n");
    folder.write("more.csv", "id,x,y\nd,1,2\n");
    folder.done("fit ids.csv --target y --id id");
    folder.done("learn ids.efface more.csv --request r");
    folder.done("learn ids.efface more.csv --request r");
    folder.fails("learn ids.efface more.csv", 3, &["d"]);
    folder.fails("learn ids.efface more.csv --request s", 3, &["d"]);
}

#[test]
fn dates_beside_texts_are_features() {
    let folder = Folder::new();
    let rows = "id,when,note,other,y\na,2026-01-02,good,1,1\nb,2026-02-03,bad,2,3\nc,2026-03-04,good,3,9\n";
    folder.write("d.csv", rows);
    let report = folder.json("fit d.csv --target y --id id --text note --dates when --json");
    let columns = report["summary"]["feature_columns"].to_string();
    assert!(
        columns.contains("when") && !columns.contains("other"),
        "{columns}"
    );
}

/// A class that no row has any more has the least of all scores, and not three hundred digits.
#[test]
fn numbers_of_any_size_are_short() {
    let folder = Folder::new();
    folder.write("c.csv", "id,x,c\na,1,p\nb,2,p\nc,3,q\nd,4,q\ne,9,r\n");
    folder.done("fit c.csv --target c --id id --model naive-bayes");
    folder.done("forget c.efface --ids e");
    let told = folder.done("predict c.efface c.csv");
    assert!(
        told.contains("e308") && told.lines().all(|line| line.len() < 200),
        "{told}"
    );
}

#[test]
fn dates_are_days_in_every_file_of_the_model() {
    let folder = Folder::new();
    folder.write(
        "d.csv",
        "when,y\n1970-01-02,1\n1970-01-04,3\n1970-01-11T12:00:00Z,10.5\n",
    );
    folder.done("fit d.csv --target y --dates when --lambda 1e-9");
    folder.write("new.csv", "when\n1970-02-01\n");
    let told = folder.done("predict d.efface new.csv");
    let day: f64 = told
        .lines()
        .nth(1)
        .and_then(|line| line.split(',').nth(1))
        .map_or(0.0, |text| text.parse().unwrap_or(0.0));
    assert!((day - 31.0).abs() < 1e-6, "{told}");
    folder.write("bad.csv", "when\n02.03.2026\n");
    folder.fails(
        "predict d.efface bad.csv -o p.csv",
        3,
        &["line 2", "`when`", "no date", "2026-03-02"],
    );
    folder.fails(
        "fit d.csv --target y --dates then -o m.efface",
        4,
        &["`then`"],
    );
}

#[test]
fn several_files_are_one_table() {
    let folder = Folder::new();
    folder.write("one.csv", "id,x,y\na,1,2\nb,2,5\n");
    folder.write("two.jsonl", "{\"y\": 3, \"id\": \"c\", \"x\": 4}\n");
    folder.write("whole.csv", "id,x,y\na,1,2\nb,2,5\nc,4,3\n");
    folder.done("fit one.csv two.jsonl --target y --id id");
    folder.done("fit whole.csv --target y --id id");
    assert_eq!(
        parameters(&folder, "one.efface"),
        parameters(&folder, "whole.efface")
    );
    assert_eq!(
        folder
            .done("predict one.efface one.csv two.jsonl")
            .lines()
            .count(),
        4
    );
    folder.write("other.csv", "id,z,y\nd,1,2\n");
    folder.fails(
        "fit one.csv other.csv --target y --id id -o m.efface",
        3,
        &["other.csv", "lacks \"x\"", "\"z\""],
    );
    folder.write("bad.csv", "id,x,y\nd,1,many\n");
    folder.fails(
        "fit one.csv bad.csv --target y --id id -o m.efface",
        3,
        &["bad.csv: line 2", "`y`"],
    );
    folder.fails(
        "fit one.csv one.csv --target y --id id -o m.efface",
        3,
        &["one.csv, one.csv: row a occurs twice"],
    );
    folder.fails(
        "fit one.csv - --format csv --target y -o m.efface",
        2,
        &["standard input is read alone"],
    );
}

#[test]
fn columns_that_are_no_features_are_warned_of() {
    let folder = Folder::new();
    let mut text = "key,same,x,y\n".to_owned();
    (0..40).for_each(|row| text.push_str(&format!("k{row},7,{},{}\n", row % 9, row % 5)));
    folder.write("t.csv", text);
    let told = folder.run("fit t.csv --target y").err;
    assert!(
        told.contains("warning: column `key` has another value in every row"),
        "{told}"
    );
    assert!(
        told.contains("warning: column `same` has the same value in every row"),
        "{told}"
    );
    assert!(!told.contains("column `x`"), "{told}");
    let told = folder
        .run("fit t.csv --target y --id key --ignore same -o m.efface")
        .err;
    assert!(!told.contains("warning: column"), "{told}");
}

#[test]
fn unseen_values_are_reported() {
    let folder = Folder::with_houses();
    folder.write("new.csv", "house,city,rooms\nn1,Oslo,3\nn2,Lyon,4\n");
    let told = folder.run("predict houses.efface new.csv").err;
    assert!(
        told.contains("1 value in these rows (words, levels or indices) was not there at fit"),
        "{told}"
    );
}

#[test]
fn requests_of_a_file_are_one_commit_with_a_receipt_each() {
    let folder = Folder::with_houses();
    let lines = [
        r#"{"subject": "owner=ann", "request": "T-1", "requested_at": "2026-03-02T09:15:00Z"}"#,
        r#"{"ids": ["h2"], "request": "T-2"}"#,
        r#"{"ids": ["h99"], "allow_missing": true}"#,
    ];
    folder.write("requests.jsonl", lines.join("\n"));
    let before = folder.json("inspect houses.efface --json")["generation"].as_u64();
    assert!(
        folder
            .run("forget houses.efface --requests requests.jsonl --dry-run")
            .err
            .contains("would forget 3 rows")
    );
    let told = folder.run("forget houses.efface --requests requests.jsonl --json");
    assert_eq!(told.code, 4, "{told:?}");
    let answers: Vec<Value> = told
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_default())
        .collect();
    assert_eq!(answers[0]["report"]["forgotten"], 2);
    assert_eq!(
        (&answers[1]["request"], &answers[1]["report"]["forgotten"]),
        (&"T-2".into(), &1.into())
    );
    assert_eq!(answers[2]["report"]["outcome"], "not_found");
    assert!(
        answers[2]["error"].is_string() && answers.len() == 3,
        "a line for each request: {answers:?}"
    );
    let summary = folder.json("inspect houses.efface --json");
    assert_eq!(
        summary["generation"].as_u64(),
        before.map(|generation| generation + 1),
        "one commit"
    );
    assert_eq!(
        (summary["receipts"].as_u64(), summary["rows"].as_u64()),
        (Some(4), Some(4))
    );
    // The same file again changes nothing more for requests that have names.
    folder.write("requests.jsonl", lines[..2].join("\n"));
    let again = folder.run("forget houses.efface --requests requests.jsonl");
    assert_eq!(again.code, 0, "{again:?}");
    assert!(
        again.err.contains("T-2: erased, 1 row (answered before)"),
        "{}",
        again.err
    );
    for (line, says) in [
        (r#"{"ids": ["h7"], "subject": "owner=bob"}"#, "not both"),
        (r#"{"ids": []}"#, "not both"),
        (r#"{"rows": ["h7"]}"#, "request 1: no request at column"),
        (r#"{"subject": "bob"}"#, "COLUMN=VALUE"),
        ("", "holds no request"),
    ] {
        folder.write("wrong.jsonl", line);
        folder.fails("forget houses.efface --requests wrong.jsonl", 2, &[says]);
    }
    folder.write("half.jsonl", "{\"ids\": [\"h7\"]}\n{\"ids\": [\"h1\"]}\n");
    let told = folder.run("forget houses.efface --requests half.jsonl").err;
    assert!(told.contains("forgot 1 row for 1 request\n"), "{told}");
    assert_eq!(
        folder.json("inspect houses.efface --json")["rows"],
        3,
        "h7 left, and h1 had left before"
    );
}

#[test]
fn a_file_of_many_ids_is_one_request_with_one_effect() {
    let folder = Folder::new();
    let rows: String = (0..3000)
        .map(|row| format!("r{row},{},{}\n", row % 17, row % 5 + row % 17))
        .collect();
    folder.write("table.csv", format!("id,x,y\n{rows}"));
    folder.done("fit table.csv --target y --id id -o many.efface");
    let ids: String = (0..1500).map(|row| format!("r{}\n", row * 2)).collect();
    folder.write("ids.txt", &ids);
    // One id that is not there: nothing happens to the others.
    folder.write("wrong.txt", format!("{ids}nobody\n"));
    folder.fails(
        "forget many.efface --ids-file wrong.txt --request T-0",
        4,
        &["nobody is not in this model"],
    );
    assert_eq!(folder.json("inspect many.efface --json")["rows"], 3000);
    let first = folder.json("forget many.efface --ids-file ids.txt --request T-1 --json");
    assert_eq!(
        (first["forgotten"].as_u64(), first["rows"].as_u64()),
        (Some(1500), Some(1500))
    );
    // As after a command that was cut short and is given again.
    let again = folder.json("forget many.efface --ids-file ids.txt --request T-1 --json");
    assert_eq!(
        (again["replayed"].as_bool(), &again["receipt"]),
        (Some(true), &first["receipt"])
    );
    assert!(!folder.done("verify many.efface").contains("fails"));
}
