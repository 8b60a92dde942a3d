//! Networks that are trained further to forget: what the methods do on a tiny network, and what
//! they refuse.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should stop and say where"
)]

use efface::methods::{FineTune, NegGradPlus, Scrub};
use std::sync::Arc;

use efface::{Claim, Fitted, Logistic, Method, Predict, Recipe, Ridge, RowId, RowStore, Rows};
use efface_nn::{
    Embedding, EncoderSettings, Error, Network, NetworkModel, NetworkRecipe, QuietTraining,
    StepReport, TrainSettings, TrainingFlow, TrainingProgress, fit_head, head_distance, text_rows,
    train_further,
};

const CLASSES: usize = 3;

/// Rows 0 to 8 say one topic and are labelled as the next: only a network that memorised them gets
/// them right, by the names that they alone hold. They are what is to be forgotten.
const WRONG: usize = 9;

fn class(i: usize) -> usize {
    if i < WRONG {
        (i + 1) % CLASSES
    } else {
        i % CLASSES
    }
}

fn texts(n: usize) -> Vec<String> {
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
        words.join(" ")
    };
    (0..n).map(text).collect()
}

fn rows(n: usize) -> (Arc<Embedding>, Rows) {
    let texts = texts(n);
    let words = Embedding::words_of(texts.iter().map(String::as_str), 100).unwrap();
    let embedding = Arc::new(Embedding::random(words, 6, 5).unwrap());
    let ids = text_rows(&embedding, texts.iter().map(String::as_str), 14).unwrap();
    let targets = (0..n).flat_map(|i| (0..CLASSES).map(move |c| (c == class(i)) as u8 as f64));
    let rows = Rows::new(ids.features, targets.collect(), CLASSES).unwrap();
    (embedding, rows)
}

fn fitted(head: Recipe) -> Fitted<NetworkModel> {
    let (embedding, rows) = rows(72);
    let training = TrainSettings {
        epochs: 24,
        batch: 8,
        learning_rate: 2e-2,
        validation: 0.0,
        ..TrainSettings::default()
    };
    let recipe = NetworkRecipe {
        embedding,
        encoder: EncoderSettings::bilstm(8).dropout(0.1),
        training,
        head,
    };
    Fitted::new(&recipe, rows).unwrap()
}

fn ridge() -> Fitted<NetworkModel> {
    fitted(Recipe::new(Ridge::new(0.1)))
}

fn gone() -> Vec<RowId> {
    (0..WRONG as u64).map(RowId).collect()
}

/// Mean cross-entropy and share of hits of a network on some rows, through its own head.
fn judged(network: &Network, rows: &Rows) -> (f64, f64) {
    let scores = network.predict(&rows.table()).unwrap();
    let mut loss = 0.0;
    let mut hits = 0.0;
    for (at, view) in rows.iter().enumerate() {
        let own = view
            .targets
            .iter()
            .position(|target| *target == 1.0)
            .unwrap();
        let line: Vec<f64> = (0..CLASSES).map(|c| scores[(at, c)]).collect();
        loss += line.iter().map(|score| score.exp()).sum::<f64>().ln() - line[own];
        hits += line
            .iter()
            .enumerate()
            .all(|(c, score)| c == own || *score < line[own]) as u8 as f64;
    }
    (loss / rows.len() as f64, hits / rows.len() as f64)
}

fn methods() -> [Method; 3] {
    ["fine_tune", "neggrad_plus", "scrub"].map(|name| Method::named(name).unwrap())
}

#[test]
fn ascent_raises_the_loss_of_forgotten_rows_and_holds_the_others() {
    for head in [
        Recipe::new(Ridge::new(0.1)),
        Recipe::new(Logistic::new(0.1)),
    ] {
        let before = fitted(head);
        let out = before.rows().filter(|id| id.0 < WRONG as u64);
        let stay = before.rows().filter(|id| id.0 >= WRONG as u64);
        let (old_loss, old_hits) = judged(before.model().network(), &out);
        let (stay_loss, _) = judged(before.model().network(), &stay);
        assert!(
            old_hits > 0.8,
            "the wrong labels were not learned: {old_hits}"
        );
        for method in methods() {
            let mut after = before.clone();
            let evidence = after.forget(&method, &gone()).unwrap();
            let (loss, hits) = judged(after.model().network(), &out);
            let (kept, kept_hits) = judged(after.model().network(), &stay);
            if !matches!(method, Method::FineTune(_)) {
                assert!(
                    loss > 1.5 * old_loss && hits < old_hits,
                    "{}: {loss} {hits}",
                    method.name()
                );
            }
            assert!(
                kept < 1.5 * stay_loss && kept_hits > 0.95,
                "{}: {kept} {kept_hits}",
                method.name()
            );
            assert_eq!(
                (evidence.method.as_str(), evidence.claim()),
                (method.name(), Claim::Approximate)
            );
            assert_eq!(
                (evidence.forgotten, evidence.rows, after.rows().len()),
                (9, 63, 63)
            );
            assert!(evidence.bound.is_infinite() && evidence.relative_bound.is_infinite());
            assert!(evidence.iterations >= 5 * 8, "{}", evidence.iterations);
            let read = if let Method::FineTune(_) = method {
                63
            } else {
                72
            };
            assert_eq!(evidence.rows_read, read);
            assert!(
                evidence.not_covered[0]
                    .to_string()
                    .contains("nothing bounds what is left"),
                "{evidence:?}"
            );
            // The head is at its optimum on the features that are kept with it, so that it goes on
            // forgetting exactly.
            let refitted = fit_head(
                &after.model().network().recipe().head,
                after.model().encoded(),
            )
            .unwrap();
            assert!(head_distance(after.model().network().head(), &refitted).unwrap() < 1e-9);
            assert_eq!(after.model().encoded().len(), 63);
            after
                .forget(&Method::named("auto").unwrap(), &[RowId(40)])
                .unwrap();
            // A later retraining is that of the fit, whatever happened in between.
            assert_eq!(
                after.model().network().recipe().training,
                before.model().network().recipe().training
            );
        }
    }
}

/// A new head alone raises the loss of rows that it was not fitted on. What the steps did shows in
/// the head that they trained.
#[test]
fn the_steps_themselves_push_the_rows_out() {
    let before = ridge();
    let out = before.rows().filter(|id| id.0 < WRONG as u64);
    let loss = |method: Method| {
        let mut after = before.clone();
        after.forget(&method, &gone()).unwrap();
        after
            .model()
            .network()
            .backbone()
            .training_loss(&out)
            .unwrap()
    };
    let epochs = 5;
    let learning_rate = Some(1e-2);
    let plain = loss(Method::FineTune(FineTune {
        epochs,
        learning_rate,
    }));
    let neggrad = |alpha| NegGradPlus {
        alpha,
        epochs,
        learning_rate,
        loss_cap: 100.0,
    };
    let some = loss(Method::NegGradPlus(neggrad(0.9)));
    let more = loss(Method::NegGradPlus(neggrad(0.5)));
    let scrub = |max_epochs| Scrub {
        epochs,
        max_epochs,
        learning_rate,
        loss_cap: 100.0,
        ..Scrub::default()
    };
    let once = loss(Method::Scrub(scrub(1)));
    let always = loss(Method::Scrub(scrub(5)));
    // The rows are hardly known after any method: the words that they alone hold are reset.
    assert!(plain < some && some < more, "{plain} {some} {more}");
    assert!(always > once && always > plain, "{plain} {once} {always}");
}

#[test]
fn the_same_seed_gives_the_same_bits_and_the_old_network_stays() {
    let before = ridge();
    let bytes = before.model().network().to_bytes().unwrap();
    for method in methods() {
        let run = || {
            let mut after = before.clone();
            after.forget(&method, &gone()).unwrap();
            after.model().network().to_bytes().unwrap()
        };
        let first = run();
        assert!(first == run() && first != bytes, "{}", method.name());
        assert!(before.model().network().to_bytes().unwrap() == bytes);
    }
}

#[test]
fn an_empty_request_changes_nothing_and_unknown_rows_are_refused() {
    let mut network = ridge();
    // A head that is not at its optimum stays as it is too.
    network.forget(&Method::Influence, &[RowId(50)]).unwrap();
    let bytes = network.model().network().to_bytes().unwrap();
    for method in methods() {
        let evidence = network.forget(&method, &[]).unwrap();
        assert_eq!(
            (evidence.forgotten, evidence.iterations, evidence.rows_read),
            (0, 0, 0)
        );
        let unknown = network.forget(&method, &[RowId(50)]);
        assert!(matches!(unknown, Err(efface::Error::UnknownRow(RowId(50)))));
        let twice = network.forget(&method, &[RowId(3), RowId(3)]);
        assert!(matches!(twice, Err(efface::Error::DuplicateRow(RowId(3)))));
        let all: Vec<RowId> = network.rows().ids().collect();
        let none = network.forget(&method, &all);
        assert!(matches!(none, Err(efface::Error::NothingLeft { .. })));
        let class: Vec<RowId> = network
            .rows()
            .iter()
            .filter(|view| view.targets[0] == 1.0)
            .map(|view| view.id)
            .collect();
        let empty = network.forget(&method, &class);
        assert!(
            matches!(empty, Err(efface::Error::EmptyClass { .. })),
            "{empty:?}"
        );
        assert!(network.model().network().to_bytes().unwrap() == bytes);
    }
}

#[test]
fn settings_out_of_range_are_named_with_the_range() {
    let mut network = ridge();
    let neggrad = NegGradPlus::default();
    let scrub = Scrub::default();
    let cases = [
        (
            Method::FineTune(FineTune {
                epochs: 0,
                ..FineTune::default()
            }),
            "epochs = 0",
            "at least 1",
        ),
        (
            Method::FineTune(FineTune {
                learning_rate: Some(f64::NAN),
                ..FineTune::default()
            }),
            "learning_rate = NaN",
            "above 0 and at most 1",
        ),
        (
            Method::NegGradPlus(NegGradPlus {
                alpha: 1.0,
                ..neggrad
            }),
            "alpha = 1",
            "below 1",
        ),
        (
            Method::NegGradPlus(NegGradPlus {
                alpha: -0.5,
                ..neggrad
            }),
            "alpha = -0.5",
            "above 0",
        ),
        (
            Method::NegGradPlus(NegGradPlus {
                epochs: 0,
                ..neggrad
            }),
            "epochs = 0",
            "at least 1",
        ),
        (
            Method::NegGradPlus(NegGradPlus {
                loss_cap: 0.0,
                ..neggrad
            }),
            "loss_cap = 0",
            "above 0",
        ),
        (
            Method::NegGradPlus(NegGradPlus {
                learning_rate: Some(f64::INFINITY),
                ..neggrad
            }),
            "learning_rate = inf",
            "at most 1",
        ),
        (
            Method::Scrub(Scrub { epochs: 0, ..scrub }),
            "epochs = 0",
            "at least 1",
        ),
        (
            Method::Scrub(Scrub {
                max_epochs: 6,
                ..scrub
            }),
            "max_epochs = 6",
            "at most the epochs",
        ),
        (
            Method::Scrub(Scrub {
                alpha: -1.0,
                ..scrub
            }),
            "alpha = -1",
            "0 or more",
        ),
        (
            Method::Scrub(Scrub {
                gamma: f64::NAN,
                ..scrub
            }),
            "gamma = NaN",
            "0 or more",
        ),
        (
            Method::Scrub(Scrub {
                alpha: 0.0,
                gamma: 0.0,
                ..scrub
            }),
            "gamma = 0",
            "above 0",
        ),
    ];
    for (method, value, range) in cases {
        let error = network.forget(&method, &gone()).unwrap_err();
        assert!(matches!(error, efface::Error::Parameter { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(value) && text.contains(range), "{text}");
    }
}

#[test]
fn a_loss_beyond_the_cap_or_the_numbers_ends_with_an_error_and_the_old_network_stays() {
    let network = ridge();
    let bytes = network.model().network().to_bytes().unwrap();
    let far = |loss_cap| {
        let neggrad = NegGradPlus {
            alpha: 0.1,
            epochs: 30,
            learning_rate: Some(0.05),
            loss_cap,
        };
        let scrub = Scrub {
            epochs: 30,
            max_epochs: 30,
            learning_rate: Some(0.05),
            loss_cap,
            ..Scrub::default()
        };
        [Method::NegGradPlus(neggrad), Method::Scrub(scrub)]
    };
    for method in far(3.0) {
        let backbone = network.model().network().backbone();
        let error = train_further(
            &method,
            backbone,
            network.rows(),
            &gone(),
            &mut QuietTraining,
        )
        .unwrap_err();
        assert!(
            matches!(error, Error::Overshot { value, cap, .. } if value > cap),
            "{error}"
        );
        let text = network
            .clone()
            .forget(&method, &gone())
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("3.0e0 is the most") && text.contains("lower the learning rate"),
            "{text}"
        );
    }
    // A weight decay that turns parameters around and blows them up is not taken either.
    let mut wild = network.model().network().recipe().clone();
    wild.training.weight_decay = 1e30;
    let texts = network.rows().clone();
    let tune = Method::FineTune(FineTune {
        learning_rate: Some(1.0),
        epochs: 9,
    });
    let trained = NetworkRecipe {
        training: TrainSettings {
            epochs: 0,
            ..wild.training
        },
        ..wild
    };
    let start = trained
        .train_from(network.model().network(), &texts, &mut QuietTraining)
        .unwrap();
    let error = train_further(
        &tune,
        start.network.backbone(),
        &texts,
        &gone(),
        &mut QuietTraining,
    )
    .unwrap_err();
    assert!(
        matches!(
            error,
            Error::Overshot {
                what: "largest parameter",
                ..
            }
        ),
        "{error}"
    );
    assert!(network.model().network().to_bytes().unwrap() == bytes && network.rows().len() == 72);
}

#[test]
fn an_encoder_that_was_never_trained_has_nothing_to_forget() {
    let (embedding, rows) = rows(30);
    let training = TrainSettings {
        epochs: 0,
        ..TrainSettings::default()
    };
    let head = Recipe::new(Ridge::new(0.1));
    let recipe = NetworkRecipe {
        embedding,
        encoder: EncoderSettings::bilstm(4),
        training,
        head,
    };
    let mut network = Fitted::new(&recipe, rows).unwrap();
    for method in methods() {
        let error = network
            .forget(&method, &[RowId(1)])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("never trained") && error.contains("retrain_head"),
            "{error}"
        );
    }
}

/// Notes the losses that steps tell of.
#[derive(Default)]
struct StepNotes(Vec<(usize, Option<f64>)>);

impl TrainingProgress for StepNotes {
    fn step(&mut self, report: &StepReport) -> TrainingFlow {
        self.0.push((report.epoch, report.forgotten));
        TrainingFlow::Continue
    }
}

#[test]
fn steps_tell_of_the_rows_to_forget() {
    let network = ridge();
    let told = |method: Method| {
        let mut notes = StepNotes::default();
        let backbone = network.model().network().backbone();
        train_further(&method, backbone, network.rows(), &gone(), &mut notes).unwrap();
        notes.0
    };
    assert!(
        told(Method::named("fine_tune").unwrap())
            .iter()
            .all(|(_, loss)| loss.is_none())
    );
    let neggrad = told(Method::named("neggrad_plus").unwrap());
    assert_eq!(neggrad.len(), 5 * 8);
    assert!(neggrad.iter().all(|(_, loss)| loss.is_some()));
    // Of 63 + 9 rows in batches of 8, two passes over the 9 come before the first two over the 63.
    let scrub = told(Method::named("scrub").unwrap());
    assert_eq!(scrub.len(), 5 * 8 + 2 * 2);
    assert!(
        scrub
            .iter()
            .all(|(epoch, loss)| loss.is_some() == (*epoch <= 2))
    );
}

#[test]
fn words_that_only_forgotten_rows_held_lose_their_names() {
    let mut network = ridge();
    let named = |network: &Fitted<NetworkModel>, word: &str| {
        network
            .model()
            .network()
            .embedding()
            .words()
            .iter()
            .any(|known| known == word)
    };
    assert!(named(&network, "name3"));
    network
        .forget(&Method::named("scrub").unwrap(), &[RowId(3)])
        .unwrap();
    assert!(!named(&network, "name3") && named(&network, "name4"));
}

#[test]
fn relearning_begins_where_forgetting_ended() {
    let before = ridge();
    let out = before.rows().filter(|id| id.0 < WRONG as u64);
    let known = before
        .model()
        .network()
        .backbone()
        .training_loss(&out)
        .unwrap();
    let steps = |network: &Fitted<NetworkModel>| {
        network
            .model()
            .network()
            .backbone()
            .relearn(&out, known, 500, 5e-3)
            .unwrap()
            .steps
            .unwrap()
    };
    assert_eq!(
        steps(&before),
        0,
        "a network that forgot nothing has nothing to relearn"
    );
    let mut head = before.clone();
    head.forget(&Method::RetrainHead, &gone()).unwrap();
    assert!(
        steps(&head) > 0,
        "its encoder has forgotten the words that these rows alone hold"
    );
    let mut anew = before.clone();
    anew.forget(&Method::Retrain, &gone()).unwrap();
    let truth = steps(&anew);
    assert!(truth > 5, "{truth}");
    for method in methods() {
        let mut after = before.clone();
        after.forget(&method, &gone()).unwrap();
        assert!(steps(&after) > 0, "{}", method.name());
    }
    // A target out of reach is told as such, and one step is one step.
    let far = before
        .model()
        .network()
        .backbone()
        .relearn(&out, -1.0, 3, 5e-3)
        .unwrap();
    assert_eq!((far.steps, far.limit, far.start_loss), (None, 3, known));
}
