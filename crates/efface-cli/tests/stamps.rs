//! Time stamps of receipts, by an authority that OpenSSL plays. Skipped where there is no OpenSSL.
#![allow(clippy::unwrap_used)]

mod common;

use common::Folder;

const AUTHORITY: &str = "[req]\ndistinguished_name = dn\nprompt = no\nx509_extensions = v3\n[dn]\nO = Example Authority\nCN = Example TSA\n[v3]\n\
keyUsage = critical,digitalSignature\nextendedKeyUsage = critical,timeStamping\n[tsa1]\nserial = ./serial\nsigner_cert = ./tsa.pem\n\
signer_key = ./tsa.key\nsigner_digest = sha256\ndefault_policy = 1.2.3.4.1\ndigests = sha256\naccuracy = secs:1\ntsa_name = yes\n\
ess_cert_id_alg = sha256\n";

fn openssl(folder: &Folder, line: &str) -> bool {
    let place = folder.path("tsa.cnf");
    let ran = std::process::Command::new("openssl")
        .current_dir(place.parent().unwrap())
        .args(line.split(' '))
        .output();
    ran.is_ok_and(|output| output.status.success())
}

#[test]
fn a_receipt_is_stamped_by_an_authority() {
    let folder = Folder::with_houses();
    folder.write("tsa.cnf", AUTHORITY);
    folder.write("serial", "01\n");
    if !openssl(
        &folder,
        "req -x509 -newkey rsa:2048 -nodes -keyout tsa.key -out tsa.pem -days 30 -config tsa.cnf",
    ) {
        eprintln!("skipped: there is no openssl");
        return;
    }
    let keys = folder.done("keys houses.efface");
    folder.write("model.pub", keys);
    folder.done("forget houses.efface --ids h1 --receipt r.cose");
    folder.done("forget houses.efface --ids h2 --receipt other.cose");
    folder.done("receipt stamp-request r.cose -o r.tsq");
    folder.done("receipt stamp-request r.cose -o again.tsq");
    folder.fails(
        "receipt stamp-request r.cose -o r.tsq",
        5,
        &["exists already"],
    );
    assert!(openssl(
        &folder,
        "ts -reply -config tsa.cnf -section tsa1 -queryfile r.tsq -out r.tsr"
    ));
    let attach = |receipt: &str, request: &str, output: &str| {
        format!("receipt attach {receipt} --request {request} --stamp r.tsr -o {output}")
    };
    folder.fails(
        &attach("other.cose", "r.tsq", "no.cose"),
        5,
        &["something else than this receipt"],
    );
    folder.fails(
        &attach("r.cose", "again.tsq", "no.cose"),
        5,
        &["another request"],
    );
    folder.fails(
        "receipt attach r.cose --request r.tsq --stamp model.pub -o no.cose",
        5,
        &["no RFC 3161 time stamp"],
    );
    assert!(!folder.path("no.cose").exists());
    let out = folder.run(&attach("r.cose", "r.tsq", "stamped.cose"));
    assert!(
        out.code == 0 && out.err.contains("Z by Example Authority, Example TSA"),
        "{out:?}"
    );
    let page = folder.done("verify stamped.cose --key model.pub");
    assert!(
        page.contains("stamped") && page.contains("Example TSA"),
        "{page}"
    );
    let shown = folder.run("receipt show stamped.cose");
    assert!(
        shown.code == 0 && shown.err.contains("time stamp of 20"),
        "{shown:?}"
    );
    folder.fails("receipt stamp r.cose -o no.tok", 4, &["no time stamp"]);
    folder.done("receipt stamp stamped.cose -o r.tok");
    assert!(openssl(
        &folder,
        "ts -verify -queryfile r.tsq -in r.tok -token_in -CAfile tsa.pem"
    ));
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../verify/verify.py");
    let able = std::process::Command::new("python3")
        .args(["-c", "import cryptography"])
        .output();
    if able.is_ok_and(|output| output.status.success()) {
        let place = folder.path("tsa.cnf");
        let ran = std::process::Command::new("python3")
            .current_dir(place.parent().unwrap())
            .args([script, "bundle", "model.pub", "stamped.cose"])
            .output();
        assert!(ran.unwrap().status.success());
    }
}
