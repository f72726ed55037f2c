//! Code as reviewers read it.

use std::fmt;

use lazaret_contract::visible;
use serde::Serialize;

/// The widest piece of a line, in characters.
pub const WIDTH_CHARS: usize = 100;

/// One line of code, or a piece of one that is too long, in printable ASCII.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shown {
    /// The line's number, from 1.
    pub line: usize,
    /// Whether this continues the line above.
    pub is_continued: bool,
    /// Whether something is shown as an escape.
    pub has_escapes: bool,
    /// The text.
    pub text: String,
}

/// All lines. Spaces at the end of a line are shown as escapes too: nobody sees them
/// otherwise.
pub fn lines(code: &[u8]) -> Vec<Shown> {
    visible::code_view(code, WIDTH_CHARS)
        .into_iter()
        .map(|piece| {
            let bare = piece.text.trim_end_matches(' ');
            let spaces = piece.text.len() - bare.len();
            Shown {
                line: piece.number,
                is_continued: piece.is_continued,
                has_escapes: piece.has_escapes || spaces > 0,
                text: format!("{bare}{}", "<U+0020>".repeat(spaces)),
            }
        })
        .collect()
}

impl Shown {
    /// What stands between the number and the text.
    pub fn mark(&self) -> char {
        match (self.has_escapes, self.is_continued) {
            (true, _) => '!',
            (false, true) => '+',
            (false, false) => '|',
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = if self.is_continued {
            "+".to_owned()
        } else {
            self.line.to_string()
        };
        write!(f, "{number:>5} {} {}", self.mark(), self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_at_the_end_and_long_lines_are_marked() {
        let code = format!("a \n{}\n", "x".repeat(WIDTH_CHARS + 1));
        let shown: Vec<String> = lines(code.as_bytes())
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(shown[0], "    1 ! a<U+0020>");
        assert_eq!(shown[2], "    + + x");
    }
}
