//! Ridge regression as a family of models.

use std::sync::Arc;

use super::batches::RidgeBatches;
use super::{Form, Ridge, RidgeModel, RidgeState};
use crate::error::Result;
use crate::evidence::{Claim, Evidence, Outcome};
use crate::family::Family;
use crate::methods::{Exact, Influence, Method, Newton, Retrain, Summation, TakesMethods};
use crate::models::family::{
    BatchedFit, FamilyModel, FamilyRecipe, LeftOutRow, LinearScorer, Model, ModelScorer,
    NamedParameters, Recipe, RecipeDescription, RecipeTask, RowsBeside, ScoreKind, ShardModel,
    ShardTrainer,
};
use crate::models::words::{constant_in_words, number_in_words};
use crate::rows::{RowStore, Rows};
use crate::state::ModelState;
use crate::traits::{Fit, Forget};

impl FamilyModel for RidgeModel {
    fn family(&self) -> Family {
        Family::Ridge
    }

    fn rows(&self) -> usize {
        Self::rows(self)
    }

    fn features(&self) -> usize {
        Self::features(self)
    }

    fn outputs(&self) -> Option<usize> {
        Some(Self::outputs(self))
    }

    fn scores(&self) -> ScoreKind {
        ScoreKind::Values
    }

    fn to_state(&self) -> Result<ModelState> {
        Self::to_state(self)?.into_model_state()
    }

    fn parameters(&self) -> Result<NamedParameters> {
        let (coefficients, intercept) = Self::parameters(self);
        Ok(NamedParameters::linear(coefficients, intercept))
    }

    fn evidence(&self) -> Evidence {
        Self::evidence(self, Method::Exact.name(), Claim::Exact)
    }

    fn refactorisations(&self) -> usize {
        Self::refactorisations(self)
    }

    fn has_column_weights(&self) -> bool {
        true
    }

    fn refusal(&self, method: &Method) -> Option<&'static str> {
        matches!(method, Method::Newton(set) if *set != Newton::default()).then_some(
            "one step is the minimum of a squared loss, and its bound is always measured; leave out steps and measure",
        )
    }

    fn quick_state(&self) -> Option<(Vec<f64>, bool)> {
        Some(Self::quick_state(self))
    }

    fn leave_one_out(&self, rows: &Rows) -> Option<Vec<LeftOutRow>> {
        Self::leave_one_out(self, rows)
    }

    fn reads_request_only(&self, method: &Method) -> bool {
        *method != Method::Retrain && self.form() != Form::Iterative
    }
}

impl TakesMethods for RidgeModel {
    fn worker(method: &Method) -> Option<Box<dyn Forget<Self> + '_>> {
        Some(match method {
            Method::Retrain => Box::new(Retrain),
            Method::Exact => Box::new(Exact),
            Method::Newton(newton) => Box::new(*newton),
            Method::Influence => Box::new(Influence),
            Method::ProjectionResidual(projection) => Box::new(*projection),
            Method::Summation => Box::new(Summation),
            Method::Auto(auto) => Box::new(*auto),
            _ => return None,
        })
    }

    fn clear_dead_columns(outcome: &mut Outcome<Self>) -> Result<()> {
        outcome.clear_dead_columns()
    }
}

impl FamilyRecipe for Ridge {
    fn family(&self) -> Family {
        Family::Ridge
    }

    fn describe(&self) -> RecipeDescription {
        let settings = format!(
            "λ = {}, {}, {} form",
            number_in_words(self.lambda),
            constant_in_words(self.intercept),
            self.form.name()
        );
        RecipeDescription {
            settings,
            lambda: Some(self.lambda),
            intercept: Some(self.intercept),
            form: Some(self.form),
            ..RecipeDescription::new(Family::Ridge, RecipeTask::Numbers, ScoreKind::Values)
        }
    }

    fn read_model(&self, state: ModelState, beside: RowsBeside<'_>) -> Result<Model> {
        let mut state = RidgeState::from_model_state(state)?;
        // A state holds sums, whatever the form, so that the recipe decides which form the model
        // has, if it does decide.
        let form = if self.form == Form::Auto {
            state.settings.form
        } else {
            self.form
        };
        state.settings = self.form(form);
        let model = match beside {
            RowsBeside::None => RidgeModel::from_state(&state),
            RowsBeside::Kept(rows) => RidgeModel::from_state_with_rows(&state, rows),
            RowsBeside::Gone(gone) => {
                // Rows that left are in the stored sums, and no longer rows of the model.
                state.rows = state.rows.saturating_sub(gone.len());
                RidgeModel::from_state_without(&state, gone)
            }
        };
        model.map(Model::new)
    }

    fn in_batches(&self, rows: usize) -> Option<Box<dyn BatchedFit>> {
        Some(Box::new(RidgeBatches::new(self, rows)))
    }

    fn made(&self, model: &Model) -> bool {
        model.get::<RidgeModel>().is_some()
    }

    fn read_scorer(&self, state: ModelState) -> Result<ModelScorer> {
        let (coefficients, intercept) = RidgeState::from_model_state(state)?.parameters()?;
        Ok(LinearScorer::new(&coefficients, intercept).into())
    }

    fn shard_trainer(&self) -> Result<Arc<dyn ShardTrainer>> {
        Ok(Arc::new(*self))
    }

    /// The inverse would be made anew in twice the time of a factor, and the rows of XA⁻¹ in
    /// O(nd²), only to be thrown away.
    fn for_single_change(&self) -> Recipe {
        let form = match self.form {
            Form::Inverse | Form::Rows => Form::Factor,
            form => form,
        };
        self.form(form).into()
    }

    /// What `auto` chose.
    fn as_kept_by(&self, model: &Model) -> Recipe {
        match model.get::<RidgeModel>() {
            Some(model) if self.form == Form::Auto => self.form(model.form()).into(),
            _ => (*self).into(),
        }
    }

    fn on_threads(&self, threads: usize) -> Recipe {
        self.threads(threads).into()
    }

    fn with_penalty(&self, lambda: f64) -> Option<Recipe> {
        Some(Self { lambda, ..*self }.into())
    }

    fn has_leave_one_out(&self) -> bool {
        self.form != Form::Iterative
    }
}

/// A shard keeps the parameters alone, because training is a closed form that needs no start.
impl ShardTrainer for Ridge {
    fn train(&self, _start: Option<&dyn ShardModel>, rows: &Rows) -> Result<Arc<dyn ShardModel>> {
        let (coefficients, constants) = self.fit(rows)?.parameters();
        Ok(Arc::new(LinearScorer::new(&coefficients, constants)))
    }

    fn restore(&self, state: ModelState) -> Result<Arc<dyn ShardModel>> {
        Ok(Arc::new(LinearScorer::from_state(&state)?))
    }
}
