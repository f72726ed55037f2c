//! What the fuzz targets check, as functions.
//!
//! `fuzz/` calls them with random bytes; a normal test calls them with the
//! corpus in the tree, on the stable compiler. Each asserts properties and
//! returns; none may ever panic otherwise.

use crate::formatter;
use crate::json::{self, Bounds};
use crate::limits::{JSON_DEPTH_MAX, JSON_NODES_MAX, OUTPUT_BYTES_MAX};

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

/// A fuzz body: it returns, or an assertion fails.
pub type Body = fn(&[u8]);

/// Every body with the name of its target and of its corpus folder.
pub const BODIES: &[(&str, Body)] = &[
    ("json_parse", json_parse),
    ("formatter_stable", formatter_stable),
    ("verifier_sees_changes", verifier_sees_changes),
];
