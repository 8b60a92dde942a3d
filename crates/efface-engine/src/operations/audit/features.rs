//! The features of the models that an audit compares. Each model reads the features that follow
//! from the rows that it was fitted on: scales, weights of words, components, weights of classes.

use std::collections::HashSet;

use efface::eval::FollowingFeatures;
use efface::features::{Encoder, FeatureError};
use efface::{Method, Recipe, RowId, Rows};

use crate::codec::blueprint::Blueprint;
use crate::codec::feature_rows::features;
use crate::operations::change::{OpenedChange, counts_features, follows_rows};

/// An encoder and the weights of classes: they make the rows of a model of those that a file keeps.
#[derive(Clone)]
pub(super) struct FeatureView {
    pub(super) encoder: Option<Encoder>,
    pub(super) blueprint: Blueprint,
}

impl FeatureView {
    /// The features and weights of a model in a file.
    pub(super) fn of_model(change: &OpenedChange<'_>) -> Self {
        Self {
            encoder: change.encoder.clone(),
            blueprint: change.manifest.blueprint.clone(),
        }
    }

    /// Returns rows of the file as a model of these features sees them.
    pub(super) fn rows(&self, raw: &Rows) -> efface::Result<Rows> {
        Ok(features(raw, self.encoder.as_ref(), &self.blueprint)?.into_owned())
    }

    /// The features that have a name, by their place; None where rows hold the features themselves.
    pub(super) fn names(&self) -> Option<Vec<(u32, String)>> {
        self.encoder.as_ref().map(Encoder::named_features)
    }
}

/// The rows of an audit, and what makes features of them for any choice of these rows.
pub(super) struct AuditFeatures {
    /// All rows of the audit as the file keeps them.
    pub(super) raw: Rows,
    /// The features of the model in the file.
    pub(super) model: FeatureView,
    /// The rows that this model counts.
    counted: HashSet<RowId>,
    recipe: Recipe,
    /// True if features and weights are the same whichever rows leave.
    is_fixed: bool,
}

impl AuditFeatures {
    pub(super) fn new(model: FeatureView, raw: Rows, recipe: &Recipe) -> Self {
        let has_fixed_features = model.encoder.as_ref().is_none_or(|encoder| {
            encoder.has_fixed_features()
                && encoder.not_covered().is_empty()
                && !counts_features(recipe)
        });
        Self {
            counted: raw.ids().collect(),
            recipe: recipe.clone(),
            is_fixed: has_fixed_features && !model.blueprint.is_balanced(),
            model,
            raw,
        }
    }

    /// Adds rows that the model in the file does not count.
    pub(super) fn add(&mut self, more: &Rows) -> efface::Result<()> {
        self.raw.append(more)
    }

    /// Returns the features of a model that is fitted on the rows with these ids; None where they
    /// are those of the model in the file.
    pub(super) fn view(&self, members: &HashSet<RowId>) -> efface::Result<Option<FeatureView>> {
        if self.is_fixed {
            return Ok(None);
        }
        let mut view = self.model.clone();
        self.count(&mut view, members, true);
        self.count(&mut view, members, false);
        let is_reweighted = view.blueprint.balance();
        let Some(encoder) = &mut view.encoder else {
            return Ok(is_reweighted.then_some(view));
        };
        let rows = self.raw.filter(|id| members.contains(&id));
        if encoder.lacks_extremes() {
            encoder.drop_extremes();
            for row in rows.iter() {
                encoder.see_extremes(&row.features.entries());
            }
        }
        let map = encoder
            .follow(!counts_features(&self.recipe))
            .and_then(|map| encoder.with_components(map, &rows, false))
            .map_err(unsupported)?;
        if map.is_none() && !is_reweighted {
            return Ok(None);
        }
        if let Some(map) = map {
            encoder.adopt(map).map_err(unsupported)?;
        }
        Ok(Some(view))
    }

    /// Counts the members in that the model does not count, or the rows out that are no members.
    fn count(&self, view: &mut FeatureView, members: &HashSet<RowId>, come: bool) {
        for row in self.raw.iter() {
            let is_member = members.contains(&row.id);
            if is_member != come || self.counted.contains(&row.id) == come {
                continue;
            }
            view.blueprint.count(row.targets, come);
            if let Some(encoder) = &mut view.encoder {
                let entries = row.features.entries();
                if come {
                    encoder.learn_row(&entries, row.targets);
                } else {
                    encoder.forget_row(&entries, row.targets);
                }
            }
        }
    }
}

impl FollowingFeatures for AuditFeatures {
    fn of(&self, members: &HashSet<RowId>) -> efface::Result<Option<Rows>> {
        let view = self.view(members)?;
        view.map(|view| view.rows(&self.raw)).transpose()
    }

    fn are_followed_by(&self, method: &Method) -> bool {
        follows_rows(&self.recipe, method)
    }
}

/// Rows that have no features, or too few for so many components.
fn unsupported(error: FeatureError) -> efface::Error {
    efface::Error::Unsupported {
        method: "audit",
        reason: format!("{error}: a model of these rows would have no such features"),
    }
}
