//! The only place that replaces a live model. A change goes through phases, each a type that only
//! the one before it gives, so that no step is left out or done twice:
//!
//! - [`OpenedChange`]: the file is held, the model is as it was. Operations look up rows and run a
//!   method here.
//! - [`planned::PlannedChange`]: the new model, its evidence and the rows that come and go are
//!   known. Nothing is written; a dry run ends here.
//! - [`applied::AppliedChange`]: rows, arrays and training set are in the file.
//! - [`SignedChange`]: the receipts are in the log, and the manifest is written. It is committed by
//!   value.
//!
//! All of it is one transaction: after a failure or a crash, in whatever phase, the file is as it
//! was before.

mod applied;
mod features;
mod opened;
mod planned;
mod refit;
mod report;
mod scrub;
mod signed;

pub(crate) use features::{counts_features, follows_rows};
pub(crate) use opened::{ArrivingRows, OpenedChange};
pub(crate) use planned::RowChange;
pub(crate) use refit::RefittedModel;
pub(crate) use report::{change_report, idle_evidence, receipt_place};
pub(crate) use scrub::{settle_draft, waited_long_enough};
pub(crate) use signed::SignedChange;

#[cfg(test)]
mod tests;
