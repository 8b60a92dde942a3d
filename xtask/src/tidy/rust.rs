//! Rust source as the checks read it: code without comments and strings, the strings by themselves,
//! and which lines belong to tests. It is a reader of tokens and no parser: it knows nothing of
//! macros.

use crate::tidy::TextFile;

/// A source file, taken apart.
pub(crate) struct RustFile {
    /// Its path from the root, with slashes.
    pub(crate) name: String,
    /// The file line for line, with blanks where comments and the content of strings were.
    pub(crate) code: String,
    /// The content of every string, with the line on which it begins, counted from zero.
    pub(crate) strings: Vec<(usize, String)>,
    /// For every line whether it stands in a module that is compiled for tests only.
    pub(crate) is_test: Vec<bool>,
}

impl RustFile {
    pub(crate) fn read(file: &TextFile) -> Self {
        let (code, strings) = take_apart(&file.text);
        let is_test = test_lines(&file.name, &code);
        Self {
            name: file.name.clone(),
            code,
            strings,
            is_test,
        }
    }

    /// The crate whose sources the file is part of, if it is (`crates/NAME/src/…`).
    pub(crate) fn crate_name(&self) -> Option<&str> {
        let (name, inside) = self.name.strip_prefix("crates/")?.split_once('/')?;
        inside.starts_with("src/").then_some(name)
    }
}

/// Code without comments and strings, and the strings.
fn take_apart(text: &str) -> (String, Vec<(usize, String)>) {
    let mut reader = Reader {
        rest: text,
        code: String::with_capacity(text.len()),
        strings: Vec::new(),
        line: 0,
    };
    while let Some(next) = reader.rest.chars().next() {
        if reader.rest.starts_with("//") {
            let end = reader.rest.find('\n').unwrap_or(reader.rest.len());
            reader.blank(end);
        } else if reader.rest.starts_with("/*") {
            let end = reader
                .rest
                .find("*/")
                .map_or(reader.rest.len(), |at| at + 2);
            reader.blank(end);
        } else if let Some(hashes) = raw_string(reader.rest, &reader.code) {
            reader.raw(hashes);
        } else if next == '"' {
            reader.quoted();
        } else if let Some(length) = character(reader.rest) {
            reader.blank(length);
        } else {
            reader.keep(next.len_utf8());
        }
    }
    (reader.code, reader.strings)
}

struct Reader<'a> {
    rest: &'a str,
    code: String,
    strings: Vec<(usize, String)>,
    line: usize,
}

impl Reader<'_> {
    fn keep(&mut self, length: usize) {
        let (text, rest) = self.rest.split_at(length);
        self.line += text.matches('\n').count();
        self.code.push_str(text);
        self.rest = rest;
    }

    /// Leaves a piece out, but for its ends of lines.
    fn blank(&mut self, length: usize) {
        let (text, rest) = self.rest.split_at(length);
        self.line += text.matches('\n').count();
        self.code
            .extend(text.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        self.rest = rest;
    }

    /// A string with escapes; the quotes stay in the code.
    fn quoted(&mut self) {
        let begins = self.line;
        self.keep(1);
        let mut is_escaped = false;
        let end = self.rest.find(|c| {
            let ends = c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            ends
        });
        let end = end.unwrap_or(self.rest.len());
        self.strings.push((begins, self.rest[..end].to_owned()));
        self.blank(end);
        self.keep(usize::from(!self.rest.is_empty()));
    }

    /// A raw string: `r`, so many hashes, a quote, and the same backwards.
    fn raw(&mut self, hashes: usize) {
        let begins = self.line;
        self.keep(hashes + 2);
        let close = format!("\"{}", "#".repeat(hashes));
        let end = self.rest.find(&close).unwrap_or(self.rest.len());
        self.strings.push((begins, self.rest[..end].to_owned()));
        self.blank(end);
        self.keep(close.len().min(self.rest.len()));
    }
}

/// How many hashes the raw string has that begins here, if one does.
fn raw_string(rest: &str, before: &str) -> Option<usize> {
    let is_word = before
        .chars()
        .next_back()
        .is_some_and(|c| c.is_alphanumeric() && c != 'b');
    let marks = rest.strip_prefix('r').filter(|_| !is_word)?;
    let hashes = marks.bytes().take_while(|byte| *byte == b'#').count();
    marks[hashes..].starts_with('"').then_some(hashes)
}

/// The length of the character in quotes that begins here; a lifetime is none.
fn character(rest: &str) -> Option<usize> {
    let inside = rest.strip_prefix('\'')?;
    let first = inside.chars().next()?;
    if first == '\\' {
        return inside[2..].find('\'').map(|at| at + 4);
    }
    inside[first.len_utf8()..]
        .starts_with('\'')
        .then(|| first.len_utf8() + 2)
}

/// Which lines stand in a module of tests. A file called tests.rs, or in a folder tests/, is one.
fn test_lines(name: &str, code: &str) -> Vec<bool> {
    let lines = code.lines().count() + 1;
    if name.contains("/tests/") || name.ends_with("/tests.rs") {
        return vec![true; lines];
    }
    let mut is_test = vec![false; lines];
    for item in Items::of(code).filter(|item| item.is_test_module) {
        is_test[item.first_line..=item.last_line.min(lines - 1)].fill(true);
    }
    is_test
}

/// A declaration at the level of modules: not inside a function, an implementation or a trait.
pub(crate) struct Item<'a> {
    pub(crate) keyword: &'a str,
    pub(crate) name: &'a str,
    pub(crate) first_line: usize,
    last_line: usize,
    is_test_module: bool,
}

/// The declarations of a file, modules included.
pub(crate) struct Items<'a>(std::vec::IntoIter<Item<'a>>);

const KEYWORDS: [&str; 6] = ["struct", "enum", "trait", "type", "union", "mod"];

impl<'a> Items<'a> {
    pub(crate) fn of(code: &'a str) -> Self {
        let mut items: Vec<Item<'a>> = Vec::new();
        // For every open brace the module that it opens; anything else is `None`.
        let mut open: Vec<Option<usize>> = Vec::new();
        let mut line = 0;
        let mut statement_begins = 0;
        let mut keyword: Option<&'a str> = None;
        let mut declared: Option<usize> = None;
        for (at, token) in tokens(code) {
            match token {
                "\n" => line += 1,
                "{" => {
                    open.push(declared.filter(|&item| items[item].keyword == "mod"));
                    declared = None;
                    statement_begins = at + 1;
                }
                "}" => {
                    if let Some(Some(module)) = open.pop() {
                        items[module].last_line = line;
                    }
                    statement_begins = at + 1;
                }
                ";" => {
                    declared = None;
                    statement_begins = at + 1;
                }
                word if open.iter().all(Option::is_some) => {
                    if let Some(keyword) = keyword.take() {
                        declared = Some(items.len());
                        items.push(Item {
                            keyword,
                            name: word,
                            first_line: line,
                            last_line: line,
                            is_test_module: keyword == "mod"
                                && code[statement_begins..at].contains("#[cfg(test)]"),
                        });
                    } else if declared.is_none() && KEYWORDS.contains(&word) {
                        keyword = Some(word);
                    }
                }
                _ => {}
            }
        }
        Self(items.into_iter())
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Item<'a>> {
        self.0.next()
    }
}

/// Words, braces, semicolons and ends of lines, with their places.
fn tokens(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = &code[at..];
            let first = rest.chars().next()?;
            let length = if is_word(first) {
                rest.find(|c| !is_word(c)).unwrap_or(rest.len())
            } else {
                first.len_utf8()
            };
            let begins = at;
            at += length;
            if is_word(first) || "{};\n".contains(first) {
                return Some((begins, &code[begins..at]));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = r##"//! struct InComment
pub struct First<'a> { text: &'a str, mark: char }
fn f() { let c = '{'; struct InFunction; let s = "struct InString { \" --flag"; }
impl Iterator for First<'_> { type Item = u8; }
mod inner { enum Second { A, B } }
const RAW: &str = r#"enum InRaw {"#;
#[cfg(test)]
mod tests {
    struct OfTests;
}
type Third = u8;
"##;

    fn example() -> RustFile {
        RustFile::read(&TextFile {
            name: "crates/a/src/lib.rs".into(),
            text: EXAMPLE.into(),
        })
    }

    #[test]
    fn declarations_are_those_of_modules() {
        let file = example();
        let names: Vec<&str> = Items::of(&file.code).map(|item| item.name).collect();
        assert_eq!(
            names,
            ["First", "inner", "Second", "tests", "OfTests", "Third"]
        );
    }

    #[test]
    fn strings_come_with_their_lines() {
        assert_eq!(
            example().strings,
            [
                (2, "struct InString { \\\" --flag".to_owned()),
                (5, "enum InRaw {".to_owned())
            ]
        );
    }

    #[test]
    fn modules_of_tests_are_known() {
        let file = example();
        let tests: Vec<usize> = (0..file.is_test.len())
            .filter(|&line| file.is_test[line])
            .collect();
        assert_eq!(tests, [7, 8, 9]);
        assert_eq!(file.crate_name(), Some("a"));
    }
}
