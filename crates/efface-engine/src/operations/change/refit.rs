//! All rows of a model are replaced by those of a new fit, as one change: the log, the keys, the
//! list of what must not come back and the answers to requests stay what they are, and the file is
//! held only while the new rows are written.

use std::path::Path;

use efface::features::{Encoder, KeptSums};
use efface::scores::PenaltyChoice;
use efface::{Evidence, Model, ModelState, Recipe, RowId};

use super::opened::{ArrivingRows, OpenedChange};
use super::planned::{PlannedChange, StoredForm};
use crate::clock;
use crate::codec::blueprint::Blueprint;
use crate::codec::manifest::MeasuredScores;
use crate::codec::model;
use crate::codec::network_info::NetworkInfo;
use crate::error::{Error, Result};
use crate::operations::network::NetworkRenewal;
use crate::operations::parameters;

/// What takes the place of a model.
pub(crate) struct RefittedModel {
    pub(crate) blueprint: Blueprint,
    pub(crate) encoder: Option<Encoder>,
    pub(crate) recipe: Recipe,
    pub(crate) model: Model,
    pub(crate) state: ModelState,
    pub(crate) evidence: Evidence,
    pub(crate) rows: ArrivingRows,
    pub(crate) scores: Vec<MeasuredScores>,
    pub(crate) penalty: Option<PenaltyChoice>,
    /// What is told of its encoder, where it is a network.
    pub(crate) network: Option<NetworkInfo>,
    /// The encoder itself, where it was trained here.
    pub(crate) backbone: Option<Vec<u8>>,
    /// Sums beside it.
    pub(crate) sums: Option<KeptSums>,
    /// The number of its first row. A model that goes by the numbers of rows needs its rows under
    /// them.
    pub(crate) first_row: u64,
}

impl<'a> OpenedChange<'a> {
    /// The new model and its rows become the plan of this change, in which every row of before
    /// leaves.
    pub(crate) fn refit(mut self, new: RefittedModel) -> Result<PlannedChange<'a>> {
        let knows_numbers = new.recipe.describe().knows_row_numbers;
        if knows_numbers && new.first_row != self.manifest.next_row {
            return Err(changed_meanwhile(self.store().path()));
        }
        let before = self.manifest.state();
        let mut published = None;
        if self.manifest.policy.published {
            published = Some(parameters::numbers(self.store(), &self.manifest)?);
        }
        let mut numbers = Vec::new();
        self.directory(|directory| {
            directory.scan(|row, _| {
                numbers.push(RowId(row));
                Ok(())
            })
        })?;
        // Read as the model of before kept them, so before its shape is replaced.
        let rows_before = self.rows();
        let gone = numbers
            .iter()
            .map(|row| Ok(self.leaving(&rows_before, *row)?.0));
        let gone = gone.collect::<Result<Vec<_>>>()?;
        let scrubbing = self.manifest.waiting.take();
        let RefittedModel {
            blueprint,
            encoder,
            recipe,
            model,
            state,
            mut evidence,
            rows,
            ..
        } = new;
        let manifest = &mut self.manifest;
        manifest.blueprint = blueprint;
        manifest.generation += 1;
        manifest.next_position = rows.names.span;
        manifest.batches.clear();
        manifest.note_batch(manifest.next_row, rows.names.ids.len() as u64);
        manifest.version = env!("CARGO_PKG_VERSION").into();
        manifest.changed_at = clock::stamp(self.received_at.unix_milliseconds());
        manifest.model = model::head(recipe, model::state_head(&model, &state), &evidence);
        manifest.scores = new.scores;
        manifest.penalty = new.penalty;
        manifest.network = new.network;
        evidence.set_left_behind(model::left_behind(
            manifest,
            encoder.as_ref(),
            state.read_off_rows(),
        ));
        evidence.forgotten = gone.len();
        evidence.learned = rows.names.ids.len();
        self.encoder = encoder;
        self.sums = new.sums;
        Ok(PlannedChange {
            opened: self,
            evidence,
            dropped: 0,
            model,
            form: StoredForm::Settled(state),
            gone,
            suppressed: Vec::new(),
            new: Some(rows),
            renewal: Some(NetworkRenewal::replacing(new.backbone)),
            before,
            published,
            scrubbing,
        })
    }
}

/// Rows came while a fit ran whose model goes by the numbers of rows.
fn changed_meanwhile(path: &Path) -> Error {
    Error::request(
        format!(
            "{} changed while the new model was fitted, and this model goes by the numbers of rows",
            path.display()
        ),
        "fit again",
    )
}
