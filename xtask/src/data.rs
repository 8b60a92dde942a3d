//! placeholder
use anyhow::Result;
pub(crate) fn run(_: Option<&str>) -> Result<()> {
    Ok(())
}
