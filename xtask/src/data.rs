//! The command on real data sets, beside scikit-learn refitted on the rows that are left.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::{python, root, run as start};

pub(crate) fn run(folder: Option<&str>) -> Result<()> {
    on_data("data.py", "data", folder)
}

/// Whole pipelines beside scikit-learn's, refitted on the rows that are left.
pub(crate) fn pipelines(folder: Option<&str>) -> Result<()> {
    on_data("pipelines.py", "pipelines", folder)
}

/// Runs a script with the built command and the folder of the data sets.
fn on_data(script: &str, part: &str, folder: Option<&str>) -> Result<()> {
    let root = root()?;
    let folder = folder.map_or_else(
        || root.join("../shared/data"),
        |folder| Path::new(folder).to_path_buf(),
    );
    ensure!(
        folder.is_dir(),
        "there is no folder {}; name the one that holds the data sets: cargo xtask bench {part} DIR",
        folder.display()
    );
    let command = built_command()?;
    let printed = python::script(script, &[&command, &folder.to_string_lossy()], 2)?;
    print!("{printed}");
    Ok(())
}

/// Where the time of `efface forget` goes, from start to exit.
pub(crate) fn disk(args: &[String]) -> Result<()> {
    let command = built_command()?;
    let line: Vec<&str> = std::iter::once(command.as_str())
        .chain(args.iter().map(String::as_str))
        .collect();
    let printed = python::script("disk.py", &line, 1)?;
    print!("\n## `efface forget` as a command\n\n{printed}");
    Ok(())
}

/// The command as users have it.
fn built_command() -> Result<String> {
    start(
        "cargo",
        &["build", "--release", "--quiet", "--package", "efface-cli"],
    )?;
    Ok(root()?
        .join("target/release/efface")
        .to_string_lossy()
        .into_owned())
}
