//! No type name is declared twice in a crate: a reader who meets it must not ask which one is
//! meant.

use std::collections::BTreeMap;

use crate::tidy::rust::{Items, RustFile};

pub(crate) fn check(sources: &[RustFile]) -> Vec<String> {
    let mut declared: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for file in sources {
        let Some(crate_name) = file.crate_name() else {
            continue;
        };
        for item in Items::of(&file.code).filter(|item| item.keyword != "mod") {
            if !file.is_test[item.first_line] {
                let place = format!("{}:{}", file.name, item.first_line + 1);
                declared
                    .entry((crate_name, item.name))
                    .or_default()
                    .push(place);
            }
        }
    }
    let mut found = Vec::new();
    for ((crate_name, name), places) in &declared {
        if places.len() > 1 {
            let count = places.len();
            found.push(format!(
                "{crate_name} declares {name} {count} times: {}",
                places.join(", ")
            ));
        }
    }
    found
}
