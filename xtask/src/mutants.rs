//! Mutation testing: installs cargo-mutants and runs the tool in xtask/mutants.

use anyhow::Result;

use crate::release;

/// The release of cargo-mutants that is installed where none is.
const CARGO_MUTANTS: &str = "27.1.0";

/// The manifest of the tool, which is a workspace of its own.
pub(crate) const MANIFEST: &str = "xtask/mutants/Cargo.toml";

/// Runs the tool with the arguments that the user gave.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let lister = release::tool("cargo-mutants", CARGO_MUTANTS)?;
    let lister = lister.to_string_lossy();
    let mut command = vec![
        "run",
        "--quiet",
        "--manifest-path",
        MANIFEST,
        "--target-dir",
        "target/mutants/tool",
        "--",
        &lister,
    ];
    command.extend(args.iter().map(String::as_str));
    crate::run("cargo", &command)
}
