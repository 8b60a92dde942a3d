//! What a server is told when it starts.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use efface_engine::KeyAccess;

use crate::callbacks::CallbackHost;
use crate::clock::ServiceClock;
use crate::work::WorkPlace;

/// What a server is told when it starts.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// The folder of the models.
    pub folder: PathBuf,
    /// Where to listen.
    pub listen: SocketAddr,
    /// The certificate; None for plain HTTP.
    pub tls: Option<TlsFiles>,
    /// The file of tokens; None lets everyone do everything.
    pub tokens: Option<PathBuf>,
    /// Whether plain HTTP, or no tokens, are allowed beyond this machine.
    pub allow_insecure: bool,
    /// How to come to the keys that sign.
    pub access: KeyAccess,
    /// What a request may cost.
    pub limits: ServiceLimits,
    /// Erasures of more rows than this need the approval of a second token.
    pub approval_above: Option<usize>,
    /// Where callbacks may go; None where none are sent.
    pub callbacks: Option<CallbackSettings>,
    /// How OpenDSR is spoken; None where it is not.
    pub opendsr: Option<OpenDsrSettings>,
    /// The collector of OpenTelemetry that spans of requests are sent to, as in
    /// `http://127.0.0.1:4318`; for that the crate needs its feature `otel`.
    pub collector: Option<String>,
    /// The clock.
    pub clock: ServiceClock,
    /// Where work that blocks is done.
    pub work: WorkPlace,
}

impl ServerSettings {
    /// Models of a folder, on this machine alone, with nothing special about it.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>, listen: SocketAddr) -> Self {
        Self {
            folder: folder.into(),
            listen,
            tls: None,
            tokens: None,
            allow_insecure: false,
            access: KeyAccess::default(),
            limits: ServiceLimits::default(),
            approval_above: None,
            callbacks: None,
            opendsr: None,
            collector: None,
            clock: ServiceClock::default(),
            work: WorkPlace::default(),
        }
    }
}

/// Where callbacks may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackSettings {
    /// The hosts; callbacks to others are refused.
    pub hosts: Vec<CallbackHost>,
    /// Whether a host may resolve to an address of the inside of a network.
    pub allow_private: bool,
    /// Who signs certificates of the hosts besides those whom the system trusts, PEM.
    pub authority: Option<PathBuf>,
    /// How long an attempt may take.
    pub patience: Duration,
}

impl CallbackSettings {
    /// Callbacks to these hosts.
    #[must_use]
    pub fn new(hosts: Vec<CallbackHost>) -> Self {
        Self {
            hosts,
            allow_private: false,
            authority: None,
            patience: Duration::from_secs(15),
        }
    }
}

/// How OpenDSR is spoken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenDsrSettings {
    /// The domain that controllers know the server by, which the certificate is for.
    pub domain: String,
    /// The chain of certificates whose key signs answers and callbacks, PEM.
    pub certificate: PathBuf,
    /// The private key, PEM.
    pub key: PathBuf,
    /// The types of identities that the subject columns of the models hold, such as `email`.
    pub identities: Vec<String>,
    /// Whether the subject columns hold the SHA-256 of an identity, in lower-case hexadecimal
    /// digits, and not the identity.
    pub is_hashed: bool,
}

/// The files of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The chain of certificates, PEM.
    pub certificate: PathBuf,
    /// The private key, PEM.
    pub key: PathBuf,
    /// Who signs certificates of clients, PEM; None where clients need none.
    pub client_authority: Option<PathBuf>,
}

/// What a request may cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServiceLimits {
    /// Bytes of a body.
    pub body_bytes: usize,
    /// How long a connection may be silent: until the head of a request is there, and while an
    /// answer is not taken.
    pub head_time: Duration,
    /// How long a request may take to arrive, and its answer to be made.
    pub request_time: Duration,
    /// How long an erasure is waited for before it is answered by 202.
    pub erasure_patience: Duration,
    /// Requests that are worked on at the same time.
    pub concurrent_requests: usize,
    /// Requests a second for each token.
    pub requests_per_second: f64,
    /// Tokens a second that are hashed for each client. A token is hashed when it is first shown
    /// after the file of tokens was read.
    pub token_hashes_per_second: f64,
    /// Connections that are open at the same time.
    pub connections: usize,
}

impl Default for ServiceLimits {
    fn default() -> Self {
        Self {
            body_bytes: 16 << 20,
            head_time: Duration::from_secs(10),
            request_time: Duration::from_secs(30),
            erasure_patience: Duration::from_secs(10),
            concurrent_requests: 512,
            requests_per_second: 1000.0,
            // A hash takes about 30 ms, and two are made at a time.
            token_hashes_per_second: 10.0,
            connections: 1024,
        }
    }
}
