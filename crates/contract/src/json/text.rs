//! String literals.
//!
//! Decoded text is held as generalised UTF-8 until the whole document has been
//! read: an escaped lone surrogate becomes its own three bytes, so that keys
//! still compare as CPython compares them, and the document is refused for it
//! only when nothing comes first.

use std::ops::Range;

/// A decoded string literal.
pub(super) struct Literal {
    /// Generalised UTF-8 (WTF-8); plain UTF-8 unless there is a lone surrogate.
    pub bytes: Vec<u8>,
    /// Where the first lone surrogate's escape begins.
    pub lone_surrogate_at: Option<usize>,
    /// The offset behind the closing quote.
    pub end: usize,
}

/// A fault inside a string literal, with its offset in the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextFault {
    /// No closing quote; the offset is that of the opening one.
    Unterminated(usize),
    /// A raw character below U+0020.
    ControlCharacter(usize),
    /// A backslash before a character that it cannot escape; the offset is the
    /// backslash's.
    Escape(usize),
    /// `\u` without four hexadecimal digits; the offset is that of the `u`.
    HexEscape(usize),
}

/// Reads the string literal whose opening quote is at `quote_at`.
pub(super) fn read_literal(document: &str, quote_at: usize) -> Result<Literal, TextFault> {
    let input = document.as_bytes();
    let mut literal = Literal {
        bytes: Vec::new(),
        lone_surrogate_at: None,
        end: 0,
    };
    let mut at = quote_at + 1;
    loop {
        let plain = input[at..]
            .iter()
            .position(|&b| b == b'"' || b == b'\\' || b < 0x20);
        let stop = at + plain.ok_or(TextFault::Unterminated(quote_at))?;
        literal.bytes.extend_from_slice(&input[at..stop]);
        match input[stop] {
            b'"' => {
                literal.end = stop + 1;
                return Ok(literal);
            }
            b'\\' => at = read_escape(input, quote_at, stop, &mut literal)?,
            _ => return Err(TextFault::ControlCharacter(stop)),
        }
    }
}

/// Reads the escape whose backslash is at `at`; gives the offset behind it.
fn read_escape(
    input: &[u8],
    quote_at: usize,
    at: usize,
    literal: &mut Literal,
) -> Result<usize, TextFault> {
    let plain = match input.get(at + 1) {
        None => return Err(TextFault::Unterminated(quote_at)),
        Some(b'u') => return read_hex_escape(input, at, literal),
        Some(b'"') => b'"',
        Some(b'\\') => b'\\',
        Some(b'/') => b'/',
        Some(b'b') => 0x08,
        Some(b'f') => 0x0c,
        Some(b'n') => b'\n',
        Some(b'r') => b'\r',
        Some(b't') => b'\t',
        Some(_) => return Err(TextFault::Escape(at)),
    };
    literal.bytes.push(plain);
    Ok(at + 2)
}

fn read_hex_escape(input: &[u8], at: usize, literal: &mut Literal) -> Result<usize, TextFault> {
    const LOW_SURROGATES: Range<u32> = 0xdc00..0xe000;
    let unit = hex_unit(input, at + 1)?;
    let mut code_point = unit;
    let mut end = at + 6;
    if (0xd800..0xdc00).contains(&unit) && input[end..].starts_with(b"\\u") {
        let low = hex_unit(input, end + 1)?;
        // Any other unit stands for itself and is read on the next turn.
        if LOW_SURROGATES.contains(&low) {
            code_point = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
            end += 6;
        }
    }
    match char::from_u32(code_point) {
        Some(c) => literal
            .bytes
            .extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        None => {
            literal.lone_surrogate_at.get_or_insert(at);
            literal
                .bytes
                .extend_from_slice(&generalised_utf8(code_point));
        }
    }
    Ok(end)
}

/// The 16 bits of the `uXXXX` whose `u` is at `at`.
fn hex_unit(input: &[u8], at: usize) -> Result<u32, TextFault> {
    let digits = input.get(at + 1..at + 5).ok_or(TextFault::HexEscape(at))?;
    digits.iter().try_fold(0, |unit, &byte| {
        let digit = char::from(byte)
            .to_digit(16)
            .ok_or(TextFault::HexEscape(at))?;
        Ok(unit << 4 | digit)
    })
}

/// A surrogate as the three bytes that UTF-8's scheme would give it.
fn generalised_utf8(surrogate: u32) -> [u8; 3] {
    let low_six = |bits: u32| 0x80 | (bits & 0x3f).to_le_bytes()[0];
    [
        0xe0 | (surrogate >> 12).to_le_bytes()[0],
        low_six(surrogate >> 6),
        low_six(surrogate),
    ]
}
