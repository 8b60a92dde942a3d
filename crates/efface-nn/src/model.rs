//! A network as a model of its texts, beside the other families.
//!
//! Its rows are word ids. What the head reads of them is kept, because an encoder gives a text
//! features that differ in their last digits with the texts beside it, and a head forgets exactly
//! what it was fitted on.
//!
//! | method | what it does |
//! |---|---|
//! | `retrain` | trains the whole network anew, from the seed of the fit |
//! | `fine_tune`, `neggrad_plus`, `scrub` | train the whole network further |
//! | any other | the head forgets, and the encoder stays; see [`forget_from_head`](crate::forget_from_head) |

use std::sync::Arc;

use efface::methods::TakesMethods;
use efface::models::family::{ShardModel, ShardTrainer};
use efface::models::{
    FamilyModel, FamilyRecipe, MethodOptions, NamedParameters, RecipeDescription, RowsBeside,
    ScoreKind,
};
use efface::{
    Amend, ChangedRows, Claim, Error as CoreError, Evidence, Family, Features, Fit, Forget, Method,
    Model, ModelState, Outcome, Predict, Result as CoreResult, RowId, RowRef, RowStore, Rows,
    Settled, StateArray,
};
use faer::Mat;

use crate::backbone::{Backbone, encoded_rows};
use crate::head::forget_from_head;
use crate::network::Network;
use crate::recipe::{NetworkRecipe, TrainedNetwork};
use crate::store::{StoredNetwork, read, write};
use crate::texts::words_in;
use crate::train::QuietTraining;
use crate::unlearn::{TunedNetwork, train_further};

/// A network and what its head was fitted from. Clones share both.
#[derive(Debug, Clone)]
pub struct NetworkModel {
    network: Network,
    encoded: Arc<Rows>,
    /// Texts as long as a row can be, which were, or may have been, cut there.
    cut: usize,
}

impl NetworkModel {
    /// What a training made of these texts.
    pub fn new(trained: TrainedNetwork, texts: &Rows) -> Self {
        let TrainedNetwork {
            network, encoded, ..
        } = trained;
        let cut = texts
            .iter()
            .filter(|view| is_full(view.features, network.max_tokens()))
            .count();
        Self {
            network,
            encoded: Arc::new(encoded),
            cut,
        }
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Its rows as the head reads them.
    pub fn encoded(&self) -> &Rows {
        &self.encoded
    }

    /// The head changed; the encoder stays, but for what a change of rows takes from it.
    fn with_head(
        &self,
        backbone: Backbone,
        outcome: Outcome<Model>,
        encoded: Rows,
        cut: usize,
    ) -> Outcome<Self> {
        let Outcome {
            model: network,
            mut evidence,
        } = backbone.with_outcome(outcome);
        evidence.reason = joined(evidence.reason, self.cut_texts());
        Outcome {
            model: Self {
                network,
                encoded: Arc::new(encoded),
                cut,
            },
            evidence,
        }
    }

    /// The encoder after the rows `gone` of `texts` left and `new` ones joined.
    fn encoder_after(
        &self,
        texts: &dyn RowStore,
        gone: &[RowId],
        new: Option<&Rows>,
    ) -> CoreResult<Backbone> {
        let mut backbone = self.network.backbone().clone();
        if !gone.is_empty() {
            let left = ChangedRows::new(texts, gone, new);
            let unused = backbone
                .embedding()
                .unused(&words_in(left.all()?.as_ref())?);
            backbone.remove_rows(&unused);
        }
        let joined = new.is_some_and(|new| !new.is_empty());
        backbone.state.record(backbone.steps, false, joined);
        Ok(backbone)
    }

    /// The whole network was trained.
    fn renewed(
        &self,
        trained: TrainedNetwork,
        mut evidence: Evidence,
        texts: &Rows,
    ) -> Outcome<Self> {
        evidence.reason = joined(evidence.reason, self.cut_texts());
        Outcome {
            model: Self::new(trained, texts),
            evidence,
        }
    }

    fn cut_texts(&self) -> Option<String> {
        let most = self.network.max_tokens();
        (self.cut > 0).then(|| {
            format!(
                "of {} texts only the first {most} words were ever read",
                self.cut
            )
        })
    }

    /// How many of the named texts fill their row.
    fn full(&self, texts: &dyn RowStore, ids: &[RowId]) -> CoreResult<usize> {
        let mut full = 0;
        texts.visit(ids, &mut |_, view| {
            full += usize::from(is_full(view.features, self.network.max_tokens()));
        })?;
        Ok(full)
    }
}

/// Whether a text fills its row.
fn is_full(row: RowRef<'_>, most: usize) -> bool {
    row.word_ids().is_ok_and(|ids| ids.len() == most)
}

fn joined(first: Option<String>, second: Option<String>) -> Option<String> {
    let parts: Vec<String> = first.into_iter().chain(second).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Rows without some, in memory.
fn retained(texts: &dyn RowStore, gone: &[RowId]) -> CoreResult<Rows> {
    texts.check(gone)?;
    if gone.len() >= texts.len() {
        return Err(CoreError::NothingLeft {
            gone: gone.len(),
            rows: texts.len(),
        });
    }
    Ok(texts.all()?.filter(|id| !gone.contains(&id)))
}

/// A method on a whole network.
struct MethodOnNetwork<'a>(&'a Method);

impl Forget<NetworkModel> for MethodOnNetwork<'_> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn claim(&self) -> Claim {
        if *self.0 == Method::Retrain {
            Claim::Exact
        } else {
            Claim::Approximate
        }
    }

    fn forget(
        &self,
        model: &NetworkModel,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> CoreResult<Outcome<NetworkModel>> {
        // No method of the head brings an encoder that was trained on the rows within a tolerance.
        let trains_anew = self.0.tolerance().is_some() && model.network.steps() > 0;
        if *self.0 == Method::Retrain || (trains_anew && !gone.is_empty()) {
            let texts = retained(rows, gone)?;
            let trained = model.network.recipe().train(&texts, &mut QuietTraining)?;
            let name = Method::Retrain.name();
            let mut evidence = trained
                .network
                .retrained(&trained.encoded, name, gone.len())?;
            evidence.tolerance = self.0.tolerance().or(evidence.tolerance);
            return Ok(model.renewed(trained, evidence, &texts));
        }
        if self.0.trains_further() {
            let all = rows.all()?;
            let backbone = model.network.backbone();
            let TunedNetwork { trained, evidence } =
                train_further(self.0, backbone, &all, gone, &mut QuietTraining)?;
            if gone.is_empty() {
                return Ok(Outcome {
                    model: model.clone(),
                    evidence,
                });
            }
            return Ok(model.renewed(trained, evidence, &retained(rows, gone)?));
        }
        let network = &model.network;
        // The caller judges the comparison of the whole network with doing nothing.
        let head = forget_from_head(
            &network.head,
            self.0,
            MethodOptions::measured(),
            model.encoded.as_ref(),
            gone,
        )?;
        if gone.is_empty() {
            let mut evidence = head.evidence;
            network.backbone().describe(&mut evidence);
            return Ok(Outcome {
                model: model.clone(),
                evidence,
            });
        }
        let full = model.full(rows, gone)?;
        let encoded = model.encoded.filter(|id| !gone.contains(&id));
        let backbone = model.encoder_after(rows, gone, None)?;
        Ok(model.with_head(backbone, head, encoded, model.cut - full))
    }
}

impl TakesMethods for NetworkModel {
    fn worker(method: &Method) -> Option<Box<dyn Forget<Self> + '_>> {
        Some(Box::new(MethodOnNetwork(method)))
    }
}

impl Predict for NetworkModel {
    fn predict(&self, texts: &Features) -> CoreResult<Mat<f64>> {
        self.network.predict(texts)
    }
}

impl Amend for NetworkModel {
    fn learn(&self, rows: &dyn RowStore, new: &Rows) -> CoreResult<Outcome<Self>> {
        for id in new.ids() {
            if rows.contains(id)? {
                return Err(CoreError::DuplicateRow(id));
            }
        }
        let fresh = self.network.encode(new)?;
        let outcome = self.network.head.learn(self.encoded.as_ref(), &fresh)?;
        let mut encoded = self.encoded.as_ref().clone();
        encoded.append(&fresh)?;
        let ids: Vec<RowId> = new.ids().collect();
        let backbone = self.encoder_after(rows, &[], Some(new))?;
        let cut = self.cut + self.full(new, &ids)?;
        Ok(self.with_head(backbone, outcome, encoded, cut))
    }

    fn amend(&self, rows: &dyn RowStore, corrected: &Rows) -> CoreResult<Outcome<Self>> {
        let ids: Vec<RowId> = corrected.ids().collect();
        rows.check(&ids)?;
        let fresh = self.network.encode(corrected)?;
        let outcome = self.network.head.amend(self.encoded.as_ref(), &fresh)?;
        let mut encoded = self.encoded.filter(|id| !ids.contains(&id));
        encoded.append(&fresh)?;
        let cut = self.cut + self.full(corrected, &ids)? - self.full(rows, &ids)?;
        let backbone = self.encoder_after(rows, &ids, Some(corrected))?;
        Ok(self.with_head(backbone, outcome, encoded, cut))
    }

    fn settle(&mut self) -> CoreResult<Settled> {
        self.network.head.settle()
    }

    fn update_evidence(&self, evidence: &mut Evidence) {
        self.network.head.update_evidence(evidence);
        self.network.backbone().describe(evidence);
    }

    fn waiting(&self) -> usize {
        self.network.head.waiting()
    }
}

impl FamilyModel for NetworkModel {
    fn family(&self) -> Family {
        Family::Network
    }

    fn rows(&self) -> usize {
        self.network.head.rows()
    }

    /// The most words of a text.
    fn features(&self) -> usize {
        self.network.max_tokens()
    }

    fn outputs(&self) -> Option<usize> {
        self.network.head.outputs()
    }

    fn scores(&self) -> ScoreKind {
        self.network.head.scores()
    }

    /// The network without its words, which are the recipe's, and the features of its rows in the
    /// order of their ids.
    fn to_state(&self) -> CoreResult<ModelState> {
        let bytes = without_words(&self.network)?;
        let mut ids: Vec<RowId> = self.encoded.ids().collect();
        ids.sort_unstable();
        let mut values = Vec::with_capacity(ids.len() * self.network.width());
        self.encoded.visit(&ids, &mut |_, view| {
            let mut line = vec![0.0; self.network.width()];
            view.features
                .entries()
                .iter()
                .for_each(|(column, value)| line[*column as usize] = *value);
            values.extend(line);
        })?;
        let arrays = vec![("features".into(), StateArray::Numbers(values))];
        Ok(ModelState {
            family: Family::Network,
            head: bytes,
            arrays,
        })
    }

    fn parameters(&self) -> CoreResult<NamedParameters> {
        self.network.head.parameters()
    }

    fn evidence(&self) -> Evidence {
        let mut evidence = self.network.head.evidence();
        self.network.backbone().describe(&mut evidence);
        evidence
    }

    fn refactorisations(&self) -> usize {
        self.network.head.refactorisations()
    }

    /// The methods of a network, and those of its head.
    fn takes(&self, method: &Method) -> bool {
        method.is_for(Family::Network) || method.is_for(self.network.head.family())
    }
}

/// A network as bytes without its words.
fn without_words(network: &Network) -> CoreResult<Vec<u8>> {
    let backbone = Some(&network.backbone);
    Ok(write(
        network.recipe(),
        network.max_tokens(),
        false,
        backbone,
        Some(&network.head),
    )?)
}

impl NetworkRecipe {
    /// The network of bytes that were written without words; refused where another recipe made it.
    fn with_words(&self, bytes: &[u8]) -> CoreResult<Network> {
        let StoredNetwork {
            recipe,
            backbone,
            head,
            ..
        } = read(bytes, Some(&self.embedding))?;
        let same = (recipe.encoder, recipe.training, &recipe.head)
            == (self.encoder, self.training, &self.head);
        match (backbone, head) {
            (Some(backbone), Some(head)) if same => Ok(backbone.with_head(head)?),
            _ => Err(CoreError::Damaged(
                "a network is not of the model's recipe".into(),
            )),
        }
    }
}

impl Fit for NetworkRecipe {
    type Model = NetworkModel;

    fn fit(&self, rows: &Rows) -> CoreResult<NetworkModel> {
        Ok(NetworkModel::new(
            self.train(rows, &mut QuietTraining)?,
            rows,
        ))
    }

    fn resume(&self, start: &NetworkModel, rows: &Rows) -> CoreResult<NetworkModel> {
        Ok(NetworkModel::new(
            self.train_from(&start.network, rows, &mut QuietTraining)?,
            rows,
        ))
    }

    /// The rows of a network always name classes, whatever its head is.
    fn class_scores(&self, outputs: usize) -> Option<usize> {
        Some(outputs)
    }
}

impl FamilyRecipe for NetworkRecipe {
    fn family(&self) -> Family {
        Family::Network
    }

    fn describe(&self) -> RecipeDescription {
        let head = self.head.describe();
        RecipeDescription {
            name: format!("network with {} head", head.name),
            ..head
        }
    }

    fn read_model(&self, state: ModelState, beside: RowsBeside<'_>) -> CoreResult<Model> {
        let damaged = |what: &str| CoreError::Damaged(what.into());
        let RowsBeside::Kept(texts) = beside else {
            return Err(damaged("a network is read beside its texts"));
        };
        let network = self.with_words(&state.head)?;
        let values = state
            .arrays
            .into_iter()
            .find_map(|(name, array)| match array {
                StateArray::Numbers(values) if name == "features" => Some(values),
                _ => None,
            });
        let values = values.ok_or_else(|| damaged("its features are missing"))?;
        let texts = texts.all()?;
        let mut ids: Vec<RowId> = texts.ids().collect();
        ids.sort_unstable();
        let texts = Rows::read(texts.as_ref(), &ids)?;
        let features =
            efface::Dense::new(values.iter().map(|v| *v as f32).collect(), network.width())?;
        let encoded = encoded_rows(&texts, features.into())?;
        if encoded.len() != network.head.rows() {
            return Err(damaged("its head stands for other rows"));
        }
        let cut = texts
            .iter()
            .filter(|view| is_full(view.features, network.max_tokens()))
            .count();
        Ok(Model::new(NetworkModel {
            network,
            encoded: Arc::new(encoded),
            cut,
        }))
    }

    fn made(&self, model: &Model) -> bool {
        model
            .get::<NetworkModel>()
            .is_some_and(|model| model.network.recipe() == self)
    }

    fn shard_trainer(&self) -> CoreResult<Arc<dyn ShardTrainer>> {
        Ok(Arc::new(self.clone()))
    }
}

/// A shard keeps encoder and head, and not the features of its rows.
impl ShardTrainer for NetworkRecipe {
    fn train(
        &self,
        start: Option<&dyn ShardModel>,
        rows: &Rows,
    ) -> CoreResult<Arc<dyn ShardModel>> {
        let start: Option<&dyn std::any::Any> = start.map(|start| start as _);
        let trained = match start.and_then(|start| start.downcast_ref::<Network>()) {
            Some(start) => self.train_from(start, rows, &mut QuietTraining)?,
            None => NetworkRecipe::train(self, rows, &mut QuietTraining)?,
        };
        Ok(Arc::new(trained.network))
    }

    fn restore(&self, state: ModelState) -> CoreResult<Arc<dyn ShardModel>> {
        Ok(Arc::new(self.with_words(&state.head)?))
    }
}

impl ShardModel for Network {
    fn to_state(&self) -> CoreResult<ModelState> {
        Ok(ModelState {
            family: Family::Network,
            head: without_words(self)?,
            arrays: Vec::new(),
        })
    }

    fn bytes(&self) -> usize {
        let head: usize = self
            .head
            .evidence()
            .precomputed
            .iter()
            .map(|part| part.bytes)
            .sum();
        self.backbone.parameters.len() * size_of::<f32>() + head
    }
}
