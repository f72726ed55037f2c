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
}
