//! The bill of materials of a closure: CycloneDX 1.6.
//!
//! Made from the closure's manifest and from nothing else, so it is as
//! reproducible as the closure. Signed, it is the predicate of a statement whose
//! subjects are the closure's files; alone, as [`document`] gives it, any reader of
//! CycloneDX takes it. It names what went in; it says nothing about faults in it.

use std::collections::BTreeMap;

use lazaret_contract::digest::Sha256Digest;
use lazaret_contract::json;
use lazaret_profile::manifest::{ClosureManifest, Role};

use super::Predicate;
use super::build::{BuildReceiptError, package_url, subjects_of};
use super::shared::CLOSURE_SUBJECT;
use crate::part::{At, FormError, Part, constant, record, words};
use crate::statement::{Statement, Subject, find};
use crate::text::{Id, Licence, Name, TextError, Uri};

constant! {
    /// The format's name.
    pub struct BomFormat = "CycloneDX";
}

constant! {
    /// The format's version.
    pub struct SpecVersion = "1.6";
}

constant! {
    /// The version of a document that is never revised: another closure has
    /// another document.
    pub struct BomVersion = 1_i64;
}

constant! {
    /// The one hash algorithm.
    pub struct HashAlgorithm = "SHA-256";
}

words! {
    /// What a component is.
    pub enum ComponentType {
        /// A program.
        Application = "application",
        /// A file.
        File = "file",
        /// A library or a module.
        Library = "library",
    }
}

words! {
    /// Whether a component is in the closure.
    pub enum Scope {
        /// It is, or its bytes are.
        Required = "required",
        /// It took part in the build and left nothing in the closure on purpose.
        Excluded = "excluded",
    }
}

record! {
    /// A digest.
    pub struct Hash {
        /// SHA-256.
        "alg" => algorithm: HashAlgorithm,
        /// The digest.
        "content" => content: Sha256Digest,
    }
}

record! {
    /// A licence.
    pub struct LicenceChoice {
        /// An SPDX expression.
        "expression" => expression: Licence,
    }
}

record! {
    /// A component.
    pub struct Component {
        /// Its name inside this document.
        "bom-ref" => reference: Name,
        /// Its digest.
        "hashes" => hashes: Vec<Hash>,
        /// Its licence, where it is upstream's.
        "licenses" => licences: Option<Vec<LicenceChoice>>,
        /// Its name.
        "name" => name: Name,
        /// Where others know it by.
        "purl" => purl: Option<Uri>,
        /// Whether it is in the closure.
        "scope" => scope: Scope,
        /// What it is.
        "type" => kind: ComponentType,
        /// Its version, where it has one.
        "version" => version: Option<Id>,
    }
}

record! {
    /// What the document is about.
    pub struct Metadata {
        /// The closure.
        "component" => component: Component,
    }
}

record! {
    /// What a component was made from.
    pub struct Dependency {
        /// The parts, in order.
        "dependsOn" => depends_on: Option<Vec<Name>>,
        /// The component.
        "ref" => reference: Name,
    }
}

record! {
    /// The document.
    pub struct Bom {
        /// The format's name.
        "bomFormat" => format: BomFormat,
        /// The components, by reference in order.
        "components" => components: Vec<Component>,
        /// What was made from what, by reference in order.
        "dependencies" => dependencies: Vec<Dependency>,
        /// What the document is about.
        "metadata" => metadata: Metadata,
        /// The format's version.
        "specVersion" => spec_version: SpecVersion,
        /// The version of the document.
        "version" => version: BomVersion,
    }
}

/// The signed form: the document as the predicate of a statement about the
/// closure's files.
///
/// # Errors
/// When a value of the manifest may not stand in a receipt.
pub fn statement(manifest: &ClosureManifest) -> Result<Statement, BuildReceiptError> {
    Ok(Statement::new(
        subjects_of(manifest)?,
        Predicate::Bom(bom(manifest)?),
    )?)
}

/// The document alone, indented, as any reader of CycloneDX takes it. It is the
/// predicate of [`statement`] and nothing else.
///
/// # Errors
/// As [`statement`].
pub fn document(manifest: &ClosureManifest) -> Result<Vec<u8>, BuildReceiptError> {
    Ok(bom(manifest)?.to_document())
}

fn bom(manifest: &ClosureManifest) -> Result<Bom, BuildReceiptError> {
    let closure = manifest.digest()?;
    let mut parts = Parts::default();
    parts.files(manifest)?;
    parts.upstream(manifest)?;
    parts.launcher(manifest)?;
    let component = Component {
        version: Some(closure.to_string().parse()?),
        ..component(
            "closure",
            ComponentType::Application,
            &manifest.profile,
            closure,
        )?
    };
    let files = Role::ALL.map(|role| format!("closure/{}", role.file_name()));
    parts.depends("closure", files)?;
    Ok(Bom {
        format: BomFormat,
        components: parts.components.into_values().collect(),
        dependencies: parts
            .depends_on
            .into_iter()
            .map(|(reference, depends_on)| Dependency {
                depends_on: (!depends_on.is_empty()).then_some(depends_on),
                reference,
            })
            .collect(),
        metadata: Metadata { component },
        spec_version: SpecVersion,
        version: BomVersion,
    })
}

#[derive(Default)]
struct Parts {
    components: BTreeMap<Name, Component>,
    depends_on: BTreeMap<Name, Vec<Name>>,
}

impl Parts {
    fn add(&mut self, component: Component) {
        self.depends_on
            .entry(component.reference.clone())
            .or_default();
        self.components
            .insert(component.reference.clone(), component);
    }

    fn depends<S: AsRef<str>>(
        &mut self,
        reference: &str,
        on: impl IntoIterator<Item = S>,
    ) -> Result<(), TextError> {
        let mut on = on
            .into_iter()
            .map(|part| part.as_ref().parse())
            .collect::<Result<Vec<Name>, TextError>>()?;
        on.sort();
        on.dedup();
        self.depends_on.insert(reference.parse()?, on);
        Ok(())
    }

    fn files(&mut self, manifest: &ClosureManifest) -> Result<(), TextError> {
        for file in &manifest.files {
            let reference = format!("closure/{}", file.path);
            let kind = match file.role {
                Role::Bwrap | Role::Launcher => ComponentType::Application,
                Role::Filter => ComponentType::File,
            };
            self.add(component(&reference, kind, &file.path, file.sha256)?);
        }
        Ok(())
    }

    fn upstream(&mut self, manifest: &ClosureManifest) -> Result<(), TextError> {
        for source in &manifest.sources {
            let reference = format!("source/{}", source.name);
            let sha256 = source.archive_sha256;
            self.add(Component {
                licences: Some(vec![LicenceChoice {
                    expression: source.licence.parse()?,
                }]),
                purl: Some(package_url("generic", &source.name, &source.version)?),
                version: Some(source.version.parse()?),
                ..component(&reference, ComponentType::Library, &source.name, sha256)?
            });
        }
        for tool in &manifest.toolchain {
            let reference = format!("tool/{}", tool.name);
            self.add(Component {
                purl: Some(package_url("pypi", &tool.name, &tool.version)?),
                scope: Scope::Excluded,
                version: Some(tool.version.parse()?),
                ..component(
                    &reference,
                    ComponentType::Application,
                    &tool.name,
                    tool.sha256,
                )?
            });
        }
        Ok(())
    }

    fn launcher(&mut self, manifest: &ClosureManifest) -> Result<(), TextError> {
        let materials = &manifest.materials;
        let mut made_from = vec!["closure/filter.bpf".to_owned()];
        let groups = [
            ("launcher", &materials.launcher_sources, ComponentType::File),
            ("header", &materials.cpython_headers, ComponentType::File),
            ("library", &materials.libraries, ComponentType::Library),
        ];
        for (group, members, kind) in groups {
            for member in members {
                let reference = format!("{group}/{}", member.path);
                self.add(component(&reference, kind, &member.path, member.sha256)?);
                made_from.push(reference);
            }
        }
        for module in &materials.frozen {
            let reference = format!("frozen/{}", module.name);
            let name = &module.name;
            self.add(component(
                &reference,
                ComponentType::Library,
                name,
                module.source_sha256,
            )?);
            made_from.push(reference);
        }
        self.depends("closure/launcher", made_from)?;
        // bubblewrap's program is made of these two sources and no other.
        let bwrap = ["source/bubblewrap", "source/libcap"];
        let sources = bwrap.into_iter().filter(|name| {
            name.parse::<Name>()
                .is_ok_and(|name| self.components.contains_key(&name))
        });
        self.depends("closure/bwrap", sources.collect::<Vec<_>>())
    }
}

fn component(
    reference: &str,
    kind: ComponentType,
    name: &str,
    sha256: Sha256Digest,
) -> Result<Component, TextError> {
    Ok(Component {
        reference: reference.parse()?,
        hashes: vec![Hash {
            algorithm: HashAlgorithm,
            content: sha256,
        }],
        licences: None,
        name: name.parse()?,
        purl: None,
        scope: Scope::Required,
        kind,
        version: None,
    })
}

impl Bom {
    /// The document alone, indented.
    pub fn to_document(&self) -> Vec<u8> {
        json::write_pretty(&self.to_value())
    }

    pub(crate) fn check(&self, subjects: &[Subject]) -> Result<(), FormError> {
        let root = At::Root;
        let at = root.member("predicate");
        let of_closure = |digest: Option<Sha256Digest>| {
            digest.is_some_and(|digest| is_hash(&self.metadata.component, digest))
        };
        if !of_closure(find(subjects, CLOSURE_SUBJECT)) {
            return Err(at.member("metadata").error("is not about the subject"));
        }
        for subject in subjects
            .iter()
            .filter(|one| one.name.as_str() != CLOSURE_SUBJECT)
        {
            let described = self.components.iter().any(|component| {
                component.reference == subject.name && is_hash(component, subject.digest.sha256)
            });
            if !described {
                return Err(at
                    .member("components")
                    .error(format!("lacks {}", subject.name)));
            }
        }
        let components = &self.components;
        if !components.is_sorted_by(|a, b| a.reference < b.reference) {
            return Err(at
                .member("components")
                .error("wants every one once and in order"));
        }
        let dependencies = &self.dependencies;
        if !dependencies.is_sorted_by(|a, b| a.reference < b.reference) {
            return Err(at
                .member("dependencies")
                .error("wants every one once and in order"));
        }
        let is_known = |name: &Name| {
            *name == self.metadata.component.reference
                || components
                    .binary_search_by(|one| one.reference.cmp(name))
                    .is_ok()
        };
        let mut named = dependencies
            .iter()
            .flat_map(|one| std::iter::once(&one.reference).chain(one.depends_on.iter().flatten()));
        match named.find(|name| !is_known(name)) {
            None => Ok(()),
            Some(name) => Err(at
                .member("dependencies")
                .error(format!("names {name}, no component"))),
        }
    }
}

fn is_hash(component: &Component, digest: Sha256Digest) -> bool {
    component.hashes.len() == 1 && component.hashes[0].content == digest
}
