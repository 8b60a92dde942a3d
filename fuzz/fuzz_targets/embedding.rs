#![no_main]
//! Arbitrary bytes as word vectors, in both forms: they are read or refused, and what was read can
//! be used.

use efface_nn::Embedding;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(read) = Embedding::read_glove(bytes, 1000) {
        let _ = read.ids("the cat sat", 2);
    }
    let Some((&cut, rest)) = bytes.split_first() else {
        return;
    };
    let (words, numbers) = rest.split_at(rest.len() * usize::from(cut) / 256);
    if let Ok(read) = Embedding::read_half(words, numbers, usize::from(cut % 5)) {
        let _ = read.ids("the cat sat", 2);
    }
});
