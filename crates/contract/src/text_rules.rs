//! What text may be when people must be able to trust their eyes.
//!
//! The rules for `adapter.py` (DESIGN.md section 4: what a reviewer reads is
//! what runs) are here and nowhere else; validate, inspect, diff, review and
//! console all use them. They look at text only: nothing here parses or
//! compiles Python, and nothing repairs what it refuses.
//!
//! Characters that would be legitimate inside a Python string but could hide or
//! change code elsewhere are refused everywhere in the file, also in strings and
//! comments: since Python 3.12 the text of an f-string is code. An author writes
//! the escape (`"\u200b"`) instead, which everybody can see.

use std::fmt;

use unicode_normalization::UnicodeNormalization as _;

use crate::limits::PACKAGE_CODE_BYTES_MAX;

/// The most faults that are kept for one text.
pub const TEXT_FAULTS_MAX: usize = 100;

/// A rule for the text of `adapter.py`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TextRule {
    /// At most [`PACKAGE_CODE_BYTES_MAX`] bytes.
    Size,
    /// UTF-8.
    Utf8,
    /// No byte order mark.
    ByteOrderMark,
    /// No coding cookie (PEP 263) in the first two lines, not even for UTF-8:
    /// it could make the compiler read other text than is shown.
    CodingCookie,
    /// No NUL: the compiler stops there, the digest does not.
    Nul,
    /// No carriage return: a lone one ends a comment for the compiler only.
    CarriageReturn,
    /// No form feed.
    FormFeed,
    /// No other control character but line feed and tab.
    Control,
    /// No character that changes the direction of writing, joins, or is not
    /// seen at all (general category Cf, default-ignorable code points).
    Format,
    /// No separator but space, tab and line feed.
    Separator,
    /// No word that the compiler would normalise to another one (NFKC).
    Normalisation,
}

impl TextRule {
    /// Why the rule exists and what to do, for people.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Size => "make it at most 32 KiB",
            Self::Utf8 => "save the file as UTF-8",
            Self::ByteOrderMark => "save the file without a byte order mark",
            Self::CodingCookie => "remove the comment; the file is always read as UTF-8",
            Self::Nul => "remove it, or write \\x00 in a string",
            Self::CarriageReturn => "end lines with LF alone, or write \\r in a string",
            Self::FormFeed | Self::Control => "remove it, or write an escape in a string",
            Self::Format => "remove it, or write its \\u escape in a string",
            Self::Separator => "use a space, or write its \\u escape in a string",
            Self::Normalisation => {
                "use the characters that it stands for, or write \\u escapes in a string"
            }
        }
    }
}

/// A place where a text breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFault {
    /// The rule.
    pub rule: TextRule,
    /// Where, in bytes from the start.
    pub offset_bytes: usize,
    /// The line, from 1. Lines end with LF.
    pub line: usize,
    /// The column, from 1, in code points.
    pub column: usize,
    /// What is there, safe to print.
    pub found: String,
}

impl fmt::Display for TextFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.found)
    }
}

/// Everything in `bytes` that breaks the rules for `adapter.py`, at most
/// [`TEXT_FAULTS_MAX`] of it.
pub fn check_adapter(bytes: &[u8]) -> Vec<TextFault> {
    let mut faults = Faults {
        bytes,
        list: Vec::new(),
    };
    if bytes.len() > PACKAGE_CODE_BYTES_MAX {
        faults.add(
            TextRule::Size,
            0,
            format!("the code has {} bytes", bytes.len()),
        );
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let at = error.valid_up_to();
            let byte = bytes.get(at).copied().unwrap_or_default();
            faults.add(
                TextRule::Utf8,
                at,
                format!("the byte 0x{byte:02x} is not part of valid UTF-8"),
            );
            return faults.list;
        }
    };
    coding_cookies(text, &mut faults);
    for (at, c) in text.char_indices() {
        if let Some(rule) = rule_against(c, at) {
            faults.add(
                rule,
                at,
                format!("{} U+{:04X}", name_of(rule), u32::from(c)),
            );
        }
    }
    unstable_words(text, &mut faults);
    faults
        .list
        .sort_by_key(|fault| (fault.offset_bytes, fault.rule));
    faults.list
}

struct Faults<'a> {
    bytes: &'a [u8],
    list: Vec<TextFault>,
}

impl Faults<'_> {
    fn add(&mut self, rule: TextRule, offset_bytes: usize, found: String) {
        if self.list.len() == TEXT_FAULTS_MAX {
            return;
        }
        let before = self.bytes.get(..offset_bytes).unwrap_or_default();
        let line_start = before
            .iter()
            .rposition(|&b| b == b'\n')
            .map_or(0, |at| at + 1);
        let code_points = before[line_start..]
            .iter()
            .filter(|&&b| b & 0xc0 != 0x80)
            .count();
        let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
        self.list.push(TextFault {
            rule,
            offset_bytes,
            line,
            column: code_points + 1,
            found,
        });
    }
}

/// The compiler takes a cookie from a comment in the first two lines. Whatever
/// looks like one is refused, also where the compiler would overlook it.
fn coding_cookies(text: &str, faults: &mut Faults<'_>) {
    let mut line_start = 0;
    for line in text.split('\n').take(2) {
        if let Some(comment_at) = line.find('#') {
            let comment = &line[comment_at..];
            if ["coding:", "coding="]
                .iter()
                .any(|cookie| comment.contains(cookie))
            {
                let found = "a comment that names a coding".to_owned();
                faults.add(TextRule::CodingCookie, line_start + comment_at, found);
            }
        }
        line_start += line.len() + 1;
    }
}

fn rule_against(c: char, at: usize) -> Option<TextRule> {
    match c {
        ' '..='~' | '\n' | '\t' => None,
        '\0' => Some(TextRule::Nul),
        '\r' => Some(TextRule::CarriageReturn),
        '\u{c}' => Some(TextRule::FormFeed),
        '\u{feff}' if at == 0 => Some(TextRule::ByteOrderMark),
        _ if c.is_control() => Some(TextRule::Control),
        _ if is_separator(c) => Some(TextRule::Separator),
        _ if is_format(c) => Some(TextRule::Format),
        _ => None,
    }
}

fn name_of(rule: TextRule) -> &'static str {
    match rule {
        TextRule::Format => "the invisible or direction-changing character",
        TextRule::Separator => "the separator",
        TextRule::ByteOrderMark => "the byte order mark",
        _ => "the control character",
    }
}

/// Words (runs of characters that an identifier may have) which are not their
/// own NFKC form: the compiler would run another name than is shown.
fn unstable_words(text: &str, faults: &mut Faults<'_>) {
    let mut word_start = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        let in_word = c == '_' || unicode_ident::is_xid_continue(c);
        match word_start {
            None if in_word => word_start = Some(at),
            Some(start) if !in_word => {
                check_word(&text[start..at], start, faults);
                word_start = None;
            }
            _ => {}
        }
    }
}

fn check_word(word: &str, start: usize, faults: &mut Faults<'_>) {
    if word.is_ascii() {
        return;
    }
    let normal: String = word.nfkc().collect();
    if normal == word {
        return;
    }
    let differs = word
        .char_indices()
        .zip(normal.chars().map(Some).chain(std::iter::repeat(None)))
        .find(|((_, c), normal)| Some(*c) != *normal);
    let (at, c) = differs.map_or((0, None), |((at, c), _)| (at, Some(c)));
    let found = match c {
        Some(c) => format!(
            "a word with U+{:04X}, which the compiler reads as another word",
            u32::from(c)
        ),
        None => "a word that the compiler reads as another word".to_owned(),
    };
    faults.add(TextRule::Normalisation, start + at, found);
}

/// Whether a character does not show as itself: controls (line feed and tab
/// included), separators other than the space, format and invisible characters.
pub fn is_hidden(c: char) -> bool {
    c.is_control() || is_separator(c) || is_format(c)
}

/// General categories Zs, Zl and Zp, without the space.
fn is_separator(c: char) -> bool {
    matches!(
        c,
        '\u{a0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200a}' | '\u{2028}' | '\u{2029}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
    )
}

/// General category Cf and the code points that Unicode calls
/// default-ignorable, the unassigned ones in those blocks included (Unicode 16,
/// UCD DerivedGeneralCategory and DerivedCoreProperties).
fn is_format(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{110bd}'
            | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: impl AsRef<[u8]>) -> Vec<TextRule> {
        check_adapter(text.as_ref())
            .into_iter()
            .map(|fault| fault.rule)
            .collect()
    }

    #[test]
    fn ordinary_code_passes_in_any_language() {
        let code = "import lazaret\n\n\tx = 'caf\u{e9} \u{43f}\u{440}\u{438} \u{65e5}\u{672c} \u{1f600} \u{2026} \u{bd}'\n# \u{e9}\n";
        assert_eq!(rules(code), []);
        assert_eq!(rules(""), []);
    }

    #[test]
    fn each_rule_finds_what_it_is_for() {
        let rows: &[(&[u8], TextRule)] = &[
            (b"x = 1\n\xff", TextRule::Utf8),
            (b"\xef\xbb\xbfx = 1\n", TextRule::ByteOrderMark),
            (b"# -*- coding: utf-7 -*-\n", TextRule::CodingCookie),
            (
                b"#!x\n  # vim: set fileencoding=utf-8 :\n",
                TextRule::CodingCookie,
            ),
            (
                b"x = 1 # coding: raw_unicode_escape\n",
                TextRule::CodingCookie,
            ),
            (b"x\0y", TextRule::Nul),
            (b"# hidden\rimport os\n", TextRule::CarriageReturn),
            (b"x\x0cy", TextRule::FormFeed),
            (b"x\x1b[2J", TextRule::Control),
            (b"x\x7f", TextRule::Control),
            ("x\u{85}y".as_bytes(), TextRule::Control),
            ("x\u{9b}y".as_bytes(), TextRule::Control),
            ("'\u{202e}'".as_bytes(), TextRule::Format),
            ("'\u{2066}'".as_bytes(), TextRule::Format),
            ("a\u{200b}b".as_bytes(), TextRule::Format),
            ("x = 1\u{feff}".as_bytes(), TextRule::Format),
            ("\u{115f} = 1".as_bytes(), TextRule::Format),
            ("'\u{fe0f}'".as_bytes(), TextRule::Format),
            ("x\u{a0}= 1".as_bytes(), TextRule::Separator),
            ("x\u{2028}y".as_bytes(), TextRule::Separator),
            ("\u{1d428}pen('x')".as_bytes(), TextRule::Normalisation),
            ("\u{ff4f}pen".as_bytes(), TextRule::Normalisation),
            ("f\"{\u{2139}d}\"".as_bytes(), TextRule::Normalisation),
            ("e\u{301} = 1".as_bytes(), TextRule::Normalisation),
        ];
        for (code, rule) in rows {
            assert_eq!(rules(code), [*rule], "{}", String::from_utf8_lossy(code));
        }
    }

    #[test]
    fn a_cookie_counts_only_where_the_compiler_looks() {
        assert_eq!(rules("\n\n# coding: utf-8\n"), []);
        assert_eq!(rules("x = 'coding: utf-8'\n"), []);
    }

    #[test]
    fn the_size_limit_holds_at_its_value_and_one_beyond() {
        assert_eq!(rules("x".repeat(PACKAGE_CODE_BYTES_MAX)), []);
        assert_eq!(
            rules("x".repeat(PACKAGE_CODE_BYTES_MAX + 1)),
            [TextRule::Size]
        );
    }

    #[test]
    fn every_fault_has_its_place() {
        let faults = check_adapter("ab\n\u{e9}\u{200b}c\r".as_bytes());
        let places: Vec<_> = faults
            .iter()
            .map(|f| (f.line, f.column, f.offset_bytes))
            .collect();
        assert_eq!(places, [(2, 2, 5), (2, 4, 9)]);
    }

    #[test]
    fn hostile_text_gives_a_bounded_list() {
        assert_eq!(check_adapter(&[0; 40_000]).len(), TEXT_FAULTS_MAX);
    }
}
