//! The models.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use efface_engine::{Engine, ReleasePolicy};
use serde::Serialize;
use utoipa::ToSchema;

use super::ledger::stopped;
use super::path::NameInPath;
use crate::access::{Caller, Scope};
use crate::app::ServiceState;
use crate::problem::{Problem, ProblemDetails};
use crate::registry::ServedModel;

/// A model, in a few numbers.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ModelOverview {
    /// Its name.
    name: String,
    /// The family, as in `ridge`.
    family: String,
    /// Rows that it stands for.
    rows: usize,
    /// Rows that were ever forgotten.
    forgotten: usize,
    /// Forgotten rows whose bytes wait to be overwritten.
    unscrubbed: usize,
    /// The column that names a row.
    id_column: Option<String>,
    /// The column that names the person a row belongs to.
    subject_column: Option<String>,
    /// The columns that it predicts.
    target: Vec<String>,
    /// The columns that it reads, in the order in which rows without names are taken; empty where
    /// it reads texts or indices.
    columns: Vec<String>,
    /// Names of the scores: outputs, classes or clusters.
    outputs: Vec<String>,
    /// An upper bound on the distance to a model fitted without the forgotten rows.
    bound: Option<f64>,
    /// The bound as a fraction of the parameters' norm.
    relative_bound: Option<f64>,
    /// For a network whose encoder nothing bounds: an upper bound on the relative distance of its
    /// head to the optimum on the features of that encoder.
    head_bound: Option<f64>,
    /// What a forget cannot take out of it, as stable names.
    #[schema(value_type = Vec<Object>)]
    not_covered: Vec<efface::NotCovered>,
    /// What is kept beside it although none of its answers depends on it.
    #[schema(value_type = Vec<Object>)]
    kept_beside: Vec<efface::NotCovered>,
    /// Receipts in its log.
    receipts: u64,
    /// Exports that are in use.
    exports_in_use: u64,
    /// Exports that a forget withdrew.
    exports_withdrawn: u64,
    /// The public key of its log.
    public_key: String,
    /// When forgotten rows are overwritten and when parameters may be published; null where the
    /// file does not tell now.
    #[schema(value_type = Option<Object>)]
    policy: Option<ReleasePolicy>,
    /// When it was fitted.
    created_at: String,
    /// When it last changed.
    changed_at: String,
}

impl ModelOverview {
    /// Blocks: the policy is read from the file.
    fn of(model: &ServedModel) -> Self {
        let facts = model.summary();
        Self {
            name: model.name().to_owned(),
            family: facts.model.clone(),
            rows: facts.rows,
            forgotten: facts.forgotten,
            unscrubbed: facts.unscrubbed,
            id_column: facts.id.clone(),
            subject_column: facts.subject.clone(),
            target: facts.target.clone(),
            columns: model
                .scorer()
                .columns()
                .unwrap_or_default()
                .into_iter()
                .map(Into::into)
                .collect(),
            outputs: facts.outputs.clone(),
            // JSON has no infinity; a bound that says nothing is null.
            bound: facts.bound.is_finite().then_some(facts.bound),
            relative_bound: facts
                .relative_bound
                .is_finite()
                .then_some(facts.relative_bound),
            head_bound: facts.head_bound.map(|head| head.relative_bound),
            not_covered: facts.not_covered.clone(),
            kept_beside: facts.kept_beside.clone(),
            receipts: facts.receipts,
            exports_in_use: facts.exports.0,
            exports_withdrawn: facts.exports.1,
            public_key: facts.public_key.clone(),
            policy: model.ask(Engine::policy).ok(),
            created_at: facts.created_at.clone(),
            changed_at: facts.changed_at.clone(),
        }
    }
}

/// All models of the server that the token may see.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ModelList {
    models: Vec<ModelOverview>,
}

/// Lists the models.
#[utoipa::path(
    get, path = "/v1/models", tag = "models", security(("token" = [])),
    responses((status = 200, description = "The models", body = ModelList),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"))
)]
pub(super) async fn list(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
) -> Result<Json<ModelList>, Problem> {
    caller.allow(Scope::Audit, None)?;
    let seen: Vec<_> = state
        .models
        .all()
        .into_iter()
        .filter(|model| caller.sees(model.name()))
        .collect();
    let look = move || seen.iter().map(|model| ModelOverview::of(model)).collect();
    Ok(Json(ModelList {
        models: state.settings.work.run(look).await.map_err(stopped)?,
    }))
}

/// Shows a model.
#[utoipa::path(
    get, path = "/v1/models/{model}", tag = "models", security(("token" = [])),
    params(("model" = String, Path, description = "The name of the model")),
    responses((status = 200, description = "The model", body = ModelOverview),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"))
)]
pub(super) async fn show(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
    NameInPath(name): NameInPath,
) -> Result<Json<ModelOverview>, Problem> {
    caller.allow(Scope::Audit, Some(&name))?;
    let model = state.models.find(&name)?;
    Ok(Json(
        state
            .settings
            .work
            .run(move || ModelOverview::of(&model))
            .await
            .map_err(stopped)?,
    ))
}
