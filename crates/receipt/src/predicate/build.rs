//! The receipt of a build: SLSA provenance v1 of a closure.
//!
//! `docs/build-type.md` defines the build type. Few parameters, because a profile
//! is data: what the build read stands in the dependencies by digest, what else it
//! left (the manifest with every option, logs, the bill of materials) in the
//! byproducts. It holds no time: two builds of the same inputs give one statement.

use lazaret_contract::digest::Sha256Digest;
use lazaret_profile::manifest::{ClosureManifest, Role};

use super::Predicate;
use super::shared::{CLOSURE_SUBJECT, Descriptor, check_names, check_subject};
use crate::part::{At, FormError, constant, record};
use crate::statement::{Statement, StatementError, Subject, find};
use crate::text::{Id, Name, TextError, Uri};

/// The build type; `docs/build-type.md` defines it.
pub const BUILD_TYPE: &str = "https://lazaret.invalid/build/closure/v1";

/// Who built: xtask on the signer's machine. It is not a hosted builder, and no
/// SLSA level is claimed.
pub const BUILDER_ID: &str = "https://lazaret.invalid/builder/xtask/v1";

constant! {
    /// [`BUILD_TYPE`].
    pub struct BuildType = BUILD_TYPE;
}

constant! {
    /// [`BUILDER_ID`].
    pub struct BuilderId = BUILDER_ID;
}

record! {
    /// What a person chose.
    pub struct ExternalParameters {
        /// The profile.
        "profile" => profile: Id,
    }
}

record! {
    /// What the build chose.
    pub struct InternalParameters {
        /// Digest of all inputs: pins, options, policy, launcher and build sources.
        "inputs_sha256" => inputs_sha256: Sha256Digest,
        /// Version of CPython.
        "python_version" => python_version: Id,
        /// The compiler's target.
        "target" => target: Id,
    }
}

record! {
    /// What went in.
    pub struct BuildDefinition {
        /// The build type, which docs/build-type.md defines.
        "buildType" => build_type: BuildType,
        /// What a person chose.
        "externalParameters" => external_parameters: ExternalParameters,
        /// What the build chose.
        "internalParameters" => internal_parameters: InternalParameters,
        /// Every source, tool and text that the build read, by name in order.
        "resolvedDependencies" => resolved_dependencies: Vec<Descriptor>,
    }
}

record! {
    /// Who built.
    pub struct Builder {
        /// The builder: xtask on the signer's machine.
        "id" => id: BuilderId,
    }
}

record! {
    /// What came out besides the subjects.
    pub struct RunDetails {
        /// Who built.
        "builder" => builder: Builder,
        /// Logs, the bill of materials, the build's own record, by name in order.
        "byproducts" => byproducts: Vec<Descriptor>,
    }
}

record! {
    /// SLSA provenance v1.
    pub struct Provenance {
        /// What went in.
        "buildDefinition" => build_definition: BuildDefinition,
        /// What came out besides the subjects.
        "runDetails" => run_details: RunDetails,
    }
}

impl Provenance {
    pub(crate) fn check(&self, subjects: &[Subject]) -> Result<(), FormError> {
        let root = At::Root;
        let at = root.member("predicate");
        for name in closure_subjects() {
            if find(subjects, &name).is_none() {
                let problem = format!("lacks the subject {name}");
                return Err(root.member("subject").error(problem));
            }
        }
        if subjects.len() != Role::ALL.len() + 1 {
            let problem = "has a subject that is no file of the closure";
            return Err(root.member("subject").error(problem));
        }
        let dependencies = &self.build_definition.resolved_dependencies;
        check_names(
            dependencies.iter().map(|one| &one.name),
            &at.member("buildDefinition"),
        )?;
        let byproducts = &self.run_details.byproducts;
        check_names(
            byproducts.iter().map(|one| &one.name),
            &at.member("runDetails"),
        )
    }
}

fn closure_subjects() -> impl Iterator<Item = String> {
    let files = Role::ALL.map(|role| format!("closure/{}", role.file_name()));
    files.into_iter().chain([CLOSURE_SUBJECT.to_owned()])
}

/// Why a build gives no receipt.
#[derive(Debug, thiserror::Error)]
pub enum BuildReceiptError {
    /// The manifest cannot be written.
    #[error("closure's manifest: {0}")]
    Manifest(#[from] lazaret_profile::manifest::ManifestError),
    /// A name or version in the manifest may not stand in a receipt.
    #[error("closure's manifest: {0}")]
    Text(#[from] TextError),
    /// The statement breaks a rule.
    #[error("{0}")]
    Statement(#[from] StatementError),
}

/// The subjects of every statement about a closure: its files and its manifest.
///
/// # Errors
/// When the manifest cannot be written.
pub fn subjects_of(manifest: &ClosureManifest) -> Result<Vec<Subject>, BuildReceiptError> {
    let mut subjects = vec![Subject::new(CLOSURE_SUBJECT.parse()?, manifest.digest()?)];
    for file in &manifest.files {
        subjects.push(Subject::new(
            format!("closure/{}", file.path).parse()?,
            file.sha256,
        ));
    }
    Ok(subjects)
}

/// The receipt of the build that gave `manifest`.
///
/// `inputs` is the digest of all inputs as `accepted.json` holds it; `byproducts`
/// are logs and records by a relative name of ours, never by their place.
///
/// # Errors
/// When a value of the manifest may not stand in a receipt.
pub fn provenance(
    manifest: &ClosureManifest,
    inputs: Sha256Digest,
    mut byproducts: Vec<Descriptor>,
) -> Result<Statement, BuildReceiptError> {
    byproducts.sort_by(|a, b| a.name.cmp(&b.name));
    let predicate = Provenance {
        build_definition: BuildDefinition {
            build_type: BuildType,
            external_parameters: ExternalParameters {
                profile: manifest.profile.parse()?,
            },
            internal_parameters: InternalParameters {
                inputs_sha256: inputs,
                python_version: manifest.python_version.parse()?,
                target: manifest.target.parse()?,
            },
            resolved_dependencies: dependencies(manifest)?,
        },
        run_details: RunDetails {
            builder: Builder { id: BuilderId },
            byproducts,
        },
    };
    Ok(Statement::new(
        subjects_of(manifest)?,
        Predicate::Build(predicate),
    )?)
}

fn dependencies(manifest: &ClosureManifest) -> Result<Vec<Descriptor>, TextError> {
    let mut all = Vec::new();
    for source in &manifest.sources {
        let uri = package_url("generic", &source.name, &source.version)?;
        let name = format!("source/{}", source.name);
        all.push(located(&name, source.archive_sha256, uri)?);
        if let Some(subset) = source.subset_sha256 {
            all.push(Descriptor::new(
                format!("source-subset/{}", source.name).parse()?,
                subset,
            ));
        }
    }
    for tool in &manifest.toolchain {
        let uri = package_url("pypi", &tool.name, &tool.version)?;
        all.push(located(&format!("tool/{}", tool.name), tool.sha256, uri)?);
    }
    for source in &manifest.materials.launcher_sources {
        all.push(Descriptor::new(
            format!("launcher/{}", source.path).parse()?,
            source.sha256,
        ));
    }
    let profile = [
        ("profile/pins.toml", manifest.pins_sha256),
        ("profile/policy.toml", manifest.policy_sha256),
        ("profile/stdlib.txt", manifest.stdlib_sha256),
    ];
    for (name, sha256) in profile {
        all.push(Descriptor::new(name.parse()?, sha256));
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

/// The package URL of a pinned source or tool. Both parts are identifiers: a URL
/// alone would have room for a path.
pub(crate) fn package_url(kind: &str, name: &str, version: &str) -> Result<Uri, TextError> {
    let (name, version): (Id, Id) = (name.parse()?, version.parse()?);
    format!("pkg:{kind}/{name}@{version}").parse()
}

fn located(name: &str, sha256: Sha256Digest, uri: Uri) -> Result<Descriptor, TextError> {
    let name: Name = name.parse()?;
    Ok(Descriptor {
        uri: Some(uri),
        ..Descriptor::new(name, sha256)
    })
}

/// That `statement` is about the closure of `manifest`.
pub fn is_about(statement: &Statement, manifest: &ClosureManifest) -> bool {
    subjects_of(manifest).is_ok_and(|mut subjects| {
        subjects.sort_by(|a, b| a.name.cmp(&b.name));
        subjects == statement.subjects
    })
}

/// Rules for subjects that other kinds about a closure share.
pub(crate) fn check_closure(
    subjects: &[Subject],
    closure: Sha256Digest,
    at: &At<'_>,
) -> Result<(), FormError> {
    check_subject(subjects, CLOSURE_SUBJECT, closure, at)
}
