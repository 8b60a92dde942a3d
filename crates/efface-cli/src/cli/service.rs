//! `efface serve` and `efface token`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use efface_server::CallbackHost;

use super::DelaySeconds;
use super::parse;

/// Serve the models of a folder over HTTP, with a page for people
#[derive(Debug, Args)]
#[command(after_help = super::help::SERVE)]
pub(crate) struct ServeArguments {
    /// Folder with model files
    #[arg(value_name = "DIR", required_unless_present = "demo")]
    pub(crate) folder: Option<PathBuf>,

    /// Where to listen
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,

    /// File of tokens, see `efface token` [default: everyone on this machine may do everything]
    #[arg(long, value_name = "FILE")]
    pub(crate) tokens: Option<PathBuf>,

    /// Certificate chain (PEM), for HTTPS
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_certificate: Option<PathBuf>,

    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(crate) tls_key: Option<PathBuf>,

    /// Only clients with a certificate of this authority (PEM) are let in
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(crate) client_authority: Option<PathBuf>,

    /// Allow other machines without TLS or without tokens: something in front of the server takes
    /// care of it
    #[arg(long)]
    pub(crate) insecure: bool,

    /// Erasures of more rows than this wait for the approval of a second token
    #[arg(long, value_name = "ROWS", requires = "tokens")]
    pub(crate) approval_above: Option<usize>,

    /// Host that callbacks of erasures may go to, as in hooks.example.org:8443; may be given
    /// several times
    #[arg(long = "callback-host", value_name = "HOST", value_parser = parse_host)]
    pub(crate) callback_hosts: Vec<CallbackHost>,

    /// Allow callbacks to hosts that resolve to private addresses
    #[arg(long, requires = "callback_hosts")]
    pub(crate) callback_private: bool,

    /// Authority (PEM) of the certificates of these hosts, besides those whom the system trusts
    #[arg(long, value_name = "FILE", requires = "callback_hosts")]
    pub(crate) callback_authority: Option<PathBuf>,

    /// Speak OpenDSR, as the processor of this domain
    #[arg(long, value_name = "DOMAIN")]
    pub(crate) opendsr_domain: Option<String>,

    /// Certificate chain (PEM) whose key signs what OpenDSR has signed [default: that of
    /// --tls-certificate]
    #[arg(
        long,
        value_name = "FILE",
        requires = "opendsr_domain",
        requires = "opendsr_key"
    )]
    pub(crate) opendsr_certificate: Option<PathBuf>,

    /// Private key of that certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "opendsr_certificate")]
    pub(crate) opendsr_key: Option<PathBuf>,

    /// What the subject columns of the models hold, as OpenDSR calls it, such as email
    #[arg(
        long = "opendsr-identity",
        value_name = "TYPE",
        requires = "opendsr_domain",
        default_value = "controller_customer_id",
        value_delimiter = ','
    )]
    pub(crate) opendsr_identities: Vec<String>,

    /// The subject columns hold the SHA-256 of identities
    #[arg(long, requires = "opendsr_domain")]
    pub(crate) opendsr_hashed: bool,

    /// Largest body of a request, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub(crate) max_body: u64,

    /// Requests a second for each token
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rate: u32,

    /// Write the log as JSON lines
    #[arg(long)]
    pub(crate) log_json: bool,

    /// Collector of OpenTelemetry that spans of requests go to, as in http://127.0.0.1:4318; needs
    /// a build with the feature otel
    #[arg(long, value_name = "URL")]
    pub(crate) otlp_endpoint: Option<String>,

    /// Serve a model of generated reviews in a temporary folder
    #[arg(long, conflicts_with = "folder")]
    pub(crate) demo: bool,
}

/// Make, list and withdraw the tokens of `efface serve`
#[derive(Debug, Args)]
pub(crate) struct TokenArguments {
    #[command(subcommand)]
    pub(crate) action: TokenAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenAction {
    /// Make a token and print it; it is shown once
    Create {
        /// File of tokens; made if it is not there
        file: PathBuf,

        /// Whose it is
        #[arg(long, value_name = "NAME")]
        name: String,

        /// What it allows: predict, erase, learn, audit, admin
        #[arg(
            long = "scope",
            value_name = "SCOPE",
            required = true,
            value_delimiter = ','
        )]
        scopes: Vec<String>,

        /// For which models [default: all]
        #[arg(long = "model", value_name = "MODEL", value_delimiter = ',')]
        models: Vec<String>,

        /// How long it is good for, as in 30d [default: for ever]
        #[arg(long, value_name = "DURATION", value_parser = parse::duration)]
        expires: Option<DelaySeconds>,
    },
    /// List the tokens, without their secrets
    List {
        /// File of tokens
        file: PathBuf,
    },
    /// Withdraw a token; a running server follows within a second
    Revoke {
        /// File of tokens
        file: PathBuf,

        /// Its id, as `efface token list` shows it
        id: String,
    },
}

fn parse_host(text: &str) -> Result<CallbackHost, String> {
    text.parse()
}
