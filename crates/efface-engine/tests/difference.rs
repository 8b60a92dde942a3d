//! What an outsider reads off two exports around a forget. The outsider has both files, which name
//! the words, and texts of the same kind, which show how words go together; nothing of the model
//! file, and nothing of the row.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::*;
use efface::Method;
use efface::synthetic::{Review, Reviews};
use efface_engine::ErrorKind::Refused;
use efface_engine::{Engine, ForgetOptions, Parameters, PolicyChange};

/// Rows of the model, and texts of the same kind that the outsider has.
const ROWS: usize = 1_500;
const SIMILAR: usize = 8_000;

fn reviews(count: usize, seed: u64) -> Vec<Review> {
    Reviews {
        reviews: count,
        seed,
    }
    .generate()
}

fn fitted(bench: &Bench, rows: &[Review]) -> Engine {
    let mut text = String::from("review_id,user_id,stars,text\n");
    for row in rows {
        text.push_str(&format!(
            "{},{},{},\"{}\"\n",
            row.review_id, row.user_id, row.stars, row.text
        ));
    }
    let mut request = request(&text, "stars");
    request.id = Some("review_id".into());
    request.subject = Some("user_id".into());
    request.text = vec!["text".into()];
    bench.fit("model", &request)
}

fn forget(engine: &mut Engine, row: &Review) {
    let gone = by_method(&ids(&[&row.review_id]), &Method::default());
    engine.forget(&gone, &ForgetOptions::default()).unwrap();
}

/// The different words of a text that the model knows, as places in its list of features.
fn known_words(text: &str, places: &BTreeMap<String, usize>) -> BTreeSet<usize> {
    let lower = text.to_lowercase();
    let words = lower.split(|letter: char| !letter.is_alphanumeric());
    words.filter_map(|word| places.get(word).copied()).collect()
}

/// The outsider.
struct DifferenceAttack {
    places: BTreeMap<String, usize>,
    /// The words of every similar text.
    texts: Vec<BTreeSet<usize>>,
    /// How many similar texts hold a word, as a share.
    share: Vec<f64>,
}

impl DifferenceAttack {
    fn new(export: &Parameters, similar: &[Review]) -> Self {
        let places: BTreeMap<String, usize> = export
            .features
            .iter()
            .enumerate()
            .map(|(at, name)| (word(name), at))
            .collect();
        let texts: Vec<BTreeSet<usize>> = similar
            .iter()
            .map(|review| known_words(&review.text, &places))
            .collect();
        let mut share = vec![0.0; export.features.len()];
        for text in &texts {
            text.iter()
                .for_each(|&at| share[at] += 1.0 / texts.len() as f64);
        }
        Self {
            places,
            texts,
            share,
        }
    }

    /// The most frequent words: what one says who has seen no export.
    fn guess(&self, count: usize) -> BTreeSet<usize> {
        largest(&self.share, count)
    }

    /// The words of a row that left between two exports. For ridge, the parameters move by H⁻¹(x −
    /// mean) times the row's residual, so that H times the difference is the row; H is estimated
    /// from the similar texts. Frequent words get a head start by `weight`.
    fn words_that_left(
        &self,
        before: &Parameters,
        after: &Parameters,
        count: usize,
        weight: f64,
    ) -> BTreeSet<usize> {
        let weights = |export: &Parameters| -> BTreeMap<String, f64> {
            let lines = export.table("coefficients").iter().map(|line| line[0]);
            export
                .features
                .iter()
                .map(|name| word(name))
                .zip(lines)
                .collect()
        };
        let later = weights(after);
        let mut difference = vec![0.0; self.share.len()];
        for (name, weight) in weights(before) {
            difference[self.places[&name]] = weight - later.get(&name).copied().unwrap_or(0.0);
        }
        // H·Δ without the matrix: n·cov·Δ + λΔ.
        let mean: f64 = self
            .share
            .iter()
            .zip(&difference)
            .map(|(share, delta)| share * delta)
            .sum();
        let rows = after.rows as f64;
        let lambda = after.lambda.unwrap();
        let mut row: Vec<f64> = difference.iter().map(|delta| lambda * delta).collect();
        for text in &self.texts {
            let score = text.iter().map(|&at| difference[at]).sum::<f64>() - mean;
            text.iter()
                .for_each(|&at| row[at] += rows / self.texts.len() as f64 * score);
        }
        // The residual may have either sign: words that are there stand out on one side.
        let top = row.iter().copied().fold(f64::MIN, f64::max);
        let bottom = row.iter().copied().fold(f64::MAX, f64::min);
        if -bottom > top {
            row.iter_mut().for_each(|value| *value = -*value);
        }
        let top = top.max(-bottom);
        for (value, share) in row.iter_mut().zip(&self.share) {
            *value = *value / top + weight * share;
        }
        largest(&row, count)
    }
}

fn word(feature: &str) -> String {
    feature
        .rsplit([' ', '=', ':'])
        .next()
        .unwrap_or(feature)
        .to_lowercase()
}

/// The places of the largest values.
fn largest(values: &[f64], count: usize) -> BTreeSet<usize> {
    let mut places: Vec<usize> = (0..values.len()).collect();
    places.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
    places.into_iter().take(count).collect()
}

fn found(said: &BTreeSet<usize>, truth: &BTreeSet<usize>) -> f64 {
    said.intersection(truth).count() as f64 / truth.len() as f64
}

/// The share of their words that are found of some rows between two exports, by the attack and by
/// guessing. Each row is looked for on its own, with the weight of the guess that serves best.
fn shares(
    outsider: &DifferenceAttack,
    before: &Parameters,
    after: &Parameters,
    rows: &[Review],
) -> (f64, f64) {
    let truths: Vec<BTreeSet<usize>> = rows
        .iter()
        .map(|row| known_words(&row.text, &outsider.places))
        .collect();
    let mean = |say: &dyn Fn(usize) -> BTreeSet<usize>| -> f64 {
        truths
            .iter()
            .map(|truth| found(&say(truth.len()), truth))
            .sum::<f64>()
            / truths.len() as f64
    };
    let attacks = [0.0, 0.3, 1.0, 3.0]
        .map(|weight| mean(&|count| outsider.words_that_left(before, after, count, weight)));
    (
        attacks.into_iter().fold(0.0, f64::max),
        mean(&|count| outsider.guess(count)),
    )
}

/// Prints 0.79 for rows that left alone, 0.41 by guessing, 0.37 for rows that left ten at a time.
#[test]
fn what_two_exports_give_away_is_held_back_until_ten_requests_came() {
    let rows = reviews(ROWS, 1);
    let bench = Bench::new();
    let mut engine = fitted(&bench, &rows);
    let mut before = engine.export("json", None).unwrap().parameters;
    let outsider = DifferenceAttack::new(&before, &reviews(SIMILAR, 2));

    // As it comes, there is no second export to compare with, however often one asks.
    let mut together = before.clone();
    for (at, row) in rows[..10].iter().enumerate() {
        forget(&mut engine, row);
        if at < 9 {
            let error = engine.export("json", None).unwrap_err();
            assert!(
                error.kind() == Refused && error.to_string().contains("more requests"),
                "{error}"
            );
        } else {
            let exported = engine.export("json", None).unwrap();
            assert_eq!(exported.warning, None);
            together = exported.parameters;
        }
    }
    let (hidden, guessed) = shares(&outsider, &before, &together, &rows[..10]);

    // Whoever gives that up, for once or by policy, gives the rows away, and the log says so.
    let mut exposed = 0.0;
    before = together;
    for (at, row) in rows[10..20].iter().enumerate() {
        if at == 5 {
            let alone = PolicyChange {
                minimum_batch: Some(1),
                ..PolicyChange::default()
            };
            let error = engine.set_policy(&alone).unwrap_err();
            assert!(
                error.kind() == Refused && error.to_string().contains("compute the rows"),
                "{error}"
            );
            engine
                .set_policy(&PolicyChange {
                    expose_forgotten: true,
                    ..alone
                })
                .unwrap();
        }
        forget(&mut engine, row);
        let exported = if at < 5 {
            assert_eq!(engine.export("json", None).unwrap_err().kind(), Refused);
            engine.export_exposing_forgotten("json", None).unwrap()
        } else {
            engine.export("json", None).unwrap()
        };
        assert!(
            exported
                .warning
                .unwrap()
                .contains("one request since the last export")
        );
        let release = receipts(&engine).pop().unwrap().release.unwrap();
        assert!(
            release.warnings[0].contains("can compute the rows that left"),
            "{release:?}"
        );
        exposed += shares(
            &outsider,
            &before,
            &exported.parameters,
            std::slice::from_ref(row),
        )
        .0 / 10.0;
        before = exported.parameters;
    }
    println!("alone {exposed:.2}, guessed {guessed:.2}, ten at a time {hidden:.2}");
    assert!(exposed > guessed + 0.25, "{exposed} and {guessed}");
    assert!(hidden < guessed + 0.05, "{hidden} and {guessed}");
    sound(&engine);
}

#[test]
fn noise_that_is_taken_off_and_a_new_fit_wait_too() {
    let bench = Bench::new();
    let rows = reviews(120, 1);
    let mut engine = fitted(&bench, &rows);
    engine.export("json", None).unwrap();
    let calibrated = efface_engine::ExportNoise::Calibrated {
        epsilon: 1.0,
        delta: 1e-5,
        sensitivity: None,
    };
    let with = |noise| PolicyChange {
        noise: Some(noise),
        ..PolicyChange::default()
    };
    engine.set_policy(&with(calibrated)).unwrap();
    forget(&mut engine, &rows[0]);
    // Noise that hides the way since the last export needs no company.
    assert_eq!(engine.export("json", None).unwrap().warning, None);
    engine
        .set_policy(&with(efface_engine::ExportNoise::None))
        .unwrap();
    // Nothing was asked since that export; but without noise this one shows what it hid.
    assert_eq!(engine.export("json", None).unwrap_err().kind(), Refused);
    // Noise that promises nothing hides nothing, as far as anybody knows.
    engine
        .set_policy(&with(efface_engine::ExportNoise::Deviation {
            deviation: 1e-12,
        }))
        .unwrap();
    assert_eq!(engine.export("json", None).unwrap_err().kind(), Refused);
    engine
        .set_policy(&with(efface_engine::ExportNoise::None))
        .unwrap();
    // A new fit of what is left is the same difference.
    drop(engine);
    let mut again = fitted(&bench, &rows[1..]);
    assert_eq!(again.policy().unwrap().minimum_batch, 10);
    assert_eq!(again.export("json", None).unwrap_err().kind(), Refused);
    let warned = again
        .export_exposing_forgotten("json", None)
        .unwrap()
        .warning;
    assert!(
        warned
            .unwrap()
            .contains("one request since the last export")
    );
    // Nothing is new since then.
    again.export("json", None).unwrap();
}
