//! Word vectors: random, or read from GloVe text or from a list of words beside half-precision
//! numbers.
//!
//! Ids are numbers from 0: [`ABSENT`] is the padding behind a text in a batch of an exported
//! network and stands in no row, [`UNKNOWN`] is shared by every word without a vector, the words
//! follow. Readers take anything readable, stop at a limit and name the place of what they refuse.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, Read};

use efface::features::{VocabularyLearner, tokens};
use efface::random::seeded;
use rand_distr::{Distribution, Normal};

use crate::error::{Error, Result};

/// The padding behind a text, where texts of unequal length lie in one rectangle.
pub const ABSENT: u32 = 0;
/// A word without a vector of its own.
pub const UNKNOWN: u32 = 1;
/// The id of the first word.
pub(crate) const FIRST_WORD: usize = 2;
/// An id is a u32.
const MOST_WORDS: usize = u32::MAX as usize - FIRST_WORD;
/// Wider vectors than this are a mistake in the file.
const WIDEST: usize = 4096;
/// A longer line than this is not one word and its numbers.
const LONGEST_LINE: u64 = 1 << 20;

/// Words and their vectors.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    words: Vec<String>,
    ids: HashMap<String, u32>,
    width: usize,
    /// One vector after the other, [`ABSENT`] and [`UNKNOWN`] first.
    table: Vec<f32>,
    /// Whether training changes the vectors.
    pub trained: bool,
    /// Whether words and vectors come from elsewhere, so that no row of this model is in them.
    pub public: bool,
}

fn refuse<T>(place: impl Into<String>, reason: impl Into<String>) -> Result<T> {
    Err(Error::Vectors {
        place: place.into(),
        reason: reason.into(),
    })
}

impl Embedding {
    /// Words with their vectors, one after the other. The unknown word has the mean of all vectors.
    pub fn new(words: Vec<String>, vectors: Vec<f32>, width: usize) -> Result<Self> {
        if width == 0 || width > WIDEST {
            return refuse(
                "the width",
                format!("{width} numbers a word; 1 to {WIDEST} are accepted"),
            );
        }
        if words.is_empty() || words.len() > MOST_WORDS {
            return refuse(
                "the words",
                format!("{} words; 1 to {MOST_WORDS} are accepted", words.len()),
            );
        }
        if vectors.len() != words.len() * width {
            return refuse(
                "the numbers",
                format!(
                    "{} where {} words of {width} need {}",
                    vectors.len(),
                    words.len(),
                    words.len() * width
                ),
            );
        }
        if let Some(at) = vectors.iter().position(|value| !value.is_finite()) {
            return refuse(
                format!("word {}", at / width + 1),
                format!("{} is not finite", vectors[at]),
            );
        }
        let mut table = vec![0.0; FIRST_WORD * width];
        for (j, mean) in table[width..].iter_mut().enumerate() {
            let sum: f64 = vectors
                .iter()
                .skip(j)
                .step_by(width)
                .map(|&value| f64::from(value))
                .sum();
            *mean = (sum / words.len() as f64) as f32;
        }
        table.extend_from_slice(&vectors);
        let mut ids = HashMap::with_capacity(words.len());
        for (at, word) in words.iter().enumerate() {
            // The first of two equal words is the commoner one in lists sorted by count.
            ids.entry(word.clone()).or_insert((at + FIRST_WORD) as u32);
        }
        Ok(Self {
            words,
            ids,
            width,
            table,
            trained: false,
            public: true,
        })
    }

    /// Random vectors of variance 1/10 for the given words, to be trained.
    pub fn random(words: Vec<String>, width: usize, seed: u64) -> Result<Self> {
        let mut random = seeded(seed);
        let Ok(normal) = Normal::new(0.0f32, 0.1f32.sqrt()) else {
            return refuse("the numbers", "no normal distribution of variance 0.1");
        };
        let count = words.len().saturating_mul(width.min(WIDEST));
        let vectors = (0..count).map(|_| normal.sample(&mut random)).collect();
        let made = Self::new(words, vectors, width)?;
        Ok(Self {
            trained: true,
            public: false,
            ..made
        })
    }

    /// The commonest words of some texts, at most `most`. They are learned from the texts: what was
    /// chosen stays chosen when a text leaves.
    pub fn words_of<'a>(
        texts: impl IntoIterator<Item = &'a str>,
        most: usize,
    ) -> Result<Vec<String>> {
        let mut learner = VocabularyLearner::default();
        for text in texts {
            learner.observe(text).map_err(efface::Error::from)?;
        }
        let vocabulary = learner.finish(most).map_err(efface::Error::from)?;
        Ok((0..vocabulary.len() as u32)
            .filter_map(|at| vocabulary.word(at))
            .map(str::to_string)
            .collect())
    }

    /// Reads GloVe text: a word and its numbers a line, parted by blanks. A first line of two whole
    /// numbers, as word2vec writes it, is skipped. At most `most` words are read.
    pub fn read_glove(reader: impl BufRead, most: usize) -> Result<Self> {
        let mut reader = reader;
        let mut words = Vec::new();
        let mut vectors = Vec::new();
        let mut width = None;
        let mut line = Vec::new();
        for number in 1usize.. {
            line.clear();
            let read = (&mut reader)
                .take(LONGEST_LINE)
                .read_until(b'\n', &mut line);
            let place = || format!("line {number}");
            match read {
                Err(error) => return refuse(place(), format!("cannot be read: {error}")),
                Ok(0) => break,
                Ok(read) if read as u64 == LONGEST_LINE => {
                    return refuse(
                        place(),
                        format!("longer than {LONGEST_LINE} bytes; is this GloVe text?"),
                    );
                }
                Ok(_) if words.len() == most => break,
                Ok(_) => (),
            }
            let Ok(text) = std::str::from_utf8(&line) else {
                return refuse(
                    place(),
                    "not UTF-8; write the file as UTF-8 text, or read it as half-precision numbers",
                );
            };
            let text = text.trim_end_matches(['\n', '\r', ' ']);
            let fields: Vec<&str> = text.split(' ').collect();
            if number == 1
                && fields.len() == 2
                && fields.iter().all(|field| field.parse::<u64>().is_ok())
            {
                continue;
            }
            if text.is_empty() {
                return refuse(place(), "empty; every line is a word and its numbers");
            }
            let width = *width.get_or_insert(fields.len() - 1);
            if fields.len() < width + 1 || width == 0 || width > WIDEST {
                let found = fields.len() - 1;
                return refuse(
                    place(),
                    format!("{found} numbers where {} were expected", width.max(1)),
                );
            }
            // Some GloVe words hold blanks: the numbers are the last fields.
            let (word, numbers) = fields.split_at(fields.len() - width);
            for field in numbers {
                match field.parse::<f32>() {
                    Ok(value) if value.is_finite() => vectors.push(value),
                    _ => {
                        return refuse(
                            place(),
                            format!("one of its {width} numbers is not a finite number"),
                        );
                    }
                }
            }
            words.push(word.join(" "));
        }
        let Some(width) = width else {
            return refuse("the file", "it holds no words");
        };
        Self::new(words, vectors, width)
    }

    /// Reads a word a line, and their vectors as half-precision little-endian numbers without a
    /// header.
    pub fn read_half(words: impl Read, numbers: impl Read, width: usize) -> Result<Self> {
        if width == 0 || width > WIDEST {
            return refuse(
                "the width",
                format!("{width} numbers a word; 1 to {WIDEST} are accepted"),
            );
        }
        let limit = 1 << 30;
        let mut text = Vec::new();
        let read = words.take(limit).read_to_end(&mut text);
        if let Err(error) = read {
            return refuse("the words", format!("cannot be read: {error}"));
        }
        let Ok(text) = String::from_utf8(text) else {
            return refuse("the words", "not UTF-8; are the two files exchanged?");
        };
        let words: Vec<String> = text.lines().map(str::to_string).collect();
        let expected = words.len() * width * 2;
        let mut bytes = Vec::new();
        if let Err(error) = numbers.take(expected as u64 + 1).read_to_end(&mut bytes) {
            return refuse("the numbers", format!("cannot be read: {error}"));
        }
        if bytes.len() != expected {
            let more = if bytes.len() > expected {
                "more"
            } else {
                "fewer"
            };
            return refuse(
                "the numbers",
                format!(
                    "{more} bytes than the {expected} that {} words of {width} half-precision numbers need: \
                     the width is wrong, or the file was cut",
                    words.len()
                ),
            );
        }
        let vectors = bytes
            .as_chunks::<2>()
            .0
            .iter()
            .map(|pair| half(u16::from_le_bytes(*pair)))
            .collect();
        Self::new(words, vectors, width)
    }

    /// Sets whether training changes the vectors. Vectors that training changed hold something of
    /// the rows.
    pub fn trained(self, trained: bool) -> Self {
        Self { trained, ..self }
    }

    /// Removes the names of some words. Their vectors keep their places, and no text finds them.
    pub(crate) fn remove_names(&mut self, unused: &HashSet<u32>) {
        for (at, word) in self.words.iter_mut().enumerate() {
            if unused.contains(&((at + FIRST_WORD) as u32)) {
                word.clear();
            }
        }
        self.ids.retain(|_, id| !unused.contains(id));
    }

    /// Returns the ids of all words that are not among `used`, with that of the unknown word.
    pub fn unused(&self, used: &HashSet<u32>) -> HashSet<u32> {
        (UNKNOWN..self.id_count() as u32)
            .filter(|id| !used.contains(id))
            .collect()
    }

    /// The numbers of a word's vector.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The words, in the order of their ids.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// The vectors of all ids, one after the other.
    pub(crate) fn table(&self) -> &[f32] {
        &self.table
    }

    /// How many ids there are, [`ABSENT`] and [`UNKNOWN`] included.
    pub(crate) fn id_count(&self) -> usize {
        self.words.len() + FIRST_WORD
    }

    pub(crate) fn set_table(&mut self, table: Vec<f32>) -> Result<()> {
        if table.len() != self.table.len() || table.iter().any(|value| !value.is_finite()) {
            return Err(Error::Damaged(
                "its word vectors do not fit its words".into(),
            ));
        }
        self.table = table;
        Ok(())
    }

    /// The ids of a text's words, at most `most`, and whether there were more.
    pub fn ids(&self, text: &str, most: usize) -> (Vec<u32>, bool) {
        let mut ids = Vec::new();
        let mut more = false;
        tokens(text, |word| {
            if ids.len() < most {
                ids.push(self.ids.get(word).copied().unwrap_or(UNKNOWN));
            } else {
                more = true;
            }
        });
        (ids, more)
    }
}

/// A half-precision number. Subnormals, infinities and NaN included.
fn half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f32::from(bits & 0x3ff);
    match exponent {
        0 => sign * fraction * 2f32.powi(-24),
        31 if fraction == 0.0 => sign * f32::INFINITY,
        31 => f32::NAN,
        _ => sign * (1.0 + fraction / 1024.0) * 2f32.powi(exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_numbers() {
        for (bits, value) in [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0001, 5.960_464_5e-8),
            (0x3555, 0.333_251_95),
        ] {
            assert_eq!(half(bits), value);
        }
        assert!(half(0x7c01).is_nan() && half(0xfc00) == f32::NEG_INFINITY);
    }

    #[test]
    fn glove_text_and_its_faults() {
        let read = |text: &[u8]| Embedding::read_glove(text, 10);
        let good = read(b"2 3\nthe 0.5 1 2\ncat -1 0 1e-1\n").unwrap();
        assert_eq!((good.width(), good.words().len()), (3, 2));
        assert_eq!(
            good.ids("The cat sat on the CAT", 5),
            (vec![2, 3, 1, 1, 2], true)
        );
        assert_eq!(good.table()[3..6], [-0.25, 0.5, 1.05]);
        for (bytes, says) in [
            (
                &b"the 1 2\ncat 1\n"[..],
                "line 2: 1 numbers where 2 were expected",
            ),
            (b"the 1 x\n", "line 1: one of its 2 numbers"),
            (b"the 1 nan\n", "line 1"),
            (b"\xff\xfe1\n", "line 1: not UTF-8"),
            (b"", "holds no words"),
            (b"the\n", "line 1: 0 numbers"),
        ] {
            let error = read(bytes).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn names_out_of_use_go_and_places_stay() {
        let words = ["the", "secret", "cat"].map(String::from).to_vec();
        let all = Embedding::random(words, 2, 1).unwrap();
        let mut left = all.clone();
        left.remove_names(&left.unused(&HashSet::from([2, 4])));
        assert_eq!(left.words(), ["the", "", "cat"]);
        assert_eq!(
            (
                all.ids("the secret cat", 9).0,
                left.ids("the secret cat", 9).0
            ),
            (vec![2, 3, 4], vec![2, 1, 4])
        );
        assert_eq!(
            (left.table(), left.public, left.trained),
            (all.table(), false, true)
        );
    }

    #[test]
    fn half_files_and_their_faults() {
        let numbers = [0x00u8, 0x3c, 0x00, 0xc0];
        let good = Embedding::read_half(&b"the\ncat\n"[..], &numbers[..], 1).unwrap();
        assert_eq!(good.table(), [0.0, -0.5, 1.0, -2.0]);
        let error = Embedding::read_half(&b"the\ncat\n"[..], &numbers[..], 2)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("the width is wrong, or the file was cut"),
            "{error}"
        );
        let error = Embedding::read_half(&numbers[..], &b"the\ncat\n"[..], 1)
            .unwrap_err()
            .to_string();
        assert!(error.contains("exchanged"), "{error}");
    }
}
