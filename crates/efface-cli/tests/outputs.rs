//! Files that commands write: none replaces a model, a key or what is no plain file, and killed
//! commands leave nothing that the next one does not remove.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{Folder, HOUSES};

/// Every option that writes a file of a name that the user gives, but that of a fit, which may
/// replace a model.
const WRITERS: [&str; 8] = [
    "forget houses.efface --ids h1 --receipt",
    "export houses.efface -o",
    "export houses.efface --format npz -o",
    "predict houses.efface houses.csv -o",
    "log houses.efface -o",
    "log houses.efface --receipt 0 -o",
    "log houses.efface --checkpoint -o",
    "log houses.efface --raw -o",
];

const FIT: &str = "fit houses.csv --target price --id house --subject owner -o";

/// Two models, and copies of a model and of a key under names that say nothing.
fn two_models() -> Folder {
    let folder = Folder::with_houses();
    folder.done(&format!("{FIT} other.efface"));
    std::fs::copy(folder.path("other.efface"), folder.path("data.bin")).unwrap();
    std::fs::copy(folder.path("other.efface.key"), folder.path("notes.txt")).unwrap();
    std::fs::create_dir(folder.path("sub")).unwrap();
    folder
}

/// Every file of a folder with its bytes.
fn contents(folder: &Folder) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<(String, Vec<u8>)> = std::fs::read_dir(folder.directory.path())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| {
            (
                entry.file_name().into_string().unwrap(),
                std::fs::read(entry.path()).unwrap(),
            )
        })
        .collect();
    all.sort();
    all
}

/// Runs a line with and without `--force`; both must be refused and leave every file as it was.
fn refused(folder: &Folder, line: &str, says: &str) {
    let before = contents(folder);
    folder.fails(line, 5, &[says, "hint: "]);
    folder.fails(&format!("{line} --force"), 5, &[says, "hint: "]);
    assert!(contents(folder) == before, "{line}");
}

#[test]
fn no_output_replaces_a_model_or_a_key() {
    let folder = two_models();
    for writer in WRITERS {
        for (model, says) in [
            ("houses.efface", "is a model"),
            ("sub/../houses.efface", "is a model"),
            ("other.efface", "is a model"),
            ("data.bin", "is a model"),
            ("houses.efface.key", "is a key file"),
            ("notes.txt", "is a key file"),
        ] {
            refused(&folder, &format!("{writer} {model}"), says);
        }
    }
    for key in ["houses.efface.key", "notes.txt"] {
        refused(&folder, &format!("{FIT} {key}"), "is a key file");
    }
    // Nothing was done before the refusal: no row left, nothing was logged as exported.
    let log = folder.done("log houses.efface --raw");
    assert_eq!(log.lines().count(), 1, "{log}");
}

#[cfg(unix)]
#[test]
fn other_names_of_a_model_are_the_model() {
    let folder = two_models();
    std::os::unix::fs::symlink("houses.efface", folder.path("link")).unwrap();
    std::os::unix::fs::symlink("../link", folder.path("sub/far")).unwrap();
    std::os::unix::fs::symlink("houses.efface.key", folder.path("keylink")).unwrap();
    std::fs::hard_link(folder.path("houses.efface"), folder.path("hard")).unwrap();
    for writer in WRITERS {
        for model in ["link", "sub/far", "hard"] {
            refused(&folder, &format!("{writer} {model}"), "is a model");
        }
        refused(&folder, &format!("{writer} keylink"), "is a key file");
    }
    assert!(folder.path("link").is_symlink());
}

#[cfg(unix)]
#[test]
fn what_is_no_plain_file_stays_what_it_is() {
    use std::os::unix::fs::FileTypeExt;
    let folder = two_models();
    let made = std::process::Command::new("mkfifo")
        .arg(folder.path("pipe"))
        .status()
        .unwrap();
    assert!(made.success());
    let _socket = std::os::unix::net::UnixListener::bind(folder.path("socket")).unwrap();
    std::os::unix::fs::symlink("/dev/null", folder.path("null")).unwrap();
    for writer in WRITERS.iter().chain([&FIT]) {
        for (name, says) in [
            ("pipe", "is a pipe"),
            ("socket", "is a socket"),
            ("/dev/null", "is a device"),
            ("null", "is a device"),
            ("sub", "is a folder"),
        ] {
            refused(&folder, &format!("{writer} {name}"), says);
        }
    }
    let kind = |name: &str| {
        std::fs::symlink_metadata(folder.path(name))
            .unwrap()
            .file_type()
    };
    assert!(kind("pipe").is_fifo() && kind("socket").is_socket() && kind("null").is_symlink());
}

#[test]
fn a_plain_file_is_overwritten_with_force_only() {
    let folder = two_models();
    for writer in WRITERS.iter().chain([&FIT]) {
        // Every forget needs a row that is still there.
        let line = format!("{writer} plain.txt");
        folder.write("plain.txt", "mine");
        folder.fails(&line, 5, &["plain.txt exists already", "hint: ", "--force"]);
        assert_eq!(std::fs::read(folder.path("plain.txt")).unwrap(), b"mine");
        folder.done(&format!("{line} --force"));
        assert_ne!(
            std::fs::read(folder.path("plain.txt")).unwrap(),
            b"mine",
            "{line}"
        );
        std::fs::remove_file(folder.path("plain.txt")).unwrap();
    }
}

#[test]
fn a_file_is_not_read_and_written_and_not_written_twice() {
    let folder = two_models();
    folder.write("ids.txt", "h1\n");
    refused_as_same(
        &folder,
        "predict houses.efface houses.csv -o houses.csv --force",
    );
    refused_as_same(
        &folder,
        "predict houses.efface houses.csv -o sub/../houses.csv --force",
    );
    refused_as_same(
        &folder,
        "forget houses.efface --ids-file ids.txt --receipt ids.txt --force",
    );
    refused_as_same(&folder, &format!("{FIT} houses.csv --force"));
    let network =
        "fit houses.csv --model bilstm --text city --target owner -o new.efface --checkpoint";
    refused_as_same(&folder, &format!("{network} new.efface"));
    refused_as_same(&folder, &format!("{network} sub/../new.efface.key"));
    refused_as_same(&folder, &format!("{network} houses.csv"));
    folder.fails(
        &format!("{network} houses.efface"),
        5,
        &["houses.efface is a model"],
    );
    folder.write("new.efface.key", "a diary");
    folder.fails(
        &format!("{FIT} new.efface --force"),
        5,
        &["new.efface.key is no key file"],
    );
}

fn refused_as_same(folder: &Folder, line: &str) {
    let before = contents(folder);
    folder.fails(line, 5, &["are the same file", "hint: "]);
    assert!(contents(folder) == before, "{line}");
}

#[test]
fn folders_of_results_are_judged_file_by_file() {
    let folder = two_models();
    std::fs::copy(folder.path("data.bin"), folder.path("sub/reviews.csv")).unwrap();
    folder.fails("demo --write sub --force", 5, &["reviews.csv is a model"]);
    let audit = "audit houses.efface --subject owner=ann --oracles 2 --out";
    std::fs::create_dir(folder.path("one")).unwrap();
    std::fs::copy(folder.path("data.bin"), folder.path("one/index.html")).unwrap();
    folder.fails(
        &format!("{audit} one --force"),
        5,
        &["index.html is a model"],
    );
    std::fs::create_dir(folder.path("two")).unwrap();
    std::fs::copy(folder.path("notes.txt"), folder.path("two/distance.csv")).unwrap();
    folder.fails(
        &format!("{audit} two --force"),
        5,
        &["distance.csv is a key file"],
    );
    std::fs::create_dir(folder.path("three")).unwrap();
    std::fs::copy(folder.path("data.bin"), folder.path("three/index.part")).unwrap();
    folder.fails(
        "reproduce l2 --quick --out three --force",
        5,
        &["index.part is a model"],
    );
    for (copy, original) in [
        ("sub/reviews.csv", "data.bin"),
        ("one/index.html", "data.bin"),
        ("two/distance.csv", "notes.txt"),
        ("three/index.part", "data.bin"),
    ] {
        assert_eq!(
            std::fs::read(folder.path(copy)).unwrap(),
            std::fs::read(folder.path(original)).unwrap()
        );
    }
}

#[cfg(unix)]
fn mode(folder: &Folder, name: &str) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(folder.path(name))
        .unwrap()
        .permissions()
        .mode()
        & 0o777
}

#[cfg(unix)]
#[test]
fn new_files_are_for_their_owner_unless_told_otherwise() {
    let folder = two_models();
    assert_eq!(
        (
            mode(&folder, "houses.efface"),
            mode(&folder, "houses.efface.key")
        ),
        (0o600, 0o600)
    );
    for writer in WRITERS.iter().skip(1).chain([&FIT]) {
        folder.done(&format!("{writer} out"));
        assert_eq!(mode(&folder, "out"), 0o600, "{writer}");
        let log = if *writer == FIT { "--discard-log" } else { "" };
        folder.done(&format!("{writer} out --force {log} --mode 644"));
        assert_eq!(mode(&folder, "out"), 0o644, "{writer}");
        std::fs::remove_file(folder.path("out")).unwrap();
    }
    assert_eq!(
        mode(&folder, "out.key"),
        0o600,
        "a mode is never for the key"
    );
    folder.done("forget houses.efface --ids h1 --receipt receipt.cose --mode 640");
    assert_eq!(
        (
            mode(&folder, "receipt.cose"),
            mode(&folder, "houses.efface")
        ),
        (0o640, 0o600)
    );
    for wrong in ["x", "888", "400", "077", "1777", "-1"] {
        let ended = folder.words(&["log", "houses.efface", &format!("--mode={wrong}")]);
        assert!(
            ended.code == 2 && ended.err.contains("three octal digits"),
            "{wrong}: {ended:?}"
        );
    }
}

#[cfg(unix)]
#[test]
fn a_model_behind_a_link_is_fitted_and_changed_in_its_place() {
    let folder = Folder::new();
    folder.write("houses.csv", HOUSES);
    std::fs::create_dir(folder.path("store")).unwrap();
    std::os::unix::fs::symlink("store/houses.efface", folder.path("link.efface")).unwrap();
    folder.done(&format!("{FIT} link.efface"));
    assert!(
        folder.path("link.efface").is_symlink() && folder.path("store/houses.efface.key").exists()
    );
    folder.done("forget link.efface --ids h1");
    folder.done("forget store/houses.efface --ids h2");
}

/// Every file whose name the program chooses beside a model, under every kind of foreign file, with
/// every command that reads or writes it: no command writes through a link or waits for a pipe.
#[cfg(unix)]
#[test]
fn a_foreign_file_beside_a_model_is_never_written_through_or_waited_for() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    let template = Folder::with_houses();
    template.write(
        "more.csv",
        "house,owner,city,rooms,price\nh9,eve,Graz,2,160\n",
    );
    template.done("index .");
    let fit = format!("{FIT} houses.efface --force --discard-log");
    let lines = [
        "inspect houses.efface",
        "forget houses.efface --ids h1",
        "learn houses.efface more.csv",
        "settle houses.efface",
        "keys houses.efface --rotate",
        "index .",
        "forget --models . --subject owner=ann --request r1",
        &fit,
    ];
    let mut succeeded = 0;
    for beside in [
        "houses.efface.head",
        "houses.efface-journal",
        "houses.efface-wal",
        "houses.efface-shm",
        "houses.efface.key",
        "subjects.index",
        "subjects.index.key",
    ] {
        for (kind, line) in ["symlink", "hard link", "pipe"]
            .iter()
            .flat_map(|kind| lines.iter().map(move |line| (*kind, *line)))
        {
            let folder = Folder::new();
            for (name, bytes) in contents(&template) {
                folder.write(&name, bytes);
                let mode = std::fs::Permissions::from_mode(0o600);
                std::fs::set_permissions(folder.path(&name), mode).unwrap();
            }
            let place = folder.path(beside);
            // The content of the file may be asked for: a copy of it is a target that is believed.
            let content = std::fs::read(&place).unwrap_or(b"somebody else's".to_vec());
            let _ = std::fs::remove_file(&place);
            let outside = tempfile::tempdir_in(folder.directory.path()).unwrap();
            let target = outside.path().join("target");
            std::fs::write(&target, &content).unwrap();
            let mode = if beside.ends_with(".key") {
                0o600
            } else {
                0o644
            };
            std::fs::set_permissions(&target, std::fs::Permissions::from_mode(mode)).unwrap();
            match kind {
                "symlink" => std::os::unix::fs::symlink(&target, &place).unwrap(),
                "hard link" => std::fs::hard_link(&target, &place).unwrap(),
                _ => assert!(
                    std::process::Command::new("mkfifo")
                        .arg(&place)
                        .status()
                        .unwrap()
                        .success()
                ),
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            let mut command = folder.command(&words);
            let ended = command.timeout(std::time::Duration::from_secs(60));
            let output = ended.output().unwrap();
            let told = format!("{line}, {beside} is a {kind}: {output:?}");
            assert!(output.status.code().is_some(), "{told}");
            assert_ne!(output.status.code(), Some(101), "{told}");
            let is_key = beside == "houses.efface.key" && kind == "symlink";
            // A key that lies elsewhere is one that the user put there: it follows the model.
            if !is_key {
                assert_eq!(std::fs::read(&target).unwrap(), content, "{told}");
            }
            let found = std::fs::metadata(&target).unwrap().permissions().mode() & 0o777;
            assert_eq!(found, mode, "{told}");
            if beside == "houses.efface.head" {
                assert!(output.status.success(), "{told}");
                let kept = std::fs::symlink_metadata(&place).unwrap().file_type();
                let changes = line.starts_with("forget houses") || line.starts_with("learn");
                assert!(!changes || kept.is_file() && !kept.is_fifo(), "{told}");
            }
            succeeded += usize::from(output.status.success());
        }
    }
    assert!(succeeded > 40, "only {succeeded} commands did their work");
}

#[test]
fn a_fit_removes_no_key_but_that_of_the_model_that_it_replaces() {
    let folder = Folder::with_houses();
    // The model is moved away, and another one is fitted in its place.
    std::fs::rename(folder.path("houses.efface"), folder.path("moved.efface")).unwrap();
    folder.done(&format!("{FIT} houses.efface"));
    std::fs::copy(
        folder.path("houses.efface.key"),
        folder.path("moved.efface.key"),
    )
    .unwrap();
    folder.done("forget moved.efface --ids h1");
    folder.done("forget houses.efface --ids h1");
    let lines = |folder: &Folder| {
        std::fs::read_to_string(folder.path("houses.efface.key"))
            .unwrap()
            .lines()
            .count()
    };
    assert_eq!(lines(&folder), 4, "two keys and two seeds");
    folder.done(&format!(
        "{FIT} houses.efface --force --discard-log --drop-suppressed"
    ));
    assert_eq!(
        lines(&folder),
        4,
        "those of the model that is gone went with it"
    );
    folder.done("keys houses.efface --rotate");
    assert_eq!(lines(&folder), 4);
    folder.done("forget houses.efface --ids h1");
}

/// Files that a killed command left.
fn leftovers(folder: &Folder) -> Vec<String> {
    let names = std::fs::read_dir(folder.directory.path()).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains(".efface-tmp")).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn the_next_command_removes_what_a_killed_one_left() {
    let folder = two_models();
    for command in [
        "inspect houses.efface",
        "predict houses.efface houses.csv",
        "export houses.efface",
        "forget houses.efface --ids h1",
        "keys houses.efface --rotate",
        "log houses.efface -o log.txt",
        "verify houses.efface",
        &format!("{FIT} new.efface"),
    ] {
        folder.write(".new.efface.0011223344556677.efface-tmp", "rows of people");
        folder.write(
            ".new.efface.0011223344556677.efface-tmp-journal",
            "rows of people",
        );
        folder.write(
            ".houses.efface.key.8899aabbccddeeff.efface-tmp",
            "a private key",
        );
        folder.write(".houses.json.0123456701234567.efface-tmp", "parameters");
        folder.done(command);
        assert!(
            leftovers(&folder).is_empty(),
            "{command}: {:?}",
            leftovers(&folder)
        );
    }
}

/// A fit that is killed while it writes rows, which its draft then holds.
#[cfg(target_os = "linux")]
#[test]
fn a_killed_fit_leaves_nothing_after_the_next_command() {
    let folder = Folder::with_houses();
    let mut rows = String::from("id,x,y\n");
    (0..40_000).for_each(|at| rows.push_str(&format!("marker{at},{},{}\n", at % 97, at % 89)));
    folder.write("rows.csv", rows);
    let words = [
        "fit",
        "rows.csv",
        "--target",
        "y",
        "--id",
        "id",
        "-o",
        "rows.efface",
        "--force",
        "--discard-log",
        "--quiet",
    ];
    // In memory, and by passes over the rows in the draft. Killed as soon as the draft is there; if
    // the fit was faster, it is tried again.
    for how in [&[][..], &["--model", "poisson", "--memory", "100K"]] {
        kill_in_time(&folder, &[&words[..], how].concat());
    }
}

#[cfg(target_os = "linux")]
fn kill_in_time(folder: &Folder, words: &[&str]) {
    for _ in 0..20 {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_efface"))
            .args(words)
            .current_dir(folder.directory.path())
            .spawn()
            .unwrap();
        while leftovers(folder).is_empty() && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if let [name, ..] = leftovers(folder).as_slice() {
            assert_eq!(mode(folder, name), 0o600);
            folder.done("inspect houses.efface");
            assert!(leftovers(folder).is_empty(), "{:?}", leftovers(folder));
            return;
        }
    }
    panic!("no fit was killed in time");
}
