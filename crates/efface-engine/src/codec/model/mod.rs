//! Between a model and the arrays in its file.
//!
//! Ridge keeps its arrays side by side, so that scores need not read the large ones. A model that is small beside its
//! rows is one array, see [`pack`].

mod live;

pub(crate) use live::Live;

use efface::features::Encoder;
use efface::models::logistic::LogisticHead;
use efface::{
    Amend, AnyModel, AnyRecipe, Evidence, Form, LogisticModel, LogisticState, NotCovered, RidgeModel,
    RidgeState, RowStore,
};
use efface_nn::NetworkRecipe;
use rusqlite::Connection;

use crate::codec::manifest::{Details, Manifest, ModelHead};
use crate::codec::network_info::NetworkInfo;
use crate::codec::pack;
use crate::error::{Error, Result};
use crate::file::{self, ArrayHead, FileFault, ModelStore, StoredArray, damaged, parts};

/// What is stored of a settled model.
pub(crate) enum State {
    Ridge(Box<RidgeState>),
    /// The head as it is stored, and the state.
    Classifier(Vec<u8>, Box<LogisticState>),
    Packed(Vec<u8>),
}

impl State {
    /// Whether numeric columns are computed in units that were read off the rows.
    pub(crate) fn scaled(&self) -> bool {
        match self {
            Self::Ridge(state) => !state.inverse_scale.is_empty(),
            Self::Classifier(_, state) => {
                state.numbers.iter().any(|(name, values)| name == "inverse_scale" && !values.is_empty())
            }
            Self::Packed(_) => false,
        }
    }

    pub(crate) fn details(&self) -> Details {
        match self {
            Self::Ridge(state) => Details::Sums {
                accuracy: state.accuracy,
                at_optimum: state.at_optimum,
                refactorisations: state.refactorisations,
            },
            Self::Classifier(_, state) => Details::Classifier {
                refactorisations: state.head.refactorisations,
                numbers: state.numbers.iter().map(|(name, _)| name.clone()).collect(),
                counts: state.counts.iter().map(|(name, _)| name.clone()).collect(),
            },
            Self::Packed(_) => Details::Packed,
        }
    }
}

/// The small half of a model's state.
pub(crate) fn head(recipe: AnyRecipe, details: Details, evidence: &Evidence) -> ModelHead {
    let known = |bound: f64| bound.is_finite().then_some(bound);
    ModelHead {
        recipe,
        details,
        bound: known(evidence.bound),
        relative_bound: known(evidence.relative_bound),
        certificate: evidence.certificate.clone().filter(|c| {
            [c.epsilon, c.delta, c.noise, c.budget, c.used, c.left].iter().all(|value| value.is_finite())
        }),
        not_covered: evidence.not_covered.clone(),
    }
}

/// Writes the large half, and the encoder.
pub(crate) fn save(
    connection: &Connection,
    state: &State,
    encoder: Option<&Encoder>,
    old: &[ArrayHead],
) -> std::result::Result<Vec<ArrayHead>, FileFault> {
    let Ok(words) = encoder.map(serde_json::to_vec).transpose() else {
        return damaged("its encoder cannot be written");
    };
    let mut list = match state {
        State::Ridge(state) => vec![
            StoredArray::Numbers("theta", &state.theta),
            StoredArray::Numbers("origin", &state.origin),
            StoredArray::Numbers("inverse_scale", &state.inverse_scale),
            StoredArray::Numbers("a", &state.a),
            StoredArray::Numbers("a_low", &state.a_low),
            StoredArray::Numbers("b", &state.b),
            StoredArray::Counts("support", &state.support),
            StoredArray::Numbers("spread", &state.spread),
            StoredArray::Numbers("anchor", &state.anchor),
            StoredArray::Numbers("gradient", &state.gradient),
            StoredArray::Numbers("gradient_low", &state.gradient_low),
        ],
        State::Classifier(head, state) => {
            let mut list = vec![StoredArray::Bytes(pack::PART, head)];
            list.extend(state.numbers.iter().map(|(name, values)| StoredArray::Numbers(name, values)));
            list.extend(state.counts.iter().map(|(name, values)| StoredArray::Counts(name, values)));
            list
        }
        State::Packed(bytes) => vec![StoredArray::Bytes(pack::PART, bytes)],
    };
    list.extend(words.as_deref().map(|words| StoredArray::Bytes("encoder", words)));
    parts::save(connection, &list, old)
}

/// The encoder of columns; None when the model was fitted on svmlight, or is a network.
pub(crate) fn encoder(
    connection: &Connection,
    manifest: &Manifest,
) -> std::result::Result<Option<Encoder>, FileFault> {
    if manifest.blueprint.first_index.is_some() || manifest.blueprint.texts.is_some() {
        return Ok(None);
    }
    let bytes = parts::bytes(connection, &manifest.parts, "encoder")?;
    match serde_json::from_slice::<Encoder>(&bytes) {
        Ok(encoder) if encoder.width() == manifest.blueprint.width => Ok(Some(encoder)),
        _ => damaged("its encoder makes no sense"),
    }
}

/// Whether a stored model computes numeric columns in units of its own.
pub(crate) fn scaled(connection: &Connection, manifest: &Manifest) -> std::result::Result<bool, FileFault> {
    match manifest.model.details {
        Details::Sums { .. } | Details::Classifier { .. } => {
            Ok(!parts::bytes(connection, &manifest.parts, "inverse_scale")?.is_empty())
        }
        Details::Packed => Ok(false),
    }
}

/// The model, ready to change. O(d³/3) in the dense forms of ridge.
pub(crate) fn load(store: &ModelStore, manifest: &Manifest, rows: &dyn RowStore) -> Result<Live> {
    if in_shards(manifest) { shards(store, manifest) } else { Ok(Live::Plain(plain(store, manifest, rows)?)) }
}

/// Whether every shard is a network of its own.
fn in_shards(manifest: &Manifest) -> bool {
    manifest.network.as_ref().is_some_and(|network| network.shards.is_some())
}

/// Networks in shards.
fn shards(store: &ModelStore, manifest: &Manifest) -> Result<Live> {
    let damaged = |what: String| Error::Damaged { path: store.path().to_owned(), what };
    let (sealed, recipe) = store.with(|connection| {
        let bytes = |name| parts::bytes(connection, &manifest.parts, name);
        Ok((pack::read(&bytes(pack::PART)?)?, bytes("backbone")?))
    })?;
    let (recipe, _) = NetworkRecipe::from_bytes(&recipe).map_err(|error| damaged(error.to_string()))?;
    let model = efface_nn::unseal(&sealed, &recipe).map_err(|error| damaged(error.to_string()))?;
    if model.rows() as u64 != manifest.rows || model.outputs() != manifest.blueprint.outputs() {
        return Err(damaged("its shards stand for other rows".into()));
    }
    Ok(Live::Shards(Box::new(model)))
}

fn plain(store: &ModelStore, manifest: &Manifest, rows: &dyn RowStore) -> Result<AnyModel> {
    if let AnyRecipe::Ridge(settings) = &manifest.model.recipe {
        let state = store.with(|connection| {
            let mut state = light(connection, manifest)?;
            state.a = parts::numbers(connection, &manifest.parts, "a")?;
            state.a_low = parts::numbers(connection, &manifest.parts, "a_low")?;
            state.b = parts::numbers(connection, &manifest.parts, "b")?;
            state.support = parts::counts(connection, &manifest.parts, "support")?;
            state.spread = parts::numbers(connection, &manifest.parts, "spread")?;
            state.anchor = parts::numbers(connection, &manifest.parts, "anchor")?;
            state.gradient = parts::numbers(connection, &manifest.parts, "gradient")?;
            state.gradient_low = parts::numbers(connection, &manifest.parts, "gradient_low")?;
            state.settings = settings.form(working_form(settings.form));
            Ok(state)
        })?;
        let model = match &manifest.waiting {
            Some(_) => {
                let gone =
                    store.with(|connection| file::rows::waiting_rows(connection, &manifest.outline()))?;
                RidgeModel::from_state_without(&state, rows, &gone)?
            }
            None => RidgeModel::from_state(&state, rows)?,
        };
        return Ok(AnyModel::Ridge(Box::new(model)));
    }
    unpack(store, manifest, rows, true)
}

/// The form that one change from the file works in. The file holds sums, whatever the form; the inverse would be made
/// anew in twice the time of a factor, and the rows of XA⁻¹ in O(nd²), only to be thrown away.
pub(crate) fn working_form(kept: Form) -> Form {
    match kept {
        Form::Inverse | Form::Rows => Form::Factor,
        form => form,
    }
}

/// The model for scores alone. A ridge model without its sums looks like an iterative one, and takes no time to make.
pub(crate) fn scorer(store: &ModelStore, manifest: &Manifest, rows: &dyn RowStore) -> Result<Live> {
    if in_shards(manifest) {
        return shards(store, manifest);
    }
    if let AnyRecipe::Ridge(_) = manifest.model.recipe {
        let mut state = store.with(|connection| light(connection, manifest))?;
        state.settings.form = Form::Iterative;
        // That form wants a penalty; scores do not depend on it.
        state.settings.lambda = 1.0;
        return Ok(Live::Plain(AnyModel::Ridge(Box::new(RidgeModel::from_state(&state, rows)?))));
    }
    Ok(Live::Plain(unpack(store, manifest, rows, false)?))
}

/// The state of a ridge model without its sums.
fn light(connection: &Connection, manifest: &Manifest) -> std::result::Result<RidgeState, FileFault> {
    let (AnyRecipe::Ridge(settings), &Details::Sums { accuracy, at_optimum, refactorisations }) =
        (&manifest.model.recipe, &manifest.model.details)
    else {
        return damaged("its recipe and its state are of different models");
    };
    let numbers = |name| parts::numbers(connection, &manifest.parts, name);
    Ok(RidgeState {
        settings: *settings,
        rows: manifest.rows as usize,
        outputs: manifest.blueprint.outputs(),
        features: manifest.blueprint.width,
        origin: numbers("origin")?,
        inverse_scale: numbers("inverse_scale")?,
        theta: numbers("theta")?,
        a: Vec::new(),
        a_low: Vec::new(),
        b: Vec::new(),
        support: Vec::new(),
        spread: Vec::new(),
        anchor: Vec::new(),
        gradient: Vec::new(),
        gradient_low: Vec::new(),
        accuracy,
        at_optimum,
        refactorisations,
    })
}

/// A model of any other family, with or without what only changes need.
fn unpack(store: &ModelStore, manifest: &Manifest, rows: &dyn RowStore, whole: bool) -> Result<AnyModel> {
    let recipe = &manifest.model.recipe;
    let model = if let AnyRecipe::Logistic(_) | AnyRecipe::Softmax(_) = recipe {
        let state = store.with(|connection| classifier(connection, manifest, whole))?;
        AnyModel::Logistic(Box::new(LogisticModel::from_state(state, rows)?))
    } else {
        store.with(|connection| {
            let bytes = parts::bytes(connection, &manifest.parts, pack::PART)?;
            Ok(match recipe {
                AnyRecipe::MultinomialNb(_) => AnyModel::MultinomialNb(pack::read(&bytes)?),
                AnyRecipe::GaussianNb(_) => AnyModel::GaussianNb(pack::read(&bytes)?),
                AnyRecipe::KMeans(_) => AnyModel::KMeans(pack::read(&bytes)?),
                AnyRecipe::Sisa(_) => AnyModel::Sisa(pack::read(&bytes)?),
                _ => return damaged("its recipe and its state are of different models"),
            })
        })?
    };
    check(store, manifest, &model)?;
    Ok(model)
}

/// The state of a logistic or softmax model. The large arrays are left out where only scores are wanted.
fn classifier(
    connection: &Connection,
    manifest: &Manifest,
    whole: bool,
) -> std::result::Result<LogisticState, FileFault> {
    let Details::Classifier { numbers, counts, .. } = &manifest.model.details else {
        return damaged("its recipe and its state are of different models");
    };
    let head: LogisticHead = pack::read(&parts::bytes(connection, &manifest.parts, pack::PART)?)?;
    let wanted = |name: &&String| whole || !LARGE.contains(&name.as_str());
    let numbers = numbers
        .iter()
        .filter(wanted)
        .map(|name| Ok((name.clone(), parts::numbers(connection, &manifest.parts, name)?)))
        .collect::<std::result::Result<_, FileFault>>()?;
    let counts = counts
        .iter()
        .map(|name| Ok((name.clone(), parts::counts(connection, &manifest.parts, name)?)))
        .collect::<std::result::Result<_, FileFault>>()?;
    Ok(LogisticState { head, numbers, counts })
}

/// Arrays of a classifier that scores do without.
const LARGE: [&str; 2] = ["hessian", "gram"];

/// Whether a model that was read fits the rows beside it.
fn check(store: &ModelStore, manifest: &Manifest, model: &AnyModel) -> Result<()> {
    let what = if model.features() != manifest.blueprint.width {
        "its model has another width than its rows"
    } else if model.rows() as u64 != manifest.rows {
        "its model stands for another number of rows"
    } else if classes(model).is_some_and(|found| Some(found) != manifest.blueprint.class_count()) {
        "its model has another number of classes"
    } else if !agree(&manifest.model.recipe, model) {
        "its recipe and its state are of different models"
    } else if let AnyModel::Sisa(model) = model
        && model.outputs() != manifest.blueprint.outputs()
    {
        "its model has another number of outputs than its rows"
    } else {
        return Ok(());
    };
    Err(Error::Damaged { path: store.path().to_owned(), what: what.into() })
}

/// Whether a model was made with this recipe.
fn agree(recipe: &AnyRecipe, model: &AnyModel) -> bool {
    match (recipe, model) {
        (AnyRecipe::Ridge(_), AnyModel::Ridge(_)) => true,
        (AnyRecipe::Logistic(recipe), AnyModel::Logistic(model)) => recipe.settings() == *model.settings(),
        (AnyRecipe::Softmax(recipe), AnyModel::Logistic(model)) => recipe.settings() == *model.settings(),
        (AnyRecipe::MultinomialNb(recipe), AnyModel::MultinomialNb(model)) => recipe == model.settings(),
        (AnyRecipe::GaussianNb(recipe), AnyModel::GaussianNb(model)) => recipe == model.settings(),
        (AnyRecipe::KMeans(recipe), AnyModel::KMeans(model)) => recipe == model.settings(),
        (AnyRecipe::Sisa(recipe), AnyModel::Sisa(model)) => recipe == model.settings(),
        _ => false,
    }
}

fn classes(model: &AnyModel) -> Option<usize> {
    match model {
        AnyModel::MultinomialNb(model) => Some(model.classes()),
        AnyModel::GaussianNb(model) => Some(model.classes()),
        AnyModel::Ridge(_) | AnyModel::Logistic(_) | AnyModel::KMeans(_) | AnyModel::Sisa(_) => None,
    }
}

/// Folds in what waits, so that nothing of a row that is gone stays in the curvature, and takes the state.
pub(crate) fn settle(model: &mut Live, evidence: &mut Evidence) -> Result<State> {
    evidence.refactored |= model.settle()?.refactored;
    model.update_evidence(evidence);
    // From the file, what comes first is all that was there before; a factor was made for this change.
    evidence.precomputed.truncate(1);
    state(model)
}

/// The parameters of a model that can be stored with its sums as they were before `gone` rows left, and whether they
/// are the minimum. None where that would save nothing: a family that keeps no sums, a change that made them anew.
pub(crate) fn quick(model: &Live, gone: usize, evidence: &Evidence) -> Option<(Vec<f64>, bool)> {
    match model {
        Live::Plain(AnyModel::Ridge(model))
            if model.waiting() >= gone && !evidence.resummed && !evidence.refactored =>
        {
            Some(model.quick_state())
        }
        _ => None,
    }
}

/// Whether forgets from this model can be scrubbed later.
pub(crate) fn defers(manifest: &Manifest) -> bool {
    let ridge = matches!(&manifest.model.recipe, AnyRecipe::Ridge(ridge) if ridge.form != Form::Iterative);
    ridge && !in_shards(manifest)
}

/// What is stored of a settled model.
pub(crate) fn state(model: &Live) -> Result<State> {
    let model = match model {
        Live::Shards(model) => return Ok(State::Packed(pack::write(&efface_nn::seal(model)?)?)),
        Live::Plain(model) => model,
    };
    Ok(match model {
        AnyModel::Ridge(model) => State::Ridge(Box::new(model.to_state()?)),
        AnyModel::MultinomialNb(model) => State::Packed(pack::write(model)?),
        AnyModel::GaussianNb(model) => State::Packed(pack::write(model)?),
        AnyModel::KMeans(model) => State::Packed(pack::write(model)?),
        AnyModel::Sisa(model) => State::Packed(pack::write(model)?),
        AnyModel::Logistic(model) => {
            let state = model.to_state()?;
            State::Classifier(pack::write(&state.head)?, Box::new(state))
        }
    })
}

/// Whether the numbers of rows are part of the model, so that a row which gets another number is another row.
pub(crate) fn knows_numbers(manifest: &Manifest) -> bool {
    matches!(manifest.model.recipe, AnyRecipe::KMeans(_) | AnyRecipe::Sisa(_)) || in_shards(manifest)
}

/// What a forget cannot take out of a model.
pub(crate) fn not_covered(manifest: &Manifest, encoder: Option<&Encoder>, scaled: bool) -> Vec<NotCovered> {
    let mut found = manifest.model.not_covered.clone();
    found.extend(encoder.map(Encoder::not_covered).unwrap_or_default());
    found.extend(manifest.network.iter().flat_map(NetworkInfo::not_covered));
    let empty = manifest.blueprint.empty_classes();
    if empty > 0 {
        found.push(NotCovered::EmptyClasses { classes: empty });
    }
    if let Some(waiting) = &manifest.waiting {
        // The words of a network are its encoder's, and a settle leaves those alone.
        found.push(NotCovered::AwaitingSettle { rows: waiting.rows.len(), words: encoder.is_some() });
    }
    if manifest.forgotten > 0 {
        found.push(NotCovered::ForgottenIds);
    }
    if scaled {
        found.push(NotCovered::ColumnUnits);
    }
    // A method and the encoder may report the same thing.
    let mut once: Vec<NotCovered> = Vec::with_capacity(found.len());
    for what in found {
        if !once.contains(&what) {
            once.push(what);
        }
    }
    once
}
