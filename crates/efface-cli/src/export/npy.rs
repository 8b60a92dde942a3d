//! Arrays as numpy stores them, format version 1.0: a magic number, a header that is a Python
//! literal, the values.

use crate::failure::{Failure, Result};

/// An array of `kind` (numpy's `dtype.str`) whose values are already little-endian bytes, last
/// index fastest.
pub(super) fn array(kind: &str, shape: &[usize], values: &[u8]) -> Vec<u8> {
    let dimensions = match shape {
        [one] => format!("{one},"),
        many => many
            .iter()
            .map(usize::to_string)
            .collect::<Vec<_>>()
            .join(", "),
    };
    let mut header =
        format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({dimensions}), }}");
    // Values begin at a multiple of 64 bytes; the header ends with a newline. 10 bytes stand before
    // it.
    let total = (10 + header.len() + 1).next_multiple_of(64);
    header.extend(std::iter::repeat_n(' ', total - 10 - header.len() - 1));
    header.push('\n');
    let mut out = Vec::with_capacity(total + values.len());
    out.extend(b"\x93NUMPY\x01\x00");
    out.extend((header.len() as u16).to_le_bytes());
    out.extend(header.as_bytes());
    out.extend(values);
    out
}

/// An array of text. Each entry takes the room of the longest one, four bytes a character.
pub(super) fn strings(entries: &[String]) -> Result<Vec<u8>> {
    const MOST: usize = 1 << 30;
    let longest = entries
        .iter()
        .map(|entry| entry.chars().count())
        .max()
        .unwrap_or(0)
        .max(1);
    if longest.saturating_mul(entries.len()) > MOST / 4 {
        let failure = Failure::refused(format!(
            "{} names of up to {longest} characters do not fit into a numpy array of 1 GiB",
            entries.len()
        ));
        return Err(failure.hint("use --format safetensors or --format json"));
    }
    let mut values = Vec::with_capacity(entries.len() * longest * 4);
    for entry in entries {
        let padding = longest - entry.chars().count();
        let characters = entry
            .chars()
            .map(u32::from)
            .chain(std::iter::repeat_n(0, padding));
        values.extend(characters.flat_map(u32::to_le_bytes));
    }
    Ok(array(&format!("<U{longest}"), &[entries.len()], &values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_python_literals_in_multiples_of_64() {
        for (shape, literal) in [(&[2][..], "(2,)"), (&[3, 2], "(3, 2)"), (&[], "()")] {
            let bytes = array("<f8", shape, &[]);
            assert_eq!(bytes.len() % 64, 0);
            assert_eq!(
                usize::from(bytes[8]) + 256 * usize::from(bytes[9]),
                bytes.len() - 10
            );
            let header = String::from_utf8(bytes[10..].to_vec()).unwrap();
            let expected =
                format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {literal}, }}");
            assert_eq!(header.trim_end(), expected);
        }
    }

    #[test]
    fn text_is_padded_to_the_longest() {
        let bytes = strings(&["é".to_owned(), "ab".to_owned()]).unwrap();
        assert!(String::from_utf8_lossy(&bytes).contains("'<U2'"));
        let expected: Vec<u8> = [0xe9u32, 0, 97, 98]
            .iter()
            .flat_map(|c| c.to_le_bytes())
            .collect();
        assert!(bytes.ends_with(&expected));
    }
}
