//! A look at the rows that are left in single precision, where a Hessian is kept and a request only
//! wants to know whether its step was good enough.
//!
//! Let the gradient be known at a place θ₀, and the probabilities p of every row there. Then it is
//! known at θ₀ + Δ but for Σ w x ⊗ (p(z + s) − p(z)), s = Δᵀx, plus the penalty's share, which is
//! linear. Every s is small, and so is the sum: rounding takes a share of that small number and not
//! of the gradient at large, which a plain pass in single precision would lose. With E = e^s − 1
//! and m = Σ p E over the classes, p(z + s) − p(z) = p·(E − m)/(1 + m).
//!
//! What rounding can have taken is charged to the bound, as ε below for products, κ for what is
//! done with scores, and σ for sums:
//!
//! * Scores that are wrong by η, ‖η‖ ≤ ε‖x‖‖Δ‖, leave Σ w x ⊗ J̄η, J̄ the mean J along η. For any
//!   v, Cauchy and Schwarz bound Σ w (vᵀx)ᵀJ̄η by √(vᵀ(Σ w J̄ ⊗ xxᵀ)v)·√(Σ w ηᵀJ̄η): in the norm of
//!   H⁻¹ that is at most √(e^{Mr}·½·Σ w‖η‖²), r the most that scores have moved since H was made.
//! * Shares that are wrong by κ·max|E| each leave at most √‖G‖·κ·√(Σ w max E²).
//! * Sums are wrong by σ times the sum of the sizes of their terms: at most σ·√(Σ w‖x‖²)·√(Σ w‖p(z
//!   + s) − p(z)‖²) in all.

use std::sync::Arc;

use faer::Mat;

use super::bound::BoundLedger;
use super::change::RequestWork;
use super::curvature::CurvatureScales;
use super::lane_table::{LaneTable, Lanes};
use super::objective::{flat, shaped};
use super::request_rows::RequestRows;
use super::sample::RowSample;
use super::{LogisticModel, PassFrame};
use crate::error::Result;
use crate::linalg::{BLOCK_ROWS, LaneVectors, SINGLE_UNIT, norm, widest};

/// Scores that move farther than this are left to a pass in double precision: the series below is
/// for small numbers.
const SMALL: f32 = 0.5;

/// A gradient of which no more than this share is unknown is good for another step.
const CLEAR: f64 = 0.2;

/// Numbers that are smaller than this, beside 1, may vanish in single precision.
const VANISHING: f64 = 1e-28;

/// A place where the gradient is known, and how the rows of the table stood there. It is never
/// stored, and does not outlive a fold: with the rows that are left it tells of those that went.
#[derive(Debug, Clone)]
pub(crate) struct SeenPlace {
    theta: Arc<Mat<f64>>,
    /// The gradient over the rows that are left, and at least the norm of what its evaluation can
    /// hide.
    gradient: Mat<f64>,
    hidden: f64,
    /// For every block of rows, the probabilities of every class; and how far each score had moved
    /// since the anchor, with the length of the way from there.
    probabilities: Arc<Vec<Lanes>>,
    moves: Arc<Vec<Lanes>>,
    way: f64,
}

impl SeenPlace {
    /// Takes out the rows of a request that leave.
    pub(super) fn lose(&mut self, frame: PassFrame<'_>, movers: &RequestRows) {
        let pulls = movers.pulls(frame, &movers.scores_at(&self.theta));
        self.gradient += movers.gradient(&pulls);
    }

    pub(super) fn bytes(&self) -> usize {
        (self.probabilities.len() + self.moves.len()) * size_of::<Lanes>()
    }
}

/// What a look finds beside the sum.
#[derive(Default)]
struct LookNotes {
    /// The largest |s| of a row and class, and ‖s‖² of a row since the anchor.
    largest: f32,
    swing: f32,
    /// Σ w max E² and Σ w‖p(z + s) − p(z)‖².
    squares: f64,
    changes: f64,
}

impl LogisticModel {
    /// Whether a Hessian of several classes is kept, whose rows are more than its parameters.
    fn is_for_looks(&self) -> bool {
        let keeps = self
            .standing
            .as_ref()
            .is_some_and(|standing| standing.base.inverse.is_some());
        keeps && !self.settings.is_private() && self.ledger.anchor.is_some()
    }

    /// Notes how the rows stand here, where the gradient was measured just now, for looks to come.
    pub(super) fn see(&mut self, sample: &RowSample<'_>) -> Result<()> {
        if !self.is_for_looks() {
            self.aids.table = None;
            return Ok(());
        }
        let known = self.aids.table.take();
        let frame = self.frame();
        let table = match known {
            Some(table) => Some(table),
            None => LaneTable::of(frame, sample)?,
        };
        let Some(table) = table else { return Ok(()) };
        let Some(probabilities) = table.probabilities(frame, sample, &self.theta)? else {
            return Ok(());
        };
        let Some(anchor) = &self.ledger.anchor else {
            return Ok(());
        };
        let mut way = anchor.way_to(&self.theta);
        super::dead::leave_out(&mut way, &self.dead_columns());
        let outputs = frame.outputs;
        let vectors = LaneVectors::new(way.nrows(), outputs, |j, c| way[(j, c)]);
        let mut moves = vec![[0.0; BLOCK_ROWS]; table.rows().blocks() * outputs];
        for (block, moves) in moves.chunks_exact_mut(outputs).enumerate() {
            table.rows().scores(block, &vectors, moves);
        }
        let seen = SeenPlace {
            theta: Arc::new(self.theta.clone()),
            gradient: self.ledger.leftover.clone(),
            hidden: self.ledger.unknown,
            probabilities: Arc::new(probabilities),
            moves: Arc::new(moves),
            way: norm(&way),
        };
        self.aids.table = Some(table);
        if let Some(anchor) = &mut self.ledger.anchor {
            anchor.seen = Some(seen);
        }
        Ok(())
    }
}

impl RequestWork<'_> {
    /// Computes the gradient over the rows that are left, in single precision where that is enough
    /// to know that the bound is within `goal` or that it is not.
    pub(crate) fn measure_within(&mut self, goal: f64) -> Result<()> {
        let mut worn = self
            .next
            .ledger
            .anchor
            .as_ref()
            .is_some_and(|anchor| anchor.seen.is_none());
        if self.looks_suffice && self.look() {
            let ledger = &self.next.ledger;
            if self.relative_bound() <= goal
                || ledger.unknown_local <= CLEAR * ledger.leftover_local
            {
                return Ok(());
            }
            // From a place near by, a first look would have been clear.
            worn = self.steps == 1;
        }
        self.looks_suffice = false;
        self.measure()?;
        if worn && self.next.is_for_looks() && self.new.is_none() {
            let mut next = self.next.clone();
            self.over_rows(|_, sample| next.see(sample))?;
            self.next = next;
        }
        Ok(())
    }

    /// Looks at the rows that are left in single precision. False, and nothing done, where that is
    /// not possible.
    fn look(&mut self) -> bool {
        let next = &self.next;
        let (Some(standing), Some(table)) = (&next.standing, &next.aids.table) else {
            return false;
        };
        let Some((anchor, seen)) = next
            .ledger
            .anchor
            .as_ref()
            .and_then(|anchor| Some((anchor, anchor.seen.as_ref()?)))
        else {
            return false;
        };
        let scales = &standing.base.scales;
        let wrong = next.ledger.wrong(scales);
        let mut way = &next.theta - &*seen.theta;
        super::dead::leave_out(&mut way, &standing.unsupported());
        let frame = next.frame();
        let outputs = frame.outputs;
        let vectors = LaneVectors::new(way.nrows(), outputs, |j, c| way[(j, c)]);
        let weights = table.weights();
        let (sums, notes) = table.share_sum(
            frame.threads,
            &vectors,
            |notes: &mut LookNotes, block, scores| {
                let lines = block * outputs..(block + 1) * outputs;
                let (p, moves) = (&seen.probabilities[lines.clone()], &seen.moves[lines]);
                widest(
                    #[inline(always)]
                    || change(p, moves, &weights[block], scores, notes),
                );
            },
        );
        let largest = notes.iter().map(|notes| notes.largest).fold(0.0, f32::max);
        let total = |part: fn(&LookNotes) -> f64| 1.01 * notes.iter().map(part).sum::<f64>();
        let (squares, changes) = (total(|notes| notes.squares), total(|notes| notes.changes));
        // What is no number is not finite, and ends up in both sums.
        if !(largest <= SMALL && squares.is_finite() && changes.is_finite() && wrong < 0.5) {
            return false;
        }
        let mut slope = flat(&seen.gradient);
        for (at, slope) in slope.col_as_slice_mut(0).iter_mut().enumerate() {
            *slope += sums[at % way.nrows() * outputs + at / way.nrows()];
        }
        let length = norm(&way);
        next.extra
            .times(flat(&way).col_as_slice(0), slope.col_as_slice_mut(0));
        let swing = notes.iter().map(|notes| notes.swing).fold(0.0, f32::max);
        let apart = table.rows().product_error();
        let swing = 1.001 * f64::from(swing).sqrt()
            + apart * (length + seen.way + VANISHING) * next.facts.reach;
        let swung = next.ledger.swung.min(anchor.swung_by(swing));
        let (bend, concordance) = (frame.link.curvature(), next.settings.link.concordance());
        let CurvatureScales {
            inverse_norm,
            gram_norm,
            ..
        } = *scales;
        let survey = &standing.base.survey;
        let spread = survey.trace.sqrt() + VANISHING * survey.weight.sqrt();
        let scored = apart * (length + VANISHING) * spread;
        let shared = 2.0 * (outputs + 24) as f64 * SINGLE_UNIT * squares.sqrt() * gram_norm.sqrt();
        let summed = table.rows().sum_error() * spread * changes.sqrt();
        let hidden = seen.hidden + next.hidden(&next.facts, &next.theta) + shared + summed;
        let scored_local =
            (0.5 * concordance * swung).exp() * (bend * (1.0 + 2.0 * wrong)).sqrt() * scored;
        let gradient = shaped(&slope, way.nrows());
        let fresh = BoundLedger::measured(gradient, hidden + gram_norm.sqrt() * bend * scored);
        let root = inverse_norm.sqrt();
        self.read += next.rows;
        self.passes += 1;
        self.take_measured(BoundLedger { swung, ..fresh });
        let ledger = &mut self.next.ledger;
        ledger.unknown_local = ledger.unknown_local.min(hidden * root + scored_local);
        true
    }
}

/// What the rows of a block add to the gradient, times 1/x, in the place of how far their scores
/// moved.
#[inline(always)]
fn change(
    p: &[Lanes],
    moves: &[Lanes],
    weights: &Lanes,
    scores: &mut [Lanes],
    notes: &mut LookNotes,
) {
    let mut largest = [0.0f32; BLOCK_ROWS];
    let mut swings = [0.0f32; BLOCK_ROWS];
    let mut means = [0.0f32; BLOCK_ROWS];
    let mut most = [0.0f32; BLOCK_ROWS];
    for ((scores, p), moves) in scores.iter_mut().zip(p).zip(moves) {
        let old = *scores;
        for k in 0..BLOCK_ROWS {
            largest[k] = largest[k].max(old[k].abs());
            swings[k] += (old[k] + moves[k]) * (old[k] + moves[k]);
        }
        // e^s − 1 by its series, whose ninth term is below 1e-8 of the first up to ½.
        *scores = std::array::from_fn(|k| {
            let s = old[k];
            let rest = 1.0 / 120.0 + s * (1.0 / 720.0 + s * (1.0 / 5040.0 + s * (1.0 / 40320.0)));
            s * (1.0 + s * (0.5 + s * (1.0 / 6.0 + s * (1.0 / 24.0 + s * rest))))
        });
        for k in 0..BLOCK_ROWS {
            most[k] = most[k].max(scores[k].abs());
            means[k] += p[k] * scores[k];
        }
    }
    let mut squares = [0.0f32; BLOCK_ROWS];
    for (scores, p) in scores.iter_mut().zip(p) {
        let old = *scores;
        for k in 0..BLOCK_ROWS {
            let moved = p[k] * (old[k] - means[k]) / (1.0 + means[k]);
            squares[k] += moved * moved;
            scores[k] = weights[k] * moved;
        }
    }
    let (mut own, mut changes) = (0.0f32, 0.0f32);
    for k in 0..BLOCK_ROWS {
        // A row that left moves no score that counts.
        let here = weights[k] > 0.0;
        notes.largest = notes.largest.max(if here { largest[k] } else { 0.0 });
        notes.swing = notes.swing.max(if here { swings[k] } else { 0.0 });
        own += weights[k] * most[k] * most[k];
        changes += weights[k] * squares[k];
    }
    notes.squares += f64::from(own);
    notes.changes += f64::from(changes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::dot;
    use crate::methods::Auto;
    use crate::models::logistic::Softmax;
    use crate::rows::{Dense, RowId, Rows};
    use crate::traits::{Amend, Fit, Forget};
    use crate::{Classes, Fitted};
    use rand::RngExt;

    const WIDTH: usize = 60;
    const CLASSES: usize = 10;

    /// Rows of ten classes, and more of them than parameters. `twist` makes them unlike what a
    /// computer likes best.
    fn rows(twist: impl Fn(usize, usize, f64) -> f64) -> Rows {
        let count = 1_400;
        let mut random = crate::random::seeded(7);
        let classes = Classes::new((0..CLASSES).map(|c| c.to_string()).collect()).unwrap();
        let mut features = Vec::new();
        let mut targets = Vec::new();
        for i in 0..count {
            let class = i % CLASSES;
            for j in 0..WIDTH {
                let own = if j % CLASSES == class { 0.7 } else { 0.0 };
                features.push(twist(
                    i,
                    j,
                    random.sample::<f64, _>(rand_distr::StandardNormal) + own,
                ));
            }
            classes.encode(class, &mut targets);
        }
        Rows::new(Dense::new(features, WIDTH).unwrap(), targets, CLASSES).unwrap()
    }

    fn model(rows: &Rows, threads: usize) -> LogisticModel {
        Softmax::new(1.0).threads(threads).fit(rows).unwrap()
    }

    #[test]
    fn a_look_finds_the_gradient_to_what_it_charges() {
        let twists: [fn(usize, usize, f64) -> f64; 4] = [
            |_, _, x| x,
            // Columns far from 0 and of unlike sizes.
            |_, j, x| (x + 40.0) * 10f64.powi(j as i32 % 7 - 3),
            // One large row.
            |i, _, x| if i == 3 { 4.0 * x } else { x },
            // Columns that nearly repeat each other.
            |i, j, x| {
                if j % 2 == 0 {
                    x
                } else {
                    0.1 * x + ((i * 37) as f64).sin()
                }
            },
        ];
        let mut looks = [0; 4];
        for (at, twist) in twists.into_iter().enumerate() {
            for threads in [1, 3] {
                let rows = rows(twist);
                let model = model(&rows, threads);
                for gone in [vec![RowId(8)], vec![RowId(100), RowId(777)]] {
                    let mut work = RequestWork::new(&model, &rows, &gone, None).unwrap();
                    let local = |work: &RequestWork<'_>, gradient: &Mat<f64>| {
                        let column = flat(gradient);
                        let mut solved = column.clone();
                        let standing = work.next.standing.as_ref().unwrap();
                        standing.base.factor.solve(solved.as_mut(), faer::Par::Seq);
                        dot(column.col_as_slice(0), solved.col_as_slice(0)).sqrt()
                    };
                    let first = local(&work, &work.next.ledger.leftover);
                    work.newton().unwrap();
                    let swung = work.next.ledger.anchor.as_ref().unwrap().swung_by(0.0);
                    // Scores that move by more than a half are not for a look, nor are rows whose
                    // Hessian single precision cannot hold.
                    if !work.look() {
                        continue;
                    }
                    looks[at] += 1;
                    let looked = work.next.ledger.clone();
                    work.measure().unwrap();
                    let truth = &work.next.ledger;
                    let apart = &looked.leftover - &truth.leftover;
                    let charged = looked.unknown + truth.unknown;
                    assert!(
                        norm(&apart) <= charged,
                        "{at}: {:e} > {charged:e}",
                        norm(&apart)
                    );
                    let found = local(&work, &apart);
                    let charged = looked.unknown_local + truth.unknown_local;
                    assert!(found <= charged, "{at}: {found:e} > {charged:e}");
                    assert!(looked.swung >= truth.swung * (1.0 - 1e-6) && looked.swung >= swung);
                    // And it is worth looking.
                    assert!(charged < 0.02 * first, "{at}: {charged:e} of {first:e}");
                }
            }
        }
        assert!(looks.iter().all(|looks| *looks >= 2), "{looks:?}");
    }

    #[test]
    fn looks_end_at_the_tolerance_and_bounds_hold_over_a_stream() {
        let rows = rows(|_, _, x| x);
        let recipe = Softmax::new(1.0);
        let mut fitted = Fitted::new(&recipe, rows.clone()).unwrap();
        for k in 0..70 {
            let evidence = fitted.forget(&Auto::default(), &[RowId(k * 17)]).unwrap();
            assert!(evidence.relative_bound <= 3e-4);
            if k % 10 == 9 {
                let fresh = recipe.fit(fitted.rows()).unwrap();
                let [(a, b), (c, d)] = [fitted.model().parameters(), fresh.parameters()];
                let square = norm(&(a - c)).powi(2)
                    + b.iter().zip(d).map(|(b, d)| (b - d).powi(2)).sum::<f64>();
                assert!(
                    square.sqrt() <= evidence.bound,
                    "{k}: {:e} > {:e}",
                    square.sqrt(),
                    evidence.bound
                );
            }
        }
    }

    #[test]
    fn rows_that_left_are_overwritten_and_rows_that_join_end_the_looks() {
        let rows = rows(|_, _, x| x);
        let mut fitted = Fitted::new(&Softmax::new(1.0), rows.clone()).unwrap();
        let width = WIDTH + 1;
        let table = |fitted: &Fitted<LogisticModel>| fitted.model().aids.table.clone();
        let scores = |table: &LaneTable| {
            let vectors = LaneVectors::new(width, 1, |j, _| (j == 1) as u8 as f64);
            let mut scores = vec![[0.0; BLOCK_ROWS]];
            table.rows().scores(0, &vectors, &mut scores);
            scores[0]
        };
        assert!(scores(&table(&fitted).unwrap())[5] != 0.0);
        fitted.forget(&Auto::default(), &[RowId(5)]).unwrap();
        assert_eq!(scores(&table(&fitted).unwrap())[5], 0.0);
        assert!(scores(&table(&fitted).unwrap())[6] != 0.0);
        // Somebody else holds this table, so that it is copied at the next settle.
        let held = table(&fitted).unwrap();
        fitted.forget(&Auto::default(), &[RowId(6)]).unwrap();
        fitted.settle().unwrap();
        assert_eq!(scores(&table(&fitted).unwrap())[6], 0.0);
        assert!(scores(&held)[6] != 0.0);
        assert!(
            fitted
                .model()
                .ledger
                .anchor
                .as_ref()
                .unwrap()
                .seen
                .is_none(),
            "a fold left a gradient"
        );
        fitted.learn(&rows.filter(|id| id == RowId(5))).unwrap();
        assert!(table(&fitted).is_none());
        let evidence = fitted.forget(&Auto::default(), &[RowId(7)]).unwrap();
        assert!(evidence.relative_bound <= 3e-4);
    }

    #[test]
    fn with_more_parameters_than_rows_a_glance_saves_a_pass_and_the_bound_holds() {
        let (count, width, classes) = (420, 700, 4);
        let mut random = crate::random::seeded(11);
        let names = Classes::new((0..classes).map(|c| c.to_string()).collect()).unwrap();
        let mut features = Vec::new();
        let mut targets = Vec::new();
        for i in 0..count {
            for j in 0..width {
                let own = if j % classes == i % classes { 0.1 } else { 0.0 };
                // One row alone has the column 5.
                let here = j != 5 || i == 30;
                features.push(if here {
                    random.sample::<f64, _>(rand_distr::StandardNormal) + own
                } else {
                    0.0
                });
            }
            names.encode(i % classes, &mut targets);
        }
        let rows = Rows::new(Dense::new(features, width).unwrap(), targets, classes).unwrap();
        let recipe = Softmax::new(1.0);
        let mut fitted = Fitted::new(&recipe, rows).unwrap();
        assert!(fitted.model().standing.is_none());
        for (k, tolerance) in [(7, 3e-4), (30, 3e-4), (99, 1e-6), (200, 1e-8)] {
            let evidence = fitted
                .forget(
                    &Auto {
                        tolerance: Some(tolerance),
                    },
                    &[RowId(k)],
                )
                .unwrap();
            assert!(
                evidence.relative_bound <= tolerance,
                "{k}: {:e}",
                evidence.relative_bound
            );
            assert_eq!(evidence.cleared.is_some(), k == 30);
            let fresh = recipe.fit(fitted.rows()).unwrap();
            let [(a, b), (c, d)] = [fitted.model().parameters(), fresh.parameters()];
            assert_eq!(a[(5, 0)] == 0.0, k >= 30);
            let square =
                norm(&(a - c)).powi(2) + b.iter().zip(d).map(|(b, d)| (b - d).powi(2)).sum::<f64>();
            assert!(
                square.sqrt() <= evidence.bound,
                "{k}: {:e} > {:e}",
                square.sqrt(),
                evidence.bound
            );
        }
    }

    #[test]
    fn a_table_of_other_rows_is_not_looked_at() {
        let rows = rows(|_, _, x| x);
        let model = model(&rows, 1);
        let fewer = rows.filter(|id| id != RowId(9));
        let mut other = model.clone();
        model
            .over_all_rows(&fewer, |sample| other.see(sample))
            .unwrap();
        assert!(other.aids.table.is_none());
        let outcome = Auto::default().forget(&model, &rows, &[RowId(9)]).unwrap();
        assert_eq!(outcome.model.waiting(), 1);
    }
}
