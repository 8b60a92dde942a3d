//! Scores. A [`Scorer`] is loaded once and holds all that a score needs, so that it can be shared
//! between threads and does not keep others from changing the file.

use std::path::Path;
use std::sync::Arc;

use efface::Predict;
use efface::features::{Cell, Encoder};
use efface::models::{self, ScoreKind};
use efface::scores::{ScoreTally, probabilities};

use super::ingest::{
    self, EncodedExample, ExampleContent, FeatureTable, ReadPurpose, RowNames, RowReader,
};
use super::naming::output_names;
use super::open_model::{ModelSnapshot, OpenModel};
use super::prepared::PreparedModel;
use super::report::{Prediction, ScoredRows};
use super::row_source::RowSource;
use crate::codec::blueprint::Blueprint;
use crate::codec::model;
use crate::codec::text_encoder::{StoredEncoder, TextEncoder};
use crate::error::{Error, Result};
use crate::progress::{Progress, Silent};

/// Rows that are scored together: some models make tables first, which is too much for every single
/// row.
const ROWS_AT_ONCE: usize = 512;

/// A model that scores rows, as it was when it was loaded. Clones share it, and any number of
/// threads may use it at once. A change of the file does not reach it: after a forget, a server
/// loads another one and drops this one.
///
/// ```
/// use efface::features::Cell;
/// use efface_engine::{Engine, FitRequest, RecordTable, Silent, fit};
/// use efface_io::Source;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("houses.efface");
/// let mut request = FitRequest::new(Source::from_bytes("houses.csv", "rooms,price\n3,210\n5,340\n2,150\n", None)?);
/// request.targets = vec!["price".into()];
/// fit(&request, &path, false, &Silent)?;
///
/// let scorer = Engine::open_read_only(&path)?.scorer()?;
/// let asked = RecordTable::new(vec!["rooms".into()], vec![vec![Cell::Number(4.0)]])?;
/// let thread = std::thread::spawn({
///     let scorer = scorer.clone();
///     let asked = asked.clone();
///     move || scorer.predict_all(&asked)
/// });
/// let here = scorer.predict_all(&asked)?;
/// let there = thread.join().map_err(|_| "the thread panicked")??;
/// assert_eq!(here[0].scores, there[0].scores);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Scorer {
    loaded: Arc<LoadedModel>,
}

/// What a score needs of a model file.
struct LoadedModel {
    model: models::ModelScorer,
    scores: ScoreKind,
    blueprint: Blueprint,
    encoder: Option<Encoder>,
    /// Whether a row of numbers in the order of the columns is its features.
    reads_plain_numbers: bool,
    texts: Option<TextEncoder>,
    outputs: Vec<String>,
    generation: u64,
}

impl Scorer {
    /// Loads the model as it is now.
    pub(crate) fn load(model: &OpenModel) -> Result<Self> {
        let _transaction = model.store.begin(false)?;
        let ModelSnapshot { manifest, encoder } = model.snapshot()?;
        // With an older copy, forgotten rows would have a say again.
        model.check_rollback(&manifest.ledger)?;
        let loaded = LoadedModel {
            model: model::scorer(&model.store, &manifest)?,
            scores: manifest.model.recipe.describe().scores,
            texts: model.text_encoder(&manifest)?,
            outputs: output_names(&manifest.blueprint, &manifest.model.recipe),
            generation: manifest.generation,
            blueprint: manifest.blueprint,
            reads_plain_numbers: encoder.as_ref().is_some_and(is_plain),
            encoder,
        };
        Ok(Self {
            loaded: Arc::new(loaded),
        })
    }

    /// A model that is not in a file yet.
    pub(crate) fn of_prepared(prepared: &PreparedModel, path: &Path) -> Result<Self> {
        let PreparedModel {
            blueprint,
            encoder,
            recipe,
            model,
            network,
            backbone,
            ..
        } = prepared;
        let texts = network.as_ref().map(|network| {
            let stored = StoredEncoder {
                network,
                width: blueprint.width,
                path,
                folder: None,
            };
            stored.read(|| Ok(backbone.clone().unwrap_or_default()))
        });
        let loaded = LoadedModel {
            model: models::ModelScorer::whole(model.clone()),
            scores: recipe.describe().scores,
            texts: texts.transpose()?,
            outputs: output_names(blueprint, recipe),
            generation: 0,
            blueprint: blueprint.clone(),
            reads_plain_numbers: encoder.as_ref().is_some_and(is_plain),
            encoder: encoder.clone(),
        };
        Ok(Self {
            loaded: Arc::new(loaded),
        })
    }

    /// Changes of the file between the fit and this model. A file whose summary says more has
    /// changed since.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.loaded.generation
    }

    /// The names of the scores: outputs, classes or clusters.
    #[must_use]
    pub fn outputs(&self) -> &[String] {
        &self.loaded.outputs
    }

    /// The names of the classes; None for a model that is no classifier.
    #[must_use]
    pub fn classes(&self) -> Option<&[String]> {
        self.loaded
            .blueprint
            .classes()
            .map(|classes| classes.names())
    }

    /// Calls `see` with the scores of every row, in order; returns how many rows there were and,
    /// where they have targets, how good the scores are. Memory does not grow with their number but
    /// for what the area under a ROC curve needs: a number a row and class, where there are
    /// targets.
    ///
    /// # Errors
    /// A row cannot be read, or does not have the columns of the model; what `see` returns.
    pub fn predict(
        &self,
        rows: impl Into<RowSource>,
        see: &mut dyn FnMut(Prediction) -> Result<()>,
    ) -> Result<ScoredRows> {
        self.score(&rows.into(), ReadPurpose::Predict, &Silent, see)
    }

    /// How good the model is on rows with targets.
    ///
    /// # Errors
    /// There are no rows, or one cannot be read or has no target; the model has no targets.
    pub fn evaluate(
        &self,
        rows: impl Into<RowSource>,
        progress: &dyn Progress,
    ) -> Result<ScoredRows> {
        let rows = rows.into();
        if self.loaded.scores == ScoreKind::Distances {
            return Err(Error::request(
                "clusters have no target that they could be judged by",
                "an audit measures how near rows are to their centres",
            ));
        }
        let found = self.score(&rows, ReadPurpose::Evaluate, progress, &mut |_| Ok(()))?;
        if found.rows == 0 {
            Err(rows.no_rows())
        } else {
            Ok(found)
        }
    }

    /// The ids and persons of rows to judge a model by, as far as they are named.
    pub(crate) fn names(&self, rows: &RowSource, progress: &dyn Progress) -> Result<RowNames> {
        let loaded = &*self.loaded;
        let reader = RowReader::new(loaded.texts.as_ref(), loaded.encoder.as_ref());
        let mut names = RowNames {
            ids: Vec::new(),
            subjects: Vec::new(),
            span: 0,
        };
        let mut note = |example: EncodedExample<'_>| {
            names.ids.extend(example.id.clone());
            if example.id.is_some() {
                names.subjects.push(example.subject);
            }
            Ok(())
        };
        ingest::each(
            rows,
            &loaded.blueprint,
            reader,
            ReadPurpose::Evaluate,
            progress,
            &mut note,
        )?;
        Ok(names)
    }

    fn score(
        &self,
        rows: &RowSource,
        purpose: ReadPurpose,
        progress: &dyn Progress,
        see: &mut dyn FnMut(Prediction) -> Result<()>,
    ) -> Result<ScoredRows> {
        let loaded = &*self.loaded;
        let reader = RowReader::new(loaded.texts.as_ref(), loaded.encoder.as_ref());
        let mut buffer = ScoreBuffer::new(loaded);
        let mut score = |example: EncodedExample<'_>| buffer.push(example, see);
        let count = ingest::each(
            rows,
            &loaded.blueprint,
            reader,
            purpose,
            progress,
            &mut score,
        )?;
        buffer.flush(see)?;
        Ok(ScoredRows {
            rows: count,
            quality: buffer.tally.finish(),
            unknown_names: buffer.unknown,
        })
    }

    /// The columns that the model reads, in its own order; None where it reads texts, or indices of
    /// a sparse file.
    #[must_use]
    pub fn columns(&self) -> Option<Vec<&str>> {
        let encoder = self
            .loaded
            .encoder
            .as_ref()
            .filter(|_| self.loaded.texts.is_none())?;
        Some(
            encoder
                .columns()
                .iter()
                .map(|column| column.name())
                .collect(),
        )
    }

    /// How many columns [`Scorer::columns`] names.
    #[must_use]
    pub fn column_count(&self) -> Option<usize> {
        let encoder = self
            .loaded
            .encoder
            .as_ref()
            .filter(|_| self.loaded.texts.is_none())?;
        Some(encoder.columns().len())
    }

    /// The scores of rows whose cells stand in the order of [`Scorer::columns`]: nothing has to be
    /// found by its name.
    ///
    /// # Errors
    /// A row has more or fewer cells than there are columns, or one that the model cannot read; the
    /// model reads no columns.
    pub fn predict_in_order(&self, rows: &[Vec<Cell>]) -> Result<Vec<Prediction>> {
        let loaded = &*self.loaded;
        let Some(encoder) = loaded.encoder.as_ref().filter(|_| loaded.texts.is_none()) else {
            let hint = "name the cells of a row";
            return Err(Error::request(
                "the model reads no columns that have an order",
                hint,
            ));
        };
        let binding = encoder.bind_in_order();
        score_each(loaded, rows.iter(), |cells, line, entries| {
            let gaps = binding.encode(cells, line, entries)?;
            Ok(gaps.unknown_levels + gaps.unknown_words)
        })
    }

    /// As [`Scorer::predict_in_order`], for rows of numbers that lie one after the other. NaN is a
    /// missing cell.
    ///
    /// # Errors
    /// As there, and numbers that make no whole rows.
    pub fn predict_numbers(&self, numbers: &[f64]) -> Result<Vec<Prediction>> {
        let loaded = &*self.loaded;
        let width = self.column_count().unwrap_or(0);
        if width == 0 || !numbers.len().is_multiple_of(width) {
            let found = numbers.len();
            let hint = "give a number for every column of every row";
            return Err(Error::request(
                format!("{found} numbers make no rows of {width} columns"),
                hint,
            ));
        }
        let rows = numbers.chunks_exact(width);
        if loaded.reads_plain_numbers && numbers.iter().all(|number| number.is_finite()) {
            // The numbers are the features.
            return score_each(loaded, rows, |row, _, entries| {
                entries.clear();
                entries.extend(
                    (0..)
                        .zip(row.iter().copied())
                        .filter(|(_, number)| *number != 0.0),
                );
                Ok(0)
            });
        }
        let cell = |number: &f64| {
            if number.is_nan() {
                Cell::Missing
            } else {
                Cell::Number(*number)
            }
        };
        let rows: Vec<Vec<Cell>> = rows.map(|row| row.iter().map(cell).collect()).collect();
        self.predict_in_order(&rows)
    }

    /// The scores of all rows, in order.
    ///
    /// # Errors
    /// See [`Scorer::predict`].
    pub fn predict_all(&self, rows: impl Into<RowSource>) -> Result<Vec<Prediction>> {
        let mut all = Vec::new();
        self.predict(rows, &mut |prediction| {
            all.push(prediction);
            Ok(())
        })?;
        Ok(all)
    }
}

/// Whether the features of a row are its numbers, in the order of the columns.
fn is_plain(encoder: &Encoder) -> bool {
    encoder.has_dense_raw_rows()
        && encoder.is_identity()
        && encoder.raw_width() == encoder.columns().len()
}

/// Scores rows without names, whose features `encode` gives with the number of names that it did
/// not know.
fn score_each<R>(
    loaded: &LoadedModel,
    rows: impl Iterator<Item = R>,
    mut encode: impl FnMut(R, u64, &mut Vec<(u32, f64)>) -> Result<u64>,
) -> Result<Vec<Prediction>> {
    let mut all = Vec::new();
    let mut see = |prediction| {
        all.push(prediction);
        Ok(())
    };
    let mut buffer = ScoreBuffer::new(loaded);
    let mut entries = Vec::new();
    for (position, row) in (0..).zip(rows) {
        let line = position + 1;
        let unknown = encode(row, line, &mut entries)?;
        let example = EncodedExample {
            line,
            position,
            id: None,
            subject: None,
            weight: 1.0,
            targets: &[],
            unknown_class: false,
            content: ExampleContent::Entries(&entries),
            unknown,
            cut: false,
        };
        buffer.push(example, &mut see)?;
    }
    buffer.flush(&mut see)?;
    Ok(all)
}

/// Rows that wait to be scored together.
struct ScoreBuffer<'a> {
    loaded: &'a LoadedModel,
    features: FeatureTable,
    waiting: Vec<WaitingRow>,
    tally: ScoreTally,
    unknown: u64,
}

/// What is kept of a row until its scores are there.
struct WaitingRow {
    id: Option<String>,
    line: u64,
    position: u64,
    targets: Vec<f64>,
    unknown_class: bool,
}

impl<'a> ScoreBuffer<'a> {
    fn new(loaded: &'a LoadedModel) -> Self {
        let tally = match loaded.blueprint.classes() {
            Some(classes) => ScoreTally::classes(loaded.scores, classes),
            None => ScoreTally::numbers(loaded.scores, &loaded.outputs),
        };
        let features = FeatureTable::to_score(&loaded.blueprint);
        Self {
            loaded,
            features,
            waiting: Vec::new(),
            tally,
            unknown: 0,
        }
    }

    fn push(
        &mut self,
        example: EncodedExample<'_>,
        see: &mut dyn FnMut(Prediction) -> Result<()>,
    ) -> Result<()> {
        self.features.push(example.content)?;
        self.unknown += example.unknown;
        self.waiting.push(WaitingRow {
            id: example.id,
            line: example.line,
            position: example.position,
            targets: example.targets.to_vec(),
            unknown_class: example.unknown_class,
        });
        if self.waiting.len() == ROWS_AT_ONCE {
            self.flush(see)
        } else {
            Ok(())
        }
    }

    fn flush(&mut self, see: &mut dyn FnMut(Prediction) -> Result<()>) -> Result<()> {
        let LoadedModel {
            model,
            scores: kind,
            blueprint,
            texts,
            ..
        } = self.loaded;
        let gathered = std::mem::replace(&mut self.features, FeatureTable::to_score(blueprint));
        let mut features = gathered.into_features()?;
        if let Some(texts) = texts {
            features = texts.features(features, &Silent)?;
        }
        let all = model.predict(&features)?;
        for (slot, row) in self.waiting.drain(..).enumerate() {
            let scores: Vec<f64> = (0..all.ncols()).map(|output| all[(slot, output)]).collect();
            if row.unknown_class {
                self.tally.push_unknown(&scores);
            } else if !row.targets.is_empty() {
                self.tally.push(&scores, &row.targets);
            }
            let label = match (blueprint.classes(), kind) {
                (Some(classes), _) => classes.names().get(classes.decide(&scores)).cloned(),
                (None, ScoreKind::Distances) => nearest(&scores).map(|cluster| cluster.to_string()),
                (None, _) => None,
            };
            let WaitingRow {
                id, line, position, ..
            } = row;
            let probabilities = probabilities(*kind, &scores);
            see(Prediction {
                id,
                position,
                line,
                scores,
                probabilities,
                label,
            })?;
        }
        Ok(())
    }
}

/// The place of the least distance; the first of several.
fn nearest(distances: &[f64]) -> Option<usize> {
    (0..distances.len()).reduce(|best, at| {
        if distances[at] < distances[best] {
            at
        } else {
            best
        }
    })
}
