//! Where rows come from: the files of a data folder, or the generators of the core when there is
//! none.

use std::path::{Path, PathBuf};

use efface::features::{Cell, VocabularyLearner};
use efface::synthetic::{News, Reviews};
use efface::{Csr, Rows};
use efface_io::{Source, TableRecord};

use crate::draw::shuffled;
use crate::error::{Error, Result};

/// A data folder, or none.
#[derive(Debug, Clone)]
pub(crate) struct DataFolder {
    folder: Option<PathBuf>,
}

/// A text and what it is about: a topic, or the stars of a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LabelledText {
    pub(crate) label: String,
    pub(crate) text: String,
}

/// A file of the data folder.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DataSet {
    /// What the report calls it.
    pub(crate) name: &'static str,
    path: &'static str,
    label: &'static str,
    texts: &'static [&'static str],
    used_for: &'static str,
}

/// The review sets of table 1.
pub(crate) const REVIEWS: [DataSet; 2] = [
    DataSet {
        name: "clothing reviews",
        path: "womens-clothing/womens-clothing.csv.gz",
        label: "stars",
        texts: &["title", "text"],
        used_for: "the reviews of table 1",
    },
    DataSet {
        name: "instrument reviews",
        path: "amazon-musical/musical-instruments.csv.gz",
        label: "stars",
        texts: &["summary", "text"],
        used_for: "the second set of reviews in table 1",
    },
];

/// The articles of tables 2 and 3.
pub(crate) const BBC: DataSet = DataSet {
    name: "BBC news",
    path: "bbc/bbc-text.csv",
    label: "category",
    texts: &["text"],
    used_for: "the networks of tables 2 and 3",
};

/// Stands in for the Curation Corpus, which has no topics.
pub(crate) const AG_NEWS: DataSet = DataSet {
    name: "AG News",
    path: "agnews/ag-news-test-7600.csv",
    label: "category",
    texts: &["title", "description"],
    used_for: "the second network of table 2, in place of the Curation Corpus",
};

/// Word vectors, two files.
const VECTORS: [&str; 2] = [
    "embeddings/glove-6b-100d-top40k.vocab.txt",
    "embeddings/glove-6b-100d-top40k.f16le.bin",
];
/// The width of those vectors.
pub(crate) const VECTOR_WIDTH: usize = 100;
/// Synonyms for the augmented articles.
const SYNONYMS: &str = "wordnet/wordnet30-synonyms.tsv";

impl DataFolder {
    pub(crate) fn new(folder: Option<&Path>) -> Self {
        Self {
            folder: folder.map(Path::to_path_buf),
        }
    }

    pub(crate) fn is_real(&self) -> bool {
        self.folder.is_some()
    }

    /// Stops before any work when a file is missing that one of the studies will read.
    pub(crate) fn check(&self, reviews: bool, news: bool, second: bool) -> Result<()> {
        let sets = [
            (reviews, &REVIEWS[0]),
            (reviews, &REVIEWS[1]),
            (news, &BBC),
            (second, &AG_NEWS),
        ];
        for (_, set) in sets.into_iter().filter(|(wanted, _)| *wanted) {
            self.find(set.path, set.used_for)?;
        }
        if news {
            self.vectors()?;
        }
        if second {
            self.synonyms()?;
        }
        Ok(())
    }

    /// The two files of word vectors; None where there is no folder.
    pub(crate) fn vectors(&self) -> Result<Option<[PathBuf; 2]>> {
        let used_for = "the word vectors of the networks in tables 2 and 3";
        let [words, numbers] = VECTORS;
        Ok(self
            .find(words, used_for)?
            .zip(self.find(numbers, used_for)?)
            .map(|(a, b)| [a, b]))
    }

    /// The table of synonyms; None where there is no folder.
    pub(crate) fn synonyms(&self) -> Result<Option<PathBuf>> {
        self.find(SYNONYMS, "the augmented articles of table 2")
    }

    /// A file of the folder; None without a folder, an error when it is not there.
    fn find(&self, path: &str, used_for: &'static str) -> Result<Option<PathBuf>> {
        let Some(folder) = &self.folder else {
            return Ok(None);
        };
        let path = folder.join(path);
        if path.is_file() {
            Ok(Some(path))
        } else {
            Err(Error::MissingData { path, used_for })
        }
    }

    /// All texts of a set; of a generator of the same kind where there is no folder.
    pub(crate) fn texts(
        &self,
        set: &DataSet,
        otherwise: impl FnOnce() -> Vec<LabelledText>,
    ) -> Result<Vec<LabelledText>> {
        match self.find(set.path, set.used_for)? {
            None => Ok(otherwise()),
            Some(path) => read(&path, set),
        }
    }
}

/// Generated reviews.
pub(crate) fn reviews(count: usize, seed: u64) -> Vec<LabelledText> {
    let written = Reviews {
        reviews: count,
        seed,
    }
    .generate();
    written
        .into_iter()
        .map(|r| LabelledText {
            label: r.stars.to_string(),
            text: r.text,
        })
        .collect()
}

/// Generated articles.
pub(crate) fn news(count: usize, seed: u64) -> Vec<LabelledText> {
    let written = News {
        articles: count,
        seed,
    }
    .generate();
    written
        .into_iter()
        .map(|a| LabelledText {
            label: a.topic.into(),
            text: a.text,
        })
        .collect()
}

fn read(path: &Path, set: &DataSet) -> Result<Vec<LabelledText>> {
    let mut table = Source::open(path, None)?.table()?;
    let column = |name: &str| {
        let found = table.columns().iter().position(|column| column == name);
        found.ok_or_else(|| Error::BadData {
            path: path.into(),
            what: format!("has no column `{name}`"),
        })
    };
    let label = column(set.label)?;
    let texts: Vec<usize> = set
        .texts
        .iter()
        .map(|name| column(name))
        .collect::<Result<_>>()?;
    let mut record = TableRecord::default();
    let mut lines = Vec::new();
    while table.read(&mut record)? {
        let cell = |at: usize| match record.cells.get(at) {
            Some(Cell::Text(text)) => text.clone(),
            Some(Cell::Number(number)) => number.to_string(),
            _ => String::new(),
        };
        let text = texts
            .iter()
            .map(|&at| cell(at))
            .collect::<Vec<_>>()
            .join(" ");
        lines.push(LabelledText {
            label: cell(label),
            text,
        });
    }
    Ok(lines)
}

/// Reviews as counts over the `width` commonest words, stars 4 and 5 as +1, the others as −1;
/// `count` of them, drawn by the seed.
pub(crate) fn count_rows(
    name: &str,
    reviews: &[LabelledText],
    count: usize,
    width: usize,
    seed: u64,
) -> Result<Rows> {
    if reviews.len() < count {
        let why = format!("the {count} reviews of a trial");
        return Err(Error::TooFewRows {
            name: name.into(),
            found: reviews.len(),
            needed: count,
            why,
        });
    }
    let chosen: Vec<&LabelledText> = shuffled(reviews.len(), seed)
        .into_iter()
        .take(count)
        .map(|at| &reviews[at])
        .collect();
    let mut learner = VocabularyLearner::default();
    for review in &chosen {
        learner.observe(&review.text).map_err(efface::Error::from)?;
    }
    if learner.distinct() < width {
        let name = name.into();
        let found = learner.distinct();
        return Err(Error::TooFewWords {
            name,
            found,
            needed: width,
        });
    }
    let vocabulary = learner.finish(width).map_err(efface::Error::from)?;
    let mut table = Csr::<f32>::new(width);
    let mut targets = Vec::with_capacity(count);
    let mut entries = Vec::new();
    for review in chosen {
        vocabulary.counts(&review.text, &mut entries);
        table.push(&entries)?;
        targets.push(if matches!(review.label.as_str(), "4" | "5") {
            1.0
        } else {
            -1.0
        });
    }
    Ok(Rows::new(table, targets, 1)?)
}
