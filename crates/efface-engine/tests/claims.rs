//! The rule of claims in the log: every receipt that says `exact` has a bound, and the bound is at
//! most the tolerance.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use efface::methods::Auto;
use efface::{GaussianNb, KMeans, Logistic, Method, Recipe, Ridge, Softmax};
use efface_engine::{Engine, FitRequest, ForgetOptions, Sharding, Silent, fit};
use efface_receipt::{DistanceBound, ReceiptClaim, RequestKind};

/// A tolerance that every bound misses.
const NEVER: f64 = 1e-300;

/// Numbers that predict a price.
fn prices(text: &str, model: impl Into<Recipe>) -> FitRequest {
    FitRequest {
        model: model.into(),
        ..dense(text)
    }
}

/// Numbers that predict a class.
fn stars(text: &str, model: impl Into<Recipe>) -> FitRequest {
    let mut request = prices(text, model);
    request.targets = vec!["stars".into()];
    request.ignore = vec!["words".into(), "price".into()];
    request
}

fn requests(text: &str) -> Vec<FitRequest> {
    let points = |model: KMeans| {
        let mut request = prices(text, model);
        request.targets.clear();
        request.ignore.push("price".into());
        request
    };
    let shards = Sharding {
        shards: 3,
        slices: 1,
        seed: 5,
        aggregation: None,
        threads: 1,
    };
    vec![
        prices(text, Ridge::new(1.0)),
        prices(text, Ridge::new(1.0).tolerance(NEVER)),
        stars(text, Softmax::new(0.5)),
        stars(text, Softmax::new(0.5).tolerance(NEVER)),
        FitRequest {
            positive: vec!["4".into(), "5".into()],
            ..stars(text, Logistic::new(0.5))
        },
        stars(text, GaussianNb::default()),
        points(KMeans::quantised(3, 5.0)),
        points(KMeans::divided(3, 1, 4)),
        FitRequest {
            sharding: Some(shards),
            ..prices(text, Ridge::new(1.0))
        },
    ]
}

#[test]
fn no_receipt_claims_exactness_beyond_its_bound() {
    let lines = lines(60);
    let text = table(&lines[..50]);
    for request in requests(&text) {
        let bench = Bench::new();
        let mut engine = bench.fit("model", &request);
        engine.learn(csv(&table(&lines[50..])), &Silent).unwrap();
        engine.amend(csv(&table(&lines[10..12])), &Silent).unwrap();
        for (method, at) in [("auto", 0), ("retrain", 2), ("auto", 4)] {
            let gone = ids(&[lines[at].id.as_str(), lines[at + 1].id.as_str()]);
            let report = engine
                .forget(
                    &by_method(&gone, &method.parse().unwrap()),
                    &ForgetOptions::default(),
                )
                .unwrap();
            assert_eq!(report.tolerance_missed, report.evidence.tolerance_missed());
        }
        let receipts = receipts(&engine);
        let kinds: Vec<RequestKind> = receipts.iter().map(|receipt| receipt.kind).collect();
        assert_eq!(
            kinds[..3],
            [RequestKind::Fit, RequestKind::Learn, RequestKind::Amend]
        );
        let mut exact = 0;
        for receipt in &receipts {
            if let Some(ReceiptClaim::Exact { tolerance }) = receipt.claim {
                let Some(DistanceBound {
                    distance: Some(_),
                    relative: Some(relative),
                    ..
                }) = receipt.bound
                else {
                    unreachable!("a receipt without a bound was signed: {receipt:?}")
                };
                assert!(relative <= tolerance, "{receipt:?}");
                exact += 1;
            }
        }
        let recipe = format!("{:?}", engine.summary().unwrap().recipe);
        assert_eq!(
            exact == 0,
            recipe.contains("1e-300"),
            "{recipe}: {exact} of {} are exact",
            receipts.len()
        );
        let checks = engine.verify(None).unwrap();
        assert!(checks.iter().all(|check| check.passed), "{checks:?}");
    }
}

#[test]
fn a_missed_tolerance_is_reported_kept_and_replayed() {
    let lines = lines(40);
    let text = table(&lines);
    let bench = Bench::new();
    let path = bench.path("model");
    let fitted = fit(
        &prices(&text, Ridge::new(1.0).tolerance(NEVER)),
        &path,
        true,
        &Silent,
    )
    .unwrap();
    assert_eq!(
        (fitted.tolerance, fitted.tolerance_missed),
        (Some(NEVER), true)
    );
    let mut engine = Engine::open(&path).unwrap();
    let named = efface_engine::ForgetRequest {
        id: Some("T-1".into()),
        ..efface_engine::ForgetRequest::new(ids(&[lines[3].id.as_str()]))
    };
    let report = engine.forget(&named, &ForgetOptions::default()).unwrap();
    assert_eq!(
        (report.claim.as_str(), report.outcome.name()),
        ("approximate", "erased")
    );
    assert_eq!(
        (report.tolerance, report.tolerance_missed),
        (Some(NEVER), true)
    );
    assert!(
        report
            .evidence
            .reason
            .as_ref()
            .unwrap()
            .contains("after retraining")
    );
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(
        (
            &json["tolerance_missed"],
            &json["evidence"]["tolerance_missed"]
        ),
        (&true.into(), &true.into())
    );
    assert_eq!(json["evidence"]["claim"]["kind"], "approximate");
    let again = engine.forget(&named, &ForgetOptions::default()).unwrap();
    assert!(again.replayed && again.tolerance_missed);
    assert_eq!(again.evidence, report.evidence);

    // A request that names this tolerance fails and changes nothing.
    let asked = Auto {
        tolerance: Some(NEVER),
    }
    .into();
    let who = ids(&[lines[4].id.as_str()]);
    assert!(
        engine
            .forget(&by_method(&who, &asked), &ForgetOptions::default())
            .is_err()
    );
    assert_eq!(engine.summary().unwrap().rows, 39);
    let wide = Auto {
        tolerance: Some(1e-3),
    }
    .into();
    let report = engine
        .forget(&by_method(&who, &wide), &ForgetOptions::default())
        .unwrap();
    assert_eq!(
        (
            report.claim.as_str(),
            report.tolerance,
            report.tolerance_missed
        ),
        ("exact", Some(1e-3), false)
    );
}

#[test]
fn a_tolerance_that_was_asked_for_holds_for_what_is_stored() {
    let lines = lines(60);
    let text = table(&lines);
    let two = FitRequest {
        positive: vec!["4".into(), "5".into()],
        ..stars(&text, Logistic::new(0.5))
    };
    for request in [
        prices(&text, Ridge::new(1e-3)),
        two,
        stars(&text, Softmax::new(0.5)),
    ] {
        let bench = Bench::new();
        let mut engine = bench.fit("model", &request);
        let mut left = 60;
        for line in &lines[..20] {
            let who = ids(&[line.id.as_str()]);
            // A little less than the bound of the model as it would be stored, with the change
            // folded in.
            let reached = engine
                .forget(
                    &by_method(&who, &Method::default()),
                    &ForgetOptions::dry_run(),
                )
                .unwrap()
                .evidence
                .relative_bound;
            let asked = Auto {
                tolerance: Some(0.999 * reached),
            }
            .into();
            match engine.forget(&by_method(&who, &asked), &ForgetOptions::default()) {
                Ok(report) => {
                    assert!(
                        !report.tolerance_missed
                            && report.evidence.relative_bound <= 0.999 * reached
                    );
                    left -= 1;
                }
                Err(error) => assert!(error.to_string().contains("the tolerance is"), "{error}"),
            }
            assert_eq!(engine.summary().unwrap().rows, left);
        }
        sound(&engine);
    }
}
