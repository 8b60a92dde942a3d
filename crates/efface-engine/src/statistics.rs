//! What workers sum, wherever they run: the sums of a linear model and, where rows have ids, a
//! commitment to every row. Both merge, so that a model made by many workers has the parameters and
//! the training set of one that was made by one.
//!
//! A row that two workers have summed is found when they merge, because its commitment is there
//! twice. A row that is to leave is taken out only if its commitment is there, so that nothing is
//! subtracted that was never added.

use std::collections::BTreeSet;

use efface::{ColumnView, LinearStatistics, StatisticsSpec};
use efface_receipt::training_set::{SetState, state_of};
use efface_receipt::{CommitmentLabel, CommitmentSalt, Hash, sha256};

use crate::error::{Error, Result};

const MARK: &[u8; 8] = b"efface-S";
const HASH: usize = 32;

/// Sums of rows, and commitments to them.
///
/// ```
/// use efface::{ColumnView, StatisticsSpec};
/// use efface_engine::Statistics;
///
/// let spec = StatisticsSpec::new(["x"], ["y"])?;
/// let mut first = Statistics::new(spec.clone(), Some(&[7; 32]));
/// let mut second = Statistics::new(spec, Some(&[7; 32]));
/// first.update(&[ColumnView::dense(&[1.0, 2.0]), ColumnView::dense(&[2.0, 4.1])], Some(&["a", "b"]), None)?;
/// second.update(&[ColumnView::dense(&[3.0]), ColumnView::dense(&[6.2])], Some(&["c"]), None)?;
/// first.merge(&second)?;
/// assert_eq!(first.sums().rows(), 3);
/// // The same rows cannot be counted twice.
/// assert!(first.merge(&second).is_err());
/// let again = Statistics::from_bytes(&first.to_bytes(), Some(&[7; 32]))?;
/// assert_eq!(again.training_set(), first.training_set());
/// # Ok::<(), efface_engine::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Statistics {
    sums: LinearStatistics,
    rows: Option<RowCommitments>,
}

/// The commitments to all rows of some statistics.
#[derive(Debug, Clone)]
struct RowCommitments {
    /// What they are made with; None where they were read by somebody who does not know it.
    salt: Option<CommitmentSalt>,
    /// Tells whether two sets were made with one salt, and nothing of it.
    salt_mark: Hash,
    leaves: BTreeSet<[u8; HASH]>,
}

impl RowCommitments {
    fn new(key: &[u8; 32]) -> Self {
        let salt = CommitmentSalt::new(key);
        let salt_mark = salt.commit(CommitmentLabel::Row, b"efface statistics");
        Self {
            salt: Some(salt),
            salt_mark,
            leaves: BTreeSet::new(),
        }
    }
}

impl Statistics {
    /// The sums of no rows. With a key of 32 secret bytes, which all workers share, every row must
    /// have an id and is committed to.
    pub fn new(spec: StatisticsSpec, key: Option<&[u8; 32]>) -> Self {
        Self {
            sums: LinearStatistics::new(spec),
            rows: key.map(RowCommitments::new),
        }
    }

    /// How many threads share the work on a batch.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.sums = self.sums.threads(threads);
        self
    }

    /// The sums.
    pub fn sums(&self) -> &LinearStatistics {
        &self.sums
    }

    /// The training set, as receipts name it; None where rows have no ids.
    pub fn training_set(&self) -> Option<SetState> {
        let leaves: Vec<Hash> = self
            .rows
            .as_ref()?
            .leaves
            .iter()
            .copied()
            .map(Hash)
            .collect();
        state_of(&leaves).ok()
    }

    /// Adds rows: one view a column, features first. An error leaves everything as it was.
    ///
    /// # Errors
    /// As for [`LinearStatistics::update`]; or ids are missing, or there is such a row already.
    pub fn update<T: AsRef<str>>(
        &mut self,
        columns: &[ColumnView<'_>],
        ids: Option<&[T]>,
        weights: Option<ColumnView<'_>>,
    ) -> Result<()> {
        let leaves = self.leaves(columns, ids, weights)?;
        if let Some(rows) = &self.rows
            && let Some(at) = leaves.iter().position(|leaf| rows.leaves.contains(leaf))
        {
            return Err(repeated(ids.map(|ids| ids[at].as_ref())));
        }
        self.sums.update(columns, weights)?;
        if let Some(rows) = &mut self.rows {
            rows.leaves.extend(leaves);
        }
        Ok(())
    }

    /// Takes rows out again. They must be as they were when they were added.
    ///
    /// # Errors
    /// As for [`update`](Self::update); or a row is not there.
    pub fn remove<T: AsRef<str>>(
        &mut self,
        columns: &[ColumnView<'_>],
        ids: Option<&[T]>,
        weights: Option<ColumnView<'_>>,
    ) -> Result<()> {
        let leaves = self.leaves(columns, ids, weights)?;
        if let Some(rows) = &self.rows
            && let Some(at) = leaves.iter().position(|leaf| !rows.leaves.contains(leaf))
        {
            let id = ids.map_or("", |ids| ids[at].as_ref());
            return Err(Error::request(
                format!("row {id:?} is not among these statistics as it is given"),
                "give the row with the content that it was summed with; it may be gone already",
            ));
        }
        self.sums.remove(columns, weights)?;
        if let Some(rows) = &mut self.rows {
            leaves.iter().for_each(|leaf| _ = rows.leaves.remove(leaf));
        }
        Ok(())
    }

    /// Adds what another worker has summed.
    ///
    /// # Errors
    /// The two sum other columns, commit to rows with other keys, or share a row.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        match (&self.rows, &other.rows) {
            (None, None) => {}
            (Some(mine), Some(theirs)) if mine.salt_mark == theirs.salt_mark => {
                if theirs.leaves.iter().any(|leaf| mine.leaves.contains(leaf)) {
                    return Err(repeated(None));
                }
            }
            _ => {
                return Err(Error::request(
                    "only one of the statistics has ids, or their keys differ",
                    "give all workers the same column of ids and the same key",
                ));
            }
        }
        self.sums.merge(&other.sums)?;
        if let (Some(mine), Some(theirs)) = (&mut self.rows, &other.rows) {
            mine.leaves.extend(&theirs.leaves);
        }
        Ok(())
    }

    /// All of it as bytes, with a checksum. The key is not in them. Exact sums of the same rows
    /// give the same bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let sums = self.sums.to_bytes();
        let mut out = MARK.to_vec();
        out.extend((sums.len() as u64).to_le_bytes());
        out.extend(sums);
        if let Some(rows) = &self.rows {
            out.extend(rows.salt_mark.as_bytes());
            rows.leaves.iter().for_each(|leaf| out.extend(leaf));
        }
        let sum = sha256(&out);
        out.extend(sum.as_bytes());
        out
    }

    /// The inverse of [`to_bytes`](Self::to_bytes). Who adds or removes rows must give the key; who
    /// only merges need not know it.
    ///
    /// # Errors
    /// The bytes are not whole or not of this version, or the key is another.
    pub fn from_bytes(bytes: &[u8], key: Option<&[u8; 32]>) -> Result<Self> {
        let fault =
            |what: &str| efface::Error::Damaged(format!("these bytes are no statistics: {what}"));
        let (body, sum) = bytes
            .split_last_chunk::<HASH>()
            .ok_or_else(|| fault("they end early"))?;
        if sha256(body).as_bytes() != sum {
            return Err(
                fault("their checksum is another, so that some are missing or changed").into(),
            );
        }
        let parts = || {
            let (length, rest) = body.strip_prefix(MARK)?.split_first_chunk::<8>()?;
            rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
        };
        let (sums, rest) = parts().ok_or_else(|| fault("they are of another version"))?;
        let sums = LinearStatistics::from_bytes(sums)?;
        let rows = match rest.split_first_chunk::<HASH>() {
            None if rest.is_empty() => None,
            None => return Err(fault("they end early").into()),
            Some((mark, leaves)) => {
                let (leaves, odd) = leaves.as_chunks::<HASH>();
                let is_sorted = leaves.is_sorted_by(|a, b| a < b);
                if !odd.is_empty() || !is_sorted || leaves.len() as u64 != sums.rows() {
                    return Err(fault("their rows are not those of their sums").into());
                }
                let mut rows = RowCommitments {
                    salt: None,
                    salt_mark: Hash(*mark),
                    leaves: leaves.iter().copied().collect(),
                };
                if let Some(key) = key {
                    let keyed = RowCommitments::new(key);
                    if keyed.salt_mark != rows.salt_mark {
                        return Err(Error::request(
                            "the key is not the one of these statistics",
                            "give that one",
                        ));
                    }
                    rows.salt = keyed.salt;
                }
                Some(rows)
            }
        };
        Ok(Self { sums, rows })
    }

    /// The commitments to rows of a batch, in their order; none where rows have no ids.
    fn leaves<T: AsRef<str>>(
        &self,
        columns: &[ColumnView<'_>],
        ids: Option<&[T]>,
        weights: Option<ColumnView<'_>>,
    ) -> Result<Vec<[u8; HASH]>> {
        let (Some(rows), Some(ids)) = (&self.rows, ids) else {
            return match (&self.rows, ids) {
                (None, None) => Ok(Vec::new()),
                (None, Some(_)) => Err(Error::request(
                    "there are ids, and these statistics commit to no rows",
                    "give the statistics a key when they are made, or leave the ids out",
                )),
                _ => Err(Error::request(
                    "the rows have no ids",
                    "name the column of ids",
                )),
            };
        };
        let salt = rows.salt.as_ref().ok_or_else(|| {
            Error::request(
                "the key of these statistics is not known",
                "give it when they are read",
            )
        })?;
        let count = columns.first().map_or(0, ColumnView::len);
        let lengths = columns.iter().chain(&weights).map(ColumnView::len);
        if let Some(found) = lengths.chain([ids.len()]).find(|length| *length != count) {
            return Err(efface::Error::Shape {
                what: "rows of a column",
                found,
                expected: count,
            }
            .into());
        }
        // Row after row, as the columns lie beside each other.
        let width = columns.len() + usize::from(weights.is_some());
        let mut content = vec![0u8; count * width * 8];
        for (at, column) in columns.iter().chain(&weights).enumerate() {
            let entries = content[at * 8..].chunks_mut(8).step_by(width);
            entries
                .zip(column.iter())
                .for_each(|(entry, x)| entry.copy_from_slice(&x.to_le_bytes()));
        }
        let leaves: Vec<[u8; HASH]> = content
            .chunks(width.max(1) * 8)
            .zip(ids)
            .map(|(content, id)| {
                *salt
                    .row(id.as_ref().as_bytes(), &sha256(content))
                    .as_bytes()
            })
            .collect();
        let mut seen = BTreeSet::new();
        match leaves.iter().position(|leaf| !seen.insert(leaf)) {
            Some(at) => Err(repeated(Some(ids[at].as_ref()))),
            None => Ok(leaves),
        }
    }
}

fn repeated(id: Option<&str>) -> Error {
    let what = match id {
        Some(id) => format!("row {id:?} is summed already"),
        None => "a row is in both statistics".to_owned(),
    };
    Error::request(
        what,
        "give every row to one worker, and merge every worker once",
    )
}
