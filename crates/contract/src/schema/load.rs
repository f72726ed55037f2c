//! Loading a schema: every keyword is read or refused, every limit held.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Node, SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX, SCHEMA_FIELDS_MAX, SCHEMA_NODES_MAX, Schema,
};
use crate::closed::{shown, wrong_type};
use crate::json::{self, Object, Value};
use crate::limits::{JSON_NODES_MAX, OUTPUT_BYTES_MAX};
use crate::pointer::Pointer;
use crate::problem::{ProblemCode, Problems};
use crate::suggest;
use crate::visible;

impl Schema {
    /// Loads a schema from its document. All problems are given at once, each
    /// with a pointer into the document.
    pub fn load(document: &Value) -> Result<Self, Problems> {
        let mut loader = Loader {
            problems: Problems::none(),
            nodes: 0,
        };
        let canonical = json::write_compact(document);
        if canonical.len() > SCHEMA_BYTES_MAX {
            let what = format!("the schema has {} bytes as canonical JSON", canonical.len());
            loader.limit(
                &Pointer::root(),
                what,
                format!("use at most {SCHEMA_BYTES_MAX}"),
            );
        }
        let root = loader.node(document, &Pointer::root(), 0);
        if loader.nodes > SCHEMA_NODES_MAX {
            let what = format!("the schema has {} nodes", loader.nodes);
            loader.limit(
                &Pointer::root(),
                what,
                format!("use at most {SCHEMA_NODES_MAX}"),
            );
        }
        match root {
            Some(root) if loader.problems.is_empty() => Ok(Self { root, canonical }),
            _ => Err(loader.problems),
        }
    }
}

struct Loader {
    problems: Problems,
    nodes: usize,
}

impl Loader {
    /// One node; `None` when there was a problem with it. Problems of siblings
    /// are still looked for.
    fn node(&mut self, document: &Value, place: &Pointer, depth: usize) -> Option<Node> {
        self.nodes += 1;
        if depth > SCHEMA_DEPTH_MAX {
            let what = format!("the schema is nested deeper than {SCHEMA_DEPTH_MAX} levels");
            self.limit(place, what, "make it flatter");
            return None;
        }
        let Value::Object(keywords) = document else {
            wrong_type(
                &mut self.problems,
                place,
                "a schema, which is an object",
                document,
            );
            return None;
        };
        if let Some(literal) = keywords.get("const") {
            self.only(keywords, place, "a const", &["const"]);
            self.literal(literal, &place.member("const"), depth);
            return Some(Node::Const(literal.clone()));
        }
        match keywords.get("type") {
            Some(Value::String(name)) => self.typed(name, keywords, place, depth),
            Some(other) => {
                let remedy = "one type name as a string; a choice of types does not exist here";
                wrong_type(&mut self.problems, &place.member("type"), remedy, other);
                None
            }
            None => {
                self.only(keywords, place, "a schema", &["type", "const"]);
                let what = "the schema has neither \"type\" nor \"const\"";
                self.problems.at(
                    ProblemCode::MissingField,
                    place,
                    what,
                    format!("add one; {TYPES}"),
                );
                None
            }
        }
    }

    fn typed(
        &mut self,
        name: &str,
        keywords: &Object,
        place: &Pointer,
        depth: usize,
    ) -> Option<Node> {
        match name {
            "object" => self.object(keywords, place, depth),
            "array" => self.array(keywords, place, depth),
            "string" if keywords.contains_key("enum") => self.string_enum(keywords, place),
            "string" => {
                self.only(
                    keywords,
                    place,
                    "a string",
                    &["type", "minLength", "maxLength"],
                );
                let most = OUTPUT_BYTES_MAX as u64;
                let (length_min, length_max) =
                    self.bounds(keywords, place, ["minLength", "maxLength"], most)?;
                Some(Node::String {
                    length_min,
                    length_max,
                })
            }
            "integer" => {
                self.only(
                    keywords,
                    place,
                    "an integer",
                    &["type", "minimum", "maximum"],
                );
                let minimum = self.bound(keywords, place, "minimum");
                let maximum = self.bound(keywords, place, "maximum");
                let (minimum, maximum) = (minimum?, maximum?);
                self.ordered(place, ["minimum", "maximum"], minimum <= maximum)?;
                Some(Node::Integer { minimum, maximum })
            }
            "boolean" => {
                self.only(keywords, place, "a boolean", &["type"]);
                Some(Node::Boolean)
            }
            "null" => {
                self.only(keywords, place, "a null", &["type"]);
                Some(Node::Null)
            }
            _ => {
                self.unknown_type(name, place);
                None
            }
        }
    }

    fn unknown_type(&mut self, name: &str, place: &Pointer) {
        let (what, remedy) = match name {
            "number" => (
                "floats do not exist in the closed language".to_owned(),
                "use \"integer\" with a smaller unit, for example cents".to_owned(),
            ),
            _ => (
                format!("there is no type \"{}\"", visible::escape_cut(name, 40)),
                TYPES.to_owned(),
            ),
        };
        self.problems.at(
            ProblemCode::SchemaKeyword,
            &place.member("type"),
            what,
            remedy,
        );
    }

    fn object(&mut self, keywords: &Object, place: &Pointer, depth: usize) -> Option<Node> {
        const KNOWN: &[&str] = &["type", "properties", "required", "additionalProperties"];
        self.only(keywords, place, "an object", KNOWN);
        if keywords.get("additionalProperties") != Some(&Value::Bool(false)) {
            let what = "an object without \"additionalProperties\": false is not closed";
            self.problems.at(
                ProblemCode::MissingField,
                place,
                what,
                "add \"additionalProperties\": false",
            );
        }
        let here = place.member("properties");
        let fields = match keywords.get("properties") {
            Some(Value::Object(fields)) => fields,
            Some(other) => {
                wrong_type(&mut self.problems, &here, "an object of schemas", other);
                return None;
            }
            None => {
                let what = "an object schema must list its fields";
                self.problems
                    .at(ProblemCode::MissingField, place, what, "add \"properties\"");
                return None;
            }
        };
        if fields.len() > SCHEMA_FIELDS_MAX {
            let what = format!("the object has {} fields", fields.len());
            self.limit(&here, what, format!("use at most {SCHEMA_FIELDS_MAX}"));
        }
        let properties: BTreeMap<String, Node> = fields
            .iter()
            .filter_map(|(key, schema)| {
                Some((
                    key.clone(),
                    self.node(schema, &here.member(key), depth + 1)?,
                ))
            })
            .collect();
        let required = self.required(keywords, fields, place)?;
        // Whatever is missing here left its problem behind.
        Some(Node::Object {
            properties,
            required,
        })
    }

    fn required(
        &mut self,
        keywords: &Object,
        fields: &Object,
        place: &Pointer,
    ) -> Option<BTreeSet<String>> {
        let Some(value) = keywords.get("required") else {
            return Some(BTreeSet::new());
        };
        let here = place.member("required");
        let names = self.strings(value, &here)?;
        for name in names.iter().filter(|name| !fields.contains_key(*name)) {
            let what = format!(
                "\"{}\" is required but is no field",
                visible::escape_cut(name, 40)
            );
            self.problems.at(
                ProblemCode::OutOfBounds,
                &here,
                what,
                "add it to \"properties\"",
            );
        }
        Some(names)
    }

    fn array(&mut self, keywords: &Object, place: &Pointer, depth: usize) -> Option<Node> {
        self.only(
            keywords,
            place,
            "an array",
            &["type", "items", "minItems", "maxItems"],
        );
        let items = match keywords.get("items") {
            Some(schema) => self.node(schema, &place.member("items"), depth + 1),
            None => {
                let what = "an array schema must say what its items are";
                self.problems
                    .at(ProblemCode::MissingField, place, what, "add \"items\"");
                None
            }
        };
        let most = JSON_NODES_MAX as u64;
        let bounds = self.bounds(keywords, place, ["minItems", "maxItems"], most);
        let (items_min, items_max) = bounds?;
        Some(Node::Array {
            items: Box::new(items?),
            items_min,
            items_max,
        })
    }

    fn string_enum(&mut self, keywords: &Object, place: &Pointer) -> Option<Node> {
        self.only(keywords, place, "a string with an enum", &["type", "enum"]);
        let here = place.member("enum");
        let value = keywords.get("enum")?;
        let listed = self.strings(value, &here)?;
        if let Value::Array(items) = value
            && (items.is_empty() || items.len() > SCHEMA_FIELDS_MAX)
        {
            let what = format!("the enum has {} strings", items.len());
            self.limit(&here, what, format!("use 1 to {SCHEMA_FIELDS_MAX}"));
        }
        Some(Node::Enum(listed))
    }

    /// An array of different strings.
    fn strings(&mut self, value: &Value, place: &Pointer) -> Option<BTreeSet<String>> {
        let Value::Array(items) = value else {
            wrong_type(&mut self.problems, place, "an array of strings", value);
            return None;
        };
        let mut names = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            match item {
                Value::String(text) if names.insert(text.clone()) => {}
                Value::String(text) => {
                    let what = format!("\"{}\" is listed twice", visible::escape_cut(text, 40));
                    self.problems.at(
                        ProblemCode::Duplicate,
                        &place.item(index),
                        what,
                        "list it once",
                    );
                }
                other => wrong_type(&mut self.problems, &place.item(index), "a string", other),
            }
        }
        Some(names)
    }

    /// An optional lower and a mandatory upper bound on a count.
    fn bounds(
        &mut self,
        keywords: &Object,
        place: &Pointer,
        [low, high]: [&str; 2],
        most: u64,
    ) -> Option<(u64, u64)> {
        let least = if keywords.contains_key(low) {
            self.count(keywords, place, low, most)
        } else {
            Some(0)
        };
        let greatest = self.count(keywords, place, high, most);
        let (least, greatest) = (least?, greatest?);
        self.ordered(place, [low, high], least <= greatest)?;
        Some((least, greatest))
    }

    fn count(&mut self, keywords: &Object, place: &Pointer, name: &str, most: u64) -> Option<u64> {
        let value = self.bound(keywords, place, name)?;
        let count = u64::try_from(value).ok().filter(|count| *count <= most);
        if count.is_none() {
            let what = format!("{value} is out of bounds");
            self.limit(&place.member(name), what, format!("use 0 to {most}"));
        }
        count
    }

    /// A bound, which must be there and be a 64-bit integer.
    fn bound(&mut self, keywords: &Object, place: &Pointer, name: &str) -> Option<i64> {
        let Some(value) = keywords.get(name) else {
            let what = format!("\"{name}\" is missing; everything is finite here");
            self.problems.at(
                ProblemCode::MissingField,
                place,
                what,
                format!("add \"{name}\""),
            );
            return None;
        };
        let bound = match value {
            Value::Integer(integer) => integer.to_i64(),
            _ => None,
        };
        if bound.is_none() {
            wrong_type(
                &mut self.problems,
                &place.member(name),
                "a 64-bit integer, without a fraction or an exponent",
                value,
            );
        }
        bound
    }

    fn ordered(&mut self, place: &Pointer, [low, high]: [&str; 2], is_ordered: bool) -> Option<()> {
        if !is_ordered {
            let what = format!("\"{low}\" is greater than \"{high}\", so nothing would be valid");
            self.limit(place, what, "exchange them");
        }
        is_ordered.then_some(())
    }

    /// Checks what a `const` holds: no floats, and within depth and nodes.
    fn literal(&mut self, literal: &Value, place: &Pointer, depth: usize) {
        let mut waiting = vec![(literal, place.clone(), depth)];
        while let Some((value, place, depth)) = waiting.pop() {
            if depth > SCHEMA_DEPTH_MAX {
                let what = format!("the literal is nested deeper than {SCHEMA_DEPTH_MAX} levels");
                self.limit(&place, what, "make it flatter");
                continue;
            }
            let before = waiting.len();
            match value {
                Value::Float(_) => {
                    let what = format!("{} in a const; floats do not exist here", shown(value));
                    self.problems.at(
                        ProblemCode::SchemaKeyword,
                        &place,
                        what,
                        "use an integer or a string",
                    );
                }
                Value::Array(items) => waiting.extend(
                    items
                        .iter()
                        .enumerate()
                        .map(|(at, item)| (item, place.item(at), depth + 1)),
                ),
                Value::Object(members) => waiting.extend(
                    members
                        .iter()
                        .map(|(key, member)| (member, place.member(key), depth + 1)),
                ),
                _ => {}
            }
            self.nodes += waiting.len() - before;
        }
    }

    /// Refuses every keyword that is not in `known`, by name and with a reason.
    fn only(&mut self, keywords: &Object, place: &Pointer, of: &str, known: &[&str]) {
        for keyword in keywords
            .keys()
            .filter(|keyword| !known.contains(&keyword.as_str()))
        {
            let shown = visible::escape_cut(keyword, 60);
            let (what, remedy) = match reason_against(keyword) {
                Some((reason, remedy)) => (format!("\"{shown}\": {reason}"), remedy.to_owned()),
                None if KEYWORDS.contains(&keyword.as_str()) => (
                    format!("\"{shown}\" does not belong to {of}"),
                    format!("remove it; here are {}", known.join(", ")),
                ),
                None => (
                    format!("there is no keyword \"{shown}\""),
                    suggest::nearest(keyword, KEYWORDS).map_or_else(
                        || format!("remove it; here are {}", known.join(", ")),
                        |meant| format!("did you mean \"{meant}\"?"),
                    ),
                ),
            };
            self.problems.at(
                ProblemCode::SchemaKeyword,
                &place.member(keyword),
                what,
                remedy,
            );
        }
    }

    fn limit(&mut self, place: &Pointer, what: impl Into<String>, remedy: impl Into<String>) {
        self.problems
            .at(ProblemCode::SchemaLimit, place, what, remedy);
    }
}

const TYPES: &str = "the types are object, array, string, integer, boolean and null";

/// Every keyword that the language has.
const KEYWORDS: &[&str] = &[
    "type",
    "const",
    "enum",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
];

/// Why a keyword of JSON Schema is not in the language, and what to do instead.
fn reason_against(keyword: &str) -> Option<(&'static str, &'static str)> {
    Some(match keyword {
        "$ref" | "$defs" | "definitions" | "$id" | "id" | "$anchor" | "$dynamicRef"
        | "$dynamicAnchor" | "$recursiveRef" | "$recursiveAnchor" => (
            "references do not exist here, so that a schema shows all that it allows",
            "write the schema out where it is used",
        ),
        "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "dependentSchemas"
        | "dependencies" => (
            "combinators do not exist here",
            "describe one shape; a field that tells kinds apart can be an enum",
        ),
        "pattern" | "patternProperties" | "propertyNames" => (
            "patterns do not exist here",
            "bound the length or list the values in an enum, and let the adapter check the rest",
        ),
        "format" | "contentEncoding" | "contentMediaType" | "contentSchema" => (
            "formats do not exist here: validators disagree about them",
            "use a string with \"maxLength\" and let the adapter check it",
        ),
        "default" => (
            "defaults do not exist here",
            "let the adapter fill in what is absent",
        ),
        "multipleOf" | "exclusiveMinimum" | "exclusiveMaximum" => (
            "only inclusive bounds exist here",
            "use \"minimum\" and \"maximum\"",
        ),
        "title" | "description" | "examples" | "$comment" | "$schema" | "$vocabulary"
        | "readOnly" | "writeOnly" | "deprecated" => (
            "annotations do not exist here",
            "put text for people into the README",
        ),
        "uniqueItems"
        | "contains"
        | "minContains"
        | "maxContains"
        | "prefixItems"
        | "additionalItems"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "minProperties"
        | "maxProperties"
        | "dependentRequired" => (
            "this keyword is not in the closed language",
            "let the adapter check it",
        ),
        _ => return None,
    })
}
