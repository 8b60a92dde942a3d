//! The checks that every method passes on every model it is listed for. They are a library, not a
//! test, so that a method written elsewhere can be held to them too: give a [`Case`], get the first
//! broken promise or nothing.
//!
//! Checked: an empty request changes nothing; an unknown or repeated id, an id already forgotten,
//! and a request for every row are errors that name it; the same request gives the same result
//! twice; an exact claim equals retraining; the reported bound is never exceeded; one batch and the
//! same rows one by one agree; a stored and reloaded model forgets alike; and learning the rows
//! again undoes a forget.

use crate::error::{Error, Result};
use crate::evidence::{Claim, Outcome};
use crate::rows::{RowId, RowStore, Rows};
use crate::traits::{Amend, Fit, Forget};

/// A model to forget from, and how to look at it.
pub struct Case<'a, M> {
    /// Said in a violation.
    pub name: &'a str,
    /// The recipe.
    pub recipe: &'a dyn Fit<Model = M>,
    /// Its rows.
    pub rows: &'a Rows,
    /// The rows to forget.
    pub gone: &'a [RowId],
    /// All parameters in one list.
    pub parameters: &'a dyn Fn(&M) -> Vec<f64>,
    /// Stores and loads a model.
    pub reload: &'a dyn Fn(&M, &dyn RowStore) -> Result<M>,
    /// How near to retraining, relative to the parameters' norm, counts as equal.
    pub tolerance: f64,
    /// How far two models of different rows can lie apart by the noise of each alone; 0 for models
    /// without noise.
    pub noise: f64,
}

/// A promise that a method broke.
#[derive(Debug, Clone, PartialEq)]
pub struct Violation {
    /// The method and the case.
    pub of: String,
    /// What was promised and what happened.
    pub what: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.of, self.what)
    }
}

/// Holds `method` to the contract on one case.
pub fn check<M: Amend + Clone>(
    method: &dyn Forget<M>,
    case: &Case<'_, M>,
) -> std::result::Result<(), Violation> {
    let broken = |what: String| Violation {
        of: format!("{} on {}", method.name(), case.name),
        what,
    };
    let failed = |error: Error| broken(format!("failed: {error}"));
    let model = case.recipe.fit(case.rows).map_err(failed)?;
    let before = (case.parameters)(&model);

    let nothing = method.forget(&model, case.rows, &[]).map_err(failed)?;
    if (case.parameters)(&nothing.model) != before {
        return Err(broken("an empty request changed the parameters".into()));
    }
    refusals(method, case, &model).map_err(broken)?;

    let Outcome {
        model: after,
        evidence,
    } = method
        .forget(&model, case.rows, case.gone)
        .map_err(failed)?;
    let again = method
        .forget(&model, case.rows, case.gone)
        .map_err(failed)?;
    if (case.parameters)(&after) != (case.parameters)(&again.model) {
        return Err(broken("the same request gave two results".into()));
    }
    if (case.parameters)(&model) != before {
        return Err(broken("the old model changed".into()));
    }
    if evidence.forgotten != case.gone.len() || evidence.rows != case.rows.len() - case.gone.len() {
        return Err(broken(format!(
            "evidence counts {} gone, {} left",
            evidence.forgotten, evidence.rows
        )));
    }

    let retained = case.rows.filter(|id| !case.gone.contains(&id));
    let retrained = case.recipe.fit(&retained).map_err(failed)?;
    let truth = (case.parameters)(&retrained);
    // Retraining has rounding of its own, and says how much.
    let slack = method
        .forget(&retrained, &retained, &[])
        .map_err(failed)?
        .evidence
        .bound;
    let scale = norm(&truth).max(f64::MIN_POSITIVE);
    let distance = distance(&(case.parameters)(&after), &truth);
    if method.claim() == Claim::Exact && distance > case.tolerance * scale {
        return Err(broken(format!(
            "claims exactness, is {:.2e} (relative) from retraining",
            distance / scale
        )));
    }
    if distance > evidence.bound + slack + case.noise {
        return Err(broken(format!(
            "reports a bound of {:.2e}, is {distance:.2e} away",
            evidence.bound
        )));
    }

    one_by_one(method, case, &model, &truth, scale, slack).map_err(broken)?;
    let mut settled = after.clone();
    settled.settle().map_err(failed)?;
    if self::distance(&(case.parameters)(&settled), &(case.parameters)(&after)) > 0.0 {
        return Err(broken("settling changed the parameters".into()));
    }
    reloaded(method, case, &model).map_err(broken)?;
    if method.claim() == Claim::Exact {
        let lost = case.rows.filter(|id| case.gone.contains(&id));
        let Outcome {
            model: back,
            evidence,
        } = after.learn(&retained, &lost).map_err(failed)?;
        let size = norm(&before).max(f64::MIN_POSITIVE);
        let off = self::distance(&(case.parameters)(&back), &before) / size;
        if off > case.tolerance + (2.0 * evidence.bound + case.noise) / size {
            return Err(broken(format!(
                "learning the rows again left it {off:.2e} (relative) from where it was"
            )));
        }
    }
    Ok(())
}

fn refusals<M>(
    method: &dyn Forget<M>,
    case: &Case<'_, M>,
    model: &M,
) -> std::result::Result<(), String> {
    let all: Vec<RowId> = case.rows.ids().collect();
    let unknown = RowId(u64::MAX - 1);
    let first = case.gone.first().copied().unwrap_or(all[0]);
    let remaining = case.rows.filter(|id| id != first);
    let requests: [(&str, &Rows, Vec<RowId>, Error); 4] = [
        (
            "an unknown id",
            case.rows,
            vec![first, unknown],
            Error::UnknownRow(unknown),
        ),
        (
            "a repeated id",
            case.rows,
            vec![first, first],
            Error::DuplicateRow(first),
        ),
        (
            "an id already forgotten",
            &remaining,
            vec![first],
            Error::UnknownRow(first),
        ),
        (
            "every row",
            case.rows,
            all.clone(),
            Error::NothingLeft {
                gone: all.len(),
                rows: all.len(),
            },
        ),
    ];
    for (what, rows, ids, expected) in requests {
        match method.forget(model, rows, &ids) {
            Err(error) if error == expected => (),
            Err(error) => return Err(format!("{what} is refused with the wrong error: {error}")),
            Ok(_) => return Err(format!("{what} is accepted")),
        }
    }
    Ok(())
}

fn one_by_one<M: Amend + Clone>(
    method: &dyn Forget<M>,
    case: &Case<'_, M>,
    model: &M,
    truth: &[f64],
    scale: f64,
    slack: f64,
) -> std::result::Result<(), String> {
    let mut rows = case.rows.clone();
    let mut current = model.clone();
    let mut bound = 0.0;
    for (step, &id) in case.gone.iter().enumerate() {
        let outcome = method
            .forget(&current, &rows, &[id])
            .map_err(|e| format!("one by one, failed: {e}"))?;
        rows.remove(&[id]).map_err(|e| e.to_string())?;
        bound = outcome.evidence.bound;
        current = outcome.model;
        // Some steps settle and some do not, so that both ways of going on are walked.
        if step % 3 == 2 {
            current
                .settle()
                .map_err(|e| format!("one by one, failed to settle: {e}"))?;
        }
    }
    let off = distance(&(case.parameters)(&current), truth);
    if method.claim() == Claim::Exact && off > case.tolerance * scale {
        return Err(format!(
            "row by row ends {:.2e} (relative) from retraining",
            off / scale
        ));
    }
    if off > bound + slack + case.noise {
        return Err(format!(
            "row by row reports a bound of {bound:.2e}, is {off:.2e} away"
        ));
    }
    Ok(())
}

fn reloaded<M: Amend + Clone>(
    method: &dyn Forget<M>,
    case: &Case<'_, M>,
    model: &M,
) -> std::result::Result<(), String> {
    let loaded = (case.reload)(model, case.rows).map_err(|e| format!("cannot be reloaded: {e}"))?;
    if (case.parameters)(&loaded) != (case.parameters)(model) {
        return Err("storing and loading changed the parameters".into());
    }
    let [a, b] = [model, &loaded].map(|m| method.forget(m, case.rows, case.gone));
    let a = a.map_err(|e| e.to_string())?.model;
    let b = b.map_err(|e| e.to_string())?.model;
    let a = (case.parameters)(&a);
    let b = (case.parameters)(&b);
    if distance(&a, &b) > case.tolerance * norm(&a).max(f64::MIN_POSITIVE) {
        let apart = distance(&a, &b) / norm(&a).max(f64::MIN_POSITIVE);
        return Err(format!(
            "a reloaded model forgets differently, {apart:.1e} apart"
        ));
    }
    Ok(())
}

fn norm(a: &[f64]) -> f64 {
    a.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).powi(2))
        .sum::<f64>()
        .sqrt()
}
