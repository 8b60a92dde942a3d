//! A frozen pretrained sentence encoder: all-MiniLM-L6-v2, or any BERT of its kind, from a folder
//! as sentence-transformers writes it: `model.safetensors`, `tokenizer.json`, `config.json`,
//! `modules.json` and `1_Pooling/config.json`.
//!
//! The forward pass is written here, in f32 and for inference only. The tokens of a batch are
//! packed one after another without padding: the products with weights do not care where a sentence
//! ends, and attention runs sentence by sentence. A text becomes the mean of its tokens' vectors,
//! scaled to length 1 if `modules.json` lists that. Other poolings are refused.
//!
//! The weights are public and no row of the user's had a part in them. A head fitted on these
//! features is therefore all that there is to forget from.

mod config;
mod error;
mod forward;
mod kernels;
mod modules;
mod tokens;
mod weights;

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use efface::Dense;
use sha2::{Digest, Sha256};

pub use config::MiniLmConfig;
pub use error::{MiniLmError, MiniLmResult};

use crate::device::{DeviceBert, NetworkDevice};
use crate::onnx;
use forward::EncodingBuffers;
use modules::SentenceModules;
use tokens::WordPieceTokenizer;
use weights::MiniLmWeights;

/// Tokens read of a text unless told otherwise: what the encoder was tuned with.
const MAX_TOKENS: usize = 256;
/// Tokens of one batch. Enough for the products to run at full speed, few enough for the
/// activations to stay in cache.
const BATCH_TOKENS: usize = 512;
/// The largest files read. BERT-large takes 1.3 GB; whatever is larger than this is another model.
const LARGEST_WEIGHTS: u64 = 2 << 30;
const LARGEST_JSON: u64 = 64 << 20;

/// The encoder, ready to turn texts into rows of [`width`](Self::width) numbers.
#[derive(Debug)]
pub struct MiniLm {
    config: MiniLmConfig,
    tokenizer: WordPieceTokenizer,
    weights: MiniLmWeights,
    modules: SentenceModules,
    fingerprint: String,
    max_tokens: usize,
    threads: usize,
    device: Option<Box<dyn DeviceBert>>,
}

impl MiniLm {
    /// Reads the encoder from a folder.
    pub fn open(folder: &Path) -> MiniLmResult<Self> {
        let config = read(folder, "config.json", LARGEST_JSON)?;
        let tokenizer = read(folder, "tokenizer.json", LARGEST_JSON)?;
        let weights = read(folder, "model.safetensors", LARGEST_WEIGHTS)?;
        let modules = read(folder, modules::MODULES, LARGEST_JSON)?;
        let pooling = read(folder, modules::POOLING, LARGEST_JSON)?;
        let modules = SentenceModules::parse(&modules, &pooling)?;
        let texts = read_if_there(folder, modules::TEXTS)?;
        let prompts = read_if_there(folder, modules::PROMPTS)?;
        modules::check_texts(texts.as_deref(), prompts.as_deref())?;
        Self::with_modules(&config, &tokenizer, &weights, modules)
    }

    /// Reads the encoder from the contents of its three large files; texts become means of length
    /// 1, as those of all-MiniLM-L6-v2 do.
    pub fn from_bytes(config: &[u8], tokenizer: &[u8], weights: &[u8]) -> MiniLmResult<Self> {
        let modules = SentenceModules { unit_length: true };
        Self::with_modules(config, tokenizer, weights, modules)
    }

    fn with_modules(
        config: &[u8],
        tokenizer: &[u8],
        weights: &[u8],
        modules: SentenceModules,
    ) -> MiniLmResult<Self> {
        let config = MiniLmConfig::parse(config)?;
        let fingerprint = fingerprint(weights, tokenizer, &config, modules)?;
        let tokenizer = WordPieceTokenizer::parse(tokenizer, config.vocab_size)?;
        let weights = MiniLmWeights::read(weights, &config)?;
        let max_tokens = MAX_TOKENS.min(config.max_position_embeddings);
        Ok(Self {
            config,
            tokenizer,
            weights,
            modules,
            fingerprint,
            max_tokens,
            threads: 1,
            device: None,
        })
    }

    /// How many threads encode, 1 at first. The result does not depend on it.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// How many tokens of a text are read, 256 at first; the two that frame a text count.
    pub fn with_max_tokens(mut self, max_tokens: usize) -> MiniLmResult<Self> {
        let most = self.config.max_position_embeddings;
        if !(3..=most).contains(&max_tokens) {
            return Err(MiniLmError::MaxTokens {
                found: max_tokens,
                most,
            });
        }
        self.max_tokens = max_tokens;
        Ok(self)
    }

    /// Has a device encode, if it has room for the weights and for texts of as many tokens as are
    /// read now. Its sums round otherwise: a text's numbers differ in their last digits from those
    /// that the processor gives.
    ///
    /// Devices give vectors of length 1. The processor encodes where the folder asks for others.
    pub fn with_device(mut self, device: &dyn NetworkDevice) -> MiniLmResult<Self> {
        if self.modules.unit_length {
            self.device = device
                .bert(&self.to_onnx(), self.max_tokens)
                .map_err(device_fault)?;
        }
        Ok(self)
    }

    /// Whether a device encodes.
    pub fn is_on_device(&self) -> bool {
        self.device.is_some()
    }

    /// How many tokens of a text are read. Other features come of another number, so a model must
    /// remember it.
    pub fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    /// Numbers a text becomes.
    pub fn width(&self) -> usize {
        self.config.hidden_size
    }

    /// The sizes of the network.
    pub fn config(&self) -> &MiniLmConfig {
        &self.config
    }

    /// SHA-256, in hexadecimal, of the weights, the tokenizer, the settings of the network and the
    /// steps after it. Two encoders of one fingerprint give the same features, so a model can
    /// refuse any other.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The numbers that stand for a text's tokens, at most [`max_tokens`](Self::max_tokens) of
    /// them.
    pub fn tokenize(&self, text: &str) -> Vec<u32> {
        self.tokenizer.encode(text, self.max_tokens)
    }

    /// The weights as the ONNX writer wants them.
    pub fn to_onnx(&self) -> onnx::OnnxBert<'_> {
        self.weights.to_onnx(&self.config, self.modules.unit_length)
    }

    /// Encodes texts, a row each. `progress` hears how many are done, from the calling thread.
    pub fn encode(&self, texts: &[&str], progress: &dyn Fn(usize)) -> MiniLmResult<Dense<f32>> {
        let tokens: Vec<Vec<u32>> = texts.iter().map(|text| self.tokenize(text)).collect();
        self.encode_tokens(&tokens, progress)
    }

    /// Encodes texts that are tokens already, as [`tokenize`](Self::tokenize) gives them. Refuses
    /// tokens that the encoder does not know, and texts of more tokens than it reads.
    pub fn encode_tokens(
        &self,
        tokens: &[Vec<u32>],
        progress: &dyn Fn(usize),
    ) -> MiniLmResult<Dense<f32>> {
        let known = self.config.vocab_size;
        for (text, tokens) in tokens.iter().enumerate() {
            if tokens.is_empty()
                || tokens.len() > self.max_tokens
                || tokens.iter().any(|&token| token as usize >= known)
            {
                return Err(MiniLmError::Tokens {
                    text,
                    known,
                    most: self.max_tokens,
                });
            }
        }
        let batches = batches(
            tokens,
            self.device
                .as_ref()
                .map_or(BATCH_TOKENS, |device| device.batch_tokens()),
        );
        let mut rows = vec![0.0f32; tokens.len() * self.width()];
        let mut done = 0;
        let mut keep = |batch: &[usize], out: &[f32]| {
            for (&text, row) in batch.iter().zip(out.chunks_exact(self.width())) {
                rows[text * self.width()..][..self.width()].copy_from_slice(row);
            }
            done += batch.len();
            progress(done);
        };
        let threads = self.threads.min(batches.len());
        if let Some(device) = &self.device {
            for batch in &batches {
                let texts: Vec<&[u32]> =
                    batch.iter().map(|&text| tokens[text].as_slice()).collect();
                keep(batch, &device.encode(&texts).map_err(device_fault)?);
            }
        } else if threads <= 1 {
            let mut scratch = EncodingBuffers::default();
            for batch in &batches {
                keep(batch, self.encode_batch(tokens, batch, &mut scratch));
            }
        } else {
            let next = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                let (sender, receiver) = mpsc::channel();
                for _ in 0..threads {
                    let sender = sender.clone();
                    let next = &next;
                    let batches = &batches;
                    scope.spawn(move || {
                        let mut scratch = EncodingBuffers::default();
                        while let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
                            let out = self.encode_batch(tokens, batch, &mut scratch).to_vec();
                            // Sending fails only if the receiving thread has panicked; then there
                            // is nothing to report to.
                            if sender.send((batch, out)).is_err() {
                                return;
                            }
                        }
                    });
                }
                drop(sender);
                receiver.iter().for_each(|(batch, out)| keep(batch, &out));
            });
        }
        if let Some(at) = rows.iter().position(|value| !value.is_finite()) {
            return Err(MiniLmError::Overflow {
                text: at / self.width(),
            });
        }
        Ok(Dense::new(rows, self.width())?)
    }

    fn encode_batch<'s>(
        &self,
        tokens: &[Vec<u32>],
        batch: &[usize],
        scratch: &'s mut EncodingBuffers,
    ) -> &'s [f32] {
        let texts: Vec<&[u32]> = batch.iter().map(|&text| tokens[text].as_slice()).collect();
        let unit_length = self.modules.unit_length;
        forward::run(&self.config, &self.weights, unit_length, &texts, scratch)
    }
}

fn device_fault(error: crate::Error) -> MiniLmError {
    MiniLmError::Rows(error.into())
}

/// Groups texts, longest first, into batches of about `size` tokens. The long ones come first so
/// that threads end together; the grouping depends on the texts alone, so that the number of
/// threads cannot change a result.
fn batches(tokens: &[Vec<u32>], size: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..tokens.len()).collect();
    order.sort_by_key(|&text| std::cmp::Reverse(tokens[text].len()));
    let mut batches: Vec<Vec<usize>> = Vec::new();
    let mut room = 0;
    for text in order {
        let length = tokens[text].len();
        match batches.last_mut() {
            Some(batch) if length <= room => batch.push(text),
            _ => {
                room = size.max(length);
                batches.push(vec![text]);
            }
        }
        room -= length;
    }
    batches
}

fn fingerprint(
    weights: &[u8],
    tokenizer: &[u8],
    config: &MiniLmConfig,
    modules: SentenceModules,
) -> MiniLmResult<String> {
    // The parsed settings and not their bytes: other fields of config.json change no output.
    let settings = serde_json::to_vec(&(config, modules)).map_err(|source| MiniLmError::Json {
        file: "config.json",
        source,
    })?;
    let mut hash = Sha256::new();
    for part in [weights, tokenizer, &settings] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    Ok(hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

/// Reads a file that not every folder has.
fn read_if_there(folder: &Path, name: &'static str) -> MiniLmResult<Option<Vec<u8>>> {
    match read(folder, name, LARGEST_JSON) {
        Err(MiniLmError::Read { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// Reads one file of the folder, never more than `most` bytes of it.
fn read(folder: &Path, name: &'static str, most: u64) -> MiniLmResult<Vec<u8>> {
    let failed = |source| MiniLmError::Read {
        file: name,
        folder: folder.to_owned(),
        source,
    };
    let file = File::open(folder.join(name)).map_err(failed)?;
    let mut bytes = Vec::new();
    // The length that a file claims may be wrong or grow, so the reading itself is limited too.
    let claimed = file.metadata().map_err(failed)?.len();
    if claimed > most {
        return Err(MiniLmError::TooLarge { file: name, most });
    }
    bytes.reserve_exact(claimed as usize + 1);
    file.take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > most {
        return Err(MiniLmError::TooLarge { file: name, most });
    }
    Ok(bytes)
}
