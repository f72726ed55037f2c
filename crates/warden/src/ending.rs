//! The ways in which a run ends, each with what is known of it.
//!
//! Before the release every ending means *Blocked*: no package code ran. After it
//! the wait status comes from the kernel's exit event alone, never from bwrap's
//! exit code or from anything that the package wrote.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::barrier::Fact;

/// One of the two streams of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// How a process ended, as wait(2) tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessEnd {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
}

/// How a denied call had entered the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallEntry {
    /// By the `syscall` instruction.
    Syscall,
    /// By `int 0x80`.
    Int80,
    /// Otherwise, or it could not be told.
    Other,
}

/// How far a run had come (the steps of DESIGN section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Step 4, not finished.
    Staging,
    /// Staged, waiting to be armed.
    Staged,
    /// bwrap was started; steps 6 and 7.
    Starting,
    /// Step 8: the ready record has come.
    Barrier,
    /// Step 9: recorded, waiting for the release.
    Launched,
    /// Step 10: released.
    Running,
}

/// Why a run is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "reason",
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case"
)]
pub enum Ending {
    /// The package ended by itself, with a code from 0 to 127.
    Exited {
        /// The code.
        code: u8,
    },
    /// It ended with a code that the filter does not let pass: the filter is not
    /// what it was taken for.
    ExitCodeForbidden {
        /// The code.
        code: i32,
    },
    /// A signal ended it, or would have: a fault of the processor is fatal here.
    Signalled {
        /// The signal.
        signal: i32,
    },
    /// The filter killed it.
    DeniedCall {
        /// The number of the system call.
        number: u64,
        /// How it was made.
        entry: CallEntry,
    },
    /// It used up its CPU time.
    CpuLimit,
    /// The attempt's deadline has passed.
    WallDeadline,
    /// It wrote more to a stream than allowed.
    StreamLimit {
        /// Which one.
        which: Stream,
    },
    /// It tried to write more output than allowed.
    OutputLimit,
    /// It made a second process or became another program.
    UnexpectedProcess,
    /// The controller asked for the end.
    Cancelled,
    /// The control pipe ended, or spoke otherwise than agreed.
    ControllerLost {
        /// What was noticed.
        detail: String,
    },
    /// Somebody sent the warden a signal.
    WardenSignalled {
        /// The signal.
        signal: i32,
    },
    /// bwrap ended although its child had not.
    BwrapLost {
        /// How it ended.
        end: ProcessEnd,
    },
    /// Something of the set-up outside or in bwrap did not work.
    SetupFailed {
        /// Which step.
        step: String,
        /// What was said. May hold host paths: for the operator, not for a receipt.
        detail: String,
    },
    /// The launcher said which of its steps failed.
    LauncherStageFailed {
        /// The step's name.
        stage: String,
        /// Its exit code.
        exit_code: i32,
        /// Its line on standard error.
        detail: String,
    },
    /// The launcher ended before the release in another way.
    LauncherEnded {
        /// How.
        end: ProcessEnd,
        /// What it wrote to standard error.
        detail: String,
    },
    /// The ready record is not the expected one.
    ReadyWrong {
        /// What differs.
        detail: String,
    },
    /// Something came over a stream before the release.
    ExtraOutput {
        /// Over which.
        which: Stream,
    },
    /// A fact of the barrier is not as expected.
    BarrierFactWrong {
        /// Which one.
        fact: Fact,
        /// What was expected.
        expected: String,
        /// What was found.
        found: String,
    },
    /// A record could not be made durable.
    RecordFailed {
        /// Which one.
        record: String,
        /// What the kernel said.
        detail: String,
        /// How the run had ended otherwise.
        instead_of: Option<Box<Ending>>,
    },
    /// The kernel refused the warden something that it needs to go on.
    WardenFailed {
        /// What was tried.
        operation: String,
        /// What the kernel said.
        detail: String,
    },
}

#[cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
impl Ending {
    /// A failed step of the set-up.
    pub(crate) fn setup(step: &str, detail: impl fmt::Display) -> Self {
        Self::SetupFailed {
            step: step.to_owned(),
            detail: detail.to_string(),
        }
    }

    /// A refusal of the kernel where none is expected.
    pub(crate) fn warden(operation: &str, error: impl fmt::Display) -> Self {
        Self::WardenFailed {
            operation: operation.to_owned(),
            detail: error.to_string(),
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited { code } => write!(f, "exited with code {code}"),
            Self::ExitCodeForbidden { code } => {
                write!(
                    f,
                    "exited with code {code}, which the filter should have refused"
                )
            }
            Self::Signalled { signal } => write!(f, "ended by signal {signal}"),
            Self::DeniedCall {
                number,
                entry: CallEntry::Syscall,
            } => {
                write!(f, "denied system call {number}")
            }
            Self::DeniedCall {
                number,
                entry: CallEntry::Int80,
            } => {
                write!(f, "denied 32-bit system call {number}")
            }
            Self::DeniedCall {
                number,
                entry: CallEntry::Other,
            } => {
                write!(f, "denied system call {number} by an unknown entry")
            }
            Self::CpuLimit => f.write_str("CPU time used up"),
            Self::WallDeadline => f.write_str("deadline passed"),
            Self::StreamLimit {
                which: Stream::Stdout,
            } => f.write_str("wrote more than allowed to standard output"),
            Self::StreamLimit {
                which: Stream::Stderr,
            } => f.write_str("wrote more than allowed to standard error"),
            Self::OutputLimit => f.write_str("tried to write more output than allowed"),
            Self::UnexpectedProcess => f.write_str("made a second process or program"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::ControllerLost { detail } => write!(f, "controller lost: {detail}"),
            Self::WardenSignalled { signal } => write!(f, "warden got signal {signal}"),
            Self::BwrapLost { end } => write!(f, "bwrap was lost: {end}"),
            Self::SetupFailed { step, detail } => write!(f, "set-up failed at {step}: {detail}"),
            Self::LauncherStageFailed {
                stage,
                exit_code,
                detail,
            } => {
                write!(f, "launcher failed at {stage} (code {exit_code}): {detail}")
            }
            Self::LauncherEnded { end, detail } => {
                write!(f, "launcher ended before release: {end}: {detail}")
            }
            Self::ReadyWrong { detail } => write!(f, "ready record is wrong: {detail}"),
            Self::ExtraOutput {
                which: Stream::Stdout,
            } => f.write_str("standard output carried something before the release"),
            Self::ExtraOutput {
                which: Stream::Stderr,
            } => f.write_str("standard error carried something before the release"),
            Self::BarrierFactWrong {
                fact,
                expected,
                found,
            } => {
                write!(f, "barrier fact {fact} is {found}, expected {expected}")
            }
            Self::RecordFailed {
                record,
                detail,
                instead_of: None,
            } => {
                write!(f, "{record} record could not be written: {detail}")
            }
            Self::RecordFailed {
                record,
                detail,
                instead_of: Some(ending),
            } => {
                write!(
                    f,
                    "{record} record could not be written: {detail}; otherwise {ending}"
                )
            }
            Self::WardenFailed { operation, detail } => {
                write!(f, "warden failed at {operation}: {detail}")
            }
        }
    }
}

impl fmt::Display for ProcessEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exited with code {code}"),
            Self::Signalled(signal) => write!(f, "ended by signal {signal}"),
        }
    }
}
