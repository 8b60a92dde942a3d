//! Whether a model forgets, measured on the model at hand. The file is read and not changed: rows
//! to forget are forgotten in a copy in memory, and a model is truly retrained without them for
//! comparison, with the scales, weights of words, components and weights of classes that the other
//! rows give (`features.rs`).
//!
//! Twins come first: a row that stays under another id makes every other number about it
//! meaningless. Then, for every method, the distance to the retrained model, how soon it would know
//! the rows again, what is left of an injected feature, what it costs the others, and what
//! attackers can tell, which takes many models (the oracles) and most of the time.

mod features;
mod record;
mod report;
mod whole;

pub(crate) use record::record_audit;
pub use report::{AuditReport, AuditRequest, AuditRows, StateReport, TwinReport};

use efface::models::{MethodOptions, RecipeTask};
use std::borrow::Cow;
use std::collections::HashSet;
use std::time::Instant;

use efface::eval::{
    self, Bootstrap, LinearRelearning, ModelView, OracleSubject, Task, Trials, duplicates,
    feature_injection, population_threshold, utility, with_twins,
};
use efface::methods::table;
use efface::{
    Evidence, Fit, Hint, Method, Model, NotCovered, Recipe, RowId, RowStore, Rows, Setting,
};

use self::features::{AuditFeatures, FeatureView};
use crate::error::{Error, Result};
use crate::operations::change::OpenedChange;
use crate::operations::forget::{check_class_weights, selected_rows};
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
    /// All rows, those to forget included, in the features of this model.
    rows: Rows,
    /// The features that other models have of the same rows.
    features: AuditFeatures,
    gone: Vec<RowId>,
    gone_before: bool,
    /// The methods to compare, and what those gave whose features follow the rows.
    ways: Vec<(Method, Option<AuditedModel>)>,
    /// Rows that the model never saw, as a file would keep them.
    held_out: Option<Rows>,
    twins: TwinReport,
    not_claimed: Vec<String>,
    left_out: Vec<String>,
    /// The network as a whole, where its encoder was trained on the rows of the model.
    whole: Option<WholeNetwork>,
}

/// A model that is compared, and the features that it reads.
struct AuditedModel {
    name: String,
    evidence: Option<Evidence>,
    seconds: Option<f64>,
    model: Model,
    /// None for the features of the model in the file.
    view: Option<FeatureView>,
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
    let ways: Vec<Method> = subject.ways.iter().map(|(method, _)| *method).collect();
    progress.start("retraining and forgetting", None);
    let mut states = subject.states(request)?;
    let comparison = subject.comparison();
    if let Some(whole) = &subject.whole {
        states.extend(whole.states(&subject.gone, request.seed, progress)?);
        subject.left_out.push(whole.left_out());
    }
    let injection = subject.injection(&ways)?;
    progress.finish();
    let mut membership = subject.membership(&ways, request, progress)?;
    for exposure in membership.iter_mut().flat_map(|found| &mut found.exposures) {
        if exposure.state == Method::Retrain.name() {
            exposure.state = comparison.into();
        }
    }
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
        comparison,
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
    let mut change = OpenedChange::begin(model, false)?;
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
    let raw = change.rows().all()?.into_owned();
    let mut features = AuditFeatures::new(FeatureView::of_model(&change), raw, &recipe);
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
        Ok((read.rows, read.words))
    };
    let mut gone = Vec::new();
    let mut gone_before = false;
    match &request.rows {
        AuditRows::Present(who) => gone = selected_rows(&change, who)?,
        AuditRows::Sample(count) => gone = sample(&rows, *count, request.seed)?,
        AuditRows::Gone(source) => {
            if whole.as_ref().is_some_and(WholeNetwork::has_methods) {
                return Err(Error::request(
                    "rows that left before cannot be forgotten by training further",
                    Hint::new("name rows that the model holds, with {}, {} or {}")
                        .name(Setting::Forget)
                        .name(Setting::Subject)
                        .name(Setting::Sample),
                ));
            }
            let (old, words) = from_file(source, "forgotten rows")?;
            if let Some(whole) = &mut whole {
                whole.add_departed(&words, &old)?;
            }
            gone.extend(old.ids());
            rows.append(&features.model.rows(&old)?)?;
            features.add(&old)?;
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
    let mut ways = Vec::new();
    for method in compared(&recipe, request)? {
        check_class_weights(&change, &method)?;
        let follows = !gone_before && change.follows_rows(&method);
        let followed = follows.then(|| followed(&mut change, &method, &gone, progress));
        ways.push((method, followed.transpose()?.flatten()));
    }
    Ok(AuditSubject {
        recipe,
        task,
        model: fitted,
        rows,
        features,
        gone,
        gone_before,
        ways,
        held_out,
        twins,
        not_claimed,
        left_out,
        whole,
    })
}

/// The methods to compare. A model that had forgotten before is measured as it is; methods only
/// matter to the attacks then.
fn compared(recipe: &Recipe, request: &AuditRequest) -> Result<Vec<Method>> {
    let family = recipe.family();
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

/// The model after a method that its features follow, as a forget would leave it; None where the
/// features stay as they are.
fn followed(
    change: &mut OpenedChange<'_>,
    method: &Method,
    gone: &[RowId],
    progress: &dyn Progress,
) -> Result<Option<AuditedModel>> {
    let started = Instant::now();
    let Some(refitted) = change.try_refit(method, gone, progress)? else {
        return Ok(None);
    };
    let mut evidence = refitted.outcome.evidence;
    evidence.tolerance = method.tolerance().or(evidence.tolerance);
    Ok(Some(AuditedModel {
        name: method.name().to_owned(),
        evidence: Some(evidence),
        seconds: Some(started.elapsed().as_secs_f64()),
        model: refitted.outcome.model,
        view: Some(FeatureView {
            encoder: refitted.encoder,
            blueprint: refitted.blueprint,
        }),
    }))
}

impl AuditSubject {
    /// All rows as a model of these features sees them.
    fn seen_by(&self, view: Option<&FeatureView>) -> Result<Cow<'_, Rows>> {
        Ok(match view {
            Some(view) => Cow::Owned(view.rows(&self.features.raw)?),
            None => Cow::Borrowed(&self.rows),
        })
    }

    /// A model that is fitted on the rows with these ids, and on nothing that follows from others.
    fn fitted_on(&self, name: &str, members: &HashSet<RowId>) -> Result<AuditedModel> {
        let started = Instant::now();
        let view = self.features.view(members)?;
        let rows = self.seen_by(view.as_ref())?;
        let model = self.recipe.fit(&rows.filter(|id| members.contains(&id)))?;
        Ok(AuditedModel {
            name: name.to_owned(),
            evidence: None,
            seconds: Some(started.elapsed().as_secs_f64()),
            model,
            view,
        })
    }

    /// The models to compare: before, retrained, and after every method.
    fn compared_models(&mut self, out: &HashSet<RowId>) -> Result<Vec<AuditedModel>> {
        let in_file = |name: &str| AuditedModel {
            name: name.to_owned(),
            evidence: None,
            seconds: None,
            model: self.model.clone(),
            view: None,
        };
        let retained = self.rows.ids().filter(|id| !out.contains(id)).collect();
        let retrained = self.fitted_on(self.comparison(), &retained)?;
        if self.gone_before {
            let before = AuditedModel {
                seconds: None,
                ..self.fitted_on("before", &self.rows.ids().collect())?
            };
            return Ok(vec![before, retrained, in_file("model")]);
        }
        let mut models = vec![in_file("before"), retrained];
        for (method, followed) in &mut self.ways {
            if let Some(followed) = followed.take() {
                models.push(followed);
                continue;
            }
            let started = Instant::now();
            let outcome = self.model.forget_with(
                method,
                MethodOptions::measured(),
                &self.rows,
                &self.gone,
            )?;
            models.push(AuditedModel {
                name: method.name().to_owned(),
                evidence: Some(outcome.evidence),
                seconds: Some(started.elapsed().as_secs_f64()),
                model: outcome.model,
                view: None,
            });
        }
        Ok(models)
    }

    /// Returns the name of the model that the states are compared with: a retraining, or of a
    /// network whose encoder was trained on its rows a new head on that encoder.
    fn comparison(&self) -> &'static str {
        match &self.whole {
            Some(_) => Method::RetrainHead.name(),
            None => Method::Retrain.name(),
        }
    }

    /// Every state of the model, and how far it is from the one that retraining gives.
    fn states(&mut self, request: &AuditRequest) -> Result<Vec<StateReport>> {
        if self.gone.len() >= self.rows.len() {
            return Err(efface::Error::NothingLeft {
                gone: self.gone.len(),
                rows: self.rows.len(),
            }
            .into());
        }
        let out: HashSet<RowId> = self.gone.iter().copied().collect();
        let models = self.compared_models(&out)?;
        let [before, retrained, ..] = models.as_slice() else {
            return Ok(Vec::new());
        };
        let have_own_features = models.iter().any(|state| state.view.is_some());
        let names = |state: &AuditedModel| {
            let view = state.view.as_ref().unwrap_or(&self.features.model);
            have_own_features.then(|| view.names()).flatten()
        };
        let rows_before = self.seen_by(before.view.as_ref())?;
        let rows_retrained = self.seen_by(retrained.view.as_ref())?;
        let names_before = names(before);
        let names_retrained = names(retrained);
        let seen_before = ModelView {
            model: &before.model,
            rows: &rows_before,
            names: names_before.as_deref(),
        };
        let truth = ModelView {
            model: &retrained.model,
            rows: &rows_retrained,
            names: names_retrained.as_deref(),
        };
        let comparison = self.comparison();
        let bootstrap = Bootstrap {
            seed: request.seed,
            ..Bootstrap::default()
        };
        let mut left_out = Vec::new();
        let lesson_before = rows_before.filter(|id| out.contains(&id));
        let lesson = rows_retrained.filter(|id| out.contains(&id));
        let relearning = relearning(
            &self.recipe,
            ModelView::new(seen_before.model, &lesson_before),
            ModelView::new(truth.model, &lesson),
            &mut left_out,
        )?;
        let mut reports = Vec::new();
        for state in &models {
            let model = &state.model;
            let rows = self.seen_by(state.view.as_ref())?;
            let retained = rows.filter(|id| !out.contains(&id));
            let forgotten = rows.filter(|id| out.contains(&id));
            let own_view = state.view.as_ref().unwrap_or(&self.features.model);
            let held_out = self.held_out.as_ref().map(|raw| own_view.rows(raw));
            let held_out = held_out.transpose()?;
            let look = |rows: &Rows| utility(model, self.task, rows);
            let against = |unseen: &Rows| {
                population_threshold(model, self.task, &forgotten, unseen, &bootstrap)
            };
            let is_truth = state.name == comparison;
            let own_names = names(state);
            let seen = ModelView {
                model,
                rows: &rows,
                names: own_names.as_deref(),
            };
            let distance = || eval::distance_of_views(seen_before, seen, truth, self.task);
            reports.push(StateReport {
                distance: if is_truth { None } else { Some(distance()?) },
                relearning: relearning
                    .as_ref()
                    .map(|steps| steps.measure_view(ModelView::new(model, &forgotten)))
                    .transpose()?,
                retained: look(&retained)?,
                forgotten: look(&forgotten)?,
                held_out: held_out.as_ref().map(look).transpose()?,
                population: held_out.as_ref().map(against).transpose()?,
                state: state.name.clone(),
                evidence: state.evidence.clone(),
                seconds: state.seconds,
            });
        }
        self.left_out.extend(left_out);
        Ok(reports)
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
        let subject = OracleSubject {
            recipe: &self.recipe,
            task: self.task,
            rows: &self.rows,
            features: &self.features,
        };
        let found = subject.membership(&self.gone, ways, &trials, &at);
        progress.finish();
        Ok(Some(found?))
    }
}

/// Returns the measure of relearning; None, with a reason in `left_out`, for models that are not
/// trained by gradients.
fn relearning(
    recipe: &Recipe,
    before: ModelView<'_>,
    retrained: ModelView<'_>,
    left_out: &mut Vec<String>,
) -> Result<Option<LinearRelearning>> {
    match LinearRelearning::of_views(recipe, before, retrained) {
        Ok(found) => Ok(Some(found)),
        Err(error @ (efface::Error::Unsupported { .. } | efface::Error::NoWeight)) => {
            left_out.push(format!("relearning time: {error}"));
            Ok(None)
        }
        Err(error) => Err(error.into()),
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
