//! Where rows come from: a file, or memory. A server holds rows that never were a file; both go the same way from here on.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use efface::features::{Cell, FeatureError};
use efface_io::{ReadFault, ReadLimits, RowCondition, Source, SparseRecord, TableRecord, days_since_1970};

use crate::error::{Error, Result};
use crate::operations::row_choice::{BoundChoice, RowChoice};

/// What errors call rows that have no file.
const IN_MEMORY: &str = "rows in memory";

/// Rows to fit, learn, amend, audit or score. It can be read in any number of passes, and is cheap to clone.
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

/// Files that are read as one table. Positions go on from file to file, lines begin anew in each.
#[derive(Debug, Clone)]
pub struct SeveralFiles {
    files: Arc<[Source]>,
    /// The file that the latest pass has come to, for errors that know only a line.
    current: Arc<AtomicUsize>,
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

/// Records in memory: cells under the names of their columns. Errors count records from 1, as lines of a file.
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
            let problem =
                format!("the row has {} cells where there are {} columns", rows[at].len(), columns.len());
            return Err(Error::Line {
                line: at as u64 + 1,
                problem,
                hint: Some("give one cell for each column".into()),
            });
        }
        Ok(Self { columns: columns.into(), rows: rows.into() })
    }

    /// Records that name their cells themselves, as JSON objects do. Columns stand in the order in which their names first
    /// appear; a record without a column has nothing there.
    ///
    /// # Errors
    /// A record names a column twice.
    pub fn from_records(records: Vec<Vec<(String, Cell)>>) -> Result<Self> {
        let mut records = records.into_iter();
        // Most records name the same columns in the same order, and most tables of a service have one record.
        let (mut columns, first): (Vec<String>, Vec<Cell>) =
            records.next().unwrap_or_default().into_iter().unzip();
        let mut rows = vec![first];
        let mut places: HashMap<String, usize> = HashMap::new();
        for record in records {
            if record.len() == columns.len()
                && record.iter().zip(&columns).all(|((name, _), column)| name == column)
            {
                rows.push(record.into_iter().map(|(_, cell)| cell).collect());
                continue;
            }
            if places.is_empty() {
                places = columns.iter().cloned().enumerate().map(|(at, name)| (name, at)).collect();
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
            rows.push(row.into_iter().map(|cell| cell.unwrap_or(Cell::Missing)).collect::<Vec<_>>());
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

/// Sparse rows in memory: a target, which a prediction ignores, and entries with increasing indices. Errors count rows from
/// 1, as lines of a file.
#[derive(Debug, Clone)]
pub struct SparseRows {
    rows: Arc<[SparseRow]>,
}

/// A target, and entries of an index and a value.
type SparseRow = (f64, Vec<(u32, f64)>);

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
                let names: Vec<String> =
                    several.files.iter().map(|file| file.path().display().to_string()).collect();
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
            return Err(Error::request("tables and svmlight files cannot be read together", "give one kind"));
        }
        Ok(Self::Several(SeveralFiles { files: files.into(), current: Arc::default() }))
    }

    /// The rows of this source that a condition keeps. They are named by their positions in the whole source, where they have no id.
    #[must_use]
    pub fn matching(&self, condition: RowCondition) -> Self {
        self.chosen(RowChoice::Where(condition))
    }

    /// That there are no rows, and why.
    pub(crate) fn no_rows(&self) -> Error {
        let file = self.name();
        match self {
            Self::Chosen(ChosenRows { choice: RowChoice::Where(condition), .. }) => {
                Error::NothingChosen { file, what: condition.to_string() }
            }
            Self::Chosen(ChosenRows { choice: RowChoice::Drawn(_), source }) => match &**source {
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
            Self::Several(_) if matches!(error, Error::RepeatedId { .. }) => {
                Error::InFile { file: self.name(), cause: Box::new(error) }
            }
            Self::Several(several) if !matches!(error, Error::Read(_)) => {
                let at = several.current.load(Ordering::Relaxed);
                let file = several.files.get(at).map_or_else(|| self.name(), |file| file.path().to_owned());
                Error::InFile { file, cause: Box::new(error) }
            }
            Self::Chosen(chosen) => chosen.source.located(error),
            _ => error,
        }
    }

    /// The rows of this source that a choice keeps.
    pub(crate) fn chosen(&self, choice: RowChoice) -> Self {
        Self::Chosen(ChosenRows { source: Arc::new(self.clone()), choice })
    }

    /// Begins a pass over rows of cells.
    pub(super) fn table(&self) -> Result<TablePass> {
        match self {
            Self::File(source) => Ok(TablePass::new(TableRows::File(Box::new(source.table()?)))),
            Self::Records(records) => {
                Ok(TablePass::new(TableRows::Memory { records: records.clone(), next: 0 }))
            }
            Self::Sparse(_) => Err(fault(ReadFault::Shape { found: "sparse vectors", wanted: "a table" })),
            Self::Several(several) => Ok(TablePass::new(TableRows::Files(FilePass::open(several)?))),
            Self::Chosen(chosen) => {
                let mut pass = chosen.source.table()?;
                pass.choices.push(BoundChoice::find(&chosen.choice, pass.columns())?);
                Ok(pass)
            }
        }
    }

    /// Begins a pass over sparse rows.
    pub(super) fn sparse(&self) -> Result<SparsePass> {
        match self {
            Self::File(source) => Ok(SparsePass::new(SparseInput::File(Box::new(source.sparse()?)))),
            Self::Records(_) => Err(fault(ReadFault::Shape { found: "a table", wanted: "sparse vectors" })),
            Self::Sparse(rows) => Ok(SparsePass::new(SparseInput::Memory { rows: rows.clone(), next: 0 })),
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
                pass.choices.push(BoundChoice::without_columns(&chosen.choice)?);
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

    /// How far passes go, and how far the latest has come: bytes of a file, which rows in memory do not have.
    pub(super) fn progress(&self) -> Option<efface_io::ReadProgress> {
        match self {
            Self::File(source) => Some(source.progress()),
            Self::Records(_) | Self::Sparse(_) | Self::Several(_) => None,
            Self::Chosen(chosen) => chosen.source.progress(),
        }
    }
}

fn fault(fault: ReadFault) -> Error {
    efface_io::Error { file: IN_MEMORY.into(), fault: Box::new(fault) }.into()
}

/// A pass over rows of cells.
pub(super) struct TablePass {
    rows: TableRows,
    choices: Vec<BoundChoice>,
    /// Columns whose dates become days, and where they stand.
    dates: Vec<(usize, String)>,
    /// Rows read so far, those that no choice keeps included.
    passed: u64,
}

enum TableRows {
    File(Box<efface_io::RecordPass>),
    Memory { records: RecordTable, next: usize },
    Files(FilePass),
}

impl TablePass {
    fn new(rows: TableRows) -> Self {
        Self { rows, choices: Vec::new(), dates: Vec::new(), passed: 0 }
    }

    pub(super) fn columns(&self) -> &[String] {
        match &self.rows {
            TableRows::File(table) => table.columns(),
            TableRows::Memory { records, .. } => records.columns(),
            TableRows::Files(files) => &files.columns,
        }
    }

    /// Where the row that was read last stands in the source, from 0.
    pub(super) fn position(&self) -> u64 {
        self.passed.saturating_sub(1)
    }

    /// Reads the next row that all choices keep into `record`; false at the end.
    pub(super) fn read(&mut self, record: &mut TableRecord) -> Result<bool> {
        while self.rows.read(record)? {
            self.passed += 1;
            let position = self.position();
            if self.choices.iter().all(|choice| choice.keeps(&record.cells, position)) {
                for (at, column) in &self.dates {
                    read_date(&mut record.cells[*at], record.line, column)?;
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads dates in these columns as days since 1970 from now on.
    pub(super) fn read_dates(&mut self, names: &[String]) -> Result<()> {
        for name in names {
            let Some(at) = self.columns().iter().position(|column| column == name) else {
                let exist = self.columns().to_vec();
                return Err(FeatureError::UnknownColumn { name: name.clone(), exist }.into());
            };
            self.dates.push((at, name.clone()));
        }
        Ok(())
    }
}

/// A date becomes the days since 1970; a number is taken for such days, and nothing stays nothing.
fn read_date(cell: &mut Cell, line: u64, column: &str) -> Result<()> {
    if let Cell::Text(text) = cell {
        let Some(days) = days_since_1970(text) else {
            return Err(Error::Cell {
                line,
                column: column.into(),
                problem: "this is no date",
                hint: Some("write dates as 2026-03-02, 2026-03-02 09:15 or 2026-03-02T09:15:30Z".into()),
            });
        };
        *cell = Cell::Number(days);
    }
    Ok(())
}

impl TableRows {
    fn read(&mut self, record: &mut TableRecord) -> Result<bool> {
        match self {
            Self::File(table) => Ok(table.read(record)?),
            Self::Memory { records, next } => {
                let Some(cells) = records.rows.get(*next) else { return Ok(false) };
                *next += 1;
                record.line = *next as u64;
                record.cells.clone_from(cells);
                Ok(true)
            }
            Self::Files(files) => files.read(record),
        }
    }
}

/// A pass over several files.
struct FilePass {
    several: SeveralFiles,
    at: usize,
    pass: Box<efface_io::RecordPass>,
    /// The columns of the first file.
    columns: Vec<String>,
    /// Where each of them stands in this file.
    places: Vec<usize>,
    scratch: TableRecord,
}

impl FilePass {
    fn open(several: &SeveralFiles) -> Result<Self> {
        several.current.store(0, Ordering::Relaxed);
        let pass = Box::new(several.files[0].table()?);
        let columns = pass.columns().to_vec();
        let places = (0..columns.len()).collect();
        let scratch = TableRecord::default();
        Ok(Self { several: several.clone(), at: 0, pass, columns, places, scratch })
    }

    fn read(&mut self, record: &mut TableRecord) -> Result<bool> {
        while !self.pass.read(&mut self.scratch)? {
            if self.at + 1 == self.several.files.len() {
                return Ok(false);
            }
            self.at += 1;
            self.several.current.store(self.at, Ordering::Relaxed);
            self.begin()?;
        }
        record.line = self.scratch.line;
        record.cells.clear();
        record.cells.extend(self.places.iter().map(|&place| self.scratch.cells[place].clone()));
        Ok(true)
    }

    /// Begins the next file, whose columns may stand in another order.
    fn begin(&mut self) -> Result<()> {
        let file = &self.several.files[self.at];
        *self.pass = file.table()?;
        let found = self.pass.columns();
        let absent = |names: &[String], among: &[String]| -> Vec<String> {
            names.iter().filter(|name| !among.contains(name)).cloned().collect()
        };
        let missing = absent(&self.columns, found);
        let more = absent(found, &self.columns);
        if !missing.is_empty() || !more.is_empty() {
            let first = self.several.files[0].path().to_owned();
            let fault = Box::new(ReadFault::OtherColumns { first, missing, more });
            return Err(efface_io::Error { file: file.path().to_owned(), fault }.into());
        }
        self.places =
            self.columns.iter().filter_map(|name| found.iter().position(|other| other == name)).collect();
        Ok(())
    }
}

/// A pass over sparse rows.
pub(super) struct SparsePass {
    rows: SparseInput,
    choices: Vec<BoundChoice>,
    /// Rows read so far, those that no choice keeps included.
    passed: u64,
}

enum SparseInput {
    File(Box<efface_io::SparseTable>),
    Memory { rows: SparseRows, next: usize },
    Files { several: SeveralFiles, at: usize, pass: Box<efface_io::SparseTable> },
}

impl SparsePass {
    fn new(rows: SparseInput) -> Self {
        Self { rows, choices: Vec::new(), passed: 0 }
    }

    /// Where the row that was read last stands in the source, from 0.
    pub(super) fn position(&self) -> u64 {
        self.passed.saturating_sub(1)
    }

    /// Reads the next row that all choices keep into `record`; false at the end.
    pub(super) fn read(&mut self, record: &mut SparseRecord) -> Result<bool> {
        while self.rows.read(record)? {
            self.passed += 1;
            let position = self.position();
            if self.choices.iter().all(|choice| choice.keeps(&[], position)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl SparseInput {
    fn read(&mut self, record: &mut SparseRecord) -> Result<bool> {
        match self {
            Self::File(table) => Ok(table.read(record)?),
            Self::Memory { rows, next } => {
                let Some((target, entries)) = rows.rows.get(*next) else { return Ok(false) };
                *next += 1;
                record.line = *next as u64;
                record.target = *target;
                record.qid = None;
                record.entries.clone_from(entries);
                Ok(true)
            }
            Self::Files { several, at, pass } => {
                while !pass.read(record)? {
                    if *at + 1 == several.files.len() {
                        return Ok(false);
                    }
                    *at += 1;
                    several.current.store(*at, Ordering::Relaxed);
                    **pass = several.files[*at].sparse()?;
                }
                Ok(true)
            }
        }
    }
}
