//! `efface verify`: a receipt or an evidence pack against a public key, without a model; or a model
//! against its own log.

use std::path::Path;

use efface_engine::{Engine, Error};
use efface_evidence::{PackFiles, is_zip};
use efface_receipt::{
    KeyRing, Receipt, ReceiptBundle, Time, VerifiedReceipt, WitnessQuorum, WitnessedHead,
    verify_bytes,
};
use serde_json::json;

use super::receipt::{read, told as told_stamp};
use super::witness;
use crate::cli::VerifyArguments;
use crate::failure::{Failure, Result};
use crate::report::{ChangeWords, count, once_each, pairs, table};
use crate::terminal::Terminal;

/// How SQLite files, and so models, begin.
const MODEL: &[u8] = b"SQLite format 3\0";

pub(crate) fn run(args: &VerifyArguments, terminal: &Terminal) -> Result {
    let keys = args.key.as_deref().map(public_keys).transpose()?;
    let witnesses = &args.quorum;
    let quorum = witnesses
        .witness
        .as_deref()
        .map(|file| witness::keys(file, witnesses.quorum))
        .transpose()?;
    let bytes = read(&args.file)?;
    if bytes.starts_with(MODEL) {
        let since = args.since.as_deref().map(read).transpose()?;
        let since = since.as_deref().map(String::from_utf8_lossy);
        if let Some(quorum) = quorum {
            let note = terminal.look(&args.file)?.checkpoint()?;
            tell_witnesses(&quorum.verify(&note).map_err(Error::from)?, terminal);
        }
        return model(
            &args.file,
            keys.as_ref(),
            (args.rows, since.as_deref()),
            terminal,
        );
    }
    let Some(keys) = keys else {
        let failure = Failure::usage("a receipt is checked against a public key");
        return Err(failure.hint("name a file of keys with --key; `efface keys MODEL` prints them"));
    };
    if is_zip(&bytes) {
        return pack(&args.file, &keys, quorum.as_ref(), terminal);
    }
    let verified = verify_bytes(&bytes, &keys).map_err(Error::from)?;
    let mut witnessed = Vec::new();
    if let Some(quorum) = &quorum {
        let note = ReceiptBundle::parse(&bytes)
            .map_err(Error::from)?
            .head
            .checkpoint;
        witnessed = quorum.verify(&note).map_err(Error::from)?;
    }
    let receipt = &verified.receipt;
    let head = &verified.checkpoint;
    if terminal.json() {
        return terminal.object(&json!({
            "verified": true,
            "key": verified.key.to_string(),
            "log": {"origin": head.origin, "size": head.size, "root": head.root},
            "witnesses": witnessed,
            "receipt": receipt,
        }));
    }
    let mut lines = told(receipt);
    lines.push((
        "log",
        format!(
            "{}, {} receipts, root {}",
            head.origin, head.size, head.root
        ),
    ));
    lines.push(("signed by", verified.key.to_string()));
    lines.extend(verified.stamp.iter().map(|stamp| {
        (
            "stamped",
            format!(
                "{}; the authority's signature is not checked here",
                told_stamp(stamp)
            ),
        )
    }));
    terminal.result(&pairs(
        lines
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value)),
    ))?;
    let claim = ChangeWords::of_receipt(receipt)
        .map(|words| format!("; the claim that is signed is {}", words.claim))
        .unwrap_or_default();
    terminal.message(&format!(
        "verified: signature, place in the log and head of the log hold{claim}"
    ));
    tell_witnesses(&witnessed, terminal);
    Ok(())
}

/// An evidence pack: every file of it, and that its receipts stand in the log whose head it holds.
/// What was not checked is listed.
fn pack(
    path: &Path,
    keys: &KeyRing,
    quorum: Option<&WitnessQuorum>,
    terminal: &Terminal,
) -> Result {
    let file = std::fs::File::open(path).map_err(|cause| Failure::file(path, "read", &cause))?;
    let files = PackFiles::read(file)?;
    let pack = files.verify(keys)?;
    let witnessed = quorum
        .map(|quorum| quorum.verify(&pack.checkpoint))
        .transpose()
        .map_err(Error::from)?;
    let mut not_checked = pack.not_checked;
    if witnessed.is_none() {
        not_checked.push("witnesses of the log: none were named with --witness");
    }
    let witnessed = witnessed.unwrap_or_default();
    let head = &pack.head;
    if terminal.json() {
        let names: Vec<&str> = files.files.iter().map(|(name, _)| name.as_str()).collect();
        let receipts: Vec<&Receipt> = pack
            .receipts
            .iter()
            .map(|verified| &verified.receipt)
            .collect();
        return terminal.object(&json!({
            "verified": true,
            "log": {"origin": head.origin, "size": head.size, "root": head.root},
            "witnesses": witnessed,
            "files": names,
            "not_checked": not_checked,
            "receipts": receipts,
        }));
    }
    let line = |VerifiedReceipt { receipt, .. }: &VerifiedReceipt| {
        let what = format!("{}: {}", receipt.kind.name(), receipt.outcome.name());
        let [method, claim, bound] = ChangeWords::cells(ChangeWords::of_receipt(receipt));
        vec![
            receipt.sequence.to_string(),
            receipt.id.clone(),
            what,
            receipt.rows.removed.to_string(),
            method,
            claim,
            bound,
        ]
    };
    terminal.result(&table(
        &[
            "number", "receipt", "what", "rows out", "method", "claim", "bound",
        ],
        pack.receipts.iter().map(line),
        &[0, 3],
    ))?;
    let receipts = count(pack.receipts.len(), "receipt");
    terminal.message(&format!(
        "verified: {receipts} of {}, each with its signature and its place in the log of {}",
        head.origin, head.size
    ));
    let all = count(files.files.len(), "file");
    terminal.message(&format!(
        "verified: {all} of the pack, as the key of the log signed them"
    ));
    tell_witnesses(&witnessed, terminal);
    for part in not_checked {
        terminal.message(&format!("not checked: {part}"));
    }
    Ok(())
}

fn tell_witnesses(witnessed: &[WitnessedHead], terminal: &Terminal) {
    for WitnessedHead { witness, time } in witnessed {
        let at = Time::from_unix_milliseconds((*time as i64).saturating_mul(1000));
        let at = at.map_or("an unknown time".into(), |time| time.to_string());
        terminal.message(&format!("witnessed by {witness} at {at}"));
    }
}

/// The parts of a receipt that people ask for first.
fn told(receipt: &Receipt) -> Vec<(&'static str, String)> {
    let mut lines = vec![
        (
            "receipt",
            format!("{}, number {}", receipt.id, receipt.sequence),
        ),
        (
            "what",
            format!("{}: {}", receipt.kind.name(), receipt.outcome.name()),
        ),
        (
            "rows",
            format!("{} out, {} in", receipt.rows.removed, receipt.rows.added),
        ),
    ];
    lines.extend(
        ChangeWords::of_receipt(receipt)
            .into_iter()
            .flat_map(ChangeWords::lines),
    );
    if let Some(time) = receipt.times.requested_at {
        lines.push(("requested", time.to_string()));
    }
    lines.push(("received", receipt.times.received_at.to_string()));
    if let Some(time) = receipt.times.forgotten_at {
        lines.push(("forgotten", time.to_string()));
    }
    if let Some(time) = receipt.times.scrubbed_at {
        lines.push(("scrubbed", time.to_string()));
    } else if receipt.times.forgotten_at.is_some() {
        lines.push((
            "scrubbed",
            "later: the receipt of a settle names this one".into(),
        ));
    }
    if let Some(run) = receipt.settles {
        lines.push((
            "settles",
            format!(
                "receipts {} to {}, as far as they waited",
                run.first, run.last
            ),
        ));
    }
    if let Some(spent) = receipt
        .release
        .as_ref()
        .and_then(|release| release.privacy.as_ref())
    {
        let total = match &spent.total {
            Some(total) => format!("ε = {:.4} over {} exports", total.epsilon, total.releases),
            None => "not known".into(),
        };
        let alone = format!("ε = {:.4} at δ = {}", spent.epsilon, spent.delta);
        lines.push(("spent", format!("{alone}; in all {total}")));
    }
    if let Some(keys) = receipt
        .keys
        .as_ref()
        .filter(|keys| Some(&keys.by) != keys.retired.as_ref())
    {
        lines.extend(keys.retired.iter().map(|_| {
            (
                "signed with",
                "the recovery key: a signing key was lost".into(),
            )
        }));
    }
    lines.extend(receipt.reason.iter().map(|text| ("reason", text.clone())));
    let lists = [
        ("not covered", &receipt.not_covered),
        ("kept beside", &receipt.kept_beside),
    ];
    for (name, parts) in lists {
        let parts = parts
            .iter()
            .map(|part| (part.code.as_str(), part.detail.clone()));
        lines.extend(once_each(parts).into_iter().map(|(_, text)| (name, text)));
    }
    lines
}

fn model(
    path: &Path,
    keys: Option<&KeyRing>,
    (rows, since): (bool, Option<&str>),
    terminal: &Terminal,
) -> Result {
    let engine = terminal.look(path)?;
    let checks = match since {
        Some(since) => engine.verify_since(keys, since)?,
        None if rows => engine.verify_rows(keys, true)?,
        None => engine.verify(keys)?,
    };
    // Receipts that cannot be read fail a check above and claim nothing.
    let newest = newest_claim(&engine).ok().flatten();
    let unknown = checks.iter().filter(|check| !check.known).count();
    let failed = checks.iter().filter(|check| !check.passed).count();
    if terminal.json() {
        terminal
            .object(&json!({
                "verified": failed == 0, "not_known": unknown, "checks": checks, "method": newest.as_ref().map(|r| &r.method),
                "claim": newest.as_ref().map(|r| &r.claim), "bound": newest.as_ref().map(|r| &r.bound),
            }))?;
    } else {
        let line = |check: &efface_engine::FileCheck| {
            let verdict = match (check.passed, check.known) {
                (true, true) => "holds",
                (true, false) => "not known",
                (false, _) => "FAILS",
            };
            vec![
                check.check.to_owned(),
                verdict.to_owned(),
                check.found.clone(),
            ]
        };
        terminal.result(&table(
            &["check", "", "found"],
            checks.iter().map(line),
            &[],
        ))?;
        if let Some(words) = newest.as_ref().and_then(ChangeWords::of_receipt) {
            let lines = words.lines().map(|(name, value)| (name.to_owned(), value));
            terminal.result(&pairs(lines))?;
        }
        if keys.is_none() {
            terminal.note("checked against the file's own keys; --key takes those that you know");
        }
    }
    if unknown > 0 {
        terminal.note(&format!(
            "{unknown} of {} checks could not be made",
            checks.len()
        ));
    }
    match failed {
        0 => Ok(()),
        failed => Err(Failure::bad_model(format!(
            "{} is not what its log says: {failed} of {} checks fail",
            path.display(),
            checks.len()
        ))),
    }
}

/// The newest receipt of the model that claims something.
fn newest_claim(engine: &Engine) -> Result<Option<Receipt>> {
    let mut newest = None;
    engine.receipts(&mut |signed, _| {
        if signed.receipt.claim.is_some() {
            newest = Some(signed.receipt.clone());
        }
        Ok(())
    })?;
    Ok(newest)
}

fn public_keys(path: &Path) -> Result<KeyRing> {
    Ok(KeyRing::from_bytes(&read(path)?).map_err(Error::from)?)
}
