//! What was handed out. The engine keeps one version, the current one, and nothing else can be exported; copies that
//! left before a forget still hold the row, and are listed as withdrawn.

use efface_receipt::{CopyKind, CopyState, Hash, KnownCopy};
use rusqlite::{Connection, params};

use super::at;
use crate::file::FileFault;

/// Notes an export; gives its number. Where it went is kept as a commitment.
pub(crate) fn add(
    connection: &Connection,
    format: &str,
    destination: Option<&Hash>,
    parameters: &Hash,
    made_at: i64,
) -> Result<u64, FileFault> {
    let number: u64 =
        connection.query_row(r#"SELECT coalesce(max(number), 0) + 1 FROM "copies""#, [], |row| row.get(0))?;
    let destination = destination.map(|hash| hash.0);
    connection.execute(
        r#"INSERT INTO "copies" VALUES (?1, ?2, ?3, ?4, ?5, NULL)"#,
        params![number, format, destination, parameters.as_bytes(), made_at],
    )?;
    Ok(number)
}

/// Withdraws every copy that is in use; gives how many.
pub(crate) fn withdraw(connection: &Connection, now: i64) -> Result<usize, FileFault> {
    let sql = r#"UPDATE "copies" SET withdrawn_at = ?1 WHERE withdrawn_at IS NULL"#;
    Ok(connection.execute(sql, [now])?)
}

/// How many exports are in use, and how many were withdrawn.
pub(crate) fn count(connection: &Connection) -> Result<(u64, u64), FileFault> {
    let sql = r#"SELECT count(*) - count(withdrawn_at), count(withdrawn_at) FROM "copies""#;
    Ok(connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?)
}

/// Every export, oldest first.
pub(crate) fn list(connection: &Connection) -> Result<Vec<KnownCopy>, FileFault> {
    let sql = r#"SELECT number, parameters, made_at, withdrawn_at FROM "copies" ORDER BY number"#;
    let mut statement = connection.prepare_cached(sql)?;
    let all = statement.query_map([], |row| {
        let withdrawn: Option<i64> = row.get(3)?;
        Ok(KnownCopy {
            number: row.get(0)?,
            kind: CopyKind::Export,
            state: if withdrawn.is_some() { CopyState::Withdrawn } else { CopyState::Live },
            parameters: Hash(row.get(1)?),
            made_at: at(row.get(2)?),
            withdrawn_at: withdrawn.map(at),
        })
    })?;
    Ok(all.collect::<Result<_, _>>()?)
}
