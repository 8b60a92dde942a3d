//! Rounds of the projection residual update on a logistic or softmax model;
//! `methods/projection_residual.rs` says what the method does.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::error::Result;
use crate::evidence::Outcome;
use crate::methods::ProjectionResidual;
use crate::models::LogisticModel;
use crate::models::projection;
use crate::rows::{RowId, RowStore, RowView, Rows, Stop};
use crate::traits::{Fit, Forget};

impl ProjectionResidual {
    pub(super) fn classifier_rounds(
        &self,
        model: &LogisticModel,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<LogisticModel>> {
        let update = Self {
            step: self.step,
            ..Self::default()
        };
        rows.check(gone)?;
        // A twin without curvature takes every gradient and Hessian at the parameters in use, which
        // is what later rounds are about; the kept curvature would see its own linear picture only,
        // in which the first round leaves nothing to do.
        let settings = model.settings().logistic.curvature(false);
        let all = rows.all()?;
        let bare = match model.outputs() {
            1 => settings.resume(model, &all)?,
            _ => settings.softmax().resume(model, &all)?,
        };
        let mut outcome = update.forget(&bare, rows, gone)?;
        let mut moved = projection::distance(&bare.parameters(), &outcome.model.parameters());
        let mut rounds = 1;
        let mut read = all.len() + outcome.evidence.rows_read;
        // The rows are out of the loss after the first round; what later rounds want of them is
        // their span.
        let weightless = WeightlessRows {
            rows,
            gone: gone.iter().copied().collect(),
        };
        while rounds < self.rounds && moved > self.tolerance {
            let next = update.forget(&outcome.model, &weightless, gone)?;
            moved = projection::distance(&outcome.model.parameters(), &next.model.parameters());
            read += next.evidence.rows_read;
            rounds += 1;
            outcome = next;
        }
        outcome.evidence.iterations = rounds;
        outcome.evidence.rows_read = read;
        outcome.evidence.precomputed.clear();
        outcome.evidence.reason =
            Some("later rounds read all rows, and the head keeps no curvature from here on".into());
        Ok(outcome)
    }
}

/// Rows of which some count for nothing.
struct WeightlessRows<'a> {
    rows: &'a dyn RowStore,
    gone: HashSet<RowId>,
}

impl RowStore for WeightlessRows<'_> {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn width(&self) -> usize {
        self.rows.width()
    }

    fn outputs(&self) -> usize {
        self.rows.outputs()
    }

    fn is_sparse(&self) -> bool {
        self.rows.is_sparse()
    }

    fn holds_word_ids(&self) -> bool {
        self.rows.holds_word_ids()
    }

    fn contains(&self, id: RowId) -> Result<bool> {
        self.rows.contains(id)
    }

    fn visit(&self, ids: &[RowId], see: &mut dyn FnMut(usize, RowView<'_>)) -> Result<()> {
        self.rows.visit(ids, &mut |at, view| {
            let weight = if self.gone.contains(&view.id) {
                0.0
            } else {
                view.weight
            };
            see(at, RowView { weight, ..view });
        })
    }

    fn stop(&self) -> Option<&Stop> {
        self.rows.stop()
    }

    fn all(&self) -> Result<Cow<'_, Rows>> {
        let rows = self.rows.all()?;
        let weights = rows
            .iter()
            .map(|view| {
                if self.gone.contains(&view.id) {
                    0.0
                } else {
                    view.weight
                }
            })
            .collect();
        // Slots of rows that left earlier would not match the weights: copy what is there.
        Ok(Cow::Owned(rows.filter(|_| true).weighted(weights)?))
    }
}
