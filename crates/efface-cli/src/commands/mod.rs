//! One file per verb. A verb reads its arguments, calls the engine and hands the result to the
//! terminal.

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
mod requests;
pub(crate) mod serve;
pub(crate) mod upkeep;
pub(crate) mod verify;
pub(crate) mod witness;

use std::path::Path;

use efface_engine::RowSource;
use efface_io::{FileFormat, Source};

use crate::cli::DataArguments;
use crate::failure::{Failure, Result};
use crate::list;

const STANDARD_INPUT: &str = "standard input";

/// Opens data files, those of folders and patterns among them, or takes standard input for one, and
/// leaves out rows that are not meant.
fn open(data: &DataArguments) -> Result<RowSource> {
    let files: Result<Vec<Source>> = data
        .expanded()?
        .iter()
        .map(|file| open_file(file, data))
        .collect();
    Ok(matching(RowSource::several(files?)?, data))
}

/// Leaves out rows that are not meant.
fn matching(rows: RowSource, data: &DataArguments) -> RowSource {
    match &data.condition {
        Some(condition) => rows.matching(condition.clone()),
        None => rows,
    }
}

/// Opens one file as the options say that it is written.
fn open_file(file: &Path, data: &DataArguments) -> Result<Source> {
    let format = data.format.map(FileFormat::from);
    if file != Path::new("-") {
        return Ok(Source::open(file, format)?
            .with_limits(data.limits()?)
            .with_dialect(data.dialect())?);
    }
    if data.files.len() > 1 {
        let failure = Failure::usage("standard input is read alone, and not with other files");
        return Err(failure.hint("save it to a file"));
    }
    if format.is_none() {
        let failure = Failure::usage("standard input has no extension that would tell its format");
        return Err(failure.hint("add --format, for example --format csv"));
    }
    // Parquet is read from its end.
    let source = match format {
        Some(FileFormat::Parquet) => {
            Source::from_bytes(STANDARD_INPUT, list::whole_input()?, format)?
        }
        _ => Source::from_stream(STANDARD_INPUT, Box::new(std::io::stdin()), format)?,
    };
    Ok(source
        .with_limits(data.limits()?)
        .with_dialect(data.dialect())?)
}

/// As many threads as asked for, or as there are cores.
fn threads(asked: Option<usize>) -> usize {
    asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}
