//! A request at work where no Hessian is kept: its steps are found by conjugate gradients over the
//! rows that are left, and measured there.

use std::sync::Arc;

use faer::Mat;

use super::bound::RowFacts;
use super::change::RequestWork;
use super::objective::{flat, shaped};
use crate::error::Result;
use crate::evidence::BoundSource;
use crate::linalg::{column_norm, norm};

impl RequestWork<'_> {
    /// Brings the gradient to the new rows, at the old parameters: it is the one that is known with
    /// the rows of the request taken out or in, and the rows are surveyed, which takes a small part
    /// of a pass.
    pub(super) fn prepare_bare(&mut self) -> Result<()> {
        let facts =
            (self.new.is_none() && self.before.unseen.is_empty()).then(|| self.facts_left());
        let (facts, unseen, is_slow) = self.over_rows(|model, sample| {
            let is_slow = !sample.is_thin(model.frame())
                && sample.shape.members < model.theta.nrows() * model.theta.ncols();
            // Where rows only leave, and those that stay have all columns, what was known of them
            // still holds.
            if let Some(facts) = facts
                && sample.uses_all_columns(model.frame())
            {
                return Ok((facts, Vec::new(), is_slow));
            }
            let survey = sample.survey(model.frame(), false)?;
            Ok((RowFacts::of(&survey), survey.unseen(), is_slow))
        })?;
        self.surveyed = true;
        self.steps_are_slow = is_slow;
        // A row that joins may have a column that none had: from here on its pull counts.
        for &j in self.before.unseen.iter() {
            let slope = self.before.extra.slope_of(j, &self.before.theta);
            let leftover = &mut self.next.ledger.leftover;
            slope
                .into_iter()
                .enumerate()
                .for_each(|(c, slope)| leftover[(j, c)] = slope);
        }
        self.next.facts = RowFacts {
            inverse_norm: f64::INFINITY,
            ..facts
        };
        self.next.unseen = Arc::new(unseen);
        let change = self
            .movers
            .gradient(&self.movers.pulls(self.before.frame(), &self.movers.scores));
        let ledger = &mut self.next.ledger;
        ledger.leftover += change;
        ledger.profile = f64::INFINITY;
        ledger.source = BoundSource::Carried;
        self.note_dead();
        Ok(())
    }

    /// What was known of the rows, without those that leave.
    fn facts_left(&self) -> RowFacts {
        let mut facts = self.before.facts;
        for k in 0..self.movers.len() {
            let weight = self.movers.weights[k];
            facts.weight -= weight;
            facts.trace -= weight * column_norm(&self.movers.x, k).powi(2);
            facts.rows = facts.rows.saturating_sub(u64::from(weight > 0.0));
        }
        // A little for the rounding of sums and differences: these are bounds.
        facts.weight = facts.weight.max(0.0) + 1e-12 * self.before.facts.weight;
        facts.trace = facts.trace.max(0.0) + 1e-12 * self.before.facts.trace;
        facts.scale = facts.weight / facts.rows.max(1) as f64;
        facts
    }

    /// One Newton step, or two where the first is to be so rough that another will have to follow:
    /// what is left after it is then only glanced at. Without a kept Hessian every step but that
    /// one is measured.
    pub(crate) fn newton_towards(&mut self, goal: f64, roughest: f64) -> Result<()> {
        let wanted = self.wanted_accuracy(goal);
        let accuracy = self.within_reason(wanted.max(roughest));
        let direction = self.direction(accuracy)?;
        if accuracy <= 2.0 * wanted || !self.glance(&direction) {
            return self.advance(direction, true);
        }
        self.steps += 1;
        let direction = self.direction(self.accuracy_after_glance(goal))?;
        self.advance(direction, true)
    }

    /// Takes a step, and estimates the gradient there in single precision; no bound follows from
    /// it. False, and nothing done, where that is not possible.
    fn glance(&mut self, direction: &Mat<f64>) -> bool {
        let next = &self.next;
        let Some(table) = next
            .aids
            .table
            .as_ref()
            .filter(|_| self.profiles && next.standing.is_none())
        else {
            return false;
        };
        let width = next.theta.nrows();
        let theta = &next.theta - shaped(direction, width);
        let change = table.slope_change(next.frame(), &next.theta, &theta);
        let mut slope = flat(&(&next.ledger.leftover + change));
        next.extra.times(
            flat(&(&theta - &next.theta)).col_as_slice(0),
            slope.col_as_slice_mut(0),
        );
        let slope = shaped(&slope, width);
        if !norm(&slope).is_finite() {
            return false;
        }
        self.count_passes(1, self.next.rows);
        self.next.theta = theta;
        let ledger = &mut self.next.ledger;
        ledger.leftover = slope;
        ledger.unknown = f64::INFINITY;
        ledger.profile = f64::INFINITY;
        self.note_dead();
        true
    }
}
