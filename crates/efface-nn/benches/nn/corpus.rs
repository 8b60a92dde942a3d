//! Texts with a label each, split by a seed.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use efface::random::scrambled;
use efface::{Classes, Predict, Rows};
use efface_nn::{Embedding, Network, text_rows};
use faer::Mat;

/// A data set as it comes from its file.
pub(crate) struct Corpus {
    pub(crate) texts: Vec<String>,
    pub(crate) labels: Vec<usize>,
    pub(crate) classes: Classes,
}

impl Corpus {
    /// The label is the first column, the text all others joined.
    pub(crate) fn read(path: &Path) -> Self {
        let mut reader = csv::Reader::from_path(path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut texts = Vec::new();
        let mut names = Vec::new();
        for record in reader.records() {
            let record = record.unwrap();
            names.push(record[0].to_string());
            texts.push(record.iter().skip(1).collect::<Vec<_>>().join(" "));
        }
        let mut sorted = names.clone();
        sorted.sort();
        sorted.dedup();
        let labels = names
            .iter()
            .map(|name| sorted.binary_search(name).unwrap())
            .collect();
        Self {
            texts,
            labels,
            classes: Classes::new(sorted).unwrap(),
        }
    }

    pub(crate) fn bbc(data: &str) -> Self {
        Self::read(&Path::new(data).join("bbc/bbc-text.csv"))
    }

    pub(crate) fn agnews(data: &str) -> Self {
        Self::read(&Path::new(data).join("agnews/ag-news-test-7600.csv"))
    }

    /// Rows to test with, a fifth of all, and rows to learn from, in an order that follows from the
    /// seed.
    pub(crate) fn split(&self, seed: u64) -> (Vec<usize>, Vec<usize>) {
        let mut order: Vec<usize> = (0..self.texts.len()).collect();
        order.sort_by(|&a, &b| draw(seed, a as u64).total_cmp(&draw(seed, b as u64)));
        let train = order.split_off(self.texts.len() / 5);
        (order, train)
    }

    /// Some of the texts, as rows of word ids.
    pub(crate) fn rows(&self, part: &[usize], embedding: &Embedding, max_tokens: usize) -> Rows {
        let ids = text_rows(
            embedding,
            part.iter().map(|&at| self.texts[at].as_str()),
            max_tokens,
        )
        .unwrap();
        Rows::new(ids.features, self.targets(part), self.classes.outputs()).unwrap()
    }

    pub(crate) fn targets(&self, part: &[usize]) -> Vec<f64> {
        let mut targets = Vec::new();
        part.iter()
            .for_each(|&at| self.classes.encode(self.labels[at], &mut targets));
        targets
    }

    /// The class of each row of scores.
    pub(crate) fn decide(&self, scores: &Mat<f64>) -> Vec<usize> {
        let line = |row| {
            (0..scores.ncols())
                .map(|output| scores[(row, output)])
                .collect::<Vec<f64>>()
        };
        (0..scores.nrows())
            .map(|row| self.classes.decide(&line(row)))
            .collect()
    }

    /// What a network makes of some of the texts.
    pub(crate) fn classify(&self, network: &Network, part: &[usize]) -> Vec<usize> {
        let texts = part.iter().map(|&at| self.texts[at].as_str());
        let ids = text_rows(network.embedding(), texts, network.max_tokens()).unwrap();
        self.decide(&network.predict(&ids.features).unwrap())
    }

    /// Share of right answers.
    pub(crate) fn accuracy(&self, answers: &[usize], part: &[usize]) -> f64 {
        let right = answers
            .iter()
            .zip(part)
            .filter(|(answer, at)| **answer == self.labels[**at]);
        right.count() as f64 / part.len() as f64
    }
}

/// The word vectors of the data folder.
pub(crate) fn vectors(data: &str) -> Arc<Embedding> {
    let open = |name: &str| {
        let path = Path::new(data).join("embeddings").join(name);
        File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let words = open("glove-6b-100d-top40k.vocab.txt");
    let numbers = open("glove-6b-100d-top40k.f16le.bin");
    Arc::new(Embedding::read_half(words, numbers, 100).unwrap())
}

/// A number between 0 and 1 for each row and seed.
pub(crate) fn draw(seed: u64, row: u64) -> f64 {
    let word = scrambled((seed << 32 ^ row).wrapping_add(0x9e37_79b9_7f4a_7c15));
    (word >> 11) as f64 / (1u64 << 53) as f64
}

/// Mean and standard deviation.
pub(crate) fn spread(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let square = values
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>();
    (mean, (square / (values.len().max(2) - 1) as f64).sqrt())
}
