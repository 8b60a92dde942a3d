//! Models trained with noise, so that forgetting is certified: what the noise is, and how much
//! error it can hide.
//!
//! **Removal** (Guo et al. 2020): the objective has a term ⟨t, θ⟩ with t ~ N(0, σ²). A model whose
//! gradient over the rows that are left is at most β away from 0 cannot be told from a retrained
//! one, in the sense of (ε, δ), as long as β ≤ σε/√(2 ln(1.5/δ)): that is the budget.
//!
//! **Descent** (Neel et al. 2021): what is published is θ + N(0, σ²), the state θ stays secret.
//! Before publishing, gradient descent on the rows that are left brings θ to within a distance Δ of
//! their optimum, so that it is within 2Δ of where retraining would have ended; the Gaussian
//! mechanism then needs σ = 2Δ/(√2(√(ln(1/δ) + ε) − √ln(1/δ))). A step of length 2/(M + λ) shrinks
//! the distance by (M − λ)/(M + λ), M the smoothness of the loss, which grows with the rows: with a
//! small λ and many rows that is slow, and after some hundred steps the rest is left to training.
//!
//! Noise follows from the seed and the set of rows. Training on other rows draws other noise;
//! training on the same rows again gives the same model, and so reveals nothing more.

use faer::Mat;
use rand_distr::{Distribution, StandardNormal};

use super::pass::{RowSurvey, gram_norm};
use super::sample::RowSample;
use super::settings::{Certifier, ClassifierSettings, Privacy};
use super::train::{TrainingLimits, train};
use super::{BoundLedger, LogisticModel, RowFacts};
use crate::error::{Error, Result};
use crate::evidence::Certificate;
use crate::linalg::norm;
use crate::random::{DrawPurpose, noise_stream, random_word};
use crate::rows::RowId;

impl Privacy {
    /// How much error the noise hides: residual gradient for removal, distance for descent.
    pub(crate) fn budget(&self) -> f64 {
        match self.certifier {
            Certifier::Removal { noise } => {
                // The theorem's own figure rests on a tail bound that is proved for ε up to 1; the
                // other holds for any ε.
                let stated = self.epsilon / (2.0 * (1.5 / self.delta).ln()).sqrt();
                noise * stated.min(std::f64::consts::SQRT_2 * self.root())
            }
            Certifier::Descent { distance } => distance,
        }
    }

    /// √ρ of the Gaussian mechanism that is (ε, δ) by way of ρ-zCDP, ε = ρ + 2√(ρ ln(1/δ)):
    /// √(ln(1/δ) + ε) − √ln(1/δ), without cancellation. It hides a distance of √2·σ·√ρ.
    fn root(&self) -> f64 {
        let log = (1.0 / self.delta).ln();
        self.epsilon / ((log + self.epsilon).sqrt() + log.sqrt())
    }

    /// The standard deviation of the noise.
    pub(crate) fn noise(&self) -> f64 {
        match self.certifier {
            Certifier::Removal { noise } => noise,
            Certifier::Descent { distance } => {
                2.0 * distance / (std::f64::consts::SQRT_2 * self.root())
            }
        }
    }
}

fn gaussian(seed: u64, stream: u64, deviation: f64, width: usize, outputs: usize) -> Mat<f64> {
    let mut rng = noise_stream(seed, stream);
    Mat::from_fn(width, outputs, |_, _| {
        let value: f64 = StandardNormal.sample(&mut rng);
        deviation * value
    })
}

/// What noise is drawn for: a sum over the ids of the rows, so that it does not depend on their
/// order and follows a row that comes or goes.
pub(crate) fn fingerprint(ids: impl Iterator<Item = RowId>) -> u64 {
    ids.map(|id| random_word(id.0, DrawPurpose::Noise, id.0, 0))
        .fold(0, u64::wrapping_add)
}

/// The noise in the objective, where there is some, for the rows of this fingerprint.
pub(crate) fn tilt(
    settings: &ClassifierSettings,
    rows: u64,
    width: usize,
    outputs: usize,
) -> Option<Mat<f64>> {
    let privacy = settings.logistic.privacy?;
    match privacy.certifier {
        Certifier::Removal { noise } => Some(gaussian(privacy.seed, rows, noise, width, outputs)),
        Certifier::Descent { .. } => None,
    }
}

/// Whether the model hides its parameters behind noise.
pub(crate) fn descends(settings: &ClassifierSettings) -> bool {
    matches!(
        settings.logistic.privacy,
        Some(Privacy {
            certifier: Certifier::Descent { .. },
            ..
        })
    )
}

/// After so many steps gradient descent is given up for training, which leads to the same place.
/// What is certified is the distance at the end, not the way there.
const MOST_STEPS: usize = 500;

/// Gradient descent on these rows from the current parameters, down to the promised distance, and
/// then new noise on what is published. Returns the model with the steps and passes it took.
pub(crate) fn descend(
    mut model: LogisticModel,
    sample: &RowSample<'_>,
    survey: &RowSurvey,
) -> Result<(LogisticModel, usize, usize)> {
    let Some(privacy) = model.settings.logistic.privacy else {
        return Err(Error::Damaged(
            "a model without noise cannot descend".into(),
        ));
    };
    let lambda = model.settings.logistic.lambda;
    let width = model.theta.nrows();
    let largest = gram_norm(sample, model.frame())?;
    let smooth = lambda + 0.25 * largest.min(survey.trace);
    let limits = TrainingLimits {
        keep: false,
        ..model.limits(&RowFacts::of(survey))
    };
    let theta = model.theta.clone();
    let (place, steps, passes) = {
        let objective = model.objective(sample);
        let mut place = objective.at(theta)?;
        // Half the distance is left to rounding.
        let goal = 0.5 * privacy.budget() * lambda;
        let mut steps = 0;
        while norm(&place.gradient) > goal && steps < MOST_STEPS {
            let next = &place.theta - &place.gradient * faer::Scale(2.0 / (smooth + lambda));
            place = objective.at(next)?;
            steps += 1;
        }
        if norm(&place.gradient) > goal {
            let trained = train(&objective, place.theta, None, limits)?;
            (
                trained.place,
                steps + trained.iterations,
                steps + trained.passes,
            )
        } else {
            (place, steps, steps + 1)
        }
    };
    model.theta = place.theta;
    model.rows = sample.shape.rows;
    model.class_rows = survey.class_rows.clone();
    model.facts = RowFacts::of(survey);
    model.facts.inverse_norm = 1.0 / lambda;
    model.ledger = BoundLedger::measured(place.gradient, model.hidden(&model.facts, &model.theta));
    model.noise_rows = model.row_set;
    let outputs = model.theta.ncols();
    model.veil = Some(gaussian(
        privacy.seed,
        model.noise_rows,
        privacy.noise(),
        width,
        outputs,
    ));
    check_start(&model)?;
    Ok((model, steps, passes))
}

/// The state of the account, for the evidence.
pub(crate) fn certificate(model: &LogisticModel) -> Option<Certificate> {
    let privacy = model.settings.logistic.privacy?;
    let budget = privacy.budget();
    let (unit, used, secret) = match privacy.certifier {
        Certifier::Removal { .. } => (
            "residual gradient",
            model.ledger.gradient(),
            "the noise in the objective is secret: it is kept with the model, and whoever holds the file can take it away",
        ),
        Certifier::Descent { .. } => (
            "distance",
            model.ledger.gradient() / model.settings.logistic.lambda,
            "only the published parameters leave: the state behind them is kept with the model and is not covered",
        ),
    };
    Some(Certificate {
        epsilon: privacy.epsilon,
        delta: privacy.delta,
        noise: privacy.noise(),
        unit: unit.into(),
        budget,
        used,
        left: (budget - used).max(0.0),
        retrained: false,
        adaptive: false,
        assumptions: vec![
            "every row is scaled to a norm of at most 1, the constant included, in fit and in prediction"
                .into(),
            "labels are two classes; every parameter is penalised".into(),
            secret.into(),
            "requests do not depend on published parameters: an adaptive requester is not covered".into(),
        ],
    })
}

/// Refuses noise so small that training alone passes the budget.
pub(crate) fn check_start(model: &LogisticModel) -> Result<()> {
    let Some(certificate) = certificate(model) else {
        return Ok(());
    };
    if certificate.used <= certificate.budget {
        return Ok(());
    }
    Err(Error::Parameter {
        name: "epsilon",
        value: certificate.epsilon.to_string(),
        range: "larger, or more noise: at this ε and δ the noise hides less than the error of training",
    })
}
