//! The closed schema language: what it takes, what it refuses by name, and
//! what it says about values. B01 to B05 are cases from public bug reports.

use lazaret_contract::json::{self, Value};
use lazaret_contract::problem::ProblemCode;
use lazaret_contract::schema::{
    Rule, SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX, SCHEMA_FIELDS_MAX, SCHEMA_NODES_MAX, Schema,
    VIOLATIONS_MAX,
};

#[expect(clippy::unwrap_used, reason = "the tests give it sound JSON")]
fn value(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap()
}

#[expect(clippy::panic, reason = "the tests give it sound schemas")]
fn schema(text: &str) -> Schema {
    Schema::load(&value(text)).unwrap_or_else(|problems| panic!("{text}: {problems}"))
}

/// The places and codes of the problems of a schema.
fn refused(text: &str) -> Vec<(String, ProblemCode)> {
    let problems = Schema::load(&value(text)).err().unwrap_or_default();
    assert!(!problems.is_empty(), "{text} was taken");
    let listed = problems.list().iter().map(|problem| {
        let place = match &problem.place {
            lazaret_contract::problem::Place::Pointer(pointer) => pointer.as_str().to_owned(),
            other => format!("{other:?}"),
        };
        (place, problem.code)
    });
    listed.collect()
}

/// The places and rules that a value breaks.
fn broken(schema_text: &str, instance: &str) -> Vec<(String, Rule)> {
    match schema(schema_text).validate(&value(instance)) {
        Ok(()) => Vec::new(),
        Err(violations) => violations
            .list()
            .iter()
            .map(|violation| (violation.pointer.as_str().to_owned(), violation.rule))
            .collect(),
    }
}

fn is_valid(schema_text: &str, instance: &str) -> bool {
    broken(schema_text, instance).is_empty()
}

#[test]
fn true_is_not_one_at_any_depth() {
    // B01
    let rows = [
        (r#"{"const":[[false]]}"#, "[[0]]"),
        (r#"{"const":{"a":1}}"#, r#"{"a":true}"#),
        (r#"{"const":0}"#, "false"),
        (r#"{"const":true}"#, "1"),
        (r#"{"const":1}"#, "true"),
        (r#"{"const":null}"#, "0"),
        (r#"{"const":null}"#, "\"\""),
        (r#"{"const":null}"#, "false"),
    ];
    for (schema_text, instance) in rows {
        assert_eq!(
            broken(schema_text, instance),
            [(String::new(), Rule::Const)],
            "{schema_text}"
        );
    }
    // An enum of anything but strings is refused when it is loaded.
    for text in [
        r#"{"type":"string","enum":[[false]]}"#,
        r#"{"type":"string","enum":[0]}"#,
    ] {
        assert_eq!(
            refused(text),
            [("/enum/0".to_owned(), ProblemCode::WrongType)]
        );
    }
}

#[test]
fn a_misspelt_or_foreign_keyword_refuses_the_schema_with_its_place() {
    // B02
    let rows = [
        (
            r#"{"type":"object","properties":{},"additionalPropertys":false}"#,
            "/additionalPropertys",
            ProblemCode::SchemaKeyword,
        ),
        (
            r#"{"type":"integer","min":0,"minimum":0,"maximum":1}"#,
            "/min",
            ProblemCode::SchemaKeyword,
        ),
        (
            r#"{"type":"string","maxLength":1,"pattern":"x"}"#,
            "/pattern",
            ProblemCode::SchemaKeyword,
        ),
        (r##"{"$ref":"#/x"}"##, "/$ref", ProblemCode::SchemaKeyword),
        (
            r#"{"anyOf":[{"type":"null"}]}"#,
            "/anyOf",
            ProblemCode::SchemaKeyword,
        ),
        (
            r#"{"type":"string","maxLength":1,"format":"date"}"#,
            "/format",
            ProblemCode::SchemaKeyword,
        ),
        (
            r#"{"type":"object","properties":{"a":{"type":"null","required":true}},"additionalProperties":false}"#,
            "/properties/a/required",
            ProblemCode::SchemaKeyword,
        ),
        (
            r#"{"type":"array","items":{"type":"null"},"maxItems":"3"}"#,
            "/maxItems",
            ProblemCode::WrongType,
        ),
        (
            r#"{"type":"object","properties":{}}"#,
            "",
            ProblemCode::MissingField,
        ),
        (
            r#"{"type":"object","properties":{},"additionalProperties":true}"#,
            "",
            ProblemCode::MissingField,
        ),
        (
            r#"{"type":"object","properties":{},"additionalProperties":0}"#,
            "",
            ProblemCode::MissingField,
        ),
        (
            r#"{"type":["string","null"]}"#,
            "/type",
            ProblemCode::WrongType,
        ),
        (r#"{"type":"number"}"#, "/type", ProblemCode::SchemaKeyword),
        (r#"{"type":"String"}"#, "/type", ProblemCode::SchemaKeyword),
        (
            r#"{"type":"boolean","default":true}"#,
            "/default",
            ProblemCode::SchemaKeyword,
        ),
        (
            r#"{"type":"boolean","title":"x"}"#,
            "/title",
            ProblemCode::SchemaKeyword,
        ),
        (
            r#"{"const":1,"type":"integer"}"#,
            "/type",
            ProblemCode::SchemaKeyword,
        ),
        (
            r#"{"type":"integer","minimum":0,"maximum":9,"multipleOf":3}"#,
            "/multipleOf",
            ProblemCode::SchemaKeyword,
        ),
        (
            r#"{"type":"string","enum":["a"],"maxLength":3}"#,
            "/maxLength",
            ProblemCode::SchemaKeyword,
        ),
        (
            r#"{"type":"array","items":{"type":"null"},"maxItems":3,"uniqueItems":true}"#,
            "/uniqueItems",
            ProblemCode::SchemaKeyword,
        ),
        ("true", "", ProblemCode::WrongType),
    ];
    for (text, place, code) in rows {
        assert!(
            refused(text).contains(&(place.to_owned(), code)),
            "{text}: {:?}",
            refused(text)
        );
    }
}

#[test]
fn a_misspelling_is_answered_with_the_word_that_was_meant() {
    let problems = Schema::load(&value(
        r#"{"type":"object","properties":{},"additionalPropertys":false}"#,
    ));
    let text = problems.unwrap_err().to_string();
    assert!(
        text.contains("did you mean \"additionalProperties\"?"),
        "{text}"
    );
}

#[test]
fn strings_are_measured_in_code_points() {
    // B03
    let bounds = |least: u8, most: u8| {
        format!(r#"{{"type":"string","minLength":{least},"maxLength":{most}}}"#)
    };
    let marks = format!("\"a{}\"", "\u{301}".repeat(10));
    assert!(is_valid(&bounds(0, 2), "\"\u{1f600}\u{1f600}\""));
    assert!(is_valid(&bounds(0, 1), "\"\u{1f600}\""));
    assert!(!is_valid(&bounds(0, 3), &marks));
    assert!(is_valid(&bounds(0, 11), &marks));
    assert!(!is_valid(&bounds(2, 9), "\"\u{1f600}\""));
    assert!(!is_valid(&bounds(0, 2), "\"\u{3b1}\u{3b2}\u{3b3}\""));
}

#[test]
fn integers_are_compared_in_every_digit() {
    // B04
    let between = |least: &str, most: &str| {
        format!(r#"{{"type":"integer","minimum":{least},"maximum":{most}}}"#)
    };
    let whole = between("-9223372036854775808", "9223372036854775807");
    assert!(!is_valid(
        &between("0", "9007199254740992"),
        "9007199254740993"
    ));
    assert!(!is_valid(
        r#"{"const":9007199254740993}"#,
        "9007199254740992"
    ));
    assert!(is_valid(
        r#"{"const":18446744073709551616}"#,
        "18446744073709551616"
    ));
    assert_eq!(
        broken(&whole, "-9223372036854775809"),
        [(String::new(), Rule::Minimum)]
    );
    assert_eq!(
        broken(&whole, "18446744073709551616"),
        [(String::new(), Rule::Maximum)]
    );
    assert_eq!(
        broken(&whole, &"9".repeat(4300)),
        [(String::new(), Rule::Maximum)]
    );
    for inside in ["2147483648", "-9223372036854775808", "9223372036854775807"] {
        assert!(is_valid(&whole, inside));
    }
}

#[test]
fn a_token_with_a_point_or_an_exponent_is_no_integer() {
    // B05
    let integer = r#"{"type":"integer","minimum":-100,"maximum":100}"#;
    assert!(is_valid(integer, "-0"));
    for instance in ["1.0", "1e2", "-0.0", "0e0"] {
        assert_eq!(
            broken(integer, instance),
            [(String::new(), Rule::Type)],
            "{instance}"
        );
    }
    assert!(!is_valid(r#"{"const":1}"#, "1.0"));
    assert!(is_valid(r#"{"const":0}"#, "-0"));
    for instance in ["0.0", "-0.0"] {
        assert!(!is_valid(r#"{"const":0}"#, instance));
    }
    let rows = [
        (
            r#"{"type":"integer","minimum":0,"maximum":1e32}"#,
            "/maximum",
            ProblemCode::WrongType,
        ),
        (
            r#"{"type":"array","items":{"type":"null"},"maxItems":2.0}"#,
            "/maxItems",
            ProblemCode::WrongType,
        ),
        (r#"{"const":1.5}"#, "/const", ProblemCode::SchemaKeyword),
        (
            r#"{"const":{"a":[1,2.0]}}"#,
            "/const/a/1",
            ProblemCode::SchemaKeyword,
        ),
    ];
    for (text, place, code) in rows {
        assert_eq!(refused(text), [(place.to_owned(), code)], "{text}");
    }
}

#[test]
fn everything_must_be_finite() {
    let rows = [
        (r#"{"type":"string"}"#, ""),
        (r#"{"type":"array","items":{"type":"null"}}"#, ""),
        (r#"{"type":"integer","minimum":0}"#, ""),
        (r#"{"type":"integer","maximum":0}"#, ""),
        (r#"{"type":"array","maxItems":3}"#, ""),
        (r#"{"type":"object","additionalProperties":false}"#, ""),
    ];
    for (text, place) in rows {
        assert_eq!(
            refused(text),
            [(place.to_owned(), ProblemCode::MissingField)],
            "{text}"
        );
    }
    let rows = [
        (r#"{"type":"string","maxLength":65537}"#, "/maxLength"),
        (r#"{"type":"string","maxLength":-1}"#, "/maxLength"),
        (r#"{"type":"string","minLength":3,"maxLength":2}"#, ""),
        (
            r#"{"type":"array","items":{"type":"null"},"maxItems":4097}"#,
            "/maxItems",
        ),
        (r#"{"type":"integer","minimum":1,"maximum":0}"#, ""),
        (r#"{"type":"string","enum":[]}"#, "/enum"),
    ];
    for (text, place) in rows {
        assert_eq!(
            refused(text),
            [(place.to_owned(), ProblemCode::SchemaLimit)],
            "{text}"
        );
    }
}

#[test]
fn required_fields_must_exist_and_be_listed_once() {
    let object = |required: &str| {
        format!(
            r#"{{"type":"object","properties":{{"a":{{"type":"null"}}}},"additionalProperties":false,"required":{required}}}"#
        )
    };
    assert_eq!(
        refused(&object(r#"["b"]"#)),
        [("/required".to_owned(), ProblemCode::OutOfBounds)]
    );
    assert_eq!(
        refused(&object(r#"["a","a"]"#)),
        [("/required/1".to_owned(), ProblemCode::Duplicate)]
    );
    assert_eq!(
        refused(&object("true")),
        [("/required".to_owned(), ProblemCode::WrongType)]
    );
    assert_eq!(
        broken(&object(r#"["a"]"#), "{}"),
        [(String::new(), Rule::Required)]
    );
    assert!(is_valid(&object("[]"), "{}"));
}

fn nested_arrays(levels: usize) -> String {
    let open = r#"{"type":"array","maxItems":1,"items":"#;
    format!(
        "{}{}{}",
        open.repeat(levels),
        r#"{"type":"null"}"#,
        "}".repeat(levels)
    )
}

fn object_of(fields: usize, field: &str) -> String {
    let listed: Vec<String> = (0..fields)
        .map(|index| format!("\"f{index}\":{field}"))
        .collect();
    format!(
        r#"{{"type":"object","properties":{{{}}},"additionalProperties":false}}"#,
        listed.join(",")
    )
}

fn enum_of(strings: usize) -> String {
    let listed: Vec<String> = (0..strings).map(|index| format!("\"{index}\"")).collect();
    format!(r#"{{"type":"string","enum":[{}]}}"#, listed.join(","))
}

#[test]
fn each_limit_of_the_language_holds_at_its_value_and_one_beyond() {
    schema(&nested_arrays(SCHEMA_DEPTH_MAX));
    assert!(refused(&nested_arrays(SCHEMA_DEPTH_MAX + 1))[0].1 == ProblemCode::SchemaLimit);
    schema(&object_of(SCHEMA_FIELDS_MAX, r#"{"type":"null"}"#));
    assert_eq!(
        refused(&object_of(SCHEMA_FIELDS_MAX + 1, r#"{"type":"null"}"#)),
        [("/properties".to_owned(), ProblemCode::SchemaLimit)]
    );
    schema(&enum_of(SCHEMA_FIELDS_MAX));
    assert_eq!(
        refused(&enum_of(SCHEMA_FIELDS_MAX + 1)),
        [("/enum".to_owned(), ProblemCode::SchemaLimit)]
    );
    // One object, its fields, and in each of them three more.
    let three = r#"{"const":[1,2]}"#;
    assert_eq!(SCHEMA_NODES_MAX, 1 + 31 * 4 + 3);
    let nodes = |last: &str| {
        let inner = object_of(
            31,
            &format!(r#"{{"type":"array","maxItems":1,"items":{three}}}"#),
        );
        let open = inner
            .strip_suffix("},\"additionalProperties\":false}")
            .unwrap_or_default();
        format!("{open},\"last\":{last}}},\"additionalProperties\":false}}")
    };
    // Each field is an array node, a const node and its two items.
    schema(&nodes(r#"{"const":[1,2]}"#));
    assert_eq!(
        refused(&nodes(r#"{"const":[1,2,3]}"#)),
        [(String::new(), ProblemCode::SchemaLimit)]
    );
    let sized = |bytes: usize| {
        let frame = r#"{"const":""}"#.len();
        format!(r#"{{"const":"{}"}}"#, "x".repeat(bytes - frame))
    };
    schema(&sized(SCHEMA_BYTES_MAX));
    assert_eq!(
        refused(&sized(SCHEMA_BYTES_MAX + 1)),
        [(String::new(), ProblemCode::SchemaLimit)]
    );
    // A literal's own nesting counts.
    let literal = |levels: usize| {
        format!(
            r#"{{"const":{}{}}}"#,
            "[".repeat(levels),
            "]".repeat(levels)
        )
    };
    schema(&literal(SCHEMA_DEPTH_MAX + 1));
    assert_eq!(
        refused(&literal(SCHEMA_DEPTH_MAX + 2))[0].1,
        ProblemCode::SchemaLimit
    );
}

#[test]
fn all_problems_of_a_schema_are_told_at_once() {
    let text = r#"{"type":"object","properties":{
        "a":{"type":"string","format":"date"},
        "b":{"type":"array","items":{"type":"number"},"maxItems":1e3},
        "c":{"oneOf":[]}},"patternProperties":{}}"#;
    let places: Vec<String> = refused(text).into_iter().map(|(place, _)| place).collect();
    for place in [
        "",
        "/patternProperties",
        "/properties/a/format",
        "/properties/a",
        "/properties/b/items/type",
        "/properties/b/maxItems",
        "/properties/c/oneOf",
        "/properties/c",
    ] {
        assert!(
            places.contains(&place.to_owned()),
            "{place} is not in {places:?}"
        );
    }
}

const ROWS: &str = r#"{"type":"object","properties":{
    "rows":{"type":"array","maxItems":3,"minItems":1,"items":{
        "type":"object","properties":{
            "category":{"type":"string","minLength":1,"maxLength":5},
            "kind":{"type":"string","enum":["x","y"]},
            "minutes":{"type":"integer","minimum":0,"maximum":1440}},
        "required":["category","minutes"],"additionalProperties":false}},
    "flag":{"type":"boolean"},"none":{"type":"null"},"fixed":{"const":[1,{"a":null}]}},
    "required":["rows"],"additionalProperties":false}"#;

#[test]
fn all_violations_of_a_value_are_told_at_once_with_their_places() {
    let instance = r#"{"rows":[{"category":"","minutes":1441},{"minutes":"1","extra/~":0,"kind":"z"},7,{"category":"abcdef","minutes":-1}],
        "flag":0,"none":false,"fixed":[1,{"a":0}]}"#;
    let owed = [
        ("/fixed", Rule::Const),
        ("/flag", Rule::Type),
        ("/none", Rule::Type),
        ("/rows", Rule::MaxItems),
        ("/rows/0/category", Rule::MinLength),
        ("/rows/0/minutes", Rule::Maximum),
        ("/rows/1", Rule::Required),
        ("/rows/1/extra~1~0", Rule::AdditionalProperties),
        ("/rows/1/kind", Rule::Enum),
        ("/rows/1/minutes", Rule::Type),
        ("/rows/2", Rule::Type),
        ("/rows/3/category", Rule::MaxLength),
        ("/rows/3/minutes", Rule::Minimum),
    ];
    let owed: Vec<(String, Rule)> = owed
        .iter()
        .map(|(place, rule)| ((*place).to_owned(), *rule))
        .collect();
    assert_eq!(broken(ROWS, instance), owed);
    assert!(is_valid(
        ROWS,
        r#"{"rows":[{"category":"abc","minutes":0,"kind":"x"}],"flag":true,"none":null,"fixed":[1,{"a":null}]}"#
    ));
}

#[test]
fn a_violation_says_what_was_wanted_and_what_was_found() {
    let text = schema(ROWS).validate(&value(
        r#"{"rows":[{"category":"\u001b[2J\u202e","minutes":1.0}]}"#,
    ));
    assert_eq!(
        text.unwrap_err().to_string(),
        "/rows/0/minutes: expected an integer from 0 to 1440, found the float 1.0 (type)"
    );
    let text = schema(ROWS).validate(&value(
        r#"{"rows":[{"category":"\u001b[2J\u202e","minutes":1}],"flag":"\u202e"}"#,
    ));
    assert_eq!(
        text.unwrap_err().to_string(),
        "/flag: expected true or false, found the string \"\\u{202e}\" (type)"
    );
}

#[test]
fn violations_are_bounded_and_counted() {
    let schema = schema(r#"{"type":"array","maxItems":4000,"items":{"type":"null"}}"#);
    let many = Value::Array(vec![Value::Bool(true); 4000]);
    let violations = schema.validate(&many).unwrap_err();
    assert_eq!(violations.list().len(), VIOLATIONS_MAX);
    assert_eq!(violations.omitted(), 4000 - VIOLATIONS_MAX);
}

#[test]
fn the_digest_is_that_of_the_canonical_document() {
    let spaced = schema("{ \"maxLength\" : 3,\n \"type\" : \"string\" }");
    let canonical = br#"{"maxLength":3,"type":"string"}"#;
    assert_eq!(spaced.canonical(), canonical);
    assert_eq!(
        spaced.digest(),
        lazaret_contract::digest::Sha256Digest::of(canonical)
    );
    assert_ne!(
        spaced.digest(),
        schema(r#"{"maxLength":4,"type":"string"}"#).digest()
    );
}

#[test]
fn an_outline_names_everything_that_is_allowed() {
    let outline = schema(ROWS).root().outline().join("\n");
    assert_eq!(
        outline,
        "an object\n  \"fixed\" (optional): exactly [1,{\"a\":null}]\n  \"flag\" (optional): true or false\n  \
         \"none\" (optional): null\n  \"rows\": an array of 1 to 3 items\n    each: an object\n      \
         \"category\": a string of 1 to 5 code points\n      \"kind\" (optional): one of \"x\", \"y\"\n      \
         \"minutes\": an integer from 0 to 1440"
    );
}
