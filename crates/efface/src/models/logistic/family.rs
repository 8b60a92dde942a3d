//! Logistic and softmax regression as families of models.

use std::sync::Arc;

use super::{Certifier, ClassifierSettings, Link, Logistic, LogisticModel, Privacy, Softmax};
use crate::error::Result;
use crate::evidence::{Claim, Evidence, Outcome};
use crate::family::Family;
use crate::methods::{
    Certified, DescentToDelete, Influence, Method, Retrain, TakesMethods, WarmStart,
};
use crate::models::family::{
    FamilyModel, FamilyRecipe, LinearScorer, Model, ModelScorer, NamedParameters, Recipe,
    RecipeDescription, RecipeTask, RowsBeside, ScoreKind, ShardModel, ShardTrainer, no_shards,
};
use crate::models::words::{constant_in_words, number_in_words};
use crate::rows::{RowId, RowStore, Rows};
use crate::state::ModelState;
use crate::traits::Forget;

/// What a change of a model file costs, in nanoseconds of the processor: an entry of a kept Hessian
/// that is read, factored and written; a number of a row that is read; and the same in all passes
/// over it, for every class.
const ENTRY_IN_FILE: f64 = 60.0;
const NUMBER_IN_FILE: f64 = 24.0;
const NUMBER_IN_PASSES: f64 = 3.0;

/// The Hessian of so few parameters takes milliseconds, whatever is done with it.
const FEW_PARAMETERS: usize = 1024;

impl ClassifierSettings {
    fn family(&self) -> Family {
        match self.link {
            Link::Logistic => Family::Logistic,
            Link::Softmax => Family::Softmax,
        }
    }

    fn describe(&self) -> RecipeDescription {
        let Logistic {
            lambda,
            intercept,
            privacy,
            ..
        } = self.logistic;
        let noise = privacy.map_or_else(
            String::new,
            |Privacy {
                 epsilon,
                 delta,
                 certifier,
                 ..
             }| {
                let way = match certifier {
                    Certifier::Removal { .. } => "certified removal",
                    Certifier::Descent { .. } => "descent to delete",
                };
                format!(
                    ", {way} at ε = {}, δ = {}",
                    number_in_words(epsilon),
                    number_in_words(delta)
                )
            },
        );
        let task = match self.link {
            Link::Logistic => RecipeTask::TwoClasses,
            Link::Softmax => RecipeTask::ManyClasses,
        };
        RecipeDescription {
            settings: format!(
                "λ = {}, {}{noise}",
                number_in_words(lambda),
                constant_in_words(intercept)
            ),
            lambda: Some(lambda),
            intercept: Some(intercept),
            is_certified: privacy.is_some(),
            ..RecipeDescription::new(self.family(), task, ScoreKind::LogOdds)
        }
    }

    /// Rounds of an approximate method leave a model without its curvature, which makes it no other
    /// model.
    fn made(&self, model: &Model) -> bool {
        model.get::<LogisticModel>().is_some_and(|model| {
            let curvature = model.settings().logistic.curvature;
            *model.settings()
                == Self {
                    logistic: self.logistic.curvature(curvature),
                    ..*self
                }
        })
    }

    fn read_scorer(state: ModelState) -> Result<ModelScorer> {
        let (coefficients, intercept) = LogisticModel::from_state(state)?.parameters();
        Ok(LinearScorer::new(&coefficients, intercept).into())
    }
}

impl FamilyModel for LogisticModel {
    fn family(&self) -> Family {
        self.settings().family()
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
        ScoreKind::LogOdds
    }

    fn to_state(&self) -> Result<ModelState> {
        Self::to_state(self)
    }

    fn parameters(&self) -> Result<NamedParameters> {
        let (coefficients, intercept) = Self::parameters(self);
        Ok(NamedParameters::linear(coefficients, intercept))
    }

    fn evidence(&self) -> Evidence {
        let settings = self.settings().logistic;
        let Some(privacy) = settings.privacy else {
            let mut evidence = Self::evidence(self, Method::default().name(), Claim::Approximate);
            evidence.tolerance = Some(settings.tolerance);
            return evidence;
        };
        let method = match privacy.certifier {
            Certifier::Removal { .. } => Method::Certified,
            Certifier::Descent { .. } => Method::DescentToDelete,
        };
        let claim = Claim::Certified {
            epsilon: privacy.epsilon,
            delta: privacy.delta,
        };
        Self::evidence(self, method.name(), claim)
    }

    fn refactorisations(&self) -> usize {
        self.refactorisations
    }

    fn has_column_weights(&self) -> bool {
        true
    }

    fn refusal(&self, method: &Method) -> Option<&'static str> {
        let certified = self.settings().logistic.privacy.is_some();
        (certified && method.tolerance().is_some()).then_some(
            "a certified model answers to its budget and not to a distance; leave out the tolerance",
        )
    }

    fn reason_of_auto(&self) -> Option<&'static str> {
        let certified = self.settings().logistic.privacy.is_some();
        certified.then_some("the noise that the model was fitted with decides")
    }

    fn iterations(&self) -> Option<usize> {
        Some(self.steps())
    }
}

impl TakesMethods for LogisticModel {
    fn worker(method: &Method) -> Option<Box<dyn Forget<Self> + '_>> {
        Some(match method {
            Method::Retrain => Box::new(Retrain),
            Method::Newton(newton) => Box::new(*newton),
            Method::Influence => Box::new(Influence),
            Method::ProjectionResidual(projection) => Box::new(*projection),
            Method::WarmStart => Box::new(WarmStart),
            Method::DeltaGrad(replay) => Box::new(*replay),
            Method::Certified => Box::new(ByNoiseOfModel(Method::Certified)),
            Method::DescentToDelete => Box::new(ByNoiseOfModel(Method::DescentToDelete)),
            Method::Auto(auto) => Box::new(*auto),
            _ => return None,
        })
    }

    fn clear_dead_columns(outcome: &mut Outcome<Self>) -> Result<()> {
        outcome.clear_dead_columns();
        Ok(())
    }
}

/// `certified` or `descent_to_delete` with the ε and δ that a model was fitted with.
struct ByNoiseOfModel(Method);

impl Forget<LogisticModel> for ByNoiseOfModel {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn claim(&self) -> Claim {
        Claim::Approximate
    }

    fn forget(
        &self,
        model: &LogisticModel,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<LogisticModel>> {
        match self.0 {
            Method::Certified => Certified::of(model)?.forget(model, rows, gone),
            _ => DescentToDelete::of(model)?.forget(model, rows, gone),
        }
    }
}

impl FamilyRecipe for Logistic {
    fn family(&self) -> Family {
        Family::Logistic
    }

    fn describe(&self) -> RecipeDescription {
        self.settings().describe()
    }

    fn read_model(&self, state: ModelState, _beside: RowsBeside<'_>) -> Result<Model> {
        LogisticModel::from_state(state).map(Model::new)
    }

    fn made(&self, model: &Model) -> bool {
        self.settings().made(model)
    }

    fn read_scorer(&self, state: ModelState) -> Result<ModelScorer> {
        ClassifierSettings::read_scorer(state)
    }

    fn shard_trainer(&self) -> Result<Arc<dyn ShardTrainer>> {
        if self.privacy.is_some() {
            return Err(no_shards(
                "a certificate of (ε, δ) speaks of one model, and shards are many; fit without shards, or without ε",
            ));
        }
        Ok(Arc::new(self.curvature(false).settings()))
    }

    /// Rounds on a classifier leave it without its curvature, and retraining gives it back.
    fn as_kept_by(&self, model: &Model) -> Recipe {
        let kept = model
            .get::<LogisticModel>()
            .map(|model| model.settings().logistic.curvature);
        self.curvature(kept.unwrap_or(self.curvature)).into()
    }

    fn with_secret(&self, seed: u64) -> Option<Recipe> {
        self.privacy
            .map(|privacy| self.privacy(privacy.seed(seed)).into())
    }

    fn on_threads(&self, threads: usize) -> Recipe {
        self.threads(threads).into()
    }

    fn without_curvature(&self) -> Recipe {
        self.curvature(false).into()
    }

    fn with_penalty(&self, lambda: f64) -> Option<Recipe> {
        Some(Self { lambda, ..*self }.into())
    }

    fn bytes_by_passes(&self, features: usize, outputs: usize) -> Option<u64> {
        Some(super::fit::bytes_of_sums(features, outputs))
    }
}

impl FamilyRecipe for Softmax {
    fn family(&self) -> Family {
        Family::Softmax
    }

    fn describe(&self) -> RecipeDescription {
        self.settings().describe()
    }

    fn read_model(&self, state: ModelState, _beside: RowsBeside<'_>) -> Result<Model> {
        LogisticModel::from_state(state).map(Model::new)
    }

    fn made(&self, model: &Model) -> bool {
        self.settings().made(model)
    }

    fn read_scorer(&self, state: ModelState) -> Result<ModelScorer> {
        ClassifierSettings::read_scorer(state)
    }

    fn shard_trainer(&self) -> Result<Arc<dyn ShardTrainer>> {
        Ok(Arc::new(self.curvature(false).settings()))
    }

    /// A change of a file reads, factors and writes the Hessian that is kept in it. With many
    /// classes passes over the rows, which take none of that, soon cost less, and so does the fit.
    fn for_file_of(&self, rows: &Rows) -> Recipe {
        let numbers: usize = rows.iter().map(|row| row.features.stored_values()).sum();
        let parameters = (rows.width() + self.intercept as usize) * rows.outputs();
        let by_hessian = ENTRY_IN_FILE * (parameters as f64).powi(2);
        let by_passes =
            numbers as f64 * (NUMBER_IN_FILE + NUMBER_IN_PASSES * rows.outputs() as f64);
        // Without a penalty only the Hessian tells whether there is an optimum.
        let keeps = parameters <= FEW_PARAMETERS || self.lambda == 0.0 || by_hessian <= by_passes;
        self.curvature(self.curvature && keeps).into()
    }

    /// Rounds on a classifier leave it without its curvature, and retraining gives it back.
    fn as_kept_by(&self, model: &Model) -> Recipe {
        let kept = model
            .get::<LogisticModel>()
            .map(|model| model.settings().logistic.curvature);
        self.curvature(kept.unwrap_or(self.curvature)).into()
    }

    fn on_threads(&self, threads: usize) -> Recipe {
        self.threads(threads).into()
    }

    fn without_curvature(&self) -> Recipe {
        self.curvature(false).into()
    }

    fn with_penalty(&self, lambda: f64) -> Option<Recipe> {
        Some(Self { lambda, ..*self }.into())
    }

    fn bytes_by_passes(&self, features: usize, outputs: usize) -> Option<u64> {
        Some(super::fit::bytes_of_sums(features, outputs))
    }
}

impl ShardTrainer for ClassifierSettings {
    fn train(&self, start: Option<&dyn ShardModel>, rows: &Rows) -> Result<Arc<dyn ShardModel>> {
        let start: Option<&dyn std::any::Any> = start.map(|start| start as _);
        let start = start.and_then(|start| start.downcast_ref::<LogisticModel>());
        Ok(Arc::new(self.fit(rows, start)?))
    }

    fn restore(&self, state: ModelState) -> Result<Arc<dyn ShardModel>> {
        Ok(Arc::new(LogisticModel::from_state(state)?))
    }
}

impl ShardModel for LogisticModel {
    fn to_state(&self) -> Result<ModelState> {
        Self::to_state(self)
    }

    /// Parameters and what is left of their gradient.
    fn bytes(&self) -> usize {
        16 * (self.features() + 1) * self.outputs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Dense;

    #[test]
    fn a_file_keeps_the_hessian_where_changes_cost_less_with_it() {
        let kept = |lambda: f64, width: usize, classes: usize| {
            let features = Dense::new(vec![1.0; 300 * width], width).unwrap();
            let target = |at: usize| (at / classes % classes == at % classes) as u8 as f64;
            let targets = (0..300 * classes).map(target).collect();
            let rows = Rows::new(features, targets, classes).unwrap();
            let recipe: Recipe = Softmax::new(lambda).into();
            let without = recipe.without_curvature();
            assert!(
                without.for_file_of(&rows) == without,
                "what was asked for is not undone"
            );
            recipe.for_file_of(&rows) == recipe
        };
        assert!(kept(1.0, 8, 4), "a Hessian of 36 parameters costs nothing");
        assert!(
            !kept(1.0, 150, 10),
            "one of 1,510 costs more than passes over 300 rows"
        );
        assert!(
            kept(0.0, 150, 10),
            "without a penalty, only a Hessian tells whether there is an optimum"
        );
    }
}
