//! Two readers open the model again and again while another process changes it. Each must see the
//! model as it was before or after a change: a reader that mixes the two would call a sound file
//! damaged.

use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use efface_engine::{Engine, ForgetOptions, ForgetRequest, Silent};
use efface_io::Source;

use crate::{Result, ids, model, sound, table, tell};

/// Longer than any change takes: whoever is refused in spite of it was refused without need.
const PATIENCE: Duration = Duration::from_secs(120);

/// Forgets a row and learns another until it is killed.
pub(crate) fn writer(path: &Path) -> Result {
    let mut engine = Engine::open_within(path, PATIENCE)?;
    for at in 0.. {
        engine.forget(
            &ForgetRequest::new(ids(&[format!("r{at}")])),
            &ForgetOptions::default(),
        )?;
        let row = table([format!("r{}", at + 200)], 5, at);
        engine.learn(Source::from_bytes("table.csv", row, None)?, &Silent)?;
        if at % 50 == 49 {
            engine.settle()?;
        }
    }
    Ok(())
}

/// Does what commands that look at a model do, as often as asked, each time from the start.
pub(crate) fn reader(path: &Path, count: u64) -> Result {
    for turn in 0..count {
        let engine = Engine::open_read_only_within(path, PATIENCE)?;
        match turn % 100 {
            // It reads the whole log, which grows meanwhile.
            0 => {
                for check in engine.verify(None)? {
                    if !check.passed {
                        return Err(format!("{} fails: {}", check.check, check.found).into());
                    }
                }
            }
            1..30 => drop(engine.scorer()?),
            30..50 => drop(engine.bundle("0")?),
            50..70 => {
                engine.policy()?;
            }
            _ => drop(engine.summary()?),
        }
    }
    Ok(())
}

fn spawn(act: &str, path: &Path, count: u64) -> Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([act, &path.to_string_lossy(), &count.to_string()]);
    Ok(command.spawn()?)
}

pub(crate) fn parent(count: u64) -> Result {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("model.efface");
    drop(model(
        &path,
        table((0..200).map(|at| format!("r{at}")), 5, 1),
    )?);
    let mut writer = spawn("writer-child", &path, 0)?;
    let readers = [
        spawn("reader-child", &path, count / 2)?,
        spawn("reader-child", &path, count - count / 2)?,
    ];
    let mut failed = 0;
    for mut reader in readers {
        failed += u64::from(!reader.wait()?.success());
    }
    let stopped = writer.try_wait()?;
    writer.kill()?;
    writer.wait()?;
    if let Some(status) = stopped {
        return Err(format!("the writer stopped: {status}").into());
    }
    if failed > 0 {
        return Err(format!("{failed} readers saw a model that never was").into());
    }
    sound(&path)?;
    let changes = Engine::open_read_only(&path)?.summary()?.generation;
    tell(
        "two readers beside a writer",
        &format!("{count} commands, {changes} changes meanwhile: no false alarm"),
    );
    Ok(())
}
