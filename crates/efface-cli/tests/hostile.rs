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

/// SQLite takes some names for URIs, or for no file at all. For a command they are names of files.
#[test]
fn a_model_may_have_any_name() {
    let folder = Folder::with_houses();
    std::fs::create_dir(folder.path("file:sub")).unwrap();
    for name in [
        "file:x.efface",
        ":memory:",
        "file::memory:",
        "file:x.efface?mode=memory",
        "file:sub/x.efface",
        "%41.efface",
        "x.efface?immutable=1",
    ] {
        let copy = format!("{name}.copy");
        let fit = [
            "fit",
            "houses.csv",
            "--target",
            "price",
            "--id",
            "house",
            "-o",
            name,
        ];
        for words in [
            &fit[..],
            &["inspect", name],
            &["forget", name, "--ids", "h1"],
            &["verify", name],
            &["backup", name, "-o", &copy],
            &["inspect", &copy],
        ] {
            let ended = folder.words(words);
            assert_eq!(ended.code, 0, "{words:?}: {ended:?}");
        }
        assert!(folder.path(name).is_file() && folder.path(&copy).is_file());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_written_is_a_failure() {
    let folder = Folder::with_houses();
    folder.done("evidence houses.efface --receipt 0 -o pack.zip");
    folder.write("model.pub", folder.done("keys houses.efface"));
    folder.done("log houses.efface --receipt 0 -o 0.cose");
    let mut printed = 0;
    for line in [
        "--help",
        "-h",
        "--version",
        "help",
        "help fit",
        "help token create",
        "fit --help",
        "fit -h",
        "completions bash",
        "completions --man",
        "inspect houses.efface",
        "inspect houses.efface --json",
        "log houses.efface",
        "log houses.efface --raw",
        "log houses.efface --checkpoint",
        "log houses.efface --receipt 0",
        "keys houses.efface",
        "policy houses.efface",
        "verify houses.efface",
        "verify 0.cose --key model.pub",
        "verify pack.zip --key model.pub",
        "receipt show 0.cose",
        "predict houses.efface houses.csv",
        "evaluate houses.efface houses.csv",
        "export houses.efface -o -",
        "forget houses.efface --ids h1 --dry-run --json",
        "settle houses.efface --json",
        "token list tokens.json --json",
    ] {
        // A line that prints nothing has nothing to lose.
        if folder.run(line).out.is_empty() {
            continue;
        }
        printed += 1;
        let full = std::fs::File::options().write(true).open("/dev/full");
        let ended = std::process::Command::new(assert_cmd::cargo::cargo_bin!("efface"))
            .current_dir(folder.directory.path())
            .args(line.split_whitespace())
            .stdout(full.unwrap())
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(7), "{line}: {told}");
        assert!(
            told.contains("standard output cannot be written"),
            "{line}: {told}"
        );
    }
    assert!(printed > 20, "only {printed} lines print something");
}

/// Whatever `ulimit -v` leaves, a fit is done or says that it is too little.
#[cfg(target_os = "linux")]
#[test]
fn a_small_address_space_never_aborts_a_fit() {
    let folder = Folder::new();
    let rows: String = (0..60_000)
        .map(|row| format!("{},{},{},{}\n", row % 89, row % 97, row % 7, row % 2))
        .collect();
    folder.write("rows.csv", format!("a,b,c,y\n{rows}"));
    let program = assert_cmd::cargo::cargo_bin!("efface");
    let mut done = 0;
    for kilobytes in [
        200_000, 400_000, 700_000, 1_000_000, 1_300_000, 2_000_000, 6_000_000,
    ] {
        for options in ["", "--memory 1M", "--model logistic"] {
            let line = format!(
                "ulimit -v {kilobytes}; exec {} fit rows.csv --target y {options} -o m.efface --force --discard-log",
                program.display()
            );
            let mut shell = std::process::Command::new("sh");
            let ended = shell
                .args(["-c", &line])
                .current_dir(folder.directory.path());
            let ended = ended.output().unwrap();
            let told = String::from_utf8_lossy(&ended.stderr);
            let refused = ended.status.code() == Some(7) && told.contains("ulimit -v");
            assert!(ended.status.success() || refused, "{line}: {told}");
            done += usize::from(ended.status.success());
        }
    }
    assert!(done > 2, "only {done} fits were done");
}
