//! Runs every method on one request and compares what comes out with retraining.

use std::time::{Duration, Instant};

use efface::synthetic::{PLANTED_USER, PLANTED_WORD};
use efface::{Amend, Fit, Forget, Outcome, Ridge, RidgeModel, RowStore, methods};
use efface_engine::Progress;
use serde::Serialize;

use super::data::Data;
use crate::failure::{Failure, Result};

const LAMBDA: f64 = 1e-4;

/// What the demo found out.
#[derive(Debug, Serialize)]
pub(super) struct Comparison {
    pub(super) reviews: usize,
    pub(super) people: usize,
    pub(super) words: usize,
    pub(super) lambda: f64,
    pub(super) threads: usize,
    pub(super) fit_seconds: f64,
    pub(super) subject: &'static str,
    pub(super) forgotten: usize,
    pub(super) planted_word: &'static str,
    pub(super) weight_before: f64,
    pub(super) methods: Vec<Tried>,
    pub(super) learned_back: LearnedBack,
}

/// One method.
#[derive(Debug, Serialize)]
pub(super) struct Tried {
    pub(super) method: &'static str,
    pub(super) claim: &'static str,
    /// ‖θ − θ_retrained‖ / ‖θ_retrained‖, constant included.
    pub(super) distance: f64,
    /// The method's own upper bound on that number, which it gives without retraining.
    pub(super) relative_bound: f64,
    pub(super) bound: f64,
    pub(super) weight_after: f64,
    /// The median over `runs`.
    pub(super) seconds: f64,
    pub(super) runs: usize,
    pub(super) times_faster: f64,
}

/// The person's rows are put in again.
#[derive(Debug, Serialize)]
pub(super) struct LearnedBack {
    pub(super) rows: usize,
    /// The distance to the model before the forget, relative to its norm.
    pub(super) distance: f64,
    pub(super) seconds: f64,
}

impl Comparison {
    pub(super) fn make(vocabulary: usize, threads: usize, progress: &dyn Progress) -> Result<Self> {
        progress.start("writing reviews", None);
        let data = Data::make(vocabulary)?;
        progress.start("fitting", None);
        let begin = Instant::now();
        let model = Ridge::new(LAMBDA).threads(threads).fit(&data.rows)?;
        let fit_seconds = begin.elapsed().as_secs_f64();
        let retrained = methods::Retrain.forget(&model, &data.rows, &data.gone)?.model;
        let mut tried = Vec::new();
        for method in methods::for_ridge() {
            progress.start(method.name(), None);
            tried.push(Tried::try_out(&*method, &model, &retrained, &data)?);
        }
        let slow = tried.iter().find(|t| t.method == "retrain").map_or(f64::NAN, |t| t.seconds);
        tried.iter_mut().for_each(|t| t.times_faster = slow / t.seconds);
        let learned_back = LearnedBack::try_out(&model, &data)?;
        progress.finish();
        Ok(Self {
            reviews: data.rows.len(),
            people: data.people,
            words: data.words,
            lambda: LAMBDA,
            threads,
            fit_seconds,
            subject: PLANTED_USER,
            forgotten: data.gone.len(),
            planted_word: PLANTED_WORD,
            weight_before: weight(&model, data.planted),
            methods: tried,
            learned_back,
        })
    }
}

impl Tried {
    fn try_out(
        method: &dyn Forget<RidgeModel>,
        model: &RidgeModel,
        retrained: &RidgeModel,
        data: &Data,
    ) -> Result<Self> {
        let (Outcome { model: next, evidence }, seconds, runs) =
            timed(|| Ok(method.forget(model, &data.rows, &data.gone)?))?;
        Ok(Self {
            method: method.name(),
            claim: evidence.claim().name(),
            distance: distance(&next, retrained),
            relative_bound: evidence.bound / norm(&parameters(retrained)),
            bound: evidence.bound,
            weight_after: weight(&next, data.planted),
            seconds,
            runs,
            times_faster: f64::NAN,
        })
    }
}

impl LearnedBack {
    fn try_out(model: &RidgeModel, data: &Data) -> Result<Self> {
        let without = methods::Exact.forget(model, &data.rows, &data.gone)?.model;
        let gone: std::collections::HashSet<_> = data.gone.iter().copied().collect();
        let (kept, theirs) =
            (data.rows.filter(|id| !gone.contains(&id)), data.rows.filter(|id| gone.contains(&id)));
        let (outcome, seconds, _) = timed(|| Ok(without.learn(&kept, &theirs)?))?;
        Ok(Self { rows: theirs.len(), distance: distance(&outcome.model, model), seconds })
    }
}

/// The last result, the median time and the number of runs: at least three, and up to 51 while they are cheap.
fn timed<T>(mut run: impl FnMut() -> Result<T>) -> Result<(T, f64, usize)> {
    const ENOUGH: Duration = Duration::from_millis(400);
    const MOST: usize = 51;
    let mut times = Vec::new();
    let mut last = run()?;
    let begin = Instant::now();
    while times.len() < 3 || (begin.elapsed() < ENOUGH && times.len() < MOST) {
        let start = Instant::now();
        let next = run()?;
        times.push(start.elapsed().as_secs_f64());
        last = next;
    }
    times.sort_by(f64::total_cmp);
    let median = times.get(times.len() / 2).copied();
    Ok((last, median.ok_or_else(|| Failure::internal("nothing was timed"))?, times.len()))
}

fn weight(model: &RidgeModel, feature: usize) -> f64 {
    model.parameters().0[(feature, 0)]
}

/// ‖a − b‖ / ‖b‖ over coefficients and constants.
fn distance(a: &RidgeModel, b: &RidgeModel) -> f64 {
    let (a, b) = (parameters(a), parameters(b));
    let apart: Vec<f64> = a.iter().zip(&b).map(|(x, y)| x - y).collect();
    norm(&apart) / norm(&b)
}

fn parameters(model: &RidgeModel) -> Vec<f64> {
    let (coefficients, constants) = model.parameters();
    let columns = 0..coefficients.ncols();
    let values = columns.flat_map(|output| coefficients.col_as_slice(output).to_vec());
    values.chain(constants).collect()
}

fn norm(values: &[f64]) -> f64 {
    values.iter().map(|value| value.powi(2)).sum::<f64>().sqrt()
}
