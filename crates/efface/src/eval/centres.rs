//! Clusters have no names: two k-means models are compared after their centres have been matched.

use faer::{Mat, MatRef};

use crate::models::{KMeansModel, Model};

/// For every cluster of the true model, in order, the cluster of the other model that stands for
/// it. Columns are clusters, and equal lines of both tables describe them alike. The nearest two of
/// all are matched first, then the nearest two of the rest, and so on. Equal distances go by the
/// numbers of the clusters, so that a model matches itself.
fn matched(own: MatRef<'_, f64>, other: MatRef<'_, f64>) -> Vec<usize> {
    let mut pairs = Vec::with_capacity(own.ncols() * other.ncols());
    for to in 0..other.ncols() {
        for from in 0..own.ncols() {
            let square: f64 = (0..own.nrows())
                .map(|j| (own[(j, from)] - other[(j, to)]).powi(2))
                .sum();
            pairs.push((square, to, from));
        }
    }
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let mut stands_for = vec![None; other.ncols()];
    let mut taken = vec![false; own.ncols()];
    for (_, to, from) in pairs {
        if stands_for[to].is_none() && !taken[from] {
            stands_for[to] = Some(from);
            taken[from] = true;
        }
    }
    stands_for.into_iter().flatten().collect()
}

/// The order of a model's clusters that makes them those of `truth`; None for models without
/// clusters.
pub(super) fn cluster_order(model: &Model, truth: &Model) -> Option<Vec<usize>> {
    let (own, other): (&KMeansModel, &KMeansModel) = (model.get()?, truth.get()?);
    Some(matched(
        own.centers().transpose(),
        other.centers().transpose(),
    ))
}

/// The same for models that read features of their own, whose centres cannot be compared: from the
/// distances of the same rows to the centres of each.
pub(super) fn cluster_order_by_rows(own: &Mat<f64>, truth: &Mat<f64>) -> Vec<usize> {
    matched(own.as_ref(), truth.as_ref())
}

/// Distances to centres as scores: the columns in the order of the clusters, with the sign that
/// makes the nearest the largest.
pub(super) fn scores_of_clusters(distances: &Mat<f64>, order: &[usize]) -> Mat<f64> {
    Mat::from_fn(distances.nrows(), order.len(), |row, cluster| {
        -distances[(row, order[cluster])]
    })
}

/// The centres one after the other, in the order of the clusters.
pub(super) fn centres_in_order(model: &KMeansModel, order: &[usize]) -> Vec<f64> {
    let centres = model.centers();
    order
        .iter()
        .flat_map(|&cluster| (0..centres.ncols()).map(move |j| (cluster, j)))
        .map(|at| centres[at])
        .collect()
}
