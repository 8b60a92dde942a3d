//! A file of rows, and how much of it may be in memory.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use efface_engine::ErrorKind;
use efface_io::{
    FileFormat, ReadLimits, RowCondition, TableDialect, files_of, is_pattern, missing_addresses,
};

use super::parse;
use crate::failure::{Failure, Result};
use crate::report::bytes;

/// A file of rows.
#[derive(Debug, Args)]
pub(crate) struct DataArguments {
    /// Data file, also with .gz or .zst; a folder of them, or a pattern such as 'rows/*.csv'; - for
    /// standard input. Several are read as one table
    #[arg(id = "data", value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Format of the data file [default: by its extension]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) format: Option<DataFormat>,

    /// Read only rows for which EXPR holds, such as "split = train and age >= 18"; see `efface help
    /// fit`
    #[arg(long = "where", value_name = "EXPR", value_parser = parse::condition, help_heading = "The file")]
    pub(crate) condition: Option<RowCondition>,

    /// What separates fields of a CSV file, such as ; or tab [default: found from the first lines]
    #[arg(long, value_name = "CHAR", value_parser = parse::separator, help_heading = "The file")]
    pub(crate) delimiter: Option<u8>,

    /// Numbers are written with a comma, as in 3,14
    #[arg(long, help_heading = "The file")]
    pub(crate) decimal_comma: bool,

    /// Words in the place of a missing value, beside empty cells, such as NA,?
    #[arg(
        long,
        value_name = "WORDS",
        value_delimiter = ',',
        help_heading = "The file"
    )]
    pub(crate) missing: Vec<String>,

    /// Columns or features accepted [default: 1,000,000 columns, 16,777,216 features of svmlight or
    /// --hash]
    #[arg(long, value_name = "N", value_parser = parse::columns, help_heading = "Limits")]
    pub(crate) max_columns: Option<u32>,

    /// Bytes of one line; K, M and G stand for KiB, MiB and GiB [default: 64M]
    #[arg(long, value_name = "SIZE", value_parser = parse::size, help_heading = "Limits")]
    pub(crate) max_line: Option<u64>,

    /// Bytes of rows in memory. Where rows take more, a fit reads them in batches and by passes
    /// [default: a quarter of the machine's]
    #[arg(long = "memory", alias = "max-memory", value_name = "SIZE", value_parser = parse::size, help_heading = "Limits")]
    pub(crate) memory: Option<u64>,
}

impl DataArguments {
    /// How the file is written.
    pub(crate) fn dialect(&self) -> TableDialect {
        let separator = self.delimiter;
        TableDialect {
            separator,
            decimal_comma: self.decimal_comma,
            missing: self.missing.clone(),
        }
    }

    /// The first file or folder, where it is one that has a name.
    pub(crate) fn named(&self) -> Option<&Path> {
        let first = self.files.first().map(PathBuf::as_path);
        first.filter(|file| *file != Path::new("-") && !file.to_str().is_some_and(is_pattern))
    }

    /// The files that the names stand for.
    pub(crate) fn expanded(&self) -> efface_io::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for name in &self.files {
            if name == Path::new("-") {
                files.push(name.clone());
            } else {
                files.extend(files_of(name, self.format.map(FileFormat::from))?);
            }
        }
        Ok(files)
    }

    /// How much of the file may be in memory.
    pub(crate) fn limits(&self) -> Result<ReadLimits> {
        if let Some((left, needed)) = missing_addresses() {
            let failure = Failure::of_kind(
                ErrorKind::Io,
                format!(
                    "the limit of the address space (ulimit -v) leaves {}, and a command that reads rows needs {}",
                    bytes(left),
                    bytes(needed)
                ),
            );
            return Err(failure.hint("raise the limit, or use fewer processors with taskset"));
        }
        let mut limits = ReadLimits::default();
        if let Some(columns) = self.max_columns {
            limits.columns = columns as usize;
            limits.keys = columns as usize;
            limits.features = columns;
        }
        if let Some(bytes) = self.max_line {
            limits.line_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        }
        if let Some(bytes) = self.memory {
            limits.memory = bytes;
            limits.sums = bytes;
        }
        Ok(limits)
    }
}

/// How a data file is written.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum DataFormat {
    Csv,
    Tsv,
    Jsonl,
    Parquet,
    Svmlight,
}

impl From<DataFormat> for FileFormat {
    fn from(format: DataFormat) -> Self {
        match format {
            DataFormat::Csv => Self::Csv,
            DataFormat::Tsv => Self::Tsv,
            DataFormat::Jsonl => Self::JsonLines,
            DataFormat::Parquet => Self::Parquet,
            DataFormat::Svmlight => Self::Svmlight,
        }
    }
}
