//! Between models and their file: what a model's rows look like, how its state becomes arrays, and
//! the manifest that holds everything small.

pub(crate) mod blueprint;
pub(crate) mod class_weights;
pub(crate) mod feature_rows;
pub(crate) mod findings;
pub(crate) mod kept_sums;
pub(crate) mod manifest;
pub(crate) mod model;
pub(crate) mod network_info;
pub(crate) mod pack;
pub(crate) mod text_encoder;
