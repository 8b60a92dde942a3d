//! The signing key, in a file of its own beside the model: a model file may be copied and shown, its key must not.
//!
//! The file has a line for each key, and a line for the seed of the noise on exports. It holds two keys only while a key or a
//! model is being replaced: the new key is on disk before the model names it, and the old key goes after that, so that a
//! crash in between leaves the key that the model names.

use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use efface_receipt::{Hash, SecretKey};
use zeroize::Zeroizing;

use super::noise::NoiseSeed;
use crate::error::{Error, Result};
use crate::file::outputs::{DraftFile, PRIVATE_MODE};
use crate::file::paths::key_path;
use crate::randomness::random_bytes;

/// More than a file of ours ever has.
const LARGEST: u64 = 64 * 1024;

/// A new key for a log.
pub(crate) fn draw(origin: &str) -> Result<SecretKey> {
    SecretKey::from_seed(origin, &*random_bytes::<32>()?)
        .map_err(|fault| Error::Key { path: origin.into(), problem: fault.to_string() })
}

/// The secret half of the key that a model names.
pub(crate) fn load(model: &Path, public: &str) -> Result<SecretKey> {
    let path = key_path(model);
    let refuse = |problem: &str| Err(Error::Key { path: path.clone(), problem: problem.into() });
    let text = match read(&path) {
        Ok(text) => text,
        Err(Error::Io { cause, .. }) if cause.kind() == ErrorKind::NotFound => {
            return refuse("it is not there, and without it no receipt can be signed");
        }
        Err(error) => return Err(error),
    };
    for line in text.lines().filter(|line| !line.is_empty() && !NoiseSeed::is_line(line)) {
        match SecretKey::parse(line) {
            Ok(secret) if secret.public().to_string() == public => return Ok(secret),
            Ok(_) => {}
            // The message does not say what is wrong with the line: it may hold most of a secret.
            Err(_) => return refuse("it holds something that is no key"),
        }
    }
    refuse("it holds the key of another model")
}

/// The seed of the noise on exports whose hash this is.
pub(crate) fn noise_seed(model: &Path, commitment: &Hash) -> Result<NoiseSeed> {
    let path = key_path(model);
    let text = read(&path)?;
    let mut seeds = text.lines().filter(|line| NoiseSeed::is_line(line)).peekable();
    if seeds.peek().is_none() {
        return Err(Error::NoiseSeed { path, problem: "the seed of its noise is not there".into() });
    }
    let found = seeds.filter_map(NoiseSeed::parse).find(|seed| seed.commitment() == *commitment);
    found.ok_or_else(|| Error::NoiseSeed {
        path,
        problem: "the seed of its noise is not the one that the model was fitted with".into(),
    })
}

/// Puts a key, and the seed of a new model, beside those that are there.
pub(crate) fn add(model: &Path, secret: &SecretKey, seed: Option<&NoiseSeed>) -> Result<()> {
    let path = key_path(model);
    let known = match read(&path) {
        Ok(text) => text,
        Err(Error::Io { cause, .. }) if cause.kind() == ErrorKind::NotFound => Zeroizing::new(String::new()),
        Err(error) => return Err(error),
    };
    let seed = seed.map_or_else(|| Zeroizing::new(String::new()), NoiseSeed::to_text);
    write(&path, &[known.trim_end_matches('\n'), &secret.to_text(), &seed])
}

/// Removes the other keys of this log, and what belongs to the log `replaced`: its model is gone. Keys of further models
/// may lie here too, whose files were moved away; they stay.
pub(crate) fn keep_only(model: &Path, secret: &SecretKey, replaced: Option<&str>) -> Result<()> {
    let path = key_path(model);
    let known = read(&path)?;
    let key = secret.to_text();
    let stays = |line: &&str| match (NoiseSeed::parse(line), SecretKey::parse(line)) {
        (Some(seed), _) => Some(seed.origin()) != replaced,
        (None, Ok(other)) => other.name() != secret.name() && Some(other.name()) != replaced,
        (None, Err(_)) => false,
    };
    let lines: Vec<&str> = std::iter::once(key.as_str()).chain(known.lines().filter(stays)).collect();
    write(&path, &lines)
}

fn read(path: &Path) -> Result<Zeroizing<String>> {
    let io = |cause| Error::io(path, cause);
    let file = std::fs::File::open(path).map_err(io)?;
    check_mode(path, &file.metadata().map_err(io)?)?;
    // Room for all of it: growing would leave copies behind.
    let mut text = Zeroizing::new(String::with_capacity(LARGEST as usize));
    match file.take(LARGEST).read_to_string(&mut text) {
        Ok(length) if (length as u64) < LARGEST => Ok(text),
        Ok(_) => Err(Error::Key { path: path.to_owned(), problem: "it is too large for a key file".into() }),
        Err(cause) => Err(io(cause)),
    }
}

#[cfg(unix)]
fn check_mode(path: &Path, found: &std::fs::Metadata) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let problem = format!("others can read it (mode {mode:03o}, not 600)");
    Err(Error::Key { path: path.to_owned(), problem })
}

#[cfg(not(unix))]
fn check_mode(_: &Path, _: &std::fs::Metadata) -> Result<()> {
    Ok(())
}

/// Writes lines to a file that only its owner can read; the old file is there until the new one is complete.
fn write(path: &Path, lines: &[&str]) -> Result<()> {
    let io = |cause| Error::io(path, cause);
    let mut draft = DraftFile::create(path).map_err(io)?;
    for line in lines.iter().filter(|line| !line.is_empty()) {
        draft.write_all(line.as_bytes()).and_then(|()| draft.write_all(b"\n")).map_err(io)?;
    }
    draft.publish(true, PRIVATE_MODE).map_err(io)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_and_go_and_are_for_their_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("m.efface");
        let old = draw("efface/a").unwrap();
        let new = draw("efface/a").unwrap();
        let public = |key: &SecretKey| key.public().to_string();
        assert!(load(&model, &public(&old)).unwrap_err().to_string().contains("it is not there"));
        let seed = NoiseSeed::draw("efface/a").unwrap();
        let others = NoiseSeed::draw("efface/b").unwrap();
        add(&model, &old, Some(&seed)).unwrap();
        add(&model, &new, Some(&others)).unwrap();
        assert!(noise_seed(&model, &others.commitment()).is_ok());
        assert_eq!(load(&model, &public(&old)).unwrap().id(), old.id());
        assert_eq!(load(&model, &public(&new)).unwrap().id(), new.id());
        keep_only(&model, &new, Some("efface/b")).unwrap();
        assert!(load(&model, &public(&old)).unwrap_err().to_string().contains("another model"));
        // The seed stays when the key is replaced; that of another model goes.
        assert_eq!(noise_seed(&model, &seed.commitment()).unwrap().commitment(), seed.commitment());
        let error = noise_seed(&model, &others.commitment()).err().unwrap().to_string();
        assert!(error.contains("not the one"), "{error}");
        // The key of a model that was moved away is not this one's to remove.
        let absent = draw("efface/c").unwrap();
        add(&model, &absent, None).unwrap();
        keep_only(&model, &new, None).unwrap();
        assert_eq!(load(&model, &public(&absent)).unwrap().id(), absent.id());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let file = key_path(&model);
            assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
            let error = load(&model, &public(&new)).unwrap_err().to_string();
            assert!(error.contains("mode 640"), "{error}");
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        let secret = old.to_text();
        std::fs::write(key_path(&model), format!("{}x\n", secret.as_str())).unwrap();
        let error = load(&model, &public(&old)).unwrap_err().to_string();
        assert!(!error.contains(&secret[20..]), "{error}");
    }
}
