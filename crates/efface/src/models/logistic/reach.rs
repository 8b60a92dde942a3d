//! How a fit or a request comes to a bound that says something, or to one within a tolerance: it
//! reads the rows, makes the Hessian anew, profiles the intercepts out, and takes further Newton
//! steps, in the order of what each costs.

use std::collections::HashSet;
use std::sync::Arc;

use faer::Mat;

use super::change::RequestWork;
use super::objective::{flat, shaped};
use super::sample::RowSample;
use super::{BoundLedger, DescentPath, FollowSettings, LogisticModel};
use crate::error::{Error, Result};
use crate::evidence::BoundSource;
use crate::linalg::norm;

/// The accuracy of a step where conjugate gradients stand in for a factor.
pub(super) const ACCURACY: f64 = 1e-10;

/// The least accuracy of a step by conjugate gradients. A first step is seldom asked for less than
/// a tenth; a second one has little left to do.
const ROUGHEST: f64 = 0.2;

/// The finest accuracy of steps that take dozens of iterations: another step from a better place
/// brings in more than further digits of this one.
const FINEST: f64 = 1e-3;

/// What a bound is assumed to be, as a multiple of ‖g‖/λ, before one is known.
const LOOSE: f64 = 1.5;

/// Steps aim at this share of a goal: missing it takes another step, which costs more than a few
/// iterations.
const AIM: f64 = 0.7;

/// The same after a glance, which does not find the best intercepts.
const AIM_AFTER_GLANCE: f64 = 0.3;

/// So many products of a row's entry and a parameter make a pass long.
const LONG: usize = 1 << 20;

/// The accuracy of a further step after training. There may be several such steps, so one may be
/// rougher.
const ROUGH: f64 = 1e-4;

/// A further step must bring the gradient down to this share of the last one; less is rounding.
const WORTHWHILE: f64 = 0.5;

/// A Hessian of so many parameters costs less than profiling the intercepts out, and its bound is
/// sharper.
const CHEAP: usize = 512;

/// The most further steps after training.
const MOST_STEPS: usize = 6;

impl LogisticModel {
    fn tolerance(&self) -> f64 {
        self.settings.exact_tolerance()
    }

    /// Goes on from where training ended as long as the bound is above the tolerance and a Newton
    /// step brings it down. Returns the passes over the rows that it took.
    pub(super) fn polish(&mut self, sample: &RowSample<'_>) -> Result<usize> {
        let mut passes = 0;
        let mut aids = self.aids.clone();
        for _ in 0..MOST_STEPS {
            if self.settings.is_private() || self.current_bound().relative <= self.tolerance() {
                return Ok(passes);
            }
            // Often the parameters are good and only the bound is loose, so try a sharper bound
            // first.
            self.ledger.profile = self.profiled_bound(sample)?;
            passes += 3;
            if self.current_bound().relative <= self.tolerance() {
                return Ok(passes);
            }
            let gradient = flat(&self.ledger.leftover);
            let step = match &self.standing {
                Some(standing) => standing.solve(&gradient, self.par()),
                None => {
                    // A system that conjugate gradients cannot solve has no better place to offer.
                    let solved =
                        self.objective(sample)
                            .solve(&self.theta, &gradient, ROUGH, &mut aids);
                    let (step, products) = match solved {
                        Err(Error::NotConverged { .. }) => break,
                        other => other?,
                    };
                    passes += products;
                    step
                }
            };
            let moved: Mat<f64> = &self.theta - shaped(&step, self.theta.nrows());
            let place = self.objective(sample).at(moved)?;
            passes += 1;
            let mut left = place.gradient;
            super::dead::leave_out(&mut left, &self.dead_columns());
            let reached = norm(&left);
            if reached.is_nan() || reached > WORTHWHILE * norm(&gradient) {
                break;
            }
            let length = norm(&step);
            let way = self.ledger.moved + length;
            let swing = self.ledger.swung + self.facts.reach * length;
            self.theta = place.theta;
            let BoundLedger { drift, warp, .. } = self.ledger;
            let fresh = BoundLedger::measured(left, self.hidden(&self.facts, &self.theta));
            self.ledger = BoundLedger {
                drift,
                warp,
                ..fresh
            };
            if let Some(standing) = &self.standing {
                self.ledger.moved = way;
                self.ledger.swung = swing;
                self.ledger.anchor_at(&self.theta);
                self.ledger.localise(standing, self.par());
            }
        }
        Ok(passes)
    }
}

impl RequestWork<'_> {
    /// How far this request has moved the parameters, relative to their norm, and at least the
    /// model's tolerance.
    pub(crate) fn way_gone(&self) -> f64 {
        let size = self.next.basis.caller_norm(&self.next.theta);
        let way = self
            .next
            .basis
            .caller_norm(&(&self.next.theta - &self.before.theta));
        (way / size.max(f64::MIN_POSITIVE)).max(self.next.tolerance())
    }

    /// Whether a pass over the rows takes long enough for iterations to be counted.
    pub(crate) fn takes_long(&self) -> bool {
        let parameters = self.next.theta.nrows() * self.next.theta.ncols();
        self.next.rows.saturating_mul(parameters) >= LONG
    }

    /// The least accuracy of a first step by conjugate gradients: where it leads, the loss bends
    /// differently, which leaves more to do than further digits of the step would take away.
    pub(crate) fn first_accuracy(&self) -> f64 {
        match (self.takes_long(), self.steps_are_slow) {
            (false, _) => 0.0,
            (true, false) => 1e-3,
            (true, true) => 3e-2,
        }
    }

    /// How accurate the next step has to be for the bound to come within `goal`, where conjugate
    /// gradients take it.
    pub(crate) fn wanted_accuracy(&self, goal: f64) -> f64 {
        let known = self.relative_bound();
        if known.is_finite() {
            AIM * goal / known
        } else {
            self.hoped_accuracy(goal)
        }
    }

    /// The accuracy of the step after a glance.
    pub(crate) fn accuracy_after_glance(&self, goal: f64) -> f64 {
        self.within_reason(AIM_AFTER_GLANCE * self.hoped_accuracy(goal))
    }

    /// What `wanted_accuracy` would be if the bound were a small multiple of the gradient as far as
    /// it is known.
    fn hoped_accuracy(&self, goal: f64) -> f64 {
        let size = self.next.basis.caller_norm(&self.next.theta);
        goal * size * self.next.settings.logistic.lambda
            / (LOOSE * norm(&self.next.ledger.leftover))
    }

    /// An accuracy that conjugate gradients are asked for instead of this one.
    pub(crate) fn within_reason(&self, wanted: f64) -> f64 {
        // A further step over many rows costs more than a few iterations less bring in; over few
        // rows neither matters, and a result that does not depend on what guided it is worth
        // having.
        let wanted = if self.takes_long() {
            wanted
        } else {
            1e-3 * wanted
        };
        let finest = if self.steps_are_slow {
            FINEST
        } else {
            ACCURACY
        };
        if wanted.is_nan() {
            finest
        } else {
            wanted.clamp(finest, ROUGHEST)
        }
    }

    /// Whether no Hessian is kept: then a measured gradient needs profiled intercepts to become a
    /// bound.
    pub(crate) fn is_bare(&self) -> bool {
        self.next.standing.is_none()
    }

    /// Bounds the distance with the intercepts profiled out.
    pub(crate) fn profile(&mut self) -> Result<()> {
        self.next.ledger.profile = self.over_rows(|model, sample| model.profiled_bound(sample))?;
        self.count_passes(2, self.next.rows);
        Ok(())
    }

    /// Takes note of passes that were made elsewhere, over so many rows each.
    pub(crate) fn count_passes(&mut self, passes: usize, rows: usize) {
        self.passes += passes;
        self.read += passes * rows;
    }

    /// Replays a run of gradient descent over the rows that are left, moves the parameters by the
    /// difference of both ends, and measures the gradient there. Returns how many steps of the
    /// replay read all rows that are left.
    pub(crate) fn follow(&mut self, path: &DescentPath, settings: FollowSettings) -> Result<usize> {
        let gone = self.removed_rows()?;
        let (next, exact) = self.over_rows(|model, sample| {
            let removed = RowSample::new(model.frame(), &gone, &HashSet::new(), None)?;
            path.without(model, sample, &removed, settings)
        })?;
        self.count_passes(exact.saturating_sub(1), self.next.rows);
        self.steps += next.len();
        // Neither run may have reached its optimum. The part of the way that is missing is nearly
        // the same for both, and cancels.
        let moved = shaped(&(&next.end - &path.end), self.next.theta.nrows());
        self.next.path = Some(Arc::new(next));
        self.move_to(&self.next.theta + &moved)?;
        Ok(exact)
    }

    /// Reads the rows that are left as often as it takes to bring the relative bound down to
    /// `most`, without a move of the parameters.
    pub(crate) fn secure_bound(&mut self, most: f64) -> Result<()> {
        // A bound that is no number says nothing either.
        let useless = |work: &Self| {
            let bound = work.relative_bound();
            bound.is_nan() || bound > most
        };
        if useless(self) && self.next.ledger.source == BoundSource::Carried {
            self.measure()?;
        }
        let parameters = self.next.theta.nrows() * self.next.theta.ncols();
        if useless(self) && parameters > CHEAP {
            self.profile()?;
        }
        if useless(self) && self.next.standing.is_some() {
            let profile = self.next.ledger.profile;
            let refreshed = self.refreshed;
            if self.has_fresh_hessian()? {
                self.next.ledger.profile = profile;
            }
            // The step was taken with what had been kept: a Hessian for the bound alone does not
            // change that.
            self.refreshed = refreshed;
        }
        if useless(self) && parameters <= CHEAP {
            self.profile()?;
        }
        Ok(())
    }

    /// Goes on until the relative bound is within the tolerance, or nothing helps any more.
    pub(crate) fn tighten(&mut self, tolerance: f64) -> Result<()> {
        if self.relative_bound() > tolerance {
            // Often it is the bound that is at fault and not the place.
            self.profile()?;
        }
        if self.relative_bound() <= tolerance {
            return Ok(());
        }
        if self.next.standing.is_some() && self.next.ledger.moved > 0.0 {
            self.refresh()?;
        }
        for _ in 0..MOST_STEPS {
            if self.relative_bound() <= tolerance {
                return Ok(());
            }
            let before = self.next.clone();
            let gradient = self.gradient_norm();
            self.newton()?;
            self.measure()?;
            let reached = self.gradient_norm();
            if reached.is_nan() || reached > WORTHWHILE * gradient {
                if reached.is_nan() || reached > gradient {
                    self.next = before;
                }
                break;
            }
        }
        if self.relative_bound() > tolerance {
            self.profile()?;
        }
        if self.relative_bound() > tolerance {
            // A fit chooses coordinates of its own for the rows that are left, and profiles its
            // intercepts by itself.
            self.start_over()?;
        }
        Ok(())
    }
}
