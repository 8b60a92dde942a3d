//! The relation between an encoder and the rows of its model, from which the claim of a whole
//! network follows.
//!
//! A head forgets by the methods of the core, with their bounds. They hold for the features of the
//! encoder as it is, and speak of the whole network only if retraining would give the same encoder.
//! [`EncoderState`] remembers from request to request whether that is so, until the network is
//! trained anew.

use efface::{Evidence, NotCovered};
use serde::{Deserialize, Serialize};

/// The events since the last training from scratch that make an encoder another one than retraining
/// would give. An encoder that was never trained has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EncoderState {
    /// Rows left that it was trained on.
    pub trained_on_departed: bool,
    /// It was trained further, in order to forget.
    pub trained_further: bool,
    /// Rows joined that it was never trained on.
    pub untrained_rows: bool,
}

impl EncoderState {
    /// Records a change of rows that left an encoder of so many training steps as it was.
    pub fn record(&mut self, steps: u64, rows_left: bool, rows_joined: bool) {
        if steps > 0 {
            self.trained_on_departed |= rows_left;
            self.untrained_rows |= rows_joined;
        }
    }

    /// Returns true if retraining would give the same encoder.
    pub fn is_retrained(&self) -> bool {
        *self == Self::default()
    }

    /// Computes the claim of the whole network in an evidence of its head: the evidence keeps its
    /// claim and its bound only if retraining would give the same encoder.
    pub fn limit(&self, evidence: &mut Evidence) {
        if !self.is_retrained() {
            evidence.limit_to_head();
        }
    }

    /// Returns the parts of the encoder that no forget has covered.
    pub fn not_covered(&self) -> Vec<NotCovered> {
        [
            (self.trained_on_departed, NotCovered::EncoderTraining),
            (self.trained_further, NotCovered::TrainedFurther),
            (self.untrained_rows, NotCovered::EncoderUntrained),
        ]
        .into_iter()
        .filter_map(|(is_left, what)| is_left.then_some(what))
        .collect()
    }
}
