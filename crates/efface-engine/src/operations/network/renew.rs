//! The whole network trained anew on the rows that stay, with the settings and the seed of the fit,
//! or trained further from where it is. The old encoder, every row's features and the head are
//! replaced; rows keep their content, which is their words.

use std::collections::HashSet;
use std::time::Duration;

use efface::{Method, Model, Outcome, RowId, RowStore, Rows, WordIds};
use efface_nn::{Backbone, EncoderState, NetworkRecipe, TrainedNetwork, TunedNetwork, words_in};

use super::fit::describe;
use super::train;
use crate::codec::manifest::Manifest;
use crate::codec::network_info::{EncoderInfo, NetworkInfo};
use crate::codec::text_encoder::PART;
use crate::error::{Error, Result};
use crate::file::ModelConnection;
use crate::file::{
    FileFault, ModelStore, RowDirectory, StoreRows, StoredArray, damaged, parts, rows,
};
use crate::progress::Progress;

/// The parts of a network that a change replaces beside its head.
pub(crate) struct NetworkRenewal {
    /// The new encoder; None where the new model has none that was trained here.
    backbone: Option<Vec<u8>>,
    /// The new features of rows that stay; None where these keep theirs, or where all rows are new.
    encoded: Option<Rows>,
    /// The new description of the network; None where it stays.
    network: Option<NetworkInfo>,
}

/// Trains on all rows but those `gone`.
pub(crate) fn retrain(
    store: &ModelStore,
    manifest: &Manifest,
    stored: &StoreRows<'_>,
    gone: &[RowId],
    at_most: Option<Duration>,
    progress: &dyn Progress,
) -> Result<(Outcome<Model>, NetworkRenewal)> {
    let (network, backbone) = encoder(store, manifest)?;
    stored.check(gone)?;
    if gone.len() >= stored.len() {
        return Err(efface::Error::NothingLeft {
            gone: gone.len(),
            rows: stored.len(),
        }
        .into());
    }
    let mut recipe = backbone.recipe().clone();
    let texts = texts(store, stored, network.max_tokens, gone)?;
    // A word that no row holds any more is not in the file by name either.
    let unused = recipe.embedding.unused(&words_in(&texts)?);
    recipe.remove_names(&unused);
    let TrainedNetwork {
        network: trained,
        encoded,
        checkpoint,
        ..
    } = train::anew(&recipe, &texts, at_most, progress)?;
    let mut evidence = trained.retrained(&encoded, "retrain", gone.len())?;
    evidence.reason = Some(match &network.device {
        None => "the whole network was trained anew, from the seed of the fit".into(),
        Some(device) => format!(
            "the whole network was trained anew, from the seed of the fit, by the processor; the fit was made by {device}, whose sums \
             round otherwise"
        ),
    });
    let (backbone, head) = trained.into_parts();
    let info = NetworkInfo {
        encoder: describe(&backbone, &checkpoint, false),
        device: None,
        state: EncoderState::default(),
        ..network.clone()
    };
    let renewal = NetworkRenewal {
        backbone: Some(backbone.to_bytes()?),
        encoded: Some(encoded),
        network: Some(info),
    };
    Ok((
        Outcome {
            model: head,
            evidence,
        },
        renewal,
    ))
}

/// Trains the network further by a method that forgets the rows `gone`.
pub(crate) fn train_further(
    store: &ModelStore,
    manifest: &Manifest,
    stored: &StoreRows<'_>,
    method: &Method,
    gone: &[RowId],
    progress: &dyn Progress,
) -> Result<(Outcome<Model>, NetworkRenewal)> {
    let (network, backbone) = encoder(store, manifest)?;
    let all = texts(store, stored, network.max_tokens, &[])?;
    let TunedNetwork { trained, evidence } =
        train::further(method, &backbone, &all, gone, progress)?;
    let TrainedNetwork {
        network: tuned,
        encoded,
        ..
    } = trained;
    let (backbone, head) = tuned.into_parts();
    let mut info = network.clone();
    // What is told of the training stays that of the fit, but for the steps.
    if let EncoderInfo::Lstm {
        steps,
        history,
        best_epoch,
        ..
    } = &mut info.encoder
    {
        *steps = backbone.steps();
        // They were computed with the rows that leave.
        history.clear();
        *best_epoch = None;
    }
    info.state.trained_further |= !gone.is_empty();
    let renewal = NetworkRenewal {
        backbone: Some(backbone.to_bytes()?),
        encoded: Some(encoded),
        network: Some(info),
    };
    Ok((
        Outcome {
            model: head,
            evidence,
        },
        renewal,
    ))
}

/// The encoder that the file holds, and what is told of it.
pub(crate) fn encoder<'a>(
    store: &ModelStore,
    manifest: &'a Manifest,
) -> Result<(&'a NetworkInfo, Backbone)> {
    let Some(network) = &manifest.network else {
        return Err(Error::request(
            "this model has no encoder to train",
            "use the methods of its head",
        ));
    };
    let bytes = store.with(|connection| parts::bytes(connection, &manifest.parts, PART))?;
    Ok((network, Backbone::from_bytes(&bytes)?))
}

/// All rows but those `gone`, as word ids.
pub(crate) fn texts(
    store: &ModelStore,
    stored: &StoreRows<'_>,
    width: usize,
    gone: &[RowId],
) -> Result<Rows> {
    let out: HashSet<RowId> = gone.iter().copied().collect();
    let retained = stored.all()?.filter(|id| !out.contains(&id));
    let mut table = WordIds::new(width);
    let mut targets = Vec::new();
    let mut weights = Vec::new();
    for view in retained.iter() {
        let row = stored
            .read(view.id.0)
            .map_err(|fault| fault.at(store.path()))?;
        let row = row.ok_or(efface::Error::UnknownRow(view.id))?;
        table.push(&row.words)?;
        targets.extend_from_slice(view.targets);
        weights.push(view.weight);
    }
    let rows = Rows::with_ids(retained.ids().collect(), table, targets, retained.outputs())?;
    Ok(if weights.iter().all(|weight| *weight == 1.0) {
        rows
    } else {
        rows.weighted(weights)?
    })
}

/// Removes what the words `unused`, which no row holds any more, left in the words and vectors of a
/// network. Returns None where nothing is to be removed.
pub(crate) fn without_words(
    store: &ModelStore,
    manifest: &Manifest,
    unused: &HashSet<u32>,
) -> Result<Option<NetworkRenewal>> {
    let Some(NetworkInfo {
        encoder: EncoderInfo::Lstm { steps, .. },
        shards,
        max_tokens,
        ..
    }) = &manifest.network
    else {
        return Ok(None);
    };
    let bytes = || store.with(|connection| parts::bytes(connection, &manifest.parts, PART));
    let bytes = if shards.is_some() {
        if unused.is_empty() {
            return Ok(None);
        }
        let (mut recipe, _) = NetworkRecipe::from_bytes(&bytes()?)?;
        recipe.remove_names(unused);
        recipe.to_bytes(*max_tokens)?
    } else {
        if unused.is_empty() && *steps == 0 {
            return Ok(None);
        }
        let mut backbone = Backbone::from_bytes(&bytes()?)?;
        if unused.is_empty() && backbone.state().trained_on_departed {
            // The head of the training left the file with the first rows.
            return Ok(None);
        }
        backbone.remove_rows(unused);
        backbone.remove_names(unused);
        backbone.to_bytes()?
    };
    Ok(Some(NetworkRenewal::replacing(Some(bytes))))
}

impl NetworkRenewal {
    /// The encoder of a model that takes the place of another one with all of its rows, or of which
    /// words are removed.
    pub(crate) fn replacing(backbone: Option<Vec<u8>>) -> Self {
        Self {
            backbone,
            encoded: None,
            network: None,
        }
    }

    /// Returns the new description of the network; None where it stays.
    pub(crate) fn network(&self) -> Option<&NetworkInfo> {
        self.network.as_ref()
    }

    /// Puts the new encoder and the new features down. The arrays of the head are saved after this.
    pub(crate) fn put_down(
        self,
        connection: &ModelConnection,
        manifest: &mut Manifest,
        directory: &mut RowDirectory<'_>,
    ) -> std::result::Result<(), FileFault> {
        if let Some(encoded) = self.encoded {
            renew_features(connection, manifest, directory, &encoded)?;
        }
        manifest.parts.retain(|part| part.name() != PART);
        match &self.backbone {
            Some(bytes) => {
                manifest.parts.push(parts::save_lasting(
                    connection,
                    StoredArray::Bytes(PART, bytes),
                )?);
            }
            None => parts::drop_lasting(connection)?,
        }
        Ok(())
    }
}

/// Gives rows that stay their new features.
fn renew_features(
    connection: &ModelConnection,
    manifest: &Manifest,
    directory: &mut RowDirectory<'_>,
    encoded: &Rows,
) -> std::result::Result<(), FileFault> {
    let outline = manifest.outline();
    let mut fresh = Vec::with_capacity(encoded.len());
    rows::each(connection, &outline, |number, found| {
        if encoded.get(RowId(number)).is_some() {
            fresh.push((number, found.row));
        }
        Ok(())
    })?;
    if fresh.len() != encoded.len() {
        return damaged("rows went missing while the network was trained");
    }
    for (number, stored) in &fresh {
        if let Some(view) = encoded.get(RowId(*number)) {
            let digest = rows::renew(connection, *number, outline.shape, stored, view.features)?;
            directory.renew(*number, &stored.id, stored.subject.as_deref(), &digest)?;
        }
    }
    Ok(())
}
