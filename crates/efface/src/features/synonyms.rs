//! A table of synonyms, as a user supplies it: lines of `lemma`, `pos`, `sense`, `tagged`,
//! `synonyms` with tabs between, the synonyms with commas. Sense 1 is the commonest; `tagged` is 1
//! where the sense was seen in real text.
//!
//! Of a word's lines, those that were seen in real text count; of a word without one, its commonest
//! sense. Reading keeps one line and the words in memory, and refuses what is longer than any table
//! of a language.

use std::collections::HashMap;
use std::io::{BufRead, Read};

use super::FeatureError;

/// The longest line that is read: a longer one belongs to no table of synonyms.
const LONGEST_LINE: u64 = 64 << 10;
/// The most words of a table: more than any language has, so that a wrong file does not fill the
/// memory.
const MOST_BYTES: usize = 64 << 20;

/// A table of a few hundred common words, for callers that have none of their own.
const BUILT_IN: &str = include_str!("synonyms.txt");

/// Words and what may stand for them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Synonyms {
    words: HashMap<String, Vec<String>>,
}

/// A word on its way into the table: how good the lines so far were, and their synonyms.
struct SynonymEntry {
    rank: (bool, u32),
    synonyms: Vec<String>,
}

impl Synonyms {
    /// Reads a table. A first line that begins with `lemma` is a header.
    pub fn read(mut reader: impl BufRead) -> Result<Self, FeatureError> {
        let mut entries: HashMap<String, SynonymEntry> = HashMap::new();
        let mut line = Vec::new();
        let mut bytes = 0;
        let mut number = 0;
        loop {
            line.clear();
            number += 1;
            let fault = |what: &str| FeatureError::Synonyms {
                line: number,
                what: what.to_owned(),
            };
            let read = reader
                .by_ref()
                .take(LONGEST_LINE + 1)
                .read_until(b'\n', &mut line);
            if read.map_err(|cause| fault(&format!("it cannot be read: {cause}")))? == 0 {
                break;
            }
            if line.len() as u64 > LONGEST_LINE {
                return Err(fault(
                    "it has more than 65 536 bytes; is this a table of synonyms?",
                ));
            }
            let text = std::str::from_utf8(&line).map_err(|_| fault("it is not UTF-8"))?;
            let text = text.trim_end_matches(['\n', '\r']);
            let text = if number == 1 {
                text.trim_start_matches('\u{feff}')
            } else {
                text
            };
            if text.is_empty() || (number == 1 && text.starts_with("lemma\t")) {
                continue;
            }
            bytes += text.len();
            if bytes > MOST_BYTES {
                return Err(fault(
                    "the table has more than 64 MiB; leave out rare words",
                ));
            }
            let (lemma, rank, synonyms) = parsed(text).map_err(fault)?;
            let entry = entries.entry(lemma.to_lowercase()).or_insert(SynonymEntry {
                rank,
                synonyms: Vec::new(),
            });
            // All lines that were seen in real text are of one rank; the others have that of their
            // sense.
            if rank < entry.rank {
                *entry = SynonymEntry {
                    rank,
                    synonyms: Vec::new(),
                };
            }
            for synonym in synonyms.into_iter().filter(|_| rank == entry.rank) {
                let known = entry.synonyms.iter().any(|known| known == synonym);
                if !known && synonym.to_lowercase() != lemma.to_lowercase() {
                    entry.synonyms.push(synonym.to_owned());
                }
            }
        }
        let words = entries
            .into_iter()
            .map(|(word, entry)| (word, entry.synonyms));
        Ok(Self {
            words: words.filter(|(_, synonyms)| !synonyms.is_empty()).collect(),
        })
    }

    /// The table that comes with the library: everyday words, each with a few that may stand for
    /// it.
    pub fn built_in() -> Self {
        let mut words: HashMap<String, Vec<String>> = HashMap::new();
        for group in BUILT_IN
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            let group: Vec<&str> = group.split_whitespace().collect();
            for word in &group {
                let known = words.entry((*word).to_owned()).or_default();
                known.extend(
                    group
                        .iter()
                        .filter(|other| *other != word)
                        .map(|other| (*other).to_owned()),
                );
            }
        }
        Self { words }
    }

    /// What may stand for a word, whatever its case; nothing for an unknown word.
    pub fn of(&self, word: &str) -> &[String] {
        self.words
            .get(&word.to_lowercase())
            .map_or(&[], Vec::as_slice)
    }

    /// How many words it knows.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether it knows none.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }
}

type Line<'a> = (&'a str, (bool, u32), Vec<&'a str>);

/// A line in its parts; the rank is lower the better.
fn parsed(line: &str) -> Result<Line<'_>, &'static str> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [lemma, pos, sense, tagged, synonyms] = fields[..] else {
        return Err(
            "it must have five fields with tabs between: lemma, pos, sense, tagged, synonyms",
        );
    };
    if !is_word(lemma) {
        return Err("the lemma must be a word of letters, digits, hyphens and apostrophes");
    }
    if !matches!(pos, "n" | "v" | "a" | "r" | "s") {
        return Err("the part of speech must be n, v, a, s or r");
    }
    let sense: u32 = sense
        .parse()
        .map_err(|_| "the sense must be a number from 1")?;
    let tagged = match tagged {
        "1" => true,
        "0" => false,
        _ => return Err("tagged must be 0 or 1"),
    };
    let synonyms: Vec<&str> = synonyms.split(',').collect();
    if !synonyms.iter().all(|synonym| is_word(synonym)) {
        return Err("the synonyms must be words with commas between, and at least one");
    }
    Ok((
        lemma,
        if tagged { (false, 0) } else { (true, sense) },
        synonyms,
    ))
}

fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '-' | '\''))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Synonyms, FeatureError> {
        Synonyms::read(text.as_bytes())
    }

    #[test]
    fn lines_of_real_text_count_before_others() {
        let table = "lemma\tpos\tsense\ttagged\tsynonyms\nbuy\tn\t1\t0\tbargain,steal\nbuy\tv\t1\t1\tpurchase\n\
                     buy\tv\t2\t1\tbribe,purchase\nodd\ta\t2\t0\tstrange\nodd\ta\t1\t0\tOdd,peculiar\r\n";
        let found = read(table).unwrap();
        assert_eq!(found.of("Buy"), ["purchase", "bribe"]);
        assert_eq!(found.of("odd"), ["peculiar"]);
        assert_eq!((found.len(), found.of("nothing").len()), (2, 0));
    }

    #[test]
    fn bad_lines_are_named_by_number() {
        for (line, says) in [
            ("a\tn\t1\t0", "five fields"),
            ("\tn\t1\t0\tb", "the lemma"),
            ("a b\tn\t1\t0\tb", "the lemma"),
            ("a\tx\t1\t0\tb", "part of speech"),
            ("a\tn\tone\t0\tb", "the sense"),
            ("a\tn\t1\t2\tb", "tagged"),
            ("a\tn\t1\t0\t", "the synonyms"),
            ("a\tn\t1\t0\tb,,c", "the synonyms"),
        ] {
            let told = read(&format!("ok\tn\t1\t0\tfine\n{line}\n"))
                .unwrap_err()
                .to_string();
            assert!(
                told.contains("line 2") && told.contains(says),
                "{line}: {told}"
            );
        }
        let long = format!("a\tn\t1\t0\t{}", "b,".repeat(40_000));
        assert!(read(&long).unwrap_err().to_string().contains("65 536"));
        let told = Synonyms::read(&b"\xff\xfe\n"[..]).unwrap_err().to_string();
        assert!(told.contains("line 1") && told.contains("UTF-8"), "{told}");
    }

    #[test]
    fn the_built_in_table_is_sound() {
        let table = Synonyms::built_in();
        assert!(table.len() > 300, "{}", table.len());
        for group in BUILT_IN
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            let words: Vec<&str> = group.split_whitespace().collect();
            assert!(
                words.len() > 1 && words.iter().all(|w| is_word(w) && w.to_lowercase() == **w),
                "{group}"
            );
        }
        assert!(table.of("big").contains(&"large".to_owned()));
        assert!(
            table
                .words
                .iter()
                .all(|(word, synonyms)| !synonyms.is_empty() && !synonyms.contains(word))
        );
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_a_table_or_an_error(bytes: Vec<u8>) {
            let _ = Synonyms::read(bytes.as_slice());
        }

        #[test]
        fn any_fields_are_a_table_or_an_error(text in "([a-c\t,01n\n-]{0,60})") {
            let _ = read(&text);
        }
    }
}
