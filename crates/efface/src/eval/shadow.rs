//! Fitting oracles.
//!
//! Ridge models that keep a matrix are made from sums: those of the groups that an oracle sees,
//! made once, and those of its few other rows. An oracle then costs O(Gd² + kd² + d³/3) instead of
//! O(nd²), and is the model that a fit on its rows gives, up to rounding. Classifiers are trained
//! from a start that has seen the rest and none of the rows under attack. Naive Bayes, k-means and
//! models in shards are fitted as they are, and so is every oracle whose features follow from its
//! own rows.

use std::borrow::Cow;
use std::collections::HashSet;

use super::oracles::{OracleDraw, OraclePlan};
use super::view::{FollowingFeatures, OracleSubject};
use crate::error::{Error, Result};
use crate::models::ridge::GroupSums;
use crate::models::{Model, Recipe, Ridge, ScoreKind};
use crate::rows::{RowId, RowStore, RowView, Rows, Stop};
use crate::traits::Fit;

/// What all oracles share.
pub(super) struct ShadowFitter<'a> {
    plan: &'a OraclePlan,
    rows: &'a Rows,
    features: &'a dyn FollowingFeatures,
    recipe: Recipe,
    way: ShadowFitting,
}

enum ShadowFitting {
    Sums(Box<GroupSums>),
    From(Box<Model>),
    Plain,
}

impl<'a> ShadowFitter<'a> {
    pub(super) fn new(plan: &'a OraclePlan, subject: &OracleSubject<'a>) -> Result<Self> {
        let OracleSubject { rows, features, .. } = *subject;
        // Oracles are fitted side by side, each on one thread.
        let recipe = subject.recipe.on_threads(1);
        let about = recipe.describe();
        let mut way = ShadowFitting::Plain;
        let first: HashSet<RowId> = plan.members(&plan.draw(0), true).into_iter().collect();
        if features.of(&first)?.is_some() {
            // Every oracle has features of its own, as this one has.
        } else if let Some(ridge) = recipe.get::<Ridge>() {
            if let Some(parts) = GroupSums::new(ridge, rows, &plan.groups)? {
                way = ShadowFitting::Sums(Box::new(parts));
            }
        } else if about.scores == ScoreKind::LogOdds
            && !about.is_certified
            && !about.knows_row_numbers
        {
            let rest: HashSet<RowId> = plan.groups.iter().flatten().copied().collect();
            // A class without rows leaves no common model to start from, but single oracles may
            // still be fitted.
            if let Ok(start) = recipe
                .without_curvature()
                .fit(&rows.filter(|id| rest.contains(&id)))
            {
                way = ShadowFitting::From(Box::new(start));
            }
        }
        Ok(Self {
            plan,
            rows,
            features,
            recipe,
            way,
        })
    }

    /// All rows with the features that follow from those of a draw, with the rows to forget that it
    /// has or without them. Borrowed where they are the features that all oracles share.
    pub(super) fn view(&self, draw: &OracleDraw, with_forgotten: bool) -> Result<Cow<'a, Rows>> {
        let members = self.plan.members(draw, with_forgotten);
        let own = self.features.of(&members.into_iter().collect())?;
        Ok(own.map_or(Cow::Borrowed(self.rows), Cow::Owned))
    }

    /// The oracle of a draw in the features of a view, with the rows to forget that it has or
    /// without them. Only the former will be asked to forget, and keeps what that needs.
    pub(super) fn fit(
        &self,
        draw: &OracleDraw,
        view: &Rows,
        with_forgotten: bool,
    ) -> Result<Model> {
        let subset = |ids: Vec<RowId>| {
            let ids: HashSet<RowId> = ids.into_iter().collect();
            view.filter(|id| ids.contains(&id))
        };
        // Sums and a start are in the features that oracles share.
        let way = if std::ptr::eq(view, self.rows) {
            &self.way
        } else {
            &ShadowFitting::Plain
        };
        if let ShadowFitting::Sums(parts) = way {
            let more = subset(self.plan.targets_in(draw, with_forgotten).collect());
            return Ok(Model::new(parts.fit(&draw.groups, &more)?));
        }
        let rows = subset(self.plan.members(draw, with_forgotten));
        let recipe = if with_forgotten {
            self.recipe.clone()
        } else {
            self.recipe.without_curvature()
        };
        match way {
            ShadowFitting::From(start) => recipe.resume(start, &rows),
            _ => recipe.fit(&rows),
        }
    }

    /// The rows of an oracle in the features of a view, for methods that read them.
    pub(super) fn store<'v>(&self, draw: &OracleDraw, view: &'v Rows) -> RowSubset<'v> {
        RowSubset {
            rows: view,
            ids: self.plan.members(draw, true).into_iter().collect(),
        }
    }
}

/// Some of the rows, as a store of their own: a method that reads all rows reads these and no
/// others.
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
