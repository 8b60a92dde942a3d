//! The function and what a partition keeps while it reads.

use std::mem::size_of;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryArray, Float64Array};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::{DataFusionError, Result, ScalarValue};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};
use efface::{ColumnView, LinearStatistics, StatisticsSpec};

use crate::frame;

/// Sums of the columns of a specification.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct FitAggregate {
    name: String,
    signature: Signature,
    /// The sums of no rows, as bytes: what is summed is in them.
    empty: Vec<u8>,
}

impl FitAggregate {
    pub(crate) fn new(name: &str, spec: &StatisticsSpec) -> Self {
        let columns = vec![DataType::Float64; spec.width()];
        Self {
            name: name.into(),
            signature: Signature::exact(columns, Volatility::Immutable),
            empty: LinearStatistics::new(spec.clone()).to_bytes(),
        }
    }
}

impl AggregateUDFImpl for FitAggregate {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Binary)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct {
            return Err(DataFusionError::Plan(format!(
                "{} counts every row; leave out DISTINCT",
                self.name
            )));
        }
        Ok(Box::new(PartitionSums {
            sums: LinearStatistics::from_bytes(&self.empty).map_err(told)?,
        }))
    }

    fn state_fields(&self, _: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new("sums", DataType::Binary, true))])
    }
}

/// The sums of the rows that a partition has read.
#[derive(Debug)]
struct PartitionSums {
    sums: LinearStatistics,
}

impl Accumulator for PartitionSums {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let spec = self.sums.spec();
        let targets = spec.targets().len();
        let mut columns = Vec::with_capacity(values.len());
        for (at, name) in spec.targets().iter().chain(spec.features()).enumerate() {
            let column = values
                .get(at)
                .and_then(|column| column.as_any().downcast_ref::<Float64Array>());
            let column = column
                .ok_or_else(|| refused(format!("column {name:?} is missing or no number")))?;
            if column.null_count() > 0 {
                let missing = column.null_count();
                return Err(refused(format!(
                    "column {name:?} has {missing} missing values; fill them, or leave those rows out"
                )));
            }
            columns.push(ColumnView::dense(column.values()));
        }
        // The function takes targets first, as a formula is written; sums have features first.
        columns.rotate_left(targets);
        self.sums.update(&columns, None).map_err(told)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let parts = states
            .first()
            .and_then(|column| column.as_any().downcast_ref::<BinaryArray>());
        let parts = parts.ok_or_else(|| refused("the sums of a partition are no bytes".into()))?;
        for part in parts.iter().flatten() {
            self.sums
                .merge(&LinearStatistics::from_bytes(part).map_err(told)?)
                .map_err(told)?;
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Binary(Some(self.sums.to_bytes()))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Binary(Some(frame::closed(
            &self.sums.to_bytes(),
        ))))
    }

    fn size(&self) -> usize {
        // The products of all columns with each other, sixteen bytes each.
        let width = self.sums.spec().width() + 1;
        size_of::<Self>() + 16 * width * width
    }
}

fn told(error: efface::Error) -> DataFusionError {
    refused(error.to_string())
}

fn refused(reason: String) -> DataFusionError {
    DataFusionError::Execution(reason)
}
