//! Noise on exported parameters. It follows from a secret seed, from the version of the model and
//! from the size of the noise, and from nothing else: a version has one noisy copy, however often,
//! in whatever format and by whichever process it is exported. Fresh noise for every export would
//! average out.
//!
//! The seed lies beside the signing key and never in the model file. Names that the file must know
//! again, such as ids that must not come back, are hashed with a key made from it: the file alone
//! lets nobody test a guess. The first receipt of the log holds its hash, so that a seed that was
//! exchanged is noticed. It stays as it is when the signing key is replaced: with another seed the
//! same version would get a second copy with other noise.

use efface_receipt::{CommitmentSalt, Hash, SetState};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::error::Result;
use crate::file::DataKey;
use crate::file::paths::SEED_PREFIX;
use crate::randomness::random_bytes;

/// The setting of a first receipt that holds the hash of the seed.
pub(crate) const SETTING: &str = "noise_seed";

/// What all noise on exports of one log is made from.
pub(crate) struct NoiseSeed {
    origin: String,
    bytes: Zeroizing<[u8; 32]>,
}

impl NoiseSeed {
    /// A new seed for a log.
    pub(crate) fn draw(origin: &str) -> Result<Self> {
        Ok(Self {
            origin: origin.to_owned(),
            bytes: random_bytes::<32>()?,
        })
    }

    /// The log that it belongs to.
    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    /// A hash that tells two seeds apart and tells nothing of either: a seed is 32 random bytes.
    pub(crate) fn commitment(&self) -> Hash {
        digest(&[b"efface noise seed v1\0", &*self.bytes])
    }

    /// Its line in a key file.
    pub(crate) fn to_text(&self) -> Zeroizing<String> {
        // Room for all of it: growing would leave copies behind.
        let mut text = Zeroizing::new(String::with_capacity(
            SEED_PREFIX.len() + self.origin.len() + 1 + 64,
        ));
        text.push_str(SEED_PREFIX);
        text.push_str(&self.origin);
        text.push('+');
        text.push_str(&Zeroizing::new(Hash(*self.bytes).to_string()));
        text
    }

    /// Whether a line of a key file is meant to be a seed.
    pub(crate) fn is_line(line: &str) -> bool {
        line.starts_with(SEED_PREFIX)
    }

    /// Reads what [`NoiseSeed::to_text`] wrote; None for anything else.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (origin, digits) = line.strip_prefix(SEED_PREFIX)?.rsplit_once('+')?;
        let Hash(bytes) = Hash::from_hex(digits)?;
        Some(Self {
            origin: origin.to_owned(),
            bytes: Zeroizing::new(bytes),
        })
    }

    /// The same secret for the log that replaces this one, which knows the same names again. Noise
    /// does not repeat: a version has the name of its log in it.
    pub(crate) fn carried(&self, origin: &str) -> Self {
        Self {
            origin: origin.to_owned(),
            bytes: self.bytes.clone(),
        }
    }

    /// The secret of the commitments to names: of requests, of ids that must not come back, of the
    /// places of exports.
    pub(crate) fn names(&self) -> CommitmentSalt {
        let Hash(bytes) = digest(&[b"efface names v1\0", &*self.bytes]);
        CommitmentSalt::new(&Zeroizing::new(bytes))
    }

    /// The key of an encrypted file of this log.
    pub(crate) fn data_key(&self) -> DataKey {
        let Hash(bytes) = digest(&[
            b"efface data key v1\0",
            &*self.bytes,
            self.origin.as_bytes(),
        ]);
        DataKey::new(Zeroizing::new(bytes))
    }

    /// Standard normal numbers for a version of the model and noise of this standard deviation. The
    /// deviation is part of what they follow from: the same numbers scaled twice would be two
    /// equations that give the parameters away.
    pub(crate) fn normals(&self, version: &Hash, deviation: f64) -> NormalStream {
        let sigma = deviation.to_bits().to_be_bytes();
        let Hash(bytes) = digest(&[
            b"efface export noise v1\0",
            &*self.bytes,
            version.as_bytes(),
            &sigma,
        ]);
        NormalStream {
            key: Zeroizing::new(bytes),
            block: 0,
            ready: Vec::with_capacity(4),
        }
    }
}

/// What makes two exports copies of one version: the log, the set of rows and the parameters.
pub(crate) fn version(origin: &str, (set, parameters): &(SetState, Hash)) -> Hash {
    let count = set.count.to_be_bytes();
    digest(&[
        b"efface version v1\0",
        set.root.as_bytes(),
        &count,
        parameters.as_bytes(),
        origin.as_bytes(),
    ])
}

/// SHA-256 of parts, all but the last of which have a fixed length.
fn digest(parts: &[&[u8]]) -> Hash {
    let mut hasher = Sha256::new();
    parts.iter().for_each(|part| hasher.update(part));
    Hash(hasher.finalize().into())
}

/// Standard normal numbers that follow from a key: SHA-256 in counter mode, then Box and Muller.
/// Logarithm and cosine are those of `libm`, which gives the same bits on every machine.
pub(crate) struct NormalStream {
    key: Zeroizing<[u8; 32]>,
    block: u64,
    ready: Vec<f64>,
}

impl NormalStream {
    /// The next number.
    pub(crate) fn draw(&mut self) -> f64 {
        loop {
            if let Some(number) = self.ready.pop() {
                return number;
            }
            self.fill();
        }
    }

    /// One block is 32 bytes: two pairs of uniform numbers, four normal ones.
    fn fill(&mut self) {
        let Hash(block) = digest(&[
            b"efface noise block v1\0",
            &*self.key,
            &self.block.to_be_bytes(),
        ]);
        self.block += 1;
        for pair in block.chunks_exact(16) {
            let (first, second) = pair.split_at(8);
            let radius = libm::sqrt(-2.0 * libm::log(uniform(first)));
            let angle = std::f64::consts::TAU * uniform(second);
            self.ready
                .extend([radius * libm::cos(angle), radius * libm::sin(angle)]);
        }
    }
}

/// A number strictly between 0 and 1 from the first 53 bits of 8 bytes.
fn uniform(bytes: &[u8]) -> f64 {
    let bits = bytes
        .iter()
        .fold(0u64, |bits, byte| bits << 8 | u64::from(*byte))
        >> 11;
    (bits as f64 + 0.5) / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed(byte: u8) -> NoiseSeed {
        NoiseSeed {
            origin: "efface/a".into(),
            bytes: Zeroizing::new([byte; 32]),
        }
    }

    fn numbers(seed: &NoiseSeed, version: u8, deviation: f64) -> Vec<f64> {
        let mut stream = seed.normals(&Hash([version; 32]), deviation);
        (0..20_000).map(|_| stream.draw()).collect()
    }

    #[test]
    fn a_seed_reads_back_and_hides_behind_its_hash() {
        let drawn = NoiseSeed::draw("efface/a").unwrap();
        let text = drawn.to_text();
        let read = NoiseSeed::parse(&text).unwrap();
        assert_eq!(
            (read.origin(), read.commitment()),
            ("efface/a", drawn.commitment())
        );
        assert!(!text.contains(&drawn.commitment().to_string()));
        assert_ne!(
            NoiseSeed::draw("efface/a").unwrap().commitment(),
            drawn.commitment()
        );
        for wrong in [
            "",
            "NOISE+SEED+",
            "NOISE+SEED+a+00",
            &text[1..],
            &text[..text.len() - 1],
        ] {
            assert!(NoiseSeed::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn the_numbers_are_normal() {
        let drawn = numbers(&seed(1), 1, 0.5);
        let count = drawn.len() as f64;
        // Five standard errors: of the mean 1/√n, of the second moment √(2/n), of the fourth
        // √(96/n).
        let moment = |power: i32| drawn.iter().map(|x| x.powi(power)).sum::<f64>() / count;
        assert!(moment(1).abs() < 5.0 / count.sqrt());
        assert!((moment(2) - 1.0).abs() < 5.0 * (2.0 / count).sqrt());
        assert!((moment(4) - 3.0).abs() < 5.0 * (96.0 / count).sqrt());
        let neighbours: f64 = drawn.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / count;
        assert!(neighbours.abs() < 5.0 / count.sqrt());
    }

    #[test]
    fn one_version_has_one_noise_and_others_are_independent() {
        let first = numbers(&seed(1), 1, 0.5);
        assert_eq!(first, numbers(&seed(1), 1, 0.5));
        for other in [
            numbers(&seed(2), 1, 0.5),
            numbers(&seed(1), 2, 0.5),
            numbers(&seed(1), 1, 0.25),
        ] {
            let product: f64 =
                first.iter().zip(&other).map(|(a, b)| a * b).sum::<f64>() / first.len() as f64;
            assert!(
                product.abs() < 5.0 / (first.len() as f64).sqrt(),
                "{product}"
            );
        }
    }

    #[test]
    fn the_numbers_are_those_of_every_other_machine() {
        const KNOWN: [f64; 5] = [
            2.266175578346615,
            -0.5045957607009988,
            -0.008194509084737352,
            0.3039459894028817,
            0.6095748623204031,
        ];
        // Python 3.11, hashlib and math: the construction above, written again.
        let mut stream = seed(7).normals(&Hash([9; 32]), 0.5);
        let found: Vec<f64> = (0..5).map(|_| stream.draw()).collect();
        for (found, known) in found.iter().zip(KNOWN) {
            assert!((found - known).abs() < 1e-15, "{found} and {known}");
        }
    }

    #[test]
    fn a_version_is_log_rows_and_parameters() {
        let set = SetState {
            root: Hash([1; 32]),
            count: 3,
        };
        let one = version("efface/a", &(set, Hash([2; 32])));
        assert_eq!(one, version("efface/a", &(set, Hash([2; 32]))));
        let fewer = SetState { count: 2, ..set };
        for other in [
            version("efface/b", &(set, Hash([2; 32]))),
            version("efface/a", &(set, Hash([3; 32]))),
            version("efface/a", &(fewer, Hash([2; 32]))),
        ] {
            assert_ne!(one, other);
        }
    }
}
