//! What a request finds out from the rows that are left: their gradient, how far their scores have
//! moved since the Hessian was made, and that Hessian anew.

use std::collections::HashSet;
use std::sync::Arc;

use faer::Mat;

use super::LogisticModel;
use super::change::RequestWork;
use super::curvature::needs_gram;
use super::profile::ProfiledPlace;
use super::sample::RowSample;
use crate::error::{Error, Result};
use crate::evidence::{Claim, Evidence};
use crate::linalg::{norm, symmetric_eigen};
use crate::methods::Method;
use crate::rows::{ChangedRows, RowId, RowStore};

/// Less than this is not worth finding out.
const UNSURE: f64 = 0.02;

/// Bounds by a Hessian that was made farther away than this are several times what they could be,
/// or infinite.
const USELESS: f64 = 1.5;

/// After so many steps a Hessian counts as old.
const BEHIND: f64 = 8.0;

impl LogisticModel {
    /// What is known of the model once its gradient is measured over `rows`: of rows that are not
    /// those of the model, the bound says so. Refused for a model behind noise, which is no minimum
    /// of anything that rows tell.
    pub fn measured_over(&self, rows: &dyn RowStore) -> Result<Evidence> {
        let method = Method::default().name();
        self.open(method, rows, &[])?;
        let mut found = self.clone();
        let mut profile = f64::INFINITY;
        let gradient = self.over_all_rows(rows, |sample| {
            if self.standing.is_none() {
                // Without kept curvature, what a bound rests on is looked up in the same rows.
                let survey = sample.survey(self.frame(), false)?;
                found.facts = super::RowFacts::of(&survey);
                found.unseen = Arc::new(survey.unseen());
                found.facts.inverse_norm = self.inverse_norm(sample)?;
                if found.facts.inverse_norm.is_infinite() {
                    profile = found.profiled_bound(sample)?;
                }
            }
            Ok(self.objective(sample).at(self.theta.clone())?.gradient)
        })?;
        let fresh = super::BoundLedger::measured(gradient, self.hidden(&found.facts, &self.theta));
        let super::BoundLedger {
            moved,
            swung,
            drift,
            warp,
            remnant,
            ..
        } = self.ledger;
        let anchor = self.ledger.anchor.clone();
        found.ledger = super::BoundLedger {
            moved,
            swung,
            drift,
            warp,
            remnant,
            anchor,
            profile,
            ..fresh
        };
        if let Some(standing) = &found.standing {
            found.ledger.localise(standing, self.par());
        }
        let mut evidence = found.evidence(method, Claim::Approximate);
        evidence.rows_read = rows.len();
        Ok(evidence)
    }

    /// Lower bound of the distance between the parameters and the optimum of `rows`, in the caller's
    /// coordinates. A model whose recorded distance is below it is not the model of these rows,
    /// however its gradient was rounded.
    ///
    /// The gradient at the parameters is that at the optimum, 0, and the mean Hessian on the way
    /// times the way. A Hessian is at most γΣw‖x‖² with the largest penalty, and a way of the
    /// caller's is at most ‖T‖ times as long in the coordinates of the model.
    pub fn least_distance_over(&self, rows: &dyn RowStore) -> Result<f64> {
        let (gradient, facts) = self.over_all_rows(rows, |sample| {
            let facts = super::RowFacts::of(&sample.survey(self.frame(), false)?);
            let place = self.objective(sample).at(self.theta.clone())?;
            Ok((place.gradient, facts))
        })?;
        let known = norm(&gradient) - self.hidden(&facts, &self.theta);
        let penalties = [&self.extra.penalty, &self.extra.gauge];
        let penalty: f64 = penalties
            .into_iter()
            .map(|list| list.iter().copied().fold(0.0, f64::max))
            .sum();
        let bend = self.settings.link.curvature() * (facts.trace + facts.weight) + penalty;
        let (origin, inverse_scale) = self.basis.parts();
        let scale = inverse_scale
            .iter()
            .fold(1.0f64, |most, s| most.max(1.0 / s));
        let shift = origin.iter().map(|c| c * c).sum::<f64>().sqrt();
        Ok(known.max(0.0) / (bend * (scale + shift)))
    }

    /// At least ‖H⁻¹‖ without a Hessian. With W the block of the intercepts, S their coupling to
    /// the rest and M = W⁻¹S, the Schur complement of W is at least the penalty λ, so that ‖H⁻¹‖ ≤
    /// ‖W⁻¹‖ + (1 + ‖M‖²)/λ.
    pub(super) fn inverse_norm(&self, sample: &RowSample<'_>) -> Result<f64> {
        let first = self.basis.intercept as usize;
        let least = self
            .extra
            .penalty
            .iter()
            .skip(first)
            .copied()
            .fold(f64::INFINITY, f64::min);
        if self.extra.least() > 0.0 {
            return Ok(1.0 / self.extra.least());
        }
        // With several classes this takes a product with the Hessian for each, and profiling the
        // intercepts out takes three passes in all.
        if least <= 0.0 || self.outputs() > 1 {
            return Ok(f64::INFINITY);
        }
        let objective = self.objective(sample);
        let bends = sample.bends(self.frame(), &self.theta)?;
        let (width, outputs) = (self.theta.nrows(), self.theta.ncols());
        let mut block = Mat::zeros(outputs, outputs);
        let mut coupling = Mat::zeros(outputs, width * outputs);
        let mut unit = vec![0.0; width * outputs];
        let mut column = vec![0.0; width * outputs];
        for c in 0..outputs {
            unit[c * width] = 1.0;
            objective.times(&bends, &unit, &mut column)?;
            unit[c * width] = 0.0;
            for at in 0..width * outputs {
                match at % width {
                    0 => block[(at / width, c)] = column[at],
                    _ => coupling[(c, at)] = column[at],
                }
            }
        }
        let Some((values, _)) = symmetric_eigen(block.as_ref(), faer::Par::Seq) else {
            return Ok(f64::INFINITY);
        };
        let smallest = values.first().copied().unwrap_or(0.0);
        if smallest <= 0.0 {
            return Ok(f64::INFINITY);
        }
        let coupled = norm(&coupling) / smallest;
        let coupled = if least.is_finite() {
            (1.0 + coupled * coupled) / least
        } else {
            0.0
        };
        Ok(1.0 / smallest + coupled)
    }
}

impl RequestWork<'_> {
    /// Calls `see` with the rows that are left.
    pub(super) fn over_rows<T>(
        &mut self,
        see: impl FnOnce(&LogisticModel, &RowSample<'_>) -> Result<T>,
    ) -> Result<T> {
        if self.store.is_beyond_memory() {
            let left = ChangedRows::new(self.store, self.gone, self.new);
            let sample = RowSample::passed(self.next.frame(), &left, self.shape)?;
            self.shape = Some(sample.shape);
            self.read += sample.shape.rows;
            self.passes += 1;
            return see(&self.next, &sample);
        }
        let ground = match self.ground.take() {
            Some(ground) => ground,
            None => self.store.all()?,
        };
        let gone: HashSet<RowId> = self.gone.iter().copied().collect();
        let result = {
            let sample = RowSample::new(self.next.frame(), &ground, &gone, self.new)?;
            self.read += sample.shape.rows;
            self.passes += 1;
            see(&self.next, &sample)
        };
        self.ground = Some(ground);
        result
    }

    /// Computes the gradient over the rows that are left.
    pub(crate) fn measure(&mut self) -> Result<()> {
        let bare = self.next.standing.is_none();
        let known = self.next.unseen.clone();
        // The rows that are left stay the same during a request, and so does what a survey says of
        // them.
        let surveyed = std::mem::replace(&mut self.surveyed, bare);
        let way = self.unsure_way();
        let (gradient, facts, unseen, swing) = self.over_rows(|model, sample| {
            let (place, swing) = model
                .objective(sample)
                .after(model.theta.clone(), way.as_ref())?;
            let mut facts = model.facts;
            let mut unseen = known;
            if bare && !surveyed {
                let survey = sample.survey(model.frame(), false)?;
                facts = super::RowFacts::of(&survey);
                unseen = Arc::new(survey.unseen());
            }
            if bare {
                facts.inverse_norm = model.inverse_norm(sample)?;
            }
            Ok((place.gradient, facts, unseen, swing))
        })?;
        self.next.facts = facts;
        self.next.unseen = unseen;
        if let (Some(swing), Some(anchor)) = (swing, &self.next.ledger.anchor) {
            self.next.ledger.swung = self.next.ledger.swung.min(anchor.swung_by(swing));
        }
        self.take_gradient(gradient);
        Ok(())
    }

    /// Goes to the best intercepts for the coefficients at hand, and measures the gradient there,
    /// which is then a bound of its own (`profile.rs`): one pass for both.
    pub(crate) fn measure_profiled(&mut self) -> Result<()> {
        let found = self.over_rows(|model, sample| model.profiled(sample))?;
        let Some(ProfiledPlace {
            theta,
            gradient,
            bound,
            ..
        }) = found
        else {
            return self.measure();
        };
        self.next.theta = theta;
        self.take_gradient(gradient);
        self.next.ledger.profile = bound;
        Ok(())
    }

    /// The way from the anchor, where it is only known that it moves no score by more than a good
    /// deal. With the rows at hand the truth can be found out, which is ten times less and more: no
    /// row points the way that a bound assumes.
    fn unsure_way(&self) -> Option<Mat<f64>> {
        let ledger = &self.next.ledger;
        let anchor = ledger
            .anchor
            .as_ref()
            .filter(|_| self.next.standing.is_some() && !self.refreshed)?;
        let assumed = ledger.swung - anchor.swung_by(0.0);
        let matters = self.next.settings.link.concordance() * assumed > UNSURE;
        matters.then(|| anchor.way_to(&self.next.theta))
    }

    /// Whether scores have moved so far since the Hessian was made that no gradient, however small,
    /// gives a bound by it.
    pub(crate) fn is_stale(&self) -> bool {
        let turned = self.next.settings.link.concordance() * self.next.ledger.swung;
        self.next.standing.is_some() && !self.refreshed && turned > USELESS
    }

    /// Whether parameters have moved by many steps like the last since the Hessian was made, so
    /// that what a step leaves is mostly the Hessian's fault.
    pub(crate) fn is_behind(&self) -> bool {
        self.next.standing.is_some() && self.next.ledger.swung > BEHIND * self.last_swing
    }

    /// Takes over a gradient that was computed at the parameters.
    pub(super) fn take_gradient(&mut self, gradient: Mat<f64>) {
        let hidden = self.next.hidden(&self.next.facts, &self.next.theta);
        let swung = self.next.ledger.swung;
        let fresh = super::BoundLedger {
            swung,
            ..super::BoundLedger::measured(gradient, hidden)
        };
        self.take_measured(fresh);
    }

    /// Takes over what was measured at the parameters.
    pub(super) fn take_measured(&mut self, fresh: super::BoundLedger) {
        let ledger = &mut self.next.ledger;
        *ledger = if self.next.standing.is_some() {
            let super::BoundLedger {
                moved, drift, warp, ..
            } = *ledger;
            let anchor = ledger.anchor.take();
            super::BoundLedger {
                moved,
                drift,
                warp,
                anchor,
                ..fresh
            }
        } else {
            super::BoundLedger {
                swung: 0.0,
                ..fresh
            }
        };
        self.note_dead();
        if let Some(standing) = &mut self.next.standing {
            let solved = self.next.ledger.localise(standing, self.before.par());
            standing.solved = Some(Arc::new(solved));
        }
    }

    /// Computes gradient and Hessian anew at the parameters; trains anew where there is no Hessian
    /// to be had.
    pub(crate) fn refresh(&mut self) -> Result<()> {
        if self.has_fresh_hessian()? {
            Ok(())
        } else {
            self.start_over()
        }
    }

    /// Computes gradient and Hessian anew at the parameters. False, and nothing done, where it is
    /// singular.
    pub(super) fn has_fresh_hessian(&mut self) -> Result<bool> {
        let limits = self.next.limits(&self.next.facts);
        let refreshed = self.over_rows(|model, sample| {
            let objective = model.objective(sample);
            let survey = sample.survey(model.frame(), needs_gram(sample, model.frame()))?;
            let place = objective.at(model.theta.clone())?;
            let bowl = objective.bowl(&model.theta, limits)?;
            let mut next = model.clone();
            next.settle_at(place.gradient, Some(bowl), survey, sample)?;
            Ok(next)
        });
        self.next = match refreshed {
            Err(Error::Singular { .. }) => return Ok(false),
            other => other?,
        };
        self.next.refactorisations += 1;
        self.refreshed = true;
        self.note_dead();
        Ok(true)
    }
}
