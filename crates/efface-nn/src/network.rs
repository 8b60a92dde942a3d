//! A network: an encoder, and a linear head at its optimum on the encoder's features.

use std::collections::HashSet;

use efface::models::MethodOptions;
use efface::{Evidence, Features, Method, Model, Outcome, Predict, Recipe, RowId, RowStore, Rows};
use faer::Mat;

use crate::backbone::Backbone;
use crate::embedding::Embedding;
use crate::error::Result;
use crate::head::{evidence_at_optimum, fit_head, forget_from_head};
use crate::recipe::NetworkRecipe;

/// A fitted network. Clones share the encoder.
#[derive(Debug, Clone)]
pub struct Network {
    pub(crate) backbone: Backbone,
    pub(crate) head: Model,
}

impl Network {
    /// The encoder.
    pub fn backbone(&self) -> &Backbone {
        &self.backbone
    }

    /// The recipe it was made by.
    pub fn recipe(&self) -> &NetworkRecipe {
        &self.backbone.recipe
    }

    /// The words it knows.
    pub fn embedding(&self) -> &Embedding {
        self.backbone.embedding()
    }

    /// The head.
    pub fn head(&self) -> &Model {
        &self.head
    }

    /// The two halves.
    pub fn into_parts(self) -> (Backbone, Model) {
        (self.backbone, self.head)
    }

    /// Training steps that the encoder has behind it; 0 for one that was drawn and never trained.
    pub fn steps(&self) -> u64 {
        self.backbone.steps
    }

    /// d: the width of what the head reads.
    pub fn width(&self) -> usize {
        self.backbone.width()
    }

    /// Words of a text that it reads; longer texts are cut.
    pub fn max_tokens(&self) -> usize {
        self.backbone.max_tokens
    }

    /// Arrays by name, shape and values.
    pub fn arrays(&self) -> impl Iterator<Item = (&str, &[usize], &[f32])> {
        self.backbone.arrays()
    }

    /// The head's rows for rows of word ids.
    pub fn features(&self, texts: &Features) -> Result<Features> {
        self.backbone.features(texts)
    }

    /// Encodes rows and keeps their ids, targets and weights; see [`Backbone::encode`].
    pub fn encode(&self, rows: &Rows) -> Result<Rows> {
        self.backbone.encode(rows)
    }

    /// A network of this encoder and another head, fitted from `encoded`.
    pub fn with_head(&self, head: &Recipe, encoded: &Rows) -> Result<Self> {
        let mut backbone = self.backbone.clone();
        backbone.recipe.head = head.clone();
        Ok(Self {
            backbone,
            head: fit_head(head, encoded)?,
        })
    }

    /// The head without some rows, the encoder as it is. `encoded` holds what
    /// [`encode`](Self::encode) gave at the fit. Without
    /// the texts nobody knows which words only these rows hold: their vectors stay here, and a
    /// [`NetworkModel`](crate::NetworkModel) resets them.
    pub fn forget(
        &self,
        method: &Method,
        encoded: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<Self>> {
        // The caller judges the comparison of the whole network with doing nothing.
        let options = MethodOptions::measured();
        let outcome = forget_from_head(&self.head, method, options, encoded, gone)?;
        let mut backbone = self.backbone.clone();
        if !gone.is_empty() {
            backbone.remove_rows(&HashSet::new());
        }
        Ok(backbone.with_outcome(outcome))
    }

    /// The evidence of a network that was trained anew on `rows` rows.
    pub fn retrained(&self, encoded: &Rows, method: &str, forgotten: usize) -> Result<Evidence> {
        let mut evidence = evidence_at_optimum(&self.head);
        evidence.method = method.into();
        evidence.forgotten = forgotten;
        evidence.rows_read = encoded.len();
        evidence.refactored = true;
        evidence.precomputed.clear();
        evidence.not_covered.extend(self.backbone.not_covered());
        Ok(evidence)
    }
}

impl Backbone {
    /// Returns the network of this encoder and a changed head, with the evidence of the whole
    /// network.
    pub(crate) fn with_outcome(self, outcome: Outcome<Model>) -> Outcome<Network> {
        let Outcome {
            model: head,
            mut evidence,
        } = outcome;
        self.describe(&mut evidence);
        Outcome {
            model: Network {
                backbone: self,
                head,
            },
            evidence,
        }
    }

    /// Makes an evidence of the head one of the whole network.
    pub(crate) fn describe(&self, evidence: &mut Evidence) {
        for what in self.not_covered() {
            if !evidence.not_covered.contains(&what) {
                evidence.not_covered.push(what);
            }
        }
        self.state.limit(evidence);
    }
}

impl Predict for Network {
    /// The head's scores for rows of word ids.
    fn predict(&self, texts: &Features) -> efface::Result<Mat<f64>> {
        self.head.predict(&self.features(texts)?)
    }
}
