//! Measurements of the networks. Without arguments it times one training step; with data it trains and forgets.
//!
//! ```text
//! cargo bench -p efface-nn --bench nn -- step
//! cargo bench -p efface-nn --bench nn -- bbc FILE.csv WORDS.txt NUMBERS.bin [SEEDS [THREADS]]
//! cargo bench -p efface-nn --bench nn -- agnews FILE.csv WORDS.txt NUMBERS.bin [SEEDS [THREADS]]
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a measurement that cannot go on should stop and say where"
)]

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use efface::methods::Newton;
use efface::{Classes, Logistic, Predict, Ridge, RowId, RowStore, Rows};
use efface_nn::{
    Checkpoint, Embedding, EncoderSettings, EpochReport, FittedNetwork, Flow, HeadMethod, HeadRecipe,
    NetworkRecipe, Pooling, Progress, ProjectionRounds, StepReport, TrainSettings, text_rows,
};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let number = |at: usize, default: usize| arguments.get(at).map_or(default, |text| text.parse().unwrap());
    match arguments.first().map_or("step", String::as_str) {
        "step" => steps(),
        name @ ("bbc" | "agnews") => {
            let paths: Vec<&str> = arguments[1..4].iter().map(String::as_str).collect();
            for seed in 0..number(4, 1) as u64 {
                train_on(name, &paths, seed, number(5, 1));
            }
        }
        other => panic!("{other} is not step, bbc or agnews"),
    }
}

/// The largest memory of this process so far, in MB, where the system tells.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kilobytes.map_or("?".into(), |kilobytes| format!("{:.0}", kilobytes / 1024.0))
}

/// Seconds of processor time that this process has used, where the system tells, in units of 10 ms.
fn processor_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    [11, 12].iter().filter_map(|&at| fields.get(at)?.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Times every step.
#[derive(Default)]
struct Watch {
    last: Option<Instant>,
    times: Vec<Duration>,
    /// Processor time at the first step and at the last.
    busy: Option<(f64, f64)>,
}

impl Progress for Watch {
    fn step(&mut self, _report: &StepReport) -> Flow {
        let now = Instant::now();
        self.times.extend(self.last.map(|last| now - last));
        self.last = Some(now);
        let busy = processor_time();
        self.busy = Some((self.busy.map_or(busy, |(first, _)| first), busy));
        Flow::Continue
    }
}

/// Texts of exactly 100 words, 64 a batch, 5 classes: the shapes of the comparison with other libraries.
fn steps() {
    let (length, batch, classes, steps) = (100usize, 64usize, 5usize, 24usize);
    let words: Vec<String> = (0..2000).map(|at| format!("word{at}")).collect();
    let embedding = Arc::new(Embedding::random(words.clone(), 100, 1).unwrap().trained(false));
    let texts: Vec<String> = (0..batch)
        .map(|i| (0..length).map(|t| words[(i * 131 + t * 17) % 2000].as_str()).collect::<Vec<_>>().join(" "))
        .collect();
    let ids = text_rows(&embedding, texts.iter().map(String::as_str), length).unwrap();
    let mut targets = Vec::new();
    for i in 0..batch {
        targets.extend((0..classes).map(|c| (c == i % classes) as u8 as f64));
    }
    let rows = Rows::new(ids.features, targets, classes).unwrap();
    println!(
        "| network | threads | ms a step, median | fastest | processor ms a step | peak MB |\n|---|---|---|---|---|---|"
    );
    let shapes = [
        ("BiLSTM 100→128", EncoderSettings::bilstm(128).dropout(0.0)),
        (
            "six layers of 64",
            EncoderSettings { residual: false, layer_norm: false, ..EncoderSettings::stacked(64, 6) }
                .dropout(0.0),
        ),
        ("six layers of 64, residual and norm", EncoderSettings::stacked(64, 6)),
    ];
    for threads in [1, 2] {
        for (name, encoder) in shapes {
            let training =
                TrainSettings { epochs: steps, validation: 0.0, threads, batch, ..TrainSettings::default() };
            let recipe = NetworkRecipe {
                embedding: embedding.clone(),
                encoder: encoder.pooling(Pooling::Last),
                training,
                head: HeadRecipe::Ridge(Ridge::new(1.0)),
            };
            let mut watch = Watch::default();
            recipe.train(&rows, &mut watch).unwrap();
            let mut times: Vec<f64> = watch.times.iter().map(|time| time.as_secs_f64() * 1e3).collect();
            times.sort_by(f64::total_cmp);
            let (median, fastest) = (times[times.len() / 2], times[0]);
            let (first, last) = watch.busy.unwrap_or_default();
            let busy = (last - first) * 1e3 / times.len() as f64;
            println!("| {name} | {threads} | {median:.1} | {fastest:.1} | {busy:.0} | {} |", peak_memory());
        }
    }
}

/// Prints every epoch.
struct Print {
    start: Instant,
}

impl Progress for Print {
    fn epoch(&mut self, report: &EpochReport, _checkpoint: &Checkpoint) -> Flow {
        let (loss, hits) = report.validation.unwrap_or_default();
        println!(
            "  epoch {:2}: loss {:.4}, accuracy {:.4}; validation {loss:.4}, {hits:.4}{} ({:.1} s)",
            report.epoch,
            report.loss,
            report.accuracy,
            if report.best { " *" } else { "" },
            self.start.elapsed().as_secs_f64()
        );
        Flow::Continue
    }
}

/// Label and text of every line: the first column, and the others joined.
fn read_csv(path: &str) -> Vec<(String, String)> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    let lines = reader.records().map(|record| {
        let record = record.unwrap();
        (record[0].to_string(), record.iter().skip(1).collect::<Vec<_>>().join(" "))
    });
    lines.collect()
}

/// A number between 0 and 1 for each row and seed.
fn draw(seed: u64, row: u64) -> f64 {
    let mut z = (seed << 32 ^ row).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

fn train_on(name: &str, paths: &[&str], seed: u64, threads: usize) {
    let [data, words, numbers] = paths else { panic!("three files") };
    let open = |path: &str| File::open(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let embedding = Arc::new(Embedding::read_half(open(words), open(numbers), 100).unwrap());
    let lines = read_csv(data);
    let mut labels: Vec<String> = lines.iter().map(|(label, _)| label.clone()).collect();
    labels.sort();
    labels.dedup();
    let classes = Classes::new(labels.clone()).unwrap();
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by(|&a, &b| draw(seed, a as u64).total_cmp(&draw(seed, b as u64)));
    let (test, train) = order.split_at(lines.len() / 5);
    let (encoder, max_tokens, epochs) = match name {
        "bbc" => (EncoderSettings::bilstm(96), 250, 12),
        _ => (EncoderSettings::stacked(64, 6), 100, 12),
    };
    let table = |part: &[usize]| {
        let ids = text_rows(&embedding, part.iter().map(|&at| lines[at].1.as_str()), max_tokens).unwrap();
        let mut targets = Vec::new();
        part.iter().for_each(|&at| classes.encode(labels.binary_search(&lines[at].0).unwrap(), &mut targets));
        (Rows::new(ids.features.clone(), targets, classes.outputs()).unwrap(), ids)
    };
    let ((train_rows, train_ids), (test_rows, test_ids)) = (table(train), table(test));
    println!(
        "{name}, seed {seed}: {} rows to learn, {} to test; {} cut at {max_tokens} words",
        train_rows.len(),
        test_rows.len(),
        train_ids.truncated
    );
    let training = TrainSettings { epochs, seed, threads, patience: 4, ..TrainSettings::default() };
    let head = HeadRecipe::Ridge(Ridge::new(1.0));
    let recipe = NetworkRecipe { embedding: embedding.clone(), encoder, training, head };
    let start = Instant::now();
    let mut fitted = FittedNetwork::new(&recipe, train_rows, &mut Print { start }).unwrap();
    let took = start.elapsed().as_secs_f64();
    let accuracy = |network: &efface_nn::Network| {
        let scores = network.predict(&test_ids.features).unwrap();
        let right = test_rows.iter().enumerate().filter(|(at, view)| {
            let line: Vec<f64> = (0..scores.ncols()).map(|c| scores[(*at, c)]).collect();
            classes.decide(&line) == classes.decide(view.targets)
        });
        right.count() as f64 / test_rows.len() as f64
    };
    println!(
        "  accuracy {:.4}; {took:.1} s in all, {:.1} s an epoch; peak {} MB",
        accuracy(fitted.network()),
        took / fitted.history().len() as f64,
        peak_memory()
    );
    softmax_head(&fitted, &accuracy);
    forgetting(&mut fitted, &accuracy, took);
}

/// The same encoder under a softmax head.
fn softmax_head(fitted: &FittedNetwork, accuracy: &dyn Fn(&efface_nn::Network) -> f64) {
    let start = Instant::now();
    let network =
        fitted.network().with_head(&HeadRecipe::Softmax(Logistic::new(1.0)), fitted.encoded()).unwrap();
    println!(
        "  softmax head: accuracy {:.4}, fitted in {:.2} s",
        accuracy(&network),
        start.elapsed().as_secs_f64()
    );
    let gone: Vec<RowId> = (0..10).map(RowId).collect();
    let right = network.forget(&HeadMethod::RetrainHead, fitted.encoded(), &gone).unwrap().model;
    let scale = network.head().distance(right.head());
    for method in [
        HeadMethod::Newton(Newton::default()),
        HeadMethod::Influence,
        HeadMethod::ProjectionResidual(ProjectionRounds::default()),
        HeadMethod::ProjectionResidual(ProjectionRounds { rounds: 5, ..ProjectionRounds::default() }),
    ] {
        let start = Instant::now();
        let outcome = network.forget(&method, fitted.encoded(), &gone).unwrap();
        let (time, left) = (start.elapsed().as_secs_f64() * 1e3, outcome.model.head().distance(right.head()));
        println!(
            "    k=10 {}: {time:.2} ms, {} rounds, distance left {:.3e}",
            method.name(),
            outcome.evidence.iterations,
            left / scale
        );
    }
}

/// What each method leaves of the distance to the refitted head, and what it costs.
fn forgetting(fitted: &mut FittedNetwork, accuracy: &dyn Fn(&efface_nn::Network) -> f64, training: f64) {
    println!(
        "  | k | method | ms | × faster than retraining | distance left | accuracy |\n  |---|---|---|---|---|---|"
    );
    for k in [1, 5, 10, 20, 50] {
        let gone: Vec<RowId> = (0..k).map(RowId).collect();
        let network = fitted.network().clone();
        let right = network.forget(&HeadMethod::RetrainHead, fitted.encoded(), &gone).unwrap().model;
        let scale = network.head().distance(right.head());
        for name in ["retrain_head", "exact", "newton", "influence", "projection_residual"] {
            let method = HeadMethod::by_name(name).unwrap();
            let start = Instant::now();
            let outcome = network.forget(&method, fitted.encoded(), &gone).unwrap();
            let time = start.elapsed().as_secs_f64();
            println!(
                "  | {k} | {name} | {:.3} | {:.0} | {:.1e} | {:.4} |",
                time * 1e3,
                training / time,
                outcome.model.head().distance(right.head()) / scale,
                accuracy(&outcome.model)
            );
        }
    }
}
