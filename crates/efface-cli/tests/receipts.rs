//! The log, the receipts and the keys, as a user and an auditor see them.

mod common;

use efface_evidence::PackFiles;

use common::Folder;

fn with_log() -> Folder {
    let folder = Folder::with_houses();
    folder.write("model.pub", folder.done("keys houses.efface"));
    folder
}

#[test]
fn a_receipt_is_checked_with_the_public_key_alone() {
    let folder = with_log();
    let out =
        folder.run("forget houses.efface --subject owner=ann --request T-1 --receipt receipt.cose");
    assert!(out.code == 0 && out.err.contains("receipt "), "{out:?}");
    let found = folder.json("verify receipt.cose --key model.pub --json");
    assert_eq!(found["receipt"]["outcome"], "erased");
    assert_eq!(found["receipt"]["rows"]["removed"], 2);
    let page = folder.done("verify receipt.cose --key model.pub");
    assert!(
        page.contains("forget: erased") && page.contains("2 out, 0 in"),
        "{page}"
    );
    let bytes = std::fs::read(folder.path("receipt.cose")).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    assert!(!text.contains("\"ann") && !text.contains("T-1"), "{text}");
    folder.fails("verify receipt.cose", 2, &["public key", "hint: ", "--key"]);
    let mut changed = bytes.clone();
    let at = text.find("\"removed\":2").unwrap() + "\"removed\":".len();
    let place = changed.iter().position(|byte| *byte == b'{').unwrap();
    let start = text.find('{').unwrap();
    changed[at - start + place] = b'3';
    assert_ne!(changed, bytes);
    folder.write("bad.cose", changed);
    folder.fails("verify bad.cose --key model.pub", 5, &["not verified"]);
    folder.write("longer.cose", [bytes.as_slice(), b"\n"].concat());
    folder.fails("verify longer.cose --key model.pub", 5, &["not verified"]);
    // What people read is the JSON in it.
    let shown = folder.done("receipt show receipt.cose");
    assert!(shown.contains("\"outcome\": \"erased\""), "{shown}");
    assert_eq!(
        folder.json("receipt show receipt.cose --json"),
        found["receipt"]
    );
    let listed = folder.done("log houses.efface --receipt 1");
    assert_eq!(listed.trim(), shown.trim());
    folder.fails("receipt show houses.csv", 5, &["not a signed receipt"]);
    folder.write("houses2.csv", common::HOUSES);
    folder.done("fit houses2.csv --target price --id house -o other.efface");
    folder.write("other.pub", folder.done("keys other.efface"));
    folder.fails("verify receipt.cose --key other.pub", 5, &["not verified"]);
    folder.fails("verify absent.json --key model.pub", 7, &["absent.json"]);
}

#[test]
fn a_request_comes_twice() {
    let folder = with_log();
    let line = "forget houses.efface --ids h1 --request T-1 --json";
    let first = folder.json(line);
    let again = folder.json(line);
    assert_eq!(first["receipt"], again["receipt"]);
    assert_eq!(
        (&first["replayed"], &again["replayed"]),
        (&false.into(), &true.into())
    );
    folder.fails(
        "forget houses.efface --ids h2 --request T-1",
        5,
        &["T-1", "something else", "hint: "],
    );
    let out = folder.run("forget houses.efface --subject owner=nobody --request T-2");
    assert_eq!(out.code, 4, "{out:?}");
    assert!(
        out.err.contains("no row of this subject is in the model") && out.err.contains("receipt ")
    );
    let partial = folder.json("forget houses.efface --ids h2,h99 --allow-missing --json");
    assert_eq!(
        (&partial["outcome"], &partial["missing"]),
        (&"partial".into(), &1.into())
    );
    let log = folder.done("log houses.efface");
    for word in ["fit", "erased", "not_found", "partial"] {
        assert!(log.contains(word), "{log}");
    }
    folder.done("verify houses.efface --key model.pub");
}

#[test]
fn keys_change_and_old_receipts_still_hold() {
    let folder = with_log();
    folder.done("forget houses.efface --ids h1 --receipt early.cose");
    let first = folder.done("keys houses.efface");
    let new = folder.done("keys houses.efface --rotate");
    assert_ne!(new, first);
    folder.done("forget houses.efface --ids h2 --receipt new.cose");
    folder.done("log houses.efface --receipt 1 -o old.cose");
    // The old key, the new key, and the list of both verify every receipt that the log gives now.
    let list = folder.done("keys houses.efface");
    assert_eq!(list, format!("{} until 2\n{new}", first.trim_end()));
    folder.write("new.pub", &new);
    folder.write("list.pub", &list);
    for keys in ["model.pub", "new.pub", "list.pub"] {
        for receipt in ["old.cose", "new.cose"] {
            folder.done(&format!("verify {receipt} --key {keys}"));
        }
        folder.done(&format!("verify houses.efface --key {keys}"));
    }
    // A file from before the rotation has the head of that time: the old key signed it, and the
    // list says so.
    folder.done("verify early.cose --key list.pub");
    folder.fails("verify early.cose --key new.pub", 5, &["not verified"]);
    assert!(
        folder
            .done("keys houses.efface --pem")
            .starts_with("-----BEGIN PUBLIC KEY-----")
    );
    folder.fails("log houses.efface --receipt 9", 4, &["no receipt `9`"]);
    assert!(
        folder
            .done("log houses.efface --checkpoint")
            .starts_with("efface/")
    );
    assert!(
        folder
            .done("log houses.efface --since 2")
            .contains("\"old\":2")
    );
}

#[test]
fn an_evidence_pack_shows_what_was_done_and_names_nobody() {
    let folder = with_log();
    folder.done("export houses.efface -o a.json");
    let asked = "forget houses.efface --subject owner=ann --request T-77 --requested-at 2026-03-02T09:15:00.250Z --json";
    let told = folder.json(asked);
    let person = format!(
        "--subject owner=ann --opening {}",
        told["subject_opening"].as_str().unwrap()
    );
    folder.fails(
        "evidence houses.efface --request T-78 -o none.zip",
        2,
        &["no receipt", "hint: "],
    );
    assert!(!folder.path("none.zip").exists());
    folder.fails(
        "evidence houses.efface --subject owner=ann -o none.zip",
        2,
        &["--opening"],
    );
    for what in ["--request T-77", person.as_str(), "--receipt 2"] {
        let made = folder.json(&format!(
            "evidence houses.efface {what} -o pack.zip --force --json"
        ));
        assert_eq!(made["receipts"], serde_json::json!([2]));
        let file = std::fs::File::open(folder.path("pack.zip")).unwrap();
        let mut archive = zip::ZipArchive::new(file).unwrap();
        let mut page = String::new();
        for at in 0..archive.len() {
            let mut entry = archive.by_index(at).unwrap();
            let file = entry.name().unwrap().into_owned();
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut entry, &mut bytes).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            for name in ["ann\"", ">ann<", "owner=ann", "T-77", "\"h1\"", "h3,"] {
                assert!(!text.contains(name), "{name} is in {file}");
            }
            if file == "summary.html" {
                page = text.into_owned();
            } else if file.ends_with(".cose") || file == "keys.txt" {
                folder.write(&file.replace('/', "-"), &bytes);
            }
        }
        folder.done("verify receipts-2.cose --key keys.txt");
        let told = folder.done("verify pack.zip --key model.pub");
        assert!(told.contains("forget: erased"), "{told}");
        for part in [
            "EDPB Opinion 28/2024",
            "forget: erased",
            "2 left, 0 joined",
            "1 withdrawn",
            "2026-03-02T09:15",
        ] {
            assert!(page.contains(part), "{part} is not in the page");
        }
    }
    folder.fails(
        "evidence houses.efface --receipt 2 -o houses.efface --force",
        5,
        &["houses.efface"],
    );
    folder.fails("verify pack.zip", 2, &["public key", "hint: "]);
    let whole = std::fs::read(folder.path("pack.zip")).unwrap();
    folder.write("short.zip", &whole[..whole.len() / 2]);
    folder.fails("verify short.zip --key model.pub", 3, &["ZIP"]);
    let told = folder.json("verify pack.zip --key model.pub --json");
    assert_eq!(told["not_checked"].as_array().unwrap().len(), 4, "{told}");
    every_change_of_a_pack_is_refused(&folder, &whole);
    // A pack of another log brings its own keys along, which nobody asked for.
    folder.done("fit houses.csv --target price --id house -o other.efface");
    folder.done("evidence other.efface --receipt 0 -o other.zip");
    folder.fails("verify other.zip --key model.pub", 5, &[]);
}

/// Changes every byte of a pack, and every file of it with checksums that fit, and adds, removes,
/// renames and exchanges files.
#[allow(clippy::unwrap_used, reason = "part of a test")]
fn every_change_of_a_pack_is_refused(folder: &Folder, pack: &[u8]) {
    let keys = std::fs::read(folder.path("model.pub")).unwrap();
    let keys = efface_receipt::KeyRing::from_bytes(&keys).unwrap();
    let verify = |bytes: &[u8]| PackFiles::read(bytes).and_then(|pack| pack.verify(&keys));
    let good = PackFiles::read(pack).unwrap();
    verify(pack).unwrap();
    assert_eq!(good.to_bytes().unwrap(), pack);
    for at in 0..pack.len() {
        let mut changed = pack.to_vec();
        changed[at] ^= 1 << (at % 8);
        assert!(verify(&changed).is_err(), "byte {at}");
    }
    let refused = |files: Vec<(String, Vec<u8>)>, what: &str| {
        let bytes = PackFiles { files }.to_bytes().unwrap();
        assert!(verify(&bytes).is_err(), "{what}");
    };
    for (at, (name, content)) in good.files.iter().enumerate() {
        let mut files = good.files.clone();
        for place in [0, content.len() / 2, content.len() - 1] {
            files[at].1[place] ^= 1;
            refused(files.clone(), &format!("byte {place} of {name}"));
            files[at].1[place] ^= 1;
        }
        files[at].1.push(b'\n');
        refused(files, &format!("{name} has more"));
        let mut files = good.files.clone();
        files[at].0.push('x');
        refused(files, &format!("{name} has another name"));
        let mut files = good.files.clone();
        files.swap(at, (at + 1) % good.files.len());
        refused(files, &format!("{name} stands elsewhere"));
        let mut files = good.files.clone();
        files.insert(at, ("a.txt".into(), b"added".to_vec()));
        refused(files, &format!("a file was added before {name}"));
        let mut files = good.files.clone();
        files.remove(at);
        refused(files, &format!("{name} was removed"));
    }
    // The same files under a list of somebody else.
    let stranger =
        efface_receipt::SecretKey::from_seed(keys.keys().next().unwrap().key.name(), &[3; 32])
            .unwrap();
    let head = verify(pack).unwrap().head;
    let mut files = good.files.clone();
    files.pop();
    let contents = files
        .iter()
        .map(|(name, bytes)| (name.as_str(), &bytes[..]));
    let list = efface_receipt::PackDigests::new(&head.origin, head.size, contents);
    let list = list.sign(&stranger).unwrap();
    files.push((efface_receipt::PackDigests::FILE.into(), list.into_bytes()));
    refused(files, "a list that a stranger signed");
}

#[test]
fn a_lost_key_has_a_way_back() {
    let folder = Folder::new();
    folder.write("houses.csv", common::HOUSES);
    folder.done("fit houses.csv --target price --id house --subject owner --recovery-key safe.key");
    folder.write("model.pub", folder.done("keys houses.efface"));
    folder.done("forget houses.efface --ids h1");
    std::fs::remove_file(folder.path("houses.efface.key")).unwrap();
    folder.fails(
        "forget houses.efface --ids h2",
        5,
        &["houses.efface.key", "hint: ", "--recover"],
    );
    folder.fails("keys houses.efface --recover houses.csv", 5, &[]);
    folder.done("keys houses.efface --recover safe.key");
    folder.done("forget houses.efface --ids h2 --receipt receipt.cose");
    folder.done("verify receipt.cose --key model.pub");
    folder.done("log houses.efface --receipt 2 -o recovery.cose");
    let page = folder.done("verify recovery.cose --key model.pub");
    assert!(page.contains("the recovery key"), "{page}");
    folder.done("verify houses.efface --key model.pub");
    // An output never replaces the recovery key.
    folder.fails("log houses.efface -o safe.key --force", 5, &["a key file"]);
    // A model without one says so.
    folder.done("fit houses.csv --target price --id house -o plain.efface");
    folder.fails(
        "keys plain.efface --recover safe.key",
        2,
        &["no recovery key", "hint: "],
    );
}

#[test]
fn a_passphrase_is_asked_for() {
    let folder = with_log();
    folder.write("phrase.txt", "correct horse battery staple\n");
    folder.write("wrong.txt", "incorrect\n");
    folder.done("keys houses.efface --encrypt phrase.txt");
    folder.fails(
        "forget houses.efface --ids h1",
        5,
        &["encrypted", "--passphrase-file"],
    );
    folder.fails(
        "forget houses.efface --ids h1 --passphrase-file wrong.txt",
        5,
        &["does not open"],
    );
    folder.done("forget houses.efface --ids h1 --passphrase-file phrase.txt");
    folder.done("keys houses.efface --rotate --passphrase-file phrase.txt");
    folder.fails(
        "log houses.efface -o houses.efface.key --force",
        5,
        &["a key file"],
    );
    folder.done("keys houses.efface --decrypt --passphrase-file phrase.txt");
    folder.done("forget houses.efface --ids h2");
    folder.done("verify houses.efface --key model.pub");
}

#[cfg(unix)]
#[test]
fn a_program_signs() {
    let able = std::process::Command::new("openssl")
        .args(["genpkey", "-algorithm", "ed25519"])
        .output();
    let Some(pem) = able.ok().filter(|output| output.status.success()) else {
        eprintln!("skipped: there is no openssl with ed25519");
        return;
    };
    let folder = with_log();
    folder.write("secret.pem", pem.stdout);
    // As for a device: the program has the key, and efface sees signatures alone.
    let script = "case $1 in\n\
                  public) openssl pkey -in secret.pem -pubout ;;\n\
                  sign) cat > message.bin; openssl pkeyutl -sign -inkey secret.pem -rawin -in message.bin ;;\n\
                  esac\n";
    folder.write("sign.sh", script);
    let rotated = folder.words(&[
        "keys",
        "houses.efface",
        "--rotate",
        "--next-sign-with",
        "sh sign.sh",
    ]);
    assert_eq!(rotated.code, 0, "{rotated:?}");
    folder.fails(
        "forget houses.efface --ids h1",
        5,
        &["no key of this model", "--sign-with"],
    );
    let forget = [
        "forget",
        "houses.efface",
        "--receipt",
        "receipt.cose",
        "--ids",
        "h1",
        "--sign-with",
    ];
    let forgot = folder.words(&[&forget[..], &["sh sign.sh"]].concat());
    assert_eq!(forgot.code, 0, "{forgot:?}");
    folder.done("verify receipt.cose --key model.pub");
    folder.done("verify houses.efface --key model.pub");
    let refused = folder.words(&[
        "forget",
        "houses.efface",
        "--ids",
        "h2",
        "--sign-with",
        "false",
    ]);
    assert!(
        refused.code == 5 && refused.err.contains("nothing was changed"),
        "{refused:?}"
    );
    folder.done("verify houses.efface --key model.pub");
}

#[test]
fn exports_are_listed_held_and_withdrawn() {
    let folder = with_log();
    folder.done("export houses.efface -o a.json");
    folder.done("forget houses.efface --ids h1");
    folder.fails(
        "export houses.efface -o b.json",
        5,
        &["waits for 9 more", "hint: ", "--expose-forgotten"],
    );
    let out = folder.run("export houses.efface -o b.json --expose-forgotten");
    assert!(
        out.code == 0
            && out
                .err
                .contains("warning: one request since the last export"),
        "{out:?}"
    );
    assert!(
        folder
            .done("inspect houses.efface")
            .contains("1 in use, 1 withdrawn")
    );
    folder.fails(
        "policy houses.efface --min-batch 2",
        5,
        &["a batch of 2", "--expose-forgotten"],
    );
    folder.fails(
        "policy houses.efface --delay 12h",
        5,
        &["after 43200 s", "--expose-forgotten"],
    );
    folder.done("policy houses.efface --min-batch 2 --delay 12h --expose-forgotten");
    folder.done("forget houses.efface --ids h2");
    folder.fails(
        "export houses.efface -o c.json",
        5,
        &["waits for 1 more", "hint: "],
    );
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
    assert!(page.contains("3 at a time, or after 2d"), "{page}");
    let report = folder.json("forget houses.efface --ids h1 --receipt receipt.cose --json");
    assert_eq!(report["scrubbed"], false);
    assert!(
        folder
            .done("inspect houses.efface")
            .contains("1 row since 20")
    );
    assert!(
        folder
            .done("verify receipt.cose --key model.pub")
            .contains("later: the receipt of a settle")
    );
    assert!(folder.done("log houses.efface").contains(" waits "));
    let out = folder.run("settle houses.efface");
    assert!(
        out.code == 0 && out.err.contains("1 row scrubbed that had waited"),
        "{out:?}"
    );
    let log = folder.done("log houses.efface");
    assert!(
        log.contains("by no. 3") && log.contains("policy") && !log.contains(" waits "),
        "{log}"
    );
    let line = folder
        .done("log houses.efface --json")
        .lines()
        .nth(2)
        .unwrap_or_default()
        .to_owned();
    assert!(
        line.contains("\"scrubbed_by\":3") && !line.contains("\"scrubbed_at\":null"),
        "{line}"
    );
    folder.done("log houses.efface --receipt 3 -o settle.cose");
    assert!(
        folder
            .done("verify settle.cose --key model.pub")
            .contains("receipts 2 to 2")
    );
    folder.fails(
        "policy houses.efface --settle-after 0",
        2,
        &["1 to 10000", "hint: "],
    );
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
    folder.fails(
        "policy houses.efface --epsilon 1 --delta 0",
        2,
        &["δ is 0", "hint: "],
    );
    let page = folder.done("policy houses.efface --epsilon 1 --delta 1e-5 --sensitivity 0.001");
    assert!(
        page.contains("ε = 1, δ = 0.00001, hides a distance of 0.001"),
        "{page}"
    );
    folder.done("export houses.efface -o a.json");
    folder.done("forget houses.efface --ids h1");
    folder.fails(
        "export houses.efface -o b.json",
        5,
        &["moved by up to", "hint: "],
    );
    assert!(!folder.path("b.json").exists());
    folder.done("policy houses.efface --epsilon 1 --delta 1e-5");
    folder.done("export houses.efface -o b.json");
    assert!(
        folder
            .done("log houses.efface --receipt 5")
            .contains("\"source\": \"measured\"")
    );
}

#[test]
fn every_process_exports_the_same_noise_and_the_receipt_says_what_it_spends() {
    let folder = with_log();
    folder.done("policy houses.efface --epsilon 1 --delta 1e-5 --sensitivity 1000");
    for format in ["json", "npz", "safetensors"] {
        let copies: Vec<Vec<u8>> = (1..=4)
            .map(|at| {
                folder.done(&format!(
                    "export houses.efface --format {format} -o {at}.{format}"
                ));
                std::fs::read(folder.path(&format!("{at}.{format}"))).unwrap_or_default()
            })
            .collect();
        assert!(
            !copies[0].is_empty() && copies.iter().all(|copy| *copy == copies[0]),
            "{format}"
        );
    }
    let page = folder.done("policy houses.efface");
    assert!(
        page.contains("ε = 1.0000 at δ = 0.00001 over 1 export"),
        "{page}"
    );
    folder.done("forget houses.efface --ids h1");
    folder.done("export houses.efface -o next.json");
    folder.done("log houses.efface --receipt 15 -o receipt.cose");
    let page = folder.done("verify receipt.cose --key model.pub");
    assert!(
        page.contains("ε = 1.0000 at δ = 0.00001; in all ε = 1.4"),
        "{page}"
    );
    folder.done("policy houses.efface --epsilon 2 --delta 1e-5 --sensitivity 1000");
    folder.fails(
        "export houses.efface",
        5,
        &["two copies of one version", "hint: ", "--noise"],
    );
}

#[cfg(unix)]
#[test]
fn a_key_that_others_can_read_signs_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let folder = with_log();
    let key = folder.path("houses.efface.key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap_or_default();
    folder.fails(
        "forget houses.efface --ids h1",
        5,
        &["houses.efface.key", "644", "chmod 600"],
    );
    assert_eq!(folder.json("inspect houses.efface --json")["rows"], 7);
}

#[test]
fn a_model_that_was_tampered_with_is_found_out() {
    let folder = with_log();
    folder.done("forget houses.efface --ids h1");
    let bytes = std::fs::read(folder.path("houses.efface")).unwrap_or_default();
    // Somewhere in a signed receipt.
    let at = bytes
        .windows(12)
        .rposition(|window| window == b"\"scrubbed_at")
        .unwrap_or_default();
    let mut other = bytes.clone();
    other[at + 2] ^= 1;
    folder.write("other.efface", &other);
    let out = folder.run("verify other.efface --key model.pub");
    assert!(out.code == 6 && out.out.contains("FAILS"), "{out:?}");
}

/// The second verifier, which shares no code with the first, agrees. Skipped where it cannot run.
#[test]
fn the_python_verifier_agrees() {
    let able = std::process::Command::new("python3")
        .args(["-c", "import cryptography"])
        .output();
    if !able.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: python3 has no `cryptography`");
        return;
    }
    let folder = with_log();
    folder.done("forget houses.efface --subject owner=ann --request T-1 --receipt receipt.cose");
    folder.done("keys houses.efface --rotate");
    folder.run("forget houses.efface --subject owner=nobody --request T-2");
    folder.done("policy houses.efface --settle-after 9 --epsilon 1 --delta 1e-6");
    folder.done("forget houses.efface --ids h2");
    folder.done("export houses.efface -o a.json");
    folder.done("log houses.efface --receipt 6 -o late.cose");
    folder.done("log houses.efface --raw -o log.txt");
    folder.done("log houses.efface --checkpoint -o head.txt");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../verify/verify.py");
    for line in [
        "bundle model.pub receipt.cose",
        "bundle model.pub late.cose",
        "log model.pub log.txt head.txt",
    ] {
        let output = std::process::Command::new("python3")
            .arg(script)
            .args(line.split(' '))
            .current_dir(folder.directory.path())
            .output();
        assert!(
            output.as_ref().is_ok_and(|output| output.status.success()),
            "{line}: {output:?}"
        );
    }
}

/// Yesterday's copy and today's log make a model without what was forgotten in between.
#[test]
fn an_older_copy_is_restored_with_a_newer_log() {
    let folder = with_log();
    folder.done("backup houses.efface -o yesterday.efface");
    folder.done("forget houses.efface --subject owner=ann --request T-1");
    folder.write(
        "more.csv",
        "house,owner,city,rooms,price\nh8,eve,Graz,2,160\n",
    );
    folder.done("learn houses.efface more.csv");
    folder.done("backup houses.efface --log-only -o today.log");
    folder.fails(
        "restore yesterday.efface --log today.log -o houses.efface",
        5,
        &["houses.efface"],
    );
    std::fs::remove_file(folder.path("houses.efface")).unwrap_or_default();
    folder.fails(
        "restore yesterday.efface --log yesterday.efface -o houses.efface",
        6,
        &["older copy"],
    );
    let out = folder.run("restore yesterday.efface --log today.log -o houses.efface");
    assert!(
        out.code == 0
            && out.err.contains("restored 5 rows")
            && out.err.contains("2 rows of the copy"),
        "{out:?}"
    );
    assert!(
        out.err.contains("warning: 1 row that were learned"),
        "{out:?}"
    );
    folder.done("verify houses.efface --key model.pub");
    assert!(folder.done("log houses.efface").contains("restore"));
    folder.done("log houses.efface --receipt 3 -o restore.cose");
    assert!(
        folder
            .done("verify restore.cose --key model.pub")
            .contains("restore: done")
    );
    folder.done("predict houses.efface houses.csv");
}
