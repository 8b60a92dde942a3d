//! Invariants that a text search can check: those of ARCHITECTURE.md, and the habits that reviewers tire of repeating.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::root;

/// A source file longer than this asks for a split.
const LONGEST: usize = 600;

/// What the pure crate must not touch, and why.
const IMPURE: [(&str, &str); 8] = [
    ("std::fs", "no files"),
    ("std::net", "no network"),
    ("std::env", "no environment"),
    ("std::process", "no processes"),
    ("std::time", "no clock"),
    ("println!(", "no printing"),
    ("eprintln!(", "no printing"),
    ("static mut", "no globals"),
];

/// What is not for a commit; in halves, so that this file does not find itself.
const UNFINISHED: [&str; 5] = [
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
    concat!("db", "g!("),
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
];
/// Likewise.
const IGNORED: &str = concat!("#[ig", "nore");

pub(crate) fn run() -> Result<()> {
    let root = root()?;
    let mut found = Vec::new();
    for path in tracked(&root)? {
        let relative = path.strip_prefix(&root).unwrap_or(&path).to_path_buf();
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let name = relative.to_string_lossy().into_owned();
        let mut say = |line: usize, what: &str| found.push(format!("{name}:{}: {what}", line + 1));
        if name.ends_with(".rs") {
            source(&name, &text, &mut say);
        }
        if name.ends_with(".md") {
            links(&root, &relative, &text, &mut say);
        }
        if name.ends_with(".snap.new") {
            say(0, "a snapshot that nobody has accepted");
        }
    }
    found.extend(rooms(&root)?);
    if found.is_empty() {
        eprintln!("tidy: all is well");
        return Ok(());
    }
    bail!("tidy found {} things:\n  {}", found.len(), found.join("\n  "))
}

fn source(name: &str, text: &str, say: &mut impl FnMut(usize, &str)) {
    let tests = name.contains("/tests/") || name.contains("/benches/") || name.contains("fuzz_targets");
    if !text.starts_with("//!") && !text.starts_with("#![no_main]") {
        say(0, "a file opens with what it is for (//! …)");
    }
    let length = text.lines().count();
    if length > LONGEST {
        say(length, &format!("{length} lines, more than {LONGEST}: split it"));
    }
    let pure = name.starts_with("crates/efface/src/");
    let this_file = name == "xtask/src/tidy.rs";
    for (number, line) in text.lines().enumerate() {
        let code = line.trim_start();
        if code.starts_with("//") || this_file {
            continue;
        }
        for word in UNFINISHED {
            if code.contains(word) {
                say(number, &format!("{word} is not for a commit"));
            }
        }
        if tests && code.contains("thread::sleep") {
            say(number, "no test sleeps");
        }
        if code.contains(IGNORED) {
            say(number, "no ignored tests: a test that cannot run here skips with a message");
        }
        for (word, why) in IMPURE.iter().filter(|_| pure) {
            if code.contains(word) {
                say(number, &format!("{word} in the pure crate: {why}"));
            }
        }
    }
}

/// Every relative link of a page leads somewhere.
fn links(root: &Path, page: &Path, text: &str, say: &mut impl FnMut(usize, &str)) {
    let folder = root.join(page.parent().unwrap_or(Path::new("")));
    for (number, line) in text.lines().enumerate() {
        for part in line.split("](").skip(1) {
            let target = part.split([')', '#', ' ']).next().unwrap_or_default();
            if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            if !folder.join(target).exists() {
                say(number, &format!("the link to {target} leads nowhere"));
            }
        }
    }
}

/// Every crate has its place in ARCHITECTURE.md, and the usual pages exist.
fn rooms(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for page in
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"]
    {
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
    for command in ["cargo run --release -- demo", "cargo xtask test"] {
        if !readme.contains(command) {
            found.push(format!("README.md does not name `{command}`"));
        }
    }
    Ok(found)
}

/// The files that git tracks or would track.
fn tracked(root: &Path) -> Result<Vec<PathBuf>> {
    let output = std::process::Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("cannot start git")?;
    anyhow::ensure!(output.status.success(), "git ls-files failed");
    let mut paths: Vec<PathBuf> =
        String::from_utf8_lossy(&output.stdout).lines().map(|line| root.join(line)).collect();
    paths.sort();
    paths.retain(|path| path.exists());
    Ok(paths)
}
