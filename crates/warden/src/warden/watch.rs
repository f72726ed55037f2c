//! Step 11: the one loop, and what each step waits for in it.
//!
//! In every round the kernel's word on the two processes comes first, then the
//! streams, then the controller, then the clock: a run that ended by itself is not
//! called cancelled or late because both were noticed at once.

use std::os::fd::AsFd as _;

use lazaret_contract::limits::STREAM_BYTES_MAX;
use lazaret_launcher::{LauncherStage, READY_BYTES};

use super::Warden;
use crate::ending::{Ending, Phase, ProcessEnd, Stream};
use crate::streams::Look;
use crate::sys::{self, ExitRegisters, TimerFd, Waited};

const KEY_CONTROL: u64 = 1;
const KEY_SIGNALS: u64 = 2;
const KEY_TIMER: u64 = 3;
const KEY_STDOUT: u64 = 4;
const KEY_STDERR: u64 = 5;

impl Warden {
    pub(super) fn watch_from_the_start(&self, timer: &TimerFd) -> Result<(), Ending> {
        self.epoll
            .add(self.control.as_fd(), KEY_CONTROL)
            .and_then(|()| self.epoll.add(self.signals.as_fd(), KEY_SIGNALS))
            .and_then(|()| self.epoll.add(timer.as_fd(), KEY_TIMER))
            .map_err(|error| Ending::warden("epoll", error))
    }

    pub(super) fn watch_streams(&self) -> Result<(), Ending> {
        let Some(sandbox) = &self.sandbox else {
            return Ok(());
        };
        self.epoll
            .add(sandbox.stdout.as_fd(), KEY_STDOUT)
            .and_then(|()| self.epoll.add(sandbox.stderr.as_fd(), KEY_STDERR))
            .map_err(|error| Ending::warden("epoll", error))
    }

    pub(super) fn wait_for_arm(&mut self) -> Result<(), Ending> {
        // Something may have come with the order, which no epoll will tell any more.
        self.control.read_commands()?;
        self.require_orders_in_turn()?;
        while !self.control.orders.arm {
            self.next_round()?;
        }
        Ok(())
    }

    /// Until the launcher has written as many bytes as a ready record has.
    pub(super) fn wait_for_ready(&mut self) -> Result<(), Ending> {
        while self
            .sandbox
            .as_ref()
            .is_some_and(|s| s.stdout.bytes().len() < READY_BYTES)
        {
            self.next_round()?;
            self.require_start_going_on()?;
        }
        self.require_silence(READY_BYTES)
    }

    pub(super) fn wait_for_release(&mut self) -> Result<(), Ending> {
        while !self.control.orders.release {
            self.next_round()?;
            self.require_start_going_on()?;
            self.require_silence(0)?;
        }
        self.read_streams()?;
        self.require_silence(0)
    }

    /// Until the launcher's process has been reaped.
    pub(super) fn wait_for_end(&mut self) -> Result<Ending, Ending> {
        loop {
            if let Some(end) = self.sandbox.as_ref().and_then(|sandbox| sandbox.bwrap_lost) {
                return Err(Ending::BwrapLost { end });
            }
            if self
                .sandbox
                .as_ref()
                .and_then(|sandbox| sandbox.launcher_end())
                .is_some()
            {
                return Ok(self.classify());
            }
            self.next_round()?;
        }
    }

    /// Waits once, then takes notice of everything that is there.
    fn next_round(&mut self) -> Result<(), Ending> {
        let ready = self
            .epoll
            .wait()
            .map_err(|error| Ending::warden("epoll", error))?;
        let is_ready = |key: u64| ready.iter().any(|event| event.key == key);
        if is_ready(KEY_SIGNALS) {
            self.read_signals()?;
        }
        if is_ready(KEY_STDOUT) || is_ready(KEY_STDERR) {
            self.read_streams()?;
        }
        if is_ready(KEY_CONTROL) {
            self.control.read_commands()?;
            self.require_orders_in_turn()?;
        }
        if is_ready(KEY_TIMER) {
            return Err(Ending::WallDeadline);
        }
        Ok(())
    }

    fn read_signals(&mut self) -> Result<(), Ending> {
        while let Some(signal) = self
            .signals
            .next()
            .map_err(|error| Ending::warden("signalfd", error))?
        {
            if signal != libc::SIGCHLD {
                return Err(Ending::WardenSignalled { signal });
            }
        }
        self.read_changes()
    }

    /// All changes that the kernel has to tell; one SIGCHLD may stand for several.
    fn read_changes(&mut self) -> Result<(), Ending> {
        let released = self.released_ns.is_some();
        let Some(sandbox) = &mut self.sandbox else {
            return Ok(());
        };
        loop {
            match sys::wait_any().map_err(|error| Ending::warden("wait4", error))? {
                Waited::Nothing | Waited::NoneLeft => return Ok(()),
                Waited::Changed { pid, change, usage } => {
                    sandbox.on_change(pid, change, usage, released)?;
                }
            }
        }
    }

    /// Reads both streams as far as a run may fill them, and one byte more.
    fn read_streams(&mut self) -> Result<(), Ending> {
        let Some(sandbox) = &mut self.sandbox else {
            return Ok(());
        };
        let failed = |error| Ending::warden("read a stream", error);
        for stream in [&mut sandbox.stdout, &mut sandbox.stderr] {
            let was_open = !stream.has_ended();
            if stream.read(STREAM_BYTES_MAX).map_err(failed)? == Look::Ended && was_open {
                // A closed pipe would be ready for ever.
                self.epoll
                    .remove(stream.as_fd())
                    .map_err(|error| Ending::warden("epoll", error))?;
            }
        }
        if self.phase == Phase::Running {
            self.require_streams_within_limit()?;
        }
        Ok(())
    }

    fn require_streams_within_limit(&self) -> Result<(), Ending> {
        match self.stream_over_limit() {
            Some(which) => Err(Ending::StreamLimit { which }),
            None => Ok(()),
        }
    }

    pub(super) fn stream_over_limit(&self) -> Option<Stream> {
        let sandbox = self.sandbox.as_ref()?;
        if sandbox.stdout.is_over_limit() {
            Some(Stream::Stdout)
        } else if sandbox.stderr.is_over_limit() {
            Some(Stream::Stderr)
        } else {
            None
        }
    }

    /// An order before its time is a controller that is not ours.
    fn require_orders_in_turn(&self) -> Result<(), Ending> {
        if self.control.orders.release && self.phase < Phase::Launched {
            return Err(Ending::ControllerLost {
                detail: "release came out of turn".to_owned(),
            });
        }
        Ok(())
    }

    /// Before the release nothing but the ready record may have come over a stream.
    pub(super) fn require_silence(&self, ready_bytes: usize) -> Result<(), Ending> {
        let Some(sandbox) = &self.sandbox else {
            return Ok(());
        };
        if sandbox.stdout.bytes().len() > ready_bytes {
            return Err(Ending::ExtraOutput {
                which: Stream::Stdout,
            });
        }
        if !sandbox.stderr.bytes().is_empty() {
            return Err(Ending::ExtraOutput {
                which: Stream::Stderr,
            });
        }
        Ok(())
    }

    /// Before the release both processes have to be there.
    pub(super) fn require_start_going_on(&mut self) -> Result<(), Ending> {
        let Some(sandbox) = &self.sandbox else {
            return Ok(());
        };
        let launcher_end = sandbox.launcher_end();
        let bwrap_end = sandbox.bwrap.end;
        let bwrap_lost = sandbox.bwrap_lost;
        if launcher_end.is_none() && bwrap_end.is_none() && bwrap_lost.is_none() {
            return Ok(());
        }
        // What they had to say is in the pipes already.
        self.read_streams()?;
        let Some(sandbox) = &self.sandbox else {
            return Ok(());
        };
        let said = sandbox.stderr.shown();
        let exit = sandbox.launcher.as_ref().and_then(|launcher| launcher.exit);
        let denied = exit.and_then(|exit| exit.registers);
        let is_launcher = sandbox.launcher.as_ref().is_some_and(|l| l.became_program);
        match (launcher_end, bwrap_end.or(bwrap_lost)) {
            (_, Some(end)) if bwrap_lost.is_some() => Err(Ending::BwrapLost { end }),
            (Some(end), _) if is_launcher => Err(launcher_ended(end, denied, said)),
            (None, Some(end)) if sandbox.launcher.is_none() => {
                let detail = match sandbox.exec_failure() {
                    Some(error) if !sandbox.bwrap.became_program => {
                        format!("cannot be executed: {error}")
                    }
                    _ => format!("{end}: {said}"),
                };
                Err(Ending::setup("bwrap", detail))
            }
            (Some(end), _) => Err(Ending::setup("bwrap", format!("{end}: {said}"))),
            // bwrap ends as its child is about to: the child's end comes next.
            (None, _) => Ok(()),
        }
    }
}

/// The launcher's exit codes count before release, and only then.
fn launcher_ended(end: ProcessEnd, registers: Option<ExitRegisters>, said: String) -> Ending {
    let exit_code = match (end, registers) {
        (ProcessEnd::Exited(exit_code), _) => exit_code,
        (ProcessEnd::Signalled(libc::SIGSYS), Some(registers)) => {
            // Its own filter stops it: the filter and the launcher do not fit.
            let detail = format!("denied system call {} {said}", registers.call_number);
            return Ending::LauncherEnded { end, detail };
        }
        (ProcessEnd::Signalled(_), _) => return Ending::LauncherEnded { end, detail: said },
    };
    let stage = u32::try_from(exit_code)
        .ok()
        .and_then(LauncherStage::from_exit_code);
    match stage {
        Some(stage) => Ending::LauncherStageFailed {
            stage: stage.to_string(),
            exit_code,
            detail: said,
        },
        None => Ending::LauncherEnded { end, detail: said },
    }
}
