//! The Rust side against the conformance corpus.

use lazaret_contract::conformance::{self, Case};
use lazaret_contract::formatter;
use lazaret_contract::json::{self, Float, JsonErrorKind};

fn assert_all_agree(cases: &[Case]) {
    assert!(!cases.is_empty());
    let faults: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let given = formatter::format(&case.input);
            case.judge(given.as_deref().map_err(|error| error.kind))
                .err()
        })
        .collect();
    assert!(
        faults.is_empty(),
        "{} of {}:\n{}",
        faults.len(),
        cases.len(),
        faults.join("\n")
    );
}

#[test]
fn public_bug_reports_are_not_ours() {
    assert_all_agree(&conformance::public_report_cases());
}

#[test]
fn each_limit_holds_at_its_value_and_one_beyond() {
    assert_all_agree(&conformance::rule_cases());
}

#[test]
fn the_public_test_suite_gets_the_stated_verdicts_and_bytes() {
    if let Some(corpus) = conformance::open_corpus("the public test suite").unwrap() {
        assert_all_agree(&corpus.suite_cases().unwrap());
    }
}

#[test]
fn syntax_faults_are_placed_where_cpython_places_them() {
    let Some(corpus) = conformance::open_corpus("fault positions").unwrap() else {
        return;
    };
    let cases = corpus.suite_cases().unwrap();
    let positions = corpus.suite_fault_positions().unwrap();
    assert!(positions.len() > 100);
    for (name, position) in positions {
        let case = cases.iter().find(|case| case.name == name).unwrap();
        let error = json::parse(&case.input).unwrap_err();
        assert_eq!(error.kind, JsonErrorKind::Syntax, "{name}");
        let before = std::str::from_utf8(&case.input[..error.offset_bytes]).unwrap();
        assert_eq!(before.chars().count(), position, "{name}: {error}");
    }
}

#[test]
fn doubles_are_read_and_written_as_cpython_does() {
    let Some(corpus) = conformance::open_corpus("doubles").unwrap() else {
        return;
    };
    assert_all_agree(&corpus.float_cases().unwrap());
    assert_all_agree(&corpus.float_batches().unwrap());
    let texts = corpus.float_texts().unwrap();
    assert!(texts.len() >= 1000);
    for (bits, owed) in texts {
        assert_eq!(Float::new(f64::from_bits(bits)).unwrap().to_string(), owed);
    }
}

#[test]
fn case_names_are_unique() {
    let mut names: Vec<String> = conformance::public_report_cases()
        .into_iter()
        .chain(conformance::rule_cases())
        .map(|case| case.name)
        .collect();
    names.sort();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn an_error_tells_an_operator_what_and_where() {
    let rows: [(&[u8], &str); 8] = [
        (
            b"{\"a\": 1,\n \"a\": 2}",
            "duplicate_key: the key \"a\" is in this object already (line 2, column 2, byte 10)",
        ),
        (
            b"[1,\n2,\n]",
            "syntax: expected a value, found ']' (line 3, column 1, byte 7)",
        ),
        (
            b"[1",
            "syntax: expected ',' or ']', found the end of the document (line 1, column 3, byte 2)",
        ),
        (
            b"{\"\x1b\":1}",
            "syntax: a control character inside a string must be escaped (line 1, column 3, byte 2)",
        ),
        (
            "[\u{202e}]".as_bytes(),
            "syntax: expected a value, found '\\u{202e}' (line 1, column 2, byte 1)",
        ),
        (
            b"[\"\xff\"]",
            "invalid_utf8: the byte 0xff is not part of valid UTF-8 (line 1, column 3, byte 2)",
        ),
        (
            b"\xef\xbb\xbf{}",
            "bom: the document begins with a byte order mark; save it without one (line 1, column 1, byte 0)",
        ),
        (
            b"{\"\\u001b[2J\":1,\"\\u001b[2J\":2}",
            "duplicate_key: the key \"\\u{1b}[2J\" is in this object already (line 1, column 16, byte 15)",
        ),
    ];
    for (document, text) in rows {
        assert_eq!(json::parse(document).unwrap_err().to_string(), text);
    }
}
