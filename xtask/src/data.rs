//! The command on real data sets, beside scikit-learn refitted on the rows that are left.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::{python, root, run as start};

pub(crate) fn run(folder: Option<&str>) -> Result<()> {
    let root = root()?;
    let folder = folder.map_or_else(|| root.join("../shared/data"), |folder| Path::new(folder).to_path_buf());
    ensure!(
        folder.is_dir(),
        "there is no folder {}; name the one that holds the data sets: cargo xtask bench data DIR",
        folder.display()
    );
    start("cargo", &["build", "--release", "--quiet", "--package", "efface-cli"])?;
    let command = root.join("target/release/efface");
    let printed = python::script("data.py", &[&command.to_string_lossy(), &folder.to_string_lossy()], 2)?;
    print!("{printed}");
    Ok(())
}
