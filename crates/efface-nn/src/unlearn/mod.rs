//! Forgetting by training a network further: the methods that today's literature compares with
//! retraining.
//!
//! | method | what a step minimises | from |
//! |---|---|---|
//! | `fine_tune` | the loss of the retained rows | the baseline of Golatkar et al. 2020 |
//! | `neggrad_plus` | α · retained loss − (1 − α) · forgotten loss | Kurmanji et al. 2023 |
//! | `scrub` | nearness to the old network on retained rows, distance from it on forgotten ones | Kurmanji et al. 2023 |
//!
//! All of them start from the trained encoder and the linear head that it was trained with, step by
//! AdamW on minibatches like the fit, at a constant rate, and keep the last state. Then the
//! retained rows are encoded anew and the network's own head (squared loss or cross-entropy) is
//! fitted to its optimum on them, as after a retraining, so that its curvature is that of its
//! features. The loss of the steps is the cross-entropy that the encoder was trained with,
//! whichever head the network has.
//!
//! **What they guarantee: nothing.** The claim is `approximate` and the bound infinite: no theorem
//! says how far the result is from a network that never saw the rows. They are here to be compared
//! with; `retrain` and `sisa` are for forgetting.
//!
//! An encoder that was drawn and never trained holds nothing of the rows, and a pretrained one
//! never saw them: both are refused, because the head forgets there exactly.

mod fine_tune;
mod neggrad_plus;
mod relearn;
mod scrub;

use std::collections::HashSet;

use efface::methods::{FineTune, NegGradPlus, Scrub};
use efface::{Evidence, Method, RowId, RowStore, Rows};

use crate::backbone::Backbone;
use crate::encoder_state::EncoderState;
use crate::error::{Error, Result};
use crate::head::evidence_at_optimum;
use crate::recipe::TrainedNetwork;
use crate::texts::{TrainingTexts, words_in};
use crate::train::{StepObjective, TrainSettings, TrainingProgress};

/// A network that was trained further.
#[derive(Debug, Clone)]
pub struct TunedNetwork {
    /// The network, the features of the retained rows, and the steps that were made.
    pub trained: TrainedNetwork,
    /// The record of the request.
    pub evidence: Evidence,
}

/// Passes over the retained rows; 0 for a method that does not train a network further.
pub fn further_epochs(method: &Method) -> usize {
    match method {
        Method::FineTune(FineTune { epochs, .. })
        | Method::NegGradPlus(NegGradPlus { epochs, .. })
        | Method::Scrub(Scrub { epochs, .. }) => *epochs,
        _ => 0,
    }
}

/// The rate of AdamW with which a method trains a network of this training further.
pub fn further_rate(method: &Method, training: &TrainSettings) -> f64 {
    let fit = f64::from(training.learning_rate);
    match method {
        Method::FineTune(settings) => settings.learning_rate.unwrap_or(fit),
        // Ascent has no minimum to settle in, so that it takes smaller steps.
        Method::NegGradPlus(NegGradPlus { learning_rate, .. })
        | Method::Scrub(Scrub { learning_rate, .. }) => learning_rate.unwrap_or(fit * 0.25),
        _ => fit,
    }
}

/// The network of an encoder without the rows `gone` of `texts`, which holds all rows as word ids,
/// by a method that trains it further. On an error the encoder is as it was. With no row to forget
/// no step is made.
pub fn train_further(
    method: &Method,
    backbone: &Backbone,
    texts: &Rows,
    gone: &[RowId],
    progress: &mut dyn TrainingProgress,
) -> Result<TunedNetwork> {
    let refuse = |reason: &str| {
        Err(efface::Error::Unsupported {
            method: method.name(),
            reason: reason.into(),
        }
        .into())
    };
    method.check()?;
    texts.check(gone)?;
    if gone.len() >= texts.len() {
        return Err(efface::Error::NothingLeft {
            gone: gone.len(),
            rows: texts.len(),
        }
        .into());
    }
    if backbone.steps == 0 {
        return refuse(
            "the encoder was never trained, so that it holds nothing of the rows: the head forgets them by exact or \
             retrain_head",
        );
    }
    let out: HashSet<RowId> = gone.iter().copied().collect();
    let retained = texts.filter(|id| !out.contains(&id));
    let unused = backbone.embedding().unused(&words_in(&retained)?);
    let mut recipe = backbone.recipe.clone();
    recipe.remove_names(&unused);
    let backbone = &backbone.with_training_head(texts)?;
    let mut lessons = TrainingTexts::read(&retained, &recipe.embedding)?;
    let kept = lessons.texts.len();
    lessons.append(&texts.filter(|id| out.contains(&id)), &recipe.embedding)?;
    let settings = step_settings(method, &recipe.training, gone.is_empty());
    let sides = LessonSides {
        retained: (0..kept).collect(),
        forgotten: (kept..lessons.texts.len()).collect(),
    };
    let objective: Box<dyn StepObjective> = match method {
        Method::FineTune(_) => Box::new(fine_tune::RetainedLoss(sides)),
        Method::NegGradPlus(settings) => Box::new(neggrad_plus::SignedLoss {
            settings: *settings,
            sides,
        }),
        Method::Scrub(settings) => Box::new(scrub::DistillationObjective::new(
            *settings, sides, backbone, &lessons,
        )),
        _ => {
            return refuse(
                "it does not train a network further; use fine_tune, neggrad_plus or scrub",
            );
        }
    };
    let mut trained = recipe
        .train_on(
            backbone,
            &retained,
            &lessons,
            settings,
            Some(objective),
            progress,
        )
        .map_err(too_far)?;
    // Steps that read the forgotten rows move the vectors of words that these rows alone hold.
    let after = &mut trained.network.backbone;
    after.reset_vectors(&unused);
    after.state = EncoderState {
        trained_further: backbone.state.trained_further || !gone.is_empty(),
        ..backbone.state
    };
    let evidence = further_evidence(method, &trained, gone.len(), settings.learning_rate)?;
    Ok(TunedNetwork { trained, evidence })
}

/// The settings of the steps: the fit's batches, clipping, decay, seed and threads, at a constant
/// rate.
fn step_settings(method: &Method, fit: &TrainSettings, is_idle: bool) -> TrainSettings {
    TrainSettings {
        epochs: if is_idle { 0 } else { further_epochs(method) },
        learning_rate: further_rate(method, fit) as f32,
        warmup: 0.0,
        final_rate: 1.0,
        validation: 0.0,
        ..*fit
    }
}

fn further_evidence(
    method: &Method,
    trained: &TrainedNetwork,
    forgotten: usize,
    rate: f32,
) -> Result<Evidence> {
    let TrainedNetwork {
        network,
        encoded,
        checkpoint,
        ..
    } = trained;
    let mut evidence = evidence_at_optimum(&network.head);
    evidence.method = method.name().into();
    evidence.reason = Some(format!(
        "{} epochs, a constant rate of {rate:e}",
        checkpoint.epoch
    ));
    evidence.forgotten = forgotten;
    let taken = if let Method::FineTune(_) = method {
        0
    } else {
        forgotten
    };
    evidence.rows_read = if forgotten == 0 {
        0
    } else {
        encoded.len() + taken
    };
    evidence.iterations = checkpoint.step as usize;
    evidence.refactored = true;
    evidence.precomputed.clear();
    // A method that aims at no distance has no tolerance to miss.
    evidence.tolerance = None;
    evidence.limit_to_head();
    network.backbone().describe(&mut evidence);
    Ok(evidence)
}

/// A fit whose loss overflowed can be resumed from its last state; a forget has no state to go back
/// to but the old network.
fn too_far(error: Error) -> Error {
    match error {
        Error::Diverged {
            step,
            epoch,
            what,
            value,
            ..
        } => Error::Overshot {
            step,
            epoch,
            what,
            value,
            cap: f64::from(f32::MAX),
        },
        other => other,
    }
}

/// The rows of both kinds, by their place among the lessons.
struct LessonSides {
    retained: Vec<usize>,
    forgotten: Vec<usize>,
}
