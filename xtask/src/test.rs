//! Everything that CI runs, cheapest first, and the fuzzers.

use anyhow::{Context, Result};

use crate::python::VERIFIER;
use crate::{package, root, tidy};

pub(crate) fn run() -> Result<()> {
    crate::run("cargo", &["fmt", "--all", "--check"])?;
    tidy::run()?;
    crate::run("cargo", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    // The tests of efface-py are those of the Python package.
    crate::run("cargo", &["test", "--workspace", "--exclude", "efface-py"])?;
    // Without the Parquet reader the crate must still be whole.
    crate::run("cargo", &["test", "--package", "efface-io", "--no-default-features", "--lib"])?;
    torture()?;
    verifier()?;
    package::test()?;
    documentation()?;
    dependencies()
}

/// A short version of `cargo xtask torture`, with the program that the tests have built along.
fn torture() -> Result<()> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root()?.join("target"), Into::into);
    let program = target.join("debug/examples/torture");
    let program = program.to_string_lossy();
    crate::run(&program, &["kills", "40"])?;
    crate::run(&program, &["writes", "forget", "quick", "scrub"])?;
    crate::run(&program, &["flips"])?;
    crate::run(&program, &["repeats", "5000"])
}

/// The second verifier on the shared vectors, on every machine that has Python. Where its one library can neither be
/// found nor fetched, that is said.
fn verifier() -> Result<()> {
    if python("python3", "").is_none() {
        eprintln!("skipped: there is no python3, verify/ is not run");
        return Ok(());
    }
    let interpreter = match python("python3", "import cryptography") {
        Some(system) => system,
        None => match VERIFIER.interpreter() {
            Ok(path) => path.to_string_lossy().into_owned(),
            Err(error) => {
                eprintln!("skipped: `cryptography` cannot be installed, verify/ is not run: {error:#}");
                return Ok(());
            }
        },
    };
    crate::run(&interpreter, &["-m", "unittest", "discover", "verify"])
}

/// The interpreter, if it is there and can do this.
fn python(name: &str, code: &str) -> Option<String> {
    let output = std::process::Command::new(name).args(["-c", code]).output();
    output.is_ok_and(|output| output.status.success()).then(|| name.to_owned())
}

fn documentation() -> Result<()> {
    eprintln!("$ RUSTDOCFLAGS=-Dwarnings cargo doc --workspace --no-deps");
    let status = std::process::Command::new("cargo")
        .args(["doc", "--workspace", "--no-deps", "--quiet"])
        .env("RUSTDOCFLAGS", "-D warnings")
        .current_dir(root()?)
        .status()
        .context("cannot start cargo doc")?;
    anyhow::ensure!(status.success(), "the documentation has warnings");
    Ok(())
}

/// Licences and sources of the dependencies, where cargo-deny is installed.
fn dependencies() -> Result<()> {
    let there = std::process::Command::new("cargo-deny").arg("--version").output().is_ok();
    if !there {
        eprintln!(
            "skipped: cargo-deny is not installed (cargo install cargo-deny), licences are not checked"
        );
        return Ok(());
    }
    crate::run("cargo", &["deny", "check", "licenses", "bans", "sources"])
}

/// Runs every fuzz target for a while.
pub(crate) fn fuzz(seconds: &str) -> Result<()> {
    let limit = format!("-max_total_time={seconds}");
    for entry in std::fs::read_dir(root()?.join("fuzz/fuzz_targets")).context("fuzz/fuzz_targets")? {
        let path = entry?.path();
        let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { continue };
        let status = std::process::Command::new("cargo")
            .args(["+nightly", "fuzz", "run", name, "--", &limit, "-max_len=65536"])
            // The sanitizer reports tables of the bundled SQLite as defined twice; that is not what is looked for.
            .env("ASAN_OPTIONS", "detect_odr_violation=0")
            .current_dir(root()?)
            .status()
            .context("cannot start cargo fuzz")?;
        anyhow::ensure!(status.success(), "the fuzz target {name} found something");
    }
    Ok(())
}
