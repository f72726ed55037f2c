//! Processes: who we are, descriptors of processes, waiting.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use super::{check, check_long, retry};

/// This process's id, in its own PID namespace.
pub fn current_pid() -> i32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::getpid() }
}

/// The parent's id; 0 if it lives in another PID namespace.
pub fn parent_pid() -> i32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::getppid() }
}

/// Effective uid and gid, after a check that real, effective and saved agree.
///
/// # Errors
/// What getresuid(2) says, or that they differ: this program is never setuid.
pub fn effective_ids() -> io::Result<(u32, u32)> {
    let (mut ruid, mut euid, mut suid) = (0, 0, 0);
    let (mut rgid, mut egid, mut sgid) = (0, 0, 0);
    // SAFETY: all six are valid for writing and outlive the calls.
    check(unsafe { libc::getresuid(&raw mut ruid, &raw mut euid, &raw mut suid) })?;
    // SAFETY: as above.
    check(unsafe { libc::getresgid(&raw mut rgid, &raw mut egid, &raw mut sgid) })?;
    if ruid == euid && euid == suid && rgid == egid && egid == sgid {
        Ok((euid, egid))
    } else {
        Err(io::Error::other("real, effective and saved ids differ"))
    }
}

/// The supplementary groups, sorted.
///
/// # Errors
/// What getgroups(2) says.
pub fn group_list() -> io::Result<Vec<u32>> {
    // SAFETY: a size of 0 only asks for the count.
    let count = check(unsafe { libc::getgroups(0, std::ptr::null_mut()) })?;
    let mut groups = vec![0; usize::try_from(count).map_err(io::Error::other)?];
    // SAFETY: the vector has room for `count` entries. One thread: no group is
    // added in between, and the kernel refuses a size that is too small.
    let found = check(unsafe { libc::getgroups(count, groups.as_mut_ptr()) })?;
    groups.truncate(usize::try_from(found).map_err(io::Error::other)?);
    groups.sort_unstable();
    Ok(groups)
}

/// Leaves the terminal and the session of whoever started this process.
///
/// # Errors
/// What setsid(2) says; being a session's leader already is none.
pub fn own_session() -> io::Result<()> {
    // SAFETY: take nothing; affect only this process.
    if unsafe { libc::setsid() } < 0 && unsafe { libc::getsid(0) } != current_pid() {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// A descriptor that stands for one process, whatever happens to its number.
#[derive(Debug)]
pub struct PidFd(OwnedFd);

impl PidFd {
    /// Opens one. The caller holds the process unreaped (its child or tracee), so
    /// that the number cannot have been given to another.
    ///
    /// # Errors
    /// What pidfd_open(2) says.
    pub fn open(pid: i32) -> io::Result<Self> {
        // SAFETY: takes no pointer; a successful result is a new descriptor, which
        // is close-on-exec by itself.
        let fd = check_long(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
        let fd = libc::c_int::try_from(fd).map_err(io::Error::other)?;
        // SAFETY: see above.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Sends SIGKILL. A process that is gone already is no error.
    ///
    /// # Errors
    /// What pidfd_send_signal(2) says.
    pub fn kill(&self) -> io::Result<()> {
        // SAFETY: the descriptor is open; a null siginfo means an ordinary signal.
        let result = check_long(unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.0.as_raw_fd(),
                libc::SIGKILL,
                std::ptr::null::<libc::siginfo_t>(),
                0,
            )
        });
        match result {
            Err(error) if error.raw_os_error() != Some(libc::ESRCH) => Err(error),
            _ => Ok(()),
        }
    }

    /// Whether the process has ended (it may still wait to be reaped).
    ///
    /// # Errors
    /// What poll(2) says.
    pub fn has_ended(&self) -> io::Result<bool> {
        let asked = [(self.0.as_fd(), super::Interest::Read)];
        let ready = super::wait_ready(&asked, Some(std::time::Duration::ZERO))?;
        Ok(ready.first().copied().unwrap_or(false))
    }
}

impl AsFd for PidFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Sends SIGKILL to a child or tracee that has not been reaped, so that the number is
/// still its own. For those that have no descriptor: a thread gets none. One that is
/// gone already is no error.
///
/// # Errors
/// What kill(2) says.
pub fn kill_unreaped(pid: i32) -> io::Result<()> {
    // SAFETY: takes numbers.
    match check(unsafe { libc::kill(pid, libc::SIGKILL) }) {
        Err(error) if error.raw_os_error() != Some(libc::ESRCH) => Err(error),
        _ => Ok(()),
    }
}

/// What a process used in its life, as wait4(2) tells it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user mode, in nanoseconds.
    pub cpu_user_ns: u64,
    /// CPU time in the kernel, in nanoseconds.
    pub cpu_system_ns: u64,
    /// Largest resident set, in bytes.
    pub peak_memory_bytes: u64,
}

/// A change of state of one child or tracee.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaped {
    /// Ended by itself, with this code.
    Exited(i32),
    /// Ended by this signal.
    Signalled(i32),
    /// Stopped: the signal, and the ptrace event (0 if none).
    Stopped {
        /// The stopping signal.
        signal: i32,
        /// The number of the ptrace event.
        event: i32,
    },
}

/// The answer of one wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// Nothing has changed.
    Nothing,
    /// There is no child and no tracee (ECHILD): all have been reaped.
    NoneLeft,
    /// One has changed.
    Changed {
        /// Its process id.
        pid: i32,
        /// What happened to it.
        change: Reaped,
        /// What it used, meaningful once it has ended.
        usage: Usage,
    },
}

/// Asks, without waiting, for a change of any child or tracee.
///
/// # Errors
/// What wait4(2) says, ECHILD excepted.
pub fn wait_any() -> io::Result<Waited> {
    wait_with(libc::WNOHANG)
}

/// Waits for a change of any child or tracee.
///
/// # Errors
/// What wait4(2) says, ECHILD excepted.
pub fn wait_any_blocking() -> io::Result<Waited> {
    wait_with(0)
}

fn wait_with(flags: libc::c_int) -> io::Result<Waited> {
    let mut status = 0;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    let result = retry(|| {
        // SAFETY: both out-pointers are valid for writing and outlive the call.
        check(unsafe {
            libc::wait4(
                -1,
                &raw mut status,
                flags | libc::__WALL,
                usage.as_mut_ptr(),
            )
        })
    });
    match result {
        Ok(0) => Ok(Waited::Nothing),
        Err(error) if error.raw_os_error() == Some(libc::ECHILD) => Ok(Waited::NoneLeft),
        Err(error) => Err(error),
        Ok(pid) => {
            // SAFETY: all-zero is a valid rusage, and the kernel fills it whole.
            let usage = unsafe { usage.assume_init() };
            Ok(Waited::Changed {
                pid,
                change: decode(status),
                usage: usage_of(&usage),
            })
        }
    }
}

/// The encoding of wait(2): kept in one place, tested below.
fn decode(status: libc::c_int) -> Reaped {
    if libc::WIFEXITED(status) {
        Reaped::Exited(libc::WEXITSTATUS(status))
    } else if libc::WIFSIGNALED(status) {
        Reaped::Signalled(libc::WTERMSIG(status))
    } else {
        Reaped::Stopped {
            signal: libc::WSTOPSIG(status),
            event: (status >> 16) & 0xffff,
        }
    }
}

impl Reaped {
    /// Decodes a status as PTRACE_GETEVENTMSG gives it at an exit event.
    pub fn from_exit_message(message: u64) -> Option<Self> {
        Some(decode(libc::c_int::try_from(message).ok()?))
    }
}

fn usage_of(usage: &libc::rusage) -> Usage {
    let nanoseconds = |time: libc::timeval| {
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let micros = u64::try_from(time.tv_usec).unwrap_or(0);
        seconds
            .saturating_mul(1_000_000_000)
            .saturating_add(micros.saturating_mul(1_000))
    };
    Usage {
        cpu_user_ns: nanoseconds(usage.ru_utime),
        cpu_system_ns: nanoseconds(usage.ru_stime),
        peak_memory_bytes: u64::try_from(usage.ru_maxrss)
            .unwrap_or(0)
            .saturating_mul(1024),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_code_of_159_is_no_signal() {
        assert_eq!(decode(159 << 8), Reaped::Exited(159));
        assert_eq!(decode(libc::SIGSYS), Reaped::Signalled(libc::SIGSYS));
        // With the core-dump bit, as the kernel reports a filter's kill.
        assert_eq!(decode(libc::SIGSYS | 0x80), Reaped::Signalled(libc::SIGSYS));
    }

    #[test]
    fn a_ptrace_event_is_told_from_a_signal() {
        let stop = |signal: i32, event: i32| (event << 16) | (signal << 8) | 0x7f;
        assert_eq!(
            decode(stop(libc::SIGTRAP, libc::PTRACE_EVENT_EXIT)),
            Reaped::Stopped {
                signal: libc::SIGTRAP,
                event: libc::PTRACE_EVENT_EXIT
            }
        );
        assert_eq!(
            decode(stop(libc::SIGSEGV, 0)),
            Reaped::Stopped {
                signal: libc::SIGSEGV,
                event: 0
            }
        );
    }
}
