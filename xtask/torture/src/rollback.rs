//! An older copy is put in the place of a model, again and again: nothing may be changed or scored
//! with it. Then it is restored with the newest log, and nothing that was forgotten is in it.

use std::collections::BTreeSet;

use efface_engine::{
    BackupContent, Engine, ForgetOptions, ForgetRequest, KeyAccess, RestoreRequest, Silent, restore,
};
use efface_io::Source;

use crate::{Dice, Result, ids, model, sound, table, tell};

pub(crate) fn run(count: u64) -> Result {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("model.efface");
    let copy = folder.path().join("copy.efface");
    let log = folder.path().join("newest.efface");
    let mut dice = Dice(3);
    let mut present: BTreeSet<u64> = (0..2_000).collect();
    let mut next = 2_000;
    drop(model(
        &path,
        table(present.iter().map(|at| format!("r{at}")), 8, 1),
    )?);
    let mut forgotten = BTreeSet::new();
    let mut lost = 0;
    let mut again = 0;
    for round in 0..count {
        let mut engine = Engine::open(&path)?;
        engine.backup(BackupContent::Model, &copy, 0o600)?;
        let copied = present.clone();
        for _ in 0..3 + dice.below(6) {
            let chosen: Vec<u64> = present
                .iter()
                .filter(|_| dice.below(400) == 0)
                .copied()
                .take(4)
                .collect();
            if !chosen.is_empty() {
                let names: Vec<String> = chosen.iter().map(|at| format!("r{at}")).collect();
                engine.forget(&ForgetRequest::new(ids(&names)), &ForgetOptions::default())?;
            }
            for at in chosen {
                present.remove(&at);
                forgotten.insert(at);
            }
            let fresh: Vec<u64> = (next..next + dice.below(3)).collect();
            next += 3;
            if !fresh.is_empty() {
                let text = table(fresh.iter().map(|at| format!("r{at}")), 8, next);
                engine.learn(Source::from_bytes("table.csv", text, None)?, &Silent)?;
                present.extend(fresh);
            }
        }
        if round % 2 == 0 {
            drop(engine);
            std::fs::rename(&path, &log)?;
        } else {
            engine.backup(BackupContent::Log, &log, 0o600)?;
            drop(engine);
        }
        std::fs::copy(&copy, &path)?;
        let mut old = Engine::open(&path)?;
        let another = ForgetRequest::new(ids(&[format!("r{}", next)]));
        if old.forget(&another, &ForgetOptions::default()).is_ok() || old.scorer().is_ok() {
            return Err("an older copy was changed or gave scores".into());
        }
        drop(old);
        std::fs::remove_file(&path)?;
        let report = restore(&RestoreRequest {
            backup: &copy,
            log: &log,
            path: &path,
            mode: 0o600,
            access: &KeyAccess::default(),
            progress: &Silent,
        })?;
        sound(&path)?;
        lost += report.lost;
        again += report.forgotten;
        present.retain(|at| copied.contains(at));
        if report.rows != present.len() as u64 {
            return Err(format!(
                "{} rows were restored, {} were expected",
                report.rows,
                present.len()
            )
            .into());
        }
        std::fs::remove_file(&copy)?;
        std::fs::remove_file(&log)?;
    }
    tell(
        &format!("{count} older copies put in the place of a model"),
        &format!(
            "each refused; restored with {} rows forgotten in all, {again} of them again, {lost} rows lost that were learned since",
            forgotten.len()
        ),
    );
    Ok(())
}
