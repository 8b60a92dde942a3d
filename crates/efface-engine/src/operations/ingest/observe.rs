//! The first pass of a fit: what the columns are, what the target means, and whether the request fits the file.

use std::collections::HashSet;

use efface::features::{Encoder, EncoderBuilder, EncoderOptions, FeatureSteps, WordSource};
use efface::{Hint, Setting};
use efface_io::{SparseRecord, TableRecord};

use super::ReadTicker;
use super::column_watch::ColumnWatch;
use super::labels::TargetObserver;
use super::table::place;
use crate::codec::blueprint::{Blueprint, LABEL, TargetGoal, layout_of};
use crate::error::{Error, Result};
use crate::file::RowLayout;
use crate::operations::request::FitRequest;
use crate::progress::Progress;
use crate::randomness::random_bytes;

/// What the first pass found out.
#[derive(Clone)]
pub(crate) struct ObservedColumns {
    pub(crate) blueprint: Blueprint,
    pub(crate) encoder: Option<Encoder>,
    /// What the user should know of the columns.
    pub(crate) remarks: Vec<String>,
}

/// Reads the whole file once.
pub(crate) fn observe(request: &FitRequest, progress: &dyn Progress) -> Result<ObservedColumns> {
    check(request)?;
    if let WordSource::Hashed(features) = request.words {
        check_width(request, features)?;
    }
    let observed =
        if request.source.is_sparse() { svmlight(request, progress) } else { table(request, progress) };
    observed.map_err(|error| request.source.located(error))
}

fn check(request: &FitRequest) -> Result<()> {
    if !request.model.describe().task.has_targets() && (request.classify || !request.positive.is_empty()) {
        return Err(Error::request(
            "k-means has no classes: it finds clusters by itself",
            Hint::new("leave out {}").name(Setting::Classify),
        ));
    }
    if !request.model.describe().task.has_targets() && !request.targets.is_empty() {
        return Err(Error::request(
            "k-means has no target: it clusters features alone",
            Hint::new("leave out {}, and name columns that must not count with {}")
                .name(Setting::Target)
                .name(Setting::Ignore),
        ));
    }
    if !request.model.describe().task.has_targets() && request.steps.target_means.is_some() {
        return Err(Error::request(
            "mean targets of levels are features, and k-means has no target",
            "name the columns as categories instead",
        ));
    }
    let columns = [&request.targets, &request.text, &request.categorical, &request.numeric, &request.ignore];
    let roles = [&request.id, &request.subject, &request.weight];
    if request.source.is_sparse() {
        if columns.iter().any(|names| !names.is_empty()) || roles.iter().any(|name| name.is_some()) {
            return Err(Error::request(
                "svmlight lines have no columns: the label is the target, rows are named by position",
                "leave out the options that name columns",
            ));
        }
        if request.steps != FeatureSteps::default() {
            return Err(Error::request(
                "svmlight lines have no columns to scale, to fill or to read words from",
                "leave out the steps, or scale the values before they are written",
            ));
        }
        return Ok(());
    }
    if !request.model.describe().task.has_targets() {
        return Ok(());
    }
    if request.targets.is_empty() {
        return Err(Error::request(
            "no target column is named",
            Hint::new("name the column to predict with {}").name(Setting::Target),
        ));
    }
    let mut seen = HashSet::new();
    if let Some(twice) = request.targets.iter().find(|name| !seen.insert(*name)) {
        return Err(Error::Request { what: format!("target `{twice}` is named twice"), hint: None });
    }
    if let Some(name) = roles.into_iter().flatten().find(|name| seen.contains(name)) {
        return Err(Error::Request {
            what: format!(
                "column `{name}` is the target and cannot be the id, the subject or the weight too"
            ),
            hint: None,
        });
    }
    if request.targets.len() > 1 && (classify(request) || !request.positive.is_empty()) {
        return Err(Error::request(
            format!("a classifier has one target column, not {}", request.targets.len()),
            "fit one classifier per target",
        ));
    }
    Ok(())
}

/// Refuses more features than a model should have, before any memory is asked for them.
fn check_width(request: &FitRequest, features: u64) -> Result<()> {
    let limit = request.source.limits().features;
    if features <= u64::from(limit) {
        return Ok(());
    }
    Err(Error::request(
        format!("{features} features are more than the {limit} that are accepted"),
        "hash into fewer, or raise the limit on columns",
    ))
}

/// Whether target values are classes, said or implied.
fn classify(request: &FitRequest) -> bool {
    request.classify || request.model.describe().task.classifies()
}

fn table(request: &FitRequest, progress: &dyn Progress) -> Result<ObservedColumns> {
    let mut table = request.source.table()?;
    table.read_dates(&request.dates)?;
    let columns = table.columns().to_vec();
    let mut ignored = request.targets.clone();
    ignored.extend([&request.id, &request.subject, &request.weight].into_iter().flatten().cloned());
    ignored.extend(request.ignore.iter().cloned());
    // With texts, only columns that are named are features, and those were meant.
    let watched = if request.text.is_empty() { columns.as_slice() } else { &[] };
    let mut watch = ColumnWatch::new(watched, &ignored);
    let options = EncoderOptions {
        ignored,
        text: request.text.clone(),
        categorical: request.categorical.clone(),
        numeric: request.numeric.clone(),
        words: request.words.clone(),
        max_levels: request.max_levels,
        steps: request.steps.clone(),
        // What a column holds decides between two models, and one that counts cannot do with numbers later.
        fixed_kinds: request.model_for_numbers.is_some(),
        shuffled: Some(u64::from_le_bytes(*random_bytes::<8>()?)),
        ..EncoderOptions::default()
    };
    let mut builder = EncoderBuilder::new(&columns, options)?;
    let targets = request
        .targets
        .iter()
        .map(|name| {
            Ok((place(name, &columns)?, name, TargetObserver::new(classify(request), &request.positive)))
        })
        .collect::<Result<Vec<_>>>()?;
    let mut targets = targets;
    let mut ticker = ReadTicker::start(progress, "reading columns", &request.source);
    let mut record = TableRecord::default();
    while table.read(&mut record)? {
        for (at, name, target) in &mut targets {
            target.observe(&record.cells[*at], record.line, name)?;
        }
        builder.observe(&record.cells, record.line)?;
        watch.observe(&record.cells);
        ticker.row();
    }
    if ticker.finish() == 0 {
        return Err(request.source.no_rows());
    }
    let encoder = builder.finish()?;
    check_width(request, encoder.width() as u64)?;
    let mut goals =
        targets.into_iter().map(|(_, name, watch)| watch.finish(name)).collect::<Result<Vec<_>>>()?;
    let blueprint = Blueprint {
        targets: request.targets.clone(),
        id: request.id.clone(),
        subject: request.subject.clone(),
        weight: request.weight.clone(),
        dates: request.dates.clone(),
        // Several targets are all numbers, so that any of the goals speaks for all.
        goal: if goals.is_empty() { TargetGoal::Nothing } else { goals.swap_remove(0) },
        class_weights: None,
        layout: layout_of(&encoder),
        stored_width: encoder.raw_width(),
        width: encoder.width(),
        first_index: None,
        texts: None,
    };
    Ok(ObservedColumns { blueprint, encoder: Some(encoder), remarks: watch.finish() })
}

fn svmlight(request: &FitRequest, progress: &dyn Progress) -> Result<ObservedColumns> {
    // Labels of a file to cluster are read past.
    let supervised = request.model.describe().task.has_targets();
    let mut watch = TargetObserver::new(classify(request), &request.positive);
    let mut indices: Option<(u32, u32)> = None;
    let mut table = request.source.sparse()?;
    let mut ticker = ReadTicker::start(progress, "reading indices", &request.source);
    let mut record = SparseRecord::default();
    while table.read(&mut record)? {
        if supervised {
            watch.observe(&efface::features::Cell::Number(record.target), record.line, LABEL)?;
        }
        if let (Some(&(first, _)), Some(&(last, _))) = (record.entries.first(), record.entries.last()) {
            let (least, most) = indices.unwrap_or((first, last));
            indices = Some((least.min(first), most.max(last)));
        }
        ticker.row();
    }
    if ticker.finish() == 0 {
        return Err(request.source.no_rows());
    }
    let Some((least, most)) = indices else {
        return Err(efface::features::FeatureError::NoFeatures.into());
    };
    let first = least.min(1);
    let blueprint = Blueprint {
        targets: if supervised { vec![LABEL.into()] } else { Vec::new() },
        id: None,
        subject: None,
        weight: None,
        dates: Vec::new(),
        goal: if supervised { watch.finish(LABEL)? } else { TargetGoal::Nothing },
        class_weights: None,
        layout: RowLayout::Sparse64,
        stored_width: (most - first) as usize + 1,
        width: (most - first) as usize + 1,
        first_index: Some(first),
        texts: None,
    };
    Ok(ObservedColumns { blueprint, encoder: None, remarks: Vec::new() })
}
