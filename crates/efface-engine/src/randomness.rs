//! The one source of secrets and of names that nobody can guess: random bytes of the operating
//! system.

use zeroize::Zeroizing;

use crate::error::{Error, Result};

/// Random bytes of the operating system, overwritten in memory when they are dropped.
pub(crate) fn random_bytes<const N: usize>() -> Result<Zeroizing<[u8; N]>> {
    let mut bytes = Zeroizing::new([0; N]);
    match getrandom::fill(bytes.as_mut_slice()) {
        Ok(()) => Ok(bytes),
        Err(error) => Err(Error::io(
            "random numbers",
            std::io::Error::other(error.to_string()),
        )),
    }
}

/// Fills memory with random bytes of the operating system: one call for the nonces of many rows.
pub(crate) fn fill_random(bytes: &mut [u8]) -> Result<()> {
    let failed = |error: getrandom::Error| {
        Error::io("random numbers", std::io::Error::other(error.to_string()))
    };
    getrandom::fill(bytes).map_err(failed)
}

/// A name for something new: hexadecimal digits drawn at random, two for each of `N` bytes.
pub(crate) fn random_name<const N: usize>() -> Result<String> {
    Ok(random_bytes::<N>()?
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

/// Eight random bytes, such as for a request that must not be taken for another.
pub fn random_nonce() -> Result<[u8; 8]> {
    Ok(*random_bytes::<8>()?)
}
