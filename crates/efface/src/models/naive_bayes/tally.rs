//! The sums of a naive Bayes model: per class, and over all rows where the smoothing asks for it.

use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

use super::packed_sums;
use crate::error::{Error, Result};
use crate::models::block_sum::WaitingBlock;
use crate::models::long_sum::{LongSum, add_row};
use crate::rows::{RowRef, RowView};

/// The sums of some rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ClassSums {
    /// Rows of positive weight: at 0, and only then, the group is empty, whatever the sums were
    /// rounded to.
    pub(super) members: usize,
    pub(super) weight: LongSum,
    /// Σ w x, per feature.
    #[serde(with = "packed_sums")]
    pub(super) first: Vec<LongSum>,
    /// Σ w x², per feature, or nothing.
    #[serde(with = "packed_sums")]
    pub(super) second: Vec<LongSum>,
    /// What all additions so far have lost of the weight, and of all features' first and second
    /// sums together.
    pub(super) lost: [f64; 3],
}

impl ClassSums {
    fn new(width: usize, squares: bool) -> Self {
        let second = vec![LongSum::default(); if squares { width } else { 0 }];
        Self {
            members: 0,
            weight: LongSum::default(),
            first: vec![LongSum::default(); width],
            second,
            lost: [0.0; 3],
        }
    }

    /// Adds a row; `values` are its features where it is dense.
    fn put(&mut self, view: &RowView<'_>, values: Option<&[f64]>, weight: f64) {
        if weight == 0.0 {
            return;
        }
        if weight > 0.0 {
            self.members += 1;
        } else {
            self.members = self.members.saturating_sub(1);
        }
        self.lost[0] += self.weight.add(weight);
        if let Some(values) = values {
            self.lost[1] += add_row(&mut self.first, weight, values, false);
            if !self.second.is_empty() {
                self.lost[2] += add_row(&mut self.second, weight, values, true);
            }
            return;
        }
        view.features.each(|j, x| {
            if x != 0.0 {
                self.lost[1] += self.first[j].add_product(weight, x);
                if let Some(sum) = self.second.get_mut(j) {
                    self.lost[2] += sum.add_square(weight, x);
                }
            }
        });
    }

    /// Adds rows of weight 1, which then wait no longer.
    fn put_all(&mut self, waiting: &mut WaitingBlock<'_>) {
        self.members += waiting.len();
        self.lost[0] += self.weight.add(waiting.len() as f64);
        self.lost[1] += waiting.add_to(&mut self.first, false, self.lost[1]);
        if !self.second.is_empty() {
            self.lost[2] += waiting.add_to(&mut self.second, true, self.lost[2]);
        }
        waiting.clear();
    }

    /// Adds the rows of another group.
    fn join(&mut self, other: &Self) {
        self.members += other.members;
        let sums = |sums: &mut [LongSum], others: &[LongSum]| {
            sums.iter_mut()
                .zip(others)
                .map(|(sum, other)| sum.add_sum(*other))
                .sum::<f64>()
        };
        let lost = [
            self.weight.add_sum(other.weight),
            sums(&mut self.first, &other.first),
            sums(&mut self.second, &other.second),
        ];
        for (mine, (lost, theirs)) in self.lost.iter_mut().zip(lost.iter().zip(&other.lost)) {
            *mine += lost + theirs;
        }
    }

    /// Counts every row a/b times as much.
    fn scale(&mut self, a: f64, b: f64) {
        let lost = [
            self.weight.scale(a, b),
            self.first.iter_mut().map(|sum| sum.scale(a, b)).sum(),
            self.second
                .iter_mut()
                .map(|sum| sum.scale(a, b))
                .sum::<f64>(),
        ];
        self.lost
            .iter_mut()
            .zip(lost)
            .for_each(|(all, lost)| *all = *all * (a / b) + lost);
    }

    /// Notes that weights of rows were rounded before they were counted.
    fn lose_digits(&mut self) {
        let size = |sums: &[LongSum]| sums.iter().map(|sum| sum.value().abs()).sum::<f64>();
        let sizes = [self.weight.value(), size(&self.first), size(&self.second)];
        self.lost
            .iter_mut()
            .zip(sizes)
            .for_each(|(lost, size)| *lost += 2.0 * f64::EPSILON * size);
    }

    /// Whether a bit was ever lost.
    pub(super) fn is_exact(&self) -> bool {
        self.lost == [0.0; 3]
    }
}

/// The sums of a model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "StoredTally")]
pub struct ClassTally {
    pub(super) classes: usize,
    pub(super) outputs: usize,
    pub(super) width: usize,
    pub(super) rows: usize,
    squares: bool,
    /// One per class; with squares, one more for all rows at weight 1. A change copies the groups
    /// that it touches, and shares the others with the model that it started from.
    groups: Vec<Arc<ClassSums>>,
}

impl ClassTally {
    pub(super) fn new(outputs: usize, width: usize, squares: bool) -> Self {
        let classes = if outputs == 1 { 2 } else { outputs };
        let empty = Arc::new(ClassSums::new(width, squares));
        let groups = vec![empty; classes + squares as usize];
        Self {
            classes,
            outputs,
            width,
            rows: 0,
            squares,
            groups,
        }
    }

    /// Counts a row in (`sign` 1) or out (−1).
    pub(super) fn put(&mut self, view: &RowView<'_>, sign: f64) {
        self.put_in(view, sign, true);
    }

    /// Counts rows of weight 1 into a tally that is empty. The sums of all rows are then those of
    /// the classes together, and need not be gone through row by row.
    pub(super) fn put_first<'a>(
        &mut self,
        views: impl Iterator<Item = Result<RowView<'a>>>,
    ) -> Result<()> {
        let mut waiting: Vec<WaitingBlock<'a>> =
            (0..self.classes).map(|_| WaitingBlock::default()).collect();
        for view in views {
            let view = view?;
            let class = decode(view.targets);
            let full = match view.features {
                RowRef::Dense64(values) => waiting[class].push(values),
                RowRef::Dense32(values) => waiting[class].push_single(values),
                RowRef::Sparse64(..) | RowRef::Sparse32(..) | RowRef::WordIds(_) => {
                    self.put_in(&view, 1.0, false);
                    continue;
                }
            };
            self.rows += 1;
            if full {
                Arc::make_mut(&mut self.groups[class]).put_all(&mut waiting[class]);
            }
        }
        for (group, waiting) in self
            .groups
            .iter_mut()
            .zip(&mut waiting)
            .filter(|(_, waiting)| waiting.len() > 0)
        {
            Arc::make_mut(group).put_all(waiting);
        }
        if let Some((all, classes)) = self.groups.split_last_mut()
            && self.squares
        {
            let all = Arc::make_mut(all);
            classes.iter().for_each(|class| all.join(class));
        }
        Ok(())
    }

    /// Makes rows of class c count weights[c].1 where they counted weights[c].0, beside weights of
    /// their own where they `have_weights`.
    pub(super) fn reweigh(&mut self, weights: &[(f64, f64)], have_weights: bool) {
        for (group, (before, now)) in self
            .groups
            .iter_mut()
            .zip(weights)
            .filter(|(_, (a, b))| a != b)
        {
            let group = Arc::make_mut(group);
            group.scale(*now, *before);
            if have_weights {
                group.lose_digits();
            }
        }
    }

    fn put_in(&mut self, view: &RowView<'_>, sign: f64, together: bool) {
        let class = decode(view.targets);
        let mut wide = Vec::new();
        let values = match view.features {
            RowRef::Dense64(values) => Some(values),
            RowRef::Dense32(values) => {
                wide.extend(values.iter().map(|&x| f64::from(x)));
                Some(wide.as_slice())
            }
            RowRef::Sparse64(..) | RowRef::Sparse32(..) | RowRef::WordIds(_) => None,
        };
        Arc::make_mut(&mut self.groups[class]).put(view, values, sign * view.weight);
        if let Some(all) = self.groups.get_mut(self.classes)
            && together
        {
            Arc::make_mut(all).put(view, values, sign);
        }
        self.rows = if sign > 0.0 {
            self.rows + 1
        } else {
            self.rows.saturating_sub(1)
        };
    }

    /// Ends a change: what is left of an empty class, or of a feature that only lost bits speak of,
    /// is set to 0.
    pub(super) fn tidy(&mut self) -> Result<()> {
        for group in &mut self.groups {
            if group.members == 0 {
                *group = Arc::new(ClassSums::new(self.width, self.squares));
            }
            let [_, first, second] = group.lost;
            if first <= 0.0 && second <= 0.0 {
                continue;
            }
            let group = Arc::make_mut(group);
            for (sums, lost) in [(&mut group.first, first), (&mut group.second, second)] {
                if lost > 0.0 {
                    sums.iter_mut()
                        .filter(|sum| sum.value().abs() <= lost)
                        .for_each(|sum| *sum = LongSum::default());
                }
            }
        }
        if self.by_class().iter().all(|group| group.members == 0) {
            return Err(Error::NoWeight);
        }
        Ok(())
    }

    pub(super) fn by_class(&self) -> &[Arc<ClassSums>] {
        &self.groups[..self.classes]
    }

    /// The sums of all rows at weight 1.
    pub(super) fn together(&self) -> Option<&ClassSums> {
        self.groups.get(self.classes).map(Arc::as_ref)
    }

    pub(super) fn is_exact(&self) -> bool {
        self.groups.iter().all(|group| group.is_exact())
    }

    pub(super) fn prior(&self) -> Vec<f64> {
        let total = self.total();
        self.by_class()
            .iter()
            .map(|group| group.weight.value() / total)
            .collect()
    }

    pub(super) fn total(&self) -> f64 {
        self.by_class()
            .iter()
            .map(|group| group.weight.value())
            .sum()
    }

    /// How far lost bits can have moved the priors, in the 1-norm.
    pub(super) fn prior_bound(&self) -> f64 {
        let lost: f64 = self.by_class().iter().map(|group| group.lost[0]).sum();
        2.0 * lost / (self.total() - lost).max(f64::MIN_POSITIVE) + 4.0 * f64::EPSILON
    }

    pub(super) fn bytes(&self) -> usize {
        self.groups.len() * (1 + self.width * (1 + self.squares as usize)) * size_of::<LongSum>()
    }
}

/// The class that the targets of a row stand for, as [`Classes`](crate::Classes) encodes them.
fn decode(targets: &[f64]) -> usize {
    if let [target] = targets {
        return (*target > 0.0) as usize;
    }
    let better = |best: usize, class: usize| {
        if targets[class] > targets[best] {
            class
        } else {
            best
        }
    };
    (0..targets.len()).fold(0, better)
}

/// A tally as it is read, before it is believed.
#[derive(Deserialize)]
struct StoredTally {
    outputs: usize,
    width: usize,
    rows: usize,
    groups: Vec<ClassSums>,
}

/// The same as it is written.
#[derive(Serialize)]
struct WrittenTally<'a> {
    outputs: usize,
    width: usize,
    rows: usize,
    groups: Vec<&'a ClassSums>,
}

impl Serialize for ClassTally {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        let groups = self.groups.iter().map(Arc::as_ref).collect();
        WrittenTally {
            outputs: self.outputs,
            width: self.width,
            rows: self.rows,
            groups,
        }
        .serialize(to)
    }
}

impl TryFrom<StoredTally> for ClassTally {
    type Error = Error;

    fn try_from(stored: StoredTally) -> Result<Self> {
        let StoredTally {
            outputs,
            width,
            rows,
            groups,
        } = stored;
        let classes = if outputs == 1 { 2 } else { outputs };
        let squares = groups.len() == classes + 1;
        let fits = |group: &ClassSums| {
            group.first.len() == width
                && group.second.len() == if squares { width } else { 0 }
                && group
                    .first
                    .iter()
                    .chain(&group.second)
                    .chain([&group.weight])
                    .all(|sum| sum.is_finite())
                && group.lost.iter().all(|lost| *lost >= 0.0)
                && group.members <= rows
        };
        if outputs == 0 || groups.len() != classes + squares as usize || !groups.iter().all(fits) {
            return Err(Error::Damaged("the class sums do not fit together".into()));
        }
        let groups = groups.into_iter().map(Arc::new).collect();
        Ok(Self {
            classes,
            outputs,
            width,
            rows,
            squares,
            groups,
        })
    }
}
