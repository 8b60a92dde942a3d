//! Points with weights, and k-means++.
//!
//! The choice of k-means++ is made as a race, with random numbers that hang on the rows' ids. In
//! round r, row i arrives after E/(w_i·D_i²), with E exponential and D_i its distance to the
//! nearest centroid so far; the first to arrive is chosen. It is row i with probability w_i·D_i²/Σ
//! w·D², as k-means++ asks, and taking out a row that did not win changes no winner.

use std::sync::OnceLock;

use faer::{Accum, Mat, MatRef, Par};

use crate::error::Result;
use crate::linalg::{UNIT, dot, multiply, widest};
use crate::models::long_sum::check_size;
use crate::random::{DrawPurpose, random_uniform};
use crate::rows::{RowId, RowStore, RowView, Stop};

/// Points whose products with the centres are made together.
const TOGETHER: usize = 256;
/// Below so many points, a matrix product costs more than looking at the points one by one.
const FEW: usize = 64;
/// Below this size, squares leave the range in which rounding is relative.
const SMALLEST: f64 = 1e-200;

/// The two smallest of some numbers, and the place of the smallest.
#[derive(Debug, Clone, Copy)]
struct NearestTwo {
    best: usize,
    first: f64,
    second: f64,
}

impl Default for NearestTwo {
    fn default() -> Self {
        Self {
            best: 0,
            first: f64::INFINITY,
            second: f64::INFINITY,
        }
    }
}

impl NearestTwo {
    /// Without a branch, because the processor cannot predict which centre is nearer.
    #[inline(always)]
    fn see(&mut self, whose: usize, score: f64) {
        let first = self.first;
        let second = self.second;
        let better = score < first;
        let rest = if better { first } else { score };
        self.best = if better { whose } else { self.best };
        self.first = if better { score } else { first };
        self.second = if rest < second { rest } else { second };
    }
}

/// Dense points in memory.
#[derive(Debug, Clone, Default)]
pub(super) struct ClusterPoints {
    pub(super) width: usize,
    pub(super) ids: Vec<u64>,
    values: Vec<f64>,
    weights: Vec<f64>,
    /// ‖x‖² of every point, computed when it is first needed.
    sizes: OnceLock<Vec<f64>>,
    stop: Option<Stop>,
}

impl ClusterPoints {
    pub(super) fn new(width: usize) -> Self {
        Self {
            width,
            ..Self::default()
        }
    }

    /// The named rows, in the order of their ids: the order in which a store lists rows must not
    /// matter.
    pub(super) fn read(rows: &dyn RowStore, ids: &[RowId]) -> Result<Self> {
        let mut sorted = ids.to_vec();
        sorted.sort_unstable();
        let mut points = Self {
            stop: rows.stop().cloned(),
            ..Self::new(rows.width())
        };
        points
            .values
            .reserve(sorted.len().saturating_mul(points.width));
        let mut checked = Ok(());
        rows.visit(&sorted, &mut |_, view| {
            if checked.is_ok() {
                checked = points.push_row(&view);
            }
        })?;
        checked.map(|()| points)
    }

    fn push_row(&mut self, view: &RowView<'_>) -> Result<()> {
        check_size(view)?;
        self.sizes.take();
        let start = self.values.len();
        self.values.resize(start + self.width, 0.0);
        view.features.add_to(1.0, &mut self.values[start..]);
        self.ids.push(view.id.0);
        self.weights.push(view.weight);
        Ok(())
    }

    pub(super) fn push(&mut self, id: u64, point: &[f64], weight: f64) {
        self.sizes.take();
        self.ids.push(id);
        self.values.extend_from_slice(point);
        self.weights.push(weight);
    }

    /// Whether the caller has asked the run over these points to end. Its result must not be used
    /// then.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(Stop::is_stopped)
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    fn clear(&mut self) {
        self.sizes.take();
        self.ids.clear();
        self.values.clear();
        self.weights.clear();
    }

    pub(super) fn point(&self, at: usize) -> &[f64] {
        &self.values[at * self.width..(at + 1) * self.width]
    }

    pub(super) fn weight(&self, at: usize) -> f64 {
        self.weights[at]
    }

    /// The nearest centre of every point in turn, and the squared distance to it: what [`nearest`]
    /// says, to the bit.
    ///
    /// ‖x − c‖² is ‖x‖² − 2xᵀc + ‖c‖², and one matrix product has the xᵀc of many points and all
    /// centres. It rounds otherwise than [`nearest`] does, so it decides only where the second
    /// nearest centre is further off than both kinds of rounding together; other points, and all
    /// points of a small set, are looked at one by one.
    pub(super) fn each_nearest(&self, centers: &[f64], mut see: impl FnMut(usize, f64)) {
        let width = self.width.max(1);
        let k = centers.len() / width;
        let exactly = |at: usize| {
            widest(
                #[inline(always)]
                || nearest(centers, self.point(at)),
            )
        };
        if k < 3 || self.len() < FEW {
            (0..self.len())
                .map(exactly)
                .for_each(|(cluster, distance)| see(cluster, distance));
            return;
        }
        let sizes: Vec<f64> = centers
            .chunks_exact(width)
            .map(|center| dot(center, center))
            .collect();
        let furthest = sizes.iter().copied().fold(0.0, f64::max).sqrt();
        let unit = 8.0 * (width as f64 + 8.0) * UNIT;
        let mut products = Mat::zeros(k, TOGETHER);
        for start in (0..self.len()).step_by(TOGETHER) {
            let count = TOGETHER.min(self.len() - start);
            let some = &self.values[start * width..(start + count) * width];
            let some = MatRef::from_column_major_slice(some, width, count);
            let centers_t = MatRef::from_row_major_slice(centers, k, width);
            multiply(
                products.as_mut().subcols_mut(0, count),
                Accum::Replace,
                centers_t,
                some,
                -2.0,
                Par::Seq,
            );
            for at in start..start + count {
                let point = self.point(at);
                let mut rank = NearestTwo::default();
                for (cluster, (product, size)) in products
                    .col_as_slice(at - start)
                    .iter()
                    .zip(&sizes)
                    .enumerate()
                {
                    rank.see(cluster, product + size);
                }
                let reach = (self.sizes()[at].sqrt() + furthest).powi(2);
                let (cluster, distance) =
                    if reach > SMALLEST && rank.second - rank.first > unit * reach {
                        let center = &centers[rank.best * width..(rank.best + 1) * width];
                        let distance = widest(
                            #[inline(always)]
                            || squared_distance(center, point),
                        );
                        (rank.best, distance)
                    } else {
                        exactly(at)
                    };
                see(cluster, distance);
            }
        }
    }

    /// ‖x‖² of every point.
    fn sizes(&self) -> &[f64] {
        self.sizes.get_or_init(|| {
            (0..self.len())
                .map(|at| dot(self.point(at), self.point(at)))
                .collect()
        })
    }

    /// The squared distance of every point to the nearest of some centres; 1 where there are none
    /// yet.
    fn least_distances(&self, centers: &[f64]) -> Vec<f64> {
        let mut least = vec![1.0; self.len()];
        for (round, center) in centers.chunks_exact(self.width.max(1)).enumerate() {
            self.shorten(&mut least, center, round == 0);
        }
        least
    }

    /// Takes a further centre into account.
    fn shorten(&self, least: &mut [f64], center: &[f64], is_first: bool) {
        widest(
            #[inline(always)]
            || {
                for (at, distance) in least.iter_mut().enumerate() {
                    let new = squared_distance(self.point(at), center);
                    *distance = if is_first { new } else { distance.min(new) };
                }
            },
        );
    }
}

/// The points that a run starts from.
#[derive(Debug, Default)]
pub(super) struct StartPoints {
    pub(super) ids: Vec<u64>,
    /// The points themselves, one after the other.
    pub(super) centers: Vec<f64>,
}

/// All points of a run: in memory, or in a store beyond memory that is read for every pass, in the
/// order of ids.
#[derive(Clone, Copy)]
pub(super) enum PointSource<'a> {
    Held(&'a ClusterPoints),
    Passed(&'a dyn RowStore),
}

impl PointSource<'_> {
    pub(super) fn width(self) -> usize {
        match self {
            Self::Held(points) => points.width,
            Self::Passed(store) => store.width(),
        }
    }

    /// Whether the caller has asked the run over these points to end. Its result must not be used
    /// then.
    pub(super) fn is_stopped(self) -> bool {
        match self {
            Self::Held(points) => points.is_stopped(),
            Self::Passed(store) => store.stop().is_some_and(Stop::is_stopped),
        }
    }

    /// Shows all points: those in memory at once, others in pieces of [`piece`] points each.
    pub(super) fn each_block(self, mut see: impl FnMut(&ClusterPoints)) -> Result<()> {
        let store = match self {
            Self::Held(points) => {
                see(points);
                return Ok(());
            }
            Self::Passed(store) => store,
        };
        let full = piece(store.width());
        let mut points = ClusterPoints::new(store.width());
        store.each_block(&mut |block| {
            store.go_on()?;
            let mut views: Vec<RowView<'_>> = block.iter().collect();
            views.sort_by_key(|view| view.id);
            for view in &views {
                points.push_row(view)?;
                if points.len() == full {
                    see(&points);
                    points.clear();
                }
            }
            Ok(())
        })?;
        if points.len() > 0 {
            see(&points);
        }
        Ok(())
    }

    /// The k points that k-means++ starts from, or as many as are distinct and weigh something.
    pub(super) fn plus_plus(self, k: usize, seed: u64) -> Result<StartPoints> {
        let mut start = StartPoints::default();
        // Distances to the points chosen so far are kept for points in memory, and measured again
        // for others.
        let mut kept = match self {
            Self::Held(points) => Some((points, vec![1.0; points.len()])),
            Self::Passed(_) => None,
        };
        for round in 0..k {
            if self.is_stopped() {
                break;
            }
            let mut first: Option<(f64, u64, Vec<f64>)> = None;
            self.each_block(|block| {
                let measured;
                let nearest = match &kept {
                    Some((_, nearest)) => nearest,
                    None => {
                        measured = block.least_distances(&start.centers);
                        &measured
                    }
                };
                for (at, distance) in nearest.iter().enumerate() {
                    let mass = block.weights[at] * distance;
                    if mass > 0.0 {
                        let id = block.ids[at];
                        let time =
                            -random_uniform(seed, DrawPurpose::Race, round as u64, id).ln() / mass;
                        if first.as_ref().is_none_or(|(best, ..)| time < *best) {
                            first = Some((time, id, block.point(at).to_vec()));
                        }
                    }
                }
            })?;
            let Some((_, id, winner)) = first else { break };
            if let Some((points, nearest)) = &mut kept {
                points.shorten(nearest, &winner, round == 0);
            }
            start.ids.push(id);
            start.centers.extend(winner);
        }
        Ok(start)
    }
}

/// So many points of so many numbers are summed by themselves, wherever they are read from, so that
/// sums are the same to the bit.
pub(super) fn piece(width: usize) -> usize {
    ((1 << 22) / width.max(1)).clamp(256, 4096)
}

/// ‖a − b‖², in eight lanes whatever the processor, so that every machine adds in the same order.
#[inline(always)]
pub(super) fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0f64; 8];
    let (a8, a_rest) = a.as_chunks::<8>();
    let (b8, b_rest) = b.as_chunks::<8>();
    for (a, b) in a8.iter().zip(b8) {
        for lane in 0..8 {
            let step = a[lane] - b[lane];
            lanes[lane] += step * step;
        }
    }
    let rest: f64 = a_rest
        .iter()
        .zip(b_rest)
        .map(|(a, b)| (a - b) * (a - b))
        .sum();
    let [l0, l1, l2, l3, l4, l5, l6, l7] = lanes;
    (((l0 + l4) + (l1 + l5)) + ((l2 + l6) + (l3 + l7))) + rest
}

/// The nearest centre, the earlier one of two alike, and the squared distance to it.
#[inline(always)]
pub(super) fn nearest(centers: &[f64], point: &[f64]) -> (usize, f64) {
    let width = point.len().max(1);
    let mut best = (0, f64::INFINITY);
    for (cluster, center) in centers.chunks_exact(width).enumerate() {
        let distance = squared_distance(center, point);
        if distance < best.1 {
            best = (cluster, distance);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Centres that are alike, that lie on both sides of points, and that points lie on: the choice
    /// and the distance are those of looking at each.
    #[test]
    fn products_decide_as_distances_do() {
        let wave = |i: usize, j: usize| ((i * 131 + j * 37 + i * j) as f64).sin();
        for (width, shift, scale) in [
            (1, 0.0, 1.0),
            (7, 0.0, 1e40),
            (20, 1e7, 1.0),
            (13, 0.0, 1e-150),
            (3, 2.0, 1e-3),
        ] {
            let mut points = ClusterPoints::new(width);
            for i in 0..700 {
                let point: Vec<f64> = (0..width)
                    .map(|j| (shift + (wave(i, j) * 8.0).round() / 4.0) * scale)
                    .collect();
                points.push(i as u64, &point, 1.0);
            }
            for k in [1, 2, 3, 9] {
                let mut centers: Vec<f64> = (0..k)
                    .flat_map(|c| points.point(c * 31).to_vec())
                    .map(|x| x * 1.0000001)
                    .collect();
                if k > 3 {
                    // Two alike, and one that is a point.
                    centers.copy_within(0..width, 2 * width);
                    centers[width..2 * width].copy_from_slice(points.point(5));
                }
                let mut at = 0;
                points.each_nearest(&centers, |cluster, distance| {
                    assert_eq!(
                        (cluster, distance),
                        nearest(&centers, points.point(at)),
                        "{width} {k} {at}"
                    );
                    at += 1;
                });
                assert_eq!(at, points.len());
            }
        }
    }

    /// Over many seeds, without a row that was there: the choices are those of k-means++ on the
    /// others.
    #[test]
    fn the_race_is_k_means_plus_plus() {
        let positions = [0.0, 1.0, 3.0, 7.0, 8.0];
        let mut points = ClusterPoints::new(1);
        for (id, x) in positions.iter().enumerate() {
            points.push(id as u64 * 17, &[*x], [1.0, 2.0, 1.0, 0.5, 0.0][id]);
        }
        let trials = 40_000;
        let mut counts = [[0.0; 5]; 5];
        for seed in 0..trials {
            let chosen = PointSource::Held(&points).plus_plus(2, seed).unwrap().ids;
            counts[chosen[0] as usize / 17][chosen[1] as usize / 17] += 1.0 / trials as f64;
        }
        for (a, line) in counts.iter().enumerate() {
            let mass = |b: usize| points.weight(b) * (positions[a] - positions[b]).powi(2);
            let total: f64 = (0..5).map(mass).sum();
            for (b, share) in line.iter().enumerate() {
                let expected = points.weight(a) / 4.5 * mass(b) / total;
                let spread = (expected / trials as f64).sqrt();
                assert!(
                    (share - expected).abs() <= 4.5 * spread,
                    "{a} {b}: {share} {expected}"
                );
            }
        }
    }
}
