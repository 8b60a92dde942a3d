//! How much is read before giving up. A verifier reads what strangers send, so every size is
//! bounded before memory is taken for it.

/// The largest canonical receipt, signature included.
pub const MAX_RECEIPT_BYTES: usize = 256 * 1024;
/// The largest bundle.
pub const MAX_BUNDLE_BYTES: usize = 1024 * 1024;
/// The deepest nesting of arrays and objects.
pub const MAX_DEPTH: usize = 24;
/// The most values in one document: what a megabyte of `0,0,0,…` would take in memory is bounded by
/// this.
pub const MAX_VALUES: usize = 65_536;
/// The largest checkpoint. Post-quantum signatures of witnesses take up to 5 kB each.
pub const MAX_NOTE_BYTES: usize = 128 * 1024;
/// The most signature lines of a checkpoint; the format asks for at least 16.
pub const MAX_NOTE_SIGNATURES: usize = 32;
/// The longest key name, which is also the origin of a log.
pub const MAX_NAME_BYTES: usize = 255;
/// The longest text in a receipt: a reason, a method, a line of what is not covered.
pub const MAX_TEXT_BYTES: usize = 1024;
/// The longest code: the name of a thing that is not covered.
pub const MAX_CODE_BYTES: usize = 64;
/// The most entries of a list in a receipt.
pub const MAX_LIST: usize = 1024;
/// The most key rotations that a bundle carries.
pub const MAX_ROTATIONS: usize = 64;
/// The most leaves of a log, and the largest integer in a receipt: 2⁵³ − 1. From 2⁵³ on a double
/// stands for more than one integer.
pub const MAX_INTEGER: u64 = (1 << 53) - 1;

/// The largest list of keys of a log or of witnesses.
pub const MAX_KEY_LIST_BYTES: usize = 65_536;
/// The most keys in one list: the key that signs now, the keys before it, and a recovery key for
/// each hand-over.
pub const MAX_KEYS: usize = 2 * MAX_ROTATIONS + 1;

/// The largest evidence pack.
pub const MAX_PACK_BYTES: usize = 512 * 1024 * 1024;
/// The largest list of digests of an evidence pack.
pub const MAX_PACK_LIST_BYTES: usize = 16 * 1024 * 1024;

/// Bytes of a time stamp.
pub const MAX_STAMP_BYTES: usize = 65_536;
