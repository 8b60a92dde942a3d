//! Whether two large sets are one, without either of them in memory: sums of hashes under a secret
//! that is drawn for the comparison. Nobody can prepare two sets with one sum without the secret.

use sha2::{Digest, Sha256};

use super::FileFault;
use crate::randomness::random_bytes;

/// A sum of hashes under a secret: two sets with one sum are one set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SecretSum {
    key: [u8; 32],
    sum: [u128; 2],
}

impl SecretSum {
    /// An empty sum under a new secret.
    pub(crate) fn draw() -> Result<Self, FileFault> {
        let key = *random_bytes::<32>().map_err(|error| FileFault::Damaged(error.to_string()))?;
        Ok(Self { key, sum: [0; 2] })
    }

    /// An empty sum under the same secret.
    pub(crate) fn again(&self) -> Self {
        Self {
            key: self.key,
            sum: [0; 2],
        }
    }

    pub(crate) fn add(&mut self, member: &[u8]) {
        let hash: [u8; 32] = Sha256::new()
            .chain_update(self.key)
            .chain_update(member)
            .finalize()
            .into();
        for (sum, part) in self.sum.iter_mut().zip(hash.as_chunks().0) {
            *sum = sum.wrapping_add(u128::from_be_bytes(*part));
        }
    }
}
