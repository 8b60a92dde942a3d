//! Models whose features follow from the rows that they are fitted on: scales, weights of words,
//! components, weights of classes. Two such models see the same row differently, so that an audit
//! gives each its own features.

use std::collections::HashSet;

use super::task::Task;
use crate::error::Result;
use crate::methods::Method;
use crate::models::{Model, Recipe};
use crate::rows::{RowId, Rows};

/// A model beside rows in the features that it reads.
#[derive(Debug, Clone, Copy)]
pub struct ModelView<'a> {
    /// The model.
    pub model: &'a Model,
    /// The rows as this model sees them.
    pub rows: &'a Rows,
    /// The features that have a name, by their place in a row. None where all models that are
    /// compared read the same features.
    pub names: Option<&'a [(u32, String)]>,
}

impl<'a> ModelView<'a> {
    /// A model that reads the same features as those that it is compared with.
    pub fn new(model: &'a Model, rows: &'a Rows) -> Self {
        Self {
            model,
            rows,
            names: None,
        }
    }
}

/// The features of the rows of an audit, as they follow from some of these rows.
pub trait FollowingFeatures: Sync {
    /// Returns all rows of the audit with the features and weights that follow from the rows with
    /// these ids alone. None where the rows have those already.
    fn of(&self, members: &HashSet<RowId>) -> Result<Option<Rows>>;

    /// Returns true if the features follow the rows that are left after a forget by this method,
    /// and false if the method keeps the features of before.
    fn are_followed_by(&self, method: &Method) -> bool;
}

/// Features that are the same whatever rows a model is fitted on.
#[derive(Debug, Clone, Copy)]
pub struct FixedFeatures;

impl FollowingFeatures for FixedFeatures {
    fn of(&self, _members: &HashSet<RowId>) -> Result<Option<Rows>> {
        Ok(None)
    }

    fn are_followed_by(&self, _method: &Method) -> bool {
        false
    }
}

/// The model that oracles are made of.
#[derive(Clone, Copy)]
pub struct OracleSubject<'a> {
    /// Trains it.
    pub recipe: &'a Recipe,
    /// The meaning of its targets.
    pub task: Task,
    /// All rows, in the features of the model under audit.
    pub rows: &'a Rows,
    /// The features that every oracle has of its own, fitted on the rows that it sees.
    pub features: &'a dyn FollowingFeatures,
}
