//! After a forget, no byte of the row is left in the file.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use efface::{Method, NotCovered};
use efface_engine::{Error, ErrorKind, ForgetOptions, ForgetRequest, RowSelection, Silent};
use efface_receipt::RequestOutcome;

/// Words that no other row has.
fn marked(at: usize, words: usize) -> Line {
    let id = format!("marker{at:04}id");
    let text: Vec<String> = (0..words)
        .map(|word| format!("marker{at:04}word{word}"))
        .collect();
    Line {
        cells: format!(
            "{id},marker{at:04}who,1.5,1999,red,{},10,3\n",
            text.join(" ")
        ),
        id,
    }
}

#[test]
fn id_subject_and_words_are_gone_from_the_bytes() {
    let bench = Bench::new();
    let mut lines = lines(40);
    lines.push(marked(1, 3));
    let mut engine = bench.fit("model", &sparse(&table(&lines)));
    let path = bench.path("model");
    for marker in ["marker0001id", "marker0001who", "marker0001word1"] {
        assert!(holds(&path, marker), "{marker}");
    }
    let who = RowSelection::Subject {
        column: "who".into(),
        value: "marker0001who".into(),
    };
    let report = engine
        .forget(
            &by_method(&who, &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap();
    assert_eq!(report.features_dropped, 3);
    assert!(!holds(&path, "marker0001"));
    assert!(
        !engine
            .parameters()
            .unwrap()
            .features
            .iter()
            .any(|name| name.contains("marker"))
    );
    assert_eq!(
        engine.summary().unwrap().features,
        engine.parameters().unwrap().features.len()
    );
}

/// Rows of every size come and go in every order, so that pages fill, split and empty; whatever was
/// forgotten at any time must not be found at any later time.
#[test]
fn a_long_life_leaves_nothing_behind() {
    let bench = Bench::new();
    let size = |at: usize| [1, 40, 3, 700, 12][at % 5];
    let marked: Vec<Line> = (0..240).map(|at| marked(at, size(at))).collect();
    let mut request = sparse(&table(&marked[..160]));
    request.words = efface::features::WordSource::Hashed(32);
    let mut engine = bench.fit("model", &request);
    let path = bench.path("model");
    let mut gone: Vec<usize> = Vec::new();
    let mut forget = |engine: &mut efface_engine::Engine, batch: Vec<usize>| {
        let names: Vec<&str> = batch.iter().map(|at| marked[*at].id.as_str()).collect();
        engine
            .forget(
                &by_method(&ids(&names), &Method::default()),
                &ForgetOptions::default(),
            )
            .unwrap();
        gone.extend(batch);
        let bytes = std::fs::read(&path).unwrap();
        let found = bytes
            .windows(10)
            .filter(|w| w.starts_with(b"marker"))
            .map(|w| String::from_utf8_lossy(&w[6..]).into_owned());
        for number in found.collect::<std::collections::HashSet<_>>() {
            assert!(
                !gone.contains(&number.parse().unwrap()),
                "row {number} was forgotten and is still in the file"
            );
        }
    };
    forget(&mut engine, (0..160).filter(|at| at % 3 == 0).collect());
    engine
        .learn(csv(&table(&marked[160..200])), &Silent)
        .unwrap();
    forget(&mut engine, (0..60).filter(|at| at % 3 == 1).collect());
    // Corrected rows: the old content goes, and the new one stays out of its place.
    let fixed: Vec<Line> = (100..120)
        .filter(|at| at % 3 != 0)
        .map(|at| Line {
            id: String::new(),
            cells: format!("{},nobody,1,2000,red,other words,1,1\n", marked[at].id),
        })
        .collect();
    engine.amend(csv(&table(&fixed)), &Silent).unwrap();
    for at in (100..120).filter(|at| at % 3 != 0) {
        assert!(!holds(&path, &format!("marker{at:04}who")));
    }
    for at in (60..160).filter(|at| at % 3 == 2) {
        forget(&mut engine, vec![at]);
    }
    engine.learn(csv(&table(&marked[200..])), &Silent).unwrap();
    forget(&mut engine, (200..240).rev().collect());
    forget(&mut engine, (160..199).collect());
    assert!(
        std::fs::read(&path)
            .unwrap()
            .windows(10)
            .any(|w| w == b"marker0199")
    );
}

#[test]
fn a_word_of_the_old_and_the_new_row_keeps_its_name() {
    let bench = Bench::new();
    let mut lines = lines(10);
    lines.push(marked(1, 2));
    let mut engine = bench.fit("model", &sparse(&table(&lines)));
    let fixed = "id,who,size,words,price\nmarker0001id,someone,3,marker0001word0,4\n";
    let report = engine.amend(csv(fixed), &Silent).unwrap();
    assert_eq!(report.features_dropped, 1);
    let path = bench.path("model");
    assert!(holds(&path, "marker0001word0"));
    assert!(!holds(&path, "marker0001word1"));
    assert!(!holds(&path, "marker0001who"));
}

#[test]
fn a_dry_run_changes_no_byte() {
    let bench = Bench::new();
    let lines = lines(20);
    let mut engine = bench.fit("model", &sparse(&table(&lines)));
    let before = std::fs::read(bench.path("model")).unwrap();
    let dry = engine
        .forget(
            &by_method(&ids(&[&lines[4].id]), &Method::default()),
            &ForgetOptions::dry_run(),
        )
        .unwrap();
    assert!(dry.dry_run);
    assert_eq!(std::fs::read(bench.path("model")).unwrap(), before);
    let done = engine
        .forget(
            &by_method(&ids(&[&lines[4].id]), &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap();
    assert_eq!(
        (dry.rows, dry.bound, dry.evidence),
        (done.rows, done.bound, done.evidence)
    );
}

#[test]
fn a_class_that_would_be_emptied_is_named_in_no_message_and_no_receipt() {
    let bench = Bench::new();
    let mut text = String::from("id,x,y\n");
    for row in 0..12 {
        text += &format!("r{row},{}.5,{}\n", row * row % 7, ["up", "down"][row % 2]);
    }
    text += "last,2.5,odd one\n";
    let mut request = request(&text, "y");
    (request.id, request.model) = (Some("id".into()), efface::Softmax::new(1.0).into());
    let mut engine = bench.fit("model", &request);
    let alone = by_method(&ids(&["last"]), &Method::default());
    let error = engine
        .forget(&alone, &ForgetOptions::default())
        .unwrap_err();
    assert!(
        matches!(&error, Error::ClassEmptied { class } if class == "odd one"),
        "{error:?}"
    );
    assert!(
        error.to_string().contains("last row of a class") && !error.to_string().contains("odd one")
    );
    assert_eq!(error.kind(), ErrorKind::Refused);
    // A request with a name is answered by a receipt, and one that came with it is done.
    let named = |id: &str, row: &str| ForgetRequest {
        id: Some(id.into()),
        ..by_method(&ids(&[row]), &Method::default())
    };
    let answers = engine.forget(
        &vec![named("T-1", "last"), named("T-2", "r3")],
        &ForgetOptions::default(),
    );
    let [refused, done] = &answers[..] else {
        panic!("{answers:?}")
    };
    let refused = refused.as_ref().unwrap();
    assert_eq!(refused.outcome, RequestOutcome::Refused);
    assert_eq!(done.as_ref().unwrap().outcome, RequestOutcome::Erased);
    let told = serde_json::to_string(
        &engine
            .bundle(&refused.receipt.as_ref().unwrap().id)
            .unwrap()
            .signed
            .receipt,
    )
    .unwrap();
    assert!(
        told.contains("last row of a class") && !told.contains("odd one"),
        "{told}"
    );
}

#[test]
fn what_cannot_be_taken_out_is_listed() {
    let bench = Bench::new();
    let text = "id,text,y\na,good fine,up\nb,bad,down\nc,odd,odd\nd,fine,up\ne,bad,down\n";
    let mut request = request(text, "y");
    (request.id, request.text, request.classify) = (Some("id".into()), vec!["text".into()], true);
    let mut engine = bench.fit("model", &request);
    let report = engine
        .forget(
            &by_method(&ids(&["c"]), &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap();
    let list = &report.evidence.not_covered;
    // Of the word that the row alone held nothing is left to list: its place says nothing about it.
    assert_eq!(*list, [NotCovered::EmptyClasses { classes: 1 }]);
    assert_eq!(
        report.evidence.kept_beside,
        [NotCovered::ForgottenIds, NotCovered::StorageBlocks]
    );
    assert_eq!(
        engine.summary().unwrap().not_covered,
        report.evidence.not_covered
    );
}
