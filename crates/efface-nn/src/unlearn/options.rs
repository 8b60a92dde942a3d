//! The settings of a method as a caller gives them: what is not given is the method's default, and what has no meaning for a
//! method is refused.

use serde::Serialize;

use super::NetworkMethod;
use crate::error::{Error, Result};

/// Settings of [`NetworkMethod`] by name; None is the default of the method.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct TuneOptions {
    /// Passes over the retained rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epochs: Option<usize>,
    /// The rate of AdamW.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning_rate: Option<f64>,
    /// α of `neggrad_plus` or `scrub`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// γ of `scrub`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gamma: Option<f64>,
    /// M of `scrub`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_epochs: Option<usize>,
    /// The loss of forgotten rows that ends `neggrad_plus` or `scrub`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_cap: Option<f64>,
}

impl TuneOptions {
    /// Every setting of a method, for the record.
    pub fn of(method: &NetworkMethod) -> Self {
        let mut options = Self { epochs: Some(method.epochs()), ..Self::default() };
        match method {
            NetworkMethod::FineTune(set) => options.learning_rate = set.learning_rate,
            NetworkMethod::NegGradPlus(set) => {
                options.learning_rate = set.learning_rate;
                options.alpha = Some(set.alpha);
                options.loss_cap = Some(set.loss_cap);
            }
            NetworkMethod::Scrub(set) => {
                options.learning_rate = set.learning_rate;
                options.alpha = Some(set.alpha);
                options.gamma = Some(set.gamma);
                options.max_epochs = Some(set.max_epochs);
                options.loss_cap = Some(set.loss_cap);
            }
        }
        options
    }

    /// The method of a name with these settings; None when there is no method of that name.
    pub fn method(&self, name: &str) -> Result<Option<NetworkMethod>> {
        let Some(mut method) = NetworkMethod::by_name(name) else { return Ok(None) };
        let Self { epochs, learning_rate, alpha, gamma, max_epochs, loss_cap } = *self;
        let scrub_alone = [("gamma", gamma.is_some()), ("max_epochs", max_epochs.is_some())];
        let ascent_alone = [("alpha", alpha.is_some()), ("loss_cap", loss_cap.is_some())];
        let foreign: Vec<(&str, bool)> = match method {
            NetworkMethod::FineTune(_) => scrub_alone.into_iter().chain(ascent_alone).collect(),
            NetworkMethod::NegGradPlus(_) => scrub_alone.to_vec(),
            NetworkMethod::Scrub(_) => Vec::new(),
        };
        if let Some((setting, _)) = foreign.into_iter().find(|(_, is_given)| *is_given) {
            return Err(Error::Unsupported(format!("{setting} has no meaning for {name}: leave it out")));
        }
        match &mut method {
            NetworkMethod::FineTune(set) => {
                set.epochs = epochs.unwrap_or(set.epochs);
                set.learning_rate = learning_rate;
            }
            NetworkMethod::NegGradPlus(set) => {
                set.epochs = epochs.unwrap_or(set.epochs);
                set.learning_rate = learning_rate;
                set.alpha = alpha.unwrap_or(set.alpha);
                set.loss_cap = loss_cap.unwrap_or(set.loss_cap);
            }
            NetworkMethod::Scrub(set) => {
                set.epochs = epochs.unwrap_or(set.epochs);
                // A short run keeps its passes over the forgotten rows to what it has.
                set.max_epochs = max_epochs.unwrap_or(set.max_epochs.min(set.epochs.max(1)));
                set.learning_rate = learning_rate;
                set.alpha = alpha.unwrap_or(set.alpha);
                set.gamma = gamma.unwrap_or(set.gamma);
                set.loss_cap = loss_cap.unwrap_or(set.loss_cap);
            }
        }
        method.check()?;
        Ok(Some(method))
    }
}
