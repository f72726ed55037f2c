//! Which process is meant: read from the kernel, for ourselves and for others.

use std::fs;
use std::io::{self, Read as _};
use std::os::fd::BorrowedFd;

use crate::barrier::parse;
use crate::record::{Namespaces, ProcessIdentity};
use crate::sys;

/// The largest file of /proc that is read whole, in bytes.
pub(crate) const PROC_TEXT_BYTES_MAX: u64 = 256 * 1024;

/// A file of /proc, whole.
pub(crate) fn read_text_at(dir: BorrowedFd<'_>, name: &std::ffi::CStr) -> io::Result<String> {
    let mut text = String::new();
    let read = sys::open_at(dir, name)?
        .take(PROC_TEXT_BYTES_MAX + 1)
        .read_to_string(&mut text)?;
    if u64::try_from(read).unwrap_or(u64::MAX) > PROC_TEXT_BYTES_MAX {
        return Err(io::Error::other("longer than expected"));
    }
    Ok(text)
}

/// The identity of the process behind a held /proc/PID directory.
///
/// # Errors
/// What the kernel says, or a text of another form.
pub fn of_process(dir: BorrowedFd<'_>, pid: i32) -> io::Result<ProcessIdentity> {
    let stat = read_text_at(dir, c"stat")?;
    let stat = parse::stat(&stat).map_err(io::Error::other)?;
    if stat.pid != pid {
        return Err(io::Error::other(
            "/proc shows another process under this number",
        ));
    }
    Ok(ProcessIdentity {
        pid,
        start_time_ticks: stat.start_time_ticks,
        boot_id: fs::read_to_string("/proc/sys/kernel/random/boot_id")?
            .trim()
            .to_owned(),
        machine_id: machine_id()?,
        pid_namespace: sys::link_inode_at(dir, c"ns/pid")?,
        time_namespace: optional(sys::link_inode_at(dir, c"ns/time"))?,
    })
}

/// The inodes of a process's namespaces.
///
/// # Errors
/// What the kernel says.
pub fn namespaces_of(dir: BorrowedFd<'_>) -> io::Result<Namespaces> {
    Ok(Namespaces {
        cgroup: sys::link_inode_at(dir, c"ns/cgroup")?,
        ipc: sys::link_inode_at(dir, c"ns/ipc")?,
        mount: sys::link_inode_at(dir, c"ns/mnt")?,
        network: sys::link_inode_at(dir, c"ns/net")?,
        pid: sys::link_inode_at(dir, c"ns/pid")?,
        user: sys::link_inode_at(dir, c"ns/user")?,
        uts: sys::link_inode_at(dir, c"ns/uts")?,
    })
}

fn machine_id() -> io::Result<Option<String>> {
    let text = optional(fs::read_to_string("/etc/machine-id"))?;
    Ok(text
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty()))
}

fn optional<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
