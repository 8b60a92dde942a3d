//! `efface serve` and `efface token`.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use efface_engine::ErrorKind;
use efface_server::{
    CallbackSettings, OpenDsrSettings, Scope, ServeError, Server, ServerSettings, ServiceLimits,
    TlsFiles, TokenError, TokenGrant, TokenStore,
};
use serde_json::json;

use crate::cli::{ServeArguments, TokenAction, TokenArguments};
use crate::failure::{Failure, Result};
use crate::report::{count, pairs};
use crate::terminal::Terminal;

pub(crate) fn serve(args: &ServeArguments, terminal: &Terminal) -> Result {
    let demo = if args.demo {
        Some(super::demo::folder_with_model(terminal)?)
    } else {
        None
    };
    let folder = match (&demo, &args.folder) {
        (Some(demo), _) => demo.path(),
        (None, Some(folder)) => folder,
        (None, None) => return Err(Failure::usage("no folder is named")),
    };
    start_log(args, terminal);
    let settings = settings(args, folder, terminal)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime
        .map_err(|cause| Failure::internal(format!("the server has no threads: {cause}")))?;
    runtime.block_on(async {
        // Signals are caught before anything is promised to anyone.
        let stop = stop_signal()?;
        let server = Server::start(settings).await?;
        announce(&server, args, terminal)?;
        server.run(stop).await;
        terminal.message("stopped; everything that was acknowledged is on disk");
        Ok(())
    })
}

fn settings(args: &ServeArguments, folder: &Path, terminal: &Terminal) -> Result<ServerSettings> {
    let tls = args.tls_certificate.clone().zip(args.tls_key.clone());
    let mut settings = ServerSettings::new(folder, args.listen);
    settings.tls = tls.map(|(certificate, key)| TlsFiles {
        certificate,
        key,
        client_authority: args.client_authority.clone(),
    });
    settings.tokens.clone_from(&args.tokens);
    settings.allow_insecure = args.insecure;
    settings.access = terminal.access().clone();
    settings.approval_above = args.approval_above;
    settings.collector.clone_from(&args.otlp_endpoint);
    if !args.callback_hosts.is_empty() {
        let mut callbacks = CallbackSettings::new(args.callback_hosts.clone());
        callbacks.allow_private = args.callback_private;
        callbacks.authority.clone_from(&args.callback_authority);
        settings.callbacks = Some(callbacks);
    }
    settings.opendsr = args
        .opendsr_domain
        .as_ref()
        .map(|domain| opendsr(args, domain))
        .transpose()?;
    settings.limits = ServiceLimits {
        body_bytes: usize::try_from(args.max_body << 20).unwrap_or(usize::MAX),
        requests_per_second: f64::from(args.rate),
        ..ServiceLimits::default()
    };
    Ok(settings)
}

fn opendsr(args: &ServeArguments, domain: &str) -> Result<OpenDsrSettings> {
    let own = args
        .opendsr_certificate
        .clone()
        .zip(args.opendsr_key.clone());
    let files = own.or_else(|| args.tls_certificate.clone().zip(args.tls_key.clone()));
    let Some((certificate, key)) = files else {
        let text = "OpenDSR answers are signed with the key of a certificate, and none is given";
        return Err(Failure::usage(text)
            .hint("--opendsr-certificate and --opendsr-key, or --tls-certificate and --tls-key"));
    };
    Ok(OpenDsrSettings {
        domain: domain.to_owned(),
        certificate,
        key,
        identities: args.opendsr_identities.clone(),
        is_hashed: args.opendsr_hashed,
    })
}

fn announce(server: &Server, args: &ServeArguments, terminal: &Terminal) -> Result {
    let address = server
        .address()
        .map_err(|cause| Failure::internal(cause.to_string()))?;
    let scheme = if args.tls_certificate.is_some() {
        "https"
    } else {
        "http"
    };
    let url = format!("{scheme}://{address}");
    let models = server.models();
    if terminal.json() {
        return terminal.object(&json!({"url": url, "models": models}));
    }
    terminal.result(&url)?;
    terminal.message(&format!(
        "{}: {}",
        count(models.len(), "model"),
        models.join(", ")
    ));
    if args.tokens.is_none() {
        terminal.note("everyone on this machine may do everything; --tokens FILE asks for tokens");
    }
    if args.demo {
        terminal.message("open the page and erase all rows of the person u1042");
    }
    Ok(())
}

/// Logs go to standard error: a line a request, which names no row and no person.
fn start_log(args: &ServeArguments, terminal: &Terminal) {
    let level = if terminal.is_quiet() {
        tracing::Level::WARN
    } else {
        tracing::Level::INFO
    };
    let log = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(false);
    // A second start in one process keeps the first log, which happens in tests alone.
    let _ = if args.log_json {
        log.json().try_init()
    } else {
        log.with_target(false).try_init()
    };
}

/// Done when the process is asked to stop.
fn stop_signal() -> Result<impl Future<Output = ()> + Send> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let failed =
            |cause: std::io::Error| Failure::internal(format!("signals cannot be caught: {cause}"));
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        Ok(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        })
    }
    #[cfg(not(unix))]
    Ok(async {
        // Without a handler the process ends at once, which is as safe as a crash.
        let _ = tokio::signal::ctrl_c().await;
    })
}

pub(crate) fn token(args: &TokenArguments, terminal: &Terminal) -> Result {
    match &args.action {
        TokenAction::Create {
            file,
            name,
            scopes,
            models,
            expires,
        } => {
            let scopes = scopes
                .iter()
                .map(|scope| scope.parse())
                .collect::<std::result::Result<Vec<Scope>, _>>()?;
            let until = |after: u64| now().saturating_add(Duration::from_secs(after)).as_secs();
            let grant = TokenGrant {
                name: name.clone(),
                scopes,
                models: (!models.is_empty()).then(|| models.clone()),
                expires_at: expires.map(|delay| until(delay.0)),
            };
            let made = TokenStore::open(file)?.create(grant)?;
            if terminal.json() {
                return terminal
                    .object(&json!({"id": made.record.id, "token": made.text.as_str()}));
            }
            terminal.result(&made.text)?;
            terminal
                .message("keep it: it is shown this once, and the file holds only a hash of it");
            Ok(())
        }
        TokenAction::List { file } => list(file, terminal),
        TokenAction::Revoke { file, id } => {
            let gone = TokenStore::open(file)?.revoke(id)?;
            terminal.message(&format!("token {} of {} is withdrawn", gone.id, gone.name));
            Ok(())
        }
    }
}

fn list(file: &Path, terminal: &Terminal) -> Result {
    let records = TokenStore::open(file)?.records();
    if terminal.json() {
        let shown: Vec<_> = records
            .iter()
            .map(|token| {
                json!({"id": token.id, "name": token.name, "scopes": token.scopes, "models": token.models,
                       "expires_at": token.expires_at, "expired": token.is_expired(now().as_secs())})
            })
            .collect();
        return terminal.object(&json!({ "tokens": shown }));
    }
    let lines = records.iter().map(|token| {
        let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.name()).collect();
        let models = token
            .models
            .as_ref()
            .map_or("all models".into(), |models| models.join(", "));
        let state = if token.is_expired(now().as_secs()) {
            ", expired"
        } else {
            ""
        };
        (
            token.id.clone(),
            format!("{}: {}; {models}{state}", token.name, scopes.join(", ")),
        )
    });
    terminal.result(&pairs(lines))
}

/// Since 1970.
fn now() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

impl From<TokenError> for Failure {
    fn from(error: TokenError) -> Self {
        match &error {
            TokenError::UnknownScope(_) | TokenError::NoScope => Self::usage(error.to_string()),
            TokenError::UnknownToken(_) => Self::not_found(error.to_string()),
            TokenError::Content { .. } => Self::data(error.to_string()),
            _ => Self::of_kind(ErrorKind::Io, error.to_string()),
        }
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Tokens(error) => error.into(),
            ServeError::Open { .. } => Self::refused(error.to_string())
                .hint("--tls-certificate and --tls-key, --tokens, or --insecure"),
            ServeError::NoTokens { .. } => Self::refused(error.to_string()),
            error => Self::of_kind(ErrorKind::Io, error.to_string()),
        }
    }
}
