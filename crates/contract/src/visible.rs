//! Text of strangers, made safe to look at.
//!
//! Whatever a package, an input or an output contains can reach a terminal, a
//! log or an error message only through here: everything but printable ASCII
//! is shown as an escape, so no control sequence, no change of writing
//! direction and no look-alike letter passes as something else (case H05).
//! Nothing is hidden or dropped; a cut is marked.

use std::fmt::Write as _;

/// The mark that stands where a text was cut.
pub const CUT_MARK: &str = "[cut]";

/// `text` with everything but printable ASCII escaped: `\u{e9}`, `\n`, `\t`,
/// `\r` and `\\`. The escaping is unambiguous: different texts stay different.
pub fn escape(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        push_escaped(&mut shown, c);
    }
    shown
}

/// As [`escape`], but at most `chars_max` characters of `text`; when there are
/// more, [`CUT_MARK`] follows.
pub fn escape_cut(text: &str, chars_max: usize) -> String {
    let mut shown = String::new();
    let mut rest = text.chars();
    for c in rest.by_ref().take(chars_max) {
        push_escaped(&mut shown, c);
    }
    if rest.next().is_some() {
        shown.push_str(CUT_MARK);
    }
    shown
}

/// Appends `c` to `shown`, escaped unless it is printable ASCII.
pub fn push_escaped(shown: &mut String, c: char) {
    match c {
        '\\' => shown.push_str("\\\\"),
        '\n' => shown.push_str("\\n"),
        '\r' => shown.push_str("\\r"),
        '\t' => shown.push_str("\\t"),
        ' '..='~' => shown.push(c),
        _ => {
            // Writing to a String cannot fail.
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
        }
    }
}

/// One line of a view of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeLine {
    /// The line's number in the file, from 1.
    pub number: usize,
    /// Whether this continues the line above, which was too long to show in
    /// one piece. A view marks it.
    pub is_continued: bool,
    /// Whether something in this piece is shown as an escape. A view marks it,
    /// so that an escape cannot be taken for text that looks like one.
    pub has_escapes: bool,
    /// The text, in printable ASCII.
    pub text: String,
}

/// Code as an operator reads it: every line with its number, long lines
/// wrapped at `width` characters, tabs as `<TAB>`, and everything else that is
/// not printable ASCII as `<U+00E9>`; bytes that are not UTF-8 as `<0xFF>`.
/// Nothing is left out, white space at the end of a line included.
pub fn code_view(code: &[u8], width: usize) -> Vec<CodeLine> {
    let mut lines = Vec::new();
    for (index, line) in code.split(|&byte| byte == b'\n').enumerate() {
        let first = lines.len();
        let mut piece = (String::new(), false);
        for (token, is_escape) in line.utf8_chunks().flat_map(chunk_tokens) {
            if !piece.0.is_empty() && piece.0.len() + token.len() > width {
                push_piece(&mut lines, first, index, std::mem::take(&mut piece));
            }
            piece.0.push_str(&token);
            piece.1 |= is_escape;
        }
        push_piece(&mut lines, first, index, piece);
    }
    // The end of the last line begins no further one.
    if code.ends_with(b"\n") {
        lines.pop();
    }
    lines
}

fn push_piece(lines: &mut Vec<CodeLine>, first: usize, index: usize, piece: (String, bool)) {
    let is_continued = lines.len() > first;
    let (text, has_escapes) = piece;
    lines.push(CodeLine {
        number: index + 1,
        is_continued,
        has_escapes,
        text,
    });
}

fn chunk_tokens(chunk: std::str::Utf8Chunk<'_>) -> Vec<(String, bool)> {
    let valid = chunk.valid().chars().map(|c| match c {
        ' '..='~' => (c.to_string(), false),
        '\t' => ("<TAB>".to_owned(), true),
        _ => (format!("<U+{:04X}>", u32::from(c)), true),
    });
    let invalid = chunk
        .invalid()
        .iter()
        .map(|byte| (format!("<0x{byte:02X}>"), true));
    valid.chain(invalid).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_printable_ascii_passes_as_itself() {
        let hostile = "a\u{1b}[2J\u{202e}\u{200b}\u{feff}\u{9b}\u{7f}\r\u{430}\\u{41}~";
        let shown = escape(hostile);
        assert!(shown.bytes().all(|b| (b' '..=b'~').contains(&b)), "{shown}");
        assert_eq!(
            shown,
            "a\\u{1b}[2J\\u{202e}\\u{200b}\\u{feff}\\u{9b}\\u{7f}\\r\\u{430}\\\\u{41}~"
        );
    }

    #[test]
    fn a_cut_is_marked_and_no_cut_is_not() {
        assert_eq!(escape_cut("abc", 3), "abc");
        assert_eq!(escape_cut("abcd", 3), "abc[cut]");
    }

    #[test]
    fn code_is_shown_whole_with_marks() {
        let view = code_view(b"ab\tc \n\xff\xc3\xa9<TAB>\n", 100);
        let shown: Vec<_> = view
            .iter()
            .map(|line| (line.text.as_str(), line.has_escapes))
            .collect();
        assert_eq!(shown, [("ab<TAB>c ", true), ("<0xFF><U+00E9><TAB>", true)]);
        assert_eq!(code_view(b"", 10).len(), 1);
        assert_eq!(code_view(b"x\n\n", 10).len(), 2);
    }

    #[test]
    fn long_lines_wrap_with_a_mark_and_lose_nothing() {
        let view = code_view("x".repeat(25).as_bytes(), 10);
        let pieces: Vec<_> = view
            .iter()
            .map(|line| (line.number, line.is_continued))
            .collect();
        assert_eq!(pieces, [(1, false), (1, true), (1, true)]);
        assert_eq!(view.iter().map(|line| line.text.len()).sum::<usize>(), 25);
    }
}
