//! Hashed words: a word's column is its hash, so that nothing is learned from any row and
//! forgetting is free. The price is that two words can share a column and that a column has no
//! name.
//!
//! Columns agree with scikit-learn's `HashingVectorizer(n_features=buckets, alternate_sign=False,
//! norm=None)`: MurmurHash3 (32 bits, x86 variant, seed 0) of the word's UTF-8 bytes, read as a
//! signed number, `|hash| mod buckets`.

use serde::{Deserialize, Serialize};

use super::{FeatureError, TextAnalyzer, vocabulary::sum_duplicates};

/// Words by hash instead of by vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StoredHashing")]
pub struct HashedWords {
    buckets: u32,
}

#[derive(Deserialize)]
struct StoredHashing {
    buckets: u64,
}

impl TryFrom<StoredHashing> for HashedWords {
    type Error = FeatureError;

    fn try_from(stored: StoredHashing) -> Result<Self, FeatureError> {
        Self::new(stored.buckets)
    }
}

impl HashedWords {
    /// The most buckets: as many as `|hash|` can tell apart.
    pub const MAX_BUCKETS: u64 = 1 << 31;

    /// Hashing into `buckets` columns, 1 to 2³¹.
    pub fn new(buckets: u64) -> Result<Self, FeatureError> {
        match u32::try_from(buckets) {
            Ok(few) if few > 0 && buckets <= Self::MAX_BUCKETS => Ok(Self { buckets: few }),
            _ => Err(FeatureError::Buckets { found: buckets }),
        }
    }

    /// The number of columns.
    pub fn buckets(&self) -> u32 {
        self.buckets
    }

    /// The column of a word.
    pub fn bucket(&self, word: &str) -> u32 {
        murmur3_32(word.as_bytes()).cast_signed().unsigned_abs() % self.buckets
    }

    /// Replaces `out` by the word counts of a text, sorted by column.
    pub fn counts(&self, text: &str, out: &mut Vec<(u32, f64)>) {
        out.clear();
        self.append_counts(&TextAnalyzer::default(), text, 0, out);
    }

    /// Appends the counts with their columns moved up by `offset`.
    pub(crate) fn append_counts(
        &self,
        analyzer: &TextAnalyzer,
        text: &str,
        offset: u32,
        out: &mut Vec<(u32, f64)>,
    ) {
        let start = out.len();
        analyzer.each(text, |word| out.push((offset + self.bucket(word), 1.0)));
        sum_duplicates(out, start);
    }
}

/// MurmurHash3_x86_32 with seed 0.
fn murmur3_32(bytes: &[u8]) -> u32 {
    const C1: u32 = 0xcc9e_2d51;
    const C2: u32 = 0x1b87_3593;
    let scramble = |k: u32| k.wrapping_mul(C1).rotate_left(15).wrapping_mul(C2);

    let (blocks, tail) = bytes.as_chunks::<4>();
    let mut hash = 0u32;
    for &block in blocks {
        hash = (hash ^ scramble(u32::from_le_bytes(block))).rotate_left(13);
        hash = hash.wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    let rest = tail
        .iter()
        .rev()
        .fold(0u32, |k, &b| (k << 8) | u32::from(b));
    hash ^= scramble(rest);

    // The length enters modulo 2³², as in the reference implementation.
    hash ^= bytes.len() as u32;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Oracle: scikit-learn 1.9.1, `sklearn.utils.murmurhash3_32(word.encode(), seed=0)`.
    #[test]
    fn hashes_equal_scikit_learn() {
        for (word, hash) in [
            ("", 0),
            ("a", 1_009_084_850),
            ("ab", -1_681_926_305),
            ("abc", -1_277_324_294),
            ("abcd", 1_139_631_978),
            ("hello", 613_153_351),
            ("foobar", -1_530_604_355),
            ("café", 605_818_632),
            ("the quick brown fox", 519_850_996),
            ("東京", -1_765_863_102),
        ] {
            assert_eq!(murmur3_32(word.as_bytes()).cast_signed(), hash, "{word}");
        }
    }

    /// Oracle: scikit-learn 1.9.1, `HashingVectorizer(n_features, alternate_sign=False,
    /// norm=None)`.
    #[test]
    fn columns_equal_scikit_learn() {
        let words = ["hello", "foobar", "café", "abcd", "fox"];
        for (buckets, columns) in [
            (16, [7, 3, 8, 10, 7]),
            (1000, [351, 355, 632, 978, 415]),
            (1 << 18, [260_679, 207_683, 3848, 92_010, 244_631]),
        ] {
            let hashed = HashedWords::new(buckets).unwrap();
            assert_eq!(words.map(|w| hashed.bucket(w)), columns);
        }
    }

    #[test]
    fn words_of_one_bucket_are_summed() {
        let mut out = vec![(9, 9.0)];
        HashedWords::new(16)
            .unwrap()
            .counts("hello fox, foobar", &mut out);
        assert_eq!(out, [(3, 1.0), (7, 2.0)]);
    }

    #[test]
    fn buckets_have_a_range() {
        for found in [0, (1 << 31) + 1, u64::MAX] {
            assert_eq!(
                HashedWords::new(found),
                Err(FeatureError::Buckets { found })
            );
        }
        assert!(HashedWords::new(1).is_ok() && HashedWords::new(1 << 31).is_ok());
    }
}
