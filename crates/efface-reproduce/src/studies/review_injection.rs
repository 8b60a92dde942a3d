//! Table 1 read as its caption has it: the feature injection test on reviews, for every number of
//! rows and of words. Each cell needs a fit of its own, because the injected column belongs to the
//! rows that will go.

use efface::eval::feature_injection;
use efface::{Method, RowId, Rows};

use super::{
    BEFORE_CLEARING, METHODS, SPEED, StudyContext, StudyJob, StudyMeasure, kept_bytes,
    left_before_clearing, recipe,
};
use crate::data::{LabelledText, REVIEWS, count_rows, reviews};
use crate::draw::{choose, trial_seed};
use crate::error::Result;
use crate::part::PaperStudy;
use crate::state::Values;
use crate::watch::RunWatch;

pub(super) struct ReviewInjectionStudy {
    context: StudyContext,
    reviews: Option<Vec<LabelledText>>,
    ready: Option<((usize, usize), Rows)>,
}

pub(crate) fn cell(k: usize, width: usize) -> String {
    format!("k={k}, d={width}")
}

/// Generated reviews have fewer words than the paper counts: there the widths are cut to what is
/// there.
pub(crate) fn widths(context: &StudyContext) -> Vec<usize> {
    if context.data.is_real() {
        context.plan.review_injection.widths.clone()
    } else {
        let most = context
            .plan
            .review_injection
            .widths
            .iter()
            .map(|&d| d.min(GENERATED_WORDS));
        let mut widths: Vec<usize> = most.collect();
        widths.dedup();
        widths
    }
}

/// Fewer distinct words than any 2,100 generated reviews have.
const GENERATED_WORDS: usize = 500;

impl ReviewInjectionStudy {
    pub(super) fn new(context: StudyContext) -> Self {
        Self {
            context,
            reviews: None,
            ready: None,
        }
    }

    fn rows(&mut self, width: usize, trial: usize) -> Result<&Rows> {
        if self
            .ready
            .as_ref()
            .is_none_or(|(at, _)| *at != (width, trial))
        {
            let plan = &self.context.plan.review_injection;
            let set = &REVIEWS[0];
            if self.reviews.is_none() {
                let generate = || reviews(plan.reviews, self.context.seed);
                self.reviews = Some(self.context.data.texts(set, generate)?);
            }
            let all = self.reviews.as_deref().unwrap_or_default();
            let seed = trial_seed(self.context.seed, 30, trial as u64);
            self.ready = Some((
                (width, trial),
                count_rows(set.name, all, plan.reviews, width, seed)?,
            ));
        }
        match &self.ready {
            Some((_, rows)) => Ok(rows),
            None => Err(efface::Error::NoRows.into()),
        }
    }
}

impl StudyMeasure for ReviewInjectionStudy {
    fn jobs(&self) -> Vec<StudyJob> {
        let plan = &self.context.plan.review_injection;
        let mut jobs = Vec::new();
        for trial in 0..plan.trials {
            for width in widths(&self.context) {
                for &k in &plan.deletions {
                    let cost = 3.0 * (width as f64).powi(3) / SPEED + 0.05;
                    jobs.push(StudyJob {
                        study: PaperStudy::ReviewInjection,
                        cell: cell(k, width),
                        trial,
                        cost,
                    });
                }
            }
        }
        jobs
    }

    fn run(&mut self, job: &StudyJob, _watch: &mut dyn RunWatch) -> Result<Values> {
        let deletions = self.context.plan.review_injection.deletions.clone();
        let places = widths(&self.context)
            .into_iter()
            .flat_map(|d| deletions.iter().map(move |&k| (k, d)));
        let Some((k, width)) = places.into_iter().find(|(k, d)| cell(*k, *d) == job.cell) else {
            return Ok(Values::new());
        };
        let seed = self.context.seed;
        let threads = self.context.threads;
        let rows = self.rows(width, job.trial)?;
        let ids: Vec<RowId> = rows.ids().collect();
        let gone = choose(&ids, k, trial_seed(seed, 31 + k as u64, job.trial as u64));
        let ways = METHODS.map(|(method, _)| Method::named(method));
        let ways: Vec<Method> = ways.into_iter().collect::<efface::Result<_>>()?;
        let found = feature_injection(&recipe(threads), rows, &gone, &ways)?;
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
        Ok(values)
    }
}
