//! An encoder applied to another table than the one it was built on: columns are found by name, so
//! that their order may differ and columns that the encoder does not use may come and go.

use std::collections::HashMap;

use super::bound_row::{BoundRow, UnknownName};
use super::{Cell, Encoder, EncodingGaps, FeatureError};

/// The places of an encoder's columns in one table.
#[derive(Debug, Clone)]
pub struct ColumnBinding<'a> {
    encoder: &'a Encoder,
    positions: Vec<usize>,
    table_width: usize,
}

impl Encoder {
    /// Finds the columns by name in a table of another shape. Columns that the encoder does not
    /// know are ignored.
    pub fn bind(&self, columns: &[String]) -> Result<ColumnBinding<'_>, FeatureError> {
        ColumnBinding::new(self, columns)
    }

    /// Rows whose cells are in the order of the table that the encoder was built on.
    pub fn bind_own(&self) -> ColumnBinding<'_> {
        let positions = self.columns.iter().map(|column| column.position).collect();
        ColumnBinding {
            encoder: self,
            positions,
            table_width: self.table_width,
        }
    }

    /// Rows whose cells are in the order of [`columns`](Self::columns), and no others.
    pub fn bind_in_order(&self) -> ColumnBinding<'_> {
        let positions: Vec<usize> = (0..self.columns.len()).collect();
        ColumnBinding {
            encoder: self,
            table_width: positions.len(),
            positions,
        }
    }
}

impl<'a> ColumnBinding<'a> {
    pub(crate) fn new(encoder: &'a Encoder, columns: &[String]) -> Result<Self, FeatureError> {
        let mut places: HashMap<&str, Option<usize>> = HashMap::with_capacity(columns.len());
        for (at, name) in columns.iter().enumerate() {
            // A name that occurs twice only matters when the encoder asks for it.
            places
                .entry(name)
                .and_modify(|place| *place = None)
                .or_insert(Some(at));
        }
        let place = |name: &str| match places.get(name) {
            Some(&Some(at)) => Ok(at),
            Some(None) => Err(FeatureError::DuplicateColumn { name: name.into() }),
            None => Err(FeatureError::MissingColumn {
                name: name.into(),
                exist: columns.to_vec(),
            }),
        };
        let positions = encoder
            .columns()
            .iter()
            .map(|column| place(column.name()))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            encoder,
            positions,
            table_width: columns.len(),
        })
    }

    /// Replaces `out` by the features of one row: sorted by feature, each once, zeros left out.
    pub fn encode(
        &self,
        cells: &[Cell],
        line: u64,
        out: &mut Vec<(u32, f64)>,
    ) -> Result<EncodingGaps, FeatureError> {
        self.encoder.encode_bound(self.row(cells, line), out)
    }

    /// Replaces `out` by the raw form of one row, sorted by place, each once, zeros left out.
    pub fn encode_raw(
        &self,
        cells: &[Cell],
        line: u64,
        out: &mut Vec<(u32, f64)>,
    ) -> Result<EncodingGaps, FeatureError> {
        self.encoder.encode_raw_bound(self.row(cells, line), out)
    }

    fn row<'b>(&'b self, cells: &'b [Cell], line: u64) -> BoundRow<'b> {
        BoundRow {
            cells,
            positions: &self.positions,
            table_width: self.table_width,
            line,
        }
    }

    /// The names in a row of the bound table that the encoder does not know yet, and what columns
    /// they are of.
    pub fn unknown_names(
        &self,
        cells: &[Cell],
        line: u64,
    ) -> Result<Vec<UnknownName>, FeatureError> {
        self.encoder.unknown_names(self.row(cells, line))
    }
}
