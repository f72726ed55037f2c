//! Why a start was refused, and what an operator can do about it.
//!
//! The refusal itself is bubblewrap's, the launcher's or the kernel's. What is looked
//! up here is which setting of the host is known to cause it. Settings are read to
//! give advice, never to decide: what decides is that the start failed.

use std::path::Path;

use super::Need;
use crate::blocked::{Blocked, Cause};

/// Settings of a host that are known to refuse user namespaces and tracing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostSettings {
    /// `user.max_user_namespaces`.
    pub max_user_namespaces: Option<u64>,
    /// `kernel.unprivileged_userns_clone` (Debian and derived kernels).
    pub unprivileged_userns_clone: Option<u64>,
    /// `kernel.apparmor_restrict_unprivileged_userns` (Ubuntu 24.04 and later).
    pub apparmor_restricts: Option<u64>,
    /// `kernel.yama.ptrace_scope`.
    pub ptrace_scope: Option<u64>,
    /// Whether /proc/sys is mounted read-only.
    pub proc_sys_read_only: bool,
    /// Whether a system-call filter is in force on this process already.
    pub outer_filter: bool,
}

impl HostSettings {
    /// Reads them; what cannot be read is not known.
    #[must_use]
    pub fn read() -> Self {
        let number = |path: &str| {
            std::fs::read_to_string(path)
                .ok()
                .and_then(|text| text.trim().parse().ok())
        };
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        Self {
            max_user_namespaces: number("/proc/sys/user/max_user_namespaces"),
            unprivileged_userns_clone: number("/proc/sys/kernel/unprivileged_userns_clone"),
            apparmor_restricts: number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
            ptrace_scope: number("/proc/sys/kernel/yama/ptrace_scope"),
            proc_sys_read_only: is_read_only("/proc/sys"),
            outer_filter: status.lines().any(|line| line == "Seccomp:\t2"),
        }
    }
}

fn is_read_only(path: &str) -> bool {
    #[cfg(target_os = "linux")]
    return nix::sys::statvfs::statvfs(path).is_ok_and(|found| {
        found
            .flags()
            .contains(nix::sys::statvfs::FsFlags::ST_RDONLY)
    });
    #[cfg(not(target_os = "linux"))]
    {
        let _ = path;
        false
    }
}

/// Which need a refused start concerns, and the refusal with what to do about it.
/// `bwrap` is where the closure's bubblewrap lies, for the text of a profile.
#[must_use]
pub fn advise(blocked: Blocked, host: &HostSettings, bwrap: &Path) -> (Need, Blocked) {
    let text = blocked.why.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if matches!(blocked.cause, Cause::Barrier | Cause::NotReleased) {
        return (Need::Barrier, blocked);
    }
    if says(&["ptrace", "seize", "tracing"]) {
        return (Need::Tracing, advise_tracing(blocked, host));
    }
    if blocked.cause == Cause::Launcher {
        let need = if says(&["filter"]) {
            Need::Filter
        } else {
            Need::Barrier
        };
        return (need, blocked);
    }
    if says(&[
        "namespace",
        "uid map",
        "max_user_namespaces",
        "unshare",
        "netlink",
        "rtm_newaddr",
    ]) {
        return (Need::Namespaces, advise_namespaces(blocked, host, bwrap));
    }
    (Need::Barrier, advise_outer_filter(blocked, host))
}

fn advise_namespaces(blocked: Blocked, host: &HostSettings, bwrap: &Path) -> Blocked {
    let mut blocked = Blocked {
        cause: Cause::UserNamespaces,
        ..blocked
    };
    let before = blocked.advice.len();
    if host.max_user_namespaces == Some(0) {
        blocked = blocked.advise(
            "user.max_user_namespaces is 0: set it, for example by sysctl -w user.max_user_namespaces=10000",
        );
    }
    if host.unprivileged_userns_clone == Some(0) {
        blocked = blocked.advise(
            "kernel.unprivileged_userns_clone is 0: sysctl -w kernel.unprivileged_userns_clone=1",
        );
    }
    if host.apparmor_restricts == Some(1) {
        blocked = blocked.advise(apparmor_profile(bwrap));
    }
    if host.proc_sys_read_only {
        blocked = blocked.advise(
            "/proc/sys is mounted read-only, so no further user namespaces can be forbidden inside: \
             in a systemd unit set ProtectKernelTunables=no, in a container use \
             --security-opt systempaths=unconfined",
        );
    }
    if blocked.advice.len() == before {
        blocked = advise_outer_filter(blocked, host);
    }
    blocked
}

/// The profile that Ubuntu 24.04 and later want for a program that makes user
/// namespaces. It confines nothing; it names the one program that may.
fn apparmor_profile(bwrap: &Path) -> String {
    format!(
        "AppArmor restricts user namespaces to programs with a profile. As root, write this to \
         /etc/apparmor.d/lazaret-bwrap and load it with apparmor_parser -r /etc/apparmor.d/lazaret-bwrap:\n\
         abi <abi/4.0>,\n\
         include <tunables/global>\n\
         profile lazaret-bwrap \"{}\" flags=(unconfined) {{\n\
         \x20 userns,\n\
         \x20 include if exists <local/lazaret-bwrap>\n\
         }}",
        bwrap.display()
    )
}

fn advise_tracing(blocked: Blocked, host: &HostSettings) -> Blocked {
    if host.ptrace_scope.is_some_and(|scope| scope >= 2) {
        return blocked.advise(
            "kernel.yama.ptrace_scope is 2 or 3, so that nobody but an administrator may trace: set it to 1",
        );
    }
    advise_outer_filter(blocked, host)
}

fn advise_outer_filter(blocked: Blocked, host: &HostSettings) -> Blocked {
    if !host.outer_filter {
        return blocked;
    }
    blocked.advise(
        "a system-call filter is in force around Lazaret: in a container start it with a seccomp \
         profile that allows unshare, clone with namespaces, mount, pivot_root and ptrace; in a \
         systemd unit remove RestrictNamespaces= and widen SystemCallFilter=",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(cause: Cause, why: &str) -> Blocked {
        Blocked::new(cause, "the sandbox", why)
    }

    fn check(why: &str, host: HostSettings, need: Need, word: &str) {
        let bwrap = Path::new("/c/bwrap");
        let (found, blocked) = advise(refused(Cause::Setup, why), &host, bwrap);
        assert_eq!(found, need, "{why}");
        assert!(
            blocked.advice.iter().any(|step| step.contains(word)),
            "{:?}",
            blocked.advice
        );
        assert!(blocked.why.contains(why));
    }

    #[test]
    fn each_known_setting_gets_its_own_advice() {
        let userns = "set-up failed at bwrap: bwrap: No permissions to create new namespace";
        let host = HostSettings::default();
        check(
            userns,
            HostSettings {
                max_user_namespaces: Some(0),
                ..host.clone()
            },
            Need::Namespaces,
            "user.max_user_namespaces",
        );
        check(
            userns,
            HostSettings {
                unprivileged_userns_clone: Some(0),
                ..host.clone()
            },
            Need::Namespaces,
            "unprivileged_userns_clone",
        );
        check(
            "bwrap: setting up uid map: Permission denied",
            HostSettings {
                apparmor_restricts: Some(1),
                ..host.clone()
            },
            Need::Namespaces,
            "profile lazaret-bwrap \"/c/bwrap\" flags=(unconfined)",
        );
        check(
            "bwrap: cannot open /proc/sys/user/max_user_namespaces: Read-only file system",
            HostSettings {
                proc_sys_read_only: true,
                ..host.clone()
            },
            Need::Namespaces,
            "ProtectKernelTunables=no",
        );
        check(
            userns,
            HostSettings {
                outer_filter: true,
                ..host.clone()
            },
            Need::Namespaces,
            "container",
        );
        check(
            "warden failed at ptrace seize: Operation not permitted",
            HostSettings {
                ptrace_scope: Some(3),
                ..host
            },
            Need::Tracing,
            "ptrace_scope",
        );
    }

    #[test]
    fn a_wrong_fact_is_not_explained_away() {
        let host = HostSettings {
            max_user_namespaces: Some(0),
            ..HostSettings::default()
        };
        let wrong = refused(Cause::Barrier, "barrier fact filter-count is 0, expected 1");
        let (need, blocked) = advise(wrong.clone(), &host, Path::new("/b"));
        assert_eq!((need, blocked), (Need::Barrier, wrong));
    }

    #[test]
    fn a_setting_that_is_in_order_is_not_blamed() {
        let host = HostSettings {
            max_user_namespaces: Some(100),
            ..HostSettings::default()
        };
        let why = "bwrap: creating new namespace failed";
        let (_, blocked) = advise(refused(Cause::Setup, why), &host, Path::new("/b"));
        assert_eq!(blocked.advice, Vec::<String>::new());
    }
}
