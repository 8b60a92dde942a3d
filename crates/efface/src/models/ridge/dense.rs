//! A ridge model that keeps d×d curvature: exact changes, the bound on their error, and what
//! happens when it is too large.
//!
//! A change is the closed form on kept curvature, and its bound is carried. Where that passes the
//! tolerance the bound is measured and the parameters are refined, both from the sums; then the
//! sums are factored anew and the rows are read; and where the sums themselves are spoilt, the
//! retained rows are fitted from scratch, in coordinates of their own.

use std::borrow::Cow;
use std::sync::Arc;

use faer::Mat;

use super::before::BodyBefore;
use super::bound::{CurvatureQuality, DistanceLedger, GradientAnchor};
use super::build::{BuiltBody, RidgeFrame};
use super::change::{LongResiduals, RidgeChange};
use super::curvature::{CurvatureSolver, factor_of};
use super::fold::PartialFold;
use super::gather::UnfactoredSums;
use super::refine::{RefinementPlan, refine};
use super::sums::{RidgeSums, SignedRows};
use super::waiting::{WaitingChanges, joint_growth};
use super::{Form, GatheredRows, Ridge, RidgeBody, RidgeModel, RidgePenalty, Step};
use crate::error::{Error, Result};
use crate::evidence::{BoundSource, Claim, Outcome};
use crate::linalg::{Cholesky, par};
use crate::rows::{RowId, RowStore, Rows};

/// Above this condition of I − H_D, digits are lost and refinement brings them back.
const REFINE_ABOVE: f64 = 1e4;
/// Above this condition, the closed form is not tried: a leverage of 1 must be found by a
/// factorisation.
pub(super) const HOPELESS: f64 = 1e10;
const MOST_REFINEMENTS: usize = 3;

#[derive(Debug, Clone)]
pub(crate) struct DenseBody {
    /// As of the last settle, like `solver`.
    pub(crate) sums: Arc<RidgeSums>,
    pub(crate) solver: Arc<CurvatureSolver>,
    /// Changes since, each relative to the curvature after the one before.
    pub(crate) pending: Vec<Arc<RidgeChange>>,
    /// Sums and factor with the first of them in them, on their way.
    pub(crate) fold: Option<Arc<PartialFold>>,
    pub(crate) ledger: DistanceLedger,
}

/// Rows on their way in or out, with where the others can be read.
#[derive(Clone, Copy)]
pub(crate) struct ChangeRequest<'a> {
    pub(crate) store: &'a dyn RowStore,
    pub(crate) gone: &'a [RowId],
    pub(crate) new: Option<&'a Rows>,
}

impl ChangeRequest<'_> {
    /// The rows as they are after the change, in memory.
    pub(super) fn retained(&self) -> Result<Rows> {
        let mut left = self
            .store
            .all()?
            .filter(crate::models::request::stays(self.gone));
        if let Some(new) = self.new {
            left.append(new)?;
        }
        Ok(left)
    }

    fn rows_after(&self) -> usize {
        self.store.len() - self.gone.len() + self.new.map_or(0, |new| new.len())
    }
}

/// A model fitted to rows, and how many of them had to be read again for it.
pub(super) fn fit(
    settings: &Ridge,
    form: Form,
    rows: &Rows,
) -> Result<(RidgeModel, Option<usize>)> {
    let basis = settings.basis(rows);
    let penalty = RidgePenalty::new(&basis, settings.lambda);
    let mut frame = RidgeFrame::new(*settings, Arc::new(basis), Arc::new(penalty));
    frame.engine = rows.gram_engine().cloned();
    let threads = par(settings.threads);
    let sums = UnfactoredSums::gather(rows, &frame.basis, &frame.penalty.values, threads)?;
    let BuiltBody {
        body,
        theta,
        reread,
    } = frame.build(form, sums, None, &|| Ok(Some(Cow::Borrowed(rows))))?;
    Ok((frame.model(theta, rows.len(), body), reread))
}

impl RidgeFrame {
    pub(crate) fn model(self, theta: Mat<f64>, rows: usize, body: DenseBody) -> RidgeModel {
        let Self {
            settings,
            basis,
            penalty,
            ..
        } = self;
        RidgeModel {
            settings,
            basis,
            penalty,
            theta,
            rows,
            body: RidgeBody::Dense(body),
        }
    }
}

impl DenseBody {
    /// A body about whose parameters nothing is known yet.
    pub(crate) fn new(sums: RidgeSums, solver: CurvatureSolver) -> Self {
        let nothing = CurvatureQuality {
            caller_norm: f64::INFINITY,
            spread_norm: f64::INFINITY,
            sums_error: f64::INFINITY,
            entry_error: 0.0,
            settled_error: f64::INFINITY,
            solver_error: f64::INFINITY,
            kept_error: 0.0,
            growth: 1.0,
            carried_growth: 1.0,
            measured_after: 0,
            solves_measured_after: 0,
        };
        let empty = GradientAnchor {
            theta: Mat::new(),
            gradient: Mat::new(),
            gradient_low: Mat::new(),
            error: f64::INFINITY,
            spread_error: 0.0,
        };
        Self {
            sums: Arc::new(sums),
            solver: Arc::new(solver),
            pending: Vec::new(),
            fold: None,
            ledger: DistanceLedger::new(empty, nothing),
        }
    }

    /// A⁻¹·rhs, waiting changes and `more` included.
    pub(crate) fn solve(
        &self,
        rhs: &Mat<f64>,
        more: Option<&RidgeChange>,
        par: faer::Par,
    ) -> Mat<f64> {
        let mut solved = rhs.clone();
        self.solver.solve(solved.as_mut(), par);
        for change in self.pending.iter().map(Arc::as_ref).chain(more) {
            change.correct(rhs, &mut solved, par);
        }
        solved
    }

    /// The parameters that minimise the loss of the current rows.
    pub(crate) fn optimum<'a>(&self, model: &'a RidgeModel) -> Cow<'a, Mat<f64>> {
        if self.ledger.at_optimum {
            return Cow::Borrowed(&model.theta);
        }
        let par = par(model.settings.threads);
        let mut theta = model.theta.clone();
        for _ in 0..2 {
            let gradient = self.survey(&self.ledger, &theta, None, par).gradient;
            theta -= self.solve(&gradient, None, par);
        }
        clear(&mut theta, &self.unsupported(None));
        Cow::Owned(theta)
    }

    pub(crate) fn unsupported(&self, more: Option<&SignedRows>) -> Vec<usize> {
        self.sums
            .unsupported(self.pending.iter().map(|change| &change.rows).chain(more))
    }

    /// The rows with everything a method may ask about them; Err when some leverage is too near 1
    /// for the closed form.
    pub(crate) fn change(
        &self,
        gathered: GatheredRows,
        theta: &Mat<f64>,
        par: faer::Par,
    ) -> std::result::Result<RidgeChange, Box<GatheredRows>> {
        // A row that joins, or that joined or was corrected since the last settle, is not the one
        // the solver may keep.
        let joined = |id: &RowId| {
            self.pending.iter().any(|change| {
                change
                    .ids
                    .iter()
                    .zip(&change.rows.signs)
                    .any(|(there, sign)| *sign > 0.0 && there == id)
            })
        };
        let GatheredRows { ids, roots, rows } = &gathered;
        let known = rows.signs.iter().all(|sign| *sign < 0.0) && !ids.iter().any(joined);
        let mut zt = self.solver.rows(known.then_some(ids), &rows.xt, roots, par);
        let waiting = WaitingChanges::correct(&self.pending, &rows.xt, &mut zt, par);
        RidgeChange::new(gathered, zt, theta, &self.sums.spread, &waiting, par)
    }

    /// By how much A⁻¹ grows through all changes that wait and this one. Together they make it grow
    /// far less than the product of what each does: rows point in different directions.
    fn joint_growth(&self, change: &RidgeChange) -> f64 {
        let product = self.ledger.waiting_growth * change.inverse_norm_growth();
        if self.pending.is_empty() {
            return product;
        }
        product.min(joint_growth(change))
    }

    /// The exact change.
    pub(crate) fn exact(
        &self,
        model: &RidgeModel,
        method: &str,
        request: ChangeRequest<'_>,
    ) -> Result<Outcome<RidgeModel>> {
        self.solver.warm(request.gone);
        let gathered = GatheredRows::read(
            &model.basis,
            model.outputs(),
            request.store,
            request.gone,
            request.new,
        )?;
        let read = gathered.ids.len();
        let par = self.par_for(model, read);
        let start = self.optimum(model);
        let trusted = self.ledger.quality.is_trusted();
        let (next, step) = match self.change(gathered, &start, par) {
            Ok(change) if trusted && change.core.condition <= HOPELESS => {
                self.closed_form(model, &start, change, request, par)?
            }
            Ok(change) => {
                let step = Step {
                    leverage: Some(change.core.leverage),
                    condition: Some(change.core.condition),
                    ..Step::default()
                };
                self.rebuilt(model, &change.rows, request, step)?
            }
            Err(gathered) => {
                let step = Step {
                    leverage: Some(1.0),
                    condition: Some(f64::INFINITY),
                    ..Step::default()
                };
                self.rebuilt(model, &gathered.rows, request, step)?
            }
        };
        let mut evidence = next.evidence(method, Claim::Exact);
        step.record(&mut evidence, read);
        Ok(Outcome {
            model: next,
            evidence,
        })
    }

    fn closed_form(
        &self,
        model: &RidgeModel,
        start: &Mat<f64>,
        change: RidgeChange,
        request: ChangeRequest<'_>,
        par: faer::Par,
    ) -> Result<(RidgeModel, Step)> {
        let coefficients = change.coefficients();
        let mut theta = change.moved(start, &coefficients, par);
        let unsupported = self.unsupported(Some(&change.rows));
        let cleared = super::dead::weights_in(model, &theta, &unsupported);
        clear(&mut theta, &unsupported);
        let mut ledger = self.ledger_after(&change);
        if self.ledger.at_optimum {
            ledger.energy = self.energy_after(&change, &coefficients, &theta);
        }
        let (next, mut step) = self.accept(model, change, theta, ledger, request, par)?;
        step.cleared = cleared;
        Ok((next, step))
    }

    /// The energy bound after the closed form, carried from the one before it.
    fn energy_after(&self, change: &RidgeChange, coefficients: &Mat<f64>, theta: &Mat<f64>) -> f64 {
        let added = change.energy_added(
            coefficients,
            theta,
            &self.sums,
            &self.ledger.quality,
            self.waiting_error(&self.ledger.quality, None),
        );
        self.ledger.energy + added * self.ledger.joined_growth.sqrt()
    }

    /// What is known after a change of parameters of which nothing is known.
    fn ledger_after(&self, change: &RidgeChange) -> DistanceLedger {
        let mut ledger = self.ledger.clone();
        ledger.waiting_growth = self.joint_growth(change);
        ledger.joined_growth *= 1.0 + change.joined();
        ledger.quality.growth *= change.inverse_norm_growth();
        ledger.limit_growth();
        ledger.energy = f64::INFINITY;
        ledger.measured = None;
        ledger.source = BoundSource::Carried;
        ledger.distance = 0.0;
        ledger.at_optimum = true;
        ledger
    }

    /// The model with `theta` after `change`, made as good as its tolerance asks.
    pub(crate) fn accept(
        &self,
        model: &RidgeModel,
        change: RidgeChange,
        mut theta: Mat<f64>,
        mut ledger: DistanceLedger,
        request: ChangeRequest<'_>,
        par: faer::Par,
    ) -> Result<(RidgeModel, Step)> {
        let tolerance = model.settings.tolerance;
        let mut step = Step {
            leverage: Some(change.core.leverage),
            condition: Some(change.core.condition),
            ..Step::default()
        };
        let doubtful = change.core.condition > REFINE_ABOVE;
        if doubtful || ledger.relative(&model.basis, &theta) > tolerance {
            self.count_directions(&mut ledger, &change);
            let unsupported = self.unsupported(Some(&change.rows));
            let plan = RefinementPlan {
                goal: tolerance,
                least: doubtful as usize,
                most: MOST_REFINEMENTS,
            };
            let mut survey = |ledger: &mut DistanceLedger, theta: &Mat<f64>| {
                Ok(self.survey(ledger, theta, Some(&change), par))
            };
            let solve = |gradient: &Mat<f64>| self.solve(gradient, Some(&change), par);
            let mut improve = |ledger: &mut DistanceLedger, theta: &mut Mat<f64>| {
                refine(
                    ledger,
                    theta,
                    &model.basis,
                    &unsupported,
                    plan,
                    &mut survey,
                    &solve,
                )
            };
            step.refinements = improve(&mut ledger, &mut theta)?;
            // Norms take two dozen solves to measure: only where the bound needs them.
            if ledger.relative(&model.basis, &theta) > tolerance && ledger.quality.is_loose() {
                self.measure_norms(&mut ledger, &model.frame(), &change, par);
                step.refinements += improve(&mut ledger, &mut theta)?;
            }
        }
        if ledger.relative(&model.basis, &theta) > tolerance {
            return self.rebuilt(model, &change.rows, request, step);
        }
        let body = self.waiting_with(change, ledger);
        Ok((
            model.with(theta, request.rows_after(), RidgeBody::Dense(body)),
            step,
        ))
    }

    /// The body after a change, which waits.
    fn waiting_with(&self, change: RidgeChange, ledger: DistanceLedger) -> Self {
        let mut pending = self.pending.clone();
        pending.push(Arc::new(change));
        let Self {
            sums, solver, fold, ..
        } = self;
        Self {
            sums: sums.clone(),
            solver: solver.clone(),
            pending,
            fold: fold.clone(),
            ledger,
        }
    }

    /// Makes the model from sums with the change in them, factored anew, and from the rows where
    /// the sums are not enough.
    fn rebuilt(
        &self,
        model: &RidgeModel,
        rows: &SignedRows,
        request: ChangeRequest<'_>,
        mut step: Step,
    ) -> Result<(RidgeModel, Step)> {
        let tolerance = model.settings.tolerance;
        let refactorisations = self.ledger.refactorisations + 1;
        step.refactored = true;
        let leverage = step.leverage.unwrap_or(1.0).min(1.0);
        let explained = |error| match error {
            Error::Singular { .. } if !request.gone.is_empty() => Error::LeverageOne {
                leverage,
                lambda: model.settings.lambda,
            },
            other => other,
        };
        if !self.is_spoilt(rows) {
            let (sums, anchor) = self.settled(&model.frame(), rows);
            let retained = || Ok(Some(Cow::Owned(request.retained()?)));
            let before = BodyBefore { body: self, anchor };
            let built = model
                .frame()
                .build(self.form(), sums, Some(before), &retained);
            let BuiltBody {
                mut body,
                theta,
                reread,
            } = built.map_err(explained)?;
            if body.ledger.relative(&model.basis, &theta) <= tolerance {
                body.ledger.refactorisations = refactorisations;
                step.reread = reread;
                return Ok((
                    model.with(theta, request.rows_after(), RidgeBody::Dense(body)),
                    step,
                ));
            }
        }
        let retained = request.retained()?;
        let settings = Ridge {
            form: self.form(),
            ..model.settings
        };
        let (mut next, _) = fit(&settings, self.form(), &retained).map_err(explained)?;
        next.settings = model.settings;
        step.reread = Some(retained.len());
        if let RidgeBody::Dense(body) = &mut next.body {
            body.ledger.refactorisations = refactorisations;
        }
        Ok((next, step))
    }

    /// The model with `theta` as its parameters after `change`, whatever method they come from. The
    /// bound is their distance to the closed form, which is at hand, plus the closed form's own.
    pub(crate) fn approximately(
        &self,
        model: &RidgeModel,
        change: RidgeChange,
        start: &Mat<f64>,
        theta: Mat<f64>,
        par: faer::Par,
    ) -> Result<(RidgeModel, Step)> {
        let coefficients = change.coefficients();
        let mut exact = change.moved(start, &coefficients, par);
        let unsupported = self.unsupported(Some(&change.rows));
        clear(&mut exact, &unsupported);
        let mut ledger = self.ledger_after(&change);
        if self.ledger.at_optimum {
            ledger.energy = self.energy_after(&change, &coefficients, &exact);
        }
        if ledger.relative(&model.basis, &exact) > model.settings.tolerance {
            self.tighten(&mut ledger, &model.frame(), &change, par);
            let survey = self.survey(&ledger, &exact, Some(&change), par);
            let solved = self.solve(&survey.gradient, Some(&change), par);
            ledger.note(&survey, &solved, &model.basis);
        }
        // What is known of the closed form becomes a plain distance, to which that of the
        // parameters is added.
        ledger.distance = model.basis.caller_norm(&(&theta - &exact)) * (1.0 + 1e-9);
        ledger.at_optimum = false;
        let step = Step {
            leverage: Some(change.core.leverage),
            condition: Some(change.core.condition),
            ..Step::default()
        };
        let rows = model.rows - change.ids.len();
        let body = self.waiting_with(change, ledger);
        Ok((model.with(theta, rows, RidgeBody::Dense(body)), step))
    }

    /// What is known of parameters of which a method knows nothing: to be measured.
    pub(crate) fn unknown_after(&self, change: &RidgeChange) -> DistanceLedger {
        self.ledger_after(change)
    }

    /// The rows to forget, ready for a method that needs the closed form to exist.
    pub(crate) fn prepare<'a>(
        &self,
        model: &'a RidgeModel,
        method: &'static str,
        store: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<(RidgeChange, Cow<'a, Mat<f64>>, faer::Par)> {
        let par = self.par_for(model, gone.len());
        let gathered = GatheredRows::read(&model.basis, model.outputs(), store, gone, None)?;
        let start = self.optimum(model);
        match self.change(gathered, &start, par) {
            Ok(change) if change.core.condition <= HOPELESS => Ok((change, start, par)),
            _ if model.settings.lambda == 0.0 => {
                Err(Error::LeverageOne { leverage: 1.0, lambda: model.settings.lambda })
            }
            _ => Err(Error::Unsupported {
                method,
                reason: "a leverage is too near 1 for I − H_D to be inverted; use exact, which refactors"
                    .into(),
            }),
        }
    }

    /// The model from the sums without these rows.
    pub(crate) fn summed(
        &self,
        model: &RidgeModel,
        request: ChangeRequest<'_>,
        step: Step,
    ) -> Result<(RidgeModel, Step)> {
        let gathered = GatheredRows::read(
            &model.basis,
            model.outputs(),
            request.store,
            request.gone,
            None,
        )?;
        self.rebuilt(model, &gathered.rows, request, step)
    }

    /// Sums and anchor with all waiting changes and these rows in them.
    pub(crate) fn settled(
        &self,
        frame: &RidgeFrame,
        rows: &SignedRows,
    ) -> (RidgeSums, GradientAnchor) {
        let mut sums = (*self.sums).clone();
        let mut anchor = (*self.ledger.anchor).clone();
        let waiting = self.pending.iter().map(|change| &change.rows);
        if let Some(all) = SignedRows::stack(waiting.chain(std::iter::once(rows))) {
            let emptied = sums.apply(&all, &frame.penalty.values, par(frame.settings.threads));
            anchor.take_rows(&all, &emptied, &frame.penalty);
        }
        (sums, anchor)
    }

    /// The factor of the Hessian without these rows: the old one downdated where there is one and
    /// it can be.
    pub(crate) fn factor_after(
        &self,
        model: &RidgeModel,
        rows: &SignedRows,
        par: faer::Par,
    ) -> Result<Cholesky> {
        let waiting = self.pending.iter().map(|change| &change.rows);
        let all = SignedRows::stack(waiting.chain(std::iter::once(rows)));
        let updated = match (self.solver.factor(), all) {
            (Some(factor), Some(all)) => factor.clone().changed(all.xt.as_ref(), &all.signs),
            _ => None,
        };
        if let Some(updated) = updated {
            return Ok(updated);
        }
        let (sums, _) = self.settled(&model.frame(), rows);
        factor_of(&sums, &model.penalty, None, None, par).map_err(|_| Error::LeverageOne {
            leverage: 1.0,
            lambda: model.settings.lambda,
        })
    }

    pub(crate) fn waiting(&self) -> usize {
        self.pending.iter().map(|change| change.ids.len()).sum()
    }

    pub(crate) fn form(&self) -> Form {
        self.solver.form()
    }

    pub(crate) fn precomputed(&self) -> Vec<(&'static str, usize)> {
        let width = self.sums.a.nrows();
        let mut parts = vec![("sums XᵀWX and XᵀWY", self.sums.bytes())];
        parts.extend(self.solver.precomputed(width));
        if !self.pending.is_empty() {
            parts.push((
                "changes waiting to be folded in",
                self.waiting() * width * 16,
            ));
        }
        if self.fold.is_some() {
            parts.push(("sums and factor of a fold under way", 2 * width * width * 8));
        }
        parts
    }

    /// Threads pay only for large requests; a small one is done before they have started.
    pub(crate) fn par_for(&self, model: &RidgeModel, k: usize) -> faer::Par {
        let work = match self.form() {
            Form::Rows => k * k * self.sums.a.nrows(),
            _ => k * self.sums.a.nrows() * self.sums.a.nrows(),
        };
        if work > 20_000_000 {
            par(model.settings.threads)
        } else {
            faer::Par::Seq
        }
    }
}

impl GradientAnchor {
    /// Takes signed rows into the gradient at the anchor; columns `emptied` have no row any more.
    pub(super) fn take_rows(
        &mut self,
        rows: &SignedRows,
        emptied: &[usize],
        penalty: &RidgePenalty,
    ) {
        let residuals = LongResiduals::of(rows, &self.theta);
        residuals.add_to_gradient(rows, &mut self.gradient, &mut self.gradient_low);
        // A row that is in the sums has an energy norm of at most 1.
        self.error += residuals.lost;
        for &j in emptied {
            for output in 0..self.theta.ncols() {
                self.gradient[(j, output)] = penalty.values[j] * self.theta[(j, output)];
                self.gradient_low[(j, output)] = 0.0;
            }
        }
    }
}

impl RidgeModel {
    pub(crate) fn frame(&self) -> RidgeFrame {
        RidgeFrame::new(self.settings, self.basis.clone(), self.penalty.clone())
    }

    /// A model of this recipe and these coordinates with other parameters, rows and body.
    pub(crate) fn with(&self, theta: Mat<f64>, rows: usize, body: RidgeBody) -> Self {
        Self {
            settings: self.settings,
            basis: self.basis.clone(),
            penalty: self.penalty.clone(),
            theta,
            rows,
            body,
        }
    }
}

pub(crate) fn clear(theta: &mut Mat<f64>, columns: &[usize]) {
    for &j in columns {
        theta.row_mut(j).fill(0.0);
    }
}
