//! What can be asked of a model without changing it.

use efface::features::Encoder;
use efface::models::BaseRecipe;
use efface::{AnyModel, AnyRecipe, Predict};
use efface_io::Source;
use faer::Mat;

use crate::clock;
use crate::codec::blueprint::{Blueprint, RowLayout};
use crate::codec::manifest::{Details, Manifest, ModelHead};
use crate::codec::model::{self, Live};
use crate::codec::network::{NetworkInfo, TextEncoder, open};
use crate::engine::{Engine, ModelSnapshot};
use crate::error::{Error, Result};
use crate::file::{ModelStore, StoreRows};
use crate::ledger::copies;
use crate::operations::ingest::{self, FeatureTable, ReadPurpose};
use crate::operations::report::{ModelSummary, Parameters, Prediction};
use crate::progress::Silent;

pub(crate) fn summary(engine: &Engine) -> Result<ModelSummary> {
    let _transaction = engine.store.begin(false)?;
    let ModelSnapshot { manifest, encoder } = engine.snapshot()?;
    let (subjects, forgotten, scaled) = engine.store.with(|connection| {
        let directory = manifest.directory(connection);
        Ok((directory.subjects()?, directory.ever_forgotten()?, model::scaled(connection, &manifest)?))
    })?;
    let exports = match manifest.ledger {
        Some(_) => engine.store.with(copies::count)?,
        None => (0, 0),
    };
    let path = engine.store.path();
    let file_bytes = std::fs::metadata(path).map_err(|cause| Error::io(path, cause))?.len();
    let not_covered = model::not_covered(&manifest, encoder.as_ref(), scaled);
    let feature_columns = feature_columns(&manifest.blueprint, encoder.as_ref());
    let outputs = output_names(&manifest);
    let Manifest {
        blueprint,
        ledger,
        waiting,
        network,
        model: ModelHead { recipe, details, bound, relative_bound, certificate, .. },
        ..
    } = manifest;
    Ok(ModelSummary {
        model: title(network.as_ref(), &recipe),
        version: manifest.version,
        format: crate::FORMAT,
        rows: manifest.rows as usize,
        features: blueprint.width.saturating_sub(manifest.erased as usize),
        outputs,
        classes: blueprint.classes().map(|classes| classes.names().to_vec()),
        lambda: lambda(&recipe),
        intercept: intercept(&recipe),
        form: match &recipe {
            AnyRecipe::Ridge(ridge) => Some(format!("{:?}", ridge.form).to_lowercase()),
            _ => None,
        },
        recipe: without_secret(recipe),
        network,
        certificate,
        // Rows of words are as long as their texts, which nobody would call dense.
        sparse: blueprint.layout.is_sparse() || blueprint.layout == RowLayout::WordIds,
        target: blueprint.targets,
        id: blueprint.id,
        subject: blueprint.subject,
        subjects,
        feature_columns,
        forgotten,
        unscrubbed: waiting.as_ref().map_or(0, |waiting| waiting.rows.len()),
        unscrubbed_since: waiting.map(|waiting| clock::stamp(waiting.since)),
        generation: manifest.generation,
        receipts: ledger.as_ref().map_or(0, |ledger| ledger.size),
        public_key: ledger.map(|ledger| ledger.key),
        exports,
        bound: bound.unwrap_or(f64::INFINITY),
        relative_bound: relative_bound.unwrap_or(f64::INFINITY),
        refactorisations: match details {
            Details::Sums { refactorisations, .. } | Details::Classifier { refactorisations, .. } => {
                refactorisations
            }
            Details::Packed => 0,
        },
        file_bytes,
        not_covered,
        created_at: manifest.created_at,
        changed_at: manifest.changed_at,
    })
}

fn feature_columns(blueprint: &Blueprint, encoder: Option<&Encoder>) -> Vec<(String, String, usize)> {
    match encoder {
        Some(encoder) => {
            encoder.columns().iter().map(|c| (c.name().into(), c.kind().into(), c.width())).collect()
        }
        None => match &blueprint.texts {
            Some(texts) => vec![(texts.columns.join(" "), "encoded".into(), blueprint.width)],
            None => vec![("index".into(), "numeric".into(), blueprint.width)],
        },
    }
}

/// The name of a feature; None when it was erased.
fn feature(blueprint: &Blueprint, encoder: Option<&Encoder>, column: usize) -> Option<String> {
    let column = u32::try_from(column).ok()?;
    match encoder {
        Some(encoder) => encoder.name(column).map(Into::into),
        None if blueprint.texts.is_some() => Some(format!("feature {column}")),
        None => Some((u64::from(column) + u64::from(blueprint.first_index.unwrap_or(0))).to_string()),
    }
}

/// The names of what a prediction scores.
fn output_names(manifest: &Manifest) -> Vec<String> {
    let blueprint = &manifest.blueprint;
    if let AnyRecipe::KMeans(kmeans) = &manifest.model.recipe {
        return (0..kmeans.k).map(|cluster| cluster.to_string()).collect();
    }
    // Naive Bayes has one score per class, where other models have one for two.
    let bayes = match &manifest.model.recipe {
        AnyRecipe::MultinomialNb(_) | AnyRecipe::GaussianNb(_) => true,
        AnyRecipe::Sisa(sisa) => {
            matches!(sisa.recipe, BaseRecipe::MultinomialNb(_) | BaseRecipe::GaussianNb(_))
        }
        _ => false,
    };
    match blueprint.classes() {
        Some(classes) if bayes => classes.names().to_vec(),
        _ => blueprint.output_names(),
    }
}

/// What to call a network by its encoder and its head, and any other model by its family.
fn title(network: Option<&NetworkInfo>, recipe: &AnyRecipe) -> String {
    let head = name(recipe);
    match network {
        Some(network) if network.shards.is_some() => format!("{} with {head} head in shards", network.kind()),
        Some(network) => format!("{} with {head} head", network.kind()),
        None => head,
    }
}

/// What to call a model.
pub(crate) fn name(recipe: &AnyRecipe) -> String {
    match recipe {
        AnyRecipe::Sisa(sisa) => format!("{} in shards", name(&sisa.recipe.clone().into())),
        recipe => recipe.family().name().into(),
    }
}

/// The recipe for others to read: whoever knows the seed of the noise can take the noise away.
pub(crate) fn without_secret(recipe: AnyRecipe) -> AnyRecipe {
    match recipe {
        AnyRecipe::Logistic(logistic) => match logistic.privacy {
            Some(privacy) => AnyRecipe::Logistic(logistic.privacy(privacy.seed(0))),
            None => AnyRecipe::Logistic(logistic),
        },
        recipe => recipe,
    }
}

fn lambda(recipe: &AnyRecipe) -> Option<f64> {
    match recipe {
        AnyRecipe::Ridge(ridge) => Some(ridge.lambda),
        AnyRecipe::Logistic(logistic) => Some(logistic.lambda),
        AnyRecipe::Softmax(softmax) => Some(softmax.lambda),
        AnyRecipe::Sisa(sisa) => lambda(&sisa.recipe.clone().into()),
        _ => None,
    }
}

fn intercept(recipe: &AnyRecipe) -> Option<bool> {
    match recipe {
        AnyRecipe::Ridge(ridge) => Some(ridge.intercept),
        AnyRecipe::Logistic(logistic) => Some(logistic.intercept),
        AnyRecipe::Softmax(softmax) => Some(softmax.intercept),
        AnyRecipe::Sisa(sisa) => intercept(&sisa.recipe.clone().into()),
        _ => None,
    }
}

pub(crate) fn parameters(engine: &Engine) -> Result<Parameters> {
    let _transaction = engine.store.begin(false)?;
    let ModelSnapshot { manifest, encoder } = engine.snapshot()?;
    parameters_of(&engine.store, &manifest, encoder.as_ref())
}

/// The parameters of the model of this manifest, inside a transaction that somebody else holds.
pub(crate) fn parameters_of(
    store: &ModelStore,
    manifest: &Manifest,
    encoder: Option<&Encoder>,
) -> Result<Parameters> {
    let rows = StoreRows::new(store, manifest);
    let (mut vectors, mut tables) = (Vec::new(), Vec::new());
    // Every table features × outputs.
    let in_shards = |shards: usize| {
        let reason = format!(
            "a model in {shards} shards has no parameters of its own, only those of every shard; fit without shards to \
             export, or use predict"
        );
        Err(efface::Error::Unsupported { method: "export", reason }.into())
    };
    let found = match model::scorer(store, manifest, &rows)? {
        Live::Plain(model) => model,
        Live::Shards(model) => return in_shards(model.settings().shards),
    };
    match found {
        AnyModel::Ridge(model) => {
            let (coefficients, intercept) = model.parameters();
            vectors.push(("intercept", intercept));
            tables.push(("coefficients", coefficients));
        }
        AnyModel::MultinomialNb(model) => {
            vectors.push(("class_prior", model.class_prior()));
            tables.push(("feature_log_prob", model.feature_log_prob().transpose().to_owned()));
        }
        AnyModel::GaussianNb(model) => {
            vectors.push(("class_prior", model.class_prior()));
            tables.push(("means", model.means().transpose().to_owned()));
            tables.push(("variances", model.variances().transpose().to_owned()));
        }
        AnyModel::Logistic(model) => {
            let (coefficients, intercept) = model.parameters();
            vectors.push(("intercept", intercept));
            tables.push(("coefficients", coefficients));
        }
        AnyModel::Sisa(model) => return in_shards(model.settings().shards),
        AnyModel::KMeans(model) => tables.push(("centers", model.centers().transpose().to_owned())),
    }
    let named: Vec<(usize, String)> = (0..manifest.blueprint.width)
        .filter_map(|column| Some((column, feature(&manifest.blueprint, encoder, column)?)))
        .collect();
    let lines = |table: &Mat<f64>| {
        let line =
            |(column, _): &(usize, String)| (0..table.ncols()).map(|at| table[(*column, at)]).collect();
        named.iter().map(line).collect()
    };
    Ok(Parameters {
        model: title(manifest.network.as_ref(), &manifest.model.recipe),
        lambda: lambda(&manifest.model.recipe),
        rows: manifest.rows as usize,
        outputs: output_names(manifest),
        classes: manifest.blueprint.classes().map(|classes| classes.names().to_vec()),
        vectors,
        tables: tables.iter().map(|(name, table)| (*name, lines(table))).collect(),
        features: named.into_iter().map(|(_, name)| name).collect(),
    })
}

/// Every number that an export could hold, in an order that stays the same; empty for a model that cannot be exported.
pub(crate) fn numbers(store: &ModelStore, manifest: &Manifest) -> Result<Vec<f64>> {
    let rows = StoreRows::new(store, manifest);
    Ok(match model::scorer(store, manifest, &rows)? {
        Live::Plain(model) => numbers_of(&model),
        Live::Shards(_) => Vec::new(),
    })
}

/// The same of a model in memory.
pub(crate) fn numbers_of(model: &AnyModel) -> Vec<f64> {
    let flat = |table: &Mat<f64>| {
        (0..table.ncols()).flat_map(|j| table.col_as_slice(j).to_vec()).collect::<Vec<_>>()
    };
    let pair = |(coefficients, intercept): (Mat<f64>, Vec<f64>)| [flat(&coefficients), intercept].concat();
    match model {
        AnyModel::Ridge(model) => pair(model.parameters()),
        AnyModel::Logistic(model) => pair(model.parameters()),
        AnyModel::MultinomialNb(model) => [model.class_prior(), flat(&model.feature_log_prob())].concat(),
        AnyModel::GaussianNb(model) => {
            let tables = [flat(&model.means()), flat(&model.variances())].concat();
            [model.class_prior(), tables].concat()
        }
        AnyModel::KMeans(model) => flat(&model.centers()),
        AnyModel::Sisa(_) => Vec::new(),
    }
}

pub(crate) fn predict(
    engine: &Engine,
    source: &Source,
    see: &mut dyn FnMut(Prediction) -> Result<()>,
) -> Result<u64> {
    let transaction = engine.store.begin(false)?;
    let ModelSnapshot { manifest, encoder } = engine.snapshot()?;
    let rows = StoreRows::new(&engine.store, &manifest);
    let model = model::scorer(&engine.store, &manifest, &rows)?;
    let stage = open(&engine.store, &manifest, engine.encoder_folder())?;
    // All that a score needs is in memory: let writers go on while the file is read.
    drop(transaction);
    let blueprint = &manifest.blueprint;
    let mut waiting = ScoreBuffer::new(&model, blueprint, stage.as_ref());
    let reader = match &stage {
        Some(stage) => ingest::RowReader::Texts(stage),
        None => encoder.as_ref().into(),
    };
    let mut score = |example: ingest::EncodedExample<'_>| waiting.push(example, see);
    let rows = ingest::each(source, blueprint, reader, ReadPurpose::Predict, &Silent, &mut score)?;
    waiting.flush(see)?;
    Ok(rows)
}

/// Rows that wait to be scored together: some models make tables first, which is too much for every single row.
struct ScoreBuffer<'a> {
    model: &'a Live,
    /// What texts pass through first.
    stage: Option<&'a TextEncoder>,
    blueprint: &'a Blueprint,
    features: FeatureTable,
    names: Vec<(Option<String>, u64)>,
}

impl<'a> ScoreBuffer<'a> {
    const MOST: usize = 512;

    fn new(model: &'a Live, blueprint: &'a Blueprint, stage: Option<&'a TextEncoder>) -> Self {
        Self { model, stage, blueprint, features: FeatureTable::to_score(blueprint), names: Vec::new() }
    }

    fn push(
        &mut self,
        example: ingest::EncodedExample<'_>,
        see: &mut dyn FnMut(Prediction) -> Result<()>,
    ) -> Result<()> {
        self.features.push(example.content)?;
        self.names.push((example.id, example.line));
        if self.names.len() == Self::MOST { self.flush(see) } else { Ok(()) }
    }

    fn flush(&mut self, see: &mut dyn FnMut(Prediction) -> Result<()>) -> Result<()> {
        let gathered = std::mem::replace(&mut self.features, FeatureTable::to_score(self.blueprint));
        let mut features = gathered.into_features()?;
        if let Some(stage) = self.stage {
            features = stage.features(features, &Silent)?;
        }
        let all = self.model.predict(&features)?;
        for (slot, (id, line)) in self.names.drain(..).enumerate() {
            let scores: Vec<f64> = (0..all.ncols()).map(|output| all[(slot, output)]).collect();
            let label = match (self.blueprint.classes(), self.model) {
                (Some(classes), _) => classes.names().get(classes.decide(&scores)).cloned(),
                (None, Live::Plain(AnyModel::KMeans(_))) => {
                    nearest(&scores).map(|cluster| cluster.to_string())
                }
                (None, _) => None,
            };
            see(Prediction { id, line, scores, label })?;
        }
        Ok(())
    }
}

/// The least of the distances; the first of several.
fn nearest(distances: &[f64]) -> Option<usize> {
    (0..distances.len()).reduce(|best, at| if distances[at] < distances[best] { at } else { best })
}
