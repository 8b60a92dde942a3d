//! Passes over rows of a source: row by row, or block by block.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use efface::features::{Cell, FeatureError};
use efface_io::{
    BlockPass, ReadFault, Source, SparseRecord, TableBlock, TableBlocks, TableRecord,
    days_since_1970,
};

use super::row_choice::BoundChoice;
use crate::error::{Error, Result};

/// Files that are read as one table. Positions go on from file to file, lines begin anew in each.
#[derive(Debug, Clone)]
pub struct SeveralFiles {
    pub(super) files: Arc<[Source]>,
    /// The file that the latest pass has come to, for errors that know only a line.
    pub(super) current: Arc<AtomicUsize>,
}

/// A target, and entries of an index and a value.
pub(super) type SparseRow = (f64, Vec<(u32, f64)>);

/// A pass over rows of cells.
pub(super) struct TablePass {
    rows: TableRows,
    choices: Vec<BoundChoice>,
    /// Columns whose dates become days, and where they stand.
    dates: Vec<(usize, String)>,
    /// Rows read so far, those that no choice keeps included.
    passed: u64,
}

pub(super) enum TableRows {
    File(Box<efface_io::RecordPass>),
    Memory {
        columns: Arc<[String]>,
        rows: Arc<[Vec<Cell>]>,
        next: usize,
    },
    Files(FilePass),
    Block(BlockRows),
}

impl TablePass {
    pub(super) fn new(rows: TableRows) -> Self {
        Self {
            rows,
            choices: Vec::new(),
            dates: Vec::new(),
            passed: 0,
        }
    }

    /// Leaves out rows that a choice does not keep.
    pub(super) fn choose(&mut self, choice: BoundChoice) {
        self.choices.push(choice);
    }

    /// Rows read so far, those that no choice keeps included.
    pub(super) fn passed(&self) -> u64 {
        self.passed
    }

    pub(super) fn columns(&self) -> &[String] {
        match &self.rows {
            TableRows::File(table) => table.columns(),
            TableRows::Memory { columns, .. } => columns,
            TableRows::Files(files) => &files.columns,
            TableRows::Block(block) => &block.columns,
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
            if self
                .choices
                .iter()
                .all(|choice| choice.keeps(&record.cells, position))
            {
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
                return Err(FeatureError::UnknownColumn {
                    name: name.clone(),
                    exist,
                }
                .into());
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
                hint: Some(
                    "write dates as 2026-03-02, 2026-03-02 09:15 or 2026-03-02T09:15:30Z".into(),
                ),
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
            Self::Memory { rows, next, .. } => {
                let Some(cells) = rows.get(*next) else {
                    return Ok(false);
                };
                *next += 1;
                record.line = *next as u64;
                record.cells.clone_from(cells);
                Ok(true)
            }
            Self::Files(files) => files.read(record),
            Self::Block(block) => block.read(record),
        }
    }
}

/// A pass over several files.
pub(super) struct FilePass {
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
    pub(super) fn open(several: &SeveralFiles) -> Result<Self> {
        several.current.store(0, Ordering::Relaxed);
        let pass = Box::new(several.files[0].table()?);
        let columns = pass.columns().to_vec();
        let places = (0..columns.len()).collect();
        let scratch = TableRecord::default();
        Ok(Self {
            several: several.clone(),
            at: 0,
            pass,
            columns,
            places,
            scratch,
        })
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
        record.cells.extend(
            self.places
                .iter()
                .map(|&place| self.scratch.cells[place].clone()),
        );
        Ok(true)
    }

    /// Begins the next file, whose columns may stand in another order.
    fn begin(&mut self) -> Result<()> {
        let file = &self.several.files[self.at];
        *self.pass = file.table()?;
        self.places = places(
            &self.columns,
            self.several.files[0].path(),
            self.pass.columns(),
            file.path(),
        )?;
        Ok(())
    }
}

/// Where the columns of the first of several files stand in another of them.
fn places(columns: &[String], first: &Path, found: &[String], file: &Path) -> Result<Vec<usize>> {
    let absent = |names: &[String], among: &[String]| -> Vec<String> {
        names
            .iter()
            .filter(|name| !among.contains(name))
            .cloned()
            .collect()
    };
    let missing = absent(columns, found);
    let more = absent(found, columns);
    if !missing.is_empty() || !more.is_empty() {
        let fault = Box::new(ReadFault::OtherColumns {
            first: first.to_owned(),
            missing,
            more,
        });
        return Err(efface_io::Error {
            file: file.to_owned(),
            fault,
        }
        .into());
    }
    Ok(columns
        .iter()
        .filter_map(|name| found.iter().position(|other| other == name))
        .collect())
}

/// Cuts the files of a source into blocks, one after the other.
pub(super) struct SourceBlocks {
    files: Vec<Source>,
    at: usize,
    bytes: usize,
    blocks: TableBlocks,
    /// The columns of the first file.
    columns: Arc<[String]>,
    /// Where each of them stands in this file; None where all stand as in the first.
    places: Option<Arc<[usize]>>,
}

/// A block of one of the files of a source.
pub(super) struct SourceBlock {
    block: TableBlock,
    columns: Arc<[String]>,
    places: Option<Arc<[usize]>>,
    /// The number of the file.
    pub(super) file: usize,
}

impl SourceBlocks {
    pub(super) fn open(files: &[Source], bytes: usize) -> Result<Self> {
        let blocks = files[0].blocks(bytes)?;
        let columns = blocks.columns().into();
        Ok(Self {
            files: files.to_vec(),
            at: 0,
            bytes,
            blocks,
            columns,
            places: None,
        })
    }

    pub(super) fn columns(&self) -> &[String] {
        &self.columns
    }

    pub(super) fn next(&mut self) -> Result<Option<SourceBlock>> {
        loop {
            if let Some(block) = self.blocks.next_block()? {
                let columns = Arc::clone(&self.columns);
                return Ok(Some(SourceBlock {
                    block,
                    columns,
                    places: self.places.clone(),
                    file: self.at,
                }));
            }
            let Some(file) = self.files.get(self.at + 1) else {
                return Ok(None);
            };
            self.at += 1;
            self.blocks = file.blocks(self.bytes)?;
            let places = places(
                &self.columns,
                self.files[0].path(),
                self.blocks.columns(),
                file.path(),
            )?;
            self.places = (!places.is_sorted()).then(|| places.into());
        }
    }
}

impl SourceBlock {
    /// A pass over the rows of the block. Positions count from its beginning.
    pub(super) fn pass(self) -> TablePass {
        let rows = BlockRows {
            pass: self.block.rows(),
            columns: self.columns,
            places: self.places,
            scratch: TableRecord::default(),
        };
        TablePass::new(TableRows::Block(rows))
    }
}

/// The rows of a block, with their cells in the order of the first file.
pub(super) struct BlockRows {
    pass: BlockPass,
    columns: Arc<[String]>,
    places: Option<Arc<[usize]>>,
    scratch: TableRecord,
}

impl BlockRows {
    fn read(&mut self, record: &mut TableRecord) -> Result<bool> {
        let Some(places) = &self.places else {
            return Ok(self.pass.read(record)?);
        };
        if !self.pass.read(&mut self.scratch)? {
            return Ok(false);
        }
        record.line = self.scratch.line;
        record.cells.clear();
        record.cells.extend(
            places
                .iter()
                .map(|&place| self.scratch.cells[place].clone()),
        );
        Ok(true)
    }
}

/// A pass over sparse rows.
pub(super) struct SparsePass {
    rows: SparseInput,
    choices: Vec<BoundChoice>,
    /// Rows read so far, those that no choice keeps included.
    passed: u64,
}

pub(super) enum SparseInput {
    File(Box<efface_io::SparseTable>),
    Memory {
        rows: Arc<[SparseRow]>,
        next: usize,
    },
    Files {
        several: SeveralFiles,
        at: usize,
        pass: Box<efface_io::SparseTable>,
    },
}

impl SparsePass {
    pub(super) fn new(rows: SparseInput) -> Self {
        Self {
            rows,
            choices: Vec::new(),
            passed: 0,
        }
    }

    /// Leaves out rows that a choice does not keep.
    pub(super) fn choose(&mut self, choice: BoundChoice) {
        self.choices.push(choice);
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
            if self
                .choices
                .iter()
                .all(|choice| choice.keeps(&[], position))
            {
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
                let Some((target, entries)) = rows.get(*next) else {
                    return Ok(false);
                };
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
