//! What a user of `Fitted` pays: the fit, one request of a stream, and every form in which curvature can be kept. One JSON
//! line a measurement; `cargo xtask bench stream`, `fit` and `forms` lay them out beside numpy.
//!
//! `speed stream D [N COUNT] [--form F] [--columns independent|correlated]`, `speed fit N D [--single]`, `speed forms`,
//! each with `--threads T`. It needs no other file: copy the binary to the machine that is to be measured.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a benchmark that cannot go on should stop and say where"
)]

mod generated;
mod machine;
mod stream;

use serde_json::json;

/// Numbers by place, and flags by name.
struct BenchArguments {
    words: Vec<String>,
}

impl BenchArguments {
    fn number(&self, at: usize, default: usize) -> usize {
        let plain = self.words.iter().position(|word| word.starts_with("--")).unwrap_or(self.words.len());
        self.words[..plain].get(at).and_then(|word| word.parse().ok()).unwrap_or(default)
    }

    fn flag(&self, name: &str) -> Option<&str> {
        let at = self.words.iter().position(|word| word == name)?;
        self.words.get(at + 1).map(String::as_str)
    }

    fn threads(&self) -> usize {
        self.flag("--threads").and_then(|word| word.parse().ok()).unwrap_or(1)
    }
}

fn main() {
    let words = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let arguments = BenchArguments { words };
    let what = arguments.words.first().cloned().unwrap_or_default();
    if ["stream"].contains(&what.as_str()) {
        println!(
            "{}",
            json!({"what": "machine", "threads": arguments.threads(), "about": machine::describe(),
                              "spread": machine::spread()})
        );
    }
    match what.as_str() {
        "stream" => stream::run(&arguments),
        // `cargo test --benches` and a bare `cargo bench` come here.
        _ => eprintln!("speed: stream D [N COUNT] [--form F] [--columns K] [--threads T]"),
    }
}
