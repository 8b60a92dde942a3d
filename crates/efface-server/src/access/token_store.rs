//! The file of tokens, and which of them have shown their secret since it was read.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use efface_engine::files;
use prometheus_client::metrics::counter::Counter;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::token::{NewToken, TokenGrant, TokenRecord, parts};
use crate::clock::ServiceClock;

/// The largest file of tokens that is read.
const MOST_BYTES: u64 = 16 << 20;

/// What can be wrong with tokens.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// A scope that does not exist.
    #[error("there is no scope `{0}`; the scopes are predict, erase, learn, audit and admin")]
    UnknownScope(String),
    /// A token that would allow nothing.
    #[error("a token needs at least one scope: predict, erase, learn, audit or admin")]
    NoScope,
    /// There is no token of that id.
    #[error("there is no token `{0}`; `efface token list` shows those that exist")]
    UnknownToken(String),
    /// The file cannot be read or written.
    #[error("{}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// The file is not one of tokens.
    #[error("{} is not a file of tokens: line {line}, column {column}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Where.
        line: usize,
        /// Where.
        column: usize,
    },
    /// No random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(String),
    /// The hash function refused.
    #[error("the token cannot be hashed: {0}")]
    Hash(String),
}

/// The tokens of a server. The hash of a token is slow to compute, so that a secret which has been
/// shown once is known again by its SHA-256, in memory only.
#[derive(Debug)]
pub struct TokenStore {
    path: PathBuf,
    known: RwLock<KnownTokens>,
    /// Secrets that were hashed slowly, for the metrics: a rise is somebody who guesses.
    hashes: Counter,
    /// Texts that were refused without hashing them slowly.
    refused: Counter,
    clock: ServiceClock,
}

#[derive(Debug, Default)]
struct KnownTokens {
    records: HashMap<String, TokenRecord>,
    shown: HashMap<String, [u8; 32]>,
    /// The SHA-256 of the file that they were read from; None for no file.
    content: Option<[u8; 32]>,
}

impl TokenStore {
    /// Reads the file of tokens; a file that is not there has none.
    ///
    /// # Errors
    /// The file cannot be read, or holds something else.
    pub fn open(path: &Path) -> Result<Self, TokenError> {
        Self::with_clock(path, ServiceClock::default())
    }

    /// The same, with tokens that end by this clock.
    pub(crate) fn with_clock(path: &Path, clock: ServiceClock) -> Result<Self, TokenError> {
        let known = RwLock::default();
        let store = Self {
            path: path.to_owned(),
            known,
            hashes: Counter::default(),
            refused: Counter::default(),
            clock,
        };
        store.reload()?;
        Ok(store)
    }

    /// Reads the file again and returns true if its content is another one than before. A file that
    /// was put back from a copy may bear any time of change, so that the content is compared. If the
    /// file cannot be read, the tokens stay as they were.
    ///
    /// # Errors
    /// The file cannot be read, or holds something else.
    pub fn reload(&self) -> Result<bool, TokenError> {
        let bytes = self.read_file()?;
        let content = bytes.as_deref().map(digest);
        if self.read_lock().content == content {
            return Ok(false);
        }
        let records = self
            .parse(bytes.as_deref())?
            .into_iter()
            .map(|record| (record.id.clone(), record))
            .collect();
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        // Tokens that were withdrawn or changed must show their secret again.
        *known = KnownTokens {
            records,
            shown: HashMap::new(),
            content,
        };
        Ok(true)
    }

    /// The tokens, by id.
    #[must_use]
    pub fn records(&self) -> Vec<TokenRecord> {
        let mut records: Vec<TokenRecord> = self.read_lock().records.values().cloned().collect();
        records.sort_by(|a, b| a.id.cmp(&b.id));
        records
    }

    /// Whether there is no token at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.read_lock().records.is_empty()
    }

    /// Makes a token and writes it to the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(&self, grant: TokenGrant) -> Result<NewToken, TokenError> {
        // The slow hash needs nothing of the file, and is made before the file is held.
        let token = NewToken::draw(grant)?;
        self.change(|records| {
            records.push(token.record.clone());
            Ok(())
        })?;
        Ok(token)
    }

    /// Withdraws a token.
    ///
    /// # Errors
    /// There is no such token, or the file cannot be written.
    pub fn revoke(&self, id: &str) -> Result<TokenRecord, TokenError> {
        self.change(|records| {
            let place = records.iter().position(|record| record.id == id);
            let place = place.ok_or_else(|| TokenError::UnknownToken(id.to_owned()))?;
            Ok(records.remove(place))
        })
    }

    /// Changes the tokens of the file as it is now. Nobody else changes the file meanwhile.
    fn change<T>(
        &self,
        edit: impl FnOnce(&mut Vec<TokenRecord>) -> Result<T, TokenError>,
    ) -> Result<T, TokenError> {
        let lock = files::ReplaceLock::hold(&self.path).map_err(|cause| self.fault(cause))?;
        let mut records = self.parse(self.read_file()?.as_deref())?;
        let result = edit(&mut records)?;
        self.write_file(&records)?;
        drop(lock);
        self.reload()?;
        Ok(result)
    }

    /// The token that a secret is known to belong to without hashing it slowly; None where that is
    /// not known yet.
    pub(crate) fn known(&self, text: &str) -> Option<TokenRecord> {
        let (id, secret) = parts(text)?;
        let known = self.read_lock();
        let shown = known.shown.get(id)?;
        let same: bool = digest(secret.as_bytes()).ct_eq(shown).into();
        let record = known.records.get(id).filter(|_| same)?;
        (!record.is_expired(self.clock.seconds())).then(|| record.clone())
    }

    /// Returns false for nearly every text that is not a token of the file. It is cheap, so that wrong
    /// tokens do not keep right ones waiting for the slow hash.
    pub(crate) fn is_plausible(&self, text: &str) -> bool {
        let is_plausible = parts(text).is_some_and(|(id, secret)| {
            let known = self.read_lock();
            let record = known.records.get(id);
            record.is_some_and(|record| record.may_open_with(secret))
        });
        if !is_plausible {
            self.refused.inc();
        }
        is_plausible
    }

    /// The token that a text is, hashed slowly; None for what is none. Takes tens of milliseconds.
    ///
    /// The id of a token is no secret and is looked up. Its secret is never compared with anything:
    /// what is compared, in constant time, is a hash of it, which takes as long for every secret.
    /// Whether the token has expired is asked last, so that a wrong secret is told nothing about
    /// that.
    pub(crate) fn check(&self, text: &str) -> Result<Option<TokenRecord>, TokenError> {
        let Some((id, secret)) = parts(text) else {
            return Ok(None);
        };
        let Some(record) = self.read_lock().records.get(id).cloned() else {
            return Ok(None);
        };
        self.hashes.inc();
        let opens = record.opens_with(secret)?;
        if !opens || record.is_expired(self.clock.seconds()) {
            return Ok(None);
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        // The file may have been read again in the meantime, without this token.
        if known.records.get(id) != Some(&record) {
            return Ok(None);
        }
        known.shown.insert(id.to_owned(), digest(secret.as_bytes()));
        Ok(Some(record))
    }

    /// Counts the secrets that were hashed slowly.
    pub(crate) fn hashes(&self) -> Counter {
        self.hashes.clone()
    }

    /// Counts the texts that were refused without hashing them slowly.
    pub(crate) fn refused(&self) -> Counter {
        self.refused.clone()
    }

    fn read_lock(&self) -> std::sync::RwLockReadGuard<'_, KnownTokens> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn fault(&self, cause: std::io::Error) -> TokenError {
        TokenError::File {
            path: self.path.clone(),
            cause,
        }
    }

    /// The bytes of the file; None where there is none.
    fn read_file(&self) -> Result<Option<Vec<u8>>, TokenError> {
        let file = match files::open_plain(&self.path) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(None),
            file => file.map_err(|cause| self.fault(cause))?,
        };
        let mut bytes = Vec::new();
        file.take(MOST_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|cause| self.fault(cause))?;
        if bytes.len() as u64 > MOST_BYTES {
            let cause = std::io::Error::other("it has more than 16 MiB");
            return Err(self.fault(cause));
        }
        Ok(Some(bytes))
    }

    fn parse(&self, bytes: Option<&[u8]>) -> Result<Vec<TokenRecord>, TokenError> {
        let Some(bytes) = bytes else {
            return Ok(Vec::new());
        };
        serde_json::from_slice(bytes).map_err(|cause| TokenError::Content {
            path: self.path.clone(),
            line: cause.line(),
            column: cause.column(),
        })
    }

    /// Replaces the file in one step, readable by its owner alone.
    fn write_file(&self, records: &[TokenRecord]) -> Result<(), TokenError> {
        let fault = |cause| self.fault(cause);
        let json = serde_json::to_vec_pretty(records).map_err(|cause| fault(cause.into()))?;
        let mut draft = files::DraftFile::create(&self.path).map_err(fault)?;
        draft.write_all(&json).map_err(fault)?;
        draft.publish(true, files::PRIVATE_MODE).map_err(fault)
    }
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Scope;

    fn grant(expires_at: Option<u64>) -> TokenGrant {
        TokenGrant {
            name: "ann".into(),
            scopes: vec![Scope::Erase],
            models: None,
            expires_at,
        }
    }

    /// Each thread opens the file on its own, as a process does: locks are those of open files.
    #[test]
    fn changes_that_run_at_once_lose_no_token_and_bring_none_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.json");
        let store = TokenStore::open(&path).unwrap();
        let old: Vec<String> = (0..6)
            .map(|_| store.create(grant(None)).unwrap().record.id)
            .collect();
        let created: Vec<String> = std::thread::scope(|scope| {
            let makers: Vec<_> = (0..6)
                .map(|_| {
                    scope.spawn(|| {
                        let store = TokenStore::open(&path).unwrap();
                        [(); 3].map(|()| store.create(grant(None)).unwrap().record.id)
                    })
                })
                .collect();
            for id in &old {
                scope.spawn(|| TokenStore::open(&path).unwrap().revoke(id).unwrap());
            }
            makers
                .into_iter()
                .flat_map(|maker| maker.join().unwrap())
                .collect()
        });
        store.reload().unwrap();
        let mut expected = created;
        expected.sort();
        let found: Vec<String> = store.records().into_iter().map(|token| token.id).collect();
        assert_eq!(found, expected);
        let names = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(names, 1, "a lock or a draft was left behind");
    }

    #[test]
    fn a_file_that_was_put_back_is_read_whatever_its_time_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.json");
        let administrator = TokenStore::open(&path).unwrap();
        let token = administrator.create(grant(None)).unwrap();
        let server = TokenStore::open(&path).unwrap();
        assert!(server.check(&token.text).unwrap().is_some());
        let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
        administrator.revoke(&token.record.id).unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_modified(modified).unwrap();
        assert!(server.reload().unwrap());
        assert!(server.known(&token.text).is_none());
        assert!(server.check(&token.text).unwrap().is_none());
        assert!(!server.reload().unwrap(), "the same content is not news");
        std::fs::remove_file(&path).unwrap();
        assert!(server.reload().unwrap() && server.is_empty());
    }

    #[test]
    fn every_secret_of_a_token_goes_through_the_slow_hash_and_a_right_one_only_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = TokenStore::open(&folder.path().join("tokens.json")).unwrap();
        let good = store.create(grant(None)).unwrap().text.to_string();
        let expired = store.create(grant(Some(1))).unwrap().text.to_string();
        let flip = |text: &str, at: usize| {
            let mut bytes = text.as_bytes().to_vec();
            bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
            String::from_utf8(bytes).unwrap()
        };
        // The first digit of the secret stands after `efface_`, twelve digits of the id and a line.
        let first_digit = flip(&good, 20);
        let last_digit = flip(&good, good.len() - 1);
        for (text, opens) in [
            (&first_digit, false),
            (&last_digit, false),
            (&expired, false),
            (&good, true),
        ] {
            let before = store.hashes.get();
            assert!(
                store.known(text).is_none(),
                "a secret that was never checked is known"
            );
            assert_eq!(store.check(text).unwrap().is_some(), opens);
            assert_eq!(store.hashes.get(), before + 1, "a secret took another way");
        }
        // Known again by a digest, which is compared in constant time as well.
        assert!(store.known(&good).is_some());
        assert!(store.known(&first_digit).is_none() && store.known(&last_digit).is_none());
        let unknown = flip(&good, 8);
        let before = store.hashes.get();
        assert!(store.check(&unknown).unwrap().is_none());
        assert_eq!(
            store.hashes.get(),
            before,
            "an id that does not exist costs a hash"
        );
    }
}
