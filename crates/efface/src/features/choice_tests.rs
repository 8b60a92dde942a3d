//! After rows came and went, features are those of an encoder that only ever saw the rows that are
//! there.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::NotCovered;
use crate::features::{
    Cell, ColumnScale, Encoder, EncoderBuilder, EncoderOptions, FeatureError, FeatureSteps,
    MissingNumbers, RowShare, StopWords, TermWeighting, TextAnalyzer, TextUnit, WordSource,
    WordSteps,
};

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&n| n.into()).collect()
}

fn cells(row: &[&str]) -> Vec<Cell> {
    row.iter()
        .map(|&c| {
            if c.is_empty() {
                Cell::Missing
            } else {
                Cell::Text(c.into())
            }
        })
        .collect()
}

fn build(
    header: &[&str],
    rows: &[Vec<Cell>],
    options: &EncoderOptions,
) -> Result<Encoder, FeatureError> {
    let mut builder = EncoderBuilder::new(&names(header), options.clone())?;
    for (row, line) in rows.iter().zip(2..) {
        builder.observe(row, line)?;
    }
    builder.finish()
}

/// The features of a row by name.
fn features(encoder: &Encoder, row: &[Cell]) -> BTreeMap<String, f64> {
    let mut out = Vec::new();
    encoder.bind_own().encode(row, 1, &mut out).unwrap();
    out.into_iter()
        .map(|(feature, value)| {
            (
                encoder.column_feature_name(feature).unwrap().into_owned(),
                value,
            )
        })
        .collect()
}

/// Takes rows out of an encoder as an engine does.
fn forget(
    encoder: &mut Encoder,
    gone: &[Vec<Cell>],
    left: &[Vec<Cell>],
) -> Result<(), FeatureError> {
    let mut raw = Vec::new();
    for row in gone {
        encoder.bind_own().encode_raw(row, 1, &mut raw)?;
        encoder.forget_row(&raw, &[]);
    }
    if encoder.lacks_extremes() {
        encoder.drop_extremes();
        for row in left {
            encoder.bind_own().encode_raw(row, 1, &mut raw)?;
            encoder.see_extremes(&raw);
        }
    }
    if let Some(map) = encoder.follow(true)? {
        encoder.adopt(map)?;
    }
    Ok(())
}

const HEADER: [&str; 3] = ["size", "colour", "note"];

fn options(steps: FeatureSteps, words: WordSource, shuffled: Option<u64>) -> EncoderOptions {
    EncoderOptions {
        text: names(&["note"]),
        numeric: names(&["size"]),
        categorical: names(&["colour"]),
        words,
        steps,
        shuffled,
        ..EncoderOptions::default()
    }
}

/// Oracle: scikit-learn 1.9.1, `TfidfVectorizer(sublinear_tf=…)` on three texts.
#[test]
fn weights_equal_scikit_learn() {
    let rows: Vec<Vec<Cell>> = ["the cat sat", "the cat the dog", "a bird"]
        .iter()
        .map(|text| cells(&[text]))
        .collect();
    let expected = [
        (
            false,
            [0.38550292161010064, 0.7710058432202013, 0.5068900148458076],
        ),
        (
            true,
            [0.4227411097100318, 0.715762918012323, 0.5558537571696494],
        ),
    ];
    for (sublinear, weights) in expected {
        let weighting = TermWeighting {
            sublinear,
            ..TermWeighting::default()
        };
        let words = WordSteps {
            weighting: Some(weighting),
            ..WordSteps::default()
        };
        let steps = FeatureSteps {
            words,
            ..FeatureSteps::default()
        };
        let options = EncoderOptions {
            text: names(&["t"]),
            steps,
            ..EncoderOptions::default()
        };
        let encoder = build(&["t"], &rows, &options).unwrap();
        let row = features(&encoder, &rows[1]);
        for (word, weight) in ["cat", "the", "dog"].into_iter().zip(weights) {
            assert!((row[word] - weight).abs() < 1e-15, "{word}: {row:?}");
        }
    }
}

#[test]
fn a_column_whose_other_values_are_gone_becomes_numeric() {
    let header = ["x", "y"];
    let rows: Vec<Vec<Cell>> = [["1", "a"], ["n/a", "b"], ["2.5", "a"]]
        .iter()
        .map(|row| cells(row))
        .collect();
    let plain = EncoderOptions::default();
    let mut encoder = build(&header, &rows, &plain).unwrap();
    let left = [rows[0].clone(), rows[2].clone()];
    forget(&mut encoder, &rows[1..2], &left).unwrap();
    assert_eq!(
        encoder.describe_columns()[0],
        ("x".into(), "numeric".into(), 1)
    );
    assert_eq!(
        features(&encoder, &left[1]),
        BTreeMap::from([("x".into(), 2.5), ("y=a".into(), 1.0)])
    );
    assert_eq!(
        features(&encoder, &cells(&["7", "a"]))["x"],
        7.0,
        "any number will do, as in a new fit"
    );
    let json = serde_json::to_string(&encoder).unwrap();
    assert_eq!(serde_json::from_str::<Encoder>(&json).unwrap(), encoder);
    // A model that cannot do with numbers keeps the column as it is, and says so.
    let fixed = EncoderOptions {
        fixed_kinds: true,
        ..plain
    };
    let mut encoder = build(&header, &rows, &fixed).unwrap();
    forget(&mut encoder, &rows[1..2], &left).unwrap();
    assert_eq!(
        encoder.describe_columns()[0],
        ("x".into(), "one-hot".into(), 2)
    );
    assert_eq!(
        encoder.not_covered(),
        [NotCovered::ColumnKind { column: "x".into() }]
    );
}

#[test]
fn features_that_are_kept_as_they_were_are_said() {
    let rows: Vec<Vec<Cell>> = ["aa bb bb", "aa bb", "cc", "cc dd"]
        .iter()
        .map(|text| cells(&[text]))
        .collect();
    let mut options = EncoderOptions {
        text: names(&["t"]),
        words: WordSource::Learned(2),
        ..EncoderOptions::default()
    };
    let mut encoder = build(&["t"], &rows, &options).unwrap();
    let mut raw = Vec::new();
    encoder
        .bind_own()
        .encode_raw(&rows[0], 1, &mut raw)
        .unwrap();
    encoder.forget_row(&raw, &[]);
    assert_eq!(
        encoder.not_covered(),
        [NotCovered::ChosenWords {
            column: "t".into(),
            words: 2
        }]
    );
    options.steps.words.weighting = Some(TermWeighting::default());
    options.words = WordSource::Learned(9);
    let mut encoder = build(&["t"], &rows, &options).unwrap();
    encoder
        .bind_own()
        .encode_raw(&rows[0], 1, &mut raw)
        .unwrap();
    encoder.forget_row(&raw, &[]);
    assert_eq!(
        encoder.not_covered(),
        [NotCovered::FeatureScale { column: "t".into() }]
    );
}

#[test]
fn a_vocabulary_that_becomes_empty_is_an_error() {
    let rows: Vec<Vec<Cell>> = ["aa", "b"].iter().map(|text| cells(&[text])).collect();
    let options = EncoderOptions {
        text: names(&["t"]),
        ..EncoderOptions::default()
    };
    let mut encoder = build(&["t"], &rows, &options).unwrap();
    let empty = FeatureError::NoWords { column: "t".into() };
    assert_eq!(forget(&mut encoder, &rows[..1], &rows[1..]), Err(empty));
}

#[test]
fn new_names_get_places_and_become_features() {
    let rows: Vec<Vec<Cell>> = ["aa bb", "aa"].iter().map(|text| cells(&[text])).collect();
    let options = EncoderOptions {
        text: names(&["t"]),
        ..EncoderOptions::default()
    };
    let mut encoder = build(&["t"], &rows, &options).unwrap();
    let new = cells(&["bb zz"]);
    let unknown = encoder
        .bind(&names(&["t"]))
        .unwrap()
        .unknown_names(&new, 1)
        .unwrap();
    encoder.admit(&unknown).unwrap();
    let mut raw = Vec::new();
    encoder.bind_own().encode_raw(&new, 1, &mut raw).unwrap();
    encoder.learn_row(&raw, &[]);
    let map = encoder.follow(true).unwrap().unwrap();
    encoder.adopt(map).unwrap();
    let all = [rows, vec![new]].concat();
    let fresh = build(&["t"], &all, &options).unwrap();
    for row in &all {
        assert_eq!(features(&encoder, row), features(&fresh, row));
    }
}

fn any_steps() -> impl Strategy<Value = FeatureSteps> {
    let scale = prop::sample::select(vec![
        ColumnScale::None,
        ColumnScale::Standard,
        ColumnScale::MinMax,
    ]);
    let missing = prop::sample::select(vec![
        MissingNumbers::Mean { indicator: false },
        MissingNumbers::Mean { indicator: true },
        MissingNumbers::Constant {
            value: -1.0,
            indicator: true,
        },
    ]);
    let weighting = prop::option::of((any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(sublinear, smooth, normalised)| TermWeighting {
            sublinear,
            smooth,
            normalised,
        },
    ));
    let least = prop::option::of(prop::sample::select(vec![
        RowShare::Rows(2),
        RowShare::Share(0.2),
    ]));
    let most = prop::option::of(prop::sample::select(vec![
        RowShare::Rows(3),
        RowShare::Share(0.9),
    ]));
    let runs = prop::sample::select(vec![
        (TextUnit::Words, 1, 2),
        (TextUnit::CharactersInWords, 2, 2),
    ]);
    (scale, missing, weighting, least, most, runs).prop_map(
        |(scale, missing, weighting, least, most, runs)| {
            let (unit, shortest, longest) = runs;
            let analyzer = TextAnalyzer::new(unit, shortest, longest, StopWords::None).unwrap();
            let words = WordSteps {
                analyzer,
                least_rows: least,
                most_rows: most,
                weighting,
            };
            FeatureSteps {
                scale,
                missing,
                words,
                ..FeatureSteps::default()
            }
        },
    )
}

proptest! {
    #[test]
    fn features_are_those_of_the_rows_that_stay(
        steps in any_steps(),
        words in prop::sample::select(vec![
            WordSource::Learned(3), WordSource::Learned(100), WordSource::Hashed(5),
            WordSource::Supplied(vec!["aa".into(), "cc".into()]),
        ]),
        rows in prop::collection::vec(("[0-9]{0,2}", "[rgb]?", "(aa|bb|cc|dd| ){0,6}"), 3..12),
        gone in prop::collection::vec(any::<prop::sample::Index>(), 1..3),
        seed in any::<u64>(),
    ) {
        prop_assume!(!matches!(words, WordSource::Supplied(_)) || steps.words.analyzer.finds("aa"));
        let rows: Vec<Vec<Cell>> = rows.iter().map(|(x, c, t)| cells(&[x, c, t])).collect();
        let options = options(steps, words, Some(seed));
        let mut out: Vec<usize> = gone.iter().map(|index| index.index(rows.len())).collect();
        out.sort_unstable();
        out.dedup();
        let left: Vec<Vec<Cell>> =
            (0..rows.len()).filter(|at| !out.contains(at)).map(|at| rows[at].clone()).collect();
        prop_assume!(!left.is_empty());
        let gone: Vec<Vec<Cell>> = out.iter().map(|at| rows[*at].clone()).collect();
        let mut encoder = build(&HEADER, &rows, &options).unwrap();
        let json = serde_json::to_string(&encoder).unwrap();
        let read: Encoder = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(&read, &encoder);
        forget(&mut encoder, &gone, &left).unwrap();
        prop_assert_eq!(encoder.not_covered(), []);
        let fresh = build(&HEADER, &left, &EncoderOptions { shuffled: Some(seed ^ 1), ..options }).unwrap();
        for row in &left {
            let found = features(&encoder, row);
            let wanted = features(&fresh, row);
            prop_assert!(found.keys().eq(wanted.keys()));
            // Names stand in another order, in which a norm is rounded differently.
            let far = found.values().zip(wanted.values()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            prop_assert!(far < 1e-14, "{found:?} {wanted:?}");
        }
        let live = |encoder: &Encoder| -> Vec<String> {
            encoder.named_features().into_iter().map(|(_, name)| name).collect()
        };
        prop_assert_eq!(live(&encoder), live(&fresh));
    }
}
