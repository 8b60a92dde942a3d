//! A pretrained encoder from the command line: a tiny one that this test writes, and the real one
//! where a folder is named in EFFACE_MINILM.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should stop and say where"
)]

mod common;
#[path = "../../efface-nn/tests/support/tiny_bert.rs"]
#[allow(dead_code)]
mod tiny_bert;

use std::path::PathBuf;

use common::Folder;

fn write_encoder(folder: &Folder, name: &str, tensors: &[(String, Vec<usize>, Vec<f32>)]) {
    std::fs::create_dir_all(folder.path(name).join("1_Pooling")).unwrap();
    for (file, bytes) in tiny_bert::folder(tiny_bert::weights(tensors)) {
        folder.write(&format!("{name}/{file}"), bytes);
    }
}

/// Two classes of texts that hold one token or another.
fn table(n: usize) -> String {
    let mut table = String::from("doc,kind,text\n");
    for i in 0..n {
        let (own, kind) = [("t7", "odd"), ("t8", "even")][i % 2];
        table.push_str(&format!(
            "d{i},{kind},t{} {own} t{} {own}\n",
            9 + i % 11,
            10 + i % 7
        ));
    }
    table
}

fn folder() -> Folder {
    let folder = Folder::new();
    write_encoder(&folder, "bert", &tiny_bert::tensors());
    folder.write("docs.csv", table(40));
    folder
}

const FIT: &str = "fit docs.csv --model minilm --text text --target kind --id doc --lambda 0.01";

#[test]
fn nothing_is_left_uncovered() {
    let folder = folder();
    let report = folder.json(&format!("{FIT} --encoder bert --json"));
    assert_eq!(report["summary"]["model"], "minilm with ridge head");
    assert_eq!(
        (
            &report["summary"]["features"],
            &report["summary"]["network"]["max_tokens"]
        ),
        (&16.into(), &12.into())
    );
    let report = folder.json("forget docs.efface --ids d3,d4 --json");
    assert_eq!(
        (&report["method"], &report["claim"]),
        (&"exact".into(), &"exact".into())
    );
    // That a row was forgotten is remembered, by a salted hash. The encoder owes the row nothing,
    // nor do its words, nor do the units that the head calculates in: they are those of the
    // encoder.
    let rest = |report: &serde_json::Value| {
        let evidence = &report["evidence"];
        let lists = [&evidence["not_covered"], &evidence["kept_beside"]];
        let left = lists
            .into_iter()
            .flat_map(|list| list.as_array().unwrap().clone());
        let other = |what: &serde_json::Value| {
            what["code"] != "forgotten_ids" && what["code"] != "storage_blocks"
        };
        left.filter(other).collect::<Vec<_>>()
    };
    assert_eq!(rest(&report), Vec::<serde_json::Value>::new());
    folder.done(&format!(
        "{FIT} --encoder bert --head softmax -o soft.efface"
    ));
    let report = folder.json("forget soft.efface --ids d3,d4 --method retrain_head --json");
    assert_eq!(rest(&report), Vec::<serde_json::Value>::new());
    folder.write("more.csv", "doc,kind,text\nn1,odd,t7 t7\nn2,even,\n");
    folder.done("learn docs.efface more.csv");
    folder.write("fix.csv", "doc,kind,text\nd5,even,t8 t9 t8\n");
    folder.done("amend docs.efface fix.csv");
    folder.done("forget docs.efface --ids d6 --method retrain");
    folder.done("verify docs.efface");
    folder.done("export docs.efface --format onnx");
    folder.done("export docs.efface --format safetensors");
    let out = folder.done("predict docs.efface docs.csv");
    let right = out.lines().skip(1).filter(|line| {
        let mut fields = line.split(',');
        let number: usize = fields.next().unwrap()[1..].parse().unwrap();
        fields.next() == Some(["odd", "even"][number % 2])
    });
    assert!(right.count() > 34, "{out}");
    let page = folder.done("inspect docs.efface");
    assert!(page.contains("pretrained, 2 layers, fingerprint"), "{page}");
}

#[test]
fn the_encoder_is_found_again_or_refused() {
    let folder = folder();
    folder.done(&format!("{FIT} --encoder bert --head softmax"));
    let before = folder.done("predict docs.efface docs.csv");
    std::fs::rename(folder.path("bert"), folder.path("moved")).unwrap();
    folder.fails(
        "predict docs.efface docs.csv",
        7,
        &["cannot read config.json in", "--encoder DIR"],
    );
    assert_eq!(
        before,
        folder.done("predict docs.efface docs.csv --encoder moved")
    );
    // Forgetting is the head's matter and needs no encoder.
    folder.done("forget docs.efface --ids d3");
    let mut tensors = tiny_bert::tensors();
    tensors[3].2[0] += 0.125;
    write_encoder(&folder, "other", &tensors);
    folder.fails(
        "predict docs.efface docs.csv --encoder other",
        5,
        &[
            "is another one than the model was fitted with",
            "fingerprint",
        ],
    );
    folder.write("more.csv", "doc,kind,text\nn1,odd,t7 t7\n");
    folder.fails(
        "learn docs.efface more.csv --encoder other",
        5,
        &["is another one"],
    );
    // The weights alone do not make the encoder: settings and pooling change its output too.
    write_encoder(&folder, "heads", &tiny_bert::tensors());
    folder.write(
        "heads/config.json",
        tiny_bert::config().replace("\"num_attention_heads\": 4", "\"num_attention_heads\": 2"),
    );
    write_encoder(&folder, "lengths", &tiny_bert::tensors());
    folder.write("lengths/modules.json", tiny_bert::modules(false));
    for other in ["heads", "lengths"] {
        folder.fails(
            &format!("predict docs.efface docs.csv --encoder {other}"),
            5,
            &["is another one"],
        );
        folder.fails(
            &format!("learn docs.efface more.csv --encoder {other}"),
            5,
            &["is another one"],
        );
    }
    folder.done("learn docs.efface more.csv --encoder moved");
}

#[test]
fn folders_that_are_no_encoder() {
    let folder = folder();
    let fit = |name: &str| format!("{FIT} --encoder {name}");
    folder.fails(&fit("nowhere"), 7, &["cannot read config.json"]);
    std::fs::remove_file(folder.path("bert/tokenizer.json")).unwrap();
    folder.fails(&fit("bert"), 7, &["cannot read tokenizer.json"]);
    write_encoder(&folder, "foreign", &tiny_bert::tensors());
    folder.write(
        "foreign/config.json",
        tiny_bert::config().replace("\"bert\"", "\"gpt2\""),
    );
    folder.fails(&fit("foreign"), 3, &["model_type is \"gpt2\""]);
    let mut tensors = tiny_bert::tensors();
    let words = tensors
        .iter_mut()
        .find(|(name, ..)| name.contains("word_embeddings"))
        .unwrap();
    words.1.reverse();
    write_encoder(&folder, "shapes", &tensors);
    folder.fails(&fit("shapes"), 3, &["config.json calls for"]);
    write_encoder(&folder, "huge", &tiny_bert::tensors());
    let mut bytes = std::fs::read(folder.path("huge/model.safetensors")).unwrap();
    bytes[..8].copy_from_slice(&(1u64 << 60).to_le_bytes());
    folder.write("huge/model.safetensors", bytes);
    folder.fails(&fit("huge"), 3, &["model.safetensors"]);
    write_encoder(&folder, "good", &tiny_bert::tensors());
    folder.fails(
        &format!("{} --max-tokens 13", fit("good")),
        2,
        &["choose from 3 to 12"],
    );
    folder.fails(&format!("{} --sisa 2x1", fit("good")), 2, &["--sisa"]);
    write_encoder(&folder, "first", &tiny_bert::tensors());
    folder.write(
        "first/1_Pooling/config.json",
        tiny_bert::pooling("cls_token"),
    );
    folder.fails(
        &fit("first"),
        3,
        &[
            "1_Pooling/config.json: pooling_mode is cls_token",
            "mean_tokens",
        ],
    );
    assert!(!folder.path("docs.efface").exists());
}

#[test]
fn the_real_encoder_on_a_few_news() {
    let data = std::env::var_os("EFFACE_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let (Some(encoder), Ok(news)) = (
        std::env::var("EFFACE_MINILM").ok(),
        std::fs::read_to_string(data.join("bbc/bbc-text.csv")),
    ) else {
        eprintln!(
            "skipped: name the folder of all-MiniLM-L6-v2 in EFFACE_MINILM, and have the BBC news"
        );
        return;
    };
    let folder = Folder::new();
    let lines: Vec<&str> = news.lines().collect();
    folder.write("train.csv", lines[..121].join("\n"));
    let test: Vec<&str> = lines[..1].iter().chain(&lines[121..161]).copied().collect();
    folder.write("test.csv", test.join("\n"));
    let fit = "fit train.csv --model minilm --text text --target category --max-tokens 128";
    folder.done(&format!("{fit} --encoder {encoder}"));
    let out = folder.done("predict train.efface test.csv");
    let pairs = out.lines().skip(1).zip(test.iter().skip(1));
    let right = pairs
        .filter(|(line, row)| line.split(',').nth(1) == row.split(',').next())
        .count();
    assert!(right >= 34, "{right} of 40");
}
