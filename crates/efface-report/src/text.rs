//! Running text: words, code, and numbers that know what they are.

use crate::escape::escape;
use crate::number::Number;

/// A line or a paragraph.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RichText {
    pub(crate) spans: Vec<Span>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Span {
    Plain(String),
    Strong(String),
    Code(String),
    Number { name: String, number: Number },
}

impl RichText {
    /// Text that begins with these words.
    pub fn new(words: impl Into<String>) -> Self {
        Self::default().and(words)
    }

    /// More words.
    pub fn and(mut self, words: impl Into<String>) -> Self {
        self.spans.push(Span::Plain(words.into()));
        self
    }

    /// Words that matter.
    pub fn strong(mut self, words: impl Into<String>) -> Self {
        self.spans.push(Span::Strong(words.into()));
        self
    }

    /// A name as a program writes it.
    pub fn code(mut self, words: impl Into<String>) -> Self {
        self.spans.push(Span::Code(words.into()));
        self
    }

    /// A measured number, under the name by which the CSV of the text lists it.
    pub fn number(mut self, name: impl Into<String>, number: Number) -> Self {
        self.spans.push(Span::Number {
            name: name.into(),
            number,
        });
        self
    }

    /// Another text behind this one.
    pub fn text(mut self, more: RichText) -> Self {
        self.spans.extend(more.spans);
        self
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The words alone, as a terminal shows them.
    pub fn plain(&self) -> String {
        self.spans
            .iter()
            .map(|span| match span {
                Span::Plain(words) | Span::Strong(words) | Span::Code(words) => words.clone(),
                Span::Number { number, .. } => number.show(),
            })
            .collect()
    }

    pub(crate) fn html(&self) -> String {
        self.spans
            .iter()
            .map(|span| match span {
                Span::Plain(words) => escape(words),
                Span::Strong(words) => format!("<strong>{}</strong>", escape(words)),
                Span::Code(words) => format!("<code>{}</code>", escape(words)),
                Span::Number { number, .. } => data(number),
            })
            .collect()
    }

    /// The numbers with their names.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = (&str, &Number)> {
        self.spans.iter().filter_map(|span| match span {
            Span::Number { name, number } => Some((name.as_str(), number)),
            _ => None,
        })
    }
}

impl From<&str> for RichText {
    fn from(words: &str) -> Self {
        Self::new(words)
    }
}

impl From<String> for RichText {
    fn from(words: String) -> Self {
        Self::new(words)
    }
}

/// The one way in which a number is written to a page.
pub(crate) fn data(number: &Number) -> String {
    data_as(number, &number.show())
}

/// A number that readers see in a form of its own, while the CSV keeps the digits.
pub(crate) fn data_as(number: &Number, shown: &str) -> String {
    format!(
        "<data value=\"{}\">{}</data>",
        escape(&number.exact()),
        escape(shown)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::Style;

    #[test]
    fn text_is_escaped_and_numbers_keep_their_digits() {
        let text = RichText::new("a < b: ")
            .number("share", Number::new(0.123456, Style::Percent(0)))
            .and(" of ")
            .code("x&y");
        assert_eq!(
            text.html(),
            "a &lt; b: <data value=\"0.123456\">12 %</data> of <code>x&amp;y</code>"
        );
        assert_eq!(text.plain(), "a < b: 12 % of x&y");
        assert_eq!(
            text.numbers().map(|(name, _)| name).collect::<Vec<_>>(),
            ["share"]
        );
    }
}
