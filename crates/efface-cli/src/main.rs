//! The `efface` command: parse, dispatch, print the error, choose the exit code. What the verbs do
//! lives in `commands/`, one file each; everything that is more than words on a terminal lives in
//! the libraries.

mod cli;
mod commands;
mod export;
mod failure;
mod flags;
mod list;
mod output;
mod progress;
mod report;
mod terminal;

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};
use crate::failure::{Failure, Result};
use crate::terminal::Terminal;

fn main() -> ExitCode {
    match Cli::try_parse() {
        Ok(cli) => finish(cli),
        Err(told) => show(&told),
    }
}

/// Prints a help page or the version, which are results as any other, or what is wrong with the
/// command line.
fn show(told: &clap::Error) -> ExitCode {
    let printed = told.print().and_then(|()| std::io::stdout().flush());
    match printed {
        Err(cause) if !told.use_stderr() && cause.kind() != ErrorKind::BrokenPipe => {
            let failure = Failure::from(cause);
            Terminal::new(false, false, 0, 0o600, Default::default()).failure(&failure);
            ExitCode::from(failure.code())
        }
        // Clap ends with 0 or 2.
        _ => ExitCode::from(u8::try_from(told.exit_code()).unwrap_or(2)),
    }
}

fn finish(cli: Cli) -> ExitCode {
    let Cli {
        command,
        json,
        quiet,
        wait,
        mode,
        signing,
    } = cli;
    let access = signing.access();
    let terminal = Terminal::new(
        json,
        quiet,
        wait,
        mode,
        access.as_ref().cloned().unwrap_or_default(),
    );
    let outcome = access.and_then(|_| run(command, &terminal));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of our output closed the pipe early, as `head` does: that is no failure.
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            terminal.failure(&failure);
            ExitCode::from(failure.code())
        }
    }
}

fn run(command: Command, terminal: &Terminal) -> Result {
    match command {
        Command::Demo(args) => commands::demo::run(&args, terminal),
        Command::Fit(args) => commands::fit::run(*args, terminal),
        Command::Forget(args) => commands::forget::run(args, terminal),
        Command::Learn(args) => commands::change::learn(&args, terminal),
        Command::Amend(args) => commands::change::amend(&args, terminal),
        Command::Predict(args) => commands::predict::run(&args, terminal),
        Command::Evaluate(args) => commands::evaluate::run(&args, terminal),
        Command::Inspect(args) => commands::inspect::run(&args, terminal),
        Command::Export(args) => commands::export::run(&args, terminal),
        Command::Audit(args) => commands::audit::run(&args, terminal),
        Command::Log(args) => commands::log::run(&args, terminal),
        Command::Receipt(args) => commands::receipt::run(&args, terminal),
        Command::Evidence(args) => commands::evidence::run(&args, terminal),
        Command::Verify(args) => commands::verify::run(&args, terminal),
        Command::Keys(args) => commands::upkeep::keys(&args, terminal),
        Command::Policy(args) => commands::upkeep::policy(&args, terminal),
        Command::Backup(args) => commands::upkeep::backup(&args, terminal),
        Command::Restore(args) => commands::upkeep::restore(&args, terminal),
        Command::Index(args) => commands::folder::index(&args, terminal),
        Command::Witness(args) => commands::witness::run(&args, terminal),
        Command::Settle(args) => commands::upkeep::settle(&args, terminal),
        Command::Serve(args) => commands::serve::serve(&args, terminal),
        Command::Token(args) => commands::serve::token(&args, terminal),
        Command::Reproduce(args) => commands::reproduce::run(&args, terminal),
        Command::Completions(args) => commands::completions::run(&args, terminal),
    }
}
