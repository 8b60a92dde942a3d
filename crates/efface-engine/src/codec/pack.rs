//! A model as one array of bytes that describes itself: CBOR, which keeps every number to the last bit. Reading checks
//! everything: lengths are believed only as far as there are bytes, and a model that does not fit together is refused.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::file::{FileFault, damaged};

/// The name of the array.
pub(crate) const PART: &str = "model";

/// More levels than any model of ours has; deeper nesting would only exhaust the stack.
const DEPTH: usize = 32;

pub(crate) fn write(model: &impl Serialize) -> efface::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    ciborium::into_writer(model, &mut bytes)
        .map_err(|_| efface::Error::Damaged("the model cannot be written".into()))?;
    Ok(bytes)
}

pub(crate) fn read<T: DeserializeOwned>(mut bytes: &[u8]) -> Result<T, FileFault> {
    // A message of the decoder may quote what it read, so that none is passed on.
    match ciborium::de::from_reader_with_recursion_limit(&mut bytes, DEPTH) {
        Ok(model) if bytes.is_empty() => Ok(model),
        _ => damaged(format!("array `{PART}` makes no sense")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_to_the_last_bit() {
        let numbers = vec![0.1, -0.0, 1e-310, f64::MAX, 1.0 / 3.0, 65504.0];
        let back: Vec<f64> = read(&write(&numbers).unwrap()).unwrap();
        assert!(numbers.iter().zip(&back).all(|(a, b)| a.to_bits() == b.to_bits()));
    }

    #[test]
    fn nonsense_is_refused_in_little_memory() {
        // An array that claims 2⁶² entries and has none; one that is too deep; one with something behind it.
        let long = [0x9b, 0x40, 0, 0, 0, 0, 0, 0, 0];
        assert!(read::<Vec<f64>>(&long).is_err());
        assert!(read::<serde_json::Value>(&[0x81; 100_000]).is_err());
        let mut more = write(&vec![1.0]).unwrap();
        more.push(0);
        assert!(read::<Vec<f64>>(&more).is_err());
        assert!(read::<Vec<f64>>(&[]).is_err());
    }
}
