//! Naive Bayes, multinomial, complement, Bernoulli and Gaussian: models that are nothing but sums
//! over their rows.
//!
//! ```text
//! class(x) = argmax_c  log p_c + Σ_j log p(x_j | c)        p_c = W_c / Σ W
//! sums        W_c = Σ_{i∈c} w_i    S_c = Σ_{i∈c} w_i x_i    Q_c = Σ_{i∈c} w_i x_i²   (Q for Gaussian only)
//! forget D    S_c ← S_c − Σ_{i∈D∩c} w_i x_i, and so on
//! ```
//!
//! Guarantee: `summation` is exact. The sums are about the origin 0, which no row chose, so that
//! nothing of a forgotten row survives in it and a sparse row touches only its non-zeros; the
//! cancellation in Q − S²/W that this invites is paid for with sums of 106 bits that measure what
//! they lose. As long as nothing was lost (counts, single-precision values of like size) the
//! reported bound is 0 and the parameters are bit for bit those of retraining; otherwise the bound
//! is what the losses can have moved the parameters by.
//!
//! Cost: O(k·nnz) for the subtraction and O(c·d) to copy the sums, since the old model stays as it
//! was; n does not enter and no retained row is read. `retrain` is O(n·nnz).
//!
//! When it fails: negative features in the multinomial model, values above 1e60, and rows that all
//! weigh 0 are errors. A class whose last row leaves is **not** an error: its sums become exactly
//! 0, its prior 0, and it is never predicted (its score is the least finite number, and every other
//! class scores above that); a single class may be all that is left, and is then the answer to
//! everything. Learning rows of the class brings it back.
//!
//! Cao and Yang 2015, "Towards making systems forget with machine unlearning"; parameters as
//! scikit-learn defines them.

mod bernoulli;
mod complement;
mod family;
mod gaussian;
mod multinomial;
mod packed_sums;
mod tally;

pub use bernoulli::BernoulliNb;
pub use complement::ComplementNb;
use family::BayesFamily;
pub use gaussian::GaussianNb;
pub use multinomial::MultinomialNb;
use rule::Rule;
use tally::ClassTally;

use faer::Mat;
use serde::{Deserialize, Serialize};

use super::family::ClassReweighting;
use super::family::FamilyRecipe;
use super::request;
use crate::error::{Error, Result};
use crate::evidence::{Claim, Evidence, Outcome};
use crate::methods::{Retrain, Summation};
use crate::rows::{Features, RowId, RowStore, RowView, Rows};
use crate::traits::{Amend, Fit, Forget, Predict, Settled};

/// What tells the likelihoods apart. Public only in name: it cannot be implemented elsewhere.
mod rule {
    use super::{ClassTally, Features, Mat, Result, RowView};

    pub trait Rule: Copy + std::fmt::Debug + Send + Sync {
        /// Whether squares are kept, and the sums of all rows together.
        const SQUARES: bool;
        /// Whether the settings are in range.
        fn check(&self) -> Result<()>;
        /// Whether a row can be counted.
        fn admit(&self, view: &RowView<'_>) -> Result<()>;
        /// Hands a row over as it is counted: as it is, unless the likelihood sees something else
        /// in it.
        fn counted(&self, view: &RowView<'_>, see: &mut dyn FnMut(&RowView<'_>)) {
            see(view);
        }
        /// Whether rows are counted as they are.
        fn counts_as_given(&self) -> bool {
            true
        }
        /// The joint log-likelihood of each row with each class; a class without rows may hold
        /// anything.
        fn joint(&self, tally: &ClassTally, features: &Features) -> Mat<f64>;
        /// How far lost bits can have moved the parameters, and the parameters' norm.
        fn bound(&self, tally: &ClassTally) -> (f64, f64);
    }
}

/// A fitted naive Bayes model: its recipe and its sums.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound(serialize = "R: Serialize", deserialize = "R: Deserialize<'de>"))]
pub struct NaiveBayes<R> {
    recipe: R,
    tally: ClassTally,
}

impl<R: Rule> NaiveBayes<R> {
    fn train(recipe: R, rows: &Rows) -> Result<Self> {
        recipe.check()?;
        request::check_numbers(rows)?;
        if rows.is_empty() {
            return Err(Error::NoRows);
        }
        let mut model = Self {
            recipe,
            tally: ClassTally::new(rows.outputs(), rows.width(), R::SQUARES),
        };
        model.take_in(rows)?;
        Ok(model)
    }

    /// The recipe it was fitted with.
    pub fn settings(&self) -> &R {
        &self.recipe
    }

    /// How many rows it stands for.
    pub fn rows(&self) -> usize {
        self.tally.rows
    }

    /// How many features a row has.
    pub fn features(&self) -> usize {
        self.tally.width
    }

    /// How many classes it was fitted for, those without rows included.
    pub fn classes(&self) -> usize {
        self.tally.classes
    }

    /// The weight of the rows of each class; 0 for a class without rows.
    pub fn class_counts(&self) -> Vec<f64> {
        self.tally
            .by_class()
            .iter()
            .map(|group| group.weight.value())
            .collect()
    }

    /// The share of each class in the weight of all rows; 0 for a class without rows.
    pub fn class_prior(&self) -> Vec<f64> {
        self.tally.prior()
    }

    fn take_in(&mut self, rows: &Rows) -> Result<()> {
        let recipe = self.recipe;
        let mut views = rows.iter().map(|view| {
            rows.go_on()?;
            recipe.admit(&view)?;
            Ok(view)
        });
        if self.tally.rows == 0
            && recipe.counts_as_given()
            && rows.iter().all(|view| view.weight == 1.0)
        {
            self.tally.put_first(views)?;
        } else {
            let tally = &mut self.tally;
            views.try_for_each(|view| {
                view.map(|view| recipe.counted(&view, &mut |row| tally.put(row, 1.0)))
            })?;
        }
        self.tally.tidy()
    }

    fn take_out(&mut self, rows: &dyn RowStore, gone: &[RowId]) -> Result<()> {
        let recipe = self.recipe;
        let tally = &mut self.tally;
        rows.visit(gone, &mut |_, view| {
            recipe.counted(&view, &mut |row| tally.put(row, -1.0))
        })
    }

    /// The model once rows `gone` have left and `new` ones joined, and rows of class c count
    /// weights[c].1 where they counted weights[c].0: the sums of a class are as many times as much.
    /// `rows` and `new` have their new weights; whether rows have weights beside those of their
    /// classes is said by `have_weights`, since such products are rounded.
    fn reweighted(&self, change: &ClassReweighting<'_>) -> Result<Outcome<Self>> {
        let ClassReweighting {
            weights,
            have_weights,
            rows,
            gone,
            new,
        } = *change;
        if !gone.is_empty() {
            self.check_gone(rows, gone)?;
        }
        let mut model = self.clone();
        model.tally.reweigh(weights, have_weights);
        model.take_out(rows, gone)?;
        match new {
            Some(new) => model.take_in(new)?,
            None => model.tally.tidy()?,
        }
        let learned = new.map_or(0, |new| new.len());
        let mut evidence = model.evidence("summation");
        (evidence.forgotten, evidence.learned) = (gone.len(), learned);
        evidence.rows_read = gone.len() + learned;
        Ok(Outcome { model, evidence })
    }

    pub(crate) fn evidence(&self, method: &str) -> Evidence {
        let bound = self.recipe.bound(&self.tally);
        request::evidence(
            method,
            self.tally.rows,
            bound,
            "class sums",
            self.tally.bytes(),
        )
    }

    fn check_gone(&self, rows: &dyn RowStore, gone: &[RowId]) -> Result<()> {
        request::check_outputs(rows.outputs(), self.tally.outputs)?;
        request::check_numbers(rows)?;
        request::check_gone(rows, gone, self.tally.width)
    }
}

impl<R: BayesFamily> Fit for R {
    type Model = NaiveBayes<R>;

    fn fit(&self, rows: &Rows) -> Result<NaiveBayes<R>> {
        NaiveBayes::train(*self, rows)
    }

    fn class_scores(&self, outputs: usize) -> Option<usize> {
        FamilyRecipe::describe(self).class_scores(outputs)
    }

    fn bytes(&self, model: &NaiveBayes<R>) -> usize {
        model.tally.bytes()
    }
}

impl<R: Rule> Predict for NaiveBayes<R> {
    /// log p_c + log p(x | c), one column per class, two of them for two classes. Every score is
    /// finite.
    fn predict(&self, features: &Features) -> Result<Mat<f64>> {
        request::check_features(features, self.tally.width)?;
        let mut scores = self.recipe.joint(&self.tally, features);
        for (class, group) in self.tally.by_class().iter().enumerate() {
            for slot in 0..features.rows() {
                let score = &mut scores[(slot, class)];
                *score = if group.members == 0 {
                    f64::MIN
                } else {
                    score.clamp(f64::MIN / 2.0, f64::MAX)
                };
            }
        }
        Ok(scores)
    }
}

impl<R: Rule> Forget<NaiveBayes<R>> for Summation {
    fn name(&self) -> &'static str {
        "summation"
    }

    fn claim(&self) -> Claim {
        Claim::Exact
    }

    fn forget(
        &self,
        model: &NaiveBayes<R>,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<NaiveBayes<R>>> {
        model.check_gone(rows, gone)?;
        let mut next = model.clone();
        next.take_out(rows, gone)?;
        next.tally.tidy()?;
        let name = Forget::<NaiveBayes<R>>::name(self);
        let evidence = Evidence {
            forgotten: gone.len(),
            rows_read: gone.len(),
            ..next.evidence(name)
        };
        Ok(Outcome {
            model: next,
            evidence,
        })
    }
}

impl<R: Rule> Forget<NaiveBayes<R>> for Retrain {
    fn name(&self) -> &'static str {
        "retrain"
    }

    fn claim(&self) -> Claim {
        Claim::Exact
    }

    fn forget(
        &self,
        model: &NaiveBayes<R>,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<NaiveBayes<R>>> {
        model.check_gone(rows, gone)?;
        let retained = rows.all()?.filter(request::stays(gone));
        let next = NaiveBayes::train(model.recipe, &retained)?;
        let evidence = request::from_scratch(next.evidence("retrain"), gone.len(), retained.len());
        Ok(Outcome {
            model: next,
            evidence,
        })
    }
}

impl<R: Rule> Amend for NaiveBayes<R> {
    fn learn(&self, rows: &dyn RowStore, new: &Rows) -> Result<Outcome<Self>> {
        request::check_outputs(new.outputs(), self.tally.outputs)?;
        request::check_numbers(new)?;
        request::check_new(rows, new, self.tally.width)?;
        let mut model = self.clone();
        model.take_in(new)?;
        let evidence = Evidence {
            learned: new.len(),
            rows_read: new.len(),
            ..model.evidence("learn")
        };
        Ok(Outcome { model, evidence })
    }

    fn amend(&self, rows: &dyn RowStore, corrected: &Rows) -> Result<Outcome<Self>> {
        request::check_outputs(corrected.outputs(), self.tally.outputs)?;
        request::check_numbers(corrected)?;
        request::check_width(corrected.width(), self.tally.width)?;
        let ids: Vec<RowId> = corrected.ids().collect();
        let mut model = self.clone();
        model.take_out(rows, &ids)?;
        model.take_in(corrected)?;
        let mut evidence = model.evidence("amend");
        (evidence.forgotten, evidence.learned, evidence.rows_read) =
            (ids.len(), ids.len(), 2 * ids.len());
        Ok(Outcome { model, evidence })
    }

    /// Nothing ever waits: the sums are the model.
    fn settle(&mut self) -> Result<Settled> {
        Ok(Settled::default())
    }

    fn waiting(&self) -> usize {
        0
    }

    fn update_evidence(&self, evidence: &mut Evidence) {
        request::refresh(evidence, self.evidence(&evidence.method));
    }
}
