//! What a string becomes inside HTML or SVG, and what a title becomes as the name of a place.

/// The string with every character that means something to HTML replaced, for text and for quoted
/// attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Control characters are no part of HTML, whatever they may do to a reader.
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Letters and digits in lower case, everything else a hyphen: safe as a file name and as the name
/// of a place in a page.
pub(crate) fn slug(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            out.push(c.to_ascii_lowercase());
        } else if !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
    }
    let out = out.trim_end_matches('-');
    if out.is_empty() {
        "part".into()
    } else {
        out.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_escapes() {
        assert_eq!(
            escape("<a href='x' b=\"y\">&\u{1b}"),
            "&lt;a href=&#39;x&#39; b=&quot;y&quot;&gt;&amp;\u{fffd}"
        );
        assert_eq!(escape("k ≤ 10\n"), "k ≤ 10\n");
    }

    #[test]
    fn slugs_are_plain() {
        assert_eq!(slug("Table 1: time, ×1e-4"), "table-1-time-1e-4");
        assert_eq!(slug("../é"), "part");
    }
}
