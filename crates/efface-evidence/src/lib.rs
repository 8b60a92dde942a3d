//! What is shown to others about a model that forgot: an [`EvidencePack`] for an officer or an
//! authority, and the results of audits as figures ([`audit_figures`]). The command and the service
//! give the same ones.

mod archive;
mod audit_figure;
mod pack;
mod page;
mod read_pack;

pub use archive::is_zip;
pub use audit_figure::{AuditMark, audit_figures, coin_figure, latest_audit};
pub use pack::{EvidenceError, EvidencePack, readable_receipt};
pub use read_pack::{PackFiles, VerifiedPack};
