//! A ridge model from batches of rows: their sums are added up in coordinates that the first batch
//! chooses.

use std::sync::Arc;

use super::build::{BuiltBody, RidgeFrame};
use super::sums::RidgeSums;
use super::{Basis, Form, Ridge, RidgePenalty};
use crate::error::{Error, Result};
use crate::linalg::par;
use crate::models::family::{BatchedFit, Model};
use crate::models::request;
use crate::rows::{RowStore, Rows};

pub(super) struct RidgeBatches {
    settings: Ridge,
    /// How many rows there will be: the form depends on it.
    expected: usize,
    begun: Option<BegunSums>,
    rows: usize,
}

struct BegunSums {
    form: Form,
    basis: Basis,
    sums: RidgeSums,
}

impl RidgeBatches {
    pub(super) fn new(settings: &Ridge, expected: usize) -> Self {
        Self {
            settings: *settings,
            expected,
            begun: None,
            rows: 0,
        }
    }
}

impl BatchedFit for RidgeBatches {
    fn add(&mut self, rows: &Rows) -> Result<()> {
        request::check_numbers(rows)?;
        if rows.is_empty() {
            return Ok(());
        }
        let threads = par(self.settings.threads);
        let begun = match &mut self.begun {
            Some(begun) => begun,
            None => {
                self.settings.check()?;
                let form = self.settings.form_of_many(rows, self.expected);
                if !matches!(form, Form::Factor | Form::Inverse) {
                    return Err(Error::NeedsAllRows {
                        rows: self.expected,
                    });
                }
                let basis = self.settings.basis(rows);
                let sums = RidgeSums::zero(basis.width(), rows.outputs());
                self.begun.insert(BegunSums { form, basis, sums })
            }
        };
        let nothing = vec![0.0; begun.basis.width()];
        let part = RidgeSums::gather(rows, &begun.basis, &nothing, threads)?;
        begun.sums = RidgeSums::join([&begun.sums, &part].into_iter(), &nothing);
        self.rows += rows.len();
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Model> {
        let BegunSums { form, basis, sums } = self.begun.ok_or(Error::NoRows)?;
        let penalty = RidgePenalty::new(&basis, self.settings.lambda);
        let sums = RidgeSums::join([&sums].into_iter(), &penalty.values);
        let frame = RidgeFrame::new(self.settings, Arc::new(basis), Arc::new(penalty));
        let BuiltBody { body, theta, .. } = frame.build(form, sums, None, &|| Ok(None))?;
        Ok(Model::new(frame.model(theta, self.rows, body)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Dense;
    use crate::synthetic::LinearProblem;
    use crate::traits::Fit;
    use crate::{Recipe, RidgeModel};

    #[test]
    fn a_model_of_batches_is_the_model_of_their_rows() {
        let problem = LinearProblem {
            rows: 900,
            width: 6,
            seed: 4,
        }
        .generate();
        let rows = Rows::new(Dense::new(problem.x, 6).unwrap(), problem.y, 1).unwrap();
        for settings in [
            Ridge::new(0.3),
            Ridge::new(0.3).intercept(false).form(Form::Inverse),
        ] {
            let recipe: Recipe = settings.into();
            let mut fit = recipe.in_batches(900).unwrap();
            for start in [0, 300, 600] {
                fit.add(&rows.filter(|id| (start..start + 300).contains(&id.0)))
                    .unwrap();
            }
            let found = fit.finish().unwrap();
            let found = found.get::<RidgeModel>().unwrap();
            let truth = settings.fit(&rows).unwrap();
            assert_eq!(found.rows(), 900);
            assert_eq!(found.form(), truth.form());
            let (a, p) = found.parameters();
            let (b, q) = truth.parameters();
            assert!((a - b).norm_max() < 1e-12 && (p[0] - q[0]).abs() < 1e-12);
            assert!(found.evidence_at_optimum().relative_bound < 1e-10);
        }
        let mut by_rows = Recipe::from(Ridge::new(1.0).form(Form::Rows))
            .in_batches(900)
            .unwrap();
        assert!(matches!(
            by_rows.add(&rows),
            Err(Error::NeedsAllRows { rows: 900 })
        ));
        assert!(
            Recipe::from(Ridge::new(1.0))
                .in_batches(3)
                .unwrap()
                .finish()
                .is_err()
        );
    }
}
