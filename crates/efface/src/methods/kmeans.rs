//! The two ways to take rows out of clusters (Ginart et al. 2019). Both are exact; how they work
//! stands beside the model, in `models/kmeans`.

/// Q-k-means: take the rows out of every kept stage; where a quantised centre or the decision to
/// stop changes, go on from there over the retained rows.
#[derive(Debug, Clone, Copy, Default)]
pub struct QKMeans;

/// DC-k-means: compute the leaves of the rows, and the nodes above them, anew.
#[derive(Debug, Clone, Copy, Default)]
pub struct DcKMeans;
