//! Flags belong to the command. A library that tells its caller to add a flag is wrong for
//! everybody who calls it from Rust or Python, so no string outside of the command, the studies
//! that it runs and this tool names one.

use crate::tidy::rust::RustFile;

/// The crates whose users type flags.
const COMMANDS: [&str; 2] = ["efface-cli", "efface-reproduce"];

pub(crate) fn check(sources: &[RustFile]) -> Vec<String> {
    let mut found = Vec::new();
    for file in sources {
        let Some(name) = file.crate_name() else {
            continue;
        };
        if COMMANDS.contains(&name) {
            continue;
        }
        for (line, text) in file.strings.iter().filter(|(line, _)| !file.is_test[*line]) {
            if let Some(flag) = flag(text) {
                found.push(format!(
                    "{}:{}: --{flag} is a flag of the command",
                    file.name,
                    line + 1
                ));
            }
        }
    }
    found
}

/// The first flag in a text: two hyphens and a word, not in the middle of another.
fn flag(text: &str) -> Option<&str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
        .find_map(|word| {
            let name = word.strip_prefix("--")?;
            name.starts_with(|c: char| c.is_ascii_lowercase())
                .then_some(name)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_two_hyphens_and_a_word() {
        assert_eq!(flag("use --model softmax"), Some("model"));
        assert_eq!(flag("a line of ----- and -- and a --> b"), None);
    }
}
