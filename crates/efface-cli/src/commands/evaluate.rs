//! `efface evaluate`: how good a model is on the rows of a file.

use efface::scores::{ClassQuality, QualityScores};
use efface_engine::{MeasuredScores, ScoredRows, UnseenRows};

use super::open;
use crate::cli::EvaluateArguments;
use crate::failure::Result;
use crate::report::{count, number, pairs, table};
use crate::terminal::Terminal;

/// Classes that a terminal shows; --json has them all.
const SHOWN: usize = 20;

pub(crate) fn run(args: &EvaluateArguments, terminal: &Terminal) -> Result {
    let mut engine = terminal.look(&args.model)?;
    args.encoder
        .iter()
        .for_each(|folder| engine.set_encoder(folder));
    let found = engine.evaluate(open(&args.data)?, &terminal.bars())?;
    if terminal.json() {
        return terminal.object(&found);
    }
    if let Some(quality) = &found.quality {
        terminal.result(&page(quality))?;
        warn(quality, "", terminal);
    }
    tell_unknown(&found, terminal);
    Ok(())
}

/// Words and levels that the model has no feature for.
pub(super) fn tell_unknown(found: &ScoredRows, terminal: &Terminal) {
    if found.unknown_names > 0 {
        let names = count(found.unknown_names as usize, "value");
        let were = if found.unknown_names == 1 {
            "was"
        } else {
            "were"
        };
        let count_for = if found.unknown_names == 1 {
            "counts"
        } else {
            "count"
        };
        terminal.note(&format!(
            "{names} in these rows (words, levels or indices) {were} not there at fit and {count_for} for nothing"
        ));
    }
}

/// Says where a constant answer would do better.
pub(super) fn warn(quality: &QualityScores, on: &str, terminal: &Terminal) {
    for worse in quality.worse_than_constant() {
        terminal.warn(&format!("the model is worse than a constant{on}: {worse}"));
    }
}

/// The figures of a fit in one line.
pub(super) fn sentence(measured: &MeasuredScores) -> String {
    format!("{}: {}", rows(measured), figures(&measured.quality))
}

/// Which rows a model was judged by.
pub(super) fn rows(measured: &MeasuredScores) -> String {
    let judged = count(measured.quality.rows, "row");
    match &measured.on {
        UnseenRows::Test => format!("test file, {judged}"),
        UnseenRows::HeldOut { share, .. } => format!("held out {}, {judged}", number(*share)),
        UnseenRows::Folds { folds, .. } => format!("{folds} folds, {judged}"),
        UnseenRows::LeaveOneOut { .. } => format!("leave-one-out, {judged}"),
    }
}

/// The figures of all outputs, each with what the best constant reaches in brackets.
pub(super) fn figures(quality: &QualityScores) -> String {
    if let Some(classes) = &quality.classes {
        let mut words = vec![format!(
            "accuracy {:.4} (commonest class {:.4})",
            classes.accuracy, classes.baseline_accuracy
        )];
        if let (Some(loss), Some(baseline)) = (classes.log_loss, classes.baseline_log_loss) {
            words.push(format!("log-loss {loss:.4} (shares {baseline:.4})"));
        }
        words.extend(classes.auc.map(|auc| format!("AUC {auc:.4}")));
        words.push(format!("mean F1 {:.4}", classes.macro_f1));
        return words.join(", ");
    }
    let several = quality.numbers.len() > 1;
    let outputs = quality.numbers.iter().map(|output| {
        let name = if several {
            format!("{}: ", output.name)
        } else {
            String::new()
        };
        let r2 = output
            .r2
            .map(|r2| format!(", R² {r2:.4}"))
            .unwrap_or_default();
        format!(
            "{name}RMSE {} (mean {}){r2}",
            figure(output.rmse),
            figure(output.baseline_rmse)
        )
    });
    outputs.collect::<Vec<_>>().join("; ")
}

/// An error in the units of the target, which may be of any size.
fn figure(value: f64) -> String {
    if value == 0.0 || (1e-3..1e6).contains(&value) {
        format!("{value:.4}")
    } else {
        format!("{value:.4e}")
    }
}

fn page(quality: &QualityScores) -> String {
    let mut lines = vec![("rows".to_owned(), quality.rows.to_string())];
    if quality.unknown_classes > 0 {
        lines.push((
            "of unknown classes".into(),
            format!("{}, counted as wrong", quality.unknown_classes),
        ));
    }
    if let Some(classes) = &quality.classes {
        let beside =
            |value: f64, baseline: f64, what: &str| format!("{value:.4} ({what} {baseline:.4})");
        lines.push((
            "accuracy".into(),
            beside(
                classes.accuracy,
                classes.baseline_accuracy,
                "commonest class",
            ),
        ));
        if let (Some(loss), Some(baseline)) = (classes.log_loss, classes.baseline_log_loss) {
            lines.push((
                "log-loss".into(),
                beside(loss, baseline, "the classes' shares"),
            ));
        }
        lines.extend(
            classes
                .auc
                .map(|auc| ("AUC".to_owned(), format!("{auc:.4}"))),
        );
        lines.push(("mean F1".into(), format!("{:.4}", classes.macro_f1)));
        return format!("{}\n\n{}", pairs(lines), class_table(classes));
    }
    let outputs = quality.numbers.iter().map(|output| {
        let r2 = output.r2.map_or("–".to_owned(), |r2| format!("{r2:.4}"));
        vec![
            output.name.clone(),
            figure(output.rmse),
            figure(output.baseline_rmse),
            r2,
        ]
    });
    format!(
        "{}\n\n{}",
        pairs(lines),
        table(
            &["output", "RMSE", "RMSE of the mean", "R²"],
            outputs,
            &[1, 2, 3]
        )
    )
}

fn class_table(classes: &ClassQuality) -> String {
    let lines = classes.per_class.iter().take(SHOWN).map(|class| {
        let figures = [class.precision, class.recall, class.f1].map(|value| format!("{value:.4}"));
        [
            vec![class.name.clone(), class.rows.to_string()],
            figures.to_vec(),
        ]
        .concat()
    });
    let mut text = table(
        &["class", "rows", "precision", "recall", "F1"],
        lines,
        &[1, 2, 3, 4],
    );
    if classes.per_class.len() > SHOWN {
        text.push_str(&format!(
            "\nand {} more classes (--json)",
            classes.per_class.len() - SHOWN
        ));
    }
    text
}
