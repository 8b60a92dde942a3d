//! Table 3 and the figures: the feature injection test in the head of a network. One network a
//! width is trained; the injected feature is appended to what its head reads, so that every trial
//! is a fit and a forget of the head alone.

use efface::eval::{feature_injection, inject};
use efface::methods::SisaForget;
use efface::models::sisa::ShardCheckpoint;
use efface::{
    Aggregation, Fit, Forget, Method, Recipe, Ridge, RowId, RowStore, Rows, Sisa, SisaModel,
};

use super::networks::{HEAD_LAMBDA, NetworkLab, cache_name, sets, trained};
use super::{
    BEFORE_CLEARING, METHODS, SPEED, StudyContext, StudyJob, StudyMeasure, kept_bytes,
    left_before_clearing,
};
use crate::draw::{choose, trial_seed};
use crate::error::Result;
use crate::part::PaperStudy;
use crate::state::Values;
use crate::watch::RunWatch;

pub(super) struct HeadInjectionStudy {
    context: StudyContext,
    lab: Option<NetworkLab>,
    /// The width at hand and its head's rows.
    ready: Option<(usize, Rows)>,
}

pub(crate) fn cell(k: usize, width: usize) -> String {
    format!("k={k}, d={width}")
}

impl HeadInjectionStudy {
    pub(super) fn new(context: StudyContext) -> Self {
        Self {
            context,
            lab: None,
            ready: None,
        }
    }

    fn encoded(&mut self, width: usize, watch: &mut dyn RunWatch) -> Result<&Rows> {
        if self.ready.as_ref().is_none_or(|(at, _)| *at != width) {
            let StudyContext {
                plan,
                seed,
                threads,
                cache,
                ..
            } = &self.context;
            let set = sets(&self.context, false)[0];
            let lab = match self.lab.take() {
                Some(lab) => lab,
                None => NetworkLab::open(&self.context, set, &plan.head.training)?,
            };
            let recipe = lab.recipe(width, trial_seed(*seed, 43, width as u64), *threads);
            let name = cache_name(lab.name, width);
            let (network, _) = trained(cache, &name, &recipe, &lab.rows, watch)?;
            self.ready = Some((width, network.encode(&lab.rows)?));
            self.lab = Some(lab);
        }
        match &self.ready {
            Some((_, rows)) => Ok(rows),
            None => Err(efface::Error::NoRows.into()),
        }
    }
}

/// The length of the mean weight on some columns, over the shards that have a say.
fn mean_weight(model: &SisaModel<Ridge>, columns: std::ops::Range<usize>) -> f64 {
    let mut sums = vec![0.0; columns.len() * model.outputs()];
    let mut shards = 0.0f64;
    for answer in model.answers() {
        let ShardCheckpoint::Trained(ridge) = answer else {
            continue;
        };
        let (table, _) = ridge.parameters();
        let weights = columns
            .clone()
            .flat_map(|row| (0..table.ncols()).map(move |c| (row, c)));
        sums.iter_mut()
            .zip(weights)
            .for_each(|(sum, at)| *sum += table[at]);
        shards += 1.0;
    }
    sums.iter().map(|sum| sum * sum).sum::<f64>().sqrt() / shards.max(1.0)
}

impl StudyMeasure for HeadInjectionStudy {
    fn jobs(&self) -> Vec<StudyJob> {
        let plan = &self.context.plan.head;
        let mut jobs = Vec::new();
        for &width in &plan.widths {
            let d = width as f64;
            let n = if self.context.data.is_real() {
                1780.0
            } else {
                0.8 * plan.training.articles as f64
            };
            let fit = (n * d * d + d * d * d) / SPEED;
            for trial in 0..plan.trials {
                for (at, &k) in plan.deletions.iter().enumerate() {
                    let training = if trial + at == 0 {
                        training_cost(&self.context)
                    } else {
                        0.0
                    };
                    let cost = training + fit * (4.0 + 2.0 * plan.shards as f64);
                    jobs.push(StudyJob {
                        study: PaperStudy::HeadInjection,
                        cell: cell(k, width),
                        trial,
                        cost,
                    });
                }
            }
        }
        jobs
    }

    fn run(&mut self, job: &StudyJob, watch: &mut dyn RunWatch) -> Result<Values> {
        let plan = self.context.plan.head.clone();
        let mut places = plan
            .widths
            .iter()
            .flat_map(|&d| plan.deletions.iter().map(move |&k| (k, d)));
        let Some((k, width)) = places.find(|(k, d)| cell(*k, *d) == job.cell) else {
            return Ok(Values::new());
        };
        let seed = self.context.seed;
        let threads = self.context.threads;
        let encoded = self.encoded(width, watch)?;
        let ids: Vec<RowId> = encoded.ids().collect();
        let gone = choose(&ids, k, trial_seed(seed, 50 + k as u64, job.trial as u64));
        let head = Ridge::new(HEAD_LAMBDA).threads(threads);
        let ways = METHODS.map(|(method, _)| Method::named(method));
        let ways: Vec<Method> = ways.into_iter().collect::<efface::Result<_>>()?;
        let found = feature_injection(&Recipe::new(head), encoded, &gone, &ways)?;
        let mut values = Values::from([
            ("before".into(), found.before),
            ("retrain".into(), found.retrained / found.before),
        ]);
        for (way, (_, name)) in found.ways.iter().zip(METHODS) {
            values.insert(name.into(), way.ratio);
            values.insert("kept bytes".into(), kept_bytes(&way.evidence));
            if way.method == "exact" {
                values.insert(
                    BEFORE_CLEARING.into(),
                    left_before_clearing(&way.evidence, found.before),
                );
            }
        }
        let injected = inject(encoded, &gone)?;
        let columns = encoded.width()..injected.width();
        let sisa = Sisa::new(head, plan.shards, 1)
            .aggregation(Aggregation::Mean)
            .seed(seed)
            .fit(&injected)?;
        let before = mean_weight(&sisa, columns.clone());
        let after = SisaForget.forget(&sisa, &injected, &gone)?;
        values.insert("SISA".into(), mean_weight(&after.model, columns) / before);
        Ok(values)
    }
}

/// The estimated seconds of a training on two cores.
pub(super) fn training_cost(context: &StudyContext) -> f64 {
    let training = &context.plan.head.training;
    let texts = if context.data.is_real() {
        2225.0
    } else {
        training.articles as f64
    };
    let work = texts
        * training.max_tokens as f64
        * training.epochs as f64
        * (training.hidden as f64 + 40.0).powi(2);
    work / 3e9
}
