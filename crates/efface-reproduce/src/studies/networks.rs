//! Networks for tables 2 and 3: their texts, their training, and the folder in which trained ones
//! wait, so that an interrupted run does not train again. A training that was cut off goes on from
//! its last epoch.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use efface::{Classes, Features, Model, Predict, Recipe, Ridge, RowId, Rows};
use efface_nn::{
    Embedding, EncoderSettings, EpochReport, Network, NetworkRecipe, TrainSettings,
    TrainingCheckpoint, TrainingFlow, TrainingProgress, text_rows,
};

use super::StudyContext;
use crate::data::{AG_NEWS, BBC, DataSet, LabelledText, VECTOR_WIDTH, news};
use crate::draw::{shuffled, trial_seed};
use crate::error::{Error, Result};
use crate::plan::TrainingPlan;
use crate::watch::RunWatch;

/// The penalty of the heads.
pub(crate) const HEAD_LAMBDA: f64 = 1.0;
/// Generated articles get vectors of this width, which are trained with the network.
const RANDOM_WIDTH: usize = 24;
/// The articles that are kept for testing: one in five.
const TEST_SHARE: usize = 5;

/// The texts of one set, split, as rows of word ids.
pub(super) struct NetworkLab {
    pub(super) name: &'static str,
    pub(super) embedding: Arc<Embedding>,
    pub(super) classes: Classes,
    /// The texts that are learned, in the order of their row ids.
    pub(super) texts: Vec<LabelledText>,
    pub(super) rows: Rows,
    pub(super) test: Features,
    pub(super) answers: Vec<usize>,
    encoder: EncoderSettings,
    training: TrainingPlan,
}

/// The sets that networks are trained on: generated articles, or BBC news and, where asked for, AG
/// News.
pub(crate) fn sets(context: &StudyContext, second: bool) -> Vec<&'static str> {
    match (context.data.is_real(), second) {
        (false, _) => vec![GENERATED],
        (true, false) => vec![BBC.name],
        (true, true) => vec![BBC.name, AG_NEWS.name],
    }
}

/// What the report calls generated articles.
pub(crate) const GENERATED: &str = "generated news";

/// What the network of a set looks like, in words.
pub(crate) fn describe(set: &str, training: &TrainingPlan) -> String {
    if set == AG_NEWS.name {
        format!("six LSTM layers of {}", SIX_LAYERS.min(training.hidden))
    } else {
        format!("a bidirectional LSTM of {}", training.hidden)
    }
}

/// The state of each of the six layers.
const SIX_LAYERS: usize = 64;

impl NetworkLab {
    /// Reads and splits the texts of a set.
    pub(super) fn open(
        context: &StudyContext,
        name: &str,
        training: &TrainingPlan,
    ) -> Result<Self> {
        let set: &DataSet = if name == AG_NEWS.name { &AG_NEWS } else { &BBC };
        let texts = context.data.texts(set, || {
            news(training.articles, trial_seed(context.seed, 40, 0))
        })?;
        let name = if context.data.is_real() {
            set.name
        } else {
            GENERATED
        };
        let mut labels: Vec<String> = texts.iter().map(|text| text.label.clone()).collect();
        labels.sort();
        labels.dedup();
        let classes = Classes::new(labels.clone())?;
        let embedding = Arc::new(match context.data.vectors()? {
            Some([words, numbers]) => {
                let open = |path: &PathBuf| {
                    File::open(path).map_err(|cause| Error::file(path, "read", cause))
                };
                Embedding::read_half(open(&words)?, open(&numbers)?, VECTOR_WIDTH)?
            }
            None => {
                let words = Embedding::words_of(texts.iter().map(|text| text.text.as_str()), 5000)?;
                Embedding::random(words, RANDOM_WIDTH, trial_seed(context.seed, 41, 0))?
            }
        });
        let order = shuffled(texts.len(), trial_seed(context.seed, 42, 0));
        let (test, train) = order.split_at(texts.len() / TEST_SHARE);
        let class = |at: usize| labels.binary_search(&texts[at].label).unwrap_or(0);
        let mut targets = Vec::new();
        train
            .iter()
            .for_each(|&at| classes.encode(class(at), &mut targets));
        let ids = |part: &[usize]| {
            let words = part.iter().map(|&at| texts[at].text.as_str());
            Ok::<_, Error>(text_rows(&embedding, words, training.max_tokens)?.features)
        };
        let learned = ids(train)?;
        let test_rows = ids(test)?;
        let encoder = if set.name == AG_NEWS.name && context.data.is_real() {
            EncoderSettings::stacked(SIX_LAYERS.min(training.hidden), 6)
        } else {
            EncoderSettings::bilstm(training.hidden)
        };
        Ok(Self {
            name,
            rows: Rows::new(learned, targets, classes.outputs())?,
            test: test_rows,
            answers: test.iter().map(|&at| class(at)).collect(),
            texts: train.iter().map(|&at| texts[at].clone()).collect(),
            embedding,
            classes,
            encoder,
            training: training.clone(),
        })
    }

    /// The recipe of a network whose head reads `width` numbers.
    pub(super) fn recipe(&self, width: usize, seed: u64, threads: usize) -> NetworkRecipe {
        let TrainingPlan { epochs, .. } = self.training;
        NetworkRecipe {
            embedding: self.embedding.clone(),
            encoder: self.encoder.width(width),
            training: TrainSettings {
                epochs,
                seed,
                threads,
                patience: 4,
                ..TrainSettings::default()
            },
            head: Recipe::new(Ridge::new(HEAD_LAMBDA).threads(threads)),
        }
    }

    /// Further texts as rows behind the last id, with the labels of the texts they were made from.
    pub(super) fn more_rows(&self, texts: &[LabelledText]) -> Result<Rows> {
        let words = texts.iter().map(|text| text.text.as_str());
        let features = text_rows(&self.embedding, words, self.training.max_tokens)?.features;
        let mut targets = Vec::new();
        for text in texts {
            let class = self
                .classes
                .names()
                .iter()
                .position(|name| *name == text.label);
            self.classes.encode(class.unwrap_or(0), &mut targets);
        }
        let first = self.texts.len() as u64;
        let ids = (0..texts.len() as u64)
            .map(|at| RowId(first + at))
            .collect();
        Ok(Rows::with_ids(
            ids,
            features,
            targets,
            self.classes.outputs(),
        )?)
    }

    /// The share of test texts that a head gets right.
    pub(super) fn accuracy(&self, head: &Model, encoded: &Features) -> Result<f64> {
        let scores = head.predict(encoded)?;
        let mut line = vec![0.0; scores.ncols()];
        let right = self.answers.iter().enumerate().filter(|&(at, answer)| {
            (0..scores.ncols()).for_each(|c| line[c] = scores[(at, c)]);
            self.classes.decide(&line) == *answer
        });
        Ok(right.count() as f64 / self.answers.len().max(1) as f64)
    }
}

/// The trained network of a name from the cache, or trained now. The seconds are those of the whole
/// training, whenever it was.
pub(super) fn trained(
    cache: &Path,
    name: &str,
    recipe: &NetworkRecipe,
    rows: &Rows,
    watch: &mut dyn RunWatch,
) -> Result<(Network, f64)> {
    fs::create_dir_all(cache).map_err(|cause| Error::file(cache, "created", cause))?;
    let path = cache.join(format!("{name}.network"));
    let clock = cache.join(format!("{name}.seconds"));
    if let (Ok(bytes), Ok(text)) = (fs::read(&path), fs::read_to_string(&clock))
        && let Ok(seconds) = text.trim().parse()
    {
        return Ok((Network::from_bytes(&bytes)?, seconds));
    }
    let unfinished = cache.join(format!("{name}.checkpoint"));
    let before = fs::read_to_string(&clock)
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0.0);
    let mut saver = CheckpointSaver {
        path: &unfinished,
        clock: &clock,
        before,
        start: Instant::now(),
        epochs: recipe.training.epochs,
        watch,
        name,
    };
    let trained = match fs::read(&unfinished)
        .ok()
        .and_then(|bytes| TrainingCheckpoint::from_bytes(&bytes).ok())
    {
        Some(checkpoint) if checkpoint.settings == recipe.training => {
            recipe.continue_from(checkpoint, rows, &mut saver)?
        }
        _ => {
            saver.before = 0.0;
            recipe.train(rows, &mut saver)?
        }
    };
    let seconds = saver.before + saver.start.elapsed().as_secs_f64();
    let stopped = saver.watch.stop();
    if stopped {
        return Err(Error::Stopped);
    }
    write(&clock, seconds.to_string().as_bytes())?;
    write(&path, &trained.network.to_bytes()?)?;
    let _ = fs::remove_file(&unfinished);
    Ok((trained.network, seconds))
}

/// Keeps the state after every epoch.
struct CheckpointSaver<'a> {
    path: &'a Path,
    clock: &'a Path,
    /// Seconds of earlier sittings.
    before: f64,
    start: Instant,
    epochs: usize,
    watch: &'a mut dyn RunWatch,
    name: &'a str,
}

impl TrainingProgress for CheckpointSaver<'_> {
    fn epoch(&mut self, report: &EpochReport, checkpoint: &TrainingCheckpoint) -> TrainingFlow {
        // A checkpoint that cannot be written costs time after an interruption and nothing else.
        if let Ok(bytes) = checkpoint.to_bytes()
            && write(self.path, &bytes).is_ok()
        {
            let seconds = self.before + self.start.elapsed().as_secs_f64();
            let _ = write(self.clock, seconds.to_string().as_bytes());
        }
        let hits = report.validation.map_or(report.accuracy, |(_, hits)| hits);
        let Self { name, epochs, .. } = self;
        self.watch.say(&format!(
            "{name}: epoch {} of {epochs}, {:.1} % right",
            report.epoch,
            hits * 100.0
        ));
        if self.watch.stop() {
            TrainingFlow::Stop
        } else {
            TrainingFlow::Continue
        }
    }
}

/// A file appears under its name only when it is complete.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = |cause| Error::file(path, "written", cause);
    let temporary = path.with_extension("part");
    let mut file = File::create(&temporary).map_err(failed)?;
    file.write_all(bytes)
        .and_then(|()| file.sync_all())
        .map_err(failed)?;
    fs::rename(&temporary, path).map_err(failed)
}

/// A file name for the network of a set.
pub(super) fn cache_name(set: &str, width: usize) -> String {
    format!("{}-d{width}", set.to_lowercase().replace(' ', "-"))
}
