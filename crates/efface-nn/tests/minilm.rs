//! The frozen encoder against PyTorch, and against files that are not what they should be.
//!
//! Numbers come from torch 2.15.0, transformers 5.22.2, tokenizers 0.23.3 and sentence-transformers
//! 6.2.0 on a CPU. The tests of the real encoder need its folder: in the environment variable
//! EFFACE_MINILM, or in ../../../shared/models/all-MiniLM-L6-v2 seen from this crate. Without it
//! they say so and pass.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/tiny_bert.rs"]
mod tiny_bert;

use std::cell::Cell;
use std::path::PathBuf;

use efface::{Dense, Features};
use efface_nn::minilm::{MiniLm, MiniLmError};
use rand::RngExt;
use tiny_bert::{TEXTS, config, model, modules, pooling, tensors, tokenizer, weights};

fn quiet(_: usize) {}

fn row(table: &Features, slot: usize) -> Vec<f64> {
    let mut values = Vec::new();
    table.row(slot).each(|_, value| values.push(value));
    values
}

fn table(rows: Dense<f32>) -> Features {
    rows.into()
}

fn refusal(config: &[u8], tokenizer: &[u8], weights: &[u8]) -> String {
    MiniLm::from_bytes(config, tokenizer, weights)
        .expect_err("refused")
        .to_string()
}

/// transformers.BertModel with the weights of `tiny_bert`, mean of the last hidden state, scaled to
/// length 1.
const TINY: [[f64; 16]; 3] = [
    [
        0.4117573, -0.2109554, -0.0529198, -0.0844610, 0.0730710, 0.3716100, -0.3117355, 0.0035239,
        -0.2098546, 0.3361383, -0.0257011, -0.2161195, 0.0518432, -0.1109013, 0.4834853,
        -0.2867991,
    ],
    [
        0.4429262, -0.2604737, 0.0366279, -0.2123438, 0.1878450, 0.2579057, -0.2780348, 0.0272503,
        -0.1890958, 0.4124836, -0.1139323, -0.1102582, -0.0693257, -0.0295407, 0.4240288,
        -0.3052454,
    ],
    [
        0.3469987, -0.1142113, -0.2133935, 0.0224195, -0.0180041, 0.4410564, -0.2905690,
        -0.0542209, -0.1762381, 0.2297621, 0.0930958, -0.3599805, 0.1156966, -0.1446359, 0.4865332,
        -0.2125088,
    ],
];

#[test]
fn a_tiny_bert_gives_what_torch_gives() {
    let done = Cell::new(0);
    let rows = table(model().encode(&TEXTS, &|count| done.set(count)).unwrap());
    assert_eq!(done.get(), TEXTS.len());
    for (slot, expected) in TINY.iter().enumerate() {
        for (found, expected) in row(&rows, slot).iter().zip(expected) {
            assert!(
                (found - expected).abs() < 1e-6,
                "text {slot}: {found} where torch has {expected}"
            );
        }
    }
}

#[test]
fn threads_and_company_do_not_change_a_bit() {
    let texts: Vec<String> = (0..700)
        .map(|k| format!("t{} t{}", 5 + k % 20, 5 + k % 7).repeat(k % 4))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let one = table(model().encode(&texts, &quiet).unwrap());
    let done = Cell::new(0);
    let three = table(
        model()
            .with_threads(3)
            .encode(&texts, &|count| done.set(count))
            .unwrap(),
    );
    assert_eq!(done.get(), texts.len());
    for slot in 0..texts.len() {
        assert_eq!(row(&one, slot), row(&three, slot));
    }
    // Alone, a product may add in another order, so only nearly the same.
    let alone = table(model().encode(&texts[..1], &quiet).unwrap());
    assert!(
        row(&alone, 0)
            .iter()
            .zip(row(&one, 0))
            .all(|(a, b)| (a - b).abs() < 1e-6)
    );
    assert_eq!(table(model().encode(&[], &quiet).unwrap()).rows(), 0);
}

#[test]
fn a_text_is_cut_where_the_encoder_ends_or_earlier_if_told() {
    let text = "t5 ".repeat(100_000);
    assert_eq!(model().tokenize(&text).len(), 12);
    let short = model().with_max_tokens(5).unwrap();
    assert_eq!(short.tokenize(&text), [2, 5, 5, 5, 3]);
    assert_eq!(short.max_tokens(), 5);
    for wrong in [0, 2, 13] {
        let error = model()
            .with_max_tokens(wrong)
            .expect_err("out of range")
            .to_string();
        assert_eq!(
            error,
            format!("a text cannot be cut at {wrong} tokens; choose from 3 to 12")
        );
    }
}

/// tokenizers.Tokenizer with the same vocabulary.
#[test]
fn words_are_cut_as_the_reference_cuts_them() {
    let words = [
        "the", "cat", "##s", "un", "##aff", "##able", "!", ",", "中", "e", "##e", "naive", "'",
        "i", "##x",
    ];
    let tokens: Vec<String> = words.map(String::from).into();
    let encoder = MiniLm::from_bytes(
        config().as_bytes(),
        tokenizer(&tokens).as_bytes(),
        &weights(&tensors()),
    );
    let encoder = encoder.unwrap();
    let cases: [(&str, &[u32]); 9] = [
        ("The cats, unaffable!", &[5, 6, 7, 12, 8, 9, 10, 11]),
        ("NAÏVE\u{301} cat", &[16, 6]),
        ("the中cat", &[5, 13, 6]),
        ("xyz [MASK] the[SEP]", &[1, 4, 5, 3]),
        ("ée İx", &[14, 15, 18, 19]),
        ("", &[]),
        ("  \t\n", &[]),
        (" the\0 ca\u{ad}t's", &[5, 6, 17, 1]),
        ("catz un##able", &[1, 8, 1, 1, 1]),
    ];
    for (text, expected) in cases {
        assert_eq!(
            encoder.tokenize(text),
            [&[2], expected, &[3]].concat(),
            "{text:?}"
        );
    }
    assert_eq!(
        encoder.tokenize(&"e".repeat(101)),
        [2, 1, 3],
        "a word of more than 100 letters is unknown"
    );
    assert_eq!(encoder.tokenize(&"e".repeat(100)).len(), 12);
}

#[test]
fn a_fingerprint_follows_weights_and_vocabulary() {
    let config = config();
    let tokenizer = tokenizer(&[]);
    let weights = weights(&tensors());
    let of = |tokenizer: &str, weights: &[u8]| {
        let encoder = MiniLm::from_bytes(config.as_bytes(), tokenizer.as_bytes(), weights).unwrap();
        encoder.fingerprint().to_owned()
    };
    let original = of(&tokenizer, &weights);
    assert_eq!(original.len(), 64);
    assert_eq!(original, of(&tokenizer, &weights));
    assert_ne!(original, of(&format!("{tokenizer} "), &weights));
    let mut changed = weights.clone();
    *changed.last_mut().unwrap() ^= 1;
    assert_ne!(original, of(&tokenizer, &changed));
}

#[test]
fn another_architecture_is_refused_by_name() {
    let config = config();
    let tokens = tokenizer(&[]);
    let weights = weights(&tensors());
    let with = |from: &str, to: &str| {
        assert!(config.contains(from), "{from}");
        refusal(
            config.replace(from, to).as_bytes(),
            tokens.as_bytes(),
            &weights,
        )
    };
    assert_eq!(
        with("\"bert\"", "\"mpnet\""),
        "config.json: model_type is \"mpnet\", but only \"bert\" is supported"
    );
    assert_eq!(
        with("\"gelu\"", "\"relu\""),
        "config.json: hidden_act is \"relu\", but only \"gelu\" is supported"
    );
    assert!(
        with("\"num_attention_heads\": 4", "\"num_attention_heads\": 3")
            .contains("a divisor of hidden_size")
    );
    assert!(
        with("\"num_attention_heads\": 4", "\"num_attention_heads\": 0")
            .contains("is 0, but only 1 to")
    );
    assert!(with("\"hidden_size\"", "\"dim\"").contains("missing field `hidden_size`"));
    let error = with("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3");
    assert!(
        error.contains("no tensor encoder.layer.2.attention.self.query.weight"),
        "{error}"
    );
    let error = with("\"vocab_size\": 30", "\"vocab_size\": 31");
    assert!(
        error.contains("embeddings.word_embeddings.weight is F32 [30, 16]"),
        "{error}"
    );
    assert!(error.contains("calls for F32 [31, 16]"), "{error}");

    let with = |from: &str, to: &str| {
        assert!(tokens.contains(from), "{from}");
        refusal(
            config.as_bytes(),
            tokens.replace(from, to).as_bytes(),
            &weights,
        )
    };
    assert!(with("\"WordPiece\"", "\"BPE\"").contains("model.type is \"BPE\""));
    assert!(with("\"BertPreTokenizer\"", "\"Metaspace\"").contains("pre_tokenizer.type"));
    assert!(with("\"[SEP]\"", "\"</s>\"").contains("one that holds [SEP]"));
    assert!(with("\"t29\":29", "\"t29\":30").contains("a token's number is 30"));
}

#[test]
fn a_damaged_weights_file_is_an_error() {
    let config = config();
    let tokens = tokenizer(&[]);
    let refuse = |weights: &[u8]| refusal(config.as_bytes(), tokens.as_bytes(), weights);
    let good = weights(&tensors());
    assert!(refuse(b"").contains("model.safetensors"));
    assert!(refuse(&good[..good.len() - 1]).contains("model.safetensors"));
    let mut huge = good.clone();
    huge[..8].copy_from_slice(&(90u64 << 20).to_le_bytes());
    assert!(refuse(&huge).contains("header claims 94371840 bytes"));
    huge[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(refuse(&huge).contains("header claims"));

    let mut nan = tensors();
    nan.iter_mut()
        .find(|t| t.0.ends_with("query.weight"))
        .unwrap()
        .2[3] = f32::NAN;
    assert!(refuse(&weights(&nan)).contains("query.weight holds a value that is not finite"));
}

#[test]
fn no_change_of_bytes_brings_it_down() {
    let config = config();
    let tokens = tokenizer(&[]);
    let good = weights(&tensors());
    let mut random = efface::random::seeded(4);
    for _ in 0..600 {
        let mut files = [
            config.clone().into_bytes(),
            tokens.clone().into_bytes(),
            good.clone(),
        ];
        let file = random.random_range(0..3);
        for _ in 0..random.random_range(1..4) {
            let end = files[file].len().min(4096);
            files[file][random.random_range(0..end)] = random.random();
        }
        if let Ok(encoder) = MiniLm::from_bytes(&files[0], &files[1], &files[2]) {
            let _ = encoder.encode(&TEXTS, &quiet);
        }
    }
}

#[test]
fn a_folder_that_lacks_a_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("config.json"), config()).unwrap();
    let error = MiniLm::open(folder.path()).expect_err("no tokenizer");
    assert!(
        matches!(
            &error,
            MiniLmError::Read {
                file: "tokenizer.json",
                ..
            }
        ),
        "{error}"
    );
    for (file, bytes) in tiny_bert::folder(weights(&tensors())) {
        std::fs::create_dir_all(folder.path().join("1_Pooling")).unwrap();
        std::fs::write(folder.path().join(file), bytes).unwrap();
    }
    assert_eq!(MiniLm::open(folder.path()).unwrap().width(), 16);
    for file in ["modules.json", "1_Pooling/config.json"] {
        let path = folder.path().join(file);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let error = MiniLm::open(folder.path())
            .expect_err("no modules")
            .to_string();
        assert!(error.contains(&format!("cannot read {file}")), "{error}");
        std::fs::write(&path, bytes).unwrap();
    }
}

/// The features of a folder are those that its own files ask for, or it is refused; folders of
/// other features have other fingerprints.
#[test]
fn a_folder_decides_how_vectors_become_one() {
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, bytes: &[u8]| std::fs::write(folder.path().join(file), bytes).unwrap();
    std::fs::create_dir_all(folder.path().join("1_Pooling")).unwrap();
    for (file, bytes) in tiny_bert::folder(weights(&tensors())) {
        write(file, &bytes);
    }
    let open = || MiniLm::open(folder.path());
    let unit = open().unwrap();
    assert_eq!(unit.fingerprint(), model().fingerprint());
    write("modules.json", modules(false).as_bytes());
    let plain = open().unwrap();
    assert_ne!(unit.fingerprint(), plain.fingerprint());
    let rows = table(plain.encode(&TEXTS, &quiet).unwrap());
    for (slot, expected) in TINY.iter().enumerate() {
        let found = row(&rows, slot);
        let length = found.iter().map(|x| x * x).sum::<f64>().sqrt();
        assert!(
            (length - 1.0).abs() > 1e-3,
            "text {slot} has length {length}"
        );
        for (found, expected) in found.iter().zip(expected) {
            assert!((found / length - expected).abs() < 1e-6, "text {slot}");
        }
    }
    write("modules.json", modules(true).as_bytes());
    let few_heads = config().replace("\"num_attention_heads\": 4", "\"num_attention_heads\": 2");
    write("config.json", few_heads.as_bytes());
    assert_ne!(unit.fingerprint(), open().unwrap().fingerprint());
    // Other fields of the configuration change no output.
    let versioned = config().replacen('{', "{\"transformers_version\": \"5\",", 1);
    write("config.json", versioned.as_bytes());
    assert_eq!(unit.fingerprint(), open().unwrap().fingerprint());

    for (file, bytes, says) in [
        (
            "1_Pooling/config.json",
            pooling("cls_token"),
            "pooling_mode is cls_token",
        ),
        (
            "1_Pooling/config.json",
            pooling("none"),
            "pooling_mode is none",
        ),
        (
            "1_Pooling/config.json",
            pooling("max_tokens").replace("mean_tokens\": false", "mean_tokens\": true"),
            "mean_tokens and max_tokens",
        ),
        ("modules.json", "[]".into(), "modules.json: type is"),
        (
            "modules.json",
            modules(true).replace("Normalize\"", "Dense\""),
            "Pooling, Dense",
        ),
        (
            "modules.json",
            modules(true).replace("\"path\": \"\"", "\"path\": \"..\""),
            "path is",
        ),
        (
            "sentence_bert_config.json",
            "{\"do_lower_case\": true}".into(),
            "do_lower_case is true",
        ),
        (
            "config_sentence_transformers.json",
            "{\"default_prompt_name\": \"query\"}".into(),
            "default_prompt_name is",
        ),
    ] {
        let path = folder.path().join(file);
        let before = std::fs::read(&path).ok();
        write(file, bytes.as_bytes());
        let error = open().expect_err(says).to_string();
        assert!(error.contains(says), "{error}");
        match before {
            Some(before) => write(file, &before),
            None => std::fs::remove_file(&path).unwrap(),
        }
    }
    open().unwrap();
}

fn real() -> Option<MiniLm> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let folder = std::env::var_os("EFFACE_MINILM").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| here.join("../../../shared/models/all-MiniLM-L6-v2"));
    if !folder.join("model.safetensors").exists() {
        eprintln!(
            "skipped: no encoder in {}; name its folder in EFFACE_MINILM",
            folder.display()
        );
        return None;
    }
    Some(MiniLm::open(&folder).unwrap())
}

/// SentenceTransformer(folder).encode with max_seq_length 256: every 48th number, and the tokens.
#[test]
fn the_real_encoder_gives_what_sentence_transformers_gives() {
    let Some(encoder) = real() else { return };
    let long_word = format!("{} after a word too long", "x".repeat(150));
    let long_text = (0..400)
        .map(|k| format!("word{}", k % 37))
        .collect::<Vec<_>>()
        .join(" ");
    let cases: [(&str, [f64; 8]); 12] = [
        (
            "The cat sat on the mat.",
            [
                0.1302372, 0.0545248, -0.0150722, -0.0072630, -0.0043897, -0.0907815, -0.0201941,
                -0.1016732,
            ],
        ),
        (
            "A quick brown fox jumps over the lazy dog!",
            [
                0.0164992, 0.0137297, 0.0093852, -0.0159425, 0.1232837, 0.0721838, -0.0222095,
                -0.0219183,
            ],
        ),
        (
            "",
            [
                -0.1188384, 0.0633241, 0.0290422, 0.0079641, -0.0864779, 0.0696884, -0.0227468,
                -0.1047210,
            ],
        ),
        (
            "tv future in the hands of viewers",
            [
                -0.0130308, -0.0465520, -0.0160640, -0.0480853, -0.0603059, 0.0737848, 0.0046839,
                -0.0479327,
            ],
        ),
        (
            "Ärger mit Ümläuten: naïve café, Größe, ﬁne",
            [
                0.0334445, -0.0383909, 0.0720708, 0.1058819, -0.0105719, 0.1158985, 0.0645925,
                0.0189231,
            ],
        ),
        (
            "中文 mixed with English, 東京タワー",
            [
                -0.0249277, -0.0854096, 0.0090826, 0.0288175, 0.0437953, 0.1252373, 0.0602879,
                -0.0233318,
            ],
        ),
        (
            "supercalifragilisticexpialidocious antidisestablishmentarianism",
            [
                0.0398673, -0.0117793, -0.0107527, -0.0290867, -0.0289987, 0.0986509, 0.0557836,
                0.0639788,
            ],
        ),
        (
            &long_word,
            [
                -0.0183742, 0.0622693, -0.0022694, -0.0310365, 0.0193225, 0.1513526, 0.0575191,
                0.0421495,
            ],
        ),
        (
            "don't [MASK] me; e-mail me@example.com (50% off) $3.99",
            [
                -0.0934400, -0.0254466, 0.0491265, 0.0139104, 0.0210257, 0.0724117, 0.0338978,
                0.0281142,
            ],
        ),
        (
            "tab\tnew\nline\u{0}null\u{200b}zero-width\u{fffd} and \u{ad} soft",
            [
                -0.0325698, 0.0377525, -0.0635342, -0.0955532, 0.0522865, -0.0699167, 0.0779772,
                -0.0278736,
            ],
        ),
        (
            "İstanbul Ǆ ß ſ K Å 😀 emoji — dash “quotes” ‘x’ … ¿qué?",
            [
                -0.0108268, -0.0154846, 0.0626494, 0.0851499, 0.0877828, 0.0681110, 0.0279890,
                0.0101162,
            ],
        ),
        (
            &long_text,
            [
                0.0069437, -0.0286975, 0.0778058, -0.0573650, 0.1125261, 0.0356498, 0.1313027,
                0.0042926,
            ],
        ),
    ];
    let texts = cases.map(|(text, _)| text);
    let rows = table(encoder.encode(&texts, &quiet).unwrap());
    for (slot, (text, expected)) in cases.iter().enumerate() {
        let found = row(&rows, slot);
        for (found, expected) in found.iter().step_by(48).zip(expected) {
            assert!(
                (found - expected).abs() < 1e-5,
                "{text:?}: {found} where {expected} was expected"
            );
        }
    }
    let tokens = encoder.tokenize(texts[8]);
    let expected = [
        101, 2123, 1005, 1056, 103, 2033, 1025, 1041, 1011, 5653, 2033, 1030, 2742, 1012, 4012,
        1006, 2753, 1003, 2125, 1007, 1002, 1017, 1012, 5585, 102,
    ];
    assert_eq!(tokens, expected);
    let tokens = encoder.tokenize(&long_text);
    assert_eq!((tokens.len(), tokens.iter().sum::<u32>()), (256, 2_014_073));
}
