//! Erasure requests between the door and the model: who must approve them, and how those that take
//! long survive a crash.

mod attempt;
mod events;
mod keys;
mod order;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use efface_engine::ReceiptQuery;
use tokio::sync::oneshot;

pub(crate) use attempt::{ModelAnswer, is_done, models_of, preview};
pub(crate) use events::ErasureEvent;
pub(crate) use keys::KeyClaim;
pub(crate) use order::{ErasureOrder, ErasureTarget, RowChoice};

use self::attempt::{Attempt, Check};
use self::keys::{KeysInUse, UsedKey};
use self::order::ExpectedRows;
use crate::app::ServiceState;
use crate::callbacks::CallbackDelivery;
use crate::problem::{Problem, ProblemCode};
use crate::registry::ServedModel;

/// How long a request that found the model busy waits before it is tried again.
const RETRY: Duration = Duration::from_secs(1);

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

/// A request that is not done yet.
#[derive(Debug, Clone)]
struct TrackedErasure {
    state: OpenState,
    order: ErasureOrder,
}

/// The requests that were accepted and are not done yet. Those that are done are in the logs of the
/// models.
#[derive(Default)]
pub(crate) struct OpenErasures {
    /// By id and target: requests of different tokens about different models may have the same id.
    open: Mutex<BTreeMap<(String, ErasureTarget), TrackedErasure>>,
    keys: KeysInUse,
    /// Held by whoever lets a request wait for approval, approves it or takes it back: of an
    /// approval and a withdrawal that come together, one is too late.
    turn: tokio::sync::Mutex<()>,
}

impl OpenErasures {
    /// Returns the state of a request that came before.
    pub(crate) fn state_of(&self, order: &ErasureOrder) -> Option<OpenState> {
        self.get(&order.id, &order.target).map(|open| open.state)
    }

    /// Returns the state and the target of each request with this id.
    pub(crate) fn find(&self, id: &str) -> Vec<(OpenState, ErasureTarget)> {
        self.of_id(id, |open| (open.state.clone(), open.order.target.clone()))
    }

    fn keys_of(&self, id: &str) -> Vec<UsedKey> {
        self.of_id(id, |open| UsedKey::new(&open.order))
    }

    fn of_id<T>(&self, id: &str, told: impl Fn(&TrackedErasure) -> T) -> Vec<T> {
        let open = self.lock();
        let from = (id.to_owned(), ErasureTarget::AllModels);
        open.range(from..)
            .take_while(|((found, _), _)| found == id)
            .map(|(_, open)| told(open))
            .collect()
    }

    /// All requests, by their ids.
    pub(crate) fn all(&self) -> Vec<(String, OpenState, ErasureTarget)> {
        let open = self.lock();
        open.iter()
            .map(|((id, target), open)| (id.clone(), open.state.clone(), target.clone()))
            .collect()
    }

    fn get(&self, id: &str, target: &ErasureTarget) -> Option<TrackedErasure> {
        self.lock().get(&(id.to_owned(), target.clone())).cloned()
    }

    fn put(&self, state: OpenState, order: ErasureOrder) {
        let name = (order.id.clone(), order.target.clone());
        self.lock().insert(name, TrackedErasure { state, order });
    }

    fn remove(&self, order: &ErasureOrder) {
        self.lock()
            .remove(&(order.id.clone(), order.target.clone()));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<(String, ErasureTarget), TrackedErasure>> {
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

/// Does a request, or writes it down if it takes longer than `patience` or needs the approval of
/// somebody else. The work goes on if the caller goes away.
pub(crate) async fn submit(
    state: &Arc<ServiceState>,
    order: ErasureOrder,
    key: KeyClaim,
    patience: Duration,
) -> Result<Submitted, Problem> {
    let expected = match attempt::check(state, &order, 0).await {
        Check::Allowed(expected) => expected,
        Check::NeedsApproval => return hold_for_approval(state, order).await,
        Check::NotNow(problem) => return Err(problem),
    };
    // What somebody is to be told of is written down from the beginning.
    if !order.callbacks.is_empty() {
        write_down(state, OpenState::Running, order.clone()).await?;
    }
    run(state, order, key, expected, patience).await
}

/// Does a request. One that was accepted, by an officer or by answering 202, is done even if its
/// models cannot be changed now.
async fn run(
    state: &Arc<ServiceState>,
    order: ErasureOrder,
    key: KeyClaim,
    expected: Option<ExpectedRows>,
    patience: Duration,
) -> Result<Submitted, Problem> {
    let (tell, told) = oneshot::channel();
    let state = state.clone();
    tokio::spawn(async move {
        // Until the request is done, its key is for no other.
        let _key = key;
        let is_approved = order.approved_by.is_some();
        let is_written = is_approved || !order.callbacks.is_empty();
        let mut running = Box::pin(attempt::attempt_checked(&state, &order, expected));
        let tried = tokio::time::timeout(patience, &mut running).await.ok();
        let answers = match tried {
            Some(Attempt::NeedsApproval) => {
                let held = hold_for_approval(&state, order.clone()).await;
                if held.is_err() && is_written {
                    strike_out(&state, &order).await;
                }
                let _ = tell.send(held);
                return;
            }
            Some(Attempt::NotNow(problem)) if !is_approved => {
                if is_written {
                    strike_out(&state, &order).await;
                }
                let _ = tell.send(Err(problem));
                return;
            }
            Some(Attempt::Answered(answers)) if !goes_on(&answers, is_approved) => answers,
            tried => {
                let written = write_down(&state, OpenState::Running, order.clone()).await;
                // If nobody listens any more, the logs will hold the answer.
                let _ = tell.send(written.map(|()| Submitted::Accepted(OpenState::Running)));
                let tried = match tried {
                    Some(tried) => tried,
                    None => running.await,
                };
                return finish(&state, &order, tried).await;
            }
        };
        let mut left = None;
        if is_written {
            // Whoever hears of a failure at once need not be called, unless a log holds it. Whoever
            // asked does not hear what the officer hears who approves.
            let is_told = is_approved || answers.iter().any(|model| model.answer.is_ok());
            let event = is_told.then(|| ErasureEvent::Done(&answers));
            let deliveries = event.map_or_else(Vec::new, |event| {
                event.deliveries(&order, &state.settings.clock)
            });
            left = conclude(&state, &order, deliveries).await.err();
        }
        let _ = tell.send(Ok(Submitted::Done(answers)));
        if let Some(deliveries) = left {
            conclude_later(&state, &order, deliveries).await;
        }
    });
    told.await.map_err(lost)?
}

/// Returns true if models must be asked again: they could not answer now, and the request was
/// approved, or another model has done its part.
fn goes_on(answers: &[ModelAnswer], is_approved: bool) -> bool {
    let is_begun = is_approved || answers.iter().any(|model| model.answer.is_ok());
    is_begun && answers.iter().any(ModelAnswer::is_passing)
}

/// Writes a request down that somebody else must approve.
async fn hold_for_approval(
    state: &Arc<ServiceState>,
    mut order: ErasureOrder,
) -> Result<Submitted, Problem> {
    let _turn = state.open.turn.lock().await;
    // The same request came twice at the same time: whoever was first has asked for it.
    if let Some(open) = state.open.get(&order.id, &order.target)
        && (open.state != OpenState::Running || open.order.approved_by.is_some())
    {
        return Ok(Submitted::Accepted(open.state));
    }
    order.needs_approval = true;
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
    target: &ErasureTarget,
    approver: &crate::access::Caller,
    patience: Duration,
) -> Result<Submitted, Problem> {
    let turn = state.open.turn.lock().await;
    let Some(TrackedErasure {
        state: OpenState::AwaitingApproval { asked_by },
        mut order,
    }) = state.open.get(id, target)
    else {
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
    let expected = order.expected_by_caller();
    run(state, order, key, expected, patience).await
}

/// Takes back a request that waits for approval.
pub(crate) async fn withdraw(
    state: &Arc<ServiceState>,
    id: &str,
    target: &ErasureTarget,
) -> Result<(), Problem> {
    let _turn = state.open.turn.lock().await;
    match state.open.get(id, target) {
        Some(TrackedErasure {
            state: OpenState::AwaitingApproval { .. },
            order,
        }) => {
            let deliveries = ErasureEvent::Withdrawn.deliveries(&order, &state.settings.clock);
            let failed = |_| {
                Problem::new(
                    ProblemCode::ModelUnusable,
                    "callbacks cannot be written down",
                )
            };
            conclude(state, &order, deliveries).await.map_err(failed)
        }
        Some(_) => Err(Problem::new(
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
    let read = move || {
        let orders = inbox.all()?;
        for order in &orders {
            // Earlier versions named the file by the id alone.
            if !inbox.contains(&order.file_name())? {
                inbox.put(&order.file_name(), order)?;
                inbox.remove(&order.id)?;
            }
        }
        Ok(orders)
    };
    let orders = state.settings.work.run(read).await;
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
            tokio::spawn(async move {
                let tried = attempt::attempt(&state, &order, 0).await;
                finish(&state, &order, tried).await;
            });
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

/// Ends a request that was accepted, with what its models answered; asks them again where they
/// could not answer, and where a model is away, until it is back. A request has one effect, however
/// often it comes.
async fn finish(state: &Arc<ServiceState>, order: &ErasureOrder, mut tried: Attempt) {
    loop {
        let mut erased = 0;
        match &tried {
            Attempt::Answered(answers) if !answers.iter().any(ModelAnswer::is_passing) => {
                let event = ErasureEvent::Done(answers);
                let deliveries = event.deliveries(order, &state.settings.clock);
                return conclude_later(state, order, deliveries).await;
            }
            Attempt::Answered(answers) => erased = attempt::rows_erased(answers),
            Attempt::NeedsApproval => {
                if hold_for_approval(state, order.clone()).await.is_ok() {
                    return;
                }
            }
            Attempt::NotNow(_) => {}
        }
        state.settings.work.pause(RETRY).await;
        tried = attempt::attempt(state, order, erased).await;
    }
}

/// Writes down who is to be told, and then strikes the request out: in between, a crash has it done
/// again without effect, and told under the same ids. Gives the callbacks back where they cannot be
/// written down.
async fn conclude(
    state: &Arc<ServiceState>,
    order: &ErasureOrder,
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
    strike_out(state, order).await;
    Ok(())
}

/// The same, until it succeeds.
async fn conclude_later(
    state: &Arc<ServiceState>,
    order: &ErasureOrder,
    mut deliveries: Vec<CallbackDelivery>,
) {
    while let Err(left) = conclude(state, order, deliveries).await {
        deliveries = left;
        state.settings.work.pause(RETRY).await;
    }
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
        .run(move || inbox.put(&kept.file_name(), &kept))
        .await;
    written.map_err(lost)?.map_err(storage)?;
    state.open.put(open, order);
    Ok(())
}

async fn strike_out(state: &Arc<ServiceState>, order: &ErasureOrder) {
    let inbox = state.inbox.clone();
    let name = order.file_name();
    let removed = state.settings.work.run(move || inbox.remove(&name)).await;
    if let Ok(Err(error)) = removed {
        // It will be done again at the next start, without effect.
        tracing::warn!(%error, "a request that is done could not be removed from the inbox");
    }
    state.open.remove(order);
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
