//! Checks of the encoder and its builder together: kinds, names, errors, order of columns,
//! forgetting.

use proptest::prelude::*;

use crate::NotCovered;
use crate::features::{
    Cell, ColumnScale, Encoder, EncoderBuilder, EncoderOptions, EncodingGaps, FeatureError,
    FeatureSteps, MissingNumbers, WordSource,
};

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&n| n.into()).collect()
}

/// A row as a CSV reader would hand it over.
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
    rows: &[&[&str]],
    options: EncoderOptions,
) -> Result<Encoder, FeatureError> {
    let mut builder = EncoderBuilder::new(&names(header), options)?;
    for (at, row) in rows.iter().enumerate() {
        builder.observe(&cells(row), at as u64 + 2)?;
    }
    builder.finish()
}

fn all_names(encoder: &Encoder) -> Vec<Option<String>> {
    (0..encoder.width() as u32)
        .map(|j| encoder.column_feature_name(j).map(Into::into))
        .collect()
}

const HEADER: [&str; 4] = ["id", "size", "colour", "note"];
const ROWS: [&[&str]; 3] = [
    &["1", " 2.5", "red", "good good value"],
    &["2", "0", "", "bad"],
    &["3", "-1e2", "blue", ""],
];

fn mixed() -> Encoder {
    let options = EncoderOptions {
        ignored: names(&["id"]),
        text: names(&["note"]),
        numeric: names(&["size"]),
        categorical: names(&["colour"]),
        ..Default::default()
    };
    build(&HEADER, &ROWS, options).unwrap()
}

#[test]
fn kinds_names_and_values() {
    let encoder = mixed();
    let expected = [
        "size",
        "colour=(missing)",
        "colour=blue",
        "colour=red",
        "note:bad",
        "note:good",
        "note:value",
    ];
    assert_eq!(all_names(&encoder), expected.map(|n| Some(n.to_string())));
    assert_eq!(
        (
            encoder.width(),
            encoder.column_feature_name(7),
            encoder.column_feature_name(u32::MAX)
        ),
        (7, None, None)
    );
    assert_eq!(
        encoder
            .columns()
            .iter()
            .map(|c| c.kind())
            .collect::<Vec<_>>(),
        ["numeric", "one-hot", "words"]
    );
    let mut out = vec![(99, 9.0)];
    let encoded = encoder
        .bind_own()
        .encode(&cells(ROWS[0]), 2, &mut out)
        .unwrap();
    assert_eq!(
        (out.as_slice(), encoded),
        (
            &[(0, 2.5), (3, 1.0), (5, 2.0), (6, 1.0)][..],
            EncodingGaps::default()
        )
    );
    encoder
        .bind_own()
        .encode(&cells(ROWS[1]), 3, &mut out)
        .unwrap();
    assert_eq!(
        out,
        [(1, 1.0), (4, 1.0)],
        "zero is left out, missing is a level"
    );
    let encoded = encoder
        .bind_own()
        .encode(&cells(&["", "1", "green", "good new words"]), 4, &mut out)
        .unwrap();
    assert_eq!(out, [(0, 1.0), (5, 1.0)]);
    assert_eq!(
        encoded,
        EncodingGaps {
            unknown_levels: 1,
            unknown_words: 2
        }
    );
}

#[test]
fn rows_of_numbers_take_the_short_way_to_the_same_features() {
    let rows: [&[&str]; 4] = [&["1", "0"], &["", "-3.5"], &["4", "2"], &["0", "1e3"]];
    for scale in [
        ColumnScale::None,
        ColumnScale::Standard,
        ColumnScale::MinMax,
    ] {
        let missing = MissingNumbers::Mean { indicator: true };
        let steps = FeatureSteps {
            scale,
            missing,
            ..FeatureSteps::default()
        };
        let options = EncoderOptions {
            numeric: names(&["a", "b"]),
            steps,
            ..EncoderOptions::default()
        };
        let encoder = build(&["a", "b"], &rows, options).unwrap();
        let binding = encoder.bind_own();
        for row in rows {
            let mut short = Vec::new();
            binding.encode(&cells(row), 1, &mut short).unwrap();
            let mut raw = Vec::new();
            binding.encode_raw(&cells(row), 1, &mut raw).unwrap();
            let mut long = Vec::new();
            encoder.features_of(&raw, &mut long);
            assert_eq!(short, long, "{scale:?} {row:?}");
        }
        assert!(binding.encode(&cells(&["1"]), 1, &mut Vec::new()).is_err());
        assert!(
            binding
                .encode(&cells(&["1", "inf"]), 1, &mut Vec::new())
                .is_err()
        );
    }
}

#[test]
fn kinds_are_inferred() {
    let mut builder = EncoderBuilder::new(
        &names(&["csv", "json", "both", "word"]),
        EncoderOptions::default(),
    )
    .unwrap();
    let text = |t: &str| Cell::Text(t.into());
    builder
        .observe(
            &[text("inf"), Cell::Number(3.0), Cell::Number(3.0), text("x")],
            1,
        )
        .unwrap();
    builder
        .observe(&[text("nan"), Cell::Number(0.5), text("n/a"), text("y")], 2)
        .unwrap();
    let encoder = builder.finish().unwrap();
    let expected = ["csv", "json", "both=3", "both=n/a", "word=x", "word=y"];
    assert_eq!(all_names(&encoder), expected.map(|n| Some(n.to_string())));
    let mut out = Vec::new();
    let row = [text("nan"), Cell::Number(1.0), Cell::Number(3.0), text("x")];
    assert_eq!(
        encoder.bind_own().encode(&row, 2, &mut out),
        Err(FeatureError::NotFinite {
            line: 2,
            column: "csv".into()
        }),
        "what parses stays numeric and is refused with its line"
    );
    assert!(!encoder.is_sparse());
}

#[test]
fn numbers_by_the_thousand_are_no_levels() {
    let mut builder = EncoderBuilder::new(
        &names(&["x"]),
        EncoderOptions {
            max_levels: 3,
            ..Default::default()
        },
    )
    .unwrap();
    for line in 1..=10 {
        builder.observe(&[Cell::Number(line as f64)], line).unwrap();
    }
    assert_eq!(builder.clone().finish().unwrap().width(), 1);
    assert_eq!(
        builder.observe(&[Cell::Text("n/a".into())], 11),
        Err(FeatureError::TooManyLevels {
            column: "x".into(),
            line: 11,
            limit: 3
        })
    );
}

#[test]
fn every_error_names_line_and_column_and_not_the_content() {
    let none = EncoderOptions::default;
    let levels = EncoderOptions {
        max_levels: 2,
        ..none()
    };
    let rows: [&[&str]; 3] = [&["a"], &["b"], &["secret"]];
    let error = build(&["who"], &rows, levels).unwrap_err();
    assert_eq!(
        error,
        FeatureError::TooManyLevels {
            column: "who".into(),
            line: 2,
            limit: 2
        }
    );
    assert!(!error.to_string().contains("secret"), "{error}");
    let forced = EncoderOptions {
        categorical: names(&["who"]),
        max_levels: 2,
        ..none()
    };
    assert_eq!(build(&["who"], &rows, forced.clone()).unwrap().width(), 3);
    assert_eq!(
        build(
            &["who"],
            &rows,
            EncoderOptions {
                max_words: 2,
                ..forced
            }
        ),
        Err(FeatureError::TooManyForcedLevels {
            column: "who".into(),
            limit: 2
        })
    );
    assert_eq!(
        build(&["x"], &[&["1"], &[""]], none()),
        Err(FeatureError::MissingNumber {
            line: 3,
            column: "x".into()
        })
    );
    let numeric = EncoderOptions {
        numeric: names(&["x"]),
        ..none()
    };
    let error = build(&["x"], &[&["secret"]], numeric).unwrap_err();
    assert_eq!(
        error,
        FeatureError::NotANumber {
            line: 2,
            column: "x".into()
        }
    );
    assert!(!error.to_string().contains("secret"));
    assert_eq!(
        build(&["x", "y"], &[&["1"]], none()),
        Err(FeatureError::CellCount {
            line: 2,
            found: 1,
            expected: 2
        })
    );
    let text = EncoderOptions {
        text: names(&["t"]),
        ..none()
    };
    assert_eq!(
        build(&["t"], &[&["a b"]], text.clone()),
        Err(FeatureError::NoWords { column: "t".into() }),
        "no words of two letters"
    );
    let wide = EncoderOptions {
        text: names(&["t", "u"]),
        words: WordSource::Hashed(1 << 31),
        ..none()
    };
    assert_eq!(
        build(&["t", "u"], &[], wide),
        Err(FeatureError::TooWide { width: 1 << 32 })
    );
    let few = EncoderOptions {
        max_words: 1,
        ..text
    };
    assert_eq!(
        build(&["t"], &[&["one two"]], few),
        Err(FeatureError::TooManyWords { limit: 1 })
    );
}

#[test]
fn words_alone_have_bare_names() {
    let one = |words| EncoderOptions {
        text: names(&["note"]),
        words,
        ..Default::default()
    };
    let learned = build(&HEADER, &ROWS, one(WordSource::Learned(2))).unwrap();
    assert_eq!(
        all_names(&learned),
        [Some("bad".to_string()), Some("good".into())]
    );
    let hashed = build(&HEADER, &ROWS, one(WordSource::Hashed(8))).unwrap();
    assert_eq!(
        (hashed.column_feature_name(7).as_deref(), hashed.width()),
        (Some("#7"), 8)
    );
    let two = EncoderOptions {
        numeric: names(&["size"]),
        ..one(WordSource::Hashed(8))
    };
    assert_eq!(
        build(&HEADER, &ROWS, two)
            .unwrap()
            .column_feature_name(8)
            .as_deref(),
        Some("note#7")
    );
    let supplied = build(
        &HEADER,
        &[],
        one(WordSource::Supplied(names(&["value", "bad"]))),
    )
    .unwrap();
    assert_eq!(supplied.column_feature_name(0).as_deref(), Some("value"));
    for encoder in [learned, hashed, supplied] {
        assert!(encoder.is_sparse());
    }
}

#[test]
fn columns_are_bound_by_name() {
    let encoder = mixed();
    let table = names(&["note", "extra", "extra", "colour", "size"]);
    let binding = encoder.bind(&table).unwrap();
    let mut out = Vec::new();
    binding
        .encode(
            &cells(&["good good value", "?", "", "red", "2.5"]),
            1,
            &mut out,
        )
        .unwrap();
    assert_eq!(out, [(0, 2.5), (3, 1.0), (5, 2.0), (6, 1.0)]);
    let table = names(&["notes", "colour", "size"]);
    let error = encoder.bind(&table).unwrap_err();
    assert_eq!(
        error,
        FeatureError::MissingColumn {
            name: "note".into(),
            exist: table
        }
    );
    assert!(
        error.to_string().contains("did you mean `notes`?"),
        "{error}"
    );
    assert_eq!(
        encoder
            .bind(&names(&["note", "size", "size", "colour"]))
            .unwrap_err(),
        FeatureError::DuplicateColumn {
            name: "size".into()
        }
    );
    assert!(matches!(
        binding.encode(&[], 4, &mut out),
        Err(FeatureError::CellCount { line: 4, .. })
    ));
}

#[test]
fn forgetting_a_row_erases_the_names_it_alone_held() {
    let mut encoder = mixed();
    let before = encoder.clone();
    assert_eq!(encoder.not_covered(), Vec::<NotCovered>::new());
    let mut row = Vec::new();
    encoder
        .bind_own()
        .encode_raw(&cells(ROWS[0]), 2, &mut row)
        .unwrap();
    encoder.learn_row(&row, &[]);
    assert_eq!(encoder.forget_row(&row, &[]), 0);
    assert_eq!(
        encoder, before,
        "learning and forgetting one row changes nothing"
    );
    assert_eq!(encoder.forget_row(&row, &[]), 3);
    assert_eq!(
        (
            encoder.column_feature_name(3),
            encoder.column_feature_name(5),
            encoder.width()
        ),
        (None, None, 7)
    );
    let shown = format!("{encoder:?}");
    assert!(
        ["\"red\"", "\"good\"", "\"value\""]
            .iter()
            .all(|name| !shown.contains(name)),
        "{shown}"
    );
    let encoded = encoder
        .bind_own()
        .encode(&cells(ROWS[0]), 2, &mut row)
        .unwrap();
    assert_eq!(
        (row.as_slice(), encoded),
        (
            &[(0, 2.5)][..],
            EncodingGaps {
                unknown_levels: 1,
                unknown_words: 3
            }
        )
    );
    assert_eq!(
        encoder.not_covered(),
        [],
        "the features that are left are those of the rows that are left"
    );
    assert_eq!(encoder.follow(true), Ok(None));
    assert_eq!(
        encoder.follow(false).map(|map| map.is_some()),
        Ok(true),
        "unused features are counted"
    );
}

proptest! {
    #[test]
    fn any_text_is_encoded_the_same_under_any_order(
        rows in prop::collection::vec((any::<String>(), any::<String>(), -1e9f64..1e9), 1..8)
    ) {
        let header = names(&["text", "level", "number"]);
        let options = EncoderOptions {
            text: names(&["text"]),
            categorical: names(&["level"]),
            numeric: names(&["number"]),
            ..Default::default()
        };
        let mut builder = EncoderBuilder::new(&header, options).unwrap();
        let rows: Vec<[Cell; 3]> =
            rows.into_iter().map(|(t, l, n)| [Cell::Text(t), Cell::Text(l), Cell::Number(n)]).collect();
        for (row, line) in rows.iter().zip(1..) {
            builder.observe(row, line).unwrap();
        }
        let mut encoder = builder.finish().unwrap();
        let mut straight = Vec::new();
        let mut bound = Vec::new();
        let mut all = Vec::new();
        let mut raw = Vec::new();
        for row in &rows {
            let [t, l, n] = row.clone();
            prop_assert_eq!(encoder.bind_own().encode(row, 1, &mut straight), Ok(EncodingGaps::default()));
            let binding = encoder.bind(&names(&["number", "text", "level"])).unwrap();
            binding.encode(&[n, t, l], 1, &mut bound).unwrap();
            prop_assert_eq!(&straight, &bound);
            prop_assert!(straight.is_sorted_by(|a, b| a.0 < b.0));
            encoder.bind_own().encode_raw(row, 1, &mut raw).unwrap();
            all.push(raw.clone());
        }
        all.iter().for_each(|row| { encoder.forget_row(row, &[]); });
        prop_assert_eq!(all_names(&encoder).into_iter().flatten().collect::<Vec<_>>(), ["number"]);
    }
}
