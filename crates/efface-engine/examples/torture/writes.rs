//! Every call that writes fails in turn, once because the disk is full and once for no reason: the old state survives.
//!
//! The calls are made to fail from outside, by `strace`; no code of ours knows that it is being tested.

use std::path::Path;
use std::process::{Command, Stdio};

use efface_engine::{Engine, ForgetRequest};

use crate::{Result, ids, model, sound, table, tell};

/// What SQLite and we call to change a disk.
const CALLS: [&str; 6] = ["pwrite64", "write", "fdatasync", "fsync", "ftruncate", "unlink"];

pub(crate) fn child(path: &Path) -> Result {
    let mut engine = Engine::open(path)?;
    let request = ForgetRequest { id: Some("T-1".into()), ..ForgetRequest::new(ids(&["r7".into()])) };
    let report = engine.request(&request, false)?;
    if report.outcome == "erased" { Ok(()) } else { Err("not erased".into()) }
}

pub(crate) fn parent() -> Result {
    let can = Command::new("strace").args(["-f", "-e", "trace=none", "true"]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        tell("every write failing in turn", "skipped: strace is not here, or must not be used");
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let whole = folder.path().join("whole.efface");
    drop(model(&whole, table((0..60).map(|at| format!("r{at}")), 8, 1))?);
    let before = std::fs::read(&whole)?;
    let path = folder.path().join("model.efface");
    std::fs::copy(folder.path().join("whole.efface.key"), folder.path().join("model.efface.key"))?;
    for (error, why) in [("ENOSPC", "disk full"), ("EIO", "I/O error")] {
        let (mut failed, mut kept, mut done) = (0, 0, 0);
        for call in CALLS {
            for nth in 1.. {
                std::fs::write(&path, &before)?;
                let _ = std::fs::remove_file(folder.path().join("model.efface-journal"));
                let rule = format!("inject={call}:error={error}:when={nth}");
                let output = Command::new("strace")
                    .args(["-f", "-e", &format!("trace={call}"), "-e", &rule, "-o"])
                    .arg(folder.path().join("trace"))
                    .arg(std::env::current_exe()?)
                    .args(["write-child", &path.to_string_lossy()])
                    .stdin(Stdio::null())
                    .output()?;
                let trace = std::fs::read_to_string(folder.path().join("trace"))?;
                if !trace.contains("(INJECTED)") {
                    break;
                }
                failed += 1;
                sound(&path)?;
                let rows = Engine::open(&path)?.summary()?.rows;
                match (output.status.success(), rows) {
                    // The error came after the commit, or where it does not matter.
                    (true, 59) => done += 1,
                    (false, 60) => kept += 1,
                    // Whoever is told of a failure asks again, and gets the one effect.
                    (false, 59) if child(&path).is_ok() => done += 1,
                    (success, rows) => {
                        let what = format!("{call} number {nth} failing: success {success} and {rows} rows");
                        return Err(what.into());
                    }
                }
            }
        }
        tell(
            &format!("every write failing in turn, {why}"),
            &format!("{failed} calls: {kept} times the old state, {done} times the new one, verify green"),
        );
    }
    Ok(())
}
