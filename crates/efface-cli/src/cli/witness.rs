//! Witnesses of logs.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::help;

/// Which witnesses must have signed the head of a log.
#[derive(Debug, Args)]
pub(crate) struct QuorumArguments {
    /// File with the public keys of witnesses, as `efface witness key` prints them: they must have
    /// signed the head of the log
    #[arg(long, value_name = "FILE")]
    pub(crate) witness: Option<PathBuf>,

    /// How many of them are enough [default: all]
    #[arg(long, value_name = "N", requires = "witness")]
    pub(crate) quorum: Option<usize>,
}

/// Sign the heads of logs that continue what was seen of them before
#[derive(Debug, Args)]
#[command(after_help = help::WITNESS)]
pub(crate) struct WitnessArguments {
    #[command(subcommand)]
    pub(crate) action: WitnessAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WitnessAction {
    /// Make a witness: a file for what it has seen, and a key beside it
    Init {
        /// File to make; its key is written to STATE.key
        state: PathBuf,
        /// The name of the witness, such as witness.example.org/1
        #[arg(long, value_name = "NAME")]
        name: String,
    },
    /// Print the public key of a witness
    Key {
        /// File of the witness
        state: PathBuf,
    },
    /// Watch a log, or take newer keys of it
    Watch {
        /// File of the witness
        state: PathBuf,
        /// File with the keys of the log, as `efface keys` prints them
        keys: PathBuf,
    },
    /// Check a head against the one that was signed last, and print a signature line for it
    Cosign {
        /// File of the witness
        state: PathBuf,
        /// The request, as `efface log MODEL --for-witness N` writes it; - for standard input
        #[arg(default_value = "-")]
        request: PathBuf,
    },
}
