//! Certified removal (Guo et al. 2020). The model was trained with noise in its objective; a Newton
//! step takes the rows out, and what the step leaves of the gradient is bounded by the
//! data-dependent bound, added up over requests and held against the budget that the noise can hide
//! at (ε, δ). When one step would pass the budget, the gradient is measured and a second step
//! taken, which is what a model with as many parameters as rows needs; when that does not help
//! either, the model is trained anew with fresh noise, and the certificate says so.

use crate::error::{Error, Result};

/// Newton steps under a budget.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Certified {
    pub(crate) epsilon: f64,
    pub(crate) delta: f64,
    pub(crate) steps: usize,
}

impl Certified {
    /// Newton steps to take at once: 1, or 2 where there are about as many parameters as rows.
    pub fn steps(self, steps: usize) -> Result<Self> {
        if !(1..=2).contains(&steps) {
            return Err(Error::Parameter {
                name: "steps",
                value: steps.to_string(),
                range: "1 or 2",
            });
        }
        Ok(Self { steps, ..self })
    }
}
