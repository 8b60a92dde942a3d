//! Whether a model has forgotten, measured: `efface::eval` for Python.

use std::collections::HashSet;

use efface::eval::{
    LinearRelearning, Task, Trials, distance, duplicates, feature_injection, membership_inference,
    utility,
};
use efface::models::{MethodOptions, RecipeTask};
use efface::{Error, Fit, Method, Model, Recipe, Result, RowId, Rows, Stop};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::evidence::plain;
use crate::{errors, input, work};

/// What is asked of an audit.
struct Question {
    recipe: Recipe,
    rows: Rows,
    gone: Vec<RowId>,
    task: Task,
    methods: Vec<Method>,
    trials: Option<Trials>,
}

impl Question {
    fn answer(&self) -> Result<Value> {
        let Self {
            recipe,
            rows,
            gone,
            task,
            methods,
            trials,
        } = self;
        let twins = duplicates(rows, gone)?;
        let leaving: HashSet<RowId> = gone.iter().copied().collect();
        let retained = rows.filter(|id| !leaving.contains(&id));
        let before = recipe.fit(rows)?;
        let retrained = recipe.fit(&retained)?;
        let relearning = self.relearning(
            &before,
            &retrained,
            &rows.filter(|id| leaving.contains(&id)),
        )?;
        let mut found = Vec::with_capacity(methods.len());
        for method in methods {
            let after = before.forget_with(method, MethodOptions::measured(), rows, gone)?;
            found.push(json!({
                "method": method.name(),
                "claim": after.evidence.claim().name(),
                "bound": after.evidence.bound,
                "distance": distance(&before, &after.model, &retrained, *task, rows)?,
                "relearning": relearning.as_ref().map(|steps| steps.measure(&after.model)).transpose()?,
                "utility": utility(&after.model, *task, &retained)?,
            }));
        }
        let membership = match trials {
            Some(trials) => Some(membership_inference(
                recipe,
                *task,
                rows,
                gone,
                methods,
                trials,
                &|_, _| (),
            )?),
            None => None,
        };
        Ok(json!({
            "rows": twins.rows,
            "forgotten": gone.len(),
            "rows_with_twins": twins.rows_with_twins,
            "surviving_twins": twins.surviving(),
            "utility_before": utility(&before, *task, &retained)?,
            "utility_retrained": utility(&retrained, *task, &retained)?,
            "methods": found,
            "membership": membership,
        }))
    }

    /// None for models that are not trained by gradients.
    fn relearning(
        &self,
        before: &Model,
        retrained: &Model,
        forgotten: &Rows,
    ) -> Result<Option<LinearRelearning>> {
        match LinearRelearning::new(&self.recipe, before, retrained, forgotten) {
            Ok(found) => Ok(Some(found)),
            Err(Error::Unsupported { .. } | Error::NoWeight) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The methods of these names at their defaults.
fn named_methods(py: Python<'_>, names: &[String]) -> PyResult<Vec<Method>> {
    let methods: Result<Vec<Method>> = names.iter().map(|name| Method::named(name)).collect();
    methods.map_err(|error| errors::core(py, error))
}

/// Distance, utility and attacks, for a request on rows.
#[pyfunction]
#[pyo3(signature = (recipe, x, y, ids, weights, gone, classes, methods, oracles, seed, threads))]
#[expect(clippy::too_many_arguments, reason = "Python names every one of them")]
pub(crate) fn audit<'py>(
    py: Python<'py>,
    recipe: &str,
    x: &Bound<'py, PyAny>,
    y: PyReadonlyArray2<'py, f64>,
    ids: PyReadonlyArray1<'py, u64>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    gone: PyReadonlyArray1<'py, u64>,
    classes: bool,
    methods: Vec<String>,
    oracles: usize,
    seed: u64,
    threads: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let stop = Stop::default();
    let recipe = input::recipe(recipe)?;
    let task = match (recipe.describe().task, classes) {
        (RecipeTask::Clusters, _) => Task::Clusters,
        (_, true) => Task::Classes,
        (_, false) => Task::Regression,
    };
    let question = Question {
        recipe,
        rows: input::rows(py, x, &y, &ids, weights.as_ref())?.watched(&stop),
        gone: input::named(gone.as_slice()?),
        task,
        methods: named_methods(py, &methods)?,
        trials: (oracles > 0).then(|| Trials {
            oracles,
            seed,
            threads,
            ..Trials::default()
        }),
    };
    let answer = work::interruptible(py, &stop, || question.answer())?;
    plain(py, &answer)
}

/// What is left of a feature that only the rows to forget had.
#[pyfunction]
pub(crate) fn injection<'py>(
    py: Python<'py>,
    recipe: &str,
    x: &Bound<'py, PyAny>,
    y: PyReadonlyArray2<'py, f64>,
    ids: PyReadonlyArray1<'py, u64>,
    gone: PyReadonlyArray1<'py, u64>,
    methods: Vec<String>,
) -> PyResult<Bound<'py, PyAny>> {
    let stop = Stop::default();
    let recipe = input::recipe(recipe)?;
    let rows = input::rows(py, x, &y, &ids, None)?.watched(&stop);
    let gone = input::named(gone.as_slice()?);
    let methods = named_methods(py, &methods)?;
    let found = work::interruptible(py, &stop, || {
        feature_injection(&recipe, &rows, &gone, &methods)
    })?;
    plain(py, &found)
}
