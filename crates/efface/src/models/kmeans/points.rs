//! Points with weights, and k-means++.
//!
//! The choice of k-means++ is made as a race, with random numbers that hang on the rows' ids. In round r, row i arrives
//! after E/(w_i·D_i²), with E exponential and D_i its distance to the nearest centroid so far; the first to arrive is
//! chosen. It is row i with probability w_i·D_i²/Σ w·D², as k-means++ asks, and taking out a row that did not win changes
//! no winner.

use crate::error::Result;
use crate::models::draw::{For, uniform};
use crate::models::long_sum::check_size;
use crate::rows::{RowId, RowStore, RowView, Stop};

/// Dense points in memory.
#[derive(Debug, Clone, Default)]
pub(super) struct Points {
    pub(super) width: usize,
    pub(super) ids: Vec<u64>,
    values: Vec<f64>,
    weights: Vec<f64>,
    stop: Option<Stop>,
}

impl Points {
    pub(super) fn new(width: usize) -> Self {
        Self { width, ..Self::default() }
    }

    /// The named rows, in the order of their ids: the order in which a store lists rows must not matter.
    pub(super) fn read(rows: &dyn RowStore, ids: &[RowId]) -> Result<Self> {
        let mut sorted = ids.to_vec();
        sorted.sort_unstable();
        let mut points = Self { stop: rows.stop().cloned(), ..Self::new(rows.width()) };
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
        let start = self.values.len();
        self.values.resize(start + self.width, 0.0);
        view.features.add_to(1.0, &mut self.values[start..]);
        self.ids.push(view.id.0);
        self.weights.push(view.weight);
        Ok(())
    }

    pub(super) fn push(&mut self, id: u64, point: &[f64], weight: f64) {
        self.ids.push(id);
        self.values.extend_from_slice(point);
        self.weights.push(weight);
    }

    /// Whether whoever waits for a run over these points has asked it to end; the result is not to be used then.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(Stop::is_stopped)
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(super) fn point(&self, at: usize) -> &[f64] {
        &self.values[at * self.width..(at + 1) * self.width]
    }

    pub(super) fn weight(&self, at: usize) -> f64 {
        self.weights[at]
    }

    /// The k points that k-means++ starts from, or as many as are distinct and weigh something.
    pub(super) fn plus_plus(&self, k: usize, seed: u64) -> Vec<usize> {
        let mut chosen = Vec::with_capacity(k);
        let mut nearest = vec![1.0; self.len()];
        for round in 0..k {
            if self.is_stopped() {
                break;
            }
            let mut first: Option<(f64, usize)> = None;
            for (at, distance) in nearest.iter().enumerate() {
                let mass = self.weights[at] * distance;
                if mass > 0.0 {
                    let time = -uniform(seed, For::Race, round as u64, self.ids[at]).ln() / mass;
                    if first.is_none_or(|(best, _)| time < best) {
                        first = Some((time, at));
                    }
                }
            }
            let Some((_, winner)) = first else { break };
            pulp::Arch::new().dispatch(
                #[inline(always)]
                || {
                    for (at, distance) in nearest.iter_mut().enumerate() {
                        let new = squared_distance(self.point(at), self.point(winner));
                        *distance = if round == 0 { new } else { distance.min(new) };
                    }
                },
            );
            chosen.push(winner);
        }
        chosen
    }
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
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| (a - b) * (a - b)).sum();
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

    /// Over many seeds, without a row that was there: the choices are those of k-means++ on the others.
    #[test]
    fn the_race_is_k_means_plus_plus() {
        let positions = [0.0, 1.0, 3.0, 7.0, 8.0];
        let mut points = Points::new(1);
        for (id, x) in positions.iter().enumerate() {
            points.push(id as u64 * 17, &[*x], [1.0, 2.0, 1.0, 0.5, 0.0][id]);
        }
        let trials = 40_000;
        let mut counts = [[0.0; 5]; 5];
        for seed in 0..trials {
            let chosen = points.plus_plus(2, seed);
            counts[chosen[0]][chosen[1]] += 1.0 / trials as f64;
        }
        for (a, line) in counts.iter().enumerate() {
            let mass = |b: usize| points.weight(b) * (positions[a] - positions[b]).powi(2);
            let total: f64 = (0..5).map(mass).sum();
            for (b, share) in line.iter().enumerate() {
                let expected = points.weight(a) / 4.5 * mass(b) / total;
                let spread = (expected / trials as f64).sqrt();
                assert!((share - expected).abs() <= 4.5 * spread, "{a} {b}: {share} {expected}");
            }
        }
    }
}
