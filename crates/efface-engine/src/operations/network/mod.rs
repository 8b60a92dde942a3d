//! Text networks. A network in the engine is a linear head, a model like any other, over rows that
//! are the features of an encoder. So a head forgets, learns, settles and is told of like any other
//! model; what this room adds is the encoder in front of it: how it is chosen and trained, how it
//! is kept, how texts pass through it, and how it is trained anew.
//!
//! Rows keep the features as they were when they were learned, and the word ids that they were made
//! from, so that the whole network can be trained again without the file. In shards (SISA) every
//! shard is a network of its own, and rows are word ids alone. A pretrained encoder is not in the
//! file: its fingerprint is, and the folder where it was.

mod export;
mod fit;
mod renew;
pub(crate) mod train;

pub(crate) use export::export;
pub(crate) use fit::prepare;
pub(crate) use renew::{NetworkRenewal, encoder, retrain, texts, train_further, without_words};

pub use efface_nn::{EncoderSettings, EpochReport, NetworkDevice, Pooling, Squash, TrainSettings};

use efface::methods::ProjectionResidual;
use efface::methods::table;
use efface::{Hint, Method, Setting};

use crate::codec::network_info::{EncoderInfo, NetworkInfo};
use crate::error::{Error, Result};
use crate::operations::request::ForgetRequest;

/// The methods that a forget may ask for.
pub fn method_names() -> Vec<&'static str> {
    table::method_names()
}

/// The method of a name, with the settings that are given; see [`Method::with_settings`].
pub fn named_method(name: &str, settings: &[(&str, String)]) -> Result<Method> {
    let known = method_names();
    if !known.contains(&name) {
        return Err(Error::UnknownMethod {
            name: name.to_owned(),
            known,
        });
    }
    Ok(Method::with_settings(name, settings)?)
}

/// Refuses what no model could be asked for.
pub(crate) fn check(request: &ForgetRequest) -> Result<()> {
    if request.method.trains_further() {
        request.method.check()?;
        if request.clear_dead_columns {
            let hint = Hint::new("leave out {}, {} and {}")
                .name(Setting::Tolerance)
                .name(Setting::Steps)
                .name(Setting::Measure);
            return Err(Error::request(
                format!("{} bounds nothing", request.method.name()),
                hint,
            ));
        }
    }
    Ok(())
}

/// Whether a request is about the head of a network, which other models do not have.
pub(crate) fn is_about_head(method: &Method) -> bool {
    match method {
        Method::RetrainHead => true,
        Method::ProjectionResidual(rounds) => *rounds != ProjectionResidual::default(),
        _ => false,
    }
}

/// Why a model cannot be trained further.
pub(crate) fn not_trained_here(method: &Method) -> Error {
    let reason = "there is no encoder that was trained here on these rows as a whole: it is for networks fitted as \
                  bilstm or lstm, and without shards";
    efface::Error::Unsupported {
        method: method.name(),
        reason: reason.into(),
    }
    .into()
}

/// Every setting of a method that trains a network further, for the receipt; None for other
/// methods.
pub(crate) fn tuning_record(
    method: &Method,
    network: Option<&NetworkInfo>,
) -> Option<serde_json::Value> {
    if !method.trains_further() {
        return None;
    }
    let mut settings = serde_json::to_value(method).ok()?;
    let fields = settings.as_object_mut()?;
    fields.remove("name");
    if let Some(EncoderInfo::Lstm { training, .. }) = network.map(|network| &network.encoder) {
        fields.insert(
            "learning_rate".into(),
            efface_nn::further_rate(method, training).into(),
        );
    }
    Some(settings)
}
