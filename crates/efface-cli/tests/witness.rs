//! A log that witnesses watch.
#![allow(clippy::unwrap_used)]

mod common;

use common::Folder;

#[test]
fn a_receipt_is_verified_with_a_quorum_of_witnesses() {
    let folder = Folder::with_houses();
    let keys = folder.done("keys houses.efface");
    folder.write("model.pub", keys);
    let mut all = String::new();
    for at in 1..=3 {
        let key = folder.done(&format!(
            "witness init seen{at}.json --name witness.example/{at}"
        ));
        assert_eq!(folder.done(&format!("witness key seen{at}.json")), key);
        all.push_str(&key);
    }
    folder.write("witnesses.pub", &all);
    folder.fails("witness init seen1.json --name again", 5, &["seen1.json"]);
    folder.done("forget houses.efface --ids h1");
    folder.done("log houses.efface --for-witness 0 -o request.txt");
    folder.fails(
        "witness cosign seen1.json request.txt",
        5,
        &["status 404", "witness watch"],
    );
    for at in 1..=3 {
        folder.done(&format!("witness watch seen{at}.json model.pub"));
    }
    let lines: String = (1..=2)
        .map(|at| folder.done(&format!("witness cosign seen{at}.json request.txt")))
        .collect();
    assert!(
        lines
            .lines()
            .all(|line| line.starts_with("— witness.example/")),
        "{lines}"
    );
    folder.write("lines.txt", &lines);
    folder.done("log houses.efface --receipt 1 -o alone.cose");
    folder.fails(
        "verify alone.cose --key model.pub --witness witnesses.pub --quorum 1",
        5,
        &["0 of the named witnesses"],
    );
    folder.done("log houses.efface --add-cosignatures lines.txt --witness witnesses.pub");
    folder.done("log houses.efface --receipt 1 -o receipt.cose");
    folder.done("verify receipt.cose --key model.pub");
    let out = folder.run("verify receipt.cose --key model.pub --witness witnesses.pub --quorum 2");
    assert!(
        out.code == 0 && out.err.contains("witnessed by witness.example/2 at 20"),
        "{out:?}"
    );
    folder.fails(
        "verify receipt.cose --key model.pub --witness witnesses.pub",
        5,
        &["2 of the named", "3 are needed"],
    );
    folder.done("verify houses.efface --key model.pub --witness witnesses.pub --quorum 2");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../verify/verify.py");
    let python = |quorum: &str| {
        let arguments = [
            "witnessed",
            "model.pub",
            "receipt.cose",
            "witnesses.pub",
            quorum,
        ];
        let path = folder.path("model.pub");
        let ran = std::process::Command::new("python3")
            .current_dir(path.parent().unwrap())
            .arg(script)
            .args(arguments)
            .output();
        ran.ok().and_then(|output| output.status.code())
    };
    let able = std::process::Command::new("python3")
        .args(["-c", "import cryptography"])
        .output();
    if able.is_ok_and(|output| output.status.success()) {
        assert_eq!((python("2"), python("3")), (Some(0), Some(1)));
    }

    // The log grows: the witness is asked from where it stands, and cosignatures of the old head
    // are of no use.
    folder.done("forget houses.efface --ids h2");
    folder.fails(
        "verify houses.efface --witness witnesses.pub --quorum 1",
        5,
        &["0 of the named witnesses"],
    );
    folder.fails(
        "log houses.efface --add-cosignatures lines.txt --witness witnesses.pub",
        5,
        &["0 of the named"],
    );
    folder.done("log houses.efface --for-witness 0 -o request.txt --force");
    folder.fails(
        "witness cosign seen1.json request.txt",
        5,
        &["status 409", "--for-witness 2"],
    );
    folder.done("log houses.efface --for-witness 2 -o request.txt --force");
    folder.done("witness cosign seen1.json request.txt");

    // A second history from the same copy: the witness has seen the first.
    let folder = Folder::with_houses();
    let keys = folder.done("keys houses.efface");
    folder.write("model.pub", keys);
    folder.done("witness init seen.json --name witness.example/1");
    folder.done("witness watch seen.json model.pub");
    folder.done("backup houses.efface -o copy.efface");
    folder.done("forget houses.efface --ids h1");
    folder.done("log houses.efface --for-witness 0 -o request.txt");
    folder.done("witness cosign seen.json request.txt");
    std::fs::rename(folder.path("copy.efface"), folder.path("houses.efface")).unwrap();
    std::fs::remove_file(folder.path("houses.efface.head")).unwrap();
    folder.done("forget houses.efface --ids h2");
    folder.done("forget houses.efface --ids h3");
    folder.done("log houses.efface --for-witness 2 -o request.txt --force");
    folder.fails(
        "witness cosign seen.json request.txt",
        5,
        &["status 422", "does not continue"],
    );
}
