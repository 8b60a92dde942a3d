//! A network, or a part of one, as bytes. The parts are: words with the vectors to start from, the
//! encoder's arrays, the head.

use std::sync::Arc;

use efface::models::RowsBeside;
use efface::{Amend, Family, Model, ModelState, Recipe, StateArray};
use safetensors::tensor::Dtype;
use serde::{Deserialize, Serialize};

use super::{FORMAT, TensorReader, TensorWriter, damaged};
use crate::backbone::Backbone;
use crate::embedding::{Embedding, FIRST_WORD};
use crate::encoder_state::EncoderState;
use crate::error::Result;
use crate::head::head_recipe;
use crate::network::Network;
use crate::plan::EncoderSettings;
use crate::recipe::NetworkRecipe;
use crate::train::TrainSettings;

/// The beginning of the names of the arrays of the linear head that an encoder was trained with.
const TRAINING_HEAD: &str = "head.";

/// The small half of a stored network.
#[derive(Serialize, Deserialize)]
struct NetworkFile {
    format: u32,
    encoder: EncoderSettings,
    training: TrainSettings,
    head_recipe: Recipe,
    word_width: usize,
    words: usize,
    trained_words: bool,
    public_words: bool,
    classes: usize,
    steps: u64,
    #[serde(default)]
    state: EncoderState,
    max_tokens: usize,
    /// Whether words and vectors are in the file. Otherwise the reader supplies them.
    vectors: bool,
    /// Whether the encoder's arrays are.
    arrays: bool,
    head: Option<HeadFile>,
}

/// The head's state: where its parts lie in the file.
#[derive(Serialize, Deserialize)]
struct HeadFile {
    family: Family,
    numbers: Vec<String>,
    counts: Vec<String>,
}

/// What some bytes held.
pub(crate) struct StoredNetwork {
    pub(crate) recipe: NetworkRecipe,
    pub(crate) max_tokens: usize,
    pub(crate) backbone: Option<Backbone>,
    pub(crate) head: Option<Model>,
}

/// Writes the parts that are given. Waiting changes of the head are folded in first.
pub(crate) fn write(
    recipe: &NetworkRecipe,
    max_tokens: usize,
    vectors: bool,
    backbone: Option<&Backbone>,
    head: Option<&Model>,
) -> Result<Vec<u8>> {
    let mut writer = TensorWriter::default();
    if let Some(backbone) = backbone {
        for (name, shape, values) in backbone.arrays() {
            if name.starts_with(TRAINING_HEAD) && !backbone.keeps_training_head() {
                writer.single(name, shape.to_vec(), &vec![0.0; values.len()]);
            } else {
                writer.single(name, shape.to_vec(), values);
            }
        }
    }
    let embedding = &recipe.embedding;
    if vectors {
        writer.text("words", embedding.words().join("\n"));
        let rows = embedding.table().len() / embedding.width();
        writer.single(
            "embedding.start",
            vec![rows, embedding.width()],
            embedding.table(),
        );
    }
    let head = head.map(|head| write_head(head, &mut writer)).transpose()?;
    writer.finish(&NetworkFile {
        format: FORMAT,
        encoder: recipe.encoder,
        training: recipe.training,
        head_recipe: recipe.head.clone(),
        word_width: embedding.width(),
        words: embedding.words().len(),
        trained_words: embedding.trained,
        public_words: embedding.public,
        classes: backbone.map_or(0, Backbone::classes),
        steps: backbone.map_or(0, Backbone::steps),
        state: backbone.map_or_else(EncoderState::default, Backbone::state),
        max_tokens,
        vectors,
        arrays: backbone.is_some(),
        head,
    })
}

/// Reads what is there. `known` are the words and vectors of a file that was written without them.
pub(crate) fn read(bytes: &[u8], known: Option<&Arc<Embedding>>) -> Result<StoredNetwork> {
    let (reader, file) = TensorReader::open::<NetworkFile>(bytes)?;
    if file.format != FORMAT {
        return damaged(format!("format {} where {FORMAT} is read", file.format));
    }
    if file.max_tokens == 0 || (file.arrays && !(2..=1 << 20).contains(&file.classes)) {
        return damaged("its number of words or classes makes no sense");
    }
    let embedding = match (file.vectors, known) {
        (true, _) => Arc::new(read_words(&reader, &file)?),
        (false, Some(known))
            if known.words().len() == file.words && known.width() == file.word_width =>
        {
            known.clone()
        }
        (false, _) => return damaged("its words are not those that it was written with"),
    };
    file.training.check()?;
    let recipe = NetworkRecipe {
        embedding,
        encoder: file.encoder,
        training: file.training,
        head: file.head_recipe,
    };
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
        Some(Backbone {
            recipe,
            plan,
            parameters,
            steps: file.steps,
            state: file.state,
            max_tokens,
        })
    } else {
        None
    };
    let head = file
        .head
        .map(|head| read_head(&reader, head, &recipe.head))
        .transpose()?;
    Ok(StoredNetwork {
        recipe,
        max_tokens: file.max_tokens,
        backbone,
        head,
    })
}

fn read_words(reader: &TensorReader<'_>, file: &NetworkFile) -> Result<Embedding> {
    let Ok(words) = std::str::from_utf8(reader.bytes("words", Dtype::U8, None)?) else {
        return damaged("its words are not UTF-8");
    };
    let words: Vec<String> = words.split('\n').map(str::to_string).collect();
    let Some(ids) = words
        .len()
        .checked_add(FIRST_WORD)
        .filter(|_| words.len() == file.words)
    else {
        return damaged(format!(
            "{} words where {} were expected",
            words.len(),
            file.words
        ));
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
        write(
            self.recipe(),
            self.max_tokens(),
            true,
            Some(&self.backbone),
            Some(&self.head),
        )
    }

    /// The network of some bytes. A ridge head in the rows form, which keeps rows, comes back in
    /// the factor form.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        match read(bytes, None)? {
            StoredNetwork {
                backbone: Some(backbone),
                head: Some(head),
                ..
            } => backbone.with_head(head),
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
    /// Encoder and head for other programs, as safetensors: `embedding` (the vectors in use) and
    /// `words` (one a line, of the ids from 2), the arrays of every layer, and the head as
    /// `coefficients` (features × outputs) and `intercept` in f64.
    pub fn export(
        &self,
        coefficients: &[Vec<f64>],
        intercept: &[f64],
        about: &serde_json::Value,
    ) -> Result<Vec<u8>> {
        let mut writer = TensorWriter::default();
        let embedding = self.embedding();
        let rows = self.vectors().len() / embedding.width();
        writer.single("embedding", vec![rows, embedding.width()], self.vectors());
        writer.text("words", embedding.words().join("\n"));
        for (name, shape, values) in self.arrays() {
            // The head of the training served the training alone.
            if name != "embedding" && !name.starts_with(TRAINING_HEAD) {
                writer.single(name, shape.to_vec(), values);
            }
        }
        let flat: Vec<f64> = coefficients.iter().flatten().copied().collect();
        writer.table(
            "coefficients",
            vec![coefficients.len(), intercept.len()],
            &flat,
        );
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

/// Writes the state of a head, waiting changes folded in first.
fn write_head(head: &Model, writer: &mut TensorWriter) -> Result<HeadFile> {
    let mut settled = head.clone();
    settled.settle()?;
    let state = settled.to_state()?;
    let mut file = HeadFile {
        family: state.family,
        numbers: Vec::new(),
        counts: Vec::new(),
    };
    writer.bytes("head.facts", state.head);
    for (name, array) in state.arrays {
        match array {
            StateArray::Numbers(values) => {
                writer.double(format!("head.{name}"), &values);
                file.numbers.push(name);
            }
            StateArray::Counts(values) => {
                writer.counts(format!("head.{name}"), &values);
                file.counts.push(name);
            }
        }
    }
    Ok(file)
}

fn read_head(reader: &TensorReader<'_>, file: HeadFile, recipe: &Recipe) -> Result<Model> {
    let head = reader.bytes("head.facts", Dtype::U8, None)?.to_vec();
    let mut state = ModelState {
        family: file.family,
        head,
        arrays: Vec::new(),
    };
    for name in file.numbers {
        let values = reader.double(&format!("head.{name}"))?;
        state.arrays.push((name, StateArray::Numbers(values)));
    }
    for name in file.counts {
        let values = reader.counts(&format!("head.{name}"))?;
        state.arrays.push((name, StateArray::Counts(values)));
    }
    // The family tells whether the head was fitted for two classes or for more.
    let outputs = if file.family == Family::Softmax { 2 } else { 1 };
    Ok(head_recipe(recipe, outputs)?.restore(state, RowsBeside::None)?)
}
