//! Requests by the names that their callers gave them: one effect each. What is kept is a commitment to the name, a hash
//! of what was asked, and the answer.

use efface_receipt::Hash;
use rusqlite::{Connection, OptionalExtension, params};

use crate::file::FileFault;

/// A request that was answered before.
pub(crate) struct AnsweredRequest {
    pub(crate) body: Hash,
    pub(crate) sequence: u64,
    pub(crate) result: Vec<u8>,
}

pub(crate) fn find(connection: &Connection, request: &Hash) -> Result<Option<AnsweredRequest>, FileFault> {
    let sql = r#"SELECT body, sequence, result FROM "requests" WHERE commitment = ?1"#;
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_row([request.as_bytes()], |row| {
        Ok(AnsweredRequest { body: Hash(row.get(0)?), sequence: row.get(1)?, result: row.get(2)? })
    });
    Ok(found.optional()?)
}

pub(crate) fn record(
    connection: &Connection,
    request: &Hash,
    answer: &AnsweredRequest,
) -> Result<(), FileFault> {
    let mut statement = connection.prepare_cached(r#"INSERT INTO "requests" VALUES (?1, ?2, ?3, ?4)"#)?;
    statement.execute(params![request.as_bytes(), answer.body.as_bytes(), answer.sequence, answer.result])?;
    Ok(())
}
