//! The models, one file or folder each.

mod classes;
pub mod ridge;

pub use classes::Classes;
pub use ridge::{Form, Ridge, RidgeModel, RidgeState};
