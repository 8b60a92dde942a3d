//! Text networks. A network in the engine is a linear head, a model like any other, over rows that are the features of an
//! encoder. So a head forgets, learns, settles and is told of like any other model; what this room adds is the encoder in front of
//! it: how it is chosen and trained, how it is kept, how texts pass through it, and how it is trained anew.
//!
//! Rows keep the features as they were when they were learned, and the word ids that they were made from, so that the
//! whole network can be trained again without the file. In shards (SISA) every shard is a network of its own, and rows are
//! word ids alone. A pretrained encoder is not in the file: its fingerprint is, and the folder where it was.

mod export;
mod fit;
mod renew;
pub(crate) mod train;

pub(crate) use export::export;
pub(crate) use fit::{live, prepare};
pub(crate) use renew::{NetworkRenewal, encoder, retrain, texts, train_further};

pub use efface_nn::{
    EncoderSettings, EpochReport, HeadRecipe, Pooling, ProjectionRounds, Squash, TrainSettings, TuneOptions,
};

use efface::methods::table;
use efface::{AnyModel, AnyRecipe, Hint, Options, Outcome, RowId, RowStore, Setting};
use efface_nn::{Head, HeadMethod, NetworkMethod};

use crate::codec::model::Live;
use crate::codec::network::{EncoderInfo, NetworkInfo};
use crate::error::{Error, Result};
use crate::operations::request::ForgetRequest;

/// The method that gives a network a new head and leaves its encoder.
pub(crate) const RETRAIN_HEAD: &str = "retrain_head";

/// The methods that a forget may ask for: those of the linear core, and what only networks have.
pub fn method_names() -> Vec<&'static str> {
    let mut names = table::method_names();
    let at = names.iter().position(|name| *name == "retrain").map_or(0, |at| at + 1);
    names.splice(at..at, std::iter::once(RETRAIN_HEAD).chain(NetworkMethod::NAMES));
    names
}

/// The method that trains a whole network further, where a request asks for one, with its settings.
pub(crate) fn tuning(request: &ForgetRequest) -> Result<Option<NetworkMethod>> {
    let method = request.tuning.method(&request.method).map_err(|error| match error {
        efface_nn::Error::Unsupported(what) => {
            Error::request(what, Hint::new("add a {} that has this setting").name(Setting::Method))
        }
        other => other.into(),
    })?;
    if method.is_none() && request.tuning != TuneOptions::default() {
        return Err(Error::request(
            "epochs, a rate and the like are for methods that train a network further",
            Hint::new("add {}, neggrad_plus or scrub").set(Setting::Method, "fine_tune"),
        ));
    }
    if method.is_some() && request.options != Options::default() {
        let hint = Hint::new("leave out {}, {} and {}")
            .name(Setting::Tolerance)
            .name(Setting::Steps)
            .name(Setting::Measure);
        return Err(Error::request(format!("{} bounds nothing", request.method), hint));
    }
    Ok(method)
}

/// Why a model cannot be trained further.
pub(crate) fn not_trained_here(method: &NetworkMethod) -> Error {
    let reason = "there is no encoder that was trained here on these rows as a whole: it is for networks fitted as \
                  bilstm or lstm, and without shards";
    efface::Error::Unsupported { method: method.name(), reason: reason.into() }.into()
}

/// Every setting of that method, for the receipt; None for other methods.
pub(crate) fn tuning_record(
    request: &ForgetRequest,
    network: Option<&NetworkInfo>,
) -> Result<Option<TuneOptions>> {
    let Some(method) = tuning(request)? else { return Ok(None) };
    let mut settings = TuneOptions::of(&method);
    if let Some(EncoderInfo::Lstm { training, .. }) = network.map(|network| &network.encoder) {
        settings.learning_rate = Some(method.learning_rate(training));
    }
    Ok(Some(settings))
}

/// The head as a recipe of the core.
pub(crate) fn core_recipe(head: &HeadRecipe, classes: usize) -> AnyRecipe {
    match head.as_given() {
        HeadRecipe::Ridge(ridge) => AnyRecipe::Ridge(ridge),
        HeadRecipe::Softmax(logistic) if classes == 2 => AnyRecipe::Logistic(logistic),
        HeadRecipe::Softmax(logistic) => AnyRecipe::Softmax(logistic.softmax()),
    }
}

/// The head of a network without some rows; the encoder stays.
pub(crate) fn forget(
    model: &Live,
    request: &ForgetRequest,
    rows: &dyn RowStore,
    gone: &[RowId],
) -> Result<Outcome<Live>> {
    let method = request.method.as_str();
    if let Some(rounds) = request.rounds {
        let head = match model {
            Live::Plain(AnyModel::Ridge(model)) => Head::Ridge(model.as_ref().clone()),
            Live::Plain(AnyModel::Logistic(model)) => Head::Classifier(model.as_ref().clone()),
            _ => return Err(Error::request("shards have no rounds", "leave out the rounds")),
        };
        if method != "projection_residual" || request.options != Options::default() {
            let hint = Hint::new("add {}, and leave out {}, {} and {}")
                .set(Setting::Method, "projection_residual")
                .name(Setting::Steps)
                .name(Setting::Measure)
                .name(Setting::ClearDeadColumns);
            return Err(Error::request("rounds and a step size are for projection_residual", hint));
        }
        let mut outcome = HeadMethod::ProjectionResidual(rounds).forget(&head, rows, gone)?;
        if matches!(&outcome.model, Head::Classifier(model) if !model.settings().logistic.curvature) {
            let reason = "later rounds read all rows, and the head keeps no curvature from here on";
            outcome.evidence.reason = Some(reason.into());
        }
        return Ok(Outcome { model: fit::live(outcome.model), evidence: outcome.evidence });
    }
    let core = if method == RETRAIN_HEAD { "retrain" } else { method };
    let mut outcome = model.forget(core, &request.options, rows, gone)?;
    // A head that missed its tolerance is made anew too; only who asks for `retrain` by name means the whole.
    let anew = matches!(model, Live::Plain(_)) && method != "retrain" && outcome.evidence.method == "retrain";
    if method == RETRAIN_HEAD || anew {
        outcome.evidence.method = RETRAIN_HEAD.into();
    }
    Ok(outcome)
}

/// The recipe of a head after a change: rounds on a classifier leave it without its curvature, and retraining gives it back.
pub(crate) fn recipe_of(recipe: AnyRecipe, model: &Live) -> AnyRecipe {
    match (recipe, model) {
        (AnyRecipe::Logistic(recipe), Live::Plain(AnyModel::Logistic(model))) => {
            AnyRecipe::Logistic(recipe.curvature(model.settings().logistic.curvature))
        }
        (AnyRecipe::Softmax(recipe), Live::Plain(AnyModel::Logistic(model))) => {
            AnyRecipe::Softmax(recipe.curvature(model.settings().logistic.curvature))
        }
        (recipe, _) => recipe,
    }
}
