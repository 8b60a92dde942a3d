//! The likelihood-ratio attack on margins that somebody has already collected: LiRA (Carlini et al. 2022), and U-LiRA (Hayes
//! et al. 2024) when the models "with" a row have unlearned it since. It asks nothing of the models, so that it serves
//! networks as well as the families of this crate.

use super::attack::{Attack, judged};
use super::bootstrap::Bootstrap;
use super::games::{Game, Games};
use super::klom::normal;
use crate::error::{Error, Result};

/// With fewer margins a side than this, the two normal distributions of a row share a variance.
const OWN_VARIANCE: usize = 32;
/// Spreads below this share of the margin are rounding.
const FLOOR: f64 = 1e-9;

/// Which half of the models a model belongs to. Neighbours 2i and 2i + 1 stay together: they are best drawn as opposites, so
/// that every row is in as many models of a half as it is out of.
pub(super) fn fold(model: usize) -> usize {
    model / 2 % 2
}

/// `margins[model][row]`, and whether that row was `inside` when that model was trained. The attacker who judges a model was
/// fitted on the other half of the models, and the two halves' results are averaged; intervals resample models.
pub fn likelihood_ratio(margins: &[&[f64]], inside: &[Vec<bool>], settings: &Bootstrap) -> Result<Attack> {
    let rows = margins.first().map_or(0, |margins| margins.len());
    let shape = |what, found, expected| Err(Error::Shape { what, found, expected });
    if inside.len() != margins.len() {
        return shape("lists of members", inside.len(), margins.len());
    }
    let lengths = margins.iter().map(|list| list.len()).chain(inside.iter().map(Vec::len));
    if let Some(other) = lengths.into_iter().find(|&length| length != rows) {
        return shape("rows of a model", other, rows);
    }
    let mut folds = Vec::new();
    for half in 0..2 {
        let (judges, shadows): (Vec<usize>, Vec<usize>) =
            (0..margins.len()).partition(|&model| fold(model) == half);
        let mut games = Vec::new();
        for row in 0..rows {
            let samples = |member: bool| -> Vec<f64> {
                let of = shadows.iter().filter(|model| inside[**model][row] == member);
                of.map(|model| margins[*model][row]).collect()
            };
            let attacker = Attacker::new(&samples(true), &samples(false))?;
            for (cluster, &model) in judges.iter().enumerate() {
                let score = attacker.score(margins[model][row]);
                games.push(Game { score, member: inside[model][row], cluster });
            }
        }
        folds.push(Games::new(games)?);
    }
    judged(&folds, settings)
}

/// What an attacker knows of one row: how its margin is distributed with it and without it.
struct Attacker {
    with: (f64, f64),
    without: (f64, f64),
}

impl Attacker {
    fn new(with: &[f64], without: &[f64]) -> Result<Self> {
        let found = with.len().min(without.len());
        if found < 2 {
            let advice = "a row must be in two models of each half and out of two; train more";
            return Err(Error::TooFew { what: "margins of a row", found, needed: 2, advice });
        }
        let (mut p, mut q) = (normal(with), normal(without));
        if found < OWN_VARIANCE {
            let (n, m) = (with.len() as f64 - 1.0, without.len() as f64 - 1.0);
            let shared = ((n * p.1 * p.1 + m * q.1 * q.1) / (n + m)).sqrt();
            (p.1, q.1) = (shared, shared);
        }
        let floor = FLOOR * (1.0 + p.0.abs().max(q.0.abs()));
        Ok(Self { with: (p.0, p.1.max(floor)), without: (q.0, q.1.max(floor)) })
    }

    /// log N(m; with) − log N(m; without).
    fn score(&self, margin: f64) -> f64 {
        let log = |(mean, spread): (f64, f64)| -((margin - mean) / spread).powi(2) / 2.0 - spread.ln();
        log(self.with) - log(self.without)
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// 64 models and 40 rows; a row's margin is higher by `lift` where it is in.
    fn world(lift: f64, seed: u64) -> Result<Attack> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut noise = || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        let inside: Vec<Vec<bool>> = (0..64)
            .map(|model| (0..40).map(|row| (model / 2 * 7 + row) % 3 == model % 2).collect())
            .collect();
        let margins: Vec<Vec<f64>> = (inside.iter())
            .map(|inside| inside.iter().map(|inside| noise() + lift * f64::from(u8::from(*inside))).collect())
            .collect();
        let views: Vec<&[f64]> = margins.iter().map(Vec::as_slice).collect();
        likelihood_ratio(&views, &inside, &Bootstrap::default())
    }

    #[test]
    fn a_leak_is_found_and_a_coin_is_a_coin() {
        let coins: Vec<Attack> = (0..40).map(|seed| world(0.0, seed).unwrap()).collect();
        let mean = coins.iter().map(|coin| coin.auc).sum::<f64>() / 40.0;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
        // 95 % intervals: 38 of 40 are expected to cover, 33 or fewer would happen once in a thousand times.
        let covered = coins.iter().filter(|coin| coin.auc_interval.low < 0.5 && coin.auc_interval.high > 0.5);
        assert!(covered.count() > 33);
        // Members one standard deviation higher: the best attacker has Φ(1/√2) = 0.760.
        let leak = world(1.0, 7).unwrap();
        assert!(leak.auc > 0.70 && leak.auc < 0.78, "{leak:?}");
    }

    #[test]
    fn shapes_and_numbers_are_checked() {
        let line = vec![0.5; 3];
        let margins: Vec<&[f64]> = vec![&line; 8];
        let fault = |inside: &[Vec<bool>]| {
            likelihood_ratio(&margins, inside, &Bootstrap::default()).unwrap_err().to_string()
        };
        assert!(fault(&vec![vec![true; 3]; 7]).contains("lists of members"));
        assert!(fault(&vec![vec![true; 2]; 8]).contains("rows of a model"));
        assert!(fault(&vec![vec![true; 3]; 8]).contains("margins of a row: 0"));
        let nan = vec![f64::NAN; 3];
        let margins: Vec<&[f64]> = vec![&nan; 8];
        let inside: Vec<Vec<bool>> = (0..8).map(|model| vec![model % 2 == 0; 3]).collect();
        assert!(likelihood_ratio(&margins, &inside, &Bootstrap::default()).is_err());
    }
}
