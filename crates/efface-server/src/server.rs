//! A server from its start to its end.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;

use crate::access::{TokenError, TokenStore};
use crate::app::ServiceState;
use crate::callbacks::CallbackDesk;
use crate::opendsr::OpenDsrService;
use crate::settings::ServerSettings;
use crate::telemetry::RequestTracer;
use crate::{api, erasures, listener, tls};

/// How often the folder and the file of tokens are looked at.
const REFRESH: Duration = Duration::from_secs(1);

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Everybody could read what is sent, or do everything.
    #[error(
        "{address} can be reached from other machines, and {missing}; give it, listen on 127.0.0.1, or allow \
         it where something in front of the server takes care"
    )]
    Open {
        /// Where it would listen.
        address: SocketAddr,
        /// What is missing.
        missing: &'static str,
    },
    /// There are tokens to be asked for, and nobody has one.
    #[error("{} holds no token; make one with `efface token create`, or serve this machine alone without tokens", path.display())]
    NoTokens {
        /// The file.
        path: PathBuf,
    },
    /// The address cannot be had.
    #[error("{address} cannot be listened on: {cause}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        cause: std::io::Error,
    },
    /// The folder cannot be read.
    #[error("{}: {cause}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// The tokens cannot be read.
    #[error(transparent)]
    Tokens(#[from] TokenError),
    /// The certificate cannot be used.
    #[error("{}: {problem}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Spans cannot be sent.
    #[error("spans cannot be sent to {endpoint}: {problem}")]
    Collector {
        /// Where they should go.
        endpoint: String,
        /// What is wrong with that.
        problem: String,
    },
    /// The requests that an earlier server accepted cannot be read.
    #[error("the requests that wait in {} cannot be read: {problem}", path.display())]
    Inbox {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

/// A server that listens and has its models open.
pub struct Server {
    state: Arc<ServiceState>,
    listener: TcpListener,
    tls: Option<tokio_rustls::TlsAcceptor>,
}

impl Server {
    /// Opens the models and begins to listen. Models that cannot be opened are told to the log and
    /// tried again later.
    ///
    /// # Errors
    /// The settings would let everyone in, or something that they name cannot be used.
    pub async fn start(settings: ServerSettings) -> Result<Self, ServeError> {
        let address = settings.listen;
        let insecure = |missing| ServeError::Open { address, missing };
        if !address.ip().is_loopback() && !settings.allow_insecure {
            if settings.tls.is_none() {
                return Err(insecure("there is no certificate"));
            }
            if settings.tokens.is_none() {
                return Err(insecure("there is no file of tokens"));
            }
        }
        let tokens = settings.tokens.as_deref();
        let tokens = tokens
            .map(|path| TokenStore::with_clock(path, settings.clock.clone()))
            .transpose()?;
        if let (Some(tokens), Some(path)) = (&tokens, &settings.tokens)
            && tokens.is_empty()
        {
            return Err(ServeError::NoTokens { path: path.clone() });
        }
        let tls = settings.tls.as_ref().map(tls::acceptor).transpose()?;
        let folder = settings.folder.clone();
        let opendsr = settings
            .opendsr
            .clone()
            .map(|opendsr| OpenDsrService::open(&folder, opendsr));
        let opendsr = opendsr.transpose()?;
        let signer = opendsr.as_ref().map(|service| service.signer.clone());
        let callbacks = settings.callbacks.clone().map(|callbacks| {
            CallbackDesk::open(&folder, callbacks, signer, settings.clock.clone())
        });
        let tracer = settings
            .collector
            .as_deref()
            .map(RequestTracer::new)
            .transpose()?;
        let state = Arc::new(ServiceState::new(
            settings,
            tokens,
            callbacks.transpose()?,
            opendsr,
            tracer,
        ));
        refresh(&state).map_err(|cause| ServeError::Folder {
            path: folder.clone(),
            cause,
        })?;
        let resumed = erasures::resume(&state).await;
        let resumed = resumed.map_err(|problem| ServeError::Inbox {
            path: folder,
            problem: problem.detail,
        })?;
        if resumed > 0 {
            tracing::info!(requests = resumed, "taken up where the last server stopped");
        }
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|cause| ServeError::Listen { address, cause })?;
        Ok(Self {
            state,
            listener,
            tls,
        })
    }

    /// Where the server listens: the port that was found where 0 was asked for.
    ///
    /// # Errors
    /// The system does not say.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The names of the models.
    #[must_use]
    pub fn models(&self) -> Vec<String> {
        self.state
            .models
            .all()
            .iter()
            .map(|model| model.name().to_owned())
            .collect()
    }

    /// The service as one handler of requests, for tests that need no socket.
    pub fn router(&self) -> Router {
        api::router(&self.state)
    }

    /// Serves until `stop` is done. Then requests in flight are finished, and all changes are
    /// durable when this returns.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) {
        let router = api::router(&self.state);
        let watching = tokio::spawn(watch(self.state.clone()));
        let calling = self
            .state
            .callbacks
            .clone()
            .map(|desk| tokio::spawn(desk.run()));
        listener::serve(
            &self.state.settings.limits,
            self.listener,
            self.tls,
            router,
            stop,
        )
        .await;
        watching.abort();
        if let Some(calling) = calling {
            calling.abort();
        }
        let state = self.state;
        // A model closes when its last change is done, and the last spans leave; both block.
        let close = move || {
            state.models.close();
            if let Some(tracer) = &state.tracer {
                tracer.close();
            }
        };
        if tokio::task::spawn_blocking(close).await.is_err() {
            tracing::error!("the models could not be closed");
        }
    }
}

fn refresh(state: &ServiceState) -> std::io::Result<()> {
    for (model, error) in state.models.refresh()? {
        tracing::warn!(model, %error, "the model cannot be served");
    }
    Ok(())
}

/// Follows the folder and the tokens.
async fn watch(state: Arc<ServiceState>) {
    let mut ticks = tokio::time::interval(REFRESH);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let state = state.clone();
        let looked = tokio::task::spawn_blocking(move || {
            if let Err(error) = refresh(&state) {
                tracing::warn!(%error, "the folder of the models cannot be read");
            }
            match state.tokens.as_ref().map(|tokens| tokens.reload()) {
                Some(Ok(true)) => tracing::info!("the tokens were read again"),
                Some(Err(error)) => tracing::warn!(%error, "the tokens stay as they were"),
                Some(Ok(false)) | None => {}
            }
        });
        if looked.await.is_err() {
            tracing::error!("looking at the folder failed");
        }
    }
}
