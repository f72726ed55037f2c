//! The page for authors says what the code does.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of a test fail by panicking"
)]

use std::collections::BTreeSet;
use std::path::Path;

use lazaret_contract::bundled::BUNDLED;
use lazaret_contract::identity::RESERVED_LABELS;
use lazaret_contract::json::{self, Bounds, Value};
use lazaret_contract::package::resources;
use lazaret_contract::problem::ProblemCode;
use lazaret_contract::{limits, schema};

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/package-reference.md");
    std::fs::read_to_string(path).unwrap()
}

/// All keys of all objects in a document, schemas and free values left out.
fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                found.insert(key.clone());
                if !["input_schema", "output_schema", "input", "output"].contains(&key.as_str()) {
                    keys(member, found);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, found)),
        _ => {}
    }
}

#[test]
fn every_field_of_every_document_is_on_the_page() {
    let page = page();
    let mut found = BTreeSet::new();
    // Every field must be there, so a sound package has them all.
    for (path, bytes) in BUNDLED.iter().flat_map(|bundled| bundled.files) {
        if path.ends_with(".json") {
            keys(
                &json::parse_bounded(bytes, Bounds::document(1 << 20)).unwrap(),
                &mut found,
            );
        }
    }
    assert!(found.len() > 35);
    for key in found {
        let is_there = page.contains(&format!("`{key}`")) || page.contains(&format!("\"{key}\":"));
        assert!(is_there, "{key} is not on the page");
    }
}

#[test]
fn every_resource_stands_there_with_its_limit() {
    let Value::Object(resources) = resources() else {
        unreachable!()
    };
    for (name, limit) in resources {
        let Value::Integer(limit) = limit else {
            unreachable!()
        };
        assert!(
            page().contains(&format!("`{name}` {limit}")),
            "{name} {limit}"
        );
    }
}

#[test]
fn every_problem_code_and_reserved_label_stands_there() {
    let page = page();
    for code in ProblemCode::ALL {
        assert!(page.contains(&format!("`{code}`")), "{code}");
    }
    for label in RESERVED_LABELS {
        assert!(page.contains(&format!("`{label}`")), "{label}");
    }
}

#[test]
fn the_limits_on_the_page_are_those_of_the_code() {
    let page = page();
    for (limit, text) in [
        (
            limits::PACKAGE_FILES_MAX,
            "At most 32 regular files".to_owned(),
        ),
        (
            limits::PACKAGE_BYTES_MAX / 1024,
            "and 512 KiB together".to_owned(),
        ),
        (limits::JSON_DEPTH_MAX, "at most 32 levels".to_owned()),
        (limits::JSON_NODES_MAX, "and 4096 values".to_owned()),
        (
            limits::JSON_INTEGER_DIGITS_MAX,
            "at most 4300 digits".to_owned(),
        ),
        (
            limits::PACKAGE_DOCUMENT_BYTES_MAX / 1024,
            "may have 64 KiB each".to_owned(),
        ),
        (
            limits::PACKAGE_CODE_BYTES_MAX / 1024,
            "at most 32 KiB of UTF-8".to_owned(),
        ),
        (
            schema::SCHEMA_BYTES_MAX / 1024,
            "at most 8 KiB as canonical JSON".to_owned(),
        ),
        (
            schema::SCHEMA_DEPTH_MAX,
            "8 levels below its root".to_owned(),
        ),
        (schema::SCHEMA_NODES_MAX, "128 schemas".to_owned()),
        (
            schema::SCHEMA_FIELDS_MAX,
            "32 fields in an object".to_owned(),
        ),
    ] {
        assert!(
            text.contains(&limit.to_string()),
            "{limit} is not in {text:?}"
        );
        assert!(page.contains(&text), "{text:?} is not on the page");
    }
}
