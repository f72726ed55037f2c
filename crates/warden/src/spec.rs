//! What one run is made of: the controller's order, and its form on the wire.
//!
//! Nothing here is a command line, a flag or a path inside the namespace: those are
//! fixed. Package and input travel as their own frames, so that their exact bytes
//! are what is hashed.

use std::fmt;
use std::path::PathBuf;

use lazaret_contract::digest::Sha256Digest;
use lazaret_profile::manifest::{ClosureManifest, Role};
use serde::{Deserialize, Serialize};

use crate::frame::RunAs;
use crate::token::RunToken;

/// The version of the record on the wire.
pub const SPEC_SCHEMA: &str = "lazaret-warden-spec/1";

/// The name of a run in every record of it: lower-case letters, digits and hyphens,
/// at most 64 of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);

/// A text that is no run id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a run id: 1 to 64 lower-case letters, digits and hyphens are wanted")]
pub struct RunIdError;

impl RunId {
    /// Checks a text.
    ///
    /// # Errors
    /// [`RunIdError`].
    pub fn new(text: &str) -> Result<Self, RunIdError> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if (1..=64).contains(&text.len()) && text.bytes().all(plain) {
            Ok(Self(text.to_owned()))
        } else {
            Err(RunIdError)
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for RunId {
    type Error = RunIdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::new(&text)
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> Self {
        id.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One file of the closure as it was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClosureFile {
    /// Its name in the closure directory: one plain component.
    pub name: String,
    /// The digest of its bytes.
    pub sha256: Sha256Digest,
}

/// What the warden needs to know of an accepted closure. It comes from the manifest
/// whose digest the caller has compared with the accepted one; the warden compares
/// the files with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClosureExpectation {
    /// bubblewrap.
    pub bwrap: ClosureFile,
    /// The launcher.
    pub launcher: ClosureFile,
    /// The filter, as the bytes that are compiled into the launcher.
    pub filter: ClosureFile,
    /// How many BPF instructions the filter has.
    pub filter_instructions: u32,
    /// `PY_VERSION_HEX` of the interpreter in the launcher.
    pub python_version_hex: u32,
}

/// A manifest from which no expectation can be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("closure manifest {0}")]
pub struct ClosureExpectationError(String);

impl TryFrom<&ClosureManifest> for ClosureExpectation {
    type Error = ClosureExpectationError;

    fn try_from(manifest: &ClosureManifest) -> Result<Self, Self::Error> {
        let file = |role: Role| {
            manifest
                .file(role)
                .map(|file| ClosureFile {
                    name: file.path.clone(),
                    sha256: file.sha256,
                })
                .ok_or_else(|| ClosureExpectationError(format!("has no file of role {role:?}")))
        };
        let version = &manifest.python_version;
        Ok(Self {
            bwrap: file(Role::Bwrap)?,
            launcher: file(Role::Launcher)?,
            filter: file(Role::Filter)?,
            filter_instructions: manifest.filter.instructions,
            python_version_hex: version_hex(version).ok_or_else(|| {
                ClosureExpectationError(format!("names {version:?}, which is no final release"))
            })?,
        })
    }
}

/// `PY_VERSION_HEX` of a final release such as `3.12.8` (patchlevel.h).
fn version_hex(version: &str) -> Option<u32> {
    let parts: Vec<u8> = version
        .split('.')
        .map_while(|part| part.parse().ok())
        .collect();
    match (parts.as_slice(), version.split('.').count()) {
        (&[major, minor, micro], 3) => Some(u32::from_be_bytes([major, minor, micro, 0xf0])),
        _ => None,
    }
}

/// Everything that one run needs. The paths are absolute and free of symbolic
/// links; [`crate::controller::Controller`] makes them so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSpec {
    /// The name of the run.
    pub run_id: RunId,
    /// The secret of the run.
    pub token: RunToken,
    /// Whom the warden becomes. Required for root, refused for everybody else.
    pub run_as: Option<RunAs>,
    /// The directory with the files of the closure.
    pub closure_dir: PathBuf,
    /// What must be in it.
    pub closure: ClosureExpectation,
    /// The run directory: mode 0700, owned by the run's user, holding an empty
    /// `result.json` of mode 0600.
    pub run_dir: PathBuf,
    /// The exact bytes of the package's `adapter.py`.
    pub package: Vec<u8>,
    /// The exact bytes of the input.
    pub input: Vec<u8>,
    /// When the run has to be over, in nanoseconds of `CLOCK_BOOTTIME`.
    pub deadline_boottime_ns: u64,
}

/// A [`RunSpec`] on the wire, without what travels otherwise (token, ids, bytes).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpecRecord {
    /// [`SPEC_SCHEMA`].
    pub schema: String,
    /// See [`RunSpec::run_id`].
    pub run_id: RunId,
    /// See [`RunSpec::closure_dir`].
    pub closure_dir: PathBuf,
    /// See [`RunSpec::closure`].
    pub closure: ClosureExpectation,
    /// See [`RunSpec::run_dir`].
    pub run_dir: PathBuf,
    /// See [`RunSpec::deadline_boottime_ns`].
    pub deadline_boottime_ns: u64,
}

impl From<&RunSpec> for SpecRecord {
    fn from(spec: &RunSpec) -> Self {
        Self {
            schema: SPEC_SCHEMA.to_owned(),
            run_id: spec.run_id.clone(),
            closure_dir: spec.closure_dir.clone(),
            closure: spec.closure.clone(),
            run_dir: spec.run_dir.clone(),
            deadline_boottime_ns: spec.deadline_boottime_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_python_version_is_three_numbers_of_a_final_release() {
        assert_eq!(version_hex("3.12.8"), Some(0x030c_08f0));
        assert_eq!(version_hex("3.13.5"), Some(0x030d_05f0));
        for bad in [
            "",
            "3.12",
            "3.12.8.1",
            "3.12.8rc1",
            "3.12.x",
            "3..8",
            "3.12.256",
        ] {
            assert_eq!(version_hex(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_run_id_is_a_plain_word() {
        for good in ["a", "run-1", &"x".repeat(64)] {
            assert_eq!(RunId::new(good).map(String::from), Ok(good.to_owned()));
        }
        for bad in ["", "A", "a/b", "a b", "a\0", "..", &"x".repeat(65)] {
            assert_eq!(RunId::new(bad), Err(RunIdError), "{bad:?}");
        }
    }
}
