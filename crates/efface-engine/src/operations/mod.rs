//! What can be asked of a model file, one file or folder for each.

pub(crate) mod audit;
pub(crate) mod change;
pub(crate) mod choice;
pub(crate) mod fit;
pub(crate) mod ingest;
pub(crate) mod look;
pub(crate) mod network;
pub(crate) mod policy;
pub(crate) mod report;
pub(crate) mod request;
pub(crate) mod story;
pub(crate) mod upkeep;
pub(crate) mod verify;
