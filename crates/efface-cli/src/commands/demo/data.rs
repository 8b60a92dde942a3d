//! The demo's rows: reviews as counts of words, their stars as +1 or −1.

use std::collections::HashSet;
use std::io::{self, Write};

use efface::features::{Cell, Encoder, EncoderBuilder, EncoderOptions, FeatureError, WordSource};
use efface::synthetic::{PLANTED_USER, PLANTED_WORD, Review};
use efface::{Csr, RowId, Rows};

use crate::failure::{Failure, Result};

/// What the methods are tried on.
pub(super) struct DemoData {
    pub(super) rows: Rows,
    pub(super) words: usize,
    pub(super) people: usize,
    /// The rows of the person with a word of their own.
    pub(super) planted_rows: Vec<RowId>,
    /// The feature that is the word which only that person uses.
    pub(super) planted_feature: usize,
    /// Another person, who uses the words that everybody uses.
    pub(super) other_person: String,
    pub(super) other_rows: Vec<RowId>,
}

impl DemoData {
    pub(super) fn make(reviews: &[Review], vocabulary: usize) -> Result<Self> {
        let cells: Vec<[Cell; 1]> = reviews
            .iter()
            .map(|review| [Cell::Text(review.text.clone())])
            .collect();
        let encoder = encoder(&cells, vocabulary).map_err(efface::Error::from)?;
        let width = encoder.width();
        let mut features = Csr::<f32>::new(width);
        let mut targets = Vec::with_capacity(reviews.len());
        let mut entries = Vec::new();
        let binding = encoder.bind_own();
        for (line, (review, cells)) in (1..).zip(reviews.iter().zip(&cells)) {
            binding
                .encode(cells, line, &mut entries)
                .map_err(efface::Error::from)?;
            features.push(&entries)?;
            targets.push(if review.stars >= 4 { 1.0 } else { -1.0 });
        }
        let planted = encoder
            .named_features()
            .into_iter()
            .find(|(_, name)| name == PLANTED_WORD);
        let (planted, _) = planted.ok_or_else(|| {
            let failure = Failure::usage(format!(
                "the {vocabulary} commonest words leave out `{PLANTED_WORD}`"
            ));
            failure.hint("give more with --vocab; 1500 is enough")
        })?;
        let other_person = other_person(reviews)?;
        Ok(Self {
            rows: Rows::new(features, targets, 1)?,
            words: width,
            people: reviews
                .iter()
                .map(|review| &review.user_id)
                .collect::<HashSet<_>>()
                .len(),
            planted_rows: rows_of(reviews, PLANTED_USER),
            planted_feature: planted as usize,
            other_rows: rows_of(reviews, &other_person),
            other_person,
        })
    }
}

fn encoder(cells: &[[Cell; 1]], vocabulary: usize) -> std::result::Result<Encoder, FeatureError> {
    let column = "text".to_owned();
    let options = EncoderOptions {
        text: vec![column.clone()],
        words: WordSource::Learned(vocabulary),
        ..EncoderOptions::default()
    };
    let mut builder = EncoderBuilder::new(&[column], options)?;
    for (line, cells) in (1..).zip(cells) {
        builder.observe(cells, line)?;
    }
    builder.finish()
}

/// The author of the first review that the planted person did not write.
fn other_person(reviews: &[Review]) -> Result<String> {
    let other = reviews
        .iter()
        .map(|review| &review.user_id)
        .find(|user| *user != PLANTED_USER);
    other.cloned().ok_or_else(|| {
        Failure::usage(format!(
            "{} reviews are not enough for two people",
            reviews.len()
        ))
        .hint("give at least 100 with --reviews; 20000 is usual")
    })
}

fn rows_of(reviews: &[Review], person: &str) -> Vec<RowId> {
    let numbered = (0..).zip(reviews);
    numbered
        .filter(|(_, review)| review.user_id == person)
        .map(|(at, _)| RowId(at))
        .collect()
}

/// The reviews as a table, in the columns that the examples in the help name.
pub(super) fn write_csv(reviews: &[Review], out: &mut impl Write) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(out);
    table.write_record(["review_id", "user_id", "stars", "text"])?;
    for review in reviews {
        let stars = review.stars.to_string();
        table.write_record([&review.review_id, &review.user_id, &stars, &review.text])?;
    }
    table.flush()
}
