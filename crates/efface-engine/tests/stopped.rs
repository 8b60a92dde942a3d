//! A training that is to replace the stored network: it reports its progress, and stopping it keeps
//! the old network.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop and say where"
)]

mod common;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{Bench, csv, ids, predictions, receipts, sound};
use efface_engine::{
    EncoderChoice, EncoderSettings, Error, FitRequest, ForgetOptions, ForgetRequest,
    NetworkRequest, Progress, TrainSettings, Vectors,
};

/// Asks to stop after so many steps.
struct Impatient {
    left: AtomicU64,
    told: Mutex<Vec<String>>,
}

impl Progress for Impatient {
    fn note(&self, what: &str) {
        self.told.lock().unwrap().push(what.to_owned());
    }

    fn is_interrupted(&self) -> bool {
        self.left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            })
            .is_err()
    }
}

fn impatient(steps: u64) -> Impatient {
    Impatient {
        left: AtomicU64::new(steps),
        told: Mutex::default(),
    }
}

fn texts() -> String {
    let mut table = String::from("doc,topic,text\n");
    for i in 0..24 {
        let (topic, own) = [("fish", "seaweed"), ("bird", "skylark")][i % 2];
        table.push_str(&format!("d{i},{topic},the {own} word{} {own}\n", i % 5));
    }
    table
}

#[test]
fn a_retraining_that_is_stopped_leaves_the_old_network() {
    let bench = Bench::new();
    let text = texts();
    let request = FitRequest {
        targets: vec!["topic".into()],
        text: vec!["text".into()],
        id: Some("doc".into()),
        model: efface::Ridge::new(0.1).into(),
        network: Some(NetworkRequest {
            encoder: EncoderChoice::Lstm {
                settings: EncoderSettings::bilstm(4),
                training: TrainSettings {
                    epochs: 3,
                    batch: 8,
                    validation: 0.0,
                    ..TrainSettings::default()
                },
                vectors: Vectors::Learned { most: 50, width: 4 },
                train_vectors: true,
            },
            max_tokens: Some(8),
            threads: 1,
            checkpoint: None,
        }),
        ..FitRequest::new(csv(&text))
    };
    let mut engine = bench.fit("docs.efface", &request);
    let before = predictions(&engine, &text);
    let forget = ForgetRequest {
        method: efface::Method::Retrain,
        id: Some("request 1".into()),
        ..ForgetRequest::new(ids(&["d3"]))
    };
    for steps in [0, 1, 4, 6] {
        let stopped = engine.forget(
            &forget,
            &ForgetOptions {
                progress: &impatient(steps),
                ..ForgetOptions::default()
            },
        );
        assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
    }
    let after = predictions(&engine, &text);
    assert!(before.iter().zip(&after).all(|(a, b)| a.scores == b.scores));
    assert_eq!(
        receipts(&engine).len(),
        1,
        "a request that was stopped has no answer yet"
    );
    sound(&engine);
    // The request is repeated under its name, with time to finish.
    let patient = impatient(u64::MAX);
    let report = engine
        .forget(
            &forget,
            &ForgetOptions {
                progress: &patient,
                ..ForgetOptions::default()
            },
        )
        .unwrap();
    assert_eq!((report.forgotten, report.replayed), (1, false));
    assert_eq!(
        patient.told.lock().unwrap().len(),
        3,
        "an epoch is told when it is over"
    );
    sound(&engine);
}
