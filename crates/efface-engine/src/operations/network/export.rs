//! A network for other programs: encoder and head in one file.

use efface_nn::onnx;

use crate::codec::text_encoder::TextEncoder;
use crate::error::{Error, Result};
use crate::operations::report::Parameters;

/// The bytes of an export in which the encoder comes along; None for a format that has the head
/// alone.
pub(crate) fn export(
    stage: &TextEncoder,
    parameters: &Parameters,
    format: &str,
) -> Result<Option<Vec<u8>>> {
    let table = parameters.table("coefficients");
    let intercept = parameters.vector("intercept");
    match (format, stage) {
        ("safetensors", TextEncoder::Lstm(backbone)) => {
            let about = serde_json::json!({
                "model": parameters.model,
                "lambda": parameters.lambda,
                "rows": parameters.rows,
                "outputs": parameters.outputs,
                "classes": parameters.classes,
            });
            Ok(Some(backbone.export(table, intercept, &about)?))
        }
        ("onnx", stage) => {
            let weight: Vec<f32> = table.iter().flatten().map(|value| *value as f32).collect();
            let bias: Vec<f32> = intercept.iter().map(|value| *value as f32).collect();
            let head = onnx::OnnxHead {
                linear: onnx::OnnxLinear {
                    weight: &weight,
                    bias: &bias,
                    inputs: table.len(),
                    outputs: bias.len(),
                    order: onnx::WeightOrder::InputsOutputs,
                },
                activation: onnx::OnnxActivation::None,
            };
            let model = match stage {
                TextEncoder::Lstm(backbone) => backbone.to_onnx(Some(head)).model(),
                TextEncoder::MiniLm(encoder) => encoder.to_onnx().model(Some(&head)),
                TextEncoder::Words(_) => {
                    return Err(Error::request("shards cannot be exported", "use predict"));
                }
            };
            let unwritable = |error: String| {
                let reason = format!("the network cannot be written as ONNX: {error}");
                Error::from(efface::Error::Unsupported {
                    method: "export",
                    reason,
                })
            };
            let mut model = model.map_err(|error| unwritable(error.to_string()))?;
            if let Some(classes) = &parameters.classes {
                model = model.with_note("classes", &serde_json::json!(classes).to_string());
            }
            if let TextEncoder::Lstm(backbone) = stage {
                // Without them nobody knows which token is which.
                model = model.with_note("words", &backbone.embedding().words().join("\n"));
            }
            let mut bytes = Vec::new();
            model
                .write_to(&mut bytes)
                .map_err(|error| unwritable(error.to_string()))?;
            Ok(Some(bytes))
        }
        _ => Ok(None),
    }
}
