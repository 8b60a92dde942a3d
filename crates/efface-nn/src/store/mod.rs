//! Networks and checkpoints as bytes: safetensors, with the settings as JSON in its metadata.
//! Everything read is checked before it is believed: the header's size, the type and shape of every
//! array, and that every number is finite.

mod checkpoint;
mod network;

pub(crate) use network::{StoredNetwork, read, write};

use std::borrow::Cow;
use std::collections::HashMap;

use safetensors::tensor::{Dtype, SafeTensors, View};
use serde::{Serialize, de::DeserializeOwned};

use crate::error::{Error, Result};

/// A header longer than this is not one of ours.
const LONGEST_HEADER: u64 = 16 << 20;
/// The key of the settings in the metadata.
const KEY: &str = "efface";
const FORMAT: u32 = 1;

fn damaged<T>(what: impl Into<String>) -> Result<T> {
    Err(Error::Damaged(what.into()))
}

/// One array on its way to a file.
struct TensorArray {
    kind: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl View for &TensorArray {
    fn dtype(&self) -> Dtype {
        self.kind
    }
    fn shape(&self) -> &[usize] {
        &self.shape
    }
    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.bytes)
    }
    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

#[derive(Default)]
struct TensorWriter(Vec<(String, TensorArray)>);

impl TensorWriter {
    fn single(&mut self, name: impl Into<String>, shape: Vec<usize>, values: &[f32]) {
        let bytes = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        self.0.push((
            name.into(),
            TensorArray {
                kind: Dtype::F32,
                shape,
                bytes,
            },
        ));
    }

    fn double(&mut self, name: impl Into<String>, values: &[f64]) {
        self.table(name, vec![values.len()], values);
    }

    fn table(&mut self, name: impl Into<String>, shape: Vec<usize>, values: &[f64]) {
        let bytes = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        self.0.push((
            name.into(),
            TensorArray {
                kind: Dtype::F64,
                shape,
                bytes,
            },
        ));
    }

    fn counts(&mut self, name: impl Into<String>, values: &[u64]) {
        let bytes = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        self.0.push((
            name.into(),
            TensorArray {
                kind: Dtype::U64,
                shape: vec![values.len()],
                bytes,
            },
        ));
    }

    fn text(&mut self, name: impl Into<String>, text: String) {
        self.bytes(name, text.into_bytes());
    }

    fn bytes(&mut self, name: impl Into<String>, bytes: Vec<u8>) {
        self.0.push((
            name.into(),
            TensorArray {
                kind: Dtype::U8,
                shape: vec![bytes.len()],
                bytes,
            },
        ));
    }

    fn finish(self, settings: &impl Serialize) -> Result<Vec<u8>> {
        let Ok(json) = serde_json::to_string(settings) else {
            return damaged("its settings cannot be written");
        };
        let metadata = HashMap::from([(KEY.to_string(), json)]);
        let arrays = self.0.iter().map(|(name, array)| (name.as_str(), array));
        safetensors::serialize(arrays, Some(metadata)).or_else(|error| damaged(error.to_string()))
    }
}

struct TensorReader<'a>(SafeTensors<'a>);

impl<'a> TensorReader<'a> {
    fn open<T: DeserializeOwned>(bytes: &'a [u8]) -> Result<(Self, T)> {
        let Some((length, _)) = bytes.split_first_chunk::<8>() else {
            return damaged("it is shorter than a header");
        };
        let length = u64::from_le_bytes(*length);
        if length > LONGEST_HEADER {
            return damaged(format!(
                "its header claims {length} bytes; at most {LONGEST_HEADER} are read"
            ));
        }
        let (_, header) =
            SafeTensors::read_metadata(bytes).or_else(|error| damaged(error.to_string()))?;
        let json = header
            .metadata()
            .as_ref()
            .and_then(|metadata| metadata.get(KEY));
        let Some(json) = json else {
            return damaged("it holds no network of this kind");
        };
        let settings = serde_json::from_str(json)
            .or_else(|error| damaged(format!("its settings: {error}")))?;
        let tensors =
            SafeTensors::deserialize(bytes).or_else(|error| damaged(error.to_string()))?;
        Ok((Self(tensors), settings))
    }

    fn bytes(&self, name: &str, kind: Dtype, shape: Option<&[usize]>) -> Result<&'a [u8]> {
        let Ok(found) = self.0.tensor(name) else {
            return damaged(format!("{name} is missing"));
        };
        if found.dtype() != kind || shape.is_some_and(|shape| shape != found.shape()) {
            let is = found.shape();
            let kind_found = found.dtype();
            let wanted = shape.map_or_else(|| "any shape".into(), |shape| format!("{shape:?}"));
            return damaged(format!(
                "{name} is {kind_found:?} {is:?} where {kind:?} {wanted} was expected"
            ));
        }
        Ok(found.data())
    }

    fn single(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let bytes = self.bytes(name, Dtype::F32, Some(shape))?;
        let values: Vec<f32> = bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|chunk| f32::from_le_bytes(*chunk))
            .collect();
        if values.iter().all(|value| value.is_finite()) {
            Ok(values)
        } else {
            damaged(format!("{name} holds a number that is not finite"))
        }
    }

    fn double(&self, name: &str) -> Result<Vec<f64>> {
        let bytes = self.bytes(name, Dtype::F64, None)?;
        Ok(bytes
            .as_chunks::<8>()
            .0
            .iter()
            .map(|chunk| f64::from_le_bytes(*chunk))
            .collect())
    }

    fn counts(&self, name: &str) -> Result<Vec<u64>> {
        let bytes = self.bytes(name, Dtype::U64, None)?;
        Ok(bytes
            .as_chunks::<8>()
            .0
            .iter()
            .map(|chunk| u64::from_le_bytes(*chunk))
            .collect())
    }
}
