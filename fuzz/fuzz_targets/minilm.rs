#![no_main]
//! Arbitrary bytes as the three files of a pretrained encoder. The first two bytes say where one
//! ends and the next begins.

use efface_nn::minilm::MiniLm;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let [first, second, rest @ ..] = bytes else {
        return;
    };
    let (config, rest) = rest.split_at(rest.len() * usize::from(*first) / 256);
    let (tokenizer, weights) = rest.split_at(rest.len() * usize::from(*second) / 256);
    if let Ok(encoder) = MiniLm::from_bytes(config, tokenizer, weights) {
        let _ = encoder.encode(&["the cat", ""], &|_| ());
    }
});
