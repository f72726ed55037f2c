//! The record of one run: what was bound, what was observed, what it establishes.
//!
//! A record keeps three facts apart: how the process ended, whether its cleanup is
//! proved, and whether the output is true. It is written by hand as a form of its
//! own (it mirrors no type of another crate), versioned, and holds no clock, no host
//! path, no secret and no text of a package: what a package wrote is in it by size
//! and digest alone (DESIGN.md section 7).
//!
//! It is a record, not a receipt: nobody has signed it.

use lazaret_contract::digest::Sha256Digest;
use serde::{Deserialize, Serialize};

use crate::approval::{Limits, Permissions};

/// The version of the form.
pub const RECORD_SCHEMA: &str = "lazaret-run-record/1";

/// What a finished run establishes, in the record's own words.
pub const ESTABLISHES: [&str; 4] = [
    "the package with this digest was given the input with this digest, once, under this profile",
    "at the barrier the kernel said of the launcher's process what `barrier.facts` says, before package code was released",
    "the output with this digest was read back through the inode that was made for it and is byte for byte what the independent implementation makes of the input",
    "what was staged had the same digests at the end as at the beginning",
];

/// What no record establishes.
pub const DOES_NOT_ESTABLISH: [&str; 6] = [
    "that isolation holds against faults of the kernel, the profile or CPython",
    "that anybody who did not write the profile has reviewed it, unless `profile.standing` says so",
    "who published the package, or that its code is right for any other input",
    "quotas of CPU rate or memory beyond the limits named",
    "anything about another platform",
    "that the operator did not write this record by hand: it is not signed",
];

/// How the run ended, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Conclusion {
    /// The output is verified.
    Done,
    /// Package code ran and there is no verified output.
    Failed,
    /// No package code ran.
    Blocked,
    /// Package code may have run, and the end could not be proved.
    Unknown,
}

/// The profile and what was accepted for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileRecord {
    /// Its id.
    pub id: String,
    /// Whether it is a candidate.
    pub candidate: bool,
    /// How its acceptance stands, in words.
    pub standing: String,
    /// The interpreter's version; none before the closure was found.
    pub python: Option<String>,
    /// The closure's manifest.
    pub closure_sha256: Sha256Digest,
    /// bubblewrap.
    pub bwrap_sha256: Sha256Digest,
    /// The launcher.
    pub launcher_sha256: Sha256Digest,
    /// The filter.
    pub filter_sha256: Sha256Digest,
    /// The inputs that gave them.
    pub inputs_sha256: Sha256Digest,
}

/// Bytes, by size and digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BytesRecord {
    /// The size, in bytes.
    pub size_bytes: u64,
    /// The digest.
    pub sha256: Sha256Digest,
}

impl BytesRecord {
    /// Describes bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self {
            size_bytes: bytes.len() as u64,
            sha256: Sha256Digest::of(bytes),
        }
    }
}

/// The package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageRecord {
    /// Its id.
    pub id: String,
    /// Its version.
    pub version: u32,
    /// What the task asked for.
    pub capability: String,
    /// The package's content digest.
    pub content_sha256: Sha256Digest,
    /// The bytes that ran.
    pub code: BytesRecord,
    /// The approval under which it ran.
    pub approval_sha256: Sha256Digest,
}

/// One fact at the barrier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactRecord {
    /// Which one.
    pub fact: String,
    /// What it had to be.
    pub expected: String,
    /// What the kernel said.
    pub found: String,
    /// Whether they agree.
    pub holds: bool,
}

/// The barrier, once it was reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BarrierRecord {
    /// Every fact.
    pub facts: Vec<FactRecord>,
    /// The kernel's raw texts, kept as private evidence, by digest.
    pub evidence_sha256: Sha256Digest,
}

/// First fact: how the process ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessRecord {
    /// How far the run had come.
    pub phase: String,
    /// Whether package code was released.
    pub released: bool,
    /// The kind of ending, a stable name.
    pub reason: String,
    /// The exit code, where the process ended by itself.
    pub exit_code: Option<u8>,
    /// The signal, where one ended it.
    pub signal: Option<i32>,
    /// The number of the system call that the filter killed.
    pub denied_call: Option<u64>,
}

/// Second fact: whether anything is left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CleanupRecord {
    /// Whether it is proved that nothing is left.
    pub proved: bool,
    /// Whether the kernel said that no child and no tracee is left.
    pub none_left: bool,
    /// Whether every process descriptor shows its process's end.
    pub descriptors_show_end: bool,
    /// How many processes were reaped.
    pub reaped: usize,
}

/// Third fact: whether the output is true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerificationRecord {
    /// What is claimed of the output.
    pub output_claim: String,
    /// Whether it was verified.
    pub verified: bool,
    /// Why not, a stable name.
    pub refusal: Option<String>,
    /// Whether the closing digests equal the opening ones.
    pub staged_unchanged: bool,
    /// The output, if it could be read.
    pub output: Option<BytesRecord>,
}

/// What the run used, as the kernel measured it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageRecord {
    /// CPU time in user mode, in nanoseconds.
    pub cpu_user_ns: u64,
    /// CPU time in the kernel, in nanoseconds.
    pub cpu_system_ns: u64,
    /// From the start of the sandbox to its end, in nanoseconds.
    pub wall_ns: u64,
    /// The part of it after the release.
    pub package_wall_ns: u64,
    /// Largest resident set, in bytes.
    pub peak_memory_bytes: u64,
    /// Page tables at the end, in bytes.
    pub page_tables_bytes: u64,
    /// Bytes on standard output.
    pub stdout_bytes: u64,
    /// Bytes on standard error.
    pub stderr_bytes: u64,
    /// Bytes of the output.
    pub output_bytes: u64,
}

/// What was seen of a run so far; becomes part of its record.
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
#[derive(Clone, Debug, Default)]
pub(crate) struct Observed {
    pub(crate) barrier: Option<BarrierRecord>,
    pub(crate) process: Option<ProcessRecord>,
    pub(crate) cleanup: Option<CleanupRecord>,
    pub(crate) usage: Option<UsageRecord>,
}

/// The record of one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// [`RECORD_SCHEMA`].
    pub schema: String,
    /// The run's name, random.
    pub run: Option<String>,
    /// How it ended.
    pub conclusion: Conclusion,
    /// Why, a stable name; none where it is done.
    pub cause: Option<String>,
    /// What the cause is about, without a path.
    pub about: Option<String>,
    /// The platform.
    pub platform: String,
    /// The profile.
    pub profile: ProfileRecord,
    /// The package.
    pub package: PackageRecord,
    /// The input.
    pub input: BytesRecord,
    /// What the run could reach.
    pub permissions: Permissions,
    /// What the run could use.
    pub limits: Limits,
    /// The barrier's facts.
    pub barrier: Option<BarrierRecord>,
    /// How the process ended.
    pub process: Option<ProcessRecord>,
    /// Whether anything is left.
    pub cleanup: Option<CleanupRecord>,
    /// Whether the output is true.
    pub verification: Option<VerificationRecord>,
    /// What it used.
    pub usage: Option<UsageRecord>,
    /// Nothing learns from a run.
    pub no_learning: bool,
    /// What this establishes.
    pub establishes: Vec<String>,
    /// What it does not.
    pub does_not_establish: Vec<String>,
}

impl RunRecord {
    /// The written form: JSON with two spaces and a newline.
    ///
    /// # Errors
    /// Never for a value of this type; serde's signature asks for it.
    pub fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Takes over what was seen.
    #[cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
    pub(crate) fn observe(&mut self, seen: Observed) {
        self.barrier = seen.barrier;
        self.process = seen.process;
        self.cleanup = seen.cleanup;
        self.usage = seen.usage;
    }

    /// Sets the conclusion, and with it what the record establishes.
    pub(crate) fn conclude(&mut self, conclusion: Conclusion, cause: Option<(String, String)>) {
        self.conclusion = conclusion;
        self.establishes = match conclusion {
            Conclusion::Done => ESTABLISHES.map(str::to_owned).to_vec(),
            Conclusion::Blocked => vec!["that no package code ran".to_owned()],
            Conclusion::Failed | Conclusion::Unknown => Vec::new(),
        };
        (self.cause, self.about) = cause.unzip();
    }
}
