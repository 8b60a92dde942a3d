//! Columns that no retained row has. Only the penalty holds their weights, so that retraining puts
//! 0 there; a method puts there what its formula gives, which for the influence function or a
//! projected step is a share of what the forgotten rows taught. Whether such weights are then set
//! to 0 is a step of its own, which follows from the count of rows behind a column and not from the
//! method, and is reported as such.

use faer::Mat;

use super::LogisticModel;
use super::change::RequestWork;
use crate::evidence::{ClearedColumns, Outcome};

/// Sets the lines of these columns to 0.
pub(super) fn leave_out(table: &mut Mat<f64>, columns: &[usize]) {
    for &j in columns {
        table.row_mut(j).fill(0.0);
    }
}

impl LogisticModel {
    /// Columns that no row has, ascending.
    pub(crate) fn dead_columns(&self) -> Vec<usize> {
        match &self.standing {
            Some(standing) => standing.unsupported(),
            None => self.unseen.to_vec(),
        }
    }

    /// The norm, in the caller's coordinates, of the weights of these columns, and how many of them
    /// have one.
    fn weights_of(&self, columns: &[usize]) -> ClearedColumns {
        let mut weights = Mat::zeros(self.theta.nrows(), self.theta.ncols());
        let mut held = 0;
        for &j in columns {
            weights.row_mut(j).copy_from(self.theta.row(j));
            held += (0..self.theta.ncols()).any(|c| self.theta[(j, c)] != 0.0) as usize;
        }
        let norm = if held > 0 {
            self.basis.caller_norm(&weights)
        } else {
            0.0
        };
        ClearedColumns {
            columns: held,
            norm,
        }
    }

    /// Sets the weights of these columns to 0.
    pub(crate) fn clear(&mut self, columns: &[usize]) {
        leave_out(&mut self.theta, columns);
    }

    /// Sets the weights of columns that no row has to 0, where retraining would put them, and says
    /// how many were not 0 and how large they were. None when there was nothing to clear.
    pub(crate) fn clear_dead_columns(&mut self) -> Option<ClearedColumns> {
        let columns = self.dead_columns();
        let found = self.weights_of(&columns);
        self.clear(&columns);
        self.ledger.remnant = 0.0;
        (found.columns > 0).then_some(found)
    }
}

impl Outcome<LogisticModel> {
    /// Sets the weights of columns that no retained row has to 0, and says so in the evidence. For
    /// the outcome of an approximate method; the others have done it.
    pub fn clear_dead_columns(&mut self) {
        let Some(cleared) = self.model.clear_dead_columns() else {
            return;
        };
        let evidence = &mut self.evidence;
        evidence.cleared = Some(cleared);
        let now = self.model.evidence(&evidence.method, evidence.promise);
        evidence.bound = now.bound;
        evidence.relative_bound = now.relative_bound;
        evidence.not_covered = now.not_covered;
        evidence.kept_beside = now.kept_beside;
    }
}

impl RequestWork<'_> {
    /// Takes columns that no row has out of the gradient that the bound speaks of, and notes how
    /// much weight they hold.
    pub(super) fn note_dead(&mut self) {
        let columns = self.next.dead_columns();
        leave_out(&mut self.next.ledger.leftover, &columns);
        let held = self.next.weights_of(&columns);
        // Weights that will be cleared in the end are no distance.
        self.next.ledger.remnant = if self.clears { 0.0 } else { held.norm };
    }

    /// The known part of the gradient, with the penalty's pull on these columns, which no row has.
    pub(super) fn gradient(&self, columns: &[usize]) -> Mat<f64> {
        let mut gradient = self.next.ledger.leftover.clone();
        for &j in columns {
            let slope = self.next.extra.slope_of(j, &self.next.theta);
            slope
                .into_iter()
                .enumerate()
                .for_each(|(c, slope)| gradient[(j, c)] = slope);
        }
        gradient
    }
}
