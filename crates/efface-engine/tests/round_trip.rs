//! A model that forgets, learns and corrects rows equals one fitted on the rows it has.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use efface::features::WordSource;
use efface::{Form, Method, Ridge};
use efface_engine::{Engine, FitRequest, ForgetOptions, RowSelection, Silent};
use efface_io::Source;

fn there_and_back(make: fn(&str) -> FitRequest) {
    let bench = Bench::new();
    let lines = lines(60);
    let mut engine = bench.fit("model", &make(&table(&lines[..50])));

    let gone = ids(&[&lines[3].id, &lines[17].id, &lines[49].id]);
    let report = engine
        .forget(
            &by_method(&gone, &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap();
    assert_eq!(
        (
            report.forgotten,
            report.learned,
            report.rows,
            report.dry_run
        ),
        (3, 0, 47, false)
    );
    assert_eq!(report.claim, "exact");
    let kept: Vec<&Line> = (0..50)
        .filter(|at| ![3, 17, 49].contains(at))
        .map(|at| &lines[at])
        .collect();
    assert_close(
        &engine,
        &bench.fit("fresh", &make(&table(kept.iter().copied()))),
    );

    let report = engine.learn(csv(&table(&lines[50..])), &Silent).unwrap();
    assert_eq!((report.forgotten, report.learned, report.rows), (0, 10, 57));
    let more: Vec<&Line> = kept.into_iter().chain(&lines[50..]).collect();
    assert_close(
        &engine,
        &bench.fit("fresh", &make(&table(more.iter().copied()))),
    );

    // Rows 0 and 55 take the content of rows 3 and 17, under their own ids.
    let cells = |from: &Line, id: &str| Line {
        id: id.into(),
        cells: from.cells.replace(&from.id, id),
    };
    let fixed = [
        cells(&lines[3], &lines[0].id),
        cells(&lines[17], &lines[55].id),
    ];
    let report = engine.amend(csv(&table(&fixed)), &Silent).unwrap();
    assert_eq!((report.forgotten, report.learned, report.rows), (2, 2, 57));
    let corrected: Vec<&Line> = more
        .into_iter()
        .map(|line| fixed.iter().find(|f| f.id == line.id).unwrap_or(line))
        .collect();
    let fresh = bench.fit("fresh", &make(&table(corrected.iter().copied())));
    assert_close(&engine, &fresh);

    // Another process sees the same, and an amended row can still be forgotten.
    let mut again = Engine::open(&bench.path("model")).unwrap();
    assert_close(&again, &fresh);
    again
        .forget(
            &by_method(&ids(&[&fixed[0].id]), &"exact".parse().unwrap()),
            &ForgetOptions::default(),
        )
        .unwrap();
    let left = corrected
        .iter()
        .filter(|line| line.id != fixed[0].id)
        .copied();
    assert_close(&engine, &bench.fit("fresh", &make(&table(left))));
    let summary = engine.summary().unwrap();
    assert_eq!(
        (summary.rows, summary.forgotten, summary.generation),
        (56, 4, 4)
    );
    assert!(summary.bound < 1e-6, "{}", summary.bound);
}

#[test]
fn dense_rows() {
    there_and_back(dense);
}

#[test]
fn sparse_rows() {
    there_and_back(sparse);
}

#[test]
fn classes_from_words() {
    there_and_back(classes);
}

#[test]
fn every_form_and_weights() {
    for form in [Form::Factor, Form::Inverse, Form::Rows, Form::Iterative] {
        let bench = Bench::new();
        let lines = lines(40);
        let make = |text: &str| {
            let mut request = sparse(text);
            request.numeric = vec![];
            request.weight = Some("size".into());
            request.model = Ridge::new(0.5).form(form).tolerance(1e-13).into();
            request
        };
        let mut engine = bench.fit("model", &make(&table(&lines)));
        engine
            .forget(
                &by_method(&ids(&[&lines[7].id]), &Method::default()),
                &ForgetOptions::default(),
            )
            .unwrap();
        let left = lines.iter().filter(|line| line.id != lines[7].id);
        assert_close(&engine, &bench.fit("fresh", &make(&table(left))));
    }
}

#[test]
fn one_by_one_equals_all_at_once_and_space_is_used_again() {
    let bench = Bench::new();
    let lines = lines(200);
    let mut engine = bench.fit("model", &sparse(&table(&lines)));
    let before = engine.summary().unwrap().file_bytes;
    for line in &lines[..150] {
        engine
            .forget(
                &by_method(&ids(&[&line.id]), &Method::default()),
                &ForgetOptions::default(),
            )
            .unwrap();
    }
    assert_close(&engine, &bench.fit("fresh", &sparse(&table(&lines[150..]))));
    // More than half of the rows went, so that the table was written anew: the same rows under new
    // ids fit again.
    let renamed: Vec<Line> = (0..140)
        .map(|at| Line {
            id: String::new(),
            cells: lines[at].cells.replacen('r', "n", 1),
        })
        .collect();
    engine.learn(csv(&table(&renamed)), &Silent).unwrap();
    let after = engine.summary().unwrap();
    assert_eq!((after.rows, after.forgotten), (190, 150));
    // A receipt takes a page.
    let log = 152 * 4400;
    assert!(
        after.file_bytes < before + before / 2 + log,
        "{} from {before}",
        after.file_bytes
    );
}

#[test]
fn a_subject_takes_all_of_its_rows_along() {
    let bench = Bench::new();
    let lines = lines(50);
    let mut engine = bench.fit("model", &dense(&table(&lines)));
    assert_eq!(engine.summary().unwrap().subjects, 9);
    let who = RowSelection::Subject {
        column: "who".into(),
        value: "p4".into(),
    };
    let report = engine
        .forget(
            &by_method(&who, &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap();
    assert_eq!(report.forgotten, 6);
    let left = lines
        .iter()
        .enumerate()
        .filter(|(at, _)| at % 9 != 4)
        .map(|(_, line)| line);
    assert_close(&engine, &bench.fit("fresh", &dense(&table(left))));
    assert_eq!(engine.summary().unwrap().subjects, 8);
}

#[test]
fn positions_name_rows_without_ids_and_are_not_used_again() {
    let bench = Bench::new();
    let text = "x,y\n1,1\n2,2.5\n3,2\n4,5\n";
    let mut engine = bench.fit("model", &request(text, "y"));
    engine
        .forget(
            &by_method(&ids(&["3", "0"]), &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap();
    engine
        .learn(csv("y,x,other\n7,7,a\n8,9,b\n"), &Silent)
        .unwrap();
    engine
        .forget(
            &by_method(&ids(&["4"]), &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap();
    assert_close(
        &engine,
        &bench.fit("fresh", &request("x,y\n2,2.5\n3,2\n9,8\n", "y")),
    );
    assert!(
        engine
            .forget(
                &by_method(&ids(&["3"]), &Method::default()),
                &ForgetOptions::default()
            )
            .unwrap_err()
            .to_string()
            .contains("was forgotten on 2")
    );
}

#[test]
fn svmlight_names_features_by_index() {
    let bench = Bench::new();
    let source = |text: &str| Source::from_bytes("a.svm", text, None).unwrap();
    let mut engine = bench.fit(
        "model",
        &FitRequest::new(source("1 1:1 3:0.1\n2 3:2\n0 1:4\n5 3:1 4:1\n")),
    );
    engine
        .forget(
            &by_method(&ids(&["2"]), &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap();
    assert_close(
        &engine,
        &bench.fit(
            "fresh",
            &FitRequest::new(source("1 1:1 3:0.1\n2 3:2\n5 3:1 4:1\n")),
        ),
    );
    let parameters = engine.parameters().unwrap();
    assert_eq!(parameters.features, ["1", "2", "3", "4"]);
    assert_eq!(parameters.outputs, ["label"]);
    let zero_based = bench.fit("zero", &FitRequest::new(source("1 0:1 3:0.1\n2 3:2\n")));
    assert_eq!(
        zero_based.parameters().unwrap().features,
        ["0", "1", "2", "3"]
    );
    // A score does without indices that the model does not know.
    let mut scores = Vec::new();
    let found = engine.predict(source("0 1:1\n0 1:1 99:5\n"), &mut |p| {
        scores.push(p.scores);
        Ok(())
    });
    let found = found.unwrap();
    assert_eq!(
        (found.rows, found.unknown_names, found.quality),
        (2, 1, None)
    );
    assert_eq!(scores[0], scores[1]);
    assert!(
        engine
            .learn(source("0 1:1 99:5\n"), &Silent)
            .unwrap_err()
            .to_string()
            .contains("exceeds 4")
    );
}

#[test]
fn predictions_carry_ids_and_labels() {
    let bench = Bench::new();
    let lines = lines(80);
    let text = table(&lines);
    let engine = bench.fit("model", &classes(&text));
    let all = predictions(&engine, &text);
    assert_eq!(all.len(), 80);
    assert_eq!(
        (all[5].id.as_deref(), all[5].line, all[5].scores.len()),
        (Some(lines[5].id.as_str()), 7, 5)
    );
    assert!(all[5].label.is_some());
    // Neither target nor id is needed, and the order of columns does not matter.
    let bare = predictions(&engine, "other,words\n1,green damp\n2,unheard\n");
    assert_eq!((bare[0].id.clone(), bare[1].line), (None, 3));

    let mut two = classes(&text);
    two.positive = vec!["4".into(), "5.0".into()];
    let engine = bench.fit("two", &two);
    let summary = engine.summary().unwrap();
    assert_eq!(summary.classes.unwrap(), ["not 4,5.0", "4,5.0"]);
    assert_eq!(summary.outputs, ["4,5.0"]);
    for prediction in predictions(&engine, &text) {
        let expected = if prediction.scores[0] > 0.0 {
            "4,5.0"
        } else {
            "not 4,5.0"
        };
        assert_eq!(prediction.label.as_deref(), Some(expected));
    }
}

#[test]
fn predictions_agree_with_parameters() {
    let bench = Bench::new();
    let text = "x,z,y,w\n1,2000,3,1\n2,2010,5,2\n4,2005,1,0\n3,2001,2,1\n";
    let mut request = request(text, "y");
    request.targets = vec!["y".into(), "w".into()];
    let engine = bench.fit("model", &request);
    let p = engine.parameters().unwrap();
    let coefficients = p.table("coefficients");
    assert_eq!(
        (p.features.as_slice(), p.outputs.as_slice()),
        (
            ["x".to_string(), "z".into()].as_slice(),
            ["y".to_string(), "w".into()].as_slice()
        )
    );
    for (row, prediction) in [[1.0, 2000.0], [2.0, 2010.0]]
        .iter()
        .zip(predictions(&engine, text))
    {
        for (output, constant) in p.vector("intercept").iter().enumerate() {
            let by_hand =
                constant + row[0] * coefficients[0][output] + row[1] * coefficients[1][output];
            assert!((by_hand - prediction.scores[output]).abs() < 1e-9);
        }
    }
}

#[test]
fn the_summary_tells_what_the_file_holds() {
    let bench = Bench::new();
    let text = table(&lines(30));
    let mut request = sparse(&text);
    request.words = WordSource::Hashed(64);
    let engine = bench.fit("model", &request);
    let summary = engine.summary().unwrap();
    assert_eq!(
        (summary.model.as_str(), summary.format, summary.rows),
        ("ridge", efface_engine::FORMAT, 30)
    );
    assert_eq!(
        (summary.features, summary.sparse, summary.generation),
        (65, true, 0)
    );
    assert_eq!(
        summary.feature_columns[1],
        ("words".into(), "hashed words".into(), 64)
    );
    assert_eq!(summary.created_at, summary.changed_at);
    assert_eq!(summary.created_at.len(), "2026-03-02T09:30:00Z".len());
    // Hashed words leave nothing behind; a numeric column in large units leaves its unit.
    assert_eq!(summary.kept_beside, [efface::NotCovered::ColumnUnits]);
    assert!(summary.not_covered.is_empty());
    assert!(
        serde_json::to_string(&summary)
            .unwrap()
            .contains("\"relative_bound\":")
    );
}

#[test]
fn approximate_methods_say_so_and_numbers_are_ids_in_json() {
    let bench = Bench::new();
    let json =
        "{\"k\":17,\"x\":1.5,\"y\":2}\n{\"k\":18,\"x\":2,\"y\":1}\n{\"k\":19,\"x\":0,\"y\":4}\n";
    let mut request = FitRequest::new(Source::from_bytes("a.jsonl", json, None).unwrap());
    (request.targets, request.id) = (vec!["y".into()], Some("k".into()));
    let mut engine = bench.fit("model", &request);
    let report = engine
        .forget(
            &by_method(&ids(&["17"]), &"influence".parse().unwrap()),
            &ForgetOptions::default(),
        )
        .unwrap();
    assert_eq!(
        (report.method.as_str(), report.claim.as_str()),
        ("influence", "approximate")
    );
    assert!(report.bound > 0.0);
    // The distance of an approximate method is known after another opening, too, and an exact one
    // closes it.
    let mut again = Engine::open(&bench.path("model")).unwrap();
    assert_eq!(again.summary().unwrap().bound, report.bound);
    let report = again
        .forget(
            &by_method(&ids(&["18"]), &"summation".parse().unwrap()),
            &ForgetOptions::default(),
        )
        .unwrap();
    assert!(report.bound < 1e-9);
}
