//! Golden vectors: what an author says an adapter makes of an input.
//!
//! They are review data. Nothing runs them before the version is installed and
//! active; here only their form is checked, and that they fit the schemas.

use super::descriptor::Descriptor;
use crate::closed::Fields;
use crate::json::{self, Value};
use crate::limits::{INPUT_BYTES_MAX, OUTPUT_BYTES_MAX};
use crate::pointer::Pointer;
use crate::problem::{ProblemCode, Problems};

const ABOUT_CHARS_MAX: usize = 200;

/// A vector of schema version 1. Every field must be there; there are no
/// others.
///
/// | field | meaning |
/// |---|---|
/// | `schema_version` | 1 |
/// | `about` | one line of text: what the vector shows |
/// | `input` | an input that fits the input schema |
/// | `output` | the output owed for it; compared as a value |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vector {
    /// The path within the package.
    pub path: String,
    /// What it shows.
    pub about: String,
    /// The input.
    pub input: Value,
    /// The output owed.
    pub output: Value,
}

pub(super) fn read(
    path: &str,
    document: &Value,
    descriptor: Option<&Descriptor>,
    problems: &mut Problems,
) -> Option<Vector> {
    const FIELDS: &[&str] = &["schema_version", "about", "input", "output"];
    let mut fields = Fields::open(document, Pointer::root(), FIELDS, problems)?;
    fields.fixed(
        "schema_version",
        &1.into(),
        "this is how version 1 is told from others",
    );
    let about = fields.line("about", ABOUT_CHARS_MAX);
    let mut fitting = |name: &str, bytes_max: usize| {
        let (value, place) = fields.required(name)?;
        if json::write_compact(value).len() > bytes_max {
            let what = format!("the {name} has more than {bytes_max} bytes as compact JSON");
            fields
                .problems
                .at(ProblemCode::TooLarge, &place, what, "make it smaller");
        }
        let contract = descriptor.map(|found| {
            if name == "input" {
                &found.input
            } else {
                &found.output
            }
        });
        if let Some(Err(violations)) = contract.map(|contract| contract.validate(value)) {
            for violation in violations.list() {
                let what = format!("expected {}, found {}", violation.expected, violation.found);
                let remedy = "correct the vector or the schema";
                fields.problems.at(
                    ProblemCode::Vector,
                    &place.join(&violation.pointer),
                    what,
                    remedy,
                );
            }
        }
        Some(value.clone())
    };
    let input = fitting("input", INPUT_BYTES_MAX);
    let output = fitting("output", OUTPUT_BYTES_MAX);
    Some(Vector {
        path: path.to_owned(),
        about: about?,
        input: input?,
        output: output?,
    })
}
