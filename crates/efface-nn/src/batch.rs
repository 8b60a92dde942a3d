//! A minibatch as encoders read it: texts side by side, what is dropped of them, and what a step
//! asks of each.

use efface::random::{SeededRng, seeded};
use rand::Rng;

use crate::device::DeviceRun;
use crate::embedding::UNKNOWN;
use crate::packed::PackedTexts;
use crate::plan::EncoderPlan;
use crate::train::in_chunks;

/// Texts as ids, packed.
#[derive(Debug)]
pub struct TextBatch {
    pub(crate) packed: PackedTexts,
    pub(crate) ids: Vec<u32>,
}

impl TextBatch {
    /// Every text holds at least one id.
    pub(crate) fn new(texts: &[&[u32]]) -> Self {
        let lengths: Vec<usize> = texts.iter().map(|text| text.len()).collect();
        let packed = PackedTexts::new(&lengths);
        let mut ids = Vec::with_capacity(packed.columns());
        for t in 0..packed.steps() {
            let step = (0..packed.active(t)).map(|place| texts[packed.sample(place)].get(t));
            ids.extend(step.map(|id| id.copied().unwrap_or(UNKNOWN)));
        }
        Self { packed, ids }
    }

    /// Where each text lies.
    pub fn packed(&self) -> &PackedTexts {
        &self.packed
    }

    /// The id of every column.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Rows by place, of `width` numbers each, in the order in which the texts were given.
    pub(crate) fn in_order(&self, by_place: &[f32], width: usize) -> Vec<f32> {
        let mut rows = vec![0.0; by_place.len()];
        for (place, row) in by_place.chunks_exact(width.max(1)).enumerate() {
            let to = self.packed.sample(place) * width;
            rows[to..to + width].copy_from_slice(row);
        }
        rows
    }
}

/// Inverted dropout: one factor per feature and sample, 0 or 1/(1 − p).
#[derive(Debug)]
pub struct DropoutMask {
    height: usize,
    /// `height` numbers a place.
    pub factors: Vec<f32>,
}

impl DropoutMask {
    fn draw(height: usize, samples: usize, dropout: f32, random: &mut SeededRng) -> Self {
        let keep = 1.0 / (1.0 - dropout);
        let threshold = (f64::from(dropout) * 2f64.powi(32)) as u32;
        let factors = (0..height * samples).map(|_| {
            if random.next_u32() < threshold {
                0.0
            } else {
                keep
            }
        });
        Self {
            height,
            factors: factors.collect(),
        }
    }

    /// Multiplies every token of a sample by the sample's factors.
    pub(crate) fn apply(&self, values: &mut [f32], packed: &PackedTexts) {
        let h = self.height;
        for t in 0..packed.steps() {
            let columns = packed.step(t);
            let block = &mut values[h * columns.start..h * columns.end];
            for (value, factor) in block.iter_mut().zip(&self.factors) {
                *value *= factor;
            }
        }
    }
}

/// What a training step drops of a minibatch; empty without dropout.
#[derive(Debug, Default)]
pub struct DropoutMasks {
    /// Of word vectors.
    pub words: Option<DropoutMask>,
    /// Of the output of every layer but the last.
    pub layers: Vec<DropoutMask>,
    /// Of what the head reads.
    pub head: Option<DropoutMask>,
}

impl DropoutMasks {
    pub(crate) fn draw(plan: &EncoderPlan, samples: usize, random: &mut SeededRng) -> Self {
        let dropout = plan.settings.dropout;
        if dropout <= 0.0 {
            return Self::default();
        }
        let mut mask = |height: usize| DropoutMask::draw(height, samples, dropout, random);
        let words = Some(mask(plan.word_width));
        let layers = (1..plan.layers.len())
            .map(|_| mask(plan.settings.lanes()))
            .collect();
        Self {
            words,
            layers,
            head: Some(mask(plan.settings.features())),
        }
    }
}

/// What a step asks of one text: it minimises share · (label · cross-entropy + teacher ·
/// KL(teacher‖student)).
#[derive(Debug, Clone, Copy)]
pub struct TextAim<'a> {
    /// The text's class.
    pub class: usize,
    /// What the text counts for among those that it is averaged with.
    pub share: f32,
    /// What its label counts for.
    pub label: f32,
    /// What its teacher counts for.
    pub teacher: f32,
    /// The teacher's probabilities; empty without one.
    pub taught: &'a [f32],
}

impl TextAim<'_> {
    /// Its own class, and no teacher.
    pub(crate) fn learn(class: usize, share: f32) -> Self {
        Self {
            class,
            share,
            label: 1.0,
            teacher: 0.0,
            taught: &[],
        }
    }

    /// The gradient of what is minimised by the score of class `c`, which has this probability.
    pub(crate) fn slope(&self, c: usize, probability: f32) -> f32 {
        let mut slope = self.label * (probability - (c == self.class) as u8 as f32);
        if let Some(taught) = self.taught.get(c) {
            slope += self.teacher * (probability - taught);
        }
        self.share * slope
    }

    /// Whether the step raises the loss of this text.
    pub(crate) fn is_forgotten(&self) -> bool {
        self.label < 0.0 || self.teacher < 0.0
    }
}

/// One share of a minibatch.
pub(crate) struct BatchShare<'a> {
    pub(crate) texts: Vec<&'a [u32]>,
    pub(crate) aims: Vec<TextAim<'a>>,
    pub(crate) seed: u64,
}

/// As much of a share as is encoded at once.
pub(crate) struct BatchRun<'a> {
    batch: TextBatch,
    masks: DropoutMasks,
    /// By place.
    pub(crate) aims: Vec<TextAim<'a>>,
}

impl<'a> BatchShare<'a> {
    /// Its runs, one after the other: what is dropped follows from the seed of the share and from
    /// all runs before.
    pub(crate) fn runs<'b>(
        &'b self,
        plan: &'b EncoderPlan,
    ) -> impl Iterator<Item = BatchRun<'a>> + 'b {
        let mut random = seeded(self.seed);
        let mut start = 0;
        in_chunks(&self.texts).into_iter().map(move |texts| {
            let batch = TextBatch::new(texts);
            let masks = DropoutMasks::draw(plan, texts.len(), &mut random);
            let own = &self.aims[start..start + texts.len()];
            start += texts.len();
            let aims = (0..texts.len())
                .map(|place| own[batch.packed.sample(place)])
                .collect();
            BatchRun { batch, masks, aims }
        })
    }
}

impl BatchRun<'_> {
    /// The run as a device takes it.
    pub(crate) fn on_device(&self) -> DeviceRun<'_> {
        DeviceRun {
            batch: &self.batch,
            masks: &self.masks,
            aims: &self.aims,
        }
    }
}
