//! Nothing of a forgotten row is left in any file, and no byte of a log can be changed unnoticed.

use std::path::Path;

use efface_engine::{Engine, FitRequest, ForgetOptions, ForgetRequest, RowSelection, Silent, fit};
use efface_io::Source;
use efface_receipt::{KeyRing, LogReplay, verify_bytes};

use crate::{Result, ids, model, sound, table, tell};

pub(crate) fn markers() -> Result {
    const COUNT: usize = 1000;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("model.efface");
    let mut text = String::from("id,who,words,y\n");
    for at in 0..2 * COUNT {
        let kind = if at % 2 == 0 { "marker" } else { "other" };
        let word = format!("{kind}{at:05}word common{}", at % 7);
        text.push_str(&format!(
            "{kind}{at:05}id,{kind}{at:05}who,{word},{}\n",
            at % 13
        ));
    }
    let mut request = FitRequest::new(Source::from_bytes("table.csv", text, None)?);
    request.targets = vec!["y".into()];
    (request.id, request.subject) = (Some("id".into()), Some("who".into()));
    request.text = vec!["words".into()];
    request.words = efface::features::WordSource::Learned(600);
    fit(&request, &path, false, &Silent)?;
    let there = found(folder.path(), "marker")?;
    let mut engine = Engine::open(&path)?;
    let asked: Vec<ForgetRequest> = (0..COUNT)
        .map(|at| {
            let value = format!("marker{:05}who", 2 * at);
            let who = RowSelection::Subject {
                column: "who".into(),
                value,
            };
            ForgetRequest {
                id: Some(format!("marker-request-{at}")),
                ..ForgetRequest::new(who)
            }
        })
        .collect();
    for some in asked.chunks(64) {
        for answer in engine.forget(some, &ForgetOptions::default()) {
            answer?;
        }
    }
    engine.settle()?;
    let left = found(folder.path(), "marker")?;
    if left > 0 || found(folder.path(), "other")? == 0 {
        return Err(format!("{left} markers are left").into());
    }
    sound(&path)?;
    tell(
        "unique markers forgotten",
        &format!("{COUNT}; occurrences in all files: {there} before, {left} after"),
    );
    Ok(())
}

/// How often a text occurs in the files of a folder.
fn found(folder: &Path, text: &str) -> Result<usize> {
    let mut count = 0;
    for entry in std::fs::read_dir(folder)? {
        let bytes = std::fs::read(entry?.path())?;
        count += bytes
            .windows(text.len())
            .filter(|window| *window == text.as_bytes())
            .count();
    }
    Ok(count)
}

pub(crate) fn flips() -> Result {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("model.efface");
    let mut engine = model(&path, table((0..30).map(|at| format!("r{at}")), 3, 1))?;
    for at in 0..4 {
        engine.forget(
            &ForgetRequest::new(ids(&[format!("r{at}")])),
            &ForgetOptions::default(),
        )?;
    }
    let keys = KeyRing::from(engine.public_keys()?.remove(0).key);
    let bundle = engine.bundle("2")?.to_bytes()?;
    verify_bytes(&bundle, &keys)?;
    let mut changed = bundle.clone();
    for at in 0..bundle.len() {
        for bit in [0x01, 0x20, 0x80] {
            changed[at] = bundle[at] ^ bit;
            if verify_bytes(&changed, &keys).is_ok() {
                return Err(format!("a bundle with byte {at} changed is accepted").into());
            }
        }
        changed[at] = bundle[at];
    }
    let mut leaves = Vec::new();
    engine.receipts(&mut |_, bytes| {
        leaves.push(bytes.to_vec());
        Ok(())
    })?;
    let note = engine.checkpoint()?;
    let holds = |leaves: &[Vec<u8>], note: &str| {
        let mut replay = LogReplay::new(&keys);
        leaves
            .iter()
            .try_for_each(|leaf| replay.push(leaf).map(drop))
            .is_ok()
            && replay.finish(note).is_ok()
    };
    if !holds(&leaves, &note) {
        return Err("the log itself is refused".into());
    }
    let mut flipped = 0;
    for which in 0..leaves.len() {
        for at in 0..leaves[which].len() {
            leaves[which][at] ^= 1;
            // The receipts before it are as they were, so that reading may stop at the first that
            // is not.
            if holds(&leaves, &note) {
                return Err(
                    format!("a log with byte {at} of receipt {which} changed is accepted").into(),
                );
            }
            leaves[which][at] ^= 1;
            flipped += 1;
        }
    }
    let mut swapped = leaves.clone();
    swapped.swap(1, 2);
    let fork = engine.bundle("1")?.head.checkpoint;
    engine.forget(
        &ForgetRequest::new(ids(&["r9".into()])),
        &ForgetOptions::default(),
    )?;
    let later = engine.checkpoint()?;
    for (what, list, note) in [
        ("cut short", &leaves[..leaves.len() - 1], &fork),
        ("reordered", &swapped[..], &note),
        ("under the head of a longer one", &leaves[..], &later),
    ] {
        if holds(list, note) {
            return Err(format!("a log that was {what} is accepted").into());
        }
    }
    tell(
        "bytes flipped, one at a time",
        &format!(
            "{} of a bundle (3 bits), {flipped} of a log: all refused",
            bundle.len()
        ),
    );
    tell("log cut short, reordered, forked", "refused");
    Ok(())
}
