//! New texts from old ones: a word replaced by a synonym, a word left out, or two words in each
//! other's place. This is how the source paper makes its hundred synthetic news articles.
//!
//! What stands between words stays where it is, and so do capitals: a word that comes to stand
//! first in a sentence takes over the capital of the one that stood there. A text of two words or
//! more never comes back unchanged. A seed and the number of a text fix the result.

use std::ops::Range;

use rand::RngExt;
use rand::seq::SliceRandom;

use super::{FeatureError, Synonyms};
use crate::random::{SeededRng, seeded};

/// What was done to a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextAlteration {
    /// A word was replaced by a synonym.
    Synonym,
    /// A word was left out.
    Deletion,
    /// Two words changed places.
    Order,
}

/// A new text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlteredText {
    /// The text.
    pub text: String,
    /// What was done to it, in order; nothing where a text of one word has no synonym.
    pub alterations: Vec<TextAlteration>,
}

/// Makes new texts.
#[derive(Debug, Clone, Copy)]
pub struct TextAugmenter<'a> {
    synonyms: &'a Synonyms,
    changes: usize,
    seed: u64,
}

impl<'a> TextAugmenter<'a> {
    /// One change a text.
    pub fn new(synonyms: &'a Synonyms, seed: u64) -> Self {
        Self {
            synonyms,
            changes: 1,
            seed,
        }
    }

    /// How many changes each text gets; at least 1.
    pub fn changes(self, changes: usize) -> Self {
        Self {
            changes: changes.max(1),
            ..self
        }
    }

    /// A new text from an old one. The same number gives the same text.
    pub fn alter(&self, text: &str, number: u64) -> AlteredText {
        let mut rng = seeded(self.seed);
        rng.set_stream(number);
        let mut altered = AlteredText {
            text: text.to_owned(),
            alterations: Vec::new(),
        };
        for _ in 0..self.changes {
            self.once(&mut altered, &mut rng);
        }
        // Several changes may undo each other, as two words that change places twice do.
        if altered.text == text {
            self.delete(&mut altered, &mut rng);
        }
        altered
    }

    /// `count` new texts, each with the place of the one that it was made from: so a labelled set
    /// of 2,225 becomes one of 2,325. No text is taken twice before all were taken once; texts of
    /// fewer than two words are passed over.
    pub fn more<T: AsRef<str>>(
        &self,
        texts: &[T],
        count: usize,
    ) -> Result<Vec<(usize, String)>, FeatureError> {
        let mut usable: Vec<usize> = (0..texts.len())
            .filter(|at| words(texts[*at].as_ref()).nth(1).is_some())
            .collect();
        if usable.is_empty() && count > 0 {
            return Err(FeatureError::NothingToAlter { texts: texts.len() });
        }
        let mut rng = seeded(self.seed);
        // The numbers of texts use the streams from 0 on.
        rng.set_stream(u64::MAX);
        usable.shuffle(&mut rng);
        let sources = usable.iter().cycle().take(count).enumerate();
        Ok(sources
            .map(|(number, &at)| (at, self.alter(texts[at].as_ref(), number as u64).text))
            .collect())
    }

    fn once(&self, altered: &mut AlteredText, rng: &mut SeededRng) {
        let mut kinds = [
            TextAlteration::Synonym,
            TextAlteration::Deletion,
            TextAlteration::Order,
        ];
        kinds.shuffle(rng);
        for kind in kinds {
            let done = match kind {
                TextAlteration::Synonym => self.replace(altered, rng),
                TextAlteration::Deletion => self.delete(altered, rng),
                TextAlteration::Order => self.swap(altered, rng),
            };
            if done {
                return;
            }
        }
    }

    fn replace(&self, altered: &mut AlteredText, rng: &mut SeededRng) -> bool {
        let text = &altered.text;
        let known: Vec<Range<usize>> = words(text)
            .filter(|word| !self.synonyms.of(&text[word.clone()]).is_empty())
            .collect();
        let Some(word) = pick(&known, rng).cloned() else {
            return false;
        };
        let synonyms = self.synonyms.of(&text[word.clone()]);
        let Some(synonym) = pick(synonyms, rng) else {
            return false;
        };
        let written = cased(synonym, &text[word.clone()]);
        if written == text[word.clone()] {
            return false;
        }
        altered.text.replace_range(word, &written);
        altered.alterations.push(TextAlteration::Synonym);
        true
    }

    fn delete(&self, altered: &mut AlteredText, rng: &mut SeededRng) -> bool {
        let all: Vec<Range<usize>> = words(&altered.text).collect();
        if all.len() < 2 {
            return false;
        }
        let at = rng.random_range(0..all.len());
        let Range { start, end } = all[at].clone();
        // The blank after the word goes with it, or the one before it where none follows.
        let blanks = altered.text[end..]
            .chars()
            .take_while(|c| c.is_whitespace())
            .map(char::len_utf8)
            .sum::<usize>();
        let before = altered.text[..start]
            .chars()
            .next_back()
            .filter(|c| c.is_whitespace())
            .map_or(0, char::len_utf8);
        let capital = altered.text[start..end].to_owned();
        if blanks > 0 {
            altered.text.replace_range(start..end + blanks, "");
            // The word that moves up takes over the capital of the start of a sentence.
            let next = words(&altered.text).find(|word| word.start == start);
            if let Some(next) = next.filter(|_| begins_sentence(&altered.text[..start])) {
                let written = raised(&altered.text[next.clone()], &capital);
                altered.text.replace_range(next, &written);
            }
        } else {
            altered.text.replace_range(start - before..end, "");
        }
        altered.alterations.push(TextAlteration::Deletion);
        true
    }

    fn swap(&self, altered: &mut AlteredText, rng: &mut SeededRng) -> bool {
        let text = &altered.text;
        let all: Vec<Range<usize>> = words(text).collect();
        let differ = |at: &usize| {
            let a = &text[all[*at].clone()];
            let b = &text[all[at + 1].clone()];
            a.to_lowercase() != b.to_lowercase()
        };
        let places: Vec<usize> = (0..all.len().saturating_sub(1)).filter(differ).collect();
        let Some(&at) = pick(&places, rng) else {
            return false;
        };
        let a = all[at].clone();
        let b = all[at + 1].clone();
        let first = text[a.clone()].to_owned();
        let second = text[b.clone()].to_owned();
        let (to_first, to_second) = if begins_sentence(&text[..a.start]) && capitalised(&first) {
            (raised(&second, &first), lowered(&first))
        } else {
            (second, first)
        };
        let before = altered.text.clone();
        altered.text.replace_range(b, &to_second);
        altered.text.replace_range(a, &to_first);
        if altered.text == before {
            return false;
        }
        altered.alterations.push(TextAlteration::Order);
        true
    }
}

fn pick<'t, T>(from: &'t [T], rng: &mut SeededRng) -> Option<&'t T> {
    if from.is_empty() {
        None
    } else {
        from.get(rng.random_range(0..from.len()))
    }
}

/// The words of a text: runs of letters and digits, with hyphens and apostrophes inside.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + text[at..].find(char::is_alphanumeric)?;
        let mut end = start;
        let mut inside = text[start..].char_indices().peekable();
        while let Some((offset, c)) = inside.next() {
            let joins = matches!(c, '-' | '\'' | '’')
                && inside
                    .peek()
                    .is_some_and(|(_, next)| next.is_alphanumeric());
            if !c.is_alphanumeric() && !joins {
                break;
            }
            end = start + offset + c.len_utf8();
        }
        at = end;
        Some(start..end)
    })
}

/// Whether what comes after this begins a sentence.
fn begins_sentence(before: &str) -> bool {
    let last = before.trim_end_matches(|c: char| {
        c.is_whitespace() || matches!(c, '"' | '\'' | '“' | '(' | ')' | '”')
    });
    last.is_empty() || last.ends_with(['.', '!', '?'])
}

/// Whether a word has a capital in front and small letters behind; `I`, `BBC` and `iPod` keep what
/// they have.
fn capitalised(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next().is_some_and(char::is_uppercase)
        && letters.clone().next().is_some()
        && !letters.any(char::is_uppercase)
}

fn raised(word: &str, like: &str) -> String {
    if !like.chars().next().is_some_and(char::is_uppercase) {
        return word.to_owned();
    }
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

fn lowered(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(letters).collect()
    })
}

/// A word in the case of another: all capitals, a first capital, or as it is.
fn cased(word: &str, like: &str) -> String {
    let mut letters = like.chars().filter(|c| c.is_alphabetic());
    let many = letters.clone().count() > 1;
    if many && letters.all(char::is_uppercase) {
        word.to_uppercase()
    } else {
        raised(word, like)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table() -> Synonyms {
        Synonyms::built_in()
    }

    fn word_list(text: &str) -> Vec<String> {
        let mut list: Vec<String> = words(text).map(|word| text[word].to_lowercase()).collect();
        list.sort();
        list
    }

    #[test]
    fn words_keep_their_hyphens_and_leave_punctuation() {
        let text = "Don't stop -- the well-known 'end', e.g. 5.8bn!";
        let found: Vec<&str> = words(text).map(|word| &text[word]).collect();
        assert_eq!(
            found,
            [
                "Don't",
                "stop",
                "the",
                "well-known",
                "end",
                "e",
                "g",
                "5",
                "8bn"
            ]
        );
    }

    #[test]
    fn each_alteration_does_one_thing() {
        let synonyms = table();
        let text = "The BIG house, a quick (old) Car.";
        let mut seen = std::collections::HashSet::new();
        for number in 0..200 {
            let found = TextAugmenter::new(&synonyms, 1).alter(text, number);
            let [alteration] = found.alterations[..] else {
                panic!("{found:?}")
            };
            seen.insert(alteration);
            let old = word_list(text);
            let new = word_list(&found.text);
            match alteration {
                TextAlteration::Deletion => assert_eq!(new.len() + 1, old.len()),
                TextAlteration::Order => assert_eq!(new, old),
                TextAlteration::Synonym => {
                    assert_eq!(new.len(), old.len());
                    assert_eq!(old.iter().filter(|word| !new.contains(word)).count(), 1);
                }
            }
            assert!(found.text.starts_with(char::is_uppercase), "{}", found.text);
            assert!(
                found.text.contains("(") && found.text.contains(")") && found.text.ends_with('.')
            );
            assert!(!found.text.contains("  "), "{}", found.text);
        }
        assert_eq!(seen.len(), 3);
    }

    #[test]
    fn synonyms_take_over_the_case() {
        assert_eq!(cased("large", "BIG"), "LARGE");
        assert_eq!(cased("large", "Big"), "Large");
        assert_eq!(cased("large", "big"), "large");
        assert_eq!(cased("me", "I"), "Me");
    }

    #[test]
    fn a_set_grows_by_as_many_as_asked_for() {
        let synonyms = table();
        let texts: Vec<String> = (0..50)
            .map(|i| format!("story {i} about a big house"))
            .collect();
        let made = TextAugmenter::new(&synonyms, 3).more(&texts, 120).unwrap();
        assert_eq!(made.len(), 120);
        let taken = |range: std::ops::Range<usize>| {
            made[range]
                .iter()
                .map(|(at, _)| *at)
                .collect::<std::collections::HashSet<_>>()
                .len()
        };
        assert_eq!((taken(0..50), taken(50..100)), (50, 50));
        assert!(made.iter().all(|(at, text)| *text != texts[*at]));
        assert_eq!(
            made,
            TextAugmenter::new(&synonyms, 3).more(&texts, 120).unwrap()
        );
        assert_ne!(
            made,
            TextAugmenter::new(&synonyms, 4).more(&texts, 120).unwrap()
        );
        let told = TextAugmenter::new(&synonyms, 3)
            .more(&["one", ""], 1)
            .unwrap_err()
            .to_string();
        assert!(told.contains("2 texts"), "{told}");
        assert!(
            TextAugmenter::new(&synonyms, 3)
                .more(&["one"], 0)
                .unwrap()
                .is_empty()
        );
    }

    proptest! {
        #[test]
        fn a_text_of_two_words_always_changes(text in "\\PC{0,40}", changes in 1usize..5, number: u64) {
            let synonyms = table();
            let found = TextAugmenter::new(&synonyms, 9).changes(changes).alter(&text, number);
            prop_assert!(words(&text).count() < 2 || found.text != text);
            prop_assert!(words(&text).count() < 1 || words(&found.text).count() >= 1);
        }

        #[test]
        fn plain_words_too(text in "([aA]|big|Big|so|so-so|it's)( ([aA]|big|Big|so|so-so|it's)[.,]?){1,6}", number: u64) {
            let synonyms = table();
            prop_assert_ne!(&TextAugmenter::new(&synonyms, 9).changes(2).alter(&text, number).text, &text);
        }
    }
}
