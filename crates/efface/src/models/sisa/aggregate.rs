//! One answer from many.

use faer::Mat;

use super::{Aggregation, ShardCheckpoint};
use crate::error::{Error, Result};
use crate::rows::Features;
use crate::traits::Predict;

/// The scores of all shards that have a say, made one.
pub(super) fn predict<'a, M: Predict + 'a>(
    aggregation: Aggregation,
    answers: impl Iterator<Item = &'a ShardCheckpoint<M>>,
    outputs: usize,
    features: &Features,
) -> Result<Mat<f64>> {
    let mut scores = Vec::new();
    let mut constants = Vec::new();
    for answer in answers {
        match answer {
            ShardCheckpoint::Trained(model) => scores.push(model.predict(features)?),
            ShardCheckpoint::Constant(means) => constants.push(means),
            ShardCheckpoint::Abstains | ShardCheckpoint::AsBefore => (),
        }
    }
    let columns = scores.first().map_or(outputs, Mat::ncols);
    for means in constants {
        let line = widen(means, columns)?;
        scores.push(Mat::from_fn(features.rows(), columns, |_, column| {
            line[column]
        }));
    }
    let voters = scores.len() as f64;
    let mut total = Mat::zeros(features.rows(), columns);
    for table in &scores {
        if table.ncols() != columns {
            return Err(Error::Shape {
                what: "scores of a shard",
                found: table.ncols(),
                expected: columns,
            });
        }
        for slot in 0..features.rows() {
            match aggregation {
                // Divided before they are summed: the score of a class without rows may be the
                // least number there is.
                Aggregation::Mean => {
                    (0..columns)
                        .for_each(|column| total[(slot, column)] += table[(slot, column)] / voters);
                }
                Aggregation::Vote if columns == 1 => {
                    total[(slot, 0)] += if table[(slot, 0)] > 0.0 { 1.0 } else { -1.0 };
                }
                Aggregation::Vote => {
                    let better = |a: usize, b: usize| {
                        if table[(slot, b)] > table[(slot, a)] {
                            b
                        } else {
                            a
                        }
                    };
                    total[(slot, (0..columns).fold(0, better))] += 1.0;
                }
            }
        }
    }
    let finish = |sum: f64| match aggregation {
        // Rounding may still carry the sum of the least numbers over the edge.
        Aggregation::Mean => sum.clamp(f64::MIN, f64::MAX),
        Aggregation::Vote => sum / voters,
    };
    Ok(Mat::from_fn(features.rows(), columns, |slot, column| {
        finish(total[(slot, column)])
    }))
}

/// Mean targets as scores. A model may have two columns for the two classes that one target tells
/// apart by its sign.
fn widen(means: &[f64], columns: usize) -> Result<Vec<f64>> {
    match means {
        [mean] if columns == 2 => Ok(vec![-mean, *mean]),
        _ if means.len() == columns => Ok(means.to_vec()),
        _ => Err(Error::Shape {
            what: "targets of a shard",
            found: means.len(),
            expected: columns,
        }),
    }
}
