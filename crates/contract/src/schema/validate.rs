//! Validating a value: all violations, each with its place, what was wanted
//! and what was found.

use std::fmt;

use super::{Node, Schema};
use crate::closed::shown;
use crate::json::Value;
use crate::pointer::Pointer;
use crate::visible;

/// The most violations that are kept.
pub const VIOLATIONS_MAX: usize = 64;

/// The rule that a value breaks. The names are JSON Schema's keywords.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// Another type.
    Type,
    /// Not the literal.
    Const,
    /// None of the listed strings.
    Enum,
    /// A field that must be there is not.
    Required,
    /// A field that the schema does not have.
    AdditionalProperties,
    /// Too few items.
    MinItems,
    /// Too many items.
    MaxItems,
    /// Too few code points.
    MinLength,
    /// Too many code points.
    MaxLength,
    /// Too small an integer.
    Minimum,
    /// Too great an integer.
    Maximum,
}

impl Rule {
    /// JSON Schema's keyword for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::Const => "const",
            Self::Enum => "enum",
            Self::Required => "required",
            Self::AdditionalProperties => "additionalProperties",
            Self::MinItems => "minItems",
            Self::MaxItems => "maxItems",
            Self::MinLength => "minLength",
            Self::MaxLength => "maxLength",
            Self::Minimum => "minimum",
            Self::Maximum => "maximum",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One way in which a value breaks its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Where in the value.
    pub pointer: Pointer,
    /// The rule.
    pub rule: Rule,
    /// What was wanted there, safe to print.
    pub expected: String,
    /// What is there, safe to print.
    pub found: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pointer,
            rule,
            expected,
            found,
        } = self;
        write!(f, "{pointer}: expected {expected}, found {found} ({rule})")
    }
}

/// All violations of a value, at most [`VIOLATIONS_MAX`] of them kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Violations {
    kept: Vec<Violation>,
    omitted: usize,
}

impl Violations {
    /// The violations, in document order with sorted keys.
    pub fn list(&self) -> &[Violation] {
        &self.kept
    }

    /// How many more there were than are kept.
    pub const fn omitted(&self) -> usize {
        self.omitted
    }

    fn push(&mut self, violation: impl FnOnce() -> Violation) {
        if self.kept.len() < VIOLATIONS_MAX {
            self.kept.push(violation());
        } else {
            self.omitted += 1;
        }
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, violation) in self.kept.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{violation}")?;
        }
        if self.omitted > 0 {
            write!(f, "\nand {} more", self.omitted)?;
        }
        Ok(())
    }
}

impl std::error::Error for Violations {}

impl Schema {
    /// Checks that `value` is what the schema allows.
    pub fn validate(&self, value: &Value) -> Result<(), Violations> {
        let mut violations = Violations::default();
        check(self.root(), value, &Pointer::root(), &mut violations);
        if violations.kept.is_empty() {
            Ok(())
        } else {
            Err(violations)
        }
    }
}

/// Recursion follows the schema, whose depth is limited.
fn check(node: &Node, value: &Value, place: &Pointer, violations: &mut Violations) {
    let mut refuse = |rule, expected: String| {
        violations.push(|| Violation {
            pointer: place.clone(),
            rule,
            expected,
            found: shown(value),
        });
    };
    match (node, value) {
        (
            Node::Object {
                properties,
                required,
            },
            Value::Object(members),
        ) => {
            for name in required.iter().filter(|name| !members.contains_key(*name)) {
                let expected = format!("a field \"{}\"", visible::escape_cut(name, 60));
                refuse(Rule::Required, expected);
            }
            for (key, member) in members {
                let place = place.member(key);
                match properties.get(key) {
                    Some(node) => check(node, member, &place, violations),
                    None => violations.push(|| Violation {
                        pointer: place,
                        rule: Rule::AdditionalProperties,
                        expected: "no such field".to_owned(),
                        found: shown(member),
                    }),
                }
            }
        }
        (
            Node::Array {
                items,
                items_min,
                items_max,
            },
            Value::Array(found),
        ) => {
            let count = found.len() as u64;
            if count < *items_min {
                refuse(Rule::MinItems, node.wanted());
            }
            if count > *items_max {
                refuse(Rule::MaxItems, node.wanted());
            }
            for (index, item) in found.iter().enumerate() {
                check(items, item, &place.item(index), violations);
            }
        }
        (
            Node::String {
                length_min,
                length_max,
            },
            Value::String(text),
        ) => {
            // JSON Schema counts code points, not bytes, units or graphemes.
            let length = text.chars().count() as u64;
            if length < *length_min {
                refuse(Rule::MinLength, node.wanted());
            }
            if length > *length_max {
                refuse(Rule::MaxLength, node.wanted());
            }
        }
        (Node::Enum(listed), Value::String(text)) => {
            if !listed.contains(text) {
                refuse(Rule::Enum, node.wanted());
            }
        }
        (Node::Integer { minimum, maximum }, Value::Integer(integer)) => {
            // What does not fit 64 bits is beyond the bound that its sign says.
            match integer.to_i64() {
                Some(integer) if integer < *minimum => refuse(Rule::Minimum, node.wanted()),
                Some(integer) if integer > *maximum => refuse(Rule::Maximum, node.wanted()),
                Some(_) => {}
                None if integer.as_str().starts_with('-') => refuse(Rule::Minimum, node.wanted()),
                None => refuse(Rule::Maximum, node.wanted()),
            }
        }
        (Node::Boolean, Value::Bool(_)) | (Node::Null, Value::Null) => {}
        (Node::Const(literal), _) => {
            // Exact: types, every digit, the sign of nothing (case B01).
            if literal != value {
                refuse(Rule::Const, node.wanted());
            }
        }
        _ => refuse(Rule::Type, node.wanted()),
    }
}
