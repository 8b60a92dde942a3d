//! Everything that the file of a new model will hold.

use efface::features::{Encoder, KeptSums};
use efface::scores::PenaltyChoice;
use efface::{Dense, Model, Recipe, Rows};

use super::ingest::RowNames;
use super::report::Remark;
use crate::codec::blueprint::Blueprint;
use crate::codec::kept_sums;
use crate::codec::network_info::NetworkInfo;
use crate::error::Result;

/// What a model file is made of.
pub(crate) struct PreparedModel {
    pub(crate) blueprint: Blueprint,
    pub(crate) encoder: Option<Encoder>,
    pub(crate) rows: Rows,
    /// The words behind the rows of a network; empty where none are kept.
    pub(crate) words: Vec<Vec<u32>>,
    pub(crate) names: RowNames,
    pub(crate) recipe: Recipe,
    pub(crate) model: Model,
    pub(crate) network: Option<NetworkInfo>,
    pub(crate) backbone: Option<Vec<u8>>,
    /// How the penalty was chosen, where it was chosen from the rows.
    pub(crate) penalty: Option<PenaltyChoice>,
    /// What the user should know of the columns.
    pub(crate) remarks: Vec<Remark>,
    /// Texts of which an encoder reads the beginning only.
    pub(crate) cut: u64,
}

impl PreparedModel {
    /// Sums to be kept beside the model, where changes can follow from them.
    pub(crate) fn sums(&self) -> Option<KeptSums> {
        kept_sums::of_rows(
            &self.rows,
            self.encoder.as_ref(),
            &self.blueprint,
            &self.model,
        )
    }

    /// A model whose rows are in its file already.
    pub(crate) fn without_rows(
        blueprint: Blueprint,
        encoder: Option<Encoder>,
        recipe: Recipe,
        model: Model,
        remarks: Vec<Remark>,
    ) -> Result<Self> {
        let none = Dense::<f64>::new(Vec::new(), blueprint.stored_width)?;
        Ok(Self {
            rows: Rows::new(none, Vec::new(), blueprint.outputs())?,
            words: Vec::new(),
            names: RowNames {
                ids: Vec::new(),
                subjects: Vec::new(),
                span: 0,
            },
            blueprint,
            encoder,
            recipe,
            model,
            network: None,
            backbone: None,
            penalty: None,
            remarks,
            cut: 0,
        })
    }
}
