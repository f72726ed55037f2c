//! Sealing: filling in every digest and size that a package's documents repeat.
//!
//! It is how scaffolding, the bundled packages and an author's own tools get a
//! consistent package after an edit. It is no judgement: a sealed package is
//! inspected like any other, and what an operator approves are the digests that
//! the inspection computes.

use super::digests::{file_entry, object};
use super::files::PackageFiles;
use super::{CODE_PATH, DESCRIPTOR_PATH, MANIFEST_PATH};
use crate::digest::Sha256Digest;
use crate::json::{self, Bounds, Object, Value};
use crate::limits::PACKAGE_DOCUMENT_BYTES_MAX;
use crate::problem::{Place, Problem, ProblemCode, Problems};
use crate::profiles::{Binding, status_of};
use crate::schema;

/// The closure of a package that is bound to none yet. It is the digest of
/// nothing that exists, and no accepted closure ever has it.
pub const UNBOUND: Sha256Digest = Sha256Digest::from_bytes([0; 32]);

/// Gives the package with its binding, code, schema and file digests filled in.
/// Both documents come out in the formatter's form; everything else stays as it
/// is. Sealing a sealed package changes nothing.
pub fn seal(files: &PackageFiles, binding: &Binding) -> Result<PackageFiles, Problems> {
    let mut descriptor = parse_object(files, DESCRIPTOR_PATH)?;
    let code = files.get(CODE_PATH).ok_or_else(|| {
        problem(
            ProblemCode::MissingFile,
            CODE_PATH,
            "the code is not there".to_owned(),
        )
    })?;
    let Some(status) = status_of(&binding.profile) else {
        let what = format!(
            "there is no profile \"{}\"",
            crate::visible::escape_cut(&binding.profile, 40)
        );
        return Err(problem(ProblemCode::Binding, DESCRIPTOR_PATH, what));
    };
    set(&mut descriptor, "code", file_entry(CODE_PATH, code));
    for name in ["input_schema", "output_schema"] {
        if let Some(document) = descriptor.get(name) {
            let digest = schema::digest_of(document).to_string();
            set(&mut descriptor, &format!("{name}_sha256"), digest.into());
        }
    }
    let profile = object([
        ("id", binding.profile.as_str().into()),
        ("status", status.name().into()),
        ("closure_sha256", binding.closure.to_string().into()),
    ]);
    set(&mut descriptor, "profile", profile);
    let descriptor = json::write_pretty(&Value::Object(descriptor));

    let mut sealed: Vec<(String, Vec<u8>)> = files
        .iter()
        .filter(|(path, _)| ![MANIFEST_PATH, DESCRIPTOR_PATH].contains(path))
        .map(|(path, bytes)| (path.to_owned(), bytes.to_vec()))
        .collect();
    sealed.push((DESCRIPTOR_PATH.to_owned(), descriptor));
    sealed.sort();
    let mut manifest = parse_object(files, MANIFEST_PATH)?;
    let listed = sealed
        .iter()
        .map(|(path, bytes)| file_entry(path, bytes))
        .collect();
    set(&mut manifest, "files", Value::Array(listed));
    sealed.push((
        MANIFEST_PATH.to_owned(),
        json::write_pretty(&Value::Object(manifest)),
    ));
    PackageFiles::new(sealed)
}

fn set(object: &mut Object, name: &str, value: Value) {
    object.insert(name.to_owned(), value);
}

fn parse_object(files: &PackageFiles, path: &str) -> Result<Object, Problems> {
    let Some(bytes) = files.get(path) else {
        return Err(problem(
            ProblemCode::MissingFile,
            path,
            "the file is not there".to_owned(),
        ));
    };
    match json::parse_bounded(bytes, Bounds::document(PACKAGE_DOCUMENT_BYTES_MAX)) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(problem(
            ProblemCode::WrongType,
            path,
            "the document is not an object".to_owned(),
        )),
        Err(error) => Err(problem(ProblemCode::Json, path, error.to_string())),
    }
}

fn problem(code: ProblemCode, file: &str, what: String) -> Problems {
    let mut problems = Problems::none();
    let (file, remedy) = (file.to_owned(), "correct it first".to_owned());
    problems.push(Problem {
        code,
        file,
        place: Place::Whole,
        what,
        remedy,
    });
    problems
}
