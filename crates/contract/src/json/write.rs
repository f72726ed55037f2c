//! The writer: bytes that are a function of the value alone.
//!
//! The two forms are those of CPython's `json.dumps` with `ensure_ascii=False`
//! and `sort_keys=True`, byte for byte. The nesting of what is written is
//! bounded by whoever made the value: the parser stops at
//! [`JSON_DEPTH_MAX`](crate::limits::JSON_DEPTH_MAX).

use std::fmt::Write as _;

use super::value::Value;

/// The formatter's form: `json.dumps(value, ensure_ascii=False,
/// sort_keys=True, indent=2)` and a line feed.
pub fn write_pretty(value: &Value) -> Vec<u8> {
    let mut out = String::new();
    write_value(&mut out, value, Some(0));
    out.push('\n');
    out.into_bytes()
}

/// The compact form: `json.dumps(value, ensure_ascii=False, sort_keys=True,
/// separators=(",", ":"))`, with no line feed at the end. It is the canonical
/// form that digests are taken of, and what `lazaret.write_output` writes.
pub fn write_compact(value: &Value) -> Vec<u8> {
    let mut out = String::new();
    write_value(&mut out, value, None);
    out.into_bytes()
}

/// `level` is the indentation of the line that the value begins on, or `None`
/// for the compact form.
fn write_value(out: &mut String, value: &Value, level: Option<usize>) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Integer(integer) => out.push_str(integer.as_str()),
        Value::Float(float) => {
            // Writing to a String cannot fail.
            let _ = write!(out, "{float}");
        }
        Value::String(text) => write_string(out, text),
        Value::Array(items) => {
            write_members(out, ['[', ']'], level, items.iter(), |out, item, level| {
                write_value(out, item, level);
            });
        }
        Value::Object(members) => {
            let separator = if level.is_some() { ": " } else { ":" };
            write_members(
                out,
                ['{', '}'],
                level,
                members.iter(),
                |out, (key, member), level| {
                    write_string(out, key);
                    out.push_str(separator);
                    write_value(out, member, level);
                },
            );
        }
    }
}

fn write_members<T>(
    out: &mut String,
    [open, close]: [char; 2],
    level: Option<usize>,
    members: impl ExactSizeIterator<Item = T>,
    write_member: impl Fn(&mut String, T, Option<usize>),
) {
    out.push(open);
    let is_empty = members.len() == 0;
    let inner = level.map(|level| level + 1);
    for (index, member) in members.enumerate() {
        if index > 0 {
            out.push(',');
        }
        break_line(out, inner);
        write_member(out, member, inner);
    }
    if !is_empty {
        break_line(out, level);
    }
    out.push(close);
}

fn break_line(out: &mut String, level: Option<usize>) {
    if let Some(level) = level {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", level));
    }
}

/// Only the quote, the backslash and the control characters below U+0020 are
/// escaped, the common ones by their short names; U+007F and everything beyond
/// ASCII stands as itself.
fn write_string(out: &mut String, text: &str) {
    out.push('"');
    let mut unescaped_from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let short = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0c => "\\f",
            0x00..=0x1f => "",
            _ => continue,
        };
        out.push_str(&text[unescaped_from..at]);
        out.push_str(short);
        if short.is_empty() {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{byte:04x}");
        }
        unescaped_from = at + 1;
    }
    out.push_str(&text[unescaped_from..]);
    out.push('"');
}
