//! A run: check what was asked, open or begin the record, do what is missing, write the page.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use efface_report::Page;

use crate::data::DataFolder;
use crate::draw::trial_seed;
use crate::error::{Error, Result};
use crate::page;
use crate::part::{PaperPart, PaperStudy};
use crate::plan::StudyPlan;
use crate::state::{CACHE, RunIdentity, RunState, TrialRecord};
use crate::studies::{StudyContext, StudyJob, measure};
use crate::watch::RunWatch;

/// What is to be measured, and how.
#[derive(Debug, Clone)]
pub struct ReproduceSettings {
    /// The tables and figures.
    pub parts: Vec<PaperPart>,
    /// Small sizes and few trials: two minutes for everything.
    pub quick: bool,
    /// A folder with the real sets; generated data without.
    pub data: Option<PathBuf>,
    /// Where the page, the CSV files and the record go.
    pub out: PathBuf,
    /// Trials a cell; the paper's without.
    pub trials: Option<usize>,
    /// Fixes everything that is drawn.
    pub seed: u64,
    /// Threads for training; forgetting and retraining alike.
    pub threads: usize,
    /// Begin anew where the folder holds another run, whose files are moved into a folder
    /// `earlier-1` in it.
    pub force: bool,
}

/// What came out.
#[derive(Debug, Clone)]
pub struct FinishedRun {
    /// The page.
    pub index: PathBuf,
    /// All files that were written.
    pub files: Vec<PathBuf>,
    /// The findings in plain words.
    pub findings: Vec<String>,
    /// Trials done now, and trials that were there already.
    pub trials: (usize, usize),
}

/// Work shows as thousandths of an estimated second.
const UNIT: f64 = 1000.0;

/// Measures what is missing and writes the report.
pub fn run(settings: &ReproduceSettings, watch: &mut dyn RunWatch) -> Result<FinishedRun> {
    let plan = if settings.quick {
        StudyPlan::quick()
    } else {
        StudyPlan::full()
    };
    with_plan(settings, plan, watch)
}

pub(crate) fn with_plan(
    settings: &ReproduceSettings,
    plan: StudyPlan,
    watch: &mut dyn RunWatch,
) -> Result<FinishedRun> {
    for (name, value) in [
        ("trials", settings.trials.unwrap_or(1)),
        ("threads", settings.threads),
    ] {
        if value == 0 || value > 100_000 {
            return Err(Error::Setting {
                name,
                value: value.to_string(),
                range: "1 to 100000",
            });
        }
    }
    let studies = studies(&settings.parts);
    let has = |study| studies.contains(&study);
    let data = DataFolder::new(settings.data.as_deref());
    data.check(
        has(PaperStudy::Times) || has(PaperStudy::ReviewInjection) || has(PaperStudy::Membership),
        has(PaperStudy::NetworkTimes) || has(PaperStudy::HeadInjection),
        has(PaperStudy::NetworkTimes),
    )?;
    let ReproduceSettings {
        quick,
        data: folder,
        trials,
        seed,
        threads,
        out,
        ..
    } = settings;
    let identity = RunIdentity::new(*quick, folder.clone(), *trials, *seed, *threads);
    let mut state = RunState::open(out, &identity, settings.force)?;
    let plan = trials.map_or(plan.clone(), |trials| plan.trials(trials));
    let context = StudyContext {
        plan,
        data,
        seed: trial_seed(*seed, 0, 0),
        threads: *threads,
        cache: out.join(CACHE),
    };
    let jobs: Vec<StudyJob> = studies
        .iter()
        .flat_map(|&study| measure(study, &context).jobs())
        .collect();
    let is_missing =
        |state: &RunState, job: &StudyJob| !state.has(job.study.name(), &job.cell, job.trial);
    let missing: Vec<&StudyJob> = jobs.iter().filter(|job| is_missing(&state, job)).collect();
    let seconds: f64 = missing.iter().map(|job| job.cost).sum();
    let there = jobs.len() - missing.len();
    watch.say(&format!(
        "{} trials to do{}, about {} on two idle cores",
        missing.len(),
        if there > 0 {
            format!(", {there} are there already")
        } else {
            String::new()
        },
        minutes(seconds)
    ));
    for reason in page::reasons(&context, settings) {
        watch.say(&reason);
    }
    let done = missing.len();
    let mut finished = write(&context, &state, settings)?;
    for &study in &studies {
        let missing: Vec<&StudyJob> = missing
            .iter()
            .copied()
            .filter(|job| job.study == study)
            .collect();
        if missing.is_empty() {
            continue;
        }
        do_all(study, &missing, &context, &mut state, watch)?;
        finished = write(&context, &state, settings)?;
    }
    finished.trials = (done, there);
    Ok(finished)
}

fn do_all(
    study: PaperStudy,
    jobs: &[&StudyJob],
    context: &StudyContext,
    state: &mut RunState,
    watch: &mut dyn RunWatch,
) -> Result<()> {
    let amount = |jobs: &[&StudyJob]| (jobs.iter().map(|job| job.cost).sum::<f64>() * UNIT) as u64;
    watch.start(page::title(study), amount(jobs).max(1));
    let mut measure = measure(study, context);
    for (at, job) in jobs.iter().enumerate() {
        if watch.stop() {
            watch.finish();
            return Err(Error::Stopped);
        }
        let start = Instant::now();
        let values = measure.run(job, watch)?;
        let seconds = start.elapsed().as_secs_f64();
        let study = study.name().to_string();
        let cell = job.cell.clone();
        // What is no number has no place in JSON, and in a table it is the same as missing.
        let values = values
            .into_iter()
            .filter(|(_, value)| value.is_finite())
            .collect();
        state.add(TrialRecord {
            study,
            cell,
            trial: job.trial,
            seconds,
            values,
        })?;
        watch.at(amount(&jobs[..=at]));
    }
    watch.finish();
    Ok(())
}

fn studies(parts: &[PaperPart]) -> Vec<PaperStudy> {
    let mut studies: Vec<PaperStudy> = parts
        .iter()
        .flat_map(|part| part.studies())
        .copied()
        .collect();
    studies.sort();
    studies.dedup();
    studies
}

/// Writes the page and its CSV files from what is in the record so far.
fn write(
    context: &StudyContext,
    state: &RunState,
    settings: &ReproduceSettings,
) -> Result<FinishedRun> {
    let (page, findings) = page::build(context, &state.records, settings);
    let mut files = Vec::new();
    let index = settings.out.join("index.html");
    put(&index, &page.html())?;
    files.push(index.clone());
    for file in Page::csv(&page) {
        let path = settings.out.join(&file.name);
        put(&path, &file.text)?;
        files.push(path);
    }
    let findings = findings.iter().map(|text| text.plain()).collect();
    Ok(FinishedRun {
        index,
        files,
        findings,
        trials: (0, 0),
    })
}

/// A file is replaced whole or not at all.
fn put(path: &Path, text: &str) -> Result<()> {
    let failed = |cause| Error::file(path, "written", cause);
    let temporary = path.with_extension("part");
    fs::write(&temporary, text).map_err(failed)?;
    fs::rename(&temporary, path).map_err(failed)
}

/// A time for people.
fn minutes(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{:.0} seconds", s.max(1.0)),
        s if s < 5400.0 => format!("{:.0} minutes", s / 60.0),
        s => format!("{:.1} hours", s / 3600.0),
    }
}
