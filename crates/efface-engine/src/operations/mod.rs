//! What can be asked of a model file, one file or folder for each.

pub(crate) mod amend;
pub(crate) mod audit;
pub(crate) mod change;
pub(crate) mod export;
pub(crate) mod fit;
pub(crate) mod forget;
pub(crate) mod ingest;
pub(crate) mod learn;
pub(crate) mod naming;
pub(crate) mod network;
pub(crate) mod open_model;
pub(crate) mod parameters;
pub(crate) mod policy;
pub(crate) mod prepared;
pub(crate) mod receipts;
pub(crate) mod recipe;
pub(crate) mod replaced;
pub(crate) mod report;
pub(crate) mod request;
pub(crate) mod returning;
pub(crate) mod row_source;
pub(crate) mod scorer;
pub(crate) mod settle;
pub(crate) mod signing_keys;
pub(crate) mod summary;
pub(crate) mod verify;
