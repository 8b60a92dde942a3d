#![no_main]
//! Arbitrary bytes as a table of synonyms: words with others that may stand for them, or an error
//! that names a line, never a panic. What was read is then used on the same bytes as a text.

use efface::features::{Synonyms, TextAugmenter};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let table = Synonyms::read(bytes).unwrap_or_else(|_| Synonyms::built_in());
    let text = String::from_utf8_lossy(bytes);
    let altered = TextAugmenter::new(&table, 1).alter(&text, 7);
    assert!(altered.alterations.is_empty() || altered.text != text);
});
