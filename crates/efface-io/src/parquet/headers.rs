//! A look over the footer and the headers of pages before the decoder reads them.
//!
//! The decoder passes over fields that it does not know element by element, and counts on elements
//! having bytes. Booleans in a list have none for it, so that a header of fifty bytes can announce
//! a list that keeps it busy for ten seconds, and a larger one many of them. Here every element is
//! counted, and a header with more elements than bytes is refused. So is a header whose fields are
//! not of the types of the format, which the decoder would misread, and a page that announces more
//! bytes than memory should hold: the decoder makes room for them before it unpacks any.

use super::format::{FOOTER, FieldShape, PAGE};
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
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;
const UUID: u8 = 13;

/// Whether the footer of a file is one that the decoder reads in a time that its length bounds. A
/// file without a footer is left to the decoder, which says what is wrong with it.
pub(super) fn footer_is_bounded(file: &mut (impl Read + Seek)) -> io::Result<bool> {
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
    Ok(HeaderWalk::new(&footer).shaped(&FOOTER, STRUCT).is_some())
}

/// What the header of a page says of its size.
struct PageSize {
    /// Bytes of the header.
    header: u64,
    unpacked: u64,
    packed: u64,
    /// The values of a dictionary, for which the decoder makes room; 0 for other pages.
    values: u64,
}

/// Bytes that are read at once on the way from page to page.
const WINDOW: u64 = 64 << 10;

/// No codec packs tighter: zstd puts 128 KiB of one byte into four.
const MOST_PACKED: u64 = 1 << 16;

/// The longest header of a page: it may hold the smallest and the largest value.
const LONGEST: u64 = 1 << 20;

/// What is wrong with the pages of a column, if anything.
#[derive(Debug, PartialEq)]
pub(super) enum PageFault {
    /// A header makes no sense, or would keep the decoder busy.
    Header,
    /// A page unpacks to more than this many bytes.
    Large,
}

/// Looks at the headers of the pages that lie in these bytes of a file. `memory` bounds what one of
/// them unpacks to.
pub(super) fn check_pages(
    file: &mut (impl Read + Seek),
    start: u64,
    length: u64,
    memory: u64,
) -> io::Result<Result<(), PageFault>> {
    let end = start.saturating_add(length);
    let mut at = start;
    let mut window = Vec::new();
    let mut window_start = at;
    while at < end {
        let known = |window: &[u8], window_start: u64| {
            let skipped = usize::try_from(at - window_start).ok()?;
            HeaderWalk::new(window.get(skipped..)?).page_size()
        };
        let mut found = known(&window, window_start);
        for most in [WINDOW, LONGEST] {
            if found.is_none() {
                file.seek(SeekFrom::Start(at))?;
                window.clear();
                file.take(most.min(end - at)).read_to_end(&mut window)?;
                window_start = at;
                found = known(&window, window_start);
            }
        }
        let Some(page) = found else {
            return Ok(Err(PageFault::Header));
        };
        if page.unpacked > memory {
            return Ok(Err(PageFault::Large));
        }
        at = at.saturating_add(page.header).saturating_add(page.packed);
        // The decoder would go on reading behind the column, or make room for values that cannot be
        // there.
        if at > end
            || page.values > page.unpacked.saturating_mul(8)
            || page.unpacked
                > page
                    .packed
                    .saturating_mul(MOST_PACKED)
                    .saturating_add(WINDOW)
        {
            return Ok(Err(PageFault::Header));
        }
    }
    Ok(Ok(()))
}

/// Reads a header without keeping anything of it. Every step gives None where the bytes end, make
/// no sense, or announce more elements than there can be.
struct HeaderWalk<'a> {
    rest: &'a [u8],
    /// Elements that may still come.
    elements: usize,
}

impl<'a> HeaderWalk<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            elements: bytes.len(),
        }
    }

    /// Reads the header of a page: field 2 is its size as it is unpacked, field 3 the size that it
    /// has in the file.
    fn page_size(&mut self) -> Option<PageSize> {
        HeaderWalk::new(self.rest).shaped(&PAGE, STRUCT)?;
        let bytes = self.rest.len();
        let mut sizes = [None; 2];
        let mut values = 0;
        let mut field = 0_i16;
        while let Some(kind) = self.next_field(&mut field)? {
            match field {
                7 if kind == STRUCT => values = self.dictionary_values()?,
                2 | 3 if INTEGERS.contains(&kind) => {
                    sizes[usize::from(field == 3)] = Some(self.size()?)
                }
                _ => self.value(kind, DEPTH)?,
            }
        }
        let [unpacked, packed] = sizes;
        let header = (bytes - self.rest.len()) as u64;
        Some(PageSize {
            header,
            unpacked: unpacked?,
            packed: packed?,
            values,
        })
    }

    /// Reads the header of a dictionary, whose field 1 is the number of its values.
    fn dictionary_values(&mut self) -> Option<u64> {
        let mut values = 0;
        let mut field = 0_i16;
        while let Some(kind) = self.next_field(&mut field)? {
            match field {
                1 if INTEGERS.contains(&kind) => values = self.size()?,
                _ => self.value(kind, DEPTH)?,
            }
        }
        Some(values)
    }

    /// Passes over a field of the kind that the file gives it, if that is the kind of its shape.
    fn shaped(&mut self, shape: &FieldShape, kind: u8) -> Option<()> {
        match shape {
            FieldShape::Boolean if BOOLEANS.contains(&kind) => Some(()),
            FieldShape::Byte if kind == BYTE => self.pass(1),
            FieldShape::Integer if INTEGERS.contains(&kind) => self.number().map(drop),
            FieldShape::Double if kind == DOUBLE => self.pass(8),
            FieldShape::Binary if kind == BINARY => self.value(kind, DEPTH),
            FieldShape::Passed => self.value(kind, DEPTH),
            FieldShape::List(element) if kind == LIST => {
                let (count, kind) = self.list_header()?;
                for _ in 0..self.counted(count)? {
                    self.shaped(element, kind)?;
                }
                Some(())
            }
            FieldShape::Struct(fields) if kind == STRUCT => {
                let mut field = 0_i16;
                while let Some(kind) = self.next_field(&mut field)? {
                    let place = usize::try_from(field)
                        .ok()
                        .and_then(|number| number.checked_sub(1));
                    let shape = place
                        .and_then(|place| fields.get(place))
                        .unwrap_or(&FieldShape::Passed);
                    self.shaped(shape, kind)?;
                }
                Some(())
            }
            _ => None,
        }
    }

    /// A size, which the decoder holds in 32 bits.
    fn size(&mut self) -> Option<u64> {
        let size = i32::try_from(unfold(self.number()?)).ok()?;
        u64::try_from(size).ok()
    }

    /// The number of elements of a list and their kind.
    fn list_header(&mut self) -> Option<(u64, u8)> {
        let header = self.byte()?;
        let short = header >> 4;
        let count = if short == 15 {
            self.number()?
        } else {
            u64::from(short)
        };
        Some((count, header & 0x0f))
    }

    /// The number of elements, if there are bytes for as many.
    fn counted(&mut self, count: u64) -> Option<usize> {
        let count = usize::try_from(count).ok()?;
        self.elements = self.elements.checked_sub(count)?;
        Some(count)
    }

    /// The kind of the next field of a struct, whose number goes to `field`; Some(None) at its end.
    /// Numbers have 16 bits, of a longer one the decoder takes the last.
    fn next_field(&mut self, field: &mut i16) -> Option<Option<u8>> {
        let header = self.byte()?;
        let kind = header & 0x0f;
        if kind == STOP {
            return Some(None);
        }
        *field = match header >> 4 {
            0 => unfold(self.number()?) as i16,
            step => field.checked_add(i16::from(step))?,
        };
        Some(Some(kind))
    }

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
        number(&mut self.rest)
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
                    // The number of the field follows where its distance from the last one does not
                    // fit.
                    self.number()?;
                }
                self.value(header & 0x0f, inner)?;
            },
            LIST | SET => {
                let (count, kind) = self.list_header()?;
                self.repeat(count, &[kind], inner)
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
        for _ in 0..self.counted(count)? {
            for kind in kinds {
                self.value(*kind, depth)?;
            }
        }
        Some(())
    }
}

/// A number of seven bits a byte, the lowest first.
pub(super) fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// The number that was folded so that small ones of either sign are short.
fn unfold(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
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
        assert!(!footer_is_bounded(&mut file(&list)).unwrap());
        let map = [0x5b, 0xff, 0xff, 0xff, 0xff, 0x07, 0x11, 0x00];
        assert!(!footer_is_bounded(&mut file(&map)).unwrap());
        // Field 16, which the format does not know: three booleans, which the decoder passes over.
        let short = [0x09, 0x20, 0x31, 0x00];
        assert!(footer_is_bounded(&mut file(&short)).unwrap());
    }

    #[test]
    fn fields_of_another_type_than_the_format_gives_them_are_refused() {
        // The version of a file as an integer and as text; a list of row groups as a set, and of
        // integers.
        for (footer, bounded) in [
            (&[0x15, 0x02, 0x00][..], true),
            (&[0x18, 0x01, b'a', 0x00], false),
            (&[0x49, 0x00, 0x00], true),
            (&[0x4a, 0x00, 0x00], false),
            (&[0x49, 0x15, 0x00, 0x00], false),
            // Field 65,540, of which the decoder sees 4.
            (&[0x08, 0x88, 0x80, 0x08, 0x00, 0x00], false),
        ] {
            assert_eq!(
                footer_is_bounded(&mut file(footer)).unwrap(),
                bounded,
                "{footer:?}"
            );
        }
    }

    #[test]
    fn pages_are_followed_from_header_to_header() {
        // Fields 1, 2 and 3 of a page: its kind, 20 bytes unpacked, `packed` bytes in the file.
        let page = |packed: u8| [0x15, 0x00, 0x15, 40, 0x15, packed * 2, 0x00];
        let two = [&page(3)[..], b"abc", &page(0)].concat();
        let check = |bytes: &[u8], memory: u64| {
            check_pages(
                &mut Cursor::new(bytes.to_vec()),
                0,
                bytes.len() as u64,
                memory,
            )
            .unwrap()
        };
        assert_eq!(check(&two, 20), Ok(()));
        assert_eq!(check(&two, 19), Err(PageFault::Large));
        // A list of 2^31 - 1 booleans in field 9 of the second page.
        let busy = [
            0x15, 0x00, 0x15, 40, 0x15, 0, 0x69, 0xf1, 0xff, 0xff, 0xff, 0xff, 0x07, 0x00,
        ];
        assert_eq!(
            check(&[&page(3)[..], b"abc", &busy].concat(), 20),
            Err(PageFault::Header)
        );
        // No size, a negative one, and an end in the middle.
        assert_eq!(check(&[0x15, 0x00, 0x00], 20), Err(PageFault::Header));
        assert_eq!(
            check(&[0x15, 0x00, 0x15, 40, 0x15, 1, 0x00], 20),
            Err(PageFault::Header)
        );
        assert_eq!(check(&page(0)[..5], 20), Err(PageFault::Header));
        // A page that ends behind the column, and one that unpacks to more than any codec packs.
        assert_eq!(
            check(&[&page(3)[..], b"ab"].concat(), 20),
            Err(PageFault::Header)
        );
        let vast = [
            0x15, 0x00, 0x15, 0x80, 0x80, 0x80, 0x80, 0x08, 0x15, 2, 0x00, 7,
        ];
        assert_eq!(check(&vast, u64::MAX), Err(PageFault::Header));
        // Field 8, which is a struct, as an integer: the decoder would read a struct all the same.
        assert_eq!(
            check(&[0x15, 0x00, 0x15, 40, 0x15, 0, 0x55, 0x02, 0x00], 20),
            Err(PageFault::Header)
        );
        // A dictionary of 2^31 - 1 values in 20 bytes, and one of 3.
        let dictionary = |values: &[u8]| {
            [
                &[0x15, 0x04, 0x15, 40, 0x15, 0, 0x4c, 0x15][..],
                values,
                &[0x15, 0, 0x00, 0x00],
            ]
            .concat()
        };
        assert_eq!(
            check(&dictionary(&[0xfe, 0xff, 0xff, 0xff, 0x0f]), 20),
            Err(PageFault::Header)
        );
        assert_eq!(check(&dictionary(&[6]), 20), Ok(()));
        // Many pages, more than are read at once.
        let many: Vec<u8> = (0..20_000)
            .flat_map(|_| [&page(2)[..], b"ab"].concat())
            .collect();
        assert_eq!(check(&many, 20), Ok(()));
    }

    #[test]
    fn nesting_without_an_end_is_refused() {
        let deep = vec![0x1c; 100];
        assert!(!footer_is_bounded(&mut file(&deep)).unwrap());
    }
}
