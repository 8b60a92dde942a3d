//! `config.json`: the sizes of the network, and the refusal of networks that are not a plain BERT.

use serde::{Deserialize, Serialize};

use super::error::{MiniLmError, MiniLmResult};

const FILE: &str = "config.json";
/// No BERT comes near these. They keep products of sizes far from overflow.
const LARGEST_SIZE: usize = 1 << 24;

/// The sizes of a BERT encoder, by the names that its configuration file gives them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MiniLmConfig {
    /// Width of a token's vector.
    pub hidden_size: usize,
    /// Number of layers.
    pub num_hidden_layers: usize,
    /// Attention heads of a layer.
    pub num_attention_heads: usize,
    /// Width of the middle of a feed-forward block.
    pub intermediate_size: usize,
    /// What layer normalisation adds to a variance.
    pub layer_norm_eps: f32,
    /// Tokens that have a vector.
    pub vocab_size: usize,
    /// Positions that have a vector: the longest text, in tokens.
    pub max_position_embeddings: usize,
    /// Kinds of segment; texts here are of the first kind.
    pub type_vocab_size: usize,
    model_type: String,
    hidden_act: String,
    #[serde(default)]
    position_embedding_type: Option<String>,
}

impl MiniLmConfig {
    pub(super) fn parse(bytes: &[u8]) -> MiniLmResult<Self> {
        let config: Self = serde_json::from_slice(bytes)
            .map_err(|source| MiniLmError::Json { file: FILE, source })?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> MiniLmResult<()> {
        must_be("model_type", &self.model_type, "bert")?;
        must_be("hidden_act", &self.hidden_act, "gelu")?;
        must_be(
            "position_embedding_type",
            self.position_embedding_type
                .as_deref()
                .unwrap_or("absolute"),
            "absolute",
        )?;
        for (field, found, least) in [
            ("hidden_size", self.hidden_size, 1),
            ("num_hidden_layers", self.num_hidden_layers, 1),
            ("num_attention_heads", self.num_attention_heads, 1),
            ("intermediate_size", self.intermediate_size, 1),
            ("vocab_size", self.vocab_size, 1),
            ("max_position_embeddings", self.max_position_embeddings, 3),
            ("type_vocab_size", self.type_vocab_size, 1),
        ] {
            if !(least..=LARGEST_SIZE).contains(&found) {
                return Err(foreign(field, found, format!("{least} to {LARGEST_SIZE}")));
            }
        }
        if !self.hidden_size.is_multiple_of(self.num_attention_heads) {
            let expected = format!("a divisor of hidden_size, {},", self.hidden_size);
            return Err(foreign(
                "num_attention_heads",
                self.num_attention_heads,
                expected,
            ));
        }
        if !(0.0..=1.0).contains(&self.layer_norm_eps) {
            return Err(foreign(
                "layer_norm_eps",
                self.layer_norm_eps,
                "0 to 1".into(),
            ));
        }
        Ok(())
    }

    /// Width of one attention head.
    pub(super) fn head_width(&self) -> usize {
        self.hidden_size / self.num_attention_heads
    }
}

fn must_be(field: &'static str, found: &str, expected: &str) -> MiniLmResult<()> {
    if found == expected {
        Ok(())
    } else {
        Err(foreign(
            field,
            format!("{found:?}"),
            format!("{expected:?}"),
        ))
    }
}

fn foreign(field: &'static str, found: impl ToString, expected: String) -> MiniLmError {
    MiniLmError::Foreign {
        file: FILE,
        field,
        found: found.to_string(),
        expected,
    }
}
