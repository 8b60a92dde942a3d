//! `efface completions`: a script that teaches a shell this command's words.

use clap::CommandFactory;

use crate::cli::{Cli, CompletionsArguments};
use crate::failure::Result;
use crate::terminal::Terminal;

pub(crate) fn run(args: &CompletionsArguments, terminal: &Terminal) -> Result {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "efface", &mut script);
    terminal.result(String::from_utf8_lossy(&script).trim_end())
}
