//! How far a model is from the one that retraining gives: parameters, predictions, decisions.

use faer::Mat;
use serde::Serialize;

use super::centres::{centres_in_order, cluster_order, scores_of_clusters};
use super::parameters::parameters;
use super::task::{Task, decided, read};
use crate::error::{Error, Result};
use crate::family::Family;
use crate::models::Model;
use crate::rows::{RowStore, Rows};
use crate::traits::Predict;

/// The distance of a model to the retrained one, and of the model before to both. The centres of
/// k-means are matched first.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Distance {
    /// ‖θ′ − θ^{\D}‖; None for a model in shards, which has no parameters of its own.
    pub l2: Option<f64>,
    /// ‖θ − θ^{\D}‖: how far the request had to go.
    pub l2_before: Option<f64>,
    /// The first as a share of the second: 0 is retraining, 1 is not having moved. None where there
    /// was nowhere to go.
    pub fraction: Option<f64>,
    /// ‖θ^{\D}‖, the length that the distances are compared with.
    pub norm: Option<f64>,
    /// The largest |score′ − score^{\D}| over the rows and outputs; of k-means, the scores are the
    /// distances to the centres.
    pub largest_prediction_change: f64,
    /// The largest |score − score^{\D}| of the model before the request.
    pub largest_prediction_change_before: f64,
    /// The share of rows that both put into one class or cluster; None for regression.
    pub agreement: Option<f64>,
    /// The rows that were looked at.
    pub rows: usize,
}

/// A model as two lists of numbers.
struct ComparedModel {
    parameters: Option<Vec<f64>>,
    scores: Mat<f64>,
}

impl ComparedModel {
    /// Reads a model in the order of the clusters of `truth`, if it has clusters.
    fn new(model: &Model, truth: &Model, rows: &Rows) -> Result<Self> {
        let scores = model.predict(&rows.table())?;
        if let (Some(clusters), Some(order)) = (model.get(), cluster_order(model, truth)) {
            let parameters = Some(centres_in_order(clusters, &order));
            return Ok(Self {
                parameters,
                scores: scores_of_clusters(&scores, &order),
            });
        }
        let has_parameters = model.family() != Family::Sisa;
        let parameters = has_parameters.then(|| parameters(model)).transpose()?;
        Ok(Self { parameters, scores })
    }
}

/// Compares the model `after` a request, and the one `before` it, with the `retrained` one, on the
/// parameters and on `rows`.
pub fn distance(
    before: &Model,
    after: &Model,
    retrained: &Model,
    task: Task,
    rows: &Rows,
) -> Result<Distance> {
    if rows.is_empty() {
        return Err(Error::NoRows);
    }
    let old = ComparedModel::new(before, retrained, rows)?;
    let new = ComparedModel::new(after, retrained, rows)?;
    let truth = ComparedModel::new(retrained, retrained, rows)?;
    let l2 = apart(&new.parameters, &truth.parameters)?;
    let l2_before = apart(&old.parameters, &truth.parameters)?;
    let width = truth.scores.ncols();
    for found in [old.scores.ncols(), new.scores.ncols()] {
        if found != width {
            return Err(Error::Shape {
                what: "scores",
                found,
                expected: width,
            });
        }
    }
    let mut change = 0f64;
    let mut change_before = 0f64;
    let mut agree = 0usize;
    let mut own_line = vec![0.0; width];
    let mut true_line = vec![0.0; width];
    for slot in 0..rows.len() {
        for output in 0..width {
            let score = truth.scores[(slot, output)];
            change = change.max((new.scores[(slot, output)] - score).abs());
            change_before = change_before.max((old.scores[(slot, output)] - score).abs());
        }
        read(&new.scores, slot, &mut own_line);
        read(&truth.scores, slot, &mut true_line);
        agree += usize::from(decided(&own_line) == decided(&true_line));
    }
    Ok(Distance {
        l2,
        l2_before,
        fraction: l2
            .zip(l2_before)
            .filter(|(_, before)| *before > 0.0)
            .map(|(after, before)| after / before),
        norm: truth
            .parameters
            .as_ref()
            .map(|truth| truth.iter().map(|t| t * t).sum::<f64>().sqrt()),
        largest_prediction_change: change,
        largest_prediction_change_before: change_before,
        agreement: (task != Task::Regression).then(|| agree as f64 / rows.len() as f64),
        rows: rows.len(),
    })
}

fn apart(a: &Option<Vec<f64>>, b: &Option<Vec<f64>>) -> Result<Option<f64>> {
    let (Some(a), Some(b)) = (a, b) else {
        return Ok(None);
    };
    if a.len() != b.len() {
        return Err(Error::Shape {
            what: "parameters",
            found: a.len(),
            expected: b.len(),
        });
    }
    Ok(Some(
        a.iter()
            .zip(b)
            .map(|(a, b)| (a - b).powi(2))
            .sum::<f64>()
            .sqrt(),
    ))
}
