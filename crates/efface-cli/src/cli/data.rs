//! A file of rows, and how much of it may be in memory.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use efface_io::{FileFormat, ReadLimits};

use super::parse;

/// A file of rows.
#[derive(Debug, Args)]
pub(crate) struct DataArguments {
    /// Data file, also with .gz or .zst; - for standard input
    #[arg(id = "data", value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Format of the data file [default: by its extension]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) format: Option<DataFormat>,

    /// Columns or features accepted [default: 1,000,000 columns, 16,777,216 features of svmlight or --hash]
    #[arg(long, value_name = "N", value_parser = parse::columns, help_heading = "Limits")]
    pub(crate) max_columns: Option<u32>,

    /// Bytes of one line; K, M and G stand for KiB, MiB and GiB [default: 64M]
    #[arg(long, value_name = "SIZE", value_parser = parse::size, help_heading = "Limits")]
    pub(crate) max_line: Option<u64>,

    /// Bytes of rows in memory [default: three quarters of the machine's, at most 16G]
    #[arg(long, value_name = "SIZE", value_parser = parse::size, help_heading = "Limits")]
    pub(crate) max_memory: Option<u64>,
}

impl DataArguments {
    /// How much of the file may be in memory.
    pub(crate) fn limits(&self) -> ReadLimits {
        let mut limits = ReadLimits::default();
        if let Some(columns) = self.max_columns {
            limits.columns = columns as usize;
            limits.keys = columns as usize;
            limits.features = columns;
        }
        if let Some(bytes) = self.max_line {
            limits.line_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        }
        limits.memory = self.max_memory.unwrap_or_else(|| usual_memory(limits.memory));
        limits
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

/// Three quarters of the machine's memory, where the system tells how much it has, and at most `most`.
fn usual_memory(most: u64) -> u64 {
    let told = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = told.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib: Option<u64> = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse().ok());
    kib.map_or(most, |kib| (kib / 4 * 3 * 1024).min(most))
}
