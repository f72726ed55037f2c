//! The manifest of a closure: what a profile runs with, byte for byte.
//!
//! `manifest.json` lies beside the files of a closure. The SHA-256 of its bytes
//! is the closure's digest, so it holds nothing that differs between two builds
//! of the same inputs: no time, no host, no path, no origin. Those are in the
//! build record. This module gives and reads the bytes; it must never open a
//! file, and never accept bytes that it would not have written itself.

use std::collections::{BTreeMap, BTreeSet};

use lazaret_contract::digest::Sha256Digest;
use serde::{Deserialize, Serialize};

/// The version of the format.
pub const MANIFEST_SCHEMA: &str = "lazaret-closure-manifest/1";

/// The file name of the manifest inside the closure's directory.
pub const MANIFEST_FILE: &str = "manifest.json";

/// The largest manifest that [`ClosureManifest::parse`] reads, in bytes.
pub const MANIFEST_BYTES_MAX: usize = 1 << 20;

/// Why bytes are not a valid manifest.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// Larger than any manifest of ours.
    #[error("closure manifest is larger than {MANIFEST_BYTES_MAX} bytes")]
    Size,
    /// Not JSON of the expected shape.
    #[error("closure manifest is not of the expected form: {0}")]
    Form(#[from] serde_json::Error),
    /// The same values, written in another way: a digest would name two texts.
    #[error("closure manifest is not in its canonical form")]
    NotCanonical,
    /// Well-formed, but a value breaks a rule.
    #[error("closure manifest breaks a rule: {0}")]
    Rule(&'static str),
}

/// What a file of the closure is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// bubblewrap.
    Bwrap,
    /// The launcher with CPython, the standard library and the filter inside.
    Launcher,
    /// The seccomp program, the exact bytes of the `sock_filter` array in the launcher.
    Filter,
}

impl Role {
    /// Every role; a closure holds exactly one file of each.
    pub const ALL: [Self; 3] = [Self::Bwrap, Self::Launcher, Self::Filter];

    /// The file's name in the closure's directory.
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::Bwrap => "bwrap",
            Self::Launcher => "launcher",
            Self::Filter => "filter.bpf",
        }
    }

    /// The file's permission bits; never a set-id bit, never writable.
    pub const fn mode(self) -> u32 {
        match self {
            Self::Bwrap | Self::Launcher => 0o555,
            Self::Filter => 0o444,
        }
    }
}

/// One file of the closure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClosureFile {
    /// Path relative to the closure's directory.
    pub path: String,
    /// Permission bits, four octal digits, for example `0555`.
    pub mode: String,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Digest of the file's bytes.
    pub sha256: Sha256Digest,
    /// What the file is for.
    pub role: Role,
}

impl ClosureFile {
    /// The entry of the file with `role` and the given bytes.
    pub fn of(role: Role, bytes: &[u8]) -> Self {
        Self {
            path: role.file_name().to_owned(),
            mode: format!("{:04o}", role.mode()),
            size_bytes: bytes.len() as u64,
            sha256: Sha256Digest::of(bytes),
            role,
        }
    }
}

/// What is said of the filter besides its digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilterFacts {
    /// Digest of the instructions, the same as of the file with role `filter`.
    pub sha256: Sha256Digest,
    /// Number of instructions of eight bytes.
    pub instructions: u32,
}

/// One source archive, as pinned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceFact {
    /// Our name for it.
    pub name: String,
    /// Upstream's version.
    pub version: String,
    /// SPDX expression.
    pub licence: String,
    /// Digest of the archive.
    pub archive_sha256: Sha256Digest,
    /// Digest of the manifest of the part that the build reads, where there is one. A git tag
    /// gives the same part.
    pub subset_sha256: Option<Sha256Digest>,
}

/// One wheel of the toolchain, as pinned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolFact {
    /// The package's name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Digest of the wheel.
    pub sha256: Sha256Digest,
}

/// The options that were in effect, read back where a tool can say so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EffectiveOptions {
    /// meson's options for bubblewrap as `meson introspect --buildoptions` gives them.
    pub bubblewrap_meson: BTreeMap<String, String>,
    /// The value of `assume_kernel`; empty means unset (ADR-013).
    pub bubblewrap_assume_kernel: String,
    /// Each line of bubblewrap's config.h that defines something.
    pub bubblewrap_config_h: Vec<String>,
    /// The extension modules in CPython's table of built-in modules.
    pub cpython_modules: Vec<String>,
    /// Digest of the pyconfig.h that configure made.
    pub cpython_pyconfig_sha256: Sha256Digest,
}

/// One file that went into an output, by path and digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Material {
    /// Path relative to the tree that it belongs to.
    pub path: String,
    /// Digest of its bytes.
    pub sha256: Sha256Digest,
}

/// One frozen module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrozenModule {
    /// The name that `import` uses.
    pub name: String,
    /// Whether it is a package.
    pub package: bool,
    /// Digest of the Python source.
    pub source_sha256: Sha256Digest,
    /// Digest of the marshalled code object.
    pub code_sha256: Sha256Digest,
}

/// What the launcher was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Materials {
    /// The launcher's own sources.
    pub launcher_sources: Vec<Material>,
    /// The headers of CPython that they include.
    pub cpython_headers: Vec<Material>,
    /// libpython and the static libraries beside it.
    pub libraries: Vec<Material>,
    /// The standard library and the module `lazaret`.
    pub frozen: Vec<FrozenModule>,
}

/// How much of the relocations is read-only after start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Relro {
    /// Nothing.
    None,
    /// Without binding everything at start.
    Partial,
    /// With `BIND_NOW`, or with nothing left to bind.
    Full,
}

/// What the headers of an executable say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ElfFacts {
    /// Which file of the closure.
    pub path: String,
    /// `ET_DYN` with the PIE flag.
    pub position_independent: bool,
    /// The program interpreter, if one is asked for.
    pub interpreter: Option<String>,
    /// Shared libraries asked for.
    pub needed: Vec<String>,
    /// RPATH and RUNPATH entries.
    pub run_paths: Vec<String>,
    /// Whether the stack may be executed.
    pub executable_stack: bool,
    /// Read-only relocations.
    pub relro: Relro,
    /// Whether everything is bound at start.
    pub bind_now: bool,
    /// Loadable segments that are writable and executable at once.
    pub writable_executable_segments: u32,
    /// Whether a build id is there.
    pub build_id: bool,
}

/// The contents of `manifest.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClosureManifest {
    /// [`MANIFEST_SCHEMA`].
    pub schema: String,
    /// The profile.
    pub profile: String,
    /// Version of CPython, for example `3.12.8`.
    pub python_version: String,
    /// The files, one of each role, in the order of [`Role::ALL`].
    pub files: Vec<ClosureFile>,
    /// The filter.
    pub filter: FilterFacts,
    /// Digest of `pins.toml`: every option as it was asked for.
    pub pins_sha256: Sha256Digest,
    /// Digest of `policy.toml`.
    pub policy_sha256: Sha256Digest,
    /// Digest of `stdlib.txt`, the list of frozen modules.
    pub stdlib_sha256: Sha256Digest,
    /// The compiler's target.
    pub target: String,
    /// The sources.
    pub sources: Vec<SourceFact>,
    /// The toolchain.
    pub toolchain: Vec<ToolFact>,
    /// The options as they took effect.
    pub effective_options: EffectiveOptions,
    /// What the launcher was made from.
    pub materials: Materials,
    /// What the headers of both executables say.
    pub elf: Vec<ElfFacts>,
}

impl ClosureManifest {
    /// The one text of this manifest: JSON with two spaces, in the order of the fields, and a
    /// newline at the end.
    ///
    /// # Errors
    /// Never for a value of this type; serde's signature asks for it.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ManifestError> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// The closure's digest: SHA-256 of [`Self::to_bytes`].
    ///
    /// # Errors
    /// As [`Self::to_bytes`].
    pub fn digest(&self) -> Result<Sha256Digest, ManifestError> {
        Ok(Sha256Digest::of(&self.to_bytes()?))
    }

    /// Reads exactly what [`Self::to_bytes`] writes.
    ///
    /// # Errors
    /// When the bytes are too many, of another form, not canonical, or break a rule.
    pub fn parse(bytes: &[u8]) -> Result<Self, ManifestError> {
        if bytes.len() > MANIFEST_BYTES_MAX {
            return Err(ManifestError::Size);
        }
        let manifest: Self = serde_json::from_slice(bytes)?;
        // Duplicate keys, other spacing or escapes would give one manifest two digests.
        if manifest.to_bytes()? != bytes {
            return Err(ManifestError::NotCanonical);
        }
        manifest.check()?;
        Ok(manifest)
    }

    /// The file with `role`.
    pub fn file(&self, role: Role) -> Option<&ClosureFile> {
        self.files.iter().find(|file| file.role == role)
    }

    /// Checks the rules that the types do not express.
    ///
    /// # Errors
    /// Names the rule that is broken.
    pub fn check(&self) -> Result<(), ManifestError> {
        let rule = |holds: bool, text| {
            if holds {
                Ok(())
            } else {
                Err(ManifestError::Rule(text))
            }
        };
        rule(
            self.schema == MANIFEST_SCHEMA,
            "the schema is not lazaret-closure-manifest/1",
        )?;
        let roles: Vec<Role> = self.files.iter().map(|file| file.role).collect();
        rule(
            roles == Role::ALL,
            "the files are not one of each role, in order",
        )?;
        for file in &self.files {
            rule(
                file.path == file.role.file_name(),
                "a file's path is not its role's",
            )?;
            let mode = format!("{:04o}", file.role.mode());
            rule(file.mode == mode, "a file's mode is not its role's")?;
        }
        let filter = self.file(Role::Filter);
        rule(
            filter.is_some_and(|file| {
                file.sha256 == self.filter.sha256
                    && file.size_bytes == u64::from(self.filter.instructions) * 8
            }),
            "the filter's facts are not its file's",
        )?;
        rule(
            self.effective_options.bubblewrap_assume_kernel.is_empty(),
            "assume_kernel is set",
        )?;
        let names: BTreeSet<&str> = self
            .materials
            .frozen
            .iter()
            .map(|module| module.name.as_str())
            .collect();
        rule(
            names.len() == self.materials.frozen.len(),
            "a frozen module is listed twice",
        )?;
        rule(
            self.elf.iter().all(ElfFacts::is_hardened),
            "an executable is not hardened",
        )
    }
}

impl ElfFacts {
    /// Whether the executable is what DESIGN.md section 2 asks for: static, position-independent,
    /// nothing writable and executable, everything bound and read-only after start.
    pub fn is_hardened(&self) -> bool {
        self.position_independent
            && self.interpreter.is_none()
            && self.needed.is_empty()
            && self.run_paths.is_empty()
            && !self.executable_stack
            && self.relro == Relro::Full
            && self.bind_now
            && self.writable_executable_segments == 0
            && !self.build_id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hardened(path: &str) -> ElfFacts {
        ElfFacts {
            path: path.to_owned(),
            position_independent: true,
            interpreter: None,
            needed: Vec::new(),
            run_paths: Vec::new(),
            executable_stack: false,
            relro: Relro::Full,
            bind_now: true,
            writable_executable_segments: 0,
            build_id: false,
        }
    }

    fn sample() -> ClosureManifest {
        let filter = [0_u8; 16];
        let digest = Sha256Digest::of(b"");
        ClosureManifest {
            schema: MANIFEST_SCHEMA.to_owned(),
            profile: crate::pins::PROFILE_V1.to_owned(),
            python_version: "3.12.8".to_owned(),
            files: vec![
                ClosureFile::of(Role::Bwrap, b"bwrap"),
                ClosureFile::of(Role::Launcher, b"launcher"),
                ClosureFile::of(Role::Filter, &filter),
            ],
            filter: FilterFacts {
                sha256: Sha256Digest::of(&filter),
                instructions: 2,
            },
            pins_sha256: digest,
            policy_sha256: digest,
            stdlib_sha256: digest,
            target: "x86_64-linux-musl".to_owned(),
            sources: Vec::new(),
            toolchain: Vec::new(),
            effective_options: EffectiveOptions {
                bubblewrap_meson: BTreeMap::new(),
                bubblewrap_assume_kernel: String::new(),
                bubblewrap_config_h: Vec::new(),
                cpython_modules: Vec::new(),
                cpython_pyconfig_sha256: digest,
            },
            materials: Materials {
                launcher_sources: Vec::new(),
                cpython_headers: Vec::new(),
                libraries: Vec::new(),
                frozen: Vec::new(),
            },
            elf: vec![hardened("bwrap"), hardened("launcher")],
        }
    }

    fn rule_of(manifest: &ClosureManifest) -> &'static str {
        match ClosureManifest::parse(&manifest.to_bytes().unwrap()) {
            Err(ManifestError::Rule(rule)) => rule,
            other => panic!("a broken rule is wanted, not {other:?}"),
        }
    }

    #[test]
    fn a_manifest_reads_back_as_it_was_written() {
        let manifest = sample();
        let bytes = manifest.to_bytes().unwrap();
        assert_eq!(ClosureManifest::parse(&bytes).unwrap(), manifest);
        assert_eq!(manifest.digest().unwrap(), Sha256Digest::of(&bytes));
    }

    #[test]
    fn another_text_of_the_same_values_is_refused() {
        let bytes = sample().to_bytes().unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let first_key = "\"schema\": \"lazaret-closure-manifest/1\",";
        for other in [
            text.trim_end().to_owned(),
            format!("{text}\n"),
            text.replacen("  ", " ", 1),
            text.replacen("lazaret-", "l\\u0061zaret-", 1),
        ] {
            let parsed = ClosureManifest::parse(other.as_bytes());
            assert!(
                matches!(parsed, Err(ManifestError::NotCanonical)),
                "{parsed:?}"
            );
        }
        let twice = text.replacen(first_key, &first_key.repeat(2), 1);
        assert!(ClosureManifest::parse(twice.as_bytes()).is_err());
        let unknown = text.replacen(first_key, &format!("{first_key} \"x\": 1,"), 1);
        assert!(matches!(
            ClosureManifest::parse(unknown.as_bytes()),
            Err(ManifestError::Form(_))
        ));
    }

    #[test]
    fn a_writable_or_set_uid_file_breaks_a_rule() {
        for mode in ["0755", "4555", "0557", "555"] {
            let mut manifest = sample();
            manifest.files[0].mode = mode.to_owned();
            assert_eq!(rule_of(&manifest), "a file's mode is not its role's");
        }
    }

    #[test]
    fn a_closure_holds_one_file_of_each_role_and_no_other() {
        let mut missing = sample();
        missing.files.pop();
        assert_eq!(
            rule_of(&missing),
            "the files are not one of each role, in order"
        );
        let mut elsewhere = sample();
        elsewhere.files[1].path = "../launcher".to_owned();
        assert_eq!(rule_of(&elsewhere), "a file's path is not its role's");
    }

    #[test]
    fn the_filter_that_is_described_is_the_filter_that_is_there() {
        let mut manifest = sample();
        manifest.filter.instructions = 3;
        assert_eq!(rule_of(&manifest), "the filter's facts are not its file's");
    }

    #[test]
    fn a_set_assume_kernel_breaks_a_rule() {
        let mut manifest = sample();
        manifest.effective_options.bubblewrap_assume_kernel = "6.1.0".to_owned();
        assert_eq!(rule_of(&manifest), "assume_kernel is set");
    }

    #[test]
    fn an_executable_that_lacks_one_property_breaks_a_rule() {
        let weaken: [fn(&mut ElfFacts); 9] = [
            |elf| elf.position_independent = false,
            |elf| elf.interpreter = Some("/lib/ld.so".to_owned()),
            |elf| elf.needed.push("libc.so".to_owned()),
            |elf| elf.run_paths.push("/lib".to_owned()),
            |elf| elf.executable_stack = true,
            |elf| elf.relro = Relro::Partial,
            |elf| elf.bind_now = false,
            |elf| elf.writable_executable_segments = 1,
            |elf| elf.build_id = true,
        ];
        for change in weaken {
            let mut manifest = sample();
            change(&mut manifest.elf[1]);
            assert_eq!(rule_of(&manifest), "an executable is not hardened");
        }
    }
}
