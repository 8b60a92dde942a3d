//! One answer from the answers of all shards.

use faer::Mat;

use super::{Aggregation, ShardCheckpoint, Sisa};
use crate::error::{Error, Result};
use crate::rows::Features;
use crate::traits::{Fit, Predict};

/// The scores of one shard.
struct ShardScores<'a> {
    table: Mat<f64>,
    /// The column of the answer behind each column of the table; None where they are the same.
    classes: Option<&'a [usize]>,
}

impl ShardScores<'_> {
    fn column(&self, at: usize) -> usize {
        self.classes.map_or(at, |classes| classes[at])
    }
}

/// The scores of all shards that have a say, made one.
pub(super) fn predict<'a, F: Fit>(
    sisa: &Sisa<F>,
    answers: impl Iterator<Item = &'a ShardCheckpoint<F::Model>>,
    outputs: usize,
    features: &Features,
) -> Result<Mat<f64>>
where
    F::Model: Predict + 'a,
{
    let mut shards = Vec::new();
    let mut only_classes = Vec::new();
    for answer in answers {
        match answer {
            ShardCheckpoint::Trained(model) => shards.push(ShardScores {
                table: model.predict(features)?,
                classes: None,
            }),
            ShardCheckpoint::SomeClasses { classes, model } => shards.push(ShardScores {
                table: model.predict(features)?,
                classes: Some(classes),
            }),
            ShardCheckpoint::OneClass(class) => only_classes.push(*class),
            ShardCheckpoint::Abstains | ShardCheckpoint::AsBefore => (),
        }
    }
    let first = shards.first().map(|shard| shard.table.ncols());
    let columns = sisa.class_scores(outputs).or(first).unwrap_or(outputs);
    if shards.is_empty() {
        let line = votes_of_one_class(&only_classes, columns);
        return Ok(Mat::from_fn(features.rows(), columns, |_, column| {
            line[column]
        }));
    }
    for shard in &shards {
        let expected = shard.classes.map_or(columns, <[usize]>::len);
        if shard.table.ncols() != expected {
            return Err(Error::Shape {
                what: "scores of a shard",
                found: shard.table.ncols(),
                expected,
            });
        }
    }
    Ok(match sisa.aggregation {
        Aggregation::Mean => mean(&shards, features.rows(), columns),
        Aggregation::Vote => vote(&shards, features.rows(), columns),
    })
}

/// The share of shards that have each class and no other; as one column, the mean of +1 for the
/// second class and −1 for the first.
fn votes_of_one_class(only_classes: &[usize], columns: usize) -> Vec<f64> {
    let share = |class: usize| {
        let votes = only_classes.iter().filter(|only| **only == class).count();
        votes as f64 / only_classes.len() as f64
    };
    match columns {
        1 => vec![share(1) - share(0)],
        _ => (0..columns).map(share).collect(),
    }
}

/// The mean score of each column over the shards that have it. A class that no shard has gets the
/// least number there is, so that it is never the answer.
fn mean(shards: &[ShardScores<'_>], rows: usize, columns: usize) -> Mat<f64> {
    let mut voters = vec![0.0; columns];
    for shard in shards {
        (0..shard.table.ncols()).for_each(|at| voters[shard.column(at)] += 1.0);
    }
    let mut total: Mat<f64> = Mat::zeros(rows, columns);
    for shard in shards {
        for at in 0..shard.table.ncols() {
            let column = shard.column(at);
            for slot in 0..rows {
                // Divided before they are summed, lest a sum overflow.
                total[(slot, column)] += shard.table[(slot, at)] / voters[column];
            }
        }
    }
    Mat::from_fn(rows, columns, |slot, column| {
        if voters[column] == 0.0 {
            f64::MIN
        } else {
            total[(slot, column)].clamp(f64::MIN, f64::MAX)
        }
    })
}

/// The share of shards that score each column highest, or the mean of +1 and −1.
fn vote(shards: &[ShardScores<'_>], rows: usize, columns: usize) -> Mat<f64> {
    let mut total: Mat<f64> = Mat::zeros(rows, columns);
    for shard in shards {
        let table = &shard.table;
        for slot in 0..rows {
            if columns == 1 {
                total[(slot, 0)] += if table[(slot, 0)] > 0.0 { 1.0 } else { -1.0 };
                continue;
            }
            let better = |a: usize, b: usize| {
                if table[(slot, b)] > table[(slot, a)] {
                    b
                } else {
                    a
                }
            };
            let best = (0..table.ncols()).fold(0, better);
            total[(slot, shard.column(best))] += 1.0;
        }
    }
    Mat::from_fn(rows, columns, |slot, column| {
        total[(slot, column)] / shards.len() as f64
    })
}
