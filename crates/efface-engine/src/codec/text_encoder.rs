//! The encoder at work: from texts to ids, and from ids to features.

use std::path::Path;

use efface::{Features, Rows};
use efface_nn::minilm::MiniLm;
use efface_nn::{Backbone, NetworkRecipe, UNKNOWN, encoded_rows};

use super::network_info::{EncoderInfo, NetworkInfo};
use crate::codec::manifest::Manifest;
use crate::error::{Error, Result};
use crate::file::{ModelStore, parts};
use crate::progress::Progress;

/// The name of the array that holds an encoder.
pub(crate) const PART: &str = "backbone";

/// An encoder, ready to read.
pub(crate) enum TextEncoder {
    /// LSTM layers.
    Lstm(Box<Backbone>),
    /// Words alone: in shards, every network reads ids by itself.
    Words(Box<NetworkRecipe>),
    /// A pretrained encoder.
    MiniLm(Box<MiniLm>),
}

/// The encoder of a model; None when it has none. `folder` is where a pretrained one is now.
pub(crate) fn open(
    store: &ModelStore,
    manifest: &Manifest,
    folder: Option<&Path>,
) -> Result<Option<TextEncoder>> {
    let Some(network) = &manifest.network else {
        return Ok(None);
    };
    let read = || store.with(|connection| parts::bytes(connection, &manifest.parts, PART));
    let stored = StoredEncoder {
        network,
        width: manifest.blueprint.width,
        path: store.path(),
        folder,
    };
    stored.read(read).map(Some)
}

/// An encoder as a model file keeps it, or will keep it.
pub(crate) struct StoredEncoder<'a> {
    pub(crate) network: &'a NetworkInfo,
    /// Features of a row.
    pub(crate) width: usize,
    /// What errors call the model.
    pub(crate) path: &'a Path,
    /// Where a pretrained encoder is, if not where it was at the fit.
    pub(crate) folder: Option<&'a Path>,
}

impl StoredEncoder<'_> {
    /// Reads it from the bytes of the model, or from its own folder.
    pub(crate) fn read(&self, bytes: impl FnOnce() -> Result<Vec<u8>>) -> Result<TextEncoder> {
        let Self {
            network,
            width: wanted,
            path,
            folder,
        } = *self;
        let damaged = |what: String| Error::Damaged {
            path: path.to_owned(),
            what,
        };
        let told = |error: efface_nn::Error| damaged(format!("its encoder: {error}"));
        Ok(match &network.encoder {
            EncoderInfo::Lstm { .. } if network.shards.is_some() => TextEncoder::Words(Box::new(
                NetworkRecipe::from_bytes(&bytes()?).map_err(told)?.0,
            )),
            EncoderInfo::Lstm { .. } => {
                let backbone = Backbone::from_bytes(&bytes()?).map_err(told)?;
                let found = backbone.width();
                if found != wanted || backbone.max_tokens() != network.max_tokens {
                    return Err(damaged(format!(
                        "its encoder gives {found} features where rows have {wanted}"
                    )));
                }
                TextEncoder::Lstm(Box::new(backbone))
            }
            EncoderInfo::MiniLm {
                folder: remembered,
                fingerprint,
                ..
            } => {
                let folder = folder.unwrap_or(remembered);
                let encoder = MiniLm::open(folder)?.with_max_tokens(network.max_tokens)?;
                if encoder.fingerprint() != fingerprint {
                    return Err(Error::OtherEncoder {
                        folder: folder.to_owned(),
                        found: encoder.fingerprint().into(),
                        expected: fingerprint.clone(),
                    });
                }
                TextEncoder::MiniLm(Box::new(encoder))
            }
        })
    }
}

impl TextEncoder {
    /// The ids of a text, at least one and at most `most`, and whether there were, or may have
    /// been, more.
    pub(crate) fn ids(&self, text: &str, most: usize) -> (Vec<u32>, bool) {
        match self {
            Self::Lstm(backbone) => words(backbone.embedding(), text, most),
            Self::Words(recipe) => words(&recipe.embedding, text, most),
            Self::MiniLm(encoder) => {
                let ids = encoder.tokenize(text);
                let full = ids.len() >= most;
                (ids, full)
            }
        }
    }

    /// Words of these that were not there when the words were chosen. A list from elsewhere chose
    /// none.
    pub(crate) fn unknown(&self, ids: &[u32]) -> u64 {
        let public = match self {
            Self::Lstm(backbone) => backbone.embedding().public,
            Self::Words(recipe) => recipe.embedding.public,
            Self::MiniLm(_) => true,
        };
        if public {
            0
        } else {
            ids.iter().filter(|id| **id == UNKNOWN).count() as u64
        }
    }

    /// What a model reads of rows of ids.
    pub(crate) fn features(&self, ids: Features, progress: &dyn Progress) -> Result<Features> {
        match self {
            Self::Lstm(backbone) => Ok(backbone.features(&ids)?),
            Self::Words(_) => Ok(ids),
            Self::MiniLm(encoder) => {
                let tokens = (0..ids.rows()).map(|row| Ok(ids.row(row).word_ids()?.to_vec()));
                let tokens = tokens.collect::<Result<Vec<_>>>()?;
                progress.start("encoding texts", Some(tokens.len() as u64));
                let rows = encoder.encode_tokens(&tokens, &|done| progress.at(done as u64))?;
                progress.finish();
                Ok(rows.into())
            }
        }
    }

    /// Rows of ids as the model has them, and the words that the file keeps beside their features.
    pub(crate) fn rows(
        &self,
        ids: &Rows,
        progress: &dyn Progress,
    ) -> Result<(Rows, Vec<Vec<u32>>)> {
        let kept = match self {
            Self::Lstm(_) => word_lists(ids)?,
            Self::Words(_) | Self::MiniLm(_) => Vec::new(),
        };
        Ok((
            encoded_rows(ids, self.features(ids.table().into_owned(), progress)?)?,
            kept,
        ))
    }
}

/// The word ids of every row.
pub(crate) fn word_lists(rows: &Rows) -> Result<Vec<Vec<u32>>> {
    rows.iter()
        .map(|view| Ok(view.features.word_ids()?.to_vec()))
        .collect()
}

fn words(embedding: &efface_nn::Embedding, text: &str, most: usize) -> (Vec<u32>, bool) {
    let (mut ids, more) = embedding.ids(text, most);
    if ids.is_empty() {
        ids.push(UNKNOWN);
    }
    (ids, more)
}
