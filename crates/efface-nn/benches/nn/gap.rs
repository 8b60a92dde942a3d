//! What forgetting in the head alone leaves in the encoder: accuracy, agreement with a network
//! trained anew, and whether an attacker can tell the forgotten rows from rows that were never
//! there (U-LiRA, Hayes et al. 2024).
//!
//! A pool of BBC articles is set aside. Network j is trained on all other articles and a random
//! half of the pool, and then forgets that half. Its twin is trained, from the same seed, on the
//! other articles alone: that is what retraining gives. For every article of the pool there are
//! then networks that learned and forgot it, and networks that never saw it.
//! `efface::eval::likelihood_ratio` plays the attacker on their margins.

use std::time::Instant;

use efface::eval::{Bootstrap, likelihood_ratio};
use efface::{Method, Predict, Recipe, Ridge, RowId};
use efface_nn::{
    EncoderSettings, Network, NetworkRecipe, QuietTraining, TrainSettings, text_rows, train_further,
};

use crate::corpus::{Corpus, draw, spread, vectors};

/// Articles that networks learn and forget.
const POOL: usize = 400;
const MAX_TOKENS: usize = 100;

/// The kinds of networks that are compared, in the order of the table.
const KINDS: [&str; 7] = [
    "before forgetting",
    "head: exact",
    "head: influence",
    "retrained whole",
    "whole: fine_tune",
    "whole: neggrad_plus",
    "whole: scrub",
];

/// What one network of one kind says.
struct Seen {
    /// Of the pool: score of the right class, less the highest of the others.
    margins: Vec<f64>,
    answers: Vec<usize>,
    accuracy: f64,
}

pub(crate) fn run(data: &str, networks: usize, threads: usize) {
    let bbc = Corpus::bbc(data);
    let embedding = vectors(data);
    let (test, rest) = bbc.split(0);
    let (pool, base) = rest.split_at(POOL);
    let recipe = |seed| NetworkRecipe {
        embedding: embedding.clone(),
        encoder: EncoderSettings::bilstm(64),
        training: TrainSettings {
            epochs: 8,
            seed,
            threads,
            patience: 3,
            ..TrainSettings::default()
        },
        head: Recipe::new(Ridge::new(1.0)),
    };
    let look = |network: &Network| {
        let texts = pool.iter().map(|&at| bbc.texts[at].as_str());
        let ids = text_rows(&embedding, texts, MAX_TOKENS).unwrap();
        let scores = network.predict(&ids.features).unwrap();
        let margin = |(row, &at): (usize, &usize)| {
            let right = bbc.labels[at];
            let others = (0..scores.ncols())
                .filter(|&class| class != right)
                .map(|class| scores[(row, class)]);
            scores[(row, right)] - others.fold(f64::NEG_INFINITY, f64::max)
        };
        let answers = bbc.classify(network, &test);
        let accuracy = bbc.accuracy(&answers, &test);
        Seen {
            margins: pool.iter().enumerate().map(margin).collect(),
            answers,
            accuracy,
        }
    };
    let mut seen: [Vec<Seen>; KINDS.len()] = Default::default();
    let mut membership: Vec<Vec<bool>> = Vec::new();
    let start = Instant::now();
    for j in 0..networks as u64 {
        // Neighbours learn opposite halves, so that every article is in half of the networks.
        let member: Vec<bool> = (0..POOL as u64)
            .map(|at| (draw(1000 + j / 2, at) < 0.5) == (j % 2 == 0))
            .collect();
        let inside: Vec<usize> = (0..POOL)
            .filter(|&at| member[at])
            .map(|at| pool[at])
            .collect();
        // The rows to forget come first, so that their ids are 0, 1, ….
        let all: Vec<usize> = inside.iter().chain(base).copied().collect();
        let gone: Vec<RowId> = (0..inside.len() as u64).map(RowId).collect();
        let rows = bbc.rows(&all, &embedding, MAX_TOKENS);
        let trained = recipe(j).train(&rows, &mut QuietTraining).unwrap();
        let forget = |method| {
            trained
                .network
                .forget(method, &trained.encoded, &gone)
                .unwrap()
                .model
        };
        let anew = recipe(j)
            .train(&bbc.rows(base, &embedding, MAX_TOKENS), &mut QuietTraining)
            .unwrap();
        seen[0].push(look(&trained.network));
        seen[1].push(look(&forget(&Method::Exact)));
        seen[2].push(look(&forget(&Method::Influence)));
        seen[3].push(look(&anew.network));
        for (kind, name) in ["fine_tune", "neggrad_plus", "scrub"]
            .into_iter()
            .enumerate()
        {
            let method = Method::named(name).unwrap();
            let tuned = train_further(
                &method,
                trained.network.backbone(),
                &rows,
                &gone,
                &mut QuietTraining,
            )
            .unwrap();
            seen[4 + kind].push(look(&tuned.trained.network));
        }
        membership.push(member);
        eprintln!(
            "  {} of {networks} networks and their twins ({:.0} s)",
            j + 1,
            start.elapsed().as_secs_f64()
        );
    }
    println!(
        "\nBBC news, BiLSTM of 64 a direction, articles cut at {MAX_TOKENS} words, {networks} networks and their {networks} retrained twins; each learned and forgot about half of {POOL} articles.\n"
    );
    println!(
        "| network | accuracy | agreement with its retrained twin | AUC | TPR at 1 % FPR |\n|---|---|---|---|---|"
    );
    for (kind, name) in KINDS.iter().enumerate() {
        let (accuracy, deviation) = spread(
            &seen[kind]
                .iter()
                .map(|one| one.accuracy)
                .collect::<Vec<f64>>(),
        );
        let same: Vec<f64> = seen[kind]
            .iter()
            .zip(&seen[3])
            .map(|(a, b)| agreement(&a.answers, &b.answers))
            .collect();
        let margins: Vec<&[f64]> = seen[kind]
            .iter()
            .map(|one| one.margins.as_slice())
            .collect();
        let found = likelihood_ratio(&margins, &membership, &Bootstrap::default()).unwrap();
        let auc = found.auc_interval;
        let rate = found.rates[0].interval;
        println!(
            "| {name} | {accuracy:.4} ± {deviation:.4} | {:.4} | {:.3} ({:.3} to {:.3}) | {:.3} ({:.3} to {:.3}) |",
            spread(&same).0,
            found.auc,
            auc.low,
            auc.high,
            found.rates[0].tpr,
            rate.low,
            rate.high
        );
    }
    let other: Vec<f64> = (1..networks)
        .map(|j| agreement(&seen[3][j - 1].answers, &seen[3][j].answers))
        .collect();
    println!(
        "\nTwo retrained networks of different seeds agree on {:.4} of the test articles.",
        spread(&other).0
    );
}

fn agreement(a: &[usize], b: &[usize]) -> f64 {
    a.iter().zip(b).filter(|(a, b)| a == b).count() as f64 / a.len() as f64
}
