//! The word tokeniser: text is lower-cased and cut into runs of two or more letters, digits and
//! underscores, which is scikit-learn's default `token_pattern` `(?u)\b\w\w+\b` after
//! `lowercase=True`.
//!
//! One difference is deliberate: Rust counts the vowel signs of Hebrew, Arabic, Indic and Thai
//! scripts as alphabetic, so that words of these scripts stay whole where Python's `\w` cuts them.
//! ASCII text is not copied unless a word holds a capital.

/// Calls `visit` with each word of the text, in order. Text of other than ASCII characters is
/// lower-cased into one temporary string first; ASCII text needs none.
pub fn tokens(text: &str, mut visit: impl FnMut(&str)) {
    if text.is_ascii() {
        ascii_tokens(text, &mut visit)
    } else {
        unicode_tokens(&text.to_lowercase(), &mut visit)
    }
}

const OTHER: u8 = 0;
const WORD: u8 = 1;
const CAPITAL: u8 = 2;

/// What each byte is to the ASCII path.
const CLASS: [u8; 256] = {
    let mut class = [OTHER; 256];
    let mut byte = 0;
    while byte < 128 {
        let b = byte as u8;
        if b.is_ascii_uppercase() {
            class[byte] = CAPITAL;
        } else if b.is_ascii_alphanumeric() || b == b'_' {
            class[byte] = WORD;
        }
        byte += 1;
    }
    class
};

fn ascii_tokens(text: &str, visit: &mut impl FnMut(&str)) {
    let bytes = text.as_bytes();
    let class_at = |at: usize| bytes.get(at).map_or(OTHER, |&b| CLASS[usize::from(b)]);
    let mut lowered = String::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let mut seen = OTHER;
        while class_at(at) != OTHER {
            seen |= class_at(at);
            at += 1;
        }
        if at - start >= 2 {
            let word = &text[start..at];
            if seen & CAPITAL == 0 {
                visit(word);
            } else {
                lowered.clear();
                lowered.push_str(word);
                lowered.make_ascii_lowercase();
                visit(&lowered);
            }
        }
        at += 1;
    }
}

/// The general path, on text that is lower-cased already: lower-casing can itself make or break
/// words (`İ` becomes `i` and a combining dot, a final `Σ` becomes `ς`), so that it has to come
/// first.
fn unicode_tokens(text: &str, visit: &mut impl FnMut(&str)) {
    let mut start = 0;
    let mut length = 0;
    for (at, c) in text.char_indices() {
        if c.is_alphanumeric() || c == '_' {
            if length == 0 {
                start = at;
            }
            length += 1;
        } else {
            if length >= 2 {
                visit(&text[start..at]);
            }
            length = 0;
        }
    }
    if length >= 2 {
        visit(&text[start..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &str) -> Vec<String> {
        let mut out = Vec::new();
        tokens(text, |w| out.push(w.to_string()));
        out
    }

    /// Oracle: scikit-learn 1.9.1, `CountVectorizer().build_analyzer()` on Python 3.11.
    #[test]
    fn words_equal_scikit_learn() {
        let cases: [(&str, &[&str]); 8] = [
            (
                "The cat sat on the mat; the mat was flat.",
                &[
                    "the", "cat", "sat", "on", "the", "mat", "the", "mat", "was", "flat",
                ],
            ),
            (
                "A cat's life isn't bad, is it? snake_case x_1 42 7",
                &[
                    "cat",
                    "life",
                    "isn",
                    "bad",
                    "is",
                    "it",
                    "snake_case",
                    "x_1",
                    "42",
                ],
            ),
            (
                "Émile ate a crème brûlée in Zürich – naïve café",
                &[
                    "émile", "ate", "crème", "brûlée", "in", "zürich", "naïve", "café",
                ],
            ),
            (
                "ΣΊΣΥΦΟΣ İstanbul straße 東京 は 12,5 a_b _ __ ½x x² don’t co-operate",
                &[
                    "σίσυφος",
                    "stanbul",
                    "straße",
                    "東京",
                    "12",
                    "a_b",
                    "__",
                    "½x",
                    "x²",
                    "don",
                    "co",
                    "operate",
                ],
            ),
            ("e\u{301}te\u{301}", &["te"]),
            ("x\u{200d}y ab", &["ab"]),
            ("①② ok", &["①②", "ok"]),
            ("‿‿ a‿b", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    #[test]
    fn words_of_scripts_with_vowel_signs_stay_whole() {
        assert_eq!(words("दुनिया"), ["दुनिया"]);
    }

    proptest! {
        #[test]
        fn any_text_gives_clean_words(text in any::<String>()) {
            for word in words(&text) {
                prop_assert!(word.chars().count() >= 2);
                prop_assert!(word.chars().all(|c| c.is_alphanumeric() || c == '_'));
                prop_assert_eq!(words(&word), vec![word.clone()]);
            }
        }

        #[test]
        fn both_paths_agree_on_ascii(text in "[ -~\\t\\n]{0,80}") {
            let mut general = Vec::new();
            unicode_tokens(&text.to_lowercase(), &mut |w: &str| general.push(w.to_string()));
            prop_assert_eq!(words(&text), general);
        }
    }
}
