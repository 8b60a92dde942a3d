//! What a family does to be trained in shards.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::error::Result;
use crate::rows::Rows;
use crate::state::ModelState;
use crate::traits::Predict;

/// What a shard keeps of a model: enough to score rows and to train further, and no curvature,
/// because nothing is ever taken out of a shard.
pub trait ShardModel: Predict + fmt::Debug + Any + Send + Sync {
    /// The model as plain data.
    fn to_state(&self) -> Result<ModelState>;

    /// The memory that it takes.
    fn bytes(&self) -> usize;
}

/// What trains the models of shards.
pub trait ShardTrainer: fmt::Debug + Send + Sync {
    /// Learns from all rows, starting from a model of some of them where that helps.
    fn train(&self, start: Option<&dyn ShardModel>, rows: &Rows) -> Result<Arc<dyn ShardModel>>;

    /// The model of a state.
    fn restore(&self, state: ModelState) -> Result<Arc<dyn ShardModel>>;
}
