//! How far a model is from the one that retraining gives: parameters, predictions, decisions.

use faer::Mat;
use serde::Serialize;

use super::centres::{centres_in_order, cluster_order, cluster_order_by_rows, scores_of_clusters};
use super::parameters::{NamedNumbers, named_numbers};
use super::task::{Task, decided, read};
use super::view::ModelView;
use crate::error::{Error, Result};
use crate::family::Family;
use crate::models::Model;
use crate::rows::{RowStore, Rows};
use crate::traits::Predict;

/// The distance of a model to the retrained one, and of the model before to both. The centres of
/// k-means are matched first.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Distance {
    /// ‖θ′ − θ^{\D}‖; None for a model in shards, which has no parameters of its own, and where
    /// the two read features of their own and have clusters, or probabilities of features that the
    /// other does not read.
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
    parameters: Option<NamedNumbers>,
    scores: Mat<f64>,
}

impl ComparedModel {
    /// Reads a model in the order of the clusters of `truth`, if it has clusters.
    fn new(view: ModelView<'_>, truth: ModelView<'_>) -> Result<Self> {
        let model = view.model;
        let scores = model.predict(&view.rows.table())?;
        if model.family() == Family::KMeans && view.names.is_some() {
            let true_scores = truth.model.predict(&truth.rows.table())?;
            let order = cluster_order_by_rows(&scores, &true_scores);
            return Ok(Self {
                parameters: None,
                scores: scores_of_clusters(&scores, &order),
            });
        }
        if let (Some(clusters), Some(order)) = (model.get(), cluster_order(model, truth.model)) {
            let centres = NamedNumbers::InOrder(centres_in_order(clusters, &order));
            return Ok(Self {
                parameters: Some(centres),
                scores: scores_of_clusters(&scores, &order),
            });
        }
        let has_parameters = model.family() != Family::Sisa;
        let parameters = has_parameters
            .then(|| named_numbers(model, view.names))
            .transpose()?;
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
    let [before, after, retrained] =
        [before, after, retrained].map(|model| ModelView::new(model, rows));
    distance_of_views(before, after, retrained, task)
}

/// The same for models that read features of their own. Parameters are compared as the models have
/// them, feature by feature under their names; a linear model has the weight 0 on a feature that it
/// does not read. The views show the same rows in the same order.
pub fn distance_of_views(
    before: ModelView<'_>,
    after: ModelView<'_>,
    retrained: ModelView<'_>,
    task: Task,
) -> Result<Distance> {
    let rows = retrained.rows;
    if rows.is_empty() {
        return Err(Error::NoRows);
    }
    for found in [before.rows.len(), after.rows.len()] {
        if found != rows.len() {
            return Err(Error::Shape {
                what: "rows",
                found,
                expected: rows.len(),
            });
        }
    }
    let old = ComparedModel::new(before, retrained)?;
    let new = ComparedModel::new(after, retrained)?;
    let truth = ComparedModel::new(retrained, retrained)?;
    let apart = |model: &ComparedModel| match (&model.parameters, &truth.parameters) {
        (Some(own), Some(truth)) => own.distance(truth),
        _ => Ok(None),
    };
    let l2 = apart(&new)?;
    let l2_before = apart(&old)?;
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
        norm: truth.parameters.as_ref().map(NamedNumbers::norm),
        largest_prediction_change: change,
        largest_prediction_change_before: change_before,
        agreement: (task != Task::Regression).then(|| agree as f64 / rows.len() as f64),
        rows: rows.len(),
    })
}
