//! One run: stage, warden, verify, record.
//!
//! The order is that of DESIGN.md section 3. The steps that a database commits
//! (arming, releasing) are asked of a [`Gate`]; the embedded mode's gate looks at the
//! approval again, a server's commits. What comes out is either a verified output
//! with its record or the reason why there is none, with a record all the same.
//!
//! This module must never release a package when the gate did not say so, call an
//! output good that [`lazaret_contract::formatter::verify`] did not, or take an
//! answer of one kind (process, cleanup, output) for another.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lazaret_contract::digest::Sha256Digest;
use lazaret_profile::accepted::Accepted;

use crate::approval::{Limits, Permissions};
use crate::blocked::{Blocked, Cause};
use crate::data_dir::DataDir;
use crate::platform;
use crate::record::{
    BytesRecord, Conclusion, DOES_NOT_ESTABLISH, PackageRecord, ProfileRecord, RECORD_SCHEMA,
    RunRecord,
};

#[cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
pub(crate) mod session;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
mod staged;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
mod verify;

/// With what runs are made.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// The digests that count. The shipped binary passes those that are compiled in;
    /// tests of hostile launchers pass theirs.
    pub accepted: Accepted,
    /// Where closures are looked for, in order.
    pub closure_places: Vec<PathBuf>,
    /// The warden's program.
    pub warden: PathBuf,
    /// How long a run may take, from the call to the verified output; at most
    /// [`lazaret_contract::limits::WALL_DEADLINE_MS_MAX`].
    pub wall: Duration,
}

/// The package of a run: what it is called and the exact bytes that run.
#[derive(Clone, Copy, Debug)]
pub struct RunPackage<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its version.
    pub version: u32,
    /// What the task asks for.
    pub capability: &'a str,
    /// The bytes of `adapter.py`.
    pub code: &'a [u8],
    /// The package's content digest.
    pub content: Sha256Digest,
    /// The approval under which it runs.
    pub approval: Sha256Digest,
}

/// What is claimed of an output, and so how it is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputClaim {
    /// The exact bytes that the independent formatter makes of the input.
    FormatterBytes,
}

impl OutputClaim {
    /// As records name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FormatterBytes => "exact-bytes",
        }
    }
}

/// One run.
pub struct RunRequest<'a> {
    /// The data directory that the run happens in.
    pub data: &'a DataDir,
    /// The package.
    pub package: RunPackage<'a>,
    /// The exact bytes of the input.
    pub input: &'a [u8],
    /// What is claimed of the output.
    pub claim: OutputClaim,
    /// Who says at each step whether to go on.
    pub gate: &'a mut dyn Gate,
    /// With what the run can be cancelled.
    pub cancel: &'a Cancel,
    /// Whether to keep the run's files, and where: a directory that the operator
    /// named. A run that is not done keeps them in the data directory anyway.
    pub keep_evidence: Option<PathBuf>,
}

/// Who says at each step whether to go on. A later caller commits to its database
/// here; every check is made again each time.
pub trait Gate {
    /// Step 5: everything is staged and hashed; may bwrap be started?
    ///
    /// # Errors
    /// Why not; the run is Blocked then.
    fn arm(&mut self) -> Result<(), Blocked>;

    /// Step 9: the launcher is at the barrier and the launch recorded; may package
    /// code run?
    ///
    /// # Errors
    /// Why not; the run is Blocked then.
    fn release(&mut self) -> Result<(), Blocked>;
}

/// The right to cancel runs, from any thread. Once cancelled it stays so.
#[derive(Debug, Default)]
pub struct Cancel {
    asked: AtomicBool,
    #[cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
    running: std::sync::Mutex<Option<lazaret_warden::controller::Canceller>>,
}

impl Cancel {
    /// Asks for the end of the run under way and of every later one.
    pub fn cancel(&self) {
        self.asked.store(true, Ordering::SeqCst);
        #[cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
        if let Some(running) = self
            .running
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .as_ref()
        {
            running.cancel();
        }
    }

    /// Whether somebody has asked.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    /// Refuses to go on once somebody has asked.
    pub(crate) fn check(&self) -> Result<(), Blocked> {
        if self.is_asked() {
            return Err(Blocked::new(
                Cause::NotReleased,
                "the run",
                "it was cancelled",
            ));
        }
        Ok(())
    }

    /// Makes a later cancellation reach this run.
    #[cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
    pub(crate) fn attach(&self, canceller: lazaret_warden::controller::Canceller) {
        *self
            .running
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = Some(canceller.clone());
        // It may have been asked between the last look and now.
        if self.is_asked() {
            canceller.cancel();
        }
    }
}

/// A run whose output is verified.
#[derive(Debug)]
pub struct Finished {
    /// Its record.
    pub record: RunRecord,
    /// The verified output: these very bytes were checked.
    pub output: Vec<u8>,
    /// Where its files were kept, if that was asked for.
    pub evidence: Option<PathBuf>,
    /// What went wrong afterwards and changes nothing about the output.
    pub warnings: Vec<String>,
}

/// Why a run has no verified output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// No package code ran.
    Blocked(Blocked),
    /// Package code ran, its end is proved, and there is no verified output.
    Failed {
        /// A stable name.
        cause: String,
        /// Why, for the operator.
        why: String,
        /// What the package wrote to standard error: its word, cut, unescaped.
        stderr: Vec<u8>,
    },
    /// Package code may have run, and the end could not be proved.
    Unknown {
        /// Why, for the operator.
        why: String,
    },
}

impl Stop {
    /// In one word.
    #[must_use]
    pub fn conclusion(&self) -> Conclusion {
        match self {
            Self::Blocked(_) => Conclusion::Blocked,
            Self::Failed { .. } => Conclusion::Failed,
            Self::Unknown { .. } => Conclusion::Unknown,
        }
    }

    /// The cause and what it is about, as the record takes them: no path, no text of
    /// the package.
    fn for_record(&self) -> (String, String) {
        match self {
            Self::Blocked(blocked) => (blocked.cause.name(), blocked.what.clone()),
            Self::Failed { cause, .. } => (cause.clone(), "the package".to_owned()),
            Self::Unknown { .. } => ("end-not-proved".to_owned(), "the run".to_owned()),
        }
    }
}

/// A run without a verified output.
#[derive(Debug, thiserror::Error)]
#[error("run is not done")]
pub struct Unfinished {
    /// Why.
    pub stop: Stop,
    /// Its record.
    pub record: RunRecord,
    /// Where its files were kept, if any were made.
    pub evidence: Option<PathBuf>,
    /// What went wrong besides.
    pub warnings: Vec<String>,
}

/// What an attempt gathers on its way.
pub(crate) struct Attempt {
    pub(crate) record: RunRecord,
    pub(crate) evidence: Option<PathBuf>,
    pub(crate) warnings: Vec<String>,
}

/// Runs one package once.
///
/// # Errors
/// [`Unfinished`]: Blocked, failed or unknown, each with its record.
pub fn run_once(
    config: &EngineConfig,
    mut request: RunRequest<'_>,
) -> Result<Finished, Box<Unfinished>> {
    let mut attempt = Attempt {
        record: begin(config, &request),
        evidence: None,
        warnings: Vec::new(),
    };
    let ended = platform::require_supported(&config.accepted.profile)
        .map_err(Stop::Blocked)
        .and_then(|()| go(config, &mut request, &mut attempt));
    match &ended {
        Ok(_) => attempt.record.conclude(Conclusion::Done, None),
        Err(stop) => attempt
            .record
            .conclude(stop.conclusion(), Some(stop.for_record())),
    }
    if let Some(place) = &attempt.evidence
        && let Err(error) = crate::evidence::add_record(place, &attempt.record)
    {
        attempt
            .warnings
            .push(format!("the record is not with the evidence: {error}"));
    }
    let Attempt {
        record,
        evidence,
        warnings,
    } = attempt;
    match ended {
        Ok(output) => Ok(Finished {
            record,
            output,
            evidence,
            warnings,
        }),
        Err(stop) => Err(Box::new(Unfinished {
            stop,
            record,
            evidence,
            warnings,
        })),
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
fn go(
    config: &EngineConfig,
    request: &mut RunRequest<'_>,
    attempt: &mut Attempt,
) -> Result<Vec<u8>, Stop> {
    staged::run(config, request, attempt)
}

/// There is no way to run a package here.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile))))]
fn go(
    config: &EngineConfig,
    request: &mut RunRequest<'_>,
    _: &mut Attempt,
) -> Result<Vec<u8>, Stop> {
    let _ = (request.cancel.check(), &mut request.gate);
    let why = format!("{} is unsupported here", config.accepted.profile);
    Err(Stop::Blocked(Blocked::new(
        Cause::Unsupported,
        "the profile",
        why,
    )))
}

fn begin(config: &EngineConfig, request: &RunRequest<'_>) -> RunRecord {
    let accepted = &config.accepted;
    let package = &request.package;
    RunRecord {
        schema: RECORD_SCHEMA.to_owned(),
        run: None,
        conclusion: Conclusion::Blocked,
        cause: None,
        about: None,
        platform: platform::name(),
        profile: ProfileRecord {
            id: accepted.profile.clone(),
            candidate: crate::closure::is_candidate(&accepted.profile),
            standing: accepted.standing().to_owned(),
            python: None,
            closure_sha256: accepted.closure,
            bwrap_sha256: accepted.bwrap,
            launcher_sha256: accepted.launcher,
            filter_sha256: accepted.filter,
            inputs_sha256: accepted.inputs,
        },
        package: PackageRecord {
            id: package.id.to_owned(),
            version: package.version,
            capability: package.capability.to_owned(),
            content_sha256: package.content,
            code: BytesRecord::of(package.code),
            approval_sha256: package.approval,
        },
        input: BytesRecord::of(request.input),
        permissions: Permissions::fixed(),
        limits: Limits::fixed(),
        barrier: None,
        process: None,
        cleanup: None,
        verification: None,
        usage: None,
        no_learning: true,
        establishes: Vec::new(),
        does_not_establish: DOES_NOT_ESTABLISH.map(str::to_owned).to_vec(),
    }
}
