//! Random Fourier features: cosines in random directions, whose products approximate a Gaussian
//! kernel (Rahimi and Recht 2007).
//!
//! The direction of a feature follows from the seed and from the feature's name. Which other
//! features there are has no say in it, so that a level or a word which leaves with its last row
//! leaves all others as they were: nothing here has to forget.

use std::borrow::Cow;
use std::f64::consts::TAU;

use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use super::FeatureError;
use crate::random::{scrambled, seeded_stream};

/// The most numbers that directions may need: 1 GiB.
const MOST_NUMBERS: u64 = 1 << 27;

/// The directions of all features, and the phase of every wave.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RandomWaves {
    phases: Vec<f64>,
    /// One number for each wave, feature after feature.
    directions: Vec<f64>,
    height: f64,
}

impl RandomWaves {
    pub(super) fn new<'a>(
        names: impl ExactSizeIterator<Item = Option<Cow<'a, str>>>,
        waves: usize,
        scale: f64,
        seed: u64,
    ) -> Result<Self, FeatureError> {
        let numbers = names.len() as u64 * waves as u64;
        if numbers > MOST_NUMBERS {
            return Err(FeatureError::TooManyWaves {
                features: names.len(),
                waves,
                limit: MOST_NUMBERS,
            });
        }
        // No name hashes to the stream of the phases: it is that of the empty name.
        let mut random = seeded_stream(seed, hash(""));
        let phases = (0..waves).map(|_| random.random_range(0.0..TAU)).collect();
        let mut directions = Vec::with_capacity(numbers as usize);
        for name in names {
            match name {
                Some(name) => {
                    let random = seeded_stream(seed, hash(&format!("feature {name}")));
                    let normals = Distribution::<f64>::sample_iter(StandardNormal, random);
                    directions.extend(normals.take(waves).map(|normal| normal / scale));
                }
                // An erased name is 0 in every row.
                None => directions.extend(std::iter::repeat_n(0.0, waves)),
            }
        }
        Ok(Self {
            phases,
            directions,
            height: (2.0 / waves as f64).sqrt(),
        })
    }

    /// The number of waves.
    pub(super) fn len(&self) -> usize {
        self.phases.len()
    }

    /// Replaces the features of a row by the waves.
    pub(super) fn expand(&self, row: &mut Vec<(u32, f64)>) {
        let mut angles = self.phases.clone();
        for &(feature, value) in row.iter() {
            let first = feature as usize * angles.len();
            let direction = &self.directions[first..first + angles.len()];
            angles
                .iter_mut()
                .zip(direction)
                .for_each(|(angle, along)| *angle += value * along);
        }
        row.clear();
        row.extend(
            (0..)
                .zip(angles)
                .map(|(wave, angle)| (wave, self.height * angle.cos())),
        );
    }
}

/// The stream of a name: FNV-1a, with its bits spread.
fn hash(name: &str) -> u64 {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    scrambled(name.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, fold))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waves(names: &[&'static str]) -> RandomWaves {
        let names: Vec<_> = names
            .iter()
            .map(|name| Some(Cow::Borrowed(*name)))
            .collect();
        RandomWaves::new(names.into_iter(), 4000, 2.0, 7).unwrap()
    }

    fn expanded(waves: &RandomWaves, row: &[(u32, f64)]) -> Vec<f64> {
        let mut row = row.to_vec();
        waves.expand(&mut row);
        row.into_iter().map(|(_, value)| value).collect()
    }

    #[test]
    fn products_approximate_the_kernel() {
        let waves = waves(&["a", "b"]);
        let rows = [
            [(0, 1.0), (1, -0.5)],
            [(0, 0.2), (1, 1.5)],
            [(0, 6.0), (1, 4.0)],
        ];
        for x in rows {
            for y in rows {
                let product: f64 = expanded(&waves, &x)
                    .iter()
                    .zip(&expanded(&waves, &y))
                    .map(|(x, y)| x * y)
                    .sum();
                let distance = (x[0].1 - y[0].1).powi(2) + (x[1].1 - y[1].1).powi(2);
                let kernel = (-distance / 8.0f64).exp();
                assert!((product - kernel).abs() < 0.05, "{product} and {kernel}");
            }
        }
    }

    #[test]
    fn a_feature_goes_its_own_way_whatever_others_there_are() {
        let both = expanded(&waves(&["a", "b"]), &[(1, 3.0)]);
        assert_eq!(both, expanded(&waves(&["b"]), &[(0, 3.0)]));
        assert_ne!(both, expanded(&waves(&["a"]), &[(0, 3.0)]));
    }
}
