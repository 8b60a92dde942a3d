//! A look into pages between their unpacking and their decoding.
//!
//! Text can be written as a list of lengths, each as its difference from the one before, and the
//! bytes after it. The list says how many lengths it holds, and the decoder makes room for as many
//! before it reads any: a page of ten bytes could ask for 70 GB, and a process that cannot get
//! memory ends. So the numbers are compared with the number of values that the page has.

use super::headers::number;
use ::parquet::basic::Encoding;
use ::parquet::bloom_filter::Sbbf;
use ::parquet::column::page::{Page, PageMetadata, PageReader};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use ::parquet::file::reader::{FileReader, RowGroupReader};
use ::parquet::record::reader::RowIter;
use ::parquet::schema::types::Type;

/// Bytes that the decoder takes for a length.
const LENGTH_BYTES: u64 = 4;

/// A file whose pages are looked over.
pub(super) struct CheckedFile {
    pub(super) file: Box<dyn FileReader>,
    /// Bytes that the lengths of one page may take.
    pub(super) memory: u64,
}

struct CheckedGroup<'a> {
    group: Box<dyn RowGroupReader + 'a>,
    memory: u64,
}

struct CheckedPages {
    pages: Box<dyn PageReader>,
    /// Whether a page starts with levels that say which values are there. Columns are not nested,
    /// so that no other levels are.
    optional: bool,
    memory: u64,
}

impl FileReader for CheckedFile {
    fn metadata(&self) -> &ParquetMetaData {
        self.file.metadata()
    }

    fn num_row_groups(&self) -> usize {
        self.file.num_row_groups()
    }

    fn get_row_group(&self, group: usize) -> Result<Box<dyn RowGroupReader + '_>> {
        Ok(Box::new(CheckedGroup {
            group: self.file.get_row_group(group)?,
            memory: self.memory,
        }))
    }

    fn get_row_iter(&self, projection: Option<Type>) -> Result<RowIter<'_>> {
        RowIter::from_file(projection, self)
    }
}

impl RowGroupReader for CheckedGroup<'_> {
    fn metadata(&self) -> &RowGroupMetaData {
        self.group.metadata()
    }

    fn num_columns(&self) -> usize {
        self.group.num_columns()
    }

    fn get_column_page_reader(&self, column: usize) -> Result<Box<dyn PageReader>> {
        let pages = self.group.get_column_page_reader(column)?;
        let optional = self
            .metadata()
            .column(column)
            .column_descr()
            .max_def_level()
            > 0;
        Ok(Box::new(CheckedPages {
            pages,
            optional,
            memory: self.memory,
        }))
    }

    fn get_column_bloom_filter(&self, column: usize) -> Option<&Sbbf> {
        self.group.get_column_bloom_filter(column)
    }

    fn get_row_iter(&self, projection: Option<Type>) -> Result<RowIter<'_>> {
        RowIter::from_row_group(projection, self)
    }
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        match page {
            Some(page) if !self.lengths_fit(&page) => Err(ParquetError::General(
                "a page announces more lengths than values".to_owned(),
            )),
            page => Ok(page),
        }
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }
}

impl CheckedPages {
    fn lengths_fit(&self, page: &Page) -> bool {
        let lists = match page.encoding() {
            Encoding::DELTA_LENGTH_BYTE_ARRAY => 1,
            // The lengths of what each value shares with the one before it, and of the rest.
            Encoding::DELTA_BYTE_ARRAY => 2,
            _ => return true,
        };
        let most = u64::from(page.num_values());
        if most.saturating_mul(LENGTH_BYTES) > self.memory {
            return false;
        }
        let Some(mut values) = self.values(page) else {
            return false;
        };
        (0..lists).all(|_| pass_lengths(&mut values, most).is_some())
    }

    /// The bytes of a page behind its levels.
    fn values<'a>(&self, page: &'a Page) -> Option<&'a [u8]> {
        let skipped = match page {
            Page::DictionaryPage { .. } => 0,
            Page::DataPage { .. } if !self.optional => 0,
            Page::DataPage {
                buf,
                def_level_encoding: Encoding::RLE,
                ..
            } => {
                let length = u32::from_le_bytes(*buf.first_chunk()?);
                usize::try_from(length).ok()?.checked_add(4)?
            }
            // One bit a value.
            Page::DataPage { num_values, .. } => usize::try_from(num_values.div_ceil(8)).ok()?,
            Page::DataPageV2 {
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => usize::try_from(def_levels_byte_len.checked_add(*rep_levels_byte_len)?).ok()?,
        };
        page.buffer().get(skipped..)
    }
}

/// Passes over a list of numbers in blocks of differences, if it has no more than `most` of them.
fn pass_lengths(bytes: &mut &[u8], most: u64) -> Option<()> {
    let block = number(bytes)?;
    let parts = number(bytes)?;
    let count = number(bytes)?;
    number(bytes)?;
    let part = block.checked_div(parts)?;
    if count > most || block % parts != 0 || part == 0 || !part.is_multiple_of(32) {
        return None;
    }
    // The first number lies in the header.
    let mut left = count.saturating_sub(1);
    while left > 0 {
        number(bytes)?;
        let (widths, rest) = bytes.split_at_checked(usize::try_from(parts).ok()?)?;
        *bytes = rest;
        for width in widths {
            if left == 0 {
                break;
            }
            let length = u64::from(*width).checked_mul(part)? / 8;
            // The last numbers of a page may lack the bytes that would fill their part: the decoder
            // finds out.
            let length = usize::try_from(length).ok()?.min(bytes.len());
            *bytes = bytes.get(length..)?;
            left = left.saturating_sub(part);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_with_more_lengths_than_values_is_refused() {
        // Blocks of 128 in four parts, then the number of lengths, the first of them, and one
        // block: no bits for any difference.
        let list = |count: &[u8]| {
            [
                &[0x80, 0x01, 0x04][..],
                count,
                &[0x06, 0x00, 0, 0, 0, 0, b'a'],
            ]
            .concat()
        };
        let rest = |bytes: &[u8], most: u64| {
            let mut rest = bytes;
            pass_lengths(&mut rest, most).map(|()| rest.to_vec())
        };
        assert_eq!(rest(&list(&[3]), 3), Some(b"a".to_vec()));
        assert_eq!(rest(&list(&[3]), 2), None);
        // 17,985,175,551 lengths.
        assert_eq!(
            rest(&list(&[0xff, 0xff, 0x81, 0x80, 0x43]), u64::from(u32::MAX)),
            None
        );
        // One length needs no block; parts of no or of a wrong size are none.
        assert_eq!(
            rest(&[0x80, 0x01, 0x04, 1, 0x06, b'a'], 3),
            Some(b"a".to_vec())
        );
        assert_eq!(rest(&[0x80, 0x01, 0x00, 3, 0x06, 0], 3), None);
        assert_eq!(rest(&[0x00, 0x04, 3, 0x06, 0, 0], 3), None);
        assert_eq!(rest(&[0x80, 0x01, 0x08, 3, 0x06, 0], 3), None);
        // An end in the middle.
        assert_eq!(rest(&list(&[3])[..5], 3), None);
    }
}
