//! DeltaGrad: gradient descent, replayed without the rows. A run of full-batch gradient descent
//! from 0 is remembered with the parameters and the gradient of every step. The replay takes the
//! same steps over the retained rows, but computes their gradient in the first steps and in every
//! few later ones alone; in between it takes the remembered gradient, corrects it for the
//! parameters' having moved by an L-BFGS matrix of the differences seen so far, and subtracts the
//! gradients of the rows to forget, which are exact. After Wu, Dobriban and Davidson, "DeltaGrad:
//! Rapid Retraining of Machine Learning Models" (2020), algorithm 1, and its online form: the
//! replay becomes the run that the next request starts from.
//!
//! The parameters move by the end of the replay minus the end of the run. Badly conditioned rows
//! keep either run far from its optimum, by nearly the same way, which the difference cancels; the
//! end of the replay itself would be farther from retraining than the model was.
//!
//! Approximate: the difference is near that of two optima as far as gradient descent gets. The
//! bound is measured at the end, and speaks of the optimum.
//!
//! Costs: the run, T passes over the rows when the method is first asked of a model (`rows_read`
//! counts them), and 2T parameter vectors of memory, which later evidence lists under
//! `precomputed`; the run is not part of a stored model. Then j₀ + T/T₀ passes over the retained
//! rows and T over those to forget, and one for the bound. With the defaults that is about a fifth
//! of T passes, where `warm_start` takes a handful: the method is here to be compared with.
//!
//! When it fails: badly conditioned rows, on which gradient descent has not arrived after its
//! steps: the part of the change that it has not seen is missing. The bound says how far it is off.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Gradient descent, replayed from memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeltaGrad {
    /// j₀: so many steps at the start read all retained rows.
    pub burn_in: usize,
    /// T₀: of the later steps, every so many read them.
    pub period: usize,
    /// m: differences that the L-BFGS matrix is made of.
    pub memory: usize,
    /// Steps of gradient descent at most; it ends before where the gradient has fallen by seven
    /// orders of magnitude.
    pub iterations: usize,
}

impl Default for DeltaGrad {
    /// The settings of the paper for logistic regression.
    fn default() -> Self {
        Self {
            burn_in: 10,
            period: 5,
            memory: 2,
            iterations: 1000,
        }
    }
}

impl DeltaGrad {
    pub(crate) fn check(&self) -> Result<()> {
        for (name, value) in [
            ("period", self.period),
            ("memory", self.memory),
            ("iterations", self.iterations),
        ] {
            if value == 0 {
                return Err(Error::Parameter {
                    name,
                    value: "0".into(),
                    range: "at least 1",
                });
            }
        }
        Ok(())
    }
}
