//! One combination: a model is fitted, changed and compared with a fresh fit on the rows that are
//! left, all through the command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::plan::Plan;
use super::table::{Row, RowSource};
use crate::{Dice, Result};

/// Results of one case, for the totals.
#[derive(Debug, Default, Clone)]
pub(crate) struct CaseCounts {
    /// The reason of the command, if the combination was refused at the fit.
    pub(crate) refused_fit: Option<String>,
    /// Changes that were made.
    pub(crate) changes: usize,
    /// Changes that were refused and left the model as it was.
    pub(crate) refused_changes: usize,
    /// Comparisons with a fresh fit.
    pub(crate) compared: usize,
    /// Comparisons whose claim was exact.
    pub(crate) exact: usize,
    /// States that claim no distance, because features or an approximate step are not covered.
    pub(crate) without_claim: usize,
}

/// Exit code of a command that did what was asked, but missed its tolerance.
const TOLERANCE_MISSED: i32 = 8;

/// Relative difference of two scores that is always allowed. Parameters of an exact claim differ
/// by at most 1e-6, and rows of large norm multiply that.
const ALLOWED: f64 = 1e-7;

/// Factor between the relative bound on parameters and the relative difference of scores: scores
/// of an outlying row are up to this much more sensitive than the largest score suggests.
const SENSITIVITY: f64 = 300.0;

/// The last claim of a model.
struct Claim {
    is_exact: bool,
    relative_bound: f64,
    /// Codes of what the change did not cover and answers depend on.
    not_covered: Vec<String>,
}

/// The reason why a fit was refused.
struct Refused(String);

/// The output of a finished command.
struct Finished {
    code: i32,
    output: String,
    message: String,
}

pub(crate) struct Case<'a> {
    program: &'a Path,
    folder: PathBuf,
    plan: Plan,
    source: RowSource,
    /// Rows of the model, in the order in which they came.
    rows: Vec<Row>,
    dice: Dice,
    /// The commands so far, for the report of a failure.
    commands: Vec<String>,
    counts: CaseCounts,
}

impl<'a> Case<'a> {
    pub(crate) fn new(program: &'a Path, folder: PathBuf, seed: u64) -> Self {
        // Neighbouring seeds must not give neighbouring draws.
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        (0..4).for_each(|_| {
            dice.below(2);
        });
        let plan = Plan::draw(&mut dice);
        let mut source = RowSource::new(plan.shape);
        let mut rows: Vec<Row> = Vec::new();
        for _ in 0..plan.rows {
            let is_twin = !rows.is_empty() && dice.below(20) == 0;
            let row = if is_twin {
                let original = rows[dice.below(rows.len() as u64) as usize].clone();
                source.twin(&original)
            } else {
                source.draw(&mut dice)
            };
            rows.push(row);
        }
        Self {
            program,
            folder,
            plan,
            source,
            rows,
            dice,
            commands: Vec::new(),
            counts: CaseCounts::default(),
        }
    }

    /// Runs the case. An error is a fault, of the command or of this generator.
    pub(crate) fn run(mut self) -> (Vec<String>, Result<CaseCounts>) {
        let outcome = self.steps();
        (self.commands, outcome.map(|()| self.counts))
    }

    /// Fits, changes, compares and verifies.
    fn steps(&mut self) -> Result {
        let mut probe = self.rows.clone();
        probe.extend((0..6).map(|_| self.source.draw(&mut self.dice)));
        let probe = self.source.csv(&probe);
        fs::write(self.folder.join("probe.csv"), probe)?;
        let fitted = self.fit("rows.csv", "model.efface")?;
        let mut claim = match fitted {
            Ok(claim) => claim,
            Err(Refused(reason)) => {
                self.counts.refused_fit = Some(reason);
                return Ok(());
            }
        };
        for _ in 0..1 + self.dice.below(6) {
            let before = self.rows.clone();
            let arguments = self.draw_change()?;
            let scores = self.scores("model.efface")?;
            let done = self.efface(&arguments)?;
            match self.changed(&done)? {
                Some(new_claim) => {
                    claim = new_claim.unwrap_or(claim);
                    self.counts.changes += 1;
                }
                None => {
                    self.rows = before;
                    self.counts.refused_changes += 1;
                    if self.scores("model.efface")? != scores {
                        return Err("a refused change altered the predictions".into());
                    }
                }
            }
            if self.dice.below(3) == 0 {
                self.compare(&claim)?;
            }
        }
        self.compare(&claim)?;
        self.verify()
    }

    /// Runs the command in the folder of the case.
    fn efface(&mut self, arguments: &[String]) -> Result<Finished> {
        self.commands
            .push(format!("efface {}", arguments.join(" ")));
        let output = Command::new(self.program)
            .args(arguments)
            .current_dir(&self.folder)
            .output()?;
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        // A panic exits with 101, a signal gives no code.
        let code = output.status.code().unwrap_or(-1);
        if code < 0 || code == 101 || message.contains("panicked") {
            return Err(format!("the command ended abnormally: {message}").into());
        }
        Ok(Finished {
            code,
            output: String::from_utf8_lossy(&output.stdout).into_owned(),
            message,
        })
    }

    /// Fits a model of the present rows.
    fn fit(&mut self, table: &str, model: &str) -> Result<std::result::Result<Claim, Refused>> {
        fs::write(self.folder.join(table), self.source.csv(&self.rows))?;
        let mut arguments = words(&["fit", table, "-o", model, "--json"]);
        if model != "model.efface" {
            arguments.extend(words(&["--force", "--discard-log"]));
        }
        arguments.extend(self.plan.fit.iter().cloned());
        let done = self.efface(&arguments)?;
        if done.code != 0 && done.code != TOLERANCE_MISSED {
            if done.message.trim().is_empty() {
                return Err("a fit was refused without a reason".into());
            }
            return Ok(Err(Refused(done.message)));
        }
        let report: Value = serde_json::from_str(&done.output)?;
        Ok(Ok(Claim {
            is_exact: true,
            relative_bound: number(&report["summary"]["relative_bound"]),
            not_covered: Vec::new(),
        }))
    }

    /// Draws a change, writes its files and applies it to the rows that this case keeps.
    fn draw_change(&mut self) -> Result<Vec<String>> {
        let count = self.rows.len() as u64;
        let change = self.dice.below(10);
        if change == 0 {
            return Ok(words(&["settle", "model.efface", "--json"]));
        }
        if change <= 2 {
            let new: Vec<Row> = (0..1 + self.dice.below(5))
                .map(|_| self.source.draw(&mut self.dice))
                .collect();
            fs::write(self.folder.join("new.csv"), self.source.csv(&new))?;
            self.rows.extend(new);
            return Ok(words(&["learn", "model.efface", "new.csv", "--json"]));
        }
        if change == 3 {
            let mut amended: Vec<Row> = Vec::new();
            for _ in 0..1 + self.dice.below(3) {
                let at = self.dice.below(count) as usize;
                let row = self.source.amended(&self.rows[at], &mut self.dice);
                if amended.iter().all(|other| other.id != row.id) {
                    self.rows[at] = row.clone();
                    amended.push(row);
                }
            }
            fs::write(self.folder.join("amended.csv"), self.source.csv(&amended))?;
            return Ok(words(&["amend", "model.efface", "amended.csv", "--json"]));
        }
        let method = if self.dice.below(2) == 0 {
            "auto"
        } else {
            self.plan.methods[self.dice.below(self.plan.methods.len() as u64) as usize]
        };
        let chosen = self.rows[self.dice.below(count) as usize].clone();
        let mut arguments = words(&["forget", "model.efface", "--json", "--method", method]);
        if change == 4 {
            arguments.extend(words(&["--subject", &format!("person={}", chosen.person)]));
            self.rows.retain(|row| row.person != chosen.person);
            return Ok(arguments);
        }
        let leaving: Vec<String> = match change {
            // All rows of a level or of a class: features and classes without rows are left.
            5 => self.ids_where(|row| row.level == chosen.level && !row.level.is_empty()),
            6 if self.dice.below(3) == 0 => self.ids_where(|row| row.class == chosen.class),
            _ => {
                let wanted = 1 + self.dice.below(8);
                let mut ids: Vec<String> = (0..wanted)
                    .map(|_| self.rows[self.dice.below(count) as usize].id.clone())
                    .collect();
                ids.sort();
                ids.dedup();
                ids
            }
        };
        self.rows.retain(|row| !leaving.contains(&row.id));
        arguments.extend(words(&["--ids", &leaving.join(",")]));
        Ok(arguments)
    }

    fn ids_where(&self, holds: impl Fn(&Row) -> bool) -> Vec<String> {
        let rows = self.rows.iter().filter(|&row| holds(row));
        rows.map(|row| row.id.clone()).collect()
    }

    /// Reads the report of a change. Returns None if it was refused; a settle makes no new claim.
    #[allow(
        clippy::option_option,
        reason = "refused, done without a claim, done with one"
    )]
    fn changed(&self, done: &Finished) -> Result<Option<Option<Claim>>> {
        if done.code != 0 && done.code != TOLERANCE_MISSED {
            if done.message.trim().is_empty() {
                return Err("a change was refused without a reason".into());
            }
            return Ok(None);
        }
        let report: Value = serde_json::from_str(&done.output)?;
        let Some(claim) = report["claim"].as_str() else {
            return Ok(Some(None));
        };
        let evidence = &report["evidence"];
        let relative_bound = number(&evidence["relative_bound"]);
        let not_covered: Vec<String> = evidence["not_covered"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|item| item["code"].as_str())
            .filter(|code| !KEPT_ON_PURPOSE.contains(code))
            .map(str::to_owned)
            .collect();
        if claim == "exact" && !relative_bound.is_finite() {
            return Err("exact is claimed without a bound".into());
        }
        Ok(Some(Some(Claim {
            is_exact: claim == "exact",
            relative_bound,
            not_covered,
        })))
    }

    /// The predictions of a model for the probe rows, as text.
    fn scores(&mut self, model: &str) -> Result<String> {
        let done = self.efface(&words(&["predict", model, "probe.csv", "--json"]))?;
        if done.code != 0 {
            return Err(format!("predict fails: {}", done.message.trim()).into());
        }
        Ok(done.output)
    }

    /// Compares the model with a model that never saw the rows that left.
    fn compare(&mut self, claim: &Claim) -> Result {
        let is_comparable = claim.not_covered.is_empty()
            && claim.relative_bound.is_finite()
            && !self.plan.has_noise;
        if !is_comparable {
            self.counts.without_claim += 1;
            return Ok(());
        }
        let reference = if self.plan.follows_from_positions {
            self.retrained()?
        } else {
            self.fit("left.csv", "fresh.efface")?.ok()
        };
        let Some(reference) = reference else {
            // For example, one class is left. The model may say the same at its next change.
            self.counts.without_claim += 1;
            return Ok(());
        };
        let ours = self.scores("model.efface")?;
        let theirs = self.scores("fresh.efface")?;
        let difference = relative_difference(&ours, &theirs)?;
        let allowed = ALLOWED + SENSITIVITY * (claim.relative_bound + reference.relative_bound);
        self.counts.compared += 1;
        self.counts.exact += usize::from(claim.is_exact);
        if difference > allowed {
            let kind = if claim.is_exact {
                "exact"
            } else {
                "approximate"
            };
            return Err(format!(
                "the scores differ by {difference:.1e} from those of a fresh fit, {allowed:.1e} is \
                 allowed; the claim is {kind} with a relative bound of {:.1e}",
                claim.relative_bound
            )
            .into());
        }
        Ok(())
    }

    /// Forgets one more row, from the model by its own choice and from a copy by retraining. The
    /// seeds of k-means and shards meet positions of rows in the file, so that a fit of another
    /// file would place them differently.
    fn retrained(&mut self) -> Result<Option<Claim>> {
        for ending in ["", ".key", ".head"] {
            let from = self.folder.join(format!("model.efface{ending}"));
            if from.exists() {
                fs::copy(from, self.folder.join(format!("fresh.efface{ending}")))?;
            }
        }
        let at = self.dice.below(self.rows.len() as u64) as usize;
        let id = self.rows[at].id.clone();
        let forget =
            |model, method| words(&["forget", model, "--json", "--method", method, "--ids", &id]);
        let done = self.efface(&forget("fresh.efface", "retrain"))?;
        let Some(claim) = self.changed(&done)? else {
            return Ok(None);
        };
        let done = self.efface(&forget("model.efface", "auto"))?;
        if self.changed(&done)?.is_none() {
            return Err("a row can be forgotten by retrain and not by auto".into());
        }
        self.rows.remove(at);
        Ok(claim)
    }

    /// The file passes its own checks, with its parameters computed again from its rows.
    fn verify(&mut self) -> Result {
        let done = self.efface(&words(&["verify", "model.efface", "--rows"]))?;
        if done.code == 0 {
            return Ok(());
        }
        Err(format!("verify fails: {}{}", done.output, done.message).into())
    }
}

/// Codes of `not_covered` on which no answer depends, or none of requests that are drawn without
/// looking at the model.
const KEPT_ON_PURPOSE: [&str; 8] = [
    "adaptive_requests",
    "kept_curvature",
    "column_units",
    "class_gauge",
    "awaiting_settle",
    "forgotten_ids",
    "storage_blocks",
    "older_copies",
];

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// A number of a report; infinite where it is absent, because JSON has no infinity.
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::INFINITY)
}

/// The largest difference of two lists of predictions, relative to the largest score.
fn relative_difference(ours: &str, theirs: &str) -> Result<f64> {
    let (mut largest, mut difference) = (0.0_f64, 0.0_f64);
    let (ours, theirs): (Vec<&str>, Vec<&str>) = (ours.lines().collect(), theirs.lines().collect());
    if ours.len() != theirs.len() {
        return Err("the models predict different numbers of rows".into());
    }
    for (ours, theirs) in ours.iter().zip(theirs) {
        let ours: Value = serde_json::from_str(ours)?;
        let theirs: Value = serde_json::from_str(theirs)?;
        for key in ["prediction", "scores", "distances", "probabilities"] {
            let mut pairs = Vec::new();
            pair_numbers(&ours[key], &theirs[key], &mut pairs)?;
            for (ours, theirs) in pairs {
                largest = largest.max(theirs.abs());
                difference = difference.max((ours - theirs).abs());
            }
        }
    }
    Ok(difference / largest.max(f64::MIN_POSITIVE))
}

/// Collects the numbers of two JSON values, name by name.
fn pair_numbers(ours: &Value, theirs: &Value, pairs: &mut Vec<(f64, f64)>) -> Result {
    match (ours, theirs) {
        (Value::Number(_), Value::Number(_)) => pairs.push((number(ours), number(theirs))),
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            for (ours, theirs) in ours.iter().zip(theirs) {
                pair_numbers(ours, theirs, pairs)?;
            }
        }
        (Value::Object(ours), Value::Object(theirs)) => {
            for name in ours.keys().chain(theirs.keys()) {
                let (ours, theirs) = (ours.get(name), theirs.get(name));
                let (Some(ours), Some(theirs)) = (ours, theirs) else {
                    return Err("the models have different outputs".into());
                };
                pair_numbers(ours, theirs, pairs)?;
            }
        }
        // A class of a row whose scores are equal may be either.
        (Value::String(_), Value::String(_)) | (Value::Null, Value::Null) => {}
        _ => return Err("the models give values of different kinds".into()),
    }
    Ok(())
}
