//! `efface fit`: from a data file to a model file.

mod choice;
mod device;
mod features;
mod network;

use std::path::{Path, PathBuf};

use efface::features::WordSource;
use efface::{Family, Form};
use efface_engine::files::{PRIVATE_MODE, PlannedOutput, check_outputs, key_path};
use efface_engine::{
    ClassShards, EncoderChoice, EncoderInfo, FitReport, FitRequest, KeyAccess, ModelSummary,
    RowSource, ScoringPlan,
};
use efface_io::Compression;

use super::change::missed;
use super::{evaluate, matching, open, open_file};
use crate::cli::{FitArguments, ModelName, OverwriteArguments, PenaltyValue, ScoringArguments};
use crate::failure::{Failure, Result};
use crate::flags::flag;
use crate::list;
use crate::report::{bytes, count, number, seconds, shortened};
use crate::terminal::Terminal;

pub(crate) fn run(args: FitArguments, terminal: &Terminal) -> Result {
    let output = output(&args)?;
    let replaces = args.overwriting.replace.is_some();
    if !replaces {
        check(&args, &output)?;
        check_log(&args.overwriting, &output, terminal)?;
    }
    let force = args.overwriting.force;
    let asked = args.settings.device;
    let mut request = request(args)?;
    let device = device::FitDevice::open(asked, terminal);
    request.gram_engine = device.engine();
    request.network_device = device.network_device();
    request.mode = terminal.mode();
    request.access = terminal.access().clone();
    let bars = terminal.bars();
    let trains = request.network.as_ref().is_some_and(|network| {
        matches!(network.encoder, EncoderChoice::Lstm { .. }) && request.sharding.is_none()
    });
    if trains {
        bars.listen()?;
    }
    let report = if replaces {
        efface_engine::refit(&request, &output, &bars)?
    } else {
        efface_engine::fit(&request, &output, force, &bars)?
    };
    drop(bars);
    if let Some(dropped) = &report.dropped {
        terminal.warn(dropped);
    }
    for remark in &report.remarks {
        terminal.warn(&remark.worded(flag));
    }
    device.tell(terminal);
    // A fit that missed its tolerance is done, and ends with a code that says so.
    let ended = match report.tolerance.filter(|_| report.tolerance_missed) {
        Some(tolerance) => Err(Failure::tolerance_missed(missed(
            report.summary.relative_bound,
            tolerance,
        ))),
        None => Ok(()),
    };
    if terminal.json() {
        terminal.object(&report)?;
        return ended;
    }
    terminal.message(&sentence(&report, &output));
    tell_cost(&report, terminal);
    tell_scores(&report.summary, terminal);
    tell_shards(&report.shards_by_class, terminal);
    if report.carried > 0 {
        let rows = count(report.carried as usize, "row");
        terminal.note(&format!(
            "{rows} that the replaced model had forgotten must not come back to this one either"
        ));
    }
    if replaces {
        let receipts = count(report.summary.receipts as usize, "receipt");
        terminal.note(&format!(
            "its log goes on, with {receipts}, under the key that it had"
        ));
    } else {
        let key = key_path(&output);
        terminal.note(&format!(
            "its signing key is {}; without it the model cannot change",
            key.display()
        ));
    }
    if let Some(EncoderInfo::Lstm {
        interrupted: true,
        best_epoch,
        ..
    }) = report
        .summary
        .network
        .as_ref()
        .map(|network| &network.encoder)
    {
        let kept = best_epoch.map_or("the last step".into(), |epoch| format!("epoch {epoch}"));
        terminal.note(&format!(
            "the training was stopped; the best so far, {kept}, was kept"
        ));
        if let Some(path) = request
            .network
            .as_ref()
            .and_then(|network| network.checkpoint.as_ref())
        {
            terminal.note(&format!(
                "{} can be gone on from; no forget reaches it: remove it if you will not",
                path.display()
            ));
        }
    }
    if report.cut > 0 {
        let most = report
            .summary
            .network
            .as_ref()
            .map_or(0, |network| network.max_tokens);
        let texts = count(report.cut as usize, "text");
        terminal.note(&format!(
            "only the first {most} tokens are read of {texts} (--max-tokens)"
        ));
    }
    if report.summary.id.is_none() {
        terminal.note("without --id rows are named by their position in the file: 0, 1, 2, …");
    }
    ended
}

/// Refuses to overwrite a model, and its log with it, unless that is said.
fn check_log(overwriting: &OverwriteArguments, output: &Path, terminal: &Terminal) -> Result {
    if !overwriting.force || overwriting.discard_log || !output.exists() {
        return Ok(());
    }
    // What cannot be read as a model has no log to lose; whether it may be overwritten is judged
    // elsewhere.
    let Ok(summary) = terminal
        .look(output)
        .and_then(|engine| Ok(engine.summary()?))
    else {
        return Ok(());
    };
    let receipts = count(summary.receipts as usize, "receipt");
    let forgotten = count(summary.forgotten, "forgotten row");
    let what = format!(
        "{} holds a log of {receipts} and {forgotten}; a new fit over it ends the log and removes the key that signs it",
        output.display()
    );
    let hint = format!(
        "--replace {} keeps both; --discard-log gives them up",
        output.display()
    );
    Err(Failure::refused(what).hint(hint))
}

/// Judges the files that the fit will write, now and not after a long fit: model, key and
/// checkpoint, beside those that it reads.
fn check(args: &FitArguments, output: &Path) -> Result {
    let checkpoint = args
        .network
        .checkpoint
        .as_deref()
        .map(PlannedOutput::resumed);
    let recovery = args.recovery_key.as_deref().map(PlannedOutput::file);
    let outputs: Vec<PlannedOutput<'_>> = std::iter::once(PlannedOutput::model(output))
        .chain(checkpoint)
        .chain(recovery)
        .collect();
    let network = &args.network;
    let read = [
        &args.vocab_file,
        &network.embeddings,
        &network.embedding_words,
    ];
    let data = args.data.expanded()?;
    let inputs: Vec<&Path> = read
        .into_iter()
        .flatten()
        .chain(&data)
        .chain(&args.scoring.test)
        .map(PathBuf::as_path)
        .collect();
    Ok(check_outputs(&outputs, &inputs, args.overwriting.force)?)
}

fn request(args: FitArguments) -> Result<FitRequest> {
    let words = words(&args)?;
    let steps = features::steps(&args)?;
    let source = open(&args.data)?;
    let sharding = choice::sharding(&args);
    let (model, model_for_numbers) = choice::choose(&args)?;
    let class_weight = choice::class_weight(&args.class_weight)?;
    let network = network::choose(&args)?;
    let scoring = scoring(&args)?;
    if args.targets.is_empty() && !source.is_sparse() && args.model != ModelName::KMeans {
        let names = source
            .columns()?
            .iter()
            .take(20)
            .map(|n| format!("`{n}`"))
            .collect::<Vec<_>>();
        let failure = Failure::usage("no target: the column to predict is not named");
        return Err(failure.hint(format!(
            "name it with --target; the table has {}",
            names.join(", ")
        )));
    }
    Ok(FitRequest {
        drop_suppressed: args.overwriting.drop_suppressed,
        source,
        targets: args.targets,
        text: args.text,
        categorical: args.categorical,
        numeric: args.numeric,
        dates: args.dates,
        ignore: args.ignore,
        id: args.id,
        subject: args.subject,
        weight: args.weight,
        words,
        max_levels: args.max_levels,
        steps,
        classify: args.classify || !args.positive.is_empty() || class_weight.is_some(),
        positive: args.positive,
        class_weight,
        model,
        model_for_numbers,
        scoring,
        choose_penalty: args.settings.lambda == Some(PenaltyValue::Auto),
        sharding,
        network,
        mode: PRIVATE_MODE,
        access: KeyAccess::default(),
        recovery_key: args.recovery_key,
        encrypt: args.encrypt,
        gram_engine: None,
        network_device: None,
    })
}

/// Says where a forget will have to go through the rows, because nothing is kept that would spare
/// it that.
fn tell_cost(report: &FitReport, terminal: &Terminal) {
    let summary = &report.summary;
    let is_linear = matches!(
        summary.recipe.family(),
        Family::Ridge | Family::Logistic | Family::Softmax
    );
    let passes = summary.form.map_or(report.precomputed.is_empty(), |form| {
        form == Form::Iterative
    });
    if is_linear && passes && summary.certificate.is_none() {
        let features = count(summary.features, "feature");
        let rows = count(summary.rows, "row");
        terminal.note(&format!(
            "no curvature is kept for {features}: a forget goes through all {rows}, several times, and takes a good part of \
             the time of this fit"
        ));
    }
}

/// Prints in how many shards each class has rows, as a warning if not all shards have all classes.
fn tell_shards(classes: &[ClassShards], terminal: &Terminal) {
    let lacking: Vec<String> = classes
        .iter()
        .filter(|class| class.shards < class.of)
        .map(|ClassShards { class, shards, of }| format!("`{class}` in {shards} of {of}"))
        .collect();
    if let (Some(first), true) = (classes.first(), lacking.is_empty()) {
        terminal.note(&format!(
            "all {} have rows of every class",
            count(first.of, "shard")
        ));
    } else if !lacking.is_empty() {
        terminal.warn(&format!(
            "not every shard has rows of every class: {}; a shard cannot vote for a class that it lacks, and fewer shards lack \
             fewer",
            shortened(&lacking)
        ));
    }
}

/// How good the model is, and how its penalty was chosen.
fn tell_scores(summary: &ModelSummary, terminal: &Terminal) {
    if let Some(choice) = &summary.penalty {
        let how = choice
            .folds
            .map_or("leave-one-out".to_owned(), |folds| format!("{folds} folds"));
        let end = if choice.is_at_the_end() {
            "; the end of the range, try others by hand"
        } else {
            ""
        };
        let lambda = number(choice.lambda);
        terminal.message(&format!(
            "λ = {lambda} has the least {} by {how}{end}",
            choice.measure
        ));
    }
    for measured in &summary.scores {
        terminal.message(&evaluate::sentence(measured));
        evaluate::warn(
            &measured.quality,
            &format!(" ({})", evaluate::rows(measured)),
            terminal,
        );
    }
}

/// How the model is to be judged.
fn scoring(args: &FitArguments) -> Result<Option<ScoringPlan>> {
    let seed = args.settings.seed.unwrap_or(0);
    let ScoringArguments { test, holdout, cv } = &args.scoring;
    if let Some(file) = test {
        let rows = RowSource::from(open_file(file, &args.data)?);
        return Ok(Some(ScoringPlan::Test(matching(rows, &args.data))));
    }
    let held_out = holdout.map(|share| ScoringPlan::HoldOut { share, seed });
    Ok(held_out.or(cv.map(|folds| ScoringPlan::CrossValidation { folds, seed })))
}

fn words(args: &FitArguments) -> Result<WordSource> {
    Ok(match (args.hash, args.vocab, &args.vocab_file) {
        (Some(buckets), _, _) => WordSource::Hashed(buckets),
        (_, Some(most), _) => WordSource::Learned(most),
        (_, _, Some(path)) => {
            let words = list::read(path)?;
            WordSource::Supplied(words.iter().map(|word| word.trim().to_owned()).collect())
        }
        _ => WordSource::default(),
    })
}

/// Where the model goes: next to the data unless said otherwise.
fn output(args: &FitArguments) -> Result<PathBuf> {
    match (
        args.output.as_ref().or(args.overwriting.replace.as_ref()),
        args.data.named(),
    ) {
        (Some(path), _) => Ok(path.clone()),
        (None, Some(file)) => Ok(beside(file)),
        (None, None) => {
            let what = "standard input and patterns have no name for the model to take";
            Err(Failure::usage(what).hint("add -o FILE"))
        }
    }
}

/// `reviews.csv.gz` becomes `reviews.efface`.
fn beside(file: &Path) -> PathBuf {
    let packed = Compression::of_path(file) != Compression::None;
    let name = if packed {
        file.with_extension("")
    } else {
        file.to_owned()
    };
    name.with_extension("efface")
}

fn sentence(report: &FitReport, output: &Path) -> String {
    let summary = &report.summary;
    format!(
        "fitted {} on {} with {} and {}, {}: {} ({}); {}",
        summary.model,
        count(summary.rows, "row"),
        count(summary.features, "feature"),
        count(summary.outputs.len(), outputs(summary)),
        summary.recipe.describe().settings,
        output.display(),
        bytes(summary.file_bytes),
        seconds(report.seconds),
    )
}

/// What to call the things that rows are scored against.
fn outputs(summary: &ModelSummary) -> &'static str {
    if !summary.recipe.describe().task.has_targets() {
        "cluster"
    } else if summary.classes.is_some() && summary.outputs.len() > 1 {
        "class"
    } else {
        "output"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_named_after_its_data() {
        for (data, model) in [
            ("a/reviews.csv", "a/reviews.efface"),
            ("r.jsonl.gz", "r.efface"),
            ("v1.2.tsv", "v1.2.efface"),
        ] {
            assert_eq!(beside(Path::new(data)), Path::new(model));
        }
    }
}
