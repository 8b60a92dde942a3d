//! Words as columns. A learned vocabulary keeps the commonest words of the rows and the number of documents that
//! hold each, so that forgetting a document can erase the word that only it held; a supplied one owes nothing to
//! any row and forgets for free.
//!
//! A learned vocabulary equals that of scikit-learn's `CountVectorizer(max_features=n)`, except where words tie for
//! the last places: here the alphabet decides, there it is not defined.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{FeatureError, names::NameIndex, tokens};

/// The distinct words that a [`VocabularyLearner`] counts unless told otherwise: about half a gigabyte.
pub const MAX_DISTINCT_WORDS: usize = 5_000_000;

/// The words that have a column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Vocabulary {
    words: NameIndex,
    /// Some words of the rows were left out, so that which ones were kept depends on all rows.
    chosen: bool,
}

impl Vocabulary {
    /// A vocabulary from elsewhere, with columns in the order given. A word that is empty, occurs twice or can never
    /// be found by [`tokens`](super::tokens()) is an error.
    pub fn supplied<W: Into<String>>(words: impl IntoIterator<Item = W>) -> Result<Self, FeatureError> {
        let words: Vec<String> = words.into_iter().map(Into::into).collect();
        for (at, word) in words.iter().enumerate() {
            if word.is_empty() {
                return Err(FeatureError::EmptyWord { position: at + 1 });
            }
            let mut whole = false;
            tokens(word, |token| whole = token == word);
            if !whole {
                return Err(FeatureError::UnusableWord { word: word.clone(), position: at + 1 });
            }
        }
        match NameIndex::supplied(words.clone()) {
            Ok(words) => Ok(Self { words, chosen: false }),
            Err(at) => Err(FeatureError::DuplicateWord { word: words[at].clone(), position: at + 1 }),
        }
    }

    /// The number of columns, those of erased words included.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// True without a single column.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the words came from rows.
    pub fn is_learned(&self) -> bool {
        self.words.is_counted()
    }

    /// Whether words of the rows had to be left out for room.
    pub fn is_chosen(&self) -> bool {
        self.chosen
    }

    /// The columns whose words have been erased.
    pub fn erased(&self) -> usize {
        self.words.erased()
    }

    /// The word of a column; none when it was erased.
    pub fn word(&self, column: u32) -> Option<&str> {
        self.words.name(column)
    }

    /// The column of a word.
    pub fn column(&self, word: &str) -> Option<u32> {
        self.words.column(word)
    }

    /// The documents that hold the word of a column; none for a supplied vocabulary.
    pub fn documents(&self, column: u32) -> Option<u64> {
        self.words.rows(column)
    }

    /// Replaces `out` by the word counts of a text, sorted by column, and returns how many words have no column.
    pub fn counts(&self, text: &str, out: &mut Vec<(u32, f64)>) -> u64 {
        out.clear();
        self.append_counts(text, 0, out)
    }

    /// Appends the counts with their columns moved up by `offset`.
    pub(crate) fn append_counts(&self, text: &str, offset: u32, out: &mut Vec<(u32, f64)>) -> u64 {
        let start = out.len();
        let mut unknown = 0;
        tokens(text, |word| match self.words.column(word) {
            Some(column) => out.push((offset + column, 1.0)),
            None => unknown += 1,
        });
        sum_duplicates(out, start);
        unknown
    }

    /// A document with these columns, each named once, is gone. A word that no document holds any more is erased;
    /// the columns of such words are returned.
    pub fn forget_document(&mut self, columns: impl IntoIterator<Item = u32>) -> Vec<u32> {
        columns.into_iter().filter(|&column| self.words.forget(column)).collect()
    }

    /// A document with these columns, each named once, is new. Erased words stay erased.
    pub fn learn_document(&mut self, columns: impl IntoIterator<Item = u32>) {
        columns.into_iter().for_each(|column| self.words.learn(column));
    }

    pub(crate) fn names_mut(&mut self) -> &mut NameIndex {
        &mut self.words
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
    /// A learner that holds at most `limit` distinct words. Nothing is pruned on the way, which would make the result
    /// depend on the order of the documents: one word more is an error that suggests hashing.
    pub fn with_limit(limit: usize) -> Self {
        Self { words: HashMap::new(), documents: 0, limit }
    }

    /// Counts one document.
    pub fn observe(&mut self, text: &str) -> Result<(), FeatureError> {
        self.documents += 1;
        let document = self.documents;
        let limit = self.limit;
        let words = &mut self.words;
        let mut full = false;
        tokens(text, |word| {
            if let Some(tally) = words.get_mut(word) {
                tally.total += 1;
                tally.documents += u64::from(tally.last != document);
                tally.last = document;
            } else if words.len() < limit {
                words.insert(word.into(), WordTally { total: 1, documents: 1, last: document });
            } else {
                full = true;
            }
        });
        if full { Err(FeatureError::TooManyWords { limit }) } else { Ok(()) }
    }

    /// The distinct words so far.
    pub fn distinct(&self) -> usize {
        self.words.len()
    }

    /// Keeps the `n` words with the highest total count, ties broken by the alphabet, as columns in alphabetical
    /// order (of Unicode code points).
    pub fn finish(self, n: usize) -> Result<Vocabulary, FeatureError> {
        let chosen = self.words.len() > n;
        let mut words: Vec<(Box<str>, WordTally)> = self.words.into_iter().collect();
        if chosen {
            words.select_nth_unstable_by(n, |(a, x), (b, y)| y.total.cmp(&x.total).then_with(|| a.cmp(b)));
            words.truncate(n);
        }
        words.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let words =
            NameIndex::counted(words.into_iter().map(|(word, tally)| (word.into(), tally.documents)))?;
        Ok(Vocabulary { words, chosen })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        assert_eq!(vocabulary.documents(0), Some(2), "`ant` occurs three times, in two documents");
        assert!(vocabulary.is_chosen() && !learned(&DOCUMENTS, 7).is_chosen());
    }

    #[test]
    fn the_last_document_takes_its_word_along() {
        let mut vocabulary = learned(&DOCUMENTS, 100);
        let mut row = Vec::new();
        vocabulary.counts(DOCUMENTS[3], &mut row);
        let columns = || row.iter().map(|&(j, _)| j);
        let dropped = vocabulary.forget_document(columns());
        assert_eq!(dropped, [5, 6], "`fox` and `gnu`, while `emu` is held by another document");
        assert_eq!((vocabulary.word(5), vocabulary.column("fox"), vocabulary.len()), (None, None, 7));
        assert_eq!((vocabulary.documents(4), vocabulary.erased()), (Some(1), 2));
        vocabulary.learn_document(columns());
        assert_eq!((vocabulary.documents(4), vocabulary.word(5)), (Some(2), None));
    }

    #[test]
    fn a_supplied_vocabulary_is_checked_and_forgets_for_free() {
        let mut supplied = Vocabulary::supplied(["zebra", "ant"]).unwrap();
        assert_eq!((supplied.column("zebra"), supplied.is_learned()), (Some(0), false));
        assert_eq!(supplied.forget_document([0, 1]), Vec::<u32>::new());
        assert_eq!(supplied.word(0), Some("zebra"));
        assert_eq!(Vocabulary::supplied(["ab", ""]), Err(FeatureError::EmptyWord { position: 2 }));
        assert_eq!(
            Vocabulary::supplied(["ab", "cd", "ab"]),
            Err(FeatureError::DuplicateWord { word: "ab".into(), position: 3 })
        );
        for word in ["Great", "don't", "x", "ab cd"] {
            assert_eq!(
                Vocabulary::supplied([word]),
                Err(FeatureError::UnusableWord { word: word.into(), position: 1 })
            );
        }
    }

    #[test]
    fn one_word_too_many_is_an_error() {
        let mut learner = VocabularyLearner::with_limit(2);
        learner.observe("one two one").unwrap();
        assert_eq!(learner.observe("two three"), Err(FeatureError::TooManyWords { limit: 2 }));
    }

    proptest! {
        #[test]
        fn counts_sum_to_the_words_that_have_a_column(text in "[a-c ]{0,60}|\\PC{0,40}", n in 0usize..6) {
            let mut vocabulary = learned(&[&text, "aa bb cc"], n);
            let mut words = 0u64;
            tokens(&text, |_| words += 1);
            let mut out = Vec::new();
            let unknown = vocabulary.counts(&text, &mut out);
            prop_assert_eq!(out.iter().map(|&(_, v)| v).sum::<f64>() as u64 + unknown, words);
            prop_assert!(out.is_sorted_by(|a, b| a.0 < b.0));
            vocabulary.forget_document(out.iter().map(|&(j, _)| j));
            let rest = ["aa", "bb", "cc"].iter().filter(|w| vocabulary.column(w).is_some()).count();
            prop_assert_eq!(rest, vocabulary.len() - vocabulary.erased());
        }
    }
}
