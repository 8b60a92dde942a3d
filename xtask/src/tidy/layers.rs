//! Crates are built in layers: a module imports from its own layer and from those below. Modules
//! side by side, at any depth, import each other without circles.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::imports::{CrateImports, Import};
use crate::tidy::rust::RustFile;

/// A crate, and the order that its modules keep.
struct LayeredCrate {
    name: &'static str,
    /// The layers of its outermost modules, from the lowest up.
    layers: &'static [&'static [&'static str]],
    /// How deep circles are looked for. Below that, the files of a folder are one idea, and each
    /// may use the others.
    depth: usize,
}

/// A crate that is not listed is not looked at.
const LAYERS: &[LayeredCrate] = &[
    LayeredCrate {
        name: "efface",
        depth: 2,
        layers: &[
            &["error", "feature_error", "gram", "hint", "random", "row_id"],
            &["linalg", "rows", "not_covered"],
            &[
                "features",
                "family",
                "evidence",
                "state",
                "statistics",
                "synthetic",
            ],
            &["traits"],
            &["methods"],
            &["models"],
            &["fitted", "eval", "scores"],
        ],
    },
    LayeredCrate {
        name: "efface-engine",
        depth: usize::MAX,
        layers: &[
            &["clock", "error", "ordered_work", "progress", "randomness"],
            &["statistics"],
            &["file"],
            &["ledger"],
            &["codec"],
            &["operations"],
            &["engine"],
        ],
    },
];

pub(crate) fn check(sources: &[RustFile]) -> Vec<String> {
    let mut found = Vec::new();
    for LayeredCrate {
        name,
        layers,
        depth,
    } in LAYERS
    {
        let imports = CrateImports::of(name, sources);
        found.extend(upward(name, layers, &imports));
        found.extend(circles(name, *depth, &imports));
    }
    found
}

/// Imports that lead from a layer to one above it, and modules that no layer lists.
fn upward(crate_name: &str, layers: &[&[&str]], all: &CrateImports) -> Vec<String> {
    let layer = |module: &str| layers.iter().position(|names| names.contains(&module));
    let mut found: Vec<String> = all
        .modules
        .iter()
        .filter(|module| module.len() == 1 && layer(&module[0]).is_none())
        .map(|module| {
            format!(
                "{crate_name} has no layer for {}: list it in tidy/layers.rs",
                module[0]
            )
        })
        .collect();
    for Import { from, to, place } in &all.imports {
        let (Some(from), Some(to)) = (from.first(), to.first()) else {
            continue;
        };
        if layer(from) < layer(to) {
            found.push(format!(
                "{place}: {from} is below {to} and must not import it"
            ));
        }
    }
    found
}

/// Modules side by side that import each other in a circle.
fn circles(crate_name: &str, depth: usize, all: &CrateImports) -> Vec<String> {
    // For each parent the imports between its children, with one place for each.
    let mut edges: BTreeMap<&[String], BTreeMap<(&str, &str), &str>> = BTreeMap::new();
    for Import { from, to, place } in &all.imports {
        let shared = from.iter().zip(to).take_while(|(a, b)| a == b).count();
        // An import between a module and what is inside it is no import between neighbours.
        if let (Some(a), Some(b)) = (from.get(shared), to.get(shared))
            && shared < depth
        {
            edges
                .entry(&from[..shared])
                .or_default()
                .entry((a, b))
                .or_insert(place);
        }
    }
    let mut found = Vec::new();
    for (parent, edges) in &edges {
        for circle in strongly_connected(edges.keys().copied().collect()) {
            let mut places: Vec<String> = Vec::new();
            for ((from, to), place) in edges {
                if circle.contains(from) && circle.contains(to) {
                    places.push(format!("{from} → {to} ({place})"));
                }
            }
            let parent = if parent.is_empty() {
                crate_name.to_owned()
            } else {
                parent.join("::")
            };
            found.push(format!(
                "{crate_name}: modules of {parent} import each other: {}",
                places.join(", ")
            ));
        }
    }
    found
}

/// Groups of two or more that reach each other.
fn strongly_connected<'a>(edges: BTreeSet<(&'a str, &'a str)>) -> Vec<BTreeSet<&'a str>> {
    let reachable = |start: &'a str| {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut open = vec![start];
        while let Some(from) = open.pop() {
            for (_, to) in edges.iter().filter(|edge| edge.0 == from) {
                if seen.insert(to) {
                    open.push(to);
                }
            }
        }
        seen
    };
    let nodes: BTreeSet<&str> = edges.iter().flat_map(|(from, to)| [*from, *to]).collect();
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        nodes.iter().map(|node| (*node, reachable(node))).collect();
    let mut groups: Vec<BTreeSet<&str>> = Vec::new();
    for node in nodes {
        let is_grouped = groups.iter().any(|group| group.contains(node));
        if !is_grouped && reach[node].contains(node) {
            groups.push(
                reach[node]
                    .iter()
                    .copied()
                    .filter(|other| reach[other].contains(node))
                    .collect(),
            );
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::TextFile;

    fn source(name: &str, text: &str) -> RustFile {
        RustFile::read(&TextFile {
            name: format!("crates/a/src/{name}"),
            text: text.into(),
        })
    }

    #[test]
    fn imports_upwards_are_found_through_reexports() {
        let sources = [
            source(
                "low.rs",
                "use crate::high::{self, Thing as Other};\n// use crate::top;\n",
            ),
            source(
                "high/mod.rs",
                "mod inner;\npub(crate) use inner::Thing;\nuse crate::low::f;",
            ),
            source(
                "high/inner.rs",
                "fn g() { crate::low::f(); let text = \"crate::top\"; }",
            ),
            source(
                "top.rs",
                "#[cfg(test)]\nmod tests {\n    use crate::lost::x;\n}\n",
            ),
        ];
        let imports = CrateImports::of("a", &sources);
        let found = upward("a", &[&["low"], &["high"]], &imports);
        let message = "crates/a/src/low.rs:1: low is below high and must not import it";
        assert_eq!(
            found,
            [
                "a has no layer for top: list it in tidy/layers.rs",
                message,
                message
            ]
        );
        let inner = imports
            .imports
            .iter()
            .any(|import| import.to == ["high", "inner"]);
        assert!(inner, "a name is followed to the module that declares it");
    }

    #[test]
    fn circles_between_neighbours_are_found_at_every_depth() {
        let sources = [
            source("a/one.rs", "use super::two::X;"),
            source("a/two.rs", "use crate::a::three::{X, Y};"),
            source("a/three.rs", "fn f() -> super::one::Z {}"),
            source("a/mod.rs", "mod one;\nmod two;\nmod three;\nuse one::Z;"),
            source("b.rs", "use crate::a::one::Z;"),
        ];
        let found = circles("a", usize::MAX, &CrateImports::of("a", &sources));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with("a: modules of a import each other: one → two"),
            "{found:?}"
        );
        // The files of folder `a` are below that depth.
        assert!(circles("a", 1, &CrateImports::of("a", &sources)).is_empty());
    }
}
