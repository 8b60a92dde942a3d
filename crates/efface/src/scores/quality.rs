//! The figures, and their mean over folds.

use serde::{Deserialize, Serialize};

/// How good a model is on some rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QualityScores {
    /// Rows that were judged.
    pub rows: usize,
    /// Rows of a class that the model does not know. They count as wrong, and not towards log-loss
    /// and AUC.
    pub unknown_classes: usize,
    /// For a classifier.
    pub classes: Option<ClassQuality>,
    /// One entry per output, for a model of numbers.
    pub numbers: Vec<NumberQuality>,
}

/// How good a classifier is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassQuality {
    /// The share of rows that are put into their own class.
    pub accuracy: f64,
    /// The share of the commonest class.
    pub baseline_accuracy: f64,
    /// The mean −log p of the rows' own classes, in nats; None for a model without probabilities.
    pub log_loss: Option<f64>,
    /// The log-loss of the classes' shares; None where `log_loss` is.
    pub baseline_log_loss: Option<f64>,
    /// The area under the ROC curve: of the second class of two, else the mean of each class
    /// against the rest. None where the rows are of one class, or too many for all scores to be
    /// kept.
    pub auc: Option<f64>,
    /// The mean F1 of the classes that occur, in the rows or in the answers.
    pub macro_f1: f64,
    /// Every class of the model.
    pub per_class: Vec<OneClassQuality>,
}

/// How good a classifier is at one class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OneClassQuality {
    /// The class.
    pub name: String,
    /// Rows of this class.
    pub rows: usize,
    /// The share of this class among the rows that were put into it; 0 where there are none.
    pub precision: f64,
    /// The share of its rows that were put into it; 0 where there are none.
    pub recall: f64,
    /// The harmonic mean of both.
    pub f1: f64,
}

/// How good a model of numbers is at one output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NumberQuality {
    /// The output.
    pub name: String,
    /// √ of the mean squared error.
    pub rmse: f64,
    /// The same for the mean of the rows' targets.
    pub baseline_rmse: f64,
    /// 1 − (rmse / baseline)²; None where all targets are equal.
    pub r2: Option<f64>,
}

impl QualityScores {
    /// In what the model is worse than the best constant answer; empty where it is not.
    pub fn worse_than_constant(&self) -> Vec<String> {
        let mut found = Vec::new();
        if let Some(classes) = &self.classes {
            if classes.accuracy < classes.baseline_accuracy {
                found.push(format!(
                    "accuracy {:.4}, below {:.4} of always answering the commonest class",
                    classes.accuracy, classes.baseline_accuracy
                ));
            }
            if let (Some(loss), Some(baseline)) = (classes.log_loss, classes.baseline_log_loss)
                && loss > baseline
            {
                found.push(format!(
                    "log-loss {loss:.4}, above {baseline:.4} of the classes' shares"
                ));
            }
        }
        for output in self
            .numbers
            .iter()
            .filter(|output| output.rmse > output.baseline_rmse)
        {
            found.push(format!(
                "RMSE {:.4} of `{}`, above {:.4} of always answering the mean",
                output.rmse, output.name, output.baseline_rmse
            ));
        }
        found
    }

    /// The mean of several folds: every fold counts once, as in scikit-learn's `cross_val_score`. A
    /// class is averaged over the folds that know it. None without folds.
    pub fn mean_of(folds: &[Self]) -> Option<Self> {
        let first = folds.first()?;
        let classes: Vec<&ClassQuality> = folds
            .iter()
            .filter_map(|fold| fold.classes.as_ref())
            .collect();
        let mut numbers = first.numbers.clone();
        for (at, output) in numbers.iter_mut().enumerate() {
            let same = || folds.iter().filter_map(|fold| fold.numbers.get(at));
            output.rmse = mean(same().map(|output| output.rmse));
            output.baseline_rmse = mean(same().map(|output| output.baseline_rmse));
            output.r2 = every(same().map(|output| output.r2));
        }
        Some(Self {
            rows: folds.iter().map(|fold| fold.rows).sum(),
            unknown_classes: folds.iter().map(|fold| fold.unknown_classes).sum(),
            classes: ClassQuality::mean_of(&classes),
            numbers,
        })
    }
}

impl ClassQuality {
    fn mean_of(folds: &[&Self]) -> Option<Self> {
        if folds.is_empty() {
            return None;
        }
        let mut names: Vec<&str> = Vec::new();
        for class in folds.iter().flat_map(|fold| &fold.per_class) {
            if !names.contains(&class.name.as_str()) {
                names.push(&class.name);
            }
        }
        let per_class = names.into_iter().map(|name| {
            let same = || {
                folds
                    .iter()
                    .flat_map(|fold| &fold.per_class)
                    .filter(move |one| one.name == name)
            };
            OneClassQuality {
                name: name.to_owned(),
                rows: same().map(|one| one.rows).sum(),
                precision: mean(same().map(|one| one.precision)),
                recall: mean(same().map(|one| one.recall)),
                f1: mean(same().map(|one| one.f1)),
            }
        });
        Some(Self {
            accuracy: mean(folds.iter().map(|fold| fold.accuracy)),
            baseline_accuracy: mean(folds.iter().map(|fold| fold.baseline_accuracy)),
            log_loss: every(folds.iter().map(|fold| fold.log_loss)),
            baseline_log_loss: every(folds.iter().map(|fold| fold.baseline_log_loss)),
            auc: every(folds.iter().map(|fold| fold.auc)),
            macro_f1: mean(folds.iter().map(|fold| fold.macro_f1)),
            per_class: per_class.collect(),
        })
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let mut sum = 0.0;
    let mut count = 0.0;
    for value in values {
        sum += value;
        count += 1.0;
    }
    if count == 0.0 { 0.0 } else { sum / count }
}

/// The mean of values that are all there.
fn every(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let all: Option<Vec<f64>> = values.collect();
    all.filter(|all| !all.is_empty())
        .map(|all| mean(all.into_iter()))
}
