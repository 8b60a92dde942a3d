//! Table 2: how long a network takes to forget, by retraining it whole, by SISA over whole
//! networks, by training it further, and by its head; what accuracy is left; and what whole
//! networks still make of the forgotten articles.

use std::time::Instant;

use efface::eval::{Task, duplicates, utility};
use efface::methods::SisaForget;
use efface::{
    Features, Fit, Forget, Method, Predict, RowId, RowStore, Rows, ShardRecipe, Sisa, SisaModel,
};
use efface_nn::{Network, NetworkRecipe, QuietTraining, train_further};

use super::head_injection::training_cost;
use super::networks::{NetworkLab, cache_name, sets, trained};
use super::{METHODS, StudyContext, StudyJob, StudyMeasure, kept_bytes, without};
use crate::augment::augmented;
use crate::data::LabelledText;
use crate::draw::{choose, trial_seed};
use crate::error::Result;
use crate::part::PaperStudy;
use crate::state::Values;
use crate::watch::RunWatch;

pub(super) struct NetworkTimesStudy {
    context: StudyContext,
    ready: Option<(&'static str, PreparedNetwork)>,
}

/// A set and its network.
struct PreparedNetwork {
    lab: NetworkLab,
    recipe: NetworkRecipe,
    network: Network,
    training: f64,
    encoded: Rows,
    test: Features,
    sisa: Option<SisaModel<ShardRecipe>>,
}

/// What is timed by training networks, and the heads, which are timed together.
pub(crate) const TRAINED: [&str; 3] = ["retrain", "retrain, augmented", "sisa"];
pub(crate) const HEADS: &str = "heads";
/// What is timed by training the network further.
pub(crate) const FURTHER: [&str; 3] = ["fine_tune", "neggrad_plus", "scrub"];

/// The most steps of relearning, and their rate as a share of the fit's: small, so that networks
/// can be told apart by steps.
pub(crate) const RELEARNING_STEPS: usize = 500;
const RELEARNING_RATE: f64 = 0.1;

pub(crate) fn cell(set: &str, what: &str) -> String {
    format!("{set}: {what}")
}

impl NetworkTimesStudy {
    pub(super) fn new(context: StudyContext) -> Self {
        Self {
            context,
            ready: None,
        }
    }

    fn prepare(&self, set: &'static str, watch: &mut dyn RunWatch) -> Result<PreparedNetwork> {
        let StudyContext {
            plan,
            seed,
            threads,
            cache,
            ..
        } = &self.context;
        let lab = NetworkLab::open(&self.context, set, &plan.network.training)?;
        let recipe = lab.recipe(
            plan.network.width,
            trial_seed(*seed, 43, plan.network.width as u64),
            *threads,
        );
        let name = cache_name(lab.name, plan.network.width);
        let (network, training) = trained(cache, &name, &recipe, &lab.rows, watch)?;
        let encoded = network.encode(&lab.rows)?;
        let network = network.with_head(&recipe.head, &encoded)?;
        let test = network.features(&lab.test)?;
        Ok(PreparedNetwork {
            lab,
            recipe,
            network,
            training,
            encoded,
            test,
            sisa: None,
        })
    }
}

impl PreparedNetwork {
    /// Seconds and accuracy of a network trained from scratch on these rows.
    fn retrain(&self, rows: &Rows, gone: &[RowId]) -> Result<Values> {
        let start = Instant::now();
        let trained = self.recipe.train(rows, &mut QuietTraining)?;
        let seconds = start.elapsed().as_secs_f64();
        self.whole(&trained.network, seconds, rows.len(), gone)
    }

    /// Seconds and accuracy of a network that a method trained further.
    fn further(&self, method: &Method, gone: &[RowId]) -> Result<Values> {
        let start = Instant::now();
        let tuned = train_further(
            method,
            self.network.backbone(),
            &self.lab.rows,
            gone,
            &mut QuietTraining,
        )?
        .trained;
        let seconds = start.elapsed().as_secs_f64();
        self.whole(&tuned.network, seconds, tuned.encoded.len(), gone)
    }

    fn whole(
        &self,
        network: &Network,
        seconds: f64,
        rows: usize,
        gone: &[RowId],
    ) -> Result<Values> {
        let test = network.features(&self.lab.test)?;
        let mut values = self.left(network, gone)?;
        values.insert("s".into(), seconds);
        values.insert("accuracy".into(), self.lab.accuracy(network.head(), &test)?);
        values.insert("rows".into(), rows as f64);
        Ok(values)
    }

    /// What a network makes of articles that this one learned: hits, loss, and steps until it knows
    /// them as well again.
    fn left(&self, network: &Network, gone: &[RowId]) -> Result<Values> {
        let articles = self.lab.rows.filter(|id| gone.contains(&id));
        let hits = utility(network.head(), Task::Classes, &network.encode(&articles)?)?.accuracy;
        let target = self.network.backbone().training_loss(&articles)?;
        let rate = f64::from(self.recipe.training.learning_rate) * RELEARNING_RATE;
        let time = network
            .backbone()
            .relearn(&articles, target, RELEARNING_STEPS, rate)?;
        // Who is not back within the limit counts as one that took it all; the page says so.
        let steps = time.steps.unwrap_or(RELEARNING_STEPS);
        Ok(Values::from([
            ("forgotten accuracy".into(), hits.unwrap_or(0.0)),
            ("forgotten loss".into(), time.start_loss),
            ("relearning steps".into(), steps as f64),
        ]))
    }

    fn sisa(&mut self, shards: usize, seed: u64, gone: &[RowId]) -> Result<Values> {
        if self.sisa.is_none() {
            self.sisa = Some(
                Sisa::new(ShardRecipe::new(self.recipe.clone())?, shards, 1)
                    .seed(seed)
                    .fit(&self.lab.rows)?,
            );
        }
        let Some(model) = &self.sisa else {
            return Ok(Values::new());
        };
        let start = Instant::now();
        let outcome = SisaForget.forget(model, &self.lab.rows, gone)?;
        let seconds = start.elapsed().as_secs_f64();
        let accuracy = self.voted(&outcome.model)?;
        let bytes = kept_bytes(&outcome.evidence);
        Ok(Values::from([
            ("s".into(), seconds),
            ("accuracy".into(), accuracy),
            ("kept bytes".into(), bytes),
        ]))
    }

    fn voted(&self, model: &SisaModel<ShardRecipe>) -> Result<f64> {
        let scores = model.predict(&self.lab.test)?;
        let right = self.lab.answers.iter().enumerate().filter(|&(at, answer)| {
            let line: Vec<f64> = (0..scores.ncols()).map(|c| scores[(at, c)]).collect();
            self.lab.classes.decide(&line) == *answer
        });
        Ok(right.count() as f64 / self.lab.answers.len().max(1) as f64)
    }

    fn heads(&self, gone: &[RowId]) -> Result<Values> {
        let before = self.lab.accuracy(self.network.head(), &self.test)?;
        let mut values = Values::from([
            ("accuracy before".into(), before),
            ("training s".into(), self.training),
            ("rows".into(), self.encoded.len() as f64),
            (
                "twins".into(),
                duplicates(&self.lab.rows, gone)?.surviving() as f64,
            ),
        ]);
        values.extend(self.left(&self.network, gone)?);
        let methods = METHODS
            .into_iter()
            .chain([("retrain_head", "retrain head")]);
        for (method, name) in methods {
            let method = Method::named(method)?;
            let start = Instant::now();
            let outcome = self.network.forget(&method, &self.encoded, gone)?;
            values.insert(format!("{name} s"), start.elapsed().as_secs_f64());
            let accuracy = self.lab.accuracy(outcome.model.head(), &self.test)?;
            values.insert(format!("{name} accuracy"), accuracy);
            values.insert(format!("{name} kept bytes"), kept_bytes(&outcome.evidence));
        }
        Ok(values)
    }
}

impl StudyMeasure for NetworkTimesStudy {
    fn jobs(&self) -> Vec<StudyJob> {
        let plan = &self.context.plan.network;
        let training = training_cost(&self.context);
        let mut jobs = Vec::new();
        for set in sets(&self.context, true) {
            for trial in 0..plan.runs {
                let cost = if trial == 0 { training } else { 1.0 };
                jobs.push(StudyJob {
                    study: PaperStudy::NetworkTimes,
                    cell: cell(set, HEADS),
                    trial,
                    cost,
                });
            }
            for what in TRAINED.into_iter().chain(FURTHER) {
                for trial in 0..plan.retrainings {
                    let twice = if what == "sisa" && trial == 0 {
                        2.0
                    } else {
                        1.0
                    };
                    let cost = training * twice;
                    jobs.push(StudyJob {
                        study: PaperStudy::NetworkTimes,
                        cell: cell(set, what),
                        trial,
                        cost,
                    });
                }
            }
        }
        jobs
    }

    fn run(&mut self, job: &StudyJob, watch: &mut dyn RunWatch) -> Result<Values> {
        let whats = || TRAINED.into_iter().chain(FURTHER).chain([HEADS]);
        let mut places = sets(&self.context, true)
            .into_iter()
            .flat_map(|set| whats().map(move |what| (set, what)));
        let Some((set, what)) = places.find(|(set, what)| cell(set, what) == job.cell) else {
            return Ok(Values::new());
        };
        if self.ready.as_ref().is_none_or(|(at, _)| *at != set) {
            self.ready = None;
            self.ready = Some((set, self.prepare(set, watch)?));
        }
        let StudyContext {
            plan, data, seed, ..
        } = &self.context;
        let Some((_, ready)) = &mut self.ready else {
            return Ok(Values::new());
        };
        let ids: Vec<RowId> = ready.lab.rows.ids().collect();
        let gone = choose(
            &ids,
            plan.network.deletions,
            trial_seed(*seed, 60, job.trial as u64),
        );
        match what {
            "retrain" => ready.retrain(&without(&ready.lab.rows, &gone), &gone),
            "retrain, augmented" => {
                // Of articles that go, nothing must stay in other words.
                let stay = ready
                    .lab
                    .texts
                    .iter()
                    .zip(&ids)
                    .filter(|(_, id)| !gone.contains(id));
                let stay: Vec<LabelledText> = stay.map(|(text, _)| text.clone()).collect();
                let texts = augmented(
                    data,
                    &stay,
                    plan.network.augmented,
                    trial_seed(*seed, 61, 0),
                )?;
                let mut rows = without(&ready.lab.rows, &gone);
                rows.append(&ready.lab.more_rows(&texts)?)?;
                ready.retrain(&rows, &gone)
            }
            "sisa" => ready.sisa(plan.network.shards, *seed, &gone),
            method => match Method::named(method) {
                Ok(method) => ready.further(&method, &gone),
                Err(_) => ready.heads(&gone),
            },
        }
    }
}
