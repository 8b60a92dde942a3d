//! The record of a run: `state.jsonl` in the output folder. Its first line says what the run is;
//! every further line is one finished trial, written and flushed before the next begins. A run that
//! was interrupted, whenever, goes on from there, and the report is made from these lines alone.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The format of the file. A change of what a study records is a new one, so that old trials are
/// not taken for new ones.
const FORMAT: u32 = 2;
/// The record in the output folder.
pub(crate) const FILE: &str = "state.jsonl";
/// The folder for trained networks beside it.
pub(crate) const CACHE: &str = "cache";
/// How every record begins.
const BEGINNING: &[u8] = b"{\"format\":";

/// What makes two runs one: trials of other settings must not mix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunIdentity {
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
pub(crate) struct TrialRecord {
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
pub(crate) struct RunState {
    path: PathBuf,
    file: File,
    pub(crate) records: Vec<TrialRecord>,
}

impl RunIdentity {
    pub(crate) fn new(
        quick: bool,
        data: Option<PathBuf>,
        trials: Option<usize>,
        seed: u64,
        threads: usize,
    ) -> Self {
        Self {
            format: FORMAT,
            quick,
            data,
            trials,
            seed,
            threads,
        }
    }

    /// In what another run differs.
    fn difference(&self, other: &Self) -> Option<String> {
        let show = |value: &Option<PathBuf>| {
            value
                .as_ref()
                .map_or("generated data".into(), |p| p.display().to_string())
        };
        let trials = |value: Option<usize>| {
            value.map_or("the paper's trials".into(), |n| format!("{n} trials"))
        };
        let speed = |quick: bool| {
            if quick {
                "the quick settings"
            } else {
                "the full settings"
            }
        };
        let pairs = [
            (
                format!("format {}", self.format),
                format!("format {}", other.format),
            ),
            (speed(self.quick).into(), speed(other.quick).into()),
            (show(&self.data), show(&other.data)),
            (trials(self.trials), trials(other.trials)),
            (
                format!("seed {}", self.seed),
                format!("seed {}", other.seed),
            ),
            (
                format!("{} threads", self.threads),
                format!("{} threads", other.threads),
            ),
        ];
        let differs = pairs.iter().find(|(mine, theirs)| mine != theirs);
        differs.map(|(mine, theirs)| {
            format!("it was made with {theirs}, and this one is to be with {mine}")
        })
    }
}

impl RunState {
    /// Opens the record of a folder, or begins one in a new or empty folder. `force` moves what a
    /// run of other settings made aside. The record is locked: a second process in the same folder
    /// is refused.
    pub(crate) fn open(out: &Path, identity: &RunIdentity, force: bool) -> Result<Self> {
        fs::create_dir_all(out).map_err(|cause| Error::file(out, "created", cause))?;
        let path = out.join(FILE);
        if path.exists() {
            let opened = OpenOptions::new().read(true).write(true).open(&path);
            let mut file = locked(
                opened.map_err(|cause| Error::file(&path, "opened", cause))?,
                out,
            )?;
            let Some((found, records, whole)) = read(&path, &mut file)? else {
                // Cut off before its first line was whole: there is nothing to go on from.
                cut(&path, &mut file, 0)?;
                return Self::begin(path, file, identity);
            };
            match identity.difference(&found) {
                None => {
                    // A line that was being written when the run ended is no trial.
                    cut(&path, &mut file, whole)?;
                    return Ok(Self {
                        path,
                        file,
                        records,
                    });
                }
                Some(difference) if !force => {
                    return Err(Error::OtherRun {
                        out: out.into(),
                        difference,
                    });
                }
                Some(_) => {}
            }
        } else if !force && !is_empty(out)? {
            return Err(Error::NotARun(out.into()));
        }
        set_aside(out)?;
        let created = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path);
        let file = locked(
            created.map_err(|cause| Error::file(&path, "created", cause))?,
            out,
        )?;
        Self::begin(path, file, identity)
    }

    fn begin(path: PathBuf, file: File, identity: &RunIdentity) -> Result<Self> {
        let mut state = Self {
            path,
            file,
            records: Vec::new(),
        };
        state.line(identity)?;
        Ok(state)
    }

    /// Adds a finished trial. When this returns, it is in the file.
    pub(crate) fn add(&mut self, record: TrialRecord) -> Result<()> {
        self.line(&record)?;
        self.records.push(record);
        Ok(())
    }

    /// Whether a trial was finished in this run or in an earlier one.
    pub(crate) fn has(&self, study: &str, cell: &str, trial: usize) -> bool {
        self.records
            .iter()
            .any(|r| r.trial == trial && r.cell == cell && r.study == study)
    }

    fn line(&mut self, value: &impl Serialize) -> Result<()> {
        let failed = |cause| Error::file(&self.path, "written", cause);
        let mut text = serde_json::to_string(value).map_err(|cause| failed(cause.into()))?;
        text.push('\n');
        self.file
            .write_all(text.as_bytes())
            .and_then(|()| self.file.flush())
            .map_err(failed)
    }
}

/// The identity, the records, and the length of what is whole; None where not even the first line
/// is.
fn read(path: &Path, file: &mut File) -> Result<Option<(RunIdentity, Vec<TrialRecord>, u64)>> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)
        .map_err(|cause| Error::file(path, "read", cause))?;
    let damaged = |line: usize, cause: String| Error::Damaged {
        path: path.into(),
        line: line + 1,
        what: cause,
    };
    // What follows the last line break was being written, and may end in the middle of a letter.
    let whole = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |end| end + 1);
    if whole == 0 && (BEGINNING.starts_with(&bytes) || bytes.starts_with(BEGINNING)) {
        return Ok(None);
    }
    let line = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count();
    let text = std::str::from_utf8(&bytes[..whole]).map_err(|fault| {
        damaged(
            line(&bytes[..fault.valid_up_to()]),
            "it is not UTF-8".into(),
        )
    })?;
    let mut lines = text.lines().enumerate();
    let Some((_, first)) = lines.next() else {
        return Err(damaged(0, "it is no record of a run".into()));
    };
    let identity = serde_json::from_str(first).map_err(|cause| damaged(0, cause.to_string()))?;
    let records = lines.map(|(at, line)| {
        serde_json::from_str(line).map_err(|cause| damaged(at, cause.to_string()))
    });
    Ok(Some((
        identity,
        records.collect::<Result<_>>()?,
        whole as u64,
    )))
}

/// The file with a lock on it. Where the file system knows no locks, it goes without.
fn locked(file: File, out: &Path) -> Result<File> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Error::Busy(out.into())),
        _ => Ok(file),
    }
}

/// Shortens the file and goes to its end.
fn cut(path: &Path, file: &mut File, length: u64) -> Result<()> {
    let done = file
        .set_len(length)
        .and_then(|()| file.seek(SeekFrom::End(0)));
    done.map(|_| ())
        .map_err(|cause| Error::file(path, "written", cause))
}

/// Moves what an earlier run made into a folder of its own, so that nothing is overwritten and
/// nothing of it, such as a trained network, is taken for this run's.
fn set_aside(out: &Path) -> Result<()> {
    let entries = fs::read_dir(out).map_err(|cause| Error::file(out, "read", cause))?;
    let names: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.file_name()))
        .collect();
    let made: Vec<_> = names
        .into_iter()
        .filter(|name| name.to_str().is_some_and(is_made_here))
        .collect();
    if made.is_empty() {
        return Ok(());
    }
    let free = (1..)
        .map(|n| out.join(format!("earlier-{n}")))
        .find(|path| !path.exists());
    let Some(free) = free else {
        return Err(Error::NotARun(out.into()));
    };
    fs::create_dir(&free).map_err(|cause| Error::file(&free, "created", cause))?;
    for name in made {
        let path = out.join(&name);
        fs::rename(&path, free.join(&name)).map_err(|cause| Error::file(&path, "moved", cause))?;
    }
    Ok(())
}

/// Whether a run would write a file or folder of that name.
fn is_made_here(name: &str) -> bool {
    let starts = |words: &[&str]| words.iter().any(|word| name.starts_with(word));
    matches!(name, FILE | CACHE | "index.html" | "text.csv")
        || name.ends_with(".csv") && starts(&["table", "figure", "l2", "adaptive", "membership"])
}

fn is_empty(folder: &Path) -> Result<bool> {
    let mut entries = fs::read_dir(folder).map_err(|cause| Error::file(folder, "read", cause))?;
    Ok(entries.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(seed: u64) -> RunIdentity {
        RunIdentity::new(true, None, None, seed, 1)
    }

    fn record(trial: usize) -> TrialRecord {
        let values = Values::from([("a".to_string(), 0.1 + trial as f64)]);
        TrialRecord {
            study: "s".into(),
            cell: "c".into(),
            trial,
            seconds: 1.0,
            values,
        }
    }

    #[test]
    fn a_run_goes_on_where_it_stopped_even_in_the_middle_of_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let mut state = RunState::open(folder.path(), &identity(1), false).unwrap();
        state.add(record(0)).unwrap();
        state.add(record(1)).unwrap();
        let path = folder.path().join(FILE);
        let text = fs::read_to_string(&path).unwrap();
        assert!(matches!(
            RunState::open(folder.path(), &identity(1), false),
            Err(Error::Busy(_))
        ));
        drop(state);
        // The last byte that was written is the first half of a letter.
        fs::write(
            &path,
            [&text.as_bytes()[..text.len() - 7], b"\xc3"].concat(),
        )
        .unwrap();
        let mut state = RunState::open(folder.path(), &identity(1), false).unwrap();
        assert_eq!(state.records, [record(0)]);
        assert!(state.has("s", "c", 0) && !state.has("s", "c", 1));
        state.add(record(1)).unwrap();
        drop(state);
        let state = RunState::open(folder.path(), &identity(1), false).unwrap();
        assert_eq!(state.records, [record(0), record(1)]);
    }

    #[test]
    fn another_run_is_refused_and_with_force_set_aside() {
        let folder = tempfile::tempdir().unwrap();
        RunState::open(folder.path(), &identity(1), false)
            .unwrap()
            .add(record(0))
            .unwrap();
        let error = RunState::open(folder.path(), &identity(2), false).unwrap_err();
        assert!(
            error.to_string().contains("seed 1") && error.to_string().contains("seed 2"),
            "{error}"
        );
        let made = ["index.html", "table4.csv", "text.csv"];
        made.iter()
            .for_each(|name| fs::write(folder.path().join(name), "old").unwrap());
        fs::write(folder.path().join("notes.csv"), "mine").unwrap();
        fs::create_dir(folder.path().join(CACHE)).unwrap();
        fs::write(folder.path().join(CACHE).join("news-d1000.network"), "old").unwrap();
        assert!(
            RunState::open(folder.path(), &identity(2), true)
                .unwrap()
                .records
                .is_empty()
        );
        // Everything of the old run is kept, and nothing of it is where this run would find it.
        let old = folder.path().join("earlier-1");
        assert_eq!(
            fs::read_to_string(old.join(FILE)).unwrap().lines().count(),
            2
        );
        made.iter()
            .for_each(|name| assert_eq!(fs::read_to_string(old.join(name)).unwrap(), "old"));
        assert!(
            old.join(CACHE).join("news-d1000.network").exists()
                && !folder.path().join(CACHE).exists()
        );
        assert_eq!(
            fs::read_to_string(folder.path().join("notes.csv")).unwrap(),
            "mine"
        );
        assert!(
            RunState::open(folder.path(), &identity(3), true)
                .unwrap()
                .records
                .is_empty()
        );
        assert!(folder.path().join("earlier-2").join(FILE).exists());
    }

    #[test]
    fn a_run_that_ended_before_its_first_line_begins_again() {
        for left in ["", "{\"for", "{\"format\":1,\"quick\":tr"] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(FILE);
            fs::write(&path, left).unwrap();
            RunState::open(folder.path(), &identity(1), false)
                .unwrap()
                .add(record(0))
                .unwrap();
            assert_eq!(
                RunState::open(folder.path(), &identity(1), false)
                    .unwrap()
                    .records,
                [record(0)]
            );
        }
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE), "something else").unwrap();
        assert!(matches!(
            RunState::open(folder.path(), &identity(1), false),
            Err(Error::Damaged { .. })
        ));
        assert_eq!(
            fs::read_to_string(folder.path().join(FILE)).unwrap(),
            "something else"
        );
    }

    #[test]
    fn a_folder_of_somebody_else_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("thesis.tex"), "x").unwrap();
        assert!(matches!(
            RunState::open(folder.path(), &identity(1), false),
            Err(Error::NotARun(_))
        ));
        assert!(RunState::open(folder.path(), &identity(1), true).is_ok());
        assert_eq!(
            fs::read_to_string(folder.path().join("thesis.tex")).unwrap(),
            "x"
        );
    }

    #[test]
    fn damage_is_named_by_its_line() {
        let folder = tempfile::tempdir().unwrap();
        RunState::open(folder.path(), &identity(1), false)
            .unwrap()
            .add(record(0))
            .unwrap();
        let path = folder.path().join(FILE);
        let text = fs::read_to_string(&path)
            .unwrap()
            .replace("\"cell\"", "cell");
        fs::write(&path, text).unwrap();
        let error = RunState::open(folder.path(), &identity(1), false).unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
    }
}
