//! Runs every method on one request and compares what comes out with retraining.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use efface::synthetic::{PLANTED_USER, PLANTED_WORD, Review};
use efface::{Amend, Family, Fit, Forget, Method, Ridge, RidgeModel, RowStore, methods};
use efface_engine::Progress;
use serde::Serialize;

use super::data::DemoData;
use super::receipt::ReceiptResult;
use crate::failure::{Failure, Result};

/// The penalty that `efface fit` takes where none is given, so that the demo's model is the one a
/// user gets.
const LAMBDA: f64 = 1.0;

/// What the demo found out.
#[derive(Debug, Serialize)]
pub(super) struct DemoReport {
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
    pub(super) methods: Vec<MethodResult>,
    pub(super) ordinary: OrdinaryResult,
    pub(super) learned_back: LearnedBack,
    pub(super) receipt: ReceiptResult,
}

/// One method on the rows of the person with a word of their own.
#[derive(Debug, Serialize)]
pub(super) struct MethodResult {
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

/// The method `exact` on the rows of somebody without a word of their own, which is the usual
/// request.
#[derive(Debug, Serialize)]
pub(super) struct OrdinaryResult {
    pub(super) subject: String,
    pub(super) forgotten: usize,
    pub(super) relative_bound: f64,
    pub(super) seconds: f64,
    pub(super) times_faster: f64,
}

/// The forgotten rows are put in again.
#[derive(Debug, Serialize)]
pub(super) struct LearnedBack {
    pub(super) rows: usize,
    /// The distance to the model before the forget, relative to its norm.
    pub(super) distance: f64,
    pub(super) seconds: f64,
}

impl DemoReport {
    pub(super) fn make(
        reviews: &[Review],
        vocabulary: usize,
        threads: usize,
        progress: &dyn Progress,
    ) -> Result<Self> {
        progress.start("reading reviews", None);
        let data = DemoData::make(reviews, vocabulary)?;
        progress.start("fitting", None);
        let begin = Instant::now();
        let model = Ridge::new(LAMBDA).threads(threads).fit(&data.rows)?;
        let fit_seconds = begin.elapsed().as_secs_f64();
        let retrained = methods::Retrain
            .forget(&model, &data.rows, &data.planted_rows)?
            .model;
        let mut tried = Vec::new();
        for method in Method::all_for(Family::Ridge) {
            progress.start(method.name(), None);
            tried.push(MethodResult::measure(&method, &model, &retrained, &data)?);
        }
        let retraining = tried
            .iter()
            .find(|t| t.method == "retrain")
            .map_or(f64::NAN, |t| t.seconds);
        tried
            .iter_mut()
            .for_each(|t| t.times_faster = retraining / t.seconds);
        let ordinary = OrdinaryResult::measure(&model, &data, retraining)?;
        let learned_back = LearnedBack::measure(&model, &data)?;
        progress.start("model file and receipt", None);
        let receipt = ReceiptResult::measure(reviews)?;
        progress.finish();
        Ok(Self {
            reviews: data.rows.len(),
            people: data.people,
            words: data.words,
            lambda: LAMBDA,
            threads,
            fit_seconds,
            subject: PLANTED_USER,
            forgotten: data.planted_rows.len(),
            planted_word: PLANTED_WORD,
            weight_before: weight(&model, data.planted_feature),
            methods: tried,
            ordinary,
            learned_back,
            receipt,
        })
    }
}

impl MethodResult {
    fn measure(
        method: &dyn Forget<RidgeModel>,
        model: &RidgeModel,
        retrained: &RidgeModel,
        data: &DemoData,
    ) -> Result<Self> {
        let timed = Timed::run(|| Ok(method.forget(model, &data.rows, &data.planted_rows)?))?;
        let evidence = &timed.result.evidence;
        Ok(Self {
            method: method.name(),
            claim: evidence.claim().name(),
            distance: distance(&timed.result.model, retrained),
            relative_bound: evidence.bound / norm(&parameters(retrained)),
            bound: evidence.bound,
            weight_after: weight(&timed.result.model, data.planted_feature),
            seconds: timed.median_seconds,
            runs: timed.runs,
            times_faster: f64::NAN,
        })
    }
}

impl OrdinaryResult {
    /// `retraining` is the time of the method `retrain`: it does not depend on whose rows are left
    /// out.
    fn measure(model: &RidgeModel, data: &DemoData, retraining: f64) -> Result<Self> {
        let timed =
            Timed::run(|| Ok(methods::Exact.forget(model, &data.rows, &data.other_rows)?))?;
        Ok(Self {
            subject: data.other_person.clone(),
            forgotten: data.other_rows.len(),
            relative_bound: timed.result.evidence.relative_bound,
            seconds: timed.median_seconds,
            times_faster: retraining / timed.median_seconds,
        })
    }
}

impl LearnedBack {
    fn measure(model: &RidgeModel, data: &DemoData) -> Result<Self> {
        let without = methods::Exact
            .forget(model, &data.rows, &data.planted_rows)?
            .model;
        let gone: HashSet<_> = data.planted_rows.iter().copied().collect();
        let kept = data.rows.filter(|id| !gone.contains(&id));
        let theirs = data.rows.filter(|id| gone.contains(&id));
        let timed = Timed::run(|| Ok(without.learn(&kept, &theirs)?))?;
        let distance = distance(&timed.result.model, model);
        Ok(Self {
            rows: theirs.len(),
            distance,
            seconds: timed.median_seconds,
        })
    }
}

/// The result of repeated work, and how long it took.
struct Timed<T> {
    result: T,
    median_seconds: f64,
    runs: usize,
}

impl<T> Timed<T> {
    /// Runs the work once to warm up, then at least three times, and up to 51 times while it is
    /// cheap.
    fn run(mut work: impl FnMut() -> Result<T>) -> Result<Self> {
        const ENOUGH: Duration = Duration::from_millis(300);
        const MOST: usize = 51;
        let mut result = work()?;
        let mut times = Vec::new();
        let begin = Instant::now();
        while times.len() < 3 || (begin.elapsed() < ENOUGH && times.len() < MOST) {
            let start = Instant::now();
            let next = work()?;
            times.push(start.elapsed().as_secs_f64());
            // The last result is dropped here, outside the measured time.
            result = next;
        }
        times.sort_by(f64::total_cmp);
        let median = times.get(times.len() / 2).copied();
        let median_seconds = median.ok_or_else(|| Failure::internal("nothing was timed"))?;
        Ok(Self {
            result,
            median_seconds,
            runs: times.len(),
        })
    }
}

fn weight(model: &RidgeModel, feature: usize) -> f64 {
    model.parameters().0[(feature, 0)]
}

/// ‖a − b‖ / ‖b‖ over coefficients and constants.
fn distance(a: &RidgeModel, b: &RidgeModel) -> f64 {
    let reference = parameters(b);
    let apart: Vec<f64> = parameters(a)
        .iter()
        .zip(&reference)
        .map(|(x, y)| x - y)
        .collect();
    norm(&apart) / norm(&reference)
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
