//! How far a model is from the one that retraining gives: parameters, predictions, decisions.

use serde::Serialize;

use super::parameters::parameters;
use super::task::{Task, decided, read};
use crate::error::{Error, Result};
use crate::models::AnyModel;
use crate::rows::{RowStore, Rows};
use crate::traits::Predict;

/// The distance of a model to the retrained one, and of the model before to both.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Distance {
    /// ‖θ′ − θ^{\D}‖.
    pub l2: f64,
    /// ‖θ − θ^{\D}‖: how far the request had to go.
    pub l2_before: f64,
    /// The first as a share of the second: 0 is retraining, 1 is not having moved. None where there was nowhere to go.
    pub fraction: Option<f64>,
    /// ‖θ^{\D}‖, to judge the others by.
    pub norm: f64,
    /// The largest |score′ − score^{\D}| over the rows and outputs.
    pub largest_prediction_change: f64,
    /// The same before the request.
    pub largest_prediction_change_before: f64,
    /// The share of rows that both put into one class; None for regression.
    pub agreement: Option<f64>,
    /// The rows that were looked at.
    pub rows: usize,
}

/// Compares the model `after` a request, and the one `before` it, with the `retrained` one, on the parameters and on `rows`.
pub fn distance(
    before: &AnyModel,
    after: &AnyModel,
    retrained: &AnyModel,
    task: Task,
    rows: &Rows,
) -> Result<Distance> {
    if rows.is_empty() {
        return Err(Error::NoRows);
    }
    let (old, new, truth) = (parameters(before)?, parameters(after)?, parameters(retrained)?);
    for found in [old.len(), new.len()] {
        if found != truth.len() {
            return Err(Error::Shape { what: "parameters", found, expected: truth.len() });
        }
    }
    let (l2, l2_before) = (apart(&new, &truth), apart(&old, &truth));
    let table = rows.table();
    let (old, new, truth_scores) =
        (before.predict(&table)?, after.predict(&table)?, retrained.predict(&table)?);
    let (mut change, mut change_before, mut agree) = (0f64, 0f64, 0usize);
    let width = truth_scores.ncols();
    let (mut a, mut b) = (vec![0.0; width], vec![0.0; width]);
    for slot in 0..rows.len() {
        for output in 0..width {
            let truth = truth_scores[(slot, output)];
            change = change.max((new[(slot, output)] - truth).abs());
            change_before = change_before.max((old[(slot, output)] - truth).abs());
        }
        read(&new, slot, &mut a);
        read(&truth_scores, slot, &mut b);
        agree += usize::from(decided(&a) == decided(&b));
    }
    Ok(Distance {
        l2,
        l2_before,
        fraction: (l2_before > 0.0).then(|| l2 / l2_before),
        norm: truth.iter().map(|t| t * t).sum::<f64>().sqrt(),
        largest_prediction_change: change,
        largest_prediction_change_before: change_before,
        agreement: (task == Task::Classes).then(|| agree as f64 / rows.len() as f64),
        rows: rows.len(),
    })
}

fn apart(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}
