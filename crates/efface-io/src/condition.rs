//! A small expression that keeps some rows of a table: `split = train and (age >= 18 or not country
//! = '')`.
//!
//! ```text
//! condition  = all-of { "or" all-of }
//! all-of     = one { "and" one }
//! one        = "not" one | "(" condition ")" | column operator value
//! operator   = "=" | "==" | "!=" | "<" | "<=" | ">" | ">="
//! ```
//!
//! A column or a value is a run of letters without blanks, or anything in quotes, `'…'`, `"…"` or
//! `` `…` ``. Where the value and the cell are numbers, they compare as numbers, else as text,
//! letter by letter, which puts dates of the form 2026-03-02 in order. A cell that holds nothing
//! equals `''` and nothing else; it is neither below nor above anything.

use std::cmp::Ordering;
use std::fmt;

use efface::features::Cell;

/// The longest expression, in bytes.
const LONGEST: usize = 1 << 16;

/// The deepest nesting of brackets and `not`.
const DEEPEST: usize = 64;

/// A condition on the cells of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum RowCondition {
    /// All of these hold.
    All(Vec<RowCondition>),
    /// One of these holds.
    Any(Vec<RowCondition>),
    /// This does not hold.
    Not(Box<RowCondition>),
    /// A cell compares with a value.
    Compare {
        /// The column.
        column: String,
        /// How the cell is to compare.
        operator: ComparisonSign,
        /// The value, as written.
        value: String,
    },
}

/// How a cell is to compare with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComparisonSign {
    /// `=`.
    Equal,
    /// `!=`.
    NotEqual,
    /// `<`.
    Less,
    /// `<=`.
    AtMost,
    /// `>`.
    More,
    /// `>=`.
    AtLeast,
}

/// Why an expression is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: {problem}")]
pub struct ConditionError {
    /// Where it goes wrong, from 1.
    pub at: usize,
    /// What is wrong there.
    pub problem: String,
}

impl RowCondition {
    /// Reads an expression.
    ///
    /// # Errors
    /// It does not follow the grammar at the head of this page, is longer than 65,536 bytes or
    /// nested deeper than 64.
    pub fn parse(text: &str) -> Result<Self, ConditionError> {
        if text.len() > LONGEST {
            let problem = format!("an expression has at most {LONGEST} bytes");
            return Err(ConditionError {
                at: LONGEST + 1,
                problem,
            });
        }
        let mut parser = ConditionParser {
            tokens: tokens(text)?,
            next: 0,
            end: text.len() + 1,
        };
        let found = parser.any(0)?;
        match parser.tokens.get(parser.next) {
            None => Ok(found),
            Some(token) => Err(expected(token.at, "`and`, `or` or the end")),
        }
    }

    /// The columns that are named, each as often as it is.
    pub fn columns(&self) -> Vec<&str> {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().flat_map(Self::columns).collect(),
            Self::Not(part) => part.columns(),
            Self::Compare { column, .. } => vec![column],
        }
    }

    /// Whether a row is meant; `cell` finds its cells by the names of their columns.
    pub fn holds<'c>(&self, cell: &dyn Fn(&str) -> Option<&'c Cell>) -> bool {
        match self {
            Self::All(parts) => parts.iter().all(|part| part.holds(cell)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(cell)),
            Self::Not(part) => !part.holds(cell),
            Self::Compare {
                column,
                operator,
                value,
            } => operator.holds(cell(column), value),
        }
    }
}

impl ComparisonSign {
    fn holds(self, cell: Option<&Cell>, value: &str) -> bool {
        let order = match cell {
            None | Some(Cell::Missing) => return self.holds_without_cell(value),
            Some(Cell::Number(number)) => match parsed(value) {
                Some(value) => number.partial_cmp(&value),
                None => Some(number.to_string().as_str().cmp(value)),
            },
            Some(Cell::Text(text)) => match (parsed(text), parsed(value)) {
                (Some(number), Some(value)) => number.partial_cmp(&value),
                // A word beside a number has no order, and is not equal to it.
                (None, Some(_)) => None,
                _ => Some(text.trim().cmp(value)),
            },
        };
        match (self, order) {
            (Self::NotEqual, order) => order != Some(Ordering::Equal),
            (_, None) => false,
            (Self::Equal, Some(order)) => order == Ordering::Equal,
            (Self::Less, Some(order)) => order == Ordering::Less,
            (Self::AtMost, Some(order)) => order != Ordering::Greater,
            (Self::More, Some(order)) => order == Ordering::Greater,
            (Self::AtLeast, Some(order)) => order != Ordering::Less,
        }
    }

    fn holds_without_cell(self, value: &str) -> bool {
        match self {
            Self::Equal => value.is_empty(),
            Self::NotEqual => !value.is_empty(),
            Self::Less | Self::AtMost | Self::More | Self::AtLeast => false,
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::More => ">",
            Self::AtLeast => ">=",
        }
    }
}

fn parsed(text: &str) -> Option<f64> {
    text.trim()
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite())
}

/// The expression as it can be read again.
impl fmt::Display for RowCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |f: &mut fmt::Formatter<'_>, parts: &[Self], word: &str| {
            for (at, part) in parts.iter().enumerate() {
                let before = if at == 0 { "" } else { word };
                match part {
                    Self::All(_) | Self::Any(_) => write!(f, "{before}({part})")?,
                    _ => write!(f, "{before}{part}")?,
                }
            }
            Ok(())
        };
        match self {
            Self::All(parts) => joined(f, parts, " and "),
            Self::Any(parts) => joined(f, parts, " or "),
            Self::Not(part) => write!(f, "not ({part})"),
            Self::Compare {
                column,
                operator,
                value,
            } => {
                write!(
                    f,
                    "{} {} {}",
                    quoted(column),
                    operator.sign(),
                    quoted(value)
                )
            }
        }
    }
}

/// A name in the quotes that it does not hold itself. A name with all three kinds cannot have been
/// written.
fn quoted(text: &str) -> String {
    let quote = ['\'', '"', '`']
        .into_iter()
        .find(|quote| !text.contains(*quote))
        .unwrap_or('\'');
    format!("{quote}{text}{quote}")
}

struct ConditionToken {
    /// Where it begins, from 1.
    at: usize,
    kind: TokenKind,
}

#[derive(Debug, Clone, PartialEq)]
enum TokenKind {
    Open,
    Close,
    Sign(ComparisonSign),
    /// A word without quotes, which may be `and`, `or` or `not`.
    Bare(String),
    Quoted(String),
}

fn tokens(text: &str) -> Result<Vec<ConditionToken>, ConditionError> {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let at = text.len() - rest.len() + 1;
        let Some(first) = rest.chars().next() else {
            return Ok(found);
        };
        let signs = [
            ("==", ComparisonSign::Equal),
            ("!=", ComparisonSign::NotEqual),
            ("<=", ComparisonSign::AtMost),
            (">=", ComparisonSign::AtLeast),
            ("=", ComparisonSign::Equal),
            ("<", ComparisonSign::Less),
            (">", ComparisonSign::More),
        ];
        let sign = signs.iter().find(|(sign, _)| rest.starts_with(sign));
        let (kind, taken) = match first {
            '(' => (TokenKind::Open, 1),
            ')' => (TokenKind::Close, 1),
            '\'' | '"' | '`' => {
                let Some(length) = rest[1..].find(first) else {
                    return Err(ConditionError {
                        at,
                        problem: "the quote is never closed".into(),
                    });
                };
                (TokenKind::Quoted(rest[1..=length].to_owned()), length + 2)
            }
            _ => match sign {
                Some((sign, operator)) => (TokenKind::Sign(*operator), sign.len()),
                None => {
                    let ends =
                        |letter: char| letter.is_whitespace() || "()=<>!'\"`".contains(letter);
                    let length = rest.find(ends).unwrap_or(rest.len());
                    if length == 0 {
                        return Err(expected(at, "a column, a value or a sign"));
                    }
                    (TokenKind::Bare(rest[..length].to_owned()), length)
                }
            },
        };
        found.push(ConditionToken { at, kind });
        rest = &rest[taken..];
    }
}

fn expected(at: usize, what: &str) -> ConditionError {
    ConditionError {
        at,
        problem: format!("expected {what}"),
    }
}

struct ConditionParser {
    tokens: Vec<ConditionToken>,
    next: usize,
    /// The place behind the last byte.
    end: usize,
}

impl ConditionParser {
    fn at(&self) -> usize {
        self.tokens
            .get(self.next)
            .map_or(self.end, |token| token.at)
    }

    /// Takes a word of the grammar, if it stands here.
    fn takes_word(&mut self, word: &str) -> bool {
        let here = self.tokens.get(self.next).map(|token| &token.kind);
        let is_word =
            matches!(here, Some(TokenKind::Bare(found)) if found.eq_ignore_ascii_case(word));
        self.next += usize::from(is_word);
        is_word
    }

    fn any(&mut self, depth: usize) -> Result<RowCondition, ConditionError> {
        let mut parts = vec![self.all(depth)?];
        while self.takes_word("or") {
            parts.push(self.all(depth)?);
        }
        Ok(if parts.len() == 1 {
            parts.swap_remove(0)
        } else {
            RowCondition::Any(parts)
        })
    }

    fn all(&mut self, depth: usize) -> Result<RowCondition, ConditionError> {
        let mut parts = vec![self.one(depth)?];
        while self.takes_word("and") {
            parts.push(self.one(depth)?);
        }
        Ok(if parts.len() == 1 {
            parts.swap_remove(0)
        } else {
            RowCondition::All(parts)
        })
    }

    fn one(&mut self, depth: usize) -> Result<RowCondition, ConditionError> {
        if depth > DEEPEST {
            let problem = format!("brackets and `not` are nested deeper than {DEEPEST}");
            return Err(ConditionError {
                at: self.at(),
                problem,
            });
        }
        if self.takes_word("not") {
            return Ok(RowCondition::Not(Box::new(self.one(depth + 1)?)));
        }
        if self
            .tokens
            .get(self.next)
            .is_some_and(|token| token.kind == TokenKind::Open)
        {
            self.next += 1;
            let inner = self.any(depth + 1)?;
            if self
                .tokens
                .get(self.next)
                .is_none_or(|token| token.kind != TokenKind::Close)
            {
                return Err(expected(self.at(), "`)`"));
            }
            self.next += 1;
            return Ok(inner);
        }
        let column = self.name("a column, as in split=train")?;
        let sign = self.tokens.get(self.next).map(|token| &token.kind);
        let Some(TokenKind::Sign(operator)) = sign else {
            return Err(expected(self.at(), "one of = != < <= > >="));
        };
        let operator = *operator;
        self.next += 1;
        let value = self.name("a value; text with blanks stands in quotes, nothing is ''")?;
        Ok(RowCondition::Compare {
            column,
            operator,
            value,
        })
    }

    fn name(&mut self, what: &str) -> Result<String, ConditionError> {
        match self.tokens.get(self.next).map(|token| &token.kind) {
            Some(TokenKind::Bare(name) | TokenKind::Quoted(name)) => {
                let name = name.clone();
                self.next += 1;
                Ok(name)
            }
            _ => Err(expected(self.at(), what)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeps(expression: &str, cells: &[(&str, Cell)]) -> bool {
        let condition = RowCondition::parse(expression).unwrap();
        condition.holds(&|name| {
            cells
                .iter()
                .find(|(column, _)| *column == name)
                .map(|(_, cell)| cell)
        })
    }

    #[test]
    fn rows_are_kept_as_written() {
        let text = |text: &str| Cell::Text(text.into());
        let row = [
            ("split", text("train")),
            ("age", text(" 30 ")),
            ("when", text("2026-03-02")),
            ("none", Cell::Missing),
            ("n", Cell::Number(7.0)),
            ("full name", text("a b")),
        ];
        for holds in [
            "split=train",
            "split == 'train' and age>=30",
            "age = 30.0 and age < 100 and not age < 3",
            "when >= 2026-01-01 and when < 2026-12-31",
            "none = '' and none != x",
            "not (none > 3 or none < 3)",
            "n <= 7 and n != 8",
            "'full name' = \"a b\"",
            "split = test or (split = train and n = 7)",
            "split = test and n = 8 or age = 30",
            "NOT split = test AND `n` > 6",
            "split != 5 and not split < 5",
        ] {
            assert!(keeps(holds, &row), "{holds}");
            assert!(!keeps(&format!("not ({holds})"), &row), "{holds}");
        }
    }

    #[test]
    fn what_is_no_expression_is_named_by_place() {
        for (text, at, problem) in [
            ("", 1, "a column"),
            ("split", 6, "one of ="),
            ("split =", 8, "a value"),
            ("split = train b", 15, "`and`, `or`"),
            ("(a = 1", 7, "`)`"),
            ("a = 'x", 5, "never closed"),
            ("a ! 1", 3, "a column, a value or a sign"),
            ("a = 1 and", 10, "a column"),
        ] {
            let error = RowCondition::parse(text).unwrap_err();
            assert_eq!(error.at, at, "{text}: {error}");
            assert!(error.problem.contains(problem), "{text}: {error}");
        }
        let deep = format!("{}a=1{}", "(".repeat(5000), ")".repeat(5000));
        assert!(
            RowCondition::parse(&deep)
                .unwrap_err()
                .problem
                .contains("nested deeper")
        );
        assert!(RowCondition::parse(&"not ".repeat(10_000)).is_err());
        assert!(RowCondition::parse(&"x".repeat(LONGEST + 1)).is_err());
    }
}
