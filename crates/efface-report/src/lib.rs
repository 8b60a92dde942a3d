//! Reports that can be read and checked: one self-contained HTML page with tables and SVG figures,
//! and a CSV for each.
//!
//! A [`Page`] is data: a title, an opening, and sections of text, tables, figures and notes.
//! [`Page::html`] writes it as one file that needs no script, no font and no picture from
//! elsewhere, follows the reader's light or dark setting, scrolls its tables on a phone and prints.
//! [`Page::csv`] writes the same numbers as files.
//!
//! A measured number gets into a page only as a [`Number`], and each `Number` is written to the
//! page as `<data value="…">` and to the CSV with the same digits. So every number of the HTML is
//! in the CSV by construction: what is shown may be rounded, what is in `value` and in the CSV is
//! not.
//!
//! ```
//! use efface_report::{Axis, TableColumn, Figure, Number, Page, Section, Series, Style, ReportTable, RichText};
//!
//! let mut table = ReportTable::new("speed", "Time of one request");
//! table.columns([TableColumn::label("method"), TableColumn::number("time")]);
//! table.row(["exact".into(), Number::new(3.2e-6, Style::Seconds).into()]);
//!
//! let figure = Figure::new("growth", "Time against the number of rows")
//!     .axes(Axis::log("rows"), Axis::log("seconds"))
//!     .series(Series::new("exact").point(10.0, 3e-6, 1e-7).point(100.0, 4e-6, 1e-7));
//!
//! let opening = RichText::new("One request takes ").number("time", Number::new(3.2e-6, Style::Seconds)).and(".");
//! let page = Page::new("How fast it forgets").opening(opening).section(Section::new("Speed").add(table).add(figure));
//!
//! assert!(page.html().contains("<data value=\"3.2e-6\">3.2 µs</data>"));
//! assert_eq!(page.csv()[1].text, "method,time\nexact,3.2e-6\n");
//! ```
//!
//! The crate is pure: it returns strings, and its caller writes the files.

#![warn(missing_docs)]

mod csv;
mod escape;
mod figure;
mod number;
mod page;
mod scale;
mod svg;
mod table;
mod text;
mod untrusted;

pub use csv::CsvFile;
pub use figure::{Axis, Figure, Panel, Point, Scale, Series};
pub use number::{Number, Style};
pub use page::{Block, Page, Section};
pub use table::{ReportTable, TableCell, TableColumn};
pub use text::RichText;
pub use untrusted::{plain_text, spreadsheet_text};
