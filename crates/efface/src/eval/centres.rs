//! Clusters have no names: two k-means models are compared after their centres have been matched.

use faer::Mat;

use crate::models::{KMeansModel, Model};

/// For every centre of `truth`, in order, the centre of `model` that stands for it: the nearest two
/// of all are matched first, then the nearest two of the rest, and so on. Equal distances go by the
/// numbers of the centres, so that a model matches itself.
fn matched(model: &KMeansModel, truth: &KMeansModel) -> Vec<usize> {
    let own = model.centers();
    let other = truth.centers();
    let mut pairs = Vec::with_capacity(own.nrows() * other.nrows());
    for to in 0..other.nrows() {
        for from in 0..own.nrows() {
            let square: f64 = (0..own.ncols())
                .map(|j| (own[(from, j)] - other[(to, j)]).powi(2))
                .sum();
            pairs.push((square, to, from));
        }
    }
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let mut stands_for = vec![None; other.nrows()];
    let mut taken = vec![false; own.nrows()];
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
    Some(matched(model.get()?, truth.get()?))
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
