#![no_main]
//! Arbitrary bytes as a parquet file: records or an error, never a panic, twice the same.

use efface_io::Source;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(source) = Source::from_bytes("fuzz.parquet", bytes, None) else {
        return;
    };
    let read = || -> Option<usize> {
        let table = source.table().ok()?;
        Some(table.take_while(Result::is_ok).count())
    };
    assert_eq!(read(), read());
});
