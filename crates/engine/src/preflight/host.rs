//! The probes that need no closure: kernel calls, limits, user, places.

use super::{Need, Probes, Request, require_openat2};

/// Probes the host.
pub(super) fn probe(request: &Request, probes: &mut Probes) {
    probes.add(
        Need::RunUser,
        request.acting.clone().map(|acting| describe_user(&acting)),
    );
    probes.add(
        Need::Openat2,
        require_openat2().map(|()| "answered".to_owned()),
    );
    kernel::probe(probes);
    probes.add(
        Need::Warden,
        request
            .warden
            .clone()
            .map(|path| lazaret_custody::error::shown(&path)),
    );
}

fn describe_user(acting: &crate::Acting) -> String {
    match acting.run_owner {
        Some(owner) => format!(
            "started by root, runs drop to uid {}, which nobody has",
            owner.uid
        ),
        None => format!("runs stay uid {}", acting.uid),
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
mod kernel {
    use std::io::Write as _;

    use lazaret_warden::{limits, sys};
    use nix::fcntl::{FcntlArg, SealFlag, fcntl};
    use nix::sys::memfd::{MFdFlags, memfd_create};

    use super::super::{Need, Probes};
    use crate::blocked::{Blocked, Cause};
    use crate::run::session::boottime_ns;

    pub(super) fn probe(probes: &mut Probes) {
        probes.add(Need::MemoryFiles, memory_files());
        probes.add(Need::ProcessDescriptors, process_descriptors());
        probes.add(Need::Clock, clock());
        probes.add(Need::HardLimits, hard_limits());
    }

    /// Makes a file in memory, seals it, and sees that it cannot be written to.
    fn memory_files() -> Result<String, Blocked> {
        let what = "sealed files in memory";
        let refuse = |errno: nix::Error| {
            Blocked::new(Cause::MemoryFiles, what, errno.to_string())
                .advise("a seccomp profile or an old kernel refuses memfd_create: allow it")
        };
        let file = memfd_create(
            "lazaret-probe",
            MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING,
        )
        .map_err(refuse)?;
        let mut file = std::fs::File::from(file);
        file.write_all(b"probe")
            .map_err(|error| Blocked::io(what, "write", &error))?;
        let seals = SealFlag::F_SEAL_WRITE
            | SealFlag::F_SEAL_GROW
            | SealFlag::F_SEAL_SHRINK
            | SealFlag::F_SEAL_SEAL;
        fcntl(&file, FcntlArg::F_ADD_SEALS(seals)).map_err(refuse)?;
        if file.write_all(b"!").is_ok() {
            let why = "a sealed file could still be written to";
            return Err(Blocked::new(Cause::MemoryFiles, what, why));
        }
        Ok("made, sealed, and no longer writable".to_owned())
    }

    /// Opens this very process.
    fn process_descriptors() -> Result<String, Blocked> {
        let what = "process descriptors";
        let refuse = |error: std::io::Error| {
            Blocked::new(
                Cause::ProcessDescriptors,
                what,
                format!("pidfd_open: {error}"),
            )
            .advise("a seccomp profile or a kernel before 5.3 refuses pidfd_open: allow it")
        };
        let own = sys::PidFd::open(sys::current_pid()).map_err(refuse)?;
        match own.has_ended().map_err(refuse)? {
            false => Ok("opened, and shows a living process as alive".to_owned()),
            true => Err(Blocked::new(
                Cause::ProcessDescriptors,
                what,
                "shows this process as ended",
            )),
        }
    }

    fn clock() -> Result<String, Blocked> {
        let first = boottime_ns()?;
        let second = boottime_ns()?;
        if first == 0 || second < first {
            let why = format!("it went from {first} to {second}");
            return Err(Blocked::new(Cause::Clock, "the boot clock", why));
        }
        Ok("runs, and counts suspend".to_owned())
    }

    /// The warden lowers each limit to a fixed value; a lower hard limit that was
    /// inherited could not be raised to it.
    fn hard_limits() -> Result<String, Blocked> {
        let what = "hard limits";
        for (resource, needed) in limits::OF_WARDEN {
            let found = sys::get_limit(resource).map_err(|e| Blocked::io(what, "getrlimit", &e))?;
            if found.hard < needed {
                let why = format!(
                    "{resource:?} has a hard limit of {}, {needed} is needed",
                    found.hard
                );
                return Err(Blocked::new(Cause::HardLimit, what, why).advise(
                    "raise it where it is set: limits.conf, the unit's Limit*= settings, or the \
                     container's ulimits",
                ));
            }
        }
        Ok(format!("{} limits leave room", limits::OF_WARDEN.len()))
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile))))]
mod kernel {
    pub(super) fn probe(_: &mut super::Probes) {}
}
