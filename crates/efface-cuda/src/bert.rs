//! A pretrained encoder on the card. The tokens of a batch lie one after another without padding;
//! products serve all of them at once, and attention keeps its scores to itself.

use std::sync::Mutex;

use efface_nn::onnx::{OnnxBert, OnnxLinear, OnnxNorm};
use efface_nn::{DeviceBert, Result};

use crate::arena::{Arena, Dealer};
use crate::card::{Card, size};
use crate::error::CudaError;
use crate::kernels::{Argument, BERT, BLOCK, Kernels};
use crate::network::{count, fault};
use crate::products::Factor;

/// Tokens that are encoded at once, unless one text has more.
const BATCH_TOKENS: usize = 1 << 15;
/// Threads of a block of queries; `QUERIES` in the source.
const QUERIES: usize = 128;
/// The widest attention head whose numbers a thread can hold.
pub(crate) const WIDEST_HEAD: usize = 128;

/// A linear map, [inputs, outputs] row after row: a column-major matrix of outputs × inputs.
#[derive(Debug)]
struct LinearAt {
    weight: u64,
    bias: u64,
    inputs: usize,
    outputs: usize,
}

#[derive(Debug)]
struct NormAt {
    scale: u64,
    shift: u64,
    epsilon: f32,
}

#[derive(Debug)]
struct LayerAt {
    query_key_value: LinearAt,
    attention: LinearAt,
    attention_norm: NormAt,
    widen: LinearAt,
    narrow: LinearAt,
    norm: NormAt,
}

/// What lies where, and the memory of a batch.
#[derive(Debug)]
pub(crate) struct CudaBert {
    card: Card,
    kernels: Kernels,
    words: u64,
    positions: u64,
    norm: NormAt,
    layers: Vec<LayerAt>,
    hidden: usize,
    heads: usize,
    batch_tokens: usize,
    /// All weights; held for as long as the places above are used.
    _weights: Arena,
    scratch: Mutex<(Arena, Arena)>,
}

/// Where a batch lies.
struct BatchPlaces {
    x: u64,
    y: u64,
    qkv: u64,
    context: u64,
    middle: u64,
    out: u64,
}

impl BatchPlaces {
    fn deal(
        dealer: &mut Dealer,
        (tokens, texts): (usize, usize),
        hidden: usize,
        middle: usize,
    ) -> std::result::Result<Self, CudaError> {
        Ok(Self {
            x: dealer.take(tokens * hidden)?,
            y: dealer.take(tokens * hidden)?,
            qkv: dealer.take(3 * tokens * hidden)?,
            context: dealer.take(tokens * hidden)?,
            middle: dealer.take(tokens * middle)?,
            out: dealer.take(texts * hidden)?,
        })
    }
}

/// Weights in the order in which they are copied.
#[derive(Default)]
struct WeightList {
    numbers: Vec<f32>,
    first: u64,
}

impl WeightList {
    fn put(&mut self, numbers: &[f32]) -> u64 {
        // Products want their matrices at multiples of 16 bytes.
        self.numbers
            .resize(self.numbers.len().next_multiple_of(64), 0.0);
        let place = self.first + 4 * self.numbers.len() as u64;
        self.numbers.extend_from_slice(numbers);
        place
    }

    fn linear(&mut self, linear: &OnnxLinear<'_>) -> LinearAt {
        let OnnxLinear {
            weight,
            bias,
            inputs,
            outputs,
            ..
        } = *linear;
        LinearAt {
            weight: self.put(weight),
            bias: self.put(bias),
            inputs,
            outputs,
        }
    }

    fn norm(&mut self, norm: &OnnxNorm<'_>) -> NormAt {
        NormAt {
            scale: self.put(norm.scale),
            shift: self.put(norm.shift),
            epsilon: norm.epsilon,
        }
    }
}

impl CudaBert {
    /// Takes an encoder over, if there is room. Its linear maps are given as [inputs, outputs].
    pub(crate) fn new(
        card: &Card,
        bert: &OnnxBert<'_>,
        max_tokens: usize,
    ) -> std::result::Result<Self, CudaError> {
        let head = bert.hidden / bert.heads;
        let kernels = Kernels::compile(&card.context, &BERT, &[format!("HEAD={head}")])?;
        let card = card.beside()?;
        let batch_tokens = BATCH_TOKENS.max(max_tokens);
        let middle = bert
            .layers
            .iter()
            .map(|layer| layer.widen.outputs)
            .max()
            .unwrap_or(0);
        let mut counted = Dealer::default();
        BatchPlaces::deal(
            &mut counted,
            (batch_tokens, batch_tokens),
            bert.hidden,
            middle,
        )?;
        let sizes = WeightList::sizes(bert);
        let numbers = counted.taken() + 4 * batch_tokens + sizes;
        let free = card.free_memory()?;
        if numbers.saturating_mul(4) > free / 10 * 9 {
            return Err(CudaError::NoNetworkRoom {
                free: free >> 20,
                needed: numbers >> 18,
            });
        }
        let mut weights = Arena::new(&card, sizes)?;
        let mut list = WeightList {
            numbers: Vec::with_capacity(sizes),
            first: weights.first(),
        };
        let words = list.put(bert.words);
        let positions = list.put(bert.positions);
        let norm = list.norm(&bert.norm);
        let layers = bert.layers.iter().map(|layer| LayerAt {
            query_key_value: list.linear(&layer.query_key_value),
            attention: list.linear(&layer.attention),
            attention_norm: list.norm(&layer.attention_norm),
            widen: list.linear(&layer.widen),
            narrow: list.linear(&layer.narrow),
            norm: list.norm(&layer.norm),
        });
        let layers = layers.collect();
        let bits: Vec<u32> = list.numbers.iter().map(|number| number.to_bits()).collect();
        weights.write(&card, &bits)?;
        let scratch = Mutex::new((
            Arena::new(&card, 4 * batch_tokens)?,
            Arena::new(&card, counted.taken())?,
        ));
        card.wait()?;
        Ok(Self {
            card,
            kernels,
            words,
            positions,
            norm,
            layers,
            hidden: bert.hidden,
            heads: bert.heads,
            batch_tokens,
            _weights: weights,
            scratch,
        })
    }

    fn encode_batch(&self, texts: &[&[u32]]) -> std::result::Result<Vec<f32>, CudaError> {
        let mut scratch = self
            .scratch
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let (inbox, work) = &mut *scratch;
        let hidden = self.hidden;
        let tokens: usize = texts.iter().map(|text| text.len()).sum();
        let longest = texts.iter().map(|text| text.len()).max().unwrap_or(0);
        let mut bits: Vec<u32> = texts.iter().flat_map(|text| text.iter().copied()).collect();
        bits.extend(texts.iter().flat_map(|text| 0..text.len() as u32));
        let mut start = 0;
        for text in texts {
            bits.push(start);
            start += text.len() as u32;
        }
        bits.extend(texts.iter().map(|text| text.len() as u32));
        let [ids, places] = [inbox.at(0), inbox.at(tokens)];
        let [starts, lengths] = [inbox.at(2 * tokens), inbox.at(2 * tokens + texts.len())];
        self.card
            .context
            .bind_to_thread()
            .map_err(CudaError::call("the use of the card"))?;
        inbox.write(&self.card, &bits)?;
        let middle = self
            .layers
            .iter()
            .map(|layer| layer.widen.outputs)
            .max()
            .unwrap_or(0);
        let mut dealer = work.dealer();
        let at = BatchPlaces::deal(&mut dealer, (tokens, texts.len()), hidden, middle)?;
        let rows = (size(tokens)? as u32, 1, 1);
        let by_row = |name, arguments: &[Argument]| {
            self.kernels
                .blocks(&self.card, name, (rows, BLOCK), arguments)
        };
        by_row(
            "embed_tokens",
            &[
                at.x.into(),
                self.words.into(),
                self.positions.into(),
                ids.into(),
                places.into(),
                self.norm.scale.into(),
                self.norm.shift.into(),
                count(hidden)?,
                self.norm.epsilon.into(),
            ],
        )?;
        let scale = 1.0 / ((hidden / self.heads) as f32).sqrt();
        let grid = (
            size(texts.len())? as u32,
            size(self.heads)? as u32,
            size(longest.div_ceil(QUERIES))? as u32,
        );
        for layer in &self.layers {
            let LayerAt {
                query_key_value,
                attention,
                attention_norm,
                widen,
                narrow,
                norm,
            } = layer;
            self.product(query_key_value, at.x, at.qkv, tokens)?;
            self.with_bias("add_bias", at.qkv, query_key_value, tokens)?;
            let arguments = [
                at.qkv.into(),
                at.context.into(),
                starts.into(),
                lengths.into(),
                count(hidden)?,
                scale.into(),
            ];
            self.kernels
                .blocks(&self.card, "attention", (grid, QUERIES as u32), &arguments)?;
            self.product(attention, at.context, at.y, tokens)?;
            by_row(
                "add_norm",
                &added(at.y, at.x, attention, attention_norm, hidden)?,
            )?;
            self.product(widen, at.y, at.middle, tokens)?;
            self.with_bias("bias_gelu", at.middle, widen, tokens)?;
            self.product(narrow, at.middle, at.x, tokens)?;
            by_row("add_norm", &added(at.x, at.y, narrow, norm, hidden)?)?;
        }
        let arguments = [
            at.x.into(),
            at.out.into(),
            starts.into(),
            lengths.into(),
            count(hidden)?,
        ];
        let grid = (size(texts.len())? as u32, 1, 1);
        self.kernels
            .blocks(&self.card, "unit_mean", (grid, BLOCK), &arguments)?;
        let mut out = vec![0.0; texts.len() * hidden];
        work.read(&self.card, dealer.offset(at.out), &mut out)?;
        Ok(out)
    }

    /// out = x·W for every token.
    fn product(
        &self,
        linear: &LinearAt,
        x: u64,
        out: u64,
        tokens: usize,
    ) -> std::result::Result<(), CudaError> {
        let LinearAt {
            weight,
            inputs,
            outputs,
            ..
        } = *linear;
        let sizes = (outputs, tokens, inputs);
        self.card.product(
            sizes,
            Factor::plain(weight, outputs),
            Factor::plain(x, inputs),
            0.0,
            out,
        )
    }

    fn with_bias(
        &self,
        name: &'static str,
        rows: u64,
        linear: &LinearAt,
        tokens: usize,
    ) -> std::result::Result<(), CudaError> {
        let arguments = [
            rows.into(),
            linear.bias.into(),
            count(linear.outputs)?,
            count(tokens)?,
        ];
        self.kernels
            .each(&self.card, name, linear.outputs * tokens, &arguments)
    }
}

/// The arguments of the sum that ends both halves of a layer.
fn added(
    rows: u64,
    residual: u64,
    linear: &LinearAt,
    norm: &NormAt,
    width: usize,
) -> std::result::Result<[Argument; 7], CudaError> {
    Ok([
        rows.into(),
        residual.into(),
        linear.bias.into(),
        norm.scale.into(),
        norm.shift.into(),
        count(width)?,
        norm.epsilon.into(),
    ])
}

impl WeightList {
    /// Numbers that the list of an encoder will hold.
    fn sizes(bert: &OnnxBert<'_>) -> usize {
        let mut list = 0;
        let mut add = |numbers: usize| list += numbers.next_multiple_of(64);
        add(bert.words.len());
        add(bert.positions.len());
        let norms = bert
            .layers
            .iter()
            .flat_map(|layer| [&layer.attention_norm, &layer.norm]);
        for norm in norms.chain([&bert.norm]) {
            add(norm.scale.len());
            add(norm.shift.len());
        }
        for layer in &bert.layers {
            for linear in [
                &layer.query_key_value,
                &layer.attention,
                &layer.widen,
                &layer.narrow,
            ] {
                add(linear.weight.len());
                add(linear.bias.len());
            }
        }
        list
    }
}

impl DeviceBert for CudaBert {
    fn batch_tokens(&self) -> usize {
        self.batch_tokens
    }

    fn encode(&self, texts: &[&[u32]]) -> Result<Vec<f32>> {
        self.encode_batch(texts).map_err(fault)
    }
}
