//! `efface export`: the parameters for other programs.

use std::io::Write;

use serde_json::json;

use crate::cli::{ExportArguments, ExportFormat};
use crate::export;
use crate::failure::{Failure, Result};
use crate::output::OutputFile;
use crate::report::{bytes, count};
use crate::terminal::Terminal;

pub(crate) fn run(args: &ExportArguments, terminal: &Terminal) -> Result {
    let path = match (&args.output, args.format) {
        (Some(path), _) if path.as_os_str() == "-" => None,
        (Some(path), _) => Some(path.clone()),
        (None, ExportFormat::Json) => None,
        (None, format) => Some(args.model.with_extension(format.name())),
    };
    let mut out = match &path {
        Some(path) => OutputFile::file(path, &[&args.model], args.force, terminal)?,
        None => OutputFile::stdout(),
    };
    let name = path.as_ref().map(|path| path.display().to_string());
    let mut engine = terminal.change(&args.model)?;
    args.encoder
        .iter()
        .for_each(|folder| engine.set_encoder(folder));
    let exported = if args.expose_forgotten {
        engine.export_exposing_forgotten(args.format.name(), name.as_deref())?
    } else {
        engine.export(args.format.name(), name.as_deref())?
    };
    let parameters = exported.parameters;
    if let Some(warning) = &exported.warning {
        terminal.warn(warning);
    }
    let file = match args.format {
        _ if exported.file.is_some() => exported.file.unwrap_or_default(),
        ExportFormat::Json => export::json(&parameters)?,
        ExportFormat::Safetensors => export::safetensors(&parameters)?,
        ExportFormat::Npz => export::npz(&parameters)?,
        ExportFormat::Onnx => return Err(Failure::internal("the export has no file")),
    };
    out.write_all(&file)
        .map_err(|cause| Failure::file(out.name(), "written", &cause))?;
    out.finish()?;
    let Some(path) = path else { return Ok(()) };
    let features = parameters.features.len();
    if terminal.json() {
        return terminal.object(&json!({
            "output": path.display().to_string(),
            "format": args.format.name(),
            "features": features,
            "outputs": parameters.outputs.len(),
            "bytes": file.len(),
            "number": exported.number,
            "warning": exported.warning,
            "receipt": exported.receipt,
        }));
    }
    let size = bytes(file.len() as u64);
    terminal.message(&format!(
        "exported {}: {} ({size})",
        count(features, "feature"),
        path.display()
    ));
    terminal.note("a later forget does not reach this copy; export again after one");
    Ok(())
}
