//! Penalised models as families.

use std::any::Any;
use std::sync::Arc;

use super::loss::PenalisedLoss;
use super::{Penalised, PenalisedModel, solver};
use crate::error::{Error, Result};
use crate::evidence::Evidence;
use crate::family::Family;
use crate::methods::{Method, Retrain, TakesMethods, WarmStart};
use crate::models::family::{
    FamilyModel, FamilyRecipe, Model, NamedParameters, Recipe, RecipeDescription, RowsBeside,
    ScoreKind, ShardModel, ShardTrainer,
};
use crate::models::words::{constant_in_words, number_in_words};
use crate::rows::Rows;
use crate::state::ModelState;
use crate::traits::{Fit, Forget};

impl<L: PenalisedLoss> PenalisedModel<L> {
    /// The model of a state, whose numbers are checked.
    fn from_state(state: &ModelState) -> Result<Self> {
        let model: Self = state.head()?;
        let is_sound = |theta: &Vec<f64>| {
            theta.len() == model.width.saturating_add(1)
                && theta.iter().all(|value| value.is_finite())
        };
        if model.parameters.is_empty() || !model.parameters.iter().all(is_sound) {
            return Err(Error::Damaged(
                "the parameters of a penalised model make no sense".into(),
            ));
        }
        model.settings.check()?;
        Ok(model)
    }
}

impl<L: PenalisedLoss> FamilyModel for PenalisedModel<L> {
    fn family(&self) -> Family {
        L::FAMILY
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn features(&self) -> usize {
        self.width
    }

    fn outputs(&self) -> Option<usize> {
        Some(self.parameters.len())
    }

    fn scores(&self) -> ScoreKind {
        ScoreKind::Values
    }

    fn to_state(&self) -> Result<ModelState> {
        ModelState::new(L::FAMILY, self)
    }

    fn parameters(&self) -> Result<NamedParameters> {
        let (coefficients, constants) = Self::parameters(self);
        Ok(NamedParameters::linear(coefficients, constants))
    }

    fn evidence(&self) -> Evidence {
        Self::evidence(self, Method::default().name())
    }

    fn reason_of_auto(&self) -> Option<&'static str> {
        Some("a few Newton steps from where the model stands, on the rows that are left")
    }

    fn iterations(&self) -> Option<usize> {
        Some(self.steps)
    }
}

impl<L: PenalisedLoss> TakesMethods for PenalisedModel<L> {
    fn worker(method: &Method) -> Option<Box<dyn Forget<Self> + '_>> {
        Some(match method {
            Method::Retrain => Box::new(Retrain),
            Method::WarmStart => Box::new(WarmStart),
            Method::Newton(newton) => Box::new(*newton),
            Method::Auto(auto) => Box::new(*auto),
            _ => return None,
        })
    }
}

impl<L: PenalisedLoss> FamilyRecipe for Penalised<L> {
    fn family(&self) -> Family {
        L::FAMILY
    }

    fn describe(&self) -> RecipeDescription {
        RecipeDescription {
            settings: format!(
                "λ = {}, {}",
                number_in_words(self.lambda),
                constant_in_words(self.intercept)
            ),
            lambda: Some(self.lambda),
            intercept: Some(self.intercept),
            ..RecipeDescription::new(L::FAMILY, L::TASK, ScoreKind::Values)
        }
    }

    fn read_model(&self, state: ModelState, _beside: RowsBeside<'_>) -> Result<Model> {
        PenalisedModel::<L>::from_state(&state).map(Model::new)
    }

    fn made(&self, model: &Model) -> bool {
        model
            .get::<PenalisedModel<L>>()
            .is_some_and(|model| model.settings() == self)
    }

    fn shard_trainer(&self) -> Result<Arc<dyn ShardTrainer>> {
        Ok(Arc::new(*self))
    }

    fn with_penalty(&self, lambda: f64) -> Option<Recipe> {
        Some(Self { lambda, ..*self }.into())
    }

    fn bytes_by_passes(&self, features: usize, _outputs: usize) -> Option<u64> {
        Some(solver::bytes_of_sums(features))
    }
}

impl<L: PenalisedLoss> ShardTrainer for Penalised<L> {
    fn train(&self, start: Option<&dyn ShardModel>, rows: &Rows) -> Result<Arc<dyn ShardModel>> {
        let start: Option<&dyn Any> = start.map(|start| start as _);
        Ok(Arc::new(
            match start.and_then(|start| start.downcast_ref::<PenalisedModel<L>>()) {
                Some(start) => self.resume(start, rows)?,
                None => self.fit(rows)?,
            },
        ))
    }

    fn restore(&self, state: ModelState) -> Result<Arc<dyn ShardModel>> {
        Ok(Arc::new(PenalisedModel::<L>::from_state(&state)?))
    }
}

impl<L: PenalisedLoss> ShardModel for PenalisedModel<L> {
    fn to_state(&self) -> Result<ModelState> {
        ModelState::new(L::FAMILY, self)
    }

    fn bytes(&self) -> usize {
        8 * (self.width + 1) * self.parameters.len()
    }
}
