//! How good a model is that was just fitted, on rows that it did not see.

use std::collections::HashSet;
use std::path::Path;

use efface::scores::{QualityScores, ScoreTally};
use efface_io::TableRecord;

use super::ingest::RowNames;
use super::naming::output_names;
use super::prepare::prepare;
use super::prepared::PreparedModel;
use super::request::{FitRequest, ScoringPlan};
use super::row_choice::{DrawnRows, RowChoice};
use super::row_source::RowSource;
use super::scorer::Scorer;
use crate::codec::blueprint::text;
use crate::codec::feature_rows::features;
use crate::codec::manifest::{MeasuredScores, UnseenRows};
use crate::error::{Error, Result};
use crate::progress::Progress;

/// The most folds: each is a fit.
const MOST_FOLDS: usize = 100;

/// The request without the rows that are held out.
pub(crate) fn training_request(request: &FitRequest) -> Result<FitRequest> {
    let mut training = request.clone();
    let Some(plan) = &request.scoring else {
        return Ok(training);
    };
    if !request.model.describe().task.has_targets() {
        return Err(Error::request(
            "clusters have no target that they could be judged by",
            "leave out the rows to judge by",
        ));
    }
    match plan {
        ScoringPlan::Test(rows) => check_test_rows(request, rows)?,
        ScoringPlan::HoldOut { share, .. } if !(*share > 0.0 && *share < 1.0) => {
            let value = share.to_string();
            return Err(efface::Error::Parameter {
                name: "holdout",
                value,
                range: "above 0 and below 1",
            }
            .into());
        }
        ScoringPlan::HoldOut { share, seed } => {
            let held = drawn(request, *seed, 0.0, *share);
            training.source = request.source.chosen(RowChoice::Drawn(held.others()));
        }
        ScoringPlan::CrossValidation { folds, .. } if !(2..=MOST_FOLDS).contains(folds) => {
            let value = folds.to_string();
            return Err(efface::Error::Parameter {
                name: "cv",
                value,
                range: "2 to 100 folds",
            }
            .into());
        }
        ScoringPlan::CrossValidation { .. } if request.network.is_some() => {
            return Err(Error::request(
                "every fold would train a network anew",
                "hold rows out, or give a file of rows to test on",
            ));
        }
        ScoringPlan::CrossValidation { .. } => {}
    }
    Ok(training)
}

/// Refuses test rows that the model is fitted on, because their figures would flatter it. Rows are
/// the same if they have the same id, or, without ids, if they are read from the same file under
/// the same condition.
fn check_test_rows(request: &FitRequest, test: &RowSource) -> Result<()> {
    let shared = match &request.id {
        Some(id) => {
            let mut tested = HashSet::new();
            each_id(test, id, &mut |id| {
                tested.insert(id);
            })?;
            let mut shared = 0;
            if !tested.is_empty() {
                each_id(&request.source, id, &mut |id| {
                    shared += usize::from(tested.contains(&id));
                })?;
            }
            (shared > 0).then(|| {
                format!(
                    "{shared} of the {} test rows are rows that the model is fitted on, by their ids",
                    tested.len()
                )
            })
        }
        None if test.reads_rows_of(&request.source) => Some(
            "the test rows are rows that the model is fitted on: both are read from the same file"
                .into(),
        ),
        None => None,
    };
    match shared {
        Some(what) => Err(Error::request(
            what,
            "test on rows that the model does not see, or hold a share of the rows out",
        )),
        None => Ok(()),
    }
}

/// Shows the id of every row that has one.
fn each_id(rows: &RowSource, column: &str, see: &mut dyn FnMut(String)) -> Result<()> {
    let mut table = rows.table()?;
    let Some(at) = table.columns().iter().position(|name| name == column) else {
        return Ok(());
    };
    let mut record = TableRecord::default();
    while table
        .read(&mut record)
        .map_err(|error| rows.located(error))?
    {
        text(&record.cells[at]).into_iter().for_each(&mut *see);
    }
    Ok(())
}

/// The rows whose places lie in a range.
fn drawn(request: &FitRequest, seed: u64, from: f64, to: f64) -> DrawnRows {
    DrawnRows {
        column: request.id.clone(),
        seed,
        from,
        to,
        inside: true,
    }
}

/// Measures a model as the request asks, and by leave-one-out where that is a closed form.
pub(crate) fn measure(
    request: &FitRequest,
    prepared: &PreparedModel,
    path: &Path,
    progress: &dyn Progress,
) -> Result<Vec<MeasuredScores>> {
    let mut found = Vec::new();
    match &request.scoring {
        None => {}
        Some(ScoringPlan::Test(rows)) => {
            let quality = judged(prepared, rows, path, progress)?;
            found.push(MeasuredScores {
                on: UnseenRows::Test,
                quality,
            });
        }
        Some(ScoringPlan::HoldOut { share, seed }) => {
            let held = request
                .source
                .chosen(RowChoice::Drawn(drawn(request, *seed, 0.0, *share)));
            let quality = judged(prepared, &held, path, progress)?;
            found.push(MeasuredScores {
                on: UnseenRows::HeldOut {
                    share: *share,
                    seed: *seed,
                },
                quality,
            });
        }
        Some(ScoringPlan::CrossValidation { folds, seed }) => {
            let quality = cross_validated(request, *folds, *seed, path, progress)?;
            found.push(MeasuredScores {
                on: UnseenRows::Folds {
                    folds: *folds,
                    seed: *seed,
                },
                quality,
            });
        }
    }
    found.extend(left_out(prepared)?);
    Ok(found)
}

/// The names of rows that judge a model and do not train it; None where there are none.
pub(crate) fn judging_names(
    request: &FitRequest,
    prepared: &PreparedModel,
    path: &Path,
    progress: &dyn Progress,
) -> Result<Option<RowNames>> {
    let rows = match &request.scoring {
        Some(ScoringPlan::Test(rows)) => rows.clone(),
        Some(ScoringPlan::HoldOut { share, seed }) => request
            .source
            .chosen(RowChoice::Drawn(drawn(request, *seed, 0.0, *share))),
        Some(ScoringPlan::CrossValidation { .. }) | None => return Ok(None),
    };
    Scorer::of_prepared(prepared, path)?
        .names(&rows, progress)
        .map(Some)
}

/// The scores of a model on rows, which must have some.
fn judged(
    prepared: &PreparedModel,
    rows: &RowSource,
    path: &Path,
    progress: &dyn Progress,
) -> Result<QualityScores> {
    let found = Scorer::of_prepared(prepared, path)?.evaluate(rows, progress)?;
    found.quality.ok_or_else(|| rows.no_rows())
}

/// Every fold is judged by a model that was fitted on the others, from the choice of features on.
fn cross_validated(
    request: &FitRequest,
    folds: usize,
    seed: u64,
    path: &Path,
    progress: &dyn Progress,
) -> Result<QualityScores> {
    let mut all = Vec::with_capacity(folds);
    for fold in 0..folds {
        let edge = |fold: usize| fold as f64 / folds as f64;
        let unseen = drawn(request, seed, edge(fold), edge(fold + 1));
        let mut part = request.clone();
        part.scoring = None;
        part.source = request.source.chosen(RowChoice::Drawn(unseen.others()));
        let prepared = prepare(&part, progress)?;
        let rows = request.source.chosen(RowChoice::Drawn(unseen));
        match judged(&prepared, &rows, path, progress) {
            // Few rows in many folds leave some of them empty.
            Err(Error::NoRows { .. } | Error::NothingChosen { .. }) => {}
            quality => all.push(quality?),
        }
    }
    QualityScores::mean_of(&all).ok_or_else(|| request.source.no_rows())
}

/// Leave-one-out. An encoder that was trained on the rows has seen them all, so that there its
/// answers would flatter.
fn left_out(prepared: &PreparedModel) -> Result<Option<MeasuredScores>> {
    let PreparedModel {
        blueprint,
        encoder,
        recipe,
        model,
        rows,
        backbone,
        ..
    } = prepared;
    if backbone.is_some() || !recipe.has_leave_one_out() {
        return Ok(None);
    }
    let seen = features(rows, encoder.as_ref(), blueprint)?;
    let Some(answers) = model.leave_one_out(&seen) else {
        return Ok(None);
    };
    let mut tally = match blueprint.classes() {
        Some(classes) => ScoreTally::classes(model.scores(), classes),
        None => ScoreTally::numbers(model.scores(), &output_names(blueprint, recipe)),
    };
    for row in &answers {
        if let Some(view) = seen.get(row.id) {
            tally.push(&row.answers, view.targets);
        }
    }
    let on = UnseenRows::LeaveOneOut {
        rows: answers.len(),
    };
    Ok(tally.finish().map(|quality| MeasuredScores { on, quality }))
}
