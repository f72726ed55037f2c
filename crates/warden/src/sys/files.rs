//! Descriptors: opening relative to a held one, sealing, sweeping.

use std::ffi::{CStr, CString, OsStr};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, IntoRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use super::{check, check_long, retry};

/// Closes every descriptor from `first` on.
///
/// # Errors
/// What close_range(2) says.
pub fn close_from(first: u32) -> io::Result<()> {
    // SAFETY: called by the warden before it owns a descriptor above 2, so no owner
    // in this process loses one; takes no pointer.
    check_long(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0_u32) })?;
    Ok(())
}

/// Makes reads and writes of a descriptor return instead of waiting.
///
/// # Errors
/// What fcntl(2) says.
pub fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes no pointer; the descriptor is open for the call.
    let flags = check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) })?;
    // SAFETY: as above.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK) })?;
    Ok(())
}

/// A file in memory that holds `bytes` and that nobody can change any more:
/// sealed against writing, growing, shrinking and further seals.
///
/// # Errors
/// What memfd_create(2), write(2) and fcntl(2) say, or that the seals did not hold.
pub fn sealed_memfd(name: &CStr, bytes: &[u8]) -> io::Result<File> {
    use std::io::{Seek as _, Write as _};

    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: `name` is a terminated string that outlives the call.
    let fd = check(unsafe { libc::memfd_create(name.as_ptr(), flags) })?;
    // SAFETY: a successful result is a new descriptor that nothing else owns.
    let mut file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    file.write_all(bytes)?;
    file.rewind()?;
    let seals = libc::F_SEAL_SEAL | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_WRITE;
    // SAFETY: takes no pointer; the descriptor is open.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) })?;
    // SAFETY: as above.
    let found = check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) })?;
    if found & seals == seals {
        Ok(file)
    } else {
        Err(io::Error::other("the seals did not hold"))
    }
}

/// Fills an array from the kernel's random number generator.
///
/// # Errors
/// What getrandom(2) says, or a short answer.
pub fn random_bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0_u8; N];
    let count = retry(|| {
        // SAFETY: the buffer has N bytes and outlives the call.
        let count = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), N, 0) };
        if count < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(count)
        }
    })?;
    if usize::try_from(count) == Ok(N) {
        Ok(bytes)
    } else {
        Err(io::Error::other("getrandom gave fewer bytes than asked"))
    }
}

/// The kernel's `struct open_how` (openat2(2)).
#[repr(C)]
struct OpenHow {
    flags: u64,
    mode: u64,
    resolve: u64,
}

const RESOLVE_NO_XDEV: u64 = 0x01;
const RESOLVE_NO_MAGICLINKS: u64 = 0x02;
const RESOLVE_NO_SYMLINKS: u64 = 0x04;
const RESOLVE_BENEATH: u64 = 0x08;

/// Opens one name below a held directory for reading: no link of any kind is
/// followed, nothing above is reached, no other mount is entered (openat2(2)).
///
/// # Errors
/// What openat2(2) says; ENOSYS or EPERM where it is not to be had.
pub fn open_beneath(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<File> {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
    let how = OpenHow {
        flags: u64::from(flags.cast_unsigned()),
        mode: 0,
        resolve: RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH,
    };
    let size = size_of::<OpenHow>();
    let fd = retry(|| {
        // SAFETY: `how` has the layout and size that the kernel is told, `name` is a
        // terminated string, both outlive the call.
        check_long(unsafe {
            libc::syscall(
                libc::SYS_openat2,
                dir.as_raw_fd(),
                name.as_ptr(),
                &raw const how,
                size,
            )
        })
    })?;
    let fd = libc::c_int::try_from(fd).map_err(io::Error::other)?;
    // SAFETY: a successful result is a new descriptor that nothing else owns.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(fd) }))
}

fn open_with(dir: BorrowedFd<'_>, name: &CStr, flags: libc::c_int) -> io::Result<File> {
    let fd = retry(|| {
        // SAFETY: `name` is a terminated string that outlives the call.
        check(unsafe { libc::openat(dir.as_raw_fd(), name.as_ptr(), flags | libc::O_CLOEXEC) })
    })?;
    // SAFETY: a successful result is a new descriptor that nothing else owns.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// Opens a name for reading, relative to a held directory. Magic links of /proc
/// are followed: that is what the barrier reads them for.
///
/// # Errors
/// What openat(2) says.
pub fn open_at(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<File> {
    open_with(
        dir,
        name,
        libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY,
    )
}

/// Locates a name relative to a held directory without opening it; a symbolic
/// link comes out as itself.
///
/// # Errors
/// What openat(2) says.
pub fn path_only_at(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<File> {
    open_with(dir, name, libc::O_PATH | libc::O_NOFOLLOW)
}

/// Locates what a magic link of /proc leads to, without opening it.
///
/// # Errors
/// What openat(2) says.
pub fn locate_at(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<File> {
    open_with(dir, name, libc::O_PATH)
}

/// What is known of the inode behind a name, links of /proc followed.
///
/// # Errors
/// What openat(2) and fstat(2) say.
pub fn stat_at(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<Metadata> {
    locate_at(dir, name)?.metadata()
}

/// The text of a symbolic link.
///
/// # Errors
/// What readlinkat(2) says.
pub fn read_link_at(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<PathBuf> {
    let mut buffer = [0_u8; 4096];
    // SAFETY: the buffer has the size that is told and outlives the call; `name` is
    // a terminated string.
    let count = unsafe {
        libc::readlinkat(
            dir.as_raw_fd(),
            name.as_ptr(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
        )
    };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    Ok(PathBuf::from(OsStr::from_bytes(&buffer[..count])))
}

/// The number in a link of the form `kind:[number]`, as under /proc/PID/ns.
///
/// # Errors
/// What readlinkat(2) says, or another form.
pub fn link_inode_at(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<u64> {
    let link = read_link_at(dir, name)?;
    link.to_str()
        .and_then(|text| text.split_once(":["))
        .and_then(|(_, rest)| rest.strip_suffix(']'))
        .and_then(|number| number.parse().ok())
        .ok_or_else(|| io::Error::other("not a link to a namespace"))
}

/// Whether an open file has an extended attribute of this name.
///
/// # Errors
/// What fgetxattr(2) says, absence excepted.
pub fn has_attribute(fd: BorrowedFd<'_>, name: &CStr) -> io::Result<bool> {
    // SAFETY: a null buffer of size 0 only asks for the size (getxattr(2)).
    let size = unsafe { libc::fgetxattr(fd.as_raw_fd(), name.as_ptr(), std::ptr::null_mut(), 0) };
    if size >= 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        // ENOTSUP: the file system has none at all.
        Some(libc::ENODATA | libc::ENOTSUP) => Ok(false),
        _ => Err(error),
    }
}

/// The names in a directory below a held one, sorted, without `.` and `..`; at
/// most `limit`, or an error.
///
/// # Errors
/// What the kernel says, or that there are more.
pub fn list_directory(dir: BorrowedFd<'_>, name: &CStr, limit: usize) -> io::Result<Vec<CString>> {
    let held = open_with(dir, name, libc::O_RDONLY | libc::O_DIRECTORY)?;
    let fd = held.into_raw_fd();
    // SAFETY: the descriptor is open, a directory, and owned by nothing else; on
    // success the stream owns it.
    let stream = unsafe { libc::fdopendir(fd) };
    if stream.is_null() {
        let error = io::Error::last_os_error();
        // SAFETY: fdopendir failed, so the descriptor is still ours alone.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
        return Err(error);
    }
    let names = read_stream(stream, limit);
    // SAFETY: the stream is valid and is not used afterwards.
    unsafe { libc::closedir(stream) };
    let mut names = names?;
    names.sort();
    Ok(names)
}

fn read_stream(stream: *mut libc::DIR, limit: usize) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    loop {
        // SAFETY: errno is this thread's own, and has to be cleared to tell the end
        // from an error (readdir(3)); the stream is valid until the caller closes it.
        let entry = unsafe {
            *libc::__errno_location() = 0;
            libc::readdir(stream)
        };
        if entry.is_null() {
            let error = io::Error::last_os_error();
            return if error.raw_os_error() == Some(0) {
                Ok(names)
            } else {
                Err(error)
            };
        }
        // SAFETY: the entry is valid until the next readdir of this stream, and its
        // name is terminated.
        let name = unsafe { CStr::from_ptr((*entry).d_name.as_ptr()) };
        if name == c"." || name == c".." {
            continue;
        }
        if names.len() == limit {
            return Err(io::Error::other("more entries than allowed"));
        }
        names.push(name.to_owned());
    }
}
