//! The feature injection test: a feature that only the rows to forget have, and that gives their
//! targets away.
//!
//! One column per output is appended, zero everywhere but on the rows D, where it is the target
//! itself. A model fitted on all rows puts a weight on it; one that never saw D puts none, under
//! any penalty above 0. What is left of the weight after forgetting D is what is left of D's own
//! lesson. After Izzo, Smart, Chaudhuri and Zou, "Approximate Data Deletion from Machine Learning
//! Models" (2021), section 5; for a network, the rows are what the encoder gives its head.
//!
//! An approximate method leaves in the injected columns what its formula leaves, unless it is asked
//! to clear dead columns. An exact one ends at 0 because the model counts the rows behind every
//! column and sets the weights of a column that no row has to 0: the zero is right, but it is the
//! count's and not the algebra's, so that what stood there before is told beside it.
//!
//! Costs one fit, one retraining, and a request per method. It shows what happened to *this*
//! feature, not to others.

use std::collections::HashSet;
use std::ops::Range;

use serde::Serialize;

use super::task::check_family;
use crate::error::{Error, Result};
use crate::evidence::Evidence;
use crate::methods::Method;
use crate::models::{MethodOptions, Model, Recipe, ScoreKind};
use crate::rows::{Csr, Dense, Features, RowId, RowStore, Rows};
use crate::traits::Fit;

/// What is left of the injected weight.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Injection {
    /// Rows that carry the feature.
    pub forgotten: usize,
    /// |w| of the model that saw them.
    pub before: f64,
    /// |w| of a model that was fitted without them: 0 unless nothing is penalised.
    pub retrained: f64,
    /// The methods, in the order asked.
    pub ways: Vec<InjectionWay>,
}

/// What one method left of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InjectionWay {
    /// The method.
    pub method: String,
    /// |w_after|; 0 is perfect.
    pub after: f64,
    /// |w_after| / |w_before|.
    pub ratio: f64,
    /// The norm of all weights that were set to 0 because no retained row has their column, as they
    /// were before; None when none had to be.
    pub cleared: Option<f64>,
    /// What the method said of itself.
    #[serde(skip)]
    pub evidence: Evidence,
}

/// Runs the test: fits on rows with the feature, forgets `gone` by every method, and looks at the
/// weight.
pub fn feature_injection(
    recipe: &Recipe,
    rows: &Rows,
    gone: &[RowId],
    methods: &[Method],
) -> Result<Injection> {
    check(recipe)?;
    let injected = inject(rows, gone)?;
    let columns = rows.width()..injected.width();
    let model = recipe.fit(&injected)?;
    let before = weight_on(&model, columns.clone())?;
    if before == 0.0 {
        return Err(Error::Parameter {
            name: "injected weight",
            value: "0".into(),
            range: "above 0; lower the penalty, or forget rows whose weights and targets are not 0",
        });
    }
    let out: HashSet<RowId> = gone.iter().copied().collect();
    let retrained = recipe.fit(&injected.filter(|id| !out.contains(&id)))?;
    let retrained = weight_on(&retrained, columns.clone())?;
    let mut found = Vec::with_capacity(methods.len());
    for method in methods {
        let outcome = model.forget_with(method, MethodOptions::measured(), &injected, gone)?;
        let after = weight_on(&outcome.model, columns.clone())?;
        let evidence = outcome.evidence;
        let method = method.name().to_owned();
        let cleared = evidence.cleared.map(|cleared| cleared.norm);
        found.push(InjectionWay {
            method,
            after,
            ratio: after / before,
            cleared,
            evidence,
        });
    }
    Ok(Injection {
        forgotten: gone.len(),
        before,
        retrained,
        ways: found,
    })
}

/// The rows with the injected columns, as many as there are outputs, behind their own.
pub fn inject(rows: &Rows, gone: &[RowId]) -> Result<Rows> {
    rows.check(gone)?;
    if gone.is_empty() {
        return Err(Error::TooFew {
            what: "rows to forget",
            found: 0,
            needed: 1,
            advice: "the injected feature needs rows to live on",
        });
    }
    if gone.len() >= rows.len() {
        return Err(Error::NothingLeft {
            gone: gone.len(),
            rows: rows.len(),
        });
    }
    if rows.holds_word_ids() {
        return Err(Error::RowsOfWordIds);
    }
    let marked: HashSet<RowId> = gone.iter().copied().collect();
    if gone.iter().all(|id| {
        rows.get(*id)
            .is_none_or(|row| row.targets.iter().all(|y| *y == 0.0))
    }) {
        return Err(Error::Parameter {
            name: "targets of the rows to forget",
            value: "0".into(),
            range: "not all 0: a feature that follows them would be 0 everywhere",
        });
    }
    let width = rows.width();
    let outputs = rows.outputs();
    let mut targets = Vec::new();
    let mut weights = Vec::new();
    let mut ids = Vec::new();
    let wide = width + outputs;
    let features: Features = if rows.is_sparse() {
        let mut table = Csr::<f64>::new(wide);
        for row in rows.iter() {
            let mut entries = row.features.entries();
            if marked.contains(&row.id) {
                let planted = row.targets.iter().enumerate().filter(|(_, y)| **y != 0.0);
                entries.extend(planted.map(|(output, y)| ((width + output) as u32, *y)));
            }
            table.push(&entries)?;
        }
        table.into()
    } else {
        let mut values = vec![0.0; rows.len() * wide];
        for (row, line) in rows.iter().zip(values.chunks_exact_mut(wide)) {
            row.features.each(|column, value| line[column] = value);
            if marked.contains(&row.id) {
                line[width..].copy_from_slice(row.targets);
            }
        }
        Dense::new(values, wide)?.into()
    };
    for row in rows.iter() {
        targets.extend_from_slice(row.targets);
        weights.push(row.weight);
        ids.push(row.id);
    }
    let mut injected = Rows::with_ids(ids, features, targets, outputs)?;
    if let Some(stop) = rows.stop() {
        injected = injected.watched(stop);
    }
    if weights.iter().all(|weight| *weight == 1.0) {
        Ok(injected)
    } else {
        injected.weighted(weights)
    }
}

/// ‖w‖ of the parameters on a range of columns, over all outputs.
pub fn weight_on(model: &Model, columns: Range<usize>) -> Result<f64> {
    let parameters = model.parameters().map_err(|_| no_weight())?;
    let table = parameters.table("coefficients").ok_or_else(no_weight)?;
    if columns.end > table.nrows() {
        return Err(Error::Shape {
            what: "columns",
            found: columns.end,
            expected: table.nrows(),
        });
    }
    let squares: f64 = columns
        .flat_map(|column| (0..table.ncols()).map(move |output| (column, output)))
        .map(|(column, output)| table[(column, output)].powi(2))
        .sum();
    Ok(squares.sqrt())
}

/// Naive Bayes smooths what it has not seen, so that no weight is 0 when a feature is gone.
fn check(recipe: &Recipe) -> Result<()> {
    check_family(recipe)?;
    if recipe.describe().scores == ScoreKind::LogLikelihoods {
        Err(no_weight())
    } else {
        Ok(())
    }
}

fn no_weight() -> Error {
    let reason = "the model has no weight that is 0 when a feature was never seen; look at the distance instead";
    Error::Unsupported {
        method: "feature_injection",
        reason: reason.into(),
    }
}
