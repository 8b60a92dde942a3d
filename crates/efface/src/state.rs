//! A model as plain data: a head, which holds everything small, and arrays under names. This is the
//! one form in which models are stored, whatever the file around them is: the engine keeps each
//! array apart, so that scores need not read the large ones, and networks and Python write them as
//! tensors. A state is read without any row.
//!
//! The head is CBOR, which describes itself and keeps every number to the last bit. Reading checks
//! everything: lengths are believed only as far as there are bytes, and a model that does not fit
//! together is refused.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::family::Family;
use crate::not_covered::NotCovered;

/// More levels than any head has; deeper nesting would only exhaust the stack.
const DEPTH: usize = 32;

/// Arrays that only changes need. Scores do without them, and they are no parameters.
const WORKING_ARRAYS: [&str; 11] = [
    "a",
    "a_low",
    "factor",
    "b",
    "support",
    "spread",
    "anchor",
    "gradient",
    "gradient_low",
    "hessian",
    "gram",
];

/// Arrays that were read off the rows of a fit and stay when rows leave: the units of the columns,
/// and the weights with which a softmax holds the sum over its classes.
pub const UNIT_ARRAYS: [&str; 2] = ["inverse_scale", "gauge"];

/// One array of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateArray {
    /// Numbers.
    Numbers(Vec<f64>),
    /// Counts.
    Counts(Vec<u64>),
}

impl StateArray {
    /// How many bytes it has.
    pub fn bytes(&self) -> usize {
        let count = match self {
            Self::Numbers(values) => values.len(),
            Self::Counts(values) => values.len(),
        };
        count * 8
    }
}

/// A settled model as plain data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelState {
    /// The family, which knows how to read the rest.
    pub family: Family,
    /// Everything small, as CBOR.
    #[serde(with = "plain_bytes")]
    pub head: Vec<u8>,
    /// The arrays by name.
    pub arrays: Vec<(String, StateArray)>,
}

impl ModelState {
    /// A state without arrays.
    pub fn new(family: Family, head: &impl Serialize) -> Result<Self> {
        Ok(Self {
            family,
            head: write_document(head)?,
            arrays: Vec::new(),
        })
    }

    /// The head as what its family made it from.
    pub fn head<T: DeserializeOwned>(&self) -> Result<T> {
        read_document(&self.head)
    }

    /// How many bytes the arrays have.
    pub fn bytes(&self) -> usize {
        self.arrays.iter().map(|(_, array)| array.bytes()).sum()
    }

    /// Whether an array is needed for changes alone, and not for scores.
    pub fn is_working_array(name: &str) -> bool {
        WORKING_ARRAYS.contains(&name)
    }

    /// What the model computes with that was read off its rows, and that no answer depends on:
    /// units of columns, and the weights with which a softmax holds the sum over its classes.
    pub fn read_off_rows(&self) -> Vec<NotCovered> {
        let array = |name| self.numbers(name).map(Vec::as_slice).unwrap_or_default();
        let [units, gauge] = UNIT_ARRAYS.map(array);
        // Units come with an origin, and there are none where columns are taken as given; a gauge
        // of 1 says nothing of the rows.
        let has_units = !units.is_empty();
        let has_gauge = gauge.iter().any(|value| *value != 1.0);
        let found = [
            (has_units, NotCovered::ColumnUnits),
            (has_gauge, NotCovered::ClassGauge),
        ];
        found
            .into_iter()
            .filter(|(is_there, _)| *is_there)
            .map(|(_, what)| what)
            .collect()
    }

    pub(crate) fn put_numbers(&mut self, name: &str, values: Vec<f64>) {
        self.arrays.push((name.into(), StateArray::Numbers(values)));
    }

    pub(crate) fn put_counts(&mut self, name: &str, values: Vec<u64>) {
        self.arrays.push((name.into(), StateArray::Counts(values)));
    }

    fn numbers(&self, name: &str) -> Option<&Vec<f64>> {
        self.arrays.iter().find_map(|(known, array)| match array {
            StateArray::Numbers(values) if known == name => Some(values),
            _ => None,
        })
    }

    /// Takes an array of numbers out; None where there is none of this name.
    pub(crate) fn take_numbers(&mut self, name: &str) -> Option<Vec<f64>> {
        let found = |(known, array): &(String, StateArray)| {
            known == name && matches!(array, StateArray::Numbers(_))
        };
        let at = self.arrays.iter().position(found)?;
        match self.arrays.swap_remove(at).1 {
            StateArray::Numbers(values) => Some(values),
            StateArray::Counts(_) => None,
        }
    }

    /// Takes an array of counts out; None where there is none of this name.
    pub(crate) fn take_counts(&mut self, name: &str) -> Option<Vec<u64>> {
        let found = |(known, array): &(String, StateArray)| {
            known == name && matches!(array, StateArray::Counts(_))
        };
        let at = self.arrays.iter().position(found)?;
        match self.arrays.swap_remove(at).1 {
            StateArray::Counts(values) => Some(values),
            StateArray::Numbers(_) => None,
        }
    }
}

/// Bytes as one string of bytes. As a list of numbers, which is what serde makes of them, they
/// would take up to twice the room.
pub(crate) mod plain_bytes {
    use std::fmt;

    use serde::de::{SeqAccess, Visitor};
    use serde::{Deserializer, Serializer};

    /// Bytes that are reserved on the word of a file alone.
    const TRUSTED: usize = 1 << 16;

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytes)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        deserializer.deserialize_byte_buf(ByteVisitor)
    }

    struct ByteVisitor;

    impl<'de> Visitor<'de> for ByteVisitor {
        type Value = Vec<u8>;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("bytes")
        }

        fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
            Ok(bytes.to_vec())
        }

        fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
            Ok(bytes)
        }

        /// Formats without bytes, such as JSON, have lists.
        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<u8>, A::Error> {
            let mut bytes = Vec::with_capacity(list.size_hint().unwrap_or(0).min(TRUSTED));
            while let Some(byte) = list.next_element::<u8>()? {
                bytes.push(byte);
            }
            Ok(bytes)
        }
    }
}

/// Anything that serde can write, as CBOR.
pub fn write_document(value: &impl Serialize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    ciborium::into_writer(value, &mut bytes)
        .map_err(|_| Error::Damaged("the model cannot be written".into()))?;
    Ok(bytes)
}

/// The value of a CBOR document, to its last byte.
pub fn read_document<T: DeserializeOwned>(mut bytes: &[u8]) -> Result<T> {
    // A message of the decoder may quote what it read, so that none is passed on.
    match ciborium::de::from_reader_with_recursion_limit(&mut bytes, DEPTH) {
        Ok(value) if bytes.is_empty() => Ok(value),
        _ => Err(Error::Damaged("array `model` makes no sense".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_to_the_last_bit() {
        let numbers = vec![0.1, -0.0, 1e-310, f64::MAX, 1.0 / 3.0, 65504.0];
        let back: Vec<f64> = read_document(&write_document(&numbers).unwrap()).unwrap();
        assert!(
            numbers
                .iter()
                .zip(&back)
                .all(|(a, b)| a.to_bits() == b.to_bits())
        );
    }

    #[test]
    fn nonsense_is_refused_in_little_memory() {
        // An array that claims 2⁶² entries and has none; one that is too deep; one with something
        // behind it.
        let long = [0x9b, 0x40, 0, 0, 0, 0, 0, 0, 0];
        assert!(read_document::<Vec<f64>>(&long).is_err());
        assert!(read_document::<serde_json::Value>(&[0x81; 100_000]).is_err());
        let mut more = write_document(&vec![1.0]).unwrap();
        more.push(0);
        assert!(read_document::<Vec<f64>>(&more).is_err());
        assert!(read_document::<Vec<f64>>(&[]).is_err());
    }
}
