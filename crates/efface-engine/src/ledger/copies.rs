//! What was handed out. The engine keeps one version, the current one, and nothing else can be
//! exported; copies that left before a forget still hold the row, and are listed as withdrawn. The
//! list is short and read whole; the head of the ledger holds its hash.

use efface_receipt::{CopyKind, CopyState, Hash, KnownCopy};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, params, params_from_iter};
use sha2::{Digest, Sha256};

use super::{LedgerHead, at};
use crate::file::{FileFault, damaged};

/// Notes an export; gives its number. Where it went is kept as a commitment.
pub(crate) fn add(
    connection: &Connection,
    ledger: &mut LedgerHead,
    format: &str,
    destination: Option<&Hash>,
    parameters: &Hash,
    made_at: i64,
) -> Result<u64, FileFault> {
    check(connection, ledger)?;
    let number: u64 = connection.query_row(
        r#"SELECT coalesce(max(number), 0) + 1 FROM "copies""#,
        [],
        |row| row.get(0),
    )?;
    let destination = destination.map(|hash| hash.0);
    connection.execute(
        r#"INSERT INTO "copies" VALUES (?1, ?2, ?3, ?4, ?5, NULL)"#,
        params![number, format, destination, parameters.as_bytes(), made_at],
    )?;
    ledger.copies = hash(connection)?;
    Ok(number)
}

/// Withdraws every copy that is in use; gives how many.
pub(crate) fn withdraw(
    connection: &Connection,
    ledger: &mut LedgerHead,
    now: i64,
) -> Result<usize, FileFault> {
    check(connection, ledger)?;
    let sql = r#"UPDATE "copies" SET withdrawn_at = ?1 WHERE withdrawn_at IS NULL"#;
    let withdrawn = connection.execute(sql, [now])?;
    if withdrawn > 0 {
        ledger.copies = hash(connection)?;
    }
    Ok(withdrawn)
}

/// Puts the list of another file of the same log in the place of this one.
pub(crate) fn replace(connection: &Connection, from: &Connection) -> Result<(), FileFault> {
    connection.execute(r#"DELETE FROM "copies""#, [])?;
    let mut read = from.prepare(r#"SELECT * FROM "copies" ORDER BY number"#)?;
    let columns = read.column_count();
    let mut rows = read.query([])?;
    while let Some(row) = rows.next()? {
        let values: Vec<Value> = (0..columns)
            .map(|at| row.get(at))
            .collect::<rusqlite::Result<_>>()?;
        connection
            .prepare_cached(r#"INSERT INTO "copies" VALUES (?, ?, ?, ?, ?, ?)"#)?
            .execute(params_from_iter(values))?;
    }
    Ok(())
}

/// The hash over a list without copies.
pub(crate) fn empty_hash() -> Hash {
    Hash(Sha256::digest(b"").into())
}

/// The list must be the one that was signed.
pub(crate) fn check(connection: &Connection, ledger: &LedgerHead) -> Result<(), FileFault> {
    if hash(connection)? == ledger.copies {
        Ok(())
    } else {
        damaged("its list of exports is not the one that was signed")
    }
}

/// The hash over every field of every copy. Fields of no fixed length have it in front.
fn hash(connection: &Connection) -> Result<Hash, FileFault> {
    let mut digest = Sha256::new();
    let mut statement = connection.prepare_cached(r#"SELECT * FROM "copies" ORDER BY number"#)?;
    let columns = statement.column_count();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        for column in 0..columns {
            match row.get_ref(column)? {
                ValueRef::Null => digest.update(b"n"),
                ValueRef::Integer(number) => {
                    digest.update([&b"i"[..], &number.to_be_bytes()].concat())
                }
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                    digest.update([&b"b"[..], &(bytes.len() as u64).to_be_bytes(), bytes].concat());
                }
                ValueRef::Real(_) => return damaged("an export is listed with a fraction"),
            }
        }
    }
    Ok(Hash(digest.finalize().into()))
}

/// How many exports are in use, and how many were withdrawn.
pub(crate) fn count(connection: &Connection) -> Result<(u64, u64), FileFault> {
    let sql = r#"SELECT count(*) - count(withdrawn_at), count(withdrawn_at) FROM "copies""#;
    Ok(connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?)
}

/// Every export, oldest first.
pub(crate) fn list(
    connection: &Connection,
    ledger: &LedgerHead,
) -> Result<Vec<KnownCopy>, FileFault> {
    check(connection, ledger)?;
    let sql = r#"SELECT number, parameters, made_at, withdrawn_at FROM "copies" ORDER BY number"#;
    let mut statement = connection.prepare_cached(sql)?;
    let all = statement.query_map([], |row| {
        let withdrawn: Option<i64> = row.get(3)?;
        Ok(KnownCopy {
            number: row.get(0)?,
            kind: CopyKind::Export,
            state: if withdrawn.is_some() {
                CopyState::Withdrawn
            } else {
                CopyState::Live
            },
            parameters: Hash(row.get(1)?),
            made_at: at(row.get(2)?),
            withdrawn_at: withdrawn.map(at),
        })
    })?;
    Ok(all.collect::<Result<_, _>>()?)
}
