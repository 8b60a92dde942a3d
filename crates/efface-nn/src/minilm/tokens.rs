//! `tokenizer.json`: the word pieces of BERT.
//!
//! A text is cleaned of control characters, stripped of accents and lowercased if the file says so,
//! split at white space and punctuation, and every word is cut greedily into the longest pieces of
//! the vocabulary. Reading stops once there are tokens enough, so a text of any length costs no
//! more than its beginning. The file's own limits on length, and its padding, are not used: the
//! caller says how many tokens it wants, and nothing here is padded.

use std::collections::HashMap;

use serde::Deserialize;
use unicode_categories::UnicodeCategories;
use unicode_normalization::UnicodeNormalization;

use super::error::{MiniLmError, MiniLmResult};

const FILE: &str = "tokenizer.json";

/// What turns a text into token numbers.
#[derive(Debug)]
pub(super) struct WordPieceTokenizer {
    /// Pieces that begin a word.
    heads: HashMap<String, u32>,
    /// Pieces that go on with one, without their prefix.
    tails: HashMap<String, u32>,
    /// Tokens that a text may spell out, such as `[MASK]`.
    spelled: Vec<(String, u32)>,
    /// Bytes of the longest piece: no longer one need be looked for.
    longest: usize,
    unknown: u32,
    first: u32,
    last: u32,
    normalizer: TextNormalizer,
    max_word_chars: usize,
}

#[derive(Deserialize)]
struct TokenizerFile {
    model: WordPieceModel,
    normalizer: TextNormalizer,
    pre_tokenizer: ComponentKind,
    post_processor: Option<ComponentKind>,
    #[serde(default)]
    added_tokens: Vec<AddedToken>,
}

#[derive(Deserialize)]
struct ComponentKind {
    r#type: String,
}

#[derive(Deserialize)]
struct WordPieceModel {
    #[serde(default)]
    r#type: Option<String>,
    unk_token: String,
    continuing_subword_prefix: String,
    max_input_chars_per_word: usize,
    vocab: HashMap<String, u32>,
}

#[derive(Debug, Deserialize)]
struct TextNormalizer {
    r#type: String,
    clean_text: bool,
    handle_chinese_chars: bool,
    strip_accents: Option<bool>,
    lowercase: bool,
}

#[derive(Deserialize)]
struct AddedToken {
    id: u32,
    content: String,
    #[serde(default)]
    single_word: bool,
    #[serde(default)]
    normalized: bool,
}

impl WordPieceTokenizer {
    /// Reads the file. Every token must be below `vocabulary`.
    pub(super) fn parse(bytes: &[u8], vocabulary: usize) -> MiniLmResult<Self> {
        let json: TokenizerFile = serde_json::from_slice(bytes)
            .map_err(|source| MiniLmError::Json { file: FILE, source })?;
        must_be(
            "model.type",
            json.model.r#type.as_deref().unwrap_or("WordPiece"),
            "WordPiece",
        )?;
        must_be("normalizer.type", &json.normalizer.r#type, "BertNormalizer")?;
        must_be(
            "pre_tokenizer.type",
            &json.pre_tokenizer.r#type,
            "BertPreTokenizer",
        )?;
        if let Some(ComponentKind { r#type }) = &json.post_processor
            && r#type != "TemplateProcessing"
        {
            must_be("post_processor.type", r#type, "BertProcessing")?;
        }
        let added = json.added_tokens.iter().map(|token| token.id);
        if let Some(id) = json
            .model
            .vocab
            .values()
            .copied()
            .chain(added)
            .find(|&id| id as usize >= vocabulary)
        {
            let expected = format!("a number below vocab_size of config.json, {vocabulary},");
            return Err(foreign("a token's number", id, expected));
        }
        let find = |token: &str| {
            let expected = format!("one that holds {token}");
            json.model
                .vocab
                .get(token)
                .copied()
                .ok_or_else(|| foreign("model.vocab", "another", expected))
        };
        let unknown = find(&json.model.unk_token)?;
        let first = find("[CLS]")?;
        let last = find("[SEP]")?;
        let mut spelled = Vec::new();
        for token in json.added_tokens {
            if token.single_word || token.normalized || token.content.is_empty() {
                let expected = "a plain one, matched as it is written,".into();
                return Err(foreign(
                    "an added token",
                    format!("{:?}", token.content),
                    expected,
                ));
            }
            spelled.push((token.content, token.id));
        }
        let longest = json.model.vocab.keys().map(String::len).max().unwrap_or(0);
        let prefix = json.model.continuing_subword_prefix;
        let tails = json.model.vocab.iter();
        let tails = tails
            .filter_map(|(piece, &id)| Some((piece.strip_prefix(&prefix)?.to_owned(), id)))
            .collect();
        Ok(Self {
            heads: json.model.vocab,
            tails,
            spelled,
            longest,
            unknown,
            first,
            last,
            normalizer: json.normalizer,
            max_word_chars: json.model.max_input_chars_per_word,
        })
    }

    /// At most `most` tokens, the two that frame the text included.
    pub(super) fn encode(&self, text: &str, most: usize) -> Vec<u32> {
        let mut out = vec![self.first];
        let most = most - 1;
        let mut rest = text;
        while out.len() < most && !rest.is_empty() {
            // Tokens that the text spells out are not words, and nothing about them is normalised.
            let spelled = self
                .spelled
                .iter()
                .filter_map(|(token, id)| Some((rest.find(token)?, token.len(), *id)));
            let next = spelled.min_by_key(|&(at, length, _)| (at, usize::MAX - length));
            let (at, length, id) = next.unwrap_or((rest.len(), 0, 0));
            self.words(&rest[..at], most, &mut out);
            if next.is_some() && out.len() < most {
                out.push(id);
            }
            rest = &rest[at + length..];
        }
        out.truncate(most);
        out.push(self.last);
        out
    }

    fn words(&self, text: &str, most: usize, out: &mut Vec<u32>) {
        let rules = &self.normalizer;
        let strip = rules.strip_accents.unwrap_or(rules.lowercase);
        let cleaned = text.chars().filter(|&c| !rules.clean_text || !is_noise(c));
        if text.is_ascii() {
            let lower = |c: char| {
                if rules.lowercase {
                    c.to_ascii_lowercase()
                } else {
                    c
                }
            };
            return self.split(cleaned.map(lower), most, out);
        }
        let spaced = cleaned.flat_map(|c| {
            let alone = rules.handle_chinese_chars && is_ideograph(c);
            let space = alone.then_some(' ');
            [space, Some(c), space].into_iter().flatten()
        });
        let lower = |c: char| {
            let (one, more) = if rules.lowercase {
                (None, Some(c.to_lowercase()))
            } else {
                (Some(c), None)
            };
            one.into_iter().chain(more.into_iter().flatten())
        };
        if strip {
            let bare = spaced
                .nfd()
                .filter(|c| c.is_ascii() || !c.is_mark_nonspacing());
            self.split(bare.flat_map(lower), most, out);
        } else {
            self.split(spaced.flat_map(lower), most, out);
        }
    }

    /// Splits at white space and around punctuation.
    fn split(&self, chars: impl Iterator<Item = char>, most: usize, out: &mut Vec<u32>) {
        let mut word = String::new();
        let mut count = 0;
        for c in chars {
            let space = c.is_whitespace();
            let mark = is_punctuation(c);
            if !space && !mark {
                count += 1;
                // A longer word is unknown whatever it says, so it need not be kept.
                if count <= self.max_word_chars {
                    word.push(c);
                }
                continue;
            }
            self.pieces(&word, count, out);
            word.clear();
            count = 0;
            if mark {
                self.pieces(c.encode_utf8(&mut [0; 4]), 1, out);
            }
            if out.len() >= most {
                return;
            }
        }
        self.pieces(&word, count, out);
    }

    /// Cuts a word into the longest pieces, or calls all of it unknown.
    fn pieces(&self, word: &str, chars: usize, out: &mut Vec<u32>) {
        let start = out.len();
        let mut rest = word;
        let mut known = chars <= self.max_word_chars;
        let mut pieces = &self.heads;
        while known && !rest.is_empty() {
            let lengths = (1..=rest.len().min(self.longest))
                .rev()
                .filter(|&length| rest.is_char_boundary(length));
            let found = lengths
                .filter_map(|length| Some((length, *pieces.get(&rest[..length])?)))
                .next();
            match found {
                Some((length, id)) => {
                    out.push(id);
                    rest = &rest[length..];
                    pieces = &self.tails;
                }
                None => known = false,
            }
        }
        if !known {
            out.truncate(start);
            out.push(self.unknown);
        }
    }
}

/// Characters without a place in a text: controls and formats, but not the white space among them.
fn is_noise(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control() && !matches!(c, '\t' | '\n' | '\r');
    }
    c == '\u{fffd}' || c.is_other()
}

fn is_punctuation(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_punctuation()
    } else {
        c.is_punctuation()
    }
}

/// Characters that are words by themselves: the blocks of CJK ideographs that BERT names. The one
/// at 2B920 begins a little late, and so it has to here.
fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}' | '\u{20000}'..='\u{2a6df}'
        | '\u{2a700}'..='\u{2b73f}' | '\u{2b740}'..='\u{2b81f}' | '\u{2b920}'..='\u{2ceaf}'
        | '\u{f900}'..='\u{faff}' | '\u{2f800}'..='\u{2fa1f}')
}

fn must_be(field: &'static str, found: &str, expected: &str) -> MiniLmResult<()> {
    if found == expected {
        Ok(())
    } else {
        Err(foreign(
            field,
            format!("{found:?}"),
            format!("{expected:?}"),
        ))
    }
}

fn foreign(field: &'static str, found: impl ToString, expected: String) -> MiniLmError {
    MiniLmError::Foreign {
        file: FILE,
        field,
        found: found.to_string(),
        expected,
    }
}
