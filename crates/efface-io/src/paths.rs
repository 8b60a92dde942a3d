//! The files that a name stands for: the file itself, the data files of a folder, or those that
//! match a pattern.

use std::io;
use std::path::{Component, Path, PathBuf};

use crate::FileFormat;
use crate::error::{Error, ReadFault, Result};

/// The files that a name stands for, in the order of their names. A folder stands for the files in
/// it whose extension tells a format, or for all of them where a format is given; names that begin
/// with `.` or `_` are left out, and folders inside it too. A name that is none of a file stands,
/// where it holds `*` or `?`, for all files that it matches.
///
/// # Errors
/// A folder cannot be read, or the name stands for no file at all.
pub fn files_of(path: &Path, format: Option<FileFormat>) -> Result<Vec<PathBuf>> {
    let refused = |cause: io::Error| Error::new(path, ReadFault::Open(cause));
    if path.is_dir() {
        let names = entries(path).map_err(refused)?;
        let files = names
            .into_iter()
            .map(|name| path.join(name))
            .filter(|file| {
                let is_data = format.is_some() || FileFormat::of_path(file).is_some();
                let hidden = |name: &str| name.starts_with(['.', '_']);
                is_data
                    && !file
                        .file_name()
                        .and_then(|name| name.to_str())
                        .is_some_and(hidden)
                    && file.is_file()
            });
        return some(
            path,
            files.collect(),
            "no file in this folder has the extension of a data file",
        );
    }
    if path.exists() || !path.to_str().is_some_and(is_pattern) {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = vec![PathBuf::new()];
    for component in path.components() {
        let name = match component {
            Component::Normal(name) => name.to_str().filter(|name| is_pattern(name)),
            _ => None,
        };
        let Some(pattern) = name else {
            found.iter_mut().for_each(|path| path.push(component));
            continue;
        };
        let mut matched = Vec::new();
        for folder in found {
            let folder_name = if folder.as_os_str().is_empty() {
                Path::new(".")
            } else {
                &folder
            };
            // What is no folder holds nothing that could match.
            let names = entries(folder_name).unwrap_or_default();
            let fitting = names
                .into_iter()
                .filter(|name| is_match(pattern.as_bytes(), name.as_bytes()));
            matched.extend(fitting.map(|name| folder.join(name)));
        }
        found = matched;
    }
    found.retain(|file| file.is_file());
    some(path, found, "no file matches this pattern")
}

fn some(path: &Path, files: Vec<PathBuf>, problem: &'static str) -> Result<Vec<PathBuf>> {
    if files.is_empty() {
        Err(Error::new(path, ReadFault::NoFiles(problem)))
    } else {
        Ok(files)
    }
}

/// Whether a name holds what stands for other letters.
#[must_use]
pub fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?'])
}

/// The names in a folder that are text, in order.
fn entries(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        names.extend(entry?.file_name().into_string().ok());
    }
    names.sort_unstable();
    Ok(names)
}

/// Whether a name matches, letter by letter: `*` stands for any number of letters, `?` for one. A
/// hidden name is matched by one that says so.
fn is_match(pattern: &[u8], name: &[u8]) -> bool {
    if name.starts_with(b".") && !pattern.starts_with(b".") {
        return false;
    }
    let mut at = 0;
    let mut next = 0;
    // The last star, and where what it stands for ends.
    let mut star: Option<(usize, usize)> = None;
    while at < name.len() {
        match (pattern.get(next), star) {
            (Some(b'*'), _) => {
                star = Some((next, at));
                next += 1;
            }
            (Some(letter), _) if *letter == b'?' || *letter == name[at] => {
                next += 1;
                at += 1;
            }
            (_, Some((place, end))) => {
                star = Some((place, end + 1));
                next = place + 1;
                at = end + 1;
            }
            (_, None) => return false,
        }
    }
    pattern[next..].iter().all(|letter| *letter == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        let matches = |pattern: &str, name: &str| is_match(pattern.as_bytes(), name.as_bytes());
        assert!(
            matches("*.csv", "a.csv") && matches("a*b*c", "aXbYbc") && matches("?.csv", "a.csv")
        );
        assert!(matches("*", "") && matches("**", "a") && matches(".*", ".a"));
        assert!(
            !matches("*.csv", "a.csvx")
                && !matches("?", "ab")
                && !matches("*", ".a")
                && !matches("a", "b")
        );
    }

    #[test]
    fn folders_and_patterns_stand_for_their_files() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "b.csv",
            "a.csv",
            "_SUCCESS",
            ".hidden.csv",
            "notes.txt",
            "m.efface",
        ] {
            std::fs::write(folder.path().join(name), "x\n").unwrap();
        }
        std::fs::create_dir(folder.path().join("more.csv")).unwrap();
        std::fs::write(folder.path().join("more.csv/c.csv"), "x\n").unwrap();
        let names = |path: &Path, format| -> Vec<String> {
            let files = files_of(path, format).unwrap();
            files
                .iter()
                .map(|file| {
                    file.strip_prefix(folder.path())
                        .unwrap()
                        .display()
                        .to_string()
                })
                .collect()
        };
        assert_eq!(names(folder.path(), None), ["a.csv", "b.csv"]);
        assert_eq!(
            names(folder.path(), Some(FileFormat::Csv)),
            ["a.csv", "b.csv", "m.efface", "notes.txt"]
        );
        assert_eq!(
            names(&folder.path().join("*.csv"), None),
            ["a.csv", "b.csv"]
        );
        assert_eq!(
            names(&folder.path().join("m*/?.csv"), None),
            ["more.csv/c.csv"]
        );
        assert_eq!(names(&folder.path().join("a.csv"), None), ["a.csv"]);
        assert!(
            files_of(&folder.path().join("*.parquet"), None)
                .unwrap_err()
                .to_string()
                .contains("no file matches")
        );
        std::fs::create_dir(folder.path().join("empty")).unwrap();
        assert!(
            files_of(&folder.path().join("empty"), None)
                .unwrap_err()
                .to_string()
                .contains("extension")
        );
    }
}
