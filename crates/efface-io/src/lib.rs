//! Readers that stream records from files, one at a time and in bounded memory: CSV, TSV, JSON
//! lines, Parquet and svmlight, the text formats also packed with gzip or zstd.
//!
//! A [`Source`] is a file that can be read as often as needed; each pass is a [`RecordPass`] of
//! cells or, for svmlight, a [`SparseTable`]. Nothing is interpreted here beyond what the file
//! itself says: whether a column of text holds numbers is for a later layer to decide. Whatever the
//! bytes are, the outcome is a record or an [`Error`] that names the place and repeats no content.
//!
//! ```
//! use efface::features::Cell;
//! use efface_io::Source;
//!
//! let source = Source::from_bytes("people.csv", "age,city\n42,Lyon\n,Turin\n", None)?;
//! let mut table = source.table()?;
//! assert_eq!(table.columns(), ["age", "city"]);
//! for record in &mut table {
//!     let record = record?;
//!     if record.line == 3 {
//!         assert_eq!(record.cells, [Cell::Missing, Cell::Text("Turin".into())]);
//!     }
//! }
//! table.rewind()?;
//! assert_eq!(table.count(), 2);
//! # Ok::<(), efface_io::Error>(())
//! ```

mod blocks;
mod compression;
mod condition;
mod csv;
mod dialect;
mod error;
mod format;
mod jsonl;
mod machine;
#[cfg(feature = "parquet")]
mod parquet;
mod paths;
mod source;
mod stream;
mod svmlight;
mod table;
mod text;

pub use blocks::{BlockPass, TableBlock, TableBlocks};
pub use compression::{Compression, ReadProgress};
pub use condition::{ComparisonSign, ConditionError, RowCondition};
pub use dialect::{TableDialect, days_since_1970};
pub use error::{Error, ReadFault, Result};
pub use format::{FileFormat, UnknownFormat};
pub use machine::{machine_memory, missing_addresses};
pub use paths::{files_of, is_pattern};
pub use source::{ReadLimits, Source, open};
pub use svmlight::{SparseExtent, SparseRecord, SparseTable};
pub use table::{RecordPass, TableRecord};
