//! Parquet files written by the `parquet` crate and read back, then damaged.
#![cfg(feature = "parquet")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper of a test fails as the test does"
)]

use std::sync::Arc;

use efface::features::Cell;
use efface_io::{ReadFault, Source, TableRecord};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use proptest::prelude::*;

const SCHEMA: &str = "message rows {
    required int64 id;
    optional double weight;
    optional binary name (UTF8);
    required boolean member;
    required int32 born (DATE);
    required int64 seen (TIMESTAMP(NANOS,true));
    required int64 price (DECIMAL(18,2));
    required binary code;
    required fixed_len_byte_array(16) key (UUID);
}";

/// Two row groups of the same three rows.
fn sample(compression: Compression) -> Vec<u8> {
    written(
        WriterProperties::builder()
            .set_compression(compression)
            .build(),
    )
}

fn written(properties: WriterProperties) -> Vec<u8> {
    let properties = Arc::new(properties);
    let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
    let text = |value: &str| ByteArray::from(value.as_bytes().to_vec());
    for _ in 0..2 {
        let mut group = writer.next_row_group().unwrap();
        let mut column = 0;
        while let Some(mut chunk) = group.next_column().unwrap() {
            match (column, chunk.untyped()) {
                (0, ColumnWriter::Int64ColumnWriter(w)) => {
                    w.write_batch(&[1, -2, i64::MAX], None, None)
                }
                (1, ColumnWriter::DoubleColumnWriter(w)) => {
                    w.write_batch(&[0.5, f64::NAN], Some(&[1, 0, 1]), None)
                }
                (2, ColumnWriter::ByteArrayColumnWriter(w)) => {
                    w.write_batch(&[text("Ada"), text("")], Some(&[1, 1, 0]), None)
                }
                (3, ColumnWriter::BoolColumnWriter(w)) => {
                    w.write_batch(&[true, false, true], None, None)
                }
                (4, ColumnWriter::Int32ColumnWriter(w)) => {
                    w.write_batch(&[0, -1, 11_016], None, None)
                }
                (5, ColumnWriter::Int64ColumnWriter(w)) => {
                    w.write_batch(&[0, 1, 1_000_000_000], None, None)
                }
                (6, ColumnWriter::Int64ColumnWriter(w)) => {
                    w.write_batch(&[1999, -5, 0], None, None)
                }
                (7, ColumnWriter::ByteArrayColumnWriter(w)) => {
                    w.write_batch(&[text("x"), text("y"), text("z")], None, None)
                }
                (_, ColumnWriter::FixedLenByteArrayColumnWriter(w)) => {
                    let key = FixedLenByteArray::from(vec![0xab; 16]);
                    w.write_batch(&[key.clone(), key.clone(), key], None, None)
                }
                _ => panic!("the schema has another column {column}"),
            }
            .unwrap();
            chunk.close().unwrap();
            column += 1;
        }
        group.close().unwrap();
    }
    writer.into_inner().unwrap()
}

fn source(bytes: impl Into<Vec<u8>>) -> Source {
    Source::from_bytes("a.parquet", bytes, None).unwrap()
}

fn fault(bytes: impl Into<Vec<u8>>) -> ReadFault {
    let outcome: efface_io::Result<Vec<TableRecord>> =
        source(bytes).table().and_then(Iterator::collect);
    *outcome.unwrap_err().fault
}

/// A file of no rows with the given columns.
fn bare(columns: &str) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(&format!("message rows {{ {columns} }}")).unwrap());
    let writer = SerializedFileWriter::new(Vec::new(), schema, Arc::default()).unwrap();
    writer.into_inner().unwrap()
}

fn check(mut table: efface_io::RecordPass) {
    let text = |value: &str| Cell::Text(value.to_owned());
    let names = [
        "id", "weight", "name", "member", "born", "seen", "price", "code", "key",
    ];
    assert_eq!(table.columns(), names);
    for _ in 0..2 {
        let records: Vec<TableRecord> = table.by_ref().map(|r| r.unwrap()).collect();
        assert_eq!(
            records.iter().map(|r| r.line).collect::<Vec<_>>(),
            [1, 2, 3, 4, 5, 6]
        );
        let key = text("abababab-abab-abab-abab-abababababab");
        let first = [
            Cell::Number(1.0),
            Cell::Number(0.5),
            text("Ada"),
            text("true"),
            text("1970-01-01"),
            text("1970-01-01T00:00:00"),
            Cell::Number(19.99),
            text("x"),
            key,
        ];
        assert_eq!(records[0].cells, first);
        assert_eq!(records[3].cells, first);
        assert_eq!(records[1].cells[1..3], [Cell::Missing, text("")]);
        assert_eq!(
            records[1].cells[4..7],
            [
                text("1969-12-31"),
                text("1970-01-01T00:00:00.000000001"),
                Cell::Number(-0.05)
            ]
        );
        assert_eq!(records[2].cells[0], text("9223372036854775807"));
        assert!(matches!(records[2].cells[1], Cell::Number(nan) if nan.is_nan()));
        assert_eq!(records[2].cells[2], Cell::Missing);
        assert_eq!(table.bytes_read(), table.size());
        table.rewind().unwrap();
        assert_eq!(table.bytes_read(), 0);
    }
}

#[test]
fn a_written_file_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::ZSTD(ZstdLevel::default()),
    ];
    for compression in codecs {
        let bytes = sample(compression);
        let path = folder.path().join("a.parquet");
        std::fs::write(&path, &bytes).unwrap();
        check(source(bytes).table().unwrap());
        check(efface_io::open(&path, None).unwrap().table().unwrap());
    }
}

#[test]
fn lists_of_lengths_read_back() {
    for encoding in [
        Encoding::DELTA_LENGTH_BYTE_ARRAY,
        Encoding::DELTA_BYTE_ARRAY,
    ] {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            let mut properties = WriterProperties::builder()
                .set_dictionary_enabled(false)
                .set_writer_version(version)
                .set_compression(Compression::SNAPPY);
            for column in ["name", "code"] {
                properties = properties.set_column_encoding(ColumnPath::from(column), encoding);
            }
            check(source(written(properties.build())).table().unwrap());
        }
    }
}

/// Found by fuzzing: a page of ten bytes that announces 18 billion lengths.
#[test]
fn more_lengths_than_values_are_refused_before_room_is_made_for_them() {
    let table = source(include_bytes!("data/many_lengths.parquet").to_vec())
        .table()
        .unwrap();
    let error = table
        .map(|row| row.map(drop))
        .find_map(Result::err)
        .unwrap();
    assert!(
        matches!(*error.fault, ReadFault::BrokenParquet { row: 0 }),
        "{error}"
    );
}

#[test]
fn columns_that_are_not_read_are_named() {
    assert_eq!(
        source(bare("required int32 a;")).table().unwrap().count(),
        0
    );
    for nested in [
        "optional group tags { required int32 a; }",
        "repeated int32 tags;",
    ] {
        assert!(
            matches!(fault(bare(nested)), ReadFault::NestedColumn { column } if column == "tags"),
            "{nested}"
        );
    }
    let odd = fault(bare("required fixed_len_byte_array(12) gap (INTERVAL);"));
    assert!(matches!(odd, ReadFault::UnsupportedColumn { column, .. } if column == "gap"));
    let twice = fault(bare("required int32 a; required int32 a;"));
    assert!(matches!(twice, ReadFault::DuplicateColumns(names) if names == ["a"]));
}

#[test]
fn bytes_that_are_not_text_are_named() {
    let mut bytes = sample(Compression::UNCOMPRESSED);
    let at = bytes.windows(5).position(|w| w == b"\x01\0\0\0x").unwrap();
    bytes[at + 4] = 0xff;
    assert!(matches!(fault(bytes), ReadFault::NotUtf8 { line: 1, column: Some(c) } if c == "code"));
}

#[test]
fn other_files_are_refused() {
    assert!(matches!(fault("a,b\n1,2\n"), ReadFault::NotParquet));
    assert!(matches!(fault("PAR1PAR1"), ReadFault::NotParquet));
    let bytes = sample(Compression::SNAPPY);
    assert!(matches!(
        fault(&bytes[..bytes.len() - 9]),
        ReadFault::NotParquet
    ));
    let mut damaged = bytes.clone();
    damaged[4..40].fill(0xff);
    assert!(matches!(
        fault(damaged),
        ReadFault::BrokenParquet { row: 0 }
    ));
}

/// The rows before the damage, and where it is; the same from blocks.
#[test]
fn a_damaged_row_group_is_found_behind_the_rows_before_it() {
    let mut bytes = sample(Compression::UNCOMPRESSED);
    let groups: Vec<usize> = (0..bytes.len() - 5)
        .filter(|at| bytes[*at..].starts_with(b"\x03\0\0\0Ada"))
        .collect();
    // The text of the second group gets a length that no page has.
    bytes[groups[1]..groups[1] + 4].fill(0x7f);
    let mut table = source(bytes.clone()).table().unwrap();
    assert_eq!(table.by_ref().take(3).filter(|row| row.is_ok()).count(), 3);
    let error = table.next().unwrap().unwrap_err();
    assert!(
        matches!(*error.fault, ReadFault::BrokenParquet { row: 3 }),
        "{error}"
    );
    let mut blocks = source(bytes).blocks(1).unwrap();
    assert!(blocks.next_block().unwrap().is_some());
    let error = blocks.next_block().err().unwrap();
    assert!(
        matches!(*error.fault, ReadFault::BrokenParquet { row: 3 }),
        "{error}"
    );
}

proptest! {
    #[test]
    fn damage_never_panics(at in 0.0..1.0, junk in prop::collection::vec(any::<u8>(), 1..24), codec in 0..2) {
        let codec = if codec == 0 { Compression::UNCOMPRESSED } else { Compression::SNAPPY };
        let mut bytes = sample(codec);
        let start = ((bytes.len() - junk.len()) as f64 * at) as usize;
        bytes[start..start + junk.len()].copy_from_slice(&junk);
        if let Ok(table) = source(bytes).table() {
            prop_assert!(table.take(1000).count() <= 1000);
        }
    }
}

/// A column of one value, a hundred million times, in a few kilobytes.
#[test]
fn a_column_that_unpacks_to_more_than_memory_should_hold_is_refused() {
    let zstd = Compression::ZSTD(ZstdLevel::try_new(9).unwrap());
    let properties = WriterProperties::builder()
        .set_compression(zstd)
        .set_dictionary_enabled(false)
        .set_data_page_size_limit(64 << 20)
        .build();
    let schema = Arc::new(parse_message_type("message rows { required double x; }").unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut chunk = group.next_column().unwrap().unwrap();
    let ColumnWriter::DoubleColumnWriter(column) = chunk.untyped() else {
        panic!("it is of doubles")
    };
    for _ in 0..40 {
        column.write_batch(&vec![1.0; 100_000], None, None).unwrap();
    }
    chunk.close().unwrap();
    group.close().unwrap();
    let bytes = writer.into_inner().unwrap();
    assert!(bytes.len() < 1 << 16, "{} bytes are no bomb", bytes.len());
    let limited = |memory| {
        let limits = efface_io::ReadLimits {
            memory,
            ..efface_io::ReadLimits::default()
        };
        source(bytes.clone()).with_limits(limits).table()
    };
    assert!(limited(64 << 20).is_ok());
    match limited(16 << 20) {
        Err(error) => assert!(
            matches!(*error.fault, ReadFault::TooMuchMemory { .. }),
            "{error}"
        ),
        Ok(_) => panic!("32 MB were unpacked into 16"),
    }
}

/// Found by fuzzing: a dictionary that holds fewer values than its header says, on which the
/// decoder panics.
#[test]
fn what_the_decoder_says_when_it_panics_is_not_printed() {
    static SEEN: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let count = || SEEN.load(std::sync::atomic::Ordering::SeqCst);
    let bytes = include_bytes!("data/short_dictionary.parquet").to_vec();
    let mut table = source(bytes).table().unwrap();
    // Opening the file put our hook in place; one that is set later stands before it, as a caller's
    // own would.
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic
            .location()
            .is_some_and(|place| place.file().contains("parquet-"))
        {
            SEEN.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
        before(panic);
    }));
    let error = table.read(&mut TableRecord::default()).unwrap_err();
    assert!(
        matches!(*error.fault, ReadFault::BrokenParquet { row: 0 }),
        "{error}"
    );
    assert_eq!(
        count(),
        1,
        "the decoder no longer panics here: this test needs another file"
    );
}

/// Found by fuzzing: a file whose headers kept the decoder busy for more than a minute.
#[test]
fn headers_that_keep_the_decoder_busy_are_refused() {
    let bytes = include_bytes!("data/page_behind_column.parquet").to_vec();
    let read = || {
        let mut table = source(bytes.clone()).table()?;
        while table.read(&mut TableRecord::default())? {}
        Ok(())
    };
    let error: efface_io::Error = read().unwrap_err();
    assert!(
        matches!(*error.fault, ReadFault::BrokenParquet { .. }),
        "{error}"
    );
}
