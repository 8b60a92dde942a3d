//! Whole networks in an audit: a network that is truly trained anew, and beside it the methods that
//! train a network further. What an audit says of the head's methods compares heads on the features
//! of one encoder; here every network has features of its own, so that there is no distance between
//! parameters to tell, but how each does on rows that stay, go, and were never seen.

use std::collections::HashSet;
use std::time::Instant;

use efface::eval::{Bootstrap, Relearning, Task, population_threshold, utility};
use efface::{Evidence, Method, Model, RowId, RowStore, Rows, WordIds};
use efface_nn::{Backbone, TrainedNetwork};

use super::StateReport;
use super::report::RETRAINED;
use crate::codec::manifest::Manifest;
use crate::error::Result;
use crate::file::{ModelStore, StoreRows};
use crate::operations::network::{encoder, not_trained_here, texts, train};
use crate::progress::Progress;

/// The most steps of relearning, and their rate as a share of the fit's: small, so that networks
/// can be told apart by steps.
const RELEARNING_STEPS: usize = 500;
const RELEARNING_RATE: f64 = 0.1;

/// A network, its rows as word ids, and the methods to compare.
pub(crate) struct WholeNetwork {
    backbone: Backbone,
    texts: Rows,
    held_out: Option<Rows>,
    methods: Vec<Method>,
}

impl WholeNetwork {
    /// The network of a model whose encoder was trained on its rows, with the methods among these
    /// that train a network further; None for every other model.
    pub(crate) fn read(
        store: &ModelStore,
        manifest: &Manifest,
        stored: &StoreRows<'_>,
        methods: &[Method],
    ) -> Result<Option<Self>> {
        let methods: Vec<Method> = methods
            .iter()
            .copied()
            .filter(Method::trains_further)
            .collect();
        let network = manifest.network.as_ref();
        let Some(network) = network.filter(|network| network.is_trained_here()) else {
            return match methods.first() {
                Some(first) => Err(not_trained_here(first)),
                None => Ok(None),
            };
        };
        if methods.is_empty() && !network.holds_rows() {
            // Retraining would give the same encoder: a new head is a new network.
            return Ok(None);
        }
        let (_, backbone) = encoder(store, manifest)?;
        let texts = texts(store, stored, network.max_tokens, &[])?;
        let backbone = match network.holds_rows() {
            true => backbone.with_training_head(&texts)?,
            false => backbone,
        };
        Ok(Some(Self {
            backbone,
            texts,
            held_out: None,
            methods,
        }))
    }

    /// Returns true if methods that train a network further are compared.
    pub(crate) fn has_methods(&self) -> bool {
        !self.methods.is_empty()
    }

    /// Takes rows that no network saw: their words, and the rest as the head reads it.
    pub(crate) fn hold_out(&mut self, words: &[Vec<u32>], encoded: &Rows) -> Result<()> {
        self.held_out = Some(self.rows_of_words(words, encoded)?);
        Ok(())
    }

    /// Takes rows that have left the model, which are read from a file.
    pub(crate) fn add_departed(&mut self, words: &[Vec<u32>], encoded: &Rows) -> Result<()> {
        let departed = self.rows_of_words(words, encoded)?;
        Ok(self.texts.append(&departed)?)
    }

    fn rows_of_words(&self, words: &[Vec<u32>], encoded: &Rows) -> Result<Rows> {
        let mut table = WordIds::new(self.texts.width());
        for row in words {
            table.push(row)?;
        }
        let targets = encoded
            .iter()
            .flat_map(|view| view.targets.to_vec())
            .collect();
        let ids = encoded.ids().collect();
        Ok(Rows::with_ids(ids, table, targets, encoded.outputs())?)
    }

    /// A network trained anew, and the network after every method.
    pub(crate) fn states(
        &self,
        gone: &[RowId],
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Vec<StateReport>> {
        let out: HashSet<RowId> = gone.iter().copied().collect();
        let retained = self.texts.filter(|id| !out.contains(&id));
        let forgotten = self.texts.filter(|id| out.contains(&id));
        let started = Instant::now();
        let anew = train::anew(self.backbone.recipe(), &retained, None, progress)?;
        let target = self.backbone.training_loss(&forgotten)?;
        let rate = f64::from(self.backbone.recipe().training.learning_rate) * RELEARNING_RATE;
        let relearn =
            |backbone: &Backbone| backbone.relearn(&forgotten, target, RELEARNING_STEPS, rate);
        let truth = relearn(anew.network.backbone())?;
        let mut networks = vec![(RETRAINED, None, started.elapsed().as_secs_f64(), anew)];
        for method in &self.methods {
            let started = Instant::now();
            let tuned = train::further(method, &self.backbone, &self.texts, gone, progress)?;
            let seconds = started.elapsed().as_secs_f64();
            networks.push((method.name(), Some(tuned.evidence), seconds, tuned.trained));
        }
        let bootstrap = Bootstrap {
            seed,
            ..Bootstrap::default()
        };
        let state =
            |(name, evidence, seconds, trained): (&str, Option<Evidence>, f64, TrainedNetwork)| {
                let (backbone, model) = trained.network.into_parts();
                let relearning = (name != RETRAINED)
                    .then(|| relearn(&backbone))
                    .transpose()?;
                let forgotten = backbone.encode(&forgotten)?;
                let held_out = self
                    .held_out
                    .as_ref()
                    .map(|rows| backbone.encode(rows))
                    .transpose()?;
                let look = |rows: &Rows| utility(&model, Task::Classes, rows);
                let against = |unseen: &Rows| -> Result<_> {
                    let model: &Model = &model;
                    Ok(population_threshold(
                        model,
                        Task::Classes,
                        &forgotten,
                        unseen,
                        &bootstrap,
                    )?)
                };
                Ok(StateReport {
                    state: name.to_owned(),
                    evidence,
                    seconds: Some(seconds),
                    distance: None,
                    relearning: relearning.map(|time| Relearning::new(time, truth)),
                    retained: look(&trained.encoded)?,
                    forgotten: look(&forgotten)?,
                    held_out: held_out.as_ref().map(look).transpose()?,
                    population: held_out.as_ref().map(against).transpose()?,
                })
            };
        networks.into_iter().map(state).collect()
    }

    /// Returns the sentence on the measures that an audit of whole networks leaves out.
    pub(crate) fn left_out(&self) -> String {
        let mut names = vec![RETRAINED];
        names.extend(self.methods.iter().map(Method::name));
        format!(
            "distances, the injected feature and the attacks by oracles for {}: every network reads features of its own, and \
             every oracle would be a training of the network; `cargo xtask bench nn gap` plays U-LiRA on whole networks",
            names.join(", ")
        )
    }
}
