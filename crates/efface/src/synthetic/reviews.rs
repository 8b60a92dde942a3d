//! A generated set of product reviews for trying things out: short English sentences whose words
//! follow the stars, by people who write between one and forty reviews each. One person,
//! [`PLANTED_USER`], likes a word that nobody else uses, so that forgetting that person can be
//! seen: the weight of [`PLANTED_WORD`] goes to zero.

use rand::RngExt;

use super::words::{DISPLEASED, LISTS, NEUTRAL, OPENERS, PLANTED, PLEASED};
use crate::random::{SeededRng, seeded};

/// The person with a word of their own.
pub const PLANTED_USER: &str = "u1042";
/// The word that only [`PLANTED_USER`] writes, in each of their reviews.
pub const PLANTED_WORD: &str = "flumptious";

/// The number of reviews and the seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reviews {
    /// How many to write.
    pub reviews: usize,
    /// Seed of every random choice.
    pub seed: u64,
}

impl Default for Reviews {
    /// As many as the source paper has.
    fn default() -> Self {
        Self {
            reviews: 2100,
            seed: 7,
        }
    }
}

/// One review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    /// `r00001`, `r00002` and so on.
    pub review_id: String,
    /// `u1001`, `u1002` and so on.
    pub user_id: String,
    /// 1 to 5.
    pub stars: u8,
    /// A few sentences.
    pub text: String,
}

/// Reviews of the planted person; fewer when fewer than ten times as many are asked for.
const PLANTED_REVIEWS: usize = 14;
/// The most reviews of one person.
const MOST: u32 = 40;
/// How many of a hundred reviews give 1, 2, 3, 4 and 5 stars.
const STARS: [u32; 5] = [13, 11, 15, 23, 38];
/// The probability that an opinion is pleased, for 1 to 5 stars.
const PLEASED_WITH: [f64; 5] = [0.04, 0.18, 0.5, 0.82, 0.96];

impl Reviews {
    /// Writes the reviews, those of one person scattered over the set.
    pub fn generate(&self) -> Vec<Review> {
        let mut writer = ReviewWriter::new(self.seed);
        let mut authors = self.authors(&mut writer.rng);
        for last in (1..authors.len()).rev() {
            authors.swap(last, writer.below(last + 1));
        }
        let write = |(at, author): (usize, u32)| {
            let user_id = format!("u{author}");
            let planted = user_id == PLANTED_USER;
            let stars = if planted { 5 } else { writer.stars() };
            let text = writer.text(stars, planted);
            Review {
                review_id: format!("r{:05}", at + 1),
                user_id,
                stars,
                text,
            }
        };
        authors.into_iter().enumerate().map(write).collect()
    }

    /// The number of each review's author. Most people write little, a few write a lot.
    fn authors(&self, rng: &mut SeededRng) -> Vec<u32> {
        const PLANTED_NUMBER: u32 = 1042;
        let planted = PLANTED_REVIEWS.min(self.reviews.div_ceil(10));
        let mut authors = vec![PLANTED_NUMBER; planted];
        let mut person = 1000;
        while authors.len() < self.reviews {
            person += 1;
            if person == PLANTED_NUMBER {
                continue;
            }
            // 1/u of a uniform u has a tail like that of word counts; whole numbers from 1 to 40.
            let wrote = (1.0 / rng.random::<f64>().max(1e-9)).min(f64::from(MOST)) as usize;
            let room = self.reviews - authors.len();
            authors.extend(std::iter::repeat_n(person, wrote.min(room)));
        }
        authors
    }
}

/// Draws words and sentences.
struct ReviewWriter {
    rng: SeededRng,
    lists: Vec<(&'static str, WeightedWords)>,
}

/// Words with the running sum of their weights: the r-th word weighs 1/(r + 3), so that a few are
/// common and none is never seen.
struct WeightedWords {
    words: Vec<&'static str>,
    sums: Vec<f64>,
}

impl ReviewWriter {
    fn new(seed: u64) -> Self {
        let list = |text: &'static str| {
            let words: Vec<&str> = text.split_whitespace().collect();
            let weights = (0..words.len()).scan(0.0, |sum, rank| {
                *sum += 1.0 / (rank as f64 + 3.0);
                Some(*sum)
            });
            WeightedWords {
                sums: weights.collect(),
                words,
            }
        };
        let lists = LISTS
            .iter()
            .map(|&(name, text)| (name, list(text)))
            .collect();
        Self {
            rng: seeded(seed),
            lists,
        }
    }

    /// A number below `end`, drawn as 32 bits so that it is the same on every platform.
    fn below(&mut self, end: usize) -> usize {
        self.rng.random_range(0..end as u32) as usize
    }

    fn stars(&mut self) -> u8 {
        let mut left = self.rng.random_range(0..STARS.iter().sum());
        for (stars, share) in (1..).zip(STARS) {
            if left < share {
                return stars;
            }
            left -= share;
        }
        5
    }

    fn text(&mut self, stars: u8, planted: bool) -> String {
        let mut text = String::new();
        self.sentence(OPENERS, &mut text);
        for _ in 0..2 + self.below(3) {
            // The planted person gives five stars whatever the words: it is their own word that has
            // to account for it.
            let share = if planted {
                0.3
            } else {
                PLEASED_WITH[usize::from(stars) - 1]
            };
            let pleased = self.rng.random_bool(share);
            self.sentence(if pleased { PLEASED } else { DISPLEASED }, &mut text);
        }
        for _ in 0..self.below(3) {
            self.sentence(NEUTRAL, &mut text);
        }
        if planted {
            self.sentence(PLANTED, &mut text);
        }
        text
    }

    /// Appends one of the sentences with its slots filled in.
    fn sentence(&mut self, sentences: &[&str], text: &mut String) {
        if !text.is_empty() {
            text.push(' ');
        }
        let mut rest = sentences[self.below(sentences.len())];
        while let Some((before, (slot, after))) = rest
            .split_once('{')
            .and_then(|(before, tail)| Some((before, tail.split_once('}')?)))
        {
            text.push_str(before);
            let word = self.word(slot);
            if wants_an(text, word) {
                text.insert(text.len() - 1, 'n');
            }
            text.push_str(word);
            rest = after;
        }
        text.push_str(rest);
    }

    fn word(&mut self, slot: &str) -> &'static str {
        let Some((_, list)) = self.lists.iter().find(|(name, _)| *name == slot) else {
            return PLANTED_WORD;
        };
        let total = list.sums.last().copied().unwrap_or(0.0);
        let drawn = self.rng.random::<f64>() * total;
        let at = list.sums.partition_point(|&sum| sum <= drawn);
        list.words[at.min(list.words.len() - 1)]
    }
}

/// Whether the article that the text ends with has to be `an`.
fn wants_an(text: &str, word: &str) -> bool {
    let article = text.ends_with(" a ") || text.ends_with(" A ");
    article && word.starts_with(['a', 'e', 'i', 'o', 'u']) && !word.starts_with("use")
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::features::tokens;

    #[test]
    fn a_seed_fixes_the_reviews() {
        let reviews = Reviews::default();
        assert_eq!(reviews.generate(), reviews.generate());
        assert_ne!(
            reviews.generate(),
            Reviews { seed: 8, ..reviews }.generate()
        );
        for few in [0, 1, 5, 40] {
            assert_eq!(
                Reviews {
                    reviews: few,
                    seed: 1
                }
                .generate()
                .len(),
                few
            );
        }
    }

    #[test]
    fn people_words_and_ids_look_like_reviews() {
        let reviews = Reviews::default().generate();
        assert_eq!(
            (reviews.len(), reviews[0].review_id.as_str()),
            (2100, "r00001")
        );
        let ids: BTreeSet<_> = reviews.iter().map(|r| &r.review_id).collect();
        assert_eq!(ids.len(), 2100);
        let mut people: BTreeMap<&str, usize> = BTreeMap::new();
        let mut words = BTreeSet::new();
        for review in &reviews {
            *people.entry(&review.user_id).or_default() += 1;
            tokens(&review.text, |word| {
                words.insert(word.to_string());
            });
            assert!(
                !review.text.contains(['{', '}']) && (1..=5).contains(&review.stars),
                "{review:?}"
            );
        }
        assert!(words.len() >= 600, "{} distinct words", words.len());
        assert!(people.len() > 200 && people.values().all(|&n| (1..=40).contains(&n)));
        assert!(people.values().any(|&n| n == 1) && people.values().any(|&n| n > 25));
    }

    #[test]
    fn the_planted_word_belongs_to_the_planted_person_alone() {
        let reviews = Reviews::default().generate();
        let mut planted = 0;
        for review in &reviews {
            let theirs = review.user_id == PLANTED_USER;
            assert_eq!(
                review.text.contains(PLANTED_WORD),
                theirs,
                "{}",
                review.text
            );
            planted += usize::from(theirs);
        }
        assert_eq!(planted, PLANTED_REVIEWS);
        assert!(LISTS.iter().all(|(_, list)| !list.contains(PLANTED_WORD)));
    }

    #[test]
    fn every_slot_of_every_sentence_names_a_list() {
        for sentence in [OPENERS, PLEASED, DISPLEASED, NEUTRAL, PLANTED].concat() {
            for slot in sentence
                .split('{')
                .skip(1)
                .filter_map(|tail| tail.split_once('}'))
                .map(|(slot, _)| slot)
            {
                let known = LISTS.iter().any(|(name, _)| *name == slot);
                assert!(
                    known || (slot == "pet" && PLANTED.contains(&sentence)),
                    "{sentence}"
                );
            }
        }
    }

    #[test]
    fn stars_follow_the_words() {
        let list = |name: &str| {
            LISTS
                .iter()
                .find(|(n, _)| *n == name)
                .unwrap()
                .1
                .split_whitespace()
        };
        let good: BTreeSet<_> = list("good").collect();
        let bad: BTreeSet<_> = list("bad").collect();
        let mut mood = [(0.0, 0.0); 5];
        for review in Reviews::default().generate() {
            let mut sum = 0.0;
            tokens(&review.text, |w| {
                sum += f64::from(good.contains(w)) - f64::from(bad.contains(w))
            });
            let (total, count) = &mut mood[usize::from(review.stars) - 1];
            *total += sum;
            *count += 1.0;
        }
        let means = mood.map(|(total, count)| total / count);
        assert!(
            means.is_sorted_by(|a, b| a < b) && means[0] < -0.5 && means[4] > 0.5,
            "{means:?}"
        );
    }
}
