//! The tables, and the settings under which they are used.
//!
//! Nothing that rows hold is ever moved by SQLite: `rows` and `keys` grow at their end and are overwritten in place,
//! `parts` is dropped and made anew with every change. There is no index over ids or subjects, because an index moves
//! its entries; looking an id up is a pass over `keys`, 32 bytes a row.

use rusqlite::Connection;

use super::{Fault, damaged};

/// `eFFa`, in the header of every file of ours.
pub(super) const APPLICATION_ID: u32 = 0x6546_4661;

/// For every connection. Cleared pages are overwritten; a journal is deleted at commit; nothing spills to other files.
pub(super) const PRAGMAS: &str = "
    PRAGMA trusted_schema = OFF;
    PRAGMA cell_size_check = ON;
    PRAGMA foreign_keys = ON;
    PRAGMA secure_delete = ON;
    PRAGMA temp_store = MEMORY;
    PRAGMA synchronous = FULL;";

pub(super) const PARTS: &str =
    r#"CREATE TABLE "parts"(part INTEGER PRIMARY KEY, name TEXT NOT NULL, bytes BLOB NOT NULL)"#;

const TABLES: [&str; 5] = [
    r#"CREATE TABLE "forgotten"(commitment BLOB PRIMARY KEY, at TEXT NOT NULL) WITHOUT ROWID"#,
    r#"CREATE TABLE "keys"(row INTEGER PRIMARY KEY, key BLOB NOT NULL)"#,
    r#"CREATE TABLE "meta"(key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"#,
    PARTS,
    r#"CREATE TABLE "rows"(row INTEGER PRIMARY KEY, payload BLOB NOT NULL)"#,
];

/// What makes an empty file ours.
pub(super) fn stamp() -> String {
    format!(
        "PRAGMA journal_mode = DELETE; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {}; {};",
        crate::FORMAT,
        TABLES.join(";")
    )
}

/// Refuses a file with other tables, or with triggers or views that would do more than we ask.
pub(super) fn check(connection: &Connection) -> Result<(), Fault> {
    let mut statement = connection.prepare("SELECT sql FROM sqlite_schema ORDER BY name")?;
    let found: Vec<Option<String>> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    if found.len() == TABLES.len()
        && found.iter().zip(TABLES).all(|(found, table)| found.as_deref() == Some(table))
    {
        return Ok(());
    }
    damaged(format!("its tables are not those of format {}", crate::FORMAT))
}

/// Writes `rows` and `keys` anew without the rows that were overwritten. The old pages are cleared.
pub(crate) fn compact(connection: &Connection) -> Result<(), Fault> {
    let copy = |table: &str, column: &str, keep: &str| {
        format!(
            r#"CREATE TABLE "{table}_new"(row INTEGER PRIMARY KEY, {column} BLOB NOT NULL);
               INSERT INTO "{table}_new" SELECT row, {column} FROM "{table}" WHERE {keep} ORDER BY row;
               DROP TABLE "{table}";
               ALTER TABLE "{table}_new" RENAME TO "{table}";"#
        )
    };
    // Rows first, while `keys` still tells which of them are alive.
    let alive = r#"row IN (SELECT row FROM "keys" WHERE key <> zeroblob(32))"#;
    connection.execute_batch(&copy("rows", "payload", alive))?;
    Ok(connection.execute_batch(&copy("keys", "key", "key <> zeroblob(32)"))?)
}
