//! Networks and checkpoints as bytes: safetensors, with the settings as JSON in its metadata. Everything read is checked before
//! it is believed: the header's size, the type and shape of every array, and that every number is finite.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use efface::models::logistic::LogisticHead;
use efface::{
    Amend, LogisticModel, LogisticState, Ridge, RidgeModel, RidgeState, RowId, RowStore, RowView, Rows,
};
use safetensors::tensor::{Dtype, SafeTensors, View};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::embedding::Embedding;
use crate::error::{Error, Result};
use crate::head::{Head, HeadRecipe};
use crate::network::Network;
use crate::plan::EncoderSettings;
use crate::recipe::NetworkRecipe;
use crate::train::{Checkpoint, EpochReport, TrainSettings};

/// A header longer than this is not one of ours.
const LONGEST_HEADER: u64 = 16 << 20;
/// The key of the settings in the metadata.
const KEY: &str = "efface";
const FORMAT: u32 = 1;

fn damaged<T>(what: impl Into<String>) -> Result<T> {
    Err(Error::Damaged(what.into()))
}

/// One array on its way to a file.
struct Array {
    kind: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl View for &Array {
    fn dtype(&self) -> Dtype {
        self.kind
    }
    fn shape(&self) -> &[usize] {
        &self.shape
    }
    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.bytes)
    }
    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

#[derive(Default)]
struct Writer(Vec<(String, Array)>);

impl Writer {
    fn single(&mut self, name: impl Into<String>, shape: Vec<usize>, values: &[f32]) {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.0.push((name.into(), Array { kind: Dtype::F32, shape, bytes }));
    }

    fn double(&mut self, name: impl Into<String>, values: &[f64]) {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.0.push((name.into(), Array { kind: Dtype::F64, shape: vec![values.len()], bytes }));
    }

    fn counts(&mut self, name: impl Into<String>, values: &[u64]) {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.0.push((name.into(), Array { kind: Dtype::U64, shape: vec![values.len()], bytes }));
    }

    fn text(&mut self, name: impl Into<String>, text: String) {
        let bytes = text.into_bytes();
        self.0.push((name.into(), Array { kind: Dtype::U8, shape: vec![bytes.len()], bytes }));
    }

    fn finish(self, settings: &impl Serialize) -> Result<Vec<u8>> {
        let Ok(json) = serde_json::to_string(settings) else {
            return damaged("its settings cannot be written");
        };
        let metadata = HashMap::from([(KEY.to_string(), json)]);
        let arrays = self.0.iter().map(|(name, array)| (name.as_str(), array));
        safetensors::serialize(arrays, Some(metadata)).or_else(|error| damaged(error.to_string()))
    }
}

struct Reader<'a>(SafeTensors<'a>);

impl<'a> Reader<'a> {
    fn open<T: DeserializeOwned>(bytes: &'a [u8]) -> Result<(Self, T)> {
        let Some((length, _)) = bytes.split_first_chunk::<8>() else {
            return damaged("it is shorter than a header");
        };
        let length = u64::from_le_bytes(*length);
        if length > LONGEST_HEADER {
            return damaged(format!("its header claims {length} bytes; at most {LONGEST_HEADER} are read"));
        }
        let (_, header) = SafeTensors::read_metadata(bytes).or_else(|error| damaged(error.to_string()))?;
        let json = header.metadata().as_ref().and_then(|metadata| metadata.get(KEY));
        let Some(json) = json else { return damaged("it holds no network of this kind") };
        let settings =
            serde_json::from_str(json).or_else(|error| damaged(format!("its settings: {error}")))?;
        let tensors = SafeTensors::deserialize(bytes).or_else(|error| damaged(error.to_string()))?;
        Ok((Self(tensors), settings))
    }

    fn bytes(&self, name: &str, kind: Dtype, shape: Option<&[usize]>) -> Result<&'a [u8]> {
        let Ok(found) = self.0.tensor(name) else { return damaged(format!("{name} is missing")) };
        if found.dtype() != kind || shape.is_some_and(|shape| shape != found.shape()) {
            let (is, kind_found) = (found.shape(), found.dtype());
            let wanted = shape.map_or_else(|| "any shape".into(), |shape| format!("{shape:?}"));
            return damaged(format!("{name} is {kind_found:?} {is:?} where {kind:?} {wanted} was expected"));
        }
        Ok(found.data())
    }

    fn single(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let bytes = self.bytes(name, Dtype::F32, Some(shape))?;
        let values: Vec<f32> =
            bytes.as_chunks::<4>().0.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect();
        match values.iter().all(|value| value.is_finite()) {
            true => Ok(values),
            false => damaged(format!("{name} holds a number that is not finite")),
        }
    }

    fn double(&self, name: &str) -> Result<Vec<f64>> {
        let bytes = self.bytes(name, Dtype::F64, None)?;
        Ok(bytes.as_chunks::<8>().0.iter().map(|chunk| f64::from_le_bytes(*chunk)).collect())
    }

    fn counts(&self, name: &str) -> Result<Vec<u64>> {
        let bytes = self.bytes(name, Dtype::U64, None)?;
        Ok(bytes.as_chunks::<8>().0.iter().map(|chunk| u64::from_le_bytes(*chunk)).collect())
    }
}

/// The small half of a stored network.
#[derive(Serialize, Deserialize)]
struct NetworkFile {
    format: u32,
    encoder: EncoderSettings,
    training: TrainSettings,
    head_recipe: HeadRecipe,
    word_width: usize,
    words: usize,
    trained_words: bool,
    public_words: bool,
    classes: usize,
    steps: u64,
    max_tokens: usize,
    head: HeadFile,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(clippy::large_enum_variant, reason = "one of them lives for the length of a read")]
enum HeadFile {
    Ridge {
        settings: Ridge,
        rows: usize,
        outputs: usize,
        features: usize,
        drift: f64,
        b_drift: f64,
        targets: f64,
        at_optimum: bool,
        refactorisations: usize,
    },
    Classifier {
        head: LogisticHead,
        numbers: Vec<String>,
        counts: Vec<String>,
    },
}

/// The arrays of a ridge head, in the order of its state.
const RIDGE: [&str; 5] = ["origin", "inverse_scale", "theta", "a", "b"];

impl Network {
    /// The network as bytes, waiting changes of the head folded in first.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut writer = Writer::default();
        for (name, shape, values) in self.arrays() {
            writer.single(name, shape.to_vec(), values);
        }
        let embedding = self.embedding();
        writer.text("words", embedding.words().join("\n"));
        let rows = embedding.table().len() / embedding.width();
        writer.single("embedding.start", vec![rows, embedding.width()], embedding.table());
        let head = match &self.head {
            Head::Ridge(model) => {
                let mut model = model.clone();
                model.settle()?;
                let state = model.to_state()?;
                let arrays = [&state.origin, &state.inverse_scale, &state.theta, &state.a, &state.b];
                for (name, values) in RIDGE.iter().zip(arrays) {
                    writer.double(format!("ridge.{name}"), values);
                }
                writer.counts("ridge.support", &state.support);
                let RidgeState { settings, rows, outputs, features, drift, b_drift, targets, .. } = state;
                let (at_optimum, refactorisations) = (state.at_optimum, state.refactorisations);
                HeadFile::Ridge {
                    settings,
                    rows,
                    outputs,
                    features,
                    drift,
                    b_drift,
                    targets,
                    at_optimum,
                    refactorisations,
                }
            }
            Head::Classifier(model) => {
                let mut model = model.clone();
                model.settle()?;
                let LogisticState { head, numbers, counts } = model.to_state()?;
                numbers.iter().for_each(|(name, values)| writer.double(format!("classifier.{name}"), values));
                counts.iter().for_each(|(name, values)| writer.counts(format!("classifier.{name}"), values));
                let names = |name: &String| name.clone();
                HeadFile::Classifier {
                    head,
                    numbers: numbers.iter().map(|(name, _)| names(name)).collect(),
                    counts: counts.iter().map(|(name, _)| names(name)).collect(),
                }
            }
        };
        writer.finish(&NetworkFile {
            format: FORMAT,
            encoder: self.recipe.encoder,
            training: self.recipe.training,
            head_recipe: self.recipe.head,
            word_width: embedding.width(),
            words: embedding.words().len(),
            trained_words: embedding.trained,
            public_words: embedding.public,
            classes: self.plan.head.output,
            steps: self.steps,
            max_tokens: self.max_tokens,
            head,
        })
    }

    /// The network of some bytes. A ridge head in the rows form needs its rows: use the factor or inverse form to store it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (reader, file) = Reader::open::<NetworkFile>(bytes)?;
        if file.format != FORMAT {
            return damaged(format!("format {} where {FORMAT} is read", file.format));
        }
        if file.max_tokens == 0 || !(2..=1 << 20).contains(&file.classes) {
            return damaged("its number of words or classes makes no sense");
        }
        let Ok(words) = std::str::from_utf8(reader.bytes("words", Dtype::U8, None)?) else {
            return damaged("its words are not UTF-8");
        };
        let words: Vec<String> = words.split('\n').map(str::to_string).collect();
        let Some(ids) =
            words.len().checked_add(crate::embedding::FIRST_WORD).filter(|_| words.len() == file.words)
        else {
            return damaged(format!("{} words where {} were expected", words.len(), file.words));
        };
        let table = reader.single("embedding.start", &[ids, file.word_width])?;
        let first = crate::embedding::FIRST_WORD * file.word_width;
        let mut embedding = Embedding::new(words, table[first..].to_vec(), file.word_width)?;
        embedding.set_table(table)?;
        (embedding.trained, embedding.public) = (file.trained_words, file.public_words);
        file.training.check()?;
        let recipe = NetworkRecipe {
            embedding: Arc::new(embedding),
            encoder: file.encoder,
            training: file.training,
            head: file.head_recipe,
        };
        let plan = recipe.plan(file.classes)?;
        let mut parameters = Vec::new();
        for slot in plan.slots() {
            parameters.extend(reader.single(&slot.name, &slot.shape)?);
        }
        let head = read_head(&reader, file.head)?;
        let (found, expected) = (head.parameters().0, plan.settings.features());
        if found.nrows() != expected || found.ncols() != if file.classes == 2 { 1 } else { file.classes } {
            return damaged("its head does not fit its encoder");
        }
        Ok(Self {
            recipe,
            plan: Arc::new(plan),
            parameters: Arc::new(parameters),
            steps: file.steps,
            max_tokens: file.max_tokens,
            head,
        })
    }
}

fn read_head(reader: &Reader<'_>, file: HeadFile) -> Result<Head> {
    match file {
        HeadFile::Ridge {
            settings,
            rows,
            outputs,
            features,
            drift,
            b_drift,
            targets,
            at_optimum,
            refactorisations,
        } => {
            let mut arrays = Vec::new();
            for name in RIDGE {
                arrays.push(reader.double(&format!("ridge.{name}"))?);
            }
            let mut next = arrays.into_iter();
            let mut take = || next.next().unwrap_or_default();
            let state = RidgeState {
                settings,
                rows,
                outputs,
                features,
                origin: take(),
                inverse_scale: take(),
                theta: take(),
                a: take(),
                b: take(),
                support: reader.counts("ridge.support")?,
                drift,
                b_drift,
                targets,
                at_optimum,
                refactorisations,
            };
            Ok(Head::Ridge(RidgeModel::from_state(&state, &Elsewhere { rows, width: features, outputs })?))
        }
        HeadFile::Classifier { head, numbers, counts } => {
            let rows = Elsewhere { rows: head.rows, width: head.features, outputs: head.outputs };
            let mut state = LogisticState { head, numbers: Vec::new(), counts: Vec::new() };
            for name in numbers {
                let values = reader.double(&format!("classifier.{name}"))?;
                state.numbers.push((name, values));
            }
            for name in counts {
                let values = reader.counts(&format!("classifier.{name}"))?;
                state.counts.push((name, values));
            }
            Ok(Head::Classifier(LogisticModel::from_state(state, &rows)?))
        }
    }
}

/// The rows of a network that is read without them: their number is known and nothing else.
struct Elsewhere {
    rows: usize,
    width: usize,
    outputs: usize,
}

impl Elsewhere {
    fn refuse<T>(&self) -> efface::Result<T> {
        Err(efface::Error::Unsupported {
            method: "loading",
            reason: "the rows are not in the file, and this form of the head needs them; fit it in the factor form".into(),
        })
    }
}

impl RowStore for Elsewhere {
    fn len(&self) -> usize {
        self.rows
    }
    fn width(&self) -> usize {
        self.width
    }
    fn outputs(&self) -> usize {
        self.outputs
    }
    fn is_sparse(&self) -> bool {
        false
    }
    fn contains(&self, _id: RowId) -> efface::Result<bool> {
        self.refuse()
    }
    fn visit(&self, _ids: &[RowId], _see: &mut dyn FnMut(usize, RowView<'_>)) -> efface::Result<()> {
        self.refuse()
    }
    fn all(&self) -> efface::Result<Cow<'_, Rows>> {
        self.refuse()
    }
}

/// The small half of a stored checkpoint.
#[derive(Serialize, Deserialize)]
struct CheckpointFile {
    format: u32,
    settings: TrainSettings,
    step: u64,
    epoch: usize,
    batch: usize,
    best_epoch: Option<usize>,
    /// As bits, lest a digit be lost in print.
    loss: u64,
    correct: usize,
    seen: usize,
    total: usize,
}

/// An epoch as whole numbers: the bits of its figures, so that a resumed training compares with the very same ones.
fn write_epoch(report: &EpochReport) -> [u64; 7] {
    let (loss, accuracy) = report.validation.unwrap_or_default();
    [
        report.epoch as u64,
        report.loss.to_bits(),
        report.accuracy.to_bits(),
        report.validation.is_some() as u64,
        loss.to_bits(),
        accuracy.to_bits(),
        report.best as u64,
    ]
}

fn read_epoch(numbers: &[u64; 7]) -> EpochReport {
    let [epoch, loss, accuracy, judged, validation_loss, validation_accuracy, best] = *numbers;
    EpochReport {
        epoch: epoch as usize,
        loss: f64::from_bits(loss),
        accuracy: f64::from_bits(accuracy),
        validation: (judged == 1)
            .then(|| (f64::from_bits(validation_loss), f64::from_bits(validation_accuracy))),
        best: best == 1,
    }
}

impl Checkpoint {
    /// The checkpoint as bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut writer = Writer::default();
        let total = self.parameters.len();
        for (name, values) in
            [("parameters", &self.parameters), ("means", &self.means), ("squares", &self.squares)]
        {
            writer.single(name, vec![total], values);
        }
        if let Some((_, best)) = &self.best {
            writer.single("best", vec![total], best);
        }
        let history: Vec<u64> = self.history.iter().flat_map(write_epoch).collect();
        writer.counts("history", &history);
        writer.finish(&CheckpointFile {
            format: FORMAT,
            settings: self.settings,
            step: self.step,
            epoch: self.epoch,
            batch: self.batch,
            best_epoch: self.best_epoch(),
            loss: self.loss.to_bits(),
            correct: self.correct,
            seen: self.seen,
            total,
        })
    }

    /// The checkpoint of some bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (reader, file) = Reader::open::<CheckpointFile>(bytes)?;
        if file.format != FORMAT {
            return damaged(format!("format {} where {FORMAT} is read", file.format));
        }
        let array = |name: &str| reader.single(name, &[file.total]);
        let history = reader.counts("history")?;
        let (history, rest) = history.as_chunks::<7>();
        if !rest.is_empty() {
            return damaged("its history was cut");
        }
        let best = match file.best_epoch {
            Some(epoch) => Some((epoch, array("best")?)),
            None => None,
        };
        Ok(Self {
            settings: file.settings,
            step: file.step,
            epoch: file.epoch,
            batch: file.batch,
            history: history.iter().map(read_epoch).collect(),
            parameters: array("parameters")?,
            means: array("means")?,
            squares: array("squares")?,
            best,
            loss: f64::from_bits(file.loss),
            correct: file.correct,
            seen: file.seen,
        })
    }
}
