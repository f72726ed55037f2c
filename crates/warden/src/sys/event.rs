//! Waiting: epoll, a boot-time timer, signals as a descriptor, and poll.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::time::Duration;

use super::{check, retry};

/// An epoll set. Each descriptor is registered with a number of the caller's.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

/// One descriptor that has something to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readiness {
    /// The number it was registered with.
    pub key: u64,
    /// Whether the other end is gone (EPOLLHUP or EPOLLERR).
    pub hung_up: bool,
}

/// How many events one wait takes at most.
const EVENTS_MAX: usize = 16;

impl Epoll {
    /// An empty set.
    ///
    /// # Errors
    /// What epoll_create1(2) says.
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes no pointer; a successful result is a new descriptor that
        // nothing else owns.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: see above.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Watches a descriptor for reading, level-triggered.
    ///
    /// # Errors
    /// What epoll_ctl(2) says.
    pub fn add(&self, fd: BorrowedFd<'_>, key: u64) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN.cast_unsigned(),
            u64: key,
        };
        // SAFETY: both descriptors are open for the call; `event` outlives it.
        check(unsafe {
            libc::epoll_ctl(
                self.0.as_raw_fd(),
                libc::EPOLL_CTL_ADD,
                fd.as_raw_fd(),
                &raw mut event,
            )
        })?;
        Ok(())
    }

    /// Stops watching a descriptor.
    ///
    /// # Errors
    /// What epoll_ctl(2) says.
    pub fn remove(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        // SAFETY: both descriptors are open for the call; a null event is allowed
        // for this operation (epoll_ctl(2)).
        check(unsafe {
            libc::epoll_ctl(
                self.0.as_raw_fd(),
                libc::EPOLL_CTL_DEL,
                fd.as_raw_fd(),
                std::ptr::null_mut(),
            )
        })?;
        Ok(())
    }

    /// Waits without limit until something is ready.
    ///
    /// # Errors
    /// What epoll_wait(2) says, a signal excepted.
    pub fn wait(&self) -> io::Result<Vec<Readiness>> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX];
        let count = retry(|| {
            let room = libc::c_int::try_from(EVENTS_MAX).map_err(io::Error::other)?;
            // SAFETY: the array is valid for `room` events and outlives the call.
            check(unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), room, -1) })
        })?;
        let count = usize::try_from(count).map_err(io::Error::other)?;
        let gone = (libc::EPOLLHUP | libc::EPOLLERR).cast_unsigned();
        Ok(events
            .iter()
            .take(count)
            .map(|event| Readiness {
                key: event.u64,
                hung_up: event.events & gone != 0,
            })
            .collect())
    }
}

/// A timer on `CLOCK_BOOTTIME`, readable once the instant has passed.
#[derive(Debug)]
pub struct TimerFd(OwnedFd);

impl TimerFd {
    /// A timer for an absolute instant, in nanoseconds of `CLOCK_BOOTTIME`. An
    /// instant that has passed makes it readable at once.
    ///
    /// # Errors
    /// What timerfd_create(2) and timerfd_settime(2) say.
    pub fn at(boottime_ns: u64) -> io::Result<Self> {
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: takes no pointer; a successful result is a new descriptor.
        let fd = check(unsafe { libc::timerfd_create(libc::CLOCK_BOOTTIME, flags) })?;
        // SAFETY: see above.
        let timer = Self(unsafe { OwnedFd::from_raw_fd(fd) });
        // Zero would disarm the timer instead of firing it.
        let instant = boottime_ns.max(1);
        let value = libc::timespec {
            tv_sec: libc::time_t::try_from(instant / 1_000_000_000).map_err(io::Error::other)?,
            tv_nsec: libc::c_long::try_from(instant % 1_000_000_000).map_err(io::Error::other)?,
        };
        let never = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let setting = libc::itimerspec {
            it_interval: never,
            it_value: value,
        };
        // SAFETY: `setting` outlives the call; a null old value is allowed.
        check(unsafe {
            libc::timerfd_settime(
                timer.0.as_raw_fd(),
                libc::TFD_TIMER_ABSTIME,
                &raw const setting,
                std::ptr::null_mut(),
            )
        })?;
        Ok(timer)
    }
}

impl AsFd for TimerFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Signals that are blocked and read from a descriptor instead.
#[derive(Debug)]
pub struct SignalFd(OwnedFd);

impl SignalFd {
    /// Blocks exactly these signals in this thread, and opens the descriptor.
    ///
    /// # Errors
    /// What sigprocmask(2) and signalfd(2) say.
    pub fn of(signals: &[libc::c_int]) -> io::Result<Self> {
        let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: sigemptyset initialises the set before anything reads it, and the
        // set outlives all calls.
        unsafe {
            check(libc::sigemptyset(set.as_mut_ptr()))?;
            for signal in signals {
                check(libc::sigaddset(set.as_mut_ptr(), *signal))?;
            }
            check(libc::sigprocmask(
                libc::SIG_SETMASK,
                set.as_ptr(),
                std::ptr::null_mut(),
            ))?;
        }
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        // SAFETY: the set was initialised above; -1 asks for a new descriptor.
        let fd = check(unsafe { libc::signalfd(-1, set.as_ptr(), flags) })?;
        // SAFETY: a successful result is a new descriptor that nothing else owns.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The next pending signal, or none.
    ///
    /// # Errors
    /// What read(2) says.
    pub fn next(&self) -> io::Result<Option<libc::c_int>> {
        let mut info = std::mem::MaybeUninit::<libc::signalfd_siginfo>::zeroed();
        let size = size_of::<libc::signalfd_siginfo>();
        let result = retry(|| {
            // SAFETY: the buffer has exactly `size` bytes and outlives the call.
            let count = unsafe { libc::read(self.0.as_raw_fd(), info.as_mut_ptr().cast(), size) };
            if count < 0 {
                Err(io::Error::last_os_error())
            } else {
                Ok(count)
            }
        });
        match result {
            Ok(count) if usize::try_from(count) == Ok(size) => {
                // SAFETY: every bit pattern is a valid signalfd_siginfo, and the
                // kernel filled it whole.
                let number = unsafe { info.assume_init() }.ssi_signo;
                Ok(Some(
                    libc::c_int::try_from(number).map_err(io::Error::other)?,
                ))
            }
            Ok(_) => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// What is waited for at a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// There is something to read.
    Read,
    /// There is room to write.
    Write,
}

/// Waits until one of the descriptors is ready or hung up, or the time has passed;
/// tells for each whether it is.
///
/// # Errors
/// What poll(2) says, a signal excepted.
pub fn wait_ready(
    fds: &[(BorrowedFd<'_>, Interest)],
    limit: Option<Duration>,
) -> io::Result<Vec<bool>> {
    let events = |interest| match interest {
        Interest::Read => libc::POLLIN,
        Interest::Write => libc::POLLOUT,
    };
    let mut asked: Vec<libc::pollfd> = fds
        .iter()
        .map(|(fd, interest)| libc::pollfd {
            fd: fd.as_raw_fd(),
            events: events(*interest),
            revents: 0,
        })
        .collect();
    let milliseconds = match limit {
        None => -1,
        Some(limit) => libc::c_int::try_from(limit.as_millis()).unwrap_or(libc::c_int::MAX),
    };
    let count = libc::nfds_t::try_from(asked.len()).map_err(io::Error::other)?;
    // SAFETY: the array is valid for `count` entries and outlives the call.
    retry(|| check(unsafe { libc::poll(asked.as_mut_ptr(), count, milliseconds) }))?;
    Ok(asked.iter().map(|entry| entry.revents != 0).collect())
}
