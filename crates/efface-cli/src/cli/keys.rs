//! The words that are about keys and receipts.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};
use efface_engine::{KeyAccess, KeyPlace, Passphrase};

use super::{SubjectValue, help, parse};
use crate::failure::{Failure, Result};

/// The largest file that is read as a passphrase.
const LARGEST_PASSPHRASE: u64 = 4096;

/// Where the signing key is, for every command that signs.
#[derive(Debug, Args)]
#[command(next_help_heading = "Where the signing key is")]
pub(crate) struct SigningArguments {
    /// Sign with a program: `COMMAND public` prints its Ed25519 key, `COMMAND sign` signs what it
    /// reads
    #[arg(long, global = true, value_name = "COMMAND", display_order = 94)]
    pub(crate) sign_with: Option<String>,

    /// Sign with the one Ed25519 key of an agent that speaks the protocol of ssh-agent
    #[arg(
        long,
        global = true,
        value_name = "SOCKET",
        conflicts_with = "sign_with",
        display_order = 95
    )]
    pub(crate) sign_with_agent: Option<PathBuf>,

    /// File with the passphrase that the key file is encrypted with
    #[arg(long, global = true, value_name = "FILE", display_order = 96)]
    pub(crate) passphrase_file: Option<PathBuf>,
}

impl SigningArguments {
    pub(crate) fn access(&self) -> Result<KeyAccess> {
        let passphrase = self.passphrase_file.as_ref().map(passphrase).transpose()?;
        Ok(KeyAccess {
            place: place(&self.sign_with, &self.sign_with_agent),
            passphrase,
            beside: None,
        })
    }
}

/// Where a key is by two options, of which one at most is given.
fn place(command: &Option<String>, socket: &Option<PathBuf>) -> KeyPlace {
    match (command, socket) {
        (Some(command), _) => KeyPlace::Command(command.clone()),
        (None, Some(socket)) => KeyPlace::Agent(socket.clone()),
        (None, None) => KeyPlace::KeyFile,
    }
}

/// Reads a passphrase from a file. It is no flag and no variable, because others can read those.
pub(crate) fn passphrase(path: &PathBuf) -> Result<Passphrase> {
    use std::io::Read;
    let mut text = String::with_capacity(LARGEST_PASSPHRASE as usize);
    let read = std::fs::File::open(path)
        .and_then(|file| file.take(LARGEST_PASSPHRASE).read_to_string(&mut text));
    read.map_err(|cause| Failure::file(path, "read", &cause))?;
    if text.trim().is_empty() {
        return Err(Failure::usage(format!(
            "the passphrase in {} is empty",
            path.display()
        )));
    }
    let passphrase = Passphrase::new(&text);
    zeroize::Zeroize::zeroize(&mut text);
    Ok(passphrase)
}

/// Print the public keys of a model, or replace the signing key
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("act").args(["rotate", "recover", "encrypt", "decrypt", "pem", "destroy"])),
    group(ArgGroup::new("replace").args(["rotate", "recover"]).multiple(true)),
    after_help = help::KEYS
)]
pub(crate) struct KeysArguments {
    /// Model file
    pub(crate) model: PathBuf,

    /// Replace the key; the old one signs the hand-over
    #[arg(long)]
    pub(crate) rotate: bool,

    /// Replace a key that was lost; the recovery key in FILE signs the hand-over
    #[arg(long, value_name = "FILE")]
    pub(crate) recover: Option<PathBuf>,

    /// With --rotate or --recover: write another recovery key to a new FILE
    #[arg(long, value_name = "FILE", requires = "replace")]
    pub(crate) recovery_key: Option<PathBuf>,

    /// With --rotate or --recover: the new key is that of a program, as for --sign-with
    #[arg(long, value_name = "COMMAND", requires = "replace")]
    pub(crate) next_sign_with: Option<String>,

    /// With --rotate or --recover: the new key is that of an agent, as for --sign-with-agent
    #[arg(
        long,
        value_name = "SOCKET",
        requires = "replace",
        conflicts_with = "next_sign_with"
    )]
    pub(crate) next_sign_with_agent: Option<PathBuf>,

    /// Encrypt the key file with the passphrase in FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) encrypt: Option<PathBuf>,

    /// Keep the key file without a passphrase
    #[arg(long)]
    pub(crate) decrypt: bool,

    /// Destroy the key of an encrypted model: nothing opens its rows and parameters any more, in no
    /// copy
    #[arg(long, requires = "yes")]
    pub(crate) destroy: bool,

    /// With --destroy: yes, for ever
    #[arg(long, requires = "destroy")]
    pub(crate) yes: bool,

    /// Print the key that signs now as PEM, for tools that read COSE receipts
    #[arg(long)]
    pub(crate) pem: bool,
}

impl KeysArguments {
    /// Where a new key is to be.
    pub(crate) fn next_place(&self) -> KeyPlace {
        place(&self.next_sign_with, &self.next_sign_with_agent)
    }
}

/// Put together what shows that a request was carried out, for whoever has to demonstrate it
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("what").args(["request", "subject", "receipt"]).required(true)),
    after_help = help::EVIDENCE
)]
pub(crate) struct EvidenceArguments {
    /// Model file
    pub(crate) model: PathBuf,

    /// The request of this name
    #[arg(long, value_name = "ID")]
    pub(crate) request: Option<String>,

    /// The request about this person, with --opening
    #[arg(long, value_name = "COLUMN=VALUE", value_parser = parse::person, requires = "opening")]
    pub(crate) subject: Option<SubjectValue>,

    /// The opening of the receipt's commitment to the person, as `forget --json` told it
    #[arg(long, value_name = "HEX", requires = "subject")]
    pub(crate) opening: Option<String>,

    /// The receipt of this number or id
    #[arg(long, value_name = "RECEIPT")]
    pub(crate) receipt: Option<String>,

    /// ZIP file to write
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// Overwrite the output file
    #[arg(long)]
    pub(crate) force: bool,
}

/// Look at a receipt's file
#[derive(Debug, Args)]
pub(crate) struct ReceiptArguments {
    #[command(subcommand)]
    pub(crate) action: ReceiptAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReceiptAction {
    /// Print the JSON in a receipt's file; `efface verify` checks the file
    Show {
        /// Receipt file
        file: PathBuf,
    },
    /// Write the request for an RFC 3161 time stamp of a receipt, for an authority
    StampRequest {
        /// Receipt file
        file: PathBuf,
        /// Request to write
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
    /// Put the time stamp of an authority into a receipt's file, if it answers the request
    Attach {
        /// Receipt file
        file: PathBuf,
        /// The request, as `stamp-request` wrote it
        #[arg(long, value_name = "FILE")]
        request: PathBuf,
        /// What the authority answered
        #[arg(long, value_name = "FILE")]
        stamp: PathBuf,
        /// Receipt file to write
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
    /// Write the time stamp in a receipt's file to a file of its own, for `openssl ts -verify
    /// -token_in`
    Stamp {
        /// Receipt file
        file: PathBuf,
        /// Token to write
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
}
