//! Placeholder front page.

pub mod error;
pub mod evidence;
pub mod features;
mod fitted;
mod linalg;
pub mod methods;
pub mod models;
pub mod rows;
pub mod synthetic;
pub mod traits;

pub use error::{Error, Result};
pub use evidence::{BoundSource, Claim, Evidence, Outcome, Precomputed};
pub use fitted::Fitted;
pub use models::{Classes, Form, Ridge, RidgeModel, RidgeState};
pub use rows::{Csr, Dense, Features, RowId, RowRef, RowStore, RowView, Rows};
pub use traits::{Amend, Fit, Forget, Predict, Settled};
