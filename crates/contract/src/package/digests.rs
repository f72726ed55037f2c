//! The digests that approvals, tombstones and receipts name.
//!
//! Each is the SHA-256 of a small JSON document in canonical form, so that
//! anybody can recompute it with other tools: list the files with their sizes
//! and `sha256sum`s, write the document without white space and with sorted
//! keys, hash it. Each document begins with its own schema name, so that no
//! digest of one kind is ever one of another.

use super::files::PackageFiles;
use super::{CODE_PATH, resources};
use crate::digest::Sha256Digest;
use crate::identity::Capability;
use crate::json::{Object, Value, write_compact};
use crate::profiles::Binding;

/// The digests of a package that was inspected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackageDigests {
    /// Over every file's path, size and bytes: [`content_digest`].
    pub content: Sha256Digest,
    /// Of the bytes of `adapter.py`.
    pub code: Sha256Digest,
    /// Over what the package may do: [`authority_digest`].
    pub authority: Sha256Digest,
    /// Of the input schema.
    pub input_schema: Sha256Digest,
    /// Of the output schema.
    pub output_schema: Sha256Digest,
}

impl PackageDigests {
    pub(super) fn of(
        files: &PackageFiles,
        capability: &Capability,
        input_schema: Sha256Digest,
        output_schema: Sha256Digest,
    ) -> Self {
        Self {
            content: content_digest(files),
            code: Sha256Digest::of(files.get(CODE_PATH).unwrap_or_default()),
            authority: authority_digest(capability),
            input_schema,
            output_schema,
        }
    }
}

/// Over every file of the package, manifest included:
/// `{"files":[{"path":…,"sha256":…,"size_bytes":…},…],"schema":"lazaret-content/1"}`,
/// the files sorted by path.
pub fn content_digest(files: &PackageFiles) -> Sha256Digest {
    let listed = files
        .iter()
        .map(|(path, bytes)| file_entry(path, bytes))
        .collect();
    digest_of_fields([
        ("schema", "lazaret-content/1".into()),
        ("files", Value::Array(listed)),
    ])
}

/// One file as the manifest and the content digest list it.
pub(super) fn file_entry(path: &str, bytes: &[u8]) -> Value {
    object([
        ("path", path.into()),
        ("sha256", Sha256Digest::of(bytes).to_string().into()),
        ("size_bytes", Value::Integer((bytes.len() as u64).into())),
    ])
}

/// Over what a package may do: its capability, its permissions (there are
/// none), the resources and that nothing is learnt from it:
/// `{"capability":…,"dependencies":[],"env":[],"network":false,
/// "no_learning":true,"resources":{…},"schema":"lazaret-authority/1","secrets":[]}`.
pub fn authority_digest(capability: &Capability) -> Sha256Digest {
    let none = || Value::Array(Vec::new());
    digest_of_fields([
        ("schema", "lazaret-authority/1".into()),
        ("capability", capability.to_string().into()),
        ("network", false.into()),
        ("secrets", none()),
        ("env", none()),
        ("dependencies", none()),
        ("no_learning", true.into()),
        ("resources", resources()),
    ])
}

/// Over what a package runs with: the profile, its closure and its policy
/// (filter): `{"closure":…,"policy":…,"profile":…,"schema":"lazaret-dependency/1"}`.
pub fn dependency_digest(binding: &Binding, policy: &Sha256Digest) -> Sha256Digest {
    digest_of_fields([
        ("schema", "lazaret-dependency/1".into()),
        ("profile", binding.profile.as_str().into()),
        ("closure", binding.closure.to_string().into()),
        ("policy", policy.to_string().into()),
    ])
}

fn digest_of_fields<const N: usize>(fields: [(&str, Value); N]) -> Sha256Digest {
    Sha256Digest::of(&write_compact(&object(fields)))
}

pub(super) fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let fields: Object = fields
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    Value::Object(fields)
}
