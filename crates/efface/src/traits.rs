//! Every contract on one page.

use faer::Mat;

use crate::error::Result;
use crate::evidence::{Claim, Evidence, Outcome};
use crate::rows::{Features, RowId, RowStore, Rows};

/// A recipe that turns rows into a model.
pub trait Fit {
    /// What it makes.
    type Model;

    /// Learns from all rows, from scratch.
    fn fit(&self, rows: &Rows) -> Result<Self::Model>;

    /// Learns from all rows, starting from a model of some of them. The result is what
    /// [`fit`](Self::fit) would give, to the accuracy of the training; a recipe that cannot profit
    /// from a start ignores it.
    fn resume(&self, _start: &Self::Model, rows: &Rows) -> Result<Self::Model> {
        self.fit(rows)
    }

    /// Learns from all rows of a store, from scratch. A recipe that reads rows by passes takes a
    /// store [beyond memory](RowStore::is_beyond_memory); others refuse it.
    fn fit_store(&self, rows: &dyn RowStore) -> Result<Self::Model> {
        self.fit(&*rows.all()?)
    }

    /// Returns how many scores a model has whose rows have so many targets, if these targets name
    /// classes: a 1 among zeros, or one target, whose sign tells two classes apart. None if targets
    /// are numbers.
    fn class_scores(&self, _outputs: usize) -> Option<usize> {
        None
    }

    /// The memory that a model holds, for the evidence of those who keep many; 0 where a recipe
    /// cannot tell.
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
/// Every implementation passes the suite in [`methods::contract`](crate::methods::contract): it
/// borrows and returns a new value, so that a failure leaves the old model as it was; an empty
/// request changes nothing; an unknown or repeated id is an error that names it; forgetting every
/// row is an error; and what it claims is true.
pub trait Forget<M>: Send + Sync {
    /// Its name in commands and evidence.
    fn name(&self) -> &'static str;

    /// What it promises.
    fn claim(&self) -> Claim;

    /// The model without the rows `gone`. The rows are read from `rows`, which still holds them.
    fn forget(&self, model: &M, rows: &dyn RowStore, gone: &[RowId]) -> Result<Outcome<M>>;
}

/// A model that can also take rows in and correct them, on the same low-rank machinery.
pub trait Amend: Sized {
    /// The model with `new` rows added.
    fn learn(&self, rows: &dyn RowStore, new: &Rows) -> Result<Outcome<Self>>;

    /// The model with the content of existing rows replaced.
    fn amend(&self, rows: &dyn RowStore, corrected: &Rows) -> Result<Outcome<Self>>;

    /// Folds waiting changes into the curvature, so that nothing of a forgotten row is left in it.
    fn settle(&mut self) -> Result<Settled>;

    /// Does the share of settling that is due after a request. A model that can fold its changes
    /// little by little does so, and says so when it is done; others settle once enough rows wait.
    fn settle_some(&mut self) -> Result<Settled> {
        if self.waiting() >= self.most_waiting() {
            self.settle()
        } else {
            Ok(Settled::default())
        }
    }

    /// Brings bound and memory in an evidence up to date with this model, as after a settle.
    fn update_evidence(&self, evidence: &mut Evidence);

    /// How many changed rows wait for the next settle.
    fn waiting(&self) -> usize;

    /// How many changed rows are better settled than left waiting.
    fn most_waiting(&self) -> usize {
        32
    }
}

/// What a settle did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settled {
    /// Rows folded in.
    pub rows: usize,
    /// Whether an update was not good enough and the curvature was factored anew.
    pub refactored: bool,
}
