//! Line by line: what a source file must not contain, and how long it may be.

use crate::tidy::TextFile;

/// Maximum number of lines of a source file.
const LONGEST: usize = 600;

/// Maximum number of lines of a file that exceeded [`LONGEST`] when the default settings of rustfmt
/// were adopted. The architecture work splits these files; the list only becomes shorter.
const LONGEST_LISTED: usize = 1000;

/// Paths of the files that may have up to [`LONGEST_LISTED`] lines, one path per line.
const LISTED: &str = include_str!("long_files.txt");

/// What the pure crate must not touch, and why.
const IMPURE: [(&str, &str); 8] = [
    ("std::fs", "no files"),
    ("std::net", "no network"),
    ("std::env", "no environment"),
    ("std::process", "no processes"),
    ("std::time", "no clock"),
    ("println!(", "no printing"),
    ("eprintln!(", "no printing"),
    ("static mut", "no globals"),
];

/// Marks of unfinished work. They are written in halves, so that this file does not find itself.
const UNFINISHED: [&str; 5] = [
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
    concat!("db", "g!("),
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
];
/// The attribute that leaves out a test, in halves for the same reason.
const IGNORED: &str = concat!("#[ig", "nore");

pub(crate) fn check(file: &TextFile) -> Vec<String> {
    let mut found = Vec::new();
    let name = &file.name;
    let is_test =
        name.contains("/tests/") || name.contains("/benches/") || name.contains("fuzz_targets");
    if !file.text.starts_with("//!") && !file.text.starts_with("#![no_main]") {
        found.push(file.finding(0, "a file opens with what it is for (//! …)"));
    }
    let length = file.text.lines().count();
    let is_listed = LISTED.lines().any(|path| path == name);
    let ceiling = if is_listed { LONGEST_LISTED } else { LONGEST };
    if length > ceiling {
        found.push(file.finding(
            length,
            &format!("{length} lines, more than {ceiling}: split it"),
        ));
    }
    let is_pure = name.starts_with("crates/efface/src/");
    let is_this_file = name == "xtask/src/tidy/habits.rs";
    for (number, line) in file.text.lines().enumerate() {
        let code = line.trim_start();
        if code.starts_with("//") || is_this_file {
            continue;
        }
        for word in UNFINISHED {
            if code.contains(word) {
                found.push(file.finding(number, &format!("{word} is not for a commit")));
            }
        }
        if is_test && code.contains("thread::sleep") {
            found.push(file.finding(number, "no test sleeps"));
        }
        if code.contains(IGNORED) {
            let rule = "no ignored tests: a test that cannot run here skips with a message";
            found.push(file.finding(number, rule));
        }
        for (word, why) in IMPURE.iter().filter(|_| is_pure) {
            if code.contains(word) {
                found.push(file.finding(number, &format!("{word} in the pure crate: {why}")));
            }
        }
    }
    found
}
