//! A network, or a part of one, as bytes. The parts are: words with the vectors to start from, the encoder's arrays, the head.

use std::borrow::Cow;
use std::sync::Arc;

use efface::models::logistic::LogisticHead;
use efface::{
    Amend, LogisticModel, LogisticState, Ridge, RidgeModel, RidgeState, RowId, RowStore, RowView, Rows,
    SumsAccuracy,
};
use safetensors::tensor::Dtype;
use serde::{Deserialize, Serialize};

use super::{FORMAT, Reader, Writer, damaged};
use crate::backbone::Backbone;
use crate::embedding::{Embedding, FIRST_WORD};
use crate::error::Result;
use crate::head::{Head, HeadRecipe};
use crate::network::Network;
use crate::plan::EncoderSettings;
use crate::recipe::NetworkRecipe;
use crate::train::TrainSettings;

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
    /// Whether words and vectors are in the file. Otherwise the reader supplies them.
    vectors: bool,
    /// Whether the encoder's arrays are.
    arrays: bool,
    head: Option<HeadFile>,
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
        accuracy: SumsAccuracy,
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
const RIDGE: [&str; 10] =
    ["origin", "inverse_scale", "theta", "a", "a_low", "b", "spread", "anchor", "gradient", "gradient_low"];

/// What some bytes held.
pub(crate) struct Stored {
    pub(crate) recipe: NetworkRecipe,
    pub(crate) max_tokens: usize,
    pub(crate) backbone: Option<Backbone>,
    pub(crate) head: Option<Head>,
}

/// Writes the parts that are given. Waiting changes of the head are folded in first.
pub(crate) fn write(
    recipe: &NetworkRecipe,
    max_tokens: usize,
    vectors: bool,
    backbone: Option<&Backbone>,
    head: Option<&Head>,
) -> Result<Vec<u8>> {
    let mut writer = Writer::default();
    for (name, shape, values) in backbone.iter().flat_map(|backbone| backbone.arrays()) {
        writer.single(name, shape.to_vec(), values);
    }
    let embedding = &recipe.embedding;
    if vectors {
        writer.text("words", embedding.words().join("\n"));
        let rows = embedding.table().len() / embedding.width();
        writer.single("embedding.start", vec![rows, embedding.width()], embedding.table());
    }
    let head = head.map(|head| write_head(head, &mut writer)).transpose()?;
    writer.finish(&NetworkFile {
        format: FORMAT,
        encoder: recipe.encoder,
        training: recipe.training,
        head_recipe: recipe.head,
        word_width: embedding.width(),
        words: embedding.words().len(),
        trained_words: embedding.trained,
        public_words: embedding.public,
        classes: backbone.map_or(0, Backbone::classes),
        steps: backbone.map_or(0, Backbone::steps),
        max_tokens,
        vectors,
        arrays: backbone.is_some(),
        head,
    })
}

/// Reads what is there. `known` are the words and vectors of a file that was written without them.
pub(crate) fn read(bytes: &[u8], known: Option<&Arc<Embedding>>) -> Result<Stored> {
    let (reader, file) = Reader::open::<NetworkFile>(bytes)?;
    if file.format != FORMAT {
        return damaged(format!("format {} where {FORMAT} is read", file.format));
    }
    if file.max_tokens == 0 || (file.arrays && !(2..=1 << 20).contains(&file.classes)) {
        return damaged("its number of words or classes makes no sense");
    }
    let embedding = match (file.vectors, known) {
        (true, _) => Arc::new(read_words(&reader, &file)?),
        (false, Some(known)) if known.words().len() == file.words && known.width() == file.word_width => {
            known.clone()
        }
        (false, _) => return damaged("its words are not those that it was written with"),
    };
    file.training.check()?;
    let recipe =
        NetworkRecipe { embedding, encoder: file.encoder, training: file.training, head: file.head_recipe };
    let backbone = if file.arrays {
        let plan = recipe.plan(file.classes)?;
        let mut parameters = Vec::new();
        for slot in plan.slots() {
            parameters.extend(reader.single(&slot.name, &slot.shape)?);
        }
        let recipe = recipe.clone();
        let max_tokens = file.max_tokens;
        let plan = Arc::new(plan);
        let parameters = Arc::new(parameters);
        Some(Backbone { recipe, plan, parameters, steps: file.steps, max_tokens })
    } else {
        None
    };
    let head = file.head.map(|head| read_head(&reader, head)).transpose()?;
    Ok(Stored { recipe, max_tokens: file.max_tokens, backbone, head })
}

fn read_words(reader: &Reader<'_>, file: &NetworkFile) -> Result<Embedding> {
    let Ok(words) = std::str::from_utf8(reader.bytes("words", Dtype::U8, None)?) else {
        return damaged("its words are not UTF-8");
    };
    let words: Vec<String> = words.split('\n').map(str::to_string).collect();
    let Some(ids) = words.len().checked_add(FIRST_WORD).filter(|_| words.len() == file.words) else {
        return damaged(format!("{} words where {} were expected", words.len(), file.words));
    };
    let table = reader.single("embedding.start", &[ids, file.word_width])?;
    let first = FIRST_WORD * file.word_width;
    let mut embedding = Embedding::new(words, table[first..].to_vec(), file.word_width)?;
    embedding.set_table(table)?;
    (embedding.trained, embedding.public) = (file.trained_words, file.public_words);
    Ok(embedding)
}

impl Network {
    /// The network as bytes, waiting changes of the head folded in first.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        write(self.recipe(), self.max_tokens(), true, Some(&self.backbone), Some(&self.head))
    }

    /// The network of some bytes. A ridge head in the rows form needs its rows: use the factor or inverse form to store it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        match read(bytes, None)? {
            Stored { backbone: Some(backbone), head: Some(head), .. } => backbone.with_head(head),
            _ => damaged("it holds a part of a network only"),
        }
    }
}

impl Backbone {
    /// The encoder without its head, as bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        write(&self.recipe, self.max_tokens, true, Some(self), None)
    }

    /// The encoder of some bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        match read(bytes, None)?.backbone {
            Some(backbone) => Ok(backbone),
            None => damaged("it holds a recipe and no encoder"),
        }
    }
}

/// The settings beside an export.
#[derive(Serialize)]
struct ExportFile<'a> {
    #[serde(flatten)]
    about: &'a serde_json::Value,
    encoder: EncoderSettings,
    max_tokens: usize,
    /// What the ids before the words stand for.
    first_ids: [&'static str; FIRST_WORD],
}

impl Backbone {
    /// Encoder and head for other programs, as safetensors: `embedding` (the vectors in use) and `words` (one a line, of the
    /// ids from 2), the arrays of every layer, and the head as `coefficients` (features × outputs) and `intercept` in f64.
    pub fn export(
        &self,
        coefficients: &[Vec<f64>],
        intercept: &[f64],
        about: &serde_json::Value,
    ) -> Result<Vec<u8>> {
        let mut writer = Writer::default();
        let embedding = self.embedding();
        let rows = self.vectors().len() / embedding.width();
        writer.single("embedding", vec![rows, embedding.width()], self.vectors());
        writer.text("words", embedding.words().join("\n"));
        for (name, shape, values) in self.arrays() {
            // The head of the training served the training alone.
            if name != "embedding" && !name.starts_with("head.") {
                writer.single(name, shape.to_vec(), values);
            }
        }
        let flat: Vec<f64> = coefficients.iter().flatten().copied().collect();
        writer.table("coefficients", vec![coefficients.len(), intercept.len()], &flat);
        writer.double("intercept", intercept);
        writer.finish(&ExportFile {
            about,
            encoder: self.recipe.encoder,
            max_tokens: self.max_tokens,
            first_ids: ["absent", "unknown"],
        })
    }
}

impl NetworkRecipe {
    /// The recipe as bytes, for networks that read so many words of a text.
    pub fn to_bytes(&self, max_tokens: usize) -> Result<Vec<u8>> {
        write(self, max_tokens, true, None, None)
    }

    /// The recipe of some bytes, and how many words of a text its networks read.
    pub fn from_bytes(bytes: &[u8]) -> Result<(Self, usize)> {
        let found = read(bytes, None)?;
        Ok((found.recipe, found.max_tokens))
    }
}

fn write_head(head: &Head, writer: &mut Writer) -> Result<HeadFile> {
    Ok(match head {
        Head::Ridge(model) => {
            let mut model = model.clone();
            model.settle()?;
            let state = model.to_state()?;
            let arrays = [
                &state.origin,
                &state.inverse_scale,
                &state.theta,
                &state.a,
                &state.a_low,
                &state.b,
                &state.spread,
                &state.anchor,
                &state.gradient,
                &state.gradient_low,
            ];
            for (name, values) in RIDGE.iter().zip(arrays) {
                writer.double(format!("ridge.{name}"), values);
            }
            writer.counts("ridge.support", &state.support);
            let RidgeState { settings, rows, outputs, features, accuracy, .. } = state;
            let at_optimum = state.at_optimum;
            let refactorisations = state.refactorisations;
            HeadFile::Ridge { settings, rows, outputs, features, accuracy, at_optimum, refactorisations }
        }
        Head::Classifier(model) => {
            let mut model = model.clone();
            model.settle()?;
            let LogisticState { head, numbers, counts } = model.to_state()?;
            numbers.iter().for_each(|(name, values)| writer.double(format!("classifier.{name}"), values));
            counts.iter().for_each(|(name, values)| writer.counts(format!("classifier.{name}"), values));
            HeadFile::Classifier {
                head,
                numbers: numbers.into_iter().map(|(name, _)| name).collect(),
                counts: counts.into_iter().map(|(name, _)| name).collect(),
            }
        }
    })
}

fn read_head(reader: &Reader<'_>, file: HeadFile) -> Result<Head> {
    match file {
        HeadFile::Ridge { settings, rows, outputs, features, accuracy, at_optimum, refactorisations } => {
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
                a_low: take(),
                b: take(),
                spread: take(),
                anchor: take(),
                gradient: take(),
                gradient_low: take(),
                support: reader.counts("ridge.support")?,
                accuracy,
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
