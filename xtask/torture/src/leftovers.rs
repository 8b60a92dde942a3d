//! Commands are killed while they write drafts: of a model, of a key file, of an export. Whatever
//! they leave, the next command in the folder removes, and the model is whole.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use efface_engine::files::{DraftFile, PRIVATE_MODE};
use efface_engine::{Engine, Error};

use crate::{Dice, Result, model, sound, table, tell};

const ACTS: [&str; 3] = ["fit", "rotate", "export"];

fn rows(count: usize) -> String {
    table((0..count).map(|at| format!("r{at}")), 8, 1)
}

/// Does one thing until it is killed.
pub(crate) fn child(path: &Path, act: &str) -> Result {
    loop {
        match act {
            "fit" => drop(model(path, rows(4_000))?),
            "rotate" => {
                match Engine::open(path)?.rotate_key(&efface_engine::KeyRotation::default()) {
                    Ok(_) => {}
                    // A log has so many keys and no more: a new log.
                    Err(Error::Request { .. }) => drop(model(path, rows(60))?),
                    Err(error) => return Err(error.into()),
                }
            }
            "export" => {
                let parameters = Engine::open(path)?.export("json", None)?.parameters;
                let mut draft = DraftFile::create(&path.with_extension("json"))?;
                for _ in 0..1_000 {
                    writeln!(draft, "{parameters:?}")?;
                }
                draft.publish(true, PRIVATE_MODE)?;
            }
            other => return Err(format!("there is no act {other}").into()),
        }
    }
}

fn drafts(folder: &Path) -> Result<usize> {
    let names = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name()));
    let names = names.collect::<std::io::Result<Vec<_>>>()?;
    Ok(names
        .iter()
        .filter(|name| name.to_string_lossy().contains(".efface-tmp"))
        .count())
}

pub(crate) fn parent(count: u64) -> Result {
    let mut dice = Dice(5);
    for act in ACTS {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("model.efface");
        drop(model(&path, rows(60))?);
        let mut left = 0;
        for _ in 0..count {
            let mut child = Command::new(std::env::current_exe()?)
                .args(["leftover-child", &path.to_string_lossy(), act])
                .stderr(Stdio::null())
                .spawn()?;
            std::thread::sleep(Duration::from_millis(2 + dice.below(120)));
            child.kill()?;
            child.wait()?;
            left += u64::from(drafts(folder.path())? > 0);
            sound(&path)?;
            Engine::open(&path)?
                .rotate_key(&efface_engine::KeyRotation::default())
                .map(drop)
                .or_else(|error| match error {
                    Error::Request { .. } => Ok(()),
                    error => Err(error),
                })?;
            let still = drafts(folder.path())?;
            if still > 0 {
                return Err(format!("{act}: {still} drafts after the next command").into());
            }
        }
        tell(
            &format!("{act}: killed while it writes"),
            &format!(
                "{count} kills, {left} left a draft, none after the next command, verify green"
            ),
        );
    }
    Ok(())
}
