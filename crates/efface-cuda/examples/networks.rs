//! The table of networks in docs/scale.md, "A graphics card":
//! `cargo run --release -p efface-cuda --example networks -- DATA ENCODER THREADS`.
//!
//! DATA is the folder of data sets, ENCODER the folder of a pretrained encoder, or `-` without one.
//! Training of a BiLSTM of 500 a direction on BBC news and of six layers of 64 on AG News, and
//! encoding with MiniLM, each beside the processor. What PyTorch takes is printed by
//! `xtask/bench/card.py`.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use efface::{Classes, Features, Predict, Ridge, Rows};
use efface_cuda::CudaEngine;
use efface_nn::minilm::MiniLm;
use efface_nn::{
    Embedding, EncoderSettings, EpochReport, NetworkRecipe, TrainSettings, TrainedNetwork,
    TrainingCheckpoint, TrainingFlow, TrainingProgress, text_rows,
};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [data, encoder, threads] = words.as_slice() else {
        return Err(
            "give the folder of data sets, the folder of an encoder or -, and a number of threads"
                .into(),
        );
    };
    let threads = threads.parse()?;
    let engine = CudaEngine::open()?;
    println!("{}", efface_nn::NetworkDevice::name(&engine));
    let bbc = Corpus::read(&Path::new(data).join("bbc/bbc-text.csv"))?;
    let news = Corpus::read(&Path::new(data).join("agnews/ag-news-test-7600.csv"))?;
    if encoder != "-" {
        for (name, corpus) in [("BBC news", &bbc), ("AG News", &news)] {
            encode(&engine, Path::new(encoder), name, corpus, threads)?;
        }
    }
    let embedding = vectors(Path::new(data))?;
    train(
        &engine,
        "BBC news, BiLSTM of 500",
        &bbc,
        &embedding,
        EncoderSettings::bilstm(500),
        (250, threads),
    )?;
    train(
        &engine,
        "AG News, six layers of 64",
        &news,
        &embedding,
        EncoderSettings::stacked(64, 6),
        (100, threads),
    )
}

/// Twelve epochs on the card, and the first of them on the processor.
fn train(
    engine: &CudaEngine,
    name: &str,
    corpus: &Corpus,
    embedding: &Arc<Embedding>,
    encoder: EncoderSettings,
    (max_tokens, threads): (usize, usize),
) -> Outcome<()> {
    // Every fifth text is for the test.
    let (test, learned): (Vec<usize>, Vec<usize>) =
        (0..corpus.texts.len()).partition(|at| at % 5 == 0);
    let rows = corpus.rows(&learned, embedding, max_tokens)?;
    let training = TrainSettings {
        epochs: 12,
        patience: 12,
        threads,
        ..TrainSettings::default()
    };
    let recipe = NetworkRecipe {
        embedding: embedding.clone(),
        encoder,
        training,
        head: Ridge::new(1.0).into(),
    };
    println!(
        "{name}: {} texts of at most {max_tokens} words, batches of {}",
        learned.len(),
        training.batch
    );
    let started = Instant::now();
    let mut watch = Watch {
        who: "card",
        started,
        stop: usize::MAX,
        spent: 0.0,
    };
    let trained = recipe.train_on_device(engine, None, &rows, &mut watch)?;
    if trained.device.is_none() {
        return Err(format!("the card was not used: {:?}", engine.remark()).into());
    }
    let all = started.elapsed().as_secs_f64();
    println!(
        "{name}: 12 epochs on the card {:.2} s ({:.2} ms a step), with features and head {all:.2} s, held-out accuracy {:.4}",
        watch.spent,
        1e3 * watch.spent / trained.checkpoint.step as f64,
        corpus.accuracy(&trained, &test, max_tokens)?
    );
    let mut watch = Watch {
        who: "processor",
        started: Instant::now(),
        stop: 1,
        spent: 0.0,
    };
    let processor = recipe.train(&rows, &mut watch)?;
    let (card, here) = (
        &trained.checkpoint.history[0],
        &processor.checkpoint.history[0],
    );
    println!(
        "{name}: one epoch on {threads} threads {:.2} s, so twelve {:.1} s; losses of the first epoch {:.5} and, with other \
         draws of dropout (a share a thread), {:.5} on the card",
        watch.spent,
        12.0 * watch.spent,
        here.loss,
        card.loss
    );
    Ok(())
}

/// All texts through a pretrained encoder, tokens counted in.
fn encode(
    engine: &CudaEngine,
    folder: &Path,
    name: &str,
    corpus: &Corpus,
    threads: usize,
) -> Outcome<()> {
    let texts: Vec<&str> = corpus.texts.iter().map(String::as_str).collect();
    let processor = MiniLm::open(folder)?.with_threads(threads);
    let card = MiniLm::open(folder)?.with_device(engine)?;
    if !card.is_on_device() {
        return Err(format!("the card was not used: {:?}", engine.remark()).into());
    }
    let started = Instant::now();
    let tokens: Vec<Vec<u32>> = texts.iter().map(|text| card.tokenize(text)).collect();
    let tokenized = started.elapsed().as_secs_f64();
    card.encode_tokens(&tokens[..tokens.len().min(256)], &|_| ())?;
    let started = Instant::now();
    let there = card.encode_tokens(&tokens, &|_| ())?;
    let by_card = started.elapsed().as_secs_f64();
    let started = Instant::now();
    let here = processor.encode_tokens(&tokens, &|_| ())?;
    let by_processor = started.elapsed().as_secs_f64();
    let (here, there) = (Features::from(here), Features::from(there));
    let mut apart = 0.0f64;
    for at in 0..texts.len() {
        let mut line = vec![0.0; card.width()];
        here.row(at).add_to(1.0, &mut line);
        there.row(at).add_to(-1.0, &mut line);
        apart = line
            .iter()
            .fold(apart, |most, number| most.max(number.abs()));
    }
    let count = texts.len() as f64;
    println!(
        "{name}, MiniLM: {count} texts, tokenizing {tokenized:.2} s; card {by_card:.3} s ({:.0} a second), {threads} threads {by_processor:.2} s \
         ({:.0} a second); numbers differ by {apart:.1e} at most",
        count / by_card,
        count / by_processor,
    );
    if apart > 1e-4 {
        Err("card and processor disagree".into())
    } else {
        Ok(())
    }
}

/// Tells of epochs, and stops after some.
struct Watch {
    who: &'static str,
    started: Instant,
    stop: usize,
    spent: f64,
}

impl TrainingProgress for Watch {
    fn epoch(&mut self, report: &EpochReport, _: &TrainingCheckpoint) -> TrainingFlow {
        self.spent = self.started.elapsed().as_secs_f64();
        let (loss, hits) = report.validation.unwrap_or_default();
        println!(
            "  {} epoch {:2}: loss {:.4}, validation {loss:.4} {hits:.4} ({:.2} s)",
            self.who, report.epoch, report.loss, self.spent
        );
        if report.epoch >= self.stop {
            TrainingFlow::Stop
        } else {
            TrainingFlow::Continue
        }
    }
}

/// Texts with a label each: the label is the first column, the text all others.
struct Corpus {
    texts: Vec<String>,
    labels: Vec<usize>,
    classes: Classes,
}

impl Corpus {
    fn read(path: &Path) -> Outcome<Self> {
        let mut reader = csv::Reader::from_path(path)?;
        let mut texts = Vec::new();
        let mut names = Vec::new();
        for record in reader.records() {
            let record = record?;
            names.push(record[0].to_string());
            texts.push(record.iter().skip(1).collect::<Vec<_>>().join(" "));
        }
        let mut sorted = names.clone();
        sorted.sort();
        sorted.dedup();
        let labels = names
            .iter()
            .map(|name| sorted.binary_search(name).unwrap_or(0))
            .collect();
        Ok(Self {
            texts,
            labels,
            classes: Classes::new(sorted)?,
        })
    }

    fn rows(&self, part: &[usize], embedding: &Embedding, max_tokens: usize) -> Outcome<Rows> {
        let ids = text_rows(
            embedding,
            part.iter().map(|&at| self.texts[at].as_str()),
            max_tokens,
        )?;
        let mut targets = Vec::new();
        part.iter()
            .for_each(|&at| self.classes.encode(self.labels[at], &mut targets));
        Ok(Rows::new(ids.features, targets, self.classes.outputs())?)
    }

    fn accuracy(
        &self,
        trained: &TrainedNetwork,
        part: &[usize],
        max_tokens: usize,
    ) -> Outcome<f64> {
        let texts = part.iter().map(|&at| self.texts[at].as_str());
        let ids = text_rows(trained.network.embedding(), texts, max_tokens)?;
        let scores = trained.network.predict(&ids.features)?;
        let line = |row| {
            (0..scores.ncols())
                .map(|output| scores[(row, output)])
                .collect::<Vec<f64>>()
        };
        let is_right =
            |(row, &at): (usize, &usize)| self.classes.decide(&line(row)) == self.labels[at];
        let right = part
            .iter()
            .enumerate()
            .filter(|found| is_right(*found))
            .count();
        Ok(right as f64 / part.len() as f64)
    }
}

fn vectors(data: &Path) -> Outcome<Arc<Embedding>> {
    let open = |name: &str| std::fs::File::open(data.join("embeddings").join(name));
    let words = open("glove-6b-100d-top40k.vocab.txt")?;
    let numbers = open("glove-6b-100d-top40k.f16le.bin")?;
    Ok(Arc::new(Embedding::read_half(words, numbers, 100)?))
}
