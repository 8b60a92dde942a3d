#![no_main]
//! Arbitrary bytes as a model file: it opens or is refused, and reading what it holds never panics.
//! `sealed` gets past the checksums, which this target does not.

use std::io::Write;

use efface_engine::Engine;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut file) = tempfile::NamedTempFile::new() else {
        return;
    };
    if file.write_all(bytes).is_err() {
        return;
    }
    if let Ok(engine) = Engine::open_read_only(file.path()) {
        let _ = engine.summary();
        let _ = engine.parameters();
        let _ = engine.verify(None);
    }
});
