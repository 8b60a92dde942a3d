//! From the cells of a table to feature vectors, in a form that can forget.
//!
//! An [`EncoderBuilder`] watches every row once and finishes as an [`Encoder`]. A row of cells
//! becomes a *raw* row first: numbers, levels and all words as they are. What a model sees are
//! *features*: the words that were chosen, numbers on one scale, counts with weights. Which
//! features there are follows from counts and sums that rows join and leave
//! ([`Encoder::learn_row`], [`Encoder::forget_row`]), so that after a forget [`Encoder::follow`]
//! gives the features of an encoder that never saw the row.
//!
//! What the features of all columns become together ([`FeatureExpansion`]) is the last step:
//! products, random waves, components.
//!
//! A [`TextAugmenter`] makes new texts from old ones with a table of [`Synonyms`].

mod analyzer;
mod augment;
mod binding;
mod bound_row;
mod builder;
mod cell;
mod choice;
mod components;
mod decimal;
mod directions;
mod encoder;
mod encoding;
mod exact_sum;
mod expanding;
mod expansion;
mod feature_map;
mod feature_rows;
mod hashing;
mod kept_sums;
mod monomials;
mod named_places;
mod number_sums;
mod options;
mod rescaling;
mod schema;
mod steps;
mod stop_words;
mod synonyms;
mod target_means;
mod tokens;
mod vocabulary;
mod waves;

pub use crate::feature_error::FeatureError;
pub use analyzer::{LONGEST_RUN, StopWords, TextAnalyzer, TextUnit};
pub use augment::{AlteredText, TextAlteration, TextAugmenter};
pub use binding::ColumnBinding;
pub use bound_row::UnknownName;
pub use builder::{EncoderBuilder, MixedColumn};
pub use cell::Cell;
pub use components::MOST_PRODUCTS;
pub use encoder::Encoder;
pub use feature_map::FeatureMap;
pub use feature_rows::FeatureRow;
pub use hashing::HashedWords;
pub use kept_sums::{FeatureMoments, FollowedSums, KeptSums, SumsChange};
pub use options::{EncoderOptions, WordSource};
pub use rescaling::{FeatureRescale, RescaledFeatures};
pub use schema::{EncodingGaps, FeatureColumn};
pub use steps::{
    ColumnScale, FeatureExpansion, FeatureSteps, HIGHEST_DEGREE, MOST_WAVES, MissingNumbers,
    RowShare, TermWeighting, WordSteps,
};
pub use synonyms::Synonyms;
pub use target_means::TargetEncoding;
pub use tokens::tokens;
pub use vocabulary::{MAX_DISTINCT_WORDS, Vocabulary, VocabularyLearner};
