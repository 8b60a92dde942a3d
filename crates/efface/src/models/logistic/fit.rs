//! From rows to a trained classifier: checks, coordinates, and the training of rows in memory or of
//! rows that are read by passes.

use std::collections::HashSet;
use std::sync::Arc;

use faer::Mat;

use super::sample::{FirstPass, RowSample};
use super::{
    BoundLedger, ClassifierSettings, Extra, Link, Logistic, LogisticModel, RowFacts, WIDEST,
    private,
};
use crate::error::{Error, Result};
use crate::models::basis::{Basis, power_of_two};
use crate::models::request;
use crate::rows::{RowStore, Rows};

/// About as many bytes as training holds beside the rows: some matrices of the parameters where
/// there are few, sums in the length of the parameters where there are many.
pub(super) fn bytes_of_sums(features: usize, outputs: usize) -> u64 {
    let parameters = (features as u64 + 1).saturating_mul(outputs as u64);
    let numbers = match parameters <= WIDEST as u64 {
        true => parameters.saturating_mul(parameters).saturating_mul(6),
        false => parameters.saturating_mul(64),
    };
    numbers.saturating_mul(8)
}

impl ClassifierSettings {
    pub(super) fn is_private(&self) -> bool {
        self.logistic.privacy.is_some()
    }

    /// The model of all rows of a store, which may be beyond memory.
    pub(crate) fn fit(
        &self,
        rows: &dyn RowStore,
        start: Option<&LogisticModel>,
    ) -> Result<LogisticModel> {
        self.check()?;
        request::check_numbers(rows)?;
        if rows.is_empty() {
            return Err(Error::NoRows);
        }
        let outputs = rows.outputs();
        if (self.link == Link::Logistic) != (outputs == 1) {
            let (found, expected) = (outputs, if self.link == Link::Logistic { 1 } else { 2 });
            return Err(Error::Shape {
                what: "outputs of a classifier",
                found,
                expected,
            });
        }
        let intercept = self.logistic.intercept;
        if rows.width() + intercept as usize == 0 {
            return Err(Error::Parameter {
                name: "features",
                value: "0".into(),
                range: "at least 1 in a model without an intercept",
            });
        }
        if rows.is_beyond_memory() {
            return self.fit_by_passes(rows, start);
        }
        let rows = &*rows.all()?;
        // Certified rows are scaled by their norm, in units that no row chose.
        if self.is_private() || self.logistic.as_given {
            return self.fit_in(Basis::plain(rows.width(), intercept), rows, start);
        }
        let basis = Basis::choose(rows, rows.width(), intercept, self.logistic.lambda);
        match self.fit_in(basis, rows, start) {
            Err(error @ (Error::Singular { .. } | Error::NotTrained { .. }))
                if self.logistic.lambda > 0.0 =>
            {
                self.fit_beside_giants(rows, error)
            }
            fitted => fitted,
        }
    }

    pub(super) fn fit_in(
        &self,
        basis: Basis,
        rows: &Rows,
        start: Option<&LogisticModel>,
    ) -> Result<LogisticModel> {
        let gauge = self.gauge(&basis, rows);
        let blank = self.blank(
            basis,
            gauge,
            rows.outputs(),
            private::fingerprint(rows.ids()),
            start,
        );
        let sample = RowSample::new(blank.frame(), rows, &HashSet::new(), None)?;
        let mut model = blank.trained(&sample)?.0;
        model.clear_dead_columns();
        Ok(model)
    }

    /// The model of rows that are beyond memory: the same training, whose passes read them from
    /// their store.
    fn fit_by_passes(
        &self,
        rows: &dyn RowStore,
        start: Option<&LogisticModel>,
    ) -> Result<LogisticModel> {
        let FirstPass {
            sample: some,
            row_set,
            shape,
        } = FirstPass::over(rows)?;
        // A sample says how columns are spread, and stands for all rows beside the penalty.
        let stands_for = shape.rows as f64 / some.len() as f64;
        let Logistic {
            intercept, lambda, ..
        } = self.logistic;
        let basis = if self.is_private() || self.logistic.as_given {
            Basis::plain(rows.width(), intercept)
        } else {
            Basis::choose(&some, rows.width(), intercept, lambda / stands_for)
        };
        let mut gauge = self.gauge(&basis, &some);
        if !self.logistic.as_given {
            gauge
                .iter_mut()
                .for_each(|gauge| *gauge *= power_of_two(stands_for));
        }
        let blank = self.blank(basis, gauge, rows.outputs(), row_set, start);
        let sample = RowSample::passed(blank.frame(), rows, Some(shape))?;
        let mut model = blank.trained(&sample)?.0;
        model.clear_dead_columns();
        Ok(model)
    }

    /// A model that is not trained yet, at the parameters of `start` where they fit, in these
    /// coordinates.
    fn blank(
        &self,
        basis: Basis,
        gauge: Vec<f64>,
        outputs: usize,
        row_set: u64,
        start: Option<&LogisticModel>,
    ) -> LogisticModel {
        let extra = self.extra(&basis, gauge, outputs, row_set);
        let start = match start {
            Some(model) if model.theta.ncols() == outputs && model.features() == basis.features => {
                let (coefficients, constants) = model.hidden_parameters();
                basis.to_inner(&coefficients, &constants)
            }
            _ => Mat::zeros(basis.width(), outputs),
        };
        LogisticModel {
            settings: *self,
            facts: RowFacts {
                reach: 0.0,
                weight: 0.0,
                trace: 0.0,
                scale: 1.0,
                rows: 0,
                inverse_norm: f64::INFINITY,
            },
            ledger: BoundLedger::measured(Mat::zeros(basis.width(), outputs), 0.0),
            basis: Arc::new(basis),
            extra: Arc::new(extra),
            theta: start,
            veil: None,
            rows: 0,
            class_rows: Vec::new(),
            standing: None,
            refactorisations: 0,
            steps: 0,
            unseen: Arc::default(),
            path: None,
            aids: Default::default(),
            row_set,
            noise_rows: row_set,
        }
    }

    pub(super) fn extra(
        &self,
        basis: &Basis,
        gauge: Vec<f64>,
        outputs: usize,
        noise_rows: u64,
    ) -> Extra {
        let lambda = self.logistic.lambda;
        // A certificate rests on every parameter being penalised, the constant included.
        let penalty = if self.is_private() {
            vec![lambda; basis.width()]
        } else {
            basis.penalty(lambda)
        };
        Extra {
            penalty,
            gauge,
            tilt: private::tilt(self, noise_rows, basis.width(), outputs),
        }
    }
}
