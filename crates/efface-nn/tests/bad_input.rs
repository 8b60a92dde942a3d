//! What cannot be learned from says so, and what can be survives.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should stop and say where"
)]

use std::sync::Arc;

use efface::{Dense, Fit, Predict, Recipe, Ridge, Rows, WordIds};
use efface_nn::{
    Embedding, EncoderSettings, Error, NetworkRecipe, QuietTraining, TrainSettings, UNKNOWN,
    text_rows,
};

fn embedding() -> Arc<Embedding> {
    let words = ["cat", "dog", "tree", "stone"].map(String::from).to_vec();
    Arc::new(Embedding::random(words, 4, 1).unwrap())
}

fn recipe(embedding: &Arc<Embedding>) -> NetworkRecipe {
    NetworkRecipe {
        embedding: embedding.clone(),
        encoder: EncoderSettings::bilstm(3),
        training: TrainSettings {
            epochs: 2,
            batch: 4,
            ..TrainSettings::default()
        },
        head: Recipe::new(Ridge::new(1.0)),
    }
}

fn rows(embedding: &Embedding, texts: &[&str], signs: &[f64]) -> Rows {
    let ids = text_rows(embedding, texts.iter().copied(), 400).unwrap();
    Rows::new(ids.features, signs.to_vec(), 1).unwrap()
}

#[test]
fn empty_texts_and_texts_of_unknown_words_have_an_answer() {
    let embedding = embedding();
    let texts = ["", "the dog", "wholly unheard", "cat", "stone tree", "? !"];
    let ids = text_rows(&embedding, texts, 400).unwrap();
    assert_eq!((ids.empty, ids.unknown, ids.truncated), (2, 1, 0));
    let network = recipe(&embedding)
        .fit(&rows(&embedding, &texts, &[1.0, -1.0, 1.0, -1.0, 1.0, 1.0]))
        .unwrap()
        .network()
        .clone();
    let scores = network.predict(&ids.features).unwrap();
    assert!((0..texts.len()).all(|at| scores[(at, 0)].is_finite()));
    assert_eq!(scores[(0, 0)], scores[(5, 0)]);
}

#[test]
fn texts_without_any_known_word_are_refused() {
    let embedding = embedding();
    let error = recipe(&embedding)
        .train(
            &rows(&embedding, &["", "xx yy"], &[1.0, -1.0]),
            &mut QuietTraining,
        )
        .unwrap_err();
    assert!(matches!(error, Error::NoKnownWord { texts: 2 }), "{error}");
}

#[test]
fn one_class_is_refused_and_a_class_of_one_row_is_not() {
    let embedding = embedding();
    let texts = ["cat", "dog", "cat dog", "tree"];
    let error = recipe(&embedding)
        .fit(&rows(&embedding, &texts, &[1.0; 4]))
        .unwrap_err();
    assert_eq!(
        error,
        efface::Error::EmptyClass {
            class: 0,
            classes: 2
        }
    );
    recipe(&embedding)
        .fit(&rows(&embedding, &texts, &[1.0, 1.0, 1.0, -1.0]))
        .unwrap();
    let error = recipe(&embedding)
        .fit(&rows(&embedding, &texts, &[1.0, 0.5, 1.0, -1.0]))
        .unwrap_err();
    assert!(error.to_string().contains("row 1"), "{error}");
}

#[test]
fn a_hundred_thousand_words_are_cut_at_the_limit() {
    let embedding = embedding();
    let long = "cat stone ".repeat(50_000);
    let ids = text_rows(&embedding, [long.as_str(), "dog"], 400).unwrap();
    assert_eq!(ids.truncated, 1);
    assert_eq!(ids.features.row(0).word_ids().unwrap().len(), 400);
    // And where the limit is lifted, memory follows the tokens and not batch times length.
    let ids = text_rows(&embedding, [long.as_str(), "dog", "tree dog"], 100_000).unwrap();
    let rows = Rows::new(ids.features, vec![1.0, -1.0, -1.0], 1).unwrap();
    let training = TrainSettings {
        epochs: 1,
        validation: 0.0,
        ..TrainSettings::default()
    };
    NetworkRecipe {
        training,
        ..recipe(&embedding)
    }
    .fit(&rows)
    .unwrap();
}

#[test]
fn a_training_that_leaves_the_numbers_stops_and_keeps_the_last_good_state() {
    let embedding = embedding();
    let texts = ["cat", "dog", "cat dog", "tree", "stone", "tree stone"];
    let rows = rows(&embedding, &texts, &[1.0, 1.0, 1.0, -1.0, -1.0, -1.0]);
    let training = TrainSettings {
        learning_rate: f32::MAX,
        warmup: 0.0,
        epochs: 10,
        weight_decay: 0.0,
        ..recipe(&embedding).training
    };
    let error = NetworkRecipe {
        training,
        ..recipe(&embedding)
    }
    .train(&rows, &mut QuietTraining)
    .unwrap_err();
    let Error::Diverged {
        step, last_good, ..
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!(last_good.step + 1, *step);
    assert!(
        error.to_string().contains(&format!("at step {step}")),
        "{error}"
    );
}

#[test]
fn ids_that_the_embedding_does_not_know_are_refused() {
    let embedding = embedding();
    // 0 is the padding of an exported network and no word; the embedding has the ids 1 to 5.
    for id in [0, 6, u32::MAX] {
        let mut table = WordIds::new(3);
        table.push(&[id]).unwrap();
        table.push(&[2]).unwrap();
        let rows = Rows::new(table, vec![1.0, -1.0], 1).unwrap();
        let error = recipe(&embedding)
            .train(&rows, &mut QuietTraining)
            .unwrap_err()
            .to_string();
        assert!(error.contains(&format!("word id = {id} ")), "{error}");
    }
}

#[test]
fn a_network_refuses_numbers_and_its_head_refuses_word_ids() {
    let embedding = embedding();
    let texts = ["cat", "dog", "", "tree"];
    let targets = [1.0, 1.0, 1.0, -1.0];
    let words = rows(&embedding, &texts, &targets);
    let numbers = Rows::new(Dense::new(vec![1.0f32; 4], 1).unwrap(), targets.to_vec(), 1).unwrap();
    let network = recipe(&embedding).fit(&words).unwrap().network().clone();
    assert_eq!(
        recipe(&embedding).fit(&numbers).unwrap_err(),
        efface::Error::RowsOfNumbers
    );
    assert_eq!(
        network.predict(&numbers.table()).unwrap_err(),
        efface::Error::RowsOfNumbers
    );
    assert_eq!(
        Ridge::new(1.0).fit(&words).unwrap_err(),
        efface::Error::RowsOfWordIds
    );
    // A text without words is one unknown word, so that it has an answer too.
    let mut empty = WordIds::new(400);
    empty.push(&[]).unwrap();
    empty.push(&[UNKNOWN]).unwrap();
    let scores = network.predict(&empty.into()).unwrap();
    assert_eq!(scores[(0, 0)], scores[(1, 0)]);
}

#[test]
fn settings_out_of_range_are_named() {
    let embedding = embedding();
    let rows = rows(&embedding, &["cat", "dog"], &[1.0, -1.0]);
    let good = recipe(&embedding);
    let wrong = [
        NetworkRecipe {
            encoder: EncoderSettings {
                hidden: 0,
                ..good.encoder
            },
            ..good.clone()
        },
        NetworkRecipe {
            encoder: good.encoder.dropout(1.0),
            ..good.clone()
        },
        NetworkRecipe {
            encoder: good.encoder.width(0),
            ..good.clone()
        },
        NetworkRecipe {
            training: TrainSettings {
                batch: 0,
                ..good.training
            },
            ..good.clone()
        },
        NetworkRecipe {
            training: TrainSettings {
                clip: f32::NAN,
                ..good.training
            },
            ..good.clone()
        },
        NetworkRecipe {
            training: TrainSettings {
                validation: 0.9,
                ..good.training
            },
            ..good
        },
    ];
    for recipe in wrong {
        let error = recipe.train(&rows, &mut QuietTraining).unwrap_err();
        assert!(matches!(error, Error::Setting { .. }), "{error}");
    }
    assert!(matches!(
        text_rows(&embedding, ["cat"], 0),
        Err(Error::Setting { .. })
    ));
}
