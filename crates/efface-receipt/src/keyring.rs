//! The keys that a verifier trusts: those that it was given, and those that a log hands over to or
//! took over from.
//!
//! A key signs a run of receipts: from the one after the hand-over to it, up to the one in which it
//! hands over. A key that handed over may be in the wrong hands by now. What it signed up to then
//! stays good; nothing later does.

use std::fmt;

use crate::{
    fault::ReceiptFault,
    limits::MAX_KEYS,
    receipt::{KeyChange, RequestKind, RequestOutcome},
    signature::{KeyId, PublicKey},
    statement::SignedReceipt,
    text::{count, list_lines, list_text},
};

/// The keys that a verifier trusts.
#[derive(Debug, Clone, Default)]
pub struct KeyRing {
    keys: Vec<TrustedKey>,
    /// The key that may hand over in place of one that was lost, as the log names it.
    recovery: Option<PublicKey>,
}

/// A key and the receipts that it may sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedKey {
    /// The key.
    pub key: PublicKey,
    /// The first receipt that it may sign.
    pub first: u64,
    /// The receipt in which it handed over; None for the key that signs now.
    pub last: Option<u64>,
}

/// The key's line in a list that [`KeyRing::parse`] reads.
impl fmt::Display for TrustedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last {
            None => write!(f, "{}", self.key),
            Some(last) => write!(f, "{} until {last}", self.key),
        }
    }
}

impl KeyRing {
    /// Reads a file of keys: UTF-8 text with one key a line, oldest first. A key that handed over is
    /// followed by ` until N`, the number of the receipt in which it did; only the last key may sign
    /// without end. Lines end with a newline, which the last one may lack; empty lines are passed
    /// over, and nothing else is (docs/receipt.md, "Lists of keys").
    pub fn from_bytes(bytes: &[u8]) -> Result<KeyRing, ReceiptFault> {
        KeyRing::parse(list_text(bytes)?)
    }

    /// Reads the text of a file of keys.
    pub fn parse(text: &str) -> Result<KeyRing, ReceiptFault> {
        let mut ring = KeyRing::default();
        for line in list_lines(text)? {
            if ring.keys.last().is_some_and(|key| key.last.is_none()) {
                return Err(ReceiptFault::Key(
                    "only the last key of a list has no `until N`",
                ));
            }
            let (key, last) = match line.split_once(" until ") {
                None => (line, None),
                Some((key, number)) => {
                    const BAD: ReceiptFault = ReceiptFault::Key("`until` names a receipt");
                    (key, Some(count(number).ok_or(BAD)?))
                }
            };
            ring.insert(TrustedKey {
                key: PublicKey::parse(key)?,
                first: 0,
                last,
            })?;
        }
        if ring.keys.is_empty() {
            Err(ReceiptFault::Key("there is no key"))
        } else {
            Ok(ring)
        }
    }

    /// The keys.
    pub fn keys(&self) -> impl Iterator<Item = &TrustedKey> {
        self.keys.iter()
    }

    /// The key that may hand over in place of one that was lost.
    pub fn recovery(&self) -> Option<&PublicKey> {
        self.recovery.as_ref()
    }

    pub(crate) fn get(&self, key: &PublicKey) -> Option<&TrustedKey> {
        self.keys.iter().find(|trusted| trusted.key == *key)
    }

    fn insert(&mut self, key: TrustedKey) -> Result<(), ReceiptFault> {
        if self.keys.len() >= MAX_KEYS {
            return Err(ReceiptFault::TooLarge {
                what: "the key ring",
                size: self.keys.len() + 1,
                limit: MAX_KEYS,
            });
        }
        self.keys.push(key);
        Ok(())
    }

    /// The key of a name and id, if it may sign receipt `sequence`.
    pub(crate) fn active(
        &self,
        name: &str,
        id: KeyId,
        sequence: u64,
    ) -> Result<&PublicKey, ReceiptFault> {
        let mut fault = ReceiptFault::UnknownKey {
            name: name.to_owned(),
            id,
        };
        for trusted in self
            .keys
            .iter()
            .filter(|trusted| trusted.key.id() == id && trusted.key.name() == name)
        {
            match trusted.last {
                Some(last) if sequence > last => {
                    fault = ReceiptFault::RetiredKey {
                        id,
                        retired: last,
                        stated: sequence,
                    };
                }
                _ if sequence < trusted.first => {
                    fault = ReceiptFault::EarlyKey {
                        id,
                        first: trusted.first,
                        stated: sequence,
                    };
                }
                _ => return Ok(&trusted.key),
            }
        }
        Err(fault)
    }

    /// Whether a trusted key, or the recovery key, signed this hand-over.
    pub(crate) fn knows_signer(&self, signed: &SignedReceipt) -> bool {
        let keys = signed
            .receipt
            .keys
            .as_ref()
            .and_then(|change| change.parse().ok());
        keys.is_some_and(|keys| {
            self.get(&keys.by).is_some() || self.recovery.as_ref() == Some(&keys.by)
        })
    }

    /// Goes forward: trusts the key that a hand-over names, if a trusted key or the recovery key
    /// signed it, and retires the one before. The first receipt of a log names its recovery key.
    pub fn follow(&mut self, signed: &SignedReceipt) -> Result<(), ReceiptFault> {
        let receipt = &signed.receipt;
        receipt.check()?;
        let keys = named_keys(signed)?;
        let sequence = receipt.sequence;
        if self.get(&keys.by).is_some() || self.recovery.as_ref() != Some(&keys.by) {
            signed.verify(self)?;
        } else {
            signed.verify_by(&keys.by)?;
            self.insert(TrustedKey {
                key: keys.by,
                first: sequence,
                last: Some(sequence),
            })?;
        }
        self.recovery = keys.recovery;
        let Some(retired) = keys.retired else {
            return Ok(());
        };
        let known = self.get(&keys.next).is_some();
        let Some(old) = self.keys.iter_mut().find(|trusted| trusted.key == retired) else {
            return Err(ReceiptFault::UnknownKey {
                name: receipt.origin.clone(),
                id: retired.id(),
            });
        };
        match old.last {
            // A key hands over once. To whom else would be for a thief to say.
            Some(last) if !known || last != sequence => {
                return Err(ReceiptFault::RetiredKey {
                    id: retired.id(),
                    retired: last,
                    stated: sequence,
                });
            }
            _ => old.last = Some(sequence),
        }
        match self
            .keys
            .iter_mut()
            .find(|trusted| trusted.key == keys.next)
        {
            Some(next) => next.first = next.first.max(sequence + 1),
            None => self.insert(TrustedKey {
                key: keys.next,
                first: sequence + 1,
                last: None,
            })?,
        }
        Ok(())
    }

    /// Goes back: trusts the key that a hand-over retired, up to that receipt, because a log that a
    /// trusted key signs contains the hand-over. The caller has checked that it does.
    pub(crate) fn recall(&mut self, signed: &SignedReceipt) -> Result<(), ReceiptFault> {
        let receipt = &signed.receipt;
        receipt.check()?;
        let keys = named_keys(signed)?;
        signed.verify_by(&keys.by)?;
        let sequence = receipt.sequence;
        let Some(retired) = keys.retired else {
            return Ok(());
        };
        let Some(next) = self
            .keys
            .iter_mut()
            .find(|trusted| trusted.key == keys.next)
        else {
            return Err(ReceiptFault::UnknownKey {
                name: receipt.origin.clone(),
                id: keys.next.id(),
            });
        };
        next.first = next.first.max(sequence + 1);
        if keys.by != retired {
            self.insert(TrustedKey {
                key: keys.by,
                first: sequence,
                last: Some(sequence),
            })?;
        }
        match self.get(&retired).map(|trusted| trusted.last) {
            None => self.insert(TrustedKey {
                key: retired,
                first: 0,
                last: Some(sequence),
            }),
            Some(last) if last == Some(sequence) => Ok(()),
            Some(last) => Err(ReceiptFault::RetiredKey {
                id: retired.id(),
                retired: last.unwrap_or(u64::MAX),
                stated: sequence,
            }),
        }
    }
}

impl From<PublicKey> for KeyRing {
    fn from(key: PublicKey) -> KeyRing {
        KeyRing {
            keys: vec![TrustedKey {
                key,
                first: 0,
                last: None,
            }],
            recovery: None,
        }
    }
}

/// The keys of a [`KeyChange`], read.
pub(crate) struct NamedKeys {
    pub(crate) by: PublicKey,
    pub(crate) retired: Option<PublicKey>,
    pub(crate) next: PublicKey,
    pub(crate) recovery: Option<PublicKey>,
}

impl KeyChange {
    pub(crate) fn parse(&self) -> Result<NamedKeys, ReceiptFault> {
        let optional = |text: &Option<String>| text.as_deref().map(PublicKey::parse).transpose();
        Ok(NamedKeys {
            by: PublicKey::parse(&self.by)?,
            retired: optional(&self.retired)?,
            next: PublicKey::parse(&self.next)?,
            recovery: optional(&self.recovery)?,
        })
    }
}

fn named_keys(signed: &SignedReceipt) -> Result<NamedKeys, ReceiptFault> {
    let receipt = &signed.receipt;
    match &receipt.keys {
        Some(change)
            if matches!(receipt.kind, RequestKind::Fit | RequestKind::KeyRotation)
                && receipt.outcome == RequestOutcome::Done =>
        {
            change.parse()
        }
        _ => Err(ReceiptFault::Contradiction {
            field: "keys",
            problem: "this receipt names no keys",
        }),
    }
}
