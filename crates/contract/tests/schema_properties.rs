//! Properties of the schema language over generated schemas and values.
//!
//! Both come from small alphabets, so that values fit and do not fit about as
//! often; the body of the fuzz target holds validation to a second opinion and
//! the comparison of two schemas to what validation says.

use lazaret_contract::fuzz_bodies;
use lazaret_contract::json::{self, Value};
use lazaret_contract::schema::{Rule, Schema};
use proptest::prelude::*;

fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Object(
        fields
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    )
}

fn small_values() -> impl Strategy<Value = Value> {
    let scalars = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-3..4_i64).prop_map(Value::from),
        "[ab\u{1f600}]{0,3}".prop_map(Value::from),
    ];
    scalars.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map("[pq]", inner, 0..3).prop_map(Value::Object),
        ]
    })
}

fn bounds() -> impl Strategy<Value = (i64, i64)> {
    (0..3_i64, 0..3_i64).prop_map(|(low, more)| (low, low + more))
}

fn schemas() -> impl Strategy<Value = Value> {
    let leaves = prop_oneof![
        Just(object([("type", "null".into())])),
        Just(object([("type", "boolean".into())])),
        (-3..2_i64, 0..4_i64).prop_map(|(low, more)| {
            object([
                ("type", "integer".into()),
                ("minimum", low.into()),
                ("maximum", (low + more).into()),
            ])
        }),
        bounds().prop_map(|(low, high)| {
            object([
                ("type", "string".into()),
                ("minLength", low.into()),
                ("maxLength", high.into()),
            ])
        }),
        prop::sample::subsequence(vec!["", "a", "ab", "b"], 1..4).prop_map(|listed| {
            let listed = listed.into_iter().map(Value::from).collect();
            object([("type", "string".into()), ("enum", Value::Array(listed))])
        }),
        small_values().prop_map(|literal| object([("const", literal)])),
    ];
    leaves.prop_recursive(3, 12, 2, |inner| {
        prop_oneof![
            (bounds(), inner.clone()).prop_map(|((low, high), items)| {
                object([
                    ("type", "array".into()),
                    ("items", items),
                    ("minItems", low.into()),
                    ("maxItems", high.into()),
                ])
            }),
            (
                prop::collection::btree_map("[pq]", inner, 0..3),
                any::<[bool; 2]>()
            )
                .prop_map(|(properties, are_required)| {
                    let names = properties.keys().zip(are_required);
                    let required = names.filter(|(_, is_required)| *is_required);
                    let required = required.map(|(name, _)| name.clone().into()).collect();
                    object([
                        ("type", "object".into()),
                        ("properties", Value::Object(properties)),
                        ("required", Value::Array(required)),
                        ("additionalProperties", false.into()),
                    ])
                }),
        ]
    })
}

/// The value at a pointer whose keys need no unescaping.
fn resolve<'a>(root: &'a Value, pointer: &str) -> Option<&'a Value> {
    pointer
        .split('/')
        .skip(1)
        .try_fold(root, |value, token| match value {
            Value::Object(members) => members.get(token),
            Value::Array(items) => items.get(token.parse::<usize>().ok()?),
            _ => None,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn validation_agrees_with_a_second_opinion(schema in schemas(), value in small_values(), other in schemas()) {
        prop_assert!(Schema::load(&schema).is_ok());
        fuzz_bodies::schema_load(&json::write_compact(&schema));
        fuzz_bodies::schema_validate(&json::write_compact(&Value::Array(vec![schema, value, other])));
    }

    #[test]
    fn every_violation_points_at_something_that_is_there(schema in schemas(), value in small_values()) {
        let schema = Schema::load(&schema).map_err(|problems| TestCaseError::fail(problems.to_string()))?;
        if let Err(violations) = schema.validate(&value) {
            for violation in violations.list() {
                let found = resolve(&value, violation.pointer.as_str());
                prop_assert!(found.is_some(), "{}", violation);
                prop_assert!(violation.rule != Rule::Required || matches!(found, Some(Value::Object(_))));
            }
        }
    }

    #[test]
    fn one_changed_keyword_changes_the_digest(schema in schemas(), other in schemas()) {
        let digests = [&schema, &other].map(lazaret_contract::schema::digest_of);
        prop_assert_eq!(schema == other, digests[0] == digests[1]);
    }

    #[test]
    fn the_formatted_schema_is_the_same_schema(schema in schemas()) {
        let again = json::parse(&json::write_pretty(&schema)).map(|again| Schema::load(&again));
        prop_assert_eq!(again, Ok(Schema::load(&schema)));
    }
}
