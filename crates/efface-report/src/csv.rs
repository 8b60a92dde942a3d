//! CSV as RFC 4180 writes it, with one line feed a line.

use crate::untrusted::spreadsheet_text;

/// A file to be written beside the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvFile {
    /// Its name, with the ending.
    pub name: String,
    /// What is in it.
    pub text: String,
}

impl CsvFile {
    pub(crate) fn new(stem: &str) -> Self {
        Self {
            name: format!("{stem}.csv"),
            text: String::new(),
        }
    }

    pub(crate) fn line(&mut self, fields: impl IntoIterator<Item = String>) {
        for (at, field) in fields.into_iter().enumerate() {
            let field = spreadsheet_text(&field);
            if at > 0 {
                self.text.push(',');
            }
            if field.contains([',', '"', '\n', '\r']) {
                self.text
                    .push_str(&format!("\"{}\"", field.replace('"', "\"\"")));
            } else {
                self.text.push_str(&field);
            }
        }
        self.text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_need_quotes_have_them() {
        let mut file = CsvFile::new("a");
        file.line([
            "plain".into(),
            "with, comma".into(),
            "say \"so\"".into(),
            "two\nlines".into(),
        ]);
        assert_eq!(
            file.text,
            "plain,\"with, comma\",\"say \"\"so\"\"\",\"two\nlines\"\n"
        );
        file.text.clear();
        file.line(["=1+1".into(), "-2".into()]);
        assert_eq!(file.text, "'=1+1,-2\n");
    }
}
