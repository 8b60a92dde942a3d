//! The tables, and the settings under which they are used.
//!
//! Nothing that rows hold is ever moved by SQLite: `rows`, `keys` and `places` grow at their end
//! and are overwritten in place, `parts` is dropped and made anew with every change. There is no
//! index of SQLite's over ids or subjects, because it moves its entries: `places` is one that does
//! not. `members`, `nodes`, `forgotten` and `requests` are indexes, but of commitments, which stay
//! for good anyway, and `branches` holds hashes that nobody can test a guess with.

use rusqlite::Connection;

use super::hash_tree::HashedTable;
use super::shrink::SPARE;
use super::{FileFault, damaged};

/// `eFFa`, in the header of every file of ours.
pub(super) const APPLICATION_ID: u32 = 0x6546_4661;

/// For every connection. Cleared pages are overwritten; nothing spills to other files. A cache of
/// 16 MiB holds the arrays of most models: what does not fit is written in the middle of a change,
/// which waits for the disk each time.
pub(super) const PRAGMAS: &str = "
    PRAGMA trusted_schema = OFF;
    PRAGMA cell_size_check = ON;
    PRAGMA foreign_keys = ON;
    PRAGMA secure_delete = ON;
    PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -16384;
    PRAGMA synchronous = FULL;";

pub(super) const PARTS: &str =
    r#"CREATE TABLE "parts"(part INTEGER PRIMARY KEY, name TEXT NOT NULL, bytes BLOB NOT NULL)"#;

/// Only a network has one, and its name comes before all others.
pub(super) const BACKBONE: &str =
    r#"CREATE TABLE "backbone"(part INTEGER PRIMARY KEY, name TEXT NOT NULL, bytes BLOB NOT NULL)"#;

const BRANCHES: &str =
    r#"CREATE TABLE "branches"(branch INTEGER PRIMARY KEY, hashes BLOB NOT NULL)"#;
const CELLS: &str = r#"CREATE TABLE "cells"(cell INTEGER PRIMARY KEY, node BLOB NOT NULL)"#;
const COPIES: &str = r#"CREATE TABLE "copies"(number INTEGER PRIMARY KEY, format TEXT NOT NULL, destination BLOB, parameters BLOB NOT NULL, made_at INTEGER NOT NULL, withdrawn_at INTEGER)"#;
const FORGOTTEN: &str =
    r#"CREATE TABLE "forgotten"(commitment BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"#;
const KEYS: &str = r#"CREATE TABLE "keys"(row INTEGER PRIMARY KEY, key BLOB NOT NULL)"#;
const MEMBERS: &str = r#"CREATE TABLE "members"(commitment BLOB PRIMARY KEY) WITHOUT ROWID"#;
const META: &str =
    r#"CREATE TABLE "meta"(key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"#;
const NODES: &str = r#"CREATE TABLE "nodes"(level INTEGER NOT NULL, place INTEGER NOT NULL, hash BLOB NOT NULL, PRIMARY KEY (level, place)) WITHOUT ROWID"#;
const PLACES: &str = r#"CREATE TABLE "places"(page INTEGER PRIMARY KEY, slots BLOB NOT NULL)"#;
const RECEIPTS: &str =
    r#"CREATE TABLE "receipts"(sequence INTEGER PRIMARY KEY, bytes BLOB NOT NULL)"#;
const REQUESTS: &str =
    r#"CREATE TABLE "requests"(commitment BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"#;
const ROWS: &str = r#"CREATE TABLE "rows"(row INTEGER PRIMARY KEY, payload BLOB NOT NULL)"#;

/// In the order of their names.
const TABLES: [&str; 13] = [
    BRANCHES, CELLS, COPIES, FORGOTTEN, KEYS, MEMBERS, META, NODES, PARTS, PLACES, RECEIPTS,
    REQUESTS, ROWS,
];

/// What makes an empty file ours. `arrays` is the size of the model in bytes.
pub(super) fn stamp(arrays: usize) -> String {
    // A change writes large arrays whole, and each page of them takes four calls of the system; a
    // small model changes a few bytes on each of a few pages.
    let page = if arrays < 1 << 20 { 4096 } else { 16384 };
    format!(
        "PRAGMA page_size = {page}; BEGIN; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {}; {}; COMMIT",
        crate::FORMAT,
        TABLES.join(";")
    )
}

/// Refuses a file with other tables, or with triggers or views that would do more than we ask.
pub(crate) fn check(connection: &Connection) -> Result<(), FileFault> {
    let mut statement = connection.prepare("SELECT sql FROM sqlite_schema ORDER BY name")?;
    let found: Vec<Option<String>> = statement
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let network = found
        .first()
        .is_some_and(|table| table.as_deref() == Some(BACKBONE));
    let found = if network { &found[1..] } else { &found[..] };
    // A settle that was cut short leaves a table of zeros, whose name comes last.
    let found = match found.split_last() {
        Some((last, others)) if last.as_deref() == Some(SPARE) => others,
        _ => found,
    };
    if found.len() == TABLES.len()
        && found
            .iter()
            .zip(TABLES)
            .all(|(found, table)| found.as_deref() == Some(table))
    {
        return Ok(());
    }
    damaged(format!(
        "its tables are not those of format {}",
        crate::FORMAT
    ))
}

/// Empties the index of names and the hashes over it. The old pages are cleared.
pub(super) fn empty_places(connection: &Connection) -> Result<(), FileFault> {
    let sql = format!(
        r#"DROP TABLE "places"; {PLACES}; DELETE FROM "branches" WHERE branch BETWEEN {} AND {}"#,
        HashedTable::Places.first_branch(),
        HashedTable::Places.last_branch()
    );
    Ok(connection.execute_batch(&sql)?)
}

/// Writes `rows` and `keys` anew without the rows that were overwritten. The old pages are cleared.
pub(crate) fn compact(connection: &Connection) -> Result<(), FileFault> {
    let copy = |table: &str, column: &str, keep: &str| {
        format!(
            r#"CREATE TABLE "{table}_new"(row INTEGER PRIMARY KEY, {column} BLOB NOT NULL);
               INSERT INTO "{table}_new" SELECT row, {column} FROM "{table}" WHERE {keep} ORDER BY row;
               DROP TABLE "{table}";
               ALTER TABLE "{table}_new" RENAME TO "{table}";"#
        )
    };
    // Rows first, while `keys` still tells which of them are alive.
    let alive = r#"row IN (SELECT row FROM "keys" WHERE key <> zeroblob(48))"#;
    connection.execute_batch(&copy("rows", "payload", alive))?;
    Ok(connection.execute_batch(&copy("keys", "key", "key <> zeroblob(48)"))?)
}
