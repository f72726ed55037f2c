//! The Python side: the module `lazaret`, run by the host's python3.
//!
//! This is a cheap check before the real one, which runs the same corpus
//! inside the sandbox on the closure's own interpreter. The module's source is
//! ours; no package code runs here.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of a test fail by panicking"
)]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use lazaret_contract::conformance::{self, Case};
use lazaret_contract::json::JsonErrorKind;

/// The oldest version whose `int()` has the limit of digits by default.
const OLDEST: (u32, u32) = (3, 11);

const SOURCES: &str = env!("CARGO_MANIFEST_DIR");

/// Whether the host has a Python to test with; says so when it has none.
fn has_python(who: &str) -> bool {
    let probe = "import sys; print(*sys.version_info[:2])";
    let found = Command::new("python3")
        .args(["-I", "-S", "-c", probe])
        .output()
        .ok()
        .and_then(|out| {
            let text = String::from_utf8(out.stdout).ok()?;
            let (major, minor) = text.trim().split_once(' ')?;
            Some((major.parse().ok()?, minor.parse().ok()?))
        });
    let enough = found.is_some_and(|version: (u32, u32)| version >= OLDEST);
    if !enough {
        let note = format!(
            "SKIPPED {who}: no python3 of at least {OLDEST:?} on this host, found {found:?}\n"
        );
        std::io::stderr().write_all(note.as_bytes()).unwrap();
    }
    enough
}

/// Sends the lines to the driver; gives its answers.
fn drive(lines: &[String]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new("python3")
        .args(["-I", "-S", "-B"])
        .arg(Path::new(SOURCES).join("tests/lazaret_module/driver.py"))
        .arg(Path::new(SOURCES).join("../launcher/python/lazaret.py"))
        .arg(folder.path().join("input.json"))
        .arg(folder.path().join("result.json"))
        // Case A07: it must change nothing.
        .env("PYTHONINTMAXSTRDIGITS", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let text = lines.join("\n");
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(
        output.status.success(),
        "the driver failed: {}",
        output.status
    );
    let answers = String::from_utf8(output.stdout).unwrap();
    assert_eq!(answers.lines().count(), lines.len());
    answers.lines().map(str::to_owned).collect()
}

fn assert_all_agree(cases: &[Case]) {
    assert!(!cases.is_empty());
    let lines: Vec<String> = cases
        .iter()
        .map(|case| format!("format {}", hex::encode(&case.input)))
        .collect();
    let answers = drive(&lines);
    let faults: Vec<String> = cases
        .iter()
        .zip(&answers)
        .filter_map(|(case, answer)| match answer.split_once(' ').unwrap() {
            ("accept", output) => case.judge(Ok(&hex::decode(output).unwrap())).err(),
            (_, reason) => case
                .judge(Err(JsonErrorKind::from_name(reason).unwrap()))
                .err(),
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
fn both_sides_agree_on_public_bug_reports_and_on_every_limit() {
    if has_python("the Python side") {
        assert_all_agree(&conformance::public_report_cases());
        assert_all_agree(&conformance::rule_cases());
    }
}

#[test]
fn both_sides_agree_on_the_public_test_suite_and_on_doubles() {
    if !has_python("the Python side on the public test suite") {
        return;
    }
    if let Some(corpus) = conformance::open_corpus("the Python side").unwrap() {
        assert_all_agree(&corpus.suite_cases().unwrap());
        assert_all_agree(&corpus.float_cases().unwrap());
        assert_all_agree(&corpus.float_batches().unwrap());
    }
}

#[test]
fn both_sides_agree_on_generated_documents() {
    if has_python("the Python side on generated documents") {
        assert_all_agree(&conformance::generated_cases(1, 2000));
    }
}

#[test]
fn what_is_written_is_json_or_a_named_refusal() {
    const LIMIT: &str = "'x' * (65536 - 2)";
    let rows = [
        (
            "None",
            "{'b': [1, 2.5, None, True, False, 'x\\n'], 'a': ()}",
            Ok(r#"{"a":[],"b":[1,2.5,null,true,false,"x\n"]}"#),
        ),
        (
            "2",
            "{'b': [1], 'a': {}}",
            Ok("{\n  \"a\": {},\n  \"b\": [\n    1\n  ]\n}\n"),
        ),
        (
            "None",
            "'\\xe9\\U0001f600\\x7f'",
            Ok("\"\u{e9}\u{1f600}\u{7f}\""),
        ),
        ("None", "-0.0", Ok("-0.0")),
        ("None", "[True, 1, 1.0]", Ok("[true,1,1.0]")),
        (
            "None",
            "type('D', (dict,), {})(a=type('I', (int,), {})(7))",
            Ok("{\"a\":7}"),
        ),
        ("None", "float('nan')", Err("nonfinite")),
        ("2", "[float('-inf')]", Err("nonfinite")),
        ("None", "{1: 2}", Err("type")),
        ("None", "{None: 2}", Err("type")),
        ("None", "{'a': {2}}", Err("type")),
        ("None", "b'x'", Err("type")),
        ("None", "'\\ud800'", Err("lone_surrogate")),
        ("None", "{'\\udc00': 1}", Err("lone_surrogate")),
        ("None", "10 ** 4299", Ok("")),
        ("None", "-10 ** 4300", Err("int_digits")),
        ("None", "(lambda x: (x.append(x), x)[1])([])", Err("depth")),
        ("None", "[0] * 4095", Ok("")),
        ("None", "[0] * 4096", Err("nodes")),
        ("None", "[[]] * 4096", Err("nodes")),
        ("None", LIMIT, Ok("")),
        ("None", "'x' * (65536 - 1)", Err("size_out")),
        ("2", "'x' * (65536 - 2)", Err("size_out")),
    ];
    if !has_python("writing from Python") {
        return;
    }
    let nested = |levels: usize| format!("{}0{}", "[".repeat(levels), "]".repeat(levels));
    let mut lines: Vec<String> = rows
        .iter()
        .map(|(indent, expression, _)| format!("write {indent} {expression}"))
        .collect();
    lines.extend([
        format!("write None {}", nested(32)),
        format!("write None {}", nested(33)),
    ]);
    let answers = drive(&lines);
    for ((_, expression, owed), answer) in rows.iter().zip(&answers) {
        match owed {
            // Too long to stand here: that it was accepted is what counts.
            Ok("") => assert!(answer.starts_with("accept "), "{expression}: {answer}"),
            Ok(text) => assert_eq!(
                *answer,
                format!("accept {}", hex::encode(text)),
                "{expression}"
            ),
            Err(reason) => assert_eq!(*answer, format!("reject {reason}"), "{expression}"),
        }
    }
    assert_eq!(
        answers[rows.len()],
        format!("accept {}", hex::encode(nested(32)))
    );
    assert_eq!(answers[rows.len() + 1], "reject depth");
}

#[test]
fn a_package_pays_for_no_import_of_json_or_re() {
    if !has_python("imports of the module lazaret") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let module = Path::new(SOURCES).join("../launcher/python");
    let input = folder.path().join("input.json");
    let output = folder.path().join("result.json");
    std::fs::write(&input, b"{\"b\":[1.5,\"\\ud83d\\ude00\"],\"a\":null}").unwrap();
    let program = format!(
        "import sys; sys.path.insert(0, {module:?}); before = set(sys.modules)\n\
         import lazaret; lazaret._INPUT_PATH = {input:?}; lazaret._OUTPUT_PATH = {output:?}\n\
         lazaret.write_output(lazaret.read_input()); print(*sorted(set(sys.modules) - before))"
    );
    let run = Command::new("python3")
        .args(["-I", "-S", "-B", "-c", &program])
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8(run.stdout).unwrap().trim(),
        "_json lazaret"
    );
    assert_eq!(
        std::fs::read(output).unwrap(),
        "{\"a\":null,\"b\":[1.5,\"\u{1f600}\"]}".as_bytes()
    );
}
