//! What a run needs of a host, probed by doing it.
//!
//! Each fact is either there, or Blocked with what, why and what to do, or was not
//! tried because an earlier one is missing. The last probe is a real start: a
//! harmless package goes through staging, the warden, bubblewrap and the launcher up
//! to the barrier, where it is ended. It is never released.
//!
//! A host that passes can start a run. That is all that is said: nothing here is a
//! proof of isolation, and no text may read as if it were. No version string decides
//! anything.

use std::path::PathBuf;

use lazaret_custody::openat2_answers;
use lazaret_profile::accepted::Accepted;
use serde::Serialize;

use crate::acting::Acting;
use crate::blocked::{Blocked, Cause};
use crate::{closure, platform};

pub mod advice;
mod host;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
mod trial;

/// The version of the report's form.
pub const DOCTOR_SCHEMA: &str = "lazaret-doctor/1";

/// What the report says of itself.
pub const SAYS: &str = "These are the facts that a run needs. They show that this host can start \
     the launcher up to the barrier, not that isolation holds.";

/// One thing that a run needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// Native Linux on x86_64, and a build that holds the profile.
    Platform,
    /// The user that a run has on the host.
    RunUser,
    /// openat2.
    Openat2,
    /// Sealed files in memory.
    MemoryFiles,
    /// Process descriptors.
    ProcessDescriptors,
    /// The boot clock.
    Clock,
    /// Inherited hard limits.
    HardLimits,
    /// The warden's program.
    Warden,
    /// The data directory.
    DataDirectory,
    /// The accepted closure.
    Closure,
    /// Namespaces, and that no more can be made inside.
    Namespaces,
    /// The system-call filter.
    Filter,
    /// Tracing the launcher.
    Tracing,
    /// The launcher at the barrier, every fact as expected.
    Barrier,
}

impl Need {
    /// For people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Platform => "platform",
            Self::RunUser => "user of a run",
            Self::Openat2 => "openat2",
            Self::MemoryFiles => "sealed files in memory",
            Self::ProcessDescriptors => "process descriptors",
            Self::Clock => "boot clock",
            Self::HardLimits => "hard limits",
            Self::Warden => "warden",
            Self::DataDirectory => "data directory",
            Self::Closure => "closure",
            Self::Namespaces => "namespaces",
            Self::Filter => "system-call filter",
            Self::Tracing => "tracing",
            Self::Barrier => "launcher at the barrier",
        }
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// There.
    Ok {
        /// What was seen.
        detail: String,
    },
    /// Not there, or not usable.
    Blocked(Blocked),
    /// Could not be tried.
    NotTried {
        /// What is missing for it.
        because: String,
    },
}

/// One probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Probe {
    /// What a run needs.
    pub need: Need,
    /// What was found.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// Everything that was probed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// [`DOCTOR_SCHEMA`].
    pub schema: String,
    /// The profile.
    pub profile: String,
    /// Whether it is a candidate.
    pub candidate: bool,
    /// How its acceptance stands, in words; none where nothing is accepted.
    pub standing: Option<String>,
    /// Whether every need is met.
    pub ready: bool,
    /// The probes, in the order in which they were made.
    pub probes: Vec<Probe>,
    /// [`SAYS`].
    pub says: String,
}

/// What is to be probed.
#[derive(Debug)]
pub struct Request {
    /// The profile's id.
    pub profile: String,
    /// What is accepted for it; the shipped binary passes what is compiled in.
    pub accepted: Result<Accepted, Blocked>,
    /// Where closures are looked for.
    pub closure_places: Vec<PathBuf>,
    /// The warden's program.
    pub warden: Result<PathBuf, Blocked>,
    /// The data directory. It is made if it is missing, as a run would make it.
    pub data_dir: Result<PathBuf, Blocked>,
    /// Who runs.
    pub acting: Result<Acting, Blocked>,
}

/// Probes everything, in order.
#[must_use]
pub fn probe(request: &Request) -> Report {
    let mut probes = Probes(Vec::new());
    let supported = probes.add(
        Need::Platform,
        platform::require_supported(&request.profile).map(|()| platform::name()),
    );
    if supported {
        host::probe(request, &mut probes);
        try_run(request, &mut probes);
    }
    let ready = probes
        .0
        .iter()
        .all(|probe| matches!(probe.verdict, Verdict::Ok { .. }));
    Report {
        schema: DOCTOR_SCHEMA.to_owned(),
        profile: request.profile.clone(),
        candidate: closure::is_candidate(&request.profile),
        standing: request
            .accepted
            .as_ref()
            .ok()
            .map(|accepted| accepted.standing().to_owned()),
        ready,
        probes: probes.0,
        says: SAYS.to_owned(),
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
fn try_run(request: &Request, probes: &mut Probes) {
    trial::probe(request, probes);
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile))))]
fn try_run(_: &Request, _: &mut Probes) {}

/// The probes so far.
struct Probes(Vec<Probe>);

impl Probes {
    /// Adds what was found; says whether it is there.
    fn add(&mut self, need: Need, found: Result<String, Blocked>) -> bool {
        let verdict = match found {
            Ok(detail) => Verdict::Ok { detail },
            Err(blocked) => Verdict::Blocked(blocked),
        };
        let there = matches!(verdict, Verdict::Ok { .. });
        self.0.push(Probe { need, verdict });
        there
    }

    #[cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
    fn not_tried(&mut self, need: Need, because: &str) {
        let verdict = Verdict::NotTried {
            because: because.to_owned(),
        };
        self.0.push(Probe { need, verdict });
    }
}

/// Refuses a kernel, or a filter before it, that does not answer openat2.
///
/// # Errors
/// [`Cause::Openat2`].
pub fn require_openat2() -> Result<(), Blocked> {
    openat2_answers().map_err(|error| {
        let why = format!("the kernel refused it: {error}");
        Blocked::new(Cause::Openat2, "openat2", why)
            .advise(
                "in a systemd unit, RestrictSUIDSGID=yes and a SystemCallFilter= without openat2 \
                 refuse it: remove the first, add openat2 to the second",
            )
            .advise("in a container, use a runtime whose seccomp profile knows openat2 (Linux 5.6)")
    })
}
