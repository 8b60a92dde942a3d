//! Which models of a folder have rows of which person, without a name of anybody: keyed hashes of
//! the values in the models' subject columns. The key lies beside the index, readable by its owner
//! alone, so that a copy of the index alone tells nobody anything; who has both can test a guess,
//! as with the models themselves, which hold the rows.
//!
//! The index saves opening models, no more. It is made from the models, can be thrown away at any
//! time, and is believed of a model only while the file has the size and the time of change that it
//! had when it was read.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use efface_receipt::{CommitmentLabel, CommitmentSalt, Hash};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::open_model::OpenModel;
use crate::error::{Error, Result};
use crate::file::outputs::{DraftFile, PRIVATE_MODE, ReplaceLock, open_plain, open_unlinked};
use crate::file::{self, PATIENCE, is_model};
use crate::ledger::suppression::alike;
use crate::randomness::random_bytes;

/// The index of a folder, and its key.
const INDEX: &str = "subjects.index";
const KEY: &str = "subjects.index.key";

/// The models of a folder, in the order of their names. What is no model is passed over, and so are
/// hidden files.
pub(crate) fn models(folder: &Path) -> Result<Vec<PathBuf>> {
    let io = |cause| Error::io(folder, cause);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(io)? {
        let path = entry.map_err(io)?.path();
        let hidden = path
            .file_name()
            .is_none_or(|name| name.to_string_lossy().starts_with('.'));
        if hidden || !path.is_file() {
            continue;
        }
        let mut start = Vec::new();
        // A file that cannot be read might be a model: it is asked, and its error told.
        let readable = open_plain(&path).and_then(|file| file.take(72).read_to_end(&mut start));
        let journal = path.to_string_lossy().ends_with("-journal");
        if readable.is_err() || (is_model(&start) && !journal) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// What the index knows of a model.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct IndexedModel {
    /// The size of the file and the time of its last change, in nanoseconds since 1970, when it was
    /// read.
    bytes: u64,
    changed: u64,
    /// The keyed hashes of the people in it.
    subjects: BTreeSet<Hash>,
}

impl IndexedModel {
    fn at(path: &Path) -> Result<Self> {
        let about = std::fs::metadata(path).map_err(|cause| Error::io(path, cause))?;
        let changed = about.modified().map_err(|cause| Error::io(path, cause))?;
        let changed = changed
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos() as u64);
        Ok(Self {
            bytes: about.len(),
            changed,
            subjects: BTreeSet::new(),
        })
    }

    fn is_of(&self, now: &Self) -> bool {
        self.bytes == now.bytes && self.changed == now.changed
    }
}

/// The index of a folder.
pub(crate) struct SubjectIndex {
    salt: CommitmentSalt,
    models: BTreeMap<String, IndexedModel>,
}

/// What an index holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IndexReport {
    /// Models that were read.
    pub models: usize,
    /// Different people in them.
    pub subjects: usize,
    /// Models that could not be read, or whose rows name no people: they are always asked.
    pub left_out: Vec<String>,
}

/// Reads the people of all models of a folder, and writes the index anew.
pub fn index_folder(folder: &Path) -> Result<IndexReport> {
    // A forget that ends meanwhile takes its person out of the new index.
    let _lock = hold(folder)?;
    let key = folder.join(KEY);
    if !key.exists() {
        let drawn = Hash(*random_bytes::<32>()?);
        write(&key, Zeroizing::new(drawn.to_string()).as_bytes())?;
    }
    let mut index = SubjectIndex {
        salt: salt(&key)?,
        models: BTreeMap::new(),
    };
    let mut left_out = Vec::new();
    for path in models(folder)? {
        let name = name_of(&path);
        match index.read(&path) {
            Ok(Some(known)) => drop(index.models.insert(name, known)),
            Ok(None) | Err(_) => left_out.push(name),
        }
    }
    index.save(folder)?;
    let people: BTreeSet<&Hash> = index
        .models
        .values()
        .flat_map(|model| &model.subjects)
        .collect();
    Ok(IndexReport {
        models: index.models.len(),
        subjects: people.len(),
        left_out,
    })
}

impl SubjectIndex {
    /// The index of a folder; None where there is none.
    pub(crate) fn load(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(INDEX);
        let text = match read(&path) {
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|cause| Error::io(&path, cause))?,
        };
        let models = serde_json::from_slice(&text).map_err(|_| {
            let what = format!("{} is no index of efface", path.display());
            Error::request(what, "remove it, and make it anew with `efface index DIR`")
        })?;
        Ok(Some(Self {
            salt: salt(&folder.join(KEY))?,
            models,
        }))
    }

    /// Whether a model has no rows of a person, as far as the index can tell: it knows the file as
    /// it is now.
    pub(crate) fn is_without(&self, path: &Path, subject: &str) -> bool {
        let (Some(known), Ok(now)) = (self.models.get(&name_of(path)), IndexedModel::at(path))
        else {
            return false;
        };
        known.is_of(&now) && !known.subjects.contains(&self.hash(subject))
    }

    /// Takes a person out of models of the folder that have forgotten it. They have changed since
    /// they were read, and are asked from now on.
    pub(crate) fn forget<'a>(
        folder: &Path,
        subject: &str,
        models: impl Iterator<Item = &'a str>,
    ) -> Result<()> {
        // The index is read again: another request may have changed it since this one began.
        let _lock = hold(folder)?;
        let Some(mut index) = Self::load(folder)? else {
            return Ok(());
        };
        let person = index.hash(subject);
        for name in models {
            if let Some(known) = index.models.get_mut(name) {
                known.subjects.remove(&person);
            }
        }
        index.save(folder)
    }

    /// The people of one model; None where its rows name none.
    fn read(&self, path: &Path) -> Result<Option<IndexedModel>> {
        let mut known = IndexedModel::at(path)?;
        let model = OpenModel::open(path, false, PATIENCE)?;
        let _transaction = model.store.begin(false)?;
        let manifest = model.snapshot()?.manifest;
        if manifest.blueprint.subject.is_none() {
            return Ok(None);
        }
        model.store.with(|connection| {
            file::rows::each(connection, &manifest.outline(), |_, found| {
                known.subjects.extend(
                    found
                        .row
                        .subject
                        .as_deref()
                        .map(|subject| self.hash(subject)),
                );
                Ok(())
            })
        })?;
        Ok(Some(known))
    }

    fn hash(&self, subject: &str) -> Hash {
        self.salt
            .commit(CommitmentLabel::Subject, alike(subject).as_bytes())
    }

    /// Writes the index down.
    fn save(&self, folder: &Path) -> Result<()> {
        let path = folder.join(INDEX);
        let text = serde_json::to_vec(&self.models)
            .map_err(|cause| Error::io(&path, std::io::Error::other(cause)))?;
        write(&path, &text)
    }
}

/// The name of a model in its folder.
pub(crate) fn name_of(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn salt(key: &Path) -> Result<CommitmentSalt> {
    let text = Zeroizing::new(read(key).map_err(|cause| Error::io(key, cause))?);
    let text = std::str::from_utf8(&text).unwrap_or_default();
    match Hash::from_hex(text.trim()) {
        Some(Hash(bytes)) => Ok(CommitmentSalt::new(&Zeroizing::new(bytes))),
        None => Err(Error::Key {
            path: key.to_owned(),
            problem: "it holds something that is no key of an index".into(),
        }),
    }
}

/// Holds the index of a folder from reading to replacing it.
fn hold(folder: &Path) -> Result<ReplaceLock> {
    let path = folder.join(INDEX);
    ReplaceLock::hold(&path).map_err(|cause| Error::io(&path, cause))
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_unlinked(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let written = || -> std::io::Result<()> {
        let mut draft = DraftFile::create_unlinked(path)?;
        draft.write_all(bytes)?;
        draft.publish(true, PRIVATE_MODE)
    };
    written().map_err(|cause| Error::io(path, cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_who_are_forgotten_at_once_all_leave_the_index() {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join(KEY);
        write(&key, Hash([7; 32]).to_string().as_bytes()).unwrap();
        let mut index = SubjectIndex {
            salt: salt(&key).unwrap(),
            models: BTreeMap::new(),
        };
        let people: Vec<String> = (0..24).map(|at| format!("p{at}")).collect();
        let known = IndexedModel {
            bytes: 1,
            changed: 1,
            subjects: people.iter().map(|person| index.hash(person)).collect(),
        };
        index.models.insert("m".into(), known);
        index.save(folder.path()).unwrap();
        std::thread::scope(|scope| {
            for person in &people {
                let forget = || SubjectIndex::forget(folder.path(), person, ["m"].into_iter());
                scope.spawn(move || forget().unwrap());
            }
        });
        let left = SubjectIndex::load(folder.path()).unwrap().unwrap();
        assert!(left.models["m"].subjects.is_empty());
    }
}
