//! A request at work: the model over the rows that are left, before and after each step.
//!
//! It starts as the old parameters over the new rows: the gradient there is known, −Σ ∇ℓ_i of the
//! rows that left (and +Σ of those that joined) on top of what was left over before, and the
//! Hessian is the kept one with those rows folded in. Each method is then a step from there.

use std::borrow::Cow;
use std::sync::Arc;

use faer::Mat;

use super::LogisticModel;
use super::bound::{StepSize, WayAnchor, WayStep};
use super::curvature::{LowRank, SettlingCurvature, SolvedGradient, StandingHessian};
use super::guide::StepAids;
use super::objective::{flat, shaped};
use super::reach::ACCURACY;
use super::request_rows::RequestRows;
use super::sample::SampleShape;
use super::waiting_rows::WaitingRows;
use crate::error::{Error, Result};
use crate::evidence::{Claim, Evidence, Outcome};
use crate::linalg::{UNIT, dot, norm};
use crate::rows::{ChangedRows, RowId, RowRef, RowStore, Rows};

/// Beyond this, a Hessian that was made elsewhere makes bounds too loose: e^{½} or twice what they
/// could be.
const STALE: f64 = 0.5;

/// A request at work.
pub(crate) struct RequestWork<'a> {
    pub(super) before: &'a LogisticModel,
    /// The rows that are left, read when they are first needed.
    pub(super) ground: Option<Cow<'a, Rows>>,
    /// What a first pass found out of them, where they are beyond memory.
    pub(super) shape: Option<SampleShape>,
    pub(super) store: &'a dyn RowStore,
    pub(super) gone: &'a [RowId],
    pub(super) new: Option<&'a Rows>,
    pub(crate) next: LogisticModel,
    /// The rows of the request in the model's coordinates.
    pub(super) movers: RequestRows,
    pub(super) read: usize,
    pub(crate) steps: usize,
    pub(crate) passes: usize,
    pub(crate) refreshed: bool,
    leverage: Option<f64>,
    condition: Option<f64>,
    pub(super) last_swing: f64,
    /// Whether a look at the rows in single precision may tell what is to be known.
    pub(super) looks_suffice: bool,
    /// Whether the rows that are left were surveyed, where no Hessian tells of them.
    pub(super) surveyed: bool,
    /// Whether a step without a kept Hessian takes dozens of iterations: rows are dense and fewer
    /// than parameters.
    pub(super) steps_are_slow: bool,
    /// Whether a step without a kept Hessian ends at the best intercepts, so that its gradient is a
    /// bound.
    pub(crate) profiles: bool,
    /// Whether weights of columns that no row is left to have are set to 0 in the end. An
    /// approximate method leaves them as they come out.
    pub(super) clears: bool,
}

/// How far a step goes: its norm, the most that it moves a score, and its norm in the Hessian.
struct StepWay {
    length: f64,
    swing: f64,
    local: f64,
}

/// A checked request, not yet at work.
pub(crate) struct CheckedRequest<'a> {
    method: &'static str,
    model: &'a LogisticModel,
    store: &'a dyn RowStore,
    gone: &'a [RowId],
}

impl LogisticModel {
    /// Checks a request of a method that keeps no account of noise.
    pub(crate) fn open<'a>(
        &'a self,
        method: &'static str,
        store: &'a dyn RowStore,
        gone: &'a [RowId],
    ) -> Result<CheckedRequest<'a>> {
        self.check_request(store, gone)?;
        if self.settings.is_private() {
            let instead = if super::private::descends(&self.settings) {
                "descent_to_delete"
            } else {
                "certified"
            };
            return Err(Error::Unsupported {
                method,
                reason: format!(
                    "it keeps no account of this model's noise; use {instead}, or retrain"
                ),
            });
        }
        Ok(CheckedRequest {
            method,
            model: self,
            store,
            gone,
        })
    }
}

impl CheckedRequest<'_> {
    /// Lets a method work; a request for nothing changes nothing.
    pub(crate) fn step(
        self,
        work: impl FnOnce(&mut RequestWork<'_>) -> Result<()>,
        claim: Claim,
    ) -> Result<Outcome<LogisticModel>> {
        let Self {
            method,
            model,
            store,
            gone,
        } = self;
        if gone.is_empty() {
            return Ok(Outcome {
                model: model.clone(),
                evidence: model.evidence(method, claim),
            });
        }
        let mut at_work = RequestWork::new(model, store, gone, None)?;
        at_work.clears = claim != Claim::Approximate;
        work(&mut at_work)?;
        if model.has_no_penalty() && at_work.relative_bound().is_infinite() {
            // Without a penalty the rows that are left may have no optimum at all; only training
            // can tell.
            let mut trial = RequestWork::new(model, store, gone, None)?;
            trial.train_anew()?;
        }
        Ok(at_work.finish(method, claim))
    }
}

impl<'a> RequestWork<'a> {
    pub(crate) fn new(
        before: &'a LogisticModel,
        store: &'a dyn RowStore,
        gone: &'a [RowId],
        new: Option<&'a Rows>,
    ) -> Result<Self> {
        let frame = before.frame();
        let total = gone.len() + new.map_or(0, |new| new.len());
        let mut movers = RequestRows::new(before.basis.width(), total);
        let mut class_rows = before.class_rows.clone();
        let mut fault = Ok(());
        // A fit measures rows in units of its own; a row whose square is beyond numbers in those
        // units was never in it.
        let mut written = vec![
            0.0;
            if before.basis.is_unshifted() {
                0
            } else {
                before.basis.width()
            }
        ];
        let mut holds = |row: RowRef<'_>| {
            let mut square = 0.0;
            if written.is_empty() {
                row.each(|j, x| square += (x * before.basis.inverse_scale(j)).powi(2));
            } else {
                // The entry is judged after the shift: a value far from 0 may be near the origin of
                // its column.
                before.basis.write(row, 1.0, &mut written);
                square = dot(&written, &written);
            }
            if square.is_finite() {
                Ok(())
            } else {
                Err(Error::Overflow)
            }
        };
        store.visit(
            gone,
            &mut |_, row| match holds(row.features).and_then(|()| frame.member(row)) {
                Ok(member) => {
                    movers.push(frame, &member, -1.0);
                    let counts = (member.weight > 0.0) as u64;
                    class_rows[member.class] = class_rows[member.class].saturating_sub(counts);
                }
                Err(error) => fault = Err(error),
            },
        )?;
        fault?;
        for row in new.into_iter().flat_map(|new| new.iter()) {
            holds(row.features)?;
            let member = frame.member(row)?;
            movers.push(frame, &member, 1.0);
            class_rows[member.class] += (member.weight > 0.0) as u64;
        }
        before.check_classes(&class_rows)?;
        movers.score(&before.theta);
        let mut next = before.clone();
        // A run of gradient descent over other rows is of no use, and would keep what is to go.
        next.path = None;
        // Rows that join are in no table.
        next.aids.table = next
            .aids
            .table
            .filter(|_| new.is_none())
            .map(|table| table.without(gone));
        next.rows = store.len() + total - 2 * gone.len();
        next.class_rows = class_rows;
        let leaving = super::private::fingerprint(gone.iter().copied());
        let joining = super::private::fingerprint(new.into_iter().flat_map(|new| new.ids()));
        next.row_set = next.row_set.wrapping_sub(leaving).wrapping_add(joining);
        if !gone.is_empty() && new.is_some() {
            // An amended row keeps its id and has other content, so the set of rows counts as
            // another one.
            next.row_set = next
                .row_set
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .wrapping_add(1);
        }
        let mut work = Self {
            before,
            ground: None,
            shape: None,
            store,
            gone,
            new,
            next,
            movers,
            read: total,
            steps: 0,
            passes: 0,
            refreshed: false,
            leverage: None,
            condition: None,
            last_swing: 0.0,
            looks_suffice: true,
            surveyed: false,
            steps_are_slow: false,
            profiles: false,
            clears: true,
        };
        work.prepare()?;
        Ok(work)
    }

    /// Brings gradient and Hessian to the new rows, at the old parameters.
    fn prepare(&mut self) -> Result<()> {
        let Some(standing) = self.before.standing.clone() else {
            return self.prepare_bare();
        };
        let frame = self.before.frame();
        let par = self.before.par();
        let ledger = &mut self.next.ledger;
        // A row that joins may have a column that none had: from here on its pull counts.
        for j in standing.unsupported() {
            let slope = self.before.extra.slope_of(j, &self.before.theta);
            slope
                .into_iter()
                .enumerate()
                .for_each(|(c, slope)| ledger.leftover[(j, c)] = slope);
        }
        ledger.profile = f64::INFINITY;
        if let Some(anchor) = &mut ledger.anchor {
            // Rows that join were not seen there.
            anchor.seen = anchor.seen.take().filter(|_| self.new.is_none());
            anchor
                .seen
                .iter_mut()
                .for_each(|seen| seen.lose(frame, &self.movers));
        }
        let known = standing.known_solution(&flat(&ledger.leftover));
        let pulls = self.movers.pulls(frame, &self.movers.scores);
        ledger.leftover += self.movers.gradient(&pulls);
        let gradient = flat(&ledger.leftover);
        ledger.leftover_local = f64::INFINITY;
        // Rows are weighed where the Hessian was made, if that place is known: then they leave
        // nothing wrong in it.
        let birthplace = ledger.anchor.as_ref().and_then(WayAnchor::birthplace);
        let scores = birthplace.map(|theta| self.movers.scores_at(theta));
        let mut drift = 0.0;
        let mut turned = 0.0;
        if scores.is_none() {
            drift = self.before.settings.link.lipschitz() * ledger.moved * self.movers.cubes();
            turned = (self.before.settings.link.concordance() * ledger.swung).exp_m1();
        }
        ledger.drift += drift;
        self.next.facts.reach = self.next.facts.reach.max(self.movers.reach());
        let old = standing.pending.as_deref();
        let scores = scores.as_ref().unwrap_or(&self.movers.scores);
        let waiting = WaitingRows::new(old.map(LowRank::waiting), &self.movers, scores, frame);
        // A few rows wait as a low-rank block; many are folded in at once.
        let total = standing.base.hessian.nrows();
        let are_few = 2 * waiting.rank() <= total;
        let solved = if are_few {
            LowRank::new(&standing.base, old, waiting, &pulls, par)
        } else {
            Err(Box::new(waiting))
        };
        let waiting = match solved {
            Ok((pending, pulled)) => {
                let solved = known.zip(pulled).map(|(known, pulled)| known + pulled);
                let solved = solved.map(|solved| Arc::new(SolvedGradient { gradient, solved }));
                // How far a row that joins would have moved is not known by the moves of the
                // others.
                let by_norm = drift * standing.base.scales.inverse_norm;
                let by_leverage = if self.movers.all_leave() {
                    turned * pending.newest
                } else {
                    f64::INFINITY
                };
                self.next.ledger.warp += if drift == 0.0 {
                    0.0
                } else {
                    by_norm.min(by_leverage)
                };
                self.leverage = Some(pending.core.leverage);
                self.condition = Some(pending.core.condition);
                let pending = Some(Arc::new(pending));
                self.next.standing = Some(StandingHessian {
                    base: standing.base,
                    pending,
                    solved,
                });
                self.note_dead();
                return Ok(());
            }
            Err(waiting) => waiting,
        };
        match standing
            .base
            .settled(&waiting, None, &self.before.extra, frame)
        {
            Ok(SettlingCurvature {
                curvature, growth, ..
            }) => {
                self.next.standing = Some(StandingHessian::new(curvature));
                let ledger = &mut self.next.ledger;
                ledger.lose_local_way();
                ledger.warp = (ledger.warp + drift * standing.base.scales.inverse_norm) * growth;
                ledger.unknown_local *= growth.sqrt();
                self.next.refactorisations += 1;
                self.note_dead();
                Ok(())
            }
            // What later requests left wrong in the Hessian can make it indefinite: compute it
            // anew.
            Err(_) => self.refresh(),
        }
    }

    /// Trains on the rows that are left, from the parameters at hand, guided by the kept Hessian
    /// where there is one. That Hessian stays, unless the way was so long that its bounds are worth
    /// little.
    pub(crate) fn train(&mut self) -> Result<()> {
        let limits = self.next.limits(&self.next.facts);
        let Some(standing) = self.next.standing.clone() else {
            return self.train_anew();
        };
        let trained = self.over_rows(|model, sample| {
            let objective = model.objective(sample);
            let factor = standing.base.factor.clone();
            let limits = super::train::TrainingLimits {
                keep: false,
                ..limits
            };
            let trained =
                super::train::train(&objective, model.theta.clone(), Some(factor), limits)?;
            Ok((trained.place, trained.iterations, trained.passes))
        });
        let (place, iterations, passes) = match trained {
            // Far from the optimum, or in coordinates that rows to come did not fit, a fresh start
            // may do better.
            Err(Error::NotTrained { .. } | Error::Singular { .. }) => return self.start_over(),
            other => other?,
        };
        self.steps += iterations;
        self.passes += passes;
        self.read += passes.saturating_sub(1) * self.next.rows;
        self.go_to(place.theta, Some(&standing));
        self.take_gradient(place.gradient);
        let next = &self.next;
        let stale = next.settings.link.concordance() * next.ledger.swung;
        let wrong = next.ledger.wrong(&standing.base.scales) * standing.growth();
        if stale > STALE || wrong > STALE {
            self.refresh()
        } else {
            Ok(())
        }
    }

    /// Takes over parameters, whatever they come from, and notes how far they are from where the
    /// Hessian was made.
    fn go_to(&mut self, theta: Mat<f64>, standing: Option<&StandingHessian>) {
        if let Some(standing) = standing {
            let mut way = &theta - &self.next.theta;
            super::dead::leave_out(&mut way, &standing.unsupported());
            let way = flat(&way);
            let StepWay { length, swing, .. } = self.way(standing, &way, &standing.times(&way));
            self.next.ledger.moved += length;
            self.next.ledger.swung += swing;
            self.next.ledger.lose_local_way();
        }
        self.next.theta = theta;
    }

    /// Takes over parameters, and measures the gradient there.
    pub(super) fn move_to(&mut self, theta: Mat<f64>) -> Result<()> {
        let standing = self.next.standing.clone();
        self.go_to(theta, standing.as_ref());
        self.measure()
    }

    /// The rows that are to go.
    pub(super) fn removed_rows(&self) -> Result<Rows> {
        Rows::read(self.store, self.gone)
    }

    /// Fits the rows that are left from scratch.
    pub(crate) fn start_over(&mut self) -> Result<()> {
        let rows = ChangedRows::new(self.store, self.gone, self.new);
        let refactorisations = self.next.refactorisations + 1;
        let row_set = self.next.row_set;
        self.next = self.before.settings.fit(&rows, None)?;
        self.next.row_set = row_set;
        self.next.refactorisations = refactorisations;
        self.read += rows.len();
        self.passes += 1;
        self.refreshed = true;
        Ok(())
    }

    /// Trains on the rows that are left, from the parameters at hand, and makes everything kept
    /// anew.
    pub(crate) fn train_anew(&mut self) -> Result<()> {
        let refactorisations = self.next.refactorisations + 1;
        // Training on other rows draws other noise.
        let mut fresh = self.next.clone();
        let basis = fresh.basis.clone();
        let outputs = fresh.outputs();
        fresh.noise_rows = fresh.row_set;
        let gauge = fresh.extra.gauge.clone();
        fresh.extra = Arc::new(
            fresh
                .settings
                .extra(&basis, gauge, outputs, fresh.noise_rows),
        );
        let (next, iterations, passes) = match self.over_rows(|_, sample| fresh.trained(sample)) {
            Err(Error::NotTrained { .. } | Error::Singular { .. }) => return self.start_over(),
            other => other?,
        };
        self.next = next;
        self.next.refactorisations = refactorisations;
        self.steps += iterations;
        self.passes += passes;
        self.read += passes.saturating_sub(1) * self.next.rows;
        self.refreshed = true;
        Ok(())
    }

    /// H⁻¹ times the gradient, over the rows that are left.
    pub(super) fn direction(&mut self, accuracy: f64) -> Result<Mat<f64>> {
        let rhs = flat(&self.gradient(&self.next.dead_columns()));
        match &self.next.standing {
            Some(standing) => Ok(match standing.known_solution(&rhs) {
                Some(known) => standing.corrected(known),
                None => standing.solve(&rhs, self.before.par()),
            }),
            None => {
                let mut aids = std::mem::take(&mut self.next.aids);
                let made = aids.guide.is_none();
                let (step, products) = self.over_rows(|model, sample| {
                    model
                        .objective(sample)
                        .solve(&model.theta, &rhs, accuracy, &mut aids)
                })?;
                let row_set = self.next.row_set;
                if made {
                    aids.guide = aids.guide.map(|guide| guide.of_rows(row_set));
                }
                self.next.aids = aids;
                self.passes += products;
                Ok(step)
            }
        }
    }

    /// One Newton step.
    pub(crate) fn newton(&mut self) -> Result<()> {
        self.newton_within(ACCURACY)
    }

    /// One Newton step; conjugate gradients, where no factor is kept, take it to this accuracy.
    pub(crate) fn newton_within(&mut self, accuracy: f64) -> Result<()> {
        let direction = self.direction(accuracy)?;
        self.advance(direction, true)
    }

    /// The Newton step with the Hessian of all rows, those that leave included.
    pub(crate) fn influence(&mut self) -> Result<()> {
        // What an earlier request left in columns without rows is not this request's to take.
        let before = self.before.dead_columns();
        let mut dead = self.next.dead_columns();
        dead.retain(|j| before.binary_search(j).is_err());
        let rhs = flat(&self.gradient(&dead));
        let direction = match &self.before.standing {
            Some(standing) => standing.solve(&rhs, self.before.par()),
            None => {
                let (step, products) = self.before.over_all_rows(self.store, |sample| {
                    self.before.objective(sample).solve(
                        &self.before.theta,
                        &rhs,
                        ACCURACY,
                        &mut StepAids::default(),
                    )
                })?;
                self.read += self.store.len();
                self.passes += products;
                step
            }
        };
        self.advance(direction, false)
    }

    /// The Newton step as `project` lets it through: parameters in the caller's coordinates in and
    /// out.
    pub(crate) fn projected(
        &mut self,
        project: impl FnOnce(&Mat<f64>, &[f64]) -> Result<(Mat<f64>, Vec<f64>)>,
    ) -> Result<()> {
        let direction = shaped(&self.direction(ACCURACY)?, self.next.theta.nrows());
        let (coefficients, intercept) = self.next.basis.to_caller(&direction);
        let (coefficients, intercept) = project(&coefficients, &intercept)?;
        let direction = flat(&self.next.basis.to_inner(&coefficients, &intercept));
        self.advance(direction, false)
    }

    /// θ ← θ − direction. `solved` says that this is the Newton step, after which nothing known is
    /// left of the gradient.
    pub(super) fn advance(&mut self, mut direction: Mat<f64>, solved: bool) -> Result<()> {
        self.steps += 1;
        direction *= faer::Scale(-1.0);
        let width = self.next.theta.nrows();
        let Some(standing) = self.next.standing.clone() else {
            self.next.theta += shaped(&direction, width);
            return if self.profiles {
                self.measure_profiled()
            } else {
                self.measure()
            };
        };
        // No row that is left sees a move along a column that it does not have, nor does the
        // gradient of the others.
        let mut seen = shaped(&direction, width);
        super::dead::leave_out(&mut seen, &standing.unsupported());
        let seen = flat(&seen);
        let base = &standing.base;
        let waiting = standing.pending.as_deref().map(LowRank::waiting);
        // H·Δ of a Newton step is known: the gradient, up to the sign.
        let product = if solved {
            flat(&self.next.ledger.leftover) * faer::Scale(-1.0)
        } else {
            standing.times(&seen)
        };
        let StepWay {
            length,
            swing,
            local,
        } = self.way(&standing, &seen, &product);
        self.last_swing = swing;
        let trouble = standing
            .pending
            .as_ref()
            .map_or(1.0, |pending| 1.0 + pending.core.norm);
        let size = StepSize {
            lipschitz: self.next.settings.link.lipschitz(),
            concordance: self.next.settings.link.concordance(),
            along: dot(product.col_as_slice(0), seen.col_as_slice(0)).max(0.0),
            length,
            swing,
            local,
            spread: base.spread(&seen, waiting),
            // Solving for all columns at once rounds by the length of the whole step.
            rounding: 8.0
                * UNIT
                * (direction.nrows() as f64).sqrt()
                * base.scales.size
                * norm(&direction)
                * trouble,
        };
        let ledger = &mut self.next.ledger;
        if solved {
            ledger.leftover = Mat::zeros(width, self.before.outputs());
            ledger.leftover_local = 0.0;
        } else {
            ledger.leftover += shaped(&product, width);
            super::dead::leave_out(&mut ledger.leftover, &standing.unsupported());
        }
        ledger.advance(
            &size,
            &base.scales,
            waiting.map_or(0.0, WaitingRows::joined),
            standing.growth(),
        );
        if !solved {
            // Only to the norm: the local one is worth a solve here.
            let unknown = ledger.unknown;
            let unknown_local = ledger.unknown_local;
            ledger.localise(&standing, self.before.par());
            (ledger.unknown, ledger.unknown_local) = (unknown, unknown_local);
        }
        let begin = self.next.theta.clone();
        self.next.theta += shaped(&direction, width);
        self.shorten_way(&standing, &begin, &seen, &product);
        self.note_dead();
        Ok(())
    }

    /// Takes note of how far a step, of which `product` is H·step, leads from the anchor.
    fn shorten_way(
        &mut self,
        standing: &StandingHessian,
        begin: &Mat<f64>,
        step: &Mat<f64>,
        product: &Mat<f64>,
    ) {
        let Some(anchor) = &self.next.ledger.anchor else {
            return;
        };
        let mut way = anchor.way_to(begin);
        super::dead::leave_out(&mut way, &standing.unsupported());
        let way = flat(&way);
        let mut end = way.clone();
        end += step;
        let waiting = standing.pending.as_deref().map(LowRank::waiting);
        let left = |a: &Mat<f64>| waiting.map_or(0.0, |waiting| waiting.left_product(a, step));
        let scales = &standing.base.scales;
        let along = |a: &Mat<f64>| dot(a.col_as_slice(0), product.col_as_slice(0)) + left(a);
        let account = WayStep {
            product: along(&way),
            local_square: along(step).max(0.0),
            length: norm(&end),
            reach: self.next.facts.reach,
            // The products above count rows that joined, whose reach is another one.
            local_reach: match waiting {
                Some(waiting) if waiting.joining_reach() > 0.0 => f64::INFINITY,
                _ => scales.reach,
            },
        };
        self.next.ledger.shorten_way(&account);
        if account.local_reach.is_infinite() {
            self.next.ledger.lose_local_way();
        }
    }

    /// How long a move of the parameters is, and how far it can move the score of a row: by way of
    /// the plain norms, or of those of the Hessian, to which rows that left and wait still belong.
    /// `product` is H·move without them.
    fn way(&self, standing: &StandingHessian, step: &Mat<f64>, product: &Mat<f64>) -> StepWay {
        let length = norm(step);
        let waiting = standing.pending.as_deref().map(LowRank::waiting);
        let left = waiting.map_or(0.0, |waiting| waiting.left_along(step));
        let local = (dot(product.col_as_slice(0), step.col_as_slice(0)).max(0.0) + left).sqrt();
        let scales = &standing.base.scales;
        // Rows that joined since have their reach bounded by way of the plain norm.
        let newcomers = waiting.map_or(0.0, WaitingRows::joining_reach);
        let newcomers = newcomers
            * (step.nrows() as f64 / self.next.theta.nrows() as f64 * scales.inverse_norm).sqrt();
        let swing = (self.next.facts.reach * length).min(scales.reach.max(newcomers) * local);
        StepWay {
            length,
            swing,
            local,
        }
    }

    /// At least the norm of the gradient, as it stands.
    pub(crate) fn gradient_norm(&self) -> f64 {
        self.next.ledger.gradient()
    }

    /// The relative distance bound as it stands.
    pub(crate) fn relative_bound(&self) -> f64 {
        self.next.current_bound().relative
    }

    pub(crate) fn finish(mut self, method: &str, claim: Claim) -> Outcome<LogisticModel> {
        let cleared = if self.clears {
            self.next.clear_dead_columns()
        } else {
            None
        };
        let Self {
            next,
            gone,
            new,
            read,
            steps,
            refreshed,
            leverage,
            condition,
            before,
            ..
        } = self;
        let mut evidence: Evidence = next.evidence(method, claim);
        (evidence.forgotten, evidence.learned) = (gone.len(), new.map_or(0, |new| new.len()));
        evidence.rows_read = read;
        evidence.cleared = cleared;
        evidence.iterations = steps;
        evidence.refactored = next.refactorisations > before.refactorisations;
        evidence.resummed = refreshed;
        (evidence.largest_leverage, evidence.condition) = (leverage, condition);
        if refreshed {
            evidence.precomputed.clear();
        }
        Outcome {
            model: next,
            evidence,
        }
    }
}
