//! Known vectors of the standards.

use efface_receipt::{Hash, MemoryLog, canonical, leaf_hash, sha256};
use serde_json::json;

/// RFC 8785, Appendix B: numbers.
#[test]
fn rfc_8785_appendix_b_numbers() {
    for (bits, text) in [
        (0x0000000000000000u64, "0"),
        (0x8000000000000000, "0"),
        (0x0000000000000001, "5e-324"),
        (0x8000000000000001, "-5e-324"),
        (0x7fefffffffffffff, "1.7976931348623157e+308"),
        (0xffefffffffffffff, "-1.7976931348623157e+308"),
        (0x4340000000000000, "9007199254740992"),
        (0xc340000000000000, "-9007199254740992"),
        (0x4430000000000000, "295147905179352830000"),
        (0x44b52d02c7e14af5, "9.999999999999997e+22"),
        (0x44b52d02c7e14af6, "1e+23"),
        (0x44b52d02c7e14af7, "1.0000000000000001e+23"),
        (0x444b1ae4d6e2ef4e, "999999999999999700000"),
        (0x444b1ae4d6e2ef4f, "999999999999999900000"),
        (0x444b1ae4d6e2ef50, "1e+21"),
        (0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"),
        (0x3eb0c6f7a0b5ed8d, "0.000001"),
        (0x41b3de4355555553, "333333333.3333332"),
        (0x41b3de4355555554, "333333333.33333325"),
        (0x41b3de4355555555, "333333333.3333333"),
        (0x41b3de4355555556, "333333333.3333334"),
        (0x41b3de4355555557, "333333333.33333343"),
        (0xbecbf647612f3696, "-0.0000033333333333333333"),
        (0x43143ff3c1cb0959, "1424953923781206.2"),
    ] {
        assert_eq!(
            canonical::ecmascript(f64::from_bits(bits)).as_deref(),
            Some(text)
        );
        // Minus zero aside, the text is its own canonical form.
        let value = canonical::parse(text.as_bytes(), "a number", 100).unwrap();
        assert_eq!(canonical::write(&value).unwrap(), text.as_bytes());
    }
    for bits in [
        0x7fffffffffffffffu64,
        0x7ff0000000000000,
        0xfff0000000000000,
    ] {
        assert_eq!(canonical::ecmascript(f64::from_bits(bits)), None);
    }
}

/// RFC 8785 §3.2.2 and §3.2.4: the sample object and its bytes.
#[test]
fn rfc_8785_sample_object() {
    let thirds: f64 = "333333333.33333329".parse().unwrap();
    let sample = json!({
        "numbers": [thirds, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u{20ac}$\u{f}\u{a}A'\u{42}\u{22}\u{5c}\\\"/",
        "literals": [null, true, false]
    });
    let expected = concat!(
        r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"#,
        r#""string":"€$\u000f\nA'B\"\\\\\"/"}"#
    );
    assert_eq!(canonical::write(&sample).unwrap(), expected.as_bytes());
    assert_eq!(
        canonical::parse(expected.as_bytes(), "the sample", 1000).unwrap(),
        sample
    );
}

/// RFC 8785 §3.2.3: keys are sorted by UTF-16 code units.
#[test]
fn rfc_8785_sorting() {
    let sample = json!({
        "\u{20ac}": "Euro Sign", "\r": "Carriage Return", "\u{fb33}": "Hebrew Letter Dalet With Dagesh",
        "1": "One", "\u{1f600}": "Emoji: Grinning Face", "\u{80}": "Control",
        "\u{f6}": "Latin Small Letter O With Diaeresis"
    });
    let text = String::from_utf8(canonical::write(&sample).unwrap()).unwrap();
    let order = [
        "Carriage", "One", "Control", "Latin", "Euro", "Emoji", "Hebrew",
    ]
    .map(|word| text.find(word).unwrap());
    assert!(order.is_sorted(), "{text}");
}

#[test]
fn anything_but_the_canonical_form_is_refused() {
    for text in [
        "",
        " ",
        "1 ",
        " 1",
        "01",
        "1.0",
        "1.50",
        "-0",
        "+1",
        ".5",
        "1.",
        "1e1",
        "1E+30",
        "1e30",
        "1e400",
        "-1e400",
        "NaN",
        "nan",
        "inf",
        "Infinity",
        "9007199254740993",
        "18446744073709551615",
        "0.1000000000000000055511151231",
        "1e-400",
        "0x1",
        "1_0",
        "--1",
        "-",
        "tru",
        "nul",
        "[1,]",
        "[,]",
        "[1 ,2]",
        "[1",
        "{",
        "{}}",
        r#"{"a":1,}"#,
        r#"{"a":1,"a":2}"#,
        r#"{"b":1,"a":2}"#,
        r#"{"a" :1}"#,
        r#"{a:1}"#,
        r#"{"a":1,"a":1}"#,
        r#"{"\ufb33":1}"#,
        "{\"\u{fb33}\":1,\"\u{1f600}\":2}",
        r#""\/""#,
        r#""\u0041""#,
        r#""\u000A""#,
        r#""\u000a""#,
        r#""\u001F""#,
        r#""\ud800""#,
        r#""\x""#,
        "\"\n\"",
        "\"",
        "\"\\",
        "\"\\u00",
        "'a'",
        "\u{feff}1",
        "1\n",
        "[1]\n",
        "[1][2]",
    ] {
        assert!(
            canonical::parse(text.as_bytes(), "a document", 1000).is_err(),
            "{text:?}"
        );
    }
    assert!(canonical::parse(b"\"\xff\"", "a document", 1000).is_err());
    assert!(canonical::parse(b"\"\xed\xa0\x80\"", "a document", 1000).is_err());
    for value in [json!(u64::MAX), json!(i64::MIN), json!((1u64 << 53) + 1)] {
        assert!(canonical::write(&value).is_err());
    }
}

/// The tree of the test programs of the Certificate Transparency reference implementation
/// (merkle_tree_test.cc): eight leaves, a root for each size.
#[test]
fn rfc_6962_reference_tree() {
    let leaves: [&[u8]; 8] = [
        b"",
        b"\x00",
        b"\x10",
        b"\x20\x21",
        b"\x30\x31",
        b"\x40\x41\x42\x43",
        b"\x50\x51\x52\x53\x54\x55\x56\x57",
        b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
    ];
    let roots = [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];
    let mut log = MemoryLog::default();
    assert_eq!(log.head().root, sha256(b""));
    for (leaf, root) in leaves.iter().zip(roots) {
        log.append(&leaf_hash(leaf));
        assert_eq!(log.head().root, Hash::from_hex(root).unwrap());
    }
    // That source's audit path of leaf 5 in the tree of 8.
    let path = log
        .inclusion(5)
        .unwrap()
        .path
        .iter()
        .map(Hash::to_string)
        .collect::<Vec<_>>();
    assert_eq!(
        path,
        [
            "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
            "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        ]
    );
}
