//! Properties of the strict parser and the writers over generated documents.

use lazaret_contract::json::{self, Bounds, Float, Value};
use lazaret_contract::{formatter, fuzz_bodies};
use proptest::prelude::*;

fn scalars() -> impl Strategy<Value = Value> {
    let integers = prop_oneof![
        "-?[1-9][0-9]{0,60}".prop_filter_map("not an integer", |digits| {
            json::parse(digits.as_bytes()).ok()
        }),
        any::<i64>().prop_map(Value::from),
    ];
    let floats = any::<u64>().prop_filter_map("not finite", |bits| {
        Float::new(f64::from_bits(bits)).map(Value::Float)
    });
    let decimals =
        any::<f64>().prop_filter_map("not finite", |value| Float::new(value).map(Value::Float));
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        integers,
        floats,
        decimals,
        any::<String>().prop_map(Value::String),
        "[\\x00-\\x1f\"\\\\/\\x7f]{0,8}".prop_map(Value::String),
    ]
}

fn documents() -> impl Strategy<Value = Value> {
    scalars().prop_recursive(8, 128, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::Array),
            prop::collection::btree_map(any::<String>(), inner, 0..8).prop_map(Value::Object),
        ]
    })
}

/// Bytes that are nearly JSON: the alphabet of the grammar and some strangers.
fn nearly_json() -> impl Strategy<Value = Vec<u8>> {
    const PIECES: &[&[u8]] = &[
        b"[",
        b"]",
        b"{",
        b"}",
        b",",
        b":",
        b"\"",
        b"\"a\"",
        b"\"a\":",
        b"\\u",
        b"\\ud83d",
        b"\\ude00",
        b"-",
        b"0",
        b"12",
        b".",
        b"e",
        b"E+9",
        b"1e999",
        b"true",
        b"null",
        b"NaN",
        b"-Infinity",
        b" ",
        b"\n",
        b"\\",
        b"\xff",
        b"\xc3\xa9",
        b"\xef\xbb\xbf",
        b"\x00",
    ];
    prop::collection::vec(prop::sample::select(PIECES), 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn a_document_survives_both_writers(value in documents()) {
        for written in [json::write_compact(&value), json::write_pretty(&value)] {
            prop_assert_eq!(json::parse_bounded(&written, Bounds::OUTPUT), Ok(value.clone()));
        }
    }

    #[test]
    fn an_independent_writer_gives_the_same_strings(text in any::<String>()) {
        let ours = json::write_compact(&Value::String(text.clone()));
        // serde_json writes U+007F and everything beyond ASCII raw as well.
        prop_assert_eq!(ours, serde_json::to_vec(&text).unwrap());
    }

    #[test]
    fn a_float_reads_back_to_the_bit(bits in any::<u64>()) {
        if let Some(float) = Float::new(f64::from_bits(bits)) {
            let read = json::parse(float.to_string().as_bytes()).unwrap();
            prop_assert_eq!(read, Value::Float(float));
        }
    }

    #[test]
    fn formatting_a_generated_document_is_verified_and_stable(value in documents()) {
        let input = json::write_compact(&value);
        fuzz_bodies::formatter_stable(&input);
        if let Ok(output) = formatter::format(&input) {
            prop_assert_eq!(formatter::verify(&input, &output), Ok(()));
        }
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for (_, body) in fuzz_bodies::BODIES {
            body(&bytes);
        }
    }

    #[test]
    fn bytes_that_are_nearly_json_never_panic(bytes in nearly_json()) {
        for (_, body) in fuzz_bodies::BODIES {
            body(&bytes);
        }
    }

    #[test]
    fn a_cut_document_is_refused_or_means_something_else(value in documents(), place in any::<prop::sample::Index>()) {
        let written = json::write_compact(&value);
        let cut = &written[..place.index(written.len())];
        // A cut number may be a number; anything else is an error.
        if let Ok(other) = json::parse_bounded(cut, Bounds::OUTPUT) {
            prop_assert_ne!(other, value);
        }
    }
}
