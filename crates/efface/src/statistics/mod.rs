//! The sums that a linear model is made from, as a value of its own: rows are added batch by batch,
//! anywhere, and what several workers have summed is merged.
//!
//! | sums | how they are kept | what the order of rows changes | cost |
//! |---|---|---|---|
//! | rounded | doubles about an origin near the first rows, blocks added up in two words | the last digits, below 1e-12 of a column's spread | one product |
//! | exact | integers on a grid that is fixed before the first row | nothing: the same rows give the same bytes | four products |
//!
//! Exact sums need to know beforehand how large the numbers of every column can be ([`ColumnReach`]
//! finds out, and merges too).
//!
//! ```
//! use efface::{ColumnView, LinearStatistics, Ridge, StatisticsSpec};
//!
//! let x = [1.0, 2.0, 3.0, 4.0];
//! let y = [3.1, 4.9, 7.2, 8.8];
//! let spec = StatisticsSpec::new(["x"], ["y"])?;
//! let columns = |at: std::ops::Range<usize>| [ColumnView::dense(&x[at.clone()]), ColumnView::dense(&y[at])];
//! let mut first = LinearStatistics::new(spec.clone());
//! first.update(&columns(0..3), None)?;
//! let mut second = LinearStatistics::new(spec);
//! second.update(&columns(3..4), None)?;
//! first.merge(&second)?;
//! let model = Ridge::new(0.1).fit_statistics(&first)?;
//! assert_eq!(model.rows(), 4);
//! assert!((model.parameters().0[(0, 0)] - 1.9).abs() < 0.1);
//! # Ok::<(), efface::Error>(())
//! ```

mod bytes;
mod column;
mod exact;
mod moments;
mod rounded;
#[cfg(test)]
mod tests;

pub use column::{ColumnGrid, ColumnReach, ColumnView};

pub(crate) use moments::CentredMoments;

use exact::ExactSums;
use rounded::RoundedSums;

use crate::error::{Error, Result};
use crate::rows::RowId;

/// Most columns, targets included: A would take 8 GiB.
pub const MOST_COLUMNS: usize = 1 << 15;

/// What is summed. Statistics merge only where it is the same.
#[derive(Debug, Clone, PartialEq)]
pub struct StatisticsSpec {
    features: Vec<String>,
    targets: Vec<String>,
    /// Of exact sums: where the numbers of every column lie. Features first.
    grids: Option<Vec<ColumnGrid>>,
}

impl StatisticsSpec {
    /// Sums of these features and targets, rounded.
    ///
    /// # Errors
    /// There are no columns or too many, or two have one name.
    pub fn new<F: Into<String>, T: Into<String>>(
        features: impl IntoIterator<Item = F>,
        targets: impl IntoIterator<Item = T>,
    ) -> Result<Self> {
        let features: Vec<String> = features.into_iter().map(Into::into).collect();
        let targets: Vec<String> = targets.into_iter().map(Into::into).collect();
        let width = features.len() + targets.len();
        if features.is_empty() || targets.is_empty() || width > MOST_COLUMNS {
            let range = "at least one feature and one target, together at most 32,768";
            return Err(Error::Parameter {
                name: "columns",
                value: width.to_string(),
                range,
            });
        }
        let mut names: Vec<&String> = features.iter().chain(&targets).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let range = "distinct names of features and targets";
            return Err(Error::Parameter {
                name: "columns",
                value: twice[0].clone(),
                range,
            });
        }
        Ok(Self {
            features,
            targets,
            grids: None,
        })
    }

    /// The same, with sums that do not depend on how rows were ordered or shared out. Every number
    /// must lie on the grid of its column, features first; what is less than 2⁻⁴⁴ of the grid's
    /// size is rounded away.
    ///
    /// # Errors
    /// There are more or fewer grids than columns, or one is not finite or of no size.
    pub fn exact(mut self, grids: Vec<ColumnGrid>) -> Result<Self> {
        if grids.len() != self.width() {
            return Err(Error::Shape {
                what: "grids",
                found: grids.len(),
                expected: self.width(),
            });
        }
        if let Some(bad) = grids.iter().find(|grid| !grid.is_sound()) {
            let value = format!("{} about {}", bad.largest, bad.origin);
            return Err(Error::Parameter {
                name: "grid",
                value,
                range: "from 1e-200 to 1e200 about a finite number",
            });
        }
        self.grids = Some(grids);
        Ok(self)
    }

    /// The features, in order.
    pub fn features(&self) -> &[String] {
        &self.features
    }

    /// The targets, in order.
    pub fn targets(&self) -> &[String] {
        &self.targets
    }

    /// Whether sums are exact.
    pub fn is_exact(&self) -> bool {
        self.grids.is_some()
    }

    /// Features and targets.
    pub fn width(&self) -> usize {
        self.features.len() + self.targets.len()
    }

    fn name(&self, column: usize) -> &str {
        let targets = self.targets.get(column.wrapping_sub(self.features.len()));
        self.features
            .get(column)
            .or(targets)
            .map_or("", String::as_str)
    }
}

/// Sums over rows: how many there are, their columns' sums and products with each other, and how
/// many rows have each feature.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearStatistics {
    spec: StatisticsSpec,
    rows: u64,
    /// Per feature, the rows in which it is not zero.
    support: Vec<u64>,
    body: SumsBody,
    threads: usize,
}

#[derive(Debug, Clone, PartialEq)]
enum SumsBody {
    Rounded(RoundedSums),
    Exact(ExactSums),
}

/// Whether rows join or leave.
#[derive(Debug, Clone, Copy, PartialEq)]
enum SumsStep {
    Add,
    Remove,
}

impl LinearStatistics {
    /// The sums of no rows.
    pub fn new(spec: StatisticsSpec) -> Self {
        let body = match &spec.grids {
            None => SumsBody::Rounded(RoundedSums::new(spec.width())),
            Some(grids) => SumsBody::Exact(ExactSums::new(grids)),
        };
        Self {
            rows: 0,
            support: vec![0; spec.features.len()],
            body,
            spec,
            threads: 1,
        }
    }

    /// How many threads share the work on a batch.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.clamp(1, 256);
        self
    }

    /// What is summed.
    pub fn spec(&self) -> &StatisticsSpec {
        &self.spec
    }

    /// How many rows there are.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds rows: one view a column, features first, and their weights, if they have any. An error
    /// leaves the sums as they were.
    ///
    /// # Errors
    /// Columns are missing or of unlike length, a number is not finite or larger than promised, a
    /// weight is negative, or there are weights and the sums are exact.
    pub fn update(
        &mut self,
        columns: &[ColumnView<'_>],
        weights: Option<ColumnView<'_>>,
    ) -> Result<()> {
        self.change(columns, weights, SumsStep::Add)
    }

    /// Takes rows out again. Exact sums are then those of the rows that stay, to the last bit.
    ///
    /// # Errors
    /// As for [`update`](Self::update), or there are fewer rows than are to leave.
    pub fn remove(
        &mut self,
        columns: &[ColumnView<'_>],
        weights: Option<ColumnView<'_>>,
    ) -> Result<()> {
        self.change(columns, weights, SumsStep::Remove)
    }

    fn change(
        &mut self,
        columns: &[ColumnView<'_>],
        weights: Option<ColumnView<'_>>,
        step: SumsStep,
    ) -> Result<()> {
        let rows = self.check(columns, weights)?;
        if rows == 0 {
            return Ok(());
        }
        let support = self.counted(columns, weights);
        if step == SumsStep::Remove {
            let short = self
                .support
                .iter()
                .zip(&support)
                .any(|(have, gone)| have < gone);
            if self.rows < rows as u64 || short {
                let value = format!("{rows} rows to take out");
                return Err(Error::Parameter {
                    name: "rows",
                    value,
                    range: "rows that were added before",
                });
            }
        }
        let count = |have: u64, more: u64| match step {
            SumsStep::Add => have + more,
            SumsStep::Remove => have - more,
        };
        let left: Vec<u64> = self
            .support
            .iter()
            .zip(&support)
            .map(|(have, more)| count(*have, *more))
            .collect();
        match (&mut self.body, step) {
            (SumsBody::Exact(sums), _) => sums.add(columns, rows, step, self.threads)?,
            (SumsBody::Rounded(sums), SumsStep::Add) => {
                sums.add(columns, weights, rows, self.threads)
            }
            // The last row takes everything along.
            (body, SumsStep::Remove) if self.rows == rows as u64 => {
                *body = SumsBody::Rounded(RoundedSums::new(self.spec.width()));
            }
            (SumsBody::Rounded(sums), SumsStep::Remove) => {
                sums.remove(columns, weights, rows, self.threads, &left);
            }
        }
        self.support = left;
        self.rows = count(self.rows, rows as u64);
        Ok(())
    }

    /// Adds what another worker has summed.
    ///
    /// # Errors
    /// The two sum other columns, or one is exact and the other is not.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        if self.spec != other.spec {
            let what = if self.spec.features != other.spec.features
                || self.spec.targets != other.spec.targets
            {
                "statistics of other columns"
            } else {
                "statistics on other grids, or rounded beside exact ones"
            };
            return Err(Error::Parameter {
                name: "statistics",
                value: what.into(),
                range: "made for the same columns, in the same order and on the same grids",
            });
        }
        match (&mut self.body, &other.body) {
            (SumsBody::Rounded(mine), SumsBody::Rounded(theirs)) => mine.merge(theirs),
            (SumsBody::Exact(mine), SumsBody::Exact(theirs)) => {
                mine.merge(theirs, self.rows, other.rows)?
            }
            _ => {
                return Err(Error::Damaged(
                    "statistics whose sums are not of the kind they say".into(),
                ));
            }
        }
        self.support
            .iter_mut()
            .zip(&other.support)
            .for_each(|(mine, theirs)| *mine += theirs);
        self.rows += other.rows;
        Ok(())
    }

    /// The sums of the same rows, each counted `factor` times.
    pub(crate) fn times(&self, factor: f64) -> Self {
        let mut scaled = self.clone();
        if let SumsBody::Rounded(sums) = &mut scaled.body {
            sums.scale(factor);
        }
        scaled
    }

    /// Means and products about the means, for a model.
    pub(crate) fn moments(&self) -> CentredMoments {
        let mut moments = match &self.body {
            SumsBody::Rounded(sums) => sums.moments(),
            SumsBody::Exact(sums) => sums.moments(self.rows),
        };
        moments.support = self.support.clone();
        moments
    }

    /// The number of rows, once everything about the batch is known to be in order.
    fn check(&self, columns: &[ColumnView<'_>], weights: Option<ColumnView<'_>>) -> Result<usize> {
        let expected = self.spec.width();
        if columns.len() != expected {
            return Err(Error::Shape {
                what: "columns",
                found: columns.len(),
                expected,
            });
        }
        let rows = columns[0].len();
        if let Some(other) = columns
            .iter()
            .chain(&weights)
            .find(|column| column.len() != rows)
        {
            return Err(Error::Shape {
                what: "rows of a column",
                found: other.len(),
                expected: rows,
            });
        }
        for (at, column) in columns.iter().enumerate() {
            // Beyond this, squares are no numbers any more.
            let everything = ColumnGrid::within(1e150);
            let grid = self
                .spec
                .grids
                .as_ref()
                .map_or(everything, |grids| grids[at]);
            if let Some((row, value)) = column.beyond(grid.origin, grid.largest) {
                return Err(self.refused(row, at, value));
            }
        }
        match weights {
            Some(_) if self.spec.is_exact() => Err(Error::Parameter {
                name: "weights",
                value: "given".into(),
                range: "absent: exact sums know no weights of rows",
            }),
            Some(weights) => match weights
                .iter()
                .find(|weight| !(0.0..f64::INFINITY).contains(weight))
            {
                Some(bad) => Err(Error::Parameter {
                    name: "weights",
                    value: bad.to_string(),
                    range: "finite and 0 or more",
                }),
                None => Ok(rows),
            },
            None => Ok(rows),
        }
    }

    fn refused(&self, row: usize, column: usize, value: f64) -> Error {
        if value.is_finite() && !self.spec.is_exact() {
            return Error::Overflow;
        }
        if value.is_finite() {
            return Error::Parameter {
                name: "grid",
                value: format!("that of column {:?}", self.spec.name(column)),
                range: "wide enough for every number; find the grids with a pass over all rows",
            };
        }
        let place = format!("column {:?}", self.spec.name(column));
        Error::NotFinite {
            row: RowId(self.rows + row as u64),
            place,
            value,
        }
    }

    fn counted(&self, columns: &[ColumnView<'_>], weights: Option<ColumnView<'_>>) -> Vec<u64> {
        let features = &columns[..self.spec.features.len()];
        match weights {
            None => features.iter().map(|column| column.non_zeros()).collect(),
            Some(weights) => features
                .iter()
                .map(|column| {
                    column
                        .iter()
                        .zip(weights.iter())
                        .filter(|(x, weight)| *x != 0.0 && *weight != 0.0)
                        .count() as u64
                })
                .collect(),
        }
    }
}
