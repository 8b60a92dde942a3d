//! A network: an encoder, and a linear head at its optimum on the encoder's features.

use std::sync::Arc;

use efface::{Claim, Dense, Evidence, Features, Outcome, Predict, RowId, RowStore, Rows};
use faer::Mat;

use crate::embedding::Embedding;
use crate::encoder::Weights;
use crate::error::{Error, Result};
use crate::forget::HeadMethod;
use crate::head::{Head, HeadRecipe};
use crate::plan::Plan;
use crate::pool::Pool;
use crate::recipe::NetworkRecipe;
use crate::texts::row_ids;
use crate::train::in_chunks;

/// What stays behind when only the head forgets.
pub(crate) const BACKBONE: &str =
    "what the encoder learned from these rows: only the head forgets; retrain or sisa cover it";

/// A fitted network. Clones share the encoder.
#[derive(Debug, Clone)]
pub struct Network {
    pub(crate) recipe: NetworkRecipe,
    pub(crate) plan: Arc<Plan>,
    pub(crate) parameters: Arc<Vec<f32>>,
    /// Training steps that the encoder has behind it.
    pub(crate) steps: u64,
    /// The width of a row of ids: longer texts were cut.
    pub(crate) max_tokens: usize,
    pub(crate) head: Head,
}

impl Network {
    /// The recipe it was made by.
    pub fn recipe(&self) -> &NetworkRecipe {
        &self.recipe
    }

    /// The words it knows.
    pub fn embedding(&self) -> &Embedding {
        &self.recipe.embedding
    }

    /// The head.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Training steps that the encoder has behind it; 0 for one that was drawn and never trained.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// d: the width of what the head reads.
    pub fn width(&self) -> usize {
        self.plan.settings.features()
    }

    /// Words of a text that it reads; longer texts are cut.
    pub fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    /// Arrays by name, shape and values.
    pub fn arrays(&self) -> impl Iterator<Item = (&str, &[usize], &[f32])> {
        let slots = self.plan.slots().iter();
        slots.map(|slot| (slot.name.as_str(), slot.shape.as_slice(), &self.parameters[slot.range.clone()]))
    }

    /// The head's rows for rows of word ids.
    pub fn features(&self, texts: &Features) -> Result<Features> {
        if texts.width() > self.max_tokens {
            let (found, expected) = (texts.width(), self.max_tokens);
            return Err(efface::Error::Shape { what: "word ids a row", found, expected }.into());
        }
        let weights =
            Weights { plan: &self.plan, parameters: &self.parameters, frozen: self.embedding().table() };
        encode(weights, self.embedding(), texts)
    }

    /// The same for rows under ids, with their targets and weights: what the head is fitted from and forgets from. Keep them:
    /// a text encoded again in other company differs in the last digit, and exact forgetting wants the very rows that were
    /// learned.
    pub fn encode(&self, rows: &Rows) -> Result<Rows> {
        let texts = copy_features(rows)?;
        encoded_rows(rows, self.features(&texts)?)
    }

    /// The same encoder under another head, fitted from `encoded`.
    pub fn with_head(&self, head: &HeadRecipe, encoded: &Rows) -> Result<Self> {
        let recipe = NetworkRecipe { head: *head, ..self.recipe.clone() };
        Ok(Self { recipe, head: head.fit(encoded)?, ..self.clone() })
    }

    /// The head without some rows, the encoder as it is. `encoded` holds what [`encode`](Self::encode) gave at the fit.
    pub fn forget(
        &self,
        method: &HeadMethod,
        encoded: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<Self>> {
        let Outcome { model: head, mut evidence } = method.forget(&self.head, encoded, gone)?;
        if !gone.is_empty() {
            evidence.not_covered.extend(self.not_covered());
        }
        Ok(Outcome { model: Self { head, ..self.clone() }, evidence })
    }

    /// What a forgetting head leaves uncovered.
    pub fn not_covered(&self) -> Vec<String> {
        let mut left = Vec::new();
        if self.steps > 0 {
            left.push(BACKBONE.to_string());
        }
        if !self.embedding().public {
            left.push("which words have a vector: they were chosen from all texts".to_string());
        }
        left
    }

    /// The evidence of a network that was trained anew on `rows` rows.
    pub(crate) fn retrained(&self, encoded: &Rows, method: &str, forgotten: usize) -> Result<Evidence> {
        let mut evidence = self.head.evidence(encoded)?;
        evidence.method = method.into();
        evidence.claim = Claim::Exact;
        evidence.forgotten = forgotten;
        evidence.rows_read = encoded.len();
        evidence.refactored = true;
        evidence.precomputed.clear();
        if !self.embedding().public {
            evidence
                .not_covered
                .push("which words have a vector: they were chosen from all texts".to_string());
        }
        Ok(evidence)
    }
}

impl Predict for Network {
    /// The head's scores for rows of word ids.
    fn predict(&self, texts: &Features) -> efface::Result<Mat<f64>> {
        Ok(self.head.predict(&self.features(texts)?)?)
    }
}

/// The features of all rows, similar lengths together.
pub(crate) fn encode(weights: Weights<'_>, embedding: &Embedding, texts: &Features) -> Result<Features> {
    let known = embedding.table().len() / embedding.width();
    let ids: Vec<Vec<u32>> =
        (0..texts.rows()).map(|slot| row_ids(texts.row(slot), known)).collect::<Result<_>>()?;
    let mut order: Vec<usize> = (0..ids.len()).collect();
    order.sort_by_key(|&slot| ids[slot].len());
    let sorted: Vec<&[u32]> = order.iter().map(|&slot| ids[slot].as_slice()).collect();
    let d = weights.plan.settings.features();
    let mut values = vec![0.0f32; d * ids.len()];
    let (mut start, mut pool) = (0, Pool::default());
    for chunk in in_chunks(&sorted) {
        let rows = weights.features(chunk, &mut pool);
        for (&slot, row) in order[start..].iter().zip(rows.chunks_exact(d)) {
            values[slot * d..(slot + 1) * d].copy_from_slice(row);
        }
        start += chunk.len();
    }
    if values.iter().any(|value| !value.is_finite()) {
        return Err(Error::Damaged("its encoder gives numbers that are not finite".into()));
    }
    Ok(Dense::new(values, d)?.into())
}

/// Features under the ids, targets and weights of other rows.
pub(crate) fn encoded_rows(rows: &Rows, features: Features) -> Result<Rows> {
    let (mut targets, mut weights) = (Vec::new(), Vec::new());
    for view in rows.iter() {
        targets.extend_from_slice(view.targets);
        weights.push(view.weight);
    }
    let encoded = Rows::with_ids(rows.ids().collect(), features, targets, rows.outputs())?;
    Ok(if weights.iter().all(|weight| *weight == 1.0) { encoded } else { encoded.weighted(weights)? })
}

/// The ids of all rows that are there, as a table of their own.
pub(crate) fn copy_features(rows: &Rows) -> Result<Features> {
    let mut table = efface::Csr::<f32>::new(rows.width());
    for view in rows.iter() {
        table.push(&view.features.entries())?;
    }
    Ok(table.into())
}
