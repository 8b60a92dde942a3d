//! The page: title, opening, contents, sections, and the files that go with it.

use crate::csv::CsvFile;
use crate::escape::{escape, slug};
use crate::figure::Figure;
use crate::table::ReportTable;
use crate::text::RichText;

/// A report.
#[derive(Debug, Clone)]
pub struct Page {
    title: String,
    subtitle: RichText,
    opening: Vec<RichText>,
    sections: Vec<Section>,
    footer: RichText,
}

/// A part of the page under its own heading.
#[derive(Debug, Clone)]
pub struct Section {
    title: String,
    blocks: Vec<Block>,
}

/// What a section is made of.
#[derive(Debug, Clone)]
pub enum Block {
    /// Running text.
    Paragraph(RichText),
    /// Lines of a list.
    List(Vec<RichText>),
    /// Text set apart: what differs and why, what is not claimed.
    Note(RichText),
    /// A table.
    Table(ReportTable),
    /// A figure.
    Figure(Figure),
}

impl From<RichText> for Block {
    fn from(text: RichText) -> Self {
        Self::Paragraph(text)
    }
}

impl From<&str> for Block {
    fn from(words: &str) -> Self {
        Self::Paragraph(words.into())
    }
}

impl From<ReportTable> for Block {
    fn from(table: ReportTable) -> Self {
        Self::Table(table)
    }
}

impl From<Figure> for Block {
    fn from(figure: Figure) -> Self {
        Self::Figure(figure)
    }
}

impl Block {
    fn html(&self) -> String {
        match self {
            Self::Paragraph(text) => format!("<p>{}</p>\n", text.html()),
            Self::Note(text) => format!("<p class=\"note\">{}</p>\n", text.html()),
            Self::List(lines) => {
                let lines: String = lines
                    .iter()
                    .map(|line| format!("<li>{}</li>\n", line.html()))
                    .collect();
                format!("<ul>{lines}</ul>\n")
            }
            Self::Table(table) => table.html(),
            Self::Figure(figure) => figure.html(),
        }
    }

    fn texts(&self) -> Vec<&RichText> {
        match self {
            Self::Paragraph(text) | Self::Note(text) => vec![text],
            Self::List(lines) => lines.iter().collect(),
            Self::Table(table) => table.texts().collect(),
            Self::Figure(figure) => figure.texts().collect(),
        }
    }
}

impl Section {
    /// An empty section.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            blocks: Vec::new(),
        }
    }

    /// Adds text, a table or a figure.
    #[allow(clippy::should_implement_trait, reason = "a section is no number")]
    pub fn add(mut self, block: impl Into<Block>) -> Self {
        self.blocks.push(block.into());
        self
    }

    /// Adds text set apart.
    pub fn note(self, note: impl Into<RichText>) -> Self {
        self.add(Block::Note(note.into()))
    }

    /// Adds a list.
    pub fn list(self, lines: impl IntoIterator<Item = RichText>) -> Self {
        self.add(Block::List(lines.into_iter().collect()))
    }
}

impl Page {
    /// A page with its title.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            subtitle: RichText::default(),
            opening: Vec::new(),
            sections: Vec::new(),
            footer: RichText::default(),
        }
    }

    /// A line below the title: what was run, on what.
    pub fn subtitle(mut self, subtitle: impl Into<RichText>) -> Self {
        self.subtitle = subtitle.into();
        self
    }

    /// Adds a paragraph before the first section: what was found.
    pub fn opening(mut self, opening: impl Into<RichText>) -> Self {
        self.opening.push(opening.into());
        self
    }

    /// Adds a section.
    pub fn section(mut self, section: Section) -> Self {
        self.sections.push(section);
        self
    }

    /// The last line: how the page was made.
    pub fn footer(mut self, footer: impl Into<RichText>) -> Self {
        self.footer = footer.into();
        self
    }

    /// The whole page, one file.
    pub fn html(&self) -> String {
        let title = escape(&self.title);
        let mut out = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <title>{title}</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n<header>\n<h1>{title}</h1>\n",
            include_str!("style.css")
        );
        if !self.subtitle.is_empty() {
            out.push_str(&format!(
                "<p class=\"subtitle\">{}</p>\n",
                self.subtitle.html()
            ));
        }
        for (at, paragraph) in self.opening.iter().enumerate() {
            let class = if at == 0 { " class=\"lead\"" } else { "" };
            out.push_str(&format!("<p{class}>{}</p>\n", paragraph.html()));
        }
        out.push_str("</header>\n");
        if self.sections.len() > 2 {
            let link = |section: &Section| {
                format!(
                    "<li><a href=\"#{}\">{}</a></li>\n",
                    anchor(&section.title),
                    escape(&section.title)
                )
            };
            let links: String = self.sections.iter().map(link).collect();
            out.push_str(&format!(
                "<nav aria-label=\"Contents\"><ol>\n{links}</ol></nav>\n"
            ));
        }
        for section in &self.sections {
            let id = anchor(&section.title);
            let title = escape(&section.title);
            out.push_str(&format!("<section id=\"{id}\">\n<h2>{title}</h2>\n"));
            section
                .blocks
                .iter()
                .for_each(|block| out.push_str(&block.html()));
            out.push_str("</section>\n");
        }
        if !self.footer.is_empty() {
            out.push_str(&format!("<footer><p>{}</p></footer>\n", self.footer.html()));
        }
        out + "</main>\n</body>\n</html>\n"
    }

    /// One file a table and a figure, and before them `text.csv` with the numbers of the running
    /// text by name and place.
    pub fn csv(&self) -> Vec<CsvFile> {
        let mut words = CsvFile::new("text");
        words.line(["section", "name", "value"].map(String::from));
        let mut list = |place: &str, text: &RichText| {
            for (name, number) in text.numbers() {
                words.line([place.to_string(), name.to_string(), number.exact()]);
            }
        };
        list("", &self.subtitle);
        self.opening.iter().for_each(|text| list("", text));
        for section in &self.sections {
            section
                .blocks
                .iter()
                .flat_map(Block::texts)
                .for_each(|text| list(&section.title, text));
        }
        list("", &self.footer);
        let mut files = vec![words];
        for block in self.sections.iter().flat_map(|section| &section.blocks) {
            match block {
                Block::Table(table) => files.push(table.csv()),
                Block::Figure(figure) => files.push(figure.csv()),
                _ => {}
            }
        }
        files
    }

    /// The page's bones, one line each: headings, tables with their columns, figures with their
    /// panels and series. It does not change with the numbers.
    pub fn outline(&self) -> String {
        let mut out = format!("# {}\n", self.title);
        for section in &self.sections {
            out.push_str(&format!("## {}\n", section.title));
            for block in &section.blocks {
                match block {
                    Block::Paragraph(_) => out.push_str("text\n"),
                    Block::List(lines) => out.push_str(&format!("list of {}\n", lines.len())),
                    Block::Note(_) => out.push_str("note\n"),
                    Block::Table(table) => {
                        out.push_str(&format!(
                            "table {}: {}\n",
                            table.id(),
                            table.header().join(" | ")
                        ));
                    }
                    Block::Figure(figure) => {
                        let names: Vec<&str> =
                            figure.names().iter().map(|s| s.name.as_str()).collect();
                        let panels: Vec<&str> =
                            figure.panels.iter().map(|p| p.title.as_str()).collect();
                        out.push_str(&format!(
                            "figure {}: {} against {}; panels {}; series {}\n",
                            figure.id(),
                            figure.y.label,
                            figure.x.label,
                            panels.join(" | "),
                            names.join(" | ")
                        ));
                    }
                }
            }
        }
        out
    }
}

/// The name of a section's place. It never meets that of a table or a figure, which have no prefix.
fn anchor(title: &str) -> String {
    format!("s-{}", slug(title))
}
