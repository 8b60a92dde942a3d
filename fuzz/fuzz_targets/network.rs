#![no_main]
//! Arbitrary bytes as a stored network, a part of one, or a checkpoint: they are read or refused in
//! little memory.

use efface_nn::{Backbone, Network, NetworkRecipe, TrainingCheckpoint};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = Network::from_bytes(bytes);
    let _ = Backbone::from_bytes(bytes);
    let _ = NetworkRecipe::from_bytes(bytes);
    let _ = TrainingCheckpoint::from_bytes(bytes);
});
