//! Networks that memorised wrong labels: no claim of `exact` where more of them is left than after
//! retraining, whatever the method, the head, the encoder and the requests before.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should stop and say where"
)]

use std::collections::HashSet;
use std::sync::Arc;

use efface::methods::Auto;
use efface::{Claim, Fitted, Logistic, Method, NotCovered, Predict, Recipe, Ridge, RowId, Rows};
use efface_nn::{
    Embedding, EncoderSettings, NetworkModel, NetworkRecipe, TrainSettings, text_rows, words_in,
};

const CLASSES: usize = 3;
/// Rows 0 to 19 belong to one person and have wrong labels. They are to be forgotten.
const WRONG: usize = 20;
const ROWS: usize = 80;

/// Texts with two words of their topic. Those with a wrong label have a name of their own and a
/// word that the last two rows share.
fn texts() -> Vec<String> {
    let filler = ["the", "of", "and", "to", "in", "for", "on", "with"];
    let text = |i: usize| {
        let length = 5 + i * 5 % 7;
        let mut words: Vec<String> = (0..length)
            .map(|t| filler[(i * 3 + t * 5) % 8].to_string())
            .collect();
        words[i % length] = format!("topic{}a", i % CLASSES);
        words[(i * 7 + 2) % length] = format!("topic{}b", i % CLASSES);
        if i < WRONG {
            words.push(format!("name{i}"));
        }
        if !(WRONG..ROWS - 2).contains(&i) {
            words.push("shared".into());
        }
        words.join(" ")
    };
    (0..ROWS).map(text).collect()
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Encoder {
    /// Vectors from elsewhere, and layers as they were drawn.
    Frozen,
    /// Vectors and layers as they were drawn.
    Random,
    /// Trained on all rows.
    Trained,
}

fn fitted(encoder: Encoder, head: Recipe) -> Fitted<NetworkModel> {
    let texts = texts();
    let words = Embedding::words_of(texts.iter().map(String::as_str), 100).unwrap();
    let mut embedding = Embedding::random(words, 6, 5).unwrap();
    if encoder == Encoder::Frozen {
        embedding = embedding.trained(false);
        embedding.public = true;
    }
    let ids = text_rows(&embedding, texts.iter().map(String::as_str), 16).unwrap();
    let class = |i: usize| (i + usize::from(i < WRONG)) % CLASSES;
    let targets = (0..ROWS).flat_map(|i| (0..CLASSES).map(move |c| (c == class(i)) as u8 as f64));
    let rows = Rows::new(ids.features, targets.collect(), CLASSES).unwrap();
    let epochs = if encoder == Encoder::Trained { 24 } else { 0 };
    let recipe = NetworkRecipe {
        embedding: Arc::new(embedding),
        encoder: EncoderSettings::bilstm(8).dropout(0.1),
        training: TrainSettings {
            epochs,
            batch: 8,
            learning_rate: 2e-2,
            validation: 0.0,
            ..TrainSettings::default()
        },
        head,
    };
    Fitted::new(&recipe, rows).unwrap()
}

fn heads() -> [Recipe; 2] {
    [
        Recipe::new(Ridge::new(0.1)),
        Recipe::new(Logistic::new(0.1)),
    ]
}

fn gone() -> Vec<RowId> {
    (0..WRONG as u64).map(RowId).collect()
}

/// The wrong labels that a network still predicts.
fn remaining(network: &Fitted<NetworkModel>, wrong: &Rows) -> usize {
    let scores = network.model().network().predict(&wrong.table()).unwrap();
    let is_predicted = |(at, targets): (usize, &[f64])| {
        let best = |a: &usize, b: &usize| scores[(at, *a)].total_cmp(&scores[(at, *b)]);
        (0..CLASSES)
            .max_by(best)
            .is_some_and(|class| targets[class] == 1.0)
    };
    wrong
        .iter()
        .map(|view| view.targets)
        .enumerate()
        .filter(|row| is_predicted(*row))
        .count()
}

#[test]
fn exact_is_claimed_only_where_no_more_is_left_than_after_retraining() {
    for encoder in [Encoder::Frozen, Encoder::Random, Encoder::Trained] {
        for head in heads() {
            let before = fitted(encoder, head);
            let wrong = before.rows().filter(|id| id.0 < WRONG as u64);
            let mut anew = before.clone();
            let evidence = anew.forget(&Method::Retrain, &gone()).unwrap();
            assert_eq!(evidence.claim(), Claim::Exact, "{encoder:?}");
            let retrained = remaining(&anew, &wrong);
            if encoder == Encoder::Trained {
                let memorised = remaining(&before, &wrong);
                assert!(memorised > retrained, "{memorised} and {retrained}");
            }
            let mut exact = 0;
            for method in Method::all() {
                let mut after = before.clone();
                let Ok(evidence) = after.forget(&method, &gone()) else {
                    continue;
                };
                let name = method.name();
                let left = remaining(&after, &wrong);
                if evidence.claim() == Claim::Exact {
                    exact += 1;
                    assert!(
                        left <= retrained,
                        "{encoder:?}, {name}: {left}, and {retrained} after retraining"
                    );
                    assert_eq!(evidence.head_bound, None, "{encoder:?}, {name}");
                }
                if encoder == Encoder::Trained && method != Method::Retrain {
                    assert_eq!(evidence.claim(), Claim::Approximate, "{name}");
                    assert!(evidence.bound.is_infinite() && evidence.relative_bound.is_infinite());
                    let is_known = matches!(name, "auto" | "retrain_head");
                    assert!(!is_known || evidence.head_bound.is_some(), "{name}");
                }
            }
            match encoder {
                Encoder::Trained => assert_eq!(exact, 1),
                _ => assert!(exact >= 3, "{encoder:?}: {exact}"),
            }
        }
    }
}

#[test]
fn a_tolerance_is_reached_by_training_the_network_anew() {
    for head in heads() {
        let before = fitted(Encoder::Trained, head);
        let mut anew = before.clone();
        anew.forget(&Method::Retrain, &gone()).unwrap();
        let mut auto = before;
        let tolerance = Some(1e-3);
        let evidence = auto
            .forget(&Method::Auto(Auto { tolerance }), &gone())
            .unwrap();
        assert_eq!(
            (evidence.claim(), evidence.method.as_str()),
            (Claim::Exact, "retrain")
        );
        let bytes = |fitted: &Fitted<NetworkModel>| fitted.model().network().to_bytes().unwrap();
        assert!(bytes(&auto) == bytes(&anew));
    }
}

/// The state of the encoder is remembered until it is trained anew.
#[test]
fn no_later_request_restores_the_claim_but_retraining() {
    let exact = Method::named("retrain_head").unwrap();
    let start = fitted(Encoder::Trained, Recipe::new(Ridge::new(0.1)));
    let (kept, new) = (
        start.rows().filter(|id| id.0 < 70),
        start.rows().filter(|id| id.0 >= 70),
    );
    let start = Fitted::new(start.model().network().recipe(), kept).unwrap();
    let further = ["fine_tune", "neggrad_plus", "scrub"]
        .map(|name| (Method::named(name).unwrap(), NotCovered::TrainedFurther));
    let first = further.into_iter().chain([
        (Method::default(), NotCovered::EncoderTraining),
        (exact, NotCovered::EncoderTraining),
    ]);
    for (method, what) in first {
        let mut network = start.clone();
        network.forget(&method, &[RowId(3)]).unwrap();
        for step in 0..3 {
            let evidence = match step {
                0 => network.forget(&exact, &[RowId(30)]).unwrap(),
                1 => network.learn(&new).unwrap(),
                _ => network.forget(&Method::default(), &[RowId(31)]).unwrap(),
            };
            let name = method.name();
            assert_eq!(evidence.claim(), Claim::Approximate, "{name}, {step}");
            assert!(evidence.bound.is_infinite(), "{name}, {step}");
            assert!(evidence.not_covered.contains(&what), "{name}, {step}");
            let is_untrained = evidence.not_covered.contains(&NotCovered::EncoderUntrained);
            assert_eq!(is_untrained, step >= 1, "{name}, {step}");
        }
        let evidence = network.forget(&Method::Retrain, &[RowId(32)]).unwrap();
        assert_eq!(evidence.claim(), Claim::Exact);
        assert_eq!(evidence.not_covered, [NotCovered::EncoderWords]);
    }
    // Rows that joined are no part of the training either.
    let mut network = start;
    let evidence = network.learn(&new).unwrap();
    assert_eq!(evidence.claim(), Claim::Approximate);
    assert!(evidence.not_covered.contains(&NotCovered::EncoderUntrained));
}

/// The vectors in use by the ids of their words.
fn vectors(network: &Fitted<NetworkModel>) -> Vec<Vec<f32>> {
    let backbone = network.model().network().backbone();
    let width = backbone.embedding().width();
    backbone
        .vectors()
        .chunks_exact(width)
        .map(<[f32]>::to_vec)
        .collect()
}

#[test]
fn vectors_of_words_that_no_row_holds_return_to_where_the_training_began() {
    let before = fitted(Encoder::Trained, Recipe::new(Ridge::new(0.1)));
    let drawn = fitted(Encoder::Random, Recipe::new(Ridge::new(0.1)));
    let start = vectors(&drawn);
    let used = words_in(&before.rows().filter(|id| id.0 >= WRONG as u64)).unwrap();
    let held: HashSet<u32> = words_in(&before.rows().filter(|id| id.0 < WRONG as u64)).unwrap();
    let alone: Vec<usize> = held.difference(&used).map(|id| *id as usize).collect();
    assert_eq!(alone.len(), WRONG);
    let moved = |network: &Fitted<NetworkModel>| {
        let now = vectors(network);
        alone.iter().filter(|id| now[**id] != start[**id]).count()
    };
    assert_eq!(moved(&before), WRONG);
    for method in Method::all() {
        let mut after = before.clone();
        if after.forget(&method, &gone()).is_ok() {
            assert_eq!(moved(&after), 0, "{}", method.name());
            let now = vectors(&after);
            assert!(
                used.iter()
                    .any(|id| now[*id as usize] != start[*id as usize])
            );
        }
    }
    // Bytes of a network whose rows left hold nothing of the head that it was trained with.
    let mut after = before;
    after.forget(&Method::default(), &gone()).unwrap();
    let bytes = after.model().network().to_bytes().unwrap();
    let stored = efface_nn::Network::from_bytes(&bytes).unwrap();
    let heads = stored
        .arrays()
        .filter(|(name, ..)| name.starts_with("head."));
    for (name, _, values) in heads {
        assert!(values.iter().all(|value| *value == 0.0), "{name}");
    }
    // Further training begins with a head that is fitted on the rows that are there.
    let backbone = stored.backbone().with_training_head(after.rows()).unwrap();
    let loss = backbone.training_loss(after.rows()).unwrap();
    assert!(loss < 0.8 * (CLASSES as f64).ln(), "{loss}");
}
