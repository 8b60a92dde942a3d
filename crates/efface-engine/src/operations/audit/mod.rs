//! Whether a model forgets, measured on the model at hand. The file is read and not changed: rows
//! to forget are forgotten in a copy in memory, and a model is truly retrained without them for
//! comparison.
//!
//! Twins come first: a row that stays under another id makes every other number about it
//! meaningless. Then, for every method, the distance to the retrained model, how soon it would know
//! the rows again, what is left of an injected feature, what it costs the others, and what
//! attackers can tell, which takes many models (the oracles) and most of the time.

mod record;
mod report;
mod whole;

pub(crate) use record::record_audit;
pub use report::{AuditReport, AuditRequest, AuditRows, StateReport, TwinReport};

use efface::models::{MethodOptions, RecipeTask};
use std::collections::HashSet;
use std::time::Instant;

use efface::eval::{
    self, Bootstrap, LinearRelearning, Task, Trials, duplicates, feature_injection,
    membership_inference, population_threshold, utility, with_twins,
};
use efface::methods::table;
use efface::{Fit, Hint, Method, Model, NotCovered, Recipe, RowId, RowStore, Rows, Setting};

use crate::codec::feature_rows::features;
use crate::error::{Error, Result};
use crate::operations::change::OpenedChange;
use crate::operations::forget::selected_rows;
use crate::operations::open_model::OpenModel;
use crate::operations::row_source::RowSource;
use crate::progress::Progress;
use whole::WholeNetwork;

/// The longest list of twins that is given by id.
const MOST_TWINS: usize = 100;

/// All that is needed of a model file, in memory.
struct AuditSubject {
    recipe: Recipe,
    task: Task,
    /// The model as it is in the file.
    model: Model,
    /// All rows, those to forget included.
    rows: Rows,
    gone: Vec<RowId>,
    gone_before: bool,
    held_out: Option<Rows>,
    twins: TwinReport,
    not_claimed: Vec<String>,
    left_out: Vec<String>,
    /// The network as a whole, where methods that train it further are compared.
    whole: Option<WholeNetwork>,
}

pub(crate) fn audit(
    model: &OpenModel,
    request: &AuditRequest,
    progress: &(dyn Progress + Sync),
) -> Result<AuditReport> {
    let started = Instant::now();
    if request.methods.contains(&Method::RetrainHead) {
        let mut known = table::method_names();
        known.retain(|name| *name != Method::RetrainHead.name());
        return Err(Error::UnknownMethod {
            name: Method::RetrainHead.name().into(),
            known,
        });
    }
    let mut subject = read(model, request, progress)?;
    let ways = subject.ways(request)?;
    progress.start("retraining and forgetting", None);
    let mut states = subject.states(&ways, request)?;
    if let Some(whole) = &subject.whole {
        states.extend(whole.states(&subject.gone, request.seed, progress)?);
        subject.left_out.push(whole.left_out());
    }
    let injection = subject.injection(&ways)?;
    progress.finish();
    let membership = subject.membership(&ways, request, progress)?;
    let AuditSubject { rows, gone, .. } = &subject;
    Ok(AuditReport {
        model: subject.recipe.describe().name,
        task: subject.task,
        rows: rows.len(),
        features: rows.width(),
        forgotten: gone.len(),
        gone_before: subject.gone_before,
        seed: request.seed,
        twins: subject.twins,
        states,
        injection,
        membership,
        left_out: subject.left_out,
        not_claimed: subject.not_claimed,
        seconds: started.elapsed().as_secs_f64(),
    })
}

/// Reads the model and everything about it in one transaction, which ends here: others may write
/// while the audit works.
fn read(
    model: &OpenModel,
    request: &AuditRequest,
    progress: &(dyn Progress + Sync),
) -> Result<AuditSubject> {
    let change = OpenedChange::begin(model, false)?;
    let recipe = change.manifest.model.recipe.clone();
    let task = match (recipe.describe().task, change.manifest.blueprint.classes()) {
        (RecipeTask::Clusters, _) => Task::Clusters,
        (_, Some(_)) => Task::Classes,
        (_, None) => Task::Regression,
    };
    if change
        .manifest
        .network
        .as_ref()
        .is_some_and(|network| network.shards.is_some())
    {
        let reason =
            "an oracle would train the network of every shard anew; audit a network in one piece";
        return Err(efface::Error::Unsupported {
            method: "audit",
            reason: reason.into(),
        }
        .into());
    }
    let fitted = change.current_model()?.as_ref().clone();
    let mut rows = change.feature_rows().all()?.into_owned();
    // Of a network, the head is audited: rows are what the encoder made of them.
    let texts = change.text_encoder()?;
    let mut whole = WholeNetwork::read(
        &model.store,
        &change.manifest,
        &change.rows(),
        &request.methods,
    )?;
    let mut left_out = Vec::new();
    let mut next = change.manifest.next_row;
    let mut from_file = |source: &RowSource, what: &str| -> Result<(Rows, Vec<Vec<u32>>)> {
        let mut batch = change.gather(source, texts.as_ref(), progress)?;
        if batch.unknown > 0 {
            left_out.push(format!(
                "{} words or levels of the {what}: the model has no feature for them, or none any more",
                batch.unknown
            ));
        }
        // Without ids of their own, rows get positions that the model has not given yet.
        batch.number(change.manifest.next_position);
        let here = change.are_here(&batch.ids)?;
        if let Some(at) = here.iter().position(|here| *here) {
            return Err(Error::StillThere {
                id: batch.ids[at].clone(),
                line: batch.lines[at],
            });
        }
        let numbers: Vec<RowId> = (next..).take(batch.len()).map(RowId).collect();
        next += numbers.len() as u64;
        let read = change.encoded(batch, numbers, texts.as_ref(), progress)?;
        let rows = features(
            &read.rows,
            change.encoder.as_ref(),
            &change.manifest.blueprint,
        )?
        .into_owned();
        Ok((rows, read.words))
    };
    let mut gone = Vec::new();
    let mut gone_before = false;
    match &request.rows {
        AuditRows::Present(who) => gone = selected_rows(&change, who)?,
        AuditRows::Sample(count) => gone = sample(&rows, *count, request.seed)?,
        AuditRows::Gone(source) => {
            if whole.is_some() {
                return Err(Error::request(
                    "rows that left before cannot be forgotten by training further",
                    Hint::new("name rows that the model holds, with {}, {} or {}")
                        .name(Setting::Forget)
                        .name(Setting::Subject)
                        .name(Setting::Sample),
                ));
            }
            let (old, _) = from_file(source, "forgotten rows")?;
            gone.extend(old.ids());
            rows.append(&old)?;
            gone_before = true;
        }
    }
    let held_out = request
        .held_out
        .as_ref()
        .map(|source| from_file(source, "held-out rows"))
        .transpose()?;
    let held_out = match (held_out, &mut whole) {
        (Some((rows, words)), Some(whole)) => {
            whole.hold_out(&words, &rows)?;
            Some(rows)
        }
        (held_out, _) => held_out.map(|(rows, _)| rows),
    };
    let asked = gone.len();
    if request.with_twins && !gone_before {
        gone = with_twins(&rows, &gone)?;
    }
    let found = duplicates(&rows, &gone)?;
    let mut ids = Vec::new();
    for row in found
        .survivors
        .iter()
        .flat_map(|twins| &twins.twins)
        .take(MOST_TWINS)
    {
        ids.extend(change.id_of(*row)?);
    }
    let twins = TwinReport::new(&found, ids, gone.len() - asked);
    let not_claimed = not_claimed(change.left_behind()?);
    Ok(AuditSubject {
        recipe,
        task,
        model: fitted,
        rows,
        gone,
        gone_before,
        held_out,
        twins,
        not_claimed,
        left_out,
        whole,
    })
}

impl AuditSubject {
    /// The methods to compare. A model that had forgotten before is measured as it is; methods only
    /// matter to the attacks then.
    fn ways(&self, request: &AuditRequest) -> Result<Vec<Method>> {
        let family = self.recipe.family();
        let mut methods: Vec<Method> = Vec::new();
        for method in &request.methods {
            // Methods that train a network further are compared with a network that is trained
            // anew.
            if *method == Method::Retrain || method.trains_further() || methods.contains(method) {
                continue;
            }
            if !method.is_for(family) {
                let reason = table::refusal(method.name(), family);
                return Err(efface::Error::Unsupported {
                    method: method.name(),
                    reason,
                }
                .into());
            }
            methods.push(*method);
        }
        if request.methods.is_empty() {
            methods.push(Method::default());
        }
        Ok(methods)
    }

    /// Every state of the model, and how far it is from the one that retraining gives.
    fn states(&mut self, ways: &[Method], request: &AuditRequest) -> Result<Vec<StateReport>> {
        if self.gone.len() >= self.rows.len() {
            return Err(efface::Error::NothingLeft {
                gone: self.gone.len(),
                rows: self.rows.len(),
            }
            .into());
        }
        let out: HashSet<RowId> = self.gone.iter().copied().collect();
        let retained = self.rows.filter(|id| !out.contains(&id));
        let forgotten = self.rows.filter(|id| out.contains(&id));
        let started = Instant::now();
        let retrained = self.recipe.fit(&retained)?;
        let retraining = started.elapsed().as_secs_f64();
        let mut states = Vec::new();
        let before = if self.gone_before {
            self.recipe.fit(&self.rows)?
        } else {
            self.model.clone()
        };
        states.push(("before".to_owned(), None, None));
        let mut after: Vec<Model> = vec![before.clone(), retrained.clone()];
        states.push(("retrain".to_owned(), None, Some(retraining)));
        if self.gone_before {
            states.push(("model".to_owned(), None, None));
            after.push(self.model.clone());
        } else {
            for way in ways {
                let started = Instant::now();
                let outcome = self.model.forget_with(
                    way,
                    MethodOptions::measured(),
                    &self.rows,
                    &self.gone,
                )?;
                let seconds = started.elapsed().as_secs_f64();
                states.push((way.name().to_owned(), Some(outcome.evidence), Some(seconds)));
                after.push(outcome.model);
            }
        }
        let bootstrap = Bootstrap {
            seed: request.seed,
            ..Bootstrap::default()
        };
        let relearning = self.relearning(&before, &retrained, &forgotten)?;
        let mut reports = Vec::new();
        for ((state, evidence, seconds), model) in states.into_iter().zip(&after) {
            let look = |rows: &Rows| utility(model, self.task, rows);
            let against = |unseen: &Rows| {
                population_threshold(model, self.task, &forgotten, unseen, &bootstrap)
            };
            let is_truth = state == "retrain";
            let distance = || eval::distance(&before, model, &retrained, self.task, &self.rows);
            reports.push(StateReport {
                distance: if is_truth { None } else { Some(distance()?) },
                relearning: relearning
                    .as_ref()
                    .map(|steps| steps.measure(model))
                    .transpose()?,
                retained: look(&retained)?,
                forgotten: look(&forgotten)?,
                held_out: self.held_out.as_ref().map(look).transpose()?,
                population: self.held_out.as_ref().map(against).transpose()?,
                state,
                evidence,
                seconds,
            });
        }
        Ok(reports)
    }

    /// How relearning is measured; None, with a reason, for models that are not trained by
    /// gradients.
    fn relearning(
        &mut self,
        before: &Model,
        retrained: &Model,
        forgotten: &Rows,
    ) -> Result<Option<LinearRelearning>> {
        match LinearRelearning::new(&self.recipe, before, retrained, forgotten) {
            Ok(found) => Ok(Some(found)),
            Err(error @ (efface::Error::Unsupported { .. } | efface::Error::NoWeight)) => {
                self.left_out.push(format!("relearning time: {error}"));
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn injection(&mut self, ways: &[Method]) -> Result<Option<eval::Injection>> {
        match feature_injection(&self.recipe, &self.rows, &self.gone, ways) {
            Ok(found) => Ok(Some(found)),
            // A model without weights, or rows whose targets are 0, have no injected feature to
            // look at.
            Err(error @ (efface::Error::Unsupported { .. } | efface::Error::Parameter { .. })) => {
                self.left_out.push(format!("feature injection: {error}"));
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn membership(
        &mut self,
        ways: &[Method],
        request: &AuditRequest,
        progress: &(dyn Progress + Sync),
    ) -> Result<Option<eval::Membership>> {
        if request.oracles == 0 {
            self.left_out
                .push("the attacks: no oracles were asked for".into());
            return Ok(None);
        }
        let trials = Trials {
            oracles: request.oracles,
            keep: request.keep,
            seed: request.seed,
            threads: request.threads,
            ..Trials::default()
        };
        progress.start(
            "fitting oracles",
            Some(request.oracles.next_multiple_of(4) as u64),
        );
        let at = |done: usize, _: usize| progress.at(done as u64);
        let found = membership_inference(
            &self.recipe,
            self.task,
            &self.rows,
            &self.gone,
            ways,
            &trials,
            &at,
        );
        progress.finish();
        Ok(Some(found?))
    }
}

/// So many rows at random; a seed fixes them.
fn sample(rows: &Rows, count: usize, seed: u64) -> Result<Vec<RowId>> {
    if count == 0 || count >= rows.len() {
        let range = "1 or more, and fewer than the model has rows";
        return Err(efface::Error::Parameter {
            name: "sample",
            value: count.to_string(),
            range,
        }
        .into());
    }
    Ok(eval::sample(rows, count, seed))
}

/// What an audit does not show, and what the model itself says it cannot undo.
fn not_claimed(left_behind: Vec<NotCovered>) -> Vec<String> {
    let general = [
        "that no attack succeeds: those tried here are published ones, and stronger ones may come",
        "that other copies of the rows are gone: backups, exports and models made elsewhere are not looked at",
        "anything of rows other than those named: another request needs another audit",
        "that people cannot be told from what similar people left behind: what all rows say together is not forgotten",
    ];
    let mut own: Vec<String> = Vec::new();
    for what in left_behind.iter().map(NotCovered::to_string) {
        if !own.contains(&what) {
            own.push(what);
        }
    }
    general.into_iter().map(String::from).chain(own).collect()
}
