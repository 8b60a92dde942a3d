//! The model computed again: its distance bound from what is stored beside it, and sums and bound
//! from its rows.

use efface::features::Encoder;
use efface::{Family, Fit, LogisticModel, Model, RidgeModel, RidgeState};

use super::{CheckOutcome, CheckResult, counted, holds};
use crate::codec::feature_rows::FeatureRows;
use crate::codec::manifest::Manifest;
use crate::codec::model;
use crate::error::Error;
use crate::file::{FileFault, StoreRows, damaged};
use crate::operations::open_model::OpenModel;
use crate::operations::parameters;

/// Numbers in the rows that are read without being asked: a few seconds.
const SMALL: u64 = 20_000_000;

/// Multiplications that are made without being asked.
const QUICK: f64 = 2e10;

/// A bound that is measured in another order, or on a factor made anew, comes out differently.
const SLACK: f64 = 2.0;

fn fault(error: impl Into<Error>) -> FileFault {
    match error.into() {
        Error::Key { .. } => FileFault::Sealed,
        error => FileFault::Damaged(error.to_string()),
    }
}

/// The distance bound, told anew by the stored model. Where no number was recorded there is nothing
/// to hold it to.
pub(super) fn bound(open: &OpenModel, manifest: &Manifest, tolerance: f64) -> CheckOutcome {
    let found = model::load(&open.store, manifest).map_err(fault)?;
    judge(
        found.evidence().relative_bound,
        manifest,
        tolerance,
        "the stored model",
    )
}

fn judge(told: f64, manifest: &Manifest, tolerance: f64, from: &str) -> CheckOutcome {
    let head = manifest.model.head_bound.map(|head| head.relative_bound);
    let recorded = head.or(manifest.model.relative_bound);
    let distance = match head {
        Some(_) => {
            "from the head to its optimum, relative; nothing bounds the encoder, so that the claim is approximate"
        }
        None => "relative to retraining",
    };
    let text = recorded.map_or("nothing".into(), |bound| format!("{bound:.1e}"));
    if !told.is_finite() {
        return Ok(CheckResult::Unknown(format!(
            "no distance to retraining can be told from {from}; {text} was recorded"
        )));
    }
    match recorded {
        _ if told <= tolerance.max(1e-12) => holds(format!(
            "{told:.1e} {distance}, within the tolerance; {text} was recorded"
        )),
        Some(recorded) if told <= recorded * SLACK => {
            holds(format!("{told:.1e} {distance}; {text} was recorded"))
        }
        Some(_) => damaged(format!("the bound is {told:.1e}, and {text} was recorded")),
        None => Ok(CheckResult::Unknown(format!(
            "{told:.1e} {distance}; {text} was recorded to compare"
        ))),
    }
}

/// Sums, parameters and bound from the rows themselves.
pub(super) fn against(
    open: &OpenModel,
    manifest: &Manifest,
    tolerance: f64,
    asked: Option<bool>,
) -> CheckOutcome {
    let width = manifest.blueprint.width as f64;
    let large = manifest
        .rows
        .saturating_mul(manifest.blueprint.width as u64)
        > SMALL
        || manifest.rows as f64 * width * width > QUICK;
    if !asked.unwrap_or(!large) {
        return Ok(CheckResult::Unknown(
            "the model was not computed from its rows; verifying with rows does it".into(),
        ));
    }
    let encoder = open.read_snapshot().map_err(fault)?.encoder;
    let rows = FeatureRows::new(
        StoreRows::new(&open.store, manifest.outline()),
        encoder.as_ref(),
        &manifest.blueprint,
    );
    if manifest
        .network
        .as_ref()
        .is_some_and(|network| network.shards.is_some())
    {
        return Ok(CheckResult::Unknown(
            "for networks in shards that would be a training of its own".into(),
        ));
    }
    if let Some(encoder) = &encoder {
        let raw = StoreRows::new(&open.store, manifest.outline());
        if let Some(column) = encoder.miscounted(&raw).map_err(fault)? {
            return damaged(format!(
                "what is kept of column `{column}` is not that of its rows"
            ));
        }
    }
    let recipe = &manifest.model.recipe;
    match recipe.family() {
        Family::Ridge => {
            let may_have_shifted = encoder.as_ref().is_some_and(Encoder::shifts_columns);
            ridge(open, manifest, tolerance, &rows, may_have_shifted)
        }
        Family::Logistic | Family::Softmax => {
            let found = model::load(&open.store, manifest).map_err(fault)?;
            let Some(classifier) = found.get::<LogisticModel>() else {
                return damaged("its recipe and its state are of different models");
            };
            if recipe.describe().is_certified {
                return Ok(CheckResult::Unknown(
                    "a model behind noise is not told apart from its rows".into(),
                ));
            }
            let told = classifier.measured_over(&rows).map_err(fault)?.relative_bound;
            let judged = judge(told, manifest, tolerance, "its rows");
            let Some(recorded) = manifest.model.bound.filter(|_| judged.is_err()) else {
                return judged;
            };
            // Near the optimum a gradient is mostly rounding, and a bound made of it is many times
            // what another order of summation gives. A distance that is certain decides.
            let least = classifier.least_distance_over(&rows).map_err(fault)?;
            if least > recorded {
                return judged;
            }
            holds(format!(
                "between {least:.1e} and {:.1e} from retraining by its rows; {recorded:.1e} was recorded",
                told.max(least)
            ))
        }
        Family::MultinomialNb
        | Family::ComplementNb
        | Family::BernoulliNb
        | Family::GaussianNb
        | Family::LinearSvm
        | Family::Poisson => {
            match recipe.fit_store(&rows) {
                Ok(fresh) => fitted_again(open, manifest, &fresh),
                Err(error @ efface::Error::NotTrained { .. }) => {
                    Ok(CheckResult::Unknown(error.to_string()))
                }
                Err(error) => Err(fault(error)),
            }
        }
        _ => Ok(CheckResult::Unknown(
            "for this family that would be a training of its own, whose result only its seed decides".into(),
        )),
    }
}

/// The parameters against those of the model that was fitted again from the rows. Both are within
/// their bounds of the same optimum.
fn fitted_again(open: &OpenModel, manifest: &Manifest, fresh: &Model) -> CheckOutcome {
    let kept = parameters::numbers(&open.store, manifest).map_err(fault)?;
    let again = parameters::numbers_of(&fresh.parameters().map_err(fault)?);
    let far = kept
        .iter()
        .zip(&again)
        .map(|(a, b)| (a - b).abs() / (1.0 + b.abs()))
        .fold(0.0, f64::max);
    let rows = counted(manifest.rows, "row");
    if kept.len() == again.len() && far <= 1e-9 {
        return holds(format!("fitted again from {rows}: equal to {far:.0e}"));
    }
    let Some(recorded) = manifest.model.bound else {
        return Ok(CheckResult::Unknown(format!(
            "fitted again from {rows}: a number differs by {far:.1e}, and no bound was recorded to compare"
        )));
    };
    let most = recorded + fresh.evidence().bound;
    let distance = apart(&kept, &again);
    if distance <= most {
        return holds(format!(
            "fitted again from {rows}: {distance:.1e} apart, where the bounds allow {most:.1e}"
        ));
    }
    damaged(format!(
        "fitted again from its rows it is another model: {distance:.1e} apart, where the bounds allow {most:.1e}"
    ))
}

fn ridge(
    open: &OpenModel,
    manifest: &Manifest,
    tolerance: f64,
    rows: &FeatureRows<StoreRows<'_>>,
    may_have_shifted: bool,
) -> CheckOutcome {
    let mut model = model::load(&open.store, manifest).map_err(fault)?;
    efface::Amend::settle(&mut model).map_err(fault)?;
    let Some(model) = model.get::<RidgeModel>() else {
        return damaged("its recipe and its state are of different models");
    };
    let kept = model.to_state().map_err(fault)?;
    if kept.a.is_empty() {
        return Ok(CheckResult::Unknown(
            "it keeps no sums; its bound is measured over its rows above".into(),
        ));
    }
    let fresh = kept.resummed(rows).map_err(fault)?;
    let a = apart(&kept.a, &fresh.a);
    let b = apart(&kept.b, &fresh.b);
    // Both are at most so far from the true sums. Half of a symmetric matrix is kept, so that this
    // allows for more.
    let charge = SLACK * (kept.accuracy.charge + fresh.accuracy.charge);
    let square: f64 = kept.spread.iter().map(|s| s * s).sum();
    let most_a = charge * square;
    let most_b = charge
        * square.sqrt()
        * kept
            .accuracy
            .target_spread
            .max(fresh.accuracy.target_spread);
    // Sums that were made without their rows count every row for a column. If they followed a shift,
    // rows that leave later with a 0 there are not subtracted: the count is an upper bound.
    let is_supported = |(kept, fresh): (&u64, &u64)| {
        let is_upper_bound = may_have_shifted || *kept == manifest.rows;
        kept == fresh || (is_upper_bound && fresh < kept)
    };
    let supported = kept.support.len() == fresh.support.len()
        && kept.support.iter().zip(&fresh.support).all(is_supported);
    if !supported || a > most_a || b > most_b {
        return damaged(format!(
            "its sums are not those of its rows: apart by {a:.1e} and {b:.1e}, where rounding explains {most_a:.1e} and \
             {most_b:.1e}"
        ));
    }
    let fresh = RidgeState {
        theta: kept.theta.clone(),
        ..fresh
    };
    let again = Model::new(RidgeModel::from_state(&fresh).map_err(fault)?);
    match judge(
        again.evidence().relative_bound,
        manifest,
        tolerance,
        "its rows",
    )? {
        CheckResult::Holds(told) => {
            let rows = counted(manifest.rows, "row");
            holds(format!(
                "{rows} summed again, sums apart by {a:.0e} and {b:.0e}; {told}"
            ))
        }
        unknown => Ok(unknown),
    }
}

/// The Frobenius distance.
fn apart(a: &[f64], b: &[f64]) -> f64 {
    if a.len() != b.len() {
        return f64::INFINITY;
    }
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).powi(2))
        .sum::<f64>()
        .sqrt()
}
