//! Between models and their file: what a model's rows look like, how its state becomes arrays, and the manifest that
//! holds everything small.

pub(crate) mod blueprint;
pub(crate) mod manifest;
pub(crate) mod model;
pub(crate) mod network;
pub(crate) mod pack;
