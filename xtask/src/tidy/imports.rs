//! Which modules of a crate import which: paths that begin with `crate`, `self` or `super`, in
//! `use` and elsewhere, followed through re-exports to the module that declares the name.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::rust::RustFile;

/// A module as its path from the root of its crate.
pub(crate) type ModulePath = Vec<String>;

/// One module that another one imports, and where.
pub(crate) struct Import {
    pub(crate) from: ModulePath,
    pub(crate) to: ModulePath,
    /// File and line, for messages.
    pub(crate) place: String,
}

/// The modules of one crate and their imports. Code for tests is left out.
pub(crate) struct CrateImports {
    pub(crate) modules: BTreeSet<ModulePath>,
    pub(crate) imports: Vec<Import>,
}

/// A path in a source file, as written.
struct WrittenPath {
    segments: Vec<String>,
    /// The name that it is known by here: the last segment, or what stands behind `as`.
    name: String,
    line: usize,
    /// Whether it is part of a `pub use`.
    is_reexport: bool,
}

impl CrateImports {
    pub(crate) fn of(crate_name: &str, sources: &[RustFile]) -> Self {
        let files: Vec<(ModulePath, &RustFile)> = sources
            .iter()
            .filter(|file| file.crate_name() == Some(crate_name))
            .filter_map(|file| Some((module_of(crate_name, &file.name)?, file)))
            .collect();
        let modules: BTreeSet<ModulePath> =
            files.iter().map(|(module, _)| module.clone()).collect();
        let written: Vec<(&ModulePath, &RustFile, Vec<WrittenPath>)> = files
            .iter()
            .map(|(module, file)| (module, *file, paths(file)))
            .collect();
        let mut reexports: BTreeMap<(ModulePath, String), ModulePath> = BTreeMap::new();
        for (module, _, paths) in &written {
            for path in paths.iter().filter(|path| path.is_reexport) {
                if let Some(absolute) = absolute(&modules, module, &path.segments) {
                    reexports.insert(((*module).clone(), path.name.clone()), absolute);
                }
            }
        }
        let mut imports = Vec::new();
        for (module, file, paths) in &written {
            for path in paths {
                let Some(absolute) = absolute(&modules, module, &path.segments) else {
                    continue;
                };
                let to = declared_in(&modules, &reexports, absolute);
                if to != **module {
                    let place = format!("{}:{}", file.name, path.line + 1);
                    imports.push(Import {
                        from: (*module).clone(),
                        to,
                        place,
                    });
                }
            }
        }
        Self { modules, imports }
    }
}

/// `crates/NAME/src/a/mod.rs` and `crates/NAME/src/a.rs` are the module `a`; `lib.rs` and `main.rs`
/// are the root.
fn module_of(crate_name: &str, file: &str) -> Option<ModulePath> {
    let inside = file
        .strip_prefix(&format!("crates/{crate_name}/src/"))?
        .strip_suffix(".rs")?;
    let mut path: ModulePath = inside.split('/').map(str::to_owned).collect();
    if path
        .last()
        .is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str()))
    {
        path.pop();
    }
    Some(path)
}

/// A written path from the root of the crate; None for a path into another crate.
fn absolute(
    modules: &BTreeSet<ModulePath>,
    module: &ModulePath,
    segments: &[String],
) -> Option<ModulePath> {
    let mut base = module.clone();
    let mut rest = segments;
    match rest.first()?.as_str() {
        "crate" => {
            base.clear();
            rest = &rest[1..];
        }
        "self" => rest = &rest[1..],
        "super" => {}
        // A path that begins with a child of the module.
        first => {
            let child: ModulePath = module.iter().cloned().chain([first.to_owned()]).collect();
            if !modules.contains(&child) {
                return None;
            }
        }
    }
    while rest.first().is_some_and(|segment| segment == "super") {
        base.pop()?;
        rest = &rest[1..];
    }
    base.extend(rest.iter().cloned());
    Some(base)
}

/// The module in which the item at the end of a path is declared.
fn declared_in(
    modules: &BTreeSet<ModulePath>,
    reexports: &BTreeMap<(ModulePath, String), ModulePath>,
    mut path: ModulePath,
) -> ModulePath {
    // Re-exports may lead to re-exports, and broken code in a circle.
    for _ in 0..8 {
        let known = (0..=path.len())
            .rev()
            .find(|length| modules.contains(&path[..*length]));
        let length = known.unwrap_or(0);
        let Some(item) = path.get(length) else { break };
        let Some(next) = reexports.get(&(path[..length].to_vec(), item.clone())) else {
            path.truncate(length);
            break;
        };
        path = next.iter().chain(&path[length + 1..]).cloned().collect();
    }
    let length = (0..=path.len())
        .rev()
        .find(|length| modules.contains(&path[..*length]))
        .unwrap_or(0);
    path.truncate(length);
    path
}

/// All paths of a file that may lead to modules of its crate.
fn paths(file: &RustFile) -> Vec<WrittenPath> {
    let mut found = Vec::new();
    let code = &file.code;
    let mut at = 0;
    while at < code.len() {
        let rest = &code[at..];
        let length = word(rest).len();
        if length == 0 {
            at += rest.chars().next().map_or(1, char::len_utf8);
            continue;
        }
        let name = &rest[..length];
        let before = code[..at].trim_end();
        let line = code[..at].matches('\n').count();
        let is_test = file.is_test.get(line).copied().unwrap_or(false);
        if name == "use" && !is_test {
            let is_reexport =
                before.ends_with("pub") || before.ends_with(')') && is_restricted_pub(before);
            let end = rest.find(';').unwrap_or(rest.len());
            tree(&rest[length..end], &[], line, is_reexport, &mut found);
            at += end;
            continue;
        }
        let is_start = ["crate", "super", "self"].contains(&name) && !before.ends_with("::");
        if is_start && rest[length..].starts_with("::") && !is_test {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
            let path = &rest[..end.unwrap_or(rest.len())];
            tree(path.trim_end_matches(':'), &[], line, false, &mut found);
            at += path.len();
            continue;
        }
        at += length;
    }
    found
}

/// Whether the code ends with `pub(…)`.
fn is_restricted_pub(before: &str) -> bool {
    before
        .rfind('(')
        .is_some_and(|open| before[..open].trim_end().ends_with("pub"))
}

fn word(text: &str) -> &str {
    let end = text
        .find(|c: char| !(c.is_alphanumeric() || c == '_'))
        .unwrap_or(text.len());
    &text[..end]
}

/// The paths of a `use` tree: `a::{b, c::d as e}` gives `a::b` and `a::c::d`, the second under the
/// name `e`.
fn tree(
    text: &str,
    prefix: &[String],
    line: usize,
    is_reexport: bool,
    found: &mut Vec<WrittenPath>,
) {
    let text = text.trim();
    if let Some(open) = text.find('{') {
        let mut prefix = prefix.to_vec();
        prefix.extend(segments(&text[..open]));
        let inside = text[open + 1..].trim_end().trim_end_matches('}');
        let before = |part: &str| part.as_ptr() as usize - text.as_ptr() as usize;
        for part in split_at_commas(inside) {
            let line = line + text[..before(part)].matches('\n').count();
            tree(part, &prefix, line, is_reexport, found);
        }
        return;
    }
    let (path, alias) = match text.split_once(" as ") {
        Some((path, alias)) => (path, Some(alias.trim())),
        None => (text, None),
    };
    let mut all = prefix.to_vec();
    all.extend(segments(path));
    // `a::{self}` is `a`, and `a::*` is everything of `a`.
    if all.len() > 1 {
        all.retain(|segment| segment != "*");
        if all.last().is_some_and(|last| last == "self") {
            all.pop();
        }
    }
    if let Some(last) = all.last().cloned() {
        let name = alias.map_or(last, str::to_owned);
        found.push(WrittenPath {
            segments: all,
            name,
            line,
            is_reexport,
        });
    }
}

fn segments(path: &str) -> impl Iterator<Item = String> {
    path.split("::")
        .map(str::trim)
        .filter(|segment| !segment.is_empty())
        .map(str::to_owned)
}

/// The parts of a list, whose own braces stay together.
fn split_at_commas(list: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut depth = 0;
    let mut begins = 0;
    for (at, character) in list.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&list[begins..at]);
                begins = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[begins..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}
