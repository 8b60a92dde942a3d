//! Fitting oracles.
//!
//! Ridge models that keep a matrix are made from sums: those of the groups that an oracle sees, made once, and those of its few
//! other rows. An oracle then costs O(Gd² + kd² + d³/3) instead of O(nd²), and is the model that a fit on its rows gives, up to
//! rounding. Classifiers are trained from a start that has seen the rest and none of the rows under attack. Naive Bayes,
//! k-means and models in shards are fitted as they are.

use std::borrow::Cow;
use std::collections::HashSet;

use super::oracles::{OracleDraw, OraclePlan};
use crate::error::{Error, Result};
use crate::models::ridge::Parts;
use crate::models::{AnyModel, AnyRecipe};
use crate::rows::{RowId, RowStore, RowView, Rows, Stop};
use crate::traits::Fit;

/// What all oracles share.
pub(super) struct ShadowFitter<'a> {
    plan: &'a OraclePlan,
    rows: &'a Rows,
    recipe: AnyRecipe,
    way: ShadowFitting,
}

enum ShadowFitting {
    Sums(Box<Parts>),
    From(Box<AnyModel>),
    Plain,
}

impl<'a> ShadowFitter<'a> {
    pub(super) fn new(plan: &'a OraclePlan, recipe: &AnyRecipe, rows: &'a Rows) -> Result<Self> {
        let recipe = one_thread(recipe);
        let way = match &recipe {
            AnyRecipe::Ridge(ridge) => match Parts::new(ridge, rows, &plan.groups)? {
                Some(parts) => ShadowFitting::Sums(Box::new(parts)),
                None => ShadowFitting::Plain,
            },
            AnyRecipe::Logistic(logistic) if logistic.privacy.is_some() => ShadowFitting::Plain,
            AnyRecipe::Logistic(_) | AnyRecipe::Softmax(_) => {
                let rest: HashSet<RowId> = plan.groups.iter().flatten().copied().collect();
                let start = bare(&recipe).fit(&rows.filter(|id| rest.contains(&id)));
                // A class without rows leaves no common model to start from, but single oracles may still be fitted.
                start.map_or(ShadowFitting::Plain, |start| ShadowFitting::From(Box::new(start)))
            }
            _ => ShadowFitting::Plain,
        };
        Ok(Self { plan, rows, recipe, way })
    }

    /// The oracle of a draw, with the rows to forget that it has or without them. Only the former will be asked to forget, and
    /// keeps what that needs.
    pub(super) fn fit(&self, draw: &OracleDraw, with_forgotten: bool) -> Result<AnyModel> {
        let subset = |ids: Vec<RowId>| {
            let ids: HashSet<RowId> = ids.into_iter().collect();
            self.rows.filter(|id| ids.contains(&id))
        };
        if let ShadowFitting::Sums(parts) = &self.way {
            let more = subset(self.plan.targets_in(draw, with_forgotten).collect());
            return Ok(AnyModel::Ridge(Box::new(parts.fit(&draw.groups, &more)?)));
        }
        let rows = subset(self.plan.members(draw, with_forgotten));
        let recipe = if with_forgotten { self.recipe.clone() } else { bare(&self.recipe) };
        match (&self.way, &recipe) {
            (ShadowFitting::From(start), AnyRecipe::Logistic(recipe)) => resumed(recipe, start, &rows),
            (ShadowFitting::From(start), AnyRecipe::Softmax(recipe)) => resumed(recipe, start, &rows),
            _ => recipe.fit(&rows),
        }
    }

    /// The rows of an oracle, for methods that read them.
    pub(super) fn store(&self, draw: &OracleDraw) -> RowSubset<'a> {
        RowSubset { rows: self.rows, ids: self.plan.members(draw, true).into_iter().collect() }
    }
}

fn resumed<R: Fit<Model = crate::LogisticModel>>(
    recipe: &R,
    start: &AnyModel,
    rows: &Rows,
) -> Result<AnyModel> {
    let AnyModel::Logistic(start) = start else { return Err(Error::NoRows) };
    Ok(AnyModel::Logistic(Box::new(recipe.resume(start, rows)?)))
}

/// Oracles are fitted side by side, each on one thread.
fn one_thread(recipe: &AnyRecipe) -> AnyRecipe {
    match recipe.clone() {
        AnyRecipe::Ridge(recipe) => AnyRecipe::Ridge(recipe.threads(1)),
        AnyRecipe::Logistic(recipe) => AnyRecipe::Logistic(recipe.threads(1)),
        AnyRecipe::Softmax(recipe) => AnyRecipe::Softmax(recipe.threads(1)),
        AnyRecipe::Sisa(recipe) => AnyRecipe::Sisa(recipe.threads(1)),
        recipe => recipe,
    }
}

/// The recipe without what only forgetting needs.
fn bare(recipe: &AnyRecipe) -> AnyRecipe {
    match recipe.clone() {
        AnyRecipe::Logistic(recipe) => AnyRecipe::Logistic(recipe.curvature(false)),
        AnyRecipe::Softmax(recipe) => AnyRecipe::Softmax(recipe.curvature(false)),
        recipe => recipe,
    }
}

/// Some of the rows, as a store of their own: a method that reads all rows reads these and no others.
pub(super) struct RowSubset<'a> {
    rows: &'a Rows,
    ids: HashSet<RowId>,
}

impl RowStore for RowSubset<'_> {
    fn len(&self) -> usize {
        self.ids.len()
    }

    fn width(&self) -> usize {
        self.rows.width()
    }

    fn outputs(&self) -> usize {
        self.rows.outputs()
    }

    fn is_sparse(&self) -> bool {
        self.rows.is_sparse()
    }

    fn holds_word_ids(&self) -> bool {
        self.rows.holds_word_ids()
    }

    fn contains(&self, id: RowId) -> Result<bool> {
        Ok(self.ids.contains(&id))
    }

    fn visit(&self, ids: &[RowId], see: &mut dyn FnMut(usize, RowView<'_>)) -> Result<()> {
        match ids.iter().find(|id| !self.ids.contains(id)) {
            Some(id) => Err(Error::UnknownRow(*id)),
            None => self.rows.visit(ids, see),
        }
    }

    fn stop(&self) -> Option<&Stop> {
        self.rows.stop()
    }

    fn all(&self) -> Result<Cow<'_, Rows>> {
        Ok(Cow::Owned(self.rows.filter(|id| self.ids.contains(&id))))
    }
}
