//! One value of a table, as a reader hands it over.

/// One value of a table before it becomes features. Readers make these; [`Encoder`](super::Encoder)
/// uses them.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Nothing there: an empty CSV field, a JSON null or absent key, a Parquet null.
    Missing,
    /// A number that its file marks as one (JSON, Parquet). CSV fields arrive as text.
    Number(f64),
    /// Anything else.
    Text(String),
}
