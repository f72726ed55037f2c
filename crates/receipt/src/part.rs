//! Parts of a statement: from typed values to JSON and strictly back.
//!
//! Every record of this crate is closed: what it does not know it refuses, what
//! it needs it demands, and an absent optional member is absent, never null. So a
//! statement has one text, and reading it gives back the very value that was
//! written. Nothing here may drop or default a member.

use std::fmt;

use lazaret_contract::digest::Sha256Digest;
use lazaret_contract::json::{Object, Value};
use lazaret_contract::visible;

use crate::limits::INTEGER_MAX;

/// A document that is not of the form that its type asks for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {problem}")]
pub struct FormError {
    /// Where, as a JSON Pointer (RFC 6901); `document` for the whole.
    pub at: String,
    /// What is wrong there. Whatever it quotes is escaped and cut.
    pub problem: String,
}

/// A place in a document while it is being read.
#[derive(Clone, Copy)]
pub(crate) enum At<'a> {
    Root,
    Member(&'a At<'a>, &'a str),
    Item(&'a At<'a>, usize),
}

impl<'a> At<'a> {
    pub(crate) fn member(&'a self, key: &'a str) -> Self {
        Self::Member(self, key)
    }

    pub(crate) fn error(&self, problem: impl Into<String>) -> FormError {
        let pointer = self.to_string();
        let at = if pointer.is_empty() {
            "document".to_owned()
        } else {
            pointer
        };
        FormError {
            at,
            problem: problem.into(),
        }
    }

    fn wants(&self, wanted: &str, found: &Value) -> FormError {
        self.error(format!("wants {wanted}, not {}", found.type_name()))
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Member(above, key) => {
                let token = key.replace('~', "~0").replace('/', "~1");
                write!(f, "{above}/{}", visible::escape_cut(&token, 48))
            }
            Self::Item(above, index) => write!(f, "{above}/{index}"),
        }
    }
}

/// A text as an error may quote it.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", visible::escape_cut(text, 48))
}

/// A name with its meaning.
pub type Described = (&'static str, &'static str);

/// What can stand in a statement.
pub(crate) trait Part: Sized {
    fn to_value(&self) -> Value;

    fn from_value(value: Value, at: &At<'_>) -> Result<Self, FormError>;

    /// Adds itself as a member.
    fn put(&self, object: &mut Object, key: &str) {
        object.insert(key.to_owned(), self.to_value());
    }

    /// Takes itself out of the members.
    fn take(object: &mut Object, key: &str, at: &At<'_>) -> Result<Self, FormError> {
        match object.remove(key) {
            Some(value) => Self::from_value(value, &at.member(key)),
            None => Err(at.error(format!("lacks the member {}", quoted(key)))),
        }
    }
}

impl<T: Part> Part for Option<T> {
    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::to_value)
    }

    fn from_value(value: Value, at: &At<'_>) -> Result<Self, FormError> {
        T::from_value(value, at).map(Some)
    }

    fn put(&self, object: &mut Object, key: &str) {
        if let Some(part) = self {
            part.put(object, key);
        }
    }

    fn take(object: &mut Object, key: &str, at: &At<'_>) -> Result<Self, FormError> {
        match object.remove(key) {
            Some(value) => T::from_value(value, &at.member(key)).map(Some),
            None => Ok(None),
        }
    }
}

impl<T: Part> Part for Vec<T> {
    fn to_value(&self) -> Value {
        Value::Array(self.iter().map(T::to_value).collect())
    }

    fn from_value(value: Value, at: &At<'_>) -> Result<Self, FormError> {
        match value {
            Value::Array(items) => items
                .into_iter()
                .enumerate()
                .map(|(index, item)| T::from_value(item, &At::Item(at, index)))
                .collect(),
            other => Err(at.wants("an array", &other)),
        }
    }
}

impl Part for bool {
    fn to_value(&self) -> Value {
        Value::Bool(*self)
    }

    fn from_value(value: Value, at: &At<'_>) -> Result<Self, FormError> {
        match value {
            Value::Bool(value) => Ok(value),
            other => Err(at.wants("a boolean", &other)),
        }
    }
}

impl Part for u64 {
    fn to_value(&self) -> Value {
        match i64::try_from(*self) {
            Ok(value) => value.into(),
            // Never read back, so never signed: see `Statement::to_bytes`.
            Err(_) => self.to_string().into(),
        }
    }

    fn from_value(value: Value, at: &At<'_>) -> Result<Self, FormError> {
        let Value::Integer(integer) = value else {
            return Err(at.wants("an integer", &value));
        };
        integer
            .to_i64()
            .and_then(|value| u64::try_from(value).ok())
            .filter(|value| *value <= INTEGER_MAX)
            .ok_or_else(|| at.error(format!("wants an integer from 0 to {INTEGER_MAX}")))
    }
}

impl Part for Sha256Digest {
    fn to_value(&self) -> Value {
        self.to_string().into()
    }

    fn from_value(value: Value, at: &At<'_>) -> Result<Self, FormError> {
        let text = text_of(value, at)?;
        text.parse()
            .map_err(|_| at.error("wants 64 lower-case hexadecimal digits"))
    }
}

pub(crate) fn text_of(value: Value, at: &At<'_>) -> Result<String, FormError> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(at.wants("a string", &other)),
    }
}

pub(crate) fn object_of(value: Value, at: &At<'_>) -> Result<Object, FormError> {
    match value {
        Value::Object(object) => Ok(object),
        other => Err(at.wants("an object", &other)),
    }
}

pub(crate) fn nothing_left(object: &Object, at: &At<'_>) -> Result<(), FormError> {
    match object.keys().next() {
        None => Ok(()),
        Some(key) => Err(at.error(format!("has the unknown member {}", quoted(key)))),
    }
}

/// A record: its members by their names in JSON.
macro_rules! record {
    ($(#[$meta:meta])* $visibility:vis struct $name:ident {
        $($(#[doc = $doc:expr])* $key:literal => $field:ident: $kind:ty,)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        $visibility struct $name {
            $($(#[doc = $doc])* pub $field: $kind,)*
        }

        impl $name {
            /// Every member by its name in JSON, with its meaning: what the reference
            /// for readers is made of.
            #[allow(dead_code, reason = "records that no reader sees are not in it")]
            pub const MEMBERS: &'static [$crate::part::Described] =
                &[$(($key, concat!($($doc),*)),)*];
        }

        impl $crate::part::Part for $name {
            fn to_value(&self) -> lazaret_contract::json::Value {
                let mut object = lazaret_contract::json::Object::new();
                $($crate::part::Part::put(&self.$field, &mut object, $key);)*
                lazaret_contract::json::Value::Object(object)
            }

            fn from_value(
                value: lazaret_contract::json::Value,
                at: &$crate::part::At<'_>,
            ) -> Result<Self, $crate::part::FormError> {
                let mut object = $crate::part::object_of(value, at)?;
                let record = Self {
                    $($field: $crate::part::Part::take(&mut object, $key, at)?,)*
                };
                $crate::part::nothing_left(&object, at)?;
                Ok(record)
            }
        }
    };
}

/// A closed vocabulary: each variant with its one word in JSON.
macro_rules! words {
    ($(#[$meta:meta])* pub enum $name:ident {
        $($(#[doc = $doc:expr])* $variant:ident = $word:literal,)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[doc = $doc])* $variant,)*
        }

        impl $name {
            /// Every variant.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Every word with its meaning: what the reference for readers is made of.
            pub const WORDS: &'static [$crate::part::Described] =
                &[$(($word, concat!($($doc),*)),)*];

            /// The word that stands for it in JSON.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }

            /// The variant of this word.
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|variant| variant.word() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.word())
            }
        }

        impl $crate::part::Part for $name {
            fn to_value(&self) -> lazaret_contract::json::Value {
                self.word().into()
            }

            fn from_value(
                value: lazaret_contract::json::Value,
                at: &$crate::part::At<'_>,
            ) -> Result<Self, $crate::part::FormError> {
                let text = $crate::part::text_of(value, at)?;
                Self::from_word(&text).ok_or_else(|| {
                    let words: Vec<_> = Self::ALL.iter().map(|known| known.word()).collect();
                    at.error(format!(
                        "wants one of {}, not {}",
                        words.join(", "),
                        $crate::part::quoted(&text)
                    ))
                })
            }
        }
    };
}

/// A member that has one value only.
macro_rules! constant {
    ($(#[$meta:meta])* pub struct $name:ident = $value:expr;) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct $name;

        impl $crate::part::Part for $name {
            fn to_value(&self) -> lazaret_contract::json::Value {
                lazaret_contract::json::Value::from($value)
            }

            fn from_value(
                value: lazaret_contract::json::Value,
                at: &$crate::part::At<'_>,
            ) -> Result<Self, $crate::part::FormError> {
                if value == $crate::part::Part::to_value(&Self) {
                    Ok(Self)
                } else {
                    Err(at.error(format!("wants exactly {:?}", $value)))
                }
            }
        }
    };
}

pub(crate) use {constant, record, words};

#[cfg(test)]
mod tests {
    use super::*;

    record! {
        /// A record for the tests.
        pub struct Sample {
            /// Needed.
            "needed" => needed: u64,
            /// Not needed.
            "some~/times" => sometimes: Option<Vec<bool>>,
        }
    }

    fn read(text: &str) -> Result<Sample, String> {
        let value = lazaret_contract::json::parse(text.as_bytes()).unwrap();
        Sample::from_value(value, &At::Root).map_err(|error| error.to_string())
    }

    #[test]
    fn a_record_is_closed_and_names_the_place_of_a_fault() {
        assert_eq!(read(r#"{"needed":1}"#).unwrap().sometimes, None);
        let rows = [
            (r#"{}"#, r#"document: lacks the member "needed""#),
            (
                r#"{"needed":1,"x":2}"#,
                r#"document: has the unknown member "x""#,
            ),
            (
                r#"{"needed":true}"#,
                "/needed: wants an integer, not boolean",
            ),
            (r#"{"needed":1.0}"#, "/needed: wants an integer, not float"),
            (
                r#"{"needed":9007199254740992}"#,
                "/needed: wants an integer from 0 to 9007199254740991",
            ),
            (
                r#"{"needed":-1}"#,
                "/needed: wants an integer from 0 to 9007199254740991",
            ),
            (
                r#"{"needed":1,"some~/times":null}"#,
                "/some~0~1times: wants an array, not null",
            ),
            (
                r#"{"needed":1,"some~/times":[true,0]}"#,
                "/some~0~1times/1: wants a boolean, not integer",
            ),
            ("[]", "document: wants an object, not array"),
        ];
        for (text, problem) in rows {
            assert_eq!(read(text), Err(problem.to_owned()), "{text}");
        }
    }

    #[test]
    fn an_integer_that_json_does_not_keep_is_never_read_back() {
        for value in [INTEGER_MAX + 1, u64::MAX] {
            assert!(u64::from_value(value.to_value(), &At::Root).is_err());
        }
        assert_eq!(
            u64::from_value(INTEGER_MAX.to_value(), &At::Root),
            Ok(INTEGER_MAX)
        );
    }
}
