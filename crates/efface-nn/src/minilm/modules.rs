//! The files of a sentence encoder's folder that say how the vectors of a text's tokens become one:
//! `modules.json`, `1_Pooling/config.json`, and the two files of settings that may change a text
//! before it is read. Folders whose settings are not supported are refused.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::{MiniLmError, MiniLmResult};

pub(super) const MODULES: &str = "modules.json";
pub(super) const POOLING: &str = "1_Pooling/config.json";
pub(super) const TEXTS: &str = "sentence_bert_config.json";
pub(super) const PROMPTS: &str = "config_sentence_transformers.json";

/// The beginning of the settings of a pooling that are true or false.
const POOLING_MODE: &str = "pooling_mode";
/// The modules of the folders that are read, in their order; the last one may be missing.
const SUPPORTED: [&str; 3] = ["Transformer", "Pooling", "Normalize"];

/// The steps after the transformer: the mean over the tokens, and perhaps the scaling to length 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct SentenceModules {
    /// True if the mean is scaled to length 1.
    pub(super) unit_length: bool,
}

/// One entry of `modules.json`.
#[derive(Deserialize)]
struct ModuleEntry {
    path: String,
    #[serde(rename = "type")]
    kind: String,
}

impl SentenceModules {
    /// Reads the modules and the settings of the pooling.
    pub(super) fn parse(modules: &[u8], pooling: &[u8]) -> MiniLmResult<Self> {
        let modules: Vec<ModuleEntry> = json(MODULES, modules)?;
        let kinds: Vec<&str> = modules
            .iter()
            .map(|module| module.kind.rsplit('.').next().unwrap_or_default())
            .collect();
        let unit_length = kinds.len() == SUPPORTED.len();
        if kinds.len() < 2 || !SUPPORTED.starts_with(&kinds) {
            return Err(MiniLmError::Foreign {
                file: MODULES,
                field: "type",
                found: kinds.join(", "),
                expected: "Transformer, Pooling and, for vectors of length 1, Normalize".into(),
            });
        }
        for (module, expected) in modules.iter().zip(["", "1_Pooling"]) {
            if module.path != expected {
                return Err(MiniLmError::Foreign {
                    file: MODULES,
                    field: "path",
                    found: format!("{:?}", module.path),
                    expected: format!("{expected:?}"),
                });
            }
        }
        check_pooling(pooling)?;
        Ok(Self { unit_length })
    }
}

/// Refuses every pooling but the mean over the tokens.
fn check_pooling(bytes: &[u8]) -> MiniLmResult<()> {
    let settings: Map<String, Value> = json(POOLING, bytes)?;
    let modes: Vec<&str> = settings
        .iter()
        .filter_map(|(name, value)| match value {
            Value::String(mode) if name == POOLING_MODE => Some(mode.as_str()),
            Value::Bool(true) => name.strip_prefix(POOLING_MODE)?.strip_prefix('_'),
            _ => None,
        })
        .collect();
    match modes.as_slice() {
        ["mean" | "mean_tokens"] => Ok(()),
        others => Err(MiniLmError::Foreign {
            file: POOLING,
            field: POOLING_MODE,
            found: if others.is_empty() {
                "none".into()
            } else {
                others.join(" and ")
            },
            expected: "mean_tokens".into(),
        }),
    }
}

/// Refuses settings that change a text before its tokens are read.
pub(super) fn check_texts(texts: Option<&[u8]>, prompts: Option<&[u8]>) -> MiniLmResult<()> {
    for (file, bytes, field, allowed) in [
        (TEXTS, texts, "do_lower_case", Value::Bool(false)),
        (PROMPTS, prompts, "default_prompt_name", Value::Null),
    ] {
        let Some(bytes) = bytes else { continue };
        let settings: Map<String, Value> = json(file, bytes)?;
        let found = settings.get(field).unwrap_or(&allowed);
        if *found != allowed {
            return Err(MiniLmError::Foreign {
                file,
                field,
                found: found.to_string(),
                expected: allowed.to_string(),
            });
        }
    }
    Ok(())
}

fn json<T: DeserializeOwned>(file: &'static str, bytes: &[u8]) -> MiniLmResult<T> {
    serde_json::from_slice(bytes).map_err(|source| MiniLmError::Json { file, source })
}
