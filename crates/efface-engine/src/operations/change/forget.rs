//! Requests to forget: who is meant, what came of it, and one effect for each name that a caller gave.

use std::collections::{HashMap, HashSet};

use efface::{Evidence, Method, Outcome as Model, RowId};
use efface_receipt::{Hash, Kind, Label, Outcome, Signed, canonical, sha256};
use serde::{Deserialize, Serialize};

use super::told::{check_asked, tolerance};
use super::{Change, logged, report};
use crate::codec::model::Live;
use crate::codec::pack;
use crate::engine::Engine;
use crate::error::{Error, ErrorKind, Result};
use crate::file::FoundRows;
use crate::ledger::{self, ReceiptDraft, requests};
use crate::operations::network;
use crate::operations::report::ChangeReport;
use crate::operations::request::{ForgetRequest, RowSelection};
use crate::progress::Progress;

/// The longest name of a request.
const LONGEST: usize = 256;

/// A request and the rows that it is about.
struct ForgetPlan {
    at: usize,
    name: Option<(Hash, Hash)>,
    subject: Option<Hash>,
    rows: Vec<RowId>,
    missing: usize,
}

impl ForgetPlan {
    fn outcome(&self) -> Outcome {
        match (self.rows.len(), self.missing) {
            (0, _) => Outcome::NotFound,
            (_, 0) => Outcome::Erased,
            _ => Outcome::Partial,
        }
    }
}

/// What is kept of an answer.
#[derive(Serialize, Deserialize)]
struct KeptAnswer {
    id: String,
    outcome: String,
    reason: Option<String>,
    missing: usize,
    withdrawn: usize,
    dropped: usize,
    #[serde(default = "at_once")]
    scrubbed: bool,
    evidence: Evidence,
}

/// Older answers know of no other way.
fn at_once() -> bool {
    true
}

/// Answers requests as one change. All must ask for the same method; with `dry_run` nothing is written.
pub(crate) fn group(
    engine: &Engine,
    requests: &[ForgetRequest],
    dry_run: bool,
    progress: &dyn Progress,
) -> Result<Vec<Result<ChangeReport>>> {
    let Some(first) = requests.first() else { return Ok(Vec::new()) };
    let mut change = Change::begin(engine, !dry_run)?;
    let mut answers: Vec<Option<Result<ChangeReport>>> = requests.iter().map(|_| None).collect();
    let mut twins: Vec<(usize, usize)> = Vec::new();
    let plans = change.plan(requests, &mut answers, &mut twins)?;
    let gone: Vec<RowId> = plans.iter().flat_map(|plan| &plan.rows).copied().collect();
    if !plans.is_empty() {
        let reports = if gone.is_empty() {
            change.nothing(requests, &plans)
        } else {
            let outcome = change.without(first, &gone, progress).map_err(|error| change.name(error));
            match outcome {
                Ok(outcome) => change.erase(requests, &plans, outcome),
                // Which of them is at fault only shows when each stands for itself.
                Err(error) if requests.len() > 1 => return Err(error),
                Err(error) => change.refuse(requests, &plans, error),
            }
        }?;
        for (plan, report) in plans.iter().zip(reports) {
            answers[plan.at] = Some(Ok(report));
        }
    }
    for (at, twin) in twins {
        if let Some(Some(Ok(report))) = answers.get(twin) {
            answers[at] = Some(Ok(ChangeReport { replayed: true, ..report.clone() }));
        }
    }
    Ok(answers.into_iter().map(|answer| answer.unwrap_or(Err(Error::EmptyRequest))).collect())
}

impl Change<'_> {
    /// Sorts out which requests are new, and which rows they are about. Those that need no work are answered here.
    fn plan(
        &self,
        requests: &[ForgetRequest],
        answers: &mut [Option<Result<ChangeReport>>],
        twins: &mut Vec<(usize, usize)>,
    ) -> Result<Vec<ForgetPlan>> {
        let salt = ledger::salt(&self.manifest);
        let found = self.look_up(requests)?;
        let mut named: HashMap<Hash, (usize, Hash)> = HashMap::new();
        let mut taken: HashSet<RowId> = HashSet::new();
        let mut plans: Vec<ForgetPlan> = Vec::new();
        for (at, request) in requests.iter().enumerate() {
            let name = match &request.id {
                Some(id) => match check_name(id) {
                    Ok(id) => {
                        let body = salt.commit(Label::Request, &identity(request)?);
                        Some((salt.commit(Label::Request, id.as_bytes()), body))
                    }
                    Err(error) => {
                        answers[at] = Some(Err(error));
                        continue;
                    }
                },
                None => None,
            };
            if let Some((name, body)) = &name {
                let reused = || Error::RequestReused { id: request.id.clone().unwrap_or_default() };
                let known = match self.manifest.ledger {
                    Some(_) => self.store.with(|connection| requests::find(connection, name))?,
                    None => None,
                };
                if let Some(known) = known {
                    let same = *body == known.body;
                    answers[at] = Some(if same { self.replay(&known) } else { Err(reused()) });
                    continue;
                }
                if let Some((twin, asked)) = named.get(name) {
                    match asked == body {
                        true => twins.push((at, *twin)),
                        false => answers[at] = Some(Err(reused())),
                    }
                    continue;
                }
                named.insert(*name, (at, *body));
            }
            match self.resolve(request, &found, &taken) {
                Ok((rows, missing)) => {
                    taken.extend(&rows);
                    let subject = match &request.who {
                        RowSelection::Subject { value, .. } => {
                            Some(salt.commit(Label::Subject, value.trim().as_bytes()))
                        }
                        RowSelection::Ids(_) => None,
                    };
                    plans.push(ForgetPlan { at, name, subject, rows, missing });
                }
                Err(error) => answers[at] = Some(Err(error)),
            }
        }
        // Receipts of requests that change the model come first: all of them start from the model as it was.
        plans.sort_by_key(|plan| plan.rows.is_empty());
        Ok(plans)
    }

    /// The rows that somebody means, all of which must be here.
    pub(crate) fn meant(&self, who: &RowSelection) -> Result<Vec<RowId>> {
        let request = ForgetRequest::new(who.clone());
        let found = self.look_up(std::slice::from_ref(&request))?;
        Ok(self.resolve(&request, &found, &HashSet::new())?.0)
    }

    /// All names of all requests in one pass over the list of rows.
    fn look_up(&self, requests: &[ForgetRequest]) -> Result<FoundRows> {
        let (mut ids, mut subjects) = (Vec::new(), Vec::new());
        for request in requests {
            match &request.who {
                RowSelection::Ids(list) => ids.extend(list.iter().map(|id| id.trim())),
                RowSelection::Subject { value, .. } => subjects.push(value.trim()),
            }
        }
        self.directory(|directory| directory.look_up(&ids, &subjects))
    }

    /// The rows that a request is about, and how many of those that it names are not here.
    fn resolve(
        &self,
        request: &ForgetRequest,
        found: &FoundRows,
        taken: &HashSet<RowId>,
    ) -> Result<(Vec<RowId>, usize)> {
        match &request.who {
            RowSelection::Ids(ids) if ids.is_empty() => Err(Error::EmptyRequest),
            RowSelection::Ids(ids) => {
                let mut seen = HashSet::new();
                let mut rows = Vec::with_capacity(ids.len());
                for id in ids.iter().map(|id| id.trim()) {
                    if !seen.insert(id) {
                        return Err(Error::NamedTwice { id: id.into() });
                    }
                    match found.ids.get(id).map(|row| RowId(*row)).filter(|row| !taken.contains(row)) {
                        Some(row) => rows.push(row),
                        None if request.allow_missing => {}
                        None => return Err(self.absent(id)?),
                    }
                }
                let missing = ids.len() - rows.len();
                Ok((rows, missing))
            }
            RowSelection::Subject { column, value } => {
                if self.manifest.blueprint.subject.as_ref() != Some(column) {
                    let has = self.manifest.blueprint.subject.clone();
                    return Err(Error::SubjectColumn { asked: column.clone(), has });
                }
                let all = found.subjects.get(value.trim()).map_or(&[][..], Vec::as_slice);
                let rows: Vec<RowId> =
                    all.iter().map(|row| RowId(*row)).filter(|row| !taken.contains(row)).collect();
                if rows.is_empty() && !request.allow_missing && request.id.is_none() {
                    return Err(Error::UnknownSubject { column: column.clone(), value: value.clone() });
                }
                Ok((rows, 0))
            }
        }
    }

    /// Takes the rows out of model and file.
    fn erase(
        mut self,
        requests: &[ForgetRequest],
        plans: &[ForgetPlan],
        outcome: Model<Live>,
    ) -> Result<Vec<ChangeReport>> {
        for plan in plans {
            self.take_out(&plan.rows, true)?;
        }
        let erased = plans.iter().filter(|plan| !plan.rows.is_empty()).count() as u64;
        let method = &requests[plans[0].at].method;
        let worked = self.work(outcome, None, Some(erased))?;
        // Nothing has been committed yet.
        check_asked(&worked.evidence, method)?;
        let mut release = None;
        if let Some(ledger) = &self.manifest.ledger {
            let newest = ledger.newest;
            self.manifest.policy.count(erased, newest);
            release = Some(self.manifest.policy.release());
        }
        let findings = self
            .findings(&worked.evidence, method)
            .with_tuning(network::tuning_record(method, self.manifest.network.as_ref()))
            .with_cleared(requests[plans[0].at].clear_dead_columns);
        let mut leaves = self.gone.iter().map(|leaver| leaver.commitment);
        let mut entries = Vec::with_capacity(plans.len());
        for plan in plans {
            let mut entry = self.entry(&requests[plan.at], plan, plan.outcome());
            if !plan.rows.is_empty() {
                entry.gone = leaves.by_ref().take(plan.rows.len()).collect();
                entry.findings = Some(findings.clone());
                entry.release = release.clone();
            }
            entries.push(entry);
        }
        let answer = |plan: &ForgetPlan| {
            let mut evidence = worked.evidence.clone();
            evidence.forgotten = plan.rows.len();
            let outcome = plan.outcome();
            KeptAnswer {
                id: String::new(),
                outcome: word(outcome).into(),
                reason: reason(outcome, plan),
                missing: plan.missing,
                withdrawn: worked.withdrawn,
                dropped: self.dropped,
                scrubbed: worked.scrubbed,
                evidence,
            }
        };
        let mut kept: Vec<KeptAnswer> = plans.iter().map(answer).collect();
        let mut signed = Vec::new();
        if self.write() {
            signed = self.sign(&worked, entries)?;
            self.record(plans, &mut kept, &signed)?;
        }
        let (started, dry_run) = (self.started, !self.write());
        if !dry_run {
            self.commit(worked.model)?;
        }
        Ok(reports(kept, &signed, started.elapsed().as_secs_f64(), dry_run))
    }

    /// None of the rows was there: the log says so, and the model stays as it is.
    fn nothing(mut self, requests: &[ForgetRequest], plans: &[ForgetPlan]) -> Result<Vec<ChangeReport>> {
        let evidence = idle(&self);
        let kept = plans.iter().map(|plan| KeptAnswer {
            id: String::new(),
            outcome: word(Outcome::NotFound).into(),
            reason: reason(Outcome::NotFound, plan),
            missing: plan.missing,
            withdrawn: 0,
            dropped: 0,
            scrubbed: true,
            evidence: evidence.clone(),
        });
        let kept = kept.collect();
        let entries =
            plans.iter().map(|plan| self.entry(&requests[plan.at], plan, Outcome::NotFound)).collect();
        self.note(plans, kept, entries)
    }

    /// The mathematics, or a rule, says no. A request that has a name gets a receipt for that.
    fn refuse(
        mut self,
        requests: &[ForgetRequest],
        plans: &[ForgetPlan],
        error: Error,
    ) -> Result<Vec<ChangeReport>> {
        let [plan] = plans else { return Err(error) };
        // Whoever stopped a training may ask again, under the same name.
        if matches!(error, Error::Interrupted)
            || plan.name.is_none()
            || error.kind() != ErrorKind::Refused
            || !self.write()
        {
            return Err(error);
        }
        let mut entry = self.entry(&requests[plan.at], plan, Outcome::Refused);
        entry.reason = Some(error.to_string());
        let kept = KeptAnswer {
            id: String::new(),
            outcome: word(Outcome::Refused).into(),
            reason: entry.reason.clone(),
            missing: plan.missing,
            withdrawn: 0,
            dropped: 0,
            scrubbed: true,
            evidence: idle(&self),
        };
        self.note(plans, vec![kept], vec![entry])
    }

    /// Writes receipts that change nothing else.
    fn note(
        &mut self,
        plans: &[ForgetPlan],
        mut kept: Vec<KeptAnswer>,
        entries: Vec<ReceiptDraft>,
    ) -> Result<Vec<ChangeReport>> {
        let mut signed = Vec::new();
        if self.write() {
            let stage = self.standing();
            signed = self.append(&stage, entries)?;
            self.record(plans, &mut kept, &signed)?;
            // The model is the same, but the log has another root.
            let model = self.manifest.ledger.as_ref().map(|ledger| ledger.root);
            self.transaction.commit_now()?;
            if let Some(root) = model {
                self.engine.rename(root);
            }
        }
        let seconds = self.started.elapsed().as_secs_f64();
        Ok(reports(kept, &signed, seconds, !self.write()))
    }

    fn entry(&self, request: &ForgetRequest, plan: &ForgetPlan, outcome: Outcome) -> ReceiptDraft {
        let mut entry = ReceiptDraft::new(Kind::Forget, outcome, self.received_at);
        entry.request = plan.name.map(|(name, _)| name);
        entry.requested_at = request.requested_at;
        entry.subject = plan.subject;
        entry.reason = reason(outcome, plan);
        entry
    }

    /// Keeps the answers of requests that have names.
    fn record(&self, plans: &[ForgetPlan], kept: &mut [KeptAnswer], signed: &[Signed]) -> Result<()> {
        for ((plan, kept), signed) in plans.iter().zip(kept).zip(signed) {
            kept.id = signed.receipt.id.clone();
            let Some((name, body)) = plan.name else { continue };
            let answer = requests::AnsweredRequest {
                body,
                sequence: signed.receipt.sequence,
                result: pack::write(&*kept)?,
            };
            self.store.with(|connection| requests::record(connection, &name, &answer))?;
        }
        Ok(())
    }

    /// The first answer again.
    fn replay(&self, known: &requests::AnsweredRequest) -> Result<ChangeReport> {
        let mut kept: KeptAnswer = pack::read(&known.result).map_err(|fault| fault.at(self.store.path()))?;
        if kept.evidence.promise == efface::Claim::Exact {
            // An older efface kept the claim without the tolerance, which was the model's own.
            kept.evidence.tolerance.get_or_insert(tolerance(&self.manifest.model.recipe));
        }
        let receipt =
            Some(crate::operations::report::ReceiptPlace { id: kept.id.clone(), sequence: known.sequence });
        let report = told(kept, self.started.elapsed().as_secs_f64(), false);
        Ok(ChangeReport { replayed: true, receipt, ..report })
    }
}

fn reports(kept: Vec<KeptAnswer>, signed: &[Signed], seconds: f64, dry_run: bool) -> Vec<ChangeReport> {
    let told =
        |(at, kept)| ChangeReport { receipt: signed.get(at).map(logged), ..told(kept, seconds, dry_run) };
    kept.into_iter().enumerate().map(told).collect()
}

fn told(kept: KeptAnswer, seconds: f64, dry_run: bool) -> ChangeReport {
    let KeptAnswer { outcome, reason, missing, withdrawn, dropped, scrubbed, evidence, .. } = kept;
    ChangeReport {
        outcome,
        reason,
        missing,
        withdrawn,
        scrubbed,
        ..report(evidence, seconds, dry_run, dropped)
    }
}

/// The record of a request that did nothing.
pub(super) fn idle(change: &Change<'_>) -> Evidence {
    let head = &change.manifest.model;
    Evidence {
        method: "none".into(),
        reason: None,
        promise: efface::Claim::Approximate,
        tolerance: None,
        forgotten: 0,
        learned: 0,
        rows: change.manifest.rows as usize,
        rows_read: 0,
        largest_leverage: None,
        condition: None,
        directions_dropped: 0,
        iterations: 0,
        refinements: 0,
        refactored: false,
        resummed: false,
        gradient_norm: None,
        convexity: 0.0,
        bound: head.bound.unwrap_or(f64::INFINITY),
        relative_bound: head.relative_bound.unwrap_or(f64::INFINITY),
        bound_source: efface::BoundSource::Carried,
        certificate: None,
        cleared: None,
        precomputed: Vec::new(),
        not_covered: Vec::new(),
    }
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Erased => "erased",
        Outcome::Partial => "partial",
        Outcome::NotFound => "not_found",
        Outcome::Refused => "refused",
        Outcome::Done => "done",
    }
}

fn reason(outcome: Outcome, plan: &ForgetPlan) -> Option<String> {
    match (outcome, plan.subject) {
        (Outcome::Partial, _) => {
            Some(format!("{} of {} rows were not there", plan.missing, plan.missing + plan.rows.len()))
        }
        (Outcome::NotFound, Some(_)) => Some("no row of this subject is in the model".into()),
        (Outcome::NotFound, None) => Some("none of these rows is in the model".into()),
        _ => None,
    }
}

/// A name that can be kept apart from others: not empty, not long, printable.
fn check_name(id: &str) -> Result<&str> {
    let name = id.trim();
    if name.is_empty() || name.len() > LONGEST || name.chars().any(char::is_control) {
        return Err(Error::request(
            "a request id has 1 to 256 bytes and no control characters",
            "a ticket number or a UUID will do",
        ));
    }
    Ok(name)
}

/// The version of [`RequestIdentity`]. Requests of another version are other requests.
const IDENTITY_VERSION: u32 = 1;

/// All that makes two requests the same, in the form whose hash is kept. A field is never renamed or dropped within a version:
/// the hash decides whether a request that comes again is answered again or refused.
#[derive(Serialize)]
struct RequestIdentity<'a> {
    version: u32,
    rows: IdentifiedRows<'a>,
    method: &'a Method,
    clear_dead_columns: bool,
    allow_missing: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum IdentifiedRows<'a> {
    Ids(Vec<&'a str>),
    Subject { column: &'a str, value: &'a str },
}

/// The SHA-256 of what was asked, as canonical JSON (RFC 8785). Ids are a set, so that their order does not count.
fn identity(request: &ForgetRequest) -> Result<[u8; 32]> {
    let rows = match &request.who {
        RowSelection::Ids(ids) => {
            let mut ids: Vec<&str> = ids.iter().map(|id| id.trim()).collect();
            ids.sort_unstable();
            IdentifiedRows::Ids(ids)
        }
        RowSelection::Subject { column, value } => IdentifiedRows::Subject { column, value: value.trim() },
    };
    // JSON has no number for a setting that is none. Such a setting is out of its range in any case.
    request.method.check()?;
    let identity = RequestIdentity {
        version: IDENTITY_VERSION,
        rows,
        method: &request.method,
        clear_dead_columns: request.clear_dead_columns,
        allow_missing: request.allow_missing,
    };
    Ok(sha256(&canonical::to_bytes(&identity)?).0)
}

#[cfg(test)]
mod identity_tests {
    use efface::methods::{Newton, Scrub};

    use super::*;

    fn hex(request: &ForgetRequest) -> String {
        identity(request).unwrap().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// A change of these values makes every request that was answered before another one.
    #[test]
    fn the_identity_of_a_request_is_pinned() {
        let plain = ForgetRequest::new(RowSelection::Ids(vec![" r2".into(), "r1 ".into()]));
        let person = RowSelection::Subject { column: "user".into(), value: "é".into() };
        let full = ForgetRequest {
            method: Newton { steps: 3, measure: true }.into(),
            clear_dead_columns: true,
            allow_missing: true,
            id: Some("not part of it".into()),
            ..ForgetRequest::new(person)
        };
        let network = ForgetRequest {
            method: Scrub { learning_rate: Some(1e-7), ..Scrub::default() }.into(),
            ..plain.clone()
        };
        assert_eq!(
            [plain, full, network].map(|request| hex(&request)),
            [
                "25da588139891ac10e11d2b280d58172429635fba110c9da1dfd472616a7dbc3",
                "46bd039c65bdb8b024ca932f2a97356eeace435c1071b990cee56a937353480f",
                "5a0b474a704ecd45e2f80cc45352cece7e7c88fb8aecea8ec5d5d7be63a250c2"
            ]
            .map(String::from)
        );
    }

    #[test]
    fn what_is_asked_makes_another_request_and_the_order_of_ids_does_not() {
        let ids = |list: [&str; 2]| ForgetRequest::new(RowSelection::Ids(list.map(String::from).to_vec()));
        let one = ids(["a", "b"]);
        assert_eq!(hex(&one), hex(&ids(["b", "a"])));
        assert_ne!(hex(&one), hex(&ids(["a,b", ""])));
        assert_ne!(hex(&one), hex(&ForgetRequest { method: Method::Exact, ..one.clone() }));
        assert_ne!(hex(&one), hex(&ForgetRequest { allow_missing: true, ..one.clone() }));
        let nonsense = Newton { steps: 0, measure: false }.into();
        assert!(identity(&ForgetRequest { method: nonsense, ..one }).is_err());
    }
}
