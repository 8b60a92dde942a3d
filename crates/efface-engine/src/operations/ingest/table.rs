//! Rows of a table. Columns are found by name, so that their order may change from file to file.

use std::collections::HashSet;

use efface::features::{Cell, ColumnBinding, Encoder, FeatureError, UnknownName};
use efface_io::TableRecord;

use super::labels::LabelReader;
use super::{EncodedExample, ExampleContent, ReadPurpose, ReadTicker};
use crate::codec::blueprint::{Blueprint, TargetGoal, finite, text};
use crate::error::{Error, Result};
use crate::operations::row_source::RowSource;
use crate::progress::Progress;

/// Where a column stands in this table.
pub(super) fn place(name: &str, columns: &[String]) -> Result<usize> {
    let missing = || FeatureError::MissingColumn {
        name: name.into(),
        exist: columns.to_vec(),
    };
    Ok(columns
        .iter()
        .position(|column| column == name)
        .ok_or_else(missing)?)
}

/// Where a column stands that the model may do without; None when the model has none.
fn find<'a>(name: &'a Option<String>, columns: &[String]) -> Result<Option<(usize, &'a str)>> {
    name.as_deref()
        .map(|name| Ok((place(name, columns)?, name)))
        .transpose()
}

/// Where everything but the features of a row stands.
pub(super) struct ColumnRoles<'a> {
    blueprint: &'a Blueprint,
    purpose: ReadPurpose,
    labels: LabelReader<'a>,
    id: Option<(usize, &'a str)>,
    subject: Option<(usize, &'a str)>,
    weight: Option<(usize, &'a str)>,
    targets: Vec<(usize, &'a str)>,
}

/// What a row says of itself beside its features and targets.
pub(super) struct RowIdentity {
    pub(super) id: Option<String>,
    pub(super) subject: Option<String>,
    pub(super) weight: f64,
    /// Whether its class is none that the model knows.
    pub(super) unknown_class: bool,
}

impl<'a> ColumnRoles<'a> {
    pub(super) fn find(
        blueprint: &'a Blueprint,
        columns: &[String],
        purpose: ReadPurpose,
    ) -> Result<Self> {
        let id = match find(&blueprint.id, columns) {
            Err(_) if !purpose.keeps_rows() => None,
            found => found?,
        };
        let mut subject = None;
        let mut weight = None;
        let mut targets = Vec::new();
        if purpose.keeps_rows() {
            subject = find(&blueprint.subject, columns)?;
            weight = find(&blueprint.weight, columns)?;
        } else if purpose == ReadPurpose::Evaluate {
            subject = find(&blueprint.subject, columns).unwrap_or_default();
        }
        // A file to score may have none of the targets, and then no row has any.
        if purpose != ReadPurpose::Predict
            || blueprint.targets.iter().all(|name| columns.contains(name))
        {
            for name in &blueprint.targets {
                targets.push((place(name, columns)?, name.as_str()));
            }
        }
        let labels = LabelReader::new(&blueprint.goal);
        Ok(Self {
            blueprint,
            purpose,
            labels,
            id,
            subject,
            weight,
            targets,
        })
    }

    /// Reads one row; `numbers` becomes its targets.
    pub(super) fn read(
        &self,
        cells: &[Cell],
        line: u64,
        numbers: &mut Vec<f64>,
    ) -> Result<RowIdentity> {
        let id = match self.id {
            Some((at, column)) => match text(&cells[at]) {
                None if self.purpose.keeps_rows() => {
                    let problem = "there is no id; every row needs one";
                    return Err(Error::Cell {
                        line,
                        column: column.into(),
                        problem,
                        hint: None,
                    });
                }
                id => id,
            },
            None => None,
        };
        let weight = match self.weight {
            Some((at, column)) => match finite(&cells[at], line, column, None)? {
                value if value < 0.0 => {
                    let problem = "a weight must be 0 or more";
                    return Err(Error::Cell {
                        line,
                        column: column.into(),
                        problem,
                        hint: None,
                    });
                }
                value => value,
            },
            None => 1.0,
        };
        numbers.clear();
        let unknown_class = self.read_targets(cells, line, numbers)?;
        if self.blueprint.goal == TargetGoal::Nothing && self.purpose.keeps_rows() {
            numbers.push(0.0);
        }
        let subject = self.subject.and_then(|(at, _)| text(&cells[at]));
        Ok(RowIdentity {
            id,
            subject,
            weight,
            unknown_class,
        })
    }

    /// Reads the targets of a row, and says whether its class is none that the model knows. Only a
    /// row that becomes part of a model must have a known class, and a row to predict may have no
    /// target at all.
    fn read_targets(&self, cells: &[Cell], line: u64, numbers: &mut Vec<f64>) -> Result<bool> {
        for &(at, column) in &self.targets {
            if !self.purpose.keeps_rows() && self.labels.is_unknown(&cells[at]) {
                numbers.clear();
                return Ok(true);
            }
            match self.labels.append(&cells[at], line, column, numbers) {
                Err(_) if self.purpose == ReadPurpose::Predict => {
                    numbers.clear();
                    return Ok(false);
                }
                appended => appended?,
            }
        }
        Ok(false)
    }
}

/// Turns the records of a table into examples.
pub(super) struct TableRowReader<'a> {
    binding: ColumnBinding<'a>,
    roles: ColumnRoles<'a>,
    entries: Vec<(u32, f64)>,
    numbers: Vec<f64>,
}

impl<'a> TableRowReader<'a> {
    pub(super) fn new(
        encoder: &'a Encoder,
        blueprint: &'a Blueprint,
        columns: &[String],
        purpose: ReadPurpose,
    ) -> Result<Self> {
        let binding = encoder.bind(columns)?;
        let roles = ColumnRoles::find(blueprint, columns, purpose)?;
        Ok(Self {
            binding,
            roles,
            entries: Vec::new(),
            numbers: Vec::new(),
        })
    }

    pub(super) fn read(
        &mut self,
        record: &TableRecord,
        position: u64,
    ) -> Result<EncodedExample<'_>> {
        let Self {
            binding,
            roles,
            entries,
            numbers,
        } = self;
        let line = record.line;
        // Rows that are kept are kept as they are; rows that are scored become features at once.
        let encoded = if !roles.purpose.keeps_rows() {
            binding.encode(&record.cells, line, entries)?
        } else {
            binding.encode_raw(&record.cells, line, entries)?
        };
        let RowIdentity {
            id,
            subject,
            weight,
            unknown_class,
        } = roles.read(&record.cells, line, numbers)?;
        Ok(EncodedExample {
            line,
            position,
            unknown_class,
            id,
            subject,
            weight,
            targets: numbers,
            content: ExampleContent::Entries(entries),
            unknown: encoded.unknown_levels + encoded.unknown_words,
            cut: false,
        })
    }
}

/// See [`super::each`].
pub(super) fn each(
    source: &RowSource,
    blueprint: &Blueprint,
    encoder: &Encoder,
    purpose: ReadPurpose,
    progress: &dyn Progress,
    see: &mut dyn FnMut(EncodedExample<'_>) -> Result<()>,
) -> Result<u64> {
    let mut table = source.table()?;
    table.read_dates(&blueprint.dates)?;
    let columns = table.columns().to_vec();
    let mut rows = TableRowReader::new(encoder, blueprint, &columns, purpose)?;
    let mut ticker = ReadTicker::start(progress, "encoding rows", source);
    let mut record = TableRecord::default();
    while table.read(&mut record)? {
        see(rows.read(&record, table.position())?)?;
        ticker.row();
    }
    Ok(ticker.finish())
}

/// See [`super::unknown_names`].
pub(super) fn unknown_names(
    source: &RowSource,
    encoder: &Encoder,
    progress: &dyn Progress,
) -> Result<HashSet<UnknownName>> {
    let mut table = source.table()?;
    let columns = table.columns().to_vec();
    let binding = encoder.bind(&columns)?;
    let mut ticker = ReadTicker::start(progress, "reading names", source);
    let mut record = TableRecord::default();
    let mut unknown = HashSet::new();
    while table.read(&mut record)? {
        unknown.extend(binding.unknown_names(&record.cells, record.line)?);
        ticker.row();
    }
    ticker.finish();
    Ok(unknown)
}
