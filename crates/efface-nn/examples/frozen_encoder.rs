//! A frozen encoder and a head that forgets. The encoder saw none of the rows, so that forgetting
//! in the head is forgetting in the whole model.
//!
//! `cargo run --release -p efface-nn --example frozen_encoder -- all-MiniLM-L6-v2/`
//!
//! The folder holds `config.json`, `tokenizer.json` and `model.safetensors`. Without one, words are
//! hashed into 384 numbers, which is an encoder that learned nothing either.

use std::path::Path;

use efface::methods::Exact;
use efface::synthetic::{Article, News};
use efface::{Classes, Dense, Fitted, Ridge, RowId, Rows};
use efface_nn::minilm::MiniLm;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let articles = News {
        articles: 500,
        seed: 1,
    }
    .generate();
    let features = match std::env::args().nth(1) {
        Some(folder) => {
            let texts: Vec<&str> = articles
                .iter()
                .map(|article| article.text.as_str())
                .collect();
            MiniLm::open(Path::new(&folder))?.encode(&texts, &|_| {})?
        }
        None => hashed(&articles, 384)?,
    };
    let topics = Classes::new(
        ["business", "entertainment", "politics", "sport", "tech"]
            .map(String::from)
            .into(),
    )?;
    let mut targets = Vec::new();
    for article in &articles {
        let class = topics
            .names()
            .iter()
            .position(|name| name == article.topic)
            .ok_or("a known topic")?;
        topics.encode(class, &mut targets);
    }

    let mut head = Fitted::new(
        &Ridge::new(1.0),
        Rows::new(features, targets, topics.outputs())?,
    )?;
    let evidence = head.forget(&Exact, &[RowId(3), RowId(141)])?;
    println!(
        "{} articles left; {} by {}, at most {:.0e} from a head that never saw the two",
        evidence.rows,
        evidence.claim().name(),
        evidence.method,
        evidence.relative_bound
    );
    Ok(())
}

/// Counts of words by a fixed hash (FNV-1a).
fn hashed(articles: &[Article], width: usize) -> efface::Result<Dense<f32>> {
    let mut values = vec![0.0; articles.len() * width];
    for (article, row) in articles.iter().zip(values.chunks_exact_mut(width)) {
        for word in article.text.split_whitespace() {
            let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            let hash = word.bytes().fold(0xcbf2_9ce4_8422_2325, step);
            row[(hash % width as u64) as usize] += 1.0;
        }
    }
    Dense::new(values, width)
}
