//! What the package `efface` puts around the bytes of sums: a mark, their length, and a SHA-256 of
//! everything before it. Between length and hash it has room for commitments to rows, which sums
//! that a query makes do not have.

use sha2::{Digest, Sha256};

const MARK: &[u8; 8] = b"efface-S";
const HASH: usize = 32;

/// The sums inside.
pub(crate) fn opened(bytes: &[u8]) -> Result<&[u8], String> {
    let fault = |what: &str| format!("these bytes are no statistics: {what}");
    let (body, hash) = bytes
        .split_last_chunk::<HASH>()
        .ok_or_else(|| fault("they end early"))?;
    if Sha256::digest(body).as_slice() != hash {
        return Err(fault("their checksum is another"));
    }
    let (length, rest) = body
        .strip_prefix(MARK)
        .and_then(|rest| rest.split_first_chunk::<8>())
        .ok_or_else(|| fault("they are of another version"))?;
    match rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX))
    {
        Some((sums, [])) => Ok(sums),
        Some(_) => Err("a query cannot commit to rows; give statistics without row_id".into()),
        None => Err(fault("they end early")),
    }
}

/// Sums as the package reads them.
pub(crate) fn closed(sums: &[u8]) -> Vec<u8> {
    let mut out = MARK.to_vec();
    out.extend((sums.len() as u64).to_le_bytes());
    out.extend(sums);
    let hash = Sha256::digest(&out);
    out.extend(hash);
    out
}
