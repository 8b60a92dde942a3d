//! Callbacks: what became of a request, sent to whoever asked for that. They are written down
//! before they are sent, tried again with growing waits, and kept in a list where they did not
//! arrive.

mod address;
mod certificate;
mod delivery;
mod sender;
mod signer;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, header};
use tokio::sync::Notify;
use tokio::task::JoinSet;

pub use address::CallbackHost;
pub(crate) use certificate::CertificateSigner;
pub(crate) use delivery::{CallbackDelivery, CallbackForm, CallbackTarget, DeliveryFailure};
use sender::CallbackSender;
use signer::CallbackSigner;

use crate::clock::ServiceClock;
use crate::problem::{Problem, ProblemCode};
use crate::server::ServeError;
use crate::settings::CallbackSettings;
use crate::storage::JsonFolder;
use crate::tls;

/// The folder of callbacks that have not arrived, and the file of the key that signs them, beside
/// the models.
const FOLDER: &str = "outbox";
const KEY_FILE: &str = "callbacks.key";

/// Callbacks that are sent at the same time.
const AT_ONCE: usize = 8;

/// How often the list is looked through where nothing says that it must be: clocks may be put
/// forward.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// All callbacks of a server.
pub(crate) struct CallbackDesk {
    settings: CallbackSettings,
    outbox: JsonFolder<CallbackDelivery>,
    signer: CallbackSigner,
    /// Signs in the form of OpenDSR; None where that is not spoken.
    certificate: Option<Arc<CertificateSigner>>,
    sender: CallbackSender,
    kept: Mutex<KeptDeliveries>,
    changed: Notify,
    clock: ServiceClock,
}

#[derive(Default)]
struct KeptDeliveries {
    all: BTreeMap<String, CallbackDelivery>,
    in_flight: HashSet<String>,
}

impl CallbackDesk {
    /// Reads the key, and the callbacks that an earlier server did not deliver.
    pub(crate) fn open(
        models: &Path,
        settings: CallbackSettings,
        certificate: Option<Arc<CertificateSigner>>,
        clock: ServiceClock,
    ) -> Result<Self, ServeError> {
        let key = models.join(KEY_FILE);
        let signer =
            CallbackSigner::open(&key).map_err(|cause| ServeError::Folder { path: key, cause })?;
        let authorities = settings
            .authority
            .as_deref()
            .map(tls::certificates)
            .transpose()?
            .unwrap_or_default();
        let sender = CallbackSender::new(authorities, settings.allow_private, settings.patience);
        let sender = sender.map_err(|cause| ServeError::Certificate {
            path: settings.authority.clone().unwrap_or_default(),
            problem: cause.to_string(),
        })?;
        let folder = models.join(FOLDER);
        let outbox = JsonFolder::new(folder.clone());
        let kept: Vec<CallbackDelivery> = outbox.all().map_err(|cause| ServeError::Folder {
            path: folder,
            cause,
        })?;
        let all = kept
            .into_iter()
            .map(|delivery| (delivery.id.clone(), delivery))
            .collect();
        let kept = Mutex::new(KeptDeliveries {
            all,
            in_flight: HashSet::new(),
        });
        Ok(Self {
            settings,
            outbox,
            signer,
            certificate,
            sender,
            kept,
            changed: Notify::new(),
            clock,
        })
    }

    /// The public key that receivers check signatures with.
    pub(crate) fn public_key(&self) -> String {
        self.signer.public_key()
    }

    /// Fails unless callbacks to this URL may be sent.
    pub(crate) fn check_url(&self, url: &str) -> Result<(), Problem> {
        let refused =
            |fault| Problem::invalid(format!("the URL of the callback cannot be used: {fault}"));
        address::parse_url(url, &self.settings.hosts)
            .map(drop)
            .map_err(refused)
    }

    /// Writes a callback down; it is sent soon. Blocks until it would survive a crash.
    pub(crate) fn put(&self, delivery: CallbackDelivery) -> std::io::Result<()> {
        self.outbox.put(&delivery.id, &delivery)?;
        self.lock().all.insert(delivery.id.clone(), delivery);
        self.changed.notify_one();
        Ok(())
    }

    /// Callbacks that have not arrived, those that are given up among them.
    pub(crate) fn all(&self) -> Vec<CallbackDelivery> {
        self.lock().all.values().cloned().collect()
    }

    /// Tries a callback again, from the first wait on.
    pub(crate) fn retry(&self, id: &str) -> Result<(), Problem> {
        let mut delivery = self.find(id)?;
        delivery.revive(self.clock.milliseconds());
        self.put(delivery).map_err(storage)
    }

    /// Gives a callback up for good.
    pub(crate) fn remove(&self, id: &str) -> Result<(), Problem> {
        self.find(id)?;
        self.outbox.remove(id).map_err(storage)?;
        self.lock().all.remove(id);
        Ok(())
    }

    /// Sends what is due, until the task is ended. What was under way then is sent again by the
    /// next server.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut sending = JoinSet::new();
        loop {
            for delivery in self.take_due(AT_ONCE.saturating_sub(sending.len())) {
                let desk = self.clone();
                sending.spawn(async move { desk.deliver(delivery).await });
            }
            let next = self.next_due().unwrap_or(LOOK_AGAIN).min(LOOK_AGAIN);
            tokio::select! {
                () = self.changed.notified() => {}
                Some(_) = sending.join_next() => {}
                () = tokio::time::sleep(next), if sending.len() < AT_ONCE => {}
            }
        }
    }

    /// Callbacks to send now, which are in flight from here on.
    fn take_due(&self, most: usize) -> Vec<CallbackDelivery> {
        let now = self.clock.milliseconds();
        let mut kept = self.lock();
        let due = |delivery: &&CallbackDelivery| {
            delivery.is_due(now) && !kept.in_flight.contains(&delivery.id)
        };
        let taken: Vec<CallbackDelivery> =
            kept.all.values().filter(due).take(most).cloned().collect();
        kept.in_flight
            .extend(taken.iter().map(|delivery| delivery.id.clone()));
        taken
    }

    /// How long until the next one is due.
    fn next_due(&self) -> Option<Duration> {
        let kept = self.lock();
        let waiting = kept
            .all
            .values()
            .filter(|delivery| !kept.in_flight.contains(&delivery.id));
        let now = self.clock.milliseconds();
        waiting
            .filter_map(|delivery| delivery.time_left(now))
            .min()
            .map(Duration::from_millis)
    }

    async fn deliver(self: Arc<Self>, mut delivery: CallbackDelivery) {
        let id = delivery.id.clone();
        let outcome = self.attempt(&delivery).await;
        let desk = self.clone();
        let recorded = tokio::task::spawn_blocking(move || match outcome {
            Ok(()) => desk.arrived(&delivery.id),
            Err(failure) => {
                delivery.failed(desk.clock.milliseconds(), failure);
                tracing::warn!(
                    callback = delivery.id,
                    attempts = delivery.attempts,
                    reason = delivery.last_failure,
                    is_given_up = delivery.next_at.is_none(),
                    "a callback did not arrive"
                );
                desk.not_arrived(delivery)
            }
        });
        if !matches!(recorded.await, Ok(Ok(()))) {
            // It may be sent twice, under the same id.
            tracing::error!("what became of a callback could not be written down");
        }
        self.lock().in_flight.remove(&id);
    }

    fn arrived(&self, id: &str) -> std::io::Result<()> {
        self.lock().all.remove(id);
        self.outbox.remove(id)
    }

    fn not_arrived(&self, delivery: CallbackDelivery) -> std::io::Result<()> {
        // Somebody may have removed it while it was under way.
        if !self.lock().all.contains_key(&delivery.id) {
            return Ok(());
        }
        self.lock()
            .all
            .insert(delivery.id.clone(), delivery.clone());
        self.outbox.put(&delivery.id, &delivery)
    }

    async fn attempt(&self, delivery: &CallbackDelivery) -> Result<(), DeliveryFailure> {
        let broken = |fault: String| DeliveryFailure {
            is_final: true,
            ..DeliveryFailure::passing(fault)
        };
        // The hosts may have changed since the callback was accepted.
        let (url, host) = address::parse_url(&delivery.target.url, &self.settings.hosts)
            .map_err(|fault| broken(format!("the URL cannot be used: {fault}")))?;
        let path = url.path_and_query().map_or("/", |path| path.as_str());
        let authority = url.authority().map_or("", |authority| authority.as_str());
        let mut request = Request::post(path)
            .header(header::HOST, authority)
            .header(header::CONTENT_TYPE, "application/json")
            .header(
                header::USER_AGENT,
                concat!("efface/", env!("CARGO_PKG_VERSION")),
            );
        match delivery.target.form {
            CallbackForm::StandardWebhook => {
                let seconds = self.clock.seconds();
                let signature = self.signer.signature(&delivery.id, seconds, &delivery.body);
                let signature =
                    signature.map_err(|fault| DeliveryFailure::passing(fault.to_string()))?;
                request = request
                    .header("webhook-id", &delivery.id)
                    .header("webhook-timestamp", seconds)
                    .header("webhook-signature", signature);
            }
            CallbackForm::OpenDsr => {
                let signer = self.certificate.as_ref();
                let headers = signer.and_then(|signer| signer.headers(delivery.body.as_bytes()));
                // The server may have been started without its certificate, which can be put right.
                let headers = headers.ok_or_else(|| {
                    DeliveryFailure::passing("there is no certificate to sign with")
                })?;
                for (name, value) in headers {
                    request = request.header(name, value);
                }
            }
        }
        let request = request.body(Body::from(delivery.body.clone()));
        let request = request.map_err(|_| broken("the request cannot be written".into()))?;
        self.sender.send(&host, request).await
    }

    fn find(&self, id: &str) -> Result<CallbackDelivery, Problem> {
        let found = self.lock().all.get(id).cloned();
        found.ok_or_else(|| {
            Problem::new(
                ProblemCode::NotFound,
                "no callback of that id waits or was given up",
            )
        })
    }

    fn lock(&self) -> MutexGuard<'_, KeptDeliveries> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn storage(error: std::io::Error) -> Problem {
    tracing::error!(%error, "the outbox cannot be used");
    Problem::new(
        ProblemCode::ModelUnusable,
        "callbacks cannot be written down; the server's log says why",
    )
}
