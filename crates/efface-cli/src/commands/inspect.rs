//! `efface inspect`: what a model file holds, without the content of any row.

use efface_engine::{EncoderInfo, ModelSummary, NetworkInfo};

use super::evaluate;
use crate::cli::InspectArguments;
use crate::failure::Result;
use crate::report::{bytes, certificate, count, distance, left_lists, pairs, shortened};
use crate::terminal::Terminal;

pub(crate) fn run(args: &InspectArguments, terminal: &Terminal) -> Result {
    let summary = terminal.look(&args.model)?.summary()?;
    if terminal.json() {
        terminal.object(&summary)
    } else {
        terminal.result(&page(&summary, args.explain))
    }
}

fn page(summary: &ModelSummary, explain: bool) -> String {
    let mut lines = vec![
        (
            "model",
            format!("{}, {}", summary.model, summary.recipe.describe().settings),
        ),
        ("rows", summary.rows.to_string()),
        ("features", features(summary)),
    ];
    if let Some(network) = &summary.network {
        lines.extend(encoder(network));
    }
    if !summary.target.is_empty() {
        lines.push(("target", shortened(&summary.target)));
    }
    match &summary.classes {
        Some(classes) => lines.push(("classes", shortened(classes))),
        None if !summary.recipe.describe().task.has_targets() => {
            lines.push(("clusters", summary.outputs.len().to_string()));
        }
        None => lines.push(("outputs", shortened(&summary.outputs))),
    }
    lines.push((
        "id column",
        summary.id.clone().unwrap_or_else(|| "none".into()),
    ));
    lines.push((
        "subject column",
        match &summary.subject {
            Some(column) => format!("{column} ({})", count(summary.subjects, "subject")),
            None => "none".into(),
        },
    ));
    for measured in &summary.scores {
        lines.push(("scores", evaluate::sentence(measured)));
    }
    if summary.scores.is_empty()
        && summary.generation > 0
        && summary.recipe.describe().task.has_targets()
    {
        lines.push((
            "scores",
            "none of the model as it is now; `efface evaluate` measures".into(),
        ));
    }
    lines.push((
        "distance to retraining",
        match summary.head_bound {
            _ if summary.bound.is_finite() && summary.relative_bound.is_finite() => format!(
                "at most {} (relative {})",
                distance(summary.bound),
                distance(summary.relative_bound)
            ),
            Some(_) => "not known: nothing bounds the encoder".into(),
            None => "not known: nothing bounds what the last change left".into(),
        },
    ));
    if let Some(head) = &summary.head_bound {
        lines.push((
            "distance of the head",
            format!(
                "at most {} (relative {}), on the features of this encoder",
                distance(head.bound),
                distance(head.relative_bound)
            ),
        ));
    }
    if let Some(found) = &summary.certificate {
        lines.push(("certified", certificate(found)));
    }
    lines.push(("forgotten so far", count(summary.forgotten, "row")));
    if let Some(since) = &summary.unscrubbed_since {
        lines.push((
            "not yet scrubbed",
            format!("{} since {since}", count(summary.unscrubbed, "row")),
        ));
    }
    lines.push(("generation", summary.generation.to_string()));
    lines.push(("log", count(summary.receipts as usize, "receipt")));
    // Its name and id; `efface keys` prints all of it.
    let key = summary
        .public_key
        .split('+')
        .take(2)
        .collect::<Vec<_>>()
        .join("+");
    lines.push(("public key", key));
    lines.push((
        "exports",
        format!(
            "{} in use, {} withdrawn",
            summary.exports.0, summary.exports.1
        ),
    ));
    if summary.form.is_some() {
        lines.push(("refactored", count(summary.refactorisations, "time")));
    }
    lines.push((
        "file",
        format!(
            "{}, format {}, efface {}{}",
            bytes(summary.file_bytes),
            summary.format,
            summary.version,
            if summary.encrypted { ", encrypted" } else { "" }
        ),
    ));
    lines.push(("created", summary.created_at.clone()));
    lines.push(("changed", summary.changed_at.clone()));
    lines.extend(left_lists(
        &summary.not_covered,
        &summary.kept_beside,
        explain,
    ));
    pairs(
        lines
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value)),
    )
}

/// The encoder of a network, its words and its training.
fn encoder(network: &NetworkInfo) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    lines.extend(
        network
            .device
            .iter()
            .map(|device| ("device of the fit", device.clone())),
    );
    match &network.encoder {
        EncoderInfo::MiniLm {
            folder,
            fingerprint,
            layers,
        } => {
            let start = fingerprint.get(..12).unwrap_or(fingerprint);
            let about = format!(
                "pretrained, {}, fingerprint {start}…",
                count(*layers, "layer")
            );
            lines.push((
                "encoder",
                format!("{about}, {} tokens a text", network.max_tokens),
            ));
            lines.push(("encoder folder", folder.display().to_string()));
        }
        EncoderInfo::Lstm {
            settings,
            vectors,
            history,
            best_epoch,
            steps,
            ..
        } => {
            let layers = count(settings.layers, "layer");
            let kind = network.kind();
            let pooling = format!("{:?}", settings.pooling).to_lowercase();
            lines.push((
                "encoder",
                format!(
                    "{kind}, {layers} of {}, {pooling} pooling, {} words a text",
                    settings.hidden, network.max_tokens
                ),
            ));
            let origin = if vectors.public {
                "from a file"
            } else {
                "chosen from the texts"
            };
            let trained = if vectors.trained { "trained" } else { "frozen" };
            lines.push((
                "word vectors",
                format!(
                    "{} words of {} numbers, {origin}, {trained}",
                    vectors.words, vectors.width
                ),
            ));
            if let Some(shards) = &network.shards {
                lines.push((
                    "shards",
                    format!(
                        "{} of {}",
                        count(shards.shards, "shard"),
                        count(shards.slices, "slice")
                    ),
                ));
            } else if let (Some(best), Some(last)) = (best_epoch, history.last()) {
                let kept = history
                    .iter()
                    .find(|report| report.epoch == *best)
                    .unwrap_or(last);
                let judged = kept
                    .validation
                    .map(|(_, hits)| format!(", {:.1} % of validation rows", 100.0 * hits));
                lines.push((
                    "training",
                    format!(
                        "{}, {steps} steps; kept epoch {best}: loss {:.4}, {:.1} % of rows{}",
                        count(last.epoch, "epoch"),
                        kept.loss,
                        100.0 * kept.accuracy,
                        judged.unwrap_or_default()
                    ),
                ));
            } else if *steps == 0 {
                lines.push(("training", "none: the encoder is as it was drawn".into()));
            } else {
                lines.push((
                    "training",
                    format!("{steps} steps; its figures went with the rows that left"),
                ));
            }
            if *steps > 0 && network.shards.is_none() {
                let state = if network.state.is_retrained() {
                    "trained on all rows: what it learned of a row stays where only the head forgets"
                } else {
                    "not that of a retraining, see not covered; forget --method retrain trains it anew"
                };
                lines.push(("encoder state", state.into()));
            }
        }
    }
    lines
}

fn features(summary: &ModelSummary) -> String {
    const SHOWN: usize = 8;
    let kind = if summary.sparse { "sparse" } else { "dense" };
    let columns = &summary.feature_columns;
    let mut named: Vec<String> = columns
        .iter()
        .take(SHOWN)
        .map(|(name, kind, width)| format!("{name}: {width} {kind}"))
        .collect();
    if columns.len() > SHOWN {
        named.push(format!("and {} more columns", columns.len() - SHOWN));
    }
    if let Some((words, _)) = &summary.feature_expansion {
        named.push(format!("made into {words}"));
    }
    let detail = if named.is_empty() {
        String::new()
    } else {
        format!(" ({})", named.join(", "))
    };
    format!("{}, {kind}{detail}", summary.features)
}
