//! A model together with its rows in memory: the two change together or not at all.

use crate::error::Result;
use crate::evidence::{Evidence, Outcome};
use crate::models::request;
use crate::rows::{RowId, RowStore, Rows};
use crate::traits::{Amend, Fit, Forget, Settled};

/// A fitted model and the rows it stands for.
#[derive(Debug, Clone)]
pub struct Fitted<M> {
    model: M,
    rows: Rows,
    settle_after: Option<usize>,
}

impl<M: Amend> Fitted<M> {
    /// Fits a model and keeps the rows with it.
    pub fn new<F: Fit<Model = M>>(recipe: &F, rows: Rows) -> Result<Self> {
        Ok(Self::of(recipe.fit(&rows)?, rows))
    }

    /// A model that was fitted elsewhere, and its rows.
    pub fn of(model: M, rows: Rows) -> Self {
        Self {
            model,
            rows,
            settle_after: None,
        }
    }

    /// How many changed rows may wait before the curvature is brought up to date at once. Unless
    /// said, the model does so a little with every request ([`Amend::settle_some`]).
    pub fn settle_after(mut self, rows: usize) -> Self {
        self.settle_after = Some(rows.max(1));
        self
    }

    /// The model as it is now.
    pub fn model(&self) -> &M {
        &self.model
    }

    /// The rows it stands for.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Forgets rows. On an error, model and rows are as before.
    pub fn forget(&mut self, method: &dyn Forget<M>, gone: &[RowId]) -> Result<Evidence> {
        let outcome = method.forget(&self.model, &self.rows, gone)?;
        self.rows.remove(gone)?;
        Ok(self.accept(outcome))
    }

    /// Adds rows under new ids. On an error, model and rows are as before.
    pub fn learn(&mut self, new: &Rows) -> Result<Evidence> {
        let new = new.as_kept_by(&self.rows)?;
        let outcome = self.model.learn(&self.rows, &new)?;
        self.rows.append(&new)?;
        Ok(self.accept(outcome))
    }

    /// Replaces the content of existing rows. On an error, model and rows are as before.
    pub fn amend(&mut self, corrected: &Rows) -> Result<Evidence> {
        let corrected = corrected.as_kept_by(&self.rows)?;
        let ids = request::check_corrected(&self.rows, &corrected, self.rows.width())?;
        request::check_outputs(corrected.outputs(), self.rows.outputs())?;
        let outcome = self.model.amend(&self.rows, &corrected)?;
        // The checks above are those of both calls, so that the rows cannot go without their
        // successors coming.
        self.rows.remove(&ids)?;
        self.rows.append(&corrected)?;
        Ok(self.accept(outcome))
    }

    /// Folds everything that waits into the curvature. On an error, the model is as before.
    pub fn settle(&mut self) -> Result<Settled> {
        self.model.settle()
    }

    /// Takes over a new model, and brings its curvature up to date where enough rows wait. A fold
    /// that fails leaves them waiting: the request is done, and must not be reported as failed. Who
    /// asks for the fold itself is told.
    fn accept(&mut self, outcome: Outcome<M>) -> Evidence {
        let Outcome {
            model,
            mut evidence,
        } = outcome;
        self.model = model;
        let settled = match self.settle_after {
            None => self.model.settle_some(),
            Some(rows) if self.model.waiting() >= rows => self.model.settle(),
            Some(_) => Ok(Settled::default()),
        };
        if let Ok(settled) = settled
            && settled.rows > 0
        {
            evidence.refactored |= settled.refactored;
            self.model.update_evidence(&mut evidence);
        }
        evidence
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::evidence::Claim;
    use crate::rows::Dense;

    /// A model that counts its changes and cannot settle.
    #[derive(Debug, Clone, PartialEq)]
    struct UnsettledCount(usize);

    impl UnsettledCount {
        fn changed(&self) -> Outcome<Self> {
            let evidence = request::evidence("count", 0, (0.0, 1.0), "a count", 8);
            Outcome {
                model: Self(self.0 + 1),
                evidence,
            }
        }
    }

    impl Amend for UnsettledCount {
        fn learn(&self, _: &dyn RowStore, _: &Rows) -> Result<Outcome<Self>> {
            Ok(self.changed())
        }

        fn amend(&self, _: &dyn RowStore, _: &Rows) -> Result<Outcome<Self>> {
            Ok(self.changed())
        }

        fn settle(&mut self) -> Result<Settled> {
            Err(Error::Singular { pivot: 0, width: 1 })
        }

        fn update_evidence(&self, _: &mut Evidence) {}

        fn waiting(&self) -> usize {
            self.0
        }
    }

    struct CountRecipe;

    impl Fit for CountRecipe {
        type Model = UnsettledCount;

        fn fit(&self, _: &Rows) -> Result<UnsettledCount> {
            Ok(UnsettledCount(0))
        }
    }

    struct CountForget;

    impl Forget<UnsettledCount> for CountForget {
        fn name(&self) -> &'static str {
            "count"
        }

        fn claim(&self) -> Claim {
            Claim::Exact
        }

        fn forget(
            &self,
            model: &UnsettledCount,
            _: &dyn RowStore,
            _: &[RowId],
        ) -> Result<Outcome<UnsettledCount>> {
            Ok(model.changed())
        }
    }

    fn rows(ids: [u64; 2], value: f64) -> Rows {
        let features = Dense::new(vec![value, value], 1).unwrap();
        Rows::with_ids(ids.map(RowId).into(), features, vec![1.0, 2.0], 1).unwrap()
    }

    fn contents(rows: &Rows) -> Vec<(RowId, f64)> {
        let value = |view: crate::rows::RowView<'_>| (view.id, view.features.entries()[0].1);
        rows.iter().map(value).collect()
    }

    #[test]
    fn a_fold_that_fails_leaves_the_request_done_and_its_rows_waiting() {
        let mut fitted = Fitted::new(&CountRecipe, rows([0, 1], 3.0))
            .unwrap()
            .settle_after(1);
        fitted.learn(&rows([2, 3], 5.0)).unwrap();
        fitted.amend(&rows([0, 1], 5.0)).unwrap();
        fitted.forget(&CountForget, &[RowId(0)]).unwrap();
        assert_eq!(fitted.model(), &UnsettledCount(3));
        assert_eq!(
            contents(fitted.rows()),
            [2, 3, 1].map(|id| (RowId(id), 5.0))
        );
        assert_eq!(fitted.settle(), Err(Error::Singular { pivot: 0, width: 1 }));
        assert_eq!(fitted.model(), &UnsettledCount(3));
    }

    #[test]
    fn rows_of_another_shape_replace_nothing() {
        let mut fitted = Fitted::new(&CountRecipe, rows([0, 1], 3.0)).unwrap();
        let wide = Dense::new(vec![1.0, 2.0], 2).unwrap();
        let wide = Rows::with_ids(vec![RowId(0)], wide, vec![1.0], 1).unwrap();
        assert!(matches!(
            fitted.amend(&wide),
            Err(Error::Shape {
                what: "features",
                ..
            })
        ));
        let two = Rows::with_ids(
            vec![RowId(0)],
            Dense::new(vec![1.0], 1).unwrap(),
            vec![1.0, 2.0],
            2,
        )
        .unwrap();
        assert!(matches!(
            fitted.amend(&two),
            Err(Error::Shape {
                what: "outputs",
                ..
            })
        ));
        assert_eq!(contents(fitted.rows()), [(RowId(0), 3.0), (RowId(1), 3.0)]);
    }
}
