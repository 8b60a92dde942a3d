//! A BERT of two layers and width 16 whose weights are sines, so that any language can make the
//! same.

use efface_nn::minilm::MiniLm;
use safetensors::{Dtype, tensor::TensorView};

/// Texts whose tokens are [2, 7, 8, 3], [2, 3] and [2, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 3].
pub(crate) const TEXTS: [&str; 3] = ["t7 t8", "", "t5 t6 t7 t9 t10 t11 t12 t13 t14 t15"];

pub(crate) fn config() -> String {
    r#"{"model_type": "bert", "hidden_act": "gelu", "hidden_size": 16, "num_hidden_layers": 2,
        "num_attention_heads": 4, "intermediate_size": 32, "vocab_size": 30, "max_position_embeddings": 12,
        "type_vocab_size": 2, "layer_norm_eps": 1e-12}"#
        .into()
}

/// The special tokens, then the given ones, then `t` with its number up to 29.
pub(crate) fn tokenizer(words: &[String]) -> String {
    let special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
    let mut all: Vec<String> = special
        .iter()
        .map(|s| s.to_string())
        .chain(words.iter().cloned())
        .collect();
    (all.len()..30).for_each(|number| all.push(format!("t{number}")));
    let vocabulary: Vec<String> = all
        .iter()
        .enumerate()
        .map(|(id, word)| format!("{word:?}:{id}"))
        .collect();
    let added: Vec<String> = special
        .iter()
        .enumerate()
        .map(|(id, token)| {
            format!(
                r#"{{"id":{id},"content":{token:?},"single_word":false,"normalized":false,"special":true}}"#
            )
        })
        .collect();
    format!(
        r#"{{"truncation":{{"max_length":3}},"padding":{{"strategy":{{"Fixed":9}}}},"added_tokens":[{}],
        "normalizer":{{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,
        "lowercase":true}},"pre_tokenizer":{{"type":"BertPreTokenizer"}},
        "post_processor":{{"type":"TemplateProcessing"}},"model":{{"type":"WordPiece","unk_token":"[UNK]",
        "continuing_subword_prefix":"\u0023\u0023","max_input_chars_per_word":100,"vocab":{{{}}}}}}}"#,
        added.join(","),
        vocabulary.join(",")
    )
}

/// Name, shape, values. Tensor i of the names in order holds 0.4·sin(0.7k + 1.3i), plus 1 where it
/// is a scale.
pub(crate) fn tensors() -> Vec<(String, Vec<usize>, Vec<f32>)> {
    let mut shapes: Vec<(String, Vec<usize>)> = vec![
        ("embeddings.word_embeddings.weight".into(), vec![30, 16]),
        ("embeddings.position_embeddings.weight".into(), vec![12, 16]),
        (
            "embeddings.token_type_embeddings.weight".into(),
            vec![2, 16],
        ),
    ];
    let norm = |name: String| {
        [
            (format!("{name}.weight"), vec![16]),
            (format!("{name}.bias"), vec![16]),
        ]
    };
    let linear = |name: String, outputs: usize, inputs: usize| {
        [
            (format!("{name}.weight"), vec![outputs, inputs]),
            (format!("{name}.bias"), vec![outputs]),
        ]
    };
    shapes.extend(norm("embeddings.LayerNorm".into()));
    for layer in 0..2 {
        let layer = format!("encoder.layer.{layer}");
        for part in ["self.query", "self.key", "self.value", "output.dense"] {
            shapes.extend(linear(format!("{layer}.attention.{part}"), 16, 16));
        }
        shapes.extend(linear(format!("{layer}.intermediate.dense"), 32, 16));
        shapes.extend(linear(format!("{layer}.output.dense"), 16, 32));
        shapes.extend(norm(format!("{layer}.attention.output.LayerNorm")));
        shapes.extend(norm(format!("{layer}.output.LayerNorm")));
    }
    shapes.sort();
    let values = |index: usize, name: &str, count: usize| {
        let base = if name.ends_with("LayerNorm.weight") {
            1.0
        } else {
            0.0
        };
        let value = |k: usize| (base + 0.4 * (0.7 * k as f64 + 1.3 * index as f64).sin()) as f32;
        (0..count).map(value).collect()
    };
    let filled = shapes
        .into_iter()
        .enumerate()
        .map(|(index, (name, shape))| {
            let values = values(index, &name, shape.iter().product());
            (name, shape, values)
        });
    filled.collect()
}

pub(crate) fn weights(tensors: &[(String, Vec<usize>, Vec<f32>)]) -> Vec<u8> {
    let bytes: Vec<Vec<u8>> = tensors
        .iter()
        .map(|(_, _, values)| values.iter().flat_map(|v| v.to_le_bytes()).collect())
        .collect();
    let views = tensors.iter().zip(&bytes).map(|((name, shape, _), bytes)| {
        (
            name.as_str(),
            TensorView::new(Dtype::F32, shape.clone(), bytes).expect("shape"),
        )
    });
    safetensors::serialize(views, None).expect("serialises")
}

/// `modules.json` of a folder whose vectors have length 1, or have not.
pub(crate) fn modules(unit_length: bool) -> String {
    let module = |path: &str, kind: &str| {
        format!(r#"{{"path": "{path}", "type": "sentence_transformers.models.{kind}"}}"#)
    };
    let mut all = vec![module("", "Transformer"), module("1_Pooling", "Pooling")];
    all.extend(unit_length.then(|| module("2_Normalize", "Normalize")));
    format!("[{}]", all.join(","))
}

/// `1_Pooling/config.json` of one of the poolings of sentence-transformers, such as `mean_tokens`.
pub(crate) fn pooling(mode: &str) -> String {
    let modes = ["cls_token", "mean_tokens", "max_tokens", "lasttoken"]
        .map(|known| format!(r#""pooling_mode_{known}": {}"#, known == mode));
    format!(r#"{{"word_embedding_dimension": 16, {}}}"#, modes.join(","))
}

/// The files of a whole folder, by name.
pub(crate) fn folder(weights: Vec<u8>) -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("config.json", config().into_bytes()),
        ("tokenizer.json", tokenizer(&[]).into_bytes()),
        ("model.safetensors", weights),
        ("modules.json", modules(true).into_bytes()),
        ("1_Pooling/config.json", pooling("mean_tokens").into_bytes()),
    ]
}

pub(crate) fn model() -> MiniLm {
    let weights = weights(&tensors());
    MiniLm::from_bytes(config().as_bytes(), tokenizer(&[]).as_bytes(), &weights)
        .expect("a sound model")
}
