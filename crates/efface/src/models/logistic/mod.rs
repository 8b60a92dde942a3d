//! Logistic and softmax regression: θ = argmin Σ w_i ℓ(θᵀx_i, y_i) + λ/2 ‖θ‖², with row weights and
//! intercepts that are not penalised. λ is scikit-learn's 1/C.
//!
//! Training is L-BFGS guided by a Hessian (`train.rs`), to a gradient norm of 1e-10 in coordinates
//! where columns have like units (`models/basis.rs`), or as far as rounding lets it. What
//! forgetting needs beside the parameters is kept with them (`curvature.rs`): the Hessian at the
//! optimum and its factor, two matrices of d×d for two classes; for c classes 2(dc)² numbers, the
//! Gram matrix, and an inverse in single precision, a quarter of (dc)². A model of more than 4,096
//! parameters keeps none of them, nor does one of several classes whose rows are fewer than its
//! parameters and quickly read: these forget by passes over their rows (`guide.rs`), in single
//! precision where a step is looked for and in double precision where it is measured
//! (`lane_table.rs` for dense rows, `single_rows.rs` for sparse ones). Where a Hessian of several
//! classes is kept, rows are looked at in single precision to know how good a step was (`look.rs`).
//! How far a model can be from its optimum is known after every request (`bound.rs`).
//!
//! When it fails: a class without rows has no finite intercept, and classes that a plane separates
//! have no finite optimum at λ = 0; both are errors that say so, at fit and at forget, and leave
//! the model as it was.

mod bare;
mod bound;
mod bowl;
pub(crate) mod change;
pub(crate) mod curvature;
mod dead;
mod descent_guide;
mod family;
mod fit;
mod giants;
mod guide;
mod hessian;
mod lane_table;
mod link;
mod look;
mod measure;
mod methods;
pub(crate) mod objective;
pub(crate) mod pass;
mod path;
mod private;
mod profile;
mod reach;
mod reader;
mod request_rows;
mod row_block;
mod sample;
mod settings;
mod single_rows;
mod state;
pub(crate) mod train;
mod waiting_rows;

pub use link::Link;
pub use settings::{Certifier, ClassifierSettings, Logistic, Privacy, Softmax};
pub use state::LogisticHead;

use std::collections::HashSet;
use std::sync::Arc;

use faer::Mat;

use super::basis::Basis;
use super::family::FamilyRecipe;
use super::request;
use crate::error::{Error, Result};
use crate::evidence::{BoundSource, Claim, Evidence, Outcome, Precomputed};
use crate::linalg::par;
use crate::methods::Auto;
use crate::not_covered::NotCovered;
use crate::rows::{Features, RowId, RowStore, Rows};
use crate::traits::{Amend, Fit, Predict, Settled};
pub(crate) use bound::{BoundLedger, RowFacts};
use curvature::{HessianCurvature, SettlingCurvature, StandingHessian};
use objective::{Extra, RowObjective};
use pass::{PassFrame, RowSurvey};
pub(crate) use path::{DescentPath, FollowSettings};
use sample::RowSample;
use train::{TrainedParameters, TrainingLimits};

/// What the evidence calls a remembered run of gradient descent, among what was made ahead of time.
pub(crate) const DESCENT_RUN: &str = "run of gradient descent, parameters and gradients";

/// More parameters than this are too many for a Hessian.
const WIDEST: usize = 4096;

/// A Hessian that takes so many products of numbers is made in single precision, and before
/// training ends, for what it saves there.
const LONG_SUM: f64 = 4e9;

/// A fitted classifier with what it needs in order to forget.
#[derive(Debug, Clone)]
pub struct LogisticModel {
    pub(crate) settings: ClassifierSettings,
    pub(crate) basis: Arc<Basis>,
    pub(crate) extra: Arc<Extra>,
    /// Parameters in the coordinates of `basis`, one column per score.
    pub(crate) theta: Mat<f64>,
    /// What is added to them before anyone sees them; descent to delete only.
    pub(crate) veil: Option<Mat<f64>>,
    pub(crate) rows: usize,
    /// Rows of each class that weigh something.
    pub(crate) class_rows: Vec<u64>,
    pub(crate) standing: Option<StandingHessian>,
    pub(crate) facts: RowFacts,
    pub(crate) ledger: BoundLedger,
    pub(crate) refactorisations: usize,
    /// Steps of the last training; not part of the stored state.
    pub(crate) steps: usize,
    /// Columns that no row has, as the last pass over the rows found them; of use where no Hessian
    /// is kept, and not part of the stored state.
    pub(crate) unseen: Arc<Vec<usize>>,
    /// A run of gradient descent over its rows, where `delta_grad` was asked; not part of the
    /// stored state.
    pub(crate) path: Option<Arc<DescentPath>>,
    /// What steps over the rows are found with; not part of the stored state.
    pub(crate) aids: guide::StepAids,
    /// The fingerprint of its rows, and of those that its noise was drawn for.
    pub(crate) row_set: u64,
    pub(crate) noise_rows: u64,
}

impl Fit for Logistic {
    type Model = LogisticModel;

    fn fit(&self, rows: &Rows) -> Result<LogisticModel> {
        self.settings().fit(rows, None)
    }

    fn fit_store(&self, rows: &dyn RowStore) -> Result<LogisticModel> {
        self.settings().fit(rows, None)
    }

    fn resume(&self, start: &LogisticModel, rows: &Rows) -> Result<LogisticModel> {
        self.settings().fit(rows, Some(start))
    }

    fn class_scores(&self, outputs: usize) -> Option<usize> {
        FamilyRecipe::describe(self).class_scores(outputs)
    }

    fn bytes(&self, model: &LogisticModel) -> usize {
        model.bytes()
    }
}

impl Fit for Softmax {
    type Model = LogisticModel;

    fn fit(&self, rows: &Rows) -> Result<LogisticModel> {
        self.settings().fit(rows, None)
    }

    fn fit_store(&self, rows: &dyn RowStore) -> Result<LogisticModel> {
        self.settings().fit(rows, None)
    }

    fn resume(&self, start: &LogisticModel, rows: &Rows) -> Result<LogisticModel> {
        self.settings().fit(rows, Some(start))
    }

    fn class_scores(&self, outputs: usize) -> Option<usize> {
        FamilyRecipe::describe(self).class_scores(outputs)
    }

    fn bytes(&self, model: &LogisticModel) -> usize {
        model.bytes()
    }
}

impl LogisticModel {
    pub(crate) fn frame(&self) -> PassFrame<'_> {
        PassFrame {
            basis: &self.basis,
            link: self.settings.link,
            outputs: self.theta.ncols(),
            clip: self.settings.is_private(),
            threads: self.settings.logistic.threads,
        }
    }

    pub(crate) fn objective<'a>(&'a self, sample: &'a RowSample<'a>) -> RowObjective<'a> {
        RowObjective {
            sample,
            frame: self.frame(),
            extra: &self.extra,
        }
    }

    pub(crate) fn limits(&self, facts: &RowFacts) -> TrainingLimits {
        let Logistic {
            gradient,
            max_iterations,
            threads,
            curvature,
            ..
        } = self.settings.logistic;
        let parameters = self.theta.nrows() * self.theta.ncols();
        let dense = parameters <= WIDEST;
        let descends = private::descends(&self.settings);
        let nearby = !self.settings.is_private()
            && facts.rows as f64 * (parameters as f64).powi(2) >= LONG_SUM;
        let factor_passes = self.passes_for_a_factor(facts.rows as usize);
        TrainingLimits {
            // Rows that all weigh little have a small gradient everywhere.
            gradient: gradient * facts.scale.min(1.0),
            floor: self.rounding(facts).map(|part| 8.0 * part),
            iterations: max_iterations,
            threads,
            dense,
            factored: dense && factor_passes <= guide::SAVED_PASSES,
            factor_passes,
            keep: curvature && !descends,
            nearby,
            // With one score, a product of matrices in double precision is as fast as all that goes
            // with one in single precision.
            single: nearby && self.outputs() > 1,
        }
    }

    fn par(&self) -> faer::Par {
        par(self.settings.logistic.threads)
    }

    /// The model of these rows, trained from the parameters at hand; and the steps and passes it
    /// took.
    pub(crate) fn trained(mut self, sample: &RowSample<'_>) -> Result<(Self, usize, usize)> {
        let dense = self.theta.nrows() * self.theta.ncols() <= WIDEST;
        let keep = self.limits(&self.facts).keep && self.saves_by_hessian(sample);
        let with_gram = dense && keep && curvature::needs_gram(sample, self.frame());
        let survey = sample.survey(self.frame(), with_gram)?;
        self.check_classes(&survey.class_rows)?;
        let facts = RowFacts::of(&survey);
        let limits = TrainingLimits {
            keep,
            ..self.limits(&facts)
        };
        if !dense
            && self
                .extra
                .penalty
                .iter()
                .skip(self.basis.intercept as usize)
                .any(|p| *p == 0.0)
        {
            return Err(Error::Parameter {
                name: "lambda",
                value: self.settings.logistic.lambda.to_string(),
                range: "above 0 for a model this wide: it has no Hessian that could stand in for a penalty",
            });
        }
        if private::descends(&self.settings) && self.rows > 0 {
            return private::descend(self, sample, &survey);
        }
        let start = std::mem::replace(&mut self.theta, Mat::zeros(0, 0));
        let outputs = start.ncols();
        let objective = RowObjective {
            sample,
            frame: PassFrame {
                outputs,
                ..self.frame()
            },
            extra: &self.extra,
        };
        let trained = match train::train(&objective, start.clone(), None, limits) {
            // What conjugate gradients cannot solve, a factor may.
            Err(Error::NotTrained { .. } | Error::NotConverged { .. })
                if limits.dense && !limits.factored =>
            {
                train::train(
                    &objective,
                    start,
                    None,
                    TrainingLimits {
                        factored: true,
                        ..limits
                    },
                )?
            }
            other => other?,
        };
        let TrainedParameters {
            place,
            bowl,
            aids,
            iterations,
            passes,
        } = trained;
        self.aids = aids;
        self.aids.guide = self.aids.guide.map(|guide| guide.of_rows(self.row_set));
        self.theta = place.theta;
        self.steps = iterations;
        if private::descends(&self.settings) {
            self.clear(&survey.unseen());
            // The first training may take any way to the optimum; only what is near it may be
            // published.
            return private::descend(self, sample, &survey);
        }
        self.settle_at(place.gradient, bowl, survey, sample)?;
        if self.has_no_penalty() && !self.is_determined(sample)? {
            return Err(Error::Separable);
        }
        private::check_start(&self)?;
        let passes = passes + 1 + self.polish(sample)?;
        Ok((self, iterations, passes))
    }

    pub(crate) fn has_no_penalty(&self) -> bool {
        self.extra.penalty.iter().all(|penalty| *penalty == 0.0)
    }

    /// Whether the loss, without a penalty, bends enough where training ended for that to be a
    /// minimum, and not a place on the way to infinity.
    fn is_determined(&self, sample: &RowSample<'_>) -> Result<bool> {
        if self.standing.is_some() {
            return Ok(self.current_bound().absolute.is_finite());
        }
        let mut kept = self.clone();
        let limits = TrainingLimits {
            keep: true,
            ..self.limits(&self.facts)
        };
        let survey = sample.survey(self.frame(), curvature::needs_gram(sample, self.frame()))?;
        let bowl = self.objective(sample).bowl(&self.theta, limits);
        // A Hessian that is numerically singular here was not so when the data determine anything.
        let bowl = match bowl {
            Err(Error::Singular { .. }) => return Ok(false),
            other => other?,
        };
        kept.settle_at(self.ledger.leftover.clone(), Some(bowl), survey, sample)?;
        Ok(kept.current_bound().absolute.is_finite())
    }

    /// Takes over what a pass over the rows found out.
    pub(crate) fn settle_at(
        &mut self,
        mut gradient: Mat<f64>,
        bowl: Option<bowl::QuadraticBowl>,
        survey: RowSurvey,
        sample: &RowSample<'_>,
    ) -> Result<()> {
        self.rows = sample.shape.rows;
        self.class_rows = survey.class_rows.clone();
        self.facts = RowFacts::of(&survey);
        let hidden = self.hidden(&self.facts, &self.theta);
        self.unseen = Arc::new(survey.unseen());
        dead::leave_out(&mut gradient, &self.unseen);
        self.ledger = BoundLedger::measured(gradient, hidden);
        let par = self.par();
        let wrong = bowl.as_ref().map_or(0.0, |bowl| bowl.wrong);
        self.standing = match bowl {
            Some(bowl) => {
                let curvature =
                    HessianCurvature::new(bowl, survey, &self.extra, sample, self.frame())?;
                Some(StandingHessian::new(curvature))
            }
            None => None,
        };
        match &mut self.standing {
            Some(standing) => {
                self.ledger.warp = wrong;
                self.ledger.drift = wrong * standing.base.scales.size * (1.0 + wrong);
                standing.solved = Some(Arc::new(self.ledger.localise(standing, par)));
                self.ledger.anchor_at(&self.theta);
                self.see(sample)?;
            }
            None => self.facts.inverse_norm = self.inverse_norm(sample)?,
        }
        Ok(())
    }

    /// A class without rows pushes its intercept to infinity, unless something is penalised there
    /// too.
    pub(crate) fn check_classes(&self, class_rows: &[u64]) -> Result<()> {
        if class_rows.iter().all(|rows| *rows == 0) {
            return Err(Error::NoWeight);
        }
        match class_rows.iter().position(|rows| *rows == 0) {
            Some(class) if self.extra.least() == 0.0 => Err(Error::EmptyClass {
                class,
                classes: class_rows.len(),
            }),
            _ => Ok(()),
        }
    }

    /// Calls `see` with all rows of a store that holds this model's.
    pub(crate) fn over_all_rows<T>(
        &self,
        rows: &dyn RowStore,
        see: impl FnOnce(&RowSample<'_>) -> Result<T>,
    ) -> Result<T> {
        if rows.is_beyond_memory() {
            return see(&RowSample::passed(self.frame(), rows, None)?);
        }
        let all = rows.all()?;
        see(&RowSample::new(self.frame(), &all, &HashSet::new(), None)?)
    }

    /// The recipe it was fitted with.
    pub fn settings(&self) -> &ClassifierSettings {
        &self.settings
    }

    /// The steps of its last training; 0 for a model that was read back.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// How many features a row has.
    pub fn features(&self) -> usize {
        self.basis.features
    }

    /// How many scores a row has: 1 for two classes, else one per class.
    pub fn outputs(&self) -> usize {
        self.theta.ncols()
    }

    /// How many rows it stands for.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Coefficients, features × outputs, and intercepts. With descent to delete, those that may be
    /// published.
    pub fn parameters(&self) -> (Mat<f64>, Vec<f64>) {
        match &self.veil {
            Some(veil) => self.basis.to_caller(&(&self.theta + veil)),
            None => self.hidden_parameters(),
        }
    }

    fn hidden_parameters(&self) -> (Mat<f64>, Vec<f64>) {
        self.basis.to_caller(&self.theta)
    }

    /// The probability of every class, one line per row.
    pub fn probabilities(&self, features: &Features) -> Result<Mat<f64>> {
        let scores = self.predict(features)?;
        let (outputs, link) = (self.outputs(), self.settings.link);
        let mut probabilities = Mat::zeros(scores.nrows(), link.classes(outputs));
        let mut out = vec![0.0; outputs];
        for row in 0..scores.nrows() {
            let line: Vec<f64> = (0..outputs).map(|c| scores[(row, c)]).collect();
            link.probabilities(&line, &mut out);
            match link {
                Link::Logistic => {
                    link.probabilities(&[-line[0]], &mut out);
                    probabilities[(row, 0)] = out[0];
                    link.probabilities(&line, &mut out);
                    probabilities[(row, 1)] = out[0];
                }
                Link::Softmax => (0..outputs).for_each(|c| probabilities[(row, c)] = out[c]),
            }
        }
        Ok(probabilities)
    }

    pub(crate) fn check_request(&self, rows: &dyn RowStore, gone: &[RowId]) -> Result<()> {
        self.check_outputs(rows.outputs())?;
        request::check_numbers(rows)?;
        request::check_gone(rows, gone, self.features())
    }

    fn check_outputs(&self, found: usize) -> Result<()> {
        request::check_outputs(found, self.outputs())
    }

    /// What is known of the model as a fit left it.
    pub fn evidence_at_optimum(&self) -> Evidence {
        self.evidence("warm_start", Claim::Exact)
    }

    pub(crate) fn evidence(&self, method: &str, claim: Claim) -> Evidence {
        let bound = self.current_bound();
        let mut evidence = request::evidence(method, self.rows, (0.0, 1.0), "", 0);
        evidence.promise = claim;
        evidence.tolerance = (claim == Claim::Exact).then_some(self.settings.exact_tolerance());
        evidence.gradient_norm = bound.gradient;
        evidence.convexity = bound.convexity;
        evidence.bound = bound.absolute;
        evidence.relative_bound = bound.relative;
        evidence.bound_source = bound.source;
        evidence.precomputed = self.precomputed();
        evidence.certificate = private::certificate(self);
        if claim == Claim::Approximate
            && self.ledger.gradient() > 0.0
            && self.ledger.source == BoundSource::Carried
        {
            evidence.not_covered.push(NotCovered::ApproximateStep);
        }
        if self.path.is_some() {
            evidence.not_covered.push(NotCovered::DescentPath);
        }
        if self.ledger.remnant > 0.0 {
            evidence.not_covered.push(NotCovered::DeadColumns {
                norm: self.ledger.remnant,
            });
        }
        let guided = self
            .aids
            .guide
            .as_ref()
            .is_some_and(|guide| guide.row_set != self.row_set);
        if self.ledger.moved > 0.0 && self.standing.is_some() || self.standing.is_none() && guided {
            evidence.kept_beside.push(NotCovered::KeptCurvature);
        }
        evidence
    }

    fn bytes(&self) -> usize {
        let parameters = self.theta.nrows() * self.theta.ncols() * size_of::<f64>();
        parameters
            + self
                .precomputed()
                .iter()
                .map(|part| part.bytes)
                .sum::<usize>()
    }

    fn precomputed(&self) -> Vec<Precomputed> {
        let parts = self
            .standing
            .iter()
            .flat_map(|standing| standing.base.bytes());
        let run = self.path.iter().map(|path| (DESCENT_RUN, path.bytes()));
        let seen = self
            .ledger
            .anchor
            .iter()
            .filter_map(|anchor| anchor.seen.as_ref())
            .map(|seen| seen.bytes());
        let seen: usize = seen.sum();
        let table = self
            .aids
            .table
            .iter()
            .map(|table| ("rows in single precision", table.bytes() + seen));
        parts
            .chain(run)
            .chain(table)
            .map(|(what, bytes)| Precomputed {
                what: what.into(),
                bytes,
            })
            .collect()
    }
}

impl Predict for LogisticModel {
    /// The scores θᵀx + b: log-odds of the second class, or one per class up to a constant.
    fn predict(&self, features: &Features) -> Result<Mat<f64>> {
        request::check_features(features, self.features())?;
        let (coefficients, intercept) = self.parameters();
        let frame = self.frame();
        let mut scores = Mat::zeros(features.rows(), self.outputs());
        for slot in 0..features.rows() {
            let row = features.row(slot);
            let scale = frame.scale(row);
            for (c, b) in intercept.iter().enumerate() {
                scores[(slot, c)] = scale * (row.dot(coefficients.col_as_slice(c)) + b);
            }
        }
        Ok(scores)
    }
}

impl Amend for LogisticModel {
    fn learn(&self, rows: &dyn RowStore, new: &Rows) -> Result<Outcome<Self>> {
        self.check_outputs(new.outputs())?;
        request::check_numbers(new)?;
        request::check_new(rows, new, self.features())?;
        Auto::default().change(self, "learn", rows, &[], Some(new))
    }

    fn amend(&self, rows: &dyn RowStore, corrected: &Rows) -> Result<Outcome<Self>> {
        self.check_outputs(corrected.outputs())?;
        request::check_numbers(corrected)?;
        let ids = request::check_corrected(rows, corrected, self.features())?;
        Auto::default().change(self, "amend", rows, &ids, Some(corrected))
    }

    fn settle(&mut self) -> Result<Settled> {
        if let Some(table) = &mut self.aids.table {
            table.scrub();
        }
        // The gradient that an approximate step left is a combination of the rows that went; only
        // its size is kept.
        self.ledger.forget_direction();
        self.ledger.settle_anchor(&self.theta);
        if let Some(standing) = &mut self.standing {
            standing.solved = None;
        }
        let Some(StandingHessian {
            base,
            pending: Some(pending),
            ..
        }) = &self.standing
        else {
            return Ok(Settled::default());
        };
        let waiting = pending.waiting();
        let SettlingCurvature {
            curvature: settled,
            refactored,
            growth,
        } = base.settled(waiting, Some(pending), &self.extra, self.frame())?;
        let growth = growth.sqrt();
        let rows = waiting.rows();
        self.facts = RowFacts {
            inverse_norm: self.facts.inverse_norm,
            ..RowFacts::of(&settled.survey)
        };
        self.standing = Some(StandingHessian::new(settled));
        self.ledger.leftover_local *= growth;
        self.ledger.unknown_local *= growth;
        self.ledger.warp *= growth * growth;
        self.refactorisations += refactored as usize;
        Ok(Settled { rows, refactored })
    }

    fn settle_some(&mut self) -> Result<Settled> {
        if let Some(table) = &mut self.aids.table {
            table.scrub_own();
        }
        if self.waiting() >= self.most_waiting() {
            self.settle()
        } else {
            Ok(Settled::default())
        }
    }

    fn waiting(&self) -> usize {
        let pending = self
            .standing
            .as_ref()
            .and_then(|standing| standing.pending.as_ref());
        pending.map_or(0, |pending| pending.waiting().rows())
    }

    fn update_evidence(&self, evidence: &mut Evidence) {
        let bound = self.current_bound();
        evidence.bound = bound.absolute;
        evidence.relative_bound = bound.relative;
        evidence.convexity = bound.convexity;
        evidence.precomputed = self.precomputed();
    }
}
