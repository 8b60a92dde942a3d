//! The ZIP file of a pack, which is written in one way: stored, without times, attributes, comments
//! and anything between the files. A file that is written otherwise is refused, so that every byte
//! of a pack is either content that the list of digests covers, or follows from the contents.

use crate::pack::EvidenceError;

const LOCAL_HEADER: &[u8] = b"PK\x03\x04";
const CENTRAL_HEADER: &[u8] = b"PK\x01\x02";
const END: &[u8] = b"PK\x05\x06";

/// Bytes of a local header before the name.
const LOCAL_BYTES: usize = 30;

/// Version 1.0 of the format, in which files are stored.
const VERSION: u16 = 10;

/// Midnight of 1 January 1980, the first day that ZIP knows.
const DATE: u16 = 0x21;

/// Whether these are the first bytes of a ZIP file.
#[must_use]
pub fn is_zip(bytes: &[u8]) -> bool {
    bytes.starts_with(LOCAL_HEADER)
}

/// The bytes of a ZIP file with these names and contents, in this order.
pub(crate) fn write(files: &[(String, Vec<u8>)]) -> Result<Vec<u8>, EvidenceError> {
    let too_large = |_| EvidenceError::Zip("it would be too large".to_owned());
    let mut archive = Vec::new();
    let mut directory = Vec::new();
    for (name, content) in files {
        let offset = u32::try_from(archive.len()).map_err(too_large)?;
        let length = u32::try_from(content.len()).map_err(too_large)?;
        let name_length = u16::try_from(name.len()).map_err(too_large)?;
        // No flags, stored, the time, and behind the lengths no extra field.
        let mut facts: Vec<u8> = [VERSION, 0, 0, 0, DATE]
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect();
        for number in [crc32(content), length, length] {
            facts.extend(number.to_le_bytes());
        }
        facts.extend(name_length.to_le_bytes());
        facts.extend([0; 2]);
        // Behind the facts: no comment, the first disk, no attributes.
        directory.extend(CENTRAL_HEADER);
        directory.extend(VERSION.to_le_bytes());
        directory.extend(&facts);
        directory.extend([0; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(name.as_bytes());
        archive.extend(LOCAL_HEADER);
        archive.extend(&facts);
        archive.extend(name.as_bytes());
        archive.extend(content);
    }
    let count = u16::try_from(files.len()).map_err(too_large)?;
    let start = u32::try_from(archive.len()).map_err(too_large)?;
    let length = u32::try_from(directory.len()).map_err(too_large)?;
    archive.extend(directory);
    archive.extend(END);
    archive.extend([0; 4]);
    archive.extend([count, count].iter().flat_map(|count| count.to_le_bytes()));
    archive.extend([length, start].iter().flat_map(|at| at.to_le_bytes()));
    archive.extend([0; 2]);
    Ok(archive)
}

/// The names and contents of a ZIP file that is written like this and in no other way.
pub(crate) fn read(bytes: &[u8]) -> Result<Vec<(String, Vec<u8>)>, EvidenceError> {
    let mut files = Vec::new();
    let mut rest = bytes;
    while let Some((name, content, after)) = first_file(rest) {
        files.push((name, content.to_vec()));
        rest = after;
    }
    if !files.is_empty() && write(&files)? == bytes {
        Ok(files)
    } else {
        Err(EvidenceError::Zip(
            "it was cut short, written anew by another program, or changed".to_owned(),
        ))
    }
}

/// The name and the content of the file at the start, and what follows it.
fn first_file(bytes: &[u8]) -> Option<(String, &[u8], &[u8])> {
    let (header, rest) = bytes.split_at_checked(LOCAL_BYTES)?;
    let length = u32::from_le_bytes(header.get(22..26)?.try_into().ok()?);
    let name_length = u16::from_le_bytes(header.get(26..28)?.try_into().ok()?);
    let (name, rest) = rest.split_at_checked(usize::from(name_length))?;
    let (content, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    let name = std::str::from_utf8(name).ok()?;
    header
        .starts_with(LOCAL_HEADER)
        .then(|| (name.to_owned(), content, rest))
}

/// The checksum of ZIP: CRC-32 with the reflected polynomial 0xEDB88320.
fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table();
    !bytes.iter().fold(!0, |sum, byte| {
        TABLE[usize::from(sum as u8 ^ byte)] ^ (sum >> 8)
    })
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut at = 0;
    while at < table.len() {
        let mut sum = at as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg());
            bit += 1;
        }
        table[at] = sum;
        at += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn what_is_written_is_read_by_other_programs_and_in_no_other_form_by_us() {
        // The check value of CRC-32 (Rocksoft model).
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        let files = vec![
            ("a.txt".to_owned(), b"one".to_vec()),
            ("b/c.bin".to_owned(), vec![0; 300]),
        ];
        let bytes = write(&files).unwrap();
        assert_eq!(read(&bytes).unwrap(), files);
        let mut archive = zip::ZipArchive::new(std::io::Cursor::new(&bytes)).unwrap();
        for (name, content) in &files {
            let mut found = Vec::new();
            archive
                .by_name(name)
                .unwrap()
                .read_to_end(&mut found)
                .unwrap();
            assert_eq!(found, *content);
        }
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            // A changed letter of a name must be changed in both places to be read.
            assert!(read(&changed).is_err(), "byte {at}");
            assert!(read(&bytes[..at]).is_err(), "{at} bytes");
        }
        assert!(read(&[&bytes[..], b"x"].concat()).is_err());
        assert!(read(b"").is_err());
    }
}
