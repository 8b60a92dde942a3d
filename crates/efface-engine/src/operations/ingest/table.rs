//! Rows of a table. Columns are found by name, so that their order may change from file to file.

use efface::features::{Cell, Encoder, FeatureError};
use efface_io::{Record, Source};

use super::labels::Labels;
use super::{Example, Purpose, Ticker};
use crate::codec::blueprint::{Blueprint, Goal, finite, text};
use crate::error::{Error, Result};
use crate::progress::Progress;

/// Where a column stands in this table.
pub(super) fn place(name: &str, columns: &[String]) -> Result<usize> {
    let missing = || FeatureError::MissingColumn { name: name.into(), exist: columns.to_vec() };
    Ok(columns.iter().position(|column| column == name).ok_or_else(missing)?)
}

/// The same for a column that the model may do without.
fn find<'a>(name: &'a Option<String>, columns: &[String]) -> Result<Option<(usize, &'a str)>> {
    name.as_deref().map(|name| Ok((place(name, columns)?, name))).transpose()
}

/// Where everything but the features of a row stands.
pub(super) struct Roles<'a> {
    blueprint: &'a Blueprint,
    purpose: Purpose,
    labels: Labels<'a>,
    id: Option<(usize, &'a str)>,
    subject: Option<(usize, &'a str)>,
    weight: Option<(usize, &'a str)>,
    targets: Vec<(usize, &'a str)>,
}

/// What a row says of itself beside its features and targets.
pub(super) struct Told {
    pub(super) id: Option<String>,
    pub(super) subject: Option<String>,
    pub(super) weight: f64,
}

impl<'a> Roles<'a> {
    pub(super) fn find(blueprint: &'a Blueprint, columns: &[String], purpose: Purpose) -> Result<Self> {
        let id = match find(&blueprint.id, columns) {
            Err(_) if purpose == Purpose::Predict => None,
            found => found?,
        };
        let (mut subject, mut weight, mut targets) = (None, None, Vec::new());
        if purpose != Purpose::Predict {
            (subject, weight) = (find(&blueprint.subject, columns)?, find(&blueprint.weight, columns)?);
            for name in &blueprint.targets {
                targets.push((place(name, columns)?, name.as_str()));
            }
        }
        let labels = Labels::new(&blueprint.goal);
        Ok(Self { blueprint, purpose, labels, id, subject, weight, targets })
    }

    /// Reads one row; `numbers` becomes its targets.
    pub(super) fn read(&self, cells: &[Cell], line: u64, numbers: &mut Vec<f64>) -> Result<Told> {
        let id = match self.id {
            Some((at, column)) => match text(&cells[at]) {
                None if self.purpose != Purpose::Predict => {
                    let problem = "there is no id; every row needs one";
                    return Err(Error::Cell { line, column: column.into(), problem, hint: None });
                }
                id => id,
            },
            None => None,
        };
        let weight = match self.weight {
            Some((at, column)) => match finite(&cells[at], line, column, None)? {
                value if value < 0.0 => {
                    let problem = "a weight must be 0 or more";
                    return Err(Error::Cell { line, column: column.into(), problem, hint: None });
                }
                value => value,
            },
            None => 1.0,
        };
        numbers.clear();
        for &(at, column) in &self.targets {
            self.labels.append(&cells[at], line, column, numbers)?;
        }
        if self.blueprint.goal == Goal::Nothing && self.purpose != Purpose::Predict {
            numbers.push(0.0);
        }
        let subject = self.subject.and_then(|(at, _)| text(&cells[at]));
        Ok(Told { id, subject, weight })
    }
}

/// See [`super::each`].
pub(super) fn each(
    source: &Source,
    blueprint: &Blueprint,
    encoder: &Encoder,
    purpose: Purpose,
    progress: &dyn Progress,
    see: &mut dyn FnMut(Example<'_>) -> Result<()>,
) -> Result<u64> {
    let mut table = source.table()?;
    let columns = table.columns().to_vec();
    let binding = encoder.bind(&columns)?;
    let roles = Roles::find(blueprint, &columns, purpose)?;
    let mut ticker = Ticker::start(progress, "encoding rows", source);
    let (mut record, mut entries, mut numbers) = (Record::default(), Vec::new(), Vec::new());
    while table.read(&mut record)? {
        let line = record.line;
        let encoded = binding.encode(&record.cells, line, &mut entries)?;
        let Told { id, subject, weight } = roles.read(&record.cells, line, &mut numbers)?;
        see(Example {
            line,
            id,
            subject,
            weight,
            targets: &numbers,
            entries: &entries,
            unknown: encoded.unknown_levels + encoded.unknown_words,
            cut: false,
        })?;
        ticker.row();
    }
    Ok(ticker.finish())
}
