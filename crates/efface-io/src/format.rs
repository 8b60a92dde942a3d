//! The formats, and how a file name tells them.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::Compression;

/// How the records of a file are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileFormat {
    /// Comma-separated values; the first line is the header.
    Csv,
    /// Tab-separated values; the first line is the header, quotes mean what they mean in CSV.
    Tsv,
    /// One flat JSON object a line.
    JsonLines,
    /// Apache Parquet with flat columns.
    Parquet,
    /// `label [qid:n] index:value …`, also known as libsvm.
    Svmlight,
}

impl FileFormat {
    /// Whether records are sparse vectors instead of rows of a table.
    #[must_use]
    pub fn is_sparse(self) -> bool {
        self == Self::Svmlight
    }

    /// The format that a file name tells by its extension, after `.gz` or `.zst` is taken off.
    #[must_use]
    pub fn of_path(path: &Path) -> Option<Self> {
        let packed = Compression::of_path(path) != Compression::None;
        let name = if packed {
            Path::new(path.file_stem()?)
        } else {
            path
        };
        match name.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "csv" => Some(Self::Csv),
            "tsv" => Some(Self::Tsv),
            "jsonl" | "ndjson" | "json" => Some(Self::JsonLines),
            "parquet" => Some(Self::Parquet),
            "svm" | "svmlight" | "libsvm" => Some(Self::Svmlight),
            _ => None,
        }
    }
}

impl fmt::Display for FileFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::JsonLines => "jsonl",
            Self::Parquet => "parquet",
            Self::Svmlight => "svmlight",
        })
    }
}

/// A name that is no format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no format; use csv, tsv, jsonl, parquet or svmlight")]
pub struct UnknownFormat(String);

impl FromStr for FileFormat {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        match name.to_ascii_lowercase().as_str() {
            "csv" => Ok(Self::Csv),
            "tsv" => Ok(Self::Tsv),
            "jsonl" | "ndjson" | "jsonlines" => Ok(Self::JsonLines),
            "parquet" => Ok(Self::Parquet),
            "svmlight" | "libsvm" | "svm" => Ok(Self::Svmlight),
            _ => Err(UnknownFormat(name.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_formats() {
        let of = |name: &str| FileFormat::of_path(Path::new(name));
        assert_eq!(of("a.CSV"), Some(FileFormat::Csv));
        assert_eq!(of("dir.csv/a.tsv.gz"), Some(FileFormat::Tsv));
        assert_eq!(of("a.b.ndjson.zst"), Some(FileFormat::JsonLines));
        assert_eq!(of("a.libsvm"), Some(FileFormat::Svmlight));
        assert_eq!(of("a.txt"), None);
        assert_eq!(of("csv"), None);
        assert_eq!(of("a.gz"), None);
    }

    #[test]
    fn a_format_reads_back_its_own_name() {
        for format in [
            FileFormat::Csv,
            FileFormat::Tsv,
            FileFormat::JsonLines,
            FileFormat::Parquet,
            FileFormat::Svmlight,
        ] {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        assert!(
            "xls"
                .parse::<FileFormat>()
                .unwrap_err()
                .to_string()
                .contains("svmlight")
        );
    }
}
