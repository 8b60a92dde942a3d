//! A look over a footer before the decoder reads it.
//!
//! The decoder passes over fields that it does not know element by element, and counts on elements having bytes. Booleans in
//! a list have none for it, so that a footer of fifty bytes can announce a list that keeps it busy for ten seconds, and a
//! larger one many of them. Here every element is counted, and a footer with more elements than bytes is refused.

use std::io::{self, Read, Seek, SeekFrom};

/// What a file ends with, after the length of the footer in four bytes.
const MAGIC: &[u8; 4] = b"PAR1";

/// How deep values may be nested, as in the decoder.
const DEPTH: u8 = 64;

/// Types of the compact protocol of Thrift.
const STOP: u8 = 0;
const BOOLEANS: [u8; 2] = [1, 2];
const BYTE: u8 = 3;
const INTEGERS: [u8; 3] = [4, 5, 6];
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LISTS: [u8; 2] = [9, 10];
const MAP: u8 = 11;
const STRUCT: u8 = 12;
const UUID: u8 = 13;

/// Whether the footer of a file is one that the decoder reads in a time that its length bounds. A file without a footer is left
/// to the decoder, which says what is wrong with it.
pub(super) fn is_bounded(file: &mut (impl Read + Seek)) -> io::Result<bool> {
    let size = file.seek(SeekFrom::End(0))?;
    let mut end = [0; 8];
    if size < 12 {
        return Ok(true);
    }
    file.seek(SeekFrom::Start(size - 8))?;
    file.read_exact(&mut end)?;
    let [a, b, c, d, magic @ ..] = end;
    let length = u64::from(u32::from_le_bytes([a, b, c, d]));
    if magic != *MAGIC || length > size - 8 {
        return Ok(true);
    }
    file.seek(SeekFrom::Start(size - 8 - length))?;
    let mut footer = Vec::new();
    file.take(length).read_to_end(&mut footer)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(FooterWalk { rest: &footer, elements: footer.len() }.value(STRUCT, DEPTH).is_some())
}

/// Reads a footer without keeping anything of it. Every step gives None where the bytes end, make no sense, or announce more
/// elements than there can be.
struct FooterWalk<'a> {
    rest: &'a [u8],
    /// Elements that may still come.
    elements: usize,
}

impl FooterWalk<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn pass(&mut self, bytes: usize) -> Option<()> {
        self.rest = self.rest.get(bytes..)?;
        Some(())
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn value(&mut self, kind: u8, depth: u8) -> Option<()> {
        let inner = depth.checked_sub(1)?;
        match kind {
            kind if BOOLEANS.contains(&kind) => Some(()),
            BYTE => self.pass(1),
            kind if INTEGERS.contains(&kind) => self.number().map(drop),
            DOUBLE => self.pass(8),
            UUID => self.pass(16),
            BINARY => {
                let length = usize::try_from(self.number()?).ok()?;
                self.pass(length)
            }
            STRUCT => loop {
                let header = self.byte()?;
                if header & 0x0f == STOP {
                    return Some(());
                }
                if header >> 4 == 0 {
                    // The number of the field follows where its distance from the last one does not fit.
                    self.number()?;
                }
                self.value(header & 0x0f, inner)?;
            },
            kind if LISTS.contains(&kind) => {
                let header = self.byte()?;
                let short = header >> 4;
                let count = if short == 15 { self.number()? } else { u64::from(short) };
                self.repeat(count, &[header & 0x0f], inner)
            }
            MAP => {
                let count = self.number()?;
                if count == 0 {
                    return Some(());
                }
                let kinds = self.byte()?;
                self.repeat(count, &[kinds >> 4, kinds & 0x0f], inner)
            }
            _ => None,
        }
    }

    fn repeat(&mut self, count: u64, kinds: &[u8], depth: u8) -> Option<()> {
        let count = usize::try_from(count).ok()?;
        self.elements = self.elements.checked_sub(count)?;
        for _ in 0..count {
            for kind in kinds {
                self.value(*kind, depth)?;
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn file(footer: &[u8]) -> Cursor<Vec<u8>> {
        let length = u32::try_from(footer.len()).unwrap().to_le_bytes();
        Cursor::new([b"PAR1", footer, &length, MAGIC].concat())
    }

    #[test]
    fn a_list_of_booleans_without_bytes_is_refused() {
        // Field 5, a list; its length, 2^31 - 1, follows; booleans.
        let list = [0x59, 0xf1, 0xff, 0xff, 0xff, 0xff, 0x07, 0x00];
        assert!(!is_bounded(&mut file(&list)).unwrap());
        let map = [0x5b, 0xff, 0xff, 0xff, 0xff, 0x07, 0x11, 0x00];
        assert!(!is_bounded(&mut file(&map)).unwrap());
        let short = [0x59, 0x31, 0x00];
        assert!(is_bounded(&mut file(&short)).unwrap());
    }

    #[test]
    fn nesting_without_an_end_is_refused() {
        let deep = vec![0x1c; 100];
        assert!(!is_bounded(&mut file(&deep)).unwrap());
    }
}
