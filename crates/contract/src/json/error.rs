//! What was wrong with a document, and where.
//!
//! The reason names are shared with the Python side and with the conformance
//! corpus; they are a published vocabulary and never change their meaning.

use std::fmt;

use crate::visible;

/// Why a document was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum JsonErrorKind {
    /// More bytes than the input may have.
    SizeIn,
    /// The bytes are not UTF-8.
    InvalidUtf8,
    /// The document begins with a byte order mark.
    Bom,
    /// The text is not JSON (RFC 8259).
    Syntax,
    /// An object has the same key twice, after unescaping.
    DuplicateKey,
    /// A number that is not finite: the literals NaN, Infinity and -Infinity,
    /// or a number too large for a double.
    Nonfinite,
    /// An integer of more digits than CPython reads.
    IntDigits,
    /// Nested deeper than allowed.
    Depth,
    /// More values than allowed.
    Nodes,
    /// An escaped half of a surrogate pair without its other half.
    LoneSurrogate,
    /// More bytes than the output may have.
    SizeOut,
}

impl JsonErrorKind {
    /// All kinds, in the order in which they are looked for.
    pub const ALL: [Self; 11] = [
        Self::SizeIn,
        Self::InvalidUtf8,
        Self::Bom,
        Self::Syntax,
        Self::DuplicateKey,
        Self::Nonfinite,
        Self::IntDigits,
        Self::Depth,
        Self::Nodes,
        Self::LoneSurrogate,
        Self::SizeOut,
    ];

    /// The published name, the same on both sides of the sandbox.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SizeIn => "size_in",
            Self::InvalidUtf8 => "invalid_utf8",
            Self::Bom => "bom",
            Self::Syntax => "syntax",
            Self::DuplicateKey => "duplicate_key",
            Self::Nonfinite => "nonfinite",
            Self::IntDigits => "int_digits",
            Self::Depth => "depth",
            Self::Nodes => "nodes",
            Self::LoneSurrogate => "lone_surrogate",
            Self::SizeOut => "size_out",
        }
    }

    /// The kind with this published name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for JsonErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A refused document: the reason and the place.
///
/// Its text is safe to print: whatever it quotes of the document is escaped
/// and cut.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {detail} (line {line}, column {column}, byte {offset_bytes})")]
#[non_exhaustive]
pub struct JsonError {
    /// The reason.
    pub kind: JsonErrorKind,
    /// Where, in bytes from the start of the document.
    pub offset_bytes: usize,
    /// The line of that place, from 1. Lines end with LF.
    pub line: usize,
    /// The column of that place within its line, from 1, in code points.
    pub column: usize,
    /// What was found or expected, for people.
    pub detail: String,
}

impl JsonError {
    pub(super) fn new(
        document: &[u8],
        kind: JsonErrorKind,
        offset_bytes: usize,
        detail: String,
    ) -> Self {
        let before = document.get(..offset_bytes).unwrap_or(document);
        let line_start = before
            .iter()
            .rposition(|&b| b == b'\n')
            .map_or(0, |at| at + 1);
        // Counted as bytes that begin a code point, so that it also works up
        // to a place where the UTF-8 ends.
        let code_points = |bytes: &[u8]| bytes.iter().filter(|&&b| b & 0xc0 != 0x80).count();
        Self {
            kind,
            offset_bytes,
            line: before.iter().filter(|&&b| b == b'\n').count() + 1,
            column: code_points(&before[line_start..]) + 1,
            detail,
        }
    }

    pub(crate) fn output_too_large(document: &[u8], bytes_max: usize) -> Self {
        let detail = format!(
            "the output has {} bytes, at most {bytes_max} are allowed",
            document.len()
        );
        Self::new(document, JsonErrorKind::SizeOut, bytes_max, detail)
    }
}

/// A piece of a document, as an error may quote it.
pub(super) fn quote(text: &str) -> String {
    const QUOTED_CHARS_MAX: usize = 48;
    format!("\"{}\"", visible::escape_cut(text, QUOTED_CHARS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_kinds_map_one_to_one() {
        for kind in JsonErrorKind::ALL {
            assert_eq!(JsonErrorKind::from_name(kind.name()), Some(kind));
        }
        assert_eq!(JsonErrorKind::from_name("other"), None);
    }

    #[test]
    fn columns_count_code_points_and_lines_count_line_feeds() {
        let document = "{\r\n \"\u{e9}\u{1f600}\" x".as_bytes();
        let error = JsonError::new(
            document,
            JsonErrorKind::Syntax,
            document.len() - 1,
            "d".into(),
        );
        assert_eq!((error.line, error.column), (2, 7));
        assert_eq!(
            error.to_string(),
            format!("syntax: d (line 2, column 7, byte {})", document.len() - 1)
        );
    }
}
