//! `lazaret package inspect`: everything that an operator will approve.

use std::fmt::Write as _;

use anyhow::Result;
use lazaret_contract::json::{self, Value};
use lazaret_contract::package::{Contract, Package, Vector};
use lazaret_contract::visible;
use lazaret_engine::Blocked;
use lazaret_engine::approval::Subject;
use lazaret_engine::closure::accepted_in_this_build;
use serde::Serialize;

use super::code::{self, Shown};
use super::problems;
use crate::arguments::Inspect;
use crate::exit::Exit;
use crate::{show, talk};

/// The version of the JSON form.
const INSPECT_SCHEMA: &str = "lazaret-package-inspect/1";

/// How much of a golden vector's input or output is shown to people.
const VECTOR_CHARS_MAX: usize = 400;

/// What `inspect --json` prints. Every text is printable ASCII.
#[derive(Serialize)]
struct View<'a> {
    schema: &'static str,
    directory: String,
    /// What an approval is about: package, files, digests, permissions, limits, profile.
    subject: &'a Subject,
    code_sha256: String,
    claims: Claims,
    adapter: Adapter,
    input: Side,
    output: Side,
    vectors: Vec<VectorRow>,
    code: Vec<Shown>,
}

/// What the author says; nobody vouches for it.
#[derive(Serialize)]
struct Claims {
    provenance: &'static str,
    name: String,
    summary: String,
    publisher: String,
    license: String,
}

#[derive(Serialize)]
struct Adapter {
    id: String,
    summary: String,
}

/// A schema.
#[derive(Serialize)]
struct Side {
    outline: Vec<String>,
    /// Canonical JSON, escaped; null for the formatter's, which is any document.
    canonical: Option<String>,
    sha256: String,
}

/// A golden vector; input and output as compact JSON, escaped.
#[derive(Serialize)]
struct VectorRow {
    path: String,
    about: String,
    input: String,
    output: String,
}

/// Shows the package.
pub fn run(inspect: &Inspect) -> Result<Exit> {
    let package = match super::open(&inspect.dir) {
        Ok(package) => package,
        Err(unfit) => return problems::refuse(&inspect.dir, &unfit, inspect.json),
    };
    let subject = match subject(&package) {
        Ok(subject) => subject,
        Err(blocked) => {
            talk::blocked(&blocked);
            return Ok(Exit::Blocked);
        }
    };
    if inspect.json {
        talk::give_json(&view(inspect, &package, &subject))?;
    } else {
        talk::give(text(&package, &subject).as_bytes())?;
    }
    Ok(Exit::Done)
}

fn subject(package: &Package) -> Result<Subject, Blocked> {
    let accepted = accepted_in_this_build(&package.descriptor.binding.profile)?;
    Subject::new(package, &accepted)
}

fn view<'a>(inspect: &Inspect, package: &Package, subject: &'a Subject) -> View<'a> {
    let (manifest, descriptor) = (&package.manifest, &package.descriptor);
    View {
        schema: INSPECT_SCHEMA,
        directory: problems::name(&inspect.dir),
        subject,
        code_sha256: package.digests.code.to_string(),
        claims: Claims {
            provenance: "unsigned-local",
            name: visible::escape(&manifest.name),
            summary: visible::escape(&manifest.summary),
            publisher: visible::escape(&manifest.publisher),
            license: visible::escape(&manifest.license),
        },
        adapter: Adapter {
            id: descriptor.adapter.to_string(),
            summary: visible::escape(&descriptor.summary),
        },
        input: side(&descriptor.input),
        output: side(&descriptor.output),
        vectors: package.vectors.iter().map(vector).collect(),
        code: code::lines(package.code()),
    }
}

fn side(contract: &Contract) -> Side {
    let canonical = match contract {
        Contract::Schema(schema) => Some(visible::escape(&String::from_utf8_lossy(
            schema.canonical(),
        ))),
        Contract::AnyStrictJson => None,
    };
    Side {
        outline: contract.outline(),
        canonical,
        sha256: contract.digest().to_string(),
    }
}

fn vector(vector: &Vector) -> VectorRow {
    VectorRow {
        path: vector.path.clone(),
        about: visible::escape(&vector.about),
        input: visible::escape(&compact(&vector.input)),
        output: visible::escape(&compact(&vector.output)),
    }
}

fn compact(value: &Value) -> String {
    String::from_utf8_lossy(&json::write_compact(value)).into_owned()
}

fn text(package: &Package, subject: &Subject) -> String {
    let mut shown = String::new();
    let mut put = |line: &str| {
        // Writing to a String cannot fail.
        let _ = writeln!(shown, "{line}");
    };
    put("To be approved:");
    put(show::subject(subject).trim_end_matches('\n'));
    put(&format!("  {:<12} {}", "code", package.digests.code));
    put("The author's claims; provenance unsigned-local: nobody vouches for them:");
    put(show::manifest(package).trim_end_matches('\n'));
    let summary = visible::escape(&package.descriptor.summary);
    put(&format!("  {:<12} {summary}", "adapter says"));
    put("Golden vectors; review data, not run:");
    for vector in &package.vectors {
        put(&format!(
            "  {:<12} {}",
            "vector",
            visible::escape(&vector.path)
        ));
        put(&format!(
            "    about      {}",
            visible::escape(&vector.about)
        ));
        for (name, value) in [("input", &vector.input), ("output", &vector.output)] {
            let cut = visible::escape_cut(&compact(value), VECTOR_CHARS_MAX);
            put(&format!("    {name:<10} {cut}"));
        }
    }
    if package.vectors.is_empty() {
        put("  none");
    }
    put("adapter.py, all of it (| plain, ! holds escapes, + continues the line above):");
    for line in code::lines(package.code()) {
        put(&format!("  {line}"));
    }
    shown
}
