//! Lays out what `crates/efface/benches/linear.rs` and `xtask/bench/linear.py` measured, in one run
//! on one machine.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{
    classifiers, data, machine, methods, networks, package, python, root, scale, speed, torture,
};

/// Deletion time over retraining time, ×1e-4: (k, INF, PRU) at d = 1000, 1500, 2000, 3000 in table
/// 1 of Cao et al. (2022).
const PAPER: [(u64, [f64; 4], [f64; 4]); 7] = [
    (1, [79.0, 50.0, 42.0, 29.0], [60.0, 15.0, 9.0, 4.0]),
    (5, [99.0, 60.0, 47.0, 30.0], [125.0, 43.0, 25.0, 12.0]),
    (10, [103.0, 64.0, 51.0, 31.0], [155.0, 43.0, 27.0, 12.0]),
    (30, [115.0, 70.0, 58.0, 35.0], [405.0, 141.0, 79.0, 32.0]),
    (50, [132.0, 75.0, 63.0, 40.0], [805.0, 294.0, 179.0, 38.0]),
    (100, [152.0, 89.0, 77.0, 47.0], [1511.0, 593.0, 296.0, 61.0]),
    (
        200,
        [316.0, 172.0, 149.0, 77.0],
        [3492.0, 1276.0, 606.0, 102.0],
    ),
];
const WIDTHS: [u64; 4] = [1000, 1500, 2000, 3000];

/// `rows [ROWS …]`: what rows cost. The engine's example does the work.
fn rows(args: &[String]) -> Result<()> {
    let sizes = if args.is_empty() {
        vec!["100000", "1000000"]
    } else {
        args.iter().map(String::as_str).collect()
    };
    let example = [
        "run",
        "--release",
        "--quiet",
        "--package",
        "efface-engine",
        "--example",
        "scale",
        "--",
    ];
    let forget: Vec<&str> = std::iter::once("forget").chain(sizes).collect();
    for part in [&["constants"][..], &forget, &["bulk", "1000000", "100000"]] {
        crate::run("cargo", &[&example[..], part].concat())?;
    }
    Ok(())
}

/// Tells benchmarks how many threads to take where they have a number of their own.
pub(crate) const THREADS: &str = "EFFACE_THREADS";

/// How many threads a benchmark takes that has a number of its own, in words.
pub(crate) fn threads_of(default: usize) -> String {
    match std::env::var(THREADS)
        .unwrap_or_else(|_| default.to_string())
        .as_str()
    {
        "1" => "one thread".into(),
        "2" => "two threads".into(),
        count => format!("{count} threads"),
    }
}

/// Runs a benchmark again on so many processors. Programs that take all there are take these, and
/// others are told.
fn on_threads(count: &str, args: &[&String]) -> Result<()> {
    let last = count
        .parse::<usize>()
        .ok()
        .and_then(|count| count.checked_sub(1));
    let last = last.with_context(|| format!("--threads: {count} is no number of threads"))?;
    let status = Command::new("taskset")
        .args(["--cpu-list", &format!("0-{last}")])
        .arg(std::env::current_exe()?)
        .arg("bench")
        .args(args)
        .env(THREADS, count)
        .status()
        .context("cannot start taskset, which gives a program some processors")?;
    if !status.success() {
        bail!("the benchmark failed ({status})");
    }
    Ok(())
}

/// `bench [NAME …] [--threads T]`. Streams, fits and forms take the flag themselves, some of them a
/// list.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let takes_threads =
        |name: &String| ["stream", "fit", "forms", "compare"].contains(&name.as_str());
    if let Some(at) = args.iter().position(|arg| arg == "--threads")
        && !args.first().is_some_and(takes_threads)
    {
        let count = args.get(at + 1).context("--threads takes a number")?;
        let others: Vec<&String> = args[..at].iter().chain(&args[at + 2..]).collect();
        return on_threads(count, &others);
    }
    if !args.is_empty() {
        machine::print();
    }
    match args.first().map(String::as_str) {
        None => {
            for part in [
                "deletion",
                "flat",
                "memory",
                "drift",
                "injection",
                "fit",
                "stream",
                "forms",
            ] {
                run(&[part.to_string()])?;
            }
            Ok(())
        }
        Some("deletion") => {
            let mut widths = Vec::new();
            for arg in &args[1..] {
                widths.push(
                    arg.parse::<u64>()
                        .with_context(|| format!("{arg} is not a width"))?,
                );
            }
            if widths.is_empty() {
                widths = WIDTHS.to_vec();
            }
            widths.into_iter().try_for_each(deletion)
        }
        Some("flat") => flat(),
        Some("memory") => memory(),
        Some("drift") => drift(),
        Some("fit") => speed::fit(&args[1..]),
        Some("stream") => speed::stream(&args[1..]),
        Some("forms") => speed::forms(&args[1..]),
        Some("disk") => data::disk(&args[1..]),
        Some("compare") => speed::compare(&args[1..]),
        Some("injection") => injection(),
        Some("data") => data::run(args.get(1).map(String::as_str)),
        Some("pipelines") => data::pipelines(args.get(1).map(String::as_str)),
        Some("classifiers") => classifiers::run(&args[1..]),
        Some("methods") => methods::run(&args[1..]),
        Some("nn") => networks::run(&args[1..]),
        Some("python") => package::bench(&args[1..]),
        Some("serve") => torture::bench_serve(&args[1..]),
        Some("scale") => scale::run(&args[1..]),
        Some("rows") => rows(&args[1..]),
        Some(other) => {
            bail!(
                "there is no benchmark {other}; deletion, flat, memory, drift, injection, fit, stream, forms, disk, compare, classifiers, data, pipelines, methods, nn, python, serve, scale and rows exist"
            )
        }
    }
}

/// Measures what the picture of the first page shows, draws it, and prints its numbers.
pub(crate) fn picture() -> Result<()> {
    let file = root()?.join("docs/forgetting.svg");
    let file = file.to_string_lossy();
    crate::run(
        "cargo",
        &[
            "bench",
            "--quiet",
            "--package",
            "efface",
            "--bench",
            "picture",
            "--",
            &file,
        ],
    )
}

/// Runs the Rust half and parses its lines.
pub(crate) fn measure(bench: &str, args: &[&str]) -> Result<Vec<Value>> {
    eprintln!("measuring {} …", args.join(" "));
    let output = Command::new("cargo")
        .args([
            "bench",
            "--quiet",
            "--package",
            "efface",
            "--bench",
            bench,
            "--",
        ])
        .args(args)
        .current_dir(root()?)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo bench")?;
    if !output.status.success() {
        bail!("the benchmark failed ({})", output.status);
    }
    parse(&String::from_utf8_lossy(&output.stdout))
}

pub(crate) fn parse(text: &str) -> Result<Vec<Value>> {
    let lines = text.lines().filter(|line| line.starts_with('{'));
    lines
        .map(|line| serde_json::from_str(line).context("a measurement is not JSON"))
        .collect()
}

pub(crate) fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or(f64::NAN)
}

fn find<'a>(all: &'a [Value], what: &str, k: u64, method: Option<&str>) -> Option<&'a Value> {
    all.iter().find(|v| {
        v["what"] == what
            && v["k"].as_u64() == Some(k)
            && method.is_none_or(|method| v["method"] == method)
    })
}

fn deletion(d: u64) -> Result<()> {
    let width = d.to_string();
    let theirs = parse(&python::script("linear.py", &["deletion", &width], 1)?)?;
    let ours = measure("linear", &["deletion", &width])?;
    let retrain = ours
        .iter()
        .find(|v| v["what"] == "retrain")
        .context("no retraining time")?;
    let numpy_retrain = theirs
        .iter()
        .find(|v| v["what"] == "numpy retrain")
        .context("no numpy time")?;
    println!(
        "\n## Deletion, n = {}, d = {d}, {}\n",
        10 * d,
        threads_of(1)
    );
    println!(
        "Retraining: {:.3} s (numpy {} takes {:.3} s). The rows form took {:.2} s more to fit and keeps {:.0} MB.",
        number(retrain, "seconds"),
        numpy_retrain["numpy"].as_str().unwrap_or("?"),
        number(numpy_retrain, "seconds"),
        number(retrain, "rows_form_extra_seconds"),
        number(retrain, "rows_form_bytes") / 1e6,
    );
    println!("\nTime as a fraction of retraining, ×1e-4; the paper's columns are its table 1.\n");
    let methods = [
        "exact, rows",
        "exact, inverse",
        "exact, factor",
        "newton, factor",
        "influence, rows",
        "projection_residual, rows",
        "projection_residual, as printed",
        "summation",
    ];
    println!(
        "| k | {} | numpy exact | paper INF | paper PRU | exact ÷ numpy | exact ÷ printed | exact: relative error | leave-k-out |",
        methods.join(" | ")
    );
    println!("|{}", "---|".repeat(methods.len() + 8));
    for (k, inf, pru) in PAPER {
        let mut line = format!("| {k} |");
        for method in methods {
            let cell = find(&ours, "cell", k, Some(method)).context("a cell is missing")?;
            line += &format!(" {} |", short(number(cell, "of_retrain") * 1e4));
        }
        let exact = find(&ours, "cell", k, Some(methods[0])).context("a cell is missing")?;
        let printed = find(&ours, "cell", k, Some(methods[6])).context("a cell is missing")?;
        let numpy = find(&theirs, "numpy cell", k, None).context("a numpy cell is missing")?;
        let left = find(&ours, "leave_out", k, None).context("a prediction is missing")?;
        let seconds = number(exact, "seconds");
        let column = WIDTHS.iter().position(|w| *w == d);
        let paper =
            |values: [f64; 4]| column.map_or("–".to_string(), |at| values[at].to_string());
        line += &format!(
            " {} | {} | {} | {:.2} | {:.2} | {:.0e} | {:.0e} |",
            short(number(numpy, "seconds") / number(numpy_retrain, "seconds") * 1e4),
            paper(inf),
            paper(pru),
            seconds / number(numpy, "seconds"),
            seconds / number(printed, "seconds"),
            number(exact, "relative"),
            number(left, "worst"),
        );
        println!("{line}");
    }
    println!(
        "\nHow much of the way to the retrained parameters is left, ‖θ′ − θ^{{\\D}}‖/‖θ − θ^{{\\D}}‖:\n"
    );
    println!("| k | influence | projection_residual | exact |\n|---|---|---|---|");
    for (k, ..) in PAPER {
        let undone = |method| {
            find(&ours, "cell", k, Some(method)).map_or(f64::NAN, |cell| number(cell, "undone"))
        };
        println!(
            "| {k} | {:.3} | {:.3} | {:.0e} |",
            undone("influence, rows"),
            undone("projection_residual, rows"),
            undone("exact, rows")
        );
    }
    Ok(())
}

fn short(value: f64) -> String {
    if value >= 100.0 {
        format!("{value:.0}")
    } else if value >= 1.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

fn flat() -> Result<()> {
    let all = measure("linear", &["flat"])?;
    println!(
        "\n## Forget time against n, d = 256, exact\n\n| form | k | n = 10⁴ | 10⁵ | 10⁶ | largest ÷ smallest |\n|---|---|---|---|---|---|"
    );
    for form in ["factor", "rows"] {
        for k in [1, 10] {
            let times: Vec<f64> = all
                .iter()
                .filter(|v| v["form"] == form && v["k"].as_u64() == Some(k))
                .map(|v| number(v, "seconds") * 1e6)
                .collect();
            let cells: Vec<String> = times.iter().map(|t| format!("{t:.1} µs")).collect();
            let (low, high) = times
                .iter()
                .fold((f64::INFINITY, 0.0f64), |(l, h), t| (l.min(*t), h.max(*t)));
            println!(
                "| {form} | {k} | {} | {:.2} |",
                cells.join(" | "),
                high / low
            );
        }
    }
    Ok(())
}

fn memory() -> Result<()> {
    let theirs = parse(&python::script("linear.py", &["fit", "30000", "3000"], 2)?)?;
    let ours = measure("linear", &["fit", "30000", "3000"])?;
    let a = ours.first().context("no measurement")?;
    let b = theirs.first().context("no measurement")?;
    let square = number(a, "square_bytes");
    println!(
        "\n## Memory of a fit, n = 30,000, d = 3,000, {}\n",
        threads_of(2)
    );
    println!("| | seconds | peak memory beyond the data |\n|---|---|---|");
    println!(
        "| efface | {:.2} | {:.0} MB = {:.2} d×d matrices |",
        number(a, "seconds"),
        (number(a, "peak") - number(a, "resident_before")).max(0.0) / 1e6,
        (number(a, "peak") - number(a, "resident_before")).max(0.0) / square
    );
    println!(
        "| scikit-learn {}, Ridge(solver=\"cholesky\") | {:.2} | {:.0} MB |",
        b["sklearn"].as_str().unwrap_or("?"),
        number(b, "seconds"),
        (number(b, "peak") - number(b, "peak_before")) / 1e6
    );
    println!(
        "\nefface ÷ scikit-learn: {:.2}",
        number(a, "seconds") / number(b, "seconds")
    );
    Ok(())
}

fn drift() -> Result<()> {
    let all = measure("linear", &["stream"])?;
    let v = all.first().context("no measurement")?;
    println!(
        "\n## {} deletions one at a time, d = {}\n",
        v["deletions"], v["d"]
    );
    println!(
        "Worst relative error against retraining over {} checks: {:.1e}; largest relative bound reported: {:.1e}; \
         {} refactorisations; {:.0} µs a deletion; {} rows left.",
        v["checked"],
        number(v, "worst_relative"),
        number(v, "largest_relative_bound"),
        v["refactorisations"],
        number(v, "microseconds_each"),
        v["rows_left"]
    );
    Ok(())
}

fn injection() -> Result<()> {
    let all = measure("linear", &["injection"])?;
    println!("\n## Feature injection, d = 1500, n = 15,000, λ = 1e-4, one trial\n");
    println!(
        "Share of the injected weight that is left, |w_after|/|w_before|, and for exact the relative distance to retraining.\n"
    );
    println!(
        "| k | p | influence | projection_residual | newton | summation | exact | exact: distance | bound |\n|---|---|---|---|---|---|---|---|---|"
    );
    for k in [10, 50, 100] {
        for p in [0.5, 0.25, 0.1] {
            let cell = |method: &str, key: &str| {
                all.iter()
                    .find(|v| {
                        v["k"].as_u64() == Some(k)
                            && v["p"].as_f64() == Some(p)
                            && v["method"] == method
                    })
                    .map_or(f64::NAN, |v| number(v, key))
            };
            println!(
                "| {k} | {p} | {:.2} | {:.2} | {:.0e} | {:.0e} | {:.0e} | {:.0e} | {:.0e} |",
                cell("influence", "left"),
                cell("projection_residual", "left"),
                cell("newton", "left"),
                cell("summation", "left"),
                cell("exact", "left"),
                cell("exact", "relative"),
                cell("exact", "bound")
            );
        }
    }
    Ok(())
}
