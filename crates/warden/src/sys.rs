//! The one place of this crate where `unsafe` is allowed: thin wrappers around
//! system calls that the standard library does not offer.
//!
//! Each wrapper takes and gives Rust types, checks the return value, and keeps
//! nothing: no state, no policy, no decision. What a call is *for* stands where it
//! is called. Nothing here may log, allocate between fork and exec, or hide an
//! error.

use std::io;

mod clock;
mod event;
mod files;
mod process;
mod ptrace;
mod spawn;
mod state;

pub use clock::{boottime_ns, limited_cpu_time_ns};
pub use event::{Epoll, Interest, Readiness, SignalFd, TimerFd, wait_ready};
pub use files::{
    close_from, has_attribute, link_inode_at, list_directory, locate_at, open_at, open_beneath,
    path_only_at, random_bytes, read_link_at, sealed_memfd, set_nonblocking, stat_at,
};
pub use process::{
    PidFd, Reaped, Usage, Waited, current_pid, effective_ids, group_list, kill_unreaped,
    own_session, parent_pid, wait_any, wait_any_blocking,
};
pub use ptrace::{Entry, ExitRegisters, SignalInfo, TraceOptions, Tracee};
pub use spawn::{ExecPlan, Forked, close_on_exec_before_exec, fork_exec};
pub use state::{
    Capabilities, Limit, become_subreaper, capabilities, clear_ambient_capabilities,
    clear_capabilities, disable_huge_pages, disable_page_merging, drop_to, get_limit, io_priority,
    join_new_session_keyring, nice, personality, reset_io_priority, reset_nice, reset_personality,
    reset_scheduling, reset_signals, scheduling_policy, set_limit, set_limit_of, set_not_dumpable,
    set_timer_slack_ns, set_umask,
};

/// Turns the usual `-1 and errno` into an error.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// The same for raw system calls, whose results are long.
fn check_long(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Repeats a call that a signal interrupted.
fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            other => return other,
        }
    }
}
