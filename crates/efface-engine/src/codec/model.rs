//! Between a model and its file. A model is stored as its [`ModelState`]: the head as one array,
//! every array of the state as one of its own, so that scores need not read the large ones.

use crate::file::ModelConnection;
use efface::features::{Encoder, KeptSums};
use efface::models::{ModelScorer, RowsBeside};
use efface::state::UNIT_ARRAYS;
use efface::{
    Amend, Evidence, Form, Model, ModelState, NotCovered, Recipe, RidgeState, ShardRecipe, Sisa,
    StateArray,
};
use efface_nn::NetworkRecipe;

use crate::codec::feature_rows;
use crate::codec::kept_sums;
use crate::codec::manifest::{Manifest, ModelHead, StateHead, StateKind};
use crate::codec::network_info::NetworkInfo;
use crate::error::{Error, Result};
use crate::file::{self, ArrayHead, FileFault, ModelStore, StoredArray, damaged, parts};

/// The name of the array that holds the head of a state. Beside arrays, it holds facts about them;
/// else it is the whole model, and its hash is that of the parameters.
fn head_name(arrays: usize) -> &'static str {
    if arrays == 0 { "model" } else { "facts" }
}

/// What the manifest says of a state.
pub(crate) fn state_head(model: &Model, state: &ModelState) -> StateHead {
    let kind = |array: &StateArray| match array {
        StateArray::Numbers(_) => StateKind::Numbers,
        StateArray::Counts(_) => StateKind::Counts,
    };
    StateHead {
        family: state.family,
        arrays: state
            .arrays
            .iter()
            .map(|(name, array)| (name.clone(), kind(array)))
            .collect(),
        refactorisations: model.refactorisations(),
    }
}

/// Limits an evidence of the stored model, which is the head of a network, to what holds for the
/// whole network.
pub(crate) fn limit(manifest: &Manifest, evidence: &mut Evidence) {
    if let Some(network) = &manifest.network {
        network.state.limit(evidence);
    }
}

/// The small half of a model's state.
pub(crate) fn head(recipe: Recipe, state: StateHead, evidence: &Evidence) -> ModelHead {
    let known = |bound: f64| bound.is_finite().then_some(bound);
    ModelHead {
        recipe,
        state,
        bound: known(evidence.bound),
        relative_bound: known(evidence.relative_bound),
        head_bound: evidence.head_bound,
        certificate: evidence.certificate.clone().filter(|c| {
            [c.epsilon, c.delta, c.noise, c.budget, c.used, c.left]
                .iter()
                .all(|value| value.is_finite())
        }),
        left_behind: evidence
            .not_covered
            .iter()
            .chain(&evidence.kept_beside)
            .cloned()
            .collect(),
    }
}

/// Writes the large half, the encoder, and the sums beside the model, where there are some.
pub(crate) fn save(
    connection: &ModelConnection,
    state: &ModelState,
    encoder: Option<&Encoder>,
    sums: Option<&KeptSums>,
    old: &[ArrayHead],
) -> std::result::Result<Vec<ArrayHead>, FileFault> {
    let Ok(words) = encoder.map(serde_json::to_vec).transpose() else {
        return damaged("its encoder cannot be written");
    };
    let Ok(sums) = sums.map(KeptSums::to_bytes).transpose() else {
        return damaged("its sums cannot be written");
    };
    let mut list = vec![StoredArray::Bytes(
        head_name(state.arrays.len()),
        &state.head,
    )];
    list.extend(state.arrays.iter().map(|(name, array)| match array {
        StateArray::Numbers(values) => StoredArray::Numbers(name, values),
        StateArray::Counts(values) => StoredArray::Counts(name, values),
    }));
    list.extend(
        words
            .as_deref()
            .map(|words| StoredArray::Bytes("encoder", words)),
    );
    list.extend(
        sums.as_deref()
            .map(|sums| StoredArray::Bytes(kept_sums::ARRAY, sums)),
    );
    parts::save(connection, &list, old)
}

/// The encoder of columns; None when the model was fitted on svmlight, or is a network.
pub(crate) fn encoder(
    connection: &ModelConnection,
    manifest: &Manifest,
) -> std::result::Result<Option<Encoder>, FileFault> {
    if manifest.blueprint.first_index.is_some() || manifest.blueprint.texts.is_some() {
        return Ok(None);
    }
    let bytes = parts::bytes(connection, &manifest.parts, "encoder")?;
    match serde_json::from_slice::<Encoder>(&bytes) {
        Ok(encoder)
            if encoder.width() == manifest.blueprint.width
                && encoder.raw_width() == manifest.blueprint.stored_width =>
        {
            Ok(Some(encoder))
        }
        _ => damaged("its encoder makes no sense"),
    }
}

/// What a stored model computes with that was read off its rows, see [`ModelState::read_off_rows`].
pub(crate) fn read_off_rows(
    connection: &ModelConnection,
    manifest: &Manifest,
) -> std::result::Result<Vec<NotCovered>, FileFault> {
    Ok(read_state(connection, manifest, |name| UNIT_ARRAYS.contains(&name))?.read_off_rows())
}

/// The stored state, with the arrays that are wanted.
fn read_state(
    connection: &ModelConnection,
    manifest: &Manifest,
    wanted: impl Fn(&str) -> bool,
) -> std::result::Result<ModelState, FileFault> {
    let StateHead { family, arrays, .. } = &manifest.model.state;
    let head = parts::bytes(connection, &manifest.parts, head_name(arrays.len()))?;
    let mut state = ModelState {
        family: *family,
        head,
        arrays: Vec::new(),
    };
    for (name, kind) in arrays.iter().filter(|(name, _)| wanted(name)) {
        let array = match kind {
            StateKind::Numbers => {
                StateArray::Numbers(parts::numbers(connection, &manifest.parts, name)?)
            }
            StateKind::Counts => {
                StateArray::Counts(parts::counts(connection, &manifest.parts, name)?)
            }
        };
        state.arrays.push((name.clone(), array));
    }
    Ok(state)
}

/// The model, ready to change. O(d³/3) in the dense forms of ridge.
pub(crate) fn load(store: &ModelStore, manifest: &Manifest) -> Result<Model> {
    let state = store.with(|connection| read_state(connection, manifest, |_| true))?;
    let recipe = recipe(store, manifest)?.for_single_change();
    let model = match &manifest.waiting {
        Some(_) => {
            // The stored encoder still counts these rows, so that it knows their names.
            let (gone, encoder) = store.with(|connection| {
                let gone = file::rows::waiting_rows(connection, &manifest.outline())?;
                Ok((gone, encoder(connection, manifest)?))
            })?;
            let gone = feature_rows::features(&gone, encoder.as_ref(), &manifest.blueprint)?;
            recipe.restore(state, RowsBeside::Gone(&gone))?
        }
        None => recipe.restore(state, RowsBeside::None)?,
    };
    check(store, manifest, &model)?;
    Ok(model)
}

/// The recipe of the model as it is stored. That of networks in shards holds their words as well,
/// which are an array of the file.
fn recipe(store: &ModelStore, manifest: &Manifest) -> Result<Recipe> {
    let Some(shards) = manifest
        .network
        .as_ref()
        .and_then(|network| network.shards.as_ref())
    else {
        return Ok(manifest.model.recipe.clone());
    };
    let bytes = store.with(|connection| parts::bytes(connection, &manifest.parts, "backbone"))?;
    let (network, _) = NetworkRecipe::from_bytes(&bytes)?;
    let sisa = Sisa::new(ShardRecipe::new(network)?, shards.shards, shards.slices);
    Ok(sisa
        .seed(shards.seed)
        .aggregation(shards.aggregation)
        .into())
}

/// Whether every shard is a network of its own.
fn in_shards(manifest: &Manifest) -> bool {
    manifest
        .network
        .as_ref()
        .is_some_and(|network| network.shards.is_some())
}

/// What scores rows, from the arrays that scores need and no others.
pub(crate) fn scorer(store: &ModelStore, manifest: &Manifest) -> Result<ModelScorer> {
    let wanted = |name: &str| !ModelState::is_working_array(name);
    let state = store.with(|connection| read_state(connection, manifest, wanted))?;
    let scorer = recipe(store, manifest)?.restore_scorer(state)?;
    if let Some(model) = scorer.model() {
        check(store, manifest, model)?;
    }
    Ok(scorer)
}

/// The head of a stored ridge model once its parameters are others, and the minimum or not.
pub(crate) fn head_with_optimum(
    connection: &ModelConnection,
    manifest: &Manifest,
    at_optimum: bool,
) -> std::result::Result<Vec<u8>, FileFault> {
    let head = parts::bytes(connection, &manifest.parts, head_name(1))?;
    match RidgeState::head_with_optimum(&head, at_optimum) {
        Ok(head) => Ok(head),
        Err(error) => damaged(error.to_string()),
    }
}

/// Writes what a change of the parameters alone writes: the rest of the state stays as it is.
pub(crate) fn replace_parameters(
    connection: &ModelConnection,
    arrays: &mut [ArrayHead],
    theta: &[f64],
    head: &[u8],
) -> std::result::Result<(), FileFault> {
    parts::replace(connection, arrays, &StoredArray::Numbers("theta", theta))?;
    parts::replace(connection, arrays, &StoredArray::Bytes(head_name(1), head))
}

/// Whether a model that was read fits the rows beside it.
fn check(store: &ModelStore, manifest: &Manifest, model: &Model) -> Result<()> {
    let blueprint = &manifest.blueprint;
    let what = if model.features() != blueprint.width {
        "its model has another width than its rows"
    } else if model.rows() as u64 != manifest.rows && manifest.waiting.is_none() {
        "its model stands for another number of rows"
    } else if model
        .classes()
        .is_some_and(|found| Some(found) != blueprint.class_count())
    {
        "its model has another number of classes"
    } else if model
        .outputs()
        .is_some_and(|outputs| outputs != blueprint.outputs())
    {
        "its model has another number of outputs than its rows"
    } else {
        return Ok(());
    };
    Err(Error::Damaged {
        path: store.path().to_owned(),
        what: what.into(),
    })
}

/// Folds in what waits, so that nothing of a row that is gone stays in the curvature, and takes the
/// state.
pub(crate) fn settle(model: &mut Model, evidence: &mut Evidence) -> Result<ModelState> {
    evidence.refactored |= model.settle()?.refactored;
    model.update_evidence(evidence);
    let state = model.to_state()?;
    // Of what was computed beforehand, what comes first was in the file; a factor was, where the
    // state has one, and was made for this change otherwise.
    let has_factor = state
        .arrays
        .iter()
        .any(|(name, array)| name == "factor" && array.bytes() > 0);
    evidence
        .precomputed
        .truncate(if has_factor { 2 } else { 1 });
    Ok(state)
}

/// The parameters of a model that can be stored with its sums as they were before `gone` rows left,
/// and whether they are the minimum. None where that would save nothing: a family that keeps no
/// sums, a change that made them anew.
pub(crate) fn quick(model: &Model, gone: usize, evidence: &Evidence) -> Option<(Vec<f64>, bool)> {
    let is_quick = model.waiting() >= gone && !evidence.resummed && !evidence.refactored;
    is_quick.then(|| model.quick_state()).flatten()
}

/// Whether forgets from this model can be scrubbed later.
pub(crate) fn defers(manifest: &Manifest) -> bool {
    let form = manifest.model.recipe.describe().form;
    form.is_some_and(|form| form != Form::Iterative) && !in_shards(manifest)
}

/// Whether the numbers of rows are part of the model, so that a row which gets another number is
/// another row.
pub(crate) fn knows_numbers(manifest: &Manifest) -> bool {
    manifest.model.recipe.describe().knows_row_numbers || in_shards(manifest)
}

/// What a forget cannot take out of a model, or out of the file that keeps it. Some of it may be in
/// the list twice.
pub(crate) fn left_behind(
    manifest: &Manifest,
    encoder: Option<&Encoder>,
    read_off_rows: Vec<NotCovered>,
) -> Vec<NotCovered> {
    let mut found = manifest.model.left_behind.clone();
    found.extend(encoder.map(Encoder::not_covered).unwrap_or_default());
    found.extend(manifest.network.iter().flat_map(NetworkInfo::not_covered));
    found.extend(manifest.penalty.as_ref().map(|_| NotCovered::ChosenPenalty));
    let empty = manifest.blueprint.empty_classes();
    if empty > 0 {
        found.push(NotCovered::EmptyClasses { classes: empty });
    }
    if let Some(waiting) = &manifest.waiting {
        // The words of a network are its encoder's, and a settle leaves those alone.
        found.push(NotCovered::AwaitingSettle {
            rows: waiting.rows.len(),
            words: encoder.is_some(),
        });
    }
    if manifest.forgotten > 0 {
        found.extend([NotCovered::ForgottenIds, NotCovered::StorageBlocks]);
    }
    found.extend(read_off_rows);
    found
}
