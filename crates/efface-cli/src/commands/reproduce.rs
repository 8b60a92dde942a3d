//! `efface reproduce`: the paper's tables and figures, measured again. The work is in
//! `efface-reproduce`; here are the bars and the words.

use std::time::Duration;

use efface_engine::files::check_folder;
use efface_reproduce::{FinishedRun, PaperPart, ReproduceSettings, RunWatch, run as reproduce};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::threads;
use crate::cli::ReproduceArguments;
use crate::failure::Result;
use crate::terminal::Terminal;

#[derive(Serialize)]
struct FinishedStudy<'a> {
    index: String,
    files: Vec<String>,
    findings: &'a [String],
    trials_done: usize,
    trials_kept: usize,
}

pub(crate) fn run(args: &ReproduceArguments, terminal: &Terminal) -> Result {
    let settings = ReproduceSettings {
        parts: PaperPart::parse(&args.parts)?,
        quick: args.quick,
        data: args.data.clone(),
        out: args.out.clone(),
        trials: args.trials,
        seed: args.seed,
        threads: threads(args.threads),
        force: args.force,
    };
    // What a run writes into its folder; what is there of another run is moved aside and not
    // overwritten.
    check_folder(&args.out, &["jsonl", "html", "csv", "part"], &[])?;
    let mut bar = StudyBar {
        terminal,
        bar: None,
    };
    let FinishedRun {
        index,
        files,
        findings,
        trials: (done, kept),
    } = reproduce(&settings, &mut bar)?;
    if terminal.json() {
        let files = files
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let answer = FinishedStudy {
            index: index.display().to_string(),
            files,
            findings: &findings,
            trials_done: done,
            trials_kept: kept,
        };
        return terminal.object(&answer);
    }
    let text = format!(
        "{}\n\nThe report: {}",
        findings.join("\n\n"),
        index.display()
    );
    terminal.result(&text)
}

/// One bar a study, over estimated work, with the sentences above it.
struct StudyBar<'a> {
    terminal: &'a Terminal,
    bar: Option<ProgressBar>,
}

impl RunWatch for StudyBar<'_> {
    fn start(&mut self, what: &str, amount: u64) {
        if !self.terminal.shows_bars() {
            return;
        }
        let bar = ProgressBar::new(amount);
        if let Ok(style) =
            ProgressStyle::with_template("{msg} [{bar:40}] {percent:>3}% {eta:>4} left")
        {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(120));
        self.bar = Some(bar);
    }

    fn at(&mut self, done: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(done);
        }
    }

    fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn say(&mut self, sentence: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| self.terminal.note(sentence)),
            None => self.terminal.note(sentence),
        }
    }
}

impl Drop for StudyBar<'_> {
    fn drop(&mut self) {
        self.finish();
    }
}
