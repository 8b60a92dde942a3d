//! Every contract on one page.

use faer::Mat;

use crate::error::{Error, Result};
use crate::evidence::{Claim, Evidence, Outcome};
use crate::methods::Method;
use crate::rows::{Features, RowId, RowStore, Rows};

/// A recipe that turns rows into a model.
pub trait Fit {
    /// What it makes.
    type Model;

    /// Learns from all rows, from scratch.
    fn fit(&self, rows: &Rows) -> Result<Self::Model>;

    /// Learns from all rows, starting from a model of some of them. The result is what [`fit`](Self::fit) would give, to the
    /// accuracy of the training; a recipe that cannot profit from a start ignores it.
    fn resume(&self, _start: &Self::Model, rows: &Rows) -> Result<Self::Model> {
        self.fit(rows)
    }

    /// The memory that a model holds, for the evidence of those who keep many; 0 where a recipe cannot tell.
    fn bytes(&self, _model: &Self::Model) -> usize {
        0
    }
}

/// A model that scores rows.
pub trait Predict {
    /// One line of scores per row, one column per output.
    fn predict(&self, features: &Features) -> Result<Mat<f64>>;
}

/// A way to take rows out of a fitted model.
///
/// Every implementation passes the suite in [`methods::contract`](crate::methods::contract): it borrows and returns a
/// new value, so that a failure leaves the old model as it was; an empty request changes nothing; an unknown or
/// repeated id is an error that names it; forgetting every row is an error; and what it claims is true.
pub trait Forget<M>: Send + Sync {
    /// Its name in commands and evidence.
    fn name(&self) -> &'static str;

    /// What it promises.
    fn claim(&self) -> Claim;

    /// The model without the rows `gone`. The rows are read from `rows`, which still holds them.
    fn forget(&self, model: &M, rows: &dyn RowStore, gone: &[RowId]) -> Result<Outcome<M>>;
}

/// A model that says what does the work of a method on it. Every [`Method`] is a [`Forget`] of such a model.
pub trait TakesMethods: Sized + 'static {
    /// What does the work; None where the method makes no sense for models of this type.
    fn worker(method: &Method) -> Option<&dyn Forget<Self>>;
}

impl<M: TakesMethods> Forget<M> for Method {
    fn name(&self) -> &'static str {
        Method::name(self)
    }

    fn claim(&self) -> Claim {
        M::worker(self).map_or(Claim::Approximate, |worker| worker.claim())
    }

    fn forget(&self, model: &M, rows: &dyn RowStore, gone: &[RowId]) -> Result<Outcome<M>> {
        match M::worker(self) {
            Some(worker) => worker.forget(model, rows, gone),
            None => Err(Error::Unsupported {
                method: Method::name(self),
                reason: "it is not made for this model; use auto".into(),
            }),
        }
    }
}

/// A model that can also take rows in and correct them, on the same low-rank machinery.
pub trait Amend: Sized {
    /// The model with `new` rows added.
    fn learn(&self, rows: &dyn RowStore, new: &Rows) -> Result<Outcome<Self>>;

    /// The model with the content of existing rows replaced.
    fn amend(&self, rows: &dyn RowStore, corrected: &Rows) -> Result<Outcome<Self>>;

    /// Folds waiting changes into the curvature, so that nothing of a forgotten row is left in it.
    fn settle(&mut self) -> Result<Settled>;

    /// Brings bound and memory in an evidence up to date with this model, as after a settle.
    fn update_evidence(&self, evidence: &mut Evidence);

    /// How many changed rows wait for the next settle.
    fn waiting(&self) -> usize;
}

/// What a settle did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settled {
    /// Rows folded in.
    pub rows: usize,
    /// Whether an update was not good enough and the curvature was factored anew.
    pub refactored: bool,
}
