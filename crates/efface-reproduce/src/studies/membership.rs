//! Membership inference: can an attacker with many models of their own tell that a forgotten row
//! was once there? Not in the paper, but the question behind it. U-LiRA with retrained oracles, on
//! reviews.

use efface::eval::{Task, Trials, duplicates, membership_inference};
use efface::{Method, Recipe, Ridge, RowId, RowStore};

use super::{METHODS, StudyContext, StudyJob, StudyMeasure};
use crate::data::{REVIEWS, count_rows, reviews};
use crate::draw::{choose, trial_seed};
use crate::error::Result;
use crate::part::PaperStudy;
use crate::plan::LAMBDA;
use crate::state::Values;
use crate::watch::RunWatch;

pub(super) struct MembershipStudy {
    context: StudyContext,
}

/// There is one cell: all methods are attacked in the same games.
pub(crate) const CELL: &str = "reviews";

impl MembershipStudy {
    pub(super) fn new(context: StudyContext) -> Self {
        Self { context }
    }
}

impl StudyMeasure for MembershipStudy {
    fn jobs(&self) -> Vec<StudyJob> {
        let plan = &self.context.plan.membership;
        let d = plan.width as f64;
        let cost = plan.oracles as f64 * (d * d * plan.rows as f64 + d.powi(3)) * 4.0 / 2e9 + 1.0;
        vec![StudyJob {
            study: PaperStudy::Membership,
            cell: CELL.into(),
            trial: 0,
            cost,
        }]
    }

    fn run(&mut self, _job: &StudyJob, _watch: &mut dyn RunWatch) -> Result<Values> {
        let StudyContext {
            plan,
            data,
            seed,
            threads,
            ..
        } = &self.context;
        let plan = &plan.membership;
        let set = &REVIEWS[0];
        let texts = data.texts(set, || reviews(plan.rows.max(100), *seed))?;
        let rows = count_rows(
            set.name,
            &texts,
            plan.rows,
            plan.width,
            trial_seed(*seed, 70, 0),
        )?;
        let ids: Vec<RowId> = rows.ids().collect();
        let gone = choose(&ids, plan.forgotten, trial_seed(*seed, 71, 0));
        let recipe = Recipe::new(Ridge::new(LAMBDA));
        let ways = METHODS.map(|(method, _)| Method::named(method));
        let ways: Vec<Method> = ways.into_iter().collect::<efface::Result<_>>()?;
        let trials = Trials {
            oracles: plan.oracles,
            retained: plan.forgotten,
            threads: *threads,
            seed: trial_seed(*seed, 72, 0),
            ..Trials::default()
        };
        let found = membership_inference(
            &recipe,
            Task::Classes,
            &rows,
            &gone,
            &ways,
            &trials,
            &|_, _| {},
        )?;
        let mut values = Values::from([
            ("oracles".into(), found.oracles as f64),
            ("rows".into(), rows.len() as f64),
        ]);
        values.insert("twins".into(), duplicates(&rows, &gone)?.surviving() as f64);
        for exposure in &found.exposures {
            let known = METHODS.iter().find(|(method, _)| *method == exposure.state);
            let name = known.map_or(exposure.state.as_str(), |(_, name)| name);
            for (which, attack) in [
                ("forgotten", &exposure.forgotten),
                ("retained", &exposure.retained),
            ] {
                values.insert(format!("{name} {which} auc"), attack.auc);
                values.insert(format!("{name} {which} low"), attack.auc_interval.low);
                values.insert(format!("{name} {which} high"), attack.auc_interval.high);
                for rate in attack.rates.iter().filter(|rate| rate.fpr >= 0.009) {
                    values.insert(format!("{name} {which} tpr"), rate.tpr);
                }
            }
        }
        Ok(values)
    }
}
