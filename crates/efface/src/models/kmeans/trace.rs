//! Lloyd's iteration on a random lattice, with every stage written down so that it can be replayed
//! without the rows.
//!
//! ```text
//! stage 0   centres from k-means++                              save partition sums, masses and loss
//! stage τ   c_κ = Σ_{i∈π_κ} w_i x_i / m_κ                        the mean of the cluster in stage τ−1
//!           c_κ ← a·c_κ + (1−a)·previous,  a = min(1, k·m_κ/(γ·M))   the imbalance correction; M = Σ m
//!           ĉ_κ = ε(round(c_κ/ε − θ_τ) + θ_τ),  θ_τ uniform in [−½, ½]^d
//!           stop, and return stage τ−1, unless the loss falls
//! ```
//!
//! A row that leaves moves the mean of one cluster a stage by O(1/m); unless a centre thereby
//! crosses a border of its lattice, every later stage is what it was. Sums are kept in two words;
//! where a centre is nearer to a border, or two losses nearer to each other, than the arithmetic
//! can tell apart, the replay does not guess and asks for the rows.

use serde::{Deserialize, Serialize};

use super::points::{ClusterPoints, PointSource, piece};
use crate::error::{Error, Result};
use crate::models::block_sum::WaitingBlock;
use crate::models::long_sum::{LongSum, add_row};
use crate::random::{DrawPurpose, random_uniform};

/// The settings of the iteration.
#[derive(Debug, Clone, Copy)]
pub(super) struct IterationRules {
    pub(super) k: usize,
    pub(super) iterations: usize,
    pub(super) seed: u64,
    /// The side of a lattice cell; 0 for no lattice.
    pub(super) epsilon: f64,
    pub(super) gamma: f64,
}

/// Centres, and the sums of the partition that they make.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct RunStage {
    pub(super) centers: Vec<f64>,
    /// Points of positive weight per cluster.
    members: Vec<usize>,
    masses: Vec<LongSum>,
    /// k × d.
    sums: Vec<LongSum>,
    loss: LongSum,
    /// What additions have lost of all masses, all sums and the loss.
    lost: [f64; 3],
}

impl RunStage {
    fn measure(centers: Vec<f64>, points: PointSource<'_>, rules: &IterationRules) -> Result<Self> {
        let mut stage = Self {
            centers,
            members: vec![0; rules.k],
            masses: vec![LongSum::default(); rules.k],
            sums: vec![LongSum::default(); rules.k * points.width()],
            loss: LongSum::default(),
            lost: [0.0; 3],
        };
        points.each_block(|block| stage.put(block, 1.0))?;
        Ok(stage)
    }

    /// Counts points in (`sign` 1) or out (−1).
    fn put(&mut self, points: &ClusterPoints, sign: f64) {
        let width = points.width;
        let mut waiting: Vec<WaitingBlock<'_>> = (0..self.masses.len())
            .map(|_| WaitingBlock::default())
            .collect();
        let together = piece(width);
        let mut at = 0;
        points.each_nearest(&self.centers.clone(), |cluster, distance| {
            if at > 0 && at % together == 0 {
                for (cluster, waiting) in waiting.iter_mut().enumerate() {
                    self.add_waiting(cluster, waiting, width);
                }
            }
            let point = points.point(at);
            let weight = sign * points.weight(at);
            at += 1;
            if weight == 0.0 {
                return;
            }
            let members = &mut self.members[cluster];
            *members = if sign > 0.0 {
                *members + 1
            } else {
                members.saturating_sub(1)
            };
            self.lost[0] += self.masses[cluster].add(weight);
            self.lost[2] += self.loss.add_product(weight, distance);
            if weight == 1.0 {
                if waiting[cluster].push(point) {
                    self.add_waiting(cluster, &mut waiting[cluster], width);
                }
                return;
            }
            let sums = &mut self.sums[cluster * width..(cluster + 1) * width];
            self.lost[1] += add_row(sums, weight, point, false);
            if self.members[cluster] == 0 {
                self.masses[cluster] = LongSum::default();
                self.sums[cluster * width..(cluster + 1) * width].fill(LongSum::default());
            }
        });
        for (cluster, waiting) in waiting.iter_mut().enumerate() {
            self.add_waiting(cluster, waiting, width);
        }
    }

    fn add_waiting(&mut self, cluster: usize, waiting: &mut WaitingBlock<'_>, width: usize) {
        let sums = &mut self.sums[cluster * width..(cluster + 1) * width];
        self.lost[1] += waiting.add_to(sums, false, self.lost[1]);
        waiting.clear();
    }

    pub(super) fn mass(&self, cluster: usize) -> f64 {
        self.masses[cluster].value()
    }

    /// The centres of stage `tau`, which follows this one, and whether the arithmetic leaves no
    /// doubt of their cells.
    fn next(&self, rules: &IterationRules, tau: usize) -> (Vec<f64>, bool) {
        let width = self.sums.len() / rules.k;
        let total: f64 = (0..rules.k).map(|cluster| self.mass(cluster)).sum();
        let mut centers = self.centers.clone();
        let mut sure = true;
        for cluster in 0..rules.k {
            let mass = self.mass(cluster);
            let share = match (self.members[cluster], rules.gamma > 0.0) {
                (0, _) => 0.0,
                (_, true) => (rules.k as f64 * mass / (rules.gamma * total)).min(1.0),
                (_, false) => 1.0,
            };
            for j in 0..width {
                let at = cluster * width + j;
                let before = self.centers[at];
                let mut center = before;
                let mut doubt = 0.0;
                if share > 0.0 {
                    let mean = self.sums[at].over(self.masses[cluster]);
                    center = if share == 1.0 {
                        mean
                    } else {
                        share * mean + (1.0 - share) * before
                    };
                    let size = mean.abs() + before.abs();
                    doubt = (self.lost[1] + 2.0 * size * self.lost[0]) / mass
                        + 8.0 * f64::EPSILON * size;
                }
                if rules.epsilon > 0.0 {
                    let offset =
                        random_uniform(rules.seed, DrawPurpose::Lattice, tau as u64, j as u64)
                            - 0.5;
                    let place = center / rules.epsilon - offset;
                    let cell = place.round();
                    let margin = 0.5 - (place - cell).abs();
                    sure &= margin
                        > 4.0 * doubt / rules.epsilon + 8.0 * f64::EPSILON * (place.abs() + 1.0);
                    center = (cell + offset) * rules.epsilon;
                }
                centers[at] = center;
            }
        }
        (centers, sure)
    }

    /// Whether the loss is below that of `before`, and whether the arithmetic leaves no doubt of
    /// it.
    fn improves(&self, before: &Self) -> (bool, bool) {
        let gain = before.loss.minus(self.loss).value();
        let doubt = 4.0 * (self.lost[2] + before.lost[2]) + 1e-28 * before.loss.value();
        (gain > 0.0, gain.abs() > doubt)
    }
}

/// A finished run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct LloydTrace {
    /// The ids of the points that k-means++ chose.
    pub(super) initial: Vec<u64>,
    stages: Vec<RunStage>,
    /// Whether the last stage did not improve on the one before it, which then is the result.
    stopped: bool,
}

/// The result of a replay.
pub(super) enum ReplayResult {
    /// Nothing visible changed; only sums did.
    Same(LloydTrace),
    /// The stages up to here stand; the rest has to be computed anew.
    From(LloydTrace),
    /// The beginning is gone, or the arithmetic is in doubt: everything has to be computed anew.
    Scratch,
}

/// Why a run has no result.
#[derive(Debug)]
pub(super) enum RunFault {
    /// There are fewer distinct points than clusters: so many.
    TooFew(usize),
    /// The points could not be read.
    Unread(Error),
}

impl From<Error> for RunFault {
    fn from(error: Error) -> Self {
        Self::Unread(error)
    }
}

impl LloydTrace {
    /// The whole run.
    pub(super) fn new(
        points: PointSource<'_>,
        rules: &IterationRules,
    ) -> std::result::Result<Self, RunFault> {
        let start = points.plus_plus(rules.k, rules.seed)?;
        if start.ids.len() < rules.k {
            return Err(RunFault::TooFew(start.ids.len()));
        }
        let first = RunStage::measure(start.centers, points, rules)?;
        let trace = Self {
            initial: start.ids,
            stages: vec![first],
            stopped: false,
        };
        Ok(trace.run(points, rules)?)
    }

    /// Goes on from the last stage.
    fn run(mut self, points: PointSource<'_>, rules: &IterationRules) -> Result<Self> {
        while let Some(last) = self.stages.last()
            && self.stages.len() <= rules.iterations
            && !points.is_stopped()
        {
            let (centers, _) = last.next(rules, self.stages.len());
            let stage = RunStage::measure(centers, points, rules)?;
            let (better, _) = stage.improves(last);
            self.stages.push(stage);
            if !better {
                self.stopped = true;
                break;
            }
        }
        Ok(self)
    }

    /// Goes on from a replay. None where the first comparison, with a loss that rows were taken out
    /// of, is in doubt.
    pub(super) fn resume(
        self,
        points: PointSource<'_>,
        rules: &IterationRules,
    ) -> Result<Option<Self>> {
        let at = self.stages.len();
        let whole = self.run(points, rules)?;
        let last = at
            .checked_sub(1)
            .and_then(|before| whole.stages.get(before));
        let (Some(last), Some(next)) = (last, whole.stages.get(at)) else {
            return Ok(None);
        };
        let is_clear = next.improves(last).1;
        Ok(is_clear.then_some(whole))
    }

    /// The stage whose centres are the result; None only for a damaged trace.
    pub(super) fn result(&self) -> Option<&RunStage> {
        self.stages.iter().rev().nth(self.stopped as usize)
    }

    /// Takes points out of every stage and looks whether anything visible changes.
    pub(super) fn without(&self, gone: &ClusterPoints, rules: &IterationRules) -> ReplayResult {
        if gone.ids.iter().any(|id| self.initial.contains(id)) {
            return ReplayResult::Scratch;
        }
        let mut next = Self {
            initial: self.initial.clone(),
            stages: Vec::new(),
            stopped: false,
        };
        for (tau, stored) in self.stages.iter().enumerate() {
            let mut stage = stored.clone();
            stage.put(gone, -1.0);
            if let Some(last) = next.stages.last() {
                let (centers, sure) = last.next(rules, tau);
                let (better, clear) = stage.improves(last);
                if !sure || (centers == stage.centers && !clear) {
                    return ReplayResult::Scratch;
                }
                let stops = self.stopped && tau + 1 == self.stages.len();
                if centers != stage.centers || better == stops {
                    return ReplayResult::From(next);
                }
            }
            next.stages.push(stage);
        }
        next.stopped = self.stopped;
        ReplayResult::Same(next)
    }

    pub(super) fn iterations(&self) -> usize {
        self.stages.len() - 1
    }

    pub(super) fn bytes(&self) -> usize {
        self.stages
            .iter()
            .map(|s| s.centers.len() * 8 + (s.sums.len() + s.masses.len()) * 16)
            .sum()
    }

    /// Whether the parts of a stored trace fit together.
    pub(super) fn is_sound(&self, rules: &IterationRules, width: usize) -> bool {
        let whole = |s: &RunStage| {
            s.centers.len() == rules.k * width
                && s.sums.len() == s.centers.len()
                && [s.members.len(), s.masses.len()] == [rules.k; 2]
                && s.centers.iter().all(|c| c.is_finite())
                && s.sums
                    .iter()
                    .chain(&s.masses)
                    .chain([&s.loss])
                    .all(|sum| sum.is_finite())
        };
        self.initial.len() == rules.k
            && self.stages.iter().all(whole)
            && (1..=rules.iterations + 1).contains(&self.stages.len())
            && (!self.stopped || self.stages.len() > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(positions: &[f64], weights: &[f64]) -> ClusterPoints {
        let mut points = ClusterPoints::new(1);
        for (id, (x, weight)) in positions.iter().zip(weights).enumerate() {
            points.push(id as u64, &[*x], *weight);
        }
        points
    }

    fn rules(k: usize, epsilon: f64, gamma: f64) -> IterationRules {
        IterationRules {
            k,
            iterations: 10,
            seed: 3,
            epsilon,
            gamma,
        }
    }

    /// Ginart et al.: where m < γ·n/k, c ← (m·c + (γ·n/k − m)·previous) / (γ·n/k).
    #[test]
    fn a_small_cluster_is_pulled_back_to_its_previous_centre() {
        let positions = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 20.0, 22.0, 70.0];
        let points = line(&positions, &[1.0; 10]);
        let stage = |rules: &IterationRules| {
            RunStage::measure(
                vec![1.0, 30.0, 60.0, 500.0],
                PointSource::Held(&points),
                rules,
            )
            .unwrap()
        };
        let next = |gamma| {
            let rules = rules(4, 0.0, gamma);
            stage(&rules).next(&rules, 1).0
        };
        // Clusters of 7, 2, 1 and no points with means 3, 21 and 70; γ·n/k is 2 in the second line,
        // 2.5 in the third.
        assert_eq!(next(0.0), [3.0, 21.0, 70.0, 500.0]);
        assert_eq!(
            next(0.8),
            [3.0, 21.0, (1.0 * 70.0 + 1.0 * 60.0) / 2.0, 500.0]
        );
        let pulled = [
            (2.0 * 21.0 + 0.5 * 30.0) / 2.5,
            (1.0 * 70.0 + 1.5 * 60.0) / 2.5,
        ];
        for (ours, theirs) in next(1.0).iter().zip([3.0, pulled[0], pulled[1], 500.0]) {
            assert!((ours - theirs).abs() < 1e-13, "{ours} {theirs}");
        }
        // A weight counts as so many points.
        let twice = line(&positions[..9], &[2.0; 9]);
        let once: Vec<f64> = positions[..9].iter().flat_map(|x| [*x, *x]).collect();
        let rules = rules(2, 0.0, 1.0);
        let [a, b] = [&twice, &line(&once, &[1.0; 18])].map(|points| {
            let stage =
                RunStage::measure(vec![1.0, 30.0], PointSource::Held(points), &rules).unwrap();
            stage.next(&rules, 1).0
        });
        assert_eq!(a, b);
    }

    /// Ginart et al.: Q(c) is the point nearest to c among ε(θ + ℤ^d), with one θ for all centres
    /// of an iteration.
    #[test]
    fn centres_go_to_the_nearest_point_of_a_random_lattice() {
        let points = line(&[0.0, 1.0, 2.0, 20.0, 22.0, 70.0], &[1.0; 6]);
        let fine = rules(3, 0.0, 0.2);
        let epsilon = 0.7;
        let coarse = IterationRules { epsilon, ..fine };
        let stage =
            RunStage::measure(vec![1.0, 30.0, 60.0], PointSource::Held(&points), &fine).unwrap();
        let exact = stage.next(&fine, 1).0;
        let mut offsets = Vec::new();
        for tau in 1..400 {
            let offset = random_uniform(coarse.seed, DrawPurpose::Lattice, tau as u64, 0) - 0.5;
            assert!((-0.5..0.5).contains(&offset));
            for (rounded, center) in stage.next(&coarse, tau).0.iter().zip(&exact) {
                let near = |cell: i32| epsilon * (offset + f64::from(cell));
                let best = (-5..110)
                    .map(near)
                    .min_by(|a, b| (a - center).abs().total_cmp(&(b - center).abs()));
                assert!(
                    best.is_some_and(|best| (best - rounded).abs() < 1e-9),
                    "{tau}: {rounded} {center}"
                );
            }
            offsets.push(offset);
        }
        let mean = offsets.iter().sum::<f64>() / 399.0;
        let square = offsets.iter().map(|x| x * x).sum::<f64>() / 399.0;
        // Uniform on [−½, ½]: mean 0 ± 0.0145, second moment 1/12 ± 0.0037, each within four
        // deviations.
        assert!(
            mean.abs() < 0.058 && (square - 1.0 / 12.0).abs() < 0.015,
            "{mean} {square}"
        );
    }

    /// The run ends where the loss does not fall, and the stage before is the result; the start
    /// counts as a stage.
    #[test]
    fn the_result_is_the_stage_of_least_loss() {
        let positions: Vec<f64> = (0..40).map(|i| f64::from(i * i % 97)).collect();
        let points = line(&positions, &[1.0; 40]);
        let mut stopped = 0;
        let mut at_the_start = 0;
        for seed in 0..200 {
            for (epsilon, iterations) in [(20.0, 10), (0.5, 3)] {
                let rules = IterationRules {
                    k: 4,
                    iterations,
                    seed,
                    epsilon,
                    gamma: 0.2,
                };
                let Ok(trace) = LloydTrace::new(PointSource::Held(&points), &rules) else {
                    panic!("enough points")
                };
                let losses: Vec<f64> = trace
                    .stages
                    .iter()
                    .map(|stage| stage.loss.value())
                    .collect();
                let last = losses.len() - 1;
                let falling = &losses[..if trace.stopped { last } else { losses.len() }];
                assert!(falling.is_sorted_by(|a, b| a > b), "{losses:?}");
                assert!(
                    !trace.stopped || losses[last] >= losses[last - 1],
                    "{losses:?}"
                );
                assert!(trace.stopped || last == iterations, "{losses:?}");
                assert_eq!(
                    trace.result().map(|stage| stage.loss.value()),
                    falling.last().copied()
                );
                stopped += trace.stopped as usize;
                at_the_start += (trace.stopped && last == 1) as usize;
            }
        }
        assert!(
            (1..400).contains(&stopped) && at_the_start > 0,
            "{stopped} {at_the_start}"
        );
    }
}
