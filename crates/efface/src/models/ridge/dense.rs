//! A ridge model that keeps d×d curvature: exact changes, the bound on their error, refinement, and settling.

use std::borrow::Cow;
use std::sync::Arc;

use faer::{Accum, Mat};

use super::Basis;
use super::change::{Change, residuals};
use super::curvature::{KeptSource, Solver};
use super::sums::{SignedRows, Sums};
use super::{Body, Form, Gathered, Ledger, Penalty, Ridge, RidgeModel, Step};
use crate::error::{Error, Result};
use crate::evidence::{BoundSource, Claim, Outcome};
use crate::linalg::{Cholesky, UNIT, column_norm, multiply, norm, par};
use crate::rows::{RowId, RowStore, Rows};

/// Above this condition of I − H_D, digits are lost and refinement brings them back.
const REFINE_ABOVE: f64 = 1e4;
/// Above this condition, the closed form is not tried: a leverage of 1 must be found by a factorisation.
const HOPELESS: f64 = 1e10;
const MAX_REFINEMENTS: usize = 3;

#[derive(Debug, Clone)]
pub(crate) struct DenseBody {
    /// As of the last settle, like `solver`.
    pub(crate) sums: Arc<Sums>,
    pub(crate) solver: Arc<Solver>,
    /// Changes since, each relative to the curvature after the one before.
    pub(crate) pending: Vec<Arc<Change>>,
    pub(crate) ledger: Ledger,
}

impl DenseBody {
    pub(crate) fn fit(
        settings: &Ridge,
        form: Form,
        rows: &Rows,
        basis: &Basis,
        penalty: &Penalty,
    ) -> Result<(Self, Mat<f64>)> {
        let sums = Sums::gather(rows, basis, &penalty.values, par(settings.threads))?;
        let source = || Ok(Some(KeptSource { rows: Cow::Borrowed(rows), basis }));
        Self::build(settings, form, sums, penalty, &source)
    }

    /// Factor, solve, refine once, and measure what came out.
    pub(crate) fn build<'a>(
        settings: &Ridge,
        form: Form,
        sums: Sums,
        penalty: &Penalty,
        rows: &dyn Fn() -> Result<Option<KeptSource<'a>>>,
    ) -> Result<(Self, Mat<f64>)> {
        let par = par(settings.threads);
        if !sums.is_finite() {
            return Err(Error::Overflow);
        }
        // Column 0 has the total weight where there is an intercept.
        if settings.intercept && sums.support[0] == 0 {
            return Err(Error::NoWeight);
        }
        let solver = Solver::build(form, &sums, &penalty.values, rows, par)?;
        let mut theta = sums.b.clone();
        solver.solve(theta.as_mut(), par);
        let ledger = Ledger {
            gradient: 0.0,
            source: BoundSource::Measured,
            inverse_norm: 0.0,
            measured_inverse_norm: 0.0,
            distance: 0.0,
            at_optimum: true,
            refactorisations: 0,
        };
        let mut body = Self { sums: Arc::new(sums), solver: Arc::new(solver), pending: Vec::new(), ledger };
        body.measure_inverse_norm(penalty, par);
        let mut gradient = body.gradient(&theta, None, par);
        let mut step = gradient.clone();
        body.solver.solve(step.as_mut(), par);
        let refined = &theta - &step;
        let refined_gradient = body.gradient(&refined, None, par);
        if norm(&refined_gradient) < norm(&gradient) {
            theta = refined;
            gradient = refined_gradient;
        }
        body.ledger.gradient = norm(&gradient);
        Ok((body, theta))
    }

    /// Aθ − b over the settled sums, the waiting changes and `more`.
    pub(crate) fn gradient(&self, theta: &Mat<f64>, more: Option<&SignedRows>, par: faer::Par) -> Mat<f64> {
        let mut gradient = self.sums.b.clone();
        multiply(gradient.as_mut(), Accum::Replace, self.sums.a.as_ref(), theta.as_ref(), 1.0, par);
        gradient -= &self.sums.b;
        for rows in self.pending.iter().map(|change| &change.rows).chain(more) {
            let mut signed = residuals(rows, theta, par);
            super::change::apply_signs(&mut signed, &rows.signs);
            super::change::add_product(&mut gradient, &rows.xt, &signed, -1.0, par);
        }
        for j in self.unsupported(more) {
            gradient.row_mut(j).fill(0.0);
        }
        gradient
    }

    /// A⁻¹·rhs, waiting changes and `more` included.
    pub(crate) fn solve(&self, rhs: &Mat<f64>, more: Option<&Change>, par: faer::Par) -> Mat<f64> {
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
            let gradient = self.gradient(&theta, None, par);
            theta -= self.solve(&gradient, None, par);
        }
        clear(&mut theta, &self.unsupported(None));
        Cow::Owned(theta)
    }

    pub(crate) fn unsupported(&self, more: Option<&SignedRows>) -> Vec<usize> {
        self.sums.unsupported(self.pending.iter().map(|change| &change.rows).chain(more))
    }

    /// The rows with everything a method may ask about them; Err when some leverage is too near 1 for the closed form.
    pub(crate) fn change(
        &self,
        gathered: Gathered,
        theta: &Mat<f64>,
        par: faer::Par,
    ) -> std::result::Result<Change, Box<Gathered>> {
        // A row that joins, or that joined or was corrected since the last settle, is not the one the solver may keep.
        let joined = |id: &RowId| {
            self.pending.iter().any(|change| {
                change.ids.iter().zip(&change.rows.signs).any(|(there, sign)| *sign > 0.0 && there == id)
            })
        };
        let Gathered { ids, roots, rows } = &gathered;
        let known = rows.signs.iter().all(|sign| *sign < 0.0) && !ids.iter().any(joined);
        let mut solved = self.solver.rows(known.then_some(ids), &rows.xt, roots, par);
        for waiting in &self.pending {
            let along = waiting.correct(&rows.xt, &mut solved.zt, par);
            solved.missed = solved.missed.and_then(|missed| waiting.pass_on(missed, &along));
        }
        if let (Some(missed), false) = (&mut solved.missed, self.pending.is_empty()) {
            for (k, missed) in missed.iter_mut().enumerate() {
                *missed += 4.0 * UNIT * self.sums.size * column_norm(&solved.zt, k);
            }
        }
        Change::new(gathered, solved, theta, par)
    }

    /// The exact change.
    pub(crate) fn exact(
        &self,
        model: &RidgeModel,
        method: &str,
        store: &dyn RowStore,
        gone: &[RowId],
        new: Option<&Rows>,
    ) -> Result<Outcome<RidgeModel>> {
        self.solver.warm(gone);
        let gathered = Gathered::read(&model.basis, model.outputs(), store, gone, new)?;
        let read = gathered.ids.len();
        let par = self.par_for(model, read);
        let start = self.optimum(model);
        let (next, step) = match self.change(gathered, &start, par) {
            Ok(change) if change.core.condition <= HOPELESS => {
                self.closed_form(model, &start, change, store, new, par)?
            }
            Ok(change) => {
                let step = Step {
                    leverage: Some(change.core.leverage),
                    condition: Some(change.core.condition),
                    ..Step::default()
                };
                self.rebuilt(model, &change.rows, &change.ids, store, new, step)?
            }
            Err(gathered) => {
                let step = Step { leverage: Some(1.0), condition: Some(f64::INFINITY), ..Step::default() };
                self.rebuilt(model, &gathered.rows, &gathered.ids, store, new, step)?
            }
        };
        let mut evidence = next.evidence(method, Claim::Exact);
        step.record(&mut evidence, read);
        Ok(Outcome { model: next, evidence })
    }

    fn closed_form(
        &self,
        model: &RidgeModel,
        start: &Mat<f64>,
        change: Change,
        store: &dyn RowStore,
        new: Option<&Rows>,
        par: faer::Par,
    ) -> Result<(RidgeModel, Step)> {
        let coefficients = change.coefficients();
        let mut theta = change.moved(start, &coefficients, par);
        let unsupported = self.unsupported(Some(&change.rows));
        clear(&mut theta, &unsupported);
        let mut step = Step {
            leverage: Some(change.core.leverage),
            condition: Some(change.core.condition),
            ..Step::default()
        };
        let mut ledger = self.ledger;
        let doubtful = change.core.condition > REFINE_ABOVE || !unsupported.is_empty();
        ledger.inverse_norm = self.inverse_norm_after(model, &change);
        let carried = match self.ledger.at_optimum {
            true => change.gradient_added(&coefficients, norm(&theta)).map(|added| ledger.gradient + added),
            false => None,
        };
        ledger.at_optimum = true;
        ledger.distance = 0.0;
        ledger.source = BoundSource::Carried;
        let tolerance = model.settings.tolerance;
        let fine = carried.filter(|gradient| {
            !doubtful && self.relative(*gradient, ledger.inverse_norm, &theta) <= tolerance
        });
        match fine {
            Some(gradient) => ledger.gradient = gradient,
            None => {
                ledger.source = BoundSource::Measured;
                let refine_once = change.core.condition > REFINE_ABOVE;
                let mut gradient = self.gradient(&theta, Some(&change.rows), par);
                for round in 0..MAX_REFINEMENTS {
                    let size = norm(&gradient);
                    let good = self.relative(size, ledger.inverse_norm, &theta) <= tolerance;
                    if (good || size <= self.rounding(norm(&theta))) && !(refine_once && round == 0) {
                        break;
                    }
                    let mut refined = &theta - self.solve(&gradient, Some(&change), par);
                    clear(&mut refined, &unsupported);
                    let after = self.gradient(&refined, Some(&change.rows), par);
                    let (before, now) = (norm(&gradient), norm(&after));
                    if now >= before {
                        break;
                    }
                    (theta, gradient) = (refined, after);
                    step.refinements += 1;
                    // Past this point it is rounding that is left, not error.
                    if now > 0.5 * before {
                        break;
                    }
                }
                ledger.gradient = norm(&gradient);
            }
        }
        self.tighten(&mut ledger, model, &change, &theta, &unsupported, par);
        let reached = self.relative(ledger.gradient, ledger.inverse_norm, &theta);
        // Factoring anew helps where the gradient is more than rounding and is what spoils the bound; summing anew helps
        // where the sums have lost digits.
        let size = norm(&theta);
        let heavy = ledger.gradient * ledger.inverse_norm > 0.5 * tolerance * size
            && ledger.gradient > self.rounding(size) + UNIT * change.rounding(size);
        if reached > tolerance && !heavy && self.spoilt(size, Some(&change.rows)) {
            return self.resummed(model, &change.rows, &change.ids, store, new, step);
        }
        if (reached > tolerance && heavy) || !reached.is_finite() {
            return self.rebuilt(model, &change.rows, &change.ids, store, new, step);
        }
        let mut pending = self.pending.clone();
        let rows = rows_after(model, &change.rows);
        pending.push(Arc::new(change));
        let body = Self { sums: self.sums.clone(), solver: self.solver.clone(), pending, ledger };
        Ok((model.with(theta, rows, Body::Dense(body)), step))
    }

    /// The same model from sums with the change in them, factored anew; from the rows themselves where the sums have lost
    /// too many digits for that to help.
    fn rebuilt(
        &self,
        model: &RidgeModel,
        rows: &SignedRows,
        ids: &[RowId],
        store: &dyn RowStore,
        new: Option<&Rows>,
        mut step: Step,
    ) -> Result<(RidgeModel, Step)> {
        let left = || retained(store, rows, ids, new);
        let (body, theta) = self.build_after(model, self.sums_after(model, rows), rows, &left, step)?;
        let reached = body.relative(body.ledger.gradient, body.ledger.inverse_norm, &theta);
        if reached > model.settings.tolerance && body.spoilt(norm(&theta), None) {
            return self.resummed(model, rows, ids, store, new, step);
        }
        step.refactored = true;
        Ok((model.with(theta, rows_after(model, rows), Body::Dense(body)), step))
    }

    /// The same model from the rows: the digits that a large row cost the others are not in the sums any more.
    fn resummed(
        &self,
        model: &RidgeModel,
        rows: &SignedRows,
        ids: &[RowId],
        store: &dyn RowStore,
        new: Option<&Rows>,
        mut step: Step,
    ) -> Result<(RidgeModel, Step)> {
        let all = retained(store, rows, ids, new)?;
        let sums = Sums::gather(&all, &model.basis, &model.penalty.values, par(model.settings.threads))?;
        let (body, theta) = self.build_after(model, sums, rows, &|| Ok(all.clone()), step)?;
        step.refactored = true;
        step.resummed = Some(all.len());
        Ok((model.with(theta, rows_after(model, rows), Body::Dense(body)), step))
    }

    fn build_after(
        &self,
        model: &RidgeModel,
        sums: Sums,
        rows: &SignedRows,
        left: &dyn Fn() -> Result<Rows>,
        step: Step,
    ) -> Result<(Self, Mat<f64>)> {
        let source = || Ok(Some(KeptSource { rows: Cow::Owned(left()?), basis: &model.basis }));
        let built = Self::build(&model.settings, self.form(), sums, &model.penalty, &source);
        let (mut body, theta) = built.map_err(|error| match error {
            Error::Singular { .. } if rows.signs.iter().any(|sign| *sign < 0.0) => Error::LeverageOne {
                leverage: step.leverage.unwrap_or(1.0).min(1.0),
                lambda: model.settings.lambda,
            },
            other => other,
        })?;
        body.ledger.refactorisations = self.ledger.refactorisations + 1;
        Ok((body, theta))
    }

    /// The model with `theta` as its parameters after `change`, whatever method they come from. The bound is their
    /// distance to the closed form, which is at hand, plus the closed form's own.
    pub(crate) fn approximately(
        &self,
        model: &RidgeModel,
        change: Change,
        start: &Mat<f64>,
        theta: Mat<f64>,
        par: faer::Par,
    ) -> (RidgeModel, Step) {
        let coefficients = change.coefficients();
        let mut exact = change.moved(start, &coefficients, par);
        let unsupported = self.unsupported(Some(&change.rows));
        clear(&mut exact, &unsupported);
        let mut ledger = self.ledger;
        ledger.inverse_norm = self.inverse_norm_after(model, &change);
        let carried = change
            .gradient_added(&coefficients, norm(&exact))
            .map(|added| ledger.gradient + added)
            .filter(|gradient| {
                let relative = self.relative(*gradient, ledger.inverse_norm, &exact);
                self.ledger.at_optimum && relative <= model.settings.tolerance
            });
        (ledger.gradient, ledger.source) = match carried {
            Some(gradient) => (gradient, BoundSource::Carried),
            None => (norm(&self.gradient(&exact, Some(&change.rows), par)), BoundSource::Measured),
        };
        self.tighten(&mut ledger, model, &change, &exact, &unsupported, par);
        ledger.distance = model.basis.caller_norm(&(&theta - &exact));
        ledger.at_optimum = false;
        let step = Step {
            leverage: Some(change.core.leverage),
            condition: Some(change.core.condition),
            ..Step::default()
        };
        let rows = model.rows - change.ids.len();
        let mut pending = self.pending.clone();
        pending.push(Arc::new(change));
        let body = Self { sums: self.sums.clone(), solver: self.solver.clone(), pending, ledger };
        (model.with(theta, rows, Body::Dense(body)), step)
    }

    /// The rows to forget, ready for a method that needs the closed form to exist.
    pub(crate) fn prepare<'a>(
        &self,
        model: &'a RidgeModel,
        method: &'static str,
        store: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<(Change, Cow<'a, Mat<f64>>, faer::Par)> {
        let par = self.par_for(model, gone.len());
        let gathered = Gathered::read(&model.basis, model.outputs(), store, gone, None)?;
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
        store: &dyn RowStore,
        gone: &[RowId],
        step: Step,
    ) -> Result<(RidgeModel, Step)> {
        let gathered = Gathered::read(&model.basis, model.outputs(), store, gone, None)?;
        self.rebuilt(model, &gathered.rows, &gathered.ids, store, None, step)
    }

    /// The sums with all waiting changes and this one in them.
    pub(crate) fn sums_after(&self, model: &RidgeModel, rows: &SignedRows) -> Sums {
        let mut sums = (*self.sums).clone();
        let waiting = self.pending.iter().map(|change| &change.rows);
        if let Some(all) = SignedRows::stack(waiting.chain(std::iter::once(rows))) {
            sums.apply(&all, &model.penalty.values, par(model.settings.threads));
        }
        sums
    }

    /// The factor of the Hessian without these rows: the old one downdated where there is one and it can be.
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
        let sums = self.sums_after(model, rows);
        Cholesky::factor(&sums.a, |j| model.penalty.values[j] == 0.0, par)
            .map_err(|_| Error::LeverageOne { leverage: 1.0, lambda: model.settings.lambda })
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
            parts.push(("changes waiting to be folded in", self.waiting() * width * 16));
        }
        parts
    }

    /// Threads pay only for large requests; a small one is done before they have started.
    pub(crate) fn par_for(&self, model: &RidgeModel, k: usize) -> faer::Par {
        let work = match self.form() {
            Form::Rows => k * k * self.sums.a.nrows(),
            _ => k * self.sums.a.nrows() * self.sums.a.nrows(),
        };
        if work > 20_000_000 { par(model.settings.threads) } else { faer::Par::Seq }
    }
}

impl RidgeModel {
    /// The same recipe and coordinates with other contents.
    pub(crate) fn with(&self, theta: Mat<f64>, rows: usize, body: Body) -> Self {
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

/// The rows as they are after the change, in memory.
fn retained(store: &dyn RowStore, rows: &SignedRows, ids: &[RowId], new: Option<&Rows>) -> Result<Rows> {
    let gone: std::collections::HashSet<RowId> =
        ids.iter().zip(&rows.signs).filter(|(_, sign)| **sign < 0.0).map(|(id, _)| *id).collect();
    let mut left = store.all()?.filter(|id| !gone.contains(&id));
    if let Some(new) = new {
        left.append(new)?;
    }
    Ok(left)
}

fn rows_after(model: &RidgeModel, rows: &SignedRows) -> usize {
    let (mut joined, mut left) = (0, 0);
    rows.signs.iter().for_each(|sign| if *sign > 0.0 { joined += 1 } else { left += 1 });
    model.rows + joined - left
}

pub(crate) fn clear(theta: &mut Mat<f64>, columns: &[usize]) {
    for &j in columns {
        theta.row_mut(j).fill(0.0);
    }
}
