//! Step 8: what the kernel says of the launcher before it is released.
//!
//! [`observe`] reads it from outside, through one held /proc/PID directory;
//! [`parse`] turns the kernel's texts into values; [`judge`] compares them with an
//! exact expectation. Only `observe` touches the system. Nothing that the launcher
//! says of itself counts here, and nothing but equality is a pass.

use std::fmt;

use serde::{Deserialize, Serialize};

pub mod judge;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
pub mod observe;
pub mod parse;

use crate::limits::Resource;

/// One of the five capability sets (capabilities(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CapabilitySet {
    /// CapInh.
    Inheritable,
    /// CapPrm.
    Permitted,
    /// CapEff.
    Effective,
    /// CapBnd.
    Bounding,
    /// CapAmb.
    Ambient,
}

impl CapabilitySet {
    /// All five.
    pub const ALL: [Self; 5] = [
        Self::Inheritable,
        Self::Permitted,
        Self::Effective,
        Self::Bounding,
        Self::Ambient,
    ];

    /// Its field in /proc/PID/status.
    #[must_use]
    pub const fn status_field(self) -> &'static str {
        match self {
            Self::Inheritable => "CapInh",
            Self::Permitted => "CapPrm",
            Self::Effective => "CapEff",
            Self::Bounding => "CapBnd",
            Self::Ambient => "CapAmb",
        }
    }
}

/// A namespace that has to be another one than the warden's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NamespaceKind {
    /// cgroup.
    Cgroup,
    /// System V IPC and POSIX message queues.
    Ipc,
    /// Mounts.
    Mount,
    /// Network.
    Network,
    /// Process ids.
    Pid,
    /// User and group ids.
    User,
    /// Host name.
    Uts,
}

/// One thing that the barrier looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fact {
    /// The launcher's process was alive before and after everything was read.
    Alive,
    /// Its parent is the bwrap that the warden started.
    Parent,
    /// Its tracer is the warden.
    Tracer,
    /// Its pids, from the warden's namespace inwards: its own and 1.
    NamespacePids,
    /// It leads a session of its own.
    Session,
    /// It has no controlling terminal.
    Terminal,
    /// Real, effective, saved and file-system uid.
    UserIds,
    /// The same for the gid.
    GroupIds,
    /// Supplementary groups: the warden's own.
    SupplementaryGroups,
    /// Number of system-call filters: those that the warden has itself, and one.
    FilterCount,
    /// Seccomp mode.
    FilterMode,
    /// no_new_privs.
    NoNewPrivileges,
    /// One set of capabilities.
    Capabilities(CapabilitySet),
    /// Number of threads.
    Threads,
    /// No signal is blocked.
    BlockedSignals,
    /// Which signals are ignored: the two that the launcher ignores.
    IgnoredSignals,
    /// No signal has a handler.
    CaughtSignals,
    /// The file mode creation mask.
    Umask,
    /// Transparent huge pages are off.
    HugePages,
    /// Plain Linux without flags.
    Personality,
    /// First to be killed when memory is short.
    OomScore,
    /// Nothing goes into a core file.
    CoredumpFilter,
    /// Which descriptors are open.
    Descriptors,
    /// Descriptor 0, 1 or 2 is the warden's own pipe, by inode.
    StandardStream(u8),
    /// One limit, soft and hard.
    Limit(Resource),
    /// A namespace is not the warden's.
    Namespace(NamespaceKind),
    /// The time namespace is the warden's, so that start times can be compared.
    TimeNamespace,
    /// The mounts are exactly the expected ones.
    Mounts,
    /// The root directory has exactly the expected entries.
    RootEntries,
    /// The output directory has exactly the one entry.
    OutputEntries,
    /// `/launcher` is the inode that was staged.
    LauncherInode,
    /// `/out/result.json` is the run's output inode.
    OutputInode,
    /// `/package.py` has the staged bytes, by digest.
    PackageContent,
    /// `/input.json` has the staged bytes, by digest.
    InputContent,
    /// The mapping of uids: one, to the run's user.
    UidMap,
    /// The mapping of gids: one, to the run's group.
    GidMap,
    /// setgroups(2) is denied in the namespace.
    Setgroups,
    /// The network interfaces: the loopback one alone.
    NetworkInterfaces,
    /// The working directory is the root.
    WorkingDirectory,
    /// The program that runs has the inode of the staged launcher, unchanged.
    ExecutableInode,
    /// The program that runs has the accepted launcher's bytes, by digest.
    ExecutableDigest,
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The one spelling of a fact is the one of the records.
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(name)) => f.write_str(&name),
            Ok(serde_json::Value::Object(fields)) => {
                for (name, which) in fields {
                    match which.as_str() {
                        Some(which) => write!(f, "{name} {which}")?,
                        None => write!(f, "{name} {which}")?,
                    }
                }
                Ok(())
            }
            _ => write!(f, "{self:?}"),
        }
    }
}

/// A fact, judged. The texts hold no host path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgedFact {
    /// Which fact.
    pub fact: Fact,
    /// What it had to be.
    pub expected: String,
    /// What it was.
    pub found: String,
    /// Whether the two agree.
    pub holds: bool,
}
