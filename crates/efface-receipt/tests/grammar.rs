//! The vectors of lists of keys and of time stamps in verify/vectors, which the Python verifier reads
//! too. They are made and compared as those of `vectors.rs` are.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

mod common;

use common::*;
use efface_receipt::*;
use serde_json::{Value, json};

/// Bytes of a file in base64, as the vectors have them.
fn base64(bytes: impl AsRef<[u8]>) -> String {
    data_encoding::BASE64.encode(bytes.as_ref())
}

fn verdict<T>(result: Result<T, ReceiptFault>) -> &'static str {
    result.map_or_else(|fault| fault.check(), |_| "ok")
}

/// Lists of keys, by the grammar of docs/receipt.md.
#[test]
fn key_list_vectors() {
    let key = secret().public().to_string();
    let next = SecretKey::from_seed(secret().name(), &[9; 32]).unwrap();
    let next = next.public().to_string();
    let off_curve = {
        // No x belongs to this y.
        let bytes = [&[1_u8, 2][..], &[0; 31]].concat();
        let Hash(hash) = sha256(&[secret().name().as_bytes(), b"\n", &bytes].concat());
        let id = data_encoding::HEXLOWER.encode(&hash[..4]);
        format!("{}+{id}+{}", secret().name(), base64(&bytes))
    };
    let mut cases: Vec<(String, Vec<u8>, &str)> = Vec::new();
    let mut case = |name: &str, text: String, expected| {
        cases.push((name.to_owned(), text.into_bytes(), expected));
    };
    case("one key", format!("{key}\n"), "ok");
    case("no newline at the end", key.clone(), "ok");
    case(
        "empty lines",
        format!("\n\n{key} until 4\n\n{next}\n\n"),
        "ok",
    );
    case(
        "both retired",
        format!("{key} until 4\n{next} until 9\n"),
        "ok",
    );
    case(
        "the largest number",
        format!("{key} until 9007199254740991\n"),
        "ok",
    );
    for number in [
        "+99",
        "-1",
        "0099",
        "",
        " 4",
        "4 ",
        "1e3",
        "0x4",
        "٤",
        "9007199254740992",
        "9223372036854775808",
        "18446744073709551616",
    ] {
        case(
            &format!("until {number:?}"),
            format!("{key} until {number}\n{next}\n"),
            "key",
        );
    }
    for end in [
        "\r\n", "\r", "\u{b}", "\u{c}", "\u{1c}", "\u{1d}", "\u{1e}", "\u{85}", "\u{2028}",
        "\u{2029}", "\u{a0}", " ", "\t", "\0",
    ] {
        case(
            &format!("{end:?} between two keys"),
            format!("{key} until 4{end}{next}\n"),
            "key",
        );
        case(&format!("{end:?} at the end"), format!("{key}{end}"), "key");
    }
    case("a byte order mark", format!("\u{feff}{key}\n"), "key");
    case("two without an end", format!("{key}\n{next}\n"), "key");
    case("no key", String::new(), "key");
    case("empty lines alone", "\n\n".to_owned(), "key");
    case("no point of the curve", format!("{off_curve}\n"), "key");
    let retired = |count: usize| format!("{key} until 4\n").repeat(count);
    case(
        "128 retired keys",
        format!("{}{next}\n", retired(128)),
        "ok",
    );
    case(
        "129 retired keys",
        format!("{}{next}\n", retired(129)),
        "limits",
    );
    case("130 retired keys", retired(130), "limits");
    case(
        "65536 bytes",
        format!("{key}{}", "\n".repeat(65536 - key.len())),
        "ok",
    );
    case(
        "65537 bytes",
        format!("{key}{}", "\n".repeat(65537 - key.len())),
        "limits",
    );
    cases.push((
        "no UTF-8".to_owned(),
        [key.as_bytes(), b"\xff"].concat(),
        "key",
    ));
    let vectors: Vec<Value> = cases
        .into_iter()
        .map(|(name, bytes, expected)| {
            assert_eq!(verdict(KeyRing::from_bytes(&bytes)), expected, "{name}");
            json!({"name": name, "list": base64(&bytes), "expected": expected})
        })
        .collect();
    compare("keys.json", &json!(vectors));
}

/// Time stamps, by the grammar of docs/receipt.md: what a token may leave out, and a changed tag or
/// length in each place of it.
#[test]
fn stamp_vectors() {
    let signature = Signature([7; 64]);
    let good = time_stamp(&stamp_imprint(&signature));
    let mut cases = vec![("a token".to_owned(), good.clone(), "ok")];
    let mut places = Vec::new();
    headers(&good, 0, &mut places);
    for at in places {
        for tag in [0x00, 0x07, 0x0a, 0x1f, 0x24, 0x3f, 0x80, 0xa2, 0xdf, 0xff] {
            let mut changed = good.clone();
            changed[at] = tag;
            // Whatever is inside the authority's name, digests and signers is not read.
            let found = TimeStamp::parse(&changed).and_then(|stamp| stamp.check(&signature));
            cases.push((format!("tag {tag:#x} at {at}"), changed, verdict(found)));
        }
    }
    let vectors: Vec<Value> = cases
        .into_iter()
        .map(|(name, token, expected)| {
            let found = TimeStamp::parse(&token).and_then(|stamp| stamp.check(&signature));
            assert_eq!(verdict(found), expected, "{name}");
            json!({"name": name, "token": base64(&token), "expected": expected})
        })
        .collect();
    let refused = vectors
        .iter()
        .filter(|case| case["expected"] == "stamp")
        .count();
    assert!(refused > 120, "only {refused} changed tags were refused");
    compare(
        "stamps.json",
        &json!({"signature": base64(signature.0), "cases": vectors}),
    );
}

/// Where the values in a token of ours begin.
fn headers(bytes: &[u8], start: usize, found: &mut Vec<usize>) {
    let mut at = 0;
    while at < bytes.len() {
        found.push(start + at);
        let (header, length) = match bytes[at + 1] {
            0x81 => (3, usize::from(bytes[at + 2])),
            0x82 => (
                4,
                usize::from(bytes[at + 2]) << 8 | usize::from(bytes[at + 3]),
            ),
            length => (2, usize::from(length)),
        };
        let content = &bytes[at + header..at + header + length];
        // Constructed values, and the octets that hold the stamped text.
        if bytes[at] & 0x20 != 0 || bytes[at] == 4 && length > 32 {
            headers(content, start + at + header, found);
        }
        at += header + length;
    }
}
