//! Linear models and naive Bayes as ONNX: one matrix product, two where densities are normal, and
//! for models with probabilities a softmax after it, for rates an exponential. The input is a row
//! of features as the model is fed with them, in the order of the note `features`; the notes
//! `feature_shift` and `feature_scale` say how numbers become features, and `classes` what the
//! columns of the output stand for. Of a model of classes, `label` is a second output.

use efface::{Family, Recipe};
use efface_nn::onnx::{
    OnnxActivation, OnnxHead, OnnxLinear, OnnxModel, OnnxQuadratic, WeightOrder,
};

use crate::error::{Error, Result};
use crate::operations::report::Parameters;

/// Weights of a line per feature, constants, and what follows.
struct LinearForm {
    weights: Vec<Vec<f64>>,
    constants: Vec<f64>,
    activation: OnnxActivation,
    squares: Option<SquareForm>,
}

/// What features are measured from, and the weights of their squares, a line per feature.
struct SquareForm {
    centre: Vec<f64>,
    weights: Vec<Vec<f64>>,
}

impl LinearForm {
    fn new(weights: Vec<Vec<f64>>, constants: Vec<f64>, activation: OnnxActivation) -> Self {
        Self {
            weights,
            constants,
            activation,
            squares: None,
        }
    }

    fn model(&self, classes: &[String]) -> Result<OnnxModel> {
        let single = |values: &[f64]| {
            values
                .iter()
                .map(|value| *value as f32)
                .collect::<Vec<f32>>()
        };
        let weight = single(&self.weights.concat());
        let bias = single(&self.constants);
        let linear = OnnxLinear {
            weight: &weight,
            bias: &bias,
            inputs: self.weights.len(),
            outputs: bias.len(),
            order: WeightOrder::InputsOutputs,
        };
        let activation = self.activation;
        let model = match &self.squares {
            None => OnnxHead { linear, activation }.labelled(classes),
            Some(SquareForm { centre, weights }) => {
                let centre = single(centre);
                let squares = single(&weights.concat());
                OnnxQuadratic {
                    centre: &centre,
                    squares: &squares,
                    linear,
                    activation,
                }
                .labelled(classes)
            }
        };
        model.map_err(|error| unwritable(&error.to_string()))
    }
}

fn unwritable(error: &str) -> Error {
    let reason = format!("the model cannot be written as ONNX: {error}");
    efface::Error::Unsupported {
        method: "export",
        reason,
    }
    .into()
}

/// The bytes of the file.
pub(super) fn export(parameters: &Parameters, recipe: &Recipe) -> Result<Vec<u8>> {
    let mut model = linear_form(parameters, recipe)?
        .model(parameters.classes.as_deref().unwrap_or_default())?
        .with_note(
            "features",
            &serde_json::json!(parameters.features).to_string(),
        );
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
    model
        .write_to(&mut bytes)
        .map_err(|error| unwritable(&error.to_string()))?;
    Ok(bytes)
}

fn linear_form(parameters: &Parameters, recipe: &Recipe) -> Result<LinearForm> {
    let coefficients = parameters.table("coefficients").to_vec();
    let intercept = parameters.vector("intercept").to_vec();
    let logs = parameters.table("feature_log_prob");
    // A class without rows has the prior 0, and no probability.
    let priors = || {
        parameters
            .vector("class_prior")
            .iter()
            .map(|prior| prior.max(f64::MIN_POSITIVE).ln())
    };
    Ok(match recipe.family() {
        Family::Ridge | Family::LinearSvm => {
            LinearForm::new(coefficients, intercept, OnnxActivation::None)
        }
        Family::Poisson => LinearForm::new(coefficients, intercept, OnnxActivation::Exp),
        // softmax(0, s) is (1 − p, p): a column for each class.
        Family::Logistic => LinearForm::new(
            coefficients.iter().map(|line| vec![0.0, line[0]]).collect(),
            vec![0.0, intercept[0]],
            OnnxActivation::Softmax,
        ),
        Family::Softmax => LinearForm::new(coefficients, intercept, OnnxActivation::Softmax),
        Family::MultinomialNb => {
            LinearForm::new(logs.to_vec(), priors().collect(), OnnxActivation::Softmax)
        }
        Family::ComplementNb => {
            let none = vec![0.0; parameters.vector("class_prior").len()];
            LinearForm::new(logs.to_vec(), none, OnnxActivation::Softmax)
        }
        Family::GaussianNb => normal_densities(
            parameters.table("means"),
            parameters.table("variances"),
            priors().collect(),
        ),
        // A feature is there (1) or not (0). Each that is not adds log(1 − p), which is put into
        // the constant.
        Family::BernoulliNb => {
            let missing = |log: &f64| (-log.exp()).ln_1p();
            let mut constants: Vec<f64> = priors().collect();
            for line in logs {
                constants
                    .iter_mut()
                    .zip(line)
                    .for_each(|(constant, log)| *constant += missing(log));
            }
            let weights = logs
                .iter()
                .map(|line| line.iter().map(|log| log - missing(log)).collect());
            LinearForm::new(weights.collect(), constants, OnnxActivation::Softmax)
        }
        family => {
            let what = format!(
                "onnx is for networks, linear models and naive Bayes, and not for {}",
                family.name()
            );
            return Err(Error::request(what, "use json, safetensors or npz"));
        }
    })
}

/// log p_c − Σ_j ½log(2πv_cj) + (x_j − m_cj)²/(2v_cj) about the middle of the classes' means, where
/// single precision rounds least. Means and variances have a line per feature.
fn normal_densities(
    means: &[Vec<f64>],
    variances: &[Vec<f64>],
    mut constants: Vec<f64>,
) -> LinearForm {
    let mut weights = Vec::with_capacity(means.len());
    let mut squares = SquareForm {
        centre: Vec::with_capacity(means.len()),
        weights: Vec::with_capacity(means.len()),
    };
    for (means, variances) in means.iter().zip(variances) {
        let centre = means.iter().sum::<f64>() / means.len() as f64;
        let variances = variances
            .iter()
            .map(|variance| variance.max(f64::MIN_POSITIVE));
        let pairs: Vec<(f64, f64)> = means
            .iter()
            .map(|mean| mean - centre)
            .zip(variances)
            .collect();
        for (constant, (mean, variance)) in constants.iter_mut().zip(&pairs) {
            *constant -= 0.5 * ((std::f64::consts::TAU * variance).ln() + mean * mean / variance);
        }
        weights.push(
            pairs
                .iter()
                .map(|(mean, variance)| mean / variance)
                .collect(),
        );
        squares
            .weights
            .push(pairs.iter().map(|(_, variance)| -0.5 / variance).collect());
        squares.centre.push(centre);
    }
    LinearForm {
        weights,
        constants,
        activation: OnnxActivation::Softmax,
        squares: Some(squares),
    }
}
