//! Every relative link of a page leads to a file, and its anchor to a heading of that page.

use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

use crate::tidy::TextFile;

pub(crate) fn check(root: &Path, files: &[TextFile]) -> Vec<String> {
    let pages: Vec<&TextFile> = files
        .iter()
        .filter(|file| file.name.ends_with(".md"))
        .collect();
    let anchors: HashMap<PathBuf, HashSet<String>> = pages
        .iter()
        .map(|page| (PathBuf::from(&page.name), anchors(&page.text)))
        .collect();
    let mut found = Vec::new();
    for page in pages {
        for (number, line) in lines_of_prose(&page.text) {
            for target in links(line) {
                if let Some(what) = wrong(root, Path::new(&page.name), target, &anchors) {
                    found.push(page.finding(number, &what));
                }
            }
        }
    }
    found
}

/// What is wrong with a link of a page, if anything is.
fn wrong(
    root: &Path,
    page: &Path,
    target: &str,
    anchors: &HashMap<PathBuf, HashSet<String>>,
) -> Option<String> {
    if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let leads_to = if file.is_empty() {
        page.to_path_buf()
    } else {
        without_dots(&page.parent().unwrap_or(Path::new("")).join(file))
    };
    if !root.join(&leads_to).exists() {
        return Some(format!("the link to {file} leads nowhere"));
    }
    if anchor.is_empty() {
        return None;
    }
    let there = anchors.get(&leads_to)?;
    (!there.contains(anchor)).then(|| format!("{} has no heading #{anchor}", leads_to.display()))
}

/// The targets of the links in a line.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .map(|part| part.split([')', ' ']).next().unwrap_or_default())
}

/// The lines of a page that are not in a block of code, each with its number from zero.
fn lines_of_prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        if is_fence {
            is_code = !is_code;
        }
        !is_fence && !is_code
    })
}

/// The anchors that a page's headings get from the usual renderers: lower case, spaces as hyphens,
/// nothing but letters, digits, hyphens and underscores; a heading that comes a second time gets
/// `-1`.
fn anchors(text: &str) -> HashSet<String> {
    let mut anchors = HashSet::new();
    for (_, line) in lines_of_prose(text) {
        let heading = line.trim_start_matches('#');
        if !line.starts_with('#') || !heading.starts_with(' ') {
            continue;
        }
        let anchor: String = heading
            .trim()
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        let mut name = anchor.clone();
        let mut copy = 0;
        while !anchors.insert(name) {
            copy += 1;
            name = format!("{anchor}-{copy}");
        }
    }
    anchors
}

/// The path with `..` followed, as a key of the map of pages.
fn without_dots(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            other => clean.push(other),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_those_of_the_usual_renderers() {
        let found = anchors("# A `claim`, and why\n```\n# no heading\n```\n## Twice\n## Twice\n");
        let expected = ["a-claim-and-why", "twice", "twice-1"].map(String::from);
        assert_eq!(found, HashSet::from(expected));
    }

    #[test]
    fn dots_lead_upwards() {
        assert_eq!(
            without_dots(Path::new("docs/../README.md")),
            Path::new("README.md")
        );
    }
}
