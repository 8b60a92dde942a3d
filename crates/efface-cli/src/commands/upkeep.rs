//! `efface keys`, `efface policy` and `efface settle`: what is done to a model beside changing its
//! rows.

use efface_engine::{
    BackupContent, ExportNoise, KeyRotation, PolicyChange, ReleasePolicy, RestoreRequest,
    SuppressionScope, WitnessTerms,
};
use serde_json::json;

use crate::cli::{
    BackupArguments, KeysArguments, PolicyArguments, RestoreArguments, SettleArguments, passphrase,
};
use crate::failure::{Failure, Result};
use crate::report::{bytes, count, duration, left_behind, pairs};
use crate::terminal::Terminal;

pub(crate) fn keys(args: &KeysArguments, terminal: &Terminal) -> Result {
    if args.rotate || args.recover.is_some() {
        return replace_key(args, terminal);
    }
    if args.decrypt || args.encrypt.is_some() {
        let passphrase = args.encrypt.as_ref().map(passphrase).transpose()?;
        let encrypted = passphrase.is_some();
        terminal
            .change(&args.model)?
            .change_passphrase(passphrase)?;
        let how = if encrypted {
            "encrypted with the passphrase"
        } else {
            "kept without a passphrase"
        };
        terminal.message(&format!("the key file is {how}"));
        return Ok(());
    }
    if args.destroy {
        let receipt = terminal.change(&args.model)?.destroy()?;
        if terminal.json() {
            return terminal.object(&json!({"receipt": receipt}));
        }
        terminal
            .message("the key is destroyed; the log is still there, and its last receipt says so");
        terminal.note("a recovery key that was written for this model holds the key too");
        return Ok(());
    }
    let keys = terminal.look(&args.model)?.public_keys()?;
    let lines: Vec<String> = keys.iter().map(ToString::to_string).collect();
    if let Some(now) = keys.last().filter(|_| args.pem) {
        return terminal.result(now.key.to_pem().trim_end());
    }
    if terminal.json() {
        let now = keys.last().map(|now| now.key.to_string());
        return terminal.object(&json!({"public_key": now, "keys": lines}));
    }
    terminal.result(&lines.join("\n"))
}

fn replace_key(args: &KeysArguments, terminal: &Terminal) -> Result {
    let rotation = KeyRotation {
        place: args.next_place(),
        recover: args.recover.clone(),
        recovery_key: args.recovery_key.clone(),
    };
    let (public, receipt) = terminal.change(&args.model)?.rotate_key(&rotation)?;
    if terminal.json() {
        return terminal.object(&json!({"public_key": public, "receipt": receipt}));
    }
    terminal.result(&public)?;
    let by = if args.recover.is_some() {
        "the recovery key"
    } else {
        "the old key"
    };
    terminal.message(&format!(
        "{by} handed over; give auditors what `efface keys` prints now"
    ));
    Ok(())
}

pub(crate) fn policy(args: &PolicyArguments, terminal: &Terminal) -> Result {
    let change = PolicyChange {
        minimum_batch: args.min_batch,
        expose_forgotten: args.expose_forgotten,
        delay_seconds: args.delay.as_ref().map(|delay| delay.0),
        noise: match (args.noise, args.epsilon, args.delta) {
            (Some(deviation), _, _) => Some(ExportNoise::Deviation { deviation }),
            (None, Some(epsilon), Some(delta)) => Some(ExportNoise::Calibrated {
                epsilon,
                delta,
                sensitivity: args.sensitivity,
            }),
            _ => None,
        },
        settle_after: args.settle_after,
        settle_within_seconds: args.settle_within.as_ref().map(|delay| delay.0),
        suppress: args.suppress.map(Into::into),
        witnesses: witnesses(args)?,
    };
    let asks_nothing = PolicyChange {
        expose_forgotten: false,
        ..change.clone()
    } == PolicyChange::default();
    let policy = if asks_nothing {
        terminal.look(&args.model)?.policy()?
    } else {
        terminal.change(&args.model)?.set_policy(&change)?
    };
    if terminal.json() {
        return terminal.object(&policy);
    }
    let delay = match policy.delay_seconds {
        0 => "none: only company releases an export".to_owned(),
        seconds => duration(seconds),
    };
    let lines = [
        (
            "requests before an export",
            policy.minimum_batch.to_string(),
        ),
        ("or this long", delay),
        ("noise on what is exported", noise(&policy.noise)),
        ("requests since the last export", policy.waiting.to_string()),
        (
            "moved since the last export",
            policy.moved.map_or("nothing was exported".into(), |far| {
                format!("at most {far:.3e}")
            }),
        ),
        ("spent by exports with noise", spent(&policy)),
        ("forgotten rows are scrubbed", scrubbing(&policy)),
        (
            "and are known again by",
            suppression(policy.suppress).to_owned(),
        ),
        (
            "witnesses before an export",
            policy
                .witnesses
                .as_ref()
                .map_or("none".into(), |witnesses| {
                    format!("{} of {}", witnesses.needed, witnesses.keys.len())
                }),
        ),
    ];
    terminal.result(&pairs(lines.map(|(name, value)| (name.to_owned(), value))))
}

/// Whom a change of the policy asks for as witnesses.
fn witnesses(args: &PolicyArguments) -> Result<Option<WitnessTerms>> {
    let Some(file) = &args.witness else {
        return match args.quorum {
            None => Ok(None),
            Some(0) => Ok(Some(WitnessTerms {
                keys: Vec::new(),
                needed: 0,
            })),
            Some(_) => Err(Failure::usage("a quorum is of witnesses")
                .hint("name their keys with --witness FILE")),
        };
    };
    let quorum = super::witness::keys(file, args.quorum)?;
    Ok(Some(WitnessTerms {
        keys: quorum.witnesses().map(ToString::to_string).collect(),
        needed: quorum.needed(),
    }))
}

pub(crate) fn backup(args: &BackupArguments, terminal: &Terminal) -> Result {
    let content = if args.log_only {
        BackupContent::Log
    } else {
        BackupContent::Model
    };
    let report = terminal
        .look(&args.model)?
        .backup(content, &args.output, terminal.mode())?;
    if terminal.json() {
        return terminal.object(&report);
    }
    let receipts = count(report.receipts as usize, "receipt");
    let to = format!("{}, {}", args.output.display(), bytes(report.file_bytes));
    if args.log_only {
        terminal.message(&format!("copied a log of {receipts} to {to}"));
        return Ok(());
    }
    terminal.message(&format!(
        "copied {} and {receipts} to {to}",
        count(report.rows as usize, "row")
    ));
    terminal.note("no forget reaches the copy; its key file is not in it");
    Ok(())
}

pub(crate) fn restore(args: &RestoreArguments, terminal: &Terminal) -> Result {
    let bars = terminal.bars();
    let report = efface_engine::restore(&RestoreRequest {
        backup: &args.backup,
        log: &args.log,
        path: &args.output,
        mode: terminal.mode(),
        access: terminal.access(),
        progress: &bars,
    })?;
    if terminal.json() {
        return terminal.object(&report);
    }
    terminal.message(&format!(
        "restored {} to {}: {} of the copy had been forgotten or corrected since and left by {}; distance to retraining at most {:.1e} \
         (relative); receipt {}, number {} in the log",
        count(report.rows as usize, "row"),
        args.output.display(),
        count(report.forgotten as usize, "row"),
        report.method,
        report.relative_bound,
        report.receipt.id,
        report.receipt.sequence
    ));
    if report.lost > 0 {
        let lost = count(report.lost as usize, "row");
        terminal.warn(&format!(
            "{lost} that were learned or corrected since the copy was made are lost: learn them again"
        ));
    }
    left_behind(&report.evidence, true)
        .iter()
        .for_each(|line| terminal.note(line));
    Ok(())
}

pub(crate) fn settle(args: &SettleArguments, terminal: &Terminal) -> Result {
    let settled = terminal.change(&args.model)?.settle()?;
    if terminal.json() {
        return terminal.object(&settled);
    }
    terminal.message(&format!(
        "settled: {} scrubbed that had waited, {} given back, {} before, {} after; receipt {}",
        count(settled.scrubbed as usize, "row"),
        count(settled.husks as usize, "place"),
        bytes(settled.bytes_before),
        bytes(settled.bytes_after),
        settled.receipt.id
    ));
    Ok(())
}

fn scrubbing(policy: &ReleasePolicy) -> String {
    match (policy.settle_after, policy.can_defer) {
        (0..=1, _) => "at once".into(),
        (_, false) => "at once: this family keeps nothing that is cheaper to write later".into(),
        (rows, true) => format!(
            "{rows} at a time, or after {}",
            duration(policy.settle_within_seconds)
        ),
    }
}

/// What exports with noise add up to.
fn spent(policy: &ReleasePolicy) -> String {
    match (&policy.spent, policy.noise) {
        (Some(total), ExportNoise::Calibrated { delta, .. }) => {
            let exports = count(total.releases as usize, "export");
            format!("ε = {:.4} at δ = {delta} over {exports}", total.epsilon)
        }
        (None, ExportNoise::Calibrated { .. }) => {
            "unknown: noise was chosen outright since the last without".into()
        }
        _ => "not known without --epsilon and --delta".into(),
    }
}

fn noise(noise: &ExportNoise) -> String {
    match noise {
        ExportNoise::None => "none".into(),
        ExportNoise::Deviation { deviation } => format!("standard deviation {deviation}"),
        ExportNoise::Calibrated {
            epsilon,
            delta,
            sensitivity,
        } => {
            let hides = sensitivity.map_or("as far as the parameters moved".into(), |distance| {
                format!("{distance}")
            });
            format!("ε = {epsilon}, δ = {delta}, hides a distance of {hides}")
        }
    }
}

fn suppression(scope: SuppressionScope) -> &'static str {
    match scope {
        SuppressionScope::Ids => "their ids",
        SuppressionScope::Subjects => "their ids, and the person who asked",
        SuppressionScope::Content => "their ids, the person who asked, and their content",
    }
}
