//! Taking rows out of the head, by every method of the core that its loss allows, and by algorithm 5 of Cao et al. (2022).
//!
//! | method | squared loss | cross-entropy | reads |
//! |---|---|---|---|
//! | [`Exact`](HeadMethod::Exact) | exact | refused | the rows to forget |
//! | [`Newton`](HeadMethod::Newton) | exact | approximate, or as near as its steps | the rows to forget; more steps read all |
//! | [`Influence`](HeadMethod::Influence) | approximate | approximate | the rows to forget |
//! | [`ProjectionResidual`](HeadMethod::ProjectionResidual) | approximate | approximate | the rows to forget; later rounds read all |
//! | [`Summation`](HeadMethod::Summation) | exact | refused | the rows to forget |
//! | [`WarmStart`](HeadMethod::WarmStart) | refused | exact | all rows |
//! | [`RetrainHead`](HeadMethod::RetrainHead) | exact | exact | all rows |
//!
//! "Exact" speaks of the head on the features of a fixed encoder. What the encoder learned from the rows is another matter and
//! stands under `not_covered`.

use std::borrow::Cow;
use std::collections::HashSet;

use efface::methods::{Auto, Exact, Influence, Newton, ProjectionResidual, Retrain, Summation, WarmStart};
use efface::{
    Error as CoreError, Fit, Forget, LogisticModel, Outcome, RidgeModel, RowId, RowStore, RowView, Rows,
};

use crate::error::{Error, Result};
use crate::head::{Head, wrap};

/// How the head forgets.
#[derive(Debug, Clone)]
pub enum HeadMethod {
    /// The closed form; squared loss only.
    Exact,
    /// Newton steps on the retained loss.
    Newton(Newton),
    /// One step with the Hessian of all rows.
    Influence,
    /// Algorithm 5.
    ProjectionResidual(ProjectionRounds),
    /// Subtracted sums; squared loss only.
    Summation,
    /// Training from the old parameters; cross-entropy only.
    WarmStart,
    /// The core's own choice.
    Auto(Auto),
    /// A new head on the retained rows' features.
    RetrainHead,
}

/// Algorithm 5: rounds of projection residual updates of the last layer.
///
/// A round moves W by α times the projection, onto the span of the removed rows' features, of the step to the retained
/// optimum: for squared loss that optimum itself, for cross-entropy the Newton step at the current W. It ends after T rounds,
/// or when a round moved W by no more than the tolerance.
///
/// Squared loss needs no repetition: every round takes the same share α of what is left of one fixed projection, so T rounds
/// are one step of 1 − (1 − α)ᵀ, and with α = 1 the second round moves nothing. For cross-entropy the first round reads the
/// removed rows only; later ones need the gradient at the new W, hence every retained row, and the head keeps no curvature
/// afterwards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProjectionRounds {
    /// T, at least 1.
    pub rounds: usize,
    /// α, above 0 and at most 1.
    pub step: f64,
    /// Where ‖ΔW‖ of a round ends the rounds; 0 or more.
    pub tolerance: f64,
}

impl Default for ProjectionRounds {
    fn default() -> Self {
        Self { rounds: 1, step: 1.0, tolerance: 1e-8 }
    }
}

impl HeadMethod {
    /// Every method at its defaults, under the names of the command.
    pub fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "exact" => Self::Exact,
            "newton" => Self::Newton(Newton::default()),
            "influence" => Self::Influence,
            "projection_residual" => Self::ProjectionResidual(ProjectionRounds::default()),
            "summation" => Self::Summation,
            "warm_start" => Self::WarmStart,
            "auto" => Self::Auto(Auto::default()),
            "retrain_head" => Self::RetrainHead,
            _ => return None,
        })
    }

    /// Its name in commands and evidence.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Newton(_) => "newton",
            Self::Influence => "influence",
            Self::ProjectionResidual(_) => "projection_residual",
            Self::Summation => "summation",
            Self::WarmStart => "warm_start",
            Self::Auto(_) => "auto",
            Self::RetrainHead => "retrain_head",
        }
    }

    /// The head without the rows `gone`, whose features are read from `encoded`.
    pub fn forget(&self, head: &Head, encoded: &dyn RowStore, gone: &[RowId]) -> Result<Outcome<Head>> {
        let mut outcome = match head {
            Head::Ridge(model) => wrap(self.ridge(model, encoded, gone)?, Head::Ridge),
            Head::Classifier(model) => wrap(self.classifier(model, encoded, gone)?, Head::Classifier),
        };
        if let Self::RetrainHead = self {
            outcome.evidence.method = self.name().into();
        }
        Ok(outcome)
    }

    fn ridge(&self, model: &RidgeModel, rows: &dyn RowStore, gone: &[RowId]) -> Result<Outcome<RidgeModel>> {
        let method: &dyn Forget<RidgeModel> = match self {
            Self::Exact => &Exact,
            Self::Newton(newton) => newton,
            Self::Influence => &Influence,
            Self::Summation => &Summation,
            Self::Auto(auto) => auto,
            Self::RetrainHead => &Retrain,
            Self::ProjectionResidual(rounds) => return rounds.ridge(model, rows, gone),
            Self::WarmStart => return self.refuse("a ridge head has a closed form: use exact"),
        };
        Ok(method.forget(model, rows, gone)?)
    }

    fn classifier(
        &self,
        model: &LogisticModel,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<LogisticModel>> {
        let method: &dyn Forget<LogisticModel> = match self {
            Self::Newton(newton) => newton,
            Self::Influence => &Influence,
            Self::WarmStart => &WarmStart,
            Self::Auto(auto) => auto,
            Self::RetrainHead => &Retrain,
            Self::ProjectionResidual(rounds) => return rounds.classifier(model, rows, gone),
            Self::Exact | Self::Summation => {
                return self.refuse(
                    "cross-entropy has no closed form: use newton or warm_start, or fit a ridge head",
                );
            }
        };
        Ok(method.forget(model, rows, gone)?)
    }

    fn refuse<T>(&self, reason: &str) -> Result<T> {
        Err(CoreError::Unsupported { method: self.name(), reason: reason.into() }.into())
    }
}

impl ProjectionRounds {
    fn check(&self) -> Result<()> {
        let refuse = |name, value: String, range| Err(Error::Setting { name, value, range });
        if self.rounds == 0 {
            return refuse("rounds", "0".into(), "at least 1");
        }
        if !(self.step > 0.0 && self.step <= 1.0) {
            return refuse("step", self.step.to_string(), "above 0 and at most 1");
        }
        if !self.tolerance.is_finite() || self.tolerance < 0.0 {
            return refuse("tolerance", self.tolerance.to_string(), "finite and 0 or more");
        }
        Ok(())
    }

    fn ridge(&self, model: &RidgeModel, rows: &dyn RowStore, gone: &[RowId]) -> Result<Outcome<RidgeModel>> {
        self.check()?;
        let whole = ProjectionResidual { step: 1.0 }.forget(model, rows, gone)?;
        let full = Head::Ridge(whole.model.clone()).distance(&Head::Ridge(model.clone()));
        // Round t moves by α(1 − α)^(t−1) of the whole.
        let (mut rounds, mut left) = (0, 1.0);
        while rounds < self.rounds {
            let moved = self.step * left * full;
            left *= 1.0 - self.step;
            rounds += 1;
            if moved <= self.tolerance {
                break;
            }
        }
        let mut outcome = match left == 0.0 {
            true => whole,
            false => ProjectionResidual { step: 1.0 - left }.forget(model, rows, gone)?,
        };
        outcome.evidence.iterations = rounds;
        Ok(outcome)
    }

    fn classifier(
        &self,
        model: &LogisticModel,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<LogisticModel>> {
        self.check()?;
        let update = ProjectionResidual { step: self.step };
        if self.rounds == 1 || gone.is_empty() {
            return Ok(update.forget(model, rows, gone)?);
        }
        rows.check(gone)?;
        // A twin without curvature takes every gradient and Hessian at the parameters in use, which is what later rounds are
        // about; the kept curvature would see its own linear picture only, in which the first round leaves nothing to do.
        let settings = model.settings().logistic.curvature(false);
        let all = rows.all()?;
        let bare = match model.outputs() {
            1 => settings.resume(model, &all)?,
            _ => settings.softmax().resume(model, &all)?,
        };
        let mut outcome = update.forget(&bare, rows, gone)?;
        let mut moved = distance(&bare, &outcome.model);
        let (mut rounds, mut read) = (1, all.len() + outcome.evidence.rows_read);
        // The rows are out of the loss after the first round; what later rounds want of them is their span.
        let weightless = Weightless { rows, gone: gone.iter().copied().collect() };
        while rounds < self.rounds && moved > self.tolerance {
            let next = update.forget(&outcome.model, &weightless, gone)?;
            moved = distance(&outcome.model, &next.model);
            read += next.evidence.rows_read;
            rounds += 1;
            outcome = next;
        }
        outcome.evidence.iterations = rounds;
        outcome.evidence.rows_read = read;
        outcome.evidence.precomputed.clear();
        Ok(outcome)
    }
}

fn distance(a: &LogisticModel, b: &LogisticModel) -> f64 {
    Head::Classifier(a.clone()).distance(&Head::Classifier(b.clone()))
}

/// Rows of which some count for nothing.
struct Weightless<'a> {
    rows: &'a dyn RowStore,
    gone: HashSet<RowId>,
}

impl RowStore for Weightless<'_> {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn width(&self) -> usize {
        self.rows.width()
    }

    fn outputs(&self) -> usize {
        self.rows.outputs()
    }

    fn is_sparse(&self) -> bool {
        self.rows.is_sparse()
    }

    fn holds_word_ids(&self) -> bool {
        self.rows.holds_word_ids()
    }

    fn contains(&self, id: RowId) -> efface::Result<bool> {
        self.rows.contains(id)
    }

    fn visit(&self, ids: &[RowId], see: &mut dyn FnMut(usize, RowView<'_>)) -> efface::Result<()> {
        self.rows.visit(ids, &mut |at, view| {
            let weight = if self.gone.contains(&view.id) { 0.0 } else { view.weight };
            see(at, RowView { weight, ..view });
        })
    }

    fn all(&self) -> efface::Result<Cow<'_, Rows>> {
        let rows = self.rows.all()?;
        let weights =
            rows.iter().map(|view| if self.gone.contains(&view.id) { 0.0 } else { view.weight }).collect();
        // Slots of rows that left earlier would not match the weights: copy what is there.
        Ok(Cow::Owned(rows.filter(|_| true).weighted(weights)?))
    }
}
