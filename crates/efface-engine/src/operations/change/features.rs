//! Features that follow from the rows. Where rows that come or go make them others, all parameters of the model stand for other
//! features. Where these differ in scale and origin alone, the sums that ridge keeps follow by algebra; otherwise the model is
//! fitted anew on the features of the rows that are then there.

use std::collections::HashSet;

use efface::features::{Encoder, FeatureMap, RescaledFeatures, UnknownName};
use efface::{
    Claim, Family, LogisticModel, Method, Model, Outcome, Recipe, RidgeModel, RowId, RowStore, Rows,
    ShardRecipe, Sisa, Stop,
};

use super::opened::OpenedChange;
use crate::codec::class_weights::AppliedClassWeights;
use crate::codec::feature_rows::{FeatureRows, features};
use crate::error::Result;
use crate::operations::ingest;
use crate::operations::row_source::RowSource;
use crate::operations::watched_fit;
use crate::progress::Progress;

impl<'a> OpenedChange<'a> {
    /// The rows as the model sees them.
    pub(crate) fn feature_rows(&self) -> FeatureRows<'a> {
        FeatureRows::new(self.rows(), self.encoder.as_ref(), &self.manifest.blueprint)
    }

    /// Gives the words and levels of new rows their places, so that nothing of the rows is lost when they are read.
    pub(crate) fn admit_names(&mut self, source: &RowSource, progress: &dyn Progress) -> Result<()> {
        let Some(encoder) = &mut self.encoder else { return Ok(()) };
        let unknown: HashSet<UnknownName> = ingest::unknown_names(source, encoder, progress)?;
        let mut unknown: Vec<UnknownName> = unknown.into_iter().collect();
        unknown.sort_unstable();
        encoder.admit(&unknown)?;
        self.manifest.blueprint.stored_width = encoder.raw_width();
        Ok(())
    }

    /// Whether a method may give this model other features: one that promises what a new fit gives. Others work on the
    /// features that are there, and so does a model behind noise, whose certificate rests on them.
    pub(crate) fn follows_rows(&self, method: &Method) -> bool {
        let about = self.manifest.model.recipe.describe();
        let family = self.manifest.model.recipe.family();
        let is_exact =
            || method.entries().any(|entry| entry.claim == "exact" && entry.models.contains(&family));
        !about.is_certified && (matches!(method, Method::Auto(_)) || is_exact())
    }

    /// The model of other features, where the rows `gone` that leave and the `new` ones make them others. None where they stay,
    /// so that the model can be changed as it is.
    pub(crate) fn refitted(
        &mut self,
        method: &Method,
        gone: &[RowId],
        new: Option<&Rows>,
        progress: &dyn Progress,
    ) -> Result<Option<Outcome<Model>>> {
        let raw = self.rows();
        let arriving = new.map_or(0, RowStore::len);
        if gone.len() >= raw.len() + arriving {
            // The method says so, with all that belongs to it.
            return Ok(None);
        }
        let reweighted = self.reweighted(gone, new)?;
        let mut encoder = self.encoder.clone();
        let mut after: Option<Rows> = None;
        let mut map = None;
        if let Some(encoder) = &mut encoder {
            for row in new.iter().flat_map(|new| new.iter()) {
                encoder.learn_row(&row.features.entries(), row.targets);
            }
            raw.visit(gone, &mut |_, row| {
                encoder.forget_row(&row.features.entries(), row.targets);
            })?;
            if encoder.lacks_extremes() {
                let rows = self.rows_after(gone, new)?;
                encoder.drop_extremes();
                rows.iter().for_each(|row| encoder.see_extremes(&row.features.entries()));
                after = Some(rows);
            }
            let allow_unused = !counts_features(&self.manifest.model.recipe);
            let refused = |error| efface::Error::Unsupported {
                method: Method::Retrain.name(),
                reason: format!("{error}; the model stays as it was"),
            };
            map = encoder.follow(allow_unused).map_err(refused)?;
            if encoder.has_components() {
                let rows = match after {
                    Some(rows) => rows,
                    None => self.rows_after(gone, new)?,
                };
                map = encoder.with_components(map, &rows, false).map_err(refused)?;
                after = Some(rows);
            }
        }
        if map.is_none() && reweighted.is_none() {
            // Extremes and components that had to be looked for are kept, although they are the old ones.
            self.renewed = after.and(encoder);
            return Ok(None);
        }
        if *method != Method::Retrain
            && reweighted.is_none()
            && let (Some(counted), Some(map)) = (&encoder, &map)
            && let Some((mut outcome, encoder)) = self.rescaled(counted, map, gone, new)?
            && outcome.evidence.relative_bound <= method.tolerance().unwrap_or(f64::INFINITY)
        {
            if let Some(after) = &after {
                outcome.evidence.rows_read += after.len();
            }
            self.renewed = Some(encoder);
            return Ok(Some(outcome));
        }
        let after = match after {
            Some(after) => after,
            None => self.rows_after(gone, new)?,
        };
        if let (Some(encoder), Some(map)) = (&mut encoder, map) {
            encoder.adopt(map)?;
        }
        self.manifest.blueprint.class_weights = reweighted.or(self.manifest.blueprint.class_weights.take());
        progress.start("fitting anew", None);
        let fitted = self.fitted(encoder.as_ref(), &after.watched(&Stop::default()), progress);
        progress.finish();
        let mut outcome = fitted?;
        outcome.evidence.forgotten = gone.len();
        outcome.evidence.learned = arriving;
        self.renewed = encoder;
        Ok(Some(outcome))
    }

    /// The weights of classes after the change, where they follow from the rows and are others then.
    fn reweighted(&self, gone: &[RowId], new: Option<&Rows>) -> Result<Option<AppliedClassWeights>> {
        if !self.manifest.blueprint.is_balanced() {
            return Ok(None);
        }
        let mut counted = self.manifest.blueprint.clone();
        new.iter().flat_map(|new| new.iter()).for_each(|row| counted.count(row.targets, true));
        self.rows().visit(gone, &mut |_, row| counted.count(row.targets, false))?;
        Ok(if counted.balance() { counted.class_weights } else { None })
    }

    /// The model by algebra on its sums, and the encoder that goes with it, where `map` gives the features of before in other
    /// units. `counted` counts the rows as they are after the change.
    fn rescaled(
        &self,
        counted: &Encoder,
        map: &FeatureMap,
        gone: &[RowId],
        new: Option<&Rows>,
    ) -> Result<Option<(Outcome<Model>, Encoder)>> {
        let Some(before) = &self.encoder else { return Ok(None) };
        if self.manifest.model.recipe.family() != Family::Ridge {
            return Ok(None);
        }
        let Some(RescaledFeatures { map, features: scales }) = counted.rescaling(before, map) else {
            return Ok(None);
        };
        let mut encoder = counted.clone();
        encoder.adopt(map)?;
        let new = new.map(|new| features(new, Some(&encoder), &self.manifest.blueprint)).transpose()?;
        let model = self.current_model()?;
        let Some(ridge) = model.get::<RidgeModel>() else { return Ok(None) };
        let rows = FeatureRows::new(self.rows(), Some(&encoder), &self.manifest.blueprint);
        let Some(Outcome { model, mut evidence }) = ridge.rescaled(&scales, &rows, gone, new.as_deref())?
        else {
            return Ok(None);
        };
        evidence.reason = Some(
            "scales or weights of the features follow from the rows and are others after this change; the kept sums were brought \
             to them by algebra"
                .into(),
        );
        Ok(Some((Outcome { model: Model::new(model), evidence }, encoder)))
    }

    /// The raw rows that are there after the change.
    fn rows_after(&self, gone: &[RowId], new: Option<&Rows>) -> Result<Rows> {
        let out: HashSet<RowId> = gone.iter().copied().collect();
        let mut after = self.rows().all()?.filter(|id| !out.contains(&id));
        if let Some(new) = new {
            after.append(new)?;
        }
        Ok(after)
    }

    fn fitted(
        &self,
        encoder: Option<&Encoder>,
        raw: &Rows,
        progress: &dyn Progress,
    ) -> Result<Outcome<Model>> {
        let rows = features(raw, encoder, &self.manifest.blueprint)?;
        let recipe = self.manifest.model.recipe.for_single_change();
        let model = watched_fit::fit(&recipe, &rows, "fitting anew", progress)?;
        // A classifier that was fitted stands at its optimum, and is held to what that promises.
        let mut evidence = match model.get::<LogisticModel>() {
            Some(classifier) => classifier.evidence_at_optimum(),
            None => model.evidence(),
        };
        evidence.method = Method::Retrain.name().into();
        evidence.promise = Claim::Exact;
        evidence.reason = Some(
            "features, or weights of classes, follow from the rows and are others after this change, so that every row was read"
                .into(),
        );
        evidence.rows = rows.len();
        evidence.rows_read = rows.len();
        evidence.resummed = true;
        Ok(Outcome { model, evidence })
    }
}

/// Whether the number of features has a say in a model: naive Bayes smooths by it, so that a feature without rows is not
/// nothing.
fn counts_features(recipe: &Recipe) -> bool {
    let sharded = recipe.get::<Sisa<ShardRecipe>>();
    let family = sharded.map_or_else(|| recipe.family(), |shards| shards.recipe.whole().family());
    use Family::{BernoulliNb, ComplementNb, GaussianNb, MultinomialNb};
    matches!(family, MultinomialNb | ComplementNb | BernoulliNb | GaussianNb)
}
