//! No type name is declared twice in a crate: a reader who meets it must not ask which one is meant.

use std::collections::BTreeMap;

use crate::tidy::rust::{Items, RustFile};

/// Names that are declared more than once today, by crate. The list may only become shorter: a name that no longer
/// stands twice must leave it.
#[rustfmt::skip] // One name a line: two people who take names off the list do not meet.
const KNOWN: &[(&str, &[&str])] = &[
    (
        "efface",
        &[
            "Body",
            "Entry",
            "Frame",
            "Group",
            "Kind",
            "Linear",
            "Plan",
            "Stored",
            "Tally",
            "Waiting",
            "Work",
        ],
    ),
    (
        "efface-nn",
        &[
            "Error",
            "Head",
            "Layer",
            "Linear",
            "Lstm",
            "Model",
            "Norm",
            "Pooling",
            "Result",
            "Squash",
            "Weights",
        ],
    ),
    (
        "efface-reproduce",
        &[
            "Ready",
        ],
    ),
];

pub(crate) fn check(sources: &[RustFile]) -> Vec<String> {
    let mut declared: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for file in sources {
        let Some(crate_name) = file.crate_name() else { continue };
        for item in Items::of(&file.code).filter(|item| item.keyword != "mod") {
            if !file.is_test[item.first_line] {
                let place = format!("{}:{}", file.name, item.first_line + 1);
                declared.entry((crate_name, item.name)).or_default().push(place);
            }
        }
    }
    let mut found = Vec::new();
    for ((crate_name, name), places) in &declared {
        let is_known = known(crate_name).contains(name);
        if places.len() > 1 && !is_known {
            let count = places.len();
            found.push(format!("{crate_name} declares {name} {count} times: {}", places.join(", ")));
        }
        if places.len() == 1 && is_known {
            found.push(format!("{crate_name} declares {name} once: take it off the list in tidy/names.rs"));
        }
    }
    for (crate_name, names) in KNOWN {
        for name in names.iter().filter(|name| !declared.contains_key(&(*crate_name, **name))) {
            found.push(format!("{crate_name} has no {name}: take it off the list in tidy/names.rs"));
        }
    }
    found
}

fn known(crate_name: &str) -> &'static [&'static str] {
    KNOWN.iter().find(|(name, _)| *name == crate_name).map_or(&[], |(_, names)| names)
}
