//! Features that follow from the rows. Where rows that come or go make them others, all parameters
//! of the model stand for other features. Where these differ in scale and origin alone, the sums
//! that ridge keeps follow by algebra; otherwise the model is fitted anew on the features of the
//! rows that are then there. Components, and weights of classes, follow from sums that are kept
//! beside the model, and so does a ridge model of them.

use std::collections::HashSet;
use std::sync::Arc;

use efface::features::{
    Encoder, FeatureMap, FeatureMoments, FollowedSums, KeptSums, RescaledFeatures, UnknownName,
};
use efface::models::ClassReweighting;
use efface::{
    ChangedRows, Claim, Family, LogisticModel, Method, Model, Outcome, Recipe, RidgeModel, RowId,
    RowStore, Rows, ShardRecipe, Sisa, Stop,
};

use super::opened::OpenedChange;
use crate::codec::blueprint::Blueprint;
use crate::codec::class_weights::AppliedClassWeights;
use crate::codec::feature_rows::{FeatureRows, features};
use crate::codec::kept_sums;
use crate::error::Result;
use crate::file::StoreRows;
use crate::operations::ingest;
use crate::operations::row_source::RowSource;
use crate::operations::watched_fit;
use crate::progress::Progress;

impl<'a> OpenedChange<'a> {
    /// The rows as the model sees them.
    pub(crate) fn feature_rows(&self) -> FeatureRows<StoreRows<'a>> {
        FeatureRows::new(self.rows(), self.encoder.as_ref(), &self.manifest.blueprint)
    }

    /// Gives the words and levels of new rows their places, so that nothing of the rows is lost
    /// when they are read.
    pub(crate) fn admit_names(
        &mut self,
        source: &RowSource,
        progress: &dyn Progress,
    ) -> Result<()> {
        let Some(encoder) = &mut self.encoder else {
            return Ok(());
        };
        let unknown: HashSet<UnknownName> = ingest::unknown_names(source, encoder, progress)?;
        let mut unknown: Vec<UnknownName> = unknown.into_iter().collect();
        unknown.sort_unstable();
        encoder.admit(&unknown)?;
        self.manifest.blueprint.stored_width = encoder.raw_width();
        Ok(())
    }

    /// Whether a method may give this model other features: one that promises what a new fit gives.
    /// Others work on the features that are there, and so does a model behind noise, whose
    /// certificate rests on them, until it is retrained.
    pub(crate) fn follows_rows(&self, method: &Method) -> bool {
        follows_rows(&self.manifest.model.recipe, method)
    }

    /// The model that [`refitted`](Self::refitted) gives without the rows `gone`, with what makes
    /// its features. This change stays as it was.
    pub(crate) fn try_refit(
        &mut self,
        method: &Method,
        gone: &[RowId],
        progress: &dyn Progress,
    ) -> Result<Option<RefittedFeatures>> {
        let before = self.manifest.blueprint.clone();
        let outcome = self.refitted(method, gone, None, progress);
        let blueprint = std::mem::replace(&mut self.manifest.blueprint, before);
        let encoder = self.renewed.take().or_else(|| self.encoder.clone());
        self.sums = None;
        Ok(outcome?.map(|outcome| RefittedFeatures {
            outcome,
            encoder,
            blueprint,
        }))
    }

    /// The model of other features, where the rows `gone` that leave and the `new` ones make them
    /// others. None where they stay, so that the model can be changed as it is.
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
        let sums = self.changed_sums(gone, new)?;
        let mut followed = None;
        let mut encoder = self.encoder.clone();
        // Rows beyond memory are read from the file where they are needed.
        let by_passes = self.feature_rows().is_beyond_memory();
        let left = ChangedRows::new(&raw, gone, new);
        let mut after: Option<Rows> = None;
        let mut rows_read = 0;
        let mut map = None;
        if let Some(encoder) = &mut encoder {
            for row in new.iter().flat_map(|new| new.iter()) {
                encoder.learn_row(&row.features.entries(), row.targets);
            }
            raw.visit(gone, &mut |_, row| {
                encoder.forget_row(&row.features.entries(), row.targets);
            })?;
            if encoder.lacks_extremes() {
                encoder.drop_extremes();
                let mut look = |rows: &Rows| {
                    rows.iter()
                        .for_each(|row| encoder.see_extremes(&row.features.entries()));
                    Ok(())
                };
                if by_passes {
                    left.each_block(&mut look)?;
                } else {
                    look(after.insert(left.all()?.into_owned()))?;
                }
                rows_read = left.len();
            }
            let allow_unused = !counts_features(&self.manifest.model.recipe);
            let refused = |error| efface::Error::Unsupported {
                method: Method::Retrain.name(),
                reason: format!("{error}; the model stays as it was"),
            };
            map = encoder.follow(allow_unused).map_err(refused)?;
            if let Some(sums) = sums.as_ref().filter(|_| *method != Method::Retrain) {
                let weights =
                    reweighted
                        .as_ref()
                        .or(self.manifest.blueprint.class_weights.as_ref());
                let weights = weights
                    .filter(|_| sums.groups() > 1)
                    .map_or(&[][..], |applied| &applied.weights);
                followed = sums
                    .follow(encoder, map.clone(), weights)
                    .map_err(refused)?;
            }
            if let Some(FollowedSums { map: found, .. }) = &followed {
                map = Some(found.clone());
            } else if encoder.has_components() {
                let rows = match after {
                    Some(rows) => rows,
                    None => left.all()?.into_owned(),
                };
                rows_read = rows.len();
                map = encoder
                    .with_components(map, &rows, false)
                    .map_err(refused)?;
                after = Some(rows);
            }
        }
        if let (Some(counted), Some(FollowedSums { map, moments })) = (&encoder, &followed)
            && let Some(mut outcome) = self.summed(moments, sums.as_ref())?
            && outcome.evidence.relative_bound <= method.tolerance().unwrap_or(f64::INFINITY)
        {
            let mut encoder = counted.clone();
            encoder.adopt(map.clone())?;
            outcome.evidence.forgotten = gone.len();
            outcome.evidence.learned = arriving;
            outcome.evidence.rows_read = gone.len() + arriving + rows_read;
            self.manifest.blueprint.class_weights =
                reweighted.or(self.manifest.blueprint.class_weights.take());
            self.renewed = Some(encoder);
            self.sums = sums;
            return Ok(Some(outcome));
        }
        if *method != Method::Retrain
            && map.is_none()
            && let Some(weights) = &reweighted
            && let Some(outcome) = self.reweighed(weights, gone, new)?
            && outcome.evidence.relative_bound <= method.tolerance().unwrap_or(f64::INFINITY)
        {
            self.manifest.blueprint.class_weights = reweighted;
            self.renewed = encoder.filter(|_| rows_read > 0);
            return Ok(Some(outcome));
        }
        if map.is_none() && reweighted.is_none() && sums.is_none() {
            // Extremes and components that had to be looked for are kept, although they are the old
            // ones.
            self.renewed = encoder.filter(|_| rows_read > 0);
            return Ok(None);
        }
        if *method != Method::Retrain
            && reweighted.is_none()
            && let (Some(counted), Some(map)) = (&encoder, &map)
            && let Some((mut outcome, encoder)) = self.rescaled(counted, map, gone, new)?
            && outcome.evidence.relative_bound <= method.tolerance().unwrap_or(f64::INFINITY)
        {
            outcome.evidence.rows_read += rows_read;
            self.renewed = Some(encoder);
            return Ok(Some(outcome));
        }
        if let (Some(encoder), Some(map)) = (&mut encoder, map) {
            encoder.adopt(map)?;
        }
        self.manifest.blueprint.class_weights =
            reweighted.or(self.manifest.blueprint.class_weights.take());
        progress.start("fitting anew", None);
        let blueprint = &self.manifest.blueprint;
        let mut held: Option<Rows> = None;
        let fitted = if by_passes {
            self.fitted(
                &FeatureRows::changed(left, encoder.as_ref(), blueprint),
                None,
                progress,
            )
        } else {
            let after = match after {
                Some(after) => after,
                None => left.all()?.into_owned(),
            };
            let after = held.insert(after.watched(&Stop::default()));
            let rows = features(after, encoder.as_ref(), blueprint)?;
            let start = if *method == Method::Retrain {
                None
            } else {
                self.start_towards(encoder.as_ref())?
            };
            self.fitted(rows.as_ref(), start.as_deref(), progress)
        };
        progress.finish();
        let mut outcome = fitted?;
        outcome.evidence.forgotten = gone.len();
        outcome.evidence.learned = arriving;
        let has_components = encoder.as_ref().is_some_and(Encoder::has_components);
        if followed.is_some() && has_components {
            outcome.evidence.reason = Some(
                "components of the features follow from kept sums and are others after this change; the model was fitted anew on them, \
                 for which every row was read"
                    .into(),
            );
        }
        // A model that could follow from sums and did not, because they are rounded too much, gets
        // new ones.
        self.sums = match followed {
            Some(_) if !kept_sums::follows_sums(&outcome.model) => sums,
            _ => held.and_then(|after| {
                kept_sums::of_rows(
                    &after,
                    encoder.as_ref(),
                    &self.manifest.blueprint,
                    &outcome.model,
                )
            }),
        };
        self.renewed = encoder;
        Ok(Some(outcome))
    }

    /// The sums beside the model once the rows `gone` have left and `new` ones joined; None where
    /// there are none that could follow.
    fn changed_sums(&self, gone: &[RowId], new: Option<&Rows>) -> Result<Option<KeptSums>> {
        // Sums that are stored while rows wait to be folded out still hold those rows.
        let (Some(encoder), None) = (&self.encoder, &self.manifest.waiting) else {
            return Ok(None);
        };
        let Some(sums) = self
            .store()
            .with(|connection| kept_sums::load(connection, &self.manifest))?
        else {
            return Ok(None);
        };
        let rows = self.rows();
        Ok(kept_sums::changed(
            sums,
            encoder,
            &self.manifest.blueprint,
            (&rows, gone),
            new,
        ))
    }

    /// The model of these products, where it follows from them.
    fn summed(
        &self,
        moments: &FeatureMoments,
        sums: Option<&KeptSums>,
    ) -> Result<Option<Outcome<Model>>> {
        let blueprint = &self.manifest.blueprint;
        let is_weighed = blueprint.class_weights.is_none()
            || sums.is_some_and(|sums| Some(sums.groups()) == blueprint.class_count());
        let has_weights = blueprint.weight.is_some() && sums.is_none_or(|sums| !sums.is_weighted());
        if self.manifest.model.recipe.family() != Family::Ridge || !is_weighed || has_weights {
            return Ok(None);
        }
        let model = self.current_model()?;
        let Some(ridge) = model.get::<RidgeModel>() else {
            return Ok(None);
        };
        let Some(Outcome {
            model,
            mut evidence,
        }) = ridge.with_moments(moments)?
        else {
            return Ok(None);
        };
        evidence.reason = Some(
            "components of the features, or weights of classes, follow from the rows and are others after this change; they and the model \
             were worked out from kept sums"
                .into(),
        );
        Ok(Some(Outcome {
            model: Model::new(model),
            evidence,
        }))
    }

    /// The model whose classes have other weights, where its sums tell it without the rows.
    fn reweighed(
        &self,
        weights: &AppliedClassWeights,
        gone: &[RowId],
        new: Option<&Rows>,
    ) -> Result<Option<Outcome<Model>>> {
        let Some(before) = &self.manifest.blueprint.class_weights else {
            return Ok(None);
        };
        let pairs: Vec<(f64, f64)> = before
            .weights
            .iter()
            .copied()
            .zip(weights.weights.iter().copied())
            .collect();
        let mut blueprint = self.manifest.blueprint.clone();
        blueprint.class_weights = Some(weights.clone());
        let encoder = self.encoder.as_ref();
        let new = new
            .map(|new| features(new, encoder, &blueprint))
            .transpose()?;
        let change = ClassReweighting {
            weights: &pairs,
            have_weights: blueprint.weight.is_some(),
            rows: &FeatureRows::new(self.rows(), encoder, &blueprint),
            gone,
            new: new.as_deref(),
        };
        let Some(outcome) = self.current_model()?.reweighted(&change) else {
            return Ok(None);
        };
        let mut outcome = outcome?;
        outcome.evidence.reason = Some(
            "weights of classes follow from the rows and are others after this change; the kept sums of each class were multiplied by \
             what they count for now"
                .into(),
        );
        Ok(Some(outcome))
    }

    /// The weights of classes after the change, where they follow from the rows and are others
    /// then.
    fn reweighted(
        &self,
        gone: &[RowId],
        new: Option<&Rows>,
    ) -> Result<Option<AppliedClassWeights>> {
        if !self.manifest.blueprint.is_balanced() {
            return Ok(None);
        }
        let mut counted = self.manifest.blueprint.clone();
        new.iter()
            .flat_map(|new| new.iter())
            .for_each(|row| counted.count(row.targets, true));
        self.rows()
            .visit(gone, &mut |_, row| counted.count(row.targets, false))?;
        Ok(if counted.balance() {
            counted.class_weights
        } else {
            None
        })
    }

    /// The model by algebra on its sums, and the encoder that goes with it, where `map` gives the
    /// features of before in other units. `counted` counts the rows as they are after the change.
    fn rescaled(
        &self,
        counted: &Encoder,
        map: &FeatureMap,
        gone: &[RowId],
        new: Option<&Rows>,
    ) -> Result<Option<(Outcome<Model>, Encoder)>> {
        let Some(before) = &self.encoder else {
            return Ok(None);
        };
        if self.manifest.model.recipe.family() != Family::Ridge {
            return Ok(None);
        }
        let Some(RescaledFeatures {
            map,
            features: scales,
        }) = counted.rescaling(before, map)
        else {
            return Ok(None);
        };
        let mut encoder = counted.clone();
        encoder.adopt(map)?;
        let new = new
            .map(|new| features(new, Some(&encoder), &self.manifest.blueprint))
            .transpose()?;
        let model = self.current_model()?;
        let Some(ridge) = model.get::<RidgeModel>() else {
            return Ok(None);
        };
        let rows = FeatureRows::new(self.rows(), Some(&encoder), &self.manifest.blueprint);
        let Some(Outcome {
            model,
            mut evidence,
        }) = ridge.rescaled(&scales, &rows, gone, new.as_deref())?
        else {
            return Ok(None);
        };
        evidence.reason = Some(
            "scales or weights of the features follow from the rows and are others after this change; the kept sums were brought \
             to them by algebra"
                .into(),
        );
        Ok(Some((
            Outcome {
                model: Model::new(model),
                evidence,
            },
            encoder,
        )))
    }

    /// The model as it is, where it is a classifier whose parameters may still stand for the same
    /// features: its optimum is then near, and is one wherever training begins.
    fn start_towards(&self, encoder: Option<&Encoder>) -> Result<Option<Arc<Model>>> {
        let about = self.manifest.model.recipe.describe();
        let is_classifier = matches!(
            self.manifest.model.recipe.family(),
            Family::Logistic | Family::Softmax
        );
        let stay = match (&self.encoder, encoder) {
            (Some(before), Some(after)) => {
                !after.has_components() && before.named_features() == after.named_features()
            }
            (None, None) => true,
            _ => false,
        };
        if is_classifier && stay && !about.is_certified {
            self.current_model().map(Some)
        } else {
            Ok(None)
        }
    }

    /// The model of rows as it sees them, trained from `start` where that is given and leads
    /// anywhere.
    fn fitted(
        &self,
        rows: &dyn RowStore,
        start: Option<&Model>,
        progress: &dyn Progress,
    ) -> Result<Outcome<Model>> {
        let recipe = self.manifest.model.recipe.for_single_change();
        let fit = |start| watched_fit::fit(&recipe, rows, start, "fitting anew", progress);
        let is_as_wide = |start: &&Model| {
            start
                .get::<LogisticModel>()
                .is_some_and(|model| model.features() == rows.width())
        };
        // From old parameters of a column whose scale has become another altogether, no way may
        // lead down.
        let trained_on = start
            .filter(is_as_wide)
            .and_then(|start| fit(Some(start)).ok());
        let is_trained_on = trained_on.is_some();
        let model = match trained_on {
            Some(model) => model,
            None => fit(None)?,
        };
        // A classifier that was fitted stands at its optimum, and is held to what that promises.
        let mut evidence = match model.get::<LogisticModel>() {
            Some(classifier) => classifier.evidence_at_optimum(),
            None => model.evidence(),
        };
        let method = if is_trained_on {
            Method::WarmStart
        } else {
            Method::Retrain
        };
        evidence.method = method.name().into();
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

/// A model of other features, with what makes them.
pub(crate) struct RefittedFeatures {
    pub(crate) outcome: Outcome<Model>,
    pub(crate) encoder: Option<Encoder>,
    pub(crate) blueprint: Blueprint,
}

/// Returns true if a method may give a model of this recipe other features, see
/// [`OpenedChange::follows_rows`].
pub(crate) fn follows_rows(recipe: &Recipe, method: &Method) -> bool {
    if *method == Method::Retrain {
        return true;
    }
    let family = recipe.family();
    let is_exact = || {
        method
            .entries()
            .any(|entry| entry.claim == "exact" && entry.models.contains(&family))
    };
    !recipe.describe().is_certified && (matches!(method, Method::Auto(_)) || is_exact())
}

/// Whether the number of features has a say in a model: naive Bayes smooths by it, so that a
/// feature without rows is not nothing.
pub(crate) fn counts_features(recipe: &Recipe) -> bool {
    let sharded = recipe.get::<Sisa<ShardRecipe>>();
    let family = sharded.map_or_else(|| recipe.family(), |shards| shards.recipe.whole().family());
    use Family::{BernoulliNb, ComplementNb, GaussianNb, MultinomialNb};
    matches!(
        family,
        MultinomialNb | ComplementNb | BernoulliNb | GaussianNb
    )
}
