//! Linear models and naive Bayes of counts as ONNX: one matrix product, and for models with probabilities a softmax after it.
//! The input is a row of features as the model is fed with them, in the order of the note `features`; the notes `feature_shift` and
//! `feature_scale` say how numbers become features, and `classes` what the columns of the output stand for.

use efface::{Family, Recipe};
use efface_nn::onnx::{OnnxActivation, OnnxHead, OnnxLinear, WeightOrder};

use crate::error::{Error, Result};
use crate::operations::report::Parameters;

/// Weights of a line per feature, constants, and what follows.
struct LinearForm {
    weights: Vec<Vec<f64>>,
    constants: Vec<f64>,
    activation: OnnxActivation,
}

/// The bytes of the file.
pub(super) fn export(parameters: &Parameters, recipe: &Recipe) -> Result<Vec<u8>> {
    let LinearForm { weights, constants, activation } = linear_form(parameters, recipe)?;
    let weight: Vec<f32> = weights.iter().flatten().map(|value| *value as f32).collect();
    let bias: Vec<f32> = constants.iter().map(|value| *value as f32).collect();
    let linear = OnnxLinear {
        weight: &weight,
        bias: &bias,
        inputs: weights.len(),
        outputs: bias.len(),
        order: WeightOrder::InputsOutputs,
    };
    let unwritable = |error: String| {
        let reason = format!("the model cannot be written as ONNX: {error}");
        Error::from(efface::Error::Unsupported { method: "export", reason })
    };
    let model = OnnxHead { linear, activation }.model().map_err(|error| unwritable(error.to_string()))?;
    let mut model = model.with_note("features", &serde_json::json!(parameters.features).to_string());
    if let Some(classes) = &parameters.classes {
        model = model.with_note("classes", &serde_json::json!(classes).to_string());
    }
    for name in ["feature_shift", "feature_scale"] {
        let values = parameters.vector(name);
        if !values.is_empty() {
            model = model.with_note(name, &serde_json::json!(values).to_string());
        }
    }
    let mut bytes = Vec::new();
    model.write_to(&mut bytes).map_err(|error| unwritable(error.to_string()))?;
    Ok(bytes)
}

fn linear_form(parameters: &Parameters, recipe: &Recipe) -> Result<LinearForm> {
    let coefficients = parameters.table("coefficients").to_vec();
    let intercept = parameters.vector("intercept").to_vec();
    let logs = parameters.table("feature_log_prob");
    // A class without rows has the prior 0, and no probability.
    let priors = || parameters.vector("class_prior").iter().map(|prior| prior.max(f64::MIN_POSITIVE).ln());
    Ok(match recipe.family() {
        Family::Ridge | Family::LinearSvm => {
            LinearForm { weights: coefficients, constants: intercept, activation: OnnxActivation::None }
        }
        // softmax(0, s) is (1 − p, p): a column for each class.
        Family::Logistic => LinearForm {
            weights: coefficients.iter().map(|line| vec![0.0, line[0]]).collect(),
            constants: vec![0.0, intercept[0]],
            activation: OnnxActivation::Softmax,
        },
        Family::Softmax => {
            LinearForm { weights: coefficients, constants: intercept, activation: OnnxActivation::Softmax }
        }
        Family::MultinomialNb => LinearForm {
            weights: logs.to_vec(),
            constants: priors().collect(),
            activation: OnnxActivation::Softmax,
        },
        Family::ComplementNb => LinearForm {
            weights: logs.to_vec(),
            constants: vec![0.0; parameters.vector("class_prior").len()],
            activation: OnnxActivation::Softmax,
        },
        // A feature is there (1) or not (0). Each that is not adds log(1 − p), which is put into the constant.
        Family::BernoulliNb => {
            let missing = |log: &f64| (-log.exp()).ln_1p();
            let mut constants: Vec<f64> = priors().collect();
            for line in logs {
                constants.iter_mut().zip(line).for_each(|(constant, log)| *constant += missing(log));
            }
            LinearForm {
                weights: logs
                    .iter()
                    .map(|line| line.iter().map(|log| log - missing(log)).collect())
                    .collect(),
                constants,
                activation: OnnxActivation::Softmax,
            }
        }
        family => {
            let what = format!(
                "onnx is for networks, models that are linear in their features and naive Bayes of counts, and not for {}",
                family.name()
            );
            return Err(Error::request(what, "use json, safetensors or npz"));
        }
    })
}
