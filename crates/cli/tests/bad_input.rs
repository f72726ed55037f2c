//! Inputs that the rules refuse: the reason and the place, before anything is
//! launched or even made.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use support::Place;

/// A document for every reason, with the place that is to be named.
fn cases() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let text = |document: &str| document.as_bytes().to_vec();
    vec![
        ("size_in", vec![b' '; 32 * 1024 + 1], "byte 32768"),
        (
            "invalid_utf8",
            b"[\"\xff\"]".to_vec(),
            "line 1, column 3, byte 2",
        ),
        (
            "bom",
            b"\xef\xbb\xbf{}".to_vec(),
            "line 1, column 1, byte 0",
        ),
        (
            "syntax",
            text("{\n  \"a\": 1,\n}"),
            "line 3, column 1, byte 12",
        ),
        (
            "duplicate_key",
            text("{\"a\":1,\"a\":1}"),
            "line 1, column 8, byte 7",
        ),
        ("nonfinite", text("[1e400]"), "byte 1"),
        ("nonfinite", text("[NaN]"), "byte 1"),
        (
            "int_digits",
            text(&format!("[{}]", "1".repeat(4301))),
            "byte 1",
        ),
        (
            "depth",
            text(&format!("{}{}", "[".repeat(34), "]".repeat(34))),
            "byte 33",
        ),
        (
            "nodes",
            text(&format!("[{}]", vec!["0"; 4096].join(","))),
            "byte",
        ),
        ("lone_surrogate", text(r#"["\ud800"]"#), "byte"),
        (
            "size_out",
            text(&format!("[[[[[[{}]]]]]]", vec!["0"; 4000].join(","))),
            "byte",
        ),
        ("syntax", Vec::new(), "line 1, column 1, byte 0"),
    ]
}

#[test]
fn every_reason_is_named_with_its_place_and_nothing_else_happens() {
    let place = Place::new();
    for (reason, document, offset) in cases() {
        let document = if reason == "size_out" {
            grow(document)
        } else {
            document
        };
        let path = place.file("document.json", &document);
        let from_file = place.call(&["format", path.to_str().unwrap()]);
        let mut from_pipe = place.call_with_input(&["format", "-"], &document);
        if document.is_empty() {
            from_pipe = place.call(&["format", "-"]);
        }
        for said in [from_file, from_pipe] {
            assert_eq!(said.code, Some(1), "{reason}: {said:?}");
            assert_eq!(said.out, "", "{reason}");
            assert!(said.err.contains("refused: "), "{reason}: {}", said.err);
            assert!(
                said.err.contains(&format!(": {reason}: ")),
                "{reason}: {}",
                said.err
            );
            assert!(said.err.contains(offset), "{reason}: {}", said.err);
            assert_eq!(said.err.lines().count(), 1, "{}", said.err);
        }
    }
    assert_eq!(
        place.home_entries(),
        Vec::<String>::new(),
        "something was made"
    );
}

/// Pads a document with a string until its output is over the limit.
fn grow(document: Vec<u8>) -> Vec<u8> {
    let text = String::from_utf8(document).unwrap();
    let (head, tail) = text.split_at(6);
    format!("{head}\"{}\",{tail}", "x".repeat(12_000)).into_bytes()
}

#[test]
fn the_reason_is_there_for_programs_too() {
    let place = Place::new();
    let said = place.call_with_input(&["format", "-", "--json"], b"{\"a\":1,\"a\":2}");
    assert_eq!(said.code, Some(1));
    let answer: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(answer["schema"], "lazaret-format/1");
    assert_eq!(answer["outcome"], "refused");
    assert_eq!(answer["refused"]["reason"], "duplicate_key");
    assert_eq!(answer["refused"]["offset_bytes"], 7);
    assert_eq!(
        (&answer["refused"]["line"], &answer["refused"]["column"]),
        (&1.into(), &8.into())
    );
    assert_eq!(answer.get("record"), None);
}

#[test]
fn what_a_document_holds_is_not_sent_to_the_terminal() {
    let place = Place::new();
    let said = place.call_with_input(
        &["format", "-"],
        b"{\"\\u001b[2J\xe2\x80\xae\":1,\"\\u001b[2J\xe2\x80\xae\":1}",
    );
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("duplicate_key"), "{}", said.err);
    assert!(
        said.err
            .chars()
            .all(|c| c == '\n' || (' '..='~').contains(&c)),
        "{:?}",
        said.err
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let place = Place::new();
    for (path, word) in [("missing.json", "opening missing.json"), (".", "reading .")] {
        let said = place.call(&["format", path]);
        assert_eq!(said.code, Some(1), "{said:?}");
        assert_eq!(said.out, "");
        assert!(said.err.contains(word), "{}", said.err);
    }
}

#[test]
fn an_endless_input_is_refused_by_its_size() {
    let place = Place::new();
    let said = place.call(&["format", "/dev/zero"]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("size_in"), "{}", said.err);
}
