//! The method of a request at work: on a model, on the head of a network, or on a whole network.

use std::time::Instant;

use efface::models::MethodOptions;
use efface::{Hint, Method, Model, NotCovered, Outcome, RowId, Setting};
use efface_nn::forget_from_head;

use crate::error::{Error, Result};
use crate::operations::change::OpenedChange;
use crate::operations::network::{self, NetworkRenewal, retrain, train_further};
use crate::operations::request::{ForgetOptions, ForgetRequest};
use crate::progress::Progress;
use crate::randomness::random_bytes;

/// The model without some rows, as a request asks for it, and the network where all of it was
/// trained.
pub(crate) fn without(
    change: &mut OpenedChange<'_>,
    request: &ForgetRequest,
    gone: &[RowId],
    options: &ForgetOptions<'_>,
) -> Result<(Outcome<Model>, Option<NetworkRenewal>)> {
    network::check(request)?;
    let progress = options.progress;
    if request.new_seed {
        return Ok((with_new_seed(change, request, gone, progress)?, None));
    }
    let rows = change.rows();
    if change.follows_rows(&request.method)
        && let Some(mut outcome) = change.refitted(&request.method, gone, None, progress)?
    {
        outcome.evidence.tolerance = request.method.tolerance().or(outcome.evidence.tolerance);
        return Ok((outcome, None));
    }
    check_class_weights(change, &request.method)?;
    let store = change.store();
    let manifest = &change.manifest;
    let method = &request.method;
    let trained_here = manifest
        .network
        .as_ref()
        .is_some_and(|network| network.is_trained_here());
    let trains_anew = *method == Method::Retrain || method.tolerance().is_some();
    if options.at_most.is_some() && !(trained_here && trains_anew) {
        return Err(Error::request(
            "a limit of time is for training a network anew, and this request trains none",
            Hint::new("leave out {}").name(Setting::AtMost),
        ));
    }
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
        let rows = change.feature_rows();
        return Ok((
            model.forget_with(method, request.options(), &rows, gone)?,
            None,
        ));
    };
    let mut renewal = None;
    let asks_tolerance = method.tolerance().is_some() && network.holds_rows();
    let outcome = if trained_here && (*method == Method::Retrain || asks_tolerance) {
        let trained = retrain(store, manifest, &rows, gone, options.at_most, progress);
        let (mut outcome, trained) = match trained {
            Err(Error::TooLong {
                seconds, allowed, ..
            }) => {
                let started = Instant::now();
                forget_from_head(
                    &*change.current_model()?,
                    &Method::default(),
                    MethodOptions::default(),
                    &rows,
                    gone,
                )?;
                return Err(Error::TooLong {
                    seconds,
                    allowed,
                    methods: network.estimates(seconds, started.elapsed().as_secs_f64()),
                });
            }
            trained => trained?,
        };
        if asks_tolerance {
            outcome.evidence.tolerance = method.tolerance();
            let anew = outcome.evidence.reason.take().unwrap_or_default();
            outcome.evidence.reason = Some(format!(
                "the encoder was trained on the rows, so that no method of the head reaches a tolerance: {anew}"
            ));
        }
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
        let model = change.current_model()?;
        let options = request.options();
        // Shards are trained anew as a whole, and so is the head of a network alone.
        let outcome = match network.shards {
            Some(_) => model.forget_with(method, options, &rows, gone),
            None => forget_from_head(&model, method, options, &rows, gone),
        };
        progress.finish();
        outcome?
    };
    let recipe = change.manifest.model.recipe.as_kept_by(&outcome.model);
    change.manifest.model.recipe = recipe;
    Ok((outcome, renewal))
}

/// Refuses methods that would leave balanced weights of classes as they were.
pub(crate) fn check_class_weights(change: &OpenedChange<'_>, method: &Method) -> Result<()> {
    if change.manifest.blueprint.is_balanced() && !change.follows_rows(method) {
        return Err(Error::request(
            "balanced weights of classes follow from the rows, and this method would leave them as they are",
            Hint::new("use {} or {}")
                .set(Setting::Method, "auto")
                .set(Setting::Method, "retrain"),
        ));
    }
    Ok(())
}

/// The model retrained with a seed that is drawn at random and kept in the recipe.
fn with_new_seed(
    change: &mut OpenedChange<'_>,
    request: &ForgetRequest,
    gone: &[RowId],
    progress: &dyn Progress,
) -> Result<Outcome<Model>> {
    let seed = u64::from_le_bytes(*random_bytes::<8>()?);
    let method = &request.method;
    let model = change.current_model()?;
    let reseeded = change.manifest.model.recipe.with_seed(seed);
    let mut outcome = None;
    if *method == Method::Retrain
        && change.follows_rows(method)
        && let Some(recipe) = &reseeded
    {
        change.manifest.model.recipe = recipe.clone();
        outcome = change.refitted(method, gone, None, progress)?;
    }
    let mut outcome = match outcome {
        Some(outcome) => outcome,
        None => {
            let options = MethodOptions {
                new_seed: Some(seed),
                ..request.options()
            };
            match &change.manifest.network {
                Some(_) => model.forget_with(method, options, &change.rows(), gone)?,
                None => model.forget_with(method, options, &change.feature_rows(), gone)?,
            }
        }
    };
    if let Some(recipe) = reseeded {
        change.manifest.model.recipe = recipe;
    }
    let network = change.manifest.network.as_mut();
    if let Some(shards) = network.and_then(|network| network.shards.as_mut()) {
        shards.seed = seed;
    }
    let left = &mut outcome.evidence.not_covered;
    left.retain(|what| *what != NotCovered::AdaptiveRequests);
    Ok(outcome)
}
