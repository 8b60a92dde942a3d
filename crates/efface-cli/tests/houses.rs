//! Every verb on a small table.

mod common;

use efface::{Family, Method};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use common::{Folder, HOUSES};

#[test]
fn a_model_is_written_next_to_its_data() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("data")).unwrap();
    folder.write("data/houses.csv", HOUSES);
    let ended = folder.run("fit data/houses.csv --target price --ignore house,owner");
    assert!(ended.err.contains("data/houses.efface"), "{ended:?}");
    assert!(ended.err.contains("note: without --id"), "{ended:?}");
    assert!(ended.out.is_empty() && folder.path("data/houses.efface").is_file());
}

#[test]
fn fit_reports_in_json() {
    let folder = Folder::new();
    folder.write("houses.csv", HOUSES);
    let report =
        folder.json("fit houses.csv --target price --id house --subject owner --lambda 0.5 --json");
    let summary = &report["summary"];
    assert_eq!(
        (summary["rows"].as_u64(), summary["features"].as_u64()),
        (Some(7), Some(4))
    );
    assert_eq!(
        (summary["lambda"].as_f64(), &summary["outputs"]),
        (Some(0.5), &serde_json::json!(["price"]))
    );
    assert_eq!(
        folder.json("inspect houses.efface --json")["rows"].as_u64(),
        Some(7)
    );
}

#[test]
fn standard_input_is_a_file() {
    let folder = Folder::new();
    let line = "fit - --format csv --target price --id house --subject owner -o a.efface";
    assert_eq!(folder.run_with_input(line, HOUSES).code, 0);
    let ended = folder.run_with_input("forget a.efface --ids-file - --json", "h1\r\n\n-5\nh 5\n");
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.out.contains("\"forgotten\":3"), "{ended:?}");
    let ended = folder.run_with_input("fit - --target price -o b.efface", HOUSES);
    common::check_failure(
        "fit -",
        &ended,
        2,
        &["standard input", "hint: add --format"],
    );
}

#[test]
fn ids_may_be_negative() {
    for words in [
        &["forget", "houses.efface", "--ids", "-5", "--json"][..],
        &["forget", "houses.efface", "--ids=-5"],
    ] {
        let folder = Folder::with_houses();
        assert_eq!(folder.words(words).code, 0);
        assert_eq!(
            folder.json("inspect houses.efface --json")["rows"].as_u64(),
            Some(6)
        );
    }
}

#[test]
fn every_method_forgets() {
    for method in Method::all_for(Family::Ridge).iter().map(Method::name) {
        let folder = Folder::with_houses();
        let report = folder.json(&format!(
            "forget houses.efface --subject owner=ann --method {method} --json"
        ));
        assert_eq!(
            (report["forgotten"].as_u64(), report["rows"].as_u64()),
            (Some(2), Some(5)),
            "{method}"
        );
    }
}

#[test]
fn rows_are_learned_and_amended() {
    let folder = Folder::with_houses();
    folder.write(
        "more.csv",
        "house,owner,city,rooms,price\nh8,eve,Graz,2,160\n",
    );
    let ended = folder.run("learn houses.efface more.csv");
    assert!(
        ended.err.starts_with("learned 1 row: 8 rows now; "),
        "{ended:?}"
    );
    folder.fails("learn houses.efface more.csv", 3, &["h8", "hint: "]);
    folder.write(
        "right.csv",
        "house,owner,city,rooms,price\nh8,eve,Graz,2,170\n",
    );
    let report = folder.json("amend houses.efface right.csv --json");
    assert_eq!(
        (report["learned"].as_u64(), report["rows"].as_u64()),
        (Some(1), Some(8))
    );

    folder.write("all.csv", HOUSES.to_owned() + "h8,eve,Graz,2,170\n");
    folder.done("fit all.csv --target price --id house --subject owner");
    let changed = folder.json("export houses.efface");
    let fitted = folder.json("export all.efface");
    for (name, value) in fitted["coefficients"].as_object().unwrap() {
        let a = value[0].as_f64().unwrap();
        let b = changed["coefficients"][name][0].as_f64().unwrap();
        assert!((a - b).abs() < 1e-8 * a.abs().max(1.0), "{name}: {a} {b}");
    }
}

#[test]
fn what_was_forgotten_does_not_come_back() {
    let folder = Folder::with_houses();
    folder.done("forget houses.efface --ids h1");
    folder.write(
        "again.csv",
        HOUSES.lines().take(2).collect::<Vec<_>>().join("\n"),
    );
    folder.fails(
        "learn houses.efface again.csv",
        5,
        &["h1", "forgotten on", "hint: "],
    );
}

#[test]
fn predictions_of_numbers() {
    let folder = Folder::with_houses();
    let out = folder.done("predict houses.efface houses.csv");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!((lines.len(), lines[0]), (8, "id,prediction"));
    assert!(lines[5].starts_with("h 5,"), "{out}");
    let (_, first) = lines[1].split_once(',').unwrap();
    let line = folder
        .done("predict houses.efface houses.csv --json")
        .lines()
        .next()
        .unwrap()
        .to_owned();
    let object: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        (&object["id"], object["line"].as_u64()),
        (&"h1".into(), Some(2))
    );
    assert_eq!(object["prediction"].as_f64(), first.parse().ok());
}

#[test]
fn predictions_of_several_numbers_and_without_ids() {
    let folder = Folder::new();
    folder.write("houses.csv", HOUSES);
    folder.done("fit houses.csv --target price --target rooms --ignore house,owner");
    let out = folder.done("predict houses.efface houses.csv");
    assert!(
        out.starts_with("position,prediction price,prediction rooms\n0,"),
        "{out}"
    );
}

#[test]
fn predictions_of_classes() {
    let folder = Folder::new();
    folder.write("houses.csv", HOUSES);
    folder.done("fit houses.csv --target city --classify --id house --ignore owner -o city.efface");
    let out = folder.done("predict city.efface houses.csv");
    assert!(
        out.starts_with("id,prediction,score Graz,score Lyon,score Turin\nh1,"),
        "{out}"
    );
    folder.done("fit houses.csv --target city --positive Lyon,Turin --id house --ignore owner -o two.efface");
    let out = folder.done("predict two.efface houses.csv");
    assert!(out.starts_with("id,prediction,score\nh1,"), "{out}");
}

#[test]
fn predictions_go_to_a_file_and_not_over_one() {
    let folder = Folder::with_houses();
    let report = folder.json("predict houses.efface houses.csv -o out.csv --json");
    assert_eq!(report["rows"].as_u64(), Some(7));
    assert_eq!(
        std::fs::read_to_string(folder.path("out.csv"))
            .unwrap()
            .lines()
            .count(),
        7
    );
    folder.fails(
        "predict houses.efface houses.csv -o out.csv",
        5,
        &["out.csv exists already", "--force"],
    );
    folder.done("predict houses.efface houses.csv -o out.csv --force");
    assert!(
        std::fs::read_to_string(folder.path("out.csv"))
            .unwrap()
            .starts_with("id,")
    );
}

#[test]
fn a_failed_prediction_leaves_no_file() {
    let folder = Folder::with_houses();
    folder.write("bad.csv", "house,city,rooms\nh1,Lyon,3\nh2,Lyon,many\n");
    folder.fails(
        "predict houses.efface bad.csv -o out.csv",
        3,
        &["line 3", "rooms"],
    );
    let files = std::fs::read_dir(folder.directory.path()).unwrap().count();
    assert_eq!(
        files, 5,
        "houses.csv, houses.efface with its key and its head, and bad.csv"
    );
}

#[test]
fn exports_go_next_to_the_model() {
    let folder = Folder::with_houses();
    folder.done("export houses.efface --format npz");
    let report = folder.json("export houses.efface --format safetensors --json");
    assert_eq!(
        (&report["output"], report["features"].as_u64()),
        (&"houses.safetensors".into(), Some(4))
    );
    assert!(
        std::fs::read(folder.path("houses.npz"))
            .unwrap()
            .starts_with(b"PK")
    );
    folder.fails(
        "export houses.efface --format npz",
        5,
        &["houses.npz exists already"],
    );
    folder.done("export houses.efface -o houses.json");
    assert_eq!(
        std::fs::read_to_string(folder.path("houses.json")).unwrap(),
        folder.done("export houses.efface")
    );
}

#[test]
fn words_come_from_rows_or_a_file_or_hashes() {
    let folder = Folder::new();
    folder.write("t.csv", "say,y\nred apple,1\ngreen apple,2\nred pear,3\n");
    folder.write("words.txt", "apple\npear\n");
    let features = |rest: &str| {
        folder.done(&format!(
            "fit t.csv --text say --target y -o t.efface --force --discard-log {rest}"
        ));
        folder.json("inspect t.efface --json")["features"].as_u64()
    };
    assert_eq!(features(""), Some(4));
    assert_eq!(features("--vocab 2"), Some(2));
    assert_eq!(features("--vocab-file words.txt"), Some(2));
    assert_eq!(features("--hash 16"), Some(16));
}

#[test]
fn svmlight_has_its_target_in_the_line() {
    let folder = Folder::new();
    folder.write("a.svm", "1 1:0.5 3:1\n-1 2:2\n1 1:1 2:1\n");
    folder.done("fit a.svm");
    assert_eq!(
        folder.json("inspect a.efface --json")["rows"].as_u64(),
        Some(3)
    );
    folder.done("forget a.efface --ids 0");
}

#[test]
fn a_reader_that_stops_early_is_no_error() {
    let folder = Folder::with_houses();
    let rows: String = (0..20_000)
        .map(|row| format!("r{row},zoe,Lyon,3,1\n"))
        .collect();
    folder.write("many.csv", format!("house,owner,city,rooms,price\n{rows}"));
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("efface"))
        .args(["predict", "houses.efface", "many.csv"])
        .current_dir(folder.directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (line.as_str(), output.status.code(), output.stderr),
        ("id,prediction\n", Some(0), Vec::new())
    );
}

#[test]
fn completions_for_every_shell() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(
            folder
                .done(&format!("completions {shell}"))
                .contains("efface"),
            "{shell}"
        );
    }
}

#[test]
fn blanks_around_names_do_not_hide_rows() {
    let folder = Folder::new();
    folder.write(
        "t.csv",
        "id,who,x,y\na ,u1 ,1,2\nb, u2,2,3\nc,u1,3,5\nd,u3,4,4\n",
    );
    folder.done("fit t.csv --target y --id id --subject who -o t.efface");
    let report = folder.json("forget t.efface --subject who=u1 --json");
    assert_eq!(report["forgotten"].as_u64(), Some(2));
    let ended = folder.words(&["forget", "t.efface", "--ids", " b "]);
    assert_eq!(ended.code, 0, "{ended:?}");
}

#[test]
fn words_and_levels_that_were_not_there_at_fit_are_mentioned() {
    let folder = Folder::new();
    folder.write("t.csv", "id,kind,x,y\na,p,1,2\nb,q,2,3\nc,p,3,5\n");
    folder.write("more.csv", "id,kind,x,y\nd,zzz,4,4\n");
    folder.done("fit t.csv --target y --id id --categorical kind -o t.efface");
    let report = folder.json("learn t.efface more.csv --json");
    let listed = report["evidence"]["not_covered"].to_string();
    assert!(
        !listed.contains("unknown_names"),
        "a new level is a new feature: {listed}"
    );
    assert_eq!(folder.json("inspect t.efface --json")["features"], 4);
    // Words of a supplied list stay those of the list.
    folder.write("words.txt", "good\nbad\n");
    folder.write("t.csv", "id,note,y\na,good,2\nb,bad,3\nc,good,5\n");
    folder.write("more.csv", "id,note,y\nd,good unheard,4\n");
    folder.done("fit t.csv --target y --id id --text note --vocab-file words.txt -o w.efface");
    let ended = folder.run("learn w.efface more.csv");
    assert!(
        ended.code == 0 && ended.err.contains("1 words or levels of the new rows"),
        "{ended:?}"
    );
}

#[test]
fn a_dash_is_standard_output() {
    let folder = Folder::new();
    folder.write("t.csv", "x,y\n1,2\n2,3\n3,5\n");
    folder.done("fit t.csv --target y -o t.efface");
    assert!(
        folder
            .done("export t.efface --format json -o -")
            .starts_with('{')
    );
    assert!(
        folder
            .done("predict t.efface t.csv -o -")
            .starts_with("position,prediction")
    );
    assert!(!folder.path("-").exists());
}

/// A typo in a target costs every other row digits; forgetting it brings them back, and the report
/// says how.
#[test]
fn a_large_target_leaves_no_trace() {
    let folder = Folder::new();
    let mut text = String::from("id,a,b,y\n");
    for i in 0..50 {
        let a = f64::from(i * 7 % 11) - 5.0;
        let b = f64::from(i * 5 % 13) - 6.0;
        let y = if i == 9 {
            1e12
        } else {
            2.0 * a - b + f64::from(i % 3)
        };
        text += &format!("r{i},{a},{b},{y}\n");
    }
    folder.write("all.csv", &text);
    let left: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("r9,"))
        .collect();
    folder.write("left.csv", left.join("\n"));
    folder.done("fit all.csv --target y --id id -o all.efface");
    folder.done("fit left.csv --target y --id id -o left.efface");
    let report = folder.json("forget all.efface --ids r9 --json");
    assert_eq!(report["evidence"]["resummed"].as_bool(), Some(true));
    let [found, truth] =
        ["all", "left"].map(|name| folder.json(&format!("export {name}.efface --format json")));
    for name in ["a", "b"] {
        let value = |of: &serde_json::Value| of["coefficients"][name][0].as_f64().unwrap();
        assert!(
            (value(&found) - value(&truth)).abs() < 1e-12,
            "{found} {truth}"
        );
    }
}

/// Rows of two numbers with gaps, a level and words; the wanted labels follow from them.
fn reviews(rows: impl Iterator<Item = usize>) -> String {
    let line = |at: usize| {
        let size = if at.is_multiple_of(7) {
            String::new()
        } else {
            format!("{}", at * 13 % 29)
        };
        let mood = if at.is_multiple_of(3) { "bad" } else { "good" };
        format!(
            "r{at},{size},{mood} film number{} about the city{},{}\n",
            at % 5,
            at % 11,
            at % 3
        )
    };
    rows.map(line)
        .fold("id,size,text,stars\n".to_owned(), |table, line| {
            table + &line
        })
}

#[test]
fn features_forget_with_their_rows() {
    for steps in [
        "--text text --tfidf --sublinear --ngrams 1,2 --stop-words english --min-df 2 --max-df 0.9 --vocab 12",
        "--text text --numeric size --impute mean,indicator --scale standard --analyzer char_wb --ngrams 2,3",
        "--ignore text --impute constant=-1 --scale minmax",
        "--ignore text --impute indicator",
        "--text text --numeric size --impute mean --scale standard --vocab 6 --polynomial 2",
        "--text text --numeric size --impute mean --vocab 9 --polynomial 3 --interactions",
        "--text text --tfidf --fourier 25 --fourier-scale 0.7 --seed 3",
        "--text text --numeric size --impute mean --scale standard --tfidf --vocab 20 --pca 5",
        "--text text --svd 6",
        "--target-encode text --impute mean --target-smoothing 3",
    ] {
        let folder = Folder::new();
        folder.write("all.csv", reviews(0..40));
        folder.write(
            "left.csv",
            reviews((0..40).filter(|at| ![3, 28].contains(at))),
        );
        for data in ["all", "left"] {
            folder.done(&format!(
                "fit {data}.csv --target stars --id id --lambda 0.5 {steps}"
            ));
        }
        let report = folder.json("forget all.efface --ids r3,r28 --json");
        assert_eq!(report["claim"].as_str(), Some("exact"), "{steps}");
        let left = |what: &serde_json::Value| what["code"].as_str().unwrap().to_owned();
        let listed: Vec<String> = report["evidence"]["not_covered"]
            .as_array()
            .unwrap()
            .iter()
            .map(left)
            .collect();
        assert!(listed.is_empty(), "{listed:?}");
        let kept: Vec<String> = report["evidence"]["kept_beside"]
            .as_array()
            .unwrap()
            .iter()
            .map(left)
            .collect();
        assert!(
            kept.contains(&"forgotten_ids".into()) && kept.contains(&"storage_blocks".into()),
            "{kept:?}"
        );
        let scores = |model: &str| -> Vec<f64> {
            let lines = folder.done(&format!("predict {model}.efface left.csv --json"));
            lines
                .lines()
                .map(|line| {
                    serde_json::from_str::<serde_json::Value>(line).unwrap()["prediction"]
                        .as_f64()
                        .unwrap()
                })
                .collect()
        };
        for (a, b) in scores("all").into_iter().zip(scores("left")) {
            assert!((a - b).abs() < 1e-10, "{steps}: {a} and {b}");
        }
        folder.done("verify all.efface --rows");
    }
}

#[test]
fn steps_that_make_no_sense_are_refused() {
    let folder = Folder::new();
    folder.write("all.csv", reviews(0..10));
    folder.write("rows.svmlight", "1 1:2\n2 2:1\n");
    // Four corners of a square vary as much along either side.
    folder.write("even.csv", "a,b,y\n1,1,1\n1,-1,2\n-1,1,3\n-1,-1,4\n");
    for (words, code, said) in [
        (
            "fit all.csv --target stars --text text --ngrams 2,1",
            2,
            "runs of 2 to 1",
        ),
        (
            "fit all.csv --target stars --text text --analyzer char --stop-words english",
            2,
            "stop words are for words",
        ),
        (
            "fit all.csv --target stars --tfidf",
            2,
            "no column is read as words",
        ),
        (
            "fit all.csv --target stars --impute mean,constant=1",
            2,
            "two things",
        ),
        (
            "fit all.csv --target stars --text text --hash 8 --min-df 2",
            2,
            "--min-df and --max-df",
        ),
        (
            "fit all.csv --target stars --text text --sublinear",
            2,
            "--tfidf",
        ),
        (
            "fit rows.svmlight --scale standard",
            2,
            "svmlight lines have no columns",
        ),
        (
            "fit all.csv --target stars --text text --min-df 99",
            3,
            "no word of column `text` is left",
        ),
        (
            "fit all.csv --target stars --text text --polynomial 1",
            3,
            "it must be 2 to 4",
        ),
        (
            "fit all.csv --target stars --text text --pca 2 --svd 2",
            2,
            "cannot be used with",
        ),
        (
            "fit all.csv --target stars --text text --pca 0",
            3,
            "1 or more",
        ),
        (
            "fit all.csv --target stars --text text --pca 4000",
            3,
            "ask for at most 9",
        ),
        (
            "fit all.csv --target stars --text text --fourier 5 --fourier-scale 0",
            3,
            "above 0",
        ),
        (
            "fit all.csv --target stars --text text --interactions",
            2,
            "--polynomial",
        ),
        (
            "fit all.csv --target stars --target-encode nowhere",
            4,
            "there is no column `nowhere`",
        ),
        (
            "fit all.csv --target stars --target-encode text --text text",
            2,
            "choose one",
        ),
        (
            "fit all.csv --model kmeans --clusters 2 --ignore stars --target-encode text",
            2,
            "k-means has no target",
        ),
        (
            "fit even.csv --target y --pca 1",
            3,
            "as much along direction 2 as along direction 1",
        ),
    ] {
        let ended = folder.run(words);
        assert!(ended.err.contains(said), "{words}: {ended:?}");
        assert_eq!(ended.code, code, "{words}: {ended:?}");
    }
}
