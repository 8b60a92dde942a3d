//! The signing key, in a file of its own beside the model: a model file may be copied and shown,
//! its key must not.
//!
//! The file has a line for each key, and a line for the seed of the noise on exports. It holds two
//! keys only while a key or a model is being replaced: the new key is on disk before the model
//! names it, and the old key goes after that, so that a crash in between leaves the key that the
//! model names. Where the key is elsewhere, the file holds the seed alone.
//!
//! With a passphrase the whole file is one line: Argon2id makes a key of the passphrase,
//! ChaCha20-Poly1305 encrypts with it.

use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use argon2::Argon2;
use chacha20poly1305::{AeadInOut, ChaCha20Poly1305, KeyInit, Nonce};
use data_encoding::BASE64;
use efface_receipt::{Hash, PublicKey, SecretKey};
use zeroize::Zeroizing;

use super::noise::NoiseSeed;
use super::passphrase::Passphrase;
use crate::error::{Error, Result};
use crate::file::outputs::{DraftFile, PRIVATE_MODE, ReplaceLock, ReplacedFile, open_plain};
use crate::file::paths::{ENCRYPTED_PREFIX, key_path, resolve};
use crate::file::{DataKey, KeyCheck};
use crate::randomness::random_bytes;

/// More than a file of ours ever has.
const LARGEST: u64 = 64 * 1024;

/// Bytes of the salt that goes with a passphrase, and of the nonce of the encryption.
const SALT: usize = 16;
const NONCE: usize = 12;

/// A new key for a log, or for a witness of logs.
pub fn draw(origin: &str) -> Result<SecretKey> {
    SecretKey::from_seed(origin, &*random_bytes::<32>()?).map_err(|fault| Error::Key {
        path: origin.into(),
        problem: fault.to_string(),
    })
}

/// The file that holds the secrets of a model.
pub(crate) struct KeyFile {
    path: PathBuf,
    passphrase: Option<Passphrase>,
}

impl KeyFile {
    /// The key file of a model.
    pub(crate) fn of(model: &Path, passphrase: Option<Passphrase>) -> Self {
        Self {
            path: key_path(model),
            passphrase,
        }
    }

    /// A file that holds one key, such as a recovery key.
    pub(crate) fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            passphrase: None,
        }
    }

    fn refuse<T>(&self, problem: &str) -> Result<T> {
        Err(Error::Key {
            path: self.path.clone(),
            problem: problem.into(),
        })
    }

    /// Keeps other processes that do the same from changing the file until the lock is dropped. A
    /// change of a stored model needs no lock, because it holds the model.
    pub(crate) fn hold(&self) -> Result<ReplaceLock> {
        ReplaceLock::hold(&self.path).map_err(|cause| Error::io(&self.path, cause))
    }

    /// The secret half of a key.
    pub(crate) fn load(&self, public: &PublicKey) -> Result<SecretKey> {
        let text = match self.read() {
            Ok(text) => text,
            Err(Error::Io { cause, .. }) if cause.kind() == ErrorKind::NotFound => {
                return self.refuse("it is not there, and without it no receipt can be signed");
            }
            Err(error) => return Err(error),
        };
        for line in text
            .lines()
            .filter(|line| !line.is_empty() && !NoiseSeed::is_line(line))
        {
            match SecretKey::parse(line) {
                Ok(secret) if secret.public() == *public => return Ok(secret),
                Ok(_) => {}
                // The message does not say what is wrong with the line: it may hold most of a
                // secret.
                Err(_) => return self.refuse("it holds something that is no key"),
            }
        }
        self.refuse("it holds no key of this model")
    }

    /// The seed of the noise on exports whose hash this is.
    pub(crate) fn noise_seed(&self, commitment: &Hash) -> Result<NoiseSeed> {
        let text = self.read()?;
        let mut seeds = text
            .lines()
            .filter(|line| NoiseSeed::is_line(line))
            .peekable();
        let refuse = |problem: &str| Error::NoiseSeed {
            path: self.path.clone(),
            problem: problem.into(),
        };
        if seeds.peek().is_none() {
            return Err(refuse("the seed of its noise is not there"));
        }
        let found = seeds
            .filter_map(NoiseSeed::parse)
            .find(|seed| seed.commitment() == *commitment);
        found.ok_or_else(|| {
            refuse("the seed of its noise is not the one that the model was fitted with")
        })
    }

    /// The key of an encrypted model, which follows from its seed; None where that is not here.
    pub(crate) fn data_key(&self, check: &KeyCheck) -> Result<Option<DataKey>> {
        let text = self.read()?;
        let mut keys = text
            .lines()
            .filter_map(NoiseSeed::parse)
            .map(|seed| seed.data_key());
        Ok(keys.find(|key| key.check() == *check))
    }

    /// Removes the seed that the key of an encrypted model follows from.
    pub(crate) fn destroy_data_key(&self, check: &KeyCheck) -> Result<()> {
        let text = self.read()?;
        let stays = |line: &&str| {
            NoiseSeed::parse(line).is_none_or(|seed| seed.data_key().check() != *check)
        };
        self.write(&text.lines().filter(stays).collect::<Vec<_>>())
    }

    /// Puts a key, and the seed of a new model, beside those that are there.
    pub(crate) fn add(&self, secret: Option<&SecretKey>, seed: Option<&NoiseSeed>) -> Result<()> {
        let known = match self.read() {
            Ok(text) => text,
            Err(Error::Io { cause, .. }) if cause.kind() == ErrorKind::NotFound => {
                Zeroizing::new(String::new())
            }
            Err(error) => return Err(error),
        };
        let nothing = || Zeroizing::new(String::new());
        let key = secret.map_or_else(nothing, SecretKey::to_text);
        let seed = seed.map_or_else(nothing, NoiseSeed::to_text);
        self.write(&[known.trim_end_matches('\n'), &key, &seed])
    }

    /// Removes all keys of a log but this one, and what belongs to the log `replaced`: its model is
    /// gone. Keys of further models may lie here too, whose files were moved away; they stay.
    pub(crate) fn keep_only(&self, public: &PublicKey, replaced: Option<&str>) -> Result<()> {
        let known = self.read()?;
        let stays = |line: &&str| match (NoiseSeed::parse(line), SecretKey::parse(line)) {
            (Some(seed), _) => Some(seed.origin()) != replaced,
            (None, Ok(other)) => {
                other.public() == *public
                    || other.name() != public.name() && Some(other.name()) != replaced
            }
            (None, Err(_)) => false,
        };
        self.write(&known.lines().filter(stays).collect::<Vec<_>>())
    }

    /// Encrypts the file with another passphrase, or with none.
    pub(crate) fn change_passphrase(&self, passphrase: Option<Passphrase>) -> Result<()> {
        let text = self.read()?;
        let changed = Self {
            path: self.path.clone(),
            passphrase,
        };
        changed.write(&[text.trim_end_matches('\n')])
    }

    fn read(&self) -> Result<Zeroizing<String>> {
        let io = |cause| Error::io(&self.path, cause);
        let file = open_plain(&self.path).map_err(io)?;
        check_mode(&self.path, &file.metadata().map_err(io)?)?;
        // Room for all of it: growing would leave copies behind.
        let mut text = Zeroizing::new(String::with_capacity(LARGEST as usize));
        match file.take(LARGEST).read_to_string(&mut text) {
            Ok(length) if (length as u64) < LARGEST => {}
            Ok(_) => return self.refuse("it is too large for a key file"),
            Err(cause) => return Err(io(cause)),
        }
        match (text.strip_prefix(ENCRYPTED_PREFIX), &self.passphrase) {
            (Some(code), Some(passphrase)) => match decrypt(code.trim_end(), passphrase) {
                Some(text) => Ok(text),
                None => self.refuse("it does not open with this passphrase"),
            },
            (Some(_), None) => self.refuse("it is encrypted, and its passphrase is not given"),
            (None, _) => Ok(text),
        }
    }

    /// Writes lines to a file that only its owner can read; the old file is there until the new one
    /// is complete.
    fn write(&self, lines: &[&str]) -> Result<()> {
        let io = |cause| Error::io(&self.path, cause);
        // Room for all of it: growing would leave copies behind.
        let mut text = Zeroizing::new(String::with_capacity(LARGEST as usize));
        for line in lines.iter().filter(|line| !line.is_empty()) {
            text.push_str(line);
            text.push('\n');
        }
        let mut draft = DraftFile::create(&self.path).map_err(io)?;
        match &self.passphrase {
            None => draft.write_all(text.as_bytes()).map_err(io)?,
            Some(passphrase) => {
                let Some(code) = encrypt(&text, passphrase)? else {
                    return self.refuse("it cannot be encrypted with this passphrase");
                };
                writeln!(draft, "{ENCRYPTED_PREFIX}{code}").map_err(io)?;
            }
        }
        // The secrets that are replaced would live on in blocks of the disk that are free.
        let replaced = ReplacedFile::keep(&resolve(&self.path).map_err(io)?);
        draft.publish(true, PRIVATE_MODE).map_err(io)?;
        if let Some(replaced) = replaced {
            replaced.discard();
        }
        Ok(())
    }
}

/// The cipher that a passphrase and a salt give: Argon2id with the parameters of its crate (19 MiB,
/// two passes).
fn cipher(passphrase: &Passphrase, salt: &[u8]) -> Option<ChaCha20Poly1305> {
    let mut key = Zeroizing::new([0; 32]);
    Argon2::default()
        .hash_password_into(passphrase.as_bytes(), salt, key.as_mut_slice())
        .ok()?;
    ChaCha20Poly1305::new_from_slice(key.as_slice()).ok()
}

/// Salt, nonce and encrypted text in base64; None where the passphrase cannot be used.
fn encrypt(text: &str, passphrase: &Passphrase) -> Result<Option<String>> {
    let salt = random_bytes::<SALT>()?;
    let nonce = random_bytes::<NONCE>()?;
    // Room for the authentication code too: growing would leave copies of the text behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(text.len() + 64));
    bytes.extend_from_slice(text.as_bytes());
    let done = cipher(passphrase, salt.as_slice()).and_then(|cipher| {
        cipher
            .encrypt_in_place(&Nonce::from(*nonce), b"", &mut *bytes)
            .ok()
    });
    Ok(done.map(|()| BASE64.encode(&[salt.as_slice(), nonce.as_slice(), &bytes].concat())))
}

fn decrypt(code: &str, passphrase: &Passphrase) -> Option<Zeroizing<String>> {
    let bytes = BASE64.decode(code.as_bytes()).ok()?;
    let (salt, rest) = bytes.split_at_checked(SALT)?;
    let (nonce, text) = rest.split_first_chunk::<NONCE>()?;
    let mut text = Zeroizing::new(text.to_vec());
    cipher(passphrase, salt)?
        .decrypt_in_place(&Nonce::from(*nonce), b"", &mut *text)
        .ok()?;
    String::from_utf8(std::mem::take(&mut *text))
        .ok()
        .map(Zeroizing::new)
}

#[cfg(unix)]
fn check_mode(path: &Path, found: &std::fs::Metadata) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let problem = format!("others can read it (mode {mode:03o}, not 600)");
    Err(Error::Key {
        path: path.to_owned(),
        problem,
    })
}

#[cfg(not(unix))]
fn check_mode(_: &Path, _: &std::fs::Metadata) -> Result<()> {
    Ok(())
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
        let file = KeyFile::of(&model, None);
        assert!(
            file.load(&old.public())
                .unwrap_err()
                .to_string()
                .contains("it is not there")
        );
        let seed = NoiseSeed::draw("efface/a").unwrap();
        let others = NoiseSeed::draw("efface/b").unwrap();
        file.add(Some(&old), Some(&seed)).unwrap();
        file.add(Some(&new), Some(&others)).unwrap();
        assert!(file.noise_seed(&others.commitment()).is_ok());
        assert_eq!(file.load(&old.public()).unwrap().id(), old.id());
        assert_eq!(file.load(&new.public()).unwrap().id(), new.id());
        file.keep_only(&new.public(), Some("efface/b")).unwrap();
        assert!(
            file.load(&old.public())
                .unwrap_err()
                .to_string()
                .contains("no key of this model")
        );
        // The seed stays when the key is replaced; that of another model goes.
        assert_eq!(
            file.noise_seed(&seed.commitment()).unwrap().commitment(),
            seed.commitment()
        );
        let error = file
            .noise_seed(&others.commitment())
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("not the one"), "{error}");
        // The key of a model that was moved away is not this one's to remove.
        let absent = draw("efface/c").unwrap();
        file.add(Some(&absent), None).unwrap();
        file.keep_only(&new.public(), None).unwrap();
        assert_eq!(file.load(&absent.public()).unwrap().id(), absent.id());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let path = key_path(&model);
            assert_eq!(
                std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
                0o600
            );
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
            let error = file.load(&new.public()).unwrap_err().to_string();
            assert!(error.contains("mode 640"), "{error}");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        let secret = old.to_text();
        std::fs::write(key_path(&model), format!("{}x\n", secret.as_str())).unwrap();
        let error = file.load(&old.public()).unwrap_err().to_string();
        assert!(!error.contains(&secret[20..]), "{error}");
    }

    #[test]
    fn a_passphrase_hides_the_whole_file() {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("m.efface");
        let secret = draw("efface/a").unwrap();
        let seed = NoiseSeed::draw("efface/a").unwrap();
        let plain = KeyFile::of(&model, None);
        plain.add(Some(&secret), Some(&seed)).unwrap();
        plain
            .change_passphrase(Some(Passphrase::new("correct horse\n")))
            .unwrap();
        let bytes = std::fs::read_to_string(key_path(&model)).unwrap();
        assert!(bytes.starts_with(ENCRYPTED_PREFIX) && bytes.lines().count() == 1);
        assert!(
            plain
                .load(&secret.public())
                .unwrap_err()
                .to_string()
                .contains("encrypted")
        );
        let wrong = KeyFile::of(&model, Some(Passphrase::new("battery staple")));
        assert!(
            wrong
                .load(&secret.public())
                .unwrap_err()
                .to_string()
                .contains("does not open")
        );
        let right = KeyFile::of(&model, Some(Passphrase::new("correct horse")));
        assert_eq!(right.load(&secret.public()).unwrap().id(), secret.id());
        assert!(right.noise_seed(&seed.commitment()).is_ok());
        // A flipped character is found out, and a rotation keeps the file encrypted.
        let next = draw("efface/a").unwrap();
        right.add(Some(&next), None).unwrap();
        right.keep_only(&next.public(), None).unwrap();
        assert!(right.load(&secret.public()).is_err());
        assert_eq!(right.load(&next.public()).unwrap().id(), next.id());
        assert!(
            std::fs::read_to_string(key_path(&model))
                .unwrap()
                .starts_with(ENCRYPTED_PREFIX)
        );
        right.change_passphrase(None).unwrap();
        assert_eq!(plain.load(&next.public()).unwrap().id(), next.id());
    }
}
