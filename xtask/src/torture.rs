//! What a model file must survive, as a table: xtask/torture does the work.

use anyhow::{Result, ensure};

use crate::root;

/// The parts of a run that takes a few minutes; kills and rows of the large model can be chosen.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    if let ["serve", rest @ ..] = words.as_slice() {
        return serve(rest.first().copied().unwrap_or("200"));
    }
    if let ["combinations", rest @ ..] = words.as_slice() {
        return combinations(rest);
    }
    let kills = words.first().copied().unwrap_or("500");
    ensure!(
        kills.parse::<u64>().is_ok(),
        "cargo xtask torture [KILLS [ROWS]]: {kills} is not a number"
    );
    let rows = words.get(1).copied().unwrap_or("1000000");
    let parts: [&[&str]; 14] = [
        &["writes"],
        &["leftovers", "100"],
        &["markers"],
        &["disk"],
        &["flips"],
        &["tamper", "100"],
        &["readers", "10000"],
        &["rollback", "20"],
        &["repeats", "100000"],
        &["latency", "1000"],
        &["groups"],
        &["kills", kills],
        &["bulk", "40"],
        &["open", rows, "256"],
    ];
    let program = program()?;
    for part in parts {
        crate::run(&program, part)?;
    }
    Ok(())
}

/// A server that is killed under load, again and again.
fn serve(kills: &str) -> Result<()> {
    ensure!(
        kills.parse::<u64>().is_ok(),
        "cargo xtask torture serve [KILLS]: {kills} is not a number"
    );
    crate::run(&program()?, &["serve-kills", kills])
}

/// Random combinations of options, each compared with a fresh fit.
fn combinations(words: &[&str]) -> Result<()> {
    let usage = "cargo xtask torture combinations [COUNT [FIRST [SECONDS]]]";
    ensure!(
        words.len() <= 3 && words.iter().all(|word| word.parse::<u64>().is_ok()),
        "{usage}"
    );
    let count = words.first().copied().unwrap_or("2000");
    let first = words.get(1).copied().unwrap_or("1");
    let seconds = words.get(2).copied().unwrap_or("86400");
    let program = program()?;
    crate::run("cargo", &["build", "--release", "--quiet"])?;
    let command = program.replace("efface-torture", "efface");
    crate::run(&program, &["combinations", &command, first, count, seconds])
}

/// A server under load, beside a handler that only answers.
pub(crate) fn bench_serve(args: &[String]) -> Result<()> {
    let seconds = args.first().map_or("60", String::as_str);
    ensure!(
        seconds.parse::<u64>().is_ok(),
        "cargo xtask bench serve [SECONDS]: {seconds} is not a number"
    );
    crate::run(&program()?, &["serve-load", seconds])
}

/// Built once: what is measured is one program, whatever happens to the sources meanwhile.
pub(crate) fn program() -> Result<String> {
    crate::run(
        "cargo",
        &[
            "build",
            "--release",
            "--quiet",
            "--package",
            "efface-torture",
        ],
    )?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root()?.join("target"), Into::into);
    Ok(target
        .join("release/efface-torture")
        .to_string_lossy()
        .into_owned())
}
