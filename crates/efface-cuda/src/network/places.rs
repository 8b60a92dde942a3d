//! Where everything of a minibatch lies on the card.

use efface_nn::EncoderPlan;

use crate::arena::Dealer;
use crate::error::CudaError;

/// One direction of a layer.
#[derive(Debug)]
pub(super) struct LstmPlaces {
    /// 4H a token: activations, then gradients.
    pub(super) gates: u64,
    /// H a token each: c, tanh c, and h of the step before.
    pub(super) cells: u64,
    pub(super) squashed: u64,
    pub(super) before: u64,
    /// H a text each, while going back: what the next step gives back to h, and to c.
    pub(super) carried: u64,
    pub(super) cell_gradient: u64,
}

/// One layer.
#[derive(Debug)]
pub(super) struct LayerPlaces {
    /// What it reads, normalised, and what normalising leaves behind; only with a normalisation.
    pub(super) normed: u64,
    pub(super) normal: u64,
    pub(super) scales: u64,
    pub(super) lstms: Vec<LstmPlaces>,
    pub(super) output: u64,
}

/// All of it.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) words: u64,
    pub(super) layers: Vec<LayerPlaces>,
    pub(super) pooled: u64,
    pub(super) chosen: u64,
    pub(super) features: u64,
    pub(super) read: u64,
    pub(super) logits: u64,
    pub(super) ones: u64,
    /// Gradients of tokens: what goes back, what it becomes, and what is kept of it.
    pub(super) back: [u64; 3],
    pub(super) features_back: u64,
    pub(super) pooled_back: u64,
    pub(super) losses: u64,
    pub(super) hits: u64,
}

impl Places {
    /// Deals out what a minibatch of so many texts and tokens needs.
    pub(super) fn deal(
        dealer: &mut Dealer,
        plan: &EncoderPlan,
        (samples, tokens): (usize, usize),
    ) -> Result<Self, CudaError> {
        let lanes = plan.settings.lanes();
        let d = plan.settings.features();
        let hidden = plan.settings.hidden;
        let words = dealer.take(plan.word_width * tokens)?;
        let mut layers = Vec::new();
        for layer in &plan.layers {
            let width = if layer.norm.is_some() {
                layer.input * tokens
            } else {
                0
            };
            let normed = dealer.take(width)?;
            let normal = dealer.take(width)?;
            let scales = dealer.take(tokens)?;
            let mut lstms = Vec::new();
            for _ in &layer.directions {
                lstms.push(LstmPlaces {
                    gates: dealer.take(4 * hidden * tokens)?,
                    cells: dealer.take(hidden * tokens)?,
                    squashed: dealer.take(hidden * tokens)?,
                    before: dealer.take(hidden * tokens)?,
                    carried: dealer.take(hidden * samples)?,
                    cell_gradient: dealer.take(hidden * samples)?,
                });
            }
            layers.push(LayerPlaces {
                normed,
                normal,
                scales,
                lstms,
                output: dealer.take(lanes * tokens)?,
            });
        }
        let widest = plan
            .layers
            .iter()
            .map(|layer| layer.input)
            .max()
            .unwrap_or(0)
            .max(lanes)
            * tokens;
        let pooled = dealer.take(lanes * samples)?;
        Ok(Self {
            words,
            layers,
            pooled,
            chosen: dealer.take(lanes * samples)?,
            features: if plan.projection.is_some() {
                dealer.take(d * samples)?
            } else {
                pooled
            },
            read: dealer.take(d * samples)?,
            logits: dealer.take(plan.head.output * samples)?,
            ones: dealer.take(tokens.max(samples))?,
            back: [
                dealer.take(widest)?,
                dealer.take(widest)?,
                dealer.take(widest)?,
            ],
            features_back: dealer.take(d * samples)?,
            pooled_back: dealer.take(lanes * samples)?,
            losses: dealer.take(2 * samples)?,
            hits: dealer.take(samples)?,
        })
    }
}
