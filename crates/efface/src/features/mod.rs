//! From the cells of a table to sparse feature vectors, in a form that can forget.
//!
//! An [`EncoderBuilder`] watches every row once and finishes as an [`Encoder`], which turns rows into sorted
//! `(column, value)` pairs. What the encoder learned from rows (words, levels) carries counts, so that
//! [`Encoder::forget_row`] erases the name that only forgotten rows held; what cannot be undone is listed by
//! [`Encoder::not_covered`].
//!
//! A [`TextAugmenter`] makes new texts from old ones with a table of [`Synonyms`].

mod augment;
mod binding;
mod builder;
mod cell;
mod encoder;
mod hashing;
mod names;
mod options;
mod schema;
mod synonyms;
mod tokens;
mod vocabulary;

pub use crate::feature_error::FeatureError;
pub use augment::{AlteredText, TextAlteration, TextAugmenter};
pub use binding::ColumnBinding;
pub use builder::EncoderBuilder;
pub use cell::Cell;
pub use encoder::Encoder;
pub use hashing::HashedWords;
pub use options::{EncoderOptions, WordSource};
pub use schema::{EncodingGaps, FeatureColumn};
pub use synonyms::Synonyms;
pub use tokens::tokens;
pub use vocabulary::{MAX_DISTINCT_WORDS, Vocabulary, VocabularyLearner};
