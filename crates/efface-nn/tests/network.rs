//! Small networks from end to end: they learn, repeat themselves, resume, forget and come back from
//! bytes.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should stop and say where"
)]

use efface::models::RowsBeside;
use std::sync::Arc;

use efface::methods::{Newton, ProjectionResidual};
use efface::models::sisa::SisaForget;
use efface::{
    Aggregation, Amend, Claim, Family, Features, Fit, Fitted, Forget, Logistic, Method, Model,
    Predict, Recipe, Ridge, RowId, RowStore, Rows, ShardRecipe, Sisa, Softmax,
};
use efface_nn::{
    Backbone, Embedding, EncoderSettings, EpochReport, Error, Network, NetworkModel, NetworkRecipe,
    Pooling, QuietTraining, StepReport, TrainSettings, TrainingCheckpoint, TrainingFlow,
    TrainingProgress, fit_head, head_distance, text_rows,
};

/// Texts of filler words with two words of their class somewhere.
fn texts(n: usize, classes: usize) -> Vec<String> {
    let filler = ["the", "of", "and", "to", "in", "for", "on", "with"];
    let text = |i: usize| {
        let length = 4 + i * 5 % 9;
        let mut words: Vec<String> = (0..length)
            .map(|t| filler[(i * 3 + t * 5) % 8].to_string())
            .collect();
        words[i % length] = format!("topic{}a", i % classes);
        words[(i * 7 + 2) % length] = format!("topic{}b", i % classes);
        words.join(" ")
    };
    (0..n).map(text).collect()
}

fn rows(n: usize, classes: usize) -> (Arc<Embedding>, Rows) {
    let texts = texts(n, classes);
    let words = Embedding::words_of(texts.iter().map(String::as_str), 100).unwrap();
    let embedding = Arc::new(Embedding::random(words, 6, 5).unwrap());
    let ids = text_rows(&embedding, texts.iter().map(String::as_str), 12).unwrap();
    let targets = (0..n).flat_map(|i| match classes {
        2 => vec![if i % 2 == 1 { 1.0 } else { -1.0 }],
        _ => (0..classes)
            .map(|c| (c == i % classes) as u8 as f64)
            .collect(),
    });
    let rows = Rows::new(
        ids.features,
        targets.collect(),
        if classes == 2 { 1 } else { classes },
    )
    .unwrap();
    (embedding, rows)
}

fn training() -> TrainSettings {
    TrainSettings {
        epochs: 8,
        batch: 8,
        learning_rate: 2e-2,
        validation: 0.2,
        ..TrainSettings::default()
    }
}

fn recipe(embedding: &Arc<Embedding>) -> NetworkRecipe {
    NetworkRecipe {
        embedding: embedding.clone(),
        encoder: EncoderSettings::bilstm(6).dropout(0.1),
        training: training(),
        head: Recipe::new(Ridge::new(0.1)),
    }
}

fn accuracy(network: &Network, rows: &Rows) -> f64 {
    let scores = network.predict(&rows.table()).unwrap();
    let right = rows
        .iter()
        .enumerate()
        .filter(|(at, view)| match view.targets {
            [sign] => scores[(*at, 0)] * sign > 0.0,
            many => (0..many.len()).all(|c| {
                many[c] == 1.0 || {
                    let own = many.iter().position(|t| *t == 1.0).unwrap();
                    scores[(*at, c)] < scores[(*at, own)]
                }
            }),
        });
    right.count() as f64 / rows.len() as f64
}

#[test]
fn tiny_texts_are_learned_by_every_shape() {
    let (embedding, rows) = rows(90, 3);
    let stack = EncoderSettings::stacked(8, 6).dropout(0.1);
    for encoder in [
        EncoderSettings::bilstm(6),
        stack,
        EncoderSettings {
            pooling: Pooling::Mean,
            ..EncoderSettings::bilstm(6).width(20)
        },
    ] {
        let recipe = NetworkRecipe {
            encoder,
            training: TrainSettings {
                epochs: 12,
                ..training()
            },
            ..recipe(&embedding)
        };
        let network = recipe.fit(&rows).unwrap().network().clone();
        assert!(
            accuracy(&network, &rows) > 0.95,
            "{encoder:?}: {}",
            accuracy(&network, &rows)
        );
        assert_eq!(network.width(), encoder.features());
    }
}

#[test]
fn the_same_seed_gives_the_same_bits() {
    let (embedding, rows) = rows(40, 3);
    for threads in [1, 3] {
        let recipe = NetworkRecipe {
            training: TrainSettings {
                threads,
                epochs: 2,
                ..training()
            },
            ..recipe(&embedding)
        };
        let a = recipe.fit(&rows).unwrap().network().clone();
        let b = recipe.fit(&rows).unwrap().network().clone();
        assert!(a.to_bytes().unwrap() == b.to_bytes().unwrap());
        let other = TrainSettings {
            seed: 1,
            ..recipe.training
        };
        let c = NetworkRecipe {
            training: other,
            ..recipe
        }
        .fit(&rows)
        .unwrap()
        .network()
        .clone();
        assert!(head_distance(a.head(), c.head()).unwrap() > 0.0);
    }
}

/// Stops after some steps and keeps the state.
struct StopAfter(u64);

impl TrainingProgress for StopAfter {
    fn step(&mut self, report: &StepReport) -> TrainingFlow {
        if report.step == self.0 {
            TrainingFlow::Stop
        } else {
            TrainingFlow::Continue
        }
    }
}

#[test]
fn a_resumed_training_ends_like_an_uninterrupted_one() {
    let (embedding, rows) = rows(40, 3);
    let recipe = recipe(&embedding);
    let whole = recipe.train(&rows, &mut QuietTraining).unwrap();
    // In the middle of an epoch, and after one.
    for stop in [3, 8, 10] {
        let part = recipe.train(&rows, &mut StopAfter(stop)).unwrap();
        assert_eq!(part.checkpoint.step, stop);
        let stored = TrainingCheckpoint::from_bytes(&part.checkpoint.to_bytes().unwrap()).unwrap();
        assert_eq!(stored, part.checkpoint);
        let rest = recipe
            .continue_from(stored, &rows, &mut QuietTraining)
            .unwrap();
        assert_eq!(rest.checkpoint, whole.checkpoint);
        assert!(rest.network.to_bytes().unwrap() == whole.network.to_bytes().unwrap());
    }
    let other = NetworkRecipe {
        training: TrainSettings {
            seed: 9,
            ..recipe.training
        },
        ..recipe
    };
    assert!(matches!(
        other.continue_from(whole.checkpoint, &rows, &mut QuietTraining),
        Err(Error::Damaged(_))
    ));
}

/// Counts epochs and stops after one.
#[derive(Default)]
struct OneEpoch(usize);

impl TrainingProgress for OneEpoch {
    fn epoch(&mut self, report: &EpochReport, checkpoint: &TrainingCheckpoint) -> TrainingFlow {
        self.0 += 1;
        assert!(report.best && report.validation.is_some());
        assert_eq!(checkpoint.best_epoch(), Some(1));
        TrainingFlow::Stop
    }
}

#[test]
fn who_stops_the_training_keeps_the_best_so_far() {
    let (embedding, rows) = rows(40, 3);
    let mut watch = OneEpoch::default();
    let trained = recipe(&embedding).train(&rows, &mut watch).unwrap();
    assert_eq!((watch.0, trained.checkpoint.history.len()), (1, 1));
}

/// One recipe of each loss for two classes and for more.
fn cases() -> Vec<(Fitted<NetworkModel>, Rows)> {
    let mut cases = Vec::new();
    for classes in [2, 3] {
        let (embedding, rows) = rows(60, classes);
        for head in [
            Recipe::new(Ridge::new(0.1)),
            Recipe::new(Logistic::new(0.1)),
        ] {
            let training = TrainSettings {
                epochs: 3,
                ..training()
            };
            let recipe = NetworkRecipe {
                head,
                training,
                ..recipe(&embedding)
            };
            cases.push((Fitted::new(&recipe, rows.clone()).unwrap(), rows.clone()));
        }
    }
    cases
}

#[test]
fn the_head_is_at_its_optimum_and_forgets_like_a_refit() {
    let gone = [RowId(3), RowId(17), RowId(30), RowId(44)];
    for (fitted, _) in cases() {
        let network = fitted.model().network();
        let refitted = fit_head(&network.recipe().head, fitted.model().encoded()).unwrap();
        assert!(head_distance(network.head(), &refitted).unwrap() < 1e-9);
        let kept = fitted.model().encoded().filter(|id| !gone.contains(&id));
        let right = fit_head(&network.recipe().head, &kept).unwrap();
        let ridge = network.head().family() == Family::Ridge;
        let exact: &[&str] = if ridge {
            &["exact", "newton", "summation", "auto", "retrain_head"]
        } else {
            &["warm_start", "retrain_head"]
        };
        for name in exact {
            let mut fitted = fitted.clone();
            let evidence = fitted.forget(&Method::named(name).unwrap(), &gone).unwrap();
            let distance = head_distance(fitted.model().network().head(), &right).unwrap();
            assert!(distance < 1e-8, "{name}: {distance:e}");
            assert!(!ridge || distance < 1e-9, "{name}: {distance:e}");
            assert_eq!(
                (evidence.forgotten, evidence.rows, fitted.rows().len()),
                (4, 56, 56)
            );
            assert!(
                evidence
                    .not_covered
                    .iter()
                    .any(|what| what.to_string().contains("encoder")),
                "{evidence:?}"
            );
            assert!(evidence.reason.unwrap().contains("only the first 12 words"));
        }
        for name in ["newton", "influence", "projection_residual"] {
            let mut fitted = fitted.clone();
            let evidence = fitted.forget(&Method::named(name).unwrap(), &gone).unwrap();
            let distance = head_distance(fitted.model().network().head(), &right).unwrap();
            let bound = evidence.head_bound.map_or(f64::INFINITY, |head| head.bound);
            assert!(
                distance <= bound * 1.001 + 1e-9,
                "{name}: {distance:e} above {bound:e}"
            );
            assert!(evidence.bound.is_infinite(), "{name}");
            let before = head_distance(network.head(), &right).unwrap();
            assert!(
                distance < before,
                "{name}: {distance:e} where {before:e} was"
            );
        }
        let refused = if ridge {
            Method::WarmStart
        } else {
            Method::Exact
        };
        let error = network
            .forget(&refused, fitted.model().encoded(), &gone)
            .unwrap_err()
            .to_string();
        assert!(error.contains("cannot be used here"), "{error}");
        let twice = network.forget(
            &Method::RetrainHead,
            fitted.model().encoded(),
            &[RowId(3), RowId(3)],
        );
        assert!(matches!(
            twice,
            Err(Error::Core(efface::Error::DuplicateRow(RowId(3))))
        ));
    }
}

#[test]
fn rounds_of_the_projection_residual() {
    let gone = [RowId(1), RowId(8), RowId(21)];
    for (fitted, _) in cases() {
        let network = fitted.model().network();
        let run = |rounds: ProjectionResidual| {
            let outcome = network
                .forget(&rounds.into(), fitted.model().encoded(), &gone)
                .unwrap();
            (outcome.model.head().clone(), outcome.evidence)
        };
        let start = ProjectionResidual::default();
        let (one, _) = run(start);
        let (many, evidence) = run(ProjectionResidual {
            rounds: 40,
            step: 0.5,
            tolerance: 1e-7,
        });
        assert!(
            evidence.iterations > 1 && evidence.iterations < 40,
            "{}",
            evidence.iterations
        );
        let distance = |a: &Model, b: &Model| head_distance(a, b).unwrap();
        match network.head().family() {
            Family::Ridge => {
                // One round is the whole method, and halves add up to it.
                assert_eq!(
                    distance(&run(ProjectionResidual { rounds: 5, ..start }).0, &one),
                    0.0
                );
                assert!(distance(&many, &one) < 1e-6, "{}", distance(&many, &one));
                let (half, _) = run(ProjectionResidual {
                    rounds: 1,
                    step: 0.5,
                    ..start
                });
                let (quarter, _) = run(ProjectionResidual {
                    rounds: 2,
                    step: 0.5,
                    ..start
                });
                assert!((distance(&quarter, &one) - distance(&half, &one) / 2.0).abs() < 1e-9);
            }
            _ => {
                // Rounds end where the step to the retained optimum has nothing left inside the
                // span.
                let (full, evidence) = run(ProjectionResidual {
                    rounds: 40,
                    step: 1.0,
                    tolerance: 1e-8,
                });
                assert!(evidence.iterations < 40);
                assert!(distance(&full, &many) < 1e-5, "{}", distance(&full, &many));
                assert!(distance(&full, &one) < distance(network.head(), &one));
                assert_eq!(evidence.rows, 57);
            }
        }
        for wrong in [
            ProjectionResidual { rounds: 0, ..start },
            ProjectionResidual { step: 0.0, ..start },
            ProjectionResidual {
                step: f64::NAN,
                ..start
            },
            ProjectionResidual {
                tolerance: -1.0,
                ..start
            },
        ] {
            let result = network.forget(&wrong.into(), fitted.model().encoded(), &gone);
            assert!(matches!(
                result,
                Err(Error::Core(efface::Error::Parameter { .. }))
            ));
        }
    }
}

#[test]
fn retraining_leaves_nothing_of_the_encoder_uncovered() {
    let (embedding, rows) = rows(50, 3);
    let mut public = (*embedding).clone();
    public.public = true;
    let recipe = NetworkRecipe {
        training: TrainSettings {
            epochs: 2,
            ..training()
        },
        ..recipe(&Arc::new(public))
    };
    let mut fitted = Fitted::new(&recipe, rows.clone()).unwrap();
    let gone = [RowId(0), RowId(7)];
    let evidence = fitted.forget(&Method::Retrain, &gone).unwrap();
    assert!(
        evidence.not_covered.is_empty(),
        "{:?}",
        evidence.not_covered
    );
    let fresh = recipe
        .fit(&rows.filter(|id| !gone.contains(&id)))
        .unwrap()
        .network()
        .clone();
    assert!(fitted.model().network().to_bytes().unwrap() == fresh.to_bytes().unwrap());
    assert!(fitted.forget(&Method::Retrain, &[RowId(7)]).is_err());
    // An encoder that was drawn and never trained holds nothing of anybody.
    let drawn = NetworkRecipe {
        training: TrainSettings {
            epochs: 0,
            ..training()
        },
        ..recipe
    };
    let mut fitted = Fitted::new(&drawn, rows).unwrap();
    let evidence = fitted.forget(&Method::Exact, &gone).unwrap();
    assert!(
        evidence.not_covered.is_empty(),
        "{:?}",
        evidence.not_covered
    );
}

#[test]
fn sisa_over_whole_networks_forgets_to_the_bit() {
    let (embedding, rows) = rows(60, 2);
    let network = NetworkRecipe {
        training: TrainSettings {
            epochs: 2,
            ..training()
        },
        ..recipe(&embedding)
    };
    let sisa = Sisa::new(ShardRecipe::new(network).unwrap(), 2, 2).aggregation(Aggregation::Mean);
    let model = sisa.fit(&rows).unwrap();
    let gone = [RowId(5), RowId(6)];
    let outcome = SisaForget.forget(&model, &rows, &gone).unwrap();
    let fresh = sisa.fit(&rows.filter(|id| !gone.contains(&id))).unwrap();
    let ids = text_rows(&embedding, texts(20, 2).iter().map(String::as_str), 12)
        .unwrap()
        .features;
    let a = outcome.model.predict(&ids).unwrap();
    let b = fresh.predict(&ids).unwrap();
    assert_eq!(
        (0..20).map(|i| a[(i, 0)]).collect::<Vec<_>>(),
        (0..20).map(|i| b[(i, 0)]).collect::<Vec<_>>()
    );
}

/// The shards of a network that lost all texts of a class go on telling the other classes apart.
#[test]
fn networks_in_shards_can_lose_a_class() {
    let (embedding, rows) = rows(60, 3);
    let network = NetworkRecipe {
        head: Softmax::new(1.0).into(),
        ..recipe(&embedding)
    };
    let sisa = Recipe::new(Sisa::new(ShardRecipe::new(network).unwrap(), 2, 2));
    let model = sisa.fit(&rows).unwrap();
    let gone: Vec<RowId> = rows.ids().filter(|id| id.0 % 3 == 1).collect();
    let after = model.forget(&Method::Sisa, &rows, &gone).unwrap().model;
    let trained = model.forget(&Method::Retrain, &rows, &gone).unwrap().model;
    let scores = after.predict(&rows.table()).unwrap();
    assert_eq!(scores, trained.predict(&rows.table()).unwrap());
    let answer = |row: usize| {
        (0..3).fold(0, |a, b| {
            if scores[(row, b)] > scores[(row, a)] {
                b
            } else {
                a
            }
        })
    };
    let left: Vec<usize> = (0..60).filter(|row| row % 3 != 1).collect();
    let right = left.iter().filter(|row| answer(**row) == **row % 3).count();
    assert!(right >= 26, "{right} of 40");
    for class in [0, 2] {
        assert!(left.iter().any(|row| answer(*row) == class), "{class}");
    }
    assert!((0..60).all(|row| scores[(row, 1)] == 0.0));
    let back = sisa
        .restore(after.to_state().unwrap(), RowsBeside::None)
        .unwrap();
    assert_eq!(back.predict(&rows.table()).unwrap(), scores);
}

#[test]
fn bytes_bring_the_network_back_and_damage_is_named() {
    for (mut fitted, rows) in cases() {
        let methods = [Method::Newton(Newton::default()), Method::Influence];
        fitted.forget(&methods[0], &[RowId(2)]).unwrap();
        let bytes = fitted.model().network().to_bytes().unwrap();
        let back = Network::from_bytes(&bytes).unwrap();
        assert!(back.to_bytes().unwrap() == bytes);
        assert_eq!(
            head_distance(back.head(), fitted.model().network().head()).unwrap(),
            0.0
        );
        assert_eq!(
            accuracy(&back, &rows),
            accuracy(fitted.model().network(), &rows)
        );
        back.forget(&methods[1], fitted.model().encoded(), &[RowId(9)])
            .unwrap();
        // Cut anywhere, or with any byte of the header changed: an error or a network, never a
        // panic.
        for cut in [0, 4, 8, 100, bytes.len() / 2, bytes.len() - 1] {
            assert!(Network::from_bytes(&bytes[..cut]).is_err());
        }
        let header = u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
        for at in (0..header + 8).step_by(7) {
            let mut changed = bytes.clone();
            changed[at] = changed[at].wrapping_add(1);
            let _ = Network::from_bytes(&changed);
        }
        let mut huge = bytes.clone();
        huge[..8].copy_from_slice(&u64::MAX.to_le_bytes());
        let error = Network::from_bytes(&huge).unwrap_err().to_string();
        assert!(error.contains("its header claims"), "{error}");
        assert!(TrainingCheckpoint::from_bytes(&bytes).is_err());
    }
}

#[test]
fn parts_of_a_network_come_back_alone() {
    let (embedding, rows) = rows(30, 3);
    let recipe = NetworkRecipe {
        training: TrainSettings {
            epochs: 1,
            ..training()
        },
        ..recipe(&embedding)
    };
    let network = recipe.fit(&rows).unwrap().network().clone();
    let bytes = network.backbone().to_bytes().unwrap();
    let back = Backbone::from_bytes(&bytes).unwrap();
    assert!(back.to_bytes().unwrap() == bytes && Network::from_bytes(&bytes).is_err());
    let again = back.with_head(network.head().clone()).unwrap();
    let list = |rows: Rows| {
        rows.iter()
            .map(|view| view.features.entries())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        list(again.encode(&rows).unwrap()),
        list(network.encode(&rows).unwrap())
    );
    let (alone, most) = NetworkRecipe::from_bytes(&recipe.to_bytes(12).unwrap()).unwrap();
    assert!(alone == recipe && most == 12);
    assert!(Backbone::from_bytes(&recipe.to_bytes(12).unwrap()).is_err());
}

#[test]
fn shards_are_stored_without_words_and_read_with_them() {
    let (embedding, rows) = rows(40, 3);
    let network = NetworkRecipe {
        training: TrainSettings {
            epochs: 1,
            ..training()
        },
        ..recipe(&embedding)
    };
    let sharded = |network: &NetworkRecipe| {
        Recipe::new(Sisa::new(ShardRecipe::new(network.clone()).unwrap(), 2, 2))
    };
    let recipe = sharded(&network);
    let model = recipe.fit(&rows).unwrap();
    let state = model.to_state().unwrap();
    let back = recipe.restore(state.clone(), RowsBeside::None).unwrap();
    let ids: Features = rows.table().into_owned();
    assert_eq!(back.predict(&ids).unwrap(), model.predict(&ids).unwrap());
    let word = embedding.words()[0].as_bytes();
    assert!(!state.head.windows(word.len()).any(|bytes| bytes == word));
    let other = NetworkRecipe {
        encoder: EncoderSettings::bilstm(7),
        ..network
    };
    assert!(sharded(&other).restore(state, RowsBeside::None).is_err());
    // A model that was read forgets like the one that was stored.
    let gone = [RowId(3), RowId(17)];
    let a = model.forget(&Method::Sisa, &rows, &gone).unwrap();
    let b = back.forget(&Method::Sisa, &rows, &gone).unwrap();
    assert_eq!(
        a.model.predict(&ids).unwrap(),
        b.model.predict(&ids).unwrap()
    );
}

/// A network is a family like any other: one door, one `Fitted`, one state.
#[test]
fn a_network_is_a_model_of_its_texts() {
    let (embedding, rows) = rows(40, 2);
    let network = NetworkRecipe {
        training: TrainSettings {
            epochs: 1,
            ..training()
        },
        ..recipe(&embedding)
    };
    let recipe = Recipe::new(network);
    let mut fitted = Fitted::new(&recipe, rows.filter(|id| id.0 < 30)).unwrap();
    assert_eq!(
        (fitted.model().family(), fitted.model().rows()),
        (Family::Network, 30)
    );
    fitted
        .learn(&rows.filter(|id| (30..36).contains(&id.0)))
        .unwrap();
    let evidence = fitted
        .forget(&Method::Exact, &[RowId(3), RowId(31)])
        .unwrap();
    assert_eq!((evidence.rows, evidence.claim()), (34, Claim::Approximate));
    assert!(evidence.head_bound.is_some_and(|head| head.bound < 1e-9));
    assert!(!evidence.not_covered.is_empty());
    fitted.amend(&rows.filter(|id| id.0 == 5)).unwrap();
    let mut model = fitted.model().clone();
    model.settle().unwrap();
    let back = recipe
        .restore(model.to_state().unwrap(), RowsBeside::Kept(fitted.rows()))
        .unwrap();
    let ids: Features = rows.table().into_owned();
    assert_eq!(back.predict(&ids).unwrap(), model.predict(&ids).unwrap());
    assert!(
        recipe
            .restore(model.to_state().unwrap(), RowsBeside::None)
            .is_err()
    );
    let gone = [RowId(7)];
    let a = model
        .forget(&Method::Exact, fitted.rows(), &gone)
        .unwrap()
        .model;
    let b = back
        .forget(&Method::Exact, fitted.rows(), &gone)
        .unwrap()
        .model;
    let (a, b) = (a.predict(&ids).unwrap(), b.predict(&ids).unwrap());
    assert!((0..40).all(|at| (a[(at, 0)] - b[(at, 0)]).abs() < 1e-9));
}

#[test]
fn a_checkpoint_belongs_to_its_rows() {
    let (embedding, all) = rows(40, 3);
    let recipe = recipe(&embedding);
    let part = recipe.train(&all, &mut StopAfter(3)).unwrap();
    let (_, fewer) = rows(39, 3);
    let error = recipe
        .continue_from(part.checkpoint.clone(), &fewer, &mut QuietTraining)
        .unwrap_err()
        .to_string();
    assert!(error.contains("other rows"), "{error}");
    let slower = NetworkRecipe {
        training: TrainSettings {
            learning_rate: 1e-3,
            ..training()
        },
        ..recipe
    };
    slower
        .continue_from(part.checkpoint, &all, &mut QuietTraining)
        .unwrap();
}
