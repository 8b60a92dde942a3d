//! A tolerance that was missed is told by a warning, a field and an exit code of its own; the
//! change stands.

#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

mod common;

use common::{Folder, HOUSES};
use efface::Ridge;
use efface_engine::{FitRequest, Silent, fit};
use efface_io::Source;

/// A model of houses whose tolerance no bound can be within.
fn demanding() -> Folder {
    let folder = Folder::new();
    folder.write("houses.csv", HOUSES);
    let mut request = FitRequest::new(Source::from_bytes("houses.csv", HOUSES, None).unwrap());
    request.targets = vec!["price".into()];
    request.id = Some("house".into());
    request.ignore = vec!["owner".into()];
    request.model = Ridge::new(1.0).tolerance(1e-300).into();
    fit(&request, &folder.path("houses.efface"), false, &Silent).unwrap();
    folder
}

#[test]
fn a_missed_tolerance_has_a_warning_and_an_exit_code() {
    let folder = demanding();
    let ended = folder.run("forget houses.efface --ids h2 --dry-run");
    assert_eq!(
        (ended.code, ended.err.contains("would forget 1 row")),
        (8, true),
        "{ended:?}"
    );
    let ended = folder.run("forget houses.efface --ids h2 --receipt receipt.cose");
    assert_eq!(ended.code, 8, "{ended:?}");
    assert!(ended.err.contains("forgot 1 row by "), "{ended:?}");
    let warning = "warning: the distance to retraining is at most ";
    let last = ended.err.lines().last().unwrap();
    assert!(
        last.starts_with(warning) && last.contains("above the tolerance of 1.0e-300"),
        "{ended:?}"
    );
    // The change is durable, and its receipt is written and holds.
    let key = folder.done("keys houses.efface");
    folder.write("houses.pub", key);
    folder.done("verify receipt.cose --key houses.pub");
    folder.fails(
        "forget houses.efface --ids h2",
        4,
        &["row h2 is not in this model"],
    );
    let receipt = folder.json("receipt show receipt.cose --json");
    assert_eq!(receipt["claim"], serde_json::json!({"kind": "approximate"}));

    let ended = folder.run("forget houses.efface --ids h3 --json --quiet");
    assert_eq!(ended.code, 8, "{ended:?}");
    assert!(ended.err.starts_with(warning), "{ended:?}");
    let report: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(
        (&report["claim"], &report["outcome"]),
        (&"approximate".into(), &"erased".into())
    );
    assert_eq!(
        (&report["tolerance"], &report["tolerance_missed"]),
        (&1e-300.into(), &true.into())
    );

    folder.write(
        "more.csv",
        "house,owner,city,rooms,price\nh8,eve,Lyon,4,260\n",
    );
    assert_eq!(folder.run("learn houses.efface more.csv").code, 8);
    assert_eq!(folder.run("amend houses.efface more.csv --json").code, 8);
}

/// Options of a fit for every family and for features that follow the rows. True marks a result that
/// is that of retraining to the bit, so that it is within every tolerance.
const FITS: [(&str, bool); 18] = [
    ("--target price", false),
    ("--target price --curvature inverse", false),
    ("--target price --curvature rows", false),
    ("--target price --curvature iterative", false),
    ("--target price --scale standard --polynomial 2", false),
    ("--target price --scale minmax --pca 1", false),
    ("--target city --class-weight balanced", false),
    ("--target city --model logistic --positive Lyon", false),
    (
        "--target city --model logistic --positive Lyon --curvature iterative",
        false,
    ),
    ("--target city --model softmax --scale standard", false),
    ("--target city --model svm", false),
    ("--target rooms --model poisson --ignore price", false),
    ("--target city --model naive-bayes", true),
    (
        "--target city --model naive-bayes --likelihood multinomial",
        true,
    ),
    (
        "--target city --model naive-bayes --likelihood bernoulli",
        true,
    ),
    ("--ignore city --model kmeans --clusters 2 --cell 1", true),
    ("--ignore city --model kmeans --clusters 2 --tree 1x2", true),
    ("--target price --sisa 2x1", true),
];

#[test]
fn a_tolerance_of_the_request_is_missed_as_that_of_the_model() {
    let folder = Folder::new();
    folder.write("houses.csv", HOUSES);
    let fit = "fit houses.csv --id house --ignore owner --force --discard-log --drop-suppressed";
    for (at, (options, is_retraining)) in FITS.into_iter().enumerate() {
        folder.done(&format!("{fit} {options}"));
        let ended = folder.run(&format!(
            "forget houses.efface --ids h2 --tolerance 1e-300 --receipt {at}.cose --json --quiet"
        ));
        let (code, claim) = match is_retraining {
            true => (0, "exact"),
            false => (8, "approximate"),
        };
        assert_eq!(ended.code, code, "{options}: {ended:?}");
        let report: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
        assert_eq!(
            (&report["claim"], &report["rows"], &report["tolerance"]),
            (&claim.into(), &6.into(), &1e-300.into()),
            "{options}"
        );
        assert_eq!(report["tolerance_missed"], !is_retraining, "{options}");
        let bound = report["evidence"]["relative_bound"].as_f64().unwrap();
        assert!(bound < 1e-6, "{options}: {bound:e}");
        assert_eq!(
            ended.err.contains("above the tolerance of 1.0e-300"),
            !is_retraining,
            "{options}: {ended:?}"
        );
        folder.write("houses.pub", folder.done("keys houses.efface"));
        folder.done(&format!("verify {at}.cose --key houses.pub"));
        folder.done("verify houses.efface --rows");
        let receipt = folder.json(&format!("receipt show {at}.cose --json"));
        assert_eq!(receipt["claim"]["kind"], claim, "{options}");
        folder.fails(
            "forget houses.efface --ids h2 --tolerance 1e-300",
            4,
            &["row h2 is not in this model"],
        );
    }
}

#[test]
fn a_tolerance_that_was_reached_is_in_the_reports_too() {
    let folder = Folder::with_houses();
    let report = folder.json("forget houses.efface --ids h2 --json");
    assert_eq!(
        (&report["claim"], &report["tolerance_missed"]),
        (&"exact".into(), &false.into())
    );
    assert_eq!(report["tolerance"], 1e-9);
    let fitted = folder.json(
        "fit houses.csv --target price --id house --force --discard-log --drop-suppressed --json",
    );
    assert_eq!(
        (&fitted["tolerance"], &fitted["tolerance_missed"]),
        (&1e-9.into(), &false.into())
    );
}
