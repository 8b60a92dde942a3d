//! Networks on a card are the processor's, up to rounding; where there is no card there is nothing
//! to test, and that is said.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use efface::{Ridge, Rows, WordIds};
use efface_cuda::CudaEngine;
use efface_nn::{
    Embedding, EncoderSettings, NetworkDevice, NetworkRecipe, Pooling, QuietTraining, Squash,
    TrainSettings,
};

/// The engine, or None on a machine that has none.
fn engine() -> Option<CudaEngine> {
    match CudaEngine::open() {
        Ok(engine) => Some(engine),
        Err(reason) => {
            eprintln!("skipped: {reason}");
            None
        }
    }
}

const WORDS: usize = 60;

fn rows(count: usize) -> Rows {
    let mut table = WordIds::new(23);
    let mut targets = Vec::new();
    for row in 0..count {
        let length = 1 + row * 7 % 23;
        let ids: Vec<u32> = (0..length)
            .map(|t| (2 + (row * 13 + t * 5 + 20 * (row % 3)) % WORDS) as u32)
            .collect();
        table.push(&ids).unwrap();
        targets.extend((0..3).map(|class| f64::from(u8::from(row % 3 == class))));
    }
    Rows::new(table, targets, 3).unwrap()
}

fn recipe(encoder: EncoderSettings, trains_words: bool) -> NetworkRecipe {
    let words = (0..WORDS).map(|at| format!("w{at}")).collect();
    let embedding = Embedding::random(words, 12, 3)
        .unwrap()
        .trained(trains_words);
    let training = TrainSettings {
        epochs: 2,
        batch: 40,
        ..TrainSettings::default()
    };
    NetworkRecipe {
        embedding: Arc::new(embedding),
        encoder,
        training,
        head: Ridge::new(1.0).into(),
    }
}

/// Every shape that the settings allow, with dropout and without.
fn shapes() -> Vec<EncoderSettings> {
    let both = EncoderSettings::bilstm(20);
    let stack = EncoderSettings::stacked(17, 3);
    vec![
        both,
        both.dropout(0.0),
        both.pooling(Pooling::Last),
        both.pooling(Pooling::Mean).width(6),
        EncoderSettings {
            squash: Squash::Relu,
            ..both.width(7)
        },
        stack,
        stack.pooling(Pooling::Mean),
        EncoderSettings {
            bidirectional: true,
            ..stack
        }
        .pooling(Pooling::Last)
        .width(5),
        EncoderSettings {
            residual: false,
            ..stack
        },
        EncoderSettings {
            layer_norm: false,
            ..stack
        },
    ]
}

#[test]
fn gradients_are_those_of_the_processor() {
    let Some(engine) = engine() else { return };
    let rows = rows(90);
    for (case, encoder) in shapes().into_iter().enumerate() {
        for trains_words in [false, true] {
            let recipe = recipe(encoder, trains_words);
            let (loss, gradient) = recipe.first_gradient(&rows, None).unwrap().unwrap();
            let there = recipe.first_gradient(&rows, Some(&engine)).unwrap();
            let (card_loss, card_gradient) =
                there.unwrap_or_else(|| panic!("{:?}", engine.remark()));
            let length = |values: &mut dyn Iterator<Item = f32>| {
                values
                    .map(|value| f64::from(value).powi(2))
                    .sum::<f64>()
                    .sqrt()
            };
            let apart = length(&mut gradient.iter().zip(&card_gradient).map(|(a, b)| a - b));
            let size = length(&mut gradient.iter().copied());
            assert!(
                (loss - card_loss).abs() < 1e-6 * loss,
                "case {case}: losses {loss} and {card_loss}"
            );
            assert!(
                apart < 2e-6 * size,
                "case {case}, {trains_words}: {apart:e} of {size:e}"
            );
        }
    }
}

#[test]
fn a_short_training_ends_where_the_processor_does_and_twice_at_the_same_bits() {
    let Some(engine) = engine() else { return };
    let rows = rows(160);
    for encoder in [EncoderSettings::bilstm(20), EncoderSettings::stacked(17, 3)] {
        let recipe = recipe(encoder, true);
        let here = recipe.train(&rows, &mut QuietTraining).unwrap();
        let there = recipe
            .train_on_device(&engine, None, &rows, &mut QuietTraining)
            .unwrap();
        assert_eq!(there.device, Some(NetworkDevice::name(&engine)));
        for (a, b) in here
            .checkpoint
            .history
            .iter()
            .zip(&there.checkpoint.history)
        {
            assert!(
                (a.loss - b.loss).abs() < 1e-3,
                "losses {} and {}",
                a.loss,
                b.loss
            );
        }
        let again = recipe
            .train_on_device(&engine, None, &rows, &mut QuietTraining)
            .unwrap();
        assert_eq!(there.checkpoint, again.checkpoint);
        let features = |trained: &efface_nn::TrainedNetwork| {
            trained
                .encoded
                .iter()
                .map(|row| row.features.entries())
                .collect::<Vec<_>>()
        };
        assert_eq!(features(&there), features(&again));
        // The same parameters give the same features here and there.
        let encoded = there.network.encode(&rows).unwrap();
        for (a, b) in encoded.iter().zip(there.encoded.iter()) {
            for ((_, a), (_, b)) in a.features.entries().iter().zip(b.features.entries()) {
                assert!((a - b).abs() < 1e-5, "features {a} and {b}");
            }
        }
    }
}
