//! The encoder in front of a head, as the file keeps it: what is told of it, and how texts pass through it.

mod info;
pub(crate) mod stage;

pub use info::{EncoderInfo, NetworkInfo, ShardInfo, VectorInfo};
pub(crate) use stage::{TextEncoder, open};
