//! The durable side of efface: a model and its rows in one file, which change together or not at
//! all.
//!
//! [`fit`] reads a table and writes a model file; an [`Engine`] opens it, forgets rows by id or by
//! the person they belong to, learns new rows, corrects known ones, and predicts. Every change is
//! one transaction. After a forget no byte of the row is left in the file: not its content, not its
//! id, not a word that it alone held. A policy may put the overwriting off for a while, see
//! [`PolicyChange::settle_after`]; until then nothing reads the row.
//!
//! ```
//! use efface_engine::{Engine, FitRequest, ForgetOptions, ForgetRequest, RowSelection, Silent, fit};
//! use efface_io::Source;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("houses.efface");
//! let table = "house,owner,rooms,price\n\
//!              h1,ann,3,210\nh2,bob,5,340\nh3,ann,2,150\nh4,cy,4,280\n";
//! let mut request = FitRequest::new(Source::from_bytes("houses.csv", table, None)?);
//! request.targets = vec!["price".into()];
//! request.id = Some("house".into());
//! request.subject = Some("owner".into());
//! fit(&request, &path, false, &Silent)?;
//!
//! let mut engine = Engine::open(&path)?;
//! let ann = RowSelection::Subject { column: "owner".into(), value: "ann".into() };
//! let report = engine.forget(&ForgetRequest::new(ann), &ForgetOptions::default())?;
//! assert_eq!((report.forgotten, report.rows, report.claim.as_str()), (2, 2, "exact"));
//!
//! let h1 = RowSelection::Ids(vec!["h1".into()]);
//! let again = engine.forget(&ForgetRequest::new(h1), &ForgetOptions::default()).unwrap_err();
//! assert!(again.to_string().starts_with("row h1 is not in this model; it was forgotten on "));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is in the file
//!
//! One SQLite database. `rows` holds a blob per row, `keys` a salted hash of its id and subject,
//! `places` an index over these, `branches` the hashes over both, `parts` the model's arrays with
//! checksums, `meta` a manifest, `forgotten` keyed hashes of the ids that left and when (the list
//! of what must not come back), `members` and `cells` the training set as a Merkle tree, `receipts`
//! and `nodes` the log, `requests` the answers to requests that had names, `copies` what was
//! exported. SQLite's `secure_delete` alone does not keep the promise of the first paragraph: when
//! its pages split and merge, copies of live cells stay behind in unused space and outlive the row
//! (SQLite 3.40: 2 of 1,500 deleted rows could still be read from the file). So rows are only ever
//! appended and overwritten in place, where they lie, with zeros of the same length; when most of
//! the table is zeros it is written anew and the old pages are cleared.
//!
//! # The log
//!
//! Every change leaves a signed receipt in the same transaction: no receipt, no change. The signing
//! key lies beside the model in a file of its own, `MODEL.key`, which only its owner may read.
//! [`Engine::bundle`] gives a receipt with its proofs, [`Engine::verify`] recomputes all that the
//! log says from what is stored. The form is that of [`efface_receipt`].

mod clock;
mod codec;
mod engine;
mod error;
mod file;
mod ledger;
mod operations;
mod ordered_work;
mod progress;
mod randomness;
mod statistics;

pub use codec::class_weights::ClassWeight;
pub use codec::manifest::{MeasuredScores, UnseenRows};
pub use codec::network_info::{EncoderInfo, NetworkInfo, ShardInfo, VectorInfo};
pub use efface_receipt::AuditEntry;
pub use engine::Engine;
pub use error::{Error, ErrorKind, MethodEstimate, Result, SuppressionKind};
pub use file::outputs as files;
pub use ledger::WitnessTerms;
pub use ledger::key::draw as draw_key;
pub use ledger::passphrase::Passphrase;
pub use ledger::signer::{KeyAccess, KeyPlace};
pub use ledger::suppression::SuppressionScope;
pub use operations::audit::{AuditReport, AuditRequest, AuditRows, StateReport, TwinReport};
pub use operations::backup::{BackupContent, BackupReport};
pub use operations::fit::fit;
pub use operations::folder::{FolderAnswer, FolderOptions, FolderOutcome, forget_in_folder};
pub use operations::network::{
    EncoderSettings, EpochReport, NetworkDevice, Pooling, Squash, TrainSettings, method_names,
    named_method,
};
pub use operations::policy::{ExportNoise, PolicyChange, ReleasePolicy};
pub use operations::receipts::ReceiptQuery;
pub use operations::refit::refit;
pub use operations::report::{
    ChangeReport, ClassShards, ExportedModel, FitReport, ModelSummary, Parameters, Prediction,
    ReceiptPlace, Remark, RowsPreview, ScoredRows,
};
pub use operations::request::{
    EncoderChoice, FitRequest, ForgetOptions, ForgetOrder, ForgetRequest, NetworkName,
    NetworkOptions, NetworkRequest, RowSelection, ScoringPlan, Sharding, Vectors,
};
pub use operations::restore::{RestoreReport, RestoreRequest, restore};
pub use operations::row_source::{ChosenRows, RecordTable, RowSource, SeveralFiles, SparseRows};
pub use operations::scorer::Scorer;
pub use operations::settle::SettleReport;
pub use operations::signing_keys::KeyRotation;
pub use operations::subject_index::{IndexReport, index_folder};
pub use operations::verify::FileCheck;
pub use progress::{Progress, Silent};
pub use randomness::random_nonce;
pub use statistics::Statistics;

/// The version of the file format that this library reads and writes.
pub const FORMAT: u32 = 9;
