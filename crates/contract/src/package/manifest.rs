//! `manifest.json`: who a package is and which files it consists of.

use super::{DESCRIPTOR_PATH, MANIFEST_PATH, check_path};
use crate::closed::Fields;
use crate::digest::Sha256Digest;
use crate::identity::PackageId;
use crate::json::Value;
use crate::limits::PACKAGE_BYTES_MAX;
use crate::pointer::Pointer;
use crate::problem::{ProblemCode, Problems};
use crate::visible;

/// The greatest version number.
pub const VERSION_MAX: i64 = 999_999_999;

const NAME_CHARS_MAX: usize = 80;
const SUMMARY_CHARS_MAX: usize = 300;

/// A manifest of schema version 2. Every field must be there; there are no
/// others.
///
/// | field | meaning |
/// |---|---|
/// | `schema_version` | 2 |
/// | `id` | see [`PackageId`] |
/// | `version` | 1 to [`VERSION_MAX`] |
/// | `name`, `summary`, `publisher`, `license` | one line of text each; claims of the author, never trusted |
/// | `provenance` | `"unsigned-local"`: nobody vouches for the author, and the operator acknowledges that |
/// | `permissions` | `network` false, `secrets`, `env` and `dependencies` empty |
/// | `no_learning` | true |
/// | `contributes` | `adapters`: exactly `["adapters/adapter.json"]` |
/// | `files` | every other file of the package: `path`, `size_bytes`, `sha256` |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The package's id.
    pub id: PackageId,
    /// The package's version; a greater number is a later version.
    pub version: u32,
    /// What people call the package.
    pub name: String,
    /// What it does, in a sentence.
    pub summary: String,
    /// Who says to have made it.
    pub publisher: String,
    /// The licence, as an SPDX expression or a name.
    pub license: String,
    /// Every file but the manifest, in the manifest's order.
    pub files: Vec<FileEntry>,
}

/// A file as the manifest lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// The path within the package.
    pub path: String,
    /// The size, in bytes.
    pub size_bytes: u64,
    /// The digest of the bytes.
    pub sha256: Sha256Digest,
    /// Where the manifest lists it.
    pub(super) place: Pointer,
}

/// What could be read of a manifest; the problems say what could not.
pub(super) struct ManifestDraft {
    pub id: Option<PackageId>,
    pub files: Vec<FileEntry>,
    pub manifest: Option<Manifest>,
}

const FIELDS: &[&str] = &[
    "schema_version",
    "id",
    "version",
    "name",
    "summary",
    "publisher",
    "license",
    "provenance",
    "permissions",
    "no_learning",
    "contributes",
    "files",
];

pub(super) fn read(document: &Value, problems: &mut Problems) -> ManifestDraft {
    let nothing = ManifestDraft {
        id: None,
        files: Vec::new(),
        manifest: None,
    };
    let Some(mut fields) = Fields::open(document, Pointer::root(), FIELDS, problems) else {
        return nothing;
    };
    fields.fixed(
        "schema_version",
        &2.into(),
        "this is how version 2 is told from others",
    );
    let id = read_id(&mut fields);
    let version = fields
        .integer("version", 1, VERSION_MAX)
        .and_then(|v| u32::try_from(v).ok());
    let name = fields.line("name", NAME_CHARS_MAX);
    let summary = fields.line("summary", SUMMARY_CHARS_MAX);
    let publisher = fields.line("publisher", NAME_CHARS_MAX);
    let license = fields.line("license", NAME_CHARS_MAX);
    let because = "there is no other provenance yet: nobody vouches for a package's author";
    fields.fixed("provenance", &"unsigned-local".into(), because);
    fields.fixed(
        "no_learning",
        &true.into(),
        "nothing is ever learnt from a package's runs",
    );
    read_permissions(&mut fields);
    read_contributes(&mut fields);
    let files = read_files(&mut fields);
    let manifest = (|| {
        Some(Manifest {
            id: id.clone()?,
            version: version?,
            name: name?,
            summary: summary?,
            publisher: publisher?,
            license: license?,
            files: files.clone(),
        })
    })();
    ManifestDraft {
        id,
        files,
        manifest,
    }
}

fn read_id(fields: &mut Fields<'_, '_>) -> Option<PackageId> {
    let text = fields.string("id")?;
    match text.parse() {
        Ok(id) => Some(id),
        Err(error) => {
            let what = format!(
                "\"{}\" is not a package id: {error}",
                visible::escape_cut(text, 70)
            );
            let remedy = "use an id such as local.time-ledger-summary";
            fields.problems.at(
                ProblemCode::BadName,
                &fields.pointer.member("id"),
                what,
                remedy,
            );
            None
        }
    }
}

fn read_permissions(fields: &mut Fields<'_, '_>) {
    const KNOWN: &[&str] = &["network", "secrets", "env", "dependencies"];
    let Some((value, place)) = fields.required("permissions") else {
        return;
    };
    let Some(mut inner) = Fields::open(value, place, KNOWN, fields.problems) else {
        return;
    };
    inner.fixed("network", &false.into(), "a package never has network");
    let none = Value::Array(Vec::new());
    inner.fixed("secrets", &none, "a package never has secrets");
    inner.fixed("env", &none, "a package never has an environment");
    inner.fixed(
        "dependencies",
        &none,
        "a package has the standard library and nothing else",
    );
}

fn read_contributes(fields: &mut Fields<'_, '_>) {
    let Some((value, place)) = fields.required("contributes") else {
        return;
    };
    let Some(mut inner) = Fields::open(value, place, &["adapters"], fields.problems) else {
        return;
    };
    let only = Value::Array(vec![DESCRIPTOR_PATH.into()]);
    inner.fixed(
        "adapters",
        &only,
        "a package has one adapter, and its path is fixed",
    );
}

fn read_files(fields: &mut Fields<'_, '_>) -> Vec<FileEntry> {
    let Some((items, place)) = fields.array("files") else {
        return Vec::new();
    };
    let mut entries: Vec<FileEntry> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let Some(entry) = read_file(item, place.item(index), fields.problems) else {
            continue;
        };
        if entries.iter().any(|other| other.path == entry.path) {
            let what = format!("\"{}\" is listed twice", entry.path);
            fields
                .problems
                .at(ProblemCode::Duplicate, &entry.place, what, "list it once");
            continue;
        }
        entries.push(entry);
    }
    entries
}

fn read_file(item: &Value, place: Pointer, problems: &mut Problems) -> Option<FileEntry> {
    const KNOWN: &[&str] = &["path", "size_bytes", "sha256"];
    let mut fields = Fields::open(item, place.clone(), KNOWN, problems)?;
    let path = fields.string("path");
    let most = i64::try_from(PACKAGE_BYTES_MAX).unwrap_or(i64::MAX);
    let size_bytes = fields
        .integer("size_bytes", 0, most)
        .and_then(|size| u64::try_from(size).ok());
    let sha256 = fields.digest("sha256");
    let path = path?;
    let wrong = if path == MANIFEST_PATH {
        Some("the manifest does not list itself".to_owned())
    } else {
        let error = check_path(path).err();
        error.map(|error| {
            format!(
                "\"{}\" is not a path: {error}",
                visible::escape_cut(path, 100)
            )
        })
    };
    if let Some(what) = wrong {
        let code = ProblemCode::BadName;
        fields.problems.at(
            code,
            &place.member("path"),
            what,
            "correct or remove the entry",
        );
        return None;
    }
    Some(FileEntry {
        path: path.to_owned(),
        size_bytes: size_bytes?,
        sha256: sha256?,
        place,
    })
}
