//! The warden's own program: steps 4, 6 and 8 to 12, in their order.
//!
//! One thread, one epoll set, no interval of polling. Whatever happens, the way out
//! is the same: the first ending counts, everything is killed and reaped, the
//! outcome is written and reported. No package code runs before the launch record is
//! on the disk and the controller has said *release*.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::process::ExitCode;

mod barrier_step;
mod conclusion;
mod watch;

use crate::control::{Control, Order, read_hello};
use crate::ending::{Ending, Phase};
use crate::frame::{Hello, Kind, encode_report};
use crate::identity;
use crate::inherited::{self, Fixed};
use crate::record::{Namespaces, ProcessIdentity, STAGED_SCHEMA, Staged};
use crate::sandbox::Sandbox;
use crate::spec::SpecRecord;
use crate::stage::{self, RunDirHeld, Stage};
use crate::sys::{self, Epoll, SignalFd, TimerFd};
use crate::token::RunToken;

/// Signals that ask a process to end; for a warden they end the run.
const END_SIGNALS: [i32; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT];

/// The program. Its exit code says only whether an outcome was reported.
#[must_use]
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The last resort: there is no token yet, or no pipe any more.
            let _ = writeln!(io::stderr(), "lazaret-warden: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    if std::env::args_os().len() > 1 {
        return Err(io::Error::other(
            "takes no argument; a controller starts it",
        ));
    }
    // Nothing above 2 is ours, whatever its flags are.
    sys::close_from(3)?;
    let mut control = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let report = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let Hello { token, run_as } = read_hello(&mut control)?;
    let fixed = inherited::fix(run_as);
    let mut warden = Warden::new(token, control, report)?;
    let ending = match fixed {
        Ok(fixed) => warden.steps(&fixed).unwrap_or_else(|ending| ending),
        Err(error) => Ending::setup("inherited state", error),
    };
    warden.conclude(ending)
}

/// What the warden is and has, while it lives.
struct Warden {
    token: RunToken,
    control: Control,
    report: File,
    epoll: Epoll,
    signals: SignalFd,
    timer: Option<TimerFd>,
    phase: Phase,
    spec: Option<SpecRecord>,
    own: Option<Own>,
    run: Option<RunDirHeld>,
    stage: Option<Stage>,
    sandbox: Option<Sandbox>,
    released_ns: Option<u64>,
}

/// What the warden knows of itself.
struct Own {
    identity: ProcessIdentity,
    namespaces: Namespaces,
    inherited_filters: u32,
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
}

impl Warden {
    fn new(token: RunToken, control: File, report: File) -> io::Result<Self> {
        let mut watched = vec![libc::SIGCHLD];
        watched.extend(END_SIGNALS);
        let signals = SignalFd::of(&watched)?;
        let epoll = Epoll::new()?;
        Ok(Self {
            token,
            control: Control::new(control),
            report,
            epoll,
            signals,
            timer: None,
            phase: Phase::Staging,
            spec: None,
            own: None,
            run: None,
            stage: None,
            sandbox: None,
            released_ns: None,
        })
    }

    /// All steps. Returns the ending of a run whose process ended by itself; an
    /// error is the ending of any other.
    fn steps(&mut self, fixed: &Fixed) -> Result<Ending, Ending> {
        let staged = self.stage(fixed)?;
        self.report(Kind::Staged, &staged)?;
        self.phase = Phase::Staged;
        self.wait_for_arm()?;
        let expectation = self.start_bwrap()?;
        self.phase = Phase::Starting;
        self.wait_for_ready()?;
        self.phase = Phase::Barrier;
        let launched = self.pass_barrier(&expectation)?;
        self.report(Kind::Launched, &launched)?;
        self.phase = Phase::Launched;
        self.wait_for_release()?;
        self.release()?;
        self.phase = Phase::Running;
        self.wait_for_end()
    }

    /// Step 4, after the state was fixed.
    fn stage(&mut self, fixed: &Fixed) -> Result<Staged, Ending> {
        let Order {
            spec,
            package,
            input,
        } = self.control.read_order()?;
        let timer = TimerFd::at(spec.deadline_boottime_ns)
            .map_err(|error| Ending::warden("timer", error))?;
        self.watch_from_the_start(&timer)?;
        self.timer = Some(timer);
        let refused = |error| Ending::setup("staging", error);
        let run = stage::open_run_dir(&spec, fixed.uid).map_err(refused)?;
        self.run = Some(run);
        let own = Own::read(fixed).map_err(|error| Ending::setup("own identity", error))?;
        let stage = stage::stage(&spec, &package, &input, fixed.uid).map_err(refused)?;
        let staged = Staged {
            schema: STAGED_SCHEMA.to_owned(),
            run_id: spec.run_id.clone(),
            warden: own.identity.clone(),
            uid: own.uid,
            gid: own.gid,
            inherited_filters: own.inherited_filters,
            inherited_priority: fixed.priority,
            digests: stage.digests.clone(),
            package_bytes: stage.package_bytes,
            input_bytes: stage.input_bytes,
        };
        self.own = Some(own);
        self.stage = Some(stage);
        self.spec = Some(spec);
        Ok(staged)
    }

    /// Sends a report. A pipe that nobody reads is the controller's loss, which the
    /// control pipe tells as well.
    fn report<T: serde::Serialize>(&mut self, kind: Kind, record: &T) -> Result<(), Ending> {
        let payload =
            serde_json::to_vec(record).map_err(|error| Ending::warden("encode a report", error))?;
        self.send(kind, &payload)
            .map_err(|error| Ending::ControllerLost {
                detail: error.to_string(),
            })
    }

    fn send(&mut self, kind: Kind, payload: &[u8]) -> io::Result<()> {
        let frame = encode_report(&self.token, kind, payload).map_err(io::Error::other)?;
        self.report.write_all(&frame)
    }
}

impl Own {
    fn read(fixed: &Fixed) -> io::Result<Self> {
        let pid = sys::current_pid();
        let proc_dir = File::open("/proc/self")?;
        let status = identity::read_text_at(proc_dir.as_fd(), c"status")?;
        let status = crate::barrier::parse::status(&status).map_err(io::Error::other)?;
        Ok(Self {
            identity: identity::of_process(proc_dir.as_fd(), pid)?,
            namespaces: identity::namespaces_of(proc_dir.as_fd())?,
            inherited_filters: status.number("Seccomp_filters").map_err(io::Error::other)?,
            uid: fixed.uid,
            gid: fixed.gid,
            groups: fixed.groups.clone(),
        })
    }
}
