//! What a model file must survive, as a table: xtask/torture does the work.

use anyhow::{Result, ensure};

use crate::root;

/// The parts of a run that takes a few minutes; kills and rows of the large model can be chosen.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let kills = words.first().copied().unwrap_or("500");
    ensure!(kills.parse::<u64>().is_ok(), "cargo xtask torture [KILLS [ROWS]]: {kills} is not a number");
    let rows = words.get(1).copied().unwrap_or("1000000");
    let parts: [&[&str]; 13] = [
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
        &["open", rows, "256"],
    ];
    // Built once: what is measured is one program, whatever happens to the sources meanwhile.
    crate::run("cargo", &["build", "--release", "--quiet", "--package", "efface-torture"])?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root()?.join("target"), Into::into);
    let program = target.join("release/efface-torture");
    for part in parts {
        crate::run(&program.to_string_lossy(), part)?;
    }
    Ok(())
}
