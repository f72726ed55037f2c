//! What a warden says: staged, launched, outcome.
//!
//! These are forms on the wire and on disk, each with its schema's version. Every
//! one is authenticated under the run token ([`crate::token`]); without that they
//! are somebody's text. They hold facts, measured or read from the kernel, and no
//! judgement about what a run was worth. No host path stands in a fact.

use lazaret_contract::digest::Sha256Digest;
use serde::{Deserialize, Serialize};

use crate::barrier::JudgedFact;
pub use crate::ending::{CallEntry, Ending, Phase, ProcessEnd, Stream};
use crate::frame::Kind;
use crate::spec::RunId;
use crate::token::{RunToken, TOKEN_BYTES};

/// Version of [`Staged`].
pub const STAGED_SCHEMA: &str = "lazaret-warden-staged/1";
/// Version of [`Launched`].
pub const LAUNCHED_SCHEMA: &str = "lazaret-warden-launched/1";
/// Version of [`Outcome`].
pub const OUTCOME_SCHEMA: &str = "lazaret-warden-outcome/1";

/// What tells one process from every other one, also after its number has been
/// given to another: PIDs and namespace inodes come back, start times within a boot
/// do not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// Process id as the warden's /proc shows it.
    pub pid: i32,
    /// Field 22 of /proc/PID/stat, in clock ticks since boot (in the warden's time
    /// namespace).
    pub start_time_ticks: u64,
    /// /proc/sys/kernel/random/boot_id.
    pub boot_id: String,
    /// /etc/machine-id, if there is one.
    pub machine_id: Option<String>,
    /// Inode of its PID namespace.
    pub pid_namespace: u64,
    /// Inode of its time namespace; none on kernels without them.
    pub time_namespace: Option<u64>,
}

/// The digests of everything that goes into a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedDigests {
    /// The package's bytes, in their sealed memfd.
    pub package: Sha256Digest,
    /// The input's bytes, in their sealed memfd.
    pub input: Sha256Digest,
    /// bubblewrap.
    pub bwrap: Sha256Digest,
    /// The launcher.
    pub launcher: Sha256Digest,
    /// The filter's bytes.
    pub filter: Sha256Digest,
}

/// What could not be set to its fixed value and only takes something from the run:
/// a lower priority than usual. Everything else is set or refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct InheritedPriority {
    /// The nice value; 0 where it could be set.
    pub nice: i32,
    /// The scheduling policy (sched(7)); 0 where it could be set.
    pub policy: i32,
}

/// Step 4 is done: the warden waits to be armed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Staged {
    /// [`STAGED_SCHEMA`].
    pub schema: String,
    /// The run.
    pub run_id: RunId,
    /// The warden itself.
    pub warden: ProcessIdentity,
    /// The uid that the run has on the host.
    pub uid: u32,
    /// The gid that the run has on the host.
    pub gid: u32,
    /// System-call filters that already apply to the warden, and so to everything
    /// that it starts.
    pub inherited_filters: u32,
    /// Priorities that were inherited.
    pub inherited_priority: InheritedPriority,
    /// What was staged.
    pub digests: StagedDigests,
    /// Size of the package, in bytes.
    pub package_bytes: u64,
    /// Size of the input, in bytes.
    pub input_bytes: u64,
}

/// The inodes of the launcher's namespaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespaces {
    /// cgroup.
    pub cgroup: u64,
    /// System V IPC and POSIX message queues.
    pub ipc: u64,
    /// Mounts.
    pub mount: u64,
    /// Network.
    pub network: u64,
    /// Process ids.
    pub pid: u64,
    /// User and group ids.
    pub user: u64,
    /// Host name.
    pub uts: u64,
}

/// Steps 6 to 9 are done: the launcher waits at the barrier, the facts hold, and
/// this record is on the disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launched {
    /// [`LAUNCHED_SCHEMA`].
    pub schema: String,
    /// The run.
    pub run_id: RunId,
    /// The warden.
    pub warden: ProcessIdentity,
    /// The launcher.
    pub launcher: ProcessIdentity,
    /// Its namespaces.
    pub namespaces: Namespaces,
    /// Every fact of the barrier, as expected and as found.
    pub facts: Vec<JudgedFact>,
    /// Digest of the raw texts, which lie beside this record under that name. They
    /// hold host paths: private evidence.
    pub evidence: Sha256Digest,
}

/// Why a run is over and what it took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// [`OUTCOME_SCHEMA`].
    pub schema: String,
    /// The run, once the warden knew it.
    pub run_id: Option<RunId>,
    /// Why it is over.
    pub ending: Ending,
    /// How far it had come.
    pub phase: Phase,
    /// Whether the release byte was written. If not, no package code ran.
    pub released: bool,
    /// What it used.
    pub usage: RunUsage,
    /// That nothing is left.
    pub cleanup: Cleanup,
    /// The files and bytes of the run, hashed again at its end; none if it ended
    /// before they were staged.
    pub closing: Option<Closing>,
    /// Standard output after the ready record.
    pub stdout: StreamRecord,
    /// Standard error.
    pub stderr: StreamRecord,
    /// Whether this record was synced to the disk under its name. The copy on the
    /// disk always says yes.
    pub recorded: bool,
}

impl Outcome {
    /// Whether the run did all that was asked of it, so that its output may be
    /// verified: package code ended by itself with code 0, no limit was hit, all
    /// processes are proved gone, what was staged is unchanged, and the record is
    /// on the disk.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.ending == (Ending::Exited { code: 0 })
            && self.released
            && self.recorded
            && self.cleanup.is_proved()
            && self
                .closing
                .as_ref()
                .is_some_and(|closing| closing.unchanged)
    }
}

/// What a run used, measured by the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RunUsage {
    /// CPU time of the launcher's process in user mode, its start included, in
    /// nanoseconds.
    pub cpu_user_ns: u64,
    /// CPU time of it in the kernel, in nanoseconds.
    pub cpu_system_ns: u64,
    /// From the start of bwrap until the launcher's process was reaped, in
    /// nanoseconds of `CLOCK_BOOTTIME`.
    pub wall_ns: u64,
    /// The part of it after the release.
    pub package_wall_ns: u64,
    /// Largest resident set of the launcher's process, in bytes.
    pub peak_memory_bytes: u64,
    /// Page tables at its end, in bytes; 0 if they could not be read.
    pub page_tables_bytes: u64,
    /// Bytes written to standard output after the ready record, as far as counted.
    pub stdout_bytes: u64,
    /// Bytes written to standard error, as far as counted.
    pub stderr_bytes: u64,
    /// Size of the output file, in bytes.
    pub output_bytes: u64,
}

/// One process that was reaped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReapedProcess {
    /// Its id.
    pub pid: i32,
    /// What it was.
    pub role: Role,
    /// How it ended.
    pub end: ProcessEnd,
}

/// What a process was to the warden.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The outer bubblewrap.
    Bwrap,
    /// Its child: set-up first, then the launcher, then the package.
    Launcher,
    /// Anything else that became the warden's child or tracee.
    Other,
}

/// The proof that nothing is left.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Cleanup {
    /// Every process that was reaped, in order.
    pub reaped: Vec<ReapedProcess>,
    /// Whether the kernel then said that the warden has no child and no tracee
    /// (ECHILD).
    pub none_left: bool,
    /// Whether the descriptors of all processes that were started show their end.
    pub descriptors_show_end: bool,
}

impl Cleanup {
    /// Whether it is a proof.
    #[must_use]
    pub fn is_proved(&self) -> bool {
        self.none_left && self.descriptors_show_end
    }
}

/// The digests at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closing {
    /// What was staged, hashed again. The launcher's digest is the one taken from
    /// the running process, if it came so far: from its exec to its end the kernel
    /// lets nobody write to the file, and its inode is unchanged since.
    pub digests: StagedDigests,
    /// Whether they equal the opening ones.
    pub unchanged: bool,
    /// The output file.
    pub output: Option<OutputRecord>,
}

/// The output file as it was when the last process was gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputRecord {
    /// Its size, in bytes.
    pub bytes: u64,
    /// The digest of its bytes; none if it is larger than allowed.
    pub sha256: Option<Sha256Digest>,
}

/// What came over one stream.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StreamRecord {
    /// The bytes kept, as hexadecimal digits: at most the limit.
    #[serde(with = "hex_text")]
    pub kept: Vec<u8>,
    /// Whether there was more than that.
    pub truncated: bool,
}

/// Bytes as hexadecimal digits.
mod hex_text {
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&hex::encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        hex::decode(String::deserialize(from)?).map_err(serde::de::Error::custom)
    }
}

/// Why a record is not believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Not the form of a record on disk.
    #[error("record has another form: one line of JSON and one of 64 hexadecimal digits")]
    Form,
    /// Not authenticated by the run token.
    #[error("record is not authenticated by the run token")]
    Authenticator,
    /// Authenticated, but not of this version.
    #[error("record of kind {kind} cannot be read: {detail}")]
    Content {
        /// Which record.
        kind: &'static str,
        /// What the parser said.
        detail: String,
    },
}

/// A record on disk: its line of JSON, then the authenticator in hexadecimal.
#[must_use]
pub fn to_disk(token: &RunToken, kind: Kind, payload: &[u8]) -> Vec<u8> {
    let mut bytes = payload.to_vec();
    bytes.push(b'\n');
    bytes.extend_from_slice(hex::encode(token.authenticate(kind.byte(), payload)).as_bytes());
    bytes.push(b'\n');
    bytes
}

fn from_disk<'a>(token: &RunToken, kind: Kind, bytes: &'a [u8]) -> Result<&'a [u8], RecordError> {
    let tail = 2 * TOKEN_BYTES + 2;
    let at = bytes.len().checked_sub(tail).ok_or(RecordError::Form)?;
    let (payload, rest) = bytes.split_at(at);
    let digits = rest
        .strip_prefix(b"\n")
        .and_then(|rest| rest.strip_suffix(b"\n"))
        .ok_or(RecordError::Form)?;
    let authenticator = hex::decode(digits).map_err(|_| RecordError::Form)?;
    if token.accepts(kind.byte(), payload, &authenticator) {
        Ok(payload)
    } else {
        Err(RecordError::Authenticator)
    }
}

pub(crate) fn parse<T: serde::de::DeserializeOwned>(
    kind: &'static str,
    payload: &[u8],
) -> Result<T, RecordError> {
    serde_json::from_slice(payload).map_err(|error| RecordError::Content {
        kind,
        detail: error.to_string(),
    })
}

/// Reads `launch.json` of a run directory.
///
/// # Errors
/// [`RecordError`]: a record that is not believed is no record.
pub fn read_launched(token: &RunToken, bytes: &[u8]) -> Result<Launched, RecordError> {
    parse("launched", from_disk(token, Kind::Launched, bytes)?)
}

/// Reads `outcome.json` of a run directory.
///
/// # Errors
/// [`RecordError`]: a record that is not believed is no record.
pub fn read_outcome(token: &RunToken, bytes: &[u8]) -> Result<Outcome, RecordError> {
    parse("outcome", from_disk(token, Kind::Outcome, bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TOKEN: RunToken = RunToken::from_bytes([3; 32]);

    fn outcome() -> Outcome {
        Outcome {
            schema: OUTCOME_SCHEMA.to_owned(),
            run_id: RunId::new("r").ok(),
            ending: Ending::Exited { code: 0 },
            phase: Phase::Running,
            released: true,
            usage: RunUsage::default(),
            cleanup: Cleanup {
                reaped: Vec::new(),
                none_left: true,
                descriptors_show_end: true,
            },
            closing: None,
            stdout: StreamRecord {
                kept: vec![0, 0xff],
                truncated: false,
            },
            stderr: StreamRecord::default(),
            recorded: true,
        }
    }

    #[test]
    fn a_record_on_disk_reads_back() {
        let payload = serde_json::to_vec(&outcome()).unwrap();
        let bytes = to_disk(&TOKEN, Kind::Outcome, &payload);
        assert_eq!(read_outcome(&TOKEN, &bytes), Ok(outcome()));
        assert_eq!(
            read_outcome(&RunToken::from_bytes([4; 32]), &bytes),
            Err(RecordError::Authenticator)
        );
        // An outcome is no launch record, even where the JSON would fit.
        assert_eq!(
            read_launched(&TOKEN, &bytes),
            Err(RecordError::Authenticator)
        );
    }

    #[test]
    fn success_needs_every_part_of_it() {
        let digest = Sha256Digest::of(b"");
        let digests = StagedDigests {
            package: digest,
            input: digest,
            bwrap: digest,
            launcher: digest,
            filter: digest,
        };
        let mut good = outcome();
        good.closing = Some(Closing {
            digests,
            unchanged: true,
            output: None,
        });
        assert!(good.is_success());
        let spoil: [fn(&mut Outcome); 6] = [
            |o| o.ending = Ending::Exited { code: 1 },
            |o| o.released = false,
            |o| o.recorded = false,
            |o| o.cleanup.none_left = false,
            |o| o.cleanup.descriptors_show_end = false,
            |o| o.closing = None,
        ];
        for spoil in spoil {
            let mut bad = good.clone();
            spoil(&mut bad);
            assert!(!bad.is_success(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn any_changed_byte_makes_a_record_no_record(at in any::<usize>(), flip in 1_u8..) {
            let payload = serde_json::to_vec(&outcome()).unwrap();
            let mut bytes = to_disk(&TOKEN, Kind::Outcome, &payload);
            let at = at % bytes.len();
            bytes[at] ^= flip;
            // Upper and lower case of the authenticator's digits are one value.
            prop_assume!(!(flip == 0x20 && bytes[at].is_ascii_hexdigit() && at > payload.len()));
            prop_assert!(read_outcome(&TOKEN, &bytes).is_err());
        }

        #[test]
        fn arbitrary_bytes_are_no_record(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(read_outcome(&TOKEN, &bytes).is_err());
        }
    }
}
