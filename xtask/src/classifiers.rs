//! Lays out what `crates/efface/benches/classifiers.rs` and `xtask/bench/classifiers.py` measured:
//! forgetting from a classifier through the default door, beside refitting it.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::bench::{measure, number, parse, threads_of};
use crate::python;
use crate::scratch::ScratchFolder;

/// One table of rows: its name, rows, columns, classes, and what its rows are: words a row where
/// they are text, 0 where they are dense.
struct TableShape {
    name: &'static str,
    rows: usize,
    width: usize,
    classes: usize,
    words: &'static str,
}

const SHAPES: [TableShape; 7] = [
    TableShape {
        name: "20,000 × 1,000 × 2",
        rows: 20_000,
        width: 1_000,
        classes: 2,
        words: "0",
    },
    TableShape {
        name: "20,000 × 200 × 20",
        rows: 20_000,
        width: 200,
        classes: 20,
        words: "0",
    },
    TableShape {
        name: "100,000 × 100 × 10",
        rows: 100_000,
        width: 100,
        classes: 10,
        words: "0",
    },
    TableShape {
        name: "2,000 × 1,000 × 5",
        rows: 2_000,
        width: 1_000,
        classes: 5,
        words: "0",
    },
    TableShape {
        name: "text, 6,500 × 1,500 × 52",
        rows: 6_500,
        width: 1_500,
        classes: 52,
        words: "60",
    },
    TableShape {
        name: "text, 20,000 × 20,000 × 20",
        rows: 20_000,
        width: 20_000,
        classes: 20,
        words: "100",
    },
    TableShape {
        name: "60,000 × 110 × 10, correlated",
        rows: 60_000,
        width: 110,
        classes: 10,
        words: "correlated",
    },
];

/// Rows that are forgotten, one request each.
const REQUESTS: usize = 25;

/// `cargo xtask bench classifiers [SHAPE]`, SHAPE counting from 1.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let shapes: Vec<&TableShape> = match args.first() {
        None => SHAPES.iter().collect(),
        Some(text) => match text
            .parse::<usize>()
            .ok()
            .and_then(|at| SHAPES.get(at.wrapping_sub(1)))
        {
            Some(shape) => vec![shape],
            None => bail!(
                "there is no shape {text}; they are numbered from 1 to {}",
                SHAPES.len()
            ),
        },
    };
    println!(
        "\n## Forgetting one row from a classifier, defaults, λ = 1, {}\n",
        threads_of(1)
    );
    println!(
        "Beside scikit-learn's LogisticRegression on the rows that are left, with its defaults (lbfgs, tol = 1e-4) and with \
         newton-cg at tol = 1e-10. {REQUESTS} requests follow each other; the distance is that of the parameters after \
         the last one to those of newton-cg, relative to their norm.\n"
    );
    println!(
        "| rows × columns × classes | forget: median | first | slowest | refit | refit ÷ forget | distance: forget | refit | bound | at 1e-6: forget | tight refit | tight refit ÷ forget | bound | fit |"
    );
    println!("|{}", "---|".repeat(14));
    shapes.into_iter().try_for_each(line)
}

fn line(shape: &TableShape) -> Result<()> {
    let folder = ScratchFolder::new("classifiers")?;
    let arrays = folder.path().to_string_lossy().into_owned();
    let sizes = [shape.rows, shape.width, shape.classes].map(|size| size.to_string());
    let [rows, width, classes] = sizes.each_ref().map(String::as_str);
    python::script(
        "classifiers.py",
        &["prepare", &arrays, rows, width, classes, shape.words],
        1,
    )?;
    let requests = REQUESTS.to_string();
    let first_of = |found: Vec<Value>| found.into_iter().next().context("no measurement");
    let tight = first_of(measure("classifiers", &[&arrays, &requests, "1e-6"])?)?;
    let usual = first_of(measure("classifiers", &[&arrays, &requests])?)?;
    // The same rows as the Rust half's.
    let gone: Vec<String> = (0..REQUESTS)
        .map(|k| (k * 7919 % shape.rows).to_string())
        .collect();
    let theirs = parse(&python::script(
        "classifiers.py",
        &["refit", &arrays, &gone.join(",")],
        1,
    )?)?;
    let theirs = first_of(theirs)?;
    let ms = |value: &Value, key: &str| format!("{:.1} ms", number(value, key) * 1e3);
    println!(
        "| {} | {} | {} | {} | {} | **{:.1}** | {:.0e} | {:.0e} | {:.0e} | {} | {} | {:.1} | {:.0e} | {:.2} s |",
        shape.name,
        ms(&usual, "median"),
        ms(&usual, "first"),
        ms(&usual, "slowest"),
        ms(&theirs, "seconds"),
        number(&theirs, "seconds") / number(&usual, "median"),
        number(&theirs, "our_distance"),
        number(&theirs, "distance"),
        number(&usual, "largest_bound"),
        ms(&tight, "median"),
        ms(&theirs, "tight_seconds"),
        number(&theirs, "tight_seconds") / number(&tight, "median"),
        number(&tight, "largest_bound"),
        number(&usual, "fit"),
    );
    Ok(())
}
