//! Where words go: results on standard output, messages, notes and errors on standard error.
//! Nothing here panics when a stream is closed.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use efface_engine::{Engine, KeyAccess};
use efface_io::machine_memory;
use efface_report::plain_text;
use serde::Serialize;

use crate::failure::{Failure, Result};
use crate::progress::ProgressBars;

/// How the user wants to be spoken to.
#[derive(Debug, Clone)]
pub(crate) struct Terminal {
    json: bool,
    quiet: bool,
    wait: Duration,
    mode: u32,
    access: KeyAccess,
}

impl Terminal {
    pub(crate) fn new(json: bool, quiet: bool, wait: u64, mode: u32, access: KeyAccess) -> Self {
        Self {
            json,
            quiet,
            wait: Duration::from_secs(wait),
            mode,
            access,
        }
    }

    /// How to come to the keys of a model.
    pub(crate) fn access(&self) -> &KeyAccess {
        &self.access
    }

    /// Opens a model in order to change it, as patiently as the user is.
    pub(crate) fn change(&self, model: &Path) -> Result<Engine> {
        let mut engine = Engine::open_within(model, self.wait)?;
        engine.set_key_access(self.access.clone());
        engine.set_memory(machine_memory() / 4);
        Ok(engine)
    }

    /// Opens a model in order to look at it, as patiently as the user is.
    pub(crate) fn look(&self, model: &Path) -> Result<Engine> {
        let mut engine = Engine::open_read_only_within(model, self.wait)?;
        engine.set_key_access(self.access.clone());
        engine.set_memory(machine_memory() / 4);
        if let Some(what) = engine.rollback()? {
            self.warn(&format!("{}: {what}", model.display()));
        }
        Ok(engine)
    }

    /// How long the user waits for other processes.
    pub(crate) fn patience(&self) -> Duration {
        self.wait
    }

    /// Who may read the files that a command writes.
    pub(crate) fn mode(&self) -> u32 {
        self.mode
    }

    /// Whether only results and errors are wanted.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Whether results are JSON.
    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// A result for people on standard output.
    pub(crate) fn result(&self, text: &str) -> Result {
        print(&plain_text(text))
    }

    /// One JSON object on a line of standard output.
    pub(crate) fn object(&self, value: &impl Serialize) -> Result {
        let text = serde_json::to_string(value)
            .map_err(|cause| Failure::internal(format!("a result is no JSON: {cause}")))?;
        print(&text)
    }

    /// What was done, in a line for people. JSON says it already, so this is silent then.
    pub(crate) fn message(&self, text: &str) {
        if !self.quiet && !self.json {
            say(text);
        }
    }

    /// Something worth knowing that is not the result.
    pub(crate) fn note(&self, text: &str) {
        self.message(&format!("note: {text}"));
    }

    /// Something that should be known before going on; not silenced by wanting JSON.
    pub(crate) fn warn(&self, text: &str) {
        if !self.quiet {
            say(&format!("warning: {text}"));
        }
    }

    /// Why the command stopped, or fell short; never silent.
    pub(crate) fn failure(&self, failure: &Failure) {
        let what = if failure.is_warning() {
            "warning"
        } else {
            "error"
        };
        say(&format!("{what}: {}", failure.message));
        if let Some(hint) = &failure.hint {
            say(&format!("hint: {hint}"));
        }
    }

    /// Progress bars on standard error, or none off a terminal and when quiet.
    pub(crate) fn bars(&self) -> ProgressBars {
        ProgressBars::new(self.shows_bars(), !self.quiet && !self.json)
    }

    /// Whether there is somebody to look at bars.
    pub(crate) fn shows_bars(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }
}

fn print(text: &str) -> Result {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

/// There is nobody left to tell when standard error is closed.
fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", plain_text(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_given_no_orders() {
        assert_eq!(plain_text("row \u{1b}[2J\rx\n"), "row \\u{1b}[2J\\rx\n");
    }
}
