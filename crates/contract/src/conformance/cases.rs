//! Cases that need no file: faults that other projects had, and our own rules
//! at their edges.

use super::Case;
use crate::json::JsonErrorKind::{self, *};
use crate::limits::{INPUT_BYTES_MAX, JSON_DEPTH_MAX, JSON_NODES_MAX};

/// A01 to A11: what went wrong in public projects, as documents.
pub fn public_report_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(numbers());
    cases.extend(integers());
    cases.extend(duplicate_keys());
    cases.extend(key_order());
    cases.extend(surrogates());
    cases.extend(encodings());
    cases
}

/// One-element arrays with a number, and the text owed for it.
fn accepted_numbers(case: &str, rows: &[(&str, &str)]) -> Vec<Case> {
    rows.iter()
        .map(|(fed, owed)| {
            let output = format!("[\n  {owed}\n]\n");
            Case::accept(
                format!("{case}/{}", short(fed)),
                format!("[{fed}]"),
                output.as_bytes(),
            )
        })
        .collect()
}

fn rejected(case: &str, reason: JsonErrorKind, documents: &[&str]) -> Vec<Case> {
    documents
        .iter()
        .map(|text| Case::reject(format!("{case}/{}", short(text)), *text, reason))
        .collect()
}

fn accepted(case: &str, rows: &[(&str, &str)]) -> Vec<Case> {
    rows.iter()
        .map(|(fed, owed)| Case::accept(format!("{case}/{}", short(fed)), *fed, owed.as_bytes()))
        .collect()
}

fn short(text: &str) -> String {
    crate::visible::escape_cut(text, 40)
}

fn numbers() -> Vec<Case> {
    let mut cases = accepted_numbers(
        "A01-nearest-double",
        &[
            ("1.5777777777770001", "1.5777777777770001"),
            ("122.416294033786585", "122.41629403378658"),
            ("0.9215686321258545", "0.9215686321258545"),
            ("117.63331139400017", "117.63331139400017"),
            ("10587.436593658975", "10587.436593658975"),
            ("-4.4737164812014446e192", "-4.4737164812014446e+192"),
            ("0.09144338512092887", "0.09144338512092887"),
        ],
    );
    cases.extend(accepted_numbers(
        "A02-exponent-layout",
        &[
            ("9e-05", "9e-05"),
            ("0.00001", "1e-05"),
            ("0.0001", "0.0001"),
            ("1e15", "1000000000000000.0"),
            ("1e16", "1e+16"),
            ("9999999999999998.0", "9999999999999998.0"),
            ("1E5", "100000.0"),
            ("1.10", "1.1"),
            ("1.0E+2", "100.0"),
            ("100000000000000000000.0", "1e+20"),
            ("1e23", "1e+23"),
            ("123456789012345678.0", "1.2345678901234568e+17"),
            ("5e-324", "5e-324"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ],
    ));
    cases.extend(accepted_numbers(
        "A03-ties-to-even",
        &[
            ("1424953923781206.25", "1424953923781206.2"),
            ("-591340196471289.25", "-591340196471289.2"),
            ("1939951513150406.25", "1939951513150406.2"),
            ("-123124406820975.625", "-123124406820975.62"),
        ],
    ));
    cases.extend(accepted_numbers(
        "A04-minus-zero",
        &[
            ("-0", "0"),
            ("-0.0", "-0.0"),
            ("-0e1", "-0.0"),
            ("-1e-999", "-0.0"),
            ("1e-999", "0.0"),
            ("0e99999999999999999999", "0.0"),
            ("-0E+99999", "-0.0"),
        ],
    ));
    let large = format!("[{}.0]", "9".repeat(400));
    cases.extend(rejected(
        "A05-not-finite",
        Nonfinite,
        &[
            "[1e400]",
            "{\"a\":-1e309}",
            "[NaN]",
            "[Infinity]",
            "[-Infinity]",
            &large,
        ],
    ));
    let nines = "9".repeat(309);
    cases.extend(accepted_numbers("A05-large-integer", &[(&nines, &nines)]));
    cases
}

fn integers() -> Vec<Case> {
    let same = |digits| (digits, digits);
    let mut cases = accepted_numbers(
        "A06-beyond-64-bits",
        &[
            same("18446744073709551616"),
            same("-9223372036854775809"),
            same("10000000000000000999"),
            same("9007199254740993"),
            same("-237462374673276894279832749832423479823246327846"),
        ],
    );
    let ones = "1".repeat(4300);
    let minus_ones = format!("-{ones}");
    let long_fraction = format!("0.{}", "1".repeat(5000));
    let long_one = format!("1{}e-4300", "0".repeat(4300));
    let mut long = accepted_numbers(
        "A07-integer-digits",
        &[
            same(&ones),
            same(&minus_ones),
            (&long_fraction, "0.1111111111111111"),
            (&long_one, "1.0"),
        ],
    );
    for (index, case) in long.iter_mut().enumerate() {
        case.name = format!("A07-integer-digits/accepted-{index}");
    }
    cases.extend(long);
    let key = "7".repeat(5000);
    let output = format!("{{\n  \"{key}\": 1\n}}\n");
    cases.push(Case::accept(
        "A07-digits-in-a-key",
        format!("{{\"{key}\":1}}"),
        output.as_bytes(),
    ));
    for sign in ["", "-"] {
        let document = format!("[{sign}1{ones}]");
        cases.push(Case::reject(
            format!("A07-integer-digits/{sign}4301"),
            document,
            IntDigits,
        ));
    }
    cases
}

fn duplicate_keys() -> Vec<Case> {
    let mut cases = rejected(
        "A08-duplicate-key",
        DuplicateKey,
        &[
            "{\"a\":1,\"a\":1}",
            "{\"a\":1,\"\\u0061\":2}",
            "[{\"x\":[{\"b\":1,\"b\":2}]}]",
            "{\"\":1,\"\":2}",
            "{\"\\ud83d\\ude00\":1,\"\u{1f600}\":2}",
        ],
    );
    cases.extend(accepted(
        "A08-other-keys",
        &[
            ("{\"A\":1,\"a\":2}", "{\n  \"A\": 1,\n  \"a\": 2\n}\n"),
            (
                "{\"\\u00e9\":1,\"e\\u0301\":2}",
                "{\n  \"e\u{301}\": 2,\n  \"\u{e9}\": 1\n}\n",
            ),
            (
                "{\"a\":{\"k\":1},\"b\":{\"k\":1}}",
                "{\n  \"a\": {\n    \"k\": 1\n  },\n  \"b\": {\n    \"k\": 1\n  }\n}\n",
            ),
        ],
    ));
    cases
}

fn key_order() -> Vec<Case> {
    let object = |keys: &[&str]| {
        let members: Vec<String> = keys.iter().map(|key| format!("\"{key}\":0")).collect();
        format!("{{{}}}", members.join(","))
    };
    let formatted = |keys: &[&str]| {
        let members: Vec<String> = keys.iter().map(|key| format!("  \"{key}\": 0")).collect();
        format!("{{\n{}\n}}\n", members.join(",\n"))
    };
    let rows: [(&[&str], &[&str]); 3] = [
        (
            &["\u{10000}", "\u{ffff}", "a", "Z", "\u{e9}"],
            &["Z", "a", "\u{e9}", "\u{ffff}", "\u{10000}"],
        ),
        (&["\u{1f600}", "\u{fffd}"], &["\u{fffd}", "\u{1f600}"]),
        (
            &["10", "9", "", "a", "aa", "a b"],
            &["", "10", "9", "a", "a b", "aa"],
        ),
    ];
    rows.iter()
        .enumerate()
        .map(|(index, (fed, owed))| {
            let name = format!("A09-code-point-order/{index}");
            Case::accept(name, object(fed), formatted(owed).as_bytes())
        })
        .collect()
}

fn surrogates() -> Vec<Case> {
    let mut cases = rejected(
        "A10-lone-surrogate",
        LoneSurrogate,
        &[
            "[\"\\ud800\"]",
            "{\"\\udc00\":1}",
            "[\"\\ud83dx\"]",
            "[\"\\ude00\\ud83d\"]",
            "[\"\\uD83D\\uD83D\\uDE00\"]",
            "[\"\\ud83d\\\\ude00\"]",
        ],
    );
    cases.extend(accepted(
        "A10-pairs-and-noncharacters",
        &[
            ("[\"\\ud83d\\ude00\"]", "[\n  \"\u{1f600}\"\n]\n"),
            ("[\"\\uDBFF\\uDFFF\"]", "[\n  \"\u{10ffff}\"\n]\n"),
            (
                "[\"\\uFFFE\\uFFFF\\uFDD0\"]",
                "[\n  \"\u{fffe}\u{ffff}\u{fdd0}\"\n]\n",
            ),
        ],
    ));
    cases
}

fn encodings() -> Vec<Case> {
    let utf16 =
        |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    let utf32: Vec<u8> = "{\"a\":1}"
        .chars()
        .flat_map(|c| u32::from(c).to_le_bytes())
        .collect();
    let with_mark = utf16("\u{feff}{\"a\":1}");
    let rows: [(&str, &[u8], JsonErrorKind); 9] = [
        ("utf8-mark", b"\xef\xbb\xbf{}", Bom),
        ("surrogate-bytes", b"[\"\xed\xa0\x80\"]", InvalidUtf8),
        (
            "surrogate-pair-bytes",
            b"[\"\xed\xa0\xbd\xed\xb8\x80\"]",
            InvalidUtf8,
        ),
        ("utf16-mark", &with_mark, InvalidUtf8),
        ("utf16", &utf16("{\"a\":1}"), Syntax),
        ("utf32", &utf32, Syntax),
        ("overlong", b"[\"\xc0\xaf\"]", InvalidUtf8),
        ("beyond-unicode", b"[\"\xf4\x90\x80\x80\"]", InvalidUtf8),
        ("mark-behind", b"[]\xef\xbb\xbf", Syntax),
    ];
    let mut cases: Vec<Case> = rows
        .iter()
        .map(|(name, bytes, reason)| Case::reject(format!("A11-encoding/{name}"), *bytes, *reason))
        .collect();
    let inside = "[\"\u{feff}\"]";
    cases.push(Case::accept(
        "A11-mark-inside",
        inside,
        "[\n  \"\u{feff}\"\n]\n".as_bytes(),
    ));
    cases
}

/// Our own rules where they end: each limit at its value and one beyond, and
/// which fault is named when there are several.
pub fn rule_cases() -> Vec<Case> {
    let mut cases = fault_order();
    cases.extend(nesting());
    cases.extend(sizes());
    cases
}

fn fault_order() -> Vec<Case> {
    let deep = "[".repeat(40);
    let digits = "1".repeat(4301);
    let many = vec!["0"; JSON_NODES_MAX].join(",");
    let rows: [(&str, String, JsonErrorKind); 19] = [
        ("mark-before-syntax", "\u{feff}x".into(), Bom),
        ("syntax-before-duplicate", "{\"a\":1,\"a\":2".into(), Syntax),
        (
            "syntax-in-object-before-duplicate",
            "{\"a\":1,\"a\":2,}".into(),
            Syntax,
        ),
        (
            "duplicate-before-later-syntax",
            "[{\"a\":1,\"a\":2},x]".into(),
            DuplicateKey,
        ),
        (
            "duplicate-before-trailing-text",
            "{\"a\":1,\"a\":2}x".into(),
            DuplicateKey,
        ),
        (
            "nonfinite-before-duplicate",
            "{\"a\":1,\"a\":1e999}".into(),
            Nonfinite,
        ),
        (
            "inner-duplicate-before-nonfinite",
            "{\"a\":{\"b\":1,\"b\":2},\"c\":NaN}".into(),
            DuplicateKey,
        ),
        ("nonfinite-before-later-syntax", "[1e999".into(), Nonfinite),
        (
            "literal-before-trailing-letters",
            "[NaNx]".into(),
            Nonfinite,
        ),
        (
            "digits-before-later-syntax",
            format!("[{digits}.x]"),
            IntDigits,
        ),
        (
            "syntax-before-later-digits",
            format!("[x,{digits}]"),
            Syntax,
        ),
        ("syntax-before-depth", deep.clone(), Syntax),
        (
            "duplicate-before-depth",
            format!("[{{\"a\":1,\"a\":2}},{deep}{}]", "]".repeat(40)),
            DuplicateKey,
        ),
        (
            "nonfinite-behind-depth",
            format!("[{deep}{},1e999]", "]".repeat(40)),
            Nonfinite,
        ),
        (
            "depth-before-nodes",
            format!("[{many},{deep}{}]", "]".repeat(40)),
            Depth,
        ),
        (
            "depth-before-surrogate",
            format!("[\"\\ud800\",{deep}{}]", "]".repeat(40)),
            Depth,
        ),
        (
            "nodes-before-surrogate",
            format!("[\"\\ud800\",{many}]"),
            Nodes,
        ),
        (
            "equal-lone-surrogate-keys",
            "{\"\\ud800\":1,\"\\uD800\":2}".into(),
            DuplicateKey,
        ),
        (
            "unequal-lone-surrogate-keys",
            "{\"\\ud800\":1,\"\\ud801\":2}".into(),
            LoneSurrogate,
        ),
    ];
    rows.into_iter()
        .map(|(name, text, reason)| Case::reject(format!("order/{name}"), text, reason))
        .collect()
}

fn nested(levels: usize, inner: &str) -> String {
    format!("{}{inner}{}", "[".repeat(levels), "]".repeat(levels))
}

fn nested_output(levels: usize, inner: &str) -> String {
    let indent = |level| "  ".repeat(level);
    let open: String = (0..levels)
        .map(|level| format!("{}[\n", indent(level)))
        .collect();
    let close: String = (0..levels)
        .rev()
        .map(|level| format!("{}]\n", indent(level)))
        .collect();
    format!("{open}{}{inner}\n{close}", indent(levels))
}

fn nesting() -> Vec<Case> {
    let deepest = nested(JSON_DEPTH_MAX, "0");
    let mut cases = vec![Case::accept(
        "depth/32",
        deepest,
        nested_output(JSON_DEPTH_MAX, "0").as_bytes(),
    )];
    let rows = [
        ("depth/33", nested(JSON_DEPTH_MAX + 1, "0"), Depth),
        ("depth/33-empty", nested(JSON_DEPTH_MAX + 2, ""), Depth),
        ("nesting/4096-closed", nested(4096, ""), Depth),
        ("nesting/4097-closed", nested(4097, ""), Depth),
        ("nesting/16384-closed", nested(16_384, ""), Depth),
        ("nesting/4096-open", "[".repeat(4096), Syntax),
        ("nesting/4097-open", "[".repeat(4097), Depth),
        ("nesting/32768-open", "[".repeat(INPUT_BYTES_MAX), Depth),
        ("nesting/objects-open", "{\"a\":".repeat(6000), Depth),
        (
            "nesting/syntax-first",
            format!("[x,{}", "[".repeat(5000)),
            Syntax,
        ),
        (
            "nesting/duplicate-first",
            format!("[{{\"a\":1,\"a\":1}},{}", "[".repeat(5000)),
            DuplicateKey,
        ),
        (
            "nesting/bracket-out-of-place",
            format!("{}0[", "[".repeat(4096)),
            Syntax,
        ),
        (
            "nesting/minus-before-bracket",
            format!("{}-[", "[".repeat(4096)),
            Syntax,
        ),
        (
            "nesting/nonfinite-first",
            format!("{}NaN,[", "[".repeat(4096)),
            Nonfinite,
        ),
        (
            "nesting/bracket-for-key",
            format!("{}{{[", "[".repeat(4095)),
            Syntax,
        ),
    ];
    cases.extend(
        rows.into_iter()
            .map(|(name, text, reason)| Case::reject(name, text, reason)),
    );
    let brackets = format!("[\"{}\"]", "[{".repeat(5000));
    let output = format!("[\n  \"{}\"\n]\n", "[{".repeat(5000));
    cases.push(Case::accept(
        "nesting/brackets-in-a-string",
        brackets,
        output.as_bytes(),
    ));
    cases
}

fn sizes() -> Vec<Case> {
    let array = |count: usize| format!("[{}]", vec!["0"; count].join(","));
    let array_output = |count: usize| format!("[\n{}\n]\n", vec!["  0"; count].join(",\n"));
    let padded = |bytes: usize| format!("[]{}", " ".repeat(bytes - 2));
    let most = JSON_NODES_MAX - 1;
    vec![
        Case::accept("nodes/4096", array(most), array_output(most).as_bytes()),
        Case::reject("nodes/4097", array(most + 1), Nodes),
        Case::accept("size/32768", padded(INPUT_BYTES_MAX), b"[]\n"),
        Case::reject("size/32769", padded(INPUT_BYTES_MAX + 1), SizeIn),
        Case::reject("size/before-utf8", vec![0xff; INPUT_BYTES_MAX + 1], SizeIn),
        Case::reject(
            "size/output",
            nested(20, &vec!["0"; 4000].join(",")),
            SizeOut,
        ),
        Case::accept("strings/escapes", ESCAPES_IN, ESCAPES_OUT.as_bytes()),
        Case::accept("scalars/string", " \"x\" ", b"\"x\"\n"),
        Case::accept(
            "scalars/empty-containers",
            "[{},[]]",
            b"[\n  {},\n  []\n]\n",
        ),
    ]
}

const ESCAPES_IN: &str =
    "[\"\\u0000\\u001F\\b\\f\\n\\r\\t\\/\\\\\\\"\\u007f\\u0080\\u2028/\u{7f}\"]";
const ESCAPES_OUT: &str =
    "[\n  \"\\u0000\\u001f\\b\\f\\n\\r\\t/\\\\\\\"\u{7f}\u{80}\u{2028}/\u{7f}\"\n]\n";
