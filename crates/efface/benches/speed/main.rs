//! What a user of `Fitted` pays: the fit, one request of a stream, and every form in which
//! curvature can be kept.
//!
//! `speed stream D [N COUNT] [--form F] [--columns independent|correlated]`, `speed fit N D
//! [--single yes]`, `speed forms [FIRST LAST]`, tables counting from 1, each with `--threads T` or
//! `--threads 1,2,4`, printed as a table, or with `--json yes` as one line of JSON a measurement,
//! which `cargo xtask bench` lays out beside numpy. The binary needs no other file: copy it to the
//! machine that is to be measured.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a benchmark that cannot go on should stop and say where"
)]

mod fit;
mod forms;
mod generated;
mod machine;
mod stream;

use serde_json::{Value, json};

/// Numbers by place, and flags by name.
struct BenchArguments {
    words: Vec<String>,
}

impl BenchArguments {
    fn number(&self, at: usize, default: usize) -> usize {
        let plain = self
            .words
            .iter()
            .position(|word| word.starts_with("--"))
            .unwrap_or(self.words.len());
        self.words[..plain]
            .get(at)
            .and_then(|word| word.parse().ok())
            .unwrap_or(default)
    }

    fn flag(&self, name: &str) -> Option<&str> {
        let at = self.words.iter().position(|word| word == name)?;
        self.words.get(at + 1).map(String::as_str)
    }

    fn threads(&self) -> Vec<usize> {
        let given = self.flag("--threads").unwrap_or("1");
        given
            .split(',')
            .map(|word| word.parse().expect("threads are numbers from 1 on"))
            .collect()
    }
}

/// Prints measurements of one kind.
struct BenchTable {
    json: bool,
    begun: bool,
}

impl BenchTable {
    /// Prints the machine, and how quiet it is.
    fn new(arguments: &BenchArguments, what: &str) -> Self {
        let table = Self {
            json: arguments.flag("--json").is_some(),
            begun: false,
        };
        let about = machine::describe();
        let spread = machine::spread();
        if table.json {
            println!(
                "{}",
                json!({"what": "machine", "about": about, "spread": spread})
            );
        } else {
            let quiet = if spread <= machine::QUIET {
                "quiet"
            } else {
                "busy: read ratios within a run"
            };
            println!(
                "{what}; {about}; spread of repeated timings {:.0} %: {quiet}\n",
                100.0 * spread
            );
        }
        table
    }

    /// One line; times are in seconds.
    fn line(&mut self, measured: &Value) {
        let Value::Object(fields) = measured else {
            return;
        };
        if self.json {
            println!("{measured}");
            return;
        }
        if !self.begun {
            let names: Vec<&str> = fields.keys().map(String::as_str).collect();
            println!("| {} |\n|{}", names.join(" | "), "---|".repeat(names.len()));
            self.begun = true;
        }
        let cells: Vec<String> = fields.values().map(cell).collect();
        println!("| {} |", cells.join(" | "));
    }
}

/// Whole numbers as they are, others with four digits.
fn cell(value: &Value) -> String {
    match value {
        Value::Number(number) if number.is_f64() => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            if (1e-2..1e4).contains(&number.abs()) {
                format!("{number:.4}")
            } else {
                format!("{number:.3e}")
            }
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn main() {
    let words = std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .collect();
    let arguments = BenchArguments { words };
    match arguments.words.first().map(String::as_str) {
        Some("stream") => stream::run(&arguments),
        Some("fit") => fit::run(&arguments),
        Some("forms") => forms::run(&arguments),
        // `cargo test --benches` and a bare `cargo bench` come here.
        _ => eprintln!(
            "speed: stream D [N COUNT] [--form F] [--columns K] | fit N D [--single yes] | forms [FIRST LAST], with --threads T and --json yes"
        ),
    }
}
