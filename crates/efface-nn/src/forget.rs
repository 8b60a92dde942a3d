//! Taking rows out of the head, by every method of the core that its loss allows.
//!
//! | method | squared loss | cross-entropy | reads |
//! |---|---|---|---|
//! | `exact` | exact | refused | the rows to forget |
//! | `newton` | exact | approximate, or as near as its steps | the rows to forget; more steps read all |
//! | `influence` | approximate | approximate | the rows to forget |
//! | `projection_residual` | approximate | approximate | the rows to forget; later rounds read all |
//! | `summation` | exact | refused | the rows to forget |
//! | `warm_start` | refused | exact | all rows |
//! | `retrain_head` | exact | exact | all rows |
//!
//! "Exact" speaks of the head on the features of a fixed encoder. What the encoder learned from the rows is another matter and
//! stands under `not_covered`.

use efface::methods::table;
use efface::{
    Error as CoreError, Family, Forget, LogisticModel, Method, Outcome, RidgeModel, RowId, RowStore,
};

use crate::error::Result;
use crate::head::{Head, wrap};

impl Head {
    /// The head without the rows `gone`, whose features are read from `encoded`.
    pub fn forget(&self, method: &Method, encoded: &dyn RowStore, gone: &[RowId]) -> Result<Outcome<Self>> {
        // A new head is what the core calls retraining; of a network, that word means the encoder too.
        let work = if *method == Method::RetrainHead { Method::Retrain } else { *method };
        let family = match self {
            Self::Ridge(_) => Family::Ridge,
            Self::Classifier(model) if model.outputs() == 1 => Family::Logistic,
            Self::Classifier(_) => Family::Softmax,
        };
        if !work.is_for(family) {
            let reason = table::refusal(work.name(), family);
            return Err(CoreError::Unsupported { method: work.name(), reason }.into());
        }
        work.check()?;
        let mut outcome = match self {
            Self::Ridge(model) => {
                wrap(Forget::<RidgeModel>::forget(&work, model, encoded, gone)?, Head::Ridge)
            }
            Self::Classifier(model) => {
                wrap(Forget::<LogisticModel>::forget(&work, model, encoded, gone)?, Head::Classifier)
            }
        };
        if *method == Method::RetrainHead {
            outcome.evidence.method = method.name().into();
        }
        Ok(outcome)
    }
}
