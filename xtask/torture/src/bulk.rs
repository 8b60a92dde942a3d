//! Many ids in one request, killed on the way: nothing was done, or all of it; the same request by
//! its name goes on from there.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use efface_engine::{Engine, ForgetOptions, ForgetRequest};

use crate::{Dice, Result, ids, model, sound, table, tell};

const ROWS: usize = 6000;
const GONE: usize = 4000;

fn request() -> ForgetRequest {
    let rows: Vec<String> = (0..GONE)
        .map(|at| format!("r{}", (at * 7) % ROWS))
        .collect();
    ForgetRequest {
        id: Some("all at once".into()),
        ..ForgetRequest::new(ids(&rows))
    }
}

/// Forgets them, until it is done or killed.
pub(crate) fn child(path: &Path) -> Result {
    Engine::open(path)?.forget(&request(), &ForgetOptions::default())?;
    Ok(())
}

pub(crate) fn parent(kills: u64) -> Result {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("model.efface");
    let whole = folder.path().join("whole");
    drop(model(
        &path,
        table((0..ROWS).map(|at| format!("r{at}")), 3, 1),
    )?);
    std::fs::copy(&path, &whole)?;
    let spawn = || {
        Command::new(std::env::current_exe()?)
            .arg("bulk-child")
            .arg(&path)
            .spawn()
    };
    let started = Instant::now();
    let mut child = spawn()?;
    child.wait()?;
    let usual = started.elapsed();
    let mut dice = Dice(kills);
    let mut undone = 0;
    for _ in 0..kills {
        std::fs::copy(&whole, &path)?;
        // The head beside the model is that of a newer file.
        let _ = std::fs::remove_file(folder.path().join("model.efface.head"));
        let mut child = spawn()?;
        let life = usual.mul_f64(dice.below(1100) as f64 / 1000.0);
        let end = Instant::now() + life;
        while Instant::now() < end && child.try_wait()?.is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = child.kill();
        child.wait()?;
        sound(&path)?;
        let mut engine = Engine::open(&path)?;
        let rows = engine.summary()?.rows;
        if rows != ROWS && rows != ROWS - GONE {
            return Err(
                format!("{rows} rows are left of {ROWS}: a request was done by half").into(),
            );
        }
        undone += u64::from(rows == ROWS);
        let report = engine.forget(&request(), &ForgetOptions::default())?;
        if report.replayed != (rows != ROWS) || engine.summary()?.rows != ROWS - GONE {
            return Err("the request did not go on from where it was".into());
        }
        sound(&path)?;
    }
    tell(
        &format!("one request of {GONE} ids, killed on the way"),
        &format!(
            "{kills}, {undone} times undone and then done, {} times done",
            kills - undone
        ),
    );
    Ok(())
}
