//! Measurements of the networks: the Rust half of `cargo xtask bench nn`, which lays them out
//! beside PyTorch and sentence-transformers.
//!
//! ```text
//! cargo bench -p efface-nn --bench nn -- step SHAPE THREADS        one training step
//! cargo bench -p efface-nn --bench nn -- accuracy DATA FIRST SEEDS THREADS   BBC news and AG News, a network for each seed
//! cargo bench -p efface-nn --bench nn -- heads DATA HIDDEN THREADS EPOCHS  forgetting from the head, and the injection test on it
//! cargo bench -p efface-nn --bench nn -- gap DATA NETWORKS THREADS  what forgetting in the head alone leaves in the encoder
//! cargo bench -p efface-nn --bench nn -- methods DATA HIDDEN EPOCHS FORGOTTEN SEEDS THREADS  whole networks that forget, beside retraining
//! cargo bench -p efface-nn --bench nn -- minilm DATA ENCODER       the frozen encoder: speed and accuracy
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a measurement that cannot go on should stop and say where"
)]

mod accuracy;
mod corpus;
mod gap;
mod heads;
mod methods;
mod minilm;
mod step;
mod usage;

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let text = |at: usize| {
        arguments
            .get(at)
            .map(String::as_str)
            .unwrap_or_else(|| panic!("argument {at}"))
    };
    let number = |at: usize| text(at).parse::<usize>().unwrap();
    match text(0) {
        "step" => step::run(text(1), number(2)),
        "accuracy" => accuracy::run(text(1), number(2) as u64, number(3) as u64, number(4)),
        "heads" => heads::run(text(1), number(2), number(3), number(4)),
        "gap" => gap::run(text(1), number(2), number(3)),
        "methods" => {
            let sizes = methods::Sizes {
                hidden: number(2),
                epochs: number(3),
                forgotten: number(4),
                seeds: number(5) as u64,
                threads: number(6),
            };
            methods::run(text(1), &sizes);
        }
        "minilm" => minilm::run(text(1), text(2)),
        other => panic!("{other} is not step, accuracy, heads, gap, methods or minilm"),
    }
}
