//! Picks the method and says why. For squared loss there is always an exact one, so the choice is
//! only about cost. For a classifier it does as many cheap steps as its bound demands, and no more.

use serde::{Deserialize, Serialize};

/// The cheapest method that is exact, or as near to it as asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Auto {
    /// The relative distance to retraining that a classifier must reach; None takes the model's
    /// own. A ridge model is exact anyway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
}
