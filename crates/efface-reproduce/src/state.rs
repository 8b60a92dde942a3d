//! The record of a run: `state.jsonl` in the output folder. Its first line says what the run is; every further line is one
//! finished trial, written and flushed before the next begins. A run that was interrupted, whenever, goes on from there, and
//! the report is made from these lines alone.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The format of the file.
const FORMAT: u32 = 1;
/// The record in the output folder.
pub(crate) const FILE: &str = "state.jsonl";

/// What makes two runs one: trials of other settings must not mix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) format: u32,
    pub(crate) quick: bool,
    /// The data folder as it was given; None for generated data.
    pub(crate) data: Option<PathBuf>,
    pub(crate) trials: Option<usize>,
    pub(crate) seed: u64,
    pub(crate) threads: usize,
}

/// One finished trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) study: String,
    pub(crate) cell: String,
    pub(crate) trial: usize,
    /// How long it took.
    pub(crate) seconds: f64,
    pub(crate) values: Values,
}

/// What a trial measured, by name.
pub(crate) type Values = BTreeMap<String, f64>;

/// The open record.
#[derive(Debug)]
pub(crate) struct State {
    path: PathBuf,
    file: File,
    pub(crate) records: Vec<Record>,
}

impl Identity {
    pub(crate) fn new(
        quick: bool,
        data: Option<PathBuf>,
        trials: Option<usize>,
        seed: u64,
        threads: usize,
    ) -> Self {
        Self { format: FORMAT, quick, data, trials, seed, threads }
    }

    /// In what another run differs.
    fn difference(&self, other: &Self) -> Option<String> {
        let show = |value: &Option<PathBuf>| {
            value.as_ref().map_or("generated data".into(), |p| p.display().to_string())
        };
        let trials =
            |value: Option<usize>| value.map_or("the paper's trials".into(), |n| format!("{n} trials"));
        let speed = |quick: bool| if quick { "the quick settings" } else { "the full settings" };
        let pairs = [
            (format!("format {}", self.format), format!("format {}", other.format)),
            (speed(self.quick).into(), speed(other.quick).into()),
            (show(&self.data), show(&other.data)),
            (trials(self.trials), trials(other.trials)),
            (format!("seed {}", self.seed), format!("seed {}", other.seed)),
            (format!("{} threads", self.threads), format!("{} threads", other.threads)),
        ];
        let differs = pairs.iter().find(|(mine, theirs)| mine != theirs);
        differs.map(|(mine, theirs)| format!("it was made with {theirs}, and this one is to be with {mine}"))
    }
}

impl State {
    /// Opens the record of a folder, or begins one in a new or empty folder. `force` moves a record of other settings aside.
    pub(crate) fn open(out: &Path, identity: &Identity, force: bool) -> Result<Self> {
        fs::create_dir_all(out).map_err(|cause| Error::file(out, "created", cause))?;
        let path = out.join(FILE);
        if path.exists() {
            let (found, records, whole) = read(&path)?;
            match identity.difference(&found) {
                None => {
                    let mut file = OpenOptions::new()
                        .read(true)
                        .write(true)
                        .open(&path)
                        .map_err(|cause| Error::file(&path, "opened", cause))?;
                    // A line that was being written when the run ended is no trial.
                    file.set_len(whole).map_err(|cause| Error::file(&path, "written", cause))?;
                    file.seek(SeekFrom::End(0)).map_err(|cause| Error::file(&path, "read", cause))?;
                    return Ok(Self { path, file, records });
                }
                Some(difference) if !force => return Err(Error::OtherRun { out: out.into(), difference }),
                Some(_) => set_aside(out, &path)?,
            }
        } else if !force && !is_empty(out)? {
            return Err(Error::NotARun(out.into()));
        }
        let created = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = created.map_err(|cause| Error::file(&path, "created", cause))?;
        let mut state = Self { path, file, records: Vec::new() };
        state.line(identity)?;
        Ok(state)
    }

    /// Adds a finished trial. When this returns, it is in the file.
    pub(crate) fn add(&mut self, record: Record) -> Result<()> {
        self.line(&record)?;
        self.records.push(record);
        Ok(())
    }

    /// Whether a trial was finished in this run or in an earlier one.
    pub(crate) fn has(&self, study: &str, cell: &str, trial: usize) -> bool {
        self.records.iter().any(|r| r.trial == trial && r.cell == cell && r.study == study)
    }

    fn line(&mut self, value: &impl Serialize) -> Result<()> {
        let failed = |cause| Error::file(&self.path, "written", cause);
        let mut text = serde_json::to_string(value).map_err(|cause| failed(cause.into()))?;
        text.push('\n');
        self.file.write_all(text.as_bytes()).and_then(|()| self.file.flush()).map_err(failed)
    }
}

/// The identity, the records, and the length of what is whole.
fn read(path: &Path) -> Result<(Identity, Vec<Record>, u64)> {
    let mut text = String::new();
    let opened = File::open(path).and_then(|mut file| file.read_to_string(&mut text));
    opened.map_err(|cause| Error::file(path, "read", cause))?;
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let damaged =
        |line: usize, cause: String| Error::Damaged { path: path.into(), line: line + 1, what: cause };
    let mut lines = text[..whole].lines().enumerate();
    let Some((_, first)) = lines.next() else {
        return Err(damaged(0, "it is empty".into()));
    };
    let identity = serde_json::from_str(first).map_err(|cause| damaged(0, cause.to_string()))?;
    let records =
        lines.map(|(at, line)| serde_json::from_str(line).map_err(|cause| damaged(at, cause.to_string())));
    Ok((identity, records.collect::<Result<_>>()?, whole as u64))
}

/// Renames the record of another run to the first name that is free.
fn set_aside(out: &Path, path: &Path) -> Result<()> {
    let free = (1..).map(|n| out.join(format!("state.{n}.jsonl"))).find(|path| !path.exists());
    let Some(free) = free else { return Err(Error::NotARun(out.into())) };
    fs::rename(path, &free).map_err(|cause| Error::file(path, "renamed", cause))
}

fn is_empty(folder: &Path) -> Result<bool> {
    let mut entries = fs::read_dir(folder).map_err(|cause| Error::file(folder, "read", cause))?;
    Ok(entries.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(seed: u64) -> Identity {
        Identity::new(true, None, None, seed, 1)
    }

    fn record(trial: usize) -> Record {
        let values = Values::from([("a".to_string(), 0.1 + trial as f64)]);
        Record { study: "s".into(), cell: "c".into(), trial, seconds: 1.0, values }
    }

    #[test]
    fn a_run_goes_on_where_it_stopped_even_in_the_middle_of_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let mut state = State::open(folder.path(), &identity(1), false).unwrap();
        state.add(record(0)).unwrap();
        state.add(record(1)).unwrap();
        let path = folder.path().join(FILE);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, &text[..text.len() - 7]).unwrap();
        let mut state = State::open(folder.path(), &identity(1), false).unwrap();
        assert_eq!(state.records, [record(0)]);
        assert!(state.has("s", "c", 0) && !state.has("s", "c", 1));
        state.add(record(1)).unwrap();
        let state = State::open(folder.path(), &identity(1), false).unwrap();
        assert_eq!(state.records, [record(0), record(1)]);
    }

    #[test]
    fn another_run_is_refused_and_with_force_set_aside() {
        let folder = tempfile::tempdir().unwrap();
        State::open(folder.path(), &identity(1), false).unwrap().add(record(0)).unwrap();
        let error = State::open(folder.path(), &identity(2), false).unwrap_err();
        assert!(error.to_string().contains("seed 1") && error.to_string().contains("seed 2"), "{error}");
        assert!(State::open(folder.path(), &identity(2), true).unwrap().records.is_empty());
        let old = fs::read_to_string(folder.path().join("state.1.jsonl")).unwrap();
        assert_eq!(old.lines().count(), 2);
    }

    #[test]
    fn a_folder_of_somebody_else_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("thesis.tex"), "x").unwrap();
        assert!(matches!(State::open(folder.path(), &identity(1), false), Err(Error::NotARun(_))));
        assert!(State::open(folder.path(), &identity(1), true).is_ok());
        assert_eq!(fs::read_to_string(folder.path().join("thesis.tex")).unwrap(), "x");
    }

    #[test]
    fn damage_is_named_by_its_line() {
        let folder = tempfile::tempdir().unwrap();
        State::open(folder.path(), &identity(1), false).unwrap().add(record(0)).unwrap();
        let path = folder.path().join(FILE);
        let text = fs::read_to_string(&path).unwrap().replace("\"cell\"", "cell");
        fs::write(&path, text).unwrap();
        let error = State::open(folder.path(), &identity(1), false).unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
    }
}
