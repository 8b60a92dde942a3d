//! Where receipts stand that were looked at: a log has no index of ids, and grows at its end alone.

use std::collections::HashMap;
use std::ops::Range;

/// The ids of a run of receipts in a log.
#[derive(Debug, Default)]
pub(crate) struct SeenReceipts {
    /// The log that they are of.
    origin: String,
    /// The numbers of those that were looked at.
    numbers: Range<u64>,
    places: HashMap<u128, u64>,
}

impl SeenReceipts {
    /// Finds the receipt of an id in a log of this name and size; `id_at` reads the id of a
    /// receipt. New receipts are looked at first, and then older ones from the end, as far as
    /// needed.
    pub(crate) fn find<E>(
        &mut self,
        origin: &str,
        size: u64,
        id: &str,
        mut id_at: impl FnMut(u64) -> Result<String, E>,
    ) -> Result<Option<u64>, E> {
        // Another log, or one that was put back from a copy.
        if self.origin != origin || self.numbers.end > size || self.numbers.is_empty() {
            *self = Self {
                origin: origin.to_owned(),
                numbers: size..size,
                places: HashMap::new(),
            };
        }
        let Some(asked) = key(id) else {
            return Ok(None);
        };
        while self.numbers.end < size {
            self.see(self.numbers.end, &id_at(self.numbers.end)?);
            self.numbers.end += 1;
        }
        loop {
            if let Some(&place) = self.places.get(&asked) {
                return Ok(Some(place));
            }
            let Some(earlier) = self.numbers.start.checked_sub(1) else {
                return Ok(None);
            };
            self.see(earlier, &id_at(earlier)?);
            self.numbers.start = earlier;
        }
    }

    fn see(&mut self, number: u64, id: &str) {
        if let Some(id) = key(id) {
            self.places.insert(id, number);
        }
    }
}

/// An id as a number; None for what is no id.
fn key(id: &str) -> Option<u128> {
    let is_id = id.len() == 32
        && id
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_id.then(|| u128::from_str_radix(id, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_receipt_is_read_once_and_another_log_is_another() {
        let mut reads = 0;
        let mut seen = SeenReceipts::default();
        let id = |salt: u64, number: u64| {
            format!("{:032x}", u128::from(salt) << 64 | u128::from(number))
        };
        let mut ask = |origin: &str, size: u64, asked: &str, salt: u64| {
            seen.find::<()>(origin, size, asked, |number| {
                reads += 1;
                Ok(id(salt, number))
            })
            .unwrap()
        };
        assert_eq!(ask("a", 100, &id(1, 97), 1), Some(97));
        assert_eq!(ask("a", 100, &id(1, 98), 1), Some(98));
        assert_eq!(ask("a", 104, &id(1, 102), 1), Some(102));
        assert_eq!(ask("a", 104, &id(1, 104), 1), None);
        assert_eq!(ask("a", 104, &id(1, 0), 1), Some(0));
        assert_eq!(ask("a", 104, "no id", 1), None);
        assert_eq!(ask("a", 0, &id(1, 0), 1), None);
        assert_eq!(ask("b", 10, &id(1, 3), 2), None);
        assert_eq!(ask("b", 10, &id(2, 3), 2), Some(3));
        assert_eq!(reads, 104 + 10);
    }
}
