//! Rows of a table whose texts go to an encoder: the ids of their words, in their order.

use efface::features::{Cell, FeatureSteps, VocabularyLearner};
use efface::{Hint, Setting};
use efface_io::TableRecord;

use super::labels::TargetObserver;
use super::table::{ColumnRoles, RowIdentity, place};
use super::{EncodedExample, ExampleContent, ReadPurpose, ReadTicker};
use crate::codec::blueprint::{Blueprint, TextColumns};
use crate::codec::text_encoder::TextEncoder;
use crate::error::{Error, Result};
use crate::file::RowLayout;
use crate::operations::request::FitRequest;
use crate::operations::row_source::RowSource;
use crate::progress::Progress;

/// The text of one row: its columns, one after the other. A cell of nothing is no text.
fn joined(cells: &[Cell], places: &[usize], out: &mut String) {
    out.clear();
    for &at in places {
        if !out.is_empty() {
            out.push(' ');
        }
        match &cells[at] {
            Cell::Missing => {}
            Cell::Text(text) => out.push_str(text),
            Cell::Number(value) => out.push_str(&value.to_string()),
        }
    }
}

fn places(texts: &TextColumns, columns: &[String]) -> Result<Vec<usize>> {
    texts
        .columns
        .iter()
        .map(|name| place(name, columns))
        .collect()
}

/// The first pass of a fit: the classes, and the commonest words where `most` asks for them. The
/// width and layout of the rows are known once the encoder is.
pub(crate) fn observe(
    request: &FitRequest,
    max_tokens: usize,
    most: Option<usize>,
    progress: &dyn Progress,
) -> Result<(Blueprint, Vec<String>)> {
    check(request)?;
    let texts = TextColumns {
        columns: request.text.clone(),
        max_tokens,
    };
    let mut table = request.source.table()?;
    let columns = table.columns().to_vec();
    let places = places(&texts, &columns)?;
    let target = request.targets.first().cloned().unwrap_or_default();
    let at = place(&target, &columns)?;
    let mut watch = TargetObserver::new(true, &request.positive);
    let mut learner = most.map(|_| VocabularyLearner::default());
    let mut ticker = ReadTicker::start(progress, "reading columns", &request.source);
    let mut record = TableRecord::default();
    let mut text = String::new();
    while table.read(&mut record)? {
        watch.observe(&record.cells[at], record.line, &target)?;
        if let Some(learner) = &mut learner {
            joined(&record.cells, &places, &mut text);
            learner.observe(&text)?;
        }
        ticker.row();
    }
    if ticker.finish() == 0 {
        return Err(request.source.no_rows());
    }
    let words = match (learner, most) {
        (Some(learner), Some(most)) => {
            let vocabulary = learner.finish(most)?;
            (0..vocabulary.len() as u32)
                .filter_map(|at| vocabulary.word(at))
                .map(str::to_owned)
                .collect()
        }
        _ => Vec::new(),
    };
    let blueprint = Blueprint {
        targets: request.targets.clone(),
        id: request.id.clone(),
        subject: request.subject.clone(),
        weight: request.weight.clone(),
        dates: Vec::new(),
        goal: watch.finish(&target)?,
        class_weights: None,
        layout: RowLayout::WordIds,
        stored_width: max_tokens,
        width: max_tokens,
        first_index: None,
        texts: Some(texts),
    };
    Ok((blueprint, words))
}

fn check(request: &FitRequest) -> Result<()> {
    if request.source.is_sparse() {
        return Err(Error::request(
            "a network reads texts, and svmlight lines have none",
            "give a table with a text column",
        ));
    }
    if request.text.is_empty() {
        return Err(Error::request(
            "a network reads texts, and no column is named",
            Hint::new("name it with {}").name(Setting::Text),
        ));
    }
    if !request.categorical.is_empty() || !request.numeric.is_empty() {
        return Err(Error::request(
            "a network reads texts alone",
            Hint::new("leave out {} and {}; other columns are not read")
                .name(Setting::Categorical)
                .name(Setting::Numeric),
        ));
    }
    if request.steps != FeatureSteps::default() {
        return Err(Error::request(
            "a network reads the words of texts by itself: there is nothing to scale, to fill or to weigh",
            "leave out the steps between columns and features",
        ));
    }
    let mut seen: Vec<&String> = Vec::new();
    let roles = [&request.id, &request.subject, &request.weight]
        .into_iter()
        .flatten();
    for name in request.targets.iter().chain(&request.text).chain(roles) {
        if seen.contains(&name) {
            return Err(Error::Request {
                what: format!("column `{name}` is named twice"),
                hint: None,
            });
        }
        seen.push(name);
    }
    Ok(())
}

/// See [`super::each`].
pub(super) fn each(
    source: &RowSource,
    blueprint: &Blueprint,
    encoder: &TextEncoder,
    purpose: ReadPurpose,
    progress: &dyn Progress,
    see: &mut dyn FnMut(EncodedExample<'_>) -> Result<()>,
) -> Result<u64> {
    let Some(texts) = &blueprint.texts else {
        return Err(efface::Error::Damaged("a network without texts".into()).into());
    };
    let mut table = source.table()?;
    let columns = table.columns().to_vec();
    let places = places(texts, &columns)?;
    let roles = ColumnRoles::find(blueprint, &columns, purpose)?;
    let mut ticker = ReadTicker::start(progress, "reading texts", source);
    let mut record = TableRecord::default();
    let mut text = String::new();
    let mut numbers = Vec::new();
    while table.read(&mut record)? {
        let line = record.line;
        joined(&record.cells, &places, &mut text);
        let (ids, cut) = encoder.ids(&text, texts.max_tokens);
        let unknown = encoder.unknown(&ids);
        let RowIdentity {
            id,
            subject,
            weight,
            unknown_class,
        } = roles.read(&record.cells, line, &mut numbers)?;
        see(EncodedExample {
            line,
            position: table.position(),
            id,
            subject,
            weight,
            targets: &numbers,
            unknown_class,
            content: ExampleContent::WordIds(&ids),
            unknown,
            cut,
        })?;
        ticker.row();
    }
    Ok(ticker.finish())
}
