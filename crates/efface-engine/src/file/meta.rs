//! Small named values of a file: the manifest, and the signed head of the log.

use rusqlite::{Connection, OptionalExtension, params};

use super::FileFault;

/// The bytes under a name; None when there are none.
pub(crate) fn read(connection: &Connection, key: &str) -> Result<Option<Vec<u8>>, FileFault> {
    let mut statement = connection.prepare_cached(r#"SELECT value FROM "meta" WHERE key = ?1"#)?;
    Ok(statement.query_row([key], |row| row.get(0)).optional()?)
}

/// Replaces the bytes under a name.
pub(crate) fn write(connection: &Connection, key: &str, value: &[u8]) -> Result<(), FileFault> {
    let sql =
        r#"INSERT INTO "meta" VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = excluded.value"#;
    connection
        .prepare_cached(sql)?
        .execute(params![key, value])?;
    Ok(())
}
