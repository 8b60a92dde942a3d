//! What rows hold: feature values, dense or sparse, in the precision they came in, or the word ids
//! of a text. All arithmetic on values is done in f64; nothing calculates with word ids, which only
//! a network turns into numbers.

use crate::error::{Error, Result};
use crate::linalg::widest;

/// A stored floating-point number: f32 or f64.
pub trait Real:
    Copy + Default + PartialEq + Into<f64> + Send + Sync + std::fmt::Debug + 'static
{
    /// The nearest representable value.
    fn from_f64(value: f64) -> Self;
}

impl Real for f32 {
    fn from_f64(value: f64) -> Self {
        value as f32
    }
}

impl Real for f64 {
    fn from_f64(value: f64) -> Self {
        value
    }
}

/// Whether all numbers pass. It stops early only after a block of 1,024, so that the compiler can
/// test several at once.
pub(crate) fn every<T: Real>(values: &[T], pass: impl Fn(f64) -> bool) -> bool {
    widest(
        #[inline(always)]
        || {
            values
                .chunks(1024)
                .all(|part| part.iter().fold(true, |fine, x| fine & pass((*x).into())))
        },
    )
}

/// A dense table, row after row.
#[derive(Debug, Clone)]
pub struct Dense<T> {
    values: Vec<T>,
    width: usize,
    rows: usize,
    /// Whether all numbers are known to be finite.
    finite: bool,
}

impl<T: Real> Dense<T> {
    /// A table of `values.len() / width` rows.
    pub fn new(values: Vec<T>, width: usize) -> Result<Self> {
        let rows = values.len().checked_div(width).unwrap_or(0);
        if rows * width != values.len() {
            return Err(Error::Shape {
                what: "dense values",
                found: values.len(),
                expected: rows * width,
            });
        }
        Ok(Self {
            values,
            width,
            rows,
            finite: false,
        })
    }

    /// A table of a copy of `values`, which is made in `room`, whatever that held. Each number is
    /// looked at as it is copied. Numbers that are not finite are refused where the table becomes
    /// rows, as in [`new`](Self::new); those that are known to be finite are not gone through
    /// again.
    pub fn copied(values: &[T], mut room: Vec<T>, width: usize) -> Result<Self> {
        room.clear();
        // In one loop: what was copied in a piece may be out of the nearest cache again before it
        // can be looked at.
        let finite = widest(
            #[inline(always)]
            || {
                let mut finite = true;
                room.extend(values.iter().map(|x| {
                    finite &= (*x).into().is_finite();
                    *x
                }));
                finite
            },
        );
        Ok(Self {
            finite,
            ..Self::new(room, width)?
        })
    }

    fn is_finite(&self) -> bool {
        self.finite || every(&self.values, f64::is_finite)
    }

    fn row(&self, slot: usize) -> &[T] {
        &self.values[slot * self.width..(slot + 1) * self.width]
    }
}

/// A sparse table in compressed rows: per row, ascending column numbers and their values.
#[derive(Debug, Clone)]
pub struct Csr<T> {
    /// Where each row begins; one entry more than there are rows.
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<T>,
    width: usize,
}

impl<T: Real> Csr<T> {
    /// A table of no rows, to be filled with [`push`](Self::push).
    pub fn new(width: usize) -> Self {
        Self {
            starts: vec![0],
            columns: Vec::new(),
            values: Vec::new(),
            width,
        }
    }

    /// A table from its three arrays. Columns must ascend within each row.
    pub fn from_parts(
        starts: Vec<usize>,
        columns: Vec<u32>,
        values: Vec<T>,
        width: usize,
    ) -> Result<Self> {
        if columns.len() != values.len() {
            return Err(Error::Shape {
                what: "sparse values",
                found: values.len(),
                expected: columns.len(),
            });
        }
        if starts.first() != Some(&0)
            || starts.last() != Some(&columns.len())
            || !starts.is_sorted()
        {
            let found = starts.last().copied().unwrap_or(0);
            return Err(Error::Shape {
                what: "sparse row starts",
                found,
                expected: columns.len(),
            });
        }
        for pair in starts.windows(2) {
            let row = &columns[pair[0]..pair[1]];
            if !row.is_sorted_by(|a, b| a < b) {
                return Err(Error::Parameter {
                    name: "sparse columns",
                    value: "unordered".into(),
                    range: "ascending within a row, each once",
                });
            }
            if let Some(&last) = row.last()
                && last as usize >= width
            {
                return Err(Error::Shape {
                    what: "sparse column",
                    found: last as usize,
                    expected: width,
                });
            }
        }
        Ok(Self {
            starts,
            columns,
            values,
            width,
        })
    }

    /// Adds one row of (column, value) pairs with ascending columns.
    pub fn push(&mut self, entries: &[(u32, f64)]) -> Result<()> {
        if !entries.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(Error::Parameter {
                name: "sparse columns",
                value: "unordered".into(),
                range: "ascending within a row, each once",
            });
        }
        if let Some(&(last, _)) = entries.last()
            && last as usize >= self.width
        {
            return Err(Error::Shape {
                what: "sparse column",
                found: last as usize,
                expected: self.width,
            });
        }
        self.columns
            .extend(entries.iter().map(|&(column, _)| column));
        self.values
            .extend(entries.iter().map(|&(_, value)| T::from_f64(value)));
        self.starts.push(self.columns.len());
        Ok(())
    }

    /// Adds the rows of another table of the same width behind these.
    pub fn append(&mut self, more: &Self) -> Result<()> {
        if more.width != self.width {
            return Err(Error::Shape {
                what: "sparse width",
                found: more.width,
                expected: self.width,
            });
        }
        let before = self.columns.len();
        self.columns.extend_from_slice(&more.columns);
        self.values.extend_from_slice(&more.values);
        self.starts
            .extend(more.starts[1..].iter().map(|start| before + start));
        Ok(())
    }

    fn row(&self, slot: usize) -> (&[u32], &[T]) {
        let range = self.starts[slot]..self.starts[slot + 1];
        (&self.columns[range.clone()], &self.values[range])
    }
}

/// Texts as rows of word ids, each row as long as its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordIds {
    /// Where each row begins; one entry more than there are rows.
    starts: Vec<usize>,
    ids: Vec<u32>,
    longest: usize,
}

impl WordIds {
    /// A table of no rows, to be filled with [`push`](Self::push). No row may have more than
    /// `longest` ids.
    pub fn new(longest: usize) -> Self {
        Self {
            starts: vec![0],
            ids: Vec::new(),
            longest,
        }
    }

    /// A table from its two arrays: where each row begins (and the last one ends), and the ids of
    /// all rows.
    pub fn from_parts(starts: Vec<usize>, ids: Vec<u32>, longest: usize) -> Result<Self> {
        if starts.first() != Some(&0) || starts.last() != Some(&ids.len()) || !starts.is_sorted() {
            let found = starts.last().copied().unwrap_or(0);
            return Err(Error::Shape {
                what: "row starts of word ids",
                found,
                expected: ids.len(),
            });
        }
        let table = Self {
            starts,
            ids,
            longest,
        };
        (0..table.rows()).try_for_each(|slot| table.check(table.row(slot)))?;
        Ok(table)
    }

    /// Adds one row.
    pub fn push(&mut self, ids: &[u32]) -> Result<()> {
        self.check(ids)?;
        self.extend(ids);
        Ok(())
    }

    /// Adds the rows of another table behind these.
    pub fn append(&mut self, more: &Self) -> Result<()> {
        (0..more.rows()).try_for_each(|slot| self.push(more.row(slot)))
    }

    fn check(&self, ids: &[u32]) -> Result<()> {
        if ids.len() > self.longest {
            return Err(Error::Shape {
                what: "word ids of a row",
                found: ids.len(),
                expected: self.longest,
            });
        }
        Ok(())
    }

    fn extend(&mut self, ids: &[u32]) {
        self.ids.extend_from_slice(ids);
        self.starts.push(self.ids.len());
    }

    fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    fn row(&self, slot: usize) -> &[u32] {
        &self.ids[self.starts[slot]..self.starts[slot + 1]]
    }
}

/// What many rows hold: features, or word ids.
#[derive(Debug, Clone)]
pub enum Features {
    /// Dense, double precision.
    Dense64(Dense<f64>),
    /// Dense, single precision.
    Dense32(Dense<f32>),
    /// Sparse, double precision.
    Sparse64(Csr<f64>),
    /// Sparse, single precision: enough for counts.
    Sparse32(Csr<f32>),
    /// Word ids, which a network reads.
    WordIds(WordIds),
}

impl From<Dense<f64>> for Features {
    fn from(table: Dense<f64>) -> Self {
        Self::Dense64(table)
    }
}
impl From<Dense<f32>> for Features {
    fn from(table: Dense<f32>) -> Self {
        Self::Dense32(table)
    }
}
impl From<Csr<f64>> for Features {
    fn from(table: Csr<f64>) -> Self {
        Self::Sparse64(table)
    }
}
impl From<Csr<f32>> for Features {
    fn from(table: Csr<f32>) -> Self {
        Self::Sparse32(table)
    }
}
impl From<WordIds> for Features {
    fn from(table: WordIds) -> Self {
        Self::WordIds(table)
    }
}

/// What one row holds.
#[derive(Debug, Clone, Copy)]
pub enum RowRef<'a> {
    /// Every value.
    Dense64(&'a [f64]),
    /// Every value, single precision.
    Dense32(&'a [f32]),
    /// Column numbers and values.
    Sparse64(&'a [u32], &'a [f64]),
    /// Column numbers and values, single precision.
    Sparse32(&'a [u32], &'a [f32]),
    /// The ids of a text's words, in the order of the text.
    WordIds(&'a [u32]),
}

impl<'a> RowRef<'a> {
    /// The word ids of the row; an error for a row of numbers.
    pub fn word_ids(&self) -> Result<&'a [u32]> {
        match *self {
            Self::WordIds(ids) => Ok(ids),
            _ => Err(Error::RowsOfNumbers),
        }
    }

    /// How many values are stored.
    pub(crate) fn stored_values(&self) -> usize {
        match *self {
            Self::Dense64(values) => values.len(),
            Self::Dense32(values) => values.len(),
            Self::Sparse64(columns, _) | Self::Sparse32(columns, _) | Self::WordIds(columns) => {
                columns.len()
            }
        }
    }

    /// Calls `see(column, value)` for every stored value, zeros of a dense row included. Word ids
    /// are no values: models that calculate with values refuse such rows before they look, and
    /// there is nothing to see here.
    #[inline]
    pub fn each(&self, mut see: impl FnMut(usize, f64)) {
        match *self {
            Self::Dense64(v) => v.iter().enumerate().for_each(|(j, &x)| see(j, x)),
            Self::Dense32(v) => v.iter().enumerate().for_each(|(j, &x)| see(j, x.into())),
            Self::Sparse64(c, v) => c.iter().zip(v).for_each(|(&j, &x)| see(j as usize, x)),
            Self::Sparse32(c, v) => c
                .iter()
                .zip(v)
                .for_each(|(&j, &x)| see(j as usize, x.into())),
            Self::WordIds(_) => {}
        }
    }

    /// The inner product with a dense vector.
    #[inline]
    pub fn dot(&self, other: &[f64]) -> f64 {
        let mut sum = 0.0;
        self.each(|j, x| sum += x * other[j]);
        sum
    }

    /// `out += scale · row`.
    #[inline]
    pub fn add_to(&self, scale: f64, out: &mut [f64]) {
        self.each(|j, x| out[j] += scale * x);
    }

    /// The (column, value) pairs that are not zero.
    pub fn entries(&self) -> Vec<(u32, f64)> {
        let mut entries = Vec::new();
        self.each(|j, x| {
            if x != 0.0 {
                entries.push((j as u32, x));
            }
        });
        entries
    }
}

impl Features {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Self::Dense64(t) => t.rows,
            Self::Dense32(t) => t.rows,
            Self::Sparse64(t) => t.starts.len() - 1,
            Self::Sparse32(t) => t.starts.len() - 1,
            Self::WordIds(t) => t.rows(),
        }
    }

    /// Number of features; of rows of word ids, the most ids that a row may have.
    pub fn width(&self) -> usize {
        match self {
            Self::Dense64(t) => t.width,
            Self::Dense32(t) => t.width,
            Self::Sparse64(t) => t.width,
            Self::Sparse32(t) => t.width,
            Self::WordIds(t) => t.longest,
        }
    }

    /// Whether rows are word ids rather than numbers.
    pub fn holds_word_ids(&self) -> bool {
        matches!(self, Self::WordIds(_))
    }

    /// Whether rows are index–value pairs.
    pub fn is_sparse(&self) -> bool {
        matches!(self, Self::Sparse64(_) | Self::Sparse32(_))
    }

    /// Whether values are kept in single precision.
    pub fn is_single(&self) -> bool {
        matches!(self, Self::Dense32(_) | Self::Sparse32(_))
    }

    /// One row.
    pub fn row(&self, slot: usize) -> RowRef<'_> {
        match self {
            Self::Dense64(t) => RowRef::Dense64(t.row(slot)),
            Self::Dense32(t) => RowRef::Dense32(t.row(slot)),
            Self::Sparse64(t) => {
                let (columns, values) = t.row(slot);
                RowRef::Sparse64(columns, values)
            }
            Self::Sparse32(t) => {
                let (columns, values) = t.row(slot);
                RowRef::Sparse32(columns, values)
            }
            Self::WordIds(t) => RowRef::WordIds(t.row(slot)),
        }
    }

    /// Loads rows that will be read next into the cache.
    pub(super) fn warm(&self, slots: &[usize]) {
        match self {
            Self::Dense64(t) => crate::linalg::warm(slots.iter().map(|&slot| t.row(slot))),
            Self::Dense32(t) => crate::linalg::warm(slots.iter().map(|&slot| t.row(slot))),
            Self::Sparse64(_) | Self::Sparse32(_) | Self::WordIds(_) => {}
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Dense64(t) => t.values.len() * 8,
            Self::Dense32(t) => t.values.len() * 4,
            Self::Sparse64(t) => t.values.len() * 12 + t.starts.len() * 8,
            Self::Sparse32(t) => t.values.len() * 8 + t.starts.len() * 8,
            Self::WordIds(t) => t.ids.len() * 4 + t.starts.len() * 8,
        }
    }

    pub(super) fn first_not_finite(&self) -> Option<(usize, usize, f64)> {
        // Almost always every value is finite: a fast scan decides that, and the place is searched
        // only if it fails.
        let fine = match self {
            Self::Dense64(t) => t.is_finite(),
            Self::Dense32(t) => t.is_finite(),
            Self::Sparse64(t) => every(&t.values, f64::is_finite),
            Self::Sparse32(t) => every(&t.values, f64::is_finite),
            Self::WordIds(_) => true,
        };
        if fine {
            return None;
        }
        (0..self.rows()).find_map(|slot| {
            let mut found = None;
            self.row(slot).each(|j, x| {
                if !x.is_finite() && found.is_none() {
                    found = Some((slot, j, x));
                }
            });
            found
        })
    }

    /// Overwrites the values of one row.
    pub(super) fn scrub(&mut self, slot: usize) {
        fn dense<T: Real>(t: &mut Dense<T>, slot: usize) {
            t.values[slot * t.width..(slot + 1) * t.width].fill(T::default());
        }
        fn sparse<T: Real>(t: &mut Csr<T>, slot: usize) {
            let range = t.starts[slot]..t.starts[slot + 1];
            t.values[range.clone()].fill(T::default());
            t.columns[range].fill(0);
        }
        match self {
            Self::Dense64(t) => dense(t, slot),
            Self::Dense32(t) => dense(t, slot),
            Self::Sparse64(t) => sparse(t, slot),
            Self::Sparse32(t) => sparse(t, slot),
            Self::WordIds(t) => {
                let range = t.starts[slot]..t.starts[slot + 1];
                t.ids[range].fill(0);
            }
        }
    }

    pub(super) fn empty_like(&self, rows: usize) -> Self {
        let width = self.width();
        match self {
            Self::Dense64(_) => Self::Dense64(Dense {
                values: Vec::with_capacity(rows * width),
                width,
                rows: 0,
                finite: false,
            }),
            Self::Dense32(_) => Self::Dense32(Dense {
                values: Vec::with_capacity(rows * width),
                width,
                rows: 0,
                finite: false,
            }),
            Self::Sparse64(_) => Self::Sparse64(Csr::new(width)),
            Self::Sparse32(_) => Self::Sparse32(Csr::new(width)),
            Self::WordIds(_) => Self::WordIds(WordIds::new(width)),
        }
    }

    /// A table of no rows, of the kind of one row.
    pub(super) fn empty_for(row: RowRef<'_>, width: usize) -> Self {
        match row {
            RowRef::Dense64(_) => Self::Dense64(Dense {
                values: Vec::new(),
                width,
                rows: 0,
                finite: false,
            }),
            RowRef::Dense32(_) => Self::Dense32(Dense {
                values: Vec::new(),
                width,
                rows: 0,
                finite: false,
            }),
            RowRef::Sparse64(..) => Self::Sparse64(Csr::new(width)),
            RowRef::Sparse32(..) => Self::Sparse32(Csr::new(width)),
            RowRef::WordIds(_) => Self::WordIds(WordIds::new(width)),
        }
    }

    /// Checks that rows of `other` can join this table: numbers join numbers, word ids join word
    /// ids.
    pub(super) fn check_joined_by(&self, other: &Features) -> Result<()> {
        match (self.holds_word_ids(), other.holds_word_ids()) {
            (true, false) => Err(Error::RowsOfNumbers),
            (false, true) => Err(Error::RowsOfWordIds),
            _ => Ok(()),
        }
    }

    /// Adds a row in this table's own precision and layout. A row of word ids joins word ids alone:
    /// callers check that first.
    pub(super) fn push(&mut self, row: RowRef<'_>) {
        fn dense<T: Real>(t: &mut Dense<T>, row: RowRef<'_>) {
            let start = t.values.len();
            t.finite = false;
            t.values.resize(start + t.width, T::default());
            row.each(|j, x| t.values[start + j] = T::from_f64(x));
            t.rows += 1;
        }
        fn sparse<T: Real>(t: &mut Csr<T>, row: RowRef<'_>) {
            row.each(|j, x| {
                if x != 0.0 {
                    t.columns.push(j as u32);
                    t.values.push(T::from_f64(x));
                }
            });
            t.starts.push(t.columns.len());
        }
        match self {
            Self::Dense64(t) => dense(t, row),
            Self::Dense32(t) => dense(t, row),
            Self::Sparse64(t) => sparse(t, row),
            Self::Sparse32(t) => sparse(t, row),
            Self::WordIds(t) => t.extend(row.word_ids().unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RowId, Rows};

    #[test]
    fn a_copied_table_is_that_of_its_values_and_what_is_not_finite_is_refused_all_the_same() {
        let values: Vec<f64> = (0..3000).map(|i| f64::from(i % 7)).collect();
        let room = vec![9.0; 5];
        let copied = Dense::copied(&values, room, 3).unwrap();
        assert!(copied.finite);
        assert_eq!(copied.values, values);
        assert!(
            Dense::copied(&values, Vec::new(), 7).is_err(),
            "no whole number of rows"
        );
        for bad in [f64::NAN, f64::INFINITY] {
            let mut spoilt = values.clone();
            spoilt[2999] = bad;
            let table = Dense::copied(&spoilt, Vec::new(), 3).unwrap();
            let refused = Rows::new(table, vec![0.0; 1000], 1);
            assert!(matches!(
                refused,
                Err(Error::NotFinite {
                    row: RowId(999),
                    ..
                })
            ));
        }
        let single: Vec<f32> = vec![1.0, f32::NAN];
        assert!(
            Rows::new(
                Dense::copied(&single, Vec::new(), 1).unwrap(),
                vec![0.0; 2],
                1
            )
            .is_err()
        );
    }
}
