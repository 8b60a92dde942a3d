//! What can go wrong while reading: the file, and the fault found in it. Every fault says what was
//! found, what is accepted and what to do next. Places are given as lines, columns and token
//! numbers; the content of a row is never repeated, so a message can go to a log.

use std::path::{Path, PathBuf};

/// A fault and the file it was found in.
#[derive(Debug, thiserror::Error)]
#[error("{}: {fault}", file.display())]
pub struct Error {
    /// The file, as the caller named it.
    pub file: PathBuf,
    /// What is wrong with it.
    pub fault: Box<ReadFault>,
}

/// The result of every reader.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(file: &Path, fault: ReadFault) -> Self {
        Self {
            file: file.to_owned(),
            fault: Box::new(fault),
        }
    }
}

/// What can be wrong with a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadFault {
    /// The operating system refused to open the file.
    #[error("cannot be opened ({0}); check the path and its permissions")]
    Open(std::io::Error),
    /// A folder or a pattern that stands for no file.
    #[error("{0}; check the path, or give the format")]
    NoFiles(&'static str),
    /// A stream that was read, and would have to be read again.
    #[error(
        "can be read only once, and a later row shows that its columns need two passes; save it to a file and read that"
    )]
    ReadOnce,
    /// The operating system failed in the middle of the file.
    #[error("reading stopped after line {line} ({cause}); check the disk or the network share")]
    Read {
        /// Lines or rows that had been read.
        line: u64,
        /// What the operating system said.
        cause: std::io::Error,
    },
    /// The extension names no format.
    #[error(
        "the extension names no known format; known are .csv, .tsv, .jsonl, .ndjson, .json, .parquet, .svm, \
         .svmlight and .libsvm, each text format also with .gz or .zst; rename the file or give the format"
    )]
    UnknownFormat,
    /// Parquet inside gzip or zstd.
    #[error(
        "is a Parquet file inside {0}; Parquet compresses its own pages, so unpack the file first"
    )]
    CompressedParquet(&'static str),
    /// The crate was built without the feature `parquet`.
    #[error("is a Parquet file, but this build cannot read Parquet; enable the feature `parquet`")]
    ParquetDisabled,
    /// A table was asked of a sparse file or the other way round.
    #[error("holds {found}, but {wanted} was asked for; give another format or ask for {found}")]
    Shape {
        /// What the format holds.
        found: &'static str,
        /// What the caller asked for.
        wanted: &'static str,
    },
    /// A separator that no table can have.
    #[error(
        "a separator is one ASCII character, and neither a quote nor a line break; give another one"
    )]
    Separator,
    /// Files that are read as one table and have different columns.
    #[error(
        "has other columns than {}{}{}; files that are read together have the same columns, in any order",
        first.display(), lacking(.missing), beside(.more)
    )]
    OtherColumns {
        /// The first file.
        first: PathBuf,
        /// Columns that this file lacks.
        missing: Vec<String>,
        /// Columns that the first file lacks.
        more: Vec<String>,
    },
    /// Not even a header.
    #[error("is empty: there is neither a header nor a row; check how the file was written")]
    Empty,
    /// The file is no longer the one that was opened.
    #[error("changed while it was read; keep the file still and start again")]
    Changed,
    /// The compressed stream is damaged or cut short.
    #[error(
        "the {codec} stream breaks after line {line}; the file is damaged, cut short or not {codec}"
    )]
    BrokenStream {
        /// `gzip` or `zstd`.
        codec: &'static str,
        /// Lines that had been read.
        line: u64,
    },
    /// A line that memory should not hold.
    #[error(
        "line {line} is longer than {limit} bytes; split it, close an open quote or raise the limit"
    )]
    LongLine {
        /// Where the line or the quoted record starts.
        line: u64,
        /// Bytes accepted.
        limit: usize,
    },
    /// More columns than memory should hold.
    #[error("line {line} brings the table above {limit} columns; use svmlight for data this wide")]
    TooManyColumns {
        /// The line that crosses the limit.
        line: u64,
        /// Columns accepted.
        limit: usize,
    },
    /// A column name that memory should not hold.
    #[error("line {line} names a column with more than {limit} bytes; shorten the name")]
    LongName {
        /// The line that holds the name.
        line: u64,
        /// Bytes accepted.
        limit: usize,
    },
    /// Two columns of one name.
    #[error("columns share a name: {}; give each column its own name", quoted(.0))]
    DuplicateColumns(Vec<String>),
    /// A row that does not have the header's number of fields.
    #[error(
        "line {line} has {found} fields where the header has {expected}; quote fields that hold a separator"
    )]
    Ragged {
        /// Where the row starts.
        line: u64,
        /// Its fields.
        found: usize,
        /// The header's fields.
        expected: usize,
    },
    /// The file ends inside a quoted field.
    #[error("the quote opened in the record of line {line} is never closed; close or double it")]
    OpenQuote {
        /// Where the record starts.
        line: u64,
    },
    /// Text that is not UTF-8.
    #[error("line {line}{} is not UTF-8; convert the file to UTF-8", in_column(.column.as_deref()))]
    NotUtf8 {
        /// The line or row.
        line: u64,
        /// The column, where the columns are known by then.
        column: Option<String>,
    },
    /// A line that is not JSON.
    #[error(
        "line {line} is not one JSON object ({category} at byte {byte}); write one flat object a line"
    )]
    BrokenJson {
        /// The line.
        line: u64,
        /// The place inside the line, counted from 1.
        byte: usize,
        /// `syntax`, `wrong type` or `cut short`.
        category: &'static str,
    },
    /// A line that is JSON of another kind.
    #[error(
        "line {line} is not a JSON object; write one flat object a line, without an array around them"
    )]
    NotAnObject {
        /// The line.
        line: u64,
    },
    /// An array or an object inside a row.
    #[error(
        "line {line}, key {key:?} holds an array or an object; only numbers, text, booleans and null are read"
    )]
    NestedValue {
        /// The line.
        line: u64,
        /// The key.
        key: String,
    },
    /// A key that occurs twice in one object.
    #[error("line {line} gives the key {key:?} twice; give each key once")]
    RepeatedKey {
        /// The line.
        line: u64,
        /// The key.
        key: String,
    },
    /// The footer is not one of a Parquet file.
    #[error(
        "is not a readable Parquet file: its footer is missing, damaged or encrypted; write it again"
    )]
    NotParquet,
    /// A column that is not a flat primitive.
    #[error(
        "column {column:?} is nested or repeated; only flat columns are read, so flatten or drop it"
    )]
    NestedColumn {
        /// The column.
        column: String,
    },
    /// A column whose type or codec is not read.
    #[error(
        "column {column:?} uses {what}, which is not read; write it with another type or codec"
    )]
    UnsupportedColumn {
        /// The column.
        column: String,
        /// The type or the codec.
        what: String,
    },
    /// A Parquet page that cannot be decoded.
    #[error("the Parquet data breaks after row {row}; the file is damaged, so write it again")]
    BrokenParquet {
        /// Rows that had been read.
        row: u64,
    },
    /// A token that is neither a label, a `qid:` nor an `index:value`.
    #[error(
        "line {line}, token {token} is not {expected}; a line reads `label [qid:n] index:value …`"
    )]
    BadToken {
        /// The line.
        line: u64,
        /// The token, counted from 1; the label is token 1.
        token: usize,
        /// What would be accepted there.
        expected: &'static str,
    },
    /// Indices that do not increase.
    #[error(
        "line {line}, token {token}: the index does not exceed the one before; sort each line, name an index once"
    )]
    IndexOrder {
        /// The line.
        line: u64,
        /// The token, counted from 1.
        token: usize,
    },
    /// An index that does not fit.
    #[error(
        "line {line}, token {token}: the index is not below {limit}; renumber the features or raise the limit on columns"
    )]
    IndexTooLarge {
        /// The line.
        line: u64,
        /// The token, counted from 1.
        token: usize,
        /// Indices accepted lie below it.
        limit: u32,
    },
    /// More than memory should hold.
    #[error(
        "the rows up to line {line} take more than {limit} bytes of memory; read fewer or raise the limit on memory"
    )]
    TooMuchMemory {
        /// The line or row that crosses the limit.
        line: u64,
        /// Bytes accepted.
        limit: u64,
    },
}

fn in_column(column: Option<&str>) -> String {
    column
        .map(|name| format!(", column {name:?}"))
        .unwrap_or_default()
}

/// `, lacks "a"`.
fn lacking(names: &[String]) -> String {
    if names.is_empty() {
        String::new()
    } else {
        format!(": it lacks {}", quoted(names))
    }
}

/// `, has "b" beside them`.
fn beside(names: &[String]) -> String {
    if names.is_empty() {
        String::new()
    } else {
        format!(": it has {} beside them", quoted(names))
    }
}

/// Names in quotes, at most eight of them.
fn quoted(names: &[String]) -> String {
    let mut list = names
        .iter()
        .take(8)
        .map(|name| format!("{name:?}"))
        .collect::<Vec<_>>()
        .join(", ");
    if names.len() > 8 {
        list.push_str(&format!(" and {} more", names.len() - 8));
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_the_file_the_place_and_the_remedy() {
        let error = Error::new(
            Path::new("a.csv"),
            ReadFault::Ragged {
                line: 7,
                found: 3,
                expected: 4,
            },
        );
        assert_eq!(
            error.to_string(),
            "a.csv: line 7 has 3 fields where the header has 4; quote fields that hold a separator"
        );
        let many = ReadFault::DuplicateColumns((0..10).map(|i| format!("c{i}")).collect());
        assert!(many.to_string().contains("\"c7\" and 2 more;"));
    }
}
