//! The frozen encoder: texts a second for `xtask bench nn` to hold beside sentence-transformers,
//! and accuracy with a ridge head on BBC news.

use std::path::Path;
use std::time::Instant;

use efface::{Dense, Features, Fit, Predict, Ridge, Rows};
use efface_nn::minilm::MiniLm;

use crate::corpus::{Corpus, spread};
use crate::usage::{peak_megabytes, processor_seconds};

/// How many texts are timed: enough for half a minute on one thread.
const TIMED: usize = 400;

pub(crate) fn run(data: &str, folder: &str) {
    let bbc = Corpus::bbc(data);
    let news = Corpus::agnews(data);
    for threads in [1, 2] {
        for (name, corpus) in [("AG News", &news), ("BBC news", &bbc)] {
            let texts: Vec<&str> = corpus
                .texts
                .iter()
                .take(TIMED)
                .map(String::as_str)
                .collect();
            let encoder = MiniLm::open(Path::new(folder))
                .unwrap()
                .with_threads(threads);
            encoder.encode(&texts[..20], &|_| {}).unwrap();
            let start = Instant::now();
            let busy = processor_seconds();
            encoder.encode(&texts, &|_| {}).unwrap();
            println!(
                "{{\"what\":\"speed\",\"data\":\"{name}\",\"threads\":{threads},\"texts\":{},\"seconds\":{},\"processor\":{},\"megabytes\":{}}}",
                texts.len(),
                start.elapsed().as_secs_f64(),
                processor_seconds() - busy,
                peak_megabytes()
            );
        }
    }
    for tokens in [256, 512] {
        accuracy(&bbc, folder, tokens);
    }
}

/// Five splits of the same encoded articles: the encoder does not depend on the split.
fn accuracy(bbc: &Corpus, folder: &str, tokens: usize) {
    let encoder = MiniLm::open(Path::new(folder))
        .unwrap()
        .with_max_tokens(tokens)
        .unwrap()
        .with_threads(2);
    let texts: Vec<&str> = bbc.texts.iter().map(String::as_str).collect();
    let encoded: Features = encoder.encode(&texts, &|_| {}).unwrap().into();
    let part = |rows: &[usize]| {
        let mut values = Vec::with_capacity(rows.len() * encoder.width());
        rows.iter()
            .for_each(|&at| encoded.row(at).each(|_, value| values.push(value as f32)));
        Features::from(Dense::new(values, encoder.width()).unwrap())
    };
    for penalty in [0.1, 0.3, 1.0] {
        let scores: Vec<f64> = (0..5)
            .map(|seed| {
                let (test, train) = bbc.split(seed);
                let rows =
                    Rows::new(part(&train), bbc.targets(&train), bbc.classes.outputs()).unwrap();
                let head = Ridge::new(penalty).fit(&rows).unwrap();
                let answers = bbc.decide(&head.predict(&part(&test)).unwrap());
                bbc.accuracy(&answers, &test)
            })
            .collect();
        let (mean, deviation) = spread(&scores);
        let least = scores.iter().copied().fold(1.0, f64::min);
        println!(
            "{{\"what\":\"accuracy\",\"tokens\":{tokens},\"penalty\":{penalty},\"mean\":{mean},\"deviation\":{deviation},\"least\":{least}}}"
        );
    }
}
