//! From sums to a model: factor, solve, and find out how good the result is; from the rows
//! themselves where the sums cannot tell enough.
//!
//! The sums are believed as long as the bound that follows from them is within the tolerance.
//! Beyond it, the gradient is taken over the rows in twice the precision and the parameters are
//! refined with it, which brings every digit back that correlated columns cost. Where not even the
//! factor can be trusted (a row of 1e9 among rows of 1, a column that is a multiple of another),
//! conjugate gradients over the rows take its place, and the penalty bounds what they leave.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use faer::{Mat, Par};

use super::before::BodyBefore;
use super::bound::{CurvatureQuality, DistanceLedger, GradientAnchor, GradientSurvey};
use super::curvature::{CurvatureSolver, KeptSource, factor_of};
use super::dense::{DenseBody, HOPELESS, clear};
use super::gather::UnfactoredSums;
use super::gathered::GatheredRows;
use super::probes::ErrorProbes;
use super::refine::{RefinementPlan, WORTH_IT, refine};
use super::row_pass::{
    HiddenGradient, LongParameters, PassFacts, RowGradient, RowPass, penalised_distance,
};
use super::sums::RidgeSums;
use super::wide::subtract;
use super::{Basis, CurvatureNorms, Form, Ridge, RidgePenalty};
use crate::error::{Error, Result};
use crate::gram::GramEngine;
use crate::linalg::{CgSettings, Cholesky, UNIT, conjugate_gradients, par};
use crate::rows::{RowId, RowStore, Rows};

/// Passes over the rows that refine the parameters.
const MOST_PASSES: usize = 6;

/// The share of the tolerance that a fit may use up.
const ROOM: f64 = 1.0 / 64.0;

/// The share of the tolerance that a request which factors anew may use up before it reads the
/// rows.
const ROOM_OF_REQUEST: f64 = 1.0 / 8.0;

/// A recipe and the coordinates that it is carried out in.
#[derive(Debug, Clone)]
pub(crate) struct RidgeFrame {
    pub(crate) settings: Ridge,
    pub(crate) basis: Arc<Basis>,
    pub(crate) penalty: Arc<RidgePenalty>,
    /// Who factors A, where that is not the processor.
    pub(crate) engine: Option<Arc<dyn GramEngine>>,
}

/// Rows that may have to be read, once it is known that they are needed; None where they are not at
/// hand.
pub(crate) type RowsIfNeeded<'a> = dyn Fn() -> Result<Option<Cow<'a, Rows>>> + 'a;

/// A body with its parameters.
pub(crate) struct BuiltBody {
    pub(crate) body: DenseBody,
    pub(crate) theta: Mat<f64>,
    /// How many rows were read beyond the sums.
    pub(crate) reread: Option<usize>,
}

impl RidgeFrame {
    pub(crate) fn new(settings: Ridge, basis: Arc<Basis>, penalty: Arc<RidgePenalty>) -> Self {
        Self {
            settings,
            basis,
            penalty,
            engine: None,
        }
    }

    /// The body for these sums and its parameters. A request says in `before` what they came from;
    /// a fit has nothing to say, and b stands for the gradient.
    pub(crate) fn build(
        &self,
        form: Form,
        sums: impl Into<UnfactoredSums>,
        before: Option<BodyBefore<'_>>,
        rows: &RowsIfNeeded<'_>,
    ) -> Result<BuiltBody> {
        let par = par(self.settings.threads);
        let is_fit = before.is_none();
        let found = self.factored(form, sums.into(), rows, is_fit)?;
        let FactoredSums {
            mut body,
            probes,
            kept_factor,
            probed,
        } = found;
        let anchor = before.map(|before| before.carried_to(&mut body, kept_factor.as_ref(), par));
        let mut theta = match &anchor {
            Some(anchor) => anchor.theta.clone(),
            None => {
                let mut start = body.sums.b.clone();
                body.solver.solve(start.as_mut(), par);
                start
            }
        };
        let anchor = anchor.unwrap_or_else(|| GradientAnchor::at_zero(&body.sums));
        body.ledger.anchor = Arc::new(anchor);
        clear(&mut theta, &body.unsupported(None));
        body.refine_by_sums(&self.basis, &mut theta, self.settings.tolerance, par)?;
        // Well below the tolerance, so that requests to come have room. A request that factors anew
        // leaves less: it would pay for theirs with a pass over the rows.
        let enough = self.settings.tolerance * ROOM;
        let room = if is_fit { ROOM } else { ROOM_OF_REQUEST };
        let has_room = body.ledger.relative(&self.basis, &theta) <= self.settings.tolerance * room;
        // A request that factors anew does not read rows for the sake of requests to come: only a
        // fit does.
        if has_room && (!is_fit || body.large_request_charge(&self.basis, &theta) <= enough) {
            return Ok(BuiltBody {
                body,
                theta,
                reread: None,
            });
        }
        let Some(rows) = rows()? else {
            return Ok(BuiltBody {
                body,
                theta,
                reread: None,
            });
        };
        let no_rows = HashSet::new();
        let pass = self.pass_over(&rows, &no_rows);
        let mut reading = StoredQuality {
            frame: self,
            pass,
            body: &mut body,
            probed,
            par,
        };
        reading.improve(&mut theta, kept_factor.as_ref(), &probes)?;
        Ok(BuiltBody {
            body,
            theta,
            reread: Some(rows.len()),
        })
    }

    /// The body of a stored model: its parameters stay as they are, and what is known of them is
    /// found out again.
    pub(crate) fn restore(
        &self,
        form: Form,
        sums: RidgeSums,
        anchor: GradientAnchor,
        stored: StoredLedger<'_>,
        rows: &RowsIfNeeded<'_>,
    ) -> Result<DenseBody> {
        let par = par(self.settings.threads);
        let StoredLedger {
            theta,
            sums_error,
            distance,
            left,
            at_optimum,
            refactorisations,
            factor,
            norms,
        } = stored;
        let FactoredSums { mut body, .. } = self.factored_again(form, sums, factor, norms, rows)?;
        body.ledger.anchor = Arc::new(anchor);
        // What was stored holds, and storing it again must give the same bytes.
        if sums_error.is_finite() {
            body.ledger.quality.sums_error = sums_error;
            body.ledger.quality.entry_error = 0.0;
        }
        body.ledger.refactorisations = refactorisations;
        body.ledger.at_optimum = at_optimum;
        if let Some(left) = left {
            body = self.waiting_for(body, theta, left, rows)?;
        }
        let mut minimum = theta.clone();
        if !at_optimum {
            body.refine_by_sums(&self.basis, &mut minimum, self.settings.tolerance, par)?;
            body.ledger.at_optimum = false;
            body.ledger.distance = self.basis.caller_norm(&(theta - &minimum)) * (1.0 + 1e-9);
            return Ok(body);
        }
        let survey = body.survey(&body.ledger, theta, None, par);
        let solved = body.solve(&survey.gradient, None, par);
        body.ledger.note(&survey, &solved, &self.basis);
        if distance.is_finite() {
            body.ledger.measured = Some(distance);
        }
        Ok(body)
    }

    /// A stored body whose parameters are those without these rows. They wait, as they did before
    /// the model was stored, so that as much is known of the parameters as then; where the closed
    /// form does not reach, they are taken out of the sums.
    fn waiting_for(
        &self,
        mut body: DenseBody,
        theta: &Mat<f64>,
        left: GatheredRows,
        rows: &RowsIfNeeded<'_>,
    ) -> Result<DenseBody> {
        let par = par(self.settings.threads);
        let at_optimum = body.ledger.at_optimum;
        let refactorisations = body.ledger.refactorisations;
        let left = match body.change(left, theta, par) {
            Ok(change) if body.ledger.quality.is_trusted() && change.core.condition <= HOPELESS => {
                let mut ledger = body.unknown_after(&change);
                body.tighten(&mut ledger, self, &change, par);
                body.pending.push(Arc::new(change));
                body.ledger = DistanceLedger {
                    at_optimum,
                    ..ledger
                };
                return Ok(body);
            }
            Ok(change) => change.rows,
            Err(gathered) => gathered.rows,
        };
        let (sums, anchor) = body.settled(self, &left);
        let before = BodyBefore {
            body: &body,
            anchor,
        };
        let FactoredSums {
            body: mut next,
            kept_factor,
            ..
        } = self.factored(body.form(), sums.into(), rows, false)?;
        next.ledger.anchor = Arc::new(before.carried_to(&mut next, kept_factor.as_ref(), par));
        next.ledger.at_optimum = at_optimum;
        next.ledger.refactorisations = refactorisations;
        Ok(next)
    }

    /// The factor of sums that make sense.
    fn factor(&self, sums: &RidgeSums, room: Option<Mat<f64>>) -> Result<Cholesky> {
        if !sums.is_finite() {
            return Err(Error::Overflow);
        }
        // Column 0 has the total weight where there is an intercept.
        if self.settings.intercept && sums.support[0] == 0 {
            return Err(Error::NoWeight);
        }
        factor_of(
            sums,
            &self.penalty,
            self.engine.as_deref(),
            room,
            par(self.settings.threads),
        )
    }

    /// Sums with their solver, and how good both are. Those of a fit are compared with the rows
    /// beside the rest where that is certain to be asked for.
    fn factored(
        &self,
        form: Form,
        sums: UnfactoredSums,
        rows: &RowsIfNeeded<'_>,
        is_fit: bool,
    ) -> Result<FactoredSums> {
        let UnfactoredSums { sums, room } = sums;
        let factor = self.factor(&sums, room)?;
        let probes = ErrorProbes::new(&factor, par(self.settings.threads));
        self.solved_by(form, sums, factor, probes, None, rows, is_fit)
    }

    /// The same for stored sums. A stored factor is taken where random vectors find that it is the
    /// factor of these sums: updates for many requests may have worn it out, and then there is a
    /// new one.
    fn factored_again(
        &self,
        form: Form,
        sums: RidgeSums,
        stored: Option<Cholesky>,
        norms: Option<CurvatureNorms>,
        rows: &RowsIfNeeded<'_>,
    ) -> Result<FactoredSums> {
        /// So much of a solve may be wrong; with a new factor it is a thousandth of that.
        const WORN_OUT: f64 = 1e-9;
        let mut sums = sums;
        let par = par(self.settings.threads);
        if let Some(stored) = stored {
            let probes = ErrorProbes::few(&stored, par);
            let found = self.solved_by(form, sums, stored, probes, norms, rows, false)?;
            if found.body.ledger.quality.solver_error <= WORN_OUT {
                return Ok(found);
            }
            sums = Arc::unwrap_or_clone(found.body.sums);
        }
        let factor = self.factor(&sums, None)?;
        let probes = ErrorProbes::few(&factor, par);
        self.solved_by(form, sums, factor, probes, norms, rows, false)
    }

    /// Sums with a solver made from their factor. Norms that are known need not be measured.
    #[expect(
        clippy::too_many_arguments,
        reason = "what is known beforehand differs with every caller"
    )]
    fn solved_by(
        &self,
        form: Form,
        sums: RidgeSums,
        factor: Cholesky,
        probes: ErrorProbes,
        norms: Option<CurvatureNorms>,
        rows: &RowsIfNeeded<'_>,
        is_fit: bool,
    ) -> Result<FactoredSums> {
        let par = par(self.settings.threads);
        let source = || {
            Ok(rows()?.map(|rows| KeptSource {
                rows,
                basis: &self.basis,
            }))
        };
        let kept_factor = (form == Form::Inverse).then(|| factor.clone());
        let solver = CurvatureSolver::build(form, factor, &source, par)?;
        let mut body = DenseBody::new(sums, solver);
        let factor = kept_factor.as_ref().or(body.solver.factor());
        let find_error = || {
            factor.map_or(f64::INFINITY, |factor| {
                probes.solver_error(&body, factor, par)
            })
        };
        let find_norms = || {
            norms.unwrap_or_else(|| {
                let (caller, spread) =
                    body.curvature_norms(&self.basis, self.settings.lambda, None, par);
                CurvatureNorms {
                    caller,
                    spread,
                    carried: 1.0,
                }
            })
        };
        // Norms keep two threads busy; others find out beside them what solves miss, and how wrong
        // the sums are.
        let (solver_error, norms, probed) = if par.degree() > 2 {
            std::thread::scope(|scope| {
                let beside = scope.spawn(find_norms);
                let error = find_error();
                let probed = match factor {
                    Some(factor) if is_fit => self.probed_beside(&body, factor, &probes, rows),
                    _ => Ok(None),
                };
                let norms = beside
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                probed.map(|probed| (error, norms, probed))
            })?
        } else {
            (find_error(), find_norms(), None)
        };
        body.ledger.quality = body.quality_with(norms, solver_error);
        Ok(FactoredSums {
            body,
            probes,
            kept_factor,
            probed,
        })
    }

    /// What a pass over the rows finds of the sums, where a fit is certain to ask for it: where the
    /// charge for large requests is too much even with the least that the norms of A⁻¹ can be.
    /// ‖SA⁻¹S‖ is at least 1, and ‖TA⁻¹Tᵀ‖ at least t_j²/A_jj for every j.
    fn probed_beside(
        &self,
        body: &DenseBody,
        factor: &Cholesky,
        probes: &ErrorProbes,
        rows: &RowsIfNeeded<'_>,
    ) -> Result<Option<f64>> {
        let par = par(self.settings.threads);
        let first = self.basis.intercept as usize;
        let least = (0..self.basis.features)
            .map(|j| self.basis.inverse_scale(j).powi(2) / body.sums.a[(first + j, first + j)])
            .filter(|share| share.is_finite())
            .fold(0.0, f64::max);
        let norms = CurvatureNorms {
            caller: least,
            spread: 1.0,
            carried: 1.0,
        };
        let mut theta = body.sums.b.clone();
        body.solver.solve(theta.as_mut(), par);
        clear(&mut theta, &body.unsupported(None));
        let charge =
            body.charge_with(&body.quality_with(norms, 0.0), &self.basis, &theta) * large(&theta);
        let is_certain = charge > 2.0 * self.settings.tolerance * ROOM && charge.is_finite();
        let Some(rows) = (if is_certain { rows()? } else { None }) else {
            return Ok(None);
        };
        let no_rows = HashSet::new();
        probes
            .sums_error(body, factor, &self.pass_over(&rows, &no_rows), par)
            .map(Some)
    }

    /// A pass over all of these rows.
    fn pass_over<'a>(&'a self, kept: &'a Rows, gone: &'a HashSet<RowId>) -> RowPass<'a> {
        let threads = self.settings.threads;
        RowPass {
            kept,
            gone,
            new: None,
            basis: &self.basis,
            penalty: &self.penalty.values,
            threads,
        }
    }
}

/// A body without parameters.
struct FactoredSums {
    body: DenseBody,
    probes: ErrorProbes,
    /// The factor, where the solver keeps none.
    kept_factor: Option<Cholesky>,
    /// How wrong the sums are, where a pass over the rows has found it out.
    probed: Option<f64>,
}

/// What was stored of how good a model is.
pub(crate) struct StoredLedger<'a> {
    pub(crate) theta: &'a Mat<f64>,
    pub(crate) sums_error: f64,
    pub(crate) distance: f64,
    /// Rows that the stored sums still hold and the parameters do not.
    pub(crate) left: Option<GatheredRows>,
    pub(crate) at_optimum: bool,
    pub(crate) refactorisations: usize,
    /// The factor, where it was stored, and what was known of the norms of A⁻¹.
    pub(crate) factor: Option<Cholesky>,
    pub(crate) norms: Option<CurvatureNorms>,
}

impl DenseBody {
    /// Refines with what the sums and the anchor tell.
    fn refine_by_sums(
        &mut self,
        basis: &Basis,
        theta: &mut Mat<f64>,
        goal: f64,
        par: Par,
    ) -> Result<()> {
        let unsupported = self.unsupported(None);
        let mut ledger = self.ledger.clone();
        let plan = RefinementPlan {
            goal,
            least: 1,
            most: 3,
        };
        let mut survey = |ledger: &mut DistanceLedger, theta: &Mat<f64>| {
            Ok(self.survey(ledger, theta, None, par))
        };
        let solve = |gradient: &Mat<f64>| self.solve(gradient, None, par);
        refine(
            &mut ledger,
            theta,
            basis,
            &unsupported,
            plan,
            &mut survey,
            &solve,
        )?;
        self.ledger = ledger;
        Ok(())
    }

    /// The relative distance that a typical row's forgetting is charged for errors of the sums.
    fn request_charge(&self, basis: &Basis, theta: &Mat<f64>) -> f64 {
        self.charge_with(&self.ledger.quality, basis, theta)
    }

    /// The same, were curvature known so well.
    fn charge_with(&self, quality: &CurvatureQuality, basis: &Basis, theta: &Mat<f64>) -> f64 {
        // A column that every row has, such as the intercept's, counts the rows. Fewer make the
        // charge larger.
        let rows = self.sums.support.iter().copied().max().unwrap_or(0).max(1) as f64;
        let leverage = (theta.nrows() as f64 / rows).min(1.0);
        let residual = self.sums.target_spread / rows.sqrt();
        let charge =
            quality.wrong_sums() * leverage.sqrt() * residual * quality.distance_of_energy();
        charge / basis.caller_norm(theta).max(f64::MIN_POSITIVE)
    }

    /// What a large request is charged: one of an eighth as many rows as there are columns. The
    /// charge grows with the rows, because what is wrong with a sum is assumed to be against all of
    /// them at once.
    fn large_request_charge(&self, basis: &Basis, theta: &Mat<f64>) -> f64 {
        self.request_charge(basis, theta) * large(theta)
    }

    fn pass_facts(&self, weight: f64, residual: f64) -> PassFacts<'_> {
        PassFacts {
            spread: &self.sums.spread,
            weight,
            targets: self.sums.target_spread,
            residual,
        }
    }

    /// How well the curvature is known, as far as norms and the error of solves tell.
    fn quality_with(&self, norms: CurvatureNorms, solver_error: f64) -> CurvatureQuality {
        CurvatureQuality {
            caller_norm: norms.caller,
            spread_norm: norms.spread,
            sums_error: 0.0,
            entry_error: self.sums.charge * self.sums.a.nrows() as f64,
            settled_error: f64::INFINITY,
            solver_error,
            kept_error: 0.0,
            growth: 1.0,
            carried_growth: norms.carried,
            measured_after: 0,
            solves_measured_after: 0,
        }
    }
}

/// As many rows as a large request has.
fn large(theta: &Mat<f64>) -> f64 {
    (theta.nrows() as f64 / 8.0).max(1.0)
}

/// A body that is being improved with its rows at hand.
struct StoredQuality<'a> {
    frame: &'a RidgeFrame,
    pass: RowPass<'a>,
    body: &'a mut DenseBody,
    /// How wrong the sums are, where that is known.
    probed: Option<f64>,
    par: Par,
}

impl StoredQuality<'_> {
    fn improve(
        &mut self,
        theta: &mut Mat<f64>,
        kept_factor: Option<&Cholesky>,
        probes: &ErrorProbes,
    ) -> Result<()> {
        let tolerance = self.frame.settings.tolerance;
        let enough = tolerance * ROOM;
        let mut probed = false;
        if !self.body.ledger.quality.is_trusted() {
            self.probe_sums(kept_factor, probes)?;
            probed = true;
        }
        if self.body.ledger.quality.is_trusted() {
            if self.body.ledger.relative(&self.frame.basis, theta) > enough {
                self.refine_by_rows(theta)?;
            }
            // Requests to come are charged with the error of the sums, at first by the number of
            // their terms. Where that is too much, a pass finds out how good the sums really are;
            // it costs a small part of a fit. Where they are not good enough, they get second
            // words, which costs several fits.
            let basis = &self.frame.basis;
            if !probed && self.body.large_request_charge(basis, theta) > enough {
                self.probe_sums(kept_factor, probes)?;
            }
            if self.body.request_charge(basis, theta) > enough {
                self.lengthen_sums()?;
            }
        }
        let reached = self.body.ledger.relative(&self.frame.basis, theta);
        if reached > tolerance && self.frame.settings.lambda > 0.0 {
            self.rescue(theta)?;
        }
        Ok(())
    }

    fn probe_sums(&mut self, kept_factor: Option<&Cholesky>, probes: &ErrorProbes) -> Result<()> {
        let body = &mut *self.body;
        if let Some(factor) = kept_factor.or(body.solver.factor()) {
            let found = match self.probed {
                Some(found) => found,
                None => probes.sums_error(body, factor, &self.pass, self.par)?,
            };
            let quality = &mut body.ledger.quality;
            if found < quality.wrong_sums() {
                quality.sums_error = found;
                quality.entry_error = 0.0;
            }
        }
        Ok(())
    }

    fn lengthen_sums(&mut self) -> Result<()> {
        let RidgeFrame { basis, penalty, .. } = self.frame;
        let mut sums = (*self.body.sums).clone();
        if sums.lengthen(self.pass.kept, basis, &penalty.values, self.par)? {
            let quality = &mut self.body.ledger.quality;
            quality.sums_error = 0.0;
            quality.entry_error = sums.charge * basis.width() as f64;
            self.body.sums = Arc::new(sums);
        }
        Ok(())
    }

    fn refine_by_rows(&mut self, theta: &mut Mat<f64>) -> Result<()> {
        let basis = &self.frame.basis;
        let unsupported = self.body.unsupported(None);
        let weight = self.pass.weight()?;
        let mut ledger = self.body.ledger.clone();
        let body = &*self.body;
        let pass = &self.pass;
        let per_spread = ledger.quality.energy_of_spread(theta.nrows());
        let mut survey = |ledger: &mut DistanceLedger, theta: &Mat<f64>| {
            let RowGradient {
                values: mut gradient,
                residual,
            } = pass.gradient(theta, true)?;
            for &j in &unsupported {
                gradient.row_mut(j).fill(0.0);
            }
            let charge = pass.charge(theta, &body.pass_facts(weight, residual));
            let last_digits = UNIT * super::bound::largest_share(&gradient, &body.sums.spread);
            let spread_error = charge + last_digits;
            ledger.anchor = Arc::new(GradientAnchor {
                theta: theta.clone(),
                gradient_low: Mat::zeros(gradient.nrows(), gradient.ncols()),
                gradient: gradient.clone(),
                error: 0.0,
                spread_error,
            });
            Ok(GradientSurvey {
                gradient,
                hidden: per_spread * spread_error,
                solve_error: 0.0,
            })
        };
        let goal = self.frame.settings.tolerance / 16.0;
        let plan = RefinementPlan {
            goal,
            least: 0,
            most: MOST_PASSES,
        };
        let solve = |gradient: &Mat<f64>| body.solve(gradient, None, self.par);
        refine(
            &mut ledger,
            theta,
            basis,
            &unsupported,
            plan,
            &mut survey,
            &solve,
        )?;
        self.body.ledger = ledger;
        Ok(())
    }

    /// Conjugate gradients over the rows, guided by the factor, with the penalty as the only thing
    /// that bounds the result.
    fn rescue(&mut self, theta: &mut Mat<f64>) -> Result<()> {
        let basis = &self.frame.basis;
        let lambda = self.frame.settings.lambda;
        let (weight, sums) = self.pass.weight_and_sums()?;
        let mut low = Mat::<f64>::zeros(theta.nrows(), theta.ncols());
        let mut best = self.body.ledger.absolute(basis, theta);
        let mut candidate = theta.clone();
        for _ in 0..MOST_PASSES {
            let at = LongParameters {
                high: &candidate,
                low: Some(&low),
            };
            let RowGradient {
                values: gradient,
                residual,
            } = self.pass.gradient(at, true)?;
            let charge = self
                .pass
                .charge(&candidate, &self.body.pass_facts(weight, residual));
            let hidden = HiddenGradient {
                charge,
                spread: &self.body.sums.spread,
            };
            let distance = penalised_distance(basis, &gradient, &hidden, lambda, (weight, &sums))
                + UNIT * basis.stored_size(&candidate);
            let before = best;
            if distance < best {
                best = distance;
                theta.copy_from(&candidate);
                self.body.ledger.measured = Some(distance);
                self.body.ledger.energy = f64::INFINITY;
                self.body.ledger.anchor = Arc::new(GradientAnchor {
                    theta: candidate.clone(),
                    gradient_low: Mat::zeros(gradient.nrows(), gradient.ncols()),
                    gradient: gradient.clone(),
                    error: f64::INFINITY,
                    spread_error: 0.0,
                });
            }
            let goal = self.frame.settings.tolerance / 16.0 * basis.caller_norm(theta);
            if distance <= goal || distance > WORTH_IT * before {
                break;
            }
            let step = self.step_by_rows(&gradient)?;
            subtract(&mut candidate, &mut low, &step);
        }
        Ok(())
    }

    /// A⁻¹g by conjugate gradients whose products go over the rows in twice the precision.
    fn step_by_rows(&self, gradient: &Mat<f64>) -> Result<Mat<f64>> {
        let width = gradient.nrows();
        let mut step = Mat::zeros(width, gradient.ncols());
        let settings = CgSettings {
            tolerance: 1e-8,
            max_iterations: 200.min(4 * width + 20),
        };
        for output in 0..gradient.ncols() {
            let mut failed = None;
            let apply = |v: &[f64], out: &mut [f64]| {
                let column = Mat::from_fn(width, 1, |i, _| v[i]);
                match self.pass.gradient(&column, false) {
                    Ok(product) => out.copy_from_slice(product.values.col_as_slice(0)),
                    Err(error) => failed = Some(error),
                }
            };
            let precondition = |r: &[f64]| {
                let column = Mat::from_fn(width, 1, |i, _| r[i]);
                self.body
                    .solve(&column, None, self.par)
                    .col_as_slice(0)
                    .to_vec()
            };
            let done = conjugate_gradients(
                apply,
                precondition,
                gradient.col_as_slice(output),
                step.col_as_slice_mut(output),
                settings,
            );
            if let Some(error) = failed {
                return Err(error);
            }
            // Conjugate gradients that did not converge still give a step; the bound tells how good
            // it was.
            match done {
                Ok(_) | Err(Error::NotConverged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(step)
    }
}
