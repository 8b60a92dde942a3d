//! Puts mutants behind a switch: `L + R` becomes `(if mutant_is(7) { L - R } else { L + R })`, and
//! a function body begins with `if mutant_is(8) { return Default::default(); }`.

use std::ops::Range;

use anyhow::{Context, Result};
use serde_json::Value;
use syn::spanned::Spanned;
use syn::visit::Visit;

/// The name of the function that says if a mutant is turned on.
const FUNCTION: &str = "mutant_is_on";

/// One change of the sources, as cargo-mutants lists it.
#[derive(Debug, Clone)]
pub(crate) struct Mutant {
    /// Its description, with file and line.
    pub(crate) name: String,
    pub(crate) package: String,
    pub(crate) file: String,
    kind: Kind,
    /// The text that replaces the operator, the guard or the result of the function.
    replacement: String,
    /// Line and column of the first character to replace, from 1.
    start: (usize, usize),
}

/// The kinds of changes that can be put behind a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A function returns a fixed value.
    FunctionValue,
    /// Another operator between two operands.
    BinaryOperator,
    /// An operand without its operator.
    UnaryOperator,
}

impl Mutant {
    /// Reads an item of the list. Returns None for kinds that cannot be put behind a switch:
    /// removed match arms and fields.
    pub(crate) fn read(item: &Value) -> Option<Self> {
        let kind = match item["genre"].as_str()? {
            "FnValue" => Kind::FunctionValue,
            "BinaryOperator" => Kind::BinaryOperator,
            "UnaryOperator" => Kind::UnaryOperator,
            _ => return None,
        };
        let start = &item["span"]["start"];
        let number = |value: &Value| usize::try_from(value.as_u64()?).ok();
        Some(Self {
            name: item["name"].as_str()?.to_owned(),
            package: item["package"].as_str()?.to_owned(),
            file: item["file"].as_str()?.to_owned(),
            kind,
            replacement: item["replacement"].as_str()?.to_owned(),
            start: (number(&start["line"])?, number(&start["column"])?),
        })
    }
}

/// The source of the function that reads the switch, for the end of a library.
pub(crate) fn switch(variable: &str) -> String {
    format!(
        "\n#[doc(hidden)]\npub(crate) fn {FUNCTION}(number: usize) -> bool {{\n    \
         static ON: std::sync::OnceLock<Option<usize>> = std::sync::OnceLock::new();\n    \
         *ON.get_or_init(|| std::env::var(\"{variable}\").ok()?.parse().ok()) == Some(number)\n}}\n"
    )
}

/// The place of a mutant in a file: the whole expression and its operator, or the start of a body.
struct Place {
    whole: Range<usize>,
    operator: Range<usize>,
}

/// Writes mutants, each with its number, into the text of a file. Returns the text and the numbers
/// of those for which there is no place: a mutant that overlaps another one in part, or whose
/// expression is not found.
pub(crate) fn apply(text: &str, mutants: &[(usize, &Mutant)]) -> Result<(String, Vec<usize>)> {
    let file = syn::parse_file(text).context("a source file does not parse")?;
    let mut finder = Finder {
        offsets: line_offsets(text),
        text,
        operators: Vec::new(),
        bodies: Vec::new(),
    };
    finder.visit_file(&file);
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    let mut dropped = Vec::new();
    for &(number, mutant) in mutants {
        let edit = finder
            .place(mutant)
            .map(|place| edit(text, number, mutant, &place));
        match edit {
            // Nested edits are left out: both would have to be written into one another.
            Some(edit) if edits.iter().all(|(range, _)| !overlaps(range, &edit.0)) => {
                edits.push(edit);
            }
            _ => dropped.push(number),
        }
    }
    edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    let mut mutated = text.to_owned();
    for (range, replacement) in edits {
        mutated.replace_range(range, &replacement);
    }
    Ok((mutated, dropped))
}

fn overlaps(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end.max(other.start + 1) && other.start < one.end.max(one.start + 1)
}

/// The replacement of the text at a place.
fn edit(text: &str, number: usize, mutant: &Mutant, place: &Place) -> (Range<usize>, String) {
    let on = format!("crate::{FUNCTION}({number})");
    if mutant.kind == Kind::FunctionValue {
        let start = place.whole.start + 1;
        let value = &mutant.replacement;
        return (start..start, format!(" if {on} {{ return {value}; }}"));
    }
    let original = &text[place.whole.clone()];
    let before = &text[place.whole.start..place.operator.start];
    let after = &text[place.operator.end..place.whole.end];
    let replacement = &mutant.replacement;
    let mutated = format!("{before}{replacement}{after}");
    let switched = format!("(if {on} {{ {mutated} }} else {{ {original} }})");
    (place.whole.clone(), switched)
}

/// The number of the mutant that encloses an offset, or else the last one before it.
pub(crate) fn enclosing(text: &str, offset: usize) -> Option<usize> {
    let offset = (offset + 1).min(text.len());
    let before = text.get(..offset).or_else(|| text.get(..offset + 1))?;
    let call = format!("{FUNCTION}(");
    let found = before.rfind(&call).or_else(|| text.find(&call))?;
    let number = &text[found + call.len()..];
    number[..number.find(')')?].parse().ok()
}

/// Byte offsets of the lines.
fn line_offsets(text: &str) -> Vec<usize> {
    let ends = text.match_indices('\n').map(|(at, _)| at + 1);
    std::iter::once(0).chain(ends).collect()
}

/// Collects operators and function bodies with their byte ranges.
struct Finder<'t> {
    text: &'t str,
    offsets: Vec<usize>,
    operators: Vec<Place>,
    bodies: Vec<Range<usize>>,
}

impl Finder<'_> {
    /// The byte offset of a line from 1 and a column of characters from 0.
    fn offset(&self, line: usize, column: usize) -> usize {
        let start = self.offsets[line - 1];
        let characters = self.text[start..].char_indices().map(|(at, _)| at);
        start + characters.skip(column).next().unwrap_or(0)
    }

    fn range(&self, span: proc_macro2::Span) -> Range<usize> {
        let (start, end) = (span.start(), span.end());
        self.offset(start.line, start.column)..self.offset(end.line, end.column)
    }

    fn place(&self, mutant: &Mutant) -> Option<Place> {
        let start = self.offset(mutant.start.0, mutant.start.1 - 1);
        if mutant.kind == Kind::FunctionValue {
            // The span is the inside of the body or the body itself.
            let inside = |body: &&Range<usize>| body.start <= start && start < body.end;
            let body = self
                .bodies
                .iter()
                .filter(inside)
                .min_by_key(|body| body.len())?;
            let whole = body.clone();
            let operator = whole.start..whole.start;
            return Some(Place { whole, operator });
        }
        let found = self
            .operators
            .iter()
            .find(|place| place.operator.start == start)?;
        let (whole, operator) = (found.whole.clone(), found.operator.clone());
        Some(Place { whole, operator })
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_expr_binary(&mut self, node: &'ast syn::ExprBinary) {
        let (whole, operator) = (self.range(node.span()), self.range(node.op.span()));
        self.operators.push(Place { whole, operator });
        syn::visit::visit_expr_binary(self, node);
    }

    fn visit_expr_unary(&mut self, node: &'ast syn::ExprUnary) {
        let (whole, operator) = (self.range(node.span()), self.range(node.op.span()));
        self.operators.push(Place { whole, operator });
        syn::visit::visit_expr_unary(self, node);
    }

    fn visit_item_fn(&mut self, node: &'ast syn::ItemFn) {
        self.bodies.push(self.range(node.block.span()));
        syn::visit::visit_item_fn(self, node);
    }

    fn visit_impl_item_fn(&mut self, node: &'ast syn::ImplItemFn) {
        self.bodies.push(self.range(node.block.span()));
        syn::visit::visit_impl_item_fn(self, node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(kind: Kind, replacement: &str, start: (usize, usize)) -> Mutant {
        Mutant {
            name: String::new(),
            package: String::new(),
            file: String::new(),
            kind,
            replacement: replacement.into(),
            start,
        }
    }

    #[test]
    fn operators_and_bodies_are_put_behind_a_switch() {
        let text = "fn f(a: u8) -> u8 { a + 1 }\nfn g() -> bool { !true }\n";
        let sum = mutant(Kind::BinaryOperator, "-", (1, 23));
        let not = mutant(Kind::UnaryOperator, "", (2, 18));
        let (mutated, dropped) = apply(text, &[(3, &sum), (4, &not)]).unwrap();
        assert!(dropped.is_empty());
        assert!(mutated.contains("(if crate::mutant_is_on(3) { a - 1 } else { a + 1 })"));
        assert!(mutated.contains("(if crate::mutant_is_on(4) { true } else { !true })"));
        let value = mutant(Kind::FunctionValue, "0", (1, 19));
        let (mutated, _) = apply(text, &[(5, &value)]).unwrap();
        assert!(mutated.contains("{ if crate::mutant_is_on(5) { return 0; } a + 1 }"));
    }

    #[test]
    fn the_mutant_of_an_error_is_found() {
        let text = "a mutant_is_on(3) b mutant_is_on(14) c";
        assert_eq!(enclosing(text, 18), Some(3));
        assert_eq!(enclosing(text, text.len()), Some(14));
    }
}
