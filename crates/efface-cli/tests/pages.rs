//! The commands of the first page and of the tutorial, run as they stand there, each page in a
//! folder of its own. What a page shows as output is compared with what comes out.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop and say where"
)]

mod common;

use std::path::Path;

use common::Folder;

/// A line of a page that stands for any output.
const LEFT_OUT: &str = "…";

/// A command of a page, and the output that the page shows for it.
struct ShownCommand {
    line: String,
    output: String,
}

/// The commands of the page's `console` blocks. Only those of efface are run here.
fn commands(page: &str) -> Vec<ShownCommand> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(page);
    let text = std::fs::read_to_string(path).unwrap();
    let mut found: Vec<ShownCommand> = Vec::new();
    for block in text.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap();
        for line in block.lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                found.push(ShownCommand {
                    line: command.to_owned(),
                    output: String::new(),
                });
            } else if let Some(last) = found.last_mut() {
                last.output.push_str(line);
                last.output.push('\n');
            }
        }
    }
    found.retain(|command| command.line.starts_with("efface "));
    found
}

/// Runs the commands of a page in order and compares their output with the page's.
fn run(page: &str) {
    let folder = Folder::new();
    let commands = commands(page);
    assert!(!commands.is_empty(), "{page} shows no command");
    for ShownCommand { line, output } in commands {
        let words = line.trim_start_matches("efface ");
        let (words, redirected) = match words.split_once(" > ") {
            Some((words, file)) => (words, Some(file)),
            None => (words, None),
        };
        let ended = folder.run(words);
        // A page may show what is refused.
        let shows_error = output.starts_with("error: ");
        assert_eq!(ended.code != 0, shows_error, "{page}: {line}: {ended:?}");
        let printed = match redirected {
            Some(file) => {
                folder.write(file, &ended.out);
                ended.err
            }
            None => ended.out + &ended.err,
        };
        assert!(
            is_like(&printed, &output),
            "{page}: the output of `{line}` is no longer what the page shows.\n\
             The page:\n{output}\nThe command:\n{printed}"
        );
    }
}

/// Whether the output is the shown one but for numbers, hashes, times and their units.
fn is_like(printed: &str, shown: &str) -> bool {
    let printed = without_numbers(printed);
    let mut rest = printed.as_str();
    let parts: Vec<String> = shown.split(LEFT_OUT).map(without_numbers).collect();
    let last = parts.len() - 1;
    for (at, part) in parts.iter().enumerate() {
        let found = match at {
            0 => rest.starts_with(part).then_some(0),
            at if at == last => rest.ends_with(part).then(|| rest.len() - part.len()),
            _ => rest.find(part),
        };
        match found {
            Some(start) => rest = &rest[start + part.len()..],
            None => return false,
        }
    }
    // Where nothing was left out, the page shows all of it.
    last > 0 || rest.is_empty()
}

/// The words, with `#` in place of each that holds a digit, and without units and rules.
fn without_numbers(text: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    for word in text.split_whitespace() {
        let bare = word.trim_end_matches([',', ';', '.']);
        let is_unit = matches!(bare, "s" | "ms" | "µs" | "KiB" | "MiB");
        if word.contains('─') || is_unit {
            continue;
        }
        words.push(if word.contains(|letter: char| letter.is_ascii_digit()) {
            "#"
        } else {
            word
        });
    }
    words.join(" ")
}

#[test]
fn the_commands_of_the_tutorial_print_what_it_shows() {
    run("docs/tutorial.md");
}

#[test]
fn the_commands_of_the_first_page_print_what_it_shows() {
    run("README.md");
}

#[test]
fn numbers_may_differ_and_words_may_not() {
    assert!(is_like(
        "forgot 14 rows; 92.2 ms\n",
        "forgot 15 rows; 1.2 s"
    ));
    assert!(is_like("fitted in 134 ms.", "fitted in 1.3 s."));
    assert!(is_like("a 1\nb 2\nc 3\n", "a 7\n…\nc 5"));
    assert!(!is_like(
        "forgot 14 rows by exact",
        "forgot 14 rows by newton"
    ));
    assert!(!is_like("a 1 b", "a 1"));
    assert!(!is_like("a 1 b", "…\nc"));
}
