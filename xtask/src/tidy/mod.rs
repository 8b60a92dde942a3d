//! Invariants that a search in the text can check: those of ARCHITECTURE.md, and the habits that
//! reviewers tire of repeating. One file a check; a check takes what it needs and returns what it
//! found, one sentence each.

mod flags;
mod habits;
mod imports;
mod layers;
mod links;
mod names;
mod pages;
mod rust;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::root;
use crate::tidy::rust::RustFile;

/// A file of the repository that is text.
pub(crate) struct TextFile {
    /// Its path from the root, with slashes.
    pub(crate) name: String,
    pub(crate) text: String,
}

impl TextFile {
    /// What a check says of one of its lines, counted from zero.
    fn finding(&self, line: usize, what: &str) -> String {
        format!("{}:{}: {what}", self.name, line + 1)
    }
}

pub(crate) fn run() -> Result<()> {
    let root = root()?;
    let files = text_files(&root)?;
    let sources: Vec<RustFile> = files
        .iter()
        .filter(|file| file.name.ends_with(".rs"))
        .map(RustFile::read)
        .collect();
    let mut found = Vec::new();
    for file in &files {
        if file.name.ends_with(".rs") {
            found.extend(habits::check(file));
        }
        if file.name.ends_with(".snap.new") {
            found.push(file.finding(0, "a snapshot that nobody has accepted"));
        }
    }
    found.extend(links::check(&root, &files));
    found.extend(pages::check(&root)?);
    found.extend(layers::check(&sources));
    found.extend(names::check(&sources));
    found.extend(flags::check(&sources));
    if found.is_empty() {
        eprintln!("tidy: all is well");
        return Ok(());
    }
    bail!(
        "tidy found {} things:\n  {}",
        found.len(),
        found.join("\n  ")
    )
}

/// The files that git tracks or would track, in order; those that are not UTF-8 are left out.
fn text_files(root: &Path) -> Result<Vec<TextFile>> {
    let output = std::process::Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("cannot start git")?;
    anyhow::ensure!(output.status.success(), "git ls-files failed");
    let mut names: Vec<PathBuf> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(PathBuf::from)
        .collect();
    names.sort();
    let read = |name: &PathBuf| {
        let text = std::fs::read_to_string(root.join(name)).ok()?;
        Some(TextFile {
            name: name.to_string_lossy().into_owned(),
            text,
        })
    };
    Ok(names.iter().filter_map(read).collect())
}
