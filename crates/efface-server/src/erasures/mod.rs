//! Erasure requests between the door and the model: who must approve them, and how those that take
//! long survive a crash.

mod events;
mod keys;
mod order;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use efface_engine::{ChangeReport, ReceiptQuery};
use tokio::sync::oneshot;

pub(crate) use events::ErasureEvent;
pub(crate) use keys::KeyClaim;
pub(crate) use order::{ErasureOrder, ErasureTarget, RowChoice};

use self::keys::{KeysInUse, RequestIdentity};
use crate::app::ServiceState;
use crate::callbacks::CallbackDelivery;
use crate::problem::{Problem, ProblemCode};
use crate::registry::{ChangeOrder, ServedModel};

/// How long a request that found the model busy waits before it is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// What became of a request in one model.
#[derive(Debug)]
pub(crate) struct ModelAnswer {
    pub(crate) model: String,
    pub(crate) answer: Result<ChangeReport, Problem>,
}

impl ModelAnswer {
    /// Whether the model could not answer now, and may do so later.
    pub(crate) fn is_passing(&self) -> bool {
        let is_passing =
            |problem: &Problem| problem.is_passing() || problem.code == ProblemCode::ModelUnusable;
        self.answer.as_ref().err().is_some_and(is_passing)
    }
}

/// Where a request stands that is not done yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OpenState {
    /// It is being done, or waits for its turn.
    Running,
    /// Somebody else must approve it.
    AwaitingApproval {
        /// The token that asked.
        asked_by: String,
    },
}

/// The requests that were accepted and are not done yet. Those that are done are in the logs of the
/// models.
#[derive(Default)]
pub(crate) struct OpenErasures {
    open: Mutex<HashMap<String, (OpenState, ErasureOrder)>>,
    keys: KeysInUse,
    /// Held by whoever lets a request wait for approval, approves it or takes it back: of an
    /// approval and a withdrawal that come together, one is too late.
    turn: tokio::sync::Mutex<()>,
}

impl OpenErasures {
    pub(crate) fn state(&self, id: &str) -> Option<OpenState> {
        self.lock().get(id).map(|(state, _)| state.clone())
    }

    /// Where a request stands, and which models it is about.
    pub(crate) fn find(&self, id: &str) -> Option<(OpenState, ErasureTarget)> {
        self.lock()
            .get(id)
            .map(|(state, order)| (state.clone(), order.target.clone()))
    }

    fn identity(&self, id: &str) -> Option<RequestIdentity> {
        self.lock().get(id).map(|(_, order)| order.identity())
    }

    pub(crate) fn all(&self) -> Vec<(String, OpenState, ErasureTarget)> {
        let open = self.lock();
        let mut all: Vec<_> = open
            .iter()
            .map(|(id, (state, order))| (id.clone(), state.clone(), order.target.clone()))
            .collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    fn put(&self, state: OpenState, order: ErasureOrder) {
        self.lock().insert(order.id.clone(), (state, order));
    }

    fn remove(&self, id: &str) {
        self.lock().remove(id);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, (OpenState, ErasureOrder)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a caller hears of a request.
pub(crate) enum Submitted {
    /// It is done.
    Done(Vec<ModelAnswer>),
    /// It is written down and will be done.
    Accepted(OpenState),
}

/// Does a request, or writes it down if it takes longer than `patience`. The work goes on if the
/// caller goes away.
pub(crate) async fn submit(
    state: &Arc<ServiceState>,
    order: ErasureOrder,
    key: KeyClaim,
    patience: Duration,
) -> Result<Submitted, Problem> {
    // What somebody is to be told of is written down from the beginning.
    let is_written = !order.callbacks.is_empty();
    if is_written {
        write_down(state, OpenState::Running, order.clone()).await?;
    }
    run(state, order, key, is_written, patience).await
}

async fn run(
    state: &Arc<ServiceState>,
    order: ErasureOrder,
    key: KeyClaim,
    is_written: bool,
    patience: Duration,
) -> Result<Submitted, Problem> {
    let (tell, told) = oneshot::channel();
    let state = state.clone();
    tokio::spawn(async move {
        // Until the request is done, its key is for no other.
        let _key = key;
        let mut running = Box::pin(execute(&state, &order));
        let Ok(outcome) = tokio::time::timeout(patience, &mut running).await else {
            let written = write_down(&state, OpenState::Running, order.clone()).await;
            // If nobody listens any more, the logs will hold the answer.
            let _ = tell.send(written.map(|()| Submitted::Accepted(OpenState::Running)));
            let outcome = running.await;
            return finish(&state, order, outcome).await;
        };
        let mut left = None;
        if is_written {
            // Whoever hears of a failure at once need not be called.
            let is_done = outcome
                .as_ref()
                .is_ok_and(|answers| answers.iter().any(|model| model.answer.is_ok()));
            let event = if is_done {
                outcome.as_deref().ok().map(ErasureEvent::Done)
            } else {
                None
            };
            let deliveries = event.map_or_else(Vec::new, |event| {
                event.deliveries(&order, &state.settings.clock)
            });
            left = conclude(&state, &order.id, deliveries).await.err();
        }
        let _ = tell.send(outcome.map(Submitted::Done));
        if let Some(deliveries) = left {
            conclude_later(&state, &order.id, deliveries).await;
        }
    });
    told.await.map_err(lost)?
}

/// Writes a request down that somebody else must approve.
pub(crate) async fn hold_for_approval(
    state: &Arc<ServiceState>,
    order: ErasureOrder,
) -> Result<Submitted, Problem> {
    let _turn = state.open.turn.lock().await;
    // The same request came twice at the same time: whoever was first has asked for it.
    if let Some(open) = state.open.state(&order.id) {
        return Ok(Submitted::Accepted(open));
    }
    let waits = OpenState::AwaitingApproval {
        asked_by: order.asked_by.clone(),
    };
    write_down(state, waits.clone(), order).await?;
    Ok(Submitted::Accepted(waits))
}

/// Does a request that waited for approval. The second officer is another one than the first.
pub(crate) async fn approve(
    state: &Arc<ServiceState>,
    id: &str,
    approver: &crate::access::Caller,
    patience: Duration,
) -> Result<Submitted, Problem> {
    let turn = state.open.turn.lock().await;
    let found = state.open.lock().get(id).cloned();
    let Some((OpenState::AwaitingApproval { asked_by }, mut order)) = found else {
        return Err(Problem::new(
            ProblemCode::NotFound,
            "no erasure of that id waits for approval",
        ));
    };
    if approver.is_anyone() || asked_by == approver.id() {
        let detail = "whoever asked for an erasure cannot approve it";
        return Err(Problem::new(ProblemCode::Forbidden, detail));
    }
    order.approved_by = Some(approver.id().to_owned());
    let key = KeyClaim::new(state, &order)?;
    write_down(state, OpenState::Running, order.clone()).await?;
    drop(turn);
    run(state, order, key, true, patience).await
}

/// Takes back a request that waits for approval.
pub(crate) async fn withdraw(state: &Arc<ServiceState>, id: &str) -> Result<(), Problem> {
    let _turn = state.open.turn.lock().await;
    let found = state.open.lock().get(id).cloned();
    match found {
        Some((OpenState::AwaitingApproval { .. }, order)) => {
            let deliveries = ErasureEvent::Withdrawn.deliveries(&order, &state.settings.clock);
            let failed = |_| {
                Problem::new(
                    ProblemCode::ModelUnusable,
                    "callbacks cannot be written down",
                )
            };
            conclude(state, id, deliveries).await.map_err(failed)
        }
        Some((OpenState::Running, _)) => Err(Problem::new(
            ProblemCode::Refused,
            "the erasure has begun and cannot be taken back",
        )),
        None => Err(Problem::new(
            ProblemCode::NotFound,
            "no erasure of that id waits",
        )),
    }
}

/// Takes up the requests that a server before this one had accepted and not done.
pub(crate) async fn resume(state: &Arc<ServiceState>) -> Result<usize, Problem> {
    let inbox = state.inbox.clone();
    let orders = state.settings.work.run(move || inbox.all()).await;
    let orders = orders.map_err(lost)?.map_err(storage)?;
    let count = orders.len();
    for order in orders {
        if order.needs_approval && order.approved_by.is_none() {
            let waits = OpenState::AwaitingApproval {
                asked_by: order.asked_by.clone(),
            };
            state.open.put(waits, order);
        } else {
            state.open.put(OpenState::Running, order.clone());
            let state = state.clone();
            tokio::spawn(async move { finish_later(&state, order).await });
        }
    }
    Ok(count)
}

/// What the logs say of a request, model by model; empty for a request that no log knows.
pub(crate) fn look_up(
    models: &[Arc<ServedModel>],
    id: &str,
) -> Vec<(String, efface_receipt::Receipt)> {
    let mut found = Vec::new();
    for model in models {
        // A request about several persons has a receipt for each.
        for at in 0.. {
            let receipts = model.ask(|engine| {
                let query = ReceiptQuery::Request(order::part_name(id, at));
                let places = engine.find_receipts(&query).unwrap_or_default();
                let bundle = |place: &u64| engine.bundle(&place.to_string()).ok();
                places
                    .iter()
                    .filter_map(bundle)
                    .map(|bundle| bundle.signed.receipt)
                    .collect::<Vec<_>>()
            });
            if receipts.is_empty() {
                break;
            }
            found.extend(
                receipts
                    .into_iter()
                    .map(|receipt| (model.name().to_owned(), receipt)),
            );
        }
    }
    found
}

/// Repeats a request that was accepted until every model has answered it. A request has one effect,
/// however often it comes.
async fn finish_later(state: &Arc<ServiceState>, order: ErasureOrder) {
    let outcome = execute(state, &order).await;
    finish(state, order, outcome).await;
}

/// Ends a request that was accepted, with what its models answered; asks them again where they
/// could not answer.
async fn finish(
    state: &Arc<ServiceState>,
    order: ErasureOrder,
    mut outcome: Result<Vec<ModelAnswer>, Problem>,
) {
    loop {
        match &outcome {
            Ok(answers) if !answers.iter().any(ModelAnswer::is_passing) => {
                let deliveries =
                    ErasureEvent::Done(answers).deliveries(&order, &state.settings.clock);
                return conclude_later(state, &order.id, deliveries).await;
            }
            // Models that are gone cannot answer; the request stays written down for the day they
            // come back.
            Err(problem) if !problem.is_passing() => return,
            _ => state.settings.work.pause(RETRY).await,
        }
        outcome = execute(state, &order).await;
    }
}

/// Writes down who is to be told, and then strikes the request out: in between, a crash has it done
/// again without effect, and told under the same ids. Gives the callbacks back where they cannot be
/// written down.
async fn conclude(
    state: &Arc<ServiceState>,
    id: &str,
    deliveries: Vec<CallbackDelivery>,
) -> Result<(), Vec<CallbackDelivery>> {
    if let Some(desk) = state.callbacks.clone()
        && !deliveries.is_empty()
    {
        let kept = deliveries.clone();
        let put = move || {
            deliveries
                .into_iter()
                .try_for_each(|delivery| desk.put(delivery))
        };
        match state.settings.work.run(put).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::error!(%error, "callbacks cannot be written down");
                return Err(kept);
            }
            Err(_) => return Err(kept),
        }
    }
    strike_out(state, id).await;
    Ok(())
}

/// The same, until it succeeds.
async fn conclude_later(
    state: &Arc<ServiceState>,
    id: &str,
    mut deliveries: Vec<CallbackDelivery>,
) {
    while let Err(left) = conclude(state, id, deliveries).await {
        deliveries = left;
        state.settings.work.pause(RETRY).await;
    }
}

/// Sends a request to its models and gathers their answers.
async fn execute(
    state: &Arc<ServiceState>,
    order: &ErasureOrder,
) -> Result<Vec<ModelAnswer>, Problem> {
    let models = match &order.target {
        ErasureTarget::Model(name) => vec![state.models.find(name)?],
        ErasureTarget::AllModels => state.models.all(),
    };
    let mut waiting = Vec::with_capacity(models.len());
    for model in models {
        let send = |request| {
            let (answer, reply) = oneshot::channel();
            model.order(ChangeOrder::Erase(Box::new(request), answer))?;
            Ok(reply)
        };
        match order.requests_for(&model) {
            Ok(requests) => {
                waiting.extend(
                    requests
                        .into_iter()
                        .map(|request| (model.name().to_owned(), send(request))),
                );
            }
            Err(problem) => waiting.push((model.name().to_owned(), Err(problem))),
        }
    }
    let mut answers = Vec::with_capacity(waiting.len());
    for (model, sent) in waiting {
        let answer = match sent {
            Ok(reply) => reply
                .await
                .map_err(lost)
                .and_then(|report| report.map_err(Problem::from)),
            Err(problem) => Err(problem),
        };
        answers.push(ModelAnswer { model, answer });
    }
    Ok(answers)
}

async fn write_down(
    state: &Arc<ServiceState>,
    open: OpenState,
    order: ErasureOrder,
) -> Result<(), Problem> {
    let inbox = state.inbox.clone();
    let kept = order.clone();
    let written = state
        .settings
        .work
        .run(move || inbox.put(&kept.id, &kept))
        .await;
    written.map_err(lost)?.map_err(storage)?;
    state.open.put(open, order);
    Ok(())
}

async fn strike_out(state: &Arc<ServiceState>, id: &str) {
    let inbox = state.inbox.clone();
    let name = id.to_owned();
    let removed = state.settings.work.run(move || inbox.remove(&name)).await;
    if let Ok(Err(error)) = removed {
        // It will be done again at the next start, without effect.
        tracing::warn!(%error, "a request that is done could not be removed from the inbox");
    }
    state.open.remove(id);
}

fn lost<E>(_: E) -> Problem {
    Problem::new(
        ProblemCode::Internal,
        "the thread that does this has stopped",
    )
}

fn storage(error: std::io::Error) -> Problem {
    tracing::error!(%error, "the inbox cannot be used");
    Problem::new(
        ProblemCode::ModelUnusable,
        "requests cannot be written down; the server's log says why",
    )
}
