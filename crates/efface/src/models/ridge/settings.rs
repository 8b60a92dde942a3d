//! The recipe of a ridge model: every setting, its default and its range.

use serde::{Deserialize, Serialize};

use super::{Basis, Form};
use crate::error::{Error, Result};
use crate::models::form::TableShape;
use crate::rows::{RowStore, Rows};

/// How to fit a ridge model.
///
/// | setting | default | range | meaning |
/// |---|---|---|---|
/// | `lambda` | 1 | ≥ 0 (> 0 for `Form::Iterative`) | strength of the penalty λ/2 ‖θ‖² |
/// | `intercept` | true | | an unpenalised constant |
/// | `form` | `Auto` | | how the curvature is kept |
/// | `tolerance` | 1e-9 | > 0 | relative distance bound above which the model refactors itself |
/// | `threads` | 1 | ≥ 1 | threads for the large products |
/// | `settle_after` | 32 | ≥ 1 | changed rows that may wait before the curvature is brought up to date |
/// | `max_iterations` | 10 000 | ≥ 1 | conjugate-gradient steps before giving up |
/// | `as_given` | false | | compute in the units of the features as they are, and not in units read off the rows: for features of like size |
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ridge {
    /// λ.
    pub lambda: f64,
    /// Whether to fit an unpenalised constant.
    pub intercept: bool,
    /// How the curvature is kept.
    pub form: Form,
    /// The relative distance bound above which the model refactors itself.
    pub tolerance: f64,
    /// Threads for the large products.
    pub threads: usize,
    /// Changed rows that may wait before the curvature is brought up to date.
    pub settle_after: usize,
    /// Conjugate-gradient steps before giving up.
    pub max_iterations: usize,
    /// Whether to compute in the units of the features as they are. Otherwise the units are read
    /// off the rows, which suits columns of any size; no prediction depends on it. As they are,
    /// nothing of a row is in them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_given: bool,
}

impl Default for Ridge {
    fn default() -> Self {
        Self {
            lambda: 1.0,
            intercept: true,
            form: Form::Auto,
            tolerance: 1e-9,
            threads: 1,
            settle_after: 32,
            max_iterations: 10_000,
            as_given: false,
        }
    }
}

impl Ridge {
    /// A ridge model of penalty `lambda`, other settings at their defaults.
    pub fn new(lambda: f64) -> Self {
        Self {
            lambda,
            ..Self::default()
        }
    }

    /// Whether to fit an unpenalised constant.
    pub fn intercept(mut self, intercept: bool) -> Self {
        self.intercept = intercept;
        self
    }

    /// How to keep the curvature.
    pub fn form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// How many threads the large products may use.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// The relative distance bound above which the model refactors itself.
    pub fn tolerance(mut self, tolerance: f64) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Whether to compute in the units of the features as they are, and not in units read off the
    /// rows.
    pub fn as_given(mut self, as_given: bool) -> Self {
        self.as_given = as_given;
        self
    }

    /// How the curvature of a fit to these rows is kept.
    pub(crate) fn form_for(&self, rows: &Rows) -> Form {
        self.form_of_many(rows, rows.len())
    }

    /// The same where there are `count` rows like these.
    pub(crate) fn form_of_many(&self, rows: &Rows, count: usize) -> Form {
        /// As many rows are looked at, or up to twice as many.
        const SAMPLE: usize = 2048;
        let width = rows.width() + usize::from(self.intercept);
        let dense = !rows.is_sparse();
        let entries = if dense {
            width as f64
        } else {
            let step = rows.len().div_ceil(SAMPLE).max(1);
            let counts: Vec<usize> = rows
                .iter()
                .step_by(step)
                .map(|row| row.features.entries().len())
                .collect();
            counts.iter().sum::<usize>() as f64 / counts.len().max(1) as f64
        };
        self.form.resolve(TableShape {
            rows: count as f64,
            width,
            entries,
            dense,
            outputs: rows.outputs() as f64,
            penalised: self.lambda > 0.0,
        })
    }

    /// The coordinates of a fit to these rows.
    pub(crate) fn basis(&self, rows: &Rows) -> Basis {
        if self.as_given {
            Basis::plain(rows.width(), self.intercept)
        } else {
            Basis::choose(rows, rows.width(), self.intercept, self.lambda)
        }
    }

    /// The coordinates of a fit that keeps no matrix.
    pub(crate) fn wide_basis(&self, rows: &Rows) -> Basis {
        if self.as_given {
            Basis::plain(rows.width(), self.intercept)
        } else {
            Basis::choose_implicit(rows, rows.width(), self.intercept, self.lambda)
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        let positive = self.form == Form::Iterative;
        if !self.lambda.is_finite() || self.lambda < 0.0 || (positive && self.lambda == 0.0) {
            let range = if positive {
                "finite and above 0 in the iterative form"
            } else {
                "finite and 0 or more"
            };
            return Err(Error::Parameter {
                name: "lambda",
                value: self.lambda.to_string(),
                range,
            });
        }
        if !self.tolerance.is_finite() || self.tolerance <= 0.0 {
            let value = self.tolerance.to_string();
            return Err(Error::Parameter {
                name: "tolerance",
                value,
                range: "finite and above 0",
            });
        }
        for (name, value) in [
            ("threads", self.threads),
            ("settle_after", self.settle_after),
            ("max_iterations", self.max_iterations),
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
