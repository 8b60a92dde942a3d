//! Every bad input is an error of the right kind that names the place and repeats no content.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use efface::Method;
use efface_engine::ErrorKind::{Data, Io, NotFound, Refused, Usage};
use efface_engine::{
    Engine, Error, FitRequest, ForgetOptions, RowSelection, Silent, fit, named_method,
};
use efface_io::{RowCondition, Source};

#[track_caller]
fn fit_fails(
    change: impl FnOnce(&mut FitRequest),
    text: &str,
    kind: efface_engine::ErrorKind,
    message: &str,
) -> Error {
    let bench = Bench::new();
    let mut request = request(text, "y");
    change(&mut request);
    let path = bench.path("model");
    let error = fails(fit(&request, &path, false, &Silent), kind, message);
    assert_eq!(
        std::fs::read_dir(path.parent().unwrap()).unwrap().count(),
        0,
        "nothing is left behind"
    );
    error
}

fn id(request: &mut FitRequest) {
    request.id = Some("id".into());
}

fn classify(request: &mut FitRequest) {
    request.classify = true;
}

#[test]
fn targets() {
    let error = fit_fails(
        |_| {},
        "x,y\n1,2\n2,secret\n",
        Data,
        "line 3, column `y`: this is not a number",
    );
    assert!(error.hint().unwrap().to_string().contains("`classify`"));
    fit_fails(
        |_| {},
        "x,y\n1,2\n2,NaN\n",
        Data,
        "line 3, column `y`: this is not a finite number",
    );
    fit_fails(
        |_| {},
        "x,y\n1,inf\n2,1\n",
        Data,
        "line 2, column `y`: this is not a finite number",
    );
    fit_fails(
        |_| {},
        "x,y\n1,\n2,1\n",
        Data,
        "line 2, column `y`: there is no value; every row needs one",
    );
    fit_fails(
        |r| r.targets.clear(),
        "x,y\n1,2\n",
        Usage,
        "no target column is named",
    );
    fit_fails(
        |r| r.targets = vec!["y".into(), "y".into()],
        "x,y\n1,2\n",
        Usage,
        "target `y` is named twice",
    );
    fit_fails(
        |r| r.targets = vec!["price".into()],
        "x,y\n1,2\n",
        NotFound,
        "there is no column `price`; the table has `x`, `y`",
    );
    fit_fails(
        |r| r.id = Some("y".into()),
        "x,y\n1,2\n",
        Usage,
        "column `y` is the target and cannot be the id, the subject or the weight too",
    );
}

#[test]
fn classes() {
    fit_fails(
        classify,
        "x,y\n1,a\n2,\n",
        Data,
        "line 3, column `y`: there is no class; every row needs one",
    );
    fit_fails(
        classify,
        "x,y\n1,a\n2,a\n",
        Data,
        "column `y` has only one class; at least two are needed",
    );
    let many: String = (0..1001).map(|at| format!("{at},c{at}\n")).collect();
    fit_fails(
        classify,
        &format!("x,y\n{many}"),
        Data,
        "column `y` has more than 1000 classes",
    );
    fit_fails(
        |r| r.positive = vec!["7".into()],
        "x,y\n1,4\n2,5\n",
        Data,
        "no row has 7 in column `y`; both classes need rows",
    );
    fit_fails(
        |r| (r.classify, r.targets) = (true, vec!["x".into(), "y".into()]),
        "x,y,z\n1,4,1\n2,5,2\n",
        Usage,
        "a classifier has one target column, not 2",
    );
}

#[test]
fn ids_weights_and_rows() {
    fit_fails(
        id,
        "id,x,y\na,1,1\nb,2,1\na,3,1\n",
        Data,
        "row a occurs twice, on lines 2 and 4; every row needs an id of its own",
    );
    fit_fails(
        id,
        "id,x,y\na,1,1\n,2,1\n",
        Data,
        "line 3, column `id`: there is no id; every row needs one",
    );
    fit_fails(
        id,
        "x,y\n1,1\n",
        NotFound,
        "there is no column `id`; the table has `x`, `y`",
    );
    let weight = |r: &mut FitRequest| r.weight = Some("w".into());
    fit_fails(
        weight,
        "w,x,y\n1,1,1\n-1,2,1\n",
        Data,
        "line 3, column `w`: a weight must be 0 or more",
    );
    fit_fails(
        weight,
        "w,x,y\n1,1,1\nheavy,2,1\n",
        Data,
        "line 3, column `w`: this is not a number",
    );
    fit_fails(
        |_| {},
        "x,y\n",
        Data,
        "table.csv has no rows; at least one is needed",
    );
    fit_fails(
        |_| {},
        "y\n1\n",
        Usage,
        "no features: every column is ignored or empty; name one with `text`, `numeric` or `categorical`",
    );
    fit_fails(
        |r| r.model = efface::Ridge::new(-1.0).into(),
        "x,y\n1,1\n",
        Usage,
        "lambda = -1 is out of range; it must be finite and 0 or more",
    );
    // An empty subject is nobody.
    let bench = Bench::new();
    let mut request = request("who,x,y\n,1,1\nann,2,1\n", "y");
    request.subject = Some("who".into());
    assert_eq!(bench.fit("model", &request).summary().unwrap().subjects, 1);
}

#[test]
fn svmlight_has_no_columns() {
    let bench = Bench::new();
    let mut request = FitRequest::new(Source::from_bytes("a.svm", "1 1:1\n", None).unwrap());
    request.targets = vec!["y".into()];
    let message =
        "svmlight lines have no columns: the label is the target, rows are named by position";
    fails(
        fit(&request, &bench.path("m"), false, &Silent),
        Usage,
        message,
    );
    request.targets.clear();
    request.source = Source::from_bytes("a.svm", "nan 1:1\n", None)
        .unwrap()
        .into();
    fails(
        fit(&request, &bench.path("m"), false, &Silent),
        Data,
        "line 1, column `label`: this is not a finite number",
    );
    request.source = Source::from_bytes("a.svm", "1 1:1\n2 1:nan\n", None)
        .unwrap()
        .into();
    fails(
        fit(&request, &bench.path("m"), false, &Silent),
        Data,
        "line 2: a value is not a finite number",
    );
}

#[test]
fn an_existing_file_is_not_overwritten() {
    let bench = Bench::new();
    let path = bench.path("model");
    std::fs::write(&path, "precious").unwrap();
    let request = request("x,y\n1,1\n2,2\n", "y");
    let message = format!("{} exists already", path.display());
    fails(fit(&request, &path, false, &Silent), Refused, &message);
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    std::fs::write(bench.path("model-journal"), "of an older file").unwrap();
    fit(&request, &path, true, &Silent).unwrap();
    assert_eq!(Engine::open(&path).unwrap().summary().unwrap().rows, 2);
    let error = fit(&request, &bench.path("no/such/folder"), false, &Silent).unwrap_err();
    assert_eq!(error.kind(), Io, "{error}");
}

#[test]
fn forget_requests() {
    let bench = Bench::new();
    let mut engine = bench.fit("model", &dense(&table(&lines(12))));
    let known = lines(12)[0].id.clone();
    let before = std::fs::read(bench.path("model")).unwrap();
    let mut ask = |who: RowSelection, method: &str| {
        engine.forget(
            &by_method(&who, &named_method(method, &[])?),
            &ForgetOptions::default(),
        )
    };
    fails(ask(ids(&[]), "auto"), Usage, "the request names no row");
    fails(
        ask(ids(&["nobody"]), "auto"),
        NotFound,
        "row nobody is not in this model",
    );
    fails(
        ask(ids(&[&known, &known]), "auto"),
        Usage,
        &format!("row {known} is named twice; name each row once"),
    );
    let error = fails(
        ask(ids(&[&known]), "magic"),
        Usage,
        "there is no method `magic`",
    );
    assert!(error.hint().unwrap().to_string().contains("auto"));
    let subject = |column: &str, value: &str| RowSelection::Subject {
        column: column.into(),
        value: value.into(),
    };
    fails(
        ask(subject("colour", "red"), "auto"),
        NotFound,
        "the subject column of this model is `who`, not `colour`",
    );
    fails(
        ask(subject("who", "p99"), "auto"),
        NotFound,
        "no row in this model has `p99` in column `who`",
    );
    let all: Vec<String> = lines(12).into_iter().map(|line| line.id).collect();
    fails(
        ask(RowSelection::Ids(all), "auto"),
        Refused,
        "forgetting 12 of 12 rows would leave none; delete the model instead",
    );
    assert_eq!(std::fs::read(bench.path("model")).unwrap(), before);
}

#[test]
fn positions_are_explained() {
    let bench = Bench::new();
    let mut engine = bench.fit("model", &request("x,y\n1,1\n2,2\n3,3\n", "y"));
    for id in ["-1", "3", "first", "01"] {
        let message = format!(
            "row {id} is not in this model: it was fitted without an id column, so ids are positions 0…2"
        );
        fails(
            engine.forget(
                &by_method(&ids(&[id]), &Method::default()),
                &ForgetOptions::default(),
            ),
            NotFound,
            &message,
        );
    }
    // Rows that were held out, or left out by a condition, have positions too.
    let mut request = request("x,y\n1,1\n2,2\n3,3\n4,4\n5,5\n", "y");
    request.source = request
        .source
        .matching(RowCondition::parse("not x = 2").unwrap());
    let mut engine = bench.fit("model", &request);
    fails(
        engine.forget(
            &by_method(&ids(&["1"]), &Method::default()),
            &ForgetOptions::default(),
        ),
        NotFound,
        "row 1 is not in this model: it was fitted without an id column, so ids are positions, and the row at this position \
         was held out, left out by a condition, or forgotten",
    );
    let who = RowSelection::Subject {
        column: "x".into(),
        value: "1".into(),
    };
    let error = fails(
        engine.forget(
            &by_method(&who, &Method::default()),
            &ForgetOptions::default(),
        ),
        NotFound,
        "this model has no subject column, so rows cannot be found by `x`",
    );
    assert!(error.hint().unwrap().to_string().contains("`subject`"));
    let error = engine.amend(csv("x,y\n1,1\n"), &Silent).unwrap_err();
    assert_eq!(error.kind(), Refused);
    assert!(error.hint().is_some());
}

#[test]
fn rows_to_learn_and_to_amend() {
    let bench = Bench::new();
    let text = "id,x,y\na,1,no\nb,2,yes\nc,3,no\nd,4,yes\n";
    let mut request = request(text, "y");
    (request.id, request.classify) = (Some("id".into()), true);
    let mut engine = bench.fit("model", &request);
    engine
        .forget(
            &by_method(&ids(&["c"]), &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap();
    let today = &engine.summary().unwrap().changed_at[..10];
    let before = std::fs::read(bench.path("model")).unwrap();
    let mut learn = |text: &str| engine.learn(csv(text), &Silent);
    fails(
        learn("id,x,y\ne,1,no\nb,2,yes\n"),
        Data,
        "line 3: row b is already in this model",
    );
    let error = fails(
        learn("id,x,y\ne,1,no\nc,3,no\n"),
        Refused,
        &format!("line 3: row c was forgotten on {today} and must not come back"),
    );
    assert!(error.hint().unwrap().to_string().contains("another id"));
    fails(
        learn("id,x,y\ne,1,no\ne,2,yes\n"),
        Data,
        "row e occurs twice, on lines 2 and 3; every row needs an id of its own",
    );
    fails(
        learn("id,x,y\ne,1,maybe\n"),
        Data,
        "line 2, column `y`: no row had this class when the model was fitted",
    );
    fails(
        learn("id,y\ne,no\n"),
        NotFound,
        "this table lacks column `x`, which the model was fitted on (did you mean `y`?); it has `id`, `y`",
    );
    fails(
        learn("x,y\n1,no\n"),
        NotFound,
        "this table lacks column `id`, which the model was fitted on; it has `x`, `y`",
    );
    fails(
        learn("id,x,y\n"),
        Data,
        "table.csv has no rows; at least one is needed",
    );
    let mut amend = |text: &str| engine.amend(csv(text), &Silent);
    fails(
        amend("id,x,y\na,1,no\nz,1,no\n"),
        NotFound,
        "row z is not in this model",
    );
    fails(
        amend("id,x,y\nc,1,no\n"),
        NotFound,
        &format!("row c is not in this model; it was forgotten on {today}"),
    );
    assert_eq!(std::fs::read(bench.path("model")).unwrap(), before);
}
