//! Input that asks for too much, and text that wants to be obeyed: errors that name the limit, and
//! output that nothing obeys.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::Folder;

#[test]
fn what_asks_for_too_much_is_refused_with_the_limit() {
    let folder = Folder::with_houses();
    folder.write("wide.svm", "1 1:1\n2 2:1\n1 2147483648:1\n");
    folder.fails(
        "fit wide.svm -o a",
        3,
        &[
            "line 3, token 2: the index is not below 16777216",
            "limit on columns",
        ],
    );
    folder.write("few.svm", "1 1:1\n2 2:1\n1 9:1\n");
    folder.fails(
        "fit few.svm --max-columns 9 -o a",
        3,
        &["the index is not below 9"],
    );
    folder.done("fit few.svm --max-columns 10 -o few.efface");
    let texts = "fit houses.csv --target price --text city --id house --ignore owner";
    let hashed = format!("{texts} --hash 1000000000 -o a");
    folder.fails(
        &hashed,
        2,
        &["1000000000 features are more than the 16777216 that are accepted"],
    );
    let clusters = "fit houses.csv --model kmeans --ignore house,owner,city --clusters 18446744073709551615 -o a";
    folder.fails(clusters, 2, &["18446744073709551615 (7 distinct points)"]);
    let small = "fit houses.csv --target price --id house --max-memory 300 -o a";
    folder.fails(
        small,
        2,
        &[
            "the sums of",
            "more than the 300 that are allowed",
            "raise the limit on memory",
        ],
    );
    let passes = "fit houses.csv --target price --id house --model softmax --memory 300 -o a";
    folder.fails(
        passes,
        2,
        &[
            "the sums of 8 features take",
            "more than the 300 that are allowed",
        ],
    );
    let shards = "fit houses.csv --target price --id house --sisa 2x1 --memory 300 -o a";
    folder.fails(
        shards,
        3,
        &[
            "take more than 300 bytes of memory",
            "raise the limit on memory",
        ],
    );
    folder.fails(
        "fit houses.csv --target price --max-line 20 -o a",
        3,
        &["longer than 20 bytes"],
    );
    folder.fails(
        "predict houses.efface houses.csv --max-columns 3",
        3,
        &["above 3 columns"],
    );
    assert!(!folder.path("a").exists());
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_and_not_waited_for() {
    let folder = Folder::with_houses();
    assert!(
        std::process::Command::new("mkfifo")
            .arg(folder.path("pipe.csv"))
            .status()
            .unwrap()
            .success()
    );
    folder.fails("fit pipe.csv --target price", 7, &["it is no plain file"]);
    folder.fails(
        "predict houses.efface pipe.csv",
        7,
        &["it is no plain file"],
    );
}

#[test]
fn no_text_of_a_row_is_obeyed() {
    let folder = Folder::new();
    let mut rows = String::from("who,kind,x\n");
    for at in 0..12 {
        let kind = if at % 2 == 0 { "=1+1" } else { "\u{1b}[31mred" };
        rows.push_str(&format!("@id{at},{kind},{at}\n-{at},{kind},{}\n", at + 3));
    }
    folder.write("rows.csv", rows);
    folder.done("fit rows.csv --target kind --model logistic --id who -o m.efface");
    let scores = folder.done("predict m.efface rows.csv");
    assert!(!scores.contains('\u{1b}'), "{scores:?}");
    assert!(
        scores
            .lines()
            .skip(1)
            .all(|line| line.starts_with("'@id") || line.starts_with('-')),
        "{scores}"
    );
    assert!(
        scores.contains(",'=1+1,") && scores.contains("\\u{1b}[31mred"),
        "{scores}"
    );
    // JSON is for programs and says what is there.
    assert!(
        folder
            .done("predict m.efface rows.csv --json")
            .contains(r#""id":"@id0""#)
    );
    for line in ["inspect m.efface", "forget m.efface --ids @id0 --dry-run"] {
        let shown = folder.run(line);
        assert!(
            !shown.out.contains('\u{1b}') && !shown.err.contains('\u{1b}'),
            "{line}: {shown:?}"
        );
    }
}
