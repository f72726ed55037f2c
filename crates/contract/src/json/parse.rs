//! The parser: from bytes to a value, or to the one fault that counts.
//!
//! It reads from left to right with a stack of its own, so nesting costs heap
//! that the size limit bounds, never the call stack. Faults that end the
//! reading are returned at once; depth, nodes and lone surrogates are noted and
//! judged only for a document that is otherwise sound (see the module
//! [`json`](super)).

use super::error::{JsonError, JsonErrorKind, quote};
use super::number::{Float, Integer};
use super::text::{TextFault, read_literal};
use super::value::{Object, Value};
use crate::limits::{
    INPUT_BYTES_MAX, JSON_DEPTH_MAX, JSON_INTEGER_DIGITS_MAX, JSON_NESTING_FOLLOWED_MAX,
    JSON_NODES_MAX, OUTPUT_BYTES_MAX,
};
use crate::visible;

/// How large a document may be, and the name of the refusal when it is larger.
/// Depth and digits have the same limits in every document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    bytes_max: usize,
    nodes_max: usize,
    too_large: JsonErrorKind,
}

impl Bounds {
    /// An input of a run.
    pub const INPUT: Self = Self::document(INPUT_BYTES_MAX);

    /// An output of a run.
    pub const OUTPUT: Self = Self {
        bytes_max: OUTPUT_BYTES_MAX,
        nodes_max: JSON_NODES_MAX,
        too_large: JsonErrorKind::SizeOut,
    };

    /// Another document, of at most `bytes_max` bytes.
    pub const fn document(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            nodes_max: JSON_NODES_MAX,
            too_large: JsonErrorKind::SizeIn,
        }
    }

    /// The same with at most `nodes_max` values. Only for documents of our own
    /// form that are larger than what a package may see, such as receipts.
    #[must_use]
    pub const fn with_nodes_max(self, nodes_max: usize) -> Self {
        Self { nodes_max, ..self }
    }
}

/// Parses the input of a run.
pub fn parse(document: &[u8]) -> Result<Value, JsonError> {
    parse_bounded(document, Bounds::INPUT)
}

/// Parses a document of at most the given size.
pub fn parse_bounded(document: &[u8], bounds: Bounds) -> Result<Value, JsonError> {
    decode(document, bounds)
        .and_then(|text| Parser::new(text, bounds.nodes_max).document())
        .map_err(|fault| JsonError::new(document, fault.kind, fault.at, fault.detail))
}

struct Fault {
    kind: JsonErrorKind,
    at: usize,
    detail: String,
}

impl Fault {
    fn new(kind: JsonErrorKind, at: usize, detail: impl Into<String>) -> Self {
        Self {
            kind,
            at,
            detail: detail.into(),
        }
    }
}

fn decode(document: &[u8], bounds: Bounds) -> Result<&str, Fault> {
    let Bounds {
        bytes_max,
        too_large,
        ..
    } = bounds;
    if document.len() > bytes_max {
        let detail = format!(
            "the document has {} bytes, at most {bytes_max} are allowed",
            document.len()
        );
        return Err(Fault::new(too_large, bytes_max, detail));
    }
    let text = std::str::from_utf8(document).map_err(|error| {
        let at = error.valid_up_to();
        let byte = document.get(at).copied().unwrap_or_default();
        let detail = format!("the byte 0x{byte:02x} is not part of valid UTF-8");
        Fault::new(JsonErrorKind::InvalidUtf8, at, detail)
    })?;
    if text.starts_with('\u{feff}') {
        let detail = "the document begins with a byte order mark; save it without one";
        return Err(Fault::new(JsonErrorKind::Bom, 0, detail));
    }
    Ok(text)
}

/// An open container.
enum Frame {
    Array(Vec<Value>),
    Object {
        members: Vec<Member>,
        /// The key whose value is being read.
        key: Key,
    },
}

/// A key as decoded, with the offset of its opening quote.
struct Key {
    bytes: Vec<u8>,
    at: usize,
}

struct Member {
    key: Key,
    value: Value,
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    stack: Vec<Frame>,
    nodes: usize,
    nodes_max: usize,
    /// Offsets of the first value that lies too deep, of the first one too
    /// many, and of the first lone surrogate.
    too_deep_at: Option<usize>,
    too_many_at: Option<usize>,
    lone_surrogate_at: Option<usize>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, nodes_max: usize) -> Self {
        Self {
            text,
            at: 0,
            stack: Vec::new(),
            nodes: 0,
            nodes_max,
            too_deep_at: None,
            too_many_at: None,
            lone_surrogate_at: None,
        }
    }

    fn document(mut self) -> Result<Value, Fault> {
        let root = self.root()?;
        self.skip_white_space();
        if self.at < self.text.len() {
            return Err(self.unexpected("the end of the document after its one value"));
        }
        if let Some(at) = self.too_deep_at {
            return Err(too_deep(at));
        }
        if let Some(at) = self.too_many_at {
            let detail = format!(
                "the document has {} values, at most {} are allowed",
                self.nodes, self.nodes_max
            );
            return Err(Fault::new(JsonErrorKind::Nodes, at, detail));
        }
        if let Some(at) = self.lone_surrogate_at {
            let detail = "half of a surrogate pair is escaped here without its other half";
            return Err(Fault::new(JsonErrorKind::LoneSurrogate, at, detail));
        }
        Ok(root)
    }

    fn root(&mut self) -> Result<Value, Fault> {
        loop {
            self.skip_white_space();
            let Some(mut complete) = self.begin_value()? else {
                continue;
            };
            // A complete value may complete the containers around it.
            loop {
                let Some(frame) = self.stack.pop() else {
                    return Ok(complete);
                };
                match self.add_to(frame, complete)? {
                    Some(container) => complete = container,
                    None => break,
                }
            }
        }
    }

    /// Reads a value up to its end, or opens a container that has members
    /// (`None`): what follows is then the first member's value.
    fn begin_value(&mut self) -> Result<Option<Value>, Fault> {
        let depth = self.stack.len();
        let start = self.at;
        let value = match self.peek() {
            Some(b'[' | b'{') if depth >= JSON_NESTING_FOLLOWED_MAX => {
                return Err(too_deep(self.too_deep_at.unwrap_or(start)));
            }
            Some(b'[') => self.open_array(),
            Some(b'{') => self.open_object()?,
            _ => Some(self.scalar()?),
        };
        self.nodes += 1;
        if self.nodes > self.nodes_max {
            self.too_many_at.get_or_insert(start);
        }
        if depth > JSON_DEPTH_MAX {
            self.too_deep_at.get_or_insert(start);
        }
        Ok(value)
    }

    fn open_array(&mut self) -> Option<Value> {
        self.at += 1;
        self.skip_white_space();
        if self.take(b']') {
            return Some(Value::Array(Vec::new()));
        }
        self.stack.push(Frame::Array(Vec::new()));
        None
    }

    fn open_object(&mut self) -> Result<Option<Value>, Fault> {
        self.at += 1;
        self.skip_white_space();
        if self.take(b'}') {
            return Ok(Some(Value::Object(Object::new())));
        }
        let key = self.key("'}' or a key in double quotes")?;
        self.stack.push(Frame::Object {
            members: Vec::new(),
            key,
        });
        Ok(None)
    }

    /// Puts a complete value into the container that it belongs to. Gives the
    /// container when that ends with it, else leaves it on the stack.
    fn add_to(&mut self, frame: Frame, value: Value) -> Result<Option<Value>, Fault> {
        self.skip_white_space();
        match frame {
            Frame::Array(mut items) => {
                items.push(value);
                if self.take(b',') {
                    self.stack.push(Frame::Array(items));
                    return Ok(None);
                }
                if !self.take(b']') {
                    return Err(self.unexpected("',' or ']'"));
                }
                Ok(Some(self.unless_too_deep(Value::Array(items))))
            }
            Frame::Object { mut members, key } => {
                members.push(Member { key, value });
                if self.take(b',') {
                    self.skip_white_space();
                    let key = self.key("another key in double quotes")?;
                    self.stack.push(Frame::Object { members, key });
                    return Ok(None);
                }
                if !self.take(b'}') {
                    return Err(self.unexpected("',' or '}'"));
                }
                let object = collect_members(members)?;
                Ok(Some(self.unless_too_deep(Value::Object(object))))
            }
        }
    }

    /// Containers beyond the depth limit are not kept, so that no value is ever
    /// nested more deeply than dropping or writing it can bear. The document is
    /// refused in the end.
    fn unless_too_deep(&self, container: Value) -> Value {
        if self.stack.len() > JSON_DEPTH_MAX {
            Value::Null
        } else {
            container
        }
    }

    fn key(&mut self, expected: &str) -> Result<Key, Fault> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected(expected));
        }
        let at = self.at;
        let bytes = self.string()?;
        self.skip_white_space();
        if !self.take(b':') {
            return Err(self.unexpected("':' after the key"));
        }
        Ok(Key { bytes, at })
    }

    fn scalar(&mut self) -> Result<Value, Fault> {
        let literals = [
            ("null", Value::Null),
            ("true", true.into()),
            ("false", false.into()),
        ];
        for (literal, value) in literals {
            if self.rest().starts_with(literal) {
                self.at += literal.len();
                return Ok(value);
            }
        }
        for literal in ["NaN", "Infinity", "-Infinity"] {
            if self.rest().starts_with(literal) {
                let detail = format!("{literal} is not a JSON number");
                return Err(Fault::new(JsonErrorKind::Nonfinite, self.at, detail));
            }
        }
        match self.peek() {
            Some(b'"') => {
                let bytes = self.string()?;
                Ok(Value::String(string_from(bytes)))
            }
            _ => self.number(),
        }
    }

    /// The bytes of the string literal that begins here.
    fn string(&mut self) -> Result<Vec<u8>, Fault> {
        let literal = read_literal(self.text, self.at).map_err(|fault| {
            let (at, detail) = match fault {
                TextFault::Unterminated(at) => (at, "this string has no closing quote"),
                TextFault::ControlCharacter(at) => {
                    (at, "a control character inside a string must be escaped")
                }
                TextFault::Escape(at) => (at, "this escape does not exist in JSON"),
                TextFault::HexEscape(at) => (at, "\\u wants four hexadecimal digits"),
            };
            Fault::new(JsonErrorKind::Syntax, at, detail)
        })?;
        self.at = literal.end;
        if let Some(at) = literal.lone_surrogate_at {
            self.lone_surrogate_at.get_or_insert(at);
        }
        Ok(literal.bytes)
    }

    fn number(&mut self) -> Result<Value, Fault> {
        let start = self.at;
        let token = number_token(self.rest());
        if token.is_empty() {
            return Err(self.unexpected("a value"));
        }
        self.at += token.len();
        if token.bytes().any(|b| matches!(b, b'.' | b'e' | b'E')) {
            // str::parse is exact to the bit (case A01).
            let float = token.parse().ok().and_then(Float::new);
            return float.map(Value::Float).ok_or_else(|| {
                Fault::new(
                    JsonErrorKind::Nonfinite,
                    start,
                    "this number is too large for a double",
                )
            });
        }
        let digits = token.trim_start_matches('-').len();
        if digits > JSON_INTEGER_DIGITS_MAX {
            let detail = format!(
                "an integer of {digits} digits, at most {JSON_INTEGER_DIGITS_MAX} are allowed"
            );
            return Err(Fault::new(JsonErrorKind::IntDigits, start, detail));
        }
        Ok(Value::Integer(Integer::from_token(token)))
    }

    fn unexpected(&self, expected: &str) -> Fault {
        let found = match self.rest().chars().next() {
            Some(c) => format!("'{}'", visible::escape(c.encode_utf8(&mut [0; 4]))),
            None => "the end of the document".to_owned(),
        };
        Fault::new(
            JsonErrorKind::Syntax,
            self.at,
            format!("expected {expected}, found {found}"),
        )
    }

    fn rest(&self) -> &'a str {
        // `at` only ever moves over whole ASCII characters and string literals.
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn skip_white_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }
}

fn too_deep(at: usize) -> Fault {
    let detail = format!("nested deeper than {JSON_DEPTH_MAX} levels");
    Fault::new(JsonErrorKind::Depth, at, detail)
}

/// The members of an object that has ended. Keys are compared only now, as
/// CPython's hook does: a fault inside the object comes first.
fn collect_members(mut members: Vec<Member>) -> Result<Object, Fault> {
    members.sort_by(|a, b| a.key.bytes.cmp(&b.key.bytes).then(a.key.at.cmp(&b.key.at)));
    let duplicate = members
        .windows(2)
        .filter(|pair| pair[0].key.bytes == pair[1].key.bytes)
        .map(|pair| &pair[1].key)
        .min_by_key(|key| key.at);
    if let Some(key) = duplicate {
        let shown = quote(&String::from_utf8_lossy(&key.bytes));
        let detail = format!("the key {shown} is in this object already");
        return Err(Fault::new(JsonErrorKind::DuplicateKey, key.at, detail));
    }
    Ok(members
        .into_iter()
        .map(|member| (string_from(member.key.bytes), member.value))
        .collect())
}

/// Decoded bytes as a string. Only a lone surrogate makes them invalid UTF-8,
/// and then the document is refused in the end, whatever stands here.
fn string_from(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_default()
}

/// The longest beginning of `text` that is a JSON number; empty if none is.
/// What follows is judged by whoever reads on, as CPython does: `01` is 0 and
/// then something unexpected.
fn number_token(text: &str) -> &str {
    let bytes = text.as_bytes();
    let digits_from = |from: usize| {
        from + bytes[from..]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count()
    };
    let int_from = usize::from(bytes.first() == Some(&b'-'));
    let mut end = match bytes.get(int_from) {
        Some(b'0') => int_from + 1,
        Some(b'1'..=b'9') => digits_from(int_from),
        _ => return "",
    };
    if bytes.get(end) == Some(&b'.') {
        let fraction_end = digits_from(end + 1);
        if fraction_end > end + 1 {
            end = fraction_end;
        }
    }
    if let Some(b'e' | b'E') = bytes.get(end) {
        let exponent_from = end + 1 + usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent_end = digits_from(exponent_from);
        if exponent_end > exponent_from {
            end = exponent_end;
        }
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_of_another_form_may_have_another_number_of_values() {
        let document = format!("[{}0]", "0,".repeat(JSON_NODES_MAX - 1)).into_bytes();
        let bounds = Bounds::document(document.len());
        let refused = parse_bounded(&document, bounds).map_err(|error| error.kind);
        assert_eq!(refused, Err(JsonErrorKind::Nodes));
        let wider = bounds.with_nodes_max(JSON_NODES_MAX + 1);
        assert!(parse_bounded(&document, wider).is_ok());
        let narrower = bounds.with_nodes_max(1);
        let refused = parse_bounded(&document, narrower).map_err(|error| error.detail);
        assert_eq!(
            refused,
            Err("the document has 4097 values, at most 1 are allowed".to_owned())
        );
    }
}
