//! Training again, shard by shard (Bourtoule et al. 2021). Exact; how it works stands beside the
//! model, in `models/sisa`.

/// SISA: train the shards of the rows again, each from the checkpoint before the first touched
/// slice.
#[derive(Debug, Clone, Copy, Default)]
pub struct SisaForget;
