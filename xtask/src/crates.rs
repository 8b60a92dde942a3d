//! Whether every crate that is meant for crates.io can be packed: its metadata, its licences, its
//! page, and versions for the crates of this repository that it depends on. Nothing is uploaded,
//! and the network is not needed.

use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::root;

/// Files that every package holds.
const FILES: [&str; 4] = ["Cargo.toml", "README.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// What a crate's entry on crates.io shows.
const FIELDS: [&str; 4] = ["description", "license", "repository", "readme"];

pub(crate) fn check() -> Result<()> {
    let mut problems = Vec::new();
    let published = published()?;
    ensure!(!published.is_empty(), "no crate is meant for crates.io");
    for (name, package) in &published {
        for field in FIELDS {
            if package[field].as_str().is_none_or(str::is_empty) {
                problems.push(format!("{name} has no {field}"));
            }
        }
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let is_needed = dependency["kind"] != "dev";
            if is_needed && dependency["path"].is_string() && dependency["req"] == "*" {
                problems.push(format!(
                    "{name} depends on {} without a version",
                    dependency["name"]
                ));
            }
        }
        let files = cargo(&[
            "package",
            "--list",
            "--allow-dirty",
            "--offline",
            "--package",
            name,
        ])?;
        for file in FILES {
            if !files.lines().any(|line| line == file) {
                problems.push(format!("the package of {name} has no {file}"));
            }
        }
    }
    if !problems.is_empty() {
        bail!(
            "crates that cannot be published:\n  {}",
            problems.join("\n  ")
        );
    }
    // Packing them together resolves each against the others as if they had been published.
    let mut arguments = vec![
        "package",
        "--no-verify",
        "--allow-dirty",
        "--offline",
        "--quiet",
    ];
    for (name, _) in &published {
        arguments.extend(["--package", name.as_str()]);
    }
    cargo(&arguments)?;
    eprintln!("{} crates can be packed", published.len());
    Ok(())
}

/// The crates of the workspace that may be published, by name.
fn published() -> Result<Vec<(String, Value)>> {
    let text = cargo(&[
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
        "--offline",
    ])?;
    let metadata: Value = serde_json::from_str(&text).context("cargo metadata is not JSON")?;
    let packages = metadata["packages"]
        .as_array()
        .context("cargo metadata lists no packages")?;
    // `publish` is null where nothing forbids it, and an empty list where it is false.
    let may_be = |package: &&Value| package["publish"].is_null();
    let named = |package: &Value| Some((package["name"].as_str()?.to_owned(), package.clone()));
    Ok(packages.iter().filter(may_be).filter_map(named).collect())
}

/// Runs cargo in the root and returns what it printed.
fn cargo(arguments: &[&str]) -> Result<String> {
    let output = Command::new("cargo")
        .args(arguments)
        .current_dir(root()?)
        .output()
        .context("cannot start cargo")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "cargo {} failed:\n{errors}",
        arguments.join(" ")
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
