//! Sums over the features of all columns, kept beside a model for which every row changes when one
//! leaves: components of all columns turn, and weights of classes follow from how many rows each
//! class has. Products of all features, in two words, tell both without the rows: components are
//! their eigenvectors, and the sums of a linear model over components are VᵀAV.
//!
//! Rows are summed as the features of a reference map, which stays. It outlives rows that leave, so
//! that its shifts and scales are rough: a mean to all digits would tell a row that left to whoever
//! has the others. Features that differ from those by a factor and an offset follow from the sums;
//! where they differ otherwise, because other words are chosen or a gap is filled with another
//! number, the rows are needed, and the sums are made anew.

use super::components::DirectionSums;
use super::directions::FeatureComponents;
use super::rescaling::{FeatureRescale, RescaledFeatures};
use super::{Encoder, FeatureError, FeatureExpansion, FeatureMap};
use crate::error::{Error, Result};
use crate::rows::RowView;
use crate::statistics::{CentredMoments, ColumnView, LinearStatistics, StatisticsSpec};

/// Rows that are summed at once.
const BLOCK: usize = 1024;

/// The most that products may be off by, as a share of the gap after the last direction, before the
/// rows are read: directions are off by as much.
const MOST_ERROR: f64 = 1e-9;

/// Sums over the rows of a model, by class where classes have weights of their own.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptSums {
    reference: FeatureMap,
    /// Whether rows count for their own weights; components count every row once.
    is_weighted: bool,
    groups: Vec<LinearStatistics>,
}

/// What the sums say of the features of a map.
#[derive(Debug)]
pub struct FollowedSums {
    /// The map, with the components that the rows have in it.
    pub map: FeatureMap,
    /// Products of its features and the targets.
    pub moments: FeatureMoments,
}

/// Products of all features and targets over the rows of a model.
#[derive(Debug)]
pub struct FeatureMoments {
    pub(crate) moments: CentredMoments,
    pub(crate) features: usize,
    pub(crate) rows: u64,
}

impl KeptSums {
    /// How many bytes sums of so many features and targets take.
    pub fn size(features: usize, outputs: usize, groups: usize) -> usize {
        let width = features.saturating_add(outputs).saturating_add(1);
        width
            .saturating_mul(width)
            .saturating_mul(8)
            .saturating_mul(groups)
    }

    /// The sums of no rows, in the features that an encoder makes of columns now.
    ///
    /// # Errors
    /// There are more features than can be summed.
    pub fn new(
        encoder: &Encoder,
        outputs: usize,
        groups: usize,
        is_weighted: bool,
    ) -> Result<Self> {
        let reference = encoder.coarse_columns();
        let names = |letter: char, count: usize| (0..count).map(move |at| format!("{letter}{at}"));
        let spec = StatisticsSpec::new(names('x', encoder.column_width()), names('y', outputs))?;
        Ok(Self {
            reference,
            is_weighted,
            groups: vec![LinearStatistics::new(spec); groups.max(1)],
        })
    }

    /// Whether rows count for their own weights.
    pub fn is_weighted(&self) -> bool {
        self.is_weighted
    }

    /// How many groups rows are in.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// How many rows are summed.
    pub fn rows(&self) -> u64 {
        self.groups.iter().map(LinearStatistics::rows).sum()
    }

    /// Takes raw rows in, or out where they `leave`, as the encoder reads them. Finish it.
    ///
    /// # Errors
    /// The sums are not those of this encoder.
    pub fn change<'a>(&'a mut self, encoder: &Encoder, leave: bool) -> Result<SumsChange<'a>> {
        if !encoder.takes(&self.reference) {
            return Err(Error::Damaged("sums of other columns".into()));
        }
        let reader = encoder.in_columns(self.reference.clone())?;
        let groups = self.groups.len();
        let spec = self.groups[0].spec();
        let width = spec.width();
        if spec.features().len() != reader.width() {
            return Err(Error::Damaged("sums of other features".into()));
        }
        let tables = vec![(Vec::new(), Vec::new()); groups];
        Ok(SumsChange {
            sums: self,
            reader,
            leave,
            width,
            tables,
            entries: Vec::new(),
        })
    }

    /// What the sums say of the features that `encoder` makes, whose counts are those of the summed
    /// rows, with other `columns` where they are others. Rows of group g count `weights[g]` times
    /// in the products. None where the rows are needed, as for polynomials and random waves, which
    /// are not linear in the features that are summed.
    ///
    /// # Errors
    /// There are fewer features than components.
    pub fn follow(
        &self,
        encoder: &Encoder,
        columns: Option<FeatureMap>,
        weights: &[f64],
    ) -> std::result::Result<Option<FollowedSums>, FeatureError> {
        if !encoder.follows_column_sums() {
            return Ok(None);
        }
        let columns = columns.unwrap_or_else(|| encoder.map.clone());
        let Some(rescaled) = encoder.rescaling_from(&self.reference, &columns) else {
            return Ok(None);
        };
        let RescaledFeatures {
            mut map,
            features: scales,
        } = rescaled;
        let units = || scales.iter().map(|scale| (scale.factor, scale.offset));
        let Some(all) = self.together(&[]) else {
            return Ok(None);
        };
        if let FeatureExpansion::Components { count, centred } = encoder.steps.expansion {
            let moments = all.moments().rescaled(units());
            let plain = encoder.in_columns(map.clone())?;
            let sums = direction_sums(&moments, plain.width(), centred);
            let found = plain.directions(&sums, count, false)?;
            if direction_error(&moments, plain.width(), centred) > MOST_ERROR * found.gap {
                return Ok(None);
            }
            map.components = Some(found.components);
        }
        let weighed = if weights.iter().all(|weight| *weight == 1.0) {
            Some(all)
        } else {
            self.together(weights)
        };
        let Some(weighed) = weighed else {
            return Ok(None);
        };
        let mut moments = weighed.moments().rescaled(units());
        let mut features = scales.len();
        if let Some(components) = &map.components {
            moments = projected(&moments, components, features);
            features = components.len();
        }
        let rows = weighed.rows();
        moments.support = match &map.components {
            Some(_) => vec![rows; features],
            // Which rows are 0 after a shift is not known; all of them may have the feature.
            None => {
                let support = |(scale, rows_with): (&FeatureRescale, &u64)| {
                    if scale.offset == 0.0 {
                        *rows_with
                    } else {
                        rows
                    }
                };
                scales.iter().zip(&moments.support).map(support).collect()
            }
        };
        Ok(Some(FollowedSums {
            map,
            moments: FeatureMoments {
                moments,
                features,
                rows,
            },
        }))
    }

    /// The sums of all groups, each counted as often as its weight says, or once.
    fn together(&self, weights: &[f64]) -> Option<LinearStatistics> {
        let mut groups = self.groups.iter().enumerate();
        let weighed = |(at, group): (usize, &LinearStatistics)| match weights.get(at) {
            Some(weight) => group.times(*weight),
            None => group.clone(),
        };
        let mut all = groups.next().map(weighed)?;
        for group in groups {
            all.merge(&weighed(group)).ok()?;
        }
        (all.rows() > 0).then_some(all)
    }

    /// All of it as bytes, of the same length as long as the features are those of the same
    /// reference.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let reference = serde_json::to_vec(&self.reference)
            .map_err(|_| Error::Damaged("the sums cannot be written".into()))?;
        let mut out = (reference.len() as u64).to_le_bytes().to_vec();
        out.extend(reference);
        out.push(u8::from(self.is_weighted));
        for group in &self.groups {
            let bytes = group.to_bytes();
            out.extend((bytes.len() as u64).to_le_bytes());
            out.extend(bytes);
        }
        Ok(out)
    }

    /// The inverse of [`to_bytes`](Self::to_bytes).
    ///
    /// # Errors
    /// The bytes are none of these, or not whole.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::parse(bytes).ok_or_else(|| Error::Damaged("array `sums` makes no sense".into()))
    }

    fn parse(mut bytes: &[u8]) -> Option<Self> {
        let taken = |bytes: &mut &[u8]| -> Option<Vec<u8>> {
            let (length, rest) = bytes.split_first_chunk::<8>()?;
            let (own, rest) =
                rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
            *bytes = rest;
            Some(own.to_vec())
        };
        let reference: FeatureMap = serde_json::from_slice(&taken(&mut bytes)?).ok()?;
        let (weighted, mut bytes) = bytes.split_first()?;
        let mut groups = Vec::new();
        while !bytes.is_empty() {
            groups.push(LinearStatistics::from_bytes(&taken(&mut bytes)?).ok()?);
        }
        let spec = groups.first()?.spec();
        let is_sound = *weighted <= 1 && groups.iter().all(|group| group.spec() == spec);
        is_sound.then(|| Self {
            reference,
            is_weighted: *weighted == 1,
            groups,
        })
    }
}

/// Rows on their way into or out of sums.
pub struct SumsChange<'a> {
    sums: &'a mut KeptSums,
    reader: Encoder,
    leave: bool,
    width: usize,
    /// For each group the numbers of rows, one after the other, and their weights.
    tables: Vec<(Vec<f64>, Vec<f64>)>,
    entries: Vec<(u32, f64)>,
}

impl SumsChange<'_> {
    /// Takes a raw row of a group along.
    ///
    /// # Errors
    /// It cannot be summed: its numbers are too large, or it was never in the sums that it should
    /// leave.
    pub fn row(&mut self, row: &RowView<'_>, group: usize) -> Result<()> {
        let Some((table, weights)) = self.tables.get_mut(group) else {
            return Err(Error::Damaged("sums of fewer classes".into()));
        };
        self.reader
            .features_of(&row.features.entries(), &mut self.entries);
        let start = table.len();
        let columns = self.reader.width();
        if columns + row.targets.len() != self.width {
            return Err(Error::Damaged("sums of other targets".into()));
        }
        table.resize(start + self.width, 0.0);
        let (features, targets) = table[start..].split_at_mut(columns);
        self.entries
            .iter()
            .for_each(|&(feature, value)| features[feature as usize] = value);
        targets.copy_from_slice(row.targets);
        weights.push(row.weight);
        if weights.len() == BLOCK {
            self.flush(group)
        } else {
            Ok(())
        }
    }

    fn flush(&mut self, group: usize) -> Result<()> {
        let (table, weights) = &mut self.tables[group];
        let columns: Vec<ColumnView<'_>> = (0..self.width)
            .map(|at| ColumnView::of_table(table, self.width, at))
            .collect::<Result<_>>()?;
        let own = self.sums.is_weighted.then(|| ColumnView::dense(weights));
        let sums = &mut self.sums.groups[group];
        if self.leave {
            sums.remove(&columns, own)?
        } else {
            sums.update(&columns, own)?
        }
        table.clear();
        weights.clear();
        Ok(())
    }

    /// Sums what is left.
    ///
    /// # Errors
    /// As for [`row`](Self::row).
    pub fn finish(mut self) -> Result<()> {
        for group in 0..self.tables.len() {
            if !self.tables[group].1.is_empty() {
                self.flush(group)?;
            }
        }
        Ok(())
    }
}

/// Where components have their origin, in one feature.
fn centre(moments: &CentredMoments, column: usize, centred: bool) -> f64 {
    if centred { moments.mean(column) } else { 0.0 }
}

fn direction_sums(moments: &CentredMoments, width: usize, centred: bool) -> DirectionSums {
    let mean: Vec<f64> = (0..width)
        .map(|column| centre(moments, column, centred))
        .collect();
    let product = |i: usize, j: usize| moments.product_about(i, j, (mean[i], mean[j])).value();
    let products = faer::Mat::from_fn(
        width,
        width,
        |i, j| if i >= j { product(i, j) } else { 0.0 },
    );
    DirectionSums { mean, products }
}

/// The most that these products are off by, as the norm of a matrix: what sums of products are, and
/// what sums are times how far they were moved. How many rows there are is known exactly.
fn direction_error(moments: &CentredMoments, width: usize, centred: bool) -> f64 {
    let mut reach = 0.0;
    let mut shift = 0.0;
    for column in 0..width {
        let origin = moments.origin[column];
        reach += moments.reach_about(column, origin).powi(2);
        shift += (centre(moments, column, centred) - origin).powi(2);
    }
    moments.charge * (reach + 2.0 * moments.weight_reach() * (reach * shift).sqrt())
}

/// Products of where rows lie along directions, and of the targets.
fn projected(
    moments: &CentredMoments,
    components: &FeatureComponents,
    features: usize,
) -> CentredMoments {
    let outputs = moments.origin.len() - features;
    let count = components.len();
    let weights = faer::Mat::from_fn(features + outputs, count + outputs, |from, to| {
        match (from < features, to < count) {
            (true, true) => components.directions[from * count + to],
            (false, false) => f64::from(u8::from(from - features == to - count)),
            _ => 0.0,
        }
    });
    let mut offset = components.origin.clone();
    offset.resize(count + outputs, 0.0);
    moments.combined(&weights, &offset)
}
