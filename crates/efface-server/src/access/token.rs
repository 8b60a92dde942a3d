//! A token: who holds it may do what its scopes say. The server keeps a hash of it and not the
//! token.

use std::fmt;
use std::str::FromStr;

use argon2::{Algorithm, Argon2, Params, Version};
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use utoipa::ToSchema;
use zeroize::Zeroizing;

use super::token_store::TokenError;

/// What tokens begin with, so that scanners for leaked secrets can know them.
const PREFIX: &str = "efface_";

/// Memory in KiB, passes and lanes of the hash: the smallest that OWASP recommends. A token is 256
/// random bits, which no number of guesses finds; the hash keeps the file from being of use to
/// whoever reads it.
const COST: (u32, u32, u32) = (19 * 1024, 2, 1);

/// What a token allows.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Scores.
    Predict,
    /// Erasure requests, and approving those of others.
    Erase,
    /// Rows that join or are corrected.
    Learn,
    /// Models, receipts and logs.
    Audit,
    /// Everything, metrics included.
    Admin,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 5] = [
        Self::Predict,
        Self::Erase,
        Self::Learn,
        Self::Audit,
        Self::Admin,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Predict => "predict",
            Self::Erase => "erase",
            Self::Learn => "learn",
            Self::Audit => "audit",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Scope {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let known = Self::ALL.into_iter().find(|scope| scope.name() == text);
        known.ok_or_else(|| TokenError::UnknownScope(text.to_owned()))
    }
}

/// What a token is to allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenGrant {
    /// Whose it is, as the list of tokens shows it.
    pub name: String,
    /// What it allows.
    pub scopes: Vec<Scope>,
    /// For which models; None for all.
    pub models: Option<Vec<String>>,
    /// Until when, in seconds since 1970; None for ever.
    pub expires_at: Option<u64>,
}

/// A token as the server keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenRecord {
    /// Its public part, by which it is found.
    pub id: String,
    /// Whose it is.
    pub name: String,
    /// What it allows.
    pub scopes: Vec<Scope>,
    /// For which models; None for all.
    pub models: Option<Vec<String>>,
    /// Until when, in seconds since 1970; None for ever.
    pub expires_at: Option<u64>,
    /// The salt of the hash, in hexadecimal.
    salt: String,
    /// argon2id of the secret part, in hexadecimal.
    hash: String,
    /// The first digits of a SHA-256 of the secret part, in hexadecimal; None for tokens of earlier
    /// versions. They tell wrong secrets from right ones without the slow hash, and leave 224 of the
    /// 256 bits of a secret unknown to whoever reads the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    check: Option<String>,
}

/// Bytes of the check of a secret.
const CHECK_BYTES: usize = 4;

/// A new token: what the server keeps, and the text that is shown once.
#[derive(Debug)]
pub struct NewToken {
    /// What the server keeps.
    pub record: TokenRecord,
    /// The token.
    pub text: Zeroizing<String>,
}

impl NewToken {
    /// Draws a token.
    ///
    /// # Errors
    /// The system has no random numbers, or the grant allows nothing.
    pub fn draw(grant: TokenGrant) -> Result<Self, TokenError> {
        let TokenGrant {
            name,
            scopes,
            models,
            expires_at,
        } = grant;
        if scopes.is_empty() {
            return Err(TokenError::NoScope);
        }
        let mut random = Zeroizing::new([0_u8; 54]);
        getrandom::fill(random.as_mut_slice())
            .map_err(|cause| TokenError::Random(cause.to_string()))?;
        let id = HEXLOWER.encode(&random[..6]);
        let salt = HEXLOWER.encode(&random[6..22]);
        let secret = Zeroizing::new(HEXLOWER.encode(&random[22..]));
        let hash = HEXLOWER.encode(hash(&secret, &salt)?.as_slice());
        let check = Some(check_digits(&secret, &salt));
        let text = Zeroizing::new(format!("{PREFIX}{id}_{}", secret.as_str()));
        Ok(Self {
            record: TokenRecord {
                id,
                name,
                scopes,
                models,
                expires_at,
                salt,
                hash,
                check,
            },
            text,
        })
    }
}

impl TokenRecord {
    /// Whether this is the secret part of the token. It takes as long for every secret.
    pub(crate) fn opens_with(&self, secret: &str) -> Result<bool, TokenError> {
        let found = HEXLOWER.encode(hash(secret, &self.salt)?.as_slice());
        Ok(found.as_bytes().ct_eq(self.hash.as_bytes()).into())
    }

    /// Returns false for all but one of four billion wrong secrets, at the cost of one SHA-256; true
    /// for every secret of a token without check digits.
    pub(crate) fn may_open_with(&self, secret: &str) -> bool {
        self.check.as_ref().is_none_or(|check| {
            let found = check_digits(secret, &self.salt);
            found.as_bytes().ct_eq(check.as_bytes()).into()
        })
    }

    /// Whether the token has expired at this time, in seconds since 1970.
    #[must_use]
    pub fn is_expired(&self, now: u64) -> bool {
        self.expires_at.is_some_and(|end| now >= end)
    }
}

/// The public and the secret part of a token; None for what is none.
pub(crate) fn parts(text: &str) -> Option<(&str, &str)> {
    let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
    let hexadecimal = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    (id.len() == 12 && secret.len() == 64 && hexadecimal(id) && hexadecimal(secret))
        .then_some((id, secret))
}

fn check_digits(secret: &str, salt: &str) -> String {
    let digest = Sha256::new()
        .chain_update("efface token check")
        .chain_update(salt)
        .chain_update(secret)
        .finalize();
    HEXLOWER.encode(&digest[..CHECK_BYTES])
}

fn hash(secret: &str, salt: &str) -> Result<Zeroizing<[u8; 32]>, TokenError> {
    let (memory, passes, lanes) = COST;
    let broken = |cause: argon2::Error| TokenError::Hash(cause.to_string());
    let params = Params::new(memory, passes, lanes, Some(32)).map_err(broken)?;
    let mut output = Zeroizing::new([0; 32]);
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(secret.as_bytes(), salt.as_bytes(), output.as_mut_slice())
        .map_err(broken)?;
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant() -> TokenGrant {
        TokenGrant {
            name: "ann".into(),
            scopes: vec![Scope::Erase],
            models: None,
            expires_at: Some(100),
        }
    }

    #[test]
    fn a_token_opens_its_own_record_alone() {
        let first = NewToken::draw(grant()).unwrap();
        let second = NewToken::draw(grant()).unwrap();
        let (id, secret) = parts(&first.text).unwrap();
        assert_eq!(id, first.record.id);
        assert!(first.record.opens_with(secret).unwrap());
        assert!(!second.record.opens_with(secret).unwrap());
        assert!(first.record.may_open_with(secret) && !second.record.may_open_with(secret));
        let mut earlier = second.record.clone();
        earlier.check = None;
        assert!(earlier.may_open_with(secret));
        let kept = serde_json::to_string(&first.record).unwrap();
        assert!(!kept.contains(secret), "the file holds the secret");
        assert!(first.record.is_expired(100) && !first.record.is_expired(99));
    }

    #[test]
    fn what_is_no_token_has_no_parts() {
        for text in [
            "",
            "efface_",
            "efface_abc_def",
            "Bearer x",
            "efface_0123456789ab_",
            "efface_é",
        ] {
            assert_eq!(parts(text), None, "{text}");
        }
    }
}
