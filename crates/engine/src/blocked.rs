//! A refusal before package code: what was looked at, why it is refused, what to do.
//!
//! *Blocked* means that nothing of a package has run and nothing was substituted.
//! The text is for the operator and may hold host paths; records take the cause and
//! what it is about, never the rest.

use std::fmt;

use lazaret_custody::{CustodyError, Refusal};
use serde::Serialize;

/// What kind of refusal it is. The names are stable: programs may rely on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Cause {
    /// This platform does not have the profile.
    Unsupported,
    /// This build has accepted no closure of the profile.
    NotAccepted,
    /// The accepted closure is not there.
    ClosureMissing,
    /// Something of the closure is not what was accepted.
    ClosureDiffers,
    /// A directory or file could be changed by somebody else.
    UnsafeAncestry,
    /// The file system breaks promises.
    UnsafeFilesystem,
    /// Programs may not be started from there.
    NoExec,
    /// The run's user cannot get there.
    Unreachable,
    /// The run's user is not one that may be used.
    RunUser,
    /// The kernel does not answer openat2.
    Openat2,
    /// The kernel does not offer sealed files in memory.
    MemoryFiles,
    /// The kernel does not offer process descriptors.
    ProcessDescriptors,
    /// The boot clock does not run.
    Clock,
    /// An inherited hard limit is below what a run needs.
    HardLimit,
    /// The warden's program is missing or not to be trusted.
    WardenMissing,
    /// The data directory cannot be used.
    DataDirectory,
    /// Nobody has approved this.
    NotApproved,
    /// What was approved is something else.
    ApprovalDiffers,
    /// User namespaces are not to be had.
    UserNamespaces,
    /// The sandbox could not be set up, for another reason.
    Setup,
    /// The launcher did not come to the barrier.
    Launcher,
    /// A fact at the barrier was not the expected one.
    Barrier,
    /// The package or the input is larger than a run takes.
    TooLarge,
    /// Cancelled, or the deadline passed, before package code was released.
    NotReleased,
    /// Anything else that the kernel refused.
    Io,
}

impl Cause {
    /// The stable name.
    #[must_use]
    pub fn name(self) -> String {
        // The one spelling is that of the records.
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(name)) => name,
            _ => format!("{self:?}"),
        }
    }
}

/// A refusal before package code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
pub struct Blocked {
    /// What kind.
    pub cause: Cause,
    /// What was looked at, in words that hold no path.
    pub what: String,
    /// Why it is refused. May hold host paths.
    pub why: String,
    /// What the operator can do, one step each. May hold host paths.
    pub advice: Vec<String>,
}

impl Blocked {
    /// A refusal without advice.
    #[must_use]
    pub fn new(cause: Cause, what: &str, why: impl Into<String>) -> Self {
        Self {
            cause,
            what: what.to_owned(),
            why: why.into(),
            advice: Vec::new(),
        }
    }

    /// Adds one thing to do.
    #[must_use]
    pub fn advise(mut self, step: impl Into<String>) -> Self {
        self.advice.push(step.into());
        self
    }

    /// A refusal of custody, about `what`.
    #[must_use]
    pub fn custody(what: &str, error: &CustodyError) -> Self {
        let cause = match &error.refusal {
            Refusal::WritableByOthers { .. }
            | Refusal::FileWritableByOthers(_)
            | Refusal::Owner { .. }
            | Refusal::Links(_)
            | Refusal::ModeBits(_)
            | Refusal::SymbolicLink
            | Refusal::OtherMount => Cause::UnsafeAncestry,
            Refusal::Filesystem(_) | Refusal::FilesystemUnknown(_) => Cause::UnsafeFilesystem,
            Refusal::Unreachable { .. } => Cause::Unreachable,
            _ => Cause::Io,
        };
        let mut blocked = Self::new(cause, what, error.to_string());
        blocked.advice.extend(error.hint());
        blocked
    }

    /// A refusal of the kernel, about `what`.
    #[must_use]
    pub fn io(what: &str, operation: &str, error: &std::io::Error) -> Self {
        Self::new(Cause::Io, what, format!("{operation}: {error}"))
    }
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blocked: {}: {}", self.what, self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_reads_as_what_why_and_what_to_do() {
        let error = CustodyError::new(
            std::path::Path::new("/srv/x"),
            Refusal::WritableByOthers {
                mode: 0o777,
                mode_to_set: 0o755,
            },
        );
        let blocked = Blocked::custody("the data directory", &error);
        assert_eq!(
            blocked.to_string(),
            "Blocked: the data directory: /srv/x: has mode 0777, so group or others may write to it"
        );
        assert_eq!(blocked.advice, ["chmod 0755 /srv/x"]);
        assert_eq!(blocked.cause.name(), "unsafe-ancestry");
    }
}
