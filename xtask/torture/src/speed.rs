//! How long a forget takes beside a bare commit of the same bytes, how many requests go through in
//! groups, and how a large model opens.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use efface_engine::{Engine, ForgetOptions, ForgetRequest, PolicyChange};

use crate::{Result, ids, model, percentile, sound, table, tell};

const WIDTH: usize = 1000;

pub(crate) fn latency(count: usize) -> Result {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("model.efface");
    let mut engine = model(
        &path,
        table((0..2 * count + 1500).map(|at| format!("r{at}")), WIDTH, 1),
    )?;
    let bare = Bare::new(&folder.path().join("bare.sqlite"), &path, false)?;
    one_by_one(&mut engine, 0..count, &bare, "scrubbed at once")?;
    sound(&path)?;
    // Forgets that leave bytes and curvature for later, up to 64 rows; every 64th forget settles.
    let settle_after = Some(64);
    let settle_within_seconds = Some(86_400);
    engine.set_policy(&PolicyChange {
        settle_after,
        settle_within_seconds,
        ..PolicyChange::default()
    })?;
    let bare = Bare::new(&folder.path().join("quick.sqlite"), &path, true)?;
    one_by_one(
        &mut engine,
        count..2 * count,
        &bare,
        "scrubbed 64 at a time",
    )?;
    sound(&path)
}

/// Forgets rows one by one, beside a bare commit after each.
fn one_by_one(engine: &mut Engine, rows: std::ops::Range<usize>, bare: &Bare, how: &str) -> Result {
    let count = rows.len();
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    for at in rows {
        let started = Instant::now();
        engine.forget(
            &ForgetRequest::new(ids(&[format!("r{at}")])),
            &ForgetOptions::default(),
        )?;
        ours.push(started.elapsed().as_secs_f64());
        theirs.push(bare.commit(at)?);
    }
    let p50 = percentile(&mut ours, 0.5);
    let p99 = percentile(&mut ours, 0.99);
    let bare50 = percentile(&mut theirs, 0.5);
    let bare99 = percentile(&mut theirs, 0.99);
    tell(
        &format!("forget of one row, d = {WIDTH}, {count} requests, {how}"),
        &format!("p50 {:.1} ms, p99 {:.1} ms", p50 * 1e3, p99 * 1e3),
    );
    tell(
        &format!(
            "bare SQLite commit of the same {} KiB, same run",
            bare.pieces.iter().sum::<usize>() / 1024
        ),
        &format!("p50 {:.1} ms, p99 {:.1} ms", bare50 * 1e3, bare99 * 1e3),
    );
    tell("ratio of the medians", &format!("{:.2}×", p50 / bare50));
    Ok(())
}

/// A database under the engine's settings, in which a commit replaces as many bytes as a change to
/// a model does: its arrays, or its parameters alone with `quick`, and a receipt.
struct Bare {
    connection: rusqlite::Connection,
    pieces: Vec<usize>,
}

impl Bare {
    fn new(path: &Path, model: &Path, quick: bool) -> Result<Self> {
        let model = rusqlite::Connection::open(model)?;
        let mut statement = model.prepare(
            "SELECT length(bytes) FROM parts WHERE name = 'theta' OR NOT ?1
             UNION ALL SELECT length(value) FROM meta UNION ALL SELECT 4096",
        )?;
        let pieces: Vec<usize> = statement
            .query_map([quick], |row| row.get(0))?
            .collect::<std::result::Result<_, _>>()?;
        let connection = rusqlite::Connection::open(path)?;
        connection.execute_batch(
            "PRAGMA journal_mode = PERSIST; PRAGMA secure_delete = ON; PRAGMA synchronous = FULL;
             PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16384; CREATE TABLE t(k INTEGER PRIMARY KEY, bytes BLOB NOT NULL)",
        )?;
        for (at, piece) in pieces.iter().enumerate() {
            connection.execute(
                "INSERT INTO t VALUES (?1, zeroblob(?2))",
                rusqlite::params![at, piece],
            )?;
        }
        Ok(Self { connection, pieces })
    }

    fn commit(&self, turn: usize) -> Result<f64> {
        let most = self.pieces.iter().max().copied().unwrap_or(0);
        let bytes: Vec<u8> = (0..most)
            .map(|at| (at ^ turn).wrapping_mul(31) as u8)
            .collect();
        let started = Instant::now();
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        for (at, piece) in self.pieces.iter().enumerate() {
            let piece = bytes.get(..*piece).unwrap_or_default();
            self.connection.execute(
                "UPDATE t SET bytes = ?2 WHERE k = ?1",
                rusqlite::params![at, piece],
            )?;
        }
        self.connection.execute_batch("COMMIT")?;
        Ok(started.elapsed().as_secs_f64())
    }
}

pub(crate) fn groups() -> Result {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("model.efface");
    let names = |from: usize, count: usize| (from..from + count).map(|at| format!("r{at}"));
    let mut engine = model(&path, table(names(0, 11_000), WIDTH, 1))?;
    let mut from = 0;
    for (size, waiting) in [(1, 1), (16, 1), (64, 1), (256, 1), (1024, 1), (143, 1000)] {
        let rounds = match size {
            1 => 32,
            // Seven of them fill what may wait: the last one scrubs.
            143 => 14,
            _ => 3,
        };
        engine.set_policy(&PolicyChange {
            settle_after: Some(waiting),
            settle_within_seconds: Some(86_400),
            ..PolicyChange::default()
        })?;
        let mut best = f64::INFINITY;
        let mut total = 0.0;
        for _ in 0..rounds {
            let asked: Vec<ForgetRequest> = names(from, size)
                .map(|row| ForgetRequest {
                    id: Some(format!("T-{row}")),
                    ..ForgetRequest::new(ids(&[row]))
                })
                .collect();
            from += size;
            let started = Instant::now();
            for answer in engine.forget(&asked, &ForgetOptions::default()) {
                answer?;
            }
            let seconds = started.elapsed().as_secs_f64();
            (best, total) = (best.min(seconds), total + seconds);
        }
        let mean = total / f64::from(rounds);
        tell(
            &format!("groups of {size}, d = {WIDTH}, a receipt each, scrubbed {waiting} at a time"),
            &format!(
                "{:.0} requests/s (best {:.0})",
                size as f64 / mean,
                size as f64 / best
            ),
        );
    }
    sound(&path)
}

pub(crate) fn open(rows: usize, features: usize) -> Result {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("model.efface");
    let started = Instant::now();
    drop(model(
        &path,
        table((0..rows).map(|at| format!("r{at}")), features, 1),
    )?);
    let size = std::fs::metadata(&path)?.len() as f64 / f64::from(1 << 30);
    tell(
        &format!("model of {rows} rows × {features} features made"),
        &format!("{:.0} s, {size:.2} GiB", started.elapsed().as_secs_f64()),
    );
    // In a process of its own, so that its memory is its own.
    let output = Command::new(std::env::current_exe()?)
        .args(["open-child", &path.to_string_lossy()])
        .output()?;
    print!("{}", String::from_utf8_lossy(&output.stdout));
    if output.status.success() {
        Ok(())
    } else {
        Err("the model cannot be opened".into())
    }
}

pub(crate) fn open_child(path: &Path) -> Result {
    let started = Instant::now();
    let mut engine = Engine::open(path)?;
    tell(
        "opened",
        &format!(
            "{:.1} ms, {}",
            started.elapsed().as_secs_f64() * 1e3,
            memory()
        ),
    );
    for row in ["r0", "r1"] {
        let started = Instant::now();
        engine.forget(
            &ForgetRequest::new(ids(&[row.into()])),
            &ForgetOptions::default(),
        )?;
        tell(
            "one row forgotten",
            &format!(
                "{:.0} ms, {}",
                started.elapsed().as_secs_f64() * 1e3,
                memory()
            ),
        );
    }
    Ok(())
}

/// The most memory that this process ever held.
fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: f64 = line
        .and_then(|rest| rest.trim().split(' ').next()?.parse().ok())
        .unwrap_or(0.0);
    format!("{:.0} MiB at most", kib / 1024.0)
}
