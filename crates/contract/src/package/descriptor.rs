//! `adapters/adapter.json`: what a package's one adapter takes, gives and runs
//! with.

use super::{CODE_PATH, resources};
use crate::closed::{Fields, shown};
use crate::digest::Sha256Digest;
use crate::identity::AdapterId;
use crate::json::Value;
use crate::limits::PACKAGE_CODE_BYTES_MAX;
use crate::pointer::Pointer;
use crate::problem::{ProblemCode, Problems};
use crate::profiles::{Binding, PROFILE_IDS, status_of};
use crate::schema::{self, Schema, Violations};
use crate::suggest;
use crate::visible;

const SUMMARY_CHARS_MAX: usize = 300;

/// What the formatter's descriptor has in place of a schema.
pub(super) const ANY_STRICT_JSON: &str = "any-strict-json";

/// What an input or an output may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contract {
    /// A closed schema.
    Schema(Schema),
    /// Any document of strict JSON within the limits; written
    /// `"any-strict-json"`. Only the bundled formatter has it, and its output is
    /// compared byte by byte instead.
    AnyStrictJson,
}

impl Contract {
    /// Checks a value that was parsed strictly.
    pub fn validate(&self, value: &Value) -> Result<(), Violations> {
        match self {
            Self::Schema(schema) => schema.validate(value),
            Self::AnyStrictJson => Ok(()),
        }
    }

    /// The digest of the canonical JSON of what stands in the descriptor.
    pub fn digest(&self) -> Sha256Digest {
        match self {
            Self::Schema(schema) => schema.digest(),
            Self::AnyStrictJson => schema::digest_of(&ANY_STRICT_JSON.into()),
        }
    }

    /// In words, a line for each part: what an operator approves.
    pub fn outline(&self) -> Vec<String> {
        match self {
            Self::Schema(schema) => schema.root().outline(),
            Self::AnyStrictJson => vec!["any strict JSON document".to_owned()],
        }
    }
}

/// A descriptor of schema version 1. Every field must be there; there are no
/// others.
///
/// | field | meaning |
/// |---|---|
/// | `schema_version` | 1 |
/// | `adapter` | see [`AdapterId`] |
/// | `summary` | one line of text: what the adapter does |
/// | `code` | `path` (`"adapter.py"`), `size_bytes`, `sha256` |
/// | `input_schema`, `output_schema` | see [`schema`](crate::schema) |
/// | `input_schema_sha256`, `output_schema_sha256` | their digests as canonical JSON |
/// | `profile` | `id`, `status` (`"accepted"` or `"candidate"`), `closure_sha256` |
/// | `resources` | exactly those of [`resources`] |
/// | `no_learning` | true |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptor {
    /// The adapter's id.
    pub adapter: AdapterId,
    /// What it does, in a sentence.
    pub summary: String,
    /// The size of the code, in bytes.
    pub code_bytes: u64,
    /// The digest of the code.
    pub code_sha256: Sha256Digest,
    /// What it takes.
    pub input: Contract,
    /// What it gives.
    pub output: Contract,
    /// What it runs with.
    pub binding: Binding,
}

const FIELDS: &[&str] = &[
    "schema_version",
    "adapter",
    "summary",
    "code",
    "input_schema",
    "input_schema_sha256",
    "output_schema",
    "output_schema_sha256",
    "profile",
    "resources",
    "no_learning",
];

/// Reads a descriptor; `is_formatter` says that it may take any document.
pub(super) fn read(
    document: &Value,
    is_formatter: bool,
    problems: &mut Problems,
) -> Option<Descriptor> {
    let mut fields = Fields::open(document, Pointer::root(), FIELDS, problems)?;
    fields.fixed(
        "schema_version",
        &1.into(),
        "this is how version 1 is told from others",
    );
    let adapter = read_adapter(&mut fields);
    let summary = fields.line("summary", SUMMARY_CHARS_MAX);
    let code = read_code(&mut fields);
    let input = read_contract(&mut fields, "input_schema", is_formatter);
    let output = read_contract(&mut fields, "output_schema", is_formatter);
    let binding = read_profile(&mut fields);
    read_resources(&mut fields);
    fields.fixed(
        "no_learning",
        &true.into(),
        "nothing is ever learnt from a package's runs",
    );
    let (code_bytes, code_sha256) = code?;
    Some(Descriptor {
        adapter: adapter?,
        summary: summary?,
        code_bytes,
        code_sha256,
        input: input?,
        output: output?,
        binding: binding?,
    })
}

fn read_adapter(fields: &mut Fields<'_, '_>) -> Option<AdapterId> {
    let text = fields.string("adapter")?;
    match text.parse() {
        Ok(id) => Some(id),
        Err(error) => {
            let what = format!(
                "\"{}\" is not an adapter id: {error}",
                visible::escape_cut(text, 40)
            );
            let place = fields.pointer.member("adapter");
            fields.problems.at(
                ProblemCode::BadName,
                &place,
                what,
                "use an id such as summarize",
            );
            None
        }
    }
}

fn read_code(fields: &mut Fields<'_, '_>) -> Option<(u64, Sha256Digest)> {
    let (value, place) = fields.required("code")?;
    let mut code = Fields::open(
        value,
        place,
        &["path", "size_bytes", "sha256"],
        fields.problems,
    )?;
    code.fixed("path", &CODE_PATH.into(), "the code's path is fixed");
    let most = i64::try_from(PACKAGE_CODE_BYTES_MAX).unwrap_or(i64::MAX);
    let size_bytes = code
        .integer("size_bytes", 0, most)
        .and_then(|size| u64::try_from(size).ok());
    let sha256 = code.digest("sha256");
    Some((size_bytes?, sha256?))
}

fn read_contract(fields: &mut Fields<'_, '_>, name: &str, is_formatter: bool) -> Option<Contract> {
    let document = fields.required(name);
    let digest_name = format!("{name}_sha256");
    let written = fields.digest(&digest_name);
    let (document, place) = document?;
    if let Some(written) = written {
        let computed = schema::digest_of(document);
        if written != computed {
            let what = "the digest is not that of the schema as canonical JSON";
            let place = fields.pointer.member(&digest_name);
            fields.problems.at(
                ProblemCode::Mismatch,
                &place,
                what,
                format!("write {computed}"),
            );
        }
    }
    if *document == ANY_STRICT_JSON.into() {
        if is_formatter {
            return Some(Contract::AnyStrictJson);
        }
        let what = "only the bundled formatter takes any document";
        fields
            .problems
            .at(ProblemCode::ReservedId, &place, what, "write a schema");
        return None;
    }
    match Schema::load(document) {
        Ok(schema) => Some(Contract::Schema(schema)),
        Err(inner) => {
            fields.problems.add_nested(inner, "", &place);
            None
        }
    }
}

fn read_profile(fields: &mut Fields<'_, '_>) -> Option<Binding> {
    let (value, place) = fields.required("profile")?;
    let known = &["id", "status", "closure_sha256"];
    let mut profile = Fields::open(value, place, known, fields.problems)?;
    let id = profile.string("id");
    let closure = profile.digest("closure_sha256");
    let id = id?;
    let Some(status) = status_of(id) else {
        let what = format!("there is no profile \"{}\"", visible::escape_cut(id, 40));
        let remedy = match suggest::nearest(id, &PROFILE_IDS) {
            Some(meant) => format!("did you mean \"{meant}\"?"),
            None => format!("the profiles are {}", PROFILE_IDS.join(" and ")),
        };
        profile.problems.at(
            ProblemCode::Binding,
            &profile.pointer.member("id"),
            what,
            remedy,
        );
        return None;
    };
    profile.fixed(
        "status",
        &status.name().into(),
        "the standing of a profile is not the package's to say",
    );
    Some(Binding {
        profile: id.to_owned(),
        closure: closure?,
    })
}

fn read_resources(fields: &mut Fields<'_, '_>) {
    let Some((value, place)) = fields.required("resources") else {
        return;
    };
    let Value::Object(only) = resources() else {
        return;
    };
    let known: Vec<&str> = only.keys().map(String::as_str).collect();
    let Some(mut inner) = Fields::open(value, place, &known, fields.problems) else {
        return;
    };
    for (name, limit) in &only {
        let because = format!("the profile's limit is {}", shown(limit));
        inner.fixed(name, limit, &because);
    }
}
