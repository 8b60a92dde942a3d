//! A virtual environment under target/ with the libraries that benchmarks compare with.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{root, run};

const REQUIREMENTS: [&str; 3] = ["numpy==2.4.6", "scikit-learn==1.9.1", "zstandard==0.25.0"];

/// The interpreter of the environment, made on first use.
pub(crate) fn interpreter() -> Result<PathBuf> {
    let folder = root()?.join("target/venv");
    let python = folder.join("bin/python");
    let stamp = folder.join("requirements");
    let wanted = REQUIREMENTS.join("\n");
    if std::fs::read_to_string(&stamp).is_ok_and(|have| have == wanted) {
        return Ok(python);
    }
    run("python3", &["-m", "venv", &folder.to_string_lossy()])?;
    let mut args = vec!["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    args.extend(REQUIREMENTS);
    run(&python.to_string_lossy(), &args)?;
    std::fs::write(&stamp, wanted).context("cannot write the environment's stamp")?;
    Ok(python)
}

/// Runs a script and returns what it printed.
pub(crate) fn script(name: &str, args: &[&str], threads: usize) -> Result<String> {
    let output = Command::new(interpreter()?)
        .arg(root()?.join("xtask/bench").join(name))
        .args(args)
        .env("OMP_NUM_THREADS", threads.to_string())
        .env("OPENBLAS_NUM_THREADS", threads.to_string())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {name}"))?;
    if !output.status.success() {
        bail!("{name} failed ({})", output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
