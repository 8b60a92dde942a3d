//! The large arrays of a model, in pieces that SQLite and memory can handle, with a checksum each.

use rusqlite::{Connection, MAIN_DB, params};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::cipher::{ModelConnection, SealedPlace};
use super::{FileFault, damaged, schema};

/// Bytes of one piece.
const PIECE: usize = 4 << 20;

/// One array to store.
pub(crate) enum StoredArray<'a> {
    Numbers(&'a str, &'a [f64]),
    Counts(&'a str, &'a [u64]),
    Bytes(&'a str, &'a [u8]),
}

impl StoredArray<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Numbers(name, _) | Self::Counts(name, _) | Self::Bytes(name, _) => name,
        }
    }

    fn byte_count(&self) -> u64 {
        let count = match self {
            Self::Numbers(_, values) => values.len() * 8,
            Self::Counts(_, values) => values.len() * 8,
            Self::Bytes(_, bytes) => bytes.len(),
        };
        count as u64
    }

    /// Shows the bytes of every piece, in order.
    fn each_piece(
        &self,
        mut see: impl FnMut(&[u8]) -> Result<(), FileFault>,
    ) -> Result<(), FileFault> {
        let mut buffer: Vec<u8> = Vec::new();
        match self {
            Self::Bytes(_, bytes) => bytes.chunks(PIECE).try_for_each(see),
            Self::Numbers(_, values) => values.chunks(PIECE / 8).try_for_each(|piece| {
                fill(&mut buffer, piece, f64::to_le_bytes);
                see(&buffer)
            }),
            Self::Counts(_, values) => values.chunks(PIECE / 8).try_for_each(|piece| {
                fill(&mut buffer, piece, u64::to_le_bytes);
                see(&buffer)
            }),
        }
    }
}

fn fill<T: Copy>(buffer: &mut Vec<u8>, values: &[T], bytes: impl Fn(T) -> [u8; 8]) {
    buffer.resize(values.len() * 8, 0);
    let places = buffer.as_chunks_mut().0;
    places
        .iter_mut()
        .zip(values)
        .for_each(|(place, value)| *place = bytes(*value));
}

/// Hashes a piece while it is written: for a large one, either takes as long as the other.
fn hashed_beside(
    digest: &mut Sha256,
    piece: &[u8],
    write: impl FnOnce() -> Result<(), FileFault>,
) -> Result<(), FileFault> {
    if piece.len() < 1 << 18 {
        digest.update(piece);
        return write();
    }
    std::thread::scope(|scope| {
        let hashing = scope.spawn(|| digest.update(piece));
        let written = write();
        hashing
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        written
    })
}

/// What the manifest knows of an array.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ArrayHead {
    name: String,
    bytes: u64,
    /// The number of its first piece.
    first: u64,
    sha256: String,
    /// Whether it lies in the table that changes of the rows leave alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    lasting: bool,
}

impl ArrayHead {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn sha256(&self) -> &str {
        &self.sha256
    }
}

/// Replaces all arrays but those that last, whose heads are taken over from `old`. Arrays of the
/// same names and lengths are overwritten where they lie. Else the table is made anew, so that
/// every page of the old one is cleared.
pub(crate) fn save(
    connection: &ModelConnection,
    parts: &[StoredArray<'_>],
    old: &[ArrayHead],
) -> Result<Vec<ArrayHead>, FileFault> {
    let mut heads: Vec<ArrayHead> = old.iter().filter(|head| !head.lasting).cloned().collect();
    let alike = |head: &ArrayHead, part: &StoredArray<'_>| {
        head.name == part.name() && head.bytes == part.byte_count()
    };
    if heads.len() == parts.len()
        && heads
            .iter()
            .zip(parts)
            .all(|(head, part)| alike(head, part))
    {
        heads
            .iter_mut()
            .zip(parts)
            .try_for_each(|(head, part)| overwrite(connection, head, part))?;
    } else {
        connection.execute_batch(&format!(r#"DROP TABLE "parts"; {};"#, schema::PARTS))?;
        heads = write(connection, "parts", parts)?;
    }
    heads.extend(old.iter().filter(|head| head.lasting).cloned());
    Ok(heads)
}

/// Replaces the one array that lasts: an encoder, which is large and changes only when it is
/// trained anew.
pub(crate) fn save_lasting(
    connection: &ModelConnection,
    part: StoredArray<'_>,
) -> Result<ArrayHead, FileFault> {
    connection.execute_batch(&format!(
        r#"DROP TABLE IF EXISTS "backbone"; {};"#,
        schema::BACKBONE
    ))?;
    match write(connection, "backbone", &[part])?.pop() {
        Some(head) => Ok(ArrayHead {
            lasting: true,
            ..head
        }),
        None => damaged("its encoder cannot be written"),
    }
}

/// Drops the array that lasts, where there is one.
pub(crate) fn drop_lasting(connection: &ModelConnection) -> Result<(), FileFault> {
    Ok(connection.execute_batch(r#"DROP TABLE IF EXISTS "backbone";"#)?)
}

fn write(
    connection: &ModelConnection,
    table: &str,
    parts: &[StoredArray<'_>],
) -> Result<Vec<ArrayHead>, FileFault> {
    let mut statement =
        connection.prepare(&format!(r#"INSERT INTO "{table}" VALUES (?1, ?2, ?3)"#))?;
    let mut next = 0_u64;
    let mut heads = Vec::with_capacity(parts.len());
    for part in parts {
        let name = part.name();
        let first = next;
        let mut digest = Sha256::new();
        part.each_piece(|piece| {
            let sealed = connection.seal(
                SealedPlace {
                    table,
                    number: next,
                },
                piece,
            )?;
            hashed_beside(&mut digest, piece, || {
                Ok(statement.execute(params![next, name, sealed]).map(drop)?)
            })?;
            next += 1;
            Ok(())
        })?;
        let sha256 = hex(&digest.finalize());
        heads.push(ArrayHead {
            name: name.to_owned(),
            bytes: part.byte_count(),
            first,
            sha256,
            lasting: false,
        });
    }
    Ok(heads)
}

/// Replaces an array by another of the same length, where it lies: SQLite overwrites bytes of the
/// same length in place, so that nothing of the old ones is left.
pub(crate) fn replace(
    connection: &ModelConnection,
    heads: &mut [ArrayHead],
    part: &StoredArray<'_>,
) -> Result<(), FileFault> {
    let name = part.name();
    match heads.iter_mut().find(|head| head.name == name) {
        Some(head) if head.bytes == part.byte_count() => overwrite(connection, head, part),
        Some(_) => damaged(format!("array `{name}` has another length")),
        None => damaged(format!("it has no array `{name}`")),
    }
}

/// Overwrites every piece of an array.
fn overwrite(
    connection: &ModelConnection,
    head: &mut ArrayHead,
    part: &StoredArray<'_>,
) -> Result<(), FileFault> {
    let sql = r#"SELECT 1 FROM "parts" WHERE part = ?1 AND name = ?2 AND typeof(bytes) = 'blob' AND length(bytes) = ?3"#;
    let mut statement = connection.prepare_cached(sql)?;
    let mut digest = Sha256::new();
    let mut at = head.first;
    part.each_piece(|piece| {
        let sealed = connection.seal(
            SealedPlace {
                table: "parts",
                number: at,
            },
            piece,
        )?;
        let (Ok(number), true) = (
            i64::try_from(at),
            statement.exists(params![at, head.name, sealed.len()])?,
        ) else {
            return damaged(format!("array `{}` lacks a piece", head.name));
        };
        // Written from where they are: an UPDATE copies the bytes twice before they reach their
        // pages.
        hashed_beside(&mut digest, piece, || {
            let mut place = connection.blob_open(MAIN_DB, c"parts", c"bytes", number, false)?;
            Ok(place.write_all_at(&sealed, 0)?)
        })?;
        at += 1;
        Ok(())
    })?;
    head.sha256 = hex(&digest.finalize());
    Ok(())
}

/// Reads an array of bytes.
pub(crate) fn bytes(
    connection: &ModelConnection,
    heads: &[ArrayHead],
    name: &str,
) -> Result<Vec<u8>, FileFault> {
    let mut all = Vec::new();
    load(connection, heads, name, |piece| {
        all.extend_from_slice(piece)
    })?;
    Ok(all)
}

/// Reads an array of floating-point numbers.
pub(crate) fn numbers(
    connection: &ModelConnection,
    heads: &[ArrayHead],
    name: &str,
) -> Result<Vec<f64>, FileFault> {
    let mut all = Vec::new();
    load(connection, heads, name, |piece| {
        all.extend(piece.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)))
    })?;
    Ok(all)
}

/// Reads an array of counts.
pub(crate) fn counts(
    connection: &ModelConnection,
    heads: &[ArrayHead],
    name: &str,
) -> Result<Vec<u64>, FileFault> {
    let mut all = Vec::new();
    load(connection, heads, name, |piece| {
        all.extend(piece.as_chunks().0.iter().map(|b| u64::from_le_bytes(*b)))
    })?;
    Ok(all)
}

/// Reads an array and compares it with its checksum.
pub(crate) fn check(
    connection: &ModelConnection,
    heads: &[ArrayHead],
    name: &str,
) -> Result<(), FileFault> {
    load(connection, heads, name, |_| {})
}

/// The tables hold the pieces of these arrays and no others.
pub(crate) fn check_count(connection: &Connection, heads: &[ArrayHead]) -> Result<(), FileFault> {
    for (table, lasting) in [("parts", false), ("backbone", true)] {
        let own = heads.iter().filter(|head| head.lasting == lasting);
        let pieces: u64 = own.map(|head| head.bytes.div_ceil(PIECE as u64)).sum();
        if lasting && pieces == 0 {
            continue;
        }
        let sql = format!(r#"SELECT count(*) FROM "{table}""#);
        let stored: u64 = connection.query_row(&sql, [], |row| row.get(0))?;
        if stored != pieces {
            return damaged(format!(
                "it holds {stored} pieces of arrays where {pieces} belong"
            ));
        }
    }
    Ok(())
}

fn load(
    connection: &ModelConnection,
    heads: &[ArrayHead],
    name: &str,
    mut see: impl FnMut(&[u8]),
) -> Result<(), FileFault> {
    let Some(head) = heads.iter().find(|head| head.name == name) else {
        return damaged(format!("it has no array `{name}`"));
    };
    let table = if head.lasting { "backbone" } else { "parts" };
    let mut statement = connection.prepare_cached(&format!(
        r#"SELECT part, bytes FROM "{table}" WHERE part >= ?1 AND part < ?2 AND name = ?3 ORDER BY part"#
    ))?;
    let pieces = head.bytes.div_ceil(PIECE as u64);
    let mut rows = statement.query(params![head.first, head.first.saturating_add(pieces), name])?;
    let mut digest = Sha256::new();
    while let Some(row) = rows.next()? {
        let Ok(piece) = row.get_ref(1)?.as_blob() else {
            return damaged(format!("array `{name}` is not made of bytes"));
        };
        let piece = connection.unseal(
            SealedPlace {
                table,
                number: row.get(0)?,
            },
            piece,
        )?;
        digest.update(&piece);
        see(&piece);
    }
    if hex(&digest.finalize()) == head.sha256 {
        Ok(())
    } else {
        damaged(format!("array `{name}` does not match its checksum"))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
