//! The measurements, one file a study. A study lists its jobs and does them one by one; what it
//! needs for several (a fitted model, a trained network) it keeps between them. Everything goes
//! through efface's public API.

pub(crate) mod adaptive;
pub(crate) mod distance;
pub(crate) mod head_injection;
pub(crate) mod injection;
pub(crate) mod membership;
pub(crate) mod network_times;
pub(crate) mod networks;
pub(crate) mod review_injection;
pub(crate) mod times;

use std::path::PathBuf;
use std::time::Instant;

use efface::models::MethodOptions;
use efface::{Evidence, Method, Model, Recipe, Ridge, RowId, RowStore, Rows};

use crate::data::DataFolder;
use crate::error::Result;
use crate::part::PaperStudy;
use crate::plan::{LAMBDA, StudyPlan};
use crate::state::Values;
use crate::watch::RunWatch;

/// The methods of the paper beside ours, in the order of the tables, by the names of the core and
/// as the paper calls them.
pub(crate) const METHODS: [(&str, &str); 3] = [
    ("influence", "INF"),
    ("projection_residual", "PRU"),
    ("exact", "exact"),
];

/// Multiplications a second of two idle cores on large matrices, for estimates.
pub(crate) const SPEED: f64 = 5e10;

/// One trial to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StudyJob {
    pub(crate) study: PaperStudy,
    pub(crate) cell: String,
    pub(crate) trial: usize,
    /// Estimated seconds on two cores.
    pub(crate) cost: f64,
}

/// What all studies share.
#[derive(Debug, Clone)]
pub(crate) struct StudyContext {
    pub(crate) plan: StudyPlan,
    pub(crate) data: DataFolder,
    pub(crate) seed: u64,
    pub(crate) threads: usize,
    /// Where trained networks wait for the next job.
    pub(crate) cache: PathBuf,
}

/// A measurement that consists of jobs.
pub(crate) trait StudyMeasure {
    /// All its jobs, in the order in which they are best done.
    fn jobs(&self) -> Vec<StudyJob>;

    /// Does one of them.
    fn run(&mut self, job: &StudyJob, watch: &mut dyn RunWatch) -> Result<Values>;
}

/// The measurement of a study.
pub(crate) fn measure(study: PaperStudy, context: &StudyContext) -> Box<dyn StudyMeasure> {
    let context = context.clone();
    match study {
        PaperStudy::Times => Box::new(times::TimesStudy::new(context)),
        PaperStudy::ReviewInjection => {
            Box::new(review_injection::ReviewInjectionStudy::new(context))
        }
        PaperStudy::NetworkTimes => Box::new(network_times::NetworkTimesStudy::new(context)),
        PaperStudy::HeadInjection => Box::new(head_injection::HeadInjectionStudy::new(context)),
        PaperStudy::Injection => Box::new(injection::InjectionStudy::new(context)),
        PaperStudy::Distance => Box::new(distance::DistanceStudy::new(context)),
        PaperStudy::Adaptive => Box::new(adaptive::AdaptiveStudy::new(context)),
        PaperStudy::Membership => Box::new(membership::MembershipStudy::new(context)),
    }
}

/// The recipe of the linear studies: squared loss, the paper's penalty, no intercept.
pub(crate) fn ridge(threads: usize) -> Ridge {
    Ridge::new(LAMBDA).intercept(false).threads(threads)
}

pub(crate) fn recipe(threads: usize) -> Recipe {
    Recipe::new(ridge(threads))
}

/// A forget by name, and the seconds it took.
pub(crate) fn forget(
    method: &str,
    model: &Model,
    rows: &dyn RowStore,
    gone: &[RowId],
) -> Result<TimedForget> {
    let start = Instant::now();
    let outcome = model.forget_with(
        &Method::named(method)?,
        MethodOptions::measured(),
        rows,
        gone,
    )?;
    Ok(TimedForget {
        seconds: start.elapsed().as_secs_f64(),
        model: outcome.model,
        evidence: outcome.evidence,
    })
}

/// What came out of it.
pub(crate) struct TimedForget {
    pub(crate) seconds: f64,
    pub(crate) model: Model,
    pub(crate) evidence: Evidence,
}

/// The rows without some.
pub(crate) fn without(rows: &Rows, gone: &[RowId]) -> Rows {
    let gone: std::collections::HashSet<RowId> = gone.iter().copied().collect();
    rows.filter(|id| !gone.contains(&id))
}

/// The line of a table that says what the algebra of exact forgetting leaves of an injected weight,
/// before the column is set to 0 because counting found that no row has it any more.
pub(crate) const BEFORE_CLEARING: &str = "exact, before clearing";

/// That share of the weight before. Nothing is noted as cleared where the algebra itself left 0.
pub(crate) fn left_before_clearing(evidence: &Evidence, weight: f64) -> f64 {
    evidence
        .cleared
        .map_or(0.0, |cleared| cleared.norm / weight)
}

/// The memory of what was made ahead of time.
pub(crate) fn kept_bytes(evidence: &Evidence) -> f64 {
    evidence
        .precomputed
        .iter()
        .map(|part| part.bytes as f64)
        .sum()
}
