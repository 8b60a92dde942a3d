//! Killed at any moment: what was acknowledged is there, nothing is there by half.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use efface_engine::{Engine, Error, ForgetOptions, ForgetRequest, PolicyChange, Silent};
use efface_io::Source;

use crate::{Dice, Result, ids, model, sound, table, tell};

const WIDTH: usize = 12;
const ROWS: u64 = 300;

/// The row that a request of this round is about: one of the first, or one that an earlier round
/// may have learned.
fn target(dice: &mut Dice, round: u64) -> String {
    match dice.below(2) {
        0 => format!("r{}", dice.below(ROWS)),
        _ => format!("n{}-{}", dice.below(round + 1), dice.below(20)),
    }
}

fn forget(name: &str, row: &str) -> ForgetRequest {
    ForgetRequest {
        id: Some(name.into()),
        allow_missing: true,
        ..ForgetRequest::new(ids(&[row.into()]))
    }
}

/// Says what was acknowledged. When nobody listens any more, there is nobody to be killed by
/// either.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

/// Three threads change one file until they are killed, and say what was acknowledged.
pub(crate) fn child(path: &Path, round: u64) -> Result {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let Ok(mut engine) = Engine::open(path) else {
                return;
            };
            let mut dice = Dice(round * 2 + 1);
            for at in 0u64.. {
                let name = format!("q{round}-{at}");
                let row = target(&mut dice, round);
                if let Ok(report) = engine.forget(&forget(&name, &row), &ForgetOptions::default()) {
                    let id = report.receipt.map(|receipt| receipt.id).unwrap_or_default();
                    say(&format!("F {name} {row} {id}"));
                }
            }
        });
        scope.spawn(|| {
            let Ok(mut engine) = Engine::open(path) else {
                return;
            };
            for at in 0u64.. {
                let name = format!("n{round}-{at}");
                let text = table([name.clone()], WIDTH, round * 1000 + at);
                let Ok(source) = Source::from_bytes("new.csv", text, None) else {
                    return;
                };
                if engine.learn(&source, &Silent).is_ok() {
                    say(&format!("L {name}"));
                }
            }
        });
        scope.spawn(|| {
            let Ok(mut engine) = Engine::open(path) else {
                return;
            };
            // Every other round leaves settling to what the policy says, so that rows are also
            // scrubbed by a forget that is one too many, by a learn and by the next process that
            // opens the file.
            for at in 0u64.. {
                let done = match (round + at) % 2 {
                    0 => engine.settle().is_ok(),
                    _ => matches!(engine.settle_if_due(), Ok(Some(_))),
                };
                if done {
                    say("S");
                }
            }
        });
    });
    Ok(())
}

/// A model that lets up to four forgotten rows wait to be scrubbed.
fn deferring(path: &Path, seed: u64) -> Result {
    let mut engine = model(
        path,
        table((0..ROWS).map(|at| format!("r{at}")), WIDTH, seed),
    )?;
    let settle_after = Some(5);
    let settle_within_seconds = Some(3600);
    engine.set_policy(&PolicyChange {
        settle_after,
        settle_within_seconds,
        ..PolicyChange::default()
    })?;
    Ok(())
}

pub(crate) fn parent(kills: u64) -> Result {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("model.efface");
    deferring(&path, 1)?;
    let started = Instant::now();
    let mut dice = Dice(kills);
    let mut forgets = 0u64;
    let mut learns = 0u64;
    let mut settles = 0u64;
    let mut torn = 0u64;
    let mut waited = 0u64;
    for round in 0..kills {
        // The log grows with every round and is read as a whole after each: start over before that
        // dominates.
        if round % 100 == 99 {
            deferring(&path, round)?;
        }
        let acknowledged = one(
            &path,
            round,
            Duration::from_micros(4_000 + dice.below(90_000)),
        )?;
        // The journal begins with zeros once its change is over.
        let journal = std::fs::read(folder.path().join("model.efface-journal")).unwrap_or_default();
        torn += u64::from(journal.first().is_some_and(|byte| *byte != 0));
        waited += u64::from(Engine::open_read_only(&path)?.summary()?.unscrubbed > 0);
        check(&path, &acknowledged)?;
        for line in &acknowledged {
            match line.as_bytes().first() {
                Some(b'F') => forgets += 1,
                Some(b'L') => learns += 1,
                _ => settles += 1,
            }
        }
    }
    tell(
        "kill -9 at random moments",
        &format!(
            "{kills}, {torn} in the middle of a commit, {waited} while rows waited to be scrubbed"
        ),
    );
    tell(
        "acknowledged, all there afterwards, verify green",
        &format!("{forgets} forgets, {learns} learns, {settles} settles"),
    );
    tell("time", &format!("{:.0} s", started.elapsed().as_secs_f64()));
    Ok(())
}

/// Runs a child, kills it after a while, and gives the whole lines that it said.
fn one(path: &Path, round: u64, life: Duration) -> Result<Vec<String>> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["kill-child", &path.to_string_lossy(), &round.to_string()])
        .stdout(Stdio::piped())
        .spawn()?;
    let out = child.stdout.take().ok_or("no output")?;
    let (sender, receiver) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut reader = BufReader::new(out);
        let mut line = String::new();
        // A line that was cut off is no acknowledgement.
        while reader.read_line(&mut line).is_ok_and(|length| length > 0) && line.ends_with('\n') {
            let _ = sender.send(std::mem::take(&mut line).trim_end().to_owned());
        }
    });
    let end = Instant::now() + life;
    let mut lines = Vec::new();
    while let Ok(line) = receiver.recv_timeout(end.saturating_duration_since(Instant::now())) {
        lines.push(line);
    }
    child.kill()?;
    child.wait()?;
    let _ = reader.join();
    lines.extend(receiver.try_iter());
    Ok(lines)
}

fn check(path: &Path, acknowledged: &[String]) -> Result {
    sound(path)?;
    let mut engine = Engine::open(path)?;
    let mut learned: HashMap<&str, bool> = HashMap::new();
    for line in acknowledged {
        match *line.split(' ').collect::<Vec<_>>().as_slice() {
            ["F", name, row, receipt] => {
                let report = engine.forget(&forget(name, row), &ForgetOptions::default())?;
                let same = report
                    .receipt
                    .as_ref()
                    .is_some_and(|logged| logged.id == receipt);
                if !report.replayed || !same {
                    return Err(format!("the request {name} was acknowledged and is lost").into());
                }
            }
            ["L", name] => drop(learned.insert(name, true)),
            _ => {}
        }
    }
    if !learned.is_empty() {
        let names: Vec<String> = learned.keys().map(|name| (*name).to_owned()).collect();
        for name in names {
            let source = Source::from_bytes("again.csv", table([name.clone()], WIDTH, 0), None)?;
            match engine.learn(&source, &Silent) {
                Err(Error::AlreadyThere { .. } | Error::ComesBack { .. }) => {}
                _ => return Err(format!("the row {name} was acknowledged and is lost").into()),
            }
        }
    }
    Ok(())
}
