//! A fitted model of any family.

use std::any::Any;
use std::fmt;

use faer::Mat;

use super::{NamedParameters, ScoreKind};
use crate::error::Result;
use crate::evidence::{Evidence, Outcome};
use crate::family::Family;
use crate::methods::{Method, TakesMethods};
use crate::rows::{Features, RowId, RowStore, Rows};
use crate::state::ModelState;
use crate::traits::{Amend, Forget, Predict, Settled};

/// What every family tells of its models. Beside this a model has [`Predict`], [`Amend`],
/// [`TakesMethods`] and `Clone`, from which its changes follow ([`ModelChanges`]).
pub trait FamilyModel: Predict + ModelChanges + fmt::Debug + Any + Send + Sync {
    /// The family.
    fn family(&self) -> Family;

    /// How many rows it stands for.
    fn rows(&self) -> usize;

    /// How many features a row has.
    fn features(&self) -> usize;

    /// How many targets a row has; None where a model does not know.
    fn outputs(&self) -> Option<usize> {
        None
    }

    /// The classes that it was fitted for, where it has one score for each of them, however few
    /// they are.
    fn classes(&self) -> Option<usize> {
        None
    }

    /// What its scores are.
    fn scores(&self) -> ScoreKind;

    /// The model as plain data. Settle it first: waiting changes are not part of the state.
    fn to_state(&self) -> Result<ModelState>;

    /// The parameters by name; refused for a model that has none of its own.
    fn parameters(&self) -> Result<NamedParameters>;

    /// What is known of the model as it stands: its bound, and what stands behind it. The method is
    /// the one that `auto` takes.
    fn evidence(&self) -> Evidence;

    /// How often its curvature was made anew.
    fn refactorisations(&self) -> usize {
        0
    }

    /// Whether a method makes sense for it.
    fn takes(&self, method: &Method) -> bool {
        method.is_for(self.family())
    }

    /// Why a method that suits the family does not suit this model with its settings; None where it
    /// does.
    fn refusal(&self, _method: &Method) -> Option<&'static str> {
        None
    }

    /// Why `auto` takes the method that it takes, where the method does not say so itself.
    fn reason_of_auto(&self) -> Option<&'static str> {
        None
    }

    /// Returns the model with another seed, as a start for retraining; None if it draws nothing.
    fn reseeded(&self, _seed: u64) -> Option<Model> {
        None
    }

    /// Whether rows that left can be named while they wait to be folded out of its sums: the
    /// parameters as one list, and whether they are the minimum. None where that would save
    /// nothing.
    fn quick_state(&self) -> Option<(Vec<f64>, bool)> {
        None
    }

    /// Whether a method reads no rows but those of the request, so that a change costs the same
    /// however many rows there are.
    fn reads_request_only(&self, _method: &Method) -> bool {
        false
    }

    /// Whether it has a weight per column, which is 0 where no row has the column.
    fn has_column_weights(&self) -> bool {
        false
    }

    /// What it can tell beside its parameters, by name: counts, and what a fit derived from its
    /// settings.
    fn facts(&self) -> Vec<(&'static str, Vec<f64>)> {
        Vec::new()
    }

    /// The iterations of its last training; None for a family that does not iterate.
    fn iterations(&self) -> Option<usize> {
        None
    }

    /// The model once all rows of a class count for more or less, and some left or joined; None
    /// where it must be fitted to them.
    fn reweighted(&self, _change: &ClassReweighting<'_>) -> Option<Result<Outcome<Model>>> {
        None
    }

    /// What it would answer for its own rows, or a sample of them, had it been fitted without each
    /// in turn; None where that is no closed form.
    fn leave_one_out(&self, _rows: &Rows) -> Option<Vec<LeftOutRow>> {
        None
    }
}

/// Rows that leave and join while all rows of a class come to count for more or less.
#[derive(Clone, Copy)]
pub struct ClassReweighting<'a> {
    /// What rows of each class counted for, and what they count for now.
    pub weights: &'a [(f64, f64)],
    /// Whether rows have weights of their own beside.
    pub have_weights: bool,
    /// The rows, with the weights that they have now.
    pub rows: &'a dyn RowStore,
    /// The rows that leave.
    pub gone: &'a [RowId],
    /// The rows that join, with the weights that they have now.
    pub new: Option<&'a Rows>,
}

/// What a model would answer for a row that it had not seen.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftOutRow {
    /// The row.
    pub id: RowId,
    /// One number per output.
    pub answers: Vec<f64>,
}

/// The changes of a model, with results of any family. Every family has them from its typed traits.
pub trait ModelChanges {
    /// A copy.
    fn cloned(&self) -> Model;

    /// The model without the rows `gone`. Dead columns are cleared after every method where that is
    /// asked for.
    fn without(
        &self,
        method: &Method,
        clear_dead_columns: bool,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<Model>>;

    /// The model with `new` rows added.
    fn with_new(&self, rows: &dyn RowStore, new: &Rows) -> Result<Outcome<Model>>;

    /// The model with the content of existing rows replaced.
    fn with_corrected(&self, rows: &dyn RowStore, corrected: &Rows) -> Result<Outcome<Model>>;

    /// Folds waiting changes into the curvature.
    fn settle_now(&mut self) -> Result<Settled>;

    /// Does the share of that which is due.
    fn settle_due(&mut self) -> Result<Settled>;

    /// Brings bound and memory in an evidence up to date with this model.
    fn refresh_evidence(&self, evidence: &mut Evidence);

    /// How many changed rows wait for the next settle.
    fn waiting_rows(&self) -> usize;
    /// How many changed rows are better settled than left waiting.
    fn most_waiting_rows(&self) -> usize;
}

impl<M: FamilyModel + Amend + TakesMethods + Clone> ModelChanges for M {
    fn cloned(&self) -> Model {
        Model::new(self.clone())
    }

    fn without(
        &self,
        method: &Method,
        clear_dead_columns: bool,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<Model>> {
        let mut outcome = Forget::<M>::forget(method, self, rows, gone)?;
        if clear_dead_columns {
            M::clear_dead_columns(&mut outcome)?;
        }
        Ok(Model::changed(outcome))
    }

    fn with_new(&self, rows: &dyn RowStore, new: &Rows) -> Result<Outcome<Model>> {
        self.learn(rows, new).map(Model::changed)
    }

    fn with_corrected(&self, rows: &dyn RowStore, corrected: &Rows) -> Result<Outcome<Model>> {
        self.amend(rows, corrected).map(Model::changed)
    }

    fn settle_now(&mut self) -> Result<Settled> {
        self.settle()
    }

    fn settle_due(&mut self) -> Result<Settled> {
        self.settle_some()
    }

    fn refresh_evidence(&self, evidence: &mut Evidence) {
        self.update_evidence(evidence);
    }

    fn most_waiting_rows(&self) -> usize {
        self.most_waiting()
    }

    fn waiting_rows(&self) -> usize {
        self.waiting()
    }
}

/// A fitted model of any family.
#[derive(Debug)]
pub struct Model(Box<dyn FamilyModel>);

impl Model {
    /// A model of a known family.
    pub fn new(model: impl FamilyModel) -> Self {
        Self(Box::new(model))
    }

    fn changed<M: FamilyModel>(outcome: Outcome<M>) -> Outcome<Self> {
        Outcome {
            model: Self::new(outcome.model),
            evidence: outcome.evidence,
        }
    }

    /// The model as one of a known family; None where it is of another.
    pub fn get<M: FamilyModel>(&self) -> Option<&M> {
        let any: &dyn Any = self.0.as_ref();
        any.downcast_ref()
    }

    /// The family.
    pub fn family(&self) -> Family {
        self.0.family()
    }

    /// How many rows it stands for.
    pub fn rows(&self) -> usize {
        self.0.rows()
    }

    /// How many features a row has.
    pub fn features(&self) -> usize {
        self.0.features()
    }

    /// See [`FamilyModel::outputs`].
    pub fn outputs(&self) -> Option<usize> {
        self.0.outputs()
    }

    /// See [`FamilyModel::classes`].
    pub fn classes(&self) -> Option<usize> {
        self.0.classes()
    }

    /// What its scores are.
    pub fn scores(&self) -> ScoreKind {
        self.0.scores()
    }

    /// The model as plain data. Settle it first: waiting changes are not part of the state.
    pub fn to_state(&self) -> Result<ModelState> {
        self.0.to_state()
    }

    /// The parameters by name; refused for a model that has none of its own.
    pub fn parameters(&self) -> Result<NamedParameters> {
        self.0.parameters()
    }

    /// What is known of the model as it stands.
    pub fn evidence(&self) -> Evidence {
        self.0.evidence()
    }

    /// How often its curvature was made anew.
    pub fn refactorisations(&self) -> usize {
        self.0.refactorisations()
    }

    /// See [`FamilyModel::quick_state`].
    pub fn quick_state(&self) -> Option<(Vec<f64>, bool)> {
        self.0.quick_state()
    }

    /// See [`FamilyModel::reads_request_only`].
    pub fn reads_request_only(&self, method: &Method) -> bool {
        self.0.reads_request_only(method)
    }

    /// See [`FamilyModel::facts`].
    pub fn facts(&self) -> Vec<(&'static str, Vec<f64>)> {
        self.0.facts()
    }

    /// See [`FamilyModel::iterations`].
    pub fn iterations(&self) -> Option<usize> {
        self.0.iterations()
    }

    /// What it would answer for its own rows had it been fitted without each in turn, see
    /// [`FamilyModel::leave_one_out`].
    pub fn leave_one_out(&self, rows: &Rows) -> Option<Vec<LeftOutRow>> {
        self.0.leave_one_out(rows)
    }

    /// See [`FamilyModel::reweighted`].
    pub fn reweighted(&self, change: &ClassReweighting<'_>) -> Option<Result<Outcome<Self>>> {
        self.0.reweighted(change)
    }

    pub(super) fn inner(&self) -> &dyn FamilyModel {
        self.0.as_ref()
    }
}

impl Clone for Model {
    fn clone(&self) -> Self {
        self.0.cloned()
    }
}

impl Predict for Model {
    fn predict(&self, features: &Features) -> Result<Mat<f64>> {
        self.0.predict(features)
    }
}

impl Amend for Model {
    fn learn(&self, rows: &dyn RowStore, new: &Rows) -> Result<Outcome<Self>> {
        let outcome = self.0.with_new(rows, new)?;
        self.held_to_tolerance(outcome, rows, &[], new)
    }

    fn amend(&self, rows: &dyn RowStore, corrected: &Rows) -> Result<Outcome<Self>> {
        let outcome = self.0.with_corrected(rows, corrected)?;
        let replaced: Vec<RowId> = corrected.ids().collect();
        self.held_to_tolerance(outcome, rows, &replaced, corrected)
    }

    fn settle(&mut self) -> Result<Settled> {
        self.0.settle_now()
    }

    fn settle_some(&mut self) -> Result<Settled> {
        self.0.settle_due()
    }

    fn update_evidence(&self, evidence: &mut Evidence) {
        self.0.refresh_evidence(evidence);
    }

    fn waiting(&self) -> usize {
        self.0.waiting_rows()
    }

    fn most_waiting(&self) -> usize {
        self.0.most_waiting_rows()
    }
}
