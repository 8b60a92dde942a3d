//! Between a ridge model and the arrays in its file.

use efface::features::Encoder;
use efface::{Amend, Evidence, Form, RidgeModel, RidgeState, RowStore};
use rusqlite::Connection;

use crate::error::Result;
use crate::store::{Fault, Manifest, ModelHead, Part, PartHead, Store, damaged, parts};

/// The small half of a model's state.
pub(crate) fn head(state: &RidgeState, evidence: &Evidence) -> ModelHead {
    let known = |bound: f64| bound.is_finite().then_some(bound);
    ModelHead {
        settings: state.settings,
        drift: state.drift,
        b_drift: state.b_drift,
        targets: state.targets,
        at_optimum: state.at_optimum,
        refactorisations: state.refactorisations,
        bound: known(evidence.bound),
        relative_bound: known(evidence.relative_bound),
    }
}

/// Writes the large half, and the encoder.
pub(crate) fn save(
    connection: &Connection,
    state: &RidgeState,
    encoder: Option<&Encoder>,
) -> std::result::Result<Vec<PartHead>, Fault> {
    let Ok(words) = encoder.map(serde_json::to_vec).transpose() else {
        return damaged("its encoder cannot be written");
    };
    let mut list = vec![
        Part::Numbers("theta", &state.theta),
        Part::Numbers("origin", &state.origin),
        Part::Numbers("inverse_scale", &state.inverse_scale),
        Part::Numbers("a", &state.a),
        Part::Numbers("b", &state.b),
        Part::Counts("support", &state.support),
    ];
    list.extend(words.as_deref().map(|words| Part::Bytes("encoder", words)));
    parts::save(connection, &list)
}

/// The encoder; None when the model was fitted on svmlight.
pub(crate) fn encoder(
    connection: &Connection,
    manifest: &Manifest,
) -> std::result::Result<Option<Encoder>, Fault> {
    if manifest.blueprint.first_index.is_some() {
        return Ok(None);
    }
    let bytes = parts::bytes(connection, &manifest.parts, "encoder")?;
    match serde_json::from_slice::<Encoder>(&bytes) {
        Ok(encoder) if encoder.width() == manifest.blueprint.width => Ok(Some(encoder)),
        _ => damaged("its encoder makes no sense"),
    }
}

/// The model, ready to change. O(d³/3) in the dense forms.
pub(crate) fn load(store: &Store, manifest: &Manifest, rows: &dyn RowStore) -> Result<RidgeModel> {
    let state = store.with(|connection| {
        let mut state = light(connection, manifest)?;
        state.a = parts::numbers(connection, &manifest.parts, "a")?;
        state.b = parts::numbers(connection, &manifest.parts, "b")?;
        state.support = parts::counts(connection, &manifest.parts, "support")?;
        state.settings.form = working_form(state.settings.form);
        Ok(state)
    })?;
    Ok(RidgeModel::from_state(&state, rows)?)
}

/// The form that one change from the file works in. The file holds sums, whatever the form; the inverse would be made
/// anew in twice the time of a factor, and the rows of XA⁻¹ in O(nd²), only to be thrown away.
pub(crate) fn working_form(kept: Form) -> Form {
    match kept {
        Form::Inverse | Form::Rows => Form::Factor,
        form => form,
    }
}

/// The model for scores alone. Without its sums it looks like an iterative one, and takes no time to make.
pub(crate) fn scorer(store: &Store, manifest: &Manifest, rows: &dyn RowStore) -> Result<RidgeModel> {
    let mut state = store.with(|connection| light(connection, manifest))?;
    state.settings.form = Form::Iterative;
    // That form wants a penalty; scores do not depend on it.
    state.settings.lambda = 1.0;
    Ok(RidgeModel::from_state(&state, rows)?)
}

/// The state without its sums.
fn light(connection: &Connection, manifest: &Manifest) -> std::result::Result<RidgeState, Fault> {
    let ModelHead { settings, drift, b_drift, targets, at_optimum, refactorisations, .. } =
        manifest.model.clone();
    let numbers = |name| parts::numbers(connection, &manifest.parts, name);
    Ok(RidgeState {
        settings,
        rows: manifest.rows as usize,
        outputs: manifest.blueprint.outputs(),
        features: manifest.blueprint.width,
        origin: numbers("origin")?,
        inverse_scale: numbers("inverse_scale")?,
        theta: numbers("theta")?,
        a: Vec::new(),
        b: Vec::new(),
        support: Vec::new(),
        drift,
        b_drift,
        targets,
        at_optimum,
        refactorisations,
    })
}

/// Folds in what waits, so that nothing of a row that is gone stays in the curvature, and takes the state.
pub(crate) fn settle(model: &mut RidgeModel, evidence: &mut Evidence) -> Result<RidgeState> {
    evidence.refactored |= model.settle()?.refactored;
    model.update_evidence(evidence);
    // From the file, the sums are all that was there before; the factor was made for this change.
    evidence.precomputed.truncate(1);
    Ok(model.to_state()?)
}

/// What a forget cannot take out of a model, in plain sentences.
pub(crate) fn not_covered(manifest: &Manifest, encoder: Option<&Encoder>, scaled: bool) -> Vec<String> {
    let mut sentences = encoder.map(Encoder::not_covered).unwrap_or_default();
    let empty = manifest.blueprint.empty_classes();
    if empty > 0 {
        sentences.push(format!(
            "the names of {empty} classes that no row has any more: classes were listed at fit"
        ));
    }
    if manifest.forgotten > 0 {
        sentences.push(
            "that a row of a given id was forgotten, and when: a salted hash of the id is kept so that it cannot come \
             back unnoticed, and whoever holds the file can test a guess"
                .into(),
        );
    }
    if scaled {
        sentences.push(
            "the units in which numeric columns are computed (a power of two each, and an origin near the mean where \
             it dwarfs the spread): they were chosen at the last fit, and no prediction depends on them"
                .into(),
        );
    }
    sentences
}
