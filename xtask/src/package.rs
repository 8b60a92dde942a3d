//! The Python package: its wheel in an environment under target/, its tests, and its benchmark
//! beside scikit-learn.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::python::{ENGINES, Environment, PACKAGE};
use crate::root;

/// Builds the package's wheel and installs it. The tests take the profile of `cargo test`, whose
/// dependencies are built already.
fn install(environment: &Environment, release: bool) -> Result<PathBuf> {
    let python = environment.interpreter()?;
    install_wheel(&python, "python", release)?;
    Ok(python)
}

/// Builds the aggregate function of DataFusion and installs it. It is a workspace of its own, and
/// always optimised: what is optimised in it is little.
fn install_aggregate(python: &Path) -> Result<()> {
    install_wheel(python, "python/datafusion-aggregate", true)
}

fn install_wheel(python: &Path, folder: &str, release: bool) -> Result<()> {
    let wheels = root()?.join("target/wheels");
    // Wheels of other versions would be installed along.
    if wheels.exists() {
        std::fs::remove_dir_all(&wheels).context("cannot empty target/wheels")?;
    }
    let out = wheels.to_string_lossy();
    let mut args = vec![
        "-m",
        "maturin",
        "build",
        "--quiet",
        "--out",
        &out,
        "--interpreter",
    ];
    let interpreter = python.to_string_lossy();
    args.push(&interpreter);
    if release {
        args.push("--release");
    }
    run(python, &args, folder)?;
    let wheel = std::fs::read_dir(&wheels)?
        .next()
        .context("maturin left no wheel")??
        .path();
    let wheel = wheel.to_string_lossy();
    let args = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--force-reinstall",
    ];
    run(python, &[&args[..], &[&wheel]].concat(), "")
}

/// The tests, the examples in docstrings, and the types of the example scripts.
pub(crate) fn test() -> Result<()> {
    if !new_enough() {
        eprintln!(
            "skipped: there is no python3 of version 3.10 or newer, the Python package is not tested"
        );
        return Ok(());
    }
    let python = install(&PACKAGE, false)?;
    run(&python, &["-m", "pytest", "python/tests"], "")?;
    let doctests = [
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--doctest-modules",
        "--pyargs",
        "efface",
    ];
    let mlflow = "--ignore-glob=*mlflow.py";
    run(&python, &[&doctests[..], &[mlflow]].concat(), "")?;
    let cache = root()?.join("target/mypy");
    let cache = cache.to_string_lossy();
    let config = [
        "-m",
        "mypy",
        "--strict",
        "--config-file",
        "python/pyproject.toml",
        "--cache-dir",
    ];
    run(
        &python,
        &[&config[..], &[&cache, "python/efface", "python/examples"]].concat(),
        "",
    )
}

/// The same sums on every engine that there is an adapter for; `bench` measures them beside each
/// other.
pub(crate) fn engines(args: &[String]) -> Result<()> {
    match args.first().map(String::as_str) {
        None => {
            let python = install(&ENGINES, false)?;
            install_aggregate(&python)?;
            run(
                &python,
                &[
                    "-m",
                    "pytest",
                    "-q",
                    "-p",
                    "no:cacheprovider",
                    "python/engines",
                ],
                "",
            )
        }
        Some("bench") => {
            let python = install(&ENGINES, true)?;
            install_aggregate(&python)?;
            let mut line = vec!["python/engines/bench.py"];
            line.extend(args[1..].iter().map(String::as_str));
            run(&python, &line, "")
        }
        Some(other) => bail!("cargo xtask engines takes bench or nothing, not {other}"),
    }
}

/// Fit and forget beside scikit-learn, and what a call costs over Rust.
pub(crate) fn bench(args: &[String]) -> Result<()> {
    let python = install(&PACKAGE, true)?;
    let mut line = vec!["xtask/bench/package.py"];
    line.extend(args.iter().map(String::as_str));
    run(&python, &line, "")
}

/// Whether there is a Python that the package could run on.
fn new_enough() -> bool {
    let code = "import sys, venv; sys.exit(sys.version_info < (3, 10))";
    let output = Command::new("python3").args(["-c", code]).output();
    output.is_ok_and(|output| output.status.success())
}

/// Runs the interpreter in a folder of the repository.
fn run(python: &Path, args: &[&str], folder: &str) -> Result<()> {
    eprintln!("$ {} {}", python.display(), args.join(" "));
    let status = Command::new(python)
        .args(args)
        .current_dir(root()?.join(folder))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .status()
        .with_context(|| format!("cannot start {}", python.display()))?;
    ensure!(
        status.success(),
        "python {} failed ({status})",
        args.join(" ")
    );
    Ok(())
}
