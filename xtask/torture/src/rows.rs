//! Rows by the million, on standard output: `torture rows csv|parquet|classes ROWS COLUMNS`. The
//! last column is a target that follows from the others and from noise, or in CSV of classes the
//! sign of such a target; the numbers are the same every time.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use parquet::column::writer::ColumnWriter;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::Result;

/// Rows of a row group: small enough that the generator is, too.
const GROUP: usize = 1 << 16;

pub(crate) fn write(format: &str, rows: usize, columns: usize) -> Result {
    if columns < 2 {
        return Err("a table has a feature and a target: give 2 columns or more".into());
    }
    match format {
        "csv" => csv(rows, columns, false),
        "classes" => csv(rows, columns, true),
        "parquet" => parquet_rows(rows, columns),
        other => Err(format!(
            "there are no rows of the format {other}; csv, parquet and classes exist"
        )
        .into()),
    }
}

struct RowMaker(u64);

impl RowMaker {
    /// A number from −1 up to 1 (xorshift).
    fn number(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    /// Replaces `row` by the next one.
    fn fill(&mut self, row: &mut [f64]) {
        let Some((target, features)) = row.split_last_mut() else {
            return;
        };
        *target = 0.1 * self.number();
        for (column, value) in features.iter_mut().enumerate() {
            *value = self.number();
            *target += *value * ((column % 7) as f64 - 3.0);
        }
    }
}

fn name(column: usize, columns: usize) -> String {
    if column + 1 == columns {
        "y".into()
    } else {
        format!("x{column}")
    }
}

fn csv(rows: usize, columns: usize, classes: bool) -> Result {
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let names: Vec<String> = (0..columns).map(|column| name(column, columns)).collect();
    writeln!(out, "{}", names.join(","))?;
    let mut maker = RowMaker(88_172_645_463_325_252);
    let mut row = vec![0.0; columns];
    for _ in 0..rows {
        maker.fill(&mut row);
        for (column, value) in row.iter().enumerate() {
            let separator = if column == 0 { "" } else { "," };
            if classes && column + 1 == columns {
                // Noise as large as the sum, so that no plane tells the classes apart.
                let class = if value + 2.0 * maker.number() * (columns as f64).sqrt() > 0.0 {
                    "b"
                } else {
                    "a"
                };
                write!(out, "{separator}{class}")?;
            } else {
                write!(out, "{separator}{value:.7}")?;
            }
        }
        writeln!(out)?;
    }
    Ok(out.flush()?)
}

fn parquet_rows(rows: usize, columns: usize) -> Result {
    let fields: String = (0..columns)
        .map(|column| format!("required double {};", name(column, columns)))
        .collect();
    let schema = Arc::new(parse_message_type(&format!("message rows {{ {fields} }}"))?);
    // Random numbers repeat so seldom that a dictionary of them only takes time.
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .build();
    let out = BufWriter::with_capacity(1 << 20, io::stdout());
    let mut writer = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
    let mut maker = RowMaker(88_172_645_463_325_252);
    let mut row = vec![0.0; columns];
    for start in (0..rows).step_by(GROUP) {
        let count = GROUP.min(rows - start);
        let mut table = vec![Vec::with_capacity(count); columns];
        for _ in 0..count {
            maker.fill(&mut row);
            table
                .iter_mut()
                .zip(&row)
                .for_each(|(column, value)| column.push(*value));
        }
        let mut group = writer.next_row_group()?;
        for values in &table {
            let Some(mut chunk) = group.next_column()? else {
                return Err("a column is missing".into());
            };
            let ColumnWriter::DoubleColumnWriter(column) = chunk.untyped() else {
                return Err("a column is not of numbers".into());
            };
            column.write_batch(values, None, None)?;
            chunk.close()?;
        }
        group.close()?;
    }
    writer.into_inner()?.flush()?;
    Ok(())
}
