//! Words as columns, and the counting of words over documents.
//!
//! The commonest words of documents equal those of scikit-learn's
//! `CountVectorizer(max_features=n)`, except where words tie for the last places: here the alphabet
//! decides, there it is not defined.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{FeatureError, TextAnalyzer};

/// The distinct words that a [`VocabularyLearner`] counts unless told otherwise: about half a
/// gigabyte.
pub const MAX_DISTINCT_WORDS: usize = 5_000_000;

/// The words that have a column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Vocabulary {
    words: Vec<String>,
    index: HashMap<Box<str>, u32>,
}

impl From<Vocabulary> for Vec<String> {
    fn from(vocabulary: Vocabulary) -> Self {
        vocabulary.words
    }
}

impl TryFrom<Vec<String>> for Vocabulary {
    type Error = FeatureError;

    fn try_from(words: Vec<String>) -> Result<Self, FeatureError> {
        let mut index = HashMap::with_capacity(words.len());
        for (column, word) in words.iter().enumerate() {
            if index.insert(word.as_str().into(), column as u32).is_some() {
                return Err(FeatureError::DuplicateWord {
                    word: word.clone(),
                    position: column + 1,
                });
            }
        }
        Ok(Self { words, index })
    }
}

impl Vocabulary {
    /// A vocabulary from elsewhere, with columns in the order given. A word that is empty, occurs
    /// twice or can never be found by [`tokens`](super::tokens()) is an error.
    pub fn supplied<W: Into<String>>(
        words: impl IntoIterator<Item = W>,
    ) -> Result<Self, FeatureError> {
        let words = words.into_iter().map(Into::into).collect();
        Self::supplied_for(&TextAnalyzer::default(), words)
    }

    /// As [`supplied`](Self::supplied), with what this analyzer takes for words.
    pub(crate) fn supplied_for(
        analyzer: &TextAnalyzer,
        words: Vec<String>,
    ) -> Result<Self, FeatureError> {
        for (at, word) in words.iter().enumerate() {
            if word.is_empty() {
                return Err(FeatureError::EmptyWord { position: at + 1 });
            }
            if !analyzer.finds(word) {
                return Err(FeatureError::UnusableWord {
                    word: word.clone(),
                    position: at + 1,
                });
            }
        }
        Self::try_from(words)
    }

    /// The number of columns.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// True without a single column.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The word of a column.
    pub fn word(&self, column: u32) -> Option<&str> {
        self.words.get(column as usize).map(String::as_str)
    }

    /// The column of a word.
    pub fn column(&self, word: &str) -> Option<u32> {
        self.index.get(word).copied()
    }

    /// Replaces `out` by the word counts of a text, sorted by column, and returns how many words
    /// have no column.
    pub fn counts(&self, text: &str, out: &mut Vec<(u32, f64)>) -> u64 {
        out.clear();
        self.append_counts(&TextAnalyzer::default(), text, 0, out)
    }

    /// Appends the counts with their columns moved up by `offset`.
    pub(crate) fn append_counts(
        &self,
        analyzer: &TextAnalyzer,
        text: &str,
        offset: u32,
        out: &mut Vec<(u32, f64)>,
    ) -> u64 {
        let start = out.len();
        let mut unknown = 0;
        analyzer.each(text, |word| match self.column(word) {
            Some(column) => out.push((offset + column, 1.0)),
            None => unknown += 1,
        });
        sum_duplicates(out, start);
        unknown
    }
}

/// Sorts the entries from `start` on by column and adds up those of one column.
pub(crate) fn sum_duplicates(entries: &mut Vec<(u32, f64)>, start: usize) {
    entries[start..].sort_unstable_by_key(|&(column, _)| column);
    let mut kept = start;
    for at in start..entries.len() {
        let (column, value) = entries[at];
        if kept > start && entries[kept - 1].0 == column {
            entries[kept - 1].1 += value;
        } else {
            entries[kept] = (column, value);
            kept += 1;
        }
    }
    entries.truncate(kept);
}

/// Counts words over documents, then keeps the commonest.
#[derive(Debug, Clone)]
pub struct VocabularyLearner {
    analyzer: TextAnalyzer,
    words: HashMap<Box<str>, WordTally>,
    documents: u64,
    limit: usize,
}

#[derive(Debug, Clone, Copy)]
struct WordTally {
    total: u64,
    documents: u64,
    /// The number of the last document that held the word, so that it counts once per document.
    last: u64,
}

impl Default for VocabularyLearner {
    fn default() -> Self {
        Self::with_limit(MAX_DISTINCT_WORDS)
    }
}

impl VocabularyLearner {
    /// A learner that holds at most `limit` distinct words. Nothing is pruned on the way, which
    /// would make the result depend on the order of the documents: one word more is an error that
    /// suggests hashing.
    pub fn with_limit(limit: usize) -> Self {
        Self {
            analyzer: TextAnalyzer::default(),
            words: HashMap::new(),
            documents: 0,
            limit,
        }
    }

    /// The same, with what this analyzer takes for words.
    #[must_use]
    pub fn reading(mut self, analyzer: &TextAnalyzer) -> Self {
        self.analyzer = analyzer.clone();
        self
    }

    /// A learner like this one that has seen no document.
    pub(crate) fn fresh(&self) -> Self {
        Self::with_limit(self.limit).reading(&self.analyzer)
    }

    /// Takes in what was learned of other documents.
    pub(crate) fn merge(&mut self, other: Self) -> Result<(), FeatureError> {
        self.documents += other.documents;
        for (word, more) in other.words {
            // No document has the number 0, so that the next one counts in any case.
            let tally = self.words.entry(word).or_insert(WordTally {
                total: 0,
                documents: 0,
                last: 0,
            });
            *tally = WordTally {
                total: tally.total + more.total,
                documents: tally.documents + more.documents,
                last: 0,
            };
        }
        if self.words.len() > self.limit {
            Err(FeatureError::TooManyWords { limit: self.limit })
        } else {
            Ok(())
        }
    }

    /// Counts one document.
    pub fn observe(&mut self, text: &str) -> Result<(), FeatureError> {
        self.documents += 1;
        let document = self.documents;
        let limit = self.limit;
        let words = &mut self.words;
        let mut full = false;
        self.analyzer.each(text, |word| {
            if let Some(tally) = words.get_mut(word) {
                tally.total += 1;
                tally.documents += u64::from(tally.last != document);
                tally.last = document;
            } else if words.len() < limit {
                words.insert(
                    word.into(),
                    WordTally {
                        total: 1,
                        documents: 1,
                        last: document,
                    },
                );
            } else {
                full = true;
            }
        });
        if full {
            Err(FeatureError::TooManyWords { limit })
        } else {
            Ok(())
        }
    }

    /// The distinct words so far.
    pub fn distinct(&self) -> usize {
        self.words.len()
    }

    /// Every word, with the documents that hold it and how often they do, in no order.
    pub(crate) fn into_tallies(self) -> impl Iterator<Item = (String, u64, u64)> {
        self.words
            .into_iter()
            .map(|(word, tally)| (word.into(), tally.documents, tally.total))
    }

    /// Keeps the `n` words with the highest total count, ties broken by the alphabet, as columns in
    /// alphabetical order (of Unicode code points).
    pub fn finish(self, n: usize) -> Result<Vocabulary, FeatureError> {
        let mut words: Vec<(String, u64)> = self
            .into_tallies()
            .map(|(word, _, total)| (word, total))
            .collect();
        keep_commonest(&mut words, n, |(word, total)| (*total, word.as_str()));
        let mut words: Vec<String> = words.into_iter().map(|(word, _)| word).collect();
        words.sort_unstable();
        Vocabulary::try_from(words)
    }
}

/// Keeps the `n` words with the highest total count, ties broken by the alphabet; in no order.
pub(crate) fn keep_commonest<T>(words: &mut Vec<T>, n: usize, about: impl Fn(&T) -> (u64, &str)) {
    if words.len() <= n {
        return;
    }
    words.select_nth_unstable_by(n, |a, b| {
        let (total, word) = about(a);
        let (other_total, other_word) = about(b);
        other_total.cmp(&total).then_with(|| word.cmp(other_word))
    });
    words.truncate(n);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::tokens;
    use proptest::prelude::*;

    fn learned(documents: &[&str], n: usize) -> Vocabulary {
        let mut learner = VocabularyLearner::default();
        documents.iter().for_each(|d| learner.observe(d).unwrap());
        learner.finish(n).unwrap()
    }

    const DOCUMENTS: [&str; 4] = ["bee ant ant", "ant bee cat", "dog cat emu", "fox emu gnu"];

    /// Oracle: scikit-learn 1.9.1, `CountVectorizer(max_features=5).fit_transform(DOCUMENTS)`.
    #[test]
    fn the_commonest_words_and_counts_equal_scikit_learn() {
        let vocabulary = learned(&DOCUMENTS, 5);
        let words: Vec<_> = (0..5).filter_map(|j| vocabulary.word(j)).collect();
        assert_eq!(words, ["ant", "bee", "cat", "dog", "emu"]);
        let expected: [&[(u32, f64)]; 4] = [
            &[(0, 2.0), (1, 1.0)],
            &[(0, 1.0), (1, 1.0), (2, 1.0)],
            &[(2, 1.0), (3, 1.0), (4, 1.0)],
            &[(4, 1.0)],
        ];
        let mut out = Vec::new();
        for (document, counts) in DOCUMENTS.iter().zip(expected) {
            vocabulary.counts(document, &mut out);
            assert_eq!(out, counts);
        }
    }

    #[test]
    fn a_supplied_vocabulary_is_checked() {
        let supplied = Vocabulary::supplied(["zebra", "ant"]).unwrap();
        assert_eq!(supplied.column("zebra"), Some(0));
        assert_eq!(supplied.word(0), Some("zebra"));
        assert_eq!(
            Vocabulary::supplied(["ab", ""]),
            Err(FeatureError::EmptyWord { position: 2 })
        );
        assert_eq!(
            Vocabulary::supplied(["ab", "cd", "ab"]),
            Err(FeatureError::DuplicateWord {
                word: "ab".into(),
                position: 3
            })
        );
        for word in ["Great", "don't", "x", "ab cd"] {
            assert_eq!(
                Vocabulary::supplied([word]),
                Err(FeatureError::UnusableWord {
                    word: word.into(),
                    position: 1
                })
            );
        }
    }

    #[test]
    fn one_word_too_many_is_an_error() {
        let mut learner = VocabularyLearner::with_limit(2);
        learner.observe("one two one").unwrap();
        assert_eq!(
            learner.observe("two three"),
            Err(FeatureError::TooManyWords { limit: 2 })
        );
    }

    proptest! {
        #[test]
        fn counts_sum_to_the_words_that_have_a_column(text in "[a-c ]{0,60}|\\PC{0,40}", n in 0usize..6) {
            let vocabulary = learned(&[&text, "aa bb cc"], n);
            let mut words = 0u64;
            tokens(&text, |_| words += 1);
            let mut out = Vec::new();
            let unknown = vocabulary.counts(&text, &mut out);
            prop_assert_eq!(out.iter().map(|&(_, v)| v).sum::<f64>() as u64 + unknown, words);
            prop_assert!(out.is_sorted_by(|a, b| a.0 < b.0));
        }
    }
}
