//! `efface evidence`: what shows that a request was carried out, in one file for an officer or an
//! authority.

use std::io::Write;

use efface_engine::ReceiptQuery;
use efface_evidence::{EvidenceError, EvidencePack};
use efface_receipt::ReceiptBundle;
use serde_json::json;

use crate::cli::EvidenceArguments;
use crate::failure::{Failure, Result};
use crate::output::OutputFile;
use crate::report::count;
use crate::terminal::Terminal;

pub(crate) fn run(args: &EvidenceArguments, terminal: &Terminal) -> Result {
    let mut out = OutputFile::file(&args.output, &[&args.model], args.force, terminal)?;
    let engine = terminal.look(&args.model)?;
    let pack = EvidencePack::gather(&engine, &query(args))?;
    let bytes = pack.zip()?;
    out.write_all(&bytes)
        .map_err(|cause| Failure::file(out.name(), "written", &cause))?;
    out.finish()?;
    if terminal.json() {
        let number = |bundle: &ReceiptBundle| bundle.signed.receipt.sequence;
        let numbers = |bundles: &[ReceiptBundle]| bundles.iter().map(number).collect::<Vec<_>>();
        return terminal.object(&json!({
            "file": args.output, "receipts": numbers(&pack.asked), "settles": numbers(&pack.settled),
            "audits": numbers(&pack.audits), "exports": pack.exports.len(),
        }));
    }
    let receipts = count(pack.asked.len(), "receipt");
    let audits = count(pack.audits.len(), "audit");
    terminal.message(&format!(
        "{}: {receipts}, {audits} on record",
        args.output.display()
    ));
    if pack.audits.is_empty() {
        terminal.note(
            "no audit is on record since; `efface audit MODEL --file ROWS --record` makes one",
        );
    }
    Ok(())
}

fn query(args: &EvidenceArguments) -> ReceiptQuery {
    match (&args.request, &args.subject, &args.receipt) {
        (Some(name), ..) => ReceiptQuery::Request(name.clone()),
        (None, Some(person), _) => ReceiptQuery::Subject {
            value: person.value.clone(),
            opening: args.opening.clone().unwrap_or_default(),
        },
        (None, None, receipt) => ReceiptQuery::Receipt(receipt.clone().unwrap_or_default()),
    }
}

impl From<EvidenceError> for Failure {
    fn from(error: EvidenceError) -> Self {
        match error {
            EvidenceError::Model(error) => error.into(),
            EvidenceError::Keys(fault) => efface_engine::Error::from(fault).into(),
            EvidenceError::File {
                ref name,
                ref fault,
            } => {
                let failure = Self::from(efface_engine::Error::from(fault.clone()));
                let message = format!("{name:?}: {}", failure.message);
                failure.with_message(message)
            }
            EvidenceError::OtherHead { .. } => Self::data(error.to_string())
                .hint("ask for the pack again: all of it is made at one moment"),
            EvidenceError::Zip(_) => Self::data(error.to_string()),
            EvidenceError::Json(_) => Self::internal(error.to_string()),
        }
    }
}
