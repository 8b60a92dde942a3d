//! One file per verb. A verb reads its arguments, calls the engine and hands the result to the terminal.

pub(crate) mod audit;
pub(crate) mod change;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod evaluate;
pub(crate) mod evidence;
pub(crate) mod export;
pub(crate) mod fit;
pub(crate) mod folder;
pub(crate) mod forget;
pub(crate) mod inspect;
pub(crate) mod log;
pub(crate) mod predict;
pub(crate) mod receipt;
pub(crate) mod reproduce;
pub(crate) mod serve;
pub(crate) mod upkeep;
pub(crate) mod verify;
pub(crate) mod witness;

use std::path::Path;

use efface_io::{FileFormat, Source};

use crate::cli::DataArguments;
use crate::failure::{Failure, Result};
use crate::list;

/// Opens a data file, or takes standard input for one.
fn open(data: &DataArguments) -> Result<Source> {
    let format = data.format.map(FileFormat::from);
    if data.file != Path::new("-") {
        return Ok(Source::open(&data.file, format)?.with_limits(data.limits()));
    }
    if format.is_none() {
        let failure = Failure::usage("standard input has no extension that would tell its format");
        return Err(failure.hint("add --format, for example --format csv"));
    }
    let bytes = list::table(format != Some(FileFormat::Parquet))?;
    Ok(Source::from_bytes("standard input", bytes, format)?.with_limits(data.limits()))
}

/// As many threads as asked for, or as there are cores.
fn threads(asked: Option<usize>) -> usize {
    asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}
