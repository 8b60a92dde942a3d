//! One training step: forward, backward, clipping, AdamW. Texts of exactly 100 words, 64 a batch, 5
//! classes, vectors of 100 that are not trained: the shapes that `xtask/bench/nn.py` gives to
//! PyTorch.

use std::sync::Arc;
use std::time::{Duration, Instant};

use efface::{Recipe, Ridge, Rows};
use efface_nn::{
    Embedding, EncoderSettings, NetworkRecipe, Pooling, StepReport, TrainSettings, TrainingFlow,
    TrainingProgress, text_rows,
};

use crate::usage::{peak_megabytes, processor_seconds};

const STEPS: usize = 40;

/// Times every step.
#[derive(Default)]
struct Watch {
    last: Option<Instant>,
    times: Vec<Duration>,
    /// Processor time at the first step and at the last.
    busy: Option<(f64, f64)>,
}

impl TrainingProgress for Watch {
    fn step(&mut self, _report: &StepReport) -> TrainingFlow {
        let now = Instant::now();
        self.times.extend(self.last.map(|last| now - last));
        self.last = Some(now);
        let busy = processor_seconds();
        self.busy = Some((self.busy.map_or(busy, |(first, _)| first), busy));
        TrainingFlow::Continue
    }
}

pub(crate) fn run(shape: &str, threads: usize) {
    let length = 100usize;
    let batch = 64usize;
    let classes = 5usize;
    let words: Vec<String> = (0..2000).map(|at| format!("word{at}")).collect();
    let embedding = Arc::new(
        Embedding::random(words.clone(), 100, 1)
            .unwrap()
            .trained(false),
    );
    let texts: Vec<String> = (0..batch)
        .map(|i| {
            (0..length)
                .map(|t| words[(i * 131 + t * 17) % 2000].as_str())
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    let ids = text_rows(&embedding, texts.iter().map(String::as_str), length).unwrap();
    let mut targets = Vec::new();
    for i in 0..batch {
        targets.extend((0..classes).map(|c| (c == i % classes) as u8 as f64));
    }
    let rows = Rows::new(ids.features, targets, classes).unwrap();
    let encoder = match shape {
        "bilstm" => EncoderSettings::bilstm(128),
        "stacked" => EncoderSettings {
            residual: false,
            layer_norm: false,
            ..EncoderSettings::stacked(64, 6)
        },
        other => panic!("{other} is not bilstm or stacked"),
    };
    let training = TrainSettings {
        epochs: STEPS,
        validation: 0.0,
        threads,
        batch,
        ..TrainSettings::default()
    };
    let recipe = NetworkRecipe {
        embedding,
        encoder: encoder.dropout(0.0).pooling(Pooling::Last),
        training,
        head: Recipe::new(Ridge::new(1.0)),
    };
    let mut watch = Watch::default();
    recipe.train(&rows, &mut watch).unwrap();
    let mut times: Vec<f64> = watch
        .times
        .iter()
        .map(|time| time.as_secs_f64() * 1e3)
        .collect();
    times.sort_by(f64::total_cmp);
    let (first, last) = watch.busy.unwrap_or_default();
    println!(
        "{{\"shape\":\"{shape}\",\"threads\":{threads},\"median\":{},\"fastest\":{},\"processor\":{},\"megabytes\":{}}}",
        times[times.len() / 2],
        times[0],
        (last - first) * 1e3 / times.len() as f64,
        peak_megabytes()
    );
}
