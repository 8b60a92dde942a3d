//! What users pay, beside numpy in the same run: a stream of requests, fits, the choice of form;
//! and this commit against the figures recorded before.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bench::{measure, number, parse};
use crate::{python, root};

/// Where figures are recorded.
const RECORDED: &str = "xtask/bench/recorded.json";

/// A figure counts as slower from here on, and from three times its spread.
const NOISE: f64 = 0.15;

/// The value of a flag, or its default.
fn flag<'a>(args: &'a [String], name: &str, default: &'a str) -> &'a str {
    let at = args.iter().position(|arg| arg == name);
    at.and_then(|at| args.get(at + 1))
        .map_or(default, String::as_str)
}

/// Prints the machine that a measurement came from, and whether it was quiet.
fn print_machine(measured: &[Value], threads: &str) {
    let Some(machine) = measured.iter().find(|value| value["what"] == "machine") else {
        return;
    };
    let spread = 100.0 * number(machine, "spread");
    let about = machine["about"].as_str().unwrap_or("unknown processor");
    println!(
        "{about}; {threads} threads; spread of repeated timings {spread:.0} % (a quiet machine is below 10 %)\n"
    );
}

/// `stream [D …] [--threads T]`.
pub(crate) fn stream(args: &[String]) -> Result<()> {
    let threads = flag(args, "--threads", "1");
    let given: Vec<&str> = args
        .iter()
        .map(String::as_str)
        .filter(|arg| arg.parse::<u64>().is_ok())
        .collect();
    let widths = if args.first().is_some_and(|arg| arg != "--threads") {
        given
    } else {
        vec!["1000", "3000"]
    };
    println!("\n## A stream of requests for one row each, through `Fitted`\n");
    for (at, width) in widths.iter().enumerate() {
        let ours = measure(
            "speed",
            &["stream", width, "--threads", threads, "--json", "yes"],
        )?;
        let theirs = python::script(
            "speed.py",
            &["stream", width, "--threads", threads, "--json"],
            1,
        )?;
        let theirs = parse(&theirs)?;
        if at == 0 {
            print_machine(&ours, threads);
            println!(
                "| d | columns | p50 | p99 | mean | slowest | factor once through memory | mean ÷ that | numpy: closed form | kept inverse | INF | PRU | p50 ÷ closed form | p50 ÷ kept inverse |\n|{}",
                "---|".repeat(14)
            );
        }
        for line in ours.iter().filter(|value| value["what"] == "stream") {
            let other = |who: &str| {
                let found = theirs
                    .iter()
                    .find(|value| value["who"] == who && value["columns"] == line["columns"]);
                found.map_or(f64::NAN, |value| number(value, "p50"))
            };
            let p50 = number(line, "p50");
            println!(
                "| {} | {} | {} | {} | {} | {} | {} | {:.2} | {} | {} | {} | {} | {:.2} | {:.2} |",
                line["d"],
                line["columns"].as_str().unwrap_or("?"),
                milliseconds(p50),
                milliseconds(number(line, "p99")),
                milliseconds(number(line, "mean")),
                milliseconds(number(line, "worst")),
                milliseconds(number(line, "factor_pass")),
                number(line, "mean/pass"),
                milliseconds(other("closed form")),
                milliseconds(other("kept inverse")),
                milliseconds(other("INF")),
                milliseconds(other("PRU")),
                p50 / other("closed form"),
                p50 / other("kept inverse"),
            );
        }
    }
    Ok(())
}

fn milliseconds(seconds: f64) -> String {
    let value = seconds * 1e3;
    if value >= 10.0 {
        format!("{value:.0} ms")
    } else {
        format!("{value:.2} ms")
    }
}

/// `fit [N D] [--threads T]`.
pub(crate) fn fit(args: &[String]) -> Result<()> {
    let threads = flag(args, "--threads", "1,2");
    let given: Vec<&str> = args
        .iter()
        .take_while(|arg| !arg.starts_with("--"))
        .map(String::as_str)
        .collect();
    let shapes = match given[..] {
        [rows, width] => vec![(rows, width)],
        _ => vec![("30000", "3000"), ("200000", "500"), ("1000000", "100")],
    };
    println!("\n## Ridge fits beside XᵀX\n");
    for (at, (rows, width)) in shapes.iter().enumerate() {
        let ours = measure(
            "speed",
            &["fit", rows, width, "--threads", threads, "--json", "yes"],
        )?;
        let theirs = python::script(
            "speed.py",
            &["fit", rows, width, "--threads", threads, "--json"],
            1,
        )?;
        let theirs = parse(&theirs)?;
        if at == 0 {
            print_machine(&ours, threads);
            println!(
                "| rows × columns | threads | fit | numpy XᵀX | faer XᵀX | scikit-learn | fit ÷ least XᵀX |\n|{}",
                "---|".repeat(7)
            );
        }
        for line in ours.iter().filter(|value| value["what"] == "fit") {
            let beside = theirs
                .iter()
                .find(|value| value["threads"] == line["threads"])
                .context("no numpy line")?;
            let numpy = number(beside, "X'X");
            let faer = number(line, "faer XᵀX");
            let sklearn = beside
                .as_object()
                .and_then(|fields| fields.iter().find(|(name, _)| name.starts_with("scikit")));
            println!(
                "| {rows} × {width} | {} | {:.3} s | {numpy:.3} s | {faer:.3} s | {:.3} s | {:.2} |",
                line["threads"],
                number(line, "fit"),
                sklearn
                    .and_then(|(_, value)| value.as_f64())
                    .unwrap_or(f64::NAN),
                number(line, "fit") / numpy.min(faer),
            );
        }
    }
    Ok(())
}

/// `forms [--threads T]`.
pub(crate) fn forms(args: &[String]) -> Result<()> {
    let threads = flag(args, "--threads", "1");
    let all = measure("speed", &["forms", "--threads", threads, "--json", "yes"])?;
    println!("\n## The choice of form\n");
    print_machine(&all, threads);
    println!(
        "| table | `auto` takes | fit | forget, stored model to stored model | MB | the other form | fit | forget | MB | chosen ÷ best | forget ÷ fit |\n|{}",
        "---|".repeat(11)
    );
    for line in all.iter().filter(|value| value["what"] == "forms") {
        let text = |name: &str| line[name].as_str().unwrap_or("?").to_string();
        println!(
            "| {} | {} | {:.2} s | {:.2} s | {:.1} | {} | {:.2} s | {:.2} s | {:.1} | {:.2} | {:.2} |",
            text("table"),
            text("auto takes"),
            number(line, "fit"),
            number(line, "forget"),
            number(line, "MB"),
            text("other"),
            number(line, "other fit"),
            number(line, "other forget"),
            number(line, "other MB"),
            number(line, "chosen/best"),
            number(line, "forget/fit"),
        );
    }
    Ok(())
}

/// Figures as they were recorded.
#[derive(Debug, Serialize, Deserialize)]
struct RecordedFigures {
    machine: String,
    commit: String,
    figures: BTreeMap<String, RecordedFigure>,
}

/// A time as a multiple of something measured in the same run, so that it means the same on another
/// machine.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct RecordedFigure {
    ratio: f64,
    /// The second least of the runs over the least, less 1.
    spread: f64,
}

/// `compare [--record]`: this commit against the last recorded figures.
pub(crate) fn compare(args: &[String]) -> Result<()> {
    let now = figures()?;
    let path = root()?.join(RECORDED);
    if args.iter().any(|arg| arg == "--record") {
        std::fs::write(&path, serde_json::to_string_pretty(&now)? + "\n")
            .context("cannot write the figures")?;
    }
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("no figures in {RECORDED}; record some with --record"))?;
    let before: RecordedFigures =
        serde_json::from_str(&text).context("the recorded figures cannot be read")?;
    println!(
        "\n## This commit against {} ({})\n",
        before.commit, before.machine
    );
    println!("Now: {}\n", now.machine);
    println!("| figure | recorded | now | now ÷ recorded | |\n|---|---|---|---|---|");
    for (name, now) in &now.figures {
        let Some(before) = before.figures.get(name) else {
            println!("| {name} | – | {:.2} | – | new |", now.ratio);
            continue;
        };
        let change = now.ratio / before.ratio;
        let mark = now.against(before);
        println!(
            "| {name} | {:.2} | {:.2} | {change:.2} | {mark} |",
            before.ratio, now.ratio
        );
    }
    Ok(())
}

impl RecordedFigure {
    /// The figure of several runs. Other work on the machine makes a run slower and never faster,
    /// so that the least counts, and how near the next one came to it says how much that is worth.
    fn of(mut ratios: Vec<f64>) -> Self {
        ratios.sort_by(f64::total_cmp);
        let least = ratios.first().copied().unwrap_or(f64::NAN);
        Self {
            ratio: least,
            spread: ratios
                .get(1)
                .map_or(f64::INFINITY, |next| next / least - 1.0),
        }
    }

    /// How this figure is marked beside one recorded before.
    fn against(&self, before: &Self) -> &'static str {
        let change = self.ratio / before.ratio;
        let noise = NOISE.max(3.0 * before.spread.max(self.spread));
        if change > 1.0 + noise {
            "**slower**"
        } else if change < 1.0 / (1.0 + noise) {
            "faster"
        } else {
            ""
        }
    }
}

/// Runs what is compared, several times each.
fn figures() -> Result<RecordedFigures> {
    const RUNS: usize = 4;
    let mut all: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut machine = String::new();
    for _ in 0..RUNS {
        let stream = measure("speed", &["stream", "1000", "4000", "600", "--json", "yes"])?;
        let fits = measure("speed", &["fit", "20000", "500", "--json", "yes"])?;
        let tall = measure("speed", &["fit", "200000", "50", "--json", "yes"])?;
        machine = stream[0]["about"].as_str().unwrap_or("unknown").to_string();
        for line in stream.iter().filter(|value| value["what"] == "stream") {
            let columns = line["columns"].as_str().unwrap_or("?");
            for what in ["p50", "p99", "mean"] {
                let name =
                    format!("stream, d = 1000, {columns} columns: {what} ÷ factor through memory");
                all.entry(name)
                    .or_default()
                    .push(number(line, what) / number(line, "factor_pass"));
            }
        }
        for line in fits
            .iter()
            .chain(&tall)
            .filter(|value| value["what"] == "fit")
        {
            let name = format!("fit, {} × {}: ÷ XᵀX", line["n"], line["d"]);
            all.entry(name).or_default().push(number(line, "fit/XᵀX"));
        }
    }
    let figures = all
        .into_iter()
        .map(|(name, ratios)| (name, RecordedFigure::of(ratios)));
    let commit = std::process::Command::new("git")
        .args(["rev-parse", "--short", "HEAD"])
        .current_dir(root()?)
        .output()?;
    let commit = String::from_utf8_lossy(&commit.stdout).trim().to_string();
    Ok(RecordedFigures {
        machine,
        commit,
        figures: figures.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_slower_is_marked_and_what_varies_is_not() {
        let before = RecordedFigure::of(vec![1.02, 1.0, 1.7]);
        assert_eq!(
            RecordedFigure::of(vec![1.31, 1.3, 2.0]).against(&before),
            "**slower**"
        );
        assert_eq!(
            RecordedFigure::of(vec![0.7, 0.69, 1.5]).against(&before),
            "faster"
        );
        assert_eq!(
            RecordedFigure::of(vec![1.1, 1.12, 3.0]).against(&before),
            ""
        );
        // Runs so far apart say nothing about a third more.
        assert_eq!(RecordedFigure::of(vec![1.3, 1.8, 2.0]).against(&before), "");
    }
}
