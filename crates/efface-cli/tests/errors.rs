//! Requests and files that cannot be served: the exit code, the message, the hint, and that nothing
//! changes.

mod common;

use common::{Folder, HOUSES};

fn table(content: &str) -> Folder {
    let folder = Folder::new();
    folder.write("a.csv", content);
    folder
}

#[test]
fn ids_that_are_wrong() {
    let folder = Folder::with_houses();
    let before = std::fs::read(folder.path("houses.efface")).unwrap();
    folder.fails(
        "forget houses.efface --ids h99",
        4,
        &["row h99 is not in this model"],
    );
    folder.fails(
        "forget houses.efface --ids h1,-99",
        4,
        &["row -99 is not in this model"],
    );
    folder.fails(
        "forget houses.efface --ids h1,h1",
        2,
        &["row h1 is named twice"],
    );
    folder.fails(
        "forget houses.efface --ids h1,,h2",
        2,
        &["id 2 of 3 is empty", "hint: "],
    );
    folder.fails(
        "forget houses.efface --subject owner=nobody",
        4,
        &["nobody", "owner"],
    );
    folder.fails(
        "forget houses.efface --subject city=Lyon",
        4,
        &["owner", "city", "hint: "],
    );
    folder.write("none.txt", "\n");
    folder.fails(
        "forget houses.efface --ids-file none.txt",
        2,
        &["names no row", "hint: "],
    );
    folder.fails(
        "forget houses.efface --ids-file absent.txt",
        7,
        &["absent.txt"],
    );
    assert_eq!(std::fs::read(folder.path("houses.efface")).unwrap(), before);
}

#[test]
fn a_row_can_be_forgotten_once() {
    let folder = Folder::with_houses();
    folder.done("forget houses.efface --ids h1");
    folder.fails(
        "forget houses.efface --ids h1",
        4,
        &["row h1 is not in this model; it was forgotten on 2"],
    );
    folder.fails("forget houses.efface --ids h1 --json", 4, &["row h1"]);
}

#[test]
fn forgetting_every_row_is_refused() {
    let folder = Folder::with_houses();
    folder.write("ids.txt", "h1\nh2\nh3\n-5\nh 5\nh6\nh7\n");
    folder.fails(
        "forget houses.efface --ids-file ids.txt",
        5,
        &["would leave none"],
    );
    assert_eq!(
        folder.json("inspect houses.efface --json")["rows"].as_u64(),
        Some(7)
    );
}

#[test]
fn command_lines_that_make_no_sense() {
    let folder = Folder::with_houses();
    folder.fails("forget houses.efface", 2, &["--ids", "--subject"]);
    folder.fails(
        "forget houses.efface --ids h1 --subject owner=ann",
        2,
        &["cannot be used with"],
    );
    folder.fails(
        "forget houses.efface --ids h1 --method magic",
        2,
        &["magic", "projection_residual"],
    );
    folder.fails("forget houses.efface --subject ann", 2, &["COLUMN=VALUE"]);
    folder.fails(
        "fit houses.csv -o b.efface",
        2,
        &["no target", "hint: name it with --target", "`city`"],
    );
    folder.fails(
        "fit houses.csv --target price --vocab 9 -o b.efface",
        2,
        &["--text"],
    );
    folder.fails(
        "fit houses.csv --target price --lambda -1 -o b.efface",
        2,
        &["lambda = -1", "0 or more"],
    );
    folder.fails(
        "fit houses.csv --target price --text price -o b.efface",
        2,
        &["`price`"],
    );
    folder.fails("frobnicate", 2, &["frobnicate"]);
    folder.write("houses.txt", HOUSES);
    folder.fails(
        "fit houses.txt --target price -o b.efface",
        2,
        &["houses.txt", ".parquet"],
    );
}

#[test]
fn a_column_that_is_not_there_is_named_with_those_that_are() {
    let folder = Folder::with_houses();
    for line in [
        "fit houses.csv --target prize -o b.efface",
        "fit houses.csv --target price --id prize -o b.efface",
        "fit houses.csv --target price --text prize -o b.efface",
        "fit houses.csv --target price --ignore prize -o b.efface",
    ] {
        folder.fails(
            line,
            4,
            &["`prize`", "`house`, `owner`, `city`, `rooms`, `price`"],
        );
    }
    folder.write("narrow.csv", "house,city\nh1,Lyon\n");
    folder.fails(
        "predict houses.efface narrow.csv",
        4,
        &["`rooms`", "`house`, `city`"],
    );
    assert!(!folder.path("b.efface").exists());
}

#[test]
fn data_that_cannot_be_used() {
    let fit = "fit a.csv --target y";
    table("x,y\n1,2\n2,many\n").fails(fit, 3, &["line 3", "`y`"]);
    table("x,y\n1,2\n2\n").fails(fit, 3, &["line 3", "1 field"]);
    table("").fails(fit, 3, &["a.csv", "empty"]);
    table("x,y\n").fails(fit, 3, &["a.csv", "no rows"]);
    table("x,y\n1,2\nNaN,3\n").fails(fit, 3, &["line 3", "`x`"]);
    table("x,y\n1,2\n2,inf\n").fails(fit, 3, &["line 3", "`y`"]);
    table("x,y\n1,2\n2,\n").fails(fit, 3, &["line 3", "`y`"]);
    table("x,x,y\n1,2,3\n").fails(fit, 3, &["\"x\""]);
    let twice = table("i,x,y\na,1,2\na,2,3\n");
    twice.fails("fit a.csv --target y --id i", 3, &["lines 2 and 3"]);
    assert!(!twice.path("a.efface").exists());
}

#[test]
fn model_files_that_cannot_be_used() {
    let folder = Folder::with_houses();
    for line in [
        "inspect houses.csv",
        "export houses.csv",
        "predict houses.csv houses.csv",
        "forget houses.csv --ids h1",
        "learn houses.csv houses.csv",
    ] {
        folder.fails(line, 6, &["houses.csv is not an efface model", "hint: "]);
    }
    folder.fails("inspect absent.efface", 7, &["absent.efface"]);
}

#[test]
fn files_that_are_not_there_or_must_not_be_lost() {
    let folder = Folder::with_houses();
    folder.fails("fit absent.csv --target y", 7, &["absent.csv"]);
    folder.fails("predict houses.efface absent.csv", 7, &["absent.csv"]);
    folder.fails(
        "fit houses.csv --target price -o nowhere/b.efface",
        7,
        &["nowhere"],
    );
    folder.fails("export houses.efface -o nowhere/b.json", 7, &["nowhere"]);
    let again = "fit houses.csv --target price --id house --subject owner";
    folder.fails(
        again,
        5,
        &["houses.efface exists already", "hint: ", "--force"],
    );
    folder.done(&format!("{again} --force --discard-log"));
}

#[test]
fn errors_repeat_no_content() {
    let folder = table("x,y,secret\n1,2,falcon\n2,kestrel,falcon\n");
    let ended = folder.fails("fit a.csv --target y", 3, &["line 3"]);
    assert!(
        !ended.err.contains("kestrel") && !ended.err.contains("falcon"),
        "{ended:?}"
    );
}

#[test]
fn ids_with_control_characters_do_no_harm() {
    let folder = Folder::with_houses();
    let ended = folder.words(&["forget", "houses.efface", "--ids", "\u{1b}[2Jh1"]);
    assert_eq!(ended.code, 4, "{ended:?}");
    assert!(
        ended.err.contains("\\u{1b}[2Jh1") && !ended.err.contains('\u{1b}'),
        "{ended:?}"
    );
    let ended = folder.words(&[
        "forget",
        "houses.efface",
        "--ids",
        "h1",
        "--request",
        "a\u{7}b",
    ]);
    assert_eq!(ended.code, 2, "{ended:?}");
}

/// A real line of ten gigabytes, in files that take no room, under a limit on memory.
#[cfg(target_os = "linux")]
#[test]
fn a_line_of_ten_gigabytes() {
    let folder = Folder::with_houses();
    let before = std::fs::read(folder.path("houses.efface")).unwrap();
    for (name, start) in [
        ("big.csv", "id,y\na,1\n"),
        ("big.tsv", "id\ty\na\t1\n"),
        ("big.jsonl", "{\"y\":1}\n"),
        ("big.svm", "1 1:2\n"),
        ("list", "h1\n"),
        (
            "more.csv",
            "house,owner,city,rooms,price\nz1,ann,Lyon,3,210\n",
        ),
    ] {
        folder.write(name, start);
        let file = std::fs::File::options()
            .write(true)
            .open(folder.path(name))
            .unwrap();
        file.set_len(10 << 30).unwrap();
    }
    let run = |line: &str, input: &str| {
        let script = format!("ulimit -v 2000000 && exec \"$0\" {line} < {input}");
        let output = std::process::Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_efface")])
            .current_dir(folder.directory.path())
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        common::Ended {
            code: output.status.code().unwrap_or(-1),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    };
    let limit = "is longer than 67108864 bytes";
    for (line, input, code, says) in [
        (
            "fit big.csv --target y -o m.efface",
            "/dev/null",
            3,
            ["line 3", limit],
        ),
        (
            "fit big.tsv --target y -o m.efface",
            "/dev/null",
            3,
            ["line 3", limit],
        ),
        (
            "fit big.jsonl --target y -o m.efface",
            "/dev/null",
            3,
            ["line 2", limit],
        ),
        ("fit big.svm -o m.efface", "/dev/null", 3, ["line 2", limit]),
        (
            "fit - --format csv --target y -o m.efface",
            "big.csv",
            3,
            ["line 3", limit],
        ),
        (
            "learn houses.efface more.csv",
            "/dev/null",
            3,
            ["line 3", limit],
        ),
        (
            "predict houses.efface more.csv -o p.csv",
            "/dev/null",
            3,
            ["line 3", limit],
        ),
        (
            "forget houses.efface --ids-file list",
            "/dev/null",
            2,
            ["line 2", "is longer than 1048576 bytes"],
        ),
        (
            "forget houses.efface --ids-file -",
            "list",
            2,
            ["line 2", "is longer than 1048576 bytes"],
        ),
        (
            "fit houses.csv --target price --text city --vocab-file list -o m.efface",
            "/dev/null",
            2,
            ["line 2", "is longer than 1048576 bytes"],
        ),
    ] {
        common::check_failure(line, &run(line, input), code, &says);
        assert!(!folder.path("m.efface").exists());
    }
    assert_eq!(std::fs::read(folder.path("houses.efface")).unwrap(), before);
}

#[test]
fn a_class_that_would_be_emptied_is_named_to_whoever_has_the_file() {
    let folder = Folder::new();
    let rows: String = (0..12)
        .map(|row| format!("{row},{row}.5,{}\n", ["left", "right"][row % 2]))
        .collect();
    folder.write("rows.csv", format!("id,x,y\n{rows}last,2.5,sideways\n"));
    folder.done("fit rows.csv --target y --id id --model softmax -o rows.efface");
    folder.fails(
        "forget rows.efface --ids last",
        5,
        &["last row of a class", "hint: the class is `sideways`"],
    );
    // A request with a name is answered by a receipt, which others read.
    folder.run("forget rows.efface --ids last --request R-1");
    let log = folder.done("log rows.efface --receipt 1");
    assert!(
        log.contains("last row of a class") && !log.contains("sideways"),
        "{log}"
    );
}
