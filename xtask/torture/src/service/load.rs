//! Erasures and predictions a second from a second process, alone and mixed, beside a handler that
//! only answers.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use efface_engine::{Engine, PolicyChange};
use efface_receipt::KeyRing;
use serde_json::{Value, json};

use super::ServerProcess;
use super::client::{HttpClient, post_request};
use crate::{Dice, Result, model, percentile, sound, table, tell};

const WIDTH: usize = 1000;

/// Connections that erase alone, that predict alone, and that do both.
const ERASING: usize = 256;
const PREDICTING: usize = 8;
const MIXED: usize = 64;

/// One of so many requests of the mixed load erases.
const ONE_ERASES_OF: u64 = 20;

/// Rows for erasing alone, which is over when they are gone, and rows for each second of the mixed
/// load.
const ROWS_ALONE: u64 = 9_000;
const ROWS_MIXED: u64 = 800;

/// The rows that may be erased: those that are left of `next..end`.
struct RowSupply {
    next: AtomicU64,
    end: u64,
}

impl RowSupply {
    fn new(rows: std::ops::Range<u64>) -> Self {
        Self {
            next: AtomicU64::new(rows.start),
            end: rows.end,
        }
    }

    fn take(&self) -> Option<u64> {
        let row = self.next.fetch_add(1, Ordering::Relaxed);
        (row < self.end).then_some(row)
    }
}

/// What is sent, by how many connections, for how long.
struct LoadPlan<'a> {
    server: &'a ServerProcess,
    /// The request for a prediction.
    question: &'a [u8],
    rows: &'a RowSupply,
    time: Duration,
    connections: usize,
    /// How many of `ONE_ERASES_OF` requests erase.
    erasing: u64,
}

/// What one kind of request found.
#[derive(Default)]
struct LoadFound {
    /// How long each request took.
    seconds: Vec<f64>,
    /// How long requests were sent, from the first to the last answer.
    lasted: f64,
    /// The answers to erasures.
    answers: Vec<Vec<u8>>,
    /// Processor time of the server and of the clients meanwhile, where the system tells: it says
    /// more than the clock where other programs run.
    processors: Option<(f64, f64)>,
}

impl LoadFound {
    fn add(&mut self, other: Self) {
        self.seconds.extend(other.seconds);
        self.lasted = self.lasted.max(other.lasted);
        self.answers.extend(other.answers);
    }
}

/// Seconds that a process has used of all processors; None where the system does not tell.
fn processor_seconds(process: u32) -> Option<f64> {
    let facts = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program, in brackets, may hold anything. Times are in hundredths of a second.
    let mut words = facts.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks = words.next()?.parse::<f64>().ok()? + words.next()?.parse::<f64>().ok()?;
    Some(ticks / 100.0)
}

pub(crate) fn load(seconds: u64) -> Result {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("people.efface");
    let rows = ROWS_ALONE + ROWS_MIXED * seconds;
    let mut engine = model(&path, table((0..rows).map(|at| format!("r{at}")), WIDTH, 3))?;
    let later = PolicyChange {
        settle_after: Some(1000),
        settle_within_seconds: Some(86_400),
        ..PolicyChange::default()
    };
    engine.set_policy(&later)?;
    drop(engine);
    let numbers: Vec<f64> = (0..WIDTH).map(|at| (at as f64).sin()).collect();
    let named: serde_json::Map<String, Value> = numbers
        .iter()
        .enumerate()
        .map(|(at, number)| (format!("x{at}"), json!(number)))
        .collect();
    let named = post_request(
        PREDICT,
        None,
        json!({ "rows": [named] }).to_string().as_bytes(),
    );
    let in_order = post_request(
        PREDICT,
        None,
        json!({ "cells": [numbers] }).to_string().as_bytes(),
    );
    let packed: Vec<u8> = numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect();
    let packed = post_request(PREDICT, None, &packed);
    let time = Duration::from_secs(seconds);

    let server = ServerProcess::start("serve-child", folder.path())?;
    let answer = HttpClient::connect(&server.address)?.send(&named)?;
    if answer.status != 200 {
        return Err(String::from_utf8_lossy(&answer.body).into());
    }
    std::fs::write(folder.path().join("answer"), &answer.body)?;
    let nothing = RowSupply::new(0..0);
    let predict = |server: &ServerProcess, question: &[u8]| {
        let connections = PREDICTING;
        run(&LoadPlan {
            server,
            question,
            rows: &nothing,
            time,
            connections,
            erasing: 0,
        })
    };
    for (what, question) in [
        (
            "predictions of one row, d = 1000, as an object of names",
            &named,
        ),
        (
            "the same without names, in the order of the columns",
            &in_order,
        ),
        ("the same as packed numbers", &packed),
    ] {
        // Beside a handler that reads the same body and answers the same bytes, both in one moment
        // of the machine.
        let bare = ServerProcess::start("bare-child", folder.path())?;
        let (_, most) = predict(&bare, question)?;
        bare.kill()?;
        let (_, ours) = predict(&server, question)?;
        let ours = report(what, ours);
        let most = report(
            "  a handler that reads the body and answers the same bytes",
            most,
        );
        tell(
            "  share of the bare handler",
            &format!("{:.2}", ours / most),
        );
    }
    let alone = RowSupply::new(0..ROWS_ALONE);
    let plan = LoadPlan {
        server: &server,
        question: &packed,
        rows: &alone,
        time,
        connections: ERASING,
        erasing: ONE_ERASES_OF,
    };
    let (alone, _) = run(&plan)?;
    let mut receipts = receipts_of(&alone)?;
    report(
        &format!("durable erasures of one row, d = 1000, alone, {ERASING} connections"),
        alone,
    );
    let mixed = RowSupply::new(ROWS_ALONE..rows);
    let (erased, predicted) = run(&LoadPlan {
        rows: &mixed,
        connections: MIXED,
        erasing: 1,
        ..plan
    })?;
    if mixed.take().is_none() {
        return Err("the rows of the mixed load ran out before its time".into());
    }
    receipts.extend(receipts_of(&erased)?);
    tell(
        "mixed load",
        &format!("{seconds} s, {MIXED} connections, one request of {ONE_ERASES_OF} erases"),
    );
    report("  erasures", erased);
    report("  packed predictions", predicted);

    let mut client = HttpClient::connect(&server.address)?;
    let keys: Value = serde_json::from_slice(&client.get("/v1/log/keys")?.body)?;
    let keys = KeyRing::parse(keys["keys"][0].as_str().unwrap_or_default())?;
    server.kill()?;
    let begun = Instant::now();
    sound(&path)?;
    verify_all(&path, &receipts, &keys)?;
    let found = format!(
        "all {}, in {:.0} s",
        receipts.len(),
        begun.elapsed().as_secs_f64()
    );
    tell("receipts that verify after the server was killed", &found);
    Ok(())
}

/// Verifies every receipt that was acknowledged, with its proofs and the key of the log, a part of
/// them on each processor.
fn verify_all(path: &Path, receipts: &[AcknowledgedReceipt], keys: &KeyRing) -> Result {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let verify = |part: &[AcknowledgedReceipt]| -> std::result::Result<(), String> {
        let engine = Engine::open_read_only(path).map_err(|error| error.to_string())?;
        for AcknowledgedReceipt { id, sequence } in part {
            let bundle = engine
                .bundle(&sequence.to_string())
                .map_err(|error| error.to_string())?;
            efface_receipt::verify(&bundle, keys).map_err(|error| error.to_string())?;
            if bundle.signed.receipt.id != *id {
                return Err(format!(
                    "receipt {sequence} is not the one that was acknowledged"
                ));
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let parts = receipts.chunks(receipts.len().div_ceil(threads).max(1));
        let verify = &verify;
        let verifying: Vec<_> = parts
            .map(|part| scope.spawn(move || verify(part)))
            .collect();
        for part in verifying {
            part.join()
                .map_err(|_| "a thread that verifies panicked")??;
        }
        Ok(())
    })
}

/// A receipt that the server has acknowledged: its id and its number in the log.
#[derive(Debug, PartialEq, Eq, Hash)]
struct AcknowledgedReceipt {
    id: String,
    sequence: u64,
}

const PREDICT: &str = "/v1/models/people/predictions";

/// The receipts that answers name: each names one of its own.
fn receipts_of(found: &LoadFound) -> Result<Vec<AcknowledgedReceipt>> {
    let mut receipts = Vec::with_capacity(found.answers.len());
    for answer in &found.answers {
        let answer: Value = serde_json::from_slice(answer)?;
        let receipt = &answer["models"][0]["receipt"];
        let acknowledged = receipt["id"].as_str().zip(receipt["sequence"].as_u64());
        let (id, sequence) = acknowledged.ok_or("an erasure was acknowledged without a receipt")?;
        receipts.push(AcknowledgedReceipt {
            id: id.to_owned(),
            sequence,
        });
    }
    let different: std::collections::HashSet<&AcknowledgedReceipt> = receipts.iter().collect();
    if different.len() < receipts.len() {
        return Err("two erasures were acknowledged with one receipt".into());
    }
    Ok(receipts)
}

/// Sends requests from several connections for a while; an answer that is no success ends the run.
/// Gives what erasures found, and what predictions did.
fn run(plan: &LoadPlan<'_>) -> Result<(LoadFound, LoadFound)> {
    let over = AtomicBool::new(false);
    let send = |number: usize| -> std::result::Result<(LoadFound, LoadFound), String> {
        let told = |error: Box<dyn std::error::Error>| error.to_string();
        let mut client = HttpClient::connect(&plan.server.address).map_err(told)?;
        let mut dice = Dice(number as u64 + 1);
        let mut erased = LoadFound::default();
        let mut predicted = LoadFound::default();
        let begun = Instant::now();
        while !over.load(Ordering::Relaxed) {
            let erases = dice.below(ONE_ERASES_OF) < plan.erasing;
            let request = match erases.then(|| plan.rows.take()) {
                Some(None) => break,
                Some(Some(row)) => {
                    let body = format!("{{\"rows\":[\"r{row}\"]}}");
                    let key = format!("k{row}");
                    post_request("/v1/models/people/erasures", Some(&key), body.as_bytes()).into()
                }
                None => std::borrow::Cow::Borrowed(plan.question),
            };
            let started = Instant::now();
            let answer = client.send(&request).map_err(told)?;
            let found = if erases { &mut erased } else { &mut predicted };
            found.seconds.push(started.elapsed().as_secs_f64());
            found.lasted = begun.elapsed().as_secs_f64();
            if answer.status != 200 {
                return Err(format!(
                    "status {}: {}",
                    answer.status,
                    String::from_utf8_lossy(&answer.body)
                ));
            }
            if erases {
                found.answers.push(answer.body);
            }
        }
        Ok((erased, predicted))
    };
    let times =
        || processor_seconds(plan.server.child.id()).zip(processor_seconds(std::process::id()));
    let before = times();
    std::thread::scope(|scope| {
        let send = &send;
        let clients: Vec<_> = (0..plan.connections)
            .map(|number| scope.spawn(move || send(number)))
            .collect();
        let end = Instant::now() + plan.time;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            if clients.iter().all(|client| client.is_finished()) {
                break;
            }
            std::thread::park_timeout(left.min(Duration::from_millis(50)));
        }
        over.store(true, Ordering::Relaxed);
        let used = times()
            .zip(before)
            .map(|(after, before)| (after.0 - before.0, after.1 - before.1));
        let mut both = (LoadFound::default(), LoadFound::default());
        for client in clients {
            let (erased, predicted) = client.join().map_err(|_| "a client panicked")??;
            both.0.add(erased);
            both.1.add(predicted);
        }
        let all = (both.0.seconds.len() + both.1.seconds.len()).max(1) as f64;
        let each = used.map(|(server, clients)| (server / all, clients / all));
        both.0.processors = each;
        both.1.processors = each;
        Ok(both)
    })
}

/// Prints what was found; gives requests a second.
fn report(what: &str, mut found: LoadFound) -> f64 {
    let rate = found.seconds.len() as f64 / found.lasted.max(f64::MIN_POSITIVE);
    let p50 = percentile(&mut found.seconds, 0.5) * 1e3;
    let p99 = percentile(&mut found.seconds, 0.99) * 1e3;
    let each = found
        .processors
        .map_or_else(String::new, |(server, clients)| {
            format!(
                "; processor time each {:.0} µs, the client's {:.0} µs",
                server * 1e6,
                clients * 1e6
            )
        });
    tell(
        what,
        &format!("{rate:.0} a second, p50 {p50:.2} ms, p99 {p99:.2} ms{each}"),
    );
    rate
}

/// A server that reads what it is sent and answers what a file holds.
pub(crate) fn bare_child(folder: &Path) -> Result {
    let answer: &'static [u8] = std::fs::read(folder.join("answer"))?.leak();
    let handler = axum::routing::post(move |_: axum::body::Bytes| async move {
        (
            [(axum::http::header::CONTENT_TYPE, "application/json")],
            answer,
        )
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        axum::serve(listener, axum::Router::new().route(PREDICT, handler)).await?;
        Ok(())
    })
}
