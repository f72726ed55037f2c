//! Reading closed documents: every field is known, has its type and its
//! bounds, or is a problem with its place.
//!
//! Manifest, descriptor, vectors and schemas are all read through this, so
//! that none of them can have a field that nobody looks at (case B02).

use crate::digest::Sha256Digest;
use crate::json::{Object, Value};
use crate::pointer::Pointer;
use crate::problem::{ProblemCode, Problems};
use crate::suggest;
use crate::text_rules;
use crate::visible;

/// An object that is being read.
pub(crate) struct Fields<'a, 'p> {
    members: &'a Object,
    pub pointer: Pointer,
    pub problems: &'p mut Problems,
}

impl<'a, 'p> Fields<'a, 'p> {
    /// Begins to read `value`, which must be an object whose fields are all in
    /// `known`.
    pub fn open(
        value: &'a Value,
        pointer: Pointer,
        known: &[&str],
        problems: &'p mut Problems,
    ) -> Option<Self> {
        let Value::Object(members) = value else {
            wrong_type(problems, &pointer, "an object", value);
            return None;
        };
        for key in members.keys().filter(|key| !known.contains(&key.as_str())) {
            unknown_field(problems, &pointer, key, known);
        }
        Some(Self {
            members,
            pointer,
            problems,
        })
    }

    /// The field `name` and its place; a problem when it is not there.
    pub fn required(&mut self, name: &str) -> Option<(&'a Value, Pointer)> {
        let place = self.pointer.member(name);
        let Some(value) = self.members.get(name) else {
            let what = format!("the field \"{name}\" is missing");
            self.problems
                .at(ProblemCode::MissingField, &self.pointer, what, "add it");
            return None;
        };
        Some((value, place))
    }

    /// A string.
    pub fn string(&mut self, name: &str) -> Option<&'a str> {
        let (value, place) = self.required(name)?;
        match value {
            Value::String(text) => Some(text),
            _ => {
                wrong_type(self.problems, &place, "a string", value);
                None
            }
        }
    }

    /// A line of text for people: no control, format or separator characters
    /// but the space, and 1 to `chars_max` code points.
    pub fn line(&mut self, name: &str, chars_max: usize) -> Option<String> {
        let text = self.string(name)?;
        let place = self.pointer.member(name);
        let chars = text.chars().count();
        if chars == 0 || chars > chars_max {
            let what = format!("the text has {chars} code points");
            let remedy = format!("use 1 to {chars_max}");
            self.problems
                .at(ProblemCode::OutOfBounds, &place, what, remedy);
            return None;
        }
        if let Some(c) = text
            .chars()
            .find(|&c| c == '\t' || text_rules::is_hidden(c))
        {
            let what = format!(
                "the text holds U+{:04X}, which does not show as itself",
                u32::from(c)
            );
            self.problems
                .at(ProblemCode::NotAllowed, &place, what, "remove it");
            return None;
        }
        Some(text.to_owned())
    }

    /// An integer within bounds.
    pub fn integer(&mut self, name: &str, minimum: i64, maximum: i64) -> Option<i64> {
        let (value, place) = self.required(name)?;
        let Value::Integer(integer) = value else {
            wrong_type(self.problems, &place, "an integer", value);
            return None;
        };
        let found = integer
            .to_i64()
            .filter(|found| (minimum..=maximum).contains(found));
        if found.is_none() {
            let what = format!("{} is out of bounds", shown(value));
            let remedy = format!("use {minimum} to {maximum}");
            self.problems
                .at(ProblemCode::OutOfBounds, &place, what, remedy);
        }
        found
    }

    /// A digest.
    pub fn digest(&mut self, name: &str) -> Option<Sha256Digest> {
        let text = self.string(name)?;
        let digest = text.parse().ok();
        if digest.is_none() {
            let what = format!("\"{}\" is not a digest", visible::escape_cut(text, 70));
            let remedy = "write 64 lower-case hexadecimal digits, as sha256sum prints them";
            self.problems.at(
                ProblemCode::BadName,
                &self.pointer.member(name),
                what,
                remedy,
            );
        }
        digest
    }

    /// A field that has exactly one allowed value.
    pub fn fixed(&mut self, name: &str, only: &Value, because: &str) {
        let Some((value, place)) = self.required(name) else {
            return;
        };
        if value != only {
            let what = format!("found {}; {because}", shown(value));
            let remedy = format!("write {}", shown(only));
            self.problems
                .at(ProblemCode::NotAllowed, &place, what, remedy);
        }
    }

    /// An array.
    pub fn array(&mut self, name: &str) -> Option<(&'a [Value], Pointer)> {
        let (value, place) = self.required(name)?;
        match value {
            Value::Array(items) => Some((items, place)),
            _ => {
                wrong_type(self.problems, &place, "an array", value);
                None
            }
        }
    }
}

pub(crate) fn wrong_type(problems: &mut Problems, place: &Pointer, wanted: &str, found: &Value) {
    let what = format!("found {}", shown(found));
    problems.at(
        ProblemCode::WrongType,
        place,
        what,
        format!("write {wanted}"),
    );
}

fn unknown_field(problems: &mut Problems, pointer: &Pointer, key: &str, known: &[&str]) {
    let what = format!(
        "there is no field \"{}\" here",
        visible::escape_cut(key, 60)
    );
    let remedy = match suggest::nearest(key, known) {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None => format!("remove it; the fields are {}", known.join(", ")),
    };
    problems.at(
        ProblemCode::UnknownField,
        &pointer.member(key),
        what,
        remedy,
    );
}

/// A value as a message shows it: short, escaped, with its type.
pub(crate) fn shown(value: &Value) -> String {
    const SHOWN_CHARS_MAX: usize = 40;
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Integer(integer) => {
            format!(
                "the integer {}",
                visible::escape_cut(integer.as_str(), SHOWN_CHARS_MAX)
            )
        }
        Value::Float(float) => format!("the float {float}"),
        Value::String(text) => {
            format!(
                "the string \"{}\"",
                visible::escape_cut(text, SHOWN_CHARS_MAX)
            )
        }
        Value::Array(items) => format!("an array of {} items", items.len()),
        Value::Object(members) => format!("an object of {} fields", members.len()),
    }
}
