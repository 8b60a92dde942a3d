//! `efface log`: what was done to a model, and the proofs of it.

use std::io::Write;

use data_encoding::BASE64;
use efface_engine::{Engine, Error};
use efface_receipt::{CheckpointRequest, SettledRun, Time};
use serde_json::json;

use super::receipt::readable;
use super::witness;
use crate::cli::LogArguments;
use crate::failure::{Failure, Result};
use crate::list;
use crate::output::OutputFile;
use crate::report::{ChangeWords, table};
use crate::terminal::Terminal;

pub(crate) fn run(args: &LogArguments, terminal: &Terminal) -> Result {
    let mut out = match &args.output {
        Some(path) => OutputFile::file(path, &[&args.model], args.force, terminal)?,
        None => OutputFile::stdout(),
    };
    if let (Some(lines), Some(witnesses)) = (&args.add_cosignatures, &args.witness) {
        let quorum = witness::keys(witnesses, Some(1))?;
        let lines = list::read(lines)?.join("\n");
        terminal
            .change(&args.model)?
            .add_cosignatures(&quorum, &lines)?;
        terminal.message(
            "the head of the log has the cosignatures; receipts carry them until the next change",
        );
        return Ok(());
    }
    let engine = terminal.look(&args.model)?;
    let text = if let Some(receipt) = &args.receipt {
        let bundle = engine.bundle(receipt)?;
        if args.output.is_some() {
            bundle.to_bytes().map_err(Error::from)?
        } else {
            // What people can read; the file itself is bytes that no terminal should get.
            (readable(&bundle.signed.receipt)? + "\n").into_bytes()
        }
    } else if args.checkpoint {
        engine.checkpoint()?.into_bytes()
    } else if let Some(old) = args.for_witness {
        let request = CheckpointRequest::new(engine.consistency(old)?, engine.checkpoint()?);
        request.to_text().into_bytes()
    } else if let Some(old) = args.since {
        let proof = engine.consistency(old)?;
        serde_json::to_vec(&proof)
            .map_err(|cause| Failure::internal(format!("a proof is no JSON: {cause}")))?
    } else if args.raw {
        let mut all = Vec::new();
        engine.receipts(&mut |_, bytes| {
            all.extend_from_slice(BASE64.encode(bytes).as_bytes());
            all.push(b'\n');
            Ok(())
        })?;
        all
    } else {
        list(&engine, terminal)?.into_bytes()
    };
    out.write_all(&text)
        .map_err(|cause| Failure::file(out.name(), "written", &cause))?;
    out.finish()
}

fn list(engine: &Engine, terminal: &Terminal) -> Result<String> {
    let mut lines = Vec::new();
    let mut objects = String::new();
    let scrubbed = scrubs(engine)?;
    engine.receipts(&mut |signed, _| {
        let receipt = &signed.receipt;
        let later = scrubbed.iter().find(|(run, ..)| {
            let here = (run.first..=run.last).contains(&receipt.sequence);
            here && receipt.times.forgotten_at.is_some() && receipt.times.scrubbed_at.is_none()
        });
        let scrubbed_at = receipt.times.scrubbed_at.or(later.map(|(_, time, _)| *time));
        let kind = receipt.kind.name();
        let outcome = receipt.outcome.name();
        let rows = &receipt.rows;
        if terminal.json() {
            let line = json!({
                "sequence": receipt.sequence, "id": receipt.id, "kind": kind, "outcome": outcome,
                "received_at": receipt.times.received_at, "forgotten_at": receipt.times.forgotten_at,
                "scrubbed_at": scrubbed_at, "scrubbed_by": later.map(|(.., by)| by), "removed": rows.removed, "added": rows.added,
                "rows": receipt.training_set.after.count, "method": receipt.method, "claim": receipt.claim, "bound": receipt.bound,
            });
            objects.push_str(&format!("{line}\n"));
            return Ok(());
        }
        let [method, claim, bound] = ChangeWords::cells(ChangeWords::of_receipt(receipt));
        lines.push(vec![
            receipt.sequence.to_string(),
            receipt.times.received_at.to_string(),
            kind.to_owned(),
            outcome.to_owned(),
            rows.removed.to_string(),
            rows.added.to_string(),
            receipt.training_set.after.count.to_string(),
            method,
            claim,
            bound,
            match (later, receipt.times.forgotten_at, scrubbed_at) {
                (Some((.., by)), ..) => format!("by no. {by}"),
                (None, Some(_), Some(_)) => "at once".into(),
                (None, Some(_), None) => "waits".into(),
                (None, None, _) => String::new(),
            },
            receipt.id.clone(),
        ]);
        Ok(())
    })?;
    if terminal.json() {
        return Ok(objects);
    }
    let header = [
        "no.", "received", "kind", "outcome", "out", "in", "rows", "method", "claim", "bound",
        "scrubbed", "receipt",
    ];
    Ok(table(&header, lines, &[0, 4, 5, 6]) + "\n")
}

/// The settles that scrubbed what others had left: the receipts they are about, when, and their own
/// number.
fn scrubs(engine: &Engine) -> Result<Vec<(SettledRun, Time, u64)>> {
    let mut found = Vec::new();
    engine.receipts(&mut |signed, _| {
        let receipt = &signed.receipt;
        if let (Some(run), Some(time)) = (receipt.settles, receipt.times.scrubbed_at) {
            found.push((run, time, receipt.sequence));
        }
        Ok(())
    })?;
    Ok(found)
}
