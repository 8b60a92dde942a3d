//! A network together with its rows in memory: texts as ids, and their features. All of them change together or not at all.

use std::collections::HashSet;

use efface::{Evidence, Method, RowId, RowRef, RowStore, Rows};

use crate::error::Result;
use crate::network::Network;
use crate::recipe::{NetworkRecipe, Trained};
use crate::train::{Checkpoint, EpochReport, TrainingProgress};
use crate::unlearn::{TunedNetwork, train_further};

/// Changed rows that may wait before the head's curvature is brought up to date.
const SETTLE_AFTER: usize = 32;

/// A network and what it was made from.
#[derive(Debug, Clone)]
pub struct FittedNetwork {
    network: Network,
    texts: Rows,
    encoded: Rows,
    history: Vec<EpochReport>,
    /// Texts as long as a row can be, which were, or may have been, cut there.
    cut: usize,
}

impl FittedNetwork {
    /// Trains a network and keeps its rows with it.
    pub fn new(recipe: &NetworkRecipe, texts: Rows, progress: &mut dyn TrainingProgress) -> Result<Self> {
        let trained = recipe.train(&texts, progress)?;
        Ok(Self::from_trained(trained, texts))
    }

    /// Goes on from a checkpoint.
    pub fn resume(
        recipe: &NetworkRecipe,
        checkpoint: Checkpoint,
        texts: Rows,
        progress: &mut dyn TrainingProgress,
    ) -> Result<Self> {
        let trained = recipe.continue_from(checkpoint, &texts, progress)?;
        Ok(Self::from_trained(trained, texts))
    }

    /// Joins a training's result with the rows it came from.
    pub fn from_trained(trained: Trained, texts: Rows) -> Self {
        let Trained { network, encoded, checkpoint } = trained;
        let most = network.max_tokens();
        let cut = texts.iter().filter(|view| is_full(view.features, most)).count();
        Self { network, texts, encoded, history: checkpoint.history, cut }
    }

    /// The network as it is now.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Its rows as word ids.
    pub fn texts(&self) -> &Rows {
        &self.texts
    }

    /// Its rows as the head reads them.
    pub fn encoded(&self) -> &Rows {
        &self.encoded
    }

    /// How the training went.
    pub fn history(&self) -> &[EpochReport] {
        &self.history
    }

    /// The head forgets rows; the encoder stays. On an error, nothing has changed.
    pub fn forget(&mut self, method: &Method, gone: &[RowId]) -> Result<Evidence> {
        let outcome = self.network.forget(method, &self.encoded, gone)?;
        self.accept(outcome.model, outcome.evidence, gone)
    }

    /// The whole network is trained anew, from scratch, on what is left. Nothing of the old one is kept.
    pub fn retrain(&mut self, gone: &[RowId], progress: &mut dyn TrainingProgress) -> Result<Evidence> {
        self.texts.check(gone)?;
        if gone.len() >= self.texts.len() {
            return Err(efface::Error::NothingLeft { gone: gone.len(), rows: self.texts.len() }.into());
        }
        let out: HashSet<RowId> = gone.iter().copied().collect();
        let texts = self.texts.filter(|id| !out.contains(&id));
        let recipe = self.network.recipe().clone();
        let trained = recipe.train(&texts, progress)?;
        let mut evidence = trained.network.retrained(&trained.encoded, "retrain", gone.len())?;
        evidence.reason = self.cut_texts();
        *self = Self::from_trained(trained, texts);
        Ok(evidence)
    }

    /// The whole network is trained further without some rows. On an error, or with no row to forget, nothing has changed.
    pub fn forget_whole(
        &mut self,
        method: &Method,
        gone: &[RowId],
        progress: &mut dyn TrainingProgress,
    ) -> Result<Evidence> {
        let TunedNetwork { trained, mut evidence } =
            train_further(method, &self.network.backbone, &self.texts, gone, progress)?;
        if gone.is_empty() {
            return Ok(evidence);
        }
        let why = evidence.reason.take().into_iter().chain(self.cut_texts()).collect::<Vec<_>>();
        evidence.reason = Some(why.join("; "));
        let out: HashSet<RowId> = gone.iter().copied().collect();
        let texts = self.texts.filter(|id| !out.contains(&id));
        // The history is that of the fit.
        let history = std::mem::take(&mut self.history);
        *self = Self { history, ..Self::from_trained(trained, texts) };
        Ok(evidence)
    }

    fn accept(&mut self, mut network: Network, mut evidence: Evidence, gone: &[RowId]) -> Result<Evidence> {
        if network.head.waiting() >= SETTLE_AFTER {
            network.head.settle()?;
            network.head.update_evidence(&mut evidence);
        }
        evidence.reason = match (evidence.reason.take(), self.cut_texts()) {
            (Some(why), Some(cut)) => Some(format!("{why}; {cut}")),
            (why, cut) => why.or(cut),
        };
        let leaving = gone.iter().filter_map(|&id| self.texts.get(id));
        let cut = leaving.filter(|view| is_full(view.features, self.network.max_tokens())).count();
        // Both hold the same ids, and the request has been checked: neither removal can fail alone.
        self.texts.check(gone)?;
        self.encoded.remove(gone)?;
        self.texts.remove(gone)?;
        self.cut -= cut;
        self.network = network;
        Ok(evidence)
    }

    fn cut_texts(&self) -> Option<String> {
        let most = self.network.max_tokens();
        (self.cut > 0).then(|| format!("of {} texts only the first {most} words were ever read", self.cut))
    }
}

/// Whether a text fills its row.
fn is_full(row: RowRef<'_>, most: usize) -> bool {
    row.word_ids().is_ok_and(|ids| ids.len() == most)
}
