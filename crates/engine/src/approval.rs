//! What an operator approves, by exact digests.
//!
//! Until the package lifecycle exists, an approval is a file in the data directory.
//! Its bytes are the [`Subject`] that was shown, in its one written form; the digest
//! that the operator confirms is the digest of these bytes. What is approved is
//! exactly that: another package byte, another closure, another limit is another
//! subject, and the old approval says nothing about it.
//!
//! Nothing here may write an approval whose digest the caller did not confirm.

use lazaret_contract::digest::Sha256Digest;
use lazaret_contract::limits;
use lazaret_contract::package::{Package, dependency_digest};
use lazaret_contract::profiles::Binding;
use lazaret_custody::{CustodyError, FileRules, HeldDir, NameError, Refusal, RelativeName};
use lazaret_profile::accepted::Accepted;
use serde::{Deserialize, Serialize};

use crate::blocked::{Blocked, Cause};
use crate::data_dir::DataDir;

/// The version of the form.
pub const APPROVAL_SCHEMA: &str = "lazaret-approval/1";

/// The largest approval that is read, in bytes.
const APPROVAL_BYTES_MAX: u64 = 64 * 1024;

const WHAT: &str = "the approval";

/// One file of a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageFile {
    /// Its name in the package.
    pub path: String,
    /// Its size, in bytes.
    pub size_bytes: usize,
    /// The digest of its bytes.
    pub sha256: Sha256Digest,
}

/// The package that is approved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovedPackage {
    /// Its id.
    pub id: String,
    /// Its version.
    pub version: u32,
    /// The content digest: every file's path, size and bytes.
    pub content_sha256: Sha256Digest,
    /// The authority digest: what the package may do.
    pub authority_sha256: Sha256Digest,
    /// The dependency digest: profile, closure and policy.
    pub dependency_sha256: Sha256Digest,
    /// The digest of `adapter.py`: what runs.
    pub code_sha256: Sha256Digest,
    /// The digest of the input schema.
    pub input_schema_sha256: Sha256Digest,
    /// The digest of the output schema.
    pub output_schema_sha256: Sha256Digest,
    /// Every file, in the order of the names.
    pub files: Vec<PackageFile>,
}

impl ApprovedPackage {
    fn of(package: &Package, policy: Sha256Digest) -> Self {
        let files = package.files.iter().map(|(path, bytes)| PackageFile {
            path: path.to_owned(),
            size_bytes: bytes.len(),
            sha256: Sha256Digest::of(bytes),
        });
        Self {
            id: package.manifest.id.to_string(),
            version: package.manifest.version,
            content_sha256: package.digests.content,
            authority_sha256: package.digests.authority,
            dependency_sha256: dependency_digest(&package.descriptor.binding, &policy),
            code_sha256: package.digests.code,
            input_schema_sha256: package.digests.input_schema,
            output_schema_sha256: package.digests.output_schema,
            files: files.collect(),
        }
    }
}

/// What a package has to be bound to, to run with what was accepted.
#[must_use]
pub fn binding(accepted: &Accepted) -> Binding {
    Binding {
        profile: accepted.profile.clone(),
        closure: accepted.closure,
    }
}

/// What a run may reach. Every field is fixed (ADR-013); they are written out so
/// that the operator sees them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Permissions {
    /// No network, not even a loopback of the host.
    pub network: bool,
    /// No secrets.
    pub secrets: Vec<String>,
    /// No environment variables.
    pub env: Vec<String>,
    /// One input inode, read-only.
    pub input_inodes: u32,
    /// One output inode, the only writable one.
    pub output_inodes: u32,
}

impl Permissions {
    /// The only permissions that there are.
    #[must_use]
    pub const fn fixed() -> Self {
        Self {
            network: false,
            secrets: Vec::new(),
            env: Vec::new(),
            input_inodes: 1,
            output_inodes: 1,
        }
    }
}

/// The limits of a run (ADR-013, ADR-020).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// CPU time, in seconds; a hard budget.
    pub cpu_s: u64,
    /// Address space, in bytes.
    pub address_space_bytes: u64,
    /// From staging to the end, in milliseconds.
    pub wall_ms: u64,
    /// The input, in bytes.
    pub input_bytes: usize,
    /// The output, in bytes.
    pub output_bytes: usize,
    /// Each of standard output and standard error, in bytes.
    pub stream_bytes: usize,
    /// Open descriptors.
    pub descriptors: u64,
    /// Processes.
    pub processes: u32,
    /// Attempts.
    pub attempts: u32,
}

impl Limits {
    /// The only limits that there are.
    #[must_use]
    pub const fn fixed() -> Self {
        Self {
            cpu_s: limits::CPU_LIMIT_S,
            address_space_bytes: limits::ADDRESS_SPACE_BYTES_MAX,
            wall_ms: limits::WALL_DEADLINE_MS_MAX,
            input_bytes: limits::INPUT_BYTES_MAX,
            output_bytes: limits::OUTPUT_BYTES_MAX,
            stream_bytes: limits::STREAM_BYTES_MAX,
            descriptors: limits::DESCRIPTORS_MAX,
            processes: limits::PROCESSES_MAX,
            attempts: limits::ATTEMPTS_MAX,
        }
    }
}

/// The profile and the digests that were accepted for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovedProfile {
    /// Its id.
    pub id: String,
    /// Whether it is a candidate.
    pub candidate: bool,
    /// How its acceptance stands, in words.
    pub standing: String,
    /// The closure's manifest.
    pub closure: Sha256Digest,
    /// bubblewrap.
    pub bwrap: Sha256Digest,
    /// The launcher with the interpreter.
    pub launcher: Sha256Digest,
    /// The filter's bytes.
    pub filter: Sha256Digest,
    /// The policy that the filter is made from.
    pub policy: Sha256Digest,
}

/// Everything that one approval is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// [`APPROVAL_SCHEMA`].
    pub schema: String,
    /// What a task asks for.
    pub capability: String,
    /// The package.
    pub package: ApprovedPackage,
    /// What a run may reach.
    pub permissions: Permissions,
    /// What a run may use.
    pub limits: Limits,
    /// What it runs with.
    pub profile: ApprovedProfile,
}

impl Subject {
    /// Puts a subject together. The policy is the one in this build.
    ///
    /// # Errors
    /// [`Cause::NotAccepted`] for a profile without a policy in this build;
    /// [`Cause::ApprovalDiffers`] for a package that is bound to another closure.
    pub fn new(package: &Package, accepted: &Accepted) -> Result<Self, Blocked> {
        let policy = lazaret_profile::policy::built_in(&accepted.profile).ok_or_else(|| {
            let why = format!("this build holds no policy of {}", accepted.profile);
            Blocked::new(Cause::NotAccepted, "the profile", why)
        })?;
        let policy = Sha256Digest::of(policy.as_bytes());
        if package.descriptor.binding != binding(accepted) {
            let why = "the package is bound to another profile or closure than the accepted one";
            return Err(Blocked::new(Cause::ApprovalDiffers, "the package", why));
        }
        Ok(Self {
            schema: APPROVAL_SCHEMA.to_owned(),
            capability: package.capability.to_string(),
            package: ApprovedPackage::of(package, policy),
            permissions: Permissions::fixed(),
            limits: Limits::fixed(),
            profile: ApprovedProfile {
                id: accepted.profile.clone(),
                candidate: crate::closure::is_candidate(&accepted.profile),
                standing: accepted.standing().to_owned(),
                closure: accepted.closure,
                bwrap: accepted.bwrap,
                launcher: accepted.launcher,
                filter: accepted.filter,
                policy,
            },
        })
    }

    /// The one written form: JSON with two spaces, in the order of the fields, and a
    /// newline.
    ///
    /// # Errors
    /// Never for a value of this type; serde's signature asks for it.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Blocked> {
        let mut bytes = serde_json::to_vec_pretty(self)
            .map_err(|error| Blocked::new(Cause::Io, WHAT, error.to_string()))?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// The digest that the operator confirms.
    ///
    /// # Errors
    /// As [`Subject::to_bytes`].
    pub fn digest(&self) -> Result<Sha256Digest, Blocked> {
        Ok(Sha256Digest::of(&self.to_bytes()?))
    }
}

/// Records that the operator confirmed `digest`, durably.
///
/// # Errors
/// [`Cause::ApprovalDiffers`] if that is not the subject's digest: then nothing is
/// written. What the kernel says.
pub fn record(data: &DataDir, subject: &Subject, digest: Sha256Digest) -> Result<(), Blocked> {
    let bytes = subject.to_bytes()?;
    let shown = Sha256Digest::of(&bytes);
    if digest != shown {
        let why = format!("{digest} was confirmed, {shown} was shown");
        return Err(Blocked::new(Cause::ApprovalDiffers, WHAT, why)
            .advise("look at what is shown, then confirm its digest"));
    }
    let (dir, name) = place(data, subject)?;
    dir.replace_durable(&name, &bytes, 0o600)
        .map_err(|error| Blocked::custody(WHAT, &error))?;
    data.approvals()?
        .sync()
        .map_err(|error| Blocked::custody(WHAT, &error))
}

/// Checks that exactly this subject has been approved.
///
/// # Errors
/// [`Cause::NotApproved`] or [`Cause::ApprovalDiffers`], with the command that shows
/// what is to be approved.
pub fn require(data: &DataDir, subject: &Subject) -> Result<Sha256Digest, Blocked> {
    let (dir, name) = place(data, subject)?;
    let rules = FileRules::private(APPROVAL_BYTES_MAX, data.acting().uid);
    let found = match dir.read_file(&name, rules) {
        Ok(found) => found,
        Err(CustodyError {
            refusal: Refusal::NotFound,
            ..
        }) => {
            let why = format!(
                "nobody has approved {} with {}",
                subject.package.id, subject.profile.id
            );
            return Err(Blocked::new(Cause::NotApproved, WHAT, why).advise(init_command(subject)));
        }
        Err(error) => return Err(Blocked::custody(WHAT, &error)),
    };
    let wanted = subject.to_bytes()?;
    if found == wanted {
        return Ok(Sha256Digest::of(&found));
    }
    let why = match serde_json::from_slice::<Subject>(&found) {
        Ok(old) => format!(
            "something else was approved: {} changed since",
            changes(&old, subject).join(", ")
        ),
        Err(_) => "what was approved is of another form".to_owned(),
    };
    Err(Blocked::new(Cause::ApprovalDiffers, WHAT, why).advise(init_command(subject)))
}

fn place(data: &DataDir, subject: &Subject) -> Result<(HeldDir, RelativeName), Blocked> {
    let name = |text: &str| {
        RelativeName::parse(text.as_bytes())
            .map_err(|error: NameError| Blocked::new(Cause::DataDirectory, WHAT, error.to_string()))
    };
    let dir = data
        .approvals()?
        .open_or_create_dir(&name(&subject.profile.id)?, 0o700)
        .map_err(|error| Blocked::custody(WHAT, &error))?;
    Ok((dir, name(&format!("{}.json", subject.package.id))?))
}

fn init_command(subject: &Subject) -> String {
    if subject.profile.candidate {
        format!(
            "lazaret init --approve-bundled --profile {}",
            subject.profile.id
        )
    } else {
        "lazaret init --approve-bundled".to_owned()
    }
}

/// Which parts of two subjects differ, in words.
fn changes(old: &Subject, new: &Subject) -> Vec<&'static str> {
    let parts = [
        (old.schema != new.schema, "the form"),
        (old.capability != new.capability, "the capability"),
        (old.package != new.package, "the package"),
        (old.permissions != new.permissions, "the permissions"),
        (old.limits != new.limits, "the limits"),
        (old.profile != new.profile, "the profile's digests"),
    ];
    parts
        .iter()
        .filter(|(differs, _)| *differs)
        .map(|(_, part)| *part)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acting::Acting;
    use lazaret_contract::bundled::Bundled;
    use lazaret_contract::identity::FORMATTER_ID;
    use lazaret_contract::package::{BindingCheck, inspect};
    use proptest::prelude::*;

    fn accepted() -> Accepted {
        let digest = Sha256Digest::of;
        Accepted {
            schema: lazaret_profile::accepted::ACCEPTED_SCHEMA.to_owned(),
            profile: lazaret_profile::pins::PROFILE_V1.to_owned(),
            closure: digest(b"closure"),
            bwrap: digest(b"bwrap"),
            launcher: digest(b"launcher"),
            filter: digest(b"filter"),
            inputs: digest(b"inputs"),
            review: None,
        }
    }

    /// The bundled formatter, bound to what is accepted here.
    fn package() -> Package {
        let bundled = Bundled::find(FORMATTER_ID).unwrap();
        let files = bundled.bound_to(&binding(&accepted())).unwrap();
        inspect(&files, BindingCheck::Accepted(&[binding(&accepted())])).unwrap()
    }

    fn subject() -> Subject {
        Subject::new(&package(), &accepted()).unwrap()
    }

    /// The same with another closure.
    fn other_subject() -> Subject {
        let mut other = subject();
        other.profile.closure = Sha256Digest::of(b"another closure");
        other
    }

    fn data() -> (tempfile::TempDir, DataDir) {
        use std::os::unix::fs::PermissionsExt as _;
        let root = tempfile::tempdir().unwrap();
        std::fs::set_permissions(root.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
        let data = DataDir::open(&root.path().join("d"), Acting::current(None).unwrap()).unwrap();
        (root, data)
    }

    #[test]
    fn without_an_approval_the_refusal_names_the_command() {
        let (_root, data) = data();
        let refused = require(&data, &subject()).unwrap_err();
        assert_eq!(refused.cause, Cause::NotApproved);
        assert_eq!(refused.advice, ["lazaret init --approve-bundled"]);
    }

    #[test]
    fn what_was_confirmed_is_approved_and_nothing_else_is() {
        let (_root, data) = data();
        let one = subject();
        record(&data, &one, one.digest().unwrap()).unwrap();
        assert_eq!(require(&data, &one).unwrap(), one.digest().unwrap());
        let refused = require(&data, &other_subject()).unwrap_err();
        assert_eq!(refused.cause, Cause::ApprovalDiffers);
        assert!(refused.why.contains("the profile's digests"), "{refused}");
    }

    #[test]
    fn a_digest_that_was_not_shown_approves_nothing() {
        let (_root, data) = data();
        let one = subject();
        let refused = record(&data, &one, Sha256Digest::of(b"other")).unwrap_err();
        assert_eq!(refused.cause, Cause::ApprovalDiffers);
        assert_eq!(require(&data, &one).unwrap_err().cause, Cause::NotApproved);
    }

    #[test]
    fn a_changed_byte_of_the_file_is_no_approval() {
        let (root, data) = data();
        let one = subject();
        record(&data, &one, one.digest().unwrap()).unwrap();
        let file = root
            .path()
            .join("d/approvals/json-python-bwrap-v1/seraph.tool.json-format.json");
        let mut bytes = std::fs::read(&file).unwrap();
        bytes.push(b'\n');
        std::fs::write(&file, bytes).unwrap();
        assert_eq!(
            require(&data, &one).unwrap_err().cause,
            Cause::ApprovalDiffers
        );
    }

    #[test]
    fn a_package_that_is_bound_elsewhere_is_no_subject() {
        let mut elsewhere = accepted();
        elsewhere.closure = Sha256Digest::of(b"another closure");
        let refused = Subject::new(&package(), &elsewhere).unwrap_err();
        assert_eq!(refused.cause, Cause::ApprovalDiffers);
    }

    proptest! {
        #[test]
        fn any_change_of_a_digest_is_another_subject(bytes in any::<[u8; 32]>(), which in 0_usize..4) {
            let mut other = subject();
            let place = match which {
                0 => &mut other.package.content_sha256,
                1 => &mut other.package.code_sha256,
                2 => &mut other.profile.launcher,
                _ => &mut other.profile.policy,
            };
            prop_assume!(*place != Sha256Digest::from_bytes(bytes));
            *place = Sha256Digest::from_bytes(bytes);
            prop_assert_ne!(subject().digest(), other.digest());
        }
    }
}
