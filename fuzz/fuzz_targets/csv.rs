#![no_main]
//! Arbitrary bytes as a csv file: records or an error, never a panic, twice the same, and the same
//! from blocks.

use efface_io::{Source, TableRecord};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(source) = Source::from_bytes("fuzz.csv", bytes, None) else {
        return;
    };
    let read = || -> Option<usize> {
        let table = source.table().ok()?;
        Some(table.take_while(Result::is_ok).count())
    };
    assert_eq!(read(), read());
    let in_blocks = || -> Option<usize> {
        let mut blocks = source.blocks(1 + bytes.len() / 7).ok()?;
        let mut record = TableRecord::default();
        let mut count = 0;
        while let Some(block) = blocks.next_block().ok()? {
            let mut rows = block.rows();
            loop {
                match rows.read(&mut record) {
                    Ok(true) => count += 1,
                    Ok(false) => break,
                    Err(_) => return Some(count),
                }
            }
        }
        Some(count)
    };
    assert_eq!(read(), in_blocks());
});
