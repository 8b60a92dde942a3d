//! How good a model is: accuracy, log-loss, AUC and F1 of classes, RMSE and R² of numbers, each
//! beside what a constant answer would reach on the same rows. What a method costs the people who
//! stay is measured in [`eval`](crate::eval); this room judges one model.
//!
//! The figures are those of scikit-learn 1.9 (`accuracy_score`, `log_loss`, `roc_auc_score` one
//! against the rest, `f1_score`, `root_mean_squared_error`, `r2_score`). Every row counts once,
//! whatever its weight. The baseline is the best constant for the rows that are judged: their mean,
//! their commonest class, the shares of their classes. So it owes nothing to the training rows.

mod penalty;
mod quality;
mod ranking;
mod tally;

pub use penalty::{PENALTY_CANDIDATES, PenaltyChoice, choose_penalty, fold_of};
pub use quality::{ClassQuality, NumberQuality, OneClassQuality, QualityScores};
pub use ranking::area_under_curve;
pub use tally::{ScoreTally, probabilities};
