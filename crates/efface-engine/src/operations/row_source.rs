//! Where rows come from: a file, or memory. A server holds rows that never were a file; both go the
//! same way from here on.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use efface::features::Cell;
use efface_io::{ReadFault, ReadLimits, ReadProgress, RowCondition, Source};

use crate::error::{Error, Result};
use crate::operations::row_choice::{BoundChoice, RowChoice};
pub use crate::operations::row_pass::SeveralFiles;
use crate::operations::row_pass::{
    FilePass, SourceBlocks, SparseInput, SparsePass, SparseRow, TablePass, TableRows,
};

/// What errors call rows that have no file.
const IN_MEMORY: &str = "rows in memory";

/// Rows to fit, learn, amend, audit or score. It can be read in any number of passes, and is cheap
/// to clone.
#[derive(Debug, Clone)]
pub enum RowSource {
    /// A file, or bytes that are read like one.
    File(Source),
    /// Records of named cells.
    Records(RecordTable),
    /// Rows of index–value pairs, as in an svmlight file.
    Sparse(SparseRows),
    /// Several files with the same columns, read one after the other.
    Several(SeveralFiles),
    /// Some of the rows of another source.
    Chosen(ChosenRows),
}

/// Some of the rows of a source. They keep their positions in it.
#[derive(Debug, Clone)]
pub struct ChosenRows {
    source: Arc<RowSource>,
    choice: RowChoice,
}

impl From<Source> for RowSource {
    fn from(source: Source) -> Self {
        Self::File(source)
    }
}

impl From<&Source> for RowSource {
    fn from(source: &Source) -> Self {
        Self::File(source.clone())
    }
}

impl From<RecordTable> for RowSource {
    fn from(records: RecordTable) -> Self {
        Self::Records(records)
    }
}

impl From<&RecordTable> for RowSource {
    fn from(records: &RecordTable) -> Self {
        Self::Records(records.clone())
    }
}

impl From<SparseRows> for RowSource {
    fn from(rows: SparseRows) -> Self {
        Self::Sparse(rows)
    }
}

impl From<&SparseRows> for RowSource {
    fn from(rows: &SparseRows) -> Self {
        Self::Sparse(rows.clone())
    }
}

impl From<&RowSource> for RowSource {
    fn from(rows: &RowSource) -> Self {
        rows.clone()
    }
}

/// Records in memory: cells under the names of their columns. Errors count records from 1, as lines
/// of a file.
///
/// ```
/// use efface::features::Cell;
/// use efface_engine::RecordTable;
///
/// let text = |text: &str| Cell::Text(text.into());
/// let first = vec![("city".to_owned(), text("Lyon")), ("rooms".to_owned(), Cell::Number(3.0))];
/// let second = vec![("rooms".to_owned(), Cell::Number(4.0))];
/// let records = RecordTable::from_records(vec![first, second])?;
/// assert_eq!(records.columns(), ["city", "rooms"]);
/// assert_eq!(records.len(), 2);
/// # Ok::<(), efface_engine::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct RecordTable {
    columns: Arc<[String]>,
    rows: Arc<[Vec<Cell>]>,
}

impl RecordTable {
    /// Rows with one cell for each column.
    ///
    /// # Errors
    /// Two columns have one name, or a row has more or fewer cells than there are columns.
    pub fn new(columns: Vec<String>, rows: Vec<Vec<Cell>>) -> Result<Self> {
        let mut seen: HashSet<&str> = HashSet::with_capacity(columns.len());
        if let Some(twice) = columns.iter().find(|name| !seen.insert(name)) {
            return Err(fault(ReadFault::DuplicateColumns(vec![twice.clone()])));
        }
        if let Some(at) = rows.iter().position(|row| row.len() != columns.len()) {
            let problem = format!(
                "the row has {} cells where there are {} columns",
                rows[at].len(),
                columns.len()
            );
            return Err(Error::Line {
                line: at as u64 + 1,
                problem,
                hint: Some("give one cell for each column".into()),
            });
        }
        Ok(Self {
            columns: columns.into(),
            rows: rows.into(),
        })
    }

    /// Records that name their cells themselves, as JSON objects do. Columns stand in the order in
    /// which their names first appear; a record without a column has nothing there.
    ///
    /// # Errors
    /// A record names a column twice.
    pub fn from_records(records: Vec<Vec<(String, Cell)>>) -> Result<Self> {
        let mut records = records.into_iter();
        // Most records name the same columns in the same order, and most tables of a service have
        // one record.
        let (mut columns, first): (Vec<String>, Vec<Cell>) =
            records.next().unwrap_or_default().into_iter().unzip();
        let mut rows = vec![first];
        let mut places: HashMap<String, usize> = HashMap::new();
        for record in records {
            if record.len() == columns.len()
                && record
                    .iter()
                    .zip(&columns)
                    .all(|((name, _), column)| name == column)
            {
                rows.push(record.into_iter().map(|(_, cell)| cell).collect());
                continue;
            }
            if places.is_empty() {
                places = columns
                    .iter()
                    .cloned()
                    .enumerate()
                    .map(|(at, name)| (name, at))
                    .collect();
            }
            let mut row: Vec<Option<Cell>> = vec![None; columns.len()];
            for (name, cell) in record {
                let place = *places.entry(name.clone()).or_insert(columns.len());
                if place == columns.len() {
                    columns.push(name);
                    row.push(Some(cell));
                } else if row[place].is_none() {
                    row[place] = Some(cell);
                } else {
                    return Err(fault(ReadFault::DuplicateColumns(vec![name])));
                }
            }
            rows.push(
                row.into_iter()
                    .map(|cell| cell.unwrap_or(Cell::Missing))
                    .collect::<Vec<_>>(),
            );
        }
        for row in &mut rows {
            row.resize(columns.len(), Cell::Missing);
        }
        Self::new(columns, rows)
    }

    /// The names of the columns.
    #[must_use]
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// Sparse rows in memory: a target, which a prediction ignores, and entries with increasing
/// indices. Errors count rows from 1, as lines of a file.
#[derive(Debug, Clone)]
pub struct SparseRows {
    rows: Arc<[SparseRow]>,
}

impl SparseRows {
    /// Rows of a target and entries.
    ///
    /// # Errors
    /// The indices of a row do not increase.
    pub fn new(rows: Vec<(f64, Vec<(u32, f64)>)>) -> Result<Self> {
        let unsorted = |(_, entries): &SparseRow| !entries.is_sorted_by(|a, b| a.0 < b.0);
        if let Some(at) = rows.iter().position(unsorted) {
            return Err(Error::Line {
                line: at as u64 + 1,
                problem: "the indices do not increase".into(),
                hint: Some("sort the entries by index, and name every index once".into()),
            });
        }
        Ok(Self { rows: rows.into() })
    }
}

impl RowSource {
    /// Whether rows are index–value pairs.
    #[must_use]
    pub fn is_sparse(&self) -> bool {
        match self {
            Self::File(source) => source.is_sparse(),
            Self::Records(_) => false,
            Self::Sparse(_) => true,
            Self::Several(several) => several.files.first().is_some_and(Source::is_sparse),
            Self::Chosen(chosen) => chosen.source.is_sparse(),
        }
    }

    /// The names of the columns.
    ///
    /// # Errors
    /// The rows are index–value pairs, or the file cannot be read.
    pub fn columns(&self) -> Result<Vec<String>> {
        Ok(self.table()?.columns().to_vec())
    }

    /// What errors call the source.
    pub(crate) fn name(&self) -> PathBuf {
        match self {
            Self::File(source) => source.path().to_owned(),
            Self::Records(_) | Self::Sparse(_) => Path::new(IN_MEMORY).to_owned(),
            Self::Several(several) => {
                let names: Vec<String> = several
                    .files
                    .iter()
                    .map(|file| file.path().display().to_string())
                    .collect();
                names.join(", ").into()
            }
            Self::Chosen(chosen) => chosen.source.name(),
        }
    }

    /// Files that are read as one table, in their order.
    ///
    /// # Errors
    /// There are none, or tables and sparse vectors among them.
    pub fn several(mut files: Vec<Source>) -> Result<Self> {
        if files.len() == 1 {
            return Ok(Self::File(files.swap_remove(0)));
        }
        let sparse = files.iter().filter(|file| file.is_sparse()).count();
        if files.is_empty() || (sparse != 0 && sparse != files.len()) {
            return Err(Error::request(
                "tables and svmlight files cannot be read together",
                "give one kind",
            ));
        }
        Ok(Self::Several(SeveralFiles {
            files: files.into(),
            current: Arc::default(),
        }))
    }

    /// The rows of this source that a condition keeps. They are named by their positions in the
    /// whole source, where they have no id.
    #[must_use]
    pub fn matching(&self, condition: RowCondition) -> Self {
        self.chosen(RowChoice::Where(condition))
    }

    /// Returns true if these rows are read from a file of the other source, under the same
    /// conditions.
    pub(crate) fn reads_rows_of(&self, other: &Self) -> bool {
        let (files, conditions) = self.origin();
        let (other_files, other_conditions) = other.origin();
        let resolved = |file: &&Source| file.path().canonicalize().ok();
        let theirs: Vec<PathBuf> = other_files.iter().filter_map(resolved).collect();
        conditions == other_conditions
            && files
                .iter()
                .filter_map(resolved)
                .any(|file| theirs.contains(&file))
    }

    /// The files that rows are read from, and the conditions that keep some of them.
    fn origin(&self) -> (Vec<&Source>, Vec<&RowCondition>) {
        match self {
            Self::File(source) => (vec![source], Vec::new()),
            Self::Several(several) => (several.files.iter().collect(), Vec::new()),
            Self::Records(_) | Self::Sparse(_) => (Vec::new(), Vec::new()),
            Self::Chosen(chosen) => {
                let (files, mut conditions) = chosen.source.origin();
                if let RowChoice::Where(condition) = &chosen.choice {
                    conditions.push(condition);
                }
                (files, conditions)
            }
        }
    }

    /// That there are no rows, and why.
    pub(crate) fn no_rows(&self) -> Error {
        let file = self.name();
        match self {
            Self::Chosen(ChosenRows {
                choice: RowChoice::Where(condition),
                ..
            }) => Error::NothingChosen {
                file,
                what: condition.to_string(),
            },
            Self::Chosen(ChosenRows {
                choice: RowChoice::Drawn(_),
                source,
            }) => match &**source {
                Self::Chosen(_) => source.no_rows(),
                _ => Error::NothingChosen {
                    file,
                    what: "the share that is held out, or what it leaves".into(),
                },
            },
            _ => Error::NoRows { file },
        }
    }

    /// An error that knows only a line, with the file that the latest pass had come to.
    pub(crate) fn located(&self, error: Error) -> Error {
        match self {
            // Two files may hold the two rows of one id.
            Self::Several(_) if matches!(error, Error::RepeatedId { .. }) => Error::InFile {
                file: self.name(),
                cause: Box::new(error),
            },
            Self::Several(several) if !matches!(error, Error::Read(_)) => {
                let at = several.current.load(Ordering::Relaxed);
                let file = several
                    .files
                    .get(at)
                    .map_or_else(|| self.name(), |file| file.path().to_owned());
                Error::InFile {
                    file,
                    cause: Box::new(error),
                }
            }
            Self::Chosen(chosen) => chosen.source.located(error),
            _ => error,
        }
    }

    /// The rows of this source that a choice keeps.
    pub(crate) fn chosen(&self, choice: RowChoice) -> Self {
        Self::Chosen(ChosenRows {
            source: Arc::new(self.clone()),
            choice,
        })
    }

    /// Begins a pass over rows of cells.
    pub(super) fn table(&self) -> Result<TablePass> {
        match self {
            Self::File(source) => Ok(TablePass::new(TableRows::File(Box::new(source.table()?)))),
            Self::Records(records) => Ok(TablePass::new(TableRows::Memory {
                columns: Arc::clone(&records.columns),
                rows: Arc::clone(&records.rows),
                next: 0,
            })),
            Self::Sparse(_) => Err(fault(ReadFault::Shape {
                found: "sparse vectors",
                wanted: "a table",
            })),
            Self::Several(several) => {
                Ok(TablePass::new(TableRows::Files(FilePass::open(several)?)))
            }
            Self::Chosen(chosen) => {
                let mut pass = chosen.source.table()?;
                pass.choose(BoundChoice::find(&chosen.choice, pass.columns())?);
                Ok(pass)
            }
        }
    }

    /// Begins a pass over rows of cells in blocks, which several threads can parse side by side.
    /// None for rows that are no files of cells, or that are chosen by where they stand among all,
    /// which a block does not know.
    pub(super) fn blocks(&self, bytes: usize) -> Result<Option<SourceBlocks>> {
        match self {
            _ if self.is_sparse() => Ok(None),
            Self::File(source) => Ok(Some(SourceBlocks::open(
                std::slice::from_ref(source),
                bytes,
            )?)),
            Self::Several(several) => Ok(Some(SourceBlocks::open(&several.files, bytes)?)),
            Self::Chosen(ChosenRows {
                source,
                choice: RowChoice::Where(_),
            }) => source.blocks(bytes),
            Self::Chosen(_) | Self::Records(_) | Self::Sparse(_) => Ok(None),
        }
    }

    /// Lets a pass over a part of this source leave out the rows that the source leaves out.
    pub(super) fn bind_choices(&self, pass: &mut TablePass) -> Result<()> {
        if let Self::Chosen(chosen) = self {
            chosen.source.bind_choices(pass)?;
            pass.choose(BoundChoice::find(&chosen.choice, pass.columns())?);
        }
        Ok(())
    }

    /// Says to which of several files a pass has come.
    pub(super) fn come_to(&self, file: usize) {
        match self {
            Self::Several(several) => several.current.store(file, Ordering::Relaxed),
            Self::Chosen(chosen) => chosen.source.come_to(file),
            _ => {}
        }
    }

    /// Begins a pass over sparse rows.
    pub(super) fn sparse(&self) -> Result<SparsePass> {
        match self {
            Self::File(source) => Ok(SparsePass::new(SparseInput::File(Box::new(
                source.sparse()?,
            )))),
            Self::Records(_) => Err(fault(ReadFault::Shape {
                found: "a table",
                wanted: "sparse vectors",
            })),
            Self::Sparse(rows) => Ok(SparsePass::new(SparseInput::Memory {
                rows: Arc::clone(&rows.rows),
                next: 0,
            })),
            Self::Several(several) => {
                several.current.store(0, Ordering::Relaxed);
                let first = several.files[0].sparse()?;
                Ok(SparsePass::new(SparseInput::Files {
                    several: several.clone(),
                    at: 0,
                    pass: Box::new(first),
                }))
            }
            Self::Chosen(chosen) => {
                let mut pass = chosen.source.sparse()?;
                pass.choose(BoundChoice::without_columns(&chosen.choice)?);
                Ok(pass)
            }
        }
    }

    /// How much of the source may be in memory.
    pub(super) fn limits(&self) -> ReadLimits {
        match self {
            Self::File(source) => source.limits(),
            Self::Records(_) | Self::Sparse(_) => ReadLimits::default(),
            Self::Several(several) => several.files[0].limits(),
            Self::Chosen(chosen) => chosen.source.limits(),
        }
    }

    /// How far passes go, and how far the latest has come: bytes of files, which rows in memory do
    /// not have.
    pub(super) fn progress(&self) -> Option<PassProgress> {
        match self {
            Self::File(source) => Some(PassProgress {
                files: vec![source.progress()],
                current: Arc::default(),
            }),
            Self::Several(several) => {
                let files = several.files.iter().map(Source::progress).collect();
                Some(PassProgress {
                    files,
                    current: Arc::clone(&several.current),
                })
            }
            Self::Records(_) | Self::Sparse(_) => None,
            Self::Chosen(chosen) => chosen.source.progress(),
        }
    }

    /// Says that the next pass is the only one, so that a stream need not be kept.
    pub(super) fn read_once(&self) {
        match self {
            Self::File(source) => source.read_once(),
            Self::Several(several) => several.files.iter().for_each(Source::read_once),
            Self::Records(_) | Self::Sparse(_) => {}
            Self::Chosen(chosen) => chosen.source.read_once(),
        }
    }

    /// Refuses files that are no longer those that were opened: a pass saw rows of before and after
    /// the change, or two passes other rows.
    pub(super) fn check_unchanged(&self) -> Result<()> {
        match self {
            Self::File(source) => Ok(source.check_unchanged()?),
            Self::Several(several) => several
                .files
                .iter()
                .try_for_each(|file| Ok(file.check_unchanged()?)),
            Self::Records(_) | Self::Sparse(_) => Ok(()),
            Self::Chosen(chosen) => chosen.source.check_unchanged(),
        }
    }
}

/// How far a pass over files has come, in bytes.
pub(crate) struct PassProgress {
    files: Vec<ReadProgress>,
    current: Arc<AtomicUsize>,
}

impl PassProgress {
    /// None where a stream is among the files.
    pub(super) fn size(&self) -> Option<u64> {
        let sizes = self
            .files
            .iter()
            .map(|file| Some(file.size()).filter(|size| *size > 0));
        sizes.sum()
    }

    /// The files before the current one are read; those behind it keep the count of the pass
    /// before.
    pub(super) fn bytes_read(&self) -> u64 {
        let at = self
            .current
            .load(Ordering::Relaxed)
            .min(self.files.len() - 1);
        let before: u64 = self.files[..at].iter().map(ReadProgress::size).sum();
        before + self.files[at].bytes_read()
    }
}

fn fault(fault: ReadFault) -> Error {
    efface_io::Error {
        file: IN_MEMORY.into(),
        fault: Box::new(fault),
    }
    .into()
}
