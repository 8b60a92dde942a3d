//! From a text to its words: single words, runs of words, or runs of characters, as scikit-learn's
//! `CountVectorizer` counts them.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::{FeatureError, stop_words::ENGLISH, tokens};

/// The longest run of words or characters that is counted as one.
pub const LONGEST_RUN: usize = 20;

/// What the words of a text are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StoredAnalyzer")]
pub struct TextAnalyzer {
    unit: TextUnit,
    least: usize,
    most: usize,
    stop_words: StopWords,
    #[serde(skip)]
    stopped: HashSet<String>,
}

/// What runs are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextUnit {
    /// Words, see [`tokens`](super::tokens()).
    #[default]
    Words,
    /// Characters, across words.
    Characters,
    /// Characters within words, each with a blank before and after it.
    CharactersInWords,
}

/// Words that are left out before runs are made.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopWords {
    /// None.
    #[default]
    None,
    /// Common English words, those that scikit-learn leaves out too.
    English,
    /// These.
    Listed(Vec<String>),
}

#[derive(Deserialize)]
struct StoredAnalyzer {
    unit: TextUnit,
    least: usize,
    most: usize,
    stop_words: StopWords,
}

impl TryFrom<StoredAnalyzer> for TextAnalyzer {
    type Error = FeatureError;

    fn try_from(stored: StoredAnalyzer) -> Result<Self, FeatureError> {
        Self::new(stored.unit, stored.least, stored.most, stored.stop_words)
    }
}

impl Default for TextAnalyzer {
    fn default() -> Self {
        Self {
            unit: TextUnit::Words,
            least: 1,
            most: 1,
            stop_words: StopWords::None,
            stopped: HashSet::new(),
        }
    }
}

impl TextAnalyzer {
    /// Runs of `least` to `most` units.
    ///
    /// # Errors
    /// The lengths are not 1 to 20 with the shorter first, or words are to be left out where
    /// characters are counted.
    pub fn new(
        unit: TextUnit,
        least: usize,
        most: usize,
        stop_words: StopWords,
    ) -> Result<Self, FeatureError> {
        if least == 0 || least > most || most > LONGEST_RUN {
            return Err(FeatureError::RunLengths {
                least,
                most,
                limit: LONGEST_RUN,
            });
        }
        if unit != TextUnit::Words && stop_words != StopWords::None {
            return Err(FeatureError::StoppedCharacters);
        }
        let stopped = match &stop_words {
            StopWords::None => HashSet::new(),
            StopWords::English => ENGLISH
                .split_ascii_whitespace()
                .map(str::to_owned)
                .collect(),
            StopWords::Listed(words) => words.iter().map(|word| word.to_lowercase()).collect(),
        };
        Ok(Self {
            unit,
            least,
            most,
            stop_words,
            stopped,
        })
    }

    /// Calls `visit` with each run of the text.
    pub fn each(&self, text: &str, mut visit: impl FnMut(&str)) {
        match self.unit {
            TextUnit::Words if self.most == 1 => tokens(text, |word| {
                if !self.stopped.contains(word) {
                    visit(word);
                }
            }),
            TextUnit::Words => self.each_run_of_words(text, visit),
            TextUnit::Characters => {
                let text = single_blanks(&text.to_lowercase());
                each_run_of_characters(&text, self.least, self.most, &mut visit);
            }
            TextUnit::CharactersInWords => {
                for word in text.to_lowercase().split_whitespace() {
                    self.each_run_in_word(&format!(" {word} "), &mut visit);
                }
            }
        }
    }

    fn each_run_of_words(&self, text: &str, mut visit: impl FnMut(&str)) {
        // The words one after another with a blank between them, so that a run of them is a piece
        // of one text.
        let mut joined = String::with_capacity(text.len());
        let mut bounds: Vec<(usize, usize)> = Vec::new();
        tokens(text, |word| {
            if !self.stopped.contains(word) {
                if !joined.is_empty() {
                    joined.push(' ');
                }
                let start = joined.len();
                joined.push_str(word);
                bounds.push((start, joined.len()));
            }
        });
        for length in self.least..=self.most {
            for run in bounds.windows(length) {
                visit(&joined[run[0].0..run[length - 1].1]);
            }
        }
    }

    /// scikit-learn counts a word that is shorter than a run once, as a whole.
    fn each_run_in_word(&self, padded: &str, visit: &mut impl FnMut(&str)) {
        let length = padded.chars().count();
        for run in self.least..=self.most {
            if run >= length {
                visit(padded);
                break;
            }
            each_run_of_characters(padded, run, run, visit);
        }
    }

    /// Whether a text of this word alone has the word among its runs, so that a supplied word can
    /// ever be found.
    pub(crate) fn finds(&self, word: &str) -> bool {
        let mut found = false;
        self.each(word, |run| found |= run == word);
        found
    }
}

/// Runs of white space of two or more become one blank; a single one stays what it is.
fn single_blanks(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut blanks = String::new();
    // The end counts as a character, so that the last blanks are seen to.
    for c in text.chars().map(Some).chain([None]) {
        match c {
            Some(c) if c.is_whitespace() => blanks.push(c),
            _ => {
                let several = blanks.chars().nth(1).is_some();
                out.push_str(if several { " " } else { &blanks });
                blanks.clear();
                out.extend(c);
            }
        }
    }
    out
}

fn each_run_of_characters(text: &str, least: usize, most: usize, visit: &mut impl FnMut(&str)) {
    let mut starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    starts.push(text.len());
    for length in least..=most {
        for run in starts.windows(length + 1) {
            visit(&text[run[0]..run[length]]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(unit: TextUnit, least: usize, most: usize, stop: StopWords, text: &str) -> Vec<String> {
        let mut out = Vec::new();
        TextAnalyzer::new(unit, least, most, stop)
            .unwrap()
            .each(text, |run| out.push(run.to_owned()));
        out
    }

    /// Oracle: scikit-learn, `CountVectorizer(analyzer, ngram_range, stop_words).build_analyzer()`.
    #[test]
    fn runs_equal_scikit_learn() {
        let words =
            |least, most, stop| runs(TextUnit::Words, least, most, stop, "The good, the BAD film");
        assert_eq!(
            words(1, 2, StopWords::None),
            [
                "the", "good", "the", "bad", "film", "the good", "good the", "the bad", "bad film"
            ]
        );
        assert_eq!(
            words(1, 2, StopWords::English),
            ["good", "bad", "film", "good bad", "bad film"]
        );
        assert_eq!(
            words(2, 2, StopWords::Listed(vec!["Film".into()])),
            ["the good", "good the", "the bad"]
        );
        assert_eq!(
            runs(TextUnit::Characters, 2, 3, StopWords::None, "aB  c"),
            ["ab", "b ", " c", "ab ", "b c"]
        );
        assert_eq!(
            runs(TextUnit::CharactersInWords, 2, 3, StopWords::None, "é ab"),
            [" é", "é ", " é ", " a", "ab", "b ", " ab", "ab "]
        );
        assert_eq!(
            runs(TextUnit::CharactersInWords, 4, 5, StopWords::None, "a"),
            [" a "]
        );
    }

    #[test]
    fn impossible_runs_are_refused() {
        for (least, most) in [(0, 1), (2, 1), (1, LONGEST_RUN + 1)] {
            let refused = TextAnalyzer::new(TextUnit::Words, least, most, StopWords::None);
            assert_eq!(
                refused,
                Err(FeatureError::RunLengths {
                    least,
                    most,
                    limit: LONGEST_RUN
                })
            );
        }
        let refused = TextAnalyzer::new(TextUnit::Characters, 1, 1, StopWords::English);
        assert_eq!(refused, Err(FeatureError::StoppedCharacters));
    }
}
