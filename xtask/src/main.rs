//! The project's own commands. `cargo xtask test` is everything that CI runs.

mod bench;
mod claims;
mod classifiers;
mod crates;
mod data;
mod machine;
mod methods;
mod mutants;
mod networks;
mod package;
mod python;
mod release;
mod scale;
mod scratch;
mod service;
mod speed;
mod test;
mod tidy;
mod torture;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

const HELP: &str = "\
cargo xtask <command>

  test [--fast]  format, lints, tidy, every test and doctest: all that CI runs, with a table of times
                 --fast: format, tidy, lints and unit tests only, for the inner loop
  python         the part of it that is about the Python package: wheel, tests, doctests, types
  engines [bench]  installs Sail, Ray, Dask, Daft, Polars, DuckDB and DataFusion, and runs the sums on each; bench [ROWS COLUMNS [ENGINE ...]] times them
  tidy           the invariants of ARCHITECTURE.md that a text search can check
  crates         whether the crates meant for crates.io can be packed
  bench [part]   measured tables beside numpy, scikit-learn and the paper
                 parts: deletion [D …], flat, memory, drift, injection, fit [N D], stream [D …], forms; all without one
                        fit, stream and forms take --threads T or 1,2,4
                        disk [--wide]: where the time of `efface forget` as a command goes; --wide: with a factor of 10,000 columns
                        compare [--record]: this commit against the figures in xtask/bench/recorded.json
                        data [DIR]: the command on real data; methods [DIR]: every method on real data
                        pipelines [DIR]: whole pipelines that forget, beside scikit-learn's refitted
                        nn [PART [DIR]]: networks beside PyTorch; parts: step, minilm, accuracy, heads, gap
                        python [PART]: the Python package beside scikit-learn and numpy; parts: fit, forget, call, stream
                        serve [SECONDS]: the service under load, beside a bare handler
                        rows [ROWS …]: rates that docs/scale.md predicts with, a forget beside the size of the model, many ids at once
                        scale [csv|parquet|stdin ROWS COLUMNS]: fits in batches beside fits in memory
  claims [PART]  bounds against the truth on thousands of seeded problems
                 parts: ridge [PROBLEMS [CELLS]], classifiers, coverage
  picture        measures the methods and draws docs/forgetting.svg, the picture of the first page
  release-check  licences, bans and sources of all dependencies, advisories, and the list of parts (SBOM)
  torture [KILLS [ROWS]]  kill -9, failing writes, markers, flipped bytes, repeated requests, latency
  torture serve [KILLS]   kill -9 of the service under load
  torture combinations [COUNT [FIRST [SECONDS]]]  random combinations of options against a fresh fit, through the command
  mutants [COUNT [SEED [THREADS]]]  mutation testing of bounds, changes, claims, ledger and the service's requests
  verifier       compiles the verifier of receipts for browsers; the next build of the server takes it along
  differential [SEED [INPUTS]]  both verifiers of receipts on mutated inputs of a seed (1, 100000)
  service        the page in Chromium, and the API against its description
  integrations [fides]  the files of docs/integrations against a server and their packages
  fuzz [SECONDS] every fuzz target for so long (60); installs cargo-fuzz where it is missing
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rest = args.get(1..).unwrap_or_default();
    let done = match args.first().map(String::as_str) {
        Some("test") => test::run(rest),
        Some("tidy") => tidy::run(),
        Some("crates") => crates::check(),
        Some("python") => package::test(),
        Some("engines") => package::engines(rest),
        Some("bench") => bench::run(rest),
        Some("claims") => claims::run(rest),
        Some("picture") => bench::picture(),
        Some("release-check") => release::check(),
        Some("verifier") => service::build_verifier().map(drop),
        Some("differential") => test::differential(rest),
        Some("service") => test::service(),
        Some("integrations") => test::integrations(rest),
        Some("torture") => torture::run(rest),
        Some("mutants") => mutants::run(rest),
        Some("fuzz") => test::fuzz(rest.first().map_or("60", String::as_str)),
        Some("help" | "--help" | "-h") | None => {
            print!("{HELP}");
            Ok(())
        }
        Some(other) => Err(anyhow::anyhow!("there is no command {other}\n\n{HELP}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the repository.
pub(crate) fn root() -> Result<PathBuf> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    Ok(here
        .parent()
        .context("xtask lies in the repository's root")?
        .to_path_buf())
}

/// Runs a program in the root and fails if it does.
pub(crate) fn run(program: &str, args: &[&str]) -> Result<()> {
    eprintln!("$ {program} {}", args.join(" "));
    let status = std::process::Command::new(program)
        .args(args)
        .current_dir(root()?)
        .status()
        .with_context(|| format!("cannot start {program}"))?;
    if !status.success() {
        bail!("{program} {} failed ({status})", args.join(" "));
    }
    Ok(())
}
