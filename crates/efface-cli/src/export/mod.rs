//! Parameters in the formats of other programs: JSON for anything, safetensors and npz for arrays.
//! The same model gives the same bytes.

mod npy;

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::io::{Cursor, Write};

use efface_engine::Parameters;
use safetensors::tensor::{Dtype, TensorView};
use serde::Serialize;
use serde_json::json;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use crate::failure::{Failure, Result};

/// An object with a line per feature, so that two exports can be compared with `diff`.
pub(crate) fn json(parameters: &Parameters) -> Result<Vec<u8>> {
    let mut out = String::from("{\n");
    let mut field = |name: &str, value: String| out.push_str(&format!("  \"{name}\": {value},\n"));
    field("model", text(&parameters.model)?);
    if let Some(lambda) = parameters.lambda {
        field("lambda", text(&lambda)?);
    }
    field("rows", text(&parameters.rows)?);
    field("outputs", text(&parameters.outputs)?);
    if let Some(classes) = &parameters.classes {
        field("classes", text(classes)?);
    }
    for (name, values) in &parameters.vectors {
        field(name, text(values)?);
    }
    let features = distinct(&parameters.features);
    for (table, (name, lines)) in parameters.tables.iter().enumerate() {
        let comma = if table == 0 { "" } else { ",\n" };
        out.push_str(&format!("{comma}  \"{name}\": {{"));
        for (at, (feature, values)) in features.iter().zip(lines).enumerate() {
            let comma = if at == 0 { "" } else { "," };
            out.push_str(&format!(
                "{comma}\n    {}: {}",
                text(feature)?,
                text(values)?
            ));
        }
        out.push_str("\n  }");
    }
    out.push_str("\n}\n");
    Ok(out.into_bytes())
}

/// A tensor per table (features × outputs) and per list, in f64. The metadata has one entry,
/// `efface`, a JSON object with the names.
pub(crate) fn safetensors(parameters: &Parameters) -> Result<Vec<u8>> {
    let names = json!({
        "model": parameters.model,
        "lambda": parameters.lambda,
        "rows": parameters.rows,
        "outputs": parameters.outputs,
        "classes": parameters.classes,
        "features": parameters.features,
    });
    let metadata = HashMap::from([("efface".to_owned(), names.to_string())]);
    let arrays = arrays(parameters);
    let tensors = arrays
        .iter()
        .map(|(name, shape, bytes)| {
            Ok((
                *name,
                TensorView::new(Dtype::F64, shape.clone(), bytes).map_err(unwritable)?,
            ))
        })
        .collect::<Result<Vec<_>>>()?;
    safetensors::serialize(tensors, Some(metadata)).map_err(unwritable)
}

/// Arrays for `numpy.load`: every table (features × outputs) and list, `features`, `outputs`,
/// `classes` and `lambda` where there are some, and `rows`.
pub(crate) fn npz(parameters: &Parameters) -> Result<Vec<u8>> {
    let numbers = arrays(parameters).into_iter();
    let mut members: Vec<(&str, Vec<u8>)> = numbers
        .map(|(name, shape, bytes)| (name, npy::array("<f8", &shape, &bytes)))
        .collect();
    members.push(("features", npy::strings(&parameters.features)?));
    members.push(("outputs", npy::strings(&parameters.outputs)?));
    members.push((
        "rows",
        npy::array("<i8", &[], &(parameters.rows as i64).to_le_bytes()),
    ));
    if let Some(lambda) = parameters.lambda {
        members.push(("lambda", npy::array("<f8", &[], &lambda.to_le_bytes())));
    }
    if let Some(classes) = &parameters.classes {
        members.push(("classes", npy::strings(classes)?));
    }
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        // A fixed date, so that the bytes depend on the model alone.
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .last_modified_time(DateTime::default())
            .large_file(bytes.len() as u64 >= u64::from(u32::MAX));
        archive
            .start_file(format!("{name}.npy"), options)
            .map_err(unwritable)?;
        archive.write_all(&bytes).map_err(unwritable)?;
    }
    Ok(archive.finish().map_err(unwritable)?.into_inner())
}

fn unwritable(cause: impl Display) -> Failure {
    Failure::internal(format!("the export cannot be written: {cause}"))
        .hint("the json format has no limits of its own: --format json")
}

fn text(value: &(impl Serialize + ?Sized)) -> Result<String> {
    serde_json::to_string(value).map_err(unwritable)
}

fn numbers(values: &[f64]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

/// Every table and list: its name, its shape and its bytes, row after row.
fn arrays(parameters: &Parameters) -> Vec<(&'static str, Vec<usize>, Vec<u8>)> {
    let shape = vec![parameters.features.len(), parameters.outputs.len()];
    let tables = parameters.tables.iter().map(|(name, lines)| {
        (
            *name,
            shape.clone(),
            lines.iter().flat_map(|values| numbers(values)).collect(),
        )
    });
    let lists = parameters
        .vectors
        .iter()
        .map(|(name, values)| (*name, vec![values.len()], numbers(values)));
    tables.chain(lists).collect()
}

/// The names, each once: a numeric column may be called like a level of another, and a JSON object
/// would lose one.
fn distinct(names: &[String]) -> Vec<String> {
    let mut seen: HashSet<String> = HashSet::with_capacity(names.len());
    let fresh = |name: &String| {
        let numbered = (2..).map(|number| format!("{name} ({number})"));
        let free = std::iter::once(name.clone())
            .chain(numbered)
            .find(|name| !seen.contains(name));
        let free = free.unwrap_or_default();
        seen.insert(free.clone());
        free
    };
    names.iter().map(fresh).collect()
}

#[cfg(test)]
mod tests {
    use safetensors::SafeTensors;

    use super::*;

    fn parameters() -> Parameters {
        Parameters {
            model: "ridge".into(),
            lambda: Some(0.5),
            rows: 9,
            outputs: vec!["a".into(), "é".into()],
            classes: None,
            vectors: vec![("intercept", vec![0.1, -2.0])],
            features: vec!["x=\"1\"".into(), "y".into(), "y".into()],
            tables: vec![(
                "coefficients",
                vec![vec![1.0, 2.0], vec![3.0, 1e-300], vec![5.0, 6.0]],
            )],
        }
    }

    #[test]
    fn json_keeps_every_number_and_name() {
        let value: serde_json::Value =
            serde_json::from_slice(&json(&parameters()).unwrap()).unwrap();
        assert_eq!(
            value["coefficients"]["x=\"1\""],
            serde_json::json!([1.0, 2.0])
        );
        assert_eq!(value["coefficients"]["y"][1].as_f64(), Some(1e-300));
        assert_eq!(
            value["coefficients"]["y (2)"],
            serde_json::json!([5.0, 6.0])
        );
        assert_eq!(
            (&value["rows"], &value["outputs"][1]),
            (&serde_json::json!(9), &serde_json::json!("é"))
        );
    }

    #[test]
    fn json_of_no_features_is_json() {
        let none = Parameters {
            features: Vec::new(),
            tables: vec![("coefficients", Vec::new())],
            ..parameters()
        };
        let value: serde_json::Value = serde_json::from_slice(&json(&none).unwrap()).unwrap();
        assert!(value["coefficients"].as_object().unwrap().is_empty());
    }

    #[test]
    fn safetensors_reads_back() {
        let bytes = safetensors(&parameters()).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let tensor = file.tensor("coefficients").unwrap();
        assert_eq!((tensor.dtype(), tensor.shape()), (Dtype::F64, &[3, 2][..]));
        assert_eq!(tensor.data()[8..16], 2.0f64.to_le_bytes());
        let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
        let names = &metadata.metadata().as_ref().unwrap()["efface"];
        assert!(
            names.contains(r#""features":["x=\"1\"","y","y"]"#),
            "{names}"
        );
    }

    #[test]
    fn npz_is_a_zip_of_stored_arrays() {
        let bytes = npz(&parameters()).unwrap();
        let mut archive = zip::ZipArchive::new(Cursor::new(bytes.clone())).unwrap();
        assert_eq!(archive.len(), 6);
        let mut member = archive.by_name("intercept.npy").unwrap();
        let mut array = Vec::new();
        std::io::Read::read_to_end(&mut member, &mut array).unwrap();
        assert!(array.starts_with(b"\x93NUMPY\x01\x00"));
        assert!(array.ends_with(&(-2.0f64).to_le_bytes()));
        assert_eq!(npz(&parameters()).unwrap(), bytes);
    }
}
