//! The first pass of a fit: what the columns are, what the target means, and whether the request
//! fits the file.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use efface::features::{
    Encoder, EncoderBuilder, EncoderOptions, FeatureSteps, MixedColumn, WordSource,
};
use efface::{Hint, Setting};
use efface_io::{SparseRecord, TableRecord};

use super::ReadTicker;
use super::batch::block_bytes;
use super::column_watch::ColumnWatch;
use super::labels::TargetObserver;
use super::table::place;
use crate::codec::blueprint::{Blueprint, LABEL, TargetGoal, layout_of};
use crate::error::{Error, Result};
use crate::file::RowLayout;
use crate::operations::report::Remark;
use crate::operations::request::FitRequest;
use crate::ordered_work;
use crate::progress::Progress;
use crate::randomness::random_bytes;

/// What the first pass found out.
#[derive(Clone)]
pub(crate) struct ObservedColumns {
    pub(crate) blueprint: Blueprint,
    pub(crate) encoder: Option<Encoder>,
    /// What the user should know of the columns.
    pub(crate) remarks: Vec<Remark>,
}

/// Reads the whole file once.
pub(crate) fn observe(request: &FitRequest, progress: &dyn Progress) -> Result<ObservedColumns> {
    check_roles(request)?;
    if let WordSource::Hashed(features) = request.words {
        check_width(request, features)?;
    }
    let observed = if request.source.is_sparse() {
        svmlight(request, progress)
    } else {
        table(request, progress)
    };
    observed.map_err(|error| request.source.located(error))
}

/// Whether the columns that a request names go together with each other and with its model.
pub(crate) fn check_roles(request: &FitRequest) -> Result<()> {
    if !request.model.describe().task.has_targets()
        && (request.classify || !request.positive.is_empty())
    {
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
    let columns = [
        &request.targets,
        &request.text,
        &request.categorical,
        &request.numeric,
        &request.ignore,
    ];
    let roles = [&request.id, &request.subject, &request.weight];
    if request.source.is_sparse() {
        if columns.iter().any(|names| !names.is_empty()) || roles.iter().any(|name| name.is_some())
        {
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
        return Err(Error::Request {
            what: format!("target `{twice}` is named twice"),
            hint: None,
        });
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
            format!(
                "a classifier has one target column, not {}",
                request.targets.len()
            ),
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

/// The columns that hold numbers. Dates are days by then: beside texts, where only columns that are
/// named are features, they are named too.
fn numeric(request: &FitRequest, ignored: &[String]) -> Vec<String> {
    let mut numeric = request.numeric.clone();
    if !request.text.is_empty() {
        let taken = |name: &String| {
            [
                ignored,
                request.text.as_slice(),
                request.categorical.as_slice(),
            ]
            .iter()
            .any(|names| names.contains(name))
        };
        numeric.extend(request.dates.iter().filter(|name| !taken(name)).cloned());
    }
    numeric
}

/// What a pass over a table learns, row by row.
#[derive(Clone)]
pub(super) struct TableObserver {
    builder: EncoderBuilder,
    watch: ColumnWatch,
    /// Columns that nobody named, and that are no features because others were.
    left_out: Vec<String>,
    /// Columns that nobody named, and that hold the index of a pandas frame.
    indices: Vec<String>,
    /// Where each target stands, and what is seen of it.
    targets: Vec<(usize, String, TargetObserver)>,
}

impl TableObserver {
    pub(super) fn new(request: &FitRequest, columns: &[String]) -> Result<Self> {
        let mut ignored = request.targets.clone();
        ignored.extend(
            [&request.id, &request.subject, &request.weight]
                .into_iter()
                .flatten()
                .cloned(),
        );
        ignored.extend(request.ignore.iter().cloned());
        let named = [&request.text, &request.categorical, &request.numeric];
        let named = |name: &String| {
            ignored.contains(name) || named.iter().any(|names| names.contains(name))
        };
        let indices: Vec<String> = columns
            .iter()
            .filter(|name| is_pandas_index(name) && !named(name))
            .cloned()
            .collect();
        ignored.extend(indices.iter().cloned());
        // With texts, only columns that are named are features, and those were meant.
        let watched = if request.text.is_empty() {
            columns
        } else {
            &[]
        };
        let watch = ColumnWatch::new(watched, &ignored);
        let numeric = numeric(request, &ignored);
        let named = [&ignored, &request.text, &request.categorical, &numeric];
        let is_left_out = |name: &&String| {
            !request.text.is_empty() && !named.iter().any(|names| names.contains(name))
        };
        let left_out = columns.iter().filter(is_left_out).cloned().collect();
        let options = EncoderOptions {
            text: request.text.clone(),
            categorical: request.categorical.clone(),
            numeric,
            ignored,
            words: request.words.clone(),
            max_levels: request.max_levels,
            steps: request.steps.clone(),
            // What a column holds decides between two models, and one that counts cannot do with
            // numbers later.
            fixed_kinds: request.model_for_numbers.is_some(),
            shuffled: Some(u64::from_le_bytes(*random_bytes::<8>()?)),
            ..EncoderOptions::default()
        };
        let builder = EncoderBuilder::new(columns, options)?;
        let target = |name: &String| {
            let watch = TargetObserver::new(classify(request), &request.positive);
            Ok((place(name, columns)?, name.clone(), watch))
        };
        let targets = request.targets.iter().map(target).collect::<Result<_>>()?;
        Ok(Self {
            builder,
            watch,
            left_out,
            indices,
            targets,
        })
    }

    pub(super) fn observe(&mut self, record: &TableRecord) -> Result<()> {
        for (at, name, target) in &mut self.targets {
            target.observe(&record.cells[*at], record.line, name)?;
        }
        self.builder.observe(&record.cells, record.line)?;
        self.watch.observe(&record.cells);
        Ok(())
    }

    /// One that has seen no row, for later rows than this one sees; None where that would take too
    /// much memory.
    pub(super) fn fresh(&self) -> Option<Self> {
        let targets = self
            .targets
            .iter()
            .map(|(at, name, watch)| (*at, name.clone(), watch.fresh()));
        Some(Self {
            builder: self.builder.fresh()?,
            watch: self.watch.fresh(),
            left_out: Vec::new(),
            indices: Vec::new(),
            targets: targets.collect(),
        })
    }

    /// Takes in what a fresh one saw of later rows.
    pub(super) fn merge(&mut self, later: Self) -> Result<()> {
        self.builder.merge(later.builder)?;
        self.watch.merge(later.watch);
        let mut merged = self.targets.iter_mut().zip(later.targets);
        if merged.all(|((_, _, watch), (_, _, later))| watch.merge(later)) {
            Ok(())
        } else {
            Err(Error::Classes {
                what: "there are too many classes".into(),
                hint: None,
            })
        }
    }

    /// Takes in so many more rows whose features and targets are known to be finite numbers, and a
    /// watch of all rows. False where that does not say all that has to be known.
    pub(super) fn complete(&mut self, watch: ColumnWatch, more: u64) -> bool {
        self.watch = watch;
        self.builder.observe_numbers(more)
    }

    /// A watch of columns alone, for later rows.
    pub(super) fn fresh_watch(&self) -> ColumnWatch {
        self.watch.fresh()
    }

    pub(super) fn finish(self, request: &FitRequest) -> Result<ObservedColumns> {
        let mixed = self.builder.mixed_columns();
        let encoder = self.builder.finish()?;
        check_width(request, encoder.width() as u64)?;
        let goals = self
            .targets
            .into_iter()
            .map(|(_, name, watch)| watch.finish(&name));
        let mut goals = goals.collect::<Result<Vec<_>>>()?;
        let blueprint = Blueprint {
            targets: request.targets.clone(),
            id: request.id.clone(),
            subject: request.subject.clone(),
            weight: request.weight.clone(),
            dates: request.dates.clone(),
            // Several targets are all numbers, so that any of the goals speaks for all.
            goal: if goals.is_empty() {
                TargetGoal::Nothing
            } else {
                goals.swap_remove(0)
            },
            class_weights: None,
            layout: layout_of(&encoder),
            stored_width: encoder.raw_width(),
            width: encoder.width(),
            first_index: None,
            texts: None,
        };
        let mut remarks = self.watch.finish();
        remarks.extend(mixed.iter().map(mixed_remark));
        remarks.extend(left_out_remark(&self.left_out));
        remarks.extend(self.indices.iter().map(|name| {
            let what = format!("column `{name}` holds the index of a pandas frame and is left out");
            let hint =
                Hint::new("where it names the rows, give it as {}; where it is a feature, as {}")
                    .name(Setting::Id)
                    .name(Setting::Numeric);
            Remark::with_hint(what, hint)
        }));
        Ok(ObservedColumns {
            blueprint,
            encoder: Some(encoder),
            remarks,
        })
    }
}

/// Returns true if a column has the name under which pandas writes an index that has no name.
fn is_pandas_index(name: &str) -> bool {
    name.strip_prefix("__index_level_")
        .and_then(|rest| rest.strip_suffix("__"))
        .is_some_and(|level| !level.is_empty() && level.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns the remark on a column that a few cells keep from being read as numbers. It names the
/// cells by their lines, and of their content only usual words for a missing value.
fn mixed_remark(column: &MixedColumn) -> Remark {
    let MixedColumn {
        name,
        numbers,
        others,
        lines,
        missing_words,
    } = column;
    let cells = if *others == 1 { "cell" } else { "cells" };
    let listed: Vec<String> = lines.iter().map(u64::to_string).collect();
    let more = if *others > lines.len() as u64 {
        ", …"
    } else {
        ""
    };
    let line = if *others == 1 { "line" } else { "lines" };
    let what = format!(
        "column `{name}` holds {numbers} numbers and {others} other {cells}, in {line} {}{more}, so that every value of it became a feature",
        listed.join(", ")
    );
    let hint = if missing_words.is_empty() {
        Hint::new("correct the cells, name words that stand for nothing with {}, or say with {} that values are meant")
            .name(Setting::Missing)
    } else {
        Hint::new("where the cells stand for nothing, add {}; where values are meant, {}")
            .set(Setting::Missing, missing_words.join(","))
    };
    Remark::with_hint(what, hint.set(Setting::Categorical, name.clone()))
}

/// Returns the remark on columns that nobody named beside a text.
fn left_out_remark(columns: &[String]) -> Option<Remark> {
    /// More names than this say no more.
    const MOST_NAMED: usize = 5;
    let first = columns
        .iter()
        .take(MOST_NAMED)
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>();
    let more = match columns.len() - first.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (word, verb) = if columns.len() == 1 {
        ("column", "is")
    } else {
        ("columns", "are")
    };
    (!columns.is_empty()).then(|| {
        let what = format!(
            "{word} {}{more} {verb} not used: beside a text, only columns that are named as numbers or levels are features",
            first.join(", ")
        );
        what.into()
    })
}

fn table(request: &FitRequest, progress: &dyn Progress) -> Result<ObservedColumns> {
    // What is wrong with a table is found row by row, so that the first fault of all is the one
    // that is told.
    if let Ok(Some(observed)) = table_in_blocks(request, progress) {
        return Ok(observed);
    }
    let mut table = request.source.table()?;
    table.read_dates(&request.dates)?;
    let mut observer = TableObserver::new(request, table.columns())?;
    let mut ticker = ReadTicker::start(progress, "reading columns", &request.source);
    let mut record = TableRecord::default();
    while table.read(&mut record)? {
        observer.observe(&record)?;
        ticker.row();
    }
    if ticker.finish() == 0 {
        return Err(request.source.no_rows());
    }
    observer.finish(request)
}

/// The same by several threads, each with blocks of its own. None where the rows cannot be seen
/// that way, or are none.
fn table_in_blocks(
    request: &FitRequest,
    progress: &dyn Progress,
) -> Result<Option<ObservedColumns>> {
    let Some(mut blocks) = request
        .source
        .blocks(block_bytes(request.source.limits().memory))?
    else {
        return Ok(None);
    };
    let observer = TableObserver::new(request, blocks.columns())?;
    let Some(fresh) = observer.fresh() else {
        return Ok(None);
    };
    let mut observer = observer;
    // What all rows so far have settled need not be asked of later ones.
    let newest = Mutex::new(fresh);
    let mut ticker = ReadTicker::start(progress, "reading columns", &request.source);
    ordered_work::in_order(
        ordered_work::usual_threads(),
        || blocks.next().transpose(),
        |block| -> Result<(TableObserver, u64, usize)> {
            let block = block?;
            let mut seen = newest
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            let file = block.file;
            let mut pass = block.pass();
            request.source.bind_choices(&mut pass)?;
            pass.read_dates(&request.dates)?;
            let mut record = TableRecord::default();
            let mut rows = 0;
            while pass.read(&mut record)? {
                seen.observe(&record)?;
                rows += 1;
            }
            Ok((seen, rows, file))
        },
        |seen| {
            let (seen, rows, file) = seen?;
            request.source.come_to(file);
            observer.merge(seen)?;
            if let Some(fresh) = observer.fresh() {
                *newest.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
            }
            ticker.rows(rows);
            Ok::<(), Error>(())
        },
    )?;
    if ticker.finish() == 0 {
        Ok(None)
    } else {
        observer.finish(request).map(Some)
    }
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
            watch.observe(
                &efface::features::Cell::Number(record.target),
                record.line,
                LABEL,
            )?;
        }
        if let (Some(&(first, _)), Some(&(last, _))) =
            (record.entries.first(), record.entries.last())
        {
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
        targets: if supervised {
            vec![LABEL.into()]
        } else {
            Vec::new()
        },
        id: None,
        subject: None,
        weight: None,
        dates: Vec::new(),
        goal: if supervised {
            watch.finish(LABEL)?
        } else {
            TargetGoal::Nothing
        },
        class_weights: None,
        layout: RowLayout::Sparse64,
        stored_width: (most - first) as usize + 1,
        width: (most - first) as usize + 1,
        first_index: Some(first),
        texts: None,
    };
    Ok(ObservedColumns {
        blueprint,
        encoder: None,
        remarks: Vec::new(),
    })
}
