//! Whatever the bytes are, a reader ends with records or with an error: it neither panics nor runs
//! on.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper of a test fails as the test does"
)]

use std::io::Write as _;

use efface_io::{ComparisonSign, FileFormat, ReadLimits, RowCondition, Source, TableRecord};
use proptest::prelude::*;

const LIMITS: ReadLimits = ReadLimits {
    line_bytes: 200,
    columns: 20,
    keys: 10,
    name_bytes: 30,
    features: 1 << 24,
    memory: 1 << 30,
    sums: 1 << 30,
};

fn drive(name: &str, bytes: &[u8], format: FileFormat) {
    let Ok(source) = Source::from_bytes(name, bytes, Some(format)) else {
        return;
    };
    for source in [source.clone(), source.with_limits(LIMITS)] {
        if source.is_sparse() {
            let Ok(mut table) = source.sparse() else {
                continue;
            };
            let first = table.by_ref().count();
            table.rewind().unwrap();
            assert_eq!(table.count(), first);
        } else if let Ok(mut table) = source.table() {
            let width = table.columns().len();
            let first = table
                .by_ref()
                .inspect(|r| assert!(r.iter().all(|r| r.cells.len() == width)))
                .count();
            table.rewind().unwrap();
            assert_eq!(table.count(), first);
        }
    }
}

fn drive_all(bytes: &[u8]) {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    let gzip = encoder.finish().unwrap();
    let zstd = zstd::encode_all(bytes, 1).unwrap();
    for format in [
        FileFormat::Csv,
        FileFormat::Tsv,
        FileFormat::JsonLines,
        FileFormat::Svmlight,
        FileFormat::Parquet,
    ] {
        drive("a", bytes, format);
        drive("a.gz", bytes, format);
        drive("a.zst", bytes, format);
        drive("a.gz", &gzip, format);
        drive("a.zst", &zstd, format);
    }
}

/// Pieces from which broken files of every text format are easily made.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let pieces: [&[u8]; 26] = [
        b"a",
        b"b",
        b",",
        b"\t",
        b"\"",
        b"\n",
        b"\r",
        b"\r\n",
        b"{",
        b"}",
        b"[",
        b"]",
        b":",
        b"\"a\":",
        b"\"b\":1",
        b"null",
        b"1",
        b"-2.5e3",
        b" ",
        b"#",
        b"qid:1",
        b"1:1 ",
        b"7:nan",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\\u",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..60)
        .prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        drive_all(&bytes);
    }

    #[test]
    fn any_pieces(bytes in pieces()) {
        drive_all(&bytes);
    }

    #[test]
    fn csv_reads_back_what_was_quoted(
        rows in prop::collection::vec(prop::collection::vec("[a\",\r\n é]{0,6}", 3), 0..8)
    ) {
        let mut text = "x,y,z\n".to_owned();
        for row in &rows {
            let fields: Vec<String> = row.iter().map(|f| format!("\"{}\"", f.replace('"', "\"\""))).collect();
            text += &(fields.join(",") + "\r\n");
        }
        let table = Source::from_bytes("a.csv", text, None).unwrap().table().unwrap();
        let back: Vec<Vec<String>> = table.map(|record| record.unwrap().cells.into_iter().map(|cell| match cell {
            efface::features::Cell::Text(text) => text,
            _ => String::new(),
        }).collect()).collect();
        prop_assert_eq!(back, rows);
    }
}

/// Conditions with names and values of any kind.
fn conditions() -> impl Strategy<Value = RowCondition> {
    let name = "[a-z =<>()!'\"éß]{0,6}".prop_filter("no text holds all three quotes", |name| {
        !name.contains('\'') || !name.contains('"')
    });
    let sign = prop_oneof![
        Just(ComparisonSign::Equal),
        Just(ComparisonSign::NotEqual),
        Just(ComparisonSign::Less),
        Just(ComparisonSign::AtMost),
        Just(ComparisonSign::More),
        Just(ComparisonSign::AtLeast),
    ];
    let leaf =
        (name.clone(), sign, name).prop_map(|(column, operator, value)| RowCondition::Compare {
            column,
            operator,
            value,
        });
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4).prop_map(RowCondition::All),
            prop::collection::vec(inner.clone(), 2..4).prop_map(RowCondition::Any),
            inner.prop_map(|inner| RowCondition::Not(Box::new(inner))),
        ]
    })
}

proptest! {
    /// Whatever is written for a condition, it is one or an error with a place in it.
    #[test]
    fn any_text_is_a_condition_or_an_error(text in "[a-c =<>()!'\"`andort0-9é]{0,60}") {
        match RowCondition::parse(&text) {
            Ok(condition) => {
                condition.holds(&|_| None);
                prop_assert_eq!(RowCondition::parse(&condition.to_string()).unwrap(), condition);
            }
            Err(error) => prop_assert!(error.at >= 1 && error.at <= text.len() + 1),
        }
    }

    /// A condition that is written down is read back as it was.
    #[test]
    fn conditions_read_back(condition in conditions()) {
        prop_assert_eq!(RowCondition::parse(&condition.to_string()).unwrap(), condition);
    }
}

/// What a pass gives: the records, and the error that ended it.
type Outcome = (Vec<TableRecord>, Option<String>);

fn serial(source: &Source) -> Result<(Vec<String>, Outcome), String> {
    let table = source.table().map_err(|error| error.to_string())?;
    let columns = table.columns().to_vec();
    let mut records = Vec::new();
    for record in table {
        match record {
            Ok(record) => records.push(record),
            Err(error) => return Ok((columns, (records, Some(error.to_string())))),
        }
    }
    Ok((columns, (records, None)))
}

/// The same from blocks, which are all cut before the first of them is parsed.
fn in_blocks(source: &Source, bytes: usize) -> Result<(Vec<String>, Outcome), String> {
    let mut blocks = source.blocks(bytes).map_err(|error| error.to_string())?;
    let columns = blocks.columns().to_vec();
    let mut cut = Vec::new();
    let broken = loop {
        match blocks.next_block() {
            Ok(Some(block)) => cut.push(block),
            Ok(None) => break None,
            Err(error) => break Some(error.to_string()),
        }
    };
    let mut records = Vec::new();
    for block in cut {
        let mut rows = block.rows();
        let mut record = TableRecord::default();
        loop {
            match rows.read(&mut record) {
                Ok(true) => records.push(record.clone()),
                Ok(false) => break,
                Err(error) => return Ok((columns, (records, Some(error.to_string())))),
            }
        }
    }
    Ok((columns, (records, broken)))
}

fn blocks_give_what_a_pass_gives(name: &str, bytes: &[u8], format: FileFormat, size: usize) {
    let Ok(source) = Source::from_bytes(name, bytes, Some(format)) else {
        return;
    };
    for source in [source.clone(), source.with_limits(LIMITS)] {
        // Numbers that are none are equal to nothing, so that what is printed is compared.
        assert_eq!(
            format!("{:?}", in_blocks(&source, size)),
            format!("{:?}", serial(&source))
        );
    }
}

/// Rows of quoted, half quoted and plain fields, of every kind of line.
fn quoted_pieces() -> impl Strategy<Value = Vec<u8>> {
    let pieces: [&[u8]; 14] = [
        b"a", b"1.5", b",", b"\"", b"\"\"", b"\",", b",\"", b"\n", b"\r", b"\r\n", b"\"\n\"", b" ",
        b"\xff", b"1,2\n",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..80)
        .prop_map(|parts| [b"a,b\n", &parts.concat()[..]].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn blocks_of_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400), size in 1usize..100) {
        for format in [FileFormat::Csv, FileFormat::Tsv, FileFormat::JsonLines, FileFormat::Parquet] {
            blocks_give_what_a_pass_gives("a", &bytes, format, size);
        }
    }

    #[test]
    fn blocks_of_pieces(bytes in pieces(), size in 1usize..60) {
        for format in [FileFormat::Csv, FileFormat::Tsv, FileFormat::JsonLines] {
            blocks_give_what_a_pass_gives("a", &bytes, format, size);
        }
    }

    #[test]
    fn blocks_of_quoted_fields(bytes in quoted_pieces(), size in 1usize..40) {
        blocks_give_what_a_pass_gives("a.csv", &bytes, FileFormat::Csv, size);
        let packed = zstd::encode_all(&bytes[..], 1).unwrap();
        let cut = &packed[..packed.len() - packed.len().min(size / 4)];
        blocks_give_what_a_pass_gives("a.csv.zst", cut, FileFormat::Csv, size);
    }
}
