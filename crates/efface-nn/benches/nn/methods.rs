//! Whole networks that forget, beside retraining: accuracy on held-out articles, accuracy and loss
//! on the forgotten ones, how soon they are relearned, and the time as a share of retraining.
//!
//! Twice: articles as they are, which networks generalise to so well that forgetting them changes
//! little, and articles that were given a wrong label, which only a network that memorised them
//! gets right.

use std::time::Instant;

use efface::{Features, Logistic, Method, Predict, Recipe, RowId, Rows};
use efface_nn::{
    Backbone, EncoderSettings, Network, NetworkRecipe, QuietTraining, TrainSettings, text_rows,
    train_further,
};

use crate::corpus::{Corpus, spread, vectors};

const MAX_TOKENS: usize = 100;
/// The most steps of relearning.
const LIMIT: usize = 400;
/// The retrained network is made to take this many steps at least, so that one step more or less is
/// a small part of them.
const LEAST_STEPS: usize = 16;
const STATES: [&str; 6] = [
    "before",
    "retrain",
    "retrain_head",
    "fine_tune",
    "neggrad_plus",
    "scrub",
];

/// What is compared, and how large it is.
pub(crate) struct Sizes {
    pub(crate) hidden: usize,
    pub(crate) epochs: usize,
    /// k, the articles to forget.
    pub(crate) forgotten: usize,
    pub(crate) seeds: u64,
    pub(crate) threads: usize,
}

/// What one network came to.
struct Found {
    held_out: f64,
    accuracy: f64,
    loss: f64,
    relearned: Option<usize>,
    seconds: f64,
}

pub(crate) fn run(data: &str, sizes: &Sizes) {
    let Sizes {
        hidden,
        epochs,
        forgotten,
        seeds,
        threads,
    } = sizes;
    println!(
        "\nBBC news, BiLSTM of {hidden} a direction, softmax head, articles cut at {MAX_TOKENS} words, {epochs} epochs, {forgotten} articles to forget, {seeds} seeds, {threads} threads; means and, behind ±, standard deviations over seeds.\n"
    );
    println!(
        "| articles to forget | method | held-out accuracy | accuracy on them | loss on them | relearning, steps | s | share of retraining |\n|---|---|---|---|---|---|---|---|"
    );
    let corpus = (Corpus::bbc(data), vectors(data));
    for (name, shift) in [("as they are", 0), ("with a wrong label", 1)] {
        let runs: Vec<Vec<Found>> = (0..*seeds)
            .map(|seed| compare(&corpus, sizes, shift, seed))
            .collect();
        for (at, state) in STATES.iter().enumerate() {
            let column = |pick: &dyn Fn(&[Found]) -> f64| -> (f64, f64) {
                spread(&runs.iter().map(|run| pick(run)).collect::<Vec<f64>>())
            };
            let (held_out, deviation) = column(&|run| run[at].held_out);
            // What was not reached, or not timed, in one of the runs has no mean.
            let known = |value: f64, digits: usize| {
                if value.is_nan() {
                    "–".to_owned()
                } else {
                    format!("{value:.digits$}")
                }
            };
            let steps = |run: &[Found]| run[at].relearned.map_or(f64::NAN, |steps| steps as f64);
            println!(
                "| {name} | {state} | {held_out:.4} ± {deviation:.4} | {:.3} | {:.3} | {} | {} | {} |",
                column(&|run| run[at].accuracy).0,
                column(&|run| run[at].loss).0,
                known(column(&steps).0, 0),
                known(column(&|run| run[at].seconds).0, 2),
                known(column(&|run| run[at].seconds / run[1].seconds).0, 2),
            );
        }
    }
}

/// One seed: every state of [`STATES`].
fn compare(
    (bbc, embedding): &(Corpus, std::sync::Arc<efface_nn::Embedding>),
    sizes: &Sizes,
    shift: usize,
    seed: u64,
) -> Vec<Found> {
    let (test, train) = bbc.split(seed);
    let recipe = NetworkRecipe {
        embedding: embedding.clone(),
        encoder: EncoderSettings::bilstm(sizes.hidden),
        training: TrainSettings {
            epochs: sizes.epochs,
            seed,
            threads: sizes.threads,
            ..TrainSettings::default()
        },
        head: Recipe::new(Logistic::new(1.0)),
    };
    // The articles to forget come first, so that their ids are 0, 1, ….
    let classes = bbc.classes.names().len();
    let label = |(place, &at): (usize, &usize)| {
        if place < sizes.forgotten {
            (bbc.labels[at] + shift) % classes
        } else {
            bbc.labels[at]
        }
    };
    let labels: Vec<usize> = train.iter().enumerate().map(label).collect();
    let ids = |part: &[usize]| -> Features {
        let texts = part.iter().map(|&at| bbc.texts[at].as_str());
        text_rows(embedding, texts, MAX_TOKENS).unwrap().features
    };
    let mut targets = Vec::new();
    labels
        .iter()
        .for_each(|&label| bbc.classes.encode(label, &mut targets));
    let rows = Rows::new(ids(&train), targets, bbc.classes.outputs()).unwrap();
    let gone: Vec<RowId> = (0..sizes.forgotten as u64).map(RowId).collect();
    let retained = rows.filter(|id| id.0 >= sizes.forgotten as u64);
    let out = rows.filter(|id| id.0 < sizes.forgotten as u64);
    let out_ids = ids(&train[..sizes.forgotten]);

    let trained = recipe.train(&rows, &mut QuietTraining).unwrap();
    let (anew, took) = timed(|| recipe.train(&retained, &mut QuietTraining).unwrap().network);
    let (head, head_took) = timed(|| {
        trained
            .network
            .forget(&Method::RetrainHead, &trained.encoded, &gone)
            .unwrap()
            .model
    });
    let mut networks = vec![
        (trained.network.clone(), f64::NAN),
        (anew, took),
        (head, head_took),
    ];
    for state in &STATES[3..] {
        let method = Method::named(state).unwrap();
        networks.push(timed(|| {
            let backbone = trained.network.backbone();
            train_further(&method, backbone, &rows, &gone, &mut QuietTraining)
                .unwrap()
                .trained
                .network
        }));
    }
    let level = trained.network.backbone().training_loss(&out).unwrap();
    let rate = rate(networks[1].0.backbone(), &out, level);
    let found = networks.into_iter().map(|(network, seconds)| {
        let (accuracy, loss) = judged(&network, &out_ids, &labels);
        Found {
            held_out: bbc.accuracy(&bbc.classify(&network, &test), &test),
            accuracy,
            loss,
            relearned: network
                .backbone()
                .relearn(&out, level, LIMIT, rate)
                .unwrap()
                .steps,
            seconds,
        }
    });
    let found = found.collect();
    eprintln!("  seed {seed}, labels shifted by {shift}");
    found
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed().as_secs_f64())
}

/// The rate of the fit, halved until the retrained network needs enough steps to tell networks
/// apart.
fn rate(retrained: &Backbone, out: &Rows, level: f64) -> f64 {
    let mut rate = f64::from(retrained.recipe().training.learning_rate);
    for _ in 0..12 {
        let steps = retrained.relearn(out, level, LIMIT, rate).unwrap().steps;
        if steps.is_none_or(|steps| steps == 0 || steps >= LEAST_STEPS) {
            break;
        }
        rate /= 2.0;
    }
    rate
}

/// Share of hits and mean cross-entropy by the network's own head.
fn judged(network: &Network, texts: &Features, labels: &[usize]) -> (f64, f64) {
    let scores = network.predict(texts).unwrap();
    let mut hits = 0.0;
    let mut loss = 0.0;
    for (row, &own) in labels.iter().take(scores.nrows()).enumerate() {
        let line: Vec<f64> = (0..scores.ncols())
            .map(|class| scores[(row, class)])
            .collect();
        loss += line.iter().map(|score| score.exp()).sum::<f64>().ln() - line[own];
        hits += line
            .iter()
            .enumerate()
            .all(|(c, score)| c == own || *score < line[own]) as u8 as f64;
    }
    (hits / scores.nrows() as f64, loss / scores.nrows() as f64)
}
