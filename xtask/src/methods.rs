//! Lays out what `crates/efface/benches/methods.rs` and `xtask/bench/methods.py` measured: every
//! method on real data.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::bench::{measure, number, parse, threads_of};
use crate::scratch::ScratchFolder;
use crate::{python, root};

pub(crate) fn run(args: &[String]) -> Result<()> {
    // Training alone: the part to run after a change to it.
    let only_training = args.first().is_some_and(|arg| arg == "training");
    let data = args.get(only_training as usize);
    let root = root()?;
    let data = data.map_or_else(
        || root.join("../shared/data"),
        |data| Path::new(data).to_path_buf(),
    );
    ensure!(
        data.is_dir(),
        "there is no folder {}; name the one that holds the data sets: cargo xtask bench methods [training] DIR",
        data.display()
    );
    let folder = ScratchFolder::new("methods")?;
    let arrays = folder.path().to_string_lossy().into_owned();
    python::script(
        "methods.py",
        &["prepare", &data.to_string_lossy(), &arrays],
        2,
    )?;
    training(&arrays)?;
    if only_training {
        return Ok(());
    }
    goal(&arrays)?;
    for set in ["adult", "covertype", "clothing"] {
        compare(&arrays, set)?;
    }
    chain(&arrays)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or("?")
}

fn training(arrays: &str) -> Result<()> {
    let ours = measure("methods", &["train", arrays])?;
    let theirs = parse(&python::script("methods.py", &["train", arrays], 2)?)?;
    let version = theirs.first().map_or("?", |v| text(v, "sklearn"));
    println!("\n## Training, λ = 1, {}\n", threads_of(2));
    println!(
        "Beside scikit-learn {version}, LogisticRegression(solver=\"lbfgs\", C=1, tol=1e-12). The gradient is ‖Σ∇ℓ + λθ‖ at the \
         parameters reached, by the same formula for both; the difference is the largest of a coefficient, relative to their norm. To 1e-3 is efface \
         stopped at that gradient, which is where scikit-learn gives up or not much before.\n"
    );
    println!(
        "| data | rows × features × outputs | efface, to 1e-3 | to 1e-10 | with curvature | scikit-learn | to 1e-3 ÷ scikit-learn | \
         to 1e-10 ÷ scikit-learn | with curvature ÷ scikit-learn | gradient, efface | gradient, scikit-learn | its iterations | difference |\n|{}",
        "---|".repeat(13)
    );
    for b in &theirs {
        let a = ours
            .iter()
            .find(|a| a["set"] == b["set"])
            .context("a training time is missing")?;
        let plain = number(a, "seconds");
        let full = number(a, "with_curvature");
        let seconds = number(b, "seconds");
        let rough = number(a, "rough");
        println!(
            "| {} | {} × {} × {} | {rough:.2} s | {plain:.2} s | {full:.2} s | {seconds:.2} s | {:.3} | {:.3} | {:.3} | {:.0e} | \
             {:.0e} | {} | {:.0e} |",
            text(b, "set"),
            b["rows"],
            b["width"],
            b["outputs"],
            rough / seconds,
            plain / seconds,
            full / seconds,
            number(b, "our_gradient"),
            number(b, "gradient"),
            b["iterations"],
            number(b, "difference"),
        );
    }
    Ok(())
}

fn goal(arrays: &str) -> Result<()> {
    let all = measure("methods", &["goal", arrays])?;
    let v = all.first().context("no measurement")?;
    let newton = number(v, "newton");
    let retraining = number(v, "retraining");
    let training = number(v, "training");
    println!(
        "\n## newton, n = {}, d = {}, k = {}, {}\n",
        v["rows"],
        v["width"],
        v["k"],
        threads_of(2)
    );
    println!(
        "{:.2} ms, {:.0} times faster than retraining with the curvature ({retraining:.2} s) and {:.0} times faster than \
         training without it ({training:.2} s). Relative distance to retraining {:.1e} (median of five requests; largest \
         {:.1e}), reported bound {:.1e}.",
        newton * 1e3,
        retraining / newton,
        training / newton,
        number(v, "distance"),
        number(v, "largest_distance"),
        number(v, "bound"),
    );
    Ok(())
}

fn percent(value: &Value) -> String {
    value
        .as_f64()
        .map_or("–".into(), |share| format!("{:.2}", 100.0 * share))
}

/// A distance or a bound: what is exactly 0 says so.
fn small(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        value if value.is_finite() => format!("{value:.1e}"),
        // JSON has no infinity.
        _ => "∞".into(),
    }
}

fn compare(arrays: &str, set: &str) -> Result<()> {
    let all = measure("methods", &["compare", arrays, set])?;
    println!("\n## Methods on {set}, {}\n", threads_of(2));
    println!(
        "Time is a fraction of the family's own retraining (median; its seconds stand beside its name). The distance is that to the \
         retrained parameters, relative to their norm; for sisa it is the largest difference of a score on the test rows, for \
         descent_to_delete that of what is published to the optimum, and for certified models it has the noise of both in it, where \
         the bound speaks of retraining with the same noise. Accuracy on the test rows in percent; rows read are a \
         median over requests.\n"
    );
    println!(
        "| model | method | k | time ÷ retraining | distance | reported bound | accuracy before | after | retrained | rows read |\n|{}",
        "---|".repeat(10)
    );
    for v in &all {
        let lead = format!(
            "| {} | {} | {}",
            text(v, "family"),
            text(v, "method"),
            v["k"]
        );
        if v["what"] == "skipped" {
            println!("{lead} | skipped: {} | | | | | | |", text(v, "why"));
            continue;
        }
        let seconds = number(v, "seconds");
        let retraining = number(v, "retraining");
        let time = match text(v, "method") {
            "retrain" => format!("{:.2} ({seconds:.3} s)", seconds / retraining),
            _ => format!("{:.1e}", seconds / retraining),
        };
        println!(
            "{lead} | {time} | {} | {} | {} | {} | {} | {} |",
            small(number(v, "away")),
            small(number(v, "bound")),
            percent(&v["before"]),
            percent(&v["after"]),
            percent(&v["retrained"]),
            number(v, "rows_read"),
        );
    }
    choices(set, &all);
    accounts(set, &all);
    Ok(())
}

/// What `auto` did, in its own words.
fn choices(set: &str, all: &[Value]) {
    let mut said = false;
    for v in all.iter().filter(|v| text(v, "method").starts_with("auto")) {
        if !said {
            println!("\nauto on {set}:\n");
            said = true;
        }
        println!("- k = {}: {}", v["k"], text(v, "reason"));
    }
}

/// The accounts of the certified methods.
fn accounts(set: &str, all: &[Value]) {
    let kept: Vec<&Value> = all.iter().filter(|v| v["more"].is_object()).collect();
    if kept.is_empty() {
        return;
    }
    println!(
        "\nCertified methods on {set}: what the budget counts, how much of it the request used, and the true residual gradient, \
         worked out from the rows and the noise of the fit.\n"
    );
    println!(
        "| method | k | steps | unit | noise | budget | used | true residual | trained anew |\n|{}",
        "---|".repeat(9)
    );
    let mut above = 0;
    for v in kept {
        let more = &v["more"];
        above += (number(more, "truth") > number(more, "used") + number(more, "slack")) as usize;
        println!(
            "| {} | {} | {} | {} | {:.2e} | {:.2e} | {:.2e} | {} | {} |",
            text(v, "method"),
            v["k"],
            more["steps"],
            text(more, "unit"),
            number(more, "noise"),
            number(more, "budget"),
            number(more, "used"),
            more["truth"]
                .as_f64()
                .map_or("–".into(), |truth| format!("{truth:.2e}")),
            if more["retrained"] == true {
                "yes"
            } else {
                "no"
            },
        );
    }
    println!(
        "\nRequests whose true residual is above what was used, by more than the training of the fit left unknown of the noise: \
         {above}."
    );
}

fn chain(arrays: &str) -> Result<()> {
    let all = measure("methods", &["chain", arrays])?;
    let v = all.first().context("no measurement")?;
    println!(
        "\n## {} certified deletions on {}, one at a time, λ = {}, noise {}\n",
        v["deletions"],
        text(v, "set"),
        v["lambda"],
        v["noise"]
    );
    let first = v["first_retraining"].as_u64();
    println!(
        "Deletions before the first retraining: {}; {} retrainings. Largest use of the budget ({:.2}): {:.1} %. True residual ÷ \
         account at {} points: {:.1e} to {:.9}. {} deletions read the retained rows, the first of them number {}; {:.2} ms a \
         deletion without that, {:.1} ms with it.",
        first.map_or("all".into(), |first| first.to_string()),
        v["retrainings"],
        number(v, "budget"),
        100.0 * number(v, "largest_share"),
        v["checked"],
        number(v, "least"),
        number(v, "most"),
        v["reading"],
        v["first_reading"],
        1e3 * number(v, "seconds"),
        1e3 * number(v, "reading_seconds"),
    );
    Ok(())
}
