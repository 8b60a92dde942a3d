//! The linear head: a model of the core, fitted to its optimum on the encoder's features.

use efface::{Amend, Evidence, Features, Fit, Logistic, LogisticModel, Outcome, Predict, Ridge};
use efface::{Family, ModelState, RidgeModel, RidgeState, RowStore, Rows};
use faer::Mat;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// What the head is fitted with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HeadRecipe {
    /// Squared loss on ±1 or on a 1 among zeros: forgetting is exact and closed-form.
    Ridge(Ridge),
    /// Cross-entropy: logistic for two classes, softmax for more.
    Softmax(Logistic),
}

/// A fitted head.
#[derive(Debug, Clone)]
#[allow(
    clippy::large_enum_variant,
    reason = "a network has one head; a box would be one more way to reach it"
)]
pub enum Head {
    /// Squared loss.
    Ridge(RidgeModel),
    /// Cross-entropy.
    Classifier(LogisticModel),
}

impl HeadRecipe {
    /// This recipe in the units of the encoder's features as they are, which is how every head is fitted: they are of like
    /// size by nature, and units read off the rows would keep something of rows that are to be forgotten.
    pub fn as_given(self) -> Self {
        match self {
            Self::Ridge(ridge) => Self::Ridge(ridge.as_given(true)),
            Self::Softmax(logistic) => Self::Softmax(logistic.as_given(true)),
        }
    }

    /// The optimum on these rows.
    pub fn fit(&self, encoded: &Rows) -> Result<Head> {
        Ok(match self.as_given() {
            Self::Ridge(ridge) => Head::Ridge(ridge.fit(encoded)?),
            Self::Softmax(logistic) if encoded.outputs() == 1 => Head::Classifier(logistic.fit(encoded)?),
            Self::Softmax(logistic) => Head::Classifier(logistic.softmax().fit(encoded)?),
        })
    }
}

impl Head {
    /// Coefficients (features × outputs) and intercepts.
    pub fn parameters(&self) -> (Mat<f64>, Vec<f64>) {
        match self {
            Self::Ridge(model) => model.parameters(),
            Self::Classifier(model) => model.parameters(),
        }
    }

    /// The scores of encoded rows.
    pub fn predict(&self, encoded: &Features) -> Result<Mat<f64>> {
        Ok(match self {
            Self::Ridge(model) => model.predict(encoded)?,
            Self::Classifier(model) => model.predict(encoded)?,
        })
    }

    /// Rows that the head stands for.
    pub fn rows(&self) -> usize {
        match self {
            Self::Ridge(model) => model.rows(),
            Self::Classifier(model) => model.rows(),
        }
    }

    /// Folds waiting changes into the curvature.
    pub fn settle(&mut self) -> Result<()> {
        match self {
            Self::Ridge(model) => model.settle()?,
            Self::Classifier(model) => model.settle()?,
        };
        Ok(())
    }

    /// The head as plain data, waiting changes folded in first.
    pub(crate) fn settled_state(&self) -> Result<ModelState> {
        let mut settled = self.clone();
        settled.settle()?;
        Ok(match &settled {
            Self::Ridge(model) => model.to_state()?.to_model_state()?,
            Self::Classifier(model) => model.to_state()?,
        })
    }

    /// The head of a state.
    pub(crate) fn from_state(state: ModelState) -> Result<Self> {
        Ok(match state.family {
            Family::Ridge => Self::Ridge(RidgeModel::from_state(&RidgeState::from_model_state(state)?)?),
            Family::Logistic | Family::Softmax => Self::Classifier(LogisticModel::from_state(state)?),
            family => {
                return Err(Error::Damaged(format!("a head is no model of the family {}", family.name())));
            }
        })
    }

    /// How many changed rows wait for the next settle.
    pub fn waiting(&self) -> usize {
        match self {
            Self::Ridge(model) => model.waiting(),
            Self::Classifier(model) => model.waiting(),
        }
    }

    /// Brings bound and memory in an evidence up to date with this head, as after a settle.
    pub(crate) fn update_evidence(&self, evidence: &mut Evidence) {
        match self {
            Self::Ridge(model) => model.update_evidence(evidence),
            Self::Classifier(model) => model.update_evidence(evidence),
        }
    }

    /// What the core says of this head as a fit left it, at its optimum.
    pub(crate) fn evidence(&self) -> Evidence {
        match self {
            Self::Ridge(model) => model.evidence_at_optimum(),
            Self::Classifier(model) => model.evidence_at_optimum(),
        }
    }

    /// How far the parameters of two heads are apart.
    pub fn distance(&self, other: &Self) -> f64 {
        let (a, a_constants) = self.parameters();
        let (b, b_constants) = other.parameters();
        let constants = a_constants.iter().zip(&b_constants).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
        let difference = &a - &b;
        (difference.squared_norm_l2() + constants).sqrt()
    }
}

/// A changed head with its evidence.
pub(crate) fn wrap<M>(outcome: Outcome<M>, into: impl FnOnce(M) -> Head) -> Outcome<Head> {
    Outcome { model: into(outcome.model), evidence: outcome.evidence }
}
