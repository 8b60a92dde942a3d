//! A fit of a network: words, ids, training, features, head.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use efface::{Aggregation, Fit, Hint, Model, Recipe, RowId, Rows, Setting, ShardRecipe, Sisa};
use efface_nn::minilm::MiniLm;
use efface_nn::{
    Backbone, Embedding, EncoderState, NetworkRecipe, TrainingCheckpoint, head_recipe,
};

use super::train;
use crate::codec::blueprint::{Blueprint, MOST_TOKENS};
use crate::codec::network_info::{EncoderInfo, NetworkInfo, ShardInfo, VectorInfo};
use crate::codec::text_encoder::{TextEncoder, word_lists};
use crate::error::{Error, Result};
use crate::file::RowLayout;
use crate::operations::ingest::{self, ReadPurpose, RowBatch, RowReader};
use crate::operations::prepared::PreparedModel;
use crate::operations::request::{EncoderChoice, FitRequest, NetworkRequest, Sharding, Vectors};
use crate::progress::Progress;

/// More words than this are read of no file of vectors.
const MOST_WORDS: usize = 4_000_000;

/// Words of a text that LSTM layers read unless told otherwise, and tokens that a pretrained
/// encoder does.
const USUAL_WORDS: usize = 250;
const USUAL_TOKENS: usize = 512;

/// Everything that a network's file will hold.
pub(crate) fn prepare(
    request: &FitRequest,
    network: &NetworkRequest,
    first_row: u64,
    progress: &dyn Progress,
) -> Result<PreparedModel> {
    if let Some(most) = network
        .max_tokens
        .filter(|most| !(1..=MOST_TOKENS).contains(most))
    {
        let value = most.to_string();
        return Err(efface::Error::Parameter {
            name: "max_tokens",
            value,
            range: "1 to 1048576",
        }
        .into());
    }
    match &network.encoder {
        EncoderChoice::MiniLm { folder } => minilm(request, network, folder, first_row, progress),
        EncoderChoice::Lstm { .. } => lstm(request, network, first_row, progress),
    }
}

fn minilm(
    request: &FitRequest,
    network: &NetworkRequest,
    folder: &Path,
    first_row: u64,
    progress: &dyn Progress,
) -> Result<PreparedModel> {
    if request.sharding.is_some() {
        return Err(Error::request(
            "a pretrained encoder learns nothing, so that shards would only part the head",
            Hint::new("leave out {}: its head forgets exactly").name(Setting::Shards),
        ));
    }
    let encoder = MiniLm::open(folder)?.with_threads(network.threads);
    let most = network
        .max_tokens
        .unwrap_or(encoder.config().max_position_embeddings.min(USUAL_TOKENS));
    let mut encoder = encoder.with_max_tokens(most)?;
    let mut device = None;
    if let Some(asked) = &request.network_device {
        encoder = encoder.with_device(asked.as_ref())?;
        device = encoder.is_on_device().then(|| asked.name());
    }
    let info = NetworkInfo {
        encoder: EncoderInfo::MiniLm {
            // As the folder can be found from elsewhere too.
            folder: std::fs::canonicalize(folder).map_err(|cause| Error::io(folder, cause))?,
            fingerprint: encoder.fingerprint().into(),
            layers: encoder.config().num_hidden_layers,
        },
        max_tokens: most,
        shards: None,
        device,
        state: EncoderState::default(),
    };
    let (mut blueprint, _) = ingest::observe_texts(request, most, None, progress)?;
    blueprint.layout = RowLayout::Dense32;
    blueprint.width = encoder.width();
    blueprint.stored_width = encoder.width();
    let stage = TextEncoder::MiniLm(Box::new(encoder));
    let (ids, batch) = gather(request, &mut blueprint, &stage, first_row, progress)?;
    let (rows, words) = stage.rows(&ids, progress)?;
    progress.start("fitting", None);
    let recipe = head_recipe(&request.model, blueprint.outputs())?;
    let model = recipe.for_single_change().fit(&rows)?;
    Ok(batch.prepared(NetworkParts {
        blueprint,
        rows,
        words,
        recipe,
        model,
        info,
        backbone: None,
    }))
}

fn lstm(
    request: &FitRequest,
    network: &NetworkRequest,
    first_row: u64,
    progress: &dyn Progress,
) -> Result<PreparedModel> {
    let EncoderChoice::Lstm {
        settings,
        training,
        vectors,
        train_vectors,
    } = &network.encoder
    else {
        return Err(Error::request(
            "not a network of LSTM layers",
            "choose another encoder",
        ));
    };
    let most = match vectors {
        Vectors::Learned { most, .. } => Some(*most),
        _ => None,
    };
    // A file that cannot be used is found out before the texts are read.
    let read = read_vectors(vectors)?;
    let max_tokens = network.max_tokens.unwrap_or(USUAL_WORDS);
    let (mut blueprint, words) = ingest::observe_texts(request, max_tokens, most, progress)?;
    let embedding = match (read, vectors) {
        (Some(embedding), _) => embedding,
        (None, Vectors::Learned { .. }) if words.is_empty() => {
            let reason = "none of them holds a word; check which columns hold the texts".into();
            return Err(efface_nn::Error::Vectors {
                place: "the texts".into(),
                reason,
            }
            .into());
        }
        (None, Vectors::Learned { width, .. }) => Embedding::random(words, *width, training.seed)?,
        (None, _) => {
            return Err(Error::request(
                "there are no word vectors",
                "name a file, or learn words",
            ));
        }
    };
    let embedding = Arc::new(embedding.trained(*train_vectors && training.epochs > 0));
    let recipe = NetworkRecipe {
        embedding,
        encoder: *settings,
        training: *training,
        head: request.model.for_single_change(),
    };
    let stage = TextEncoder::Words(Box::new(recipe.clone()));
    let (ids, batch) = gather(request, &mut blueprint, &stage, first_row, progress)?;
    let core = head_recipe(&request.model, blueprint.outputs())?;
    if let Some(sharding) = &request.sharding {
        return shards(
            request,
            sharding,
            (recipe, core),
            (blueprint, ids),
            batch,
            progress,
        );
    }
    let device = request.network_device.as_deref();
    let (trained, interrupted) = train::train(
        &recipe,
        &ids,
        network.checkpoint.as_deref(),
        device,
        progress,
    )?;
    let (backbone, head) = trained.network.into_parts();
    blueprint.layout = RowLayout::Encoded;
    blueprint.width = backbone.width();
    blueprint.stored_width = backbone.width();
    let words = word_lists(&ids)?;
    let info = NetworkInfo {
        encoder: describe(&backbone, &trained.checkpoint, interrupted),
        max_tokens,
        shards: None,
        device: trained.device,
        state: EncoderState::default(),
    };
    let bytes = backbone.to_bytes()?;
    let model = head;
    Ok(batch.prepared(NetworkParts {
        blueprint,
        rows: trained.encoded,
        words,
        recipe: core,
        model,
        info,
        backbone: Some(bytes),
    }))
}

/// Every shard is a network of its own.
fn shards(
    request: &FitRequest,
    sharding: &Sharding,
    (recipe, core): (NetworkRecipe, Recipe),
    (blueprint, ids): (Blueprint, Rows),
    batch: GatheredTexts,
    progress: &dyn Progress,
) -> Result<PreparedModel> {
    if request
        .network
        .as_ref()
        .is_some_and(|network| network.checkpoint.is_some())
    {
        return Err(Error::request(
            "shards are trained side by side and have no one checkpoint",
            Hint::new("leave out {}").name(Setting::Checkpoint),
        ));
    }
    let Sharding {
        shards,
        slices,
        seed,
        aggregation,
        threads,
    } = *sharding;
    let aggregation = aggregation.unwrap_or(Aggregation::Vote);
    progress.start("training shards", None);
    let base = ShardRecipe::new(recipe.clone())?;
    let model = Recipe::new(Sisa {
        recipe: base,
        shards,
        slices,
        seed,
        aggregation,
        threads,
    })
    .fit(&ids)?;
    let NetworkRecipe {
        embedding,
        encoder,
        training,
        ..
    } = &recipe;
    let info = NetworkInfo {
        encoder: EncoderInfo::Lstm {
            settings: *encoder,
            training: *training,
            vectors: vector_info(embedding),
            steps: 0,
            history: Vec::new(),
            best_epoch: None,
            interrupted: false,
        },
        max_tokens: blueprint.width,
        shards: Some(ShardInfo {
            shards,
            slices,
            seed,
            aggregation,
        }),
        device: None,
        state: EncoderState::default(),
    };
    let backbone = Some(recipe.to_bytes(blueprint.width)?);
    let parts = NetworkParts {
        blueprint,
        rows: ids,
        words: Vec::new(),
        recipe: core,
        model,
        info,
        backbone,
    };
    Ok(batch.prepared(parts))
}

/// The second pass: rows of ids.
fn gather(
    request: &FitRequest,
    blueprint: &mut Blueprint,
    stage: &TextEncoder,
    first_row: u64,
    progress: &dyn Progress,
) -> Result<(Rows, GatheredTexts)> {
    let reader = RowReader::Texts(stage);
    let mut batch: RowBatch = ingest::gather(
        &request.source,
        blueprint,
        reader,
        ReadPurpose::Fit,
        request.source.limits().memory,
        progress,
    )?;
    batch.number(0);
    let cut = batch.cut;
    let numbers = (first_row..).take(batch.len()).map(RowId).collect();
    let (ids, names) = batch.into_rows(numbers, blueprint.outputs())?;
    ids.iter()
        .for_each(|row| blueprint.count(row.targets, true));
    Ok((ids, GatheredTexts { names, cut }))
}

/// What is known of rows beside their numbers.
struct GatheredTexts {
    names: ingest::RowNames,
    cut: u64,
}

struct NetworkParts {
    blueprint: Blueprint,
    rows: Rows,
    words: Vec<Vec<u32>>,
    recipe: Recipe,
    model: Model,
    info: NetworkInfo,
    backbone: Option<Vec<u8>>,
}

impl GatheredTexts {
    fn prepared(self, parts: NetworkParts) -> PreparedModel {
        let NetworkParts {
            blueprint,
            rows,
            words,
            recipe,
            model,
            info,
            backbone,
        } = parts;
        let names = self.names;
        let cut = self.cut;
        let network = Some(info);
        PreparedModel {
            blueprint,
            encoder: None,
            rows,
            words,
            names,
            recipe,
            model,
            network,
            backbone,
            penalty: None,
            remarks: Vec::new(),
            cut,
        }
    }
}

/// What to tell of a trained encoder.
pub(super) fn describe(
    backbone: &Backbone,
    checkpoint: &TrainingCheckpoint,
    interrupted: bool,
) -> EncoderInfo {
    let NetworkRecipe {
        embedding,
        encoder,
        training,
        ..
    } = backbone.recipe();
    // A training whose loss overflowed reports infinities, which JSON cannot hold: such epochs are
    // left out.
    let told = |report: &&efface_nn::EpochReport| {
        let (loss, hits) = report.validation.unwrap_or_default();
        [report.loss, report.accuracy, loss, hits]
            .iter()
            .all(|value| value.is_finite())
    };
    EncoderInfo::Lstm {
        settings: *encoder,
        training: *training,
        vectors: vector_info(embedding),
        steps: backbone.steps(),
        history: checkpoint.history.iter().filter(told).copied().collect(),
        best_epoch: checkpoint.best_epoch(),
        interrupted,
    }
}

fn vector_info(embedding: &Embedding) -> VectorInfo {
    VectorInfo {
        words: embedding.words().len(),
        width: embedding.width(),
        trained: embedding.trained,
        public: embedding.public,
    }
}

/// Vectors from files; None when they are to be learned.
fn read_vectors(vectors: &Vectors) -> Result<Option<Embedding>> {
    let open = |path: &Path| File::open(path).map_err(|cause| Error::io(path, cause));
    let named = |path: &Path, error: efface_nn::Error| match error {
        efface_nn::Error::Vectors { place, reason } => {
            let place = format!("{}, {place}", path.display());
            Error::from(efface_nn::Error::Vectors { place, reason })
        }
        other => other.into(),
    };
    Ok(match vectors {
        Vectors::Learned { .. } => None,
        Vectors::Text { path } => {
            let read = Embedding::read_glove(BufReader::new(open(path)?), MOST_WORDS);
            Some(read.map_err(|error| named(path, error))?)
        }
        Vectors::Half { path, words, width } => {
            let read = Embedding::read_half(open(words)?, open(path)?, *width);
            Some(read.map_err(|error| named(path, error))?)
        }
    })
}
