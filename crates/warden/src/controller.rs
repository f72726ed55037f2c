//! One run from outside: start, staged, arm, launched, release, outcome.
//!
//! A [`Controller`] owns its warden. Dropping it, or dying, ends the control pipe,
//! and that ends the run. It believes nothing that the run token does not
//! authenticate, and it waits for nothing beyond two seconds past the deadline: then
//! the warden is killed, the kernel kills everything that it traced, and the run's
//! end is unknown.
//!
//! The warden is started with three pipes and nothing else, whatever the caller's
//! descriptors are, and without a parent-death signal, which would follow the
//! calling thread instead of the process (case D02).

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::frame::{Frame, FrameBuffer, FrameError, Hello, Kind, encode_command};
use crate::record::{
    LAUNCHED_SCHEMA, Launched, OUTCOME_SCHEMA, Outcome, RecordError, STAGED_SCHEMA, Staged, parse,
};
use crate::spec::{RunId, RunSpec, SpecRecord};
use crate::sys::{self, Interest, PidFd, TimerFd};

/// How long after the deadline a warden may still take to kill, reap and record, in
/// nanoseconds (DESIGN section 3, step 11).
pub const WATCHDOG_GRACE_NS: u64 = 2_000_000_000;

/// Most bytes of a warden's standard error that are kept for a message.
const DIAGNOSTICS_BYTES_MAX: usize = 1024;

/// Why nothing certain is known of a run.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// A path of the order is not there.
    #[error("{path:?}: {source}")]
    Path {
        /// Which path.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The warden could not be started. Nothing ran.
    #[error("warden {path:?} could not be started: {source}")]
    Spawn {
        /// The program.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The methods were called in another order than the run's.
    #[error("{called} was called while the run is {state:?}")]
    OutOfOrder {
        /// The method.
        called: &'static str,
        /// Where the run is.
        state: State,
    },
    /// What came over the report pipe is not to be believed.
    #[error("report pipe: {0}")]
    Frame(#[from] FrameError),
    /// An authenticated record cannot be read.
    #[error("report pipe: {0}")]
    Record(#[from] RecordError),
    /// Another record than the one that comes next, or of another run.
    #[error("report pipe: {0}")]
    Protocol(String),
    /// The warden ended without an outcome.
    #[error("warden ended without an outcome ({}): {diagnostics}", status.map_or("status unknown".to_owned(), |status| status.to_string()))]
    WardenLost {
        /// How it ended; unknown where the caller ignores SIGCHLD, so that the kernel
        /// reaps for it (case D06).
        status: Option<ExitStatus>,
        /// What it said on standard error.
        diagnostics: String,
    },
    /// The warden did not end in time and was killed.
    #[error("warden did not end within two seconds after the deadline and was killed")]
    Watchdog,
    /// The kernel refused something else.
    #[error("{operation}: {source}")]
    Io {
        /// What was tried.
        operation: &'static str,
        /// What it said.
        source: io::Error,
    },
}

/// Where a run is, seen from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Started; the warden is staging.
    Started,
    /// Staged.
    Staged,
    /// At the barrier, recorded.
    Launched,
    /// Released.
    Released,
    /// Its outcome has been given out.
    Ended,
}

/// What a step led to: its own record, or the end of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Step<T> {
    /// The step was reached.
    Reached(T),
    /// The run is over instead.
    Ended(Box<Outcome>),
}

type ControlPipe = Mutex<Option<File>>;

/// The right to cancel one run, from any thread. It keeps nothing alive.
#[derive(Debug, Clone)]
pub struct Canceller(Weak<ControlPipe>);

impl Canceller {
    /// Asks the warden to end the run. Whether it did so in time, the outcome tells.
    pub fn cancel(&self) {
        if let Some(pipe) = self.0.upgrade() {
            // A warden that is gone needs no cancelling.
            let _ = send_command(&pipe, Kind::Cancel);
        }
    }
}

/// One run.
#[derive(Debug)]
pub struct Controller {
    child: Child,
    pidfd: PidFd,
    control: Arc<ControlPipe>,
    report: File,
    diagnostics: File,
    frames: FrameBuffer,
    watchdog: TimerFd,
    run_id: RunId,
    state: State,
    reaped: bool,
}

impl Controller {
    /// Starts a warden and gives it its order.
    ///
    /// `warden` is the program `lazaret-warden` of this very build.
    ///
    /// # Errors
    /// [`ControllerError`]; nothing was started then, or it has been ended.
    pub fn start(warden: &Path, spec: &RunSpec) -> Result<Self, ControllerError> {
        let mut record = SpecRecord::from(spec);
        record.closure_dir = canonical(&spec.closure_dir)?;
        record.run_dir = canonical(&spec.run_dir)?;
        let order = encode_order(spec, &record)?;
        let until = spec.deadline_boottime_ns.saturating_add(WATCHDOG_GRACE_NS);
        let watchdog = TimerFd::at(until).map_err(failed("timer"))?;
        let controller = spawn(warden, spec, watchdog)?;
        match controller.send_order(&order) {
            // A warden that ended early says why on the report pipe.
            Err(ControllerError::Io { source, .. })
                if source.kind() == io::ErrorKind::BrokenPipe => {}
            sent => sent?,
        }
        Ok(controller)
    }

    /// Where the run is.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// The warden's process id, for tests and messages.
    #[must_use]
    pub fn warden_pid(&self) -> u32 {
        self.child.id()
    }

    /// A handle with which any thread can cancel the run.
    #[must_use]
    pub fn canceller(&self) -> Canceller {
        Canceller(Arc::downgrade(&self.control))
    }

    /// Waits until everything is staged and hashed (step 4).
    ///
    /// # Errors
    /// [`ControllerError`].
    pub fn staged(&mut self) -> Result<Step<Staged>, ControllerError> {
        self.require(State::Started, "staged")?;
        let step = self.next_step::<Staged>(Kind::Staged, "staged")?;
        if let Step::Reached(staged) = &step {
            self.require_ours(&staged.schema, STAGED_SCHEMA, Some(&staged.run_id))?;
            self.state = State::Staged;
        }
        Ok(step)
    }

    /// Lets bwrap start, and waits until the launcher is at the barrier and the
    /// launch record on the disk (steps 5 to 9).
    ///
    /// # Errors
    /// [`ControllerError`].
    pub fn arm(&mut self) -> Result<Step<Launched>, ControllerError> {
        self.require(State::Staged, "arm")?;
        self.command(Kind::Arm)?;
        let step = self.next_step::<Launched>(Kind::Launched, "launched")?;
        if let Step::Reached(launched) = &step {
            self.require_ours(&launched.schema, LAUNCHED_SCHEMA, Some(&launched.run_id))?;
            self.state = State::Launched;
        }
        Ok(step)
    }

    /// Lets the package run (step 10).
    ///
    /// # Errors
    /// [`ControllerError`].
    pub fn release(&mut self) -> Result<(), ControllerError> {
        self.require(State::Launched, "release")?;
        self.state = State::Released;
        self.command(Kind::Release)
    }

    /// Asks for the end. The outcome still has to be waited for.
    pub fn cancel(&self) {
        self.canceller().cancel();
    }

    /// Waits for the outcome and the warden's own end (step 12). In any state: a run
    /// that was cancelled ends as well.
    ///
    /// # Errors
    /// [`ControllerError`]: the end is unknown then.
    pub fn wait(mut self) -> Result<Outcome, ControllerError> {
        loop {
            let frame = self.next_frame()?;
            match frame.kind {
                Kind::Outcome => return self.take_outcome(&frame).map(|outcome| *outcome),
                // A cancelled run may still have got as far as this.
                Kind::Staged | Kind::Launched if self.state < State::Released => {}
                kind => {
                    return Err(ControllerError::Protocol(format!(
                        "{kind:?} came out of turn"
                    )));
                }
            }
        }
    }

    fn require(&self, state: State, called: &'static str) -> Result<(), ControllerError> {
        if self.state == state {
            Ok(())
        } else {
            Err(ControllerError::OutOfOrder {
                called,
                state: self.state,
            })
        }
    }

    fn require_ours(
        &self,
        schema: &str,
        wanted: &str,
        run_id: Option<&RunId>,
    ) -> Result<(), ControllerError> {
        if schema != wanted {
            return Err(ControllerError::Protocol(format!(
                "record is {schema}, not {wanted}"
            )));
        }
        if run_id.is_some_and(|run_id| *run_id != self.run_id) {
            return Err(ControllerError::Protocol(
                "record is of another run".to_owned(),
            ));
        }
        Ok(())
    }

    fn next_step<T: serde::de::DeserializeOwned>(
        &mut self,
        wanted: Kind,
        name: &'static str,
    ) -> Result<Step<T>, ControllerError> {
        let frame = self.next_frame()?;
        match frame.kind {
            Kind::Outcome => self.take_outcome(&frame).map(Step::Ended),
            kind if kind == wanted => Ok(Step::Reached(parse(name, &frame.payload)?)),
            kind => Err(ControllerError::Protocol(format!(
                "{kind:?} came out of turn"
            ))),
        }
    }

    /// The outcome counts once its warden is gone.
    fn take_outcome(&mut self, frame: &Frame) -> Result<Box<Outcome>, ControllerError> {
        let outcome: Outcome = parse("outcome", &frame.payload)?;
        self.require_ours(&outcome.schema, OUTCOME_SCHEMA, outcome.run_id.as_ref())?;
        self.state = State::Ended;
        self.close_control();
        self.wait_for_exit()?;
        Ok(Box::new(outcome))
    }

    /// The next report, or why there is none.
    fn next_frame(&mut self) -> Result<Frame, ControllerError> {
        let mut buffer = [0; 16 * 1024];
        loop {
            if let Some(frame) = self.frames.next_frame()? {
                return Ok(frame);
            }
            self.wait_within_watchdog(self.report.as_fd(), Interest::Read)?;
            match self.report.read(&mut buffer) {
                Ok(0) => return Err(self.lost()),
                Ok(count) => self.frames.push(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed("read a report")(error)),
            }
        }
    }

    /// Waits for one descriptor, but not beyond the watchdog.
    fn wait_within_watchdog(
        &self,
        fd: std::os::fd::BorrowedFd<'_>,
        interest: Interest,
    ) -> Result<(), ControllerError> {
        let asked = [(fd, interest), (self.watchdog.as_fd(), Interest::Read)];
        let ready = sys::wait_ready(&asked, None).map_err(failed("poll"))?;
        if ready.first() == Some(&true) {
            return Ok(());
        }
        // Dropping this value reaps it.
        self.pidfd.kill().map_err(failed("kill the warden"))?;
        Err(ControllerError::Watchdog)
    }

    fn lost(&mut self) -> ControllerError {
        match self.wait_for_exit() {
            Err(error) => error,
            Ok(status) => {
                let mut text = vec![0; DIAGNOSTICS_BYTES_MAX];
                // Whatever it says, it is gone; a second error would say less.
                let count = self.diagnostics.read(&mut text).unwrap_or(0);
                let text = String::from_utf8_lossy(&text[..count]);
                ControllerError::WardenLost {
                    status,
                    diagnostics: text.trim_end().escape_debug().to_string(),
                }
            }
        }
    }

    /// Waits for the warden's end and reaps it. The status decides nothing: what is
    /// believed is authenticated.
    fn wait_for_exit(&mut self) -> Result<Option<ExitStatus>, ControllerError> {
        if !self.reaped {
            self.wait_within_watchdog(self.pidfd.as_fd(), Interest::Read)?;
        }
        let status = match self.child.wait() {
            Ok(status) => Some(status),
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => None,
            Err(error) => return Err(failed("reap the warden")(error)),
        };
        self.reaped = true;
        Ok(status)
    }

    fn command(&self, kind: Kind) -> Result<(), ControllerError> {
        match send_command(&self.control, kind) {
            // The report pipe says why the warden has ended.
            Err(ControllerError::Io { source, .. })
                if source.kind() == io::ErrorKind::BrokenPipe =>
            {
                Ok(())
            }
            sent => sent,
        }
    }

    /// The order is larger than a pipe: it is written as the warden reads it.
    fn send_order(&self, mut bytes: &[u8]) -> Result<(), ControllerError> {
        let guard = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut pipe) = guard.as_ref() else {
            return Ok(());
        };
        while !bytes.is_empty() {
            match pipe.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait_within_watchdog(pipe.as_fd(), Interest::Write)?;
                }
                Err(error) => return Err(failed("write to the control pipe")(error)),
            }
        }
        Ok(())
    }

    fn close_control(&self) {
        drop(
            self.control
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
    }
}

impl Drop for Controller {
    /// Ends the run if it has not ended, and leaves no process behind: the warden is
    /// waited for until the watchdog, then killed.
    fn drop(&mut self) {
        self.close_control();
        if !self.reaped {
            // In both cases it is dead or dying afterwards, and only to be reaped.
            let _ = self.wait_within_watchdog(self.pidfd.as_fd(), Interest::Read);
            let _ = self.child.wait();
        }
    }
}

fn failed(operation: &'static str) -> impl FnOnce(io::Error) -> ControllerError {
    move |source| ControllerError::Io { operation, source }
}

/// The warden refuses symbolic links; the caller's own may be resolved here.
fn canonical(path: &Path) -> Result<PathBuf, ControllerError> {
    std::fs::canonicalize(path).map_err(|source| ControllerError::Path {
        path: path.to_path_buf(),
        source,
    })
}

fn encode_order(spec: &RunSpec, record: &SpecRecord) -> Result<Vec<u8>, ControllerError> {
    let record =
        serde_json::to_vec(record).map_err(|error| ControllerError::Protocol(error.to_string()))?;
    let hello = Hello {
        token: spec.token.clone(),
        run_as: spec.run_as,
    };
    let mut bytes = hello.encode().to_vec();
    bytes.extend(encode_command(Kind::Spec, &record)?);
    bytes.extend(encode_command(Kind::Package, &spec.package)?);
    bytes.extend(encode_command(Kind::Input, &spec.input)?);
    Ok(bytes)
}

fn send_command(pipe: &ControlPipe, kind: Kind) -> Result<(), ControllerError> {
    let bytes = encode_command(kind, &[])?;
    let guard = pipe.lock().unwrap_or_else(PoisonError::into_inner);
    match guard.as_ref() {
        // Five bytes into a pipe that the warden keeps empty: whole or not at all
        // (PIPE_BUF, pipe(7)).
        Some(mut pipe) => pipe
            .write_all(&bytes)
            .map_err(failed("write to the control pipe")),
        None => Ok(()),
    }
}

fn spawn(warden: &Path, spec: &RunSpec, watchdog: TimerFd) -> Result<Controller, ControllerError> {
    let mut command = Command::new(warden);
    command.env_clear().current_dir("/");
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    sys::close_on_exec_before_exec(&mut command);
    let mut child = command.spawn().map_err(|source| ControllerError::Spawn {
        path: warden.to_path_buf(),
        source,
    })?;
    match attach(&mut child) {
        Ok((pidfd, control, report, diagnostics)) => Ok(Controller {
            child,
            pidfd,
            control: Arc::new(Mutex::new(Some(control))),
            report,
            diagnostics,
            frames: FrameBuffer::of_reports(spec.token.clone()),
            watchdog,
            run_id: spec.run_id.clone(),
            state: State::Started,
            reaped: false,
        }),
        Err(source) => {
            // Without its pipes it would end by itself; this does not wait for that.
            let _ = child.kill();
            let _ = child.wait();
            Err(ControllerError::Spawn {
                path: warden.to_path_buf(),
                source,
            })
        }
    }
}

fn attach(child: &mut Child) -> io::Result<(PidFd, File, File, File)> {
    let missing = || io::Error::other("a pipe is missing");
    let control = File::from(OwnedFd::from(child.stdin.take().ok_or_else(missing)?));
    let report = File::from(OwnedFd::from(child.stdout.take().ok_or_else(missing)?));
    let diagnostics = File::from(OwnedFd::from(child.stderr.take().ok_or_else(missing)?));
    sys::set_nonblocking(control.as_fd())?;
    sys::set_nonblocking(diagnostics.as_fd())?;
    let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
    // Our child, unreaped: the number is its own.
    Ok((PidFd::open(pid)?, control, report, diagnostics))
}
