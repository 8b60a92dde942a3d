//! Values as bytes that describe themselves: the CBOR of [`efface::state`], with the faults of a
//! file.

use efface::state::{read_document, write_document};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::file::{FileFault, damaged};

pub(crate) fn write(value: &impl Serialize) -> efface::Result<Vec<u8>> {
    write_document(value)
}

pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, FileFault> {
    match read_document(bytes) {
        Ok(value) => Ok(value),
        Err(error) => damaged(error.to_string()),
    }
}
