//! A folder for what a benchmark writes down.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A folder that is deleted again when it goes out of scope, after an error too.
pub(crate) struct ScratchFolder(PathBuf);

impl ScratchFolder {
    /// An empty folder of this process.
    pub(crate) fn new(name: &str) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("efface-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path)
            .with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // Nothing depends on it being gone.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
