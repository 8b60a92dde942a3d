//! Receipts for those who have no model: a bundle against a public key.

use efface_receipt::{KeyRing, PublicKey, verify_bytes};
use pyo3::prelude::*;
use serde_json::json;

use crate::errors;
use crate::evidence::plain;

/// Verifies the bytes of a bundle. The result says what was verified; a fault is an exception.
#[pyfunction]
pub(crate) fn verify_bundle<'py>(py: Python<'py>, bundle: &[u8], key: &str) -> PyResult<Bound<'py, PyAny>> {
    let checked = PublicKey::parse(key.trim()).and_then(|key| verify_bytes(bundle, &KeyRing::from(key)));
    let verified = checked.map_err(|fault| errors::receipt(py, &fault))?;
    let head = &verified.checkpoint;
    plain(
        py,
        &json!({
            "receipt": verified.receipt,
            "key": verified.key.to_string(),
            "log": {"origin": head.origin, "size": head.size, "root": head.root},
        }),
    )
}
