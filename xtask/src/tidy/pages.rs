//! Every crate has its place in ARCHITECTURE.md, and the usual pages exist.

use std::path::Path;

use anyhow::{Context, Result};

const PAGES: [&str; 9] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "docs/README.md",
    "docs/tutorial.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
];

/// Commands that a reader of the first page must find there.
const COMMANDS: [&str; 2] = ["cargo run --release -- demo", "cargo xtask test"];

pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for page in PAGES {
        if !root.join(page).exists() {
            found.push(format!("{page} is missing"));
        }
    }
    let picture = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap_or_default();
    for entry in std::fs::read_dir(root.join("crates")).context("crates/")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !picture.contains(&format!("{name}/")) {
            found.push(format!("ARCHITECTURE.md does not show crates/{name}"));
        }
    }
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap_or_default();
    for command in COMMANDS {
        if !readme.contains(command) {
            found.push(format!("README.md does not name `{command}`"));
        }
    }
    Ok(found)
}
