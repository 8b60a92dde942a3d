//! Files on disk: opening, compression, progress and second passes.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper of a test fails as the test does"
)]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use efface_io::{Compression, FileFormat, ReadFault, Source, TableRecord, open};
use tempfile::TempDir;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

fn put(folder: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn fault<T>(outcome: efface_io::Result<T>) -> ReadFault {
    match outcome {
        Ok(_) => panic!("read without an error"),
        Err(error) => *error.fault,
    }
}

fn big_csv() -> String {
    (0..20_000).fold("id,name\n".to_owned(), |text, i| {
        text + &format!("{i},name {}\n", i % 7)
    })
}

#[test]
fn packed_files_read_like_plain_ones() {
    let folder = TempDir::new().unwrap();
    let text = big_csv();
    let (head, tail) = text.as_bytes().split_at(5000);
    let members = [gzip(head), gzip(tail)].concat();
    let frames = [zstd(head), zstd(tail)].concat();
    let plain = put(&folder, "a.csv", text.as_bytes());
    let expected: Vec<TableRecord> = open(&plain, None)
        .unwrap()
        .table()
        .unwrap()
        .map(|r| r.unwrap())
        .collect();
    assert_eq!(expected.len(), 20_000);

    for (name, bytes, compression) in [
        ("a.csv.gz", members, Compression::Gzip),
        ("a.csv.zst", frames, Compression::Zstd),
    ] {
        let source = open(&put(&folder, name, &bytes), None).unwrap();
        assert_eq!(
            (source.format(), source.compression()),
            (FileFormat::Csv, compression)
        );
        let progress = source.progress();
        let mut table = source.table().unwrap();
        for _ in 0..2 {
            let records: Vec<TableRecord> = table.by_ref().map(|r| r.unwrap()).collect();
            assert!(records == expected);
            assert_eq!(progress.bytes_read(), bytes.len() as u64);
            assert_eq!(
                (table.bytes_read(), table.size()),
                (progress.bytes_read(), progress.size())
            );
            table.rewind().unwrap();
        }
    }
}

#[test]
fn every_text_format_may_be_packed() {
    let json = Source::from_bytes("a.jsonl.gz", gzip(b"{\"a\":1}\n{\"b\":2}\n"), None).unwrap();
    assert_eq!(json.table().unwrap().columns(), ["a", "b"]);
    assert_eq!(json.table().unwrap().count(), 2);
    let sparse = Source::from_bytes("a.svm.zst", zstd(b"1 1:1\n"), None).unwrap();
    assert_eq!(sparse.scan().unwrap().rows, 1);
}

#[test]
fn broken_streams_are_not_blamed_on_the_disk() {
    let text = big_csv();
    for (name, codec, bytes) in [
        ("a.csv.gz", "gzip", gzip(text.as_bytes())),
        ("a.csv.zst", "zstd", zstd(text.as_bytes())),
    ] {
        let cut = Source::from_bytes(name, &bytes[..bytes.len() / 2], None).unwrap();
        let outcome: efface_io::Result<Vec<TableRecord>> = cut.table().and_then(Iterator::collect);
        assert!(
            matches!(fault(outcome), ReadFault::BrokenStream { codec: c, line } if c == codec && line < 20_000)
        );
        let other = Source::from_bytes(name, "id,name\n1,2\n", None).unwrap();
        assert!(
            matches!(fault(other.table()), ReadFault::BrokenStream { codec: c, line: 0 } if c == codec)
        );
    }
}

#[test]
fn a_file_that_unpacks_to_one_huge_line_is_refused() {
    let bomb = gzip(&vec![b'x'; 100 << 20]);
    assert!(bomb.len() < 1 << 20);
    for name in ["a.csv.gz", "a.jsonl.gz"] {
        let source = Source::from_bytes(name, bomb.clone(), None).unwrap();
        assert!(
            matches!(
                fault(source.table()),
                ReadFault::LongLine {
                    line: 1,
                    limit: 67_108_864
                }
            ),
            "{name}"
        );
    }
    let source = Source::from_bytes("a.svm.gz", bomb, None).unwrap();
    assert!(matches!(
        fault(source.scan()),
        ReadFault::LongLine { line: 1, .. }
    ));
}

#[test]
fn files_that_cannot_be_opened() {
    let folder = TempDir::new().unwrap();
    let absent = folder.path().join("absent.csv");
    let error = open(&absent, None).unwrap_err();
    assert!(error.to_string().contains("absent.csv: cannot be opened"));
    assert!(matches!(*error.fault, ReadFault::Open(_)));
    assert!(matches!(
        fault(open(folder.path(), Some(FileFormat::Csv))),
        ReadFault::Open(_)
    ));
    assert!(matches!(
        fault(open(&put(&folder, "empty.csv", b""), None)),
        ReadFault::Empty
    ));
    let unknown = put(&folder, "a.txt", b"a\n1\n");
    assert!(matches!(
        fault(open(&unknown, None)),
        ReadFault::UnknownFormat
    ));
    assert_eq!(
        open(&unknown, Some(FileFormat::Csv))
            .unwrap()
            .table()
            .unwrap()
            .count(),
        1
    );
    let packed = Source::from_bytes("a.parquet.gz", gzip(b"x"), None);
    assert!(matches!(
        fault(packed),
        ReadFault::CompressedParquet("gzip")
    ));
}

#[test]
fn the_wrong_kind_of_pass_is_refused() {
    let table = Source::from_bytes("a.csv", "a\n", None).unwrap();
    assert!(!table.is_sparse() && matches!(fault(table.sparse()), ReadFault::Shape { .. }));
    let sparse = Source::from_bytes("a.svm", "1\n", None).unwrap();
    assert!(sparse.is_sparse() && matches!(fault(sparse.table()), ReadFault::Shape { .. }));
    assert_eq!(sparse.path(), Path::new("a.svm"));
}

#[test]
fn a_file_that_changes_between_passes_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = put(&folder, "a.csv", b"a,b\n1,2\n");
    let mut table = open(&path, None).unwrap().table().unwrap();
    fs::write(&path, "a,c\n1,2\n").unwrap();
    assert!(matches!(fault(table.rewind()), ReadFault::Changed));
    assert!(table.next().is_none());
    fs::write(&path, "a,b\n1,2\n3,4\n").unwrap();
    assert!(matches!(fault(table.rewind()), ReadFault::Changed));

    let path = put(&folder, "a.jsonl", b"{\"a\":1}\n");
    let mut table = open(&path, None).unwrap().table().unwrap();
    fs::write(&path, "{\"b\":1}\n").unwrap();
    // The time of the write tells it or, where the clock is too coarse for that, the key.
    let next = table.rewind().and_then(|()| table.next().unwrap());
    assert!(matches!(fault(next), ReadFault::Changed));
}

#[test]
fn a_file_that_changes_during_a_pass_is_known_at_its_end() {
    let folder = TempDir::new().unwrap();
    let path = put(&folder, "a.csv", b"a,b\n1,2\n");
    let source = open(&path, None).unwrap();
    assert_eq!(source.table().unwrap().count(), 1);
    source.check_unchanged().unwrap();
    fs::write(&path, "a,b\n1,2\n3,4\n").unwrap();
    assert!(matches!(
        fault(source.check_unchanged()),
        ReadFault::Changed
    ));
    // Another file under its name, of the same size.
    let other = put(&folder, "b.csv", b"a,b\n5,6\n");
    let source = open(&path, None).unwrap();
    fs::write(&other, "a,b\n1,2\n5,6\n").unwrap();
    fs::rename(&other, &path).unwrap();
    assert!(matches!(
        fault(source.check_unchanged()),
        ReadFault::Changed
    ));
    fs::remove_file(&path).unwrap();
    assert!(matches!(
        fault(source.check_unchanged()),
        ReadFault::Open(_)
    ));
}

#[test]
fn a_stream_is_a_file_without_a_size() {
    let text = big_csv();
    let stream = Source::from_stream(
        "standard input",
        Box::new(std::io::Cursor::new(text)),
        Some(FileFormat::Csv),
    );
    let source = stream.unwrap();
    assert_eq!(source.progress().size(), 0);
    for _ in 0..2 {
        assert_eq!(source.table().unwrap().count(), 20_000);
    }
    let empty = Source::from_stream("a.csv", Box::new(std::io::empty()), None);
    assert!(matches!(fault(empty), ReadFault::Empty));
    let parquet = Source::from_stream("a.parquet", Box::new(std::io::Cursor::new("PAR1")), None);
    assert!(matches!(fault(parquet), ReadFault::NotParquet));
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_build_without_parquet_says_so() {
    let source = Source::from_bytes("a.parquet", "PAR1", None).unwrap();
    assert!(matches!(fault(source.table()), ReadFault::ParquetDisabled));
}

#[test]
fn a_line_that_unpacks_to_more_than_memory_should_hold_is_refused_at_once() {
    let folder = TempDir::new().unwrap();
    let mut bytes = b"x,y\n".to_vec();
    bytes.resize(200 << 20, b'0');
    for (name, packed) in [
        ("bomb.csv.gz", gzip(&bytes)),
        ("bomb.csv.zst", zstd(&bytes)),
    ] {
        assert!(packed.len() < 1 << 20, "{name} is no bomb");
        let path = put(&folder, name, &packed);
        let mut table = open(&path, None).unwrap().table().unwrap();
        assert!(matches!(
            fault(table.read(&mut TableRecord::default())),
            ReadFault::LongLine { .. }
        ));
    }
}
