//! `efface predict`: the scores of a file's rows, as CSV or JSON lines, while they are computed.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use efface_engine::{Error, ModelSummary, Prediction, ScoredRows};
use efface_report::spreadsheet_text;
use serde_json::{Map, Value, json};

use super::{evaluate, open};
use crate::cli::PredictArguments;
use crate::failure::Result;
use crate::output::OutputFile;
use crate::report::count;
use crate::terminal::Terminal;

pub(crate) fn run(args: &PredictArguments, terminal: &Terminal) -> Result {
    let output = args.output.as_ref().filter(|path| path.as_os_str() != "-");
    let mut out = match output {
        Some(path) => {
            let data = args.data.expanded()?;
            let inputs: Vec<&Path> = std::iter::once(&args.model)
                .chain(&data)
                .map(PathBuf::as_path)
                .collect();
            OutputFile::file(path, &inputs, args.force, terminal)?
        }
        None => OutputFile::stdout(),
    };
    let mut engine = terminal.look(&args.model)?;
    args.encoder
        .iter()
        .for_each(|folder| engine.set_encoder(folder));
    let summary = engine.summary()?;
    let source = open(&args.data)?;
    let name = PathBuf::from(out.name());
    let mut writer = PredictionWriter {
        summary: &summary,
        csv: !terminal.json(),
        begun: false,
    };
    let found = engine.predict(source, &mut |prediction| {
        writer
            .write(&mut out, &prediction)
            .map_err(|cause| Error::io(&name, cause))
    })?;
    out.finish()?;
    if let Some(path) = output {
        let path = path.display().to_string();
        if terminal.json() {
            let ScoredRows {
                rows,
                quality,
                unknown_names,
            } = found;
            return terminal.object(
                &json!({ "rows": rows, "output": path, "quality": quality, "unknown_names": unknown_names }),
            );
        }
        terminal.message(&format!(
            "predicted {}: {path}",
            count(found.rows as usize, "row")
        ));
    }
    if !terminal.json() {
        if let Some(quality) = &found.quality {
            terminal.message(&format!(
                "{}: {}",
                count(quality.rows, "row"),
                evaluate::figures(quality)
            ));
        }
        evaluate::tell_unknown(&found, terminal);
    }
    Ok(())
}

/// A number with all its digits, and without hundreds of zeros: a class that no row has any more
/// has the least of all scores.
fn digits(value: f64) -> String {
    if value == 0.0 || (1e-17..1e17).contains(&value.abs()) {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}

/// Predictions as lines of text.
struct PredictionWriter<'a> {
    summary: &'a ModelSummary,
    csv: bool,
    begun: bool,
}

impl PredictionWriter<'_> {
    fn write(&mut self, out: &mut impl Write, prediction: &Prediction) -> io::Result<()> {
        if !self.csv {
            return writeln!(out, "{}", self.object(prediction));
        }
        if !std::mem::replace(&mut self.begun, true) {
            record(
                out,
                self.header(prediction)
                    .iter()
                    .map(|name| spreadsheet_text(name)),
            )?;
        }
        let name = prediction
            .id
            .as_deref()
            .map_or_else(|| prediction.position.to_string(), spreadsheet_text);
        let label = prediction.label.as_deref().map(spreadsheet_text);
        let scores = prediction
            .scores
            .iter()
            .chain(self.probabilities(prediction))
            .map(|value| digits(*value));
        record(out, std::iter::once(name).chain(label).chain(scores))
    }

    fn clusters(&self) -> bool {
        !self.summary.recipe.describe().task.has_targets()
    }

    /// Of two classes, the probability of the second: the other is the rest.
    fn probabilities<'p>(&self, prediction: &'p Prediction) -> &'p [f64] {
        match prediction.probabilities.as_deref() {
            Some([_, second]) => std::slice::from_ref(second),
            Some(all) => all,
            None => &[],
        }
    }

    /// Rows without an id are known by their position in the file, as a model without ids knows its
    /// rows. One score needs no name of its own.
    fn header(&self, first: &Prediction) -> Vec<String> {
        let ids = first.id.is_some();
        let ModelSummary {
            outputs, classes, ..
        } = self.summary;
        let mut names = vec![if ids { "id" } else { "position" }.to_owned()];
        if self.clusters() {
            names.push("cluster".into());
            names.extend(outputs.iter().map(|name| format!("distance {name}")));
            return names;
        }
        match (classes, outputs.as_slice()) {
            (Some(_), [_]) => names.extend(["prediction".into(), "score".into()]),
            (Some(_), many) => {
                names.push("prediction".into());
                names.extend(many.iter().map(|name| format!("score {name}")));
            }
            (None, [_]) => names.push("prediction".into()),
            (None, many) => names.extend(many.iter().map(|name| format!("prediction {name}"))),
        }
        match (self.probabilities(first), classes) {
            ([], _) | (_, None) => {}
            ([_], Some(classes)) => {
                names.extend(classes.last().map(|name| format!("probability {name}")))
            }
            (_, Some(classes)) => {
                names.extend(classes.iter().map(|name| format!("probability {name}")))
            }
        }
        names
    }

    fn object(&self, prediction: &Prediction) -> Value {
        let mut object = Map::new();
        object.insert("id".into(), json!(prediction.id));
        object.insert("position".into(), json!(prediction.position));
        object.insert("line".into(), json!(prediction.line));
        let scores: Map<String, Value> = self
            .summary
            .outputs
            .iter()
            .cloned()
            .zip(prediction.scores.iter().map(|s| json!(s)))
            .collect();
        match (&prediction.label, prediction.scores.as_slice()) {
            (Some(label), distances) if self.clusters() => {
                object.insert("cluster".into(), json!(label.parse::<usize>().ok()));
                object.insert("distances".into(), json!(distances));
            }
            (Some(label), _) => {
                object.insert("prediction".into(), json!(label));
                object.insert("scores".into(), Value::Object(scores));
            }
            (None, [score]) => {
                object.insert("prediction".into(), json!(score));
            }
            (None, _) => {
                object.insert("prediction".into(), Value::Object(scores));
            }
        }
        if let (Some(classes), Some(shares)) = (&self.summary.classes, &prediction.probabilities) {
            let shares: Map<String, Value> = classes
                .iter()
                .cloned()
                .zip(shares.iter().map(|share| json!(share)))
                .collect();
            object.insert("probabilities".into(), Value::Object(shares));
        }
        Value::Object(object)
    }
}

/// One line of CSV, quoted where it must be.
fn record(out: &mut impl Write, fields: impl IntoIterator<Item = String>) -> io::Result<()> {
    let mut line = csv::Writer::from_writer(Vec::new());
    line.write_record(fields)?;
    let line = line.into_inner().map_err(|error| error.into_error())?;
    out.write_all(&line)
}
