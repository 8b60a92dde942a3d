//! Requests to forget: which rows are meant, what came of it, and one effect for each name that a
//! caller gave. Requests that wait together and ask for the same method are one change, with a
//! receipt each.

mod answer;
mod identity;
mod method;
mod plan;
mod sort;

use std::cell::Cell;

use efface::{Model, Outcome, RowId};
use efface_receipt::{ReceiptSigner, RequestKind, RequestOutcome};

use self::plan::ForgetPlan;
use self::sort::SortedRequests;
use super::change::{OpenedChange, RowChange, idle_evidence};
use super::network::{self, NetworkRenewal};
use super::open_model::OpenModel;
use super::parameters;
use super::report::ChangeReport;
use super::request::{ForgetOptions, ForgetRequest};
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::{ReceiptDraft, TrustedTree, copies};
use crate::progress::{Progress, Silent};

pub(crate) use self::answer::{KeptAnswer, replay};
pub(crate) use self::identity::check_name;
pub(crate) use self::method::{check_class_weights, without};
pub(crate) use self::plan::{RequestName, preview_rows, selected_rows};

/// Answers requests in their order. Neighbours that ask for the same method are applied as one
/// change.
pub(crate) fn forget(
    model: &OpenModel,
    requests: &[ForgetRequest],
    options: &ForgetOptions<'_>,
) -> Vec<Result<ChangeReport>> {
    let mut answers = Vec::with_capacity(requests.len());
    for together in requests.chunk_by(asks_alike) {
        match forget_together(model, together, options) {
            Ok(group) => answers.extend(group),
            // One of them spoils it for all: each has to stand for itself.
            Err(Error::Core(_) | Error::ClassEmptied { .. }) if together.len() > 1 => {
                for request in together {
                    answers.extend(forget(model, std::slice::from_ref(request), options));
                }
            }
            // The file cannot be changed, whichever request asks; trying each would only take as
            // many times as long.
            Err(error) => {
                answers.extend(together[1..].iter().map(|_| Err(error.again())));
                answers.push(Err(error));
            }
        }
    }
    answers
}

/// Whether two requests ask for the same method with the same settings.
fn asks_alike(a: &ForgetRequest, b: &ForgetRequest) -> bool {
    a.method == b.method
        && a.clear_dead_columns == b.clear_dead_columns
        && a.allow_worse == b.allow_worse
        && a.new_seed == b.new_seed
}

/// Answers requests as one change. All must ask for the same method.
fn forget_together(
    model: &OpenModel,
    requests: &[ForgetRequest],
    options: &ForgetOptions<'_>,
) -> Result<Vec<Result<ChangeReport>>> {
    let Some(first) = requests.first() else {
        return Ok(Vec::new());
    };
    let mut change = OpenedChange::begin(model, !options.dry_run)?;
    let signer = if options.dry_run {
        None
    } else {
        Some(change.signing_key()?)
    };
    let named: usize = requests.iter().map(ForgetRequest::named_rows).sum();
    let progress: &dyn Progress = if named < BULK {
        &Silent
    } else {
        options.progress
    };
    progress.start("looking rows up", None);
    let SortedRequests {
        plans,
        mut answers,
        twins,
        answered,
    } = sort::sort_out(&change, requests)?;
    let gone: Vec<RowId> = plans.iter().flat_map(|plan| &plan.rows).copied().collect();
    let progress: &dyn Progress = if gone.len() < BULK {
        &Silent
    } else {
        options.progress
    };
    let answered = Cell::new(answered);
    let group = RequestGroup {
        requests,
        plans: &plans,
        signer: signer.as_deref(),
        progress,
        answered,
    };
    let reports = if plans.is_empty() {
        Vec::new()
    } else if gone.is_empty() {
        group.nothing_found(change)?
    } else {
        progress.start("working out the model without them", None);
        let worked = method::without(&mut change, first, &gone, options);
        match worked.map_err(|error| change.name_rows(error)) {
            Ok((outcome, renewal)) => group.erase(change, gone, outcome, renewal)?,
            // Which of them is at fault only shows when each stands for itself.
            Err(error) if requests.len() > 1 => return Err(error),
            Err(error) => group.refuse(change, error)?,
        }
    };
    for (plan, report) in plans.iter().zip(reports) {
        answers[plan.at] = Some(Ok(report));
    }
    for (at, twin) in twins {
        if let Some(Some(Ok(report))) = answers.get(twin) {
            answers[at] = Some(Ok(ChangeReport {
                replayed: true,
                ..report.clone()
            }));
        }
    }
    Ok(answers
        .into_iter()
        .map(|answer| answer.unwrap_or(Err(Error::EmptyRequest)))
        .collect())
}

/// Requests that are applied as one change.
struct RequestGroup<'a> {
    requests: &'a [ForgetRequest],
    /// What is to be done for those of them that were not answered before.
    plans: &'a [ForgetPlan],
    /// None in a dry run, which writes nothing.
    signer: Option<&'a dyn ReceiptSigner>,
    progress: &'a dyn Progress,
    /// What is known of the table that the answers are entered in.
    answered: Cell<TrustedTree>,
}

/// Rows of a request from which on it tells how far it is. Fewer are gone before anybody could read
/// it.
const BULK: usize = 1000;

impl RequestGroup<'_> {
    /// Takes the rows out of model and file.
    fn erase(
        &self,
        change: OpenedChange<'_>,
        gone: Vec<RowId>,
        outcome: Outcome<Model>,
        renewal: Option<NetworkRenewal>,
    ) -> Result<Vec<ChangeReport>> {
        let started = change.started;
        let received_at = change.received_at;
        self.progress.start("reading the rows that leave", None);
        // What would change is told in a dry run.
        let before = match self.signer {
            None => Some(parameters::numbers(change.store(), &change.manifest)?),
            Some(_) => None,
        };
        let first = &self.requests[self.plans[0].at];
        let erased = self
            .plans
            .iter()
            .filter(|plan| !plan.rows.is_empty())
            .count() as u64;
        let deferrable = Some(erased);
        let people = self.plans.iter().filter_map(|plan| plan.subject.as_ref());
        let subjects = people.map(|subject| subject.value.clone()).collect();
        let mut planned = change.plan(RowChange {
            outcome,
            gone,
            forgets: true,
            subjects,
            new: None,
            renewal,
            deferrable,
        })?;
        let manifest = &mut planned.opened.manifest;
        manifest.policy.count(erased, manifest.ledger.newest);
        let release = manifest.policy.release();
        let tuning = network::tuning_record(&first.method, manifest.network.as_ref());
        let findings = planned
            .findings(&first.method)
            .with_tuning(tuning)
            .with_option("clear_dead_columns", first.clear_dead_columns)
            .with_option("allow_worse", first.allow_worse);
        let mut leaves = planned.departed().into_iter();
        let mut drafts = Vec::with_capacity(self.plans.len());
        let mut kept = Vec::with_capacity(self.plans.len());
        for plan in self.plans {
            let outcome = plan.outcome();
            let mut draft = self.draft(plan, outcome, received_at);
            if !plan.rows.is_empty() {
                draft.gone = leaves.by_ref().take(plan.rows.len()).collect();
                draft.findings = Some(findings.clone());
                draft.release = Some(release.clone());
            }
            drafts.push(draft);
            let mut evidence = planned.evidence.clone();
            evidence.forgotten = plan.rows.len();
            let mut answer = KeptAnswer::new(outcome, plan, evidence);
            answer.dropped = planned.dropped;
            answer.scrubbed = planned.is_scrubbing();
            kept.push(answer);
        }
        let Some(signer) = self.signer else {
            let (in_use, _) = planned
                .opened
                .store()
                .with(|connection| copies::count(connection))?;
            let new = planned
                .model()
                .parameters()
                .map(|new| parameters::numbers_of(&new));
            let moved = before
                .zip(new.ok())
                .and_then(|(old, new)| relative_distance(&old, &new));
            for answer in &mut kept {
                answer.withdrawn = in_use as usize;
                answer.moved = moved;
            }
            return Ok(answer::reports(
                kept,
                &[],
                started.elapsed().as_secs_f64(),
                true,
            ));
        };
        let applied = planned.apply(self.progress)?;
        for answer in &mut kept {
            answer.withdrawn = applied.withdrawn;
        }
        let mut signed = applied.sign(signer, drafts)?;
        answer::record(&mut signed, self.plans, &mut kept, self.answered.take())?;
        let receipts = signed.commit()?;
        Ok(answer::reports(
            kept,
            &receipts,
            started.elapsed().as_secs_f64(),
            false,
        ))
    }

    /// None of the rows was there: the log says so, and the model stays as it is.
    fn nothing_found(&self, change: OpenedChange<'_>) -> Result<Vec<ChangeReport>> {
        let evidence = idle_evidence(&change.manifest);
        let mut drafts = Vec::with_capacity(self.plans.len());
        let mut kept = Vec::with_capacity(self.plans.len());
        for plan in self.plans {
            drafts.push(self.draft(plan, RequestOutcome::NotFound, change.received_at));
            kept.push(KeptAnswer::new(
                RequestOutcome::NotFound,
                plan,
                evidence.clone(),
            ));
        }
        self.note(change, kept, drafts)
    }

    /// The mathematics, or a rule, says no. A request that has a name gets a receipt for that.
    fn refuse(&self, change: OpenedChange<'_>, error: Error) -> Result<Vec<ChangeReport>> {
        let [plan] = self.plans else {
            return Err(error);
        };
        // A caller who stopped a training, or gave it too little time, may ask again, under the same
        // name.
        if matches!(error, Error::Interrupted | Error::TooLong { .. })
            || plan.name.is_none()
            || error.kind() != ErrorKind::Refused
            || self.signer.is_none()
        {
            return Err(error);
        }
        let mut draft = self.draft(plan, RequestOutcome::Refused, change.received_at);
        draft.reason = Some(error.to_string());
        let mut answer = KeptAnswer::new(
            RequestOutcome::Refused,
            plan,
            idle_evidence(&change.manifest),
        );
        answer.reason = draft.reason.clone();
        self.note(change, vec![answer], vec![draft])
    }

    /// Writes receipts that change nothing else.
    fn note(
        &self,
        change: OpenedChange<'_>,
        mut kept: Vec<KeptAnswer>,
        drafts: Vec<ReceiptDraft>,
    ) -> Result<Vec<ChangeReport>> {
        let started = change.started;
        let Some(signer) = self.signer else {
            return Ok(answer::reports(
                kept,
                &[],
                started.elapsed().as_secs_f64(),
                true,
            ));
        };
        let unchanged = change.unchanged();
        let mut signed = change.sign(signer, &unchanged, drafts)?;
        answer::record(&mut signed, self.plans, &mut kept, self.answered.take())?;
        let receipts = signed.commit()?;
        Ok(answer::reports(
            kept,
            &receipts,
            started.elapsed().as_secs_f64(),
            false,
        ))
    }

    fn draft(
        &self,
        plan: &ForgetPlan,
        outcome: RequestOutcome,
        received_at: efface_receipt::Time,
    ) -> ReceiptDraft {
        let mut draft = ReceiptDraft::new(RequestKind::Forget, outcome, received_at);
        draft.request = plan.name.map(|name| name.commitment);
        draft.requested_at = self.requests[plan.at].requested_at;
        draft.subject = plan.subject.as_ref().map(|subject| subject.commitment);
        draft.reason = plan.reason(outcome);
        draft
    }
}

/// ‖new − old‖ / ‖old‖; None where the two cannot be compared, or nothing was there.
fn relative_distance(old: &[f64], new: &[f64]) -> Option<f64> {
    let norm = |numbers: &mut dyn Iterator<Item = f64>| {
        numbers.map(|number| number * number).sum::<f64>().sqrt()
    };
    let size = norm(&mut old.iter().copied());
    let distance = norm(&mut old.iter().zip(new).map(|(old, new)| new - old));
    let ratio = distance / size;
    (old.len() == new.len() && ratio.is_finite()).then_some(ratio)
}
