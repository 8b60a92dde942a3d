//! Generated news for trying text models out: short articles of five topics. An article takes a
//! third of its words from its own topic, some from another one, and the rest from words that all
//! topics share; so a model that counts topics' words is right most of the time and not always.

use crate::random::seeded;
use rand::RngExt;

/// The number of articles and the seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct News {
    /// How many to write.
    pub articles: usize,
    /// Fixes everything.
    pub seed: u64,
}

/// One article.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Article {
    /// What it is about.
    pub topic: &'static str,
    /// Its words, in lower case, in sentences.
    pub text: String,
}

/// The topics, each with the words that belong to it.
const TOPICS: [(&str, &str); 5] = [
    (
        "business",
        "market shares profit bank economy growth investors prices trade company sales stock oil dollar rates debt budget \
         firm deal merger exports retail inflation shareholders revenue factory airline currency loans earnings deficit \
         takeover industry analysts costs spending tax pension insurance workers",
    ),
    (
        "entertainment",
        "film music actor album award band singer director show star festival song comedy theatre audience concert screen \
         drama chart studio album role fans premiere musical television script artist guitar stage novel cast nominee \
         ceremony tour hit record video dance",
    ),
    (
        "politics",
        "minister government election party vote labour parliament policy campaign leader prime lords bill secretary law \
         cabinet opposition voters manifesto debate reform council lawyers rights asylum immigration speech mayor \
         constituency referendum committee ballot treaty peers spokesman majority",
    ),
    (
        "sport",
        "match team game player cup coach season win goal league injury champion final club referee striker rugby tennis \
         cricket defeat victory squad penalty stadium medal race olympic captain tournament set innings kick tackle \
         draw title training half round",
    ),
    (
        "tech",
        "software computer internet phone users network broadband mobile digital online data games technology security \
         virus web search device console music files email spam chip wireless download laptop browser server gadget \
         program hackers camera screen code website messages system",
    ),
];

/// Words of all topics.
const SHARED: &str = "the a of to in and for on that with said has was is it from by at will have be as year after new people more \
    last which time than over first could would against week world month made make says told still many some about up out \
    two three back before between under during while another next own part public group plan report number end early late \
    long day place work home way good high big small country london city house street national local";

impl News {
    /// Writes the articles, topics in turn, so that a set of five or more has them all.
    pub fn generate(&self) -> Vec<Article> {
        let mut random = seeded(self.seed);
        let lists: Vec<Vec<&str>> = TOPICS
            .iter()
            .map(|(_, words)| words.split_whitespace().collect())
            .collect();
        let shared: Vec<&str> = SHARED.split_whitespace().collect();
        // Numbers are drawn as 32 bits, so that they are the same on every platform.
        let mut below = |end: usize| random.random_range(0..end as u32) as usize;
        (0..self.articles)
            .map(|at| {
                let own = at % TOPICS.len();
                let other = below(TOPICS.len());
                let length = 30 + below(60);
                let mut text = String::new();
                for word in 0..length {
                    let list = match below(10) {
                        0..3 => &lists[own],
                        3 => &lists[other],
                        _ => &shared,
                    };
                    // The smaller of two draws makes the first words of a list the common ones.
                    let drawn = below(list.len()).min(below(list.len()));
                    if word > 0 {
                        text.push_str(if word % 12 == 0 { ". " } else { " " });
                    }
                    text.push_str(list[drawn]);
                }
                text.push('.');
                Article {
                    topic: TOPICS[own].0,
                    text,
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_fixes_the_articles_and_topics_come_in_turn() {
        let news = News {
            articles: 23,
            seed: 1,
        };
        let written = news.generate();
        assert_eq!(written, news.generate());
        assert_ne!(written, News { seed: 2, ..news }.generate());
        assert_eq!(written.len(), 23);
        assert!(
            written
                .iter()
                .zip(&written[5..])
                .all(|(a, b)| a.topic == b.topic)
        );
    }

    #[test]
    fn words_tell_the_topic_most_of_the_time_and_not_always() {
        let written = News {
            articles: 500,
            seed: 7,
        }
        .generate();
        let guess = |text: &str| {
            let score = |words: &str| {
                let list: Vec<&str> = words.split_whitespace().collect();
                text.split([' ', '.'])
                    .filter(|word| list.contains(word))
                    .count()
            };
            TOPICS
                .iter()
                .max_by_key(|(_, words)| score(words))
                .map(|(topic, _)| *topic)
        };
        let right = written
            .iter()
            .filter(|article| guess(&article.text) == Some(article.topic))
            .count();
        assert!((400..500).contains(&right), "{right} of 500");
    }
}
