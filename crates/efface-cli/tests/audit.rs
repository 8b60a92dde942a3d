//! `efface audit`: what people see, what is written, and what is refused.

mod common;

use std::path::{Path, PathBuf};

use common::Folder;

/// Sixty houses, of which two are twins, and a model of them.
fn houses() -> Folder {
    let folder = Folder::new();
    let mut text = String::from("house,owner,rooms,age,price\n");
    let mut state = 3u64;
    let mut next = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for at in 0..60 {
        let rooms = 1 + next(9);
        let age = next(100);
        let luck = next(60);
        text += &format!(
            "h{at},p{},{rooms},{age},{}\n",
            at % 12,
            70 * rooms + 3 * luck - age / 2
        );
    }
    text += "h60,p99,3,20,200\nh61,p98,3,20,200\n";
    folder.write("houses.csv", text);
    folder.done("fit houses.csv --target price --id house --subject owner");
    folder
}

/// Numbers that hang on time, and digits of rounding.
fn masked(page: &str) -> String {
    let mask = |word: &str| match word {
        "µs" | "ms" | "s" => "[unit]".to_owned(),
        word if word.parse::<f64>().is_ok_and(|value| value != 0.0) && word.contains('e') => {
            "[small]".to_owned()
        }
        // Rounding may also leave nothing at all.
        "0.000" => "[small]".to_owned(),
        // As long as the table is wide, which depends on how times are written.
        word if word.chars().all(|c| c == '─') => "───".to_owned(),
        word => word.to_owned(),
    };
    let line = |line: &str| {
        let mut words: Vec<String> = line.split_whitespace().map(mask).collect();
        let units: Vec<usize> = (1..words.len())
            .filter(|at| words[*at] == "[unit]")
            .collect();
        units
            .into_iter()
            .for_each(|at| words[at - 1] = "[time]".into());
        words.join(" ")
    };
    page.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn help_of_audit() {
    insta::assert_snapshot!(Folder::new().done("audit --help"));
}

#[test]
fn a_table_for_people() {
    let folder = houses();
    let ended = folder.run(
        "audit houses.efface --subject owner=p3 --method exact,influence --oracles 32 --seed 1",
    );
    assert_eq!(ended.code, 0, "{ended:?}");
    insta::assert_snapshot!(masked(&ended.out));
    insta::assert_snapshot!("what_is_said_beside_it", ended.err);
}

#[test]
fn twins_are_told_first() {
    let folder = houses();
    let ended = folder.run("audit houses.efface --forget h60 --oracles 0");
    assert!(
        ended
            .err
            .starts_with("warning: 1 of 1 row to forget stay as twins: h61; --with-twins"),
        "{ended:?}"
    );
    let ended = folder.run("audit houses.efface --forget h60 --oracles 0 --with-twins");
    assert!(ended.err.starts_with("1 twin forgotten along"), "{ended:?}");
}

#[test]
fn a_folder_holds_json_page_and_tables_and_is_not_overwritten() {
    let folder = houses();
    let line = "audit houses.efface --sample 5 --method exact --oracles 16 --out found";
    let before = std::fs::read(folder.path("houses.efface")).unwrap();
    let shown = folder.json(&format!("{line} --json"));
    assert_eq!(std::fs::read(folder.path("houses.efface")).unwrap(), before);
    let read = |name: &str| std::fs::read_to_string(folder.path("found").join(name)).unwrap();
    let kept: serde_json::Value = serde_json::from_str(&read("audit.json")).unwrap();
    assert_eq!(kept["membership"], shown["membership"]);
    assert_eq!(kept["states"][2]["state"], "exact");
    let relearning = &kept["states"][2]["relearning"];
    assert!(
        (relearning["ratio"].as_f64().unwrap() - 1.0).abs() <= 1.0 / 64.0,
        "{relearning}"
    );
    let exposure = &kept["membership"]["exposures"][1];
    assert_eq!(exposure["paired_klom"]["forgotten"]["worst"], 0.0);
    assert!(
        exposure["unpaired_klom"]["forgotten"]["p95"]
            .as_f64()
            .unwrap()
            > 0.0
    );
    assert!(
        exposure["unpaired_klom"]["binned_retained"]["p95"]
            .as_f64()
            .unwrap()
            > 0.0
    );
    let page = read("index.html");
    assert!(
        page.contains("Before any forgetting the attack is no better than a coin"),
        "a sentence begins large"
    );
    assert!(
        page.contains("Paired KLoM")
            && page.contains("Unpaired KLoM")
            && page.contains("relearned")
    );
    assert!(
        page.contains("What is not claimed") && page.contains("<svg") && !page.contains("<script")
    );
    assert!(
        !page.contains("http://") && !page.contains("https://"),
        "nothing comes from elsewhere"
    );
    // Every number of the page is in a table beside it.
    let tables: String = std::fs::read_dir(folder.path("found"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "csv"))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    let numbers = page
        .split("<data value=\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap());
    for number in numbers {
        assert!(tables.contains(number), "{number} is in no table");
    }
    folder.fails(line, 5, &["exists already", "--force"]);
    folder.done(&format!("{line} --force"));
}

#[test]
fn an_audit_can_be_put_on_record() {
    let folder = houses();
    let ended = folder.run("audit houses.efface --sample 5 --oracles 16 --record");
    assert!(
        ended.code == 0 && ended.err.contains("receipt "),
        "{ended:?}"
    );
    assert!(folder.done("log houses.efface").contains("audit"));
    folder.done("verify houses.efface");
}

#[test]
fn rows_that_are_gone_come_from_a_file() {
    let folder = houses();
    let text = std::fs::read_to_string(folder.path("houses.csv")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    folder.write(
        "gone.csv",
        format!("{}\n{}\n{}\n", lines[0], lines[1], lines[2]),
    );
    folder.write(
        "never.csv",
        format!("{}\nx1,p1,4,10,300\nx2,p1,2,60,110\n", lines[0]),
    );
    folder.fails(
        "audit houses.efface --file gone.csv",
        3,
        &["row h0, line 2, is in this model", "--forget"],
    );
    folder.done("forget houses.efface --ids h0,h1");
    let found =
        folder.json("audit houses.efface --file gone.csv --held-out never.csv --oracles 16 --json");
    assert_eq!(found["gone_before"], true);
    assert_eq!(found["states"][2]["state"], "model");
    assert!(found["states"][2]["distance"]["fraction"].as_f64().unwrap() < 1e-8);
    assert_eq!(found["states"][2]["held_out"]["rows"], 2);
}

#[test]
fn clusters_and_shards_are_audited_too() {
    let folder = houses();
    folder.done("fit houses.csv --model kmeans --clusters 3 --cell 1 --id house --ignore owner,price -o clusters.efface");
    folder.done(
        "fit houses.csv --target price --id house --ignore owner --sisa 2x1 -o shards.efface",
    );
    for (model, task) in [("clusters", "clusters"), ("shards", "regression")] {
        let found = folder.json(&format!(
            "audit {model}.efface --sample 5 --oracles 16 --json"
        ));
        assert_eq!(found["task"], task);
        assert_eq!(
            found["states"][2]["distance"]["largest_prediction_change"],
            0.0
        );
        assert!(found["states"][2]["relearning"].is_null());
        let ended = folder.run(&format!("audit {model}.efface --sample 5 --oracles 16"));
        assert!(
            ended.code == 0 && ended.err.contains("left out: relearning time"),
            "{ended:?}"
        );
    }
}

#[test]
fn bad_requests_are_refused() {
    let folder = houses();
    folder.fails(
        "audit houses.efface --forget h0,h99",
        4,
        &["row h99 is not in this model"],
    );
    folder.fails(
        "audit houses.efface --subject owner=p77",
        4,
        &["no row in this model", "with --file"],
    );
    folder.fails(
        "audit houses.efface --sample 50",
        5,
        &["retained rows: 12, and at least 16 are needed"],
    );
    folder.fails(
        "audit houses.efface --sample 5 --oracles 4",
        2,
        &["oracles = 4 is out of range"],
    );
    folder.fails(
        "audit houses.efface --sample 5 --method warm_start",
        5,
        &["training is a closed form"],
    );
    folder.fails(
        "audit houses.efface --sample 5 --held-out none.csv",
        7,
        &["none.csv"],
    );
    folder.write("file", "");
    folder.fails(
        "audit houses.efface --sample 5 --out file/under",
        7,
        &["cannot be made"],
    );
    let ended = folder.run("audit houses.efface");
    assert!(
        ended.code == 2 && ended.err.contains("--sample"),
        "{ended:?}"
    );
}

/// A file of the data folder: EFFACE_DATA, or `shared/data` beside the repository.
fn data(name: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let path = std::env::var_os("EFFACE_DATA")
        .map_or(beside, PathBuf::from)
        .join(name);
    if !path.exists() {
        eprintln!(
            "skipped: there is no {}; set EFFACE_DATA to the folder that holds it",
            path.display()
        );
        return None;
    }
    Some(path)
}

/// Reviews of clothes, as words: exact is at retraining, and an attacker cannot tell the two apart.
#[test]
fn real_reviews() {
    let Some(path) = data("womens-clothing/womens-clothing.csv.gz") else {
        return;
    };
    let folder = Folder::new();
    let file = path.to_string_lossy();
    let fit = [
        "fit",
        file.as_ref(),
        "--text",
        "text",
        "--target",
        "stars",
        "--positive",
        "4,5",
        "--id",
        "id",
    ];
    let rest = ["--vocab", "150", "--lambda", "1", "-o", "reviews.efface"];
    let ended = folder.words(&[&fit[..], &rest].concat());
    assert_eq!(ended.code, 0, "{ended:?}");
    let found =
        folder.json("audit reviews.efface --sample 40 --method exact --oracles 32 --seed 3 --json");
    let share = found["states"][2]["distance"]["fraction"].as_f64().unwrap();
    assert!(share < 1e-6, "{share}");
    let auc = |at: usize| {
        found["membership"]["exposures"][at]["forgotten"]["auc"]
            .as_f64()
            .unwrap()
    };
    assert!((auc(1) - auc(2)).abs() < 1e-3, "{} and {}", auc(1), auc(2));
}

#[test]
fn the_page_alone_opens_with_a_verdict_for_each_method() {
    let folder = houses();
    let audit = "audit houses.efface --subject owner=p3 --method exact,influence --oracles 32 --seed 1 --html page.html";
    let told = folder.run(audit);
    assert!(
        told.code == 0 && told.err.contains("written to page.html"),
        "{told:?}"
    );
    let page = std::fs::read_to_string(folder.path("page.html")).unwrap_or_default();
    let short = page.split("id=\"s-in-short\"").nth(1).unwrap_or_default();
    let list = short.split("</ul>").next().unwrap_or_default();
    assert!(
        list.contains("exact") && list.contains("as retraining"),
        "{list}"
    );
    assert!(
        list.contains("influence") && list.contains("leaves something"),
        "{list}"
    );
    assert!(
        page.contains("a coin, 0.5"),
        "the plot shows where a coin lies"
    );
    folder.fails(audit, 5, &["page.html exists already"]);
    folder.done(&format!("{audit} --force"));
}
