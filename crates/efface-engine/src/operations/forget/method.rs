//! The method of a request at work: on a model, on the head of a network, or on a whole network.

use efface::{Hint, Method, Outcome, RowId, Setting};

use crate::codec::model::Live;
use crate::error::{Error, Result};
use crate::operations::change::OpenedChange;
use crate::operations::network::{self, NetworkRenewal, retrain, train_further};
use crate::operations::request::ForgetRequest;
use crate::progress::Progress;

/// The model without some rows, as a request asks for it, and the network where all of it was trained.
pub(super) fn without(
    change: &mut OpenedChange<'_>,
    request: &ForgetRequest,
    gone: &[RowId],
    progress: &dyn Progress,
) -> Result<(Outcome<Live>, Option<NetworkRenewal>)> {
    network::check(request)?;
    let rows = change.rows();
    let store = change.store();
    let manifest = &change.manifest;
    let method = &request.method;
    let trained_here = manifest.network.as_ref().is_some_and(|network| network.is_trained_here());
    if method.trains_further() && !trained_here {
        return Err(network::not_trained_here(method));
    }
    let Some(network) = &manifest.network else {
        if network::is_about_head(method) {
            return Err(Error::request(
                "this model is no network: it has no head apart from itself, and no rounds",
                Hint::new("use {}, or leave out the rounds").set(Setting::Method, "retrain"),
            ));
        }
        let model = change.current_model()?;
        return Ok((model.forget_with(method, request.clear_dead_columns, &rows, gone)?, None));
    };
    let mut renewal = None;
    let outcome = if *method == Method::Retrain && trained_here {
        let (outcome, trained) = retrain(store, manifest, &rows, gone, progress)?;
        renewal = Some(trained);
        outcome
    } else if method.trains_further() {
        let (outcome, trained) = train_further(store, manifest, &rows, method, gone, progress)?;
        renewal = Some(trained);
        outcome
    } else {
        if network.shards.is_some() {
            progress.start("training shards", None);
        }
        let outcome = network::forget(change.current_model()?.as_ref(), request, &rows, gone);
        progress.finish();
        outcome?
    };
    let recipe = change.manifest.model.recipe.clone();
    change.manifest.model.recipe = network::recipe_of(recipe, &outcome.model);
    Ok((outcome, renewal))
}
