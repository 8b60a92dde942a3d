//! The verifier for browsers, and the service tried in a real one.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::python::{Environment, FIDES, INTEGRATIONS, SERVICE};
use crate::{root, run};

/// What the verifier is compiled for: a program without files or network.
const TARGET: &str = "wasm32-wasip1";

/// Bytes of the verifier that a browser compiles, at most; and where wasm-opt could not be had,
/// which takes a tenth off.
const MOST_BYTES: usize = 300 << 10;
const MOST_BYTES_UNSQUEEZED: usize = 350 << 10;

/// What wasm-opt may use: what the compiler uses too, and every browser of the last years has.
const WASM_FEATURES: [&str; 6] = [
    "--enable-bulk-memory",
    "--enable-multivalue",
    "--enable-mutable-globals",
    "--enable-nontrapping-float-to-int",
    "--enable-reference-types",
    "--enable-sign-ext",
];

/// Compiles the verifier; the next build of the server takes it along. False where the compiler's
/// target cannot be had.
pub(crate) fn build_verifier() -> Result<bool> {
    if !has_target() && run("rustup", &["target", "add", TARGET]).is_err() {
        eprintln!(
            "skipped: the compiler has no target {TARGET}, pages will not verify receipts in the browser"
        );
        return Ok(false);
    }
    let build = [
        "build",
        "--quiet",
        "--profile",
        "verifier",
        "--target",
        TARGET,
        "--package",
        "efface-verifier",
    ];
    let flags = format!(
        "target.{TARGET}.rustflags={}",
        serde_json::to_string(&verifier_flags())?
    );
    let place = ["--target-dir", "target/verifier/build", "--config", &flags];
    run("cargo", &[&build[..], &place].concat())?;
    let folder = root()?.join("target/verifier");
    let built = folder
        .join("build")
        .join(TARGET)
        .join("verifier/efface-verifier.wasm");
    let squeezed = folder.join("efface-verifier.wasm");
    let (program, most) = if squeeze(&built, &squeezed)? {
        (squeezed, MOST_BYTES)
    } else {
        eprintln!(
            "there is no wasm-opt and it cannot be installed: the verifier is a tenth larger"
        );
        (built, MOST_BYTES_UNSQUEEZED)
    };
    let bytes =
        std::fs::read(&program).with_context(|| format!("cannot read {}", program.display()))?;
    let length = bytes.len();
    ensure!(
        length <= most,
        "the verifier is {length} bytes; {most} are allowed"
    );
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut packed, &bytes)?;
    let packed = packed.finish()?;
    eprintln!(
        "efface-verifier.wasm: {length} bytes, {} compressed",
        packed.len()
    );
    let kept = folder.join("efface-verifier.wasm.gz");
    // An unchanged file keeps its time, so that the server is not built again.
    if std::fs::read(&kept).ok().as_deref() != Some(&packed) {
        std::fs::write(&kept, packed)
            .with_context(|| format!("cannot write {}", kept.display()))?;
    }
    Ok(true)
}

/// Hashes as loops and not unrolled, and places in panics without the folders of this machine: both
/// are smaller.
fn verifier_flags() -> Vec<String> {
    let mut flags = vec![
        "--cfg".to_owned(),
        "sha2_backend_soft=\"compact\"".to_owned(),
    ];
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let sources = home.and_then(|home| std::fs::read_dir(home.join("registry/src")).ok());
    for source in sources.into_iter().flatten().flatten() {
        flags.push(format!("--remap-path-prefix={}=", source.path().display()));
    }
    flags
}

/// Makes a program smaller with binaryen's wasm-opt, which is installed where it may be. False
/// where it cannot be had.
fn squeeze(built: &Path, squeezed: &Path) -> Result<bool> {
    let is_there = || Command::new("wasm-opt").arg("--version").output().is_ok();
    if !is_there() {
        let _ = run("apt-get", &["install", "--yes", "--quiet", "binaryen"]);
        if !is_there() {
            return Ok(false);
        }
    }
    let built = built.to_string_lossy();
    let squeezed = squeezed.to_string_lossy();
    let rest = [
        "-Oz",
        "--converge",
        "--strip-debug",
        "--strip-producers",
        &*built,
        "-o",
        &*squeezed,
    ];
    run("wasm-opt", &[&WASM_FEATURES[..], &rest].concat())?;
    Ok(true)
}

fn has_target() -> bool {
    let listed = Command::new("rustup")
        .args(["target", "list", "--installed"])
        .output();
    listed.is_ok_and(|listed| {
        String::from_utf8_lossy(&listed.stdout)
            .lines()
            .any(|line| line == TARGET)
    })
}

/// The page in Chromium and the API against its description, with the command at `program`;
/// `verifies` says whether the verifier for browsers is in it.
pub(crate) fn test(program: &str, verifies: bool) -> Result<()> {
    let interpreter: PathBuf = match SERVICE.interpreter() {
        Ok(interpreter) => interpreter,
        Err(error) => {
            eprintln!("skipped: playwright and schemathesis cannot be installed: {error:#}");
            return Ok(());
        }
    };
    let install = || {
        run("apt-get", &["update", "--quiet"])?;
        run("apt-get", &["install", "--yes", "--quiet", "chromium"])
    };
    if !has_browser() && install().is_err() {
        eprintln!(
            "there is no chromium and it cannot be installed: the page is not tried in a browser"
        );
    }
    let status = Command::new(interpreter)
        .args(["-m", "unittest", "discover", "crates/efface-server/browser"])
        .env("EFFACE", program)
        .env("EFFACE_VERIFIES", if verifies { "yes" } else { "no" })
        .current_dir(root()?)
        .status()
        .context("cannot start python")?;
    ensure!(
        status.success(),
        "the service failed in the browser or against its description"
    );
    Ok(())
}

/// The files of docs/integrations against a server and their packages, with the command at
/// `program`.
pub(crate) fn integrations(program: &str, with_fides: bool) -> Result<()> {
    let mut environments: Vec<&Environment> = vec![&INTEGRATIONS];
    if with_fides {
        environments.push(&FIDES);
    } else {
        eprintln!("left out: Fides, which is 800 MB; `cargo xtask integrations fides` tries it");
    }
    for environment in environments {
        let interpreter = match environment.interpreter() {
            Ok(interpreter) => interpreter,
            Err(error) => {
                eprintln!(
                    "skipped: the packages of {} cannot be installed: {error:#}",
                    environment.folder
                );
                continue;
            }
        };
        let home = root()?.join("target").join(environment.folder).join("home");
        let status = Command::new(interpreter)
            .args([
                "-W",
                "ignore",
                "-m",
                "unittest",
                "discover",
                "docs/integrations",
            ])
            .env("EFFACE", program)
            .env("AIRFLOW_HOME", &home)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .current_dir(root()?)
            .status()
            .context("cannot start python")?;
        ensure!(status.success(), "an integration failed");
    }
    Ok(())
}

fn has_browser() -> bool {
    Command::new("chromium")
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
}
