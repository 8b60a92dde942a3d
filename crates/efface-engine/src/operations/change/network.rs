//! What a change of a network does beyond that of any other model: texts go through its encoder, and a forget may train it
//! anew or further.

use efface::{Hint, Method, Outcome, RowId, Rows, Setting};
use efface_io::Source;

use super::Change;
use crate::codec::model::Live;
use crate::codec::network::{TextEncoder, open};
use crate::error::{Error, Result};
use crate::operations::ingest::{self, ReadPurpose, RowBatch, RowNames};
use crate::operations::network::{self, retrain, train_further};
use crate::operations::request::ForgetRequest;
use crate::progress::Progress;

impl Change<'_> {
    /// The encoder that texts go through; None for a model that is no network.
    pub(crate) fn stage(&self) -> Result<Option<TextEncoder>> {
        open(self.store, &self.manifest, self.engine.encoder_folder())
    }

    pub(crate) fn gather(
        &self,
        source: &Source,
        stage: Option<&TextEncoder>,
        progress: &dyn Progress,
    ) -> Result<RowBatch> {
        let reader = match stage {
            Some(stage) => ingest::RowReader::Texts(stage),
            None => self.encoder.as_ref().into(),
        };
        ingest::gather(source, &self.manifest.blueprint, reader, ReadPurpose::Learn, progress)
    }

    /// Rows under these numbers, as the model reads them, and the words that are kept beside them.
    pub(crate) fn encoded(
        &self,
        batch: RowBatch,
        numbers: Vec<RowId>,
        stage: Option<&TextEncoder>,
        progress: &dyn Progress,
    ) -> Result<(Rows, RowNames, Vec<Vec<u32>>)> {
        let (rows, names) = batch.into_rows(numbers, self.manifest.blueprint.outputs())?;
        let Some(stage) = stage else { return Ok((rows, names, Vec::new())) };
        let (rows, words) = stage.rows(&rows, progress)?;
        Ok((rows, names, words))
    }

    /// The model without some rows, as a request asks for it.
    pub(super) fn without(
        &mut self,
        request: &ForgetRequest,
        gone: &[RowId],
        progress: &dyn Progress,
    ) -> Result<Outcome<Live>> {
        let rows = self.rows();
        let method = &request.method;
        network::check(request)?;
        let trained_here = self.manifest.network.as_ref().is_some_and(|network| network.is_trained_here());
        if method.trains_further() && !trained_here {
            return Err(network::not_trained_here(method));
        }
        let Some(network) = &self.manifest.network else {
            if network::is_about_head(method) {
                return Err(Error::request(
                    "this model is no network: it has no head apart from itself, and no rounds",
                    Hint::new("use {}, or leave out the rounds").set(Setting::Method, "retrain"),
                ));
            }
            return Ok(self.model()?.forget_with(method, request.clear_dead_columns, &rows, gone)?);
        };
        let outcome = if *method == Method::Retrain && network.is_trained_here() {
            let (outcome, renewal) = retrain(self.store, &self.manifest, &rows, gone, progress)?;
            self.renewal = Some(renewal);
            outcome
        } else if method.trains_further() {
            let (outcome, renewal) =
                train_further(self.store, &self.manifest, &rows, method, gone, progress)?;
            self.renewal = Some(renewal);
            outcome
        } else {
            if network.shards.is_some() {
                progress.start("training shards", None);
            }
            let outcome = network::forget(self.model()?.as_ref(), request, &rows, gone);
            progress.finish();
            outcome?
        };
        let recipe = self.manifest.model.recipe.clone();
        self.manifest.model.recipe = network::recipe_of(recipe, &outcome.model);
        Ok(outcome)
    }
}
