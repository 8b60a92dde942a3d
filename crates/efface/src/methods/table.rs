//! The methods as data: what each works on, what it promises, what it costs and where it comes
//! from. The help of the command, the README and every refusal are made from this one table.
//!
//! d features, c classes, n rows, k rows to forget, s non-zeros a row; H_D is the hat matrix of the
//! rows to forget.

use std::fmt::Write;

use crate::family::Family;
use Family::{
    BernoulliNb, ComplementNb, GaussianNb, KMeans, LinearSvm, Logistic, MultinomialNb, Network,
    Poisson, Ridge, Sisa, Softmax,
};

/// One line of the table. A method that promises different things of different models has several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableEntry {
    /// Its name in commands and evidence.
    pub method: &'static str,
    /// The families that it works on.
    pub models: &'static [Family],
    /// `exact`, `certified` or `approximate`.
    pub claim: &'static str,
    /// What a request costs.
    pub cost: &'static str,
    /// What the model keeps for it beside its parameters.
    pub memory: &'static str,
    /// Where it comes from.
    pub paper: &'static str,
}

const ALL: &[Family] = &Family::ALL;
const PENALISED: &[Family] = &[LinearSvm, Poisson];
const BAYES: &[Family] = &[MultinomialNb, ComplementNb, BernoulliNb, GaussianNb];

const fn entry(
    method: &'static str,
    models: &'static [Family],
    claim: &'static str,
    [cost, memory, paper]: [&'static str; 3],
) -> TableEntry {
    TableEntry {
        method,
        models,
        claim,
        cost,
        memory,
        paper,
    }
}

static TABLE: [TableEntry; 22] = [
    entry(
        "retrain",
        ALL,
        "exact",
        ["a fit, O(nd²) for ridge", "the rows", "by definition"],
    ),
    entry(
        "retrain_head",
        &[Network],
        "that of its head",
        ["a fit of the head", "the features", "by definition"],
    ),
    entry(
        "fine_tune",
        &[Network],
        "approximate",
        [
            "E epochs over the retained rows",
            "the rows",
            "Golatkar et al. 2020",
        ],
    ),
    entry(
        "neggrad_plus",
        &[Network],
        "approximate",
        [
            "up to 2E epochs over the retained rows",
            "the rows",
            "Kurmanji et al. 2023",
        ],
    ),
    entry(
        "scrub",
        &[Network],
        "approximate",
        [
            "E epochs over the retained rows",
            "the rows",
            "Kurmanji et al. 2023",
        ],
    ),
    entry(
        "exact",
        &[Ridge],
        "exact",
        [
            "O(k²d) to O(kd²)",
            "curvature, d²",
            "Cook and Weisberg 1982",
        ],
    ),
    entry(
        "newton",
        &[Ridge],
        "exact",
        ["O(kd²)", "factor, d²", "Cao et al. 2022, eq. 3"],
    ),
    entry(
        "newton",
        &[Logistic, Softmax],
        "approximate",
        ["O(k(dc)²)", "3(dc)²", "Cao et al. 2022, eq. 3"],
    ),
    entry(
        "newton",
        PENALISED,
        "approximate",
        ["O(nd²) a step", "the rows", "Cao et al. 2022, eq. 3"],
    ),
    entry(
        "influence",
        &[Ridge, Logistic, Softmax],
        "approximate",
        ["O((dc)²)", "curvature, (dc)²", "Koh and Liang 2017"],
    ),
    entry(
        "projection_residual",
        &[Ridge, Logistic, Softmax],
        "approximate",
        [
            "O(k²d) and H_D",
            "H_D, from curvature",
            "Izzo et al. 2021, Cao et al. 2022",
        ],
    ),
    entry(
        "summation",
        &[Ridge],
        "exact",
        ["O(kd² + d³)", "sums, d²", "Cao and Yang 2015"],
    ),
    entry(
        "summation",
        BAYES,
        "exact",
        ["O(ks)", "sums, cd", "Cao and Yang 2015"],
    ),
    entry(
        "warm_start",
        &[Logistic, Softmax],
        "exact",
        ["a few passes over the rows", "the rows", "Tsai et al. 2014"],
    ),
    entry(
        "warm_start",
        PENALISED,
        "exact",
        ["a few steps, O(nd²) each", "the rows", "Tsai et al. 2014"],
    ),
    entry(
        "delta_grad",
        &[Logistic, Softmax],
        "approximate",
        [
            "T/5 passes; T more at first",
            "2Tdc, T steps of descent",
            "Wu et al. 2020",
        ],
    ),
    entry(
        "certified",
        &[Logistic],
        "certified",
        ["O(kd²)", "curvature, d²", "Guo et al. 2020"],
    ),
    entry(
        "descent_to_delete",
        &[Logistic],
        "certified",
        [
            "up to 500 passes, then training",
            "the rows",
            "Neel et al. 2021",
        ],
    ),
    entry(
        "sisa",
        &[Sisa],
        "exact",
        [
            "a shard, from the touched slice on",
            "a model a shard and slice",
            "Bourtoule et al. 2021",
        ],
    ),
    entry(
        "q_kmeans",
        &[KMeans],
        "exact",
        [
            "a replay; at times a refit",
            "every stage",
            "Ginart et al. 2019",
        ],
    ),
    entry(
        "dc_kmeans",
        &[KMeans],
        "exact",
        ["a path of the tree", "the tree", "Ginart et al. 2019"],
    ),
    entry(
        "auto",
        ALL,
        "that of its choice",
        ["that of its choice", "", ""],
    ),
];

/// Every method on every family that it works on.
pub fn table() -> &'static [TableEntry] {
    &TABLE
}

/// The methods of all families, each once, in the order of the table.
pub fn method_names() -> Vec<&'static str> {
    let mut names: Vec<&'static str> = table().iter().map(|entry| entry.method).collect();
    names.dedup();
    names
}

/// The methods that work on other models than networks, each once, in the order of the table.
pub fn core_method_names() -> Vec<&'static str> {
    let mut names: Vec<&'static str> = core_entries().map(|entry| entry.method).collect();
    names.dedup();
    names
}

/// The lines of the table but those of networks alone, of which the pages about networks tell.
fn core_entries() -> impl Iterator<Item = &'static TableEntry> {
    table().iter().filter(|entry| entry.models != [Network])
}

/// Whether the table lists the method for the family.
pub fn lists(method: &str, family: Family) -> bool {
    table()
        .iter()
        .any(|entry| entry.method == method && entry.models.contains(&family))
}

/// The models of a line in few words.
fn models(entry: &TableEntry) -> String {
    match entry.models {
        ALL => "all".into(),
        BAYES => "naive Bayes".into(),
        models => models
            .iter()
            .map(|family| short(*family))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// What a reader of a table calls a family.
fn short(family: Family) -> &'static str {
    match family {
        MultinomialNb | ComplementNb | BernoulliNb | GaussianNb => "naive Bayes",
        Sisa => "in shards",
        LinearSvm => "SVM",
        Poisson => "Poisson",
        family => family.name(),
    }
}

/// The models of a line, where a setting of the fit is needed with that setting.
fn models_in_full(entry: &TableEntry) -> String {
    match entry.method {
        "certified" | "descent_to_delete" => "logistic with ε".into(),
        "q_kmeans" => "k-means, quantised".into(),
        "dc_kmeans" => "k-means, divided".into(),
        _ => models(entry),
    }
}

/// The table for a page in Markdown.
pub fn markdown() -> String {
    let mut page = String::from(
        "| method | models | claim | cost of forgetting k rows | kept for it | from |\n|---|---|---|---|---|---|\n",
    );
    for entry in core_entries() {
        let TableEntry {
            method,
            claim,
            cost,
            memory,
            paper,
            ..
        } = entry;
        // Writing to a String cannot fail.
        let _ = writeln!(
            page,
            "| `{method}` | {} | {claim} | {cost} | {memory} | {paper} |",
            models_in_full(entry)
        );
    }
    page
}

/// The table for a terminal of 100 columns.
pub fn plain() -> String {
    let mut page = format!(
        "  {:<20}{:<28}{:<13}{}\n",
        "method", "models", "claim", "cost of forgetting k rows"
    );
    for entry in core_entries().filter(|entry| entry.method != "auto") {
        let TableEntry {
            method,
            claim,
            cost,
            ..
        } = entry;
        let _ = writeln!(
            page,
            "  {method:<20}{:<28}{claim:<13}{cost}",
            models_in_full(entry)
        );
    }
    page.push_str(
        "  auto                all                         the cheapest exact, certified or near one\n",
    );
    let _ = writeln!(page, "\n  {:<20}{:<28}from", "method", "kept for it");
    let mut last = "";
    for TableEntry {
        method,
        memory,
        paper,
        ..
    } in core_entries().filter(|entry| entry.method != "auto")
    {
        // A method of two lines above is one method here, unless it keeps something else.
        let again = if *method == last { "" } else { method };
        let _ = writeln!(page, "  {again:<20}{memory:<28}{paper}");
        last = method;
    }
    page
}

/// Why the method is not for the family, and what is.
pub fn refusal(method: &str, family: Family) -> String {
    let why = match (method, family) {
        ("retrain_head" | "fine_tune" | "neggrad_plus" | "scrub", _) => "this model is no network",
        ("sisa", _) => "the model was not fitted in shards",
        (_, Sisa) => {
            "a model in shards is trained shard by shard, and keeps neither sums nor curvature of the whole"
        }
        ("q_kmeans" | "dc_kmeans", _) => "this model has no clusters",
        ("certified" | "descent_to_delete", Logistic) => {
            "the model was fitted without ε and δ, so that no noise hides what is left"
        }
        ("certified" | "descent_to_delete", _) => {
            "only a logistic model can be fitted with the noise that it needs"
        }
        ("summation", Logistic | Softmax | LinearSvm | Poisson) => {
            "the loss is not a sum of fixed statistics"
        }
        ("summation", _) => {
            "sums follow from clusters and clusters from sums, so that there is nothing to subtract from"
        }
        ("exact", Logistic | Softmax | LinearSvm | Poisson) => "there is no closed form",
        ("warm_start", Ridge) => "training is a closed form and has no start",
        ("delta_grad", Ridge) => {
            "training is a closed form and takes no steps that could be replayed"
        }
        (_, MultinomialNb | ComplementNb | BernoulliNb | GaussianNb) => {
            "naive Bayes is its sums, with no loss to take a step on"
        }
        (_, LinearSvm | Poisson) => "this model keeps no curvature, and its bounds need none",
        (_, KMeans) => "clusters are not the minimum of a smooth loss",
        _ => "it is not made for this model",
    };
    let instead = match family {
        Ridge => "exact",
        Logistic | Softmax => "newton",
        LinearSvm | Poisson => "warm_start",
        MultinomialNb | ComplementNb | BernoulliNb | GaussianNb => "summation",
        KMeans => "q_kmeans or dc_kmeans, as it was fitted",
        Sisa => "sisa",
        Network => "retrain_head",
    };
    format!("{why}; use {instead}, or auto")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_of_100_columns_shows_every_line() {
        for line in plain().lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }

    #[test]
    fn a_method_has_one_place_and_every_family_a_method_of_its_own() {
        let names = method_names();
        let distinct: std::collections::HashSet<_> = names.iter().collect();
        assert_eq!(names.len(), distinct.len());
        for family in Family::ALL {
            assert!(
                table()
                    .iter()
                    .any(|e| !matches!(e.method, "retrain" | "auto") && e.models.contains(&family))
            );
        }
    }

    #[test]
    fn the_front_page_of_the_room_shows_the_table() {
        let page = include_str!("mod.rs");
        for line in markdown().lines() {
            assert!(
                page.contains(&format!("//! {}", line.trim_end())),
                "missing in methods/mod.rs: {line}"
            );
        }
    }
}
