//! Rows of a table. Columns are found by name, so that their order may change from file to file.

use efface::features::{Encoder, FeatureError};
use efface_io::{Record, Source};

use super::labels::Labels;
use super::{Example, Purpose, Ticker};
use crate::blueprint::{Blueprint, Goal, finite, text};
use crate::error::{Error, Result};
use crate::request::Progress;

/// Where a column stands in this table.
pub(super) fn place(name: &str, columns: &[String]) -> Result<usize> {
    let missing = || FeatureError::MissingColumn { name: name.into(), exist: columns.to_vec() };
    Ok(columns.iter().position(|column| column == name).ok_or_else(missing)?)
}

/// The same for a column that the model may do without.
fn find<'a>(name: &'a Option<String>, columns: &[String]) -> Result<Option<(usize, &'a str)>> {
    name.as_deref().map(|name| Ok((place(name, columns)?, name))).transpose()
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
    let id = match find(&blueprint.id, &columns) {
        Err(_) if purpose == Purpose::Predict => None,
        found => found?,
    };
    let (mut subject, mut weight, mut targets) = (None, None, Vec::new());
    if purpose != Purpose::Predict {
        (subject, weight) = (find(&blueprint.subject, &columns)?, find(&blueprint.weight, &columns)?);
        for name in &blueprint.targets {
            targets.push((place(name, &columns)?, name.as_str()));
        }
    }
    let labels = Labels::new(&blueprint.goal);
    let mut ticker = Ticker::start(progress, "encoding rows", source);
    let (mut record, mut entries, mut numbers) = (Record::default(), Vec::new(), Vec::new());
    while table.read(&mut record)? {
        let (line, cells) = (record.line, &record.cells);
        let encoded = binding.encode(cells, line, &mut entries)?;
        let id = match id {
            Some((at, column)) => match text(&cells[at]) {
                None if purpose != Purpose::Predict => {
                    let problem = "there is no id; every row needs one";
                    return Err(Error::Cell { line, column: column.into(), problem, hint: None });
                }
                id => id,
            },
            None => None,
        };
        let weight = match weight {
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
        for &(at, column) in &targets {
            labels.append(&cells[at], line, column, &mut numbers)?;
        }
        if blueprint.goal == Goal::Nothing && purpose != Purpose::Predict {
            numbers.push(0.0);
        }
        let subject = subject.and_then(|(at, _)| text(&cells[at]));
        see(Example {
            line,
            id,
            subject,
            weight,
            targets: &numbers,
            entries: &entries,
            unknown: encoded.unknown_levels + encoded.unknown_words,
        })?;
        ticker.row();
    }
    Ok(ticker.finish())
}
