//! Rows to measure with.

use efface::{Csr, Dense, Rows};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// How the columns of a table go together.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    Independent,
    /// Ten common causes and a tenth of noise: the condition of XᵀX is above a million.
    Correlated,
}

impl ColumnKind {
    pub(crate) fn of(name: &str) -> Self {
        if name == "correlated" {
            Self::Correlated
        } else {
            Self::Independent
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Independent => "independent",
            Self::Correlated => "correlated",
        }
    }
}

/// A dense table with one target. Numbers are sums of two uniform ones: their shape does not matter
/// here, and making them does not take longer than what is measured.
pub(crate) struct GeneratedTable {
    pub(crate) x: Vec<f64>,
    pub(crate) y: Vec<f64>,
    pub(crate) width: usize,
}

impl GeneratedTable {
    pub(crate) fn new(rows: usize, width: usize, kind: ColumnKind) -> Self {
        const CAUSES: usize = 10;
        let mut rng = ChaCha8Rng::seed_from_u64((rows * 31 + width) as u64);
        let mut next = || rng.random::<f64>() + rng.random::<f64>() - 1.0;
        let mix: Vec<f64> = (0..CAUSES * width).map(|_| next()).collect();
        let truth: Vec<f64> = (0..width).map(|_| next()).collect();
        let mut x = Vec::with_capacity(rows * width);
        let mut y = Vec::with_capacity(rows);
        for _ in 0..rows {
            let start = x.len();
            if kind == ColumnKind::Independent {
                x.extend((0..width).map(|_| next()));
            } else {
                let causes: [f64; CAUSES] = std::array::from_fn(|_| next());
                for j in 0..width {
                    let common: f64 = (0..CAUSES).map(|c| causes[c] * mix[c * width + j]).sum();
                    x.push(common + 0.1 * next());
                }
            }
            let score: f64 = x[start..].iter().zip(&truth).map(|(x, t)| x * t).sum();
            y.push(score + next());
        }
        Self { x, y, width }
    }

    pub(crate) fn rows(self) -> Rows {
        Rows::new(Dense::new(self.x, self.width).unwrap(), self.y, 1).unwrap()
    }
}

/// Rows of words: as many different ones a row, the frequent ones first, as Zipf's law has them.
pub(crate) fn sparse_table(rows: usize, width: usize, words: usize) -> Rows {
    let mut rng = ChaCha8Rng::seed_from_u64((rows * 31 + width) as u64);
    let mut table = Csr::<f64>::new(width);
    let mut y = Vec::with_capacity(rows);
    for _ in 0..rows {
        let draw = |u: f64| ((u * (width as f64).ln()).exp() as u32 - 1).min(width as u32 - 1);
        let mut entries: Vec<(u32, f64)> = (0..words).map(|_| (draw(rng.random()), 1.0)).collect();
        entries.sort_by_key(|entry| entry.0);
        entries.dedup_by_key(|entry| entry.0);
        table.push(&entries).unwrap();
        y.push(
            entries
                .iter()
                .map(|(j, _)| f64::from(j % 7) - 3.0)
                .sum::<f64>()
                + rng.random::<f64>(),
        );
    }
    Rows::new(table, y, 1).unwrap()
}
