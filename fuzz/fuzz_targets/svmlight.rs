#![no_main]
//! Arbitrary bytes as an svmlight file: records with ascending indices or an error, never a panic.

use efface_io::Source;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(source) = Source::from_bytes("fuzz.svm", bytes, None) else {
        return;
    };
    let Ok(table) = source.sparse() else { return };
    for record in table.map_while(Result::ok) {
        assert!(record.entries.is_sorted_by(|a, b| a.0 < b.0));
    }
});
