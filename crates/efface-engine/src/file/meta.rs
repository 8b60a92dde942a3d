//! Small named values of a file. One that must not change unnoticed lies beside its checksum, so that no flipped bit
//! passes for a setting.

use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};

use super::{FileFault, damaged};

/// The bytes under a name; None when there are none.
pub(crate) fn read(connection: &Connection, key: &str) -> Result<Option<Vec<u8>>, FileFault> {
    let mut statement = connection.prepare_cached(r#"SELECT value FROM "meta" WHERE key = ?1"#)?;
    Ok(statement.query_row([key], |row| row.get(0)).optional()?)
}

/// Replaces the bytes under a name.
pub(crate) fn write(connection: &Connection, key: &str, value: &[u8]) -> Result<(), FileFault> {
    let sql = r#"INSERT INTO "meta" VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = excluded.value"#;
    connection.prepare_cached(sql)?.execute(params![key, value])?;
    Ok(())
}

/// The bytes of the manifest, which must match their checksum.
pub(crate) fn read_manifest(connection: &Connection) -> Result<Vec<u8>, FileFault> {
    let manifest = read(connection, "manifest")?;
    let digest = read(connection, "digest")?;
    match (manifest, digest) {
        (Some(bytes), Some(digest)) if digest == Sha256::digest(&bytes).as_slice() => Ok(bytes),
        (None, _) => damaged("it has no manifest"),
        _ => damaged("its manifest does not match its checksum"),
    }
}

/// Replaces the manifest and its checksum.
pub(crate) fn write_manifest(connection: &Connection, bytes: &[u8]) -> Result<(), FileFault> {
    write(connection, "manifest", bytes)?;
    write(connection, "digest", Sha256::digest(bytes).as_slice())
}
