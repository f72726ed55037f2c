//! What the fuzz targets check, as functions.
//!
//! `fuzz/` calls them with random bytes; a normal test calls them with the
//! corpus in the tree, on the stable compiler. Each asserts properties and
//! returns; none may ever panic otherwise.

use crate::bundled::Bundled;
use crate::formatter;
use crate::json::{self, Bounds, Value};
use crate::limits::{JSON_DEPTH_MAX, JSON_NODES_MAX, OUTPUT_BYTES_MAX};
use crate::package::{self, BindingCheck, PackageFiles, UNBOUND};
use crate::profiles::{Binding, PROFILE_V1};
use crate::schema::{self, Schema};
use crate::text_rules;
use crate::visible;

/// Strict JSON: no bytes panic, and what is accepted is within the limits and
/// survives both writers unchanged.
pub fn json_parse(bytes: &[u8]) {
    match json::parse(bytes) {
        Err(error) => {
            assert!(error.offset_bytes <= bytes.len());
            assert!(error.line >= 1 && error.column >= 1);
            assert!(
                error
                    .to_string()
                    .bytes()
                    .all(|b| (b' '..=b'~').contains(&b))
            );
        }
        Ok(value) => {
            assert!(value.depth() <= JSON_DEPTH_MAX && value.nodes() <= JSON_NODES_MAX);
            let unbounded = Bounds::document(usize::MAX);
            for written in [json::write_compact(&value), json::write_pretty(&value)] {
                assert_eq!(
                    json::parse_bounded(&written, unbounded).as_ref(),
                    Ok(&value)
                );
            }
        }
    }
}

/// The writer against a second path: an independent reader of JSON must see
/// the same value in what we wrote, and formatting is stable.
pub fn formatter_stable(bytes: &[u8]) {
    let Ok(formatted) = formatter::format(bytes) else {
        return;
    };
    assert!(formatted.len() <= OUTPUT_BYTES_MAX);
    assert_eq!(formatter::verify(bytes, &formatted), Ok(()));
    if let Ok(again) = formatter::format(&formatted) {
        assert_eq!(again, formatted);
    }
    let value = json::parse(bytes);
    let compact = value.as_ref().map(json::write_compact);
    let squeezed = squeeze(&formatted);
    assert_eq!(compact.as_deref(), Ok(squeezed.as_slice()));
}

/// Takes the white space out of a formatted document without parsing it: the
/// second path to the compact form.
fn squeeze(formatted: &[u8]) -> Vec<u8> {
    let mut squeezed = Vec::new();
    let (mut in_string, mut escaped) = (false, false);
    for &byte in formatted {
        if in_string || !matches!(byte, b' ' | b'\n') {
            squeezed.push(byte);
        }
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ => {}
        }
    }
    squeezed
}

/// Any change of a formatted document is seen by the verifier: the first byte
/// of the fuzz input says where to change, the rest is the document.
pub fn verifier_sees_changes(bytes: &[u8]) {
    let Some((&place, document)) = bytes.split_first() else {
        return;
    };
    let Ok(mut output) = formatter::format(document) else {
        return;
    };
    let at = usize::from(place) % output.len();
    output[at] ^= 1;
    assert!(formatter::verify(document, &output).is_err());
    output[at] ^= 1;
    output.push(b'\n');
    assert!(formatter::verify(document, &output).is_err());
}

/// Schemas: no document panics; what loads is stable, and its outline and
/// problems are safe to print.
pub fn schema_load(bytes: &[u8]) {
    let Ok(document) = json::parse(bytes) else {
        return;
    };
    match Schema::load(&document) {
        Err(problems) => {
            assert!(!problems.is_empty());
            assert_printable(&problems.to_string());
        }
        Ok(schema) => {
            let again = json::parse(schema.canonical())
                .ok()
                .and_then(|again| Schema::load(&again).ok());
            assert_eq!(again.as_ref(), Some(&schema));
            assert_eq!(schema.digest(), schema::digest_of(&document));
            assert_printable(&schema.root().outline().join("\n"));
            assert_eq!(schema.changes_to(&schema), []);
        }
    }
}

/// Validation against a second opinion: the input is `[schema, value]`, or
/// `[schema, value, other schema]` to compare two schemas as well.
pub fn schema_validate(bytes: &[u8]) {
    let Ok(Value::Array(parts)) = json::parse(bytes) else {
        return;
    };
    let [document, value, rest @ ..] = parts.as_slice() else {
        return;
    };
    let Ok(schema) = Schema::load(document) else {
        return;
    };
    let verdict = schema.validate(value);
    assert_eq!(verdict.is_ok(), fits(document, value));
    if let Err(violations) = verdict {
        assert!(!violations.list().is_empty());
        assert_printable(&violations.to_string());
    }
    let Some(other) = rest.first().and_then(|other| Schema::load(other).ok()) else {
        return;
    };
    let changes = schema.changes_to(&other);
    assert!(changes.iter().all(|change| change.widens || change.narrows));
    if !changes.iter().any(|change| change.widens) && other.validate(value).is_ok() {
        assert_eq!(schema.validate(value), Ok(()), "an unmarked change widened");
    }
    if !changes.iter().any(|change| change.narrows) && schema.validate(value).is_ok() {
        assert_eq!(other.validate(value), Ok(()), "an unmarked change narrowed");
    }
}

/// The second opinion: JSON Schema's rules read straight from the document of
/// a schema that is known to load, with no type in common with the product's.
fn fits(schema: &Value, value: &Value) -> bool {
    let Value::Object(keywords) = schema else {
        return false;
    };
    let bound = |name: &str| match keywords.get(name) {
        Some(Value::Integer(bound)) => bound.as_str().parse::<i128>().ok(),
        _ => None,
    };
    let within = |count: usize, low: &str, high: &str| {
        let count = count as i128;
        bound(low).is_none_or(|low| count >= low) && bound(high).is_none_or(|high| count <= high)
    };
    if let Some(literal) = keywords.get("const") {
        return literal == value;
    }
    let Some(Value::String(kind)) = keywords.get("type") else {
        return false;
    };
    match (kind.as_str(), value) {
        ("null", Value::Null) | ("boolean", Value::Bool(_)) => true,
        ("integer", Value::Integer(integer)) => {
            integer.as_str().parse::<i128>().is_ok_and(|integer| {
                bound("minimum").is_some_and(|least| integer >= least)
                    && bound("maximum").is_some_and(|most| integer <= most)
            })
        }
        ("string", Value::String(text)) => match keywords.get("enum") {
            Some(Value::Array(listed)) => listed.contains(value),
            _ => within(text.chars().count(), "minLength", "maxLength"),
        },
        ("array", Value::Array(items)) => {
            within(items.len(), "minItems", "maxItems")
                && keywords
                    .get("items")
                    .is_some_and(|schema| items.iter().all(|item| fits(schema, item)))
        }
        ("object", Value::Object(members)) => {
            let Some(Value::Object(properties)) = keywords.get("properties") else {
                return false;
            };
            let is_present = |name: &Value| match name {
                Value::String(name) => members.contains_key(name),
                _ => false,
            };
            let has_required = match keywords.get("required") {
                Some(Value::Array(names)) => names.iter().all(is_present),
                _ => true,
            };
            has_required
                && members.iter().all(|(key, member)| {
                    properties
                        .get(key)
                        .is_some_and(|schema| fits(schema, member))
                })
        }
        _ => false,
    }
}

/// A manifest: the bytes in the place of a sound package's own.
pub fn manifest(bytes: &[u8]) {
    inspect_with(package::MANIFEST_PATH, bytes);
}

/// A descriptor: the bytes in the place of a sound package's own.
pub fn descriptor(bytes: &[u8]) {
    inspect_with(package::DESCRIPTOR_PATH, bytes);
}

fn inspect_with(path: &str, bytes: &[u8]) {
    let Some(bundled) = Bundled::find("local.time-ledger-summary") else {
        return;
    };
    let files = bundled.files.iter().map(|(each, sound)| {
        let bytes = if *each == path { bytes } else { sound };
        ((*each).to_owned(), bytes.to_vec())
    });
    inspect_all(files.collect());
}

/// A package directory: files are separated by the byte 0x1e, a path and its
/// bytes by 0x1f.
pub fn package_directory(bytes: &[u8]) {
    let files = bytes.split(|&byte| byte == 0x1e).map(|file| {
        let mut parts = file.splitn(2, |&byte| byte == 0x1f);
        let path = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
        (path, parts.next().unwrap_or_default().to_vec())
    });
    inspect_all(files.collect());
}

fn inspect_all(files: Vec<(String, Vec<u8>)>) {
    let binding = Binding {
        profile: PROFILE_V1.to_owned(),
        closure: UNBOUND,
    };
    let files = match PackageFiles::new(files) {
        Ok(files) => files,
        Err(problems) => return assert_printable(&problems.to_string()),
    };
    match package::inspect(&files, BindingCheck::Form) {
        Err(problems) => {
            assert!(!problems.is_empty());
            assert_printable(&problems.to_string());
        }
        Ok(found) => {
            assert_eq!(package::compare(&found, &found), []);
            assert_eq!(
                found.code(),
                files.get(package::CODE_PATH).unwrap_or_default()
            );
        }
    }
    // Sealing never makes a package sound that has other faults than its
    // digests, and doing it twice changes nothing.
    if let Ok(sealed) = package::seal(&files, &binding) {
        assert_eq!(package::seal(&sealed, &binding).as_ref(), Ok(&sealed));
    }
}

/// The text rules: no bytes panic, what passes is free of everything hidden,
/// and the view shows every line.
pub fn adapter_text(bytes: &[u8]) {
    let faults = text_rules::check_adapter(bytes);
    assert!(faults.iter().all(|fault| fault.offset_bytes <= bytes.len()));
    for fault in &faults {
        assert_printable(&fault.to_string());
    }
    if faults.is_empty() {
        let text = String::from_utf8_lossy(bytes);
        assert!(
            text.chars()
                .all(|c| c == '\n' || c == '\t' || !text_rules::is_hidden(c))
        );
    }
    let view = visible::code_view(bytes, 80);
    for line in &view {
        assert_printable(&line.text);
    }
    let line_feeds = bytes.iter().filter(|&&byte| byte == b'\n').count();
    let shown = view.last().map_or(0, |line| line.number);
    assert_eq!(shown, line_feeds + usize::from(!bytes.ends_with(b"\n")));
}

fn assert_printable(text: &str) {
    assert!(
        text.bytes()
            .all(|b| b == b'\n' || (b' '..=b'~').contains(&b)),
        "{text:?}"
    );
}

/// A fuzz body: it returns, or an assertion fails.
pub type Body = fn(&[u8]);

/// Every body with the name of its target and of its corpus folder.
pub const BODIES: &[(&str, Body)] = &[
    ("json_parse", json_parse),
    ("formatter_stable", formatter_stable),
    ("verifier_sees_changes", verifier_sees_changes),
    ("schema_load", schema_load),
    ("schema_validate", schema_validate),
    ("manifest", manifest),
    ("descriptor", descriptor),
    ("package_directory", package_directory),
    ("adapter_text", adapter_text),
];
