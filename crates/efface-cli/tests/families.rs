//! Every model that the command can fit, and the options that belong to another one.

mod common;

use common::{Folder, HOUSES};

fn houses() -> Folder {
    let folder = Folder::new();
    folder.write("houses.csv", HOUSES);
    folder
}

#[test]
fn naive_bayes_tells_classes() {
    let folder = houses();
    let report = folder
        .json("fit houses.csv --model naive-bayes --target city --id house --subject owner --json");
    let summary = &report["summary"];
    assert_eq!(summary["model"], "Gaussian naive Bayes");
    assert_eq!(summary["recipe"]["family"], "gaussian_nb");
    assert_eq!(
        summary["outputs"],
        serde_json::json!(["Graz", "Lyon", "Turin"])
    );
    let out = folder.done("predict houses.efface houses.csv");
    let scores = "score Graz,score Lyon,score Turin";
    let header = format!(
        "id,prediction,{scores},{}",
        scores.replace("score", "probability")
    );
    assert!(out.starts_with(&format!("{header}\nh1,Lyon,")), "{out}");
    let report = folder.json("forget houses.efface --ids h2 --json");
    assert_eq!(
        (&report["method"], &report["claim"]),
        (&"summation".into(), &"exact".into())
    );
    folder.fails(
        "forget houses.efface --ids h2",
        4,
        &["row h2 is not in this model; it was forgotten on 2"],
    );
    let export = folder.json("export houses.efface");
    assert_eq!(export["class_prior"].as_array().unwrap().len(), 3);
    assert_eq!(export["means"]["rooms"].as_array().unwrap().len(), 3);
    assert!(export["variances"]["price"][0].as_f64().unwrap() > 0.0 && export["lambda"].is_null());
    folder.done("export houses.efface --format npz");
    folder.done("export houses.efface --format safetensors");
    assert!(
        folder
            .done("inspect houses.efface")
            .contains("Gaussian naive Bayes, smoothing 1e-9")
    );
}

#[test]
fn two_classes_have_two_scores() {
    let folder = houses();
    folder.done(
        "fit houses.csv --model naive-bayes --likelihood multinomial --target city --positive Lyon --id house \
         --ignore owner",
    );
    let out = folder.done("predict houses.efface houses.csv");
    assert!(
        out.starts_with("id,prediction,score not Lyon,score Lyon,probability Lyon\nh1,"),
        "{out}"
    );
    let line = folder
        .done("predict houses.efface houses.csv --json")
        .lines()
        .next()
        .unwrap()
        .to_owned();
    let object: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(object["scores"].as_object().unwrap().len(), 2);
    let export = folder.json("export houses.efface");
    assert!(export["feature_log_prob"]["rooms"][1].as_f64().unwrap() < 0.0);
}

#[test]
fn clusters_need_no_target() {
    let folder = houses();
    let fit = "fit houses.csv --model kmeans --id house --ignore owner,city --clusters 2";
    let ended = folder.run(&format!("{fit} --cell 1"));
    assert!(
        ended
            .err
            .starts_with("fitted k-means on 7 rows with 2 features and 2 clusters, on a"),
        "{ended:?}"
    );
    let out = folder.done("predict houses.efface houses.csv");
    assert!(
        out.starts_with("id,cluster,distance 0,distance 1\nh1,"),
        "{out}"
    );
    let line = folder
        .done("predict houses.efface houses.csv --json")
        .lines()
        .next()
        .unwrap()
        .to_owned();
    let object: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(object["distances"].as_array().unwrap().len(), 2);
    assert!(object["cluster"].as_u64().unwrap() < 2);
    let report = folder.json("forget houses.efface --ids h1,h2 --json");
    assert_eq!(
        (&report["method"], report["rows"].as_u64()),
        (&"q_kmeans".into(), Some(5))
    );
    let export = folder.json("export houses.efface");
    assert_eq!(export["centers"]["price"].as_array().unwrap().len(), 2);
    folder.done(&format!(
        "{fit} --tree 1x2 --seed 7 --force --discard-log --drop-suppressed"
    ));
    let report = folder.json("forget houses.efface --ids h1 --json");
    assert_eq!(report["method"], "dc_kmeans");
    assert!(
        folder
            .done("inspect houses.efface")
            .contains("k-means, over a tree of height 1 and width 2")
    );
}

#[test]
fn logistic_tells_two_classes_and_softmax_more() {
    let folder = houses();
    let fit = "fit houses.csv --id house --ignore owner,price --target city";
    folder.done(&format!(
        "{fit} --model logistic --positive Lyon --lambda 0.5"
    ));
    let out = folder.done("predict houses.efface houses.csv");
    assert!(
        out.starts_with("id,prediction,score,probability Lyon\nh1,"),
        "{out}"
    );
    let report = folder.json("forget houses.efface --ids h1 --json");
    assert_eq!(
        (&report["claim"], report["rows"].as_u64()),
        (&"approximate".into(), Some(6))
    );
    assert!(report["evidence"]["relative_bound"].as_f64().unwrap() <= 3e-4);
    folder.fails(
        "forget houses.efface --ids h2 --method exact",
        5,
        &["there is no closed form; use newton, or auto"],
    );
    folder.fails(
        "forget houses.efface --ids h2 --method certified",
        5,
        &["noise", "epsilon"],
    );
    let report =
        folder.json("forget houses.efface --ids h2 --method newton --steps 2 --measure --json");
    assert_eq!(report["method"], "newton");
    assert!(
        folder.json("export houses.efface")["coefficients"]["rooms"][0]
            .as_f64()
            .is_some()
    );

    folder.done(&format!(
        "{fit} --model softmax --force --discard-log --drop-suppressed"
    ));
    let out = folder.done("predict houses.efface houses.csv");
    assert!(
        out.starts_with("id,prediction,score Graz,score Lyon,score Turin,probability Graz,"),
        "{out}"
    );
    folder.done("forget houses.efface --ids h1 --tolerance 1e-8");
    folder.fails(
        &format!("{fit} --model logistic --force --discard-log --drop-suppressed"),
        3,
        &["has 3 classes", "--model softmax"],
    );
    folder.fails(
        &format!("{fit} --model softmax --positive Lyon --force --discard-log --drop-suppressed"),
        3,
        &["2 classes", "--model logistic"],
    );
}

/// A Hessian as it was at the fit can tell a row that left since; without one there is nothing to
/// tell.
#[test]
fn a_classifier_keeps_no_curvature_where_it_is_told_so() {
    let folder = houses();
    let fit = "fit houses.csv --id house --ignore owner,price --target city --model logistic --positive Lyon --lambda 0.5";
    for (curvature, is_kept) in [("auto", true), ("iterative", false)] {
        folder.done(&format!(
            "{fit} --curvature {curvature} --force --discard-log --drop-suppressed"
        ));
        let report = folder.json("forget houses.efface --ids h1 --json");
        let kept = report["evidence"]["precomputed"].as_array().unwrap();
        assert_eq!(!kept.is_empty(), is_kept, "{report}");
        assert!(
            !report["evidence"]["kept_beside"]
                .to_string()
                .contains("kept_curvature")
                || is_kept
        );
        assert!(report["evidence"]["relative_bound"].as_f64().unwrap() <= 3e-4);
    }
    folder.fails(
        &format!("{fit} --curvature factor --force --discard-log --drop-suppressed"),
        2,
        &["--curvature is auto or iterative for logistic and softmax"],
    );
}

#[test]
fn certificates_are_shown() {
    let folder = houses();
    let fit = "fit houses.csv --id house --ignore owner,price --target city --model logistic --positive Lyon --lambda 9";
    for method in ["certified", "descent_to_delete"] {
        folder.done(&format!(
            "{fit} --epsilon 1 --delta 1e-4 --certify {method} --force --discard-log --drop-suppressed"
        ));
        let ended = folder.run("forget houses.efface --ids h1");
        assert!(ended.err.contains(&format!("by {method}: ")), "{ended:?}");
        assert!(
            ended.err.contains("certified: ε = 1, δ = 1e-4; "),
            "{ended:?}"
        );
        assert!(ended.err.contains(" used, "), "{ended:?}");
        let report = folder.json("forget houses.efface --ids h2 --json");
        assert!(
            report["evidence"]["certificate"]["left"].as_f64().unwrap() >= 0.0,
            "{report}"
        );
        assert_eq!(report["claim"], "certified");
        let page = folder.done("inspect houses.efface");
        assert!(
            page.contains("\ncertified ") && page.contains("δ = 1e-4"),
            "{page}"
        );
        folder.fails(
            "forget houses.efface --ids h3 --method newton",
            5,
            &["noise; use"],
        );
        folder.fails(
            "forget houses.efface --ids h3 --tolerance 0.1",
            5,
            &["answers to its budget"],
        );
    }
}

#[test]
fn shards_vote() {
    let folder = houses();
    let fit = "fit houses.csv --id house --ignore owner";
    folder.done(&format!("{fit} --target price --sisa 2x2 --seed 3"));
    assert!(
        folder
            .done("inspect houses.efface")
            .contains("ridge in shards, 2 shards of 2 slices, mean; λ = 1")
    );
    assert!(
        folder
            .done("predict houses.efface houses.csv")
            .starts_with("id,prediction\nh1,")
    );
    let report = folder.json("forget houses.efface --ids h1 --json");
    assert_eq!(
        (&report["method"], &report["claim"]),
        (&"sisa".into(), &"exact".into())
    );
    folder.fails(
        "export houses.efface",
        5,
        &["2 shards", "fit without shards"],
    );
    folder.fails(
        "forget houses.efface --ids h2 --method exact",
        5,
        &["shard by shard", "use sisa, or auto"],
    );
    folder.done(&format!(
        "{fit} --target city --model naive-bayes --sisa 2x1 --aggregate vote --force --discard-log --drop-suppressed"
    ));
    folder.done("predict houses.efface houses.csv");
    folder.done(&format!(
        "{fit} --target city --model softmax --sisa 2x2 --threads 2 --force --discard-log --drop-suppressed"
    ));
    folder.done("forget houses.efface --ids h1,h2");
}

/// A retraining with a new seed owes nothing to a choice that was made after looking at the model,
/// and its receipt says so.
#[test]
fn k_means_and_shards_are_retrained_with_a_new_seed() {
    let folder = houses();
    let fit = "fit houses.csv --id house --ignore owner --force --discard-log --drop-suppressed";
    for options in [
        "--target price --sisa 2x2 --seed 3",
        "--target city --model naive-bayes --sisa 2x1 --seed 3",
        "--ignore city --model kmeans --clusters 2 --seed 3",
    ] {
        folder.done(&format!("{fit} {options}"));
        let adaptive = |report: &serde_json::Value| {
            report["evidence"]["not_covered"]
                .to_string()
                .contains("adaptive_requests")
        };
        let report = folder.json("forget houses.efface --ids h1 --json");
        assert!(adaptive(&report), "{report}");
        folder.fails(
            "forget houses.efface --ids h2 --new-seed",
            5,
            &["a new seed is for retrain"],
        );
        let report =
            folder.json("forget houses.efface --ids h2 --method retrain --new-seed --json");
        assert!(!adaptive(&report) && report["claim"] == "exact", "{report}");
        folder.done("verify houses.efface --rows");
        let receipt = folder.done("log houses.efface --receipt 2");
        assert!(!receipt.contains("\"seed\": \"3\""), "{receipt}");
        assert!(!receipt.contains("adaptive_requests"), "{receipt}");
        let report = folder.json("forget houses.efface --ids h3 --json");
        assert!(adaptive(&report), "{report}");
        folder.done("verify houses.efface");
    }
    folder.done(&format!("{fit} --target price"));
    folder.fails(
        "forget houses.efface --ids h2 --method retrain --new-seed",
        5,
        &["this model draws nothing"],
    );
}

#[test]
fn settings_of_other_models_are_refused() {
    let folder = houses();
    for (options, says) in [
        (
            "--target price --clusters 3",
            [
                "--clusters has no meaning for --model ridge",
                "--model kmeans",
            ],
        ),
        (
            "--target city --model naive-bayes --lambda 2",
            ["--lambda has no meaning for", "--model ridge"],
        ),
        (
            "--model kmeans --clusters 2 --lambda 2",
            ["--lambda has no meaning for --model kmeans", "leave it out"],
        ),
        (
            "--model kmeans --clusters 2 --classify",
            ["k-means has no classes", "leave out --classify"],
        ),
        (
            "--model kmeans --clusters 2 --target price",
            ["k-means has no target", "--ignore"],
        ),
        ("--model kmeans", ["how many clusters", "add --clusters K"]),
        (
            "--model kmeans --clusters 2 --tree 8",
            ["two whole numbers", "8x4"],
        ),
        (
            "--model kmeans --clusters 2 --cell 0",
            ["epsilon = 0 is out of range", "above 0"],
        ),
        (
            "--model kmeans --clusters 0",
            ["clusters = 0 is out of range", "at least 1"],
        ),
        (
            "--target price --likelihood gaussian",
            ["--likelihood has no meaning", "--model naive-bayes"],
        ),
        ("--model magic", ["magic", "naive-bayes"]),
        (
            "--target price --epsilon 1 --delta 0.1",
            [
                "--epsilon has no meaning for --model ridge",
                "--model logistic",
            ],
        ),
        (
            "--target city --model logistic --epsilon 1",
            ["--delta", "required"],
        ),
        (
            "--target city --model logistic --positive Lyon --epsilon 0 --delta 0.1",
            ["epsilon = 0", "above 0"],
        ),
        (
            "--target city --model logistic --positive Lyon --epsilon 1 --delta 1",
            ["delta = 1", "below 1"],
        ),
        (
            "--target city --model logistic --epsilon 1 --delta 0.1 --sisa 2x1",
            ["exclude each other", "leave out one"],
        ),
        (
            "--model kmeans --clusters 2 --sisa 2x1",
            ["no common names", "leave out --sisa"],
        ),
        ("--target price --sisa 2", ["two whole numbers", "8x4"]),
        (
            "--target price --sisa 99x1",
            ["shards = 99 (7 rows)", "at most"],
        ),
        (
            "--target price --sisa 2x1 --aggregate vote",
            ["not on numbers", "--aggregate mean"],
        ),
        ("--target price --aggregate mean", ["--sisa", "required"]),
        (
            "--target price --seed 3",
            ["--seed has no meaning", "--model kmeans"],
        ),
        ("--model naive-bayes", ["no target", "--target"]),
    ] {
        folder.fails(
            &format!("fit houses.csv --id house --ignore owner {options}"),
            2,
            &says,
        );
    }
    assert!(!folder.path("houses.efface").exists());
}

#[test]
fn methods_of_other_models_are_refused() {
    let folder = Folder::with_houses();
    let before = std::fs::read(folder.path("houses.efface")).unwrap();
    for (options, code, says) in [
        (
            "--method q_kmeans",
            5,
            ["this model has no clusters", "use exact, or auto"],
        ),
        (
            "--method warm_start",
            5,
            ["training is a closed form", "use exact, or auto"],
        ),
        (
            "--method newton --steps 2",
            5,
            ["one step is the minimum", "leave out steps"],
        ),
        (
            "--method influence --tolerance 0.1",
            5,
            ["what auto must reach", "use auto"],
        ),
        (
            "--tolerance 0",
            2,
            ["tolerance = 0 is out of range", "above 0 and below 1"],
        ),
        (
            "--tolerance -1",
            2,
            ["tolerance = -1 is out of range", "above 0 and below 1"],
        ),
    ] {
        folder.fails(
            &format!("forget houses.efface --ids h1 {options}"),
            code,
            &says,
        );
    }
    assert_eq!(std::fs::read(folder.path("houses.efface")).unwrap(), before);
    folder.done("forget houses.efface --ids h1 --tolerance 1e-6");
}

/// The page is written from the table of the library, and has to follow it.
#[test]
fn the_page_of_methods_has_the_table_of_the_library() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/methods.md");
    let page = std::fs::read_to_string(path).unwrap();
    let part = page
        .split_once("<!-- methods -->\n")
        .and_then(|(_, rest)| rest.split_once("<!-- /methods -->"));
    let (found, _) = part.unwrap_or_default();
    assert_eq!(found.trim(), efface::methods::table::markdown().trim());
}

#[test]
fn smoothing_is_a_setting_and_an_elastic_net_is_refused_with_the_reason() {
    let folder = houses();
    let fit = "fit houses.csv --model naive-bayes --target city --id house --ignore owner --force --discard-log";
    folder.done(&format!("{fit} --smoothing 0.01"));
    assert!(
        folder
            .done("inspect houses.efface")
            .contains("Gaussian naive Bayes, smoothing 0.01")
    );
    folder.done(&format!("{fit} --likelihood multinomial --smoothing 0.5"));
    assert_eq!(
        folder.json("inspect houses.efface --json")["recipe"]["alpha"],
        0.5
    );
    folder.fails(
        &format!("{fit} --likelihood multinomial --smoothing 0"),
        2,
        &["alpha", "above 0"],
    );
    folder.fails(
        "fit houses.csv --target price --smoothing 1 -o m.efface",
        2,
        &["--smoothing has no meaning for --model ridge"],
    );
    for (word, reason) in [
        ("elastic-net", "has no curvature"),
        ("lasso", "has no curvature"),
        ("quantile", "has no curvature away from its corners"),
    ] {
        let line = format!("fit houses.csv --target price --model {word} -o m.efface");
        folder.fails(&line, 5, &[reason, "hint: use --model"]);
    }
}

#[test]
fn linear_models_and_naive_bayes_of_counts_are_exported_as_onnx() {
    let folder = houses();
    let fit = "fit houses.csv --id house --ignore owner --target";
    for (name, options) in [
        ("ridge", "price --scale standard"),
        ("classes", "city --classify"),
        (
            "counts",
            "city --model naive-bayes --likelihood multinomial",
        ),
        ("there", "city --model naive-bayes --likelihood bernoulli"),
        ("numbers", "city --model naive-bayes --likelihood gaussian"),
        ("rates", "price --model poisson"),
    ] {
        folder.done(&format!("{fit} {options} -o {name}.efface"));
        folder.done(&format!("export {name}.efface --format onnx"));
        let file = std::fs::read(folder.path(&format!("{name}.onnx"))).unwrap();
        let holds = |text: &str| {
            file.windows(text.len())
                .any(|window| window == text.as_bytes())
        };
        assert!(holds("features") && holds("scores"), "{name}");
        let has_classes = !["ridge", "rates"].contains(&name);
        assert_eq!(
            (holds("classes"), holds("label")),
            (has_classes, has_classes),
            "{name}"
        );
    }
    folder.done(
        "fit houses.csv --model kmeans --clusters 2 --id house --ignore owner,city,price -o groups.efface",
    );
    folder.fails(
        "export groups.efface --format onnx",
        2,
        &["and not for k-means", "use json"],
    );
}

#[test]
fn likelihoods_and_weights_of_classes_are_settings() {
    let folder = houses();
    let fit = "fit houses.csv --target city --id house --ignore owner";
    for (word, family) in [
        ("complement", "complement naive Bayes"),
        ("bernoulli", "Bernoulli naive Bayes"),
    ] {
        folder.done(&format!(
            "{fit} --model naive-bayes --likelihood {word} -o {word}.efface"
        ));
        assert!(
            folder
                .done(&format!("inspect {word}.efface"))
                .contains(family),
            "{word}"
        );
        assert_eq!(
            folder.json(&format!("forget {word}.efface --ids h1 --json"))["claim"],
            "exact",
            "{word}"
        );
    }
    folder.done(&format!("{fit} --class-weight balanced"));
    let report = folder.json("forget houses.efface --ids h1 --json");
    assert_eq!(
        (report["claim"].as_str(), report["method"].as_str()),
        (Some("exact"), Some("exact"))
    );
    folder.fails(
        "forget houses.efface --ids h2 --method influence",
        2,
        &["balanced weights of classes"],
    );
    folder.fails(
        &format!("{fit} --class-weight nowhere=2 -o m.efface"),
        2,
        &["there is no class `nowhere`"],
    );
    folder.fails(
        &format!("{fit} --class-weight balanced,a=2 -o m.efface"),
        2,
        &["and not both"],
    );
    folder.fails(
        "fit houses.csv --model kmeans --clusters 2 --class-weight balanced -o m.efface",
        2,
        &["has no meaning"],
    );
}

/// Models whose bound is the gradient over the penalty: after a forget they are those of a fit
/// without the row.
#[test]
fn support_vectors_and_counts_forget_exactly() {
    for (model, target) in [("svm", "city"), ("poisson", "rooms")] {
        let folder = houses();
        let left: Vec<&str> = HOUSES
            .lines()
            .filter(|line| !line.starts_with("h2,"))
            .collect();
        folder.write("left.csv", left.join("\n"));
        let options =
            format!("--model {model} --target {target} --id house --ignore owner --scale standard");
        for data in ["houses", "left"] {
            folder.done(&format!(
                "fit {data}.csv {options} --lambda 0.5 -o {data}.efface"
            ));
        }
        let report = folder.json("forget houses.efface --ids h2 --json");
        assert_eq!(report["claim"], "exact", "{report}");
        let evidence = &report["evidence"];
        assert!(
            evidence["relative_bound"].as_f64().unwrap() < 1e-6,
            "{report}"
        );
        let [found, truth] = ["houses", "left"]
            .map(|name| folder.json(&format!("export {name}.efface --format json")));
        let near = |a: &serde_json::Value, b: &serde_json::Value| {
            a.as_array()
                .unwrap()
                .iter()
                .zip(b.as_array().unwrap())
                .all(|(a, b)| (a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < 1e-7)
        };
        let coefficients = truth["coefficients"].as_object().unwrap();
        assert!(coefficients.len() > 1);
        for (name, values) in coefficients {
            assert!(
                near(&found["coefficients"][name], values),
                "{model}: {name}"
            );
        }
        folder.done("verify houses.efface --rows");
        assert!(
            folder
                .done("predict houses.efface houses.csv")
                .starts_with("id,prediction")
        );
        folder.fails(
            "forget houses.efface --ids h3 --method influence",
            5,
            &["keeps no curvature"],
        );
    }
    let folder = houses();
    folder.fails(
        "fit houses.csv --model svm --target city --lambda 0",
        2,
        &["lambda = 0 is out of range"],
    );
    folder.fails(
        "fit houses.csv --model quantile --target price",
        5,
        &["is not offered"],
    );
}
