//! A model together with its rows in memory: the two change together or not at all.

use crate::error::Result;
use crate::evidence::{Evidence, Outcome};
use crate::rows::{RowId, Rows};
use crate::traits::{Amend, Fit, Forget};

/// A fitted model and the rows it stands for.
#[derive(Debug, Clone)]
pub struct Fitted<M> {
    model: M,
    rows: Rows,
    settle_after: usize,
}

impl<M: Amend> Fitted<M> {
    /// Fits a model and keeps the rows with it.
    pub fn new<F: Fit<Model = M>>(recipe: &F, rows: Rows) -> Result<Self> {
        Ok(Self { model: recipe.fit(&rows)?, rows, settle_after: 32 })
    }

    /// How many changed rows may wait before the curvature is brought up to date; 32 unless said otherwise.
    pub fn settle_after(mut self, rows: usize) -> Self {
        self.settle_after = rows.max(1);
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
        self.accept(outcome)
    }

    /// Adds rows under new ids.
    pub fn learn(&mut self, new: &Rows) -> Result<Evidence> {
        let new = new.as_kept_by(&self.rows)?;
        let outcome = self.model.learn(&self.rows, &new)?;
        self.rows.append(&new)?;
        self.accept(outcome)
    }

    /// Replaces the content of existing rows.
    pub fn amend(&mut self, corrected: &Rows) -> Result<Evidence> {
        let corrected = corrected.as_kept_by(&self.rows)?;
        let outcome = self.model.amend(&self.rows, &corrected)?;
        let ids: Vec<RowId> = corrected.ids().collect();
        self.rows.remove(&ids)?;
        self.rows.append(&corrected)?;
        self.accept(outcome)
    }

    fn accept(&mut self, outcome: Outcome<M>) -> Result<Evidence> {
        let Outcome { model, mut evidence } = outcome;
        self.model = model;
        if self.model.waiting() >= self.settle_after {
            evidence.refactored |= self.model.settle()?.refactored;
            self.model.update_evidence(&mut evidence);
        }
        Ok(evidence)
    }
}
