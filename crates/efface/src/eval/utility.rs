//! How good a model is: accuracy, RMSE, log-loss. What a method costs the people who stay.

use serde::Serialize;

use super::task::{Task, has_log_loss, judge};
use crate::error::Result;
use crate::models::Model;
use crate::rows::{RowStore, Rows};

/// How a model does on some rows. Weights of rows are not used: every row counts once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Utility {
    /// Rows looked at.
    pub rows: usize,
    /// The share of rows put into their own class; None for regression and clusters.
    pub accuracy: Option<f64>,
    /// √ of the mean ‖score − y‖² over rows and outputs, or of the mean ‖x − c‖² to the nearest
    /// centre; None for models whose scores are neither targets nor distances.
    pub rmse: Option<f64>,
    /// The mean −log p_y in nats; None for ridge, k-means and votes, which have no probabilities.
    pub log_loss: Option<f64>,
}

/// Looks at a model on rows.
pub fn utility(model: &Model, task: Task, rows: &Rows) -> Result<Utility> {
    let judged = judge(model, task, rows)?;
    let n = judged.len() as f64;
    let correct: Option<Vec<bool>> = judged.iter().map(|row| row.correct).collect();
    let squares: Option<Vec<f64>> = judged.iter().map(|row| row.squared_error).collect();
    let log_loss =
        has_log_loss(model, task).then(|| judged.iter().map(|row| row.loss).sum::<f64>() / n);
    // The distance to a centre is one number, whatever targets the rows may carry.
    let outputs = if task == Task::Clusters {
        1
    } else {
        rows.outputs()
    };
    Ok(Utility {
        rows: judged.len(),
        accuracy: correct.map(|all| all.iter().filter(|correct| **correct).count() as f64 / n),
        rmse: squares.map(|all| (all.iter().sum::<f64>() / (n * outputs as f64)).sqrt()),
        log_loss,
    })
}
