//! What is read as a whole: lists with an entry a line (ids to forget, words of a vocabulary) and
//! tables on standard input. However long a line or all of it is, no more than the limits are held
//! in memory.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crate::failure::{Failure, Result};

/// The longest line: more than any id or word has.
const LINE: u64 = 1 << 20;

/// The longest list, in bytes.
const LIST: u64 = 256 << 20;

/// The lines of a file, or of standard input for `-`; lines of nothing are no entries.
pub(crate) fn read(path: &Path) -> Result<Vec<String>> {
    if path == Path::new("-") {
        return lines(
            std::io::stdin().lock(),
            Path::new("standard input"),
            LINE,
            LIST,
        );
    }
    let file = File::open(path).map_err(|cause| Failure::file(path, "read", &cause))?;
    lines(BufReader::new(file), path, LINE, LIST)
}

/// The most that standard input may hold of a table that has to be in memory as a whole.
const TABLE: u64 = 1 << 30;

/// All of standard input.
pub(crate) fn whole_input() -> Result<Vec<u8>> {
    whole(std::io::stdin().lock(), TABLE)
}

fn whole(reader: impl Read, most: u64) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    let read = reader.take(most + 1).read_to_end(&mut all);
    read.map_err(|cause| Failure::file(Path::new("standard input"), "read", &cause))?;
    if all.len() as u64 > most {
        let what = format!("standard input: more than {most} bytes");
        return Err(Failure::data(what).hint("save it to a file: files may have any size"));
    }
    Ok(all)
}

fn lines(mut reader: impl BufRead, name: &Path, longest: u64, most: u64) -> Result<Vec<String>> {
    let mut all = Vec::new();
    let mut line = Vec::new();
    let mut read = 0;
    for number in 1u64.. {
        line.clear();
        // One byte more is enough to know that a line is too long.
        let taken = reader
            .by_ref()
            .take(longest + 1)
            .read_until(b'\n', &mut line);
        let taken = taken.map_err(|cause| Failure::file(name, "read", &cause))? as u64;
        if taken == 0 {
            break;
        }
        if taken > longest {
            let what = format!(
                "{}: line {number} is longer than {longest} bytes",
                name.display()
            );
            return Err(Failure::usage(what).hint("write one entry a line"));
        }
        read += taken;
        if read > most {
            let what = format!(
                "{}: the list is longer than {most} bytes at line {number}",
                name.display()
            );
            return Err(Failure::usage(what).hint("split it"));
        }
        let Ok(text) = std::str::from_utf8(&line) else {
            let what = format!("{}: line {number} is not UTF-8", name.display());
            return Err(Failure::usage(what).hint("convert the file to UTF-8"));
        };
        let text = if number == 1 {
            text.trim_start_matches('\u{feff}')
        } else {
            text
        };
        let text = text.strip_suffix('\n').unwrap_or(text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        if !text.trim().is_empty() {
            all.push(text.to_owned());
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(reader: impl Read, longest: u64, most: u64) -> Result<Vec<String>> {
        lines(BufReader::new(reader), Path::new("ids"), longest, most)
    }

    #[test]
    fn entries_are_lines() {
        let found = all("\u{feff}a b\r\n\n-5\n  \nc".as_bytes(), LINE, LIST);
        assert_eq!(found.unwrap_or_default(), ["a b", "-5", "c"]);
        assert_eq!(all("".as_bytes(), LINE, LIST).unwrap_or_default(), [""; 0]);
        let exactly = all("abc\nde".as_bytes(), 4, LIST);
        assert_eq!(exactly.unwrap_or_default(), ["abc", "de"]);
    }

    /// Counts what is asked of a reader that never ends.
    struct Endless<'a>(&'a mut u64, u8);

    impl Read for Endless<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            buffer.fill(self.1);
            *self.0 += buffer.len() as u64;
            Ok(buffer.len())
        }
    }

    #[test]
    fn a_table_without_an_end_is_refused_before_it_fills_memory() {
        let told = |found: Result<Vec<u8>>| {
            found
                .err()
                .map(|failure| failure.message)
                .unwrap_or_default()
        };
        let mut asked = 0;
        let reader = BufReader::new(b"PAR1".chain(Endless(&mut asked, b'x')));
        let failure = told(whole(reader, 4 * LINE));
        assert!(
            failure.starts_with("standard input: more than"),
            "{failure}"
        );
        assert!(asked < 5 * LINE, "{asked} bytes were read");
        assert_eq!(whole(b"id,y".as_slice(), 4).unwrap_or_default(), b"id,y");
        assert!(told(whole(b"id,y".as_slice(), 3)).contains("more than 3 bytes"));
    }

    #[test]
    fn a_line_without_an_end_is_refused_before_it_fills_memory() {
        for (byte, expected) in [
            (b'x', "ids: line 2 is longer than"),
            (b'\n', "ids: the list is longer than"),
        ] {
            let mut asked = 0;
            let reader = b"first\n".chain(Endless(&mut asked, byte));
            let failure = all(reader, LINE, 4 * LINE)
                .err()
                .map(|failure| failure.message)
                .unwrap_or_default();
            assert!(failure.starts_with(expected), "{failure}");
            assert!(asked < 5 * LINE, "{asked} bytes were read");
        }
        let failure = all([0xff, b'\n'].as_slice(), LINE, LIST)
            .err()
            .map(|failure| failure.message);
        assert_eq!(failure.as_deref(), Some("ids: line 1 is not UTF-8"));
    }
}
