//! Retraining from scratch on the retained rows: O(nd²), the definition of correct, what every
//! other method is compared with. It reads every row and keeps nothing of the old curvature.

/// Fit again without the rows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Retrain;
