//! Rows of an svmlight file: features are the indices as written, less the first one.

use efface::features::Cell;
use efface_io::SparseRecord;

use super::labels::LabelReader;
use super::{EncodedExample, ExampleContent, ReadPurpose, ReadTicker};
use crate::codec::blueprint::{Blueprint, LABEL};
use crate::error::{Error, Result};
use crate::operations::row_source::RowSource;
use crate::progress::Progress;

/// See [`super::each`].
pub(super) fn each(
    source: &RowSource,
    blueprint: &Blueprint,
    purpose: ReadPurpose,
    progress: &dyn Progress,
    see: &mut dyn FnMut(EncodedExample<'_>) -> Result<()>,
) -> Result<u64> {
    let mut table = source.sparse()?;
    let labels = LabelReader::new(&blueprint.goal);
    let first = blueprint.first_index.unwrap_or(0);
    let mut ticker = ReadTicker::start(progress, "encoding rows", source);
    let mut record = SparseRecord::default();
    let mut numbers = Vec::new();
    let mut entries: Vec<(u32, f64)> = Vec::new();
    while table.read(&mut record)? {
        let line = record.line;
        entries.clear();
        let mut unknown = 0;
        for &(index, value) in &record.entries {
            let Some(column) = index.checked_sub(first) else {
                let problem = "index 0 in a file for a model whose indices count from 1".into();
                return Err(Error::Line {
                    line,
                    problem,
                    hint: Some("add 1 to every index of the file".into()),
                });
            };
            if column as usize >= blueprint.width {
                // A score does without features that the model does not know, as it does without
                // unknown words.
                if !purpose.keeps_rows() {
                    unknown += 1;
                    continue;
                }
                let last = u64::from(first) + blueprint.width as u64 - 1;
                let problem =
                    format!("an index exceeds {last}, the largest that the model was fitted on");
                return Err(Error::Line {
                    line,
                    problem,
                    hint: Some("leave the index out, or fit again".into()),
                });
            }
            if !value.is_finite() {
                let problem = "a value is not a finite number".into();
                return Err(Error::Line {
                    line,
                    problem,
                    hint: None,
                });
            }
            if value != 0.0 {
                entries.push((column, value));
            }
        }
        numbers.clear();
        // The label of a line to predict is often no more than a filler, which nothing tells from a
        // target.
        let mut unknown_class = false;
        if purpose == ReadPurpose::Evaluate && labels.is_unknown(&Cell::Number(record.target)) {
            unknown_class = true;
        } else if purpose != ReadPurpose::Predict {
            labels.append(&Cell::Number(record.target), line, LABEL, &mut numbers)?;
        }
        see(EncodedExample {
            line,
            position: table.position(),
            unknown_class,
            id: None,
            subject: None,
            weight: 1.0,
            targets: &numbers,
            content: ExampleContent::Entries(&entries),
            unknown,
            cut: false,
        })?;
        ticker.row();
    }
    Ok(ticker.finish())
}
