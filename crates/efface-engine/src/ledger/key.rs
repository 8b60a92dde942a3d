//! The signing key, in a file of its own beside the model: a model file may be copied and shown, its key must not.
//!
//! The file has a line per key. It holds more than one only while a key is being replaced: the new one is on disk before
//! the model names it, the old one goes after that, so that a crash in between locks nobody out.

use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use efface_receipt::SecretKey;
use zeroize::Zeroizing;

use crate::error::{Error, Result};

/// More than a file of ours ever has.
const LARGEST: u64 = 64 * 1024;

/// `houses.efface.key` for `houses.efface`.
pub(crate) fn path(model: &Path) -> PathBuf {
    let mut name = model.as_os_str().to_owned();
    name.push(".key");
    name.into()
}

/// Random bytes of the operating system.
pub(crate) fn random<const N: usize>() -> Result<Zeroizing<[u8; N]>> {
    let mut bytes = Zeroizing::new([0; N]);
    match getrandom::fill(bytes.as_mut_slice()) {
        Ok(()) => Ok(bytes),
        Err(error) => Err(Error::io("random numbers", std::io::Error::other(error.to_string()))),
    }
}

/// A name for something new: hexadecimal digits drawn at random.
pub(crate) fn name<const N: usize>() -> Result<String> {
    Ok(random::<N>()?.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A new key for a log.
pub(crate) fn draw(origin: &str) -> Result<SecretKey> {
    SecretKey::from_seed(origin, &*random::<32>()?)
        .map_err(|fault| Error::Key { path: origin.into(), problem: fault.to_string() })
}

/// The secret half of the key that a model names.
pub(crate) fn load(model: &Path, public: &str) -> Result<SecretKey> {
    let path = path(model);
    let refuse = |problem: &str| Err(Error::Key { path: path.clone(), problem: problem.into() });
    let text = match read(&path) {
        Ok(text) => text,
        Err(Error::Io { cause, .. }) if cause.kind() == ErrorKind::NotFound => {
            return refuse("it is not there, and without it no receipt can be signed");
        }
        Err(error) => return Err(error),
    };
    for line in text.lines().filter(|line| !line.is_empty()) {
        match SecretKey::parse(line) {
            Ok(secret) if secret.public().to_string() == public => return Ok(secret),
            Ok(_) => {}
            // What is wrong with a secret is nobody's to read.
            Err(_) => return refuse("it holds something that is no key"),
        }
    }
    refuse("it holds the key of another model")
}

/// Puts a key beside those that are there.
pub(crate) fn add(model: &Path, secret: &SecretKey) -> Result<()> {
    let path = path(model);
    let known = match read(&path) {
        Ok(text) => text,
        Err(Error::Io { cause, .. }) if cause.kind() == ErrorKind::NotFound => Zeroizing::new(String::new()),
        Err(error) => return Err(error),
    };
    write(&path, &[known.trim_end_matches('\n'), &secret.to_text()])
}

/// Removes all keys but one.
pub(crate) fn keep_only(model: &Path, secret: &SecretKey) -> Result<()> {
    write(&path(model), &[&secret.to_text()])
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
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".{}.tmp", name::<8>()?));
    let draft = PathBuf::from(draft);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&draft).and_then(|mut file| {
        for line in lines.iter().filter(|line| !line.is_empty()) {
            file.write_all(line.as_bytes())?;
            file.write_all(b"\n")?;
        }
        file.sync_all()?;
        std::fs::rename(&draft, path)
    });
    if let Err(cause) = written {
        let _ = std::fs::remove_file(&draft);
        return Err(io(cause));
    }
    sync_folder(path);
    Ok(())
}

/// A new name survives a power cut once its folder is on disk; where folders cannot be synced, so be it.
pub(crate) fn sync_folder(path: &Path) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let _ = std::fs::File::open(folder).and_then(|folder| folder.sync_all());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_and_go_and_are_for_their_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("m.efface");
        let (old, new) = (draw("efface/a").unwrap(), draw("efface/a").unwrap());
        let public = |key: &SecretKey| key.public().to_string();
        assert!(load(&model, &public(&old)).unwrap_err().to_string().contains("it is not there"));
        add(&model, &old).unwrap();
        add(&model, &new).unwrap();
        assert_eq!(load(&model, &public(&old)).unwrap().id(), old.id());
        assert_eq!(load(&model, &public(&new)).unwrap().id(), new.id());
        keep_only(&model, &new).unwrap();
        assert!(load(&model, &public(&old)).unwrap_err().to_string().contains("another model"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let file = path(&model);
            assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
            let error = load(&model, &public(&new)).unwrap_err().to_string();
            assert!(error.contains("mode 640"), "{error}");
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        let secret = old.to_text();
        std::fs::write(path(&model), format!("{}x\n", secret.as_str())).unwrap();
        let error = load(&model, &public(&old)).unwrap_err().to_string();
        assert!(!error.contains(&secret[20..]), "{error}");
    }
}
