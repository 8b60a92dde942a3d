//! Everything that the file of a new model will hold.

use efface::features::Encoder;
use efface::{AnyRecipe, Rows};

use super::ingest::RowNames;
use crate::codec::blueprint::Blueprint;
use crate::codec::model::{self, Live};
use crate::codec::network_info::NetworkInfo;

/// What a model file is made of.
pub(crate) struct PreparedModel {
    pub(crate) blueprint: Blueprint,
    pub(crate) encoder: Option<Encoder>,
    pub(crate) rows: Rows,
    /// The words behind the rows of a network; empty where none are kept.
    pub(crate) words: Vec<Vec<u32>>,
    pub(crate) names: RowNames,
    pub(crate) recipe: AnyRecipe,
    pub(crate) model: Live,
    pub(crate) network: Option<NetworkInfo>,
    pub(crate) backbone: Option<Vec<u8>>,
    /// Texts of which an encoder reads the beginning only.
    pub(crate) cut: u64,
}

/// The recipe in the form that the fit works in; the file holds the same in every form.
pub(crate) fn working_recipe(recipe: &AnyRecipe) -> AnyRecipe {
    match recipe {
        AnyRecipe::Ridge(ridge) => AnyRecipe::Ridge(ridge.form(model::working_form(ridge.form))),
        other => other.clone(),
    }
}
