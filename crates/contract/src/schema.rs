//! The closed schema language: what an input or an output may be.
//!
//! It is a small part of JSON Schema (draft 2020-12) with the same meaning,
//! closed so that a reviewer can see everything that a schema allows: closed
//! objects, finite arrays, strings bounded in code points or listed, 64-bit
//! integers with bounds, boolean, null, and literal `const`. There is no
//! reference, combinator, pattern, float, default or annotation, and an unknown
//! keyword is refused by name when the schema is loaded, never skipped (ADR-020,
//! cases B01 to B05).
//!
//! This module must never coerce: `true` is not 1, `1.0` is not an integer, no
//! number goes through a double.

mod compare;
mod describe;
mod load;
mod validate;

pub use compare::SchemaChange;
pub use validate::{Rule, VIOLATIONS_MAX, Violation, Violations};

use std::collections::{BTreeMap, BTreeSet};

use crate::digest::Sha256Digest;
use crate::json::{self, Value};

/// Largest schema, as canonical JSON (ADR-020), in bytes.
pub const SCHEMA_BYTES_MAX: usize = 8 * 1024;

/// Deepest schema, with the root at depth 0 (ADR-020). The values inside a
/// `const` count like schemas.
pub const SCHEMA_DEPTH_MAX: usize = 8;

/// Most schemas within a schema, itself and the values inside a `const`
/// included (ADR-020).
pub const SCHEMA_NODES_MAX: usize = 128;

/// Most fields of an object, and most strings of an enum (ADR-020).
pub const SCHEMA_FIELDS_MAX: usize = 32;

/// A loaded schema: within all limits and with no keyword unread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    root: Node,
    canonical: Vec<u8>,
}

impl Schema {
    /// The schema as canonical JSON.
    pub fn canonical(&self) -> &[u8] {
        &self.canonical
    }

    /// The digest of the canonical JSON.
    pub fn digest(&self) -> Sha256Digest {
        Sha256Digest::of(&self.canonical)
    }

    /// What the schema allows, as its root node.
    pub fn root(&self) -> &Node {
        &self.root
    }
}

/// The digest that [`Schema::digest`] gives for this document, whether it is a
/// valid schema or not.
pub fn digest_of(document: &Value) -> Sha256Digest {
    Sha256Digest::of(&json::write_compact(document))
}

/// One schema within a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// `{"type": "object", "properties": …, "required": …,
    /// "additionalProperties": false}`
    Object {
        /// The fields that may be there.
        properties: BTreeMap<String, Node>,
        /// The fields that must be there.
        required: BTreeSet<String>,
    },
    /// `{"type": "array", "items": …, "minItems": …, "maxItems": …}`
    Array {
        /// What each item must be.
        items: Box<Node>,
        /// Fewest items.
        items_min: u64,
        /// Most items.
        items_max: u64,
    },
    /// `{"type": "string", "minLength": …, "maxLength": …}`
    String {
        /// Fewest code points.
        length_min: u64,
        /// Most code points.
        length_max: u64,
    },
    /// `{"type": "string", "enum": […]}`
    Enum(BTreeSet<String>),
    /// `{"type": "integer", "minimum": …, "maximum": …}`
    Integer {
        /// The least one.
        minimum: i64,
        /// The greatest one.
        maximum: i64,
    },
    /// `{"type": "boolean"}`
    Boolean,
    /// `{"type": "null"}`
    Null,
    /// `{"const": …}`: this value and no other, compared exactly.
    Const(Value),
}
