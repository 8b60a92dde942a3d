//! Receipts for those who have no model: a file against public keys.

use efface_receipt::{KeyRing, ReceiptBundle, verify_bytes};
use pyo3::prelude::*;
use serde_json::json;

use crate::errors;
use crate::evidence::plain;

/// The receipt in the bytes of a file. Nothing is verified.
#[pyfunction]
pub(crate) fn read_receipt<'py>(py: Python<'py>, bundle: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let found = ReceiptBundle::parse(bundle).map_err(|fault| errors::receipt(py, &fault))?;
    plain(py, &found.signed.receipt)
}

/// Verifies the bytes of a bundle. The result says what was verified; a fault is an exception.
#[pyfunction]
pub(crate) fn verify_bundle<'py>(
    py: Python<'py>,
    bundle: &[u8],
    key: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let checked = KeyRing::parse(key).and_then(|keys| verify_bytes(bundle, &keys));
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
