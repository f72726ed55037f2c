//! A parsed document.

use std::collections::BTreeMap;

use super::number::{Float, Integer};

/// An object. Its keys are unique and iterate in code point order, which is
/// the order of their UTF-8 bytes and the order of Python's `sorted` (case
/// A09).
pub type Object = BTreeMap<String, Value>;

/// A JSON value. Equality is exact: 1, 1.0 and true are three values, 0.0 and
/// -0.0 two, and integers differ in every digit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number without fraction and exponent.
    Integer(Integer),
    /// A number with a fraction or an exponent.
    Float(Float),
    /// A string; never holds a lone surrogate.
    String(String),
    /// An array.
    Array(Vec<Value>),
    /// An object.
    Object(Object),
}

impl Value {
    /// What kind of value it is, for messages.
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Integer(_) => "integer",
            Self::Float(_) => "float",
            Self::String(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
        }
    }

    /// How many values there are, this one included; keys do not count.
    pub fn nodes(&self) -> usize {
        let mut nodes = 0;
        self.walk(|_| nodes += 1);
        nodes
    }

    /// How deep the deepest value lies; a scalar alone has depth 0.
    pub fn depth(&self) -> usize {
        let mut deepest = 0;
        self.walk(|depth| deepest = deepest.max(depth));
        deepest
    }

    /// Calls `visit` with the depth of every value.
    fn walk(&self, mut visit: impl FnMut(usize)) {
        let mut waiting = vec![(self, 0)];
        while let Some((value, depth)) = waiting.pop() {
            visit(depth);
            match value {
                Self::Array(items) => waiting.extend(items.iter().map(|item| (item, depth + 1))),
                Self::Object(members) => {
                    waiting.extend(members.values().map(|member| (member, depth + 1)));
                }
                _ => {}
            }
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Integer(value.into())
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::String(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::String(value)
    }
}
