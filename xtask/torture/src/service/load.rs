//! Erasures and predictions a second from a second process, alone and mixed, beside a handler that only answers.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use efface_engine::{Engine, PolicyChange};
use serde_json::{Value, json};

use super::ServerProcess;
use super::client::HttpClient;
use crate::{Result, model, percentile, sound, table, tell};

const WIDTH: usize = 1000;

/// Connections that erase, and that predict.
const ERASING: usize = 256;
const PREDICTING: usize = 8;

/// The rows that may be erased: those that are left of `next..end`.
struct RowSupply {
    next: AtomicU64,
    end: u64,
}

impl RowSupply {
    fn take(&self) -> Option<u64> {
        let row = self.next.fetch_add(1, Ordering::Relaxed);
        (row < self.end).then_some(row)
    }
}

/// What one kind of request found.
#[derive(Default)]
struct LoadFound {
    /// How long each request took.
    seconds: Vec<f64>,
    /// How long requests were sent, from the first to the last answer.
    lasted: f64,
    receipts: Vec<String>,
}

pub(crate) fn load(seconds: u64) -> Result {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("people.efface");
    // Erasing alone is over when these rows are gone, however long it was to take: a model of more rows takes minutes to fit.
    let alone_rows = 9_000;
    let rows = alone_rows + 100 * seconds.max(30);
    let mut engine = model(&path, table((0..rows).map(|at| format!("r{at}")), WIDTH, 3))?;
    let later = PolicyChange {
        settle_after: Some(1000),
        settle_within_seconds: Some(86_400),
        ..PolicyChange::default()
    };
    engine.set_policy(&later)?;
    drop(engine);
    let next = RowSupply { next: AtomicU64::new(0), end: alone_rows };
    let row: serde_json::Map<String, Value> =
        (0..WIDTH).map(|at| (format!("x{at}"), json!((at as f64).sin()))).collect();
    let cells: Vec<&Value> = (0..WIDTH).map(|at| &row[&format!("x{at}")]).collect();
    let in_order = json!({ "cells": [cells] }).to_string().into_bytes();
    let packed: Vec<u8> = (0..WIDTH).flat_map(|at| (at as f64).sin().to_le_bytes()).collect();
    let question = json!({ "rows": [row] }).to_string().into_bytes();
    let time = Duration::from_secs(seconds);

    let server = ServerProcess::start("serve-child", folder.path())?;
    let answer = HttpClient::connect(&server.address)?.post(PREDICT, None, &question)?;
    if answer.status != 200 {
        return Err(String::from_utf8_lossy(&answer.body).into());
    }
    std::fs::write(folder.path().join("answer"), &answer.body)?;
    let bare = ServerProcess::start("bare-child", folder.path())?;
    let alone = run(&bare.address, &question, &next, time, 0, PREDICTING)?;
    let most = report("a handler that reads the body and answers the same bytes", alone.1);
    bare.kill()?;
    let alone = run(&server.address, &question, &next, time, 0, PREDICTING)?;
    let ours = report("predictions of one row, d = 1000, alone", alone.1);
    tell("share of the bare handler", &format!("{:.2}", ours / most));
    let alone = run(&server.address, &in_order, &next, time, 0, PREDICTING)?;
    let ours = report("the same without names, in the order of the columns", alone.1);
    tell("share of the bare handler", &format!("{:.2}", ours / most));
    let alone = run(&server.address, &packed, &next, time, 0, PREDICTING)?;
    let ours = report("the same as packed numbers", alone.1);
    tell("share of the bare handler", &format!("{:.2}", ours / most));
    let alone = run(&server.address, &question, &next, time, ERASING, 0)?;
    let mut receipts = alone.0.receipts.clone();
    report("durable erasures of one row, d = 1000, alone", alone.0);
    let next = RowSupply { next: AtomicU64::new(alone_rows), end: rows };
    let mixed = run(&server.address, &packed, &next, time, ERASING / 16, PREDICTING)?;
    receipts.extend(mixed.0.receipts.clone());
    report("erasures beside packed predictions", mixed.0);
    report("packed predictions beside erasures", mixed.1);

    let mut client = HttpClient::connect(&server.address)?;
    let keys: Value = serde_json::from_slice(&client.get("/v1/log/keys")?.body)?;
    let keys = efface_receipt::KeyRing::parse(keys["keys"][0].as_str().unwrap_or_default())?;
    server.kill()?;
    sound(&path)?;
    let engine = Engine::open_read_only(&path)?;
    let every = (receipts.len() / 500).max(1);
    let mut verified = 0;
    for receipt in receipts.iter().step_by(every) {
        efface_receipt::verify(&engine.bundle(receipt)?, &keys)?;
        verified += 1;
    }
    tell(
        "receipts that verify after the server was killed",
        &format!("{verified} of {verified} looked at, {} in all", receipts.len()),
    );
    Ok(())
}

const PREDICT: &str = "/v1/models/people/predictions";

/// Sends requests from several connections for a while; an answer that is no success ends the run.
fn run(
    address: &str,
    question: &[u8],
    next: &RowSupply,
    time: Duration,
    erasing: usize,
    predicting: usize,
) -> Result<(LoadFound, LoadFound)> {
    let over = AtomicBool::new(false);
    let send = |erases: bool| -> std::result::Result<LoadFound, String> {
        let told = |error: Box<dyn std::error::Error>| error.to_string();
        let mut client = HttpClient::connect(address).map_err(told)?;
        let mut found = LoadFound::default();
        let begun = Instant::now();
        while !over.load(Ordering::Relaxed) {
            let started = Instant::now();
            let answer = if erases {
                let Some(row) = next.take() else { break };
                let body = json!({"rows": [format!("r{row}")]}).to_string();
                client.post("/v1/models/people/erasures", Some(&format!("k{row}")), body.as_bytes())
            } else {
                client.post(PREDICT, None, question)
            };
            let answer = answer.map_err(told)?;
            if answer.status != 200 {
                return Err(format!("status {}: {}", answer.status, String::from_utf8_lossy(&answer.body)));
            }
            found.seconds.push(started.elapsed().as_secs_f64());
            if erases {
                let answer: Value =
                    serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
                found.receipts.extend(answer["models"][0]["receipt"]["id"].as_str().map(str::to_owned));
            }
            found.lasted = begun.elapsed().as_secs_f64();
        }
        Ok(found)
    };
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..erasing + predicting)
            .map(|at| (at < erasing, scope.spawn(move || send(at < erasing))))
            .collect();
        let end = Instant::now() + time;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            std::thread::park_timeout(left);
        }
        over.store(true, Ordering::Relaxed);
        let mut both = (LoadFound::default(), LoadFound::default());
        for (erases, client) in clients {
            let found = client.join().map_err(|_| "a client panicked")??;
            let sum = if erases { &mut both.0 } else { &mut both.1 };
            sum.seconds.extend(found.seconds);
            sum.lasted = sum.lasted.max(found.lasted);
            sum.receipts.extend(found.receipts);
        }
        Ok(both)
    })
}

/// Prints what was found; gives requests a second.
fn report(what: &str, mut found: LoadFound) -> f64 {
    let rate = found.seconds.len() as f64 / found.lasted.max(f64::MIN_POSITIVE);
    let p50 = percentile(&mut found.seconds, 0.5) * 1e3;
    let p99 = percentile(&mut found.seconds, 0.99) * 1e3;
    tell(what, &format!("{rate:.0} a second, p50 {p50:.2} ms, p99 {p99:.2} ms"));
    rate
}

/// A server that reads what it is sent and answers what a file holds.
pub(crate) fn bare_child(folder: &Path) -> Result {
    let answer: &'static [u8] = std::fs::read(folder.join("answer"))?.leak();
    let handler = axum::routing::post(move |_: axum::body::Bytes| async move {
        ([(axum::http::header::CONTENT_TYPE, "application/json")], answer)
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        axum::serve(listener, axum::Router::new().route(PREDICT, handler)).await?;
        Ok(())
    })
}
