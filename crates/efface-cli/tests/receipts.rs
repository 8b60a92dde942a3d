//! The log, the receipts and the keys, as a user and an auditor see them.

mod common;

use common::Folder;

fn with_log() -> Folder {
    let folder = Folder::with_houses();
    folder.write("model.pub", folder.done("keys houses.efface"));
    folder
}

#[test]
fn a_receipt_is_checked_with_the_public_key_alone() {
    let folder = with_log();
    let out = folder.run("forget houses.efface --subject owner=ann --request T-1 --receipt receipt.json");
    assert!(out.code == 0 && out.err.contains("receipt "), "{out:?}");
    let found = folder.json("verify receipt.json --key model.pub --json");
    assert_eq!(found["receipt"]["outcome"], "erased");
    assert_eq!(found["receipt"]["rows"]["removed"], 2);
    let page = folder.done("verify receipt.json --key model.pub");
    assert!(page.contains("forget: erased") && page.contains("2 out, 0 in"), "{page}");
    let text = std::fs::read_to_string(folder.path("receipt.json")).unwrap_or_default();
    assert!(!text.contains("\"ann") && !text.contains("T-1"), "{text}");
    folder.fails("verify receipt.json", 2, &["public key", "hint: ", "--key"]);
    folder.write("bad.json", text.replace("\"removed\":2", "\"removed\":3"));
    folder.fails("verify bad.json --key model.pub", 5, &["not verified"]);
    folder.write("longer.json", format!("{text}\n"));
    folder.fails("verify longer.json --key model.pub", 5, &["not verified"]);
    folder.write("houses2.csv", common::HOUSES);
    folder.done("fit houses2.csv --target price --id house -o other.efface");
    folder.write("other.pub", folder.done("keys other.efface"));
    folder.fails("verify receipt.json --key other.pub", 5, &["not verified"]);
    folder.fails("verify absent.json --key model.pub", 7, &["absent.json"]);
}

#[test]
fn a_request_comes_twice() {
    let folder = with_log();
    let line = "forget houses.efface --ids h1 --request T-1 --json";
    let first = folder.json(line);
    let again = folder.json(line);
    assert_eq!(first["receipt"], again["receipt"]);
    assert_eq!((&first["replayed"], &again["replayed"]), (&false.into(), &true.into()));
    folder.fails("forget houses.efface --ids h2 --request T-1", 5, &["T-1", "something else", "hint: "]);
    let out = folder.run("forget houses.efface --subject owner=nobody --request T-2");
    assert_eq!(out.code, 4, "{out:?}");
    assert!(out.err.contains("no row of this subject is in the model") && out.err.contains("receipt "));
    let partial = folder.json("forget houses.efface --ids h2,h99 --allow-missing --json");
    assert_eq!((&partial["outcome"], &partial["missing"]), (&"partial".into(), &1.into()));
    let log = folder.done("log houses.efface");
    for word in ["fit", "erased", "not_found", "partial"] {
        assert!(log.contains(word), "{log}");
    }
    folder.done("verify houses.efface --key model.pub");
}

#[test]
fn keys_change_and_old_receipts_still_hold() {
    let folder = with_log();
    folder.done("forget houses.efface --ids h1 --receipt old.json");
    let new = folder.done("keys houses.efface --rotate");
    assert_ne!(new, std::fs::read_to_string(folder.path("model.pub")).unwrap_or_default());
    folder.done("forget houses.efface --ids h2 --receipt new.json");
    for receipt in ["old.json", "new.json"] {
        folder.done(&format!("verify {receipt} --key model.pub"));
    }
    folder.done("log houses.efface --receipt 1 -o again.json");
    folder.done("verify again.json --key model.pub");
    folder.fails("log houses.efface --receipt 9", 4, &["no receipt `9`"]);
    folder.done("verify houses.efface --key model.pub");
    assert_eq!(folder.done("keys houses.efface --first"), {
        std::fs::read_to_string(folder.path("model.pub")).unwrap_or_default()
    });
    assert!(folder.done("log houses.efface --checkpoint").starts_with("efface/"));
    assert!(folder.done("log houses.efface --since 2").contains("\"old\":2"));
}

#[test]
fn exports_are_listed_held_and_withdrawn() {
    let folder = with_log();
    folder.done("export houses.efface -o a.json");
    folder.done("forget houses.efface --ids h1");
    let out = folder.run("export houses.efface -o b.json");
    assert!(out.code == 0 && out.err.contains("warning: one request since the last export"), "{out:?}");
    assert!(folder.done("inspect houses.efface").contains("1 in use, 1 withdrawn"));
    folder.done("policy houses.efface --min-batch 2 --delay 12h");
    folder.done("forget houses.efface --ids h2");
    folder.fails("export houses.efface -o c.json", 5, &["waits for 1 more", "hint: "]);
    assert!(!folder.path("c.json").exists());
    folder.done("forget houses.efface --ids h3");
    folder.done("export houses.efface -o c.json");
    folder.fails("policy houses.efface --delay soon", 2, &["12h"]);
    folder.done("settle houses.efface");
    folder.done("verify houses.efface");
}

#[test]
fn rows_are_scrubbed_later_where_the_policy_says_so() {
    let folder = with_log();
    let page = folder.done("policy houses.efface --settle-after 3 --settle-within 2d");
    assert!(page.contains("3 at a time, or after 172800 s"), "{page}");
    let report = folder.json("forget houses.efface --ids h1 --receipt receipt.json --json");
    assert_eq!(report["scrubbed"], false);
    assert!(folder.done("inspect houses.efface").contains("1 row since 20"));
    assert!(folder.done("verify receipt.json --key model.pub").contains("later: the receipt of a settle"));
    assert!(folder.done("log houses.efface").contains(" waits "));
    let out = folder.run("settle houses.efface");
    assert!(out.code == 0 && out.err.contains("1 rows scrubbed that had waited"), "{out:?}");
    let log = folder.done("log houses.efface");
    assert!(log.contains("by no. 3") && log.contains("policy") && !log.contains(" waits "), "{log}");
    let line = folder.done("log houses.efface --json").lines().nth(2).unwrap_or_default().to_owned();
    assert!(line.contains("\"scrubbed_by\":3") && !line.contains("\"scrubbed_at\":null"), "{line}");
    folder.done("log houses.efface --receipt 3 -o settle.json");
    assert!(folder.done("verify settle.json --key model.pub").contains("receipts 2 to 2"));
    folder.fails("policy houses.efface --settle-after 0", 2, &["1 to 10000", "hint: "]);
    let page = folder.done("verify houses.efface --rows --key model.pub");
    assert!(
        page.contains("summed again") && !page.contains("FAILS") && !page.contains("not known"),
        "{page}"
    );
}

#[test]
fn noise_is_calibrated() {
    let folder = with_log();
    folder.fails("policy houses.efface --epsilon 1", 2, &["--delta"]);
    folder.fails("policy houses.efface --epsilon 1 --delta 0", 2, &["δ is 0", "hint: "]);
    let page = folder.done("policy houses.efface --epsilon 1 --delta 1e-5 --sensitivity 0.001");
    assert!(page.contains("ε = 1, δ = 0.00001, hides a distance of 0.001"), "{page}");
    folder.done("export houses.efface -o a.json");
    folder.done("forget houses.efface --ids h1");
    folder.fails("export houses.efface -o b.json", 5, &["moved by up to", "hint: "]);
    assert!(!folder.path("b.json").exists());
    folder.done("policy houses.efface --epsilon 1 --delta 1e-5");
    folder.done("export houses.efface -o b.json");
    assert!(folder.done("log houses.efface --raw").contains("\"source\":\"measured\""));
}

#[test]
fn every_process_exports_the_same_noise_and_the_receipt_says_what_it_spends() {
    let folder = with_log();
    folder.done("policy houses.efface --epsilon 1 --delta 1e-5 --sensitivity 1000");
    for format in ["json", "npz", "safetensors"] {
        let copies: Vec<Vec<u8>> = (1..=4)
            .map(|at| {
                folder.done(&format!("export houses.efface --format {format} -o {at}.{format}"));
                std::fs::read(folder.path(&format!("{at}.{format}"))).unwrap_or_default()
            })
            .collect();
        assert!(!copies[0].is_empty() && copies.iter().all(|copy| *copy == copies[0]), "{format}");
    }
    let page = folder.done("policy houses.efface");
    assert!(page.contains("ε = 1.0000 at δ = 0.00001 over 1 export"), "{page}");
    folder.done("forget houses.efface --ids h1");
    folder.done("export houses.efface -o next.json");
    folder.done("log houses.efface --receipt 15 -o receipt.json");
    let page = folder.done("verify receipt.json --key model.pub");
    assert!(page.contains("ε = 1.0000 at δ = 0.00001; in all ε = 1.4"), "{page}");
    folder.done("policy houses.efface --epsilon 2 --delta 1e-5 --sensitivity 1000");
    folder.fails("export houses.efface", 5, &["two copies of one version", "hint: ", "--noise"]);
}

#[cfg(unix)]
#[test]
fn a_key_that_others_can_read_signs_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let folder = with_log();
    let key = folder.path("houses.efface.key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap_or_default();
    folder.fails("forget houses.efface --ids h1", 5, &["houses.efface.key", "644", "chmod 600"]);
    assert_eq!(folder.json("inspect houses.efface --json")["rows"], 7);
}

#[test]
fn a_model_that_was_tampered_with_is_found_out() {
    let folder = with_log();
    folder.done("forget houses.efface --ids h1");
    let bytes = std::fs::read(folder.path("houses.efface")).unwrap_or_default();
    // Somewhere in a signed receipt.
    let at = bytes.windows(12).rposition(|window| window == b"\"scrubbed_at").unwrap_or_default();
    let mut other = bytes.clone();
    other[at + 2] ^= 1;
    folder.write("other.efface", &other);
    let out = folder.run("verify other.efface --key model.pub");
    assert!(out.code == 6 && out.out.contains("FAILS"), "{out:?}");
}

/// The second verifier, which shares no code with the first, agrees. Skipped where it cannot run.
#[test]
fn the_python_verifier_agrees() {
    let able = std::process::Command::new("python3").args(["-c", "import cryptography"]).output();
    if !able.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: python3 has no `cryptography`");
        return;
    }
    let folder = with_log();
    folder.done("forget houses.efface --subject owner=ann --request T-1 --receipt receipt.json");
    folder.done("keys houses.efface --rotate");
    folder.run("forget houses.efface --subject owner=nobody --request T-2");
    folder.done("policy houses.efface --settle-after 9 --epsilon 1 --delta 1e-6");
    folder.done("forget houses.efface --ids h2");
    folder.done("export houses.efface -o a.json");
    folder.done("log houses.efface --receipt 6 -o late.json");
    folder.done("log houses.efface --raw -o log.jsonl");
    folder.done("log houses.efface --checkpoint -o head.txt");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../verify/verify.py");
    for line in
        ["bundle model.pub receipt.json", "bundle model.pub late.json", "log model.pub log.jsonl head.txt"]
    {
        let output = std::process::Command::new("python3")
            .arg(script)
            .args(line.split(' '))
            .current_dir(folder.directory.path())
            .output();
        assert!(output.as_ref().is_ok_and(|output| output.status.success()), "{line}: {output:?}");
    }
}
