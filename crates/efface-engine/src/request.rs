//! What a caller asks for.

use efface::Ridge;
use efface::features::{EncoderOptions, WordSource};
use efface_io::Source;

/// What a fit is asked to do.
#[derive(Debug, Clone)]
pub struct FitRequest {
    /// The file with the rows.
    pub source: Source,
    /// The columns to predict, one or many. Must be empty for svmlight, whose target is in the line.
    pub targets: Vec<String>,
    /// Columns read as words.
    pub text: Vec<String>,
    /// Columns that are one-hot whatever they look like.
    pub categorical: Vec<String>,
    /// Columns that must hold numbers.
    pub numeric: Vec<String>,
    /// Columns to leave out.
    pub ignore: Vec<String>,
    /// The column that names a row; without one, rows are named by their position 0, 1, 2, ….
    pub id: Option<String>,
    /// The column that names the person a row belongs to.
    pub subject: Option<String>,
    /// The column that holds a row's weight.
    pub weight: Option<String>,
    /// Where the words of text columns come from.
    pub words: WordSource,
    /// The most levels of a column that was inferred to be one-hot.
    pub max_levels: usize,
    /// Whether target values are classes.
    pub classify: bool,
    /// Target values that are the positive class, all others being the negative one; implies `classify`. Equal numbers
    /// are equal however they are written.
    pub positive: Vec<String>,
    /// The model.
    pub ridge: Ridge,
}

impl FitRequest {
    /// A regression on every column of `source` but the target, which is still to be named.
    pub fn new(source: Source) -> Self {
        let EncoderOptions { words, max_levels, .. } = EncoderOptions::default();
        Self {
            source,
            targets: Vec::new(),
            text: Vec::new(),
            categorical: Vec::new(),
            numeric: Vec::new(),
            ignore: Vec::new(),
            id: None,
            subject: None,
            weight: None,
            words,
            max_levels,
            classify: false,
            positive: Vec::new(),
            ridge: Ridge::default(),
        }
    }
}

/// The rows that a forget is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    /// These rows.
    Ids(Vec<String>),
    /// All rows of one person.
    Subject {
        /// The model's subject column.
        column: String,
        /// The person, as that column names them.
        value: String,
    },
}

/// Where long work reports. Every method does nothing unless it is overridden.
pub trait Progress {
    /// A stage begins; `total` is how far it goes, where that is known.
    fn start(&self, _what: &str, _total: Option<u64>) {}
    /// The stage has come this far.
    fn at(&self, _done: u64) {}
    /// The stage is over.
    fn finish(&self) {}
}

/// Reports to nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {}
