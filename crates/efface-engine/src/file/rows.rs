//! The rows of a model file, as the methods see them: read one by one when asked, never all at once
//! unless a method cannot do without.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

use efface::{Csr, Dense, Features, RowId, RowRef, RowStore, RowView, Rows, Stop, WordIds};
use efface_receipt::Hash;
use rusqlite::{Connection, OptionalExtension, params};

use super::cipher::{ModelConnection, SealedPlace};
use super::keys::{self, DirectoryHead, ListRoots, TrustedChunks};
use super::layout::{RowLayout, RowShape};
use super::payload::{self, OutgoingRow, RowDigest, RowNonce, StoredFeatures, StoredRow};
use super::{FileFault, ModelStore, damaged};
use crate::randomness::random_bytes;

/// About as many bytes as a row in memory takes beside its numbers.
const ROW_BYTES: u64 = 32;

/// Blocks of rows have at least so many, however wide these are: sums over rows are made block by
/// block, and round once a block.
const FEWEST: usize = 512;

/// Which rows of a file belong to its model, and what each of them looks like.
#[derive(Debug, Clone)]
pub(crate) struct RowOutline {
    pub(crate) shape: RowShape,
    /// Rows in the model.
    pub(crate) rows: u64,
    /// Whether rows have weights of their own.
    pub(crate) weighted: bool,
    /// The roots over their list.
    pub(crate) roots: ListRoots,
    /// The rows that are forgotten and wait to be scrubbed, by number. They are no rows of the
    /// model.
    pub(crate) hidden: BTreeMap<u64, RowDigest>,
}

/// The rows of a model file, inside a transaction that the caller holds.
pub(crate) struct StoreRows<'a> {
    store: &'a ModelStore,
    outline: RowOutline,
    /// What was compared with the root of the list so far.
    trusted: Mutex<TrustedChunks>,
    /// Whether a pass has compared the whole list with its root.
    compared: AtomicBool,
    /// Whether rows are read by passes, however few they are.
    passes: Option<Stop>,
}

impl<'a> StoreRows<'a> {
    pub(crate) fn new(store: &'a ModelStore, outline: RowOutline) -> Self {
        let trusted = Mutex::new(TrustedChunks::new(&outline.roots));
        Self {
            store,
            outline,
            trusted,
            compared: AtomicBool::new(false),
            passes: None,
        }
    }

    /// Rows that are never all in memory; the work on them can be watched.
    pub(crate) fn by_passes(store: &'a ModelStore, outline: RowOutline) -> Self {
        Self {
            passes: Some(Stop::default()),
            ..Self::new(store, outline)
        }
    }

    /// Whether so many numbers a row are more than may be in memory; what sparse rows take is about
    /// what the file takes.
    pub(crate) fn is_too_much(&self, width: usize, sparse: bool) -> bool {
        let row = 8 * (width + self.outline.shape.outputs) as u64 + ROW_BYTES;
        let bytes = match sparse {
            true => self.store.file_bytes(),
            false => self.outline.rows.saturating_mul(row),
        };
        self.passes.is_some() || bytes > self.store.memory()
    }

    /// Compares the list of rows with its root, once.
    fn check_list(&self, connection: &ModelConnection) -> Result<(), FileFault> {
        if !self.compared.swap(true, Ordering::Relaxed) {
            let head = DirectoryHead {
                rows: self.outline.rows,
                roots: self.outline.roots,
            };
            keys::scan(connection, &head, |_, _| Ok(()))?;
        }
        Ok(())
    }

    /// Sends all rows, block by block; stops early where nobody takes them.
    fn send_blocks(&self, blocks: &SyncSender<Rows>) -> efface::Result<()> {
        let mut collector = RowCollector::new(self.outline.shape);
        let mut failed = Ok(());
        let mut count = 0;
        let read = self.store.raw(|connection| {
            self.check_list(connection)?;
            each_decoded(connection, &self.outline, |number, row, _, _| {
                count += 1;
                collector.push(number, row);
                if collector.ids.len() < FEWEST || collector.bytes() < self.store.block_bytes() {
                    return Ok(true);
                }
                let full = std::mem::replace(&mut collector, RowCollector::new(self.outline.shape));
                let sent = full
                    .finish(self.outline.weighted)
                    .map(|block| blocks.send(block).is_ok());
                Ok(sent.unwrap_or_else(|error| {
                    failed = Err(error);
                    false
                }))
            })
        });
        failed?;
        if !read.map_err(translate)? {
            return Ok(());
        }
        if count != self.outline.rows {
            let belong = self.outline.rows;
            return Err(efface::Error::Damaged(format!(
                "it holds {count} rows where {belong} belong"
            )));
        }
        if !collector.ids.is_empty() {
            // Where nobody takes the last block, whoever should have says why.
            let _ = blocks.send(collector.finish(self.outline.weighted)?);
        }
        Ok(())
    }

    /// Refuses an entry of the list that is not under its root.
    fn check_listed(&self, connection: &ModelConnection, number: u64) -> Result<(), FileFault> {
        self.trusted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .check(connection, number)
    }

    /// One row with its names.
    pub(crate) fn read(&self, number: u64) -> Result<Option<StoredRow>, FileFault> {
        Ok(self.read_listed(number)?.map(|found| found.row))
    }

    /// One row with its names and its hashes. It must be the one that the list of rows names.
    pub(crate) fn read_hashed(&self, number: u64) -> Result<Option<HashedRow>, FileFault> {
        let hashed = |DecodedRow { row, digest, bytes }: DecodedRow| {
            let content = payload::content(self.outline.shape, &bytes);
            HashedRow {
                row,
                content,
                digest,
            }
        };
        Ok(self.read_listed(number)?.map(hashed))
    }

    fn read_listed(&self, number: u64) -> Result<Option<DecodedRow>, FileFault> {
        if self.outline.hidden.contains_key(&number) {
            return Ok(None);
        }
        self.store.raw(|connection| {
            let Some(found) = one(connection, self.outline.shape, number)? else {
                return Ok(None);
            };
            self.check_listed(connection, number)?;
            let mut statement =
                connection.prepare_cached(r#"SELECT key FROM "keys" WHERE row = ?1"#)?;
            let entry: Option<Vec<u8>> =
                statement.query_row([number], |row| row.get(0)).optional()?;
            check_entry(number, entry.as_deref(), &found.digest)?;
            Ok(Some(found))
        })
    }
}

/// A row of the file with the bytes that it was read from.
struct DecodedRow {
    row: StoredRow,
    digest: RowDigest,
    bytes: Vec<u8>,
}

/// A row of the file with the hashes of it.
pub(crate) struct HashedRow {
    pub(crate) row: StoredRow,
    /// The hash of its content, which its leaf in the training set is made from.
    pub(crate) content: Hash,
    /// The digest of its bytes, which the list of rows holds.
    pub(crate) digest: RowDigest,
}

/// The last part of an entry in the list of rows is the digest of the row's bytes.
fn check_entry(number: u64, entry: Option<&[u8]>, digest: &RowDigest) -> Result<(), FileFault> {
    if entry.is_some_and(|entry| entry.ends_with(digest)) {
        Ok(())
    } else {
        damaged(format!("row number {number} is not the one on its list"))
    }
}

pub(super) fn place(number: u64) -> SealedPlace<'static> {
    SealedPlace {
        table: "rows",
        number,
    }
}

/// One row, whether it is hidden or not; None when it was overwritten or never was.
fn one(
    connection: &ModelConnection,
    shape: RowShape,
    number: u64,
) -> Result<Option<DecodedRow>, FileFault> {
    let mut statement =
        connection.prepare_cached(r#"SELECT payload FROM "rows" WHERE row = ?1"#)?;
    let bytes = statement
        .query_row([number], |row| row.get::<_, Vec<u8>>(0))
        .optional()?;
    match bytes {
        Some(bytes) if bytes.iter().any(|byte| *byte != 0) => {
            let bytes = connection.unseal(place(number), &bytes)?.into_owned();
            let (row, digest) = payload::decode(number, shape, &bytes)?;
            Ok(Some(DecodedRow { row, digest, bytes }))
        }
        _ => Ok(None),
    }
}

/// The id of a row; empty where it is not there.
pub(crate) fn id_of(
    connection: &ModelConnection,
    shape: RowShape,
    number: u64,
) -> Result<String, FileFault> {
    Ok(one(connection, shape, number)?
        .map(|found| found.row.id)
        .unwrap_or_default())
}

/// The rows that wait to be scrubbed. Only a step that folds them out of the curvature may read
/// them.
pub(crate) fn waiting(
    connection: &ModelConnection,
    outline: &RowOutline,
) -> Result<Vec<(u64, StoredRow)>, FileFault> {
    let read = |(number, digest): (&u64, &RowDigest)| match one(connection, outline.shape, *number)?
    {
        Some(found) if found.digest == *digest => Ok((*number, found.row)),
        Some(_) => damaged(format!(
            "row number {number} is not the one that waits to be scrubbed"
        )),
        None => damaged(format!(
            "row number {number} waits to be scrubbed and is missing"
        )),
    };
    outline.hidden.iter().map(read).collect()
}

/// The rows that wait to be scrubbed, in the form that models take.
pub(crate) fn waiting_rows(
    connection: &ModelConnection,
    outline: &RowOutline,
) -> Result<Rows, FileFault> {
    let mut collector = RowCollector::new(outline.shape);
    for (number, row) in waiting(connection, outline)? {
        collector.push(number, row);
    }
    collector
        .finish(outline.weighted)
        .map_err(|error| FileFault::Damaged(error.to_string()))
}

/// Shows every row of the model, with its number. One row is in memory at a time.
pub(crate) fn each(
    connection: &ModelConnection,
    outline: &RowOutline,
    mut see: impl FnMut(u64, HashedRow) -> Result<(), FileFault>,
) -> Result<(), FileFault> {
    each_decoded(connection, outline, |number, row, digest, bytes| {
        see(
            number,
            HashedRow {
                row,
                content: payload::content(outline.shape, bytes),
                digest,
            },
        )?;
        Ok(true)
    })?;
    Ok(())
}

/// Shows every row of the model, with its number, its digest and its bytes, as long as `see` says
/// to go on; returns whether all were shown.
fn each_decoded(
    connection: &ModelConnection,
    outline: &RowOutline,
    mut see: impl FnMut(u64, StoredRow, RowDigest, &[u8]) -> Result<bool, FileFault>,
) -> Result<bool, FileFault> {
    let sql = r#"SELECT rows.row, payload, key FROM "rows" LEFT JOIN "keys" ON keys.row = rows.row ORDER BY rows.row"#;
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let number = row.get(0)?;
        let bytes = row.get_ref(1)?.as_blob().unwrap_or_default();
        if bytes.iter().any(|byte| *byte != 0) && !outline.hidden.contains_key(&number) {
            let bytes = connection.unseal(place(number), bytes)?;
            let (stored, digest) = payload::decode(number, outline.shape, &bytes)?;
            check_entry(number, row.get_ref(2)?.as_blob().ok(), &digest)?;
            if !see(number, stored, digest, &bytes)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Keeps those of the `words` that no row of the model holds but the rows `gone`. Reading ends as
/// soon as none is left.
pub(crate) fn keep_unused(
    connection: &ModelConnection,
    outline: &RowOutline,
    gone: &HashSet<u64>,
    words: &mut HashSet<u32>,
) -> Result<(), FileFault> {
    if !words.is_empty() {
        each_decoded(connection, outline, |number, row, _, _| {
            if !gone.contains(&number) {
                for word in row.word_ids() {
                    words.remove(word);
                }
            }
            Ok(!words.is_empty())
        })?;
    }
    Ok(())
}

impl RowStore for StoreRows<'_> {
    fn len(&self) -> usize {
        self.outline.rows as usize
    }

    fn width(&self) -> usize {
        self.outline.shape.width
    }

    fn outputs(&self) -> usize {
        self.outline.shape.outputs
    }

    fn is_sparse(&self) -> bool {
        self.outline.shape.layout.is_sparse()
    }

    fn holds_word_ids(&self) -> bool {
        self.outline.shape.layout == RowLayout::WordIds
    }

    fn contains(&self, id: RowId) -> efface::Result<bool> {
        let known = self.store.raw(|connection| {
            self.check_listed(connection, id.0)?;
            let mut statement = connection
                .prepare_cached(r#"SELECT key <> zeroblob(48) FROM "keys" WHERE row = ?1"#)?;
            Ok(statement
                .query_row([id.0], |row| row.get::<_, bool>(0))
                .optional()?)
        });
        Ok(known.map_err(translate)?.unwrap_or(false))
    }

    fn visit(&self, ids: &[RowId], see: &mut dyn FnMut(usize, RowView<'_>)) -> efface::Result<()> {
        self.check(ids)?;
        for (at, &id) in ids.iter().enumerate() {
            let row = self
                .read(id.0)
                .map_err(translate)?
                .ok_or(efface::Error::UnknownRow(id))?;
            see(
                at,
                RowView {
                    id,
                    features: row.features.as_ref(),
                    targets: &row.targets,
                    weight: row.weight,
                },
            );
        }
        Ok(())
    }

    fn is_beyond_memory(&self) -> bool {
        self.is_too_much(self.width(), self.is_sparse())
    }

    /// One thread reads a block while another works on the one before.
    fn each_block(&self, see: &mut dyn FnMut(&Rows) -> efface::Result<()>) -> efface::Result<()> {
        std::thread::scope(|scope| {
            let (sender, blocks) = sync_channel(0);
            let reading = scope.spawn(move || self.send_blocks(&sender));
            let seen = blocks.iter().try_for_each(|block| see(&block));
            drop(blocks);
            let read = reading
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            seen.and(read)
        })
    }

    fn stop(&self) -> Option<&Stop> {
        self.passes.as_ref()
    }

    fn all(&self) -> efface::Result<Cow<'_, Rows>> {
        if self.is_beyond_memory() {
            return Err(efface::Error::BeyondMemory { rows: self.len() });
        }
        let mut collector = RowCollector::new(self.outline.shape);
        let read = self.store.raw(|connection| {
            self.check_list(connection)?;
            each_decoded(connection, &self.outline, |number, row, _, _| {
                collector.push(number, row);
                Ok(true)
            })?;
            if collector.ids.len() as u64 == self.outline.rows {
                Ok(())
            } else {
                damaged(format!(
                    "it holds {} rows where {} belong",
                    collector.ids.len(),
                    self.outline.rows
                ))
            }
        });
        read.map_err(translate)?;
        collector.finish(self.outline.weighted).map(Cow::Owned)
    }
}

fn translate(fault: FileFault) -> efface::Error {
    efface::Error::Damaged(match fault {
        FileFault::Damaged(what) | FileFault::Signing(what) => what,
        FileFault::Sql(error) => error.to_string(),
        FileFault::Sealed => "it is encrypted, and its key is not there".into(),
        FileFault::Beside(cause) => cause.to_string(),
    })
}

/// Rows on their way into memory.
struct RowCollector {
    shape: RowShape,
    ids: Vec<RowId>,
    targets: Vec<f64>,
    weights: Vec<f64>,
    starts: Vec<usize>,
    /// The columns of sparse rows, or the ids of rows of words.
    columns: Vec<u32>,
    doubles: Vec<f64>,
    singles: Vec<f32>,
}

impl RowCollector {
    fn new(shape: RowShape) -> Self {
        Self {
            shape,
            ids: Vec::new(),
            targets: Vec::new(),
            weights: Vec::new(),
            starts: vec![0],
            columns: Vec::new(),
            doubles: Vec::new(),
            singles: Vec::new(),
        }
    }

    /// About as many bytes as the rows take.
    fn bytes(&self) -> u64 {
        let doubles = self.doubles.len() + self.targets.len() + self.ids.len() + self.weights.len();
        8 * doubles as u64 + 4 * (self.singles.len() + self.columns.len()) as u64
    }

    fn push(&mut self, number: u64, row: StoredRow) {
        self.ids.push(RowId(number));
        self.targets.extend(row.targets);
        self.weights.push(row.weight);
        match row.features {
            StoredFeatures::Dense64(values) => self.doubles.extend(values),
            StoredFeatures::Dense32(values) => self.singles.extend(values),
            StoredFeatures::Sparse64(columns, values) => {
                self.columns.extend(columns);
                self.doubles.extend(values);
            }
            StoredFeatures::Sparse32(columns, values) => {
                self.columns.extend(columns);
                self.singles.extend(values);
            }
            StoredFeatures::WordIds(ids) => self.columns.extend(ids),
        }
        self.starts.push(self.columns.len());
    }

    fn finish(self, weighted: bool) -> efface::Result<Rows> {
        let RowShape {
            layout,
            width,
            outputs,
            ..
        } = self.shape;
        let features: Features = match layout {
            RowLayout::Dense64 => Dense::new(self.doubles, width)?.into(),
            RowLayout::Dense32 | RowLayout::Encoded => Dense::new(self.singles, width)?.into(),
            RowLayout::Sparse64 => {
                Csr::from_parts(self.starts, self.columns, self.doubles, width)?.into()
            }
            RowLayout::Sparse32 => {
                Csr::from_parts(self.starts, self.columns, self.singles, width)?.into()
            }
            RowLayout::WordIds => WordIds::from_parts(self.starts, self.columns, width)?.into(),
        };
        let rows = Rows::with_ids(self.ids, features, self.targets, outputs)?;
        if weighted {
            rows.weighted(self.weights)
        } else {
            Ok(rows)
        }
    }
}

/// What the ledger and the list of rows keep of a row that was written.
pub(crate) struct WrittenRow {
    pub(crate) nonce: RowNonce,
    pub(crate) content: Hash,
    pub(crate) digest: RowDigest,
}

/// The hashes of a row that is encoded and not written yet.
pub(crate) struct EncodedRow {
    pub(crate) content: Hash,
    pub(crate) digest: RowDigest,
}

/// Appends the bytes of a row to others.
pub(crate) fn encode(
    number: u64,
    shape: RowShape,
    nonce: &RowNonce,
    row: &OutgoingRow<'_>,
    out: &mut Vec<u8>,
) -> EncodedRow {
    let start = out.len();
    let digest = payload::append(number, shape, nonce, row, out);
    EncodedRow {
        content: payload::content(shape, &out[start..]),
        digest,
    }
}

/// Appends a row under a nonce of its own and gives its hashes. Numbers must ascend, so that SQLite
/// only ever adds to the end of the table.
pub(crate) fn insert(
    connection: &ModelConnection,
    number: u64,
    shape: RowShape,
    row: &OutgoingRow<'_>,
    buffer: &mut Vec<u8>,
) -> Result<WrittenRow, FileFault> {
    let nonce = *random_bytes().map_err(|error| FileFault::Damaged(error.to_string()))?;
    let digest = payload::encode(number, shape, &nonce, row, buffer);
    let mut statement = connection.prepare_cached(r#"INSERT INTO "rows" VALUES (?1, ?2)"#)?;
    statement.execute(params![number, connection.seal(place(number), buffer)?])?;
    Ok(WrittenRow {
        nonce,
        content: payload::content(shape, buffer),
        digest,
    })
}

/// Gives a row other features, in place: the bytes keep their number and the row its content. Gives
/// their digest.
pub(crate) fn renew(
    connection: &ModelConnection,
    number: u64,
    shape: RowShape,
    stored: &StoredRow,
    features: RowRef<'_>,
) -> Result<RowDigest, FileFault> {
    let row = OutgoingRow {
        id: &stored.id,
        subject: stored.subject.as_deref(),
        weight: stored.weight,
        targets: &stored.targets,
        words: &stored.words,
        features,
    };
    let mut buffer = Vec::new();
    let digest = payload::encode(number, shape, &stored.nonce, &row, &mut buffer);
    let sql = r#"UPDATE "rows" SET payload = ?2 WHERE row = ?1 AND length(payload) = length(?2)"#;
    let sealed = connection.seal(place(number), &buffer)?;
    if connection
        .prepare_cached(sql)?
        .execute(params![number, sealed])?
        == 1
    {
        Ok(digest)
    } else {
        damaged(format!("row number {number} is missing"))
    }
}

/// Overwrites a row with zeros of the same length, which SQLite does in place.
pub(crate) fn erase(connection: &Connection, number: u64) -> Result<(), FileFault> {
    let sql = r#"UPDATE "rows" SET payload = zeroblob(length(payload)) WHERE row = ?1"#;
    if connection.prepare_cached(sql)?.execute([number])? == 1 {
        Ok(())
    } else {
        damaged(format!("row number {number} is missing"))
    }
}
