//! Text that comes from rows, such as ids and the names of classes and columns, on its way to
//! people. A terminal obeys control characters, and a spreadsheet computes a cell that begins like
//! a formula.

/// Text without control characters but line breaks, and without characters that reverse the
/// direction of writing. Each is shown as an escape.
pub fn plain_text(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        let obeyed = c.is_control() && c != '\n'
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if obeyed {
            plain.extend(c.escape_default())
        } else {
            plain.push(c)
        }
    }
    plain
}

/// Text for a cell of a CSV file: plain, and with a quote in front where a spreadsheet would take
/// it for a formula. Numbers stay as they are.
pub fn spreadsheet_text(text: &str) -> String {
    let plain = plain_text(text);
    let is_formula =
        text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.parse::<f64>().is_err();
    if is_formula {
        format!("'{plain}")
    } else {
        plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_obeyed_or_computed() {
        assert_eq!(
            plain_text("a\u{1b}[31mb\nc\u{202e}d"),
            "a\\u{1b}[31mb\nc\\u{202e}d"
        );
        assert_eq!(spreadsheet_text("=HYPERLINK(1)"), "'=HYPERLINK(1)");
        assert_eq!(spreadsheet_text("@a"), "'@a");
        assert_eq!(spreadsheet_text("\t=1"), "'\\t=1");
        for harmless in ["-1.5", "+3", "r17", "", "a=b"] {
            assert_eq!(spreadsheet_text(harmless), harmless);
        }
        assert_eq!(spreadsheet_text("-1+2"), "'-1+2");
    }
}
