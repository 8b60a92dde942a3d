//! Every call that writes fails in turn, once because the disk is full and once for no reason: the
//! old state survives, or the new one is there as a whole.
//!
//! The calls are made to fail from outside, by `strace`; no code of ours knows that it is being
//! tested.

use std::path::Path;
use std::process::{Command, Stdio};

use efface_engine::{Engine, ForgetOptions, ForgetRequest, PolicyChange, Silent};
use efface_io::Source;

use crate::{Result, ids, model, sound, table, tell};

/// What SQLite and we call to change a disk.
const CALLS: [&str; 9] = [
    "pwrite64",
    "write",
    "fdatasync",
    "fsync",
    "ftruncate",
    "unlink",
    "rename",
    "linkat",
    "fchmod",
];

/// What is done while they fail. `quick` is a forget that leaves scrubbing for later, `scrub` the
/// settle after it.
pub(crate) const ACTS: [&str; 9] = [
    "forget", "quick", "scrub", "learn", "amend", "settle", "export", "policy", "fit",
];

const WIDTH: usize = 8;

fn rows(names: std::ops::Range<usize>, seed: u64) -> Result<Source> {
    Ok(Source::from_bytes(
        "rows.csv",
        table(names.map(|at| format!("r{at}")), WIDTH, seed),
        None,
    )?)
}

pub(crate) fn child(path: &Path, act: &str) -> Result {
    if act == "fit" {
        return model(path, table((0..60).map(|at| format!("r{at}")), WIDTH, 1)).map(drop);
    }
    let mut engine = Engine::open(path)?;
    match act {
        "forget" | "quick" => {
            let named = ForgetRequest {
                id: Some("T-1".into()),
                ..ForgetRequest::new(ids(&["r7".into()]))
            };
            let report = engine.forget(&named, &ForgetOptions::default())?;
            if report.outcome.name() != "erased" || report.scrubbed != (act == "forget") {
                return Err(
                    format!("{}, scrubbed {}", report.outcome.name(), report.scrubbed).into(),
                );
            }
        }
        "learn" => drop(engine.learn(&rows(60..64, 2)?, &Silent)?),
        "amend" => drop(engine.amend(&rows(3..6, 3)?, &Silent)?),
        "settle" | "scrub" => drop(engine.settle()?),
        "export" => drop(engine.export("json", None)?),
        "policy" => {
            engine.set_policy(&PolicyChange {
                minimum_batch: Some(12),
                ..PolicyChange::default()
            })?;
        }

        other => return Err(format!("there is no act {other}").into()),
    }
    Ok(())
}

/// What a state is told by: rows, receipts, rows not yet scrubbed, exports.
type State = (usize, u64, usize, (u64, u64));

fn probe(path: &Path) -> Result<Option<State>> {
    if !path.exists() {
        return Ok(None);
    }
    let summary = Engine::open_read_only(path)?.summary()?;
    Ok(Some((
        summary.rows,
        summary.receipts,
        summary.unscrubbed,
        summary.exports,
    )))
}

/// The model that an act starts from; none for a fit.
fn start(act: &str, path: &Path) -> Result {
    if act == "fit" {
        return Ok(());
    }
    let mut engine = model(path, table((0..60).map(|at| format!("r{at}")), WIDTH, 1))?;
    if matches!(act, "quick" | "scrub") {
        let settle_after = Some(9);
        let settle_within_seconds = Some(86_400);
        engine.set_policy(&PolicyChange {
            settle_after,
            settle_within_seconds,
            ..PolicyChange::default()
        })?;
    }
    if act == "scrub" || act == "settle" {
        engine.forget(
            &ForgetRequest::new(ids(&["r1".into()])),
            &ForgetOptions::default(),
        )?;
    }
    Ok(())
}

pub(crate) fn parent(acts: &[&str]) -> Result {
    let can = Command::new("strace")
        .args(["-f", "-e", "trace=none", "true"])
        .output();
    if !can.is_ok_and(|output| output.status.success()) {
        tell(
            "every write failing in turn",
            "skipped: strace is not here, or must not be used",
        );
        return Ok(());
    }
    for act in acts {
        fail_all(act)?;
    }
    Ok(())
}

fn fail_all(act: &str) -> Result {
    let folder = tempfile::tempdir()?;
    let whole = folder.path().join("whole.efface");
    let path = folder.path().join("model.efface");
    start(act, &whole)?;
    let whole_key = folder.path().join("whole.efface.key");
    let key = folder.path().join("model.efface.key");
    let before = if act == "fit" {
        None
    } else {
        Some((std::fs::read(&whole)?, std::fs::read(&whole_key)?))
    };
    let reset = || -> Result {
        for name in [
            "model.efface",
            "model.efface.key",
            "model.efface.head",
            "model.efface-journal",
        ] {
            let _ = std::fs::remove_file(folder.path().join(name));
        }
        if let Some((model, _)) = &before {
            std::fs::write(&path, model)?;
            std::fs::copy(&whole_key, &key)?;
        }
        Ok(())
    };
    reset()?;
    let old = probe(&path)?;
    child(&path, act)?;
    let new = probe(&path)?;
    for (error, why) in [("ENOSPC", "disk full"), ("EIO", "I/O error")] {
        let mut failed = 0;
        let mut kept = 0;
        let mut done = 0;
        for call in CALLS {
            for nth in 1.. {
                reset()?;
                let rule = format!("inject={call}:error={error}:when={nth}");
                let output = Command::new("strace")
                    .args(["-f", "-e", &format!("trace={call}"), "-e", &rule, "-o"])
                    .arg(folder.path().join("trace"))
                    .arg(std::env::current_exe()?)
                    .args(["write-child", &path.to_string_lossy(), act])
                    .stdin(Stdio::null())
                    .output()?;
                let trace = std::fs::read_to_string(folder.path().join("trace"))?;
                if !trace.contains("(INJECTED)") {
                    break;
                }
                failed += 1;
                if path.exists() {
                    sound(&path)?;
                }
                let found = probe(&path)?;
                match output.status.success() {
                    // The error came after the commit, or where it does not matter.
                    true if found == new => done += 1,
                    false if found == old => kept += 1,
                    // A client that is told of a failure asks again; a request with a name has one
                    // effect.
                    false if found == new && (act != "forget" || child(&path, act).is_ok()) => {
                        done += 1
                    }
                    success => {
                        let what = format!(
                            "{act}, {call} number {nth} failing: success {success}, {found:?}"
                        );
                        return Err(what.into());
                    }
                }
            }
        }
        tell(
            &format!("{act}: every write failing in turn, {why}"),
            &format!(
                "{failed} calls: {kept} times the old state, {done} times the new one, verify green"
            ),
        );
    }
    Ok(())
}
