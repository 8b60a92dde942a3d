//! Networks in shards on their way to a file and back. Every network of a sharded model has the same words and vectors, which
//! may be megabytes; here each is written without them, and gets them back from the recipe.

use std::fmt;
use std::sync::Arc;

use efface::{Fit, Rows, SisaModel};
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, Result};
use crate::network::Network;
use crate::recipe::NetworkRecipe;
use crate::store::{Stored, read, write};

/// A network without its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed(Vec<u8>);

impl Serialize for Sealed {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Sealed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Bytes;
        impl<'de> Visitor<'de> for Bytes {
            type Value = Vec<u8>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("the bytes of a network")
            }

            fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> std::result::Result<Vec<u8>, E> {
                Ok(bytes.to_vec())
            }

            fn visit_byte_buf<E: serde::de::Error>(self, bytes: Vec<u8>) -> std::result::Result<Vec<u8>, E> {
                Ok(bytes)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<Vec<u8>, A::Error> {
                let mut bytes = Vec::new();
                while let Some(byte) = list.next_element::<u8>()? {
                    if bytes.len() > 1 << 31 {
                        return Err(A::Error::custom("too long"));
                    }
                    bytes.push(byte);
                }
                Ok(bytes)
            }
        }
        deserializer.deserialize_byte_buf(Bytes).map(Self)
    }
}

/// The recipe of sealed networks, by which none can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedRecipe;

impl Fit for SealedRecipe {
    type Model = Sealed;

    fn fit(&self, _rows: &Rows) -> efface::Result<Sealed> {
        let reason = "a sealed network cannot be trained; unseal it first".into();
        Err(efface::Error::Unsupported { method: "fit", reason })
    }
}

/// Every network without its words.
pub fn seal(model: &SisaModel<NetworkRecipe>) -> Result<SisaModel<SealedRecipe>> {
    let close = |network: &Network| {
        let backbone = network.backbone();
        let head = network.head();
        Ok(Sealed(write(network.recipe(), network.max_tokens(), false, Some(backbone), Some(head))?))
    };
    Ok(model.convert(SealedRecipe, close)?)
}

/// Every network with its words again. All must be of this recipe.
pub fn unseal(sealed: &SisaModel<SealedRecipe>, recipe: &NetworkRecipe) -> Result<SisaModel<NetworkRecipe>> {
    let open = |Sealed(bytes): &Sealed| match read(bytes, Some(&recipe.embedding))? {
        Stored { recipe: found, backbone: Some(backbone), head: Some(head), .. }
            if Arc::ptr_eq(&found.embedding, &recipe.embedding)
                && (found.encoder, found.training, found.head)
                    == (recipe.encoder, recipe.training, recipe.head) =>
        {
            Ok(backbone.with_head(head)?)
        }
        _ => Err(Error::Damaged("a shard is not of the model's recipe".into()).into()),
    };
    Ok(sealed.convert(recipe.clone(), open)?)
}
