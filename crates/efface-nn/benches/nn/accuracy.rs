//! Accuracy on held-out texts, a network for each seed. The seed decides the split, the drawn
//! weights and the order of training.

use std::time::Instant;

use efface::{Logistic, Recipe, Ridge};
use efface_nn::{
    EncoderSettings, EpochReport, NetworkRecipe, TrainSettings, TrainingCheckpoint, TrainingFlow,
    TrainingProgress,
};

use crate::corpus::{Corpus, spread, vectors};
use crate::usage::peak_megabytes;

/// Tells of every epoch on the error stream.
pub(crate) struct Print(pub(crate) Instant);

impl TrainingProgress for Print {
    fn epoch(&mut self, report: &EpochReport, _checkpoint: &TrainingCheckpoint) -> TrainingFlow {
        let (loss, hits) = report.validation.unwrap_or_default();
        eprintln!(
            "  epoch {:2}: loss {:.4}, accuracy {:.4}; validation {loss:.4}, {hits:.4}{} ({:.1} s)",
            report.epoch,
            report.loss,
            report.accuracy,
            if report.best { " *" } else { "" },
            self.0.elapsed().as_secs_f64()
        );
        TrainingFlow::Continue
    }
}

pub(crate) fn run(data: &str, first: u64, seeds: u64, threads: usize) {
    println!(
        "\n| data | network | seed | ridge head | softmax head | epochs | training, s | peak MB |\n|---|---|---|---|---|---|---|---|"
    );
    each(
        &Corpus::bbc(data),
        (
            "BBC news",
            "BiLSTM, 96 a direction",
            EncoderSettings::bilstm(96),
            250,
        ),
        data,
        first..first + seeds,
        threads,
    );
    each(
        &Corpus::agnews(data),
        (
            "AG News",
            "six layers of 64",
            EncoderSettings::stacked(64, 6),
            100,
        ),
        data,
        first..first + seeds,
        threads,
    );
}

fn each(
    corpus: &Corpus,
    (name, network, encoder, max_tokens): (&str, &str, EncoderSettings, usize),
    data: &str,
    seeds: std::ops::Range<u64>,
    threads: usize,
) {
    let embedding = vectors(data);
    let mut ridge = Vec::new();
    let mut softmax = Vec::new();
    for seed in seeds {
        let (test, train) = corpus.split(seed);
        let rows = corpus.rows(&train, &embedding, max_tokens);
        let training = TrainSettings {
            epochs: 12,
            seed,
            threads,
            patience: 4,
            ..TrainSettings::default()
        };
        let head = Recipe::new(Ridge::new(1.0));
        let recipe = NetworkRecipe {
            embedding: embedding.clone(),
            encoder,
            training,
            head,
        };
        let start = Instant::now();
        let trained = recipe.train(&rows, &mut Print(start)).unwrap();
        let took = start.elapsed().as_secs_f64();
        let other = trained
            .network
            .with_head(&Recipe::new(Logistic::new(1.0)), &trained.encoded)
            .unwrap();
        ridge.push(corpus.accuracy(&corpus.classify(&trained.network, &test), &test));
        softmax.push(corpus.accuracy(&corpus.classify(&other, &test), &test));
        println!(
            "| {name} | {network} | {seed} | {:.4} | {:.4} | {} | {took:.0} | {:.0} |",
            ridge[ridge.len() - 1],
            softmax[softmax.len() - 1],
            trained.checkpoint.history.len(),
            peak_megabytes()
        );
    }
    let (mean, deviation) = spread(&ridge);
    let (other, beside) = spread(&softmax);
    println!(
        "| {name} | {network} | all | {mean:.4} ± {deviation:.4} | {other:.4} ± {beside:.4} | | | |"
    );
}
