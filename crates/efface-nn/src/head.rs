//! The linear head: a ridge, logistic or softmax model of the core, fitted to its optimum on the
//! encoder's features.
//!
//! | method | squared loss | cross-entropy | reads |
//! |---|---|---|---|
//! | `exact` | exact | refused | the rows to forget |
//! | `newton` | exact | approximate, or as near as its steps | the rows to forget; more steps read all |
//! | `influence` | approximate | approximate | the rows to forget |
//! | `projection_residual` | approximate | approximate | the rows to forget; later rounds read all |
//! | `summation` | exact | refused | the rows to forget |
//! | `warm_start` | refused | exact | all rows |
//! | `retrain_head` | exact | exact | all rows |
//!
//! "Exact" speaks of the head on the features of a fixed encoder. What the encoder learned from the
//! rows is another matter and stands under `not_covered`.

use efface::models::MethodOptions;
use efface::{
    Claim, Evidence, Fit, Logistic, Method, Model, Outcome, Recipe, Ridge, RowId, RowStore, Rows,
    Softmax,
};
use faer::Mat;

use crate::error::{Error, Result};

/// A recipe as that of a head for so many outputs: logistic for two classes and softmax for more,
/// and in the units of the encoder's features as they are. Those are of like size by nature, and
/// units read off the rows would keep something of rows that are to be forgotten. Families that are
/// not linear are refused.
pub fn head_recipe(recipe: &Recipe, outputs: usize) -> Result<Recipe> {
    if let Some(ridge) = recipe.get::<Ridge>() {
        return Ok(ridge.as_given(true).into());
    }
    let logistic = match (recipe.get::<Logistic>(), recipe.get::<Softmax>()) {
        (Some(logistic), _) => *logistic,
        (None, Some(softmax)) => softmax.settings().logistic,
        (None, None) => {
            let reason = format!(
                "the head of a network is a ridge, logistic or softmax model, and not {}",
                recipe.family().name()
            );
            return Err(efface::Error::Unsupported {
                method: "fit",
                reason,
            }
            .into());
        }
    };
    let logistic = logistic.as_given(true);
    Ok(if outputs == 1 {
        logistic.into()
    } else {
        logistic.softmax().into()
    })
}

/// The head at its optimum on these rows.
pub fn fit_head(recipe: &Recipe, encoded: &Rows) -> Result<Model> {
    Ok(head_recipe(recipe, encoded.outputs())?.fit(encoded)?)
}

/// The head without the rows `gone`, whose features are read from `encoded`.
pub fn forget_from_head(
    head: &Model,
    method: &Method,
    options: MethodOptions,
    encoded: &dyn RowStore,
    gone: &[RowId],
) -> efface::Result<Outcome<Model>> {
    // A new head is what the core calls retraining; of a network, that word means the encoder too.
    let work = if *method == Method::RetrainHead {
        Method::Retrain
    } else {
        *method
    };
    let mut outcome = head.forget_with(&work, options, encoded, gone)?;
    // A head that missed its tolerance is made anew too.
    if outcome.evidence.method == Method::Retrain.name() {
        outcome.evidence.method = Method::RetrainHead.name().into();
    }
    Ok(outcome)
}

/// What the core says of a head as a fit left it, at its optimum.
pub(crate) fn evidence_at_optimum(head: &Model) -> Evidence {
    Evidence {
        promise: Claim::Exact,
        ..head.evidence()
    }
}

/// Coefficients (features × outputs) and intercepts.
pub(crate) fn head_parameters(head: &Model) -> Result<(Mat<f64>, Vec<f64>)> {
    let named = head.parameters()?;
    match (named.table("coefficients"), named.vector("intercept")) {
        (Some(table), Some(intercept)) => Ok((table.clone(), intercept.to_vec())),
        _ => Err(Error::Damaged("its head is not linear".into())),
    }
}

/// How far the parameters of two heads are apart.
pub fn head_distance(a: &Model, b: &Model) -> Result<f64> {
    let (a, a_constants) = head_parameters(a)?;
    let (b, b_constants) = head_parameters(b)?;
    let constants = a_constants
        .iter()
        .zip(&b_constants)
        .map(|(a, b)| (a - b) * (a - b))
        .sum::<f64>();
    let difference = &a - &b;
    Ok((difference.squared_norm_l2() + constants).sqrt())
}
