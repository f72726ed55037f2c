//! Looking at a package: either it is all that the contract says, or every
//! problem that it has.

use super::descriptor::{self, Descriptor};
use super::digests::PackageDigests;
use super::files::PackageFiles;
use super::manifest::{self, FileEntry, Manifest};
use super::vector::{self, Vector};
use super::{
    CODE_PATH, DESCRIPTOR_PATH, MANIFEST_PATH, VECTORS_DIRECTORY, VECTORS_MAX, content_digest,
};
use crate::bundled;
use crate::digest::Sha256Digest;
use crate::identity::{Capability, FORMATTER_ID, PackageId};
use crate::json::{self, Bounds, Value};
use crate::limits::{INPUT_BYTES_MAX, OUTPUT_BYTES_MAX, PACKAGE_DOCUMENT_BYTES_MAX};
use crate::pointer::Pointer;
use crate::problem::{Place, Problem, ProblemCode, Problems};
use crate::profiles::Binding;
use crate::text_rules;

/// How the closure that a package is bound to is judged.
#[derive(Debug, Clone, Copy)]
pub enum BindingCheck<'a> {
    /// Only that it names a known profile. For tools that look at packages
    /// without any closure at hand; never for anything that leads to a run.
    Form,
    /// That it is one of these, which were accepted.
    Accepted(&'a [Binding]),
}

/// A package without a problem: what an operator can be asked to approve.
#[derive(Debug, Clone)]
pub struct Package {
    /// The exact bytes that were looked at, and that are to be staged.
    pub files: PackageFiles,
    /// The manifest.
    pub manifest: Manifest,
    /// The descriptor of the one adapter.
    pub descriptor: Descriptor,
    /// The golden vectors, sorted by path.
    pub vectors: Vec<Vector>,
    /// What a task asks for; derived.
    pub capability: Capability,
    /// The digests that approvals and receipts name.
    pub digests: PackageDigests,
}

/// What a tombstone denies, so that a new name does not help a version that
/// must never run again (DESIGN.md section 4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DenialKeys {
    /// The content digest.
    pub content: Sha256Digest,
    /// The code digest.
    pub code: Sha256Digest,
    /// `<id>@<version>`.
    pub id_and_version: String,
}

impl Package {
    /// The exact bytes of `adapter.py`.
    pub fn code(&self) -> &[u8] {
        self.files.get(CODE_PATH).unwrap_or_default()
    }

    /// `<id>@<version>`.
    pub fn id_and_version(&self) -> String {
        format!("{}@{}", self.manifest.id, self.manifest.version)
    }

    /// What a tombstone of this version denies.
    pub fn denial_keys(&self) -> DenialKeys {
        DenialKeys {
            content: self.digests.content,
            code: self.digests.code,
            id_and_version: self.id_and_version(),
        }
    }
}

/// Looks at a package without running anything of it.
pub fn inspect(files: &PackageFiles, bindings: BindingCheck<'_>) -> Result<Package, Problems> {
    let mut look = Look {
        files,
        problems: Problems::none(),
    };
    let draft = look.manifest();
    let id = draft.as_ref().and_then(|draft| draft.id.clone());
    if let Some(draft) = &draft {
        look.listing(&draft.files);
    }
    look.code_text();
    let descriptor = look.descriptor(id.as_ref());
    let vectors = look.vectors(descriptor.as_ref());
    if let Some(descriptor) = &descriptor {
        look.code_binding(descriptor);
        look.closure(descriptor, bindings);
        if let Some(id) = &id {
            look.reserved(id, &descriptor.binding);
        }
    }
    let manifest = draft.and_then(|draft| draft.manifest);
    if look.problems.is_empty() && (manifest.is_none() || descriptor.is_none()) {
        // No known way leads here; a refusal must still have a reason.
        let what = "the package could not be read whole".to_owned();
        look.whole(
            ProblemCode::Json,
            "",
            what,
            "report this as a fault of Lazaret",
        );
    }
    let Look { problems, .. } = look;
    let (Some(manifest), Some(descriptor), true) = (manifest, descriptor, problems.is_empty())
    else {
        return Err(problems);
    };
    let capability = Capability::derive(&manifest.id, &descriptor.adapter);
    let digests = PackageDigests::of(
        files,
        &capability,
        descriptor.input.digest(),
        descriptor.output.digest(),
    );
    Ok(Package {
        files: files.clone(),
        manifest,
        descriptor,
        vectors,
        capability,
        digests,
    })
}

struct Look<'a> {
    files: &'a PackageFiles,
    problems: Problems,
}

impl Look<'_> {
    fn manifest(&mut self) -> Option<manifest::ManifestDraft> {
        let document = self.document(MANIFEST_PATH, PACKAGE_DOCUMENT_BYTES_MAX)?;
        let mut problems = Problems::none();
        let draft = manifest::read(&document, &mut problems);
        self.problems
            .add_nested(problems, MANIFEST_PATH, &Pointer::root());
        Some(draft)
    }

    /// Every file is listed with its size and digest, and every listed file is
    /// there.
    fn listing(&mut self, listed: &[FileEntry]) {
        for entry in listed {
            let Some(bytes) = self.files.get(&entry.path) else {
                let what = format!("\"{}\" is listed and not there", entry.path);
                self.in_manifest(
                    ProblemCode::MissingFile,
                    &entry.place,
                    what,
                    "add the file or remove the entry".into(),
                );
                continue;
            };
            if bytes.len() as u64 != entry.size_bytes {
                let what = format!("\"{}\" has {} bytes", entry.path, bytes.len());
                let place = entry.place.member("size_bytes");
                self.in_manifest(
                    ProblemCode::Mismatch,
                    &place,
                    what,
                    format!("write {}", bytes.len()),
                );
            }
            let digest = Sha256Digest::of(bytes);
            if digest != entry.sha256 {
                let what = format!("the digest is not that of \"{}\"", entry.path);
                let place = entry.place.member("sha256");
                self.in_manifest(
                    ProblemCode::Mismatch,
                    &place,
                    what,
                    format!("write {digest}"),
                );
            }
        }
        for (path, _) in self.files.iter().filter(|(path, _)| *path != MANIFEST_PATH) {
            if !listed.iter().any(|entry| entry.path == path) {
                let what = "the manifest does not list this file".to_owned();
                self.whole(ProblemCode::UnlistedFile, path, what, "list or remove it");
            }
        }
    }

    fn code_text(&mut self) {
        let Some(code) = self.files.get(CODE_PATH) else {
            self.whole(
                ProblemCode::MissingFile,
                CODE_PATH,
                "the code is not there".into(),
                "add it",
            );
            return;
        };
        for fault in text_rules::check_adapter(code) {
            self.problems.push(Problem {
                code: ProblemCode::CodeText,
                file: CODE_PATH.to_owned(),
                place: Place::Line {
                    line: fault.line,
                    column: fault.column,
                },
                what: fault.found,
                remedy: fault.rule.remedy().to_owned(),
            });
        }
    }

    fn descriptor(&mut self, id: Option<&PackageId>) -> Option<Descriptor> {
        let document = self.document(DESCRIPTOR_PATH, PACKAGE_DOCUMENT_BYTES_MAX)?;
        let mut problems = Problems::none();
        let is_formatter = id.is_some_and(PackageId::is_formatter);
        let descriptor = descriptor::read(&document, is_formatter, &mut problems);
        self.problems
            .add_nested(problems, DESCRIPTOR_PATH, &Pointer::root());
        descriptor
    }

    fn vectors(&mut self, descriptor: Option<&Descriptor>) -> Vec<Vector> {
        let in_directory = |path: &str| path.starts_with(&format!("{VECTORS_DIRECTORY}/"));
        let paths: Vec<String> = self
            .files
            .iter()
            .map(|(path, _)| path.to_owned())
            .filter(|path| in_directory(path))
            .collect();
        if paths.len() > VECTORS_MAX {
            let what = format!("the package has {} golden vectors", paths.len());
            self.whole(
                ProblemCode::TooLarge,
                VECTORS_DIRECTORY,
                what,
                "use at most 3",
            );
        }
        let mut vectors = Vec::new();
        for path in paths {
            // An input, an output, and a frame around them.
            let bytes_max = 2 * (INPUT_BYTES_MAX + OUTPUT_BYTES_MAX);
            let Some(document) = self.document(&path, bytes_max) else {
                continue;
            };
            let mut problems = Problems::none();
            vectors.extend(vector::read(&path, &document, descriptor, &mut problems));
            self.problems.add_nested(problems, &path, &Pointer::root());
        }
        vectors
    }

    fn code_binding(&mut self, descriptor: &Descriptor) {
        let Some(code) = self.files.get(CODE_PATH) else {
            return;
        };
        let place = Pointer::root().member("code");
        let digest = Sha256Digest::of(code);
        if descriptor.code_bytes != code.len() as u64 {
            let what = format!("{CODE_PATH} has {} bytes", code.len());
            let remedy = format!("write {}", code.len());
            self.in_descriptor(
                ProblemCode::Mismatch,
                &place.member("size_bytes"),
                what,
                remedy,
            );
        }
        if descriptor.code_sha256 != digest {
            let what = format!("the digest is not that of {CODE_PATH}");
            self.in_descriptor(
                ProblemCode::Mismatch,
                &place.member("sha256"),
                what,
                format!("write {digest}"),
            );
        }
    }

    fn closure(&mut self, descriptor: &Descriptor, bindings: BindingCheck<'_>) {
        let BindingCheck::Accepted(accepted) = bindings else {
            return;
        };
        if accepted.contains(&descriptor.binding) {
            return;
        }
        let profile = &descriptor.binding.profile;
        let of_profile = accepted.iter().find(|binding| binding.profile == *profile);
        let (what, remedy) = match of_profile {
            Some(binding) => (
                format!(
                    "the package is bound to another closure of {profile} than the accepted one"
                ),
                format!("write {}, and review the package again", binding.closure),
            ),
            None => (
                format!("this Lazaret has accepted no closure of {profile}"),
                "bind the package to another profile, or use a Lazaret that has".to_owned(),
            ),
        };
        let place = Pointer::root().member("profile").member("closure_sha256");
        self.in_descriptor(ProblemCode::Binding, &place, what, remedy);
    }

    /// A reserved id belongs to exactly the bytes that are bundled under it.
    fn reserved(&mut self, id: &PackageId, binding: &Binding) {
        if !id.is_reserved() {
            return;
        }
        let bundled = id
            .is_formatter()
            .then(|| bundled::formatter_content(binding))
            .flatten();
        if bundled == Some(content_digest(self.files)) {
            return;
        }
        let place = Pointer::root().member("id");
        let (what, remedy) = match id.is_formatter() {
            true => (
                format!("these are not the bytes of {FORMATTER_ID}, of which there is one version"),
                "give your package an id of its own",
            ),
            false => (
                format!("ids that begin like \"{id}\" belong to Lazaret"),
                "begin the id with another label, for example local",
            ),
        };
        self.in_manifest(ProblemCode::ReservedId, &place, what, remedy.to_owned());
    }

    /// Parses a document of the package; tells when it is not there or not
    /// strict JSON.
    fn document(&mut self, path: &str, bytes_max: usize) -> Option<Value> {
        let Some(bytes) = self.files.get(path) else {
            self.whole(
                ProblemCode::MissingFile,
                path,
                "the file is not there".into(),
                "add it",
            );
            return None;
        };
        match json::parse_bounded(bytes, Bounds::document(bytes_max)) {
            Ok(document) => Some(document),
            Err(error) => {
                self.problems.push(Problem {
                    code: ProblemCode::Json,
                    file: path.to_owned(),
                    place: Place::Line {
                        line: error.line,
                        column: error.column,
                    },
                    what: format!("{}: {}", error.kind, error.detail),
                    remedy: "correct the JSON".to_owned(),
                });
                None
            }
        }
    }

    fn whole(&mut self, code: ProblemCode, file: &str, what: String, remedy: &str) {
        let (file, remedy) = (file.to_owned(), remedy.to_owned());
        self.problems.push(Problem {
            code,
            file,
            place: Place::Whole,
            what,
            remedy,
        });
    }

    fn in_manifest(&mut self, code: ProblemCode, place: &Pointer, what: String, remedy: String) {
        self.at(MANIFEST_PATH, code, place, what, remedy);
    }

    fn in_descriptor(&mut self, code: ProblemCode, place: &Pointer, what: String, remedy: String) {
        self.at(DESCRIPTOR_PATH, code, place, what, remedy);
    }

    fn at(&mut self, file: &str, code: ProblemCode, place: &Pointer, what: String, remedy: String) {
        let (file, place) = (file.to_owned(), Place::Pointer(place.clone()));
        self.problems.push(Problem {
            code,
            file,
            place,
            what,
            remedy,
        });
    }
}
