//! A folder of its own for each test, and the real command in it. Paths are relative, so that
//! output does not depend on where the folder is.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    dead_code,
    missing_docs,
    unreachable_pub
)]

use std::path::PathBuf;

use assert_cmd::Command;
use assert_cmd::cargo::cargo_bin_cmd;
use serde_json::Value;
use tempfile::TempDir;

pub struct Folder {
    pub directory: TempDir,
}

/// What a command said and how it ended.
#[derive(Debug)]
pub struct Ended {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// Seven houses of four people. The ids are such that one is negative and one holds a space.
pub const HOUSES: &str = "\
house,owner,city,rooms,price
h1,ann,Lyon,3,210
h2,bob,Turin,5,340
h3,ann,Lyon,2,150
-5,cy,Turin,4,280
h 5,cy,Graz,6,420
h6,dee,Graz,1,90
h7,bob,Lyon,3,205
";

impl Folder {
    pub fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    /// With `houses.csv` and a model `houses.efface` of it.
    pub fn with_houses() -> Self {
        let folder = Self::new();
        folder.write("houses.csv", HOUSES);
        folder.done("fit houses.csv --target price --id house --subject owner");
        folder
    }

    /// With `reviews.csv` and a model of it, both made by the lines of the help.
    pub fn with_reviews() -> Self {
        let folder = Self::new();
        folder.done("demo --write . --reviews 2100");
        folder.done(
            "fit reviews.csv --text text --target stars --subject user_id --id review_id --vocab 1500 --lambda 1e-4 \
             -o reviews.efface",
        );
        folder
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = cargo_bin_cmd!("efface");
        command
            .current_dir(self.directory.path())
            .env_remove("COLUMNS")
            .args(words);
        command
    }

    /// Runs a line whose words are split at blanks.
    pub fn run(&self, line: &str) -> Ended {
        self.words(&line.split_whitespace().collect::<Vec<_>>())
    }

    pub fn words(&self, words: &[&str]) -> Ended {
        ended(self.command(words))
    }

    pub fn run_with_input(&self, line: &str, input: &str) -> Ended {
        let mut command = self.command(&line.split_whitespace().collect::<Vec<_>>());
        command.write_stdin(input);
        ended(command)
    }

    /// Runs a line that must succeed, and gives its standard output.
    pub fn done(&self, line: &str) -> String {
        let ended = self.run(line);
        assert_eq!(ended.code, 0, "{line}: {ended:?}");
        ended.out
    }

    /// Runs a line that must succeed and print one JSON object.
    pub fn json(&self, line: &str) -> Value {
        let out = self.done(line);
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{line}: {error}: {out}"))
    }

    /// Runs a line that must do its work, end with code 8 because the result misses its tolerance,
    /// and print one JSON object.
    pub fn missed(&self, line: &str) -> Value {
        let ended = self.run(line);
        assert_eq!(ended.code, 8, "{line}: {ended:?}");
        serde_json::from_str(&ended.out)
            .unwrap_or_else(|error| panic!("{line}: {error}: {ended:?}"))
    }

    /// Runs a line that must fail with this code, print nothing, and say all of these things.
    pub fn fails(&self, line: &str, code: i32, says: &[&str]) -> Ended {
        let ended = self.run(line);
        check_failure(line, &ended, code, says);
        ended
    }
}

pub fn check_failure(line: &str, ended: &Ended, code: i32, says: &[&str]) {
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (code, ""),
        "{line}: {ended:?}"
    );
    assert!(ended.err.starts_with("error: "), "{line}: {ended:?}");
    for part in says {
        assert!(
            ended.err.contains(part),
            "{line}: {part:?} is not in {ended:?}"
        );
    }
}

fn ended(mut command: Command) -> Ended {
    let output = command.output().unwrap();
    Ended {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}
