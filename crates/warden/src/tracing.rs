//! What the kernel says of the two processes while they live and as they end.
//!
//! Every stop of a traced process is answered here, at once, by a fixed rule:
//! births, execs and exits are noted and let go on; a stop by SIGSTOP is left a stop
//! until SIGCONT; signals are passed on, but for two kinds. A fault of the processor
//! ends the run: the kernel would not kill a traced pid 1 for it, which would fault
//! for ever. SIGXFSZ ends it as well: the output limit was hit.

use std::io;

use crate::barrier::parse;
use crate::ending::{Ending, ProcessEnd};
use crate::record::{ReapedProcess, Role};
use crate::sandbox::{Executable, ExitFacts, Process, Sandbox};
use crate::sys::{self, Reaped, Tracee, Usage};

/// Signals by which the processor reports a fault of the running program.
const FAULTS: [i32; 6] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGTRAP,
    libc::SIGSYS,
];

/// Signals that stop a whole process.
const STOPS: [i32; 4] = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

impl Sandbox {
    /// Answers one change of state. `released` says whether package code may be
    /// running.
    ///
    /// # Errors
    /// The ending, where the change means one.
    pub fn on_change(
        &mut self,
        pid: i32,
        change: Reaped,
        usage: Usage,
        released: bool,
    ) -> Result<(), Ending> {
        match change {
            Reaped::Exited(code) => self.on_end(pid, ProcessEnd::Exited(code), usage),
            Reaped::Signalled(signal) => self.on_end(pid, ProcessEnd::Signalled(signal), usage),
            Reaped::Stopped { signal, event: 0 } => self.on_signal(pid, signal, released),
            Reaped::Stopped {
                signal,
                event: libc::PTRACE_EVENT_STOP,
            } => self.on_stop(pid, signal),
            Reaped::Stopped { event, .. } => self.on_event(pid, event),
        }
    }

    fn on_end(&mut self, pid: i32, end: ProcessEnd, usage: Usage) -> Result<(), Ending> {
        let role = match self.process_mut(pid) {
            // The tracer is told first. If bwrap died before it reaped its child, the
            // warden has adopted it and is told once more, as its parent.
            Some((_, process)) if process.end.is_some() => return Ok(()),
            Some((role, process)) => {
                process.end = Some(end);
                process.usage = usage;
                role
            }
            None => Role::Other,
        };
        self.reaped.push(ReapedProcess { pid, role, end });
        match role {
            Role::Launcher => {
                let now = sys::boottime_ns().map_err(|error| Ending::warden("clock", error))?;
                self.ended_ns = Some(now);
            }
            Role::Bwrap => self.note_loss_of_bwrap(end),
            Role::Other => {}
        }
        Ok(())
    }

    /// bwrap's end is the consequence of the launcher's, or something is wrong.
    fn note_loss_of_bwrap(&mut self, end: ProcessEnd) {
        let child_lives = self
            .launcher
            .as_ref()
            .is_some_and(|launcher| !launcher.is_ending());
        if child_lives && self.bwrap_lost.is_none() {
            self.bwrap_lost = Some(end);
        }
    }

    /// A signal is about to be delivered.
    fn on_signal(&mut self, pid: i32, signal: i32, released: bool) -> Result<(), Ending> {
        let Some((role, process)) = self.process_mut(pid) else {
            return Err(Ending::UnexpectedProcess);
        };
        let tracee = process.tracee;
        if role == Role::Launcher {
            let code = match tracee.signal_info() {
                Ok(info) => info.code,
                Err(error) => return unless_gone("PTRACE_GETSIGINFO", Err(error)),
            };
            if code > 0 && FAULTS.contains(&signal) {
                return Err(Ending::Signalled { signal });
            }
            // The kernel sends this one in the process's own name (SI_USER); raise(3)
            // would show as SI_TKILL.
            if released && signal == libc::SIGXFSZ && code >= libc::SI_USER {
                return Err(Ending::OutputLimit);
            }
        }
        unless_gone("PTRACE_CONT", tracee.resume(signal))
    }

    /// A group stop, the end of one, or a child's first stop.
    fn on_stop(&mut self, pid: i32, signal: i32) -> Result<(), Ending> {
        if self.process_mut(pid).is_none() {
            // A child may show before its parent's event does.
            self.meet_child(pid)?;
        }
        let Some((_, process)) = self.process_mut(pid) else {
            return Err(Ending::UnexpectedProcess);
        };
        if STOPS.contains(&signal) {
            unless_gone("PTRACE_LISTEN", process.tracee.listen())
        } else {
            unless_gone("PTRACE_CONT", process.tracee.resume(0))
        }
    }

    fn on_event(&mut self, pid: i32, event: i32) -> Result<(), Ending> {
        let Some((role, process)) = self.process_mut(pid) else {
            return Err(Ending::UnexpectedProcess);
        };
        let tracee = process.tracee;
        match event {
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                if role != Role::Bwrap {
                    return Err(Ending::UnexpectedProcess);
                }
                match tracee.event_message().map(i32::try_from) {
                    Ok(Ok(child)) => self.meet_child(child)?,
                    Ok(Err(error)) => return Err(Ending::warden("pid of a child", error)),
                    Err(error) => unless_gone("PTRACE_GETEVENTMSG", Err(error))?,
                }
            }
            libc::PTRACE_EVENT_EXEC => {
                if process.became_program {
                    return Err(Ending::UnexpectedProcess);
                }
                process.became_program = true;
                if role == Role::Launcher {
                    self.executable = Some(Executable::of(pid).map_err(|error| {
                        Ending::warden("look at the launcher's program", error)
                    })?);
                }
            }
            libc::PTRACE_EVENT_EXIT => {
                let facts = exit_facts(tracee);
                process.exit = facts;
                if let (Role::Bwrap, Some(facts)) = (role, facts) {
                    self.note_loss_of_bwrap(facts.end);
                }
            }
            _ => {}
        }
        unless_gone("PTRACE_CONT", tracee.resume(0))
    }
}

/// The exit event's word. Memory is still there at this point (ptrace(2)).
fn exit_facts(tracee: Tracee) -> Option<ExitFacts> {
    let message = tracee.event_message().ok()?;
    let end = match Reaped::from_exit_message(message)? {
        Reaped::Exited(code) => ProcessEnd::Exited(code),
        Reaped::Signalled(signal) => ProcessEnd::Signalled(signal),
        Reaped::Stopped { .. } => return None,
    };
    let text = std::fs::read_to_string(format!("/proc/{}/status", tracee.pid())).ok();
    let status = text.as_deref().and_then(|text| parse::status(text).ok());
    let kibibytes = |name: &str| status.as_ref().and_then(|status| status.kibibytes(name));
    Some(ExitFacts {
        end,
        registers: tracee.exit_registers().ok(),
        limited_cpu_time_ns: sys::limited_cpu_time_ns(tracee.pid()).ok(),
        peak_memory_bytes: kibibytes("VmHWM"),
        page_tables_bytes: kibibytes("VmPTE"),
    })
}

/// A process that was killed meanwhile is no longer there to be answered; its end
/// comes next.
fn unless_gone(operation: &str, result: io::Result<()>) -> Result<(), Ending> {
    match result {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        Err(error) => Err(Ending::warden(operation, error)),
        Ok(()) => Ok(()),
    }
}

/// Kills every process of the sandbox and reaps until the kernel says that there is
/// no child and no tracee left. Only then is anything claimed of the end.
///
/// # Errors
/// What the kernel refused; nothing is known then, and nothing may be claimed.
pub fn kill_and_reap(mut sandbox: Option<&mut Sandbox>) -> io::Result<Vec<ReapedProcess>> {
    let mut reaped = Vec::new();
    for process in sandbox.iter().flat_map(|sandbox| sandbox.processes()) {
        process.pidfd.kill()?;
    }
    loop {
        match sys::wait_any_blocking()? {
            sys::Waited::NoneLeft => break,
            sys::Waited::Nothing => {}
            sys::Waited::Changed {
                pid,
                change: Reaped::Stopped { event, .. },
                ..
            } => {
                answer_dying(sandbox.as_deref_mut(), pid, event)?;
            }
            sys::Waited::Changed { pid, change, usage } => match &mut sandbox {
                // An end is only noted here; the run has its ending already.
                Some(sandbox) => drop(sandbox.on_change(pid, change, usage, false)),
                // A child that never got as far as a sandbox.
                None => reaped.extend(ended(pid, change)),
            },
        }
    }
    Ok(sandbox.map_or(reaped, |sandbox| sandbox.reaped.clone()))
}

fn ended(pid: i32, change: Reaped) -> Option<ReapedProcess> {
    let end = match change {
        Reaped::Exited(code) => ProcessEnd::Exited(code),
        Reaped::Signalled(signal) => ProcessEnd::Signalled(signal),
        Reaped::Stopped { .. } => return None,
    };
    Some(ReapedProcess {
        pid,
        role: Role::Other,
        end,
    })
}

/// Everything that still stops is killed and let go on to its end.
fn answer_dying(sandbox: Option<&mut Sandbox>, pid: i32, event: i32) -> io::Result<()> {
    let tracee = match sandbox.and_then(|sandbox| sandbox.process_mut(pid)) {
        Some((_, process)) => {
            if event == libc::PTRACE_EVENT_EXIT && process.exit.is_none() {
                process.exit = exit_facts(process.tracee);
            }
            process.tracee
        }
        None => {
            sys::kill_unreaped(pid)?;
            Tracee::attached_with_its_parent(pid)
        }
    };
    match tracee.resume(0) {
        Err(error) if error.raw_os_error() != Some(libc::ESRCH) => Err(error),
        _ => Ok(()),
    }
}

/// Whether all processes that were started show their end.
///
/// # Errors
/// What poll(2) says.
pub fn all_ended(sandbox: &Sandbox) -> io::Result<bool> {
    let mut all = true;
    for process in sandbox.processes() {
        all &= has_ended(process)?;
    }
    Ok(all)
}

fn has_ended(process: &Process) -> io::Result<bool> {
    Ok(process.end.is_some() && process.pidfd.has_ended()?)
}
