//! From a name to a descriptor, without following anything.
//!
//! The descriptor that comes out only *locates* an inode (`O_PATH`): nothing has
//! been opened for reading yet, so a FIFO cannot block and a device cannot react.
//! The kernel's own resolver (`openat2`) is used where it answers; where it does
//! not (an old kernel, or a service manager's filter: ENOSYS or EPERM) every
//! component is opened alone with `O_NOFOLLOW`. There is no third way.
//!
//! This module must never call `open` on a path with more than one component that
//! it did not check, and never resolve `..`.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;

use crate::error::Refusal;
use crate::facts::{FileFacts, FileKind};
use crate::name::RelativeName;

/// How names are resolved below a held directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resolver {
    /// `openat2` where the kernel answers it, the component walk where it does not.
    #[default]
    Kernel,
    /// Only the component walk: what happens where `openat2` is refused. The tests
    /// hold both to the same cases.
    ComponentWalk,
}

/// How often EAGAIN is retried before the caller is told to try again (case C04).
/// A name without `..` never needed a retry when it was measured; the bound is for
/// file systems that answer so for other reasons.
#[cfg(target_os = "linux")]
const EAGAIN_RETRIES_MAX: u32 = 64;

/// Opens `name` below `dir`, as a location only.
pub(crate) fn locate(dir: &File, name: &RelativeName, resolver: Resolver) -> Result<File, Refusal> {
    #[cfg(target_os = "linux")]
    if resolver == Resolver::Kernel
        && let Some(located) = kernel::locate(dir, name)?
    {
        return Ok(located);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = resolver;
    walk(dir, name)
}

/// The component walk: each component alone, links and foreign mounts refused.
fn walk(dir: &File, name: &RelativeName) -> Result<File, Refusal> {
    let home = mount_of(dir)?;
    let mut current = dir.try_clone().map_err(|source| io_error("dup", source))?;
    let mut components = name.components().peekable();
    while let Some(component) = components.next() {
        let next = locate_component(&current, OsStr::new(component))?;
        let facts = FileFacts::of(&next).map_err(|source| io_error("fstat", source))?;
        if facts.kind == FileKind::SymbolicLink {
            return Err(Refusal::SymbolicLink);
        }
        if components.peek().is_some() && facts.kind != FileKind::Directory {
            return Err(Refusal::NotDirectory(facts.kind));
        }
        if mount_of(&next)? != home {
            return Err(Refusal::OtherMount);
        }
        current = next;
    }
    Ok(current)
}

/// Opens one directory entry as a location; a symbolic link comes out as itself.
pub(crate) fn locate_component(dir: &File, component: &OsStr) -> Result<File, Refusal> {
    retry_on_signal(|| openat(dir.as_fd(), component, location_flags(), Mode::empty()))
        .map(File::from)
        .map_err(open_error)
}

/// Opens the root directory as a location: where every ancestry walk begins.
pub(crate) fn locate_root() -> Result<File, Refusal> {
    locate_path(Path::new("/"))
}

/// Opens a path of the operator's as a location.
pub(crate) fn locate_path(path: &Path) -> Result<File, Refusal> {
    retry_on_signal(|| nix::fcntl::open(path, location_flags(), Mode::empty()))
        .map(File::from)
        .map_err(open_error)
}

#[cfg(target_os = "linux")]
fn location_flags() -> OFlag {
    OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC
}

/// Without `O_PATH` the inode has to be opened; non-blocking, so that a FIFO
/// returns at once.
#[cfg(not(target_os = "linux"))]
fn location_flags() -> OFlag {
    OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC
}

/// Opens a located regular file for reading: the same inode, through the
/// descriptor itself.
///
/// The inode's kind cannot change, so after `locate` said *regular* this never
/// opens a FIFO or a device, whatever has been put in the name's place meanwhile.
/// The comparison of inodes guards against a /proc that is not procfs.
#[cfg(target_os = "linux")]
pub(crate) fn reopen_for_reading(located: &File, facts: &FileFacts) -> Result<File, Refusal> {
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::OpenOptionsExt as _;

    let path = format!("/proc/self/fd/{}", located.as_raw_fd());
    let file = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC).bits())
        .open(path)
        .map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => Refusal::NoProc("not found"),
            // Somebody holds a lease on the file.
            io::ErrorKind::WouldBlock => Refusal::TryAgain,
            _ => io_error("open for reading", source),
        })?;
    let opened = FileFacts::of(&file).map_err(|source| io_error("fstat", source))?;
    if !opened.same_inode(facts) {
        return Err(Refusal::NoProc("it does not lead back to the descriptor"));
    }
    Ok(file)
}

/// Without `O_PATH` the location is open for reading already.
#[cfg(not(target_os = "linux"))]
pub(crate) fn reopen_for_reading(located: &File, _facts: &FileFacts) -> Result<File, Refusal> {
    located
        .try_clone()
        .map_err(|source| io_error("dup", source))
}

/// Asks the kernel for `openat2` by using it on the root directory.
///
/// # Errors
/// The errno with which the call was refused: ENOSYS or EPERM where the kernel is
/// older than 5.6 or a filter stands before it.
#[cfg(target_os = "linux")]
pub fn openat2_answers() -> io::Result<()> {
    let root = nix::fcntl::open("/", location_flags(), Mode::empty())?;
    kernel::openat2_once(&File::from(root), ".")
        .map(drop)
        .map_err(io::Error::from)
}

/// There is no `openat2` here.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn openat2_answers() -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// Which mount a descriptor is on. A bind mount of the same file system has the
/// same device number, so the number alone does not do where more is to be had.
#[cfg(target_os = "linux")]
fn mount_of(file: &File) -> Result<u64, Refusal> {
    use std::os::fd::AsRawFd as _;

    let path = format!("/proc/self/fdinfo/{}", file.as_raw_fd());
    let text = std::fs::read_to_string(path).map_err(|_| Refusal::NoProc("no fdinfo"))?;
    text.lines()
        .find_map(|line| line.strip_prefix("mnt_id:"))
        .and_then(|value| value.trim().parse().ok())
        .ok_or(Refusal::NoProc("no mnt_id in fdinfo"))
}

#[cfg(not(target_os = "linux"))]
fn mount_of(file: &File) -> Result<u64, Refusal> {
    FileFacts::of(file)
        .map(|facts| facts.device)
        .map_err(|source| io_error("fstat", source))
}

pub(crate) fn retry_on_signal<T>(mut call: impl FnMut() -> nix::Result<T>) -> nix::Result<T> {
    loop {
        match call() {
            Err(Errno::EINTR) => {}
            other => return other,
        }
    }
}

pub(crate) fn open_error(errno: Errno) -> Refusal {
    match errno {
        Errno::ENOENT => Refusal::NotFound,
        Errno::ELOOP => Refusal::SymbolicLink,
        Errno::EAGAIN => Refusal::TryAgain,
        Errno::EEXIST => Refusal::Exists,
        Errno::ENOTDIR => Refusal::NotDirectory(FileKind::Other),
        other => io_error("open", other.into()),
    }
}

pub(crate) fn io_error(operation: &'static str, source: io::Error) -> Refusal {
    Refusal::Io { operation, source }
}

#[cfg(target_os = "linux")]
mod kernel {
    use super::*;
    use nix::fcntl::{OpenHow, ResolveFlag, openat2};

    /// `Ok(None)` where the call itself is refused, so that the walk takes over.
    pub(super) fn locate(dir: &File, name: &RelativeName) -> Result<Option<File>, Refusal> {
        for _ in 0..=EAGAIN_RETRIES_MAX {
            match openat2_once(dir, name.as_str()) {
                Ok(file) => return Ok(Some(file)),
                Err(Errno::EAGAIN | Errno::EINTR) => {}
                // The walk gives the true answer should EPERM be about the file.
                Err(Errno::ENOSYS | Errno::EPERM) => return Ok(None),
                // A mount point, or a directory that was moved away just now: for the
                // kernel both leave the tree. The walk tells them apart.
                Err(Errno::EXDEV) => return Err(why_outside(dir, name)),
                Err(errno) => return Err(open_error(errno)),
            }
        }
        Err(Refusal::TryAgain)
    }

    fn why_outside(dir: &File, name: &RelativeName) -> Refusal {
        match walk(dir, name) {
            Err(Refusal::OtherMount) => Refusal::OtherMount,
            _ => Refusal::TryAgain,
        }
    }

    pub(super) fn openat2_once(dir: &File, name: &str) -> nix::Result<File> {
        // Without O_NOFOLLOW a link as last component is ELOOP as well (openat2(2)).
        let how = OpenHow::new()
            .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
            .resolve(
                ResolveFlag::RESOLVE_BENEATH
                    | ResolveFlag::RESOLVE_NO_SYMLINKS
                    | ResolveFlag::RESOLVE_NO_MAGICLINKS
                    | ResolveFlag::RESOLVE_NO_XDEV,
            );
        openat2(dir.as_fd(), name, how).map(File::from)
    }
}
