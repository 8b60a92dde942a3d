//! Models that can forget.
//!
//! Fit a model; later name the rows that must go; get back a model equal to one that never saw
//! them, in a time that does not depend on how many rows there were, with the evidence of how equal
//! it is.
//!
//! ```
//! use efface::methods::Exact;
//! use efface::{Dense, Fitted, Ridge, RowId, Rows};
//!
//! // Five rows of two features, one target each; ids are 0 to 4 unless given.
//! let x = Dense::new(vec![1.0, 0.0, 0.5, 1.0, 2.0, 1.0, 0.0, 3.0, 1.0, 1.0], 2)?;
//! let rows = Rows::new(x, vec![1.0, 0.5, 2.5, 2.0, 1.5], 1)?;
//! let mut fitted = Fitted::new(&Ridge::new(0.1), rows)?;
//!
//! let evidence = fitted.forget(&Exact, &[RowId(2)])?;
//! assert_eq!(evidence.rows, 4);
//! assert!(evidence.relative_bound < 1e-9); // how far from retraining it can be
//! # Ok::<(), efface::Error>(())
//! ```
//!
//! The flow, and the rooms along it: [`features`] turns tables into numbers; [`rows`] holds them
//! under stable ids; [`models`] are fitted from them and keep the curvature that forgetting needs;
//! [`methods`] take rows out, each with its claim and its cost, and return the new model beside its
//! [`Evidence`]; [`eval`] measures whether they did, [`scores`] how good a model is; [`synthetic`]
//! makes the data of the papers. Every contract is on one page, [`traits`].
//!
//! This crate is pure: no files, no clock, no printing, no globals. Storing models, serving them
//! and signing receipts is the work of other crates.

#![warn(missing_docs)]

pub mod error;
pub mod eval;
pub mod evidence;
mod family;
mod feature_error;
pub mod features;
mod fitted;
mod gram;
mod hint;
mod linalg;
pub mod methods;
pub mod models;
mod not_covered;
pub mod random;
mod row_id;
pub mod rows;
pub mod scores;
pub mod state;
pub mod statistics;
pub mod synthetic;
pub mod traits;

pub use error::{Error, Result};
pub use evidence::{
    BoundSource, Certificate, Claim, ClearedColumns, ComparedWithNothing, ComparisonBasis,
    Evidence, HeadBound, Outcome, Precomputed,
};
pub use family::Family;
pub use fitted::Fitted;
pub use gram::{DeviceFactor, GramEngine, GramSum, SummedGram};
pub use hint::{Hint, Setting};
pub use methods::{Method, TakesMethods};
pub use models::{
    Aggregation, BernoulliNb, Classes, ComplementNb, CurvatureNorms, Form, GaussianNb, KMeans,
    KMeansModel, LinearSvm, Logistic, LogisticModel, Model, MultinomialNb, NaiveBayes,
    PenalisedModel, PoissonRegression, Recipe, Ridge, RidgeModel, RidgeState, ShardRecipe, Sisa,
    SisaModel, Softmax, SumsAccuracy,
};
pub use not_covered::{LeftBehind, NotCovered};
pub use rows::{
    ChangedRows, Csr, Dense, Features, RowId, RowRef, RowStore, RowView, Rows, Stop, WordIds,
    WorkShare,
};
pub use state::{ModelState, StateArray};
pub use statistics::{ColumnGrid, ColumnReach, ColumnView, LinearStatistics, StatisticsSpec};
pub use traits::{Amend, Fit, Forget, Predict, Settled};
