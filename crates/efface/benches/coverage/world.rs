//! Margins as an audit would see them, drawn from a known distribution.

use efface::Result;
use efface::eval::{Attack, Bootstrap, likelihood_ratio};
use efface::random::{SeededRng, seeded};
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_distr::{Distribution, StandardNormal};

/// Resampling gives the intervals of the rates, which this example does not use: as few resamples
/// as are allowed.
pub(crate) const LITTLE_RESAMPLING: usize = 20;

/// Rows and how their margins vary: three factors that all rows of a model share make up half of
/// the variance.
pub(crate) struct MarginWorld {
    oracles: usize,
    means: Vec<f64>,
    loads: Vec<[f64; 3]>,
    lifts: Vec<f64>,
}

impl MarginWorld {
    /// Rows whose margins are higher by `lift`, more or less, in models that saw them.
    pub(crate) fn new(oracles: usize, rows: usize, lift: f64) -> Self {
        let mut rng = seeded(rows as u64);
        let means = normals(&mut rng, rows);
        let loads = (0..rows).map(|_| unit(&normals(&mut rng, 3))).collect();
        let lifts = (0..rows)
            .map(|_| lift * (0.5 + rng.random::<f64>()))
            .collect();
        Self {
            oracles,
            means,
            loads,
            lifts,
        }
    }

    /// One audit: pairs of models that have opposite halves of the rows, and whose factors are
    /// correlated by −0.3.
    pub(crate) fn audit(&self, seed: u64) -> Result<Attack> {
        let mut rng = seeded(seed);
        let rows = self.means.len();
        let mut margins = Vec::new();
        let mut inside = Vec::new();
        for _ in 0..self.oracles / 2 {
            let mut order: Vec<usize> = (0..rows).collect();
            order.shuffle(&mut rng);
            let half = rows / 2 + rows % 2 * usize::from(rng.random::<f64>() < 0.5);
            let shared = normals(&mut rng, 3);
            for sign in [1.0, -1.0] {
                let mut members = vec![sign < 0.0; rows];
                order[..half]
                    .iter()
                    .for_each(|row| members[*row] = sign > 0.0);
                let own = normals(&mut rng, 3);
                let factors: Vec<f64> = (shared.iter().zip(&own))
                    .map(|(shared, own)| 0.3f64.sqrt() * sign * shared + 0.7f64.sqrt() * own)
                    .collect();
                let noise = normals(&mut rng, rows);
                let margin = |row: usize| {
                    let common: f64 = self.loads[row]
                        .iter()
                        .zip(&factors)
                        .map(|(load, f)| load * f)
                        .sum();
                    let lift = if members[row] { self.lifts[row] } else { 0.0 };
                    self.means[row] + 0.5f64.sqrt() * (common + noise[row]) + lift
                };
                margins.push((0..rows).map(margin).collect::<Vec<f64>>());
                inside.push(members);
            }
        }
        let views: Vec<&[f64]> = margins.iter().map(Vec::as_slice).collect();
        let settings = Bootstrap {
            resamples: LITTLE_RESAMPLING,
            seed,
            ..Bootstrap::default()
        };
        likelihood_ratio(&views, &inside, &settings)
    }
}

fn normals(rng: &mut SeededRng, count: usize) -> Vec<f64> {
    StandardNormal.sample_iter(rng).take(count).collect()
}

fn unit(vector: &[f64]) -> [f64; 3] {
    let norm = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
    [vector[0] / norm, vector[1] / norm, vector[2] / norm]
}
