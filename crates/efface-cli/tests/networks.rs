//! Networks from the command line: tiny ones, on texts of a few words.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop and say where"
)]

mod common;

use std::fmt::Write;

use common::Folder;

/// Texts of filler words with two words of their class somewhere; `n` of them in three classes, of
/// seven people.
fn texts(from: usize, n: usize) -> String {
    let filler = ["the", "of", "and", "to", "in", "for", "on", "with"];
    let mut table = String::from("doc,author,topic,text\n");
    for i in from..from + n {
        let length = 4 + i * 5 % 9;
        let mut words: Vec<String> = (0..length)
            .map(|t| filler[(i * 3 + t * 5) % 8].to_string())
            .collect();
        words[i % length] = format!("{}a", ["sea", "sky", "soil"][i % 3]);
        words[(i * 7 + 2) % length] = format!("{}b", ["sea", "sky", "soil"][i % 3]);
        let topic = ["fish", "bird", "worm"][i % 3];
        writeln!(table, "d{i},p{},{topic},{}", i % 7, words.join(" ")).unwrap();
    }
    table
}

const COLUMNS: &str = "--text text --target topic --id doc --subject author";
const TINY: &str =
    "--hidden 8 --embedding-width 6 --epochs 4 --batch 8 --learning-rate 0.02 --threads 1";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("docs.csv", texts(0, 60));
    folder
}

/// Right answers among the predictions for `docs.csv`.
fn hits(folder: &Folder, model: &str) -> usize {
    let out = folder.done(&format!("predict {model} docs.csv"));
    let right = |line: &&str| {
        let fields: Vec<&str> = line.split(',').collect();
        let number: usize = fields[0][1..].parse().unwrap();
        fields[1] == ["fish", "bird", "worm"][number % 3]
    };
    out.lines().skip(1).filter(right).count()
}

#[test]
fn a_bilstm_learns_forgets_learns_again_and_leaves() {
    let folder = folder();
    let report = folder.json(&format!(
        "fit docs.csv --model bilstm {COLUMNS} {TINY} --json"
    ));
    let summary = &report["summary"];
    assert_eq!(summary["model"], "bilstm with ridge head");
    assert_eq!(
        (&summary["features"], &summary["network"]["encoder"]["kind"]),
        (&16.into(), &"lstm".into())
    );
    assert_eq!(
        summary["network"]["encoder"]["history"]
            .as_array()
            .unwrap()
            .len(),
        4
    );
    assert!(hits(&folder, "docs.efface") > 50);
    let page = folder.done("inspect docs.efface --explain");
    for part in [
        "bilstm, 1 layer of 8, max pooling",
        "kept epoch",
        "what it learned of a row stays",
        "which words have",
    ] {
        assert!(page.contains(part), "{page}");
    }

    let codes = |report: &serde_json::Value| {
        let left = report["evidence"]["not_covered"].as_array().unwrap();
        left.iter()
            .map(|what| what["code"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let report = folder.missed("forget docs.efface --subject author=p3 --json");
    assert_eq!(
        (&report["method"], &report["claim"]),
        (&"exact".into(), &"approximate".into())
    );
    assert!(report["evidence"]["relative_bound"].is_null());
    let head = &report["evidence"]["head_bound"]["relative_bound"];
    assert!(head.as_f64().unwrap() < 1e-9);
    assert_eq!(codes(&report), ["encoder_training", "encoder_words"]);
    let page = folder.done("inspect docs.efface");
    for part in [
        "not known: nothing bounds the encoder",
        "on the features of this encoder",
        "its figures went with the rows that left",
    ] {
        assert!(page.contains(part), "{page}");
    }
    let page = folder.done("verify docs.efface");
    let words: Vec<&str> = page.split_whitespace().collect();
    assert!(
        words.join(" ").contains("nothing bounds the encoder"),
        "{page}"
    );
    folder.write("more.csv", texts(60, 3));
    let report = folder.missed("learn docs.efface more.csv --json");
    assert_eq!(
        (&report["learned"], &report["claim"]),
        (&3.into(), &"approximate".into())
    );
    assert_eq!(
        codes(&report),
        ["encoder_training", "encoder_untrained", "encoder_words"]
    );
    folder.write(
        "fix.csv",
        "doc,author,topic,text\nd1,p1,bird,skya skyb the skya\n",
    );
    folder.missed("amend docs.efface fix.csv --json");
    assert!(folder.done("verify docs.efface").contains("training set"));
    assert!(hits(&folder, "docs.efface") > 50);

    folder.done("export docs.efface --format safetensors");
    folder.done("export docs.efface --format onnx");
    let head = folder.json("export docs.efface");
    assert_eq!(
        head["coefficients"]["feature 0"].as_array().unwrap().len(),
        3
    );
    let bytes = std::fs::read(folder.path("docs.safetensors")).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(file.tensor("coefficients").unwrap().shape(), [16, 3]);
    assert!(file.tensor("layer.0.forward.weight_input").is_ok() && file.tensor("words").is_ok());
}

#[test]
fn every_method_of_the_head_and_the_whole_network() {
    let folder = folder();
    folder.done(&format!(
        "fit docs.csv --model lstm --layers 2 {COLUMNS} {TINY}"
    ));
    let methods = [
        "exact",
        "newton",
        "influence",
        "projection_residual",
        "summation",
        "retrain_head",
    ];
    for (at, method) in methods.iter().enumerate() {
        let line = format!("forget docs.efface --ids d{at} --method {method} --json");
        let report = match *method {
            "influence" | "projection_residual" => folder.json(&line),
            _ => folder.missed(&line),
        };
        assert_eq!(
            (&report["method"], &report["claim"]),
            (&(*method).into(), &"approximate".into())
        );
        assert!(
            report["evidence"]["not_covered"]
                .to_string()
                .contains("what the encoder learned")
        );
    }
    let rounds = "--method projection_residual --rounds 3 --step 0.5 --tolerance 0";
    let report = folder.json(&format!("forget docs.efface --ids d10 {rounds} --json"));
    assert_eq!(report["evidence"]["iterations"], 3);
    folder.fails(
        "forget docs.efface --ids d11 --rounds 3",
        2,
        &["--method projection_residual"],
    );
    folder.fails(
        "forget docs.efface --ids d11 --method warm_start",
        5,
        &["use exact"],
    );

    let before = folder.done("predict docs.efface docs.csv");
    let report = folder.json("forget docs.efface --ids d20,d21 --method retrain --json");
    assert_eq!(
        (&report["method"], &report["claim"]),
        (&"retrain".into(), &"exact".into())
    );
    assert!(
        !report["evidence"]["not_covered"]
            .to_string()
            .contains("what the encoder learned")
    );
    assert_ne!(before, folder.done("predict docs.efface docs.csv"));
    folder.done("verify docs.efface");

    // What is left is, to the last digit, a network that was fitted without the rows, but for the
    // choice of words.
    let gone: Vec<String> = [0, 1, 2, 3, 4, 5, 10, 20, 21]
        .iter()
        .map(|at| format!("d{at},"))
        .collect();
    let all = texts(0, 60);
    let kept = all
        .lines()
        .filter(|line| !gone.iter().any(|id| line.starts_with(id.as_str())));
    folder.write("kept.csv", kept.collect::<Vec<_>>().join("\n"));
    folder.done(&format!(
        "fit kept.csv --model lstm --layers 2 {COLUMNS} {TINY}"
    ));
    assert_eq!(
        folder.done("predict docs.efface docs.csv"),
        folder.done("predict kept.efface docs.csv")
    );
}

#[test]
fn methods_that_train_a_network_further() {
    let folder = folder();
    folder.done(&format!("fit docs.csv --model bilstm {COLUMNS} {TINY}"));
    let settings = [
        ("fine_tune", "--epochs 2 --learning-rate 0.01"),
        ("neggrad_plus", "--epochs 2 --alpha 0.9 --loss-cap 30"),
        ("scrub", "--epochs 3 --max-epochs 1 --alpha 0.1 --gamma 1"),
    ];
    for (at, (method, options)) in settings.iter().enumerate() {
        let report = folder.json(&format!(
            "forget docs.efface --ids d{at} --method {method} {options} --json"
        ));
        assert_eq!(
            (&report["method"], &report["claim"]),
            (&(*method).into(), &"approximate".into())
        );
        assert!(report["evidence"]["relative_bound"].is_null());
        assert!(
            report["evidence"]["not_covered"]
                .to_string()
                .contains("nothing bounds what is left")
        );
    }
    let page = folder.run("forget docs.efface --ids d5 --method fine_tune --epochs 1 --explain");
    assert!(
        page.err.contains("fine_tune") && page.err.contains("not covered: what the network"),
        "{page:?}"
    );
    assert!(folder.done("verify docs.efface").contains("training set"));
    assert!(hits(&folder, "docs.efface") > 45);
    folder.fails(
        "forget docs.efface --ids d9 --method scrub --epochs 0",
        2,
        &["epochs = 0", "at least 1"],
    );
    folder.fails(
        "forget docs.efface --ids d9 --method neggrad_plus --alpha 1",
        2,
        &["alpha = 1", "below 1"],
    );
    folder.fails(
        "forget docs.efface --ids d9 --method fine_tune --gamma 1",
        2,
        &["gamma has no meaning"],
    );
    folder.fails(
        "forget docs.efface --ids d9 --epochs 3",
        2,
        &["fine_tune, neggrad_plus or scrub"],
    );
    folder.fails(
        "forget docs.efface --ids d9 --method scrub --tolerance 1e-3",
        2,
        &["bounds nothing"],
    );
}

#[test]
fn a_tolerance_trains_the_network_anew_unless_that_takes_too_long() {
    let folder = folder();
    folder.done(&format!("fit docs.csv --model bilstm {COLUMNS} {TINY}"));
    let before = std::fs::read(folder.path("docs.efface")).unwrap();
    folder.fails(
        "forget docs.efface --ids d1 --tolerance 1e-3 --at-most 0s",
        5,
        &[
            "training the network anew takes about",
            "0 s are allowed; nothing was changed",
            "retrain, about",
            "s: exact",
            "auto, about",
            "approximate; only the head forgets",
            "scrub, about",
            "--at-most",
        ],
    );
    assert!(before == std::fs::read(folder.path("docs.efface")).unwrap());
    folder.fails(
        "forget docs.efface --ids d1 --at-most 1h",
        2,
        &["a limit of time", "leave out --at-most"],
    );
    let report = folder.json("forget docs.efface --ids d1 --tolerance 1e-3 --at-most 1h --json");
    assert_eq!(
        (&report["method"], &report["claim"]),
        (&"retrain".into(), &"exact".into())
    );
    assert!(report["evidence"]["head_bound"].is_null());
    folder.done("verify docs.efface --rows");
    // A tolerance that the whole network trained anew misses, and one that a new head misses.
    for (options, method) in [("", "retrain"), ("--epochs 0 ", "exact")] {
        let fit = format!(
            "fit docs.csv --model bilstm {COLUMNS} {TINY} --force --discard-log --drop-suppressed"
        );
        folder.done(&match options {
            "" => fit,
            _ => fit.replace("--epochs 4 ", options),
        });
        let report = folder.missed("forget docs.efface --ids d2 --tolerance 1e-300 --json");
        assert_eq!(
            (&report["claim"], &report["tolerance"], &report["rows"]),
            (&"approximate".into(), &1e-300.into(), &59.into()),
            "{report}"
        );
        assert!(
            report["method"] == method || report["method"] == "retrain_head",
            "{report}"
        );
        folder.done("verify docs.efface --rows");
    }
}

#[test]
fn words_of_forgotten_rows_go_with_every_forget_and_noise_reaches_no_encoder() {
    let folder = Folder::new();
    let marked = "m1,anne,fish,seaa seab markerone\nm2,bert,bird,skya skyb markertwo\n";
    folder.write("docs.csv", texts(0, 40) + marked);
    folder.done(&format!("fit docs.csv --model bilstm {COLUMNS} {TINY}"));
    folder.done("policy docs.efface --settle-after 10");
    let found = |name: &str| {
        let bytes = std::fs::read(folder.path("docs.efface")).unwrap();
        bytes
            .windows(name.len())
            .any(|window| window == name.as_bytes())
    };
    // A row that waits: what is said of it does not promise that its words go with it.
    let report = folder.missed("forget docs.efface --ids m1 --json");
    let kept = report["evidence"]["kept_beside"].to_string();
    assert!(
        kept.contains("the next settle erases them") && !kept.contains("they alone held"),
        "{kept}"
    );
    let left = report["evidence"]["not_covered"].to_string();
    assert!(left.contains("lose their names"), "{left}");
    assert!(!found("markerone") && found("markertwo"));
    folder.done("settle docs.efface");
    assert!(!found("anne"));
    let page = folder.done("inspect docs.efface");
    assert!(page.contains("nothing bounds the encoder"), "{page}");
    let report = folder.json("forget docs.efface --ids d3 --method retrain --json");
    let left = report["evidence"]["not_covered"].as_array().unwrap();
    assert_eq!(
        left.iter()
            .filter(|what| what["code"] == "encoder_words")
            .count(),
        1
    );
    assert!(!found("markerone") && found("markertwo"));
    folder.done("verify docs.efface");
    folder.done("predict docs.efface docs.csv");
    folder.missed("forget docs.efface --ids m2 --json");
    for format in ["onnx", "safetensors"] {
        folder.done(&format!(
            "export docs.efface --format {format} --expose-forgotten"
        ));
        let bytes = std::fs::read(folder.path(&format!("docs.{format}"))).unwrap();
        let holds = |name: &[u8]| bytes.windows(name.len()).any(|window| window == name);
        assert!(holds(b"seaa") && !holds(b"markerone") && !holds(b"markertwo"));
    }
    // The encoder leaves as it is, so that under noise it stays.
    folder.done("policy docs.efface --noise 0.1");
    for format in ["onnx", "safetensors"] {
        folder.fails(
            &format!("export docs.efface --format {format} --force"),
            5,
            &["gets no noise", "json"],
        );
    }
    folder.done("export docs.efface --format npz");
}

#[test]
fn a_softmax_head_and_a_network_in_shards() {
    let folder = folder();
    folder.done(&format!(
        "fit docs.csv --model bilstm --head softmax {COLUMNS} {TINY}"
    ));
    folder.done("forget docs.efface --ids d1 --method newton");
    for (id, method) in [("d2", "warm_start"), ("d3", "auto")] {
        folder.missed(&format!(
            "forget docs.efface --ids {id} --method {method} --json"
        ));
    }
    folder.fails("forget docs.efface --ids d4 --method exact", 5, &["newton"]);
    let rounds = "--method projection_residual --rounds 2";
    assert_eq!(
        folder.json(&format!("forget docs.efface --ids d5 {rounds} --json"))["evidence"]["iterations"],
        2
    );
    folder.done("verify docs.efface");
    assert!(hits(&folder, "docs.efface") > 45);

    folder.done(&format!(
        "fit docs.csv --model bilstm --sisa 2x2 {COLUMNS} {TINY} -o shards.efface"
    ));
    let report = folder.json("forget shards.efface --subject author=p2 --json");
    let left = report["evidence"]["not_covered"].to_string();
    assert!(
        left.contains("a new fit of the rows that stay chooses them anew"),
        "{left}"
    );
    assert_eq!(
        (&report["method"], &report["claim"]),
        (&"sisa".into(), &"exact".into())
    );
    assert!(
        !report["evidence"]["not_covered"]
            .to_string()
            .contains("what the encoder learned")
    );
    folder.write("more.csv", texts(60, 3));
    folder.done("learn shards.efface more.csv");
    folder.write(
        "fix.csv",
        "doc,author,topic,text\nd1,p1,bird,skya skyb the skya\n",
    );
    folder.done("amend shards.efface fix.csv");
    folder.done("verify shards.efface");
    assert!(
        folder
            .done("inspect shards.efface")
            .contains("2 shards of 2 slices")
    );
    assert!(hits(&folder, "shards.efface") > 30);
    folder.fails("export shards.efface", 5, &["shards"]);
    folder.fails(
        "forget shards.efface --ids d1 --method exact",
        5,
        &["exact cannot be used here", "use sisa"],
    );
}

#[test]
fn vectors_from_files_owe_nothing_to_the_rows() {
    let folder = folder();
    let words = [
        "the", "of", "seaa", "seab", "skya", "skyb", "soila", "soilb",
    ];
    let numbers = |at: usize| [at as f32 * 0.25 - 1.0, (at % 3) as f32 - 1.0, 0.5];
    let glove: String = words
        .iter()
        .enumerate()
        .map(|(at, word)| format!("{word} {}\n", numbers(at).map(|n| n.to_string()).join(" ")))
        .collect();
    folder.write("glove.txt", glove);
    let tiny = "--hidden 8 --epochs 2 --batch 8 --threads 1";
    folder.done(&format!(
        "fit docs.csv --model bilstm {COLUMNS} {tiny} --embeddings glove.txt"
    ));
    let page = folder.done("inspect docs.efface");
    assert!(
        page.contains("8 words of 3 numbers, from a file, frozen"),
        "{page}"
    );
    assert!(!page.contains("which words have a vector"), "{page}");
    // An encoder that was never trained owes nothing to any row either.
    let drawn = "--embeddings glove.txt --epochs 0 --force --discard-log";
    folder.done(&format!(
        "fit docs.csv --model bilstm {COLUMNS} --hidden 8 {drawn}"
    ));
    let report = folder.json("forget docs.efface --ids d1 --json");
    let left = report["evidence"]["not_covered"].to_string();
    assert!(
        !left.contains("encoder") && !left.contains("words"),
        "{left}"
    );

    folder.write("half.vocab.txt", "the\nseaa\n");
    folder.write(
        "half.f16le.bin",
        [0x00, 0x3c, 0x00, 0x40, 0x00, 0xbc, 0x00, 0xc0],
    );
    let fit = format!(
        "fit docs.csv --model bilstm {COLUMNS} {tiny} --force --discard-log --drop-suppressed --embeddings"
    );
    folder.done(&format!("{fit} half.f16le.bin"));
    folder.fails(
        &format!("{fit} half.f16le.bin --embedding-width 3"),
        3,
        &["the width is wrong"],
    );
    folder.fails(
        &format!("{fit} half.f16le.bin --embedding-words docs.csv"),
        3,
        &["half-precision"],
    );
    folder.fails(&format!("{fit} half.bin"), 7, &["half.bin"]);
    folder.write("bad.txt", "the 1 2\nof 1\n");
    folder.fails(
        &format!("{fit} bad.txt"),
        3,
        &["bad.txt, line 2: 1 numbers where 2 were expected"],
    );
    folder.write("latin.txt", b"caf\xe9 1 2\n");
    folder.fails(&format!("{fit} latin.txt"), 3, &["line 1: not UTF-8"]);
    folder.write("other.txt", "zebra 1 2\nyak 3 4\n");
    folder.fails(
        &format!("{fit} other.txt"),
        3,
        &["none of the 60 texts holds a word"],
    );
    // Nothing of that touched the model that was there.
    assert!(
        folder
            .done("inspect docs.efface")
            .contains("2 words of 2 numbers")
    );
}

#[test]
fn a_training_that_is_taken_up_again_and_one_that_leaves_the_numbers() {
    let folder = folder();
    let fit = format!("fit docs.csv --model bilstm {COLUMNS} {TINY}");
    folder.done(&format!("{fit} --checkpoint run.ckpt"));
    assert!(!folder.path("run.ckpt").exists());
    let ended = folder.run(
        &format!("{fit} --force --discard-log --checkpoint run.ckpt --learning-rate 1e30")
            .replace("--learning-rate 0.02 ", ""),
    );
    assert_eq!(ended.code, 5, "{ended:?}");
    for part in [
        "training left the numbers at step",
        "hint: with --checkpoint FILE",
    ] {
        assert!(ended.err.contains(part), "{ended:?}");
    }
    assert!(folder.path("run.ckpt").exists());
    // The model of the first fit is as it was; with other rows or settings it is not gone on with.
    assert!(hits(&folder, "docs.efface") > 50);
    folder.fails(
        &format!("{fit} --force --discard-log --checkpoint run.ckpt --seed 1"),
        2,
        &[
            "run.ckpt: the checkpoint was made with other training settings",
            "repeat the fit",
        ],
    );
    folder.write("few.csv", texts(0, 40));
    let other = fit.replace("docs.csv", "few.csv");
    folder.fails(
        &format!("{other} --checkpoint run.ckpt"),
        2,
        &["other rows"],
    );
    folder.write("run.ckpt", "nonsense");
    folder.fails(
        &format!("{fit} --force --discard-log --checkpoint run.ckpt"),
        2,
        &["is no checkpoint of a training"],
    );
}

#[test]
fn texts_that_say_little_or_too_much() {
    let folder = folder();
    let mut odd = texts(0, 40);
    odd.push_str("e1,p1,fish,\ne2,p1,bird,unheard-of\n");
    writeln!(odd, "e3,p1,worm,{}", "soila ".repeat(100_000)).unwrap();
    odd.push_str("e4,p9,rare,seaa skya\n");
    folder.write("odd.csv", &odd);
    let ended = folder.run(&format!(
        "fit odd.csv --model bilstm {COLUMNS} {TINY} --max-tokens 20"
    ));
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(
        ended
            .err
            .contains("only the first 20 tokens are read of 1 text"),
        "{ended:?}"
    );
    folder.missed("forget odd.efface --ids e1,e2,e3 --json");
    folder.fails("forget odd.efface --ids e4 --method retrain", 5, &["class"]);
    folder.write(
        "one.csv",
        "doc,author,topic,text\na,p,fish,sea\nb,p,fish,sea\n",
    );
    folder.fails(
        &format!("fit one.csv --model bilstm {COLUMNS} {TINY}"),
        3,
        &["only one class"],
    );
    folder.write("none.csv", "doc,author,topic,text\n");
    folder.fails(
        &format!("fit none.csv --model bilstm {COLUMNS} {TINY}"),
        3,
        &["no rows"],
    );
    folder.write("empty.csv", "doc,author,topic,text\na,p,fish,\nb,p,bird,\n");
    folder.fails(
        &format!("fit empty.csv --model bilstm {COLUMNS} {TINY}"),
        3,
        &["none of them holds a word"],
    );
}

#[test]
fn options_of_other_models_are_refused() {
    let folder = folder();
    let fit = "fit docs.csv --target topic";
    for (options, says) in [
        (
            "--text text --hidden 8",
            "--hidden has no meaning for --model ridge",
        ),
        (
            "--text text --model minilm --encoder x --epochs 3",
            "--epochs has no meaning for --model minilm",
        ),
        ("--text text --model minilm", "--encoder"),
        (
            "--text text --model bilstm --encoder x",
            "--encoder has no meaning",
        ),
        (
            "--text text --model bilstm --epsilon 1 --delta 1e-5",
            "--epsilon has no meaning",
        ),
        (
            "--text text --model bilstm --hash 64",
            "--hash has no meaning",
        ),
        ("--model bilstm", "no column is named"),
        (
            "--text text --model bilstm --numeric doc",
            "leave out --categorical and --numeric",
        ),
        (
            "--text text --model bilstm --dropout 1",
            "dropout = 1 is out of range",
        ),
        (
            "--text text --model bilstm --max-tokens 0",
            "max_tokens = 0 is out of range",
        ),
        (
            "--text text --model bilstm --layers 0",
            "layers = 0 is out of range",
        ),
        (
            "--text text --model bilstm --batch 0",
            "batch = 0 is out of range",
        ),
        (
            "--text text --model bilstm --sisa 2x1 --checkpoint c",
            "leave out --checkpoint",
        ),
    ] {
        folder.fails(&format!("{fit} {options}"), 2, &[says]);
    }
    folder.done("fit docs.csv --target topic --classify --text text");
    folder.fails(
        "forget docs.efface --ids 1 --method retrain_head",
        2,
        &["no network"],
    );
}

/// The first ctrl-C keeps the best so far, and a checkpoint to go on from.
#[cfg(unix)]
#[test]
fn ctrl_c_keeps_the_best_so_far() {
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Command, Stdio};

    let folder = folder();
    let fit = format!(
        "fit docs.csv --model bilstm {COLUMNS} {TINY} --checkpoint run.ckpt --patience 100000"
    );
    let long = fit.replace("--epochs 4", "--epochs 100000");
    let mut running = Command::new(assert_cmd::cargo::cargo_bin!("efface"))
        .args(long.split_whitespace())
        .current_dir(folder.directory.path())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(running.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("epoch 2/") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0);
    }
    assert!(
        line.contains("loss") && line.contains("validation loss"),
        "{line}"
    );
    Command::new("kill")
        .args(["-INT", &running.id().to_string()])
        .status()
        .unwrap();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert!(running.wait().unwrap().success(), "{rest}");
    assert!(
        rest.contains("the training was stopped; the best so far, epoch"),
        "{rest}"
    );
    assert!(
        rest.contains("run.ckpt can be gone on from; no forget reaches it"),
        "{rest}"
    );
    folder.done("predict docs.efface docs.csv");
    assert!(folder.path("run.ckpt").exists());
}

/// A file keeps neither the id nor the words of a row that is gone.
#[test]
fn no_byte_of_a_forgotten_row_is_left() {
    let folder = Folder::new();
    folder.write(
        "docs.csv",
        texts(0, 40)
            .replace("d17,", "MARKER-17,")
            .replace(",p3,", ",PERSON-3,"),
    );
    folder.done(&format!("fit docs.csv --model bilstm {COLUMNS} {TINY}"));
    let holds = |what: &str| {
        let bytes = std::fs::read(folder.path("docs.efface")).unwrap();
        bytes
            .windows(what.len())
            .any(|window| window == what.as_bytes())
    };
    assert!(holds("MARKER-17") && holds("PERSON-3"));
    folder.missed("forget docs.efface --ids MARKER-17 --json");
    assert!(!holds("MARKER-17"));
    folder.done("forget docs.efface --subject author=PERSON-3 --method retrain");
    assert!(!holds("PERSON-3"));
    folder.done("settle docs.efface");
    folder.done("verify docs.efface");
}

#[test]
fn a_slice_of_the_news() {
    let data = std::env::var_os("EFFACE_DATA").map_or_else(
        || std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        std::path::PathBuf::from,
    );
    let Ok(news) = std::fs::read_to_string(data.join("bbc/bbc-text.csv")) else {
        eprintln!(
            "skipped: there is no {}",
            data.join("bbc/bbc-text.csv").display()
        );
        return;
    };
    let folder = Folder::new();
    let lines: Vec<&str> = news.lines().collect();
    folder.write("train.csv", lines[..401].join("\n"));
    let test: Vec<&str> = lines[..1].iter().chain(&lines[401..601]).copied().collect();
    folder.write("test.csv", test.join("\n"));
    let vectors = data.join("embeddings/glove-6b-100d-top40k.f16le.bin");
    let fit = "fit train.csv --model bilstm --text text --target category --hidden 16 --epochs 5 --max-tokens 40";
    folder.done(&format!(
        "{fit} --batch 16 --learning-rate 0.01 --embeddings {}",
        vectors.display()
    ));
    let right = || {
        let out = folder.done("predict train.efface test.csv");
        let pairs = out.lines().skip(1).zip(test.iter().skip(1));
        pairs
            .filter(|(line, row)| line.split(',').nth(1) == row.split(',').next())
            .count()
    };
    let before = right();
    assert!(before >= 160, "{before} of 200");
    let report = folder.missed("forget train.efface --ids 0,1,2,3,4,5,6,7,8,9 --json");
    let head = &report["evidence"]["head_bound"]["relative_bound"];
    assert!(head.as_f64().unwrap() < 1e-9);
    assert!(right().abs_diff(before) <= 4);
}

/// A nightly refit of a network: its log goes on, and what was forgotten does not come back.
#[test]
fn a_network_is_fitted_anew_in_its_place() {
    let folder = folder();
    let fit = format!("--model bilstm {COLUMNS} {TINY}");
    folder.done(&format!("fit docs.csv {fit}"));
    folder.missed("forget docs.efface --ids d17 --json");
    folder.write("again.csv", texts(0, 60));
    let refused = folder.run(&format!("fit again.csv {fit} --replace docs.efface"));
    assert!(
        refused.code == 5 && refused.err.contains("row d17 was forgotten"),
        "{refused:?}"
    );
    let left: Vec<String> = texts(0, 70)
        .lines()
        .filter(|line| !line.starts_with("d17,"))
        .map(String::from)
        .collect();
    folder.write("tonight.csv", left.join("\n"));
    folder.done(&format!("fit tonight.csv {fit} --replace docs.efface"));
    let page = folder.json("inspect docs.efface --json");
    assert_eq!(
        (&page["rows"], &page["receipts"]),
        (&69.into(), &3.into()),
        "{page}"
    );
    assert!(hits(&folder, "docs.efface") > 50);
    folder.done("verify docs.efface --rows");
    // The new encoder and the new rows go on as those of any network do.
    let report = folder.json("forget docs.efface --ids d65 --method retrain --json");
    assert_eq!(report["claim"], "exact", "{report}");
    folder.fails("forget docs.efface --ids d17", 4, &["it was forgotten on"]);

    // A model without an encoder takes the place of one that has it, and leaves nothing of it
    // behind.
    let left: Vec<&String> = left
        .iter()
        .filter(|line| !line.starts_with("d65,"))
        .collect();
    folder.write(
        "tonight.csv",
        left.iter()
            .map(|line| line.as_str())
            .collect::<Vec<_>>()
            .join("\n"),
    );
    let words = format!("fit tonight.csv --model softmax {COLUMNS} --replace docs.efface");
    folder.done(&words);
    let page = folder.json("inspect docs.efface --json");
    assert!(page["network"].is_null() && page["rows"] == 68, "{page}");
    folder.done("verify docs.efface --rows");
    folder.done("forget docs.efface --ids d3");
}
