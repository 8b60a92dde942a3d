//! Everything that CI runs, cheapest first, with a table of what took how long; and the fuzzers.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::python::VERIFIER;
use crate::{crates, mutants, package, release, root, service as service_tests, tidy};

/// A part of the tests.
struct TestPart {
    name: &'static str,
    /// What it holds the code to, for the table at the end.
    about: &'static str,
    run: fn() -> Result<()>,
    /// Whether `--fast` runs it, too.
    is_fast: bool,
}

/// All parts, cheapest first, so that a small mistake is found early. `--fast` leaves out what
/// takes longest to build or to run: integration tests, documentation, the torture of model files,
/// and everything that needs Python.
const PARTS: [TestPart; 14] = [
    TestPart {
        name: "format",
        about: "cargo fmt",
        run: format,
        is_fast: true,
    },
    TestPart {
        name: "tidy",
        about: "invariants that a search can check",
        run: tidy::run,
        is_fast: true,
    },
    TestPart {
        name: "lints",
        about: "clippy, no warning",
        run: lints,
        is_fast: true,
    },
    TestPart {
        name: "unit tests",
        about: "tests inside the crates",
        run: unit_tests,
        is_fast: true,
    },
    TestPart {
        name: "integration tests",
        about: "tests/ of every crate, examples are built",
        run: integration_tests,
        is_fast: false,
    },
    TestPart {
        name: "fuzz targets",
        about: "they compile",
        run: fuzz_targets,
        is_fast: false,
    },
    TestPart {
        name: "examples",
        about: "the examples for readers run",
        run: examples,
        is_fast: false,
    },
    TestPart {
        name: "examples in docs",
        about: "doctests",
        run: doctests,
        is_fast: false,
    },
    TestPart {
        name: "torture",
        about: "kills, failing writes, flipped bytes",
        run: torture,
        is_fast: false,
    },
    TestPart {
        name: "service",
        about: "the page in Chromium, the API against its description",
        run: service,
        is_fast: false,
    },
    TestPart {
        name: "second verifier",
        about: "verify/ in Python, on vectors and against the first on mutated inputs",
        run: verifier,
        is_fast: false,
    },
    TestPart {
        name: "Python package",
        about: "wheel, tests, doctests, types",
        run: package::test,
        is_fast: false,
    },
    TestPart {
        name: "documentation",
        about: "rustdoc, no warning",
        run: documentation,
        is_fast: false,
    },
    TestPart {
        name: "packages",
        about: "crates for crates.io, licences of dependencies",
        run: packages,
        is_fast: false,
    },
];

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let is_fast = match arguments {
        [] => false,
        [flag] if flag == "--fast" => true,
        _ => bail!(
            "cargo xtask test takes --fast or nothing, not {}",
            arguments.join(" ")
        ),
    };
    let mut times = Vec::new();
    let mut outcome = Ok(());
    for part in PARTS.iter().filter(|part| part.is_fast || !is_fast) {
        eprintln!("\n── {}: {}", part.name, part.about);
        let started = Instant::now();
        outcome = (part.run)().with_context(|| format!("{} failed", part.name));
        times.push((part.name, started.elapsed()));
        if outcome.is_err() {
            break;
        }
    }
    eprintln!("\n{}", table(&times));
    if is_fast {
        let left_out = PARTS
            .iter()
            .filter(|part| !part.is_fast)
            .map(|part| part.name);
        eprintln!(
            "left out by --fast: {}",
            left_out.collect::<Vec<_>>().join(", ")
        );
    }
    outcome
}

/// What took how long.
fn table(times: &[(&str, Duration)]) -> String {
    let line = |name: &str, time: Duration| {
        let seconds = time.as_secs_f64();
        format!(
            "{name:<20}{:>4} min {:>4.1} s",
            (seconds / 60.0).floor(),
            seconds % 60.0
        )
    };
    let mut lines: Vec<String> = times.iter().map(|(name, time)| line(name, *time)).collect();
    lines.push(line("all", times.iter().map(|(_, time)| *time).sum()));
    lines.join("\n")
}

fn format() -> Result<()> {
    crate::run("cargo", &["fmt", "--all", "--check"])
}

fn lints() -> Result<()> {
    crate::run(
        "cargo",
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
    )
}

/// The fuzz targets are a workspace of their own, so that nothing else notices when a name that
/// they use is gone.
fn fuzz_targets() -> Result<()> {
    crate::run(
        "cargo",
        &[
            "check",
            "--quiet",
            "--manifest-path",
            "fuzz/Cargo.toml",
            "--target-dir",
            "target",
        ],
    )
}

/// The tests of efface-py are those of the Python package.
const WORKSPACE: [&str; 4] = ["test", "--workspace", "--exclude", "efface-py"];

fn unit_tests() -> Result<()> {
    crate::run(
        "cargo",
        &[&WORKSPACE[..], &["--lib", "--bins", "--quiet"]].concat(),
    )?;
    let tool = ["test", "--manifest-path", mutants::MANIFEST];
    let target = ["--target-dir", "target/mutants/tool", "--quiet"];
    crate::run("cargo", &[&tool[..], &target].concat())?;
    // Without the Parquet reader the crate must still be whole.
    crate::run(
        "cargo",
        &[
            "test",
            "--package",
            "efface-io",
            "--no-default-features",
            "--lib",
            "--quiet",
        ],
    )
}

fn integration_tests() -> Result<()> {
    crate::run(
        "cargo",
        &[&WORKSPACE[..], &["--test", "*", "--examples"]].concat(),
    )?;
    // Spans for OpenTelemetry are no part of the usual build.
    crate::run(
        "cargo",
        &[
            "test",
            "--package",
            "efface-server",
            "--features",
            "otel",
            "--test",
            "telemetry",
        ],
    )?;
    // Neither is a graphics card, which the command must do without where there is none.
    crate::run(
        "cargo",
        &[
            "test",
            "--package",
            "efface-cli",
            "--features",
            "cuda",
            "--test",
            "devices",
        ],
    )
}

/// The examples that the pages name.
const EXAMPLES: [&str; 3] = ["stream", "receipt", "frozen_encoder"];

fn examples() -> Result<()> {
    build_programs()?;
    for example in EXAMPLES {
        crate::run(&program(&format!("examples/{example}"))?, &[])?;
    }
    Ok(())
}

/// Builds the examples and commands of all crates at once. One crate alone would be built with
/// other features of those below it, which means all of them again.
fn build_programs() -> Result<()> {
    crate::run(
        "cargo",
        &[
            "build",
            "--quiet",
            "--workspace",
            "--exclude",
            "efface-py",
            "--bins",
            "--examples",
        ],
    )
}

/// Where cargo puts a program of the development build.
fn program(name: &str) -> Result<String> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root()?.join("target"), Into::into);
    Ok(target
        .join("debug")
        .join(name)
        .to_string_lossy()
        .into_owned())
}

fn doctests() -> Result<()> {
    crate::run("cargo", &[&WORKSPACE[..], &["--doc"]].concat())
}

/// A short version of `cargo xtask torture`.
fn torture() -> Result<()> {
    build_programs()?;
    let command = program("efface")?;
    let program = program("efface-torture")?;
    crate::run(&program, &["kills", "40"])?;
    crate::run(&program, &["writes", "forget", "quick", "scrub"])?;
    crate::run(&program, &["flips"])?;
    crate::run(&program, &["tamper", "12"])?;
    crate::run(&program, &["combinations", &command, "1", "100"])?;
    crate::run(&program, &["readers", "400"])?;
    crate::run(&program, &["serve-kills", "20"])?;
    crate::run(&program, &["repeats", "5000"])
}

/// The service as its users meet it, with the verifier for browsers in it.
pub(crate) fn service() -> Result<()> {
    let verifies = service_tests::build_verifier()?;
    build_programs()?;
    service_tests::test(&program("efface")?, verifies)
}

/// The files of docs/integrations against a server and their packages.
pub(crate) fn integrations(args: &[String]) -> Result<()> {
    let with_fides = match args {
        [] => false,
        [word] if word == "fides" => true,
        _ => bail!(
            "cargo xtask integrations takes fides or nothing, not {}",
            args.join(" ")
        ),
    };
    build_programs()?;
    service_tests::integrations(&program("efface")?, with_fides)
}

/// The seed and the number of the inputs that both verifiers are compared on with every test.
const COMPARED: [&str; 2] = ["1", "1500"];

/// The second verifier on the shared vectors, and both verifiers on the same mutated inputs.
fn verifier() -> Result<()> {
    let Some(interpreter) = verifier_interpreter() else {
        return Ok(());
    };
    crate::run(&interpreter, &["-m", "unittest", "discover", "verify"])?;
    compare_verifiers(&interpreter, &COMPARED)
}

/// Compares both verifiers on inputs of a seed, in a number that the caller chooses.
pub(crate) fn differential(arguments: &[String]) -> Result<()> {
    let Some(interpreter) = verifier_interpreter() else {
        return Ok(());
    };
    let seed = arguments.first().map_or("1", String::as_str);
    let inputs = arguments.get(1).map_or("100000", String::as_str);
    compare_verifiers(&interpreter, &[seed, inputs])
}

fn compare_verifiers(interpreter: &str, seed_and_inputs: &[&str; 2]) -> Result<()> {
    let build = ["build", "-p", "efface-evidence", "--example", "verdicts"];
    crate::run("cargo", &build)?;
    let script = ["verify/differential.py", "target/debug/examples/verdicts"];
    crate::run(interpreter, &[&script[..], &seed_and_inputs[..]].concat())
}

/// A Python with the libraries of the second verifier, on every machine that has Python. Where they
/// can neither be found nor fetched, that is said.
fn verifier_interpreter() -> Option<String> {
    if python("python3", "").is_none() {
        eprintln!("skipped: there is no python3, verify/ is not run");
        return None;
    }
    match python(
        "python3",
        "import cryptography, jsonschema, cbor2, pycddl, scitt_cose",
    ) {
        Some(system) => Some(system),
        None => match VERIFIER.interpreter() {
            Ok(path) => Some(path.to_string_lossy().into_owned()),
            Err(error) => {
                eprintln!(
                    "skipped: its libraries cannot be installed, verify/ is not run: {error:#}"
                );
                None
            }
        },
    }
}

/// The interpreter, if it is there and can run this code.
fn python(name: &str, code: &str) -> Option<String> {
    let output = std::process::Command::new(name).args(["-c", code]).output();
    output
        .is_ok_and(|output| output.status.success())
        .then(|| name.to_owned())
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

fn packages() -> Result<()> {
    crates::check()?;
    dependencies()
}

/// Licences and sources of the dependencies, where cargo-deny is installed; `cargo xtask
/// release-check` installs it.
fn dependencies() -> Result<()> {
    let is_there = std::process::Command::new("cargo-deny")
        .arg("--version")
        .output()
        .is_ok();
    if !is_there {
        eprintln!(
            "skipped: cargo-deny is not installed (cargo install cargo-deny), licences are not checked"
        );
        return Ok(());
    }
    crate::run("cargo", &["deny", "check", "licenses", "bans", "sources"])
}

/// The release of cargo-fuzz that is installed where none is.
const FUZZ: &str = "0.13.2";

/// The search path with the project's own tools in front.
fn tools_first() -> Result<std::ffi::OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = std::iter::once(root()?.join("target/tools/bin"));
    Ok(std::env::join_paths(
        own.chain(std::env::split_paths(&path)),
    )?)
}

/// Runs every fuzz target for a while, with the compiler of the project.
pub(crate) fn fuzz(seconds: &str) -> Result<()> {
    release::tool("cargo-fuzz", FUZZ)?;
    let seeds = [
        "run",
        "--quiet",
        "--package",
        "efface-torture",
        "--",
        "seeds",
        "fuzz/corpus",
    ];
    crate::run("cargo", &seeds)?;
    let limit = format!("-max_total_time={seconds}");
    for entry in
        std::fs::read_dir(root()?.join("fuzz/fuzz_targets")).context("fuzz/fuzz_targets")?
    {
        let path = entry?.path();
        let Some(name) = path.file_stem().and_then(|name| name.to_str()) else {
            continue;
        };
        let status = std::process::Command::new("cargo")
            .args([
                "fuzz",
                "run",
                name,
                "--",
                &limit,
                "-max_len=262144",
                "-timeout=20",
            ])
            // The sanitizer is an unstable option of the compiler, which this lets a stable one
            // take.
            .env("RUSTC_BOOTSTRAP", "1")
            .env("PATH", tools_first()?)
            // The sanitizer reports tables of the bundled SQLite as defined twice; that is not what
            // is looked for.
            .env("ASAN_OPTIONS", "detect_odr_violation=0")
            .current_dir(root()?)
            .status()
            .context("cannot start cargo fuzz")?;
        anyhow::ensure!(status.success(), "the fuzz target {name} found something");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_adds_up() {
        let times = [
            ("format", Duration::from_secs(61)),
            ("tidy", Duration::from_millis(500)),
        ];
        let lines: Vec<String> = table(&times).lines().map(String::from).collect();
        assert_eq!(lines[0], "format                 1 min  1.0 s");
        assert_eq!(lines[2], "all                    1 min  1.5 s");
    }
}
